//! What goes wrong: any party cut at any step, silence, narrow windows.

mod common;

use base::{Error, PartyId};
use circuits::Viewers;
use circuits::{Circuit, Lit};
use common::{circuit, eval, truth};
use gmw::{GateParty, Layers};
use net::Session;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ot::OtKind;
use std::time::Duration;

const LANES: usize = 200;

fn all(session: &mut Session, layers: &Layers, roots: &[Lit]) -> Result<Vec<Vec<u64>>, Error> {
    let mut party = GateParty::new(session, OtKind::default(), 0)?;
    let shares = eval(&mut party, layers, LANES, session)?;
    let seen = party.reveal(shares, LANES, &vec![&Viewers::Everyone; roots.len()], session)?;
    Ok(seen.into_iter().flatten().collect())
}

fn three() -> (Circuit, Vec<Lit>, Layers) {
    let (c, roots) = circuit(3, 40, 9);
    let layers = Layers::new(&c, &roots);
    assert!(layers.depth() > 1);
    (c, roots, layers)
}

#[test]
fn a_party_lost_at_any_step_stops_all_others() {
    let (_, roots, layers) = three();
    for lost in 0..3 {
        for step in ["setup", "setup/seeds", "triples", "online", "reveal"] {
            let cluster = Cluster::new(3, 2).deadline(Duration::from_secs(20));
            let done =
                cluster.fault(PartyId(lost), step, InjectedFault::Cut).run(|s| all(s, &layers, &roots));
            for (party, done) in done.into_iter().enumerate() {
                let error = done.expect_err("nobody sees an output");
                let at = error.at();
                assert_eq!(at.party, format!("p{party}"), "{error}");
                assert!(at.peer.as_ref().is_some_and(|peer| *peer != at.party), "{error}");
                let reached = at.step.split('/').next().unwrap_or_default();
                assert!(["setup", "triples", "online", "reveal"].contains(&reached), "{error}");
                if party == usize::from(lost) {
                    assert!(at.step.starts_with(step), "lost at {step}: {error}");
                }
            }
        }
    }
}

#[test]
fn silence_ends_at_the_deadline() {
    let (_, roots, layers) = three();
    let cluster = Cluster::new(3, 2).deadline(Duration::from_millis(300));
    let slow = InjectedFault::Delay(Duration::from_millis(1500));
    let done = cluster.fault(PartyId(1), "online", slow).run(|s| all(s, &layers, &roots));
    for other in [0, 2] {
        let error = done[other].as_ref().expect_err("p1 is silent");
        assert_eq!(error.at().step, "online", "{error}");
    }
}

#[test]
fn narrow_windows_change_nothing() {
    let (c, roots) = circuit(3, 60, 4);
    let layers = Layers::new(&c, &roots);
    // Several posts of triples, and openings of several pieces.
    let lanes = 8000;
    for kind in [OtKind::default(), OtKind::SoftSpoken { k: 1 }, OtKind::Ferret] {
        let done = Cluster::new(3, 2).tiny_window().run(|s| {
            let mut party = GateParty::new(s, kind, 1 << 19)?;
            let shares = eval(&mut party, &layers, lanes, s)?;
            party.reveal(shares, lanes, &vec![&Viewers::Everyone; roots.len()], s)
        });
        let expected = truth(&c, &roots, lanes);
        for seen in done {
            let seen: Vec<Vec<u64>> = seen.unwrap().into_iter().flatten().collect();
            assert!(seen == expected, "{kind}");
        }
    }
}

#[test]
fn one_altered_bit_of_an_opening_is_no_panic() {
    // Semi-honest: a result is wrong then, and nothing else happens.
    let (_, roots, layers) = three();
    let fault = InjectedFault::Corrupt { byte: 0, mask: 1 };
    let done = Cluster::new(3, 2).fault(PartyId(1), "online", fault).run(|s| all(s, &layers, &roots));
    assert!(done.iter().all(Result::is_ok));
}

//! Marketplaces among n parties: the true answers, the paper's gates in the ledger, faults, narrow windows,
//! limits.

use base::{Error, PartyId};
use engine::{Engine, PreparedRows, RowInput, RowSource, outputs, run_rows};
use gmw::Gmw;
use net::Session;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ot::OtKind;
use program::ShardRows;
use program::lower::combine::SelectionCircuit;
use program::lower::{Lowering, lower_release};
use std::sync::Arc;
use std::time::Duration;
use studies::market::{CUSTOMER, MarketAnswer, MarketSample, Problem, program};

fn sample(problem: Problem, parties: usize, shape: SelectionCircuit, rows: u64) -> MarketSample {
    let names = (0..parties).map(|p| format!("p{p}"));
    MarketSample::new(problem, program(problem, names, shape), rows, 7)
}

fn engine(shape: SelectionCircuit) -> Gmw {
    Gmw::new(OtKind::default()).with_shape(shape)
}

/// What this party learns; a provider nothing.
fn play(
    sample: &MarketSample,
    shape: SelectionCircuit,
    session: &mut Session,
) -> Result<Option<MarketAnswer>, Error> {
    let (engine, program, me) = (engine(shape), sample.program(), session.me());
    let shares = run_rows(&engine, program, &mut sample.part(Some(me)), session)?;
    if !program.lists.is_empty() {
        let lists = engine.lists(program, CUSTOMER)?.run(sample.rows(), &shares, session)?;
        let bits = |list: &Vec<u64>| {
            (0..sample.rows()).map(|r| list[r as usize / 64] >> (r % 64) & 1 == 1).collect()
        };
        return Ok(lists.first().map(|list| MarketAnswer::All(bits(list))));
    }
    let owners = program.fold_owners();
    let plan = Arc::new(lower_release(program, CUSTOMER.into(), &Lowering::exact(&owners))?);
    let values = outputs::exact(&*engine.release(&plan)?, &shares, session)?.unwrap_or_default();
    Ok(match values[..] {
        [row, score] => Some(MarketAnswer::Best((score != 0).then_some((row as u64, score)))),
        [row, score, found] => Some(MarketAnswer::Best((found == 1).then_some((row as u64, score)))),
        _ => None,
    })
}

#[test]
fn customers_learn_the_true_answer_and_providers_nothing() {
    for problem in Problem::ALL {
        for (shape, parties, rows) in [
            (SelectionCircuit::Small, 3, 33),
            (SelectionCircuit::Shallow, 4, 6),
            (SelectionCircuit::Small, 2, 5),
        ] {
            let sample = sample(problem, parties, shape, rows);
            let done = Cluster::new(parties, 1).run(|s| play(&sample, shape, s));
            let mut answers = done.into_iter().map(|d| d.unwrap());
            assert_eq!(answers.next().flatten(), Some(sample.truth().unwrap()), "{problem}, {parties}");
            assert!(answers.all(|a| a.is_none()), "{problem}");
        }
    }
}

#[test]
fn the_papers_circuit_takes_the_papers_gates() {
    let sample = sample(Problem::P2p, 3, SelectionCircuit::Paper, 100);
    let done = Cluster::new(3, 1).run(|s| {
        let answer = play(&sample, SelectionCircuit::Paper, s)?;
        Ok((answer, s.traffic().and_gates("rows"), s.traffic().and_gates("release")))
    });
    for (party, done) in done.into_iter().enumerate() {
        let (answer, rows, release) = done.unwrap();
        // Booked with each of the two peers.
        assert_eq!((rows, release), (2 * 5_461, 0));
        assert_eq!(answer, (party == 0).then(|| sample.truth().unwrap()));
    }
    for (rows, gates, depth) in [(100, 5_461, 120), (5_000, 304_955, 222)] {
        let stage = engine(SelectionCircuit::Paper).prepare(sample.program(), RowSource::Owned).unwrap();
        assert_eq!((stage.price(rows).and_gates, stage.depth(rows)), (gates, depth));
    }
}

#[test]
fn narrow_windows_do_not_stop_it() {
    let sample = sample(Problem::P2p, 3, SelectionCircuit::Small, 3_000);
    let done = Cluster::new(3, 1).tiny_window().run(|s| play(&sample, SelectionCircuit::Small, s));
    assert_eq!(done.into_iter().next().unwrap().unwrap(), Some(sample.truth().unwrap()));
}

#[test]
fn a_party_lost_at_any_step_stops_all_others() {
    let sample = sample(Problem::P2p, 3, SelectionCircuit::Small, 9);
    for lost in [0, 2] {
        for step in ["rows/setup", "rows/triples", "rows/online", "release/setup", "release/open"] {
            let cluster = Cluster::new(3, 2).deadline(Duration::from_secs(20));
            let done = cluster
                .fault(PartyId(lost), step, InjectedFault::Cut)
                .run(|s| play(&sample, SelectionCircuit::Small, s));
            // The customer sends nothing at the end, so losing what it sends then is no loss.
            if lost == 0 && step == "release/open" {
                continue;
            }
            let error = done[0].as_ref().expect_err("no answer");
            assert!(error.at().party == "p0" && error.at().peer.is_some(), "{step}: {error}");
        }
    }
}

/// What providers send in the end is fresh: it does not repeat although all inputs do.
#[test]
fn revealed_shares_are_refreshed() {
    let sample = sample(Problem::P2p, 3, SelectionCircuit::Small, 1);
    let sent = |seed| {
        let done = Cluster::new(3, seed).digests().run(|s| {
            play(&sample, SelectionCircuit::Small, s)?;
            Ok(s.digests().into_iter().find(|(_, step, _)| step == "release/open").map(|(.., hash)| hash))
        });
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    let [first, again, other] = [1, 1, 2].map(sent);
    assert_eq!(first, again);
    assert_eq!(first[0], None, "the customer reveals nothing");
    assert!(first[1..].iter().zip(&other[1..]).all(|(a, b)| a.is_some() && a != b));
}

#[test]
fn too_many_rows_are_refused_before_anything_is_sent() {
    struct Endless;
    impl ShardRows for Endless {
        fn len(&self) -> u64 {
            1 << 32
        }
        fn read(&mut self, _: u32, _: u64, _: &mut [u128]) -> Result<(), Error> {
            panic!("no row is read")
        }
    }
    let sample = sample(Problem::P2p, 3, SelectionCircuit::Small, 1);
    let done = Cluster::new(3, 1).run(|s| {
        let refused = run_rows(&engine(SelectionCircuit::Small), sample.program(), &mut Endless, s);
        let refused = refused.map(|_| ()).expect_err("too many");
        Ok((refused.to_string(), s.traffic().sent("")))
    });
    let (text, sent) = done.into_iter().next().unwrap().unwrap();
    assert!(
        text.contains("are too many for one computation of gmw") && text.contains("rows of it fit"),
        "{text}"
    );
    assert_eq!(sent, 0);
}

#[test]
fn what_it_cannot_run_is_said() {
    let sample = sample(Problem::P2p, 3, SelectionCircuit::Small, 1);
    let stage = engine(SelectionCircuit::Small).rows(sample.program(), RowSource::Owned).unwrap();
    let done = Cluster::new(2, 1).run(|s| {
        let mut rows = sample.part(None);
        let refused = stage.run(RowInput::Owned(&mut rows), s);
        Ok(refused.map(|_| ()).unwrap_err().to_string())
    });
    assert!(done[0].as_ref().unwrap().contains("for 3 parties; 2 take part"));
}

//! Both directions with every peer at once: the functionality, the price, the wire, faults.

use base::{Error, PartyId};
use kernels::bit;
use net::Session;
use net::cluster::{Cluster, pinned};
use net::faults::InjectedFault;
use ot::*;
use std::time::Duration;

fn peers(session: &Session) -> Vec<PartyId> {
    session.roster().parties().filter(|&p| p != session.me()).collect()
}

type Held = Vec<(PartyId, kernels::Block, Correlated)>;

/// Sets up and makes `n` OTs per direction; what this party holds, by peer.
fn work(session: &mut Session, kind: OtKind, n: usize) -> Result<Held, Error> {
    let peers = peers(session);
    let mut pairs = session.step("setup", |s| setup_all(s, &peers, kind, n as u64))?;
    let mut out: Vec<Correlated> = peers.iter().map(|_| Correlated::default()).collect();
    session.step("make", |s| correlated_all(s, &mut pairs, n, &mut out))?;
    let held = pairs.iter().zip(out).map(|(pair, out)| (pair.peer, pair.sender.delta(), out));
    Ok(held.collect())
}

/// Every pair's correlation holds, in both directions, and no Delta is used twice.
fn check(parties: &[Held], n: usize) {
    let mut deltas = Vec::new();
    for (me, held) in parties.iter().enumerate() {
        for (peer, delta, mine) in held {
            let (_, _, theirs) =
                parties[peer.index()].iter().find(|(p, ..)| p.index() == me).expect("both hold the pair");
            assert!(delta.lsb());
            assert_eq!((mine.q.len(), theirs.t.len(), theirs.choices.len()), (n, n, n.div_ceil(64)));
            for i in 0..n {
                let held = mine.q[i] ^ theirs.t[i] == delta.when(bit(&theirs.choices, i));
                assert!(held, "p{me} to {peer}: OT {i}");
            }
            deltas.push(delta.0);
        }
    }
    let count = deltas.len();
    deltas.sort_unstable();
    deltas.dedup();
    assert_eq!(deltas.len(), count, "a Delta came twice");
}

fn kinds() -> [OtKind; 3] {
    [OtKind::default(), OtKind::SoftSpoken { k: 5 }, OtKind::Ferret]
}

#[test]
fn five_parties_hold_correlations_pairwise() {
    for kind in kinds() {
        for n in [0, 1000] {
            let done = Cluster::new(5, 3).run(|s| work(s, kind, n));
            check(&done.into_iter().map(Result::unwrap).collect::<Vec<_>>(), n);
        }
    }
}

#[test]
fn a_tiny_window_suffices() {
    for kind in kinds() {
        let done = Cluster::new(3, 4).tiny_window().run(|s| work(s, kind, 20_000));
        check(&done.into_iter().map(Result::unwrap).collect::<Vec<_>>(), 20_000);
    }
}

#[test]
fn leading_is_decided_and_even() {
    for n in 2..=13u8 {
        for me in 0..n {
            let led = (0..n).filter(|&peer| peer != me && leads(PartyId(me), PartyId(peer))).count();
            assert!(led.abs_diff(usize::from(n - 1) / 2) <= 1, "{me} of {n} leads {led}");
            for peer in (0..n).filter(|&peer| peer != me) {
                assert!(leads(PartyId(me), PartyId(peer)) != leads(PartyId(peer), PartyId(me)));
            }
        }
    }
}

#[test]
fn a_cut_at_set_up_names_party_peer_and_step() {
    for (kind, step) in kinds().into_iter().flat_map(|kind| ["setup", "make"].map(|step| (kind, step))) {
        let cluster = Cluster::new(3, 5).deadline(Duration::from_secs(20));
        let done = cluster.fault(PartyId(1), step, InjectedFault::Cut).run(|s| work(s, kind, 5000));
        for (me, done) in done.into_iter().enumerate() {
            let error = done.err().expect("nobody goes on without p1");
            let at = error.at();
            assert_eq!(at.party, format!("p{me}"));
            assert!(at.peer.is_some() && at.step.starts_with(step), "{error}");
        }
    }
}

#[test]
fn takes_match_posts() {
    kinds().into_iter().for_each(takes_match_posts_of);
}

fn takes_match_posts_of(kind: OtKind) {
    let done = Cluster::new(2, 6).run(|session| {
        let peer = session.me().other();
        let mut pairs = setup_all(session, &[peer], kind, 128)?;
        let pair = &mut pairs[0];
        let over = pair.sender.post(session, OTS_PER_CALL + 1).unwrap_err().to_string();
        assert!(over.starts_with("OTs per call"), "{over}");
        let mut out = [Vec::new(), Vec::new()];
        let early = pair.sender.take(session, 128, &mut out[0]).unwrap_err().to_string();
        assert_eq!(early, "128 OTs taken where 0 were posted");
        correlated_all(session, &mut pairs, 10, &mut []).map_err(|e| e.to_string()).unwrap_err();
        // Two posts may be under way.
        let pair = &mut pairs[0];
        for n in [128, 60] {
            pair.sender.post(session, n)?;
            pair.receiver.post(session, n)?;
            session.link(peer).flush()?;
        }
        let late = "OTs with chosen bits while others are posted; take those first";
        let sends = pair.sender.correlated(session, 64, &mut Vec::new()).unwrap_err();
        let receives = pair.receiver.correlated(session, &[0], 64, &mut Vec::new()).unwrap_err();
        assert_eq!((sends.to_string(), receives.to_string()), (late.to_owned(), late.to_owned()));
        let (mut choices, [mut q, mut t]) = (Vec::new(), out);
        for n in [128, 60] {
            pair.sender.take(session, n, &mut q)?;
            pair.receiver.take(session, n, &mut choices, &mut t)?;
        }
        Ok((pair.sender.delta(), q, t, choices))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    for (mine, theirs) in [(&done[0], &done[1]), (&done[1], &done[0])] {
        assert_eq!(mine.1.len(), 188);
        let held = |i: usize| mine.1[128 + i] ^ theirs.2[128 + i] == mine.0.when(bit(&theirs.3, i));
        assert!((0..60).all(held));
    }
}

/// Expected OTs that call for the large set.
const MANY: u64 = 1 << 40;

#[test]
fn the_price_of_a_pair_is_what_the_ledger_books() {
    let kinds = [1, 2, 5, 8].map(|k| (OtKind::SoftSpoken { k }, 0));
    for (kind, expected) in kinds.into_iter().chain([(OtKind::Ferret, 0), (OtKind::Ferret, MANY)]) {
        let n = 70_000;
        let done = Cluster::new(3, 7).run(|session| {
            let peers = peers(session);
            let mut pairs = session.step("setup", |s| setup_all(s, &peers, kind, expected))?;
            let mut out = [Correlated::default(), Correlated::default()];
            session.step("make", |s| correlated_all(s, &mut pairs, n, &mut out))?;
            Ok(session.traffic().clone())
        });
        let ledgers: Vec<_> = done.into_iter().map(Result::unwrap).collect();
        for (me, ledger) in ledgers.iter().enumerate() {
            for peer in (0..3).filter(|&peer| peer != me) {
                let of_peer = |step: &str| {
                    let entries = ledger.entries().iter().filter(|e| e.peer.index() == peer);
                    let under = entries.filter(|e| e.step.starts_with(step));
                    under.fold((0, 0, 0), |(b, t, o), e| (b + e.sent, t + e.turns, o + e.ots))
                };
                let price = ExtensionCost::pair(kind, expected);
                let leader = leads(PartyId(me as u8), PartyId(peer as u8));
                let sent = if leader { price.sender } else { price.receiver };
                let (bytes, turns, ots) = of_peer("setup");
                assert_eq!((bytes, ots), (sent, price.ots), "{kind}: p{me} to p{peer}");
                assert!(if leader { turns == price.turns } else { turns <= price.turns }, "{kind}: {turns}");
                let mut meter = PriceMeter::new(kind, expected);
                meter.setup();
                let before = meter.price();
                meter.correlated_random(n);
                let after = meter.price();
                let both_ways = after.sender - before.sender + after.receiver - before.receiver;
                let made = of_peer("make");
                assert_eq!((made.0, made.2), (both_ways, 2 * n as u64), "{kind}");
            }
        }
    }
}

/// Two workers of three parties out of one run of base OTs per pair: correlations hold, every Delta of both
/// is fresh, and the hub costs its price.
#[test]
fn workers_out_of_hubs() {
    let kinds = [OtKind::SoftSpoken { k: 1 }, OtKind::default(), OtKind::Ferret];
    for (kind, n) in kinds.into_iter().map(|kind| (kind, 2000)) {
        let done = Cluster::new(3, 12).run(|session| {
            let peers = peers(session);
            let forks = session.step("hub", |s| Hubs::new(s, &peers)?.fork(s, 2))?;
            let mut workers = Vec::new();
            for bases in forks {
                let mut pairs = session.step("setup", |s| setup_over(s, bases, kind, n as u64))?;
                let mut out: Vec<Correlated> = peers.iter().map(|_| Correlated::default()).collect();
                session.step("make", |s| correlated_all(s, &mut pairs, n, &mut out))?;
                let held = pairs.iter().zip(out).map(|(pair, out)| (pair.peer, pair.sender.delta(), out));
                workers.push(held.collect::<Held>());
            }
            Ok((workers, session.traffic().clone()))
        });
        let (held, ledgers): (Vec<_>, Vec<_>) = done.into_iter().map(Result::unwrap).unzip();
        let mut deltas = Vec::new();
        for worker in 0..2 {
            let of = held.iter().map(|workers| workers[worker].iter());
            let of = of.map(|held| held.map(|(p, d, c)| (*p, *d, copy(c))).collect()).collect::<Vec<Held>>();
            check(&of, n);
            deltas.extend(of.iter().flatten().map(|(_, delta, _)| delta.0));
        }
        deltas.sort_unstable();
        assert!(deltas.windows(2).all(|d| d[0] != d[1]), "workers share a Delta");
        for (me, ledger) in ledgers.iter().enumerate() {
            for peer in (0..3).filter(|&peer| peer != me) {
                let of_peer = |step: &str| {
                    let entries = ledger.entries().iter().filter(|e| e.peer.index() == peer);
                    let under = entries.filter(|e| e.step.starts_with(step));
                    under.fold((0, 0, 0), |(b, t, o), e| (b + e.sent, t + e.turns, o + e.ots))
                };
                let hub = ExtensionCost::hubs(2);
                let leader = leads(PartyId(me as u8), PartyId(peer as u8));
                let (bytes, turns, ots) = of_peer("hub");
                let sent = if leader { hub.sender } else { hub.receiver };
                assert_eq!((bytes, ots), (sent, hub.ots), "p{me} to p{peer}");
                assert!(turns <= hub.turns, "{turns}");
            }
        }
    }
}

fn copy(of: &Correlated) -> Correlated {
    Correlated { q: of.q.clone(), choices: of.choices.clone(), t: of.t.clone() }
}

#[test]
fn a_probe_agrees_and_costs_its_price() {
    let done = Cluster::new(2, 8).tiny_window().run(|session| {
        let link = probe(session, session.me().other())?;
        Ok((link, session.traffic().sent(""), session.traffic().turns("")))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    assert_eq!(done[0].0, done[1].0);
    assert!(done[0].0.bytes_per_s >= 1);
    let price = ExtensionCost::probe();
    assert_eq!((done[0].1, done[1].1), (price.sender, price.receiver));
    assert_eq!(done[0].2.max(done[1].2), price.turns);
}

#[test]
fn the_wire_is_pinned() {
    let wire = |kind: OtKind, expected: u64| {
        Cluster::new(2, 9).wire(|session| {
            let peer = session.me().other();
            let mut pairs = setup_all(session, &[peer], kind, expected)?;
            let mut out = [Correlated::default()];
            correlated_all(session, &mut pairs, 1000, &mut out)?;
            let Pair { sender, receiver, .. } = &mut pairs[0];
            // One direction after the other, the same at both parties.
            for sends in [PartyId(0), PartyId(1)] {
                if session.me() == sends {
                    sender.correlated(session, 300, &mut Vec::new())?;
                } else {
                    receiver.correlated(session, &[!0; 5], 300, &mut Vec::new())?;
                }
            }
            Ok(())
        })
    };
    pinned(&[
        ("ot, SoftSpoken", wire(OtKind::SoftSpoken { k: 2 }, 0), "2a2169fa2d4a7f32"),
        ("ot, Ferret", wire(OtKind::Ferret, 0), "cb340781d71a95c5"),
        ("ot, Ferret for many", wire(OtKind::Ferret, MANY), "bd880dbf059eda9f"),
    ]);
}

#[test]
fn a_peer_cut_mid_extension_is_named() {
    for kind in kinds() {
        let done = Cluster::new(2, 10).run(|session| {
            let peer = session.me().other();
            let mut pairs = session.step("setup", |s| setup_all(s, &[peer], kind, 0))?;
            let Pair { sender, receiver, .. } = &mut pairs[0];
            session.step("make", |s| {
                if s.me() == PartyId(0) {
                    // The first OTs come; then p0 leaves without a goodbye.
                    sender.correlated_random(s, 100_000, &mut Vec::new())?;
                    return Err(Error::misuse("gone"));
                }
                receiver.correlated_random(s, 100_000, &mut Vec::new(), &mut Vec::new())?;
                receiver.correlated_random(s, 10_000_000, &mut Vec::new(), &mut Vec::new())?;
                s.link(peer).recv(&mut [0])
            })
        });
        let error = done[1].as_ref().unwrap_err().to_string();
        assert!(error.starts_with("p1 at make with p0: the connection broke off"), "{kind}: {error}");
    }
}

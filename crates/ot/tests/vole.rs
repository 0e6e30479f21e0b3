//! VOLE end to end: every element is a correlation, the price is the ledger's, and nothing repeats.

use base::{Error, PartyId};
use kernels::{Block, gf_add_multiples};
use net::cluster::{Cluster, pinned};
use ot::vole::{self, BASE, VoleReceiver, VoleSender};
use ot::{OtKind, fresh_delta};
use std::collections::HashSet;

/// a and c of the receiver, Delta and b of the sender.
type Elements = ([Vec<Block>; 2], (Block, Vec<Block>));

fn run(kind: OtKind, total: u64, calls: &[usize], seed: u64) -> Elements {
    let (receiver, sender) = (PartyId(0), PartyId(1));
    let done = Cluster::new(2, seed).run(|session| {
        let [mut a, mut c] = [Vec::new(), Vec::new()];
        let mut delta = Block::ZERO;
        if session.me() == receiver {
            let ot = kind.receiver(session, sender, vole::expected_ots(total))?;
            let mut vole = VoleReceiver::new(ot, total)?;
            for &n in calls {
                vole.take(session, n, [&mut a, &mut c])?;
            }
        } else {
            let fresh = fresh_delta(&mut session.fork_seed("delta").into_rng());
            let ot = kind.sender(session, receiver, fresh, vole::expected_ots(total))?;
            let mut vole = VoleSender::new(session, ot, total)?;
            for &n in calls {
                vole.take(session, n, &mut a)?;
            }
            delta = vole.delta();
        }
        Ok((a, c, delta, session.traffic().clone()))
    });
    let [(a, c, _, theirs), (b, _, delta, ours)] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    let price = vole::price(kind, total).price();
    assert_eq!((price.receiver, price.sender), (theirs.sent(""), ours.sent("")), "{kind} {total}");
    ([a, c], (delta, b))
}

fn holds(([a, c], (delta, b)): &Elements) -> bool {
    let mut expected = b.clone();
    gf_add_multiples(*delta, a, &mut expected);
    expected == *c
}

#[test]
fn every_element_is_a_correlation() {
    let kinds = [OtKind::SoftSpoken { k: 4 }, OtKind::Ferret];
    for (kind, n) in kinds.into_iter().flat_map(|kind| [1usize, 5, 700].map(|n| (kind, n))) {
        let elements = run(kind, n as u64, &[n / 2, n - n / 2], 1);
        assert!(elements.1.1.len() == n && holds(&elements), "{kind}, {n} elements");
    }
}

/// Past the base, past one extension, and with a last extension of a few trees.
#[test]
fn extensions_give_correlations_that_never_repeat() {
    let most = vole::TREES << vole::DEPTH;
    for n in [BASE + 1, most + 700] {
        let elements = run(OtKind::SoftSpoken { k: 2 }, n as u64, &[1, n - 2, 1], 2);
        assert!(holds(&elements), "{n} elements");
        let ([a, c], (_, b)) = &elements;
        for column in [a, b, c] {
            assert_eq!(column.iter().map(|x| x.0).collect::<HashSet<_>>().len(), n);
        }
        let ones: u64 = a.iter().map(|x| u64::from(x.0.count_ones())).sum();
        let off = (ones as f64 - 64.0 * n as f64).abs() / (32.0 * n as f64).sqrt();
        assert!(off < 6.0, "a is not balanced: {off} deviations");
    }
}

#[test]
fn more_elements_than_announced_are_refused() {
    let done = Cluster::new(2, 3).run(|session| {
        let kind = OtKind::default();
        if session.me().0 == 0 {
            let ot = kind.receiver(session, PartyId(1), 0)?;
            return VoleReceiver::new(ot, 3)?.take(session, 4, [&mut Vec::new(), &mut Vec::new()]);
        }
        let ot = kind.sender(session, PartyId(0), Block::ONE, 0)?;
        VoleSender::new(session, ot, 3)?.take(session, 4, &mut Vec::new())
    });
    let too_many = Cluster::new(2, 4).run(|session| {
        let kind = OtKind::default();
        if session.me().0 == 0 {
            return VoleReceiver::new(kind.receiver(session, PartyId(1), 0)?, vole::ELEMENTS + 1).map(drop);
        }
        let ot = kind.sender(session, PartyId(0), Block::ONE, 0)?;
        VoleSender::new(session, ot, vole::ELEMENTS + 1).map(drop)
    });
    let limit = |e: &Error| e.to_string().contains("elements of one VOLE");
    assert!(too_many.iter().all(|done| done.as_ref().is_err_and(limit)));
    let says = |done: &Result<(), Error>| done.as_ref().unwrap_err().to_string();
    assert!(says(&done[0]).ends_with("4 elements taken of a VOLE of 3"), "{}", says(&done[0]));
}

#[test]
fn the_wire_is_pinned() {
    let wire = |kind: OtKind| {
        Cluster::new(2, 9).wire(|session| {
            let (total, [mut a, mut c]) = (700, [Vec::new(), Vec::new()]);
            if session.me() == PartyId(0) {
                let ot = kind.receiver(session, PartyId(1), vole::expected_ots(total))?;
                return VoleReceiver::new(ot, total)?.take(session, 700, [&mut a, &mut c]);
            }
            let fresh = fresh_delta(&mut session.fork_seed("delta").into_rng());
            let ot = kind.sender(session, PartyId(0), fresh, vole::expected_ots(total))?;
            VoleSender::new(session, ot, total)?.take(session, 700, &mut a)
        })
    };
    pinned(&[
        ("vole, SoftSpoken", wire(OtKind::default()), "7d5592034563569b"),
        ("vole, Ferret", wire(OtKind::Ferret), "42225c2540d76854"),
    ]);
}

//! Circuit-PSI end to end: shares against the clear join, and the price against the ledger.

mod common;

use base::{Error, Seed};
use common::{Column, ids, with_layouts};
use matching::{
    CircuitJoin, JoinedPart, JoinedShares, MatchOptions, Matcher, PayloadField, PayloadLayout, PayloadTable,
    ValidEntries, circuit_psi, dummies::Dummies,
};
use net::Ledger;
use net::cluster::Cluster;
use ot::OtKind;
use proptest::prelude::*;
use std::collections::HashMap;

fn layout() -> PayloadLayout {
    PayloadLayout::new([
        PayloadField::bits(9),
        PayloadField::number(8),
        PayloadField::number(5),
        PayloadField::bits(3),
        PayloadField::number(16),
    ])
    .unwrap()
}

/// A row of the payload of `person N`, from nothing but the row.
fn table(layout: &PayloadLayout, rows: usize) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout.clone(), rows as u64).unwrap();
    for row in 0..rows as u64 {
        for field in 0..layout.fields().len() {
            table.set(row, field, u128::from(row * 77 + 5).wrapping_pow(7) ^ (field as u128) << 60);
        }
    }
    table
}

fn options(ot: OtKind) -> MatchOptions {
    MatchOptions { ot, ..MatchOptions::default() }
}

type Done = [Result<(JoinedShares, Traffic), Error>; 2];

fn both(x: &[String], y: &[String], layout: &PayloadLayout, options: [&MatchOptions; 2], seed: u64) -> Done {
    let (columns, payload) = ([Column::new(x), Column::new(y)], table(layout, y.len()));
    let done = Cluster::new(2, seed).run(|session| {
        let me = session.me().index();
        let payload = (me == 1).then_some(&payload);
        let joined = CircuitJoin
            .run(
                session,
                &columns[me].flat(),
                payload,
                &with_layouts(options[me], [PayloadLayout::default(), layout.clone()]),
            )?
            .joined;
        Ok((joined, session.ledger().clone()))
    });
    done.try_into().ok().expect("two parties")
}

fn bits(valid: &ValidEntries) -> &[u64] {
    let ValidEntries::Shared(bits) = valid else { panic!("validity is shared") };
    bits
}

fn shares(part: &JoinedPart) -> &PayloadTable {
    let JoinedPart::Shared(table) = part else { panic!("payload is shared") };
    table
}

/// Every row of the receiver lies in one bin; its bit says whether the sender has it, and its share joins to
/// the sender's row. Gives how many match.
fn join_is_right(
    x: &[String],
    y: &[String],
    layout: &PayloadLayout,
    r: &JoinedShares,
    s: &JoinedShares,
) -> usize {
    let (JoinedPart::Mine(mine), JoinedPart::Theirs) = (&r.parts[0], &s.parts[0]) else {
        panic!("whose rows are whose")
    };
    assert_eq!((r.rows, r.slots, mine.len() as u64), (s.rows, 1, s.rows));
    let payload = table(layout, y.len());
    let sender: HashMap<&String, u64> = y.iter().zip(0..).collect();
    let (mut seen, mut matched) = (vec![false; x.len()], 0);
    for (bin, &row) in mine.iter().enumerate() {
        let valid = kernels::bit(bits(&r.valid), bin) ^ kernels::bit(bits(&s.valid), bin) == 1;
        if row == ABSENT {
            assert!(!valid, "an empty bin matches");
            continue;
        }
        assert!(!std::mem::replace(&mut seen[row as usize], true), "a row in two bins");
        let theirs = sender.get(&x[row as usize]);
        assert_eq!(valid, theirs.is_some());
        for (index, field) in layout.fields().iter().enumerate() {
            let [a, b] = [&r, &s].map(|j| shares(&j.parts[1]).get(bin as u64, index));
            if let Some(theirs) = theirs {
                assert_eq!(field.join(a, b), payload.get(*theirs, index));
            }
        }
        matched += usize::from(valid);
    }
    assert!(seen.into_iter().all(|seen| seen), "a row in no bin");
    matched
}

fn check(x: &[String], y: &[String], layout: &PayloadLayout, ot: OtKind, seed: u64) -> usize {
    let options = options(ot);
    let [r, s] = both(x, y, layout, [&options, &options], seed);
    let ((r, r_ledger), (s, s_ledger)) = (r.unwrap(), s.unwrap());
    let price = circuit_psi::price([x.len() as u64, y.len() as u64], layout, ot);
    assert_eq!(price.sent, [r_ledger.sent(""), s_ledger.sent("")]);
    assert_eq!((price.and_gates, price.ots), (r_ledger.and_gates(""), r_ledger.ots("")));
    assert_eq!(price.rounds, r_ledger.turns("").max(s_ledger.turns("")), "{ot}, {} {}", x.len(), y.len());
    join_is_right(x, y, layout, &r, &s)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]
    #[test]
    fn shares_join_to_the_clear_join(start in 0u32..40, x in 0u32..60, y in 0u32..60, seed: u64) {
        let (x, y) = (ids(0..x), ids(start..start + y));
        let both = x.iter().filter(|x| y.contains(x)).count();
        prop_assert_eq!(check(&x, &y, &layout(), OtKind::default(), seed), both);
    }
}

#[test]
fn sizes_at_the_edges_and_every_back_end() {
    for (x, y) in [(0..0, 0..0), (0..1, 0..0), (0..0, 0..3), (0..9, 0..9)] {
        check(&ids(x), &ids(y), &layout(), OtKind::SoftSpoken { k: 4 }, 3);
    }
    assert_eq!(check(&ids(0..3000), &ids(1000..4000), &layout(), OtKind::Ferret, 4), 2000);
    // Without payload the bits are left.
    assert_eq!(check(&ids(0..50), &ids(40..60), &PayloadLayout::default(), OtKind::default(), 5), 10);
}

#[test]
fn several_pieces_on_either_side() {
    assert_eq!(check(&ids(0..30_000), &ids(15_000..40_000), &layout(), OtKind::default(), 6), 15_000);
    assert_eq!(check(&ids(0..100), &ids(50..60_000), &PayloadLayout::default(), OtKind::default(), 7), 50);
    assert_eq!(
        check(&ids(0..60_000), &ids(59_990..60_050), &PayloadLayout::default(), OtKind::default(), 8),
        10
    );
}

#[test]
fn dummies_change_sizes_and_no_match() {
    let with = |who: &str| {
        let dummies = Some(Dummies::usual(&Seed::from_bytes([9; 32]).fork(who)));
        MatchOptions { dummies, ..options(OtKind::default()) }
    };
    let (x, y) = (ids(0..500), ids(200..900));
    let [r, s] = both(&x, &y, &layout(), [&with("a"), &with("b")], 9);
    assert_eq!(join_is_right(&x, &y, &layout(), &r.unwrap().0, &s.unwrap().0), 300);
    let [r, s] = both(&x, &y, &layout(), [&with("a"), &options(OtKind::default())], 9);
    for error in [r.err().unwrap(), s.err().unwrap()].map(|e| e.to_string()) {
        assert!(error.contains("it hides sizes with the same dummies as we do"), "{error}");
    }
}

#[test]
fn bad_input_is_refused_before_it_does_harm() {
    let error = |x: &[String], y: &[String], options: [&MatchOptions; 2], party: usize| {
        both(x, y, &layout(), options, 1)[party].as_ref().err().unwrap().to_string()
    };
    let usual = options(OtKind::default());
    let mut repeated = ids(0..10);
    repeated[7] = repeated[2].clone();
    let says = error(&ids(0..4), &repeated, [&usual, &usual], 1);
    assert!(says.starts_with("p1 at circuit-psi: rows 3 and 8 carry the same identifier"), "{says}");
    let few = MatchOptions { peer_rows_max: 10, ..usual.clone() };
    let says = error(&ids(0..4), &ids(0..11), [&few, &usual], 0);
    assert_eq!(says, "p0 at circuit-psi/count with p1: rows of the peer: 11 is over the limit of 10");
    let small = MatchOptions { memory: Some(1 << 20), ..usual.clone() };
    let says = error(&ids(0..4), &ids(0..11), [&small, &usual], 0);
    assert!(says.starts_with("p0 at circuit-psi: this match needs "), "{says}");
    let says = error(&ids(0..4), &ids(0..11), [&usual, &options(OtKind::Ferret)], 1);
    assert!(says.contains("it joins the same columns by the same OTs as we do"), "{says}");
}

#[test]
fn payload_is_the_senders_and_fits() {
    let (column, layout) = (Column::new(&ids(0..5)), layout());
    let short = table(&layout, 4);
    let done = Cluster::new(2, 1).run(|session| {
        let payload = (session.me().0 == 1).then_some(&short);
        CircuitJoin
            .run(
                session,
                &column.flat(),
                payload,
                &with_layouts(&MatchOptions::default(), [PayloadLayout::default(), layout.clone()]),
            )
            .map(drop)
    });
    assert!(done[1].as_ref().unwrap_err().to_string().contains("a row per identifier"));
    let done = Cluster::new(2, 1).run(|session| {
        CircuitJoin
            .run(
                session,
                &column.flat(),
                None,
                &with_layouts(&MatchOptions::default(), [PayloadLayout::default(), layout.clone()]),
            )
            .map(drop)
    });
    assert!(done[1].as_ref().unwrap_err().to_string().contains("party 1 has payload"));
}

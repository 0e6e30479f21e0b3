//! Circuit-PSI in several pieces, with other terms, and without payload; `tests/suite.rs` has what all
//! protocols do.

mod common;

use common::{Column, ids, with_layouts};
use matching::{CircuitJoin, JoinedPart, MatchOptions, Matcher, PayloadLayout, PayloadTable, ValidEntries};
use net::cluster::Cluster;
use ot::OtKind;

/// How many rows match, each of the receiver's in one bin, without payload and with the usual OTs.
fn matched(x: &[String], y: &[String], seed: u64) -> usize {
    let columns = [Column::new(x), Column::new(y)];
    let done = Cluster::new(2, seed).run(|session| {
        let me = session.me().index();
        let payload = PayloadTable::zeros(PayloadLayout::default(), y.len() as u64)?;
        let own = (me == 1).then_some(&payload as _);
        CircuitJoin.run(session, &columns[me].flat(), own, &MatchOptions::default())?.shares()
    });
    let [r, s] = [0, 1].map(|party: usize| done[party].as_ref().unwrap());
    let (ValidEntries::Shared(a), ValidEntries::Shared(b)) = (&r.valid, &s.valid) else {
        panic!("nobody knows which rows match")
    };
    let JoinedPart::Mine(held) = &r.parts[0] else { panic!("the receiver knows its bins") };
    assert_eq!(held.iter().filter(|row| **row != matching::payload::ABSENT).count(), x.len());
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones() as usize).sum()
}

#[test]
fn several_pieces_on_either_side() {
    assert_eq!(matched(&ids(0..30_000), &ids(15_000..40_000), 6), 15_000);
    assert_eq!(matched(&ids(0..100), &ids(50..60_000), 7), 50);
    assert_eq!(matched(&ids(0..60_000), &ids(59_990..60_050), 8), 10);
}

#[test]
fn other_ots_are_noticed() {
    let column = Column::new(&ids(0..5));
    let done = Cluster::new(2, 1).run(|session| {
        let me = session.me().index();
        let payload = PayloadTable::zeros(PayloadLayout::default(), 5)?;
        let ot = [OtKind::Ferret, OtKind::SoftSpoken { k: 4 }][me];
        let options = MatchOptions { ot: Some(ot), ..MatchOptions::default() };
        CircuitJoin.run(session, &column.flat(), (me == 1).then_some(&payload as _), &options).map(drop)
    });
    for error in done {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it joins the same columns by the same OTs as we do"), "{error}");
    }
}

#[test]
fn payload_is_the_senders_and_fits() {
    let (column, layout) =
        (Column::new(&ids(0..5)), PayloadLayout::new([matching::TableField::bits(9)]).unwrap());
    for payload in [Some(PayloadTable::zeros(layout.clone(), 4).unwrap()), None] {
        let done = Cluster::new(2, 1).run(|session| {
            let own = payload.as_ref().filter(|_| session.me().0 == 1).map(|table| table as _);
            let options = with_layouts(&MatchOptions::default(), [PayloadLayout::default(), layout.clone()]);
            CircuitJoin.run(session, &column.flat(), own, &options).map(drop)
        });
        assert!(done[1].as_ref().unwrap_err().to_string().contains("a row per identifier"));
    }
}

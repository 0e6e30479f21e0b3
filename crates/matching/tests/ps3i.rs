//! PS3I: what its dummies are, and terms that differ; `tests/suite.rs` has what all protocols do.

mod common;

use base::Seed;
use common::{Column, ids};
use matching::dummies::Dummies;
use matching::{InnerJoin, MatchOptions, Matcher, PayloadLayout, PayloadTable, ShareBackend, TableField};
use net::cluster::Cluster;
use ot::OtKind;

/// What both say when they join ten rows with options of their own.
fn refused(options: impl Fn(usize) -> MatchOptions + Sync) -> Vec<String> {
    let (column, layout) = (Column::new(&ids(0..10)), PayloadLayout::new([TableField::number(8)]).unwrap());
    let done = Cluster::new(2, 1).run(|session| {
        let payload = PayloadTable::zeros(layout.clone(), 10)?;
        let options = MatchOptions {
            threads: 1,
            layouts: [layout.clone(), layout.clone()],
            ..options(session.me().index())
        };
        InnerJoin.run(session, &column.flat(), Some(&payload), &options).map(drop)
    });
    done.into_iter().map(|done| done.unwrap_err().to_string()).collect()
}

#[test]
fn different_terms_end_at_once() {
    let ots = [OtKind::SoftSpoken { k: 2 }, OtKind::Ferret];
    let backends = [ShareBackend::PermuteShare, ShareBackend::Paillier];
    let errors = [
        refused(|me| MatchOptions { ot: Some(ots[me]), ..MatchOptions::default() }),
        refused(|me| MatchOptions { backend: backends[me], ..MatchOptions::default() }),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.contains("it joins payloads of the layouts that we do"), "{error}");
    }
}

#[test]
fn a_blank_row_is_as_wide_as_others() {
    let wide = |_| MatchOptions { blank: Some(vec![0; 99]), ..MatchOptions::default() };
    assert!(refused(wide)[0].contains("a blank row is as wide as a row of the payload"));
}

#[test]
fn dummies_carry_what_they_are_told_to() {
    let (columns, layout) = (
        [Column::new(&ids(0..50)), Column::new(&ids(30..70))],
        PayloadLayout::new([TableField::number(8)]).unwrap(),
    );
    let done = Cluster::new(2, 9).run(|session| {
        let me = session.me().index();
        let own = columns[me].flat();
        let mut payload = PayloadTable::zeros(layout.clone(), [50, 40][me])?;
        (0..payload.rows()).for_each(|row| payload.set(row, 0, 1));
        let options = MatchOptions {
            threads: 1,
            layouts: [layout.clone(), layout.clone()],
            dummies: Some(Dummies::usual(&Seed::from_bytes([me as u8 + 1; 32]))),
            blank: Some(vec![77, 0, 0, 0, 0, 0, 0, 0]),
            ..MatchOptions::default()
        };
        InnerJoin.run(session, &own, Some(&payload), &options)?.shares()
    });
    let [a, b] = [0, 1].map(|party: usize| done[party].as_ref().unwrap());
    for part in 0..2 {
        let value = |row: u64| {
            let shares = [a, b].map(|joined| match &joined.parts[part] {
                matching::JoinedPart::Shared(table) => table.get(row, 0),
                _ => panic!("both payloads are shared"),
            });
            TableField::number(8).join(shares[0], shares[1])
        };
        let values: Vec<u128> = (0..a.rows).map(value).collect();
        let of = |what: u128| values.iter().filter(|value| **value == what).count();
        assert_eq!((of(1), of(1) + of(77)), (20, values.len()));
        assert!(of(77) > 0);
    }
}

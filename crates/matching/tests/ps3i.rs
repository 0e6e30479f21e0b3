//! PS3I end to end: joined shares against their definition, the price against the ledger.

mod common;

use base::{Error, Seed};
use common::{Column, ids, with_layouts};
use matching::{
    InnerJoin, JoinedPart, MatchOptions, Matcher, PayloadField, PayloadLayout, PayloadTable, ShareBackend,
    ValidEntries, dummies::Dummies, ps3i,
};
use net::Ledger;
use net::cluster::Cluster;
use ot::OtKind;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn layouts() -> [PayloadLayout; 2] {
    let of_a = PayloadLayout::new([PayloadField::number(8), PayloadField::bits(9)]).unwrap();
    let of_b = PayloadLayout::new([
        PayloadField::number(3),
        PayloadField::number(16),
        PayloadField::bits(64),
        PayloadField::number(7),
    ])
    .unwrap();
    [of_a, of_b]
}

/// A payload in which field 0 is the number of the row's person, and the others follow from it.
fn payload(people: &[String], layout: &PayloadLayout) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout.clone(), people.len() as u64).unwrap();
    for (row, person) in (0..).zip(people) {
        let number: u128 = person.strip_prefix("person ").unwrap().parse().unwrap();
        for field in 0..layout.fields().len() {
            table.set(row, field, (number + 1).pow(field as u32 + 1));
        }
    }
    table
}

fn both(
    cluster: &Cluster,
    people: [&[String]; 2],
    options: impl Fn(usize) -> MatchOptions + Sync,
) -> [Result<(Matched, Ledger), Error>; 2] {
    let (columns, layouts) = (people.map(Column::new), layouts());
    let tables = [0, 1].map(|i| payload(people[i], &layouts[i]));
    let done = cluster.run(|session| {
        let me = session.me().index();
        let (own, options) = (columns[me].flat(), options(me));
        let matched = InnerJoin.run(session, &own, Some(&tables[me]), &with_layouts(&options, layouts()))?;
        Ok((matched, session.ledger().clone()))
    });
    done.try_into().expect("two parties")
}

fn tables(matched: &Matched) -> [&PayloadTable; 2] {
    matched.joined.parts.each_ref().map(|part| match part {
        JoinedPart::Shared(table) => table,
        _ => panic!("a part is not shared"),
    })
}

/// The rows that the shares of both add up to: every field of both payloads.
fn joined(a: &Matched, b: &Matched) -> Vec<Vec<u128>> {
    let (of_a, of_b, layouts) = (tables(a), tables(b), layouts());
    let row = |row: u64| {
        let field = |part: usize, f: usize| {
            layouts[part].fields()[f].join(of_a[part].get(row, f), of_b[part].get(row, f))
        };
        let part = |part: usize| (0..layouts[part].fields().len()).map(move |f| field(part, f));
        part(0).chain(part(1)).collect()
    };
    (0..a.joined.rows).map(row).collect()
}

fn expected(people: [&[String]; 2]) -> Vec<Vec<u128>> {
    let (sets, layouts) = (people.map(|p| p.iter().collect::<BTreeSet<_>>()), layouts());
    let common: Vec<String> = sets[0].intersection(&sets[1]).map(|id| (*id).clone()).collect();
    let [a, b] = layouts.each_ref().map(|layout| payload(&common, layout));
    let row = |row: u64| {
        let fields = |table: &PayloadTable| {
            (0..table.layout().fields().len()).map(|f| table.get(row, f)).collect::<Vec<_>>()
        };
        [fields(&a), fields(&b)].concat()
    };
    (0..common.len() as u64).map(row).collect()
}

fn one_thread(backend: ShareBackend, ot: OtKind) -> MatchOptions {
    MatchOptions { threads: 1, backend, ot, ..MatchOptions::default() }
}

fn check(people: [&[String]; 2], seed: u64, backend: ShareBackend, ot: OtKind) {
    let cluster = Cluster::new(2, seed);
    let [(a, ledger_a), (b, ledger_b)] =
        both(&cluster, people, |_| one_thread(backend, ot)).map(|done| done.unwrap());
    let (mut is, mut should) = (joined(&a, &b), expected(people));
    is.sort_unstable();
    should.sort_unstable();
    assert!(is == should, "{backend:?} {ot}: wrong rows");
    assert!(matches!((&a.joined.valid, a.joined.slots), (ValidEntries::All, 1)));
    let sizes = Sizes { rows: people.map(|p| p.len() as u64), matched: should.len() as u64 };
    for (matched, me) in [(&a, 0), (&b, 1)] {
        let d = matched.disclosed;
        assert_eq!([d.own, d.peer, d.matched], [sizes.rows[me], sizes.rows[1 - me], sizes.matched]);
    }
    let price = ps3i::price(sizes, &layouts(), backend, ot);
    assert_eq!(price.sent, [ledger_a.sent("ps3i"), ledger_b.sent("ps3i")]);
    assert_eq!(price.ots, ledger_a.ots("ps3i"));
    assert_eq!(price.rounds, ledger_a.turns("ps3i").max(ledger_b.turns("ps3i")), "{sizes:?} {ot}");
}

const SOFT: OtKind = OtKind::SoftSpoken { k: 2 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn what_both_have_comes_out_as_shares(start in 0u32..40, x in 0u32..60, y in 0u32..60, seed: u64) {
        check([&ids(0..x), &ids(start..start + y)], seed, ShareBackend::PermuteShare, SOFT);
    }
}

#[test]
fn sizes_at_the_edges() {
    for (x, y) in [(0..0, 0..0), (0..1, 0..0), (0..0, 0..3), (0..1, 0..1), (0..1, 1..2), (0..9, 0..9)] {
        check([&ids(x), &ids(y)], 3, ShareBackend::PermuteShare, SOFT);
    }
}

#[test]
fn more_rows_than_a_chunk_on_one_side_or_both() {
    check([&ids(0..4097), &ids(4000..9000)], 5, ShareBackend::PermuteShare, SOFT);
    check([&ids(4000..4010), &ids(0..8193)], 6, ShareBackend::PermuteShare, OtKind::Ferret);
    check([&ids(0..8193), &ids(10..20)], 7, ShareBackend::PermuteShare, OtKind::SoftSpoken { k: 1 });
}

#[test]
fn paillier_gives_the_same() {
    check([&ids(0..9), &ids(4..12)], 8, ShareBackend::Paillier, SOFT);
}

#[test]
fn a_tiny_window_is_enough() {
    let (x, y) = (ids(0..3000), ids(2500..6000));
    let cluster = Cluster::new(2, 4).tiny_window();
    let [a, b] =
        both(&cluster, [&x, &y], |_| one_thread(ShareBackend::PermuteShare, SOFT)).map(|d| d.unwrap().0);
    let mut is = joined(&a, &b);
    is.sort_unstable();
    let mut should = expected([&x, &y]);
    should.sort_unstable();
    assert!(is == should);
}

#[test]
fn dummies_are_blank_rows_among_the_joined_ones() {
    let (x, y) = (ids(0..50), ids(30..70));
    let blank = |layout: &PayloadLayout| {
        let mut row = PayloadTable::zeros(layout.clone(), 1).unwrap();
        row.set(0, 0, 77);
        row.row(0).to_vec()
    };
    let options = |me: usize| MatchOptions {
        dummies: Some(Dummies::usual(&Seed::from_bytes([me as u8 + 1; 32]))),
        blank: Some(blank(&layouts()[me])),
        ..one_thread(ShareBackend::PermuteShare, SOFT)
    };
    let [(a, _), (b, _)] = both(&Cluster::new(2, 9), [&x, &y], options).map(|done| done.unwrap());
    let (of_dummies, mut real): (Vec<_>, Vec<_>) =
        joined(&a, &b).into_iter().partition(|row| row == &[77, 0, 77, 0, 0, 0]);
    real.sort_unstable();
    assert!(real == expected([&x, &y]) && !of_dummies.is_empty());
    assert_eq!(a.disclosed.matched, 20 + of_dummies.len() as u64);
    assert!(a.disclosed.own > 50 && a.disclosed.peer > 40);
}

#[test]
fn own_repeats_end_before_anything_is_sent() {
    let mut x = ids(0..10);
    x[7] = x[2].clone();
    let [a, b] =
        both(&Cluster::new(2, 1), [&x, &ids(0..5)], |_| one_thread(ShareBackend::PermuteShare, SOFT));
    let error = a.unwrap_err().to_string();
    assert!(error.starts_with("p0 at ps3i: rows 3 and 8 carry the same identifier"), "{error}");
    assert!(b.unwrap_err().to_string().starts_with("p1 at ps3i/count with p0: "));
}

#[test]
fn different_terms_end_at_once() {
    let ots = [SOFT, OtKind::Ferret];
    let errors = both(&Cluster::new(2, 1), [&ids(0..5), &ids(0..5)], |me| {
        one_thread(ShareBackend::PermuteShare, ots[me])
    });
    for error in errors {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it joins payloads of the layouts that we do"), "{error}");
    }
}

#[test]
fn limits_and_misuse_are_told() {
    let people = [&ids(0..10)[..], &ids(0..11)[..]];
    let few =
        |me| MatchOptions { peer_rows_max: 10, ..one_thread(ShareBackend::PermuteShare, [SOFT, SOFT][me]) };
    let [a, _] = both(&Cluster::new(2, 1), people, few);
    let error = a.unwrap_err().to_string();
    assert_eq!(error, "p0 at ps3i/count with p1: rows of the peer: 11 is over the limit of 10");
    let tight = |_| MatchOptions { memory: Some(100), ..one_thread(ShareBackend::PermuteShare, SOFT) };
    let [a, _] = both(&Cluster::new(2, 1), people, tight);
    assert!(a.unwrap_err().to_string().contains("memory"));
    let wide = |_| MatchOptions { blank: Some(vec![0; 99]), ..one_thread(ShareBackend::PermuteShare, SOFT) };
    let [a, _] = both(&Cluster::new(2, 1), people, wide);
    assert!(a.unwrap_err().to_string().contains("a blank row is as wide as a row of the payload"));
}

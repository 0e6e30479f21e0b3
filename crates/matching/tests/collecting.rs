//! Collecting PS3I: all matches, as shares, for what they are priced at.

mod common;
#[path = "common/lists.rs"]
mod lists;

use base::{Error, PartyId, Rng, Seed};
use lists::{Data, Outcome, both, data, expected, layouts, options, random, reference};
use matching::collecting::{CONTAMINATED, COUNTED, LOST, SlotSizes, TEST, memory};
use matching::dummies::Dummies;
use matching::{
    CollectingJoin, JoinedPart, MatchOptions, Matcher, PayloadLayout, PayloadTable, ShareBackend, TableField,
    ValidEntries,
};
use net::cluster::Cluster;
use ot::OtKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn check_price(outcome: &Outcome, options: &MatchOptions) {
    let options = MatchOptions { layouts: layouts(), ..options.clone() };
    let sizes = &outcome.disclosed[0].sizes;
    let price = CollectingJoin.price(sizes, &options);
    let [a, b] = &outcome.ledgers;
    assert_eq!([a.sent(""), b.sent("")], [price.sent[0], price.sent[1]], "{sizes:?}");
    assert_eq!(a.turns("").max(b.turns("")), price.rounds, "{sizes:?}");
    assert_eq!(a.ots(""), price.ots);
}

#[test]
fn every_match_is_collected() {
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    for seed in 0..8 {
        let rows = [12, 15].map(|most| 1 + rng.below(most) as usize);
        let data = random(&mut rng, rows, [2, 3], 12);
        // Caps that nothing reaches.
        let options = MatchOptions { slots: 16, degree: 16, ..options() };
        let outcome = both(&Cluster::new(2, seed), &data, [&options; 2]);
        assert_eq!(outcome.collected(), expected(&data));
        let [pairs, capped, _] = COUNTED.map(|what| outcome.count(0, what));
        assert_eq!((pairs, capped), (reference(&data).len() as u64, 0));
        assert_eq!([0, 1].map(|party| outcome.count(party, LOST)), [0, 0]);
        check_price(&outcome, &options);
    }
}

#[test]
fn degrees_are_bounded_and_what_is_dropped_is_counted() {
    let mut rng = Seed::from_bytes([2; 32]).into_rng();
    let mut bound = 0;
    for seed in 0..8 {
        // Few identifiers: they repeat a lot.
        let data = random(&mut rng, [12, 14], [2, 2], 8);
        let options = MatchOptions { slots: 2, degree: 3, ..options() };
        let outcome = both(&Cluster::new(2, seed), &data, [&options; 2]);
        let edges = reference(&data);
        let (mut of_a, mut of_b) = (BTreeMap::new(), BTreeMap::new());
        for (anchor, rows) in outcome.collected() {
            assert!(rows.len() <= 2 && rows.iter().collect::<BTreeSet<_>>().len() == rows.len());
            for row in rows {
                assert!(edges.contains(&(anchor, row)), "{anchor} and {row} do not match");
                *of_a.entry(anchor).or_insert(0) += 1;
                *of_b.entry(row).or_insert(0u32) += 1;
            }
        }
        assert!(of_b.values().all(|&n| n <= 3));
        let [pairs, capped, anchors] = COUNTED.map(|what| outcome.count(0, what));
        let lost = [0, 1].map(|party| outcome.count(party, LOST));
        let kept: u64 = of_a.values().sum();
        assert_eq!((pairs - capped, anchors), (kept, of_a.len() as u64));
        assert_eq!(lost, [data.beyond(0, 3), data.beyond(1, 2)]);
        bound += capped + lost[0] + lost[1];
        check_price(&outcome, &options);
    }
    assert!(bound > 50, "the caps hardly did anything");
}

#[test]
fn many_to_one_keeps_every_row_of_party_1_at_one_anchor() {
    // Party 0's identifiers are unique; rows of party 1 repeat them.
    let data = data(&[&["x"], &["y"], &["z"]], &[&["y"], &["x"], &["y"], &["w"], &["y"]]);
    let options = MatchOptions { slots: 3, degree: 1, ..options() };
    let outcome = both(&Cluster::new(2, 3), &data, [&options; 2]);
    let expected = BTreeMap::from([(1, vec![2]), (2, vec![1, 3, 5]), (3, vec![])]);
    assert_eq!(outcome.collected(), expected);
    assert_eq!([0, 1].map(|party| outcome.count(party, LOST)), [0, 0]);
}

#[test]
fn contaminated_rows_are_dropped_and_counted() {
    // Rows 1 and 2 of party 0 are T. Row 2 of party 1 matches both lists, rows 1 and 4 one.
    let data = data(
        &[&["a", "b"], &["c", ""], &["d", ""], &["e", ""]],
        &[&["a", ""], &["c", "d"], &["f", ""], &["e", "d"]],
    );
    let own = MatchOptions { slots: 4, degree: 2, lists: Some(2), ..options() };
    let other = MatchOptions { lists: None, ..own.clone() };
    let outcome = both(&Cluster::new(2, 4), &data, [&own, &other]);
    let expected = BTreeMap::from([(1, vec![1]), (2, vec![]), (3, vec![4]), (4, vec![4])]);
    assert_eq!(outcome.collected(), expected);
    assert_eq!(CONTAMINATED.map(|what| outcome.count(0, what)), [2, 2, 1]);
    assert_eq!(outcome.disclosed[1].count(TEST), Some(2));
    // The first two joined rows are T.
    assert!(outcome.anchors[..2].iter().all(|&row| row <= 2), "{:?}", outcome.anchors);
    check_price(&outcome, &own);
}

#[test]
fn dummies_are_blank() {
    let data = data(&[&["x"], &["y"]], &[&["y"], &["x"], &["y"]]);
    let with = |seed: u8| {
        let epsilon = release::rational::ratio(2, 1);
        let delta = release::rational::ratio(1, 1000);
        let dummies = Dummies::new(&epsilon, &delta, &Seed::from_bytes([seed; 32])).unwrap();
        MatchOptions { slots: 2, degree: 1, dummies: Some(dummies), ..options() }
    };
    let mut options = [with(1), with(2)];
    // Blank rows of party 1 say that they are number 100, fields of its layout: 8 and 2 bytes.
    options[1].blank = Some([&100u64.to_le_bytes()[..], &[0; 2]].concat());
    let outcome = both(&Cluster::new(2, 5), &data, [&options[0], &options[1]]);
    let rows = [0, 1].map(|party: usize| outcome.disclosed[0].sizes.rows[party]);
    assert!(rows[0] > 2 && rows[1] > 3);
    let mut collected = outcome.collected();
    // Dummies of party 0 are "row 0"; what they match are dummies too.
    assert_eq!(
        collected.remove(&0).map(|rows| !rows.is_empty() && rows.iter().all(|&row| row == 100)),
        Some(true)
    );
    assert_eq!(collected, BTreeMap::from([(1, vec![2]), (2, vec![1, 3])]));
    check_price(&outcome, &options[0]);
}

#[test]
fn other_ots_many_chunks_a_tiny_window_and_no_rows() {
    let mut rng = Seed::from_bytes([7; 32]).into_rng();
    let large = random(&mut rng, [700, 500], [2, 2], 3000);
    let options = MatchOptions { slots: 4, degree: 2, ..options() };
    let outcome = both(&Cluster::new(2, 7).tiny_window(), &large, [&options; 2]);
    assert!(outcome.collected().values().flatten().count() > 50);

    let ferret = MatchOptions { ot: Some(OtKind::Ferret), ..options.clone() };
    let outcome = both(&Cluster::new(2, 8), &large, [&ferret; 2]);
    check_price(&outcome, &ferret);

    for rows in [[0, 1], [1, 0], [0, 0]] {
        let empty = Data::new(rows.map(|n| vec![vec!["x".to_owned()]; n]), 1);
        let outcome = both(&Cluster::new(2, 9), &empty, [&options; 2]);
        assert_eq!(outcome.collected().values().flatten().count(), 0);
        check_price(&outcome, &options);
    }
}

fn refused(data: &Data, options: [&MatchOptions; 2]) -> [String; 2] {
    let done = Cluster::new(2, 1).run(|s| lists::work(s, data, options[s.me().index()]).map(drop));
    let text = |d: Result<(), Error>| d.err().map_or(String::new(), |e| e.to_string());
    let errors: Vec<_> = done.into_iter().map(text).collect();
    errors.try_into().unwrap()
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = data(&[&["x"], &["y"]], &[&["y"]]);
    let options = options();
    let mut other = MatchOptions { slots: 2, ..options.clone() };
    assert!(refused(&data, [&options, &other])[0].contains("its slots and degree are ours"));
    other.slots = 0;
    assert!(refused(&data, [&other, &other])[0].contains("slots of an anchor: 0 is over the limit of 1024"));
    other = MatchOptions { memory: Some(100), ..options.clone() };
    assert!(refused(&data, [&other, &other])[0].contains("are left for it"));
    other = MatchOptions { peer_rows_max: 0, ..options.clone() };
    assert!(refused(&data, [&other, &options])[0].contains("rows of the peer: 1 is over the limit of 0"));
    other = MatchOptions { backend: ShareBackend::Paillier, ..options.clone() };
    assert!(
        refused(&data, [&other, &options])[1]
            .contains("payloads of the layouts that we do, by the same back end")
    );
    other = MatchOptions { blank: Some(vec![0]), ..options.clone() };
    assert!(refused(&data, [&other, &options])[0].contains("a blank row is as wide as a row of the payload"));
    other = MatchOptions { lists: Some(1), ..options.clone() };
    assert!(refused(&data, [&options, &other])[1].contains("the first rows of party 0 may be list T"));
    other.dummies = Some(Dummies::usual(&Seed::from_bytes([1; 32])));
    assert!(refused(&data, [&other, &options])[0].contains("declare the sizes public and turn dummies off"));
}

/// Shares, taken slots and what was said, of rows whose identifiers, payload and slots fit nowhere near
/// `memory`.
fn with_memory(data: &Data, memory: Option<u64>, scratch: &Path) -> Result<Vec<(Vec<u8>, u64)>, Vec<String>> {
    let wide = (0..6).flat_map(|_| [TableField::number(16), TableField::bits(9)]);
    let layout = PayloadLayout::new(wide).unwrap();
    let done = Cluster::new(2, 43).run(|session| {
        let me = session.me().index();
        let options = MatchOptions {
            slots: 2,
            degree: 2,
            lists: (me == 0).then_some(1000),
            memory,
            scratch: Some(scratch.to_path_buf()),
            layouts: [layout.clone(), layout.clone()],
            ..options()
        };
        let mut payload = PayloadTable::zeros(layout.clone(), data.rows(me) as u64)?;
        (0..payload.rows()).for_each(|row| payload.set(row, 2, u128::from(row) << 60));
        let outcome = CollectingJoin.run(session, &lists::Side(data, me), Some(&payload), &options)?;
        let mut said = format!("{:?}", outcome.disclosed).into_bytes();
        let joined = outcome.shares()?;
        for part in &joined.parts {
            let JoinedPart::Shared(table) = part else { panic!("both payloads are shared") };
            said.extend_from_slice(table.whole()?.bytes());
        }
        if let ValidEntries::Mine(valid) = &joined.valid {
            assert!(valid.iter().map(|word| word.count_ones()).sum::<u32>() > 500);
            said.extend(valid.iter().flat_map(|word| word.to_le_bytes()));
        }
        Ok((said, session.traffic().sent("")))
    });
    let errors: Vec<_> = done.iter().filter_map(|d| d.as_ref().err()).map(ToString::to_string).collect();
    done.into_iter().collect::<Result<Vec<_>, _>>().map_err(|_| errors)
}

#[test]
fn what_does_not_fit_lies_on_disk_and_changes_nothing() {
    let mut rng = Seed::from_bytes([11; 32]).into_rng();
    // Distinct between the lists of party 0: a long identifier ends in the row's list.
    let mut side = |rows: usize, own: bool| -> Vec<Vec<String>> {
        let id = |rng: &mut Rng, row: usize| match rng.below(4) {
            0 => String::new(),
            _ => {
                format!("{:0>300}-{}", rng.below(3_000), if own { usize::from(row < 1000) } else { row % 2 })
            }
        };
        (0..rows).map(|row| (0..2).map(|_| id(&mut rng, row)).collect()).collect()
    };
    let data = Data::new([side(2_600, true), side(3_000, false)], 2);
    let scratch = tempfile::tempdir().unwrap();
    let whole = with_memory(&data, None, scratch.path()).unwrap();
    assert!(with_memory(&data, Some(2 << 20), scratch.path()).unwrap() == whole);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files have no name");
    let nowhere = scratch.path().join("nowhere");
    let errors = with_memory(&data, Some(2 << 20), &nowhere).unwrap_err();
    assert!(errors.iter().any(|e| e.contains(" at collecting") && e.contains("spilling to ")), "{errors:?}");
    assert!(with_memory(&data, None, &nowhere).unwrap() == whole);
}

/// What cannot be moved to disk is said beforehand, by what it takes.
#[test]
fn what_has_to_be_in_memory_is_named() {
    let options = MatchOptions { slots: 4, ..MatchOptions::default() };
    assert!(CollectingJoin.features().streams);
    let sizes = |rows| SlotSizes { rows: [rows; 2], keys: [1; 2], slots: 4, degree: 1 };
    for party in [0, 1].map(PartyId) {
        let least = CollectingJoin.memory(&[10_000_000; 2], party, 1, &options);
        assert_eq!(least, memory(party, sizes(10_000_000), &options));
    }
    let per_row = [0, 1].map(|party| memory(PartyId(party), sizes(10_000_000), &options) / 10_000_000);
    assert_eq!(per_row, [186, 53], "bytes per row");
    let data = random(&mut Seed::from_bytes([12; 32]).into_rng(), [60_000, 10], [1, 1], 3000);
    let bounded = MatchOptions { memory: Some(4 << 20), ..options };
    let [publisher, advertiser] = refused(&data, [&bounded, &bounded]);
    assert!(publisher.contains("this match needs 11 MB of memory and 4 MB are left for it"), "{publisher}");
    assert!(!advertiser.contains("left for it"), "{advertiser}");
}

#[test]
fn the_reach_of_a_row() {
    let sizes = |keys| SlotSizes { rows: [10, 10], keys, slots: 3, degree: 1 };
    assert_eq!(sizes([1, 1]).reach(), [7, 1]);
    assert_eq!(sizes([2, 2]).reach(), [13, 5]);
}

//! Private-ID end to end: the spine against its definition, and the price against the ledger.

mod common;

use base::Seed;
use common::{Column, both, expected_union, ids};
use matching::{IdentifierSpool, MatchOptions, Matcher, PrivateId, dummies::Dummies, pid};
use net::cluster::Cluster;
use net::{RowProgress, Session};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn check(x: &[String], y: &[String], seed: u64) -> Sizes {
    let done = both(&Cluster::new(2, seed), x, y, 1);
    let [(c, c_ledger), (p, p_ledger)] = done.map(|d| d.unwrap());
    let union = expected_union(x, y);
    assert_eq!((c.rows, p.rows), (union, union));
    let mut owner: Vec<Option<&String>> = vec![None; union as usize];
    for (i, id) in x.iter().enumerate() {
        assert_eq!(owner[c.mine[i] as usize].replace(id), None, "two rows at one position");
    }
    let rows: HashMap<&String, usize> = x.iter().zip(0..).collect();
    let mut seen = vec![false; union as usize];
    for (j, id) in y.iter().enumerate() {
        let position = p.mine[j] as usize;
        assert!(!std::mem::replace(&mut seen[position], true), "two rows at one position");
        assert!(owner[position].is_none_or(|theirs| theirs == id), "different identifiers share a position");
        if let Some(&i) = rows.get(id) {
            assert_eq!(c.mine[i] as usize, position, "equal identifiers do not share a position");
        }
        owner[position] = Some(id);
    }
    assert!(owner.iter().all(Option::is_some), "a position without a row");
    let sizes = Sizes { rows: [x.len() as u64, y.len() as u64], union };
    assert_eq!((c.disclosed.own, c.disclosed.peer, c.disclosed.union), (sizes.rows[0], sizes.rows[1], union));
    assert_eq!((p.disclosed.own, p.disclosed.peer), (sizes.rows[1], sizes.rows[0]));
    let price = pid::price(sizes);
    assert_eq!(price.sent, [c_ledger.sent("pid"), p_ledger.sent("pid")]);
    assert_eq!(price.rounds, c_ledger.turns("pid").max(p_ledger.turns("pid")));
    sizes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_spine_is_the_union(start in 0u32..40, x in 0u32..60, y in 0u32..60, seed: u64) {
        check(&ids(0..x), &ids(start..start + y), seed);
    }
}

#[test]
fn sizes_at_the_edges() {
    for (x, y) in [(0..0, 0..0), (0..1, 0..0), (0..0, 0..3), (0..1, 0..1), (0..1, 1..2), (0..9, 0..9)] {
        check(&ids(x), &ids(y), 3);
    }
}

#[test]
fn more_rows_than_a_chunk_on_one_side_or_both() {
    let sizes = check(&ids(0..4097), &ids(4000..9000), 5);
    assert_eq!((sizes.shared(), sizes.union), (97, 9000));
    check(&ids(0..8193), &ids(8000..8010), 6);
    check(&ids(10..20), &ids(0..5000), 7);
}

#[test]
fn differences_longer_than_a_pulse() {
    check(&ids(0..17_000), &ids(16_990..17_000), 8);
    check(&[], &ids(0..17_000), 9);
}

#[test]
fn threads_change_nothing() {
    let (x, y) = (ids(0..300), ids(200..900));
    let spines =
        [1, 3].map(|threads| both(&Cluster::new(2, 9), &x, &y, threads).map(|done| done.unwrap().0.mine));
    assert_eq!(spines[0], spines[1]);
}

#[test]
fn keys_are_fresh_per_run() {
    let cluster = Cluster::new(2, 11);
    let column = Column::new(&ids(0..200));
    let spines = cluster.run(|session| {
        let options = MatchOptions { threads: 1, ..MatchOptions::default() };
        let first = PrivateId.run(session, &column.flat(), None, &options)?;
        let second = PrivateId.run(session, &column.flat(), None, &options)?;
        Ok((first.mine, second.mine))
    });
    for party in spines {
        let (first, second) = party.unwrap();
        assert_ne!(first, second, "one spine in two runs");
    }
}

#[test]
fn own_repeats_end_before_anything_is_sent() {
    let mut x = ids(0..10);
    x[7] = x[2].clone();
    let [c, _] = both(&Cluster::new(2, 1), &x, &ids(0..5), 1);
    let error = c.unwrap_err().to_string();
    assert!(error.starts_with("p0 at pid: rows 3 and 8 carry the same identifier"), "{error}");
}

#[test]
fn more_rows_than_expected_are_refused() {
    let (x, y) = (Column::new(&ids(0..10)), Column::new(&ids(0..11)));
    let done = Cluster::new(2, 1).run(|session| {
        let own = if session.me().0 == 0 { &x } else { &y };
        let options = MatchOptions { threads: 1, peer_rows_max: 10, ..MatchOptions::default() };
        PrivateId.run(session, &own.flat(), None, &options)
    });
    let error = done[0].as_ref().unwrap_err().to_string();
    assert_eq!(error, "p0 at pid/count with p1: rows of the peer: 11 is over the limit of 10");
    assert!(done[1].is_err());
}

#[test]
fn identifiers_on_disk_match_like_those_in_memory_and_progress_is_told() {
    let (x, y) = (ids(0..5000), ids(4990..5005));
    let column = Column::new(&y);
    let mut writer = IdentifierSpool::writer(&std::env::temp_dir()).unwrap();
    x.iter().for_each(|id| writer.push(id.as_bytes()).unwrap());
    let spool = writer.finish().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let watch = told.clone();
    let watcher = RowProgress::new(move |step: &str, done, total| {
        watch.lock().unwrap().push((step.to_owned(), done, total));
    });
    let [c, p]: [Session; 2] = Cluster::new(2, 21).sessions().try_into().ok().unwrap();
    let mut c = c.with_progress(watcher);
    let (mut p, options) = (p, MatchOptions { threads: 2, ..MatchOptions::default() });
    let (from_disk, other) = std::thread::scope(|scope| {
        let c = scope.spawn(|| PrivateId.run(&mut c, &spool, None, &options).unwrap());
        let p = PrivateId.run(&mut p, &column.flat(), None, &options).unwrap();
        (c.join().unwrap(), p)
    });
    let [in_memory, _] = both(&Cluster::new(2, 21), &x, &y, 1).map(|done| done.unwrap().0);
    assert!(from_disk == in_memory && from_disk.rows == 5005 && other.mine[9] == from_disk.mine[4999]);
    let told = told.lock().unwrap();
    let stream: Vec<_> = told.iter().filter(|(step, ..)| step == "pid").collect();
    assert!(stream.is_sorted_by_key(|(_, done, _)| done));
    assert_eq!(stream.last().map(|(_, done, total)| (*done, *total)), Some((2 * 5015, 2 * 5015)));
    for (step, total) in [("pid/u", 2), ("pid/e", 5000), ("pid/difference", 2)] {
        assert!(told.contains(&(step.to_owned(), total, total)), "{step}: {told:?}");
    }
}

/// Both run with dummies of these seeds; their spines, and the price against the ledger.
fn with_dummies(x: &[String], y: &[String], seeds: [u8; 2]) -> [Spine; 2] {
    let columns = [Column::new(x), Column::new(y)];
    let dummies = seeds.map(|seed| Dummies::usual(&Seed::from_bytes([seed; 32])));
    let done = Cluster::new(2, 31).run(|session| {
        let me = session.me().index();
        let options =
            MatchOptions { threads: 1, dummies: Some(dummies[me].clone()), ..MatchOptions::default() };
        let spine = PrivateId.run(session, &columns[me].flat(), None, &options)?;
        Ok((spine, session.ledger().sent("pid")))
    });
    let [(c, c_sent), (p, p_sent)]: [_; 2] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    assert_eq!((c.rows, c.disclosed.own, c.disclosed.peer), (p.rows, p.disclosed.peer, p.disclosed.own));
    assert_eq!((c.mine.len(), p.mine.len()), (x.len(), y.len()), "dummy rows are cut off");
    let price = pid::price(Sizes { rows: [c.disclosed.own, p.disclosed.own], union: c.rows });
    assert_eq!(price.sent, [c_sent, p_sent]);
    [c, p]
}

#[test]
fn dummies_hide_sizes_and_change_no_position() {
    let (x, y) = (ids(0..100), ids(60..200));
    let [c, p] = with_dummies(&x, &y, [1, 2]);
    for (row, at) in c.mine.iter().enumerate() {
        let theirs = row.checked_sub(60).map(|row| p.mine[row]);
        assert!(theirs.is_none_or(|theirs| theirs == *at));
        assert!(theirs.is_some() || !p.mine.contains(at), "an unmatched row met something");
    }
    let disclosed = c.disclosed;
    let shared = disclosed.own + disclosed.peer - disclosed.union;
    let list = 2 * Dummies::usual(&Seed::from_bytes([0; 32])).centre();
    // What C adds to its rows besides the other list is z + w, and P cannot tell from z alone what matched.
    let [c_added, p_added] = [disclosed.own - 100 - list, disclosed.peer - 140 - list];
    assert!((1..2 * list).contains(&c_added) && (1..2 * list).contains(&p_added));
    assert!((40..40 + 2 * list).contains(&shared));
    let [again, _] = with_dummies(&x, &y, [1, 2]);
    assert_eq!(again.disclosed, c.disclosed, "one seed, one noise");
    let [other, _] = with_dummies(&x, &y, [3, 2]);
    assert_ne!(other.disclosed.own, c.disclosed.own);
}

#[test]
fn empty_sides_with_dummies() {
    let [c, p] = with_dummies(&[], &ids(0..3), [4, 5]);
    assert_eq!((c.mine.len(), p.mine.len()), (0, 3));
}

#[test]
fn columns_that_do_not_fit_lie_on_disk_and_change_nothing() {
    let columns = [Column::new(&ids(0..18_000)), Column::new(&ids(15_000..33_000))];
    let scratch = tempfile::tempdir().unwrap();
    let run = |memory, scratch: &Path| {
        let done = Cluster::new(2, 41).run(|session| {
            let scratch = Some(scratch.to_path_buf());
            let options = MatchOptions { threads: 1, memory, scratch, ..MatchOptions::default() };
            Ok(PrivateId.run(session, &columns[session.me().index()].flat(), None, &options)?.mine)
        });
        let errors: Vec<_> = done.iter().filter_map(|d| d.as_ref().err()).map(ToString::to_string).collect();
        done.into_iter().collect::<Result<Vec<_>, _>>().map_err(|_| errors)
    };
    let whole = run(None, scratch.path()).unwrap();
    assert!(run(Some(1), scratch.path()).unwrap() == whole);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files have no name");
    let nowhere = scratch.path().join("nowhere");
    let errors = run(Some(1), &nowhere).unwrap_err();
    assert!(errors.iter().any(|e| e.contains(" at pid") && e.contains("spilling to ")), "{errors:?}");
    assert!(run(None, &nowhere).unwrap() == whole);
}

//! Private-ID with columns on disk, and its dummies; `tests/suite.rs` has what all protocols do.

mod common;

use base::Seed;
use common::{Column, ids};
use matching::dummies::Dummies;
use matching::{MatchOptions, MatchOutcome, MatchSpine, Matcher, PrivateId};
use net::cluster::Cluster;
use net::{RowProgress, Session};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[test]
fn progress_is_told() {
    let (x, y) = (ids(0..5000), ids(4990..5005));
    let columns = [Column::new(&x), Column::new(&y)];
    let told = Arc::new(Mutex::new(Vec::new()));
    let watch = told.clone();
    let watcher = RowProgress::new(move |step: &str, done, total| {
        watch.lock().unwrap().push((step.to_owned(), done, total));
    });
    let [c, p]: [Session; 2] = Cluster::new(2, 21).sessions().try_into().ok().unwrap();
    let mut c = c.with_progress(watcher);
    let (mut p, options) = (p, MatchOptions { threads: 2, ..MatchOptions::default() });
    let (first, second) = std::thread::scope(|scope| {
        let c = scope
            .spawn(|| PrivateId.run(&mut c, &columns[0].flat(), None, &options).unwrap().spine().unwrap());
        let p = PrivateId.run(&mut p, &columns[1].flat(), None, &options).unwrap().spine().unwrap();
        (c.join().unwrap(), p)
    });
    let [last, met] = [&first, &second].map(|spine| spine.mine.positions().unwrap());
    assert!(first.rows == 5005 && met[9] == last[4999]);
    let told = told.lock().unwrap();
    let stream: Vec<_> = told.iter().filter(|(step, ..)| step == "pid").collect();
    assert!(stream.is_sorted_by_key(|(_, done, _)| done));
    assert_eq!(stream.last().map(|(_, done, total)| (*done, *total)), Some((2 * 5015, 2 * 5015)));
    for (step, total) in [("pid/u", 2), ("pid/e", 5000), ("pid/difference", 2)] {
        assert!(told.contains(&(step.to_owned(), total, total)), "{step}: {told:?}");
    }
}

/// Both run with dummies of these seeds: rows of both with dummies, the union, and both spines.
fn with_dummies(x: &[String], y: &[String], seeds: [u8; 2]) -> ([u64; 2], u64, [MatchSpine; 2]) {
    let columns = [Column::new(x), Column::new(y)];
    let dummies = seeds.map(|seed| Dummies::usual(&Seed::from_bytes([seed; 32])));
    let done = Cluster::new(2, 31).run(|session| {
        let me = session.me().index();
        let dummies = Some(dummies[me].clone());
        let options = MatchOptions { threads: 1, dummies, ..MatchOptions::default() };
        PrivateId.run(session, &columns[me].flat(), None, &options)
    });
    let [c, p]: [MatchOutcome; 2] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    let sizes = c.disclosed.sizes.pair();
    (sizes.rows, sizes.union, [c, p].map(|party| party.spine().unwrap()))
}

#[test]
fn dummies_hide_sizes_and_change_no_position() {
    let (x, y) = (ids(0..100), ids(60..200));
    let (rows, union, spines) = with_dummies(&x, &y, [1, 2]);
    let [c, p] = spines.map(|spine| spine.mine.positions().unwrap());
    for (row, at) in c.iter().enumerate() {
        let theirs = row.checked_sub(60).map(|row| p[row]);
        assert!(theirs.is_none_or(|theirs| theirs == *at));
        assert!(theirs.is_some() || !p.contains(at), "an unmatched row met something");
    }
    let list = 2 * Dummies::usual(&Seed::from_bytes([0; 32])).centre();
    // What C adds to its rows besides the other list is z + w, and P cannot tell from z alone what matched.
    let [c_added, p_added] = [rows[0] - 100 - list, rows[1] - 140 - list];
    assert!((1..2 * list).contains(&c_added) && (1..2 * list).contains(&p_added));
    assert!((40..40 + 2 * list).contains(&(rows[0] + rows[1] - union)));
    let again = with_dummies(&x, &y, [1, 2]);
    assert_eq!((again.0, again.1), (rows, union), "one seed, one noise");
    assert_ne!(with_dummies(&x, &y, [3, 2]).0[0], rows[0]);
}

#[test]
fn empty_sides_with_dummies() {
    let (.., [c, p]) = with_dummies(&[], &ids(0..3), [4, 5]);
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
            let own = columns[session.me().index()].flat();
            PrivateId.run(session, &own, None, &options)?.spine()?.mine.positions()
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

//! Private-ID over partitions: the spine of one partition, for its bytes; cuts at every message; and what a
//! peer may not say a second time.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::{Rng, Seed};
use common::{Column, expected_union, ids};
use matching::{IdentifierSource, MatchOptions, MatchSpine, Matcher, PairSizes, PrivateId, pid};
use net::cluster::Cluster;
use std::path::Path;
use tap::{Fault, Said, private_id, run_both, tapped};

/// Positions of both parties' rows, and bytes that each sent.
fn matched(seed: u64, lists: [&[String]; 2], options: &MatchOptions) -> ([Vec<u32>; 2], Vec<u64>) {
    let columns = lists.map(Column::new);
    let done = Cluster::new(2, seed).run(|session| {
        let own = columns[session.me().index()].flat();
        let spine = PrivateId.run(session, &own, None, options)?.spine()?;
        assert_eq!(spine.rows, expected_union(lists[0], lists[1]));
        Ok((spine.mine.positions()?, session.traffic().sent("")))
    });
    let done: Vec<(Vec<u32>, u64)> = done.into_iter().map(Result::unwrap).collect();
    let sent = done.iter().map(|(_, sent)| *sent).collect();
    let positions: Vec<Vec<u32>> = done.into_iter().map(|(positions, _)| positions).collect();
    (positions.try_into().unwrap(), sent)
}

fn dealt(partitions: u32) -> MatchOptions {
    MatchOptions { threads: 1, partitions, ..MatchOptions::default() }
}

/// Lists of random sizes and overlaps, in random order.
fn lists(rng: &mut Rng) -> [Vec<String>; 2] {
    let [only_x, shared, only_y] = [100, 60, 100].map(|most| rng.below(most) as u32);
    let mut lists = [ids(0..only_x + shared), ids(only_x..only_x + shared + only_y)];
    lists.iter_mut().for_each(|list| rng.shuffle(list));
    lists
}

#[test]
fn every_number_of_partitions_gives_the_spine_of_one_for_its_price() {
    let mut rng = Seed::from_bytes([6; 32]).into_rng();
    let edges = [[ids(0..0), ids(0..0)], [ids(0..1), ids(0..0)], [ids(0..40), ids(0..40)]];
    let random = std::iter::repeat_with(|| lists(&mut rng)).take(12).collect::<Vec<_>>();
    for (case, [x, y]) in (0..).zip(edges.into_iter().chain(random)) {
        let sizes = PairSizes::new([x.len() as u64, y.len() as u64], expected_union(&x, &y));
        let (whole, _) = matched(case, [&x, &y], &dealt(1));
        for partitions in [1, 2, 3, 4, 8, 16, 32, 64] {
            let (spine, sent) = matched(case, [&x, &y], &dealt(partitions));
            assert!(spine == whole, "{case}: {partitions} partitions");
            assert_eq!(sent, pid::price(sizes, partitions).sent, "{case}: {partitions} partitions");
        }
    }
}

/// More than a chunk in a partition, on disk, with one side of a few rows and the other of many.
#[test]
fn partitions_of_several_chunks_in_little_memory() {
    let cases = [
        (ids(0..10_000), ids(5_000..15_000)),
        (ids(0..9_000), ids(8_990..9_020)),
        (ids(0..3), ids(0..9_000)),
    ];
    for (x, y) in cases {
        let sizes = PairSizes::new([x.len() as u64, y.len() as u64], expected_union(&x, &y));
        let (whole, one) = matched(3, [&x, &y], &dealt(1));
        for partitions in [2, 16] {
            let options = MatchOptions { memory: Some(1), ..dealt(partitions) };
            let (spine, sent) = matched(3, [&x, &y], &options);
            assert!(spine == whole);
            assert_eq!(sent, pid::price(sizes, partitions).sent);
            // A size for each partition but one: of u by both, of s'_c by C.
            let sizes = 8 * u64::from(partitions - 1);
            let slices = |sent: u64, one: u64| sent - one <= 2 * sizes + 8 * u64::from(partitions);
            assert!(sent.iter().zip(&one).all(|(sent, one)| slices(*sent, *one)), "{sent:?} {one:?}");
        }
    }
}

#[test]
fn half_overlap_costs_208_bytes_per_row_however_it_is_dealt() {
    let n = 12_000u64;
    let (x, y) = (ids(0..12_000), ids(6_000..18_000));
    for partitions in [1, 4] {
        let (_, sent) = matched(5, [&x, &y], &dealt(partitions));
        let beyond = sent.iter().sum::<u64>() - 208 * n;
        // Two hellos, two seals and two digests; counts of slices; pulses; sizes of partitions.
        let words = 2 * 72 + 4 * 32 + 2 * 8 * 4 + 4 + 3 * 8 * (u64::from(partitions) - 1);
        assert_eq!(beyond, words, "{partitions}");
    }
}

/// One session of both in four partitions over the folders in `dir`.
fn session(
    dir: &Path,
    seed: u8,
    columns: [&dyn IdentifierSource; 2],
    faults: [Fault; 2],
) -> ([Result<MatchSpine, String>; 2], Said) {
    private_id(dir, seed, columns, faults, &dealt(4))
}

fn positions(done: [Result<MatchSpine, String>; 2]) -> [Vec<u32>; 2] {
    done.map(|spine| spine.unwrap().mine.positions().unwrap())
}

const WHOLE: [Fault; 2] = [Fault::None, Fault::None];

fn by(culprit: usize, fault: Fault) -> [Fault; 2] {
    if culprit == 0 { [fault, Fault::None] } else { [Fault::None, fault] }
}

fn count(said: &[(String, Vec<u8>)], step: &str) -> usize {
    said.iter().filter(|(at, _)| at == step).count()
}

const STEPS: [&str; 7] = ["pid/count", "pid/u", "pid/v", "pid/seal", "pid/e", "pid/difference", "pid/spine"];

#[test]
fn a_match_that_is_cut_at_any_message_goes_on() {
    let (x, y) = (ids(0..120), ids(70..180));
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let keep = tempfile::tempdir().unwrap();
    let (done, uncut) = session(keep.path(), 1, flat, WHOLE);
    let whole = positions(done);
    for culprit in 0..2 {
        for step in STEPS {
            for at in 0..count(&uncut[culprit], step) {
                let dir = tempfile::tempdir().unwrap();
                let (cut, before) = session(dir.path(), 1, flat, by(culprit, Fault::Cut(step, at)));
                assert!(cut.iter().all(Result::is_err), "{culprit} {step} {at}");
                let (done, after) = session(dir.path(), 2, flat, WHOLE);
                let goes_on = step != "pid/count" || at > 0;
                let place = format!("{culprit} {step} {at}");
                assert_eq!(positions(done) == whole, goes_on, "{place}");
                // What was said and answered is not said again.
                let again = |step| count(&after[0], step) + count(&after[1], step);
                let late = !matches!(step, "pid/count" | "pid/u" | "pid/v");
                assert!(!late || again("pid/u") + again("pid/v") == 0, "{place}");
                let once = |said: &Said, step| count(&said[0], step) + count(&said[1], step);
                let all = once(&before, "pid/u") + again("pid/u");
                assert!(!goes_on || all <= once(&uncut, "pid/u") + 2, "{place}: {all} chunks of u");
                assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{place}");
            }
        }
    }
}

/// Two sessions in the folder, the first one cut; what `victim` says in the second.
fn second_try(first: [Fault; 2], between: impl Fn(&Path), second: [Fault; 2], victim: usize) -> String {
    let columns = [Column::new(&ids(0..120)), Column::new(&ids(70..180))];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let dir = tempfile::tempdir().unwrap();
    let (cut, _) = session(dir.path(), 1, flat, first);
    assert!(cut.iter().all(Result::is_err));
    between(dir.path());
    let (mut done, _) = session(dir.path(), 2, flat, second);
    assert!(!dir.path().join(format!("party {victim}")).exists(), "it has no further try");
    done[victim].as_mut().map(drop).map_err(std::mem::take).unwrap_err()
}

fn flip(bytes: &mut [u8]) {
    let last = bytes.len() - 32;
    bytes[last + 3] ^= 1;
}

const AFTER_CUT: &str = "the peer deviated from the protocol: what it sends after the cut is what it sent";

#[test]
fn nothing_is_said_otherwise_after_a_cut() {
    let nothing = |_: &Path| ();
    // s_p, after P was cut when it had raised it; e_c, likewise; s'_p and s'_c.
    let cut = |culprit, step, at| by(culprit, Fault::Cut(step, at));
    let change = |culprit, step, at| by(culprit, Fault::Change(step, at, flip));
    let late = cut(1, "pid/difference", 0);
    for (first, second, victim, step) in [
        (late, change(0, "pid/e", 1), 1, "e"),
        (cut(1, "pid/difference", 0), change(1, "pid/e", 1), 0, "e"),
        (cut(1, "pid/spine", 0), change(1, "pid/difference", 0), 0, "difference"),
        (cut(1, "pid/spine", 0), change(0, "pid/difference", 2), 1, "difference"),
    ] {
        let error = second_try(first, nothing, second, victim);
        let who = ["registry", "hospitals"][victim];
        assert!(
            error.starts_with(&format!("{who} at pid/{step} with ")) && error.contains(AFTER_CUT),
            "{error}"
        );
    }
    // u of a partition, by a P that says that it has lost the answers, after e_c was seen.
    let forgets = |dir: &Path| std::fs::remove_file(dir.join("party 1").join("v")).unwrap();
    let error = second_try(cut(0, "pid/difference", 0), forgets, change(1, "pid/u", 2), 0);
    assert!(error.starts_with("registry at pid/u with hospitals: the peer deviated"), "{error}");
    assert!(error.ends_with("what it sends again is what it sent before"), "{error}");
    // Answers, to a C that has lost those of before: the seal that it pinned says so.
    let forgets = |dir: &Path| std::fs::remove_file(dir.join("party 0").join("v")).unwrap();
    let error = second_try(cut(0, "pid/difference", 0), forgets, change(1, "pid/v", 1), 0);
    assert!(error.starts_with("registry at pid/seal with") && error.contains(AFTER_CUT), "{error}");
}

/// What party `1 - culprit` says of a fault in four partitions.
fn says(culprit: usize, fault: Fault) -> String {
    let columns = [Column::new(&ids(0..120)), Column::new(&ids(70..180))];
    let (sessions, _) = tapped(1, 2_000, by(culprit, fault));
    let done = run_both(sessions, |session| {
        let own = columns[session.me().index()].flat();
        PrivateId.run(session, &own, None, &dealt(4)).map(drop).map_err(|e| e.to_string())
    });
    let error = done[1 - culprit].clone().unwrap_err();
    let (_, text) = error.split_once(": ").unwrap();
    text.strip_prefix("the peer deviated from the protocol: ").unwrap_or(text).to_owned()
}

#[test]
fn partitions_that_cannot_be() {
    // 120 elements: 30 on average, 30 + 10 * 6 + 64 at most; so 110 are never too many for chance.
    let huge = |bytes: &mut [u8]| bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let many = |bytes: &mut [u8]| bytes[..16].copy_from_slice([110u64.to_le_bytes(); 2].as_flattened());
    let spread = "none of its partitions holds more elements than chance puts there";
    let sum = "its partitions hold as many elements as it told";
    for culprit in [0, 1] {
        assert_eq!(says(culprit, Fault::Change("pid/count", 1, huge)), spread);
        assert_eq!(says(culprit, Fault::Change("pid/count", 1, many)), sum);
        // An element of another partition, whatever the others are.
        let last = |bytes: &mut [u8]| {
            let at = bytes.len() - 32;
            bytes[at] |= 0xc0;
        };
        assert_eq!(
            says(culprit, Fault::Change("pid/u", 1, last)),
            "the elements of a partition are in its range"
        );
    }
    assert_eq!(says(0, Fault::Change("pid/difference", 1, huge)), spread);
}

/// A P that sends e before all streams are done says something else than the seal, and gets nothing.
#[test]
fn e_that_comes_early_is_refused() {
    let early = |bytes: &mut [u8]| {
        bytes.fill(0);
        bytes[0] = 30;
    };
    for culprit in [0, 1] {
        let error = says(culprit, Fault::Change("pid/seal", 0, early));
        assert_eq!(error, "all of u and v is said before any of e, and both have the same of it");
    }
}

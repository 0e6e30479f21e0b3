//! Private-ID that was cut and goes on: with both folders where both stood, and otherwise afresh, or not at
//! all.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::Seed;
use common::{Column, expected_union, ids};
use matching::dummies::Dummies;
use matching::{IdentifierSource, MatchOptions, MatchOutcome, MatchSpine, Matcher, PrivateId, RestartPermit};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tap::{Fault, Said, private_id, run_both, tapped};

fn options(dir: &Path, party: usize) -> MatchOptions {
    MatchOptions { resume: Some(dir.join(format!("party {party}"))), ..one_thread() }
}

fn one_thread() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

fn session(
    dir: &Path,
    seed: u8,
    columns: [&dyn IdentifierSource; 2],
    faults: [Fault; 2],
) -> ([Result<MatchSpine, String>; 2], Said) {
    private_id(dir, seed, columns, faults, &one_thread())
}

/// Elements sent at `pid/u` after the pulses: the stream.
fn streamed(said: &[(String, Vec<u8>)]) -> Vec<&[u8]> {
    said.iter().filter(|(step, bytes)| step == "pid/u" && bytes.len() > 1).map(|(_, b)| &b[..]).collect()
}

fn check(x: &[String], y: &[String], done: [Result<MatchSpine, String>; 2]) {
    let [c, p] = done.map(Result::unwrap);
    assert_eq!((c.rows, p.rows), (expected_union(x, y), expected_union(x, y)));
    let [c, p] = [c, p].map(|spine| spine.mine.positions().unwrap());
    for (name, at) in x.iter().zip(&c) {
        let theirs = y.iter().position(|other| other == name).map(|row| p[row]);
        assert!(theirs.is_none_or(|row| row == *at));
    }
}

#[test]
fn a_match_that_was_cut_goes_on() {
    // Three chunks on one side, two on the other, some of which are shared.
    let (x, y) = (ids(0..9_000), ids(8_500..13_000));
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let whole = tempfile::tempdir().unwrap();
    let (_, uncut) = session(whole.path(), 1, flat, [Fault::None, Fault::None]);
    let cuts = [(0, "pid/u", 2), (0, "pid/u", 3), (1, "pid/u", 1), (1, "pid/v", 2), (0, "pid/v", 1)];
    let late = [(1, "pid/e", 3), (0, "pid/difference", 1), (1, "pid/difference", 0), (1, "pid/spine", 0)];
    for (culprit, step, at) in cuts.into_iter().chain(late) {
        let dir = tempfile::tempdir().unwrap();
        let mut faults = [Fault::None, Fault::None];
        faults[culprit] = Fault::Cut(step, at);
        let (cut, before) = session(dir.path(), 1, flat, faults);
        assert!(cut.iter().all(Result::is_err), "{culprit} {step} {at}");
        // Another seed: keys of the run that goes on are those of the run that was cut.
        let (done, after) = session(dir.path(), 2, flat, [Fault::None, Fault::None]);
        check(&x, &y, done);
        for party in 0..2 {
            let (all, first, second) =
                (streamed(&uncut[party]), streamed(&before[party]), streamed(&after[party]));
            assert!(all.starts_with(&first[..first.len() - usize::from(first.len() > all.len())]));
            assert!(all.ends_with(&second), "what is sent again is other bytes: {culprit} {step} {at}");
        }
        let again = streamed(&after[0]).len() + streamed(&after[1]).len();
        match step {
            "pid/u" | "pid/v" => assert!(again <= 6, "{again} chunks again after {step} {at}"),
            _ => assert_eq!(again, 0, "after {step}"),
        }
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 0, "folders are gone after success");
    }
}

#[test]
fn a_match_that_is_cut_again_and_again_ends() {
    let (x, y) = (ids(0..13_000), ids(6_000..19_000));
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..4 {
        // The second chunk of answers in each session never leaves.
        let (cut, _) = session(dir.path(), seed, flat, [Fault::None, Fault::Cut("pid/v", 1)]);
        if cut.iter().all(Result::is_ok) {
            return check(&x, &y, cut);
        }
    }
    let (done, _) = session(dir.path(), 9, flat, [Fault::None, Fault::None]);
    check(&x, &y, done);
}

#[test]
fn other_identifiers_are_refused_and_leave_the_folder_as_it_was() {
    let (x, y) = (ids(0..5000), ids(4000..9000));
    let mut changed = x.clone();
    changed[4321].push('x');
    let [own, other, changed, fewer] = [&x[..], &y[..], &changed[..], &x[1..]].map(Column::new);
    let dir = tempfile::tempdir().unwrap();
    let cut = [Fault::Cut("pid/v", 1), Fault::None];
    let (_, before) = session(dir.path(), 1, [&own.flat(), &other.flat()], cut);
    for refused in [&changed.flat() as &dyn IdentifierSource, &fewer.flat()] {
        let (done, said) = session(dir.path(), 2, [refused, &other.flat()], [Fault::None, Fault::None]);
        let error = done[0].as_ref().unwrap_err();
        assert!(error.starts_with("registry at pid: the match that was cut was of other rows"), "{error}");
        assert!(said[0].is_empty(), "something was sent");
    }
    let (done, after) = session(dir.path(), 3, [&own.flat(), &other.flat()], [Fault::None, Fault::None]);
    check(&x, &y, done);
    assert_eq!(streamed(&after[0])[0], streamed(&before[0])[0], "it began afresh");
}

#[test]
fn other_dummies_are_refused() {
    let columns = [Column::new(&ids(0..50)), Column::new(&ids(20..60))];
    let dir = tempfile::tempdir().unwrap();
    let run = |dummies: u8, faults| {
        let (sessions, _) = tapped(dummies, 10_000, faults);
        run_both(sessions, |session| {
            let me = session.me().index();
            let dummies = Some(Dummies::usual(&Seed::from_bytes([dummies + me as u8; 32])));
            let options = MatchOptions { dummies, ..options(dir.path(), me) };
            PrivateId.run(session, &columns[me].flat(), None, &options).map(drop).map_err(|e| e.to_string())
        })
    };
    assert!(run(1, [Fault::Cut("pid/v", 0), Fault::None]).iter().all(Result::is_err));
    let error = run(5, [Fault::None, Fault::None])[0].clone().unwrap_err();
    assert!(error.contains("was of other rows"), "{error}");
    assert!(run(1, [Fault::None, Fault::None]).iter().all(Result::is_ok));
}

#[test]
fn one_folder_alone_means_a_fresh_run() {
    let (x, y) = (ids(0..5000), ids(4000..9000));
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    for gone in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let (_, before) = session(dir.path(), 1, flat, [Fault::None, Fault::Cut("pid/e", 1)]);
        std::fs::remove_dir_all(dir.path().join(format!("party {gone}"))).unwrap();
        let (done, after) = session(dir.path(), 2, flat, [Fault::None, Fault::None]);
        check(&x, &y, done);
        for party in 0..2 {
            let [first, second] = [&before, &after].map(|said| streamed(&said[party]));
            assert_eq!(second.len(), 2);
            assert!(first.iter().all(|chunk| !second.contains(chunk)), "keys of the old run were used");
        }
    }
}

#[test]
fn folders_of_different_runs_mean_a_fresh_run() {
    let (x, y) = (ids(0..5000), ids(4000..9000));
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let [one, two] = [1, 2].map(|seed| {
        let dir = tempfile::tempdir().unwrap();
        let _ = session(dir.path(), seed, flat, [Fault::Cut("pid/difference", 0), Fault::None]);
        dir
    });
    std::fs::remove_dir_all(one.path().join("party 1")).unwrap();
    std::fs::rename(two.path().join("party 1"), one.path().join("party 1")).unwrap();
    let (done, after) = session(one.path(), 3, flat, [Fault::None, Fault::None]);
    check(&x, &y, done);
    assert_eq!(streamed(&after[0]).len(), 2);
}

#[test]
fn a_peer_that_answers_otherwise_the_second_time_is_caught() {
    let (x, y) = (ids(0..5_000), ids(4_500..9_000));
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let dir = tempfile::tempdir().unwrap();
    // P takes no answer to its first chunk, so it has to send it again.
    let _ = session(dir.path(), 1, flat, [Fault::Cut("pid/v", 0), Fault::None]);
    let swap_last = |bytes: &mut [u8]| {
        let at = bytes.len() - 32;
        bytes[at + 3] ^= 1;
    };
    let (done, said) = session(dir.path(), 2, flat, [Fault::None, Fault::Change("pid/u", 0, swap_last)]);
    assert_eq!(said[1].iter().find(|(step, _)| step == "pid/u").unwrap().1.len(), 32 * 4096);
    let error = done[0].as_ref().unwrap_err();
    assert!(error.contains("what it sends again is what it sent before"), "{error}");
    // It has no further try under these keys.
    assert!(!dir.path().join("party 0").exists());
}

#[test]
fn what_is_malformed_ends_the_journal() {
    let columns = [Column::new(&ids(0..50)), Column::new(&ids(20..60))];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    for (step, kept) in [("pid/e", false), ("pid/difference", false), ("pid/v", true)] {
        let dir = tempfile::tempdir().unwrap();
        let fault = match kept {
            true => Fault::Cut(step, 0),
            // The count of a slice, and the first element of a piece.
            false => Fault::Change(step, 0, |bytes| bytes.fill(0xff)),
        };
        let (done, _) = session(dir.path(), 1, flat, [Fault::None, fault]);
        let error = done[0].as_ref().unwrap_err();
        assert_eq!(dir.path().join("party 0").exists(), kept, "{error}");
        assert!(dir.path().join("party 1").exists(), "nobody deviated there");
    }
}

/// Folders of both parties that were cut before the step `difference`, written by the version that had no
/// pins: 60 rows against 50, of which 20 are shared.
fn journal_1(dir: &Path) -> [Vec<String>; 2] {
    for party in 0..2 {
        let to = dir.join(format!("party {party}"));
        std::fs::create_dir(&to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o700)).unwrap();
        let from =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/journal-1/party-{party}"));
        for file in ["match", "u", "e", "v"] {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
    [ids(0..60), ids(40..90)]
}

#[test]
fn a_journal_of_the_version_without_pins_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let [x, y] = journal_1(dir.path());
    let columns = [Column::new(&x), Column::new(&y)];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let (done, said) = session(dir.path(), 5, flat, [Fault::None, Fault::None]);
    check(&x, &y, done);
    assert!(said.iter().all(|said| streamed(said).is_empty()), "it began afresh");
}

#[test]
fn a_journal_of_the_first_version_is_cut_again_and_binds_what_was_said() {
    for other in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let [x, y] = journal_1(dir.path());
        let columns = [Column::new(&x), Column::new(&y)];
        let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
        // Part of the streams is gone at P, and is said again.
        std::fs::remove_file(dir.path().join("party 1").join("v")).unwrap();
        let (cut, said) = session(dir.path(), 5, flat, [Fault::None, Fault::Cut("pid/difference", 0)]);
        assert!(cut.iter().all(Result::is_err) && streamed(&said[1]).len() == 1);
        let change = |bytes: &mut [u8]| bytes[3] ^= 1;
        let fault = if other { Fault::Change("pid/e", 1, change) } else { Fault::None };
        let (done, said) = session(dir.path(), 6, flat, [Fault::None, fault]);
        assert!(said.iter().all(|said| streamed(said).is_empty()), "it began afresh");
        match other {
            false => check(&x, &y, done),
            true => {
                let error = done[0].as_ref().unwrap_err();
                assert!(error.contains("what it sends after the cut is what it sent before it"), "{error}");
            }
        }
    }
}

#[test]
fn keys_are_for_their_owner_alone() {
    let columns = [Column::new(&ids(0..50)), Column::new(&ids(20..60))];
    let flat = [&columns[0].flat() as &dyn IdentifierSource, &columns[1].flat()];
    let dir = tempfile::tempdir().unwrap();
    let _ = session(dir.path(), 1, flat, [Fault::Cut("pid/v", 0), Fault::None]);
    let folder = dir.path().join("party 0");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

/// Whoever still has its half is asked before a match begins afresh with the same dummies; a refusal forgets
/// the half, and no run after that finds one half alone.
#[test]
fn beginning_afresh_is_asked_for_and_may_be_refused() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let (x, y) = (ids(0..5000), ids(4000..9000));
    let columns = [Column::new(&x), Column::new(&y)];
    let dir = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let run = |seed: u8, allowed: bool, faults| {
        let (sessions, _) = tapped(seed, 10_000, faults);
        run_both(sessions, |session| {
            let me = session.me().index();
            let asked = asked.clone();
            let may = move || {
                asked.fetch_add(1, Ordering::Relaxed);
                if allowed { Ok(()) } else { Err(base::Error::refused("not again")) }
            };
            let options =
                MatchOptions { afresh: Some(RestartPermit(Arc::new(may))), ..options(dir.path(), me) };
            let done = PrivateId.run(session, &columns[me].flat(), None, &options);
            done.and_then(MatchOutcome::spine).map_err(|e| e.to_string())
        })
    };
    let forget = |party: usize| std::fs::remove_dir_all(dir.path().join(format!("party {party}"))).unwrap();
    let halves = || [0, 1].map(|party| matching::pid::is_cut(&dir.path().join(format!("party {party}"))));
    let _ = run(1, true, [Fault::None, Fault::Cut("pid/e", 1)]);
    assert_eq!((halves(), asked.load(Ordering::Relaxed)), ([true; 2], 0));
    forget(1);
    // Allowed, it begins; the party that had none keeps none, since the other one may yet forget its own.
    let _ = run(2, true, [Fault::None, Fault::Cut("pid/e", 1)]);
    assert_eq!((halves(), asked.load(Ordering::Relaxed)), ([true, false], 1));
    // Refused, nothing is left of it, and the next run is a first one for both.
    let done = run(3, false, [Fault::None, Fault::None]);
    assert!(done[0].as_ref().unwrap_err().contains("not again") && done[1].is_err(), "{done:?}");
    assert_eq!(halves(), [false; 2]);
    let done = run(4, false, [Fault::None, Fault::None]);
    check(&x, &y, done);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

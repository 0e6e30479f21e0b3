//! Worker processes of a run that is kept without `work`: units of its match go over their lanes, and the
//! result is the same whoever does what and whatever is killed. Who comes after a coordinator goes on with
//! the match.

use crate::support::parties::{PartyFile, make_key};
use crate::support::{NAMES as LIFT, Pair, Running, command, tacit};
use crate::workers::{signal, workers_of};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NAMES: [&str; 2] = ["clinic", "works"];
/// Rows of either party, of which both have the first ones: four units of every stage.
const ROWS: u32 = 50_000;
const SHARED: u32 = 10_000;

struct World {
    folder: tempfile::TempDir,
    truth: u64,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = NAMES.map(|name| make_key(folder.path(), name));
        let study = include_str!("aligned_pair.toml").replace("CLINIC", &keys[0]).replace("WORKS", &keys[1]);
        let study = study.replace("\"aligned\"", "\"pid\"").replace("rows aligned\n", "");
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        let (mut clinic, mut works, mut truth) = ("person,ill\n".to_owned(), "person,days\n".to_owned(), 0);
        for i in 0..ROWS {
            let (ill, days) = (i * 17 % 10 < 3, i * 31 % 977);
            truth += u64::from(days * u32::from(ill && i < SHARED));
            writeln!(clinic, "p{i},{}", u8::from(ill)).unwrap();
            writeln!(works, "{}{i},{days}", if i < SHARED { "p" } else { "q" }).unwrap();
        }
        std::fs::write(folder.path().join("clinic.csv"), clinic).unwrap();
        std::fs::write(folder.path().join("works.csv"), works).unwrap();
        for (file, name) in PartyFile::pair(folder.path(), NAMES).into_iter().zip(NAMES) {
            let lines = "state = \"state-NAME\"\nspool = true\nmemory = \"512M\"";
            file.with(&lines.replace("NAME", name))
                .policy("kinds = [\"program\"]\nallow_exact = true")
                .write();
        }
        Self { folder, truth }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn start(&self, party: usize, workers: &str) -> Running {
        // A ledger that knows the answer computes nothing.
        let _ = std::fs::remove_file(self.path(&format!("{}.ledger", NAMES[party])));
        let _ = std::fs::remove_dir_all(self.path(&format!("out-{}", NAMES[party])));
        self.again(party, workers)
    }

    /// A run that goes on, if there is one to go on with.
    fn again(&self, party: usize, workers: &str) -> Running {
        let file = self.path(&format!("{}.toml", NAMES[party]));
        let mut run = command(["run".as_ref(), file.as_os_str(), "--json".as_ref()]);
        run.args(["--workers", workers]);
        Running::start(run)
    }

    fn state(&self, party: usize) -> PathBuf {
        self.path(&format!("state-{}", NAMES[party]))
    }

    /// The folder of the match in a party's state, once there is one.
    fn columns(&self, party: usize) -> Option<PathBuf> {
        match_in(&self.state(party)).filter(|path| path.join("uids").exists())
    }

    /// Units whose results both hold, as their states show: names of those that both have put there.
    fn both_have(&self) -> u64 {
        let [mine, theirs] = [0, 1].map(|party| results(&self.state(party)));
        mine.intersection(&theirs).count() as u64
    }

    /// Units of the match that a party holds, as it shows them; none where no match is under way.
    fn held(&self, party: usize) -> Option<u64> {
        let file = self.path(&format!("{}.toml", NAMES[party]));
        let shown = tacit(["state".as_ref(), "show".as_ref(), file.as_os_str(), "--json".as_ref()]).fine();
        shown.json()["runs"][0]["stage"]["match_units_held"].as_u64()
    }

    /// Waits until some unit of the match is done at a party, and gives its workers.
    fn await_a_unit(&self, party: usize, coordinator: u32) -> Vec<u32> {
        let until = Instant::now() + Duration::from_secs(120);
        while self.columns(party).is_none() {
            assert!(Instant::now() < until, "no unit of the match is done");
            std::thread::sleep(Duration::from_millis(1));
        }
        let workers = workers_of(coordinator);
        // They stay as long as the columns do.
        assert!(!workers.is_empty() || self.columns(party).is_none(), "worker processes do units of a match");
        workers
    }

    /// The report of a run that ended well, with the truth in it.
    fn check(&self, side: Running, what: &str) -> Value {
        let report = side.end().fine().json();
        assert_eq!(report["view"]["outputs"][0]["value"], self.truth.to_string(), "{what}");
        let stages = report["stages"].as_array().unwrap();
        assert!(stages.iter().all(|stage| stage["price_held"] == true), "{what}: {stages:#?}");
        report
    }
}

fn list(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The folder of a match in a state.
fn match_in(state: &Path) -> Option<PathBuf> {
    list(&state.join("tacit-runs")).flat_map(|run| list(&run)).find(|path| name(path).starts_with("match"))
}

/// Results of units of a match that lie in a state: stage, unit and attempt.
fn results(state: &Path) -> HashSet<String> {
    let all = match_in(state).into_iter().flat_map(|folder| list(&folder.join("done")));
    // What is being written has a mark in its name.
    all.map(|path| name(&path)).filter(|name| !name.contains('#')).collect()
}

/// Waits until a state has a result of a stage of the match; false where the match is over before.
fn comes_to(state: &Path, stage: u8) -> bool {
    let until = Instant::now() + Duration::from_secs(120);
    let mut begun = false;
    while !results(state).iter().any(|name| name.starts_with(&format!("{stage}-"))) {
        let there = match_in(state).is_some();
        if begun && !there {
            return false;
        }
        begun |= there;
        assert!(Instant::now() < until, "a match does not come to stage {stage}");
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Stages of a match, as results are named: `v`, `e`, `d3`.
const STAGES: [u8; 3] = [2, 3, 4];

#[test]
fn workers_change_nothing_in_a_match() {
    let world = World::new();
    for workers in [["1", "1"], ["2", "2"], ["3", "4"]] {
        let running = [0, 1].map(|party| world.start(party, workers[party]));
        world.await_a_unit(0, running[0].id());
        for side in running {
            world.check(side, workers[0]);
        }
        assert!((0..2).all(|party| world.columns(party).is_none()), "columns of a match are left");
    }
}

/// A worker that dies in the match costs the attempts at its unit.
#[test]
fn who_dies_in_a_match_is_replaced() {
    let world = World::new();
    let running = [0, 1].map(|party| world.start(party, "2"));
    let workers = world.await_a_unit(1, running[1].id());
    workers.iter().take(1).for_each(|worker| signal(*worker, Signal::KILL));
    for side in running {
        let report = world.check(side, "a worker is killed");
        let again = report["stages"].as_array().unwrap().iter().filter(|stage| stage["name"] == "again");
        // One attempt at either side, or one more where a lane was cut before its peer had noticed.
        let units = |stage: &Value| stage["rows"].as_u64().unwrap();
        assert!(again.map(units).sum::<u64>() <= 4 * u64::from(ROWS), "{report:#}");
    }
    assert!((0..2).all(|party| world.columns(party).is_none()), "columns of a match are left");
}

/// Coordinators that are killed amid each stage of a match, one of them or both, are gone on for: what both
/// hold is not done again, and the result is the same.
#[test]
fn a_match_goes_on_after_its_coordinators_are_killed() {
    let world = World::new();
    let mut running = [0, 1].map(|party| world.start(party, "2"));
    // At the last kill: units of the stages before, and results that lay at both.
    let (mut sealed, mut both_had) = (0, 0);
    for (stage, victims) in STAGES.into_iter().zip([&[0][..], &[0, 1], &[1]]) {
        if !comes_to(&world.state(victims[0]), stage) {
            continue;
        }
        victims.iter().for_each(|party| running[*party].kill());
        (sealed, both_had) = (4 * u64::from(stage - STAGES[0]), world.both_have());
        if victims.len() == 2 {
            let held = [0, 1].map(|party| world.held(party));
            assert!(held.iter().all(|held| held.is_none_or(|held| held >= sealed)), "{held:?}");
        }
        let before = running[victims[0]].id();
        victims.iter().for_each(|party| running[*party] = world.again(*party, "3"));
        assert!(workers_of(before).is_empty(), "workers end with their coordinator");
    }
    for side in running {
        let report = world.check(side, "coordinators are killed in a match");
        let workers = &report["workers"];
        let failed = workers["failed"].as_array().unwrap();
        assert!(failed.iter().all(|failed| failed["unit"].as_u64() < Some(4)), "{workers:#}");
        // What the killed ones had taken is told, and the memory of workers of the match.
        let stages = report["stages"].as_array().unwrap();
        let of_match = stages.iter().find(|stage| stage["name"] == "match").unwrap();
        assert!(of_match["before"]["seconds"].as_f64() > Some(0.0), "{stages:#?}");
        let peaks = workers["memory"].as_array().unwrap();
        let of_workers = |peak: &&Value| peak["process"] == "worker" && peak["stage"] == "match";
        assert!(peaks.iter().any(|peak| of_workers(&peak)), "{workers:#}");
        // One that was sooner done than killed is taken up whole.
        if report["disclosed"]["resumed"] == false {
            assert_eq!(workers["match_units"], 12, "{workers:#}");
            // Of what was put there last at either side its record may be missing.
            let before = workers["match_done_before"].as_u64().unwrap();
            assert!(before >= sealed && before + 2 >= both_had, "{sealed}, {both_had}: {workers:#}");
        }
    }
    assert!((0..2).all(|party| list(&world.state(party).join("tacit-runs")).next().is_none()));
}

/// Copies a folder with all that it holds.
fn copy(from: &Path, to: &Path) {
    std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for path in list(from) {
        let target = to.join(name(&path));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

/// A party whose state is put back to before promises of its peer's, which it has answered since, does not go
/// on with that match: both make it anew. False where a match was over before it could be.
fn put_back_amid_a_match() -> bool {
    let world = World::new();
    let (state, before) = (world.state(0), world.path("before"));
    let mut running = [0, 1].map(|party| world.start(party, "2"));
    for stage in &STAGES[..2] {
        if !comes_to(&state, *stage) {
            return false;
        }
        running.iter_mut().for_each(Running::kill);
        if !before.exists() {
            copy(&state, &before);
            running = [0, 1].map(|party| world.again(party, "2"));
        }
    }
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&before, &state).unwrap();
    let [back, peer] = [0, 1].map(|party| world.again(party, "2"));
    let done = back.end().fine();
    assert!(done.stderr.contains("as where a folder was put back"), "{}", done.stderr);
    let workers = &done.json()["workers"];
    assert!(workers["match_units"] == 12 && workers["match_done_before"] == 0, "{workers:#}");
    world.check(peer, "the other one's state was put back");
    true
}

#[test]
fn a_match_whose_state_was_put_back_is_made_anew() {
    assert!((0..3).any(|_| put_back_amid_a_match()), "matches are over before they can be killed");
}

/// What the sizes of a match show is charged once, however often its coordinators are killed: a match that
/// began four times would be charged three times.
#[test]
fn a_match_that_goes_on_is_charged_once() {
    let spent = |kills: &[u8]| {
        let pair = Pair::csv(30_000);
        for party in LIFT {
            let line = format!("data = \"{party}.csv\"");
            let more = format!("{line}\nstate = \"state-{party}\"\nspool = true");
            pair.edit(&format!("{party}.toml"), &line, &more);
        }
        let start = || [0, 1].map(|party| Running::start(pair.run(LIFT[party], &["--workers", "2"])));
        let mut running = start();
        for stage in kills {
            if comes_to(&pair.path("state-publisher"), *stage) {
                running.iter_mut().for_each(Running::kill);
                running = start();
            }
        }
        running.map(|side| {
            let report = side.end().fine().json();
            let stages = report["stages"].as_array().unwrap();
            assert!(stages.iter().all(|stage| stage["price_held"] == true), "{stages:#?}");
            assert!(report["disclosed"]["dummies"].is_object(), "{report:#}");
            report["privacy"]["viewers"][0]["rho"].clone()
        })
    };
    let undisturbed = spent(&[]);
    assert!(undisturbed.iter().all(|rho| rho.as_f64() > Some(0.0)), "{undisturbed:?}");
    assert_eq!(spent(&STAGES), undisturbed);
}

//! Worker processes of a run that is kept without `work`: units of its match go over their lanes, and the
//! result is the same whoever does what and whatever is killed.

use crate::support::parties::{PartyFile, make_key};
use crate::support::{Running, command};
use crate::workers::{signal, workers_of};
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
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

    fn start(&self, party: usize, workers: &str) -> Running {
        let path = |file: String| self.folder.path().join(file);
        // A ledger that knows the answer computes nothing.
        let _ = std::fs::remove_file(path(format!("{}.ledger", NAMES[party])));
        let _ = std::fs::remove_dir_all(path(format!("out-{}", NAMES[party])));
        let file = path(format!("{}.toml", NAMES[party]));
        let mut run = command(["run".as_ref(), file.as_os_str(), "--json".as_ref()]);
        run.args(["--workers", workers]);
        Running::start(run)
    }

    /// The folder of the match in a party's state, once there is one.
    fn columns(&self, party: usize) -> Option<PathBuf> {
        let list = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let runs = self.folder.path().join(format!("state-{}/tacit-runs", NAMES[party]));
        let folders = list(runs).flat_map(|run| list(run.path())).map(|entry| entry.path());
        let of_match =
            |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("match"));
        folders.filter(of_match).find(|path| path.join("uids").exists())
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

/// A worker that dies in the match costs the attempts at its unit, and a coordinator the match.
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
    let mut running = [0, 1].map(|party| world.start(party, "2"));
    world.await_a_unit(0, running[0].id());
    running[0].kill();
    let ids = running.each_ref().map(Running::id);
    running[0] = world.start(0, "2");
    running.into_iter().for_each(|side| drop(world.check(side, "a coordinator is killed")));
    assert!(ids.iter().all(|id| workers_of(*id).is_empty()), "workers end with their coordinator");
    assert!((0..2).all(|party| world.columns(party).is_none()), "columns of a match are left");
}

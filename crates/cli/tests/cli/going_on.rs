//! A run that keeps what it has done in `state` goes on after its coordinators are killed: nothing that both
//! hold is done again, and the result is the one of an undisturbed run.
//!
//! `TACIT_KILLS` is how many runs are broken off at random records of their logs, by each protocol; without
//! it two of joins are, one whose match goes over lanes, and of the others one at known records.
//! `TACIT_KILLS_SEED` begins with another one.

use crate::support::parties::{PartyFile, make_key};
use crate::support::{NAMES as LIFT, Pair, Running, command, tacit};
use crate::workers::{cutting_relay, signal};
use base::Seed;
use privacy::ledger::{Ledger, PUBLIC};
use release::rational::ratio;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const NAMES: [&str; 2] = ["clinic", "works"];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// Rows of either party, of which both have the first ones: a spine of two units, for two workers.
const ROWS: u32 = 140_000;
const SHARED: u32 = 10_000;
/// Rows of a run of one unit, whose match still takes seconds.
const SHORT_ROWS: u32 = 45_000;
/// Records of the log of an undisturbed run at least: who leads, rows, match, two a unit, seal, release.
const RECORDS: u64 = 9;
/// The same of joins to shares, whose rows are one unit.
const JOINED_ROWS: u32 = 3_000;
const JOINED_SHARED: u32 = 1_000;
const JOINED_RECORDS: u64 = 7;
/// The same of a match over lanes: most records are of its 12 units, of each a floor, promises of the peer, a
/// result.
const LANE_ROWS: u32 = 50_000;
const LANE_RECORDS: u64 = 40;
/// Protocols that give shares of programs' columns.
const JOINS: [&str; 2] = ["ps3i", "circuit-psi"];
/// What a match over lanes is called here.
const LANES: &str = "pid over lanes";

struct World {
    folder: tempfile::TempDir,
    truth: u64,
}

impl World {
    fn new() -> Self {
        Self::of("pid", [ROWS, SHARED], true)
    }

    /// Of one unit.
    fn short() -> Self {
        Self::of("pid", [SHORT_ROWS, SHARED], true)
    }

    fn joined(protocol: &str) -> Self {
        Self::of(protocol, [JOINED_ROWS, JOINED_SHARED], true)
    }

    /// With a match over lanes of workers.
    fn over_lanes() -> Self {
        Self::of("pid", [LANE_ROWS, SHARED], false)
    }

    fn of(protocol: &str, [rows, shared]: [u32; 2], work: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = NAMES.map(|name| make_key(folder.path(), name));
        let study = include_str!("aligned_pair.toml").replace("CLINIC", &keys[0]).replace("WORKS", &keys[1]);
        let study = study.replace("\"aligned\"", &format!("\"{protocol}\"")).replace("rows aligned\n", "");
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        let (mut clinic, mut works, mut truth) = ("person,ill\n".to_owned(), "person,days\n".to_owned(), 0);
        for i in 0..rows {
            let (ill, days) = (i * 17 % 10 < 3, i * 31 % 977);
            truth += u64::from(days * u32::from(ill && i < shared));
            writeln!(clinic, "p{i},{}", u8::from(ill)).unwrap();
            writeln!(works, "{}{i},{days}", if i < shared { "p" } else { "q" }).unwrap();
        }
        std::fs::write(folder.path().join("clinic.csv"), clinic).unwrap();
        std::fs::write(folder.path().join("works.csv"), works).unwrap();
        for (file, name) in PartyFile::pair(folder.path(), NAMES).into_iter().zip(NAMES) {
            let work = if work { "work = \"work-NAME\"\n" } else { "" };
            let lines = format!("state = \"state-NAME\"\nspool = true\n{work}memory = \"512M\"");
            file.with(&lines.replace("NAME", name))
                .policy("kinds = [\"program\"]\nallow_exact = true")
                .write();
        }
        Self { folder, truth }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, party: usize) -> Running {
        self.start_with(party, &[])
    }

    fn start_with(&self, party: usize, more: &[&str]) -> Running {
        let file = self.path(&format!("{}.toml", NAMES[party]));
        let words = ["run".as_ref(), file.as_os_str(), "--json".as_ref(), "--workers=2".as_ref()];
        let mut run = command(words);
        run.args(more);
        Running::start(run)
    }

    /// The report of a run that ended well, with the truth in it.
    fn check(&self, side: Running, what: &str) -> Value {
        let report = side.end().fine().json();
        assert_eq!(report["view"]["outputs"][0]["value"], self.truth.to_string(), "{what}");
        let stages = report["stages"].as_array().unwrap();
        // A match that goes on from `work` may say some bytes more than was stated: the roadmap has it.
        let in_work = self.path(&format!("work-{}", NAMES[0])).exists();
        let others = stages.iter().filter(|stage| !in_work || stage["name"] != "match");
        assert!(others.into_iter().all(|stage| stage["price_held"] == true), "{what}: {stages:#?}");
        report
    }

    /// Folders of runs in a party's state.
    fn runs(&self, party: usize) -> Vec<PathBuf> {
        let runs = self.path(&format!("state-{}/tacit-runs", NAMES[party]));
        std::fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Files of matches with keys in a party's `work`.
    fn matches(&self, party: usize) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.path(&format!("work-{}", NAMES[party])));
        let folders = folders.into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join("match")).filter(|keys| keys.exists()).collect()
    }

    /// Records of a party's log.
    fn records(&self, party: usize) -> u64 {
        // What is being written has a mark in its name.
        let whole = |entry: &std::fs::DirEntry| !entry.file_name().to_string_lossy().contains('#');
        let log = |run: PathBuf| {
            let all = std::fs::read_dir(run.join("log")).into_iter().flatten().flatten();
            all.filter(whole).count() as u64
        };
        self.runs(party).into_iter().map(log).sum()
    }

    /// How far a party's run has come; nothing where it keeps none, or is just removing it.
    fn stage(&self, party: usize) -> Value {
        let file = self.path(&format!("{}.toml", NAMES[party]));
        let shown = tacit(["state".as_ref(), "show".as_ref(), file.as_os_str(), "--json".as_ref()]);
        if shown.code == 0 { shown.json()["runs"][0]["stage"].clone() } else { Value::Null }
    }

    /// Joined rows as a party holds them in its state, an object each.
    fn shares(&self, party: usize) -> Vec<PathBuf> {
        let run = std::fs::read_dir(&self.runs(party)[0]).unwrap().flatten();
        let joined = run.filter(|entry| entry.file_name().to_string_lossy().starts_with("joined-"));
        joined
            .flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten())
            .map(|e| e.path())
            .collect()
    }

    /// Two parties who were both killed when they had matched. One that was sooner done than killed is left.
    fn matched(protocol: &str) -> Self {
        for _ in 0..20 {
            let world = Self::joined(protocol);
            let all = [world.start(0), world.start(1)];
            let come = (0..2).all(|party| world.comes_to(party, 3, protocol));
            all.into_iter().for_each(|mut side| side.kill());
            if come && (0..2).all(|party| world.stage(party)["matched"] == true) {
                return world;
            }
        }
        panic!("{protocol}: runs are over before they are killed");
    }

    /// Waits until a party's log has come to so many records; false where its run is over before.
    fn comes_to(&self, party: usize, records: u64, what: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(240);
        let mut begun = false;
        while self.records(party) < records {
            begun |= self.records(party) > 0;
            if begun && self.runs(party).is_empty() {
                return false;
            }
            assert!(Instant::now() < until, "{what}: no record {records} of {}", NAMES[party]);
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Runs both, kills a party whenever its log has come to so many records, and starts it again. Gives both
    /// reports, which are of what both held as one was killed.
    fn run(&self, kills: &[(usize, u64)], what: &str) -> [Value; 2] {
        let mut all = [self.start(0), self.start(1)];
        let (mut matched, mut computed) = (false, false);
        for (number, (victim, at)) in kills.iter().enumerate() {
            if self.comes_to(*victim, *at, what) {
                all[*victim].kill();
                let stages = [0, 1].map(|party| self.stage(party));
                matched |= stages.iter().all(|stage| stage["matched"] == true);
                // Later on, results of a party may be of an attempt that the other one has left.
                let first = |stage: &Value| stage["units_held"] == 1 && stage["attempts"] == 1;
                computed |= number == 0 && stages.iter().all(first);
                all[*victim] = self.start(*victim);
            }
        }
        let reports = all.map(|side| self.check(side, what));
        for report in &reports {
            let anew = report["stored"] == false && (matched && report["disclosed"]["resumed"] != true);
            assert!(!anew, "{what}: what both had matched is matched again: {report:#}");
            let anew = report["stored"] == false && computed && report["workers"]["computed_before"] == 0;
            assert!(!anew, "{what}: what both held is computed again: {report:#}");
        }
        reports
    }
}

/// The report of a run that took a match up: nothing is said for it.
fn took_up(report: &Value) {
    assert_eq!(report["disclosed"]["resumed"], true, "{report:#}");
    let stages = report["stages"].as_array().unwrap();
    let matched = stages.iter().find(|stage| stage["name"] == "match").unwrap();
    assert_eq!(matched["bytes_sent"], serde_json::json!([0, 0]), "{matched:#}");
    // What it cost the processes of before is beside that.
    let before = &matched["before"];
    assert!(before["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{matched:#}");
    assert!(before["bytes_sent"].as_array().is_some_and(|sent| sent.iter().all(|b| *b != 0)), "{matched:#}");
}

/// A run is shown while it is kept, goes on after three kills without another match, and is gone at the end.
#[test]
fn a_killed_coordinator_goes_on() {
    let world = World::new();
    let all = [world.start(0), world.start(1)];
    let party = |name: &str| world.path(&format!("{name}.toml"));
    assert!(world.comes_to(0, 3, "the first run") && world.comes_to(1, 3, "the first run"));
    // A second coordinator of a party is kept out while the first one leads, and does not end meanwhile.
    all.iter().for_each(|side| signal(side.id(), rustix::process::Signal::STOP));
    world.start(0).end().failed(1, &["another process of this machine", " leads a run whose state is in "]);
    // Both coordinators die.
    all.into_iter().for_each(|mut side| side.kill());
    let shown = tacit(["state".as_ref(), "show".as_ref(), party(NAMES[0]).as_os_str(), "--json".as_ref()]);
    let shown = shown.fine().json();
    assert_eq!(shown["runs"][0]["stage"]["matched"], true, "{shown:#}");
    assert_eq!(shown["runs"][0]["study"]["name"], "days", "{shown:#}");
    let before = world.records(1);
    let reports = world.run(&[(1, before + 3)], "three kills");
    for report in &reports {
        took_up(report);
        assert_eq!(report["workers"]["units"], 2);
        // Both were killed as the units were begun, and one of them again.
        let workers = &report["workers"];
        let by_sort = workers["failed_before_by"].as_array().unwrap();
        let sum: u64 = by_sort.iter().map(|of| of["count"].as_u64().unwrap()).sum();
        assert!(sum > 0 && workers["failed_before"] == sum, "{report:#}");
        let peaks = workers["memory"].as_array().unwrap();
        let coordinator = |peak: &&Value| peak["process"] == "coordinator" && peak["before"] == false;
        assert_eq!(peaks.iter().filter(coordinator).count(), 1, "{report:#}");
        assert!(peaks.iter().all(|peak| peak["peak_memory_bytes"].as_u64() > Some(1 << 20)), "{report:#}");
    }
    assert!((0..2).all(|party| world.runs(party).is_empty()), "a run that has ended leaves something");
    let shown = tacit(["state".as_ref(), "show".as_ref(), party(NAMES[0]).as_os_str()]).fine();
    assert!(shown.stdout.contains("no run is kept"), "{}", shown.stdout);
}

/// Joins to shares go on from theirs, of which both have written down their halves; a file that was written
/// again with the same rows is the same.
#[test]
fn joins_go_on_from_their_shares() {
    for protocol in JOINS {
        let world = World::matched(protocol);
        assert!((0..2).all(|party| world.shares(party).len() >= 2), "{protocol}");
        let rows = std::fs::read(world.path("works.csv")).unwrap();
        std::fs::write(world.path("works.csv"), rows).unwrap();
        let again = [world.start(0), world.start(1)];
        again.into_iter().for_each(|side| took_up(&world.check(side, protocol)));
        assert!((0..2).all(|party| world.runs(party).is_empty()), "{protocol}: shares are left");
    }
}

/// A side that has lost what it wrote down has both match again.
#[test]
fn a_join_that_one_side_lost_is_matched_again() {
    let world = World::matched(JOINS[0]);
    std::fs::remove_file(&world.shares(1)[0]).unwrap();
    for side in [world.start(0), world.start(1)] {
        let report = world.check(side, "one side lost its shares");
        assert_eq!(report["disclosed"]["resumed"], false, "{report:#}");
    }
}

/// A run that begins anew although something is kept says why, at both sides.
#[test]
fn what_is_kept_in_vain_is_said() {
    let world = World::matched(JOINS[0]);
    let party = |name: &str| world.path(&format!("{name}.toml"));
    // Of what names the run, a byte of what its key is made of.
    let (named, bytes) = {
        let named = world.runs(0)[0].join("run");
        let bytes = std::fs::read(&named).unwrap();
        (named, bytes)
    };
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    std::fs::write(&named, other).unwrap();
    let checked = tacit(["check".as_ref(), party(NAMES[0]).as_os_str()]).fine();
    let said = checked.stdout + &checked.stderr;
    assert!(said.contains("keeps what this party cannot open"), "{said}");
    std::fs::write(&named, bytes).unwrap();
    let works = party(NAMES[1]);
    tacit(["state".as_ref(), "drop".as_ref(), works.as_os_str(), "--all".as_ref()]).fine();
    let all = [world.start(0), world.start(1)];
    let says = [
        format!("this side holds a match of these data and {} holds none", NAMES[1]),
        format!("{} holds a match of these data and this side holds none", NAMES[0]),
    ];
    for (side, said) in all.into_iter().zip(says) {
        let done = side.end().fine();
        assert!(done.stderr.contains(&said), "{said}: {}", done.stderr);
        assert_eq!(done.json()["view"]["outputs"][0]["value"], world.truth.to_string());
    }
}

/// What one side alone keeps takes nothing from the run, and that side does not wait for one that is gone.
#[test]
fn one_side_alone_may_keep() {
    let world = World::short();
    let path = world.path("works.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace("state = \"state-works\"\nspool = true\n", "")).unwrap();
    let all = [world.start(0), world.start(1)];
    assert!(world.comes_to(0, 2, "rows are read"));
    let [mut first, second] = all;
    first.hear("has proven its key");
    std::thread::sleep(Duration::from_millis(200));
    drop(second);
    let done = first.end();
    assert_eq!(done.code, 3, "{}", done.stderr);
    assert!(done.stderr.contains("What was done is kept in"), "{}", done.stderr);
    let again = [world.start(0), world.start(1)];
    again.into_iter().for_each(|side| drop(world.check(side, "one side keeps")));
    assert!(world.runs(0).is_empty());
}

/// Input that was changed is read and matched anew; what was kept is dropped for it, or when it is told to.
#[test]
fn other_input_begins_anew() {
    let world = World::new();
    let all = [world.start(0), world.start(1)];
    assert!(world.comes_to(0, 2, "rows are read"));
    // The match has keys of its own in `work`, which go with the run.
    while !world.runs(0)[0].join("run").exists() || world.matches(0).is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    all.into_iter().for_each(|mut side| side.kill());
    let party = |name: &str| world.path(&format!("{name}.toml"));
    let checked = tacit(["check".as_ref(), party(NAMES[0]).as_os_str()]).fine();
    assert!(!checked.stderr.contains("input was changed"), "{}", checked.stderr);
    let text = std::fs::read_to_string(world.path("clinic.csv")).unwrap();
    std::fs::write(world.path("clinic.csv"), &text).unwrap();
    let checked = tacit(["check".as_ref(), party(NAMES[0]).as_os_str()]).fine();
    let all = checked.stdout + &checked.stderr;
    assert!(all.contains("holds the same: it goes on"), "{all}");
    // As long, and other rows.
    std::fs::write(world.path("clinic.csv"), text.replace("p0,", "o0,")).unwrap();
    let checked = tacit(["check".as_ref(), party(NAMES[0]).as_os_str()]).fine();
    let all = checked.stdout + &checked.stderr;
    assert!(all.contains("the input was changed since"), "{all}");
    assert_eq!(world.runs(0).len(), 1, "a check removes nothing");
    let kept = world.runs(0)[0].file_name().unwrap().to_str().unwrap().to_owned();
    let drop = |words: &[&str]| {
        let file = party(NAMES[0]);
        let command = ["state".as_ref(), "drop".as_ref(), file.as_os_str()];
        tacit(command.into_iter().chain(words.iter().map(AsRef::as_ref)))
    };
    drop(&["0011223344556677"]).failed(2, &["no run 0011223344556677 is kept"]);
    drop(&[]).failed(2, &["add --all"]);
    assert_eq!(drop(&[&kept]).fine().stdout, format!("{kept}\n"));
    assert!(world.runs(0).is_empty() && world.matches(0).is_empty(), "{:?}", world.matches(0));
    drop(&["--all"]).fine();
    assert_eq!(world.matches(1).len(), 1, "the other party's are its own");
}

/// Connections of the coordinators that are cut, in whatever they are doing, are made again, and the run goes
/// on in the same processes.
#[test]
fn coordinators_meet_again_after_a_cut() {
    let world = World::short();
    let file = std::fs::read_to_string(world.path("clinic.toml")).unwrap();
    let address = file.lines().find(|line| line.starts_with("listen")).unwrap().split('"').nth(1).unwrap();
    // The first connection has the match in it, and is cut in the midst of it; the second a little later.
    let relay = cutting_relay(address.to_owned(), 0, vec![4 << 20, 12 << 20]);
    let first = world.start(0);
    let second = world.start_with(1, &["--peer", &relay]);
    for side in [first, second] {
        let done = side.end().fine();
        assert!(done.stderr.contains("waits for the other one to go on"), "{}", done.stderr);
        assert_eq!(done.json()["view"]["outputs"][0]["value"], world.truth.to_string());
    }
    assert!((0..2).all(|party| world.runs(party).is_empty()));
}

/// A coordinator that is stopped for half a minute goes on: its peer waits, and its workers are no worse. By
/// `make soak`.
#[test]
fn a_stopped_coordinator_goes_on() {
    if std::env::var_os("TACIT_KILLS").is_none() {
        return;
    }
    for victim in 0..2 {
        for record in [2, 4] {
            let world = World::new();
            let all = [world.start(0), world.start(1)];
            assert!(world.comes_to(victim, record, "an undisturbed run"));
            signal(all[victim].id(), rustix::process::Signal::STOP);
            std::thread::sleep(Duration::from_secs(30));
            signal(all[victim].id(), rustix::process::Signal::CONT);
            all.into_iter().for_each(|side| drop(world.check(side, "stopped")));
        }
    }
}

/// A party of a lift study that is killed anywhere in its release, and started again, goes on without a
/// match; all ledgers pay for one number, and all see that one.
#[test]
fn a_release_goes_on_without_a_match() {
    release_goes_on("pid", 3);
}

/// The same of joins, one of which tells the publisher alone which rows match.
#[test]
fn a_release_of_joins_goes_on_without_a_match() {
    ["ps3i", "circuit-psi", "collecting"].into_iter().for_each(|protocol| release_goes_on(protocol, 1));
}

fn release_goes_on(protocol: &str, few: u64) {
    let first = number("TACIT_KILLS_SEED").unwrap_or_default();
    let kills = number("TACIT_KILLS").unwrap_or(few);
    let with_state = || {
        let pair = Pair::csv(1200);
        pair.edit("study.toml", "protocol = \"pid\"", &format!("protocol = \"{protocol}\""));
        for name in LIFT {
            let line = format!("as = \"{name}\"");
            pair.edit(
                &format!("{name}.toml"),
                &line,
                &format!("{line}\nstate = \"state-{name}\"\nspool = true"),
            );
        }
        pair
    };
    let pair = with_state();
    let start = |pair: &Pair, party: usize| Running::start(pair.run(LIFT[party], &["--events"]));
    let mut all = [start(&pair, 0), start(&pair, 1)];
    all[0].hear("\"release\"");
    let began = Instant::now();
    all.into_iter().for_each(|side| drop(side.end().fine()));
    let whole = began.elapsed();
    for seed in first..first + kills {
        let pair = with_state();
        let mut rng = Seed::from_bytes([7; 32]).fork(&format!("release {seed}")).into_rng();
        let (victim, after) = (rng.below(2) as usize, whole.mul_f64(rng.below(1000) as f64 / 1000.0));
        let of = format!("{protocol}, seed {seed}");
        let what = format!("{of}: {} was killed {after:?} after its release began", LIFT[victim]);
        let mut all = [start(&pair, 0), start(&pair, 1)];
        all[victim].hear("\"release\"");
        std::thread::sleep(after);
        all[victim].kill();
        all[victim] = start(&pair, victim);
        let other = 1 - victim;
        // It waits for the victim, or it had what it needed: then it is asked once more.
        let until = Instant::now() + Duration::from_secs(60);
        while !all[victim].is_over() {
            if all[other].is_over() {
                // It ends a moment before the victim where both have come to their ends.
                let soon = Instant::now() + Duration::from_secs(3);
                while Instant::now() < soon && !all[victim].is_over() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                if all[victim].is_over() {
                    break;
                }
                let before = std::mem::replace(&mut all[other], start(&pair, other));
                let before = before.end();
                // It had all, and has to say that the victim did not part from it.
                let parted = before.code == 0 || before.stderr.contains("before the peer was done");
                assert!(parted, "{what}: {}", before.stderr);
            }
            assert!(Instant::now() < until, "{what}: no end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let reports = all.map(|side| side.end().fine().json());
        for (report, name) in reports.iter().zip(LIFT) {
            assert_eq!(report["public"], reports[0]["public"], "{what}");
            assert!(report["public"].is_object(), "{what}: {report:#}");
            let anew = report["stored"] == false && report["disclosed"]["resumed"] == false;
            assert!(!anew, "{what}: {name} matched again");
            let ledger = Ledger::open(&pair.path(&format!("{name}.ledger"))).unwrap();
            assert_eq!(ledger.spent(name, PUBLIC).unwrap(), ratio(1, 10), "{what}: {name} pays once");
            ledger.verify().unwrap();
        }
    }
}

/// The same at random records, of either coordinator, again and again; by `make soak`.
#[test]
fn coordinators_are_killed_anywhere() {
    killed_anywhere("pid", 0);
}

/// Coordinators of a match over lanes.
#[test]
fn coordinators_of_lanes_are_killed_anywhere() {
    killed_anywhere(LANES, 1);
}

/// Coordinators of joins.
#[test]
fn coordinators_of_joins_are_killed_anywhere() {
    JOINS.into_iter().for_each(|protocol| killed_anywhere(protocol, 2));
}

fn killed_anywhere(protocol: &str, few: u64) {
    let first = number("TACIT_KILLS_SEED").unwrap_or_default();
    for seed in first..first + number("TACIT_KILLS").unwrap_or(few) {
        let (world, records) = match protocol {
            LANES => (World::over_lanes(), LANE_RECORDS),
            joins if JOINS.contains(&joins) => (World::joined(protocol), JOINED_RECORDS),
            _ => (World::new(), RECORDS),
        };
        let mut rng = Seed::from_bytes([9; 32]).fork(&format!("coordinator {seed}")).into_rng();
        let mut at = [0; 2];
        let mut kills = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let victim = rng.below(2) as usize;
            at[victim] += 1 + rng.below(records - 1);
            if at[victim] <= records {
                kills.push((victim, at[victim]));
            }
        }
        let what = format!("{protocol}, seed {seed}: {kills:?}");
        world.run(&kills, &what);
        assert!((0..2).all(|party| world.runs(party).is_empty()), "{what}: something is left");
    }
}

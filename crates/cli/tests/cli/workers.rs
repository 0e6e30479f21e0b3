//! Workers as processes: whoever computes what, and whatever is killed, the result is the same.
//!
//! `TACIT_KILLS` is how many workers are killed, one a run; without it few. With it, workers are stopped,
//! too, which takes as long as a silent worker is waited for.

use crate::support::parties::{PartyFile, make_key};
use crate::support::{Done, Running, command};
use base::Seed;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read as _, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub const NAMES: [&str; 2] = ["clinic", "works"];
/// Rows of five units, where there are three workers.
const ROWS: u32 = 700_001;
/// Kills in `make test`.
const KILLS: u64 = 3;

/// Two parties whose rows are aligned: all the time goes into the computation.
pub struct Aligned {
    folder: tempfile::TempDir,
    truth: u64,
}

impl Aligned {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = NAMES.map(|name| make_key(folder.path(), name));
        let study = include_str!("aligned_pair.toml").replace("CLINIC", &keys[0]).replace("WORKS", &keys[1]);
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        let (mut clinic, mut works, mut truth) = ("person,ill\n".to_owned(), "person,days\n".to_owned(), 0);
        for i in 0..ROWS {
            let (ill, days) = (i * 17 % 10 < 3, i * 31 % 977);
            truth += u64::from(days * u32::from(ill));
            writeln!(clinic, "p{i},{}", u8::from(ill)).unwrap();
            writeln!(works, "p{i},{days}").unwrap();
        }
        std::fs::write(folder.path().join("clinic.csv"), clinic).unwrap();
        std::fs::write(folder.path().join("works.csv"), works).unwrap();
        for file in PartyFile::pair(folder.path(), NAMES) {
            file.policy("kinds = [\"program\"]\nallow_exact = true").write();
        }
        Self { folder, truth }
    }

    /// One of its files.
    pub fn path(&self, file: &str) -> std::path::PathBuf {
        self.folder.path().join(file)
    }

    /// Where the first party listens.
    fn address(&self) -> String {
        let file = std::fs::read_to_string(self.folder.path().join("clinic.toml")).unwrap();
        let line = file.lines().find(|line| line.starts_with("listen")).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    }

    pub fn start(&self, name: &str, more: &[&str]) -> Running {
        let path = |file: String| self.path(&file);
        // A ledger that knows the answer computes nothing.
        let _ = std::fs::remove_file(path(format!("{name}.ledger")));
        let _ = std::fs::remove_dir_all(path(format!("out-{name}")));
        let file = path(format!("{name}.toml"));
        let mut run = command(["run".as_ref(), file.as_os_str(), "--json".as_ref()]);
        run.args(more);
        Running::start(run)
    }

    /// Holds a side's report against the truth; it.
    pub fn check(&self, done: Done) -> Value {
        let report = done.fine().json();
        assert_eq!(report["view"]["outputs"][0]["value"], self.truth.to_string());
        let stages = report["stages"].as_array().unwrap();
        let compute = stages.iter().find(|stage| stage["name"] == "compute").unwrap();
        assert_eq!(compute["price_held"], true, "{compute:#}");
        report
    }
}

/// The worker processes of a coordinator.
pub fn workers_of(coordinator: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let stat = read("stat");
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if parent == Some(coordinator) && read("cmdline").split('\0').any(|word| word == "worker") {
            found.push(id);
        }
    }
    found
}

/// Waits for a coordinator's workers.
fn await_workers(coordinator: u32) -> Vec<u32> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let workers = workers_of(coordinator);
        if !workers.is_empty() {
            return workers;
        }
        assert!(Instant::now() < until, "no worker came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn signal(process: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(process as i32).unwrap();
    // It may have ended by itself.
    let _ = rustix::process::kill_process(pid, signal);
}

fn kills() -> Option<u64> {
    std::env::var("TACIT_KILLS").ok().map(|count| count.parse().expect("TACIT_KILLS is a number"))
}

#[test]
fn workers_change_no_result() {
    let world = Aligned::new();
    let direct = ["--workers", "3", "--expose", "direct", "--worker-host", "127.0.0.1"];
    for (more, units, at_once) in [
        ([&["--workers", "1"][..], &["--workers", "3"]], 2, 1),
        ([&["--workers", "4"], &["--workers", "3"]], 5, 3),
        ([&direct, &["--workers", "3"]], 5, 3),
    ] {
        let running = [0, 1].map(|i| world.start(NAMES[i], more[i]));
        for done in running.map(Running::end) {
            let report = world.check(done);
            assert_eq!(report["shards"], at_once);
            let workers = &report["workers"];
            assert_eq!((&workers["units"], &workers["processes"]), (&units.into(), &true.into()));
            assert_eq!(workers["failed"].as_array().unwrap().len(), 0, "{workers:#}");
            let peaks = workers["peak_memory_bytes"].as_array().unwrap();
            assert_eq!(peaks.len() as u64, at_once);
            assert!(peaks.iter().all(|peak| peak.as_u64().unwrap() > 1 << 20), "{workers:#}");
        }
    }
}

/// A worker that dies at any moment costs an attempt, and nothing else is done again.
#[test]
fn a_killed_worker_costs_an_attempt() {
    let (world, kills) = (Aligned::new(), kills().unwrap_or(KILLS));
    let mut rng = Seed::from_bytes([9; 32]).into_rng();
    for kill in 0..kills {
        let running = NAMES.map(|name| world.start(name, &["--workers", "3"]));
        let victim = (kill % 2) as usize;
        await_workers(running[victim].id());
        std::thread::sleep(Duration::from_millis(rng.below(400)));
        let workers = workers_of(running[victim].id());
        if let Some(worker) = workers.get(rng.below(3) as usize % workers.len().max(1)) {
            signal(*worker, rustix::process::Signal::KILL);
        }
        let ids = running.each_ref().map(Running::id);
        for done in running.map(Running::end) {
            let report = world.check(done);
            let failed = report["workers"]["failed"].as_array().unwrap();
            // One attempt, or one more where own worker had finished when the peer's was killed: over that
            // lane the next one may have begun.
            assert!(failed.len() <= 2, "{failed:#?}");
        }
        assert!(ids.iter().all(|id| workers_of(*id).is_empty()), "workers end with their coordinator");
    }
}

/// Carries connections to a party, and cuts those after the first ones once they have carried so many bytes.
pub fn cutting_relay(target: String, uncut: u64, cuts: Vec<u64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut carried, mut cuts) = (0, cuts.into_iter());
        for from in listener.incoming().flatten() {
            // Nobody is there yet: who comes here comes again.
            let Ok(to) = TcpStream::connect(&target) else { continue };
            carried += 1;
            let limit = if carried > uncut { cuts.next() } else { None }.unwrap_or(u64::MAX);
            let left = Arc::new(AtomicU64::new(limit));
            for (mut from, mut to) in [(&from, &to), (&to, &from)].map(|(a, b)| (clone(a), clone(b))) {
                let left = left.clone();
                std::thread::spawn(move || {
                    let mut piece = vec![0; 16 << 10];
                    while let Ok(count @ 1..) = from.read(&mut piece) {
                        let before = left.load(Ordering::SeqCst);
                        left.store(before.saturating_sub(count as u64), Ordering::SeqCst);
                        if before < count as u64 || to.write_all(&piece[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        }
    });
    address
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().unwrap()
}

/// Lanes that are cut at any place come up again, and what they carried is computed again.
#[test]
fn lanes_that_are_cut_come_up_again() {
    let (world, rounds) = (Aligned::new(), kills().unwrap_or(KILLS).div_ceil(2));
    let mut rng = Seed::from_bytes([10; 32]).into_rng();
    let mut failed = 0;
    for _ in 0..rounds {
        let cuts = (0..5).map(|_| rng.below(3 << 20)).collect();
        // The first three are the coordinators' own.
        let relay = cutting_relay(world.address(), 3, cuts);
        let workers = ["--workers", "3"];
        let first = world.start(NAMES[0], &workers);
        let second = world.start(NAMES[1], &["--workers", "3", "--peer", &relay]);
        for done in [first, second].map(Running::end) {
            let told = done.stderr.contains("it is computed again");
            let report = world.check(done);
            assert_eq!(told, report["workers"]["failed"] != serde_json::json!([]));
            failed += report["workers"]["failed"].as_array().unwrap().len();
            let said = |name: &str| report["stages"].as_array().unwrap().iter().any(|s| s["name"] == name);
            assert_eq!(said("again"), report["workers"]["failed"] != serde_json::json!([]));
        }
    }
    assert!(failed > 0, "nothing was cut while it carried a unit");
}

/// A worker that says nothing for long is replaced; a coordinator that dies takes its workers with it.
#[test]
fn a_stopped_worker_is_replaced() {
    if kills().is_none() {
        return;
    }
    let world = Aligned::new();
    for victim in 0..2 {
        let running = NAMES.map(|name| world.start(name, &["--workers", "2"]));
        let worker = await_workers(running[victim].id())[0];
        signal(worker, rustix::process::Signal::STOP);
        let begun = Instant::now();
        running.into_iter().for_each(|side| drop(world.check(side.end())));
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    }
}

#[test]
fn workers_end_with_a_coordinator_that_is_killed() {
    let world = Aligned::new();
    let [mut first, second] = NAMES.map(|name| world.start(name, &["--workers", "2"]));
    let mut workers = await_workers(first.id());
    first.kill();
    let done = second.end();
    // It may have had everything that it needs before.
    assert!(done.code == 3 || done.code == 0, "{}", done.stderr);
    let until = Instant::now() + Duration::from_secs(10);
    while !workers.is_empty() && Instant::now() < until {
        let alive = |worker: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with(['Z', 'X']) && !rest.is_empty())
        };
        workers.retain(alive);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(workers.is_empty(), "{workers:?} live on");
}

#[test]
fn a_worker_is_started_by_its_coordinator_alone() {
    let done: Done = command(["worker"]).stdin(std::process::Stdio::null()).output().unwrap().into();
    done.failed(2, &["this command is for `tacit run`", "--workers N"]);
}

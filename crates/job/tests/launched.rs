//! Workers that somebody else starts: they know what they are told, prove the key that was told of them, and
//! change no result. Threads of one process, TLS on loopback, real files.

mod both;
mod parties;

use both::{both, whole};
use job::run::Watch;
use job::workers::{CalledWorker, WorkerCall, WorkerLauncher, WorkerPlace};
use parties::{PartyFile, make_key};
use report::{ResultView, RunReport};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use study::party::PartySetup;
use tempfile::TempDir;

const NAMES: [&str; 2] = ["clinic", "works"];
const HERE: &str = "127.0.0.1";
const ROWS: u32 = 20_000;
const SHARED: u32 = 4_000;

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Fate {
    /// It is said that no worker comes.
    Refused,
    /// Another key is told than the worker has.
    OtherKey,
    /// The worker has ended before it comes.
    Ended,
}

/// Starts workers as threads, the first ones to another end.
struct ThreadLauncher {
    first: Vec<Fate>,
    called: Mutex<Vec<Arc<CalledWorker>>>,
}

impl WorkerLauncher for ThreadLauncher {
    fn door(&self) -> (String, u16) {
        (HERE.into(), 0)
    }

    fn cores(&self) -> usize {
        1
    }

    fn start(&self, WorkerCall { summons, answer, .. }: WorkerCall) -> u64 {
        let worker = Arc::new(CalledWorker::new().unwrap());
        let mut called = self.called.lock().unwrap();
        let number = called.len();
        called.push(worker.clone());
        match self.first.get(number) {
            Some(Fate::Refused) => {
                answer.is_gone("there is no room".into());
                return number as u64;
            }
            Some(Fate::OtherKey) => answer.has_key(&CalledWorker::new().unwrap().key(), HERE).unwrap(),
            Some(Fate::Ended) => {
                worker.stop();
                answer.has_key(&worker.key(), HERE).unwrap();
            }
            None => answer.has_key(&worker.key(), HERE).unwrap(),
        }
        std::thread::spawn(move || {
            if let Err(error) = worker.work(&summons) {
                answer.is_gone(error.to_string());
            }
        });
        number as u64
    }

    fn stop(&self, number: u64) {
        let worker = self.called.lock().unwrap()[number as usize].clone();
        worker.stop();
    }
}

/// Both parties of a study by Private-ID on the lanes of two workers each, and the true answer.
fn owners() -> (TempDir, [PartySetup; 2], u64) {
    let folder = tempfile::tempdir().unwrap();
    let keys = NAMES.map(|name| make_key(folder.path(), name));
    let study = include_str!("../../cli/tests/cli/aligned_pair.toml");
    let study = study.replace("CLINIC", &keys[0]).replace("WORKS", &keys[1]);
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
    let mut names = NAMES.into_iter();
    let parties = PartyFile::pair(folder.path(), NAMES).map(|file| {
        let state = format!("state = \"state-{}\"\nspool = true\nmemory = \"512M\"", names.next().unwrap());
        let file = file.with(&format!("{state}\n[workers]\ncount = 2"));
        file.policy("kinds = [\"program\"]\nallow_exact = true").setup()
    });
    (folder, parties, truth)
}

/// Runs both, and holds their reports against the truth.
fn run(first: Vec<Fate>) -> ([RunReport; 2], usize) {
    let (_folder, parties, truth) = owners();
    let launcher = Arc::new(ThreadLauncher { first, called: Mutex::default() });
    let watch = Watch { workers: WorkerPlace::Launched(launcher.clone()), ..Watch::none() };
    let done = both(&parties, &watch);
    for error in done.iter().filter_map(|done| done.as_ref().err()) {
        eprintln!("{error}");
    }
    let reports = whole(done);
    for report in &reports {
        let ResultView::Program { outputs, .. } = &report.view else { panic!("a program's view") };
        assert_eq!(outputs[0].value, truth.to_string());
        assert!(report.workers.as_ref().is_some_and(|workers| workers.processes));
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
    }
    let called = launcher.called.lock().unwrap().len();
    (reports, called)
}

#[test]
fn launched_workers_change_no_result() {
    let (reports, called) = run(Vec::new());
    for report in &reports {
        assert!(report.workers.as_ref().is_some_and(|workers| workers.failed.is_empty()));
        assert!(report.stages.iter().all(|stage| stage.name != "again"), "{:?}", report.stages);
    }
    // Two for the match and one for the unit of rows, at either party.
    assert_eq!(called, 6);
}

/// A lane whose worker does not come is no unit's failure: another one is called.
#[test]
fn workers_that_do_not_come_are_called_again() {
    let fates = vec![Fate::Refused, Fate::OtherKey, Fate::Ended, Fate::Refused];
    let more = fates.len();
    let (_, called) = run(fates);
    assert!(called >= 6 + more - 1, "{called} were called");
}

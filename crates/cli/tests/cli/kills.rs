//! Kill -9 of a party at any moment of a release, with real processes, files and clocks: every ledger pays for one number, and
//! all see that one.
//!
//! `TACIT_KILLS` is how many times each world is killed; without it few. `TACIT_KILLS_SEED` begins with another one.

use crate::many::Three;
use crate::support::{Done, NAMES, Pair, Running};
use base::Seed;
use privacy::ledger::{Ledger, PUBLIC};
use release::rational::ratio;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Kills of each world in `make test`.
const KILLS: u64 = 4;
/// Runs after a kill until all have the number: one goes on, one more where the first found a connection half closed.
const RUNS: usize = 4;

/// Parties in one folder that can be started.
trait World {
    fn start(&self, party: usize, more: &[&str]) -> Running;
    fn names(&self) -> Vec<&'static str>;
    fn file(&self, name: &str) -> PathBuf;
}

impl World for Pair {
    fn start(&self, party: usize, more: &[&str]) -> Running {
        Running::start(self.run(NAMES[party], more))
    }

    fn names(&self) -> Vec<&'static str> {
        NAMES.to_vec()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path(name)
    }
}

impl World for Three {
    fn start(&self, party: usize, more: &[&str]) -> Running {
        Three::start(self, party, more)
    }

    fn names(&self) -> Vec<&'static str> {
        self.names.to_vec()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path(name)
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

/// Starts all, kills one a while after it began its release, and ends the others.
fn kill(world: &dyn World, victim: usize, after: Duration) -> Vec<Option<Done>> {
    let parties = 0..world.names().len();
    let mut all: Vec<Running> = parties.map(|party| world.start(party, &["--events"])).collect();
    all[victim].hear("\"release\"");
    std::thread::sleep(after);
    all[victim].kill();
    let each = all.into_iter().enumerate();
    each.map(|(party, running)| (party != victim).then(|| running.end())).collect()
}

/// Runs all parties until each has its report.
fn finish(world: &dyn World, what: &str) -> Vec<serde_json::Value> {
    let mut last = Vec::new();
    for _ in 0..RUNS {
        let parties = 0..world.names().len();
        let all: Vec<Running> = parties.map(|party| world.start(party, &["--deadline", "20s"])).collect();
        last = all.into_iter().map(Running::end).collect::<Vec<_>>();
        if last.iter().all(|done| done.code == 0) {
            return last.iter().map(Done::json).collect();
        }
    }
    let words: Vec<&str> = last.iter().map(|done| &*done.stderr).collect();
    panic!("{what}: not one number after {RUNS} runs: {words:#?}");
}

fn killed_anywhere(make: &dyn Fn() -> Box<dyn World>) {
    let first = number("TACIT_KILLS_SEED", 0);
    // How long a release takes here: from when it begins to the end of the process.
    let world = make();
    let parties = 0..world.names().len();
    let mut all: Vec<Running> = parties.map(|party| world.start(party, &["--events"])).collect();
    all[0].hear("\"release\"");
    let began = Instant::now();
    all.into_iter().for_each(|running| _ = running.end().fine());
    let whole = began.elapsed();
    for seed in first..first + number("TACIT_KILLS", KILLS) {
        let world = make();
        let names = world.names();
        let mut rng = Seed::from_bytes([7; 32]).fork(&format!("kill {seed}")).into_rng();
        let victim = rng.below(names.len() as u64) as usize;
        let after = whole.mul_f64(rng.below(1000) as f64 / 1000.0);
        let what = format!("seed {seed}: {} was killed {after:?} after its release began", names[victim]);
        let before = kill(&*world, victim, after);
        let reports = finish(&*world, &what);
        for (report, name) in reports.iter().zip(&names) {
            assert_eq!(report["public"], reports[0]["public"], "{what}");
            assert!(
                report["public"].is_object() && report["privacy"]["attempt"].is_null(),
                "{what}: {report}"
            );
            let ledger = Ledger::open(&world.file(&format!("{name}.ledger"))).unwrap();
            assert_eq!(ledger.spent(name, PUBLIC).unwrap(), ratio(1, 10), "{what}: {name} pays once");
            ledger.verify().unwrap();
        }
        // Who had it before the kill has it still.
        for done in before.into_iter().flatten().filter(|done| done.code == 0) {
            assert_eq!(done.json()["public"], reports[0]["public"], "{what}");
        }
    }
}

#[test]
fn one_of_two_is_killed_anywhere() {
    killed_anywhere(&|| Box::new(Pair::csv(1200)));
}

#[test]
fn one_of_three_is_killed_anywhere() {
    killed_anywhere(&|| Box::new(Three::together()));
}

//! Kill -9 of a party or a server at any moment of a release, with real processes, files and clocks: every
//! ledger pays for one number, and all see that one.
//!
//! `TACIT_KILLS` is how many times each world is killed; without it few. `TACIT_KILLS_SEED` begins with
//! another one.

use crate::many::Three;
use crate::served::Served;
use crate::support::{Done, NAMES, Pair, Running};
use base::Seed;
use privacy::ledger::{Ledger, PUBLIC};
use release::rational::ratio;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Kills of each world in `make test`.
const KILLS: u64 = 4;
/// Runs after a kill until all have the number: one goes on, one more where the first found a connection half
/// closed.
const RUNS: usize = 4;
/// How long a server may take to end after the owners have.
const SERVER_ENDS: Duration = Duration::from_secs(5);

/// Parties in one folder that can be started.
trait World {
    fn start(&self, party: usize, more: &[&str]) -> Running;
    /// Owners, then servers that own nothing.
    fn names(&self) -> Vec<&'static str>;
    fn owners(&self) -> usize {
        self.names().len()
    }
    fn file(&self, name: &str) -> PathBuf;
    /// What is lost besides after this one was killed; in words.
    fn lose(&self, _victim: usize, _rng: &mut base::Rng) -> Option<String> {
        None
    }
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

impl World for Served {
    fn start(&self, party: usize, more: &[&str]) -> Running {
        Served::start(self, party, more)
    }

    fn names(&self) -> Vec<&'static str> {
        Served::names().to_vec()
    }

    fn owners(&self) -> usize {
        Served::OWNERS
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path(name)
    }

    /// The file of one server, every other time: of the one that lacks a share, if there is one, for of four
    /// one may.
    fn lose(&self, victim: usize, rng: &mut base::Rng) -> Option<String> {
        if rng.below(2) == 0 {
            return None;
        }
        let servers = Served::OWNERS..self.names().len();
        let lacks = servers.clone().find(|server| !self.holds(*server));
        let drawn = servers.start + rng.below(servers.len() as u64) as usize;
        let server = lacks.unwrap_or(if victim < servers.start { drawn } else { victim });
        self.lose_share(server);
        Some(format!("{} lost its share", self.names()[server]))
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

fn start_all(world: &dyn World, more: &[&str]) -> Vec<Running> {
    (0..world.names().len()).map(|party| world.start(party, more)).collect()
}

/// What became of all owners that were not killed. Servers that have not ended soon after them were never
/// told to begin.
fn end_all(world: &dyn World, mut all: Vec<Running>) -> Vec<Option<Done>> {
    let servers = all.split_off(world.owners());
    let done = all.into_iter().map(|owner| (!owner.is_killed()).then(|| owner.end())).collect();
    let until = Instant::now() + SERVER_ENDS;
    servers.into_iter().for_each(|server| server.end_until(until));
    done
}

/// Starts all, kills one a while after its release began, and ends the others. A server does not say that it
/// begins.
fn kill(world: &dyn World, victim: usize, after: Duration) -> Vec<Option<Done>> {
    let mut all = start_all(world, &["--events"]);
    all[if victim < world.owners() { victim } else { 0 }].hear("\"release\"");
    std::thread::sleep(after);
    all[victim].kill();
    end_all(world, all)
}

/// Runs all parties until each has its report.
fn finish(world: &dyn World, what: &str) -> Vec<serde_json::Value> {
    let mut last: Vec<Done> = Vec::new();
    for _ in 0..RUNS {
        last = end_all(world, start_all(world, &["--deadline", "20s"])).into_iter().flatten().collect();
        if last.iter().all(|done| done.code == 0) {
            return last.iter().map(Done::json).collect();
        }
    }
    let words: Vec<&str> = last.iter().map(|done| &*done.stderr).collect();
    panic!("{what}: not one number after {RUNS} runs: {words:#?}");
}

/// `often`: kills in `make test`.
fn killed_anywhere(make: &dyn Fn() -> Box<dyn World>, often: u64) {
    let first = number("TACIT_KILLS_SEED", 0);
    // How long a release takes here: from when it begins to the end of the process.
    let world = make();
    let mut all = start_all(&*world, &["--events"]);
    all[0].hear("\"release\"");
    let began = Instant::now();
    end_all(&*world, all).into_iter().flatten().for_each(|done| _ = done.fine());
    let whole = began.elapsed();
    for seed in first..first + number("TACIT_KILLS", often) {
        let world = make();
        let names = world.names();
        let mut rng = Seed::from_bytes([7; 32]).fork(&format!("kill {seed}")).into_rng();
        let victim = rng.below(names.len() as u64) as usize;
        let after = whole.mul_f64(rng.below(1000) as f64 / 1000.0);
        let mut what = format!("seed {seed}: {} was killed {after:?} after its release began", names[victim]);
        let before = kill(&*world, victim, after);
        what.extend(world.lose(victim, &mut rng).map(|lost| format!(", and {lost}")));
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
    killed_anywhere(&|| Box::new(Pair::csv(1200)), KILLS);
}

#[test]
fn one_of_three_is_killed_anywhere() {
    killed_anywhere(&|| Box::new(Three::together()), KILLS / 2);
}

/// Two owners and four headless nodes: any of the six.
#[test]
fn one_of_six_is_killed_anywhere() {
    killed_anywhere(&|| Box::new(Served::new()), KILLS);
}

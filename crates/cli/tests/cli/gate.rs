//! `tacit gate` as a process: two parties whose workers come through it compute what they compute without it.

use crate::support::{Done, Running, command, tacit};
use crate::workers::{Aligned, NAMES, signal};
use serde_json::Value;
use std::path::Path;

/// A gate, and where it is.
struct GateProcess {
    running: Running,
    public: String,
    inside: String,
    key: String,
}

impl GateProcess {
    /// For these coordinators; its key lies in `folder`.
    fn start(folder: &Path, coordinators: &[String]) -> Self {
        let identity = folder.join("gate.key");
        let identity = identity.to_str().unwrap();
        let key = tacit(["keygen", "--json", "--out", identity]).fine().json();
        let mut gate = command(["gate", "--listen", "127.0.0.1:0", "--inside", "127.0.0.1:0", "--json"]);
        gate.args(["--identity", identity]);
        for coordinator in coordinators {
            gate.args(["--coordinator", coordinator]);
        }
        let mut running = Running::start(gate);
        let ready: Value = serde_json::from_str(&running.hear("\"event\":\"ready\"")).unwrap();
        let text = |name: &str| ready[name].as_str().unwrap().to_owned();
        assert_eq!(ready["key"], key["key"]);
        Self { public: text("listen"), inside: text("inside"), key: text("key"), running }
    }

    /// What makes a party come in by it, with so many workers.
    fn flags<'g>(&'g self, workers: &'g str) -> [&'g str; 8] {
        let key = &self.key;
        ["--workers", workers, "--expose", "gate", "--gate", &self.inside, "--gate-key", key]
    }

    /// Ends it; what it said, by line.
    fn end(self) -> Vec<Value> {
        signal(self.running.id(), rustix::process::Signal::TERM);
        let Done { code, stderr, .. } = self.running.end();
        assert_eq!(code, 0, "{stderr}");
        stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The key of a party, as its study has it.
fn key_of(world: &Aligned, name: &str) -> String {
    let study = std::fs::read_to_string(world.path("study.toml")).unwrap();
    let section = study.split(&format!("[party.{name}]")).nth(1).unwrap();
    let line = section.lines().find(|line| line.trim_start().starts_with("key")).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

#[test]
fn workers_come_through_a_gate() {
    let world = Aligned::new();
    let gate = GateProcess::start(&world.path(""), &[key_of(&world, NAMES[0])]);
    let flags = gate.flags("3");
    // The other party knows one address, the gate's.
    let running =
        [world.start(NAMES[0], &flags), world.start(NAMES[1], &["--workers", "3", "--peer", &gate.public])];
    for done in running.map(Running::end) {
        let report = world.check(done);
        assert_eq!(report["shards"], 3);
        assert_eq!(report["workers"]["failed"].as_array().unwrap().len(), 0, "{:#}", report["workers"]);
    }
    let said = gate.end();
    let names = |event: &str| -> Vec<&str> {
        let of = said.iter().filter(|line| line["event"] == event);
        of.map(|line| line["name"].as_str().unwrap().split('.').next().unwrap()).collect()
    };
    for event in ["routed", "carried", "ended"] {
        let lanes = |name: &str| names(event).iter().filter(|said| said.starts_with(name)).count();
        for lane in ["l0-", "l1-", "l2-"] {
            assert!(lanes(lane) >= 1, "{event}: {said:#?}");
        }
        // Control, and a channel for what each side says.
        assert!(lanes("m") >= if event == "routed" { 1 } else { 3 }, "{event}: {said:#?}");
    }
    let rows = said.iter().filter(|line| line["name"].as_str().is_some_and(|name| name.starts_with('l')));
    let bytes: u64 = rows.filter_map(|line| line["bytes"][0].as_u64()).sum();
    assert!(bytes > 4 << 20, "rows were computed over the gate: {said:#?}");
    // Those of lanes have gone before it: each when its lane was up.
    let left = said.iter().find(|line| line["event"] == "left").unwrap();
    assert_eq!(left["routes"], 1, "{said:#?}");
    assert_eq!(said.last().unwrap()["event"], "stopped");
}

#[test]
fn a_gate_takes_the_coordinators_that_it_was_given() {
    let world = Aligned::new();
    let gate = GateProcess::start(&world.path(""), &[key_of(&world, NAMES[1])]);
    let words = ["does not take this party's key: start it with --coordinator", &key_of(&world, NAMES[0])];
    world.start(NAMES[0], &gate.flags("1")).end().failed(3, &words);
    let said = gate.end();
    let refusal = said.iter().find(|line| line["event"] == "refused").unwrap();
    assert!(refusal["why"].as_str().unwrap().contains("add --coordinator"), "{said:#?}");
    assert!(!said.iter().any(|line| line["event"] == "routed"), "{said:#?}");
}

#[test]
fn a_gate_has_no_partys_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("a.key");
    let made = tacit(["keygen", "--json", "--out", key.to_str().unwrap()]).fine().json();
    let mut words = vec!["gate", "--listen", "127.0.0.1:0", "--inside", "127.0.0.1:0", "--identity"];
    words.extend([key.to_str().unwrap(), "--coordinator", made["key"].as_str().unwrap()]);
    tacit(words).failed(2, &["a gate is exposed and must have no party's key"]);
}

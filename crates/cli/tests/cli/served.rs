//! Two owners and four servers as processes: the demo, headless nodes by themselves, and a server that is
//! killed.

use crate::support::parties::{PartyFile, make_key};
use crate::support::{Running, command, tacit};
use base::free_address;
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use rusqlite::Connection;
use serde_json::Value;
use std::path::{Path, PathBuf};
use study::StudyFile;

const SERVERS: [&str; 4] = ["server-1", "server-2", "server-3", "server-4"];

/// What a demo leaves: everybody's files.
struct Left {
    _folder: tempfile::TempDir,
    out: PathBuf,
}

impl Left {
    /// Runs the demo.
    fn by_demo() -> (Self, Value) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("demo");
        // All rows, so that a run is under way when a server dies.
        let words = ["demo", "ring4", "--json", "--out", out.to_str().unwrap()];
        let demo = tacit(words).fine().json();
        (Self { _folder: folder, out }, demo)
    }

    fn start(&self, what: &str, name: &str, more: &[&str]) -> Running {
        let file = self.out.join(format!("{name}.toml"));
        let mut command = command([what.as_ref(), file.as_os_str(), "--json".as_ref()]);
        command.args(more);
        Running::start(command)
    }

    /// As if the study had never run.
    fn forget(&self) {
        for owner in ["registry", "hospitals"] {
            for end in ["ledger", "ledger-wal", "ledger-shm"] {
                let _ = std::fs::remove_file(self.out.join(format!("{owner}.{end}")));
            }
            // A report would say that there was a ledger.
            let _ = std::fs::remove_dir_all(self.out.join(owner));
        }
    }
}

/// A small lift study of two owners and four headless nodes, in one folder.
pub struct Served {
    folder: tempfile::TempDir,
}

impl Served {
    pub const OWNERS: usize = 2;

    /// Owners, then servers.
    pub fn names() -> [&'static str; 6] {
        let [a, b, c, d] = SERVERS;
        ["publisher", "advertiser", a, b, c, d]
    }

    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = LiftOptions {
            rows: 1200,
            overlap: 0.5,
            max_events: 4,
            clamp: 100,
            seed: 7,
            format: FileFormat::Csv,
            files: 1,
        };
        lift(folder.path(), &options, &|_, _| ()).unwrap();
        let keys = Self::names().map(|name| make_key(folder.path(), name));
        let servers: String = SERVERS
            .iter()
            .zip(&keys[2..])
            .map(|(s, key)| format!("[server.{s}]\nkey = \"{key}\"\n"))
            .collect();
        let study = lift_study(&options, &keys[0], &keys[1], false).replacen("\"pid\"", "\"salted-key\"", 1)
            + &servers
            + "[compute]\nengine = \"ring4\"\n";
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        study::salt::create(&folder.path().join("owners.salt")).unwrap();
        let served = Self { folder };
        served.write_parties();
        served
    }

    fn write_parties(&self) {
        let hash = StudyFile::read(&self.path("study.toml")).unwrap().0.hash().full();
        let addresses = [(); 6].map(|()| free_address().unwrap());
        for (i, name) in Self::names().into_iter().enumerate() {
            let file = match i < Self::OWNERS {
                true => PartyFile::owner(self.folder.path(), name)
                    .with("salt = \"owners.salt\"\ndeadline = \"10m\""),
                false => PartyFile::new(self.folder.path(), name).with("deadline = \"20s\""),
            };
            let others = Self::names().into_iter().zip(&addresses).filter(|(other, _)| *other != name);
            file.with(&format!("listen = \"{}\"\ntrigger = {}", addresses[i], i == 0))
                .peers(others.map(|(other, at)| (other, &**at)))
                .policy(&format!("studies = [\"{hash}\"]"))
                .write();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An owner's run, with more flags; a node until it has computed one study.
    pub fn start(&self, party: usize, more: &[&str]) -> Running {
        let file = self.path(&format!("{}.toml", Self::names()[party]));
        if party >= Self::OWNERS {
            return Running::start(command(["serve".as_ref(), file.as_os_str(), "--once".as_ref()]));
        }
        let words = ["run".as_ref(), file.as_os_str(), "--json".as_ref(), "--spend-anyway".as_ref()];
        let mut command = command(words);
        command.args(more);
        Running::start(command)
    }

    fn held(&self, server: usize) -> PathBuf {
        self.path(&format!("{}.key.held", Self::names()[server]))
    }

    /// Whether a server has a share.
    pub fn holds(&self, server: usize) -> bool {
        let count = |c: Connection| c.query_row("SELECT count(*) FROM held", [], |row| row.get::<_, i64>(0));
        self.held(server).exists() && Connection::open(self.held(server)).and_then(count).is_ok_and(|n| n > 0)
    }

    pub fn lose_share(&self, server: usize) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut file = self.held(server).into_os_string();
            file.push(end);
            let _ = std::fs::remove_file(file);
        }
    }
}

fn terminate(running: &Running) {
    let process = rustix::process::Pid::from_raw(running.id() as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
}

/// Sets how many descriptors a process may have; returns how many it could have before.
fn descriptors(running: &Running, most: Option<u64>) -> Option<u64> {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let pid = Pid::from_raw(running.id() as i32);
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current: most, maximum }).unwrap().current
}

/// The events of a node's log.
fn events(log: &str) -> Vec<String> {
    let event = |line: &str| serde_json::from_str::<Value>(line).ok()?["event"].as_str().map(str::to_owned);
    log.lines().filter_map(event).collect()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn four_servers_compute_what_two_owners_share() {
    let (left, demo) = Left::by_demo();
    assert_eq!((&demo["contains_truth"], &demo["engine"]), (&true.into(), &"ring4".into()));
    assert_eq!(demo["headless"], serde_json::json!(SERVERS[1..]));
    assert_eq!(demo["security"], "malicious");
    for (server, joins) in SERVERS.iter().zip([true, true, false, false]) {
        let seen = &demo["servers"][server];
        assert_eq!(seen["price_held"], true, "{seen}");
        assert_eq!(seen["saw"].as_str().unwrap().contains("keyed hashes"), joins, "{seen}");
    }
    let checked = |name: &str| {
        let file = left.out.join(name);
        tacit(["check".as_ref(), file.as_os_str()]).fine().stdout
    };
    assert!(checked("server-2.toml").contains("This server is ready: tacit serve"));
    assert!(checked("study.toml").contains("2 servers that own no data see keyed hashes"));
    let report = read(&left.out.join("hospitals/report.json"));
    assert_eq!(report["servers"]["members"].as_array().unwrap().len(), 4);
    nodes_go_on(&left);
}

/// A node outlives a run that breaks, a killed server is named by all, and a signal ends a node.
fn nodes_go_on(left: &Left) {
    left.forget();
    let mut nodes: Vec<Running> = SERVERS[1..].iter().map(|name| left.start("serve", name, &[])).collect();
    nodes.iter_mut().for_each(|node| drop(node.hear("\"waiting\"")));
    let mut registry = left.start("run", "registry", &["--events"]);
    let others = [left.start("run", "hospitals", &[]), left.start("run", "server-1", &[])];
    registry.hear("\"match\"");
    // One of the others has no descriptor left with which to listen again, for a while.
    let before = descriptors(&nodes[0], Some(3));
    nodes[1].kill();
    for running in [registry].into_iter().chain(others) {
        let done = running.end();
        done.failed(3, &["server-3"]);
        assert_eq!(done.json()["error"]["peer"], "server-3");
    }
    for node in [0, 2] {
        let said = nodes[node].hear("\"failed\"");
        assert!(said.contains("server-3"), "{said}");
        if node == 0 {
            let said = nodes[node].hear("\"closed\"");
            assert!(
                said.contains("for want of file descriptors") && said.contains("tries again in 1 s"),
                "{said}"
            );
            descriptors(&nodes[node], before);
        }
        nodes[node].hear("\"waiting\"");
    }
    // The next run is as if nothing had been.
    nodes[1] = left.start("serve", SERVERS[2], &[]);
    let running = ["registry", "hospitals", "server-1"].map(|name| left.start("run", name, &[]));
    let [registry, hospitals, host] = running.map(|running| running.end().fine().json());
    assert_eq!((&registry["stored"], &hospitals["stored"]), (&false.into(), &false.into()));
    assert_eq!((&host["format"], &host["server"]), (&"tacit-server-report/1".into(), &"server-1".into()));
    for (index, mut node) in nodes.into_iter().enumerate() {
        node.hear("\"done\"");
        node.hear("\"waiting\"");
        terminate(&node);
        let done = node.end().fine();
        let ran = events(&done.stderr);
        assert_eq!(ran.last().map(String::as_str), Some("stopped"), "{ran:?}");
        assert_eq!(ran.iter().filter(|event| *event == "failed").count(), usize::from(index != 1), "{ran:?}");
        assert_eq!(done.json()["format"], "tacit-server-report/1");
    }
}

#[test]
fn a_salt_is_made_for_owners_and_never_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("owners.salt");
    let make = || tacit(["keygen".as_ref(), "--salt".as_ref(), file.as_os_str(), "--json".as_ref()]);
    assert_eq!(make().fine().json()["salt"], file.to_str().unwrap());
    make().failed(2, &["is not overwritten"]);
}

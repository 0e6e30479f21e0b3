//! The participants of studies that four servers compute: threads of one process, TLS on loopback. The data
//! of clinics.
#![allow(dead_code, reason = "each test file uses parts of its own")]

#[path = "../parties/mod.rs"]
pub mod parties;

use base::Error;
use base::free_address;
use data::generate::{FileFormat, LiftOptions, lift};
use job::prepare::Opened;
use job::run::{Event, ServerReport, Watch, compute_study, run};
use parties::{PartyFile, make_key};
use privacy::ledger::Ledger;
use report::{ResultView, RunReport};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use study::party::{PartySettings, PartySetup, ServerSetup};
use study::{Study, StudyFile};
use tempfile::TempDir;

pub const ALIGNED: &str = include_str!("../../../../examples/aligned.toml");
pub const SERVERS: [&str; 4] = ["ash", "birch", "cedar", "elm"];

/// The participants of a study in a folder of theirs.
pub struct World {
    pub folder: TempDir,
    pub owners: Vec<String>,
    /// Servers that own nothing.
    pub servers: Vec<String>,
    pub addresses: BTreeMap<String, String>,
}

impl World {
    /// Writes `study` with a key for everybody: `@NAME` stands for the key of NAME.
    pub fn new(folder: TempDir, owners: &[&str], servers: &[&str], study: &str) -> Self {
        let mut text = study.to_owned();
        let mut addresses = BTreeMap::new();
        for name in owners.iter().chain(servers) {
            let key = make_key(folder.path(), name);
            text = text.replace(&format!("@{name}\""), &format!("{key}\""));
            addresses.insert((*name).to_owned(), free_address().unwrap());
        }
        assert!(!text.contains('@'), "{text}");
        std::fs::write(folder.path().join("study.toml"), text).unwrap();
        study::salt::create(&folder.path().join("owners.salt")).unwrap();
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self { owners: own(owners), servers: own(servers), addresses, folder }
    }

    pub fn study(&self) -> Study {
        StudyFile::read(&self.folder.path().join("study.toml")).unwrap().0.only().unwrap()
    }

    /// The file of a participant at its address, with everybody else's.
    fn met(&self, file: PartyFile, name: &str, more: &str) -> PartyFile {
        let others = self.addresses.iter().filter(|(peer, _)| *peer != name);
        file.with(&format!("listen = \"{}\"\n{more}", self.addresses[name]))
            .peers(others.map(|(peer, at)| (&**peer, &**at)))
            .policy("kinds = [\"lift\", \"program\"]\nallow_exact = true\nmax_rho = 60\nbudget = 100")
            .policy(&format!("studies = [\"{}\"]", self.study().hash().full()))
    }

    pub fn settings(&self, name: &str, more: &str) -> PartySettings {
        self.met(PartyFile::new(self.folder.path(), name), name, more).settings()
    }

    pub fn owner(&self, name: &str, more: &str) -> PartySetup {
        self.met(PartyFile::owner(self.folder.path(), name), name, more).setup()
    }

    pub fn owners(&self, more: &str) -> Vec<PartySetup> {
        self.owners.iter().map(|name| self.owner(name, more)).collect()
    }

    pub fn nodes(&self) -> Vec<ServerSetup> {
        self.nodes_with("")
    }

    /// All servers that own nothing, with more lines in their files.
    pub fn nodes_with(&self, more: &str) -> Vec<ServerSetup> {
        self.servers.iter().map(|name| self.settings(name, more).complete_node().unwrap()).collect()
    }

    pub fn entries(&self, owner: &str) -> usize {
        let ledger = Ledger::open(&self.folder.path().join(format!("{owner}.ledger"))).unwrap();
        ledger.entries().unwrap().len()
    }
}

pub type Ran = (Vec<Result<RunReport, Error>>, Vec<Result<ServerReport, Error>>);

/// Everybody runs the study once.
pub fn all(owners: &[PartySetup], nodes: &[ServerSetup], watch: impl Fn(&str) -> Watch + Sync) -> Ran {
    let watch = &watch;
    std::thread::scope(|scope| {
        let start = |party| scope.spawn(move || run(party, &watch(&party.as_party)));
        let owners: Vec<_> = owners.iter().map(start).collect();
        let start = |node: &'_ ServerSetup| {
            let node = node.clone();
            scope.spawn(move || compute_study(&node, opened(&node)?, &watch(&node.name)))
        };
        let nodes: Vec<_> = nodes.iter().map(start).collect();
        let owners = owners.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::misuse("it died"))));
        let owners = owners.collect();
        let nodes = nodes.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::misuse("it died"))));
        (owners, nodes.collect())
    })
}

pub fn quiet(_: &str) -> Watch {
    Watch::none()
}

pub fn whole((owners, servers): Ran) -> (Vec<RunReport>, Vec<ServerReport>) {
    let owners = owners.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect();
    (owners, servers.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect())
}

pub const CLINICS: [&str; 3] = ["east", "north", "west"];
pub const DISTRICTS: usize = 300;

/// Cases of a clinic group in a district.
pub fn cases(group: usize, district: usize) -> u64 {
    (district as u64 * [7, 11, 13][group] + 3 * group as u64) % 60
}

pub fn total(district: usize) -> u64 {
    (0..3).map(|group| cases(group, district)).sum()
}

/// The clinics' files: the same districts, in an order and a spelling of each group's own.
pub fn write_clinics(folder: &Path) {
    for (group, name) in CLINICS.iter().enumerate() {
        let column = if *name == "west" { "patients" } else { "cases" };
        let row = |i: usize| {
            let district = (i * [1, 7, 11][group]) % DISTRICTS;
            format!("{}{district:03},{}\n", [" D", "d", "D"][group], cases(group, district))
        };
        let rows: String = (0..DISTRICTS).map(row).collect();
        let file = folder.join(format!("{name}.csv"));
        std::fs::write(file, format!("district,{column}\n{rows}")).unwrap();
    }
}

/// Three owners with their own orders of the same districts. With `shared` the first server is an owner.
pub fn clinics(shared: bool, edit: &dyn Fn(String) -> String) -> World {
    let folder = TempDir::new().unwrap();
    let mut study = ALIGNED.to_owned();
    for (name, digit) in CLINICS.iter().zip(["1", "2", "3"]) {
        study = study.replace(&format!("\"tacit1:{}\"", digit.repeat(32)), &format!("\"@{name}\""));
    }
    let servers: Vec<&str> = if shared { SERVERS[1..].to_vec() } else { SERVERS.to_vec() };
    let mut sections: String = servers.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
    if shared {
        sections += "[server.north]\n";
    }
    let (head, _) = study.split_once("[compute]").unwrap();
    let study = edit(format!("{head}{sections}[compute]\nengine = \"ring4\"\n"));
    write_clinics(folder.path());
    World::new(folder, &CLINICS, &servers, &study)
}

/// What a party of the clinics' program is shown.
pub fn outputs(report: &RunReport) -> (Vec<String>, Vec<String>, Option<String>) {
    let ResultView::Program { outputs, lists, .. } = &report.view else { panic!("a program view") };
    let values = outputs.iter().map(|output| output.value.clone()).collect();
    let keys = lists.iter().flat_map(|list| list.keys.clone()).collect();
    (values, keys, outputs.iter().find_map(|output| output.key.clone()))
}

pub fn check_clinics(reports: &[RunReport]) {
    let hits: Vec<usize> = (0..DISTRICTS).filter(|d| total(*d) > 99).collect();
    let worst = *hits.iter().max_by_key(|d| (total(**d), std::cmp::Reverse(**d))).unwrap();
    let (sum, count): (u64, _) = ((0..DISTRICTS).map(total).sum(), hits.len().to_string());
    let name = |d: &usize| format!("d{d:03}");
    let [east, north, west] = [0, 1, 2].map(|i| outputs(&reports[i]));
    assert_eq!(east.0, [sum.to_string(), count.clone()]);
    assert_eq!((north.0, north.1), (vec![count], hits.iter().map(name).collect()));
    assert_eq!((&*west.0[0], west.2), ("1", Some(name(&worst))));
}

/// The people of lift studies that servers compute.
pub const PEOPLE: LiftOptions = LiftOptions {
    rows: 3000,
    overlap: 0.6,
    max_events: 4,
    clamp: 100,
    seed: 5,
    format: FileFormat::Csv,
    files: 1,
};

/// A lift study by keyed hashes; without noise worth the name. Its true lift.
pub fn trial(edit: &dyn Fn(String) -> String) -> (World, f64) {
    let folder = TempDir::new().unwrap();
    let made = lift(folder.path(), &PEOPLE, &|_, _| ()).unwrap();
    std::fs::rename(&made.publisher, folder.path().join("publisher.csv")).unwrap();
    std::fs::rename(&made.advertiser, folder.path().join("advertiser.csv")).unwrap();
    let base = data::generate::lift_study(&PEOPLE, "@publisher", "@advertiser", false);
    let (before, rest) = base.split_once("protocol = \"pid\"").expect("a protocol");
    let base = format!("{before}protocol = \"salted-key\"{rest}");
    let servers: String = SERVERS.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
    let study = edit(format!("{base}\n{servers}[compute]\nengine = \"ring4\"\n"));
    (World::new(folder, &["publisher", "advertiser"], &SERVERS, &study), made.truth.lift())
}

pub const SALTED: &str = "salt = \"owners.salt\"";

pub fn off(report: &RunReport, truth: f64) -> f64 {
    let ResultView::Lift(view) = &report.view else { panic!("a lift view") };
    let estimate = view.cells[0].estimate.as_ref().expect("large enough groups");
    (estimate.lift - truth).abs() / estimate.standard_error
}

/// A watch that dies when a stage begins.
pub fn dies(at: &'static str) -> Watch {
    let events = move |event: Event| {
        if matches!(&event, Event::Stage { name, .. } if name == at) {
            panic!("killed on purpose");
        }
    };
    Watch { events: Arc::new(events), ..Watch::none() }
}

/// A server's study and key.
#[allow(dead_code, reason = "not every test calls a server by itself")]
pub fn opened(node: &ServerSetup) -> Result<Opened, Error> {
    Opened::new(StudyFile::read(&node.studies[0])?, &node.name, &node.identity)
}

//! Two parties of a study, whose result all may publish unless a test says otherwise: threads of one process,
//! TLS on loopback, real files.
#![allow(dead_code, reason = "each test file uses parts of its own")]

#[path = "../both/mod.rs"]
mod threads;

#[path = "../parties/mod.rs"]
pub mod parties;

use base::Error;
use job::run::Watch;
use parties::{PartyFile, make_key};
use privacy::ledger::Ledger;
use report::{ResultView, RunReport};
use rusqlite::Connection;
use std::path::PathBuf;
use study::party::PartySetup;
use tempfile::TempDir;
pub use threads::{both, whole};

pub const NAMES: [&str; 2] = ["clinic", "works"];
const EXAMPLE: &str = include_str!("../../../../examples/program.toml");

/// Both parties in a folder.
pub struct World {
    pub folder: TempDir,
    /// As the study names them.
    pub keys: [String; 2],
    pub study: String,
    pub budget: &'static str,
    pub total: &'static str,
    /// More lines of each party's policy.
    pub policy: [&'static str; 2],
    /// Each party's identity, without its extension.
    pub identities: [&'static str; 2],
}

/// The example's study with these keys.
pub fn example(keys: &[String; 2]) -> String {
    EXAMPLE
        .replace("tacit1:00112233445566778899aabbccddeeff", &keys[0])
        .replace("tacit1:ffeeddccbbaa99887766554433221100", &keys[1])
}

/// The same study under another title is another one.
pub fn titled(study: &str, title: &str) -> String {
    let at = study.find("\ntitle").expect("the example has a title") + 1;
    let end = at + study[at..].find('\n').expect("a line");
    format!("{}title = \"{title}\"{}", &study[..at], &study[end..])
}

impl World {
    /// With a public result.
    pub fn new() -> Self {
        Self::of(|keys| {
            example(keys)
                .replace("gaussian clinic", "gaussian public")
                .replace(" clinic \"", " public \"")
                .replace("[release.to.clinic]", "[release.public]")
        })
    }

    /// Of a study of the parties' keys.
    pub fn of(study: impl Fn(&[String; 2]) -> String) -> Self {
        let folder = TempDir::new().unwrap();
        let keys = NAMES.map(|name| make_key(folder.path(), name));
        let clinic: String = (0..60).map(|i| format!("p{i},{}\n", ["ill", "healthy"][i % 2])).collect();
        std::fs::write(folder.path().join("clinic.csv"), format!("person,diagnosis\n{clinic}")).unwrap();
        let study = study(&keys);
        let world = Self { folder, keys, study, budget: "5", total: "5", policy: [""; 2], identities: NAMES };
        world.data_of_works(0);
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn data_of_works(&self, more: u32) {
        let rows: String = (20..90 + more).map(|i| format!("p{i},{}\n", i % 60)).collect();
        std::fs::write(self.path("works.csv"), format!("person,exposed_days\n{rows}")).unwrap();
    }

    pub fn ledger(&self, party: usize) -> Ledger {
        Ledger::open(&self.path(&format!("{}.ledger", NAMES[party]))).unwrap()
    }

    pub fn raw(&self, party: usize) -> Connection {
        Connection::open(self.path(&format!("{}.ledger", NAMES[party]))).unwrap()
    }

    pub fn parties(&self) -> [PartySetup; 2] {
        self.parties_of(&self.study)
    }

    pub fn parties_of(&self, study: &str) -> [PartySetup; 2] {
        std::fs::write(self.path("study.toml"), study).unwrap();
        let [first, second] = PartyFile::pair(self.folder.path(), NAMES);
        [(0, first), (1, second)].map(|(i, file)| {
            let (name, identity) = (NAMES[i], self.identities[i]);
            let lines =
                format!("identity = \"{identity}.key\"\nlineage = \"data-{name}\"\ndeadline = \"20s\"");
            let bounds = format!("budget = {}\ntotal = {}\n{}", self.budget, self.total, self.policy[i]);
            let file = file.with(&lines).policy("kinds = [\"program\"]").policy(&bounds);
            file.settings().complete().unwrap()
        })
    }

    pub fn run(&self) -> [Result<RunReport, Error>; 2] {
        both(&self.parties(), &Watch::none())
    }

    pub fn retitle(&mut self, title: &str) {
        self.study = titled(&self.study, title);
    }

    /// A run in which a party stops before it writes to a table.
    pub fn cut(&self, party: usize, table: &str, when: &str) -> [Result<RunReport, Error>; 2] {
        drop(self.ledger(party));
        let cut = format!(
            "CREATE TRIGGER cut BEFORE INSERT ON {table} {when} BEGIN SELECT RAISE(ABORT, 'gone'); END"
        );
        self.raw(party).execute_batch(&cut).unwrap();
        let done = self.run();
        self.raw(party).execute_batch("DROP TRIGGER cut").unwrap();
        done
    }

    /// Debits of releases that count, at a party.
    pub fn charged(&self, party: usize) -> i64 {
        drop(self.ledger(party));
        let sql =
            "SELECT count(*) FROM debits WHERE tau IS NOT NULL AND row NOT IN (SELECT debit FROM voids)";
        self.raw(party).query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub fn allow(&self, party: usize) {
        self.ledger(party).allow(&self.keys[1 - party], None, "looked into").unwrap();
    }
}

pub fn values(report: &RunReport) -> Vec<String> {
    let Some(ResultView::Program { outputs, .. }) = &report.public else { panic!("a public result") };
    outputs.iter().map(|output| output.value.clone()).collect()
}

//! Two parties of a study whose result all may publish: threads of one process, TLS on loopback, real files.
#![allow(dead_code, reason = "each test file uses parts of its own")]

use base::Error;
use job::run::{Watch, run};
use net::identity::Identity;
use privacy::ledger::Ledger;
use report::{Report, View};
use rusqlite::Connection;
use std::path::PathBuf;
use study::party::{Party, PartySettings};
use tempfile::TempDir;

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

impl World {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let keys = NAMES.map(|name| {
            let identity = Identity::generate().unwrap();
            identity.save(&folder.path().join(format!("{name}.key"))).unwrap();
            identity.fingerprint().to_string()
        });
        let study = EXAMPLE
            .replace("gaussian clinic", "gaussian public")
            .replace(" clinic \"", " public \"")
            .replace("[release.to.clinic]", "[release.public]")
            .replace("tacit1:00112233445566778899aabbccddeeff", &keys[0])
            .replace("tacit1:ffeeddccbbaa99887766554433221100", &keys[1]);
        let clinic: String = (0..60).map(|i| format!("p{i},{}\n", ["ill", "healthy"][i % 2])).collect();
        std::fs::write(folder.path().join("clinic.csv"), format!("person,diagnosis\n{clinic}")).unwrap();
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

    pub fn parties(&self) -> [Party; 2] {
        std::fs::write(self.path("study.toml"), &self.study).unwrap();
        let at = base::free_address().unwrap();
        let sides = [format!("listen = \"{at}\""), format!("peer = \"{at}\"")];
        [0, 1].map(|i| {
            let name = NAMES[i];
            let text = format!(
                "study = \"study.toml\"\nas = \"{name}\"\nidentity = \"{}.key\"\ndata = \"{name}.csv\"\n{}\n\
                 ledger = \"{name}.ledger\"\nreport = \"out-{name}\"\ndeadline = \"20s\"\nlineage = \"data-{name}\"\n\
                 [policy]\nkinds = [\"program\"]\nbudget = {}\ntotal = {}\n{}\n",
                self.identities[i], sides[i], self.budget, self.total, self.policy[i]
            );
            let file = self.path(&format!("{name}.toml"));
            std::fs::write(&file, text).unwrap();
            PartySettings::read(&file).unwrap().complete().unwrap()
        })
    }

    pub fn run(&self) -> [Result<Report, Error>; 2] {
        let parties = self.parties();
        std::thread::scope(|scope| {
            let threads = parties.each_ref().map(|p| scope.spawn(move || run(p, &Watch::none())));
            threads.map(|t| t.join().unwrap())
        })
    }

    /// The same study under another title is another one.
    pub fn retitle(&mut self, title: &str) {
        let at = self.study.find("\ntitle").expect("the example has a title") + 1;
        let end = at + self.study[at..].find('\n').expect("a line");
        self.study.replace_range(at..end, &format!("title = \"{title}\""));
    }

    /// A run in which a party stops before it writes to a table.
    pub fn cut(&self, party: usize, table: &str, when: &str) -> [Result<Report, Error>; 2] {
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

pub fn whole(done: [Result<Report, Error>; 2]) -> [Report; 2] {
    done.map(|done| done.unwrap_or_else(|e| panic!("{e}")))
}

pub fn values(report: &Report) -> Vec<String> {
    let Some(View::Program { outputs, .. }) = &report.public else { panic!("a public result") };
    outputs.iter().map(|output| output.value.clone()).collect()
}

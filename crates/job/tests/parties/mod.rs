//! What every test of a run, in this crate and in `cli`, needs of its participants: a key of each, and its
//! party file as people write it. A new setting is known here alone.
#![allow(dead_code, reason = "each test file uses parts of its own")]

use net::identity::Identity;
use std::path::{Path, PathBuf};
use study::party::{Consent, PartySettings, PartySetup, ServerSetup};

/// Makes an identity `NAME.key` in a folder; its key.
pub fn make_key(folder: &Path, name: &str) -> String {
    let identity = Identity::generate().unwrap();
    identity.save(&folder.join(format!("{name}.key"))).unwrap();
    identity.fingerprint().to_string()
}

/// A party file in the making, `NAME.toml` in a folder with the study and everybody's files.
pub struct PartyFile {
    path: PathBuf,
    lines: String,
    peers: String,
    policy: String,
}

impl PartyFile {
    /// Of a participant without data.
    pub fn new(folder: &Path, name: &str) -> Self {
        let lines = format!(
            "study = \"study.toml\"\nas = \"{name}\"\nidentity = \"{name}.key\"\ndeadline = \"60s\"\n"
        );
        let path = folder.join(format!("{name}.toml"));
        Self { path, lines, peers: String::new(), policy: String::new() }
    }

    /// Of an owner of `NAME.csv`.
    pub fn owner(folder: &Path, name: &str) -> Self {
        Self::new(folder, name).with(&format!(
            "data = \"{name}.csv\"\nledger = \"{name}.ledger\"\nlineage = \"{name}\"\nreport = \
             \"out-{name}\""
        ))
    }

    /// Two owners, of whom the first waits for the other.
    pub fn pair(folder: &Path, names: [&str; 2]) -> [Self; 2] {
        let at = base::free_address().unwrap();
        let [first, second] = names.map(|name| Self::owner(folder, name));
        [first.with(&format!("listen = \"{at}\"")), second.with(&format!("peer = \"{at}\""))]
    }

    /// With more lines; one whose key is there already takes its place.
    pub fn with(mut self, lines: &str) -> Self {
        for line in lines.lines() {
            let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
            let others = self.lines.lines().filter(|other| key(other) != key(line));
            self.lines = others.chain([line]).map(|line| format!("{line}\n")).collect();
        }
        self
    }

    /// With the addresses of these peers.
    pub fn peers<'p>(mut self, peers: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        peers.into_iter().for_each(|(name, at)| self.peers += &format!("{name} = \"{at}\"\n"));
        self
    }

    /// With lines of a policy.
    pub fn policy(mut self, lines: &str) -> Self {
        self.policy += lines;
        self.policy.push('\n');
        self
    }

    /// Writes the file.
    pub fn write(&self) {
        let mut text = self.lines.clone();
        for (section, lines) in [("peers", &self.peers), ("policy", &self.policy)] {
            if !lines.is_empty() {
                text += &format!("[{section}]\n{lines}");
            }
        }
        std::fs::write(&self.path, text).unwrap();
    }

    /// Writes the file and reads it.
    pub fn settings(&self) -> PartySettings {
        self.write();
        PartySettings::read(&self.path).unwrap()
    }

    /// The settings of an owner, who spends whatever a test asks for.
    pub fn setup(&self) -> PartySetup {
        let consent = Consent { spend_anyway: true, ..Consent::default() };
        PartySetup { consent, ..self.settings().complete().unwrap() }
    }

    /// The settings of a server.
    pub fn server(&self) -> ServerSetup {
        self.settings().complete_node().unwrap()
    }
}

/// Numbers without a pattern between columns.
pub fn mixed(i: u64, column: u64) -> u64 {
    let mut x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ column.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..3 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    x >> 20
}

//! The demo's folder: data, keys, the study both hold, and a party file for each.

use super::{PARTIES, market, ring4};
use base::Error;
use base::free_address;
use data::generate::{self, Generated};
use net::Identity;
use std::path::{Path, PathBuf};
use study::{Study, StudyFile};
use terminal::output;

/// Marks a folder as made by a demo, so that the next one may replace it.
const MARK: &str = ".tacit-demo";
/// The study, but for the keys.
const STUDY: &str = include_str!("../../../../examples/lift.toml");
/// Everything is a function of it.
const SEED: u64 = 1954;

/// A folder that belongs to a demo.
pub struct Folder {
    path: PathBuf,
    parties: &'static [&'static str],
}

/// The parties of every demo: a folder of one may be taken by another.
const EVERYBODY: [&[&str]; 3] = [&PARTIES, &market::PARTIES, &ring4::PARTIES];

/// What a demo runs on.
pub struct Made {
    pub generated: Generated,
    pub study: Study,
}

impl Made {
    /// The true difference of means.
    pub fn truth(&self) -> f64 {
        self.generated.truth.lift()
    }
}

impl Folder {
    /// Takes a folder that is new, empty or made by a demo before; clears the demo's own files.
    ///
    /// # Errors
    /// When the folder holds anything else.
    pub fn claim(path: &Path, parties: &'static [&'static str]) -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::io(format!("cannot use the folder {}", path.display()), &e);
        std::fs::create_dir_all(path).map_err(failed)?;
        let folder = Self { path: path.to_owned(), parties };
        let empty = std::fs::read_dir(path).map_err(failed)?.next().is_none();
        if !empty && !folder.file(MARK).exists() {
            return Err(Error::input(format!(
                "{} holds files that no demo made; name another folder with --out",
                path.display()
            )));
        }
        std::fs::write(folder.file(MARK), "Made by `tacit demo`, which makes it anew when it runs again.\n")
            .map_err(failed)?;
        folder.clear().map_err(failed)?;
        Ok(folder)
    }

    /// Removes what demos make, of any kind, and nothing else: they share the study's file.
    fn clear(&self) -> std::io::Result<()> {
        let gone = |done: std::io::Result<()>| match done {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        };
        gone(std::fs::remove_file(self.study()))?;
        gone(std::fs::remove_file(self.file(ring4::SALT)))?;
        for party in EVERYBODY.concat() {
            for end in ["csv", "key", "toml", "ledger", "ledger-wal", "ledger-shm", "ledger-journal"] {
                gone(std::fs::remove_file(self.file(&format!("{party}.{end}"))))?;
            }
            for report in ["report.json", "report.html"] {
                gone(std::fs::remove_file(self.report(party).join(report)))?;
            }
            // One that holds more than reports stays.
            let _ = std::fs::remove_dir(self.report(party));
        }
        Ok(())
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The study that all parties hold.
    pub fn study(&self) -> PathBuf {
        self.file("study.toml")
    }

    /// A party's settings.
    pub fn party_file(&self, party: &str) -> PathBuf {
        self.file(&format!("{party}.toml"))
    }

    /// A party's report folder.
    pub fn report(&self, party: &str) -> PathBuf {
        self.file(party)
    }

    /// Makes data, keys, study and party files. `scale`: one child in so many.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn fill(&self, scale: u64) -> Result<Made, Error> {
        let generated = polio(self, scale)?;
        let study = self.agree(STUDY)?;
        let address = free_address()?;
        for (party, side) in PARTIES.into_iter().zip(["listen", "peer"]) {
            output::write_file(&self.party_file(party), party_text(party, side, &address).as_bytes())?;
        }
        Ok(Made { generated, study })
    }

    /// A key for every party, and the study with them in place of those of an example.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn agree(&self, example: &str) -> Result<Study, Error> {
        let mut keys = Vec::new();
        for party in self.parties {
            let identity = Identity::generate()?;
            identity.save(&self.file(&format!("{party}.key")))?;
            keys.push(identity.fingerprint().to_string());
        }
        let text = with_keys(example, &keys)?;
        output::write_file(&self.study(), text.as_bytes())?;
        StudyFile::read(&self.study())?.0.only()
    }
}

/// The data of the trial. `scale`: one child in so many.
///
/// # Errors
/// When a file cannot be written.
pub fn polio(folder: &Folder, scale: u64) -> Result<Generated, Error> {
    generate::polio_thinned(&folder.path, SEED, scale)
}

/// The study with the parties' keys in place of those of the example.
fn with_keys(study: &str, keys: &[String]) -> Result<String, Error> {
    let mut keys = keys.iter();
    let mut line = |line: &str| match line.starts_with("key ") {
        true => keys.next().map_or_else(|| line.to_owned(), |key| format!("key  = \"{key}\"")),
        false => line.to_owned(),
    };
    let text: Vec<String> = study.lines().map(&mut line).collect();
    match keys.next() {
        None => Ok(text.join("\n") + "\n"),
        Some(_) => Err(Error::misuse("the example study names fewer keys than the demo has parties")),
    }
}

fn party_text(party: &str, side: &str, address: &str) -> String {
    format!(
        "# The settings of {party} in the demo; see docs/cli.md. Rerun it: tacit run, once for each party.\n\
         study    = \"study.toml\"\nas       = \"{party}\"\nidentity = \"{party}.key\"\ndata     = \
         \"{party}.csv\"\n\
         {side:8} = \"{address}\"\nledger   = \"{party}.ledger\"\nlineage  = \"{party}\"\nreport   = \
         \"{party}\"\ndeadline = \"2m\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_of_the_demo_holds_its_keys_in_order() {
        let keys = ["1", "2"].map(|d| format!("tacit1:{}", d.repeat(32)));
        let text = with_keys(STUDY, &keys).unwrap();
        let study = Study::parse("study.toml", &text).unwrap();
        let of = |name: &str| study.member(name).unwrap().key.clone();
        assert_eq!([of("registry"), of("hospitals")], keys);
        assert!(with_keys("", &keys).is_err());
    }

    #[test]
    fn a_folder_with_other_files_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        assert!(Folder::claim(folder.path(), &PARTIES).is_err());
        let own = folder.path().join("own");
        assert!(Folder::claim(&own, &PARTIES).is_ok());
        std::fs::write(own.join("registry.ledger"), "spent").unwrap();
        std::fs::write(own.join("notes.txt"), "kept").unwrap();
        for party in PARTIES {
            std::fs::create_dir(own.join(party)).unwrap();
            std::fs::write(own.join(party).join("report.json"), "{}").unwrap();
        }
        std::fs::write(own.join("hospitals/notes.txt"), "kept").unwrap();
        // Another demo, too, takes the place of all of the one before.
        assert!(Folder::claim(&own, &market::PARTIES).is_ok());
        assert!(!own.join("registry.ledger").exists() && own.join("notes.txt").exists());
        assert!(!own.join("registry").exists() && own.join("hospitals/notes.txt").exists());
    }

    #[test]
    fn party_files_parse() {
        for (party, side) in [("registry", "listen"), ("hospitals", "peer")] {
            let text = party_text(party, side, "127.0.0.1:7000");
            let settings = study::party::PartySettings::parse("party.toml", &text).unwrap();
            assert!(settings.complete().is_ok());
        }
    }
}

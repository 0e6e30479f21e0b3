//! A study file: who agrees on it, and the runs that it asks for.

use super::party::is_party_file;
use super::{Participant, Server, Study, StudyHash, parse, reader};
use base::{Error, limits};
use std::path::Path;

/// A study file, read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFile {
    /// Everybody who agrees on it, in the order of the roster.
    pub parties: Vec<Participant>,
    /// One study for those who run together: a single one, or of a lift study with several advertisers apart
    /// one of the publisher with each, in the order of the advertisers. There is always one.
    pub runs: Vec<Study>,
}

impl From<Study> for StudyFile {
    fn from(study: Study) -> Self {
        Self { parties: study.parties.clone(), runs: vec![study] }
    }
}

impl StudyFile {
    /// Reads and checks the text of a study file; `file` is its name in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        parse::file(reader::TomlSource { file, text })
    }

    /// Reads and checks a study file; also returns its text, for a comparison with the peer's.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than [`limits::STUDY_BYTES`], is not UTF-8 or does not parse.
    pub fn read(path: &Path) -> Result<(Self, String), Error> {
        let text = read_text(path)?;
        Ok((Self::parse(&path.display().to_string(), &text)?, text))
    }

    /// The first run. Its name, title, match, engine and servers are those of all.
    #[must_use]
    pub fn first(&self) -> &Study {
        self.runs.first().expect("a study file asks for a run")
    }

    /// The run of a file that asks for one.
    ///
    /// # Errors
    /// When it asks for several.
    pub fn only(mut self) -> Result<Study, Error> {
        match (self.runs.pop(), self.runs.len()) {
            (Some(study), 0) => Ok(study),
            (study, others) => Err(Error::input(format!(
                "the study {} asks for {} runs, one of the publisher with each advertiser, and this is for \
                 studies of one",
                study.map(|study| study.name).unwrap_or_default(),
                others + 1
            ))),
        }
    }

    /// The runs that the party of this name takes part in.
    pub fn runs_of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Study> {
        self.runs.iter().filter(move |run| run.member(name).is_some())
    }

    /// The party with this name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Participant> {
        self.parties.iter().find(|member| member.name == name)
    }

    /// The server of this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.first().server(name)
    }

    /// The hash of all that the file says.
    #[must_use]
    pub fn hash(&self) -> StudyHash {
        StudyHash::of(&self.parties, &self.runs)
    }
}

/// A study or party file as text.
///
/// # Errors
/// When it cannot be read, is larger than [`limits::STUDY_BYTES`] or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    use std::io::Read;
    let shown = path.display();
    if path.is_dir() {
        return Err(Error::input(format!("{shown} is a folder; name a file in it{}", settings_in(path))));
    }
    let file = std::fs::File::open(path).map_err(|e| Error::reading(format!("cannot open {shown}"), &e))?;
    let mut bytes = Vec::new();
    let cap = limits::STUDY_BYTES as u64;
    let read = file.take(cap + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::io(format!("cannot read {shown}"), &e))?;
    if bytes.len() as u64 > cap {
        return Err(Error::input(format!("{shown}: larger than {cap} bytes; is it the right file?")));
    }
    String::from_utf8(bytes).map_err(|e| {
        let offset = e.utf8_error().valid_up_to();
        Error::input(format!("{shown}: not UTF-8 at byte {offset}; save it as UTF-8"))
    })
}

/// The files of a folder that may be meant, to stand behind an error.
fn settings_in(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| path.display().to_string())
        .collect();
    files.sort_unstable();
    if files.is_empty() { String::new() } else { format!(": {}", files.join(", ")) }
}

/// Refuses a party file where a study file is expected.
///
/// # Errors
/// When it is one.
pub fn expect_study(path: &Path) -> Result<(), Error> {
    match std::fs::read_to_string(path) {
        Ok(text) if is_party_file(&text) => Err(Error::input(format!(
            "{} is a party file; a study file is expected here: name the one after `study` in it",
            path.display()
        ))),
        _ => Ok(()),
    }
}

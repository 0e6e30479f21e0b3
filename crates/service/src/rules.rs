//! Which text of `service.toml` holds: the one that was accepted last. A file that was changed since then, or
//! that does not parse, changes nothing until somebody accepts it, by a page or by `tacit service accept`.

use crate::changes::RulesChange;
use crate::settings::{HouseSettings, RulesFile};
use crate::store::Store;
use base::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

/// How often the file is looked at, in seconds.
const LOOK_SECONDS: u64 = 30;

/// What stands between the file and what holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RulesStanding {
    /// The file was accepted.
    Accepted,
    /// Nothing was ever accepted: the pages follow the file, and no study could begin.
    Never,
    /// The file says something else than what was accepted.
    Changed,
    /// The file does not parse, or is not there.
    Broken,
}

impl RulesStanding {
    /// What every page says about it.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        match self {
            Self::Accepted => None,
            Self::Never => Some(
                "Nobody has accepted service.toml yet. Read what it allows, then run on the machine: tacit \
                 service accept."
                    .to_owned(),
            ),
            Self::Changed => Some(
                "service.toml was changed and nobody has accepted the change: what was accepted before \
                 holds. Read the change on the page Rules, or on the machine: tacit service accept."
                    .to_owned(),
            ),
            Self::Broken => {
                // A page is not for all who may see paths and names in the file.
                Some(
                    "service.toml cannot be read, and what was accepted before holds. On the machine, tacit \
                     service check says what is wrong."
                        .to_owned(),
                )
            }
        }
    }
}

/// What holds now.
#[derive(Clone, Debug)]
pub struct RulesNow {
    /// What was accepted; where nothing ever was, what the file said when the service began.
    pub settings: Arc<HouseSettings>,
    /// How the file stands to that.
    pub standing: RulesStanding,
    looked: u64,
}

/// The rules, looked at anew while the service runs.
pub struct Rules {
    path: PathBuf,
    now: RwLock<RulesNow>,
}

impl Rules {
    /// Reads the file, which must parse, and what was accepted of it.
    ///
    /// # Errors
    /// What is wrong with the file or with the text that was accepted.
    pub fn open(path: &Path, file: RulesFile, store: &Store, now: u64) -> Result<Self, Error> {
        let rules = look(path, Ok(file), store)?;
        let (settings, standing) = rules;
        Ok(Self { path: path.to_owned(), now: RwLock::new(RulesNow { settings, standing, looked: now }) })
    }

    /// What holds, at most [`LOOK_SECONDS`] old.
    #[must_use]
    pub fn now(&self, store: &Store, now: u64) -> RulesNow {
        let held = self.now.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        if now.saturating_sub(held.looked) < LOOK_SECONDS {
            return held;
        }
        self.look(store, now)
    }

    /// What holds, looked at anew.
    pub fn look(&self, store: &Store, now: u64) -> RulesNow {
        let held = self.now.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let (settings, standing) = match look(&self.path, RulesFile::read(&self.path), store) {
            Ok(found) => found,
            Err(_) => (held.settings, RulesStanding::Broken),
        };
        let found = RulesNow { settings, standing, looked: now };
        *self.now.write().unwrap_or_else(std::sync::PoisonError::into_inner) = found.clone();
        found
    }
}

/// Writes changed rules into the file: beside it, and renamed. Nothing is written where it has them already.
///
/// # Errors
/// When the file holds something else than what was accepted, or cannot be written.
pub fn write(path: &Path, change: &RulesChange) -> Result<(), Error> {
    let there = study::read_text(path)?;
    if there == change.after {
        return Ok(());
    }
    if there != change.before {
        return Err(Error::refused(
            "service.toml was changed on the machine and nobody has accepted that: accept it, or take it \
             back, first",
        ));
    }
    let failed = |e: std::io::Error| Error::io(format!("cannot write {}", path.display()), &e);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    beside.write_all(change.after.as_bytes()).map_err(failed)?;
    let mode = std::fs::metadata(path).map_err(failed)?.permissions();
    beside.as_file().set_permissions(mode).map_err(failed)?;
    beside.as_file().sync_all().map_err(failed)?;
    beside.persist(path).map_err(|e| failed(e.error))?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn look(
    path: &Path,
    file: Result<RulesFile, Error>,
    store: &Store,
) -> Result<(Arc<HouseSettings>, RulesStanding), Error> {
    let Some(accepted) = store.accepted()? else {
        return file.map(|file| (Arc::new(file.settings), RulesStanding::Never));
    };
    let settings = match &file {
        Ok(file) if file.hash() == accepted.hash => file.settings.clone(),
        _ => RulesFile::parse(path, &accepted.text)?,
    };
    let standing = match file {
        Ok(file) if file.hash() == accepted.hash => RulesStanding::Accepted,
        Ok(_) => RulesStanding::Changed,
        Err(_) => RulesStanding::Broken,
    };
    Ok((Arc::new(settings), standing))
}

//! Which text of `service.toml` holds: the one that was accepted last. A file that was changed since then, or
//! that does not parse, changes nothing until somebody accepts it by `tacit service accept`.

use crate::settings::{HouseSettings, RulesFile};
use crate::store::Store;
use base::Error;
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
                 holds. On the machine: tacit service accept."
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
        let (settings, standing) = match look(&self.path, RulesFile::read(&self.path), store) {
            Ok(found) => found,
            Err(_) => (held.settings, RulesStanding::Broken),
        };
        let found = RulesNow { settings, standing, looked: now };
        *self.now.write().unwrap_or_else(std::sync::PoisonError::into_inner) = found.clone();
        found
    }
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

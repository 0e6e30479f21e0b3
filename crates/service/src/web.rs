//! The page: one process, TLS 1.3 alone, no script needed. What a person asks for is decided and done by
//! ordinary functions on threads that may wait; only connections are asynchronous.

mod answer;
mod buckets;
mod certificate;
mod checking;
mod door;
mod events;
mod guard;
mod listen;
mod pages;
mod shell;
#[cfg(test)]
mod tests;
mod visit;
mod weighing;

pub use listen::{Listening, listen};

use crate::passwords::PasswordDesk;
use crate::rules::{Rules, RulesNow};
use crate::settings::RulesFile;
use crate::store::Store;
use base::Error;
use buckets::Buckets;
use checking::Checking;
use weighing::Weighing;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// All that a running service has.
pub struct House {
    store: Arc<Store>,
    rules: Rules,
    desk: PasswordDesk,
    buckets: Buckets,
    checking: Checking,
    weighing: Weighing,
    pulse: events::Pulse,
    path: PathBuf,
}

impl House {
    /// Opens what `service.toml` names.
    ///
    /// # Errors
    /// What is wrong with the file, or the store.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = RulesFile::read(path)?;
        let store = Store::open(&file.settings.store)?;
        let rules = Rules::open(path, file, &store, now())?;
        Ok(Self {
            store: Arc::new(store),
            rules,
            desk: PasswordDesk::open()?,
            buckets: Buckets::default(),
            checking: Checking::default(),
            weighing: Weighing::default(),
            pulse: events::Pulse::default(),
            path: path.to_owned(),
        })
    }

    /// What holds now.
    #[must_use]
    pub fn rules(&self) -> RulesNow {
        self.rules.now(&self.store, now())
    }
}

/// Seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

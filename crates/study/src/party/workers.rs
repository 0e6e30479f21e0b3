//! How many workers a party has, and how the peer's workers come to them.

use crate::reader::TomlItem;
use base::{Error, limits};
use clap::Args;
use std::path::Path;

/// Keys of `[workers]`, and flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct WorkerSettings {
    /// Worker processes that compute at once, each on a core; the fewer of both sides counts. Without it: as
    /// many as this machine has cores, as processes where there is enough to do
    #[arg(long = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub count: Option<u16>,
    /// How the peer's workers come in where this party listens: by its one port, or each to a port of its own
    #[arg(long, value_name = "HOW", value_parser = Expose::parse)]
    pub expose: Option<Expose>,
    /// With --expose direct: the name or address of this machine that the peer's workers connect to
    #[arg(long, value_name = "HOST")]
    pub worker_host: Option<String>,
}

/// How the peer's workers come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expose {
    /// By the port at which the parties meet.
    #[default]
    Port,
    /// Each worker has a port of its own.
    Direct,
}

impl Expose {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "port" => Ok(Self::Port),
            "direct" => Ok(Self::Direct),
            _ => Err(format!("unknown way '{text}'; use \"port\" or \"direct\"")),
        }
    }
}

/// A party's workers, with nothing missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerSetup {
    /// How many; none for as many as there are cores.
    pub count: Option<u16>,
    /// The host at which each worker awaits its peer; none where they come by the party's port.
    pub host: Option<String>,
}

impl WorkerSettings {
    /// # Errors
    /// When workers await their peers at no host.
    pub(super) fn complete(self) -> Result<WorkerSetup, Error> {
        let host = match (self.expose.unwrap_or_default(), self.worker_host) {
            (Expose::Port, None) => None,
            (Expose::Direct, Some(host)) => Some(host),
            (Expose::Direct, None) => {
                return Err(Error::input(
                    "expose = \"direct\" needs the name or address of this machine that the peer's workers \
                     connect to: add host = \"...\" under [workers], or --worker-host",
                ));
            }
            (Expose::Port, Some(_)) => {
                return Err(Error::input(
                    "a worker host is for expose = \"direct\"; by default workers come in at `listen`",
                ));
            }
        };
        Ok(WorkerSetup { count: self.count, host })
    }
}

/// Reads `[workers]` where these settings say nothing yet.
pub(super) fn read(to: &mut super::PartySettings, item: &TomlItem<'_, '_>, _: &Path) -> Result<(), Error> {
    let section = item.section(&["count", "expose", "host"])?;
    if let Some(item) = section.get("count") {
        let count = item.integer(1..=u64::from(limits::WORKERS))?;
        to.workers.count.get_or_insert(count as u16);
    }
    if let Some(item) = section.get("expose") {
        let expose = item.parsed(Expose::parse)?;
        to.workers.expose.get_or_insert(expose);
    }
    if let Some(item) = section.get("host") {
        let host = item.text()?.to_owned();
        to.workers.worker_host.get_or_insert(host);
    }
    Ok(())
}

//! How many workers a party has, and how the peer's workers come to them.

use crate::reader::TomlItem;
use base::{Error, limits};
use clap::Args;
use net::KeyFingerprint;
use net::gate::GateAccess;
use std::path::Path;

/// Keys of `[workers]`, and flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct WorkerSettings {
    /// Worker processes that compute at once, each on a core; the fewer of both sides counts. Without it: as
    /// many as this machine has cores, as processes where there is enough to do
    #[arg(long = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub count: Option<u16>,
    /// How the peer's workers come in where this party listens: by its one port ("port"), each to a port of
    /// its own ("direct"), or all through a gate, which then is the only open port ("gate")
    #[arg(long, value_name = "HOW", value_parser = Expose::parse)]
    pub expose: Option<Expose>,
    /// With --expose direct: the name or address of this machine that the peer's workers connect to; with
    /// gate: that the gate connects to, where it is not the one that this machine reaches the gate from
    #[arg(long, value_name = "HOST")]
    pub worker_host: Option<String>,
    /// With --expose gate: where coordinators register with it, its --inside address
    #[arg(long, value_name = "HOST:PORT", value_parser = super::host_and_port)]
    pub gate: Option<String>,
    /// With --expose gate: the key that it proves
    #[arg(long, value_name = "KEY", value_parser = gate_key)]
    pub gate_key: Option<KeyFingerprint>,
}

fn gate_key(text: &str) -> Result<KeyFingerprint, String> {
    text.parse().map_err(|e: Error| e.to_string())
}

/// How the peer's workers come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expose {
    /// By the port at which the parties meet.
    #[default]
    Port,
    /// Each worker has a port of its own.
    Direct,
    /// Through `tacit gate`.
    Gate,
}

impl Expose {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "port" => Ok(Self::Port),
            "direct" => Ok(Self::Direct),
            "gate" => Ok(Self::Gate),
            _ => Err(format!("unknown way '{text}'; use \"port\", \"direct\" or \"gate\"")),
        }
    }
}

/// A party's workers, with nothing missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerSetup {
    /// How many; none for as many as there are cores.
    pub count: Option<u16>,
    /// The host at which each worker awaits its peer; none where they come by the party's port or a gate.
    pub host: Option<String>,
    /// The gate through which peers come in.
    pub gate: Option<GateAccess>,
}

impl WorkerSettings {
    /// Of a party that listens, or not.
    ///
    /// # Errors
    /// When workers await their peers at no host, or there is no gate.
    pub(super) fn complete(self, listens: bool) -> Result<WorkerSetup, Error> {
        let expose = self.expose.unwrap_or_default();
        if expose != Expose::Gate && (self.gate.is_some() || self.gate_key.is_some()) {
            return Err(Error::input(
                "a gate is for expose = \"gate\": add it under [workers], or --expose gate; or remove gate \
                 and gate_key",
            ));
        }
        let mut setup = WorkerSetup { count: self.count, ..WorkerSetup::default() };
        match (expose, self.worker_host) {
            (Expose::Port, None) => {}
            (Expose::Direct, Some(host)) => setup.host = Some(host),
            (Expose::Direct, None) => {
                return Err(Error::input(
                    "expose = \"direct\" needs the name or address of this machine that the peer's workers \
                     connect to: add host = \"...\" under [workers], or --worker-host",
                ));
            }
            (Expose::Port, Some(_)) => {
                return Err(Error::input(
                    "a worker host is for expose = \"direct\" or \"gate\"; by default workers come in at \
                     `listen`",
                ));
            }
            (Expose::Gate, host) => {
                let (Some(address), Some(key)) = (self.gate, self.gate_key) else {
                    return Err(Error::input(
                        "expose = \"gate\" needs the gate's inside address and the key that it prints: add \
                         gate = \"gate.internal:7002\" and gate_key = \"tacit1:...\" under [workers], or \
                         --gate and --gate-key",
                    ));
                };
                if !listens {
                    return Err(Error::input(
                        "expose = \"gate\" is for the party that listens: add listen = \"0.0.0.0:7000\", or \
                         remove it; a party that connects needs no open port",
                    ));
                }
                setup.gate = Some(GateAccess { address, key, host });
            }
        }
        Ok(setup)
    }
}

/// Reads `[workers]` where these settings say nothing yet.
pub(super) fn read(to: &mut super::PartySettings, item: &TomlItem<'_, '_>, _: &Path) -> Result<(), Error> {
    let section = item.section(&["count", "expose", "host", "gate", "gate_key"])?;
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
    if let Some(item) = section.get("gate") {
        let gate = item.parsed(super::host_and_port)?;
        to.workers.gate.get_or_insert(gate);
    }
    if let Some(item) = section.get("gate_key") {
        let key = item.parsed(gate_key)?;
        to.workers.gate_key.get_or_insert(key);
    }
    Ok(())
}

//! Two parties, each a process of its own on a core of its own, and what is said of them.

use super::party::{PartyJob, PartyMeasurement, PartyTask, TlsKeys, Work};
use super::rows::PairEngine;
use super::{PARTIES, matches::ProtocolName, names, verdict};
use crate::names::TransportName;
use base::Error;
use net::Identity;
use net::relay::Relay;
use page::numbers::{bytes, count, duration, scaled};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;
use terminal::follow::Children;
use terminal::machine;
use terminal::progress::{Board, ProgressLine};

/// The JSON of `tacit bench yao|lift|match --json`.
#[derive(Debug, Serialize)]
pub struct PairSummary {
    pub what: &'static str,
    pub engine: Option<PairEngine>,
    pub protocol: Option<ProtocolName>,
    pub transport: String,
    pub shards: u32,
    pub k: u32,
    /// What makes the OTs; gmw only.
    pub ot: Option<String>,
    /// Whether every party had a core of its own.
    pub core_each: bool,
    pub rows: u64,
    pub seconds: f64,
    pub rows_per_s: f64,
    pub and_per_s: f64,
    /// Application bytes of all parties over the rows of one side.
    pub bytes_per_row: f64,
    /// Correlated OTs in both directions; gmw only.
    pub cots_per_row: Option<f64>,
    pub bytes: u64,
    pub peak_memory_bytes: BTreeMap<String, u64>,
    pub cpu_seconds: BTreeMap<String, f64>,
    /// Rows of both sides without repeats; `match` only.
    pub union: Option<u64>,
    /// Of the group, by both parties, over the rows of one side; `match` only.
    pub multiplications_per_row: Option<f64>,
    /// Columns of 64 bits that each side brings; `match` by a protocol that joins to shares.
    pub columns: Option<u8>,
    pub correct: bool,
}

impl PairSummary {
    /// What every measurement of parties says.
    pub fn new(
        what: &'static str,
        rows: u64,
        names: &[&str],
        parties: &[PartyMeasurement],
        correct: bool,
    ) -> Self {
        // The party that connects comes last and waits for nobody.
        let seconds = parties.last().map_or(0.0, |party| party.seconds);
        let bytes: u64 = parties.iter().map(|party| party.bytes_sent).sum();
        let by_party = || names.iter().map(|name| (*name).to_owned()).zip(parties);
        Self {
            what,
            engine: None,
            protocol: None,
            transport: "none".to_owned(),
            shards: 1,
            k: names::K,
            ot: None,
            core_each: names.len() < 2 || core_each().is_some(),
            rows,
            seconds,
            rows_per_s: rows as f64 / seconds,
            and_per_s: 0.0,
            bytes_per_row: bytes as f64 / rows as f64,
            cots_per_row: None,
            bytes,
            peak_memory_bytes: by_party().map(|(name, party)| (name, party.peak_memory_bytes)).collect(),
            cpu_seconds: by_party().map(|(name, party)| (name, party.cpu_seconds)).collect(),
            union: None,
            multiplications_per_row: None,
            columns: None,
            correct,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let PairSummary { rows, seconds, rows_per_s, and_per_s, bytes_per_row, .. } = self;
        let mut lines = vec![format!(
            "{} rows in {}: {} rows/s over {}",
            count(*rows),
            duration(*seconds),
            scaled(*rows_per_s),
            self.transport
        )];
        if *and_per_s > 0.0 {
            lines.push(format!("  {} AND/s", scaled(*and_per_s)));
        }
        if let Some((cots, ot)) = self.cots_per_row.zip(self.ot.as_ref()) {
            lines.push(format!("  {cots} correlated OTs per row by {ot}"));
        }
        lines.push(format!("  {bytes_per_row:.1} bytes per row, both parties ({})", bytes(self.bytes)));
        for (name, peak) in &self.peak_memory_bytes {
            let cpu = self.cpu_seconds.get(name).copied().unwrap_or_default();
            lines.push(format!("  {name:12} {cpu:>8.2} CPU s   peak memory {}", bytes(*peak)));
        }
        if let Some(union) = self.union {
            lines.push(format!("  union of both sides: {} rows", count(union)));
        }
        if let Some(products) = self.multiplications_per_row {
            lines.push(format!("  {products:.2} multiplications of the group per row, both parties"));
        }
        if !self.core_each {
            lines.push("  note: both parties shared one core".to_owned());
        }
        lines.push(verdict(self.correct));
        lines.join("\n")
    }
}

/// Starts a process of one party.
pub fn start(children: &mut Children, name: &str, job: &PartyJob) -> Result<(), Error> {
    let task =
        serde_json::to_string(job).map_err(|e| Error::misuse(format!("a task does not serialise: {e}")))?;
    children.start(name, &["bench", "party", "--json", &task].map(OsStr::new))
}

/// Runs both parties, over TLS where there are keys, each on a core of its own where they are given.
pub fn measure(
    work: &Work,
    secrets: Option<&[TlsKeys]>,
    cores: Option<[usize; 2]>,
    delay: Duration,
    board: Option<&Board>,
) -> Result<Vec<PartyMeasurement>, Error> {
    let mut children = Children::default();
    let task = |party: u8, peer| {
        let at = usize::from(party);
        let tls = secrets.map(|keys| keys[at].clone());
        PartyJob::Two(Box::new(PartyTask {
            work: work.clone(),
            party,
            peer,
            tls,
            core: cores.map(|c| c[at]),
        }))
    };
    start(&mut children, PARTIES[0], &task(0, None))?;
    let address = children.until(|_, line| match line {
        ProgressLine::Waiting { text } => Some(text.clone()),
        _ => None,
    })?;
    let (peer, _relay) = path(&address, delay)?;
    start(&mut children, PARTIES[1], &task(1, Some(peer)))?;
    // Both report the same progress: one is enough.
    children.finish(|index, line| board.filter(|_| index == 1).iter().for_each(|board| board.show(line)))
}

/// The address of a path to `target` that delays every byte; without delay there is no relay.
pub fn path(target: &str, delay: Duration) -> Result<(String, Option<Relay>), Error> {
    if delay.is_zero() {
        return Ok((target.to_owned(), None));
    }
    let at = target.parse().map_err(|_| Error::misuse(format!("{target} is no address")))?;
    let relay = Relay::spawn("127.0.0.1:0", at, delay, 0)?;
    Ok((relay.address.to_string(), Some(relay)))
}

/// Two cores, where this machine has them to give.
pub fn core_each() -> Option<[usize; 2]> {
    match machine::cores()[..] {
        [first, second, ..] => Some([first, second]),
        _ => None,
    }
}

/// A folder for what a measurement leaves; gone with this value.
pub fn folder() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(|e| Error::io("cannot make a temporary folder", &e))
}

/// Keys of this measurement only, one per name, where parties meet over TLS.
pub fn keys(transport: TransportName, names: &[&str], folder: &Path) -> Result<Option<Vec<TlsKeys>>, Error> {
    if !transport.meets_by_tls() {
        return Ok(None);
    }
    let identities = names.iter().map(|_| Identity::generate()).collect::<Result<Vec<_>, Error>>()?;
    let fingerprints: Vec<_> = identities.iter().map(|identity| identity.fingerprint().to_string()).collect();
    let saved = names.iter().zip(&identities).map(|(name, key)| {
        let identity = folder.join(name);
        key.save(&identity)?;
        Ok(TlsKeys { identity, fingerprints: fingerprints.clone() })
    });
    saved.collect::<Result<_, Error>>().map(Some)
}

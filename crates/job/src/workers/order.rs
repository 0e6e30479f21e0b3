//! What coordinator and worker say to each other: a worker that is a thread hears it as it is, one that is a
//! process as frames ([`super::frames`]).

use super::match_units::MatchWork;
use crate::stages::compute::UnitRows;
use base::Error;
use net::{KeyFingerprint, Traffic};
use serde::{Deserialize, Serialize};
use std::net::TcpStream;
use units::FailureCause;
use zeroize::Zeroizing;

/// What a worker is to do. It does one thing after the other.
pub(crate) enum WorkerOrder {
    /// Make a key for the next connection of its lane.
    Door {
        /// Which connection of the lane it is.
        generation: u32,
    },
    /// Connect, with the key that was made last.
    Connect {
        /// Which connection of the lane it is.
        generation: u32,
        /// What the peer's worker has to prove.
        peer: KeyFingerprint,
        /// How.
        way: LaneWay,
    },
    /// Make an attempt at a unit.
    Start { at: UnitAttempt, work: Box<UnitWork> },
    /// Leave the lane, if there is one. Who says so has cut it before ([`net::lanes::LaneCutter`]).
    Drop,
}

/// An attempt at a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitAttempt {
    /// Of which stage.
    pub stage: u8,
    pub unit: u32,
    pub attempt: u32,
}

/// What a worker does at it.
pub(crate) enum UnitWork {
    /// It computes on rows.
    Rows(UnitRows),
    /// It does a unit of the match.
    Match(Box<MatchWork>),
}

/// How a worker comes to its lane.
pub(crate) enum LaneWay {
    /// It goes to this address.
    Dial(String),
    /// The peer's worker came to this party's port.
    Take(TcpStream),
    /// The peer's worker comes to an address of its own.
    Await,
}

/// What a worker tells.
pub(crate) enum WorkerEvent {
    /// It has a key.
    Door {
        generation: u32,
        fingerprint: KeyFingerprint,
        /// The port at which it awaits the peer's worker, if it does so itself.
        port: Option<u16>,
    },
    /// Its lane is there.
    Up { generation: u32 },
    /// Its lane is gone, or did not come about.
    Down { generation: u32, cause: FailureCause, error: Error },
    /// It is there, and so far with its unit.
    Beat(WorkerBeat),
    /// It has this party's result of a unit; both have the same transcript, where there is one.
    Finished { at: UnitAttempt, session: [u8; 32], transcript: [u8; 32], work: FinishedWork },
    /// It has not.
    GaveUp { at: UnitAttempt, cause: FailureCause, error: Error, traffic: Traffic },
    /// It is no more.
    Gone { error: Error },
}

/// A unit's result.
pub(crate) struct FinishedWork {
    /// As [`engine::Shares::to_bytes`] has them; of a match, what it made, as JSON.
    pub shares: Zeroizing<Vec<u8>>,
    /// What was said over the lane for it.
    pub traffic: Traffic,
}

impl FinishedWork {
    /// As it is kept: bytes of what was said (4, little endian), that as JSON, the shares.
    pub fn to_object(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let traffic = serde_json::to_vec(&self.traffic);
        let traffic = traffic.map_err(|e| Error::misuse(format!("no result to keep: {e}")))?;
        let len = (traffic.len() as u32).to_le_bytes();
        Ok(Zeroizing::new([&len[..], &traffic, &self.shares].concat()))
    }

    /// What [`Self::to_object`] made; none of anything else.
    pub fn from_object(bytes: &[u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (traffic, shares) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let traffic = serde_json::from_slice(traffic).ok()?;
        Some(Self { shares: Zeroizing::new(shares.to_vec()), traffic })
    }
}

/// How far a worker has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerBeat {
    /// Rows of its current unit that are done.
    pub rows: u64,
    /// The largest resident memory of its process, in bytes.
    pub peak_memory: u64,
}

/// Why a unit failed, by the error that says so.
pub(crate) fn cause_of(error: &Error) -> FailureCause {
    use base::Fault;
    match error.kind() {
        Fault::Channel(_) => FailureCause::LaneCut,
        Fault::Malformed(_) | Fault::Deviated(_) => FailureCause::Deviation,
        Fault::Io(_) => FailureCause::Store,
        _ => FailureCause::Stopped,
    }
}

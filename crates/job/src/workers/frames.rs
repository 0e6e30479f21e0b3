//! Orders and events as bytes, between a coordinator and a worker that is a process of its own: a frame is
//! its length (4 bytes, little endian), a tag and fields in order. Both ends are one program of one party, so
//! that a frame that decodes to nothing is a fault of ours; its length is bounded all the same.

use super::match_units::MatchUnitTold;
use super::order::{FinishedWork, UnitAttempt, WorkerBeat, WorkerEvent};
use base::{Accusation, At, ChannelError, Error, Fault};
use net::{KeyFingerprint, Traffic};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use units::FailureCause;
use zeroize::Zeroizing;

/// Bytes of a frame: shares of a unit, lists of bits among them.
const FRAME_BYTES: usize = 1 << 30;

/// What a coordinator says to a worker process: [`super::order::WorkerOrder`] without what travels on the
/// other socket, which is a stream and rows.
#[derive(Serialize, Deserialize)]
pub(crate) enum OrderFrame {
    Door {
        generation: u32,
    },
    Connect {
        generation: u32,
        peer: [u8; 16],
        way: WayFrame,
    },
    /// So many rows are served.
    Start {
        at: UnitAttempt,
        rows: u64,
    },
    /// A unit of the match.
    Match {
        at: UnitAttempt,
        unit: Box<MatchUnitTold>,
    },
    /// Cuts the lane at once, whatever the worker is doing.
    Drop,
}

/// How a worker comes to its lane.
#[derive(Serialize, Deserialize)]
pub(crate) enum WayFrame {
    Dial(String),
    /// The socket comes next over the other stream.
    Take,
    Await,
}

/// What a worker process says.
#[derive(Serialize, Deserialize)]
enum EventFrame {
    Door {
        generation: u32,
        fingerprint: [u8; 16],
        port: Option<u16>,
    },
    Up {
        generation: u32,
    },
    Down {
        generation: u32,
        cause: u8,
        error: ErrorFrame,
    },
    Beat {
        rows: u64,
        peak_memory: u64,
    },
    /// The shares come next, as a frame of their own.
    Finished {
        at: UnitAttempt,
        session: [u8; 32],
        transcript: [u8; 32],
        traffic: Traffic,
    },
    GaveUp {
        at: UnitAttempt,
        cause: u8,
        error: ErrorFrame,
        traffic: Traffic,
    },
    Gone {
        error: ErrorFrame,
    },
}

/// An error with its place, so that what a worker found is worded and counted as if its coordinator had.
#[derive(Serialize, Deserialize)]
struct ErrorFrame {
    party: String,
    peer: Option<String>,
    step: String,
    kind: FaultFrame,
    accused: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
enum FaultFrame {
    Closed,
    Cut,
    Deadline(u64),
    Channel(String),
    Malformed(String),
    Deviated(String),
    Misuse(String),
    Input(String),
    Refused(String),
    Io(String),
    Limit(String, u64, u64),
}

impl ErrorFrame {
    fn of(error: &Error) -> Self {
        let At { party, peer, step } = error.at().clone();
        let kind = match error.kind() {
            Fault::Channel(ChannelError::Closed) => FaultFrame::Closed,
            Fault::Channel(ChannelError::Cut) => FaultFrame::Cut,
            Fault::Channel(ChannelError::Deadline { limit_ms }) => FaultFrame::Deadline(*limit_ms),
            Fault::Channel(ChannelError::Io(text)) => FaultFrame::Channel(text.clone()),
            Fault::Malformed(what) => FaultFrame::Malformed((*what).to_owned()),
            Fault::Deviated(check) => FaultFrame::Deviated((*check).to_owned()),
            Fault::Misuse(text) => FaultFrame::Misuse(text.clone()),
            Fault::Refused(text) => FaultFrame::Refused(text.clone()),
            Fault::Io(text) => FaultFrame::Io(text.clone()),
            Fault::Limit { name, value, cap } => FaultFrame::Limit((*name).to_owned(), *value, *cap),
            // Worded as it is shown.
            _ => FaultFrame::Input(error.to_string()),
        };
        let accused = error.accusation().map(|accusation| accusation.accused.clone());
        Self { party, peer, step, kind, accused }
    }

    fn into_error(self) -> Error {
        let Self { party, peer, step, kind, accused } = self;
        // Names of checks are constants of this program; a run that ends by one keeps its few bytes.
        let constant = |text: String| -> &'static str { text.leak() };
        let kind = match kind {
            FaultFrame::Closed => Fault::Channel(ChannelError::Closed),
            FaultFrame::Cut => Fault::Channel(ChannelError::Cut),
            FaultFrame::Deadline(limit_ms) => Fault::Channel(ChannelError::Deadline { limit_ms }),
            FaultFrame::Channel(text) => Fault::Channel(ChannelError::Io(text)),
            FaultFrame::Malformed(what) => Fault::Malformed(constant(what)),
            FaultFrame::Deviated(check) => Fault::Deviated(constant(check)),
            FaultFrame::Misuse(text) => Fault::Misuse(text),
            FaultFrame::Input(text) => Fault::Input(text),
            FaultFrame::Refused(text) => Fault::Refused(text),
            FaultFrame::Io(text) => Fault::Io(text),
            FaultFrame::Limit(name, value, cap) => Fault::Limit { name: constant(name), value, cap },
        };
        let (by, at) = (party.clone(), step.clone());
        let error = Error::new(At { party, peer, step }, kind);
        match accused {
            Some(accused) => error.accusing(Accusation { by, accused, step: at, through: None }),
            None => error,
        }
    }
}

/// Writes a frame.
///
/// # Errors
/// When the other end is gone.
pub(crate) fn write_frame(stream: &mut UnixStream, bytes: &[u8]) -> Result<(), Error> {
    let gone = |e: std::io::Error| Error::io("the other end of a worker's socket is gone", &e);
    if bytes.len() > FRAME_BYTES {
        return Err(Error::limit("FRAME_BYTES", bytes.len() as u64, FRAME_BYTES as u64));
    }
    let whole = Zeroizing::new([&(bytes.len() as u32).to_le_bytes(), bytes].concat());
    stream.write_all(&whole).map_err(gone)
}

/// The next frame; none at the end of the stream.
///
/// # Errors
/// When it is cut off or too long.
pub(crate) fn read_frame(stream: &mut UnixStream) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    let gone = |e: std::io::Error| Error::io("a worker's socket ended within a frame", &e);
    let mut len = [0; 4];
    match stream.read_exact(&mut len) {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        done => done.map_err(gone)?,
    }
    let len = u32::from_le_bytes(len) as usize;
    if len > FRAME_BYTES {
        return Err(Error::limit("FRAME_BYTES", len as u64, FRAME_BYTES as u64));
    }
    let mut bytes = Zeroizing::new(vec![0; len]);
    stream.read_exact(&mut bytes).map_err(gone)?;
    Ok(Some(bytes))
}

/// A value as one frame.
///
/// # Errors
/// As [`write_frame`].
pub(crate) fn write_value(stream: &mut UnixStream, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_vec(value).map_err(|e| Error::misuse(format!("no frame: {e}")))?;
    write_frame(stream, &Zeroizing::new(text))
}

/// The next value; none at the end of the stream.
///
/// # Errors
/// When it is cut off, or no such value.
pub(crate) fn read_value<T: for<'a> Deserialize<'a>>(stream: &mut UnixStream) -> Result<Option<T>, Error> {
    let Some(bytes) = read_frame(stream)? else { return Ok(None) };
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|e| Error::misuse(format!("a frame of another version of tacit: {e}")))
}

/// Tells the coordinator.
///
/// # Errors
/// When it is gone.
pub(crate) fn write_event(stream: &mut UnixStream, event: WorkerEvent) -> Result<(), Error> {
    let frame = match event {
        WorkerEvent::Door { generation, fingerprint, port } => {
            EventFrame::Door { generation, fingerprint: fingerprint.bytes(), port }
        }
        WorkerEvent::Up { generation } => EventFrame::Up { generation },
        WorkerEvent::Down { generation, cause, error } => {
            EventFrame::Down { generation, cause: cause.number(), error: ErrorFrame::of(&error) }
        }
        WorkerEvent::Beat(WorkerBeat { rows, peak_memory }) => EventFrame::Beat { rows, peak_memory },
        WorkerEvent::Finished { at, session, transcript, work } => {
            let FinishedWork { shares, traffic } = work;
            write_value(stream, &EventFrame::Finished { at, session, transcript, traffic })?;
            return write_frame(stream, &shares);
        }
        WorkerEvent::GaveUp { at, cause, error, traffic } => {
            let (cause, error) = (cause.number(), ErrorFrame::of(&error));
            EventFrame::GaveUp { at, cause, error, traffic }
        }
        WorkerEvent::Gone { error } => EventFrame::Gone { error: ErrorFrame::of(&error) },
    };
    write_value(stream, &frame)
}

/// What a worker tells next; none when it has ended.
///
/// # Errors
/// When it is cut off, or no event.
pub(crate) fn read_event(stream: &mut UnixStream) -> Result<Option<WorkerEvent>, Error> {
    let Some(frame) = read_value::<EventFrame>(stream)? else { return Ok(None) };
    let cause =
        |number| FailureCause::of(number).ok_or_else(|| Error::misuse("a worker fails for no known cause"));
    Ok(Some(match frame {
        EventFrame::Door { generation, fingerprint, port } => {
            let fingerprint = KeyFingerprint::from_bytes(fingerprint);
            WorkerEvent::Door { generation, fingerprint, port }
        }
        EventFrame::Up { generation } => WorkerEvent::Up { generation },
        EventFrame::Down { generation, cause: number, error } => {
            WorkerEvent::Down { generation, cause: cause(number)?, error: error.into_error() }
        }
        EventFrame::Beat { rows, peak_memory } => WorkerEvent::Beat(WorkerBeat { rows, peak_memory }),
        EventFrame::Finished { at, session, transcript, traffic } => {
            let shares = read_frame(stream)?.ok_or_else(|| Error::misuse("shares of a unit are missing"))?;
            WorkerEvent::Finished { at, session, transcript, work: FinishedWork { shares, traffic } }
        }
        EventFrame::GaveUp { at, cause: number, error, traffic } => {
            let (cause, error) = (cause(number)?, error.into_error());
            WorkerEvent::GaveUp { at, cause, error, traffic }
        }
        EventFrame::Gone { error } => WorkerEvent::Gone { error: error.into_error() },
    }))
}

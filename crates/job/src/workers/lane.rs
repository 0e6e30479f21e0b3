//! One worker: it opens its lane and computes units over it, one after the other, whether it is a thread of
//! its coordinator or a process of its own.

use super::order::{
    FinishedWork, LaneWay, UnitAttempt, UnitWork, WorkerBeat, WorkerEvent, WorkerOrder, cause_of,
};
use crate::engines::StudyEngine;
use crate::stages::compute::COMPUTE;
use crate::usage::peak_memory_bytes;
use base::{ChannelError, Error, Fault, PartyId, Roster, Seed};
use net::lanes::{LaneChannel, LaneCutter, LaneKey, LaneListener, LaneTerms, dial_lane, take_lane};
use net::{IpNetwork, KeyFingerprint, RowProgress, Session, Traffic};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use units::FailureCause;
use zeroize::Zeroizing;

/// How often an idle worker looks whether its peer has left.
const LOOK: Duration = Duration::from_millis(200);
/// How often a worker says that it is there.
const BEAT: Duration = Duration::from_secs(1);
/// Under which step workers agree on what they compute: bytes that no price counts.
const AGREEING: &str = "units";

/// Which worker this is, and all that it knows.
pub(crate) struct LaneJob {
    pub run: [u8; 32],
    pub lane: u16,
    pub me: PartyId,
    pub roster: Roster,
    /// How long the lane may be silent.
    pub deadline: Duration,
    /// Whether it awaits its peer itself, at a port of its own.
    pub awaits: bool,
    /// From where it takes connections then.
    pub allow: Vec<IpNetwork>,
    /// What it computes with; none of a crew that computes nothing.
    pub engines: Option<StudyEngine>,
    /// Of its next session.
    pub seed: Seed,
}

/// The host at which workers await their peers, as their coordinator has it.
#[derive(Clone)]
pub(crate) enum LaneHost {
    Named(String),
    /// That of the machine on which each is, as whoever started it says.
    Launched,
}

impl LaneHost {
    /// Where a worker awaits its peer, at a port that it told. It chooses no host: otherwise it could have a
    /// gate connect anywhere.
    pub fn door(&self, launched: Option<&str>, port: u16) -> Result<String, Error> {
        let host = match self {
            Self::Named(host) => Some(host.as_str()),
            Self::Launched => launched,
        };
        let host = host.ok_or_else(|| Error::misuse("who starts a worker tells at which host it is"))?;
        Ok(host_and_port(host, port))
    }
}

/// As it is dialled: an IPv6 address goes into brackets.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    let bare = host.contains(':') && !host.starts_with('[');
    if bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// What tells a worker's coordinator.
pub(crate) type Tell = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

/// A worker, until its orders end.
pub(crate) struct LaneWorker {
    job: LaneJob,
    cutter: LaneCutter,
    tell: Tell,
    /// Rows of the current unit that are done.
    done: Arc<AtomicU64>,
    door: Option<LaneDoor>,
    lane: Option<OpenLane>,
}

/// A key that no connection has used.
struct LaneDoor {
    generation: u32,
    key: LaneKey,
    listener: Option<LaneListener>,
}

/// A connection to the peer's worker.
struct OpenLane {
    generation: u32,
    id: [u8; 32],
    session: Session,
}

impl LaneWorker {
    pub fn new(job: LaneJob, cutter: LaneCutter, tell: Tell) -> Self {
        Self { job, cutter, tell, done: Arc::default(), door: None, lane: None }
    }

    /// Does what it is told, and tells every second that it is there.
    pub fn run(mut self, orders: &Receiver<WorkerOrder>) {
        let beats = Beats::start(self.tell.clone(), self.done.clone());
        loop {
            match orders.recv_timeout(LOOK) {
                Ok(WorkerOrder::Door { generation }) => self.make_door(generation),
                Ok(WorkerOrder::Connect { generation, peer, way }) => self.connect(generation, peer, way),
                Ok(WorkerOrder::Start { at, work }) => self.start(at, *work),
                Ok(WorkerOrder::Drop) => self.leave(),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        drop(beats);
    }

    fn make_door(&mut self, generation: u32) {
        let made = LaneKey::fresh().and_then(|key| {
            let listener = self.job.awaits.then(|| LaneListener::bind("0.0.0.0:0")).transpose()?;
            Ok((key, listener))
        });
        let (key, listener) = match made {
            Ok(made) => made,
            Err(error) => return (self.tell)(WorkerEvent::Gone { error }),
        };
        let fingerprint = key.fingerprint();
        let port = listener.as_ref().map(LaneListener::port);
        self.door = Some(LaneDoor { generation, key, listener });
        (self.tell)(WorkerEvent::Door { generation, fingerprint, port });
    }

    fn connect(&mut self, generation: u32, peer: KeyFingerprint, way: LaneWay) {
        match self.open(generation, peer, way) {
            Ok(lane) => {
                self.lane = Some(lane);
                (self.tell)(WorkerEvent::Up { generation });
            }
            Err(error) => self.down(generation, error),
        }
    }

    fn open(&mut self, generation: u32, peer: KeyFingerprint, way: LaneWay) -> Result<OpenLane, Error> {
        let LaneJob { run, lane, me, roster, deadline, allow, .. } = &self.job;
        let door = self.door.take().filter(|door| door.generation == generation);
        let LaneDoor { key, listener, .. } =
            door.ok_or_else(|| Error::misuse("a worker connects with the key that it made last"))?;
        let terms = LaneTerms {
            run: *run,
            lane: *lane,
            generation,
            me: *me,
            roster: roster.clone(),
            peer,
            deadline: *deadline,
        };
        let LaneChannel { channel, session: id } = match (way, listener) {
            (LaneWay::Dial(address), _) => dial_lane(&address, &key, &terms, &self.cutter)?,
            (LaneWay::Take(stream), _) => take_lane(stream, &key, &terms, &self.cutter)?,
            (LaneWay::Await, Some(listener)) => listener.take(&key, &terms, allow, &self.cutter)?,
            (LaneWay::Await, None) => return Err(Error::misuse("this worker awaits nobody itself")),
        };
        let done = self.done.clone();
        let progress = RowProgress::new(move |_, rows, _| done.store(rows, Ordering::Relaxed));
        let next = self.job.seed.fork("next session");
        let seed = std::mem::replace(&mut self.job.seed, next);
        let LaneJob { me, roster, .. } = &self.job;
        let session = Session::new(*me, roster.clone(), vec![(me.other(), channel)], seed);
        Ok(OpenLane { generation, id, session: session.with_id(id).with_progress(progress) })
    }

    fn start(&mut self, at: UnitAttempt, work: UnitWork) {
        self.done.store(0, Ordering::Relaxed);
        let Some(lane) = &mut self.lane else {
            let error = Error::misuse("a unit is computed over a lane");
            let (cause, traffic) = (FailureCause::LaneCut, Traffic::default());
            return (self.tell)(WorkerEvent::GaveUp { at, cause, error, traffic });
        };
        let done = attempt_at(self.job.engines.as_ref(), &mut lane.session, at, work);
        let traffic = lane.session.take_traffic();
        // The memory of an attempt may have come since the last beat.
        let rows = self.done.load(Ordering::Relaxed);
        (self.tell)(WorkerEvent::Beat(WorkerBeat { rows, peak_memory: peak_memory_bytes() }));
        match done {
            Ok((shares, transcript)) => {
                let work = FinishedWork { shares, traffic };
                (self.tell)(WorkerEvent::Finished { at, session: lane.id, transcript, work });
            }
            Err(error) => {
                let (cause, told) = (cause_of(&error), error.clone());
                (self.tell)(WorkerEvent::GaveUp { at, cause, error: told, traffic });
                self.lose(error);
            }
        }
    }

    /// A lane that failed is never used again.
    fn lose(&mut self, error: Error) {
        if let Some(lane) = self.lane.take() {
            self.down(lane.generation, error);
        }
    }

    fn down(&self, generation: u32, error: Error) {
        (self.tell)(WorkerEvent::Down { generation, cause: cause_of(&error), error });
    }

    fn leave(&mut self) {
        self.door = None;
        self.lose(Error::misuse("the coordinator gave the lane up"));
        self.cutter.mend();
    }

    fn look(&mut self) {
        let peer = self.job.me.other();
        let left = self.lane.as_mut().and_then(|lane| lane.session.link(peer).watch().err());
        if let Some(error) = left {
            self.lose(error);
        }
    }
}

/// One attempt at one unit: this party's result of it, and the transcript where it has one.
fn attempt_at(
    engines: Option<&StudyEngine>,
    session: &mut Session,
    UnitAttempt { stage, unit, attempt }: UnitAttempt,
    work: UnitWork,
) -> Result<(Zeroizing<Vec<u8>>, [u8; 32]), Error> {
    let peer = session.me().other();
    session.step(AGREEING, |session| {
        let mine = [&[stage][..], &unit.to_le_bytes(), &attempt.to_le_bytes()].concat();
        let mut theirs = [0; 9];
        session.link(peer).exchange(&mine, &mut theirs)?;
        if theirs[..] == mine[..] {
            return Ok(());
        }
        // One of the two has been told to give up meanwhile.
        let text = "the peer's worker is at another attempt".to_owned();
        Err(Error::new(session.at(Some(peer)), Fault::Channel(ChannelError::Io(text))))
    })?;
    let done = match work {
        UnitWork::Rows(mut rows) => {
            let engines = engines.ok_or_else(|| Error::misuse("this worker was given no engine"))?;
            let shares = session.step(COMPUTE, |session| engines.rows()?.run(rows.input(), session))?;
            (shares.to_bytes()?, [0; 32])
        }
        UnitWork::Match(work) => work.run(session)?,
    };
    session.finish()?;
    Ok(done)
}

/// The thread that says that a worker is there, until dropped.
struct Beats {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beats {
    fn start(tell: Tell, done: Arc<AtomicU64>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let beat = move || {
            while !stop.load(Ordering::Relaxed) {
                let (rows, peak_memory) = (done.load(Ordering::Relaxed), peak_memory_bytes());
                tell(WorkerEvent::Beat(WorkerBeat { rows, peak_memory }));
                std::thread::park_timeout(BEAT);
            }
        };
        let thread = std::thread::Builder::new().name("worker beats".into()).spawn(beat).ok();
        Self { over, thread }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_chooses_a_port_and_no_host() {
        let named = LaneHost::Named("2001:db8::7".to_owned());
        assert_eq!(named.door(Some("10.0.0.1"), 22).unwrap(), "[2001:db8::7]:22");
        assert_eq!(LaneHost::Launched.door(Some("10.0.0.1"), 22).unwrap(), "10.0.0.1:22");
        assert!(LaneHost::Launched.door(None, 22).is_err());
    }
}

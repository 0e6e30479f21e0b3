//! Workers that somebody else starts, on this machine or another one: actors of a cluster, for example.
//!
//! Functionality: a launcher is told that a worker is due, and starts a process. The process makes a key and
//! tells its fingerprint; it is told where its coordinator awaits it, and which key that one has. It
//! connects, both prove their keys, and from then on it is a worker as any other ([`super::process`]), at the
//! end of a tunnel.
//!
//! Who learns what: the launcher, and all that carries its words, see an address, fingerprints and numbers.
//! Orders, rows, keys of a match and shares go over the two connections of TLS alone. Who can change words of
//! the launcher can be a worker, and sees the rows of units: a party trusts its own cluster so far.
//!
//! A worker that is due and does not come yet is no failure: units go over other lanes meanwhile, and it
//! joins when it comes. One that is taken away is as one that died.

use super::lane::{Tell, host_and_port};
use super::launch::WorkerPlace;
use super::order::{WorkerBeat, WorkerEvent};
use super::process::{WorkerBody, WorkerSockets, ended, follow_orders};
use super::tunnel::{SILENT_END, WorkerTunnel};
use base::{Error, PartyId, Roster, Seed};
use net::KeyFingerprint;
use net::lanes::{
    LaneArrival, LaneChannel, LaneCutter, LaneKey, LaneTerms, ListeningPort, dial_lane, take_lane,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often a worker that is due counts as one that is there.
const BEAT: Duration = Duration::from_secs(1);
/// How often who waits looks whether that is over.
const LOOK: Duration = Duration::from_millis(50);
/// How long a worker that was told where to come may take.
const COMING: Duration = Duration::from_secs(60);
/// How long the launcher may take to say why a worker is gone.
const REASON: Duration = Duration::from_secs(2);
/// The coordinator, and the worker.
const ENDS: [PartyId; 2] = [PartyId(0), PartyId(1)];

/// Starts workers, and ends them.
pub trait WorkerLauncher: Send + Sync {
    /// The host at which workers reach this process, and the port to open there: 0 for any.
    fn door(&self) -> (String, u16);

    /// How many cores a worker has.
    fn cores(&self) -> usize;

    /// A worker is due: it is told what the call says, and its answer is given. Returns at once, with a
    /// number for the worker.
    fn start(&self, call: WorkerCall) -> u64;

    /// Nobody waits for a worker any more.
    fn stop(&self, number: u64);
}

/// A worker is due.
pub struct WorkerCall {
    /// For which lane.
    pub lane: u16,
    /// For the how many-th time.
    pub start: u32,
    /// What it is told once its key is known: [`CalledWorker::work`] takes it. No secret.
    pub summons: String,
    /// What becomes of it.
    pub answer: CallAnswer,
}

/// What became of a call.
#[derive(Clone)]
pub struct CallAnswer(Sender<LauncherWord>);

enum LauncherWord {
    Key(KeyFingerprint, String),
    Gone(String),
}

impl CallAnswer {
    /// The worker is there, has this key ([`CalledWorker::key`]), and peers' workers reach it at this host.
    ///
    /// # Errors
    /// When it is none.
    pub fn has_key(&self, fingerprint: &str, host: &str) -> Result<(), Error> {
        let key =
            fingerprint.parse().map_err(|_| Error::misuse("a worker tells the fingerprint of its key"))?;
        // Nobody may wait any more.
        let _ = self.0.send(LauncherWord::Key(key, host.to_owned()));
        Ok(())
    }

    /// The worker does not come, or is no more.
    pub fn is_gone(&self, why: String) {
        let _ = self.0.send(LauncherWord::Gone(why));
    }
}

/// Where a worker finds its coordinator.
#[derive(Serialize, Deserialize)]
struct WorkerSummons {
    address: String,
    run: [u8; 32],
    start: u32,
    lanes: [u16; 2],
    key: [u8; 16],
}

impl WorkerSummons {
    /// Of its two connections one, at the coordinator or the worker.
    fn terms(&self, number: usize, at: usize, peer: KeyFingerprint) -> LaneTerms {
        LaneTerms {
            run: self.run,
            lane: self.lanes[number],
            generation: self.start,
            me: ENDS[at],
            roster: Roster::new(["coordinator", "worker"]),
            peer,
            deadline: SILENT_END,
        }
    }
}

/// Where a crew's workers come.
pub(super) struct WorkerDock {
    run: [u8; 32],
    address: String,
    port: ListeningPort,
    arrivals: Mutex<DockArrivals>,
    /// One has come, or nobody listens.
    changed: Condvar,
}

/// Connections that nobody has taken yet, and whether one of those who wait listens for all of them.
#[derive(Default)]
struct DockArrivals {
    come: HashMap<(u16, u32), TcpStream>,
    listened: bool,
}

/// A worker that is due, or there, as the thread that serves it has it.
struct DueWorker {
    dock: Arc<WorkerDock>,
    summons: WorkerSummons,
    key: LaneKey,
    answers: Receiver<LauncherWord>,
    cutters: [LaneCutter; 2],
    over: Arc<AtomicBool>,
    host: Arc<OnceLock<String>>,
    tell: Tell,
}

/// The same, as its coordinator ends it.
struct CalledBody {
    launcher: Arc<dyn WorkerLauncher>,
    number: u64,
    cutters: [LaneCutter; 2],
    over: Arc<AtomicBool>,
    host: Arc<OnceLock<String>>,
}

impl WorkerPlace {
    /// Cores of each worker, where its place tells.
    pub(crate) fn cores(&self) -> Option<usize> {
        match self {
            Self::Launched(launcher) => Some(launcher.cores().max(1)),
            Self::Threads | Self::Processes(_) => None,
        }
    }
}

impl WorkerDock {
    pub fn open(launcher: &dyn WorkerLauncher) -> Result<Self, Error> {
        let (host, port) = launcher.door();
        let port = ListeningPort::bind(&format!("0.0.0.0:{port}"), SILENT_END)?;
        let address = host_and_port(&host, port.address().port());
        let run = *Seed::from_system().expose();
        Ok(Self { run, address, port, arrivals: Mutex::default(), changed: Condvar::new() })
    }

    /// Calls a worker, who has these ends of its coordinator's sockets.
    pub fn call(
        self: &Arc<Self>,
        launcher: Arc<dyn WorkerLauncher>,
        (lane, start): (u16, u32),
        ends: WorkerSockets,
        tell: Tell,
    ) -> Result<Box<dyn WorkerBody>, Error> {
        let (key, lanes) = (LaneKey::fresh()?, [2 * lane, 2 * lane + 1]);
        for lane in lanes {
            self.port.expect(&self.run, lane, start);
        }
        let (address, fingerprint) = (self.address.clone(), key.fingerprint().bytes());
        let summons = WorkerSummons { address, run: self.run, start, lanes, key: fingerprint };
        let text = serde_json::to_string(&summons).map_err(|e| Error::misuse(format!("no summons: {e}")))?;
        let (sender, answers) = channel();
        let (cutters, over): ([LaneCutter; 2], _) = (Default::default(), Arc::<AtomicBool>::default());
        let number = launcher.start(WorkerCall { lane, start, summons: text, answer: CallAnswer(sender) });
        let host = Arc::<OnceLock<String>>::default();
        let (own, ended, at) = (cutters.clone(), over.clone(), host.clone());
        let body = CalledBody { launcher, number, cutters: own, over: ended, host: at };
        let due = DueWorker { dock: self.clone(), summons, key, answers, cutters, over, host, tell };
        let thread = std::thread::Builder::new().name("called worker".into());
        thread.spawn(move || due.serve(ends)).map_err(|e| Error::io("cannot start a thread", &e))?;
        Ok(Box::new(body))
    }

    /// The connection that asked for a lane, if it comes within a moment.
    fn take(&self, lane: u16, start: u32) -> Option<TcpStream> {
        let mut here = self.arrivals();
        let come = here.come.remove(&(lane, start));
        if come.is_some() {
            return come;
        }
        if here.listened {
            // A second one would wait for its turn to listen, and not see what the first one hears.
            let waited = self.changed.wait_timeout(here, LOOK);
            here = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            here.listened = true;
            drop(here);
            let next = self.port.next(LOOK);
            here = self.arrivals();
            here.listened = false;
            if let Some(LaneArrival { lane, generation, stream }) = next {
                here.come.insert((lane, generation), stream);
            }
            self.changed.notify_all();
        }
        here.come.remove(&(lane, start))
    }

    fn arrivals(&self) -> MutexGuard<'_, DockArrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerBody for CalledBody {
    fn end(&mut self) {
        if !self.over.swap(true, Ordering::SeqCst) {
            self.cutters.iter().for_each(LaneCutter::cut);
            self.launcher.stop(self.number);
        }
    }

    fn host(&self) -> Option<String> {
        self.host.get().cloned()
    }
}

impl DueWorker {
    fn serve(self, ends: WorkerSockets) {
        // Its sockets end after it has been told why.
        let mut tunnel = WorkerTunnel::new(ends);
        let connections = || {
            let key = self.key()?;
            Ok((self.connection(0, key)?, self.connection(1, key)?))
        };
        let Err(error) = connections().and_then(|(out, into)| tunnel.carry(out, into)) else { return };
        if self.is_over() {
            return;
        }
        // That a connection broke says less than what whoever started the worker knows.
        let why = self.answers.recv_timeout(REASON);
        let error = match why {
            Ok(LauncherWord::Gone(why)) => ended(&why),
            _ => error,
        };
        (self.tell)(WorkerEvent::Gone { error });
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// The worker's key, once it is there: the launcher says how long that may take.
    fn key(&self) -> Result<KeyFingerprint, Error> {
        loop {
            match self.answers.recv_timeout(BEAT) {
                Ok(LauncherWord::Key(key, host)) => {
                    // Nobody else sets it: its launcher says it once, before the worker is heard.
                    let _ = self.host.set(host);
                    return Ok(key);
                }
                Ok(LauncherWord::Gone(why)) => return Err(ended(&why)),
                Err(RecvTimeoutError::Disconnected) => return Err(ended("nobody starts it")),
                Err(RecvTimeoutError::Timeout) if self.is_over() => return Err(ended("it was stopped")),
                // A lane may wait for its worker: it has not failed.
                Err(RecvTimeoutError::Timeout) => self.beat(),
            }
        }
    }

    fn beat(&self) {
        (self.tell)(WorkerEvent::Beat(WorkerBeat::default()));
    }

    /// One of the worker's connections: what this end says goes over the first one.
    fn connection(&self, number: usize, key: KeyFingerprint) -> Result<Box<dyn net::Channel>, Error> {
        let terms = self.summons.terms(number, 0, key);
        let (until, mut beaten) = (Instant::now() + COMING, Instant::now());
        loop {
            if let Some(stream) = self.dock.take(terms.lane, terms.generation) {
                let cutter = &self.cutters[number];
                return take_lane(stream, &self.key, &terms, cutter)
                    .map(|LaneChannel { channel, .. }| channel);
            }
            if self.is_over() || Instant::now() >= until {
                let at = &self.dock.address;
                return Err(ended(&format!(
                    "it did not come to {at}, where it is awaited, within {COMING:?}"
                )));
            }
            if let Ok(LauncherWord::Gone(why)) = self.answers.try_recv() {
                return Err(ended(&why));
            }
            if beaten.elapsed() >= BEAT {
                beaten = Instant::now();
                self.beat();
            }
        }
    }
}

/// A process that was started to be a worker.
pub struct CalledWorker {
    key: LaneKey,
    cutters: [LaneCutter; 2],
}

impl CalledWorker {
    /// Makes its key, which is its alone.
    ///
    /// # Errors
    /// When the cryptographic library cannot make a key.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { key: LaneKey::fresh()?, cutters: Default::default() })
    }

    /// The fingerprint of its key.
    #[must_use]
    pub fn key(&self) -> String {
        self.key.fingerprint().to_string()
    }

    /// Goes to the coordinator that a summons names, and does what it says, until it ends or [`Self::stop`].
    ///
    /// # Errors
    /// When the coordinator is not there, or is another one.
    pub fn work(&self, summons: &str) -> Result<(), Error> {
        let summons: WorkerSummons = serde_json::from_str(summons)
            .map_err(|e| Error::misuse(format!("a summons of another version of tacit: {e}")))?;
        let dial = |number: usize| {
            let terms = summons.terms(number, 1, KeyFingerprint::from_bytes(summons.key));
            dial_lane(&summons.address, &self.key, &terms, &self.cutters[number]).map(|lane| lane.channel)
        };
        let (into, out) = (dial(0)?, dial(1)?);
        let failed = |e: std::io::Error| Error::io("cannot start a worker", &e);
        let (orders, orders_end) = UnixStream::pair().map_err(failed)?;
        let (rows, rows_end) = UnixStream::pair().map_err(failed)?;
        let mut tunnel = WorkerTunnel::new([orders_end, rows_end]);
        let thread = std::thread::Builder::new().name("worker tunnel".into());
        let thread = thread.spawn(move || tunnel.carry(out, into)).map_err(failed)?;
        let done = follow_orders(orders, &rows);
        self.stop();
        // Who ends a worker cuts its connections, which is no error here.
        let _ = thread.join();
        done
    }

    /// Ends it.
    pub fn stop(&self) {
        self.cutters.iter().for_each(LaneCutter::cut);
    }
}

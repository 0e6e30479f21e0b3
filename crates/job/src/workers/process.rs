//! Workers as processes: the coordinator says over one socket what to do, and hands rows over another one.
//! Those that it starts itself, by `tacit worker`, have the two as standard input and output; those that a
//! launcher starts have them at the end of a tunnel ([`super::called`]).
//!
//! A worker gets a program, an engine, and the rows of the unit that it computes; or, of a match, its keys,
//! and where its columns lie in state, under a key of their own. It has no identity key, no ledger, no key to
//! other state and no file of the party. It ends with its coordinator.

use super::frames::{OrderFrame, WayFrame, read_event, read_value, write_event, write_value};
use super::lane::{LaneJob, LaneWorker, Tell};
use super::launch::{WorkerCommand, WorkerLink};
use super::match_units::{MatchWork, RemotePins, serve_pins};
use super::order::{LaneWay, UnitWork, WorkerEvent, WorkerOrder};
use super::remote::{RemoteRows, ValueWidths, serve_rows};
use crate::engines::{EngineSpec, StudyEngine};
use crate::stages::compute::UnitRows;
use base::{Error, PartyId, Roster, Seed};
use net::KeyFingerprint;
use net::lanes::{LaneCutter, recv_stream, send_stream};
use program::Program;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a worker is told first.
#[derive(Serialize, Deserialize)]
struct WorkerTask {
    run: [u8; 32],
    lane: u16,
    me: u8,
    names: Vec<String>,
    deadline_ms: u64,
    awaits: bool,
    allow: Vec<String>,
    /// What it computes and with what; none where it computes nothing.
    program: Option<(String, EngineSpec)>,
}

/// A worker process, until its coordinator ends: what `tacit worker` does.
///
/// # Errors
/// When this process was not started by a coordinator.
pub fn run_worker() -> Result<(), Error> {
    let failed = |e: std::io::Error| {
        Error::input(format!(
            "this command is for `tacit run`, which starts it with sockets for its input and output ({e}); \
             use `tacit run PARTY.toml --workers N`"
        ))
    };
    let socket = |owned: std::io::Result<OwnedFd>| owned.map(UnixStream::from);
    let orders = socket(std::io::stdin().as_fd().try_clone_to_owned()).map_err(failed)?;
    let rows = socket(std::io::stdout().as_fd().try_clone_to_owned()).map_err(failed)?;
    orders.peer_addr().map_err(failed)?;
    follow_orders(orders, &rows)
}

/// Does what a coordinator says until it ends.
///
/// # Errors
/// When what it says is not understood.
pub(super) fn follow_orders(mut orders: UnixStream, rows: &UnixStream) -> Result<(), Error> {
    let events = orders.try_clone().map_err(|e| Error::io("cannot share a worker's socket", &e))?;
    let Some(task) = read_value::<WorkerTask>(&mut orders)? else { return Ok(()) };
    let prepared = task.program.map(|(text, engine)| prepare(&text, &engine)).transpose()?;
    let job = LaneJob {
        run: task.run,
        lane: task.lane,
        me: PartyId(task.me),
        roster: Roster::new(task.names),
        deadline: Duration::from_millis(task.deadline_ms),
        awaits: task.awaits,
        allow: task
            .allow
            .iter()
            .map(|network| network.parse())
            .collect::<Result<_, String>>()
            .map_err(Error::misuse)?,
        engines: prepared.as_ref().map(|(_, engines)| engines.clone()),
        seed: Seed::from_system(),
    };
    let events = Mutex::new(events);
    let tell = move |event| {
        let mut stream = events.lock().unwrap_or_else(PoisonError::into_inner);
        // A coordinator that is gone ends this process by its orders.
        let _ = write_event(&mut stream, event);
    };
    let cutter = LaneCutter::default();
    let worker = LaneWorker::new(job, cutter.clone(), Arc::new(tell));
    let (sender, inbox) = channel();
    let thread = std::thread::Builder::new().name("worker".into()).spawn(move || worker.run(&inbox));
    let thread = thread.map_err(|e| Error::io("cannot start a thread", &e))?;
    while let Some(frame) = read_value::<OrderFrame>(&mut orders)? {
        if matches!(frame, OrderFrame::Drop) {
            cutter.cut();
        }
        let order = order_of(frame, rows, prepared.as_ref())?;
        if sender.send(order).is_err() {
            break;
        }
    }
    // What it is computing nobody waits for.
    cutter.cut();
    drop(sender);
    let _ = thread.join();
    Ok(())
}

/// A program as its text says, with what runs it.
fn prepare(text: &str, engine: &EngineSpec) -> Result<(Program, StudyEngine), Error> {
    let program = Program::parse(text)?;
    if program.to_text() != text {
        return Err(Error::misuse("the program of a worker is not the one that its text says"));
    }
    let engines = engine.prepare(&program)?;
    Ok((program, engines))
}

fn order_of(
    frame: OrderFrame,
    rows: &UnixStream,
    prepared: Option<&(Program, StudyEngine)>,
) -> Result<WorkerOrder, Error> {
    Ok(match frame {
        OrderFrame::Door { generation } => WorkerOrder::Door { generation },
        OrderFrame::Connect { generation, peer, way } => {
            let way = match way {
                WayFrame::Dial(address) => LaneWay::Dial(address),
                WayFrame::Take => LaneWay::Take(recv_stream(rows)?),
                WayFrame::Await => LaneWay::Await,
            };
            WorkerOrder::Connect { generation, peer: KeyFingerprint::from_bytes(peer), way }
        }
        OrderFrame::Start { at, rows: count } => {
            let (program, engines) =
                prepared.ok_or_else(|| Error::misuse("this worker was given no program"))?;
            let rows = UnitRows::Remote(RemoteRows::new(rows, program, engines, count)?);
            WorkerOrder::Start { at, work: Box::new(UnitWork::Rows(rows)) }
        }
        OrderFrame::Match { at, unit } => {
            let mut pins = RemotePins::new(rows)?;
            let work = Box::new(MatchWork::new(*unit, Box::new(move |promise| pins.ask(promise))));
            WorkerOrder::Start { at, work: Box::new(UnitWork::Match(work)) }
        }
        OrderFrame::Drop => WorkerOrder::Drop,
    })
}

/// What does a worker's work, and where.
pub(super) trait WorkerBody: Send {
    /// Ends it, whatever it is doing.
    fn end(&mut self);

    /// At which host it is, where whoever started it has said so.
    fn host(&self) -> Option<String> {
        None
    }
}

/// A process of this machine.
struct OwnProcess(Child);

impl WorkerBody for OwnProcess {
    fn end(&mut self) {
        // One that has ended already is as dead.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A worker that is no thread, as its coordinator has it.
pub(crate) struct RemoteWorker {
    body: Box<dyn WorkerBody>,
    orders: UnixStream,
    /// What the worker has been told to do, for the thread that serves rows and pins.
    work: Option<Sender<Box<UnitWork>>>,
    sockets: UnixStream,
}

/// Two sockets to a worker: orders and events, and rows.
pub(super) type WorkerSockets = [UnixStream; 2];

impl RemoteWorker {
    /// Starts one as a process of this machine.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        command: &WorkerCommand,
        job: &LaneJob,
        program: Option<&Program>,
        tell: Tell,
    ) -> Result<Self, Error> {
        let start = |[orders, rows]: WorkerSockets, _| {
            let child = Command::new(&command.program)
                .args(&command.arguments)
                .stdin(Stdio::from(OwnedFd::from(orders)))
                .stdout(Stdio::from(OwnedFd::from(rows)))
                .spawn();
            let shown = command.program.display();
            let child = child.map_err(|e| Error::io(format_args!("cannot start the worker {shown}"), &e))?;
            Ok(Box::new(OwnProcess(child)) as Box<dyn WorkerBody>)
        };
        Self::with(start, job, program, tell)
    }

    /// One that `start` starts, with its ends of two sockets.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn with(
        start: impl FnOnce(WorkerSockets, Tell) -> Result<Box<dyn WorkerBody>, Error>,
        job: &LaneJob,
        program: Option<&Program>,
        tell: Tell,
    ) -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::io("cannot reach a worker", &e);
        let (mut orders, theirs) = UnixStream::pair().map_err(failed)?;
        let (sockets, their_sockets) = UnixStream::pair().map_err(failed)?;
        let body = start([theirs, their_sockets], tell.clone())?;
        let task = WorkerTask {
            run: job.run,
            lane: job.lane,
            me: job.me.0,
            names: job.roster.parties().map(|party| job.roster.name(party)).collect(),
            deadline_ms: job.deadline.as_millis() as u64,
            awaits: job.awaits,
            allow: job.allow.iter().map(ToString::to_string).collect(),
            program: match (program, &job.engines) {
                (Some(program), Some(engines)) => Some((program.to_text(), engines.spec()?)),
                _ => None,
            },
        };
        // One that is gone already says so by the end of its events.
        let _ = write_value(&mut orders, &task);
        let mut events = orders.try_clone().map_err(failed)?;
        let pump = move || {
            loop {
                match read_event(&mut events) {
                    Ok(Some(event)) => tell(event),
                    Ok(None) => break tell(WorkerEvent::Gone { error: ended("its process ended") }),
                    Err(error) => break tell(WorkerEvent::Gone { error }),
                }
            }
        };
        std::thread::Builder::new().name("worker events".into()).spawn(pump).map_err(failed)?;
        let (sender, units) = channel::<Box<UnitWork>>();
        let joined = job.engines.as_ref().and_then(|engines| engines.joined());
        let mut served = sockets.try_clone().map_err(failed)?;
        let widths = program.map(|program| ValueWidths::of(program, joined)).unwrap_or_default();
        let serve = move || {
            for mut work in units {
                let done = match &mut *work {
                    UnitWork::Rows(rows) => serve_rows(&mut served, rows, &widths),
                    UnitWork::Match(work) => serve_pins(&mut served, work),
                };
                // A worker that is gone says so over its other socket.
                if done.is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("worker rows".into()).spawn(serve).map_err(failed)?;
        Ok(Self { body, orders, work: Some(sender), sockets })
    }
}

pub(super) fn ended(why: &str) -> Error {
    Error::new(base::At::default(), base::Fault::Io(format!("a worker is gone: {why}")))
}

impl WorkerLink for RemoteWorker {
    /// A process that is gone has told, or is about to: by the end of its events.
    fn order(&mut self, order: WorkerOrder) -> Result<(), Error> {
        let _ = self.tell(order);
        Ok(())
    }

    fn cut(&mut self) {
        // The order that follows cuts: it is read whatever the worker is doing.
    }

    fn kill(&mut self) {
        self.body.end();
        self.work = None;
    }

    fn host(&self) -> Option<String> {
        self.body.host()
    }
}

impl RemoteWorker {
    fn tell(&mut self, order: WorkerOrder) -> Result<(), Error> {
        let frame = match order {
            WorkerOrder::Door { generation } => OrderFrame::Door { generation },
            WorkerOrder::Connect { generation, peer, way } => {
                let way = match way {
                    LaneWay::Dial(address) => WayFrame::Dial(address),
                    LaneWay::Take(stream) => {
                        send_stream(&self.sockets, &stream)?;
                        WayFrame::Take
                    }
                    LaneWay::Await => WayFrame::Await,
                };
                OrderFrame::Connect { generation, peer: peer.bytes(), way }
            }
            WorkerOrder::Start { at, mut work } => {
                let frame = match &mut *work {
                    UnitWork::Rows(rows) => OrderFrame::Start { at, rows: rows.count() },
                    UnitWork::Match(work) => OrderFrame::Match { at, unit: Box::new(work.unit.clone()) },
                };
                let queue = self.work.as_ref().ok_or_else(|| ended("it was stopped"))?;
                queue.send(work).map_err(|_| ended("it takes no work"))?;
                frame
            }
            WorkerOrder::Drop => OrderFrame::Drop,
        };
        write_value(&mut self.orders, &frame)
    }
}

impl Drop for RemoteWorker {
    fn drop(&mut self) {
        let _ = self.orders.shutdown(std::net::Shutdown::Both);
        let _ = self.sockets.shutdown(std::net::Shutdown::Both);
        self.kill();
    }
}

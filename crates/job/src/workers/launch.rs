//! How workers come to be: as threads of the coordinator, as processes of the same machine, or as somebody
//! starts them who is told when one is due ([`WorkerLauncher`]). What they do and what is said to them is the
//! same.

use super::called::{WorkerDock, WorkerLauncher};
use super::lane::{LaneJob, LaneWorker, Tell};
use super::order::{WorkerEvent, WorkerOrder};
use super::process::RemoteWorker;
use base::Error;
use net::lanes::LaneCutter;
use program::Program;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// The program that a worker process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The executable.
    pub program: PathBuf,
    /// What makes it a worker.
    pub arguments: Vec<String>,
}

/// Where workers run.
#[derive(Clone)]
pub enum WorkerPlace {
    /// Threads of this process.
    Threads,
    /// Processes of this machine.
    Processes(WorkerCommand),
    /// Processes of this or other machines, started by somebody else.
    Launched(Arc<dyn WorkerLauncher>),
}

/// A worker as its coordinator has it.
pub(crate) trait WorkerLink: Send {
    /// Tells it what to do next.
    ///
    /// # Errors
    /// When it is gone and will not tell.
    fn order(&mut self, order: WorkerOrder) -> Result<(), Error>;

    /// Ends what it waits for.
    fn cut(&mut self);

    /// Ends it, whatever it is doing. A thread cannot be ended: it ends by itself once it is cut.
    fn kill(&mut self);

    /// At which host it is, where whoever started it has said so.
    fn host(&self) -> Option<String> {
        None
    }
}

/// What a worker told, and which start of it.
pub(crate) struct CrewEvent {
    pub lane: u16,
    pub start: u32,
    pub event: WorkerEvent,
}

/// The workers of one party, by lane.
pub(crate) struct Crew {
    place: WorkerPlace,
    /// What its workers compute; none of a crew that computes nothing.
    program: Option<Arc<Program>>,
    job: Box<dyn Fn(u16) -> LaneJob + Send>,
    tell: Arc<dyn Fn(CrewEvent) + Send + Sync>,
    slots: Vec<CrewSlot>,
    /// Where workers come that a launcher starts, from the first one on.
    dock: Option<Arc<WorkerDock>>,
}

#[derive(Default)]
struct CrewSlot {
    link: Option<Box<dyn WorkerLink>>,
    starts: u32,
}

impl Crew {
    pub fn new(
        place: WorkerPlace,
        program: Option<Arc<Program>>,
        lanes: u16,
        job: impl Fn(u16) -> LaneJob + Send + 'static,
        tell: impl Fn(CrewEvent) + Send + Sync + 'static,
    ) -> Self {
        let slots = (0..lanes).map(|_| CrewSlot::default()).collect();
        Self { place, program, job: Box::new(job), tell: Arc::new(tell), slots, dock: None }
    }

    /// Tells a lane's worker what to do; starts it where there is none.
    ///
    /// # Errors
    /// When it cannot be started, or is gone and will not tell.
    pub fn order(&mut self, lane: u16, order: WorkerOrder) -> Result<(), Error> {
        if self.slots[usize::from(lane)].link.is_none() {
            self.start(lane)?;
        }
        let slot = &mut self.slots[usize::from(lane)];
        slot.link.as_mut().map_or(Ok(()), |link| link.order(order))
    }

    fn start(&mut self, lane: u16) -> Result<(), Error> {
        let slot = &mut self.slots[usize::from(lane)];
        slot.starts += 1;
        let (start, told) = (slot.starts, self.tell.clone());
        let tell: Tell = Arc::new(move |event| told(CrewEvent { lane, start, event }));
        let job = (self.job)(lane);
        slot.link = Some(match &self.place {
            WorkerPlace::Threads => Box::new(ThreadWorker::start(job, tell)?),
            WorkerPlace::Processes(command) => {
                Box::new(RemoteWorker::start(command, &job, self.program.as_deref(), tell)?)
            }
            WorkerPlace::Launched(launcher) => {
                let dock = match &self.dock {
                    Some(dock) => dock.clone(),
                    None => Arc::new(WorkerDock::open(&**launcher)?),
                };
                self.dock = Some(dock.clone());
                let call = |sockets, tell| dock.call(launcher.clone(), (lane, start), sockets, tell);
                Box::new(RemoteWorker::with(call, &job, self.program.as_deref(), tell)?)
            }
        });
        Ok(())
    }

    /// Whether an event is of the worker that a lane has now.
    pub fn is_current(&self, event: &CrewEvent) -> bool {
        let slot = &self.slots[usize::from(event.lane)];
        slot.link.is_some() && slot.starts == event.start
    }

    /// At which host a lane's worker is, where a launcher has said so.
    pub fn host(&self, lane: u16) -> Option<String> {
        self.slots[usize::from(lane)].link.as_ref()?.host()
    }

    /// Has a lane's worker leave its lane at once.
    pub fn cut(&mut self, lane: u16) {
        let slot = &mut self.slots[usize::from(lane)];
        let Some(link) = &mut slot.link else { return };
        link.cut();
        // One that is gone has left.
        let _ = link.order(WorkerOrder::Drop);
    }

    /// Ends a lane's worker: the next order starts another one.
    pub fn kill(&mut self, lane: u16) {
        if let Some(mut link) = self.slots[usize::from(lane)].link.take() {
            link.cut();
            link.kill();
        }
    }
}

/// A worker that is a thread.
struct ThreadWorker {
    orders: Sender<WorkerOrder>,
    cutter: LaneCutter,
}

impl ThreadWorker {
    fn start(job: LaneJob, tell: Tell) -> Result<Self, Error> {
        let (orders, inbox) = channel();
        let cutter = LaneCutter::default();
        let name = format!("worker {}", job.lane);
        let worker = LaneWorker::new(job, cutter.clone(), tell);
        let thread = std::thread::Builder::new().name(name).spawn(move || worker.run(&inbox));
        thread.map_err(|e| Error::io("cannot start a worker thread", &e))?;
        Ok(Self { orders, cutter })
    }
}

impl WorkerLink for ThreadWorker {
    fn order(&mut self, order: WorkerOrder) -> Result<(), Error> {
        self.orders.send(order).map_err(|_| Error::misuse("a worker thread ended by itself"))
    }

    fn cut(&mut self) {
        self.cutter.cut();
    }

    fn kill(&mut self) {}
}

impl Drop for ThreadWorker {
    fn drop(&mut self) {
        // What it is computing nobody waits for any more.
        self.cutter.cut();
    }
}

//! The coordinator of a stage: it carries out what the pure machine of `units` decides, and tells it what has
//! happened. Words to and from the peer's coordinator, workers, lanes and clocks are here; rules are there.

mod endings;
mod signs;
#[cfg(test)]
mod tests;

use super::launch::{Crew, CrewEvent};
use super::match_units::PinAsker;
use super::order::{FinishedWork, LaneWay, UnitAttempt, WorkerBeat, WorkerEvent, WorkerOrder};
use super::words::{WordLink, WordReader, word_link};
use super::{LaneHost, UnitsDone, UnitsJob, UnitsStage, failed_unit};
use crate::kept::{RunLog, UnitPin};
use crate::run::Event;
use crate::stages::bytes_sent;
use base::{Error, Fault};
use net::lanes::{LaneArrival, LanePort};
use net::{Channels, KeyFingerprint, Traffic};
use report::{FailedUnit, ProcessPeak};
use signs::Patience;
use std::cell::RefMut;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use units::{
    ByeReason, FailureCause, FinishedAttempt, HeldResult, LaneAction, LaneBook, LaneEvent, UnitAction,
    UnitEvent, UnitFailure, UnitMachine, UnitRecord, Word,
};

/// How often coordinators say that they are there, and clocks are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How long a worker may be silent.
const SILENT: Duration = Duration::from_secs(20);
/// After which silence that is said.
const SILENT_TOLD: Duration = Duration::from_secs(5);
/// How long a worker may be there and do nothing of its unit.
const IDLE: Duration = Duration::from_secs(600);
/// Waits before a lane that failed is opened again: the first, and the longest.
const AGAIN: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
/// What has happened and waits to be looked at: who tells more waits.
const INPUTS: usize = 1024;

/// What happened, from whichever thread.
pub(super) enum CoordinatorInput {
    /// The peer's coordinator said something.
    Word(Word),
    /// It says nothing more.
    Silence(Error),
    /// A worker told something.
    Crew(CrewEvent),
    /// A worker of the peer came to this party's port.
    Arrival(LaneArrival),
    /// A worker has heard a promise of the peer's, and waits to hear whether it is the one of before.
    Pin(UnitPin, SyncSender<bool>),
}

/// A worker's current attempt.
struct Running {
    unit: u32,
    attempt: u32,
    rows: u64,
    progressed: Instant,
}

/// A door of the peer's that comes next.
struct PeerDoor {
    generation: u32,
    fingerprint: KeyFingerprint,
    address: String,
}

/// A lane as this side has it, besides what the book says.
#[derive(Default)]
struct LaneHere {
    running: Option<Running>,
    /// Whether own worker has come, and told of its door.
    there: bool,
    /// Whether own worker has it.
    up: bool,
    /// What begins once it has: the peer's worker was sooner.
    waiting: Option<(u32, u32)>,
    peer: Option<PeerDoor>,
    /// What came to the port, until both doors are known.
    come: Option<(u32, TcpStream)>,
    /// A connection that waits for that.
    awaits: Option<u32>,
    /// When the worker was heard last.
    heard: Option<Instant>,
    patience: Patience,
    /// A door that is to be made, and when.
    due: Option<(Instant, u32)>,
    /// The generation of the door that was made last.
    generation: u32,
    peak_memory: u64,
}

impl LaneHere {
    /// Its worker is no more at an attempt; it may be at another one already.
    fn ends(&mut self, unit: u32, attempt: u32) {
        self.running.take_if(|running| (running.unit, running.attempt) == (unit, attempt));
    }
}

/// A crew of workers, and the stage under way.
struct Coordinator<'j, 'a> {
    job: &'j UnitsJob<'a>,
    stage: Box<dyn UnitsStage + 'j>,
    state: UnitMachine,
    book: LaneBook,
    crew: Crew,
    words: WordLink,
    inputs: Receiver<CoordinatorInput>,
    lanes: Vec<LaneHere>,
    finished: BTreeMap<(u32, u32), FinishedWork>,
    /// Units whose results were there before this meeting.
    computed_before: u64,
    /// What is to be on stable storage before anything else is done.
    records: Vec<UnitRecord>,
    /// What attempts that failed said, as far as their workers told.
    lost: Traffic,
    failed: Vec<FailedUnit>,
    failed_rows: u64,
    /// Whether it is only found out what was under way as an earlier meeting ended.
    meets: bool,
    /// The largest memory of workers whose place others took.
    ended: Vec<ProcessPeak>,
    /// Why the last attempt failed, in this party's words.
    why: Option<Error>,
    rows_done: u64,
    /// Units that are done and attempts that failed, as they were told.
    told: (u64, u64),
    /// When the machine decided something last, or own workers were at work.
    stood: Instant,
    /// When clocks were looked at last.
    looked: Instant,
    sealed: bool,
    /// When the peer's coordinator was heard last.
    peer_heard: Instant,
    patience: Patience,
    /// Whether the peer has said goodbye after the last seal.
    parted: bool,
}

/// Workers of a meeting, who do one stage after the other: they come up with the first one.
pub(crate) struct UnitsCrew<'j, 'a> {
    job: &'j UnitsJob<'a>,
    port: &'j LanePort,
    words: Option<(WordLink, WordReader)>,
    inputs: (SyncSender<CoordinatorInput>, Option<Receiver<CoordinatorInput>>),
    open: Option<Coordinator<'j, 'a>>,
}

/// Has the units of some stages done, all of each before any of the next, by as many workers as both sides
/// have; words go over the two channels that a meeting made for it.
///
/// # Errors
/// When an attempt has failed too often, the peer deviates or is gone, or the rows cannot be read; and those
/// of `stages`.
pub(crate) fn with_workers<'j, 'a, T>(
    job: &'j UnitsJob<'a>,
    channels: Vec<Channels>,
    port: &'j LanePort,
    stages: impl FnOnce(&mut UnitsCrew<'j, 'a>) -> Result<T, Error>,
) -> Result<T, Error> {
    let (sender, inputs) = sync_channel(INPUTS);
    let words = word_link(channels, job.me, &job.at(job.step), job.deadline)?;
    let mut crew =
        UnitsCrew { job, port, words: Some(words), inputs: (sender.clone(), Some(inputs)), open: None };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let LanePort::Listens(port) = port {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if let Some(come) = port.next(TICK / 20) {
                        // Nobody hears it after the end.
                        let _ = sender.send(CoordinatorInput::Arrival(come));
                    }
                }
            });
        }
        let done = stages(&mut crew);
        let done = crew.close(done);
        // Who would tell it more is not kept waiting.
        drop(crew);
        over.store(true, Ordering::Relaxed);
        done
    })
}

impl<'j, 'a> UnitsCrew<'j, 'a> {
    /// How many lanes there are.
    pub fn lanes(&self) -> u16 {
        self.job.lanes
    }

    /// Has promises pinned.
    pub(super) fn asker(&self) -> PinAsker {
        PinAsker::new(self.inputs.0.clone())
    }

    /// Where what is done is kept.
    ///
    /// # Errors
    /// When it is kept nowhere.
    pub fn log(&self) -> Result<RefMut<'j, &'a mut RunLog>, Error> {
        let log = self.job.log.as_ref().ok_or_else(|| Error::misuse("units of a match are kept"))?;
        Ok(log.borrow_mut())
    }

    /// Has all units of a stage done.
    ///
    /// # Errors
    /// As [`with_workers`]; no stage follows an error.
    pub fn stage(&mut self, stage: Box<dyn UnitsStage + 'j>) -> Result<UnitsDone, Error> {
        let first = match &mut self.open {
            Some(coordinator) => {
                coordinator.next(stage)?;
                Vec::new()
            }
            none => {
                let begun = || Error::misuse("a crew comes up once");
                let (words, reader) = self.words.take().ok_or_else(begun)?;
                let (sender, inputs) = (&self.inputs.0, self.inputs.1.take().ok_or_else(begun)?);
                reader.start(sender.clone())?;
                let (coordinator, first) =
                    Coordinator::new(self.job, stage, words, (sender.clone(), inputs))?;
                *none = Some(coordinator);
                first
            }
        };
        let coordinator = self.open.as_mut().ok_or_else(|| Error::misuse("the crew is there"))?;
        coordinator.rounds(first, self.port)?;
        coordinator.total()
    }

    /// Says goodbye after the last stage, or that something has failed.
    fn close<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        let Some(coordinator) = &mut self.open else { return done };
        match done {
            Ok(done) => coordinator.leave().map(|()| done),
            Err(error) => {
                let error = coordinator.deviation_behind(error);
                coordinator.fail(&error);
                Err(error)
            }
        }
    }
}

impl<'j, 'a> Coordinator<'j, 'a> {
    fn new(
        job: &'j UnitsJob<'a>,
        stage: Box<dyn UnitsStage + 'j>,
        words: WordLink,
        (sender, inputs): (SyncSender<CoordinatorInput>, Receiver<CoordinatorInput>),
    ) -> Result<(Self, Vec<LaneAction>), Error> {
        let (book, first) = LaneBook::new(job.lanes);
        let lanes = (0..job.lanes).map(|_| LaneHere::default()).collect();
        let state = UnitMachine::new(job.setting(&*stage), &[]);
        let mut coordinator = Self {
            job,
            stage,
            state,
            book,
            crew: job.crew(move |event| drop(sender.send(CoordinatorInput::Crew(event)))),
            words,
            inputs,
            lanes,
            finished: BTreeMap::new(),
            computed_before: 0,
            records: Vec::new(),
            lost: Traffic::default(),
            failed: Vec::new(),
            failed_rows: 0,
            meets: false,
            ended: Vec::new(),
            why: None,
            rows_done: 0,
            told: (0, 0),
            stood: Instant::now(),
            looked: Instant::now(),
            sealed: false,
            peer_heard: Instant::now(),
            patience: Patience::default(),
            parted: false,
        };
        coordinator.take_up()?;
        Ok((coordinator, first))
    }

    /// Goes to the next stage, over the lanes that are there.
    fn next(&mut self, stage: Box<dyn UnitsStage + 'j>) -> Result<(), Error> {
        self.state = UnitMachine::new(self.job.setting(&*stage), &[]);
        self.stage = stage;
        for lane in &mut self.lanes {
            (lane.running, lane.waiting) = (None, None);
            lane.patience.begins_anew();
        }
        (self.rows_done, self.told, self.stood, self.sealed) = (0, (0, 0), Instant::now(), false);
        // Between stages nobody listened.
        self.peer_heard = self.stood;
        self.patience.begins_anew();
        self.take_up()
    }

    /// Takes up what is written down of the stage.
    fn take_up(&mut self) -> Result<(), Error> {
        let Some(log) = &self.job.log else { return Ok(()) };
        let (mut log, stage) = (log.borrow_mut(), self.stage.number());
        let held = log.held_work(stage)?.into_iter();
        self.finished.extend(held.map(|(unit, attempt, work)| ((unit, attempt), work)));
        self.state = UnitMachine::new(self.job.setting(&*self.stage), log.units(stage));
        let held = (0..self.stage.units()).filter(|unit| self.state.held(*unit).is_some());
        self.computed_before = held.count() as u64;
        Ok(())
    }

    /// Carries the stage out, after the `first` actions of its lanes.
    fn rounds(&mut self, first: Vec<LaneAction>, port: &LanePort) -> Result<(), Error> {
        self.take_lane_actions(first, port)?;
        (self.meets, self.failed_rows) = (true, 0);
        self.step(UnitEvent::Met)?;
        self.meets = false;
        let up = |lane: &u16| self.lanes[usize::from(*lane)].up;
        let up: Vec<u16> = (0..self.job.lanes).filter(up).collect();
        up.into_iter().try_for_each(|lane| self.step(UnitEvent::LaneUp(lane)))?;
        let mut tick = Instant::now() + TICK;
        while !self.sealed {
            self.make_due_doors()?;
            self.words.flush()?;
            let due = self.lanes.iter().filter_map(|lane| lane.due).map(|(at, _)| at);
            let until = due.min().map_or(tick, |due| due.min(tick));
            match self.inputs.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(input) => self.take(input, port)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::misuse("a coordinator hears itself at least"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= tick && !self.sealed {
                self.look_at_clocks(port)?;
                tick = Instant::now() + TICK;
            }
        }
        self.words.flush()
    }

    /// After the last seal nothing matters but that the peer has sealed, too: its workers leave as ours do.
    fn part(&mut self, input: CoordinatorInput) -> Result<(), Error> {
        match input {
            CoordinatorInput::Word(Word::Bye { reason: ByeReason::Done }) => self.parted = true,
            CoordinatorInput::Word(Word::Bye { reason }) => return Err(self.left(reason)),
            CoordinatorInput::Silence(error) => return Err(error),
            CoordinatorInput::Word(_)
            | CoordinatorInput::Crew(_)
            | CoordinatorInput::Arrival(_)
            | CoordinatorInput::Pin(..) => {}
        }
        Ok(())
    }

    fn take(&mut self, input: CoordinatorInput, port: &LanePort) -> Result<(), Error> {
        if matches!(input, CoordinatorInput::Word(_)) {
            self.hears_peer();
        }
        match input {
            CoordinatorInput::Word(Word::Beat { .. }) => Ok(()),
            CoordinatorInput::Word(Word::Bye { reason }) => Err(self.left(reason)),
            CoordinatorInput::Word(Word::Door { lane, generation, fingerprint, address }) => {
                let fingerprint = KeyFingerprint::from_bytes(fingerprint);
                self.peer_door(lane, PeerDoor { generation, fingerprint, address }, port)
            }
            CoordinatorInput::Word(word) => self.step(UnitEvent::Heard(word)),
            CoordinatorInput::Silence(error) => Err(error),
            CoordinatorInput::Arrival(LaneArrival { lane, generation, stream }) => {
                let here = &mut self.lanes[usize::from(lane)];
                match here.awaits.take() {
                    Some(awaited) if awaited == generation => self.connect(lane, LaneWay::Take(stream)),
                    awaited => {
                        (here.awaits, here.come) = (awaited, Some((generation, stream)));
                        Ok(())
                    }
                }
            }
            CoordinatorInput::Crew(event) if self.crew.is_current(&event) => self.take_event(event, port),
            CoordinatorInput::Crew(_) => Ok(()),
            CoordinatorInput::Pin(pin, answer) => {
                let log = self.job.log.as_ref().ok_or_else(|| Error::misuse("promises are kept"))?;
                let is_same = log.borrow_mut().pin(pin)?;
                // A worker that was killed meanwhile hears nothing.
                let _ = answer.send(is_same);
                Ok(())
            }
        }
    }

    fn take_event(&mut self, event: CrewEvent, port: &LanePort) -> Result<(), Error> {
        let (lane, now) = (event.lane, Instant::now());
        let here = &mut self.lanes[usize::from(lane)];
        here.heard = Some(now);
        here.patience.ends();
        match event.event {
            WorkerEvent::Door { generation, fingerprint, port: at } => {
                here.there = true;
                let address = self.await_peer((lane, generation), at, port)?;
                let fingerprint = fingerprint.bytes();
                self.words.say(&Word::Door { lane, generation, fingerprint, address })?;
                self.lane_step(lane, LaneEvent::DoorTold { generation }, port)
            }
            // One of an earlier generation has been left, or is about to be.
            WorkerEvent::Up { generation } if here.generation != generation || here.due.is_some() => Ok(()),
            WorkerEvent::Up { generation } => {
                here.up = true;
                let waiting = here.waiting.take();
                port.close_route(lane);
                self.lane_step(lane, LaneEvent::Up { generation }, port)?;
                waiting.map_or(Ok(()), |attempt| self.start(attempt, lane))?;
                self.step(UnitEvent::LaneUp(lane))
            }
            WorkerEvent::Down { generation, cause, error } => {
                here.up = false;
                self.why = Some(error);
                self.step(UnitEvent::LaneGone(lane, cause))?;
                self.lane_step(lane, LaneEvent::Down { generation }, port)
            }
            WorkerEvent::Beat(WorkerBeat { rows, peak_memory }) => {
                here.peak_memory = here.peak_memory.max(peak_memory);
                if let Some(running) = &mut here.running
                    && running.rows != rows
                {
                    (running.rows, running.progressed) = (rows, now);
                }
                self.report();
                Ok(())
            }
            // It was at an attempt of a stage that is sealed, for which nobody waits.
            WorkerEvent::Finished { at, work: FinishedWork { traffic, .. }, .. }
            | WorkerEvent::GaveUp { at, traffic, .. }
                if at.stage != self.stage.number() =>
            {
                self.lose(&traffic);
                Ok(())
            }
            WorkerEvent::Finished { at: UnitAttempt { unit, attempt, .. }, session, transcript, work } => {
                here.ends(unit, attempt);
                let (object, bytes) = (*blake3::hash(&work.shares).as_bytes(), work.shares.len() as u64);
                let held = HeldResult { attempt, session, transcript, object, bytes };
                if let Some(log) = &self.job.log {
                    log.borrow_mut().put_work(self.stage.number(), (unit, attempt), &work)?;
                }
                self.finished.insert((unit, attempt), work);
                self.step(UnitEvent::Finished(FinishedAttempt { unit, held }))
            }
            WorkerEvent::GaveUp { at: UnitAttempt { unit, attempt, .. }, cause, error, traffic } => {
                here.ends(unit, attempt);
                self.lose(&traffic);
                // What this party does wrong it would do wrong again.
                if let FailureCause::Stopped | FailureCause::Deviation = cause {
                    return Err(error);
                }
                self.why = Some(error);
                self.step(UnitEvent::GaveUp { unit, attempt, cause })
            }
            WorkerEvent::Gone { error } => self.worker_gone(lane, FailureCause::WorkerGone, error, port),
        }
    }

    /// Has the peer's worker find the one of a lane, at its own port where it has one; where the peer is told
    /// to go, or nothing where it goes to the port of the meeting, or a gate there.
    fn await_peer(
        &self,
        (lane, generation): (u16, u32),
        at: Option<u16>,
        port: &LanePort,
    ) -> Result<String, Error> {
        let (run, launched) = (&self.job.run, self.crew.host(lane));
        let door = |(host, at): (&LaneHost, u16)| host.door(launched.as_deref(), at);
        let own = self.job.host.as_ref().zip(at).map(door).transpose()?;
        match (port, own) {
            (LanePort::Listens(port), None) => {
                port.expect(run, lane, generation);
                Ok(String::new())
            }
            (LanePort::Listens(port), Some(own)) if port.route(run, lane, generation, &own)? => {
                Ok(String::new())
            }
            (_, own) => Ok(own.unwrap_or_default()),
        }
    }

    /// A worker is no more, or is believed to be: another one takes its place.
    fn worker_gone(
        &mut self,
        lane: u16,
        cause: FailureCause,
        error: Error,
        port: &LanePort,
    ) -> Result<(), Error> {
        self.crew.kill(lane);
        self.why = Some(error);
        if self.lanes[usize::from(lane)].peak_memory > 0 {
            self.ended.push(self.peak(lane, true));
        }
        let here = &mut self.lanes[usize::from(lane)];
        (here.running, here.heard, here.there) = (None, None, false);
        (here.up, here.peak_memory) = (false, 0);
        let generation = here.generation;
        self.step(UnitEvent::LaneGone(lane, cause))?;
        self.lane_step(lane, LaneEvent::Down { generation }, port)
    }

    fn peer_door(&mut self, lane: u16, door: PeerDoor, port: &LanePort) -> Result<(), Error> {
        let generation = door.generation;
        if let Some(here) = self.lanes.get_mut(usize::from(lane)) {
            here.peer = Some(door);
        }
        self.lane_step(lane, LaneEvent::PeerDoor { generation }, port)
    }

    fn lane_step(&mut self, lane: u16, event: LaneEvent, port: &LanePort) -> Result<(), Error> {
        let actions = self.book.step(lane, event).map_err(|wrong| self.deviates(wrong))?;
        self.take_lane_actions(actions, port)
    }

    fn take_lane_actions(&mut self, actions: Vec<LaneAction>, port: &LanePort) -> Result<(), Error> {
        for action in actions {
            match action {
                LaneAction::MakeDoor { lane, failures, .. } if failures >= units::LANE_FAILURES => {
                    let cause = FailureCause::LaneCut;
                    return Err(self.ended(UnitFailure::Lane { lane, cause }));
                }
                LaneAction::MakeDoor { lane, generation, failures } => {
                    let wait = match failures {
                        0 => Duration::ZERO,
                        _ => (AGAIN[0] * 2u32.pow(failures.min(16) - 1)).min(AGAIN[1]),
                    };
                    let here = &mut self.lanes[usize::from(lane)];
                    (here.awaits, here.come) = (None, None);
                    here.due = Some((Instant::now() + wait, generation));
                }
                LaneAction::Leave { lane } => {
                    self.lanes[usize::from(lane)].up = false;
                    self.crew.cut(lane);
                    self.step(UnitEvent::LaneGone(lane, FailureCause::LaneCut))?;
                }
                LaneAction::Connect { lane, generation } => self.join(lane, generation, port)?,
            }
        }
        Ok(())
    }

    fn make_due_doors(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        for lane in 0..self.job.lanes {
            let here = &mut self.lanes[usize::from(lane)];
            if let Some((_, generation)) = here.due.filter(|(at, _)| *at <= now) {
                (here.due, here.generation, here.heard) = (None, generation, Some(now));
                self.crew.order(lane, WorkerOrder::Door { generation })?;
            }
        }
        Ok(())
    }

    /// Both doors of a generation are open: one side goes to the other one's.
    fn join(&mut self, lane: u16, generation: u32, port: &LanePort) -> Result<(), Error> {
        let here = &mut self.lanes[usize::from(lane)];
        match port {
            LanePort::Dials(meeting) => {
                let told = here.peer.as_ref().map_or("", |door| &door.address);
                let address = if told.is_empty() { meeting.clone() } else { told.to_owned() };
                self.connect(lane, LaneWay::Dial(address))
            }
            LanePort::Listens(_) if self.job.host.is_some() => self.connect(lane, LaneWay::Await),
            LanePort::Listens(_) => match here.come.take() {
                Some((of, stream)) if of == generation => self.connect(lane, LaneWay::Take(stream)),
                _ => {
                    here.awaits = Some(generation);
                    Ok(())
                }
            },
        }
    }

    fn connect(&mut self, lane: u16, way: LaneWay) -> Result<(), Error> {
        let Some(PeerDoor { generation, fingerprint: peer, .. }) = self.lanes[usize::from(lane)].peer else {
            return Err(Error::misuse("a lane is opened once both doors are known"));
        };
        self.crew.order(lane, WorkerOrder::Connect { generation, peer, way })
    }

    /// Tells the machine, and does what it decides.
    fn step(&mut self, event: UnitEvent) -> Result<(), Error> {
        let actions = self.state.step(event).map_err(|wrong| self.deviates(wrong))?;
        if !actions.is_empty() {
            self.stood = Instant::now();
        }
        for action in actions {
            if !matches!(action, UnitAction::Write(_)) {
                self.write()?;
            }
            match action {
                UnitAction::Write(record) => {
                    if let Some(failed) = failed_unit(self.stage.name(), &record) {
                        self.count_failed(failed);
                    }
                    self.records.push(record);
                }
                UnitAction::Send(word) => self.words.say(&word)?,
                UnitAction::Start { unit, attempt, lane } => self.start((unit, attempt), lane)?,
                UnitAction::Cancel { unit, attempt, lane } => {
                    let here = &mut self.lanes[usize::from(lane)];
                    if here.waiting == Some((unit, attempt)) {
                        here.waiting = None;
                    } else {
                        here.running = None;
                        self.crew.cut(lane);
                    }
                }
                UnitAction::Again { unit, attempt, cause, peer } => {
                    let (units, what) = (self.stage.units(), self.stage.what());
                    let whose = if peer { "the peer's" } else { "this" };
                    (self.job.events)(Event::Note(format!(
                        "attempt {attempt} at unit {unit} of {units}{what} failed on {whose} side, as {}: it \
                         is computed again",
                        cause.words()
                    )));
                }
                UnitAction::Sealed { .. } => self.sealed = true,
                UnitAction::End(failure) => return Err(self.ended(failure)),
            }
        }
        self.write()
    }

    /// Puts the records of this step on stable storage. A run without state has nothing that outlives it.
    fn write(&mut self) -> Result<(), Error> {
        match &self.job.log {
            Some(log) if !self.records.is_empty() => {
                let spent = log.borrow().costs.clone();
                self.all_peaks().iter().for_each(|peak| spent.peak(peak));
                log.borrow_mut().write_units(self.stage.number(), &self.records)?;
            }
            _ => {}
        }
        self.records.clear();
        Ok(())
    }

    fn count_failed(&mut self, failed: FailedUnit) {
        let spent = self.job.log.as_ref().map(|log| log.borrow().costs.clone());
        if self.meets {
            spent.iter().for_each(|spent| spent.failed_before(&failed));
            return;
        }
        spent.iter().for_each(|spent| spent.failed(&failed));
        self.failed_rows += self.size(failed.unit);
        self.failed.push(failed);
    }

    fn start(&mut self, (unit, attempt): (u32, u32), lane: u16) -> Result<(), Error> {
        if !self.lanes[usize::from(lane)].up {
            self.lanes[usize::from(lane)].waiting = Some((unit, attempt));
            return Ok(());
        }
        let at = UnitAttempt { stage: self.stage.number(), unit, attempt };
        if let Some(log) = &self.job.log {
            log.borrow().forget_attempts(at.stage, (unit, attempt))?;
        }
        let work = Box::new(self.stage.work(unit, attempt)?);
        let progressed = Instant::now();
        self.lanes[usize::from(lane)].running = Some(Running { unit, attempt, rows: 0, progressed });
        self.crew.order(lane, WorkerOrder::Start { at, work })
    }

    fn look_at_clocks(&mut self, port: &LanePort) -> Result<(), Error> {
        let now = Instant::now();
        if now - std::mem::replace(&mut self.looked, now) > SILENT / 2 {
            // This process itself was stopped, or its machine was: what others said meanwhile waits.
            for lane in &mut self.lanes {
                lane.heard = lane.heard.map(|_| now);
                lane.running.iter_mut().for_each(|running| running.progressed = now);
            }
            (self.stood, self.peer_heard) = (now, now);
        }
        self.tell_silence(now);
        if self.lanes.iter().any(|lane| lane.running.is_some()) {
            self.stood = now;
        }
        // A peer that is there and lets nothing happen holds nobody for ever.
        if now - self.stood > IDLE {
            return Err(self.nothing_happens());
        }
        let rows = self.report();
        self.words.say(&Word::Beat { rows })?;
        for lane in 0..self.job.lanes {
            let here = &self.lanes[usize::from(lane)];
            if here.heard.is_some_and(|heard| now - heard > SILENT) {
                let error = self.error(Fault::Io(format!("worker {lane} has not been heard for {SILENT:?}")));
                self.worker_gone(lane, FailureCause::WorkerGone, error, port)?;
                continue;
            }
            // All rows as one unit may take longer from one word of progress to the next.
            let slow = self.stage.units() == 1;
            let idle = here.running.as_ref().filter(|running| !slow && now - running.progressed > IDLE);
            if let Some(Running { unit, attempt, .. }) = idle {
                let (unit, attempt, cause) = (*unit, *attempt, FailureCause::NoProgress);
                self.lanes[usize::from(lane)].running = None;
                self.crew.cut(lane);
                self.step(UnitEvent::GaveUp { unit, attempt, cause })?;
            }
        }
        Ok(())
    }

    /// Rows of a unit.
    fn size(&self, unit: u32) -> u64 {
        self.stage.rows(unit)
    }

    /// Rows whose computation is over at this side, told to whoever watches.
    fn report(&mut self) -> u64 {
        let units = self.stage.units();
        let held = (0..units).filter(|unit| self.state.held(*unit).is_some());
        let held = held.map(|unit| self.size(unit));
        let running = self.lanes.iter().filter_map(|lane| lane.running.as_ref()).map(|running| running.rows);
        self.rows_done = held.chain(running).sum::<u64>().max(self.rows_done);
        let all = (0..units).map(|unit| self.size(unit)).sum();
        self.job.progress.report(self.job.step, self.rows_done.min(all), all);
        let told = (self.state.done().into(), self.failed.len() as u64);
        if std::mem::replace(&mut self.told, told) != told {
            let (done, again) = told;
            (self.job.events)(Event::Units { done, of: units.into(), again });
        }
        self.rows_done
    }

    /// Results of all units.
    fn total(&mut self) -> Result<UnitsDone, Error> {
        self.report();
        let mut done = UnitsDone { units: self.stage.units().into(), ..UnitsDone::default() };
        for unit in 0..self.stage.units() {
            let held = self.state.held(unit).ok_or_else(|| Error::misuse("what is sealed is held"))?;
            let work = self.finished.remove(&(unit, held.attempt));
            let FinishedWork { shares, traffic } =
                work.ok_or_else(|| Error::misuse("what is held is there"))?;
            done.traffic.merge(&traffic);
            done.results.push(shares);
        }
        // What was finished and not held by both was in vain.
        std::mem::take(&mut self.finished).values().for_each(|work| self.lose(&work.traffic));
        done.lost = std::mem::take(&mut self.lost);
        (done.failed, done.failed_rows) = (std::mem::take(&mut self.failed), self.failed_rows);
        done.computed_before = std::mem::take(&mut self.computed_before);
        done.ended = std::mem::take(&mut self.ended);
        done.peaks = (0..self.job.lanes).map(|lane| self.peak(lane, false)).collect();
        Ok(done)
    }

    /// What an attempt has said that came to nothing.
    fn lose(&mut self, traffic: &Traffic) {
        self.lost.merge(traffic);
        if let Some(log) = &self.job.log {
            log.borrow().costs.lost(bytes_sent(traffic, "", (self.job.me, self.job.roster.len())));
        }
    }
}

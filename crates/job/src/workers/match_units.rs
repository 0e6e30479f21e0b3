//! Units of a match at workers: where its columns lie, what a worker is told of them, and what a peer asks in
//! every attempt.
//!
//! Columns lie in the party's state under a key that is drawn for one match, so that a worker has no key to
//! anything else there. A worker that is a process asks its coordinator whether the peer asks the same as
//! before, over the socket that rows come over: a request is one byte, 1, and the 32 bytes of a promise, and
//! its answer one byte, whether it is; a byte 0 asks nothing more.

use super::{UnitWork, UnitsCrew, UnitsDone, UnitsStage};
use base::{Error, Seed};
use matching::pid::{LaneDone, LaneStage, LaneStore, LaneTask, LaneWork, UnitCrew};
use matching::spill::SpillRoom;
use net::Session;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use store::{RunState, SealedStore, StateKey, StateStore, StoreOptions};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Memory of a worker for what a unit makes, before it is written.
const ROOM: u64 = 8 << 20;
/// The step of a match's messages.
const MATCH: &str = "match";
const OVER: u8 = 0;
const ASKS: u8 = 1;

/// Where the columns of a match lie, and how they are opened.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct MatchPlace {
    state: String,
    options: PlaceOptions,
    seal: MatchSeal,
    folder: String,
    /// Where columns go that a worker's memory does not hold.
    scratch: Option<PathBuf>,
    /// Cores of a worker.
    threads: usize,
}

/// [`StoreOptions`], as a worker is told.
#[derive(Clone, Serialize, Deserialize)]
struct PlaceOptions {
    endpoint: Option<String>,
    region: Option<String>,
    account: Option<String>,
    allow_http: bool,
}

/// The key that columns are sealed under, and the name that they are sealed for.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
struct MatchSeal {
    key: [u8; 32],
    run: [u8; 32],
}

/// A unit, as a worker is told.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct MatchUnitTold {
    task: LaneTask,
    place: MatchPlace,
    /// What it makes, in folders of this name.
    folder: String,
}

/// Says whether what a peer promises is what it did before.
type AskPin = Box<dyn FnMut([u8; 32]) -> Result<bool, Error> + Send>;

/// An attempt at a unit of the match.
pub(crate) struct MatchWork {
    pub unit: MatchUnitTold,
    ask: AskPin,
}

/// What a peer has promised first, by stage and unit: in this meeting, as keys are.
#[derive(Clone, Default)]
struct PinBook(Arc<Mutex<Promises>>);

type Promises = HashMap<(u8, u32), [u8; 32]>;

/// The units of one stage of the match.
struct MatchUnits {
    stage_of: [u8; 32],
    stage: LaneStage,
    tasks: Vec<LaneTask>,
    place: MatchPlace,
    pins: PinBook,
}

/// A crew at the stages of a match.
pub(crate) struct MatchStages<'c, 'j, 'a> {
    crew: &'c mut UnitsCrew<'j, 'a>,
    stage_of: [u8; 32],
    place: MatchPlace,
    store: LaneStore,
    state: Arc<RunState>,
    pins: PinBook,
    done: UnitsDone,
}

impl MatchPlace {
    /// In a folder of its own of a run's state, under a fresh key.
    pub fn new(state: &RunState, options: &StoreOptions, scratch: Option<PathBuf>, threads: usize) -> Self {
        let StoreOptions { endpoint, region, account, allow_http } = options.clone();
        let fresh = || *Seed::from_system().expose();
        Self {
            state: state.sealed().store().url().to_owned(),
            options: PlaceOptions { endpoint, region, account, allow_http },
            seal: MatchSeal { key: fresh(), run: fresh() },
            folder: state.folder(MATCH),
            scratch,
            threads,
        }
    }

    fn columns(&self, store: StateStore) -> LaneStore {
        let MatchSeal { key, run } = &self.seal;
        LaneStore::new(SealedStore::new(store, &StateKey::told(*key), run, MATCH), &self.folder)
    }

    fn open(&self) -> Result<LaneStore, Error> {
        let PlaceOptions { endpoint, region, account, allow_http } = self.options.clone();
        let options = StoreOptions { endpoint, region, account, allow_http };
        Ok(self.columns(StateStore::open(&self.state, &options)?))
    }
}

impl MatchWork {
    pub fn new(unit: MatchUnitTold, ask: AskPin) -> Self {
        Self { unit, ask }
    }

    /// Does it: what was made, and the transcript.
    ///
    /// # Errors
    /// As [`LaneTask::run`].
    pub fn run(mut self, session: &mut Session) -> Result<(Zeroizing<Vec<u8>>, [u8; 32]), Error> {
        let MatchUnitTold { task, place, folder } = &self.unit;
        let store = place.open()?;
        let room = SpillRoom::new(Some(ROOM), place.scratch.as_deref());
        let done = session.step(MATCH, |session| {
            session.step("pid", |session| {
                let pin = &mut *self.ask;
                let (store, room, threads) = (&store, &room, place.threads);
                task.run(session, LaneWork { store, folder, threads, room, pin })
            })
        })?;
        let bytes = serde_json::to_vec(&done).map_err(|e| Error::misuse(format!("no result: {e}")))?;
        Ok((Zeroizing::new(bytes), done.transcript))
    }
}

impl PinBook {
    /// Whether it is the first promise in a unit, or the same.
    fn keep(&self, stage: u8, unit: u32, promise: [u8; 32]) -> bool {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *book.entry((stage, unit)).or_insert(promise) == promise
    }
}

/// The number of a stage in words and seals: the computation has 1.
fn number(stage: LaneStage) -> u8 {
    match stage {
        LaneStage::Streams => 2,
        LaneStage::Differences => 3,
        LaneStage::Others => 4,
    }
}

impl UnitsStage for MatchUnits {
    fn number(&self) -> u8 {
        number(self.stage)
    }

    fn of(&self) -> [u8; 32] {
        self.stage_of
    }

    fn units(&self) -> u32 {
        self.tasks.len() as u32
    }

    fn what(&self) -> String {
        format!(" of {} in the match", self.stage.name())
    }

    fn rows(&self, unit: u32) -> u64 {
        self.tasks.get(unit as usize).map_or(0, LaneTask::rows)
    }

    fn work(&self, unit: u32, attempt: u32) -> Result<UnitWork, Error> {
        let task =
            self.tasks.get(unit as usize).ok_or_else(|| Error::misuse("a unit is one of its stage"))?;
        let folder = format!("{}-{unit:04}-{attempt:04}", self.stage.name());
        let (pins, stage) = (self.pins.clone(), self.number());
        let ask = move |promise| Ok(pins.keep(stage, unit, promise));
        let unit = MatchUnitTold { task: task.clone(), place: self.place.clone(), folder };
        Ok(UnitWork::Match(Box::new(MatchWork::new(unit, Box::new(ask)))))
    }
}

impl<'c, 'j, 'a> MatchStages<'c, 'j, 'a> {
    /// Of a match whose columns lie in a place of `state`; `stage_of` names it, the same at both.
    pub fn new(
        crew: &'c mut UnitsCrew<'j, 'a>,
        stage_of: [u8; 32],
        place: MatchPlace,
        state: Arc<RunState>,
    ) -> Self {
        let store = place.columns(state.sealed().store().clone());
        let (pins, done) = (PinBook::default(), UnitsDone::default());
        Self { crew, stage_of, place, store, state, pins, done }
    }

    /// What was said over lanes, and what failed.
    pub fn take_done(&mut self) -> UnitsDone {
        std::mem::take(&mut self.done)
    }
}

impl UnitCrew for MatchStages<'_, '_, '_> {
    fn lanes(&self) -> u64 {
        self.crew.lanes().into()
    }

    fn store(&self) -> &LaneStore {
        &self.store
    }

    fn run(&mut self, tasks: Vec<LaneTask>) -> Result<Vec<LaneDone>, Error> {
        let stage = tasks.first().map(LaneTask::stage).ok_or_else(|| Error::misuse("a stage has a unit"))?;
        let (stage_of, place, pins) = (self.stage_of, self.place.clone(), self.pins.clone());
        let done = self.crew.stage(Box::new(MatchUnits { stage_of, stage, tasks, place, pins }))?;
        let read = |result: &Zeroizing<Vec<u8>>| {
            serde_json::from_slice(result).map_err(|e| Error::misuse(format!("a worker's result: {e}")))
        };
        let results = done.results.iter().map(read).collect::<Result<_, _>>()?;
        self.done.merge(done);
        Ok(results)
    }

    fn forget(&mut self, folder: &str) -> Result<(), Error> {
        self.state.remove(&self.store.folder(folder))
    }
}

/// What a match has laid down goes with it: who comes next has other keys.
impl Drop for MatchStages<'_, '_, '_> {
    fn drop(&mut self) {
        // What cannot be removed goes with the state.
        let _ = self.state.remove(&self.place.folder);
    }
}

/// Pins at a worker process, which its coordinator has.
pub(crate) struct RemotePins(UnixStream);

impl RemotePins {
    /// # Errors
    /// When the system gives no further descriptor.
    pub fn new(stream: &UnixStream) -> Result<Self, Error> {
        let stream = stream.try_clone().map_err(|e| Error::io("cannot share a worker's socket", &e))?;
        Ok(Self(stream))
    }

    /// Asks the coordinator.
    ///
    /// # Errors
    /// When it is gone.
    pub fn ask(&mut self, promise: [u8; 32]) -> Result<bool, Error> {
        let gone = |e: std::io::Error| Error::io("the coordinator is gone", &e);
        self.0.write_all(&[&[ASKS][..], &promise].concat()).map_err(gone)?;
        let mut answer = [0; 1];
        self.0.read_exact(&mut answer).map_err(gone)?;
        Ok(answer == [1])
    }
}

impl Drop for RemotePins {
    fn drop(&mut self) {
        // Whoever answers hears of a worker that is gone from its other socket.
        let _ = self.0.write_all(&[OVER]);
    }
}

/// Answers what a worker process asks in one attempt, until it asks nothing more.
///
/// # Errors
/// When the worker is gone.
pub(crate) fn serve_pins(stream: &mut UnixStream, work: &mut MatchWork) -> Result<(), Error> {
    let gone = |e: std::io::Error| Error::io("a worker is gone", &e);
    loop {
        let mut kind = [0; 1];
        stream.read_exact(&mut kind).map_err(gone)?;
        if kind == [OVER] {
            return Ok(());
        }
        let mut promise = [0; 32];
        stream.read_exact(&mut promise).map_err(gone)?;
        let same = (work.ask)(promise)?;
        stream.write_all(&[u8::from(same)]).map_err(gone)?;
    }
}

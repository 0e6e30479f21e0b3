//! Units of a match at workers: where its columns lie, what a worker is told of them, and what a peer asks in
//! every attempt.
//!
//! Columns lie in the party's state under a key that is drawn for one match, so that a worker has no key to
//! anything else there. What a peer promises is pinned in the run's log, by the coordinator's own thread: so
//! it binds the peer in later meetings, too. A worker that is a process asks its coordinator whether the peer
//! asks the same as before, over the socket that rows come over: a request is one byte, 1, and the 32 bytes
//! of a promise, and its answer one byte, whether it is; a byte 0 asks nothing more.

use super::coordinate::CoordinatorInput;
use super::{UnitWork, UnitsCrew, UnitsDone, UnitsStage};
use crate::kept::{MatchDraw, UnitPin};
use base::{At, Error, Fault, Seed};
use matching::pid::{LaneBegun, LaneDone, LaneNotes, LaneStage, LaneStore, LaneTask, LaneWork, UnitCrew};
use matching::spill::SpillRoom;
use net::Session;
use privacy::ledger::Bytes32;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
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

/// The match that is made, as both name it.
pub(crate) struct MatchName {
    /// The name of the meeting in which it began.
    pub name: Bytes32,
    /// The data of both.
    pub tags: Vec<Bytes32>,
    /// Of which beginning its made-up rows are.
    pub draw: MatchDraw,
    /// Whether it goes on in this one.
    pub goes_on: bool,
}

/// What this party writes down of a match that begins.
#[derive(Serialize, Deserialize)]
struct MatchSecrets {
    begun: LaneBegun,
    seal: MatchSeal,
}

/// Has promises of the peer's pinned by the coordinator, who alone writes.
#[derive(Clone)]
pub(super) struct PinAsker(SyncSender<CoordinatorInput>);

impl PinAsker {
    pub fn new(coordinator: SyncSender<CoordinatorInput>) -> Self {
        Self(coordinator)
    }

    /// Whether it is what the peer promised first; it is on stable storage then.
    ///
    /// # Errors
    /// When the coordinator has ended.
    pub fn ask(&self, pin: UnitPin) -> Result<bool, Error> {
        let gone = || Error::new(At::default(), Fault::Io("the coordinator has ended".to_owned()));
        let (answer, answered) = sync_channel(1);
        self.0.send(CoordinatorInput::Pin(pin, answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

/// The units of one stage of the match.
struct MatchUnits {
    stage_of: [u8; 32],
    stage: LaneStage,
    tasks: Vec<LaneTask>,
    place: MatchPlace,
    asker: PinAsker,
}

/// A crew at the stages of a match.
pub(crate) struct MatchStages<'c, 'j, 'a> {
    crew: &'c mut UnitsCrew<'j, 'a>,
    of: MatchName,
    /// What an earlier meeting began, until it is gone on with.
    begun: Option<LaneBegun>,
    place: MatchPlace,
    store: LaneStore,
    state: Arc<RunState>,
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

/// The number of a stage in words, seals and logs: they are [`super::MATCH_STAGES`].
fn number(stage: LaneStage) -> u8 {
    match stage {
        LaneStage::Streams => 2,
        LaneStage::Differences => 3,
        LaneStage::Others => 4,
    }
}

/// The stage of a match that has a number.
pub(crate) fn stage_of_match(of: u8) -> Option<LaneStage> {
    [LaneStage::Streams, LaneStage::Differences, LaneStage::Others]
        .into_iter()
        .find(|stage| number(*stage) == of)
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

    fn name(&self) -> &'static str {
        self.stage.name()
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
        let (asker, stage, mut asked) = (self.asker.clone(), self.number(), 0);
        let ask = move |promise| {
            let pin = UnitPin { stage, unit, number: asked, promise };
            asked = asked.saturating_add(1);
            asker.ask(pin)
        };
        let unit = MatchUnitTold { task: task.clone(), place: self.place.clone(), folder };
        Ok(UnitWork::Match(Box::new(MatchWork::new(unit, Box::new(ask)))))
    }
}

impl<'c, 'j, 'a> MatchStages<'c, 'j, 'a> {
    /// Of a match whose columns lie in a place of `state`, or where an earlier meeting has put them.
    ///
    /// # Errors
    /// When the store fails, or has lost what the match goes on from.
    pub fn new(
        crew: &'c mut UnitsCrew<'j, 'a>,
        of: MatchName,
        mut place: MatchPlace,
        state: Arc<RunState>,
    ) -> Result<Self, Error> {
        let mut begun = None;
        if of.goes_on {
            let (folder, secrets) = crew.log()?.match_secrets()?;
            let secrets: MatchSecrets = serde_json::from_slice(&secrets)
                .map_err(|e| Error::misuse(format!("what a match goes on from is not read: {e}")))?;
            (place.folder, place.seal, begun) = (folder, secrets.seal, Some(secrets.begun));
        }
        let store = place.columns(state.sealed().store().clone());
        Ok(Self { crew, of, begun, place, store, state, done: UnitsDone::default() })
    }

    /// What was said over lanes, and what failed.
    pub fn take_done(&mut self) -> UnitsDone {
        std::mem::take(&mut self.done)
    }

    fn named(&self, context: &str) -> [u8; 32] {
        blake3::derive_key(context, &self.of.name)
    }
}

impl UnitCrew for MatchStages<'_, '_, '_> {
    fn lanes(&self) -> u64 {
        self.crew.lanes().into()
    }

    fn store(&self) -> &LaneStore {
        &self.store
    }

    fn name(&self) -> [u8; 16] {
        let name = self.named("tacit 2026-12 name of a match over lanes v1");
        *name.first_chunk().expect("a hash is longer")
    }

    fn begun(&mut self) -> Result<Option<LaneBegun>, Error> {
        Ok(self.begun.take())
    }

    fn begins(&mut self, begun: &LaneBegun) -> Result<(), Error> {
        let secrets = MatchSecrets { begun: begun.clone(), seal: self.place.seal.clone() };
        let secrets = serde_json::to_vec(&secrets);
        let secrets = Zeroizing::new(secrets.map_err(|e| Error::misuse(format!("no keys to keep: {e}")))?);
        let of = (self.of.name, &self.of.tags[..], self.of.draw);
        self.crew.log()?.begin_match(of, &self.place.folder, &secrets)
    }

    fn keeps(&self) -> bool {
        self.crew.log().is_ok_and(|log| log.is_matching())
    }

    fn notes(&self) -> LaneNotes {
        self.crew.log().map(|log| log.notes()).unwrap_or_default()
    }

    fn note(&mut self, notes: LaneNotes) -> Result<(), Error> {
        self.crew.log()?.note(notes)
    }

    fn pin(&mut self, stage: LaneStage, told: [u8; 32]) -> Result<bool, Error> {
        let stage = number(stage);
        self.crew.log()?.pin(UnitPin { stage, unit: UnitPin::ALL, number: 0, promise: told })
    }

    fn is_sealed(&self, stage: LaneStage) -> bool {
        self.crew.log().is_ok_and(|log| log.is_sealed(number(stage)))
    }

    fn run(&mut self, tasks: Vec<LaneTask>) -> Result<Vec<LaneDone>, Error> {
        let stage = tasks.first().map(LaneTask::stage).ok_or_else(|| Error::misuse("a stage has a unit"))?;
        let stage_of = self.named("tacit 2026-12 units of a match v1");
        let (place, asker) = (self.place.clone(), self.crew.asker());
        let done = self.crew.stage(Box::new(MatchUnits { stage_of, stage, tasks, place, asker }))?;
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

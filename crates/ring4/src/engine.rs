//! Four servers as an engine of programs: data owners enter, the servers compute, viewers get outputs.
//!
//! Owners are the parties of the program; a server may be one of them. Those that are not come after the
//! parties in the roster. Rows have keys of their own, draws and the releases that take them one set
//! together ([`release::RingNoise`]); other releases and lists set up keys anew.

mod circuit_engine;
mod combine;
mod evaluate;
mod numbers;
mod release;
mod rows;
mod sums;
mod times;

pub use rows::RingRows;
pub use times::{RowPhase, RowTimes};

use self::release::{RingDraw, RingLists, RingRelease};
use crate::seats::member::Member;
use crate::{RoundQuote, Settings};
use accel::DeviceQueue;
use base::{Error, PartyId};
use engine::{Engine, IdleStage, PreparedDraw, PreparedLists, PreparedRelease, PreparedRows, RowSource};
use net::Session;
use program::Program;
use program::lower::combine::SelectionCircuit;
use program::lower::{Depth, Draws, ReleasePlan, TotalsForm};
use std::sync::Arc;

type Devices = dyn Fn() -> Result<DeviceQueue, Error> + Send + Sync;

/// The engine, and how it is set up: the same at all participants, but for their devices.
#[derive(Clone)]
pub struct Ring4 {
    pub(crate) settings: Settings,
    pub(crate) seats: [PartyId; 4],
    devices: Arc<Devices>,
    pub(crate) shape: SelectionCircuit,
    pub(crate) chunk: Option<usize>,
}

impl Ring4 {
    /// An engine of four servers at these seats. All participants take the same settings and seats; `devices`
    /// makes the queue of a stage that runs, at those with a seat.
    #[must_use]
    pub fn new(
        settings: Settings,
        seats: [PartyId; 4],
        devices: impl Fn() -> Result<DeviceQueue, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { settings, seats, devices: Arc::new(devices), shape: SelectionCircuit::default(), chunk: None }
    }

    /// With another circuit for best rows. All participants take the same.
    #[must_use]
    pub fn with_shape(mut self, shape: SelectionCircuit) -> Self {
        self.shape = shape;
        self
    }

    /// With another number of rows, or lanes, computed at once, a power of two of at least 128. All
    /// participants take the same. For measurements.
    #[must_use]
    pub fn with_chunk(mut self, rows: usize) -> Self {
        assert!(
            rows >= 128 && rows.is_power_of_two(),
            "rows come in blocks of 128, and trees in powers of two"
        );
        self.chunk = Some(rows);
        self
    }

    /// With other devices. Every participant may take its own.
    #[must_use]
    pub fn with_devices(
        self,
        devices: impl Fn() -> Result<DeviceQueue, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { devices: Arc::new(devices), ..self }
    }

    /// How the four compute.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// [`Engine::rows`], which other channels can take over.
    #[must_use]
    pub fn prepare(&self, program: &Program) -> RingRows {
        RingRows::new(program, self.clone())
    }

    /// Who takes part where a program has so many parties.
    fn participants(&self, parties: usize) -> usize {
        let last = self.seats.iter().map(|seat| seat.index() + 1).max().unwrap_or(0);
        parties.max(last)
    }

    pub(crate) fn quote(&self, parties: usize) -> RoundQuote {
        RoundQuote::new(self.settings, self.seats, self.participants(parties))
    }

    pub(crate) fn check_roster(&self, parties: usize, session: &Session) -> Result<(), Error> {
        let (wanted, there) = (self.participants(parties), session.roster().len());
        let distinct = (0..4).all(|i| (0..i).all(|j| self.seats[i] != self.seats[j]));
        if wanted == there && distinct {
            return Ok(());
        }
        Err(Error::input(format!(
            "this study is for {parties} parties and four servers, {wanted} participants in all; {there} \
             take part"
        )))
    }

    pub(crate) fn member(&self, session: &mut Session) -> Result<Member, Error> {
        let queue =
            if self.seats.contains(&session.me()) { (self.devices)()? } else { DeviceQueue::default() };
        Member::new(session, self.seats, self.settings, queue)
    }
}

impl Engine for Ring4 {
    fn name(&self) -> &'static str {
        "ring4"
    }

    fn rows(&self, program: &Program, source: RowSource) -> Result<Box<dyn PreparedRows>, Error> {
        source.must_be_owned(self.name())?;
        Ok(Box::new(self.prepare(program)))
    }

    fn totals(&self) -> TotalsForm {
        TotalsForm::Replicated
    }

    /// Every level of gates is a round of the four.
    fn release_depth(&self, _: usize) -> Depth {
        Depth::Shallow
    }

    fn draw(&self, draws: &Arc<Draws>) -> Result<Box<dyn PreparedDraw>, Error> {
        match draws.drawn.is_empty() {
            true => Ok(Box::new(IdleStage(self.participants(draws.parties)))),
            false => Ok(Box::new(RingDraw::new(draws.clone(), self.clone()))),
        }
    }

    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error> {
        Ok(Box::new(RingRelease::new(plan.clone(), self.clone())))
    }

    fn lists(&self, program: &Program, viewer: PartyId) -> Result<Box<dyn PreparedLists>, Error> {
        Ok(Box::new(RingLists::new(program, viewer, self.clone())))
    }
}

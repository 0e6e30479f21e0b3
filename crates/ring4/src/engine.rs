//! Four servers as an engine of programs: data owners enter, the servers compute, viewers get outputs.
//!
//! Owners are the parties of the program; a server may be one of them. Those that are not come after the
//! parties in the roster. Rows have keys of their own, draws and the releases that take them one set
//! together; other releases and lists set up keys anew. Between calls nothing is kept but that, the noise,
//! and summands of totals.

mod circuit_engine;
mod combine;
mod evaluate;
mod numbers;
mod release;
mod rows;
mod sums;

use self::release::Noises;
use crate::seats::member::Member;
use crate::{Quote, Seat, Settings};
use accel::DeviceQueue;
use base::{Cost, Error, PartyId};
use engine::{Engine, Entered, OutputShares, Shares, outputs};
use net::Session;
use program::Program;
use program::ShardRows;
use program::lower::combine::SelectionCircuit;
use program::lower::{Depth, Draws, EntryRule, ReleasePlan, TotalsForm};

type Devices = dyn FnMut() -> Result<DeviceQueue, Error> + Send;

/// The engine of one participant: owner, server or both.
pub struct Ring4 {
    settings: Settings,
    seats: [PartyId; 4],
    devices: Box<Devices>,
    shape: SelectionCircuit,
    chunk: Option<usize>,
    /// Noise, and the keys that it was drawn under: those of its releases.
    drawn: Option<(Member, Noises)>,
}

impl Ring4 {
    /// An engine of four servers at these seats. All participants take the same settings and seats; `devices`
    /// makes the queue of a call, at those with a seat.
    #[must_use]
    pub fn new(
        settings: Settings,
        seats: [PartyId; 4],
        devices: impl FnMut() -> Result<DeviceQueue, Error> + Send + 'static,
    ) -> Self {
        Self {
            settings,
            seats,
            devices: Box::new(devices),
            shape: SelectionCircuit::default(),
            chunk: None,
            drawn: None,
        }
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

    pub(crate) fn chunk(&self) -> Option<usize> {
        self.chunk
    }

    /// ANDs of shares over so many rows of a program: what a link and a server work off.
    #[must_use]
    pub fn and_gates(&self, program: &Program, rows: u64) -> u64 {
        self.prepared(program, rows).and_gates()
    }

    /// ANDs of shares of a release, and its messages that follow one another.
    #[must_use]
    pub fn release_work(&self, plan: &ReleasePlan) -> [u64; 2] {
        let (quote, and_gates) = release::quote(plan, self.quote(plan.parties));
        [and_gates, quote.trips()]
    }

    /// The same of drawing noise.
    #[must_use]
    pub fn draw_work(&self, draws: &Draws) -> [u64; 2] {
        let (quote, and_gates) = release::quote_draw(draws, self.quote(draws.parties));
        [and_gates, quote.trips()]
    }

    /// Who takes part where a program has so many parties.
    fn participants(&self, parties: usize) -> usize {
        let last = self.seats.iter().map(|seat| seat.index() + 1).max().unwrap_or(0);
        parties.max(last)
    }

    pub(crate) fn quote(&self, parties: usize) -> Quote {
        Quote::new(self.settings, self.seats, self.participants(parties))
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

    pub(crate) fn member(&mut self, session: &mut Session) -> Result<Member, Error> {
        let queue =
            if self.seats.contains(&session.me()) { (self.devices)()? } else { DeviceQueue::default() };
        Member::new(session, self.seats, self.settings, queue)
    }

    /// What owners may enter.
    pub(crate) fn inputs(&self) -> EntryRule {
        self.settings.inputs()
    }

    fn prepared(&self, program: &Program, rows: u64) -> rows::Prepared {
        rows::Prepared::new(program, self.shape, rows, self.inputs()).with_chunk(self.chunk)
    }

    fn quote_rows(&self, program: &Program, rows: u64) -> Quote {
        self.prepared(program, rows).quote(self.quote(program.parties.len()))
    }
}

impl Engine for Ring4 {
    fn name(&self) -> &'static str {
        "ring4"
    }

    fn check(&self, _: &Program) -> Result<(), Error> {
        Ok(())
    }

    fn totals(&self) -> TotalsForm {
        TotalsForm::Replicated
    }

    fn price_rows(&self, program: &Program, rows: u64) -> Cost {
        self.quote_rows(program, rows).total()
    }

    fn trips(&self, program: &Program, rows: u64) -> u64 {
        self.quote_rows(program, rows).trips()
    }

    fn rows(
        &mut self,
        program: &Program,
        rows: &mut dyn ShardRows,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        self.check(program)?;
        self.check_roster(program.parties.len(), session)?;
        let prepared = self.prepared(program, rows.len());
        let seat = self.seats.iter().position(|party| *party == session.me()).map(Seat::new);
        session.step("rows", |s| rows::run(&prepared, seat, |s| self.member(s), rows, s))
    }

    fn price_draw(&self, draws: &Draws) -> Cost {
        release::quote_draw(draws, self.quote(draws.parties)).0.total()
    }

    fn draw(&mut self, draws: &Draws, given: &Entered, session: &mut Session) -> Result<(), Error> {
        if draws.drawn.is_empty() {
            return Ok(());
        }
        self.check_roster(draws.parties, session)?;
        self.drawn = Some(session.step("draw", |session| {
            let mut member = self.member(session)?;
            let noises = release::draw(draws, given, &mut member, session)?;
            Ok((member, noises))
        })?);
        Ok(())
    }

    /// Every level of gates is a round of the four.
    fn release_depth(&self, _: usize) -> Depth {
        Depth::Shallow
    }

    fn holders(&self, _: usize) -> Vec<PartyId> {
        self.seats.to_vec()
    }

    fn price_release(&self, plan: &ReleasePlan) -> Cost {
        release::quote(plan, self.quote(plan.parties)).0.total()
    }

    fn release(
        &mut self,
        plan: &ReleasePlan,
        entered: &Entered,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        self.check_roster(plan.parties, session)?;
        if let Some(alone) = outputs::alone(plan, entered, session.me())? {
            return Ok(alone);
        }
        if plan.bits() == 0 {
            return Ok(OutputShares::none());
        }
        session.step("release", |s| match &mut self.drawn {
            Some((member, noises)) if plan.is_drawn() => release::run((plan, noises), member, entered, s),
            _ => release::run((plan, &Noises::default()), &mut self.member(s)?, entered, s),
        })
    }

    fn price_lists(&self, program: &Program, rows: u64, viewer: PartyId) -> Cost {
        release::quote_lists(program, rows, viewer, self.quote(program.parties.len())).total()
    }

    fn lists(
        &mut self,
        program: &Program,
        rows: u64,
        viewer: PartyId,
        totals: &Shares,
        session: &mut Session,
    ) -> Result<Vec<Vec<u64>>, Error> {
        self.check_roster(program.parties.len(), session)?;
        session.step("lists", |s| release::run_lists(program, |s| self.member(s), rows, viewer, totals, s))
    }
}

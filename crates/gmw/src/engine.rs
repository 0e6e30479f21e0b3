//! GMW as an engine of programs: sums between two parties by correlated OT alone ([`sums`]), everything else
//! as gates over lanes ([`crate::rows`]). Between two parties `yao` keeps the release section.

use crate::{release, rows};
use ::engine::{Engine, Entered, OutputShares, Shares};
use base::{Cost, Error, PartyId};
use net::Session;
use ot::{Bases, OtKind};
use program::lower::combine::SelectionCircuit;
use program::lower::{Depth, ReleasePlan};
use program::{JoinedRows, ShardRows};
use program::{Program, Sharing};
use yao::Yao;

/// The engine of one party.
pub struct Gmw {
    kind: OtKind,
    shape: SelectionCircuit,
    lanes: usize,
    base: Base,
}

/// Where the base OTs of sums between two parties come from.
enum Base {
    /// Every shard runs them.
    Own,
    /// A hub: there until a shard takes them.
    Hub(Option<Bases>),
}

impl Default for Gmw {
    fn default() -> Self {
        Self::new(OtKind::default())
    }
}

impl Gmw {
    /// An engine over an OT back end. All parties take the same.
    #[must_use]
    pub fn new(kind: OtKind) -> Self {
        Self { kind, shape: SelectionCircuit::default(), lanes: sums::LANES, base: Base::Own }
    }

    /// With another number of rows in a batch of sums between two parties, a multiple of 64. For
    /// measurements.
    #[must_use]
    pub fn with_lanes(mut self, lanes: usize) -> Self {
        assert!(lanes > 0 && lanes.is_multiple_of(64), "lanes come in words of 64");
        self.lanes = lanes;
        self
    }

    /// With another circuit for best rows. All parties take the same.
    #[must_use]
    pub fn with_shape(mut self, shape: SelectionCircuit) -> Self {
        self.shape = shape;
        self
    }

    /// For one shard of sums between two parties over base OTs of a hub ([`ot::Hubs`]); `None` prices such a
    /// shard. All parties do the same.
    #[must_use]
    pub fn over(mut self, bases: Option<Bases>) -> Self {
        self.base = Base::Hub(bases);
        self
    }

    pub(crate) fn kind(&self) -> OtKind {
        self.kind
    }

    fn pair(&self, program: &Program, me: PartyId) -> Result<sums::Prepared, Error> {
        sums::Prepared::new(program, me, self.kind, self.lanes).map(|prepared| self.over_base(prepared))
    }

    fn pair_joined(
        &self,
        program: &Program,
        shared: [bool; 2],
        me: PartyId,
    ) -> Result<sums::Prepared, Error> {
        let prepared = sums::Prepared::joined(program, shared, me, self.kind, self.lanes);
        prepared.map(|prepared| self.over_base(prepared))
    }

    fn over_base(&self, prepared: sums::Prepared) -> sums::Prepared {
        match self.base {
            Base::Own => prepared,
            Base::Hub(_) => prepared.over_hub(),
        }
    }

    /// The base OTs of one shard; `None`: it runs its own.
    fn take_bases(&mut self) -> Result<Option<Bases>, Error> {
        match &mut self.base {
            Base::Own => Ok(None),
            Base::Hub(bases) => match bases.take() {
                Some(bases) => Ok(Some(bases)),
                None => Err(Error::misuse("base OTs of a hub serve one shard")),
            },
        }
    }

    fn yao(&self) -> Yao {
        match self.kind {
            OtKind::SoftSpoken { k } => Yao::new(k),
            OtKind::Ferret => Yao::default(),
        }
    }

    /// Rounds of openings of a program over so many rows.
    #[must_use]
    pub fn depth(&self, program: &Program, rows: u64) -> u64 {
        rows::Prepared::new(program, self.shape, rows).depth()
    }
}

impl Engine for Gmw {
    fn name(&self) -> &'static str {
        "gmw"
    }

    fn check(&self, program: &Program) -> Result<(), Error> {
        if program.sharing() == Sharing::Additive {
            return self.pair(program, PartyId(0)).map(|_| ());
        }
        Ok(())
    }

    fn price_rows(&self, program: &Program, rows: u64) -> Cost {
        if program.sharing() == Sharing::Boolean {
            return rows::Prepared::new(program, self.shape, rows).price(self.kind);
        }
        // A program that does not fit is refused by `check`; it has no price.
        self.pair(program, PartyId(0)).map_or_else(|_| Cost::zero(2), |prepared| prepared.price(rows))
    }

    fn trips(&self, program: &Program, rows: u64) -> u64 {
        if program.sharing() == Sharing::Boolean {
            return rows::Prepared::new(program, self.shape, rows).trips(self.kind);
        }
        self.pair(program, PartyId(0)).map_or(0, |prepared| prepared.trips(rows))
    }

    fn rows(
        &mut self,
        program: &Program,
        rows: &mut dyn ShardRows,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        check_parties(program.parties.len(), session)?;
        if program.sharing() == Sharing::Additive {
            let prepared = self.pair(program, session.me())?;
            let bases = self.take_bases()?;
            return session.step("rows", |session| prepared.run(rows, bases, session));
        }
        let prepared = rows::Prepared::new(program, self.shape, rows.len());
        session.step("rows", |session| rows::run(&prepared, self.kind, program, rows, session))
    }

    fn check_joined(&self, program: &Program, shared: [bool; 2]) -> Result<(), Error> {
        self.pair_joined(program, shared, PartyId(0)).map(|_| ())
    }

    fn price_joined(&self, program: &Program, shared: [bool; 2], rows: u64) -> Cost {
        let prepared = self.pair_joined(program, shared, PartyId(0));
        prepared.map_or_else(|_| Cost::zero(2), |prepared| prepared.price(rows))
    }

    fn trips_joined(&self, program: &Program, shared: [bool; 2], rows: u64) -> u64 {
        self.pair_joined(program, shared, PartyId(0)).map_or(0, |prepared| prepared.trips(rows))
    }

    fn joined(
        &mut self,
        program: &Program,
        shared: [bool; 2],
        rows: &mut dyn JoinedRows,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        check_parties(program.parties.len(), session)?;
        let prepared = self.pair_joined(program, shared, session.me())?;
        let bases = self.take_bases()?;
        session.step("rows", |session| prepared.run_joined(rows, bases, session))
    }

    /// Among more than two parties every level of gates is a round of all.
    fn release_depth(&self, parties: usize) -> Depth {
        if parties > 2 { Depth::Shallow } else { Depth::Ripple }
    }

    fn price_release(&self, plan: &ReleasePlan) -> Cost {
        match by_yao(plan) {
            true => self.yao().price_release(plan),
            false => release::price(plan, self.kind),
        }
    }

    fn release(
        &mut self,
        plan: &ReleasePlan,
        entered: &Entered,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        check_parties(plan.parties, session)?;
        if by_yao(plan) {
            return self.yao().release(plan, entered, session);
        }
        session.step("release", |session| release::run(plan, self.kind, entered, session))
    }

    fn price_lists(&self, program: &Program, rows: u64, viewer: PartyId) -> Cost {
        release::price_lists(program, rows, viewer)
    }

    fn lists(
        &mut self,
        program: &Program,
        rows: u64,
        viewer: PartyId,
        totals: &Shares,
        session: &mut Session,
    ) -> Result<Vec<Vec<u64>>, Error> {
        check_parties(program.parties.len(), session)?;
        session.step("lists", |session| release::run_lists(program, rows, viewer, totals, session))
    }
}

/// Whether `yao` runs a release: between two parties, where there are gates or noise. What only takes shares
/// apart is one message here.
fn by_yao(plan: &ReleasePlan) -> bool {
    plan.parties == 2 && (plan.is_noised() || plan.circuit.and_gates() > 0)
}

fn check_parties(parties: usize, session: &Session) -> Result<(), Error> {
    if parties >= 2 && session.roster().len() == parties {
        return Ok(());
    }
    let there = session.roster().len();
    Err(Error::input(format!("this study is for {parties} parties; {there} take part")))
}

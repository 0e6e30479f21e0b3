//! GMW as an engine of programs: sums between two parties by correlated OT alone ([`sums`]), everything else
//! as gates over lanes ([`crate::rows`]). Between two parties `yao` keeps the release section.

use crate::release::{GateLists, GateRelease};
use crate::rows::GateRows;
use ::engine::{
    Engine, PreparedLists, PreparedRelease, PreparedRows, RowInput, RowSource, Shares, StagePrice,
};
use base::{Error, PartyId};
use net::Session;
use ot::OtKind;
use program::lower::combine::SelectionCircuit;
use program::lower::{Depth, JoinedPlan, ReleasePlan};
use program::{Program, Sharing};
use std::sync::Arc;
use sums::SumRows;
use yao::Yao;

/// The engine, and how it is set up: the same at all parties.
#[derive(Clone, Copy, Debug)]
pub struct Gmw {
    pub(crate) kind: OtKind,
    shape: SelectionCircuit,
    lanes: usize,
}

impl Default for Gmw {
    fn default() -> Self {
        Self::new(OtKind::default())
    }
}

impl Gmw {
    /// An engine over an OT back end.
    #[must_use]
    pub fn new(kind: OtKind) -> Self {
        Self { kind, shape: SelectionCircuit::default(), lanes: sums::LANES }
    }

    /// With another number of rows in a batch of sums between two parties, a multiple of 64. For
    /// measurements.
    #[must_use]
    pub fn with_lanes(mut self, lanes: usize) -> Self {
        assert!(lanes > 0 && lanes.is_multiple_of(64), "lanes come in words of 64");
        self.lanes = lanes;
        self
    }

    /// With another circuit for best rows.
    #[must_use]
    pub fn with_shape(mut self, shape: SelectionCircuit) -> Self {
        self.shape = shape;
        self
    }

    /// [`Engine::rows`], which another OT back end can take over.
    ///
    /// # Errors
    /// What it cannot run.
    pub fn prepare(&self, program: &Program, source: RowSource) -> Result<TransferRows, Error> {
        let of = match (program.sharing(), source) {
            (Sharing::Boolean, RowSource::Owned) => Of::Gates(GateRows::new(program, self.shape, self.kind)),
            _ => Of::Sums(SumRows::new(program, source, self.kind, self.lanes)?),
        };
        Ok(TransferRows { of, parties: program.parties.len() })
    }
}

/// Rows of a program, made ready for `gmw`.
#[derive(Clone)]
pub struct TransferRows {
    of: Of,
    parties: usize,
}

#[derive(Clone)]
enum Of {
    Sums(SumRows),
    Gates(GateRows),
}

impl TransferRows {
    /// The same over another OT back end, without lowering anew.
    #[must_use]
    pub fn with_kind(&self, kind: OtKind) -> Self {
        let of = match &self.of {
            Of::Sums(rows) => Of::Sums(rows.with_kind(kind)),
            Of::Gates(rows) => Of::Gates(rows.with_kind(kind)),
        };
        Self { of, parties: self.parties }
    }

    /// How joined rows enter; nothing over columns.
    #[must_use]
    pub fn joined(&self) -> Option<&Arc<JoinedPlan>> {
        if let Of::Sums(rows) = &self.of { rows.joined() } else { None }
    }

    /// Rounds of openings over so many rows; of sums, which have no gates, none.
    #[must_use]
    pub fn depth(&self, rows: u64) -> u64 {
        if let Of::Gates(gates) = &self.of { gates.depth(rows) } else { 0 }
    }

    fn stage(&self) -> &dyn PreparedRows {
        match &self.of {
            Of::Sums(rows) => rows,
            Of::Gates(rows) => rows,
        }
    }
}

impl PreparedRows for TransferRows {
    fn price(&self, rows: u64) -> StagePrice {
        self.stage().price(rows)
    }

    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        ::engine::check_parties(self.parties, session)?;
        session.step("rows", |session| self.stage().run(rows, session))
    }
}

impl Engine for Gmw {
    fn name(&self) -> &'static str {
        "gmw"
    }

    fn rows(&self, program: &Program, source: RowSource) -> Result<Box<dyn PreparedRows>, Error> {
        Ok(Box::new(self.prepare(program, source)?))
    }

    /// Among more than two parties every level of gates is a round of all.
    fn release_depth(&self, parties: usize) -> Depth {
        if parties > 2 { Depth::Shallow } else { Depth::Ripple }
    }

    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error> {
        // What only takes shares apart is one message here.
        if plan.parties != 2 || !plan.is_noised() && plan.circuit.and_gates() == 0 {
            return Ok(Box::new(GateRelease::new(plan.clone(), self.kind)));
        }
        let yao = match self.kind {
            OtKind::SoftSpoken { k } => Yao::new(k),
            OtKind::Ferret => Yao::default(),
        };
        yao.release(plan)
    }

    fn lists(&self, program: &Program, viewer: PartyId) -> Result<Box<dyn PreparedLists>, Error> {
        Ok(Box::new(GateLists::new(program, viewer)))
    }
}

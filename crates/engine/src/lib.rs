//! Engines run programs. This crate has the trait, the `clear` engine that defines what every program means,
//! and the conformance suite that every engine passes.
//!
//! An engine prepares, once per program and never per gate: what it hands back is a stage, which has a price
//! and is run over a session ([`PreparedRows`], [`PreparedDraw`], [`PreparedRelease`], [`PreparedLists`]). A
//! program that an engine cannot run is refused there. Engines and stages hold nothing of a run, so that
//! threads share them; noise that was drawn is an object of its own ([`DrawnNoise`]).
//!
//! Where an engine computes among servers, those that hold no data run the same stages, after the program's
//! parties in the roster: their rows have no column, and they see no outputs.

pub mod circuit_engine;
mod clear;
pub mod conformance;
mod entered;
mod joined;
mod lanes;
pub mod outputs;
mod shares;
mod stage;

pub use circuit_engine::{CircuitEngine, PreparedCircuit};
pub use clear::{Clear, ClearTotal};
pub use entered::Entered;
pub use joined::{Entries, alone};
pub use lanes::run_lanes;
pub use outputs::OutputShares;
pub use shares::{SERVERS, Share, Shares};
pub use stage::{
    DrawnNoise, IdleStage, PreparedDraw, PreparedLists, PreparedRelease, PreparedRows, RowInput, RowSource,
    StagePrice, check_parties, must_be_sums,
};

use base::{Error, PartyId};
use net::Session;
use program::lower::{Depth, Draws, ReleasePlan, TotalsForm};
use program::{Program, ShardRows};
use std::sync::Arc;

/// How programs are run. Every method that hands back a stage lowers once what it is given.
pub trait Engine: Send + Sync {
    /// Short name, as in study files.
    fn name(&self) -> &'static str;

    /// Row and combine of a program.
    ///
    /// # Errors
    /// What it cannot run, and which engine can.
    fn rows(&self, program: &Program, source: RowSource) -> Result<Box<dyn PreparedRows>, Error>;

    /// How totals that nobody knows leave [`Engine::rows`]: what its releases are lowered for.
    fn totals(&self) -> TotalsForm {
        TotalsForm::Split
    }

    /// Adders and comparisons of its releases among so many parties.
    fn release_depth(&self, _parties: usize) -> Depth {
        Depth::Ripple
    }

    /// The noise of all releases.
    ///
    /// # Errors
    /// When the engine draws noise with its releases.
    fn draw(&self, draws: &Arc<Draws>) -> Result<Box<dyn PreparedDraw>, Error> {
        if draws.drawn.is_empty() {
            return Ok(Box::new(IdleStage(draws.parties)));
        }
        Err(Error::misuse(format!("{} draws noise with its release", self.name())))
    }

    /// One release.
    ///
    /// # Errors
    /// What it cannot run.
    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error>;

    /// A viewer's lists.
    ///
    /// # Errors
    /// When the engine reveals none.
    fn lists(&self, program: &Program, _viewer: PartyId) -> Result<Box<dyn PreparedLists>, Error> {
        if program.lists.is_empty() {
            return Ok(Box::new(IdleStage(program.parties.len())));
        }
        Err(Error::misuse(format!("{} reveals no lists", self.name())))
    }
}

/// Row and combine of all rows as one unit, over columns: prepared and run.
///
/// # Errors
/// Those of [`Engine::rows`] and of [`PreparedRows::run`].
pub fn run_rows(
    engine: &dyn Engine,
    program: &Program,
    rows: &mut dyn ShardRows,
    session: &mut Session,
) -> Result<Shares, Error> {
    engine.rows(program, RowSource::Owned)?.run(RowInput::Owned(rows), session)
}

// Fails to compile if an engine could no longer be chosen at run time.
const _: Option<&dyn Engine> = None;

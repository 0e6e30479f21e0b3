//! Engines run programs. This crate has the trait, the `clear` engine that defines what every program means,
//! and the conformance suite that every engine passes.
//!
//! An engine is called once per program, never per gate. [`Engine::rows`] is what a worker pair does with one
//! shard: row and combine; what leaves it are [`Shares`]. [`Engine::release`] is what the aggregators do for
//! one viewer: what leaves it are [`OutputShares`], so that nobody learns anything before all have paid.
//!
//! Where an engine computes among servers, those that hold no data take part in the same calls, after the
//! program's parties in the roster: their rows have no column, and they see no outputs.

pub mod circuit_engine;
mod clear;
pub mod conformance;
mod entered;
mod joined;
pub mod outputs;
mod shares;

pub use circuit_engine::CircuitEngine;
pub use clear::{Clear, Total};
pub use entered::Entered;
pub use joined::{Entries, alone};
pub use outputs::OutputShares;
pub use shares::{SERVERS, Share, Shares};

use base::{Cost, Error, PartyId};
use net::Session;
use program::lower::{Depth, Draws, ReleasePlan, TotalsForm};
use program::{JoinedRows, Program, ShardRows, Sharing};

/// One party's half of one engine.
pub trait Engine: Send {
    /// Short name, as in study files.
    fn name(&self) -> &'static str;

    /// Whether this engine can run a program: its number of parties and its folds.
    ///
    /// # Errors
    /// What it cannot run, and which engine can.
    fn check(&self, program: &Program) -> Result<(), Error> {
        if program.sharing() == Sharing::Additive {
            return Ok(());
        }
        let (engine, parties) = (self.name(), program.parties.len());
        Err(Error::input(format!(
            "{engine} runs sums between two parties; the program {} has {parties} parties or folds that are \
             not sums: use gmw",
            program.name
        )))
    }

    /// How totals that nobody knows leave [`Engine::rows`]: what its releases are lowered for.
    fn totals(&self) -> TotalsForm {
        TotalsForm::Split
    }

    /// Cost of [`Engine::rows`] for a program of two or more parties. Exact.
    fn price_rows(&self, program: &Program, rows: u64) -> Cost;

    /// How many messages of [`Engine::rows`] must cross the path between the parties one after the other,
    /// each half a round trip: what a long path costs in time. Messages that travel together count once, so
    /// there may be fewer than [`Cost::rounds`] says, which is the answer unless the engine knows better.
    fn trips(&self, program: &Program, rows: u64) -> u64 {
        2 * self.price_rows(program, rows).rounds
    }

    /// Runs row and combine over one shard.
    ///
    /// # Errors
    /// Those of the rows and of the conversation.
    fn rows(
        &mut self,
        program: &Program,
        rows: &mut dyn ShardRows,
        session: &mut Session,
    ) -> Result<Shares, Error>;

    /// Whether this engine can run a program over rows that a match has joined to shares, those of the
    /// parties in `shared` ([`program::lower::lower_joined`]).
    ///
    /// # Errors
    /// What it cannot run, and what can.
    fn check_joined(&self, _program: &Program, _shared: [bool; 2]) -> Result<(), Error> {
        Err(Error::input(format!("{} runs no rows that were joined to shares: use gmw", self.name())))
    }

    /// Cost of [`Engine::joined`] over so many joined rows. Exact.
    fn price_joined(&self, _program: &Program, _shared: [bool; 2], _rows: u64) -> Cost {
        Cost::zero(2)
    }

    /// [`Engine::trips`] of [`Engine::joined`].
    fn trips_joined(&self, program: &Program, shared: [bool; 2], rows: u64) -> u64 {
        2 * self.price_joined(program, shared, rows).rounds
    }

    /// Runs row and combine over one shard of rows joined to shares. What leaves it is what [`Engine::rows`]
    /// gives.
    ///
    /// # Errors
    /// Those of [`Engine::check_joined`], of the rows and of the conversation.
    fn joined(
        &mut self,
        program: &Program,
        shared: [bool; 2],
        _rows: &mut dyn JoinedRows,
        _session: &mut Session,
    ) -> Result<Shares, Error> {
        self.check_joined(program, shared).and_then(|()| {
            Err(Error::misuse(format!("{} checks rows joined to shares, but runs none", self.name())))
        })
    }

    /// Cost of [`Engine::draw`]. Exact.
    fn price_draw(&self, draws: &Draws) -> Cost {
        Cost::zero(draws.parties)
    }

    /// Draws the noise of all releases that this engine will run, for they need no data for it: before the
    /// rows, or as soon as the scales are known. `given` are summands of coins for tests; whatever it lacks
    /// is tossed.
    ///
    /// # Errors
    /// Those of the conversation.
    fn draw(&mut self, draws: &Draws, _given: &Entered, _session: &mut Session) -> Result<(), Error> {
        if draws.drawn.is_empty() {
            return Ok(());
        }
        Err(Error::misuse(format!("{} draws noise with its release", self.name())))
    }

    /// Adders and comparisons of its releases among so many parties.
    fn release_depth(&self, _parties: usize) -> Depth {
        Depth::Ripple
    }

    /// Who holds shares of a release's outputs, in order: the parties, or servers.
    fn holders(&self, parties: usize) -> Vec<PartyId> {
        (0..parties as u8).map(PartyId).collect()
    }

    /// Cost of [`Engine::release`]. Exact.
    fn price_release(&self, plan: &ReleasePlan) -> Cost;

    /// Computes a release of what the participants enter and leaves shares of the outputs' bits: nobody has
    /// learned anything then, and everything that an engine checks was checked. Who opens them: [`outputs`].
    ///
    /// # Errors
    /// Those of the conversation.
    fn release(
        &mut self,
        plan: &ReleasePlan,
        entered: &Entered,
        session: &mut Session,
    ) -> Result<OutputShares, Error>;

    /// Cost of [`Engine::lists`] of `rows` rows. Exact.
    fn price_lists(&self, program: &Program, _rows: u64, _viewer: PartyId) -> Cost {
        Cost::zero(program.parties.len())
    }

    /// Reveals the viewer's lists. Returns, at the viewer, for each of its lists in order one bit per row,
    /// packed as [`Share::Rows`]; elsewhere nothing.
    ///
    /// # Errors
    /// Those of the conversation.
    fn lists(
        &mut self,
        program: &Program,
        _rows: u64,
        _viewer: PartyId,
        _totals: &Shares,
        _session: &mut Session,
    ) -> Result<Vec<Vec<u64>>, Error> {
        if program.lists.is_empty() {
            return Ok(Vec::new());
        }
        Err(Error::misuse(format!("{} reveals no lists", self.name())))
    }
}

// Fails to compile if an engine could no longer be chosen at run time.
const _: Option<&dyn Engine> = None;

//! What engines hand back: stages, made ready once, which have a price and are run any number of times.

use crate::{Entered, OutputShares, Shares};
use base::{Cost, Error, PartyId};
use net::Session;
use program::lower::ReleasePlan;
use program::{JoinedRows, Program, ShardRows, Sharing};
use std::any::Any;

/// What a stage takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StagePrice {
    /// What the ledger will book. Exact.
    pub cost: Cost,
    /// AND gates that are worked off; of servers those of shares, which they do not book.
    pub and_gates: u64,
    /// Messages that must cross the path between parties one after the other, each half a round trip: what a
    /// long path costs in time. Messages that travel together count once, so there may be fewer than
    /// [`Cost::rounds`] says.
    pub trips: u64,
}

impl StagePrice {
    /// Nothing is said among so many participants.
    #[must_use]
    pub fn free(participants: usize) -> Self {
        Self::of(Cost::zero(participants))
    }

    /// A cost whose turns all wait for one another.
    #[must_use]
    pub fn of(cost: Cost) -> Self {
        Self { and_gates: cost.and_gates, trips: 2 * cost.rounds, cost }
    }
}

/// Which rows a program runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// Each party knows its own columns.
    Owned,
    /// A match has joined the rows to shares, those of the parties marked
    /// ([`program::lower::lower_joined`]).
    Joined([bool; 2]),
}

impl RowSource {
    /// Refuses rows that were joined to shares, for an engine that runs none.
    ///
    /// # Errors
    /// What can run them.
    pub fn must_be_owned(self, engine: &str) -> Result<(), Error> {
        match self {
            Self::Owned => Ok(()),
            Self::Joined(_) => {
                Err(Error::input(format!("{engine} runs no rows that were joined to shares: use gmw")))
            }
        }
    }
}

/// Refuses programs that are not sums between two parties, for an engine that runs nothing else.
///
/// # Errors
/// What can run the program.
pub fn must_be_sums(program: &Program, engine: &str) -> Result<(), Error> {
    if program.sharing() == Sharing::Additive {
        return Ok(());
    }
    Err(Error::input(format!(
        "{engine} runs sums between two parties; the program {} has {} parties or folds that are not sums: \
         use gmw",
        program.name,
        program.parties.len()
    )))
}

/// Refuses a session of fewer or more than so many parties, at least two.
///
/// # Errors
/// How many there are.
pub fn check_parties(parties: usize, session: &Session) -> Result<(), Error> {
    let there = session.roster().len();
    if parties >= 2 && there == parties {
        return Ok(());
    }
    Err(Error::input(format!("this study is for {parties} parties; {there} take part")))
}

/// The rows of one unit, as one participant holds them.
pub enum RowInput<'a> {
    /// This party's columns; a server has none.
    Owned(&'a mut dyn ShardRows),
    /// Shares of entries.
    Joined(&'a mut dyn JoinedRows),
}

impl<'a> RowInput<'a> {
    /// How many there are: the same at every participant.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Owned(rows) => rows.len(),
            Self::Joined(rows) => rows.len(),
        }
    }

    /// Columns, for a stage over columns.
    ///
    /// # Errors
    /// When these are shares.
    pub fn owned(self) -> Result<&'a mut dyn ShardRows, Error> {
        match self {
            Self::Owned(rows) => Ok(rows),
            Self::Joined(_) => Err(Error::misuse("a stage over columns gets rows joined to shares")),
        }
    }
}

/// Row and combine of a program, made ready. Rows come in units, and each unit leaves [`Shares`], whole or
/// not at all. A unit is a computation by itself: it sets itself up and leaves nothing behind, so that it can
/// be done again, by whichever worker, and no correlation outlives an attempt.
pub trait PreparedRows: Send + Sync {
    /// Price of a unit of so many rows.
    fn price(&self, rows: u64) -> StagePrice;

    /// Runs a unit.
    ///
    /// # Errors
    /// When the rows are of another kind or too many for one computation, and those of the rows and of the
    /// conversation.
    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error>;
}

/// Drawing the noise of all releases, made ready: it needs no data, so that it comes before the rows, or as
/// soon as the scales are known.
pub trait PreparedDraw: Send + Sync {
    /// Its price.
    fn price(&self) -> StagePrice;

    /// Draws. `given` are summands of coins for tests; whatever it lacks is tossed.
    ///
    /// # Errors
    /// Those of the conversation.
    fn run(&self, given: &Entered, session: &mut Session) -> Result<DrawnNoise, Error>;
}

/// What one participant holds of the noise of a run, as its engine has drawn it: the releases of that run
/// take it, over the same session.
pub struct DrawnNoise(Box<dyn Any + Send>);

impl DrawnNoise {
    /// Nothing: noise is drawn with each release, or there is none.
    #[must_use]
    pub fn none() -> Self {
        Self::of(())
    }

    /// What an engine will want back.
    #[must_use]
    pub fn of(held: impl Any + Send) -> Self {
        Self(Box::new(held))
    }

    /// What an engine gave.
    ///
    /// # Errors
    /// When it is another engine's, or nothing was drawn.
    pub fn get<T: Any>(&mut self) -> Result<&mut T, Error> {
        self.0
            .downcast_mut()
            .ok_or_else(|| Error::misuse("this release takes noise that was drawn before it"))
    }
}

/// One release, made ready. It leaves shares of the outputs' bits: nobody has learned anything then, and
/// everything that an engine checks was checked. Who opens them: [`crate::outputs`].
pub trait PreparedRelease: Send + Sync {
    /// What is released.
    fn plan(&self) -> &ReleasePlan;

    /// Who holds shares of the outputs, in order: the parties, or servers.
    fn holders(&self) -> &[PartyId];

    /// Its price.
    fn price(&self) -> StagePrice;

    /// Computes it of what the participants enter.
    ///
    /// # Errors
    /// When the plan takes noise that is not in `noise`, and those of the conversation.
    fn run(
        &self,
        entered: &Entered,
        noise: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error>;
}

/// A viewer's lists, made ready.
pub trait PreparedLists: Send + Sync {
    /// Price of lists of so many rows.
    fn price(&self, rows: u64) -> StagePrice;

    /// Reveals them. Returns, at the viewer, for each of its lists in order one bit per row, packed as
    /// [`crate::Share::Rows`]; elsewhere nothing.
    ///
    /// # Errors
    /// Those of the conversation.
    fn run(&self, rows: u64, totals: &Shares, session: &mut Session) -> Result<Vec<Vec<u64>>, Error>;
}

/// The stage of an engine that has nothing to draw, or no lists to reveal, among so many participants.
pub struct IdleStage(pub usize);

impl PreparedDraw for IdleStage {
    fn price(&self) -> StagePrice {
        StagePrice::free(self.0)
    }

    fn run(&self, _: &Entered, _: &mut Session) -> Result<DrawnNoise, Error> {
        Ok(DrawnNoise::none())
    }
}

impl PreparedLists for IdleStage {
    fn price(&self, _: u64) -> StagePrice {
        StagePrice::free(self.0)
    }

    fn run(&self, _: u64, _: &Shares, _: &mut Session) -> Result<Vec<Vec<u64>>, Error> {
        Ok(Vec::new())
    }
}

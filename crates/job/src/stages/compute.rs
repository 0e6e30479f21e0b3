//! Row and combine. Its units are the shards: each runs the rows of the program, prepared once, on a
//! connection of its own, and what leaves it are shares, which add up. Servers compute one shard on the
//! connections of the coordinators.

use super::Stage;
use crate::align::Shard;
use crate::engines::{Estimate, StudyEngine};
use crate::plan::{Link, Speeds};
use crate::run::join;
use base::{Cost, Error};
use engine::{BaseOts, RowInput, Shares};
use net::Session;
use study::Study;

/// Row and combine over so many rows.
pub(crate) struct ComputeStage {
    engines: StudyEngine,
    participants: usize,
    rows: u64,
}

/// What one unit computes on.
pub(crate) enum UnitRows {
    /// Own columns on a spine; none at a server.
    Owned(Box<Shard>),
    /// Shares of rows.
    Joined(join::Dealt),
    /// A server's: so many rows of which it holds no column.
    Blank(u64),
}

impl ComputeStage {
    pub fn new(study: &Study, engines: StudyEngine, rows: u64) -> Self {
        Self { engines, participants: study.roster().len(), rows }
    }

    /// How many units there are.
    pub fn units(&self) -> u32 {
        self.engines.shards()
    }

    /// What all units set up together.
    ///
    /// # Errors
    /// Those of the conversation.
    pub fn set_up(&self, session: &mut Session) -> Result<Vec<BaseOts>, Error> {
        session.step(self.name(), |s| self.engines.rows()?.set_up(self.units(), s))
    }

    /// Runs one unit under a step of this name.
    ///
    /// # Errors
    /// Those of the rows and of the conversation.
    pub fn run(
        &self,
        step: &str,
        rows: &mut UnitRows,
        bases: BaseOts,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        let prepared = self.engines.rows()?;
        session.step(step, |s| match rows {
            UnitRows::Owned(shard) => prepared.run(RowInput::Owned(&mut **shard), bases, s),
            UnitRows::Blank(rows) => prepared.run(RowInput::Owned(&mut BlankRows(*rows)), bases, s),
            UnitRows::Joined(dealt) => prepared.run(RowInput::Joined(dealt), bases, s),
        })
    }
}

impl Stage for ComputeStage {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "compute"
    }

    fn items(&self) -> u64 {
        self.rows
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        Ok(Cost::zero(self.participants) + self.engines.price(self.rows)?.cost)
    }

    fn estimate(&self, link: Link, speeds: Speeds) -> Result<Estimate, Error> {
        self.engines.estimate(self.rows, link, speeds)
    }
}

/// Rows of which a server holds no column.
struct BlankRows(u64);

impl program::ShardRows for BlankRows {
    fn len(&self) -> u64 {
        self.0
    }

    fn read(&mut self, column: u32, _: u64, _: &mut [u128]) -> Result<(), Error> {
        Err(Error::misuse(format!("a server holds no column, and not column {column}")))
    }
}

//! Row and combine. Its units are the shards: each has an engine of its own on a connection of its own, and what
//! leaves it are shares, which add up. Servers compute one shard on the connections of the coordinators.

use super::Stage;
use crate::align::Shard;
use crate::engines::{Engines, Estimate};
use crate::plan::{Link, Speeds};
use crate::prepare::Built;
use crate::run::join;
use base::{Cost, Error};
use engine::{Engine, Shares};
use net::Session;
use ot::Bases;
use study::Study;

/// Row and combine over so many rows.
pub(crate) struct ComputeStage<'a> {
    pub built: &'a Built,
    pub engines: Engines,
    pub participants: usize,
    pub rows: u64,
    pub shards: u32,
}

/// What one unit computes on.
pub(crate) enum UnitRows {
    /// Own columns on a spine; none at a server.
    Owned(Shard),
    /// Shares of rows.
    Joined(join::Dealt),
    /// A server's: so many rows of which it holds no column.
    Blank(u64),
}

impl<'a> ComputeStage<'a> {
    pub fn new(study: &Study, built: &'a Built, engines: Engines, rows: u64) -> Self {
        let shards = if study.servers.is_some() { 1 } else { study.compute.shards };
        Self { built, engines, participants: study.roster().len(), rows, shards }
    }

    /// Rows of one unit: they are dealt round-robin.
    fn rows_of(&self, unit: u32) -> u64 {
        let of = u64::from(self.shards);
        (self.rows + of - 1 - u64::from(unit)) / of
    }

    /// The engine of a unit that has a connection of its own.
    pub fn worker(&self, bases: Option<Bases>) -> Box<dyn Engine> {
        self.engines.worker(bases)
    }

    /// Runs one unit under a step of this name.
    ///
    /// # Errors
    /// Those of the rows and of the conversation.
    pub fn run(
        &self,
        step: &str,
        rows: &mut UnitRows,
        engine: &mut dyn Engine,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        let program = &self.built.program;
        session.step(step, |s| match (rows, self.engines.joined()) {
            (UnitRows::Owned(shard), None) => engine.rows(program, shard, s),
            (UnitRows::Blank(rows), None) => engine.rows(program, &mut BlankRows(*rows), s),
            (UnitRows::Joined(dealt), Some(shared)) => engine.joined(program, shared, dealt, s),
            _ => Err(Error::misuse("the engine of a study fits its match")),
        })
    }
}

impl Stage for ComputeStage<'_> {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "compute"
    }

    fn items(&self) -> u64 {
        self.rows
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        let (engine, program) = (self.engines.worker(None), &self.built.program);
        let (mut cost, _) = self.engines.hub(self.participants);
        (0..self.shards).for_each(|unit| {
            cost += &self.engines.price_rows(&*engine, program, self.rows_of(unit));
        });
        Ok(cost)
    }

    fn estimate(&self, link: Link, speeds: Speeds) -> Result<Estimate, Error> {
        Ok(self.engines.estimate(&self.built.program, self.rows, link, speeds))
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

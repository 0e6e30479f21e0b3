//! The noise of all releases, drawn by servers as soon as its scales are known: before the rows, or after
//! group sizes were published. Other engines draw noise with a release and have no such stage.

use super::Stage;
use crate::engines::{Engines, Estimate};
use crate::plan::{Link, Speeds};
use crate::prepare::Built;
use crate::stages::release;
use base::{Cost, Error};
use engine::{Engine, Entered};
use net::Session;
use privacy::scales::Scales;
use program::lower::Draws;

/// What is drawn.
pub(crate) struct NoiseStage {
    engines: Engines,
    draws: Draws,
}

impl NoiseStage {
    /// The draws of all releases; `None` where they are drawn with them.
    ///
    /// # Errors
    /// When a noise does not fit the type it is added in.
    pub fn new(engines: Engines, built: &Built, scales: &Scales) -> Result<Option<Self>, Error> {
        let engine = engines.make();
        let draws = scales.draws(&*engine, &release::plans(&*engine, built, scales)?);
        let stage = Self { engines, draws };
        Ok(stage.price(&())?.sent.iter().any(|bytes| *bytes > 0).then_some(stage))
    }

    /// Draws, at an engine that the releases are run with.
    ///
    /// # Errors
    /// Those of the conversation.
    pub fn run(&self, engine: &mut dyn Engine, session: &mut Session) -> Result<(), Error> {
        let given = Entered::nothing(self.draws.words.len());
        session.step(self.name(), |s| engine.draw(&self.draws, &given, s))
    }
}

impl Stage for NoiseStage {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "noise"
    }

    fn items(&self) -> u64 {
        self.draws.drawn.len() as u64
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        Ok(self.engines.price_draw(&self.draws).0)
    }

    fn estimate(&self, link: Link, _speeds: Speeds) -> Result<Estimate, Error> {
        let (cost, and_gates, round_trips) = self.engines.price_draw(&self.draws);
        let seconds = link.seconds(&cost) + round_trips as f64 * link.round_trip_s;
        Ok(Estimate { cost, and_gates, round_trips, seconds })
    }
}

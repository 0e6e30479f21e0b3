//! The noise of all releases, drawn by servers as soon as its scales are known: before the rows, or after
//! group sizes were published. Other engines draw noise with a release and have no such stage.

use super::Stage;
use crate::engines::{Estimate, StageTime, StudyEngine};
use crate::plan::{Link, Speeds};
use crate::stages::release::ScaledReleases;
use base::{Cost, Error};
use engine::{DrawnNoise, Entered, PreparedDraw, StagePrice};
use net::Session;

/// What is drawn.
pub(crate) struct NoiseStage {
    draw: Box<dyn PreparedDraw>,
    words: usize,
    drawn: usize,
}

impl NoiseStage {
    /// The draws of all releases; `None` where they are drawn with them.
    ///
    /// # Errors
    /// When the engine cannot draw them.
    pub fn new(engines: &StudyEngine, scaled: &ScaledReleases) -> Result<Option<Self>, Error> {
        let engine = engines.engine();
        let draws = scaled.draws(&*engine);
        let (words, drawn) = (draws.words.len(), draws.drawn.len());
        let stage = Self { draw: engine.draw(draws)?, words, drawn };
        Ok(stage.price(&())?.sent.iter().any(|bytes| *bytes > 0).then_some(stage))
    }

    /// Draws what the releases take.
    ///
    /// # Errors
    /// Those of the conversation.
    pub fn run(&self, session: &mut Session) -> Result<DrawnNoise, Error> {
        session.step(self.name(), |s| self.draw.run(&Entered::nothing(self.words), s))
    }
}

impl Stage for NoiseStage {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "noise"
    }

    fn items(&self) -> u64 {
        self.drawn as u64
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        Ok(self.draw.price().cost)
    }

    fn estimate(&self, link: Link, _speeds: Speeds) -> Result<Estimate, Error> {
        let StagePrice { cost, and_gates, trips } = self.draw.price();
        let round_trips = trips.div_ceil(2);
        let waiting_s = round_trips as f64 * link.round_trip_s;
        let time = StageTime { computing_s: 0.0, sending_s: link.seconds(&cost), waiting_s };
        Ok(Estimate { cost, and_gates, round_trips, core_s: 0.0, time })
    }
}

//! Which engine to choose: what rows and releases would take on each that could run a study.

use super::{Link, PlanStage, Speeds};
use crate::course::Course;
use crate::engines::StudyEngine;
use crate::stages::Stage as _;
use crate::stages::compute::ComputeStage;
use crate::stages::noise::NoiseStage;
use crate::stages::release::{ReleaseStage, ScaledReleases};
use base::Error;
use serde::Serialize;

/// An engine that could run the study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Its name.
    pub engine: String,
    /// How it would be set up.
    pub settings: String,
    /// Estimated seconds of rows and releases, without the match.
    pub seconds: f64,
    /// Bytes of all who take part, for the same.
    pub bytes: u64,
    /// What of the study would have to change besides `compute.engine`: other parties, or other protection.
    /// Null: nothing.
    pub needs: Option<String>,
    /// Whether it is the fastest of those that need nothing else.
    pub recommended: bool,
}

/// What engines are compared on.
pub(super) struct Choices<'a> {
    pub course: Course<'a>,
    /// Joined rows.
    pub rows: u64,
    pub link: Link,
    pub speeds: Speeds,
    /// The engine that a run takes ...
    pub chosen: &'a StudyEngine,
    /// ... and what its stages take, which are priced already.
    pub stages: &'a [PlanStage],
}

impl Choices<'_> {
    /// All engines that could run the study instead of `open`, and itself. What is lowered for one serves all
    /// that lower alike: `scaled` is what was lowered for the chosen one.
    ///
    /// # Errors
    /// When the releases cannot be lowered for one of them.
    pub fn of(&self, open: &StudyEngine, scaled: ScaledReleases) -> Result<Vec<Choice>, Error> {
        let Course { study, built } = self.course;
        let (mut choices, mut lowered) = (Vec::new(), vec![scaled]);
        for (engines, needs) in open.alternatives(study, &built.program) {
            let engines = engines.settled(&built.program, self.rows, self.link, self.speeds);
            let is_chosen = needs.is_none() && engines.name() == self.chosen.name();
            let (seconds, bytes) = match is_chosen {
                true => self.of_chosen(),
                false => self.of_other(&engines, &mut lowered)?,
            };
            let (engine, settings) = (engines.name().to_owned(), engines.settings());
            choices.push(Choice { engine, settings, seconds, bytes, needs, recommended: false });
        }
        recommend(&mut choices);
        Ok(choices)
    }

    fn of_chosen(&self) -> (f64, u64) {
        let of = |stage: &&PlanStage| ["noise", "compute", "release"].contains(&&*stage.name);
        let stages = || self.stages.iter().filter(of);
        let bytes = stages().flat_map(|stage| stage.bytes_sent.values()).sum();
        (stages().map(|stage| stage.seconds).sum(), bytes)
    }

    fn of_other(
        &self,
        engines: &StudyEngine,
        lowered: &mut Vec<ScaledReleases>,
    ) -> Result<(f64, u64), Error> {
        let Self { course: Course { study, built }, rows, link, speeds, .. } = *self;
        let known = lowered.iter().position(|scaled| scaled.serve(engines, built));
        let at = match known {
            Some(at) => at,
            None => {
                lowered.push(ScaledReleases::new(engines, built, lowered[0].scales.clone())?);
                lowered.len() - 1
            }
        };
        let scaled = &lowered[at];
        let noise = NoiseStage::new(engines, scaled)?;
        let stages = [
            noise.map(|stage| stage.estimate(link, speeds)).transpose()?,
            Some(ComputeStage::new(study, engines.clone(), rows).estimate(link, speeds)?),
            Some(ReleaseStage::new((study, built), engines, scaled, rows)?.estimate(link, speeds)?),
        ];
        let all = || stages.iter().flatten();
        let seconds = all().map(|estimate| estimate.seconds()).sum();
        Ok((seconds, all().map(|estimate| estimate.cost.bytes()).sum()))
    }
}

/// Adds what another run of the same study takes, where the same engine runs it.
pub(super) fn add(all: &mut Vec<Choice>, more: Vec<Choice>) {
    all.retain_mut(|choice| {
        let same = |other: &&Choice| other.engine == choice.engine && other.needs == choice.needs;
        let Some(other) = more.iter().find(same) else { return false };
        // Runs are made at the same time.
        choice.seconds = choice.seconds.max(other.seconds);
        choice.bytes += other.bytes;
        true
    });
}

/// Marks the fastest of those that the study could name as it is.
pub(super) fn recommend(choices: &mut [Choice]) {
    let open = choices.iter().enumerate().filter(|(_, choice)| choice.needs.is_none());
    let best = open.min_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds)).map(|(i, _)| i);
    choices.iter_mut().enumerate().for_each(|(i, choice)| choice.recommended = Some(i) == best);
}

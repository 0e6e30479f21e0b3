//! Which engine to choose: what rows and releases would take on each that could run a study.

use super::{Link, Speeds};
use crate::course::Course;
use crate::engines::StudyEngine;
use crate::stages::Stage as _;
use crate::stages::compute::ComputeStage;
use crate::stages::noise::NoiseStage;
use crate::stages::release::{ReleaseStage, ScaledReleases};
use base::Error;
use privacy::scales::Scales;
use serde::Serialize;
use std::sync::Arc;

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

/// All engines, on the same rows and link.
pub(super) fn choices(
    open: &StudyEngine,
    course: Course<'_>,
    scales: &Arc<Scales>,
    rows: u64,
    (link, speeds): (Link, Speeds),
) -> Result<Vec<Choice>, Error> {
    let Course { study, built } = course;
    let mut choices = Vec::new();
    for (engines, needs) in open.alternatives(study, &built.program) {
        let engines = engines.settled(&built.program, rows, link, speeds);
        let scaled = ScaledReleases::new(&engines, built, scales.clone())?;
        let noise = NoiseStage::new(&engines, &scaled)?;
        let stages = [
            noise.map(|stage| stage.estimate(link, speeds)).transpose()?,
            Some(ComputeStage::new(study, engines.clone(), rows).estimate(link, speeds)?),
            Some(ReleaseStage::new((study, built), &engines, &scaled, rows)?.estimate(link, speeds)?),
        ];
        choices.push(Choice {
            engine: engines.name().to_owned(),
            settings: engines.settings(),
            seconds: stages.iter().flatten().map(|estimate| estimate.seconds()).sum(),
            bytes: stages.iter().flatten().map(|estimate| estimate.cost.bytes()).sum(),
            needs,
            recommended: false,
        });
    }
    recommend(&mut choices);
    Ok(choices)
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

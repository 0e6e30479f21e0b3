//! The smallest difference that a lift study would detect, before anything is spent.

use crate::prepare::Built;
use base::Error;
use data::{InputReport, OutcomeSums};
use privacy::scales::Scales;
use program::Viewer;
use release::modes::{Guess, Reading, minimum_detectable_effect, minimum_detectable_effect_fixed};
use serde::Serialize;
use std::num::NonZeroU64;
use studies::lift::{LiftCell, OutputMeaning, Quantity};
use study::{Confidence, EventValue, LiftStudy, Question, ReleaseMode, Study};

/// How often of a hundred times a study finds an effect of the size that is stated.
const POWER: f64 = 0.8;
/// Whose views an effect is stated of.
const VIEWERS: [Viewer; 2] = [Viewer::Party(studies::lift::PUBLISHER), Viewer::Public];

/// What one person of the control arm is taken to add to the total, no more than the clamp, in the outcome's
/// unit.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeGuess {
    /// Its mean.
    pub mean: f64,
    /// Its variance; none: the largest that the mean leaves.
    pub variance: Option<f64>,
    /// Whose guess it is, in words.
    pub source: String,
}

impl OutcomeGuess {
    /// The mean that somebody told.
    #[must_use]
    pub fn told(mean: f64) -> Self {
        Self { mean, variance: None, source: "as told".into() }
    }

    /// Whether it is counted in somebody's file, exactly.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.variance.is_some()
    }

    /// What one party's file of `own` people says of so many others: if everybody in it is one of them, or
    /// each of them is in it, drawn from it.
    pub(super) fn counted(sums: &OutcomeSums, (own, people): (u64, NonZeroU64), scale: u32) -> Self {
        let (count, scale) = (people.get().max(own) as f64, f64::from(scale));
        let mean = sums.total / count / scale;
        let variance = (sums.squares / count / scale / scale - mean * mean).max(0.0);
        let shown = page::numbers::count(people.get());
        let whose = match own > people.get() {
            true => format!("if the {shown} people of the publisher are all in it"),
            false => format!("if everybody in it is one of {shown} of the publisher"),
        };
        let source = format!(
            "by this party's file, {whose}; all its events count in that, those before a person's \
             opportunity as well, which the study leaves out: with such the mean is smaller"
        );
        Self { mean, variance: Some(variance), source }
    }

    /// What stands for outcomes of which nobody knows the mean: by this party's own file, where it has
    /// outcomes, on `people` of the publisher; one of a hundred people, where each event counts one; else
    /// nothing.
    #[must_use]
    pub fn of(study: &Study, own: Option<&InputReport>, people: u64) -> Option<Self> {
        let Question::Lift(lift) = &study.kind else { return None };
        if let (Some(own), Some(people)) = (own, NonZeroU64::new(people))
            && let Some(sums) = own.outcomes.at(lift.rule.clamp)
        {
            return Some(Self::counted(&sums, (own.rows_kept, people), lift.scale()));
        }
        counts_people(lift).then(|| Self {
            mean: 0.01,
            variance: None,
            source: "a guess; --mean X says a better one".into(),
        })
    }
}

/// Half of an interval for the difference of means, per person.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halves {
    /// Chance and noise together.
    pub whole: f64,
    /// Chance alone.
    pub chance: f64,
}

impl Halves {
    /// Of a study that detects such an effect, with so many rows of the publisher, half of them in either
    /// arm, and such a clamp.
    pub(super) fn of(
        effect: f64,
        outcome: &OutcomeGuess,
        (rows, clamp): (u64, f64),
        confidence: Confidence,
    ) -> Result<Self, Error> {
        let level = f64::from(confidence.percent()) / 100.0;
        let whole = release::modes::half_width(effect, level, POWER)?;
        let most = outcome.mean * (clamp - outcome.mean);
        let person = outcome.variance.unwrap_or(most).max(0.0);
        let arms = [rows / 2, rows - rows / 2].map(|rows| person / rows.max(1) as f64);
        Ok(Self { whole, chance: release::normal::critical(level) * (arms[0] + arms[1]).sqrt() })
    }
}

/// Whether outcomes are numbers of events, which have a usual size; amounts have none.
fn counts_people(lift: &LiftStudy) -> bool {
    lift.advertisers.iter().all(|advertiser| matches!(advertiser.value, EventValue::Constant(1)))
}

/// The smallest effect in one of several alike cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellEffect {
    /// `breakdown` or `cohort`.
    pub family: &'static str,
    /// Who sees it: a party, or `public`.
    pub viewer: String,
    /// Rows of each arm in a cell, were all cells alike.
    pub rows: [u64; 2],
    /// Difference of mean outcome per person that would be detected in 80 of 100 times; absent where nothing
    /// would be shown.
    pub effect: Option<f64>,
}

/// What a release is read with.
#[derive(Clone, Copy)]
pub(super) struct EffectTerms<'a> {
    pub study: &'a Study,
    pub built: &'a Built,
    pub scales: &'a Scales,
    /// Rows of the test and of the control arm.
    pub arms: [u64; 2],
    pub outcome: &'a OutcomeGuess,
}

impl EffectTerms<'_> {
    /// The smallest effect that what a viewer sees of a kind of cell would detect, or why it would see none;
    /// nothing where nothing is for it.
    fn smallest(self, viewer: Viewer, cell: LiftCell) -> Option<Result<f64, Error>> {
        let (Question::Lift(own), Some((lift, layout))) = (&self.study.kind, &self.built.lift) else {
            return None;
        };
        let [n_test, n_control] = self.arms;
        let OutcomeGuess { mean, variance, .. } = *self.outcome;
        let parts = f64::from(own.scale());
        let variance = variance.map(|variance| variance * parts * parts);
        let guess = Guess { n_test, n_control, mean: mean * parts, variance };
        let confidence = f64::from(own.release.confidence.percent()) / 100.0;
        let reading =
            Reading { clamp: lift.bound() as u64, confidence, minimum_group: own.release.minimum_group };
        let here = |o: &&OutputMeaning| o.viewer == viewer && o.cell == cell;
        if own.release.mode == ReleaseMode::Sums {
            let mechanism = layout.outputs.iter().filter(here).find_map(|o| o.noised);
            let joint = mechanism.and_then(|(m, _)| self.scales.joint(m))?;
            let effect = minimum_detectable_effect(joint, &guess, &reading, POWER);
            return Some(effect.map(|effect| effect / parts));
        }
        let noised = layout.outputs.iter().filter(here).find(|o| o.quantity == Quantity::Difference);
        let (mechanism, _) = noised?.noised?;
        let scale = self.scales.fixed(mechanism)?;
        let effect = minimum_detectable_effect_fixed(own.release.mode, scale, &guess, &reading, POWER);
        Some(effect.map(|effect| effect / parts))
    }

    /// The same over all rows, of the publisher's view and of what everybody sees; and why it is not stated
    /// of one that is there.
    pub fn overall(self) -> ([Option<f64>; 2], Option<String>) {
        let mut not_stated = None;
        let [test, control] = self.arms;
        let effects = VIEWERS.map(|viewer| match self.smallest(viewer, LiftCell::Overall)? {
            Err(why) => {
                not_stated = Some(format!("none is stated for arms of {test} and {control} rows: {why}"));
                None
            }
            Ok(effect) => Some(effect),
        });
        (effects, not_stated)
    }

    /// The same of the cells of a breakdown and of a cohort, were they alike, of each viewer.
    pub fn all_cells(self) -> Vec<CellEffect> {
        VIEWERS.map(|viewer| self.cells(viewer)).concat()
    }

    /// The same of one viewer.
    fn cells(self, viewer: Viewer) -> Vec<CellEffect> {
        let Question::Lift(lift) = &self.study.kind else { return Vec::new() };
        let cohort = lift.advertisers.first().and_then(|advertiser| advertiser.cohort.as_ref());
        let families = [
            ("breakdown", LiftCell::Breakdown(0), lift.publisher.breakdown.as_ref()),
            ("cohort", LiftCell::Cohort(0), cohort),
        ];
        let of = |(family, cell, values): (_, _, Option<&study::Categories>)| {
            let cells = values?.values.len().max(1) as u64;
            let rows = self.arms.map(|rows| rows / cells);
            let effect = EffectTerms { arms: rows, ..self }.smallest(viewer, cell)?.ok();
            let viewer = viewer.name(&self.built.program.parties).to_owned();
            Some(CellEffect { family, viewer, rows, effect })
        };
        families.into_iter().filter_map(of).collect()
    }
}

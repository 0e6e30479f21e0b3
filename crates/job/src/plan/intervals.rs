//! What rho, clamp, rows and mode do to the interval of a lift study.

use super::effect::{EffectTerms, Halves, OutcomeGuess};
use super::{Assumed, Plan, dearest, halved, policy};
use crate::course::Course;
use crate::engines::StudyEngine;
use crate::prepare::build_all;
use crate::stages::matching::MatchStage;
use crate::stages::publish::PublishStage;
use base::Error;
use data::InputReport;
use release::rational::{ratio, to_f64};
use serde::Serialize;
use std::cmp::Ordering;
use std::num::NonZeroU64;
use study::{Advertiser, EventValue, LiftStudy, Question, ReleaseMode, Study, StudyFile};

/// Factors by which rows of a study are made fewer and more.
const FACTORS: [(u64, u64); 7] = [(1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)];
/// What rho is tried, in thousandths.
const THOUSANDTHS: [u128; 8] = [5, 10, 20, 50, 100, 200, 500, 1000];

/// Half of an interval for the difference of means, per person, at one value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalPoint {
    /// The value, as a study has it.
    pub value: String,
    /// The same as a number, where it is one.
    pub at: f64,
    /// What is there, or why nothing would be shown.
    pub half: Result<Halves, String>,
    /// The control arm's mean outcome per person there: a small clamp makes it smaller, and differences too.
    pub mean: f64,
}

/// How the interval moves with one setting while the others stay.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalCurve {
    /// The setting: `rho`, `clamp`, `rows` or `mode`.
    pub setting: &'static str,
    /// By value; of `mode`, in no order.
    pub points: Vec<IntervalPoint>,
    /// What the study has, or the plan assumes.
    pub chosen: f64,
}

/// The curves of a lift study's result: of the one that everybody sees, else of the publisher's.
///
/// `own` is what reading this party's data found, by which a smaller clamp is known to cut more.
///
/// # Errors
/// When the study is no lift study, or nobody says what outcomes are like.
pub fn interval_curves(
    study: &Study,
    assumed: &Assumed,
    own: Option<&InputReport>,
) -> Result<Vec<IntervalCurve>, Error> {
    let (Question::Lift(lift), Some(outcome)) = (&study.kind, &assumed.outcome) else {
        return Err(Error::input(
            "a figure is of a lift study whose outcomes somebody guesses: say --mean X, the control arm's \
             mean \
             outcome per person",
        ));
    };
    // Whoever told the mean asks about that one, at every clamp.
    let own = own.filter(|_| outcome.is_counted());
    let trial = Trial { study, rows: assumed.rows };
    let rho = THOUSANDTHS.map(|part| {
        let rho = ratio(part, 1000);
        let change = |lift: &mut LiftStudy| {
            lift.release.public.iter_mut().for_each(|public| public.clone_from(&rho));
            lift.release.to.iter_mut().for_each(|(_, to)| to.clone_from(&rho));
        };
        trial.point(to_f64(&rho), outcome, &change)
    });
    let parts = f64::from(lift.scale());
    let clamp = clamps(lift, outcome, own, assumed.rows[0]).into_iter();
    let clamp = clamp
        .map(|(clamp, outcome)| {
            trial.point(f64::from(clamp) / parts, &outcome, &|lift| lift.rule.clamp = clamp)
        })
        .collect();
    let rows = FACTORS.into_iter().filter_map(|(times, of)| {
        let rows = assumed.rows.map(|rows| rows.saturating_mul(times) / of);
        (rows[0] > 1).then(|| Trial { rows, ..trial }.point(rows[0] as f64, outcome, &|_| ()))
    });
    let rows = rows.collect();
    let modes = [ReleaseMode::Sums, ReleaseMode::Variance, ReleaseMode::Algorithm1].map(|mode| {
        let point = trial.point(0.0, outcome, &|lift| lift.release.mode = mode);
        IntervalPoint { value: mode.name().to_owned(), ..point }
    });
    let release = &lift.release;
    let paid = release.public.as_ref().or(release.to.first().map(|(_, rho)| rho)).map_or(0.0, to_f64);
    let curve = |setting, points, chosen| IntervalCurve { setting, points, chosen };
    Ok(vec![
        curve("rho", rho.to_vec(), paid),
        curve("clamp", clamp, f64::from(lift.rule.clamp) / parts),
        curve("rows", rows, assumed.rows[0] as f64),
        curve("mode", modes.to_vec(), 0.0),
    ])
}

/// What a study would detect if hardly anybody had the labels that it leaves out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FewLeftOut {
    /// People of the publisher in the two arms that are compared.
    pub rows: u64,
    /// Smallest difference that would be detected in 80 of 100 times.
    pub effect: f64,
}

/// The smallest effect of what everybody sees, else of the publisher's view, for so many rows.
///
/// # Errors
/// When nothing would be shown of them.
pub(crate) fn effect_at(study: &Study, rows: [u64; 2], outcome: &OutcomeGuess) -> Result<f64, Error> {
    Trial { study, rows }.effect(outcome, &|_| ())
}

/// What a lift study would detect with some clamp.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClampEffect {
    /// The clamp, in the unit of outcomes.
    pub clamp: f64,
    /// The mean outcome per person of the control arm, no person above that clamp.
    pub mean: f64,
    /// The part of all outcomes of this party's file that it leaves; absent where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<f64>,
    /// Smallest difference of such means that would be detected in 80 of 100 times; absent where nothing
    /// would be shown.
    pub effect: Option<f64>,
}

impl ClampEffect {
    /// The effect as a part of the mean that the clamp leaves.
    #[must_use]
    pub fn of_mean(&self) -> Option<f64> {
        self.effect.filter(|_| self.mean > 0.0).map(|effect| effect / self.mean)
    }
}

impl Plan {
    /// Says what other clamps would detect: half that of the study, its double, and those that are asked
    /// for in its unit; `own` is what reading this side's data did, where they were read.
    ///
    /// # Errors
    /// When a study has no clamp, or none such.
    pub fn try_clamps(
        &mut self,
        file: &StudyFile,
        assumed: &Assumed,
        own: Option<&InputReport>,
        asked: &[f64],
    ) -> Result<(), Error> {
        let counted = counted_clamps(file.first(), asked)?;
        self.clamp_effects = clamp_effects(file, assumed, own, (self, &counted));
        Ok(())
    }
}

/// Clamps as a study counts them.
fn counted_clamps(study: &Study, asked: &[f64]) -> Result<Vec<u32>, Error> {
    let Question::Lift(lift) = &study.kind else {
        return match asked {
            [] => Ok(Vec::new()),
            _ => Err(Error::input("--clamp is of a lift study; this one has no clamp")),
        };
    };
    let scale = f64::from(lift.scale());
    let parts = |clamp: &f64| {
        let parts = (clamp * scale).round();
        let whole = (parts - clamp * scale).abs() < 1e-6 * parts.max(1.0);
        match whole && (1.0..=f64::from(study::MAX_CLAMP)).contains(&parts) {
            true => Ok(parts as u32),
            false => Err(Error::input(format!(
                "--clamp {clamp}: a clamp of this study is {} to {}, in steps of {}",
                1.0 / scale,
                page::numbers::short(f64::from(study::MAX_CLAMP) / scale, 9),
                1.0 / scale
            ))),
        }
    };
    asked.iter().map(parts).collect()
}

/// The effect at half the clamp of a study, at its own, at double, and at others that are `asked`, beside
/// what the plan says of it; nothing of outcomes that nobody guesses, that no clamp cuts, or of several runs.
pub(crate) fn clamp_effects(
    file: &StudyFile,
    assumed: &Assumed,
    own: Option<&InputReport>,
    (plan, asked): (&Plan, &[u32]),
) -> Vec<ClampEffect> {
    let study = file.first();
    let (Question::Lift(lift), Some(outcome), [_]) = (&study.kind, &assumed.outcome, &file.runs[..]) else {
        return Vec::new();
    };
    let known = plan.public_effect.or(plan.minimum_detectable_effect);
    let clamp = lift.rule.clamp;
    let uncut = lift.advertisers.iter().all(|of| most(of).is_some_and(|most| most <= clamp.into()));
    let own = own.filter(|_| outcome.is_counted());
    let trial = Trial { study, rows: assumed.rows };
    let of = |(at, outcome): (u32, OutcomeGuess)| {
        let effect = match at == clamp {
            true => known,
            false => trial.effect(&outcome, &|lift| lift.rule.clamp = at).ok(),
        };
        let kept = own.and_then(|own| own.outcomes.kept(at));
        ClampEffect { clamp: f64::from(at) / f64::from(lift.scale()), mean: outcome.mean, kept, effect }
    };
    let near = |(at, _): &(u32, OutcomeGuess)| match at.cmp(&clamp) {
        Ordering::Less => *at == clamp >> 1,
        Ordering::Equal => true,
        Ordering::Greater => !uncut && *at == clamp.saturating_mul(2),
    };
    let around = clamps(lift, outcome, own, assumed.rows[0]).into_iter().filter(near);
    let mut all: Vec<(u32, OutcomeGuess)> = around.collect();
    for at in asked {
        let counted = || counted(own?, *at, assumed.rows[0], lift.scale());
        if !all.iter().any(|(known, _)| known == at) {
            all.push((*at, counted().unwrap_or_else(|| alike(lift, outcome))));
        }
    }
    all.into_iter().map(of).collect()
}

/// The round clamp of a study, no larger than `most`, with which it would see most if everybody of this
/// party's file were in the trial: the part of the mean that it would detect, over the part of all outcomes
/// that it leaves, is smallest. Of the first alone the smallest clamp is best, with which everybody who has
/// an outcome counts alike. Nothing where all of these would show nothing.
pub fn proposed_clamp(study: &Study, own: &InputReport, most: u32) -> Option<ClampEffect> {
    let Question::Lift(lift) = &study.kind else { return None };
    let rows = crate::check::advertisers_rows(study, own.rows_kept);
    let trial = Trial { study, rows };
    let powers = (0..).map_while(|power| 10u32.checked_pow(power)).take_while(|power| *power <= most);
    let round = powers.flat_map(|power| [1, 2, 5].map(|step| power.saturating_mul(step)));
    let found = round.filter(|at| *at <= most).filter_map(|at| {
        let outcome = counted(own, at, rows[0], lift.scale())?;
        let effect = trial.effect(&outcome, &|lift| lift.rule.clamp = at).ok()?;
        let kept = own.outcomes.kept(at);
        let clamp = f64::from(at) / f64::from(lift.scale());
        Some(ClampEffect { clamp, mean: outcome.mean, kept, effect: Some(effect) })
    });
    let part = |of: &ClampEffect| match (of.of_mean(), of.kept) {
        (Some(part), Some(kept)) if kept > 0.0 => part / kept,
        _ => f64::INFINITY,
    };
    found.min_by(|a, b| part(a).total_cmp(&part(b)))
}

/// Outcomes at a clamp by a party's own file, of so many people of the publisher.
fn counted(own: &InputReport, clamp: u32, people: u64, scale: u32) -> Option<OutcomeGuess> {
    let (sums, people) = (own.outcomes.at(clamp)?, NonZeroU64::new(people)?);
    Some(OutcomeGuess::counted(&sums, (own.rows_kept, people), scale))
}

/// The most that events of one person add up to, where there is such a most.
fn most(advertiser: &Advertiser) -> Option<u64> {
    match advertiser.value {
        EventValue::Constant(value) => Some(u64::from(value) * u64::from(advertiser.max_events)),
        EventValue::Columns { .. } => None,
    }
}

/// What one person can add, in the unit of outcomes: the clamp, or less where events do not come to it.
fn reach(lift: &LiftStudy) -> f64 {
    let clamp = u64::from(lift.rule.clamp);
    let all: Option<u64> = lift.advertisers.iter().map(most).sum();
    all.map_or(clamp, |all| all.min(clamp)) as f64 / f64::from(lift.scale())
}

/// Outcomes as they are at the study's clamp, whatever the clamp.
fn alike(lift: &LiftStudy, outcome: &OutcomeGuess) -> OutcomeGuess {
    let spread = outcome.variance.unwrap_or(outcome.mean * (reach(lift) - outcome.mean)).max(0.0);
    OutcomeGuess { variance: Some(spread), ..outcome.clone() }
}

/// Clamps around the study's, each with what outcomes are then: by this party's data where they tell, else as
/// they are at the study's.
fn clamps(
    lift: &LiftStudy,
    outcome: &OutcomeGuess,
    own: Option<&InputReport>,
    people: u64,
) -> Vec<(u32, OutcomeGuess)> {
    let told = own.map_or(&[][..], |own| &own.outcomes.by_clamp);
    if let (Some(own), Some(people), false) = (own, NonZeroU64::new(people), told.is_empty()) {
        let people = (own.rows_kept, people);
        return told
            .iter()
            .map(|(clamp, sums)| (*clamp, OutcomeGuess::counted(sums, people, lift.scale())))
            .collect();
    }
    let (parts, alike) = (f64::from(lift.scale()), alike(lift, outcome));
    let clamps = data::clamps_around(lift.rule.clamp).into_iter();
    clamps
        .filter(|clamp| f64::from(*clamp) >= outcome.mean * parts)
        .map(|clamp| (clamp, alike.clone()))
        .collect()
}

/// A study of so many rows of each party, of which one setting is changed.
#[derive(Clone, Copy)]
struct Trial<'a> {
    study: &'a Study,
    rows: [u64; 2],
}

impl Trial<'_> {
    fn point(self, at: f64, outcome: &OutcomeGuess, change: &dyn Fn(&mut LiftStudy)) -> IntervalPoint {
        let half = self.half(outcome, change).map_err(|error| error.to_string());
        IntervalPoint { value: page::numbers::plain(at, 6), at, half, mean: outcome.mean }
    }

    fn half(self, outcome: &OutcomeGuess, change: &dyn Fn(&mut LiftStudy)) -> Result<Halves, Error> {
        let study = self.changed(change)?;
        let Question::Lift(lift) = &study.kind else { return Err(Error::misuse("a lift study")) };
        let effect = self.effect(outcome, change)?;
        Halves::of(effect, outcome, (self.rows[0], reach(lift)), lift.release.confidence)
    }

    fn changed(self, change: &dyn Fn(&mut LiftStudy)) -> Result<Study, Error> {
        let mut study = self.study.clone();
        match &mut study.kind {
            Question::Lift(lift) => change(lift),
            _ => return Err(Error::misuse("a lift study")),
        }
        Ok(study)
    }

    /// The smallest effect of what everybody sees, else of the publisher's view. Nothing is priced for it: it
    /// hangs on the noise alone, of a study that could be run.
    fn effect(self, outcome: &OutcomeGuess, change: &dyn Fn(&mut LiftStudy)) -> Result<f64, Error> {
        let study = self.changed(change)?;
        let built = build_all([&study], &policy())?;
        let [(_, built)] = &built[..] else { return Err(Error::misuse("one run")) };
        let open = StudyEngine::of(&study, &built.program)?;
        dearest(&MatchStage::new(&study, built, &open, self.rows)?)?;
        let arms = halved(self.rows[0]);
        let course = Course { study: &study, built };
        let scales = course.scales(PublishStage::new(&study, built).map(|_| arms))?;
        scales.expect_room(&built.program)?;
        let terms = EffectTerms { study: &study, built, scales: &scales, arms, outcome };
        let ([own, public], why) = terms.overall();
        public.or(own).ok_or_else(|| Error::input(why.unwrap_or_default()))
    }
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;

//! What a study will cost, and what it could see, before anything is spent.

use crate::ceremony::{self, Noise};
use crate::prepare::{Built, build};
use crate::scales::{Scales, release_mode};
use crate::study::{Kind, Mode, Study};
use base::{Cost, Error, PartyId, limits};
use engine::Engine;
use matching::pid;
use program::Ratio;
use release::choose::{Context, Draw, Setup};
use release::modes::{Guess, Reading, SumsSigma, minimum_detectable_effect, minimum_detectable_effect_fixed};
use serde::Serialize;
use std::collections::BTreeMap;
use studies::lift::{Arm, Cell, Quantity};
use yao::Yao;

/// The wire between the parties.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Bits per second, each way.
    pub bits_per_s: f64,
    /// Seconds from a question to its answer.
    pub round_trip_s: f64,
}

/// Speeds of one core that times are estimated with; `docs/performance.md` says how they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Speeds {
    /// Garbled AND gates per second and core pair.
    pub and_per_s: f64,
    /// Group operations of matching per second and core.
    pub multiplications_per_s: f64,
    /// Cores of each party.
    pub cores: f64,
}

impl Default for Speeds {
    fn default() -> Self {
        Self { and_per_s: 45e6, multiplications_per_s: 44e3, cores: 1.0 }
    }
}

/// One stage of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanStage {
    /// `match`, `compute` or `release`.
    pub name: String,
    /// AND gates.
    pub and_gates: u64,
    /// Oblivious transfers.
    pub ots: u64,
    /// Application bytes sent, by party.
    pub bytes_sent: BTreeMap<String, u64>,
    /// Waits for an answer.
    pub rounds: u64,
    /// Estimated seconds.
    pub seconds: f64,
}

/// A plan: exact cost for the sizes assumed, estimated time, privacy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The stages in order.
    pub stages: Vec<PlanStage>,
    /// zCDP by viewer.
    pub rho: BTreeMap<String, f64>,
    /// Smallest difference of mean outcome per person that the first viewer would detect with 80 % power; lift only.
    pub minimum_detectable_effect: Option<f64>,
    /// What the numbers rest on.
    pub assumptions: BTreeMap<String, String>,
}

/// What a plan assumes about the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Rows of party 0 and party 1.
    pub rows: [u64; 2],
    /// Mean clamped outcome per person.
    pub mean: f64,
}

/// Prices a study.
///
/// # Errors
/// When the study's program is refused, or sizes are out of range.
pub fn plan(study: &Study, assumed: &Assumed, link: Link, speeds: Speeds) -> Result<Plan, Error> {
    let policy = program::Policy {
        max_rho: Ratio::new(1000, 1).ok_or_else(|| Error::misuse("a thousand is a ratio"))?,
        max_outputs: 8192,
        allow_exact: true,
    };
    let built = build(study, &policy)?;
    let rows = assumed.rows;
    let union = rows[0].saturating_add(rows[1]);
    if union > limits::ROWS {
        return Err(Error::limit("limits::ROWS, rows of both sides", union, limits::ROWS));
    }
    let half = [rows[0] / 2, rows[0] - rows[0] / 2];
    let scales = Scales::new(study, &built.program, &built.audit, Some(half))?;
    let mut stages = vec![match_stage(study, rows, link, speeds)];
    let engine = Yao::default();
    stages.push(compute_stage(study, &engine, &built, union, link, speeds));
    stages.push(release_stage(study, &engine, &built, &scales, link, speeds)?);
    let names = study.parties.iter().enumerate();
    let rho = names
        .map(|(i, m)| (m.name.clone(), release::rational::to_f64(scales.charge(PartyId(i as u8)))))
        .collect();
    let effect = effect(study, &built, &scales, half, assumed.mean)?;
    Ok(Plan {
        stages,
        rho,
        minimum_detectable_effect: effect,
        assumptions: assumptions(assumed, union, link, speeds),
    })
}

fn assumptions(assumed: &Assumed, union: u64, link: Link, speeds: Speeds) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("rows".into(), format!("{} and {}", assumed.rows[0], assumed.rows[1])),
        ("union".into(), format!("{union}: nobody in both; a larger match is cheaper")),
        ("arms".into(), "of equal size, all rows of the publisher".into()),
        ("mean_outcome".into(), assumed.mean.to_string()),
        ("power".into(), "0.8".into()),
        ("link".into(), format!("{} bit/s, {} s round trip", link.bits_per_s, link.round_trip_s)),
        (
            "speed".into(),
            format!(
                "{} AND/s, {} group operations/s, {} core(s) per party",
                speeds.and_per_s, speeds.multiplications_per_s, speeds.cores
            ),
        ),
    ])
}

fn stage(study: &Study, name: &str, cost: &Cost, work_s: f64, link: Link) -> PlanStage {
    let most = cost.sent.iter().max().copied().unwrap_or(0);
    // Sending and computing overlap; waiting does not.
    let wire_s = 8.0 * most as f64 / link.bits_per_s;
    PlanStage {
        name: name.into(),
        and_gates: cost.and_gates,
        ots: cost.ots,
        bytes_sent: study.parties.iter().map(|m| m.name.clone()).zip(cost.sent.iter().copied()).collect(),
        rounds: cost.rounds,
        seconds: wire_s.max(work_s),
    }
}

fn match_stage(study: &Study, rows: [u64; 2], link: Link, speeds: Speeds) -> PlanStage {
    let sizes = pid::Sizes { rows, union: rows[0] + rows[1] };
    let cost = pid::price(sizes);
    let work = pid::multiplications(sizes) as f64 / speeds.multiplications_per_s / speeds.cores;
    let mut stage = stage(study, "match", &cost, work, link);
    // Chunks are exchanged in lock step, a few on the way at once; six messages wait for each other.
    stage.seconds += 6.0 * link.round_trip_s;
    stage
}

fn compute_stage(
    study: &Study,
    engine: &Yao,
    built: &Built,
    union: u64,
    link: Link,
    speeds: Speeds,
) -> PlanStage {
    let of = u64::from(study.compute.shards);
    let cost = (0..of).fold(Cost::zero(2), |mut sum, i| {
        sum += &engine.price_rows(&built.program, (union + of - 1 - i) / of);
        sum
    });
    let work = cost.and_gates as f64 / speeds.and_per_s / speeds.cores.min(of as f64);
    let mut stage = stage(study, "compute", &cost, work, link);
    // The evaluator asks ahead, so only set-up waits.
    stage.seconds += 3.0 * link.round_trip_s;
    stage
}

fn release_stage(
    study: &Study,
    engine: &Yao,
    built: &Built,
    scales: &Scales,
    link: Link,
    speeds: Speeds,
) -> Result<PlanStage, Error> {
    let owners = built.program.fold_owners();
    let candidates = match &study.kind {
        Kind::Lift(lift) => lift.release.candidates,
        Kind::Program(own) => own.candidates,
    };
    let mut cost = Cost::zero(2);
    for viewer in (0..2).map(PartyId) {
        let plan = scales.plan(&built.program, &owners, viewer)?;
        cost += &engine.price_release(&plan, candidates as usize);
        let draws = scales.draws(&plan);
        if !draws.is_empty() {
            cost += &Noise::price(&setup(draws, viewer, candidates)?);
        }
    }
    let mut stage = stage(study, "release", &cost, cost.and_gates as f64 / speeds.and_per_s, link);
    stage.seconds += cost.rounds as f64 * link.round_trip_s;
    Ok(stage)
}

/// A set-up of the right size: prices do not depend on the hashes in it.
fn setup(draws: Vec<Draw>, viewer: PartyId, candidates: u32) -> Result<Setup, Error> {
    let none = [0; 32];
    let drawer = viewer.other();
    let context = Context { study: none, release: none, session: none, data: vec![none; 2], viewer, drawer };
    ceremony::setup(context, draws, candidates as usize)
}

/// The smallest effect the publisher's view would detect.
fn effect(
    study: &Study,
    built: &Built,
    scales: &Scales,
    [n_test, n_control]: [u64; 2],
    mean: f64,
) -> Result<Option<f64>, Error> {
    let (Kind::Lift(own), Some((lift, layout))) = (&study.kind, &built.lift) else { return Ok(None) };
    let guess = Guess { n_test, n_control, mean, variance: None };
    let confidence = f64::from(own.release.confidence.percent()) / 100.0;
    const POWER: f64 = 0.8;
    let noised = |quantity: Quantity, arm: Option<Arm>| {
        let found = layout.outputs.iter().find(|o| {
            o.viewer == studies::lift::PUBLISHER
                && o.cell == Cell::Overall
                && o.quantity == quantity
                && o.arm == arm
        });
        found.and_then(|o| o.noised)
    };
    let reading =
        Reading { clamp: lift.bound() as u64, confidence, minimum_group: own.release.minimum_group };
    let effect = if own.release.mode == Mode::Sums {
        let sigma = |quantity| {
            let at = noised(quantity, Some(Arm::Test));
            at.map_or(0.0, |(m, o)| release::rational::to_f64(scales.sigma2(m, o)).sqrt())
        };
        let [n, s, q] = Quantity::CORE;
        let sigma = SumsSigma { n: sigma(n), s: sigma(s), q: sigma(q) };
        minimum_detectable_effect(&sigma, &guess, &reading, POWER)
    } else {
        let scale = noised(Quantity::Difference, None).and_then(|(m, _)| scales.fixed(m));
        let Some(scale) = scale else { return Ok(None) };
        let mode = release_mode(own.release.mode);
        minimum_detectable_effect_fixed(mode, scale, &guess, &reading, POWER)
    };
    Ok(effect.ok())
}

//! What a study will cost, and what it could see, before anything is spent.

mod choice;

pub use choice::Choice;

use crate::engines::{Engines, Estimate};
use crate::prepare::{Built, build};
use crate::run::join::{Payloads, column_layouts};
use crate::run::outsourced::{NOISE, price_match, publishes};
use crate::run::{measure, released};
use base::{Cost, Error, PartyId, limits};
use matching::group::CurveGroup;
use matching::payload::PayloadLayout;
use matching::{circuit_psi, collecting, many, multi, pid, ps3i};
use num_traits::Zero;
use ot::OtKind;
use privacy::hold::StepsRun;
use privacy::ledger::PUBLIC;
use privacy::scales::{Scales, release_mode};
use privacy::{PrivacyTotal, dummies};
use program::Viewer;
use release::modes::{Guess, Reading, minimum_detectable_effect, minimum_detectable_effect_fixed};
use release::rational::{Rational, ratio};
use ring4::Security;
use serde::Serialize;
use std::collections::BTreeMap;
use studies::lift::Quantity;
use study::{Backend, NoiseMode, Protocol, Question, Study};

/// The wire between the parties.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Bits per second, each way.
    pub bits_per_s: f64,
    /// Seconds from a question to its answer.
    pub round_trip_s: f64,
}

impl Link {
    /// Seconds to send what the busiest party sends.
    #[must_use]
    pub fn seconds(&self, cost: &Cost) -> f64 {
        8.0 * cost.sent.iter().max().copied().unwrap_or(0) as f64 / self.bits_per_s
    }
}

/// Speeds of one core that times are estimated with; `docs/performance.md` says how they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Speeds {
    /// Garbled AND gates per second and core pair.
    pub and_per_s: f64,
    /// Correlated oblivious transfers of `gmw`, with what is computed from them, per second and core pair.
    pub ots_per_s: f64,
    /// AND gates of `ring4` per second, of four semi-honest servers and of four of which one may do anything,
    /// all of them on two cores.
    pub ring4_and_per_s: [f64; 2],
    /// Group operations of matching per second and core.
    pub multiplications_per_s: f64,
    /// Cores of each party.
    pub cores: f64,
}

/// `and_per_s` of `tacit bench engines --sizes 1M --json`, semi-honest and malicious: four servers on two
/// cores.
const RING4_ON_TWO_CORES: [f64; 2] = [365e6, 230e6];

impl Speeds {
    /// ANDs per second of four servers.
    #[must_use]
    pub fn ring4(&self, security: Security) -> f64 {
        self.ring4_and_per_s[usize::from(security == Security::Malicious)]
    }
}

impl Default for Speeds {
    fn default() -> Self {
        // Both parties' machines are taken to be like this one.
        let multiplications_per_s = if CurveGroup::detect().lanes() > 1 { 330e3 } else { 44e3 };
        Self {
            and_per_s: 45e6,
            ots_per_s: 60e6,
            ring4_and_per_s: RING4_ON_TWO_CORES,
            multiplications_per_s,
            cores: 1.0,
        }
    }
}

/// One stage of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanStage {
    /// `link`, `match`, `noise`, `compute` or `release`.
    pub name: String,
    /// AND gates.
    pub and_gates: u64,
    /// Oblivious transfers.
    pub ots: u64,
    /// Application bytes sent, by party.
    pub bytes_sent: BTreeMap<String, u64>,
    /// Waits for an answer; of `compute`, those that nothing else fills, by the slowest shard.
    pub rounds: u64,
    /// Estimated seconds.
    pub seconds: f64,
}

/// A plan: exact cost for the sizes assumed, estimated time, privacy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The stages in order.
    pub stages: Vec<PlanStage>,
    /// Every engine that could run the study, on these sizes; empty where nothing is computed.
    pub engines: Vec<Choice>,
    /// zCDP of the release by viewer: parties, each with what everybody sees, and `public` where there is
    /// such a result.
    pub rho: BTreeMap<String, f64>,
    /// All that a viewer gets where it sees noised values, the sizes of the match included.
    pub total: BTreeMap<String, PrivacyTotal>,
    /// Smallest difference of mean outcome per person that the publisher's own view would detect with 80 %
    /// power; lift only.
    pub minimum_detectable_effect: Option<f64>,
    /// The same of what everybody sees.
    pub public_effect: Option<f64>,
    /// What the numbers rest on.
    pub assumptions: BTreeMap<String, String>,
}

/// What is charged for the sizes that a match tells.
fn hidden_sizes(study: &Study) -> Result<Option<(String, String)>, Error> {
    let mut charged = Vec::with_capacity(study.parties.len());
    for (i, member) in study.parties.iter().enumerate() {
        let Some(charge) = dummies::charge(study, PartyId(i as u8))? else { return Ok(None) };
        let rho = release::rational::to_f64(&charge.rho);
        charged
            .push((&member.name, format!("rho {rho} and delta {}", release::rational::small(&charge.delta))));
    }
    let same = charged.iter().all(|(_, charge)| *charge == charged[0].1);
    let text = match same {
        true => format!("{} for each party's sizes, beside the release", charged[0].1),
        false => {
            let each = charged.iter().map(|(name, charge)| format!("{charge} for {name}'s sizes"));
            format!("{}, beside the release", each.collect::<Vec<_>>().join(", "))
        }
    };
    Ok(Some(("sizes".into(), text)))
}

/// What a plan assumes about the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Rows of party 0 and party 1.
    pub rows: [u64; 2],
    /// Mean clamped outcome per person.
    pub mean: f64,
}

/// Prices a study. Of a lift study with several advertisers, all runs, each on these sizes; their stages
/// begin with the advertiser's name.
///
/// # Errors
/// When the study's program is refused, or sizes are out of range.
pub fn plan(study: &Study, assumed: &Assumed, link: Link, speeds: Speeds) -> Result<Plan, Error> {
    let Question::Lifts(parts) = &study.kind else { return plan_run(study, assumed, link, speeds) };
    let mut whole: Option<Plan> = None;
    for part in parts {
        let mut plan = plan_run(part, assumed, link, speeds)?;
        for stage in &mut plan.stages {
            stage.name = format!("{}/{}", part.parties[1].name, stage.name);
        }
        match &mut whole {
            None => whole = Some(plan),
            Some(whole) => {
                whole.stages.append(&mut plan.stages);
                whole.rho.append(&mut plan.rho);
                whole.total.append(&mut plan.total);
                choice::add(&mut whole.engines, plan.engines);
                // What every release would detect.
                let both = |a: Option<f64>, b: Option<f64>| Some(a?.max(b?));
                whole.minimum_detectable_effect =
                    both(whole.minimum_detectable_effect, plan.minimum_detectable_effect);
                whole.public_effect = both(whole.public_effect, plan.public_effect);
            }
        }
    }
    let mut whole = whole.ok_or_else(|| Error::misuse("a study has a run"))?;
    choice::recommend(&mut whole.engines);
    let runs =
        "one of the publisher with each advertiser, at the same time; rho is of each release".to_owned();
    whole.assumptions.insert("runs".into(), runs);
    Ok(whole)
}

fn plan_run(study: &Study, assumed: &Assumed, link: Link, speeds: Speeds) -> Result<Plan, Error> {
    let policy = program::VerifierPolicy { max_rho: ratio(1000, 1), max_outputs: 8192, allow_exact: true };
    let built = build(study, &policy)?;
    let open = Engines::of(study, &built.program)?;
    let rows = assumed.rows;
    let aligned = study.matching.protocol == Protocol::Aligned;
    let matched = Matching::of(study, &built, &open, rows)?;
    let union = matched.rows;
    if union > limits::ROWS {
        return Err(Error::limit("limits::ROWS, rows of both sides", union, limits::ROWS));
    }
    if study.only_matches() {
        let mut assumptions = assumptions(assumed, &matched, link, speeds);
        assumptions.extend(hidden_sizes(study)?);
        let stages = vec![matched.stage(study, link, speeds)];
        let (engines, rho, total) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (minimum_detectable_effect, public_effect) = (None, None);
        return Ok(Plan {
            stages,
            engines,
            rho,
            total,
            minimum_detectable_effect,
            public_effect,
            assumptions,
        });
    }
    let half = [rows[0] / 2, rows[0] - rows[0] / 2];
    let scales = Scales::new(study, &built.program, &built.audit, Some(half))?;
    let sizes = Sizes { study, built: &built, scales: &scales, rows: union, link, speeds };
    let engines = sizes.settled(open);
    let mut stages =
        vec![matched.stage(study, link, speeds), sizes.compute(&engines).0, sizes.release(&engines)?.0];
    let noise = sizes.noise(&engines)?.0;
    if noise.bytes_sent.values().any(|bytes| *bytes > 0) {
        let late = usize::from(publishes(&built));
        stages.insert(1 + late, noise);
    }
    if open.asks(&built.program) {
        stages.insert(0, link_stage(study, link));
    }
    let rho = spent(study, &scales);
    let total = totals(study, &built, &scales)?;
    let smallest = |viewer| effect(study, &built, &scales, (half, assumed.mean), viewer);
    let effect = smallest(studies::lift::PUBLISHER.into())?;
    let public_effect = smallest(Viewer::Public)?;
    let mut assumptions = assumptions(assumed, &matched, link, speeds);
    let settings = engines.settings(&built.program);
    let engine = [engines.make().name(), &settings].into_iter().filter(|text| !text.is_empty());
    assumptions.insert("engine".into(), engine.collect::<Vec<_>>().join(", "));
    if aligned {
        assumptions.insert("rows".into(), format!("{union}, the same at every party"));
        assumptions.remove("union");
    }
    assumptions.extend(hidden_sizes(study)?);
    if !total.is_empty() {
        assumptions.insert("unit".into(), study.unit_words());
    }
    let engines = choice::choices(&sizes)?;
    let minimum_detectable_effect = effect;
    Ok(Plan { stages, engines, rho, total, minimum_detectable_effect, public_effect, assumptions })
}

/// What each party gets to see in all, and the public where there is something for it, as a number.
fn spent(study: &Study, scales: &Scales) -> BTreeMap<String, f64> {
    let seen = |(i, member): (usize, &study::Participant)| {
        (member.name.clone(), release::rational::to_f64(&scales.seen_by(PartyId(i as u8))))
    };
    let mut spent: BTreeMap<String, f64> = study.parties.iter().enumerate().map(seen).collect();
    let public = scales.charge(Viewer::Public);
    if !public.is_zero() {
        spent.insert(PUBLIC.to_owned(), release::rational::to_f64(public));
    }
    spent
}

/// Of the public and of each party that sees something noised: what its view costs, sizes of the match
/// included.
fn totals(study: &Study, built: &Built, scales: &Scales) -> Result<BTreeMap<String, PrivacyTotal>, Error> {
    let mut totals = BTreeMap::new();
    let public = scales.charge(Viewer::Public);
    if !public.is_zero() {
        totals.insert(PUBLIC.to_owned(), PrivacyTotal::new(public, &Rational::zero(), &Rational::zero()));
    }
    for (i, member) in study.parties.iter().enumerate() {
        let viewer = PartyId(i as u8);
        if built.program.mechanisms.iter().any(|mechanism| mechanism.to.has(viewer)) {
            totals
                .insert(member.name.clone(), PrivacyTotal::of_view(study, viewer, &scales.seen_by(viewer))?);
        }
    }
    Ok(totals)
}

fn assumptions(
    assumed: &Assumed,
    matched: &Matching,
    link: Link,
    speeds: Speeds,
) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("rows".into(), format!("{} and {}", assumed.rows[0], assumed.rows[1])),
        ("union".into(), format!("{}: {}", matched.rows, matched.why)),
        ("arms".into(), "of equal size, all rows of the publisher".into()),
        ("mean_outcome".into(), assumed.mean.to_string()),
        ("power".into(), "0.8".into()),
        ("link".into(), format!("{} bit/s, {} s round trip", link.bits_per_s, link.round_trip_s)),
        (
            "speed".into(),
            format!(
                "{} AND/s (yao), {} OT/s (gmw), {} or malicious {} AND/s (ring4), {} group operations/s, {} \
                 core(s) per party",
                speeds.and_per_s,
                speeds.ots_per_s,
                speeds.ring4(Security::SemiHonest),
                speeds.ring4(Security::Malicious),
                speeds.multiplications_per_s,
                speeds.cores
            ),
        ),
    ])
}

fn stage(study: &Study, name: &str, cost: &Cost, work_s: f64, link: Link) -> PlanStage {
    PlanStage {
        name: name.into(),
        and_gates: cost.and_gates,
        ots: cost.ots,
        bytes_sent: study
            .everybody()
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .zip(cost.sent.iter().copied())
            .collect(),
        rounds: cost.rounds,
        // Sending and computing overlap; waiting does not.
        seconds: link.seconds(cost).max(work_s),
    }
}

/// Bytes of a ciphertext of Paillier, and seconds that it takes to be made, answered or opened on one core;
/// measured by `cargo run --release -p matching --example paillier_rate`.
const CIPHERTEXT: (f64, f64) = (matching::paillier::key::CIPHERTEXT_BYTES as f64, 0.011);

/// A match before it is run: with the most made-up rows, and as many matches as make it dearest.
struct Matching {
    cost: Cost,
    /// Group operations of the busiest party.
    multiplications: u64,
    /// Seconds of encryption, of the parties one after the other.
    encrypted: f64,
    /// Messages that wait for each other, beyond what streams.
    waits: f64,
    /// Rows that the computation gets.
    rows: u64,
    why: String,
}

impl Matching {
    fn new(cost: Cost, multiplications: u64, waits: f64, rows: u64, why: String) -> Self {
        Self { cost, multiplications, encrypted: 0.0, waits, rows, why }
    }

    fn of(study: &Study, built: &Built, engines: &Engines, rows: [u64; 2]) -> Result<Self, Error> {
        let parties = study.parties.len();
        let protocol = study.matching.protocol;
        let rule = study.matching.dummies.as_ref();
        let dummies =
            rule.map(|rule| dummies::dummies(rule, &base::Seed::from_bytes([0; 32]))).transpose()?;
        let most = dummies.as_ref().map_or(0, |d| d.rows_range(dummies::hides(protocol), parties)[1]);
        let padded = rows.map(|rows| rows.saturating_add(most));
        let all = padded[0].saturating_add(padded[1].saturating_mul(parties as u64 - 1));
        if all > limits::ROWS && protocol != Protocol::Aligned {
            return Err(Error::limit("limits::ROWS, rows of both sides", all, limits::ROWS));
        }
        let made_up = if most > 0 { format!(", {most} made-up rows of each at most") } else { String::new() };
        let apart = format!("nobody in both; a larger match is cheaper{made_up}");
        let ot = study.compute.ot.unwrap_or_default();
        let keys = [study.matching.identifiers.len() as u64; 2];
        let layouts = match engines.joined() {
            Some(_) if study.only_matches() => column_layouts(&built.program, dummies.is_some())?,
            Some(shared) => {
                let payloads = Payloads::new(built, shared)?;
                [payloads.layout(PartyId(0))?, payloads.layout(PartyId(1))?]
            }
            None => Default::default(),
        };
        Ok(match protocol {
            Protocol::Pid if parties > 2 => {
                let sizes =
                    many::Sizes { rows: [&padded[..1], &vec![padded[1]; parties - 1]].concat(), union: all };
                let multiplications = many::multiplications(&sizes, 0);
                let waits = 2.0 * parties as f64 + 4.0;
                Self::new(many::price(&sizes), multiplications, waits, all, apart)
            }
            Protocol::Pid => {
                let sizes = pid::Sizes { rows: padded, union: all };
                let multiplications = pid::multiplications(sizes);
                Self::new(pid::price(sizes), multiplications, 6.0, all, apart)
            }
            Protocol::MultiPid { .. } => {
                let sizes = multi::Sizes { rows: padded, keys, union: all };
                let multiplications = multi::multiplications(sizes, PartyId(1));
                Self::new(multi::price(sizes), multiplications, 6.0, all, apart)
            }
            Protocol::Ps3i { backend } => {
                let why = format!("everybody in both; a smaller match is cheaper{made_up}");
                Self::ps3i(padded, &layouts, backend, ot, why)
            }
            Protocol::Collecting { slots, degree, .. } => {
                let sizes = collecting::Sizes { rows: padded, keys, slots, degree };
                let cost = collecting::price(sizes, &layouts, collecting::ShareBackend::default(), ot);
                let multiplications = sizes.names(0) + sizes.names(1);
                let why = format!("rows of the publisher, {slots} slots each{made_up}");
                Self::new(cost, multiplications, 8.0, padded[0], why)
            }
            Protocol::CircuitPsi => {
                let kind = study.compute.ot.unwrap_or(circuit_psi::Options::default().ot);
                let cost = circuit_psi::price(padded, &layouts[1], kind);
                let places = circuit_psi::cuckoo::CuckooBins::new(padded).all();
                let why = format!("places for rows of the publisher{made_up}");
                Self::new(cost, 0, 10.0, places, why)
            }
            Protocol::Aligned => Self::new(price_match(study, &[])?, 0, 1.0, rows[0], String::new()),
            Protocol::SaltedKey => {
                let each = [&rows[..1], &vec![rows[1]; parties - 1]].concat();
                let why = "nobody in both; a larger match is cheaper".to_owned();
                Self::new(price_match(study, &each)?, 0, 3.0, all, why)
            }
        })
    }

    fn ps3i(rows: [u64; 2], layouts: &[PayloadLayout; 2], backend: Backend, ot: OtKind, why: String) -> Self {
        let matched = rows[0].min(rows[1]);
        let backend = match backend {
            Backend::PermuteShare => ps3i::ShareBackend::PermuteShare,
            Backend::Paillier => ps3i::ShareBackend::Paillier,
        };
        let cost = ps3i::price(ps3i::Sizes { rows, matched }, layouts, backend, ot);
        // Every ciphertext is made, answered or opened by a party that does nothing else meanwhile.
        let encrypted = match backend {
            ps3i::ShareBackend::PermuteShare => 0.0,
            ps3i::ShareBackend::Paillier => cost.bytes() as f64 / CIPHERTEXT.0 * CIPHERTEXT.1,
        };
        Self { encrypted, ..Self::new(cost, rows[0].saturating_add(rows[1]), 8.0, matched, why) }
    }

    fn stage(&self, study: &Study, link: Link, speeds: Speeds) -> PlanStage {
        // Transfers of a join are made as those of `gmw` are.
        let work = (self.multiplications as f64 / speeds.multiplications_per_s + self.encrypted)
            / speeds.cores
            + self.cost.ots as f64 / speeds.ots_per_s;
        let mut stage = stage(study, "match", &self.cost, work, link);
        // Chunks are exchanged in lock step, a few on the way at once; some messages wait for each other.
        stage.seconds += self.waits * link.round_trip_s;
        stage
    }
}

/// Measuring the link, where it settles what the study leaves open.
fn link_stage(study: &Study, link: Link) -> PlanStage {
    let cost = measure::price(study.parties.len());
    let mut stage = stage(study, "link", &cost, 0.0, link);
    // All its messages cross.
    stage.seconds += cost.rounds as f64 * link.round_trip_s / 2.0;
    stage
}

/// What the stages of computing are priced for.
struct Sizes<'a> {
    study: &'a Study,
    built: &'a Built,
    scales: &'a Scales,
    rows: u64,
    link: Link,
    speeds: Speeds,
}

impl Sizes<'_> {
    fn settled(&self, engines: Engines) -> Engines {
        engines.settled(&self.built.program, self.rows, self.link, self.speeds)
    }

    /// Rows and combine, and the bytes of all who take part, whether the study names them or not.
    fn compute(&self, engines: &Engines) -> (PlanStage, u64) {
        let estimate = engines.estimate(&self.built.program, self.rows, self.link, self.speeds);
        let stage = stage(self.study, "compute", &estimate.cost, 0.0, self.link);
        let Estimate { and_gates, round_trips: rounds, seconds, cost } = estimate;
        (PlanStage { and_gates, rounds, seconds, ..stage }, cost.bytes())
    }

    /// The noise that is drawn before the rows, likewise.
    fn noise(&self, engines: &Engines) -> Result<(PlanStage, u64), Error> {
        let engine = engines.make();
        let plans = released::plans(&*engine, self.built, self.scales)?;
        let (cost, and_gates, rounds) = engines.price_draw(&self.scales.draws(&*engine, &plans));
        let stage = stage(self.study, NOISE, &cost, 0.0, self.link);
        let seconds = stage.seconds + rounds as f64 * self.link.round_trip_s;
        Ok((PlanStage { and_gates, rounds, seconds, ..stage }, cost.bytes()))
    }

    /// The releases of all viewers, likewise.
    fn release(&self, engines: &Engines) -> Result<(PlanStage, u64), Error> {
        let Sizes { study, built, scales, link, .. } = *self;
        let engine = engines.make();
        let mut plans = released::plans(&*engine, built, scales)?.into_iter();
        let (mut cost, mut and_gates, mut rounds) = (Cost::zero(study.roster().len()), 0, 0);
        for viewer in built.program.viewers() {
            if released::sees(built, viewer)
                && let Some(plan) = plans.next()
            {
                let all = released::price(study, &*engine, scales, &plan, StepsRun::Whole)?;
                let (own, gates, trips) = engines.price_release(&plan);
                and_gates += gates;
                rounds += trips + all.rounds.saturating_sub(own.rounds);
                cost += &all;
            }
            let Some(viewer) = viewer.only() else { continue };
            if built.program.lists.iter().any(|list| list.to == viewer) {
                let lists = engine.price_lists(&built.program, self.rows, viewer);
                rounds += lists.rounds;
                cost += &lists;
            }
        }
        let work = cost.and_gates as f64 / self.speeds.and_per_s;
        let stage = stage(study, "release", &cost, work, link);
        let seconds = stage.seconds + rounds as f64 * link.round_trip_s;
        Ok((PlanStage { and_gates, rounds, seconds, ..stage }, cost.bytes()))
    }
}

/// The smallest effect that what a viewer sees would detect; none where it sees nothing.
fn effect(
    study: &Study,
    built: &Built,
    scales: &Scales,
    ([n_test, n_control], mean): ([u64; 2], f64),
    viewer: Viewer,
) -> Result<Option<f64>, Error> {
    let (Question::Lift(own), Some((lift, layout))) = (&study.kind, &built.lift) else { return Ok(None) };
    let guess = Guess { n_test, n_control, mean, variance: None };
    let confidence = f64::from(own.release.confidence.percent()) / 100.0;
    const POWER: f64 = 0.8;
    let reading =
        Reading { clamp: lift.bound() as u64, confidence, minimum_group: own.release.minimum_group };
    if !built.program.mechanisms.iter().any(|mechanism| mechanism.to == viewer) {
        return Ok(None);
    }
    let effect = if own.release.mode == NoiseMode::Sums {
        let mechanism = layout.outputs.iter().filter(|o| o.viewer == viewer).find_map(|o| o.noised);
        let Some(joint) = mechanism.and_then(|(m, _)| scales.joint(m)) else { return Ok(None) };
        minimum_detectable_effect(joint, &guess, &reading, POWER)
    } else {
        let difference =
            |o: &&studies::lift::OutputMeaning| o.viewer == viewer && o.quantity == Quantity::Difference;
        let noised = layout.outputs.iter().find(difference).and_then(|o| o.noised);
        let scale = noised.and_then(|(m, _)| scales.fixed(m));
        let Some(scale) = scale else { return Ok(None) };
        let mode = release_mode(own.release.mode);
        minimum_detectable_effect_fixed(mode, scale, &guess, &reading, POWER)
    };
    Ok(effect.ok())
}

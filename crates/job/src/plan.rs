//! What a study will cost, and what it could see, before anything is spent.

mod choice;

pub use choice::Choice;

use crate::course::{Actor, Completed, Course, Matched};
use crate::engines::{Estimate, StudyEngine, row_source};
use crate::prepare::{Built, build};
use crate::run::join::{Payloads, column_layouts};
use crate::run::outsourced::price_match;
use crate::stages::compute::ComputeStage;
use crate::stages::link::{LinkFacts, LinkStage};
use crate::stages::noise::NoiseStage;
use crate::stages::publish::PublishStage;
use crate::stages::release::ReleaseStage;
use crate::stages::upgrade::UpgradeStage;
use crate::stages::{Stage, Tells};
use base::{Cost, Error, PartyId, limits};
use engine::{DrawnNoise, RowSource};
use matching::group::CurveGroup;
use matching::payload::PayloadLayout;
use matching::{circuit_psi, collecting, many, multi, pid, ps3i};
use num_traits::Zero;
use ot::OtKind;
use privacy::ledger::PUBLIC;
use privacy::scales::{Scales, release_mode};
use privacy::{PrivacyTotal, dummies};
use program::{Ratio, Viewer};
use release::Rational;
use release::modes::{Guess, Reading, minimum_detectable_effect, minimum_detectable_effect_fixed};
use ring4::Security;
use serde::Serialize;
use std::collections::BTreeMap;
use studies::lift::Quantity;
use study::transport::{ServerTransport, protects};
use study::{Backend, NoiseMode, Protocol, Question, Study, StudyFile};

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
    /// `link`, `match`, `noise`, `compute`, `publish` or `release`.
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
    /// What it tells, and to whom.
    pub tells: Vec<Tells>,
}

/// A plan: exact cost for the sizes assumed, estimated time, privacy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

/// Prices a study file: of several runs all, each on these sizes; their stages begin with the advertiser's
/// name.
///
/// # Errors
/// When the study's program is refused, or sizes are out of range.
pub fn plan_file(file: &StudyFile, assumed: &Assumed, link: Link, speeds: Speeds) -> Result<Plan, Error> {
    if let [study] = &file.runs[..] {
        return plan(study, assumed, link, speeds);
    }
    let mut whole: Option<Plan> = None;
    for part in &file.runs {
        let mut plan = plan(part, assumed, link, speeds)?;
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

impl Plan {
    /// The same with the servers' transport. Nothing where the study has no servers.
    ///
    /// # Errors
    /// None that a study which was planned has.
    pub fn over(mut self, study: &Study, transport: &ServerTransport, link: Link) -> Result<Self, Error> {
        if study.servers.is_none() {
            return Ok(self);
        }
        let used = match transport {
            ServerTransport::Auto => {
                "auto: memory that all four share, if they are on one host, else TLS".to_owned()
            }
            other => format!("{other}: {}", protects(&other.to_string())),
        };
        self.assumptions.insert("transport".into(), used);
        if let Some(kind) = transport.plain() {
            let stage = UpgradeStage { study, kind };
            self.stages.insert(0, PlanStage::new(study, &stage, link, Speeds::default())?);
        }
        Ok(self)
    }
}

/// Prices one run.
///
/// # Errors
/// As [`plan_file`].
pub fn plan(study: &Study, assumed: &Assumed, link: Link, speeds: Speeds) -> Result<Plan, Error> {
    let policy = program::VerifierPolicy {
        max_rho: Ratio::new(1000, 1).ok_or_else(|| Error::misuse("a thousand is a ratio"))?,
        max_outputs: 8192,
        allow_exact: true,
    };
    let built = build(study, &policy)?;
    let open = StudyEngine::of(study, &built.program)?;
    let matched = Matching::of(study, &built, &open, assumed.rows)?;
    let union = matched.rows;
    if union > limits::ROWS {
        return Err(Error::limit("limits::ROWS, rows of both sides", union, limits::ROWS));
    }
    let mut assumptions = assumptions(assumed, &matched, link, speeds);
    assumptions.extend(hidden_sizes(study)?);
    let rows = assumed.rows;
    let half = [rows[0] / 2, rows[0] - rows[0] / 2];
    let mut estimator = Estimator { study, matched: &matched, half, link, speeds, stages: Vec::new() };
    if study.only_matches() {
        estimator.match_rows()?;
        return Ok(Plan { stages: estimator.stages, assumptions, ..Plan::default() });
    }
    let course = Course { study, built: &built };
    let Completed { matched: Matched { engines, .. }, scales, .. } =
        course.run(open.clone(), (), &mut estimator)?;
    let settings = engines.settings();
    let engine = [engines.name(), &settings].into_iter().filter(|text| !text.is_empty());
    assumptions.insert("engine".into(), engine.collect::<Vec<_>>().join(", "));
    if study.matching.protocol == Protocol::Aligned {
        assumptions.insert("rows".into(), format!("{union}, the same at every party"));
        assumptions.remove("union");
    }
    let total = totals(study, &built, &scales)?;
    if !total.is_empty() {
        assumptions.insert("unit".into(), study.unit_words());
    }
    let smallest = |viewer| effect(study, &built, &scales, (half, assumed.mean), viewer);
    Ok(Plan {
        engines: choice::choices(&open, course, &scales, union, (link, speeds))?,
        rho: spent(study, &scales),
        total,
        minimum_detectable_effect: smallest(studies::lift::PUBLISHER.into())?,
        public_effect: smallest(Viewer::Public)?,
        stages: estimator.stages,
        assumptions,
    })
}

/// Goes through the stages of a run and adds up what they cost.
struct Estimator<'a> {
    study: &'a Study,
    matched: &'a Matching,
    /// Rows of the publisher's arms.
    half: [u64; 2],
    link: Link,
    speeds: Speeds,
    stages: Vec<PlanStage>,
}

impl Estimator<'_> {
    fn add(&mut self, stage: &impl Stage) -> Result<(), Error> {
        self.stages.push(PlanStage::new(self.study, stage, self.link, self.speeds)?);
        Ok(())
    }
}

impl Actor for Estimator<'_> {
    type Rows = ();
    type Lanes = ();
    type Totals = ();
    type Views = ();

    fn link(&mut self, stage: &LinkStage) -> Result<LinkFacts, Error> {
        self.add(stage)?;
        Ok(LinkFacts { link: self.link, speeds: self.speeds })
    }

    fn match_rows(&mut self) -> Result<((), u64), Error> {
        self.stages.push(self.matched.stage(self.study, self.link, self.speeds));
        Ok(((), self.matched.rows))
    }

    fn settled(&mut self, _matched: &Matched<()>) {}

    fn draw(&mut self, stage: &NoiseStage) -> Result<DrawnNoise, Error> {
        self.add(stage).map(|()| DrawnNoise::none())
    }

    fn compute(&mut self, stage: &ComputeStage, _matched: &Matched<()>, (): ()) -> Result<(), Error> {
        self.add(stage)
    }

    fn publish(&mut self, stage: &PublishStage, (): &(), (): &()) -> Result<[u64; 2], Error> {
        self.add(stage)?;
        Ok(self.half)
    }

    fn release(
        &mut self,
        stage: &ReleaseStage<'_>,
        _matched: &Matched<()>,
        (): &(),
        _: &mut DrawnNoise,
    ) -> Result<(), Error> {
        self.add(stage)
    }
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

impl PlanStage {
    fn new(study: &Study, stage: &impl Stage, link: Link, speeds: Speeds) -> Result<Self, Error> {
        let estimate = stage.estimate(link, speeds)?;
        Ok(Self::of(study, stage.name(), estimate, stage.tells()))
    }

    fn of(study: &Study, name: &str, estimate: Estimate, tells: Vec<Tells>) -> Self {
        let Estimate { cost, and_gates, round_trips: rounds, seconds } = estimate;
        let names = study.everybody().into_iter().map(|(name, _)| name.to_owned());
        let bytes_sent = names.zip(cost.sent).collect();
        Self { name: name.into(), and_gates, ots: cost.ots, bytes_sent, rounds, seconds, tells }
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

    fn of(study: &Study, built: &Built, engines: &StudyEngine, rows: [u64; 2]) -> Result<Self, Error> {
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
        let layouts = match (row_source(study), engines.joined()) {
            (RowSource::Owned, _) => Default::default(),
            // The study only matches.
            (RowSource::Joined(_), None) => column_layouts(&built.program, dummies.is_some())?,
            (RowSource::Joined(_), Some(plan)) => {
                let payloads = Payloads::new(built, plan.clone())?;
                [payloads.layout(PartyId(0))?, payloads.layout(PartyId(1))?]
            }
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
        let Cost { and_gates, rounds: round_trips, .. } = self.cost;
        // Chunks are exchanged in lock step, a few on the way at once; some messages wait for each other.
        let seconds = link.seconds(&self.cost).max(work) + self.waits * link.round_trip_s;
        let estimate = Estimate { cost: self.cost.clone(), and_gates, round_trips, seconds };
        PlanStage::of(study, "match", estimate, Vec::new())
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

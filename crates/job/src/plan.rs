//! What a study will cost, and what it could see, before anything is spent.

mod bill;
mod choice;
mod effect;
mod intervals;
mod noise;
mod question;

pub use bill::{Bill, BillTerms, BillTotal, plan_priced};
pub use choice::Choice;
use choice::Choices;
pub use effect::{CellEffect, Halves, OutcomeGuess};
pub use intervals::{ClampEffect, FewLeftOut, IntervalCurve, IntervalPoint, interval_curves, proposed_clamp};
pub(crate) use intervals::{clamp_effects, effect_at};
pub use noise::{DerivedNoise, MechanismNoise};
pub use question::PlanQuestion;
pub(crate) use question::same_rows;

use self::effect::EffectTerms;
use self::noise::noise;
use crate::course::{Actor, Completed, Course, Matched};
use crate::devices::{self, FoundDevice};
use crate::engines::{Estimate, StageTime, StudyEngine};
use crate::memory::{self, MatchNeeds};
use crate::prepare::{Built, OUTPUTS, build_all, place};
use crate::spool::{RowsKnown, SpoolPasses, check_room, goes_to_state, of_parties, passes};
use crate::stages::compute::ComputeStage;
use crate::stages::link::{LinkFacts, LinkStage};
use crate::stages::matching::MatchStage;
use crate::stages::noise::NoiseStage;
use crate::stages::publish::PublishStage;
use crate::stages::release::ReleaseStage;
use crate::stages::upgrade::UpgradeStage;
use crate::stages::{Stage, Tells};
use base::{Cost, Error, PartyId, limits};
use engine::DrawnNoise;
use matching::MatchEstimate;
use matching::group::CurveGroup;
use num_traits::Zero;
use page::numbers::{count, counted, scaled};
use privacy::ledger::PUBLIC;
use privacy::scales::Scales;
use privacy::{PrivacyTotal, dummies};
use program::Viewer;
use release::rational::{Rational, ratio};
use ring4::Security;
use serde::Serialize;
use std::collections::BTreeMap;
use study::party::PartySetup;
use study::transport::{ServerTransport, protects};
use study::{Question, Study, StudyFile};

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
    /// Correlated oblivious transfers of `gmw`, with what is computed from them, per second of a core that
    /// computes: of the party that has more to do, and of the other one.
    pub ots_per_s: [f64; 2],
    /// AND gates of `ring4` per second, of four semi-honest servers and of four of which one may do anything,
    /// all of them on two cores.
    pub ring4_and_per_s: [f64; 2],
    /// Group operations of matching per second and core.
    pub multiplications_per_s: f64,
    /// Rows that one core reads and checks per second, of party 0 and of each other one.
    pub rows_read_per_s: [f64; 2],
    /// Bytes per second that one core reads or writes, sealed, where rows do not fit into memory.
    pub spooled_bytes_per_s: f64,
    /// Cores of each party.
    pub cores: f64,
}

/// `and_per_s` of `tacit bench engines --sizes 1M --json`, semi-honest and malicious: four servers on two
/// cores.
const RING4_ON_TWO_CORES: [f64; 2] = [365e6, 230e6];

/// Transfers of lift rows over TLS per second of processor time: 94 of each row, which takes the advertiser
/// 1.23 microseconds and the publisher 0.86 over TCP, and TLS half of 0.26 at each. What a lane waits while
/// its peer has the turn is not in it: who holds the cores adds that, as of every stage.
const TRANSFERS: [f64; 2] = [94.0 / 1.36e-6, 94.0 / 0.99e-6];

/// Group operations per second and core, of the portable code and with vector instructions for them.
const MULTIPLICATIONS: [f64; 2] = [44e3, 330e3];

/// Rows per second and core of a publisher, and of an advertiser: 1 M people each in Parquet, by the
/// processor time of `tacit check`.
const ROWS_READ: [f64; 2] = [1050e3, 490e3];

/// Bytes of state per second and core: what the same takes longer where `memory` is too little for the rows,
/// over the bytes that `tacit plan` states for its first three passes.
const SPOOLED_BYTES: f64 = 370e6;

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
        let multiplications_per_s = MULTIPLICATIONS[usize::from(CurveGroup::detect().lanes() > 1)];
        Self {
            and_per_s: 45e6,
            ots_per_s: TRANSFERS,
            ring4_and_per_s: RING4_ON_TWO_CORES,
            multiplications_per_s,
            rows_read_per_s: ROWS_READ,
            spooled_bytes_per_s: SPOOLED_BYTES,
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
    /// Waits for an answer; of `compute`, those that nothing else fills, by the slowest worker lane.
    pub rounds: u64,
    /// Estimated seconds.
    pub seconds: f64,
    /// Seconds that one core would compute for all who take part, estimated.
    pub core_seconds: f64,
    /// Where its time goes.
    #[serde(skip)]
    pub(crate) time: StageTime,
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
    /// The same of the cells of breakdowns and cohorts, were all cells of one alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cell_effects: Vec<CellEffect>,
    /// The effect at half the clamp, at the study's, at double and at those that were asked for, of what
    /// everybody sees, else of the publisher's view; of studies of one run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clamp_effects: Vec<ClampEffect>,
    /// What an advertiser's study would detect if hardly anybody had the labels that it leaves out; in `tacit
    /// check` alone, where nobody says the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub few_left_out: Option<FewLeftOut>,
    /// How a program's budget is split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<MechanismNoise>,
    /// How wide the intervals of what a program derives would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub derived_noise: Vec<DerivedNoise>,
    /// What the parties read and write where their rows do not fit into memory, and how much memory that
    /// needs; empty where they fit, or have to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spool: Vec<SpoolPasses>,
    /// What the run costs, where prices are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// What the numbers rest on.
    pub assumptions: BTreeMap<String, String>,
}

/// What is charged for the sizes that a match tells.
fn hidden_sizes(study: &Study) -> Result<Option<(String, String)>, Error> {
    let mut charged = Vec::with_capacity(study.parties.len());
    for (i, member) in study.parties.iter().enumerate() {
        let Some(charge) = dummies::charge(study, PartyId(i as u8))? else { return Ok(None) };
        let rho = release::rational::to_f64(&charge.rho);
        let delta = page::numbers::power(&release::rational::small(&charge.delta));
        charged.push((&member.name, format!("rho {rho} and delta {delta}")));
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
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    /// Rows of party 0, and of each other one.
    pub rows: [u64; 2],
    /// Rows that both of two parties have; none: as many as make the match dearest.
    pub both: Option<u64>,
    /// Outcomes of the control arm; none: no effect is stated.
    pub outcome: Option<OutcomeGuess>,
}

/// Prices a study file: of several runs all, each on these sizes; their stages begin with the advertiser's
/// name.
///
/// # Errors
/// When the study's program is refused, or sizes are out of range.
pub fn plan_file(file: &StudyFile, assumed: &Assumed, link: Link, speeds: Speeds) -> Result<Plan, Error> {
    let built = build_all(&file.runs, &policy())?;
    let runs: Vec<_> = built.iter().map(|(run, built)| (*run, built)).collect();
    plan_runs(&runs, assumed, (link, speeds), Compared::Engines)
}

/// Whether a plan says what other engines would take: they are compiled for it, which takes as long as all
/// the rest.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Compared {
    Engines,
    Nothing,
}

/// The same of all runs of a study, which are built.
///
/// # Errors
/// When sizes are out of range.
pub(crate) fn plan_runs(
    runs: &[(&Study, &Built)],
    assumed: &Assumed,
    prices: (Link, Speeds),
    compared: Compared,
) -> Result<Plan, Error> {
    if let [run] = runs {
        let spool = passes(*run, assumed.rows, None)?;
        return Ok(Plan { spool, ..plan_built(*run, assumed, prices, compared)? });
    }
    let mut whole: Option<Plan> = None;
    for (part, built) in runs {
        let mut plan = plan_built((part, built), assumed, prices, compared)?;
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
                whole.cell_effects.append(&mut plan.cell_effects);
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
    /// The same with the passes of one party alone, within its memory.
    ///
    /// # Errors
    /// When its data cannot be found.
    pub fn of_party(mut self, study: &Study, party: &PartySetup, rows: [u64; 2]) -> Result<Self, Error> {
        self.spool = match (study.part_of, &build_all([study], &policy())?[..]) {
            (None, [built]) => passes((built.0, &built.1), rows, Some((place(study, party), party)))?,
            _ => Vec::new(),
        };
        if let Some(built) = build_all([study], &policy())?.first() {
            let engine = StudyEngine::of(study, &built.1.program)?;
            let device = devices::found(party.device, &party.as_party, study, &engine)?;
            self.assumptions.extend(device.iter().flat_map(FoundDevice::assumptions));
        }
        Ok(self)
    }

    /// Refuses what the party's memory and disks do not hold, before its rows are read.
    ///
    /// # Errors
    /// With the numbers, and what to do.
    pub fn expect_room(&mut self, file: &StudyFile, party: &PartySetup, rows: [u64; 2]) -> Result<(), Error> {
        let runs: Vec<&Study> = file.runs_of(&party.as_party).collect();
        let Some(&study) = runs.first() else { return Ok(()) };
        let (me, all) = (place(study, party), of_parties(study, rows));
        let own = all[me.index()];
        let outside = goes_to_state(party, study, (me, own), runs.len())?;
        let held = if outside { None } else { Some(memory::of_unread(study, me, own)?) };
        for (study, built) in &build_all([study], &policy())? {
            let engine = StudyEngine::of(study, &built.program)?;
            let needs = MatchNeeds::of((*study, built), &engine, (me, party.memory), rows)?;
            if !outside {
                let need = needs.in_all(party, (own, held), runs.len() as u64).div_ceil(1 << 20);
                let text = format!(
                    "about {need} MiB of {} MiB for {}'s rows and the match, all of which stay there; \
                     identifiers of {} bytes",
                    party.memory >> 20,
                    party.as_party,
                    memory::IDENTIFIER
                );
                self.assumptions.insert("memory".into(), text);
            }
            memory::check_held(party, (own, held), (study, runs.len()), &needs)?;
            if outside {
                check_room(party, study, (me, &all), &needs, RowsKnown::Announced)?;
            }
        }
        Ok(())
    }

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
    match &build_all([study], &policy())?[..] {
        [(study, built)] => plan_built((study, built), assumed, (link, speeds), Compared::Engines),
        _ => Err(Error::misuse("one run is built of one")),
    }
}

/// Nobody's: a plan says what a study costs, whoever may run it.
pub(crate) fn policy() -> program::VerifierPolicy {
    program::VerifierPolicy { max_rho: ratio(1000, 1), max_outputs: OUTPUTS, allow_exact: true }
}

fn plan_built(
    (study, built): (&Study, &Built),
    assumed: &Assumed,
    (link, speeds): (Link, Speeds),
    compared: Compared,
) -> Result<Plan, Error> {
    // A worker on each core.
    let open = StudyEngine::of(study, &built.program)?.with_workers((speeds.cores as u32).max(1));
    let stage = MatchStage::new(study, built, &open, assumed.rows)?.with_both(assumed.both)?;
    let dearest = dearest(&stage)?;
    let union = dearest.rows;
    let mut assumptions = assumptions((study, assumed), &dearest, link, speeds);
    assumptions.extend(hidden_sizes(study)?);
    let rows = assumed.rows;
    let half = halved(rows[0]);
    let mut estimator = Estimator { study, union, half, link, speeds, stages: Vec::new() };
    if study.only_matches() {
        estimator.add(&stage)?;
        let rho = study.parties.iter().map(|member| (member.name.clone(), 0.0)).collect();
        return Ok(Plan { stages: estimator.stages, rho, assumptions, ..Plan::default() });
    }
    let course = Course { study, built };
    let Completed { matched: Matched { engines, .. }, scaled, .. } =
        course.run(open.clone(), &stage, (), &mut estimator)?;
    let scales = &scaled.scales;
    let settings = engines.settings();
    let engine = [engines.name(), &settings].into_iter().filter(|text| !text.is_empty());
    assumptions.insert("engine".into(), engine.collect::<Vec<_>>().join(", "));
    if study.matching.matcher.features().public_identifiers {
        assumptions.insert("rows".into(), format!("{}, the same at every party", count(union)));
        assumptions.remove("union");
    }
    let total = totals(study, built, scales)?;
    if !total.is_empty() {
        assumptions.insert("unit".into(), study.unit_words());
    }
    let terms = assumed.outcome.as_ref();
    let terms = terms.map(|outcome| EffectTerms { study, built, scales, arms: half, outcome });
    let ([minimum_detectable_effect, public_effect], not_stated) =
        terms.map(EffectTerms::overall).unwrap_or_default();
    assumptions.extend(not_stated.map(|why| ("effect".to_owned(), why)));
    let cell_effects = terms.map(EffectTerms::all_cells).unwrap_or_default();
    let shared = assumed.both.unwrap_or(rows[0].min(rows[1]));
    let derived_noise = noise::derived(study, &built.program, scales, shared)?;
    assumptions.extend((!derived_noise.is_empty()).then(|| ("values".to_owned(), values(shared))));
    let choices = Choices { course, rows: union, link, speeds, chosen: &engines, stages: &estimator.stages };
    let choices = match compared {
        Compared::Engines => choices.of(&open, scaled.clone())?,
        Compared::Nothing => Vec::new(),
    };
    Ok(Plan {
        engines: choices,
        rho: spent(study, scales),
        noise: noise(study, &built.program, scales),
        derived_noise,
        total,
        minimum_detectable_effect,
        public_effect,
        cell_effects,
        stages: estimator.stages,
        assumptions,
        ..Plan::default()
    })
}

/// The size of the dearest match of such rows.
///
/// # Errors
/// When they are more than a study may have.
fn dearest(stage: &MatchStage<'_>) -> Result<MatchEstimate, Error> {
    let dearest = stage.dearest()?;
    match dearest.rows > limits::ROWS {
        true => Err(Error::limit("limits::ROWS, rows of both sides", dearest.rows, limits::ROWS)),
        false => Ok(dearest),
    }
}

/// Rows of the two arms of the publisher.
fn halved(rows: u64) -> [u64; 2] {
    [rows / 2, rows - rows / 2]
}

/// Goes through the stages of a run and adds up what they cost.
struct Estimator<'a> {
    study: &'a Study,
    /// Joined rows.
    union: u64,
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
    type Workers = ();
    type Totals = ();
    type Views = ();

    fn link(&mut self, stage: &LinkStage) -> Result<LinkFacts, Error> {
        self.add(stage)?;
        Ok(LinkFacts { link: self.link, speeds: self.speeds })
    }

    fn join_rows(&mut self, stage: &MatchStage<'_>) -> Result<((), u64), Error> {
        self.add(stage)?;
        Ok(((), self.union))
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
            totals.insert(
                member.name.clone(),
                PrivacyTotal::of_view(study, viewer, &scales.seen_by(viewer), 1)?,
            );
        }
    }
    Ok(totals)
}

/// What the noise of what a program derives is stated for.
fn values(rows: u64) -> String {
    format!(
        "{} rows count, alike in all groups, and no value depends on another. Even: values lie evenly over \
         their ranges, and half of the bits are yes. Low: most values lie at the lower end, a tenth of the \
         range above it in the mean, and a tenth of the bits are yes. Rare: one row of a hundred has such a \
         value, the others the lower end, and one of a hundred bits is yes (what few people buy). The noise \
         of a correlation hangs on that most of all",
        count(rows)
    )
}

/// How many rows each party has, by name.
fn rows_of(study: &Study, [first, others]: [u64; 2]) -> String {
    let parties: Vec<&str> = study.parties.iter().map(|party| party.name.as_str()).collect();
    let half = if matches!(study.kind, Question::Lift(_)) { ", half in each arm," } else { "" };
    let (first, others) = (count(first), count(others));
    match parties[..] {
        [one, other] => format!("{first} rows of {one}{half} and {others} of {other}"),
        [one, ..] => format!("{first} rows of {one}{half} and {others} of each other party"),
        [] => format!("{first} and {others}"),
    }
}

fn assumptions(
    (study, assumed): (&Study, &Assumed),
    dearest: &MatchEstimate,
    link: Link,
    speeds: Speeds,
) -> BTreeMap<String, String> {
    let mean = |outcome: &OutcomeGuess| {
        let mean = page::numbers::short(outcome.mean, 4);
        ("mean_outcome".to_owned(), format!("{mean}, {}", outcome.source))
    };
    let time = "of what all parties do together; reading, and rows in `state`, come before it: --prices FILE \
                counts them";
    let mut all = BTreeMap::from([
        ("time".into(), time.into()),
        ("rows".into(), rows_of(study, assumed.rows)),
        ("union".into(), format!("{}: {}", count(dearest.rows), dearest.why)),
        ("arms".into(), "of equal size, all rows of the publisher".into()),
        ("power".into(), "0.8".into()),
        ("link".into(), format!("{} bit/s, {} s round trip", link.bits_per_s, link.round_trip_s)),
        (
            "speed".into(),
            format!(
                "{} AND/s (yao), {} and {} OT/s (gmw), {} or malicious {} AND/s (ring4), {} group \
                 operations/s{}, \
                 {} of each party, a worker on each",
                scaled(speeds.and_per_s),
                scaled(speeds.ots_per_s[0]),
                scaled(speeds.ots_per_s[1]),
                scaled(speeds.ring4(Security::SemiHonest)),
                scaled(speeds.ring4(Security::Malicious)),
                scaled(speeds.multiplications_per_s),
                portable(speeds),
                counted(speeds.cores as u64, "core")
            ),
        ),
    ]);
    all.extend(assumed.outcome.as_ref().map(mean));
    all
}

/// Whether group operations are those of a machine without vector instructions for them: elsewhere a match
/// is several times as fast.
fn portable(speeds: Speeds) -> String {
    let [slow, fast] = MULTIPLICATIONS;
    match speeds.multiplications_per_s <= slow {
        true => format!(" (the portable code; {} with AVX-512 IFMA)", scaled(fast)),
        false => String::new(),
    }
}

impl PlanStage {
    fn new(study: &Study, stage: &impl Stage, link: Link, speeds: Speeds) -> Result<Self, Error> {
        let estimate = stage.estimate(link, speeds)?;
        let seconds = estimate.seconds();
        let Estimate { cost, and_gates, round_trips: rounds, core_s: core_seconds, time } = estimate;
        let names = study.everybody().into_iter().map(|(name, _)| name.to_owned());
        let bytes_sent = names.zip(cost.sent).collect();
        let (name, tells) = (stage.name().to_owned(), stage.tells());
        let ots = cost.ots;
        Ok(Self { name, and_gates, ots, bytes_sent, rounds, seconds, core_seconds, time, tells })
    }
}

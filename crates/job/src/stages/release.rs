//! The releases, as owners and servers run them. Its units are the viewers: the parties, and the public where
//! it sees anything.
//!
//! With noise that is drawn inside, a release is held, paid for and opened ([`privacy::hold`]); between two
//! parties it may be of candidates ([`privacy::cut_and_choose`]); without noise it is opened at once. Lists
//! come after the release to their viewer.

use super::{Stage, Tells};
use crate::engines::{Estimate, StageTime, StudyEngine};
use crate::plan::{Link, Speeds};
use crate::prepare::Built;
use crate::run::agree::number_id;
use crate::run::payment::Payment;
use base::{Cost, Error, PartyId};
use engine::{DrawnNoise, Engine, Entered, PreparedLists, PreparedRelease, Shares, outputs};
use net::Session;
use page::numbers::counted;
use privacy::cut_and_choose::{self, CandidateNoise};
use privacy::hold::{self, ReleaseOutcome, StepsRun};
use privacy::ledger::{Bytes32, Ledger};
use privacy::scales::Scales;
use program::Viewer;
use program::lower::{Depth, Draws, ReleasePlan, TotalsForm};
use std::sync::{Arc, Mutex, OnceLock};
use study::{NoiseFrom, Study};

/// The releases to all viewers of a study, once scales and rows are known.
pub(crate) struct ReleaseStage<'a> {
    study: &'a Study,
    built: &'a Built,
    scales: &'a Scales,
    rows: u64,
    units: Vec<ReleaseUnit>,
}

/// What one viewer sees.
pub(crate) struct ReleaseUnit {
    pub viewer: Viewer,
    /// The release of outputs; none where it sees lists alone, or nothing.
    outputs: Option<Box<dyn PreparedRelease>>,
    /// Which rows are listed to it; none where none are.
    lists: Option<Box<dyn PreparedLists>>,
}

/// What came of one unit.
pub(crate) struct Released {
    /// At those who see them, bit patterns in the order of the plan's outputs.
    pub values: Vec<u128>,
    /// At the viewer, one packed bit per row for each of its lists.
    pub lists: Vec<Vec<u64>>,
    /// How far the release went; all the way where it held nothing.
    pub ran: StepsRun,
    /// Which number of the release it is, from 0; none where nothing is held.
    pub attempt: Option<u32>,
    /// Servers whose share of an output was not what the others' say.
    pub benders: Vec<PartyId>,
}

/// Where a participant of a release keeps its share, and what it pays.
pub(crate) struct ReleaseHolder<'a> {
    pub ledger: &'a Mutex<Ledger>,
    /// What all know as study and data.
    pub common: &'a Bytes32,
    /// None at a server, which pays nothing.
    pub payment: Option<&'a Payment<'a>>,
}

/// Whether anything is revealed to a viewer, lists aside.
pub(crate) fn sees(built: &Built, viewer: Viewer) -> bool {
    built.program.outputs_to(viewer).next().is_some()
}

/// The scales of all noise, and the releases that an engine lowers with them: once, for what is drawn before
/// and for what is released.
#[derive(Clone)]
pub(crate) struct ScaledReleases {
    pub scales: Arc<Scales>,
    /// Of all viewers who see any output.
    pub plans: Vec<Arc<ReleasePlan>>,
    form: ReleaseForm,
    /// What is drawn before, once it was asked for.
    draws: Arc<OnceLock<Arc<Draws>>>,
}

/// What of an engine its releases are lowered for.
type ReleaseForm = (TotalsForm, Depth);

impl ScaledReleases {
    /// Lowers the releases of a study.
    ///
    /// # Errors
    /// When a noise does not fit the type it is added in.
    pub fn new(engines: &StudyEngine, built: &Built, scales: Arc<Scales>) -> Result<Self, Error> {
        let (engine, owners) = (engines.engine(), built.program.fold_owners());
        let seen = built.program.viewers().filter(|viewer| sees(built, *viewer));
        let plan = |viewer| scales.plan(&*engine, &built.program, &owners, viewer).map(Arc::new);
        let plans = seen.map(plan).collect::<Result<_, _>>()?;
        let form = Self::form(engines, built);
        Ok(Self { scales, plans, form, draws: Arc::default() })
    }

    fn form(engines: &StudyEngine, built: &Built) -> ReleaseForm {
        let engine = engines.engine();
        (engine.totals(), engine.release_depth(built.program.parties.len()))
    }

    /// Whether they are lowered as they would be for this engine.
    pub fn serve(&self, engines: &StudyEngine, built: &Built) -> bool {
        self.form == Self::form(engines, built)
    }

    /// What the engine that they are lowered for draws before the rows.
    pub fn draws(&self, engine: &dyn Engine) -> &Arc<Draws> {
        self.draws.get_or_init(|| Arc::new(self.scales.draws(engine, &self.plans)))
    }
}

impl ReleaseUnit {
    /// What is released; none where the viewer sees lists alone, or nothing.
    pub fn plan(&self) -> Option<&ReleasePlan> {
        self.outputs.as_ref().map(|outputs| outputs.plan())
    }

    /// The step of its messages.
    pub fn step(&self) -> String {
        self.viewer.only().map_or_else(|| "release/public".to_owned(), |party| format!("release/{}", party.0))
    }
}

impl<'a> ReleaseStage<'a> {
    /// Plans the releases of a study over so many rows.
    ///
    /// # Errors
    /// What the engine cannot release.
    pub fn new(
        (study, built): (&'a Study, &'a Built),
        engines: &StudyEngine,
        ScaledReleases { scales, plans, .. }: &'a ScaledReleases,
        rows: u64,
    ) -> Result<Self, Error> {
        let engine = engines.engine();
        let mut units = Vec::new();
        for viewer in built.program.viewers() {
            let plan = plans.iter().find(|plan| plan.viewer == viewer);
            let outputs = plan.map(|plan| engine.release(plan)).transpose()?;
            let listed = viewer.only().filter(|to| built.program.lists.iter().any(|list| list.to == *to));
            let lists = listed.map(|to| engine.lists(&built.program, to)).transpose()?;
            if outputs.is_some() || viewer != Viewer::Public {
                units.push(ReleaseUnit { viewer, outputs, lists });
            }
        }
        Ok(Self { study, built, scales, rows, units })
    }

    pub fn scales(&self) -> &'a Scales {
        self.scales
    }

    pub fn units(&self) -> &[ReleaseUnit] {
        &self.units
    }

    /// Runs one unit.
    ///
    /// # Errors
    /// Those of the ledger, of the engine and of the conversation.
    pub fn run(
        &self,
        unit: &ReleaseUnit,
        noise: &mut DrawnNoise,
        totals: &Shares,
        holder: &ReleaseHolder<'_>,
        session: &mut Session,
    ) -> Result<Released, Error> {
        let mut released = match &unit.outputs {
            Some(outputs) => self.outputs(unit, (&**outputs, noise), totals, holder, session)?,
            None => Released::of(Vec::new()),
        };
        if let Some(lists) = &unit.lists {
            released.lists = session.step(&unit.step(), |s| lists.run(self.rows, totals, s))?;
        }
        Ok(released)
    }

    fn outputs(
        &self,
        unit: &ReleaseUnit,
        (outputs, drawn): (&dyn PreparedRelease, &mut DrawnNoise),
        totals: &Shares,
        holder: &ReleaseHolder<'_>,
        session: &mut Session,
    ) -> Result<Released, Error> {
        let (step, plan) = (unit.step(), outputs.plan());
        if !plan.is_noised() {
            let values = session.step(&step, |s| outputs::exact(outputs, totals, s))?;
            return Ok(Released::of(values.unwrap_or_default()));
        }
        if let (NoiseFrom::CutAndChoose(candidates), Some(_)) = (self.study.noise(), plan.viewer.only()) {
            let payment = holder.payment;
            let payment = payment.ok_or_else(|| Error::misuse("servers take no part in cut-and-choose"))?;
            let noise = payment.candidates(plan, self.scales, candidates, session)?;
            return session.step(&step, |s| noise.run(outputs, totals, s)).map(Released::of);
        }
        let id = number_id(holder.common, plan.viewer);
        let release = hold::HeldRelease {
            plan,
            common: blake3::derive_key("tacit released number 1", &[id, plan.digest()].concat()),
            id,
            law: self.scales.law(plan.viewer),
            holders: outputs.holders().to_vec(),
            ledger: holder.ledger,
            owner: holder.payment.map(|payment| payment.number(plan, self.scales)).transpose()?,
        };
        let ReleaseOutcome { values, attempt, ran, benders } = session.step(&step, |session| {
            release.run(session, |session| {
                let mut coins = session.fork_seed("coins").into_rng();
                let entered = Entered::new(plan, totals, session.me(), &mut coins)?;
                outputs.run(&entered, drawn, session)
            })
        })?;
        let values = values.unwrap_or_default();
        Ok(Released { values, lists: Vec::new(), ran, attempt: Some(attempt), benders })
    }

    /// What one unit costs as far as it is run: outputs with the messages around them, and lists.
    fn price_unit(&self, unit: &ReleaseUnit, ran: StepsRun) -> Result<Cost, Error> {
        let mut cost = Cost::zero(self.study.roster().len());
        if let Some(outputs) = &unit.outputs {
            cost += &self.price_outputs(&**outputs, ran)?;
        }
        if let Some(lists) = &unit.lists {
            cost += &lists.price(self.rows).cost;
        }
        Ok(cost)
    }

    fn price_outputs(&self, outputs: &dyn PreparedRelease, ran: StepsRun) -> Result<Cost, Error> {
        let plan = outputs.plan();
        if !plan.is_noised() {
            return Ok(outputs::price_exact(outputs));
        }
        let around = match self.study.noise() {
            NoiseFrom::Inside => hold::price(plan, outputs.holders(), self.study.roster().len(), ran),
            NoiseFrom::CutAndChoose(candidates) => {
                let viewer = plan.viewer.only().unwrap_or(PartyId(0));
                let draws = self.scales.candidates(plan);
                CandidateNoise::price(&cut_and_choose::setup_for_price(draws, viewer, candidates)?, plan)
            }
        };
        Ok(if ran == StepsRun::Whole { outputs.price().cost + around } else { around })
    }
}

impl Stage for ReleaseStage<'_> {
    /// How far each unit was run.
    type Sizes = [StepsRun];

    fn name(&self) -> &'static str {
        "release"
    }

    fn items(&self) -> u64 {
        (self.built.program.outputs.len() + self.built.program.lists.len()) as u64
    }

    fn price(&self, ran: &[StepsRun]) -> Result<Cost, Error> {
        let mut cost = Cost::zero(self.study.roster().len());
        for (unit, ran) in self.units.iter().zip(ran) {
            cost += &self.price_unit(unit, *ran)?;
        }
        Ok(cost)
    }

    fn estimate(&self, link: Link, speeds: Speeds) -> Result<Estimate, Error> {
        let (mut cost, mut and_gates, mut round_trips) = (Cost::zero(self.study.roster().len()), 0, 0);
        for unit in &self.units {
            let all = self.price_unit(unit, StepsRun::Whole)?;
            round_trips += all.rounds;
            if let Some(outputs) = &unit.outputs {
                let own = outputs.price();
                and_gates += own.and_gates;
                round_trips = round_trips.saturating_sub(own.cost.rounds) + own.trips.div_ceil(2);
            }
            cost += &all;
        }
        let work = cost.and_gates as f64 / speeds.and_per_s;
        let time = StageTime {
            computing_s: work,
            sending_s: link.seconds(&cost),
            waiting_s: round_trips as f64 * link.round_trip_s,
        };
        // By a pair of cores.
        Ok(Estimate { cost, and_gates, round_trips, core_s: 2.0 * work, time })
    }

    fn tells(&self) -> Vec<Tells> {
        let mut tells = Vec::new();
        for unit in &self.units {
            let of = |what: String| match unit.viewer.only() {
                Some(party) => Tells { to: self.study.parties[party.index()].name.clone(), what },
                None => Tells::everybody(what),
            };
            if let Some(plan) = unit.plan() {
                let how = if plan.is_noised() { "noised" } else { "exact" };
                let outputs = self.built.program.outputs_to(unit.viewer).count();
                tells.push(of(format!("{}, {how}", counted(outputs as u64, "output"))));
            }
            if unit.lists.is_some() {
                tells.push(of("which rows are on its lists".to_owned()));
            }
        }
        tells
    }
}

impl Released {
    /// What is released without being held.
    fn of(values: Vec<u128>) -> Self {
        Self { values, lists: Vec::new(), ran: StepsRun::Whole, attempt: None, benders: Vec::new() }
    }
}

//! The aggregator: the release to every viewer, as owners and servers run it.
//!
//! A release goes to one party or to all. With noise that is drawn inside it is held, paid for and opened
//! ([`privacy::hold`]); between two parties it may be of candidates ([`privacy::cut_and_choose`]); without
//! noise it is opened at once. Lists come after the release to their viewer.

use super::agree::{Agreement, number_id};
use super::matched::Placed;
use super::{BROKEN_OFF, Coordinator, Event};
use crate::interpret;
use crate::prepare::{Built, Checked};
use base::{Cost, Error, PartyId};
use engine::{Engine, Entered, Shares, outputs};
use net::Session;
use privacy::cut_and_choose::{self, CandidateNoise};
use privacy::hold::{self, StepsRun};
use privacy::ledger::{Bytes32, Debit, Ledger, PUBLIC, attempt_id};
use privacy::scales::Scales;
use program::Viewer;
use program::lower::ReleasePlan;
use release::choose::{CutAndChooseSide, NoiseContext, Setup};
use report::{Disclosure, ResultView};
use std::sync::Mutex;
use std::time::Instant;
use study::{NoiseFrom, Study};

/// What a party saw in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    /// What it alone sees; none where nothing is for it alone.
    pub own: Option<ResultView>,
    /// What everybody sees.
    pub public: Option<ResultView>,
    /// Which number of its release each was, from 0, and who bent it.
    pub attempts: Vec<u32>,
    /// Servers whose share of an output was not what the others' say.
    pub benders: Vec<PartyId>,
}

/// The step of a release.
pub(super) fn step(viewer: Viewer) -> String {
    viewer.only().map_or_else(|| "release/public".to_owned(), |party| format!("release/{}", party.0))
}

/// The parties, and the public where it sees anything.
pub(super) fn viewers(built: &Built) -> Vec<Viewer> {
    built.program.viewers().filter(|viewer| *viewer != Viewer::Public || sees(built, *viewer)).collect()
}

/// Whether anything is revealed to a viewer, lists aside.
pub(crate) fn sees(built: &Built, viewer: Viewer) -> bool {
    built.program.outputs_to(viewer).next().is_some()
}

/// What a release to a viewer costs, with the messages around it, as far as it is run.
///
/// # Errors
/// When the noise is out of range.
pub(crate) fn price(
    study: &Study,
    engine: &dyn Engine,
    scales: &Scales,
    plan: &ReleasePlan,
    ran: StepsRun,
) -> Result<Cost, Error> {
    let participants = study.roster().len();
    let holders = engine.holders(plan.parties);
    if !plan.is_noised() {
        return Ok(outputs::price_exact(engine, plan));
    }
    let around = match study.noise() {
        NoiseFrom::Inside => {
            let around = hold::price(plan, &holders, participants, ran);
            return Ok(if ran == StepsRun::Whole { engine.price_release(plan) + around } else { around });
        }
        NoiseFrom::CutAndChoose(candidates) => {
            let viewer = plan.viewer.only().unwrap_or(PartyId(0));
            let setup = cut_and_choose::setup_for_price(scales.candidates(plan), viewer, candidates)?;
            CandidateNoise::price(&setup, plan)
        }
    };
    Ok(engine.price_release(plan) + around)
}

/// The releases of all viewers.
///
/// # Errors
/// When a noise does not fit the type it is added in.
pub(crate) fn plans(engine: &dyn Engine, built: &Built, scales: &Scales) -> Result<Vec<ReleasePlan>, Error> {
    let owners = built.program.fold_owners();
    let seen = built.program.viewers().filter(|viewer| sees(built, *viewer));
    seen.map(|viewer| scales.plan(engine, &built.program, &owners, viewer)).collect()
}

/// A release that is held, at an owner or a server.
pub(super) struct Holding<'a> {
    pub ledger: &'a Mutex<Ledger>,
    /// What all know as study and data.
    pub common: &'a Bytes32,
    /// By what noise it is drawn and read.
    pub law: Bytes32,
    /// What this party is charged, and signs; none at a server.
    pub owner: Option<hold::OwnerPayment<'a>>,
}

/// Runs one release whose noise is drawn inside.
pub(super) fn held(
    session: &mut Session,
    engine: &mut dyn Engine,
    plan: &ReleasePlan,
    totals: &Shares,
    holding: Holding<'_>,
) -> Result<hold::ReleaseOutcome, Error> {
    let Holding { ledger, common, law, owner } = holding;
    let id = number_id(common, plan.viewer);
    let all = blake3::derive_key("tacit released number 1", &[id, plan.digest()].concat());
    let holders = engine.holders(plan.parties);
    let release = hold::HeldRelease { plan, common: all, id, law, holders, ledger, owner };
    session.step(&step(plan.viewer), |session| {
        release.run(session, |session| {
            let mut coins = session.fork_seed("coins").into_rng();
            let entered = Entered::new(plan, totals, session.me(), &mut coins)?;
            engine.release(plan, &entered, session)
        })
    })
}

impl Coordinator<'_> {
    /// One release per viewer. Returns what this party saw.
    pub(super) fn release(
        &mut self,
        totals: &Shares,
        rows: &Placed,
        scales: &Scales,
        agreement: &Agreement,
        (disclosed, start): (&Disclosure, Instant),
    ) -> Result<Views, Error> {
        let owners = self.checked.built.program.fold_owners();
        let (mut seen, mut price) = (Views::default(), Cost::zero(self.checked.study.roster().len()));
        let revealed = self.checked.built.program.outputs.len() + self.checked.built.program.lists.len();
        self.stages.begin("release", revealed as u64);
        // At servers the one that has drawn the noise.
        let mut drawn = self.servers.take();
        for viewer in viewers(&self.checked.built) {
            let mut fresh = self.checked.engines.make();
            let engine: &mut dyn Engine = drawn.as_deref_mut().unwrap_or(&mut *fresh);
            let plan = scales.plan(engine, &self.checked.built.program, &owners, viewer)?;
            let mut values = Vec::new();
            if sees(&self.checked.built, viewer) {
                let ran;
                (values, ran) = self.one((&mut *engine, &plan), totals, scales, agreement, &mut seen)?;
                price += &self::price(&self.checked.study, engine, scales, &plan, ran)?;
            }
            let lists = match viewer.only() {
                Some(party) => self.lists(&step(viewer), party, totals, rows.count(), &mut price)?,
                None => Vec::new(),
            };
            let Checked { study, built, me, .. } = &self.checked;
            // Who sees nothing has an empty view of its own, unless there is one for all.
            let anything = sees(built, viewer) || !lists.is_empty() || !sees(built, Viewer::Public);
            if viewer.has(*me) && anything {
                let shown =
                    interpret::Seen { plan: &plan, values: &values, lists: &lists, aligned: rows.aligned() };
                let view = interpret::view(study, built, scales, &shown)?;
                match viewer {
                    Viewer::Party(_) => seen.own = Some(view),
                    Viewer::Public => seen.public = Some(view),
                }
                if viewer.only().is_some_and(|party| party.index() + 1 < self.checked.roster.len()) {
                    self.keep_answer(seen.clone(), disclosed.clone(), scales, start)?;
                    self.unkept = agreement.stored.is_none().then_some(agreement.answer);
                }
            }
        }
        self.stages.end(self.session.ledger(), "release", revealed as u64, price);
        Ok(seen)
    }

    /// The values of one release, where this party sees them.
    fn one(
        &mut self,
        (engine, plan): (&mut dyn Engine, &ReleasePlan),
        totals: &Shares,
        scales: &Scales,
        agreement: &Agreement,
        seen: &mut Views,
    ) -> Result<(Vec<u128>, StepsRun), Error> {
        let name = step(plan.viewer);
        if !plan.is_noised() {
            let values = self.session.step(&name, |s| outputs::exact(engine, plan, totals, s))?;
            return Ok((values.unwrap_or_default(), StepsRun::Whole));
        }
        let charge = scales.charge(plan.viewer).clone();
        if let (NoiseFrom::CutAndChoose(candidates), Some(viewer)) =
            (self.checked.study.noise(), plan.viewer.only())
        {
            let setup = self.setup(viewer, (scales.candidates(plan), candidates as usize), agreement)?;
            let noise = self.noise(setup, viewer, charge, agreement)?;
            let values = self.session.step(&name, |s| noise.run(engine, plan, totals, s))?;
            return Ok((values, StepsRun::Whole));
        }
        let debit =
            Debit { tau: scales.distance(plan), ..self.number_debit(plan.viewer, charge, agreement)? };
        let keys = self.checked.study.parties.iter().map(|member| member.key.clone()).collect();
        let owner = Some(hold::OwnerPayment { debit, identity: &self.checked.identity, keys });
        let (common, law) = (&agreement.common, scales.law(plan.viewer));
        let holding = Holding { ledger: &self.ledger, common, law, owner };
        let outcome = held(&mut self.session, engine, plan, totals, holding)?;
        seen.attempts.push(outcome.attempt);
        seen.benders.extend(outcome.benders);
        Ok((outcome.values.unwrap_or_default(), outcome.ran))
    }

    /// This party's own answer is complete, and nothing that the others do takes it away: it is handed on
    /// before their releases begin.
    fn keep_answer(
        &mut self,
        seen: Views,
        disclosed: Disclosure,
        scales: &Scales,
        start: Instant,
    ) -> Result<(), Error> {
        if self.answer.is_none() && seen.own.is_some() {
            let mut report = self.report(seen, disclosed, scales, start)?;
            report.warnings.push(BROKEN_OFF.into());
            (self.watch.events)(Event::Answer { with: None, report: Box::new(report.clone()) });
            self.answer = Some(report);
        }
        Ok(())
    }

    /// Which rows matched, for one viewer.
    fn lists(
        &mut self,
        name: &str,
        viewer: PartyId,
        totals: &Shares,
        rows: u64,
        price: &mut Cost,
    ) -> Result<Vec<Vec<u64>>, Error> {
        if !self.checked.built.program.lists.iter().any(|list| list.to == viewer) {
            return Ok(Vec::new());
        }
        let mut engine = self.checked.engines.make();
        let program = &self.checked.built.program;
        *price += &engine.price_lists(program, rows, viewer);
        self.session.step(name, |s| engine.lists(program, rows, viewer, totals, s))
    }

    fn setup(
        &self,
        viewer: PartyId,
        (draws, candidates): (Vec<release::choose::Draw>, usize),
        agreement: &Agreement,
    ) -> Result<Setup, Error> {
        let release = agreement.release_id(viewer);
        let context = NoiseContext {
            study: *self.checked.hash.as_bytes(),
            release,
            // One attempt of a release is one session: a resumed run continues the same transcript.
            session: attempt_id(&release, agreement.attempts[viewer.index()]),
            data: agreement.tags.to_vec(),
            viewer,
            drawer: viewer.other(),
        };
        cut_and_choose::setup(context, draws, candidates)
    }

    fn noise(
        &mut self,
        setup: Setup,
        viewer: PartyId,
        charge: release::Rational,
        agreement: &Agreement,
    ) -> Result<CandidateNoise, Error> {
        let debit = self.debit(viewer, charge, agreement)?;
        let side = if debit.protects { CutAndChooseSide::Drawer } else { CutAndChooseSide::Checker };
        let rng = self.session.fork_seed("noise").into_rng();
        Ok(CandidateNoise::new(side, setup, self.ledger.clone(), debit, rng))
    }

    /// What this party's ledger books for a viewer's release of candidates.
    pub(super) fn debit(
        &self,
        viewer: PartyId,
        rho: release::Rational,
        agreement: &Agreement,
    ) -> Result<Debit, Error> {
        let release_id = agreement.release_id(viewer);
        Ok(Debit { release_id, ..self.number_debit(viewer.into(), rho, agreement)? })
    }

    /// What this party's ledger books for a release whose noise is drawn inside: towards all others who see
    /// it.
    pub(super) fn number_debit(
        &self,
        viewer: Viewer,
        rho: release::Rational,
        agreement: &Agreement,
    ) -> Result<Debit, Error> {
        let (me, parties) = (self.checked.me, &self.checked.study.parties);
        let others: Vec<&str> =
            self.checked.roster.parties().filter(|p| *p != me).map(|p| &*parties[p.index()].key).collect();
        let viewers = match viewer.only() {
            Some(party) => parties[party.index()].key.clone(),
            None => [&others[..], &[PUBLIC]].concat().join(" "),
        };
        Ok(Debit {
            lineage: self.party.lineage()?.to_owned(),
            viewer_key: viewers,
            peer_key: others.join(" "),
            study: *self.checked.hash.as_bytes(),
            my_tag: agreement.tags[me.index()],
            peer_tag: agreement.answer.peer_tag,
            release_id: agreement.number_id(viewer),
            rho,
            budget: self.party.policy.budget.clone(),
            total: self.total(),
            period: self.party.policy.period(),
            delta: num_traits::Zero::zero(),
            most_delta: num_traits::Zero::zero(),
            tau: num_traits::Zero::zero(),
            protects: viewer.only() != Some(me),
        })
    }
}

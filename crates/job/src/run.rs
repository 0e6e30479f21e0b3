//! A job from end to end: coordinator, workers, aggregator (000 section 2.4, figure 2).
//!
//! The coordinator meets the peer, agrees, matches and deals the spine round-robin to shards. Every shard is a worker
//! on a thread and a connection of its own; what it hands back is additive shares. The aggregator adds this party's
//! shares and runs, for each viewer, the release in which both parties' shares are put together inside the computation.

mod agree;
mod stages;

use crate::align::{Aligned, Shard};
use crate::ceremony::{self, Noise};
use crate::ledger::{Debit, Ledger, rational};
use crate::party::{Address, Party};
use crate::prepare::{self, Built, Checked};
use crate::report::{Disclosed, Report, Stage, View};
use crate::scales::{Scales, most_charged};
use crate::study::{Engine as Choice, Kind};
use crate::{compose, interpret};
use agree::{Agreement, agree};
use base::{Cost, Error, PartyId, Seed};
use engine::{Engine, NoNoise, Shares};
use matching::pid;
use net::connect::{Endpoint, Meet, Meeting, Status, Transport};
use net::identity::{Fingerprint, Identity};
use net::{Channels, Ledger as Said, Progress, Session};
use release::choose::{Context, Setup, Side};
use stages::Stages;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use yao::Yao;

pub use crate::prepare::check;

/// What a job is doing, for whoever watches.
#[derive(Clone, Debug)]
pub enum Event {
    /// Waits for the peer; a line to print.
    Waiting(String),
    /// The peer is there and has proven its key.
    Connected {
        /// The peer's name.
        peer: String,
    },
    /// A stage begins.
    Stage {
        /// `match`, `compute` or `release`.
        name: String,
        /// Rows that it will handle, as far as known.
        rows: u64,
    },
    /// A stage is over.
    StageDone(Stage),
    /// The stored answer of an earlier run is returned.
    Stored,
}

/// Who watches a job.
#[derive(Clone)]
pub struct Watch {
    /// Rows done, by step.
    pub progress: Progress,
    /// What happens.
    pub events: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Watch {
    /// Nobody watches.
    #[must_use]
    pub fn none() -> Self {
        Self { progress: Progress::none(), events: Arc::new(|_| ()) }
    }
}

/// Runs this party's half of a study and returns its report. The report is also in the ledger before this returns.
///
/// # Errors
/// Input, policy, budget, network or a deviating peer; see `docs/errors.md`.
pub fn run(party: &Party, watch: &Watch) -> Result<Report, Error> {
    let checked = prepare::check(party)?;
    checked.study.refuse_clear()?;
    let ledger = Ledger::open(&party.ledger)?;
    let tag = ledger.data_tag(&checked.data)?;
    let meeting = meet(party, &checked, watch)?;
    (watch.events)(Event::Connected { peer: checked.roster.name(checked.me.other()) });
    Coordinator::new(party, checked, ledger, watch, meeting)?.run(tag)
}

fn meet(party: &Party, checked: &Checked, watch: &Watch) -> Result<Meeting, Error> {
    let keys: Result<Vec<Fingerprint>, Error> = checked.study.parties.iter().map(|m| m.key.parse()).collect();
    let identity = Arc::new(Identity::load(&party.identity)?);
    let endpoint = match &party.address {
        Address::Listen(at) => Endpoint::Listen(at.clone()),
        Address::Peer(at) => Endpoint::Dial(at.clone()),
    };
    let events = watch.events.clone();
    let transport = Transport::Tls { identity, keys: keys? };
    Meet::new(checked.me, checked.roster.clone(), endpoint, transport, *checked.hash.as_bytes())
        .patience(Duration::from_millis(party.deadline_ms))
        .deadline(Duration::from_millis(party.deadline_ms))
        .watch(move |status: &Status| events(Event::Waiting(status.to_string())))
        .meet(checked.study.compute.shards)
}

/// One party's coordinator and, on its control session, its aggregator.
struct Coordinator<'a> {
    party: &'a Party,
    checked: Checked,
    ledger: Arc<Mutex<Ledger>>,
    watch: &'a Watch,
    session: Session,
    workers: Vec<Channels>,
    engine: fn() -> Box<dyn Engine>,
    stages: Stages,
}

fn yao() -> Box<dyn Engine> {
    Box::new(Yao::default())
}

impl<'a> Coordinator<'a> {
    fn new(
        party: &'a Party,
        checked: Checked,
        ledger: Ledger,
        watch: &'a Watch,
        meeting: Meeting,
    ) -> Result<Self, Error> {
        let session = Session::new(checked.me, checked.roster.clone(), meeting.control, Seed::from_system())
            .with_progress(watch.progress.clone());
        let engine = match checked.study.compute.engine {
            Choice::Auto | Choice::Yao => yao,
            Choice::Clear => return Err(Error::misuse("the clear engine never meets a network")),
        };
        let stages = Stages::new(checked.me, watch.events.clone());
        let ledger = Arc::new(Mutex::new(ledger));
        Ok(Self { party, checked, ledger, watch, session, workers: meeting.workers, engine, stages })
    }

    fn run(mut self, tag: [u8; 32]) -> Result<Report, Error> {
        let agreement = agree(&mut self.session, &self.checked, &self.ledger, tag)?;
        if let (Some(stored), true) = (agreement.stored.as_deref(), agreement.both_stored) {
            (self.watch.events)(Event::Stored);
            self.session.finish()?;
            return compose::stored(stored);
        }
        self.ready(&agreement)?;
        let start = Instant::now();
        let (aligned, disclosed) = self.match_rows()?;
        let totals = self.compute(Arc::new(aligned))?;
        let groups = self.publish(&totals, &disclosed)?;
        let disclosed = Disclosed { published_groups: groups, ..disclosed };
        let scales = {
            let Built { program, audit, .. } = &self.checked.built;
            Scales::new(&self.checked.study, program, audit, groups)?
        };
        let view = self.release(&totals, &scales, &agreement)?;
        // A run that broke off after this side had its answer ends with that answer: there is one per study and data.
        let report = match agreement.stored.as_deref() {
            Some(stored) => compose::stored(stored)?,
            None => {
                let report = self.report(view, disclosed, &scales, start)?;
                self.lock()?.store_answer(&agreement.answer, &compose::to_json(&report)?)?;
                report
            }
        };
        self.session.step("done", |s| {
            let peer = s.me().other();
            s.link(peer).exchange(&[1], &mut [0])
        })?;
        self.session.finish()?;
        Ok(report)
    }

    fn lock(&self) -> Result<std::sync::MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("another thread panicked while it held the ledger"))
    }

    /// Both sides say whether their ledgers allow both releases, before anything is disclosed: matching tells exact
    /// sizes, which a run that is refused later would have given away for nothing.
    fn ready(&mut self, agreement: &Agreement) -> Result<(), Error> {
        let mine = self.allowed(agreement);
        self.session.step("agree", |session| {
            let (peer, mut theirs) = (session.me().other(), [0]);
            session.link(peer).exchange(&[u8::from(mine.is_ok())], &mut theirs)?;
            mine?;
            if theirs == [1] {
                return Ok(());
            }
            Err(Error::refused(
                "the peer's privacy ledger does not allow this study: its budget is spent or a release is barred there; \
                 see the peer's own output",
            ))
        })
    }

    fn allowed(&self, agreement: &Agreement) -> Result<(), Error> {
        let ledger = self.lock()?;
        for viewer in self.checked.roster.parties() {
            if let Some(reason) = ledger.barred(&agreement.release_id(viewer))? {
                return Err(crate::ledger::barred_error(&agreement.release_id(viewer), &reason));
            }
            let most = most_charged(&self.checked.study, &self.checked.built.audit, viewer);
            if !num_traits::Zero::is_zero(&most) {
                ledger.check_debit(&self.debit(viewer, most, agreement)?)?;
            }
        }
        Ok(())
    }

    /// Private matching; leaves this party's columns aligned to the spine.
    fn match_rows(&mut self) -> Result<(Aligned, Disclosed), Error> {
        let rows = &self.checked.rows;
        let identifiers = Spelled(rows.identifiers());
        self.stages.begin("match", rows.len());
        let spine = self.session.step("match", |s| pid::run(s, &identifiers, &pid::Options::default()))?;
        let (own, peer) = (spine.disclosed.own, spine.disclosed.peer);
        let by_party = if self.checked.me == PartyId(0) { [own, peer] } else { [peer, own] };
        let price = pid::price(pid::Sizes { rows: by_party, union: spine.rows });
        self.stages.end(self.session.ledger(), "match", spine.rows, price);
        let disclosed = Disclosed {
            rows: by_party.to_vec(),
            union: spine.rows,
            matched_upper_bound: own + peer - spine.rows,
            published_groups: None,
        };
        let rows = std::mem::replace(&mut self.checked.rows, prepare::Rows::Program(Default::default()));
        Ok((Aligned::new(rows, &spine.mine, spine.rows)?, disclosed))
    }

    /// Deals the spine to the workers and adds up what they hand back.
    fn compute(&mut self, aligned: Arc<Aligned>) -> Result<Shares, Error> {
        let (me, union) = (self.checked.me, aligned.union());
        let workers = std::mem::take(&mut self.workers);
        let of = workers.len() as u32;
        self.stages.begin("compute", union);
        let (checked, progress, make) = (&self.checked, &self.watch.progress, self.engine);
        let done: Vec<Result<(Shares, Said, Cost), Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .into_iter()
                .enumerate()
                .map(|(index, channels)| {
                    let mut shard = Shard::new(aligned.clone(), &checked.built, me, index as u32, of);
                    let session = Session::new(me, checked.roster.clone(), channels, Seed::from_system());
                    let session = session.with_progress(progress.clone());
                    scope.spawn(move || work(&mut *make(), checked, &mut shard, session, index))
                })
                .collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        let (mut total, mut said, mut price) = (None::<Shares>, Said::default(), Cost::zero(2));
        for worker in done {
            let (shares, ledger, cost) = worker?;
            said.merge(&ledger);
            price += &cost;
            match &mut total {
                None => total = Some(shares),
                Some(total) => total.add(&self.checked.built.program, &shares)?,
            }
        }
        self.stages.end(&said, "compute", union, price);
        total.ok_or_else(|| Error::misuse("a study has at least one shard"))
    }

    /// Group sizes that the mode makes public: the publisher says them before its release is scaled.
    fn publish(&mut self, totals: &Shares, disclosed: &Disclosed) -> Result<Option<[u64; 2]>, Error> {
        let layout = self.checked.built.lift.as_ref().map(|(_, layout)| layout);
        let Some(folds) = layout.and_then(|l| l.published) else { return Ok(None) };
        let Kind::Lift(lift) = &self.checked.study.kind else { return Ok(None) };
        let minimum = lift.release.minimum_group;
        let publisher = studies::lift::PUBLISHER;
        let rows = disclosed.rows[publisher.index()];
        let groups = self.session.step("publish", |s| {
            if s.me() != publisher {
                let mut read = || s.link(publisher).recv_count("group size", base::limits::ROWS);
                let groups = [read()?, read()?];
                if groups[0] + groups[1] != rows {
                    return Err(s
                        .link(publisher)
                        .blame("its group sizes do not add up to the rows it matched"));
                }
                release::modes::check_public_groups(groups[0], groups[1], minimum)?;
                return Ok(groups);
            }
            let mut groups = [0; 2];
            for (group, fold) in groups.iter_mut().zip(folds) {
                let total = totals.word(program::lower::WordKind::Alone(fold), publisher)?;
                *group =
                    u64::try_from(total).map_err(|_| Error::misuse("a group is larger than the study"))?;
            }
            // Too small a group is not even said.
            release::modes::check_public_groups(groups[0], groups[1], minimum)?;
            for group in groups {
                s.link(publisher.other()).send(&group.to_le_bytes())?;
            }
            Ok(groups)
        })?;
        Ok(Some(groups))
    }

    /// The aggregator: one release per viewer. Returns this party's view.
    fn release(&mut self, totals: &Shares, scales: &Scales, agreement: &Agreement) -> Result<View, Error> {
        let owners = self.checked.built.program.fold_owners();
        let mut view = None;
        let mut price = Cost::zero(2);
        self.stages.begin("release", self.checked.built.program.outputs.len() as u64);
        for viewer in self.checked.roster.parties() {
            let plan = scales.plan(&self.checked.built.program, &owners, viewer)?;
            let draws = scales.draws(&plan);
            let mut engine = (self.engine)();
            let name = format!("release/{}", viewer.0);
            let values = if draws.is_empty() {
                price += &engine.price_release(&plan, 1);
                self.session.step(&name, |s| engine.release(&plan, totals, &mut NoNoise, s))?
            } else {
                let setup = self.setup(viewer, draws, agreement)?;
                price += &engine.price_release(&plan, self.checked.candidates() as usize);
                price += &Noise::price(&setup);
                let noise = self.noise(setup, viewer, scales, agreement)?;
                self.session.step(&name, |s| noise.run(&mut *engine, &plan, totals, s))?
            };
            if viewer == self.checked.me {
                let Checked { study, built, .. } = &self.checked;
                view = Some(interpret::view(study, built, scales, &plan, &values)?);
            }
        }
        self.stages.end(
            self.session.ledger(),
            "release",
            self.checked.built.program.outputs.len() as u64,
            price,
        );
        view.ok_or_else(|| Error::misuse("every party is a viewer"))
    }

    fn setup(
        &self,
        viewer: PartyId,
        draws: Vec<release::choose::Draw>,
        agreement: &Agreement,
    ) -> Result<Setup, Error> {
        let release = agreement.release_id(viewer);
        let context = Context {
            study: *self.checked.hash.as_bytes(),
            release,
            // One release is one session: a resumed run continues the same transcript.
            session: release,
            data: agreement.tags.to_vec(),
            viewer,
            drawer: viewer.other(),
        };
        ceremony::setup(context, draws, self.checked.candidates() as usize)
    }

    fn noise(
        &mut self,
        setup: Setup,
        viewer: PartyId,
        scales: &Scales,
        agreement: &Agreement,
    ) -> Result<Noise, Error> {
        let debit = self.debit(viewer, scales.charge(viewer).clone(), agreement)?;
        let side = if debit.protects { Side::Drawer } else { Side::Checker };
        let rng = self.session.fork_seed("noise").into_rng();
        Ok(Noise::new(side, setup, self.ledger.clone(), debit, rng))
    }

    /// What this party's ledger books for a viewer's release.
    fn debit(&self, viewer: PartyId, rho: release::Rational, agreement: &Agreement) -> Result<Debit, Error> {
        let me = self.checked.me;
        Ok(Debit {
            lineage: self.party.lineage.clone(),
            viewer_key: self.checked.study.parties[viewer.index()].key.clone(),
            study: *self.checked.hash.as_bytes(),
            my_tag: agreement.tags[me.index()],
            peer_tag: agreement.tags[me.other().index()],
            release_id: agreement.release_id(viewer),
            rho,
            budget: rational(prepare::ratio(self.party.policy.budget)?),
            protects: viewer != me,
        })
    }

    fn report(
        &self,
        view: View,
        disclosed: Disclosed,
        scales: &Scales,
        start: Instant,
    ) -> Result<Report, Error> {
        let own_ledger = self.lock()?;
        let peer = self.checked.me.other();
        let key = &self.checked.study.parties[peer.index()].key;
        let spent = release::rational::to_f64(&own_ledger.spent(&self.party.lineage, key)?);
        let charge = scales.charge(self.checked.me);
        let facts = compose::Facts {
            checked: &self.checked,
            engine: (self.engine)().name(),
            charge,
            spent,
            budget: self.party.policy.budget.to_f64(),
            seconds: start.elapsed().as_secs_f64(),
            stages: self.stages.all(),
        };
        Ok(compose::report(&facts, view, disclosed))
    }
}

/// One worker: its own engine on its own connection. Returns its shares, what it said, and what that should have cost.
fn work(
    engine: &mut dyn Engine,
    checked: &Checked,
    shard: &mut Shard,
    mut session: Session,
    index: usize,
) -> Result<(Shares, Said, Cost), Error> {
    let program = &checked.built.program;
    let price = engine.price_rows(program, engine::Rows::len(shard));
    let step = format!("compute/{index}");
    let shares = session.step(&step, |s| engine.rows(program, shard, s))?;
    session.finish()?;
    Ok((shares, session.ledger().clone(), price))
}

/// Normalised identifiers as matching reads them.
struct Spelled<'a>(&'a crate::data::Identifiers);

impl matching::Identifiers for Spelled<'_> {
    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, row: u32, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(self.0.get(row as usize));
        Ok(())
    }
}

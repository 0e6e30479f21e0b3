//! A job from end to end: coordinator, workers, aggregator (000 section 2.4, figure 2).
//!
//! The coordinator meets the peers, agrees, matches and deals the spine round-robin to shards. Every shard is
//! a worker on a thread and connections of its own; what it hands back is shares. The aggregator adds this
//! party's shares and runs, for each viewer, the release in which all parties' shares are put together inside
//! the computation. Two parties and more run the same steps; a lift study with several advertisers is several
//! runs of two parties.

mod agree;
mod aligned;
mod alone;
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod join;
mod matched;
pub(crate) mod measure;
mod node;
pub(crate) mod outsourced;
pub(crate) mod ready;
pub(crate) mod released;
mod salted;
mod server;
mod spine;
mod stages;
mod transport;

use crate::align::Shard;
use crate::prepare::{self, Built, Checked, Opened};
use crate::{budget, compose};
use agree::others_of;
use base::{Cost, Error, PartyId, Seed};
use engine::{Engine, Shares};
use matched::{Matched, Placed};
use net::connect::{Meet, Meeting, Status};
use net::identity::{Identity, KeyFingerprint};
use net::{Channels, Farewell, RowProgress, Session, Traffic};
use ot::{Bases, Hubs};
use outsourced::Word;
use privacy::PrivacyTotal;
use privacy::ledger::{AnswerKey, Ledger, PUBLIC};
use privacy::scales::Scales;
use program::Viewer;
use release::rational::{small, to_f64};
use released::Views;
use report::{Disclosure, RunReport, SpentBy, StageReport};
use spine::Kept;
use stages::Stages;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use study::party::{Address, PartySetup, Places};
use study::transport::ServerTransport;
use study::{Participant, Question, Study};

/// As [`prepare::check`], of what a party's file names.
///
/// # Errors
/// As [`prepare::check`] and [`Opened::of`].
pub fn check(party: &PartySetup) -> Result<Vec<Checked>, Error> {
    prepare::check(party, &Opened::of(party)?)
}
pub use alone::{MATCH_FORMAT, MatchReport, match_rows};
pub use node::{NodeEvent, serve};
pub use server::{SERVER_FORMAT, ServerReport, compute_study};

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
        /// `link`, `match`, `noise`, `compute` or `release`.
        name: String,
        /// Rows that it will handle, as far as known.
        rows: u64,
    },
    /// A stage is over.
    StageDone(StageReport),
    /// The engine is settled for the link; a line to print.
    Settled(String),
    /// What this party should know before anybody is met; a line to print.
    Warning(String),
    /// What its ledger says to it; a line to print.
    Note(String),
    /// The stored answer of an earlier run is returned.
    Stored,
    /// This party's own answer is complete, while others still wait for theirs: keep it now.
    Answer {
        /// Among several runs, with whom.
        with: Option<String>,
        /// The report, without the stages that are not over.
        report: Box<RunReport>,
    },
}

/// Who watches a job.
#[derive(Clone)]
pub struct Watch {
    /// Rows done, by step.
    pub progress: RowProgress,
    /// What happens.
    pub events: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Watch {
    /// Nobody watches.
    #[must_use]
    pub fn none() -> Self {
        Self { progress: RowProgress::none(), events: Arc::new(|_| ()) }
    }

    /// The same for one of several runs: stages are told with the name of the peer in front, and rows are
    /// not, which would mix.
    fn of_part(&self, with: &str) -> Self {
        let (events, with) = (self.events.clone(), with.to_owned());
        let name = move |event| match event {
            Event::Stage { name, rows } => Event::Stage { name: format!("{with}/{name}"), rows },
            Event::StageDone(stage) => {
                Event::StageDone(StageReport { name: format!("{with}/{}", stage.name), ..stage })
            }
            Event::Answer { report, .. } => Event::Answer { with: Some(with.clone()), report },
            other => other,
        };
        Self { progress: RowProgress::none(), events: Arc::new(move |event| events(name(event))) }
    }
}

/// Runs this party's half of a study among all its parties and returns its report. The report is also in the
/// ledger before this returns. With several advertisers the publisher has a report for each: see
/// [`run_parts`].
///
/// # Errors
/// Input, policy, budget, network or a deviating peer; see `docs/errors.md`.
pub fn run(party: &PartySetup, watch: &Watch) -> Result<RunReport, Error> {
    let mut parts = run_parts(party, &Opened::of(party)?, watch)?;
    match (parts.pop(), parts.is_empty()) {
        (Some(part), true) => part.report,
        _ => Err(Error::misuse("a publisher has one report per advertiser")),
    }
}

/// One run of a study, with the parties that take part in it.
pub struct Part {
    /// The other parties' names.
    pub with: String,
    /// What came of it.
    pub report: Result<RunReport, Error>,
    /// Where it failed: this party's own answer, if it was complete before, in this run or an earlier one.
    pub kept: Option<RunReport>,
}

/// Runs all that this party has to do in a study: one run, or for the publisher one with each advertiser, at
/// the same time and each by itself. One that fails does not end the others.
///
/// # Errors
/// What is wrong before anybody is met.
pub fn run_parts(party: &PartySetup, opened: &Opened, watch: &Watch) -> Result<Vec<Part>, Error> {
    let (all, ledger) = admitted(party, opened, watch)?;
    warn(&all, watch);
    let several = all.len() > 1;
    let mut ready = Vec::with_capacity(all.len());
    for checked in all {
        let places = places(party, &checked.study, checked.me, several)?;
        let others = checked.roster.parties().filter(|p| *p != checked.me);
        let with = others.map(|p| checked.roster.name(p)).collect::<Vec<_>>().join(", ");
        let watch = if several { watch.of_part(&with) } else { watch.clone() };
        ready.push((with, checked, places, watch));
    }
    let one = |checked, places, watch: &Watch| {
        let meeting = meet(party, &checked, places, watch)?;
        let mut run = Coordinator::new(party, checked, ledger.clone(), watch, meeting)?;
        let report = run.run();
        Ok::<_, Error>((report, run.answer))
    };
    let one = &one;
    Ok(std::thread::scope(|scope| {
        let start = |(with, checked, places, watch): (String, Checked, Places, Watch)| {
            (with, scope.spawn(move || one(checked, places, &watch)))
        };
        let threads: Vec<_> = ready.into_iter().map(start).collect();
        type Done = Result<(Result<RunReport, Error>, Option<RunReport>), Error>;
        let join = |(with, thread): (String, std::thread::ScopedJoinHandle<'_, Done>)| {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (report, answer) = done.unwrap_or_else(|error| (Err(error), None));
            Part { with, kept: answer.filter(|_| report.is_err()), report }
        };
        threads.into_iter().map(join).collect()
    }))
}

/// What this party runs, and its ledger: everything that it can refuse before anybody is met. The others hear
/// of a refusal, but not of one that its data decide: that it came would be an exact bit of them.
fn admitted(
    party: &PartySetup,
    opened: &Opened,
    watch: &Watch,
) -> Result<(Vec<Checked>, Arc<Mutex<Ledger>>), Error> {
    let told = |error: &Error| {
        if let base::Fault::Refused(_) = error.kind() {
            decline(party, opened, watch);
        }
    };
    let mut all = prepare::check(party, opened).inspect_err(told)?;
    if let Some(checked) = all.iter().find(|checked| checked.study.only_matches()) {
        return Err(Error::input(format!(
            "study {} only matches rows: use `tacit match`",
            checked.study.name
        )));
    }
    budget::admit(party, &mut all)?;
    let ledger = ready::open_ledger(party, &all, watch).inspect_err(told)?;
    in_time(&ledger, party, &all).inspect_err(told)?;
    Ok((all, ledger))
}

/// For how long a party that refuses waits for others, to tell them.
const DECLINE: Duration = Duration::from_secs(3);

/// Tells the others, where they are there, that this party takes no part, and nothing of why: they would wait
/// for it until their deadline. What cannot be told is not told; the refusal is the error.
fn decline(party: &PartySetup, opened: &Opened, watch: &Watch) {
    let all = opened.study.runs();
    let own: Vec<&Study> = all.iter().filter(|run| run.member(&party.as_party).is_some()).collect();
    (watch.events)(Event::Note("this party takes no part; tells the others, where they are there".into()));
    std::thread::scope(|scope| {
        for run in &own {
            scope.spawn(|| {
                let me = prepare::place(run, party);
                let places = places(party, run, me, own.len() > 1)?;
                let meet = appointment(run, me, &opened.identity, places, party.deadline_ms, &Watch::none())?;
                let patience = DECLINE.min(Duration::from_millis(party.deadline_ms));
                meet.allow(party.allow.clone()).decline(patience);
                Ok::<(), Error>(())
            });
        }
    });
}

/// Whether runs may begin now with the peers of these studies.
fn in_time(ledger: &Mutex<Ledger>, party: &PartySetup, all: &[Checked]) -> Result<(), Error> {
    let ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
    all.iter().try_for_each(|run| ready::in_time(&ledger, party, run))
}

/// Says what the operator should know of all runs, each thing once.
fn warn(all: &[Checked], watch: &Watch) {
    let mut said: Vec<&String> = Vec::new();
    let own = all.first().into_iter().flat_map(|first| &first.warnings);
    for warning in own.chain(all.iter().flat_map(|run| &run.notes)) {
        if !said.contains(&warning) {
            said.push(warning);
            (watch.events)(Event::Warning(warning.clone()));
        }
    }
}

/// Where this party meets the others of a run. Among several advertisers the publisher goes to each: one
/// address could not tell their runs apart before keys are proven.
fn places(party: &PartySetup, study: &Study, me: PartyId, several: bool) -> Result<Places, Error> {
    if study.servers.is_some() {
        return outsourced::places(&party.address, study, me);
    }
    let pair = study.part_of.is_some();
    let address = match &party.address {
        Address::Peers { peers, .. } if several => {
            let advertiser = &study.parties[1].name;
            Address::Peer(peers.get(advertiser).cloned().ok_or_else(|| {
                Error::input(format!(
                    "no address of {advertiser}: with several advertisers the publisher goes to each; add \
                     {advertiser} = \"host:port\" under [peers], or --peer {advertiser}=host:port"
                ))
            })?)
        }
        Address::Listen(_) | Address::Peer(_) if several => {
            return Err(Error::input(
                "with several advertisers the publisher goes to each: write a section [peers] with a line \
                 NAME = \"host:port\" for each instead of `listen` or `peer`",
            ));
        }
        Address::Peer(_) | Address::Peers { listen: None, .. } if pair => {
            return Err(Error::input(
                "with several advertisers each of them listens and the publisher comes: set listen = \
                 \"0.0.0.0:7000\"",
            ));
        }
        // Of the publisher's runs an advertiser sees one; a list of all addresses may name the others.
        Address::Peers { listen: Some(at), .. } if pair => Address::Listen(at.clone()),
        own => own.clone(),
    };
    address.places(me, &study.roster())
}

fn meet(party: &PartySetup, checked: &Checked, places: Places, watch: &Watch) -> Result<Meeting, Error> {
    let mut meet =
        appointment(&checked.study, checked.me, &checked.identity, places, party.deadline_ms, watch)?
            .allow(party.allow.clone());
    if party.trigger {
        meet = meet.tell(outsourced::nodes(&checked.study, checked.me, &party.address)?);
    }
    // Servers compute in one shard, on the connections of the coordinators.
    let lanes = if checked.study.servers.is_some() { 0 } else { checked.study.compute.shards };
    met(meet.meet(lanes)?, &checked.study, watch)
}

/// The seed of a session: the system's. Tests know those of their threads.
fn session_seed() -> Seed {
    #[cfg(test)]
    if let Some(known) = tests::secrets::next_seed() {
        return known;
    }
    Seed::from_system()
}

/// With whom this party meets, and how.
fn appointment(
    study: &Study,
    me: PartyId,
    identity: &Arc<Identity>,
    places: Places,
    deadline_ms: u64,
    watch: &Watch,
) -> Result<Meet, Error> {
    let keys: Result<Vec<KeyFingerprint>, Error> =
        study.everybody().into_iter().map(|(_, key)| key.parse()).collect();
    let identity = identity.clone();
    let Places { listen, dial } = places;
    let events = watch.events.clone();
    let transport = net::connect::ChannelSecurity::Tls { identity, keys: keys? };
    let meet = Meet::all(me, study.roster(), listen, dial, transport, *study.hash().as_bytes())
        .patience(Duration::from_millis(deadline_ms))
        .deadline(Duration::from_millis(deadline_ms))
        .watch(move |status: &Status| events(Event::Waiting(status.to_string())));
    Ok(meet)
}

fn met(meeting: Meeting, study: &Study, watch: &Watch) -> Result<Meeting, Error> {
    let peers = outsourced::names(&study.roster(), meeting.control.iter().map(|(peer, _)| *peer));
    (watch.events)(Event::Connected { peer: peers });
    Ok(meeting)
}

/// In a report that is given before the run has ended.
const BROKEN_OFF: &str = "This answer was complete before the run ended, and the run then broke off: the \
                          release stage, and what the \
                          others were charged after it, are not in this report; see the ledger.";

/// One party's coordinator and, on its control session, its aggregator.
struct Coordinator<'a> {
    party: &'a PartySetup,
    checked: Checked,
    ledger: Arc<Mutex<Ledger>>,
    watch: &'a Watch,
    session: Session,
    workers: Vec<Channels>,
    /// Among three or more parties: where they tell each other why they stop.
    farewell: Option<Farewell>,
    stages: Stages,
    /// The link, where something hangs on it.
    told: Option<measure::Told>,
    /// The spine of an earlier match, which this run uses.
    kept: Option<Kept>,
    /// What rows are matched by, where servers join them.
    salt: Option<Seed>,
    /// What servers compute over.
    transport: ServerTransport,
    /// Where they compute: this party's half, with the noise once it is drawn.
    servers: Option<Box<dyn Engine>>,
    /// This party's own answer, once it is complete.
    answer: Option<RunReport>,
    /// Where to keep it in the ledger, until it is there.
    unkept: Option<AnswerKey>,
}

impl<'a> Coordinator<'a> {
    fn new(
        party: &'a PartySetup,
        checked: Checked,
        ledger: Arc<Mutex<Ledger>>,
        watch: &'a Watch,
        mut meeting: Meeting,
    ) -> Result<Self, Error> {
        let roster = checked.study.roster();
        let parties = roster.len();
        let farewell = if parties > 2 { Some(meeting.farewell()?) } else { None };
        let session = Session::new(checked.me, roster, meeting.control, session_seed())
            .with_id(meeting.session_id)
            .with_progress(watch.progress.clone());
        let stages = Stages::new(checked.me, parties, watch.events.clone());
        let kept = kept_spine(party, &checked)?;
        let salt = outsourced::salt_of(party, &checked)?;
        Ok(Self {
            party,
            checked,
            ledger,
            watch,
            session,
            workers: meeting.workers,
            farewell,
            stages,
            told: None,
            kept,
            salt,
            transport: ServerTransport::Tls,
            servers: None,
            answer: None,
            unkept: None,
        })
    }

    /// Runs, and tells the others where it began when it fails, while the channels are still there.
    fn run(&mut self) -> Result<RunReport, Error> {
        let done = self.steps().map_err(|error| stopped(self.farewell.as_ref(), error));
        if let (Err(_), Some(key), Some(report)) = (&done, self.unkept.take(), &self.answer) {
            // The error of the run is the one to tell: the report is with the caller in any case.
            let _ = self.store_answer(&key, report);
        }
        done
    }

    fn steps(&mut self) -> Result<RunReport, Error> {
        self.count_run()?;
        self.greet()?;
        let agreement = self.agree(self.kept.as_ref().map(Kept::name))?;
        self.answer = agreement.stored.as_deref().map(report::stored).transpose()?;
        if let (Some(stored), true) = (agreement.stored.as_deref(), agreement.all_stored) {
            (self.watch.events)(Event::Stored);
            self.tell_servers(Word::Stored, &agreement.common)?;
            self.session.finish()?;
            return report::stored(stored);
        }
        self.tell_broke_off()?;
        self.tell_other_data(&agreement)?;
        self.ready(&agreement)?;
        self.settle_transport()?;
        let start = Instant::now();
        self.measure()?;
        let Matched { rows, disclosed } = self.match_rows(&agreement)?;
        self.settle(rows.count());
        let early = if outsourced::publishes(&self.checked.built) { None } else { Some(self.scales(None)?) };
        if let Some(scales) = &early {
            self.draw(scales)?;
        }
        let totals = self.compute(&rows)?;
        let groups = self.publish(&totals, &disclosed)?;
        let disclosed = Disclosure { published_groups: groups, ..disclosed };
        let scales = match early {
            Some(scales) => scales,
            None => {
                let scales = self.scales(groups)?;
                self.draw(&scales)?;
                scales
            }
        };
        let seen = self.release(&totals, &rows, &scales, &agreement, (&disclosed, start))?;
        // A run that broke off after this side had its answer ends with that answer: there is one per study
        // and data.
        let report = match agreement.stored.as_deref() {
            Some(stored) => report::stored(stored)?,
            None => {
                let report = self.report(seen, disclosed, &scales, start)?;
                self.store_answer(&agreement.answer, &report)?;
                (self.answer, self.unkept) = (Some(report.clone()), None);
                report
            }
        };
        self.part()?;
        let (study, roster) = (&self.checked.study, self.checked.study.roster());
        let servers = outsourced::servers_apart(study);
        // The result is there, and no server is needed for it.
        let gone =
            |e: &Error| servers.iter().any(|server| e.at().peer.as_ref() == Some(&roster.name(*server)));
        self.session.finish().or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })?;
        Ok(report)
    }

    fn scales(&self, groups: Option<[u64; 2]>) -> Result<Scales, Error> {
        let Built { program, audit, .. } = &self.checked.built;
        Scales::new(&self.checked.study, program, audit, groups)
    }

    fn store_answer(&self, key: &AnswerKey, report: &RunReport) -> Result<(), Error> {
        let others = others_of(&self.checked);
        let peers: Vec<&str> =
            others.iter().map(|peer| &*self.checked.study.parties[peer.index()].key).collect();
        self.lock()?.store_answer(key, &peers, &report::to_json(report)?)
    }

    fn lock(&self) -> Result<std::sync::MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("another thread panicked while it held the ledger"))
    }

    /// Measures the link where the study leaves something to it.
    fn measure(&mut self) -> Result<(), Error> {
        if !self.checked.engines.asks(&self.checked.built.program) {
            return Ok(());
        }
        self.stages.begin("link", 0);
        self.told = Some(self.session.step("link", measure::run)?);
        let price = measure::price(self.checked.roster.len());
        self.stages.end(self.session.ledger(), "link", 0, price);
        Ok(())
    }

    /// Settles the engine for the rows at hand: every party by the same numbers, and so alike.
    fn settle(&mut self, rows: u64) {
        let Some(told) = self.told else { return };
        let Checked { built, engines, .. } = &mut self.checked;
        *engines = engines.settled(&built.program, rows, told.link(), told.speeds());
        let text = format!("engine {}, {}", engines.make().name(), self.settings());
        (self.watch.events)(Event::Settled(text));
    }

    /// How the engine is set up, and by what it was chosen.
    fn settings(&self) -> String {
        let settings = self.checked.engines.settings(&self.checked.built.program);
        self.told.map_or(settings.clone(), |told| format!("{settings}: measured {}", told.words()))
    }

    /// Base OTs for every worker, where they come out of a hub.
    fn bases(&mut self, workers: usize) -> Result<Vec<Option<Bases>>, Error> {
        if !self.checked.engines.has_hub() {
            return Ok((0..workers).map(|_| None).collect());
        }
        let peers: Vec<PartyId> =
            self.checked.roster.parties().filter(|peer| *peer != self.checked.me).collect();
        let bases = self.session.step("compute", |s| Hubs::new(s, &peers)?.fork(s, workers))?;
        Ok(bases.into_iter().map(Some).collect())
    }

    /// Deals the rows to the workers and adds up what they hand back.
    fn compute(&mut self, rows: &Placed) -> Result<Shares, Error> {
        if self.checked.study.servers.is_some() {
            return self.outsource(rows);
        }
        let (me, union) = (self.checked.me, rows.count());
        let workers = std::mem::take(&mut self.workers);
        let of = workers.len() as u32;
        self.stages.begin("compute", union);
        let bases = self.bases(workers.len())?;
        let (checked, progress, farewell) = (&self.checked, &self.watch.progress, self.farewell.as_ref());
        let done: Vec<Result<(Shares, Traffic, Cost), Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .into_iter()
                .zip(bases)
                .enumerate()
                .map(|(index, (channels, bases))| {
                    let dealt = deal(rows, &checked.built, me, index as u32, of);
                    let session = Session::new(me, checked.roster.clone(), channels, session_seed());
                    let mut session = session.with_progress(progress.clone());
                    scope.spawn(move || {
                        let done = dealt.and_then(|dealt| work(checked, bases, dealt, &mut session, index));
                        done.map_err(|error| stopped(farewell, error))
                    })
                })
                .collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        // What the hub said is in this session's ledger.
        let (mut total, mut said) = (None::<Shares>, self.session.ledger().clone());
        let (mut price, _) = self.checked.engines.hub(self.checked.roster.len());
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
    fn publish(&mut self, totals: &Shares, disclosed: &Disclosure) -> Result<Option<[u64; 2]>, Error> {
        let layout = self.checked.built.lift.as_ref().map(|(_, layout)| layout);
        let Some(folds) = layout.and_then(|l| l.published) else { return Ok(None) };
        let Question::Lift(lift) = &self.checked.study.kind else { return Ok(None) };
        let minimum = lift.release.minimum_group;
        let publisher = studies::lift::PUBLISHER;
        let groups = self.session.step("publish", |s| {
            if s.me() != publisher {
                return hear_groups(s, disclosed, minimum);
            }
            let mut groups = [0; 2];
            for (group, fold) in groups.iter_mut().zip(folds) {
                let total = totals.word(program::lower::WordKind::Alone(fold), publisher)?;
                *group =
                    u64::try_from(total).map_err(|_| Error::misuse("a group is larger than the study"))?;
            }
            // Too small a group is not even said.
            release::modes::check_public_groups(groups[0], groups[1], minimum)?;
            for peer in s.peers() {
                groups.iter().try_for_each(|group| s.link(peer).send(&group.to_le_bytes()))?;
                s.link(peer).flush()?;
            }
            same_groups(s, groups)
        })?;
        Ok(Some(groups))
    }

    /// What all viewers of these data may be charged together.
    fn total(&self) -> Option<release::Rational> {
        self.party.policy.total.clone()
    }

    /// What this party's ledger says of each other party, and of the public where the study has a result for
    /// it.
    fn viewers(&self) -> Result<Vec<SpentBy>, Error> {
        let (ledger, me) = (self.lock()?, self.checked.me.index());
        let others = self.checked.study.parties.iter().enumerate().filter(|(i, _)| *i != me);
        let spent = |(_, member): (usize, &Participant)| {
            let lineage = self.party.lineage.as_deref().unwrap_or_default();
            Ok(SpentBy {
                viewer: member.name.clone(),
                rho: release::rational::to_f64(&ledger.spent(lineage, &member.key)?),
                delta: small(&ledger.spent_delta(lineage, &member.key)?),
            })
        };
        let mut all: Vec<SpentBy> = others.map(spent).collect::<Result<_, Error>>()?;
        if self.checked.study.stated(Viewer::Public).is_some() {
            let lineage = self.party.lineage.as_deref().unwrap_or_default();
            let rho = release::rational::to_f64(&ledger.spent(lineage, PUBLIC)?);
            all.push(SpentBy { viewer: PUBLIC.to_owned(), rho, delta: "0".to_owned() });
        }
        Ok(all)
    }

    fn report(
        &self,
        seen: Views,
        disclosed: Disclosure,
        scales: &Scales,
        start: Instant,
    ) -> Result<RunReport, Error> {
        let viewers = self.viewers()?;
        let charge = &scales.seen_by(self.checked.me);
        let facts = compose::Facts {
            checked: &self.checked,
            engine: self.checked.engines.make().name(),
            settings: self.transport.in_settings(self.settings()),
            transport: self.transport.to_string(),
            charge,
            distance: scales.most_distance(self.checked.me),
            total: PrivacyTotal::of_view(&self.checked.study, self.checked.me, charge)?,
            lineage: self.checked.charges(self.party)?.then(|| self.party.lineage.clone()).flatten(),
            viewers,
            broke_off: self.broke_off()?,
            noticed: self.noticed()?,
            budget: to_f64(&self.party.policy.budget),
            seconds: start.elapsed().as_secs_f64(),
            stages: self.stages.all(),
        };
        compose::report(&facts, seen, disclosed)
    }
}

/// Group sizes as the publisher tells them to everybody else.
fn hear_groups(session: &mut Session, disclosed: &Disclosure, minimum: u64) -> Result<[u64; 2], Error> {
    let publisher = studies::lift::PUBLISHER;
    let rows = disclosed.rows[publisher.index()];
    let mut read = || session.link(publisher).recv_count("group size", base::limits::ROWS);
    let groups = [read()?, read()?];
    // Among rows that hide the number are made-up ones, which are in no group.
    let told = groups[0] + groups[1];
    if told > rows || told < rows && disclosed.dummies.is_none() && !disclosed.kept_spine {
        return Err(session.link(publisher).blame("its group sizes do not add up to the rows it matched"));
    }
    release::modes::check_public_groups(groups[0], groups[1], minimum)?;
    same_groups(session, groups)
}

/// With servers, everybody compares the group sizes: who computes with other ones would be blamed for it.
fn same_groups(session: &mut Session, groups: [u64; 2]) -> Result<[u64; 2], Error> {
    if session.roster().len() == 2 {
        return Ok(groups);
    }
    let mine: [u8; 16] = groups.map(u64::to_le_bytes).as_flattened().try_into().expect("two sizes");
    match agree::tell_all(session, mine)?.into_iter().find(|(_, theirs)| *theirs != mine) {
        None => Ok(groups),
        Some((peer, _)) => {
            let said = [studies::lift::PUBLISHER, peer];
            Err(session.accuse_one_of(&said, "they say different things about the group sizes"))
        }
    }
}

/// The kept spine that this party is to use. What cannot be kept later is found out now.
fn kept_spine(party: &PartySetup, checked: &Checked) -> Result<Option<Kept>, Error> {
    if let Some(path) = &party.keep_spine {
        spine::try_folder(&spine::file(path, &checked.study))?;
    }
    let Some(path) = &party.spine else { return Ok(None) };
    Kept::read(spine::file(path, &checked.study), &checked.study, checked.me).map(Some)
}

/// The rows of one worker.
enum Dealt {
    Spine(Shard),
    Joined(join::Dealt),
}

fn deal(rows: &Placed, built: &Built, me: PartyId, index: u32, of: u32) -> Result<Dealt, Error> {
    Ok(match rows {
        Placed::Spine(aligned) => Dealt::Spine(Shard::new(aligned.clone(), built, me, index, of)),
        Placed::Joined(shared) => Dealt::Joined(join::Dealt::new(shared.clone(), index, of)?),
        Placed::Shares(..) => return Err(Error::misuse("nothing is computed on rows that are only matched")),
    })
}

/// One worker: its own engine on its own connection. Returns its shares, what it said, and what that should
/// have cost.
fn work(
    checked: &Checked,
    bases: Option<Bases>,
    mut rows: Dealt,
    session: &mut Session,
    index: usize,
) -> Result<(Shares, Traffic, Cost), Error> {
    let (program, engines) = (&checked.built.program, &checked.engines);
    let mut engine = engines.worker(bases);
    let count = match &rows {
        Dealt::Spine(shard) => program::ShardRows::len(shard),
        Dealt::Joined(dealt) => program::JoinedRows::len(dealt),
    };
    let price = engines.price_rows(&*engine, program, count);
    let step = format!("compute/{index}");
    let shares = session.step(&step, |s| match (&mut rows, engines.joined()) {
        (Dealt::Spine(shard), None) => engine.rows(program, shard, s),
        (Dealt::Joined(dealt), Some(shared)) => engine.joined(program, shared, dealt, s),
        _ => Err(Error::misuse("the engine of a study fits its match")),
    })?;
    session.finish()?;
    Ok((shares, session.ledger().clone(), price))
}

/// The error with which this party stops, after the others were told where it began.
fn stopped(farewell: Option<&Farewell>, error: Error) -> Error {
    match farewell {
        Some(farewell) => farewell.stop(error),
        None => error,
    }
}

#[cfg(test)]
mod tests;

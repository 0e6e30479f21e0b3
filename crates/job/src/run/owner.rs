//! An owner's run, phase by phase: met, agreed, allowed, and then the stages of [`crate::course`], each
//! phase made of the one before.

use super::agree::{Agreement, others_of};
use super::matched::{MatchedRows, Placed};
use super::outsourced::{self, StartSignal};
use super::payment::Payment;
use super::spine::{self, KeptSpine};
use super::{Event, Watch, session_seed, stopped};
use crate::align::Aligned;
use crate::compose::{self, Facts, Views};
use crate::course::{Actor, Completed, Course, Matched};
use crate::engines::StudyEngine;
use crate::interpret;
use crate::kept::{KeptMatch, MatchedRecord, RunLog};
use crate::memory::{self, MemoryShares};
use crate::prepare::Checked;
use crate::stages::compute::ComputeStage;
use crate::stages::link::{LinkFacts, LinkStage};
use crate::stages::matching::MatchStage;
use crate::stages::noise::NoiseStage;
use crate::stages::publish::PublishStage;
use crate::stages::release::{ReleaseHolder, ReleaseStage, ReleaseUnit, Released, sees};
use crate::stages::{Stage, StageLog};
use crate::usage;
use crate::workers::{self, ComputeUnits, LaneHost, UnitsDone, UnitsJob, WORD_CHANNELS, WorkerPlace};
use base::{Error, Seed, limits};
use engine::{DrawnNoise, Shares};
use net::connect::Meeting;
use net::lanes::LanePort;
use net::{Channels, Farewell, Session};
use privacy::PrivacyTotal;
use privacy::ledger::{AnswerKey, Bytes32, Ledger, PUBLIC, StudySpending};
use privacy::scales::Scales;
use program::Viewer;
use release::Rational;
use report::{Disclosure, ProcessPeak, RunReport, SpentBy, WorkersInfo};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use study::Participant;
use study::party::PartySetup;
use study::transport::ServerTransport;

/// In a report that is given before the run has ended.
const BROKEN_OFF: &str = "This answer was complete before the run ended, and the run then broke off: the \
                          release stage, and what the others were charged after it, are not in this report; \
                          see the ledger.";

/// What lives as long as one party's run: what it was checked with, the conversation, and its own answer.
pub(super) struct OwnerRun<'a> {
    pub party: &'a PartySetup,
    pub checked: &'a Checked,
    pub ledger: Arc<Mutex<Ledger>>,
    pub watch: &'a Watch,
    pub session: Session,
    /// Where servers compute: for ranges of rows, beside those that the session computes.
    pub row_lanes: Vec<Session>,
    /// Among three or more parties: where they tell each other why they stop.
    pub farewell: Option<Farewell>,
    pub log: StageLog,
    /// Where what is done is kept, of a run that goes on after it broke off.
    pub kept: Option<&'a mut RunLog>,
    /// What both have of a match already.
    pub matched: Option<MatchedRecord>,
    /// The match over lanes that both go on with, as they name it.
    pub under_way: Option<Bytes32>,
    /// The spine of an earlier match, which this run uses.
    pub kept_spine: Option<KeptSpine>,
    /// What rows are matched by, where servers join them.
    pub salt: Option<Seed>,
    /// Under what the ledger counts the match whose sizes were charged.
    pub sizes_paid: Option<Bytes32>,
    /// Whether the release has begun, which says itself how things stand with it.
    pub releasing: bool,
    /// Whether it goes on with a match of nobody, at which another party may end.
    pub matched_nobody: bool,
    /// How many workers compute at once, as both have agreed.
    pub workers: u32,
    /// Their connections for the match, until it is made over them; and whether it is.
    pub match_lanes: Option<WorkerLanes>,
    pub match_on_lanes: bool,
    /// What came of its units, but for their results.
    pub match_done: Option<UnitsDone>,
    /// Who they were.
    pub computed: Option<WorkersInfo>,
    pub answer: OwnAnswer,
}

/// What two parties tell each other of the units of their computation before ledgers allow it.
struct UnitWords {
    workers: u16,
    keeps: UnitsKept,
    /// The match of these data that it holds; zeros for none.
    matched: Bytes32,
    /// The one that it can go on with over lanes; zeros for none.
    under_way: Bytes32,
}

/// What a party keeps of what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitsKept {
    Nothing,
    /// All, and a match that goes on by itself, in `work`.
    InWork,
    /// All, and a match whose columns lie in state: its units may go over lanes.
    InState,
}

impl UnitsKept {
    fn of(number: u8) -> Option<Self> {
        [Self::Nothing, Self::InWork, Self::InState].get(usize::from(number)).copied()
    }
}

const UNIT_WORDS_BYTES: usize = 2 + 1 + 2 * 32;

impl UnitWords {
    fn bytes(&self) -> [u8; UNIT_WORDS_BYTES] {
        let head = [&self.workers.to_le_bytes()[..], &[self.keeps as u8]].concat();
        [&head[..], &self.matched, &self.under_way].concat().try_into().expect("the parts add up")
    }

    /// Whether it has a match of these data, whichever.
    fn has_match(&self) -> bool {
        self.matched != [0; 32] || self.under_way != [0; 32]
    }

    fn read(bytes: &[u8; UNIT_WORDS_BYTES]) -> Option<Self> {
        let [low, high, keeps, names @ ..] = bytes;
        let workers = u16::from_le_bytes([*low, *high]);
        let keeps = UnitsKept::of(*keeps)?;
        let [matched, under_way] = *names.as_chunks().0 else { return None };
        (1..=limits::WORKERS).contains(&workers).then_some(Self { workers, keeps, matched, under_way })
    }
}

/// How workers of a run between two come about: words of their coordinators, and the way to their peers.
pub(super) struct WorkerLanes {
    pub words: Vec<Channels>,
    pub port: Arc<LanePort>,
}

/// This party's own answer, which nothing that the others do takes away.
#[derive(Default)]
pub(super) struct OwnAnswer {
    /// The report, once it is complete.
    pub report: Option<RunReport>,
    /// Where to keep it in the ledger, until it is there.
    unkept: Option<AnswerKey>,
}

impl OwnAnswer {
    /// Whether it is complete and in the ledger.
    pub fn kept(&self) -> bool {
        self.report.is_some() && self.unkept.is_none()
    }
}

/// Every ledger allows the run, and everybody computes over the same transport.
pub(super) struct AllowedRun<'r, 'a> {
    pub run: &'r mut OwnerRun<'a>,
    pub agreement: Agreement,
    /// What this party's ledger tells it alone of who sees these data and of earlier data, in sentences.
    known: Vec<String>,
    transport: ServerTransport,
    /// The link, once it was measured.
    link: Option<LinkFacts>,
    start: Instant,
}

impl<'a> OwnerRun<'a> {
    /// A run with those who were met, and the connections of its workers.
    pub fn new(
        party: &'a PartySetup,
        checked: &'a Checked,
        ledger: Arc<Mutex<Ledger>>,
        watch: &'a Watch,
        (kept, mut meeting): (Option<&'a mut RunLog>, Meeting),
    ) -> Result<(Self, Option<WorkerLanes>), Error> {
        let roster = checked.study.roster();
        let (mut lanes, mut match_lanes) = (None, None);
        if outsourced::computes_in_units(&checked.study) {
            let port = Arc::new(meeting.lane_port()?);
            let mut words = std::mem::take(&mut meeting.workers);
            let more = words.split_off(words.len().min(WORD_CHANNELS as usize));
            match_lanes = (!more.is_empty()).then(|| WorkerLanes { words: more, port: port.clone() });
            lanes = Some(WorkerLanes { words, port });
        }
        let parties = roster.len();
        let farewell = if parties > 2 { Some(meeting.farewell()?) } else { None };
        let session = Session::new(checked.me, roster, std::mem::take(&mut meeting.control), session_seed())
            .with_id(meeting.session_id)
            .with_progress(watch.progress.clone());
        let spent = kept.as_ref().map(|log| log.costs.clone()).unwrap_or_default();
        spent.meet();
        let log = StageLog::new(checked.me, parties, watch.events.clone()).with_spent(spent);
        let kept_spine = kept_spine(party, checked)?;
        let salt = outsourced::salt_of(party, checked)?;
        let row_lanes = outsourced::lane_sessions(&session, meeting.workers);
        let answer = OwnAnswer::default();
        let run = Self {
            party,
            checked,
            ledger,
            watch,
            session,
            row_lanes,
            farewell,
            log,
            kept,
            matched: None,
            under_way: None,
            kept_spine,
            salt,
            sizes_paid: None,
            releasing: false,
            matched_nobody: false,
            workers: 1,
            match_lanes,
            match_on_lanes: false,
            match_done: None,
            computed: None,
            answer,
        };
        Ok((run, lanes))
    }

    /// Runs, and tells the others where it began when it fails, while the channels are still there, those of
    /// words among them.
    pub fn run(&mut self, mut lanes: Option<WorkerLanes>) -> Result<RunReport, Error> {
        let done = self.phases(&mut lanes);
        if done.is_err() {
            self.log.broke_off(self.session.traffic());
            self.kept.as_deref_mut().into_iter().for_each(RunLog::broke_off);
        }
        let done = done.map_err(|error| self.leaving_sizes(stopped(self.farewell.as_ref(), error)));
        if let (Err(_), Some(key), Some(report)) = (&done, self.answer.unkept, &self.answer.report) {
            // The error of the run is the one to tell: the report is with the caller in any case.
            let _ = self.store_answer(&key, report);
        }
        done
    }

    fn phases(&mut self, lanes: &mut Option<WorkerLanes>) -> Result<RunReport, Error> {
        self.count_run()?;
        self.greet()?;
        let agreement = self.agree(self.kept_spine.as_ref().map(KeptSpine::name))?;
        self.answer.report = agreement.stored.as_deref().map(report::stored).transpose()?;
        let Some(stored) = self.answer.report.clone().filter(|_| agreement.all_stored) else {
            return self.hear_ready(agreement)?.complete(lanes);
        };
        (self.watch.events)(Event::Stored);
        self.tell_servers(StartSignal::Stored, &agreement.common)?;
        self.session.finish()?;
        Ok(stored)
    }

    /// Hears that every ledger allows the run, and over what the servers compute.
    pub fn hear_ready(&mut self, agreement: Agreement) -> Result<AllowedRun<'_, 'a>, Error> {
        self.tell_broke_off()?;
        let other_data = self.tell_other_data(&agreement)?;
        self.settle_units(&agreement)?;
        self.count_match(&agreement)?;
        let mut known = self.ready(&agreement)?;
        known.extend(other_data);
        let transport = self.settle_transport()?;
        Ok(AllowedRun { run: self, agreement, known, transport, link: None, start: Instant::now() })
    }

    fn store_answer(&self, key: &AnswerKey, report: &RunReport) -> Result<(), Error> {
        let others = others_of(self.checked);
        let peers: Vec<&str> =
            others.iter().map(|peer| &*self.checked.study.parties[peer.index()].key).collect();
        self.lock()?.store_answer(key, &peers, &report::to_json(report)?)
    }

    pub fn lock(&self) -> Result<MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("another thread panicked while it held the ledger"))
    }

    /// What this party pays of a run.
    pub fn payment<'p>(&'p self, agreement: &'p Agreement) -> Payment<'p> {
        Payment { party: self.party, checked: self.checked, ledger: &self.ledger, agreement }
    }

    /// Has workers compute the units of a stage, and adds up what they hand back.
    pub fn work(
        &mut self,
        (stage, stage_of): (&ComputeStage, Bytes32),
        rows: &Placed,
        lanes: &mut WorkerLanes,
    ) -> Result<Shares, Error> {
        self.log.begin(stage.name(), stage.items());
        let Checked { built, me, .. } = self.checked;
        let rows = |unit| rows.unit(built, *me, stage.ranges(), unit);
        let (units, ranges) = (stage.ranges().units(), *stage.ranges());
        let place = self.worker_place(units);
        let who = (self.party, self.checked, self.watch);
        let job = UnitsJob {
            lanes: units.min(self.workers.into()) as u16,
            engine: Some((stage.engines(), built)),
            log: self.kept.as_deref_mut().filter(|log| log.shared).map(RefCell::new),
            ..units_job(who, *self.session.id(), (stage.name(), &place, &lanes.port))
        };
        let units_of = Box::new(ComputeUnits { stage_of, ranges, rows: &rows });
        let words = std::mem::take(&mut lanes.words);
        let done = workers::with_workers(&job, words, &lanes.port, |crew| crew.stage(units_of))?;
        drop(job);
        // What held units have said counts in every meeting.
        self.log.spend(self.session.traffic(), stage.name());
        self.log.end(&done.traffic, stage.name(), stage.items(), stage.price(&())?);
        self.log.again(&done);
        self.computed = Some(done.info(self.match_done.as_ref(), &place));
        done.shares(built)
    }

    /// No processes where the operator asked for no workers and there is one unit of work.
    pub fn worker_place(&self, units: u64) -> WorkerPlace {
        let asked = self.party.workers.count.is_some();
        match &self.watch.workers {
            WorkerPlace::Processes(_) if !asked && units <= 1 => WorkerPlace::Threads,
            place => place.clone(),
        }
    }

    /// How many workers compute at once, as many as both have, and whether both hold the rows of one match
    /// already, or go on with one that is under way.
    fn settle_units(&mut self, agreement: &Agreement) -> Result<(), Error> {
        let Checked { study, rows, me, .. } = self.checked;
        self.workers = match (&self.watch.workers, self.party.workers.count) {
            // They take nothing of this party's memory.
            (WorkerPlace::Launched(_), Some(count)) => count.into(),
            _ => memory::workers(self.party, rows.len()),
        };
        if !outsourced::computes_in_units(study) {
            return Ok(());
        }
        let matched = self.kept.as_ref().and_then(|log| log.matched(&agreement.tags)).cloned();
        let of_match = matched.as_ref().map(|matched| &matched.rows);
        if let (Some(KeptMatch::Spine(columns)), Some((_, shape))) = (of_match, rows.spool()) {
            let laying = MemoryShares::of(self.party.memory, rows.len()).laying;
            self.workers = self.workers.min(Aligned::lanes(columns, shape, laying));
        }
        let (own, peer) = (self.workers, me.other());
        let name = matched.as_ref().map_or([0; 32], |matched| matched.name);
        let keeps = match (&self.kept, self.journal()) {
            (None, _) => UnitsKept::Nothing,
            (Some(_), Some(_)) => UnitsKept::InWork,
            (Some(_), None) => UnitsKept::InState,
        };
        // A match with `work` goes on by its journal.
        let log = self.kept.as_ref().filter(|_| keeps == UnitsKept::InState);
        let under_way = log.and_then(|log| log.under_way(&agreement.tags));
        let mine =
            UnitWords { workers: own as u16, keeps, matched: name, under_way: under_way.unwrap_or_default() };
        let theirs = self.session.step("agree", |session| {
            let mut theirs = [0; UNIT_WORDS_BYTES];
            session.link(peer).exchange(&mine.bytes(), &mut theirs)?;
            let theirs = UnitWords::read(&theirs);
            theirs.ok_or_else(|| session.link(peer).malformed("how many workers it has, and what it keeps"))
        })?;
        self.workers = own.min(theirs.workers.into());
        let shared = theirs.keeps != UnitsKept::Nothing;
        self.matched = matched.filter(|matched| shared && matched.name == theirs.matched);
        // What one side alone keeps nobody can go on with.
        self.kept.iter_mut().for_each(|log| log.shared = shared);
        self.match_on_lanes = [keeps, theirs.keeps] == [UnitsKept::InState; 2];
        let same = |name: &Bytes32| self.match_on_lanes && *name == theirs.under_way;
        self.under_way = under_way.filter(|name| self.matched.is_none() && same(name));
        let has = [name != [0; 32] || under_way.is_some(), theirs.has_match()];
        if has.contains(&true) && self.matched.is_none() && !self.goes_on() {
            (self.watch.events)(Event::Note(begins_anew(has, &study.parties[peer.index()].name)));
        }
        Ok(())
    }

    /// What this party got of the study in all, earlier matches and attempts included, as its ledger has it:
    /// each side is charged for the matches that both began.
    fn total(&self, charge: &Rational) -> Result<PrivacyTotal, Error> {
        let (study, hash, ledger) = (&self.checked.study, self.checked.hash, self.lock()?);
        let peers = others_of(self.checked).into_iter().map(|peer| &*study.parties[peer.index()].key);
        let spent = peers.map(|key| ledger.spent_in_study(hash.as_bytes(), key));
        let spent: Vec<StudySpending> = spent.collect::<Result<_, _>>()?;
        let released = spent.iter().map(|spent| &spent.released).fold(charge, Ord::max);
        let matches = spent.iter().map(|spent| spent.matches).max().unwrap_or(1);
        let peers = others_of(self.checked).into_iter().map(|peer| &*study.parties[peer.index()].key);
        let days: Vec<Option<String>> =
            peers.map(|key| ledger.recovered_on(key)).collect::<Result<_, _>>()?;
        let since = days.into_iter().flatten().max();
        Ok(PrivacyTotal { since, ..PrivacyTotal::of_view(study, self.checked.me, released, matches)? })
    }

    /// What this party's ledger says of each other party, and of the public where the study has a result for
    /// it.
    fn viewers(&self) -> Result<Vec<SpentBy>, Error> {
        let (ledger, me) = (self.lock()?, self.checked.me.index());
        let lineage = self.party.lineage.as_deref().unwrap_or_default();
        let others = self.checked.study.parties.iter().enumerate().filter(|(i, _)| *i != me);
        let spent = |(_, member): (usize, &Participant)| {
            Ok(SpentBy {
                viewer: member.name.clone(),
                rho: release::rational::to_f64(&ledger.spent(lineage, &member.key)?),
                delta: release::rational::small(&ledger.spent_delta(lineage, &member.key)?),
            })
        };
        let mut all: Vec<SpentBy> = others.map(spent).collect::<Result<_, Error>>()?;
        if self.checked.study.stated(Viewer::Public).is_some() {
            let rho = release::rational::to_f64(&ledger.spent(lineage, PUBLIC)?);
            all.push(SpentBy { viewer: PUBLIC.to_owned(), rho, delta: "0".to_owned() });
        }
        Ok(all)
    }
}

/// Workers of a party in a meeting, who are to be told what to compute and where that is kept.
pub(super) fn units_job<'u>(
    (party, checked, watch): (&'u PartySetup, &'u Checked, &'u Watch),
    run: Bytes32,
    (step, place, port): (&'static str, &'u WorkerPlace, &LanePort),
) -> UnitsJob<'u> {
    UnitsJob {
        run,
        me: checked.me,
        roster: &checked.roster,
        lanes: 1,
        engine: None,
        step,
        place,
        host: lane_host(party, place, port),
        allow: &party.allow,
        deadline: Duration::from_millis(party.deadline_ms),
        progress: watch.progress.clone(),
        events: &*watch.events,
        log: None,
    }
}

/// Where workers await the peer's: those of other machines, and those behind a gate, cannot be handed what
/// comes to the party's port.
fn lane_host(party: &PartySetup, place: &WorkerPlace, port: &LanePort) -> Option<LaneHost> {
    let gated = if let LanePort::Listens(port) = port { port.gated_host() } else { None };
    match (&party.workers.host, place, port) {
        (Some(host), ..) => Some(LaneHost::Named(host.clone())),
        (None, WorkerPlace::Launched(_), LanePort::Listens(_)) => Some(LaneHost::Launched),
        (None, ..) => gated.map(LaneHost::Named),
    }
}

impl<'r> AllowedRun<'r, '_> {
    /// Goes through the stages, keeps the answer, and parts.
    fn complete(mut self, lanes: &'r mut Option<WorkerLanes>) -> Result<RunReport, Error> {
        let Checked { study, built, engines, rows, .. } = self.run.checked;
        // Rows that are matched are cut as they were then.
        let cut_for = self.run.matched.as_ref().map_or(self.run.workers, |matched| matched.workers);
        let engines = engines.masked(self.transport != ServerTransport::Tls).with_workers(cut_for);
        let stage = MatchStage::new(study, built, &engines, [rows.len(); 2])?;
        let completed = Course { study, built }.run(engines, &stage, lanes, &mut self)?;
        let report = self.report_of(completed)?;
        let run = self.run;
        run.part()?;
        let roster = run.checked.study.roster();
        let servers = outsourced::servers_apart(&run.checked.study);
        // The result is there, and no server is needed for it.
        let gone =
            |e: &Error| servers.iter().any(|server| e.at().peer.as_ref() == Some(&roster.name(*server)));
        run.session.finish().or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })?;
        Ok(report)
    }

    /// The report, kept in the ledger. A run that broke off after this side had its answer ends with that
    /// answer: there is one per study and data.
    fn report_of(&mut self, completed: Completed<MatchedRows, Views>) -> Result<RunReport, Error> {
        if let (Some(stored), true) = (&self.run.answer.report, self.agreement.stored.is_some()) {
            return Ok(stored.clone());
        }
        let Completed { matched, scaled, views } = completed;
        let report = self.report(views, &matched, &scaled.scales)?;
        self.run.store_answer(&self.agreement.answer, &report)?;
        self.run.answer = OwnAnswer { report: Some(report.clone()), unkept: None };
        Ok(report)
    }

    /// How the engine is set up, and by what it was chosen.
    fn settings(&self, engines: &StudyEngine, link: Option<LinkFacts>) -> String {
        let settings = engines.settings();
        match link {
            Some(link) => format!("{settings}: measured {}", link.words()),
            None => settings,
        }
    }

    fn report(
        &self,
        seen: Views,
        matched: &Matched<MatchedRows>,
        scales: &Scales,
    ) -> Result<RunReport, Error> {
        let run = &*self.run;
        let (party, checked) = (run.party, run.checked);
        let charge = &scales.seen_by(checked.me);
        // Of so few units that some workers had none.
        let units = run.computed.as_ref().map_or(u64::MAX, |workers| workers.units);
        let lanes = units.min(run.workers.into()).max(1 + run.row_lanes.len() as u64) as u32;
        let facts = Facts {
            checked,
            engine: matched.engines.name(),
            settings: self.transport.in_settings(self.settings(&matched.engines, matched.link)),
            transport: self.transport.to_string(),
            charge,
            distance: scales.most_distance(checked.me),
            public: (scales.charge(Viewer::Public), scales.distance_to(Viewer::Public)),
            total: run.total(charge)?,
            match_number: run.match_paid(),
            lineage: checked.charges(party)?.then(|| party.lineage.clone()).flatten(),
            viewers: run.viewers()?,
            broke_off: run.broke_off()?,
            noticed: run.noticed()?,
            known: self.known.clone(),
            budget: release::rational::to_f64(&party.policy.budget),
            seconds: self.start.elapsed().as_secs_f64(),
            stages: &run.log.with_before(),
            workers: (lanes, run.computed.clone().map(|workers| with_before(workers, run.kept.as_deref()))),
        };
        let disclosed = Disclosure { published_groups: scales.groups(), ..matched.rows.disclosed.clone() };
        compose::report(&facts, seen, disclosed)
    }

    /// This party's own answer is complete, and nothing that the others do takes it away: it is handed on
    /// before their releases begin.
    fn keep_answer(
        &mut self,
        seen: &Views,
        matched: &Matched<MatchedRows>,
        scales: &Scales,
    ) -> Result<(), Error> {
        if seen.own.is_none() {
            return Ok(());
        }
        if self.run.answer.report.is_none() {
            let mut report = self.report(seen.clone(), matched, scales)?;
            report.warnings.push(BROKEN_OFF.into());
            (self.run.watch.events)(Event::Answer { with: None, report: Box::new(report.clone()) });
            self.run.answer.report = Some(report);
        }
        self.run.answer.unkept = self.agreement.stored.is_none().then_some(self.agreement.answer);
        Ok(())
    }

    /// What this party reads off one unit of the release.
    fn read(
        &self,
        unit: &ReleaseUnit,
        released: Released,
        rows: &Placed,
        scales: &Scales,
        seen: &mut Views,
    ) -> Result<(), Error> {
        let Checked { study, built, me, .. } = self.run.checked;
        seen.attempts.extend(released.attempt);
        seen.benders.extend(released.benders);
        // Who sees nothing has an empty view of its own, unless there is one for all.
        let anything = unit.plan().is_some() || !released.lists.is_empty() || !sees(built, Viewer::Public);
        if !unit.viewer.has(*me) || !anything {
            return Ok(());
        }
        let outputs = unit.plan().into_iter().flat_map(|plan| &plan.outputs).map(|(index, _)| *index);
        let values: Vec<(usize, u128)> = outputs.zip(released.values).collect();
        let shown = interpret::Seen {
            viewer: unit.viewer,
            values: &values,
            lists: &released.lists,
            // Who has a row knows its identifier: what all see names none but public ones.
            aligned: rows.aligned().filter(|_| {
                unit.viewer.only().is_some() || study.matching.matcher.features().public_identifiers
            }),
        };
        let view = Some(interpret::view(study, built, scales, &shown)?);
        match unit.viewer {
            Viewer::Party(_) => seen.own = view,
            Viewer::Public => {
                seen.public = view;
                seen.public_attempt = released.attempt;
            }
        }
        Ok(())
    }
}

impl<'r> Actor for AllowedRun<'r, '_> {
    type Rows = MatchedRows;
    type Workers = &'r mut Option<WorkerLanes>;
    type Totals = Shares;
    type Views = Views;

    fn link(&mut self, stage: &LinkStage) -> Result<LinkFacts, Error> {
        // The engine is the one that was settled when rows were matched.
        let facts = match self.run.matched.as_ref().and_then(MatchedRecord::link) {
            Some(facts) => facts,
            None => self.run.log.run(stage, &mut self.run.session, |s| stage.run(s))?,
        };
        self.link = Some(facts);
        Ok(facts)
    }

    fn join_rows(&mut self, stage: &MatchStage<'_>) -> Result<(MatchedRows, u64), Error> {
        let rows = self.run.place_rows(stage, (&self.agreement, self.link))?;
        self.run.expect_somebody(&rows.disclosed)?;
        let count = rows.rows.count();
        Ok((rows, count))
    }

    fn settled(&mut self, matched: &Matched<MatchedRows>) {
        if matched.link.is_some() {
            let settings = self.settings(&matched.engines, matched.link);
            let text = format!("engine {}, {settings}", matched.engines.name());
            (self.run.watch.events)(Event::Settled(text));
        }
    }

    fn draw(&mut self, stage: &NoiseStage) -> Result<DrawnNoise, Error> {
        self.run.log.run(stage, &mut self.run.session, |s| stage.run(s))
    }

    fn compute(
        &mut self,
        stage: &ComputeStage,
        matched: &Matched<MatchedRows>,
        lanes: &'r mut Option<WorkerLanes>,
    ) -> Result<Shares, Error> {
        let rows = &matched.rows.rows;
        let Checked { built, me, .. } = self.run.checked;
        if let Some(lanes) = lanes {
            let stage_of = self.run.matched.as_ref().map_or(self.agreement.name, |matched| matched.name);
            return self.run.work((stage, stage_of), rows, lanes);
        }
        let OwnerRun { log, session, row_lanes, farewell, .. } = &mut *self.run;
        let stop = |error| stopped(farewell.as_ref(), error);
        let units = |unit| rows.unit(built, *me, stage.ranges(), unit);
        log.run(stage, session, |s| stage.run_whole(&built.program, units, (s, row_lanes), stop))
    }

    fn publish(
        &mut self,
        stage: &PublishStage,
        rows: &MatchedRows,
        totals: &Shares,
    ) -> Result<[u64; 2], Error> {
        self.run.log.run(stage, &mut self.run.session, |s| stage.run(totals, &rows.disclosed, s))
    }

    /// One unit per viewer; returns what this party saw.
    fn release(
        &mut self,
        stage: &ReleaseStage<'_>,
        matched: &Matched<MatchedRows>,
        totals: &Shares,
        noise: &mut DrawnNoise,
    ) -> Result<Views, Error> {
        let (mut seen, mut ran) = (Views::default(), Vec::with_capacity(stage.units().len()));
        self.run.log.begin(stage.name(), stage.items());
        self.run.kept.as_deref_mut().map_or(Ok(()), RunLog::releases)?;
        self.run.releasing = true;
        for unit in stage.units() {
            let OwnerRun { party, checked, ledger, session, .. } = &mut *self.run;
            let payment = Payment { party, checked, ledger, agreement: &self.agreement };
            let common = &self.agreement.common;
            let holder = ReleaseHolder { ledger, common, payment: Some(&payment) };
            let released = stage.run(unit, noise, totals, &holder, session)?;
            ran.push(released.ran);
            self.read(unit, released, &matched.rows.rows, stage.scales(), &mut seen)?;
            let (me, last) = (self.run.checked.me, self.run.checked.roster.len() - 1);
            if unit.viewer == Viewer::Party(me) && me.index() < last {
                self.keep_answer(&seen, matched, stage.scales())?;
            }
        }
        self.run.log.spend(self.run.session.traffic(), stage.name());
        self.run.log.end(self.run.session.traffic(), stage.name(), stage.items(), stage.price(&ran)?);
        Ok(seen)
    }
}

/// Why rows are matched anew though this side or the peer, or both, hold a match of them.
fn begins_anew(has: [bool; 2], peer: &str) -> String {
    let (who, not) = match has {
        [true, true] => {
            return format!(
                "this side and {peer} hold different matches of these data: rows are matched anew"
            );
        }
        [true, false] => ("this side", peer),
        _ => (peer, "this side"),
    };
    format!(
        "{who} holds a match of these data and {not} holds none, as after `tacit state drop`, with another \
         `state`, or where it was removed or damaged: rows are matched anew"
    )
}

/// With this process's own memory, and what was before the parties met last.
fn with_before(workers: WorkersInfo, log: Option<&RunLog>) -> WorkersInfo {
    let before = log.map(|log| log.costs.before()).unwrap_or_default();
    let coordinator = ProcessPeak::of_coordinator(usage::peak_memory_bytes());
    let memory = [coordinator].into_iter().chain(workers.memory).chain(before.peaks().iter().cloned());
    WorkersInfo {
        memory: memory.collect(),
        failed_before: before.failures(),
        failed_before_by: before.failed().to_vec(),
        ..workers
    }
}

/// The kept spine that this party is to use. What cannot be kept later is found out now.
fn kept_spine(party: &PartySetup, checked: &Checked) -> Result<Option<KeptSpine>, Error> {
    if let Some(path) = &party.keep_spine {
        spine::try_folder(&spine::file(path, &checked.study))?;
    }
    let Some(path) = &party.spine else { return Ok(None) };
    KeptSpine::read(spine::file(path, &checked.study), &checked.study, checked.me).map(Some)
}

//! A job from end to end: coordinator, workers, aggregator (Private RCT, section 2.4 and figure 2).
//!
//! The coordinator ([`OwnerRun`]) meets the peers, agrees, matches and cuts the spine into ranges, which
//! worker lanes take in turn, each on a thread and connections of its own; what a range leaves is shares.
//! The aggregator adds this party's shares and runs, for each viewer, the release in which all parties'
//! shares are put together inside the computation. Two parties and more run the same steps; a lift study
//! with several advertisers is several runs of two parties.

pub(crate) mod agree;
mod alone;
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod join;
mod match_charge;
mod match_lanes;
pub(crate) mod matched;
mod node;
pub(crate) mod outsourced;
mod owner;
pub(crate) mod payment;
pub(crate) mod ready;
mod server;
mod spine;

use crate::budget;
use crate::kept::RunLog;
use crate::memory;
use crate::prepare::{self, Checked, Opened};
use crate::workers::{self, WorkerPlace};
use base::{Error, Fault, PartyId, Seed};
use net::connect::{Meet, Meeting, Status};
use net::identity::{Identity, KeyFingerprint};
use net::{Farewell, RowProgress, StopSwitch};
use owner::OwnerRun;
use privacy::ledger::Ledger;
use report::{RunReport, StageReport};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use study::Study;
use study::party::{Address, PartySetup, Places};

/// As [`prepare::check`], of what a party's file names.
///
/// # Errors
/// As [`prepare::check`] and [`Opened::of`].
pub fn check(party: &PartySetup) -> Result<Vec<Checked>, Error> {
    prepare::check(party, &Opened::of(party)?)
}
pub use alone::{MATCH_FORMAT, MatchReport, run_match};
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
        /// `link`, `match`, `noise`, `compute`, `publish` or `release`.
        name: String,
        /// Rows that it will handle, as far as known.
        rows: u64,
    },
    /// A stage is over.
    StageDone(StageReport),
    /// So many units of the computation are held by both parties.
    Units {
        /// How many are.
        done: u64,
        /// Units in all.
        of: u64,
        /// Attempts that failed and were made again.
        again: u64,
    },
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
    /// Where workers run, where there is enough to do for more than threads.
    pub workers: WorkerPlace,
    /// Ends the run where it waits for a peer.
    pub stop: StopSwitch,
}

impl Watch {
    /// Nobody watches.
    #[must_use]
    pub fn none() -> Self {
        let (progress, stop) = (RowProgress::none(), StopSwitch::default());
        Self { progress, events: Arc::new(|_| ()), workers: WorkerPlace::Threads, stop }
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
        let (workers, stop) = (self.workers.clone(), self.stop.clone());
        let progress = RowProgress::none();
        Self { progress, events: Arc::new(move |event| events(name(event))), workers, stop }
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
    pub own_answer: Option<RunReport>,
}

/// Runs all that this party has to do in a study: one run, or for the publisher one with each advertiser, at
/// the same time and each by itself. One that fails does not end the others.
///
/// # Errors
/// What is wrong before anybody is met.
pub fn run_parts(party: &PartySetup, opened: &Opened, watch: &Watch) -> Result<Vec<Part>, Error> {
    let (all, ledger) = open_runs(party, opened, watch)?;
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
    let one = |checked: &Checked, places, watch: &Watch| go_on(party, checked, &ledger, places, watch);
    let one = &one;
    Ok(std::thread::scope(|scope| {
        let start = |(with, checked, places, watch): (String, Checked, Places, Watch)| {
            (with, scope.spawn(move || one(&checked, places, &watch)))
        };
        let threads: Vec<_> = ready.into_iter().map(start).collect();
        type Done = Result<(Result<RunReport, Error>, Option<RunReport>), Error>;
        let join = |(with, thread): (String, std::thread::ScopedJoinHandle<'_, Done>)| {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (report, answer) = done.unwrap_or_else(|error| (Err(error), None));
            Part { with, own_answer: answer.filter(|_| report.is_err()), report }
        };
        threads.into_iter().map(join).collect()
    }))
}

/// How often a run meets the other party again, where it has come no further meanwhile.
const MEETINGS: u32 = 4;

/// This party's run and its report, and its own answer where it broke off. A run of which both keep what they
/// have done meets the other party again where the connection broke, and goes on.
fn go_on(
    party: &PartySetup,
    checked: &Checked,
    ledger: &Arc<Mutex<Ledger>>,
    places: Places,
    watch: &Watch,
) -> Result<(Result<RunReport, Error>, Option<RunReport>), Error> {
    let locked = || ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"));
    let mut kept = RunLog::lead(party, checked, ledger)?;
    if let Some(text) = kept.as_ref().and_then(RunLog::resumed) {
        (watch.events)(Event::Note(text));
    }
    if answered(checked, &*locked()?)? {
        (watch.events)(Event::Note(
            "this party's ledger has the answer of this study on these data: it is shown once the other \
             party runs, too, and has the same data; nothing is charged for it"
                .into(),
        ));
    }
    let leaves = |error: Error, kept: &Option<RunLog>| match kept {
        Some(log) if !log.fenced && !log.spent => leaves_kept(error, log, party.keep_state),
        _ => error,
    };
    let (mut best, mut in_vain, mut answer) = (None, 0, None);
    loop {
        let meeting = match meet(party, checked, places.clone(), watch) {
            Ok(meeting) => meeting,
            Err(error) => return Ok((Err(leaves(error, &kept)), answer)),
        };
        kept.iter_mut().for_each(|log| log.meetings += 1);
        let (mut run, workers) =
            OwnerRun::new(party, checked, ledger.clone(), watch, (kept.as_mut(), meeting))?;
        let report = run.run(workers).map_err(|error| memory::of_more_rows(error, party, &checked.rows));
        let has_all = run.answer.kept();
        answer = run.answer.report.or(answer);
        let error = match (report, kept.take()) {
            (report, None) => return Ok((report, answer)),
            (Ok(report), Some(log)) => {
                log.done();
                return Ok((Ok(report), answer));
            }
            (Err(error), Some(log)) => {
                let now = Some(log.progress());
                // Further than ever before: a peer that has a match made anew brings nothing about.
                in_vain = if now > best { 0 } else { in_vain + 1 };
                best = best.max(now);
                let ends = has_all || !log.shared || log.gave_up || log.fenced || in_vain == MEETINGS;
                kept = Some(log);
                if ends || !matches!(error.kind(), Fault::Channel(_)) {
                    return Ok((Err(leaves(error, &kept)), answer));
                }
                error
            }
        };
        // Without what to do next, which this does by itself.
        let broke = Error::new(error.at().clone(), error.kind().clone());
        (watch.events)(Event::Note(format!(
            "{broke}. What is done is kept, and this party waits for the other one to go on"
        )));
    }
}

/// The error of a run that goes on: where what was done is, and what to do next unless it has said that.
fn leaves_kept(error: Error, log: &RunLog, keep: Duration) -> Error {
    let next = match error.left() {
        Some(_) => "",
        None => ": run again, with the same study and the same data, and it goes on",
    };
    let days = keep.as_secs() / 86_400;
    let kept = format!("What was done is kept in {}, for {days} days{next}", log.place());
    error.leaving_too(&kept)
}

/// Whether a run of two ended before, as far as this side knows: the other one's data may be others now.
fn answered(checked: &Checked, ledger: &Ledger) -> Result<bool, Error> {
    if checked.roster.len() != 2 {
        return Ok(false);
    }
    let tag = agree::own_tag(checked, &checked.data_tag(ledger)?);
    ledger.has_answer(checked.hash.as_bytes(), &tag, checked.me)
}

/// What this party runs, and its ledger: everything that it can refuse before anybody is met. The others hear
/// of a refusal, but not of one that its data decide: that it came would be an exact bit of them.
fn open_runs(
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
    budget::check_consent(party, &mut all)?;
    // A ledger is made by a run whose party file is right.
    all.iter().try_for_each(|run| places(party, &run.study, run.me, all.len() > 1).map(|_| ()))?;
    let ledger = ready::open_ledger(party, &all, watch).inspect_err(told)?;
    in_time(&ledger, party, &all).inspect_err(told)?;
    tag(&ledger, &all)?;
    consented(&ledger, party, &all)?;
    Ok((all, ledger))
}

/// For how long a party that refuses waits for others, to tell them.
const DECLINE: Duration = Duration::from_secs(3);

/// Tells the others, where they are there, that this party takes no part, and nothing of why: they would wait
/// for it until their deadline. What cannot be told is not told; the refusal is the error.
fn decline(party: &PartySetup, opened: &Opened, watch: &Watch) {
    let own: Vec<&Study> = opened.file.runs_of(&party.as_party).collect();
    (watch.events)(Event::Note("this party takes no part; tells the others, where they are there".into()));
    std::thread::scope(|scope| {
        for run in &own {
            scope.spawn(|| {
                let me = prepare::place(run, party);
                let places = places(party, run, me, own.len() > 1)?;
                let meet = appointment(run, me, &opened.identity, places, party.deadline_ms, &Watch::none())?;
                let patience = DECLINE.min(Duration::from_millis(party.deadline_ms));
                meet.allow(party.allow.clone()).behind(party.workers.gate.clone()).decline(patience);
                Ok::<(), Error>(())
            });
        }
    });
}

/// Names this party's data before anybody is met: it takes as long as reading all rows, and peers would wait.
fn tag(ledger: &Mutex<Ledger>, all: &[Checked]) -> Result<(), Error> {
    let ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
    all.iter().try_for_each(|run| run.data_tag(&ledger).map(drop))
}

/// Why data do not take part that are not those of the consent, before anybody is met.
pub const OTHER_DATA: &str = "the data are not those that were consented to";

/// Whether the data are those of the consent, charged to its lineage, and enough.
fn consented(ledger: &Mutex<Ledger>, party: &PartySetup, all: &[Checked]) -> Result<(), Error> {
    let Some(agreed) = &party.policy.agreed else { return Ok(()) };
    agreed.charges_to(party.lineage()?)?;
    let ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
    for run in all {
        if agreed.data.map_or(Ok(false), |data| run.data_tag(&ledger).map(|tag| tag != data))? {
            return Err(Error::refused(format!(
                "{OTHER_DATA}: who decides on them takes them as they are, or puts the others back"
            )));
        }
        if run.inputs.rows_kept < agreed.rows {
            return Err(Error::refused(format!(
                "{} rows take part, and the rules of the service ask for {} (least_rows)",
                run.inputs.rows_kept, agreed.rows
            )));
        }
    }
    Ok(())
}

/// Whether runs may begin now with the peers of these studies.
fn in_time(ledger: &Mutex<Ledger>, party: &PartySetup, all: &[Checked]) -> Result<(), Error> {
    let ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
    all.iter().try_for_each(|run| ready::in_time(&ledger, party, run))
}

/// Says what the operator should know of all runs, each thing once.
fn warn(all: &[Checked], watch: &Watch) {
    let mut said: Vec<&String> = Vec::new();
    if let Some(first) = all.first().filter(|first| first.rows.spool().is_some()) {
        (watch.events)(Event::Note(format!(
            "{} rows lie in `state`; with these, `memory` has to be {} MiB at least",
            first.rows.len(),
            first.memory_least >> 20
        )));
    }
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
    if let Some(servers) = &study.servers {
        return outsourced::places(&party.address, study, servers, me);
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
            .allow(party.allow.clone())
            .behind(party.workers.gate.clone());
    if party.trigger {
        meet = meet.tell(outsourced::nodes(&checked.study, checked.me, &party.address)?);
    }
    // A crew for the match and one for the computation. Workers' lanes come later; more than two owners
    // compute on the connections of the coordinators, and so do servers, with more lanes beside them.
    let crews = u32::from(outsourced::computes_in_units(&checked.study))
        + u32::from(match_lanes::goes_over_lanes(&checked.study));
    let lanes = crews * workers::WORD_CHANNELS + outsourced::more_lanes(&checked.study);
    met(meet.meet(lanes)?, &checked.study, watch)
}

/// The seed of a session: the system's. Tests know those of their threads.
pub(crate) fn session_seed() -> Seed {
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
        .stop(watch.stop.clone())
        .watch(move |status: &Status| events(Event::Waiting(status.to_string())));
    Ok(meet)
}

fn met(meeting: Meeting, study: &Study, watch: &Watch) -> Result<Meeting, Error> {
    let peers = outsourced::names(&study.roster(), meeting.control.iter().map(|(peer, _)| *peer));
    (watch.events)(Event::Connected { peer: peers });
    Ok(meeting)
}

/// Stages for people, a line each; `whose` says of whom the bytes are.
fn stage_lines(stages: &[StageReport], whose: &str) -> impl Iterator<Item = String> {
    stages.iter().map(move |stage| {
        let held = if stage.price_held { "as priced" } else { "NOT as priced" };
        let bytes: u64 = stage.bytes_sent.iter().sum();
        format!("{}: {:.1} s, {bytes} bytes {whose}, {held}", stage.name, stage.seconds)
    })
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

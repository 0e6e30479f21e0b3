//! What is said and kept when a run is over, however it ended.

use super::{Look, next_try};
use crate::link::now_ms;
use crate::serving::NO_DATA;
use crate::store::{COMMAND_LINE, RUN_STOPPED, RunLeft, RunRow, SERVICE, STOPPED, Speaker, TrailFilter};
use crate::web::House;
use base::{Error, unhex};
use privacy::ledger::{EntryRow, Ledger, PeerLineage};
use release::rational::Rational;
use statements::{Act, DEBITS, DebitLine, ProposalId, ProposalRecord, RunEnd, RunOutcome, Said};
use std::path::Path;
use std::sync::Arc;

/// Files of a report that are kept.
const FILES: [&str; 2] = ["report.json", "report.html"];
/// Entries of the log that say that one run was stopped.
const STOPS: u32 = 50;
/// Bytes of one.
const FILE_BYTES: u64 = 16 << 20;

/// How a process of a run ended.
pub struct JobEnd {
    /// Whether the ledger had the answer.
    pub stored: bool,
    /// Whether a person stopped it.
    pub stopped: bool,
    /// Kind, code and message of its error.
    pub error: Option<[String; 3]>,
}

/// A run whose process is over: what it left is kept, and what it charged is said.
pub fn over(
    house: &Arc<House>,
    id: &ProposalId,
    run: u32,
    folder: &Path,
    ended: &JobEnd,
) -> Result<(), Error> {
    let files = files(&folder.join(format!("report-{run}")));
    let serves = house.store().own_consent(id)?.is_some_and(|own| own.data == NO_DATA);
    let outcome = match (files.is_empty(), ended.stopped) {
        // A server has no report: its process has done what it had to.
        _ if serves && ended.error.is_none() && !ended.stopped => RunOutcome::Answered,
        // An answer that is complete stays one, whatever became of the run.
        (false, _) if ended.stored => RunOutcome::Stored,
        (false, _) => RunOutcome::Answered,
        (true, true) => RunOutcome::Stopped,
        (true, false) => RunOutcome::Failed,
    };
    let error =
        ended.error.as_ref().map(|[kind, code, message]| (kind.as_str(), code.as_str(), message.as_str()));
    finish(house, id, run, outcome, error, &files)
}

/// A run that was under way when the service ended: if its report is there, that is its answer.
pub fn broke_off(house: &Arc<House>, id: &ProposalId, run: u32) -> Result<(), Error> {
    let Some(record) = house.store().standing(id)? else { return Ok(()) };
    let folder = super::job::folder(&house.jobs_folder(), &record);
    let error = ["peer", "interrupted", "the service ended while this run was under way"].map(str::to_owned);
    over(house, id, run, &folder, &JobEnd { stored: false, stopped: false, error: Some(error) })
}

/// Ends what no process stands behind, also where nothing may be said: a run that was under way when the
/// service ended, and an offer that nobody can take any more. Neither keeps a port or a place from others.
pub fn loosen(house: &Arc<House>) -> Result<(), Error> {
    for run in house.store().open_runs()? {
        if house.jobs().run_of(&run.proposal) == Some(run.run) {
            continue;
        }
        if let Err(error) = loosen_one(house, &run) {
            house.complain(&run.proposal, &error);
        }
    }
    Ok(())
}

fn loosen_one(house: &Arc<House>, run: &RunRow) -> Result<(), Error> {
    if run.begun_ms.is_some() {
        return broke_off(house, &run.proposal, run.run);
    }
    let Some(record) = house.store().standing(&run.proposal)? else { return Ok(()) };
    let Some(ended) = why_off(house, &record, run)? else { return Ok(()) };
    // A copy that was put back may lack that it was begun: then its report lies there.
    let folder = super::job::folder(&house.jobs_folder(), &record);
    over(house, &run.proposal, run.run, &folder, &ended)
}

/// Why an offered run never begins, where that is so whatever others say.
fn why_off(house: &House, record: &ProposalRecord, run: &RunRow) -> Result<Option<JobEnd>, Error> {
    let (store, Some(identity)) = (house.store(), house.identity()) else { return Ok(None) };
    let (view, me) = (record.view(), record.place(&identity.fingerprint()));
    if view.state().is_final() {
        return Ok(Some(JobEnd { stored: false, stopped: true, error: None }));
    }
    // What a copy that was put back took back has gone on.
    let mine = me.map(|me| view.standings[me].runs());
    let is_past = mine.is_some_and(|runs| {
        runs.range(run.run + 1..).next().is_some()
            || runs.get(&run.run).is_some_and(|said| said.ended.is_some())
    });
    let ran_out = || now_ms() > run.made_ms.saturating_add(super::OFFER_MS);
    if is_past || (ran_out() && store.is_unheard(&run.proposal)?) {
        let (kind, code, message) = super::NOT_READY;
        let error = Some([kind, code, message].map(str::to_owned));
        return Ok(Some(JobEnd { stored: false, stopped: false, error }));
    }
    Ok(None)
}

/// A run that never began, or could not.
pub fn end(house: &Arc<House>, id: &ProposalId, run: u32, error: (&str, &str, &str)) -> Result<(), Error> {
    finish(house, id, run, RunOutcome::Failed, Some(error), &[])
}

/// A run that a person stopped before it began.
pub fn stopped(house: &Arc<House>, id: &ProposalId, run: u32) -> Result<(), Error> {
    finish(house, id, run, RunOutcome::Stopped, None, &[])
}

/// Keeps that a run is over and what it left; then says so, where that may be said.
fn finish(
    house: &Arc<House>,
    id: &ProposalId,
    run: u32,
    outcome: RunOutcome,
    error: Option<(&str, &str, &str)>,
    files: &[(String, Vec<u8>)],
) -> Result<(), Error> {
    let store = house.store();
    let (Some(record), Some(row)) = (store.standing(id)?, store.proposal(id)?) else { return Ok(()) };
    let (kind, code, message) = error.unwrap_or_default();
    let end = RunEnd { run, outcome, kind: word(kind), code: word(code), debits: Vec::new() };
    let at_ms = now_ms();
    let stopped_by = match outcome {
        RunOutcome::Stopped => stopped_by(house, &record, run)?,
        _ => None,
    };
    let message = stopped_by.as_deref().or(Some(message).filter(|message| !message.is_empty()));
    let (held, next_ms) = match (outcome, kind) {
        // No further run begins.
        _ if row.state.is_final() => (None, 0),
        (RunOutcome::Answered | RunOutcome::Stored, _) => (None, at_ms + 2_000),
        (RunOutcome::Stopped, _) => (Some(STOPPED), 0),
        // Only a connection, or a peer that had ended, gets better by itself.
        (RunOutcome::Failed, "peer") => (None, next_try(&store.runs(id)?, at_ms)),
        (RunOutcome::Failed, kind) => (Some(kind), 0),
    };
    let is_new = store.end_run(at_ms, &record, &end, &RunLeft { message, files, held, next_ms })?;
    if is_new && !(row.state.is_final() && files.is_empty()) {
        house.notify(if outcome.has_answer() { "answered" } else { "failed" }, id);
    }
    tell(house, id, run)
}

/// Who stopped a run, by the log.
fn stopped_by(house: &House, record: &ProposalRecord, run: u32) -> Result<Option<String>, Error> {
    let runs = house.store().runs(&record.id())?;
    let Some(made_ms) = runs.iter().find(|row| row.run == run).map(|row| row.made_ms) else {
        return Ok(None);
    };
    let (action, subject) = (RUN_STOPPED.to_owned(), record.study().full());
    let filter = TrailFilter { action, subject, from: Some(made_ms / 1_000), ..TrailFilter::default() };
    // Others may have pressed while the process ended.
    let first = house.store().trail_page(&filter, None, STOPS)?.pop();
    Ok(first.map(|entry| match entry.actor.as_str() {
        COMMAND_LINE => "stopped on the command line".to_owned(),
        actor => format!("stopped by {actor}"),
    }))
}

/// Says of a run that is over here how it ended, where that may be said: never on a frozen proposal, and not
/// before all were heard. Then the schedule says it later, while the proposal is open.
pub fn tell(house: &Arc<House>, id: &ProposalId, run: u32) -> Result<(), Error> {
    let (store, Some(identity)) = (house.store(), house.identity()) else { return Ok(()) };
    let (Some(record), Some(row)) = (store.standing(id)?, store.proposal(id)?) else { return Ok(()) };
    let own = identity.fingerprint();
    let runs = store.runs(id)?;
    let over = runs.iter().find(|row| row.run == run && row.ended_ms.is_some());
    let (Some(over), Some(me)) = (over, record.place(&own)) else { return Ok(()) };
    let named = |outcome: &RunOutcome| over.outcome.as_deref() == Some(outcome.name());
    let Some(outcome) = RunOutcome::ALL.into_iter().find(named) else { return Ok(()) };
    // Of an answer without `started`, which nobody can give back, others hear that it failed: a run that goes
    // on from it costs nothing.
    let begun = record.place(&own).and_then(|me| record.view().standings[me].runs().get(&run).copied());
    let outcome = match begun {
        Some(begun) if outcome.has_answer() && !begun.started => RunOutcome::Failed,
        _ => outcome,
    };
    // What was said on a proposal that is over is not compared, so a copy that was put back could say
    // another thing under a number that was used: only of a process that was there until now it is said.
    let speaks = !row.state.is_final() || house.jobs().run_of(id) == Some(run);
    let may = !record.is_frozen() && record.view().may(me, Act::Ended { run, outcome }).is_ok();
    if !speaks || !may || store.is_unheard(id)? {
        return Ok(());
    }
    // Without the ledger nothing is said yet: what it charged would be left out.
    let debits = debits(&house.rules().settings.ledger, &record, own)?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let said = RunEnd { run, outcome, kind: text(&over.kind), code: text(&over.code), debits };
    store.say(Speaker { by: SERVICE, identity, at_ms: now_ms() }, id, Said::Ended(said))?;
    let others = record.parties().iter().filter(|party| **party != own);
    others.for_each(|party| house.links().tell_log(*party));
    Ok(())
}

/// Says that this side's operator has to allow a further attempt, where a run was refused here and the ledger
/// bars what the study releases; whether it did.
pub fn asks(look: &Look<'_>) -> Result<bool, Error> {
    let Look { house, settings, row, .. } = look;
    let Some(run) = look.view.next_run(look.me) else { return Ok(false) };
    if row.held.as_deref() != Some("refused") || look.view.may(look.me, Act::Asks { run }).is_err() {
        return Ok(false);
    }
    let Some(own) = house.store().own_consent(&row.id)? else { return Ok(false) };
    let named = || settings.data.get(&own.data).map(|set| set.lineage.clone());
    let Some(lineage) = own.lineage.clone().or_else(named) else { return Ok(false) };
    let ledger = Ledger::look(&settings.ledger)?;
    for peer in look.peers() {
        let towards = PeerLineage { peer: peer.to_string(), lineage: lineage.clone() };
        if ledger.barred(&towards, &[])?.is_some() {
            look.say(Said::Asks { run })?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// A kind or code as a statement holds it.
fn word(text: &str) -> String {
    let fits = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
    text.chars().filter(fits).take(40).collect()
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |name: &str| {
        let path = folder.join(name);
        let small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= FILE_BYTES);
        let content = std::fs::read(path).ok().filter(|_| small)?;
        Some((name.to_owned(), content))
    };
    FILES.into_iter().filter_map(read).collect()
}

/// What this study charged and no earlier run of this proposal has told.
fn debits(ledger: &Path, record: &ProposalRecord, own: net::KeyFingerprint) -> Result<Vec<DebitLine>, Error> {
    let entries = Ledger::look(ledger)?.entries()?;
    let chain = record.place(&own).map_or(&[][..], |place| record.chain(place));
    let told = |release: &[u8; 32]| {
        chain.iter().any(|one| match &one.body().said {
            Said::Ended(end) => end.debits.iter().any(|debit| debit.release == *release),
            _ => false,
        })
    };
    let study = record.study().full();
    let ours = |entry: &&EntryRow| entry.study == study && entry.protects && !entry.given_back;
    let lines = entries.iter().filter(ours).filter_map(line);
    Ok(lines.filter(|line| !told(&line.release)).take(DEBITS).collect())
}

/// A debit as a statement holds it: what sizes cost is a sum of fractions, of which it has the decimals,
/// rounded up.
fn line(entry: &EntryRow) -> Option<DebitLine> {
    let number = |exact: &str| exact.parse::<Rational>().ok().map(|value| crate::agree::bound(&value));
    Some(DebitLine {
        release: unhex(&entry.release)?,
        rho: number(&entry.exact_rho)?,
        delta: number(&entry.exact_delta)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_said_in_letters_that_a_statement_holds() {
        assert_eq!(word("Not_ready 7-x"), "otready7-x");
        let said = RunEnd {
            run: 1,
            outcome: RunOutcome::Failed,
            kind: word("ÄB_c"),
            code: word("-1"),
            debits: Vec::new(),
        };
        assert_eq!((said.kind.as_str(), said.code.as_str()), ("c", "-1"));
    }

    #[test]
    fn a_debit_with_more_digits_than_a_statement_holds_is_rounded_up() {
        let long: Rational = format!("1/3{}", "7".repeat(90)).parse().expect("a number");
        let shown = crate::agree::bound(&long);
        let value: Rational = shown.parse().expect("a number");
        assert!(shown.len() <= 80 && value >= long, "{shown}");
    }
}

//! What states and statements mean, in plain words. What others wrote is cleaned, and its author is named.

use crate::acts::{Act, ProposalState, RunOutcome, Standing};
use crate::record::ProposalRecord;
use crate::said::{ChargeBound, ClosingCode, ClosingReason, ConsentTerms, RunEnd, RunOffer, RunWindow, Said};
use crate::steward::ConsentRequest;
use base::clean;
use net::identity::KeyFingerprint;
use page::numbers::{counted, power};
use release::rational::{Rational, parse, shown, small};
use std::fmt::Write;
use study::time::date;

/// How this side calls the parties, in the order of their places. Names are its own, not the peer's.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a>(pub &'a [String]);

impl Naming<'_> {
    fn of(&self, party: usize) -> String {
        self.0.get(party).map_or_else(|| format!("party {party}"), |name| clean(name).to_string())
    }

    fn all(&self, parties: impl IntoIterator<Item = usize>) -> String {
        let names: Vec<String> = parties.into_iter().map(|party| self.of(party)).collect();
        match names.split_last() {
            None => "nobody".to_owned(),
            Some((one, [])) => one.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        }
    }
}

/// A time to the minute, UTC.
#[must_use]
pub fn moment(ms: u64) -> String {
    let at = (ms / 1_000).cast_signed();
    format!("{} {:02}:{:02} UTC", date(at), at / 3_600 % 24, at / 60 % 60)
}

fn spans(windows: &[RunWindow]) -> String {
    let span = |w: &RunWindow| format!("from {} until {}", moment(w.from_ms), moment(w.until_ms));
    windows.iter().map(span).collect::<Vec<_>>().join(", or ")
}

fn code(code: ClosingCode) -> &'static str {
    match code {
        ClosingCode::Policy => "a rule of its policy",
        ClosingCode::Budget => "its privacy budget",
        ClosingCode::Data => "its data",
        ClosingCode::Purpose => "the purpose",
        ClosingCode::Expired => "out of time",
        ClosingCode::Other => "another reason",
    }
}

fn outcome(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Answered => "it has its answer",
        RunOutcome::Stored => "its ledger holds its answer",
        RunOutcome::Failed => "it failed",
        RunOutcome::Stopped => "it was stopped",
    }
}

/// A charge as people read it.
fn charge(rho: &str, delta: &str) -> String {
    let value = |text: &str| parse(text).unwrap_or_default();
    let delta = match value(delta) {
        none if none == Rational::default() => String::new(),
        delta => format!(" and delta {}", power(&small(&delta))),
    };
    format!("rho {}{delta}", shown(&value(rho)))
}

impl ProposalRecord {
    /// Where the proposal stands, and whose turn it is.
    #[must_use]
    pub fn state_words(&self, naming: Naming<'_>) -> String {
        let view = self.view();
        let (run, state) = (view.newest(), view.state());
        let who = |which: &dyn Fn(&Standing) -> bool| {
            naming.all((0..).zip(&view.standings).filter(|(_, party)| which(party)).map(|(place, _)| place))
        };
        let awaited = naming.all(view.awaited());
        match state {
            ProposalState::Empty => "Nothing is proposed.".to_owned(),
            ProposalState::Proposed => format!("To be decided by {awaited}."),
            ProposalState::Consented => {
                let some = who(&|party| party.consent.is_some());
                format!("Consented to by {some}. Waiting for the consent of {awaited}.")
            }
            ProposalState::Scheduled => self.scheduled(),
            ProposalState::Starting => format!("Run {run} is about to begin. Waiting for {awaited}."),
            ProposalState::Running => format!("Run {run} is under way."),
            ProposalState::Failed => format!("Run {run} broke off. {}", self.next_words(run, &awaited)),
            ProposalState::Half => {
                let has = who(&Standing::has_answer);
                format!(
                    "{has} has the answer, and not all have. A rerun costs nothing. {}",
                    self.next_words(run, &awaited)
                )
            }
            ProposalState::Asks => format!(
                "Before the next run begins the operator of {awaited} has to allow a further attempt: \
                 results that were paid for and that not all have reported are open (`tacit ledger allow`)."
            ),
            ProposalState::Closed => self.closed(naming),
            ProposalState::Answered => "Answered: all parties have the result.".to_owned(),
            ProposalState::Frozen => self.frozen_by(naming),
        }
    }

    fn frozen_by(&self, naming: Naming<'_>) -> String {
        let has = |party: &KeyFingerprint| self.forks().iter().any(|[one, _]| one.author() == *party);
        let places = (0..).zip(self.parties()).filter(|(_, party)| has(party)).map(|(place, _)| place);
        format!(
            "Frozen: {} has signed two statements that cannot both be. Both are kept as evidence, and \
             nothing more is said on this proposal; speak with its operator.",
            naming.all(places)
        )
    }

    fn scheduled(&self) -> String {
        match self.windows() {
            None => "All have consented. The first run may begin.".to_owned(),
            Some(windows) if windows.is_empty() => {
                "All have consented, but to times that have none in common: \
                                                     one of them has to withdraw, and propose again."
                    .to_owned()
            }
            Some(windows) => format!("All have consented. Runs may begin {}.", spans(&windows)),
        }
    }

    fn next_words(&self, run: u32, awaited: &str) -> String {
        let view = self.view();
        if view.standings.iter().any(Standing::is_in_a_run) {
            return format!("Waiting until it is over for {awaited} as well.");
        }
        let limit = view.standings.iter().filter_map(|party| party.consent).min().unwrap_or_default();
        let most = (0..view.standings.len()).map(|party| view.begun_anew(party)).max().unwrap_or_default();
        let left = limit.saturating_sub(most);
        format!(
            "Next is run {}; of those that begin anew {left} of {limit} are left, and one that goes on where \
             another broke off is none.",
            run + 1
        )
    }

    fn closed(&self, naming: Naming<'_>) -> String {
        let mut text = String::new();
        for party in 0..self.parties().len() {
            let Some((verb, reason)) = self.closing(party) else { continue };
            let ClosingReason { code: of, text: why } = reason;
            let _ = write!(text, "{verb} by {} ({}): {} ", naming.of(party), code(*of), clean(why));
        }
        let standings = self.view().standings;
        let had: Vec<usize> = (0..standings.len()).filter(|party| standings[*party].has_answer()).collect();
        if !had.is_empty() {
            let _ = write!(text, "{} had the answer before.", naming.all(had));
        }
        text.trim_end().to_owned()
    }

    /// The statement by which a party closed the proposal: the one that counts.
    fn closing(&self, party: usize) -> Option<(&'static str, &ClosingReason)> {
        let one = self.counted(party).find(|one| matches!(one.said.act(), Act::Refuse | Act::Withdraw))?;
        match &one.said {
            Said::Withdraw(reason) => Some(("Withdrawn", reason)),
            Said::Refuse(reason) => Some(("Refused", reason)),
            _ => None,
        }
    }

    /// What a statement says: that of `number` in the chain of `party`. Nothing where there is none.
    #[must_use]
    pub fn statement_words(&self, party: usize, number: usize, naming: Naming<'_>) -> Option<String> {
        let who = naming.of(party);
        Some(match &self.chain(party).get(number)?.body().said {
            Said::Propose(study) => {
                let mut text = format!(
                    "{who} proposes the study {}, to be decided until {}.",
                    clean(self.title()),
                    moment(study.expires_ms)
                );
                if !study.windows.is_empty() {
                    let _ = write!(text, " It should run {}.", spans(&study.windows));
                }
                if !study.note.is_empty() {
                    let _ = write!(text, " {}", clean(&study.note));
                }
                text
            }
            Said::Consent(terms) => consent_words(&who, terms, &|key| {
                let place = self.parties().iter().position(|party| party == key);
                place.map_or_else(|| key.to_string(), |party| naming.of(party))
            }),
            Said::Refuse(reason) => {
                format!("{who} refuses ({}): {}", code(reason.code), clean(&reason.text))
            }
            Said::Withdraw(reason) => {
                format!("{who} takes it back ({}): {}", code(reason.code), clean(&reason.text))
            }
            Said::Note(text) => format!("{who} writes: {}", clean(text)),
            Said::Ready(RunOffer { run, goes_on, earliest_ms, latest_ms, .. }) => format!(
                "{who} is ready for run {run}, which {}, from {} until {}.",
                if *goes_on { "goes on where an earlier one broke off" } else { "begins anew" },
                moment(*earliest_ms),
                moment(*latest_ms)
            ),
            Said::Started { run, .. } => format!("The process of {who} for run {run} runs."),
            Said::Ended(end) => ended_words(&who, end),
            Said::Asks { run } => {
                format!("Before run {run} the operator of {who} has to allow a further attempt.")
            }
            Said::Witness { of, entry, .. } => {
                let of = self.parties().iter().position(|party| party == of);
                let of = of.map_or_else(|| "another party".to_owned(), |party| naming.of(party));
                format!("{who} has seen the log of {of} up to entry {entry}.")
            }
        })
    }
}

impl ConsentRequest {
    /// What a steward would sign, in words; `name` calls the parties.
    #[must_use]
    pub fn words(&self, name: &dyn Fn(&KeyFingerprint) -> String) -> String {
        consent_words(&name(&self.organisation), &self.terms, name)
    }
}

fn consent_words(who: &str, terms: &ConsentTerms, name: &dyn Fn(&KeyFingerprint) -> String) -> String {
    let viewer = |bound: &ChargeBound| bound.viewer.as_ref().map_or_else(|| "everybody".to_owned(), name);
    let charges = terms.charges.iter();
    let charges = charges.map(|bound| format!("{} to {}", charge(&bound.rho, &bound.delta), viewer(bound)));
    let mut text = format!(
        "{who} consents until {}, once, in at most {} begun anew. Charged on its data is at most: {}.",
        moment(terms.expires_ms),
        counted(terms.runs.into(), "run"),
        if terms.charges.is_empty() { "nothing".to_owned() } else { charges.collect::<Vec<_>>().join("; ") }
    );
    if !terms.windows.is_empty() {
        let _ = write!(text, " Runs may begin {}.", spans(&terms.windows));
    }
    match terms.persons {
        0 => text += " A rule agreed, without a person.",
        2 => text += " Two people agreed.",
        _ => {}
    }
    if let Some(seal) = &terms.seal {
        let _ = write!(text, " A steward signed with the key {}.", seal.steward());
    }
    text
}

fn ended_words(who: &str, end: &RunEnd) -> String {
    let mut text = format!("Run {} is over for {who}: {}", end.run, outcome(end.outcome));
    if !end.kind.is_empty() {
        let _ = write!(text, ", an error of kind {}, code {}", end.kind, end.code);
    }
    text.push('.');
    let charges = end.debits.iter().map(|debit| charge(&debit.rho, &debit.delta));
    let charges: Vec<String> = charges.collect();
    if !charges.is_empty() {
        let _ = write!(text, " Charged in its ledger: {}.", charges.join("; "));
    }
    text
}

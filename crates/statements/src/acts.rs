//! From statements to the state of a proposal: a pure function of the set.
//!
//! A party's statements are a chain, so what of them counts follows from its chain alone ([`Standing`]); the
//! state follows from all standings ([`ProposalView::state`]). What does not count is kept and shown, and
//! changes nothing.

use crate::NOTES;
use std::collections::BTreeMap;

/// How a run ended for a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RunOutcome {
    /// It has its answer.
    Answered = 0,
    /// Its ledger holds the outputs or the answer already.
    Stored = 1,
    /// An error, or it did not begin in time.
    Failed = 2,
    /// Somebody stopped it.
    Stopped = 3,
}

impl RunOutcome {
    /// All of them, in the order of their bytes.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Stored, Self::Failed, Self::Stopped];

    /// Its name, as programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Stored => "stored",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether the party has what the study gives.
    #[must_use]
    pub fn has_answer(self) -> bool {
        matches!(self, Self::Answered | Self::Stored)
    }
}

/// What of a statement the state depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// Proposes the study.
    Propose,
    /// Takes part in so many runs begun anew.
    Consent {
        /// How many.
        runs: u8,
    },
    /// No.
    Refuse,
    /// Takes it back.
    Withdraw,
    /// A remark.
    Note,
    /// Can begin a run.
    Ready {
        /// Which.
        run: u32,
        /// Whether it goes on where an earlier one broke off.
        goes_on: bool,
    },
    /// Has begun it.
    Started {
        /// Which.
        run: u32,
    },
    /// It is over.
    Ended {
        /// Which.
        run: u32,
        /// How.
        outcome: RunOutcome,
    },
    /// The party's operator must allow it first.
    Asks {
        /// Which.
        run: u32,
    },
    /// Has seen another party's log.
    Witness,
    /// What the proposal does not allow to say: a consent to another program.
    Void,
}

/// One run, as a party has spoken of it: it has said that it is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStanding {
    /// It would go on where an earlier run broke off.
    pub goes_on: bool,
    /// Its process runs, or ran.
    pub started: bool,
    /// How it ended.
    pub ended: Option<RunOutcome>,
}

/// What a party's statements come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub(crate) may_propose: bool,
    pub(crate) proposed: bool,
    /// Runs begun anew that it agreed to.
    pub(crate) consent: Option<u8>,
    /// It has refused or withdrawn.
    pub(crate) closed: bool,
    pub(crate) runs: BTreeMap<u32, RunStanding>,
    /// The last run that its operator had to allow.
    pub(crate) asks: Option<u32>,
    pub(crate) notes: usize,
}

impl Standing {
    /// Of a chain. Only the `proposer` proposes.
    #[must_use]
    pub fn of(chain: impl IntoIterator<Item = Act>, proposer: bool) -> Self {
        let mut standing = Self { may_propose: proposer, ..Self::default() };
        chain.into_iter().for_each(|act| _ = standing.take(act));
        standing
    }

    /// Adds the next act of the chain; whether it counts.
    pub fn take(&mut self, act: Act) -> bool {
        let counts = self.allows(act);
        if counts {
            match act {
                Act::Propose => self.proposed = true,
                Act::Consent { runs } => self.consent = Some(runs),
                Act::Refuse | Act::Withdraw => self.closed = true,
                Act::Note => self.notes += 1,
                Act::Ready { run, goes_on } => {
                    self.runs.insert(run, RunStanding { goes_on, ..RunStanding::default() });
                }
                Act::Started { run } => self.runs.entry(run).or_default().started = true,
                Act::Ended { run, outcome } => self.runs.entry(run).or_default().ended = Some(outcome),
                Act::Asks { run } => self.asks = Some(run),
                Act::Witness | Act::Void => {}
            }
        }
        counts
    }

    /// Whether an act may follow on this party's own chain.
    pub(crate) fn allows(&self, act: Act) -> bool {
        match act {
            Act::Witness => true,
            Act::Void => false,
            Act::Propose => self.may_propose && !self.proposed,
            _ if self.closed => false,
            Act::Note => self.notes < NOTES,
            Act::Consent { .. } | Act::Refuse => self.consent.is_none(),
            Act::Withdraw => {
                (self.consent.is_some() || self.proposed) && !self.is_running() && !self.has_answer()
            }
            Act::Ready { run, .. } => self.consent.is_some() && !self.is_in_a_run() && run > self.newest(),
            Act::Asks { run } => {
                self.consent.is_some()
                    && !self.is_in_a_run()
                    && run > self.newest()
                    && self.asking().is_none()
            }
            Act::Started { run } => self.runs.get(&run).is_some_and(|r| !r.started && r.ended.is_none()),
            Act::Ended { run, outcome } => {
                let fits = |r: &RunStanding| r.ended.is_none() && (r.started || !outcome.has_answer());
                self.runs.get(&run).is_some_and(fits)
            }
        }
    }

    /// The newest run that it was ready for; 0 for none.
    pub(crate) fn newest(&self) -> u32 {
        self.runs.last_key_value().map_or(0, |(run, _)| *run)
    }

    /// Its process runs.
    pub(crate) fn is_running(&self) -> bool {
        self.runs.values().any(|run| run.started && run.ended.is_none())
    }

    /// It was ready for a run, or runs it, and has not said that it is over.
    pub(crate) fn is_in_a_run(&self) -> bool {
        self.runs.values().any(|run| run.ended.is_none())
    }

    /// It takes part.
    #[must_use]
    pub fn has_consented(&self) -> bool {
        self.consent.is_some()
    }

    /// It has refused or withdrawn.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// What it said of each run that it was ready for.
    #[must_use]
    pub fn runs(&self) -> &BTreeMap<u32, RunStanding> {
        &self.runs
    }

    /// It has what the study gives.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        self.runs.values().any(|run| run.ended.is_some_and(RunOutcome::has_answer))
    }

    /// The run that its operator has to allow and that it was not ready for since.
    pub(crate) fn asking(&self) -> Option<u32> {
        self.asks.filter(|run| *run > self.newest())
    }

    fn ended(&self, run: u32) -> Option<RunOutcome> {
        self.runs.get(&run).and_then(|run| run.ended)
    }

    fn answered(&self, run: u32) -> bool {
        self.ended(run).is_some_and(RunOutcome::has_answer)
    }
}

/// Where a proposal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProposalState {
    /// Nobody has proposed anything.
    Empty,
    /// To be decided.
    Proposed,
    /// Some have consented.
    Consented,
    /// All have; a run may begin.
    Scheduled,
    /// Some are ready for the newest run.
    Starting,
    /// All processes run.
    Running,
    /// The newest run broke off.
    Failed,
    /// Some have their answer and others do not: a rerun costs nothing.
    Half,
    /// A party's own operator has to allow a further attempt.
    Asks,
    /// Refused or withdrawn.
    Closed,
    /// All have their answer.
    Answered,
    /// Somebody has signed two things that cannot both be.
    Frozen,
}

impl ProposalState {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Empty,
        Self::Proposed,
        Self::Consented,
        Self::Scheduled,
        Self::Starting,
        Self::Running,
        Self::Failed,
        Self::Half,
        Self::Asks,
        Self::Closed,
        Self::Answered,
        Self::Frozen,
    ];

    /// The state of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether it never changes again, unless somebody turns out to have signed two things.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Closed | Self::Answered | Self::Frozen)
    }

    /// Its name, as programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Proposed => "proposed",
            Self::Consented => "consented",
            Self::Scheduled => "scheduled",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Half => "half",
            Self::Asks => "asks",
            Self::Closed => "closed",
            Self::Answered => "answered",
            Self::Frozen => "frozen",
        }
    }
}

/// A proposal as one holds it: the standing of each party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposalView {
    /// In one order of parties at everybody.
    pub standings: Vec<Standing>,
    /// Somebody has signed two things that cannot both be.
    pub frozen: bool,
}

impl ProposalView {
    /// The newest run that anybody was ready for; 0 for none.
    #[must_use]
    pub fn newest(&self) -> u32 {
        self.standings.iter().map(Standing::newest).max().unwrap_or_default()
    }

    /// Where the proposal stands. The first that holds, in the order of `docs/protocols/statements.md`.
    #[must_use]
    pub fn state(&self) -> ProposalState {
        // Which of two things somebody hears first differs: what follows from either is no common state.
        if self.frozen {
            return ProposalState::Frozen;
        }
        let all = &self.standings;
        let newest = self.newest();
        if (1..=newest).any(|run| all.iter().all(|party| party.answered(run))) {
            return ProposalState::Answered;
        }
        if all.iter().any(|party| party.closed) {
            return ProposalState::Closed;
        }
        if all.iter().any(|party| party.asking().is_some()) {
            return ProposalState::Asks;
        }
        if newest > 0 {
            return self.state_of_run(newest);
        }
        if all.iter().all(|party| party.consent.is_some()) {
            return ProposalState::Scheduled;
        }
        if all.iter().any(|party| party.consent.is_some()) {
            return ProposalState::Consented;
        }
        if all.iter().any(|party| party.proposed) { ProposalState::Proposed } else { ProposalState::Empty }
    }

    fn state_of_run(&self, run: u32) -> ProposalState {
        let all = &self.standings;
        if all.iter().any(|party| party.answered(run)) {
            return ProposalState::Half;
        }
        if self.somebody_ended(run) {
            return ProposalState::Failed;
        }
        let started = |party: &Standing| party.runs.get(&run).is_some_and(|run| run.started);
        if all.iter().all(started) { ProposalState::Running } else { ProposalState::Starting }
    }

    pub(crate) fn somebody_ended(&self, run: u32) -> bool {
        self.standings.iter().any(|party| party.ended(run).is_some())
    }

    /// The run that would begin next for a party, where one may: the newest one while nobody has left it,
    /// else one more.
    #[must_use]
    pub fn next_run(&self, party: usize) -> Option<u32> {
        let (newest, mine) = (self.newest(), self.standings.get(party)?);
        if newest == 0 || self.somebody_ended(newest) {
            return Some(newest + 1);
        }
        (mine.newest() < newest).then_some(newest)
    }

    /// Whether a run begins anew, as far as the parties have said: the first always does, a later one unless
    /// all of them go on with what they kept.
    fn is_anew(&self, run: u32, first: u32) -> bool {
        let said = self.standings.iter().filter_map(|party| party.runs.get(&run));
        run == first || said.into_iter().any(|run| !run.goes_on)
    }

    /// How many runs a party has begun anew.
    #[must_use]
    pub fn begun_anew(&self, party: usize) -> u8 {
        let Some(mine) = self.standings.get(party) else { return 0 };
        let started = || mine.runs.iter().filter(|(_, run)| run.started).map(|(run, _)| *run);
        let Some(first) = started().next() else { return 0 };
        let anew = started().filter(|run| self.is_anew(*run, first)).count();
        u8::try_from(anew).unwrap_or(u8::MAX)
    }

    /// Whether this run would be one more begun anew than all have agreed to.
    pub(crate) fn is_beyond(&self, party: usize, run: u32, goes_on: bool) -> bool {
        let limit = self.standings.iter().filter_map(|party| party.consent).min().unwrap_or_default();
        let begun = self.begun_anew(party);
        let anew = begun == 0 || !goes_on || self.is_anew(run, 0);
        anew && begun >= limit
    }

    /// Parties that act next, by their place. None where the proposal is final.
    #[must_use]
    pub fn awaited(&self) -> Vec<usize> {
        let newest = self.newest();
        let of = |who: &dyn Fn(&Standing) -> bool| -> Vec<usize> {
            (0..).zip(&self.standings).filter(|(_, party)| who(party)).map(|(place, _)| place).collect()
        };
        let in_newest = |party: &Standing| party.runs.get(&newest).copied();
        match self.state() {
            ProposalState::Closed
            | ProposalState::Answered
            | ProposalState::Frozen
            | ProposalState::Empty => Vec::new(),
            ProposalState::Asks => of(&|party| party.asking().is_some()),
            ProposalState::Proposed | ProposalState::Consented => of(&|party| party.consent.is_none()),
            ProposalState::Scheduled => of(&|_| true),
            ProposalState::Starting => {
                let unready = of(&|party| in_newest(party).is_none());
                match unready.is_empty() {
                    true => of(&|party| in_newest(party).is_some_and(|run| !run.started)),
                    false => unready,
                }
            }
            ProposalState::Running => of(&|_| true),
            ProposalState::Half | ProposalState::Failed => {
                let open = of(&Standing::is_in_a_run);
                if open.is_empty() { of(&|_| true) } else { open }
            }
        }
    }
}

//! What a party may say next: checked by the author before it signs, and again as what counts by everybody.

use crate::RUNS_IN_ALL;
use crate::acts::{Act, ProposalState, ProposalView, RunStanding, Standing};
use std::fmt;

/// Why something may not be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// There is no proposal, or there is one already.
    Proposal,
    /// It is refused, withdrawn or answered.
    Final,
    /// This party has said so, or has decided otherwise.
    Said,
    /// Its process runs, or it is ready and waits.
    InARun,
    /// It has its answer.
    HasAnswer,
    /// Not all have consented.
    NotAgreed,
    /// It is another run's turn.
    OtherRun,
    /// Another party has left this run, or is not ready for it.
    OthersNotThere,
    /// All runs that the parties agreed to are used up.
    UsedUp,
    /// There are as many notes as there may be.
    Notes,
    /// There is as much of it as a proposal holds.
    Full,
    /// Another party has said two things under one number.
    Frozen,
    /// The proposal is too old for a consent, or the own consent for a run.
    RanOut,
    /// A consent is to the proposed program, its charges are to the study's parties, and it expires.
    Terms,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proposal => "nothing is proposed here, or something is already",
            Self::Final => "the proposal is over: it was refused, withdrawn or answered. Propose again",
            Self::Said => "this party has said so, or has decided otherwise",
            Self::InARun => "this party is in a run: stop it, or wait until it ends",
            Self::HasAnswer => "this party has its answer, and what it has cannot be taken back",
            Self::NotAgreed => "not all parties have consented",
            Self::OtherRun => "it is the turn of another run",
            Self::OthersNotThere => "another party is not ready for this run, or has left it",
            Self::UsedUp => "all runs that the parties agreed to are used up: propose again",
            Self::Notes => "this party has written as many notes as a proposal holds",
            Self::Full => "this party has said as much of it as a proposal holds: propose again",
            Self::Frozen => {
                "a party has said two things under one number: nothing more is said on this proposal. Both \
                 are kept; speak with its operator"
            }
            Self::RanOut => "its time ran out: a proposal holds until it expires, and so does a consent",
            Self::Terms => {
                "a consent is to the program that was proposed, charges parties of the study, and expires \
                 within 90 days"
            }
        })
    }
}

impl ProposalView {
    /// Whether a party may say this now, as far as it has heard.
    ///
    /// # Errors
    /// Why not.
    pub fn may(&self, party: usize, act: Act) -> Result<(), Objection> {
        let mine = self.standings.get(party).ok_or(Objection::Proposal)?;
        let proposed = self.standings.iter().any(|party| party.proposed);
        if proposed == matches!(act, Act::Propose) {
            return Err(Objection::Proposal);
        }
        let ends = matches!(act, Act::Ended { .. } | Act::Witness);
        if self.state().is_final() && !ends {
            return Err(Objection::Final);
        }
        if let Act::Ready { run, .. } | Act::Asks { run } = act {
            self.may_begin(party, run)?;
        }
        match act {
            Act::Ready { run, goes_on } if self.is_beyond(party, run, goes_on) => Err(Objection::UsedUp),
            Act::Started { run } => self.may_start(party, run),
            _ => Ok(()),
        }?;
        if mine.allows(act) { Ok(()) } else { Err(self.why_not(mine, act)) }
    }

    /// Whether a run of this number is the next one for a party.
    fn may_begin(&self, party: usize, run: u32) -> Result<(), Objection> {
        if self.standings.iter().any(|party| party.consent.is_none()) {
            return Err(Objection::NotAgreed);
        }
        if self.standings[party].is_in_a_run() {
            return Err(Objection::InARun);
        }
        if run > RUNS_IN_ALL {
            return Err(Objection::UsedUp);
        }
        if self.next_run(party) == Some(run) { Ok(()) } else { Err(Objection::OtherRun) }
    }

    fn may_start(&self, party: usize, run: u32) -> Result<(), Objection> {
        let there = |party: &Standing| party.runs.contains_key(&run);
        if run != self.newest() || self.somebody_ended(run) || !self.standings.iter().all(there) {
            return Err(Objection::OthersNotThere);
        }
        let goes_on = self.standings[party].runs.get(&run).is_some_and(|run: &RunStanding| run.goes_on);
        if self.is_beyond(party, run, goes_on) { Err(Objection::UsedUp) } else { Ok(()) }
    }

    fn why_not(&self, mine: &Standing, act: Act) -> Objection {
        match act {
            Act::Note => Objection::Notes,
            Act::Void => Objection::Terms,
            Act::Withdraw if mine.has_answer() => Objection::HasAnswer,
            Act::Withdraw if mine.is_running() => Objection::InARun,
            Act::Withdraw => Objection::NotAgreed,
            Act::Ended { .. } | Act::Started { .. } => Objection::OtherRun,
            _ if self.state() == ProposalState::Closed => Objection::Final,
            _ => Objection::Said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Objection;

    #[test]
    fn errors_md_has_each_objection() {
        use Objection::{
            Final, Frozen, Full, HasAnswer, InARun, NotAgreed, Notes, OtherRun, OthersNotThere, Proposal,
            RanOut, Said, Terms, UsedUp,
        };
        let listed = include_str!("../../../docs/errors.md");
        let all = [
            Proposal,
            Final,
            Said,
            InARun,
            HasAnswer,
            NotAgreed,
            OtherRun,
            OthersNotThere,
            UsedUp,
            Notes,
            Full,
            Frozen,
            RanOut,
            Terms,
        ];
        for one in all {
            // A kind that is not above does not compile here.
            match one {
                Proposal | Final | Said | InARun | HasAnswer | NotAgreed | OtherRun | OthersNotThere
                | UsedUp | Notes | Full | Frozen | RanOut | Terms => (),
            }
            assert!(listed.contains(&format!("| `{one}` |")), "docs/errors.md does not have: {one}");
        }
    }
}

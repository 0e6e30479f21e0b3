//! How much of what counts is kept of a party on a proposal. What an honest party says within 90
//! days is below all of it; what was refused may come later, so lag costs nothing but time.

use crate::acts::{Act, ProposalView, Standing};
use crate::record::ProposalRecord;
use crate::said::Said;
use crate::{EARLY_RUNS, RUN_BYTES, WITNESSES};

impl ProposalView {
    /// Whether somebody begins a run before all have consented, as far as was heard. It may be that a consent
    /// is on its way: consents stay, so what is early once is not so for ever.
    pub(crate) fn is_early(&self, act: Act) -> bool {
        matches!(act, Act::Ready { .. } | Act::Asks { .. })
            && !self.standings.iter().all(Standing::has_consented)
    }
}

impl ProposalRecord {
    /// Whether a proposal holds no more of this from a party now: a further run before all have consented, or
    /// after as many as fit; a further word about logs. What closes it, and what ends a run, always fits.
    #[must_use]
    pub fn is_full(&self, party: usize, said: &Said) -> bool {
        let begins = |said: &Said| matches!(said, Said::Ready(_) | Said::Asks { .. });
        let bodies = || self.chain(party).iter().map(|one| (one, &one.body().said));
        let view = self.view();
        match said {
            // What is over here may go on for who has not heard of it, and is said of logs for ever.
            Said::Witness { .. } if !view.state().is_final() => {
                let words = bodies().filter(|(_, said)| matches!(said, Said::Witness { .. })).count();
                words >= WITNESSES * self.parties().len().saturating_sub(1)
            }
            said if begins(said) => {
                let begun = bodies().filter(|(_, said)| begins(said)).count();
                let of_runs =
                    |said: &Said| begins(said) || matches!(said, Said::Started { .. } | Said::Ended(_));
                let runs = bodies().filter(|(_, said)| of_runs(said));
                let bytes: usize = runs.map(|(one, _)| one.bytes().len()).sum();
                (view.is_early(said.act()) && begun >= EARLY_RUNS) || bytes >= RUN_BYTES
            }
            _ => false,
        }
    }
}

//! What the sizes that a match shows are charged, and when a match begins with dummies of its own.

use super::Event;
use super::agree::Agreement;
use super::owner::OwnerRun;
use crate::compose::nobody_matched;
use crate::kept::{MatchDraw, RunLog, journal_of};
use base::{ChannelError, Error, Fault, PartyId};
use matching::RestartPermit;
use matching::dummies::Dummies;
use privacy::dummies;
use privacy::ledger::{Bytes32, Debit, MatchStart, begun_id, match_again_id, match_id};
use release::rational::{shown, small};
use report::Disclosure;
use std::path::PathBuf;
use std::sync::Arc;
use study::Question;

/// How many matches of one study on the same data may begin with the same dummies, on one charge: a run may
/// break off once.
const MATCHES_OF_ONE_CHARGE: u64 = 2;

impl OwnerRun<'_> {
    /// Whether a match that was cut may begin afresh with its dummies, because the peer says that it has lost
    /// its half: counted as any beginning, as often as one charge allows.
    pub(super) fn afresh(&self, agreement: &Agreement) -> Result<Option<RestartPermit>, Error> {
        let id = self.begun_id(agreement);
        let Some(last) = self.lock()?.last_begun(&id)? else { return Ok(None) };
        let (number, over) = (last.number + 1, self.is_afresh(last.number + 1));
        let debits = self.debits_of(agreement, (number, over))?;
        let ledger = self.ledger.clone();
        Ok(Some(RestartPermit(Arc::new(move || {
            if over {
                return Err(Error::refused(
                    "the peer does not have its half of the match that was cut, and the made-up rows of this \
                     match have served before: this side has dropped its half; run again, and a match begins \
                     with others",
                ));
            }
            let mut ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
            let debits = |_| Ok(debits.clone());
            ledger.begin_match(&id, &debits).map(|_| ())
        }))))
    }

    /// This run's dummies: the same in the first two matches of the same study on the same data of all
    /// parties, so that a run which broke off shows nothing new; from the third on, and by policy always,
    /// drawn for this one.
    pub(super) fn dummies(&self, agreement: &Agreement, begun: &MatchDraw) -> Result<Option<Dummies>, Error> {
        let Some(rule) = &self.checked.study.matching.dummies else { return Ok(None) };
        let MatchDraw { number, nonce, afresh } = *begun;
        let afresh = afresh.then_some(MatchStart { number, nonce });
        let hash = self.checked.hash.as_bytes();
        let seed = self.lock()?.dummies_seed(hash, &agreement.tags, afresh.as_ref())?;
        dummies::dummies(rule, &seed).map(Some)
    }

    /// Counts the run once more where a run that went on has to match anew all the same: a peer that cuts and
    /// says that it has nothing gets no more matches than one that begins runs. Nor is another match charged
    /// that no operator began.
    pub(super) fn count_match(&mut self, agreement: &Agreement) -> Result<(), Error> {
        let Some(log) = &self.kept else { return Ok(()) };
        let (first, resumed) = (log.meetings == 1, log.progress().0 || log.is_matching());
        if self.matched.is_some() || self.goes_on() || (first && !resumed) {
            return Ok(());
        }
        // One in which nothing was said is taken up, and nothing is charged for that.
        let silent = self.silent_match(agreement)?.is_some();
        let number = self.next_number(agreement)?;
        let afresh = self.is_afresh(number);
        if !first && !silent && afresh && !self.debits_of(agreement, (number, afresh))?.is_empty() {
            return Err(Error::refused(
                "the connection broke in the match, and another match would be charged again: run again if \
                 that is wanted; with `work` a match goes on where it was",
            ));
        }
        self.begin_run()
    }

    /// Whether the match of this number has dummies of its own, and is charged for them.
    fn is_afresh(&self, number: u64) -> bool {
        number > MATCHES_OF_ONE_CHARGE || self.party.policy.fresh_dummies
    }

    /// What the sizes of the match are charged towards each peer when it begins, or goes on, in this run.
    /// Nothing without dummies, when no guarantee covers them, and nothing on a kept spine, which was charged
    /// when it was made.
    pub(super) fn match_debits(&self, agreement: &Agreement) -> Result<Vec<Debit>, Error> {
        if self.matched.is_some() {
            // It was charged when it was made.
            return Ok(Vec::new());
        }
        if let Some(MatchDraw { number, afresh, .. }) = self.going_on() {
            return self.debits_of(agreement, (number, afresh));
        }
        let last = self.lock()?.last_begun(&self.begun_id(agreement))?.map_or(0, |last| last.number);
        let number = if self.goes_on() { last.max(1) } else { self.next_number(agreement)? };
        self.debits_of(agreement, (number, self.is_afresh(number)))
    }

    /// The number of the match that begins now, should none go on: that of the last one where nothing was
    /// said in it.
    fn next_number(&self, agreement: &Agreement) -> Result<u64, Error> {
        if let Some(silent) = self.silent_match(agreement)? {
            return Ok(silent.number);
        }
        Ok(self.lock()?.last_begun(&self.begun_id(agreement))?.map_or(0, |last| last.number) + 1)
    }

    /// The last match to begin, where this one takes it up because nothing was said in it.
    fn silent_match(&self, agreement: &Agreement) -> Result<Option<MatchStart>, Error> {
        match self.matches_over_lanes() {
            true => self.lock()?.silent_match(&self.begun_id(agreement)),
            false => Ok(None),
        }
    }

    /// Of which beginning the made-up rows of the match over lanes are that goes on.
    fn going_on(&self) -> Option<MatchDraw> {
        self.under_way.and_then(|_| self.kept.as_ref()?.match_draw())
    }

    /// The number of the match whose sizes were charged: it may have begun once more, afresh, after that.
    pub(super) fn match_paid(&self) -> Option<u64> {
        Some(self.lock().ok()?.last_begun(&self.sizes_paid?).ok()??.number)
    }

    /// The error of a run that broke off after the sizes of its match were charged: it says what that cost,
    /// and what to do next. Of its release, where that began, the error says so itself.
    pub(super) fn leaving_sizes(&self, error: Error) -> Error {
        let left = matches!(error.kind(), Fault::Channel(ChannelError::Closed | ChannelError::Cut));
        let error = self.told_sizes(error);
        match left && self.matched_nobody && !self.releasing {
            false => error,
            true => error.leaving_too(
                "The sizes of the match say that hardly anybody is in both files, and the other party ends \
                 its run there unless it says --spend-anyway as well: both have to say it",
            ),
        }
    }

    fn told_sizes(&self, error: Error) -> Error {
        let (Some(number), Some(sizes)) = (self.match_paid(), self.sizes_charged()) else { return error };
        let silent = self.sizes_paid.and_then(|id| self.lock().ok()?.silent_match(&id).ok()?);
        let next = if self.kept.as_ref().is_some_and(|log| log.progress().0) {
            "the match is kept, and nothing more is charged for it"
        } else if self.goes_on() || self.kept.as_ref().is_some_and(|log| log.is_matching()) {
            "the match goes on where it was, and nothing more is charged for it"
        } else if silent.is_none() && self.is_afresh(number + 1) {
            "its match is made with other made-up rows, and the sizes are charged again"
        } else {
            "its match is made with the same made-up rows, and nothing more is charged for it"
        };
        if self.releasing {
            return match self.answer.kept() {
                // A run after this one shows it.
                true => error,
                false => error.leaving_too(&format!("Spent besides: {sizes}; in the next run {next}")),
            };
        }
        error.leaving(format!(
            "Spent: {sizes}; on the release: nothing. Run again, with the same study and the same data: \
             {next}"
        ))
    }

    /// What the sizes of this run's match were charged, in words; none where nothing was.
    fn sizes_charged(&self) -> Option<String> {
        self.sizes_paid?;
        let charge = dummies::charge(&self.checked.study, self.checked.me).ok()??;
        Some(format!(
            "rho {} and delta {} towards each other party, for the sizes that the match shows",
            shown(&charge.rho),
            page::numbers::power(&small(&charge.delta))
        ))
    }

    /// Ends a lift study whose match has nobody, as far as its sizes tell, before its release is charged. All
    /// parties see the same sizes, made-up rows in them, and so end alike: that a run goes on or ends tells
    /// nothing that these do not.
    pub(super) fn expect_somebody(&mut self, disclosed: &Disclosure) -> Result<(), Error> {
        let is_lift = matches!(self.checked.study.kind, Question::Lift(_));
        let Some(why) = nobody_matched(disclosed).filter(|_| is_lift) else { return Ok(()) };
        if self.party.consent.spend_anyway {
            self.matched_nobody = true;
            return Ok(());
        }
        let spent = self.sizes_charged().map(|sizes| format!("Spent: {sizes}; on the release: nothing. "));
        let spent = spent.unwrap_or_default();
        Err(Error::refused(format!(
            "the run ends before its result is computed, and nothing is charged for that: {why}"
        ))
        .leaving(format!(
            "{spent}With files whose identifiers are written alike the next run has another match; with \
             these it ends here again, unless who wants the result all the same says --spend-anyway at both \
             parties"
        )))
    }

    pub(super) fn begun_id(&self, agreement: &Agreement) -> Bytes32 {
        begun_id(self.checked.hash.as_bytes(), &agreement.tags)
    }

    /// Where a match that goes on after a cut keeps what it has done.
    pub(super) fn journal(&self) -> Option<PathBuf> {
        journal_of(self.party, &self.checked.hash.full())
    }

    /// Whether this party has its half of a match that was cut, or both go on with one over lanes.
    pub(super) fn goes_on(&self) -> bool {
        self.under_way.is_some() || self.is_cut()
    }

    /// Whether this party has its half of a match in `work`.
    pub(super) fn is_cut(&self) -> bool {
        self.journal().is_some_and(|folder| matching::is_cut(&folder))
    }

    fn debits_of(&self, agreement: &Agreement, (number, again): (u64, bool)) -> Result<Vec<Debit>, Error> {
        let me = self.checked.me;
        let Some(charge) = dummies::charge(&self.checked.study, me)? else { return Ok(Vec::new()) };
        if self.party.spine.is_some() {
            return Ok(Vec::new());
        }
        let study = *self.checked.hash.as_bytes();
        let peers = self.checked.roster.parties().filter(|peer| *peer != me);
        let debit = |peer: PartyId| {
            let id = match_id(&study, &agreement.tags, peer);
            let key = &self.checked.study.parties[peer.index()].key;
            Ok(Debit {
                release_id: if again { match_again_id(&id, number) } else { id },
                rho: charge.rho.clone(),
                delta: charge.delta.clone(),
                most_delta: self.party.policy.most_delta(),
                ..self.payment(agreement).nothing(key.clone(), key.clone())?
            })
        };
        peers.map(debit).collect()
    }

    /// Counts the match and charges it, unless it goes on after a cut with the dummies that it began with.
    pub(super) fn begin_match(&mut self, agreement: &Agreement) -> Result<MatchDraw, Error> {
        if let Some(draw) = self.going_on() {
            return Ok(draw);
        }
        // What either held of another match is void, before one more is counted.
        self.kept.as_deref_mut().map_or(Ok(()), RunLog::forget_match)?;
        let id = self.begun_id(agreement);
        if self.lock()?.promises(&id)?.is_some() {
            (self.watch.events)(Event::Note(
                "this party's ledger has another match of this study on these data under way, of a run \
                 whose `state` is another one, is gone or was put back: that match is lost as this one \
                 begins; if a process is at it, end that one"
                    .into(),
            ));
        }
        if self.goes_on()
            && let Some(last) = self.lock()?.last_begun(&id)?
        {
            return Ok(self.draw_of(last));
        }
        let of_number = |number| self.debits_of(agreement, (number, self.is_afresh(number)));
        let charges = !of_number(1)?.is_empty();
        if charges && self.goes_on() {
            // Its rows are not these: it could not go on, and nothing is charged for that.
            return Err(matching::other_rows());
        }
        let (begun, charged) = {
            let mut ledger = self.lock()?;
            let before = ledger.last_debit()?;
            let begun = match self.matches_over_lanes() {
                true => ledger.begin_silent_match(&id, &of_number)?,
                false => ledger.begin_match(&id, &of_number)?,
            };
            (begun, ledger.last_debit()? > before)
        };
        if charged && self.is_afresh(begun.number) {
            (self.watch.events)(Event::Note(format!(
                "match {} of this study on these data: its made-up rows are drawn anew, and charged again",
                begun.number
            )));
        }
        Ok(self.draw_of(begun))
    }

    fn draw_of(&self, MatchStart { number, nonce }: MatchStart) -> MatchDraw {
        MatchDraw { number, nonce, afresh: self.is_afresh(number) }
    }
}

//! The match of a run that is kept, over lanes of workers.

use super::Event;
use super::agree::Agreement;
use super::owner::{OwnerRun, WorkerLanes, units_job};
use crate::kept::{self, MatchDraw, RunLog};
use crate::stages::Stage as _;
use crate::stages::matching::{MatchStage, MatchUnit};
use crate::workers::{self, MATCH_STAGES, MatchName, MatchPlace, MatchStages, UnitsJob};
use base::Error;
use matching::{MatchOutcome, pid};
use net::Traffic;
use std::cell::RefCell;
use study::Study;

/// Whether the units of a study's match may go over lanes: where both parties keep what is done, and neither
/// has a match that goes on by itself.
pub(crate) fn goes_over_lanes(study: &Study) -> bool {
    kept::goes_on(study) && study.matching.matcher.features().lanes
}

impl OwnerRun<'_> {
    /// Whether the match of this meeting goes over lanes.
    pub(super) fn matches_over_lanes(&self) -> bool {
        self.match_on_lanes && self.match_lanes.is_some()
    }

    /// Matches over the lanes of this meeting, or goes on with the match of an earlier one that both name;
    /// what was said there is kept for the report.
    pub(super) fn match_over_lanes(
        &mut self,
        stage: &MatchStage<'_>,
        unit: &MatchUnit<'_>,
        (agreement, draw): (&Agreement, MatchDraw),
    ) -> Result<MatchOutcome, Error> {
        let missing = || Error::misuse("a match over lanes has rows in state, and lanes");
        let WorkerLanes { words, port } = self.match_lanes.take().ok_or_else(missing)?;
        let (state, _) = self.checked.rows.spool().ok_or_else(missing)?;
        let run = blake3::derive_key("tacit 2026-12 lanes of a match v1", self.session.id());
        let name = self.under_way.unwrap_or(agreement.name);
        let (tags, goes_on) = (agreement.tags.clone(), self.under_way.is_some());
        let of = MatchName { name, tags, draw, goes_on };
        let place = self.worker_place(self.workers.into());
        let (threads, scratch) = match place.cores() {
            // Folders of this machine may not be there.
            Some(cores) => (cores, None),
            None => ((unit.options.threads / self.workers as usize).max(1), unit.options.scratch.clone()),
        };
        let columns = MatchPlace::new(state, &self.party.store, scratch, threads);
        let job = UnitsJob {
            lanes: self.workers as u16,
            log: self.kept.as_deref_mut().map(RefCell::new),
            ..units_job((self.party, self.checked, self.watch), run, (stage.name(), &place, &port))
        };
        let session = &mut self.session;
        let done = workers::with_workers(&job, words, &port, |crew| {
            let mut stages = MatchStages::new(crew, of, columns, state.clone())?;
            let done = stage.run_over_lanes(unit, session, &mut stages)?;
            Ok((done, stages.take_done()))
        });
        drop(job);
        if done.as_ref().is_err_and(pid::is_deviation) {
            // A peer that deviated would try again under the keys of this match. That it deviated matters
            // more than what could not be written.
            if let Err(error) = self.kept.as_deref_mut().map_or(Ok(()), RunLog::forget_match) {
                let text = format!("the peer deviated, and what is kept of its match could not go: {error}");
                (self.watch.events)(Event::Note(text));
            }
        }
        let (done, said) = done?;
        self.match_done = Some(said);
        Ok(done)
    }

    /// Units of each stage of the match, as many as it began with: the number of workers may be another one
    /// by now.
    pub(super) fn units_of_match(&self) -> u32 {
        let all = self.match_done.as_ref().map_or(0, |done| done.units);
        (all / MATCH_STAGES.count() as u64) as u32
    }

    /// What was said in the match, over lanes as well.
    pub(super) fn match_said(&self) -> Traffic {
        let mut traffic = self.session.traffic().clone();
        self.match_done.iter().for_each(|done| traffic.merge(&done.traffic));
        traffic
    }
}

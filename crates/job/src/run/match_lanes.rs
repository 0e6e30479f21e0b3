//! The match of a run that is kept, over lanes of workers.

use super::owner::{OwnerRun, WorkerLanes, units_job};
use crate::kept;
use crate::stages::Stage as _;
use crate::stages::matching::{MatchStage, MatchUnit};
use crate::workers::{self, MatchPlace, MatchStages, UnitsDone, UnitsJob};
use base::Error;
use matching::MatchOutcome;
use net::Traffic;
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

    /// Matches over the lanes of this meeting; what was said there is kept for the report.
    pub(super) fn match_over_lanes(
        &mut self,
        stage: &MatchStage<'_>,
        unit: &MatchUnit<'_>,
    ) -> Result<MatchOutcome, Error> {
        let missing = || Error::misuse("a match over lanes has rows in state, and lanes");
        let WorkerLanes { words, port } = self.match_lanes.take().ok_or_else(missing)?;
        let (state, _) = self.checked.rows.spool().ok_or_else(missing)?;
        let run = blake3::derive_key("tacit 2026-12 lanes of a match v1", self.session.id());
        let place = self.worker_place(self.workers.into());
        let (threads, scratch) = match place.cores() {
            // Folders of this machine may not be there.
            Some(cores) => (cores, None),
            None => ((unit.options.threads / self.workers as usize).max(1), unit.options.scratch.clone()),
        };
        let columns = MatchPlace::new(state, &self.party.store, scratch, threads);
        let job = UnitsJob {
            lanes: self.workers as u16,
            ..units_job((self.party, self.checked, self.watch), run, (stage.name(), &place, &port))
        };
        let session = &mut self.session;
        let (done, said) = workers::with_workers(&job, words, &port, |crew| {
            let mut stages = MatchStages::new(crew, run, columns, state.clone());
            let done = stage.run_over_lanes(unit, session, &mut stages)?;
            Ok((done, stages.take_done()))
        })?;
        self.match_said = Some(said);
        Ok(done)
    }

    /// What was said in the match, over lanes as well; and what came to nothing there.
    pub(super) fn take_match_said(&mut self) -> (Traffic, Option<UnitsDone>) {
        let mut traffic = self.session.traffic().clone();
        let said = self.match_said.take();
        said.iter().for_each(|said| traffic.merge(&said.traffic));
        (traffic, said)
    }
}

//! What a run has cost so far, over all its processes and meetings: a record beside those of its units, which
//! has all of before, so that the last one counts. A process that is killed has told what it had spent as it
//! wrote last.

use crate::stages::AGAIN;
use report::{FailedCount, FailedUnit, ProcessPeak, StageBefore};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// In the order in which stages began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunSpent {
    stages: Vec<(String, StageBefore)>,
    /// Attempts that failed, and the largest memory of processes, by sort.
    failed: Vec<FailedCount>,
    peaks: Vec<ProcessPeak>,
}

impl RunSpent {
    fn add(&mut self, name: &str, spent: &StageBefore) {
        if spent.seconds == 0.0 && spent.bytes_sent.iter().all(|sent| *sent == 0) {
            return;
        }
        let at = self.stages.iter().position(|(of, _)| of == name).unwrap_or_else(|| {
            self.stages.push((name.to_owned(), StageBefore::default()));
            self.stages.len() - 1
        });
        let all = &mut self.stages[at].1;
        all.seconds += spent.seconds;
        all.bytes_sent.resize(all.bytes_sent.len().max(spent.bytes_sent.len()), 0);
        all.bytes_sent.iter_mut().zip(&spent.bytes_sent).for_each(|(all, more)| *all += more);
    }

    fn count(&mut self, failed: &FailedUnit, count: u64) {
        let FailedUnit { stage, cause, peer, .. } = failed;
        let same = |of: &&mut FailedCount| (&of.stage, &of.cause, of.peer) == (stage, cause, *peer);
        match self.failed.iter_mut().find(same) {
            Some(of) => of.count += count,
            None => {
                let (stage, cause, peer) = (stage.clone(), cause.clone(), *peer);
                self.failed.push(FailedCount { stage, cause, peer, count });
            }
        }
    }

    fn peak(&mut self, of: &ProcessPeak) {
        let same = |all: &&mut ProcessPeak| (&all.process, &all.stage) == (&of.process, &of.stage);
        match self.peaks.iter_mut().find(same) {
            Some(all) => all.peak_memory_bytes = all.peak_memory_bytes.max(of.peak_memory_bytes),
            None => self.peaks.push(ProcessPeak { lane: None, ended: true, before: true, ..of.clone() }),
        }
    }

    fn with(mut self, more: &Self) -> Self {
        more.stages.iter().for_each(|(name, spent)| self.add(name, spent));
        for FailedCount { stage, cause, peer, count } in &more.failed {
            let (stage, cause) = (stage.clone(), cause.clone());
            self.count(&FailedUnit { stage, unit: 0, attempt: 0, cause, peer: *peer }, *count);
        }
        more.peaks.iter().for_each(|peak| self.peak(peak));
        self
    }

    /// The stages, in the order in which they began.
    pub fn stages(&self) -> impl Iterator<Item = (&str, &StageBefore)> {
        self.stages.iter().map(|(name, spent)| (&**name, spent))
    }

    pub fn failed(&self) -> &[FailedCount] {
        &self.failed
    }

    /// How many attempts failed.
    pub fn failures(&self) -> u64 {
        self.failed.iter().map(|of| of.count).sum()
    }

    pub fn peaks(&self) -> &[ProcessPeak] {
        &self.peaks
    }
}

/// What was spent before the parties met last, and since: told by stages and coordinators, written by the
/// log.
#[derive(Clone, Default)]
pub(crate) struct SpentBook(Arc<Mutex<SpentPages>>);

#[derive(Default)]
struct SpentPages {
    before: RunSpent,
    now: RunSpent,
    /// The stage under way, and since when.
    under_way: Option<(String, Instant)>,
}

impl SpentBook {
    fn pages(&self) -> MutexGuard<'_, SpentPages> {
        // Numbers stay what they are, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an earlier process has written down is so again.
    pub fn recall(&self, all: RunSpent) {
        self.pages().before = all;
    }

    /// An attempt had failed before the parties met.
    pub fn failed_before(&self, failed: &FailedUnit) {
        self.pages().before.count(failed, 1);
    }

    pub fn before(&self) -> RunSpent {
        self.pages().before.clone()
    }

    /// The parties meet again: what was spent was before that.
    pub fn meet(&self) {
        let before = self.all();
        *self.pages() = SpentPages { before, ..SpentPages::default() };
    }

    pub fn begin(&self, stage: &str) {
        self.pages().under_way = Some((stage.to_owned(), Instant::now()));
    }

    /// A stage is over, or broke off, and has said this that no later meeting counts.
    pub fn end(&self, stage: &str, bytes_sent: Vec<u64>) {
        let mut pages = self.pages();
        let since = pages.under_way.take_if(|(of, _)| of == stage).map(|(_, since)| since);
        let seconds = since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        pages.now.add(stage, &StageBefore { seconds, bytes_sent });
    }

    /// The stage under way.
    pub fn under_way(&self) -> Option<String> {
        self.pages().under_way.as_ref().map(|(stage, _)| stage.clone())
    }

    pub fn failed(&self, failed: &FailedUnit) {
        self.pages().now.count(failed, 1);
    }

    /// An attempt that came to nothing has said so much.
    pub fn lost(&self, bytes_sent: Vec<u64>) {
        self.pages().now.add(AGAIN, &StageBefore { seconds: 0.0, bytes_sent });
    }

    pub fn peak(&self, peak: &ProcessPeak) {
        self.pages().now.peak(peak);
    }

    /// All of it, as of now.
    pub fn all(&self) -> RunSpent {
        let pages = self.pages();
        let mut all = pages.before.clone().with(&pages.now);
        if let Some((stage, since)) = &pages.under_way {
            let seconds = since.elapsed().as_secs_f64();
            all.add(stage, &StageBefore { seconds, bytes_sent: Vec::new() });
        }
        all
    }
}

//! What is told of those who take part: that they are silent, and how much memory they took.

use super::super::WorkerPlace;
use super::{Coordinator, SILENT, SILENT_TOLD};
use crate::run::Event;
use crate::usage;
use report::ProcessPeak;
use std::time::{Duration, Instant};

/// After how long silence is told: each time in a stage after twice as long, since whoever pauses again and
/// again would fill the log by that.
pub(super) struct Patience {
    told: bool,
    after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { told: false, after: SILENT_TOLD }
    }
}

impl Patience {
    /// Whether silence of so long is to be told now; after how many seconds.
    fn tells(&mut self, silent: Duration) -> Option<u64> {
        let tells = !self.told && silent > self.after;
        self.told |= tells;
        tells.then_some(self.after.as_secs())
    }

    /// Somebody is heard; whether silence was told.
    pub(super) fn ends(&mut self) -> bool {
        let told = std::mem::replace(&mut self.told, false);
        self.after *= if told { 2 } else { 1 };
        told
    }

    /// A stage begins.
    pub(super) fn begins_anew(&mut self) {
        self.after = SILENT_TOLD;
    }
}

impl Coordinator<'_, '_> {
    /// Says who is silent, once: rows that do not move have a reason then.
    pub(super) fn tell_silence(&mut self, now: Instant) {
        let peer = self.job.roster.name(self.job.me.other());
        if let Some(told) = self.patience.tells(now.saturating_duration_since(self.peer_heard)) {
            (self.job.events)(Event::Note(format!(
                "{peer} has said nothing for {told} s: it is at work by itself, or stopped, or the network is"
            )));
        }
        for (lane, here) in self.lanes.iter_mut().enumerate() {
            let silent = here.heard.map_or(Duration::ZERO, |heard| now.saturating_duration_since(heard));
            if let Some(told) = here.patience.tells(silent) {
                (self.job.events)(Event::Note(format!(
                    "worker {lane} of this party has said nothing for {told} s; after {} s another one takes \
                     its place",
                    SILENT.as_secs()
                )));
            }
        }
    }

    pub(super) fn hears_peer(&mut self) {
        self.peer_heard = Instant::now();
        if self.patience.ends() {
            let peer = self.job.roster.name(self.job.me.other());
            (self.job.events)(Event::Note(format!("{peer} is heard again")));
        }
    }

    /// The largest memory of this process and of its workers' so far.
    pub(super) fn all_peaks(&self) -> Vec<ProcessPeak> {
        let workers = match self.job.place {
            WorkerPlace::Threads => 0,
            _ => self.job.lanes,
        };
        let workers = (0..workers).map(|lane| self.peak(lane, false)).chain(self.ended.iter().cloned());
        [ProcessPeak::of_coordinator(usage::peak_memory_bytes())]
            .into_iter()
            .chain(workers.filter(|peak| peak.peak_memory_bytes > 0))
            .collect()
    }

    /// The largest memory of a lane's worker, as it told last.
    pub(super) fn peak(&self, lane: u16, ended: bool) -> ProcessPeak {
        let (process, stage) = ("worker".to_owned(), self.job.step.to_owned());
        let peak_memory_bytes = self.lanes[usize::from(lane)].peak_memory;
        ProcessPeak { process, stage, lane: Some(lane), peak_memory_bytes, ended, before: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who pauses for six seconds a thousand times is told of once in a stage.
    #[test]
    fn silence_is_told_after_twice_as_long_each_time() {
        let mut patience = Patience::default();
        let mut told = |pauses: usize, seconds| {
            let pause = |_: &usize| {
                let tells = patience.tells(Duration::from_secs(seconds)).is_some();
                assert!(!tells || patience.tells(Duration::from_secs(seconds + 1)).is_none(), "once");
                assert_eq!(patience.ends(), tells);
                tells
            };
            (0..pauses).filter(pause).count()
        };
        assert_eq!((told(1_000, 5), told(1_000, 6), told(1_000, 10), told(1_000, 600)), (0, 1, 0, 6));
        patience.begins_anew();
        assert_eq!(patience.tells(Duration::from_secs(6)), Some(5));
    }
}

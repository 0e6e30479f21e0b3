//! What is told of those who take part: that they are silent, and how much memory they took.

use super::super::WorkerPlace;
use super::{Coordinator, SILENT, SILENT_TOLD};
use crate::run::Event;
use crate::usage;
use report::ProcessPeak;
use std::time::Instant;

impl Coordinator<'_, '_> {
    /// Says who is silent, once: rows that do not move have a reason then.
    pub(super) fn tell_silence(&mut self, now: Instant) {
        let peer = self.job.roster.name(self.job.me.other());
        let told = SILENT_TOLD.as_secs();
        if now - self.peer_heard.0 > SILENT_TOLD && !std::mem::replace(&mut self.peer_heard.1, true) {
            (self.job.events)(Event::Note(format!(
                "{peer} has said nothing for {told} s: it is at work by itself, or stopped, or the network is"
            )));
        }
        for (lane, here) in self.lanes.iter_mut().enumerate() {
            let silent = here.heard.is_some_and(|heard| now - heard > SILENT_TOLD);
            if silent && !std::mem::replace(&mut here.silence_told, true) {
                (self.job.events)(Event::Note(format!(
                    "worker {lane} of this party has said nothing for {told} s; after {} s another one takes \
                     its place",
                    SILENT.as_secs()
                )));
            }
        }
    }

    pub(super) fn hears_peer(&mut self) {
        if std::mem::replace(&mut self.peer_heard, (Instant::now(), false)).1 {
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

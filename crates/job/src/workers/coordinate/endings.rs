//! How the work of a crew ends: goodbyes, and words for what has failed.

use super::super::COMPUTE;
use super::super::launch::CrewEvent;
use super::super::order::WorkerEvent;
use super::{Coordinator, CoordinatorInput, IDLE, TICK};
use base::{At, ChannelError, Error, Fault};
use std::time::{Duration, Instant};
use units::{ByeReason, FailureCause, UnitDeviation, UnitFailure, Word};

impl Coordinator<'_, '_> {
    /// Tells the peer that something has failed.
    pub(super) fn fail(&mut self, error: &Error) {
        // Who was replaced says nothing more: another process speaks for this party.
        if self.job.log.as_ref().is_some_and(|log| log.borrow().fenced) {
            return;
        }
        let reason = match error.kind() {
            Fault::Deviated(_) => ByeReason::Deviation,
            _ => ByeReason::Failed,
        };
        // The peer may be what is gone.
        let _ = self.words.say(&Word::Bye { reason }).and_then(|()| self.words.finish());
    }

    /// What own workers have noticed and nobody has looked at, where the peer went first: who deviates on a
    /// lane and cuts the words at once has deviated all the same. Those at an attempt get a moment to tell.
    pub(super) fn deviation_behind(&mut self, error: Error) -> Error {
        if !matches!(error.kind(), Fault::Channel(_)) {
            return error;
        }
        let until = Instant::now() + TICK;
        loop {
            let at_work = self.stage.number() != COMPUTE && self.lanes.iter().any(|l| l.running.is_some());
            let wait = if at_work { until.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
            let Ok(input) = self.inputs.recv_timeout(wait) else { return error };
            let CoordinatorInput::Crew(CrewEvent { lane, event, .. }) = input else { continue };
            match event {
                WorkerEvent::GaveUp { cause: FailureCause::Deviation, error, .. } => return error,
                WorkerEvent::GaveUp { .. }
                | WorkerEvent::Finished { .. }
                | WorkerEvent::Down { .. }
                | WorkerEvent::Gone { .. } => self.lanes[usize::from(lane)].running = None,
                _ => {}
            }
        }
    }

    /// Parts after the last seal.
    pub(super) fn leave(&mut self) -> Result<(), Error> {
        self.words.say(&Word::Bye { reason: ByeReason::Done })?;
        self.words.finish()?;
        let until = Instant::now() + self.job.deadline;
        while !self.parted {
            match self.inputs.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(input) => self.part(input)?,
                Err(_) => return Err(self.stands_still(self.job.deadline)),
            }
        }
        Ok(())
    }

    pub(super) fn error(&self, kind: Fault) -> Error {
        Error::new(self.job.at(self.job.step), kind)
    }

    pub(super) fn deviates(&self, UnitDeviation(check): UnitDeviation) -> Error {
        let At { party, peer, step } = self.job.at(self.job.step);
        let accused = peer.clone().into_iter().collect();
        let accusation = base::Accusation { by: party, accused, step, through: None };
        self.error(Fault::Deviated(check)).accusing(accusation)
    }

    pub(super) fn stands_still(&self, limit: Duration) -> Error {
        let limit_ms = limit.as_millis() as u64;
        self.error(Fault::Channel(ChannelError::Deadline { limit_ms }))
    }

    /// Of a crew in which nothing has happened for [`IDLE`]: who was awaited.
    pub(super) fn nothing_happens(&self) -> Error {
        let (whose, hint) = if !self.lanes.iter().any(|lane| lane.there) {
            ("this party's", "see that there is room for one where its launcher starts them")
        } else if !self.lanes.iter().any(|lane| lane.peer.is_some()) {
            ("the peer's", "see the peer's own output")
        } else {
            return self.stands_still(IDLE);
        };
        let limit_s = IDLE.as_secs();
        self.error(Fault::Channel(ChannelError::Io(format!(
            "none of {whose} workers was there for {limit_s} s, after which a run in which nothing happens \
             ends; {hint}"
        ))))
    }

    pub(super) fn left(&self, reason: ByeReason) -> Error {
        let text = match reason {
            ByeReason::Done => "it left before all units were sealed",
            ByeReason::Failed => "the computation failed there",
            ByeReason::Stopped => "somebody ended the computation there",
            ByeReason::Deviation => "it holds that this party deviates",
        };
        self.error(Fault::Channel(ChannelError::Io(text.to_owned())))
    }

    pub(super) fn ended(&self, failure: UnitFailure) -> Error {
        let spent = matches!(failure, UnitFailure::Numbers { .. } | UnitFailure::Lost { .. });
        let of_match = self.stage.number() != COMPUTE;
        if let Some(log) = &self.job.log {
            let mut log = log.borrow_mut();
            // A match that nobody can go on with is made anew, of the rows that are read.
            let stays = spent && of_match && log.forget_match().is_ok();
            (log.gave_up, log.spent) = (true, spent && !stays);
        }
        let text = match failure {
            UnitFailure::Numbers { unit } if of_match => format!(
                "unit {unit} of the match was begun as often as it may be: run again, and the match is made \
                 anew"
            ),
            UnitFailure::Lost { unit } if of_match => format!(
                "both count on all units of a stage of the match, and the peer's `state` lost the result of \
                 unit {unit}: run again, and the match is made anew"
            ),
            UnitFailure::Numbers { unit } => format!(
                "unit {unit} was begun as often as it may be, over all processes of this run: remove it at \
                 both parties and begin anew: tacit state drop"
            ),
            UnitFailure::Lost { unit } => format!(
                "all units were sealed, and the peer's `state` lost the result of unit {unit}: remove this \
                 run at both parties and begin anew: tacit state drop"
            ),
            UnitFailure::Attempts { unit, cause, peer } => {
                let whose = if peer { "the peer's" } else { "this party's" };
                let most = units::ATTEMPTS;
                format!(
                    "attempts at unit {unit} failed too often ({most} of one process at most), at last on \
                     {whose} side: {}",
                    cause.words()
                )
            }
            UnitFailure::Lane { lane, cause } => self.lane_failed(lane, cause),
        };
        // What own workers told last is no reason for what failed at the peer.
        let at_peer = self.failed.last().is_some_and(|failed| failed.peer);
        let why = self.why.as_ref().filter(|_| !at_peer);
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        self.error(Fault::Channel(ChannelError::Io(text + &why)))
    }

    /// That a lane fails again and again, and whose worker went or why, as attempts over lanes have failed.
    fn lane_failed(&self, lane: u16, cause: FailureCause) -> String {
        let (tried, what) = (units::LANE_FAILURES, self.stage.what());
        let last = self.failed.last().map(|failed| (&*failed.cause, failed.peer));
        let at_last = match last {
            Some((cause, true)) => {
                format!("on the side of {}: {cause}", self.job.roster.name(self.job.me.other()))
            }
            Some((cause, false)) => format!("on this party's side: {cause}"),
            None => format!("before an attempt: {}", cause.words()),
        };
        format!("lane {lane} failed {tried} times on end in units{what}, at last {at_last}")
    }
}

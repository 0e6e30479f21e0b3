//! Workers compute the units of a stage between two parties, each over a lane of its own to the peer's worker
//! of the same number, and units whose attempt fails are attempted again, those alone.
//!
//! Functionality: shares of a stage's totals at both parties, as if one session had computed all rows.
//!
//! Security model: that of the engine, for each attempt. An attempt is an execution by itself with fresh
//! Delta, base OTs and seeds, so that k attempts at a unit are k independent executions on the same inputs;
//! what leaves a unit are shares, of which one attempt's at both sides are added ([`units`]).
//!
//! Who learns what: the peer sees which attempts failed and for which of seven causes; a worker sees the
//! program and the rows of the units that it computes, and no key of its party.
//!
//! The paper (Movahedi et al. 2021, section 2.4) has coordinators, workers and an aggregator. Here the
//! coordinator aggregates, and workers are threads or processes of its machine, or processes that a launcher
//! starts.
//!
//! Cost: the engine's price of every unit; besides, under no price, 8 bytes each way, the hellos of a lane,
//! and the words of `units`.

mod called;
mod coordinate;
mod frames;
mod lane;
mod launch;
mod match_units;
mod order;
mod process;
mod remote;
mod tunnel;
mod words;

use crate::engines::StudyEngine;
use crate::kept::RunLog;
use crate::prepare::Built;
use crate::ranges::RowRanges;
use crate::run::{Event, session_seed};
use crate::stages::compute::UnitRows;
use base::{At, Error, PartyId, Roster};
use engine::Shares;
use lane::LaneJob;
use launch::{Crew, CrewEvent};
use net::{IpNetwork, RowProgress, Traffic};
use report::{FailedUnit, ProcessPeak, WorkersInfo};
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use units::{UnitRecord, UnitsSetting};
use zeroize::Zeroizing;

pub use called::{CallAnswer, CalledWorker, WorkerCall, WorkerLauncher};
pub(crate) use coordinate::{UnitsCrew, with_workers};
pub(crate) use lane::LaneHost;
pub use launch::{WorkerCommand, WorkerPlace};
pub(crate) use match_units::{MatchName, MatchPlace, MatchStages, stage_of_match};
pub(crate) use order::{FinishedWork, UnitWork};
pub use process::run_worker;
pub(crate) use remote::RemoteRows;
pub(crate) use words::WORD_CHANNELS;

/// The number of the computation among stages, in words, seals and logs.
pub(crate) const COMPUTE: u8 = 1;
/// Those of a match over lanes.
pub(crate) const MATCH_STAGES: RangeInclusive<u8> = 2..=4;

/// Who does units, and how.
pub(crate) struct UnitsJob<'a> {
    /// Names this crew and meeting, the same at both: its lanes are no other one's.
    pub run: [u8; 32],
    pub me: PartyId,
    pub roster: &'a Roster,
    pub lanes: u16,
    /// What workers are told to compute with, where they do.
    pub engine: Option<(&'a StudyEngine, &'a Built)>,
    /// The step of its errors and progress.
    pub step: &'static str,
    pub place: &'a WorkerPlace,
    /// Where workers await the peer's, where each does so itself.
    pub host: Option<LaneHost>,
    pub allow: &'a [IpNetwork],
    /// How long a peer may be silent.
    pub deadline: Duration,
    pub progress: RowProgress,
    /// Told what happens: what its operator should know, and how many units are done.
    pub events: &'a (dyn Fn(Event) + Send + Sync),
    /// Where what is done is kept; none of a run that does not go on.
    pub log: Option<RefCell<&'a mut RunLog>>,
}

/// A stage and its units.
pub(crate) trait UnitsStage {
    /// Tells stages of a run apart, in words and seals.
    fn number(&self) -> u8;

    /// Names what its units are of, the same at both.
    fn of(&self) -> [u8; 32];

    fn units(&self) -> u32;

    /// What reports call the stage.
    fn name(&self) -> &'static str;

    /// Which stage that is, behind a unit, where it is not the computation.
    fn what(&self) -> String;

    /// Rows of a unit.
    fn rows(&self, unit: u32) -> u64;

    /// What a worker does at an attempt.
    fn work(&self, unit: u32, attempt: u32) -> Result<UnitWork, Error>;
}

/// The units of the computation: ranges of rows.
pub(crate) struct ComputeUnits<'a> {
    /// Names the match whose rows are computed, the same at both and in every run that goes on with it.
    pub stage_of: [u8; 32],
    pub ranges: RowRanges,
    /// The rows of a unit.
    pub rows: &'a dyn Fn(u64) -> Result<UnitRows, Error>,
}

impl UnitsStage for ComputeUnits<'_> {
    fn number(&self) -> u8 {
        COMPUTE
    }

    fn of(&self) -> [u8; 32] {
        self.stage_of
    }

    fn units(&self) -> u32 {
        self.ranges.units() as u32
    }

    fn name(&self) -> &'static str {
        report::COMPUTING
    }

    fn what(&self) -> String {
        String::new()
    }

    fn rows(&self, unit: u32) -> u64 {
        let range = self.ranges.range(unit.into());
        range.end - range.start
    }

    fn work(&self, unit: u32, _: u32) -> Result<UnitWork, Error> {
        (self.rows)(unit.into()).map(UnitWork::Rows)
    }
}

/// What came of a stage's units.
#[derive(Default)]
pub(crate) struct UnitsDone {
    /// How many there are.
    pub units: u64,
    /// By unit.
    pub results: Vec<Zeroizing<Vec<u8>>>,
    /// What was said in the attempts that count.
    pub traffic: Traffic,
    /// And in those that do not, as far as workers lived to tell.
    pub lost: Traffic,
    /// Attempts that failed in this meeting, and rows of them.
    pub failed: Vec<FailedUnit>,
    pub failed_rows: u64,
    /// Units whose results were there before this meeting.
    pub computed_before: u64,
    /// The largest resident memory of each lane's last worker, and of those whose place it took.
    pub peaks: Vec<ProcessPeak>,
    pub ended: Vec<ProcessPeak>,
}

impl UnitsJob<'_> {
    fn at(&self, step: &str) -> At {
        let peer = Some(self.roster.name(self.me.other()));
        At { party: self.roster.name(self.me), peer, step: step.to_owned() }
    }

    fn setting(&self, stage: &dyn UnitsStage) -> UnitsSetting {
        let (run, number, units) = (stage.of(), stage.number(), stage.units());
        UnitsSetting { run, stage: number, units, lanes: self.lanes, leads: self.me.0 == 0 }
    }

    fn crew(&self, tell: impl Fn(CrewEvent) + Clone + Send + Sync + 'static) -> Crew {
        let (run, me, roster, deadline) = (self.run, self.me, self.roster.clone(), self.deadline);
        let (awaits, allow) = (self.host.is_some(), self.allow.to_vec());
        let engines = self.engine.map(|(engines, _)| engines.clone());
        let job = move |lane| LaneJob {
            run,
            lane,
            me,
            roster: roster.clone(),
            deadline,
            awaits,
            allow: allow.clone(),
            engines: engines.clone(),
            seed: session_seed(),
        };
        let program = self.engine.map(|(_, built)| Arc::new(built.program.clone()));
        Crew::new(self.place.clone(), program, self.lanes, job, tell)
    }
}

/// What a record says of an attempt that failed, at a unit of a stage.
pub(crate) fn failed_unit(stage: &str, record: &UnitRecord) -> Option<FailedUnit> {
    let UnitRecord::Failed { unit, attempt, cause, peer } = *record else { return None };
    Some(FailedUnit { stage: stage.to_owned(), unit, attempt, cause: cause.words().to_owned(), peer })
}

impl UnitsDone {
    /// With what came of a later stage, but for its results.
    fn merge(&mut self, later: Self) {
        self.units += later.units;
        self.traffic.merge(&later.traffic);
        self.lost.merge(&later.lost);
        self.failed_rows += later.failed_rows;
        self.computed_before += later.computed_before;
        self.failed.extend(later.failed);
        self.ended.extend(later.ended);
        // Lanes are those of the stage before.
        self.peaks = later.peaks;
    }

    /// As a report has it of this meeting, with what came of the match before, where that had units.
    pub fn info(&self, of_match: Option<&Self>, place: &WorkerPlace) -> WorkersInfo {
        let all = || of_match.into_iter().chain([self]);
        let processes = !matches!(place, WorkerPlace::Threads);
        let memory = all().filter(|_| processes).flat_map(|done| done.ended.iter().chain(&done.peaks));
        WorkersInfo {
            units: self.units,
            computed_before: self.computed_before,
            match_units: of_match.map_or(0, |done| done.units),
            match_done_before: of_match.map_or(0, |done| done.computed_before),
            processes,
            peak_memory_bytes: self.peaks.iter().map(|peak| peak.peak_memory_bytes).collect(),
            memory: memory.filter(|peak| peak.peak_memory_bytes > 0).cloned().collect(),
            failed: all().flat_map(|done| &done.failed).cloned().collect(),
            failed_before: 0,
            failed_before_by: Vec::new(),
        }
    }

    /// The totals of a computation: sums modulo powers of two, whatever the order.
    ///
    /// # Errors
    /// When there was no unit, or a result is none.
    pub fn shares(&self, built: &Built) -> Result<Shares, Error> {
        let mut total = None::<Shares>;
        for result in &self.results {
            let shares = Shares::from_bytes(result, &built.program)?;
            match &mut total {
                None => total = Some(shares),
                Some(total) => total.add(&built.program, &shares)?,
            }
        }
        total.ok_or_else(|| Error::misuse("a stage has a unit"))
    }
}

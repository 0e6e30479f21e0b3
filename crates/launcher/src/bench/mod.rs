//! `osprey bench`: the ten workloads under each way of paging, beside the unbounded run. Every run is an
//! `osprey run`, so what is measured is what users run. Definitions of all figures are in
//! `docs/osprey/bench.md`.

mod args;
mod bound;
pub mod disk;
mod figures;
mod keeper;
mod launch;
mod page;
mod picture;
mod row;
mod table;
mod workload;

pub use args::BenchArgs;

use crate::chunk::{self, Foresight};
use crate::{attempt, folders};
use ::page::numbers::{binary, duration, median};
use args::{BenchEngine, ModeName, PartyMemory};
use base::Error;
use figures::{DiskBound, PartyFigures, PassFigures, SpeculationRun};
use keeper::Keeper;
use launch::{BenchPass, LaunchFailure, WorkloadTask};
use row::{BenchRow, RepeatedRuns, SkippedRun};
use serde::Serialize;
use std::ops::Range;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::output;
use terminal::values::NamedValue as _;
use workload::BenchWorkload;

/// Bytes that a measurement of the disk moves: as many as all parties have resident, within these.
const DISK_BYTES: (u64, u64) = (64 << 20, 512 << 20);
/// A swap file is that many times what all parties have resident: the rest of the system may swap, too.
const SWAP_TIMES: u64 = 2;

/// Times that the limit of a workload may be raised to what the runtime says is the least.
const RAISES: usize = 4;
/// What is said of a run that was not paged.
const FITS: &str = "it fits in the limit: nothing was paged; a larger --size or less --memory shows paging";
/// The exit code when an engine that was named could not be measured, or one that the machine permits.
const MISSING: u8 = 1;

/// Measures and prints; the exit code says whether all that was asked for could be measured.
///
/// # Errors
/// When a run fails, a program is missing, or a result is wrong.
pub fn run(args: &BenchArgs) -> Result<ExitCode, Error> {
    if args.keeper {
        return keeper::keep().map(|()| ExitCode::SUCCESS);
    }
    let mut session = Session::new(args)?;
    for workload in args.workloads() {
        session.workload(workload)?;
    }
    let Session { rows, skipped, .. } = session;
    if !args.json {
        output::print(&table::text(&rows, &skipped))?;
    }
    if let Some(dir) = &args.out {
        page::write(dir, &rows, &skipped)?;
    }
    if let Some(row) = rows.iter().find(|row| !row.correct) {
        let (workload, engine) = (row.workload.word(), row.engine.word());
        let text =
            format!("{workload}, {engine}: the result is wrong; this must not happen, please report it");
        return Err(Error::misuse(text));
    }
    let asked = |one: &&SkippedRun| args.names(one.engine) || !one.denied;
    let missing: Vec<String> = skipped.iter().filter(asked).map(SkippedRun::title).collect();
    if missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("error: asked for and not measured: {}; the reasons are above", missing.join("; "));
    Ok(ExitCode::from(MISSING))
}

/// What has been measured so far.
struct Session<'a> {
    args: &'a BenchArgs,
    keeper: Keeper,
    began: Instant,
    rows: Vec<BenchRow>,
    skipped: Vec<SkippedRun>,
}

/// What the engines of a workload have in common.
struct Shared {
    task: WorkloadTask,
    /// The line of the unbounded run.
    unbounded: BenchRow,
    /// Bytes that each party may have.
    memory: Vec<u64>,
    /// What is to be known of that, in words: that it is more than was asked for.
    raised: Option<String>,
    /// Bytes that all parties had when they were unbounded.
    resident: u64,
    /// The speculative passes, one for each repeat: their traces serve all engines.
    speculations: Vec<SpeculationRun>,
    /// Bytes that must move at this memory, all parties together.
    must_move: Option<u64>,
}

impl<'a> Session<'a> {
    /// Programs are looked for first, and asked whether they take the size: not after an hour of measuring.
    fn new(args: &'a BenchArgs) -> Result<Self, Error> {
        for workload in args.workloads() {
            let program = workload.family().find(args.program(workload.family()))?;
            workload::size(&program, workload, args.size)?;
        }
        let paged = args.engines().iter().any(|engine| engine.of_runtime().is_some());
        folders::spill(&args.spill, !paged).map_err(Error::input)?;
        args.out.iter().try_for_each(|dir| folders::made("--out", dir)).map_err(Error::input)?;
        let (keeper, began) = (Keeper::start()?, Instant::now());
        Ok(Self { args, keeper, began, rows: Vec::new(), skipped: Vec::new() })
    }

    fn say(&self, text: &str) {
        eprintln!("[{:>10}] {text}", duration(self.began.elapsed().as_secs_f64()));
    }

    /// The unbounded run, then the engines.
    fn workload(&mut self, workload: BenchWorkload) -> Result<(), Error> {
        let task = self.task(workload)?;
        let mut shared = self.unbounded(task)?;
        let engines = self.args.engines().into_iter().filter(|engine| *engine != BenchEngine::Unbounded);
        let engines: Vec<BenchEngine> = engines.collect();
        if !engines.is_empty() {
            let ratio: f64 = engines.iter().map(|engine| engine.expected_ratio()).sum();
            let left = duration(ratio * shared.unbounded.figures.total_s * self.args.repeat as f64);
            self.say(&format!("{}: about {left} for the rest", workload.word()));
        }
        for engine in engines {
            self.engine(&mut shared, engine)?;
        }
        Ok(())
    }

    fn task(&self, workload: BenchWorkload) -> Result<WorkloadTask, Error> {
        let args = self.args;
        let program = workload.family().find(args.program(workload.family()))?;
        let size = workload::size(&program, workload, args.size)?;
        let address = (workload.parties() > 1).then(base::free_address).transpose()?;
        let (spill, timeout) = (args.spill.clone(), Duration::from_secs(args.timeout));
        Ok(WorkloadTask { workload, program, size, address, chunk: args.chunk, spill, timeout })
    }

    fn unbounded(&mut self, task: WorkloadTask) -> Result<Shared, Error> {
        self.announce(&task, "unbounded");
        let mut runs = RepeatedRuns::default();
        let mut peaks = vec![0; task.workload.parties()];
        for _ in 0..self.args.repeat {
            let parties = launch::run(&task, &BenchPass::Unbounded, &mut self.keeper)?;
            for (peak, party) in peaks.iter_mut().zip(&parties) {
                *peak = party.report.peak_bytes.unwrap_or(0).max(*peak);
            }
            runs.add(&parties, figures::of_run(&parties)?);
        }
        let unbounded = runs.unbounded(task.workload);
        self.line(unbounded.clone())?;
        let memory: Vec<u64> = peaks.iter().map(|&peak| self.args.memory.of(peak)).collect();
        if let Some(limit) = memory.iter().max() {
            self.say(&format!("{}: {} for each party", task.workload.word(), binary(*limit)));
        }
        Ok(Shared {
            task,
            unbounded,
            memory,
            raised: None,
            resident: peaks.iter().sum(),
            speculations: Vec::new(),
            must_move: None,
        })
    }

    /// All runs of an engine, or the reason why this machine does not allow it.
    fn engine(&mut self, shared: &mut Shared, engine: BenchEngine) -> Result<(), Error> {
        let spill = &shared.task.spill;
        let allowed = match engine.of_runtime() {
            Some(engine) => attempt::engine(engine, spill),
            None => {
                let bytes = (shared.resident * SWAP_TIMES).max(osprey::disk::SWAP_MIN);
                self.keeper.swap(spill, bytes)?.map(|_| ())
            }
        };
        if let Err(reason) = allowed {
            return self.skip(shared.task.workload, engine, reason, true);
        }
        let row = self.measured(shared, engine);
        if engine.swaps() {
            self.keeper.unswap()?;
        }
        // What became of one engine is no reason to lose the others.
        let (reason, denied) = match row {
            Ok(row) => return self.line(row),
            Err(LaunchFailure::Denied(error)) => (error.to_string(), true),
            Err(LaunchFailure::Killed(error)) => {
                (format!("the system ended it for its memory: {error}"), engine.swaps())
            }
            Err(LaunchFailure::TooLittle(least, error)) => {
                let (mib, chunk) = (least >> 20, binary(self.chunk(shared) as u64));
                let advice = format!(
                    "it takes --memory {mib}M at least with chunks of {chunk}; a smaller --chunk needs less"
                );
                (format!("{error}\n  {advice}"), false)
            }
            // A system call that finds no memory for its buffer fails, and so does the program.
            Err(LaunchFailure::Swapped(error)) => {
                (format!("it failed while the system swapped: {error}"), true)
            }
            Err(failed) => return Err(failed.into()),
        };
        self.skip(shared.task.workload, engine, reason, denied)
    }

    fn skip(
        &mut self,
        workload: BenchWorkload,
        engine: BenchEngine,
        reason: String,
        denied: bool,
    ) -> Result<(), Error> {
        self.say(&format!("{}: {} skipped: {reason}", workload.word(), engine.word()));
        let skipped = SkippedRun { workload, engine, skipped: reason, denied };
        self.json(&skipped)?;
        self.skipped.push(skipped);
        Ok(())
    }

    fn measured(&mut self, shared: &mut Shared, engine: BenchEngine) -> Result<BenchRow, LaunchFailure> {
        let mut runs = RepeatedRuns::default();
        let mut disks = Vec::new();
        for round in 0..self.args.repeat as usize {
            self.traced(shared, if self.in_sequence(engine) { round + 1 } else { 1 })?;
            disks.push(self.disk(shared)?);
            self.announce(&shared.task, &engine.word());
            let (parties, figures) = self.enough(shared, engine, round)?;
            if shared.must_move.is_none() {
                shared.must_move = Some(self.must_move(shared, &parties)?);
            }
            runs.add(&parties, figures);
        }
        if let Some(raised) = &shared.raised {
            runs.warn(raised);
        }
        if runs.moved_nothing() {
            runs.warn(FITS);
        }
        let mode = engine.is_planned().then_some(self.args.mode);
        let memory = shared.memory.iter().max().copied().unwrap_or(0);
        let bound = DiskBound { bytes: shared.must_move.unwrap_or(0), bytes_per_s: median(disks) };
        Ok(runs.paged(&shared.unbounded, engine, mode, memory, bound))
    }

    /// Whether a run follows a trace that was made before it.
    fn in_sequence(&self, engine: BenchEngine) -> bool {
        engine.is_planned() && self.args.mode != ModeName::Concurrent
    }

    /// Makes speculative passes until there are that many: one for each run that follows a trace, and one at
    /// least, because what must move is computed by it.
    fn traced(&mut self, shared: &mut Shared, passes: usize) -> Result<(), LaunchFailure> {
        // Otherwise the pass chooses by its own trace, as `osprey run` does.
        let chunk = (self.args.mode == ModeName::Concurrent).then(|| self.chunk(shared));
        while shared.speculations.len() < passes {
            let pass = BenchPass::Speculative(shared.memory.clone(), chunk);
            let parties = launch::run(&shared.task, &pass, &mut self.keeper)?;
            shared.speculations.push(SpeculationRun::of(&parties)?);
        }
        Ok(())
    }

    /// Bytes per chunk of the runs that are paged by chunks.
    fn chunk(&self, shared: &Shared) -> usize {
        let traced = shared.speculations.last().map(|speculation| speculation.chunk);
        let first = || chunk::first(Foresight::Stream, shared.memory.iter().max().copied()).0;
        self.args.chunk.or(traced).unwrap_or_else(first)
    }

    /// Bytes that must move between the marks, all parties together, by the trace that was made last.
    fn must_move(&self, shared: &Shared, parties: &[PartyFigures]) -> Result<u64, Error> {
        let events = shared.speculations.last().map_or(&[][..], |speculation| &speculation.events);
        let of = |(number, (party, events)): (usize, (&PartyFigures, &Range<u64>))| {
            bound::must_move(&launch::trace(&shared.task, number, &self.keeper), events.clone(), party)
        };
        parties.iter().zip(events).enumerate().map(of).sum()
    }

    /// One run. Where a part of the memory is less than paging needs, all parties get what it takes at least.
    fn enough(
        &mut self,
        shared: &mut Shared,
        engine: BenchEngine,
        round: usize,
    ) -> Result<(Vec<PartyFigures>, PassFigures), LaunchFailure> {
        for _ in 0..RAISES {
            match self.once(shared, engine, round) {
                Err(LaunchFailure::TooLittle(least, _))
                    if matches!(self.args.memory, PartyMemory::Part(_)) =>
                {
                    let asked = shared.memory.iter().max().map_or(0, |&bytes| bytes);
                    let text = format!(
                        "{} for each party, because the runtime needs that much to page it; {} was tried",
                        binary(least),
                        binary(asked)
                    );
                    self.say(&format!("{}: {text}", shared.task.workload.word()));
                    shared.memory.iter_mut().for_each(|bytes| *bytes = least.max(*bytes));
                    shared.raised = Some(text);
                    // It was of a smaller memory.
                    shared.must_move = None;
                }
                done => return done,
            }
        }
        self.once(shared, engine, round)
    }

    /// One run.
    fn once(
        &mut self,
        shared: &Shared,
        engine: BenchEngine,
        round: usize,
    ) -> Result<(Vec<PartyFigures>, PassFigures), LaunchFailure> {
        let (task, memory) = (&shared.task, shared.memory.clone());
        let sequence = self.in_sequence(engine);
        let pass = match engine {
            BenchEngine::Swap => BenchPass::Swap(memory),
            _ if sequence => BenchPass::Programmed(engine.word(), memory),
            _ => BenchPass::Concurrent(engine.word(), memory),
        };
        let swapped = || osprey::disk::swapped_bytes().map_err(|e| Error::io("cannot read /proc/vmstat", &e));
        let before = swapped()?;
        let parties = launch::run(task, &pass, &mut self.keeper).map_err(|failed| match failed {
            LaunchFailure::Other(error) if engine.swaps() => LaunchFailure::Swapped(error),
            failed => failed,
        })?;
        let after = swapped()?;
        let mut figures = figures::of_run(&parties)?;
        if engine.swaps() {
            figures.bytes_read = after.0.saturating_sub(before.0);
            figures.bytes_written = after.1.saturating_sub(before.1);
        }
        if sequence {
            shared.speculations[round].join(&mut figures, self.args.mode == ModeName::Speculate);
        }
        Ok((parties, figures))
    }

    /// The bandwidth of the disk, at the size of a chunk.
    fn disk(&self, shared: &Shared) -> Result<f64, LaunchFailure> {
        let (spill, chunk) = (&shared.task.spill, self.chunk(shared));
        let bytes = shared.resident.clamp(DISK_BYTES.0, DISK_BYTES.1);
        let found = disk::measure(spill, chunk, bytes).map_err(LaunchFailure::Denied)?;
        let rate = binary(found.bytes_per_s as u64);
        self.say(&format!("disk of {}: {rate}/s at {}", spill.display(), binary(chunk as u64)));
        Ok(found.bytes_per_s)
    }

    fn announce(&self, task: &WorkloadTask, what: &str) {
        self.say(&format!("{} {}: {what} runs", task.workload.word(), task.size));
    }

    fn line(&mut self, row: BenchRow) -> Result<(), Error> {
        let (seconds, ratio) = (duration(row.figures.seconds), row.ratio_to_unbounded);
        self.say(&format!("{}: {} took {seconds}, {ratio:.2}x", row.workload.word(), row.engine.word()));
        self.json(&row)?;
        self.rows.push(row);
        Ok(())
    }

    fn json(&self, value: &impl Serialize) -> Result<(), Error> {
        if !self.args.json {
            return Ok(());
        }
        output::print_json_line(value)
    }
}

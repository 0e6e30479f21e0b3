//! `osprey run`: which passes, in which order, with which memory; and what to do when one of them fails.
//!
//! **What must hold.** The program's own pass is run exactly once and its exit code is ours. Whatever goes
//! wrong before (a speculation that crashes, hangs or is not permitted; a trace of something else) makes it
//! page by its faults, with a warning: it is then slower, never wrong. What we leave behind is the trace file
//! and the report that were asked for, however we end.

use crate::args::{OspreyRun, RunEngine, RunMode};
use crate::chunk::Foresight;
use crate::console::Console;
use crate::engine::{self, By, ChosenPaging};
use crate::link::MemoryLimit;
use crate::pass::{GuardedPass, PassEnd, PassParts, StartRefusal};
use crate::program::ProgramCall;
use crate::report::{OspreyReport, SpeculationReport};
use crate::signals::Signals;
use crate::speculation::{self, RunningPass, SpeculationOutcome, Speculator, WholeTrace};
use crate::stdin::StandardInput;
use crate::units::MemorySize;
use crate::{cgroup, chunk, folders, processes, tracefile};
use osprey::settings::microset;
use osprey::trace::ring;
use osprey::{PagingEngine, PassMode, ProcessSettings};
use page::numbers::binary;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::values::NamedValue as _;

/// The exit code for faults of ours, of the machine, and of what was asked.
pub const FAILED: u8 = 125;

/// Who keeps a limit where there is no memory group; and where the program does not use the runtime either.
const RUNTIME: &str = "limited by the runtime itself";
const NOBODY: &str = "not limited";
/// Why chunks are small after a first look at the program.
const NEEDS_LITTLE: &str = "the program's region is too small for chunks of 2 MiB";
const TOO_LARGE: &str = "the limit leaves too little for chunks of 2 MiB beside what the program needs";
/// A peak may exceed its limit by one part in as many, before it is said: the runtime keeps it by looking now
/// and then.
const LENIENCE: u64 = 16;
/// How often a speculative pass beside the program is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Why there is no exit code of the program.
#[derive(Debug)]
pub struct RunFailure {
    /// The exit code instead.
    pub code: u8,
    /// In words: what is wrong, and what to do.
    pub text: String,
}

impl RunFailure {
    /// A fault of ours, of the machine, or of what was asked.
    pub fn ours(text: impl Into<String>) -> Self {
        Self { code: FAILED, text: text.into() }
    }
}

/// Runs the program.
pub fn run(args: &OspreyRun) -> ExitCode {
    let done = Runner::prepare(args).and_then(Runner::go);
    processes::end_descendants();
    cgroup::sweep(true);
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // When even standard error is gone, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "osprey: error: {}", failure.text);
            ExitCode::from(failure.code)
        }
    }
}

struct Runner<'a> {
    args: &'a OspreyRun,
    console: Console,
    signals: Signals,
    program: ProgramCall,
    paging: ChosenPaging,
    settings: ProcessSettings,
    input: StandardInput,
    report: OspreyReport,
    began: Instant,
}

/// What the program's own pass goes by.
enum Knowledge {
    /// A trace.
    Trace(Box<WholeTrace>),
    /// The trace comes while the program runs.
    Stream,
    /// Nothing.
    Faults,
    /// A signal ended us before.
    Interrupted(u8),
}

impl<'a> Runner<'a> {
    fn prepare(args: &'a OspreyRun) -> Result<Self, RunFailure> {
        let began = Instant::now();
        let console = Console { verbose: args.verbose, quiet: args.quiet };
        let machine =
            |what: &'static str| move |e: std::io::Error| RunFailure::ours(format!("cannot {what}: {e}"));
        if let Some(parent) = args.with_parent {
            end_with(parent)?;
        }
        writable(args).map_err(RunFailure::ours)?;
        // Whatever a guard that was killed leaves becomes ours.
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
            .map_err(|e| machine("adopt orphans")(e.into()))?;
        let signals = Signals::catch().map_err(machine("catch signals"))?;
        cgroup::sweep(false);
        let program = ProgramCall::find(&args.command)?;
        let paging = engine::choose(args);
        let settings = ProcessSettings {
            region: args.region,
            lookahead: args.lookahead.unwrap_or(0),
            spill: args.spill.clone(),
            ..ProcessSettings::default()
        };
        let input = StandardInput::of_stdin().map_err(machine("look at standard input"))?;
        let report = OspreyReport {
            asked_mode: asked(args),
            engine_reason: paging.reason.clone(),
            ..OspreyReport::default()
        };
        let mut runner = Self { args, console, signals, program, paging, settings, input, report, began };
        if let By::Runtime(engine) = runner.paging.by {
            runner.settings.engine = engine;
        }
        match (args.chunk, runner.stored_chunk()) {
            (Some(chunk), _) => runner.use_chunk(chunk, "asked for")?,
            (None, Some(chunk)) => runner.use_chunk(chunk, "that of the trace")?,
            (None, None) => runner.choose_chunk()?,
        }
        Ok(runner)
    }

    /// The chunk of a trace that is there to be used.
    fn stored_chunk(&self) -> Option<usize> {
        let used =
            matches!(self.args.mode, RunMode::Speculate | RunMode::Programmed) && !self.args.speculative_only;
        self.args.trace_file.as_ref().filter(|_| used).and_then(|path| tracefile::chunk(path))
    }

    /// Chunks are of that many bytes from here on, and so are traces.
    fn use_chunk(&mut self, bytes: usize, reason: &str) -> Result<(), RunFailure> {
        (self.settings.chunk, self.settings.microset) = (bytes, microset(bytes));
        self.settings.key = self.program.key(&self.settings)?;
        self.report.chunk_reason = reason.into();
        self.console.step(&format!("chunks of {}: {reason}", binary(bytes as u64)));
        Ok(())
    }

    /// The chunk to begin with, by what is known before there is a trace.
    fn choose_chunk(&mut self) -> Result<(), RunFailure> {
        let limit = match self.args.memory {
            Some(MemorySize::Bytes(bytes)) => Some(bytes),
            Some(MemorySize::Percent(_)) | None => None,
        };
        let foresight = match (self.args.mode, self.paging.by) {
            (_, By::Nobody | By::System) => Foresight::Unpaged,
            (RunMode::Reactive, _) => Foresight::Nothing,
            (RunMode::Concurrent, _) => Foresight::Stream,
            (RunMode::Speculate | RunMode::Programmed, _) => Foresight::Trace,
        };
        let (bytes, reason) = chunk::first(foresight, limit);
        self.use_chunk(bytes, reason)
    }

    /// Whether nobody named the chunk, and it is a large one.
    fn may_shrink(&self) -> bool {
        self.args.chunk.is_none() && self.settings.chunk == chunk::LARGE
    }

    /// Whether the chunk is small enough for what the trace says that the program has beside the region.
    fn suits(&self, trace: &WholeTrace) -> bool {
        let needed = trace.needed(self.settings.chunk);
        let limit = match self.args.memory {
            Some(MemorySize::Bytes(bytes)) => bytes,
            Some(MemorySize::Percent(percent)) => (needed as f64 * percent / 100.0) as u64,
            None => needed,
        };
        !self.may_shrink() || chunk::has_room(limit, trace.footer.other_bytes)
    }

    fn go(mut self) -> Result<u8, RunFailure> {
        self.console.step(&format!("engine {}: {}", self.engine_name(), self.paging.reason));
        if self.args.speculative_only {
            return self.speculate_only();
        }
        if let Some(warning) = self.paging.warning.take() {
            self.warn(warning);
        }
        let knowledge = match self.paging.by {
            By::Nobody | By::System | By::Runtime(PagingEngine::None) => Knowledge::Faults,
            By::Runtime(_) => self.know()?,
        };
        if let Knowledge::Interrupted(signal) = knowledge {
            return Ok(128 + signal);
        }
        self.settings.memory = self.memory(&knowledge)?;
        self.report.memory = self.settings.memory;
        self.settings.mode = match (&knowledge, self.paging.by) {
            (_, By::Nobody | By::System) => PassMode::Off,
            (Knowledge::Trace(_), _) => PassMode::Programmed,
            (Knowledge::Stream, _) => PassMode::Concurrent,
            (Knowledge::Faults | Knowledge::Interrupted(_), _) => PassMode::Reactive,
        };
        let ended = match &knowledge {
            Knowledge::Stream => self.both()?,
            Knowledge::Trace(trace) => self.real(Some(trace), None, || {})?,
            Knowledge::Faults | Knowledge::Interrupted(_) => self.real(None, None, || {})?,
        };
        self.finish(ended)
    }

    fn engine_name(&self) -> String {
        match self.paging.by {
            By::Nobody => "unbounded".into(),
            By::System => "swap".into(),
            By::Runtime(engine) => engine.to_string(),
        }
    }

    fn warn(&mut self, text: String) {
        self.console.warn(&text);
        self.report.launcher_warnings.push(text);
    }

    /// How the program's accesses come to be known.
    fn know(&mut self) -> Result<Knowledge, RunFailure> {
        let knowledge = match self.args.mode {
            RunMode::Reactive => return Ok(Knowledge::Faults),
            RunMode::Concurrent => return Ok(Knowledge::Stream),
            RunMode::Programmed => self.stored()?,
            RunMode::Speculate => match self.again()? {
                Some(trace) => Knowledge::Trace(Box::new(trace)),
                None => self.speculate()?,
            },
        };
        match &knowledge {
            Knowledge::Trace(trace) => self.report.needed = Some(trace.needed(self.settings.chunk)),
            Knowledge::Faults if self.may_shrink() => {
                self.use_chunk(chunk::SMALL, "there is no trace to page larger ones by")?;
            }
            _ => {}
        }
        Ok(knowledge)
    }

    /// The trace that must be there.
    fn stored(&mut self) -> Result<Knowledge, RunFailure> {
        let Some(path) = &self.args.trace_file else {
            return Err(RunFailure::ours(
                "--mode programmed needs --trace-file, with a trace that osprey run --speculative-only made",
            ));
        };
        match tracefile::open(path, &self.settings) {
            Ok(trace) => Ok(Knowledge::Trace(Box::new(trace))),
            Err(why) => {
                self.warn(format!("{why}; the program is paged by its faults"));
                Ok(Knowledge::Faults)
            }
        }
    }

    /// A trace of an earlier run that fits.
    fn again(&mut self) -> Result<Option<WholeTrace>, RunFailure> {
        let Some(path) = self.args.trace_file.as_ref().filter(|path| path.exists()) else { return Ok(None) };
        match tracefile::open(path, &self.settings) {
            Ok(trace) if self.suits(&trace) => {
                self.console.note(&format!("the trace {} fits and is used again", path.display()));
                return Ok(Some(trace));
            }
            Ok(_) => {
                let why = format!("the trace {}: {TOO_LARGE}", path.display());
                self.console.note(&format!("{why}: a new trace is made, with chunks of 64 KiB"));
                self.use_chunk(chunk::SMALL, TOO_LARGE)?;
            }
            Err(why) => {
                self.console.note(&format!("{why}: a new trace is made"));
                if self.args.chunk.is_none() {
                    self.choose_chunk()?;
                }
            }
        }
        Ok(None)
    }

    fn speculator(&self) -> Speculator<'_> {
        Speculator {
            program: &self.program,
            settings: &self.settings,
            input: &self.input,
            isolate: !self.args.no_isolation,
            timeout: Duration::from_secs(self.args.speculation_timeout),
            console: self.console,
            signals: &self.signals,
        }
    }

    /// What a speculative pass finds out, its trace kept where that was asked for. A second pass where the
    /// first shows that its chunks were too large.
    fn speculate(&mut self) -> Result<Knowledge, RunFailure> {
        match self.speculator().run()? {
            SpeculationOutcome::Interrupted(signal) => Ok(Knowledge::Interrupted(signal)),
            SpeculationOutcome::Traced(trace, ended) if !self.suits(&trace) => {
                self.note_speculation(&ended);
                let why = if self.args.memory.is_some() { TOO_LARGE } else { NEEDS_LITTLE };
                self.console.note(&format!("{why}: a second speculative pass, with chunks of 64 KiB"));
                self.use_chunk(chunk::SMALL, why)?;
                self.speculate()
            }
            SpeculationOutcome::Traced(trace, ended) => {
                self.note_speculation(&ended);
                if let Some(path) = &self.args.trace_file
                    && let Err(error) = tracefile::keep(&trace.file, path)
                {
                    self.warn(format!("cannot keep the trace at {}: {error}", path.display()));
                }
                Ok(Knowledge::Trace(Box::new(trace)))
            }
            SpeculationOutcome::NoRuntime(ended) => {
                self.note_speculation(&ended);
                if self.args.speculative_only {
                    return Err(RunFailure::ours(
                        "the program does not use the runtime: there is nothing to trace",
                    ));
                }
                self.console.note(
                    "the program does not use the runtime: nothing of it can be paged, and the limit is all \
                     there is",
                );
                Ok(Knowledge::Faults)
            }
            SpeculationOutcome::Failed(why) => {
                let then =
                    if self.args.speculative_only { "" } else { "; the program is paged by its faults" };
                self.warn(format!("{why}{then}"));
                Ok(Knowledge::Faults)
            }
        }
    }

    fn note_speculation(&mut self, ended: &PassEnd) {
        let before = self.report.speculation.as_ref().map_or(0.0, |earlier| earlier.seconds);
        let seconds = before + ended.seconds;
        self.report.speculation =
            Some(SpeculationReport { seconds, peak_bytes: ended.peak, stats: ended.stats.clone() });
    }

    fn speculate_only(mut self) -> Result<u8, RunFailure> {
        match self.speculate()? {
            Knowledge::Interrupted(signal) => Ok(128 + signal),
            Knowledge::Faults | Knowledge::Stream => Err(RunFailure::ours("there is no trace")),
            Knowledge::Trace(trace) => {
                self.report.needed = Some(trace.needed(self.settings.chunk));
                if let Some(stats) = self.report.speculation.as_ref().and_then(|s| s.stats.clone()) {
                    (self.report.run, self.report.uses_runtime) = (stats, true);
                }
                self.say()?;
                Ok(0)
            }
        }
    }

    /// Bytes that the program may use; 0 for no limit.
    fn memory(&self, knowledge: &Knowledge) -> Result<u64, RunFailure> {
        match (self.paging.by, self.args.memory, knowledge) {
            (By::Nobody, _, _) => Ok(0),
            (_, None, _) => Err(RunFailure::ours(format!(
                "--engine {} needs --memory, such as --memory 256M",
                self.engine_name()
            ))),
            (_, Some(MemorySize::Bytes(bytes)), _) => Ok(bytes),
            (_, Some(MemorySize::Percent(percent)), Knowledge::Trace(trace)) => {
                let bytes = trace.needed(self.settings.chunk) as f64 * percent / 100.0;
                // Whole pages: a memory group counts by them.
                Ok((bytes as u64).next_multiple_of(4096))
            }
            (_, Some(MemorySize::Percent(_)), _)
                if matches!(self.args.mode, RunMode::Reactive | RunMode::Concurrent) =>
            {
                Err(RunFailure::ours(format!(
                    "--memory as a percentage is of what a trace says that is there before the program runs, \
                     and --mode {} has none; give bytes, such as --memory 256M",
                    asked(self.args)
                )))
            }
            (_, Some(MemorySize::Percent(_)), _) => Err(RunFailure::ours(
                "--memory as a percentage is of what a trace says, and there is no trace of this program; \
                 give bytes, such as --memory 256M",
            )),
        }
    }

    fn limit(&self) -> Option<MemoryLimit> {
        let swap = match self.paging.by {
            By::Nobody => return None,
            By::System => true,
            By::Runtime(PagingEngine::Hint) => true,
            // Nobody encrypts, and what the system swaps it writes as it is.
            By::Runtime(PagingEngine::None) => self.args.allow_plaintext,
            By::Runtime(_) => false,
        };
        let paged = matches!(self.paging.by, By::Runtime(PagingEngine::Move | PagingEngine::Copy));
        Some(MemoryLimit { bytes: self.settings.memory, swap, paged })
    }

    /// The program's own pass; `look` is called ten times a second meanwhile.
    fn real(
        &mut self,
        trace: Option<&WholeTrace>,
        ring: Option<OwnedFd>,
        mut look: impl FnMut(),
    ) -> Result<PassEnd, RunFailure> {
        let failed =
            |e: std::io::Error| RunFailure::ours(format!("cannot pass on the standard streams: {e}"));
        let standard = [
            self.input.real().map_err(failed)?,
            rustix::stdio::stdout().try_clone_to_owned().map_err(failed)?,
            rustix::stdio::stderr().try_clone_to_owned().map_err(failed)?,
        ];
        let pass = GuardedPass::start(PassParts {
            program: &self.program,
            settings: &self.settings,
            standard,
            trace: trace.map(|trace| trace.file.as_fd()),
            ring: ring.as_ref().map(AsFd::as_fd),
            isolate: false,
            background: false,
            limit: self.limit(),
        });
        drop(ring);
        let pass = pass?;
        self.signals.forward(Some(pass.orders().map_err(failed)?));
        let refused = self.limited(&pass);
        if refused.is_err() {
            pass.kill();
        }
        let ended = pass.wait(|| {
            look();
            ControlFlow::Continue(())
        });
        self.signals.forward(None);
        refused.and(ended)
    }

    /// Notes who enforces the limit. The system's swap is no engine without one.
    fn limited(&mut self, pass: &GuardedPass) -> Result<(), RunFailure> {
        let unlimited = pass.limit.as_ref().and_then(|limit| limit.as_ref().err());
        if let Some(why) = pass.swappable.as_ref().or(unlimited).filter(|_| engine::has_swap())
            && self.limit().is_some_and(|limit| !limit.swap)
        {
            self.warn(format!(
                "the system may write the program's memory to swap as it is, not encrypted: {why}; switch \
                 swap off (swapoff -a), or let a memory cgroup be made (root, or systemd-run --user --scope)"
            ));
        }
        match &pass.limit {
            None => {}
            Some(Ok(who)) => {
                self.report.limit = "memory cgroup".into();
                self.console.step(&format!("limit by {who}"));
            }
            Some(Err(why)) if self.paging.by == By::System => {
                return Err(RunFailure::ours(format!(
                    "--engine swap needs a memory cgroup, and there can be none: {why}; run it as root, or \
                     in a scope of its own (systemd-run --user --scope)"
                )));
            }
            Some(Err(why)) if self.paging.by == By::Runtime(PagingEngine::None) => {
                self.report.limit = NOBODY.into();
                self.warn(format!("the program has no limit: no engine pages it, and {why}"));
            }
            Some(Err(why)) => {
                self.report.limit = RUNTIME.into();
                self.console.step(&format!("the runtime keeps to its limit itself: {why}"));
            }
        }
        Ok(())
    }

    /// Speculation and the program at once.
    fn both(&mut self) -> Result<PassEnd, RunFailure> {
        let (writer, reader) =
            ring::pair().map_err(|e| RunFailure::ours(format!("cannot make a ring for the trace: {e}")))?;
        let started = self.speculator().start(None, Some(writer.as_fd()));
        drop(writer);
        let RunningPass { pass, tail } = match started {
            Ok(running) => running,
            Err(StartRefusal::Failed(failure)) => return Err(failure),
            Err(StartRefusal::Refused(why)) => {
                self.warn(format!("{}; the program is paged by its faults", speculation::refusal(&why)));
                self.settings.mode = PassMode::Reactive;
                if self.may_shrink() {
                    self.use_chunk(chunk::SMALL, "there is no trace to page larger ones by")?;
                }
                return self.real(None, None, || {});
            }
        };
        let mut idle = Idle::new(&pass, reader.as_fd(), Duration::from_secs(self.args.speculation_timeout))?;
        let ended = self.real(None, Some(reader), || idle.look(&pass));
        if idle.ended {
            self.warn(format!(
                "the speculative pass neither ran nor sent trace for {} s and was ended \
                 (--speculation-timeout gives it more); the program was paged by its faults from then on",
                self.args.speculation_timeout
            ));
        }
        let in_time = pass.is_over() && !idle.ended;
        pass.kill();
        let speculated = pass.wait(|| ControlFlow::Continue(()))?;
        self.note_speculation(&speculated);
        if in_time && speculated.stats.is_none() && ended.as_ref().is_ok_and(|e| e.stats.is_some()) {
            self.console.quote(&tail.text());
            self.warn(format!("the speculative pass {}", speculation::how_ended(speculated.code)));
        }
        ended
    }

    fn finish(mut self, ended: PassEnd) -> Result<u8, RunFailure> {
        self.report.exit_code = ended.code;
        self.report.run_s = ended.seconds;
        self.report.peak_bytes = ended.peak;
        self.report.uses_runtime = ended.stats.is_some();
        self.report.out_of_memory = ended.out_of_memory;
        self.report.run = ended.stats.unwrap_or_default();
        self.say_warnings();
        if ended.out_of_memory {
            let bytes = binary(self.report.memory);
            let paged =
                if self.limit().is_some_and(|limit| limit.paged) { " beside what can be paged" } else { "" };
            let then = match self.paging.by {
                By::System => {
                    "and could swap no more: swap is full, or all its pages were in use at once; more swap \
                     or more memory helps"
                }
                By::Runtime(PagingEngine::Copy) => {
                    "give it more (--memory), or use --engine move where the kernel has it, which needs less \
                     itself to page out"
                }
                _ => "give it more (--memory)",
            };
            self.warn(format!(
                "the system ended the program because it used more than {bytes}{paged}; {then}"
            ));
        }
        if ended.left > 0 {
            let what = if ended.left == 1 { "process" } else { "processes" };
            self.console.note(&format!("the program left {} {what} behind: ended with it", ended.left));
        }
        self.say()?;
        Ok(ended.code)
    }

    /// What the runtime only noted, for who wants to know all, and a limit that was not kept. What it warned
    /// of was said when it happened.
    fn say_warnings(&mut self) {
        if self.console.verbose {
            let warnings = self.report.run.warnings.iter();
            warnings.filter(|text| is_minor(text)).for_each(|text| self.console.warn(text));
        }
        let unused = self.report.limit == RUNTIME && !self.report.uses_runtime;
        if unused && self.report.exit_code < 128 {
            self.report.limit = NOBODY.into();
            self.warn(
                "the program had no limit: it does not use the runtime, and there is no memory group".into(),
            );
        }
        let limit = self.report.memory;
        let over = self.report.peak_bytes.filter(|&peak| limit > 0 && peak > limit + limit / LENIENCE);
        if let Some(peak) = over
            && self.report.limit != NOBODY
        {
            self.warn(format!(
                "the limit was not kept: {} at the most, of {}; only a memory group keeps it whatever \
                 happens (root, or systemd-run --user --scope)",
                binary(peak),
                binary(limit)
            ));
        }
    }

    /// The report and the summary.
    fn say(&mut self) -> Result<(), RunFailure> {
        self.report.total_s = self.began.elapsed().as_secs_f64();
        let text = serde_json::to_string(&self.report)
            .map_err(|e| RunFailure::ours(format!("the report does not serialise: {e}")))?;
        if let Some(path) = &self.args.report {
            std::fs::write(path, format!("{text}\n"))
                .map_err(|e| RunFailure::ours(format!("cannot write the report {}: {e}", path.display())))?;
        }
        if self.args.json {
            let _ = writeln!(std::io::stderr(), "{text}");
        } else {
            self.console.note(&self.report.summary());
            self.report.advice().iter().for_each(|advice| self.console.note(advice));
        }
        Ok(())
    }
}

/// Whether a warning matters only to programs that do what the runtime's rules exclude.
fn is_minor(warning: &str) -> bool {
    warning.starts_with("userfaultfd serves touches by user code alone")
}

/// Checks what will be written.
fn writable(args: &OspreyRun) -> Result<(), String> {
    use RunEngine::{Auto, Copy, File, Move};
    if matches!(args.engine, Auto | Move | Copy | File) && !args.speculative_only {
        folders::spill(&args.spill, args.spill_in_memory)?;
    }
    if args.report.is_some() && args.report == args.trace_file {
        return Err("--report and --trace-file name the same file: the report would replace the trace".into());
    }
    let files = [("--report", &args.report), ("--trace-file", &args.trace_file)];
    files.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?))).try_for_each(|(flag, path)| {
        // A trace that is there may be read alone.
        if flag == "--trace-file" && path.exists() { Ok(()) } else { folders::file(flag, path) }
    })
}

/// A speculative pass beside the program that neither runs nor leaves trace to be read.
struct Idle {
    reader: OwnedFd,
    timeout: Duration,
    ticks: u64,
    moved: Instant,
    looked: Instant,
    ended: bool,
}

impl Idle {
    fn new(
        pass: &GuardedPass,
        reader: std::os::fd::BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<Self, RunFailure> {
        let reader =
            reader.try_clone_to_owned().map_err(|e| RunFailure::ours(format!("cannot watch a ring: {e}")))?;
        let now = Instant::now();
        Ok(Self { reader, timeout, ticks: pass.ticks(), moved: now, looked: now, ended: false })
    }

    /// Kills the pass when it has stood still for too long. One that waits for room in the ring has left
    /// trace there.
    fn look(&mut self, pass: &GuardedPass) {
        if self.ended || self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let mut waits = [PollFd::from_borrowed_fd(self.reader.as_fd(), PollFlags::IN)];
        let unread = poll(&mut waits, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        let ticks = pass.ticks();
        if unread || ticks != self.ticks {
            (self.ticks, self.moved) = (ticks, self.looked);
        } else if self.moved.elapsed() > self.timeout && !pass.is_over() {
            self.ended = true;
            pass.kill();
        }
    }
}

/// Has the system kill this process when its parent dies; the guard then ends the program.
fn end_with(parent: u32) -> Result<(), RunFailure> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|e| RunFailure::ours(format!("cannot ask for a signal at the parent's death: {e}")))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
    if now == Some(parent) { Ok(()) } else { Err(RunFailure::ours("the parent is gone")) }
}

/// The name of what was asked for.
fn asked(args: &OspreyRun) -> String {
    if args.speculative_only { "speculative-only".to_owned() } else { args.mode.word() }
}

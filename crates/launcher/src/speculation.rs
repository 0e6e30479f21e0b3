//! The speculative pass as the launcher sees it: a program that is cut off, quiet, watched, and may fail.

use crate::console::Console;
use crate::pass::{GuardedPass, PassEnd, PassParts, StartRefusal, Tail, descriptor_path};
use crate::program::ProgramCall;
use crate::run::RunFailure;
use crate::signals::Signals;
use crate::stdin::{self, StandardInput};
use osprey::trace::{Footer, Header, TraceSource};
use osprey::{PagingEngine, PassMode, ProcessSettings};
use page::numbers::{binary, duration};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// What every speculative pass of a run has in common.
#[derive(Debug)]
pub struct Speculator<'a> {
    /// The program.
    pub program: &'a ProgramCall,
    /// Settings of the run.
    pub settings: &'a ProcessSettings,
    /// Standard input.
    pub input: &'a StandardInput,
    /// Whether it is cut off.
    pub isolate: bool,
    /// How long it may go without new trace.
    pub timeout: Duration,
    /// Where to say what happens.
    pub console: Console,
    /// The launcher's signals.
    pub signals: &'a Signals,
}

/// A trace that is known to be whole.
#[derive(Debug)]
pub struct WholeTrace {
    /// The file; it may have no name.
    pub file: File,
    /// Its end.
    pub footer: Footer,
}

impl WholeTrace {
    /// Bytes that the program needs when all it uses is in memory.
    pub fn needed(&self, chunk: usize) -> u64 {
        self.footer.peak_chunks.saturating_mul(chunk as u64).saturating_add(self.footer.other_bytes)
    }
}

/// How a speculative pass ended.
#[derive(Debug)]
pub enum SpeculationOutcome {
    /// With a whole trace.
    Traced(WholeTrace, PassEnd),
    /// The program does not use the runtime: there is nothing to page.
    NoRuntime(PassEnd),
    /// Without a trace, in words.
    Failed(String),
    /// The launcher was told to end.
    Interrupted(u8),
}

/// The header of a trace for these settings.
pub fn header(settings: &ProcessSettings) -> Header {
    Header {
        chunk: settings.chunk as u64,
        region: settings.region,
        microset: settings.microset as u32,
        key: settings.key,
    }
}

/// Reads a trace to its end.
///
/// # Errors
/// In words: it is torn, corrupt, or of something else.
pub fn verify(file: File, settings: &ProcessSettings) -> Result<WholeTrace, String> {
    let mut source = TraceSource::open(&descriptor_path(file.as_fd()), &header(settings))?;
    let footer = match source.footer() {
        Some(footer) => *footer,
        None => loop {
            if let osprey::trace::TraceFeed::End(footer) = source.next()? {
                break footer;
            }
        },
    };
    Ok(WholeTrace { file, footer })
}

/// A pass that runs, with what it writes to standard error.
#[derive(Debug)]
pub struct RunningPass {
    /// The pass.
    pub pass: GuardedPass,
    /// Standard error.
    pub tail: Tail,
}

impl Speculator<'_> {
    /// Starts the pass: with a file for its trace, or the writing end of a ring.
    ///
    /// # Errors
    /// When it cannot be cut off, or at a fault of the machine.
    pub fn start(
        &self,
        trace: Option<BorrowedFd<'_>>,
        ring: Option<BorrowedFd<'_>>,
    ) -> Result<RunningPass, StartRefusal> {
        let failed = |e: std::io::Error| {
            StartRefusal::Failed(RunFailure::ours(format!("cannot prepare the speculative pass: {e}")))
        };
        let settings = ProcessSettings {
            mode: PassMode::Speculate,
            engine: PagingEngine::None,
            memory: 0,
            ..self.settings.clone()
        };
        let stdin = self.input.speculative().map_err(failed)?;
        let stdout = File::options().write(true).open("/dev/null").map_err(failed)?;
        let (stderr, tail) = Tail::pipe().map_err(failed)?;
        let pass = GuardedPass::start(PassParts {
            program: self.program,
            settings: &settings,
            standard: [stdin, stdout.into(), stderr],
            trace,
            ring,
            isolate: self.isolate,
            background: true,
            limit: None,
        })?;
        Ok(RunningPass { pass, tail })
    }

    /// A whole speculative pass.
    ///
    /// # Errors
    /// A fault of the machine; what the program does wrong is an [`SpeculationOutcome`].
    pub fn run(&self) -> Result<SpeculationOutcome, RunFailure> {
        let file = stdin::memory_file("osprey-trace")
            .map_err(|e| RunFailure::ours(format!("cannot make a file in memory: {e}")))?;
        let RunningPass { pass, tail } = match self.start(Some(file.as_fd()), None) {
            Ok(running) => running,
            Err(StartRefusal::Refused(why)) => return Ok(SpeculationOutcome::Failed(refusal(&why))),
            Err(StartRefusal::Failed(failure)) => return Err(failure),
        };
        let mut watch = Watch::new(self, &file);
        let ended = pass.wait(|| watch.look())?;
        let stop = watch.stop.take();
        drop(watch);
        if let Some(signal) = self.signals.interrupted() {
            return Ok(SpeculationOutcome::Interrupted(signal));
        }
        if self.input.missed_terminal() {
            self.console.warn(
                "the speculative pass read from the terminal (or device) and found an empty line; give the \
                 input by a file or a pipe, or use --mode reactive",
            );
        }
        self.console.step(&format!(
            "speculative pass: exit code {}, {}, peak {}",
            ended.code,
            duration(ended.seconds),
            ended.peak.map_or_else(|| "unknown".into(), page::numbers::binary),
        ));
        let untouched = file.metadata().is_ok_and(|m| m.len() == 0);
        let text = tail.text();
        if let Some(why) = stop {
            self.console.quote(&text);
            return Ok(SpeculationOutcome::Failed(why));
        }
        match verify(file, self.settings) {
            Ok(trace) => Ok(SpeculationOutcome::Traced(trace, ended)),
            Err(_) if untouched && ended.stats.is_none() && ended.code == 0 => {
                Ok(SpeculationOutcome::NoRuntime(ended))
            }
            Err(_) if untouched && ended.stats.is_none() && usual(ended.code) => {
                self.console.quote(&text);
                Ok(SpeculationOutcome::Failed(self.unused(ended.code)))
            }
            Err(torn) => {
                self.console.quote(&text);
                self.console.step(&torn);
                Ok(SpeculationOutcome::Failed(format!(
                    "the speculative pass {} before its trace was whole",
                    how_ended(ended.code)
                )))
            }
        }
    }
}

impl Speculator<'_> {
    /// What to say of a program that failed before it came to use the runtime.
    fn unused(&self, code: u8) -> String {
        let ended = how_ended(code);
        let why = if self.isolate {
            "because it is cut off from files and network, or does not use it (--no-isolation lets it reach \
             them, if it stubs what it does there)"
        } else {
            "or does not use it"
        };
        format!("the speculative pass {ended} before it used the runtime: it failed, {why}")
    }
}

/// Whether a program that ended so came to an end of its own, and did not complain about the machine.
fn usual(code: u8) -> bool {
    code < 126 && i32::from(code) != osprey::EXIT_UNAVAILABLE
}

/// How the program of a pass ended, in words.
pub fn how_ended(code: u8) -> String {
    match code {
        0 => "ended".into(),
        129..=192 => format!("was ended by {}", crate::signals::name(code - 128)),
        code => format!("ended with exit code {code}"),
    }
}

/// Why a program is not run speculatively when it cannot be cut off.
pub fn refusal(why: &str) -> String {
    format!(
        "the program cannot be cut off from files and network for a speculative pass: {why}; or \
         --no-isolation, if it stubs its network and files itself"
    )
}

/// Looks after a speculative pass that writes a file.
struct Watch<'a> {
    of: &'a Speculator<'a>,
    file: &'a File,
    progress: crate::console::PassProgress,
    /// Bytes of the trace: at first, which is its header alone, and now.
    header: u64,
    bytes: u64,
    grown: Instant,
    stop: Option<String>,
}

impl<'a> Watch<'a> {
    fn new(of: &'a Speculator<'a>, file: &'a File) -> Self {
        let (progress, grown) = (of.console.progress(), Instant::now());
        Self { of, file, progress, header: 0, bytes: 0, grown, stop: None }
    }

    fn look(&mut self) -> ControlFlow<()> {
        let bytes = self.file.metadata().map_or(0, |m| m.len());
        if bytes != self.bytes {
            (self.bytes, self.grown) = (bytes, Instant::now());
            self.header = if self.header == 0 { bytes } else { self.header };
        }
        self.progress.show(bytes - self.header);
        if self.of.signals.interrupted().is_some() {
            return ControlFlow::Break(());
        }
        if self.grown.elapsed() > self.of.timeout {
            self.stop = Some(format!(
                "the speculative pass wrote no trace for {} s and was ended (--speculation-timeout gives it \
                 more)",
                self.of.timeout.as_secs()
            ));
        } else if self.of.input.overflowed() {
            self.stop = Some(format!(
                "the speculative pass read more than {} from a pipe, which is what is kept for the program; \
                 give the input by a file",
                binary(stdin::KEPT as u64)
            ));
        }
        if self.stop.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

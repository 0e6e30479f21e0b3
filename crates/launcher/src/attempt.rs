//! Which engines work here, found out by using them: a child starts the runtime with one, as a program would,
//! and touches memory. So an answer is that of the run itself, with its reason.

use crate::link::MemoryLimit;
use crate::pass::{GuardedPass, PassParts, Tail};
use crate::program::ProgramCall;
use crate::run::RunFailure;
use osprey::settings::microset;
use osprey::{OspVec, PagingEngine, PassMode, ProcessSettings};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

/// The hidden command.
pub const NAME: &str = "__attempt";
/// Memory that the child may use, and that it touches in the region.
const MEMORY: u64 = 64 << 20;
const TOUCHED: usize = 1 << 20;
const CHUNK: usize = 64 << 10;

/// Starts the runtime by the environment and touches memory. What is wrong goes to standard error.
pub fn run() -> ExitCode {
    if let Err(reason) = osprey::init() {
        eprintln!("osprey: {reason}");
        return ExitCode::from(u8::try_from(osprey::EXIT_UNAVAILABLE).unwrap_or(1));
    }
    let mut memory: OspVec<u8> = OspVec::zeroed(TOUCHED);
    for byte in memory.iter_mut().step_by(CHUNK) {
        *byte = byte.wrapping_add(1);
    }
    let held = memory.iter().step_by(CHUNK).all(|byte| *byte == 1);
    // In a speculative pass memory means nothing.
    ExitCode::from(u8::from(!held && !osprey::speculating()))
}

/// Whether the runtime can page by an engine, or else why not.
///
/// # Errors
/// In words, the runtime's own.
pub fn engine(engine: PagingEngine, spill: &Path) -> Result<(), String> {
    let settings = ProcessSettings { mode: PassMode::Reactive, engine, memory: MEMORY, ..settings(spill) };
    attempt(&settings, false)
}

/// Whether the runtime can make a trace.
///
/// # Errors
/// As [`engine`].
pub fn speculation(spill: &Path) -> Result<(), String> {
    attempt(&ProcessSettings { mode: PassMode::Speculate, ..settings(spill) }, false)
}

/// Whether a program can be cut off.
///
/// # Errors
/// In words: what is forbidden, and what to allow.
pub fn isolation(spill: &Path) -> Result<(), String> {
    attempt(&settings(spill), true)
}

/// Whether the system limits memory, and how.
///
/// # Errors
/// In words.
pub fn limit() -> Result<String, String> {
    let limit = MemoryLimit { bytes: MEMORY, swap: false, paged: false };
    crate::cgroup::MemoryGroup::create(limit, std::process::id()).map(|group| group.describe())
}

fn settings(spill: &Path) -> ProcessSettings {
    ProcessSettings {
        chunk: CHUNK,
        microset: microset(CHUNK),
        spill: spill.to_path_buf(),
        ..ProcessSettings::default()
    }
}

fn attempt(settings: &ProcessSettings, isolate: bool) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let program =
        ProgramCall { path: "/proc/self/exe".into(), name: "osprey".into(), args: vec![NAME.into()] };
    let null = || -> Result<OwnedFd, String> {
        Ok(File::options().read(true).write(true).open("/dev/null").map_err(text)?.into())
    };
    let (stderr, tail) = Tail::pipe().map_err(text)?;
    let trace = crate::stdin::memory_file("osprey-trace").map_err(text)?;
    let pass = GuardedPass::start(PassParts {
        program: &program,
        settings,
        standard: [null()?, null()?, stderr],
        trace: (settings.mode == PassMode::Speculate).then(|| trace.as_fd()),
        ring: None,
        isolate,
        background: true,
        limit: None,
    });
    let pass = pass.map_err(|refusal| RunFailure::from(refusal).text)?;
    let ended = pass.wait(|| ControlFlow::Continue(())).map_err(|failure| failure.text)?;
    let said = tail.text();
    let reason = said.lines().last().unwrap_or_default();
    match ended.code {
        0 => Ok(()),
        code if reason.is_empty() => Err(format!("the attempt {}", crate::speculation::how_ended(code))),
        _ => Err(reason.strip_prefix("osprey: ").unwrap_or(reason).to_owned()),
    }
}

//! One run: `osprey run` for every party, with reports read and errors told by workload, engine and party.

use super::figures::PartyFigures;
use super::keeper::Keeper;
use super::workload::BenchWorkload;
use crate::pass::Tail;
use crate::report::OspreyReport;
use base::Error;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use terminal::values::NamedValue as _;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a party may go on when the other has failed, and between the two ways of ending it.
const GRACE: Duration = Duration::from_secs(3);
/// Bytes kept of what a program writes.
const KEPT: usize = 1 << 20;
/// What the runtime says when the program grows beside the region and nothing is left to give up for that.
const GREW: &str = "more than its limit leaves, whatever is paged";
/// Lines of an error's text that come from the program.
const LINES: usize = 12;

/// What all runs of a workload have in common.
#[derive(Clone, Debug)]
pub struct WorkloadTask {
    /// Which.
    pub workload: BenchWorkload,
    /// Its program.
    pub program: PathBuf,
    /// How large.
    pub size: u64,
    /// Where party 0 listens, if there are two. The same for all runs: it is an argument, and a trace is for
    /// its arguments alone.
    pub address: Option<String>,
    /// Bytes per chunk, where they were asked for; else each run has those that `osprey run` chooses.
    pub chunk: Option<usize>,
    /// Where chunks are spilled.
    pub spill: PathBuf,
    /// When a run has hung.
    pub timeout: Duration,
}

/// Which pass a run is, and by which engine. Memory is in bytes per party.
#[derive(Clone, Debug, PartialEq)]
pub enum BenchPass {
    /// No limit, no paging.
    Unbounded,
    /// The system's paging under a limit.
    Swap(Vec<u64>),
    /// The speculative pass, which writes traces, for runs in this memory; of chunks of so many bytes, where
    /// those are known.
    Speculative(Vec<u64>, Option<usize>),
    /// Paging by the traces, by the engine of that name.
    Programmed(String, Vec<u64>),
    /// Both at once.
    Concurrent(String, Vec<u64>),
}

impl BenchPass {
    /// Bytes that a party may have.
    fn memory(&self, party: usize) -> Option<u64> {
        match self {
            Self::Unbounded | Self::Speculative(..) => None,
            Self::Swap(bytes) | Self::Programmed(_, bytes) | Self::Concurrent(_, bytes) => {
                bytes.get(party).copied()
            }
        }
    }

    fn words(&self, party: usize) -> Vec<String> {
        let memory = |bytes: &[u64]| bytes.get(party).map_or_else(String::new, u64::to_string);
        let words: &[&str] = match self {
            Self::Unbounded => &["--engine", "unbounded"],
            Self::Swap(bytes) => &["--engine", "swap", "--memory", &memory(bytes)],
            Self::Speculative(bytes, _) => &["--speculative-only", "--memory", &memory(bytes)],
            Self::Programmed(engine, bytes) => {
                &["--engine", engine, "--mode", "programmed", "--memory", &memory(bytes)]
            }
            Self::Concurrent(engine, bytes) => {
                &["--engine", engine, "--mode", "concurrent", "--memory", &memory(bytes)]
            }
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn traced(&self) -> bool {
        matches!(self, Self::Speculative(..) | Self::Programmed(..))
    }

    fn chunk(&self) -> Option<usize> {
        if let Self::Speculative(_, chunk) = self { *chunk } else { None }
    }
}

impl std::fmt::Display for BenchPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unbounded => f.write_str("unbounded"),
            Self::Swap(_) => f.write_str("swap"),
            Self::Speculative(..) => f.write_str("speculative pass"),
            Self::Programmed(engine, _) => f.write_str(engine),
            Self::Concurrent(engine, _) => write!(f, "{engine}, concurrent"),
        }
    }
}

/// Why a run gave no figures.
#[derive(Debug)]
pub enum LaunchFailure {
    /// A party may have too little memory to be paged at all; it takes so many bytes at least.
    TooLittle(u64, Error),
    /// The system ended a party because of its memory.
    Killed(Error),
    /// The machine does not permit what is needed to measure.
    Denied(Error),
    /// A party failed while the system paged it.
    Swapped(Error),
    /// Anything else.
    Other(Error),
}

impl From<Error> for LaunchFailure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<LaunchFailure> for Error {
    fn from(failed: LaunchFailure) -> Self {
        match failed {
            LaunchFailure::TooLittle(_, error)
            | LaunchFailure::Killed(error)
            | LaunchFailure::Denied(error)
            | LaunchFailure::Swapped(error)
            | LaunchFailure::Other(error) => error,
        }
    }
}

/// A program's own line of results.
#[derive(Debug, Deserialize)]
struct Outcome {
    size: u64,
    correct: bool,
}

/// A party that runs.
struct Running {
    child: Child,
    began: Instant,
    out: Tail,
    err: Tail,
    ended: Option<(bool, f64)>,
}

/// Runs every party of a pass and reads what they report.
///
/// # Errors
/// When a party fails, hangs or reports nothing: with workload, engine, party and the program's own words.
pub fn run(
    task: &WorkloadTask,
    pass: &BenchPass,
    keeper: &mut Keeper,
) -> Result<Vec<PartyFigures>, LaunchFailure> {
    let mut running = Vec::new();
    for party in 0..task.workload.parties() {
        running.push(start(task, pass, party, keeper)?);
    }
    let hung = wait(&mut running, task.timeout);
    for one in &running {
        keeper.end(one.child.id())?;
    }
    if hung {
        let seconds = task.timeout.as_secs();
        let text = format!(
            "{}, {pass}: not done after {seconds} s; --timeout gives it more, a smaller --size needs less",
            task.workload.word()
        );
        return Err(Error::input(text).into());
    }
    let mut parties = Vec::new();
    let mut failed: Vec<(f64, LaunchFailure)> = Vec::new();
    for (party, one) in running.into_iter().enumerate() {
        let ended = one.ended.map_or(0.0, |(_, seconds)| seconds);
        match collect(task, pass, party, one, keeper) {
            Ok(found) => parties.push(found),
            Err(reason) => {
                let error =
                    Error::input(format!("{}, {pass}, party {party}: {reason}", task.workload.word()));
                let killed = read_report(keeper, party).is_ok_and(|report| report.out_of_memory);
                failed.push((
                    ended,
                    match pass.memory(party).and_then(|memory| least(&reason, memory)) {
                        Some(bytes) => LaunchFailure::TooLittle(bytes, error),
                        None if killed => LaunchFailure::Killed(error),
                        None => LaunchFailure::Other(error),
                    },
                ));
            }
        }
    }
    // The first to fail is the cause: the other was ended because of it.
    failed.sort_by(|a, b| a.0.total_cmp(&b.0));
    failed.into_iter().next().map_or(Ok(parties), |(_, why)| Err(why))
}

/// The least bytes that the runtime asks for, when it refused to start because of its limit; an eighth more
/// than it had, when the program then grew beside the region: what a speculative pass has there is a little
/// less than what the real one has.
fn least(said: &str, memory: u64) -> Option<u64> {
    let Some((_, after)) = said.split_once("allow at least ") else {
        return said.contains(GREW).then(|| (memory + memory / 8).next_multiple_of(1 << 20));
    };
    let (number, rest) = after.split_once(' ')?;
    rest.starts_with("MiB").then(|| number.parse::<u64>().ok()?.checked_mul(1 << 20)).flatten()
}

fn start(task: &WorkloadTask, pass: &BenchPass, party: usize, keeper: &mut Keeper) -> Result<Running, Error> {
    let own = std::env::current_exe().map_err(|e| Error::io("cannot find this executable", &e))?;
    let report = report(keeper, party);
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new(own);
    command
        .args(["run", "--with-parent", &std::process::id().to_string()])
        .args(pass.words(party))
        .arg("--report")
        .arg(&report);
    if pass.traced() {
        command.arg("--trace-file").arg(trace(task, party, keeper));
    }
    if let Some(chunk) = task.chunk.or(pass.chunk()) {
        command.args(["--chunk", &chunk.to_string()]);
    }
    if !matches!(pass, BenchPass::Unbounded | BenchPass::Swap(_)) {
        command.arg("--spill").arg(&task.spill);
    }
    command.arg("--").arg(&task.program).args(words(task, party));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Error::io("cannot start osprey run", &e))?;
    keeper.run(child.id())?;
    let none = || Error::misuse("a pipe that was asked for is missing");
    let failed = |e: std::io::Error| Error::io("cannot follow osprey run", &e);
    let out = Tail::of(child.stdout.take().ok_or_else(none)?, KEPT).map_err(failed)?;
    let err = Tail::of(child.stderr.take().ok_or_else(none)?, KEPT).map_err(failed)?;
    Ok(Running { child, began: Instant::now(), out, err, ended: None })
}

/// The arguments of the program.
fn words(task: &WorkloadTask, party: usize) -> Vec<OsString> {
    let mut words = vec![task.workload.word(), "--size".into(), task.size.to_string()];
    if let Some(address) = &task.address {
        let side = if party == 0 { "--listen" } else { "--peer" };
        words.extend(["--party".into(), party.to_string(), side.into(), address.clone()]);
    }
    words.into_iter().map(OsString::from).collect()
}

/// The trace of a party.
pub fn trace(task: &WorkloadTask, party: usize, keeper: &Keeper) -> PathBuf {
    keeper.folder().join(format!("{}.{party}.trace", task.workload.word()))
}

fn report(keeper: &Keeper, party: usize) -> PathBuf {
    keeper.folder().join(format!("report.{party}.json"))
}

fn read_report(keeper: &Keeper, party: usize) -> Result<OspreyReport, String> {
    let text = std::fs::read(report(keeper, party)).map_err(|e| format!("no report of osprey run: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("the report of osprey run is not whole: {e}"))
}

/// Waits for all; when one fails the others are ended. Whether the time was over.
fn wait(running: &mut [Running], timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    let mut failed_at: Option<Instant> = None;
    let mut hung = false;
    loop {
        for one in running.iter_mut().filter(|one| one.ended.is_none()) {
            match one.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    one.ended = Some((status.success(), one.began.elapsed().as_secs_f64()));
                    // Exit code 1 may be a wrong result: then the other one ends by itself.
                    failed_at = failed_at.or((!status.success()).then(Instant::now));
                }
                Err(_) => one.ended = Some((false, 0.0)),
            }
        }
        if running.iter().all(|one| one.ended.is_some()) {
            return hung;
        }
        let now = Instant::now();
        if now > deadline && failed_at.is_none() {
            (hung, failed_at) = (true, Some(now));
        }
        if let Some(since) = failed_at.map(|at| now.saturating_duration_since(at)) {
            for one in running.iter_mut().filter(|one| one.ended.is_none()) {
                end(one, since);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// First in order, so that `osprey run` removes its control group; then by force.
fn end(one: &mut Running, since: Duration) {
    if since > 2 * GRACE {
        let _ = one.child.kill();
    } else if since > GRACE
        && let Some(pid) = Pid::from_raw(one.child.id().cast_signed())
    {
        let _ = kill_process(pid, Signal::TERM);
    }
}

fn collect(
    task: &WorkloadTask,
    pass: &BenchPass,
    party: usize,
    one: Running,
    keeper: &Keeper,
) -> Result<PartyFigures, String> {
    let (out, err) = (one.out.text(), one.err.text());
    let success = one.ended.is_some_and(|(success, _)| success);
    let outcome = out.lines().rev().find_map(|line| serde_json::from_str::<Outcome>(line).ok());
    let wrong = outcome.as_ref().is_some_and(|outcome| !outcome.correct);
    if !success && !wrong {
        let lines: Vec<&str> = err.trim_end().lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
        return Err(if last.is_empty() {
            "it failed and said nothing".to_owned()
        } else {
            format!("it failed:\n  {last}")
        });
    }
    let report = read_report(keeper, party)?;
    if !report.uses_runtime {
        return Err(
            "the program does not use the runtime of osprey, or was ended before it could report".to_owned()
        );
    }
    let (size, correct) = match (outcome, pass) {
        // A speculative pass has no result.
        (_, BenchPass::Speculative(..)) => (task.size, true),
        (Some(outcome), _) => (outcome.size, outcome.correct),
        (None, _) => return Err("the program printed no line of results".to_owned()),
    };
    Ok(PartyFigures { report, correct, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_memory_is_read_from_the_runtimes_words() {
        let said = "it failed:\n  osprey: a limit of 4 MiB is too small: the process needs 10 MiB beside the \
                    region and \
                    8 chunks of 64 KiB in it; allow at least 27 MiB\n  osprey: 4 MiB, peak unknown";
        assert_eq!(least(said, 4 << 20), Some(27 << 20));
        let said = "osprey: warning: the process uses 23 MiB beside the region: more than its limit leaves, \
                    whatever is paged; allow more";
        assert_eq!(least(said, 29 << 20), Some(33 << 20));
        for other in
            ["allow at least 27 GiB", "allow at least MiB", "allow at least 99999999999999 MiB", "killed"]
        {
            assert_eq!(least(other, 1 << 30), None, "{other}");
        }
        let error = || Error::input("why");
        let all = [
            LaunchFailure::TooLittle(1, error()),
            LaunchFailure::Killed(error()),
            LaunchFailure::Denied(error()),
            LaunchFailure::Other(error()),
        ];
        for failed in all {
            assert_eq!(Error::from(failed).to_string(), error().to_string());
        }
    }
}

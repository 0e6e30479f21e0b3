//! What must not outlive a measurement, kept by a second process: the folder of traces and reports, the swap
//! file, the runs. The keeper hears from the measurement through a pipe. When the pipe ends, for whatever
//! reason (done, a signal, a panic, `kill -9`), it ends the runs, switches the swap file off and removes
//! everything.
//!
//! One request a line, one answer a line: `folder`, `swap BYTES DIR`, `unswap`, `run PID`, `end PID`; the
//! answer is `ok`, with a path where there is one, or `no` and the reason.

use base::Error;
use osprey::disk::SwapFile;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long runs may take to end in order before they are killed.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The measurement's end of the pipe.
pub struct Keeper {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Keeper {
    /// Starts the keeper: this executable with the hidden flag `--keeper`.
    ///
    /// # Errors
    /// When it cannot be started or cannot make its folder.
    pub fn start() -> Result<Self, Error> {
        let own = std::env::current_exe().map_err(|e| Error::io("cannot find this executable", &e))?;
        let mut child = Command::new(own)
            .args(["bench", "--keeper"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C ends the measurement; the keeper hears of that through the pipe.
            .process_group(0)
            .spawn()
            .map_err(|e| Error::io("cannot start the keeper of the measurement", &e))?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::misuse("a child without the pipes that were asked for"));
        };
        let (ask, answers) = (Some(ask), BufReader::new(answers));
        let mut keeper = Self { child, ask, answers, folder: PathBuf::new() };
        keeper.folder = keeper.ask("folder")?.map(PathBuf::from).map_err(Error::input)?;
        Ok(keeper)
    }

    /// A folder for traces and reports.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives the system a swap file. The inner error is the reason why it may not have one.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn swap(&mut self, dir: &Path, bytes: u64) -> Result<Result<PathBuf, String>, Error> {
        Ok(self.ask(&format!("swap {bytes} {}", dir.display()))?.map(PathBuf::from))
    }

    /// Takes the swap file away.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn unswap(&mut self) -> Result<(), Error> {
        self.ask("unswap").map(|_| ())
    }

    /// A run began, to be ended with the measurement.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn run(&mut self, pid: u32) -> Result<(), Error> {
        self.ask(&format!("run {pid}")).map(|_| ())
    }

    /// A run has ended.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn end(&mut self, pid: u32) -> Result<(), Error> {
        self.ask(&format!("end {pid}")).map(|_| ())
    }

    fn ask(&mut self, request: &str) -> Result<Result<String, String>, Error> {
        let gone = |e: &std::io::Error| Error::io("the keeper of the measurement is gone", e);
        let Some(ask) = &mut self.ask else { return Err(Error::misuse("a keeper that was let go")) };
        writeln!(ask, "{request}").and_then(|()| ask.flush()).map_err(|e| gone(&e))?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(|e| gone(&e))?;
        match answer.trim_end_matches('\n').split_once(' ') {
            Some(("ok", value)) => Ok(Ok(value.to_owned())),
            Some(("no", reason)) => Ok(Err(reason.to_owned())),
            _ => Err(gone(&std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for Keeper {
    /// Waits until everything is removed.
    fn drop(&mut self) {
        self.ask = None;
        let _ = self.child.wait();
    }
}

/// The keeper itself: answers until its input ends, then removes what there is.
///
/// # Errors
/// When standard output is gone before the measurement is.
pub fn keep() -> Result<(), Error> {
    // The end of the pipe is the only order to end: a signal to the whole session reaches the measurement,
    // too.
    let deaf = signal_hook::iterator::Signals::new([2, 1, 15]);
    let mut kept = Kept { folder: None, swap: None, runs: BTreeSet::new() };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = match kept.answer(&line) {
            Ok(value) => format!("ok {value}"),
            Err(reason) => format!("no {}", reason.replace('\n', " ")),
        };
        if terminal::output::print(&answer).is_err() {
            break;
        }
    }
    kept.end_runs();
    drop(kept);
    drop(deaf);
    Ok(())
}

struct Kept {
    folder: Option<tempfile::TempDir>,
    swap: Option<SwapFile>,
    runs: BTreeSet<i32>,
}

impl Kept {
    fn answer(&mut self, line: &str) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "folder" => {
                let made = tempfile::Builder::new().prefix("osprey-bench-").tempdir();
                let made = made.map_err(|e| format!("cannot make a temporary folder: {e}"))?;
                Ok(self.folder.insert(made).path().display().to_string())
            }
            "swap" => self.swap(rest),
            "unswap" => {
                self.swap = None;
                Ok(String::new())
            }
            "run" | "end" => {
                let pid = rest.parse().map_err(|_| format!("{rest} is no process"))?;
                let _ = if word == "run" { self.runs.insert(pid) } else { self.runs.remove(&pid) };
                Ok(String::new())
            }
            _ => Err(format!("{word} is no request")),
        }
    }

    fn swap(&mut self, rest: &str) -> Result<String, String> {
        let (bytes, dir) = rest.split_once(' ').ok_or("swap needs bytes and a folder")?;
        let bytes = bytes.parse().map_err(|_| format!("{bytes} is no number of bytes"))?;
        self.swap = None;
        let made = SwapFile::create(Path::new(dir), bytes);
        let made = made.map_err(|e| format!("no swap file of {bytes} bytes in {dir}: {e}"))?;
        Ok(self.swap.insert(made).path().display().to_string())
    }

    /// Asks the runs to end, which removes their control groups, and kills those that do not.
    fn end_runs(&self) {
        let left = || {
            self.runs
                .iter()
                .filter_map(|&pid| Pid::from_raw(pid))
                .filter(|&pid| test_kill_process(pid).is_ok())
        };
        for pid in left() {
            // One that is gone by now is what was wanted, here and below.
            let _ = kill_process(pid, Signal::TERM);
        }
        let until = Instant::now() + GRACE;
        while left().count() > 0 && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        for pid in left() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

//! Parties as processes of their own: started, followed by their JSON lines, and never left behind.

use crate::progress::ProgressLine;
use base::Error;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a child's result that are read at most.
const RESULT_BYTES: u64 = 64 << 20;
/// Lines of other text of a child that are kept for an error message.
const TAIL: usize = 20;
/// How long the others may go on after one child failed: its peer has an error of its own to tell.
const GRACE: Duration = Duration::from_secs(10);

/// What a child said, or that it is done.
enum Said {
    Line(usize, ProgressLine),
    Done(usize, Outcome),
}

/// How a child ended.
struct Outcome {
    success: bool,
    stdout: String,
    tail: Vec<String>,
}

/// Children that end with this value.
pub struct Children {
    names: Vec<String>,
    processes: Vec<Child>,
    readers: Vec<JoinHandle<()>>,
    said: Receiver<Said>,
    tell: Sender<Said>,
}

impl Default for Children {
    fn default() -> Self {
        let (tell, said) = channel();
        Self { names: Vec::new(), processes: Vec::new(), readers: Vec::new(), said, tell }
    }
}

impl Children {
    /// Starts this program again with other arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self, name: &str, arguments: &[&std::ffi::OsStr]) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::io(format!("cannot start the process of {name}"), &e);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (index, tell) = (self.processes.len(), self.tell.clone());
        self.names.push(name.to_owned());
        self.processes.push(child);
        let result = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(stdout) = stdout {
                // What is no text is no result either, and is found out when it is parsed.
                let _ = stdout.take(RESULT_BYTES).read_to_string(&mut text);
            }
            text
        });
        self.readers.push(std::thread::spawn(move || {
            let mut tail = Vec::new();
            for line in stderr.into_iter().flat_map(|s| BufReader::new(s).lines()).map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(event) => drop(tell.send(Said::Line(index, event))),
                    Err(_) => tail.push(line),
                }
                if tail.len() > TAIL {
                    tail.remove(0);
                }
            }
            let stdout = result.join().unwrap_or_default();
            let _ = tell.send(Said::Done(index, Outcome { success: false, stdout, tail }));
        }));
        Ok(())
    }

    /// The children's numbers at the system, in the order of their start.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }

    /// Follows what the children say until `wanted` returns something.
    ///
    /// # Errors
    /// When a child ends before.
    pub fn until<T>(
        &mut self,
        mut wanted: impl FnMut(usize, &ProgressLine) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            match self.said.recv() {
                Ok(Said::Line(index, line)) => {
                    if let Some(found) = wanted(index, &line) {
                        return Ok(found);
                    }
                }
                Ok(Said::Done(index, outcome)) => return Err(self.failure(index, &outcome)),
                Err(_) => return Err(Error::misuse("no child is left to follow")),
            }
        }
    }

    /// Follows the children to their end and returns what each wrote, as JSON.
    ///
    /// # Errors
    /// The error of the first child that failed, in its own words, with the others' below it.
    pub fn finish<T: DeserializeOwned>(
        mut self,
        mut watch: impl FnMut(usize, &ProgressLine),
    ) -> Result<Vec<T>, Error> {
        let mut results: Vec<Option<T>> = self.processes.iter().map(|_| None).collect();
        let mut failures: Vec<Error> = Vec::new();
        let (mut left, mut until) = (self.processes.len(), None::<Instant>);
        while left > 0 {
            let wait = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            match self.said.recv_timeout(wait) {
                Ok(Said::Line(index, line)) => watch(index, &line),
                Ok(Said::Done(index, outcome)) => {
                    left -= 1;
                    match self.result(index, outcome) {
                        Ok(result) => results[index] = Some(result),
                        Err(error) => failures.push(error),
                    }
                    if !failures.is_empty() && until.is_none() {
                        until = Some(Instant::now() + GRACE);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        match failures.into_iter().reduce(worse) {
            Some(error) => Err(error),
            None => {
                results.into_iter().collect::<Option<_>>().ok_or_else(|| Error::misuse("a child is missing"))
            }
        }
    }

    fn result<T: DeserializeOwned>(&mut self, index: usize, mut outcome: Outcome) -> Result<T, Error> {
        outcome.success = self.processes[index].wait().is_ok_and(|status| status.success());
        if !outcome.success {
            return Err(self.failure(index, &outcome));
        }
        let result = serde_json::from_str(&outcome.stdout);
        result.map_err(|e| Error::misuse(format!("the result of {} cannot be read: {e}", self.names[index])))
    }

    /// A child's own words, with the exit code that it would give.
    fn failure(&self, index: usize, outcome: &Outcome) -> Error {
        let name = &self.names[index];
        let told: Option<Told> = serde_json::from_str(&outcome.stdout).ok();
        match told {
            Some(told) => told.error.revive(),
            None if outcome.tail.is_empty() => {
                Error::misuse(format!("the process of {name} ended without a word"))
            }
            None => Error::misuse(format!("the process of {name} failed: {}", outcome.tail.join("\n"))),
        }
    }
}

/// Of two failures, the one that explains more: that a peer left explains nothing.
fn worse(first: Error, second: Error) -> Error {
    let explains = |e: &Error| !matches!(e.kind(), base::Fault::Channel(_));
    if !explains(&first) && explains(&second) { second } else { first }
}

/// The JSON error object of a child.
#[derive(serde::Deserialize)]
struct Told {
    error: ToldError,
}

#[derive(serde::Deserialize)]
struct ToldError {
    kind: String,
    message: String,
}

impl ToldError {
    fn revive(self) -> Error {
        let at = base::At::default();
        let kind = match self.kind.as_str() {
            "refused" => base::Fault::Refused(self.message),
            "peer" => base::Fault::Channel(base::ChannelError::Io(self.message)),
            "file" => base::Fault::Io(self.message),
            "input" => base::Fault::Input(self.message),
            _ => base::Fault::Misuse(self.message),
        };
        Error::new(at, kind)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

//! Services of several organisations on this machine: real processes, TLS, SQLite and ledgers, and commands.

use crate::sides::rules;
use net::Identity;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(180);

/// Organisations, each with a folder and a key, and a study of all.
pub struct Houses {
    pub folder: tempfile::TempDir,
    pub keys: Vec<String>,
    pub hash: String,
    names: Vec<&'static str>,
    running: Vec<Option<Child>>,
    ports: Vec<String>,
}

impl Houses {
    /// Folders and keys; nothing runs yet.
    pub fn new(names: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = |name: &&str| {
            let home = folder.path().join(name);
            std::fs::create_dir_all(home.join("data")).expect("made");
            let identity = Identity::generate().expect("a key");
            identity.save(&home.join("own.key")).expect("saved");
            identity.fingerprint().to_string()
        };
        Self {
            keys: names.iter().map(key).collect(),
            hash: String::new(),
            names: names.to_vec(),
            running: names.iter().map(|_| None).collect(),
            ports: (0..3 * names.len()).map(|_| base::free_address().expect("a port")).collect(),
            folder,
        }
    }

    /// Writes the rules of a side; `sets` has its data and policy.
    pub fn rule(&self, side: usize, sets: &str) {
        let text = rules(side, &self.names, &self.keys, &self.ports, sets);
        std::fs::write(self.home(side).join("service.toml"), text).expect("written");
    }

    /// Keeps the study, and starts all.
    pub fn begin(&mut self, study: &str) {
        std::fs::write(self.folder.path().join("study.toml"), study).expect("written");
        for side in 0..self.names.len() {
            self.tacit(side, &["accept"], &[]);
            self.start(side);
        }
    }

    /// Where a side's page listens.
    pub fn web(&self, side: usize) -> String {
        self.ports[side].clone()
    }

    /// Where a side listens for other services.
    pub fn link(&self, side: usize) -> String {
        self.ports[self.names.len() + side].clone()
    }

    pub fn home(&self, side: usize) -> PathBuf {
        self.folder.path().join(self.names[side])
    }

    pub fn command(&self, side: usize, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.arg("service").args(words).arg(self.home(side).join("service.toml"));
        command
    }

    #[track_caller]
    pub fn tacit(&self, side: usize, words: &[&str], more: &[&str]) -> Value {
        let done = self.command(side, words).args(more).arg("--json").output().expect("tacit starts");
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words:?} of {}: {error}", self.names[side]);
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    pub fn start(&mut self, side: usize) {
        let log = File::options().create(true).append(true).open(self.home(side).join("log"));
        let mut command = self.command(side, &["run", "--json"]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(log.expect("a log")).spawn().expect("tacit starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        assert!(line.contains("page"), "{line}{}", self.log(side));
        self.running[side] = Some(child);
    }

    /// SIGKILL, at once or whenever it is.
    pub fn kill(&mut self, side: usize) {
        let mut child = self.running[side].take().expect("it runs");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    /// SIGKILL, and a new process.
    pub fn strike(&mut self, side: usize) {
        self.kill(side);
        self.start(side);
    }

    fn log(&self, side: usize) -> String {
        std::fs::read_to_string(self.home(side).join("log")).unwrap_or_default()
    }

    /// The first side proposes the study.
    pub fn propose(&mut self) {
        self.propose_by(0);
    }

    pub fn propose_by(&mut self, side: usize) {
        let study = self.folder.path().join("study.toml");
        let done = self.tacit(side, &["propose"], &[study.to_str().expect("UTF-8")]);
        self.hash = done["study"].as_str().expect("a hash").to_owned();
    }

    pub fn consent(&self, side: usize) {
        self.tacit(side, &["consent"], &[&self.hash, "--data", "rows", "--runs", "5", "--yes"]);
    }

    /// Consents, as soon as this side has heard the others.
    pub fn consent_once_heard(&self, side: usize) {
        self.say_once_heard(side, &["consent"], &[&self.hash, "--data", "rows", "--runs", "5", "--yes"]);
    }

    /// Says something, as soon as this side has heard the others: nothing is said on a study before.
    pub fn say_once_heard(&self, side: usize, words: &[&str], more: &[&str]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let done = self.command(side, words).args(more).arg("--json").output().expect("tacit starts");
            let error = String::from_utf8_lossy(&done.stderr).into_owned();
            if done.status.success() {
                return;
            }
            assert!(error.contains("has not been heard") && Instant::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn status(&self, side: usize) -> Value {
        self.tacit(side, &["status"], &[&self.hash])
    }

    /// Waits until something holds of the study at a side.
    #[track_caller]
    pub fn until(&self, side: usize, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let here = self.tacit(side, &["studies"], &["--all"]);
            let mut all = here["studies"].as_array().into_iter().flatten();
            let known = all.any(|one| one["study"] == self.hash.as_str());
            let status = if known { self.status(side) } else { Value::Null };
            if holds(&status) {
                return status;
            }
            let logs: Vec<String> = (0..self.names.len()).map(|side| self.log(side)).collect();
            assert!(Instant::now() < until, "{} never saw {what}: {status}\n{logs:?}", self.names[side]);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// As [`Self::until`], while an operator lets runs begin again that wait for their time. Where one waits
    /// for a person this fails: a word of the operator would hide it.
    #[track_caller]
    pub fn until_again(&self, side: usize, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let looked = std::cell::Cell::new(0);
        self.until(side, what, |status| {
            if holds(status) || status["state"] == "answered" {
                return true;
            }
            looked.set(looked.get() + 1);
            if looked.get() % 20 == 0 {
                (0..self.names.len()).for_each(|side| self.begins_again(side));
            }
            false
        })
    }

    #[track_caller]
    fn begins_again(&self, side: usize) {
        let status = self.status(side);
        assert!(status["held"].is_null(), "{} waits for a person: {status:#}", self.names[side]);
        self.tacit(side, &["start"], &[&self.hash]);
    }

    /// Log, statements and debits of a side fit each other.
    #[track_caller]
    pub fn verifies(&self, side: usize, ledger: &Path) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.args(["ledger", "verify"]).arg(ledger).arg("--service").arg(self.home(side)).arg("--json");
        let done = command.output().expect("tacit starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let found: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert!(found["proposals"].as_array().is_some_and(|all| !all.is_empty()), "{found:#}");
    }
}

impl Drop for Houses {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

//! Running the binary, and two parties with everything they need.

#[path = "../../../job/tests/parties/mod.rs"]
pub mod parties;

use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use parties::{PartyFile, make_key};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What a finished command left.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("tacit prints UTF-8");
        let code = output.status.code().expect("tacit ends by itself");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Done {
    /// The one JSON object on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e} in {:?}; {}", self.stdout, self.stderr))
    }

    /// Checks exit code and error text, and that both channels say the same.
    #[track_caller]
    pub fn failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in: {}", self.stderr);
        }
        if self.stdout.starts_with('{') {
            let error = &self.json()["error"];
            assert_eq!(error["code"], code);
            assert!(parts.iter().all(|part| error["message"].as_str().unwrap().contains(part)), "{error}");
        }
    }

    #[track_caller]
    pub fn fine(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }
}

pub fn command<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    // One line for what is said of a thing: tests of widths say their own.
    command.args(words).env("COLUMNS", "2000");
    command
}

/// Runs a command to its end.
pub fn tacit<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Done {
    command(words).output().expect("tacit starts").into()
}

/// A command that is running; killed when dropped.
pub struct Running {
    child: Option<Child>,
    killed: bool,
    stderr: BufReader<std::process::ChildStderr>,
    heard: String,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tacit starts");
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child: Some(child), killed: false, stderr, heard: String::new() }
    }

    /// Reads standard error until a line holds `text`.
    #[track_caller]
    pub fn hear(&mut self, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).unwrap();
            self.heard.push_str(&line);
            if line.contains(text) {
                return line;
            }
            assert!(read > 0 && Instant::now() < until, "{text:?} never came: {}", self.heard);
        }
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn kill(&mut self) {
        let child = self.child.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.killed = true;
    }

    pub fn is_killed(&self) -> bool {
        self.killed
    }

    pub fn is_over(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits until it ends, and kills it where it does not in time.
    pub fn end_until(mut self, until: Instant) {
        while !self.killed && self.child.as_mut().unwrap().try_wait().unwrap().is_none() {
            if Instant::now() > until {
                self.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn end(mut self) -> Done {
        let mut child = self.child.take().unwrap();
        let mut stdout = String::new();
        self.stderr.read_to_string(&mut self.heard).unwrap();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = child.wait().unwrap().code().expect("tacit ends by itself");
        Done { code, stdout, stderr: std::mem::take(&mut self.heard) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two parties of a generated lift study, with a folder each.
pub struct Pair {
    pub folder: tempfile::TempDir,
    pub address: String,
}

pub const NAMES: [&str; 2] = ["publisher", "advertiser"];

impl Pair {
    pub fn new(rows: u32, format: FileFormat) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options =
            LiftOptions { rows, overlap: 0.5, max_events: 4, clamp: 100, seed: 7, format, files: 1 };
        lift(folder.path(), &options, &|_, _| ()).unwrap();
        let keys = NAMES.map(|name| make_key(folder.path(), name));
        std::fs::write(folder.path().join("study.toml"), lift_study(&options, &keys[0], &keys[1], false))
            .unwrap();
        let address = base::free_address().unwrap();
        for (name, side) in NAMES.into_iter().zip(["listen", "peer"]) {
            let extension = format.extension();
            let lines = format!("data = \"{name}.{extension}\"\n{side} = \"{address}\"");
            PartyFile::owner(folder.path(), name).with(&lines).write();
        }
        Self { folder, address }
    }

    pub fn csv(rows: u32) -> Self {
        Self::new(rows, FileFormat::Csv)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `tacit run` of one party.
    pub fn run(&self, name: &str, more: &[&str]) -> Command {
        let file = self.path(&format!("{name}.toml"));
        let words = ["run".as_ref(), file.as_os_str(), "--json".as_ref(), "--spend-anyway".as_ref()];
        let mut command = command(words);
        command.args(more);
        command
    }

    /// Both parties to their end, the listening one first.
    pub fn both(&self, more: [&[&str]; 2]) -> [Done; 2] {
        let [first, second] = [0, 1].map(|i| Running::start(self.run(NAMES[i], more[i])));
        [first.end(), second.end()]
    }

    /// Changes a file by replacing text that must be there.
    #[track_caller]
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{from:?} is not in {name}");
        std::fs::write(self.path(name), text.replacen(from, to, 1)).unwrap();
    }
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

//! Running `osprey` and looking at what it leaves.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The launcher.
pub fn osprey() -> &'static str {
    env!("CARGO_BIN_EXE_osprey")
}

/// The program of the tests, an example that `cargo test` builds.
pub fn subject() -> PathBuf {
    let path = Path::new(osprey()).with_file_name("examples").join("subject");
    assert!(path.exists(), "{} is not built: cargo test -p launcher builds it", path.display());
    path
}

/// How `osprey run` ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: without_swap(&String::from_utf8(output.stderr).expect("text")),
        }
    }
}

/// Without the warning that the system may swap: whether any swap is on is up to others on this machine,
/// other tests too.
fn without_swap(said: &str) -> String {
    let about_swap = "osprey: warning: the system may write the program's memory to swap as it is";
    said.split_inclusive('\n').filter(|line| !line.starts_with(about_swap)).collect()
}

impl Run {
    /// The report: the last line of standard error of a run with `--json`.
    pub fn report(&self) -> Value {
        let line = self.err.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|e| panic!("no report ({e}) in {}", self.err))
    }

    /// Asserts that the program's own pass gave the right result.
    pub fn succeeded(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{}", self.err);
        assert_eq!(self.out.lines().count(), 1, "one pass prints: {}", self.out);
        self
    }

    /// Asserts that something was said.
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "`{text}` is not in:\n{}", self.err);
        self
    }

    /// Asserts that something was not said.
    pub fn does_not_say(&self, text: &str) -> &Self {
        assert!(!self.err.contains(text), "`{text}` is in:\n{}", self.err);
        self
    }
}

/// `osprey run FLAGS -- subject WORDS`.
pub fn command(flags: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new(osprey());
    command.arg("run").args(flags).arg("--").arg(subject()).args(words).stdin(Stdio::null());
    command
}

/// Runs to the end.
pub fn run(flags: &[&str], words: &[&str]) -> Run {
    command(flags, words).output().expect("osprey starts").into()
}

/// Runs with bytes through a pipe.
pub fn run_with_input(flags: &[&str], words: &[&str], input: &[u8]) -> Run {
    let mut command = command(flags, words);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("osprey starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("written");
    child.wait_with_output().expect("ended").into()
}

/// Whether this machine lets a program be cut off; otherwise says why a test is skipped.
pub fn can_isolate() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    can(WHY_NOT.get_or_init(|| {
        let words = ["run", "--memory", "64M", "--", "true"];
        let tried = Command::new(osprey()).args(words).output().map(Run::from).expect("osprey starts");
        tried.err.contains("cannot be cut off").then_some(tried.err)
    }))
}

fn can(why_not: &Option<String>) -> bool {
    if let Some(why) = why_not {
        eprintln!("skipped: {why}");
    }
    why_not.is_none()
}

/// Whether there is a userfaultfd that traces; otherwise says why a test is skipped.
pub fn can_trace() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    can(WHY_NOT.get_or_init(|| {
        let tried = run(&["--memory", "64M", "--no-isolation"], &["1"]);
        tried.err.contains("needs userfaultfd").then_some(tried.err)
    }))
}

/// What is in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect()
}

/// Memory groups of one launcher, wherever groups are.
pub fn groups_of(launcher: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().display().to_string().starts_with("osprey-")
                    && entry.file_name().display().to_string().contains(&format!("-{launcher}-"))
                {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Processes whose environment or command line holds a word.
pub fn processes_with(word: &str) -> Vec<u32> {
    let holds = |pid: u32, file: &str| {
        std::fs::read(format!("/proc/{pid}/{file}"))
            .is_ok_and(|bytes| bytes.windows(word.len()).any(|part| part == word.as_bytes()))
    };
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && (holds(*pid, "environ") || holds(*pid, "cmdline")))
        .collect()
}

/// A filter that answers userfaultfd with EPERM, installed by an interpreter because it takes a raw system
/// call.
pub const WITHOUT_USERFAULTFD: &str = r#"
import ctypes, os, platform, struct, sys
number = {"x86_64": 323, "aarch64": 282}[platform.machine()]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filter)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

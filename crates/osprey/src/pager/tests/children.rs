//! Children that run a program under a pager, and what came of them.

use super::patterns::Program;
use super::{ProcessSettings, Stats, header};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "PAGER_TEST_PROGRAM";
/// What a child does to itself first: see [`super::failures`].
pub const HARM: &str = "PAGER_TEST_HARM";
/// Seconds after which a child that waits for ever is ended by the system, so that its test fails.
const PATIENCE: u32 = 120;
/// Exit code of a child that could not start its pager.
pub const REFUSED: i32 = 3;

pub enum Outcome {
    Finished(Box<Stats>),
    /// The pager did not start, with what it said.
    Refused(String),
    /// Anything else.
    Other(Output),
}

impl Outcome {
    /// The counters; `None`, with a printed reason, where this machine cannot page so.
    pub fn stats(self) -> Option<Stats> {
        match self {
            Self::Finished(stats) => Some(*stats),
            Self::Refused(text) => {
                let lacks = text.contains("userfaultfd") || text.contains("io_uring");
                assert!(lacks, "the pager did not start: {text}");
                eprintln!("skipped: {text}");
                None
            }
            Self::Other(output) => panic!("{output:?}"),
        }
    }
}

/// The command for a child; the caller keeps the directory until it has ended.
pub fn command(
    settings: &ProcessSettings,
    program: &Program,
    trace: Option<&Program>,
    directory: &Path,
) -> Command {
    let mut settings = settings.clone();
    settings.trace = trace.map(|trace| {
        let path = directory.join("trace");
        trace.write_trace(&path, &header(&settings));
        path
    });
    if settings.trace.is_none() {
        settings.mode = crate::PassMode::Reactive;
    }
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    let arguments = ["pager::tests::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
    command.args(arguments).env(PROGRAM, program.to_text()).stdin(Stdio::null());
    settings.apply_to(&mut command);
    command
}

pub fn run(settings: &ProcessSettings, program: &Program, trace: Option<&Program>) -> Outcome {
    run_with(settings, program, trace, |_| {})
}

pub fn run_with(
    settings: &ProcessSettings,
    program: &Program,
    trace: Option<&Program>,
    adapt: impl FnOnce(&mut Command),
) -> Outcome {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = command(settings, program, trace, directory.path());
    adapt(&mut command);
    outcome(command.output().expect("a child"))
}

pub fn outcome(output: Output) -> Outcome {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |mark: &str| text.lines().find_map(|line| Some(line.split_once(mark)?.1.to_string()));
    match (line("STATS "), line("REFUSED ")) {
        (Some(json), _) if output.status.success() => {
            Outcome::Finished(serde_json::from_str(&json).expect("counters"))
        }
        (_, Some(why)) if output.status.code() == Some(REFUSED) => Outcome::Refused(why),
        _ => Outcome::Other(output),
    }
}

/// In the child.
pub fn act(run: impl FnOnce(ProcessSettings, &Program) -> Result<Stats, String>) {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    if let Ok(harm) = std::env::var(HARM) {
        super::failures::suffer(&harm);
    }
    // SAFETY: a plain call; the signal ends this process.
    unsafe { libc::alarm(PATIENCE) };
    let settings = ProcessSettings::from_env().expect("settings");
    match run(settings, &Program::from_text(&program)) {
        Ok(stats) => println!("\nSTATS {}", serde_json::to_string(&stats).expect("counters")),
        Err(text) => {
            println!("\nREFUSED {text}");
            std::process::exit(REFUSED);
        }
    }
}

/// In the child: says that it is in the middle, for a parent that wants to end it there.
pub fn progress(number: usize) {
    if number == 1000 && std::env::var_os(HARM).is_some() {
        println!("\nHALFWAY");
        std::io::stdout().flush().expect("standard output");
    }
}

//! `osprey __exec`: the last step before the program, in the process that becomes it. See decision 030.

use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The hidden command.
pub const NAME: &str = "__exec";

/// The command line of this step: `__exec GUARD GROUP PROGRAM NAME ARGS...`, `GROUP` empty for none.
pub fn command(
    guard: u32,
    group: Option<&Path>,
    program: &OsStr,
    name: &OsStr,
    args: &[OsString],
) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let group = group.map_or(OsStr::new(""), Path::as_os_str);
    command.arg(NAME).arg(guard.to_string()).arg(group).arg(program).arg(name).args(args);
    command
}

/// Dies with its guard, joins its group, becomes the program. Comes back when it cannot.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let (code, text) = become_program(args);
    // There is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "osprey: {text}");
    ExitCode::from(code)
}

fn become_program(args: Vec<OsString>) -> (u8, String) {
    let mut args = args.into_iter();
    let (Some(guard), Some(group), Some(program), Some(name)) =
        (args.next(), args.next(), args.next(), args.next())
    else {
        return (125, format!("{NAME} is a part of osprey run and no command of its own"));
    };
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return (125, format!("cannot ask for a signal at the guard's death: {error}"));
    }
    // A guard that died before that line sends no signal any more.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref() != guard.to_str() {
        return (125, "the guard is gone".into());
    }
    if !group.is_empty()
        && let Err(error) = std::fs::write(Path::new(&group).join("cgroup.procs"), "0")
    {
        return (125, format!("cannot join the memory group {}: {error}", group.display()));
    }
    let error = Command::new(&program).arg0(name).args(args).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    (code, format!("cannot run {}: {error}", program.display()))
}

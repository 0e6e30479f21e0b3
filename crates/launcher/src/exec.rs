//! `osprey __exec`: the last step before the program, in the process that becomes it. See decision 030.

use rustix::event::EventfdFlags;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The hidden command.
pub const NAME: &str = "__exec";

/// What stands for a session of its own on the command line.
const OWN: &str = "own";

/// The command line of this step: `__exec GUARD GROUP SESSION PROGRAM NAME ARGS...`; `GROUP` is empty for
/// none, `SESSION` for the caller's, which has the terminal.
pub fn command(
    guard: u32,
    group: Option<&Path>,
    own_session: bool,
    program: &OsStr,
    name: &OsStr,
    args: &[OsString],
) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let group = group.map_or(OsStr::new(""), Path::as_os_str);
    let session = if own_session { OWN } else { "" };
    command.arg(NAME).arg(guard.to_string()).arg(group).arg(session).arg(program).arg(name).args(args);
    command
}

/// Dies with its guard, joins its group, leaves the terminal, becomes the program. Comes back when it cannot.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let (code, text) = become_program(args);
    // There is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "osprey: {text}");
    ExitCode::from(code)
}

fn become_program(args: Vec<OsString>) -> (u8, String) {
    let mut args = args.into_iter();
    let (Some(guard), Some(group), Some(session), Some(program), Some(name)) =
        (args.next(), args.next(), args.next(), args.next(), args.next())
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
    // Here and not in the guard, which leads a group already and so may begin no session.
    if session == OWN
        && let Err(error) = rustix::process::setsid()
    {
        return (125, format!("cannot begin a session without the terminal: {error}"));
    }
    // The settings are for one process; which of those to come is for them to find out.
    let token = match rustix::event::eventfd(1, EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE) {
        Ok(token) => token.into_raw_fd().to_string(),
        Err(error) => return (125, format!("cannot make an event descriptor: {error}")),
    };
    let error = Command::new(&program).arg0(name).args(args).env(osprey::settings::CLAIM, token).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    (code, format!("cannot run {}: {error}", program.display()))
}

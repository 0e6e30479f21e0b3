//! `osprey __child`: the guard of one pass. It sets itself up, starts the program, and ends all that the
//! program started, when the program ends or the launcher does. See decision 030.

use crate::cgroup::{Help, MemoryGroup};
use crate::link::{self, GuardEvent, GuardEvents, GuardOrder, Spec};
use crate::{exec, overlay, processes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The hidden command.
pub const NAME: &str = "__child";

/// Nanoseconds between two looks at the memory of a program that is in no group: at first and, doubling, at
/// most.
const LOOK: [i64; 2] = [2_000_000, 128_000_000];

/// Runs what comes over standard input, a socket.
pub fn run() -> ExitCode {
    let Ok(socket) = rustix::stdio::stdin().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::from(125);
    };
    let Ok((spec, descriptors)) = link::receive_spec(&socket) else {
        eprintln!("osprey: {NAME} is a part of osprey run and no command of its own");
        return ExitCode::from(125);
    };
    if let Err(text) = Guard::serve(&socket, &spec, descriptors) {
        // A launcher that is gone reads nothing, and nothing is left to do.
        let _ = link::send(&socket, &GuardEvent::Refused { text });
    }
    processes::end_descendants();
    ExitCode::SUCCESS
}

struct Guard {
    incoming: GuardEvents,
    program: Child,
    group: Option<MemoryGroup>,
    help: Option<Help>,
    peak: u64,
}

impl Guard {
    fn serve(socket: &UnixStream, spec: &Spec, descriptors: Vec<OwnedFd>) -> Result<(), String> {
        let bell = signals().map_err(|e| format!("cannot catch signals: {e}"))?;
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
            .map_err(|e| format!("cannot adopt orphans: {e}"))?;
        let group = spec.limit.map(|limit| MemoryGroup::create(limit, spec.launcher));
        if spec.isolate {
            overlay::isolate()?;
        }
        let started =
            group.as_ref().map(|made| made.as_ref().map(MemoryGroup::describe).map_err(Clone::clone));
        let group = group.and_then(Result::ok);
        let swappable = group.as_ref().and_then(MemoryGroup::swappable);
        let help = group.as_ref().zip(spec.limit).and_then(|(group, limit)| group.help(limit));
        let pager = help.as_ref().and_then(Help::pager);
        let program = start(spec, group.as_ref(), descriptors, pager)?;
        let reader = socket.try_clone().map_err(|e| format!("cannot watch the launcher: {e}"))?;
        let mut guard = Self { incoming: GuardEvents::new(reader), program, group, help, peak: 0 };
        // A launcher that is gone is noticed below.
        let _ = link::send(socket, &GuardEvent::Started { limit: started, swappable });
        if let Some(code) = guard.watch(bell) {
            let left = processes::end_descendants();
            let group = guard.group.take();
            let _ = link::send(
                socket,
                &GuardEvent::Ended {
                    code,
                    peak: group.as_ref().map_or(Some(guard.peak), MemoryGroup::peak).filter(|peak| *peak > 0),
                    out_of_memory: group.as_ref().is_some_and(MemoryGroup::out_of_memory),
                    left,
                },
            );
        } else {
            processes::end_descendants();
        }
        Ok(())
    }

    /// Waits for the program; `None` when the launcher went first.
    fn watch(&mut self, mut bell: UnixStream) -> Option<u8> {
        let mut pause = LOOK[0];
        let mut relieving = None;
        loop {
            let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
            let needed = self.help.as_ref().map_or(readable(bell.as_fd()), Help::wait);
            let mut waits = [readable(self.incoming.fd()), readable(bell.as_fd()), needed];
            let soon = relieving.map(|pause: Duration| i64::from(pause.subsec_nanos()));
            let timeout = Timespec { tv_sec: 0, tv_nsec: soon.unwrap_or(pause) };
            // An interrupted wait looks at everything, too.
            let _ = poll(&mut waits, (self.group.is_none() || soon.is_some()).then_some(&timeout));
            let [order, child, waiting] = waits.map(|wait| !wait.revents().is_empty());
            if let Some(help) = self.help.as_mut().filter(|_| waiting || soon.is_some()) {
                relieving = help.relieve();
            }
            if self.group.is_none() {
                pause = LOOK[1].min(2 * pause);
                self.peak = self.peak.max(processes::peak(self.program.id()).unwrap_or(0));
            }
            if child {
                // What rang is known; several rings are one.
                let _ = bell.read(&mut [0; 64]);
                if let Some(code) = self.reap() {
                    return Some(code);
                }
            }
            while order || self.incoming.has_more() {
                match self.incoming.next()? {
                    GuardOrder::Signal(number) => {
                        if let Some(signal) = Signal::from_named_raw(number) {
                            processes::kill(self.program.id(), signal);
                        }
                    }
                    GuardOrder::Kill => {
                        processes::kill(self.program.id(), Signal::KILL);
                    }
                }
                if !self.incoming.has_more() {
                    break;
                }
            }
        }
    }

    /// Waits for who has ended, orphans included; the program's exit code when it is among them.
    fn reap(&mut self) -> Option<u8> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid.as_raw_nonzero().get().cast_unsigned() == self.program.id() {
                let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
                return Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255));
            }
        }
        None
    }
}

/// Signals that a terminal gives to all of its foreground are the program's business. SIGCHLD rings a bell.
fn signals() -> io::Result<UnixStream> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        // A handler, because the program would inherit that a signal is ignored.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (bell, rope) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, rope)?;
    Ok(bell)
}

fn start(
    spec: &Spec,
    group: Option<&MemoryGroup>,
    descriptors: Vec<OwnedFd>,
    pager: Option<BorrowedFd<'_>>,
) -> Result<Child, String> {
    let mut descriptors = descriptors.into_iter();
    let mut standard = || descriptors.next().map(Stdio::from).ok_or("a standard descriptor is missing");
    let folder = group.map(MemoryGroup::folder);
    let mut command =
        exec::command(std::process::id(), folder, spec.background, &spec.program, &spec.name, &spec.args);
    command.stdin(standard()?).stdout(standard()?).stderr(standard()?);
    osprey::settings::apply(spec.env.clone(), &mut command);
    if spec.isolate {
        // What the caller left open would be written through: it lies below the overlays.
        osprey::launch::keep_from_children().map_err(|e| format!("cannot close descriptors: {e}"))?;
    }
    // A duplicate is what the program inherits. Of the rest it gets what the caller left open, unless it is
    // cut off.
    let mut inherited = Vec::new();
    let mut pass = |name: &str, prefix: &str, descriptor: BorrowedFd<'_>| {
        let copy = rustix::io::dup(descriptor).map_err(|e| format!("cannot pass a descriptor: {e}"))?;
        command.env(name, format!("{prefix}{}", copy.as_raw_fd()));
        inherited.push(copy);
        Ok::<(), String>(())
    };
    for (passed, descriptor) in spec.passed.iter().zip(descriptors) {
        pass(&passed.name, if passed.path { "/proc/self/fd/" } else { "" }, descriptor.as_fd())?;
    }
    if let Some(bell) = pager {
        pass(osprey::settings::PRESSURE, "", bell)?;
    }
    command.spawn().map_err(|e| format!("cannot start a process: {e}"))
}

//! One run of the program under a guard, seen from the launcher.

use crate::link::{self, GuardEvent, GuardEvents, GuardOrder, MemoryLimit, PassedFile, Spec};
use crate::program::ProgramCall;
use crate::run::RunFailure;
use crate::{guard, processes, stdin};
use osprey::{ProcessSettings, Stats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Between two looks at what else may end a pass.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What a pass is made of.
#[derive(Debug)]
pub struct PassParts<'a> {
    /// The program.
    pub program: &'a ProgramCall,
    /// The runtime's settings. Trace, ring and report are passed as descriptors instead.
    pub settings: &'a ProcessSettings,
    /// Standard input, output and error.
    pub standard: [OwnedFd; 3],
    /// The trace, a file.
    pub trace: Option<BorrowedFd<'a>>,
    /// An end of a ring.
    pub ring: Option<BorrowedFd<'a>>,
    /// Whether it is cut off.
    pub isolate: bool,
    /// Whether the terminal and its signals are not for it.
    pub background: bool,
    /// The limit of its memory.
    pub limit: Option<MemoryLimit>,
}

/// A pass that runs.
#[derive(Debug)]
pub struct GuardedPass {
    guard: Child,
    socket: UnixStream,
    incoming: GuardEvents,
    report: File,
    began: Instant,
    /// Who enforces the limit, in words, or why nobody does.
    pub limit: Option<Result<String, String>>,
    /// Why the system may swap although the limit forbids it, in words.
    pub swappable: Option<String>,
}

/// A pass that has ended.
#[derive(Debug)]
pub struct PassEnd {
    /// Exit code, or 128 + signal.
    pub code: u8,
    /// Most bytes of memory, where known.
    pub peak: Option<u64>,
    /// Whether the limit killed it.
    pub out_of_memory: bool,
    /// Processes that were left behind and ended.
    pub left: u64,
    /// Wall seconds.
    pub seconds: f64,
    /// The runtime's report; `None` when the program does not use it or did not come to its end.
    pub stats: Option<Stats>,
}

/// Why a pass did not begin.
#[derive(Debug)]
pub enum StartRefusal {
    /// The machine does not allow what was asked for, in words.
    Refused(String),
    /// A fault of ours.
    Failed(RunFailure),
}

impl From<StartRefusal> for RunFailure {
    fn from(refusal: StartRefusal) -> Self {
        match refusal {
            StartRefusal::Refused(text) => Self::ours(text),
            StartRefusal::Failed(failure) => failure,
        }
    }
}

impl GuardedPass {
    /// Starts a guard and the program in it.
    ///
    /// # Errors
    /// When the guard could not set itself up.
    pub fn start(job: PassParts<'_>) -> Result<Self, StartRefusal> {
        let failed = |what: &'static str| {
            move |e: std::io::Error| StartRefusal::Failed(RunFailure::ours(format!("cannot {what}: {e}")))
        };
        let (socket, theirs) = UnixStream::pair().map_err(failed("make a socket"))?;
        let report = stdin::memory_file("osprey-report").map_err(failed("make a file in memory"))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(guard::NAME).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        if job.background {
            command.process_group(0);
        }
        let guard = command.spawn().map_err(failed("start a process"))?;
        // It holds our copy of the guard's end of the socket.
        drop(command);
        let (spec, descriptors) = describe(&job, report.as_fd());
        link::send_spec(&socket, &spec, &descriptors).map_err(failed("tell a guard what to run"))?;
        drop(job);
        let reader = socket.try_clone().map_err(failed("read a socket"))?;
        let mut pass = Self {
            guard,
            socket,
            incoming: GuardEvents::new(reader),
            report,
            began: Instant::now(),
            limit: None,
            swappable: None,
        };
        match pass.incoming.next() {
            Some(GuardEvent::Started { limit, swappable }) => {
                (pass.limit, pass.swappable) = (limit, swappable);
                Ok(pass)
            }
            Some(GuardEvent::Refused { text }) => Err(StartRefusal::Refused(text)),
            _ => Err(StartRefusal::Failed(RunFailure::ours("the guard of the program was killed"))),
        }
    }

    /// The socket that orders go through.
    ///
    /// # Errors
    /// The system's.
    pub fn orders(&self) -> std::io::Result<UnixStream> {
        self.socket.try_clone()
    }

    /// Waits for the end; `look` is called ten times a second and may have the program killed.
    ///
    /// # Errors
    /// When the guard was killed.
    pub fn wait(self, mut look: impl FnMut() -> ControlFlow<()>) -> Result<PassEnd, RunFailure> {
        let mut killed = false;
        loop {
            if !killed && look().is_break() {
                killed = true;
                self.kill();
            }
            let mut waits = [PollFd::from_borrowed_fd(self.incoming.fd(), PollFlags::IN)];
            // An interrupted wait looks again.
            let ready = poll(&mut waits, Some(&TICK)).is_ok_and(|n| n > 0);
            if ready {
                return self.ended();
            }
        }
    }

    /// Kills the program; [`GuardedPass::wait`] still has to be called.
    pub fn kill(&self) {
        // A guard that is gone has killed it already.
        let _ = link::send(&self.socket, &GuardOrder::Kill);
    }

    /// Processor time that the program and what it started have used, in the system's ticks.
    pub fn ticks(&self) -> u64 {
        processes::descendants(self.guard.id()).into_iter().filter_map(processes::ticks).sum()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        let mut waits = [PollFd::from_borrowed_fd(self.incoming.fd(), PollFlags::IN)];
        poll(&mut waits, Some(&Timespec::default())).is_ok_and(|n| n > 0)
    }

    fn ended(mut self) -> Result<PassEnd, RunFailure> {
        let event = self.incoming.next();
        let seconds = self.began.elapsed().as_secs_f64();
        // Its exit is the last of what it does; the result was told before.
        let _ = self.guard.wait();
        match event {
            Some(GuardEvent::Ended { code, peak, out_of_memory, left }) => {
                let stats = read_report(self.report);
                Ok(PassEnd { code, peak, out_of_memory, left, seconds, stats })
            }
            Some(GuardEvent::Refused { text }) => Err(RunFailure::ours(text)),
            _ => Err(RunFailure::ours("the guard of the program was killed; the program was ended with it")),
        }
    }
}

fn describe<'a>(job: &'a PassParts<'_>, report: BorrowedFd<'a>) -> (Spec, Vec<BorrowedFd<'a>>) {
    let mut passed = vec![PassedFile { name: "OSPREY_REPORT".into(), path: true }];
    let mut descriptors: Vec<_> = job.standard.iter().map(AsFd::as_fd).collect();
    descriptors.push(report);
    if let Some(trace) = job.trace {
        passed.push(PassedFile { name: "OSPREY_TRACE".into(), path: true });
        descriptors.push(trace);
    }
    if let Some(ring) = job.ring {
        passed.push(PassedFile { name: "OSPREY_RING".into(), path: false });
        descriptors.push(ring);
    }
    let env = job.settings.to_env().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let spec = Spec {
        program: job.program.path.clone().into_os_string(),
        name: job.program.name.clone(),
        args: job.program.args.clone(),
        env,
        passed,
        isolate: job.isolate,
        background: job.background,
        limit: job.limit,
        launcher: std::process::id(),
    };
    (spec, descriptors)
}

/// The descriptor's own place is not where the program wrote: it opened the file anew.
fn read_report(report: File) -> Option<Stats> {
    let text = std::fs::read(descriptor_path(report.as_fd())).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The path under which this process can open a descriptor anew.
pub fn descriptor_path(fd: BorrowedFd<'_>) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    Path::new("/proc/self/fd").join(fd.as_raw_fd().to_string())
}

/// The end of what comes through a pipe, once it is closed.
#[derive(Debug)]
pub struct Tail(std::thread::JoinHandle<String>);

/// Bytes that are kept of a failed pass's standard error.
const TAIL: usize = 16 << 10;

impl Tail {
    /// The writing end for a program, and the end of what it writes.
    ///
    /// # Errors
    /// The system's.
    pub fn pipe() -> std::io::Result<(OwnedFd, Self)> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok((writer, Self::of(File::from(reader), TAIL)?))
    }

    /// Reads to the end, so that the writer never waits for us, and keeps so many of the last bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn of(mut pipe: impl Read + Send + 'static, most: usize) -> std::io::Result<Self> {
        let read = move || {
            let (mut kept, mut piece) = (Vec::new(), vec![0; TAIL]);
            while let Ok(got @ 1..) = pipe.read(&mut piece) {
                kept.extend_from_slice(&piece[..got]);
                if kept.len() > 2 * most {
                    kept.drain(..kept.len() - most);
                }
            }
            let too_much = kept.len().saturating_sub(most);
            String::from_utf8_lossy(&kept[too_much..]).into_owned()
        };
        Ok(Self(std::thread::Builder::new().name("tail".into()).spawn(read)?))
    }

    /// Waits for the end of the pass.
    pub fn text(self) -> String {
        self.0.join().unwrap_or_default()
    }
}

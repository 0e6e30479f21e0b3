//! Children of these tests: a process has one region, so what uses one runs in a process of its own.
#![allow(dead_code, reason = "no test binary uses all of it")]

use osprey::trace::{Footer, Header, TraceBlock, TraceFeed, TraceSource};
use osprey::{EXIT_UNAVAILABLE, ProcessSettings, Stats};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// Tells a child what to do.
const CASE: &str = "OSPREY_TEST_CASE";

/// This binary again, for its ignored test `child` alone.
pub fn child(case: &str, settings: &ProcessSettings) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"]).env(CASE, case);
    settings.apply_to(&mut command);
    command
}

/// What this child is to do.
pub fn case() -> String {
    std::env::var(CASE).expect("started by a test")
}

/// Lets the child that `command` starts, and no other, inherit an end of a ring, which must live until it has
/// started.
pub fn inherit(command: &mut Command, end: &OwnedFd) {
    let fd = end.as_raw_fd();
    #[expect(unsafe_code, reason = "there is no safe way to hand one descriptor to one child")]
    let clear = move || {
        // SAFETY: a plain call, safe after fork; a number that is no descriptor is an error.
        match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    #[expect(unsafe_code, reason = "as above")]
    // SAFETY: the closure makes one system call and neither allocates nor locks.
    unsafe {
        command.pre_exec(clear)
    };
}

/// What a process said on standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine lacks what a child's mode needs; the reason is printed then.
pub fn is_unavailable(output: &Output) -> bool {
    let (said, unavailable) = (said(output), output.status.code() == Some(EXIT_UNAVAILABLE));
    if unavailable {
        let known = ["userfaultfd", "io_uring"].iter().any(|what| said.contains(what));
        assert!(known, "{said}");
        eprintln!("skipped: {said}");
    }
    unavailable
}

/// The report that a child left.
pub fn report(settings: &ProcessSettings) -> Stats {
    let text = std::fs::read(settings.report.as_ref().expect("a report was asked for")).expect("a report");
    serde_json::from_slice(&text).expect("a report in JSON")
}

/// All of a trace file.
pub fn trace(path: &Path, header: &Header) -> (Vec<TraceBlock>, Footer) {
    let mut source = TraceSource::open(path, header).expect("a trace");
    let mut blocks = Vec::new();
    loop {
        match source.next().expect("a whole trace") {
            TraceFeed::Block(block) => blocks.push(block),
            TraceFeed::End(footer) => return (blocks, footer),
            TraceFeed::Wait => unreachable!("a file"),
        }
    }
}

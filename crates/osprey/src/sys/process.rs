//! What the system says of this process, and what it calls when the process ends or forks.

use super::check;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// What `getrusage` counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub user: Duration,
    pub system: Duration,
    pub major_faults: u64,
    pub minor_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// Of all threads.
pub(crate) fn usage_of_process() -> Usage {
    usage(libc::RUSAGE_SELF)
}

/// Of the calling thread.
pub(crate) fn usage_of_thread() -> Usage {
    usage(libc::RUSAGE_THREAD)
}

fn usage(who: i32) -> Usage {
    // SAFETY: `rusage` is integers; the kernel fills the structure, and zeros stand where it refuses.
    let got = unsafe {
        let mut got: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut got);
        got
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Usage {
        user: time(got.ru_utime),
        system: time(got.ru_stime),
        major_faults: got.ru_majflt as u64,
        minor_faults: got.ru_minflt as u64,
        voluntary_switches: got.ru_nvcsw as u64,
        involuntary_switches: got.ru_nivcsw as u64,
    }
}

/// The monotonic clock, the same for all processes.
pub(crate) fn clock() -> Duration {
    // SAFETY: the kernel fills the structure that is passed.
    let now = unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        now
    };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Most bytes that were resident at once since the process began to run this program; 0 where /proc is not
/// there.
pub(crate) fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib =
        line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|n| n.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Bytes that are resident now, by an open `/proc/self/statm`; 0 where it cannot be read. Async-signal-safe.
pub(crate) fn resident(statm: &File) -> u64 {
    let mut text = [0; 128];
    let len = statm.read_at(&mut text, 0).unwrap_or(0);
    let second = text[..len].split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    second.iter().fold(0, |pages, digit| pages * 10 + u64::from(digit & 15)) * super::PAGE as u64
}

/// Calls `then` when the process ends by `exit` or returns from `main`.
///
/// # Errors
/// The system's, when its table of such calls is full.
pub(crate) fn at_exit(then: extern "C" fn()) -> io::Result<()> {
    // SAFETY: a function that lives as long as the program; it takes no arguments.
    if unsafe { libc::atexit(then) } == 0 { Ok(()) } else { Err(io::Error::other("atexit refused")) }
}

/// Calls `then` in every child of a `fork`, in the one thread that it has.
///
/// # Errors
/// The system's.
pub(crate) fn in_forked_children(then: extern "C" fn()) -> io::Result<()> {
    let then: unsafe extern "C" fn() = then;
    // SAFETY: as above; what it calls is async-signal-safe, as a child of a program with threads needs.
    let error = unsafe { libc::pthread_atfork(None, None, Some(then)) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Writes to standard error, from a signal handler too.
pub(crate) fn say(text: &str) {
    // SAFETY: bytes of a live string.
    let done = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    let _unheard = check(done as libc::c_long);
}

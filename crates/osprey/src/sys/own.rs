//! What the pager asks of its own process and thread.

use super::map::Mapping;
use super::{PAUSE, TRIES, check};
use std::io;

/// Fills with the system's randomness.
///
/// # Errors
/// The system's.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let left = &mut bytes[done..];
        // SAFETY: the buffer is as long as stated.
        let got = unsafe { libc::getrandom(left.as_mut_ptr().cast(), left.len(), 0) };
        match check(got as libc::c_long) {
            Ok(got) => done += got as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Most bytes that a file of this process may have.
pub(crate) fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure that the call fills.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// The program's signals are for the program's threads: none is delivered to this one.
pub(crate) fn block_signals() {
    // SAFETY: the set is filled before it is used; the call changes the mask of this thread alone.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// CPU seconds of this thread.
pub(crate) fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Milliseconds that [`tell`] waits for a reader of standard error.
const TELL_MS: i32 = 1000;

/// Says something on standard error, if anybody takes it. The pager must not wait for a reader, nor for a
/// lock on standard error that the program holds while it waits for a chunk. At most as much as a pipe takes
/// at once. A pipe or file that finds no memory for it is tried again for a while.
pub(crate) fn tell(text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(libc::PIPE_BUF)];
    let mut error = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    for _ in 0..TRIES {
        // SAFETY: one descriptor, as stated; then as many bytes as the slice has.
        let written = unsafe {
            if libc::poll(&mut error, 1, TELL_MS) != 1 || error.revents & libc::POLLOUT == 0 {
                return;
            }
            libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len())
        };
        if !check(written as libc::c_long).is_err_and(|error| error.kind() == io::ErrorKind::OutOfMemory) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ends the process now, without handlers: they would wait for the thread that calls this.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: the call does not come back.
    unsafe { libc::_exit(code) }
}

/// What the system counts for this process, to be read again and again.
#[derive(Debug)]
pub(crate) struct Footprint(std::fs::File);

impl Footprint {
    /// # Errors
    /// The system's, where /proc is not there.
    pub fn open() -> io::Result<Self> {
        std::fs::File::open("/proc/self/status").map(Self)
    }

    /// Bytes of memory that this process has now, with its page tables; 0 where that cannot be read.
    pub fn bytes(&self) -> u64 {
        use std::os::unix::fs::FileExt;
        let mut text = [0; 4096];
        let len = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..len]);
        let kib = |name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        (kib("VmRSS:") + kib("VmPTE:")) << 10
    }
}

/// Makes a touch of that range end the program instead of giving it zeros.
///
/// # Errors
/// The system's.
///
/// # Panics
/// When the range is not within the mapping.
pub(crate) fn forbid(mapping: &Mapping, offset: usize, len: usize) -> io::Result<()> {
    assert!(offset.checked_add(len).is_some_and(|end| end <= mapping.len()), "within the mapping");
    // SAFETY: the range lies within a mapping that lives; its content is gone already.
    let done = unsafe { libc::mprotect(mapping.base().add(offset).cast(), len, libc::PROT_NONE) };
    check(done.into()).map(|_| ())
}

/// Sets aside `len` bytes of a file from `offset` on, so that later writes there find room.
///
/// # Errors
/// The system's; where the file system cannot set room aside, the file only becomes longer.
pub(crate) fn allocate(file: &std::fs::File, offset: u64, len: u64) -> io::Result<()> {
    match set_aside(file, offset, len) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(offset + len),
        other => other,
    }
}

/// As [`allocate`], where the file system can.
///
/// # Errors
/// The system's: `EOPNOTSUPP` where it cannot.
pub(crate) fn set_aside(file: &std::fs::File, offset: u64, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: a plain call on a descriptor that lives.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as libc::off_t, len as libc::off_t) };
    check(done.into()).map(|_| ())
}

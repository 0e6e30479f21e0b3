//! The system calls behind the region: the one place of `unsafe` system calls, each with its argument.
#![expect(unsafe_code, reason = "system calls, with the argument at each")]

pub(crate) mod advise;
pub(crate) mod inherit;
pub(crate) mod locked;
pub(crate) mod map;
pub(crate) mod own;
pub(crate) mod process;
pub(crate) mod signal;
pub(crate) mod staging;
pub(crate) mod swap;
pub(crate) mod uffd;
pub(crate) mod uring;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// How often a call that finds no memory is tried again, and the time between: longer than a launcher's guard
/// needs to help.
pub(crate) const TRIES: u32 = 2000;
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// -1 with `errno` as an error.
pub(crate) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A descriptor that counts: written by one thread, waited for by another.
///
/// # Errors
/// The system's.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: a call without pointers; the descriptor that comes back is ours alone.
    unsafe {
        Ok(OwnedFd::from_raw_fd(
            check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK).into())? as i32
        ))
    }
}

/// Adds one. A counter that is full has woken its reader already, so nothing is lost.
pub(crate) fn ring_bell(bell: BorrowedFd<'_>) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight bytes of a live array.
    unsafe { libc::write(bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Takes all that was added.
pub(crate) fn hush_bell(bell: RawFd) {
    let mut sink = [0u8; 8];
    // SAFETY: eight bytes of a live array.
    unsafe { libc::read(bell, sink.as_mut_ptr().cast(), sink.len()) };
}

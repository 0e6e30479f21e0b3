//! Descriptors that this process inherited, and those that its children do not.

use super::check;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Closes every descriptor but the standard streams in all programs that this process starts from now on.
///
/// # Errors
/// The system's: `/proc` is not there.
pub(crate) fn keep_from_children() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: a plain call that changes a flag; the descriptor that listed the others is closed by now:
        // an error.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// Takes the token of an event descriptor that does not wait; says whether there still was one.
///
/// # Errors
/// The system's, when there is no such descriptor.
pub(crate) fn take_token(fd: i32) -> io::Result<bool> {
    let mut token = [0u8; 8];
    // SAFETY: eight bytes of a live array; a number that is no descriptor is an error.
    match check(unsafe { libc::read(fd, token.as_mut_ptr().cast(), token.len()) } as libc::c_long) {
        Ok(bytes) => Ok(bytes == 8),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes over a descriptor that the parent left open, and closes it for programs this process starts.
///
/// # Errors
/// The system's, when there is none of that number.
pub(crate) fn adopt(fd: i32) -> io::Result<OwnedFd> {
    if fd < 3 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "0 to 2 are the standard streams"));
    }
    // SAFETY: a plain call; a number that is no descriptor is an error.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    // SAFETY: the launcher names a descriptor that it left open for the runtime alone, and the runtime adopts
    // it once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

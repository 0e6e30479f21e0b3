//! What the kernel is told about a file's cache and asked about mapped pages, and waiting for several
//! descriptors.

use super::{PAGE, check};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// Starts reading a part of a file into the cache.
///
/// # Errors
/// The system's.
pub(crate) fn will_need(file: &File, offset: u64, len: usize) -> io::Result<()> {
    advise(file, offset, len, libc::POSIX_FADV_WILLNEED)
}

/// Drops the part of the cache that is clean and not mapped.
///
/// # Errors
/// The system's.
pub(crate) fn drop_cache(file: &File, offset: u64, len: usize) -> io::Result<()> {
    advise(file, offset, len, libc::POSIX_FADV_DONTNEED)
}

fn advise(file: &File, offset: u64, len: usize, advice: i32) -> io::Result<()> {
    // SAFETY: a plain call; the descriptor is a live file's.
    let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), offset as i64, len as i64, advice) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Starts writing the dirty pages of a part of a file; waits for them with `wait`.
///
/// # Errors
/// The system's, such as a full disk.
pub(crate) fn write_back(file: &File, offset: u64, len: usize, wait: bool) -> io::Result<()> {
    let around = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let flags = libc::SYNC_FILE_RANGE_WRITE | if wait { around } else { 0 };
    // SAFETY: a plain call; the descriptor is a live file's.
    let done = unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, len as i64, flags) };
    check(done.into()).map(|_| ())
}

/// Bytes that a process without privilege may still write to the disk that a file is on.
///
/// # Errors
/// The system's.
pub(crate) fn free_bytes(file: &File) -> io::Result<u64> {
    // SAFETY: the kernel fills the structure that is passed.
    let disk = unsafe {
        let mut disk: libc::statvfs = std::mem::zeroed();
        check(libc::fstatvfs(file.as_raw_fd(), &raw mut disk).into())?;
        disk
    };
    Ok(disk.f_bavail * disk.f_frsize)
}

/// `/proc/self/pagemap`: which pages of this process are mapped.
#[derive(Debug)]
pub(crate) struct Pagemap(File);

impl Pagemap {
    /// # Errors
    /// The system's, where /proc is not there.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/pagemap").map(Self)
    }

    /// Pages mapped among the `len` bytes at `address`: a page that is only in a cache is not.
    ///
    /// # Errors
    /// The system's.
    pub fn mapped(&self, address: usize, len: usize) -> io::Result<usize> {
        const PRESENT: u64 = 1 << 63;
        let mut words = vec![0u8; len / PAGE * 8];
        self.0.read_exact_at(&mut words, (address / PAGE * 8) as u64)?;
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        Ok(words.chunks_exact(8).filter(|bytes| word(bytes) & PRESENT != 0).count())
    }
}

/// Waits until one of `bells` is readable, at most `ms` milliseconds.
///
/// # Errors
/// The system's. A signal ends the wait early and is none.
pub(crate) fn wait(bells: &[BorrowedFd<'_>], ms: i32) -> io::Result<()> {
    let entry =
        |bell: &BorrowedFd<'_>| libc::pollfd { fd: bell.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<_> = bells.iter().map(entry).collect();
    // SAFETY: as many structures as stated.
    let done = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, ms) };
    match check(done.into()) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

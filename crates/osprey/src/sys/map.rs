//! Mappings at places the runtime chooses.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// Where the region begins in every process: so that speculation and the real run see the same addresses.
pub(crate) const REGION_BASE: usize = 0x2000_0000_0000;

/// Address space that this process owns; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is a range of addresses; what is done with the bytes behind it is argued where it is
// done.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Anonymous private memory at `at`, or anywhere for `None`; `reserve` gives address space that may not
    /// be touched.
    ///
    /// # Errors
    /// The system's, `AlreadyExists` when something is mapped there.
    pub fn anonymous(at: Option<usize>, len: usize, reserve: bool) -> io::Result<Self> {
        let prot = if reserve { libc::PROT_NONE } else { libc::PROT_READ | libc::PROT_WRITE };
        let fixed = if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
        // SAFETY: no existing mapping is replaced: without MAP_FIXED the kernel chooses a free range, with
        // MAP_FIXED_NOREPLACE it refuses a taken one.
        let got = unsafe { libc::mmap(at.unwrap_or(0) as *mut _, len, prot, flags, -1, 0) };
        let base = mapped(got)?;
        let mapping = Self { base, len };
        match at {
            Some(at) if base.as_ptr() as usize != at => Err(io::ErrorKind::AlreadyExists.into()),
            _ => Ok(mapping),
        }
    }

    /// Replaces `len` bytes at `offset` of this mapping by the first `len` bytes of `fd`, shared.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Panics
    /// When the range is not within the mapping.
    pub fn overlay(&self, offset: usize, len: usize, fd: BorrowedFd<'_>) -> io::Result<()> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the mapping");
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: the range lies within a mapping that this value owns.
        let got =
            unsafe { libc::mmap(self.base.as_ptr().add(offset).cast(), len, prot, flags, fd.as_raw_fd(), 0) };
        mapped(got).map(|_| ())
    }

    /// `madvise` for `len` bytes at `offset`.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Panics
    /// When the range is not within the mapping.
    pub fn advise(&self, offset: usize, len: usize, advice: i32) -> io::Result<()> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the mapping");
        // SAFETY: the range lies within a mapping that this value owns; advice that drops content is given by
        // callers for chunks they know to hold none, or to be stored elsewhere.
        let done = unsafe { libc::madvise(self.base.as_ptr().add(offset).cast(), len, advice) };
        check(done.into()).map(|_| ())
    }

    /// First byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours; nothing refers to it after its owner is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

fn mapped(got: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if got == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(got.cast()).ok_or_else(|| io::Error::other("the system mapped the null page"))
}

/// Memory as a file, of `len` bytes, closed on exec unless `inherit`.
///
/// # Errors
/// The system's.
pub(crate) fn memfd(name: &std::ffi::CStr, len: usize, inherit: bool) -> io::Result<OwnedFd> {
    let flags = if inherit { 0 } else { libc::MFD_CLOEXEC };
    // SAFETY: a call with a valid string; the descriptor that comes back is ours alone.
    let fd = unsafe {
        let fd = check(libc::memfd_create(name.as_ptr(), flags).into())?;
        OwnedFd::from_raw_fd(fd as i32)
    };
    // SAFETY: a plain call on a descriptor that we hold.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), len as libc::off_t) }.into())?;
    Ok(fd)
}

//! Memory that two processes map: bytes copied in and out, and words that both change. All `unsafe` of the
//! rings.
#![expect(unsafe_code, reason = "a mapping shared with another process, with the argument at each use")]

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A mapping of a memory file of fixed size, shared with the peer's process. Nothing in it is ever borrowed
/// as bytes: they are copied, because the peer may change them at any moment.
pub(super) struct SharedRegion {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, is valid in every thread of the process, and nothing in it
// is tied to the thread that made it.
unsafe impl Send for SharedRegion {}

/// A nameless memory file of `len` zeros that can neither shrink nor grow: a peer that could shorten it would
/// end us by SIGBUS. It is gone when the last process that holds it is.
pub(super) fn memory_file(len: usize) -> io::Result<OwnedFd> {
    let file = memfd_create("tacit-shm", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, len as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

impl SharedRegion {
    /// Maps all of a memory file, which must be sealed and of exactly `len` bytes.
    pub(super) fn map(file: impl AsFd, len: usize) -> io::Result<Self> {
        let sealed = fcntl_get_seals(&file)?.contains(SealFlags::SHRINK | SealFlags::SEAL);
        if !sealed || u64::try_from(fstat(&file)?.st_size) != Ok(len as u64) {
            return Err(io::Error::other("the memory file is not sealed or not of the agreed size"));
        }
        // SAFETY: a new mapping at an address of the system's choice; nothing else in this process lies
        // there.
        let start = unsafe {
            mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)?
        };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap gave no address"))?;
        Ok(Self { start, len })
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "inside the mapping");
        // SAFETY: offset + len <= self.len (checked above), and the mapping is one allocation of self.len
        // bytes.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Copies `bytes` to `offset`.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` has room for bytes.len() bytes (checked by `at`) in a mapping that no reference of
        // this process covers, so `bytes` does not overlap it. The peer may write there too, against the
        // protocol: then it is these bytes that are wrong, and the receiver's tag says so.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Copies the bytes at `offset` out.
    pub(super) fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: as in `write`. Every bit pattern is a byte; what the peer changes while we copy is copied
        // in one state or the other, and only the copy is looked at.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// A counter that both processes use.
    pub(super) fn word64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(align_of::<AtomicU64>()), "aligned");
        let at = self.at(offset, size_of::<AtomicU64>());
        // SAFETY: 8 aligned bytes inside the mapping (checked), which lives as long as `self`; they are only
        // ever used as an atomic, here and in the peer.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// A flag that both processes use, and the kernel as a futex.
    pub(super) fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(align_of::<AtomicU32>()), "aligned");
        let at = self.at(offset, size_of::<AtomicU32>());
        // SAFETY: as in `word64`, for 4 bytes.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, of that length; every use of it borrows `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

//! Memory files that two processes map.

use kernels::SharedMemory;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A nameless memory file of `len` zeros that can neither shrink nor grow: a peer that could shorten it would
/// end us by SIGBUS. It is gone when the last process that holds it is.
pub(super) fn memory_file(len: usize) -> io::Result<OwnedFd> {
    let file = memfd_create("tacit-shm", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, len as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Maps all of a memory file, which must be sealed and of exactly `len` bytes.
pub(super) fn map(file: impl AsFd, len: usize) -> io::Result<SharedMemory> {
    let sealed = fcntl_get_seals(&file)?.contains(SealFlags::SHRINK | SealFlags::SEAL);
    if !sealed || u64::try_from(fstat(&file)?.st_size) != Ok(len as u64) {
        return Err(io::Error::other("the memory file is not sealed or not of the agreed size"));
    }
    SharedMemory::map(file, len)
}

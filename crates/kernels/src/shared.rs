//! Memory that others write to while it is read: another process, or a device by itself.
//!
//! Nothing in it is ever borrowed as bytes: they are copied, because somebody else may change them at any
//! moment.
#![allow(unsafe_code, reason = "a mapping that others write to, with the argument at each use")]

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A mapping of fixed size. It lives as long as anything that names a [`Place`] in it.
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, is valid in every thread of the process, and nothing in it
// is tied to the thread that made it.
unsafe impl Send for SharedMemory {}
// SAFETY: no reference into the mapping exists but to atomics. Copies by two threads at once race as those of
// two processes do: bytes are of one state or the other, and only copies are looked at.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Zeros that belong to this process alone.
    ///
    /// # Errors
    /// When the system has no memory.
    pub fn own(len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the system's choice; nothing else in this process lies
        // there.
        let start = unsafe {
            let (null, both) = (std::ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
            mmap_anonymous(null, len, both, MapFlags::PRIVATE)?
        };
        Self::at_start(start.cast(), len)
    }

    /// The first `len` bytes of a file, which must have as many as long as the mapping lives: the caller has
    /// made sure that nobody can shorten it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map(file: impl AsFd, len: usize) -> io::Result<Self> {
        // SAFETY: as in `own`.
        let start = unsafe {
            mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)?
        };
        Self::at_start(start.cast(), len)
    }

    fn at_start(start: *mut u8, len: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mmap gave no address"))?;
        Ok(Self { start, len })
    }

    /// Where it begins and how many bytes it has.
    #[must_use]
    pub fn whole(&self) -> (*mut u8, usize) {
        (self.start.as_ptr(), self.len)
    }

    /// A range of it.
    ///
    /// # Panics
    /// When it is not inside.
    #[must_use]
    pub fn place(self: &Arc<Self>, at: usize, bytes: usize) -> Place {
        self.at(at, bytes);
        Place { memory: self.clone(), at, bytes }
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "inside the mapping");
        // SAFETY: offset + len <= self.len (checked above), and the mapping is one allocation of self.len
        // bytes.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` has room for bytes.len() bytes (checked by `at`) in a mapping that no reference of
        // this process covers, so `bytes` does not overlap it. Others may write there too, against the
        // protocol: then it is these bytes that are wrong, and the receiver's tag says so.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Copies the bytes at `offset` out.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: as in `write`. Every bit pattern is a byte; what others change while we copy is copied in
        // one state or the other, and only the copy is looked at.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// A counter that several processes use.
    #[must_use]
    pub fn word64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(align_of::<AtomicU64>()), "aligned");
        let at = self.at(offset, size_of::<AtomicU64>());
        // SAFETY: 8 aligned bytes inside the mapping (checked), which lives as long as `self`; they are only
        // ever used as an atomic, here and in the peer.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// A flag that several processes use, and the kernel as a futex.
    #[must_use]
    pub fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(align_of::<AtomicU32>()), "aligned");
        let at = self.at(offset, size_of::<AtomicU32>());
        // SAFETY: as in `word64`, for 4 bytes.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `own` or `map`, of that length; every use of it borrows `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A range of [`SharedMemory`], which a device may copy to and from by itself.
#[derive(Clone)]
pub struct Place {
    memory: Arc<SharedMemory>,
    at: usize,
    bytes: usize,
}

impl Place {
    /// How long it is.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// In which memory.
    #[must_use]
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// Where it begins, valid as long as its memory.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.memory.at(self.at, self.bytes)
    }

    /// Copies bytes out, from `at` on.
    ///
    /// # Panics
    /// When the place does not have them.
    pub fn read_part(&self, at: usize, into: &mut [u8]) {
        assert!(at.checked_add(into.len()).is_some_and(|end| end <= self.bytes), "inside the place");
        self.memory.read(self.at + at, into);
    }

    /// Copies bytes to these places, which are as long together.
    ///
    /// # Panics
    /// When they are not.
    pub fn write_all(places: &[Self], mut bytes: &[u8]) {
        for place in places {
            let (now, rest) = bytes.split_at(place.bytes);
            place.memory.write(place.at, now);
            bytes = rest;
        }
        assert!(bytes.is_empty(), "places as long as what is written");
    }

    /// Copies the bytes of these places out.
    ///
    /// # Panics
    /// When `into` is not as long as they are together.
    pub fn read_all(places: &[Self], mut into: &mut [u8]) {
        for place in places {
            let (now, rest) = into.split_at_mut(place.bytes);
            place.memory.read(place.at, now);
            into = rest;
        }
        assert!(into.is_empty(), "places as long as what is read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_hold_what_is_written_to_them() {
        let memory = Arc::new(SharedMemory::own(100).unwrap());
        let places = [memory.place(90, 10), memory.place(0, 5)];
        let bytes: Vec<u8> = (1..=15).collect();
        Place::write_all(&places, &bytes);
        drop(memory);
        let mut got = [0; 15];
        Place::read_all(&places, &mut got);
        assert_eq!(got[..], bytes);
        let mut end = [0; 5];
        places[0].memory().read(0, &mut end);
        assert_eq!(end, [11, 12, 13, 14, 15]);
    }

    #[test]
    #[should_panic(expected = "inside the mapping")]
    fn no_place_is_outside() {
        let _ = Arc::new(SharedMemory::own(100).unwrap()).place(91, 10);
    }
}

//! The file that chunks are written to: without a name, in slots of a chunk, written like a log.
//!
//! Batches go to runs of free slots, from where the last one ended, sorted by their next use: so that chunks
//! that leave together, and come back together, are one transfer each way. The file grows in steps; when it
//! cannot, what is free in between is used.

use super::cipher::SealedChunk;
use crate::sys::own::{allocate, file_limit};
use kernels::Block;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes that the file grows by at least.
const GROW: u64 = 64 << 20;
/// Slots looked at for a run that is long enough.
const LOOK: usize = 4096;

pub(super) struct Spill {
    file: File,
    directory: PathBuf,
    chunk: u64,
    direct: bool,
    /// A bit per slot that is in use.
    used: Vec<u64>,
    slots: u32,
    in_use: u32,
    head: u32,
    /// What opens its content and vouches for it, and the chunk, per slot.
    counters: Vec<u64>,
    tags: Vec<Block>,
    owners: Vec<u32>,
    refusal: Option<String>,
    /// A write failed, so room that was set aside is none.
    capped: bool,
}

/// The file cannot grow and has no free slot.
#[derive(Debug)]
pub(super) struct NoRoom;

impl Spill {
    /// # Errors
    /// In words: the directory, what the system says, what to do.
    pub fn open(directory: &Path, chunk: usize) -> Result<Self, String> {
        let (file, direct) = create(directory).map_err(|e| {
            format!(
                "cannot make a file for paging in {}: {e}; choose another directory (OSPREY_SPILL, or \
                 --spill of osprey run)",
                directory.display()
            )
        })?;
        Ok(Self {
            file,
            directory: directory.into(),
            chunk: chunk as u64,
            direct,
            used: Vec::new(),
            slots: 0,
            in_use: 0,
            head: 0,
            counters: Vec::new(),
            tags: Vec::new(),
            owners: Vec::new(),
            refusal: None,
            capped: false,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether transfers go past the page cache.
    pub fn direct(&self) -> bool {
        self.direct
    }

    pub fn offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.chunk
    }

    pub fn sealed(&self, slot: u32) -> SealedChunk {
        SealedChunk { counter: self.counters[slot as usize], tag: self.tags[slot as usize] }
    }

    /// Says what lies in a slot from now on.
    pub fn fill(&mut self, slot: u32, chunk: u32, sealed: SealedChunk) {
        (self.counters[slot as usize], self.tags[slot as usize]) = (sealed.counter, sealed.tag);
        self.owners[slot as usize] = chunk;
    }

    /// Slots in use, with their chunks.
    pub fn owners(&self) -> Vec<(u32, u32)> {
        (0..self.slots).filter(|&slot| self.is_used(slot)).map(|s| (s, self.owners[s as usize])).collect()
    }

    fn is_used(&self, slot: u32) -> bool {
        self.used[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    pub fn free(&mut self, slot: u32) {
        self.used[slot as usize / 64] &= !(1 << (slot % 64));
        self.in_use -= 1;
    }

    /// Up to `wanted` free slots in a row: the first one, and how many. They are in use from now on.
    ///
    /// # Errors
    /// When there is none and the file cannot grow.
    pub fn place(&mut self, wanted: u32) -> Result<(u32, u32), NoRoom> {
        if u64::from(self.in_use + wanted) * 5 > u64::from(self.slots) * 4 {
            self.grow(wanted);
        }
        if self.in_use == self.slots {
            return Err(NoRoom);
        }
        let (first, run) = self.find(wanted);
        for slot in first..first + run {
            self.used[slot as usize / 64] |= 1 << (slot % 64);
        }
        self.in_use += run;
        self.head = first + run;
        Ok((first, run))
    }

    /// The first run of `wanted` free slots among those looked at, from the head on; the longest one if there
    /// is none. Looks until it finds any; there is one.
    fn find(&self, wanted: u32) -> (u32, u32) {
        let (mut best, mut run) = ((0, 0), 0);
        let mut slot = self.head;
        for looked in 0..2 * self.slots as usize {
            if slot >= self.slots {
                (slot, run) = (0, 0);
            }
            run = if self.is_used(slot) { 0 } else { run + 1 };
            slot += 1;
            if run > best.1 {
                best = (slot - run, run);
            }
            if best.1 == wanted || (looked >= LOOK && best.1 > 0) {
                break;
            }
        }
        best
    }

    /// Makes the file longer, by as much as there is room for.
    fn grow(&mut self, wanted: u32) {
        if self.capped {
            return;
        }
        let least = u64::from(wanted);
        let mut more = (GROW / self.chunk).max(u64::from(self.slots) / 4).max(least);
        let end = self.offset(self.slots);
        more = more
            .min((file_limit().saturating_sub(end)) / self.chunk)
            .min(u64::from(u32::MAX - 1 - self.slots));
        if more == 0 {
            self.refusal = Some("the limit on the size of a file (ulimit -f) is reached".into());
        }
        while more > 0 {
            match allocate(&self.file, end, more * self.chunk) {
                Ok(()) => break,
                Err(error) => self.refusal = Some(error.to_string()),
            }
            more /= 2;
        }
        self.slots += more as u32;
        self.used.resize((self.slots as usize).div_ceil(64), 0);
        self.counters.resize(self.slots as usize, 0);
        self.tags.resize(self.slots as usize, Block::ZERO);
        self.owners.resize(self.slots as usize, 0);
    }

    /// What is wrong when a chunk came back otherwise than it was written.
    pub fn altered(&self, chunk: u32) -> String {
        format!(
            "what was read back from the file in {} is not what was paged out there (chunk {chunk}): the \
             disk is faulty, or somebody writes to it; the run cannot go on",
            self.directory.display()
        )
    }

    /// What is wrong and what to do, when the file cannot take what must leave memory.
    pub fn full(&self) -> String {
        format!(
            "no room for paging: the file in {} holds {} MiB and cannot grow ({}); free space there, choose \
             another directory (OSPREY_SPILL, or --spill of osprey run), or allow more memory",
            self.directory.display(),
            self.offset(self.slots) >> 20,
            self.refusal.as_deref().unwrap_or("it has as many slots as there can be")
        )
    }

    /// Whether a slot is free without growing.
    pub fn has_room(&self) -> bool {
        self.in_use < self.slots
    }

    /// A write failed: the file is not made longer any more.
    pub fn refused(&mut self, error: &io::Error) {
        self.refusal = Some(error.to_string());
        self.capped = true;
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A file without a name, past the page cache if the file system can do that.
fn create(directory: &Path) -> io::Result<(File, bool)> {
    let invalid = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    match unnamed(directory, libc::O_DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if invalid(&error) => Ok((unnamed(directory, 0)?, false)),
        Err(error) => Err(error),
    }
}

pub(super) fn unnamed(directory: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.custom_flags(flags | libc::O_TMPFILE | libc::O_EXCL).open(directory) {
        // File systems that cannot make one: a file that loses its name at once.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let mut number = [0; 8];
            crate::sys::own::random(&mut number)?;
            let path = directory.join(format!(".osprey-{:016x}", u64::from_ne_bytes(number)));
            let file = options.create_new(true).custom_flags(flags).open(&path);
            // With O_DIRECT refused the name may be there all the same.
            if file.is_ok() || path.exists() {
                std::fs::remove_file(&path)?;
            }
            file
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_once_and_in_runs() {
        let directory = tempfile::tempdir().expect("directory");
        let mut spill = Spill::open(directory.path(), 4096).expect("file");
        let mut taken = std::collections::HashSet::new();
        for round in 0..50u32 {
            let (first, run) = spill.place(8).expect("room");
            assert!((1..=8).contains(&run));
            assert!((first..first + run).all(|slot| taken.insert(slot)), "a slot twice");
            if round % 2 == 1 {
                for slot in (first..first + run).step_by(2) {
                    assert!(taken.remove(&slot));
                    spill.free(slot);
                }
            }
        }
        assert_eq!(spill.in_use as usize, taken.len());
        let slots = spill.slots;
        spill.refused(&io::ErrorKind::StorageFull.into());
        while spill.place(8).is_ok() {}
        assert!(spill.slots == slots && !spill.has_room(), "a file that refused a write is not made longer");
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("directory").count(),
            0,
            "the file has no name"
        );
    }
}

//! A program that the runtime pages is delayed as it comes near its limit, in groups of version 2, and its
//! pager is told.
//!
//! These groups have no switch for the kill. They have `memory.high`: whoever allocates above it is put to
//! sleep on the way back from the kernel, for a time that grows with the square of the excess. So a program
//! that grows at once slows down just below its limit. The kernel tells us when that begins, we ring the
//! pager's bell, and the pager gives frames up, until no more is used than `memory.high`.
//!
//! **What must hold.** The pager is only told of memory that it can do something about: pages of files that
//! nobody has mapped are the kernel's to drop, and a program that reads a large file must not lose its frames
//! for them.

use crate::link::MemoryLimit;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks while more is used than there should be.
const LOOK: Duration = Duration::from_millis(20);
/// Seconds that the kernel holds a thread up which fills memory from `memory.high` to the limit, if nothing
/// is freed.
const SECONDS: f64 = 1.0;
/// The kernel's formula: for each batch of this many bytes (64 pages of 4 KiB; larger ones delay less) a
/// thread sleeps so many seconds, times the square of the excess as a part of `memory.high`. It leaves out
/// sleeps of up to 10 ms.
const BATCH: f64 = 262_144.0;
const STEEPNESS: f64 = 64.0;

/// Looks after a group.
#[derive(Debug)]
pub struct DelayKeeper {
    events: File,
    pager: OwnedFd,
    folder: PathBuf,
    high: u64,
}

impl DelayKeeper {
    /// Listens to the group at `folder`, which has that limit and [`high`] for it.
    ///
    /// # Errors
    /// The system's; the kernel delays the program even so.
    pub fn start(folder: &Path, limit: MemoryLimit) -> io::Result<Self> {
        let events = File::open(folder.join("memory.events"))?;
        let pager = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { events, pager, folder: folder.to_path_buf(), high: high(limit.bytes) })
    }

    /// Comes when the kernel counted something.
    pub fn wait(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.events.as_fd(), PollFlags::PRI)
    }

    /// What tells the pager that somebody is delayed.
    pub fn pager(&self) -> BorrowedFd<'_> {
        self.pager.as_fd()
    }

    /// Tells the pager when it should give frames up. When to come again, rung for or not.
    pub fn relieve(&self) -> Option<Duration> {
        // The kernel calls again only after this was read, whatever it says.
        let _ = self.events.read_at(&mut [0; 512], 0);
        if self.used().is_none_or(|used| used <= self.high) {
            return None;
        }
        // A bell that rings already needs no more.
        let _ = rustix::io::write(&self.pager, &1u64.to_ne_bytes());
        Some(LOOK)
    }

    /// Bytes in use that the kernel cannot just drop.
    fn used(&self) -> Option<u64> {
        let read = |file: &str| fs::read_to_string(self.folder.join(file)).ok();
        let current: u64 = read("memory.current")?.trim().parse().ok()?;
        Some(current.saturating_sub(droppable(&read("memory.stat")?)))
    }
}

/// `memory.high` for a limit: so far below it that filling what lies between takes [`SECONDS`]. Much more
/// would delay a pager where it works, just below its limit; much less, and the limit is reached before the
/// pager is awake.
pub fn high(limit: u64) -> u64 {
    // The integral of the square up to a part p, over all batches: limit / BATCH * STEEPNESS * p^3 / 3.
    let part = (3.0 * SECONDS * BATCH / (STEEPNESS * limit as f64)).cbrt().min(0.125);
    limit - (limit as f64 * part) as u64
}

/// Bytes of files in memory that no process has mapped, by a group's `memory.stat`.
fn droppable(stat: &str) -> u64 {
    let bytes = |name: &str| -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    // Shared memory counts as files and is dropped by nobody.
    let kept = bytes("file_mapped").unwrap_or(0).max(bytes("shmem").unwrap_or(0));
    bytes("file").unwrap_or(0).saturating_sub(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_limit_leaves_a_smaller_part() {
        let part = |limit: u64| limit as f64 / (limit - high(limit)) as f64;
        assert_eq!(high(4 << 20), 7 << 19, "an eighth at most");
        assert!((14.0..18.0).contains(&part(48 << 20)), "{}", part(48 << 20));
        assert!((40.0..48.0).contains(&part(1 << 30)), "{}", part(1 << 30));
    }

    #[test]
    fn files_are_dropped_unless_they_are_mapped_or_memory() {
        let stat = "anon 100\nfile 5000\nkernel 7\nshmem 1000\nfile_mapped 3000\nfile_dirty 9\n";
        assert_eq!(droppable(stat), 2000);
        assert_eq!(droppable("file 10\nshmem 10\nfile_mapped 0\n"), 0);
        assert_eq!(droppable(""), 0);
    }

    /// In a folder that is no group, with the files of one.
    #[test]
    fn the_pager_is_told_while_more_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).expect("written");
        write("memory.events", "low 0\nhigh 3\n");
        write("memory.stat", "file 0\n");
        write("memory.current", "50000000\n");
        let limit = MemoryLimit { bytes: 48 << 20, swap: false, paged: true };
        let delay = DelayKeeper::start(folder.path(), limit).expect("files");
        let told = || rustix::io::read(delay.pager(), &mut [0; 8]).is_ok();
        assert!(delay.relieve().is_some() && told());
        write("memory.stat", "file 40000000\nfile_mapped 1000\n");
        assert!(delay.relieve().is_none() && !told(), "files are the kernel's to drop");
        write("memory.stat", "file 0\n");
        write("memory.current", &high(limit.bytes).to_string());
        assert!(delay.relieve().is_none() && !told());
    }
}

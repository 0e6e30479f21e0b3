//! The two ways of telling the kernel: a shared mapping of an unlinked file, and anonymous memory with swap.

use super::room::FileRoom;
use crate::region::PagedRegion;
use crate::settings::{PagingEngine, ProcessSettings};
use crate::sys::{PAGE, advise};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Brings chunks in and out. Whatever the kernel makes of it, no content is lost: every call is about where
/// content is.
#[derive(Debug)]
pub(super) struct Way {
    region: Arc<PagedRegion>,
    /// The file behind the region; `None`: anonymous memory and swap.
    room: Option<Arc<FileRoom>>,
    /// Chunks of the file whose write-back was started.
    leaving: VecDeque<u32>,
    /// How many these may be before the first of them is waited for.
    depth: usize,
}

impl Way {
    /// Prepares the region, which must not have been touched.
    ///
    /// # Errors
    /// In words: a folder that cannot be written or has no room for `peak` chunks, no swap.
    pub fn prepare(
        engine: PagingEngine,
        settings: &ProcessSettings,
        region: Arc<PagedRegion>,
        peak: u64,
        depth: usize,
    ) -> Result<Self, String> {
        let (mapping, len) = (region.mapping(), region.mapping().len());
        let room = if engine == PagingEngine::File {
            let room = Arc::new(FileRoom::open(&settings.spill, &region, peak * settings.chunk as u64)?);
            let map = mapping.overlay(0, len, room.file().as_fd());
            map.map_err(|e| format!("cannot map the spill file: {e}"))?;
            // The plan reads ahead; the kernel's own read-ahead around a fault would be memory nobody planned
            // for.
            mapping.advise(0, len, libc::MADV_RANDOM).map_err(|e| format!("cannot advise: {e}"))?;
            room.stand_behind(&region)?;
            Some(room)
        } else {
            if !swap_is_on() {
                return Err(
                    "engine hint needs swap and this machine has none on: swapon a file, or use another \
                            engine (osprey probe lists them)"
                        .into(),
                );
            }
            // Pages leave one by one; huge ones would have to be split first.
            mapping.advise(0, len, libc::MADV_NOHUGEPAGE).map_err(|e| format!("cannot advise: {e}"))?;
            None
        };
        Ok(Self { region, room, leaving: VecDeque::new(), depth })
    }

    /// From here on the kernel reads around what is touched: there is no plan.
    pub fn alone(&self) -> io::Result<()> {
        let mapping = self.region.mapping();
        if self.room.is_some() { mapping.advise(0, mapping.len(), libc::MADV_NORMAL) } else { Ok(()) }
    }

    /// Starts to read a chunk.
    pub fn read_ahead(&self, chunk: u32) -> io::Result<()> {
        match &self.room {
            Some(room) => advise::will_need(room.file(), self.offset(chunk) as u64, self.region.chunk()),
            None => self.advise(chunk, 0, libc::MADV_WILLNEED),
        }
    }

    /// Maps a chunk but for its first `spare` bytes, to be written to or only read. Waits for the disk.
    pub fn map(&self, chunk: u32, spare: usize, write: bool) -> io::Result<()> {
        // A plan is ahead of the allocator, which has room set aside. A wrong one may name any chunk: no room
        // for those.
        if self.room.as_ref().is_some_and(|room| !room.holds(chunk)) {
            return Ok(());
        }
        // A page of a file that is mapped for reading brings those around it that are in the cache, the
        // spared ones, too.
        let write = write || spare > 0 && self.room.is_some();
        let how = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
        self.advise(chunk, spare, how)
    }

    /// Sends a chunk away.
    pub fn push_out(&mut self, chunk: u32) -> io::Result<()> {
        let Some(room) = &self.room else {
            return self.advise(chunk, 0, libc::MADV_PAGEOUT);
        };
        self.write_back(room, chunk, false)?;
        self.leaving.push_back(chunk);
        if self.leaving.len() > self.depth { self.drop_oldest() } else { Ok(()) }
    }

    /// Sends everything away whose write-back is under way.
    pub fn settle(&mut self) -> io::Result<()> {
        while !self.leaving.is_empty() {
            self.drop_oldest()?;
        }
        Ok(())
    }

    /// Takes a chunk that was written back out of the mapping and of the cache. What the program wrote to it
    /// in between is dirty again, and stays in the cache.
    fn drop_oldest(&mut self) -> io::Result<()> {
        if let Some(chunk) = self.leaving.pop_front()
            && let Some(room) = &self.room
        {
            self.advise(chunk, 0, libc::MADV_DONTNEED)?;
            self.write_back(room, chunk, true)?;
            advise::drop_cache(room.file(), self.offset(chunk) as u64, self.region.chunk())?;
        }
        Ok(())
    }

    /// Writes a chunk of the file. A disk that refuses it ends the process: the kernel takes a page that it
    /// failed to write for clean, and may give an older content back.
    fn write_back(&self, room: &FileRoom, chunk: u32, wait: bool) -> io::Result<()> {
        let done = advise::write_back(room.file(), self.offset(chunk) as u64, self.region.chunk(), wait);
        match done {
            Err(error) if !retry(&error) && error.kind() != io::ErrorKind::OutOfMemory => room.lost(&error),
            other => other,
        }
    }

    /// Keeps a chunk that was about to leave. Whether there was one.
    pub fn keep(&mut self, chunk: u32) -> bool {
        let at = self.leaving.iter().position(|&other| other == chunk);
        at.map(|at| self.leaving.remove(at)).is_some()
    }

    /// Whether a chunk that was sent away is still mapped until it is written.
    pub fn is_leaving(&self, chunk: u32) -> bool {
        self.leaving.contains(&chunk)
    }

    fn offset(&self, chunk: u32) -> usize {
        chunk as usize * self.region.chunk()
    }

    fn advise(&self, chunk: u32, spare: usize, advice: i32) -> io::Result<()> {
        if spare >= self.region.chunk() {
            return Ok(());
        }
        let (offset, len) = (self.offset(chunk) + spare, self.region.chunk() - spare);
        loop {
            match self.region.mapping().advise(offset, len, advice) {
                Err(error) if retry(&error) => {}
                other => return other,
            }
        }
    }
}

/// The kernel was short of something for a moment.
fn retry(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR))
}

fn swap_is_on() -> bool {
    let text = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    text.lines().count() > 1
}

/// Bytes of memory that this process has mapped and that are there.
pub(super) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE as u64
}

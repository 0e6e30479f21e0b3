//! The two ways of telling the kernel: a shared mapping of an unlinked file, and anonymous memory with swap.

use crate::region::Region;
use crate::settings::{Engine, Settings};
use crate::sys::{PAGE, advise};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

/// Brings chunks in and out. Whatever the kernel makes of it, no content is lost: every call is about where content is.
#[derive(Debug)]
pub(super) struct Way {
    region: Arc<Region>,
    /// The file behind the region; `None`: anonymous memory and swap.
    file: Option<File>,
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
        engine: Engine,
        settings: &Settings,
        region: Arc<Region>,
        peak: u64,
        depth: usize,
    ) -> Result<Self, String> {
        let (mapping, len) = (region.mapping(), region.mapping().len());
        let file = if engine == Engine::File {
            let file = unlinked(settings).map_err(|e| {
                format!("engine file cannot make a file of {len} bytes in {}: {e}", settings.spill.display())
            })?;
            let (room, need) = (advise::free_bytes(&file).unwrap_or(u64::MAX), peak * settings.chunk as u64);
            if room < need {
                return Err(format!(
                    "{} has room for {room} bytes and the trace needs {need}: choose another folder with --spill",
                    settings.spill.display()
                ));
            }
            mapping.overlay(0, len, file.as_fd()).map_err(|e| format!("cannot map the spill file: {e}"))?;
            // The plan reads ahead; the kernel's own read-ahead around a fault would be memory nobody planned for.
            mapping.advise(0, len, libc::MADV_RANDOM).map_err(|e| format!("cannot advise: {e}"))?;
            Some(file)
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
        Ok(Self { region, file, leaving: VecDeque::new(), depth })
    }

    /// From here on the kernel reads around what is touched: there is no plan.
    pub fn alone(&self) -> io::Result<()> {
        let mapping = self.region.mapping();
        if self.file.is_some() { mapping.advise(0, mapping.len(), libc::MADV_NORMAL) } else { Ok(()) }
    }

    /// Starts to read a chunk.
    pub fn read_ahead(&self, chunk: u32) -> io::Result<()> {
        match &self.file {
            Some(file) => advise::will_need(file, self.offset(chunk) as u64, self.region.chunk()),
            None => self.advise(chunk, 0, libc::MADV_WILLNEED),
        }
    }

    /// Maps a chunk but for its first `spare` bytes, to be written to or only read. Waits for the disk.
    pub fn map(&self, chunk: u32, spare: usize, write: bool) -> io::Result<()> {
        // A page of a file that is mapped for reading brings those around it that are in the cache, the spared ones, too.
        let write = write || spare > 0 && self.file.is_some();
        let how = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
        self.advise(chunk, spare, how)
    }

    /// Sends a chunk away.
    pub fn push_out(&mut self, chunk: u32) -> io::Result<()> {
        let Some(file) = &self.file else {
            return self.advise(chunk, 0, libc::MADV_PAGEOUT);
        };
        advise::write_back(file, self.offset(chunk) as u64, self.region.chunk(), false)?;
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

    /// Takes a chunk that was written back out of the mapping and of the cache. What the program wrote to it in between
    /// is dirty again, and stays in the cache.
    fn drop_oldest(&mut self) -> io::Result<()> {
        if let (Some(file), Some(chunk)) = (&self.file, self.leaving.pop_front()) {
            let (offset, len) = (self.offset(chunk), self.region.chunk());
            self.advise(chunk, 0, libc::MADV_DONTNEED)?;
            advise::write_back(file, offset as u64, len, true)?;
            advise::drop_cache(file, offset as u64, len)?;
        }
        Ok(())
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

/// A sparse file as long as the region, without a name: nothing is left when the process dies.
fn unlinked(settings: &Settings) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(&settings.spill)?;
    file.set_len(settings.region)?;
    Ok(file)
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

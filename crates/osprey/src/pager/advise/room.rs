//! The room on disk of engine `file`: a file without a name behind the region, as long as what was ever
//! allocated.
//!
//! A touch must not be where the disk turns out to be full: the system answers it with a signal, and a system
//! call of the program's that touches with an error that names nothing. So the room of a chunk is set aside
//! before anything is allocated in it, from the region's base on, which is how the allocator fills it. It is
//! kept until the end: the allocator gives out the addresses of dead chunks first, and whoever punches a hole
//! must find its room again.
//!
//! Some file systems cannot set room aside, and disks fail. Then the signal comes all the same, and is
//! answered with words.

use crate::pager::{EXIT_PAGING, spill};
use crate::region::{Backing, PagedRegion};
use crate::sys::own::{allocate, exit_now, file_limit, tell};
use crate::sys::{PAUSE, TRIES, advise, signal};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes that the file grows by at least, and one byte of it in as many.
const GROW: u64 = 4 << 20;
const GROW_SHARE: u64 = 4;

/// The file and how much of it has room.
#[derive(Debug)]
pub(super) struct FileRoom {
    file: File,
    directory: PathBuf,
    chunk: u64,
    /// Bytes of the region, which the file never needs more than.
    region: u64,
    /// Bytes from the start on that have room, whole chunks. Grows by whoever holds the lock.
    bytes: AtomicU64,
    growing: Mutex<()>,
}

/// What a touch that the disk could not serve is answered with.
struct Trouble {
    room: Arc<FileRoom>,
    base: usize,
    text: String,
}

static TROUBLE: OnceLock<Trouble> = OnceLock::new();

impl FileRoom {
    /// An empty file for the region, in a folder that has room for `need` bytes now.
    ///
    /// # Errors
    /// In words: a folder that cannot be written or is too full.
    pub fn open(directory: &Path, region: &PagedRegion, need: u64) -> Result<Self, String> {
        let place = directory.display();
        let file = spill::unnamed(directory, 0).map_err(|e| {
            format!("engine file cannot make a file in {place}: {e}; choose another folder with --spill")
        })?;
        let room = advise::free_bytes(&file).unwrap_or(u64::MAX);
        if room < need {
            return Err(format!(
                "{place} has room for {room} bytes and the trace needs {need}: choose another folder with \
                 --spill"
            ));
        }
        Ok(Self {
            file,
            directory: directory.into(),
            chunk: region.chunk() as u64,
            region: region.mapping().len() as u64,
            bytes: AtomicU64::new(0),
            growing: Mutex::new(()),
        })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// From now on the room of a chunk is set aside before something is allocated in it, and a touch that the
    /// disk cannot serve ends the process with words. The file must be mapped. Once per process.
    ///
    /// # Errors
    /// In words.
    pub fn stand_behind(self: &Arc<Self>, region: &PagedRegion) -> Result<(), String> {
        let text = format!(
            "a part of the file in {} could be neither read nor written: the disk is full or faulty; free \
             space there, or choose another directory (OSPREY_SPILL, or --spill of osprey run)",
            self.directory.display()
        );
        let trouble = Trouble { room: self.clone(), base: region.mapping().base() as usize, text };
        let again = || "engine file was started before".to_owned();
        TROUBLE.set(trouble).map_err(|_| again())?;
        signal::answer_bus(answer).map_err(|e| format!("cannot notice a failing disk: {e}"))?;
        region.stand_on(self.clone()).map_err(|_| again())
    }

    /// Whether a chunk has room.
    pub fn holds(&self, chunk: u32) -> bool {
        u64::from(chunk) * self.chunk < self.bytes.load(Ordering::Acquire)
    }

    /// Sets room aside up to `end`, and some ahead while there is some, so that it is done rarely.
    fn grow(&self, end: u64) {
        let _one = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let have = self.bytes.load(Ordering::Acquire);
        if end <= have {
            return;
        }
        let limit = file_limit();
        if end > limit {
            self.full(have, "the limit on the size of a file, ulimit -f, is reached");
        }
        let need = end - have;
        let ahead = (have / GROW_SHARE).max(GROW).next_multiple_of(self.chunk);
        let most = self.region.min(limit - limit % self.chunk);
        let mut more = need.max(ahead).min(most - have);
        let mut tries = 0;
        while let Err(error) = allocate(&self.file, have, more) {
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::OutOfMemory if tries < TRIES => std::thread::sleep(PAUSE),
                _ if more == need => self.full(have, &error.to_string()),
                _ => {}
            }
            (more, tries) = ((more / 2).next_multiple_of(self.chunk).max(need), tries + 1);
        }
        self.bytes.store(have + more, Ordering::Release);
    }

    /// Ends the process: what was to be allocated finds no room.
    fn full(&self, have: u64, why: &str) -> ! {
        self.end(&format!(
            "no room for paging: the file in {} holds {} MiB and cannot grow ({why}); free space there, or \
             choose another directory (OSPREY_SPILL, or --spill of osprey run): engine file needs room for \
             all that the program has in its region",
            self.directory.display(),
            have >> 20
        ))
    }

    /// Ends the process: what was written back may be lost, and the system would read on as if nothing had
    /// happened.
    pub fn lost(&self, error: &io::Error) -> ! {
        self.end(&format!(
            "the file in {} could not be written: {error}; free space there, or choose another directory \
             (OSPREY_SPILL, or --spill of osprey run)",
            self.directory.display()
        ))
    }

    fn end(&self, text: &str) -> ! {
        tell(&format!("osprey: {text}\n"));
        exit_now(EXIT_PAGING)
    }
}

impl Backing for FileRoom {
    fn reach(&self, chunk: u32) {
        if !self.holds(chunk) {
            self.grow((u64::from(chunk) + 1) * self.chunk);
        }
    }
}

/// Knows touches of what has room; a touch behind that is of something that was never allocated.
fn answer(touch: signal::SignalTouch) -> bool {
    if let Some(Trouble { room, base, text }) = TROUBLE.get()
        && let Some(offset) = touch.address.checked_sub(*base)
        && (offset as u64) < room.bytes.load(Ordering::Acquire)
    {
        signal::leave(text, EXIT_PAGING);
    }
    false
}

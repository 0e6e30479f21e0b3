//! Bytes of files without a name: as they are counted, and as a schedule foretells them.

use crate::matcher::MatchDisk;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the files of a room have taken so far, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpilledBytes {
    /// Written.
    pub written: u64,
    /// Read back.
    pub read: u64,
    /// In files that are there now.
    pub on_disk: u64,
    /// The same, when they were most.
    pub at_most: u64,
}

/// Counts [`SpilledBytes`]. A file is as long as the end of what was written to it.
#[derive(Debug, Default)]
pub(crate) struct DiskTally {
    written: AtomicU64,
    read: AtomicU64,
    on_disk: AtomicU64,
    at_most: AtomicU64,
}

impl DiskTally {
    /// So many bytes, by which a file is so much longer.
    pub fn wrote(&self, bytes: u64, longer: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        let now = self.on_disk.fetch_add(longer, Ordering::Relaxed) + longer;
        self.at_most.fetch_max(now, Ordering::Relaxed);
    }

    /// So many bytes came back.
    pub fn read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A file of so many bytes is gone.
    pub fn gone(&self, bytes: u64) {
        self.on_disk.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn counted(&self) -> SpilledBytes {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Self { written, read, on_disk, at_most } = self;
        SpilledBytes { written: of(written), read: of(read), on_disk: of(on_disk), at_most: of(at_most) }
    }
}

/// What a protocol's files take where nothing of them fits into memory: [`MatchDisk`] follows its schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskSchedule(SpilledBytes);

impl DiskSchedule {
    /// Files grow by so many bytes.
    pub fn write(&mut self, bytes: u64) {
        self.0.on_disk += bytes;
        self.0.at_most = self.0.at_most.max(self.0.on_disk);
        self.write_again(bytes);
    }

    /// So many bytes are written where some lay.
    pub fn write_again(&mut self, bytes: u64) {
        self.0.written += bytes;
    }

    /// So many bytes come back.
    pub fn read(&mut self, bytes: u64) {
        self.0.read += bytes;
    }

    /// Files of so many bytes are gone.
    pub fn drop(&mut self, bytes: u64) {
        self.0.on_disk -= bytes;
    }

    /// A column of so many bytes that is written, read once and gone.
    pub fn pass_through(&mut self, bytes: u64) {
        self.write(bytes);
        self.read(bytes);
        self.drop(bytes);
    }

    /// What it takes in all. What is there now stays.
    pub fn disk(self, longest: u64) -> MatchDisk {
        let SpilledBytes { written, read, on_disk: stays, at_most } = self.0;
        MatchDisk { written, read, at_most, stays, longest }
    }
}

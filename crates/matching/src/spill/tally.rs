//! Counts bytes of files without a name.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the files of a room have taken so far, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpilledBytes {
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
    #[cfg(test)]
    pub fn counted(&self) -> SpilledBytes {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Self { written, read, on_disk, at_most } = self;
        SpilledBytes { written: of(written), read: of(read), on_disk: of(on_disk), at_most: of(at_most) }
    }
}

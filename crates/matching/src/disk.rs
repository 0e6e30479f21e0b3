//! Adds up what files take, by the schedule of a protocol: as [`crate::spill`] counts it, where nothing fits
//! into memory that need not be there.

use crate::matcher::MatchDisk;
use crate::spill::SpilledBytes;

/// What files take so far. Tell it what happens in order.
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

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;

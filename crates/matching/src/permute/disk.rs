//! What moving rows by networks takes on disk, by the order in which [`super::paged`] meets blocks.

use super::paged::PlaneCut;
use super::planes::{PlanePacking, PlaneWord};
use crate::disk::DiskSchedule;
use crate::payload::PayloadLayout;
use crate::spill::SpillRoom;

/// Bytes of a row in a map, of a slot, and of a row's place while payload is dealt to its places.
pub(crate) const MAP_BYTES: u64 = size_of::<u32>() as u64;
/// Blocks for each part that are met once more, in a network, for they lie across an end of something. Halves
/// of upper levels have fewer than four ends a part, before and after; parts have one when they are loaded,
/// and two when they are stored.
const ENDS: u64 = 4 + 1 + 2;

/// Rows of a payload on their way into shares.
pub(crate) struct MovedRows<'a> {
    pub layout: &'a PayloadLayout,
    /// Rows of the payload.
    pub rows: u64,
    /// Shares that come of them, at most.
    pub entries: u64,
    /// Whether this party's payload is moved.
    pub gives: bool,
    /// The memory of the match's room; none: no bound.
    pub memory: Option<u64>,
}

impl MovedRows<'_> {
    /// By a permutation. Shares stay.
    pub fn permuted(&self, disk: &mut DiskSchedule) {
        let Some(mut file) = self.file(self.rows, disk) else { return self.share(disk) };
        self.place(&mut file);
        file.network(self.rows, !self.gives);
        self.hand_out(file);
    }

    /// By an extended permutation. Shares stay.
    pub fn extended(&self, disk: &mut DiskSchedule) {
        let wires = self.rows.max(self.entries);
        let fit = self.file(self.rows, disk).is_none();
        let Some(mut file) = self.file(wires, disk) else { return self.share(disk) };
        match fit {
            // They are moved there when there are more of them.
            true => file.write(self.rows),
            false => self.place(&mut file),
        }
        file.network(wires, false);
        // Each slot from the one before it; the last block of those that stay is cut.
        file.read(self.entries);
        file.write(self.entries);
        file.meet_again(1);
        file.network(self.entries, false);
        self.hand_out(file);
    }

    /// A map of slots to rows, brought into the order of rows: each slot with its row, and slots.
    pub fn map_sorted(&self, disk: &mut DiskSchedule) {
        let columns = 3 * MAP_BYTES * self.entries;
        disk.pass_through(columns);
    }

    /// Planes, where those of so many rows do not fit.
    fn file<'d>(&self, rows: u64, disk: &'d mut DiskSchedule) -> Option<PlaneFile<'d>> {
        let planes = PlanePacking::new(self.layout).planes.len();
        let cut = PlaneCut::of(SpillRoom::working_of(self.memory), planes, rows as usize)?;
        let block = (cut.block * planes * size_of::<PlaneWord>()) as u64;
        Some(PlaneFile { disk, rows: [cut.block, cut.fit].map(|rows| rows as u64), block, len: 0 })
    }

    /// Own payload, by way of parts of its order; or zeros, which are not written.
    fn place(&self, file: &mut PlaneFile<'_>) {
        if self.gives {
            let dealt = self.rows * (MAP_BYTES + self.layout.row_bytes() as u64);
            file.disk.write(dealt);
            file.disk.read(dealt);
            file.write(self.rows);
            file.disk.drop(dealt);
        }
    }

    fn hand_out(&self, mut file: PlaneFile<'_>) {
        file.read(self.entries);
        self.share(file.disk);
        file.disk.drop(file.len);
    }

    /// Shares alone.
    pub fn share(&self, disk: &mut DiskSchedule) {
        disk.write(self.entries * self.layout.row_bytes() as u64);
    }
}

/// The file of some planes.
struct PlaneFile<'d> {
    disk: &'d mut DiskSchedule,
    /// Of a block, and of a part at most.
    rows: [u64; 2],
    /// Bytes of a block.
    block: u64,
    len: u64,
}

impl PlaneFile<'_> {
    fn bytes(&self, rows: u64) -> u64 {
        rows.div_ceil(self.rows[0]) * self.block
    }

    /// The first rows come back.
    fn read(&mut self, rows: u64) {
        self.disk.read(self.bytes(rows));
    }

    /// The first rows are written.
    fn write(&mut self, rows: u64) {
        let bytes = self.bytes(rows);
        let longer = bytes.saturating_sub(self.len);
        self.disk.write(longer);
        self.disk.write_again(bytes - longer);
        self.len += longer;
    }

    /// So many blocks are read and written besides.
    fn meet_again(&mut self, blocks: u64) {
        self.disk.read(blocks * self.block);
        self.disk.write_again(blocks * self.block);
    }

    /// All gates of the network on so many wires: twice through every upper level, once through the parts.
    /// What was never written is not read.
    fn network(&mut self, wires: u64, fresh: bool) {
        let parts = wires.div_ceil(self.rows[1]).next_power_of_two();
        for pass in 0..=2 * parts.ilog2() {
            if pass > 0 || !fresh {
                self.read(wires);
            }
            self.write(wires);
        }
        self.meet_again(ENDS * parts);
    }
}

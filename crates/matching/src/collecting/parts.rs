//! Parts of an order: rows that are in memory together, whole messages of them.

use super::price::message_rows;
use crate::spill::{SpillDeal, SpillRoom};
use std::ops::Range;

/// Rows of a part, at most.
const ROWS: u64 = 1 << 16;

/// How rows that stand in an order are cut into parts.
#[derive(Clone, Copy)]
pub(super) struct PartRows {
    all: u64,
    part: u64,
}

impl PartRows {
    /// For so many rows of `width` names, each of which takes `bytes` of memory in a part.
    pub fn new(room: &SpillRoom, all: u64, width: usize, bytes: u64) -> Self {
        let step = message_rows(width as u64);
        let fit = (room.working() / bytes.max(1)).clamp(step, ROWS.max(step));
        Self { all, part: fit / step * step }
    }

    /// Rows of a part, but for the last one.
    pub fn rows(&self) -> u64 {
        self.part
    }

    /// The part in which a place is.
    pub fn of(&self, place: u64) -> usize {
        (place / self.part) as usize
    }

    /// The places of a part.
    pub fn range(&self, part: u64) -> Range<u64> {
        self.all.min(part * self.part)..self.all.min((part + 1) * self.part)
    }

    /// What is dealt to the parts.
    pub fn deal(&self, room: &SpillRoom) -> SpillDeal {
        SpillDeal::new(room, self.all.div_ceil(self.part) as usize)
    }
}

//! The bitonic sort, which is nested merges, depth first.
//!
//! Two sorted halves, both ascending, are merged by comparing i with its mirror image first; what is left are
//! two bitonic halves. So all comparisons point one way and lanes of one call need no direction.

use crate::merge::{BASE, Network};
use base::Error;
use osprey::Memory;
use yao::wires::Items;

impl<M: Memory> Network<'_, '_, M> {
    /// Sorts `len` records, a power of two.
    pub fn sort(&mut self, start: usize, len: usize) -> Result<(), Error> {
        if len <= BASE {
            let mut block = 2;
            while block <= len {
                self.mirror(start, len, block)?;
                self.levels(start, len, block / 4)?;
                block *= 2;
            }
            return Ok(());
        }
        let half = len / 2;
        self.sort(start, half)?;
        self.sort(start + half, half)?;
        self.mirror(start, len, len)?;
        self.merge(start, half)?;
        self.merge(start + half, half)
    }

    /// Compares every record of the first half of a block with its mirror image in the second.
    fn mirror(&mut self, start: usize, len: usize, block: usize) -> Result<(), Error> {
        let first = Items::grid(start, block / 2, block, len / 2);
        let second = Items::mirrored(start + block - 1, block / 2, block, len / 2);
        self.order_all([first, second])
    }
}

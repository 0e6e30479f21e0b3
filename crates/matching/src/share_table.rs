//! Shares that came out of a match: a table that may be larger than memory, and is read along its rows.

use crate::payload::{PayloadLayout, PayloadTable};
use crate::spill::{SpillQueue, SpillRoom};
use base::Error;

/// Rows of a block, at most, and its bytes, about.
const BLOCK_ROWS: usize = 1 << 12;
const BLOCK_BYTES: usize = 1 << 18;

/// Rows of a layout, in blocks that are in memory or, where they do not fit, in a sealed file without a name.
/// It does not print; what is in memory is wiped when it is dropped.
pub struct ShareTable {
    layout: PayloadLayout,
    rows: u64,
    block_rows: u64,
    blocks: Box<SpillQueue>,
}

/// The blocks of a [`ShareTable`] that a reader has met last. One reader reads one table.
#[derive(Default)]
pub struct ShareBlock {
    /// With their numbers, the one met last behind the others.
    met: Vec<(u64, Vec<u8>)>,
    /// Rows that are read once for every field, one field after the other.
    span: u64,
}

impl ShareBlock {
    /// Says that so many neighbouring rows are read over and over, field by field: they are loaded once.
    pub fn go_over(&mut self, rows: u64) {
        self.span = self.span.max(rows);
    }

    /// The bytes of a block, which `load` loads.
    fn block(
        &mut self,
        number: u64,
        block_rows: u64,
        load: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<&[u8], Error> {
        if self.met.last().is_none_or(|(last, _)| *last != number) {
            let next = match self.met.iter().position(|(known, _)| *known == number) {
                Some(at) => self.met.remove(at),
                None => {
                    // Those that a span touches, wherever it begins.
                    let most = self.span.div_ceil(block_rows) as usize + 1;
                    let full = self.met.len() >= most;
                    let mut bytes = if full { self.met.remove(0).1 } else { Vec::new() };
                    load(&mut bytes)?;
                    (number, bytes)
                }
            };
            self.met.push(next);
        }
        Ok(&self.met.last().expect("it was put there").1)
    }
}

impl ShareTable {
    /// No rows yet.
    pub(crate) fn new(layout: PayloadLayout, room: &SpillRoom) -> Self {
        let width = layout.row_bytes().max(1);
        let block_rows = (BLOCK_BYTES / width).clamp(1, BLOCK_ROWS);
        let blocks = Box::new(SpillQueue::new(room, block_rows * width));
        Self { layout, rows: 0, block_rows: block_rows as u64, blocks }
    }

    /// So many rows of zeros.
    pub(crate) fn zeros(layout: PayloadLayout, rows: u64, room: &SpillRoom) -> Result<Self, Error> {
        let mut table = Self::new(layout, room);
        let row = vec![0; table.layout.row_bytes()];
        (0..rows).try_for_each(|_| table.push(&row))?;
        Ok(table)
    }

    /// All rows of a table.
    ///
    /// # Errors
    /// When they have to go to disk and cannot.
    pub fn of(table: &PayloadTable, room: &SpillRoom) -> Result<Self, Error> {
        let mut shares = Self::new(table.layout().clone(), room);
        shares.blocks.push(table.bytes())?;
        shares.rows = table.rows();
        Ok(shares)
    }

    /// Adds a row of as many bytes as the layout says.
    pub(crate) fn push(&mut self, row: &[u8]) -> Result<(), Error> {
        self.rows += 1;
        self.blocks.push(row)
    }

    /// Its layout.
    #[must_use]
    pub fn layout(&self) -> &PayloadLayout {
        &self.layout
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// One field of one row. Rows are best read in their order: `block` is loaded whole.
    ///
    /// # Errors
    /// When it cannot be read back.
    ///
    /// # Panics
    /// When there is no such row or field.
    pub fn get(&self, row: u64, field: usize, block: &mut ShareBlock) -> Result<u128, Error> {
        let number = row / self.block_rows;
        let bytes = block.block(number, self.block_rows, |into| self.blocks.block(number as usize, into))?;
        let range = self.layout.range(field);
        let start = (row % self.block_rows) as usize * self.layout.row_bytes() + range.start;
        let mut word = [0; 16];
        word[..range.len()].copy_from_slice(&bytes[start..start + range.len()]);
        Ok(u128::from_le_bytes(word))
    }

    /// All rows in memory.
    ///
    /// # Errors
    /// When they do not fit, or cannot be read back.
    pub fn whole(&self) -> Result<PayloadTable, Error> {
        let mut table = PayloadTable::zeros(self.layout.clone(), self.rows)?;
        let mut at = 0;
        self.blocks.each_block(|block| {
            table.bytes_mut()[at..at + block.len()].copy_from_slice(block);
            at += block.len();
            Ok(())
        })?;
        Ok(table)
    }
}

impl Drop for ShareTable {
    fn drop(&mut self) {
        self.blocks.wipe();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::TableField;

    #[test]
    fn rows_come_back_from_memory_and_from_disk() {
        let layout = PayloadLayout::new([TableField::number(16), TableField::bits(20)]).unwrap();
        let mut table = PayloadTable::zeros(layout.clone(), 100_001).unwrap();
        (0..100_001).for_each(|row| table.set(row, 0, u128::MAX / (u128::from(row) + 1)));
        (0..100_001).for_each(|row| table.set(row, 1, row.into()));
        for memory in [None, Some(1)] {
            let room = SpillRoom::new(memory, None);
            let shares = ShareTable::of(&table, &room).unwrap();
            assert!(shares.whole().unwrap().bytes() == table.bytes() && shares.rows() == 100_001);
            let mut block = ShareBlock::default();
            for row in (0..100_001).step_by(97) {
                for field in 0..2 {
                    assert_eq!(shares.get(row, field, &mut block).unwrap(), table.get(row, field));
                }
            }
            assert_eq!(room.bytes_read() > 0, memory.is_some());
        }
        // Field after field over many rows, everything is loaded once.
        let room = SpillRoom::new(Some(1), None);
        let shares = ShareTable::of(&table, &room).unwrap();
        let mut block = ShareBlock::default();
        block.go_over(10_000);
        for from in (0..100_000).step_by(10_000) {
            for (field, row) in (0..2).flat_map(|field| (from..from + 10_000).map(move |row| (field, row))) {
                assert_eq!(shares.get(row, field, &mut block).unwrap(), table.get(row, field));
            }
        }
        assert!(room.bytes_read() > 0 && room.bytes_read() <= table.bytes().len() as u64);
        let room = SpillRoom::new(None, None);
        let nothing = ShareTable::zeros(PayloadLayout::default(), 7, &room).unwrap();
        assert_eq!((nothing.rows(), nothing.whole().unwrap().rows()), (7, 7));
    }
}

//! What a match leaves along its joined rows: a table that may be larger than memory, is read along its rows,
//! and may lie where somebody keeps it beyond this process.

use crate::payload::{ABSENT, PayloadLayout, PayloadSource, PayloadTable};
use crate::spill::{SpillDeal, SpillQueue, SpillRoom};
use base::Error;
use std::ops::Range;
use zeroize::Zeroizing;

/// Rows of a block at least, so that a batch of a computation lies in two, and at most.
const BLOCK_ROWS: [usize; 2] = [1 << 10, 1 << 12];
/// Bytes of a block, about.
const BLOCK_BYTES: usize = 1 << 18;
/// Rows of a part of [`ShareTable::along`], at least and at most.
const PART_ROWS: [u64; 2] = [1 << 12, 1 << 18];

/// Rows of a layout, in blocks that are in memory, where they do not fit in a sealed file without a name, or
/// where somebody keeps them: shares, or own values where they lie in the clear. It does not print; what is
/// in memory is wiped when it is dropped.
pub struct ShareTable {
    layout: PayloadLayout,
    rows: u64,
    block_rows: u64,
    /// Rows of each section but the last one.
    section_rows: u64,
    blocks: TableBlocks,
}

enum TableBlocks {
    /// Of this process, in sections.
    Own(Vec<SpillQueue>),
    /// Where somebody keeps them.
    Stored(Box<dyn StoredRows>),
}

/// The bytes of all rows of a table, one after the other, as somebody keeps them beyond this process.
pub trait StoredRows: Send + Sync {
    /// The bytes in a range.
    ///
    /// # Errors
    /// When they cannot be read, or are others than were written.
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Error>;
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
        Self::in_sections(layout, (1, u64::MAX), room)
    }

    /// No rows yet, in so many sections of so many rows, which are filled side by side.
    pub(crate) fn in_sections(
        layout: PayloadLayout,
        (sections, section_rows): (usize, u64),
        room: &SpillRoom,
    ) -> Self {
        let block_rows = Self::block_rows(&layout);
        let bytes = block_rows as usize * layout.row_bytes().max(1);
        let blocks = TableBlocks::Own((0..sections).map(|_| SpillQueue::new(room, bytes)).collect());
        Self { layout, rows: 0, block_rows, section_rows, blocks }
    }

    fn block_rows(layout: &PayloadLayout) -> u64 {
        let [least, most] = BLOCK_ROWS;
        (BLOCK_BYTES / layout.row_bytes().max(1)).clamp(least, most) as u64
    }

    /// So many rows that were written, as [`Self::each`] hands them out.
    #[must_use]
    pub fn stored(layout: PayloadLayout, rows: u64, stored: Box<dyn StoredRows>) -> Self {
        let (block_rows, blocks) = (Self::block_rows(&layout), TableBlocks::Stored(stored));
        Self { layout, rows, block_rows, section_rows: u64::MAX, blocks }
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
        shares.extend(0, table.bytes(), table.rows())?;
        Ok(shares)
    }

    /// Own values along joined rows: `mine` says which own row lies at each of them, [`ABSENT`] that none
    /// does, where `blank` stands. No own row lies at two. Every row of `values` is read once, in order.
    ///
    /// # Errors
    /// Those of `values`; when rows have to go to disk and cannot.
    pub fn along(
        mine: Vec<u32>,
        values: &dyn PayloadSource,
        blank: &[u8],
        room: &SpillRoom,
    ) -> Result<Self, Error> {
        let (joined, width) = (mine.len() as u64, values.layout().row_bytes());
        let mut places = crate::memory::reserve("places of own rows", values.rows())?;
        places.resize(values.rows() as usize, ABSENT);
        for (place, row) in (0..).zip(mine).filter(|(_, row)| *row != ABSENT) {
            *places.get_mut(row as usize).ok_or_else(|| Error::misuse("a joined row is no own row"))? = place;
        }
        let part_rows = (room.working() / (width as u64 + 4) / 2).clamp(PART_ROWS[0], PART_ROWS[1]);
        let mut deal = SpillDeal::new(room, joined.div_ceil(part_rows) as usize);
        let mut record = Zeroizing::new(Vec::new());
        values.each(&mut |first, rows| {
            for row in 0..rows.rows() {
                let place = places[(first + row) as usize];
                if place != ABSENT {
                    record.clear();
                    record.extend_from_slice(&place.to_le_bytes());
                    record.extend_from_slice(rows.row(row));
                    deal.push((u64::from(place) / part_rows) as usize, &record)?;
                }
            }
            Ok(())
        })?;
        drop(places);
        let mut table = Self::new(values.layout().clone(), room);
        let (mut dealt, mut part) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
        for first in (0..joined).step_by(part_rows as usize) {
            deal.take((first / part_rows) as usize, &mut dealt)?;
            let count = part_rows.min(joined - first);
            part.clear();
            (0..count).for_each(|_| part.extend_from_slice(blank));
            for record in dealt.chunks_exact(width + 4) {
                let (place, row) = record.split_first_chunk().expect("a place comes first");
                let at = (u64::from(u32::from_le_bytes(*place)) - first) as usize;
                part[at * width..][..width].copy_from_slice(row);
            }
            table.extend(0, &part, count)?;
        }
        Ok(table)
    }

    /// Adds a row of as many bytes as the layout says.
    pub(crate) fn push(&mut self, row: &[u8]) -> Result<(), Error> {
        self.extend(0, row, 1)
    }

    /// Adds so many rows to a section.
    pub(crate) fn extend(&mut self, section: usize, rows: &[u8], count: u64) -> Result<(), Error> {
        let TableBlocks::Own(sections) = &mut self.blocks else {
            return Err(Error::misuse("what is stored does not grow"));
        };
        self.rows += count;
        sections[section].push(rows)
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
        let (section, at) = (row / self.section_rows, row % self.section_rows);
        let at_block = at / self.block_rows;
        let number = section * self.section_rows.div_ceil(self.block_rows) + at_block;
        let load = |into: &mut Vec<u8>| match &self.blocks {
            TableBlocks::Own(sections) => sections[section as usize].block(at_block as usize, into),
            TableBlocks::Stored(stored) => {
                *into = stored.read(self.stored_block(at_block))?;
                Ok(())
            }
        };
        let bytes = block.block(number, self.block_rows, load)?;
        let range = self.layout.range(field);
        let start = (at % self.block_rows) as usize * self.layout.row_bytes() + range.start;
        let mut word = [0; 16];
        word[..range.len()].copy_from_slice(&bytes[start..start + range.len()]);
        Ok(u128::from_le_bytes(word))
    }

    /// Where a block lies among what is stored.
    fn stored_block(&self, block: u64) -> Range<u64> {
        let at = |row: u64| row.min(self.rows) * self.layout.row_bytes() as u64;
        at(block * self.block_rows)..at((block + 1) * self.block_rows)
    }

    /// Hands out the bytes of all rows, one after the other, in pieces.
    ///
    /// # Errors
    /// When they cannot be read back; or what `take` says.
    pub fn each(&self, mut take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        match &self.blocks {
            TableBlocks::Own(sections) => {
                sections.iter().try_for_each(|section| section.each_block(&mut take))
            }
            TableBlocks::Stored(stored) => (0..self.rows.div_ceil(self.block_rows))
                .try_for_each(|block| take(&Zeroizing::new(stored.read(self.stored_block(block))?))),
        }
    }

    /// All rows in memory.
    ///
    /// # Errors
    /// When they do not fit, or cannot be read back.
    pub fn whole(&self) -> Result<PayloadTable, Error> {
        let mut table = PayloadTable::zeros(self.layout.clone(), self.rows)?;
        let mut at = 0;
        self.each(|block| {
            table.bytes_mut()[at..at + block.len()].copy_from_slice(block);
            at += block.len();
            Ok(())
        })?;
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::TableField;

    fn layout() -> PayloadLayout {
        PayloadLayout::new([TableField::number(16), TableField::bits(20)]).unwrap()
    }

    fn table(rows: u64) -> PayloadTable {
        let mut table = PayloadTable::zeros(layout(), rows).unwrap();
        (0..rows).for_each(|row| table.set(row, 0, u128::MAX / (u128::from(row) + 1)));
        (0..rows).for_each(|row| table.set(row, 1, row.into()));
        table
    }

    #[test]
    fn rows_come_back_from_memory_and_from_disk() {
        let table = table(100_001);
        for (memory, sections) in [(None, 1), (Some(1), 1), (None, 3), (Some(1), 3)] {
            let room = SpillRoom::new(memory, None);
            let of = table.rows().div_ceil(sections);
            let mut shares = ShareTable::in_sections(layout(), (sections as usize, of), &room);
            // Side by side.
            for row in 0..of {
                for section in 0..sections {
                    let row = section * of + row;
                    if row < table.rows() {
                        shares.extend(section as usize, table.row(row), 1).unwrap();
                    }
                }
            }
            assert!(shares.whole().unwrap().bytes() == table.bytes() && shares.rows() == 100_001);
            let mut block = ShareBlock::default();
            for row in (0..100_001).step_by(97) {
                for field in 0..2 {
                    assert_eq!(shares.get(row, field, &mut block).unwrap(), table.get(row, field));
                }
            }
            assert_eq!(room.spilled().read > 0, memory.is_some());
        }
        let room = SpillRoom::new(None, None);
        let nothing = ShareTable::zeros(PayloadLayout::default(), 7, &room).unwrap();
        assert_eq!((nothing.rows(), nothing.whole().unwrap().rows()), (7, 7));
    }

    /// Rows that lie elsewhere.
    struct Elsewhere(Vec<u8>);

    impl StoredRows for Elsewhere {
        fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
            Ok(self.0[range.start as usize..range.end as usize].to_vec())
        }
    }

    #[test]
    fn rows_that_are_stored_are_those_that_were_handed_out() {
        let table = table(50_005);
        let shares = ShareTable::of(&table, &SpillRoom::new(Some(1), None)).unwrap();
        let mut bytes = Vec::new();
        let mut take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        shares.each(&mut take).unwrap();
        let stored = ShareTable::stored(layout(), table.rows(), Box::new(Elsewhere(bytes)));
        assert!(stored.whole().unwrap().bytes() == table.bytes());
        let mut block = ShareBlock::default();
        for row in (0..table.rows()).step_by(97).chain([table.rows() - 1, 0]) {
            for field in 0..2 {
                assert_eq!(stored.get(row, field, &mut block).unwrap(), table.get(row, field));
            }
        }
        let nothing = ShareTable::stored(PayloadLayout::default(), 7, Box::new(Elsewhere(Vec::new())));
        assert_eq!((nothing.rows(), nothing.whole().unwrap().rows()), (7, 7));
        let mut full = stored;
        assert!(full.push(&[0; 19]).is_err());
    }

    /// Batches read field by field, as computations do, read every block once.
    #[test]
    fn batches_of_all_fields_read_what_is_on_disk_once() {
        let (table, room) = (table(200_000), SpillRoom::new(Some(1), None));
        let (shares, mut block) = (ShareTable::of(&table, &room).unwrap(), ShareBlock::default());
        block.go_over(10_000);
        for from in (0..200_000).step_by(10_000) {
            for field in [0, 1, 0, 1] {
                for row in from..from + 10_000 {
                    assert_eq!(shares.get(row, field, &mut block).unwrap(), table.get(row, field));
                }
            }
        }
        let (read, bytes) = (room.spilled().read, table.bytes().len() as u64);
        assert!((bytes / 2..=bytes).contains(&read), "{read} bytes were read of {bytes}");
    }

    #[test]
    fn own_values_lie_along_joined_rows() {
        let (table, blank) = (table(120_000), [9; 19]);
        // Every second row lies somewhere, in an order of its own.
        let lies = |at: u32| (at % 3 < 2).then_some((at / 3 * 2 + at % 3) % 60_000 * 7919 % 60_000 * 2);
        let mine: Vec<u32> = (0..90_000).map(|at| lies(at).unwrap_or(ABSENT)).collect();
        for memory in [None, Some(1)] {
            let room = SpillRoom::new(memory, None);
            let along = ShareTable::along(mine.clone(), &table, &blank, &room).unwrap();
            let along = along.whole().unwrap();
            assert_eq!(along.rows(), 90_000);
            for (at, row) in (0..).zip(&mine) {
                let expected = if *row == ABSENT { &blank[..] } else { table.row((*row).into()) };
                assert!(along.row(at) == expected, "joined row {at}");
            }
            let most = 2 * 90_000 * 23;
            assert!(room.spilled().read <= most && (room.spilled().read > 0) == memory.is_some());
        }
        assert!(ShareTable::along(vec![120_000], &table, &blank, &SpillRoom::new(None, None)).is_err());
    }
}

//! Columns along the spine, outside memory: two radix joins through the party's state.
//!
//! Rows lie in blocks by a hash of the identifier, and the spine has them in an order of its own. First the
//! position of each row is dealt to the row's block; then, block by block, each row's cells are dealt to the
//! part of the spine that its position is in. A computation reads one part after the other.

use super::{ABSENT, PARTS_HELD};
use crate::kept::KeptColumns;
use crate::memory::LayingMemory;
use base::{Error, in_order};
use data::{RowShape, RowStore, Rows};
use matching::MatchSpine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use store::{PARTITIONS, RUN_MEMORY, RecordSize, RunReader, RunState, RunWriter, RunWriters};

/// Bytes of two numbers before a row's cells.
const HEAD: usize = 2 * size_of::<u32>();
/// Bytes that a row of a block takes in memory besides its cells: its identifier, and its position.
const LOADED: usize = 64;
/// Rows that are dealt before somebody is told of them.
const TOLD_ROWS: u64 = 256;

/// One party's columns in the order of the spine.
pub(super) struct SpineParts {
    state: Arc<RunState>,
    columns: KeptColumns,
    /// Whether a later process may read them.
    kept: AtomicBool,
    reader: RunReader,
    shape: RowShape,
    /// The part of [`SpineParts::own`] that was read last: who asks, asks in order.
    asked: Mutex<Option<LoadedPart>>,
}

/// A part in memory.
pub(super) struct LoadedPart {
    /// The first row of the spine that it holds.
    first: u64,
    /// For each row of the part the own row among [`LoadedPart::rows`], or [`ABSENT`].
    places: Vec<u32>,
    /// Own rows, without their identifiers.
    pub rows: Rows,
    /// Their numbers among all rows of this party.
    own: Vec<u32>,
}

impl LoadedPart {
    pub fn holds(&self, row: u64) -> bool {
        row.checked_sub(self.first).is_some_and(|at| at < self.places.len() as u64)
    }

    /// The places of this row and those behind it.
    pub fn places_from(&self, row: u64) -> &[u32] {
        &self.places[(row - self.first) as usize..]
    }
}

impl SpineParts {
    /// Lays out own columns along a spine, for so many lanes that read them at once. Tells `dealt` how many
    /// rows have been dealt, in both joins.
    ///
    /// # Errors
    /// When a position is outside the spine, state cannot be read or written, or the memory does not hold
    /// the parts that lanes hold at once; or what `dealt` says.
    pub fn lay_out(
        rows: &RowStore,
        spine: MatchSpine,
        (lanes, memory): (u32, LayingMemory),
        dealt: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let (state, shape) =
            rows.spool().ok_or_else(|| Error::misuse("rows in memory are not laid out by parts"))?;
        let dealt_to = state.folder("positions");
        let mut tally = DealtRows { rows: 0, tell: dealt };
        let positions = deal_positions(rows, &spine, (&**state, &*dealt_to, memory.runs), &mut tally)?;
        let union = spine.rows;
        // Own places are dealt: what they take goes before the next writer takes as much.
        drop(spine);
        let width = HEAD + shape.width();
        let held = u64::from(lanes) * PARTS_HELD as u64;
        let (bits, parts) = shape_of(union, width, memory.parts / held);
        let size = RecordSize::Fixed(width as u32);
        if held * ((width as u64) << bits) > memory.parts_most {
            return Err(Error::input(format!(
                "{lanes} workers read {PARTS_HELD} parts each of the columns of {union} rows at a time, \
                 which are of {} MiB, and `memory` allows {} MiB in all: raise it, or set fewer `workers`",
                ((width as u64) << bits) >> 20,
                memory.parts_most >> 20,
            )));
        }
        let (sealed, folder) = (state.sealed().clone(), state.folder("columns"));
        // As many blocks at a time as fit, and no more than there are writers.
        let writing = memory.blocks / 2;
        let at_once = (writing / RUN_MEMORY).max(1);
        let writers = RunWriters::new(sealed, &folder, (parts, size), (writing / at_once).max(RUN_MEMORY));
        let blocks: Vec<(u64, u64)> = rows.blocks().collect();
        let bytes = |number: usize| (blocks[number].1 * (width + LOADED) as u64).max(writing / at_once);
        let deal = |number: usize| -> Result<u64, Error> {
            let (first, _) = blocks[number];
            let (block, dealt) = (rows.block(number)?, positions.partition(number as u32)?);
            let (mut writer, mut rows) = (writers.take()?, 0);
            let mut record = Vec::with_capacity(width);
            for place in dealt.sorted() {
                let [row, position] = numbers(place);
                record.clear();
                record.extend([position.to_be_bytes(), row.to_be_bytes()].as_flattened());
                block.append_cells(shape, (u64::from(row) - first) as usize, &mut record);
                writer.push(position >> bits, &record)?;
                rows += 1;
            }
            writers.give(writer);
            Ok(rows)
        };
        in_order(blocks.len(), (writing, &bytes), deal, |rows| tally.more(rows))?;
        let runs = writers.finish()?;
        drop(positions);
        state.remove(&dealt_to)?;
        let columns = KeptColumns::new(&folder, &runs, (union, bits));
        Self::open(state.clone(), shape.clone(), columns)
    }

    fn open(state: Arc<RunState>, shape: RowShape, columns: KeptColumns) -> Result<Self, Error> {
        let reader = RunReader::open(state.sealed().clone(), &columns.runs())?;
        let (kept, asked) = (AtomicBool::new(false), Mutex::default());
        Ok(Self { state, columns, kept, reader, shape, asked })
    }

    /// Columns that an earlier process laid out.
    pub fn reopened(rows: &RowStore, columns: &KeptColumns) -> Result<Self, Error> {
        let spool = rows.spool().ok_or_else(|| Error::misuse("rows in memory are not laid out by parts"))?;
        let parts = Self::open(spool.0.clone(), spool.1.clone(), columns.clone())?;
        parts.kept.store(true, Ordering::Relaxed);
        Ok(parts)
    }

    /// Where they lie; from now on they stay.
    pub fn keep(&self) -> KeptColumns {
        self.kept.store(true, Ordering::Relaxed);
        self.columns.clone()
    }

    /// For how many workers at once the memory does that lays columns out.
    pub fn lanes(columns: &KeptColumns, shape: &RowShape, memory: LayingMemory) -> u32 {
        let part = ((HEAD + shape.width()) as u64) << columns.bits;
        u32::try_from(memory.parts_most / (PARTS_HELD as u64 * part)).unwrap_or(u32::MAX).max(1)
    }

    pub fn union(&self) -> u64 {
        self.columns.union
    }

    /// Names of own columns, in a study that has a program of its own.
    pub fn names(&self) -> &[String] {
        if let RowShape::Program { names } = &self.shape { names } else { &[] }
    }

    /// The part that holds a row of the spine.
    ///
    /// # Errors
    /// When it cannot be read, or there is no such row.
    pub fn load(&self, row: u64) -> Result<LoadedPart, Error> {
        let KeptColumns { union, bits, .. } = self.columns;
        if row >= union {
            return Err(Error::misuse(format!("row {row} of a spine of {union} rows")));
        }
        let part = row >> bits;
        let first = part << bits;
        let mut loaded = LoadedPart {
            first,
            places: vec![ABSENT; (union - first).min(1 << bits) as usize],
            rows: self.shape.no_rows(),
            own: Vec::new(),
        };
        let lost = || Error::misuse("a row was dealt to another part than its own");
        for record in self.reader.partition(part as u32)?.sorted() {
            let [position, row] = numbers(record);
            let at = u64::from(position).checked_sub(first).ok_or_else(lost)?;
            *loaded.places.get_mut(at as usize).ok_or_else(lost)? = loaded.own.len() as u32;
            loaded.own.push(row);
            loaded.rows.push_cells(&self.shape, &record[HEAD..]).ok_or_else(lost)?;
        }
        Ok(loaded)
    }

    /// The own row at a position of the spine.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn own(&self, position: u64) -> Result<Option<u32>, Error> {
        if position >= self.columns.union {
            return Ok(None);
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let part = match asked.take() {
            Some(part) if part.holds(position) => part,
            _ => self.load(position)?,
        };
        let at = part.places_from(position).first().filter(|at| **at != ABSENT);
        let own = at.map(|at| part.own[*at as usize]);
        *asked = Some(part);
        Ok(own)
    }
}

impl Drop for SpineParts {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) {
            // What cannot be removed goes with the state.
            let _ = self.state.remove(&self.columns.folder);
        }
    }
}

/// The two numbers that a record begins with.
fn numbers(record: &[u8]) -> [u32; 2] {
    let [a, b, ..] = record.as_chunks::<4>().0 else { unreachable!("records have eight bytes at least") };
    [u32::from_be_bytes(*a), u32::from_be_bytes(*b)]
}

/// Rows that have been dealt, and who is told of them.
struct DealtRows<'a> {
    rows: u64,
    tell: &'a mut dyn FnMut(u64) -> Result<(), Error>,
}

impl DealtRows<'_> {
    fn one(&mut self) -> Result<(), Error> {
        self.rows += 1;
        if self.rows.is_multiple_of(TOLD_ROWS) { (self.tell)(self.rows) } else { Ok(()) }
    }

    fn more(&mut self, rows: u64) -> Result<(), Error> {
        self.rows += rows;
        (self.tell)(self.rows)
    }
}

/// Deals rows and their positions to the blocks of the rows.
fn deal_positions(
    rows: &RowStore,
    spine: &MatchSpine,
    (state, folder, memory): (&RunState, &str, u64),
    tally: &mut DealtRows<'_>,
) -> Result<RunReader, Error> {
    let firsts: Vec<u64> = rows.blocks().map(|(first, _)| first).collect();
    let shape = (firsts.len().max(1) as u32, RecordSize::Fixed(HEAD as u32));
    let mut writer = RunWriter::new(state.sealed().clone(), folder, shape, memory)?;
    spine.mine.each(|row, position| {
        if u64::from(position) >= spine.rows {
            return Err(Error::misuse("a position is off the spine"));
        }
        let block = firsts.partition_point(|first| *first <= row.into()) - 1;
        writer.push(block as u32, [row.to_be_bytes(), position.to_be_bytes()].as_flattened())?;
        tally.one()
    })?;
    Ok(RunReader::open(state.sealed().clone(), &writer.finish()?)?)
}

/// Bits of a row's number within its part, and how many parts a spine has: parts of about so many bytes.
fn shape_of(union: u64, width: usize, bytes: u64) -> (u32, u32) {
    let rows = union.max(1);
    let fits = (bytes / width as u64).max(1).ilog2();
    let bits = (0..u32::BITS).find(|bits| *bits >= fits && rows.div_ceil(1 << bits) <= PARTITIONS.into());
    let bits = bits.unwrap_or(u32::BITS - 1);
    (bits, rows.div_ceil(1 << bits) as u32)
}

#[cfg(test)]
mod tests {
    use super::super::{Aligned, RangeRows};
    use super::{PARTITIONS, shape_of};
    use crate::memory::MemoryShares;
    use crate::prepare::{Built, build};
    use crate::ranges::RowRanges;
    use base::PartyId;
    use data::{RecentBlocks, RowStore, SpoolRoom, read_rows};
    use matching::{MatchSpine, OwnPlaces};
    use program::ShardRows as _;
    use std::fmt::Write as _;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;
    use store::{RunState, StateKey, StateStore, StoreOptions};
    use study::Study;

    const LIFT: &str = include_str!("../../../../examples/lift.toml");
    /// So little memory that everything has many parts.
    const TIGHT: u64 = 16 << 10;

    fn tight() -> MemoryShares {
        MemoryShares::of(TIGHT, 0)
    }

    /// The same file by parts and in memory.
    fn both(folder: &Path, text: &str, study: &Study, me: PartyId) -> [RowStore; 2] {
        let path = folder.join("rows.csv");
        std::fs::write(&path, text).unwrap();
        let place = folder.join("state");
        let room = SpoolRoom::new(tight().reading, || {
            let store = StateStore::open(place.to_str().unwrap(), &StoreOptions::default())?;
            RunState::begin(store, &StateKey::fresh(), "somebody", Duration::MAX)
        });
        [Some(&room), None].map(|room| read_rows(&path, study, me, room).unwrap().0)
    }

    /// Every own column, range by range.
    fn columns(aligned: &Arc<Aligned>, built: &Built, me: PartyId, of: u32) -> Vec<Vec<u128>> {
        let own = (0..).zip(&built.program.columns).filter(|(_, c)| c.holder == program::Holder::Party(me));
        let own: Vec<u32> = own.map(|(i, _)| i).collect();
        assert!(own.len() > 1);
        let mut all = vec![Vec::new(); own.len()];
        let ranges = RowRanges::new(aligned.union(), of.into());
        for unit in 0..ranges.units() {
            let mut rows = RangeRows::new(aligned.clone(), built, me, ranges.range(unit)).unwrap();
            for (column, all) in own.iter().zip(&mut all) {
                let mut values = vec![0; rows.len() as usize];
                // In pieces that end within parts, and once more from the middle.
                let third = values.len() / 3;
                let (first, second) = values.split_at_mut(third);
                rows.read(*column, 0, first).unwrap();
                rows.read(*column, first.len() as u64, second).unwrap();
                rows.read(*column, 1, &mut [0; 3]).unwrap();
                all.extend(values);
            }
        }
        all
    }

    /// For each own column, in memory and by parts, range by range.
    fn check(text: &str, study: &Study, me: u8) {
        let folder = tempfile::tempdir().unwrap();
        let me = PartyId(me);
        let built = build(study, &program::VerifierPolicy::default()).unwrap();
        for lanes in [1, 3] {
            let [parts, whole] = both(folder.path(), text, study, me).map(Arc::new);
            assert!(parts.blocks().count() > 4 && whole.spool().is_none());
            // A position of its own for each row of either, by its identifier; a third of the spine is empty.
            let union = whole.len() + whole.len() / 2;
            let at = |rows: &RowStore, row: u64| {
                let (block, at) = rows.locate(row, &RecentBlocks::default()).unwrap();
                let name = String::from_utf8(block.identifiers().get(at, 0).to_vec()).unwrap();
                let number: u64 = name.rsplit(' ').next().unwrap().parse().unwrap();
                (number * 7919 % union) as u32
            };
            assert!(!union.is_multiple_of(7919));
            let mine = |rows: &RowStore| (0..rows.len()).map(|row| at(rows, row)).collect::<Vec<_>>();
            let spine = || MatchSpine { rows: union, mine: OwnPlaces::of(mine(&parts)) };
            let mut told = 0;
            let mut dealt = |rows| {
                told = rows;
                Ok(())
            };
            let laid_out = Aligned::by_parts(parts.clone(), spine(), (lanes, tight().laying), &mut dealt);
            let laid_out = Arc::new(laid_out.unwrap());
            assert_eq!(told, 2 * whole.len());
            let at_hand = Arc::new(Aligned::new(whole.clone(), &mine(&whole), union).unwrap());
            for position in 0..union + 2 {
                assert_eq!(laid_out.key(position).unwrap(), at_hand.key(position).unwrap());
            }
            assert_eq!(laid_out.union(), union);
            let places: Vec<u64> = (0..union + 2).rev().collect();
            let asked = || parts.spool().expect("it is spooled").0.sealed().store().traffic().requests;
            let before = asked();
            assert_eq!(laid_out.keys(&places).unwrap(), at_hand.keys(&places).unwrap());
            if lanes == 1 {
                // Each block once, and each part of the spine, with the ranges of its runs.
                let blocks = 2 * parts.blocks().count() as u64;
                assert!(asked() - before < blocks + 4 * union / 64, "{} requests", asked() - before);
            }
            assert!(RangeRows::new(laid_out.clone(), &built, me, 1..union + 1).is_err());
            // However the spine is cut, the columns are the same.
            let all = columns(&at_hand, &built, me, 1);
            for of in [1, 2, 7, 64] {
                for aligned in [&laid_out, &at_hand] {
                    assert!(columns(aligned, &built, me, of) == all, "{of} ranges");
                }
            }
        }
        let off = MatchSpine { rows: 2, mine: OwnPlaces::of(vec![2]) };
        let [parts, _] = both(folder.path(), text, study, me);
        let off = Aligned::by_parts(Arc::new(parts), off, (1, tight().laying), &mut |_| Ok(()));
        assert!(off.is_err(), "off the spine");
    }

    #[test]
    fn columns_by_parts_are_those_in_memory() {
        let study = Study::parse("study.toml", LIFT).unwrap();
        let mut text = "child_id,arm,injected\n".to_owned();
        for i in 0..900 {
            let arm = ["vaccine", "placebo"][i % 2];
            writeln!(text, "child {i},{arm},{}", 100 + i % 200).unwrap();
        }
        check(&text, &study, 0);
        let mut text = "child_id,onset,severity\n".to_owned();
        for i in 0..1800 {
            writeln!(text, "child {},{},paralytic", i % 900, 100 + i % 200).unwrap();
        }
        check(&text, &study, 1);
    }

    #[test]
    fn parts_fit_their_memory_and_the_runs() {
        assert_eq!(shape_of(0, 16, 1 << 20), (16, 1));
        assert_eq!(shape_of(1 << 20, 16, 1 << 20), (16, 16));
        assert_eq!(shape_of((1 << 20) + 1, 16, 1 << 20), (16, 17));
        // No more parts than runs have, whatever memory says.
        let (bits, parts) = shape_of(u64::from(u32::MAX), 60, 1000);
        assert!(parts <= PARTITIONS && u64::from(parts) << bits >= u64::from(u32::MAX));
    }
}

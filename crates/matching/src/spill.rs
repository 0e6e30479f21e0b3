//! Columns of fixed-size records that may be larger than memory: sorted by partitions, or first in, first
//! out.
//!
//! Records begin with uniform bytes (an element of the group, a keyed hash), so their leading bits deal them
//! evenly into partitions. A partition is a list of blocks; a full block stays in memory while there is
//! [`SpillRoom`] and goes to a file without a name otherwise. Sorting is one partition after the other: each
//! is read once and fits in memory.

mod deal;
mod distinct;
mod pages;
mod sealed;
mod sorted;
mod tally;

use base::Error;
pub(crate) use deal::SpillDeal;
pub(crate) use distinct::{QueueRecords, distinct};
use pages::{PagePool, PagedBytes};
pub(crate) use sealed::SealedFile;
pub use sorted::SortedRecords;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub(crate) use tally::{DiskTally, SpilledBytes};
use zeroize::Zeroize;

/// The least memory that a bounded room works with, in bytes; smaller bounds are taken as this one.
pub const MEMORY_MIN: u64 = 2 << 20;

/// Bytes of a partition where memory is not short: one that sorts within a cache.
const PARTITION_BYTES: u64 = 1 << 20;
/// Most partitions of a column.
const PARTITIONS: u64 = 1 << 12;
/// Bytes of a block, at most and at least.
const BLOCK_BYTES: [u64; 2] = [64 << 10, 4 << 10];
/// A bounded room is divided into this many parts: eight for full blocks of all columns, the others for the
/// open blocks of up to five columns that live at a time and for two partitions being read.
///
/// Blocks cannot be arbitrarily small, so neither can partitions: `m` bytes serve columns of up to
/// `(m / 16)^2 / 4096` bytes. At 36 bytes per row these are 7 million rows for 16 MiB and 119 million for 64
/// MiB; beyond that, the two partitions being read outgrow their part.
const PARTS: u64 = 16;

/// Of how many parts of a room's memory what is worked on has one, and full blocks.
const WORKING: u64 = 4;
const HELD: u64 = 2;

/// The least bytes of a room in which columns of so many rows lie as blocks and partitions were meant.
#[must_use]
pub fn least_room(rows: u64) -> u64 {
    // Two partitions that are read have a part of the room: `(room / 16)^2 = 4096 bytes`.
    let bytes = rows.saturating_mul(COLUMN_BYTES).saturating_mul(BLOCK_BYTES[1]);
    (PARTS * bytes.isqrt()).max(MEMORY_MIN)
}

/// The most rows whose columns a room of so many bytes holds so: the other way round.
#[must_use]
pub fn most_rows(room: u64) -> u64 {
    (room / PARTS).saturating_pow(2) / (COLUMN_BYTES * BLOCK_BYTES[1])
}

/// Rows of the widest column in so many bytes.
pub(crate) fn rows_of(bytes: u64) -> u64 {
    bytes.div_ceil(COLUMN_BYTES)
}

/// Bytes of a row in the widest column of a match.
const COLUMN_BYTES: u64 = 36;

/// How much memory columns may take, and where they go beyond it. Clones are the same room.
#[derive(Clone, Debug)]
pub struct SpillRoom(Arc<RoomBounds>);

#[derive(Debug)]
struct RoomBounds {
    memory: Option<u64>,
    /// Where full blocks lie.
    pages: Mutex<PagePool>,
    /// Of how many parts of the memory full blocks have one.
    held: u64,
    /// What files take, and where they are.
    files: (Arc<DiskTally>, PathBuf),
}

/// Bytes of memory for full blocks, which have one of so many parts; none of 0 parts.
fn blocks(memory: Option<u64>, held: u64) -> u64 {
    memory.map_or(u64::MAX, |memory| memory.checked_div(held).unwrap_or(0))
}

impl SpillRoom {
    /// Room for columns of `memory` bytes in all (none: no bound), with files in `scratch` (none: the
    /// system's folder for temporary files). Files have no name and vanish with the process.
    #[must_use]
    pub fn new(memory: Option<u64>, scratch: Option<&Path>) -> Self {
        let scratch = scratch.map_or_else(std::env::temp_dir, Path::to_path_buf);
        Self::of(memory, HELD, &(Arc::default(), scratch))
    }

    /// `held` is the part of it for full blocks; none where it is 0.
    fn of(memory: Option<u64>, held: u64, files: &(Arc<DiskTally>, PathBuf)) -> Self {
        let memory = memory.map(|bytes| bytes.max(MEMORY_MIN));
        let (pages, files) = (Mutex::new(PagePool::new(blocks(memory, held))), files.clone());
        Self(Arc::new(RoomBounds { memory, held, pages, files }))
    }

    /// A small room that has no memory for blocks that are full.
    #[cfg(test)]
    pub(crate) fn on_disk() -> Self {
        Self::of(Some(MEMORY_MIN), 0, &(Arc::default(), std::env::temp_dir()))
    }

    /// A room of its own, of a part of this one's memory, for what outlives the columns. What its files take
    /// is counted with this one's.
    pub(crate) fn share(&self, parts: u64) -> Self {
        Self::of(self.0.memory.map(|memory| memory / parts), self.0.held, &self.0.files)
    }

    /// The same of what is left where so many bytes are taken for something else.
    pub(crate) fn without(&self, bytes: u64) -> Self {
        Self::of(self.0.memory.map(|memory| memory.saturating_sub(bytes)), self.0.held, &self.0.files)
    }

    /// Bytes for what is worked on at a time, besides columns: a quarter of the memory.
    pub(crate) fn working(&self) -> u64 {
        Self::working_of(self.0.memory)
    }

    /// That of a room of so much memory.
    pub(crate) fn working_of(memory: Option<u64>) -> u64 {
        memory.map_or(u64::MAX, |memory| memory.max(MEMORY_MIN) / WORKING)
    }

    /// Bytes of full blocks that stay in memory.
    pub(crate) fn held(&self) -> u64 {
        blocks(self.0.memory, self.0.held)
    }

    /// What its files have taken so far.
    #[cfg(test)]
    pub(crate) fn spilled(&self) -> SpilledBytes {
        self.0.files.0.counted()
    }

    /// An empty file for what does not fit.
    pub(crate) fn file(&self) -> Result<SealedFile, Error> {
        let (tally, folder) = &self.0.files;
        SealedFile::create(folder, tally.clone()).map_err(|e| self.spilling(&e))
    }

    /// What to say when a file cannot be written.
    pub(crate) fn spilling(&self, error: &std::io::Error) -> Error {
        Error::io(format_args!("spilling to {}", self.0.files.1.display()), error)
    }

    /// Reads back what was written.
    pub(crate) fn read_back(
        &self,
        file: &SealedFile,
        bytes: &mut [u8],
        [offset, number]: [u64; 2],
    ) -> Result<(), Error> {
        let done = file.read(bytes, offset, number);
        done.map_err(|e| Error::io("reading back what was spilled", &e))
    }

    fn pages(&self) -> MutexGuard<'_, PagePool> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leading bits that number a partition, at least so many, and bytes of a block, for a column of `bytes`.
    fn shape(&self, bytes: u64, least: u32) -> (u32, u64) {
        let part = self.0.memory.map_or(u64::MAX, |m| m / PARTS);
        let partition = part.min(PARTITION_BYTES);
        let most = PARTITIONS.min(part / BLOCK_BYTES[1]).ilog2();
        let bits = bytes.div_ceil(partition).clamp(1, PARTITIONS).next_power_of_two().ilog2().min(most);
        let bits = bits.max(least);
        let block = (partition / PARTS).min(part >> bits).clamp(BLOCK_BYTES[1], BLOCK_BYTES[0]);
        (bits, block)
    }
}

/// A block that is full, or the last one of its list.
enum Block {
    Memory(PagedBytes),
    /// Offset and length in the file.
    Disk(u64, usize),
}

impl Block {
    fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Disk(_, len) => *len,
        }
    }
}

/// Where the blocks of one column are kept.
struct Blocks {
    room: SpillRoom,
    file: Option<SealedFile>,
    end: u64,
}

impl Blocks {
    fn new(room: &SpillRoom) -> Self {
        Self { room: room.clone(), file: None, end: 0 }
    }

    /// Keeps the content of `open` and leaves it empty.
    fn put(&mut self, open: &mut Vec<u8>) -> Result<Block, Error> {
        let len = open.len();
        if let Some(kept) = self.room.pages().put(open) {
            open.clear();
            return Ok(Block::Memory(kept));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.room.file()?),
        };
        // No offset is written twice, and as many numbers as bytes lie between two of them.
        file.write(open, self.end, self.end).map_err(|e| self.room.spilling(&e))?;
        open.clear();
        self.end += len as u64;
        Ok(Block::Disk(self.end - len as u64, len))
    }

    /// Appends a block's content to `into`; its room is free then.
    fn get(&self, block: &Block, into: &mut Vec<u8>) -> Result<(), Error> {
        self.peek(block, into)?;
        if let Block::Memory(kept) = block {
            self.room.pages().give(kept);
        }
        Ok(())
    }

    /// The same of a block that stays.
    fn peek(&self, block: &Block, into: &mut Vec<u8>) -> Result<(), Error> {
        match block {
            Block::Memory(kept) => {
                self.room.pages().read(kept, into);
                Ok(())
            }
            Block::Disk(offset, len) => self.read(*offset, *len, into),
        }
    }

    /// Appends `len` bytes of the file to `into`.
    fn read(&self, offset: u64, len: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let start = into.len();
        into.resize(start + len, 0);
        let file = self.file.as_ref().expect("a block on disk lies in the file");
        self.room.read_back(file, &mut into[start..], [offset, offset])
    }
}

/// A set of records of `B` bytes, at least eight, in no order; it is read in ascending order.
pub struct SpillColumn<const B: usize> {
    blocks: Blocks,
    bits: u32,
    block: usize,
    open: Vec<Vec<u8>>,
    full: Vec<Vec<Block>>,
    len: u64,
}

impl<const B: usize> SpillColumn<B> {
    /// An empty column for about `expected` records; what was expected takes no memory before it comes.
    #[must_use]
    pub fn new(room: &SpillRoom, expected: u64) -> Self {
        Self::dealt(room, expected, 0)
    }

    /// The same for records that are read part by part, as `bits` leading bits deal them.
    #[must_use]
    pub fn dealt(room: &SpillRoom, expected: u64, bits: u32) -> Self {
        let (bits, block) = room.shape(expected.saturating_mul(B as u64), bits);
        let partitions = 1 << bits;
        Self {
            blocks: Blocks::new(room),
            bits,
            block: (block as usize / B).max(1) * B,
            open: vec![Vec::new(); partitions],
            full: (0..partitions).map(|_| Vec::new()).collect(),
            len: 0,
        }
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many records begin with each number of `bits` bits, at most those it was made for.
    #[must_use]
    pub fn part_lens(&self, bits: u32) -> Vec<u64> {
        let bytes = |at: usize| self.full[at].iter().map(Block::len).sum::<usize>() + self.open[at].len();
        let part = |part| self.span(part, bits).map(bytes).sum::<usize>() / B;
        (0..1 << bits).map(|at| part(at) as u64).collect()
    }

    /// The partitions whose records begin with `part`, a number of `bits` bits.
    fn span(&self, part: u32, bits: u32) -> Range<usize> {
        let (part, finer) = (part as usize, self.bits - bits);
        part << finer..(part + 1) << finer
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When it has to go to disk and cannot.
    pub fn push(&mut self, record: &[u8; B]) -> Result<(), Error> {
        let partition = leading(record, self.bits) as usize;
        let open = &mut self.open[partition];
        if open.capacity() < self.block {
            open.reserve_exact(self.block - open.len());
        }
        open.extend_from_slice(record);
        self.len += 1;
        if open.len() == self.block {
            self.full[partition].push(self.blocks.put(open)?);
        }
        Ok(())
    }

    /// Whether no partition holds far more than its share, as among records that begin with hashes or with
    /// products of a secret key. Who has records of somebody else asks before reading them, since a partition
    /// is read whole. Twice the share is allowed: what several parties have is there once for each.
    pub(crate) fn is_spread(&self) -> bool {
        let most = most_of(2 * self.len.div_ceil(1 << self.bits));
        self.part_lens(self.bits).into_iter().all(|len| len <= most)
    }

    /// The records in ascending order.
    #[must_use]
    pub fn sorted(self) -> SortedRecords<B> {
        SortedRecords::of_column(self)
    }

    /// Appends the records of a partition to `into`, in no order; they are gone.
    fn take(&mut self, partition: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let (full, mut open) =
            (std::mem::take(&mut self.full[partition]), std::mem::take(&mut self.open[partition]));
        into.reserve_exact(full.iter().map(Block::len).sum::<usize>() + open.len());
        for block in full {
            self.blocks.get(&block, into)?;
        }
        into.append(&mut open);
        Ok(())
    }
}

/// Blocks that nobody read give their room back.
impl<const B: usize> Drop for SpillColumn<B> {
    fn drop(&mut self) {
        give_back(&self.blocks.room, self.full.iter().flatten());
    }
}

fn give_back<'b>(room: &SpillRoom, blocks: impl Iterator<Item = &'b Block>) {
    let mut pages = room.pages();
    for block in blocks {
        if let Block::Memory(kept) = block {
            pages.give(kept);
        }
    }
}

/// The most uniform records that a partition holds whose share is so many: more have a probability below
/// `2^-70`.
#[must_use]
pub(crate) fn most_of(share: u64) -> u64 {
    // The root is rounded up.
    share + 10 * ((share.max(1) - 1).isqrt() + 1) + 64
}

/// The first `bits` bits of a record, at most 32.
#[must_use]
pub fn leading(record: &[u8], bits: u32) -> u32 {
    let first = u32::from_be_bytes(*record.first_chunk().expect("a record has eight bytes"));
    first.checked_shr(32 - bits).unwrap_or(0)
}

/// Bytes that leave in the order in which they came.
pub struct SpillQueue {
    blocks: Blocks,
    full: VecDeque<Block>,
    open: Vec<u8>,
    block: usize,
}

impl SpillQueue {
    /// An empty queue that hands out `block` bytes at a time.
    #[must_use]
    pub fn new(room: &SpillRoom, block: usize) -> Self {
        Self { blocks: Blocks::new(room), full: VecDeque::new(), open: Vec::new(), block }
    }

    /// Appends.
    ///
    /// # Errors
    /// As [`SpillColumn::push`].
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.block - self.open.len()));
            if self.open.capacity() < self.block {
                self.open.reserve_exact(self.block - self.open.len());
            }
            self.open.extend_from_slice(now);
            if self.open.len() == self.block {
                self.full.push_back(self.blocks.put(&mut self.open)?);
            }
            bytes = later;
        }
        Ok(())
    }

    /// Hands out all that was pushed, block by block; it stays.
    ///
    /// # Errors
    /// When it cannot be read back; or what `take` says.
    pub fn each_block(&self, mut take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut read = Vec::new();
        for block in &self.full {
            read.clear();
            self.blocks.peek(block, &mut read)?;
            take(&read)?;
        }
        take(&self.open)
    }

    /// Replaces `into` by block `index`, the last one where there are no more; it stays.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub(crate) fn block(&self, index: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        match self.full.get(index) {
            Some(block) => self.blocks.peek(block, into),
            None => {
                into.extend_from_slice(&self.open);
                Ok(())
            }
        }
    }

    /// Bytes that are in it.
    pub(crate) fn bytes(&self) -> u64 {
        (self.full.iter().map(Block::len).sum::<usize>() + self.open.len()) as u64
    }

    /// Replaces `into` by the next block: all of its bytes, but for the last one; nothing at the end.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn pop(&mut self, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        match self.full.pop_front() {
            Some(block) => return self.blocks.get(&block, into),
            None => into.append(&mut self.open),
        }
        Ok(())
    }
}

/// What nobody read is wiped.
impl Drop for SpillQueue {
    fn drop(&mut self) {
        give_back(&self.blocks.room, self.full.iter());
        self.open.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    /// As many pseudorandom records.
    fn records<const B: usize>(n: usize) -> Vec<[u8; B]> {
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        (0..n).map(|_| rng.bytes()).collect()
    }

    fn drained<const B: usize>(column: SpillColumn<B>) -> Vec<[u8; B]> {
        let (mut sorted, mut all) = (column.sorted(), Vec::new());
        while let Some(record) = sorted.pop().unwrap() {
            all.push(record);
        }
        all
    }

    fn check<const B: usize>(room: &SpillRoom, n: usize) -> bool {
        let mut all: Vec<[u8; B]> = records(n);
        let mut column = SpillColumn::new(room, n as u64);
        all.iter().for_each(|record| column.push(record).unwrap());
        assert_eq!(column.len(), n as u64);
        let spilled = column.blocks.end > 0;
        all.sort_unstable();
        assert!(drained(column) == all);
        spilled
    }

    #[test]
    fn columns_come_out_sorted_from_memory_and_from_disk() {
        let (wide, narrow) = (SpillRoom::new(None, None), SpillRoom::new(Some(1), None));
        for n in [0, 1, 100, 20_000] {
            assert!(!check::<36>(&wide, n) && !check::<12>(&narrow, n));
        }
        assert!(!check::<32>(&wide, 100_000));
        // 3.2 MB against room for 1 MiB of full blocks.
        assert!(check::<32>(&narrow, 100_000));
        assert_eq!(narrow.pages().left(), MEMORY_MIN / 2, "room was lost");
    }

    #[test]
    fn blocks_and_partitions_fit_their_parts() {
        for memory in [MEMORY_MIN, 16 << 20, 64 << 20, 256 << 20] {
            let (room, part) = (SpillRoom::new(Some(memory), None), memory / PARTS);
            for bytes in [1, 1 << 20, part * part / BLOCK_BYTES[1]] {
                let (bits, block) = room.shape(bytes, 0);
                assert!(block << bits <= part && bytes >> bits <= part, "{memory} {bytes}");
            }
        }
    }

    #[test]
    fn the_least_room_holds_its_rows() {
        for rows in [0, 7_000_000, 119_000_000, u64::from(u32::MAX)] {
            let part = least_room(rows) / PARTS;
            let (bits, _) = SpillRoom::new(Some(least_room(rows)), None).shape(COLUMN_BYTES * rows, 0);
            assert!(bits as u64 <= 12 && (COLUMN_BYTES * rows) >> bits <= 2 * part, "{rows}");
            let most = most_rows(least_room(rows));
            assert!(most <= rows.max(120_000) && rows - rows.min(most) <= rows / 1000 + 1, "{rows}: {most}");
        }
        assert!(least_room(7_000_000) <= 17 << 20 && least_room(119_000_000) <= 65 << 20);
    }

    #[test]
    fn a_column_is_not_made_as_large_as_somebody_says() {
        for (room, partitions) in
            [(SpillRoom::new(None, None), PARTITIONS), (SpillRoom::new(Some(1), None), 32)]
        {
            let mut column = SpillColumn::<36>::new(&room, u64::MAX);
            assert_eq!(column.open.len() as u64, partitions);
            column.push(&[7; 36]).unwrap();
            assert!(column.open.iter().map(Vec::capacity).sum::<usize>() <= BLOCK_BYTES[0] as usize);
            assert_eq!(drained(column), [[7; 36]]);
        }
    }

    #[test]
    fn a_part_is_entered_in_any_order() {
        for (room, bits) in [(SpillRoom::new(None, None), 0), (SpillRoom::new(Some(1), None), 3)] {
            let mut all: Vec<[u8; 32]> = records(50_000);
            let mut column = SpillColumn::dealt(&room, 10, bits);
            all.iter().for_each(|record| column.push(record).unwrap());
            all.sort_unstable();
            let (lens, mut sorted) = (column.part_lens(bits), column.sorted());
            for part in (0..1u32 << bits).rev() {
                let came: Vec<_> = {
                    sorted.enter(part, bits);
                    std::iter::from_fn(|| sorted.pop().unwrap()).collect()
                };
                let wanted = all.iter().filter(|record| leading(&record[..], bits) == part);
                assert!(came.iter().eq(wanted) && came.len() as u64 == lens[part as usize]);
            }
        }
    }

    #[test]
    fn a_queue_keeps_its_order_and_room_comes_back() {
        let room = SpillRoom::new(Some(1), None);
        let sent: Vec<u8> = records::<32>(600_000).concat();
        let mut queue = SpillQueue::new(&room, 1 << 17);
        sent.chunks(100_001).for_each(|piece| queue.push(piece).unwrap());
        assert!(queue.blocks.end > 0, "nothing was spilled");
        let (mut block, mut came) = (Vec::new(), Vec::new());
        loop {
            queue.pop(&mut block).unwrap();
            came.extend_from_slice(&block);
            if block.len() < 1 << 17 {
                break;
            }
        }
        assert!(came == sent);
        queue.push(&sent).unwrap();
        drop(queue);
        assert_eq!(room.pages().left(), MEMORY_MIN / 2);
    }

    /// Records of a peer are not read before it is known that they fill no partition.
    #[test]
    fn a_column_that_fills_one_partition_is_not_read() {
        let room = SpillRoom::new(Some(1), None);
        let placed = |first: [u8; 4], row: u32| {
            let mut record = [7; 36];
            record[..4].copy_from_slice(&first);
            record[32..].copy_from_slice(&row.to_be_bytes());
            record
        };
        let taken = |first: fn(u32) -> u32| {
            let mut column = SpillColumn::<36>::new(&room, 200_000);
            (0..200_000u32).for_each(|row| column.push(&placed(first(row).to_be_bytes(), row)).unwrap());
            distinct(column, (&room, 36, 100)).unwrap().is_some()
        };
        assert!(!taken(|_| 7), "one element");
        assert!(!taken(|row| row >> 12), "elements that begin alike");
        assert!(taken(|row| row.wrapping_mul(0x9E37_79B9)), "elements that are spread");
        assert!(taken(|row| row.wrapping_mul(0x9E37_79B9) & !(1 << 24)), "every other partition");
    }

    #[test]
    fn a_scratch_that_cannot_be_written_is_named() {
        let room = SpillRoom::new(Some(1), Some(Path::new("/nowhere/at/all")));
        let mut queue = SpillQueue::new(&room, 1 << 20);
        let error = (0..20).find_map(|_| queue.push(&vec![0; 1 << 20]).err()).expect("it has to spill");
        assert!(error.to_string().starts_with("spilling to /nowhere/at/all: "), "{error}");
    }
}

//! Runs: the external radix join. Whoever has records deals them to partitions, in one pass and a bounded
//! memory; whoever works on a partition reads its part of every run, sorted.
//!
//! A run is one sealed object. It is what fitted into the writer's memory, sorted by partition and then by
//! bytes, with the offsets of the partitions behind. There is no object for each writer and partition, and no
//! pass that merges: each byte is written once, and read once by the one that works on its partition.

mod read;

pub(crate) use read::RunFooter;
pub use read::{PartitionRecords, RunReader};

use crate::{ChunkSize, ObjectId, PART_BYTES, SealedStore, StoreError};
use base::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Partitions of a run.
pub const PARTITIONS: u32 = 4_096;
/// Runs of one set of records.
pub const RUNS: u64 = 1 << 16;
/// Bytes of memory that a writer needs at least.
pub const RUN_MEMORY: u64 = 24 << 20;
/// Bytes of memory beyond which a writer gains nothing, and counts in wider numbers.
const MEMORY_MAX: u64 = 4 << 30;
/// What of a writer's memory goes to parts on their way and what is around them.
const UPLOAD: u64 = 2 * PART_BYTES as u64 + (1 << 20);
/// Bytes of an entry of the index.
const ENTRY: usize = size_of::<(u32, u32)>();

/// The last bytes of what a run holds: magic, records (8), partitions (4), bytes of a record or 0 (4).
const TRAILER: usize = 24;
const MAGIC: &[u8; 8] = b"tacitrun";

/// How long records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSize {
    /// All as many bytes, at least one.
    Fixed(u32),
    /// Each its own number of bytes, at most 1 MiB; it takes four more.
    Prefixed,
}

/// Bytes of the longest record.
const RECORD_BYTES: usize = 1 << 20;

/// A run that was written: what to note down of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunObject {
    /// Its name in the store.
    pub name: String,
    /// What tells it from any other object of this name.
    pub id: ObjectId,
    /// Records in it.
    pub records: u64,
}

/// Deals records to partitions and writes them as runs.
pub struct RunWriter {
    sealed: SealedStore,
    folder: String,
    partitions: u32,
    size: RecordSize,
    arena: Vec<u8>,
    /// Partition and place in the arena.
    index: Vec<(u32, u32)>,
    /// How many runs there are, of all who write to this folder.
    numbers: Arc<AtomicU64>,
    runs: Vec<RunObject>,
}

/// Writers of the same partitions, as many as deal records at a time.
pub struct RunWriters {
    sealed: SealedStore,
    folder: String,
    shape: (u32, RecordSize),
    memory: u64,
    numbers: Arc<AtomicU64>,
    /// Those that nobody has.
    idle: Mutex<Vec<RunWriter>>,
}

impl RunWriters {
    /// As [`RunWriter::new`]; each writer takes `memory` bytes.
    #[must_use]
    pub fn new(sealed: SealedStore, folder: &str, shape: (u32, RecordSize), memory: u64) -> Self {
        let (numbers, idle) = Default::default();
        Self { sealed, folder: folder.to_owned(), shape, memory, numbers, idle }
    }

    /// One that nobody else has.
    ///
    /// # Errors
    /// As [`RunWriter::new`].
    pub fn take(&self) -> Result<RunWriter, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let new = || RunWriter::new(self.sealed.clone(), &self.folder, self.shape, self.memory);
        match idle {
            Some(writer) => Ok(writer),
            None => Ok(RunWriter { numbers: self.numbers.clone(), ..new()? }),
        }
    }

    /// Takes one back, for the next who needs one.
    pub fn give(&self, writer: RunWriter) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(writer);
    }

    /// Writes what is left; all runs, in the order of their names.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<Vec<RunObject>, StoreError> {
        let mut runs = Vec::new();
        for writer in self.idle.into_inner().unwrap_or_else(PoisonError::into_inner) {
            runs.append(&mut writer.finish()?);
        }
        runs.sort_unstable_by(|a: &RunObject, b| a.name.cmp(&b.name));
        Ok(runs)
    }
}

impl RunWriter {
    /// A writer of runs `FOLDER/00000000`, `.._00000001` and so on. It takes `memory` bytes at most, parts on
    /// their way to the store included.
    ///
    /// # Errors
    /// When memory is less than [`RUN_MEMORY`], there are no partitions or more than [`PARTITIONS`], or
    /// records of no bytes or too many.
    pub fn new(
        sealed: SealedStore,
        folder: &str,
        (partitions, size): (u32, RecordSize),
        memory: u64,
    ) -> Result<Self, StoreError> {
        if memory < RUN_MEMORY {
            let text = format!("runs need {} MiB of memory, and {memory} bytes are given", RUN_MEMORY >> 20);
            return Err(Error::input(text).into());
        }
        if partitions == 0 || partitions > PARTITIONS {
            return Err(Error::limit("PARTITIONS", partitions.into(), PARTITIONS.into()).into());
        }
        // A record of each partition and the index's entry for it, or a quarter where lengths are not known.
        let room = (memory.min(MEMORY_MAX) - UPLOAD) as usize;
        let (arena, index) = match size {
            RecordSize::Fixed(len) if len == 0 || len as usize > RECORD_BYTES => {
                return Err(Error::limit("RECORD_BYTES", len.into(), RECORD_BYTES as u64).into());
            }
            RecordSize::Fixed(len) => {
                let records = room / (len as usize + ENTRY);
                (records * len as usize, records)
            }
            RecordSize::Prefixed => (room / 4 * 3, room / 4 / ENTRY),
        };
        let (arena, index) = (reserved(arena)?, reserved(index)?);
        let (folder, (numbers, runs)) = (folder.to_owned(), Default::default());
        Ok(Self { sealed, folder, partitions, size, arena, index, numbers, runs })
    }

    /// Adds a record to a partition.
    ///
    /// # Errors
    /// When it has another length, or a full run cannot be written.
    ///
    /// # Panics
    /// When there is no such partition.
    pub fn push(&mut self, partition: u32, record: &[u8]) -> Result<(), StoreError> {
        assert!(partition < self.partitions, "partition {partition} of {}", self.partitions);
        let prefix = match self.size {
            RecordSize::Fixed(len) if record.len() != len as usize => {
                let text = format!("a record of {} bytes among records of {len}", record.len());
                return Err(Error::misuse(text).into());
            }
            RecordSize::Fixed(_) => &[][..],
            RecordSize::Prefixed if record.len() > RECORD_BYTES => {
                return Err(Error::limit("RECORD_BYTES", record.len() as u64, RECORD_BYTES as u64).into());
            }
            RecordSize::Prefixed => &(record.len() as u32).to_le_bytes(),
        };
        let after = self.arena.len() + prefix.len() + record.len();
        if after > self.arena.capacity() || self.index.len() == self.index.capacity() {
            self.flush()?;
        }
        self.index.push((partition, self.arena.len() as u32));
        self.arena.extend_from_slice(prefix);
        self.arena.extend_from_slice(record);
        Ok(())
    }

    /// Writes what is left; all runs.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<Vec<RunObject>, StoreError> {
        if !self.index.is_empty() {
            self.flush()?;
        }
        Ok(self.runs)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        if number >= RUNS {
            return Err(Error::limit("RUNS", number + 1, RUNS).into());
        }
        let (size, arena) = (self.size, &self.arena);
        self.index.sort_unstable_by(|a, b| {
            let text = |at: u32| record(size, &arena[at as usize..]).map_or(&[][..], |(text, _)| text);
            a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1)))
        });
        let name = format!("{}/{number:08}", self.folder);
        // Readers take a partition: they read half a chunk in vain at each of its ends.
        let mut writer = self.sealed.writer(&name, ChunkSize::Small)?;
        let mut offsets = Vec::with_capacity(self.partitions as usize + 1);
        for (partition, at) in &self.index {
            while offsets.len() <= *partition as usize {
                offsets.push(writer.len());
            }
            let (_, whole) = record(size, &arena[*at as usize..]).expect("the index is of records");
            writer.write(whole)?;
        }
        offsets.resize(self.partitions as usize + 1, writer.len());
        for offset in offsets {
            writer.write(&offset.to_le_bytes())?;
        }
        let records = self.index.len() as u64;
        writer.write(&trailer(records, self.partitions, size))?;
        let id = writer.finish()?;
        self.runs.push(RunObject { name, id, records });
        self.arena.clear();
        self.index.clear();
        Ok(())
    }
}

/// Room for so many items: memory that the system does not give is an error, not an abort.
fn reserved<T>(items: usize) -> Result<Vec<T>, Error> {
    let mut room = Vec::new();
    room.try_reserve_exact(items).map_err(|_| {
        let bytes = items * size_of::<T>();
        Error::input(format!(
            "the system gives no {} MiB of memory for rows on their way to `state`: free some, or lower \
             `memory`",
            bytes >> 20
        ))
    })?;
    Ok(room)
}

pub(crate) fn trailer(records: u64, partitions: u32, size: RecordSize) -> [u8; TRAILER] {
    let mut trailer = [0; TRAILER];
    trailer[..8].copy_from_slice(MAGIC);
    trailer[8..16].copy_from_slice(&records.to_le_bytes());
    trailer[16..20].copy_from_slice(&partitions.to_le_bytes());
    let len = if let RecordSize::Fixed(len) = size { len } else { 0 };
    trailer[20..].copy_from_slice(&len.to_le_bytes());
    trailer
}

/// The first record of these bytes, and it with its length in front; none where there is no whole one.
fn record(size: RecordSize, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, len) = match size {
        RecordSize::Fixed(len) => (0, len as usize),
        RecordSize::Prefixed => (4, u32::from_le_bytes(*bytes.first_chunk()?) as usize),
    };
    let whole = bytes.get(..before + len)?;
    Some((&whole[before..], whole))
}

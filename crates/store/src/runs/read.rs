//! Reading one partition of all runs.

use super::{MAGIC, PARTITIONS, RUNS, RecordSize, RunObject, TRAILER, record};
use crate::{OBJECT_BYTES, PART_BYTES, SealedReader, SealedStore, StoreError};
use base::Error;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A set of runs of the same partitions. It keeps eight bytes for each partition of each run.
pub struct RunReader {
    sealed: SealedStore,
    runs: Vec<(SealedReader, RunFooter)>,
}

/// What stands behind the records of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunFooter {
    records: u64,
    size: RecordSize,
    /// Where each partition begins, and where the last one ends.
    offsets: Vec<u64>,
}

impl RunFooter {
    /// What the last bytes say: how many bytes a footer has, its trailer included.
    pub(crate) fn len(trailer: &[u8]) -> Option<u64> {
        let (magic, numbers) = trailer.split_at_checked(8)?;
        let partitions = u32::from_le_bytes(*numbers.get(8..)?.first_chunk()?);
        let right = magic == MAGIC && numbers.len() == TRAILER - 8 && (1..=PARTITIONS).contains(&partitions);
        right.then_some(8 * (u64::from(partitions) + 1) + TRAILER as u64)
    }

    /// Reads a footer behind `body` bytes of records.
    pub(crate) fn from_bytes(bytes: &[u8], body: u64) -> Option<Self> {
        let (offsets, trailer) = bytes.split_at_checked(bytes.len().checked_sub(TRAILER)?)?;
        if Self::len(trailer)? != bytes.len() as u64 {
            return None;
        }
        let records = u64::from_le_bytes(*trailer[8..].first_chunk()?);
        let size = match u32::from_le_bytes(*trailer[20..].first_chunk()?) {
            0 => RecordSize::Prefixed,
            len => RecordSize::Fixed(len),
        };
        let offsets = offsets.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let offsets: Vec<u64> = offsets.collect();
        let whole = |at: &u64| match size {
            RecordSize::Fixed(len) => at.is_multiple_of(u64::from(len)),
            RecordSize::Prefixed => true,
        };
        let counted = match size {
            RecordSize::Fixed(len) => records.checked_mul(u64::from(len)) == Some(body),
            RecordSize::Prefixed => records <= body / 4,
        };
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&body);
        let right = ends && counted && offsets.is_sorted() && offsets.iter().all(whole);
        right.then_some(Self { records, size, offsets })
    }
}

impl RunReader {
    /// Opens runs as their writers noted them down, and reads their footers.
    ///
    /// # Errors
    /// When one is missing, another object than was noted down, or damaged; they are not of the same
    /// partitions and kind of records; or the store fails.
    pub fn open(sealed: SealedStore, runs: &[RunObject]) -> Result<Self, StoreError> {
        if runs.len() as u64 > RUNS {
            return Err(Error::limit("RUNS", runs.len() as u64, RUNS).into());
        }
        let mut opened: Vec<(SealedReader, RunFooter)> = Vec::new();
        for run in runs {
            let damaged = |why| StoreError::Damaged { place: sealed.store().place(&run.name), why };
            let reader = sealed.reader(&run.name)?;
            if reader.id() != run.id {
                return Err(damaged("it is another object than was written, of the same name"));
            }
            let footer = footer(&reader)?.ok_or_else(|| damaged("its footer is none"))?;
            if footer.records != run.records {
                return Err(damaged("it holds another number of records than were written"));
            }
            let shape = |footer: &RunFooter| (footer.offsets.len(), footer.size);
            if opened.first().is_some_and(|(_, first)| shape(first) != shape(&footer)) {
                return Err(damaged("its partitions or records are other ones than those of the first run"));
            }
            opened.push((reader, footer));
        }
        Ok(Self { sealed, runs: opened })
    }

    /// Bytes of the records of a partition; none where there is no such partition.
    #[must_use]
    pub fn partition_bytes(&self, partition: u32) -> u64 {
        let of = |(_, footer): &(SealedReader, RunFooter)| {
            let [start, end] = *footer.offsets.get(partition as usize..)?.first_chunk()?;
            Some(end - start)
        };
        self.runs.iter().filter_map(of).sum()
    }

    /// Reads a partition into memory: its bytes, and 64 KiB for each run while they are read.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; when there is no such partition or the store fails.
    pub fn partition(&self, partition: u32) -> Result<PartitionRecords, StoreError> {
        // Pieces of at most a part, each with the number of the slice that it belongs to.
        let (mut wanted, mut slices) = (Vec::new(), Vec::new());
        for (reader, RunFooter { offsets, .. }) in &self.runs {
            let Some(&[start, end]) = offsets.get(partition as usize..).and_then(|rest| rest.first_chunk())
            else {
                let text = format!("partition {partition} of {}", offsets.len() - 1);
                return Err(Error::misuse(text).into());
            };
            let pieces = (start..end).step_by(PART_BYTES);
            wanted.extend(pieces.map(|at| (slices.len(), reader, at..end.min(at + PART_BYTES as u64))));
            slices.extend((start < end).then(|| Vec::with_capacity((end - start) as usize)));
        }
        let size = self.runs.first().map_or(RecordSize::Prefixed, |(_, footer)| footer.size);
        let mut read = PartitionRecords { size, slices };
        // As many at a time as come in one go, so that what is sealed is in memory for these alone.
        for some in wanted.chunks(8) {
            let mut parts = Vec::new();
            let mut sealed = Vec::new();
            for (slice, reader, range) in some {
                let part = reader.part(range.clone())?;
                sealed.push((*slice, reader, part));
            }
            parts.extend(sealed.iter().map(|(.., part)| part.part.clone()));
            for ((slice, reader, part), bytes) in sealed.iter().zip(self.sealed.store().get_parts(parts)?) {
                read.slices[*slice].append(&mut reader.open(part, &bytes)?);
            }
        }
        for slice in &read.slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                let (_, whole) = record(size, rest).ok_or_else(|| {
                    let place = self.sealed.store().url().to_owned();
                    StoreError::Damaged { place, why: "a record of a run is longer than its partition" }
                })?;
                rest = &rest[whole.len()..];
            }
        }
        Ok(read)
    }
}

/// The footer of a run; none where there is none.
fn footer(reader: &SealedReader) -> Result<Option<RunFooter>, StoreError> {
    let len = reader.len();
    // One read for most: the last bytes with a guess of the offsets before them.
    let guess = len.min(8 * 1_025 + TRAILER as u64);
    let tail = reader.read(len - guess..len)?;
    let trailer = tail.get(tail.len().saturating_sub(TRAILER)..).unwrap_or_default();
    let Some(footer) = RunFooter::len(trailer).filter(|footer| *footer <= len && *footer <= OBJECT_BYTES)
    else {
        return Ok(None);
    };
    let bytes = match footer <= guess {
        true => tail[(guess - footer) as usize..].to_vec(),
        false => reader.read(len - footer..len)?,
    };
    Ok(RunFooter::from_bytes(&bytes, len - footer))
}

/// The records of one partition, in memory.
pub struct PartitionRecords {
    size: RecordSize,
    /// Of each run, sorted.
    slices: Vec<Vec<u8>>,
}

impl PartitionRecords {
    /// All records in ascending order of their bytes.
    pub fn sorted(&self) -> impl Iterator<Item = &[u8]> {
        let next = move |rest| record(self.size, rest).map(|(text, whole)| (text, &rest[whole.len()..]));
        let mut rests: Vec<&[u8]> = self.slices.iter().map(Vec::as_slice).collect();
        let mut heads = BinaryHeap::with_capacity(rests.len());
        for (slice, rest) in rests.iter_mut().enumerate() {
            if let Some((text, after)) = next(rest) {
                *rest = after;
                heads.push(Reverse((text, slice)));
            }
        }
        std::iter::from_fn(move || {
            let Reverse((text, slice)) = heads.pop()?;
            if let Some((text, after)) = next(rests[slice]) {
                rests[slice] = after;
                heads.push(Reverse((text, slice)));
            }
            Some(text)
        })
    }
}

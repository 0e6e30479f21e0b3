//! Records in ascending order, of a column of this process or of runs that lie in a party's state.

use super::SpillColumn;
use base::Error;
use std::ops::Range;
use store::RunReader;

/// Records that are read in ascending order, one partition in memory at a time.
pub struct SortedRecords<const B: usize> {
    parts: RecordParts<B>,
    next: usize,
    end: usize,
    current: Vec<u8>,
    at: usize,
}

/// Where they lie, dealt by leading bits.
enum RecordParts<const B: usize> {
    /// Each is handed out once.
    Column(SpillColumn<B>),
    /// They stay, and are dealt by so many bits.
    Runs(RunReader, u32),
}

impl<const B: usize> RecordParts<B> {
    /// By how many bits they are dealt.
    fn bits(&self) -> u32 {
        match self {
            Self::Column(column) => column.bits,
            Self::Runs(_, bits) => *bits,
        }
    }

    /// The partitions whose records begin with `part`, a number of `bits` bits.
    fn span(&self, part: u32, bits: u32) -> Range<usize> {
        let (part, finer) = (part as usize, self.bits() - bits);
        part << finer..(part + 1) << finer
    }
}

impl<const B: usize> SortedRecords<B> {
    pub(super) fn of_column(column: SpillColumn<B>) -> Self {
        Self::of(RecordParts::Column(column))
    }

    /// Those of runs of a party's state, whose partitions are what `bits` leading bits deal.
    pub(crate) fn of_runs(runs: RunReader, bits: u32) -> Self {
        Self::of(RecordParts::Runs(runs, bits))
    }

    fn of(parts: RecordParts<B>) -> Self {
        let end = 1 << parts.bits();
        Self { parts, next: 0, end, current: Vec::new(), at: 0 }
    }

    /// How many records begin with each number of `bits` bits, at most those they are dealt by, before any is
    /// read.
    pub(crate) fn part_lens(&self, bits: u32) -> Vec<u64> {
        match &self.parts {
            RecordParts::Column(column) => column.part_lens(bits),
            RecordParts::Runs(runs, _) => {
                let bytes = |part| self.parts.span(part, bits).map(|at| runs.partition_bytes(at as u32));
                (0..1 << bits).map(|part| bytes(part).sum::<u64>() / B as u64).collect()
            }
        }
    }

    /// Goes to the records that begin with `part`, a number of `bits` bits, at most those the column was made
    /// for: what follows hands out these alone.
    pub fn enter(&mut self, part: u32, bits: u32) {
        let span = self.parts.span(part, bits);
        (self.next, self.end, self.at) = (span.start, span.end, 0);
        self.current.clear();
    }

    /// The next record, which stays.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn head(&mut self) -> Result<Option<&[u8; B]>, Error> {
        Ok(self.rest()?.first())
    }

    /// The next record.
    ///
    /// # Errors
    /// As [`Self::head`].
    pub fn pop(&mut self) -> Result<Option<[u8; B]>, Error> {
        let record = self.head()?.copied();
        self.at += usize::from(record.is_some());
        Ok(record)
    }

    /// Records that are next and lie side by side; empty at the end.
    fn rest(&mut self) -> Result<&[[u8; B]], Error> {
        while self.at * B == self.current.len() && self.next < self.end {
            self.load()?;
        }
        Ok(&self.current.as_chunks().0[self.at..])
    }

    fn load(&mut self) -> Result<(), Error> {
        self.current.clear();
        match &mut self.parts {
            RecordParts::Column(column) => {
                column.take(self.next, &mut self.current)?;
                sort(self.current.as_chunks_mut::<B>().0);
            }
            RecordParts::Runs(runs, _) => {
                let (part, bytes) = (self.next as u32, runs.partition_bytes(self.next as u32));
                self.current.reserve_exact(bytes as usize);
                let records = runs.partition(part)?;
                records.sorted().for_each(|record| self.current.extend_from_slice(record));
            }
        }
        (self.next, self.at) = (self.next + 1, 0);
        Ok(())
    }
}

fn sort<const B: usize>(records: &mut [[u8; B]]) {
    // Eight leading bytes decide almost always.
    let key = |record: &[u8; B]| u64::from_be_bytes(*record.first_chunk().expect("a record has eight bytes"));
    records.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.cmp(b)));
}

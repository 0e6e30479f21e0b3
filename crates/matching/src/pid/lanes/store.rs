//! Columns of a match that lie in a party's state, where all of its workers find them.

use crate::spill::{SortedRecords, SpillColumn, leading};
use base::Error;
use serde::{Deserialize, Serialize};
use store::{ObjectId, PARTITIONS, RUN_MEMORY, RecordSize, RunObject, RunReader, RunWriter, SealedStore};

/// How much finer runs are dealt than units are: a worker has so small a part of its partition in memory.
const FINER: u32 = 2;

/// The runs of one column, as they are noted down: name, what tells each from other objects of that name, and
/// records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnRuns(Vec<(String, [u8; 32], u64)>);

/// Where columns lie. Objects are sealed under a key of the match.
#[derive(Clone)]
pub struct LaneStore {
    sealed: SealedStore,
    /// The folder of the match.
    folder: String,
}

/// A column that is being written.
pub(in crate::pid) struct RunColumn<const B: usize> {
    runs: RunWriter,
    bits: u32,
}

/// By how many bits runs are dealt where units are by `bits`.
fn dealt(bits: u32) -> u32 {
    (bits + FINER).min(PARTITIONS.ilog2())
}

impl LaneStore {
    /// In a folder of a party's state.
    #[must_use]
    pub fn new(sealed: SealedStore, folder: &str) -> Self {
        Self { sealed, folder: folder.to_owned() }
    }

    /// The name in the state of a folder of this match.
    #[must_use]
    pub fn folder(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// A column that is to be written as runs in a folder of its own; `bits` bits deal it to units.
    ///
    /// # Errors
    /// When the system gives no memory for it.
    pub(in crate::pid) fn column<const B: usize>(
        &self,
        name: &str,
        bits: u32,
    ) -> Result<RunColumn<B>, Error> {
        let (bits, size) = (dealt(bits), RecordSize::Fixed(B as u32));
        let shape = (1 << bits, size);
        let runs = RunWriter::new(self.sealed.clone(), &self.folder(name), shape, RUN_MEMORY)?;
        Ok(RunColumn { runs, bits })
    }

    /// Writes a column so.
    ///
    /// # Errors
    /// When it cannot be read back or written.
    pub(super) fn write<const B: usize>(
        &self,
        name: &str,
        bits: u32,
        column: SpillColumn<B>,
    ) -> Result<ColumnRuns, Error> {
        let (mut records, mut written) = (column.sorted(), self.column(name, bits)?);
        while let Some(record) = records.pop()? {
            written.push(&record)?;
        }
        written.finish()
    }

    /// The records of some columns together, dealt by `bits` bits at least.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn read<const B: usize>(
        &self,
        columns: &[&ColumnRuns],
        bits: u32,
    ) -> Result<SortedRecords<B>, Error> {
        let run = |(name, id, records): &(String, [u8; 32], u64)| RunObject {
            name: name.clone(),
            id: ObjectId(*id),
            records: *records,
        };
        let runs: Vec<RunObject> = columns.iter().flat_map(|column| column.0.iter().map(run)).collect();
        Ok(SortedRecords::of_runs(RunReader::open(self.sealed.clone(), &runs)?, dealt(bits)))
    }
}

impl<const B: usize> RunColumn<B> {
    /// Adds a record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn push(&mut self, record: &[u8; B]) -> Result<(), Error> {
        Ok(self.runs.push(leading(record, self.bits), record)?)
    }

    /// All that was written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<ColumnRuns, Error> {
        let runs = self.runs.finish()?;
        Ok(ColumnRuns(runs.into_iter().map(|run| (run.name, run.id.0, run.records)).collect()))
    }
}

impl ColumnRuns {
    /// Names of its objects in the state.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, ..)| &**name)
    }

    /// All runs of some columns as those of one.
    pub(super) fn all<'c>(columns: impl Iterator<Item = &'c Self>) -> Self {
        Self(columns.flat_map(|column| column.0.iter().cloned()).collect())
    }
}

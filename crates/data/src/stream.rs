//! Rows that another program hands over as Arrow record batches, such as a data frame of Python.

use crate::batches::deliver;
use crate::table::TableReading;
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use base::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows between two looks at whether a call has been stopped.
const PART_ROWS: usize = 1 << 16;

/// Batches of rows, which are read once. Clones are one stream.
#[derive(Clone)]
pub struct RowStream(Arc<StreamState>);

struct StreamState {
    name: String,
    bytes: Option<u64>,
    batches: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
    stopped: Box<dyn Fn() -> bool + Send + Sync>,
}

impl RowStream {
    /// Rows that messages call `name`, of about so many bytes where that is known. Reading ends with an error
    /// when `stopped` says so.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        bytes: Option<u64>,
        batches: Box<dyn RecordBatchReader + Send>,
        stopped: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let (batches, stopped) = (Mutex::new(Some(batches)), Box::new(stopped));
        Self(Arc::new(StreamState { name: name.into(), bytes, batches, stopped }))
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// About how many bytes it has; where nobody knows, more than anything else.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes.unwrap_or(u64::MAX)
    }

    /// Hands all rows on. Returns how many there were.
    pub(crate) fn read(&self, table: &mut TableReading<'_>) -> Result<u64, Error> {
        let batches = self.0.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batches = batches.ok_or_else(|| self.has_none())?;
        let found: Vec<String> = batches.schema().fields().iter().map(|field| field.name().clone()).collect();
        let places = table.locate(&found)?;
        let wanted: Vec<String> = places.iter().map(|at| found[*at].clone()).collect();
        let failed =
            |rows: u64, e: &dyn fmt::Display| Error::input(format!("{}, after row {rows}: {e}", self.name()));
        let mut rows = 0;
        for batch in batches {
            if !table.sink.takes_more() {
                break;
            }
            let batch = batch.and_then(|batch| batch.project(&places)).map_err(|e| failed(rows, &e))?;
            self.validate(&batch, rows)?;
            for first in (0..batch.num_rows()).step_by(PART_ROWS) {
                if (self.0.stopped)() {
                    return Err(failed(rows, &"stopped"));
                }
                let part = batch.slice(first, PART_ROWS.min(batch.num_rows() - first));
                rows += deliver(&part, rows, &wanted, table)?;
            }
        }
        if rows == 0 {
            return Err(self.has_none());
        }
        Ok(rows)
    }

    /// Checks what its producer has left unchecked, and what reading relies on: that text is UTF-8, that
    /// offsets ascend and end in their data, and that keys are of their dictionary. Only how long each buffer
    /// is the producer alone knows.
    fn validate(&self, batch: &RecordBatch, before: u64) -> Result<(), Error> {
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            array.to_data().validate_full().map_err(|e| {
                Error::input(format!(
                    "{}, column \"{}\", in rows {} to {}: this is no valid Arrow data ({e}); write the cells \
                     anew from their source, as UTF-8 text",
                    self.name(),
                    field.name(),
                    before + 1,
                    before + batch.num_rows() as u64
                ))
            })?;
        }
        Ok(())
    }

    /// A table without rows, or a stream that somebody has read: it gives none, and says no more than that.
    fn has_none(&self) -> Error {
        Error::input(format!(
            "{}: it has 0 rows. A reader gives its rows once: if it was read before, make it anew, or hand \
             over a table",
            self.name()
        ))
    }
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowStream({})", self.name())
    }
}

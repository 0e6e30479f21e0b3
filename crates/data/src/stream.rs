//! Rows that another program hands over as Arrow record batches, such as a data frame of Python.

use crate::batches::deliver;
use crate::table::TableReading;
use arrow_array::RecordBatchReader;
use base::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Batches of rows, which are read once. Clones are one stream.
#[derive(Clone)]
pub struct RowStream(Arc<StreamState>);

struct StreamState {
    name: String,
    bytes: Option<u64>,
    batches: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
}

impl RowStream {
    /// Rows that messages call `name`, of about so many bytes where that is known.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        bytes: Option<u64>,
        batches: Box<dyn RecordBatchReader + Send>,
    ) -> Self {
        Self(Arc::new(StreamState { name: name.into(), bytes, batches: Mutex::new(Some(batches)) }))
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
        let wanted: Vec<String> = table.locate(&found)?.into_iter().map(|at| found[at].clone()).collect();
        let mut rows = 0;
        for batch in batches {
            if !table.sink.takes_more() {
                break;
            }
            let batch = batch.map_err(|e| Error::input(format!("{}, after row {rows}: {e}", self.name())))?;
            rows += deliver(&batch, rows, &wanted, table)?;
        }
        if rows == 0 {
            return Err(self.has_none());
        }
        Ok(rows)
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

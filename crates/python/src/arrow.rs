//! Rows from and for Python by the Arrow C stream interface: capsules named `arrow_array_stream`.
//!
//! The only `unsafe` of this crate is here: it takes over what a capsule points at.
#![allow(unsafe_code)]

use crate::errors::{misused, raised};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array, ArrayReader, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, RecordBatchReader, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use data::RowStream;
use job::export::MatchedPart;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Map, Value};
use std::ffi::CStr;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of a capsule of a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// Rows of a data frame, to be read by one call.
#[pyclass(frozen, module = "tacit._tacit", name = "Rows")]
pub(crate) struct GivenRows(RowStream);

#[pymethods]
impl GivenRows {
    /// Takes over the stream of a capsule. Messages call it `name`; it has about so many bytes.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        bytes: Option<u64>,
        capsule: &Bound<'_, PyCapsule>,
        stop: &crate::watched::StopHandle,
    ) -> PyResult<Self> {
        let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name holds a stream of Arrow's C interface, which is moved out of it, and
        // a released one is left in its place; the interpreter is held, so nobody else moves it meanwhile.
        // What the stream gives is taken as Arrow's types without a look at it. `RowStream` validates each
        // wanted column of each batch in full (UTF-8, offsets, keys) before a cell is read. The interface
        // does not say how long buffers are: for that the producer, a library of this process, is trusted.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        let batches = GivenBatches::of(stream).map_err(|e| {
            misused(
                py,
                format!(
                    "{name}: no stream of rows ({e}). A reader gives its rows once: make it anew, or hand \
                     over a table"
                ),
            )
        })?;
        let stop = stop.0.clone();
        Ok(Self(RowStream::new(name, bytes, Box::new(batches), move || stop.is_stopped())))
    }
}

impl GivenRows {
    pub(crate) fn stream(&self) -> RowStream {
        self.0.clone()
    }
}

/// Structs of a stream as batches of rows.
struct GivenBatches {
    structs: ArrayStreamReader,
    schema: SchemaRef,
}

impl GivenBatches {
    fn of(stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let structs = ArrayStreamReader::try_new(stream)?;
        let DataType::Struct(fields) = structs.field().data_type() else {
            let text = format!("it has {}, and rows are structs of columns", structs.field().data_type());
            return Err(ArrowError::CDataInterface(text));
        };
        let schema = Arc::new(Schema::new(fields.clone()));
        Ok(Self { structs, schema })
    }

    /// The columns of structs. One that is null as a whole is no row, and would be read as its cells.
    fn batch(&self, structs: &ArrayRef) -> Result<RecordBatch, ArrowError> {
        let nulls = structs.null_count();
        if nulls > 0 {
            let text = format!("{nulls} of the structs here are null as a whole: leave them out");
            return Err(ArrowError::ExternalError(text.into()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(structs.len()));
        let columns = structs.as_struct().columns().to_vec();
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

impl Iterator for GivenBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let structs = self.structs.next()?;
        Some(structs.and_then(|structs| self.batch(&structs)))
    }
}

impl RecordBatchReader for GivenBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Rows that this module has for Python: of a result, or of a Parquet file that it wrote.
#[pyclass(frozen, module = "tacit._tacit", name = "Batches")]
pub(crate) struct ShownTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl ShownTable {
    /// A table of a JSON array of objects, each a row, with these columns. A column is of whole numbers, of
    /// numbers, of truth values or of text, by what stands in it.
    #[staticmethod]
    fn of_rows(py: Python<'_>, names: Vec<String>, json: &str) -> PyResult<Self> {
        let failed = |e: ArrowError| misused(py, format!("no table: {e}"));
        let rows: Vec<Map<String, Value>> =
            serde_json::from_str(json).map_err(|e| misused(py, format!("no table: {e}")))?;
        let columns: Vec<ArrayRef> = names.iter().map(|name| column(&rows, name)).collect();
        let field = |(name, column): (&String, &ArrayRef)| {
            Field::new(name.as_str(), column.data_type().clone(), true)
        };
        let schema = Arc::new(Schema::new(names.iter().zip(&columns).map(field).collect::<Vec<_>>()));
        let batches = match columns.is_empty() {
            true => Vec::new(),
            false => vec![RecordBatch::try_new(schema.clone(), columns).map_err(failed)?],
        };
        Ok(Self { schema, batches })
    }

    /// The rows of a Parquet file.
    #[staticmethod]
    fn of_parquet(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let shown = path.display().to_string();
        let file = File::open(&path)
            .map_err(|e| raised(py, &base::Error::reading(format!("cannot open {shown}"), &e)))?;
        let failed = |e: &dyn std::fmt::Display| misused(py, format!("{shown}: not Parquet: {e}"));
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| failed(&e))?;
        let reader = reader.build().map_err(|e| failed(&e))?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|e| failed(&e))?;
        Ok(Self { schema, batches })
    }

    /// How many rows there are.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The rows as a capsule of the Arrow C stream interface. Every call gives all of them.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish: the caller casts what it gets.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new(self.batches.clone().into_iter().map(Ok), self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }
}

impl ShownTable {
    /// A party's part of a match.
    pub(crate) fn of_part(part: MatchedPart) -> Self {
        Self { schema: part.schema, batches: part.batches }
    }
}

/// One column of rows.
fn column(rows: &[Map<String, Value>], name: &str) -> ArrayRef {
    let cells = || rows.iter().map(|row| row.get(name).filter(|cell| !cell.is_null()));
    let all = |is: fn(&Value) -> bool| cells().flatten().all(is);
    if all(|cell| cell.is_i64()) {
        Arc::new(cells().map(|cell| cell?.as_i64()).collect::<Int64Array>())
    } else if all(Value::is_number) {
        Arc::new(cells().map(|cell| cell?.as_f64()).collect::<Float64Array>())
    } else if all(Value::is_boolean) {
        Arc::new(cells().map(|cell| cell?.as_bool()).collect::<BooleanArray>())
    } else {
        let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
        Arc::new(cells().map(|cell| cell.map(text)).collect::<StringArray>())
    }
}

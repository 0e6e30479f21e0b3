//! Writing tables of text columns and number columns as CSV or Parquet, in batches.

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use base::Error;
use clap::ValueEnum;
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Comma-separated values.
    Csv,
    /// Parquet.
    Parquet,
}

impl FileFormat {
    /// The extension of its files.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// A cell to be written.
pub(super) enum Out<'a> {
    Text(&'a str),
    Number(u32),
}

/// Rows per Parquet batch.
const BATCH: u64 = 1 << 13;
/// Rows of a small group of rows of Parquet: the writer has a group in memory, some 75 bytes a row.
const SMALL_GROUP: u64 = 1 << 16;

/// A table that is being written.
pub(super) struct TableFile {
    path: String,
    rows: u64,
    /// Rows of a group, a multiple of [`BATCH`], where the writer's own measure is too large.
    group: Option<u64>,
    to: Writer,
}

enum Writer {
    Csv(Box<csv::Writer<BufWriter<File>>>),
    Parquet { writer: Box<ArrowWriter<File>>, schema: Arc<Schema>, columns: Vec<Column> },
}

enum Column {
    Text(StringBuilder),
    Number(Vec<u32>),
}

impl TableFile {
    /// Begins a table; `true` marks a column of numbers.
    pub fn create(path: &Path, format: FileFormat, columns: &[(&str, bool)]) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let file = File::create(path).map_err(|e| Error::io(format!("cannot create {shown}"), &e))?;
        let to = match format {
            FileFormat::Csv => {
                let mut writer = csv::Writer::from_writer(BufWriter::with_capacity(1 << 18, file));
                let header = writer.write_record(columns.iter().map(|(name, _)| name));
                header.map_err(|e| failed(&shown, &e))?;
                Writer::Csv(Box::new(writer))
            }
            FileFormat::Parquet => {
                let kind = |number| if number { DataType::UInt32 } else { DataType::Utf8 };
                let field = |&(name, number): &(&str, bool)| Field::new(name, kind(number), false);
                let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
                let writer = ArrowWriter::try_new(file, Arc::clone(&schema), None);
                let writer = Box::new(writer.map_err(|e| failed(&shown, &e))?);
                let empty = |number| {
                    if number { Column::Number(Vec::new()) } else { Column::Text(StringBuilder::new()) }
                };
                Writer::Parquet { writer, schema, columns: columns.iter().map(|&(_, n)| empty(n)).collect() }
            }
        };
        Ok(Self { path: shown, rows: 0, group: None, to })
    }

    /// Parquet in groups of rows that take little memory.
    pub fn in_small_groups(self) -> Self {
        Self { group: Some(SMALL_GROUP), ..self }
    }

    /// One row, a cell per column of the declared type.
    pub fn row(&mut self, cells: &[Out<'_>]) -> Result<(), Error> {
        self.rows += 1;
        match &mut self.to {
            Writer::Csv(writer) => {
                for cell in cells {
                    let written = match cell {
                        Out::Text(text) => writer.write_field(text),
                        Out::Number(number) => writer.write_field(number.to_string()),
                    };
                    written.map_err(|e| failed(&self.path, &e))?;
                }
                writer.write_record(None::<&[u8]>).map_err(|e| failed(&self.path, &e))
            }
            Writer::Parquet { columns, .. } => {
                for (column, cell) in columns.iter_mut().zip(cells) {
                    match (column, cell) {
                        (Column::Text(column), Out::Text(text)) => column.append_value(text),
                        (Column::Number(column), Out::Number(number)) => column.push(*number),
                        _ => return Err(Error::misuse("a cell of another type than its column")),
                    }
                }
                if self.rows.is_multiple_of(BATCH) { self.flush() } else { Ok(()) }
            }
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let Writer::Parquet { writer, schema, columns } = &mut self.to else { return Ok(()) };
        let array = |column: &mut Column| -> ArrayRef {
            match column {
                Column::Text(column) => Arc::new(column.finish()),
                Column::Number(column) => Arc::new(UInt32Array::from(std::mem::take(column))),
            }
        };
        let arrays = columns.iter_mut().map(array).collect();
        let batch = RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|e| failed(&self.path, &e))?;
        writer.write(&batch).map_err(|e| failed(&self.path, &e))?;
        match self.group {
            Some(group) if self.rows.is_multiple_of(group) => {
                writer.flush().map_err(|e| failed(&self.path, &e))
            }
            _ => Ok(()),
        }
    }

    /// Ends the table and says how many rows it has.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        match self.to {
            Writer::Csv(writer) => {
                let mut inner = writer.into_inner().map_err(|e| failed(&self.path, &e))?;
                inner.flush().map_err(|e| failed(&self.path, &e))?;
            }
            Writer::Parquet { writer, .. } => {
                writer.close().map_err(|e| failed(&self.path, &e))?;
            }
        }
        Ok(self.rows)
    }
}

fn failed(path: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(base::At::default(), base::Fault::Io(format!("cannot write {path}: {error}")))
}

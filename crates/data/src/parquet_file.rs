//! Parquet, batch by batch, only the wanted columns.

use super::input::InputFile;
use super::table::{TableCell, TableReading};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use base::{Error, limits};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::Length;
use std::ops::Range;

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// How many row groups a file has; none of what is no Parquet file.
pub(super) fn row_groups(file: &InputFile) -> Option<usize> {
    let metadata = ArrowReaderMetadata::load(file, Default::default()).ok()?;
    Some(metadata.metadata().num_row_groups())
}

/// Reads a file, or these row groups of it.
pub(super) fn read(
    (file, groups): (InputFile, Option<&Range<usize>>),
    table: &mut TableReading<'_>,
) -> Result<u64, Error> {
    let length = file.len();
    let metadata = ArrowReaderMetadata::load(&file, Default::default()).map_err(|e| {
        table.refused(format!("not a complete Parquet file ({e}); was it cut short? Write it again"))
    })?;
    let found: Vec<String> = metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
    let positions = table.locate(&found)?;
    let wanted: Vec<String> = positions.iter().map(|&at| found[at].clone()).collect();
    let mask = ProjectionMask::roots(metadata.parquet_schema(), positions);
    let within = |group: usize| groups.is_none_or(|wanted| wanted.contains(&group));
    let (mut first, mut before, mut spans) = (1, 0, Vec::new());
    for (i, group) in metadata.metadata().row_groups().iter().enumerate() {
        let rows = rows_of(group, length).ok_or_else(|| {
            table
                .refused(format!("damaged Parquet data: row group {i} lies outside the file; write it again"))
        })?;
        table.current().groups.push(first);
        first += rows;
        if !within(i) {
            before += if groups.is_some_and(|wanted| i < wanted.start) { rows } else { 0 };
            continue;
        }
        let chunks = group.columns().iter().enumerate().filter(|(column, _)| mask.leaf_included(*column));
        spans.extend(chunks.filter_map(|(column, chunk)| Some((span(chunk)?, column))));
    }
    file.expect(spans);
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let wanted_groups = (0..builder.metadata().num_row_groups()).filter(|group| within(*group)).collect();
    let builder = builder.with_row_groups(wanted_groups);
    let reader = builder.with_projection(mask).with_batch_size(BATCH).build();
    let reader = reader.map_err(|e| table.refused(format!("cannot be read as Parquet: {e}")))?;
    let mut rows = before;
    for batch in reader {
        if !table.sink.takes_more() {
            break;
        }
        let batch = batch.map_err(|e| {
            Error::input(format!("{}, after row {rows}: damaged Parquet data: {e}", table.name))
        })?;
        rows += deliver(&batch, rows, &wanted, table)?;
    }
    Ok(rows - before)
}

/// Rows of a group; `None` where its columns do not lie in a file of so many bytes, which the library takes
/// for granted.
fn rows_of(group: &RowGroupMetaData, length: u64) -> Option<u64> {
    for column in group.columns() {
        let Range { start, end } = span(column)?;
        let data = u64::try_from(column.data_page_offset()).ok()?;
        if end > length || data < start || column.num_values() < 0 {
            return None;
        }
    }
    u64::try_from(group.num_rows()).ok().filter(|rows| *rows <= limits::ROWS)
}

/// The bytes of a column in a row group.
fn span(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let start = u64::try_from(start).ok()?;
    Some(start..start.checked_add(u64::try_from(column.compressed_size()).ok()?)?)
}

fn deliver(
    batch: &RecordBatch,
    before: u64,
    wanted: &[String],
    table: &mut TableReading<'_>,
) -> Result<u64, Error> {
    let columns = wanted
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let array = batch
                .column_by_name(name)
                .ok_or_else(|| table.refused(format!("column \"{name}\" is missing in a row group")))?;
            column(&table.name, name, array.as_ref(), table.sink.decimals(i))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::with_capacity(columns.len());
    for row in 0..batch.num_rows() {
        if !table.sink.takes_more() {
            break;
        }
        let line = before + row as u64 + 1;
        cells.clear();
        for (column, name) in columns.iter().zip(wanted) {
            cells.push(column.cell(row).ok_or_else(|| {
                Error::input(format!(
                    "{}, column \"{name}\": a whole number above 2^63 - 1; use smaller numbers or text",
                    table.files.show(table.files.place(line))
                ))
            })?);
        }
        table.take(line, &cells)?;
    }
    Ok(batch.num_rows() as u64)
}

/// A column of a batch, resolved once per batch; dictionaries by key.
struct Column<'a> {
    array: &'a dyn Array,
    /// For dictionary columns: the row of `array` (the dictionary) for each row, `None` for null.
    keys: Option<Vec<Option<usize>>>,
}

fn column<'a>(file: &str, name: &str, array: &'a dyn Array, decimals: bool) -> Result<Column<'a>, Error> {
    let (array, keys) = match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            let keys = dictionary.normalized_keys();
            let keys =
                keys.into_iter().enumerate().map(|(i, key)| array.is_valid(i).then_some(key)).collect();
            (dictionary.values().as_ref(), Some(keys))
        }
        None => (array, None),
    };
    use DataType as T;
    match array.data_type() {
        T::Null | T::Boolean | T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Date32 | T::Timestamp(..) => {}
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {}
        T::Float64 if decimals => {}
        T::Decimal128(_, places) if decimals && *places >= 0 => {}
        other => {
            return Err(Error::input(format!(
                "{file}, column \"{name}\": type {other} is not read; use text, whole numbers, dates or \
                 timestamps"
            )));
        }
    }
    Ok(Column { array, keys })
}

impl Column<'_> {
    /// The cell of a row; `None` for an integer that does not fit 64 signed bits.
    fn cell(&self, row: usize) -> Option<TableCell<'_>> {
        let array = self.array;
        let i = match &self.keys {
            Some(keys) => match keys[row] {
                Some(key) => key,
                None => return Some(TableCell::Empty),
            },
            None => row,
        };
        if array.is_null(i) || *array.data_type() == DataType::Null {
            return Some(TableCell::Empty);
        }
        Some(match array.data_type() {
            DataType::Utf8 => text_cell(array.as_string::<i32>().value(i)),
            DataType::LargeUtf8 => text_cell(array.as_string::<i64>().value(i)),
            DataType::Utf8View => text_cell(array.as_string_view().value(i)),
            DataType::Boolean => TableCell::Boolean(array.as_boolean().value(i)),
            DataType::Date32 => TableCell::Days(array.as_primitive::<Date32Type>().value(i)),
            DataType::Timestamp(unit, _) => TableCell::Seconds(seconds(array, unit, i)),
            DataType::Float64 => TableCell::Float(array.as_primitive::<Float64Type>().value(i)),
            DataType::Decimal128(_, places) => {
                TableCell::Decimal(array.as_primitive::<Decimal128Type>().value(i), *places)
            }
            _ => TableCell::Integer(integer(array, i)?),
        })
    }
}

/// An empty text is an empty cell, as in CSV.
fn text_cell(text: &str) -> TableCell<'_> {
    if text.is_empty() { TableCell::Empty } else { TableCell::Text(text) }
}

fn seconds(array: &dyn Array, unit: &TimeUnit, i: usize) -> i64 {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(i),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(i).div_euclid(1_000),
        TimeUnit::Microsecond => {
            array.as_primitive::<TimestampMicrosecondType>().value(i).div_euclid(1_000_000)
        }
        TimeUnit::Nanosecond => {
            array.as_primitive::<TimestampNanosecondType>().value(i).div_euclid(1_000_000_000)
        }
    }
}

fn integer(array: &dyn Array, i: usize) -> Option<i64> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(i).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(i).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(i).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(i),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(i).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(i).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(i).into(),
        DataType::UInt64 => i64::try_from(array.as_primitive::<UInt64Type>().value(i)).ok()?,
        _ => return None,
    })
}

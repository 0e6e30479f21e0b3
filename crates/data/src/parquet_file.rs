//! Parquet, batch by batch, only the wanted columns.

use super::batches::deliver;
use super::input::InputFile;
use super::table::TableReading;
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

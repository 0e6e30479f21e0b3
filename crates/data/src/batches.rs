//! Rows of Arrow record batches, from Parquet or from a program that hands them over.

use super::dates::DAY;
use super::table::{TableCell, TableReading};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use base::Error;

/// Hands the rows of a batch on, of which `before` were read before. Returns how many it has.
///
/// # Errors
/// When a column is of a type that is not read, or the sink ends it.
pub(super) fn deliver(
    batch: &RecordBatch,
    before: u64,
    wanted: &[String],
    table: &mut TableReading<'_>,
) -> Result<u64, Error> {
    let columns = wanted
        .iter()
        .map(|name| {
            let array = batch
                .column_by_name(name)
                .ok_or_else(|| table.refused(format!("column \"{name}\" is missing in a batch")))?;
            let zoned = table.format.zone.is_some();
            if is_period(batch, name) {
                return Err(table.refused_column(name, PERIODS));
            }
            column(array.as_ref(), zoned).map_err(|what| table.refused_column(name, what))
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

/// What to do about months, quarters and the like.
const PERIODS: &str = "periods of pandas are numbers whose unit no other program knows; hand over dates, \
                       such as those of .dt.to_timestamp()";

/// Whether a column is of periods of pandas, which are whole numbers to whoever looks at the type alone.
fn is_period(batch: &RecordBatch, name: &str) -> bool {
    let schema = batch.schema_ref();
    let field = schema.field_with_name(name).ok();
    field.and_then(|field| field.extension_type_name()) == Some("pandas.period")
}

/// A column of a batch, resolved once per batch; dictionaries by key.
struct Column<'a> {
    array: &'a dyn Array,
    /// For dictionary columns: the row of `array` (the dictionary) for each row, `None` for null.
    keys: Option<Vec<Option<usize>>>,
    /// Whether it is said where the clock of times without a zone hung.
    zoned: bool,
}

/// A column, or why it is not read.
fn column(array: &dyn Array, zoned: bool) -> Result<Column<'_>, String> {
    let (array, keys) = match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            if dictionary.values().is_empty() {
                // Of nulls alone, whatever the type of nothing is.
                return Ok(Column {
                    array: dictionary.values().as_ref(),
                    keys: Some(vec![None; array.len()]),
                    zoned,
                });
            }
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
        T::Float32 | T::Float64 => {}
        T::Decimal128(_, 0..) => {}
        other => {
            return Err(format!("type {other} is not read; use text, numbers, dates or timestamps"));
        }
    }
    Ok(Column { array, keys, zoned })
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
            DataType::Timestamp(unit, Some(_)) => TableCell::Seconds(seconds(array, unit, i)),
            DataType::Timestamp(unit, None) => wall(seconds(array, unit, i), self.zoned),
            // A frame holds whole numbers so as soon as one is missing.
            DataType::Float64 => TableCell::number(array.as_primitive::<Float64Type>().value(i)),
            DataType::Float32 => TableCell::number(shortest(array.as_primitive::<Float32Type>().value(i))),
            DataType::Decimal128(_, places) => {
                decimal(array.as_primitive::<Decimal128Type>().value(i), *places)
            }
            _ => TableCell::Integer(integer(array, i)?),
        })
    }
}

/// An empty text is an empty cell, as in CSV.
fn text_cell(text: &str) -> TableCell<'_> {
    if text.is_empty() { TableCell::Empty } else { TableCell::Text(text) }
}

/// The number with the fewest decimals that is rounded to this one.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// A whole number where there are no decimals, as in sums of databases.
fn decimal(value: i128, places: i8) -> TableCell<'static> {
    let one = 10_i128.checked_pow(u32::from(places.unsigned_abs()));
    let whole = one.filter(|one| value % one == 0).and_then(|one| i64::try_from(value / one).ok());
    whole.map_or(TableCell::Decimal(value, places), TableCell::Integer)
}

/// A time of which nobody said a zone, as a cell of a spreadsheet: at midnight a date, unless it is said
/// where the clock hung.
fn wall(seconds: i64, zoned: bool) -> TableCell<'static> {
    let day = i32::try_from(seconds.div_euclid(DAY)).ok().filter(|_| !zoned && seconds.rem_euclid(DAY) == 0);
    day.map_or(TableCell::Wall(seconds), TableCell::Days)
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

//! Spreadsheets of Excel: the first row with a cell is the header; rows without a cell are none.
//!
//! The file as it lies there and the texts of all its cells are in memory, the rows one by one.

use super::Row;
use super::complaints::Complaints;
use super::dates;
use super::input::InputFile;
use super::table::{Files, RowSink, TableCell, locate};
use base::Error;
use calamine::{DataRef, Reader, SheetType, SheetVisible, Xlsx, XlsxCellReader, XlsxError};
use std::io::{Cursor, Read};
use study::format::InputFormat;

/// Bytes of a spreadsheet's file, at most.
pub const SHEET_BYTES: u64 = 64 << 20;
/// Columns of a sheet, at most.
const SHEET_COLUMNS: usize = 1 << 14;
/// Days from 1899-12-30 to 1904-01-01, where some workbooks begin to count.
const EPOCH_1904: f64 = 1_462.0;

type SheetBook = Xlsx<Cursor<Vec<u8>>>;

pub(super) fn read(
    file: InputFile,
    format: &InputFormat,
    files: &mut Files,
    sink: &mut dyn RowSink,
    complaints: &mut Complaints,
) -> Result<u64, Error> {
    let name = files.name().to_owned();
    let damaged = |error: XlsxError| {
        Error::input(format!("{name}: cannot be read as an .xlsx file ({error}); save it again, or as CSV"))
    };
    let mut book: SheetBook = Xlsx::new(Cursor::new(whole(&name, file)?)).map_err(damaged)?;
    let sheet = sheet(&name, &book, format.sheet.as_deref())?;
    files.current().sheet = Some(sheet.clone());
    files.found(format!("sheet \"{sheet}\""));
    let before = if book.has_1904_epoch() { EPOCH_1904 } else { 0.0 };
    let cells = book.worksheet_cells_reader(&sheet).map_err(damaged)?;
    let mut rows = SheetRows { cells, next: None, ended: false, row: Vec::new() };
    if rows.advance().map_err(damaged)?.is_none() {
        return Err(Error::input(format!(
            "{name}: the sheet \"{sheet}\" is empty; it needs a header and rows"
        )));
    }
    let found: Vec<String> = rows.row.iter().map(|cell| heading(cell, before)).collect();
    let positions = locate(&name, &found, format, sink)?;
    let mut count = 0;
    while sink.takes_more() {
        let Some(number) = rows.advance().map_err(damaged)? else { break };
        count += 1;
        let mut row = Row { files, place: files.place(number), complaints, format };
        let cell = |at: &usize| rows.row.get(*at).unwrap_or(&DataRef::Empty);
        if let Some((at, error)) = positions.iter().find_map(|at| Some((at, failed(cell(at))?))) {
            row.complain(&found[*at], || format!("the cell is {error}: its formula failed"));
            continue;
        }
        let cells: Vec<TableCell<'_>> = positions.iter().map(|at| table_cell(cell(at), before)).collect();
        sink.row(&mut row, &cells)?;
    }
    Ok(count)
}

/// The bytes of the file.
fn whole(name: &str, file: InputFile) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = file.text().take(SHEET_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::io(format!("cannot read {name}"), &e))?;
    match bytes.len() as u64 > SHEET_BYTES {
        false => Ok(bytes),
        true => Err(Error::input(format!(
            "{name}: larger than {} MiB, the most of a spreadsheet; save it as CSV",
            SHEET_BYTES >> 20
        ))),
    }
}

/// The sheet that is said, or the only one that shows.
fn sheet(name: &str, book: &SheetBook, said: Option<&str>) -> Result<String, Error> {
    let sheets = book.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("\"{}\"", study::reader::printable(name)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let all: Vec<&str> = sheets.clone().map(|sheet| sheet.name.as_str()).collect();
    let shown: Vec<&str> = sheets
        .filter(|sheet| sheet.visible == SheetVisible::Visible)
        .map(|sheet| sheet.name.as_str())
        .collect();
    match (said, &shown[..]) {
        (Some(said), _) if all.contains(&said) => Ok(said.to_owned()),
        (Some(said), _) => {
            Err(Error::input(format!("{name}: no sheet \"{said}\"; the file has: {}", list(&all))))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, several) => Err(Error::input(format!(
            "{name}: which sheet? The file has: {}; add sheet = \"...\" under [format] of the party file, or \
             --sheet",
            list(if several.is_empty() { &all } else { several })
        ))),
    }
}

/// The rows of a sheet.
struct SheetRows<'a> {
    cells: XlsxCellReader<'a, Cursor<Vec<u8>>>,
    /// A cell of the row after the one that is here.
    next: Option<(u32, u32, DataRef<'a>)>,
    ended: bool,
    /// The cells of a row.
    row: Vec<DataRef<'a>>,
}

impl SheetRows<'_> {
    /// Goes to the next row with a cell. Returns its number, from 1.
    fn advance(&mut self) -> Result<Option<u64>, XlsxError> {
        self.row.clear();
        let mut number = None;
        loop {
            let cell = match self.next.take() {
                Some(cell) => Some(cell),
                None if self.ended => None,
                None => self.cells.next_cell()?.map(|cell| {
                    let (row, column) = cell.get_position();
                    (row, column, cell.get_value().clone())
                }),
            };
            let Some((row, column, value)) = cell else {
                self.ended = true;
                break;
            };
            if is_blank(&value) {
                continue;
            }
            if number.is_some_and(|number| number != row) {
                self.next = Some((row, column, value));
                break;
            }
            let at = column as usize;
            if at >= SHEET_COLUMNS {
                return Err(XlsxError::Unexpected("a cell beyond the last column there can be"));
            }
            number = Some(row);
            if self.row.len() <= at {
                self.row.resize(at + 1, DataRef::Empty);
            }
            self.row[at] = value;
        }
        Ok(number.map(|row| u64::from(row) + 1))
    }
}

fn is_blank(cell: &DataRef<'_>) -> bool {
    match cell {
        DataRef::Empty => true,
        DataRef::String(text) => text.trim().is_empty(),
        DataRef::SharedString(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// The name of a column.
fn heading(cell: &DataRef<'_>, before: f64) -> String {
    table_cell(cell, before).number_text().unwrap_or_default().trim().to_owned()
}

/// What a formula says that has no value.
fn failed(cell: &DataRef<'_>) -> Option<String> {
    match cell {
        DataRef::Error(error) => Some(error.to_string()),
        _ => None,
    }
}

/// The number that Excel shows: of a sum such as 0.1 + 0.2 it keeps a few bits beyond its 15 digits.
fn as_shown(number: f64) -> f64 {
    match number.fract() == 0.0 {
        true => number,
        false => format!("{number:.14e}").parse().unwrap_or(number),
    }
}

fn table_cell<'a>(cell: &'a DataRef<'_>, before: f64) -> TableCell<'a> {
    /// Whole numbers that have one form each.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match cell {
        DataRef::Int(number) => TableCell::Integer(*number),
        DataRef::Float(number) => match as_shown(*number) {
            whole if whole.fract() == 0.0 && whole.abs() < EXACT => TableCell::Integer(whole as i64),
            other => TableCell::Float(other),
        },
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            TableCell::Text(text)
        }
        DataRef::SharedString(text) => TableCell::Text(text),
        DataRef::Bool(value) => TableCell::Boolean(*value),
        DataRef::DateTime(time) => match dates::of_serial(time.as_f64() + before) {
            Some(wall) if time.is_datetime() => match wall.seconds {
                Some(seconds) => TableCell::Wall(wall.days * 86_400 + i64::from(seconds)),
                None => i32::try_from(wall.days).map_or(TableCell::Empty, TableCell::Days),
            },
            _ => TableCell::Float(time.as_f64()),
        },
        DataRef::Error(_) | DataRef::Empty => TableCell::Empty,
    }
}

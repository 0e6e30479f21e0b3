//! Spreadsheets of Excel: the first row with a cell is the header; rows without a cell are none.
//!
//! The file as it lies there and the texts of all its cells are in memory, the rows one by one.

use super::dates::{self, DAY};
use super::input::InputFile;
use super::table::{TableCell, TableReading};
use super::titles::LowerHeader;
use base::Error;
use calamine::{DataRef, Reader, SheetType, SheetVisible, Style, Xlsx, XlsxCellReader, XlsxError};
use std::fmt::{self, Display};
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// Bytes of a spreadsheet's file, at most.
pub const SHEET_BYTES: u64 = 64 << 20;
/// Bytes of all its parts unpacked, and of those parts that stay in memory.
const UNPACKED: u64 = 1 << 30;
const KEPT: u64 = 256 << 20;
/// Bytes of a part's beginning, or of a short part, in which an attribute is looked for.
const LOOKED: u64 = 1 << 20;
/// Columns of a sheet, at most.
const SHEET_COLUMNS: usize = 1 << 14;
/// Days from 1899-12-30 to 1904-01-01, where some workbooks begin to count.
const EPOCH_1904: f64 = 1_462.0;

type SheetBook = Xlsx<Cursor<Vec<u8>>>;

pub(super) fn read(file: InputFile, table: &mut TableReading<'_>) -> Result<u64, Error> {
    let name = table.name.clone();
    let damaged = |error: XlsxError| {
        Error::input(format!("{name}: cannot be read as an .xlsx file ({error}); save it again, or as CSV"))
    };
    let bytes = whole(&name, file)?;
    let uncomputed = examined(&name, &bytes)?;
    let mut book: SheetBook = Xlsx::new(Cursor::new(bytes)).map_err(damaged)?;
    let sheet = sheet(&name, &book, table.format.sheet.as_deref())?;
    table.current().sheet = Some(sheet.clone());
    table.files.found(format!("sheet \"{sheet}\""));
    let before = if book.has_1904_epoch() { EPOCH_1904 } else { 0.0 };
    let zoned = table.format.zone.is_some();
    let mut rows = SheetRows::of(&mut book, &sheet, zoned).map_err(damaged)?;
    let said = table.format.header_line;
    let Some(header) = rows.first_from(said.unwrap_or(1)).map_err(damaged)? else {
        return Err(table.refused(format!("the sheet \"{sheet}\" is empty; it needs a header and rows")));
    };
    let found: Vec<String> = rows.row.iter().map(|cell| heading(cell, before)).collect();
    let lower = if said.is_none() { rows.lower_header(&found).map_err(damaged)? } else { None };
    drop(rows);
    lower.map_or(Ok(()), |lower| lower.refuse(table, &found, "row"))?;
    let positions = table.locate(&found)?;
    let surveys = table.sink.surveys();
    let wanted = if surveys { &[][..] } else { &positions };
    let unsaved = Unsaved::of(&mut book, &sheet, (header, wanted), uncomputed).map_err(damaged)?;
    if let Some(unsaved) = unsaved {
        return Err(Error::input(format!("{name}, sheet \"{sheet}\", {unsaved}")));
    }
    let mut rows = SheetRows::of(&mut book, &sheet, zoned).map_err(damaged)?;
    rows.first_from(header).map_err(damaged)?;
    let mut count = 0;
    while table.sink.takes_more() {
        let Some(number) = rows.advance().map_err(damaged)? else { break };
        count += 1;
        let cell = |at: &usize| rows.row.get(*at).unwrap_or(&NO_CELL);
        let bad = positions.iter().find_map(|at| Some((at, failed(cell(at))?))).filter(|_| !surveys);
        if let Some((at, error)) = bad {
            table.row(number).complain(&found[*at], || format!("the cell is {error}: its formula failed"));
            continue;
        }
        let cells: Vec<TableCell<'_>> = positions.iter().map(|at| table_cell(cell(at), before)).collect();
        table.take(number, &cells)?;
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

/// Refuses what unpacks to more than a limit, by the sizes that the archive states: no part unpacks to more
/// than its own. Returns whether the workbook asks to be computed when it is opened. What is no archive is
/// left to the reader of workbooks.
fn examined(name: &str, bytes: &[u8]) -> Result<bool, Error> {
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else { return Ok(false) };
    let (mut all, mut kept, mut uncomputed) = (0u64, 0u64, false);
    for at in 0..archive.len() {
        // What cannot be opened here cannot be read there.
        let Ok(mut part) = archive.by_index(at) else { continue };
        let size = part.size();
        all = all.saturating_add(size);
        let path = part.name().unwrap_or_default().to_ascii_lowercase();
        match path.rsplit(['/', '\\']).next() {
            Some("workbook.xml") => {
                let said = attribute(&mut part, "fullCalcOnLoad");
                uncomputed |= matches!(said.as_deref(), Some("1" | "true"));
            }
            Some("styles.xml") => kept = kept.saturating_add(size),
            Some("sharedstrings.xml") => {
                kept = kept.saturating_add(size);
                // Room is made for as many texts as it says.
                let texts = attribute(&mut part, "uniqueCount").and_then(|texts| texts.parse::<u64>().ok());
                if texts.is_some_and(|texts| texts > size / "<si/>".len() as u64) {
                    return Err(Error::input(format!(
                        "{name}: damaged: it says that it has more texts than fit; save it again, or as CSV"
                    )));
                }
            }
            _ => {}
        }
    }
    let parts = [("it unpacks", all, UNPACKED), ("its texts and styles unpack", kept, KEPT)];
    match parts.into_iter().find(|(_, bytes, most)| bytes > most) {
        None => Ok(uncomputed),
        Some((what, _, most)) => Err(Error::input(format!(
            "{name}: {what} to more than {} MiB, the most of a spreadsheet; save it as CSV",
            most >> 20
        ))),
    }
}

/// The value of an attribute, at its first place in a part.
fn attribute(part: &mut impl Read, name: &str) -> Option<String> {
    let mut text = Vec::new();
    part.take(LOOKED).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let said = text.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
    said.split(said.chars().next()?).nth(1).map(str::to_owned)
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

/// Cells of formulas whose values were not saved. They say where the first is, and what to do.
struct Unsaved {
    row: u32,
    column: u32,
    /// Whether a number stands there that libraries write which compute nothing.
    placeholder: bool,
    more: u64,
}

impl Unsaved {
    /// Those below the header in these columns. `uncomputed`: the workbook asks to be computed when it is
    /// opened.
    fn of(
        book: &mut SheetBook,
        sheet: &str,
        (header, columns): (u64, &[usize]),
        uncomputed: bool,
    ) -> Result<Option<Self>, XlsxError> {
        let mut cells = book.worksheet_cells_reader(sheet)?;
        let mut found: Option<Self> = None;
        while let Some(cell) = cells.next_cell_with_formula_metadata()? {
            let (row, column) = cell.pos;
            let zero = match cell.value {
                DataRef::Float(number) => number == 0.0,
                DataRef::DateTime(time) => time.as_f64() == 0.0,
                _ => false,
            };
            let (placeholder, empty) = (uncomputed && zero, cell.value == DataRef::Empty);
            let wanted = u64::from(row) >= header && columns.contains(&(column as usize));
            if cell.formula.is_none() || !wanted || !(empty || placeholder) {
                continue;
            }
            match &mut found {
                Some(found) => found.more += 1,
                None => found = Some(Self { row, column, placeholder, more: 0 }),
            }
        }
        Ok(found)
    }
}

impl Display for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.placeholder {
            false => "its formula was saved without its value",
            true => {
                "its formula says 0, which stands there as well where the program that wrote the file \
                 computed nothing"
            }
        };
        let more = match self.more {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let (column, row) = (letters(self.column), self.row + 1);
        write!(
            f,
            "cell {column}{row}{more}: {what}; open the file in a spreadsheet program and save it there"
        )
    }
}

/// The letters of a column: A to Z, AA ..
fn letters(column: u32) -> String {
    let last = char::from(b'A' + (column % 26) as u8);
    match column / 26 {
        0 => last.to_string(),
        before => letters(before - 1) + &last.to_string(),
    }
}

/// A cell, and whether its format shows the time of a day.
struct SheetCell<'a> {
    value: DataRef<'a>,
    timed: bool,
}

static NO_CELL: SheetCell<'static> = SheetCell { value: DataRef::Empty, timed: false };

/// The rows of a sheet.
struct SheetRows<'a> {
    cells: XlsxCellReader<'a, Cursor<Vec<u8>>>,
    /// Of each style whether it shows the time of a day; none where that does not matter.
    timed: Vec<bool>,
    /// A cell of the row after the one that is here.
    next: Option<(u32, u32, SheetCell<'a>)>,
    ended: bool,
    /// The cells of a row.
    row: Vec<SheetCell<'a>>,
}

impl<'a> SheetRows<'a> {
    /// `zoned`: it is said where the clock of date-times hung.
    fn of(book: &'a mut SheetBook, sheet: &str, zoned: bool) -> Result<Self, XlsxError> {
        let cells = book.worksheet_cells_reader(sheet)?;
        let timed = cells.styles().iter().filter(|_| zoned).map(shows_time).collect();
        Ok(Self { cells, timed, next: None, ended: false, row: Vec::new() })
    }

    /// Goes to the first row with a cell from this one on.
    fn first_from(&mut self, first: u64) -> Result<Option<u64>, XlsxError> {
        loop {
            match self.advance()? {
                Some(row) if row < first => {}
                row => return Ok(row),
            }
        }
    }

    /// The row that may be the header below a title, where the first one has one name.
    fn lower_header(&mut self, found: &[String]) -> Result<Option<LowerHeader>, XlsxError> {
        if found.iter().filter(|name| !name.is_empty()).count() > 1 {
            return Ok(None);
        }
        for _ in 0..30 {
            let Some(line) = self.advance()? else { break };
            let cells = self.row.iter().filter(|cell| !is_blank(&cell.value)).count();
            if cells > 1 {
                return Ok(Some(LowerHeader { line, cells, doubtful: true }));
            }
        }
        Ok(None)
    }

    /// Goes to the next row with a cell. Returns its number, from 1.
    fn advance(&mut self) -> Result<Option<u64>, XlsxError> {
        self.row.clear();
        let mut number = None;
        loop {
            let cell = match self.next.take() {
                Some(cell) => Some(cell),
                None if self.ended => None,
                None => self.cells.next_cell_with_style_id()?.map(|(cell, style)| {
                    let (row, column) = cell.get_position();
                    let timed = self.timed.get(style).is_some_and(|timed| *timed);
                    (row, column, SheetCell { value: cell.get_value().clone(), timed })
                }),
            };
            let Some((row, column, cell)) = cell else {
                self.ended = true;
                break;
            };
            if is_blank(&cell.value) {
                continue;
            }
            if number.is_some_and(|number| number != row) {
                self.next = Some((row, column, cell));
                break;
            }
            let at = column as usize;
            if at >= SHEET_COLUMNS {
                return Err(XlsxError::Unexpected("a cell beyond the last column there can be"));
            }
            number = Some(row);
            if self.row.len() <= at {
                self.row.resize_with(at + 1, || SheetCell { value: DataRef::Empty, timed: false });
            }
            self.row[at] = cell;
        }
        Ok(number.map(|row| u64::from(row) + 1))
    }
}

/// Whether cells of a style show hours or seconds. What stands in quotes or brackets, or behind one of
/// `\_*`, is no part of a date.
fn shows_time(style: &Style) -> bool {
    let code = style.number_format.as_ref().map_or("", |format| format.format_code.as_str());
    let mut rest = code.chars();
    while let Some(next) = rest.next() {
        match next {
            '"' => drop(rest.by_ref().find(|c| *c == '"')),
            '[' => drop(rest.by_ref().find(|c| *c == ']')),
            '\\' | '_' | '*' => drop(rest.next()),
            'h' | 'H' | 's' | 'S' => return true,
            _ => {}
        }
    }
    false
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
fn heading(cell: &SheetCell<'_>, before: f64) -> String {
    table_cell(cell, before).number_text().unwrap_or_default().trim().to_owned()
}

/// What a formula says that has no value.
fn failed(cell: &SheetCell<'_>) -> Option<String> {
    match &cell.value {
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

fn table_cell<'a>(cell: &'a SheetCell<'_>, before: f64) -> TableCell<'a> {
    match &cell.value {
        DataRef::Int(number) => TableCell::Integer(*number),
        DataRef::Float(number) => TableCell::number(as_shown(*number)),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            TableCell::Text(text)
        }
        DataRef::SharedString(text) => TableCell::Text(text),
        DataRef::Bool(value) => TableCell::Boolean(*value),
        DataRef::DateTime(time) => match dates::of_serial(time.as_f64() + before) {
            // Midnight is a time of day where that is shown.
            Some(wall) if time.is_datetime() => match wall.seconds.or(cell.timed.then_some(0)) {
                Some(seconds) => TableCell::Wall(wall.days * DAY + i64::from(seconds)),
                None => i32::try_from(wall.days).map_or(TableCell::Empty, TableCell::Days),
            },
            _ => TableCell::Float(time.as_f64()),
        },
        DataRef::Error(_) | DataRef::Empty => TableCell::Empty,
    }
}

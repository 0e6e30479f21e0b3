//! A party's own data: read, checked against the study, and laid out as flat typed columns.
//!
//! The data are files of this machine, objects of a bucket, or a stream of rows ([`DataLocation`]). Reading
//! streams: only the typed columns are kept (tens of bytes per row, see [`InputReport::memory`]), never the
//! file. All complaints about rows come together, up to [`SHOWN_PER_FILE`] per file, each with file, line or
//! row and column. Complaints may show the offending cell to its owner, but never an identifier; nothing in
//! this module goes to another party. What is dropped by a rule of the study is counted in the
//! [`InputReport`].

mod advertiser;
mod batches;
mod complaints;
mod content;
mod csv_file;
mod csv_parts;
mod dates;
mod encoding;
mod gather;
#[cfg(test)]
mod gather_tests;
pub mod generate;
mod identifiers;
mod input;
mod keys;
mod numbers;
mod parquet_file;
mod peek;
mod program;
mod publisher;
mod refunds;
mod repeats;
mod report;
mod row_store;
mod rows;
mod shared_file;
mod sheet_file;
pub mod sketch;
mod source;
mod stream;
pub mod survey;
mod table;
mod tag;
#[cfg(test)]
mod tests;
mod time_cells;
mod titles;

pub use advertiser::AdvertiserRows;
pub use complaints::SHOWN_PER_FILE;
pub use content::InputContent;
pub use gather::{ReadingMemory, SpoolRoom};
pub use identifiers::RowKeys;
pub use keys::shown;
pub use keys::{IdentifierReport, StepReport, plain_text};
pub use peek::{PeekedTable, peek};
pub use program::ProgramRows;
pub use publisher::PublisherRows;
pub use report::{ArmLeftOut, ColumnReport, InputReport, OutcomeReport, OutcomeSums, clamps_around};
pub use row_store::{KeptRows, RecentBlocks, RowStore};
pub use rows::{RowShape, Rows};
pub use sheet_file::SHEET_BYTES;
pub use source::{DataLocation, FILES, input_bytes, input_version};
pub use stream::RowStream;
pub use table::TableCell;
pub use tag::{RowsHash, RowsTag};
pub use time_cells::TimeReport;

use base::{Error, ErrorPlace, PartyId};
use complaints::Complaints;
use study::format::InputFormat;
use study::time::Clock;
use study::{Categories, PartyRole, Question, Study};
use table::{Files, RowPlace};

/// Reads the rows that a party of a study has in its files or objects.
///
/// # Errors
/// Everything that is wrong with the input, a line each, with file, line and column; or that a cell does not
/// fit its type in the study's program, or that the program does not parse.
///
/// # Panics
/// When there is no such party.
pub fn read_rows<'a>(
    data: impl Into<DataLocation<'a>>,
    study: &Study,
    me: PartyId,
    room: Option<&SpoolRoom<'_>>,
) -> Result<(RowStore, InputReport), Error> {
    let (data, member) = (data.into(), &study.parties[me.index()]);
    match (&study.kind, &member.role) {
        (Question::Lift(_), PartyRole::Publisher) => publisher::read(data, study, room),
        (Question::Lift(_), _) => advertiser::read(data, study, me, room),
        (Question::Program(_) | Question::Match(_), _) => program::read(data, study, &member.name, room),
    }
}

/// One row while it is read: where it is, and where complaints about it go.
struct Row<'a> {
    files: &'a Files,
    place: RowPlace,
    complaints: &'a mut Complaints,
    /// What is said of the form of the files.
    format: &'a InputFormat,
}

impl Row<'_> {
    /// A complaint about a column of this row.
    fn complain(&mut self, column: &str, text: impl FnOnce() -> String) {
        let (files, place) = (self.files, self.place);
        let here = || ErrorPlace { column: Some(column.to_owned()), ..files.stands(place) };
        self.complaints.add(here, || format!("{}, column \"{column}\": {}", files.show(place), text()));
    }

    /// The time in a cell of the column that `seen` is of.
    fn time(&mut self, seen: &mut TimeReport, clock: &Clock, cell: TableCell<'_>) -> Option<u32> {
        match dates::time(cell, &seen.column, clock, self.format) {
            Ok((time, was)) => {
                seen.see(was);
                Some(time)
            }
            Err(problem) => {
                self.complain(&seen.column, || format!("{} {problem}", cell.shown()));
                None
            }
        }
    }

    fn integer(&mut self, column: &str, cell: TableCell<'_>, least: i64, most: i64) -> Option<i64> {
        let value = match cell {
            TableCell::Integer(value) => Some(i128::from(value)),
            TableCell::Text(text) => match numbers::plain(text, self.format.numbers()) {
                Ok(text) => whole_number(&text),
                Err(problem) => {
                    self.complain(column, || format!("{} {problem}", cell.shown()));
                    return None;
                }
            },
            _ => None,
        };
        let missing = cell == TableCell::Empty || matches!(cell, TableCell::Float(value) if value.is_nan());
        let problem = match value {
            None if missing => {
                format!(
                    "not a whole number: write one from {least} to {most}, 0 where nothing is to be counted"
                )
            }
            None if matches!(cell, TableCell::Float(_) | TableCell::Decimal(..)) => {
                "not a whole number: round it".to_owned()
            }
            None => "not a whole number: use digits only, without separators or decimals".to_owned(),
            Some(value) if least == 0 && value < 0 => {
                format!("negative; use a whole number from 0 to {most}")
            }
            Some(value) => match i64::try_from(value) {
                Ok(value) if (least..=most).contains(&value) => return Some(value),
                _ => format!("out of range; use a whole number from {least} to {most}"),
            },
        };
        self.complain(column, || format!("{} is {problem}", cell.shown()));
        None
    }

    fn category(&mut self, categories: &Categories, cell: TableCell<'_>) -> Option<u8> {
        let text = cell.text();
        let index = categories.values.iter().position(|value| Some(value.as_str()) == text.as_deref());
        if index.is_none() {
            self.complain(&categories.column, || {
                format!(
                    "{} is not one of the values the study lists: {}",
                    cell.shown(),
                    categories.values.join(", ")
                )
            });
        }
        index.map(|index| u8::try_from(index).expect("at most 64 values"))
    }
}

/// Digits with an optional sign, of any length that fits 128 bits; saturates beyond.
fn whole_number(text: &str) -> Option<i128> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let bound = if text.starts_with('-') { i128::MIN } else { i128::MAX };
    Some(text.parse().unwrap_or(bound))
}

/// Drops the elements for which `keep` does not hold.
fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    items.retain(|_| *keep.next().expect("one flag per row"));
}

/// Leaves each row the identifiers that are its own. Returns which rows stay.
fn retain_own(identifiers: &mut RowKeys, settled: &repeats::Settled) -> Vec<bool> {
    let rows = identifiers.len() as u32;
    let keep: Vec<bool> = (0..rows).map(|row| settled.stays(identifiers, row)).collect();
    let mut own = RowKeys::new(identifiers.keys());
    for row in (0..rows).filter(|row| keep[*row as usize]) {
        settled.own(identifiers, row).for_each(|identifier| own.push(identifier));
    }
    *identifiers = own;
    keep
}

/// A complaint about an identifier that stands in two rows.
fn repeated(files: &Files, here: RowPlace, there: RowPlace, or: &str) -> String {
    format!(
        "{}: the same identifier as {}; remove one, or agree on {or}",
        files.show(here),
        files.show_beside(there, here)
    )
}

//! Rows of a CSV or Parquet file, or of a folder of them, one at a time, each with its place.

use super::Row;
use super::complaints::Complaints;
use super::{csv_file, parquet_file};
use base::Error;
use std::path::{Path, PathBuf};
use study::reader::{nearest, printable};

/// One cell, before it means anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TableCell<'a> {
    Empty,
    Text(&'a str),
    Integer(i64),
    /// Days since 1970-01-01.
    Days(i32),
    /// Seconds since 1970-01-01T00:00:00Z.
    Seconds(i64),
    Boolean(bool),
}

impl<'a> TableCell<'a> {
    /// The cell as text; numbers as decimals. Dates have no one text form and are refused by the caller.
    pub fn text(self) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            Self::Empty => Some("".into()),
            Self::Text(text) => Some(text.into()),
            Self::Integer(value) => Some(value.to_string().into()),
            Self::Boolean(value) => Some(if value { "true".into() } else { "false".into() }),
            Self::Days(_) | Self::Seconds(_) => None,
        }
    }

    /// The cell for a message.
    pub fn shown(self) -> String {
        match self {
            Self::Empty => "empty".into(),
            Self::Text(text) => format!("\"{}\"", printable(text)),
            Self::Integer(value) => value.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Days(days) => format!("the date {days} days from 1970-01-01"),
            Self::Seconds(seconds) => format!("the time {seconds} s from 1970-01-01"),
        }
    }

    /// Text without white space around it; nothing left is empty.
    pub fn trimmed(self) -> Self {
        match self {
            Self::Text(text) => match text.trim() {
                "" => Self::Empty,
                text => Self::Text(text),
            },
            other => other,
        }
    }
}

/// A row's place in 8 bytes: the file's index and the line (CSV) or row (Parquet), from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPlace(u64);

/// Bits of a place's line number.
const LINE_BITS: u32 = 48;
/// Most files of one folder.
pub const FILES: usize = 1 << 16;

/// The files that were read, to turn places into words.
#[derive(Default)]
pub(crate) struct Files(Vec<FileInfo>);

pub(crate) struct FileInfo {
    pub name: String,
    /// For Parquet, the first row of each row group; empty for CSV.
    pub groups: Vec<u64>,
}

impl Files {
    /// The place of a line or row of the file that is being read.
    pub fn place(&self, line: u64) -> RowPlace {
        RowPlace(((self.0.len() as u64 - 1) << LINE_BITS) | line.min((1 << LINE_BITS) - 1))
    }

    /// `registry.csv, line 3` or `registry.parquet, row 3 (row group 0)`.
    pub fn show(&self, place: RowPlace) -> String {
        let (file, line) = self.parts(place);
        format!("{}, {}", file.name, Self::line(file, line))
    }

    /// The same without the file where it is the file of `beside`.
    pub fn show_beside(&self, place: RowPlace, beside: RowPlace) -> String {
        let (file, line) = self.parts(place);
        if place.0 >> LINE_BITS == beside.0 >> LINE_BITS { Self::line(file, line) } else { self.show(place) }
    }

    fn parts(&self, place: RowPlace) -> (&FileInfo, u64) {
        (&self.0[(place.0 >> LINE_BITS) as usize], place.0 & ((1 << LINE_BITS) - 1))
    }

    fn line(file: &FileInfo, line: u64) -> String {
        match file.groups.partition_point(|&first| first <= line) {
            0 => format!("line {line}"),
            group => format!("row {line} (row group {})", group - 1),
        }
    }
}

/// What reads rows: the columns it wants and what it does with each row.
pub(crate) trait RowSink {
    /// Names of the wanted columns, each once.
    fn columns(&self) -> Vec<String>;
    /// One row: a cell per wanted column. An error stops the reading.
    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error>;
}

/// Reads a file, or all `.csv` and `.parquet` files of a folder in the order of their names, into a sink.
/// Returns the files and the number of rows read.
pub(crate) fn read(
    path: &Path,
    sink: &mut dyn RowSink,
    complaints: &mut Complaints,
) -> Result<(Files, u64), Error> {
    let mut files = Files::default();
    let mut rows = 0;
    let wanted = sink.columns();
    for path in paths(path)? {
        let name = path.display().to_string();
        complaints.begin(&name);
        let file = std::fs::File::open(&path).map_err(|e| Error::io(format!("cannot open {name}"), &e))?;
        let bytes = file.metadata().map_err(|e| Error::io(format!("cannot read {name}"), &e))?.len();
        if bytes == 0 {
            return Err(Error::input(format!("{name}: the file is empty; it needs a header and rows")));
        }
        files.0.push(FileInfo { name, groups: Vec::new() });
        let parquet = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
        rows += if parquet {
            parquet_file::read(file, &wanted, &mut files, sink, complaints)?
        } else {
            csv_file::read(file, &wanted, &mut files, sink, complaints)?
        };
    }
    if rows == 0 {
        complaints.finish()?;
        return Err(Error::input(format!("{}: no rows after the header", path.display())));
    }
    Ok((files, rows))
}

fn paths(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = path.display();
    let failed = |e: &std::io::Error| Error::io(format!("cannot open {shown}"), e);
    if !path.metadata().map_err(|e| failed(&e))?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|e| failed(&e))? {
        let path = entry.map_err(|e| failed(&e))?.path();
        let data = path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("csv") || e.eq_ignore_ascii_case("parquet"));
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if data && !hidden && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    match found.len() {
        0 => Err(Error::input(format!("{shown}: the folder holds no .csv or .parquet file"))),
        n if n > FILES => Err(Error::limit("files of one folder", n as u64, FILES as u64)),
        _ => Ok(found),
    }
}

impl Files {
    pub fn current(&mut self) -> &mut FileInfo {
        self.0.last_mut().expect("a file is being read")
    }

    pub fn name(&self) -> &str {
        &self.0.last().expect("a file is being read").name
    }
}

/// The position of each wanted column among those a file has.
pub(crate) fn locate(file: &str, found: &[String], wanted: &[String]) -> Result<Vec<usize>, Error> {
    let position = |name: &String| {
        let mut at = found.iter().enumerate().filter(|(_, f)| *f == name).map(|(i, _)| i);
        match (at.next(), at.next()) {
            (Some(i), None) => Ok(i),
            (Some(_), Some(_)) => {
                Err(Error::input(format!("{file}: two columns are called \"{name}\"; rename or remove one")))
            }
            _ => {
                let names: Vec<&str> = found.iter().map(String::as_str).collect();
                let hint = nearest(name, &names)
                    .map_or(String::new(), |near| format!("; did you mean \"{}\"?", printable(near)));
                let list: Vec<String> = names.iter().take(50).map(|name| printable(name)).collect();
                let one = names.len() == 1 && names[0].contains([';', '\t', '|']);
                let hint = if one { "; fields are separated by commas" } else { &hint };
                Err(Error::input(format!(
                    "{file}: no column \"{name}\"; the file has: {}{hint}",
                    list.join(", ")
                )))
            }
        }
    };
    wanted.iter().map(position).collect()
}

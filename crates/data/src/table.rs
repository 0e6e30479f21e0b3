//! Rows of files of any format or of a stream, one at a time, each with its place.

use super::Row;
use super::complaints::Complaints;
use super::content::FileHash;
use super::csv_parts::{self, Skipped, TextSpan};
use super::input::InputFile;
use super::shared_file::SharedFile;
use super::source::{self, CsvPacking, DataFormat, DataLocation, InputItem};
use super::{csv_file, parquet_file, sheet_file};
use base::{Error, ErrorPlace};
use parquet::file::reader::Length;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::ops::Range;
use study::format::{InputFormat, TextEncoding};
use study::reader::{nearest, printable};
use study::time::date_of_days;

/// One cell, before it means anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TableCell<'a> {
    /// Nothing.
    Empty,
    /// Text, of which it is not said what it means.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// Days since 1970-01-01.
    Days(i32),
    /// Seconds since 1970-01-01T00:00:00Z.
    Seconds(i64),
    /// The same on a clock on a wall, of which the cell does not say how far it is ahead of UTC.
    Wall(i64),
    /// True or false.
    Boolean(bool),
    /// A number that may have decimals; of these a file has the shortest that give the number back.
    Float(f64),
    /// A number, and how many of its digits are decimals.
    Decimal(i128, i8),
}

impl<'a> TableCell<'a> {
    /// A number of a file that may have decimals: one of the whole numbers that floating point holds exactly
    /// is no other than that whole number.
    pub(crate) fn number(value: f64) -> Self {
        /// Beyond these one form stands for several numbers.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match value.fract() == 0.0 && value.abs() < EXACT {
            true => Self::Integer(value as i64),
            false => Self::Float(value),
        }
    }

    /// The cell as text; whole numbers as decimals. Dates and numbers with decimals have no one text form and
    /// are refused by the caller.
    #[must_use]
    pub fn text(self) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            Self::Empty => Some("".into()),
            Self::Text(text) => Some(text.into()),
            Self::Integer(value) => Some(value.to_string().into()),
            Self::Boolean(value) => Some(if value { "true".into() } else { "false".into() }),
            Self::Days(_) | Self::Seconds(_) | Self::Wall(_) | Self::Float(_) | Self::Decimal(..) => None,
        }
    }

    /// The same, and numbers with all the decimals that they have.
    #[must_use]
    pub fn number_text(self) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            Self::Float(value) => Some(value.to_string().into()),
            Self::Decimal(value, places) => {
                let sign = if value < 0 { "-" } else { "" };
                let places = usize::from(places.unsigned_abs());
                let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
                let (whole, part) = digits.split_at(digits.len() - places);
                Some(
                    if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
                        .into(),
                )
            }
            other => other.text(),
        }
    }

    /// The cell for a message.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::Empty => "empty".into(),
            Self::Text(text) => format!("\"{}\"", printable(text)),
            Self::Integer(value) => value.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Days(days) => format!("the date {}", date_of_days(days.into())),
            Self::Seconds(seconds) => format!("{}Z", Self::Wall(seconds).shown()),
            Self::Wall(seconds) => {
                let (day, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
                let (hours, minutes) = (rest / 3_600, rest / 60 % 60);
                format!("the time {}T{hours:02}:{minutes:02}:{:02}", date_of_days(day), rest % 60)
            }
            Self::Float(_) | Self::Decimal(..) => self.number_text().unwrap_or_default().into_owned(),
        }
    }

    /// Text without white space around it; nothing left is empty.
    #[must_use]
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

impl RowPlace {
    /// As a number that sorts as places do.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The place of a number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// Bits of a place's line number.
const LINE_BITS: u32 = 48;

/// The files that were read, to turn places into words.
#[derive(Default)]
pub(crate) struct Files {
    /// The number of the first of these among all of a party.
    first: usize,
    all: Vec<FileInfo>,
    /// What form they turned out to have, where it is not the usual one; each once.
    forms: Vec<String>,
}

#[derive(Default)]
pub(crate) struct FileInfo {
    pub name: String,
    /// For Parquet, the first row of each row group; else empty.
    pub groups: Vec<u64>,
    /// For spreadsheets, the sheet.
    pub sheet: Option<String>,
    /// Whether it has rows, and no lines.
    pub rows: bool,
    /// Of its bytes, where that was wanted and all were read.
    pub hash: Option<FileHash>,
}

impl Files {
    /// The place of a line or row of the file that is being read.
    pub fn place(&self, line: u64) -> RowPlace {
        let file = (self.first + self.all.len() - 1) as u64;
        RowPlace((file << LINE_BITS) | line.min((1 << LINE_BITS) - 1))
    }

    /// Whether what is being read was handed over, and is no file.
    pub fn current_has_rows(&self) -> bool {
        self.all.last().is_some_and(|file| file.rows)
    }

    /// Notes a form that a file turned out to have, in words.
    pub fn found(&mut self, form: String) {
        if !self.forms.contains(&form) {
            self.forms.push(form);
        }
    }

    /// The forms that files turned out to have.
    pub fn forms(&self) -> &[String] {
        &self.forms
    }

    /// Hashes of files that were read to their ends, by number, where these were wanted.
    pub fn hashes(&self) -> BTreeMap<usize, FileHash> {
        let hashes = self.all.iter().enumerate().filter_map(|(number, file)| Some((number, file.hash?)));
        hashes.collect()
    }

    /// `registry.csv, line 3`, `registry.parquet, row 3 (row group 0)` or `registry.xlsx, sheet "A", row 3`.
    pub fn show(&self, place: RowPlace) -> String {
        let (file, line) = self.parts(place);
        match &file.sheet {
            Some(sheet) => format!("{}, sheet \"{sheet}\", {}", file.name, Self::line(file, line)),
            None => format!("{}, {}", file.name, Self::line(file, line)),
        }
    }

    /// The same for a program.
    pub fn stands(&self, place: RowPlace) -> ErrorPlace {
        let (file, line) = self.parts(place);
        ErrorPlace { file: file.name.clone(), line, column: None }
    }

    /// The same without the file where it is the file of `beside`.
    pub fn show_beside(&self, place: RowPlace, beside: RowPlace) -> String {
        let (file, line) = self.parts(place);
        if place.0 >> LINE_BITS == beside.0 >> LINE_BITS { Self::line(file, line) } else { self.show(place) }
    }

    fn parts(&self, place: RowPlace) -> (&FileInfo, u64) {
        (&self.all[(place.0 >> LINE_BITS) as usize - self.first], place.0 & ((1 << LINE_BITS) - 1))
    }

    fn line(file: &FileInfo, line: u64) -> String {
        match file.groups.partition_point(|&first| first <= line) {
            0 if file.sheet.is_some() || file.rows => format!("row {line}"),
            0 => format!("line {line}"),
            group => format!("row {line} (row group {})", group - 1),
        }
    }
}

/// What reads rows: the columns it wants and what it does with each row.
pub(crate) trait RowSink {
    /// Names of the wanted columns, each once.
    fn columns(&self) -> Vec<String>;
    /// Told the names of all columns that a file has, before it is asked which it wants.
    fn all_columns(&mut self, _found: &[String]) {}
    /// Whether it looks at all columns, of which many are in no study: what is wrong with a cell of theirs
    /// is wrong when somebody wants it, and until then the cell is empty.
    fn surveys(&self) -> bool {
        false
    }
    /// Whether it takes another row.
    fn takes_more(&self) -> bool {
        true
    }
    /// One row: a cell per wanted column. An error stops the reading.
    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error>;
}

/// A file or object, or some row groups of one.
#[derive(Clone)]
pub(crate) struct FilePart {
    /// Its number among the files of a party.
    number: usize,
    item: InputItem,
    /// Of a Parquet file that is read in parts; else all.
    groups: Option<Range<usize>>,
    /// The same of a CSV file.
    span: Option<TextSpan>,
    /// A file of this machine that is read in parts, and in which form.
    shared: Option<(SharedFile, DataFormat)>,
    /// Whether the hash of its bytes is wanted.
    pub hashed: bool,
}

/// The files or objects that `data` names (`docs/cli.md`), in their order. Where these are fewer than
/// `least`, those of Parquet in parts, and those of CSV that can be cut.
pub(crate) fn file_parts(data: DataLocation<'_>, least: usize) -> Result<Vec<FilePart>, Error> {
    let items = source::files(data)?;
    let each = least.div_ceil(items.len().max(1));
    let mut parts = Vec::with_capacity(items.len());
    for (number, item) in items.into_iter().enumerate() {
        // What cannot be opened is one part, and whoever reads it says why.
        let opened = if each > 1 { item.open().ok() } else { None };
        let groups = opened.as_ref().map_or(0, row_groups);
        let shared = opened.and_then(|(file, form)| Some((file.shared()?, form)));
        let spans = shared.as_ref().and_then(|shared| text_spans(shared, data.format, each));
        let size = groups.div_ceil(each).max(1);
        let shared = shared.filter(|_| groups > 0 || spans.is_some());
        let mut part = |groups, span| {
            let (item, shared) = (item.clone(), shared.clone());
            parts.push(FilePart { number, item, groups, span, shared, hashed: false });
        };
        match (groups, spans) {
            (0, None) => part(None, None),
            (0, Some(spans)) => spans.into_iter().for_each(|span| part(None, Some(span))),
            _ => (0..groups).step_by(size).for_each(|from| part(Some(from..groups.min(from + size)), None)),
        }
    }
    Ok(parts)
}

/// Row groups of a Parquet file; 0 of any other, and of what is none.
fn row_groups((file, form): &(InputFile, DataFormat)) -> usize {
    match form {
        DataFormat::Parquet => parquet_file::row_groups(file).unwrap_or(0),
        _ => 0,
    }
}

/// Parts of a plain CSV file of this machine, in UTF-8; none of any other.
fn text_spans(
    (file, form): &(SharedFile, DataFormat),
    format: &InputFormat,
    most: usize,
) -> Option<Vec<TextSpan>> {
    let is_text = *form == DataFormat::Csv(CsvPacking::Plain);
    let is_utf8 = matches!(format.encoding, None | Some(TextEncoding::Utf8));
    let is_whole = format.header_line.is_none_or(|line| line == 1);
    if is_text && is_utf8 && is_whole { csv_parts::spans(file, most) } else { None }
}

/// Reads a part of a party's files into a sink. Returns the file and the number of rows read.
pub(crate) fn read_part(
    part: &FilePart,
    format: &InputFormat,
    sink: &mut dyn RowSink,
    complaints: &mut Complaints,
) -> Result<(Files, u64), Error> {
    let name = part.item.name();
    complaints.begin(&name);
    let rows = matches!(part.item, InputItem::Rows(_));
    let all = vec![FileInfo { name: name.clone(), rows, ..FileInfo::default() }];
    let mut files = Files { first: part.number, all, forms: Vec::new() };
    let mut table = TableReading { name, format, files: &mut files, sink, complaints };
    if let InputItem::Rows(stream) = &part.item {
        table.complaints.of_rows();
        let rows = stream.read(&mut table)?;
        return Ok((files, rows));
    }
    let (mut file, form) = match &part.shared {
        Some((shared, form)) => (InputFile::Local(shared.clone(), None), *form),
        None => part.item.open()?,
    };
    if !matches!(form, DataFormat::Csv(_)) {
        table.complaints.of_rows();
    }
    let (failure, size) = (file.failure(), Length::len(&file));
    let met = if part.hashed { file.watch() } else { None };
    let read = match form {
        DataFormat::Parquet => parquet_file::read((file, part.groups.as_ref()), &mut table),
        DataFormat::Csv(packing) => match (&part.span, &part.shared) {
            (Some(span), Some((shared, _))) => csv_file::read(span.open(shared), span.skipped(), &mut table),
            _ => {
                let text = packing.unpacked(file.text());
                text.and_then(|text| csv_file::read(text, Skipped::default(), &mut table))
            }
        },
        DataFormat::Sheet => sheet_file::read(file, &mut table),
    };
    if let Some((shared, _)) = &part.shared {
        // Whatever was read, or found wrong, may be of no file that there ever was.
        shared.expect_unchanged(&files.all[0].name)?;
    }
    // What hid the rows from a decoder is not the decoder's to say.
    let rows = read.map_err(|error| failure.first().unwrap_or(error))?;
    files.all.iter_mut().for_each(|file| file.hash = met.as_ref().and_then(|met| met.whole(size)));
    Ok((files, rows))
}

/// Reads the files or objects that `data` names, in their order, into a sink. Returns the files and the
/// number of rows read.
pub(crate) fn read(
    data: DataLocation<'_>,
    sink: &mut dyn RowSink,
    complaints: &mut Complaints,
) -> Result<(Files, u64), Error> {
    let mut files = Files::default();
    let mut rows = 0;
    for part in file_parts(data, 1)? {
        if !sink.takes_more() {
            break;
        }
        let (file, more) = read_part(&part, data.format, sink, complaints)?;
        files.absorb(file);
        rows += more;
    }
    some_rows(rows, data, complaints)?;
    Ok((files, rows))
}

/// Refuses files that hold nothing.
pub(crate) fn some_rows(rows: u64, data: DataLocation<'_>, complaints: &mut Complaints) -> Result<(), Error> {
    if rows > 0 {
        return Ok(());
    }
    complaints.finish()?;
    Err(Error::input(format!("{}: no rows after the header", data.path.display())))
}

impl Files {
    /// Adds those of a part that comes behind, which may be of the last file.
    pub fn absorb(&mut self, part: Self) {
        let known = (self.first + self.all.len()).saturating_sub(part.first);
        self.all.extend(part.all.into_iter().skip(known));
        part.forms.into_iter().for_each(|form| self.found(form));
    }
}

/// A file or object while it is read, whatever its format.
pub(crate) struct TableReading<'a> {
    pub name: String,
    /// What is said of the form of the files.
    pub format: &'a InputFormat,
    pub files: &'a mut Files,
    pub sink: &'a mut dyn RowSink,
    pub complaints: &'a mut Complaints,
}

impl TableReading<'_> {
    pub fn current(&mut self) -> &mut FileInfo {
        self.files.all.last_mut().expect("a file is being read")
    }

    /// What is wrong with the file as a whole.
    pub fn refused(&self, what: impl Display) -> Error {
        Error::input(format!("{}: {what}", self.name))
    }

    /// What is wrong with a column as a whole.
    pub fn refused_column(&self, column: &str, what: impl Display) -> Error {
        self.at_column(column, Error::input(format!("{}, column \"{column}\": {what}", self.name)))
    }

    /// An error about a column as a whole stands in the header, or in the first row where there is none.
    fn at_column(&self, column: &str, error: Error) -> Error {
        let line = self.format.header_line.unwrap_or(1);
        error.standing_at(vec![ErrorPlace { file: self.name.clone(), line, column: Some(column.to_owned()) }])
    }

    /// The row on a line.
    pub fn row(&mut self, line: u64) -> Row<'_> {
        let place = self.files.place(line);
        Row { files: self.files, place, complaints: self.complaints, format: self.format }
    }

    /// Hands a row's cells on.
    pub fn take(&mut self, line: u64, cells: &[TableCell<'_>]) -> Result<(), Error> {
        let place = self.files.place(line);
        let Self { files, complaints, format, .. } = self;
        self.sink.row(&mut Row { files, place, complaints, format }, cells)
    }

    /// The position of each column that is wanted among those the file has.
    pub fn locate(&mut self, found: &[String]) -> Result<Vec<usize>, Error> {
        self.sink.all_columns(found);
        // A sink may want all of very many.
        let mut places: HashMap<&str, Option<usize>> = HashMap::with_capacity(found.len());
        for (place, name) in found.iter().enumerate() {
            places.entry(name).and_modify(|one| *one = None).or_insert(Some(place));
        }
        let position = |name: &String| {
            let name = self.format.in_file(name);
            match places.get(name) {
                Some(Some(place)) => Ok(*place),
                Some(None) => {
                    let twice = format!("two columns are called \"{name}\"; rename or remove one");
                    Err(self.at_column(name, self.refused(twice)))
                }
                None => Err(self.at_column(name, self.no_column(name, found))),
            }
        };
        self.sink.columns().iter().map(position).collect()
    }

    fn no_column(&self, name: &str, found: &[String]) -> Error {
        // What pandas calls an index without a name is nobody's column.
        let named = found.iter().map(String::as_str).filter(|name| !name.starts_with("__index_level_"));
        let names: Vec<&str> = named.collect();
        let hint = nearest(name, &names)
            .map_or(String::new(), |near| format!("; did you mean \"{}\"?", printable(near)));
        let list: Vec<String> = names.iter().take(50).map(|name| printable(name)).collect();
        let one = names.len() == 1 && names[0].contains([',', ';', '\t', '|']);
        let hint = match one {
            true => "; does `separator` under [format] say what stands between fields?",
            false => &hint,
        };
        let it = if self.files.current_has_rows() { "it" } else { "the file" };
        self.refused(format!("no column \"{name}\"; {it} has: {}{hint}", list.join(", ")))
    }
}

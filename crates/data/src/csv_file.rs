//! CSV: a header line, fields with one character between them, quotes as in RFC 4180, in UTF-8 or as it is
//! said (a byte order mark is skipped).

use super::csv_parts::Skipped;
use super::encoding::{Undecodable, decoded};
use super::table::{TableCell, TableReading};
use super::titles;
use base::{Error, limits};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::rc::Rc;
use study::format::{SEPARATORS, TextEncoding, separator_name};

/// Reads a text, or the header and a part of one, into a table. Gives its rows.
pub(super) fn read(
    text: Box<dyn Read>,
    skipped: Skipped,
    table: &mut TableReading<'_>,
) -> Result<u64, Error> {
    let name = table.name.clone();
    let decoded = decoded(text, table.format.encoding).map_err(|e| failed(&name, e.into()))?;
    let (text, encoding) = decoded.map_err(|wrong| table.refused(wrong))?;
    if let Some(encoding) = encoding {
        table.files.found(format!("encoding \"{}\"", encoding.name()));
    }
    let (text, skipped) = from_header(text, skipped, table)?;
    let lines = Rc::new(RefCell::new(Lines { skipped, ..Lines::default() }));
    let mut checked = Checked::new(text, Rc::clone(&lines));
    let (head, ended) = first_record(&mut checked).map_err(|e| failed(&name, e.into()))?;
    if is_separator_line(&head[..ended]) {
        return Err(Error::input(format!(
            "{name}, line 1: a line for a spreadsheet program; remove it, or add header_line = 2 under \
             [format] of the party file (or --header-line 2)"
        )));
    }
    let separator = match table.format.separator {
        Some(said) => said,
        None => separator(&head[..ended], table)?,
    };
    if separator != b',' {
        table.files.found(format!("separator {}", separator_name(separator)));
    }
    let untold = table.format.header_line.is_none() && skipped == Skipped::default();
    let lower = titles::lower_header(&head, separator, fields).filter(|_| untold);
    let text = QuoteCheck::new(Cursor::new(head).chain(checked), Rc::clone(&lines), separator);
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator).buffer_capacity(1 << 16).from_reader(text);
    let header = reader.headers().map_err(|e| failed(&name, e))?;
    let found: Vec<String> = header.iter().map(|cell| cell.trim().to_owned()).collect();
    lower.map_or(Ok(()), |lower| lower.refuse(table, &found, "line"))?;
    let positions = table.locate(&found)?;
    let (mut record, mut rows) = (csv::StringRecord::new(), 0);
    while table.sink.takes_more() {
        lines.borrow_mut().since_record = 0;
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                rows += 1;
                let line = lines.borrow_mut().of_record(record.position());
                let cells: Vec<TableCell<'_>> = positions.iter().map(|&i| cell(&record[i])).collect();
                table.take(line, &cells)?;
            }
            Err(error) => match error.kind() {
                csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                    rows += 1;
                    let line = lines.borrow_mut().of_record(pos.as_ref());
                    let missing = match separator {
                        b',' => "comma".to_owned(),
                        other => separator_name(other),
                    };
                    let here = || table.files.stands(table.files.place(line));
                    table.complaints.add(here, || {
                        format!(
                            "{name}, line {line}: {len} fields where the header has {expected_len}; is a \
                             quote or a {missing} missing?"
                        )
                    });
                }
                _ => return Err(failed(&name, error)),
            },
        }
    }
    Ok(rows)
}

/// The text from the line on that is said to be its header.
fn from_header(
    text: Box<dyn Read>,
    skipped: Skipped,
    table: &TableReading<'_>,
) -> Result<(Box<dyn Read>, Skipped), Error> {
    let Some(line @ 2..) = table.format.header_line else { return Ok((text, skipped)) };
    let read = titles::behind(text, line - 1).map_err(|e| failed(&table.name, e.into()))?;
    read.map_err(|lines| table.refused(format!("header_line is {line}, and the file has {lines} lines")))
}

/// Whether a line tells a spreadsheet program which separator the file has: `sep=;`.
fn is_separator_line(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    line.len() == 5 && line[..4].eq_ignore_ascii_case(b"sep=")
}

/// What was read so that the first record is there, and where that one ends: at a line end that stands in no
/// quotes.
fn first_record(text: &mut impl Read) -> io::Result<(Vec<u8>, usize)> {
    let (mut head, mut block, mut quoted, mut begun) = (Vec::new(), vec![0; 1 << 16], false, false);
    loop {
        let read = text.read(&mut block)?;
        if read == 0 {
            let all = head.len();
            return Ok((head, all));
        }
        let from = head.len();
        head.extend_from_slice(&block[..read]);
        for (at, &byte) in head.iter().enumerate().skip(from) {
            match byte {
                b'"' => (quoted, begun) = (!quoted, true),
                // Empty lines stand before no header.
                b'\n' | b'\r' if !quoted && begun => return Ok((head, at)),
                b'\n' | b'\r' => {}
                _ => begun = true,
            }
        }
    }
}

/// The character between the fields of a header: the only one of those there are, or the only one by which
/// the header has all columns that are wanted.
fn separator(header: &[u8], table: &TableReading<'_>) -> Result<u8, Error> {
    let met: Vec<u8> = SEPARATORS.into_iter().filter(|one| fields(header, *one).len() > 1).collect();
    let one = match met[..] {
        [] => Some(b','),
        [one] => Some(one),
        _ => {
            let wanted = table.sink.columns();
            let fits = |one: &u8| {
                let fields = fields(header, *one);
                wanted.iter().all(|column| fields.iter().any(|field| field == table.format.in_file(column)))
            };
            let mut fitting = met.iter().copied().filter(fits);
            fitting.next().filter(|_| fitting.next().is_none())
        }
    };
    one.ok_or_else(|| {
        let names: Vec<String> = met.iter().map(|one| separator_name(*one)).collect();
        table.refused(format!(
            "the header line has {}, and any of them may stand between its fields; say which does: \
             separator = {} under [format] of the party file, or --separator",
            names.join(" and "),
            names[0]
        ))
    })
}

/// The fields of a header with this separator.
fn fields(header: &[u8], separator: u8) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).from_reader(header);
    let fields = reader.headers().map(|record| record.iter().map(|cell| cell.trim().to_owned()).collect());
    fields.unwrap_or_default()
}

fn cell(text: &str) -> TableCell<'_> {
    if text.is_empty() { TableCell::Empty } else { TableCell::Text(text) }
}

fn failed(name: &str, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => match error.get_ref().and_then(|e| e.downcast_ref::<BadBytes>()) {
            Some(bad) => Error::input(format!("{name}{bad}")),
            // The reading of a file has a number; what a packed file holds is damaged without one.
            None if error.raw_os_error().is_none() => {
                Error::input(format!("{name}: damaged: {error}; was it cut short? Pack it again"))
            }
            None => Error::io(format!("cannot read {name}"), &error),
        },
        kind => Error::input(format!("{name}: not CSV: {}", csv_text(&kind))),
    }
}

fn csv_text(kind: &csv::ErrorKind) -> String {
    match kind {
        csv::ErrorKind::Utf8 { err, .. } => err.to_string(),
        other => format!("{other:?}"),
    }
}

/// What no CSV file of ours may hold.
#[derive(Debug)]
enum BadBytes {
    NotUtf8 { line: u64, byte: u64 },
    LongLine { line: u64 },
    LongRecord { line: u64 },
    Undecodable { line: u64, encoding: TextEncoding },
    OpenQuote { line: u64 },
}

impl fmt::Display for BadBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cap = limits::LINE_BYTES;
        match self {
            Self::NotUtf8 { line, byte } => {
                write!(
                    f,
                    ", line {line}: not UTF-8 at byte {byte} of the file; save it as UTF-8, or, if it is \
                     Latin-1 or Windows-1252, add encoding = \"windows-1252\" under [format] of the party \
                     file (or --encoding windows-1252)"
                )
            }
            Self::Undecodable { line, encoding } => {
                write!(
                    f,
                    ", after line {line}: a character that is none in {}; was the file cut short, or is it \
                     in another encoding?",
                    encoding.name()
                )
            }
            Self::OpenQuote { line } => {
                write!(
                    f,
                    ", line {line}: a field begins with a quote and goes on over later lines, and no quote \
                     before a separator or the end of a line closes it: remove the quote, close it, or write \
                     quotes within quotes twice"
                )
            }
            Self::LongLine { line } => {
                write!(f, ", line {line}: longer than {cap} bytes; is it a CSV file?")
            }
            Self::LongRecord { line } => {
                write!(f, ", before line {line}: a row longer than {cap} bytes; is a quote not closed?")
            }
        }
    }
}

impl std::error::Error for BadBytes {}

/// Lines of the file as an editor counts them: LF, CRLF and a lone CR each end one, also between quotes.
///
/// The reader of records counts LF alone, and its records begin right behind the byte that ended the one
/// before: on the LF of a CRLF, or on empty lines, which it skips. It only says at which byte that is.
#[derive(Default)]
struct Lines {
    /// The first byte of each line that is not empty, and its number, of what was read and not yet asked for.
    starts: VecDeque<(u64, u64)>,
    /// Bytes read, line ends met.
    offset: u64,
    ended: u64,
    /// Whether the last byte ended a line, and was a CR.
    at_start: bool,
    after_cr: bool,
    /// Bytes of the line that is being read, and since the last record was asked for.
    line_bytes: usize,
    since_record: usize,
    /// What of the file lies between the header and a part.
    skipped: Skipped,
}

impl Lines {
    /// The line of the last byte.
    fn line(&self) -> u64 {
        let skipped = if self.offset >= self.skipped.at { self.skipped.lines } else { 0 };
        self.ended + skipped + 1
    }

    /// Which byte of the file a byte of what is read is.
    fn in_file(&self, byte: u64) -> u64 {
        if byte >= self.skipped.at { byte + self.skipped.bytes } else { byte }
    }

    /// Counts bytes. Whether no line is too long; where one is, it is the line of the last byte that was
    /// counted.
    fn count(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            if !self.content(end.unwrap_or(bytes.len())) {
                return false;
            }
            let Some(end) = end else { break };
            self.line_end(bytes[end]);
            bytes = &bytes[end + 1..];
        }
        true
    }

    /// Counts so many bytes that end no line.
    fn content(&mut self, count: usize) -> bool {
        if count == 0 {
            return true;
        }
        if self.offset == 0 || self.at_start {
            self.starts.push_back((self.offset, self.line()));
        }
        (self.at_start, self.after_cr) = (false, false);
        self.line_bytes += count;
        self.offset += count as u64;
        self.line_bytes <= limits::LINE_BYTES
    }

    fn line_end(&mut self, byte: u8) {
        if byte == b'\r' || !self.after_cr {
            self.ended += 1;
            self.line_bytes = 0;
        }
        (self.at_start, self.after_cr) = (true, byte == b'\r');
        self.offset += 1;
    }

    /// The line on which a record begins: the first one with content from where its reader was.
    fn of_record(&mut self, position: Option<&csv::Position>) -> u64 {
        let from = position.map_or(0, csv::Position::byte);
        while self.starts.front().is_some_and(|(start, _)| *start < from) {
            self.starts.pop_front();
        }
        self.starts.front().map_or_else(|| self.line(), |(_, line)| *line)
    }

    /// The line of a byte of the record that is being read.
    fn of_byte(&self, offset: u64) -> u64 {
        let before = self.starts.iter().rev().find(|(start, _)| *start <= offset);
        before.map_or_else(|| self.line(), |(_, line)| *line)
    }
}

/// Passes bytes on after checking that they are UTF-8 and that no line and no quoted row grows without bound.
struct Checked<R> {
    inner: R,
    /// The first bytes of a character whose rest has not come yet.
    partial: Vec<u8>,
    lines: Rc<RefCell<Lines>>,
}

impl<R: Read> Checked<R> {
    fn new(inner: R, lines: Rc<RefCell<Lines>>) -> Self {
        Self { inner, partial: Vec::new(), lines }
    }

    /// How many of `bytes` come before the first that is not UTF-8; nothing where all are. A character may go
    /// on in what is read next.
    fn utf8(&mut self, bytes: &[u8]) -> Option<usize> {
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        let mut text = std::mem::take(&mut self.partial);
        if let Err(error) = std::str::from_utf8(&text) {
            let good = error.valid_up_to();
            if error.error_len().is_some() {
                self.partial = text.split_off(good);
                return Some(good.saturating_sub(before));
            }
            self.partial = text.split_off(good);
        }
        None
    }

    fn check(&mut self, bytes: &[u8], room: usize) -> Result<(), BadBytes> {
        let offset = self.lines.borrow().offset;
        let before = self.partial.len();
        let bad = self.utf8(bytes);
        let mut lines = self.lines.borrow_mut();
        let good = &bytes[..bad.unwrap_or(bytes.len())];
        if !lines.count(good) {
            return Err(BadBytes::LongLine { line: lines.line() });
        }
        if let Some(good) = bad {
            // A character that began in an earlier read stands before these bytes.
            let byte = offset + good as u64 - if good == 0 { before as u64 } else { 0 };
            return Err(BadBytes::NotUtf8 { line: lines.line(), byte: lines.in_file(byte) });
        }
        lines.since_record += bytes.len();
        match lines.since_record > limits::LINE_BYTES + room {
            true => Err(BadBytes::LongRecord { line: lines.line() }),
            false => Ok(()),
        }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into).map_err(|error| {
            match error.get_ref().and_then(|e| e.downcast_ref::<Undecodable>()) {
                Some(Undecodable { encoding }) => {
                    let line = self.lines.borrow().ended;
                    io::Error::other(BadBytes::Undecodable { line, encoding: *encoding })
                }
                None => error,
            }
        })?;
        if n == 0 && !self.partial.is_empty() {
            let lines = self.lines.borrow();
            let byte = lines.in_file(lines.offset - self.partial.len() as u64);
            return Err(io::Error::other(BadBytes::NotUtf8 { line: lines.line(), byte }));
        }
        self.check(&into[..n], into.len()).map_err(io::Error::other)?;
        Ok(n)
    }
}

/// Passes bytes on, and refuses a quote that is not closed as RFC 4180 has it where rows would be lost by
/// that: all up to the next quote, or to the end of the file, would be the text of one field.
struct QuoteCheck<R> {
    inner: R,
    lines: Rc<RefCell<Lines>>,
    separator: u8,
    /// Bytes passed on, and the last of them.
    offset: u64,
    last: u8,
    open: Option<QuotedField>,
}

/// A field that began with a quote.
#[derive(Clone, Copy)]
struct QuotedField {
    /// Where.
    offset: u64,
    /// Whether a line ended in it.
    crossed: bool,
    /// Whether its last byte is a quote, which ends it or is the first of two.
    quote: bool,
}

impl<R: Read> QuoteCheck<R> {
    fn new(inner: R, lines: Rc<RefCell<Lines>>, separator: u8) -> Self {
        Self { inner, lines, separator, offset: 0, last: b'\n', open: None }
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.separator || matches!(byte, b'\n' | b'\r')
    }

    fn wrong(&self, field: QuotedField) -> BadBytes {
        BadBytes::OpenQuote { line: self.lines.borrow().of_byte(field.offset) }
    }

    fn check(&mut self, bytes: &[u8]) -> Result<(), BadBytes> {
        let mut at = 0;
        while at < bytes.len() {
            let next = memchr::memchr(b'"', &bytes[at..]).map_or(bytes.len(), |next| at + next);
            at = match self.open {
                None if next == bytes.len() => next,
                None => {
                    let before = if next == 0 { self.last } else { bytes[next - 1] };
                    let offset = self.offset + next as u64;
                    // Elsewhere it is a character like others.
                    let begins = self.ends_field(before);
                    self.open = begins.then_some(QuotedField { offset, crossed: false, quote: false });
                    next + 1
                }
                Some(field) if !field.quote => {
                    let crossed = field.crossed || memchr::memchr2(b'\n', b'\r', &bytes[at..next]).is_some();
                    self.open = Some(QuotedField { crossed, quote: next < bytes.len(), ..field });
                    next + 1
                }
                Some(field) if bytes[at] == b'"' => {
                    self.open = Some(QuotedField { quote: false, ..field });
                    at + 1
                }
                Some(field) if field.crossed && !self.ends_field(bytes[at]) => return Err(self.wrong(field)),
                Some(_) => {
                    self.open = None;
                    at
                }
            };
        }
        self.offset += bytes.len() as u64;
        self.last = bytes.last().copied().unwrap_or(self.last);
        Ok(())
    }
}

impl<R: Read> Read for QuoteCheck<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        match self.open.filter(|field| count == 0 && field.crossed && !field.quote) {
            Some(field) if !into.is_empty() => Err(io::Error::other(self.wrong(field))),
            _ => self.check(&into[..count]).map(|()| count).map_err(io::Error::other),
        }
    }
}

#[cfg(test)]
mod tests;

//! CSV: comma-separated, a header line, UTF-8 (a byte order mark is skipped), quotes as in RFC 4180.

use super::complaints::Complaints;
use super::table::{Cell, Files, Sink, locate};
use base::{Error, limits};
use std::cell::Cell as Shared;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

pub(super) fn read(
    file: File,
    wanted: &[String],
    files: &mut Files,
    sink: &mut dyn Sink,
    complaints: &mut Complaints,
) -> Result<u64, Error> {
    let since_record = Rc::new(Shared::new(0));
    let checked = Checked::new(file, Rc::clone(&since_record));
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(checked);
    let name = files.name().to_owned();
    let header = reader.headers().map_err(|e| failed(&name, e))?;
    let found: Vec<String> = header.iter().map(|cell| cell.trim().to_owned()).collect();
    let positions = locate(&name, &found, wanted)?;
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    loop {
        since_record.set(0);
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(rows),
            Ok(true) => {
                rows += 1;
                let line = record.position().map_or(0, csv::Position::line);
                let cells: Vec<Cell<'_>> = positions.iter().map(|&i| cell(&record[i])).collect();
                sink.row(files, files.place(line), &cells, complaints)?;
            }
            Err(error) => match error.kind() {
                csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                    rows += 1;
                    let line = pos.as_ref().map_or(0, csv::Position::line);
                    complaints.add(|| {
                        format!(
                            "{name}, line {line}: {len} fields where the header has {expected_len}; is a quote or a \
                             comma missing?"
                        )
                    });
                }
                _ => return Err(failed(&name, error)),
            },
        }
    }
}

fn cell(text: &str) -> Cell<'_> {
    if text.is_empty() { Cell::Empty } else { Cell::Text(text) }
}

fn failed(name: &str, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => match error.get_ref().and_then(|e| e.downcast_ref::<BadBytes>()) {
            Some(bad) => Error::input(format!("{name}{bad}")),
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
}

impl fmt::Display for BadBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cap = limits::LINE_BYTES;
        match self {
            Self::NotUtf8 { line, byte } => {
                write!(f, ", line {line}: not UTF-8 at byte {byte} of the file; save it as UTF-8")
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

/// Passes bytes on after checking that they are UTF-8 and that no line and no quoted row grows without bound.
struct Checked<R> {
    inner: R,
    /// The first bytes of a character whose rest has not come yet.
    partial: Vec<u8>,
    /// Bytes before this read.
    offset: u64,
    line: u64,
    line_bytes: usize,
    since_record: Rc<Shared<usize>>,
}

impl<R: Read> Checked<R> {
    fn new(inner: R, since_record: Rc<Shared<usize>>) -> Self {
        Self { inner, partial: Vec::new(), offset: 0, line: 1, line_bytes: 0, since_record }
    }

    fn lines(&mut self, bytes: &[u8]) -> Result<(), BadBytes> {
        for (i, piece) in bytes.split(|&b| b == b'\n').enumerate() {
            if i > 0 {
                self.line += 1;
                self.line_bytes = 0;
            }
            self.line_bytes += piece.len();
            if self.line_bytes > limits::LINE_BYTES {
                return Err(BadBytes::LongLine { line: self.line });
            }
        }
        Ok(())
    }

    fn utf8(&mut self, bytes: &[u8]) -> Result<(), BadBytes> {
        let start = self.offset - self.partial.len() as u64;
        self.partial.extend_from_slice(bytes);
        let mut text = std::mem::take(&mut self.partial);
        if let Err(error) = std::str::from_utf8(&text) {
            let good = error.valid_up_to();
            if error.error_len().is_some() {
                let before = bytes.len().min(good);
                let line = self.line + bytes[..before].iter().filter(|&&b| b == b'\n').count() as u64;
                return Err(BadBytes::NotUtf8 { line, byte: start + good as u64 });
            }
            self.partial = text.split_off(good);
        }
        Ok(())
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        if n == 0 && !self.partial.is_empty() {
            let byte = self.offset - self.partial.len() as u64;
            return Err(io::Error::other(BadBytes::NotUtf8 { line: self.line, byte }));
        }
        let bytes = &into[..n];
        self.utf8(bytes).and_then(|()| self.lines(bytes)).map_err(io::Error::other)?;
        self.offset += n as u64;
        self.since_record.set(self.since_record.get() + n);
        if self.since_record.get() > limits::LINE_BYTES + into.len() {
            return Err(io::Error::other(BadBytes::LongRecord { line: self.line }));
        }
        Ok(n)
    }
}

//! What rows are read from, whether on this machine or in a bucket: from its beginning to its end, for CSV,
//! or a range here and there, for Parquet.
//!
//! Objects are asked for in few requests, and little of them is held: of CSV [`PART`] bytes and as many that
//! are on their way, of Parquet [`WINDOWS`] bytes over all columns that are wanted, each byte of them once.

use crate::content::MetBytes;
use crate::shared_file::SharedFile;
use base::Error;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{InputObject, InputPart, PART_BYTES};

/// Bytes of one request.
const PART: u64 = PART_BYTES as u64;
/// Bytes of an object that are held for all wanted columns of a Parquet file together.
const WINDOWS: u64 = 32 << 20;
/// Bytes of a column that are asked for at least, where it has as many.
const WINDOW_LEAST: u64 = 1 << 18;
/// Bytes at the end of a Parquet file that are asked for at once: most footers are shorter.
const TAIL: u64 = 1 << 16;

/// A file, or an object as it was listed.
pub(crate) enum InputFile {
    /// With what goes by of it, where that is wanted.
    Local(SharedFile, Option<MetBytes>),
    Object(Arc<ObjectFile>),
}

/// The first failure to read an object, besides what a decoder makes of it.
#[derive(Clone, Default)]
pub(crate) struct InputFailure(Arc<Mutex<Option<Error>>>);

/// An object of which ranges are read.
pub(crate) struct ObjectFile {
    object: InputObject,
    failure: InputFailure,
    windows: Mutex<Windows>,
}

/// What is held of an object, and what will be asked for.
#[derive(Default)]
struct Windows {
    /// Where each wanted column lies, by row group: its bytes, and the column's number. In their order.
    spans: Vec<(Range<u64>, usize)>,
    /// Bytes of one column that are asked for at once.
    size: u64,
    /// Of each column: where what is held of it begins.
    held: HashMap<usize, (u64, Bytes)>,
    /// The end of the object, once something there was asked for.
    tail: Option<Bytes>,
}

impl InputFailure {
    pub fn first(&self) -> Option<Error> {
        locked(&self.0).take()
    }

    fn note<T>(&self, read: Result<T, Error>) -> io::Result<T> {
        read.map_err(|error| {
            let text = error.to_string();
            locked(&self.0).get_or_insert(error);
            io::Error::other(text)
        })
    }
}

/// Nothing panics while it holds one of these.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InputFile {
    pub fn of_object(object: InputObject) -> Self {
        let (failure, windows) = Default::default();
        Self::Object(Arc::new(ObjectFile { object, failure, windows }))
    }

    /// A file of this machine, which several may read at once.
    pub fn shared(self) -> Option<SharedFile> {
        match self {
            Self::Local(file, _) => Some(file),
            Self::Object(_) => None,
        }
    }

    /// Where a failure to read will be noted.
    pub fn failure(&self) -> InputFailure {
        match self {
            Self::Local(..) => InputFailure::default(),
            Self::Object(file) => file.failure.clone(),
        }
    }

    /// Meets what will be read of a file as text; none of an object.
    pub fn watch(&mut self) -> Option<MetBytes> {
        let Self::Local(_, met) = self else { return None };
        Some(met.insert(MetBytes::default()).clone())
    }

    /// The bytes from the first to the last.
    pub fn text(self) -> Box<dyn Read> {
        match self {
            Self::Local(file, None) => Box::new(file.text()),
            Self::Local(file, Some(met)) => Box::new(met.of(file.text())),
            Self::Object(file) => Box::new(ObjectText { file, here: Bytes::new(), asked: 0, ahead: None }),
        }
    }

    /// Says which columns will be read, by number, and where each lies in each row group.
    pub fn expect(&self, mut spans: Vec<(Range<u64>, usize)>) {
        let Self::Object(file) = self else { return };
        let columns: HashSet<usize> = spans.iter().map(|(_, column)| *column).collect();
        spans.sort_unstable_by_key(|(span, _)| span.start);
        let mut windows = locked(&file.windows);
        windows.size = (WINDOWS / columns.len().max(1) as u64).clamp(WINDOW_LEAST, PART);
        windows.spans = spans;
    }
}

/// An object from its beginning to its end.
struct ObjectText {
    file: Arc<ObjectFile>,
    here: Bytes,
    /// Bytes that were asked for so far.
    asked: u64,
    ahead: Option<InputPart>,
}

impl ObjectText {
    fn ask(&mut self) {
        let object = &self.file.object;
        let end = object.size().min(self.asked + PART);
        self.ahead = (self.asked < end).then(|| object.begin(self.asked..end));
        self.asked = end;
    }
}

impl Read for ObjectText {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.here.is_empty() {
            if self.asked == 0 {
                self.ask();
            }
            let Some(part) = self.ahead.take() else { return Ok(0) };
            self.here = self.file.failure.note(part.finish())?.into();
            self.ask();
        }
        Ok(take(&mut self.here, into))
    }
}

fn take(from: &mut Bytes, into: &mut [u8]) -> usize {
    let count = from.len().min(into.len());
    into[..count].copy_from_slice(&from.split_to(count));
    count
}

impl ObjectFile {
    /// Bytes from `start` on, at least so many and perhaps more; nothing beyond the end.
    fn from(&self, start: u64, least: u64) -> io::Result<Bytes> {
        let size = self.object.size();
        let end = start.saturating_add(least);
        if end > size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut windows = locked(&self.windows);
        let at = windows.spans.partition_point(|(span, _)| span.start <= start);
        let span = at.checked_sub(1).and_then(|at| windows.spans.get(at)).cloned();
        let Some((span, column)) = span.filter(|(span, _)| start < span.end) else {
            let tail = size.saturating_sub(TAIL);
            if start < tail {
                return self.fetch(Bytes::new(), start..end);
            }
            if windows.tail.is_none() {
                windows.tail = Some(self.fetch(Bytes::new(), tail..size)?);
            }
            let tail = windows.tail.as_ref().map(|bytes| bytes.slice((start - tail) as usize..));
            return Ok(tail.unwrap_or_default());
        };
        let held = windows.held.get(&column).and_then(|(from, bytes)| {
            let skip = usize::try_from(start.checked_sub(*from)?).ok()?;
            (skip < bytes.len()).then(|| bytes.slice(skip..))
        });
        let held = held.unwrap_or_default();
        if held.len() as u64 >= least {
            return Ok(held);
        }
        let end = end.max(span.end.min(start + windows.size));
        let bytes = self.fetch(held, start..end)?;
        windows.held.insert(column, (start, bytes.clone()));
        Ok(bytes)
    }

    /// A range of which the first bytes are held already, a part at a time.
    fn fetch(&self, held: Bytes, range: Range<u64>) -> io::Result<Bytes> {
        let part =
            |from: u64| self.failure.note(self.object.begin(from..range.end.min(from + PART)).finish());
        let mut from = range.start + held.len() as u64;
        if held.is_empty() && range.end - from <= PART {
            return part(from).map(Bytes::from);
        }
        let mut bytes = held.to_vec();
        while from < range.end {
            bytes.extend_from_slice(&part(from)?);
            from = range.start + bytes.len() as u64;
        }
        Ok(bytes.into())
    }
}

impl Length for InputFile {
    fn len(&self) -> u64 {
        match self {
            Self::Local(file, _) => file.len(),
            Self::Object(file) => file.object.size(),
        }
    }
}

impl ChunkReader for InputFile {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Box<dyn Read>, ParquetError> {
        Ok(match self {
            Self::Local(file, _) => Box::new(BufReader::new(file.range(start..file.len()))),
            Self::Object(file) => {
                Box::new(ObjectRead { file: Arc::clone(file), here: Bytes::new(), at: start })
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self {
            Self::Local(file, _) => {
                let end = start.checked_add(length as u64).filter(|end| *end <= file.len());
                let end = end.ok_or_else(|| ParquetError::EOF(format!("{length} bytes at {start}")))?;
                let mut bytes = vec![0; length];
                file.range(start..end).read_exact(&mut bytes)?;
                Ok(bytes.into())
            }
            Self::Object(file) => Ok(file.from(start, length as u64)?.slice(..length)),
        }
    }
}

/// An object from some byte on.
struct ObjectRead {
    file: Arc<ObjectFile>,
    here: Bytes,
    at: u64,
}

impl Read for ObjectRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.file.object.size().saturating_sub(self.at);
        if self.here.is_empty() && left > 0 {
            self.here = self.file.from(self.at, left.min(into.len() as u64))?;
        }
        let count = take(&mut self.here, into);
        self.at += count as u64;
        Ok(count)
    }
}

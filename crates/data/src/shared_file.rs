//! A file of this machine that is read in parts, all of one descriptor: who puts another file in its place
//! meanwhile changes no row. Who writes into it is found out.

use base::Error;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// A file, and what it was as it was opened.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    file: Arc<File>,
    opened: FileVersion,
}

/// What changes when bytes are written into a file, and not when its name is given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    bytes: u64,
    written: (i64, i64),
}

impl FileVersion {
    fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), written: (metadata.mtime(), metadata.mtime_nsec()) }
    }
}

impl SharedFile {
    pub fn new(file: File) -> io::Result<Self> {
        let opened = FileVersion::of(&file.metadata()?);
        Ok(Self { file: Arc::new(file), opened })
    }

    /// Its bytes as it was opened.
    pub fn len(&self) -> u64 {
        self.opened.bytes
    }

    /// The bytes from the first to the last, for the one reader of all.
    pub fn text(self) -> impl Read + 'static {
        self.file
    }

    /// Some of its bytes, wherever other readers are; it is an error where it ends before.
    pub fn range(&self, range: Range<u64>) -> FileRange {
        FileRange { file: self.file.clone(), at: range.start, to: range.end }
    }

    /// Refuses what was read of it where somebody has written into it since it was opened.
    ///
    /// # Errors
    /// Then, or where that cannot be told.
    pub fn expect_unchanged(&self, name: &str) -> Result<(), Error> {
        let now = self.file.metadata().map_err(|e| Error::io(format!("cannot read {name}"), &e))?;
        if FileVersion::of(&now) == self.opened {
            return Ok(());
        }
        Err(Error::input(format!(
            "{name} was changed while it was read; run again once nobody writes it, and replace such a file \
             by renaming a whole one"
        )))
    }
}

/// Some bytes of a file.
pub(crate) struct FileRange {
    file: Arc<File>,
    at: u64,
    to: u64,
}

impl Read for FileRange {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = left.min(into.len());
        let count = self.file.read_at(&mut into[..wanted], self.at)?;
        if count == 0 && wanted > 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.at += count as u64;
        Ok(count)
    }
}

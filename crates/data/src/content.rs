//! What files held as they were read: a file that was written again is known by it where it holds the same.

use crate::source::{DataLocation, InputItem, files};
use base::Error;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use study::format::InputFormat;

/// The content of a party's files of this machine, by hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputContent {
    /// Of names, sizes and form: what shows without reading.
    named: [u8; 32],
    /// Of all bytes.
    bytes: [u8; 32],
}

impl InputContent {
    /// Whether these are files of the same names, sizes and bytes, in the same form. Where names, sizes or
    /// form are others, none is read for that.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn is_of<'a>(&self, data: impl Into<DataLocation<'a>>) -> Result<bool, Error> {
        let data = data.into();
        let (mut hash, mut paths) = (ContentHash::new(data.format), Vec::new());
        for item in files(data)? {
            let Some(path) = item.path().map(Path::to_path_buf) else { return Ok(false) };
            hash.name(&item.name(), item.size()?.0);
            paths.push(path);
        }
        if hash.named() != self.named {
            return Ok(false);
        }
        for path in paths {
            hash.bytes(file_hash(&path)?);
        }
        Ok(hash.content() == *self)
    }
}

/// The same while files are read, one after the other.
pub(crate) struct ContentHash {
    named: blake3::Hasher,
    bytes: blake3::Hasher,
}

impl ContentHash {
    pub fn new(format: &InputFormat) -> Self {
        let mut named = blake3::Hasher::new_derive_key("tacit 2026-11 names of input v1");
        if *format != InputFormat::NONE {
            named.update(format!("{format:?}").as_bytes());
        }
        Self { named, bytes: blake3::Hasher::new_derive_key("tacit 2026-11 bytes of input v1") }
    }

    pub fn name(&mut self, name: &str, size: u64) {
        self.named.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        self.named.update(&size.to_le_bytes());
    }

    fn bytes(&mut self, file: [u8; 32]) {
        self.bytes.update(&file);
    }

    fn named(&self) -> [u8; 32] {
        *self.named.finalize().as_bytes()
    }

    pub fn content(&self) -> InputContent {
        InputContent { named: self.named(), bytes: *self.bytes.finalize().as_bytes() }
    }
}

/// A file whose bytes are hashed as they are read.
pub(crate) struct WatchedFile {
    path: PathBuf,
    size: u64,
    met: MetBytes,
}

/// How many bytes of a file were read from its beginning, and their hash.
#[derive(Clone, Default)]
pub(crate) struct MetBytes(Arc<Mutex<(u64, blake3::Hasher)>>);

impl WatchedFile {
    /// One of this machine that is to be read; none in a bucket, whose ETags are of the bytes already.
    pub fn of(item: &InputItem) -> Result<Option<Self>, Error> {
        let Some(path) = item.path() else { return Ok(None) };
        Ok(Some(Self { path: path.to_path_buf(), size: item.size()?.0, met: MetBytes::default() }))
    }

    pub fn met(&self) -> MetBytes {
        self.met.clone()
    }

    /// Adds what was read of it. What was not read to its end in one go, as Parquet is not, is read for that.
    pub fn finish(self, content: &mut ContentHash) -> Result<(), Error> {
        let (len, hash) = &*self.met.locked();
        content.name(&self.path.display().to_string(), self.size);
        content.bytes(if *len == self.size { *hash.finalize().as_bytes() } else { file_hash(&self.path)? });
        Ok(())
    }
}

impl MetBytes {
    /// The same bytes.
    pub fn of(&self, file: File) -> impl Read + 'static {
        MetRead { file, met: self.clone() }
    }

    /// Nothing panics while it holds this.
    fn locked(&self) -> MutexGuard<'_, (u64, blake3::Hasher)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MetRead {
    file: File,
    met: MetBytes,
}

impl Read for MetRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        let (len, hash) = &mut *self.met.locked();
        *len += count as u64;
        hash.update(&into[..count]);
        Ok(count)
    }
}

fn file_hash(path: &Path) -> Result<[u8; 32], Error> {
    let failed = |e: io::Error| Error::reading(format!("cannot read {}", path.display()), &e);
    let mut hash = blake3::Hasher::new();
    hash.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
    Ok(*hash.finalize().as_bytes())
}

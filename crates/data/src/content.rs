//! What files held as they were read: a file that was written again is known by it where it holds the same.

use crate::source::{DataLocation, files};
use base::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// The hash of a file's bytes.
pub(crate) type FileHash = [u8; 32];

/// The hash of names, sizes and form of files, and where these are.
type NamedFiles = ([u8; 32], Vec<PathBuf>);

impl InputContent {
    /// That of files some of which were read, by their numbers: the others are read for it. None of what lies
    /// in a bucket, where ETags are of the bytes already.
    pub(crate) fn of(
        data: DataLocation<'_>,
        read: &BTreeMap<usize, FileHash>,
    ) -> Result<Option<Self>, Error> {
        let Some((named, paths)) = named(data)? else { return Ok(None) };
        let hash = |(number, path): (usize, &PathBuf)| match read.get(&number) {
            Some(hash) => Ok(*hash),
            None => file_hash(path),
        };
        let mut bytes = blake3::Hasher::new_derive_key("tacit 2026-11 bytes of input v1");
        for file in paths.iter().enumerate() {
            bytes.update(&hash(file)?);
        }
        Ok(Some(Self { named, bytes: *bytes.finalize().as_bytes() }))
    }

    /// Whether these are files of the same names, sizes and bytes, in the same form. Where names, sizes or
    /// form are others, none is read for that.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn is_of<'a>(&self, data: impl Into<DataLocation<'a>>) -> Result<bool, Error> {
        let data = data.into();
        let same = named(data)?.is_some_and(|(named, _)| named == self.named);
        Ok(same && Self::of(data, &BTreeMap::new())? == Some(*self))
    }
}

/// Names, sizes and form of files of this machine, and where they are.
fn named(data: DataLocation<'_>) -> Result<Option<NamedFiles>, Error> {
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026-11 names of input v1");
    let mut paths = Vec::new();
    for item in files(data)? {
        let Some(path) = item.path() else { return Ok(None) };
        let name = item.name();
        hash.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hash.update(&item.size()?.0.to_le_bytes());
        paths.push(path.to_path_buf());
    }
    if *data.format != InputFormat::NONE {
        hash.update(format!("{:?}", data.format).as_bytes());
    }
    Ok(Some((*hash.finalize().as_bytes(), paths)))
}

/// How many bytes of a file were read from its beginning, and their hash.
#[derive(Clone, Default)]
pub(crate) struct MetBytes(Arc<Mutex<(u64, blake3::Hasher)>>);

impl MetBytes {
    /// The same bytes.
    pub fn of(&self, file: impl Read + 'static) -> impl Read + 'static {
        MetRead { file, met: self.clone() }
    }

    /// The hash of a file of so many bytes, where all of them were read.
    pub fn whole(&self, size: u64) -> Option<FileHash> {
        let (len, hash) = &*self.locked();
        (*len == size).then(|| *hash.finalize().as_bytes())
    }

    /// Nothing panics while it holds this.
    fn locked(&self) -> MutexGuard<'_, (u64, blake3::Hasher)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MetRead<R> {
    file: R,
    met: MetBytes,
}

impl<R: Read> Read for MetRead<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        let (len, hash) = &mut *self.met.locked();
        *len += count as u64;
        hash.update(&into[..count]);
        Ok(count)
    }
}

fn file_hash(path: &Path) -> Result<FileHash, Error> {
    let failed = |e: io::Error| Error::reading(format!("cannot read {}", path.display()), &e);
    let mut hash = blake3::Hasher::new();
    hash.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
    Ok(*hash.finalize().as_bytes())
}

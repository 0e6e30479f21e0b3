//! Objects that only this party reads, each bound to its name, run and party.

use crate::object::ObjectWriter;
use crate::seal::{ChunkSeal, HEADER, RunKey, opened_len};
use crate::state::ObjectPart;
use crate::{ChunkSize, OBJECT_BYTES, ObjectId, PART_BYTES, StateKey, StateStore, StoreError};
use base::Error;
use std::ops::Range;
use std::sync::Arc;

/// Sealed objects of one run and party in a store. Clones are the same.
#[derive(Clone)]
pub struct SealedStore {
    store: StateStore,
    key: Arc<RunKey>,
}

impl SealedStore {
    /// Objects of `party` in the run `run`, which may be any 32 bytes that no other run of this party has.
    #[must_use]
    pub fn new(store: StateStore, key: &StateKey, run: &[u8; 32], party: &str) -> Self {
        Self { store, key: Arc::new(RunKey::new(key, run, party)) }
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &StateStore {
        &self.store
    }

    /// Creates an object, as [`StateStore::create`]; its sealed bytes, for whoever chains them.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`]; or when the store fails, and then the object may be there or not.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let sealed = self.seal(name, bytes, ChunkSize::Large);
        self.store.create(name, &sealed)?;
        Ok(sealed)
    }

    pub(crate) fn seal(&self, name: &str, bytes: &[u8], size: ChunkSize) -> Vec<u8> {
        let (header, seal) = self.key.begin(name, size);
        let mut sealed = header.to_vec();
        let last = bytes.len().div_ceil(size.bytes()).max(1) - 1;
        for number in 0..=last {
            let end = bytes.len().min((number + 1) * size.bytes());
            let mut chunk = bytes[number * size.bytes()..end].to_vec();
            seal.seal(number as u64, number == last, &mut chunk);
            sealed.extend_from_slice(&chunk);
        }
        sealed
    }

    /// What an object holds whose sealed bytes are these.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    pub(crate) fn unseal(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let damaged = |why| StoreError::Damaged { place: self.store.place(name), why };
        let (seal, len) = self.begin_reading(name, sealed, sealed.len() as u64)?;
        let mut bytes = Vec::with_capacity(len as usize);
        seal.open(0, &sealed[HEADER..], len, &mut bytes).map_err(|()| damaged(CHANGED))?;
        Ok(bytes)
    }

    fn begin_reading(&self, name: &str, head: &[u8], sealed: u64) -> Result<(ChunkSeal, u64), StoreError> {
        let damaged = |why| StoreError::Damaged { place: self.store.place(name), why };
        let seal = self.key.open(name, head.get(..HEADER).unwrap_or(head)).map_err(damaged)?;
        let len = opened_len(sealed, seal.size).ok_or_else(|| damaged("no sealed object has its size"))?;
        Ok((seal, len))
    }

    /// What an object holds, of at most [`OBJECT_BYTES`].
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`]; or when the store fails.
    pub fn get(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        self.unseal(name, &self.store.get(name)?)
    }

    /// A writer of an object of any size, which is there when it is finished.
    ///
    /// # Errors
    /// When this is no name, or the store fails.
    pub fn writer(&self, name: &str, size: ChunkSize) -> Result<SealedWriter, StoreError> {
        let (header, seal) = self.key.begin(name, size);
        let mut object = self.store.writer(name)?;
        object.write(&header)?;
        Ok(SealedWriter { object, seal, chunk: Vec::new(), number: 0, len: 0 })
    }

    /// A reader of parts of an object. It has read the header, which says nothing of the chunks yet.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`]; or when the store fails.
    pub fn reader(&self, name: &str) -> Result<SealedReader, StoreError> {
        let (head, size) = self.store.get_some(name, 0..HEADER as u64)?;
        let (seal, len) = self.begin_reading(name, &head, size)?;
        Ok(SealedReader { store: self.store.clone(), name: name.to_owned(), seal, len })
    }
}

const CHANGED: &str = "it was changed, or sealed for another name, run or party";

/// A sealed object that is being written.
pub struct SealedWriter {
    object: ObjectWriter,
    seal: ChunkSeal,
    chunk: Vec<u8>,
    number: u64,
    len: u64,
}

impl SealedWriter {
    /// Appends.
    ///
    /// # Errors
    /// As [`ObjectWriter::write`].
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        let size = self.seal.size.bytes();
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            // A full chunk waits for the next byte: the last one is sealed as such.
            if self.chunk.len() == size {
                self.send(false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(size - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes the object be there, on stable storage; what to note down of it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn finish(mut self) -> Result<ObjectId, StoreError> {
        self.send(true)?;
        self.object.finish()?;
        Ok(self.seal.id)
    }

    fn send(&mut self, last: bool) -> Result<(), StoreError> {
        self.seal.seal(self.number, last, &mut self.chunk);
        self.number += 1;
        self.object.write(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }
}

/// A sealed object of which parts are read.
///
/// What is given out was written at that place of this object. That the object is as long as it says is known
/// once its last byte was read, and not before.
pub struct SealedReader {
    store: StateStore,
    name: String,
    seal: ChunkSeal,
    len: u64,
}

/// A part of a sealed object that is to be read.
pub(crate) struct SealedPart {
    pub(crate) part: ObjectPart,
    first: u64,
    range: Range<u64>,
}

impl SealedReader {
    /// Bytes that it holds.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What tells it from every other object, of the same name too.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.seal.id
    }

    /// The bytes in a range, of at most [`OBJECT_BYTES`].
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Missing`]; when the range is too long or beyond the end, or the
    /// store fails.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let wanted = self.part(range)?;
        let sealed = self.store.get_range(&wanted.part.name, wanted.part.range.clone())?;
        self.open(&wanted, &sealed)
    }

    /// Hands the whole object on, piece by piece, each of at most 8 MiB.
    ///
    /// # Errors
    /// As [`Self::read`]; or what `take` says.
    pub fn stream(&self, mut take: impl FnMut(&[u8]) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let (mut start, piece) = (0, PART_BYTES as u64);
        loop {
            let end = self.len.min(start + piece);
            take(&self.read(start..end)?)?;
            start = end;
            if start == self.len {
                return Ok(());
            }
        }
    }

    /// What has to be read for the bytes in a range.
    pub(crate) fn part(&self, range: Range<u64>) -> Result<SealedPart, StoreError> {
        let len = range.end.saturating_sub(range.start);
        if len > OBJECT_BYTES {
            return Err(Error::limit("OBJECT_BYTES", len, OBJECT_BYTES).into());
        }
        if range.start > range.end || range.end > self.len {
            let place = self.store.place(&self.name);
            return Err(Error::misuse(format!("{range:?} of the {} bytes of {place}", self.len)).into());
        }
        let (sealed, first) = self.seal.cover(&range, self.len);
        Ok(SealedPart { part: ObjectPart { name: self.name.clone(), range: sealed }, first, range })
    }

    /// The bytes that were wanted, from what was read for them.
    pub(crate) fn open(&self, wanted: &SealedPart, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::with_capacity(sealed.len());
        let opened = self.seal.open(wanted.first, sealed, self.len, &mut bytes);
        let place = || self.store.place(&self.name);
        opened.map_err(|()| StoreError::Damaged { place: place(), why: CHANGED })?;
        let before = (wanted.range.start - wanted.first * self.seal.size.bytes() as u64) as usize;
        let len = (wanted.range.end - wanted.range.start) as usize;
        bytes.truncate(before + len);
        bytes.drain(..before);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;

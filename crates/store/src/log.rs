//! The log of a party: sealed objects `log/000000000001`, `.._002` and so on, that are only ever created.
//!
//! Who leads creates the next number. Who finds it taken was replaced, and stops: there is no other lock, so
//! it holds between processes of different machines, and a process that is believed dead does no harm when it
//! wakes. Each object holds the hash of the one before; a log that lost one, or got one from elsewhere, is
//! refused. That its last objects are still there no log can know: its owner notes down the number elsewhere.

mod object;

pub(crate) use object::{LogBody, LogObject};

use crate::state::ObjectPart;
use crate::{OBJECT_BYTES, SealedStore, StoreError, StoreLock};
use base::Error;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Objects of a log.
pub const LOG_RECORDS: u64 = 1 << 24;
/// Objects after which a snapshot is due, so that opening reads few.
pub const SNAPSHOT_EVERY: u64 = 1_024;
/// Bytes of what one object of the log holds.
pub const LOG_OBJECT_BYTES: u64 = 8 << 20;
/// How often taking over is tried against a process that goes on writing.
const TAKE_OVERS: u32 = 64;
/// Objects that are fetched and checked at a time, of at most [`OBJECT_BYTES`] in all or one.
const AT_A_TIME: u64 = 64;

/// One record: what it is, and bytes that only its writer reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Tells kinds of records apart.
    pub tag: u8,
    /// The record.
    pub payload: Vec<u8>,
}

/// Who leads a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLead {
    /// How often somebody has begun to lead, this time included.
    pub epoch: u64,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// When, in seconds of 1970.
    pub started: u64,
}

impl fmt::Display for LogLead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = base::clean(&self.host);
        write!(f, "process {} of {host} (epoch {})", self.pid, self.epoch)
    }
}

impl LogLead {
    fn here(epoch: u64) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { epoch, host, pid: std::process::id(), started }
    }
}

/// A log that this process leads.
pub struct StateLog {
    sealed: SealedStore,
    folder: String,
    at: LogPlace,
    /// Whether an object was not created: what is there then is not known here.
    broken: bool,
    _lock: StoreLock,
}

/// How far a log was read or written.
#[derive(Clone, Debug, Default)]
struct LogPlace {
    /// The last number.
    number: u64,
    epoch: u64,
    snapshot: u64,
    /// Of the last object's sealed bytes.
    hash: [u8; 32],
}

impl LogPlace {
    /// The object that comes next, as bytes.
    fn next(&self, body: LogBody) -> LogObject {
        let (number, lead) = (self.number + 1, matches!(body, LogBody::Lead(_)));
        let snapshot = if matches!(body, LogBody::Snapshot(_)) { number } else { self.snapshot };
        LogObject { number, epoch: self.epoch + u64::from(lead), snapshot, previous: self.hash, body }
    }

    fn went_to(&mut self, object: &LogObject, sealed: &[u8]) {
        let LogObject { number, epoch, snapshot, .. } = *object;
        *self = Self { number, epoch, snapshot, hash: *blake3::hash(sealed).as_bytes() };
    }
}

impl StateLog {
    /// Begins to lead, as long as the lock of the store is held (it is kept with the log): checks that the
    /// store keeps what was created, reads the log in `folder` up to its end, and creates the next object,
    /// which says who leads now. Also the records since the last snapshot, that one's first.
    ///
    /// # Errors
    /// When the store ignores conditions, an object is missing or [`StoreError::Damaged`], another process
    /// goes on writing, or the store fails.
    pub fn lead(
        sealed: SealedStore,
        folder: &str,
        lock: &StoreLock,
    ) -> Result<(Self, Vec<LogRecord>), StoreError> {
        sealed.store().probe()?;
        let at = LogPlace::default();
        let mut log = Self { sealed, folder: folder.to_owned(), at, broken: false, _lock: lock.clone() };
        let mut records = Vec::new();
        log.read(&mut records)?;
        for _ in 0..TAKE_OVERS {
            let lead = LogLead::here(log.at.epoch + 1);
            match log.create(LogBody::Lead(lead)) {
                Err(StoreError::AlreadyExists { .. }) => log.catch_up(&mut records)?,
                done => return done.map(|()| (log, records)),
            }
        }
        Err(StoreError::AlreadyExists { place: log.place(log.at.number + 1) })
    }

    /// The records since the last snapshot, that one's first, for who only looks: nothing is written, and
    /// whoever leads goes on.
    ///
    /// # Errors
    /// When an object is missing or [`StoreError::Damaged`], or the store fails.
    pub fn look(sealed: SealedStore, folder: &str) -> Result<Vec<LogRecord>, StoreError> {
        let (at, folder) = (LogPlace::default(), folder.to_owned());
        let mut log = Self { sealed, folder, at, broken: true, _lock: StoreLock::none() };
        let mut records = Vec::new();
        log.read(&mut records)?;
        Ok(records)
    }

    /// How often somebody has begun to lead, this process included.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.at.epoch
    }

    /// Appends records as one object, all of them or none; its number. What they say is true for others once
    /// this returns, and not before.
    ///
    /// # Errors
    /// [`StoreError::Fenced`]; when they are too many, or the store fails. Whatever the error, the records
    /// may be there or not, and this log takes no more: begin to lead again, or stop.
    pub fn append(&mut self, records: &[LogRecord]) -> Result<u64, StoreError> {
        self.extend(LogBody::Records(records.to_vec()))
    }

    /// Whether so many objects came after the last snapshot that one is due.
    #[must_use]
    pub fn snapshot_due(&self) -> bool {
        self.at.number - self.at.snapshot >= SNAPSHOT_EVERY
    }

    /// Appends records that stand for all before them, as one object; its number.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn snapshot(&mut self, records: &[LogRecord]) -> Result<u64, StoreError> {
        self.extend(LogBody::Snapshot(records.to_vec()))
    }

    fn extend(&mut self, body: LogBody) -> Result<u64, StoreError> {
        if self.broken {
            let place = self.place(self.at.number + 1);
            let text = format!("{place}: what this log says was not written whole; open the log again");
            return Err(Error::misuse(text).into());
        }
        match self.create(body) {
            Ok(()) => Ok(self.at.number),
            Err(StoreError::AlreadyExists { .. }) => {
                self.broken = true;
                let name = self.name(self.at.number + 1);
                let there = self.sealed.store().get(&name).ok();
                let there = there.and_then(|sealed| self.sealed.unseal(&name, &sealed).ok());
                let by = match there.and_then(|bytes| LogObject::from_bytes(&bytes)).map(|there| there.body) {
                    Some(LogBody::Lead(lead)) => Some(lead),
                    _ => None,
                };
                Err(StoreError::Fenced { place: self.sealed.store().place(&self.folder), by })
            }
            Err(error) => {
                self.broken = true;
                Err(error)
            }
        }
    }

    /// Creates the next object.
    fn create(&mut self, body: LogBody) -> Result<(), StoreError> {
        let object = self.at.next(body);
        if object.number > LOG_RECORDS {
            return Err(Error::limit("LOG_RECORDS", object.number, LOG_RECORDS).into());
        }
        let bytes = object.to_bytes();
        if bytes.len() as u64 > LOG_OBJECT_BYTES {
            return Err(Error::limit("LOG_OBJECT_BYTES", bytes.len() as u64, LOG_OBJECT_BYTES).into());
        }
        let sealed = self.sealed.create(&self.name(object.number), &bytes)?;
        self.at.went_to(&object, &sealed);
        Ok(())
    }

    /// Reads the log from its last snapshot on.
    fn read(&mut self, records: &mut Vec<LogRecord>) -> Result<(), StoreError> {
        let mut sizes = Vec::new();
        for (name, size) in self.sealed.store().list(&self.folder)? {
            let number = sizes.len() as u64 + 1;
            // The list is in order, and the numbers are of one width: the first that differs is missing.
            if name != self.name(number) {
                let (place, why) = (self.place(number), "it is missing, or another name is in its place");
                return Err(StoreError::Damaged { place, why });
            }
            sizes.push(size);
        }
        let last = sizes.len() as u64;
        if last == 0 {
            return Ok(());
        }
        let (end, _) = self.fetch(last, &sizes)?.remove(0);
        let first = end.snapshot.max(1);
        if first > last {
            return Err(self.damaged(last, "it names a snapshot that comes later"));
        }
        while self.at.number < last {
            let start = first.max(self.at.number + 1);
            let (mut stop, mut bytes) = (start, sizes[start as usize - 1]);
            while stop < last && stop - start < AT_A_TIME && bytes + sizes[stop as usize] <= OBJECT_BYTES {
                bytes += sizes[stop as usize];
                stop += 1;
            }
            for (object, sealed) in self.fetch_all(start..=stop, &sizes)? {
                self.accept(object, &sealed, first, records)?;
            }
        }
        if self.at.snapshot != end.snapshot {
            return Err(self.damaged(last, "the snapshot that it names is none"));
        }
        Ok(())
    }

    /// Reads what was appended since.
    fn catch_up(&mut self, records: &mut Vec<LogRecord>) -> Result<(), StoreError> {
        loop {
            let number = self.at.number + 1;
            let sealed = match self.sealed.store().get(&self.name(number)) {
                Err(StoreError::Missing { .. }) => return Ok(()),
                got => got?,
            };
            let object = self.unseal(number, &sealed)?;
            self.accept(object, &sealed, 1, records)?;
        }
    }

    fn fetch(&self, number: u64, sizes: &[u64]) -> Result<Vec<(LogObject, Vec<u8>)>, StoreError> {
        self.fetch_all(number..=number, sizes)
    }

    fn fetch_all(
        &self,
        numbers: std::ops::RangeInclusive<u64>,
        sizes: &[u64],
    ) -> Result<Vec<(LogObject, Vec<u8>)>, StoreError> {
        let mut parts = Vec::new();
        for number in numbers.clone() {
            let size = sizes[number as usize - 1];
            if size > OBJECT_BYTES {
                return Err(Error::limit("OBJECT_BYTES", size, OBJECT_BYTES).into());
            }
            parts.push(ObjectPart { name: self.name(number), range: 0..size });
        }
        let sealed = self.sealed.store().get_parts(parts)?;
        let objects = numbers.zip(sealed).map(|(number, sealed)| Ok((self.unseal(number, &sealed)?, sealed)));
        objects.collect()
    }

    fn unseal(&self, number: u64, sealed: &[u8]) -> Result<LogObject, StoreError> {
        let bytes = self.sealed.unseal(&self.name(number), sealed)?;
        LogObject::from_bytes(&bytes).ok_or_else(|| self.damaged(number, "it is no object of a log"))
    }

    /// Checks that an object comes next, and goes there. The `first` that is read may have others before it.
    fn accept(
        &mut self,
        object: LogObject,
        sealed: &[u8],
        first: u64,
        records: &mut Vec<LogRecord>,
    ) -> Result<(), StoreError> {
        let number = self.at.number + 1;
        if self.at.number == 0 && first > 1 {
            // What is before a snapshot is not read; that it is one is checked by who reads.
            let LogObject { number, epoch, previous, .. } = object;
            self.at = LogPlace { number: number - 1, epoch, snapshot: 0, hash: previous };
            if number != first {
                return Err(self.damaged(first, "its number is another one's"));
            }
        }
        let next = self.at.next(object.body.clone());
        if object.previous != next.previous {
            return Err(self.damaged(number, "it does not follow the object before it"));
        }
        if object != next {
            return Err(self.damaged(number, "its number or its epoch is another one's"));
        }
        self.at.went_to(&object, sealed);
        match object.body {
            LogBody::Lead(_) => {}
            LogBody::Records(more) => records.extend(more),
            LogBody::Snapshot(all) => *records = all,
        }
        Ok(())
    }

    fn damaged(&self, number: u64, why: &'static str) -> StoreError {
        StoreError::Damaged { place: self.place(number), why }
    }

    fn name(&self, number: u64) -> String {
        format!("{}/{number:012}", self.folder)
    }

    fn place(&self, number: u64) -> String {
        self.sealed.store().place(&self.name(number))
    }
}

#[cfg(test)]
mod tests;

//! What the ledger knows of a peer's promises in a match under way.
//!
//! A promise is a record of the match's log before it is answered. Whoever holds the log's folder can put it
//! back to before one, without any key, and a peer in league with it would be answered twice under one key.
//! So the ledger moves on by a running hash after each record and before the answer: a log that does not come
//! to the ledger's hash is that of no match. One that goes beyond it was cut between the two, and counts.

use super::under_way::UnderWay;
use super::{BegunRecord, KeptRecord};
use base::{Error, unhex};
use privacy::ledger::{Bytes32, Ledger, begun_id};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use store::LogRecord;

/// The ledger, for the promises of one study's matches.
pub(super) struct PromiseBook {
    ledger: Arc<Mutex<Ledger>>,
    study: Bytes32,
}

impl PromiseBook {
    pub fn new(ledger: &Arc<Mutex<Ledger>>, study: &Bytes32) -> Self {
        Self { ledger: ledger.clone(), study: *study }
    }

    pub fn lock(&self) -> Result<MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))
    }

    fn id(&self, of: &UnderWay) -> Bytes32 {
        begun_id(&self.study, &of.record.tags)
    }

    /// A match begins, and nothing is promised in it.
    pub fn begin(&self, of: &UnderWay) -> Result<(), Error> {
        self.lock()?.begin_promises(&self.id(of), &of.head())
    }

    /// A match begins that nobody goes on with: it is not written down.
    pub fn begin_unwritten(&self, of: &UnderWay) -> Result<(), Error> {
        self.lock()?.match_speaks(&self.id(of))
    }

    /// The matches of a run that goes are over, whoever puts its folder back.
    pub fn forget(&self, records: &[LogRecord], place: &str) -> Result<(), Error> {
        let ids = matches_of(records, place).unwrap_or_default();
        let mut ledger = self.lock()?;
        ids.iter().try_for_each(|id| ledger.forget_promises(Some(id)))
    }

    /// Whether the log of a match has all that the ledger knows of; then the ledger knows all that it has.
    pub fn knows(&self, of: &UnderWay) -> Result<bool, Error> {
        let (id, mut ledger) = (self.id(of), self.lock()?);
        match ledger.promises(&id)?.filter(|head| of.comes_to(head)) {
            Some(head) if head != of.head() => ledger.add_promise(&id, [&head, &of.head()]),
            head => Ok(head.is_some()),
        }
    }

    /// The peer promises one thing more, and the match comes to `to`; false where the ledger is elsewhere.
    pub fn add(&self, of: &UnderWay, to: &Bytes32) -> Result<bool, Error> {
        self.lock()?.add_promise(&self.id(of), [&of.head(), to])
    }

    /// The match is over, unless the ledger has another one, or more of it.
    pub fn end(&self, of: &UnderWay) -> Result<(), Error> {
        let (id, mut ledger) = (self.id(of), self.lock()?);
        let head = ledger.promises(&id)?.filter(|head| of.comes_to(head));
        head.map_or(Ok(()), |head| ledger.end_promises(&id, &head))
    }
}

/// As what the ledger knows the matches of a log; none where the log does not tell.
pub(super) fn matches_of(records: &[LogRecord], place: &str) -> Option<Vec<Bytes32>> {
    let (begun, later) = records.split_first()?;
    let study = unhex(&BegunRecord::read(begun).ok()?.study)?;
    let mut ids = Vec::new();
    for record in later {
        if let KeptRecord::Matching(record) = KeptRecord::of_log(record, place).ok()? {
            ids.push(begun_id(&study, &record.tags));
        }
    }
    Some(ids)
}

/// These matches go on no more though their folders may come back; none: no match of this ledger.
pub(super) fn forget(ledger: &Path, ids: Option<&[Bytes32]>) -> Result<(), Error> {
    if !ledger.exists() {
        return Ok(());
    }
    let mut ledger = Ledger::open(ledger)?;
    match ids {
        Some(ids) => ids.iter().try_for_each(|id| ledger.forget_promises(Some(id))),
        None => ledger.forget_promises(None),
    }
}

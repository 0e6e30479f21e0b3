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

    /// A match begins, and nothing is promised in it; false where another process has begun with its
    /// beginning. One that is not written down is one that nobody goes on with.
    pub fn begin(&self, of: &UnderWay) -> Result<bool, Error> {
        let (id, nonce, mut ledger) = (self.id(of), &of.record.draw.nonce, self.lock()?);
        match of.durable {
            true => ledger.begin_promises(&id, nonce, &of.head()),
            false => ledger.match_speaks(&id, nonce),
        }
    }

    /// The matches of a run that goes are over, whoever puts its folder back.
    pub fn forget(&self, records: &[LogRecord], place: &str) -> Result<(), Error> {
        let mut ledger = self.lock()?;
        end(&mut ledger, &matches_of(records, place).unwrap_or_default())
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
        let mut ledger = self.lock()?;
        end_one(&mut ledger, &self.id(of), of)
    }
}

/// The matches of a log with what is promised in them, and as what the ledger knows them; none where the log
/// does not tell.
pub(super) fn matches_of(records: &[LogRecord], place: &str) -> Option<Vec<(Bytes32, UnderWay)>> {
    let (begun, later) = records.split_first()?;
    let study = unhex(&BegunRecord::read(begun).ok()?.study)?;
    let mut matches: Vec<(Bytes32, UnderWay)> = Vec::new();
    for record in later {
        match KeptRecord::of_log(record, place).ok()? {
            KeptRecord::Matching(record) => {
                matches.push((begun_id(&study, &record.tags), UnderWay::of(*record)));
            }
            KeptRecord::Pin(pin) => matches.last_mut()?.1.pin(pin),
            _ => {}
        }
    }
    Some(matches)
}

/// These matches are over, as far as the ledger has them and no more of them: the same study and data may
/// have another one by now, of a run elsewhere.
pub(super) fn end(ledger: &mut Ledger, matches: &[(Bytes32, UnderWay)]) -> Result<(), Error> {
    matches.iter().try_for_each(|(id, of)| end_one(ledger, id, of))
}

fn end_one(ledger: &mut Ledger, id: &Bytes32, of: &UnderWay) -> Result<(), Error> {
    let head = ledger.promises(id)?.filter(|head| of.comes_to(head));
    head.map_or(Ok(()), |head| ledger.end_promises(id, &head))
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

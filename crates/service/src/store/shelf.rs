//! What was said about proposals, as it was read and checked: each signature is checked once in the life of
//! the process, whatever is thrown out of memory meanwhile.

use super::Store;
use super::studies::{failed, refused};
use base::Error;
use rusqlite::{Connection, params};
use statements::{ProposalId, ProposalRecord, SignedStatement};
use std::collections::HashMap;
use std::sync::Arc;

/// What stands for all rows of a proposal up to one, in their order.
const CHECKED: &str = "tacit 2026-12 service checked rows v1";

/// All that was said about a proposal, checked, up to a row.
#[derive(Clone)]
pub struct KnownRecord {
    /// What it comes to.
    pub(super) record: ProposalRecord,
    checked: CheckedRows,
    /// Of all statements.
    bytes: usize,
}

/// Rows whose signatures hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CheckedRows {
    /// The newest one.
    row: i64,
    /// Stands for the bytes of all.
    hash: [u8; 32],
}

impl CheckedRows {
    const NONE: Self = Self { row: 0, hash: [0; 32] };

    fn and(&self, row: i64, bytes: &[u8]) -> Self {
        let mut hash = blake3::Hasher::new_derive_key(CHECKED);
        hash.update(&self.hash).update(bytes);
        Self { row, hash: *hash.finalize().as_bytes() }
    }
}

/// Proposals that were read and checked before, and when each was last asked for.
#[derive(Default)]
pub(super) struct RecordShelf {
    all: HashMap<ProposalId, (Arc<KnownRecord>, u64)>,
    /// What was checked of those that were thrown out: 56 bytes each.
    before: HashMap<ProposalId, CheckedRows>,
    bytes: usize,
    asked: u64,
}

impl RecordShelf {
    /// Bytes of statements that are kept so; what is read takes a few times as much.
    const BYTES: usize = 2 << 20;

    fn get(&self, id: &ProposalId) -> Option<Arc<KnownRecord>> {
        self.all.get(id).map(|(known, _)| known.clone())
    }

    /// Keeps what was just asked for. What was asked for longest ago goes where all but the largest are
    /// beyond the limit: one that is beyond it by itself, as a peer can make one, throws out no others.
    fn put(&mut self, id: ProposalId, known: Arc<KnownRecord>) {
        self.asked += 1;
        self.bytes += known.bytes;
        self.before.remove(&id);
        if let Some((before, _)) = self.all.insert(id, (known, self.asked)) {
            self.bytes = self.bytes.saturating_sub(before.bytes);
        }
        let largest = self.all.values().map(|(known, _)| known.bytes).max().unwrap_or_default();
        while self.bytes - largest.min(self.bytes) > Self::BYTES {
            let oldest = self.all.iter().min_by_key(|(_, (_, asked))| *asked).map(|(id, _)| *id);
            let Some((id, (gone, _))) = oldest.and_then(|id| self.all.remove_entry(&id)) else { break };
            self.bytes = self.bytes.saturating_sub(gone.bytes);
            self.before.insert(id, gone.checked);
        }
    }
}

impl Store {
    /// All that was said about a proposal.
    pub(super) fn known(&self, id: &ProposalId) -> Result<Option<Arc<KnownRecord>>, Error> {
        let shelf = || self.shelf.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (held, before) = {
            let shelf = shelf();
            (shelf.get(id), shelf.before.get(id).copied())
        };
        // Outside of any transaction, so all that is read here stays; signatures are checked while others
        // have the connection.
        let rows = rows_after(&self.lock(), id, held.as_deref())?;
        let found = match held {
            Some(held) if rows.is_empty() => Some(held),
            held => grown(held.as_deref(), rows, before)?.map(Arc::new),
        };
        if let Some(found) = &found {
            shelf().put(*id, found.clone());
        }
        Ok(found)
    }
}

/// All that was said about a proposal; of what is `known` already only what came after it is read.
pub(super) fn load(
    connection: &Connection,
    id: &ProposalId,
    known: Option<&KnownRecord>,
) -> Result<Option<KnownRecord>, Error> {
    grown(known, rows_after(connection, id, known)?, None)
}

/// What was stored about a proposal after what is known, in that order.
fn rows_after(
    connection: &Connection,
    id: &ProposalId,
    known: Option<&KnownRecord>,
) -> Result<Vec<(i64, Vec<u8>)>, Error> {
    let sql = "SELECT row, statement FROM statements WHERE proposal = ?1 AND row > ?2 ORDER BY row";
    let after = known.map_or(0, |known| known.checked.row);
    let read = connection.prepare_cached(sql).and_then(|mut select| {
        let rows =
            select.query_map(params![id.0, after], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        rows.collect()
    });
    read.map_err(failed)
}

/// What is known with what came after it. Rows that were checked before, byte by byte, are not checked again.
fn grown(
    known: Option<&KnownRecord>,
    rows: Vec<(i64, Vec<u8>)>,
    before: Option<CheckedRows>,
) -> Result<Option<KnownRecord>, Error> {
    let mut all = known.cloned();
    let held = before.filter(|before| {
        let old = rows.iter().filter(|(row, _)| *row <= before.row);
        all.is_none() && old.fold(CheckedRows::NONE, |held, (row, bytes)| held.and(*row, bytes)) == *before
    });
    for (row, bytes) in rows {
        let statement = match held {
            Some(held) if row <= held.row => SignedStatement::read_again(&bytes)?,
            _ => SignedStatement::read(&bytes)?,
        };
        match &mut all {
            None => {
                let record = ProposalRecord::open(statement).map_err(|why| refused(&why))?;
                let checked = CheckedRows::NONE.and(row, &bytes);
                all = Some(KnownRecord { record, checked, bytes: bytes.len() });
            }
            Some(known) => {
                known.record.keep(statement).map_err(|why| refused(&why))?;
                known.checked = known.checked.and(row, &bytes);
                known.bytes += bytes.len();
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::tests::Pair;

    /// What was thrown out of memory is read again without its signatures, if it is what was checked.
    #[test]
    fn a_signature_is_checked_once_for_the_same_bytes() {
        let pair = Pair::new("");
        let (id, _) = pair.proposed("A question", "");
        let mut rows = rows_after(&pair.store.lock(), &id, None).expect("reads");
        let known = grown(None, rows.clone(), None).expect("signed").expect("there");
        let of = |rows: &[(i64, Vec<u8>)]| {
            rows.iter().fold(CheckedRows::NONE, |held, (row, bytes)| held.and(*row, bytes))
        };
        assert_eq!(known.checked, of(&rows));
        let last = rows[0].1.len() - 1;
        rows[0].1[last] ^= 1;
        assert!(grown(None, rows.clone(), None).is_err(), "a signature that does not hold");
        assert!(grown(None, rows.clone(), Some(known.checked)).is_err(), "these bytes were not checked");
        assert!(grown(None, rows.clone(), Some(of(&rows))).is_ok(), "nobody looks at it a second time");
    }

    #[test]
    fn what_is_thrown_out_leaves_what_was_checked() {
        let pair = Pair::new("");
        let ids = [1, 2, 3].map(|one| ProposalId([one; 16]));
        let (id, _) = pair.proposed("A question", "");
        let known = pair.store.known(&id).expect("reads").expect("there");
        let large = KnownRecord { bytes: RecordShelf::BYTES, ..(*known).clone() };
        let mut shelf = RecordShelf::default();
        for id in ids {
            shelf.put(id, Arc::new(large.clone()));
        }
        assert!(shelf.get(&ids[0]).is_none() && shelf.get(&ids[1]).is_some() && shelf.get(&ids[2]).is_some());
        assert_eq!(shelf.before.get(&ids[0]), Some(&known.checked));
        shelf.put(ids[0], Arc::new(large));
        assert_eq!((shelf.before.contains_key(&ids[0]), shelf.before.len()), (false, 1));
    }
}

//! One chain of hashes per peer, over the rows that concern it: what notices that a row was changed, taken
//! away or put in, by whatever program.
//!
//! Every link hashes the link before it, 32 random bytes, and its row. So count and head of a chain can be
//! shown to its peer: without the random bytes nobody can guess what the rows say, and the chain with one
//! peer tells nothing of the dealings with another. Who can write the file can make a new chain over other
//! rows; the peer's last head is what finds that ([`super::peers`]).

use super::{Bytes32, Ledger, file};
use base::{Error, Seed};
use net::succession::SUCCESSIONS;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The tables whose rows are linked, and the columns that the hash is over. Columns of [`LATER`] came after
/// rows were written without them, and are in the hash of those that have them.
pub(super) const LINKED: [(&str, &str); 12] = [
    (
        "debits",
        "row, at, release, attempt, lineage, viewer, peer, study, my_tag, peer_tag, rho, budget, protects, \
         delta, tau, period, period_budget",
    ),
    ("answers", "row, study, program, my_tag, peer_tag, party, at, report"),
    ("transcripts", "row, release, attempt, side, stage, peer, lineage, at, record"),
    ("bars", "row, at, kind, peer, lineage, release, attempt, reason"),
    ("attempts", "row, release, attempt, peer, at, reason"),
    ("outputs", "row, release, attempt, peer, at, outputs"),
    ("allows", "row, at, peer, lineage, bars, transcripts, reason, numbers"),
    ("statements", "row, at, peer, statement"),
    ("claims", "row, at, peer, settled, statement"),
    ("voids", "row, at, debit, peer"),
    ("successions", "row, at, old, new, statement"),
    ("signatures", "row, at, number, signer, text, key, signature"),
];

/// Columns that a row may be without.
const LATER: [&str; 4] = ["tau", "numbers", "period", "period_budget"];

/// Where a chain goes on from a statement of this party's that a peer gave back; its item is the row in
/// `claims`.
pub(super) const ANCHOR: &str = "anchor";

/// Where the chain with a new key goes on from that with the key whose place it takes; its item is the row in
/// `successions`.
pub(super) const SUCCEEDED: &str = "succeeded";

/// Where a chain stands: how many links, and the hash of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainHead {
    /// Links; 0 for a chain that has not begun.
    pub count: u64,
    /// The hash of the last one; zeros for none.
    pub hash: Bytes32,
}

/// A chain that was computed anew from the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedChain {
    /// The peer's key; empty where an older ledger did not say whose rows they are.
    pub peer: String,
    /// Links.
    pub count: u64,
    /// The hash of the last one, 64 hex digits.
    pub head: String,
}

/// A chain as the rows give it now.
pub(super) struct WalkedChain {
    /// In order; after a change every hash differs from that of the file.
    pub links: Vec<ChainHead>,
    /// The first thing that is not as it was written.
    pub wrong: Option<String>,
}

impl WalkedChain {
    pub fn head(&self) -> ChainHead {
        self.links.last().copied().unwrap_or_default()
    }

    /// The hash at a count: the last one, where a chain went on from an older count.
    pub fn at(&self, count: u64) -> Option<Bytes32> {
        self.links.iter().rev().find(|link| link.count == count).map(|link| link.hash)
    }
}

/// Adds a link over a row that was just written, in the same transaction.
pub(super) fn link(
    write: &Connection,
    peer: &str,
    table: &'static str,
    row: i64,
) -> Result<(), rusqlite::Error> {
    let last = last(write, peer)?;
    let salt = *Seed::from_system().expose();
    let digest = digest(write, table, row)?.unwrap_or_default();
    let hash = hash_of(&last.hash, &salt, &digest);
    put(write, peer, ChainHead { count: last.count + 1, hash }, (table, row), &salt)
}

/// Goes on from where a statement says that the chain stood.
pub(super) fn anchor(
    write: &Connection,
    peer: &str,
    at: ChainHead,
    claim: i64,
) -> Result<(), rusqlite::Error> {
    put(write, peer, at, (ANCHOR, claim), &[0; 32])
}

/// Begins the chain with a new key where that with the old one stands, unless there is one already.
pub(super) fn succeed(write: &Connection, old: &str, new: &str, row: i64) -> Result<(), rusqlite::Error> {
    let before = last(write, old)?;
    if last(write, new)?.count == 0 && before.count > 0 {
        put(write, new, before, (SUCCEEDED, row), &[0; 32])?;
    }
    link(write, new, "successions", row)
}

fn put(
    write: &Connection,
    peer: &str,
    head: ChainHead,
    (source, item): (&str, i64),
    salt: &Bytes32,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO chain (peer, count, source, item, salt, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    write.execute(sql, params![peer, head.count as i64, source, item, salt, head.hash]).map(|_| ())
}

fn last(connection: &Connection, peer: &str) -> Result<ChainHead, rusqlite::Error> {
    let sql = "SELECT count, hash FROM chain WHERE peer = ?1 ORDER BY row DESC LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(ChainHead { count: row.get::<_, i64>(0)?.unsigned_abs(), hash: row.get(1)? })
    };
    Ok(connection.query_row(sql, [peer], read).optional()?.unwrap_or_default())
}

fn hash_of(before: &Bytes32, salt: &Bytes32, row: &Bytes32) -> Bytes32 {
    let mut hasher = blake3::Hasher::new_derive_key("tacit ledger link 1");
    hasher.update(before).update(salt).update(row);
    *hasher.finalize().as_bytes()
}

/// The hash of a row; none when it is not there.
fn digest(connection: &Connection, table: &str, row: i64) -> Result<Option<Bytes32>, rusqlite::Error> {
    let Some((_, columns)) = LINKED.iter().find(|(name, _)| *name == table) else { return Ok(None) };
    let sql = format!("SELECT {columns} FROM {table} WHERE row = ?1");
    let mut query = connection.prepare_cached(&sql)?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let hash = |found: &rusqlite::Row<'_>| {
        let mut hasher = blake3::Hasher::new_derive_key("tacit ledger row 1");
        let mut put = |kind: u8, bytes: &[u8]| {
            hasher.update(&[kind]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        put(0, table.as_bytes());
        for (column, name) in names.iter().enumerate() {
            match found.get_ref(column)? {
                ValueRef::Null if LATER.contains(&name.as_str()) => {}
                // Two columns that may be absent are told apart.
                value if name.starts_with("period") => {
                    put(0, name.as_bytes());
                    put(6, &plain(value));
                }
                ValueRef::Null => put(1, &[]),
                ValueRef::Integer(value) => put(2, &value.to_le_bytes()),
                ValueRef::Real(value) => put(3, &value.to_le_bytes()),
                ValueRef::Text(value) => put(4, value),
                ValueRef::Blob(value) => put(5, value),
            }
        }
        Ok(*hasher.finalize().as_bytes())
    };
    query.query_row([row], hash).optional()
}

/// A value as text.
fn plain(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Null => Vec::new(),
        ValueRef::Integer(value) => value.to_string().into_bytes(),
        ValueRef::Real(value) => value.to_string().into_bytes(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
    }
}

/// A chain computed anew from the rows.
pub(super) fn walk(connection: &Connection, peer: &str) -> Result<WalkedChain, rusqlite::Error> {
    walk_line(connection, peer, SUCCESSIONS)
}

/// The same, of a key that at most so many went before.
fn walk_line(connection: &Connection, peer: &str, before: usize) -> Result<WalkedChain, rusqlite::Error> {
    let sql = "SELECT count, source, item, salt, hash FROM chain WHERE peer = ?1 ORDER BY row";
    let mut query = connection.prepare(sql)?;
    let mut rows = query.query([peer])?;
    let mut walked = WalkedChain { links: Vec::new(), wrong: None };
    while let Some(row) = rows.next()? {
        let count = row.get::<_, i64>(0)?.unsigned_abs();
        let (source, item): (String, i64) = (row.get(1)?, row.get(2)?);
        let (salt, written): (Bytes32, Bytes32) = (row.get(3)?, row.get(4)?);
        let last = walked.head();
        let mut wrong = |text: String| _ = walked.wrong.get_or_insert(text);
        if source == SUCCEEDED {
            let old = succeeded(connection, item)?.filter(|_| before > 0 && walked.links.is_empty());
            let old = old.map(|old| walk_line(connection, &old, before - 1)).transpose()?;
            let at = |old: &WalkedChain| {
                old.links.iter().position(|link| *link == ChainHead { count, hash: written })
            };
            let Some((mut old, at)) = old.and_then(|old| at(&old).map(|at| (old, at))) else {
                wrong(format!("entry {count}, which goes on from row {item} of successions, was changed"));
                continue;
            };
            old.links.truncate(at + 1);
            walked.links = old.links;
            continue;
        }
        let hash = if source == ANCHOR {
            match anchored(connection, item)? {
                Some(head) if head.count == count => head.hash,
                _ => {
                    wrong(format!("entry {count}, which goes on from row {item} of claims, was changed"));
                    Bytes32::default()
                }
            }
        } else {
            if count != last.count + 1 {
                wrong(format!("entry {} is missing", last.count + 1));
            }
            let row = digest(connection, &source, item)?;
            if row.is_none() {
                wrong(format!("row {item} of {source} (entry {count}) is missing"));
            }
            hash_of(&last.hash, &salt, &row.unwrap_or_default())
        };
        if hash != written {
            wrong(format!("row {item} of {source} (entry {count}) was changed"));
        }
        walked.links.push(ChainHead { count, hash });
    }
    Ok(walked)
}

/// The key whose place was taken.
fn succeeded(connection: &Connection, row: i64) -> Result<Option<String>, rusqlite::Error> {
    let sql = "SELECT old FROM successions WHERE row = ?1 AND old <> new";
    connection.query_row(sql, [row], |row| row.get(0)).optional()
}

fn anchored(connection: &Connection, claim: i64) -> Result<Option<ChainHead>, rusqlite::Error> {
    let sql = "SELECT statement FROM claims WHERE row = ?1";
    let bytes = connection.query_row(sql, [claim], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(bytes.and_then(|bytes| super::Statement::read(&bytes)).map(|statement| statement.head))
}

/// The first row that no chain has: it was put in by another program.
fn added(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    for (table, _) in LINKED {
        let sql = format!(
            "SELECT row FROM {table} WHERE row NOT IN (SELECT item FROM chain WHERE source = '{table}') \
             ORDER BY row LIMIT 1"
        );
        if let Some(row) = connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).optional()? {
            return Ok(Some(format!("row {row} of {table} was added")));
        }
    }
    Ok(None)
}

/// Links all rows of an older file, by the peers that are known of them.
pub(super) fn link_all(write: &Connection) -> Result<(), rusqlite::Error> {
    for (table, _) in LINKED {
        let peer = match table {
            "answers" => {
                "coalesce((SELECT max(viewer) FROM debits WHERE debits.study = answers.study AND protects = \
                 1), '')"
            }
            // Tables that are empty then.
            "successions" => "new",
            "signatures" => "signer",
            _ => "peer",
        };
        let mut query = write.prepare(&format!("SELECT row, {peer} FROM {table} ORDER BY row"))?;
        let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows.collect::<Result<Vec<_>, _>>()? {
            link(write, &row.1, table, row.0)?;
        }
    }
    Ok(())
}

impl Ledger {
    /// Whether the triggers are there that abort every change. Chains find what was changed; this finds that
    /// somebody took away what stands in its way.
    ///
    /// # Errors
    /// When one is not there, or the ledger cannot be read.
    pub fn check_triggers(&self) -> Result<(), Error> {
        let missing =
            super::layout::missing_trigger(&self.connection).map_err(|e| self.explain("read", &e))?;
        missing.map_or(Ok(()), |name| Err(changed(&self.path, &format!("its trigger {name} is not there"))))
    }

    /// Computes all chains anew from the rows.
    ///
    /// # Errors
    /// Names the first row that is not as it was written, is gone, or was put in by another program; when the
    /// ledger cannot be read.
    pub fn verify(&self) -> Result<Vec<CheckedChain>, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        // One view of the file, whatever another process adds meanwhile.
        let read = self.connection.unchecked_transaction().map_err(explain)?;
        let peers = {
            let mut query = read.prepare("SELECT DISTINCT peer FROM chain ORDER BY peer").map_err(explain)?;
            let rows = query.query_map([], |row| row.get::<_, String>(0)).map_err(explain)?;
            rows.collect::<Result<Vec<_>, _>>().map_err(explain)?
        };
        let mut all = Vec::with_capacity(peers.len());
        for peer in peers {
            let walked = walk(&read, &peer).map_err(explain)?;
            if let Some(what) = walked.wrong {
                let with = if peer.is_empty() { String::new() } else { format!(" of the chain with {peer}") };
                return Err(changed(&self.path, &format!("{what}{with}")));
            }
            let head = walked.head();
            all.push(CheckedChain { peer, count: head.count, head: base::hex(&head.hash) });
        }
        match added(&read).map_err(explain)? {
            Some(what) => Err(changed(&self.path, &what)),
            None => Ok(all),
        }
    }

    /// Where the chain with a peer stands, as the file says.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn chain(&self, peer: &str) -> Result<ChainHead, Error> {
        last(&self.connection, peer).map_err(|e| self.explain("read", &e))
    }

    /// The chain with a peer, computed anew from the rows.
    pub(super) fn walk(&self, peer: &str) -> Result<WalkedChain, Error> {
        let explain = |e: rusqlite::Error| file::explain(&self.path, "read", &e);
        let read = self.connection.unchecked_transaction().map_err(explain)?;
        walk(&read, peer).map_err(explain)
    }
}

fn changed(path: &Path, what: &str) -> Error {
    Error::input(format!(
        "the ledger {} was changed by another program: {what}; put back the newest copy, or make a new one \
         and take over what peers hold of it (tacit ledger recover)",
        path.display()
    ))
}

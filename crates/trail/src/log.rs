//! The log: who did what, in a chain of hashes that only grows.

use crate::failed;
use base::{Error, hex, limits, unhex};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the hash of an entry is for.
const HASH: &str = "tacit 2026-12 audit v1";
/// Bytes of the name of an actor, an action or a subject.
const NAME_BYTES: usize = 200;
/// Bytes of an entry's detail: both texts of a changed service.toml fit.
const DETAIL_BYTES: usize = 2 * limits::STUDY_BYTES;
/// What is done when the oldest entries are taken away.
pub(crate) const CUT: &str = "audit.cut";
/// Tables that only grow, and what each of their triggers says.
const GROWING: [&str; 3] = ["audit", "audit_cuts", "statements"];

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
    subject TEXT NOT NULL, detail TEXT NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS audit_cuts (
    through INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, hash BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS statements (
    row INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, study BLOB NOT NULL, proposal BLOB NOT NULL,
    author BLOB NOT NULL, number INTEGER NOT NULL, digest BLOB NOT NULL UNIQUE, statement BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS statements_of ON statements (proposal, author, number);
CREATE INDEX IF NOT EXISTS statements_about ON statements (study);
";

/// One entry, as it is shown and exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrailEntry {
    /// Its number, from 1, without gaps.
    pub number: u64,
    /// When, by this machine's clock: milliseconds since 1970.
    pub at_ms: u64,
    /// Who: an account, a token, a peer, the service itself or the command line.
    pub actor: String,
    /// What was done, in a word: `consent`, `session.begin`.
    pub action: String,
    /// To what: a study's hash, an account, a file.
    pub subject: String,
    /// More, as JSON: no values of data, no secrets.
    pub detail: String,
    /// The hash of the entry before; zeros for the first.
    pub previous: String,
    /// Its own.
    pub hash: String,
}

/// What is to be written down.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// When: milliseconds since 1970.
    pub at_ms: u64,
    /// Who.
    pub actor: &'a str,
    /// What.
    pub action: &'a str,
    /// To what.
    pub subject: &'a str,
    /// More. Never a value of data, a seed, a password, a token or a hash of one.
    pub detail: &'a serde_json::Value,
}

/// A log whose chain fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedLog {
    /// The first entry that is there: 1, or the one after what was cut off.
    pub first: u64,
    /// The newest; 0 where nothing was written.
    pub last: u64,
    /// Its hash, 64 hex digits.
    pub hash: String,
}

impl TrailEntry {
    /// Whether its hash is that of its content.
    pub(crate) fn fits(&self) -> bool {
        unhex(&self.previous).is_some_and(|previous| hex(&self.hash_after(&previous)) == self.hash)
    }

    fn hash_after(&self, previous: &[u8; 32]) -> [u8; 32] {
        let mut hash = blake3::Hasher::new_derive_key(HASH);
        hash.update(&self.number.to_le_bytes()).update(&self.at_ms.to_le_bytes());
        for text in [&self.actor, &self.action, &self.subject, &self.detail] {
            hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        *hash.update(previous).finalize().as_bytes()
    }
}

/// The trigger that aborts one kind of change of a table.
fn trigger(table: &str, change: &str) -> String {
    format!(
        "CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, 'the table \
         {table} only grows'); END"
    )
}

fn triggers() -> impl Iterator<Item = (String, String)> {
    let both =
        |table| ["update", "delete"].map(|change| (format!("{table}_no_{change}"), trigger(table, change)));
    GROWING.into_iter().flat_map(both)
}

/// Makes the tables of the trail in a store, unless they are there. The connection's
/// `recursive_triggers` is set, or REPLACE would delete without asking them: so on each that writes.
///
/// # Errors
/// When the store cannot be written.
pub fn create(connection: &Connection) -> Result<(), Error> {
    let made = connection.pragma_update(None, "recursive_triggers", true).and_then(|()| {
        connection.execute_batch(SCHEMA)?;
        triggers().try_for_each(|(_, sql)| {
            connection.execute_batch(&sql.replacen("CREATE TRIGGER", "CREATE TRIGGER IF NOT EXISTS", 1))
        })
    });
    made.map_err(|e| failed("make the audit trail in", &e))
}

/// Does something and writes it down, in one transaction: neither is without the other.
///
/// # Errors
/// What the action says, or when the entry cannot be written; nothing has happened then.
pub fn record<T>(
    connection: &mut Connection,
    entry: &NewEntry<'_>,
    action: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let write = write.map_err(|e| failed("write to", &e))?;
    let done = action(&write)?;
    append(&write, entry)?;
    write.commit().map_err(|e| failed("write to", &e))?;
    Ok(done)
}

/// Adds an entry in a transaction of the caller's.
///
/// # Errors
/// When a text is too long or the store cannot be written: the caller gives its transaction up.
pub fn append(write: &Transaction<'_>, entry: &NewEntry<'_>) -> Result<TrailEntry, Error> {
    let detail = entry.detail.to_string();
    let names = [entry.actor, entry.action, entry.subject].map(|name| (name.len(), NAME_BYTES));
    for (met, cap) in names.into_iter().chain([(detail.len(), DETAIL_BYTES)]) {
        if met > cap {
            return Err(Error::limit("bytes of an audit entry", met as u64, cap as u64));
        }
    }
    let (number, previous) = head(write).map_err(|e| failed("read", &e))?;
    let mut next = TrailEntry {
        number: number + 1,
        at_ms: entry.at_ms,
        actor: entry.actor.to_owned(),
        action: entry.action.to_owned(),
        subject: entry.subject.to_owned(),
        detail,
        previous: hex(&previous),
        hash: String::new(),
    };
    let hash = next.hash_after(&previous);
    next.hash = hex(&hash);
    let sql = "INSERT INTO audit (number, at_ms, actor, action, subject, detail, previous, hash) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (number, at) = (next.number.cast_signed(), next.at_ms.cast_signed());
    let values = params![number, at, next.actor, next.action, next.subject, next.detail, previous, hash];
    // A trigger of somebody else's may ignore the row without an error.
    match write.execute(sql, values).map_err(|e| failed("write to", &e))? {
        1 => Ok(next),
        _ => Err(Error::input("the audit log took no entry: a trigger is in the way")),
    }
}

/// Number and hash of the newest entry.
fn head(connection: &Connection) -> Result<(u64, [u8; 32]), rusqlite::Error> {
    let newest = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";
    let row = connection.query_row(newest, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
    Ok(row.map_or((0, [0; 32]), |(number, hash)| (number.cast_unsigned(), hash)))
}

/// Entries after a number, oldest first, at most so many: all of them, or those about one subject.
///
/// # Errors
/// When the store cannot be read.
pub fn entries(
    connection: &Connection,
    after: u64,
    most: u32,
    subject: Option<&str>,
) -> Result<Vec<TrailEntry>, Error> {
    let sql = "SELECT number, at_ms, actor, action, subject, detail, previous, hash FROM audit \
               WHERE number > ?1 AND (?3 IS NULL OR subject = ?3) ORDER BY number LIMIT ?2";
    let read = connection.prepare_cached(sql).and_then(|mut select| {
        let rows = select.query_map(params![after.cast_signed(), most, subject], |row| {
            Ok(TrailEntry {
                number: row.get::<_, i64>(0)?.cast_unsigned(),
                at_ms: row.get::<_, i64>(1)?.cast_unsigned(),
                actor: row.get(2)?,
                action: row.get(3)?,
                subject: row.get(4)?,
                detail: row.get(5)?,
                previous: hex(&row.get::<_, [u8; 32]>(6)?),
                hash: hex(&row.get::<_, [u8; 32]>(7)?),
            })
        })?;
        rows.collect()
    });
    read.map_err(|e| failed("read the audit log in", &e))
}

/// Entries that are read at once.
const BATCH: u32 = 1_000;

/// Computes the chain anew, and looks whether the triggers are those that this program makes.
///
/// # Errors
/// The first thing that is not as it was written. What was cut off the end with its hashes shows to peers
/// that have witnessed it, and to nobody here.
pub fn verify(connection: &Connection) -> Result<VerifiedLog, Error> {
    for (name, sql) in triggers() {
        let found = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?1";
        let found = connection.query_row(found, [&name], |row| row.get::<_, String>(0)).optional();
        if found.map_err(|e| failed("read", &e))?.as_deref() != Some(&sql) {
            let text = format!("the trigger {name} of the audit log is not there, or is another one");
            return Err(Error::input(text));
        }
    }
    no_other_triggers(connection)?;
    let cut = "SELECT through, hash FROM audit_cuts ORDER BY through DESC LIMIT 1";
    let cut = connection.query_row(cut, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional();
    let (through, hash): (i64, [u8; 32]) = cut.map_err(|e| failed("read", &e))?.unwrap_or_default();
    let mut log =
        VerifiedLog { first: through.cast_unsigned() + 1, last: through.cast_unsigned(), hash: hex(&hash) };
    loop {
        let batch = entries(connection, log.last, BATCH, None)?;
        if batch.is_empty() {
            break;
        }
        follow(&mut log, &batch)?;
    }
    let before = "SELECT EXISTS (SELECT 1 FROM audit WHERE number <= ?1)";
    let before: bool =
        connection.query_row(before, [through], |row| row.get(0)).map_err(|e| failed("read", &e))?;
    if before {
        return Err(Error::input(format!("the audit log has entries up to {through}, which were cut off")));
    }
    let told = "SELECT EXISTS (SELECT 1 FROM audit WHERE action = ?1 AND detail = ?2)";
    let told = connection.query_row(told, [CUT, &cut_detail(log.first - 1)], |row| row.get(0));
    if log.first > 1 && !told.map_err(|e| failed("read", &e))? {
        return Err(cut_untold(log.first));
    }
    Ok(log)
}

/// Refuses triggers on the tables that this program did not make: one that ignores a row hides it.
fn no_other_triggers(connection: &Connection) -> Result<(), Error> {
    let read = connection.prepare("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'");
    let read = read.and_then(|mut select| {
        let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        rows.collect::<Result<Vec<_>, _>>()
    });
    let ours: Vec<String> = triggers().map(|(name, _)| name).collect();
    let strange = |(name, table): &(String, String)| {
        GROWING.iter().any(|one| one.eq_ignore_ascii_case(table)) && !ours.contains(name)
    };
    match read.map_err(|e| failed("read", &e))?.iter().find(|one| strange(one)) {
        Some((name, table)) => Err(Error::input(format!(
            "the table {table} of the audit log has the trigger {}, which this program did not make",
            base::clean(name)
        ))),
        None => Ok(()),
    }
}

/// What the entry of a cut says, by which the row of the cut is known.
pub(crate) fn cut_detail(through: u64) -> String {
    json!({ "through": through }).to_string()
}

pub(crate) fn cut_untold(first: u64) -> Error {
    Error::input(format!("the audit log begins with entry {first}, and no entry says that it was cut there"))
}

/// Goes on along the chain.
///
/// # Errors
/// The first entry that does not fit.
pub(crate) fn follow(log: &mut VerifiedLog, entries: &[TrailEntry]) -> Result<(), Error> {
    for entry in entries {
        let number = log.last + 1;
        if entry.number != number {
            let met = entry.number;
            let text = format!("the audit log has no entry {number}, and one with the number {met}");
            return Err(Error::input(text));
        }
        if entry.previous != log.hash || !entry.fits() {
            return Err(Error::input(format!(
                "entry {number} of the audit log ({} by {}) was changed, or the one before it",
                base::clean(&entry.action),
                base::clean(&entry.actor)
            )));
        }
        (log.last, log.hash) = (number, entry.hash.clone());
    }
    Ok(())
}

/// The retention rule: takes away the oldest entries that are older than a time and were exported, up to
/// `exported`, and keeps the hash of the last of them, from which the chain goes on; the newest entry stays.
/// That it was done is an entry, whose action and detail are those of a cut. How many were taken.
///
/// # Errors
/// When the log does not fit its chain, what was exported is another log, or the store cannot be written.
pub fn cut_before(
    connection: &mut Connection,
    before_ms: u64,
    exported: &VerifiedLog,
    by: &NewEntry<'_>,
) -> Result<u64, Error> {
    let log = verify(connection)?;
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let write = write.map_err(|e| failed("write to", &e))?;
    let explain = |e: rusqlite::Error| failed("cut the audit log in", &e);
    let same = "SELECT hash FROM audit WHERE number = ?1";
    let same = write.query_row(same, [exported.last.cast_signed()], |row| row.get::<_, [u8; 32]>(0));
    let same = same.optional().map_err(explain)?;
    if exported.last >= log.first && same.map(|hash| hex(&hash)).as_ref() != Some(&exported.hash) {
        return Err(Error::input("what was exported is another log than this one: export it again"));
    }
    // The first that stays: the oldest that is too young or was not exported.
    let kept = "SELECT MIN(number) FROM audit WHERE at_ms >= ?1 OR number > ?2 OR number = ?3";
    let most = (before_ms.cast_signed(), exported.last.cast_signed(), log.last.cast_signed());
    let kept: Option<i64> = write.query_row(kept, most, |row| row.get(0)).map_err(explain)?;
    let through = kept.unwrap_or(1) - 1;
    if through.cast_unsigned() < log.first {
        return Ok(0);
    }
    let hash: [u8; 32] = write
        .query_row("SELECT hash FROM audit WHERE number = ?1", [through], |row| row.get(0))
        .map_err(explain)?;
    let detail = json!({ "through": through });
    append(&write, &NewEntry { action: CUT, detail: &detail, ..*by })?;
    let cut = write.execute(
        "INSERT INTO audit_cuts (through, at_ms, hash) VALUES (?1, ?2, ?3)",
        params![through, by.at_ms.cast_signed(), hash],
    );
    cut.map_err(explain)?;
    write.execute_batch("DROP TRIGGER audit_no_delete").map_err(explain)?;
    let taken = write.execute("DELETE FROM audit WHERE number <= ?1", [through]).map_err(explain)?;
    write.execute_batch(&trigger("audit", "delete")).map_err(explain)?;
    write.commit().map_err(explain)?;
    Ok(taken as u64)
}

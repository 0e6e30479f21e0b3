//! Sign-ins that failed: counted by name and by address, in the store, so that a restart forgives nothing.
//! Names that nobody has are counted alike, so that waits do not tell which accounts exist.

use super::{RecordedAct, Store, write_down};
use base::Error;
use rusqlite::{OptionalExtension, Transaction, params};

/// Wrong passwords in a row after which a name waits.
const IN_A_ROW: u32 = 5;
/// The longest wait.
const LONGEST_SECONDS: u64 = 15 * 60;
/// Wrong passwords from one address within [`ADDRESS_SECONDS`].
const FROM_ADDRESS: u32 = 30;
const ADDRESS_SECONDS: u64 = 10 * 60;
/// When a name's count is forgotten.
const FORGOTTEN_SECONDS: u64 = 24 * 3600;

/// Whether a password may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// It may.
    Now,
    /// In so many seconds.
    In(u64),
}

impl Store {
    /// Whether a password may be tried for a name, and from an address where that counts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn may_try(&self, name: &str, address: Option<&str>, now: u64) -> Result<Allowed, Error> {
        self.read(|connection| {
            let sql = "SELECT until FROM tries WHERE name = ?1";
            let until = connection.query_row(sql, [hashed(name)], |row| row.get::<_, i64>(0)).optional()?;
            let wait = until.map_or(0, |until| until.unsigned_abs().saturating_sub(now));
            let since = now.saturating_sub(ADDRESS_SECONDS).cast_signed();
            let sql = "SELECT count(*), min(at) FROM (SELECT at FROM tries_from WHERE address = ?1 \
                       AND at > ?2 ORDER BY at DESC LIMIT ?3)";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(0)?, row.get::<_, Option<i64>>(1)?));
            let (count, oldest) = connection.query_row(sql, params![address, since, FROM_ADDRESS], row)?;
            let free = oldest.unwrap_or(0).unsigned_abs() + ADDRESS_SECONDS;
            let of_address = if count >= FROM_ADDRESS { free.saturating_sub(now).max(1) } else { 0 };
            Ok(match wait.max(of_address) {
                0 => Allowed::Now,
                seconds => Allowed::In(seconds),
            })
        })
    }

    /// Forgets the wrong passwords of what they were counted under.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn forget_tries(&self, name: &str) -> Result<(), Error> {
        let sql = "DELETE FROM tries WHERE name = ?1";
        self.change(|transaction| transaction.execute(sql, [hashed(name)])).map(drop)
    }

    /// Counts a wrong password. From the fifth in a row the name waits, each time twice as long; that is
    /// written down as an act, for the owner to see.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn count_wrong(&self, name: &str, address: &str, now: u64) -> Result<(), Error> {
        let count = |transaction: &Transaction<'_>| -> Result<u32, rusqlite::Error> {
            let before = |seconds| now.saturating_sub(seconds).cast_signed();
            transaction.execute("DELETE FROM tries_from WHERE at <= ?1", [before(ADDRESS_SECONDS)])?;
            transaction.execute("DELETE FROM tries WHERE last <= ?1", [before(FORGOTTEN_SECONDS)])?;
            let sql = "INSERT INTO tries_from (address, at) VALUES (?1, ?2)";
            transaction.execute(sql, params![address, now.cast_signed()])?;
            let sql = "INSERT INTO tries (name, wrong, last, until) VALUES (?1, 1, ?2, 0) ON CONFLICT (name) \
                       DO UPDATE SET wrong = wrong + 1, last = ?2 RETURNING wrong";
            let wrong =
                transaction.query_row(sql, params![hashed(name), now.cast_signed()], |row| row.get(0))?;
            let until = (now + wait_after(wrong)).cast_signed();
            transaction
                .execute("UPDATE tries SET until = ?2 WHERE name = ?1", params![hashed(name), until])?;
            Ok(wrong)
        };
        // Known or not, a name costs one transaction.
        let counted = self.within(|transaction| {
            let explain = |e| self.explain("write", &e);
            let wrong = count(transaction).map_err(explain)?;
            // What follows the name of an account says what was tried.
            let account = name.split(' ').next().unwrap_or(name);
            let known = "SELECT EXISTS (SELECT 1 FROM accounts WHERE name = ?1)";
            let known =
                transaction.query_row(known, [account], |row| row.get::<_, bool>(0)).map_err(explain)?;
            if wrong >= IN_A_ROW && known {
                let what = "wrong password, the fifth in a row or a later one";
                let by = format!("address {address}");
                write_down(transaction, &RecordedAct { by: &by, what, to: account, at: now })?;
            }
            Ok(Some(()))
        });
        counted.map(drop)
    }
}

/// What wrong passwords of somebody whom a proxy signs in are counted under: others, who try the name from
/// elsewhere, keep nobody from giving the own password there.
#[must_use]
pub fn tried_by_proxy(account: &str) -> String {
    format!("{account} by the proxy")
}

/// What stands for a name: people type passwords into the wrong field.
pub(super) fn hashed(name: &str) -> [u8; 32] {
    blake3::derive_key("tacit 2026-12 service tried name v1", name.as_bytes())
}

/// Seconds to wait after so many wrong passwords in a row.
fn wait_after(wrong: u32) -> u64 {
    match wrong.checked_sub(IN_A_ROW) {
        None => 0,
        Some(more) => 1u64.checked_shl(more).unwrap_or(LONGEST_SECONDS).min(LONGEST_SECONDS),
    }
}

//! Keys that took the place of others: what was counted for the one counts for all of its line.
//!
//! A key names one successor. What it signed is kept; another statement of the same key is refused and named,
//! and so is a study that names a key whose place was taken: else one party would have two budgets. Own
//! successions are kept as well, so that what this party signed with an earlier key counts as its own.

use super::{Ledger, begin, chain, date, file, now};
use base::Error;
use net::identity::KeyFingerprint;
use net::succession::{SUCCESSIONS, Succession};
use rusqlite::{Connection, OptionalExtension, params};

/// Of keys: the one in a parameter, and all that came before or after it in its line.
pub(super) fn line(parameter: u8) -> String {
    format!(
        "(WITH RECURSIVE line (one) AS (SELECT ?{parameter} UNION SELECT CASE WHEN old = one THEN new ELSE \
         old END FROM line JOIN successions ON old = one OR new = one) SELECT one FROM line)"
    )
}

/// Whether a column of keys, with a space between, has one of the line of the key in a parameter.
pub(super) fn has_line(column: &str, parameter: u8) -> String {
    format!(
        "EXISTS (SELECT 1 FROM {} WHERE instr(' ' || {column} || ' ', ' ' || one || ' ') > 0)",
        line(parameter)
    )
}

impl Ledger {
    /// Keeps that one key took the place of another, unless it is known. Returns whether it was not.
    ///
    /// # Errors
    /// When the old key did not sign it; [`base::Fault::Refused`] when it has named another successor; when
    /// the ledger cannot be written.
    pub fn succeed(&mut self, statement: &Succession) -> Result<bool, Error> {
        if !statement.holds() {
            return Err(Error::input("a key did not sign that another one takes its place"));
        }
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let (old, new) = (statement.old().to_string(), statement.new_key().to_string());
        match successor(&write, &old).map_err(explain)? {
            Some((known, _)) if known == new => return Ok(false),
            Some((known, at)) => {
                return Err(Error::refused(format!(
                    "{old} named {known} as its successor on {}, and now it is said to have named {new} as \
                     well: a key has one successor, and whoever shows two of them would have two budgets, or \
                     has stolen it. Nothing was sent; ask its operator, by other means, which one is right",
                    date(at)
                )));
            }
            None => {}
        }
        let sql = "INSERT INTO successions (at, old, new, statement) VALUES (?1, ?2, ?3, ?4)";
        write.execute(sql, params![now(), old, new, statement.bytes()]).map_err(explain)?;
        let row = write.last_insert_rowid();
        chain::succeed(&write, &old, &new, row).map_err(explain)?;
        write.commit().map_err(explain)?;
        Ok(true)
    }

    /// The key that a key has named as its successor, and the day on which this ledger heard of it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn successor(&self, key: &str) -> Result<Option<(String, String)>, Error> {
        let found = successor(&self.connection, key).map_err(|e| self.explain("read", &e))?;
        Ok(found.map(|(key, at)| (key, date(at))))
    }

    /// The last key of the line of a key.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn newest(&self, key: &str) -> Result<String, Error> {
        newest(&self.connection, key).map_err(|e| self.explain("read", &e))
    }

    /// A key and all that came before or after it in its line.
    pub(super) fn line_of(&self, key: KeyFingerprint) -> Result<Vec<KeyFingerprint>, Error> {
        line_of(&self.connection, key).map_err(|e| self.explain("read", &e))
    }
}

fn successor(connection: &Connection, key: &str) -> Result<Option<(String, i64)>, rusqlite::Error> {
    let sql = "SELECT new, at FROM successions WHERE old = ?1";
    connection.query_row(sql, [key], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// The last key of the line of a key.
pub(super) fn newest(connection: &Connection, key: &str) -> Result<String, rusqlite::Error> {
    let mut newest = key.to_owned();
    for _ in 0..SUCCESSIONS {
        match successor(connection, &newest)? {
            Some((next, _)) => newest = next,
            None => break,
        }
    }
    Ok(newest)
}

/// The same of several keys with a space between.
pub(super) fn newest_of(connection: &Connection, keys: &str) -> Result<String, rusqlite::Error> {
    let all = keys.split(' ').map(|key| newest(connection, key)).collect::<Result<Vec<_>, _>>()?;
    Ok(all.join(" "))
}

/// A key and all that came before or after it in its line.
pub(super) fn line_of(
    connection: &Connection,
    key: KeyFingerprint,
) -> Result<Vec<KeyFingerprint>, rusqlite::Error> {
    let mut query = connection.prepare(&format!("SELECT one FROM {}", line(1)))?;
    let rows = query.query_map([key.to_string()], |row| row.get::<_, String>(0))?;
    let all = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(all.iter().filter_map(|key| key.parse().ok()).collect())
}

//! What organisations have signed about each other's logs (`witness`), held against the log that is there.

use crate::failed;
use crate::log::VerifiedLog;
use base::{Error, hex};
use net::identity::KeyFingerprint;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use statements::{Said, SignedStatement};
use std::collections::BTreeMap;

/// One word about a log: up to which entry somebody has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogWitness {
    /// The number of the entry.
    pub entry: u64,
    /// Its hash, 64 hex digits.
    pub hash: String,
    /// When that was said, by the author's clock: milliseconds since 1970.
    pub at_ms: u64,
}

/// Every word about logs that the store has, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogWitnesses {
    /// The row of the newest statement that was looked at.
    row: i64,
    /// By the author and whose log it is about: the word about the newest entry.
    newest: BTreeMap<(KeyFingerprint, KeyFingerprint), LogWitness>,
    /// Words of one author about one log that cannot both be: the log had another entry, or fewer.
    bent: BTreeMap<(KeyFingerprint, KeyFingerprint), LogWitness>,
}

/// How the own log stands to what a peer has seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WitnessStanding {
    /// The entry is there, with that hash.
    Fits,
    /// It was cut off by the retention rule.
    Cut,
    /// The log ends before it: it was cut at the end, or is an older copy.
    Gone,
    /// There is another entry under its number.
    Another,
}

impl WitnessStanding {
    /// Whether the log is another one than the one that was seen.
    #[must_use]
    pub fn is_wrong(self) -> bool {
        matches!(self, Self::Gone | Self::Another)
    }
}

impl LogWitnesses {
    /// Reads the statements that came since.
    ///
    /// # Errors
    /// When the store cannot be read, or a statement in it was changed.
    pub fn read(&mut self, connection: &Connection) -> Result<(), Error> {
        let sql = "SELECT row, statement FROM statements WHERE row > ?1 ORDER BY row";
        let sql_failed = |e: rusqlite::Error| failed("read statements in", &e);
        let mut select = connection.prepare_cached(sql).map_err(sql_failed)?;
        let mut rows = select.query([self.row]).map_err(sql_failed)?;
        // One at a time: all of them may be more than there is memory for.
        while let Some(row) = rows.next().map_err(sql_failed)? {
            let (number, bytes) =
                row.get(0).and_then(|n| Ok((n, row.get::<_, Vec<u8>>(1)?))).map_err(sql_failed)?;
            let changed =
                |e: Error| Error::input(format!("statement {number} of the store was changed: {e}"));
            let statement = SignedStatement::read(&bytes).map_err(changed)?;
            self.row = number;
            if let Said::Witness { of, entry, hash } = &statement.body().said {
                let at_ms = statement.body().at_ms;
                self.take((statement.author(), *of), LogWitness { entry: *entry, hash: hex(hash), at_ms });
            }
        }
        Ok(())
    }

    fn take(&mut self, about: (KeyFingerprint, KeyFingerprint), new: LogWitness) {
        let Some(held) = self.newest.get(&about) else {
            self.newest.insert(about, new);
            return;
        };
        let back = new.entry < held.entry && new.at_ms > held.at_ms;
        if back || (new.entry == held.entry && new.hash != held.hash) {
            self.bent.insert(about, new.clone());
        }
        if new.entry > held.entry {
            self.newest.insert(about, new);
        }
    }

    /// What each peer has seen of the log of `own`, and how the log stands to it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn of_own(
        &self,
        connection: &Connection,
        own: KeyFingerprint,
    ) -> Result<Vec<(KeyFingerprint, LogWitness, WitnessStanding)>, Error> {
        let (first, last) = ends(connection)?;
        let mut all = Vec::new();
        for ((author, of), word) in &self.newest {
            if *of != own || *author == own {
                continue;
            }
            let standing = match word.entry {
                entry if entry > last => WitnessStanding::Gone,
                entry if entry < first => WitnessStanding::Cut,
                entry if hash_of(connection, entry)?.as_ref() == Some(&word.hash) => WitnessStanding::Fits,
                _ => WitnessStanding::Another,
            };
            all.push((*author, word.clone(), standing));
        }
        Ok(all)
    }

    /// What `own` has seen of the logs of others, and whether one of them went back or is another one.
    #[must_use]
    pub fn of_peers(&self, own: KeyFingerprint) -> Vec<(KeyFingerprint, &LogWitness, bool)> {
        let ours = self.newest.iter().filter(|((author, of), _)| *author == own && *of != own);
        ours.map(|(about, word)| (about.1, word, self.bent.contains_key(about))).collect()
    }
}

/// The first entry that is there, and the newest.
fn ends(connection: &Connection) -> Result<(u64, u64), Error> {
    // Each by itself is found at an end of the index; both at once would go through all entries.
    let sql = "SELECT coalesce((SELECT min(number) FROM audit), 1), \
               coalesce((SELECT max(number) FROM audit), 0)";
    let ends = connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
    let (first, last) = ends.map_err(|e| failed("read the audit log in", &e))?;
    Ok((first.cast_unsigned(), last.cast_unsigned()))
}

fn hash_of(connection: &Connection, entry: u64) -> Result<Option<String>, Error> {
    let sql = "SELECT hash FROM audit WHERE number = ?1";
    let found = connection.query_row(sql, params![entry.cast_signed()], |row| row.get::<_, [u8; 32]>(0));
    Ok(found.optional().map_err(|e| failed("read the audit log in", &e))?.map(|hash| hex(&hash)))
}

/// Where the log stands: what a peer is told, to sign that it has seen it. Nothing is computed anew.
///
/// # Errors
/// When the store cannot be read.
pub fn log_head(connection: &Connection) -> Result<VerifiedLog, Error> {
    let (first, last) = ends(connection)?;
    let hash = hash_of(connection, last)?.unwrap_or_else(|| hex(&[0; 32]));
    Ok(VerifiedLog { first, last, hash })
}

//! Texts of `service.toml` that somebody accepted, and what checks of data found.

use super::{RecordedAct, Store, write_down_with};
use crate::changes::{ProposedChange, RulesChange};
use crate::settings::RulesFile;
use base::Error;
use rusqlite::{OptionalExtension, Transaction, params};
use std::collections::BTreeSet;

/// What is done to data.
pub(super) const CHECKED: &str = "data checked";

/// A data set as the subject of an act: no account has a name with a space.
pub(super) fn subject(data: &str) -> String {
    format!("data {data}")
}

/// A text that somebody accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedRules {
    /// When.
    pub at: u64,
    /// Who.
    pub by: String,
    /// The text.
    pub text: String,
    /// Its hash.
    pub hash: [u8; 32],
}

/// A check of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataCheck {
    /// When it ended.
    pub at: u64,
    /// Who asked for it.
    pub by: String,
    /// What it found, as JSON.
    pub found: String,
}

impl Store {
    /// The text that was accepted last.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn accepted(&self) -> Result<Option<AcceptedRules>, Error> {
        let sql = "SELECT at, by, text, hash FROM accepted ORDER BY number DESC LIMIT 1";
        self.read(|connection| {
            let row = |row: &rusqlite::Row<'_>| {
                let at = row.get::<_, i64>(0)?.unsigned_abs();
                Ok(AcceptedRules { at, by: row.get(1)?, text: row.get(2)?, hash: row.get(3)? })
            };
            connection.query_row(sql, [], row).optional()
        })
    }

    /// Accepts a text.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn accept(&self, act: &RecordedAct<'_>, text: &str, hash: &[u8; 32]) -> Result<(), Error> {
        let sql = "INSERT INTO accepted (at, by, hash, text) VALUES (?1, ?2, ?3, ?4)";
        self.act(act, |transaction| {
            transaction.execute(sql, params![act.at.cast_signed(), act.by, hash, text]).map(drop)
        })
    }

    /// Lets other rules hold, where one person may change them; `file` writes their text. False where other
    /// rules hold by now than those that were changed.
    ///
    /// # Errors
    /// When the file or the store cannot be written.
    pub fn change_rules(
        &self,
        by: &str,
        change: &RulesChange,
        at: u64,
        file: &dyn Fn(&RulesChange) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let done = self.within::<_, Error>(|transaction| {
            if !accept_in(transaction, change, by, at)? {
                return Ok(None);
            }
            file(change)?;
            let change = ProposedChange::Rules(change.clone());
            let act = RecordedAct { by, what: &change.words(), to: change.subject(), at };
            write_down_with(transaction, &act, &change.detail()).map(Some)
        })?;
        Ok(done.is_some())
    }

    /// Pauses the link with a peer, as a steward or as an operator.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn pause(&self, act: &RecordedAct<'_>, peer: &str, as_steward: bool) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO paused (peer, by, as_steward) VALUES (?1, ?2, ?3)";
        self.act(act, |transaction| transaction.execute(sql, params![peer, act.by, as_steward]).map(drop))
    }

    /// Lets the link with a peer go on that whoever acts has paused, or somebody in a role that they have;
    /// false where it was somebody else.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn go_on(&self, act: &RecordedAct<'_>, peer: &str, roles: [bool; 2]) -> Result<bool, Error> {
        let sql = "DELETE FROM paused WHERE peer = ?1 AND (by = ?2 OR (as_steward AND ?3) OR \
                   (NOT as_steward AND ?4))";
        let [steward, operator] = roles;
        let gone = self.act_if(act, |transaction| {
            let gone = transaction.execute(sql, params![peer, act.by, steward, operator])?;
            Ok((gone == 1).then_some(()))
        })?;
        Ok(gone.is_some())
    }

    /// Who has paused the link with a peer, and whether as a steward.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn paused_by(&self, peer: &str) -> Result<Option<(String, bool)>, Error> {
        let sql = "SELECT by, as_steward FROM paused WHERE peer = ?1";
        self.read(|connection| {
            connection.query_row(sql, [peer], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
    }

    /// The peers with whom the link is paused.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn paused(&self) -> Result<BTreeSet<String>, Error> {
        self.read(|connection| {
            let mut query = connection.prepare_cached("SELECT peer FROM paused")?;
            query.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Keeps what a check of data found.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_check(&self, by: &str, data: &str, at: u64, found: &str) -> Result<(), Error> {
        let sql = "INSERT INTO checks (data, at, by, found) VALUES (?1, ?2, ?3, ?4)";
        let act = RecordedAct { by, what: CHECKED, to: &subject(data), at };
        self.act(&act, |transaction| {
            transaction.execute(sql, params![data, at.cast_signed(), by, found]).map(drop)
        })
    }

    /// The newest checks of a data set, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn checks_of(&self, data: &str, most: u32) -> Result<Vec<DataCheck>, Error> {
        let sql = "SELECT at, by, found FROM checks WHERE data = ?1 ORDER BY number DESC LIMIT ?2";
        self.read(|connection| {
            let row = |row: &rusqlite::Row<'_>| {
                let at = row.get::<_, i64>(0)?.unsigned_abs();
                Ok(DataCheck { at, by: row.get(1)?, found: row.get(2)? })
            };
            connection.prepare_cached(sql)?.query_map(params![data, most], row)?.collect()
        })
    }
}

/// Accepts a text in place of the one that holds; false where that is another one by now.
pub(super) fn accept_in(
    transaction: &Transaction<'_>,
    change: &RulesChange,
    by: &str,
    at: u64,
) -> Result<bool, Error> {
    let failed = |e: rusqlite::Error| Error::io("cannot accept rules", &std::io::Error::other(e.to_string()));
    let sql = "SELECT text FROM accepted ORDER BY number DESC LIMIT 1";
    let held: Option<String> = transaction.query_row(sql, [], |row| row.get(0)).optional().map_err(failed)?;
    if held.as_ref() != Some(&change.before) {
        return Ok(false);
    }
    let sql = "INSERT INTO accepted (at, by, hash, text) VALUES (?1, ?2, ?3, ?4)";
    let values = params![at.cast_signed(), by, RulesFile::hash_of(&change.after), change.after];
    transaction.execute(sql, values).map_err(failed)?;
    Ok(true)
}

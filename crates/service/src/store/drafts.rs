//! What people have of studies beside what organisations say: drafts that nobody else sees, and reports that
//! were given to somebody.

use super::{RecordedAct, Store};
use crate::reckoned::SaidSizes;
use base::Error;
use rusqlite::{OptionalExtension, Row, params};
use statements::ProposalId;

/// Drafts that one account keeps at most: the oldest goes.
const KEPT: u32 = 20;

/// A draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftRow {
    /// Its number.
    pub id: u64,
    /// What its author calls it.
    pub title: String,
    /// When it was kept, in seconds since 1970.
    pub at: u64,
    /// What was filled in.
    pub fields: Vec<(String, String)>,
}

/// A reading of a data set's files for a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRead {
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// The title of the study.
    pub title: String,
    /// Whether nothing stood against it.
    pub fits: bool,
}

fn draft(row: &Row<'_>) -> Result<DraftRow, rusqlite::Error> {
    let (id, at): (i64, i64) = (row.get(0)?, row.get(2)?);
    let fields: String = row.get(3)?;
    let fields = serde_json::from_str(&fields).unwrap_or_default();
    Ok(DraftRow { id: id.unsigned_abs(), title: row.get(1)?, at: at.unsigned_abs(), fields })
}

impl Store {
    /// Keeps a draft of whoever acts, in place of the one of this number where it is theirs; its number.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_draft(
        &self,
        act: &RecordedAct<'_>,
        id: Option<u64>,
        title: &str,
        fields: &[(String, String)],
    ) -> Result<u64, Error> {
        let text = serde_json::to_string(fields).map_err(|e| Error::misuse(format!("a draft: {e}")))?;
        self.act(act, |transaction| {
            let gone = "DELETE FROM drafts WHERE account = ?1 AND id = ?2";
            // Who has it keeps its number.
            let held = match id.map(u64::cast_signed) {
                Some(id) if transaction.execute(gone, params![act.by, id])? == 1 => Some(id),
                _ => None,
            };
            let sql = "INSERT INTO drafts (id, account, title, at, fields) VALUES (?1, ?2, ?3, ?4, ?5)";
            transaction.execute(sql, params![held, act.by, title, act.at.cast_signed(), text])?;
            let kept = transaction.last_insert_rowid().unsigned_abs();
            let old = "DELETE FROM drafts WHERE account = ?1 AND id NOT IN (SELECT id FROM drafts WHERE \
                       account = ?1 ORDER BY id DESC LIMIT ?2)";
            transaction.execute(old, params![act.by, KEPT]).map(|_| kept)
        })
    }

    /// The drafts of an account, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn drafts(&self, account: &str) -> Result<Vec<DraftRow>, Error> {
        let sql = "SELECT id, title, at, fields FROM drafts WHERE account = ?1 ORDER BY id DESC";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([account], draft)?.collect())
    }

    /// One of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn draft(&self, account: &str, id: u64) -> Result<Option<DraftRow>, Error> {
        let sql = "SELECT id, title, at, fields FROM drafts WHERE account = ?1 AND id = ?2";
        self.read(|connection| {
            connection.query_row(sql, params![account, id.cast_signed()], draft).optional()
        })
    }

    /// Takes a draft of whoever acts away.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn drop_draft(&self, act: &RecordedAct<'_>, id: u64) -> Result<(), Error> {
        self.act(act, |transaction| {
            let sql = "DELETE FROM drafts WHERE account = ?1 AND id = ?2";
            transaction.execute(sql, params![act.by, id.cast_signed()]).map(drop)
        })
    }

    /// Keeps the rows and outcomes that who acts said with a proposal; nothing where nothing was said.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_sizes(&self, act: &RecordedAct<'_>, id: &ProposalId, said: SaidSizes) -> Result<(), Error> {
        if said == SaidSizes::default() {
            return Ok(());
        }
        let sql = "INSERT OR REPLACE INTO sizes (proposal, first, others, mean) VALUES (?1, ?2, ?3, ?4)";
        let [first, others] = [0, 1].map(|at| said.rows.map(|rows| rows[at].cast_signed()));
        self.act(act, |transaction| {
            transaction.execute(sql, params![id.0, first, others, said.mean]).map(drop)
        })
    }

    /// The rows and outcomes that were said with a proposal here.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sizes_said(&self, id: &ProposalId) -> Result<SaidSizes, Error> {
        let sql = "SELECT first, others, mean FROM sizes WHERE proposal = ?1";
        let said = self.read(|connection| {
            let row = |row: &Row<'_>| {
                let rows: [Option<i64>; 2] = [row.get(0)?, row.get(1)?];
                let rows = rows[0].zip(rows[1]).map(|(first, others)| [first, others].map(i64::unsigned_abs));
                Ok(SaidSizes { rows, mean: row.get(2)? })
            };
            connection.prepare_cached(sql)?.query_row([id.0], row).optional()
        })?;
        Ok(said.unwrap_or_default())
    }

    /// When the files of a data set were last held against a study that somebody wanted to consent to, or
    /// whose data had changed: with all rows read. None: never yet.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn read_for_consent(&self, data: &str) -> Result<Option<DataRead>, Error> {
        let weighed = "SELECT w.at, p.title, w.said = '' FROM weighed AS w JOIN proposals AS p \
                       ON p.id = w.proposal WHERE w.data = ?1 ORDER BY w.at DESC LIMIT 1";
        // Who consents by the command line, and a rule, leave no line in `weighed`. A peer's consent has read
        // nothing here. A proposal changes when it is consented to, so the newest changes come first.
        let consented = "SELECT (SELECT max(at_ms) FROM audit WHERE subject = lower(hex(p.study)) \
                         AND action = 'study consented to' AND actor NOT LIKE 'peer %' \
                         AND at_ms <= p.changed_ms) / 1000, p.title, 1, p.changed_ms / 1000 \
                         FROM proposals AS p CROSS JOIN consents AS c ON c.proposal = p.id \
                         WHERE c.data = ?1 ORDER BY p.changed_ms DESC";
        self.read(|connection| {
            let read = |row: &Row<'_>| {
                let at = row.get::<_, i64>(0)?.unsigned_abs();
                Ok(DataRead { at, title: row.get(1)?, fits: row.get(2)? })
            };
            let mut newest = connection.prepare_cached(weighed)?.query_row([data], read).optional()?;
            let mut query = connection.prepare_cached(consented)?;
            let mut rows = query.query([data])?;
            while let Some(row) = rows.next()? {
                let changed = row.get::<_, i64>(3)?.unsigned_abs();
                if newest.as_ref().is_some_and(|newest| newest.at > changed) {
                    break;
                }
                if row.get::<_, Option<i64>>(0)?.is_some() {
                    let found = read(row)?;
                    newest = newest.filter(|newest| newest.at >= found.at).or(Some(found));
                }
            }
            Ok(newest)
        })
    }

    /// Lets the account that an act is about read the report of a proposal.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn give_report(&self, act: &RecordedAct<'_>, id: &ProposalId) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO given (proposal, account) VALUES (?1, ?2)";
        self.act(act, |transaction| transaction.execute(sql, params![id.0, act.to]).map(drop))
    }

    /// Takes the report of a proposal back from the account that an act is about.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn take_report(&self, act: &RecordedAct<'_>, id: &ProposalId) -> Result<(), Error> {
        let sql = "DELETE FROM given WHERE proposal = ?1 AND account = ?2";
        self.act(act, |transaction| transaction.execute(sql, params![id.0, act.to]).map(drop))
    }

    /// Whether an account may read the report of a proposal because somebody gave it to them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn is_given(&self, id: &ProposalId, account: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM given WHERE proposal = ?1 AND account = ?2";
        self.read(|connection| {
            connection.prepare_cached(sql)?.query_row(params![id.0, account], |_| Ok(())).optional()
        })
        .map(|found| found.is_some())
    }

    /// The proposals whose report somebody gave to an account.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn given_reports(&self, account: &str) -> Result<Vec<ProposalId>, Error> {
        let sql = "SELECT proposal FROM given WHERE account = ?1 ORDER BY proposal";
        self.read(|connection| {
            let row = |row: &Row<'_>| row.get(0).map(ProposalId);
            connection.prepare_cached(sql)?.query_map([account], row)?.collect()
        })
    }

    /// Who may read a report because somebody gave it to them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn given_to(&self, id: &ProposalId) -> Result<Vec<String>, Error> {
        let sql = "SELECT account FROM given WHERE proposal = ?1 ORDER BY account";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([id.0], |row| row.get(0))?.collect())
    }

    /// Keeps what stood against a consent; nothing where it was given.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_weighed(
        &self,
        act: &RecordedAct<'_>,
        id: &ProposalId,
        data: &str,
        said: &str,
    ) -> Result<(), Error> {
        let sql = "INSERT OR REPLACE INTO weighed (proposal, at, data, said) VALUES (?1, ?2, ?3, ?4)";
        self.act(act, |transaction| {
            transaction.execute(sql, params![id.0, act.at.cast_signed(), data, said]).map(drop)
        })
    }

    /// What stood against the last consent to a proposal that was tried: when, with which data, why not.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn weighed(&self, id: &ProposalId) -> Result<Option<(u64, String, String)>, Error> {
        let sql = "SELECT at, data, said FROM weighed WHERE proposal = ?1 AND said <> ''";
        self.read(|connection| {
            let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?, row.get(2)?));
            connection.query_row(sql, [id.0], row).optional()
        })
    }
}

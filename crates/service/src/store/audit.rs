//! The audit log as pages show it, and what a retention rule takes away.

use super::{RecordedAct, Store, write_down};
use base::Error;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use trail::{NewEntry, TrailEntry, VerifiedLog};

/// Which entries; what is empty or none says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrailFilter {
    /// Who.
    pub actor: String,
    /// What, by how it begins.
    pub action: String,
    /// To what.
    pub subject: String,
    /// From this time on, in seconds since 1970.
    pub from: Option<u64>,
    /// Before this time.
    pub until: Option<u64>,
}

/// A report that is taken away, as it is written before.
#[derive(Serialize)]
struct KeptReport {
    proposal: String,
    name: String,
    run: u32,
    at_ms: u64,
    content: String,
}

impl Store {
    /// Entries of the log below a number, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn trail_page(
        &self,
        filter: &TrailFilter,
        below: Option<u64>,
        most: u32,
    ) -> Result<Vec<TrailEntry>, Error> {
        let (sql, values) = conditions(filter, below, most);
        self.read(|connection| {
            let mut query = connection.prepare_cached(&sql)?;
            let row = |row: &rusqlite::Row<'_>| {
                let hash = |column| row.get::<_, [u8; 32]>(column).map(|hash| base::hex(&hash));
                Ok(TrailEntry {
                    number: row.get::<_, i64>(0)?.unsigned_abs(),
                    at_ms: row.get::<_, i64>(1)?.unsigned_abs(),
                    actor: row.get(2)?,
                    action: row.get(3)?,
                    subject: row.get(4)?,
                    detail: row.get(5)?,
                    previous: hash(6)?,
                    hash: hash(7)?,
                })
            };
            query.query_map(rusqlite::params_from_iter(values), row)?.collect()
        })
    }

    /// A second connection that only reads, for what takes long: others go on meanwhile.
    ///
    /// # Errors
    /// When the store cannot be opened.
    pub fn reader(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&self.path, flags);
        reader
            .and_then(|reader| reader.busy_timeout(super::WAIT).map(|()| reader))
            .map_err(|e| self.explain("read", &e))
    }

    /// Whether the log has entries from before a time, beside its newest one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has_older(&self, before: u64) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM audit WHERE number = (SELECT min(number) FROM audit) \
                   AND at_ms < ?1 AND number < (SELECT max(number) FROM audit))";
        let before = i64::try_from(before.saturating_mul(1_000)).unwrap_or(i64::MAX);
        self.read(|connection| connection.query_row(sql, [before], |row| row.get(0)))
    }

    /// Takes away entries from before a time that were exported.
    ///
    /// # Errors
    /// When what was exported is another log, or the store cannot be written.
    pub fn cut_log(&self, before: u64, exported: &VerifiedLog, act: &RecordedAct<'_>) -> Result<u64, Error> {
        let by = NewEntry {
            at_ms: act.at.saturating_mul(1_000),
            actor: act.by,
            action: act.what,
            subject: act.to,
            detail: &serde_json::Value::Null,
        };
        trail::cut_before(&mut self.lock(), before.saturating_mul(1_000), exported, &by)
    }

    /// Takes away reports from before a time, after `out` has them; how many there were.
    ///
    /// # Errors
    /// When they cannot be written there, or the store cannot be written; nothing is taken away then.
    pub fn cut_reports(
        &self,
        before: u64,
        act: &RecordedAct<'_>,
        out: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let before = i64::try_from(before.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let explain = |e| self.explain("write", &e);
        let taken = self.within::<_, Error>(|transaction| {
            let sql = "SELECT proposal, name, run, at_ms, content FROM report_files WHERE at_ms < ?1";
            let mut query = transaction.prepare(sql).map_err(explain)?;
            let row = |row: &rusqlite::Row<'_>| {
                let content: Vec<u8> = row.get(4)?;
                Ok(KeptReport {
                    proposal: base::hex(&row.get::<_, [u8; 16]>(0)?),
                    name: row.get(1)?,
                    run: row.get(2)?,
                    at_ms: row.get::<_, i64>(3)?.unsigned_abs(),
                    content: String::from_utf8_lossy(&content).into_owned(),
                })
            };
            let all = query.query_map([before], row).map_err(explain)?;
            let (mut lines, mut count) = (Vec::new(), 0);
            for one in all {
                let line = json!(one.map_err(explain)?);
                writeln!(lines, "{line}").map_err(|e| Error::io("cannot write reports", &e))?;
                count += 1;
            }
            if count == 0 {
                return Ok(None);
            }
            out(&lines)?;
            transaction.execute("DELETE FROM report_files WHERE at_ms < ?1", [before]).map_err(explain)?;
            write_down(transaction, act).map(|()| Some(count))
        })?;
        Ok(taken.unwrap_or(0))
    }
}

/// The query of a page: only what the filter says stands in it, so that an index serves where there is one.
fn conditions(filter: &TrailFilter, below: Option<u64>, most: u32) -> (String, Vec<Value>) {
    let number = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let at_ms = |at: u64| number(at.saturating_mul(1_000));
    let text = |text: &String| Some(Value::from(text.clone())).filter(|_| !text.is_empty());
    let said = [
        ("number < ?", below.map(number)),
        ("actor = ?", text(&filter.actor)),
        ("instr(action, ?) = 1", text(&filter.action)),
        ("subject = ?", text(&filter.subject)),
        ("at_ms >= ?", filter.from.map(at_ms)),
        ("at_ms < ?", filter.until.map(at_ms)),
    ];
    let mut sql =
        "SELECT number, at_ms, actor, action, subject, detail, previous, hash FROM audit WHERE 1".to_owned();
    let mut values = Vec::new();
    for (condition, value) in said {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(" AND ");
            sql.push_str(condition);
        }
    }
    values.push(most.into());
    sql.push_str(" ORDER BY number DESC LIMIT ?");
    (sql, values)
}

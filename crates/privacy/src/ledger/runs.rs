//! How often runs begin with a peer: a limit of this party's own, whatever comes of the runs.

use super::{Bytes32, Ledger, begin, file, moment, now, succession};
use base::Error;
use rusqlite::{Connection, params};
use study::party::RunRate;

impl Ledger {
    /// Whether a run with a peer may begin now; nothing is written. `name` is the peer's.
    ///
    /// # Errors
    /// [`base::Fault::Refused`] when too many began of late, with the time from which on one may; when the
    /// ledger cannot be read.
    pub fn may_begin(&self, (peer, name): (&str, &str), rate: Option<RunRate>) -> Result<(), Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let Some(rate) = rate else { return Ok(()) };
        full(&self.connection, peer, rate).map_err(explain)?.map_or(Ok(()), |at| Err(refused(name, rate, at)))
    }

    /// Counts a run with a peer that begins now. On return it is on stable storage.
    ///
    /// # Errors
    /// As [`Ledger::may_begin`]; then it is not counted. When the ledger cannot be written.
    pub fn begin_run(
        &mut self,
        (peer, name): (&str, &str),
        study: &Bytes32,
        rate: Option<RunRate>,
    ) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "count a run in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        if let Some(rate) = rate
            && let Some(at) = full(&write, peer, rate).map_err(explain)?
        {
            return Err(refused(name, rate, at));
        }
        let sql = "INSERT INTO runs (at, peer, study) VALUES (?1, ?2, ?3)";
        write.execute(sql, params![now(), peer, study]).map_err(explain)?;
        write.commit().map_err(explain)
    }
}

/// From when on another run may begin, if none may now. Runs that are dated later than now count: the clock
/// was set back.
fn full(connection: &Connection, peer: &str, rate: RunRate) -> Result<Option<i64>, rusqlite::Error> {
    let sql =
        format!("SELECT at FROM runs WHERE peer IN {} AND at > ?2 ORDER BY at DESC", succession::line(1));
    let mut query = connection.prepare(&sql)?;
    let since = now() - i64::from(rate.seconds);
    let rows = query.query_map(params![peer, since], |row| row.get::<_, i64>(0))?;
    // The next one may begin when fewer than that many are left.
    let last = rows.collect::<Result<Vec<_>, _>>()?.get(rate.runs as usize - 1).copied();
    Ok(last.map(|at| at.saturating_add(i64::from(rate.seconds))))
}

fn refused(name: &str, rate: RunRate, at: i64) -> Error {
    Error::refused(format!(
        "policy.runs: {} runs with {name} have begun, and {} may; nothing was sent. The next one may begin \
         at {} or later; or raise policy.runs",
        rate.runs,
        rate.words(),
        moment(at)
    ))
}

//! How much there is in a store, for who watches the machine: numbers alone.

use super::Store;
use super::sessions::{IDLE_SECONDS, SESSION_SECONDS};
use base::Error;
use rusqlite::{Connection, params};

/// Numbers of a store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Proposals in each state that one is in, by [`statements::ProposalState::name`].
    pub studies: Vec<(String, u64)>,
    /// Proposals that wait for a person because something holds them.
    pub held: u64,
    /// Runs by how they ended, or `offered` or `running`.
    pub runs: Vec<(String, u64)>,
    /// Own statements that a peer has not acknowledged.
    pub unsent: u64,
    /// Sessions of people that hold.
    pub sessions: u64,
    /// The number of the log's newest entry.
    pub log: u64,
}

impl Store {
    /// Counts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn counts(&self, now: u64) -> Result<StoreCounts, Error> {
        let since = |seconds| now.saturating_sub(seconds).cast_signed();
        let sessions = "SELECT count(*) FROM sessions WHERE begun > ?1 AND seen > ?2";
        self.read(|connection| {
            let one = |sql: &str| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
            let held = one("SELECT count(*) FROM proposals WHERE open AND held IS NOT NULL")?;
            let unsent = one("SELECT count(*) FROM outbox WHERE had_ms IS NULL AND refused IS NULL")?;
            let log = one("SELECT coalesce(max(number), 0) FROM audit")?;
            let held_now = params![since(SESSION_SECONDS), since(IDLE_SECONDS)];
            let sessions: i64 = connection.query_row(sessions, held_now, |row| row.get(0))?;
            let [held, unsent, log, sessions] = [held, unsent, log, sessions].map(i64::unsigned_abs);
            let studies = by_name(connection, "SELECT state, count(*) FROM proposals GROUP BY state")?;
            let runs = "SELECT coalesce(outcome, iif(begun_ms IS NULL, 'offered', 'running')) AS how, \
                        count(*) FROM runs GROUP BY how";
            let runs = by_name(connection, runs)?;
            Ok(StoreCounts { studies, held, runs, unsent, sessions, log })
        })
    }
}

fn by_name(connection: &Connection, sql: &str) -> Result<Vec<(String, u64)>, rusqlite::Error> {
    let mut query = connection.prepare_cached(sql)?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()));
    query.query_map([], row)?.collect()
}

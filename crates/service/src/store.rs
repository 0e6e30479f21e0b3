//! `service.db`: accounts, sessions, what was accepted and checked, and who did what. SQLite with a
//! write-ahead log, on stable storage before a call returns, readable by its owner alone.
//!
//! Whatever changes something goes through [`Store::act`]: the change and the line that says who made it are
//! one transaction, and if the line cannot be written, nothing happens. The lines are the audit log of the
//! crate `trail`: a chain, which whoever audits the organisation can check.

mod accounts;
mod audit;
mod backup;
mod checks;
mod confirmations;
mod consents;
mod counts;
mod drafts;
mod feed;
mod layout;
mod requests;
mod runs;
mod second;
mod sessions;
mod shelf;
mod studies;
#[cfg(test)]
mod studies_tests;
#[cfg(test)]
mod tests;
mod tokens;
mod tries;
mod unheard;

pub use accounts::{Account, AccountState, LinkOwner, PasswordRight};
pub use audit::TrailFilter;
pub use confirmations::Confirmed;
pub use consents::{ApprovalRow, ApprovedTerms, ConsentRight, OwnConsent, RULES_OF_BEFORE};
pub use drafts::{DataRead, DraftRow};
pub use feed::FeedPlace;
pub use requests::SealRequest;
pub use runs::{RunLeft, RunLine, RunRow};
pub use sessions::OpenSession;
pub use studies::{
    ALREADY_OPEN, Absorbed, OutboxRow, PAGE, PeerSender, ProposalFilter, ProposalRow, RUN_STOPPED, SERVICE,
    STOPPED, SeenBy, Speaker, kind_of,
};
pub use tokens::{ApiToken, NewApiToken, Replayed, TokenScope};
pub use tries::{Allowed, tried_by_proxy};
pub use unheard::{HELD, UNHEARD};

use base::Error;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use shelf::RecordShelf;
use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use studies::KnownCounts;
use tokio::sync::watch;

/// How long a writer waits for another process, such as `tacit service account`.
const WAIT: Duration = Duration::from_secs(10);
/// Queries that stay planned.
const QUERIES: usize = 64;

/// An open store. Processes may have it open side by side.
pub struct Store {
    connection: Mutex<Connection>,
    path: PathBuf,
    changed: watch::Sender<u64>,
    /// What was read and checked of proposals before.
    shelf: Mutex<RecordShelf>,
    counts: Mutex<KnownCounts>,
}

/// Who does something, to what.
#[derive(Clone, Copy, Debug)]
pub struct RecordedAct<'a> {
    /// Who: the name of an account, or [`COMMAND_LINE`].
    pub by: &'a str,
    /// What, as a verb and its object: `account added`.
    pub what: &'a str,
    /// To whom or what.
    pub to: &'a str,
    /// Seconds since 1970.
    pub at: u64,
}

/// One line of who did what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActRow {
    /// Seconds since 1970.
    pub at: u64,
    /// Who.
    pub by: String,
    /// What.
    pub what: String,
    /// To whom or what.
    pub to: String,
}

/// Who acts by `tacit service` on the machine itself.
pub const COMMAND_LINE: &str = "(command line)";

impl Store {
    /// Opens the store at `path`, or makes one there. Its mode becomes 600.
    ///
    /// # Errors
    /// When the file is no store, was written by a newer version, or cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::io(format!("cannot open the store {}", path.display()), &e);
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path);
        let file = file.map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600)).map_err(failed)?;
        }
        let explain = |e| explain(path, "open", &e);
        let mut connection = Connection::open(path).map_err(explain)?;
        configure(&connection).map_err(explain)?;
        layout::settle(&mut connection, path)?;
        let changed = watch::Sender::new(0);
        let (connection, path) = (Mutex::new(connection), path.to_owned());
        Ok(Self { connection, path, changed, shelf: Mutex::default(), counts: Mutex::default() })
    }

    /// Tells that something was said, or came, or that a run came further.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Tells all who wait for [`Self::changes`] to look.
    pub fn ring(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Writes down what changes nothing else.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn record(&self, act: &RecordedAct<'_>) -> Result<(), Error> {
        self.act(act, |_| Ok(()))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic in a transaction takes it back: what is there is whole.
        self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn explain(&self, doing: &str, error: &rusqlite::Error) -> Error {
        explain(&self.path, doing, error)
    }

    /// Changes something, and writes down who did it.
    ///
    /// # Errors
    /// When `change` refuses, or the store cannot be written; nothing has changed then.
    fn act<T>(
        &self,
        act: &RecordedAct<'_>,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, Error> {
        let done = self.act_if(act, |transaction| change(transaction).map(Some))?;
        done.ok_or_else(|| Error::misuse("a change that does not refuse was refused"))
    }

    /// The same, where `change` says by `None` that there is nothing to do any more: nothing has changed
    /// then, and no line is written.
    fn act_if<T>(
        &self,
        act: &RecordedAct<'_>,
        change: impl FnOnce(&Transaction<'_>) -> Result<Option<T>, rusqlite::Error>,
    ) -> Result<Option<T>, Error> {
        self.within(|transaction| {
            let done = change(transaction).map_err(|e| self.explain("write", &e))?;
            done.map(|done| write_down(transaction, act).map(|()| done)).transpose()
        })
    }

    /// One transaction, which is given up where there is an error or nothing to do.
    fn within<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let explain = |e| self.explain("write", &e);
        let mut connection = self.lock();
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(explain)?;
        let Some(done) = change(&transaction)? else { return Ok(None) };
        transaction.commit().map_err(explain)?;
        Ok(Some(done))
    }

    /// Changes what is nobody's act: counters, and when a session was last used.
    fn change<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, Error> {
        let mut connection = self.lock();
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = begun.and_then(|transaction| {
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|e| self.explain("write", &e))
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>) -> Result<T, Error> {
        read(&self.lock()).map_err(|e| self.explain("read", &e))
    }

    /// What an account did, or was done to it: the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn acts_of(&self, account: &str, most: u64) -> Result<Vec<ActRow>, Error> {
        self.read(|connection| {
            let sql = "SELECT at_ms / 1000, actor, action, subject FROM audit \
                       WHERE actor = ?1 OR subject = ?1 ORDER BY number DESC LIMIT ?2";
            let mut query = connection.prepare_cached(sql)?;
            let row = |row: &rusqlite::Row<'_>| {
                let at = row.get::<_, i64>(0)?.unsigned_abs();
                Ok(ActRow { at, by: row.get(1)?, what: row.get(2)?, to: row.get(3)? })
            };
            query.query_map(params![account, most.cast_signed()], row)?.collect()
        })
    }
}

/// Adds a line to the audit log: the one that `tacit ledger verify --service` checks and exports.
fn write_down(transaction: &Transaction<'_>, act: &RecordedAct<'_>) -> Result<(), Error> {
    write_down_with(transaction, act, &serde_json::Value::Null)
}

/// The same with more about it.
fn write_down_with(
    transaction: &Transaction<'_>,
    act: &RecordedAct<'_>,
    detail: &serde_json::Value,
) -> Result<(), Error> {
    let RecordedAct { by, what, to, at } = *act;
    let entry =
        trail::NewEntry { at_ms: at.saturating_mul(1_000), actor: by, action: what, subject: to, detail };
    trail::append(transaction, &entry).map(drop)
}

fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(WAIT)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Else REPLACE would delete without asking the triggers.
    connection.pragma_update(None, "recursive_triggers", true)?;
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Queries are planned once, for any value that is bound, and kept: pages ask some sixty.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(QUERIES);
    Ok(())
}

fn explain(path: &Path, doing: &str, error: &rusqlite::Error) -> Error {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            Error::input(format!("{path} is no store of a service: give another path, or move it away"))
        }
        _ => Error::io(format!("cannot {doing} the store {path}"), &std::io::Error::other(error.to_string())),
    }
}

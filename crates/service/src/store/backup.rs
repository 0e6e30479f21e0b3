//! Copies of the store, and what has to be said before one is used.

use super::{COMMAND_LINE, RecordedAct, Store};
use base::Error;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OptionalExtension, params};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Pages that are copied at once, and the pause in which others go on.
const PAGES: i32 = 256;
const PAUSE: Duration = Duration::from_millis(1);

impl Store {
    /// Copies the store, as it is at one moment, into a new file that only its owner may read. The copy says
    /// of itself that it is one.
    ///
    /// # Errors
    /// When the file is there already, or either one cannot be read or written.
    pub fn copy_to(&self, to: &Path, at: u64) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::io(format!("cannot write {}", to.display()), &e);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(failed)?;
        let copied = self.reader().and_then(|reader| {
            let copy = || -> Result<(), rusqlite::Error> {
                let mut copy = Connection::open(to)?;
                Backup::new(&reader, &mut copy)?.run_to_completion(PAGES, PAUSE, None)?;
                // One file, without others beside it.
                copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
                copy.execute("DELETE FROM sessions", [])?;
                copy.execute("DELETE FROM links", [])?;
                copy.execute("DELETE FROM answers", [])?;
                copy.execute("DELETE FROM tokens", [])?;
                copy.execute("INSERT INTO copies (at) VALUES (?1)", params![at.cast_signed()]).map(drop)
            };
            copy().map_err(|e| super::explain(to, "write the copy", &e))
        });
        let synced = copied.and_then(|()| file.sync_all().map_err(failed));
        synced.inspect_err(|_| _ = std::fs::remove_file(to))
    }

    /// When this store was copied from another one, where nobody has said since that it may be used.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn is_copy_of(&self) -> Result<Option<u64>, Error> {
        let sql = "SELECT max(at) FROM copies HAVING count(*) > 0";
        self.read(|connection| {
            let found = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).optional()?;
            Ok(found.map(i64::unsigned_abs))
        })
    }

    /// Says on the machine that a copy of a day is the store from now on.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn use_copy(&self, day: &str, at: u64) -> Result<(), Error> {
        let what = format!("a copy of {day} is used from now on");
        let act = RecordedAct { by: COMMAND_LINE, what: &what, to: "", at };
        // Others may have more of what was said here than the copy.
        let unheard = "INSERT OR IGNORE INTO unheard (proposal, peer) SELECT id, party FROM proposals \
                       JOIN parties ON proposal = row WHERE open";
        let restored = "INSERT OR REPLACE INTO restored (one, at_ms, accepted) VALUES (1, ?1, \
                        (SELECT coalesce(max(number), 0) FROM accepted))";
        self.act(&act, |transaction| {
            transaction.execute(unheard, [])?;
            transaction.execute(restored, [at.saturating_mul(1_000).cast_signed()])?;
            transaction.execute("DELETE FROM copies", []).map(drop)
        })
    }

    /// When it was said last that a copy is the store: milliseconds since 1970, 0 for never.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn copy_used_ms(&self) -> Result<u64, Error> {
        self.read(copy_used_ms)
    }

    /// Whether `service.toml` was not accepted on this machine since it was said last that a copy is the
    /// store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn accepted_before_copy(&self) -> Result<bool, Error> {
        self.read(accepted_before_copy)
    }
}

fn copy_used_ms(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let sql = "SELECT coalesce(max(at_ms), 0) FROM restored";
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// What a rule consented to since the copy was made is not in it, and whoever proposed need not give it back:
/// a rule would consent once more. A change of one rule by page is no look at all of them.
pub(super) fn accepted_before_copy(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM restored WHERE NOT EXISTS (SELECT 1 FROM accepted \
               WHERE accepted.number > restored.accepted AND accepted.by = ?1))";
    connection.query_row(sql, [COMMAND_LINE], |row| row.get(0))
}

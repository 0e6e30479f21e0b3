//! The ledger's file: its layout, how it comes into being, and what to say when it cannot be used.

use super::layout::{self, VERSION};
use base::{At, Error, Fault};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Marks a database as a ledger of ours (SQLite's `application_id`): "TCTL".
const APPLICATION: i32 = 0x5443_544c;
/// Opens the ledger at `path`; makes an empty one when nothing is there. Returns whether it was made.
pub(super) fn open(path: &Path, wait: Duration) -> Result<(Connection, bool), Error> {
    let made = create_if_missing(path)?;
    not_empty(path)?;
    keep_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| explain(path, "open", &e))?;
    configure(&connection, wait).map_err(|e| explain(path, "open", &e))?;
    settle(&connection, path)?;
    Ok((connection, made))
}

/// A copy in memory of the ledger at `path`, or of an empty one where nothing is there, and whether that is
/// so. The file stays as it is, but that a transaction of a process that was killed is taken back.
pub(super) fn look(path: &Path, wait: Duration) -> Result<(Connection, bool), Error> {
    let failed = |e: rusqlite::Error| explain(path, "read", &e);
    let mut memory = Connection::open_in_memory().map_err(failed)?;
    if !path.exists() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(Error::input(format!(
                "the ledger {} cannot be made: the folder {} is not there; make it, or change `ledger`",
                path.display(),
                folder.display()
            )));
        }
        fill(&memory).map_err(failed)?;
        return Ok((memory, true));
    }
    not_empty(path)?;
    // A run that was killed leaves a journal, whose transaction is taken back before anything can be read.
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    let access = match Path::new(&journal).exists() {
        true => OpenFlags::SQLITE_OPEN_READ_WRITE,
        false => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(path, flags).map_err(failed)?;
    source.busy_timeout(wait).map_err(failed)?;
    let copied = Backup::new(&source, &mut memory).and_then(|backup| backup.step(-1)).map_err(failed)?;
    if !matches!(copied, StepResult::Done) {
        return Err(Error::new(
            At::default(),
            Fault::Io(format!(
                "cannot read the ledger {}: {} holds it; try again",
                path.display(),
                holder(path)
            )),
        ));
    }
    settle(&memory, path)?;
    Ok((memory, false))
}

fn not_empty(path: &Path) -> Result<(), Error> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(named("open", path), &e))?;
    if metadata.len() > 0 {
        return Ok(());
    }
    Err(Error::input(format!(
        "the ledger {} is empty, as if cut off: put back a backup (a new ledger would forget what was spent)",
        path.display()
    )))
}

/// Whether it is a ledger, of this version after this.
fn settle(connection: &Connection, path: &Path) -> Result<(), Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let found = pragma("application_id").and_then(|id| Ok((id, pragma("user_version")?)));
    match found.map_err(|e| explain(path, "open", &e))? {
        (APPLICATION, VERSION) => Ok(()),
        (APPLICATION, 1..VERSION) => {
            layout::update(connection).map_err(|e| explain(path, "bring up to date", &e))
        }
        (APPLICATION, version) if version > VERSION => Err(Error::input(format!(
            "the ledger {} has format {version}, written by a newer tacit; this one reads up to {VERSION}: \
             use the newer tacit",
            path.display()
        ))),
        _ => Err(not_a_ledger(path)),
    }
}

/// One file; beside it a journal while a transaction runs, or after a crash. EXTRA also syncs the folder when
/// it goes away.
fn configure(connection: &Connection, wait: Duration) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(wait)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Else REPLACE would delete without asking the triggers.
    connection.pragma_update(None, "recursive_triggers", true)?;
    // What is wiped, a share that was dropped, leaves nothing in free pages.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "EXTRA")
}

/// Makes an empty ledger in one step: it is written aside and linked into place, so that nobody meets half of
/// one and two processes that start together do not both make it.
fn create_if_missing(path: &Path) -> Result<bool, Error> {
    if path.exists() {
        return Ok(false);
    }
    let failed = |e: &std::io::Error| Error::io(named("create", path), e);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = tempfile::Builder::new().prefix(".ledger-").tempfile_in(folder).map_err(|e| failed(&e))?;
    let made = Connection::open(aside.path()).and_then(|connection| {
        configure(&connection, Duration::ZERO)?;
        fill(&connection)
    });
    made.map_err(|e| explain(path, "create", &e))?;
    match aside.persist_noclobber(path) {
        Ok(file) => file.sync_all().map_err(|e| failed(&e))?,
        Err(e) if e.error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(e) => return Err(failed(&e.error)),
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| failed(&e))?;
    Ok(true)
}

/// What an empty ledger holds.
fn fill(connection: &Connection) -> Result<(), rusqlite::Error> {
    layout::create(connection)?;
    connection.pragma_update(None, "application_id", APPLICATION)
}

/// It holds the seeds of noise: nobody but its owner reads it. SQLite gives its journal the same mode.
fn keep_private(path: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|e| Error::io(named("open", path), &e))?;
        let failed = |e| Error::io(named("make private (mode 600)", path), &e);
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
    }
    Ok(())
}

fn named(what: &str, path: &Path) -> String {
    format!("cannot {what} the ledger {}", path.display())
}

fn not_a_ledger(path: &Path) -> Error {
    Error::input(format!(
        "{} is not a privacy ledger of tacit; give another file (it was left as it is)",
        path.display()
    ))
}

/// What an SQLite error means for the operator.
pub(super) fn explain(path: &Path, what: &str, error: &rusqlite::Error) -> Error {
    let io = |text: String| Error::new(At::default(), Fault::Io(text));
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_ledger(path),
        Some(ErrorCode::DiskFull) => io(format!(
            "cannot {what} the ledger {shown}: the disk is full; nothing was recorded: free some space and \
             run again"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io(format!(
            "cannot {what} the ledger {shown}: {} holds it; wait for that run to end, or end it, and run \
             again",
            holder(path)
        )),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            io(format!("cannot {what} the ledger {shown}: it, or its folder, cannot be written by this user"))
        }
        Some(ErrorCode::DatabaseCorrupt) => io(format!(
            "cannot {what} the ledger {shown}: the file is damaged; put back a backup and tell the other \
             party, since what was spent after the backup is not in it"
        )),
        _ => io(format!("cannot {what} the ledger {shown}: {error}")),
    }
}

/// Which process holds a lock on the file, as far as the system tells.
fn holder(path: &Path) -> String {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let inode = std::fs::metadata(path).map(|m| format!(":{}", m.ino()));
        if let (Ok(inode), Ok(locks)) = (inode, std::fs::read_to_string("/proc/locks")) {
            // "1: POSIX  ADVISORY  WRITE 4242 08:01:131 128 128"
            let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let mut writers = fields.filter(|f| f.len() > 5 && f[3] == "WRITE" && f[5].ends_with(&inode));
            if let Some(fields) = writers.next() {
                return format!("process {}", fields[4]);
            }
        }
    }
    "another process".into()
}

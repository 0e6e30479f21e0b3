//! The audit trail of an organisation's service: what was done on it, and by whom; every statement about a
//! proposal; and both with the privacy ledger as one signed file for who audits it.
//!
//! The tables lie in the service's own store (`service.db`), beside its others: an action and its entry are
//! one transaction, so nothing happens that is not written down. Entries are chained by hashes, and triggers
//! abort every change; peers sign that they have seen the chain (`witness`), so who rewrites it needs their
//! keys as well. `docs/protocols/statements.md` has the tables, the file and what each check finds.

mod checks;
mod export;
mod kept;
mod log;
mod witness;

pub use checks::{ComparedTrails, check_consents, compare};
pub use export::{ExportHead, SignedTrail, TRAIL_FORMAT, TrailScope, is_trail};
pub use kept::{keep_statement, proposals, statements};
pub use log::{NewEntry, TrailEntry, VerifiedLog, append, create, cut_before, entries, record, verify};
pub use witness::{LogWitness, LogWitnesses, WitnessStanding, log_head};

use base::Error;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// The store in the folder of a service.
pub const STORE_FILE: &str = "service.db";

/// Opens the store in the folder of a service to read it, while the service goes on or not.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn open_store(folder: &Path) -> Result<Connection, Error> {
    let path = folder.join(STORE_FILE);
    if !path.exists() {
        let shown = folder.display();
        return Err(Error::input(format!(
            "{shown} is no folder of a service: there is no {STORE_FILE} in it"
        )));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(&path, flags).map_err(|e| failed("read", &e))
}

fn failed(what: &str, error: &rusqlite::Error) -> Error {
    let text = format!("cannot {what} the service's store: {error}");
    Error::new(base::At::default(), base::Fault::Io(text))
}

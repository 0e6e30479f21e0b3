//! A folder with all that a service must not lose, but its keys: the store, the ledger and the rules as they
//! are at one moment, and a list of them.

use crate::settings::RulesFile;
use crate::store::Store;
use base::Error;
use privacy::ledger::Ledger;
use serde::Serialize;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The format of the list.
const FORMAT: &str = "tacit-service-backup/1";
/// The name of the list.
const LIST: &str = "backup.json";

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceBackup {
    /// [`FORMAT`].
    pub format: String,
    /// The organisation.
    pub name: String,
    /// When it was made, in seconds since 1970.
    pub at: u64,
    /// The newest entry of the audit log in it, and its hash.
    pub log: (u64, String),
    /// Its files.
    pub files: Vec<BackupFile>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupFile {
    /// Its name in the folder.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Their BLAKE3, 64 hex digits.
    pub hash: String,
}

/// Makes a backup in a folder that must not be there yet. The service and its runs go on meanwhile. The store
/// is copied before the ledger: so of what a consent in it allows, the ledger knows all that was charged.
///
/// # Errors
/// When the folder is there, or something cannot be read or written; what was begun stays for who looks.
pub fn back_up(file: &Path, folder: &Path, at: u64) -> Result<ServiceBackup, Error> {
    let rules = RulesFile::read(file)?;
    let settings = &rules.settings;
    if !settings.store.exists() {
        let shown = settings.store.display();
        return Err(Error::input(format!("there is no store {shown} yet: nothing to back up")));
    }
    let failed = |e: std::io::Error| Error::io(format!("cannot write {}", folder.display()), &e);
    DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
    let copy = folder.join("service.db");
    Store::open(&settings.store)?.copy_to(&copy, at)?;
    let log = trail::verify(&trail::open_store(folder)?)?;
    let mut files = vec![described(folder, "service.db")?];
    if settings.ledger.exists() {
        Ledger::look(&settings.ledger)?.backup(&folder.join("ledger"))?;
        files.push(described(folder, "ledger")?);
    }
    std::fs::write(folder.join("service.toml"), &rules.text).map_err(failed)?;
    files.push(described(folder, "service.toml")?);
    let (format, name) = (FORMAT.to_owned(), settings.name.clone());
    let list = ServiceBackup { format, name, at, log: (log.last, log.hash), files };
    let text = serde_json::to_string_pretty(&list).map_err(|e| Error::misuse(format!("no JSON: {e}")))?;
    let mut written = File::create_new(folder.join(LIST)).map_err(failed)?;
    written.write_all(text.as_bytes()).and_then(|()| written.sync_all()).map_err(failed)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(list)
}

fn described(folder: &Path, name: &str) -> Result<BackupFile, Error> {
    let path = folder.join(name);
    let failed = |e: std::io::Error| Error::io(format!("cannot read {}", path.display()), &e);
    let mut hash = blake3::Hasher::new();
    let bytes = std::io::copy(&mut File::open(&path).map_err(failed)?, &mut hash).map_err(failed)?;
    Ok(BackupFile { name: name.to_owned(), bytes, hash: hash.finalize().to_hex().to_string() })
}

/// Refuses a store that is a copy until somebody says that it may be used.
///
/// # Errors
/// When it is one.
pub fn refuse_copy(store: &Store) -> Result<(), Error> {
    let Some(at) = store.is_copy_of()? else { return Ok(()) };
    Err(Error::refused(format!(
        "the store is a copy of {}: what was agreed and spent since then is unknown here, and other \
         organisations may know of it. Put the ledger of the same backup beside it, or the one that was in \
         use if it is whole; make sure that no other service uses the original; then: tacit service restored \
         service.toml",
        study::time::date(at.cast_signed())
    )))
}

//! A copy of a ledger that is whole, whatever else goes on with it.

use super::promises::forget_promises;
use super::{Ledger, file};
use base::Error;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Pages copied at a time; another process writes between two steps.
const PAGES: i32 = 1 << 10;
const PAUSE: Duration = Duration::from_millis(5);

impl Ledger {
    /// Copies the ledger to a new file that only its owner may read (mode 600). On return it is on stable
    /// storage. No match is under way in the copy: what its peer promises from now on would not be in it.
    ///
    /// # Errors
    /// When the file is there already, or either one cannot be read or written. A file that was begun is
    /// taken away.
    pub fn backup(&self, to: &Path) -> Result<(), Error> {
        let failed = |e: &std::io::Error| Error::io(format!("cannot write the backup {}", to.display()), e);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let made = options.open(to).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => Error::input(format!(
                "{} is there already, and a backup never replaces a file; name another",
                to.display()
            )),
            _ => failed(&e),
        })?;
        let copied = self.copy(to).map_err(|e| file::explain(to, "write the backup of", &e));
        let synced = copied.and_then(|()| made.sync_all().map_err(|e| failed(&e)));
        if synced.is_err() {
            // Half a ledger would look like one.
            let _ = std::fs::remove_file(to);
            return synced;
        }
        let folder = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| failed(&e))
    }

    fn copy(&self, to: &Path) -> Result<(), rusqlite::Error> {
        let mut copy = Connection::open(to)?;
        Backup::new(&self.connection, &mut copy)?.run_to_completion(PAGES, PAUSE, None)?;
        forget_promises(&copy, None)
    }
}

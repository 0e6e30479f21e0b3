//! Files for decoders that take a path: in memory where the system has a file system there.

use std::cell::OnceCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// A folder of this thread, which vanishes with it.
pub fn folder() -> PathBuf {
    let make = || {
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        made.expect("a folder for temporary files can be made")
    };
    FOLDER.with(|folder| folder.get_or_init(make).path().to_owned())
}

/// A file of this thread with this content, which its owner alone may read.
pub fn file(name: &str, data: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, data).expect("a temporary file can be written");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its mode can be set");
    path
}

//! What one run keeps in a store while it lives.

use crate::{SealedStore, StateKey, StateStore, StoreError, StoreLock};
use base::{Error, Seed, hex, unhex};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the objects of runs lie in a store: each in a folder of 16 hex digits.
pub const RUNS_FOLDER: &str = "tacit-runs";

/// Bytes of the name of a run's folder.
const RUN_BYTES: usize = 8;

/// Sealed objects of one run that goes on nowhere else: they are removed with it. In a local folder no other
/// process keeps state while it lives, and what killed runs have left there is removed first.
pub struct RunState {
    sealed: SealedStore,
    folder: String,
    /// Folders that were named.
    named: AtomicU64,
    _lock: StoreLock,
}

impl RunState {
    /// The state of a run of `party` that begins.
    ///
    /// # Errors
    /// When another process of this machine has the folder, or the store fails.
    ///
    /// # Panics
    /// When the operating system has no randomness to give.
    pub fn begin(store: StateStore, key: &StateKey, party: &str) -> Result<Self, Error> {
        let lock = store.lock()?;
        remove_left(&store)?;
        let run = Seed::from_system();
        let folder = format!("{RUNS_FOLDER}/{}", hex(&run.expose()[..RUN_BYTES]));
        let (sealed, named) = (SealedStore::new(store, key, run.expose(), party), AtomicU64::new(0));
        Ok(Self { sealed, folder, named, _lock: lock })
    }

    /// Its objects.
    #[must_use]
    pub fn sealed(&self) -> &SealedStore {
        &self.sealed
    }

    /// The name in the store of a further folder of this run, for objects of this sort.
    #[must_use]
    pub fn folder(&self, of: &str) -> String {
        format!("{}/{of}-{}", self.folder, self.named.fetch_add(1, Ordering::Relaxed))
    }

    /// Removes all objects of a folder: nobody reads them any more.
    ///
    /// # Errors
    /// When the store fails.
    pub fn remove(&self, folder: &str) -> Result<(), Error> {
        remove_all(self.sealed.store(), folder)
    }
}

impl Drop for RunState {
    fn drop(&mut self) {
        // What cannot be removed is sealed, and goes with the next run or with the folder.
        let _ = remove_all(self.sealed.store(), &self.folder);
    }
}

/// Removes what killed runs left in a local folder, which this process has locked, and nothing else.
fn remove_left(store: &StateStore) -> Result<(), Error> {
    let Some(folder) = store.folder() else { return Ok(()) };
    let runs = folder.join(RUNS_FOLDER);
    if runs.is_symlink() {
        return Err(Error::input(format!(
            "{} is a link, and runs are kept in no other folder",
            runs.display()
        )));
    }
    for entry in std::fs::read_dir(&runs).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = |name: &&str| unhex::<RUN_BYTES>(name).is_some_and(|bytes| hex(&bytes) == **name);
        let ours = name.to_str().filter(ours);
        // No link is followed: a link is no folder.
        if let (Some(name), true) = (ours, entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            remove_all(store, &format!("{RUNS_FOLDER}/{name}"))?;
        }
    }
    Ok(())
}

fn remove_all(store: &StateStore, below: &str) -> Result<(), Error> {
    if let Some(folder) = store.folder() {
        // What a killed process had half written is in no list.
        return match std::fs::remove_dir_all(folder.join(below)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::io(format_args!("cannot remove {}/{below}", store.url()), &e))
            }
            _ => Ok(()),
        };
    }
    for (name, _) in store.list(below)? {
        match store.delete(&name) {
            Ok(()) | Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    #[test]
    fn what_a_run_kept_goes_with_it_and_what_a_killed_one_left_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("state");
        let open = || StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
        let files = || open().list("").unwrap().len();
        let key = StateKey::known();
        let run = RunState::begin(open(), &key, "clinic").unwrap();
        let folders = [run.folder("lines"), run.folder("lines")];
        folders.iter().for_each(|folder| drop(run.sealed().create(&format!("{folder}/1"), b"1").unwrap()));
        let error = RunState::begin(open(), &key, "clinic").err().expect("taken").to_string();
        assert!(error.contains("another process of this machine leads a run"), "{error}");
        run.remove(&folders[0]).unwrap();
        assert_eq!(files(), 1);
        drop(run);
        assert_eq!(files(), 0);
        // A killed run drops nothing.
        open().put("tacit-runs/00112233aabbccdd/a/1", b"left").unwrap();
        std::fs::write(place.join("tacit-runs/00112233aabbccdd/a/2#1"), b"half of an object").unwrap();
        open().put("tacit-runs/notes/1", b"of somebody").unwrap();
        std::os::unix::fs::symlink(folder.path(), place.join("tacit-runs/0000000000000000")).unwrap();
        let next = RunState::begin(open(), &key, "clinic").unwrap();
        let left = |name: &str| place.join("tacit-runs").join(name).exists();
        assert!(!left("00112233aabbccdd") && left("notes") && left("0000000000000000"));
        assert!(folder.path().join("state").exists());
        drop(next);
        std::fs::rename(place.join("tacit-runs"), folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), place.join("tacit-runs")).unwrap();
        let error = RunState::begin(open(), &key, "clinic").err().expect("a link").to_string();
        assert!(error.contains("is a link") && folder.path().join("elsewhere/notes").exists(), "{error}");
    }
}

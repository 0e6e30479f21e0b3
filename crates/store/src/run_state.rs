//! What one run keeps in a store.
//!
//! A run has a folder of objects that are sealed for it. Most runs end with what they began, and leave
//! nothing. One that is to outlive its process is *kept*: an object beside its log says under which name it
//! sealed, so that the next process of this party opens it again ([`RunState::resume`]).

use crate::{LogRecord, SealedStore, StateKey, StateLog, StateStore, StoreError, StoreLock};
use base::{Error, Seed, hex, unhex};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Where the objects of runs lie in a store: each in a folder of 16 hex digits.
pub const RUNS_FOLDER: &str = "tacit-runs";

/// Bytes of the name of a run's folder.
const RUN_BYTES: usize = 8;
/// The object that says under which name a kept run seals: no secret, that is the state key.
const NAMED: &str = "run";
/// The folder of a run's log.
const LOG: &str = "log";
/// Folders that one process may name.
const FOLDERS: u64 = 1 << 20;

/// Sealed objects of one run: removed with it, unless it is kept. In a local folder no other process has
/// state while it lives, and what killed runs have left there is removed first.
pub struct RunState {
    sealed: SealedStore,
    run: [u8; 32],
    folder: String,
    /// Folders that were named.
    named: AtomicU64,
    kept: AtomicBool,
    lock: StoreLock,
}

/// A run that is kept, as the store names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptName {
    run: [u8; 32],
}

impl KeptName {
    /// The 16 hex digits by which people name it.
    #[must_use]
    pub fn short(&self) -> String {
        hex(&self.run[..RUN_BYTES])
    }

    fn folder(&self) -> String {
        format!("{RUNS_FOLDER}/{}", self.short())
    }

    /// Where it lies, for people.
    #[must_use]
    pub fn place(&self, store: &StateStore) -> String {
        store.place(&self.folder())
    }

    /// What its log holds, by who only looks: the records since the last snapshot.
    ///
    /// # Errors
    /// As [`StateLog::lead`]; [`StoreError::Damaged`] where the run is another party's or key's.
    pub fn records(
        &self,
        store: &StateStore,
        key: &StateKey,
        party: &str,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let sealed = SealedStore::new(store.clone(), key, &self.run, party);
        StateLog::look(sealed, &format!("{}/{LOG}", self.folder()))
    }

    /// Bytes of its objects, and when it last wrote to its log, where the store tells.
    ///
    /// # Errors
    /// When the store fails.
    pub fn size(&self, store: &StateStore) -> Result<(u64, Option<SystemTime>), StoreError> {
        let bytes = store.list(&self.folder())?.iter().map(|(_, bytes)| bytes).sum();
        Ok((bytes, store.folder().and_then(|folder| last_written(&folder.join(self.folder())))))
    }

    /// Removes it.
    ///
    /// # Errors
    /// When another process of this machine leads it, or the store fails.
    pub fn remove(&self, store: &StateStore) -> Result<(), Error> {
        let _lock = store.lock()?;
        remove_all(store, &self.folder())
    }
}

/// The runs that are kept in a store, of whichever party, in the order of their names.
///
/// # Errors
/// When the store fails.
pub fn kept_runs(store: &StateStore) -> Result<Vec<KeptName>, StoreError> {
    let named = format!("/{NAMED}");
    let mut kept = Vec::new();
    let names = match store.folder() {
        Some(folder) => {
            let folders = run_folders(folder)?.into_iter().map(|name| format!("{RUNS_FOLDER}/{name}{named}"));
            folders.filter(|name| folder.join(name).is_file()).collect()
        }
        None => store.list(RUNS_FOLDER)?.into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
    };
    for name in names.iter().filter(|name| name.ends_with(&named)) {
        let run = store.get(name)?;
        let kept_as = |run: [u8; 32]| KeptName { run };
        let known = run.try_into().ok().map(kept_as).filter(|kept| *name == kept.folder() + &named);
        let why = "it names another run";
        kept.push(known.ok_or_else(|| StoreError::Damaged { place: store.place(name), why })?);
    }
    kept.sort_unstable_by_key(|kept| kept.run);
    Ok(kept)
}

impl RunState {
    /// The state of a run of `party` that begins. What killed runs left goes, and so do runs that were kept
    /// and have written nothing for `keep`.
    ///
    /// # Errors
    /// When another process of this machine has the folder, or the store fails.
    ///
    /// # Panics
    /// When the operating system has no randomness to give.
    pub fn begin(store: StateStore, key: &StateKey, party: &str, keep: Duration) -> Result<Self, Error> {
        let lock = store.lock()?;
        remove_left(&store, keep)?;
        Ok(Self::of(store, key, *Seed::from_system().expose(), (party, lock)))
    }

    /// The state of a run that was kept.
    ///
    /// # Errors
    /// When another process of this machine has the folder.
    pub fn resume(store: StateStore, key: &StateKey, name: &KeptName, party: &str) -> Result<Self, Error> {
        let lock = store.lock()?;
        let state = Self::of(store, key, name.run, (party, lock));
        state.kept.store(true, Ordering::Relaxed);
        Ok(state)
    }

    fn of(store: StateStore, key: &StateKey, run: [u8; 32], (party, lock): (&str, StoreLock)) -> Self {
        let sealed = SealedStore::new(store, key, &run, party);
        let folder = KeptName { run }.folder();
        let (named, kept) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { sealed, run, folder, named, kept, lock }
    }

    /// Its objects.
    #[must_use]
    pub fn sealed(&self) -> &SealedStore {
        &self.sealed
    }

    /// How the store names it, should it be kept.
    #[must_use]
    pub fn name(&self) -> KeptName {
        KeptName { run: self.run }
    }

    /// Begins to lead the run: its log, and what is in there. Folders get names that no earlier process gave.
    ///
    /// # Errors
    /// As [`StateLog::lead`].
    pub fn lead(&self) -> Result<(StateLog, Vec<LogRecord>), StoreError> {
        let (log, records) = StateLog::lead(self.sealed.clone(), &self.fixed_folder(LOG), &self.lock)?;
        self.named.fetch_max(log.epoch() * FOLDERS, Ordering::Relaxed);
        Ok((log, records))
    }

    /// From now on it outlives its process.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(&self) -> Result<(), StoreError> {
        let name = self.fixed_folder(NAMED);
        match self.sealed.store().create(&name, &self.run) {
            Err(StoreError::AlreadyExists { .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        self.kept.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether it is kept still: nobody has removed it, or put another one in its place. In a local folder
    /// nobody can while this lives.
    ///
    /// # Errors
    /// When the store fails.
    pub fn is_there(&self) -> Result<bool, StoreError> {
        let store = self.sealed.store();
        if store.folder().is_some() || !self.kept.load(Ordering::Relaxed) {
            return Ok(true);
        }
        match store.get(&self.fixed_folder(NAMED)) {
            Err(StoreError::Missing { .. }) => Ok(false),
            named => named.map(|_| true),
        }
    }

    /// It goes with its last user: it is over.
    pub fn forget(&self) {
        self.kept.store(false, Ordering::Relaxed);
    }

    /// The name in the store of a further folder of this run, for objects of this sort.
    #[must_use]
    pub fn folder(&self, of: &str) -> String {
        format!("{}/{of}-{}", self.folder, self.named.fetch_add(1, Ordering::Relaxed))
    }

    /// The name in the store of the folder of this run that every process calls so.
    #[must_use]
    pub fn fixed_folder(&self, of: &str) -> String {
        format!("{}/{of}", self.folder)
    }

    /// Removes all objects of a folder: nobody reads them any more.
    ///
    /// # Errors
    /// When the store fails.
    pub fn remove(&self, folder: &str) -> Result<(), Error> {
        remove_all(self.sealed.store(), folder)
    }

    /// Removes another run, in whose place this one comes.
    ///
    /// # Errors
    /// When the store fails.
    pub fn replace(&self, other: &KeptName) -> Result<(), Error> {
        if other.run == self.run { Ok(()) } else { remove_all(self.sealed.store(), &other.folder()) }
    }

    /// Where it lies, for people.
    #[must_use]
    pub fn place(&self) -> String {
        self.name().place(self.sealed.store())
    }

    /// Removes what an earlier process left of this run besides its log and these folders.
    ///
    /// # Errors
    /// When the store fails.
    pub fn retain(&self, folders: &[&str]) -> Result<(), Error> {
        let store = self.sealed.store();
        let mut there: Vec<String> = match store.folder() {
            Some(local) => {
                let names = folders_in(&local.join(&self.folder));
                names.iter().map(|name| self.fixed_folder(name)).collect()
            }
            None => {
                let objects = store.list(&self.folder)?;
                let folder = |(name, _): &(String, u64)| Some(name.rsplit_once('/')?.0.to_owned());
                objects.iter().filter_map(folder).filter(|folder| *folder != self.folder).collect()
            }
        };
        there.dedup();
        let goes = |folder: &&String| **folder != self.fixed_folder(LOG) && !folders.contains(&&***folder);
        there.iter().filter(goes).try_for_each(|folder| self.remove(folder))
    }
}

impl Drop for RunState {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) {
            // What cannot be removed is sealed, and goes with the next run or with the folder.
            let _ = remove_all(self.sealed.store(), &self.folder);
        }
    }
}

/// Names of the folders of runs in a local folder.
fn run_folders(folder: &Path) -> Result<Vec<String>, Error> {
    let runs = folder.join(RUNS_FOLDER);
    if runs.is_symlink() {
        return Err(Error::input(format!(
            "{} is a link, and runs are kept in no other folder",
            runs.display()
        )));
    }
    let ours = |name: &String| unhex::<RUN_BYTES>(name).is_some_and(|bytes| hex(&bytes) == *name);
    Ok(folders_in(&runs).into_iter().filter(ours).collect())
}

/// Names of the folders in a local folder. No link is followed: a link is no folder.
fn folders_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Removes what killed runs left in a local folder, which this process has locked, and kept runs that wrote
/// nothing for so long; nothing else.
fn remove_left(store: &StateStore, keep: Duration) -> Result<(), Error> {
    let Some(folder) = store.folder() else { return Ok(()) };
    for name in run_folders(folder)? {
        let run = folder.join(RUNS_FOLDER).join(&name);
        let written = last_written(&run).filter(|_| run.join(NAMED).is_file());
        let young = |at: SystemTime| at.elapsed().map_or(true, |age| age <= keep);
        if !written.is_some_and(young) {
            remove_all(store, &format!("{RUNS_FOLDER}/{name}"))?;
        }
    }
    Ok(())
}

/// When the log of a run was last written to.
fn last_written(run: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(run.join(LOG)).ok()?.flatten();
    entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}

/// Of what goes the name goes first: whoever leads it finds that it is kept no more, and what is left of it
/// after a kill is no run.
fn unname(store: &StateStore, below: &str) -> Result<(), Error> {
    delete(store, &format!("{below}/{NAMED}"))
}

fn delete(store: &StateStore, name: &str) -> Result<(), Error> {
    match store.delete(name) {
        Ok(()) | Err(StoreError::Missing { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn remove_all(store: &StateStore, below: &str) -> Result<(), Error> {
    unname(store, below)?;
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
        delete(store, &name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    const WEEK: Duration = Duration::from_secs(7 * 86_400);

    #[test]
    fn what_a_run_kept_goes_with_it_and_what_a_killed_one_left_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("state");
        let open = || StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
        let files = || open().list("").unwrap().len();
        let key = StateKey::known();
        let run = RunState::begin(open(), &key, "clinic", WEEK).unwrap();
        let folders = [run.folder("lines"), run.folder("lines")];
        folders.iter().for_each(|folder| drop(run.sealed().create(&format!("{folder}/1"), b"1").unwrap()));
        let error = RunState::begin(open(), &key, "clinic", WEEK).err().expect("taken").to_string();
        assert!(
            error.contains("another process of this machine") && error.contains(" leads a run"),
            "{error}"
        );
        run.remove(&folders[0]).unwrap();
        assert_eq!(files(), 1);
        drop(run);
        assert_eq!(files(), 0);
        // A killed run drops nothing.
        open().put("tacit-runs/00112233aabbccdd/a/1", b"left").unwrap();
        std::fs::write(place.join("tacit-runs/00112233aabbccdd/a/2#1"), b"half of an object").unwrap();
        open().put("tacit-runs/notes/1", b"of somebody").unwrap();
        std::os::unix::fs::symlink(folder.path(), place.join("tacit-runs/0000000000000000")).unwrap();
        let next = RunState::begin(open(), &key, "clinic", WEEK).unwrap();
        let left = |name: &str| place.join("tacit-runs").join(name).exists();
        assert!(!left("00112233aabbccdd") && left("notes") && left("0000000000000000"));
        assert!(folder.path().join("state").exists());
        drop(next);
        std::fs::rename(place.join("tacit-runs"), folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), place.join("tacit-runs")).unwrap();
        let error = RunState::begin(open(), &key, "clinic", WEEK).err().expect("a link").to_string();
        assert!(error.contains("is a link") && folder.path().join("elsewhere/notes").exists(), "{error}");
    }

    #[test]
    fn a_kept_run_goes_when_it_is_over_or_old() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("state");
        let open = || StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
        let key = StateKey::known();
        let kept = || {
            let run = RunState::begin(open(), &key, "clinic", WEEK).unwrap();
            let log = run.lead().unwrap();
            run.keep().unwrap();
            (run, log)
        };
        let (run, log) = kept();
        run.forget();
        drop((run, log));
        assert_eq!(open().list(RUNS_FOLDER).unwrap(), []);
        let (run, log) = kept();
        let name = run.name();
        drop((run, log));
        // One that was killed while it was removed is no run, and its rest goes with the next.
        let (run, log) = kept();
        drop(log);
        unname(&open(), &run.name().folder()).unwrap();
        assert_eq!(kept_runs(&open()).unwrap(), std::slice::from_ref(&name));
        drop(run);
        // Another run of this party begins and ends beside it.
        drop(RunState::begin(open(), &key, "clinic", WEEK).unwrap());
        assert_eq!(kept_runs(&open()).unwrap(), [name]);
        std::thread::sleep(Duration::from_millis(20));
        drop(RunState::begin(open(), &key, "clinic", Duration::from_millis(10)).unwrap());
        assert!(kept_runs(&open()).unwrap().is_empty(), "it is older than it is kept");
    }
}

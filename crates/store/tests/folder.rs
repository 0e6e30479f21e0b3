//! What is of local folders alone: modes, locks, and disks that are full or refuse.

mod support;

use base::Error;
use std::fs::{Permissions, create_dir, metadata, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use store::{PART_BYTES, StateKey, StateLog, StateStore, StoreError, StoreOptions};
use support::{place, sealed};

fn open(path: &Path) -> Result<StateStore, Error> {
    StateStore::open(&path.display().to_string(), &StoreOptions::default())
}

fn mode(path: &Path) -> u32 {
    metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_folder_and_its_files_are_of_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/state");
    let store = open(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    store.create("x/created", b"1").unwrap();
    store.put("x/put", b"2").unwrap();
    let mut writer = store.writer("x/written").unwrap();
    (0..3).for_each(|_| writer.write(&vec![0; PART_BYTES]).unwrap());
    writer.finish().unwrap();
    for name in ["x/created", "x/put", "x/written"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
        store.delete(name).unwrap();
    }
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "empty folders go with what was in them");
    set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains("(mode 0750), which is to hold state; run `chmod 700 "), "{error}");
    let by_url = format!("file://{}", folder.path().join("b").display());
    StateStore::open(&by_url, &StoreOptions::default()).unwrap().put("y", b"3").unwrap();
    assert_eq!(std::fs::read(folder.path().join("b/y")).unwrap(), b"3");
}

#[test]
fn two_processes_do_not_lead_in_one_folder() {
    let here = place();
    if here.folder.is_none() {
        return;
    }
    let key = StateKey::fresh();
    let lock = here.store.lock().unwrap();
    assert!(lock.is_held());
    let (log, _) = StateLog::lead(sealed(&here.store, &key), "log", &lock).unwrap();
    drop(lock);
    let other = StateStore::open(&here.url, &here.options).unwrap();
    let error = other.lock().unwrap_err().to_string();
    assert!(error.starts_with("another process of this machine"), "{error}");
    assert!(error.contains(" leads a run whose state is in "), "{error}");
    drop(log);
    let (log, _) = StateLog::lead(sealed(&other, &key), "log", &other.lock().unwrap()).unwrap();
    assert_eq!(log.epoch(), 2);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let error = open(Path::new("/proc/nowhere/state")).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the folder /proc/nowhere/state for state: "), "{error}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"x").unwrap();
    let error = open(&folder.path().join("file")).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the folder "), "{error}");
    let path = folder.path().join("state");
    let store = open(&path).unwrap();
    set_permissions(&path, Permissions::from_mode(0o500)).unwrap();
    let done = store.create("x", b"1");
    set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    // Root writes where modes forbid it.
    let Err(error) = done else { return println!("skipped: this user may write anywhere") };
    let error = Error::from(error).to_string();
    assert!(error.starts_with(&format!("cannot write {}/x: Permission denied", path.display())), "{error}");
    assert!(error.ends_with("give the folder to the user that runs this, mode 0700"), "{error}");
}

#[test]
fn a_full_disk_is_named_and_half_an_object_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=20m,mode=0700", "tmpfs"]).arg(&disk);
    let mounted = mount.output().is_ok_and(|done| done.status.success());
    if !mounted {
        return println!("skipped: no small disk can be mounted here, which takes root");
    }
    let store = open(&disk).unwrap();
    let (piece, mut failures) = (vec![1; PART_BYTES], Vec::new());
    let mut writer = store.writer("large").unwrap();
    let wrote = (0..4).try_for_each(|_| writer.write(&piece));
    failures.push(wrote.and_then(|()| writer.finish()));
    store.create("most", &piece).unwrap();
    store.create("more", &piece).unwrap();
    failures.push(store.create("small", &piece));
    let names: Vec<String> = store.list("").unwrap().into_iter().map(|(name, _)| name).collect();
    let left = std::fs::read_dir(&disk).unwrap().count();
    drop(store);
    let unmounted = Command::new("umount").arg(&disk).status().is_ok_and(|status| status.success());
    assert!(unmounted, "the disk of the test stays mounted");
    for done in failures {
        let error = match done {
            Err(StoreError::Failed(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(error.starts_with(&format!("cannot write {}/", disk.display())), "{error}");
        assert!(error.contains("No space left on device (os error 28); free some space"), "{error}");
    }
    assert_eq!((names, left), (vec!["more".to_owned(), "most".to_owned()], 2));
}

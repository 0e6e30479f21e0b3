//! Runs that outlive their process: in a local folder by `make test`, in S3 as moto plays it by
//! `make test-store`.

mod support;

use std::time::Duration;
use store::{LogRecord, RUNS_FOLDER, RunState, StateKey, StateStore, StoreError, kept_runs};
use support::place;

fn record(tag: u8) -> LogRecord {
    LogRecord { tag, payload: vec![tag; 10] }
}

#[test]
fn a_run_is_kept_found_gone_on_with_and_over() {
    let here = place();
    let (key, open) = (StateKey::fresh(), || StateStore::open(&here.url, &here.options).unwrap());
    let run = RunState::begin(open(), &key, "clinic", Duration::MAX).unwrap();
    let rows = run.folder("rows");
    run.sealed().create(&format!("{rows}/00000000"), b"rows").unwrap();
    let (mut log, before) = run.lead().unwrap();
    assert!(before.is_empty() && kept_runs(&open()).unwrap().is_empty());
    log.append(&[record(1)]).unwrap();
    run.keep().unwrap();
    let name = run.name();
    if here.folder.is_some() {
        let error = name.remove(&open()).unwrap_err().to_string();
        assert!(error.contains("another process"), "it is led: {error}");
    }
    let half = run.folder("columns");
    run.sealed().create(&format!("{half}/00000000"), b"half laid out").unwrap();
    drop((log, run));
    assert_eq!(kept_runs(&open()).unwrap(), std::slice::from_ref(&name));
    assert_eq!(name.records(&open(), &key, "clinic").unwrap(), [record(1)]);
    assert!(name.size(&open()).unwrap().0 > 100);
    for (key, party) in [(&key, "registry"), (&StateKey::fresh(), "clinic")] {
        let refused = name.records(&open(), key, party);
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{party}: {refused:?}");
    }
    let again = RunState::resume(open(), &key, &name, "clinic").unwrap();
    let (mut log, records) = again.lead().unwrap();
    assert_eq!((records, log.epoch()), (vec![record(1)], 2));
    again.retain(&[&rows]).unwrap();
    let left = |folder: &str| open().list(folder).unwrap().len();
    assert_eq!([left(&rows), left(&half)], [1, 0]);
    assert_eq!(again.sealed().get(&format!("{rows}/00000000")).unwrap(), b"rows");
    // In a bucket nothing keeps a second coordinator out, but the log: the first one is told.
    if here.folder.is_none() {
        let second = RunState::resume(open(), &key, &name, "clinic").unwrap();
        let (_log, records) = second.lead().unwrap();
        assert_eq!(records, [record(1)]);
        let error = log.append(&[record(2)]).unwrap_err();
        assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
    } else {
        let error = RunState::resume(open(), &key, &name, "clinic").err().expect("it is led").to_string();
        assert!(
            error.contains("another process of this machine") && error.contains(" leads a run"),
            "{error}"
        );
        log.append(&[record(2)]).unwrap();
    }
    drop(log);
    assert!(again.is_there().unwrap());
    let local = here.folder.is_some();
    let replaced = Some(again).filter(|_| !local);
    // Another run that takes its place removes it, and who leads it yet finds that out.
    let next = RunState::begin(open(), &key, "clinic", Duration::MAX).unwrap();
    next.replace(&name).unwrap();
    drop(next);
    assert!(replaced.is_none_or(|run| !run.is_there().unwrap()));
    assert!(kept_runs(&open()).unwrap().is_empty());
    assert_eq!(open().list(RUNS_FOLDER).unwrap(), []);
}

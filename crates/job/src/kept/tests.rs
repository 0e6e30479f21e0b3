use super::*;
use std::time::Duration;
use store::StoreOptions;
use units::FailureCause;

const BEGUN: &str = include_str!("begun_1.json");
const MATCHED: &str = include_str!("matched_1.json");

fn begun() -> BegunRecord {
    serde_json::from_str(BEGUN).unwrap()
}

/// The state of a run, and what its log holds once it is matched.
fn state(folder: &std::path::Path) -> Arc<RunState> {
    let place = folder.join("state");
    let store = StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
    Arc::new(RunState::begin(store, &StateKey::fresh(), "clinic", Duration::MAX).unwrap())
}

fn lead(state: &Arc<RunState>) -> RunLog {
    let (mut log, mut records) = state.lead().unwrap();
    if records.is_empty() {
        records = vec![KeptRecord::Begun(Box::new(begun())).to_log().unwrap()];
        log.append(&records).unwrap();
    }
    RunLog::resume(state.clone(), log, &records).unwrap()
}

fn matched(log: &RunLog) -> MatchedRecord {
    let mut matched: MatchedRecord = serde_json::from_str(MATCHED).unwrap();
    matched.units = log.units_folder();
    matched.rows = KeptMatch::Spine(KeptColumns::new(&log.state.folder("columns"), &[], (9, 4)));
    matched
}

/// Opens, finishes and writes down an attempt.
fn finish(log: &mut RunLog, unit: u32, attempt: u32) {
    let shares = zeroize::Zeroizing::new(vec![unit as u8; 40]);
    let work = FinishedWork { shares, traffic: net::Traffic::default() };
    log.put_work(unit, attempt, &work).unwrap();
    let object = *blake3::hash(&work.shares).as_bytes();
    let held = HeldResult { attempt, session: [1; 32], transcript: [0; 32], object, bytes: 40 };
    log.write_units(&[UnitRecord::Floor { unit, attempt }, UnitRecord::Held { unit, held }]).unwrap();
}

fn units(log: &mut RunLog) -> Vec<(u32, u32, u8)> {
    let held = log.held_work().unwrap().into_iter();
    held.map(|(unit, attempt, work)| (unit, attempt, work.shares[0])).collect()
}

#[test]
fn what_was_written_down_is_there_after_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = lead(&state);
    assert_eq!(log.progress(), (false, 0));
    let of_match = matched(&log);
    let tags = of_match.tags.clone();
    log.set_matched(of_match).unwrap();
    for (unit, attempt) in [(0, 1), (2, 3)] {
        finish(&mut log, unit, attempt);
    }
    drop(log);
    let mut log = lead(&state);
    assert!(log.resumed().unwrap().contains("2 units are computed"), "{:?}", log.resumed());
    assert!(log.matched(&tags).is_some() && log.matched(&[[1; 32], [2; 32]]).is_none(), "of other data");
    assert_eq!(units(&mut log), [(0, 1, 0), (2, 3, 2)]);
    // A later attempt's result counts alone, and a later match makes all of them void.
    finish(&mut log, 0, 5);
    log.snapshot().unwrap();
    drop(log);
    let mut log = lead(&state);
    assert_eq!(units(&mut log), [(0, 5, 0), (2, 3, 2)]);
    assert!(log.units().contains(&UnitRecord::Floor { unit: 0, attempt: 5 }));
    let mut another = matched(&log);
    another.name = [9; 32];
    log.set_matched(another).unwrap();
    assert_eq!(log.progress(), (true, 0));
    drop(log);
    assert_eq!(lead(&state).progress(), (true, 0));
}

/// An attempt that failed has burnt the floor that was written before it: a snapshot keeps that order.
#[test]
fn a_snapshot_keeps_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = lead(&state);
    let of_match = matched(&log);
    log.set_matched(of_match).unwrap();
    let floor = |attempt| UnitRecord::Floor { unit: 0, attempt };
    let failed = |attempt| UnitRecord::Failed { unit: 0, attempt, cause: FailureCause::LaneCut, peer: false };
    log.write_units(&[floor(1), floor(2), failed(1)]).unwrap();
    finish(&mut log, 1, 1);
    log.write_units(&[floor(3), floor(4), failed(3)]).unwrap();
    let held = log.units()[4];
    log.snapshot().unwrap();
    drop(log);
    let other = UnitRecord::Floor { unit: 1, attempt: 1 };
    assert_eq!(lead(&state).units(), [failed(1), other, held, floor(4), failed(3)]);
}

#[test]
fn a_lost_result_is_computed_again_before_the_seal_alone() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = lead(&state);
    let of_match = matched(&log);
    log.set_matched(of_match.clone()).unwrap();
    [0, 1, 2].into_iter().for_each(|unit| finish(&mut log, unit, 1));
    let object = |unit: u32| format!("{}/{unit:04}-0001", of_match.units);
    let store = state.sealed().store();
    store.delete(&object(0)).unwrap();
    // One that is another object, of the same run and under the same key.
    store.delete(&object(1)).unwrap();
    let other = FinishedWork { shares: vec![7; 40].into(), traffic: net::Traffic::default() };
    state.sealed().create(&object(1), &other.to_object().unwrap()).unwrap();
    assert_eq!(units(&mut log), [(2, 1, 2)]);
    let held = |record: &&UnitRecord| matches!(record, UnitRecord::Held { .. });
    assert_eq!(log.units().iter().filter(held).count(), 1, "what is lost is not held");
    log.write_units(&[UnitRecord::Seal { root: [4; 32] }]).unwrap();
    store.delete(&object(2)).unwrap();
    let error = log.held_work().err().expect("both count on it").to_string();
    assert!(error.contains("lost the result of unit 2") && error.contains("tacit state drop"), "{error}");
}

/// Columns and shares that the store lost are laid out again, by a match that both make.
#[test]
fn a_match_whose_rows_are_gone_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    for lost in [MATCHED, include_str!("joined_1.json")] {
        let mut log = lead(&state);
        let mut of_match = matched(&log);
        of_match.rows = serde_json::from_str::<MatchedRecord>(lost).unwrap().rows;
        let tags = of_match.tags.clone();
        log.set_matched(of_match).unwrap();
        finish(&mut log, 0, 1);
        assert!(log.matched(&tags).is_some());
        drop(log);
        let log = lead(&state);
        assert!(log.matched(&tags).is_none() && log.units().is_empty());
    }
}

#[test]
fn who_is_replaced_is_told_and_says_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut first = lead(&state);
    let of_match = matched(&first);
    first.set_matched(of_match).unwrap();
    let mut second = lead(&state);
    let floor = UnitRecord::Floor { unit: 0, attempt: 1 };
    let error = first.write_units(&[floor]).unwrap_err().to_string();
    assert!(first.fenced && error.contains("leads this run now"), "{error}");
    assert!(first.units().is_empty(), "what was not written is not done");
    second.write_units(&[floor]).unwrap();
    assert!(!second.fenced);
}

#[test]
fn a_result_is_read_as_it_was_put() {
    let work = FinishedWork { shares: vec![1, 2, 3].into(), traffic: net::Traffic::default() };
    let bytes = work.to_object().unwrap();
    assert_eq!(*FinishedWork::from_object(&bytes).unwrap().shares, [1, 2, 3]);
    assert!(FinishedWork::from_object(&bytes[..5]).is_none() && FinishedWork::from_object(&[]).is_none());
}

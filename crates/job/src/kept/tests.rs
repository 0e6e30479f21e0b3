use super::*;
use report::StageBefore;
use std::path::Path;
use std::time::Duration;
use store::StoreOptions;
use units::{FailureCause, HeldResult};

const BEGUN: &str = include_str!("begun_1.json");
const MATCHED: &str = include_str!("matched_1.json");
/// The study of these.
const STUDY: Bytes32 = [0xab; 32];

fn begun() -> BegunRecord {
    serde_json::from_str(BEGUN).unwrap()
}

/// The state of a run, and what its log holds once it is matched.
pub(crate) fn state(folder: &std::path::Path) -> Arc<RunState> {
    let place = folder.join("state");
    let store = StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
    Arc::new(RunState::begin(store, &StateKey::fresh(), "clinic", Duration::MAX).unwrap())
}

/// Beside the state, as it is now.
fn ledger(state: &RunState) -> Arc<Mutex<Ledger>> {
    Arc::new(Mutex::new(ledger_at(state.sealed().store().folder().unwrap().parent().unwrap())))
}

/// What the ledger knows of the match under way.
fn promised(state: &RunState) -> Option<Bytes32> {
    let id = privacy::ledger::begun_id(&STUDY, &[[1; 32], [2; 32]]);
    ledger(state).lock().unwrap().promises(&id).unwrap()
}

fn ledger_at(folder: &Path) -> Ledger {
    Ledger::open(&folder.join("ledger")).unwrap()
}

pub(crate) fn lead(state: &Arc<RunState>) -> RunLog {
    let (mut log, mut records) = state.lead().unwrap();
    if records.is_empty() {
        records = vec![KeptRecord::Begun(Box::new(begun())).to_log().unwrap()];
        log.append(&records).unwrap();
    }
    RunLog::resume(state.clone(), (log, &records), PromiseBook::new(&ledger(state), &STUDY)).unwrap()
}

pub(crate) fn matched(log: &RunLog) -> MatchedRecord {
    let mut matched: MatchedRecord = serde_json::from_str(MATCHED).unwrap();
    matched.units = log.units_folder();
    matched.rows = KeptMatch::Spine(KeptColumns::new(&log.state.folder("columns"), &[], (9, 4)));
    matched
}

/// Opens, finishes and writes down an attempt.
fn finish(log: &mut RunLog, unit: u32, attempt: u32) {
    finish_of((log, COMPUTE), unit, attempt, &[unit as u8; 40]);
}

/// The same at a stage.
pub(crate) fn finish_of((log, stage): (&mut RunLog, u8), unit: u32, attempt: u32, result: &[u8]) {
    let shares = zeroize::Zeroizing::new(result.to_vec());
    let work = FinishedWork { shares, traffic: net::Traffic::default() };
    log.put_work(stage, (unit, attempt), &work).unwrap();
    let object = *blake3::hash(&work.shares).as_bytes();
    let held = HeldResult { attempt, session: [1; 32], transcript: [0; 32], object, bytes: 40 };
    let records = [UnitRecord::Floor { unit, attempt }, UnitRecord::Held { unit, held }];
    log.write_units(stage, &records).unwrap();
}

fn units(log: &mut RunLog) -> Vec<(u32, u32, u8)> {
    let held = log.held_work(COMPUTE).unwrap().into_iter();
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
    assert!(log.units(COMPUTE).contains(&UnitRecord::Floor { unit: 0, attempt: 5 }));
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
    // As a coordinator does: what failed is among the costs before its records are written.
    let costs = log.costs.clone();
    let count = |record| costs.failed(&failed_unit(report::COMPUTING, &record).unwrap());
    count(failed(1));
    log.write_units(COMPUTE, &[floor(1), floor(2), failed(1)]).unwrap();
    finish(&mut log, 1, 1);
    count(failed(3));
    log.write_units(COMPUTE, &[floor(3), floor(4), failed(3)]).unwrap();
    let held = log.units(COMPUTE)[4];
    log.snapshot().unwrap();
    drop(log);
    let other = UnitRecord::Floor { unit: 1, attempt: 1 };
    // Of each unit the last one; how many failed stands beside them.
    let log = lead(&state);
    assert_eq!(log.units(COMPUTE), [other, held, floor(4), failed(3)]);
    assert_eq!(log.costs.before().failures(), 2);
}

/// What a run has cost outlives its processes, also those that are killed, and its match.
#[test]
fn what_was_spent_is_told_after_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let failed = UnitRecord::Failed { unit: 3, attempt: 1, cause: FailureCause::WorkerGone, peer: true };
    let floors = [1, 2].map(|attempt| UnitRecord::Floor { unit: 3, attempt });
    let mut log = lead(&state);
    let of = ([7; 32], &[[1; 32], [2; 32]][..], draw(&state));
    log.begin_match(of, &log.state.folder("columns"), b"keys").unwrap();
    log.costs.begin("match");
    log.costs.failed(&failed_unit("v", &failed).unwrap());
    log.costs.lost(vec![30, 4]);
    std::thread::sleep(Duration::from_millis(2));
    log.write_units(2, &[floors[0], floors[1], failed]).unwrap();
    // Killed: nothing more is written.
    drop(log);
    let mut log = lead(&state);
    let before = log.costs.before();
    assert_eq!((before.failures(), &*before.failed()[0].stage), (1, "v"));
    let stages: Vec<(String, StageBefore)> =
        before.stages().map(|(name, spent)| (name.to_owned(), spent.clone())).collect();
    assert_eq!(stages.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["again", "match"]);
    assert!(stages[0].1.bytes_sent == [30, 4] && stages[1].1.seconds > 0.0, "{stages:?}");
    // Matched in this meeting, and the connection breaks after it.
    log.costs.meet();
    log.costs.begin("match");
    log.costs.end("match", vec![5, 6]);
    let of_match = matched(&log);
    log.set_matched(of_match).unwrap();
    log.costs.meet();
    let spent = log.costs.before();
    let (_, of_match) = spent.stages().find(|(name, _)| *name == "match").unwrap();
    assert!(of_match.bytes_sent == [5, 6] && of_match.seconds > stages[1].1.seconds);
    drop(log);
    assert_eq!(lead(&state).costs.before().failures(), 1);
}

/// A run that is replaced is of no match, though its folder comes back.
#[test]
fn a_run_that_goes_takes_its_promises_along() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = lead(&state);
    let id = privacy::ledger::begun_id(&STUDY, &[[1; 32], [2; 32]]);
    let of = ([7; 32], &[[1; 32], [2; 32]][..], draw(&state));
    log.begin_match(of, &log.state.folder("columns"), b"keys").unwrap();
    assert!(promised(&state).is_some());
    drop(log);
    let (log, records) = state.lead().unwrap();
    let mut records = records;
    let study = base::hex(&STUDY);
    let begun = String::from_utf8(records[0].payload.clone()).unwrap();
    let named: serde_json::Value = serde_json::from_str(&begun).unwrap();
    records[0].payload = begun.replace(named["study"].as_str().unwrap(), &study).into_bytes();
    PromiseBook::new(&ledger(&state), &STUDY).forget(&records, "here").unwrap();
    assert_eq!(promised(&state), None, "{}", base::hex(&id));
    drop(log);
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
    assert_eq!(log.units(COMPUTE).iter().filter(held).count(), 1, "what is lost is not held");
    log.write_units(COMPUTE, &[UnitRecord::Seal { root: [4; 32] }]).unwrap();
    store.delete(&object(2)).unwrap();
    let error = log.held_work(COMPUTE).err().expect("both count on it").to_string();
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
        assert!(log.matched(&tags).is_none() && log.units(COMPUTE).is_empty());
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
    let error = first.write_units(COMPUTE, &[floor]).unwrap_err().to_string();
    assert!(first.fenced && error.contains("leads this run now"), "{error}");
    assert!(first.units(COMPUTE).is_empty(), "what was not written is not done");
    second.write_units(COMPUTE, &[floor]).unwrap();
    assert!(!second.fenced);
}

#[test]
fn a_result_is_read_as_it_was_put() {
    let work = FinishedWork { shares: vec![1, 2, 3].into(), traffic: net::Traffic::default() };
    let bytes = work.to_object().unwrap();
    assert_eq!(*FinishedWork::from_object(&bytes).unwrap().shares, [1, 2, 3]);
    assert!(FinishedWork::from_object(&bytes[..5]).is_none() && FinishedWork::from_object(&[]).is_none());
}

const SECRETS: &[u8] = b"keys of a match";
/// Of a beginning that the ledger counts, and in which nothing was said.
fn draw(state: &RunState) -> MatchDraw {
    let id = privacy::ledger::begun_id(&STUDY, &[[1; 32], [2; 32]]);
    let begun = ledger(state).lock().unwrap().begin_silent_match(&id, &|_| Ok(Vec::new())).unwrap();
    MatchDraw { number: begun.number, nonce: begun.nonce, afresh: true }
}

/// A log in which a match over lanes has begun.
pub(crate) fn matching(state: &Arc<RunState>) -> RunLog {
    let mut log = lead(state);
    let folder = state.folder("match");
    log.begin_match(([7; 32], &[[1; 32], [2; 32]], draw(state)), &folder, SECRETS).unwrap();
    log
}

fn pin(unit: u32, number: u8, promise: u8) -> UnitPin {
    UnitPin { stage: 3, unit, number, promise: [promise; 32] }
}

/// What a worker of a match hands back that made no column.
pub(crate) const DONE: &[u8] = include_bytes!("lane_done_1.json");

/// Units and promises of a match are there after the process, its keys until it is over.
#[test]
fn a_match_under_way_is_there_after_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let tags = [[1; 32], [2; 32]];
    let mut log = matching(&state);
    let drawn = log.match_draw();
    assert!(log.pin(pin(0, 0, 5)).unwrap() && log.pin(pin(0, 1, 6)).unwrap());
    finish_of((&mut log, 2), 0, 1, DONE);
    log.write_units(2, &[UnitRecord::Seal { root: [4; 32] }]).unwrap();
    finish_of((&mut log, 3), 1, 2, DONE);
    for snapshot in [false, true] {
        if snapshot {
            log.snapshot().unwrap();
        }
        drop(log);
        log = lead(&state);
        assert!(log.resumed().unwrap().contains("2 units of its match are done"), "{:?}", log.resumed());
        assert_eq!((log.progress(), log.under_way(&tags)), ((false, 2), Some([7; 32])));
        assert!(log.under_way(&[[1; 32], [3; 32]]).is_none(), "of other data");
        assert_eq!((&log.match_secrets().unwrap().1[..], log.match_draw()), (SECRETS, drawn));
        assert!(log.is_sealed(2) && !log.is_sealed(3) && log.units(COMPUTE).is_empty());
        let works = log.held_work(3).unwrap();
        assert_eq!(works.iter().map(|(unit, attempt, _)| (*unit, *attempt)).collect::<Vec<_>>(), [(1, 2)]);
        // The same is promised again, and nothing else.
        assert!(log.pin(pin(0, 0, 5)).unwrap() && !log.pin(pin(0, 1, 5)).unwrap());
        assert!(log.pin(pin(2, 0, 9)).unwrap());
    }
    // Until both have what came of it, it stays beside that.
    let of_match = matched(&log);
    log.set_matched(of_match).unwrap();
    drop(log);
    let mut log = lead(&state);
    assert!(log.under_way(&tags).is_some() && log.progress() == (true, 0));
    log.forget_match().unwrap();
    drop(log);
    let log = lead(&state);
    assert!(log.under_way(&tags).is_none() && log.progress() == (true, 0));
}

/// Nobody goes on with a match without its keys, or without a result on which both count; one on which nobody
/// counts yet is made again.
#[test]
fn a_match_that_lost_something_is_none_or_makes_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let store = state.sealed().store();
    let tags = [[1; 32], [2; 32]];
    let of_match = |log: &RunLog| log.match_secrets().unwrap().0;
    let mut log = matching(&state);
    [0, 1].into_iter().for_each(|unit| finish_of((&mut log, 2), unit, 1, DONE));
    let place = of_match(&log);
    store.delete(&format!("{place}/done/2-0000-0001")).unwrap();
    // Another one's result: it names a column that is nowhere.
    finish_of((&mut log, 2), 2, 1, include_bytes!("lane_done_2.json"));
    drop(log);
    let mut log = lead(&state);
    assert_eq!((log.progress(), log.under_way(&tags)), ((false, 1), Some([7; 32])));
    log.write_units(2, &[UnitRecord::Seal { root: [4; 32] }]).unwrap();
    store.delete(&format!("{place}/done/2-0001-0001")).unwrap();
    drop(log);
    assert!(lead(&state).under_way(&tags).is_none());
    assert!(store.list(&place).unwrap().is_empty());
    let mut log = matching(&state);
    log.pin(pin(0, 0, 5)).unwrap();
    let secrets = format!("{}/secrets", of_match(&log));
    let keys = store.get(&secrets).unwrap();
    store.delete(&secrets).unwrap();
    drop(log);
    assert!(lead(&state).under_way(&tags).is_none());
    assert_eq!(promised(&state), None);
    // It is of no match any more where they come back, or were away for a moment.
    store.create(&secrets, &keys).unwrap();
    assert!(lead(&state).under_way(&tags).is_none());
}

/// A match that begins makes any before it void, with what came of that.
#[test]
fn a_match_that_begins_makes_the_one_before_void() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = matching(&state);
    let (before, of_match) = (log.match_secrets().unwrap().0, matched(&log));
    log.set_matched(of_match).unwrap();
    let of = ([8; 32], &[[1; 32], [2; 32]][..], draw(&state));
    log.begin_match(of, &state.folder("match"), SECRETS).unwrap();
    assert!(state.sealed().store().list(&before).unwrap().is_empty(), "its keys are gone");
    assert_eq!(log.progress(), (false, 0));
    assert!(log.pin(pin(0, 0, 1)).unwrap());
    drop(log);
    let log = lead(&state);
    assert_eq!((log.progress(), log.under_way(&[[1; 32], [2; 32]])), ((false, 0), Some([8; 32])));
}

/// That nobody goes on with a match is written down: keys that come back with a copy of their folder do not
/// bring it back.
#[test]
fn keys_that_come_back_are_of_no_match() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = matching(&state);
    finish_of((&mut log, 2), 0, 1, DONE);
    let (store, place) = (state.sealed().store(), log.match_secrets().unwrap().0);
    let all = store.list(&place).unwrap().into_iter();
    let all: Vec<_> = all.map(|(name, _)| (store.get(&name).unwrap(), name)).collect();
    assert_eq!(all.len(), 2, "keys and a result");
    log.forget_match().unwrap();
    assert!(store.list(&place).unwrap().is_empty());
    all.iter().for_each(|(bytes, name)| store.create(name, bytes).unwrap());
    drop(log);
    let log = lead(&state);
    assert!(log.under_way(&[[1; 32], [2; 32]]).is_none() && log.progress() == (false, 0));
    drop(log);
    // A process that is killed behind that record, or behind one of a promise, leaves the ledger its part.
    let mut log = matching(&state);
    log.append(&[KeptRecord::Pin(pin(0, 0, 5)).to_log().unwrap()]).unwrap();
    log.append(&[KeptRecord::Void.to_log().unwrap()]).unwrap();
    drop(log);
    assert!(promised(&state).is_some());
    drop(lead(&state));
    assert_eq!(promised(&state), None);
    // Nor does who was replaced remove what another process goes on with.
    let mut first = matching(&state);
    let mut second = lead(&state);
    assert!(first.forget_match().is_err() && first.fenced);
    assert_eq!(*second.match_secrets().unwrap().1, *SECRETS);
    let tags = [[1; 32], [2; 32]];
    let mut third = lead(&state);
    let of = ([8; 32], &tags[..], draw(&state));
    assert!(second.begin_match(of, &state.folder("match"), SECRETS).is_err() && second.fenced);
    assert_eq!(*third.match_secrets().unwrap().1, *SECRETS);
    let mut fourth = lead(&state);
    assert!(third.snapshot().is_err() && third.fenced);
    assert!(fourth.pin(pin(0, 0, 1)).unwrap());
}

/// Puts a copy of a folder, and nothing else, in another one's place.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Who can put the folder back, to before a promise or to before the end of the match, has nobody answer
/// under its keys: the ledger is somewhere else.
#[test]
fn a_folder_that_is_put_back_is_of_no_match() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let [place, aside, kept] = ["state", "aside", "kept"].map(|name| folder.path().join(name));
    let mut log = matching(&state);
    assert!(log.pin(pin(0, 0, 5)).unwrap());
    drop(log);
    copy(&place, &aside);
    // As it is now, it goes on.
    let mut log = lead(&state);
    assert!(log.is_matching() && log.pin(pin(0, 1, 6)).unwrap());
    let of_keys = log.match_secrets().unwrap().0;
    drop(log);
    copy(&place, &kept);
    copy(&aside, &place);
    let log = lead(&state);
    assert!(!log.is_matching() && log.resumed().unwrap().contains("put back"), "{:?}", log.resumed());
    assert!(state.sealed().store().list(&of_keys).unwrap().is_empty(), "its keys are gone");
    drop(log);
    // Nothing was lost there.
    copy(&kept, &place);
    let mut log = lead(&state);
    assert!(!log.pin(pin(0, 1, 5)).unwrap());
    // To before its end, and to before the one after it.
    log.forget_match().unwrap();
    for later in [false, true] {
        if later {
            let of = ([8; 32], &[[1; 32], [2; 32]][..], draw(&state));
            lead(&state).begin_match(of, &state.folder("match"), SECRETS).unwrap();
        }
        copy(&kept, &place);
        assert!(!lead(&state).is_matching());
    }
}

/// Of a party whose ledger and state lie in a folder.
fn party(at: &Path) -> PartySetup {
    let at = at.display();
    let text = format!(
        "study = \"s\"\nas = \"clinic\"\nidentity = \"i\"\ndata = \"d\"\nlisten = \"127.0.0.1:0\"\n\
         ledger = \"{at}/ledger\"\nstate = \"{at}/state\"\n"
    );
    study::party::PartySettings::parse("party.toml", &text).unwrap().complete().unwrap()
}

/// A match of which nothing else is known begins to speak.
fn speaks(ledger: &mut Ledger, id: &Bytes32, head: &Bytes32) {
    let begun = ledger.begin_silent_match(id, &|_| Ok(Vec::new())).unwrap();
    assert!(ledger.begin_promises(id, &begun.nonce, head).unwrap());
}

/// One beginning of the ledger serves one match, whichever folders two processes of a party have.
#[test]
fn a_beginning_that_another_process_has_taken_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let tags = [[1; 32], [2; 32]];
    let (mut log, draw, id) = (lead(&state), draw(&state), privacy::ledger::begun_id(&STUDY, &tags));
    let mut ledger = ledger_at(folder.path());
    assert!(ledger.begin_promises(&id, &draw.nonce, &[9; 32]).unwrap(), "of the other process");
    let error = log.begin_match(([7; 32], &tags, draw), &state.folder("match"), SECRETS).unwrap_err();
    assert!(error.to_string().contains("begun by another process"), "{error}");
    assert!(!log.is_matching() && !log.fenced);
    drop(log);
    let log = lead(&state);
    assert!(log.under_way(&tags).is_none());
    assert_eq!(ledger.promises(&id).unwrap(), Some([9; 32]), "the other one's match goes on");
}

/// The match of a run that was kept for long enough ends, but not while a process leads it, and not where the
/// ledger is at another match of the same study and data.
#[test]
fn a_run_that_expires_ends_its_own_match_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut party = party(folder.path());
    party.keep_state = Duration::ZERO;
    let key = state_key(&party).unwrap();
    let place = folder.path().join("state");
    let store = StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
    let state = Arc::new(RunState::begin(store.clone(), &key, "clinic", Duration::MAX).unwrap());
    let (mut log, records) = state.lead().unwrap();
    assert!(records.is_empty());
    let mut begun = begun();
    begun.study = base::hex(&STUDY);
    let records = [KeptRecord::Begun(Box::new(begun)).to_log().unwrap()];
    log.append(&records).unwrap();
    let book = PromiseBook::new(&ledger(&state), &STUDY);
    let mut log = RunLog::resume(state.clone(), (log, &records), book).unwrap();
    let tags = [[1; 32], [2; 32]];
    log.begin_match(([7; 32], &tags, draw(&state)), &state.folder("match"), SECRETS).unwrap();
    assert!(log.pin(pin(0, 0, 5)).unwrap());
    state.keep().unwrap();
    let error = forget_expired(&party, &store, &key).unwrap_err().to_string();
    assert!(error.contains("leads a run"), "{error}");
    let head = promised(&state).expect("it goes on");
    drop((log, state));
    let (id, mut ledger) = (privacy::ledger::begun_id(&STUDY, &tags), ledger_at(folder.path()));
    speaks(&mut ledger, &id, &[9; 32]);
    forget_expired(&party, &store, &key).unwrap();
    assert_eq!(ledger.promises(&id).unwrap(), Some([9; 32]), "of a run elsewhere");
    speaks(&mut ledger, &id, &head);
    forget_expired(&party, &store, &key).unwrap();
    assert_eq!(ledger.promises(&id).unwrap(), None);
}

/// A run that was removed is of no match where its folder comes back, with the ledger as it was: as after a
/// restore of the machine.
#[test]
fn a_run_that_is_dropped_goes_on_with_no_match() {
    let folder = tempfile::tempdir().unwrap();
    let [place, aside] = ["state", "aside"].map(|name| folder.path().join(name));
    let party = party(folder.path());
    let key = state_key(&party).unwrap();
    let store = StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
    for dropped_by_name in [false, true] {
        let state = Arc::new(RunState::begin(store.clone(), &key, "clinic", Duration::MAX).unwrap());
        let mut log = matching(&state);
        state.keep().unwrap();
        assert!(log.pin(pin(0, 0, 5)).unwrap());
        drop((log, state));
        copy(&place, &aside);
        let name = kept_runs(&store).unwrap().remove(0);
        let resumed = || {
            copy(&aside, &place);
            lead(&Arc::new(RunState::resume(store.clone(), &key, &name, "clinic").unwrap()))
        };
        assert!(resumed().is_matching());
        let wanted = if dropped_by_name { vec![name.short()] } else { Vec::new() };
        assert_eq!(drop_kept(&party, &wanted).unwrap(), [name.short()]);
        assert!(!resumed().is_matching(), "{wanted:?}");
        // Another run's match is its own affair, unless all are removed.
        let mut ledger = ledger_at(folder.path());
        speaks(&mut ledger, &[4; 32], &[5; 32]);
        drop_kept(&party, std::slice::from_ref(&name.short())).unwrap();
        assert_eq!(ledger.promises(&[4; 32]).unwrap(), Some([5; 32]));
        drop_kept(&party, &[]).unwrap();
        assert_eq!(ledger.promises(&[4; 32]).unwrap(), None);
    }
}

/// Between the record of a promise and the ledger a process may die: the promise binds, and the ledger has it
/// next. Who finds the ledger at another match says nothing more.
#[test]
fn a_ledger_that_is_behind_has_the_promise_next() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let [at, before] = ["ledger", "before"].map(|name| folder.path().join(name));
    let mut log = matching(&state);
    log.pin(pin(0, 0, 5)).unwrap();
    std::fs::copy(&at, &before).unwrap();
    log.pin(pin(0, 1, 6)).unwrap();
    drop(log);
    std::fs::copy(&before, &at).unwrap();
    for snapshot in [true, false] {
        let mut log = lead(&state);
        assert!(log.is_matching() && !log.pin(pin(0, 1, 7)).unwrap());
        if snapshot {
            log.snapshot().unwrap();
        }
    }
    let mut log = lead(&state);
    assert!(log.pin(pin(0, 2, 8)).unwrap());
    let id = privacy::ledger::begun_id(&STUDY, &[[1; 32], [2; 32]]);
    speaks(&mut ledger_at(folder.path()), &id, &[9; 32]);
    let error = log.pin(pin(0, 3, 8)).unwrap_err().to_string();
    assert!(log.fenced && error.contains("promises of another match"), "{error}");
}

/// Columns and results of attempts of which no result is held go: as the next attempt begins, and as a log is
/// taken up.
#[test]
fn attempts_that_failed_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let store = state.sealed().store();
    let mut log = matching(&state);
    let place = log.match_secrets().unwrap().0;
    let column = |unit: u32, attempt: u32| format!("{place}/uids/v-{unit:04}-{attempt:04}/0");
    let there = || -> Vec<String> { store.list(&place).unwrap().into_iter().map(|(name, _)| name).collect() };
    for at in [(0, 1), (0, 2), (0, 3), (1, 1)] {
        finish_of((&mut log, 2), at.0, at.1, DONE);
        store.create(&column(at.0, at.1), &[1]).unwrap();
    }
    log.forget_attempts(2, (0, 4)).unwrap();
    let done = |unit: u32, attempt: u32| format!("{place}/done/2-{unit:04}-{attempt:04}");
    let secrets = format!("{place}/secrets");
    assert_eq!(there(), [done(0, 3), done(1, 1), secrets.clone(), column(0, 3), column(1, 1)]);
    log.forget_attempts(3, (1, 2)).unwrap();
    assert_eq!(there().len(), 5, "of another stage");
    drop(log);
    // These results name no columns.
    assert_eq!(lead(&state).progress(), (false, 2));
    assert_eq!(there(), [done(0, 3), done(1, 1), secrets]);
}

/// A result on which both count makes the match void where it is lost, not the run: its rows are read.
#[test]
fn a_match_that_lost_what_both_count_on_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path());
    let mut log = matching(&state);
    finish_of((&mut log, 2), 0, 1, DONE);
    log.write_units(2, &[UnitRecord::Seal { root: [4; 32] }]).unwrap();
    let place = log.match_secrets().unwrap().0;
    state.sealed().store().delete(&format!("{place}/done/2-0000-0001")).unwrap();
    let error = log.held_work(2).err().expect("both count on it").to_string();
    assert!(error.contains("lost the result of unit 0 of its match") && !log.spent, "{error}");
    assert!(!log.is_matching() && state.sealed().store().list(&place).unwrap().is_empty());
    drop(log);
    assert!(!lead(&state).is_matching());
}

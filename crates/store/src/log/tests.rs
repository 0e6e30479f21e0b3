//! Writers of one log against each other, in every order that chance finds.

use super::*;
use crate::testing::{Around, Mishap, memory, watched};
use crate::{StateKey, StateStore};
use base::{Rng, Seed};
use object_store::memory::InMemory;
use std::sync::{Arc, Condvar, Mutex};

const SCHEDULES: u64 = 1_000;

fn sealed(store: StateStore, key: &StateKey) -> SealedStore {
    SealedStore::new(store, key, &[3; 32], "registry")
}

fn lead(sealed: SealedStore) -> Result<(StateLog, Vec<LogRecord>), StoreError> {
    let lock = sealed.store().lock().unwrap();
    StateLog::lead(sealed, "log", &lock)
}

fn record(text: String) -> LogRecord {
    LogRecord { tag: 1, payload: text.into_bytes() }
}

/// Whose request comes next.
struct Turns {
    state: Mutex<(Rng, Vec<bool>, usize)>,
    changed: Condvar,
}

impl Turns {
    fn new(seed: u64, writers: usize) -> Self {
        let rng = Seed::from_bytes([7; 32]).fork(&seed.to_string()).into_rng();
        Self { state: Mutex::new((rng, vec![true; writers], 0)), changed: Condvar::new() }
    }

    fn draw(&self, below: u64) -> u64 {
        self.state.lock().unwrap().0.below(below)
    }

    /// Passes the turn on to any writer that is not done.
    fn pass(&self, done: Option<usize>) {
        let mut state = self.state.lock().unwrap();
        let (rng, live, turn) = &mut *state;
        done.into_iter().for_each(|writer| live[writer] = false);
        let left: Vec<usize> = (0..live.len()).filter(|writer| live[*writer]).collect();
        if !left.is_empty() && (done.is_none() || done == Some(*turn)) {
            *turn = left[rng.below(left.len() as u64) as usize];
        }
        self.changed.notify_all();
    }
}

struct Writer {
    turns: Arc<Turns>,
    number: usize,
}

impl Around for Writer {
    fn before(&self, creates: bool) -> Mishap {
        let state = self.turns.state.lock().unwrap();
        let mut state = self.turns.changed.wait_while(state, |state| state.2 != self.number).unwrap();
        match (creates, state.0.below(24)) {
            (true, 0) => Mishap::ToldAgain,
            (true, 1) => Mishap::Conflict,
            (true, 2) => Mishap::Fails(true),
            (true, 3) => Mishap::Fails(false),
            _ => Mishap::None,
        }
    }

    fn after(&self) {
        self.turns.pass(None);
    }
}

/// A writer that leads, appends, is replaced or crashes, and leads again; what it was told is there.
fn writer(store: &SealedStore, turns: &Turns, number: usize) -> Vec<(u64, LogRecord)> {
    let mut told = Vec::new();
    for life in 0..3 {
        let Ok((mut log, _)) = lead(store.clone()) else { continue };
        for line in 0..1 + turns.draw(6) {
            let line = record(format!("{number} {life} {line}"));
            let done = match turns.draw(5) {
                0 => log.snapshot(std::slice::from_ref(&line)),
                _ => log.append(std::slice::from_ref(&line)),
            };
            match done {
                Ok(at) => told.push((at, line)),
                Err(error) => {
                    let fenced = matches!(error, StoreError::Fenced { .. });
                    assert!(
                        fenced || Error::from(error.clone()).to_string().contains("no answer"),
                        "{error:?}"
                    );
                    // Whoever was replaced, or does not know, writes nothing any more.
                    let again = log.append(std::slice::from_ref(&line)).unwrap_err();
                    assert!(Error::from(again).to_string().contains("open the log again"));
                    break;
                }
            }
        }
    }
    told
}

fn schedule(seed: u64) {
    let (inner, key) = (Arc::new(InMemory::new()), StateKey::fresh());
    let writers = 2 + (seed % 2) as usize;
    let turns = Arc::new(Turns::new(seed, writers));
    let told: Vec<(u64, LogRecord)> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..writers)
            .map(|number| {
                let around = Writer { turns: Arc::clone(&turns), number };
                let (store, turns) = (sealed(watched(&inner, around), &key), Arc::clone(&turns));
                scope.spawn(move || {
                    let told = writer(&store, &turns, number);
                    turns.pass(Some(number));
                    told
                })
            })
            .collect();
        all.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    // The whole log, from its first object on: hashes, numbers and epochs follow each other.
    let store = sealed(memory(&inner), &key);
    let count = store.store().list("log").unwrap().len() as u64;
    let at = LogPlace::default();
    let lock = store.store().lock().unwrap();
    let mut log = StateLog { sealed: store, folder: "log".into(), at, broken: false, _lock: lock };
    let mut by_number = Vec::new();
    for number in 1..=count {
        let bytes = log.sealed.store().get(&log.name(number)).unwrap();
        let object = log.unseal(number, &bytes).unwrap();
        by_number.push(object.body.clone());
        log.accept(object, &bytes, 1, &mut Vec::new()).unwrap();
    }
    // What a writer was told is there is there, as its record and nobody else's.
    let mut numbers: Vec<u64> = told.iter().map(|(number, _)| *number).collect();
    for (number, record) in &told {
        match &by_number[*number as usize - 1] {
            LogBody::Records(there) | LogBody::Snapshot(there) => {
                assert_eq!(there[..], *std::slice::from_ref(record))
            }
            LogBody::Lead(_) => panic!("{number} is a lead"),
        }
    }
    numbers.sort_unstable();
    assert!(numbers.is_sorted_by(|a, b| a < b), "two records of one number, seed {seed}");
}

#[test]
fn no_two_writers_write_one_number() {
    (0..SCHEDULES).for_each(schedule);
}

#[test]
fn opening_reads_from_the_last_snapshot_on() {
    let (inner, key) = (Arc::new(InMemory::new()), StateKey::fresh());
    let store = sealed(memory(&inner), &key);
    let (mut log, records) = lead(store.clone()).unwrap();
    assert_eq!((log.epoch(), records.len()), (1, 0));
    for number in 2..=SNAPSHOT_EVERY {
        assert!(!log.snapshot_due(), "{number}");
        assert_eq!(log.append(&[record(number.to_string())]).unwrap(), number);
    }
    assert!(log.snapshot_due());
    log.snapshot(&[record("all".into()), record("of it".into())]).unwrap();
    assert!(!log.snapshot_due());
    log.append(&[record("more".into())]).unwrap();
    drop(log);
    let before = store.store().traffic().requests;
    let (log, records) = lead(store.clone()).unwrap();
    let texts: Vec<&[u8]> = records.iter().map(|record| &record.payload[..]).collect();
    assert_eq!((log.epoch(), texts), (2, vec![&b"all"[..], b"of it", b"more"]));
    let requests = store.store().traffic().requests - before;
    assert!(requests < 10, "{requests} requests");
}

#[test]
fn a_log_that_lost_or_got_an_object_is_refused() {
    let (inner, key) = (Arc::new(InMemory::new()), StateKey::fresh());
    let store = sealed(memory(&inner), &key);
    let (mut log, _) = lead(store.clone()).unwrap();
    (0..4).for_each(|line| _ = log.append(&[record(line.to_string())]).unwrap());
    drop(log);
    let raw = store.store();
    let name = |number: u64| format!("log/{number:012}");
    let all: Vec<Vec<u8>> = (1..=5).map(|number| raw.get(&name(number)).unwrap()).collect();
    let restore = || (1..=5).for_each(|number| raw.put(&name(number), &all[number as usize - 1]).unwrap());
    let refused = || match lead(store.clone()) {
        Err(StoreError::Damaged { place, why }) => (place, why),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was taken"),
    };
    for number in [1, 2, 4] {
        raw.delete(&name(number)).unwrap();
        assert_eq!(refused().0, format!("memory/{}", name(number)));
        restore();
    }
    raw.put(&name(3), &all[3]).unwrap();
    assert_eq!(refused().1, "it was changed, or sealed for another name, run or party");
    restore();
    raw.put("log/readme", b"x").unwrap();
    assert_eq!(refused().1, "it is missing, or another name is in its place");
    raw.delete("log/readme").unwrap();
    // Sealed under the same key and name, by a leader of another history.
    let object =
        LogObject { number: 3, epoch: 1, snapshot: 0, previous: [1; 32], body: LogBody::Records(vec![]) };
    raw.put(&name(3), &store.seal(&name(3), &object.to_bytes(), crate::ChunkSize::Large)).unwrap();
    assert_eq!(refused().1, "it does not follow the object before it");
    restore();
    let other = SealedStore::new(raw.clone(), &key, &[4; 32], "registry");
    assert!(matches!(lead(other), Err(StoreError::Damaged { .. })), "of another run");
    let (log, records) = lead(store.clone()).unwrap();
    assert_eq!((log.epoch(), records.len()), (2, 4));
}

#[test]
fn who_was_replaced_is_told_by_whom_and_stops() {
    let (inner, key) = (Arc::new(InMemory::new()), StateKey::fresh());
    let store = sealed(memory(&inner), &key);
    let (mut old, _) = lead(store.clone()).unwrap();
    let (mut new, _) = lead(store).unwrap();
    let error = Error::from(old.append(&[record("late".into())]).unwrap_err()).to_string();
    assert!(error.contains(&format!("memory/log: process {} of ", std::process::id())), "{error}");
    assert!(error.contains("(epoch 2) leads this run now, so this process has stopped"), "{error}");
    assert_eq!(new.append(&[record("x".into())]).unwrap(), 3);
    // What is too long is refused before it is sent.
    let long = LogRecord { tag: 1, payload: vec![0; LOG_OBJECT_BYTES as usize] };
    let error = Error::from(new.append(&[long]).unwrap_err()).to_string();
    assert!(error.starts_with("LOG_OBJECT_BYTES: "), "{error}");
}

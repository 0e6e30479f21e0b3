//! What was sealed is read back, and nothing else is taken for it.

mod support;

use base::Seed;
use store::{ChunkSize, OBJECT_BYTES, RecordSize, SealedStore, StateKey, StateStore, sealed_len};
use store::{RUN_MEMORY, RunReader, RunWriter, StateLog, StoreError};
use support::{bytes, place, sealed, why};

const CHANGED: &str = "it was changed, or sealed for another name, run or party";

fn write(sealed: &SealedStore, name: &str, size: ChunkSize, all: &[u8]) {
    let mut writer = sealed.writer(name, size).unwrap();
    all.chunks(10_007).for_each(|piece| writer.write(piece).unwrap());
    writer.finish().unwrap();
}

fn read(sealed: &SealedStore, name: &str) -> Result<Vec<u8>, store::StoreError> {
    let mut all = Vec::new();
    let take = |piece: &[u8]| {
        all.extend_from_slice(piece);
        Ok(())
    };
    sealed.reader(name)?.stream(take)?;
    Ok(all)
}

#[test]
fn objects_are_read_back_whole_and_by_ranges() {
    let here = place();
    let (key, all) = (StateKey::fresh(), bytes(300_000));
    let sealed = sealed(&here.store, &key);
    for size in [ChunkSize::Small, ChunkSize::Large] {
        for len in [0, 1, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 131_072, 300_000] {
            let name = format!("x/{len}");
            write(&sealed, &name, size, &all[..len]);
            let stored = here.store.list(&name[..1]).unwrap();
            let stored = stored.iter().find(|(there, _)| *there == name).unwrap().1;
            assert_eq!(stored, sealed_len(len as u64, size));
            assert!(read(&sealed, &name).unwrap() == all[..len], "{len}");
            let reader = sealed.reader(&name).unwrap();
            assert_eq!((reader.len(), reader.is_empty()), (len as u64, len == 0));
            let mut rng = Seed::from_bytes([1; 32]).fork(&name).into_rng();
            for _ in 0..10 {
                let start = rng.below(len as u64 + 1);
                let end = start + rng.below(len as u64 - start + 1);
                assert!(
                    reader.read(start..end).unwrap() == all[start as usize..end as usize],
                    "{start}..{end}"
                );
            }
            assert!(reader.read(0..len as u64 + 1).is_err());
        }
    }
}

#[test]
fn objects_of_another_name_run_party_or_key_are_refused() {
    let here = place();
    let (key, all) = (StateKey::fresh(), bytes(10_000));
    let own = sealed(&here.store, &key);
    write(&own, "a", ChunkSize::Small, &all);
    here.store.put("b", &here.store.get("a").unwrap()).unwrap();
    assert_eq!(why(read(&own, "b")), CHANGED, "another name");
    let of = |key: &StateKey, run, party| SealedStore::new(here.store.clone(), key, &[run; 32], party);
    assert_eq!(why(read(&of(&key, 4, "registry"), "a")), CHANGED, "another run");
    assert_eq!(why(read(&of(&key, 3, "hospitals"), "a")), CHANGED, "another party");
    assert_eq!(why(read(&of(&StateKey::fresh(), 3, "registry"), "a")), CHANGED, "another key");
    assert!(read(&of(&key, 3, "registry"), "a").unwrap() == all);
    // An older object of the same name opens, and says that it is another one.
    let (old, id) = (here.store.get("a").unwrap(), own.reader("a").unwrap().id());
    write(&own, "a", ChunkSize::Small, &all);
    assert_ne!(own.reader("a").unwrap().id(), id);
    here.store.put("a", &old).unwrap();
    assert_eq!(own.reader("a").unwrap().id(), id);
}

/// Every byte is flipped in `crates/store/src/sealed/tests.rs`; here a store has each thing.
#[test]
fn what_a_store_changed_is_refused() {
    let here = place();
    let (key, all) = (StateKey::fresh(), bytes(4 * 4_096 + 100));
    let own = sealed(&here.store, &key);
    write(&own, "a", ChunkSize::Small, &all);
    let good = here.store.get("a").unwrap();
    let (head, grown) = (42, 4_096 + 16);
    let refused = |bytes: &[u8], what: &str| {
        here.store.put("a", bytes).unwrap();
        assert!(matches!(read(&own, "a"), Err(StoreError::Damaged { .. })), "{what}");
    };
    // Cut at every border of chunks and of their tags, and at random.
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    let borders = (0..=4).flat_map(|chunk| [head + chunk * grown, head + chunk * grown - 16]);
    let cuts = borders.chain((0..20).map(|_| rng.below(good.len() as u64) as usize));
    for cut in cuts.filter(|cut| *cut < good.len()).collect::<Vec<_>>() {
        refused(&good[..cut], "cut");
    }
    // Longer by a chunk, by a byte, and by itself.
    refused(&[&good[..], &good[head..head + grown]].concat(), "a chunk more");
    refused(&[&good[..], &[0]].concat(), "a byte more");
    refused(&[&good[..], &good].concat(), "twice");
    // Chunks in another order, one twice, and one of another object.
    for (one, other) in [(0, 1), (1, 3), (0, 3)] {
        let mut swapped = good.clone();
        let (a, b) = (head + one * grown, head + other * grown);
        swapped[a..a + grown].copy_from_slice(&good[b..b + grown]);
        refused(&swapped, "one twice");
        swapped[b..b + grown].copy_from_slice(&good[a..a + grown]);
        refused(&swapped, "swapped");
    }
    write(&own, "a", ChunkSize::Small, &all);
    let other = here.store.get("a").unwrap();
    refused(&[&good[..head + grown], &other[head + grown..]].concat(), "halves of two objects");
    refused(&[&good[..head], &other[head..]].concat(), "another header");
    for at in [0, 7, 8, 9, 10, 41, 42, head + grown - 1, head + grown, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        refused(&flipped, "flipped");
    }
    // A part vouches for itself: the first chunk is what it was, however the others are.
    here.store.put("a", &[&good[..head + grown], &other[head + grown..]].concat()).unwrap();
    let reader = own.reader("a").unwrap();
    assert!(reader.read(0..4_096).unwrap() == all[..4_096]);
    assert_eq!(why(reader.read(4_000..4_100)), CHANGED);
}

fn lead(store: &StateStore, key: &StateKey) -> Result<(StateLog, Vec<store::LogRecord>), store::StoreError> {
    StateLog::lead(sealed(store, key), "log", &store.lock()?)
}

#[test]
fn a_log_goes_on_where_it_ended() {
    let here = place();
    let key = StateKey::fresh();
    let record = |tag| store::LogRecord { tag, payload: vec![tag; 5] };
    let (mut log, records) = lead(&here.store, &key).unwrap();
    assert_eq!((records.len(), log.append(&[record(1), record(2)]).unwrap()), (0, 2));
    log.snapshot(&[record(3)]).unwrap();
    log.append(&[record(4)]).unwrap();
    drop(log);
    let (log, records) = lead(&here.store, &key).unwrap();
    assert_eq!((log.epoch(), records), (2, vec![record(3), record(4)]));
    let names: Vec<String> = here.store.list("log").unwrap().into_iter().map(|(name, _)| name).collect();
    let wanted: Vec<String> = (1..=5).map(|number| format!("log/{number:012}")).collect();
    assert_eq!(names, wanted);
}

/// A partition's part of a run may be longer than what is read in one piece.
#[test]
fn long_parts_of_a_run_are_read_in_pieces() {
    let here = place();
    let own = sealed(&here.store, &StateKey::fresh());
    let mut rng = Seed::from_bytes([9; 32]).into_rng();
    let mut writer =
        RunWriter::new(own.clone(), "runs/long", (2, RecordSize::Fixed(1000)), RUN_MEMORY + (32 << 20))
            .unwrap();
    let mut all: Vec<[u8; 1000]> = Vec::new();
    for _ in 0..20_000 {
        let mut record = [0; 1000];
        record[..32].copy_from_slice(&rng.bytes::<32>());
        writer.push(1, &record).unwrap();
        all.push(record);
    }
    let runs = writer.finish().unwrap();
    assert!(runs.len() == 1 && all.len() as u64 * 1000 > OBJECT_BYTES);
    all.sort_unstable();
    let reader = RunReader::open(own, &runs).unwrap();
    assert!(reader.partition(1).unwrap().sorted().eq(all.iter().map(|record| &record[..])));
    assert_eq!(reader.partition(0).unwrap().sorted().count(), 0);
}

#[test]
fn runs_are_written_once_and_read_once_sorted() {
    let here = place();
    let (key, partitions) = (StateKey::fresh(), 16u32);
    let own = sealed(&here.store, &key);
    // 24 MB of records through 8 MB of room each: several runs.
    let mut rng = Seed::from_bytes([8; 32]).into_rng();
    let mut all: Vec<Vec<[u8; 40]>> = vec![Vec::new(); partitions as usize];
    let mut writer =
        RunWriter::new(own.clone(), "runs/v", (partitions, RecordSize::Fixed(40)), RUN_MEMORY).unwrap();
    let before = here.store.traffic();
    for _ in 0..600_000 {
        let record = rng.bytes::<40>();
        writer.push(u32::from(record[0] >> 4), &record).unwrap();
        all[usize::from(record[0] >> 4)].push(record);
    }
    let runs = writer.finish().unwrap();
    assert!(runs.len() > 3, "{} runs", runs.len());
    let written = here.store.traffic().written - before.written;
    let least = 600_000 * 40;
    assert!((least..least + least / 100).contains(&written), "{written} bytes written for {least}");
    let reader = RunReader::open(own.clone(), &runs).unwrap();
    let before = here.store.traffic();
    for (partition, wanted) in all.iter_mut().enumerate() {
        wanted.sort_unstable();
        let records = reader.partition(partition as u32).unwrap();
        assert!(records.sorted().eq(wanted.iter().map(|record| &record[..])), "{partition}");
    }
    let after = here.store.traffic();
    let read = after.read - before.read;
    assert!((least..least + least / 20).contains(&read), "{read} bytes read for {least}");
    assert_eq!(after.requests - before.requests, u64::from(partitions) * runs.len() as u64);
    assert!(reader.partition(partitions).is_err());
    // What was noted down is what has to be there.
    let mut wrong = runs.clone();
    wrong[0].id.0[0] ^= 1;
    assert_eq!(
        why(RunReader::open(own.clone(), &wrong)),
        "it is another object than was written, of the same name"
    );
    let mut wrong = runs.clone();
    wrong[0].records += 1;
    assert_eq!(
        why(RunReader::open(own.clone(), &wrong)),
        "it holds another number of records than were written"
    );
}

#[test]
fn records_of_many_lengths_and_empty_partitions_come_back() {
    let here = place();
    let key = StateKey::fresh();
    let own = sealed(&here.store, &key);
    let mut writer =
        RunWriter::new(own.clone(), "runs/x", (2_000, RecordSize::Prefixed), RUN_MEMORY).unwrap();
    let words = ["b", "", "a", "abc", "ab", "b"];
    words.iter().for_each(|word| writer.push(7, word.as_bytes()).unwrap());
    writer.push(1_999, &bytes(1 << 20)).unwrap();
    assert!(writer.push(0, &vec![0; (1 << 20) + 1]).is_err());
    let runs = writer.finish().unwrap();
    let reader = RunReader::open(own.clone(), &runs).unwrap();
    let texts: Vec<Vec<u8>> = reader.partition(7).unwrap().sorted().map(<[u8]>::to_vec).collect();
    assert_eq!(texts, [&b""[..], b"a", b"ab", b"abc", b"b", b"b"].map(<[u8]>::to_vec));
    assert_eq!(reader.partition(0).unwrap().sorted().count(), 0);
    assert_eq!(reader.partition(1_999).unwrap().sorted().map(<[u8]>::len).sum::<usize>(), 1 << 20);
    let none = RunWriter::new(own.clone(), "runs/y", (4, RecordSize::Fixed(8)), RUN_MEMORY).unwrap();
    assert_eq!(none.finish().unwrap(), []);
    let other = RunWriter::new(own.clone(), "runs/z", (4, RecordSize::Fixed(8)), RUN_MEMORY);
    let mut other = other.unwrap();
    assert!(other.push(1, &[0; 7]).is_err());
    other.push(1, &[0; 8]).unwrap();
    let both = [runs, other.finish().unwrap()].concat();
    assert_eq!(
        why(RunReader::open(own.clone(), &both)),
        "its partitions or records are other ones than those of the first run"
    );
    for (shape, memory) in [
        ((0, RecordSize::Prefixed), RUN_MEMORY),
        ((4_097, RecordSize::Prefixed), RUN_MEMORY),
        ((4, RecordSize::Fixed(0)), RUN_MEMORY),
        ((4, RecordSize::Prefixed), RUN_MEMORY - 1),
    ] {
        assert!(RunWriter::new(own.clone(), "r", shape, memory).is_err(), "{shape:?} {memory}");
    }
}

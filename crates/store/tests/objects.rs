//! Named objects: the same in a folder and in a bucket.

mod support;

use base::Error;
use store::{OBJECT_BYTES, PART_BYTES, StateStore, StoreError, StoreOptions};
use support::{bytes, place};

#[test]
fn objects_are_created_once_written_read_listed_and_deleted() {
    let here = place();
    let (store, at) = (&here.store, |name: &str| format!("{}/{name}", here.store.url()));
    store.probe().unwrap();
    store.create("a/1", b"first").unwrap();
    assert_eq!(store.create("a/1", b"second"), Err(StoreError::AlreadyExists { place: at("a/1") }));
    assert_eq!(store.get("a/1").unwrap(), b"first");
    // With the same bytes it is one's own.
    store.create("a/1", b"first").unwrap();
    store.put("a/1", b"other").unwrap();
    assert_eq!(store.get("a/1").unwrap(), b"other");
    store.put("a/0", b"").unwrap();
    assert_eq!(store.get("a/0").unwrap(), b"");
    store.create("ab", b"beside").unwrap();
    store.create("a/b/c-d_e.f", b"below").unwrap();
    let listed = |prefix: &str| -> Vec<String> {
        store.list(prefix).unwrap().into_iter().map(|(name, size)| format!("{name} {size}")).collect()
    };
    assert_eq!(listed("a"), ["a/0 0", "a/1 5", "a/b/c-d_e.f 5"]);
    assert_eq!(listed(""), ["a/0 0", "a/1 5", "a/b/c-d_e.f 5", "ab 6"]);
    assert_eq!(listed("nothing/there"), Vec::<String>::new());
    store.delete("a/1").unwrap();
    assert_eq!(store.get("a/1"), Err(StoreError::Missing { place: at("a/1") }));
    assert_eq!(store.get_range("a/1", 0..1), Err(StoreError::Missing { place: at("a/1") }));
    let error = Error::from(store.get("a/1").unwrap_err()).to_string();
    assert!(error.starts_with(&format!("there is no {}: the state of this run is not whole", at("a/1"))));
    for name in ["", "/a", "a//b", "a/../b", "a#1"] {
        let error = Error::from(store.put(name, b"x").unwrap_err()).to_string();
        assert!(error.starts_with("no name of an object: "), "{error}");
    }
}

#[test]
fn ranges_are_what_was_asked_for() {
    let here = place();
    let all = bytes(3_000_000);
    here.store.put("x", &all).unwrap();
    let before = here.store.traffic();
    let ranges: Vec<_> = (0..64).map(|i| i * 40_000..i * 40_000 + 1 + i * 300).collect();
    let parts = here.store.get_ranges("x", &ranges).unwrap();
    for (part, range) in parts.iter().zip(&ranges) {
        assert!(part[..] == all[range.start as usize..range.end as usize], "{range:?}");
    }
    let read: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let after = here.store.traffic();
    assert_eq!((after.read - before.read, after.requests - before.requests), (read, 64));
    assert_eq!(here.store.get_range("x", 5..5).unwrap(), b"");
    for range in [2_999_999..3_000_001, 3_000_000..3_000_001, 9_000_000..9_000_001] {
        let error = here.store.get_range("x", range.clone()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { why: "it is too short", .. }), "{range:?} {error:?}");
    }
}

#[test]
fn what_is_too_large_for_one_piece_is_refused() {
    let here = place();
    let error = here.store.put("x", &vec![0; OBJECT_BYTES as usize + 1]).unwrap_err();
    assert!(Error::from(error).to_string().starts_with("OBJECT_BYTES: "));
    let mut writer = here.store.writer("x").unwrap();
    for _ in 0..3 {
        writer.write(&vec![7; PART_BYTES]).unwrap();
    }
    writer.finish().unwrap();
    let error = here.store.get("x").unwrap_err();
    assert!(Error::from(error).to_string().starts_with("OBJECT_BYTES: "));
    assert_eq!(here.store.list("").unwrap(), [("x".to_owned(), 3 * PART_BYTES as u64)]);
}

#[test]
fn parts_become_an_object_when_they_are_finished_and_not_before() {
    let here = place();
    for len in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 2 * PART_BYTES + 77] {
        let (name, all) = (format!("x/{len}"), bytes(len));
        let mut writer = here.store.writer(&name).unwrap();
        all.chunks(1_000_003).for_each(|piece| writer.write(piece).unwrap());
        assert!(here.store.list("x").unwrap().iter().all(|(there, _)| *there != name), "{len}");
        writer.finish().unwrap();
        assert_eq!(
            here.store.list("x").unwrap().iter().find(|(there, _)| *there == name).unwrap().1,
            len as u64
        );
        let ranges: Vec<_> =
            (0..len as u64).step_by(4 << 20).map(|at| at..(at + (4 << 20)).min(len as u64)).collect();
        assert!(here.store.get_ranges(&name, &ranges).unwrap().concat() == all, "{len}");
    }
    let mut dropped = here.store.writer("dropped").unwrap();
    dropped.write(&bytes(3 * PART_BYTES)).unwrap();
    drop(dropped);
    assert!(here.store.list("").unwrap().iter().all(|(name, _)| name != "dropped"));
}

/// Of a bucket alone: what is not there, and what does not answer.
#[test]
fn a_bucket_that_is_not_there_or_does_not_answer_is_named() {
    let here = place();
    if here.folder.is_some() {
        return println!("skipped: no bucket is given; `make test-store` gives one");
    }
    let error = |place: &str, options: &StoreOptions| {
        let store = StateStore::open(place, options).unwrap();
        [store.put("x", b"1"), store.create("x", b"1"), store.get("x").map(drop), store.list("y").map(drop)]
            .map(|done| Error::from(done.unwrap_err()).to_string())
    };
    for text in error("s3://tacit-nowhere/a", &here.options) {
        assert!(text.contains(" s3://tacit-nowhere/a/"), "{text}");
        assert!(text.ends_with("there is no such bucket or container; create it first"), "{text}");
    }
    let nobody = StoreOptions { endpoint: Some("http://127.0.0.1:1".into()), ..here.options.clone() };
    for text in error("s3://tacit-test/a", &nobody) {
        assert!(text.contains("Connection refused (os error 111); check the address, the network"), "{text}");
        assert!(!text.contains("test-secret"), "{text}");
    }
}

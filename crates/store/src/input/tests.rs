use super::*;
use crate::testing::memory;
use object_store::memory::InMemory;

fn inputs(inner: &Arc<InMemory>, key: &str) -> InputStore {
    InputStore { store: memory(inner), key: key.into(), bare: false }
}

#[test]
fn a_place_is_a_url_by_its_scheme() {
    for url in ["s3://b/x", "https://a.b", "gs://"] {
        assert!(is_url(url), "{url}");
    }
    for path in ["a.csv", "/s3://b", "./a://b", "://x", "C:/x"] {
        assert!(!is_url(path), "{path}");
    }
}

#[test]
fn objects_are_listed_by_key_and_read_by_ranges() {
    let inner = Arc::new(InMemory::new());
    let store = memory(&inner);
    for name in ["d/b.csv", "d/a.csv", "d/c/x.csv", "da.csv", "d/e.txt"] {
        store.put(name, name.as_bytes()).unwrap();
    }
    let keys = |folder: &str, most: usize| -> Vec<String> {
        let found = inputs(&inner, "").below(folder, most, |key| key.ends_with(".csv")).unwrap();
        found.iter().map(|object| object.key().to_owned()).collect()
    };
    assert_eq!(keys("d", 9), ["d/a.csv", "d/b.csv", "d/c/x.csv"]);
    assert_eq!(keys("", 9).len(), 4);
    assert_eq!(keys("d", 1).len(), 2, "one more than the most");
    assert_eq!(keys("nothing", 1).len(), 0);
    let object = inputs(&inner, "d/b.csv").object().unwrap();
    assert_eq!((object.place(), object.size()), ("memory/d/b.csv", 7));
    assert_eq!(object.begin(2..5).finish().unwrap(), b"b.c");
    let before = store.list("").unwrap();
    drop(object);
    assert_eq!(store.list("").unwrap(), before, "reading leaves nothing");
}

/// Empty objects that stand for folders are none of the data; other empty ones are.
#[test]
fn markers_of_folders_are_passed_over() {
    let inner = Arc::new(InMemory::new());
    let store = memory(&inner);
    for (name, bytes) in [
        ("p.csv", &b""[..]),
        ("p.csv/1.csv", b"x"),
        ("p.csv/q.csv", b""),
        ("p.csv/q.csv/2.csv", b"y"),
        ("p.csv/r.csv", b""),
    ] {
        store.put(name, bytes).unwrap();
    }
    let found = inputs(&inner, "").below("p.csv", 9, |key| key.ends_with(".csv")).unwrap();
    let keys: Vec<&str> = found.iter().map(InputObject::key).collect();
    assert_eq!(keys, ["p.csv/1.csv", "p.csv/q.csv/2.csv", "p.csv/r.csv"]);
    assert_eq!(inputs(&inner, "").below("", 9, |_| true).unwrap().len(), 3);
}

#[test]
fn what_is_not_there_is_named() {
    let inner = Arc::new(InMemory::new());
    memory(&inner).put("d/b.csv", b"x").unwrap();
    let error = |key: &str| inputs(&inner, key).object().unwrap_err().to_string();
    assert_eq!(error("d/a.csv"), "there is no object memory/d/a.csv; check its name");
    assert_eq!(error("d"), "there is no object memory/d, but some lie below it: write memory/d/ for those");
}

#[test]
fn an_object_that_changes_while_it_is_read_is_refused() {
    let inner = Arc::new(InMemory::new());
    let store = memory(&inner);
    store.put("a.csv", b"12345678").unwrap();
    let object = inputs(&inner, "a.csv").object().unwrap();
    assert_eq!(object.begin(0..8).finish().unwrap(), b"12345678");
    let refused = |change: &dyn Fn()| {
        change();
        let error = object.begin(0..8).finish().unwrap_err().to_string();
        assert_eq!(
            error,
            "memory/a.csv was changed or removed while it was read; run again when nobody writes there"
        );
    };
    refused(&|| store.put("a.csv", b"87654321").unwrap());
    refused(&|| store.put("a.csv", b"123").unwrap());
    refused(&|| store.delete("a.csv").unwrap());
}

/// A store without ETags or conditions: size and time have to do, the time by the second.
#[test]
fn what_is_said_of_an_object_is_compared() {
    let inner = Arc::new(InMemory::new());
    memory(&inner).put("a.csv", b"1").unwrap();
    let object = inputs(&inner, "a.csv").object().unwrap();
    let of = |change: &dyn Fn(&mut ObjectMeta)| {
        let mut meta = object.listed.meta.clone();
        meta.e_tag = None;
        change(&mut meta);
        object.listed.is(&meta)
    };
    assert!(of(&|_| {}));
    assert!(!of(&|meta| meta.size += 1));
    assert!(!of(&|meta| meta.last_modified += std::time::Duration::from_secs(1)));
    assert!(of(&|meta| meta.e_tag = object.listed.meta.e_tag.as_ref().map(|tag| format!("\"{tag}\""))));
    assert!(!of(&|meta| meta.e_tag = Some("other".into())));
}

/// Azure lists them without.
#[test]
fn a_condition_has_its_quotes() {
    let inner = Arc::new(InMemory::new());
    memory(&inner).put("a.csv", b"1").unwrap();
    let mut inputs = inputs(&inner, "a.csv");
    inputs.bare = true;
    let meta = inputs.object().unwrap().listed.meta.clone();
    for tag in ["0x8D93C7D4629C227", "\"0x8D93C7D4629C227\""] {
        let listed = inputs.listed(ObjectMeta { e_tag: Some(tag.into()), ..meta.clone() }).listed;
        assert_eq!(listed.condition.as_deref(), Some("\"0x8D93C7D4629C227\""));
    }
}

/// Whoever named data reads nothing of state.
#[test]
fn errors_of_data_do_not_speak_of_state() {
    let cause = |code| Box::new(std::io::Error::from_raw_os_error(code));
    for error in [
        object_store::Error::Precondition { path: "a.csv".into(), source: cause(1) },
        object_store::Error::AlreadyExists { path: "a.csv".into(), source: cause(1) },
        object_store::Error::NotFound { path: "a.csv".into(), source: cause(2) },
        object_store::Error::Generic { store: "S3", source: cause(28) },
        object_store::Error::Generic { store: "S3", source: cause(13) },
        object_store::Error::NotImplemented { operation: "get".into(), implementer: "S3".into() },
    ] {
        let told = unread("cannot read", "s3://b/a.csv", &error).to_string();
        assert!(told.contains("s3://b/a.csv") && !told.contains("state"), "{told}");
    }
}

//! Rows of objects in a bucket are the rows of files: from S3 as `service` plays it, and, where
//! `TACIT_TEST_STORE` names a bucket (`make test-store`), from that one.

#[path = "bucket/service.rs"]
mod service;

use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use base::{Error, PartyId, Seed, hex};
use data::{DataLocation, RowStore, read_rows};
use parquet::file::properties::WriterProperties;
use service::{Service, serve};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use store::{PART_BYTES, StateStore, StoreOptions};
use study::Study;
use study::format::InputFormat;

const LIFT: &str = include_str!("../../../examples/lift.toml");
const ROWS: [&str; 3] = ["a,vaccine,1954-04-26", "b,placebo,1954-04-27", "c,placebo,1954-04-28"];

fn csv(rows: &[&str]) -> Vec<u8> {
    format!("child_id,arm,injected\n{}\n", rows.join("\n")).into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).expect("packed");
    gzip.finish().expect("packed")
}

/// A Parquet file whose rows have a `note` that no study wants, of so many random letters.
fn parquet(rows: &[(&str, &str, i32)], note: usize, group: usize) -> Vec<u8> {
    let mut rng = Seed::from_bytes([4; 32]).into_rng();
    let mut letters = |_| hex(&(0..note.div_ceil(2)).map(|_| rng.bytes::<1>()[0]).collect::<Vec<_>>());
    let text = |column: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(column)) };
    let columns: [(&str, ArrayRef); 4] = [
        ("note", text(rows.iter().map(&mut letters).collect())),
        ("child_id", text(rows.iter().map(|row| row.0.to_owned()).collect())),
        ("arm", text(rows.iter().map(|row| row.1.to_owned()).collect())),
        ("injected", Arc::new(Date32Array::from(rows.iter().map(|row| row.2).collect::<Vec<_>>()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group));
    let properties = properties.set_dictionary_enabled(false).build();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("written");
    writer.into_inner().expect("closed")
}

fn name(rows: &RowStore) -> [u8; 32] {
    *rows.tag(&Seed::from_bytes([7; 32])).expect("in memory").as_bytes()
}

fn read(place: &str, options: &StoreOptions) -> Result<([u8; 32], u64), Error> {
    let study = Study::parse("study.toml", LIFT).expect("a study");
    let data =
        DataLocation { path: Path::new(place), store: options, format: &InputFormat::NONE, stream: None };
    read_rows(data, &study, PartyId(0), None).map(|(rows, report)| (name(&rows), report.rows_read))
}

/// The same of a file of this machine.
fn read_file(file: &str, bytes: &[u8]) -> ([u8; 32], u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(file);
    std::fs::write(&path, bytes).expect("written");
    read(&path.display().to_string(), &StoreOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Every form, and how each is named.
fn forms() -> Vec<(&'static str, Vec<u8>)> {
    let third = parquet(&[("c", "placebo", -5727)], 3, 1);
    vec![
        ("forms/1.csv", csv(&ROWS[..1])),
        ("forms/2.csv.gz", gzip(&csv(&ROWS[1..2]))),
        ("forms/3.parquet", third),
        ("forms/notes.txt", b"no data".to_vec()),
        ("zst/1.csv.zst", zstd::encode_all(&csv(&ROWS)[..], 3).expect("packed")),
        ("one.csv", csv(&ROWS)),
        ("one.csv.gz", gzip(&csv(&ROWS))),
        ("parquet/one.parquet", parquet(&[("a", "vaccine", -5729), ("b", "placebo", -5728)], 9, 1)),
        ("parquet/two.parquet", parquet(&[("c", "placebo", -5727)], 9, 1)),
    ]
}

const FORMS: [&str; 7] =
    ["forms/", "forms/?.*", "forms/[1-3].*", "zst/", "one.csv", "one.csv.gz", "parquet/*.parquet"];

/// The library takes keys from the environment of a process: a test that needs some runs in one of its own.
/// Whether this is that one.
fn with_keys(test: &str) -> bool {
    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test-secret")];
    if KEYS.iter().all(|(key, value)| std::env::var(key).is_ok_and(|set| set == *value)) {
        return true;
    }
    let own = std::env::current_exe().expect("a program");
    let done = Command::new(own).args(["--exact", test]).envs(KEYS).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    false
}

fn service(objects: Vec<(&str, Vec<u8>)>) -> (Arc<Mutex<Service>>, StoreOptions) {
    let objects = objects.into_iter().map(|(key, bytes)| (key.to_owned(), bytes)).collect();
    let service = Arc::new(Mutex::new(Service { objects, ..Service::default() }));
    let options =
        StoreOptions { endpoint: Some(serve(&service)), allow_http: true, ..StoreOptions::default() };
    (service, options)
}

#[test]
fn rows_of_objects_are_the_rows_of_files() {
    if !with_keys("rows_of_objects_are_the_rows_of_files") {
        return;
    }
    let mut objects = forms();
    objects.push(("day=1 x/q.csv", csv(&ROWS)));
    objects.push(("forms/.hidden.csv", b"not read".to_vec()));
    objects.push(("odd/[1].csv", csv(&ROWS)));
    objects.push(("odd/1.csv", csv(&ROWS)));
    let (service, options) = service(objects);
    let wanted = read_file("one.csv", &csv(&ROWS));
    for place in FORMS.iter().chain(&["day=1 x/", "day=1 x/q.csv", "*/q.csv", "odd/[1].csv"]) {
        let read = read(&format!("s3://bucket/{place}"), &options).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert_eq!(read, wanted, "{place}");
    }
    assert_eq!(service.lock().expect("whole").writes, 0);
}

#[test]
fn mistakes_are_named_by_object() {
    if !with_keys("mistakes_are_named_by_object") {
        return;
    }
    let (_, options) = service(vec![
        ("d/a.csv", csv(&["a,vaccine,1954-04-26", "b,neither,1954-04-26"])),
        ("empty/e.csv", Vec::new()),
        ("cut/a.csv.gz", gzip(&csv(&ROWS))[..30].to_vec()),
        ("cut/b.parquet", b"PAR1 and no more".to_vec()),
        ("none/x.txt", b"x".to_vec()),
    ]);
    for (place, text) in [
        ("d/", "s3://bucket/d/a.csv, line 3, column \"arm\": \"neither\" is neither the test label "),
        ("empty/", "s3://bucket/empty/e.csv: the object is empty; it needs a header and rows"),
        ("cut/a.csv.gz", "s3://bucket/cut/a.csv.gz: damaged: "),
        ("cut/b.parquet", "s3://bucket/cut/b.parquet: not a complete Parquet file ("),
        (
            "none/",
            "s3://bucket/none/: no object below it ends in .csv, .tsv, .csv.gz, .csv.zst, .xlsx or .parquet",
        ),
        ("d/*.parquet", "s3://bucket/d/*.parquet: no object has a name like this"),
        ("d/[1", "s3://bucket/d/[1: not a pattern of objects: "),
        ("d/b.csv", "there is no object s3://bucket/d/b.csv; check its name"),
        ("d", "there is no object s3://bucket/d, but some lie below it: write s3://bucket/d/ for those"),
    ] {
        let error = read(&format!("s3://bucket/{place}"), &options).expect_err(place).to_string();
        assert!(error.starts_with(text), "{place}: {error}");
    }
    for place in ["s3://nobucket/d/", "s3://nobucket/d/a.csv", "s3://nobucket/*"] {
        let error = read(place, &options).expect_err(place).to_string();
        assert!(error.starts_with("cannot list s3://nobucket"), "{error}");
        assert!(error.ends_with(": there is no such bucket or container; create it first"), "{error}");
    }
}

#[test]
fn objects_are_read_in_parts_and_once() {
    if !with_keys("objects_are_read_in_parts_and_once") {
        return;
    }
    let rows: Vec<String> = (0..900_000).map(|i| format!("child-{i:09},vaccine,1954-04-26")).collect();
    let all = csv(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(all.len() > 3 * PART_BYTES);
    let wanted = read_file("large.csv", &all);
    let bytes = all.len() as u64;
    let (service, options) = service(vec![("large.csv", all)]);
    assert_eq!(read("s3://bucket/large.csv", &options).unwrap_or_else(|e| panic!("{e}")), wanted);
    let service = service.lock().expect("whole");
    assert_eq!((service.bytes, service.reads), (bytes, bytes.div_ceil(PART_BYTES as u64)));
}

#[test]
fn of_parquet_only_the_wanted_columns_are_fetched_and_once() {
    if !with_keys("of_parquet_only_the_wanted_columns_are_fetched_and_once") {
        return;
    }
    // A column of 15 MB in a row group, so more than a window, and beside it one that nobody wants.
    let keys: Vec<String> = (0..300_000).map(|i| format!("{i:050}")).collect();
    let rows: Vec<(&str, &str, i32)> = keys.iter().map(|key| (&key[..], "vaccine", -5729)).collect();
    let all = parquet(&rows, 40, 200_000);
    let wanted = read_file("large.parquet", &all);
    let unwanted = 300_000 * 40;
    let most = all.len() as u64 - unwanted + (1 << 16);
    let (service, options) = service(vec![("large.parquet", all)]);
    assert_eq!(read("s3://bucket/large.parquet", &options).unwrap_or_else(|e| panic!("{e}")), wanted);
    let service = service.lock().expect("whole");
    assert!(service.bytes <= most && service.reads < 12, "{} of {most}, {}", service.bytes, service.reads);
}

#[test]
fn an_object_that_changes_meanwhile_is_an_error() {
    if !with_keys("an_object_that_changes_meanwhile_is_an_error") {
        return;
    }
    let rows: Vec<String> = (0..300_000).map(|i| format!("child-{i:09},vaccine,1954-04-26")).collect();
    let text = csv(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    let packed = zstd::encode_all(&text[..], 1).expect("packed");
    let (service, options) =
        service(vec![("a.csv", text), ("b.csv.zst", packed), ("c.parquet", parquet(&[("a", "b", 1)], 9, 1))]);
    for (key, after) in [("a.csv", 1), ("b.csv.zst", 0), ("c.parquet", 0), ("c.parquet", 1)] {
        let mut set = service.lock().expect("whole");
        (set.reads, set.changes_after) = (0, Some(after));
        drop(set);
        let error = read(&format!("s3://bucket/{key}"), &options).expect_err(key).to_string();
        assert_eq!(
            error,
            format!(
                "s3://bucket/{key} was changed or removed while it was read; run again when nobody writes there"
            )
        );
    }
}

/// S3 as moto plays it: another implementation than the one beside this test.
#[test]
fn rows_of_a_bucket_are_the_rows_of_files() {
    let Ok(bucket) = std::env::var("TACIT_TEST_STORE") else {
        return println!("skipped: no bucket is given; `make test-store` gives one");
    };
    let endpoint = std::env::var("TACIT_TEST_ENDPOINT").ok();
    let options = StoreOptions { endpoint, allow_http: true, ..StoreOptions::default() };
    let url = format!("{bucket}/data-{}", hex(&Seed::from_system().into_rng().bytes::<8>()));
    let store = StateStore::open(&url, &options).expect("the bucket opens");
    for (key, bytes) in forms() {
        store.put(key, &bytes).expect("written");
    }
    let before = store.list("").expect("listed");
    let wanted = read_file("one.csv", &csv(&ROWS));
    for place in FORMS {
        let read = read(&format!("{url}/{place}"), &options).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert_eq!(read, wanted, "{place}");
    }
    let error = |place: &str| read(&format!("{url}/{place}"), &options).expect_err(place).to_string();
    assert_eq!(error("none.csv"), format!("there is no object {url}/none.csv; check its name"));
    assert!(error("none/").starts_with(&format!("{url}/none/: no object below it ends in ")));
    assert_eq!(store.list("").expect("listed"), before, "reading leaves nothing");
}

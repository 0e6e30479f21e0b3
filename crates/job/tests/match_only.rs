//! A match by itself: two parties in two threads, each part as a Parquet file, put together again here.

mod parties;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use base::Error;
use job::prepare::Opened;
use job::run::{MatchReport, Watch, run, run_match};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parties::{PartyFile, make_key};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use study::party::{PartyPolicy, PartySetup};
use tempfile::TempDir;

const NAMES: [&str; 2] = ["clinic", "registry"];

struct World {
    folder: TempDir,
    parties: [PartySetup; 2],
}

/// The clinic has people 0..40, the registry 25..60; `edit` changes the example study.
fn world(edit: &dyn Fn(String) -> String) -> World {
    let folder = TempDir::new().unwrap();
    let mut study = include_str!("../../../examples/match.toml").to_owned();
    for (name, placeholder) in NAMES.into_iter().zip(["1", "2"]) {
        let key = make_key(folder.path(), name);
        study = study.replace(&format!("tacit1:{}", placeholder.repeat(32)), &key);
    }
    std::fs::write(folder.path().join("study.toml"), edit(study)).unwrap();
    let visits: String = (0..40).map(|i| format!("p{i},{}\n", visits(i))).collect();
    let regions: String = (25..60).map(|i| format!("P{i} ,{}\n", ["north", "south"][i % 2])).collect();
    std::fs::write(folder.path().join("clinic.csv"), format!("id,visits\n{visits}")).unwrap();
    std::fs::write(folder.path().join("registry.csv"), format!("id,region\n{regions}")).unwrap();
    let files = PartyFile::pair(folder.path(), NAMES);
    let parties = files.map(|file| file.policy("kinds = [\"match\"]").setup());
    World { folder, parties }
}

/// Some are negative: numbers are modulo 2^64.
fn visits(person: usize) -> i64 {
    person as i64 * 7 - 200
}

fn file(world: &World, party: usize) -> PathBuf {
    world.folder.path().join(format!("{}.parquet", NAMES[party]))
}

fn both(world: &World) -> [Result<MatchReport, Error>; 2] {
    std::thread::scope(|scope| {
        let one = |i: usize| {
            let (party, file) = (&world.parties[i], file(world, i));
            let run = move || run_match(party, &Opened::of(party)?, Some(&file), &Watch::none());
            scope.spawn(move || run().map(|(report, _)| report))
        };
        [0, 1].map(one).map(|thread| thread.join().unwrap())
    })
}

fn parts(world: &World) -> [RecordBatch; 2] {
    [0, 1].map(|party| {
        let file = File::open(file(world, party)).unwrap();
        ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .with_batch_size(1 << 20)
            .build()
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
    })
}

fn numbers(part: &RecordBatch, name: &str) -> Option<Vec<u64>> {
    let column = part.column_by_name(name)?.as_primitive::<UInt64Type>().clone();
    Some((0..column.len()).map(|i| if column.is_null(i) { 0 } else { column.value(i) }).collect())
}

/// A column put together: shares add up modulo `modulus`, what is clear is what its owner has.
fn column(parts: &[RecordBatch; 2], name: &str, bits: u32) -> Vec<u64> {
    let [a, b] = parts.each_ref().map(|part| numbers(part, name));
    let mask = u64::MAX >> (64 - bits);
    match (a, b) {
        (Some(a), Some(b)) => a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b) & mask).collect(),
        (Some(known), None) | (None, Some(known)) => known,
        (None, None) => panic!("nobody has {name}"),
    }
}

/// Which rows are matches; all where no file says.
fn valid(parts: &[RecordBatch; 2]) -> Vec<bool> {
    let bits = |part: &RecordBatch| {
        let column = part.column_by_name("valid")?.as_boolean().clone();
        Some((0..column.len()).map(|i| column.value(i)).collect::<Vec<_>>())
    };
    match parts.each_ref().map(bits) {
        [Some(a), Some(b)] => a.iter().zip(&b).map(|(a, b)| a ^ b).collect(),
        [Some(known), None] | [None, Some(known)] => known,
        [None, None] => vec![true; parts[0].num_rows()],
    }
}

/// The study up to its last section.
fn without_columns(study: &str) -> String {
    study.split("\n[columns]").next().expect("a study").to_owned()
}

#[test]
fn shares_put_together_are_the_join() {
    let off = "duplicates  = \"error\"\ndummies = \"off\"";
    for protocol in ["ps3i", "collecting", "circuit-psi"] {
        let world = world(&|s| {
            let s = s.replace("protocol    = \"ps3i\"", &format!("protocol = \"{protocol}\""));
            s.replace("duplicates  = \"error\"", off)
        });
        let reports = both(&world).map(|r| r.unwrap_or_else(|e| panic!("{protocol}: {e}")));
        for report in &reports {
            assert!(report.stages.iter().all(|stage| stage.price_held), "{protocol}: {:?}", report.stages);
            assert!(report.text().contains("exact sizes disclosed"), "{}", report.text());
        }
        let parts = parts(&world);
        let (visited, region) = (column(&parts, "clinic.visits", 64), column(&parts, "registry.region", 8));
        let mut met: Vec<(i64, u64)> = valid(&parts)
            .into_iter()
            .zip(visited.iter().zip(&region))
            .filter(|(valid, _)| *valid)
            .map(|(_, (visits, region))| (visits.cast_signed(), *region))
            .collect();
        met.sort_unstable();
        let expected: Vec<(i64, u64)> = (25..40).map(|i| (visits(i), 1 + i as u64 % 2)).collect();
        assert_eq!(met, expected, "{protocol}");
    }
}

#[test]
fn dummies_are_told_from_rows_by_both_together() {
    for protocol in ["ps3i", "collecting", "circuit-psi"] {
        let world = world(&|s| s.replace("protocol    = \"ps3i\"", &format!("protocol = \"{protocol}\"")));
        let [report, _] = both(&world).map(|r| r.unwrap_or_else(|e| panic!("{protocol}: {e}")));
        assert!(report.disclosed.dummies.is_some());
        let parts = parts(&world);
        let real = ["clinic.real", "registry.real"].map(|name| column(&parts, name, 8));
        let visited = column(&parts, "clinic.visits", 64);
        let met = |i: &usize| valid(&parts)[*i] && real[0][*i] == 1 && real[1][*i] == 1;
        let mut met: Vec<i64> = (0..visited.len()).filter(met).map(|i| visited[i].cast_signed()).collect();
        met.sort_unstable();
        assert_eq!(met, (25..40).map(visits).collect::<Vec<_>>(), "{protocol}");
    }
}

#[test]
fn a_spine_has_one_position_for_each_person_dummies_or_not() {
    for dummies in ["on", "off"] {
        let world = world(&|s| {
            let s = without_columns(&s).replace("\"ps3i\"", "\"pid\"");
            s.replace("duplicates  = \"error\"", &format!("duplicates  = \"error\"\ndummies = \"{dummies}\""))
        });
        let [report, _] = both(&world).map(|r| r.unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(report.disclosed.dummies.is_some(), dummies == "on");
        let places = parts(&world).map(|part| {
            let names = part.column_by_name("identifier").unwrap().as_string::<i32>().clone();
            let places = part.column_by_name("position").unwrap().as_primitive::<UInt32Type>().clone();
            (0..names.len()).map(|i| (names.value(i).to_owned(), places.value(i))).collect::<BTreeMap<_, _>>()
        });
        assert_eq!(places.each_ref().map(BTreeMap::len), [40, 35]);
        let shared = places[0].keys().filter(|name| places[1].contains_key(*name)).count();
        assert_eq!(shared, 15);
        let mut all: BTreeMap<u32, &String> = BTreeMap::new();
        for (name, place) in places.iter().flatten() {
            assert!(u64::from(*place) < report.rows);
            assert_eq!(all.insert(*place, name).unwrap_or(name), name, "two people at {place}");
        }
        assert_eq!(all.len(), 60);
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anybody_is_met() {
    let refused = |world: &World| {
        let party = &world.parties[0];
        Opened::of(party)
            .and_then(|opened| run_match(party, &opened, Some(&file(world, 0)), &Watch::none()))
            .unwrap_err()
    };
    let with_columns = world(&|s| s.replace("\"ps3i\"", "\"pid\""));
    assert!(refused(&with_columns).to_string().contains("gives positions of rows"));
    let without = world(&|s| without_columns(&s));
    assert!(refused(&without).to_string().contains("a section [columns]"));
    let arms =
        world(&|s| s.replace("\"ps3i\"", "\"collecting\"\ncontaminated = \"drop\"\ndummies = \"off\""));
    assert!(refused(&arms).to_string().contains("only a lift study has arms"));
    let world = world(&|s| s);
    assert!(run(&world.parties[0], &Watch::none()).unwrap_err().to_string().contains("use `tacit match`"));
    std::fs::write(file(&world, 0), "something").unwrap();
    assert!(refused(&world).to_string().contains("is there already"));
    let nowhere = world.folder.path().join("none/part.parquet");
    let party = &world.parties[0];
    let error = run_match(party, &Opened::of(party).unwrap(), Some(&nowhere), &Watch::none()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("change --out"), "{error}");
    let mut strict = world.parties[0].clone();
    strict.policy = PartyPolicy::default();
    let new = world.folder.path().join("new");
    let error = run_match(&strict, &Opened::of(&strict).unwrap(), Some(&new), &Watch::none()).unwrap_err();
    assert!(error.to_string().contains("does not allow studies of kind \"match\""), "{error}");
}

//! Rows that do not fit into memory are what they are where they do.

use crate::complaints::Complaints;
use crate::gather::{ReadingMemory, SpoolRoom};
use crate::source::DataLocation;
use crate::table::{RowSink, TableCell, file_parts, read_part};
use crate::{InputReport, RecentBlocks, Row, RowShape, RowStore, read_rows};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use base::{Error, PartyId, Seed};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{RunState, StateKey, StateStore, StoreOptions};
use study::Study;

const LIFT: &str = include_str!("../../../examples/lift.toml");
const PROGRAM: &str = include_str!("../../../examples/program.toml");
/// Bytes of memory in which a few dozen lines fit.
const TIGHT: ReadingMemory = ReadingMemory {
    lines: 4 << 10,
    rows: u64::MAX,
    runs: store::RUN_MEMORY,
    readers: 4,
    partition: 1 << 10,
    partition_most: 8 << 10,
};

fn study(text: &str, changes: &[(&str, &str)]) -> Study {
    let mut text = text.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

fn store(folder: &Path) -> StateStore {
    StateStore::open(folder.join("state").to_str().unwrap(), &StoreOptions::default()).unwrap()
}

fn room(folder: &Path) -> SpoolRoom<'_> {
    SpoolRoom::new(TIGHT, || RunState::begin(store(folder), &StateKey::fresh(), "somebody", Duration::MAX))
}

type ReadRows = Result<(RowStore, InputReport), Error>;

/// The same file read in memory and by parts.
fn both(folder: &Path, file: &str, study: &Study, me: u8, check: impl Fn(ReadRows, ReadRows)) {
    let path = folder.join("rows.csv");
    std::fs::write(&path, file).unwrap();
    both_of(folder, &path, study, me, check);
}

/// The same files read in memory and by parts.
fn both_of(folder: &Path, path: &Path, study: &Study, me: u8, check: impl Fn(ReadRows, ReadRows)) {
    let room = room(folder);
    let parts = read_rows(path, study, PartyId(me), Some(&room));
    if let Some((_, shape)) = parts.as_ref().ok().and_then(|(rows, _)| rows.spool()) {
        assert_eq!(*shape, RowShape::of(study, PartyId(me)).unwrap());
    }
    check(read_rows(path, study, PartyId(me), None), parts);
}

/// Checks that all that can be seen of the rows is the same, but for their order and the memory they take.
fn same(whole: ReadRows, parts: ReadRows) {
    let (whole, mut report) = whole.unwrap_or_else(|e| panic!("{e}"));
    let (parts, of_parts) = parts.unwrap_or_else(|e| panic!("{e}"));
    assert!(whole.spool().is_none() && parts.spool().is_some(), "one is in memory and one is not");
    assert!(parts.blocks().count() > 4, "there are several parts");
    report.memory = of_parts.memory;
    assert_eq!(report, of_parts);
    assert_eq!((whole.len(), whole.groups()), (parts.len(), parts.groups()));
    let key = Seed::from_bytes([9; 32]);
    assert!(whole.tag(&key).unwrap() == parts.tag(&key).unwrap());
    assert!(whole.ordered_hash().unwrap() == parts.ordered_hash().unwrap());
    for row in [0, 1, parts.len() / 2, parts.len() - 1] {
        let (block, at) = parts.locate(row, &RecentBlocks::default()).unwrap();
        let name = block.identifiers().get(at, 0).to_vec();
        let all = whole.in_memory("this").unwrap().clone();
        assert_eq!((0..whole.len() as usize).filter(|i| all.identifiers().get(*i, 0) == name).count(), 1);
    }
}

fn registry(people: u32, twice: impl Fn(u32) -> bool) -> String {
    let mut text = "child_id,arm,injected,seen,region\n".to_owned();
    for i in 0..people {
        for _ in 0..=u32::from(twice(i)) {
            let arm = if i % 3 == 0 { "vaccine" } else { "placebo" };
            writeln!(text, "child {i},{arm},{},{},{}", i % 300, i % 7, ["urban", "rural"][i as usize % 2])
                .unwrap();
        }
    }
    text
}

#[test]
fn a_publisher_s_rows_are_the_same_by_parts() {
    let folder = tempfile::tempdir().unwrap();
    let first = study(
        LIFT,
        &[
            ("duplicates  = \"error\"", "duplicates  = \"first\""),
            ("# impressions = { column = \"impressions\"", "impressions = { column = \"seen\""),
            (
                "# breakdown   = { column = \"region\", values = [\"north\", \"south\"",
                "breakdown = { column = \"region\", values = [\"urban\", \"rural\"",
            ),
        ],
    );
    both(folder.path(), &registry(3000, |i| i % 10 == 0), &first, 0, same);
}

/// Lines of other arms go through the partitions, and are gone afterwards.
#[test]
fn arms_that_are_left_out_are_the_same_by_parts() {
    let folder = tempfile::tempdir().unwrap();
    let others =
        study(LIFT, &[("control = \"placebo\"", "control = \"placebo\", leave_out = [\"observed\"]")]);
    let lines = registry(3000, |_| false);
    let observed: String = (0..3000).map(|i| format!("other {i},observed,,,\n")).collect();
    let text = format!("{lines}{observed}");
    both(folder.path(), &text, &others, 0, |whole, parts| {
        assert_eq!(parts.as_ref().unwrap().0.len(), 3000);
        same(whole, parts);
    });
    let text = text.replace("other 7,", "child 7,");
    both(folder.path(), &text, &others, 0, |whole, parts| {
        let [whole, parts] = [whole, parts].map(|read| read.err().expect("wrong").to_string());
        assert_eq!(whole, parts);
        assert!(whole.contains("line 9: the same identifier as line 3009, whose arm is left out"), "{whole}");
    });
}

#[test]
fn an_advertiser_s_events_come_together_whatever_lies_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let amounts = [
        ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\" }"),
        ("max_events  = 4", "max_events  = 3"),
        ("# cohort    = { column = \"age_group\"", "cohort    = { column = \"age_group\""),
    ];
    let mut text = "child_id,onset,amount,severity,age_group\n".to_owned();
    for round in 0..4 {
        for i in (0..2000).filter(|i| i % 5 >= round) {
            writeln!(text, "child {i},{},{},paralytic,{}", (i * 7 + round * 31) % 300, i % 50, 6 + i % 4)
                .unwrap();
        }
    }
    both(folder.path(), &text, &study(LIFT, &amounts), 1, same);
}

#[test]
fn a_program_s_columns_are_the_same_by_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "person,exposed_days\n".to_owned();
    (0..4000).for_each(|i| writeln!(text, "person {i},{}", i % 200).unwrap());
    let study = study(PROGRAM, &[]);
    let works = study.parties.iter().position(|member| member.name == "works").unwrap();
    both(folder.path(), &text, &study, works as u8, same);
}

/// The registry's lines as a Parquet file of many row groups, and the rest of them as CSV files.
fn write_files(folder: &Path, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let (header, lines) = text.split_once('\n').unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let (first, rest) = lines.split_at(lines.len() / 2);
    let cells = |at: usize| first.iter().map(move |line| line.split(',').nth(at).unwrap());
    let column = |at| Arc::new(StringArray::from_iter_values(cells(at))) as ArrayRef;
    let columns = (0..5).map(|at| (header.split(',').nth(at).unwrap(), column(at)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(40)).build();
    let file = std::fs::File::create(folder.join("b.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(groups)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for (at, some) in rest.chunks(rest.len().div_ceil(9)).enumerate() {
        let name = folder.join(format!("{}{at}.csv", if at < 3 { 'a' } else { 'c' }));
        std::fs::write(name, format!("{header}\n{}\n", some.join("\n"))).unwrap();
    }
}

/// Whatever files are read side by side, rows, counts, places and complaints are those of one reader.
#[test]
fn files_side_by_side_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    let first = study(LIFT, &[("duplicates  = \"error\"", "duplicates  = \"first\"")]);
    let text = registry(4000, |i| i % 10 == 0).replace(",0\n", ",\n").replace("child 5", " Child 5");
    write_files(&path, &text);
    both_of(folder.path(), &path, &first, 0, |whole, parts| {
        let report = &whole.as_ref().unwrap_or_else(|e| panic!("{e}")).1;
        assert!(report.duplicates_dropped > 300 && report.identifiers[0].steps.len() > 1, "{report}");
        same(whole, parts);
    });
    for (wrong, in_each) in [("neither", 30), ("placebo", 0)] {
        // One cell in a hundred of the arm, in all files; or repeats alone.
        let text: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(i, line)| match i % 100 {
                7 => line.replace("placebo", wrong),
                _ => line.to_owned(),
            })
            .collect();
        write_files(&path, &(text.join("\n") + "\n"));
        both_of(folder.path(), &path, &study(LIFT, &[]), 0, |whole, parts| {
            let [whole, parts] = [whole, parts].map(|read| read.err().expect("wrong").to_string());
            assert_eq!(whole, parts);
            assert!(whole.lines().count() > in_each, "{whole}");
        });
    }
    // Of several files that cannot be read the first is told.
    let whole = std::fs::read(path.join("b.parquet")).unwrap();
    std::fs::write(path.join("b.parquet"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(path.join("c8.csv"), "child_id\n1\n").unwrap();
    both_of(folder.path(), &path, &first, 0, |whole, parts| {
        let [whole, parts] = [whole, parts].map(|read| read.err().expect("cut").to_string());
        assert_eq!(whole, parts);
        assert!(whole.contains("b.parquet: not a complete Parquet file"), "{whole}");
    });
}

/// One CSV file is read in parts where it has no quotes: rows, counts, places and complaints are those of one
/// reader, which reads the same with quotes.
#[test]
fn parts_of_one_csv_file_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let first = study(LIFT, &[("duplicates  = \"error\"", "duplicates  = \"first\"")]);
    let text = registry(12_000, |i| i % 10 == 0).replace(",0\n", ",\n").replace("child 5", " Child 5");
    let lines = |change: &dyn Fn(usize, &str) -> String| -> String {
        text.lines().enumerate().map(|(i, line)| change(i, line) + "\n").collect()
    };
    let quoted = lines(&|i, line| match i % 3 {
        0 => line.split(',').map(|cell| format!("\"{cell}\"")).collect::<Vec<_>>().join(","),
        _ => line.to_owned(),
    });
    let gaps = lines(&|i, line| if i % 700 == 9 { format!("\n{line}") } else { line.to_owned() });
    let mark = format!("\u{feff}\n{text}");
    for text in [&text, &text.replace('\n', "\r\n"), &quoted, &gaps, &mark] {
        assert!(text.len() > 5 << 16, "several parts");
        both(folder.path(), text, &first, 0, |whole, parts| {
            let report = &whole.as_ref().unwrap_or_else(|e| panic!("{e}")).1;
            assert!(report.duplicates_dropped > 300, "{report}");
            same(whole, parts);
        });
    }
    let wrong = |i: usize, line: &str| match i {
        11_500 => format!("{line},more"),
        11_490..11_510 => line.replace("placebo", "neither"),
        _ => line.to_owned(),
    };
    // What is wrong late in the file is told with its line; so is a byte that is no UTF-8.
    both(folder.path(), &lines(&wrong), &first, 0, |whole, parts| {
        let [whole, parts] = [whole, parts].map(|read| read.err().expect("wrong").to_string());
        assert_eq!(whole, parts);
        assert!(whole.contains("line 11501: 6 fields") && whole.contains("neither"), "{whole}");
    });
    let path = folder.path().join("rows.csv");
    let mut bytes = gaps.replace("child 7777,", "child \u{1},").into_bytes();
    bytes.iter_mut().filter(|byte| **byte == 1).for_each(|byte| *byte = 0xFF);
    std::fs::write(&path, bytes).unwrap();
    both_of(folder.path(), &path, &first, 0, |whole, parts| {
        let [whole, parts] = [whole, parts].map(|read| read.err().expect("no text").to_string());
        assert_eq!(whole, parts);
        assert!(whole.contains("not UTF-8 at byte"), "{whole}");
    });
}

/// The complaints are those that are made of rows in memory, in their order, however many there are.
#[test]
fn complaints_are_the_same_by_parts() {
    let folder = tempfile::tempdir().unwrap();
    let many = registry(3000, |i| i % 50 == 1).replace("child 77,placebo", "child 77,neither");
    both(folder.path(), &many, &study(LIFT, &[]), 0, |whole, parts| {
        let [whole, parts] = [whole, parts].map(|read| read.err().expect("wrong").to_string());
        assert_eq!(whole, parts);
        assert!(whole.ends_with("and 41 more"), "{whole}");
    });
    let text = registry(3000, |i| i % 500 == 1).replace("child 77,placebo", "child 77,neither");
    both(folder.path(), &text, &study(LIFT, &[]), 0, |whole, parts| {
        let [whole, parts] = [whole, parts].map(|read| read.err().expect("wrong").to_string());
        assert_eq!(whole, parts);
        assert!(whole.contains("neither") && whole.lines().count() == 7, "{whole}");
    });
    assert_eq!(
        std::fs::read_dir(folder.path().join("state"))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().is_file())
            .count(),
        0
    );
}

/// A block that was changed or taken away is refused.
#[test]
fn damaged_blocks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, registry(3000, |_| false)).unwrap();
    let room = room(folder.path());
    let (rows, _) = read_rows(&path, &study(LIFT, &[]), PartyId(0), Some(&room)).unwrap();
    let store = store(folder.path());
    let objects = store.list("").unwrap();
    assert_eq!(objects.len(), rows.blocks().count(), "lines are gone once they are settled: {objects:?}");
    let (name, _) = &objects[0];
    let mut bytes = store.get(name).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    store.put(name, &bytes).unwrap();
    let error = rows.block(0).err().expect("changed").to_string();
    assert!(error.contains("is not what this party wrote"), "{error}");
    store.put(name, &store.get(&objects[1].0).unwrap()).unwrap();
    assert!(rows.block(0).is_err(), "another block");
    store.delete(name).unwrap();
    assert!(rows.block(0).is_err() && rows.block(1).is_ok());
    assert!(rows.in_memory("a test").err().unwrap().to_string().contains("raise `memory`"));
}

/// What stands in the first column of each row.
struct FirstCells(Vec<String>);

impl RowSink for FirstCells {
    fn columns(&self) -> Vec<String> {
        vec!["id".into()]
    }

    fn row(&mut self, _: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        let TableCell::Text(id) = cells[0] else { panic!("{cells:?}") };
        self.0.push(id.to_owned());
        Ok(())
    }
}

/// Who puts another file in the place of one that is read in parts changes no row; who writes into it, or
/// cuts it, is found out.
#[test]
fn a_file_that_is_read_in_parts_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |sort: &str| (0..20_000).map(|i| format!("{sort} {i}")).collect::<Vec<_>>();
    let write = |path: &Path, rows: &[String]| match path.extension().unwrap() == "csv" {
        true => std::fs::write(path, format!("id\n{}\n", rows.join("\n"))).unwrap(),
        false => {
            let ids: ArrayRef = Arc::new(StringArray::from_iter_values(rows));
            let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
            let groups = WriterProperties::builder().set_max_row_group_row_count(Some(4000)).build();
            let file = std::fs::File::create(path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(groups)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
    };
    for name in ["rows.csv", "rows.parquet"] {
        let path = folder.path().join(name);
        let read = |meanwhile: &dyn Fn()| -> Result<Vec<String>, String> {
            write(&path, &rows("person"));
            let data = DataLocation::from(&path);
            let parts = file_parts(data, 3).unwrap();
            assert!(parts.len() > 2, "{name}: several parts");
            let (mut ids, mut complaints) = (FirstCells(Vec::new()), Complaints::default());
            for (at, part) in parts.iter().enumerate() {
                if at == 1 {
                    meanwhile();
                }
                read_part(part, data.format, &mut ids, &mut complaints).map_err(|e| e.to_string())?;
            }
            Ok(ids.0)
        };
        let replace = || {
            let other = folder.path().join(format!("new.{name}"));
            write(&other, &rows("somebody else"));
            std::fs::rename(other, &path).unwrap();
        };
        assert!(read(&replace).unwrap() == rows("person"), "{name}");
        let cut = || {
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        };
        let told = format!("{} was changed while it was read; run again", path.display());
        for into in [&cut as &dyn Fn(), &|| write(&path, &rows("others"))] {
            let said = read(into).unwrap_err();
            assert!(said.contains(&told), "{said}");
        }
    }
}

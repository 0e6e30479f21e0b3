//! Generated files, read back and counted by the definition, give the generator's truth.

use super::*;
use crate::tests::{names, read_advertiser, read_publisher};
use crate::{AdvertiserRows, PublisherRows};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashMap;
use std::path::Path;
use study::{Question, Study, TrialArm};

const QUIET: WritingProgress<'static> = &|_, _| ();
const LIFT: &str = include_str!("../../../../examples/lift.toml");

fn count(study: &Study, publisher: &PublisherRows, advertiser: &AdvertiserRows) -> Truth {
    let Question::Lift(lift) = &study.kind else { panic!("a lift study") };
    let values = |c: &Option<study::Categories>| c.as_ref().map_or(0, |c| c.values.len());
    let mut truth = Truth {
        breakdown: vec![Default::default(); values(&lift.publisher.breakdown)],
        cohort: vec![Default::default(); values(&lift.advertisers[0].cohort)],
        ..Truth::default()
    };
    let known: HashMap<&[u8], usize> =
        (0..advertiser.len()).map(|i| (advertiser.identifiers.get(i, 0), i)).collect();
    let mut both = 0;
    for i in 0..publisher.len() {
        let id = publisher.identifiers.get(i, 0);
        let other = known.get(id).copied();
        both += u64::from(other.is_some());
        let add = |cell: &mut ArmTruth| {
            let (mut conversions, mut total) = (0, 0u64);
            if let Some(other) = other {
                let (times, amounts) = advertiser.events(other);
                for (&time, &amount) in times.iter().zip(amounts) {
                    if time > publisher.opportunity[i] {
                        conversions += 1;
                        total += u64::from(amount);
                    }
                }
            }
            let value = total.min(u64::from(lift.rule.clamp));
            cell.rows += 1;
            cell.sum += value;
            cell.sum_of_squares += u128::from(value).pow(2);
            cell.conversions += conversions;
            cell.converters += u64::from(conversions > 0);
            cell.matches += u64::from(other.is_some());
            cell.clamped_users += u64::from(total > u64::from(lift.rule.clamp));
            if publisher.impressions.get(i).is_some_and(|&n| n > 0) {
                cell.reached_conversions += conversions;
                cell.reached_value += value;
            }
        };
        let arm = usize::from(publisher.arm[i] == TrialArm::Test);
        add(&mut truth.overall[arm]);
        if let Some(&b) = publisher.breakdown.get(i) {
            add(&mut truth.breakdown[usize::from(b)][arm]);
        }
        if let Some(&c) = other.and_then(|other| advertiser.cohort.get(other)) {
            add(&mut truth.cohort[usize::from(c)][arm]);
        }
    }
    truth.union = (publisher.len() + advertiser.len()) as u64 - both;
    truth
}

fn read(study: &Study, made: &Generated) -> (PublisherRows, AdvertiserRows) {
    let publisher = read_publisher(&made.publisher, study).unwrap_or_else(|e| panic!("{e}"));
    let advertiser =
        read_advertiser(&made.advertiser, study, base::PartyId(1)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(publisher.1.rows_read, made.publisher_rows);
    assert_eq!(advertiser.1.rows_read, made.advertiser_rows);
    (publisher.0, advertiser.0)
}

#[test]
fn the_trial_has_its_published_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = polio(folder.path(), 1954).expect("written");
    let [placebo, vaccinated] = made.truth.overall;
    assert_eq!((placebo.rows, placebo.converters, placebo.sum), (201_229, 115, 115));
    assert_eq!((vaccinated.rows, vaccinated.converters, vaccinated.sum), (200_745, 33, 33));
    assert!((made.truth.lift() - -0.000_407).abs() < 5e-7, "{}", made.truth.lift());
    let study = Study::parse("lift.toml", LIFT).expect("a study");
    let (registry, hospitals) = read(&study, &made);
    assert_eq!(count(&study, &registry, &hospitals), made.truth);
    let matches = placebo.matches + vaccinated.matches;
    assert_eq!(matches, 162 + 82 + 2 * 22, "the match is larger than the outcome");
    assert!(made.truth.clamped() > 0, "some patients have two records");
    assert_eq!(hospitals.len() as u64, matches + 184 + 1_016);
}

impl Truth {
    fn clamped(&self) -> u64 {
        self.overall.iter().map(|arm| arm.clamped_users).sum()
    }
}

#[test]
fn the_trial_is_a_function_of_its_seed() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let bytes = |folder: &Path, seed| {
        let made = polio(folder, seed).expect("written");
        let read = |path: &Path| std::fs::read(path).expect("read");
        (read(&made.publisher), read(&made.advertiser))
    };
    let first = bytes(folders[0].path(), 1);
    assert!(first == bytes(folders[1].path(), 1));
    assert!(first != bytes(folders[2].path(), 2));
}

#[test]
fn a_random_study_has_the_truth_it_claims() {
    let keys = ["tacit1:00000000000000000000000000000001", "tacit1:00000000000000000000000000000002"];
    for (format, overlap, max_events, seed) in [
        (FileFormat::Csv, 0.5, 4, 1),
        (FileFormat::Parquet, 0.5, 4, 1),
        (FileFormat::Csv, 0.0, 1, 2),
        (FileFormat::Csv, 1.0, 16, 3),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = LiftOptions { rows: 3_000, overlap, max_events, clamp: 500, seed, format, files: 1 };
        let made = lift(folder.path(), &options, QUIET).expect("written");
        let text = lift_study(&options, keys[0], keys[1], true);
        let study = Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"));
        let (publisher, advertiser) = read(&study, &made);
        assert_eq!(count(&study, &publisher, &advertiser), made.truth, "{options:?}");
        let all = made.truth.overall[0].rows + made.truth.overall[1].rows;
        assert_eq!(all, 3_000);
        if overlap > 0.0 {
            assert!(made.truth.overall.iter().all(|arm| arm.converters > 0 && arm.clamped_users > 0));
        }
    }
}

/// The truth is that of the files, without them.
#[test]
fn the_truth_is_known_without_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let format = FileFormat::Csv;
    let options =
        LiftOptions { rows: 70_000, overlap: 0.3, max_events: 2, clamp: 50, seed: 3, format, files: 2 };
    assert_eq!(lift_truth(&options, QUIET).unwrap(), lift(folder.path(), &options, QUIET).unwrap().truth);
}

#[test]
fn both_formats_hold_the_same_data() {
    let keys = ["tacit1:00000000000000000000000000000001", "tacit1:00000000000000000000000000000002"];
    let mut hashes = Vec::new();
    for format in [FileFormat::Csv, FileFormat::Parquet] {
        let folder = tempfile::tempdir().expect("a folder");
        let options =
            LiftOptions { rows: 500, overlap: 0.7, max_events: 2, clamp: 9, seed: 5, format, files: 1 };
        let made = lift(folder.path(), &options, QUIET).expect("written");
        let study = Study::parse("s", &lift_study(&options, keys[0], keys[1], false)).expect("a study");
        let publisher = read_publisher(&made.publisher, &study).unwrap_or_else(|e| panic!("{e}"));
        let advertiser =
            read_advertiser(&made.advertiser, &study, base::PartyId(1)).unwrap_or_else(|e| panic!("{e}"));
        hashes.push([names(&publisher.0), names(&advertiser.0)]);
    }
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn options_out_of_range_are_refused() {
    let good = LiftOptions {
        rows: 1,
        overlap: 0.5,
        max_events: 1,
        clamp: 1,
        seed: 0,
        format: FileFormat::Csv,
        files: 1,
    };
    let folder = tempfile::tempdir().expect("a folder");
    for bad in [
        LiftOptions { rows: 0, ..good.clone() },
        LiftOptions { overlap: 1.5, ..good.clone() },
        LiftOptions { overlap: f64::NAN, ..good.clone() },
        LiftOptions { max_events: 17, ..good.clone() },
        LiftOptions { clamp: 0, ..good.clone() },
        LiftOptions { files: 0, ..good.clone() },
        LiftOptions { files: 2, ..good.clone() },
        LiftOptions { files: crate::FILES as u32 + 1, rows: 1 << 20, ..good.clone() },
    ] {
        assert!(lift(folder.path(), &bad, QUIET).is_err(), "{bad:?}");
    }
    lift(folder.path(), &good, QUIET).expect("the least one");
}

#[test]
fn both_files_hold_a_second_identifier_in_other_spellings() {
    let keys = ["tacit1:00000000000000000000000000000001", "tacit1:00000000000000000000000000000002"];
    let folder = tempfile::tempdir().expect("a folder");
    let options = LiftOptions {
        rows: 300,
        overlap: 1.0,
        max_events: 2,
        clamp: 9,
        seed: 5,
        format: FileFormat::Csv,
        files: 1,
    };
    let made = lift(folder.path(), &options, QUIET).expect("written");
    let id = "[ { name = \"id\", normalise = [\"trim\", \"lowercase\"] } ]";
    let two = "[ { name = \"id\", normalise = [\"lowercase\"] }, \
               { name = \"email\", normalise = [\"email-untagged\"] } ]";
    let text = lift_study(&options, keys[0], keys[1], false);
    assert!(text.contains(id));
    let study = Study::parse("s", &text.replace(id, two)).expect("a study");
    let (publisher, advertiser) = read(&study, &made);
    let rows = |all: &crate::RowKeys| -> std::collections::BTreeSet<Vec<Vec<u8>>> {
        (0..all.len()).map(|row| all.row(row).map(<[u8]>::to_vec).collect()).collect()
    };
    let (a, b) = (rows(&publisher.identifiers), rows(&advertiser.identifiers));
    assert_eq!((a.len(), &a), (300, &b), "normalised, the same people on both sides");
    assert_eq!(a.iter().filter(|row| row[1].is_empty()).count(), 100);
}

/// The files that a path names.
fn files(path: &Path) -> Vec<String> {
    crate::source::files(path.into()).expect("files").iter().map(crate::source::InputItem::name).collect()
}

/// All cells of a file, as text.
fn cells(path: &Path) -> Vec<Vec<String>> {
    if path.extension().is_some_and(|extension| extension == "csv") {
        let mut reader = csv::Reader::from_path(path).expect("a CSV file");
        let row = |row: csv::StringRecord| row.iter().map(str::to_owned).collect();
        return reader.records().map(|record| row(record.expect("a record"))).collect();
    }
    let file = std::fs::File::open(path).expect("a file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let mut rows = Vec::new();
    for batch in builder.build().expect("a reader") {
        let batch = batch.expect("a batch");
        let text = |column: &arrow_array::ArrayRef, row| match column.as_string_opt::<i32>() {
            Some(texts) => texts.value(row).to_owned(),
            None => column.as_primitive::<UInt32Type>().value(row).to_string(),
        };
        rows.extend(
            (0..batch.num_rows()).map(|row| batch.columns().iter().map(|c| text(c, row)).collect::<Vec<_>>()),
        );
    }
    rows
}

/// The cells of each part of a folder.
fn parts(folder: &Path, files: u32, format: FileFormat) -> Vec<Vec<Vec<String>>> {
    let part = |at| cells(&folder.join(format!("part-{at:05}.{}", format.extension())));
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), files as usize);
    (0..files).map(part).collect()
}

#[test]
fn parts_one_after_the_other_are_the_one_file() {
    let keys = ["tacit1:00000000000000000000000000000001", "tacit1:00000000000000000000000000000002"];
    for format in [FileFormat::Csv, FileFormat::Parquet] {
        let one =
            LiftOptions { rows: 1_000, overlap: 0.6, max_events: 3, clamp: 40, seed: 8, format, files: 1 };
        let many = LiftOptions { files: 7, ..one.clone() };
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let whole = lift(folders[0].path(), &one, QUIET).expect("written");
        let told = std::sync::atomic::AtomicU64::new(0);
        let progress = |done, total| {
            assert!(done <= total && total == 2_000);
            told.fetch_max(done, std::sync::atomic::Ordering::Relaxed);
        };
        let split = lift(folders[1].path(), &many, &progress).expect("written");
        assert_eq!(told.into_inner(), 2_000);
        assert_eq!(split.truth, whole.truth);
        assert_eq!(split.publisher, folders[1].path().join("publisher"));
        let [publisher, advertiser] = [&split.publisher, &split.advertiser].map(|f| parts(f, 7, format));
        assert!(publisher.iter().all(|part| (142..=143).contains(&part.len())));
        let people = |part: &Vec<Vec<String>>| -> std::collections::BTreeSet<String> {
            part.iter().map(|row| row[0].clone()).collect()
        };
        let apart: usize = advertiser.iter().map(|part| people(part).len()).sum();
        assert_eq!(apart, 1_000, "all rows of a person are in one part");
        assert_eq!(publisher.concat(), cells(&whole.publisher));
        assert_eq!(advertiser.concat(), cells(&whole.advertiser));
        let study = Study::parse("s", &lift_study(&one, keys[0], keys[1], true)).expect("a study");
        let (a, b) = (read(&study, &whole), read(&study, &split));
        assert_eq!(names(&a.0), names(&b.0));
        assert_eq!(names(&a.1), names(&b.1));
    }
}

#[test]
fn parts_of_several_advertisers_are_their_files() {
    for format in [FileFormat::Csv, FileFormat::Parquet] {
        // So few people a part that some parts of a shop have no row.
        let one = LiftOptions { rows: 60, overlap: 0.5, max_events: 2, clamp: 9, seed: 2, format, files: 1 };
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let whole = lift_several(folders[0].path(), &one, 3, QUIET).expect("written");
        let many = LiftOptions { files: 40, ..one };
        let split = lift_several(folders[1].path(), &many, 3, QUIET).expect("written");
        assert_eq!(split.truth, whole.truth);
        for ((party, file, rows), (same, folder, all)) in whole.files.iter().zip(&split.files) {
            assert_eq!((party, rows), (same, all));
            assert_eq!(parts(folder, 40, format).concat(), cells(file));
        }
        let parts = files(&split.files[1].1);
        assert!(parts.iter().any(|part| cells(Path::new(part)).is_empty()));
        let keys = ["1", "2"].map(|digit| format!("tacit1:{}", digit.repeat(32)));
        let study = Study::parse("s", &lift_study(&one, &keys[0], &keys[1], false)).expect("a study");
        for at in 1..4 {
            let rows = |made: &GeneratedSeveral| {
                let read = read_advertiser(&made.files[at].1, &study, base::PartyId(1));
                names(&read.unwrap_or_else(|e| panic!("{e}")).0)
            };
            assert_eq!(rows(&whole), rows(&split));
        }
    }
}

#[test]
fn what_another_run_left_is_not_read_with_new_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = |format, files| LiftOptions {
        rows: 90,
        overlap: 0.5,
        max_events: 2,
        clamp: 9,
        seed: 2,
        format,
        files,
    };
    lift(folder.path(), &options(FileFormat::Parquet, 9), QUIET).expect("written");
    let made = lift(folder.path(), &options(FileFormat::Csv, 4), QUIET).expect("written again");
    std::fs::write(made.publisher.join("report.json"), "{}").expect("a file");
    assert_eq!(files(&made.publisher).len(), 4);
    let own = made.publisher.join("2026.csv");
    std::fs::write(&own, "id\n").expect("a file");
    let told = lift(folder.path(), &options(FileFormat::Csv, 4), QUIET).expect_err("other data").to_string();
    assert!(told.contains("2026.csv would be read with the parts"), "{told}");
    assert!(own.exists() && made.publisher.join("part-00003.csv").exists(), "nothing is lost");
}

#[test]
fn parts_have_small_groups_of_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let format = FileFormat::Parquet;
    let options =
        LiftOptions { rows: 140_000, overlap: 1.0, max_events: 1, clamp: 9, seed: 2, format, files: 2 };
    let made = lift(folder.path(), &options, QUIET).expect("written");
    let file = std::fs::File::open(made.publisher.join("part-00001.parquet")).expect("a file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let groups: Vec<i64> = builder.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [1 << 16, 70_000 - (1 << 16)]);
}

#[test]
fn the_room_that_files_take_is_known_before() {
    let taken = |path: &Path| -> u64 {
        let files = files(path);
        files.iter().map(|file| std::fs::metadata(file).expect("a file").len()).sum()
    };
    for (format, max_events, files) in [
        (FileFormat::Csv, 1, 1),
        (FileFormat::Csv, 4, 3),
        (FileFormat::Csv, 16, 1),
        (FileFormat::Parquet, 1, 2),
        (FileFormat::Parquet, 4, 2),
        (FileFormat::Parquet, 16, 2),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let options =
            LiftOptions { rows: 60_000, overlap: 0.5, max_events, clamp: 100, seed: 1, format, files };
        let made = lift(folder.path(), &options, QUIET).expect("written");
        let taken = taken(&made.publisher) + taken(&made.advertiser);
        let said = options.bytes().expect("fine options");
        assert!((taken..taken * 4 / 3).contains(&said), "{options:?}: {said} said, {taken} taken");
    }
}

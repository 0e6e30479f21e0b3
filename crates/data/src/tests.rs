//! Every complaint about input data, with its exact text (docs/errors.md lists them), and what reading
//! counts.

mod cells;
mod formats;
mod frames;
mod reading;

use super::*;
use arrow_array::{
    Array, ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use base::{PartyId, limits};
pub(super) use reading::{names, read_advertiser, read_publisher};
use std::path::PathBuf;
use std::sync::Arc;
use study::{Study, TrialArm};

const ADVERTISER: PartyId = PartyId(1);

const LIFT: &str = include_str!("../../../examples/lift.toml");

/// A folder with the files of one test.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    /// An error without the folder's name.
    fn clean(&self, error: &base::Error) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn study(changes: &[(&str, &str)]) -> Study {
    let mut text = LIFT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

const FULL: &[(&str, &str)] =
    &[("# impressions", "impressions"), ("# breakdown", "breakdown"), ("# cohort", "cohort")];
const AMOUNT: &[(&str, &str)] = &[("{ constant = 1 }", "{ column = \"amount\", type = \"u32\" }")];

fn registry_error(bytes: impl AsRef<[u8]>, changes: &[(&str, &str)]) -> String {
    let desk = Desk::new();
    let error =
        read_publisher(&desk.file("registry.csv", bytes), &study(changes)).err().expect("wrong input");
    desk.clean(&error)
}

fn hospitals_error(bytes: impl AsRef<[u8]>, changes: &[(&str, &str)]) -> String {
    let desk = Desk::new();
    let error = read_advertiser(&desk.file("hospitals.csv", bytes), &study(changes), ADVERTISER)
        .err()
        .expect("wrong input");
    desk.clean(&error)
}

const HEAD: &str = "child_id,arm,injected\n";
const EVENTS: &str = "child_id,onset,severity\n";

fn registry(rows: &str) -> String {
    format!("{HEAD}{rows}")
}

#[test]
fn a_missing_column_names_those_there_are() {
    assert_eq!(
        registry_error("child_id,arm,injcted\na,vaccine,1954-04-26\n", &[]),
        "registry.csv: no column \"injected\"; the file has: child_id, arm, injcted; did you mean \
         \"injcted\"?"
    );
    assert_eq!(
        registry_error("child_id,arm,arm,injected\na,vaccine,x,1954-04-26\n", &[]),
        "registry.csv: two columns are called \"arm\"; rename or remove one"
    );
}

#[test]
fn a_wrong_type_is_placed() {
    assert_eq!(
        registry_error(registry("a,vaccine,26 April\n"), &[]),
        "registry.csv, line 2, column \"injected\": \"26 April\" is not a time: use a date (1954-04-26), a \
         date-time with offset (1954-04-26T09:30:00Z) or a whole number; another form is said by dates = \
         \"%d.%m.%Y\" under [format] of the party file (or --dates)"
    );
    assert_eq!(
        registry_error(registry("a,vaccine,1954-04-26T10:00:00\n"), &[]),
        "registry.csv, line 2, column \"injected\": \"1954-04-26T10:00:00\" is a date-time without offset: \
         append Z (UTC) or an offset such as +02:00, or add zone = \"+02:00\", or \
         \"Europe/Berlin\", under [format] of the party file (or --zone)"
    );
    assert_eq!(
        hospitals_error("child_id,onset,severity,amount\na,1954-07-01,paralytic,12.5\n", AMOUNT),
        "hospitals.csv, line 2, column \"amount\": \"12.5\" is not a whole number: round it, or agree on \
         scale = 100 in the `value` of the study's [advertiser], where amounts have two decimals"
    );
    assert_eq!(
        registry_error(registry("a,Vaccine,1954-04-26\n"), &[]),
        "registry.csv, line 2, column \"arm\": \"Vaccine\" is neither the test label \"vaccine\" nor the \
         control label \"placebo\" of the study; correct it, or, if it is another arm, agree on leave_out = \
         [..] in the study's `arm`"
    );
    assert_eq!(
        registry_error("child_id,arm,injected,impressions,region\na,vaccine,1954-04-26,1,North\n", FULL),
        "registry.csv, line 2, column \"region\": \"North\" is not one of the values the study lists: north, \
         south, east, west"
    );
}

#[test]
fn a_duplicate_names_both_lines_and_not_the_identifier() {
    assert_eq!(
        registry_error(
            registry("secret1,vaccine,1954-04-26\nb,placebo,1954-04-26\n SECRET1 ,vaccine,1954-04-27\n"),
            &[]
        ),
        "registry.csv, line 4: the same identifier as line 2; remove one, or agree on duplicates = \"first\""
    );
    let first = &[("duplicates  = \"error\"", "duplicates  = \"first\"")];
    assert_eq!(
        registry_error(registry("a,vaccine,1954-04-26\na,placebo,1954-04-26\n"), first),
        "registry.csv, line 3: the same identifier as line 2 but in the other arm; correct one of them"
    );
    let wide = &[
        ("layout      = \"events\"", "layout = \"wide\""),
        ("{ column = \"onset\"", "{ columns = [\"onset\"]"),
    ];
    assert_eq!(
        hospitals_error("child_id,onset,severity\na,1954-07-01,paralytic\na,1954-07-02,paralytic\n", wide),
        "hospitals.csv, line 3: the same identifier as line 2; remove one, or agree on duplicates = \
         \"first\" or \"merge\""
    );
    assert_eq!(
        hospitals_error(
            "child_id,onset,severity,age_group\na,1954-07-01,paralytic,6\na,1954-07-02,paralytic,7\n",
            FULL
        ),
        "hospitals.csv, line 3: another cohort than the same identifier has in line 2; correct one, or agree \
         on duplicates = \"first\""
    );
}

#[test]
fn an_identifier_must_be_there_and_of_a_sane_length() {
    assert_eq!(
        registry_error(registry("  ,vaccine,1954-04-26\n"), &[]),
        "registry.csv, line 2, column \"child_id\": empty identifier (after normalising): fill the cell or \
         remove the row"
    );
    let long = "x".repeat(limits::IDENTIFIER_BYTES + 1);
    assert_eq!(
        registry_error(registry(&format!("{long},vaccine,1954-04-26\n")), &[]),
        "registry.csv, line 2, column \"child_id\": identifier of 1048577 bytes; the limit is 1048576"
    );
    let email = &[("[\"trim\", \"lowercase\"]", "[\"email\"]")];
    assert_eq!(
        registry_error(registry("ann,vaccine,1954-04-26\n"), email),
        "registry.csv, line 2, column \"child_id\": not an e-mail address: it needs exactly one @ with text \
         on both sides, and neither spaces, invisible characters nor < > ; , : \""
    );
}

#[test]
fn times_and_values_have_a_range() {
    assert_eq!(
        registry_error(registry("a,vaccine,1953-12-31\n"), &[]),
        "registry.csv, line 2, column \"injected\": \"1953-12-31\" is before the study's origin 1954-01-01: \
         correct the cell, or agree on an earlier [time] origin"
    );
    assert_eq!(
        registry_error(registry("a,vaccine,1955-01-02\n"), &[]),
        "registry.csv, line 2, column \"injected\": \"1955-01-02\" is after the study's last time \
         1955-01-01: correct the cell, or agree on a longer [time] span"
    );
    let amount = |cell: &str| {
        hospitals_error(format!("child_id,onset,severity,amount\na,200,paralytic,{cell}\n"), AMOUNT)
    };
    assert_eq!(
        amount("-5"),
        "hospitals.csv, line 2, column \"amount\": \"-5\" is negative: if it is a refund, agree on negative \
         = \"net\", which takes it off earlier events, or negative = \"leave-out\" in the `value` of the \
         study's [advertiser]"
    );
    assert_eq!(
        amount("4294967296"),
        "hospitals.csv, line 2, column \"amount\": \"4294967296\" is out of range; use a whole number from 0 \
         to 4294967295"
    );
    assert!(amount(&"9".repeat(50)).contains("is out of range"));
    assert_eq!(
        amount(""),
        "hospitals.csv, line 2, column \"amount\": empty and the event has a time: write 0 where it has no \
         value, or empty its time where nothing happened"
    );
    assert_eq!(
        registry_error("child_id,arm,injected,impressions,region\na,vaccine,1954-04-26,65536,north\n", FULL),
        "registry.csv, line 2, column \"impressions\": \"65536\" is out of range; use a whole number from 0 \
         to 65535"
    );
}

#[test]
fn too_many_events_are_an_error_or_counted() {
    let rows: String = (0..6).map(|day| format!("a,{},paralytic\n", 205 - day)).collect();
    let all = format!("{EVENTS}{rows}");
    let text = format!("{all}b,1954-07-01,paralytic\n");
    assert_eq!(
        hospitals_error(&text, &[("keep-earliest", "error")]),
        "hospitals.csv, line 7: this identifier has 6 events; max_events is 4: agree on more, or on overflow \
         = \"keep-earliest\""
    );
    let desk = Desk::new();
    let (rows, report) = read_advertiser(&desk.file("h.csv", &text), &study(&[]), ADVERTISER).expect("read");
    let a = (0..2).find(|&i| rows.identifiers.get(i, 0) == b"a").expect("there");
    assert_eq!(rows.events(a), (&[200, 201, 202, 203][..], &[1, 1, 1, 1][..]));
    assert_eq!(
        (report.events_seen, report.events_cut, report.identifiers_cut, report.over_clamp),
        (7, 2, 1, 1)
    );
    // Of four events and one, with a clamp of one.
    assert_eq!(report.clamped_part, 1.0 - 2.0 / 5.0);
    assert!(!report.to_string().contains("cuts nearly everybody"), "{report}");
    let (_, report) = read_advertiser(&desk.file("h.csv", &all), &study(&[]), ADVERTISER).expect("read");
    assert!(report.to_string().contains("note: the clamp cuts nearly everybody"), "{report}");
}

#[test]
fn files_must_hold_rows() {
    assert_eq!(registry_error("", &[]), "registry.csv: the file is empty; it needs a header and rows");
    assert_eq!(registry_error(HEAD, &[]), "registry.csv: no rows after the header");
    assert_eq!(
        registry_error(registry("a,vaccine,\n"), &[]),
        "registry.csv: no row has an opportunity (column \"injected\"); nobody is left to measure"
    );
    let desk = Desk::new();
    let error = read_publisher(&desk.0.path().join("none.csv"), &study(&[])).err().expect("absent");
    assert_eq!(desk.clean(&error), "cannot open none.csv: No such file or directory (os error 2)");
    std::fs::create_dir(desk.0.path().join("folder")).expect("made");
    let error = read_publisher(&desk.0.path().join("folder"), &study(&[])).err().expect("nothing there");
    assert_eq!(
        desk.clean(&error),
        "folder: the folder holds no .csv, .tsv, .csv.gz, .csv.zst, .xlsx or .parquet file"
    );
}

#[test]
fn bytes_that_are_not_utf8_are_placed_exactly() {
    let mut bytes = registry("a,vaccine,1954-04-26\n").into_bytes();
    let at = bytes.len() + 1;
    bytes.extend_from_slice(b"b\xff,placebo,1954-04-26\n");
    assert_eq!(
        registry_error(&bytes, &[]),
        format!(
            "registry.csv, line 3: not UTF-8 at byte {at} of the file; save it as UTF-8, or, if it is \
             Latin-1 or Windows-1252, add encoding = \"windows-1252\" under [format] of the party file (or \
             --encoding windows-1252)"
        )
    );
    // A character cut by the end of the file, and one that straddles two reads.
    let mut cut = registry("a,vaccine,1954-04-26\n").into_bytes();
    let at = cut.len();
    cut.extend_from_slice(b"\xc3");
    assert!(
        registry_error(&cut, &[]).contains(&format!("not UTF-8 at byte {at} of the file; save it as UTF-8"))
    );
    let desk = Desk::new();
    let wide = "\u{e9}".repeat(100_001);
    let path = desk.file("r.csv", format!("\u{feff}{HEAD}x{wide},vaccine,1954-04-26\n"));
    let (rows, ..) = read_publisher(&path, &study(&[])).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(rows.identifiers.get(0, 0).len(), 200_003);
}

#[test]
fn lines_and_rows_are_bounded() {
    let line = |n: usize| {
        let head = "a,vaccine,1954-04-26,";
        format!("child_id,arm,injected,note\n{head}{}\n", "x".repeat(n - head.len()))
    };
    assert_eq!(
        registry_error(line(limits::LINE_BYTES + 1), &[]),
        "registry.csv, line 2: longer than 4194304 bytes; is it a CSV file?"
    );
    let desk = Desk::new();
    read_publisher(&desk.file("r.csv", line(limits::LINE_BYTES)), &study(&[]))
        .map(|_| ())
        .expect("at the cap");
    let open = format!("{HEAD}\"a,vaccine,1954-04-26\n{}", "b,placebo,1954-04-26\n".repeat(300_000));
    let error = registry_error(open, &[]);
    assert!(error.ends_with(": a row longer than 4194304 bytes; is a quote not closed?"), "{error}");
    assert_eq!(
        registry_error(registry("a,vaccine\nb,placebo,1954-04-26\n"), &[]),
        "registry.csv, line 2: 2 fields where the header has 3; is a quote or a comma missing?"
    );
}

#[test]
fn few_complaints_of_a_cause_are_shown_and_the_others_counted() {
    let bad: String = (0..27).map(|i| format!("id{i},neither,1954-04-26\n")).collect();
    let error = registry_error(registry(&bad), &[]);
    assert_eq!(error.lines().count(), 4);
    assert_eq!(error.lines().last(), Some("registry.csv: and 24 more like that of line 4"));
    let causes = ["neither", "nor", "none"];
    let bad: String =
        (0..60).map(|i| format!("id{i},{},{}\n", causes[i % 3], ["x", "1954-13-01"][i % 2])).collect();
    let error = registry_error(registry(&bad), &[]);
    assert!(error.lines().count() <= 22, "{error}");
}

fn parquet(desk: &Desk, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).expect("a batch");
    let properties =
        parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let path = desk.0.path().join(name);
    let file = std::fs::File::create(&path).expect("created");
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, Some(properties)).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
    path
}

fn three(arms: [&str; 3]) -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("child_id", Arc::new(Int64Array::from(vec![7, 8, 9]))),
        ("arm", Arc::new(StringArray::from(arms.to_vec()))),
        ("injected", Arc::new(Date32Array::from(vec![-5729, -5728, -5727]))),
    ]
}

#[test]
fn parquet_is_read_and_placed_by_row_group() {
    let desk = Desk::new();
    let path = parquet(&desk, "registry.parquet", three(["vaccine", "placebo", "vaccine"]));
    let (rows, _) = read_publisher(&path, &study(&[])).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(rows.opportunity, [115, 116, 117]);
    assert_eq!(rows.arm, [TrialArm::Test, TrialArm::Control, TrialArm::Test]);
    let csv =
        desk.file("r.csv", registry("9,vaccine,1954-04-28\n7,vaccine,1954-04-26\n8,placebo,1954-04-27\n"));
    let same = read_publisher(&csv, &study(&[])).map_err(|e| e.to_string()).expect("read").0;
    assert_eq!(names(&same), names(&rows));
    let path = parquet(&desk, "registry.parquet", three(["vaccine", "placebo", "both"]));
    let error = read_publisher(&path, &study(&[])).err().expect("wrong");
    assert_eq!(
        desk.clean(&error),
        "registry.parquet, row 3 (row group 1), column \"arm\": \"both\" is neither the test label \
         \"vaccine\" nor the control label \"placebo\" of the study; correct it, or, if it is another arm, \
         agree on leave_out = [..] in the study's `arm`"
    );
}

#[test]
fn parquet_types_are_checked() {
    let desk = Desk::new();
    let with = |name: &str, array: ArrayRef| {
        let mut columns = three(["vaccine", "placebo", "vaccine"]);
        columns.iter_mut().find(|(n, _)| *n == name).expect("there").1 = array;
        let result = read_publisher(&parquet(&desk, "r.parquet", columns), &study(&[]));
        result.map(|(rows, ..)| rows.opportunity).map_err(|e| desk.clean(&e))
    };
    let millis = TimestampMillisecondArray::from(vec![-494_985_600_001, -494_985_600_000, -494_899_200_000]);
    assert_eq!(with("injected", Arc::new(millis.with_timezone("Europe/Berlin"))), Ok(vec![114, 115, 116]));
    assert_eq!(
        with("injected", Arc::new(arrow_array::BinaryArray::from(vec![b"1".as_slice(); 3]))),
        Err(
            "r.parquet, column \"injected\": type Binary is not read; use text, numbers, dates or timestamps"
                .into()
        )
    );
    assert_eq!(
        with("injected", Arc::new(UInt64Array::from(vec![1, 2, u64::MAX]))),
        Err("r.parquet, row 3 (row group 1), column \"injected\": a whole number above 2^63 - 1; use smaller \
             numbers or text"
            .into())
    );
    assert_eq!(
        with("child_id", Arc::new(Date32Array::from(vec![1, 2, 3]))).expect_err("dates").lines().next(),
        Some(
            "r.parquet, row 1 (row group 0), column \"child_id\": a date cannot be an identifier; use text \
             or whole numbers"
        )
    );
    let dictionary: arrow_array::DictionaryArray<arrow_array::types::Int32Type> =
        [Some("placebo"), Some("vaccine"), Some("placebo")].into_iter().collect();
    assert_eq!(dictionary.data_type(), &DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()));
    assert!(with("arm", Arc::new(dictionary)).is_ok());
}

#[test]
fn a_truncated_parquet_file_is_an_error_and_never_a_panic() {
    let desk = Desk::new();
    let whole =
        std::fs::read(parquet(&desk, "w.parquet", three(["vaccine", "placebo", "vaccine"]))).expect("read");
    for length in 1..whole.len() {
        let path = desk.file("registry.parquet", &whole[..length]);
        let error = read_publisher(&path, &study(&[])).err().expect("cut short");
        let text = desk.clean(&error);
        assert!(text.starts_with("registry.parquet: not a complete Parquet file ("), "{text}");
        assert!(text.ends_with("); was it cut short? Write it again"), "{text}");
    }
}

#[test]
fn rules_of_the_study_are_applied_and_counted() {
    let desk = Desk::new();
    let text =
        registry("A,vaccine,1954-04-26\nb,placebo,\n\"c, c\", placebo ,1954-05-01\na,vaccine,1954-06-01\n");
    let first = &[("duplicates  = \"error\"", "duplicates  = \"first\"")];
    let (rows, report) = read_publisher(&desk.file("r.csv", text), &study(first)).expect("read");
    assert_eq!((0..rows.len()).map(|i| rows.identifiers.get(i, 0)).collect::<Vec<_>>(), [&b"a"[..], b"c, c"]);
    assert_eq!(rows.opportunity, [115, 120]);
    assert_eq!((report.rows_read, report.rows_kept), (4, 2));
    assert_eq!((report.without_opportunity, report.duplicates_dropped), (1, 1));
    assert!(report.to_string().contains("1 row left out: no opportunity"), "{report}");

    let text = format!("{EVENTS}a,1954-07-01,paralytic\na,,not-polio\nb,nonsense,not-polio\n");
    let (rows, report) = read_advertiser(&desk.file("h.csv", text), &study(&[]), ADVERTISER).expect("read");
    assert_eq!((rows.len(), rows.times.len()), (2, 1), "filtered rows keep their identifier");
    assert_eq!((report.filtered, report.without_events, report.events_seen), (2, 1, 1));
}

const TWO_OTHERS: (&str, &str) =
    ("control = \"placebo\" }", "control = \"placebo\", leave_out = [\"observed\", \"absent\"] }");

#[test]
fn rows_of_other_arms_are_left_out_by_name() {
    let desk = Desk::new();
    let others = study(&[TWO_OTHERS]);
    let compared = "A,vaccine,1954-04-26\nb,placebo,1954-04-27\n";
    // What else stands in such a row does not matter, nor whether somebody has two of them.
    let text = registry(&format!("c,observed,\nd,observed,soon\n{compared}d,observed,1954-04-28\n"));
    let (rows, report) = read_publisher(&desk.file("r.csv", text), &others).expect("read");
    assert_eq!((0..rows.len()).map(|i| rows.identifiers.get(i, 0)).collect::<Vec<_>>(), [&b"a"[..], b"b"]);
    let (alone, _) = read_publisher(&desk.file("a.csv", registry(compared)), &study(&[])).expect("read");
    assert_eq!((names(&alone), alone.arm, alone.opportunity), (names(&rows), rows.arm, rows.opportunity));
    let left: Vec<(&str, u64)> =
        report.arms_left_out.iter().map(|arm| (arm.label.as_str(), arm.rows)).collect();
    assert_eq!((left, report.rows_read, report.rows_kept), (vec![("observed", 3), ("absent", 0)], 5, 2));
    assert_eq!((report.without_opportunity, report.duplicates_dropped), (0, 0));
    let shown = report.to_string();
    assert!(shown.contains("3 rows left out: arm \"observed\", which the study does not compare"), "{shown}");
    // A label that nobody named is no arm: nobody is dropped for a slip of the pen.
    let error = registry_error(registry(&format!("{compared}c,Observed,1954-04-26\n")), &[TWO_OTHERS]);
    assert!(error.starts_with("registry.csv, line 4, column \"arm\": \"Observed\" is neither"), "{error}");
    let error = registry_error(registry("c,observed,1954-04-26\nd,absent,\n"), &[TWO_OTHERS]);
    assert_eq!(
        error,
        "registry.csv: no row whose arm is compared has an opportunity (column \"injected\"); nobody is left \
         to measure"
    );
}

#[test]
fn nobody_is_in_an_arm_and_in_one_that_is_left_out() {
    let text = "b,observed,\na,vaccine,1954-04-26\nb,placebo,1954-04-26\nA,absent,1954-04-26\n";
    assert_eq!(
        registry_error(registry(text), &[TWO_OTHERS, ("duplicates  = \"error\"", "duplicates  = \"first\"")]),
        "registry.csv, line 3: the same identifier as line 5, whose arm is left out; nobody can be in two \
         arms: correct one of them\nregistry.csv, line 4: the same identifier as line 2, whose arm is left \
         out; nobody can be in two arms: correct one of them"
    );
}

#[test]
fn wide_rows_are_read_and_merged() {
    let wide = |rule| {
        study(&[
            ("layout      = \"events\"", "layout = \"wide\""),
            ("{ column = \"onset\"", "{ columns = [\"t1\", \"t2\"]"),
            ("{ constant = 1 }", "{ columns = [\"v1\", \"v2\"], type = \"u32\" }"),
            ("where       =", "# where"),
            ("\"error\"", rule),
        ])
    };
    let desk = Desk::new();
    let path = desk.file("h.csv", "child_id,t1,v1,t2,v2\na,30,3,20,2\na,10,1,,\nb,,,,\n");
    let (rows, report) = read_advertiser(&path, &wide("\"merge\""), ADVERTISER).expect("read");
    let a = (0..2).find(|&i| rows.identifiers.get(i, 0) == b"a").expect("there");
    assert_eq!(rows.events(a), (&[10, 20, 30][..], &[1, 2, 3][..]));
    assert_eq!((report.duplicates_merged, report.without_events), (1, 1));
    let (rows, report) = read_advertiser(&path, &wide("\"first\""), ADVERTISER).expect("read");
    let a = (0..2).find(|&i| rows.identifiers.get(i, 0) == b"a").expect("there");
    assert_eq!(rows.events(a).0, [20, 30]);
    assert_eq!((report.duplicates_dropped, report.events_seen), (1, 2));
    let path = desk.file("hospitals.csv", "child_id,t1,v1,t2,v2\na,,3,20,2\n");
    let error = read_advertiser(&path, &wide("\"merge\""), ADVERTISER).err().expect("wrong");
    assert_eq!(
        desk.clean(&error),
        "hospitals.csv, line 2, column \"v1\": \"3\" is a value without a time in column \"t1\""
    );
}

#[test]
fn a_folder_is_one_data_set_and_places_name_the_file() {
    let desk = Desk::new();
    let folder = desk.0.path().join("data");
    std::fs::create_dir(&folder).expect("made");
    desk.file("data/1.csv", registry("a,vaccine,1954-04-26\n"));
    desk.file("data/2.csv", "injected,child_id,arm\n1954-04-26,b,placebo\n1954-04-27,A,vaccine\n");
    desk.file("data/notes.txt", "not data");
    let error = read_publisher(&folder, &study(&[])).err().expect("duplicate");
    assert_eq!(
        desk.clean(&error),
        "data/2.csv, line 3: the same identifier as data/1.csv, line 2; remove one, or agree on duplicates = \
         \"first\""
    );
    desk.file("data/2.csv", "injected,child_id,arm\n1954-04-26,b,placebo\n");
    let (rows, _) = read_publisher(&folder, &study(&[])).expect("read");
    assert_eq!(rows.len(), 2);
    let one = desk.file("one.csv", registry("B ,placebo,1954-04-26\na,vaccine,115\n"));
    let named = |path: &std::path::Path| names(&read_publisher(path, &study(&[])).expect("read").0);
    assert_eq!(named(&one), names(&rows), "order and formatting do not matter");
    let other = desk.file("one.csv", registry("B ,placebo,1954-04-26\na,vaccine,116\n"));
    let [tag, before] = names(&rows);
    let [others_tag, others_before] = named(&other);
    assert!(others_tag != tag && others_before != before, "content does");
}

#[test]
fn patterns_and_packed_files_are_read_and_damage_is_named() {
    let desk = Desk::new();
    std::fs::create_dir(desk.0.path().join("data")).expect("made");
    let whole = registry("a,vaccine,1954-04-26\nb,placebo,1954-04-26\nc,placebo,1954-04-28\n");
    let one = read_publisher(&desk.file("one.csv", &whole), &study(&[])).expect("read").0;
    desk.file("data/1.csv", registry("b,placebo,1954-04-26\n"));
    let packed = |rows: &str, level| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        std::io::Write::write_all(&mut gzip, rows.as_bytes()).expect("packed");
        gzip.finish().expect("packed")
    };
    // A file of two members, as `cat a.gz b.gz` makes it.
    let members = [packed(HEAD, 1), packed("c,placebo,1954-04-28\n", 9)].concat();
    let gzip = desk.file("data/2.CSV.gz", &members);
    let text = registry("a,vaccine,1954-04-26\n");
    desk.file("data/3.csv.zst", zstd::encode_all(text.as_bytes(), 3).expect("packed"));
    desk.file("data/.hidden.csv", "not read");
    let read = |name: &str| read_publisher(&desk.0.path().join(name), &study(&[]));
    for data in ["data", "data/*", "data/[1-3].*", "*/?.*"] {
        let (rows, report) = read(data).unwrap_or_else(|e| panic!("{data}: {e}"));
        assert_eq!((names(&rows), report.rows_read), (names(&one), 3), "{data}");
    }
    let error = |name: &str| desk.clean(&read(name).err().expect("refused"));
    assert_eq!(error("data/4*"), "data/4*: no file has a name like this");
    let no_pattern = error("data/[1");
    assert!(no_pattern.starts_with("data/[1: not a pattern of files: "), "{no_pattern}");
    for cut in [1, 10, 15, members.len() - 4] {
        std::fs::write(&gzip, &members[..cut]).expect("written");
        let error = error("data");
        assert!(error.starts_with("data/2.CSV.gz: damaged: ") && error.ends_with("Pack it again"), "{error}");
    }
    std::fs::write(&gzip, &members).expect("written");
    let zst = desk.file("data/3.csv.zst", "no zstd at all, only words");
    assert!(error("data").starts_with("data/3.csv.zst: damaged: "), "{}", error("data"));
    std::fs::write(&zst, &zstd::encode_all(text.as_bytes(), 3).expect("packed")[..20]).expect("written");
    assert!(error("data").starts_with("data/3.csv.zst: damaged: "), "{}", error("data"));
}

/// Two identifiers per row, e-mail before telephone.
const TWO: (&str, &str) = (
    "[ { name = \"child_id\", normalise = [\"trim\", \"lowercase\"] } ]",
    "[ { name = \"mail\", normalise = [\"email\"] }, { name = \"phone\", normalise = [\"phone:44\"] } ]",
);
const FIRST: (&str, &str) = ("duplicates  = \"error\"", "duplicates  = \"first\"");
const MAILS: &str = "mail,phone,arm,injected\n";
const MAIL_EVENTS: &str = "mail,phone,onset,severity\n";

/// Identifiers of all rows as text, without their sorts, a missing one as `-`.
fn texts(identifiers: &RowKeys) -> Vec<String> {
    let text = |id: &[u8]| match id.split(|b| *b == 0).nth(1) {
        Some(text) => String::from_utf8_lossy(text).into_owned(),
        None => "-".into(),
    };
    let mut all: Vec<String> = (0..identifiers.len())
        .map(|row| identifiers.row(row).map(text).collect::<Vec<_>>().join(" "))
        .collect();
    all.sort();
    all
}

#[test]
fn rows_with_several_identifiers_may_lack_some_but_not_all() {
    let desk = Desk::new();
    let file = desk.file(
        "registry.csv",
        format!(
            "{MAILS}A@x.org,,vaccine,1954-04-26\n,020 7946 \
                 0000,placebo,1954-04-26\nb@x,+4930123456,placebo,1954-04-26\n"
        ),
    );
    let (rows, report) = read_publisher(&file, &study(&[TWO])).expect("good");
    assert_eq!(texts(&rows.identifiers), ["- +442079460000", "a@x.org -", "b@x +4930123456"]);
    let [mail, phone] = &report.identifiers[..] else { panic!("two columns") };
    assert_eq!((mail.present, mail.empty, phone.present, phone.empty), (2, 1, 2, 1));
    assert_eq!(mail.steps.len(), 1);
    assert_eq!((&*mail.steps[0].step, mail.steps[0].changed), ("email", 1));
    assert!(mail.steps[0].first.ends_with("registry.csv, line 2"), "{}", mail.steps[0].first);
    assert_eq!((&*phone.steps[0].step, phone.steps[0].changed), ("phone:44", 1));
    let shown = report.to_string();
    assert!(shown.contains("2 cells of mail with an identifier"), "{shown}");
    assert!(
        shown.contains("1 cells of phone are not in the form phone:44, and are compared in it, first in"),
        "{shown}"
    );
    assert!(!shown.contains("x.org") && !shown.contains("7946"), "{shown}");
    assert_eq!(
        registry_error(format!("{MAILS}, ,vaccine,1954-04-26\n"), &[TWO]),
        "registry.csv, line 2, column \"mail\": no identifier in mail, phone: fill one of the cells or \
         remove the row"
    );
    let bad = registry_error(
        format!("{MAILS}a@x,020 7946 0000,vaccine,1954-04-26\nb@x,call,vaccine,1954-04-26\n"),
        &[TWO],
    );
    assert!(bad.starts_with("registry.csv, line 3, column \"phone\": not a telephone number"), "{bad}");
}

#[test]
fn an_identifier_of_two_publisher_rows_stays_with_the_first() {
    let rows =
        "a@x,,vaccine,1954-04-26\na@x,02011112222,vaccine,1954-04-26\na@x,02011112222,vaccine,1954-04-27\n";
    let text = format!("{MAILS}{rows}");
    assert_eq!(
        registry_error(&text, &[TWO]).lines().next(),
        Some(
            "registry.csv, line 3: the same identifier as line 2; remove one, or agree on duplicates = \
             \"first\""
        )
    );
    let desk = Desk::new();
    let (kept, report) =
        read_publisher(&desk.file("registry.csv", &text), &study(&[TWO, FIRST])).expect("good");
    assert_eq!(texts(&kept.identifiers), ["- +442011112222", "a@x -"]);
    assert_eq!((report.rows_kept, report.duplicates_dropped), (2, 1));
    assert_eq!((report.identifiers[0].repeats, report.identifiers[1].repeats), (2, 1));
    let arms = "a@x,1111112222,vaccine,1954-04-26\nb@x,1111112222,placebo,1954-04-26\n";
    assert_eq!(
        registry_error(format!("{MAILS}{arms}"), &[TWO, FIRST]),
        "registry.csv, line 3: the same identifier as line 2 but in the other arm; correct one of them"
    );
}

#[test]
fn lines_of_one_advertiser_row_are_found_by_all_their_identifiers() {
    let line = |ids: &str, day: u8| format!("{ids},1954-07-0{day},paralytic\n");
    // The third line has one of the identifiers only, and nobody else's: it is about the same one.
    let good =
        [line("a@x,1111112222", 1), line("b@x,", 2), line("a@x,", 3), line("a@x,1111112222", 4)].concat();
    let desk = Desk::new();
    let read = |text: &str, changes: &[(&str, &str)]| {
        read_advertiser(
            &desk.file("hospitals.csv", format!("{MAIL_EVENTS}{text}")),
            &study(changes),
            ADVERTISER,
        )
    };
    let (rows, report) = read(&good, &[TWO]).expect("good");
    assert_eq!(texts(&rows.identifiers), ["a@x +441111112222", "b@x -"]);
    let mut events: Vec<usize> = (0..2).map(|row| rows.events(row).0.len()).collect();
    events.sort_unstable();
    assert_eq!((events, report.events_seen), (vec![1, 3], 4));
    // The last line ties two rows together.
    let tied = [line("a@x,1111112222", 1), line("b@x,3333332222", 2), line("a@x,3333332222", 3)].concat();
    assert_eq!(
        hospitals_error(format!("{MAIL_EVENTS}{tied}"), &[TWO]),
        "hospitals.csv, line 4: an identifier of line 2, but not all the same ones; correct one of them, or \
         agree on duplicates = \"first\" (in a collecting study \"keep\")\nhospitals.csv, line 4: an \
         identifier of line 3, but not all the same ones; correct one of them, or agree on duplicates = \
         \"first\" (in a collecting study \"keep\")"
    );
    let (rows, report) = read(&tied, &[TWO, FIRST]).expect("the first lines count");
    assert_eq!(texts(&rows.identifiers), ["a@x +441111112222", "b@x +443333332222"]);
    assert_eq!((report.duplicates_dropped, report.events_seen, report.rows_kept), (1, 2, 2));
}

#[test]
fn identifiers_of_one_sort_may_match_each_other() {
    let same = (TWO.0, "[ { name = \"mail\" }, { name = \"phone\", sort = \"mail\" } ]");
    let desk = Desk::new();
    let file = desk.file("registry.csv", format!("{MAILS}a,a,vaccine,1954-04-26\nb,c,vaccine,1954-04-26\n"));
    let (rows, report) = read_publisher(&file, &study(&[same])).expect("good");
    assert_eq!(texts(&rows.identifiers), ["a -", "b c"]);
    assert_eq!(report.identifiers[1].repeats, 1);
    let crossed = format!("{MAILS}a,b,vaccine,1954-04-26\nc,a,vaccine,1954-04-26\n");
    assert!(
        registry_error(&crossed, &[same]).starts_with("registry.csv, line 3: the same identifier as line 2")
    );
    let apart = (TWO.0, "[ \"mail\", \"phone\" ]");
    let (rows, ..) =
        read_publisher(&desk.file("two.csv", &crossed), &study(&[apart])).expect("these never meet");
    assert_eq!(rows.len(), 2);
}

/// National numbers as exports of a country hold them: each form is the same person, and what could be
/// somebody else is refused with its line.
#[test]
fn national_numbers_are_read_by_the_rules_of_their_country() {
    let desk = Desk::new();
    for (country, cells, numbers) in [
        (
            "1",
            ["1-212-555-0100", "011 44 20 7946 0000", "(646) 555-0123"],
            "+12125550100 +16465550123 +442079460000",
        ),
        (
            "39",
            ["06 1234 5678", "+39 02 1234 5678", "333 1234567"],
            "+390212345678 +390612345678 +393331234567",
        ),
        (
            "7",
            ["8 495 123-45-67", "+7 800 555 35 35", "8-10-44 20 7946 0000"],
            "+442079460000 +74951234567 +78005553535",
        ),
        ("36", ["06 1 234 5678", "+36 20 123 4567", "30 123 4567"], "+3612345678 +36201234567 +36301234567"),
    ] {
        let rule = format!("[ {{ name = \"phone\", normalise = [\"phone:{country}\"] }} ]");
        let study = study(&[(TWO.0, &rule)]);
        let rows: String = cells.iter().map(|cell| format!("{cell},vaccine,1954-04-26\r\n")).collect();
        let file = desk.file("registry.csv", format!("phone,arm,injected\r\n{rows}"));
        let (rows, ..) = read_publisher(&file, &study).unwrap_or_else(|e| panic!("{e}"));
        let mut read: Vec<String> =
            (0..rows.identifiers.len()).map(|row| keys::shown(&rows.identifiers, row)).collect();
        read.sort();
        assert_eq!(read.join(" "), numbers, "{country}");
    }
    let rule = (TWO.0, "[ { name = \"phone\", normalise = [\"phone:49\"] } ]");
    let cells = ["030 1234567", "49 30 1234567", "+49 030 1234567"];
    let rows: String = cells.iter().map(|cell| format!("{cell},vaccine,1954-04-26\r\n")).collect();
    let error = registry_error(format!("phone,arm,injected\r\n{rows}"), &[rule]);
    let [second, third] = error.lines().collect::<Vec<_>>()[..] else { panic!("{error}") };
    assert_eq!(
        second,
        "registry.csv, line 3, column \"phone\": this telephone number may be a national one, or one with \
         its country: write it with + and its country, without (0)"
    );
    assert!(third.starts_with("registry.csv, line 4, column \"phone\": not a telephone number: "), "{third}");
}

/// Each complaint about a file, with each way to end its lines.
#[test]
fn complaints_name_the_same_line_whatever_ends_it() {
    let cases = [
        "a,vaccine,1954-04-26\nb,neither,1954-04-26\n",
        "a,vaccine,1954-04-26\n\n\nb,placebo,20.3.2008\n",
        "a,vaccine,1954-04-26\nb,placebo,1954-04-26\na,vaccine,1954-04-26\n",
        "\"a\nb\",vaccine,1954-04-26\n,placebo,1954-04-26\n",
        "a,vaccine,1954-04-26\nb,placebo\nc,placebo,1953-01-01\n",
    ];
    let lines = [&[3][..], &[5], &[4, 2], &[4], &[3, 4]];
    for (rows, lines) in cases.into_iter().zip(lines) {
        for (mark, end) in [("", "\n"), ("", "\r\n"), ("", "\r"), ("\u{feff}", "\r\n")] {
            let error = registry_error(format!("{mark}{}", registry(rows).replace('\n', end)), &[]);
            let words: Vec<&str> = error.split("line ").skip(1).collect();
            let told: Vec<u64> = words
                .iter()
                .map(|w| w[..w.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap())
                .collect();
            assert_eq!(told, lines, "{end:?}: {error}");
        }
    }
}

/// A line without a time and without a value is of somebody without an event; half of an event is refused.
#[test]
fn a_line_may_be_of_somebody_without_an_event() {
    let desk = Desk::new();
    let text = "child_id,onset,severity,amount\na,200,paralytic,5\nb,,paralytic,\nb,,paralytic,\n";
    let (rows, report) =
        read_advertiser(&desk.file("hospitals.csv", text), &study(AMOUNT), ADVERTISER).unwrap();
    assert_eq!((rows.len(), report.without_events, report.events_seen), (2, 1, 1));
    for (half, why) in [("a,,paralytic,5", "is not a "), ("a,200,paralytic,", "and the event has a time")] {
        let error = hospitals_error(format!("child_id,onset,severity,amount\n{half}\n"), AMOUNT);
        assert!(error.contains(&format!(": empty {why}")), "{error}");
    }
}

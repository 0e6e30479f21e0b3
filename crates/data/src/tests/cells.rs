//! Cells of programs' columns.

use super::reading::read_program_columns;
use super::*;
use arrow_array::{BooleanArray, Decimal128Array, Float64Array, TimestampSecondArray};

#[test]
fn program_columns_are_read() {
    let text = include_str!("../../../../examples/program.toml");
    let study = Study::parse("study.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let desk = Desk::new();
    let path = desk.file("clinic.csv", "person,diagnosis\nAnn,ill\nbob,healthy\n");
    let (rows, report) = read_program_columns(&path, &study, "clinic").expect("read");
    assert_eq!((rows.names, rows.columns), (vec!["state".to_owned()], vec![vec![2, 1]]));
    assert_eq!(report.rows_kept, 2);
    let path = desk.file("works.csv", "person,exposed_days\nann,12\nANN,13\n");
    let error = read_program_columns(&path, &study, "works").err().expect("duplicate");
    assert_eq!(
        desk.clean(&error),
        "works.csv, line 3: the same identifier as line 2; remove one, or agree on duplicates = \"first\""
    );
}

#[test]
fn a_cell_must_fit_its_type_in_the_program() {
    let text = include_str!("../../../../examples/program.toml");
    let with = |changes: &[(&str, &str)]| {
        let text = changes.iter().fold(text.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"))
    };
    let desk = Desk::new();
    let read = |study: &Study, party: &str, file: &str| {
        let read = read_program_columns(&desk.file(&format!("{party}.csv"), file), study, party);
        read.map(|(rows, ..)| rows.columns).map_err(|error| desk.clean(&error))
    };
    // The row compares the column with a constant of the same type.
    let typed = |ty: &str| {
        let (column, month) = (format!("column exposed {ty} works"), format!("const 2 {ty}"));
        with(&[("column exposed u16 works", &column), ("const 29 u16", &month)])
    };
    let narrow = typed("u2");
    let cells = "person,exposed_days\na,-1\nb,0\nc,9\nd,3\n";
    let error = read(&narrow, "works", cells).expect_err("two cells are out of range");
    for part in [
        "works.csv, line 2, column \"exposed_days\": \"-1\" is negative; use a whole number from 0 to 3",
        "works.csv, line 4, column \"exposed_days\": \"9\" is out of range; use a whole number from 0 to 3",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(read(&narrow, "works", "person,exposed_days\na,0\nb,3\n").expect("fits"), [[0, 3]]);
    let signed = typed("i3");
    assert_eq!(read(&signed, "works", "person,exposed_days\na,-4\nb,3\n").expect("fits"), [[-4, 3]]);
    assert!(
        read(&signed, "works", "person,exposed_days\na,-5\n").expect_err("below").contains("from -4 to 3")
    );
    let wide = typed("i64");
    let extremes = format!("person,exposed_days\na,{}\nb,{}\n", i64::MIN, i64::MAX);
    assert_eq!(read(&wide, "works", &extremes).expect("fits"), [[i64::MIN, i64::MAX]]);
    let labels = with(&[("\"healthy\", \"ill\"", "\"healthy\", \"ill\", \"unsure\", \"unknown\"")]);
    let error = read(&labels, "clinic", "person,diagnosis\na,ill\nb,unknown\n").expect_err("two bits");
    assert!(
        error.contains("line 3, column \"diagnosis\": \"unknown\" is 4 in the program, whose type u2"),
        "{error}"
    );
}

/// A column of every form, and a bit of two of them.
const FORMS: &str = r#"tacit-program/2
name "forms"
class exact
party clinic
party works
column spent i32 works scale 100 unit "EUR" missing
column arm u2 works labels "placebo" "low" "high"
column seen u16 works date missing
column treated bit works
column state u2 clinic
row
s = column spent
k = known s
d = column seen
most = clamp d 20000
a = column arm
low = const "low" arm
is-low = eq a low
t = column treated
both = and t is-low
in = and both k
combine
f = sum in u40
g = sum most u40
release
n = total f
reveal n works "n"
"#;

fn forms(changes: &[(&str, &str)]) -> Study {
    let mut text = include_str!("../../../../examples/program.toml").to_owned();
    let column = |name: &str| format!("{name} = {{ party = \"works\", column = \"{name}\" }}\n");
    let begin = text.find("exposed = {").unwrap();
    let end = begin + text[begin..].find('\n').unwrap() + 1;
    text.replace_range(begin..end, &["spent", "arm", "seen", "treated"].map(column).concat());
    let begin = text.find("tacit-program/2").unwrap();
    let end = begin + text[begin..].find("\"\"\"").unwrap();
    text.replace_range(begin..end, FORMS);
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

const FORMS_HEAD: &str = "person,spent,arm,seen,treated\n";

/// In order of the study's names, and then the bits.
const NAMES: [&str; 6] = ["arm", "seen", "spent", "treated", "known spent", "known seen"];

#[test]
fn cells_are_what_the_program_says() {
    let desk = Desk::new();
    let text = format!(
        "{FORMS_HEAD}a,149.28,low,2026-03-01,yes\nb,-12.50,high,,FALSE\nc, ,placebo,1970-01-01,1\n\
         d,7,low,2149-06-06,0.0\ne,-0.1,high,2000-02-29,True\n"
    );
    let (rows, report) = read_program_columns(&desk.file("works.csv", text), &forms(&[]), "works")
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(rows.names, NAMES);
    // What is missing, and what lies beyond `clamp d 20000`, for the owner.
    let counted = |name: &str, missing, above| ColumnReport {
        name: name.into(),
        missing,
        range: (above > 0).then_some([0.0, 20_000.0]),
        below: 0,
        above,
    };
    assert_eq!(report.columns, [counted("spent", 1, 0), counted("seen", 1, 0), counted("seen", 0, 2)]);
    let columns: [[i64; 5]; 6] = [
        [2, 3, 1, 2, 3],
        [20_513, 0, 0, 65_535, 11_016],
        [14_928, -1_250, 0, 700, -10],
        [1, 0, 1, 0, 1],
        [1, 1, 0, 1, 1],
        [1, 0, 1, 1, 1],
    ];
    assert_eq!(rows.columns, columns);
}

/// Nulls are missing; numbers with decimals are exact or refused; days and bits have types of their own.
#[test]
fn cells_of_parquet_are_what_the_program_says() {
    let desk = Desk::new();
    let people: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let arms: ArrayRef = Arc::new(StringArray::from(vec!["low", "high", "placebo"]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(20_513), None, Some(0)]));
    let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let read = |spent: ArrayRef| {
        let columns = [("person", &people), ("spent", &spent), ("arm", &arms), ("seen", &days)];
        let columns = columns.into_iter().chain([("treated", &bits)]);
        let path = parquet(&desk, "w.parquet", columns.map(|(name, array)| (name, array.clone())).collect());
        let read = read_program_columns(&path, &forms(&[]), "works");
        read.map(|(rows, _)| rows.columns).map_err(|error| desk.clean(&error))
    };
    let columns: [[i64; 3]; 6] =
        [[2, 3, 1], [20_513, 0, 0], [14_928, -1_250, 0], [1, 0, 1], [1, 1, 0], [1, 0, 1]];
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("149.28"), Some("-12.5"), None]));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(149.28), Some(-12.5), None]));
    let decimals = Decimal128Array::from(vec![Some(1_492_800), Some(-125_000), None]);
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(20, 4).unwrap());
    for spent in [texts, floats, decimals] {
        assert_eq!(read(spent).unwrap_or_else(|e| panic!("{e}")), columns);
    }
    for (odd, shown) in
        [(1149.285, "1149.285 is no whole number of 1/100"), (f64::NAN, "\"NaN\" is no number")]
    {
        let error = read(Arc::new(Float64Array::from(vec![1.0, odd, 1e300]))).expect_err("not of cents");
        let place = "w.parquet, row 2 (row group 0), column \"spent\": ";
        assert!(error.contains(&format!("{place}{shown}")), "{error}");
        assert!(error.contains("row 3 (row group 1), column \"spent\": "), "{error}");
    }
}

/// An instant is of one day in Berlin and of another one in UTC: nobody guesses which is meant.
#[test]
fn instants_that_are_no_midnights_are_no_days() {
    let desk = Desk::new();
    // Midnights of Berlin.
    let seen = TimestampSecondArray::from(vec![1_772_319_600, 1_772_406_000]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("person", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("spent", Arc::new(Float64Array::from(vec![1.0, 2.0]))),
        ("arm", Arc::new(StringArray::from(vec!["low", "high"]))),
        ("treated", Arc::new(BooleanArray::from(vec![true, false]))),
    ];
    let read = |seen: TimestampSecondArray| {
        let mut all = columns.clone();
        all.push(("seen", Arc::new(seen)));
        let read = read_program_columns(&parquet(&desk, "w.parquet", all), &forms(&[]), "works");
        read.map(|(rows, _)| rows.columns[1].clone()).map_err(|error| desk.clean(&error))
    };
    let error = read(seen.clone().with_timezone("Europe/Berlin")).expect_err("no days");
    assert_eq!(
        error.lines().next(),
        Some(
            "w.parquet, row 1 (row group 0), column \"seen\": the time 2026-02-28T23:00:00Z has a time of \
             day in UTC, and a day is expected: hand over dates of the zone that is meant (of a frame of \
             pandas `.dt.date`, in SQL CAST(.. AS DATE))"
        )
    );
    // What a clock without a zone shows is of the day that it shows.
    let walls = TimestampSecondArray::from(vec![1_772_323_200, 1_772_409_600]);
    assert_eq!(read(walls), Ok(vec![20_513, 20_514]));
    let error = read(seen).expect_err("no days");
    assert!(error.contains("the time 2026-02-28T23:00:00 is a date with a time of day; a day is expected"));
}

#[test]
fn what_is_wrong_with_a_cell_is_said_at_its_place() {
    let desk = Desk::new();
    let error = |cells: &str, changes: &[(&str, &str)]| {
        let path = desk.file("works.csv", format!("{FORMS_HEAD}a,1,low,1970-01-01,0\nb,{cells}\n"));
        let error = read_program_columns(&path, &forms(changes), "works").err().expect("wrong");
        let text = desk.clean(&error);
        text.strip_prefix("works.csv, line 3, column ").unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    for (cells, told) in [
        (
            "1149.285,low,1970-01-01,0",
            "\"spent\": 1149.285 is no whole number of 1/100; round it, or give the program's column a finer \
             `scale`",
        ),
        ("12 EUR,low,1970-01-01,0", "\"spent\": \"12 EUR\" is no number such as 12, -3 or 149.28"),
        ("21474836.48,low,1970-01-01,0", "\"spent\": 21474836.48 does not fit i32; widen it"),
        ("1,Low,1970-01-01,0", "\"arm\": \"Low\" is none of the labels \"placebo\" \"low\" \"high\""),
        (
            "1,,1970-01-01,0",
            "\"arm\": the cell is empty; write a value, or `missing` behind the program's column",
        ),
        ("1,low,01.03.2026,0", "\"seen\": \"01.03.2026\" is no day such as 2026-03-01"),
        ("1,low,2149-06-07,0", "\"seen\": 2149-06-07 does not fit u16; widen it"),
        ("1,low,1969-12-31,0", "\"seen\": 1969-12-31 does not fit u16; widen it"),
        ("1,low,1970-01-01,2", "\"treated\": \"2\" is no bit: write 0 or 1, false or true, no or yes"),
    ] {
        assert_eq!(error(cells, &[]), told);
    }
    let plain = [("column spent i32 works scale 100 unit \"EUR\" missing", "column spent i32 works missing")];
    let text = error("1.5,low,1970-01-01,0", &plain);
    assert_eq!(text, "\"spent\": 1.5 is no whole number; write `scale 100` behind the program's column, say");
    // As files have it that were written by way of floating point.
    let path = desk.file("works.csv", format!("{FORMS_HEAD}a,-7.0,low,1970-01-01,0\n"));
    let (rows, _) = read_program_columns(&path, &forms(&plain), "works").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(rows.columns[2], [-7]);
}

//! Cells as data frames have them.

use super::reading::names;
use super::*;
use crate::publisher;
use arrow_array::{Decimal128Array, Float64Array, RecordBatchIterator, TimestampSecondArray};
use base::Seed;
use study::format::{InputFormat, WallZone};

/// Frames hold whole numbers as floating point as soon as one is missing.
#[test]
fn whole_numbers_may_be_held_as_floating_point() {
    let desk = Desk::new();
    let with = |impressions: ArrayRef, injected: ArrayRef, identifiers: ArrayRef| {
        let arms: ArrayRef = Arc::new(StringArray::from(vec!["vaccine", "placebo", "vaccine"]));
        let columns = vec![
            ("child_id", identifiers),
            ("arm", arms),
            ("injected", injected),
            ("impressions", impressions),
        ];
        let read = read_publisher(&parquet(&desk, "f.parquet", columns), &study(&FULL[..1]));
        read.map(|(rows, _)| (names(&rows), rows.impressions, rows.opportunity)).map_err(|e| desk.clean(&e))
    };
    let whole = |values: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let floats = |values: [Option<f64>; 3]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let expected = with(whole([8, 0, 3]), whole([1, 2, 3]), whole([7, 8, 9])).expect("read");
    let some = |values: [f64; 3]| floats(values.map(Some));
    let same = with(some([8.0, -0.0, 3.0]), some([1.0, 2.0, 3.0]), some([7.0, 8.0, 9.0]));
    assert_eq!(same.as_ref(), Ok(&expected));
    let short: ArrayRef = Arc::new(arrow_array::Float32Array::from(vec![8.0, 0.0, 3.0]));
    assert_eq!(with(short, whole([1, 2, 3]), whole([7, 8, 9])), Ok(expected.clone()));
    let cents = Decimal128Array::from(vec![800, 0, 300]).with_precision_and_scale(20, 2).expect("a type");
    assert_eq!(with(Arc::new(cents), whole([1, 2, 3]), whole([7, 8, 9])), Ok(expected));
    // Who has no opportunity counts for nobody.
    let read = with(whole([8, 0, 3]), floats([Some(1.0), None, Some(3.0)]), whole([7, 8, 9])).expect("read");
    assert_eq!(read.2, [1, 3]);

    let odd = floats([Some(8.5), None, Some(f64::NAN)]);
    let error = with(odd, whole([1, 2, 3]), some([7.0, 8.5, 9.0])).expect_err("no whole numbers");
    for told in [
        "f.parquet, row 1 (row group 0), column \"impressions\": 8.5 is not a whole number: round it",
        "f.parquet, row 2 (row group 0), column \"impressions\": empty is not a whole number: write one from \
         0 to 65535, 0 where nothing is to be counted",
        "f.parquet, row 3 (row group 1), column \"impressions\": NaN is not a whole number: write one from 0 \
         to 65535, 0 where nothing is to be counted",
        "f.parquet, row 2 (row group 0), column \"child_id\": a number that is not whole, or has more digits \
         than a number keeps, cannot be an identifier; write it as text",
    ] {
        assert!(error.contains(told), "{error}");
    }
}

/// Times without a zone are of the zone that is said, as text that shows the same; without one they are
/// refused, but for days.
#[test]
fn times_without_a_zone_are_of_the_zone_that_is_said() {
    let desk = Desk::new();
    let study = study(&[("unit   = \"day\"", "unit   = \"hour\""), ("span   = 365", "span   = 8760")]);
    let read = |injected: ArrayRef, zone: Option<&str>| {
        let mut columns = three(["vaccine", "placebo", "vaccine"]);
        columns[2].1 = injected;
        let path = parquet(&desk, "t.parquet", columns.clone());
        let zone = zone.map(|zone| WallZone::parse(zone).expect("a zone"));
        let format = InputFormat { zone, ..InputFormat::NONE };
        let of = |data: DataLocation<'_>| {
            let rows = publisher::read(data, &study, None).map_err(|error| desk.clean(&error))?.0;
            Ok::<_, String>(*rows.tag(&Seed::from_bytes([7; 32])).expect("in memory").as_bytes())
        };
        let file = of(DataLocation { format: &format, ..DataLocation::from(&path) });
        // A data frame is read as a file.
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let schema = batch.schema();
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = RowStream::new("t.parquet", None, Box::new(batches), || false);
        let location = DataLocation { format: &format, stream: Some(&stream), ..DataLocation::from(&path) };
        let frame = of(location);
        let lines = |text: &String| text.replace(" (row group 0)", "").replace(" (row group 1)", "");
        assert_eq!(frame.as_ref().map_err(lines), file.as_ref().map_err(lines));
        file
    };
    // 1954-04-26T00:00, 1954-04-27T10:00 and 1954-04-27T23:30.
    let walls = vec![-494_985_600, -494_863_200, -494_814_600];
    let times = TimestampSecondArray::from(walls.clone());
    let naive = || -> ArrayRef { Arc::new(times.clone()) };
    let shown = ["1954-04-26T00:00:00", "1954-04-27T10:00:00", "1954-04-27T23:30:00"];
    let text: ArrayRef = Arc::new(StringArray::from(shown.to_vec()));
    let utc: ArrayRef = Arc::new(times.clone().with_timezone("UTC"));
    let berlin = read(naive(), Some("Europe/Berlin")).expect("read");
    assert_eq!(Ok(berlin), read(text, Some("Europe/Berlin")));
    let earlier: Vec<i64> = walls.iter().map(|wall| wall - 3_600).collect();
    let aware: ArrayRef = Arc::new(TimestampSecondArray::from(earlier).with_timezone("Europe/Berlin"));
    assert_eq!(Ok(berlin), read(aware, None));
    // What has a zone keeps it; and another reading is other data.
    let of_utc = read(utc.clone(), None).expect("read");
    assert_eq!(Ok(of_utc), read(utc, Some("Europe/Berlin")));
    assert_eq!(Ok(of_utc), read(naive(), Some("Z")));
    assert_ne!(of_utc, berlin);
    let refused = read(naive(), None).expect_err("no zone");
    assert_eq!(
        refused.lines().next(),
        Some(
            "t.parquet, row 2 (row group 0), column \"injected\": the time 1954-04-27T10:00:00 is a \
             date-time without offset: add zone = \"+02:00\", or \"Europe/Berlin\", under [format] of the \
             party file (or --zone)"
        )
    );
    let days: ArrayRef = Arc::new(Date32Array::from(vec![-5_729, -5_728, -5_727]));
    let midnights: Vec<i64> = (0..3).map(|day| (day - 5_729) * 86_400).collect();
    let midnights: ArrayRef = Arc::new(TimestampSecondArray::from(midnights));
    assert_eq!(read(midnights.clone(), None).expect("read"), read(days, None).expect("read"));
    assert_ne!(read(midnights.clone(), Some("+01:00")).expect("read"), read(midnights, None).expect("read"));
}

/// What messages say of a table that was handed over: it has rows and no lines, and is no file.
#[test]
fn complaints_about_a_frame_speak_of_rows() {
    let read = |columns: Vec<(&str, ArrayRef)>, periods: &str| {
        let field = |(name, array): &(&str, ArrayRef)| {
            let field = Field::new(*name, array.data_type().clone(), true);
            let period = [("ARROW:extension:name".to_owned(), "pandas.period".to_owned())];
            if *name == periods { field.with_metadata(period) } else { field }
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).expect("a batch");
        let stream = RowStream::new(
            "pandas DataFrame",
            None,
            Box::new(RecordBatchIterator::new([Ok(batch)], schema)),
            || false,
        );
        let path = PathBuf::from("pandas DataFrame");
        let data = DataLocation { stream: Some(&stream), ..DataLocation::from(&path) };
        publisher::read(data, &study(&[]), None).err().expect("wrong").to_string()
    };
    let people: ArrayRef = Arc::new(Int64Array::from((0..5).collect::<Vec<i64>>()));
    let arms: ArrayRef = Arc::new(StringArray::from(vec!["both"; 5]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![-5_729; 5]));
    let error =
        read(vec![("child_id", people.clone()), ("arm", arms.clone()), ("injected", days.clone())], "");
    assert_eq!(error.lines().last(), Some("pandas DataFrame: and 2 more like that of row 3"));
    let columns = vec![("child_id", people.clone()), ("arm", arms.clone()), ("__index_level_0__", days)];
    let error = read(columns, "");
    assert_eq!(error, "pandas DataFrame: no column \"injected\"; it has: child_id, arm");
    let columns = vec![("child_id", people.clone()), ("arm", arms.clone()), ("injected", people.clone())];
    assert_eq!(
        read(columns, "injected"),
        "pandas DataFrame, column \"injected\": periods of pandas are numbers whose unit no other program \
         knows; hand over dates, such as those of .dt.to_timestamp()"
    );
    let none = |array: &ArrayRef| array.slice(0, 0);
    let error =
        read(vec![("child_id", none(&people)), ("arm", none(&arms)), ("injected", none(&people))], "");
    assert!(error.starts_with("pandas DataFrame: it has 0 rows."), "{error}");
}

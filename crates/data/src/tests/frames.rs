//! Cells as data frames have them.

use super::reading::names;
use super::*;
use arrow_array::{Decimal128Array, Float64Array};

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
        "f.parquet, row 2 (row group 0), column \"impressions\": empty is not a whole number: write one from 0 \
         to 65535, 0 where nothing is to be counted",
        "f.parquet, row 3 (row group 1), column \"impressions\": NaN is not a whole number: write one from 0 to \
         65535, 0 where nothing is to be counted",
        "f.parquet, row 2 (row group 0), column \"child_id\": a number that is not whole, or has more digits \
         than a number keeps, cannot be an identifier; write it as text",
    ] {
        assert!(error.contains(told), "{error}");
    }
}

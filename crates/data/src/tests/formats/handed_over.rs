//! Rows that another program hands over.

use super::*;
use crate::RowStream;
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, Date32Array, DictionaryArray, Float64Array, Int8Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, StringViewArray,
};
use base::ErrorPlace;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Batches as another program hands them over: text in the layouts that frames have, days, a null.
fn handed_over(arm: &str) -> RowStream {
    let days = Date32Array::from(vec![Some(-5729), Some(-5728), None]);
    let id = LargeStringArray::from(vec!["zoë", "b;c|d", "nobody"]);
    let arm = StringViewArray::from(vec!["vaccine", arm, "placebo"]);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("child_id", Arc::new(id)), ("arm", Arc::new(arm)), ("injected", Arc::new(days))];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    let schema = batch.schema();
    let parts = [batch.slice(0, 1), batch.slice(1, 2)].map(Ok);
    RowStream::new("a frame", None, Box::new(RecordBatchIterator::new(parts, schema)), || false)
}

#[test]
fn rows_that_are_handed_over_are_read_once() {
    let desk = Desk::new();
    let plain = desk.file("plain.csv", format!("{PLAIN}nobody,placebo,\n"));
    let (wanted, of_file) = read_registry(&plain, &InputFormat::NONE).expect("read");
    let read = |stream: &RowStream| {
        let place = DataLocation { stream: Some(stream), ..Path::new("a frame").into() };
        publisher::read(place, &study(&[]), None)
    };
    let stream = handed_over("placebo");
    let (rows, report) = read(&stream).expect("read");
    assert_eq!((tag(&rows), report.rows_read), (wanted, of_file.rows_read));
    let told = read(&stream).err().expect("used up").to_string();
    assert!(told.starts_with("a frame: it has 0 rows. A reader gives its rows once"), "{told}");
    let error = read(&handed_over("cure")).err().expect("no arm");
    let column = Some("arm".to_owned());
    assert_eq!(error.places(), [ErrorPlace { file: "a frame".into(), line: 2, column }]);
    assert!(error.to_string().starts_with("a frame, row 2, column \"arm\": \"cure\""), "{error}");
}

/// A batch of any length is read in parts, so that a call that is stopped ends.
#[test]
fn a_long_batch_ends_with_its_call() {
    let rows = 200_000;
    let id = LargeStringArray::from((0..rows).map(|i| format!("p{i}")).collect::<Vec<_>>());
    let arm = StringViewArray::from(vec!["vaccine"; rows]);
    let days = Date32Array::from(vec![-5729; rows]);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("child_id", Arc::new(id)), ("arm", Arc::new(arm)), ("injected", Arc::new(days))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let schema = batch.schema();
    let looks = AtomicUsize::new(0);
    let stopped = move || looks.fetch_add(1, Ordering::Relaxed) == 2;
    let batches = Box::new(RecordBatchIterator::new([Ok(batch)], schema));
    let stream = RowStream::new("a frame", None, batches, stopped);
    let place = DataLocation { stream: Some(&stream), ..Path::new("a frame").into() };
    let told = publisher::read(place, &study(&[]), None).err().expect("stopped").to_string();
    assert_eq!(told, "a frame, after row 131072: stopped");
}

/// A dictionary of nulls alone has no values, of whatever type.
#[test]
fn a_dictionary_of_nulls_alone_is_empty_cells() {
    let part = |id: Vec<&str>, keys: Vec<Option<i8>>, days: ArrayRef| {
        let arm = StringViewArray::from(vec!["vaccine"; id.len()]);
        let days = DictionaryArray::<Int8Type>::new(Int8Array::from(keys), days);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("child_id", Arc::new(LargeStringArray::from(id))),
            ("arm", Arc::new(arm)),
            ("injected", Arc::new(days)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let nothing = Arc::new(Float64Array::from(Vec::<f64>::new()));
    let parts = [
        part(vec!["a", "b"], vec![None, None], nothing),
        part(vec!["c"], vec![Some(0)], Arc::new(Date32Array::from(vec![-5729]))),
    ];
    let schema = parts[0].schema();
    let batches = Box::new(RecordBatchIterator::new(parts.map(Ok), schema));
    let stream = RowStream::new("a frame", None, batches, || false);
    let place = DataLocation { stream: Some(&stream), ..Path::new("a frame").into() };
    let (rows, report) = publisher::read(place, &study(&[]), None).expect("read");
    assert_eq!((report.rows_read, rows.len()), (3, 1));
}

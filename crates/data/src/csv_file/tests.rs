//! Lines that complaints name, against a count that knows nothing of CSV.

use super::super::complaints::Complaints;
use super::super::table::{self, RowSink, TableCell};
use crate::Row;
use base::Error;
use proptest::prelude::*;

/// Keeps the place of every row.
#[derive(Default)]
struct Places(Vec<String>);

impl RowSink for Places {
    fn columns(&self) -> Vec<String> {
        vec!["a".into()]
    }

    fn row(&mut self, row: &mut Row<'_>, _: &[TableCell<'_>]) -> Result<(), Error> {
        self.0.push(row.files.show(row.place));
        Ok(())
    }
}

/// Places of the rows of a file that were read, and the error, without the file's name.
fn read(bytes: &[u8]) -> (Vec<String>, Option<String>) {
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let (mut places, mut complaints) = (Places::default(), Complaints::default());
    let done = table::read(file.path().into(), &mut places, &mut complaints).map(|_| ());
    let error = done.and_then(|()| complaints.finish()).err().map(|e| e.to_string());
    let short = |text: String| text.replace(&format!("{}, ", file.path().display()), "");
    (places.0.into_iter().map(short).collect(), error.map(short))
}

/// The line of byte `at`, as an editor counts.
fn line(text: &[u8], at: usize) -> usize {
    let before = String::from_utf8_lossy(&text[..at]).replace("\r\n", "\n").replace('\r', "\n");
    before.matches('\n').count() + 1
}

const ENDS: [&str; 3] = ["\n", "\r\n", "\r"];

/// One row: its cells, what ends it, and what ends the empty lines after it.
type Written = (Vec<String>, usize, Vec<usize>);

fn rows() -> impl Strategy<Value = Vec<Written>> {
    let cell = prop_oneof!["[a-z]{0,4}", "\u{e9}{1,3}", "[a-z\n\r,\"]{0,6}"];
    let cells = prop_oneof![9 => prop::collection::vec(cell.clone(), 2), 1 => prop::collection::vec(cell, 3)];
    prop::collection::vec((cells, 0..3usize, prop::collection::vec(0..3usize, 0..3)), 1..40)
}

/// The bytes of a file, where each row begins, and whether it has two cells.
fn written(rows: &[Written], marked: bool) -> (Vec<u8>, Vec<(usize, bool)>) {
    let mut text = String::from(if marked { "\u{feff}" } else { "" });
    let mut begins = Vec::new();
    let header = (vec!["a".to_owned(), "b".to_owned()], rows.len() % 3, vec![]);
    for (cells, end, empty) in std::iter::once(&header).chain(rows) {
        begins.push((text.len(), cells.len() == 2));
        let quoted = |cell: &String| match cell.contains(['\n', '\r', ',', '"']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        text += &cells.iter().map(quoted).collect::<Vec<_>>().join(",");
        std::iter::once(end).chain(empty).for_each(|end| text += ENDS[*end]);
    }
    (text.into_bytes(), begins.split_off(1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_and_complaints_name_the_line_that_an_editor_shows(rows in rows(), marked: bool) {
        let (text, begins) = written(&rows, marked);
        let (places, error) = read(&text);
        let expected = |good: bool| -> Vec<String> {
            let of = |(at, _): &(usize, bool)| format!("line {}", line(&text, *at));
            begins.iter().filter(|(_, two)| *two == good).map(of).collect()
        };
        prop_assert_eq!(places, expected(true));
        let bad: Vec<String> = expected(false).iter().map(|place| format!("{place}: 3 fields")).collect();
        let told: Vec<String> = error.iter().flat_map(|e| e.lines()).map(str::to_owned).collect();
        let told = told.iter().filter(|line| line.contains("3 fields"));
        let told: Vec<&str> = told.map(|l| &l[..l.find(" where").unwrap()]).collect();
        prop_assert_eq!(told, bad.iter().take(3).map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_that_are_not_utf8_name_it_too(rows in rows(), marked: bool, at: prop::sample::Index) {
        let (mut text, _) = written(&rows, marked);
        let mut at = at.index(text.len());
        // Not within a character, nor within a CRLF, which would make two line ends of it.
        while text[at] & 0xc0 == 0x80 || text[at] == b'\n' {
            at -= 1;
        }
        text.insert(at, 0xff);
        let expected = format!("line {}: not UTF-8 at byte {at} of the file; save it as UTF-8, or, if it is \
                                Latin-1 or Windows-1252, add encoding", line(&text, at));
        let told = read(&text).1.unwrap();
        prop_assert!(told.starts_with(&expected), "{}", told);
    }
}

#[test]
fn long_lines_are_counted_alike() {
    for end in ENDS {
        let text = format!("a,b{end}1,\"x{end}y\"{end}{end}2,{}", "z".repeat(base::limits::LINE_BYTES));
        let expected = "line 5: longer than 4194304 bytes; is it a CSV file?";
        assert_eq!(read(text.as_bytes()).1.as_deref(), Some(expected), "{end:?}");
    }
}

/// Rows far behind what one read brings, and lines that end where a read does.
#[test]
fn lines_are_counted_over_many_reads() {
    for end in ENDS {
        let row = format!("x{},y{end}", "1".repeat(61));
        let text = format!("a,b{end}") + &row.repeat(5_000) + "1,2,3";
        let (places, error) = read(text.as_bytes());
        let expected: Vec<String> = (2..5_002).map(|line| format!("line {line}")).collect();
        assert_eq!(places, expected, "{end:?}");
        assert!(error.unwrap().starts_with("line 5002: 3 fields"), "{end:?}");
    }
}

/// A quote too many would make one field of all rows up to the next one, or to the end.
#[test]
fn rows_are_not_lost_between_quotes() {
    let wrong = |text: &str| {
        let told = read(text.as_bytes()).1.unwrap_or_else(|| panic!("not refused: {text}"));
        let line =
            told.strip_prefix("line ").and_then(|rest| rest.split_once(": a field begins with a quote"));
        line.unwrap_or_else(|| panic!("{told}")).0.parse::<u64>().unwrap()
    };
    assert_eq!(wrong("a;b\n1;x\n2;\"y\n3;z\n"), 3);
    assert_eq!(wrong("a;b\n1;\"x\n2;y\n3;\"z\n4;w\n"), 2);
    assert_eq!(wrong("a,b\r\n1,\"x\"\"\r\n2,y\"z\r\n"), 2);
    assert_eq!(wrong("\"a\nb;c\n1;2\n"), 1);
    let long = "1;x\n".repeat(100_000);
    assert_eq!(wrong(&format!("a;b\n{long}2;\"y\n{long}")), 100_002);
    for good in [
        "a;b\n1;\"x\ny\"\n2;\"\"\"q\"\"\r\n\"\n3;z\"\n",
        "a;b\n1;\"12\" disc\n2;5\" disc\n3;\"x\"",
        "a;b\n1;\"\"\n\"2\";\"\"\n3;\"x\n\"",
        "a;b\n1; \"x\n2;x \"\n3;x\n",
    ] {
        let (rows, error) = read(good.as_bytes());
        assert_eq!((rows.len(), error), (3, None), "{good}");
    }
}

use super::*;
use crate::html::samples;
use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};
use std::io::Cursor;

/// The sheet of numbers, read back by another program's reader.
fn sheet(table: &NumberTable) -> Vec<Vec<Data>> {
    let mut book: Xlsx<_> =
        open_workbook_from_rs(Cursor::new(table.excel().expect("a workbook"))).expect("read");
    assert_eq!(book.sheet_names(), ["numbers", "study"]);
    let formulas = book.worksheet_formula("numbers").expect("a sheet");
    assert!(formulas.cells().all(|(_, _, formula)| formula.is_empty()));
    let range = book.worksheet_range("numbers").expect("a sheet");
    range.rows().map(<[Data]>::to_vec).collect()
}

/// Cells of a line by their titles; no cell of ours has a comma in it.
fn lines(csv: &str) -> Vec<Vec<&str>> {
    csv.lines().map(|line| line.split(',').collect()).collect()
}

fn place(title: &str) -> usize {
    LIFT_COLUMNS.iter().position(|column| *column == title).expect("a column")
}

/// The same of a program's table.
fn program_place(title: &str) -> usize {
    PROGRAM_COLUMNS.iter().position(|column| *column == title).expect("a column")
}

#[test]
fn every_number_has_a_line() {
    let table = NumberTable::of(&samples::registry());
    let csv = table.csv();
    let lines = lines(&csv);
    assert_eq!(lines[0], LIFT_COLUMNS);
    let of = |line: usize, titles: &[&str]| {
        titles.iter().map(|title| lines[line][place(title)]).collect::<Vec<_>>()
    };
    let cells = NumberTable::of(&samples::shop()).csv();
    let titles = cells.lines().next().expect("titles");
    assert!(titles.starts_with("viewer,family,column,group,quantity,arm,"), "{titles}");
    let names = ["viewer", "family", "group", "quantity", "arm", "kind", "noise"];
    assert_eq!(
        of(1, &names),
        ["registry", "overall", "overall", "difference of means", "both", "estimate", ""]
    );
    let numbers = of(1, &["value", "low", "high", "level", "p_value", "holm"]);
    let numbers: Vec<f64> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let ResultView::Lift(view) = samples::registry().view else { panic!("a lift report") };
    let estimate = view.cells[0].estimate.expect("it has one");
    let [low, high] = estimate.interval;
    assert_eq!(numbers, [estimate.lift, low, high, 0.95, 2e-11, 2e-11].map(rounded));
    assert_eq!(of(1, &["unit"]), ["cases per person"]);
    // Difference, two means, relative difference, and six numbers released.
    assert_eq!(lines.len(), 1 + 4 + 6);
    assert_eq!(
        of(5, &["quantity", "arm", "value", "unit", "kind", "noise", "sigma"]),
        ["rows", "vaccine", "200745", "people", "released", "exact", ""]
    );
    assert_eq!(
        of(8, &["quantity", "arm", "value", "unit", "kind", "noise", "sigma"]),
        ["value", "placebo", "114", "cases", "released", "noised", "2.427"]
    );
    let shop = NumberTable::of(&samples::shop()).csv();
    let refused = shop.lines().find(|line| line.contains("members")).expect("a line");
    assert!(
        refused.contains(",refused,") && refused.contains("\"the test group has about 412 rows, fewer"),
        "{refused}"
    );
}

/// Excel has numbers as numbers, but for those that it would round, and the same bytes each time.
#[test]
fn a_workbook_reads_back() {
    let table = NumberTable::of(&samples::program());
    let rows = sheet(&table);
    assert_eq!(rows.len(), 1 + 4);
    let value = |row: usize| &rows[row][program_place("value")];
    assert_eq!(value(1), &Data::Float(10_422.0));
    assert_eq!(value(2), &Data::String("-170141183460469231731687303715884105728".into()));
    assert_eq!(value(3), &Data::Float(-41.0));
    assert_eq!(rows[2][program_place("sigma")], Data::Float(4_000.0));
    assert_eq!(rows[4][program_place("noise")], Data::String("exact".into()));
    assert_eq!(table.excel().unwrap(), NumberTable::of(&samples::program()).excel().unwrap());
    let derived = sheet(&NumberTable::of(&samples::derived()));
    let treat: Vec<_> = derived
        .iter()
        .filter(|row| {
            row[program_place("group")] == Data::String("needed-to-treat of ill, dose = low".into())
        })
        .collect();
    let ends = |row: usize| [&treat[row][program_place("low")], &treat[row][program_place("high")]];
    assert_eq!(treat.len(), 2);
    assert_eq!(ends(0), [&Data::Empty, &Data::Float(-25.31)]);
    assert_eq!(ends(1), [&Data::Float(142.0), &Data::Empty]);
    assert_eq!(treat[0][program_place("holm")], Data::Float(0.34));
}

/// What a study or a peer called something is never computed where a file is opened.
#[test]
fn no_label_becomes_a_formula() {
    let names = ["=1+1", "+1", "-1", "@SUM(A1)", " =1+1", "a\"b,c", "\u{ff1d}1", "-12"];
    let mut report = samples::program();
    let ResultView::Program { outputs, .. } = &mut report.view else { panic!("a program's") };
    let one = outputs[0].clone();
    *outputs = names.iter().map(|name| ProgramOutput { label: (*name).into(), ..one.clone() }).collect();
    outputs[0].value = "=2+2".into();
    outputs[2].value = "--5.0".into();
    report.party = "=cmd|' /C calc'!A0".into();
    let table = NumberTable::of(&report);
    let csv = table.csv();
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    for line in &lines {
        assert!(line.starts_with("'=cmd|"), "{line}");
    }
    let groups: Vec<&str> =
        lines.iter().map(|line| line.strip_prefix("'=cmd|' /C calc'!A0,").expect("it")).collect();
    for (group, cell) in
        groups.iter().zip(["'=1+1,", "'+1,", "'-1,", "'@SUM(A1),", "' =1+1,", "\"a\"\"b,c\","])
    {
        assert!(group.starts_with(cell), "{group}");
    }
    assert!(lines[0].contains(",'=2+2,") && lines[1].contains(",10422,"), "{}", lines[0]);
    assert!(lines[2].contains(",'--5.0,"), "{}", lines[2]);
    let rows = sheet(&table);
    assert_eq!(rows[1][program_place("value")], Data::String("=2+2".into()));
    let groups: Vec<&Data> = rows[1..].iter().map(|row| &row[program_place("group")]).collect();
    assert_eq!(groups, names.map(|name| Data::String(name.into())).iter().collect::<Vec<_>>());
    // A broken number is no number, and no cell breaks its line.
    let broken = NumberTable::of(&samples::broken_numbers()).csv();
    assert!(!broken.contains("NaN") && !broken.contains("inf"), "{broken}");
    let hostile = NumberTable::of(&samples::hostile()).csv();
    assert_eq!(hostile.lines().count(), NumberTable::of(&samples::shop()).csv().lines().count());
}

/// What may be passed on has what everybody sees, and nothing else.
#[test]
fn the_public_table_has_nothing_of_one_party() {
    let report = samples::both();
    let whole = NumberTable::of(&report).csv();
    let public = NumberTable::of_public(&PublicReport::of(&report).expect("it has one")).csv();
    let own = |line: &&str| line.starts_with("registry,");
    assert!(public.lines().skip(1).all(|line| line.starts_with("everybody,")), "{public}");
    assert!(whole.starts_with(&public) && whole.lines().filter(own).count() == 10, "{whole}");
}

/// A program has no column that would be empty in all its rows.
#[test]
fn a_programs_table_has_no_arms() {
    let csv = NumberTable::of(&samples::derived()).csv();
    let lines = lines(&csv);
    assert_eq!(lines[0][..PROGRAM_COLUMNS.len()], *PROGRAM_COLUMNS);
    assert!(lines[0].iter().all(|title| !["family", "column", "arm", "refused"].contains(title)));
    let estimates = csv.matches(",estimate,").count();
    let ResultView::Program { outputs, derived, .. } = samples::derived().view else { panic!("a program's") };
    let intervals: usize = derived.iter().map(|derived| derived.intervals.len().max(1)).sum();
    assert_eq!((estimates, lines.len()), (intervals, 1 + intervals + outputs.len()));
}

/// What was asked, of which column and of which group: a column each, by which a table can be turned.
#[test]
fn a_programs_groups_have_columns() {
    let (titles, rows) = {
        let table = NumberTable::of(&samples::derived());
        let (titles, rows) = table.objects();
        (titles.to_vec(), rows)
    };
    assert_eq!(titles[PROGRAM_COLUMNS.len()..], ["asked", "of", "spent", "dose"]);
    let told = |row: usize| ["asked", "of", "spent", "dose"].map(|title| rows[row].get(title).cloned());
    let text = |text: &str| Some(Value::from(text));
    assert_eq!(told(0), [text("rows"), None, text("0 to 10"), None]);
    assert_eq!(told(4), [text("mean"), text("spent"), None, text("low")]);
    assert_eq!(told(6), [text("ratio"), text("spent"), None, text("low against none")]);
    let sums = rows.iter().filter(|row| row["kind"] == "released");
    assert!(sums.clone().count() > 0 && sums.clone().all(|row| !row.contains_key("asked")));
    // A program that asks nothing has the columns of before, and no name takes another's place.
    let plain = NumberTable::of(&samples::program()).csv();
    assert_eq!(lines(&plain)[0], PROGRAM_COLUMNS);
    assert_eq!(["value", "of", "dose"].map(|name| group_title(name.into())), ["by value", "by of", "dose"]);
}

/// The last bits of a float are of no use to a reader; a program that goes on with it gets them all.
#[test]
fn what_is_computed_has_ten_digits() {
    let mut report = samples::registry();
    let ResultView::Lift(view) = &mut report.view else { panic!("a lift report") };
    let estimate = view.cells[0].estimate.as_mut().expect("it has one");
    (estimate.p_value, estimate.lift) = (4.999_999_999_999_999_6e-6, 0.1 + 0.2);
    let table = NumberTable::of(&report);
    let csv = table.csv();
    let cells = lines(&csv)[1].clone();
    assert_eq!([cells[place("p_value")], cells[place("value")]], ["0.000005", "0.3"]);
    let (_, rows) = table.objects();
    assert_eq!(rows[0]["value"], Value::from(0.1 + 0.2));
}

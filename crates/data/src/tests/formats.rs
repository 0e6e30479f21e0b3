//! Files as people have them: every form that is read, the same rows whatever the form, and what is refused.

mod handed_over;

use super::*;
use crate::gather::{ReadingMemory, SpoolRoom};
use crate::{RowStore, TableCell, advertiser, peek, publisher, read_rows};
use base::{Error, Seed};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook, Worksheet};
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::time::Duration;
use store::{RunState, StateKey, StateStore, StoreOptions};
use study::format::InputFormat;
use study::party::PartySettings;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// What a party file says under `[format]`.
fn said(lines: &str) -> InputFormat {
    let text = format!("study = \"s\"\nas = \"a\"\n[format]\n{lines}\n");
    PartySettings::parse("party.toml", &text).unwrap_or_else(|e| panic!("{e}")).format
}

fn data<'a>(path: &'a Path, format: &'a InputFormat) -> DataLocation<'a> {
    DataLocation { format, ..path.into() }
}

fn tag(rows: &RowStore) -> [u8; 32] {
    *rows.tag(&Seed::from_bytes([7; 32])).expect("in memory").as_bytes()
}

fn read_registry(path: &Path, format: &InputFormat) -> Result<([u8; 32], InputReport), Error> {
    publisher::read(data(path, format), &study(&[]), None).map(|(rows, report)| (tag(&rows), report))
}

/// Rows of the registry: a name that is not ASCII, and one that needs quotes.
const PLAIN: &str = "child_id,arm,injected\nzoë,vaccine,1954-04-26\n\"b;c|d\",placebo,1954-04-27\n";

fn utf16(text: &str, big: bool, marked: bool) -> Vec<u8> {
    let mark = marked.then_some(0xFEFF);
    let units = mark.into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

fn windows(text: &str) -> Vec<u8> {
    let (bytes, _, lost) = encoding_rs::WINDOWS_1252.encode(text);
    assert!(!lost);
    bytes.into_owned()
}

#[test]
fn the_rows_are_the_same_whatever_the_form() {
    let desk = Desk::new();
    let plain = read_registry(&desk.file("plain.csv", PLAIN), &InputFormat::NONE).expect("read").0;
    let dotted = PLAIN.replace("1954-04-26", "26.04.1954").replace("1954-04-27", "27.4.1954");
    let semicolons = "child_id;arm;injected\r\nzoë;vaccine;1954-04-26\r\n\"b;c|d\";placebo;1954-04-27\r\n";
    let tabs = "child_id\tarm\tinjected\nzoë\tvaccine\t1954-04-26\nb;c|d\tplacebo\t1954-04-27\n";
    // 1954-04-26 is day 19840 since 1899-12-30.
    let serials =
        PLAIN.replace("1954-04-26", "19840").replace("1954-04-27", "19841,0").replace("19841,0", "19841.0");
    let none = String::new();
    for (name, bytes, format, forms) in [
        ("dots.csv", dotted.into_bytes(), "dates = \"%d.%m.%Y\"".to_owned(), &[][..]),
        ("own.csv", PLAIN.into(), "dates = { other = \"%d.%m.%Y\" }".to_owned(), &[]),
        ("serials.csv", serials.into_bytes(), "dates = { injected = \"spreadsheet\" }".to_owned(), &[]),
        ("semicolons.csv", semicolons.into(), none.clone(), &["separator \";\""]),
        ("tabs.tsv", tabs.into(), none.clone(), &["separator \"tab\""]),
        ("bars.csv", tabs.replace('\t', "|").replace("c|d", "c\"d").into_bytes(), none.clone(), &["-"]),
        ("marked.csv", format!("\u{feff}{PLAIN}").into_bytes(), none.clone(), &[]),
        ("little.csv", utf16(PLAIN, false, true), none.clone(), &["encoding \"utf-16\""]),
        ("big.csv", utf16(PLAIN, true, true), none.clone(), &["encoding \"utf-16\""]),
        (
            "bare.csv",
            utf16(PLAIN, false, false),
            "encoding = \"utf-16\"".to_owned(),
            &["encoding \"utf-16\""],
        ),
        (
            "bare-big.csv",
            utf16(PLAIN, true, false),
            "encoding = \"utf-16\"".to_owned(),
            &["encoding \"utf-16\""],
        ),
        ("old.csv", windows(PLAIN), "encoding = \"latin-1\"".to_owned(), &["encoding \"windows-1252\""]),
    ] {
        let (rows, report) =
            read_registry(&desk.file(name, bytes), &said(&format)).unwrap_or_else(|e| panic!("{name}: {e}"));
        if forms == ["-"] {
            // Another identifier: only that it is read.
            assert_eq!(report.forms, ["separator \"|\""]);
            continue;
        }
        assert_eq!(rows, plain, "{name}");
        assert_eq!(report.forms, forms, "{name}");
    }
}

#[test]
fn what_may_be_two_things_is_refused_with_the_setting() {
    let desk = Desk::new();
    let error = |name: &str, bytes: &[u8], format: &str| {
        desk.clean(&read_registry(&desk.file(name, bytes), &said(format)).expect_err("refused"))
    };
    let rows = |header: &str, row: &str| format!("{header}\n{row}\n");
    // Whichever of the two is chosen, a column that is wanted is missing.
    assert_eq!(
        error("a.csv", rows("child_id;arm,injected", "a;vaccine,1954-04-26").as_bytes(), ""),
        "a.csv: the header line has \",\" and \";\", and any of them may stand between its fields; say which \
         does: separator = \",\" under [format] of the party file, or --separator"
    );
    // All that is wanted is there with one of them only.
    let noted = rows("child_id;arm;injected;notes, old", "a;vaccine;1954-04-26;x");
    assert!(read_registry(&desk.file("b.csv", noted), &InputFormat::NONE).is_ok());
    assert!(error("c.csv", b"child_id,arm,injected\n", "separator = \";\"").ends_with(
        "c.csv: no column \"child_id\"; the file has: child_id,arm,injected; does `separator` under \
             [format] say what stands between fields?"
    ));
    assert!(
        error("d.csv", b"sep=;\nchild_id;arm;injected\n", "")
            .starts_with("d.csv, line 1: a line for a spread")
    );
    assert_eq!(
        error("e.csv", &utf16(PLAIN, false, false), ""),
        "e.csv: looks like UTF-16 without a mark: if it is, add encoding = \"utf-16\" under [format] of the \
         party file (or --encoding utf-16)"
    );
    assert_eq!(
        error("f.csv", format!("\u{feff}{PLAIN}").as_bytes(), "encoding = \"latin-1\""),
        "f.csv: begins with the mark of UTF-8, and `encoding` says otherwise: remove it"
    );
    let mut cut = utf16(PLAIN, false, true);
    cut.pop();
    assert_eq!(
        error("g.csv", &cut, ""),
        "g.csv, after line 2: a character that is none in utf-16; was the file cut short, or is it in \
         another encoding?"
    );
    assert_eq!(
        error(
            "h.csv",
            &windows("child_id,arm,injected\r\na,vaccine,1954-04-26\r\nzoë,vaccine,1954-04-27\r\n"),
            ""
        ),
        "h.csv, line 3: not UTF-8 at byte 47 of the file; save it as UTF-8, or, if it is Latin-1 or \
         Windows-1252, add encoding = \"windows-1252\" under [format] of the party file (or --encoding \
         windows-1252)"
    );
    assert!(error("i.ods", b"PK", "").ends_with("i.ods: .ods is not read; save it as .xlsx or as CSV"));
    // A row with a separator too few says which.
    assert!(
        error("j.csv", b"child_id;arm;injected\r\na;vaccine\r\n", "")
            .ends_with("j.csv, line 2: 2 fields where the header has 3; is a quote or a \";\" missing?")
    );
}

#[test]
fn dates_of_another_form_are_refused_with_the_setting() {
    let desk = Desk::new();
    let error = |cell: &str, format: &str| {
        let path = desk.file("a.csv", registry(&format!("x,vaccine,1954-04-26\nb,vaccine,{cell}\n")));
        desk.clean(&read_registry(&path, &said(format)).expect_err("refused"))
    };
    let hint = "a.csv, line 3, column \"injected\": \"46082\" looks like the number that a spreadsheet gives \
                to 2026-03-01: format the cells as dates, or add dates = \"spreadsheet\" under [format] of \
                the party file (or --dates spreadsheet)";
    assert_eq!(error("46082", ""), hint);
    assert_eq!(error("46082.5", ""), hint.replace("46082\"", "46082.5\""));
    assert!(error("400", "").contains("after the study's last time"));
    assert!(error("26/04/1954", "").contains("another form is said by dates = \"%d.%m.%Y\""));
    assert!(error("1954-04-26T10:00:00", "").contains("add zone = \"+02:00\", or \"Europe/Berlin\", under"));
    let of_form = "dates = [\"%d.%m.%Y\", \"%d.%m.%Y %H:%M\"]";
    assert!(
        error("27.04.1954 10:00", of_form).contains("is a date-time without offset: add zone = \"+02:00\""),
    );
    assert_eq!(
        error("30.02.1954", of_form).lines().last(),
        Some(
            "a.csv, line 3, column \"injected\": \"30.02.1954\" is no date in the form %d.%m.%Y or %d.%m.%Y \
             %H:%M, which `dates` says"
        )
    );
    // Where a form is said, it is the only one.
    assert!(error("1954-04-27", "dates = \"%d.%m.%Y\"").contains("line 2"));
}

#[test]
fn a_zone_places_times_that_have_none() {
    let desk = Desk::new();
    let hours = study(&[("unit   = \"day\"", "unit   = \"hour\""), ("span   = 365", "span   = 8760")]);
    let read = |cell: &str, format: &str| {
        let path = desk.file("a.csv", registry(&format!("a,vaccine,{cell}\n")));
        let (rows, _) =
            publisher::read(data(&path, &said(format)), &hours, None).unwrap_or_else(|e| panic!("{e}"));
        tag(&rows)
    };
    let nine = read("1954-04-26T09:00:00Z", "");
    assert_eq!(read("1954-04-26T10:00:00", "zone = \"+01:00\""), nine);
    assert_eq!(read("1954-04-26T04:00:00", "zone = \"-05:00\""), nine);
    assert_eq!(read("26.04.1954 10:00", "zone = \"+01:00\"\ndates = \"%d.%m.%Y %H:%M\""), nine);
    assert_eq!(read("19840.375", "zone = \"Z\"\ndates = \"spreadsheet\""), nine);
    // Summer time, whose dates were not those of today.
    assert_eq!(read("1954-04-26T05:00:00", "zone = \"America/New_York\""), read("1954-04-26T09:00:00Z", ""));
    assert_eq!(read("1954-04-25T00:30:00", "zone = \"America/New_York\""), read("1954-04-25T05:30:00Z", ""));
    for (cell, expected) in [
        (
            "1954-04-25T02:30:00",
            "never was in America/New_York, as clocks were put forward: correct the cell, or",
        ),
        (
            "1954-09-26T01:30:00",
            "was there twice in America/New_York, as clocks were put back: write its offset in",
        ),
    ] {
        let path = desk.file("a.csv", registry(&format!("a,vaccine,{cell}\n")));
        let format = said("zone = \"America/New_York\"");
        let error = publisher::read(data(&path, &format), &hours, None).err().expect("no instant");
        assert!(error.to_string().contains(expected), "{error}");
    }
    // A date is a day of UTC, and an offset of its own stands.
    assert_eq!(read("1954-04-26", "zone = \"+01:00\""), read("1954-04-26", ""));
    assert_eq!(read("1954-04-26T09:00:00Z", "zone = \"+01:00\""), nine);
}

const MONEY: (&str, &str) =
    ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\", unit = \"EUR\", scale = 100 }");

/// Times and values of the events of each row.
type EventLists = Vec<Vec<(u32, u32)>>;

/// What the hospitals have of these lines: times and values by identifier, and what reading counted.
fn events(lines: &str, format: &str, changes: &[(&str, &str)]) -> Result<(EventLists, InputReport), String> {
    let desk = Desk::new();
    let path = desk.file("a.csv", lines);
    let read = advertiser::read(data(&path, &said(format)), &study(changes), ADVERTISER, None);
    let (rows, report) = read.map_err(|e| desk.clean(&e))?;
    let Rows::Advertiser(rows) = &**rows.in_memory("a test").unwrap() else { panic!("an advertiser's") };
    let of = |row| {
        let (times, values) = rows.events(row);
        times.iter().copied().zip(values.iter().copied()).collect()
    };
    Ok(((0..rows.len()).map(of).collect(), report))
}

#[test]
fn amounts_have_the_decimals_of_their_scale() {
    let lines = |cell: &str| format!("child_id;onset;severity;amount\r\na;200;paralytic;{cell}\r\n");
    let value =
        |cell: &str, format: &str| events(&lines(cell), format, &[MONEY]).map(|(rows, _)| rows[0][0].1);
    assert_eq!(value("149.28", ""), Ok(14_928));
    assert_eq!(value("149,28", "decimal = \",\""), Ok(14_928));
    assert_eq!(value("1.149,5", "decimal = \",\""), Ok(114_950));
    assert_eq!(value("7", ""), Ok(700));
    assert_eq!(value("42949672.95", ""), Ok(u32::MAX));
    assert_eq!(
        value("1,50", ""),
        Err("a.csv, line 2, column \"amount\": \"1,50\" has a comma: if decimals stand behind it, \
             add decimal = \",\" under [format] of the party file (or --decimal ,)"
            .to_owned())
    );
    assert_eq!(
        value("1149.285", ""),
        Err("a.csv, line 2, column \"amount\": \"1149.285\" has more decimals than the study's scale = 100 \
             takes; round it, or agree on a finer one"
            .to_owned())
    );
    assert!(value("1.149", "decimal = \",\"").unwrap_err().contains("add thousands = \".\""));
    assert_eq!(value("1.149", "thousands = \".\""), Ok(114_900));
    assert_eq!(value("1.149,5", "thousands = \".\""), Ok(114_950));
    assert!(value("42949672.96", "").unwrap_err().contains("is out of range"));
    assert_eq!(value("+5", ""), Ok(500));
    for (wrong, cure) in [
        ("+-5", ""),
        ("EUR 5", "; write amounts without the sign or name of a currency"),
        ("6.01 \u{20ac}", "; write amounts without the sign or name of a currency"),
        ("1.234.567", "; if points separate thousands, add decimal = \",\""),
    ] {
        let told = value(wrong, "").unwrap_err();
        assert!(told.contains(&format!("is not a number such as 12 or 149.28{cure}")), "{told}");
    }
    assert_eq!(value("12.345.678", "decimal = \",\""), Ok(1_234_567_800));
}

/// What stands above the names of columns is no row.
#[test]
fn lines_above_the_header_are_named_and_skipped() {
    let rows = "child_id;onset;severity;amount\r\na;200;paralytic;5\r\nb;201;paralytic;x\r\n";
    let title = format!("Export vom 03.02.2026\r\n\r\n{rows}");
    let whole = |text: &str, format: &str| events(text, format, &[MONEY]).map(|_| ()).unwrap_err();
    for title in [title.clone(), format!("Export;;;\r\nBonn\r\n{rows}")] {
        let error = whole(&title, "");
        assert!(
            error.contains("line 3 has 4 cells, and the first line has one: if that is a title"),
            "{error}"
        );
        assert!(error.contains("(or --header-line 3)"), "{error}");
    }
    let error = whole(&title, "header_line = 3");
    assert!(error.starts_with("a.csv, line 5, column \"amount\": \"x\" is not a number"), "{error}");
    assert_eq!(whole(&title, "header_line = 9"), "a.csv: header_line is 9, and the file has 5 lines");
    assert!(whole(rows, "header_line = 1").starts_with("a.csv, line 3, column"));
    let said = "sep=;\r\nchild_id;onset;severity;amount\r\na;200;paralytic;5\r\n";
    assert_eq!(events(said, "header_line = 2", &[MONEY]).unwrap().0, [[(200, 500)]]);
}

#[test]
fn refunds_are_a_mistake_or_left_out_or_taken_off() {
    let lines = "child_id,onset,severity,amount\na,10,paralytic,50\na,20,paralytic,30.00\na,30,paralytic,\
                 -40\nb,10,paralytic,-5\nc,10,paralytic,5\nc,10,paralytic,-5.00\nc,9,paralytic,1\n";
    let with =
        |rule: &str| (MONEY.0, MONEY.1.replace("scale = 100", &format!("scale = 100, negative = {rule}")));
    let read = |rule: &str| {
        let (from, to) = with(rule);
        let (mut rows, report) = events(lines, "", &[(from, &to)])?;
        rows.sort();
        Ok::<_, String>((rows, report))
    };
    let (rows, report) = read("\"leave-out\"").expect("read");
    assert_eq!(rows, [vec![], vec![(9, 100), (10, 500)], vec![(10, 5000), (20, 3000)]]);
    assert_eq!((report.refunds_left_out, report.events_seen, report.without_events), (3, 4, 1));
    let (rows, report) = read("\"net\"").expect("read");
    assert_eq!(rows, [vec![], vec![(9, 100)], vec![(10, 4000)]]);
    let counts =
        [report.refunds_taken_off, report.refunds_beyond, report.events_refunded, report.events_seen];
    assert_eq!(counts, [3, 1, 2, 4]);
    assert!(
        read("\"error\"").unwrap_err().contains("line 4, column \"amount\": \"-40\" is negative: if it is a")
    );
}

/// Events of one identifier come from all over the file: rows that go to disk are netted all the same.
#[test]
fn refunds_are_taken_off_in_rows_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "child_id,onset,severity,amount\n".to_owned();
    for round in 0..6 {
        for person in 0..300 {
            let amount = if round % 2 == 1 { -(person + 7) } else { 3 * person };
            text += &format!("p{person},{},paralytic,{amount}\n", 10 * round + person % 7);
        }
    }
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    let study = study(&[("{ constant = 1 }", "{ column = \"amount\", type = \"u32\", negative = \"net\" }")]);
    let store =
        || StateStore::open(folder.path().join("s").to_str().unwrap(), &StoreOptions::default()).unwrap();
    let memory = ReadingMemory {
        lines: 4 << 10,
        rows: u64::MAX,
        runs: store::RUN_MEMORY,
        readers: 1,
        partition: 1 << 10,
        partition_most: 64 << 10,
    };
    let room = SpoolRoom::new(memory, || RunState::begin(store(), &StateKey::fresh(), "a", Duration::MAX));
    let (parts, of_parts) =
        read_rows(&path, &study, ADVERTISER, Some(&room)).unwrap_or_else(|e| panic!("{e}"));
    let (whole, report) = read_rows(&path, &study, ADVERTISER, None).unwrap_or_else(|e| panic!("{e}"));
    assert!(parts.spool().is_some());
    assert_eq!(tag(&whole), tag(&parts));
    assert_eq!(report, InputReport { memory: report.memory, ..of_parts });
    assert!(report.refunds_taken_off == 900 && report.refunds_beyond > 0 && report.events_refunded > 0);
}

/// A sheet with the registry's header, and what else `fill` writes.
fn workbook(fill: impl Fn(&mut Worksheet)) -> Vec<u8> {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (at, name) in ["child_id", "arm", "injected", "notes"].iter().enumerate() {
        sheet.write(1, at as u16, *name).unwrap();
    }
    fill(sheet);
    book.save_to_buffer().unwrap()
}

fn day(text: &str) -> ExcelDateTime {
    ExcelDateTime::parse_from_str(text).unwrap()
}

#[test]
fn excel_files_are_read_with_their_dates() {
    let desk = Desk::new();
    let plain = "child_id,arm,injected\n17,vaccine,1954-04-26\nzoë,placebo,1954-04-27\n";
    let plain = read_registry(&desk.file("plain.csv", plain), &InputFormat::NONE).expect("read").0;
    let date = Format::new().set_num_format("dd.mm.yyyy");
    let bytes = workbook(|sheet| {
        sheet.write(2, 0, 17).unwrap();
        sheet.write(2, 1, "vaccine").unwrap();
        sheet.write_with_format(2, 2, day("1954-04-26"), &date).unwrap();
        sheet.write(2, 3, 1.5).unwrap();
        // A row without a cell is none; cells beyond the header are nobody's.
        sheet.write(4, 0, " zoë ").unwrap();
        sheet.write(4, 1, "placebo").unwrap();
        sheet.write(4, 2, "1954-04-27").unwrap();
        sheet.write(4, 9, "beside").unwrap();
    });
    let path = desk.file("rows.xlsx", &bytes);
    let (rows, report) = read_registry(&path, &InputFormat::NONE).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((rows, report.forms, report.rows_read), (plain, vec!["sheet \"Sheet1\"".to_owned()], 2));
    let titled = workbook(|sheet| {
        sheet.write(0, 0, "Export").unwrap();
        sheet.write_row(2, 0, ["17", "vaccine", "1954-04-26"]).unwrap();
        sheet.write_row(3, 0, ["zoë", "placebo", "1954-04-27"]).unwrap();
    });
    let path = desk.file("titled.xlsx", &titled);
    let error = read_registry(&path, &InputFormat::NONE).expect_err("a title").to_string();
    assert!(error.contains("titled.xlsx: row 2 has 4 cells, and the first row has one"), "{error}");
    assert_eq!(read_registry(&path, &said("header_line = 2")).expect("read").0, plain);
    let wrong = workbook(|sheet| {
        for row in [2, 3] {
            sheet.write(row, 0, row).unwrap();
            sheet.write(row, 1, "vaccine").unwrap();
        }
        sheet.write(2, 2, 46_082).unwrap();
        sheet.write_with_format(3, 2, day("1954-04-26 10:30:00"), &date).unwrap();
        sheet.write(5, 0, 12_345_678_901_234_567_890.0).unwrap();
        sheet.write(5, 1, "vaccine").unwrap();
        sheet.write(5, 2, "1954-04-26").unwrap();
        sheet.write_formula(4, 0, Formula::new("=NA()").set_result("#N/A")).unwrap();
        sheet.write(4, 1, "vaccine").unwrap();
    });
    let error = read_registry(&desk.file("wrong.xlsx", wrong), &InputFormat::NONE).expect_err("refused");
    let error = desk.clean(&error);
    for part in [
        "wrong.xlsx, sheet \"Sheet1\", row 3, column \"injected\": 46082 looks like the number that a \
         spreadsheet gives to 2026-03-01",
        "row 4, column \"injected\": the time 1954-04-26T10:30:00 is a date-time without offset: add \
         zone = \"+02:00\"",
        "row 5, column \"child_id\": the cell is #N/A: its formula failed",
        "row 6, column \"child_id\": a number that is not whole, or has more digits than a number keeps",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

/// Amounts as a sheet computes them, with bits behind the digits that it shows.
#[test]
fn amounts_of_a_sheet_have_the_digits_that_it_shows() {
    let desk = Desk::new();
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write_row(0, 0, ["child_id", "onset", "severity", "amount"]).unwrap();
    for (row, amount) in [0.1 + 0.2, 19.98 * 3.0, 7.0, 149.28].into_iter().enumerate() {
        let row = row as u32 + 1;
        sheet.write(row, 0, row).unwrap();
        sheet.write(row, 1, 200).unwrap();
        sheet.write(row, 2, "paralytic").unwrap();
        sheet.write(row, 3, amount).unwrap();
    }
    let bytes = book.save_to_buffer().unwrap();
    let path = desk.file("a.xlsx", &bytes);
    let (rows, _) = read_advertiser(&path, &study(&[MONEY]), ADVERTISER).unwrap_or_else(|e| panic!("{e}"));
    let mut values = rows.values.clone();
    values.sort_unstable();
    assert_eq!(values, [30, 700, 5_994, 14_928]);
    // A file that is cut or damaged is an error, or reads as something, and never a panic.
    for at in (0..bytes.len()).step_by(61) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        for wrong in [&bytes[..at], &damaged[..]] {
            let path = desk.file("a.xlsx", wrong);
            let _ = read_advertiser(&path, &study(&[MONEY]), ADVERTISER);
        }
    }
}

#[test]
fn a_sheet_is_named_where_there_are_several() {
    let desk = Desk::new();
    let mut book = Workbook::new();
    for name in ["2025", "2026", "notes"] {
        let sheet = book.add_worksheet().set_name(name).unwrap();
        sheet.write_row(0, 0, ["child_id", "arm", "injected"]).unwrap();
        sheet.write_row(1, 0, [name, "vaccine", "1954-04-26"]).unwrap();
    }
    let path = desk.file("rows.xlsx", book.save_to_buffer().unwrap());
    let error = |format: &str| desk.clean(&read_registry(&path, &said(format)).expect_err("refused"));
    assert_eq!(
        error(""),
        "rows.xlsx: which sheet? The file has: \"2025\", \"2026\", \"notes\"; add sheet = \"...\" under \
         [format] of the party file, or --sheet"
    );
    assert_eq!(
        error("sheet = \"2027\""),
        "rows.xlsx: no sheet \"2027\"; the file has: \"2025\", \"2026\", \"notes\""
    );
    let (_, report) = read_registry(&path, &said("sheet = \"2026\"")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((report.forms, report.rows_kept), (vec!["sheet \"2026\"".to_owned()], 1));
    let broken = desk.file("broken.xlsx", b"PK no archive");
    let error = desk.clean(&read_registry(&broken, &InputFormat::NONE).expect_err("refused"));
    assert!(error.starts_with("broken.xlsx: cannot be read as an .xlsx file ("), "{error}");
    let large = desk.file("large.xlsx", "");
    std::fs::File::options().write(true).open(&large).unwrap().set_len(crate::SHEET_BYTES + 1).unwrap();
    let error = desk.clean(&read_registry(&large, &InputFormat::NONE).expect_err("refused"));
    assert_eq!(error, "large.xlsx: larger than 64 MiB, the most of a spreadsheet; save it as CSV");
}

/// What is listed as a column's values are labels that a reader finds again.
#[test]
fn dates_and_decimals_of_a_sheet_are_no_labels() {
    let desk = Desk::new();
    let date = Format::new().set_num_format("dd.mm.yyyy");
    let book = workbook(|sheet| {
        for row in 2..8 {
            sheet.write(row, 0, row).unwrap();
            sheet.write(row, 1, if row % 2 == 0 { "vaccine" } else { "placebo" }).unwrap();
            sheet.write_with_format(row, 2, day("1954-04-26"), &date).unwrap();
            sheet.write(row, 3, f64::from(row % 2) + 0.5).unwrap();
        }
    });
    let path = desk.file("labels.xlsx", &book);
    let seen = crate::survey::survey((&path).into()).unwrap_or_else(|e| panic!("{e}"));
    let values: Vec<usize> = seen.columns.iter().map(|column| column.values.len()).collect();
    assert_eq!(values, [6, 2, 0, 0]);
    let distinct: Vec<u64> = seen.columns.iter().map(|column| column.distinct).collect();
    assert_eq!(distinct, [6, 2, 1, 2]);
}

/// The same archive with parts rewritten by `change`.
fn repacked(book: &[u8], change: impl Fn(&str, String) -> String) -> Vec<u8> {
    let mut from = ZipArchive::new(Cursor::new(book)).unwrap();
    let mut to = ZipWriter::new(Cursor::new(Vec::new()));
    for at in 0..from.len() {
        let mut part = from.by_index(at).unwrap();
        let (mut text, name) = (String::new(), part.name().unwrap().into_owned());
        part.read_to_string(&mut text).unwrap();
        to.start_file(&name, SimpleFileOptions::default()).unwrap();
        to.write_all(change(&name, text).as_bytes()).unwrap();
    }
    to.finish().unwrap().into_inner()
}

/// The same archive, which states another size of a part in its directory.
fn restated(book: &[u8], part: &str, size: u32) -> Vec<u8> {
    let mut bytes = book.to_vec();
    let places = bytes.windows(4).enumerate().filter(|(_, four)| four == b"PK\x01\x02").map(|(at, _)| at);
    let entries: Vec<usize> = places.filter(|at| bytes[at + 46..].starts_with(part.as_bytes())).collect();
    let [entry] = entries[..] else { panic!("{part} stands {} times", entries.len()) };
    let local = u32::from_le_bytes(bytes[entry + 42..entry + 46].try_into().unwrap()) as usize;
    for at in [entry + 24, local + 22] {
        bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
    }
    bytes
}

/// What a spreadsheet unpacks to is bounded by what its archive states, and by the limits.
#[test]
fn a_spreadsheet_does_not_unpack_to_more_than_a_limit() {
    let desk = Desk::new();
    let good = workbook(|sheet| {
        sheet.write_row(2, 0, ["17", "vaccine", "1954-04-26"]).unwrap();
    });
    let error = |bytes: Vec<u8>| {
        let path = desk.file("rows.xlsx", bytes);
        desk.clean(&read_registry(&path, &InputFormat::NONE).expect_err("refused"))
    };
    let [sheet, texts] = ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"];
    assert_eq!(
        error(restated(&good, sheet, 1 << 31)),
        "rows.xlsx: it unpacks to more than 1024 MiB, the most of a spreadsheet; save it as CSV"
    );
    assert_eq!(
        error(restated(&good, texts, 300 << 20)),
        "rows.xlsx: its texts and styles unpack to more than 256 MiB, the most of a spreadsheet; save it as \
         CSV"
    );
    // More than it states does not come out of it.
    for part in [sheet, texts] {
        let refused = error(restated(&good, part, 100));
        assert!(refused.contains("larger than its declared uncompressed size"), "{refused}");
    }
    let many = repacked(&good, |_, text| text.replace("uniqueCount=\"", "uniqueCount=\"1000000000000000"));
    assert!(error(many).contains("it says that it has more texts than fit"));
    let same = desk.file("rows.xlsx", repacked(&good, |_, text| text));
    assert_eq!(read_registry(&same, &InputFormat::NONE).expect("read").1.rows_read, 1);
}

/// Libraries that write formulas compute none: such a cell is refused where it is wanted.
#[test]
fn a_formula_that_was_saved_without_its_value_is_refused() {
    let desk = Desk::new();
    // The column of the registry that has formulas, and what they come to.
    let book = |column: u16, result: &str| {
        workbook(|sheet| {
            for row in [2, 3] {
                sheet.write_row(row, 0, ["1", "vaccine", "1954-04-26"]).unwrap();
                sheet.write(row, 0, row).unwrap();
                let formula = Formula::new("=A1").set_result(result);
                sheet.write_formula(row, column, formula).unwrap();
            }
        })
    };
    let read = |bytes: Vec<u8>| {
        let read = read_registry(&desk.file("rows.xlsx", bytes), &InputFormat::NONE);
        read.map(|(_, report)| report.rows_read).map_err(|error| desk.clean(&error))
    };
    let without = |bytes: Vec<u8>, value: &str| {
        repacked(&bytes, |_, text| text.replace(&format!("</f><v>{value}</v>"), "</f>"))
    };
    let todo = "open the file in a spreadsheet program and save it there";
    assert_eq!(
        read(without(book(1, "7"), "7")),
        Err(format!(
            "rows.xlsx, sheet \"Sheet1\", cell B3 (and 1 more): its formula was saved without its value; \
             {todo}"
        ))
    );
    // A number that a library writes in its place; a spreadsheet program asks for no computing.
    let zero = "its formula says 0, which stands there as well where the program that wrote the file \
                computed nothing";
    assert_eq!(
        read(book(1, "0")),
        Err(format!("rows.xlsx, sheet \"Sheet1\", cell B3 (and 1 more): {zero}; {todo}"))
    );
    let computed = repacked(&book(1, "0"), |_, text| text.replace(" fullCalcOnLoad=\"1\"", ""));
    let refused = read(computed).unwrap_err();
    assert!(refused.contains("row 3, column \"arm\": 0 is"), "{refused}");
    assert_eq!(read(book(1, "vaccine")), Ok(2));
    // Nobody wants that column.
    assert_eq!((read(book(3, "0")), read(without(book(3, "7"), "7"))), (Ok(2), Ok(2)));
    // Who looks at all columns does not know which will be wanted.
    let path = desk.file("rows.xlsx", without(book(3, "7"), "7"));
    let seen = crate::survey::survey((&path).into()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((seen.read, seen.columns[0].filled), (2, 2));
    // A formula that comes to an empty text has a value: nothing.
    let nothing = repacked(&book(1, "vaccine"), |_, text| text.replace("</f><v>vaccine</v>", "</f><v></v>"));
    let refused = read(nothing).unwrap_err();
    assert!(refused.contains("row 3, column \"arm\": empty is"), "{refused}");
}

/// Where cells show the time of day, midnight is one, in the zone that is said; days are days of UTC.
#[test]
fn midnight_is_a_time_of_day_where_that_is_shown() {
    let desk = Desk::new();
    let plain = |name: &str, times: [&str; 2], format: &InputFormat| {
        let text = format!("child_id,arm,injected\n17,vaccine,{}\n18,placebo,{}\n", times[0], times[1]);
        read_registry(&desk.file(name, text), format).unwrap_or_else(|e| panic!("{e}")).0
    };
    let excel = |code: &str, times: [&str; 2], format: &InputFormat| {
        let shown = Format::new().set_num_format(code);
        let book = workbook(|sheet| {
            for (row, (id, arm, time)) in
                [(17, "vaccine", times[0]), (18, "placebo", times[1])].iter().enumerate()
            {
                let row = row as u32 + 2;
                sheet.write(row, 0, *id).unwrap();
                sheet.write(row, 1, *arm).unwrap();
                sheet.write_with_format(row, 2, day(time), &shown).unwrap();
            }
        });
        read_registry(&desk.file("rows.xlsx", book), format).unwrap_or_else(|e| panic!("{e}")).0
    };
    let (unsaid, zone) = (InputFormat::NONE, said("zone = \"+02:00\""));
    let days = plain("days.csv", ["1954-04-26", "1954-04-27"], &zone);
    let times = plain("times.csv", ["1954-04-26T00:00:00", "1954-04-27T10:30:00"], &zone);
    let midnights = plain("midnights.csv", ["1954-04-26T00:00:00", "1954-04-27T00:00:00"], &zone);
    assert_ne!(days, midnights, "a midnight east of UTC is of the day before");
    // Text and cells say alike that such midnights are days.
    let zeros = said("zone = \"+02:00\"\ndates = \"%Y-%m-%dT%0:%0:%0\"");
    assert_eq!(plain("zeros.csv", ["1954-04-26T00:00:00", "1954-04-27T00:00:00"], &zeros), days);
    for code in ["dd.mm.yyyy hh:mm", "yyyy-mm-dd\\ hh:mm:ss", "m/d/yy h:mm", "[$-409]m/d/yy h:mm AM/PM;@"] {
        assert_eq!(excel(code, ["1954-04-26", "1954-04-27 10:30:00"], &zone), times, "{code}");
        assert_eq!(excel(code, ["1954-04-26", "1954-04-27"], &zone), midnights, "{code}");
        assert_eq!(excel(code, ["1954-04-26", "1954-04-27"], &zeros), days, "{code}");
        // Where no zone is said, every cell of the column is at midnight, or one is refused.
        assert_eq!(excel(code, ["1954-04-26", "1954-04-27"], &unsaid), days, "{code}");
    }
    for code in ["dd.mm.yyyy", "yyyy-mm-dd;@", "[$-409]d-mmm-yy", "yyyy\"h\"mm\\hdd_s", "mm-dd-yy"] {
        assert_eq!(excel(code, ["1954-04-26", "1954-04-27"], &zone), days, "{code}");
    }
}

#[test]
fn the_first_rows_are_shown_with_all_their_columns() {
    let desk = Desk::new();
    let path = desk.file("a.csv", "id;amount;day\n1;1,50;26.04.1954\n2;;27.04.1954\n3;2;28.04.1954\n");
    let mut seen = Vec::new();
    let table = peek(&path, 2, &mut |columns, cells, place| {
        assert_eq!(columns.len(), cells.len());
        assert!(place().ends_with(&format!("a.csv, line {}", seen.len() + 2)), "{}", place());
        seen.push(cells.iter().map(|cell| cell.shown()).collect::<Vec<_>>().join(" "));
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((table.columns.join(" "), table.rows), ("id amount day".to_owned(), 2));
    assert_eq!((table.forms, seen.len()), (vec!["separator \";\"".to_owned()], 2));
    assert_eq!(seen, ["\"1\" \"1,50\" \"26.04.1954\"", "\"2\" empty \"27.04.1954\""]);
    // Separators at the ends of lines are columns without names.
    let path = desk.file("ends.csv", "id;amount;;\n1;2;;\n");
    let table =
        peek(&path, 2, &mut |_, cells, _| assert_eq!(cells.len(), 2)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(table.columns, ["id", "amount"]);
    let book = workbook(|sheet| {
        sheet.write(2, 0, 1).unwrap();
        sheet.write(2, 3, true).unwrap();
    });
    let path = desk.file("b.xlsx", book);
    let mut cells_seen = 0;
    peek(&path, 9, &mut |_, cells, _| {
        assert_eq!(
            cells,
            [TableCell::Integer(1), TableCell::Empty, TableCell::Empty, TableCell::Boolean(true)]
        );
        cells_seen += 1;
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(cells_seen, 1);
}

/// Text that streams, packed text, and a file of which parts are read.
#[test]
fn files_that_were_written_again_are_known_by_what_they_hold() {
    let desk = Desk::new();
    let folder = desk.0.path().join("all");
    std::fs::create_dir(&folder).unwrap();
    let plain = desk.file("all/a.csv", registry("1,vaccine,1954-04-26\n2,placebo,1954-04-27\n"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(registry("3,vaccine,1954-04-26\n").as_bytes()).unwrap();
    let packed = desk.file("all/b.csv.gz", gzip.finish().unwrap());
    let parts = parquet(&desk, "all/c.parquet", three(["vaccine", "placebo", "vaccine"]));
    let state = desk.0.path().join("state");
    let read = |[keeps, always]: [bool; 2], readers: usize| {
        let store = || StateStore::open(state.to_str().unwrap(), &StoreOptions::default());
        let begin = || RunState::begin(store()?, &StateKey::fresh(), "somebody", Duration::MAX);
        let memory = ReadingMemory { readers, runs: store::RUN_MEMORY, ..ReadingMemory::UNBOUNDED };
        let room = SpoolRoom::new(memory, begin).always(always).keeping_content(keeps);
        publisher::read(folder.as_path().into(), &study(&[]), Some(&room)).unwrap();
        room.content()
    };
    assert!(read([false, true], 1).is_none(), "what nobody wants is not hashed");
    assert!(read([true, false], 1).is_none(), "nor what lies in memory");
    let content = read([true; 2], 1).expect("files of this machine");
    assert_eq!(read([true; 2], 3), Some(content), "side by side");
    let same = || content.is_of(&folder).unwrap();
    for path in [&plain, &packed, &parts] {
        let bytes = std::fs::read(path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(!same(), "{} is not there", path.display());
        std::fs::write(path, &bytes).unwrap();
        assert!(same(), "{} was written again", path.display());
        // In the middle, and behind all that a reader of columns looks at.
        for at in [bytes.len() / 2, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            std::fs::write(path, other).unwrap();
            assert!(!same(), "byte {at} of {} is another one", path.display());
        }
        std::fs::write(path, [&bytes[..], b"\n"].concat()).unwrap();
        assert!(!same(), "{} is longer", path.display());
        std::fs::write(path, &bytes).unwrap();
    }
    let said = said("separator = \",\"");
    assert!(!content.is_of(data(&folder, &said)).unwrap(), "another form");
    std::fs::rename(&plain, folder.join("d.csv")).unwrap();
    assert!(!same(), "another name");
    std::fs::rename(folder.join("d.csv"), &plain).unwrap();
    assert!(same());
}

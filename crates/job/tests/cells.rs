//! Cells that are labels, days, money, negative or missing: what a program makes of them, against the truth
//! of the files, by every form of match and engine. Threads of one process, TLS on loopback.

mod both;
mod common;

use arrow_array::{ArrayRef, Decimal128Array, RecordBatch, StringArray};
use both::{both, whole};
use common::parties::{PartyFile, make_key};
use common::{SALTED, SERVERS, World, all, outputs, quiet};
use job::run::Watch;
use report::RunReport;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const STUDY: &str = r#"
format = "tacit-study/1"
name   = "cells"
kind   = "program"
title  = "What people of the clinic spent"
[party.clinic]
key = "@clinic"
[party.shop]
key = "@shop"
[match]
protocol    = "pid"
identifiers = [ { name = "id", normalise = ["trim"] } ]
duplicates  = "error"
[columns]
arm     = { party = "clinic", column = "arm" }
seen    = { party = "clinic", column = "seen" }
treated = { party = "clinic", column = "treated" }
spent   = { party = "shop", column = "spent" }
[program]
text = """
tacit-program/2
name "cells"
class exact
party clinic
party shop
column arm u2 clinic labels "placebo" "low" "high"
column seen u16 clinic date missing
column treated bit clinic
column spent i20 shop scale 100 unit "EUR" missing
row
arm = column arm
seen = column seen
treated = column treated
spent = column spent
low = const "low" arm
is-low = eq arm low
spring = const 2026-03-01 seen
before = lt seen spring
none = const 0 spent
stand-in = const -2.50 spent
spent-low = select is-low spent none
spent-before = select before spent none
filled = default spent stand-in
is-spent = known spent
refund = lt spent none
treated-refund = and treated refund
combine
a = sum is-low u40
b = sum spent-low i60
c = sum before u40
d = sum spent-before i60
e = sum filled i60
f = sum is-spent u40
g = sum treated-refund u40
release
a = total a
b = total b
c = total c
d = total d
e = total e
f = total f
g = total g
reveal a clinic "of the low arm"
reveal b clinic "their spending"
reveal c clinic "seen before spring"
reveal d clinic "spending of those seen before spring"
reveal e clinic "spending, -2.50 where it is missing"
reveal f clinic "whose spending is known"
reveal g clinic "treated, with a refund"
"""
"#;

const ARMS: [&str; 3] = ["placebo", "low", "high"];

/// What both have of a person. Days from 2026-01-01; cents.
struct Person {
    arm: usize,
    day: Option<u32>,
    treated: bool,
    cents: Option<i64>,
}

fn person(i: i64) -> Person {
    let day = (i % 7 != 3).then_some((i * 13 % 120) as u32);
    let cents = (i % 5 != 1).then_some((i * 7919) % 60_001 - 20_000);
    Person { arm: (i % 3) as usize, day, treated: i % 4 < 2, cents }
}

fn date(day: u32) -> String {
    let (mut month, mut day) = (1, day + 1);
    for length in [31, 28, 31, 30] {
        if day > length {
            (month, day) = (month + 1, day - length);
        }
    }
    format!("2026-{month:02}-{day:02}")
}

/// Writes both files, of 600 people; the answer over those that pass `matched`.
fn write(folder: &Path, shop: std::ops::Range<i64>) -> Vec<String> {
    let mut clinic = "id,arm,seen,treated\n".to_owned();
    for i in 0..600 {
        let p = person(i);
        let words = if i % 2 == 0 { ["No", "yes"] } else { ["0", "TRUE"] };
        let day = p.day.map_or(String::new(), date);
        clinic += &format!("p{i},{},{day},{}\n", ARMS[p.arm], words[usize::from(p.treated)]);
    }
    std::fs::write(folder.join("clinic.csv"), clinic).unwrap();
    let mut lines = "id,spent\n".to_owned();
    for i in shop.clone() {
        let money =
            |c: i64| format!("{}{}.{:02}", if c < 0 { "-" } else { "" }, c.abs() / 100, c.abs() % 100);
        lines += &format!("p{i},{}\n", person(i).cents.map_or(String::new(), money));
    }
    std::fs::write(folder.join("shop.csv"), lines).unwrap();
    let matched: Vec<Person> = shop.filter(|i| *i < 600).map(person).collect();
    let count = |passes: &dyn Fn(&Person) -> bool| matched.iter().filter(|p| passes(p)).count() as i64;
    let sum = |passes: &dyn Fn(&Person) -> bool| {
        matched.iter().filter(|p| passes(p)).filter_map(|p| p.cents).sum::<i64>()
    };
    let before = |p: &Person| p.day.is_some_and(|day| day < 59);
    let missing = count(&|p| p.cents.is_none());
    let truth = [
        count(&|p| p.arm == 1),
        sum(&|p| p.arm == 1),
        count(&before),
        sum(&before),
        sum(&|_| true) - 250 * missing,
        matched.len() as i64 - missing,
        count(&|p| p.treated && p.cents.is_some_and(|c| c < 0)),
    ];
    truth.iter().map(i64::to_string).collect()
}

/// The shop's file once more, as Parquet with nulls and numbers of decimals.
fn write_parquet(folder: &Path, shop: std::ops::Range<i64>) {
    let names: ArrayRef = Arc::new(shop.clone().map(|i| Some(format!("p{i}"))).collect::<StringArray>());
    let cents: Decimal128Array = shop.map(|i| person(i).cents.map(i128::from)).collect();
    let cents: ArrayRef = Arc::new(cents.with_precision_and_scale(12, 2).unwrap());
    let batch = RecordBatch::try_from_iter([("id", names), ("spent", cents)]).unwrap();
    let file = std::fs::File::create(folder.join("shop.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// What the clinic is shown, at the stated price.
fn seen(reports: &[RunReport]) -> Vec<String> {
    for stage in reports.iter().flat_map(|report| &report.stages) {
        assert!(stage.price_held, "{stage:?}");
    }
    outputs(&reports[0]).0
}

const POLICY: &str = "kinds = [\"program\"]\nallow_exact = true";

/// A study between the two, with further lines of their party files.
fn pair(folder: &Path, changes: &[(&str, &str)], more: [&str; 2]) -> Vec<String> {
    let mut study = STUDY.to_owned();
    for (from, to) in changes {
        assert!(study.contains(from), "{from}");
        study = study.replacen(from, to, 1);
    }
    for name in ["clinic", "shop"] {
        study = study.replace(&format!("\"@{name}\""), &format!("\"{}\"", make_key(folder, name)));
    }
    std::fs::write(folder.join("study.toml"), study).unwrap();
    let [clinic, shop] = PartyFile::pair(folder, ["clinic", "shop"]);
    let parties = [clinic.with(more[0]), shop.with(more[1])].map(|file| file.policy(POLICY).setup());
    let reports = whole(both(&parties, &Watch::none()));
    seen(&reports)
}

#[test]
fn matched_rows_have_the_cells_of_their_files() {
    for engine in ["gmw", "yao"] {
        let folder = TempDir::new().unwrap();
        let truth = write(folder.path(), 100..900);
        let compute = format!("[compute]\nengine = \"{engine}\"\n[columns]");
        let changes = [("[columns]", &*compute)];
        assert_eq!(pair(folder.path(), &changes, ["", ""]), truth, "{engine}");
    }
}

#[test]
fn joined_rows_have_the_cells_of_their_files() {
    let folder = TempDir::new().unwrap();
    let truth = write(folder.path(), 100..900);
    assert_eq!(pair(folder.path(), &[("\"pid\"", "\"ps3i\"")], ["", ""]), truth);
}

#[test]
fn rows_in_files_of_state_have_the_cells_of_their_files() {
    let folder = TempDir::new().unwrap();
    let truth = write(folder.path(), 100..900);
    let more = ["state = \"state-clinic\"\nspool = true", "state = \"state-shop\"\nspool = true"];
    assert_eq!(pair(folder.path(), &[], more), truth);
}

/// No row is absent, and a cell may be missing all the same. The shop's file is Parquet.
#[test]
fn aligned_rows_have_the_cells_of_their_files() {
    let folder = TempDir::new().unwrap();
    let truth = write(folder.path(), 0..600);
    write_parquet(folder.path(), 0..600);
    let changes = [("\"pid\"", "\"aligned\""), ("class exact", "class exact\nrows aligned")];
    assert_eq!(pair(folder.path(), &changes, ["", "data = \"shop.parquet\""]), truth);
}

#[test]
fn four_servers_have_the_cells_of_the_files() {
    let folder = TempDir::new().unwrap();
    let truth = write(folder.path(), 100..900);
    let servers: String = SERVERS.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
    let study = STUDY.replacen("\"pid\"", "\"salted-key\"", 1);
    let study = format!("{study}{servers}[compute]\nengine = \"ring4\"\n");
    let world = World::new(folder, &["clinic", "shop"], &SERVERS, &study);
    let owners = ["clinic", "shop"].map(|name| world.owner(name, SALTED));
    let (reports, servers) = all(&owners, &world.nodes(), quiet);
    assert!(servers.iter().all(Result::is_ok), "{servers:?}");
    let reports: Vec<RunReport> = reports.into_iter().map(Result::unwrap).collect();
    assert_eq!(seen(&reports), truth);
}

/// Study and program do not both say what a cell is; what is wrong with cells is said with their place.
#[test]
fn what_does_not_fit_is_said_before_anything_is_sent() {
    let told = |changes: &[(&str, &str)], cells: (&str, &str)| {
        let folder = TempDir::new().unwrap();
        write(folder.path(), 100..900);
        let path = folder.path().join("shop.csv");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(cells.0), "{text}");
        std::fs::write(&path, text.replacen(cells.0, cells.1, 1)).unwrap();
        let mut study = STUDY.to_owned();
        for (from, to) in changes {
            assert!(study.contains(from), "{from}");
            study = study.replacen(from, to, 1);
        }
        for name in ["clinic", "shop"] {
            study = study.replace(&format!("\"@{name}\""), &format!("\"{}\"", make_key(folder.path(), name)));
        }
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        let [_, shop] = PartyFile::pair(folder.path(), ["clinic", "shop"]).map(|f| f.policy(POLICY).setup());
        job::run::check(&shop).err().expect("it does not fit").to_string()
    };
    let same = ("", "");
    let label = ("column = \"arm\" }", "column = \"arm\", type = \"label\", values = [\"low\"] }");
    let time = ("column = \"seen\" }", "column = \"seen\", type = \"time\" }");
    let clock = ("[columns]", "[time]\norigin = 2026-01-01\nunit = \"day\"\nspan = 365\n[columns]");
    let integer = ("column = \"spent\" }", "column = \"spent\", type = \"integer\" }");
    for (changes, words) in [
        (
            &[integer][..],
            "column \"spent\" has `scale 100` in the program and type = \"integer\" under [columns] of the \
             study; remove `type` there",
        ),
        (
            &[label],
            "column \"arm\" has `labels` in the program and type = \"label\" under [columns] of the study; \
             remove `type` and `values` there",
        ),
        (
            &[time, clock],
            "column \"seen\" has `date` in the program and type = \"time\" under [columns] of the study; \
             remove `type` there",
        ),
    ] {
        let error = told(changes, same);
        assert!(error.ends_with(words), "{error}");
    }
    let error = told(&[("\"EUR\" missing", "\"EUR\"")], same);
    assert!(
        error.contains(
            "shop.csv, line 3, column \"spent\": the cell is empty; write a value, or `missing` behind"
        ),
        "{error}"
    );
    let error = told(&[], ("p100,-81.13", "p100,1012.345"));
    assert!(error.contains("shop.csv, line 2, column \"spent\": 1012.345"), "{error}");
}

//! The 1954 poliomyelitis field trial, placebo-control areas, rebuilt row by row from its published counts.
//!
//! Published (Francis and others 1955; see docs/data/polio-1954.md): how many children were in each group,
//! and how many of them became paralytic, non-paralytic or turned out not to have poliomyelitis. Synthetic:
//! identifiers, dates, regions, ages, which child it was, second records, onsets before the injection,
//! patients outside the trial.

use super::files::{FileFormat, Out, TableFile};
use super::truth::{Person, Rule};
use super::{Generated, Truth};
use base::days_of_date;
use base::{Error, Rng, Seed};
use std::path::Path;
use study::time::date_of_days;

/// Published counts of one group of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolioCounts {
    /// Children.
    pub children: u64,
    /// Cases of paralytic poliomyelitis.
    pub paralytic: u64,
    /// Cases of non-paralytic poliomyelitis.
    pub non_paralytic: u64,
    /// Reported cases that turned out not to be poliomyelitis.
    pub not_polio: u64,
}

/// Placebo-control areas, `[placebo, vaccinated]`, and the children of the same grades who took no part
/// (not inoculated or incompletely vaccinated).
pub const POLIO_COUNTS: ([PolioCounts; 2], PolioCounts) = (
    [
        PolioCounts { children: 201_229, paralytic: 115, non_paralytic: 27, not_polio: 20 },
        PolioCounts { children: 200_745, paralytic: 33, non_paralytic: 24, not_polio: 25 },
    ],
    PolioCounts { children: 347_262, paralytic: 122, non_paralytic: 37, not_polio: 25 },
);

/// Participants, per arm, with a synthetic paralytic onset before the injection (and on its very day): they
/// do not count.
const BEFORE: u64 = 20;
const SAME_DAY: u64 = 2;
/// Synthetic patients of the same hospitals from outside the study areas and grades.
const ELSEWHERE: u64 = 1_016;
/// Every so many patients has a second record.
const SECOND_RECORD_EVERY: u64 = 9;

const REGIONS: [&str; 4] = ["north", "south", "east", "west"];
const AGES: [&str; 4] = ["6", "7", "8", "9"];
const SEVERITIES: [&str; 3] = ["paralytic", "non-paralytic", "not-polio"];

/// A child of the registry.
struct Child {
    number: u32,
    test: bool,
    injected: i64,
}

/// A line of the hospitals' file.
struct Record {
    identifier: String,
    onset: i64,
    severity: &'static str,
    age: &'static str,
}

/// Writes `registry.csv` and `hospitals.csv` into `folder` (made if need be).
///
/// # Errors
/// When a file cannot be written.
pub fn polio(folder: &Path, seed: u64) -> Result<Generated, Error> {
    polio_thinned(folder, seed, 1)
}

/// As [`polio`] with one child in `one_in` of each arm, but all the cases: a small trial with a larger
/// effect, for tests.
///
/// # Errors
/// When `one_in` is not 1 to 100, or a file cannot be written.
pub fn polio_thinned(folder: &Path, seed: u64, one_in: u64) -> Result<Generated, Error> {
    if !(1..=100).contains(&one_in) {
        return Err(Error::input("one child in so many: use a whole number from 1 to 100"));
    }
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::io(format!("cannot create {}", folder.display()), &e))?;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let seed = Seed::from_bytes(bytes);
    let children = children(one_in, &mut seed.fork("children").into_rng());
    let (records, truth) = hospitals(&children, &mut seed.fork("hospitals").into_rng());
    let (publisher, advertiser) = (folder.join("registry.csv"), folder.join("hospitals.csv"));
    Ok(Generated {
        publisher_rows: write_registry(&publisher, &children, &mut seed.fork("registry").into_rng())?,
        advertiser_rows: write_hospitals(&advertiser, records)?,
        publisher,
        advertiser,
        truth,
    })
}

/// All participants in random order: position says nothing about the arm.
fn children(one_in: u64, rng: &mut Rng) -> Vec<Child> {
    let mut arms: Vec<bool> = Vec::new();
    for (test, counts) in [false, true].into_iter().zip(POLIO_COUNTS.0) {
        arms.extend((0..counts.children / one_in).map(|_| test));
    }
    rng.shuffle(&mut arms);
    let (first, days) = (day("1954-04-26"), day("1954-07-10") - day("1954-04-26") + 1);
    let child = |(number, test): (usize, bool)| Child {
        number: u32::try_from(number).expect("fewer than 2^32 children"),
        test,
        injected: first + rng.below(days as u64).cast_signed(),
    };
    arms.into_iter().enumerate().map(child).collect()
}

fn day(text: &str) -> i64 {
    days_of_date(text).expect("a date of the program text")
}

/// School district and serial number of a child of a made-up state, with a check digit: `zz-0412-001734-5`.
fn identifier(number: u32) -> String {
    let (district, serial) = (number % 211 + 100, number / 211 + 1);
    let digits = format!("{district:04}{serial:06}");
    let weighted = |(i, b): (usize, u8)| (u32::from(b - b'0')) * (i as u32 % 7 + 2);
    let check = digits.bytes().enumerate().map(weighted).sum::<u32>() % 11 % 10;
    format!("zz-{district:04}-{serial:06}-{check}")
}

/// The same identifier as a hospital's clerk may have typed it.
fn typed(identifier: &str, rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => identifier.to_uppercase(),
        1 => format!(" {identifier}"),
        2 => format!("{} ", identifier.to_uppercase()),
        _ => identifier.to_owned(),
    }
}

/// Patients, and the truth about the trial: for each case group the records, and their effect by the study's
/// rule.
fn hospitals(children: &[Child], rng: &mut Rng) -> (Vec<Record>, Truth) {
    let mut clerk = Clerk { records: Vec::new(), rng };
    let mut cases: Vec<(u32, Vec<(u32, u32)>)> = Vec::new();
    for (test, counts) in [false, true].into_iter().zip(POLIO_COUNTS.0) {
        let mut own: Vec<&Child> = children.iter().filter(|child| child.test == test).collect();
        clerk.rng.shuffle(&mut own);
        let mut own = own.into_iter();
        let groups = [
            (counts.paralytic, 0, When::After),
            (counts.non_paralytic, 1, When::After),
            (counts.not_polio, 2, When::After),
            (BEFORE, 0, When::Before),
            (SAME_DAY, 0, When::SameDay),
        ];
        for (count, severity, when) in groups {
            for child in own.by_ref().take(usize::try_from(count).expect("small")) {
                let onsets = clerk.patient(child.number, SEVERITIES[severity], when, child.injected);
                let events = onsets.into_iter().map(|onset| (since_origin(onset), 1)).collect();
                cases.push((child.number, if severity == 0 { events } else { Vec::new() }));
            }
        }
    }
    clerk.others(u32::try_from(children.len()).expect("fewer than 2^32 children"));
    let mut records = clerk.records;
    rng.shuffle(&mut records);
    (records, truth(children, &cases))
}

#[derive(Clone, Copy)]
enum When {
    After,
    Before,
    SameDay,
}

struct Clerk<'a> {
    records: Vec<Record>,
    rng: &'a mut Rng,
}

impl Clerk<'_> {
    fn between(&mut self, first: i64, last: i64) -> i64 {
        first + self.rng.below((last - first + 1).cast_unsigned()).cast_signed()
    }

    /// Writes the one or two records of a patient and returns their onsets. A second record is a relapse or a
    /// transfer to another hospital, some days later and of the same severity.
    fn patient(&mut self, number: u32, severity: &'static str, when: When, injected: i64) -> Vec<i64> {
        let mut onsets = vec![match when {
            When::After => self.between(injected + 1, day("1954-11-30")),
            When::Before => self.between(day("1954-01-02"), injected - 1),
            When::SameDay => injected,
        }];
        if matches!(when, When::After) && self.rng.below(SECOND_RECORD_EVERY) == 0 {
            let later = self.between(1, 30);
            onsets.push(onsets[0] + later);
        }
        let age = AGES[usize::try_from(self.rng.below(4)).expect("small")];
        for &onset in &onsets {
            let identifier = typed(&identifier(number), self.rng);
            self.records.push(Record { identifier, onset, severity, age });
        }
        onsets
    }

    /// Patients who took no part in the trial; their numbers follow those of the participants.
    fn others(&mut self, first: u32) {
        let counts = POLIO_COUNTS.1;
        let mut numbers = first..;
        let groups = [(0, counts.paralytic), (1, counts.non_paralytic), (2, counts.not_polio)];
        for (severity, count) in groups {
            for number in numbers.by_ref().take(usize::try_from(count).expect("small")) {
                self.patient(number, SEVERITIES[severity], When::After, day("1954-04-26"));
            }
        }
        for number in numbers.take(usize::try_from(ELSEWHERE).expect("small")) {
            let severity = SEVERITIES[usize::try_from(self.rng.below(3)).expect("small")];
            self.patient(number, severity, When::After, day("1954-01-01"));
        }
    }
}

fn since_origin(onset: i64) -> u32 {
    u32::try_from(onset - day("1954-01-01")).expect("onsets lie in 1954")
}

/// The truth by the rule of examples/lift.toml: paralytic onsets strictly after the injection, clamp 1, K =
/// 4.
fn truth(children: &[Child], cases: &[(u32, Vec<(u32, u32)>)]) -> Truth {
    let events: std::collections::HashMap<u32, &[(u32, u32)]> =
        cases.iter().map(|(number, events)| (*number, events.as_slice())).collect();
    let rule = Rule { max_events: 4, clamp: 1, within: None };
    let counts = POLIO_COUNTS.1;
    let outside = counts.paralytic + counts.non_paralytic + counts.not_polio + ELSEWHERE;
    let mut truth = Truth { union: children.len() as u64 + outside, ..Truth::default() };
    for child in children {
        let own = events.get(&child.number);
        let person = Person {
            test: child.test,
            opportunity: since_origin(child.injected),
            reached: false,
            breakdown: 0,
            matched: own.is_some(),
            cohort: 0,
            events: own.copied().unwrap_or(&[]),
        };
        truth.count(&person, &rule);
    }
    truth
}

fn write_registry(path: &Path, children: &[Child], rng: &mut Rng) -> Result<u64, Error> {
    let columns = [("child_id", false), ("arm", false), ("injected", false), ("region", false)];
    let mut table = TableFile::create(path, FileFormat::Csv, &columns)?;
    let mut order: Vec<&Child> = children.iter().collect();
    rng.shuffle(&mut order);
    for child in order {
        let arm = if child.test { "vaccine" } else { "placebo" };
        let region = REGIONS[usize::try_from(rng.below(4)).expect("small")];
        table.row(&[
            Out::Text(&identifier(child.number)),
            Out::Text(arm),
            Out::Text(&date_of_days(child.injected)),
            Out::Text(region),
        ])?;
    }
    table.finish()
}

fn write_hospitals(path: &Path, records: Vec<Record>) -> Result<u64, Error> {
    let columns = [("child_id", false), ("onset", false), ("severity", false), ("age_group", false)];
    let mut table = TableFile::create(path, FileFormat::Csv, &columns)?;
    for record in records {
        table.row(&[
            Out::Text(&record.identifier),
            Out::Text(&date_of_days(record.onset)),
            Out::Text(record.severity),
            Out::Text(record.age),
        ])?;
    }
    table.finish()
}

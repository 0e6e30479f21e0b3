//! Random lift studies of any size with a known truth. Memory does not grow with the number of people.

use super::files::{FileFormat, Out, TableFile};
use super::truth::{Person, Rule};
use super::{Generated, GeneratedSeveral, Truth};
use base::{Error, Rng, Seed};
use std::path::Path;

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct LiftOptions {
    /// People on each side, 1 to 2^31.
    pub rows: u32,
    /// Share of the publisher's people whom the advertiser knows, 0 to 1.
    pub overlap: f64,
    /// K of the study, 1 to 16. A few people have more events, which the study's overflow rule cuts.
    pub max_events: u8,
    /// R of the study; values run from 1 to R, so that some totals are clamped.
    pub clamp: u32,
    /// Everything is a function of it.
    pub seed: u64,
    /// The format of both files.
    pub format: FileFormat,
}

/// The span of generated times: 32 bits in seconds from 1970; all ones means that there was no opportunity.
const SPAN: u32 = u32::MAX - 1;
/// Breakdown and cohort values.
const REGIONS: [&str; 3] = ["north", "south", "west"];
const AGES: [&str; 2] = ["young", "old"];

/// A study file for generated data, with the parties' keys. Breakdown and cohort are used only when asked
/// for.
#[must_use]
pub fn lift_study(options: &LiftOptions, publisher_key: &str, advertiser_key: &str, cells: bool) -> String {
    let (k, clamp) = (options.max_events, options.clamp);
    let (breakdown, cohort) = if cells {
        (
            "breakdown = { column = \"region\", values = [\"north\", \"south\", \"west\"] }\n",
            "cohort = { column = \"age\", values = [\"young\", \"old\"] }\n",
        )
    } else {
        ("", "")
    };
    format!(
        r#"format = "tacit-study/1"
name = "generated"
kind = "lift"
title = "Generated lift study, K = {k}"

[party.publisher]
role = "publisher"
key = "{publisher_key}"
[party.advertiser]
role = "advertiser"
key = "{advertiser_key}"

[match]
protocol = "pid"
identifiers = [ {{ name = "id", normalise = ["trim", "lowercase"] }} ]
duplicates = "error"

[time]
origin = 1970-01-01
unit = "second"
span = {SPAN}

[publisher]
arm = {{ column = "arm", test = "test", control = "control" }}
opportunity = {{ column = "seen", type = "time" }}
impressions = {{ column = "impressions", type = "u16" }}
{breakdown}
[advertiser]
layout = "events"
event = {{ column = "bought", type = "time" }}
value = {{ column = "amount", type = "u32", unit = "cent" }}
max_events = {k}
overflow = "keep-earliest"
{cohort}
[lift]
counts_after = "opportunity"
clamp = {clamp}

[release]
mode = "sums"
confidence = 0.95
[release.public]
rho = 0.1
"#
    )
}

/// The name of an advertiser of several, from 0.
fn shop(number: usize) -> String {
    format!("shop-{}", number + 1)
}

/// A study file for generated data of several advertisers, measured as one; `keys` are the publisher's and
/// theirs.
#[must_use]
pub fn several_study(options: &LiftOptions, keys: &[String]) -> String {
    let (publisher, shops) = keys.split_first().map_or(("", keys), |(first, rest)| (first, rest));
    let section =
        |(i, key): (usize, &String)| format!("[party.{}]\nrole = \"advertiser\"\nkey = \"{key}\"\n", shop(i));
    let parties: String = shops.iter().enumerate().map(section).collect();
    let clamp = format!("clamp = {}\n", options.clamp);
    lift_study(options, publisher, "", false)
        .replace("Generated lift study", "Generated lift study of several advertisers")
        .replace("[party.advertiser]\nrole = \"advertiser\"\nkey = \"\"\n", &parties)
        .replace("impressions = { column = \"impressions\", type = \"u16\" }\n", "")
        .replace(&clamp, &format!("{clamp}advertisers = \"together\"\n"))
}

/// One person as both sides would know them.
struct Drawn {
    test: bool,
    seen: u32,
    impressions: u32,
    region: usize,
    age: usize,
    events: Vec<(u32, u32)>,
}

/// Writes `publisher.*` and `advertiser.*` into `folder` (made if need be).
///
/// # Errors
/// When an option is out of range or a file cannot be written.
pub fn lift(folder: &Path, options: &LiftOptions) -> Result<Generated, Error> {
    check(options)?;
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::io(format!("cannot create {}", folder.display()), &e))?;
    let extension = options.format.extension();
    let publisher = folder.join(format!("publisher.{extension}"));
    let advertiser = folder.join(format!("advertiser.{extension}"));
    // People 0..rows are the publisher's, shift..shift + rows the advertiser's.
    let shared = (f64::from(options.rows) * options.overlap).round() as u32;
    let shift = options.rows - shared;
    Ok(Generated {
        publisher_rows: write_publisher(&publisher, options)?,
        advertiser_rows: write_advertiser(&advertiser, options, shift, Shops { at: 0, of: 1 })?,
        publisher,
        advertiser,
        truth: truth(options, shift, 1),
    })
}

/// Writes `publisher.*` and `shop-1.*`, `shop-2.*` .. into `folder`: the same people, whose events are at one
/// shop or another.
///
/// # Errors
/// As [`lift`].
pub fn lift_several(folder: &Path, options: &LiftOptions, shops: usize) -> Result<GeneratedSeveral, Error> {
    check(options)?;
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::io(format!("cannot create {}", folder.display()), &e))?;
    let extension = options.format.extension();
    let shared = (f64::from(options.rows) * options.overlap).round() as u32;
    let shift = options.rows - shared;
    let mut files = Vec::with_capacity(shops + 1);
    let publisher = folder.join(format!("publisher.{extension}"));
    let rows = write_publisher(&publisher, options)?;
    files.push(("publisher".to_owned(), publisher, rows));
    for at in 0..shops {
        let path = folder.join(format!("{}.{extension}", shop(at)));
        let rows = write_advertiser(&path, options, shift, Shops { at, of: shops })?;
        files.push((shop(at), path, rows));
    }
    Ok(GeneratedSeveral { files, truth: truth(options, shift, shops) })
}

/// One of several advertisers.
#[derive(Clone, Copy)]
struct Shops {
    at: usize,
    of: usize,
}

impl Shops {
    /// A person's events at it, before any cut.
    fn events(self, number: u32, events: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let here = |(i, _): &(usize, &(u32, u32))| (i + number as usize) % self.of == self.at;
        events.iter().enumerate().filter(here).map(|(_, event)| *event).collect()
    }
}

fn check(options: &LiftOptions) -> Result<(), Error> {
    let wrong = |text: &str| Err(Error::input(text));
    if options.rows == 0 || options.rows > 1 << 31 {
        return wrong("rows: use a whole number from 1 to 2^31");
    }
    if !(0.0..=1.0).contains(&options.overlap) {
        return wrong("overlap: use a share from 0 to 1");
    }
    if !(1..=study::MAX_EVENTS).contains(&options.max_events) {
        return wrong("k: use a whole number from 1 to 16");
    }
    if !(1..=study::MAX_CLAMP).contains(&options.clamp) {
        return wrong("clamp: use a whole number from 1 to 1048576");
    }
    Ok(())
}

fn rng(seed: u64, label: &str, number: u32) -> Rng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..12].copy_from_slice(&number.to_le_bytes());
    Seed::from_bytes(bytes).fork(label).into_rng()
}

fn below(rng: &mut Rng, n: u32) -> u32 {
    u32::try_from(rng.below(u64::from(n))).expect("below a u32")
}

/// A person, from the seed and the number alone, so that no table of people is needed.
fn draw(options: &LiftOptions, number: u32) -> Drawn {
    let mut rng = rng(options.seed, "person", number);
    let test = rng.below(2) == 1;
    // Around the end of a conversion campaign: about half of the events come after the opportunity.
    let seen = 1_000_000_000 + below(&mut rng, 1 << 20);
    let k = u32::from(options.max_events);
    let count = match rng.below(10) {
        0..6 => 0,
        6..9 => 1 + below(&mut rng, k),
        _ => k + below(&mut rng, 3),
    };
    // The treatment moves some events later, past the opportunity.
    let delay = if test { 1 << 17 } else { 0 };
    let event = |rng: &mut Rng| match rng.below(50) {
        0 => (seen, 1 + below(rng, options.clamp)),
        _ => (1_000_000_000 + below(rng, 1 << 20) + delay, 1 + below(rng, options.clamp)),
    };
    let events = (0..count).map(|_| event(&mut rng)).collect();
    let impressions = below(&mut rng, 3);
    let (region, age) = (below(&mut rng, 3) as usize, below(&mut rng, 2) as usize);
    Drawn { test, seen, impressions, region, age, events }
}

/// An identifier that looks like nothing real: `user-` and 16 hex digits, all different for different
/// numbers.
fn identifier(options: &LiftOptions, number: u32) -> String {
    let mixed = (u64::from(number) ^ options.seed.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("user-{mixed:016x}")
}

/// A second identifier, which one person in three lacks.
fn email(options: &LiftOptions, number: u32) -> String {
    match number % 3 {
        0 => String::new(),
        _ => format!("{}@example.org", identifier(options, number)),
    }
}

/// The numbers `0..rows` in an order of its own for each label: an affine permutation needs no memory.
fn order(rows: u32, options: &LiftOptions, label: &str) -> impl Iterator<Item = u32> {
    let n = u64::from(rows);
    let mut rng = rng(options.seed, label, 0);
    let start = rng.below(n);
    let step = loop {
        let step = 1 + rng.below(n);
        if gcd(step, n) == 1 {
            break step;
        }
    };
    (0..n).map(move |i| u32::try_from((start + i * step) % n).expect("below rows"))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn write_publisher(path: &Path, options: &LiftOptions) -> Result<u64, Error> {
    let columns = [
        ("id", false),
        ("arm", false),
        ("seen", true),
        ("impressions", true),
        ("region", false),
        ("email", false),
    ];
    let mut table = TableFile::create(path, options.format, &columns)?;
    for number in order(options.rows, options, "publisher order") {
        let person = draw(options, number);
        table.row(&[
            Out::Text(&identifier(options, number)),
            Out::Text(if person.test { "test" } else { "control" }),
            Out::Number(person.seen),
            Out::Number(person.impressions),
            Out::Text(REGIONS[person.region]),
            Out::Text(&email(options, number)),
        ])?;
    }
    table.finish()
}

/// One line per event; a person without events has none, so the advertiser does not know them.
fn write_advertiser(path: &Path, options: &LiftOptions, shift: u32, shops: Shops) -> Result<u64, Error> {
    let columns = [("id", false), ("bought", true), ("amount", true), ("age", false), ("email", false)];
    let mut table = TableFile::create(path, options.format, &columns)?;
    for number in order(options.rows, options, "advertiser order") {
        let person = known(options, number + shift);
        // As people write them: in capitals, and tagged for the shop.
        let address = email(options, number + shift).replace('@', "+shop@").to_uppercase();
        for (time, value) in shops.events(number + shift, &person.events) {
            table.row(&[
                Out::Text(&identifier(options, number + shift).to_uppercase()),
                Out::Number(time),
                Out::Number(value),
                Out::Text(AGES[person.age]),
                Out::Text(&address),
            ])?;
        }
    }
    table.finish()
}

/// A person whom the advertiser knows has at least one event, be it long before any opportunity.
fn known(options: &LiftOptions, number: u32) -> Drawn {
    let mut person = draw(options, number);
    if person.events.is_empty() {
        person.events.push((1, 1));
    }
    person
}

fn truth(options: &LiftOptions, shift: u32, shops: usize) -> Truth {
    let most = usize::from(options.max_events);
    let rule = Rule { max_events: most * shops, clamp: u64::from(options.clamp), within: None };
    let mut truth = Truth {
        breakdown: vec![Default::default(); REGIONS.len()],
        cohort: vec![Default::default(); AGES.len()],
        union: u64::from(options.rows) + u64::from(shift),
        ..Truth::default()
    };
    for number in 0..options.rows {
        let matched = number >= shift;
        let person = if matched { known(options, number) } else { draw(options, number) };
        // Each shop cuts what it has; what is left adds up.
        let kept = |at| {
            let mut events = Shops { at, of: shops }.events(number, &person.events);
            events.sort_unstable();
            events.truncate(most);
            events
        };
        let events: Vec<(u32, u32)> = if matched { (0..shops).flat_map(kept).collect() } else { Vec::new() };
        truth.count(
            &Person {
                test: person.test,
                opportunity: person.seen,
                reached: person.impressions > 0,
                breakdown: person.region,
                matched,
                cohort: person.age,
                events: &events,
            },
            &rule,
        );
    }
    truth
}

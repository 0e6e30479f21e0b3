//! Random lift studies of any size with a known truth. Memory does not grow with the number of people.

use super::files::{FileFormat, Out, TableFile};
use super::parts::{self, Count, SideFiles, WritingProgress};
use super::truth::{Person, Rule};
use super::{Generated, GeneratedSeveral, Truth};
use base::{Error, Rng, Seed};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicU64;

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
    /// The format of all files.
    pub format: FileFormat,
    /// Files of each side, 1 to [`FILES`](crate::FILES) and to `rows`: one, or the parts in a folder.
    pub files: u32,
}

impl LiftOptions {
    /// About how many bytes all files take at most, however many advertisers share the events.
    ///
    /// # Errors
    /// When an option is out of range.
    pub fn bytes(&self) -> Result<u64, Error> {
        check(self)?;
        // A person, and each event of theirs; a little above what was measured. In the small groups of parts
        // a dictionary holds the advertiser's identifiers, once a person.
        let (person, event) = match (self.format, self.files) {
            (FileFormat::Csv, _) => (74.0, 67.0),
            (FileFormat::Parquet, 1) => (60.0, 60.0),
            (FileFormat::Parquet, _) => (113.0, 13.0),
        };
        // As `draw` and `known` draw them.
        let k = f64::from(self.max_events);
        let events = 0.6 + 0.3 * f64::midpoint(k, 1.0) + 0.1 * (k + 1.0);
        Ok((f64::from(self.rows) * (person + event * events)) as u64)
    }
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

impl Drawn {
    /// A person whom the advertiser knows has at least one event, be it long before any opportunity.
    fn known(mut self) -> Self {
        if self.events.is_empty() {
            self.events.push((1, 1));
        }
        self
    }
}

/// Writes `publisher.*` and `advertiser.*` into `folder` (made if need be); of several files a side, folders
/// of these names with `part-00000.*` .., which one after the other hold the rows of the one file.
///
/// # Errors
/// When an option is out of range, a file cannot be written, or a folder of parts holds other data.
pub fn lift(folder: &Path, options: &LiftOptions, progress: WritingProgress<'_>) -> Result<Generated, Error> {
    let [publisher, advertiser] = ["publisher", "advertiser"].map(str::to_owned);
    let written = write(folder, options, vec![publisher, advertiser], progress)?;
    let mut sides = written.files.into_iter().map(|(_, path, rows)| (path, rows));
    let mut side = || sides.next().expect("two sides are written");
    let ((publisher, publisher_rows), (advertiser, advertiser_rows)) = (side(), side());
    Ok(Generated { publisher, advertiser, publisher_rows, advertiser_rows, truth: written.truth })
}

/// The answer that [`lift`] of these options gives, and nothing is written.
///
/// # Errors
/// When an option is out of range.
pub fn lift_truth(options: &LiftOptions, progress: WritingProgress<'_>) -> Result<Truth, Error> {
    check(options)?;
    let (total, done) = (u64::from(options.rows), AtomicU64::new(0));
    let writer = LiftWriter::new(options, 1, Count { told: progress, total, done });
    let pieces = options.rows.div_ceil(PIECE);
    let counted = parts::on_threads(pieces, parts::PARTS, |piece, truth: &mut Truth| {
        sized(truth);
        for number in writer.count.each(parts::share(options.rows, pieces, piece)) {
            let number = number as u32;
            writer.tell_truth(number, draw(options, number), truth);
        }
        Ok(())
    })?;
    let mut truth = writer.no_truth();
    counted.iter().for_each(|thread| truth.add(thread));
    Ok(truth)
}

/// People that one thread counts at a time.
const PIECE: u32 = 1 << 16;

/// Writes `publisher.*` and `shop-1.*`, `shop-2.*` .. into `folder`: the same people, whose events are at one
/// shop or another.
///
/// # Errors
/// As [`lift`].
pub fn lift_several(
    folder: &Path,
    options: &LiftOptions,
    shops: usize,
    progress: WritingProgress<'_>,
) -> Result<GeneratedSeveral, Error> {
    let parties = std::iter::once("publisher".to_owned()).chain((0..shops).map(shop)).collect();
    write(folder, options, parties, progress)
}

/// Writes the files of the publisher, who is named first, and of the advertisers.
fn write(
    folder: &Path,
    options: &LiftOptions,
    parties: Vec<String>,
    progress: WritingProgress<'_>,
) -> Result<GeneratedSeveral, Error> {
    check(options)?;
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::io(format!("cannot create {}", folder.display()), &e))?;
    let place = |party: &String| SideFiles::new(folder, party, options.format, options.files);
    let places: Vec<SideFiles> = parties.iter().map(place).collect();
    places.iter().try_for_each(SideFiles::prepare)?;
    let sides = places.len() as u32;
    let total = u64::from(options.rows) * u64::from(sides);
    let count = Count { told: progress, total, done: AtomicU64::new(0) };
    let writer = LiftWriter::new(options, parties.len() - 1, count);
    let at_a_time = if options.files > 1 { parts::PARTS } else { parts::WHOLE };
    let written = parts::on_threads(sides * options.files, at_a_time, |file, written: &mut Written| {
        let (side, part) = ((file / options.files) as usize, file % options.files);
        written.rows.resize(places.len(), 0);
        let people = parts::share(options.rows, options.files, part);
        written.rows[side] += match side.checked_sub(1) {
            None => writer.publisher(&places[0].part(part), people, &mut written.truth)?,
            Some(at) => writer.advertiser(&places[side].part(part), people, at)?,
        };
        Ok(())
    })?;
    let mut truth = writer.no_truth();
    written.iter().for_each(|thread| truth.add(&thread.truth));
    let rows = |side: usize| written.iter().filter_map(|thread| thread.rows.get(side)).sum();
    let side = |(i, (party, place)): (usize, (String, SideFiles))| (party, place.path, rows(i));
    let files = parties.into_iter().zip(places).enumerate().map(side).collect();
    Ok(GeneratedSeveral { files, truth })
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
    parts::check(options.files, options.rows)
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

/// What stands at these places when the numbers `0..rows` are in an order of their own for each label: an
/// affine permutation needs no memory.
fn order(options: &LiftOptions, label: &str, places: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    let n = u64::from(options.rows);
    let mut rng = rng(options.seed, label, 0);
    let start = rng.below(n);
    let step = loop {
        let step = 1 + rng.below(n);
        if gcd(step, n) == 1 {
            break step;
        }
    };
    places.map(move |i| u32::try_from((start + i * step) % n).expect("below rows"))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What one thread wrote: rows of each side, and what the people of the publisher add to the truth.
#[derive(Default)]
struct Written {
    rows: Vec<u64>,
    truth: Truth,
}

/// Writes any file of a study; holds no person longer than it takes.
struct LiftWriter<'a> {
    options: &'a LiftOptions,
    shift: u32,
    shops: usize,
    count: Count<'a>,
}

/// A truth with a place for each cell.
fn sized(truth: &mut Truth) {
    truth.breakdown.resize(REGIONS.len(), Default::default());
    truth.cohort.resize(AGES.len(), Default::default());
}

impl<'a> LiftWriter<'a> {
    fn new(options: &'a LiftOptions, shops: usize, count: Count<'a>) -> Self {
        // People 0..rows are the publisher's, shift..shift + rows the advertisers'.
        let shift = options.rows - (f64::from(options.rows) * options.overlap).round() as u32;
        Self { options, shift, shops, count }
    }

    /// A truth of nobody, but for the union.
    fn no_truth(&self) -> Truth {
        let mut truth =
            Truth { union: u64::from(self.options.rows) + u64::from(self.shift), ..Truth::default() };
        sized(&mut truth);
        truth
    }

    /// Whoever has no row elsewhere is in the truth, too: every person with an opportunity is here, once.
    fn publisher(&self, path: &Path, people: Range<u64>, truth: &mut Truth) -> Result<u64, Error> {
        let options = self.options;
        let columns = [
            ("id", false),
            ("arm", false),
            ("seen", true),
            ("impressions", true),
            ("region", false),
            ("email", false),
        ];
        sized(truth);
        let mut table = self.table(path, &columns)?;
        for number in order(options, "publisher order", self.count.each(people)) {
            let person = draw(options, number);
            table.row(&[
                Out::Text(&identifier(options, number)),
                Out::Text(if person.test { "test" } else { "control" }),
                Out::Number(person.seen),
                Out::Number(person.impressions),
                Out::Text(REGIONS[person.region]),
                Out::Text(&email(options, number)),
            ])?;
            self.tell_truth(number, person, truth);
        }
        table.finish()
    }

    /// One line per event; a person without events has none, so the advertiser does not know them.
    fn advertiser(&self, path: &Path, people: Range<u64>, shop: usize) -> Result<u64, Error> {
        let (options, shop) = (self.options, Shops { at: shop, of: self.shops });
        let columns = [("id", false), ("bought", true), ("amount", true), ("age", false), ("email", false)];
        let mut table = self.table(path, &columns)?;
        for number in order(options, "advertiser order", self.count.each(people)) {
            let number = number + self.shift;
            let person = draw(options, number).known();
            // As people write them: in capitals, and tagged for the shop.
            let address = email(options, number).replace('@', "+shop@").to_uppercase();
            let identifier = identifier(options, number).to_uppercase();
            for (time, value) in shop.events(number, &person.events) {
                table.row(&[
                    Out::Text(&identifier),
                    Out::Number(time),
                    Out::Number(value),
                    Out::Text(AGES[person.age]),
                    Out::Text(&address),
                ])?;
            }
        }
        table.finish()
    }

    fn table(&self, path: &Path, columns: &[(&str, bool)]) -> Result<TableFile, Error> {
        let table = TableFile::create(path, self.options.format, columns)?;
        Ok(if self.options.files > 1 { table.in_small_groups() } else { table })
    }

    fn tell_truth(&self, number: u32, person: Drawn, truth: &mut Truth) {
        let most = usize::from(self.options.max_events);
        let clamp = u64::from(self.options.clamp);
        let matched = number >= self.shift;
        let person = if matched { person.known() } else { person };
        // Each shop cuts what it has; what is left adds up.
        let kept = |at| {
            let mut events = Shops { at, of: self.shops }.events(number, &person.events);
            events.sort_unstable();
            events.truncate(most);
            events
        };
        let events: Vec<(u32, u32)> =
            if matched { (0..self.shops).flat_map(kept).collect() } else { Vec::new() };
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
            &Rule { max_events: most * self.shops, clamp, within: None },
        );
    }
}

//! `bench engines`: one lift study on every engine, against rows and against round-trip time, as figures 3
//! and 4 of the survey of engines that the study comes from.
//!
//! Every party is a process of its own, all over TLS: two for `yao` and `gmw`, four for `ring4`, where the
//! two owners hold a seat each. Round trips are made by a relay that delays every byte. A setting that is
//! expected to take longer than the limit is left out, and said to be.

mod seat;

pub use seat::{EngineTask, NAMES, RowsMeasurement, RowsSetting};

use super::names::{OtChoice, SecurityName, TransportName};
use super::party::{PartyJob, PartyMeasurement, Work};
use super::rows::{LIFT_EVENTS, PairEngine, RowKind, RowWork, lift_correct};
use super::two::{self, folder, keys};
use super::{PARTIES, expect, four};
use base::Error;
use clap::Args;
use engine::{Engine, RowSource, StagePrice};
use page::markup::{element, words};
use page::numbers::{bytes, count, counted, duration};
use page::plot::{AxisScale, FigurePage, PlotLine, plot};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use terminal::output;
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// Measures a lift study on every engine.
#[derive(Clone, Debug, Args)]
pub struct EnginesArgs {
    /// Rows of each side, one setting after the other
    #[arg(long, value_name = "N,N", value_parser = terminal::values::count, value_delimiter = ',',
          default_value = "10k,100k,1M")]
    sizes: Vec<u64>,
    /// Rows of each side in the settings by round trip
    #[arg(long, value_name = "N", value_parser = terminal::values::count, default_value = "10k")]
    rows: u64,
    /// Round trips in milliseconds, one setting after the other
    #[arg(long, value_name = "MS,MS", value_parser = milliseconds, value_delimiter = ',',
          default_value = "0.1,1,60")]
    round_trips: Vec<f64>,
    /// Leave out settings that are expected to take more seconds than this
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
          value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Write the plots as a page
    #[arg(long, value_name = "FILE")]
    figures: Option<PathBuf>,
    /// Bits of Delta that SoftSpoken OT takes at once: small for fast links, large for slow ones; 2 unless
    /// told otherwise
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=8))]
    k: Option<u32>,
}

/// Reads a time of at most ten seconds.
fn milliseconds(text: &str) -> Result<f64, String> {
    let time = text.parse::<f64>().ok().filter(|ms| (0.0..=10_000.0).contains(ms));
    time.ok_or_else(|| "write milliseconds from 0 to 10000: 0.1".to_owned())
}

/// An engine with its setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contestant {
    /// Two parties alone.
    Two(PairEngine),
    /// Four servers, the parties among them.
    Four(SecurityName),
}

const CONTESTANTS: [Contestant; 4] = [
    Contestant::Two(PairEngine::Yao),
    Contestant::Two(PairEngine::Gmw),
    Contestant::Four(SecurityName::SemiHonest),
    Contestant::Four(SecurityName::Malicious),
];

impl Contestant {
    fn engine(self) -> String {
        match self {
            Self::Two(engine) => engine.word(),
            Self::Four(_) => "ring4".to_owned(),
        }
    }

    fn security(self) -> SecurityName {
        match self {
            Self::Two(_) => SecurityName::SemiHonest,
            Self::Four(security) => security,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Two(engine) => engine.word(),
            Self::Four(security) => format!("ring4, {}", security.word()),
        }
    }
}

/// One setting of one engine.
#[derive(Clone, Debug, Serialize)]
struct Point {
    engine: String,
    /// `semi-honest` or `malicious`.
    security: SecurityName,
    parties: usize,
    rows: u64,
    round_trip_ms: f64,
    /// After everybody has met. Absent: left out, and `expected_seconds` was over the limit.
    seconds: Option<f64>,
    expected_seconds: Option<f64>,
    /// Of all parties.
    bytes: u64,
    peak_memory_bytes: u64,
    cpu_seconds: f64,
    /// Of `ring4`: ANDs of shares, over the seconds; what a plan reckons with.
    and_per_s: Option<f64>,
    correct: Option<bool>,
}

/// The JSON of `tacit bench engines --json`.
#[derive(Serialize)]
struct Summary {
    what: &'static str,
    k: u8,
    transport: String,
    limit_s: u64,
    by_rows: Vec<Point>,
    by_round_trip: Vec<Point>,
    advice: Vec<String>,
    correct: bool,
}

impl EnginesArgs {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        let mut study = Study { args: self, json, told: false, known: Vec::new() };
        let by_rows = study.series(&self.sizes.iter().map(|rows| (*rows, 0.0)).collect::<Vec<_>>())?;
        if !json && !self.round_trips.is_empty() {
            let rows = counted(self.rows, "row");
            output::print(&format!("against round-trip time, with {rows} (--rows, not --sizes):"))?;
        }
        let far: Vec<_> = self.round_trips.iter().map(|ms| (self.rows, *ms)).collect();
        let by_round_trip = study.series(&far)?;
        let correct = by_rows.iter().chain(&by_round_trip).all(|point| point.correct != Some(false));
        let advice = advice(&by_rows, &by_round_trip);
        if let Some(file) = &self.figures {
            output::write_file(file, page(&by_rows, &by_round_trip, &advice).as_bytes())?;
        }
        if json {
            output::print_json(&Summary {
                what: "engines",
                k: LIFT_EVENTS,
                transport: TransportName::Tls.word(),
                limit_s: self.limit,
                by_rows,
                by_round_trip,
                advice,
                correct,
            })?;
        } else {
            output::print(&advice.join("\n"))?;
        }
        expect(correct)
    }

    /// What two parties do.
    fn work(&self, engine: PairEngine, rows: u64) -> Result<RowWork, Error> {
        RowWork::new(RowKind::Lift, engine, rows, &OtChoice { ot: None, k: self.k })
    }

    /// What the rows take.
    fn price(&self, who: Contestant, rows: u64) -> Result<StagePrice, Error> {
        let engine: Box<dyn Engine> = match who {
            Contestant::Two(engine) => self.work(engine, rows)?.engine()?,
            Contestant::Four(security) => Box::new(seat::engine(security, false)),
        };
        Ok(engine.rows(&RowKind::Lift.program()?, RowSource::Owned)?.price(rows))
    }

    /// Runs one setting.
    fn measure(
        &self,
        who: Contestant,
        rows: u64,
        round_trip_ms: f64,
    ) -> Result<Vec<PartyMeasurement>, Error> {
        let (delay, tls) = (Duration::from_secs_f64(round_trip_ms / 2e3), TransportName::Tls);
        match who {
            Contestant::Two(engine) => {
                let folder = folder()?;
                let secrets = keys(tls, &PARTIES, folder.path())?;
                let work = Work::Rows(self.work(engine, rows)?);
                two::measure(&work, secrets.as_deref(), None, delay, None)
            }
            Contestant::Four(security) => {
                let setting = RowsSetting::plain(security, rows);
                let job = |place| PartyJob::Servers(Box::new(EngineTask { setting: setting.clone(), place }));
                let seats: Vec<RowsMeasurement> = four::measure(NAMES, tls, delay, job)?;
                Ok(seats.into_iter().map(|seat| seat.party).collect())
            }
        }
    }
}

/// What has been measured so far.
struct Study<'a> {
    args: &'a EnginesArgs,
    json: bool,
    told: bool,
    known: Vec<(Contestant, Point)>,
}

impl Study<'_> {
    /// Every engine in these settings: rows, and milliseconds of a round trip.
    fn series(&mut self, settings: &[(u64, f64)]) -> Result<Vec<Point>, Error> {
        let mut points = Vec::new();
        for &(rows, round_trip_ms) in settings {
            for contestant in CONTESTANTS {
                let point = self.point(contestant, rows, round_trip_ms)?;
                self.tell(&point)?;
                self.known.push((contestant, point.clone()));
                points.push(point);
            }
        }
        Ok(points)
    }

    fn tell(&mut self, point: &Point) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        if !std::mem::replace(&mut self.told, true) {
            output::print(&heading())?;
        }
        output::print(&row(point))
    }

    fn point(&self, who: Contestant, rows: u64, round_trip_ms: f64) -> Result<Point, Error> {
        let expected_seconds = self.expected(who, rows, round_trip_ms)?;
        let point = Point {
            engine: who.engine(),
            security: who.security(),
            parties: if matches!(who, Contestant::Two(_)) { PARTIES.len() } else { NAMES.len() },
            rows,
            round_trip_ms,
            seconds: None,
            expected_seconds,
            bytes: 0,
            peak_memory_bytes: 0,
            cpu_seconds: 0.0,
            and_per_s: None,
            correct: None,
        };
        if expected_seconds.is_some_and(|seconds| seconds > self.args.limit as f64) {
            return Ok(point);
        }
        let working = Working::on(format!("{}: {} rows, {round_trip_ms} ms", who.name(), count(rows)));
        let parties = self.args.measure(who, rows, round_trip_ms)?;
        drop(working);
        let seconds = parties.iter().fold(0.0, |most: f64, p| (p.seconds - p.meeting_seconds).max(most));
        let and_gates = match who {
            Contestant::Two(_) => None,
            Contestant::Four(_) => Some(self.args.price(who, rows)?.and_gates),
        };
        Ok(Point {
            seconds: Some(seconds),
            and_per_s: and_gates.map(|gates| gates as f64 / seconds),
            bytes: parties.iter().map(|p| p.bytes_sent).sum(),
            peak_memory_bytes: parties.iter().map(|p| p.peak_memory_bytes).sum(),
            cpu_seconds: parties.iter().map(|p| p.cpu_seconds).sum(),
            correct: Some(lift_correct(rows, &parties)?),
            ..point
        })
    }

    /// From what the same engine took before, by rows, and what the path adds.
    fn expected(&self, who: Contestant, rows: u64, round_trip_ms: f64) -> Result<Option<f64>, Error> {
        let near = |ms: f64| self.args.price(who, rows).map(|price| price.trips as f64 * ms / 2e3);
        let taken =
            self.known.iter().rev().filter(|(other, point)| *other == who && point.round_trip_ms == 0.0);
        let mut by_rows = taken.filter_map(|(_, point)| {
            Some(point.seconds.or(point.expected_seconds)? * rows as f64 / point.rows as f64)
        });
        let here = by_rows.next();
        let path = near(round_trip_ms)?;
        Ok(here.map(|here| here + path))
    }
}

/// What the figures say to somebody who has to choose.
fn advice(by_rows: &[Point], by_round_trip: &[Point]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |points: &[Point], place: &dyn Fn(&Point) -> String| {
        for settings in points.chunks(CONTESTANTS.len()) {
            let best = |alone: bool| {
                let among = settings.iter().filter(|p| (p.parties == 2) == alone);
                let done = among.filter_map(|p| Some((p, p.seconds?)));
                done.min_by(|a, b| a.1.total_cmp(&b.1))
            };
            let Some((two, two_s)) = best(true) else { continue };
            let mut line = format!("{}: two parties alone take {} ({two_s:.2} s)", place(two), two.engine);
            let malicious = settings.iter().find(|p| p.parties > 2 && p.security == SecurityName::Malicious);
            if let Some(four_s) = malicious.and_then(|p| p.seconds) {
                let than = compared(four_s, two_s);
                line +=
                    &format!("; four servers of which one may do anything, ring4 ({four_s:.2} s, {than})");
            }
            lines.push(line);
        }
    };
    say(by_rows, &|p| format!("{} rows", count(p.rows)));
    say(by_round_trip, &|p| format!("{} rows, round trips of {} ms", count(p.rows), p.round_trip_ms));
    lines
}

/// How one time stands to another, as far as one decimal tells.
fn compared(one: f64, other: f64) -> String {
    match format!("{:.1}", f64::max(one / other, other / one)).as_str() {
        "1.0" => "as fast".to_owned(),
        times if one < other => format!("{times} times faster"),
        times => format!("{times} times slower"),
    }
}

fn heading() -> String {
    format!(
        "{:7} {:12} {:>9} {:>9}  {:>9} {:>9} {:>10} {:>9}",
        "engine", "security", "rows", "trip, ms", "seconds", "CPU s", "bytes", "memory"
    )
}

fn row(p: &Point) -> String {
    let place =
        format!("{:7} {:12} {:>9} {:>9}", p.engine, p.security.word(), count(p.rows), p.round_trip_ms);
    match (p.seconds, p.expected_seconds) {
        (Some(seconds), _) => format!(
            "{place}  {seconds:>9.3} {:>9.2} {:>10} {:>9}{}",
            p.cpu_seconds,
            bytes(p.bytes),
            bytes(p.peak_memory_bytes),
            if p.correct == Some(false) { "  WRONG" } else { "" }
        ),
        (None, Some(expected)) => {
            format!("{place}  left out: some {} expected, over --limit", duration(expected))
        }
        (None, None) => place,
    }
}

/// A page of plots and the table.
fn page(by_rows: &[Point], by_round_trip: &[Point], advice: &[String]) -> String {
    type Value = fn(&Point) -> f64;
    let values: [(&str, Value); 3] = [
        ("Time, s", |p| p.seconds.unwrap_or(0.0)),
        ("Bytes of all parties", |p| p.bytes as f64),
        ("Peak memory of all parties, B", |p| p.peak_memory_bytes as f64),
    ];
    let mut figures = Vec::new();
    let series: [(&[Point], &str, Value); 2] =
        [(by_rows, "rows", |p| p.rows as f64), (by_round_trip, "round trip, ms", |p| p.round_trip_ms)];
    for (points, across, at) in series {
        for (title, value) in values {
            let curve = |(index, who): (usize, Contestant)| {
                let of = points.iter().skip(index).step_by(CONTESTANTS.len());
                let done = of.filter(|p| p.seconds.is_some()).map(|p| (at(p), value(p)));
                PlotLine { name: who.name(), points: done.collect() }
            };
            let curves: Vec<PlotLine> = CONTESTANTS.into_iter().enumerate().map(curve).collect();
            figures.push(plot(&format!("{title}, by {across}"), across, AxisScale::Log, &curves));
        }
    }
    let cells = |p: &Point| {
        [
            p.engine.clone(),
            p.security.word(),
            p.parties.to_string(),
            count(p.rows),
            p.round_trip_ms.to_string(),
            p.seconds.map_or_else(|| "left out".to_owned(), |s| format!("{s:.3}")),
            format!("{:.2}", p.cpu_seconds),
            count(p.bytes),
            count(p.peak_memory_bytes),
        ]
    };
    let about = format!(
        "A lift study with {LIFT_EVENTS} events per person, 32-bit times and values, no matching; every \
         party a process of this machine, over TLS; time from when all have met. Round trips go through a \
         relay that delays every byte. yao and gmw: two parties; ring4: four, the owners among them."
    );
    let advice = advice.iter().map(|line| words("li", "", line));
    FigurePage {
        name: "tacit bench engines",
        title: "One lift study on every engine",
        about: vec![words("p", "", about), element("ul", &[], advice)],
        figures,
        head: &[
            "engine",
            "security",
            "parties",
            "rows",
            "round trip, ms",
            "seconds",
            "CPU s",
            "bytes",
            "memory, B",
        ],
        rows: by_rows.iter().chain(by_round_trip).map(cells).collect(),
    }
    .html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(engine: &'static str, security: SecurityName, parties: usize, seconds: Option<f64>) -> Point {
        Point {
            engine: engine.to_owned(),
            security,
            parties,
            rows: 1000,
            round_trip_ms: 1.0,
            seconds,
            expected_seconds: None,
            bytes: 1,
            peak_memory_bytes: 1,
            cpu_seconds: 1.0,
            and_per_s: None,
            correct: Some(true),
        }
    }

    #[test]
    fn advice_follows_the_figures() {
        use SecurityName::{Malicious, SemiHonest};
        let points = [
            point("yao", SemiHonest, 2, Some(3.0)),
            point("gmw", SemiHonest, 2, Some(2.0)),
            point("ring4", SemiHonest, 4, Some(0.5)),
            point("ring4", Malicious, 4, Some(1.0)),
        ];
        let lines = advice(&points, &[]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("two parties alone take gmw (2.00 s)"), "{lines:?}");
        assert!(lines[0].contains("ring4 (1.00 s, 2.0 times faster)"), "{lines:?}");
        let mut slow = points;
        slow[3].seconds = Some(4.0);
        slow[1].seconds = None;
        let lines = advice(&[], &slow);
        assert!(lines[0].contains("take yao") && lines[0].contains("1.3 times slower"), "{lines:?}");
        slow[3].seconds = Some(2.9);
        let lines = advice(&[], &slow);
        assert!(lines[0].contains("ring4 (2.90 s, as fast)"), "{lines:?}");
    }
}

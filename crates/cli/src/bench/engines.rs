//! `bench engines`: one lift study on every engine, against rows and against round-trip time, as figures 3 and 4 of the
//! survey of engines that the study comes from.
//!
//! Every party is a process of its own, all over TLS: two for `yao` and `gmw`, four for `ring4`, where the two owners hold a
//! seat each. Round trips are made by a relay that delays every byte. A setting that is expected to take longer than
//! the limit is left out, and said to be.

mod seat;

pub use seat::Task;

use super::figures::{Curve, Scale, page_of, plot};
use super::party::{self, Job, Measured};
use super::{LIFT_EVENTS, keys, lift_correct, start, totals};
use crate::args::{Bench, EngineName, SecurityName, TransportName, What};
use crate::follow::Children;
use crate::output;
use crate::progress::{Line, Working};
use base::Error;
use base::free_address;
use engine::Engine;
use net::relay::Relay;
use seat::NAMES;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// An engine with its setting.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Contestant {
    engine: EngineName,
    security: SecurityName,
}

const CONTESTANTS: [Contestant; 4] = [
    Contestant { engine: EngineName::Yao, security: SecurityName::SemiHonest },
    Contestant { engine: EngineName::Gmw, security: SecurityName::SemiHonest },
    Contestant { engine: EngineName::Ring4, security: SecurityName::SemiHonest },
    Contestant { engine: EngineName::Ring4, security: SecurityName::Malicious },
];

impl Contestant {
    fn name(self) -> String {
        match (self.engine, self.security) {
            (EngineName::Ring4, SecurityName::SemiHonest) => "ring4, semi-honest".to_owned(),
            (EngineName::Ring4, SecurityName::Malicious) => "ring4, malicious".to_owned(),
            (other, _) => other.word().to_owned(),
        }
    }

    /// Of two parties: nobody else is needed.
    fn alone(self) -> bool {
        self.engine != EngineName::Ring4
    }

    /// Messages that follow one another.
    fn trips(self, args: &Bench, rows: u64) -> Result<u64, Error> {
        let (program, _) = party::program(What::Lift)?;
        let engine: Box<dyn Engine> = match self.engine {
            EngineName::Yao => Box::new(yao::Yao::new(args.k)),
            EngineName::Gmw => Box::new(::gmw::Gmw::new(super::gmw::kind(args)?)),
            _ => Box::new(seat::engine(self.security)),
        };
        Ok(engine.trips(&program, rows))
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
    transport: &'static str,
    limit_s: u64,
    by_rows: Vec<Point>,
    by_round_trip: Vec<Point>,
    advice: Vec<String>,
    correct: bool,
}

/// Measures and prints.
///
/// # Errors
/// When a party fails, or a result is wrong.
pub fn run(args: &Bench) -> Result<(), Error> {
    let mut study = Study { args, told: false, known: Vec::new() };
    let by_rows = study.series(&args.sizes.iter().map(|rows| (*rows, 0.0)).collect::<Vec<_>>())?;
    if !args.json && !args.round_trips.is_empty() {
        let rows = output::counted(args.rows, "row");
        output::print(&format!("against round-trip time, with {rows} (--rows, not --sizes):"))?;
    }
    let far: Vec<_> = args.round_trips.iter().map(|ms| (args.rows, *ms)).collect();
    let by_round_trip = study.series(&far)?;
    let correct = by_rows.iter().chain(&by_round_trip).all(|point| point.correct != Some(false));
    let advice = advice(&by_rows, &by_round_trip);
    if let Some(file) = &args.figures {
        write(file, &by_rows, &by_round_trip, &advice)?;
    }
    if args.json {
        let (k, limit_s) = (LIFT_EVENTS, args.limit);
        let transport = TransportName::Tls.word();
        output::print_json(&Summary {
            what: "engines",
            k,
            transport,
            limit_s,
            by_rows,
            by_round_trip,
            advice,
            correct,
        })?;
    } else {
        output::print(&advice.join("\n"))?;
    }
    if correct {
        return Ok(());
    }
    Err(Error::misuse("a result is wrong; this must not happen, please report it"))
}

/// What has been measured so far.
struct Study<'a> {
    args: &'a Bench,
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
        if self.args.json {
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
            engine: who.engine.word().to_owned(),
            security: who.security,
            parties: if who.alone() { 2 } else { NAMES.len() },
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
        let working =
            Working::on(format!("{}: {} rows, {round_trip_ms} ms", who.name(), output::grouped(rows)));
        let parties = measure(self.args, who, rows, round_trip_ms)?;
        drop(working);
        let (program, lift) = party::program(What::Lift)?;
        let (lift, layout) = lift.ok_or_else(|| Error::misuse("a lift study has a layout"))?;
        let totals = totals(&program, &parties);
        let seconds = parties.iter().fold(0.0, |most: f64, p| (p.seconds - p.meeting_seconds).max(most));
        let and_gates = || seat::engine(who.security).and_gates(&program, rows) as f64;
        Ok(Point {
            seconds: Some(seconds),
            and_per_s: (!who.alone()).then(|| and_gates() / seconds),
            bytes: parties.iter().map(|p| p.bytes_sent).sum(),
            peak_memory_bytes: parties.iter().map(|p| p.peak_memory_bytes).sum(),
            cpu_seconds: parties.iter().map(|p| p.cpu_seconds).sum(),
            correct: Some(totals.is_some_and(|totals| lift_correct(&lift, &layout, rows, &totals))),
            ..point
        })
    }

    /// From what the same engine took before, by rows, and what the path adds.
    fn expected(&self, who: Contestant, rows: u64, round_trip_ms: f64) -> Result<Option<f64>, Error> {
        let near = |ms: f64| who.trips(self.args, rows).map(|trips| trips as f64 * ms / 2e3);
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

/// Runs one setting.
fn measure(args: &Bench, who: Contestant, rows: u64, round_trip_ms: f64) -> Result<Vec<Measured>, Error> {
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a temporary folder", &e))?;
    let delay = Duration::from_secs_f64(round_trip_ms / 2e3);
    if who.alone() {
        two(&Bench { rows, engine: who.engine, what: What::Lift, ..args.clone() }, delay, folder.path())
    } else {
        four(who.security, rows, delay, folder.path())
    }
}

/// The address of a path to `target` that delays every byte; without delay there is no relay.
fn path(target: &str, delay: Duration) -> Result<(String, Option<Relay>), Error> {
    if delay.is_zero() {
        return Ok((target.to_owned(), None));
    }
    let at = target.parse().map_err(|_| Error::misuse(format!("{target} is no address")))?;
    let relay = Relay::spawn("127.0.0.1:0", at, delay, 0)?;
    Ok((relay.address.to_string(), Some(relay)))
}

fn two(args: &Bench, delay: Duration, folder: &Path) -> Result<Vec<Measured>, Error> {
    let secrets = keys(TransportName::Tls, &super::PARTIES, folder)?.unwrap_or_default();
    let mut children = Children::default();
    let task = |party: u8| {
        let tls = secrets.get(usize::from(party)).cloned();
        Ok::<_, Error>(party::Task { tls, ..super::task(args, party)? })
    };
    start(&mut children, super::PARTIES[0], &Job::Two(Box::new(task(0)?)))?;
    let address = children.until(|_, line| match line {
        Line::Waiting { text } => Some(text.clone()),
        _ => None,
    })?;
    let (peer, _relay) = path(&address, delay)?;
    let second = party::Task { peer: Some(peer), ..task(1)? };
    start(&mut children, super::PARTIES[1], &Job::Two(Box::new(second)))?;
    children.finish(|_, _| ())
}

fn four(security: SecurityName, rows: u64, delay: Duration, folder: &Path) -> Result<Vec<Measured>, Error> {
    let secrets = keys(TransportName::Tls, &NAMES, folder)?.unwrap_or_default();
    let listen = NAMES.iter().map(|_| free_address()).collect::<Result<Vec<_>, Error>>()?;
    let paths = listen.iter().map(|at| path(at, delay)).collect::<Result<Vec<_>, Error>>()?;
    let mut children = Children::default();
    for (seat, (name, tls)) in NAMES.iter().zip(secrets).enumerate() {
        let dial = paths.iter().take(seat).map(|(at, _)| at.clone()).collect();
        let task = Task { security, rows, seat: seat as u8, listen: listen[seat].clone(), dial, tls };
        start(&mut children, name, &Job::Servers(Box::new(task)))?;
    }
    children.finish(|_, _| ())
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
                let than = match four_s < two_s {
                    true => format!("{:.1} times faster", two_s / four_s),
                    false => format!("{:.1} times slower", four_s / two_s),
                };
                line +=
                    &format!("; four servers of which one may do anything, ring4 ({four_s:.2} s, {than})");
            }
            lines.push(line);
        }
    };
    say(by_rows, &|p| format!("{} rows", output::grouped(p.rows)));
    say(by_round_trip, &|p| {
        format!("{} rows, round trips of {} ms", output::grouped(p.rows), p.round_trip_ms)
    });
    lines
}

fn heading() -> String {
    format!(
        "{:7} {:12} {:>9} {:>9}  {:>9} {:>9} {:>10} {:>9}",
        "engine", "security", "rows", "trip, ms", "seconds", "CPU s", "bytes", "memory"
    )
}

fn row(p: &Point) -> String {
    let place = format!(
        "{:7} {:12} {:>9} {:>9}",
        p.engine,
        p.security.word(),
        output::grouped(p.rows),
        p.round_trip_ms
    );
    match (p.seconds, p.expected_seconds) {
        (Some(seconds), _) => format!(
            "{place}  {seconds:>9.3} {:>9.2} {:>10} {:>9}{}",
            p.cpu_seconds,
            output::bytes(p.bytes),
            output::bytes(p.peak_memory_bytes),
            if p.correct == Some(false) { "  WRONG" } else { "" }
        ),
        (None, Some(expected)) => {
            format!("{place}  left out: some {} expected, over --limit", output::duration(expected))
        }
        (None, None) => place,
    }
}

/// A page of plots and the table.
fn write(file: &Path, by_rows: &[Point], by_round_trip: &[Point], advice: &[String]) -> Result<(), Error> {
    type Value = fn(&Point) -> f64;
    let values: [(&str, Value); 3] = [
        ("Time, s", |p| p.seconds.unwrap_or(0.0)),
        ("Bytes of all parties", |p| p.bytes as f64),
        ("Peak memory of all parties, B", |p| p.peak_memory_bytes as f64),
    ];
    let mut figures = String::new();
    let series: [(&[Point], &str, Value); 2] =
        [(by_rows, "rows", |p| p.rows as f64), (by_round_trip, "round trip, ms", |p| p.round_trip_ms)];
    for (points, across, at) in series {
        for (title, value) in values {
            let curve = |(index, who): (usize, Contestant)| {
                let of = points.iter().skip(index).step_by(CONTESTANTS.len());
                let done = of.filter(|p| p.seconds.is_some()).map(|p| (at(p), value(p)));
                Curve { name: who.name(), points: done.collect() }
            };
            let curves: Vec<Curve> = CONTESTANTS.into_iter().enumerate().map(curve).collect();
            figures.push_str(&plot(&format!("{title}, by {across}"), across, Scale::Log, &curves));
        }
    }
    let rows: String = by_rows
        .iter()
        .chain(by_round_trip)
        .map(|p| {
            let seconds = p.seconds.map_or_else(|| "left out".to_owned(), |s| format!("{s:.3}"));
            format!(
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{seconds}<td>{:.2}<td>{}<td>{}</tr>\n",
                p.engine,
                p.security.word(),
                p.parties,
                output::grouped(p.rows),
                p.round_trip_ms,
                p.cpu_seconds,
                output::grouped(p.bytes),
                output::grouped(p.peak_memory_bytes)
            )
        })
        .collect();
    let text = format!(
        "<p>A lift study with {LIFT_EVENTS} events per person, 32-bit times and values, no matching; every party a process of \
         this machine, over TLS; time from when all have met. Round trips go through a relay that delays every byte. \
         yao and gmw: two parties; ring4: four, the owners among them.</p>\n<ul>{}</ul>",
        advice.iter().map(|line| format!("<li>{line}</li>")).collect::<String>()
    );
    let head = "<th>engine<th>security<th>parties<th>rows<th>round trip, ms<th>seconds<th>CPU s<th>bytes<th>memory, B";
    let page = page_of("tacit bench engines", "One lift study on every engine", &text, &figures, head, &rows);
    output::write_file(file, page.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(engine: &str, security: SecurityName, parties: usize, seconds: Option<f64>) -> Point {
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
    }
}

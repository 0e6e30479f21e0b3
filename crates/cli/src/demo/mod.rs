//! `tacit demo`: a whole study on this machine, with the truth beside what each party sees.

mod files;
mod market;
mod ring4;
mod story;

use base::Error;
use clap::{Args, ValueEnum};
use files::Folder;
use release::modes::LiftEstimate;
use report::{ResultView, RunReport};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use terminal::follow::Children;
use terminal::output;
use terminal::progress::{Board, ProgressLine, Working};

/// Runs a whole study on this machine: makes data, keys and files, starts every party as a process of its own
/// over mutually authenticated TLS, and compares what they see with the truth.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit demo\n  tacit demo market\n  tacit demo ring4\n  tacit demo --out \
                  /tmp/demo --json\n\nThe folder keeps everything: run it again yourself, each side in a \
                  terminal of its own, with `tacit run demo-out/registry.toml` and `tacit run \
                  demo-out/hospitals.toml`."
)]
pub struct DemoArgs {
    /// polio: lift over the 1954 poliomyelitis field trial, two parties; market: the fastest of many peers, a
    /// customer and five providers; ring4: the trial computed by four servers, three of them headless
    #[arg(default_value = "polio")]
    pub what: DemoName,
    /// The folder for data, keys, study and reports; what demos made in it before, of any kind, is
    /// removed, and a folder with other files alone is left alone
    #[arg(long, value_name = "FOLDER", default_value = "demo-out")]
    pub out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// polio, ring4: one child in so many, of 1 to 100, and all the cases: a quicker demo
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub scale: Option<u64>,
}

/// A demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoName {
    /// The 1954 poliomyelitis field trial.
    Polio,
    /// The fastest of many peers.
    Market,
    /// The field trial, computed by four servers.
    Ring4,
}

/// The parties in the order of the study: the first sees the headline of the JSON.
pub const PARTIES: [&str; 2] = ["registry", "hospitals"];

const MISSED: &str =
    "an interval misses the truth; this happens by chance less than once in a thousand runs: run again";

/// The JSON of `tacit demo --json`.
#[derive(Debug, Serialize)]
struct Summary {
    /// Absolute difference of mean clamped outcomes, test minus control, per person: the public result.
    lift: f64,
    interval: [f64; 2],
    noise_interval: [f64; 2],
    truth: f64,
    /// Whether every view's interval contains the truth.
    contains_truth: bool,
    views: BTreeMap<String, Seen>,
    /// Rows of the union.
    rows: u64,
    matched_upper_bound: u64,
    /// From the first byte of matching to the last report.
    seconds: f64,
    /// Application bytes sent by all parties before TLS.
    bytes: u64,
    engine: String,
    mode: String,
    peak_memory_bytes: BTreeMap<String, u64>,
    cpu_seconds: BTreeMap<String, f64>,
    study: String,
    /// Its hash in full, as ledgers have it.
    full_hash: String,
}

/// One party's view.
#[derive(Debug, Serialize)]
struct Seen {
    lift: f64,
    interval: [f64; 2],
    noise_interval: [f64; 2],
    rho: f64,
    /// All that the party got, the sizes of the match included.
    total: Option<privacy::PrivacyTotal>,
}

/// Runs the demo.
///
/// # Errors
/// When the folder is not the demo's, a party fails, or an interval misses the truth.
pub fn run(args: &DemoArgs) -> Result<(), Error> {
    if args.what == DemoName::Market && args.scale.is_some() {
        return Err(Error::input("--scale goes with polio and ring4; remove --scale"));
    }
    match args.what {
        DemoName::Polio => polio(args),
        DemoName::Market => market::run(args),
        DemoName::Ring4 => ring4::run(args),
    }
}

fn polio(args: &DemoArgs) -> Result<(), Error> {
    let folder = Folder::claim(&args.out, &PARTIES)?;
    let working = Working::on(format!("making data, keys and study in {}", args.out.display()));
    let scale = args.scale.unwrap_or(1);
    let made = folder.fill(scale)?;
    drop(working);
    let tell = |text: &str| if args.json { Ok(()) } else { output::print(text) };
    tell(&story::opening(&made, scale)?)?;
    let reports = follow(&folder, &PARTIES, args.json)?;
    let [first, second] = &reports[..] else { return Err(Error::misuse("a demo has two parties")) };
    let truth = made.truth();
    let summary = summary(&[first, second], truth)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&story::closing([first, second], truth, summary.contains_truth, &folder))?;
    }
    if summary.contains_truth {
        return Ok(());
    }
    Err(Error::misuse(MISSED))
}

/// The parties as processes; their reports in order.
fn follow(folder: &Folder, parties: &[&str], json: bool) -> Result<Vec<RunReport>, Error> {
    let words: &[&str] = &["run", "--json", "--events"];
    finish(folder, parties.iter().map(|party| (*party, words)), json)
}

/// Processes, each `tacit` with words and a party file; what they print, in order.
fn finish<'w, T: DeserializeOwned>(
    folder: &Folder,
    processes: impl Iterator<Item = (&'w str, &'w [&'w str])>,
    json: bool,
) -> Result<Vec<T>, Error> {
    let mut children = Children::default();
    for (party, words) in processes {
        let file = folder.party_file(party);
        let words = words.iter().map(|word| OsStr::new(*word)).chain([file.as_os_str()]);
        children.start(party, &words.collect::<Vec<_>>())?;
    }
    let board = Board::stderr();
    let reports = children.finish(|index, line| match line {
        // One party's progress stands for all; that another one is awaited, or a ledger new, is of no
        // interest here.
        ProgressLine::Waiting { .. } | ProgressLine::Connected { .. } | ProgressLine::Note { .. } => {}
        _ if index == 0 => board.show(line),
        _ => {}
    });
    if !json || reports.is_err() {
        board.end();
    }
    reports
}

/// The overall estimate of a report.
fn estimate(report: &RunReport) -> Result<&LiftEstimate, Error> {
    let ResultView::Lift(view) = &report.view else { return Err(Error::misuse("the demo is a lift study")) };
    let overall = view.cells.first().ok_or_else(|| Error::misuse("a lift view has an overall cell"))?;
    overall.estimate.as_ref().ok_or_else(|| {
        Error::misuse(format!(
            "{} was shown no estimate: {}",
            report.party,
            overall.refused.as_deref().unwrap_or("no reason")
        ))
    })
}

fn summary(reports: &[&RunReport; 2], truth: f64) -> Result<Summary, Error> {
    let [first, second] = reports;
    let mut views = BTreeMap::new();
    for report in reports {
        let LiftEstimate { lift, interval, noise_interval, .. } = *estimate(report)?;
        let rho = report.privacy.rho_value;
        let total = report.privacy.total.clone();
        views.insert(report.party.clone(), Seen { lift, interval, noise_interval, rho, total });
    }
    let LiftEstimate { lift, interval, noise_interval, .. } = *estimate(first)?;
    let contains = |seen: &Seen| (seen.interval[0]..=seen.interval[1]).contains(&truth);
    Ok(Summary {
        lift,
        interval,
        noise_interval,
        truth,
        contains_truth: views.values().all(contains),
        views,
        rows: first.disclosed.union,
        matched_upper_bound: first.disclosed.matched_upper_bound,
        seconds: first.seconds.max(second.seconds),
        bytes: first.bytes,
        engine: first.engine.clone(),
        mode: first.mode.clone(),
        peak_memory_bytes: reports.iter().map(|r| (r.party.clone(), r.peak_memory_bytes)).collect(),
        cpu_seconds: reports.iter().map(|r| (r.party.clone(), r.cpu_seconds)).collect(),
        study: first.study.hash.clone(),
        full_hash: first.study.full_hash.clone(),
    })
}

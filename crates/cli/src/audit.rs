//! `tacit audit`: whether intervals cover and noise protects as much as is said, by simulation that anybody
//! can rerun.

use crate::args;
use base::Error;
use clap::{Args, Subcommand};
use job::audit::coverage::{self, ALLOWED, CONFIDENCE, Cell};
use job::audit::epsilon::{self, Audited};
use page::numbers::{count, counted};
use release::coverage::Law;
use release::rational::Rational;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use study::party::parse_rho;
use study::{ReleaseMode, Study, StudyFile};
use terminal::output;
use terminal::progress::Working;

/// Audits the statistics and the noise, in one process and with made-up data. Nothing is read but the study,
/// and nothing is sent or charged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit audit coverage --rows 10k --rho 0.1 --trials 2k\n  tacit audit \
                        coverage study.toml --rows 200k,190k --rate 0.004\n  tacit audit epsilon study.toml \
                        --runs 100k")]
pub struct AuditArgs {
    /// What to audit
    #[command(subcommand)]
    pub action: AuditCommand,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to audit.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// How often intervals hold the truth
    ///
    /// Without a study: the table of docs/protocols/release.md, or the part of it that the flags leave. With
    /// a lift study: every cell of it, as many rows in each value of a breakdown. Exit code 1 where a cell
    /// that must cover does not. The whole table takes long; fewer --trials take less.
    #[command(after_help = "Examples:\n  tacit audit coverage\n  tacit audit coverage --rows 10k --rho 0.1 \
                      --trials 2k\n  tacit audit coverage study.toml --rows 200k,190k --rate 0.004")]
    Coverage(CoverageArgs),
    /// What two neighbouring inputs cost at least, seen from outputs
    ///
    /// Runs the release of each view many times on each of two inputs that differ in one person, and bounds
    /// from below what tells their outputs apart. Exit code 1 where that is more than ledgers charge.
    #[command(after_help = "Examples:\n  tacit audit epsilon\n  tacit audit epsilon study.toml --runs 100k")]
    Epsilon(EpsilonArgs),
}

/// Flags of `tacit audit coverage`.
#[derive(Debug, Args)]
pub struct CoverageArgs {
    /// A lift study; without it the grid of the documentation
    pub study: Option<PathBuf>,
    /// Rows of the test and of the control arm: 200k or 200k,190k; may be repeated
    #[arg(long, value_name = "N[,M]", value_parser = args::rows_pair)]
    pub rows: Vec<[u64; 2]>,
    /// zCDP of a view of the grid; may be repeated
    #[arg(long, value_name = "RHO", value_parser = parse_rho, conflicts_with = "study")]
    pub rho: Vec<Rational>,
    /// Modes of the grid: sums, variance, algorithm1, algorithm1-as-published; may be repeated
    #[arg(long, value_name = "MODE", value_parser = mode, conflicts_with = "study")]
    pub mode: Vec<ReleaseMode>,
    /// Share of the control arm that has an outcome; the test arm has a tenth more
    #[arg(long, value_name = "P")]
    pub rate: Option<f64>,
    /// R of the outcomes of --rate
    #[arg(long, value_name = "R", requires = "rate", conflicts_with = "study")]
    pub clamp: Option<u64>,
    /// Median of the outcomes of --rate where R is above 1, log-normal with deviation 1; else R / 5
    #[arg(long, value_name = "X")]
    pub median: Option<f64>,
    /// Level of the intervals; may be repeated; else 0.9 and 0.95
    #[arg(long, value_name = "LEVEL")]
    pub confidence: Vec<f64>,
    /// Results shown in each cell
    #[arg(long, value_name = "N", value_parser = terminal::values::count, default_value = "20k")]
    pub trials: u64,
    #[command(flatten)]
    pub how: How,
}

/// Flags of `tacit audit epsilon`.
#[derive(Debug, Args)]
pub struct EpsilonArgs {
    /// A lift study; without it every mode, for every viewer
    pub study: Option<PathBuf>,
    /// zCDP of each view where there is no study
    #[arg(long, value_name = "RHO", value_parser = parse_rho, default_value = "2", conflicts_with = "study")]
    pub rho: Rational,
    /// Runs on each of the two inputs
    #[arg(long, value_name = "N", value_parser = terminal::values::count, default_value = "20k")]
    pub runs: u64,
    /// Confidence of each bound
    #[arg(long, value_name = "LEVEL", default_value_t = 0.999)]
    pub confidence: f64,
    #[command(flatten)]
    pub how: How,
}

/// Flags of both.
#[derive(Debug, Args)]
pub struct How {
    /// Another table
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// Threads; else one per core
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl How {
    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores)
    }
}

/// Most runs or trials: more take days.
const MOST: u64 = 10_000_000;

fn mode(text: &str) -> Result<ReleaseMode, String> {
    let found = ReleaseMode::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, mode)| *mode).ok_or_else(|| {
        let names: Vec<&str> = ReleaseMode::NAMES.iter().map(|(name, _)| *name).collect();
        format!("write one of {}", names.join(", "))
    })
}

/// Runs an audit and prints what it found.
///
/// # Errors
/// When something is out of range, and where the audit fails.
pub fn run(audit: &AuditArgs) -> Result<(), Error> {
    match &audit.action {
        AuditCommand::Coverage(args) => cover(args, audit.json),
        AuditCommand::Epsilon(args) => epsilon(args, audit.json),
    }
}

fn study(path: Option<&PathBuf>) -> Result<Option<Study>, Error> {
    let Some(path) = path else { return Ok(None) };
    study::expect_study(path)?;
    StudyFile::read(path)?.0.only().map(Some)
}

/// Says how far it is, ten times in all where nobody watches a terminal.
fn working<T>(
    text: &str,
    run: impl FnOnce(job::audit::Progress<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let (board, said) = (Working::on(text), AtomicUsize::new(0));
    run(&|done, of| {
        let tenth = 10 * done / of.max(1);
        if said.fetch_max(tenth, Ordering::Relaxed) < tenth || board.is_live() {
            board.tell(format!("{text}: {done} of {of} parts"));
        }
    })
}

fn in_range(what: &str, value: u64) -> Result<(), Error> {
    match (1..=MOST).contains(&value) {
        true => Ok(()),
        false => Err(Error::input(format!("{what} {value}: write 1 to {}", count(MOST)))),
    }
}

fn level(value: f64) -> Result<(), Error> {
    match value > 0.0 && value < 1.0 {
        true => Ok(()),
        false => {
            Err(Error::input(format!("--confidence {value}: write a level between 0 and 1, such as 0.95")))
        }
    }
}

fn asked(args: &CoverageArgs) -> Result<coverage::CoverageQuestion, Error> {
    in_range("--trials", args.trials)?;
    args.confidence.iter().try_for_each(|value| level(*value))?;
    let mut asked = coverage::CoverageQuestion::grid(args.trials, args.how.seed, args.how.threads());
    asked.study = study(args.study.as_ref())?;
    let clamp = match &asked.study {
        Some(study) => coverage::clamp(study)?,
        None => args.clamp.unwrap_or(1),
    };
    if let Some(rate) = args.rate.or(asked.study.as_ref().map(|_| 0.01)) {
        let median = args.median.unwrap_or(clamp as f64 / 5.0);
        asked.laws = vec![Law::of_rate(rate, clamp, median)?];
    }
    if !args.confidence.is_empty() {
        asked.levels.clone_from(&args.confidence);
    }
    if !args.rows.is_empty() {
        asked.rows.clone_from(&args.rows);
    }
    if !args.rho.is_empty() {
        asked.rho.clone_from(&args.rho);
    }
    if !args.mode.is_empty() {
        asked.modes.clone_from(&args.mode);
    }
    Ok(asked)
}

fn cover(args: &CoverageArgs, json: bool) -> Result<(), Error> {
    let asked = asked(args)?;
    let report = working("simulating", |progress| coverage::run(&asked, progress))?;
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&coverage_text(&report))?;
    }
    let failed = report.cells.iter().filter(|cell| cell.fails()).count();
    match failed {
        0 => Ok(()),
        _ => Err(Error::misuse(format!("{} cover too little", counted(failed as u64, "cell")))),
    }
}

/// Each name once, in the order in which they come.
fn once<'a, T: PartialEq>(all: impl Iterator<Item = &'a Cell>, of: impl Fn(&'a Cell) -> T) -> Vec<T> {
    let mut names = Vec::new();
    for cell in all {
        let name = of(cell);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn arms(rows: [u64; 2]) -> String {
    if rows[0] == rows[1] { count(rows[0]) } else { format!("{} and {}", count(rows[0]), count(rows[1])) }
}

/// The table of the documentation: the lowest coverage of each mechanism and law, and what is not in it.
fn coverage_text(report: &coverage::CoverageReport) -> String {
    let cells = &report.cells;
    let read = || cells.iter().filter(|cell| !cell.not_read());
    let nominal: Vec<String> = read()
        .next()
        .map_or_else(Vec::new, |cell| cell.levels.iter().map(|l| format!("{}", 100.0 * l.nominal)).collect());
    let mut lines = vec![
        format!(
            "Lowest share of intervals that held the truth, in per cent, at {} %; {} results a cell, seed \
             {}.",
            nominal.join(" / "),
            count(report.trials),
            report.seed
        ),
        format!(
            "Rows per arm: {}. rho: {}.",
            once(cells.iter(), |cell| arms(cell.rows)).join("; "),
            once(cells.iter(), |cell| cell.rho.clone()).join(", ")
        ),
        String::new(),
    ];
    let laws = once(cells.iter(), |cell| cell.law.as_str());
    lines.push(format!("| mechanism | {} |", laws.join(" | ")));
    lines.push(format!("|---{}|", "|---".repeat(laws.len())));
    for mechanism in once(cells.iter(), |cell| cell.mechanism.as_str()) {
        let of = |law: &&str| {
            lowest(&cells.iter().filter(|c| c.mechanism == mechanism && c.law == **law).collect::<Vec<_>>())
        };
        lines.push(format!(
            "| {} | {} |",
            coverage::marked(mechanism),
            laws.iter().map(of).collect::<Vec<_>>().join(" | ")
        ));
    }
    lines.push(String::new());
    lines.extend(not_read(cells));
    lines.extend(too_low(cells));
    lines.join("\n")
}

/// The lowest coverage of some cells, by level.
fn lowest(cells: &[&Cell]) -> String {
    let levels = cells.iter().map(|cell| cell.levels.len()).max().unwrap_or(0);
    let of = |at: usize| {
        cells.iter().filter_map(|cell| cell.levels.get(at)).map(|l| l.covered).fold(1.0, f64::min)
    };
    match levels {
        0 => "not read".to_owned(),
        _ => (0..levels).map(|at| format!("{:.1}", 100.0 * of(at))).collect::<Vec<_>>().join(" / "),
    }
}

fn not_read(cells: &[Cell]) -> Vec<String> {
    let groups =
        once(cells.iter().filter(|cell| cell.not_read()), |cell| (cell.mechanism.as_str(), arms(cell.rows)));
    let of = |(mechanism, rows): &(&str, String)| {
        let here = || cells.iter().filter(|c| c.mechanism == *mechanism && arms(c.rows) == *rows);
        let gone = || here().filter(|cell| cell.not_read());
        match gone().count() == here().count() {
            true => format!("Not read, too few rows are left: {mechanism}, {rows} rows an arm."),
            false => format!(
                "Not read, too few rows are left: {mechanism}, {rows} rows an arm, rho {}.",
                once(gone(), |cell| cell.rho.clone()).join(", ")
            ),
        }
    };
    groups.iter().map(of).collect()
}

fn too_low(cells: &[Cell]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut said = |required: bool, text: &str| {
        let low = cells.iter().filter(|cell| cell.required == required).flat_map(|cell| {
            cell.levels.iter().filter(|level| level.too_low()).map(move |level| (cell, level))
        });
        let low: Vec<String> = low
            .map(|(cell, level)| {
                format!(
                    "  {}, {}, {} rows an arm, rho {}: {:.1} % of {} %, in [{:.1}, {:.1}]",
                    cell.mechanism,
                    cell.law,
                    arms(cell.rows),
                    cell.rho,
                    100.0 * level.covered,
                    100.0 * level.nominal,
                    100.0 * level.interval[0],
                    100.0 * level.interval[1]
                )
            })
            .collect();
        if required || !low.is_empty() {
            let below = if low.is_empty() { "none".to_owned() } else { count(low.len() as u64) };
            lines.push(format!("{text}: {below}."));
            lines.extend(low);
        }
    };
    let rule = format!(
        "whose {} % interval lies below the level by more than {} points",
        100.0 * CONFIDENCE,
        100.0 * ALLOWED
    );
    said(true, &format!("Cells {rule}"));
    said(false, &format!("Cells of the mode as published, which need not cover, {rule}"));
    lines
}

fn epsilon(args: &EpsilonArgs, json: bool) -> Result<(), Error> {
    in_range("--runs", args.runs)?;
    level(args.confidence)?;
    let asked = epsilon::EpsilonQuestion {
        study: study(args.study.as_ref())?,
        rho: args.rho.clone(),
        runs: args.runs as usize,
        confidence: args.confidence,
        seed: args.how.seed,
        threads: args.how.threads(),
    };
    let report = working("running", |progress| epsilon::run(&asked, progress))?;
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&epsilon_text(&report))?;
    }
    match report.views.iter().filter(|view| !view.passes).count() {
        0 => Ok(()),
        failed => Err(Error::misuse(format!("{} cost more than is charged", counted(failed as u64, "view")))),
    }
}

fn epsilon_text(report: &epsilon::EpsilonReport) -> String {
    let mut lines = vec![
        format!(
            "{} runs on each of two neighbouring inputs; each bound holds with {} %; seed {}.",
            count(report.runs as u64),
            100.0 * report.confidence,
            report.seed
        ),
        String::new(),
        "| study | seen by | rho: charged | of the inputs | seen | epsilon at 10⁻⁶: charged | seen | |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    let line = |view: &Audited| {
        format!(
            "| {} | {} | {:.4} | {:.4} | {:.4} | {:.2} | {:.2} | {} |",
            view.study,
            view.viewer,
            view.rho,
            view.rho_of_inputs,
            view.rho_seen,
            // What is promised is rounded up, what was seen at least is rounded down.
            (100.0 * view.epsilon - 1e-6).ceil() / 100.0,
            (100.0 * view.epsilon_seen).floor() / 100.0,
            if view.passes { "passes" } else { "FAILS" }
        )
    };
    lines.extend(report.views.iter().map(line));
    lines.push(String::new());
    lines.extend(report.views.iter().map(|view| {
        format!(
            "{}, {}: {} against {}. rho by {}, epsilon by {}.",
            view.study, view.viewer, view.inputs[0], view.inputs[1], view.rho_seen_by, view.epsilon_seen_by
        )
    }));
    lines.join("\n")
}

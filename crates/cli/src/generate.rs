//! `tacit generate`: data with a known answer.

use base::Error;
use clap::{Args, ValueEnum};
use data::generate::{self, ArmTruth, Generated, LiftOptions, Truth};
use page::numbers::count;
use serde_json::{Value, json};
use std::path::PathBuf;
use terminal::output;
use terminal::progress::Working;
use terminal::values::{count as rows, share};

/// Makes up data with a known answer, and prints that answer.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit generate polio --out trial\n  tacit generate lift --rows 1M --overlap 0.3 --format parquet --out big"
)]
pub struct GenerateArgs {
    /// polio: the 1954 field trial, from its published counts; lift: a random trial of any size
    pub what: Kind,
    /// The folder for both files
    #[arg(long, value_name = "FOLDER", default_value = "generated")]
    pub out: PathBuf,
    /// lift: people on each side
    #[arg(long, value_name = "N", value_parser = rows, default_value = "10k")]
    pub rows: u64,
    /// lift: share of the publisher's people whom the advertiser knows
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub overlap: f64,
    /// lift: K, events of one person that count
    #[arg(long, value_name = "K", default_value_t = 4)]
    pub events: u8,
    /// lift: R, most that one person adds
    #[arg(long, value_name = "R", default_value_t = 100)]
    pub clamp: u32,
    /// lift: the format of both files
    #[arg(long, default_value = "csv")]
    pub format: Format,
    /// Everything is a function of it
    #[arg(long, value_name = "N", default_value_t = 1954)]
    pub seed: u64,
    /// Print one JSON object: files, rows, truth
    #[arg(long)]
    pub json: bool,
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The 1954 poliomyelitis field trial.
    Polio,
    /// A random trial.
    Lift,
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Parquet.
    Parquet,
}

/// Writes the files and prints the truth.
///
/// # Errors
/// When an option is out of range or a file cannot be written.
pub fn run(args: &GenerateArgs) -> Result<(), Error> {
    let working = Working::on(format!("writing to {}", args.out.display()));
    let made = match args.what {
        Kind::Polio => generate::polio(&args.out, args.seed)?,
        Kind::Lift => generate::lift(&args.out, &options(args)?)?,
    };
    drop(working);
    if args.json { output::print_json(&as_json(&made)) } else { output::print(&text(&made)) }
}

fn options(args: &GenerateArgs) -> Result<LiftOptions, Error> {
    let rows = u32::try_from(args.rows).map_err(|_| Error::limit("rows", args.rows, 1 << 31))?;
    let format = match args.format {
        Format::Csv => generate::Format::Csv,
        Format::Parquet => generate::Format::Parquet,
    };
    let (overlap, max_events, clamp, seed) = (args.overlap, args.events, args.clamp, args.seed);
    Ok(LiftOptions { rows, overlap, max_events, clamp, seed, format })
}

fn arm(arm: &ArmTruth) -> Value {
    json!({
        "rows": arm.rows, "value": arm.sum, "squares": arm.sum_of_squares.to_string(), "conversions": arm.conversions,
        "converters": arm.converters, "matches": arm.matches, "clamped_users": arm.clamped_users,
        "reached_conversions": arm.reached_conversions, "reached_value": arm.reached_value,
    })
}

/// The truth as JSON: arms by name, overall and by cell.
fn truth(truth: &Truth) -> Value {
    let both = |arms: &[ArmTruth; 2]| json!({ "control": arm(&arms[0]), "test": arm(&arms[1]) });
    let list = |cells: &[[ArmTruth; 2]]| cells.iter().map(both).collect::<Vec<_>>();
    json!({
        "lift": truth.lift(), "union": truth.union, "overall": both(&truth.overall),
        "breakdown": list(&truth.breakdown), "cohort": list(&truth.cohort),
    })
}

fn as_json(made: &Generated) -> Value {
    json!({
        "publisher": { "file": made.publisher.display().to_string(), "rows": made.publisher_rows },
        "advertiser": { "file": made.advertiser.display().to_string(), "rows": made.advertiser_rows },
        "truth": truth(&made.truth),
    })
}

fn text(made: &Generated) -> String {
    let [control, test] = &made.truth.overall;
    let line = |name: &str, arm: &ArmTruth| {
        format!(
            "  {name:8} {:>12} people   {:>12} converters   value {}",
            count(arm.rows),
            count(arm.converters),
            arm.sum
        )
    };
    let file = |path: &std::path::Path, rows: u64| format!("  {}: {} rows", path.display(), count(rows));
    [
        file(&made.publisher, made.publisher_rows),
        file(&made.advertiser, made.advertiser_rows),
        "The truth:".to_owned(),
        line("test", test),
        line("control", control),
        format!("  lift     {:.9} per person", made.truth.lift()),
    ]
    .join("\n")
}

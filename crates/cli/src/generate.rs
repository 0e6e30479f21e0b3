//! `tacit generate`: data with a known answer.

use crate::args::{Format, Generate, Kind};
use crate::output;
use crate::progress::Working;
use base::Error;
use data::generate::{self, ArmTruth, Generated, LiftOptions, Truth};
use serde_json::{Value, json};

/// Writes the files and prints the truth.
///
/// # Errors
/// When an option is out of range or a file cannot be written.
pub fn run(args: &Generate) -> Result<(), Error> {
    let working = Working::on(format!("writing to {}", args.out.display()));
    let made = match args.what {
        Kind::Polio => generate::polio(&args.out, args.seed)?,
        Kind::Lift => generate::lift(&args.out, &options(args)?)?,
    };
    drop(working);
    if args.json { output::print_json(&as_json(&made)) } else { output::print(&text(&made)) }
}

fn options(args: &Generate) -> Result<LiftOptions, Error> {
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
            output::grouped(arm.rows),
            output::grouped(arm.converters),
            arm.sum
        )
    };
    let file =
        |path: &std::path::Path, rows: u64| format!("  {}: {} rows", path.display(), output::grouped(rows));
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

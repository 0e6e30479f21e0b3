//! `tacit match`: this party's half of a match, and its part in a file.

use crate::run;
use crate::settings::HalfArgs;
use crate::watch::watch;
use base::Error;
use clap::Args;
use std::path::PathBuf;
use terminal::output;
use terminal::progress::ProgressLine;

/// Runs this party's half of a study of kind "match"; the other party does the same on its machine.
///
/// This party's part is written as Parquet, for its owner alone: with a protocol that gives a spine the
/// position of each row (row, identifier, position), with one that gives shares a row for each joined row and
/// slot, with this party's share of every column. The file's metadata says how shares are put together.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit match registry.toml --out spine.parquet\n  tacit match registry.toml \
                  --out shares.parquet --json\n\n\
    A study that only matches: examples/match.toml"
)]
pub struct MatchArgs {
    /// Where this party's part goes; never overwritten
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Which party, and how
    #[command(flatten)]
    pub party: HalfArgs,
    /// Print one JSON object: rows, sizes disclosed, stages
    #[arg(long)]
    pub json: bool,
}

/// Runs, writes this party's part and says what was disclosed.
///
/// # Errors
/// Input, policy, network or a deviating peer; or a disk that does not take the file.
pub fn run(args: MatchArgs) -> Result<(), Error> {
    let settings = args.party.read("tacit match registry.toml --out spine.parquet")?;
    let (party, opened, board) = run::start(settings, &args.party)?;
    board.show(&ProgressLine::Waiting { text: format!("reading {}", party.data.display()) });
    let done = job::run::run_match(&party, &opened, Some(&args.out), &watch(&board));
    board.end();
    let (report, _) = done?;
    if args.json { output::print_json(&report) } else { output::print(&report.text()) }
}

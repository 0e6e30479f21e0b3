//! `tacit match`: this party's half of a match, and its part in a file.

use crate::progress::Line;
use crate::{args, output, run};
use base::Error;

/// Runs, writes this party's part and says what was disclosed.
///
/// # Errors
/// Input, policy, network or a deviating peer; or a disk that does not take the file.
pub fn run(args: args::Match) -> Result<(), Error> {
    let usage = "tacit match registry.toml --out spine.parquet";
    let settings = run::settings(args.party.as_deref(), args.settings, usage)?;
    let (mut party, opened, board) = run::start(settings, args.said, args.events)?;
    party.new_ledger = args.new_ledger;
    board.show(&Line::Waiting { text: format!("reading {}", party.data.display()) });
    let done = job::run::match_rows(&party, &opened, &args.out, &board.watch());
    board.end();
    let report = done?;
    if args.json { output::print_json(&report) } else { output::print(&report.text()) }
}

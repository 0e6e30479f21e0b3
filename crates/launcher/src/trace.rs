//! `osprey trace`: what a trace file holds, what the best plan would move by it, and whether it is whole and
//! of a program.

pub mod figures;
mod picture;
mod show;
mod verify;

use base::Error;
use clap::{Args, Subcommand};
use osprey::trace::{Header, TraceSource};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  osprey run --speculative-only --trace-file rstats.trace -- osprey-ckks rstats
  osprey trace show rstats.trace --svg rstats.svg
  osprey trace verify rstats.trace -- osprey-ckks rstats";

/// Shows a trace file, or verifies it.
///
/// A trace says which chunks of memory a program touches, in which order. It holds no data and depends on no
/// limit.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TraceArgs {
    /// Show or verify
    #[command(subcommand)]
    action: Action,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show sizes, working set and reuse, and what the best plan moves at 10, 25, 50 and 75 % of the memory
    Show {
        /// The trace
        file: PathBuf,
        /// Draw which chunks are touched over time, as SVG
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Check that a trace is whole, and with a program that a new speculative pass of it gives the same
    Verify {
        /// The trace
        file: PathBuf,
        /// Speculate without cutting the program off: its writes and connections are real
        #[arg(long)]
        no_isolation: bool,
        /// A program and its arguments, after --
        #[arg(value_name = "PROGRAM", last = true)]
        command: Vec<OsString>,
    },
}

/// Shows or verifies.
///
/// # Errors
/// When the file cannot be read, is not whole, or is not of the program.
pub fn run(args: &TraceArgs) -> Result<(), Error> {
    match &args.action {
        Action::Show { file, svg } => show::run(file, svg.as_deref(), args.json),
        Action::Verify { file, no_isolation, command } => {
            verify::run(file, command, *no_isolation, args.json)
        }
    }
}

/// Opens a trace of any program, after a check of all of it.
fn open(path: &Path) -> Result<(Header, TraceSource), Error> {
    TraceSource::inspect(path).map_err(Error::input)
}

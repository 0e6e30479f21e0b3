//! Commands and flags. The help of each command teaches it by example.

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a file or disk of this machine failed, or a fault of osprey itself
  2  bad input: a file, a flag (the message says where and what to change)
osprey run has the exit code of its program instead: see osprey run --help.

First steps: osprey probe; then docs/osprey/run.md.";

/// Runs secure computation in a part of the memory that it needs, at nearly full speed.
///
/// The accesses of such a program do not depend on its secrets. A first, speculative pass without its cryptography
/// finds them; the real pass then pages by them, before the program waits.
#[derive(Debug, Parser)]
#[command(name = "osprey", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads a command line, its first word the name of the program.
    ///
    /// # Errors
    /// The mistake, or the help that was asked for.
    pub fn read(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        Self::try_parse_from(words)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a trace file holds, or verify it
    Trace(crate::trace::Trace),
    /// Measure workloads under each way of paging, and check their results
    Bench(crate::bench::Bench),
    /// Print a completion script for a shell
    Completions(Completions),
}

impl Command {
    /// Whether errors are wanted as JSON on standard output, too.
    pub fn wants_json(&self) -> bool {
        match self {
            Self::Trace(a) => a.json,
            Self::Bench(a) => a.json,
            Self::Completions(_) => false,
        }
    }
}

/// Prints a completion script.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  osprey completions bash > /etc/bash_completion.d/osprey")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

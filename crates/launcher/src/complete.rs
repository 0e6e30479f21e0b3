//! `osprey completions`: what a shell needs to complete commands and flags.

use crate::args::{Cli, Completions};
use crate::output;
use base::Error;
use clap::CommandFactory;

/// Prints the completion script of a shell.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Completions) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "osprey", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())
}

//! `osprey trace`: what a trace file holds.

use base::Error;
use clap::Args;

/// Shows a trace file, or verifies it.
#[derive(Debug, Args)]
pub struct Trace {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows or verifies.
///
/// # Errors
/// When the file cannot be read or is not whole.
pub fn run(_args: &Trace) -> Result<(), Error> {
    Err(Error::input("osprey trace: being written"))
}

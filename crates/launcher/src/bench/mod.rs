//! `osprey bench`: the workloads, each way of paging, beside the unbounded run.

use base::Error;
use clap::Args;

/// Measures.
#[derive(Debug, Args)]
pub struct Bench {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Measures.
///
/// # Errors
/// When a run fails.
pub fn run(_args: &Bench) -> Result<(), Error> {
    Err(Error::input("osprey bench: being written"))
}

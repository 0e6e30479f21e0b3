//! `tacit worker`: a process of a run's coordinator that computes units.

use base::Error;
use clap::Args;
use job::workers::{WorkerCommand, run_worker};
use terminal::machine;

/// Computes units of a run, as its coordinator says over standard input: `tacit run --workers N` starts it.
#[derive(Debug, Args)]
pub struct WorkerArgs {}

/// # Errors
/// When no coordinator has started it.
pub fn run(_: &WorkerArgs) -> Result<(), Error> {
    machine::end_with_parent();
    run_worker()
}

/// How a coordinator starts one: this very program, if the system says where it is.
pub fn command() -> Option<WorkerCommand> {
    let program = std::env::current_exe().ok()?;
    Some(WorkerCommand { program, arguments: vec!["worker".to_owned()] })
}

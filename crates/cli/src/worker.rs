//! `tacit worker`: a process of a run's coordinator that computes units.

use base::Error;
use clap::Args;
use job::workers::{WorkerCommand, WorkerPlace, run_worker};
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

/// Where a coordinator has workers: as processes of this very program, if the system says where it is.
pub fn place() -> WorkerPlace {
    let Ok(program) = std::env::current_exe() else { return WorkerPlace::Threads };
    WorkerPlace::Processes(WorkerCommand { program, arguments: vec!["worker".to_owned()] })
}

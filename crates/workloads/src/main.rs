//! Five workloads of two parties under garbled circuits, as a user of `yao::wires` writes them:
//! `osprey-boolean`.
//!
//! Their data is in Osprey's region, so `osprey run` pages it. Each party is a process.

mod args;
mod binfclayer;
mod ljoin;
mod merge;
mod mvmul;
mod order;
mod records;
mod run;
mod sort;
mod task;
#[cfg(test)]
mod tests;

use args::Args;
use base::{Error, Fault};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// The runtime cannot begin: the code that it uses itself where nobody asked it to.
const UNAVAILABLE: u8 = osprey::EXIT_UNAVAILABLE as u8;

fn main() -> ExitCode {
    let args = Args::parse();
    if !args.list
        && let Err(reason) = osprey::init()
    {
        let _ = writeln!(std::io::stderr(), "error: {reason}");
        return ExitCode::from(UNAVAILABLE);
    }
    let done = if args.list { args::list(args.json).map(|()| true) } else { run::run(&args) };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // When even standard error is gone, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(code(&error))
        }
    }
}

/// Exit codes as those of `tacit`.
fn code(error: &Error) -> u8 {
    match error.kind() {
        Fault::Input(_) | Fault::Misuse(_) | Fault::Limit { .. } => 2,
        Fault::Channel(_) => 3,
        Fault::Malformed(_) | Fault::Deviated(_) => 4,
        _ => 1,
    }
}

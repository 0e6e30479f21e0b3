//! The `osprey` command line. It parses, calls and prints; paging itself is the runtime's, within the program.

mod args;
mod bench;
mod complete;
mod output;
mod trace;

use args::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(usage) => return output::usage(&usage, 2),
    };
    let json = command.wants_json();
    let done = match command {
        Command::Trace(args) => trace::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => complete::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error, json),
    }
}

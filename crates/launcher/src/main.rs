//! The `osprey` command line. It parses, calls and prints; paging itself is the runtime's, within the program.

mod args;
mod attempt;
mod bench;
mod cgroup;
mod chunk;
mod complete;
mod console;
mod delay;
mod engine;
mod exec;
mod folders;
mod guard;
mod link;
mod markup;
mod output;
mod overlay;
#[cfg(test)]
mod pages;
mod pass;
mod probe;
mod processes;
mod program;
mod relief;
mod report;
mod run;
mod signals;
mod speculation;
mod stdin;
mod svg;
mod trace;
mod tracefile;
mod units;

use args::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    match words.nth(1) {
        Some(first) if first == guard::NAME => guard::run(),
        Some(first) if first == exec::NAME => exec::run(words.collect()),
        Some(first) if first == attempt::NAME => attempt::run(),
        first => {
            let running = first.is_some_and(|first| first == "run");
            command(if running { run::FAILED } else { 2 })
        }
    }
}

/// A command of the help; `misused` is the exit code for a mistake in its flags.
fn command(misused: u8) -> ExitCode {
    let command = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(usage) => return output::usage(&usage, misused),
    };
    let json = command.wants_json();
    let done = match command {
        Command::Run(args) => return run::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Bench(args) => match bench::run(&args) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Completions(args) => complete::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error, json),
    }
}

//! The `osprey` command line. It parses, calls and prints; paging itself is the runtime's, within the
//! program.

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
mod trace;
mod tracefile;
mod units;

use args::{OspreyCli, OspreyCommand};
use std::process::ExitCode;
use terminal::output;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    match words.nth(1) {
        Some(first) if first == guard::NAME => guard::run(),
        Some(first) if first == exec::NAME => exec::run(words.collect()),
        Some(first) if first == attempt::NAME => attempt::run(),
        first => {
            let running = first.is_some_and(|first| first == "run");
            command(running)
        }
    }
}

/// A command of the help. With `osprey run` standard output is the program's, and so are flags such as
/// `--json`.
fn command(running: bool) -> ExitCode {
    let command = match OspreyCli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(usage) => {
            let json = !running && std::env::args_os().any(|arg| arg == "--json");
            return output::usage(&usage, json, if running { run::FAILED } else { 2 });
        }
    };
    let json = command.wants_json();
    let done = match command {
        OspreyCommand::Run(args) => return run::run(&args),
        OspreyCommand::Probe(args) => probe::run(&args),
        OspreyCommand::Trace(args) => trace::run(&args),
        OspreyCommand::Bench(args) => match bench::run(&args) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        OspreyCommand::Completions(args) => complete::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error, json),
    }
}

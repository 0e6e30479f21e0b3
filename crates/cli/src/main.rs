//! The `tacit` command line. It parses, calls and prints; what is computed and how is decided below it.

mod args;
mod audit;
mod check;
mod circuit;
mod complete;
mod demo;
mod generate;
mod keygen;
mod ledger;
mod matching;
#[cfg(test)]
mod pages;
mod plan;
mod report;
mod run;
mod serve;
mod settings;
mod watch;

use args::{Cli, Command};
use std::process::ExitCode;
use terminal::output;

fn main() -> ExitCode {
    let command = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(usage) => return output::usage(&usage, std::env::args_os().any(|arg| arg == "--json"), 2),
    };
    let json = command.wants_json();
    let done = match command {
        Command::Keygen(args) => keygen::run(&args),
        Command::Check(args) => check::run(args),
        Command::Plan(args) => plan::run(&args),
        Command::Run(args) => return run::run(*args),
        Command::Serve(args) => serve::run(*args),
        Command::Match(args) => matching::run(*args),
        Command::Demo(args) => demo::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Ledger(args) => ledger::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Circuit(args) => circuit::run(&args),
        Command::Bench(args) => args.run(),
        Command::Completions(args) => complete::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error, json),
    }
}

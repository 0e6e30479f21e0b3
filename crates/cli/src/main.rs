//! The `tacit` command line. It parses, calls and prints; what is computed and how is decided below it.

mod args;
mod audit;
mod bench;
mod check;
mod circuit;
mod complete;
mod demo;
mod follow;
mod generate;
mod keygen;
mod ledger;
mod machine;
mod matching;
mod output;
#[cfg(test)]
mod pages;
mod plan;
mod progress;
mod report;
mod run;
mod serve;

use args::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(usage) => return output::usage(&usage, std::env::args().any(|arg| arg == "--json")),
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
        Command::Bench(args) => bench::run(&args),
        Command::BenchParty(args) => bench::party::run(&args),
        Command::Completions(args) => complete::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error, json),
    }
}

//! The `tacit` command line. It parses, calls and prints; what is computed and how is decided below it.

mod args;
mod audit;
mod check;
mod circuit;
mod complete;
mod consent;
mod demo;
mod gate;
mod generate;
mod init;
mod keygen;
mod ledger;
mod manual;
mod matching;
#[cfg(test)]
mod pages;
mod plan;
mod report;
mod run;
mod serve;
mod service;
mod settings;
mod simulate;
mod state;
mod version;
mod watch;
mod worker;

use args::{TacitCli, TacitCommand};
use std::process::ExitCode;
use terminal::output;

fn main() -> ExitCode {
    let command = match TacitCli::read(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(usage) => return output::usage(&usage, std::env::args_os().any(|arg| arg == "--json"), 2),
    };
    let json = command.wants_json();
    let done = match command {
        TacitCommand::Init(args) => init::run(&args),
        TacitCommand::Keygen(args) => keygen::run(&args),
        TacitCommand::Check(args) => return check::run(*args),
        TacitCommand::Plan(args) => plan::run(&args),
        TacitCommand::Simulate(args) => simulate::run(&args),
        TacitCommand::Run(args) => return run::run(*args),
        TacitCommand::Serve(args) => serve::run(*args),
        TacitCommand::Service(args) => service::run(&args),
        TacitCommand::Gate(args) => gate::run(*args),
        TacitCommand::Match(args) => matching::run(*args),
        TacitCommand::Demo(args) => demo::run(&args),
        TacitCommand::Generate(args) => generate::run(&args),
        TacitCommand::Report(args) => report::run(&args),
        TacitCommand::Ledger(args) => ledger::run(&args),
        TacitCommand::Consent(args) => consent::run(&args),
        TacitCommand::State(args) => state::run(&args),
        TacitCommand::Audit(args) => audit::run(&args),
        TacitCommand::Circuit(args) => circuit::run(&args),
        TacitCommand::Bench(args) => args.run(),
        TacitCommand::Completions(args) => complete::run(&args),
        TacitCommand::Manual(args) => manual::run(&args),
        TacitCommand::Worker(args) => worker::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error, json),
    }
}

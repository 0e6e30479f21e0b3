//! Commands and flags. The help of each command teaches it by example.

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use terminal::values::count;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a file or disk of this machine failed, or a fault of tacit itself
  2  bad input: a file, a study, a flag (the message says where and what to change)
  3  the peer or the network: not there, gone, another study, another key
  4  the peer deviated from the protocol
  5  refused by a policy or privacy budget, this party's own or a peer's (the message says whose)

First steps: tacit demo; then docs/start.md and docs/cli.md.";

/// Organisations compute one result over data they will not show each other.
///
/// They match their rows privately, compute on the match under secure computation, and release the result
/// with differential privacy. Everything both agree on is in a study file; everything private is in a party
/// file.
#[derive(Debug, Parser)]
#[command(name = "tacit", version, long_version = crate::version::told(), after_help = EXIT_CODES,
          arg_required_else_help = true, max_term_width = 110)]
pub struct TacitCli {
    /// What to do.
    #[command(subcommand)]
    pub command: TacitCommand,
}

impl TacitCli {
    /// Reads a command line, its first word the name of the program.
    ///
    /// # Errors
    /// The mistake, or the help that was asked for.
    pub fn read(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        Self::try_parse_from(words)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum TacitCommand {
    /// Make study, party file and key from a party's data
    Init(crate::init::InitArgs),
    /// Make an identity; prints the key line for the study
    Keygen(crate::keygen::KeygenArgs),
    /// Validate this side of a study before any protocol starts
    Check(Box<crate::check::CheckArgs>),
    /// State gates, bytes, time and privacy cost of a study before it runs
    Plan(crate::plan::PlanArgs),
    /// Try a study on this machine, exact values beside noised ones, before it is charged
    Simulate(crate::simulate::SimulateArgs),
    /// Run this party's half of a study
    Run(Box<crate::run::RunArgs>),
    /// Wait, as a server, to be told to begin a study that four servers compute
    Serve(Box<crate::serve::ServeArgs>),
    /// Serve the page of an organisation: its accounts, data, budgets and rules
    Service(crate::service::ServiceArgs),
    /// Be the one public port of a party: hand its peers on to its coordinator and workers
    Gate(Box<crate::gate::GateArgs>),
    /// Match rows and keep the positions or shares, without computing anything
    Match(Box<crate::matching::MatchArgs>),
    /// Run a whole study on this machine, every party a process of its own over TLS
    Demo(crate::demo::DemoArgs),
    /// Make up data with a known answer
    Generate(crate::generate::GenerateArgs),
    /// Show a report again, or write its page again
    Report(crate::report::ReportArgs),
    /// Show, check, copy or recover the privacy ledger; allow releases again after one broke off
    Ledger(crate::ledger::LedgerArgs),
    /// Show what an organisation would consent to, and sign it with a steward's own key
    Consent(crate::consent::StewardArgs),
    /// Show and drop runs that are kept, or check a place that is to hold the state of runs
    State(crate::state::StateArgs),
    /// Simulate whether intervals cover and noise protects as much as is said
    Audit(crate::audit::AuditArgs),
    /// Run, describe, convert and shrink boolean circuits in files
    Circuit(crate::circuit::CircuitArgs),
    /// Measure over loopback, and check the result
    Bench(bench::MeasureArgs),
    /// Print a completion script for a shell
    Completions(crate::complete::CompletionsArgs),
    /// Write the pages of man into a folder
    Manual(crate::manual::ManualArgs),
    /// Compute units of a run: what `tacit run --workers N` starts
    #[command(hide = true)]
    Worker(crate::worker::WorkerArgs),
}

impl TacitCommand {
    /// Whether errors are wanted as JSON on standard output, too.
    pub fn wants_json(&self) -> bool {
        match self {
            Self::Init(a) => a.wants_json(),
            Self::Keygen(a) => a.json,
            Self::Check(a) => a.json,
            Self::Plan(a) => a.json,
            Self::Simulate(a) => a.json,
            Self::Run(a) => a.json,
            Self::Serve(a) => a.json,
            Self::Service(a) => a.json,
            Self::Gate(a) => a.json,
            Self::Match(a) => a.json,
            Self::Demo(a) => a.json,
            Self::Generate(a) => a.json,
            Self::Report(a) => a.json,
            Self::Ledger(a) => a.json,
            Self::Consent(a) => a.json,
            Self::State(a) => a.json,
            Self::Audit(a) => a.json,
            Self::Circuit(a) => a.json,
            Self::Bench(a) => a.json,
            Self::Completions(_) | Self::Manual(_) | Self::Worker(_) => false,
        }
    }
}

/// Rows of the first party and of each other one.
pub fn rows_pair(text: &str) -> Result<[u64; 2], String> {
    match text.split_once(',') {
        Some((first, rest)) if rest.contains(',') => {
            let most = rest.split(',').map(|one| count(one.trim())).collect::<Result<Vec<_>, _>>()?;
            let most = most.into_iter().max().unwrap_or_default();
            let first = count(first.trim())?;
            Err(format!(
                "two numbers serve any number of parties: the rows of the first one, and the most that any \
                 other has: {first},{most}"
            ))
        }
        Some((first, second)) => Ok([count(first.trim())?, count(second.trim())?]),
        None => count(text).map(|rows| [rows; 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        TacitCli::command().debug_assert();
    }

    #[test]
    fn rows_are_those_of_two_sides() {
        assert_eq!(rows_pair("2M,500k"), Ok([2_000_000, 500_000]));
    }
}

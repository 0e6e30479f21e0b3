//! Commands and flags. The help of each command teaches it by example.

use base::Error;
use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use net::Network;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use study::party::Rate;
use study::party::{PartySettings, parse_address, parse_deadline, parse_memory};
use study::transport::Transport;
use study::{Decimal, parse_delta};

mod bench;
mod ledger;

pub use bench::{
    BackendName, Bench, BenchParty, Bits, DeviceName, EngineName, HashName, Protocol, SecurityName,
    TransportName, What,
};

pub use ledger::{Ledger, LedgerAction};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a file or disk of this machine failed, or a fault of tacit itself
  2  bad input: a file, a study, a flag (the message says where and what to change)
  3  the peer or the network: not there, gone, another study, another key
  4  the peer deviated from the protocol
  5  refused by this party's own policy or privacy budget

First steps: tacit demo; then docs/start.md and docs/cli.md.";

/// Organisations compute one result over data they will not show each other.
///
/// They match their rows privately, compute on the match under secure computation, and release the result with
/// differential privacy. Everything both agree on is in a study file; everything private is in a party file.
#[derive(Debug, Parser)]
#[command(name = "tacit", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads a command line, its first word the name of the program.
    ///
    /// # Errors
    /// The mistake, or the help that was asked for.
    pub fn read(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let given = Self::command().try_get_matches_from(words)?;
        let cli = Self::from_arg_matches(&given).map_err(|e| e.format(&mut Self::command()))?;
        if let (Command::Bench(bench), Some((_, flags))) = (&cli.command, given.subcommand())
            && let Some(refusal) = crate::bench::flags::refusal(bench, flags)
        {
            let mut command = Bench::augment_args(clap::Command::new("tacit bench"));
            return Err(command.error(ErrorKind::ArgumentConflict, refusal));
        }
        Ok(cli)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make an identity; prints the key line for the study
    Keygen(Keygen),
    /// Validate this side of a study before any protocol starts
    Check(Check),
    /// State gates, bytes, time and privacy cost of a study before it runs
    Plan(Plan),
    /// Run this party's half of a study
    Run(Box<Run>),
    /// Wait, as a server, to be told to begin a study that four servers compute
    Serve(Box<crate::serve::Serve>),
    /// Match rows and keep the positions or shares, without computing anything
    Match(Box<Match>),
    /// Run a whole study on this machine, every party a process of its own over TLS
    Demo(Demo),
    /// Make up data with a known answer
    Generate(Generate),
    /// Show a report again, or write its page again
    Report(Report),
    /// Show, check, copy or recover the privacy ledger; allow releases again after one broke off
    Ledger(Ledger),
    /// Simulate whether intervals cover and noise protects as much as is said
    Audit(crate::audit::Audit),
    /// Run, describe, convert and shrink boolean circuits in files
    Circuit(crate::circuit::Circuit),
    /// Measure over loopback, and check the result
    Bench(Bench),
    /// One party of a measurement
    #[command(hide = true)]
    BenchParty(BenchParty),
    /// Print a completion script for a shell
    Completions(Completions),
}

impl Command {
    /// Whether errors are wanted as JSON on standard output, too.
    pub fn wants_json(&self) -> bool {
        match self {
            Self::Keygen(a) => a.json,
            Self::Check(a) => a.json,
            Self::Plan(a) => a.json,
            Self::Run(a) => a.json,
            Self::Serve(a) => a.json,
            Self::Match(a) => a.json,
            Self::Demo(a) => a.json,
            Self::Generate(a) => a.json,
            Self::Report(a) => a.json,
            Self::Ledger(a) => a.json,
            Self::Audit(a) => a.json,
            Self::Circuit(a) => a.json,
            Self::Bench(a) => a.json,
            Self::BenchParty(_) => true,
            Self::Completions(_) => false,
        }
    }
}

/// Makes an identity. The file holds a private key; only its fingerprint goes into a study.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit keygen --out registry.key\n  key  = \"tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11\"\n  tacit keygen --out registry-2027.key --succeeds registry.key"
)]
pub struct Keygen {
    /// The new identity file; never overwritten
    #[arg(long, value_name = "FILE", default_value = "tacit.key")]
    pub out: PathBuf,
    /// The identity whose place the new one takes: peers go on counting what it has spent; it is told that it has a successor
    #[arg(long, value_name = "FILE", conflicts_with = "salt")]
    pub succeeds: Option<PathBuf>,
    /// Make a salt instead, which the owners of a study by "salted-key" share; never overwritten
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    pub salt: Option<PathBuf>,
    /// Print one JSON object: key, file
    #[arg(long)]
    pub json: bool,
}

/// Validates this side of a study: the study file, the policy, the program, every row of the data. Sends nothing.
///
/// Given a party file (it has `as` and `data`), everything is checked; given a study file, the study alone.
#[derive(Debug, Args)]
#[command(
    override_usage = "tacit check [OPTIONS] FILE",
    after_help = "Examples:\n  tacit check study.toml\n  tacit check registry.toml\n  tacit check study.toml --peer their-study.toml"
)]
pub struct Check {
    /// A study file or a party file
    #[arg(value_name = "FILE", required_unless_present = "party")]
    pub file: Option<PathBuf>,
    /// A party file
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub party: Option<PathBuf>,
    /// The peer's study file: names the first line in which the two differ
    #[arg(long, value_name = "FILE")]
    pub peer: Option<PathBuf>,
    /// Rows per side that the price is stated for: N or N,M; else the rows of this party's data, or 1M for a study alone
    #[arg(long, value_name = "N[,M]", value_parser = rows_pair)]
    pub rows: Option<[u64; 2]>,
    /// What the operator will say to the run
    #[command(flatten)]
    pub said: Said,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// States gates, oblivious transfers, bytes, time and privacy cost of every stage, and the smallest effect that the
/// study could see.
///
/// Gates, transfers and bytes are exact for the given sizes. Seconds are an estimate from the link and the speed of one
/// core; the assumptions are printed with them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit plan study.toml --rows 10M --link 1gbps,20ms\n  tacit plan study.toml --rows 2M,500k --mean 0.01 --json"
)]
pub struct Plan {
    /// The study file
    pub study: PathBuf,
    /// Rows of both sides, or of the first and the second: 400k, 10M, 2M,500k
    #[arg(long, value_name = "N[,M]", value_parser = rows_pair)]
    pub rows: [u64; 2],
    /// Bandwidth each way and round-trip time
    #[arg(long, value_name = "RATE,RTT", value_parser = link, default_value = "10gbps,1ms")]
    pub link: job::plan::Link,
    /// Your guess of the control arm's mean outcome per person, for the smallest detectable effect
    #[arg(long, value_name = "X", default_value_t = 0.01, value_parser = mean)]
    pub mean: f64,
    /// Cores of each party
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cores: u32,
    /// What four servers compute over: tls, auto, shm, fabric, fabric-PROVIDER
    #[arg(long, value_name = "NAME", default_value = "tls", value_parser = transport)]
    pub transport: Transport,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs this party's half of a study; the other party does the same on its machine.
///
/// Every line of the party file is also a flag, and the flag wins. The report goes to standard output, and as
/// report.json and report.html into the report folder; progress goes to standard error.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit run registry.toml\n  tacit run registry.toml --listen 0.0.0.0:7001 --json > report.json\n  \
    tacit run --study study.toml --as hospitals --identity hospitals.key --data hospitals.csv --peer registry.example.org:7000"
)]
pub struct Run {
    /// The party file
    #[arg(value_name = "PARTY_FILE")]
    pub party: Option<PathBuf>,
    /// Flags that win over the party file
    #[command(flatten)]
    pub settings: Settings,
    /// Begin with a new ledger although reports or a peer say that there was one: what was spent is forgotten
    #[arg(long)]
    pub new_ledger: bool,
    /// What the operator says for this run alone
    #[command(flatten)]
    pub said: Said,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Progress as JSON lines on standard error, for a process that watches this one
    #[arg(long, hide = true)]
    pub events: bool,
}

/// Runs this party's half of a study of kind "match"; the other party does the same on its machine.
///
/// This party's part is written as Parquet, for its owner alone: with a protocol that gives a spine the position of each
/// row (row, identifier, position), with one that gives shares a row for each joined row and slot, with this party's share
/// of every column. The file's metadata says how shares are put together.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit match registry.toml --out spine.parquet\n  tacit match registry.toml --out shares.parquet --json\n\n\
    A study that only matches: examples/match.toml"
)]
pub struct Match {
    /// The party file
    #[arg(value_name = "PARTY_FILE")]
    pub party: Option<PathBuf>,
    /// Where this party's part goes; never overwritten
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Flags that win over the party file
    #[command(flatten)]
    pub settings: Settings,
    /// Begin with a new ledger although reports or a peer say that there was one: what was spent is forgotten
    #[arg(long)]
    pub new_ledger: bool,
    /// What the operator says for this run alone
    #[command(flatten)]
    pub said: Said,
    /// Print one JSON object: rows, sizes disclosed, stages
    #[arg(long)]
    pub json: bool,
    /// Progress as JSON lines on standard error, for a process that watches this one
    #[arg(long, hide = true)]
    pub events: bool,
}

/// What the party file of any participant says, as flags: all that a server has.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerSettings {
    /// The study file
    #[arg(long, value_name = "FILE")]
    pub study: Option<PathBuf>,
    /// Which party or server of the study this is
    #[arg(long = "as", value_name = "NAME")]
    pub as_party: Option<String>,
    /// The identity made by `tacit keygen`
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Wait for the peer, or for those of several that come, at this address of this machine
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub listen: Option<String>,
    /// Take connections from this network only: 10.0.0.0/8, or an address; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<Network>,
    /// Connect to the peer at this address; with several peers NAME=HOST:PORT, repeated
    #[arg(long, value_name = "[NAME=]HOST:PORT", value_parser = peer)]
    pub peer: Vec<(Option<String>, String)>,
    /// Most memory to use: 512M, 1G
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Give up after so long without progress: 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    pub deadline: Option<u64>,
    /// Of a server: what the computation goes over, the same at all four: tls, auto (shared memory on one host, else TLS),
    /// shm, fabric, fabric-PROVIDER
    #[arg(long, value_name = "NAME", value_parser = transport)]
    pub transport: Option<Transport>,
    /// Of a server: messages may go in plain text, for only the operators of the four can touch the network between them
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub trusted_network: Option<bool>,
    /// Policy: only this study, by full hash; may be repeated
    #[arg(long, value_name = "HASH", value_parser = study_hash)]
    pub allow_study: Vec<study::StudyHash>,
}

/// Every line of a party file as a flag.
#[derive(Clone, Debug, Default, Args)]
pub struct Settings {
    #[command(flatten)]
    pub any: ServerSettings,
    /// CSV or Parquet, or a folder of them
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// The privacy ledger
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// The folder for reports
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// The stable name of this data over all its versions: the budget is kept under it
    #[arg(long, value_name = "NAME")]
    pub lineage: Option<String>,
    /// A private folder for what a match keeps while it runs: a match that breaks off goes on there
    #[arg(long, value_name = "FOLDER")]
    pub work: Option<PathBuf>,
    /// Keep the spine of this run in a private file, for later studies of the same parties
    #[arg(long, value_name = "FILE", conflicts_with = "spine")]
    pub keep_spine: Option<PathBuf>,
    /// Use a kept spine instead of matching; all parties do
    #[arg(long, value_name = "FILE")]
    pub spine: Option<PathBuf>,
    /// The salt that all owners share, for a match by "salted-key"
    #[arg(long, value_name = "FILE")]
    pub salt: Option<PathBuf>,
    /// Tell the study's servers to begin; one host of a run does
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub trigger: Option<bool>,
    /// Policy: only these kinds of study; may be repeated
    #[arg(long, value_name = "KIND", value_parser = ["lift", "program", "match"])]
    pub allow_kind: Vec<String>,
    /// Policy: most rho one study may spend on one viewer
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub max_rho: Option<Decimal>,
    /// Policy: most rho all studies together may spend on one viewer of this data
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub budget: Option<Decimal>,
    /// Policy: most rho all studies together may spend on all viewers of this data
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub total: Option<Decimal>,
    /// Policy: the length of a period within the budget, with --period-budget: 90d
    #[arg(long, value_name = "TIME", value_parser = study::party::parse_period)]
    pub period: Option<u64>,
    /// Policy: most rho that may be spent on one viewer of this data within any period; nothing refills the budget
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub period_budget: Option<Decimal>,
    /// Policy: most runs that may begin with one peer within some time: 20/day
    #[arg(long, value_name = "N/TIME", value_parser = Rate::parse)]
    pub runs: Option<Rate>,
    /// Policy: least noise candidates of a study; a bent noise goes unnoticed once in so many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub candidates: Option<u32>,
    /// Policy: made-up rows of a match kept for a rerun, or drawn afresh and paid for each time that it begins
    #[arg(long, value_name = "HOW", value_parser = ["kept", "fresh"])]
    pub dummies_seed: Option<String>,
    /// Policy: most cells of one study
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_cells: Option<u64>,
    /// Policy: whether exact results may be revealed
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub allow_exact: Option<bool>,
    /// Policy: most that the deltas of all matches may come to, towards one viewer of this data: 1e-6
    #[arg(long, value_name = "DELTA", value_parser = delta)]
    pub delta: Option<u8>,
}

/// What the operator says for one run.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Said {
    /// These data are none of those that the ledger knows under other names, however alike they look; kept in the ledger
    #[arg(long)]
    pub new_lineage: bool,
    /// Spend rho on arms and cells that are too small to be shown
    #[arg(long)]
    pub spend_anyway: bool,
}

impl From<Said> for study::party::Consent {
    fn from(said: Said) -> Self {
        Self { new_lineage: said.new_lineage, spend_anyway: said.spend_anyway }
    }
}

impl From<ServerSettings> for PartySettings {
    fn from(flags: ServerSettings) -> Self {
        let (named, alone): (Vec<_>, Vec<_>) = flags.peer.into_iter().partition(|(name, _)| name.is_some());
        Self {
            study: flags.study,
            as_party: flags.as_party,
            identity: flags.identity,
            listen: flags.listen,
            peer: alone.into_iter().next_back().map(|(_, at)| at),
            peers: named.into_iter().filter_map(|(name, at)| Some((name?, at))).collect(),
            memory: flags.memory,
            deadline_ms: flags.deadline,
            allow: listed(flags.allow),
            transport: flags.transport,
            trusted_network: flags.trusted_network,
            allow_studies: listed(flags.allow_study),
            ..Self::default()
        }
    }
}

fn listed<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

impl From<Settings> for PartySettings {
    fn from(flags: Settings) -> Self {
        Self {
            data: flags.data,
            ledger: flags.ledger,
            report: flags.report,
            lineage: flags.lineage,
            allow_kinds: listed(flags.allow_kind),
            max_rho: flags.max_rho,
            max_rho_at: flags.max_rho.map(|_| "--max-rho".to_owned()),
            budget: flags.budget,
            max_cells: flags.max_cells,
            allow_exact: flags.allow_exact,
            delta_places: flags.delta,
            total: flags.total,
            period_seconds: flags.period,
            period_budget: flags.period_budget,
            runs: flags.runs,
            candidates: flags.candidates,
            fresh_dummies: flags.dummies_seed.map(|how| how == "fresh"),
            work: flags.work,
            keep_spine: flags.keep_spine,
            spine: flags.spine,
            salt: flags.salt,
            trigger: flags.trigger,
            ..flags.any.into()
        }
    }
}

/// Runs a whole study on this machine: makes data, keys and files, starts every party as a process of its own over
/// mutually authenticated TLS, and compares what they see with the truth.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit demo\n  tacit demo market\n  tacit demo ring4\n  tacit demo --out /tmp/demo --json\n\nThe folder keeps everything: rerun one side yourself with `tacit run demo-out/registry.toml`."
)]
pub struct Demo {
    /// polio: lift over the 1954 poliomyelitis field trial, two parties; market: the fastest of many peers, a customer
    /// and five providers; ring4: the trial computed by four servers, three of them headless
    #[arg(default_value = "polio")]
    pub what: DemoName,
    /// The folder for data, keys, study and reports; one that a demo made before is made anew, any other is left alone
    #[arg(long, value_name = "FOLDER", default_value = "demo-out")]
    pub out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// polio, ring4: one child in so many, and all the cases: a quicker demo
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub scale: u64,
}

/// A demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoName {
    /// The 1954 poliomyelitis field trial.
    Polio,
    /// The fastest of many peers.
    Market,
    /// The field trial, computed by four servers.
    Ring4,
}

/// Makes up data with a known answer, and prints that answer.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit generate polio --out trial\n  tacit generate lift --rows 1M --overlap 0.3 --format parquet --out big\n  tacit generate lift --advertisers 3 --out spring"
)]
pub struct Generate {
    /// polio: the 1954 field trial, from its published counts; lift: a random trial of any size
    pub what: Kind,
    /// The folder for both files
    #[arg(long, value_name = "FOLDER", default_value = "generated")]
    pub out: PathBuf,
    /// lift: people on each side
    #[arg(long, value_name = "N", value_parser = count, default_value = "10k")]
    pub rows: u64,
    /// lift: share of the publisher's people whom the advertiser knows
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub overlap: f64,
    /// lift: K, events of one person that count
    #[arg(long, value_name = "K", default_value_t = 4)]
    pub events: u8,
    /// lift: R, most that one person adds
    #[arg(long, value_name = "R", default_value_t = 100)]
    pub clamp: u32,
    /// lift: how many advertisers; from two on with keys, a study and party files for all, to run on this machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub advertisers: u8,
    /// lift: the format of all files
    #[arg(long, default_value = "csv")]
    pub format: Format,
    /// Everything is a function of it
    #[arg(long, value_name = "N", default_value_t = 1954)]
    pub seed: u64,
    /// Print one JSON object: files, rows, truth
    #[arg(long)]
    pub json: bool,
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The 1954 poliomyelitis field trial.
    Polio,
    /// A random trial.
    Lift,
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Parquet.
    Parquet,
}

/// Shows a report again, or writes its page again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit report out/registry/report.json\n  tacit report report.json --html report.html"
)]
pub struct Report {
    /// A report.json
    pub report: PathBuf,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints a completion script.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit completions bash > ~/.local/share/bash-completion/completions/tacit\n  tacit completions zsh > ~/.zfunc/_tacit"
)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Reads `10000`, `10k`, `2.5M`, `1G`: decimal multiples.
pub fn count(text: &str) -> Result<u64, String> {
    let rule = || "write a whole number above 0, or one with k, M or G: 10000, 400k, 10M".to_owned();
    let (digits, zeros) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 3),
        Some(b'M') => (&text[..text.len() - 1], 6),
        Some(b'G') => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(part) || part.len() > zeros || digits.ends_with('.') {
        return Err(rule());
    }
    let number = format!("{whole}{part}{}", "0".repeat(zeros - part.len()));
    let rows = number.parse::<u64>().map_err(|_| rule())?;
    match rows {
        0 => Err(rule()),
        _ if rows >= base::limits::ROWS => {
            Err(format!("at most {} rows are possible", base::limits::ROWS - 1))
        }
        _ => Ok(rows),
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
                "two numbers serve any number of parties: the rows of the first one, and the most that any other has: \
                 {first},{most}"
            ))
        }
        Some((first, second)) => Ok([count(first.trim())?, count(second.trim())?]),
        None => count(text).map(|rows| [rows; 2]),
    }
}

/// Reads `10gbps,1ms`.
fn link(text: &str) -> Result<job::plan::Link, String> {
    let rule = || "write bandwidth and round-trip time: 10gbps,1ms or 100mbps,20ms".to_owned();
    let (rate, time) = text.split_once(',').ok_or_else(rule)?;
    let number = |text: &str, units: [(&str, f64); 3]| -> Option<f64> {
        let lower = text.trim().to_ascii_lowercase();
        let (digits, unit) = units.iter().find_map(|(name, unit)| Some((lower.strip_suffix(name)?, unit)))?;
        let value = digits.trim().parse::<f64>().ok()? * unit;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    let bits = number(rate, [("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3)]).filter(|rate| *rate > 0.0);
    let seconds = number(time, [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)]);
    match (bits, seconds) {
        (Some(bits_per_s), Some(round_trip_s)) => Ok(job::plan::Link { bits_per_s, round_trip_s }),
        _ => Err(rule()),
    }
}

fn mean(text: &str) -> Result<f64, String> {
    let mean = text.parse::<f64>().ok().filter(|m| m.is_finite() && *m >= 0.0);
    mean.ok_or_else(|| "write a number from 0: 0.01".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|s| (0.0..=1.0).contains(s));
    share.ok_or_else(|| "write a share from 0 to 1: 0.5".to_owned())
}

pub fn rho(text: &str) -> Result<Decimal, String> {
    let rho = Decimal::parse(text).filter(|rho| *rho > Decimal::ZERO);
    rho.ok_or_else(|| "write a decimal above 0 with at most 9 digits after the point: 0.1".to_owned())
}

pub(crate) fn study_hash(text: &str) -> Result<study::StudyHash, String> {
    study::StudyHash::parse(text).ok_or_else(|| "write the full hash, 64 hex digits".to_owned())
}

pub(crate) fn transport(text: &str) -> Result<Transport, &'static str> {
    Transport::parse(text)
}

pub(crate) fn address(text: &str) -> Result<String, &'static str> {
    parse_address(text).map(|()| text.to_owned())
}

/// Reads `host:port` or `name=host:port`.
pub(crate) fn peer(text: &str) -> Result<(Option<String>, String), &'static str> {
    match text.split_once('=') {
        Some((name, at)) => Ok((Some(name.to_owned()), address(at)?)),
        None => Ok((None, address(text)?)),
    }
}

pub(crate) fn memory(text: &str) -> Result<u64, &'static str> {
    parse_memory(text)
}

fn delta(text: &str) -> Result<u8, &'static str> {
    parse_delta(text)
}

pub(crate) fn deadline(text: &str) -> Result<u64, &'static str> {
    parse_deadline(text)
}

/// Settings of a party file, if one is named, under the flags.
///
/// # Errors
/// When the party file cannot be read.
pub fn settings(party: Option<&Path>, flags: impl Into<PartySettings>) -> Result<PartySettings, Error> {
    let file = party.map(PartySettings::read).transpose()?.unwrap_or_default();
    Ok(flags.into().over(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn counts_and_links_are_read() {
        for (text, rows) in [("1", 1), ("10k", 10_000), ("2.5M", 2_500_000), ("1G", 1_000_000_000)] {
            assert_eq!(count(text), Ok(rows), "{text}");
        }
        for text in ["", "0", "k", "1.5", "1.", "-1", "1e6", "10 k", "5G", "1.0001k", "99999999999999999999"]
        {
            assert!(count(text).is_err(), "{text}");
        }
        assert_eq!(rows_pair("2M,500k"), Ok([2_000_000, 500_000]));
        let fast = link("10gbps,1ms").unwrap();
        assert_eq!((fast.bits_per_s, fast.round_trip_s), (1e10, 1e-3));
        for text in ["10gbps", "0gbps,1ms", "fast,1ms", "10gbps,-1ms", "nangbps,1ms", "10gbps,1"] {
            assert!(link(text).is_err(), "{text}");
        }
    }

    #[test]
    fn peers_are_named_or_alone() {
        assert_eq!(peer("h:1"), Ok((None, "h:1".to_owned())));
        assert_eq!(peer("a=h:1"), Ok((Some("a".to_owned()), "h:1".to_owned())));
        assert!(peer("a=h").is_err() && peer("h").is_err());
        let words = ["tacit", "run", "--peer", "a=h:1", "--peer", "b=h:2", "--listen", "0.0.0.0:3"];
        let Command::Run(run) = Cli::try_parse_from(words).unwrap().command else { panic!("a run") };
        let settings = PartySettings::from(run.settings);
        assert_eq!((settings.peers.len(), settings.peer), (2, None));
        assert_eq!(settings.listen.as_deref(), Some("0.0.0.0:3"));
    }

    #[test]
    fn every_line_of_a_party_file_is_a_flag() {
        let line = "run --study s --as a --identity i --data d --listen 0.0.0.0:1 --allow 10.0.0.0/8 --memory 64M --ledger l --report r \
                    --deadline 1m --lineage x --allow-kind lift --max-rho 0.5 --budget 1 --max-cells 2 --allow-exact \
                    --delta 1e-7 --total 2 --candidates 8 --dummies-seed fresh --work w --keep-spine k";
        let cli = Cli::try_parse_from(std::iter::once("tacit").chain(line.split_whitespace())).unwrap();
        let Command::Run(run) = cli.command else { panic!("a run") };
        let settings = PartySettings::from(run.settings);
        assert_eq!((settings.memory, settings.deadline_ms), (Some(64 << 20), Some(60_000)));
        assert_eq!(settings.allow, Some(vec!["10.0.0.0/8".parse().unwrap()]));
        assert_eq!((settings.max_cells, settings.allow_exact), (Some(2), Some(true)));
        assert_eq!(settings.allow_kinds, Some(vec!["lift".to_owned()]));
        assert_eq!((settings.delta_places, &settings.keep_spine), (Some(7), &Some("k".into())));
        assert_eq!((settings.total, settings.candidates), (Decimal::parse("2"), Some(8)));
        assert_eq!(settings.fresh_dummies, Some(true));
        assert!(settings.complete().is_ok());
    }
}

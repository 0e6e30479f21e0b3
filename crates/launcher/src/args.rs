//! Commands and flags. The help of each command teaches it by example.

use crate::units::{MemorySize, chunk, memory, region};
use clap::{Args, Parser, Subcommand, ValueEnum};
use osprey::PagingEngine;
use std::ffi::OsString;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a file or disk of this machine failed, or a fault of osprey itself
  2  bad input: a file, a flag (the message says where and what to change)
osprey run has the exit code of its program instead: see osprey run --help.

First steps: osprey probe; then docs/osprey/run.md.";

/// Runs secure computation in a part of the memory that it needs, at nearly full speed.
///
/// The accesses of such a program do not depend on its secrets. A first, speculative pass without its
/// cryptography finds them; the real pass then pages by them, before the program waits.
#[derive(Debug, Parser)]
#[command(name = "osprey", version, after_help = EXIT_CODES, arg_required_else_help = true,
          max_term_width = 110)]
pub struct OspreyCli {
    /// What to do.
    #[command(subcommand)]
    pub command: OspreyCommand,
}

impl OspreyCli {
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
pub enum OspreyCommand {
    /// Run a program in a part of its memory
    Run(Box<OspreyRun>),
    /// Show which ways of paging this machine allows, and which one is chosen
    Probe(ProbeArgs),
    /// Show what a trace file holds, or verify it
    Trace(crate::trace::TraceArgs),
    /// Measure workloads under each way of paging, and check their results
    Bench(crate::bench::BenchArgs),
    /// Print a completion script for a shell
    Completions(Completions),
}

impl OspreyCommand {
    /// Whether errors are wanted as JSON on standard output, too.
    pub fn wants_json(&self) -> bool {
        match self {
            Self::Run(_) | Self::Completions(_) => false,
            Self::Probe(a) => a.json,
            Self::Trace(a) => a.json,
            Self::Bench(a) => a.json,
        }
    }
}

const RUN_HELP: &str = "\
Examples:
  osprey run --memory 256M -- osprey-ckks rstats
  osprey run --memory 25% --trace-file rstats.trace -- osprey-ckks rstats
Two parties, in two terminals:
  osprey run --memory 256M -- osprey-boolean merge --party 0 --listen 127.0.0.1:7000
  osprey run --memory 256M -- osprey-boolean merge --party 1 --peer 127.0.0.1:7000

Exit codes:
  that of the program, 128 + n when signal n ended it (137: also by the system, for its memory), or
  69   the program's runtime cannot page: too little memory, or this machine does not allow the engine
  74   paging could not go on: the disk of --spill is full, or failed
  125  osprey itself failed, or bad input
  126  the program cannot be executed
  127  there is no such program";

/// Runs a program in a part of its memory.
///
/// First its accesses are found by a speculative pass, cut off from files and network; then it runs, its
/// memory paged by them. Everything that osprey says goes to standard error: standard output is the
/// program's.
#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub struct OspreyRun {
    /// Memory for the whole process: 256M, 2G, or a percentage of what its trace says it needs (25%; needs a
    /// trace, so not with --mode reactive or concurrent)
    #[arg(long, value_name = "BYTES|PERCENT", value_parser = memory,
          required_unless_present_any = ["speculative_only", "engine"])]
    pub memory: Option<MemorySize>,
    /// How the program's accesses come to be known
    #[arg(long, value_enum, default_value_t = RunMode::Speculate)]
    pub mode: RunMode,
    /// Make the trace and stop; --trace-file keeps it, and without it only its figures are told
    #[arg(long, conflicts_with = "mode")]
    pub speculative_only: bool,
    /// How memory is paged; osprey probe tells which are possible here
    #[arg(long, value_enum, default_value_t = RunEngine::Auto)]
    pub engine: RunEngine,
    /// Let auto choose engines that write memory to disk as it is
    #[arg(long)]
    pub allow_plaintext: bool,
    /// Bytes that move at once, a power of two; by default that of a trace that is there, else 2M where the
    /// limit holds enough of them, else 64K
    #[arg(long, value_name = "BYTES", value_parser = chunk)]
    pub chunk: Option<usize>,
    /// Address space for the program's paged data; none of it is memory until it is touched
    #[arg(long, value_name = "BYTES", value_parser = region, default_value = "64G")]
    pub region: u64,
    /// Touches that the plan looks ahead; by default as many as are of use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub lookahead: Option<u64>,
    /// Keep the trace here, and use it again while program, arguments and chunk are the same
    #[arg(long, value_name = "FILE")]
    pub trace_file: Option<PathBuf>,
    /// Folder on a fast disk that chunks are written to; the file there has no name and ends with the program
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub spill: PathBuf,
    /// Let --spill be a file system in memory (tmpfs), whose files count as the program's memory
    #[arg(long)]
    pub spill_in_memory: bool,
    /// Speculate without cutting the program off: its writes and connections are real
    #[arg(long)]
    pub no_isolation: bool,
    /// Seconds without new trace after which the speculative pass has hung; in concurrent mode, without use
    /// of a processor
    #[arg(long, value_name = "SECONDS", default_value_t = 600,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub speculation_timeout: u64,
    /// Write what was used into this file, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// End with that JSON object, on one line of standard error, instead of a summary in words
    #[arg(long)]
    pub json: bool,
    /// Say each step
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Say nothing but warnings and errors
    #[arg(long, short)]
    pub quiet: bool,
    /// The process that this one ends with, its parent
    #[arg(long, value_name = "PID", hide = true)]
    pub with_parent: Option<u32>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// How the program's accesses come to be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum RunMode {
    /// A speculative pass, then the program
    Speculate,
    /// A trace that --trace-file holds already
    Programmed,
    /// A speculative pass beside the program
    Concurrent,
    /// Not at all: what the program waits for is fetched
    Reactive,
}

/// How memory is paged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum RunEngine {
    /// The best one that this machine allows
    Auto,
    /// Not at all, and without a limit
    Unbounded,
    /// Not at all, under the limit: for programs that fit
    None,
    /// By the system, to its swap, under the limit
    Swap,
    /// By moving pages (userfaultfd), encrypted on disk
    Move,
    /// By copying pages (userfaultfd), encrypted on disk
    Copy,
    /// By a mapped file, as it is
    File,
    /// By advice to the system about its swap, as it is
    Hint,
}

impl RunEngine {
    /// The runtime's engine that was asked for by name.
    pub fn named(self) -> Option<PagingEngine> {
        match self {
            Self::Move => Some(PagingEngine::Move),
            Self::Copy => Some(PagingEngine::Copy),
            Self::File => Some(PagingEngine::File),
            Self::Hint => Some(PagingEngine::Hint),
            Self::None => Some(PagingEngine::None),
            Self::Auto | Self::Unbounded | Self::Swap => None,
        }
    }
}

/// Shows which ways of paging this machine allows, why others are not possible, and which one is chosen.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  osprey probe\n  osprey probe --spill /mnt/nvme --disk")]
pub struct ProbeArgs {
    /// Folder that chunks would be written to
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub spill: PathBuf,
    /// Measure the disk of that folder instead: at most 256 MiB are written and read at each of four sizes
    #[arg(long)]
    pub disk: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints a completion script.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  osprey completions bash > /etc/bash_completion.d/osprey")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

//! The flags of `osprey bench`.

use super::workload::{BenchWorkload, WorkloadFamily, WorkloadSize};
use crate::units::{self, MemorySize};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is measured where nobody says it: the paper's comparison, and what replaces it.
const USUAL: [BenchEngine; 4] =
    [BenchEngine::Unbounded, BenchEngine::Move, BenchEngine::Hint, BenchEngine::Swap];
/// Most repeats of a run.
const REPEAT_MAX: u64 = 100;
/// Most seconds that a run may be given: a day.
const TIMEOUT_MAX: u64 = 86_400;

/// Measures workloads under each way of paging, beside the unbounded run, and checks their results.
///
/// The memory allowed is a part of what the unbounded run had resident, or a number of bytes, for each
/// party's whole process; a memory cgroup enforces it where that is permitted. The engines swap and hint need
/// a swap file, which is made and removed here, with the right to do so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  osprey bench --workload merge --size quick --engine move
  osprey bench --workload merge,rstats --memory 0.25 --engine move,swap --out pictures
  osprey bench --workload all --engine all --repeat 3 --json > figures.jsonl
docs/osprey/bench.md defines every figure.")]
pub struct BenchArgs {
    /// Workloads, with commas between them, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = one_or_all::<BenchWorkload>,
          default_value = "all")]
    workload: Vec<Choice<BenchWorkload>>,
    /// quick: a second or so; default: about 1 GiB for each party; or a number, of what
    /// `osprey-boolean --list` and `osprey-ckks --list` say
    #[arg(long, value_name = "SIZE", default_value = "default")]
    pub size: WorkloadSize,
    /// Memory for each party's process: a part of what the unbounded run had resident (0.25), or bytes (256M)
    #[arg(long, value_name = "PART|BYTES", default_value = "0.25")]
    pub memory: PartyMemory,
    /// Engines, with commas between them, or `all`; else move, hint and swap, as far as this machine permits
    /// them. The unbounded run is always made, to compare with
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = one_or_all::<BenchEngine>)]
    engine: Vec<Choice<BenchEngine>>,
    /// How the plan is come by, for the engines that follow one
    #[arg(long, value_enum, default_value_t = ModeName::Programmed)]
    pub mode: ModeName,
    /// Runs of everything; figures are their medians
    #[arg(long, value_name = "R", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=REPEAT_MAX))]
    pub repeat: u64,
    /// Bytes per chunk; else those that `osprey run` chooses, by memory and program
    #[arg(long, value_name = "BYTES", value_parser = units::chunk)]
    pub chunk: Option<usize>,
    /// Where chunks and swap files are written; its disk is measured
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub spill: PathBuf,
    /// Seconds after which a run has hung
    #[arg(long, value_name = "SECONDS", default_value_t = 3600,
          value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_MAX))]
    pub timeout: u64,
    /// Write report.html and a picture per figure into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The program of merge, sort, ljoin, mvmul and binfclayer; else osprey-boolean beside this one
    #[arg(long, value_name = "PATH")]
    boolean: Option<PathBuf>,
    /// The program of the five workloads over ciphertexts; else osprey-ckks beside this one
    #[arg(long, value_name = "PATH")]
    ckks: Option<PathBuf>,
    /// Print a JSON object a line, for every workload and engine
    #[arg(long)]
    pub json: bool,
    /// What the measurement starts to clean up after it
    #[arg(long, hide = true, exclusive = true)]
    pub keeper: bool,
}

impl BenchArgs {
    /// The workloads, each once, in the order of the help.
    pub fn workloads(&self) -> Vec<BenchWorkload> {
        chosen(&self.workload)
    }

    /// The engines, each once: those first that the others are compared with.
    pub fn engines(&self) -> Vec<BenchEngine> {
        if self.engine.is_empty() { USUAL.to_vec() } else { chosen(&self.engine) }
    }

    /// Whether an engine was asked for by its name, and not with others that this machine may not permit.
    pub fn names(&self, engine: BenchEngine) -> bool {
        self.engine.contains(&Choice::One(engine))
    }

    /// The program of a family, where one was named.
    pub fn program(&self, family: WorkloadFamily) -> Option<&Path> {
        match family {
            WorkloadFamily::Boolean => self.boolean.as_deref(),
            WorkloadFamily::Ckks => self.ckks.as_deref(),
        }
    }
}

/// A value, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice<T> {
    All,
    One(T),
}

fn one_or_all<T: ValueEnum>(text: &str) -> Result<Choice<T>, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    T::from_str(text, false).map(Choice::One).map_err(|_| {
        let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        format!("there are: {}, all", names.join(", "))
    })
}

fn chosen<T: ValueEnum + Copy + PartialEq>(choices: &[Choice<T>]) -> Vec<T> {
    let wanted = |value: &T| {
        choices.iter().any(|choice| matches!(choice, Choice::All) || *choice == Choice::One(*value))
    };
    T::value_variants().iter().copied().filter(wanted).collect()
}

/// How chunks get in and out, as `osprey run --engine` calls it. In the order of measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BenchEngine {
    /// No limit
    Unbounded,
    /// userfaultfd MOVE and io_uring
    Move,
    /// The same for kernels without MOVE
    Copy,
    /// A shared mapping of a file
    File,
    /// madvise on the system's swap, as in the paper
    Hint,
    /// The system's swap alone
    Swap,
}

impl BenchEngine {
    /// Whether it follows a plan.
    pub fn is_planned(self) -> bool {
        !matches!(self, Self::Unbounded | Self::Swap)
    }

    /// The runtime's engine, if it is one that needs no more of this machine than the runtime does.
    pub fn of_runtime(self) -> Option<osprey::PagingEngine> {
        match self {
            Self::Move => Some(osprey::PagingEngine::Move),
            Self::Copy => Some(osprey::PagingEngine::Copy),
            Self::File => Some(osprey::PagingEngine::File),
            Self::Unbounded | Self::Hint | Self::Swap => None,
        }
    }

    /// Whether it uses the system's swap.
    pub fn swaps(self) -> bool {
        matches!(self, Self::Hint | Self::Swap)
    }

    /// Time over that of the unbounded run, roughly: for saying how long all will take.
    pub fn expected_ratio(self) -> f64 {
        match self {
            Self::Unbounded => 0.0,
            Self::Move | Self::Copy | Self::File => 1.4,
            Self::Hint => 2.2,
            Self::Swap => 5.0,
        }
    }
}

/// How a plan is come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeName {
    /// Speculative pass, then programmed pass: seconds are those of both
    Speculate,
    /// The same; seconds are those of the programmed pass alone
    Programmed,
    /// Both at once
    Concurrent,
}

/// Memory for each party.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PartyMemory {
    /// Of what the unbounded run had resident.
    Part(f64),
    /// Bytes.
    Bytes(u64),
}

impl PartyMemory {
    /// Limits are whole multiples of this.
    const GRAIN: u64 = 64 << 10;

    /// Bytes, for a party that had `peak` bytes resident when it was unbounded.
    pub fn of(self, peak: u64) -> u64 {
        let bytes = match self {
            Self::Part(part) => ((peak as f64 * part) as u64).max(units::MEMORY_MIN),
            Self::Bytes(bytes) => bytes,
        };
        bytes.div_ceil(Self::GRAIN) * Self::GRAIN
    }
}

impl std::str::FromStr for PartyMemory {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let part = match units::memory(text) {
            Ok(MemorySize::Bytes(bytes)) => return Ok(Self::Bytes(bytes)),
            Ok(MemorySize::Percent(percent)) => percent / 100.0,
            Err(reason) => text.parse().map_err(|_| reason)?,
        };
        if part > 0.0 && part <= 1.0 {
            Ok(Self::Part(part))
        } else {
            Err("expected a part above 0 and up to 1, such as 0.25, or bytes, such as 256M".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn line(words: &str) -> Result<BenchArgs, clap::Error> {
        Line::try_parse_from(std::iter::once("bench").chain(words.split_whitespace())).map(|line| line.bench)
    }

    #[test]
    fn names_are_taken_alone_in_lists_and_all_at_once() {
        let bench = line("--workload sort,merge --engine swap,move,unbounded --memory 256M").expect("flags");
        assert_eq!(bench.workloads(), [BenchWorkload::Merge, BenchWorkload::Sort]);
        assert_eq!(bench.engines(), [BenchEngine::Unbounded, BenchEngine::Move, BenchEngine::Swap]);
        assert_eq!(bench.memory, PartyMemory::Bytes(256 << 20));
        let all = line("--workload all --engine all").expect("flags");
        assert_eq!((all.workloads().len(), all.engines().len()), (10, 6));
        assert!(bench.names(BenchEngine::Swap) && !bench.names(BenchEngine::Hint));
        assert!(!all.names(BenchEngine::Swap));
        let usual = line("--workload merge").expect("flags");
        assert!(usual.engines() == USUAL && !usual.names(BenchEngine::Move), "nobody named it");
        assert!(line("--keeper").expect("alone").keeper);
        for (words, reason) in [
            ("--workload fast", "there are: merge, sort"),
            ("--engine warp", "there are: unbounded, move"),
            ("--memory 1.5", "expected a part above 0"),
            ("--memory x", "256M"),
            ("--chunk 5000", "power of two"),
            ("--size 0", "expected quick"),
            ("--repeat 0", "1..=100"),
            ("--keeper --json", "cannot be used with"),
        ] {
            let error = line(words).expect_err(words).to_string();
            assert!(error.contains(reason), "{words}: {error}");
        }
    }

    #[test]
    fn a_limit_is_a_part_or_bytes() {
        assert_eq!("0.25".parse::<PartyMemory>().expect("a part").of(400 << 20), 100 << 20);
        assert_eq!("1G".parse::<PartyMemory>().expect("bytes").of(7), 1 << 30);
        assert_eq!(PartyMemory::Part(0.25).of(7 << 20), 4 << 20, "the least that osprey run takes");
        assert_eq!(PartyMemory::Part(0.5).of(20_000_000), 153 << 16, "a whole number of grains");
        assert_eq!("25%".parse::<PartyMemory>(), Ok(PartyMemory::Part(0.25)));
        assert!("99999999999T".parse::<PartyMemory>().is_err() && "-0.5".parse::<PartyMemory>().is_err());
    }
}

//! Flags of `tacit circuit`.

use base::limits;
use circuits::files::NetlistFormat;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  tacit circuit emit add64 -o add64.txt
  tacit circuit run add64.txt --inputs 2,40 --engine yao
  tacit circuit run aes128.txt --inputs 0x0001020304050607,0x0011223344556677
  tacit circuit run --config majority-1.conf
  tacit circuit info aes128.txt
  tacit circuit convert add64.txt --to gmw -o add64.gmw
  tacit circuit optimise theirs.txt -o smaller.txt

Formats, told apart by the first line: bristol (Bristol Fashion) and gmw (Choi et al., section 2.4). Parties \
are numbered from 1. A value is one number: in a bristol file bit 0 is its first wire, in a gmw file its \
last. docs/circuits.md has both formats and a tutorial.";

/// Runs, describes, converts and shrinks boolean circuits in files.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CircuitArgs {
    /// What to do with a circuit.
    #[command(subcommand)]
    pub action: CircuitCommand,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with a circuit.
#[derive(Debug, Subcommand)]
pub enum CircuitCommand {
    /// Evaluate a circuit: all parties as threads of this process, or with --config as one of several hosts
    Run(CircuitRun),
    /// Count gates, layers, inputs and outputs
    Info(Info),
    /// Write a circuit in the other format
    Convert(Convert),
    /// Write a smaller circuit of the same function: never more ANDs, never deeper
    Optimise(Optimise),
    /// Write a standard circuit, or that of a marketplace
    Emit(Emit),
}

/// Evaluates a circuit once. All parties are threads of this process and the result is compared with
/// evaluation in the clear; with --config this process is one party and meets the others.
#[derive(Debug, Args)]
#[command(
    override_usage = "tacit circuit run [OPTIONS] FILE\n       tacit circuit run [OPTIONS] [FILE] --config \
                      FILE",
    after_help = "Examples:\n  tacit circuit run add64.txt --inputs 2,0x28 --engine gmw --parties 3 \
                  --json\n  tacit circuit run vote.gmw --config party-1.conf --input vote.txt\n\n\
                  A configuration has a record a line; # begins a comment:\n  n 3                  parties, \
                  first\n  p 1                  this party, from 1\n  a 1 0.0.0.0:7001     address of a \
                  party; own: where it listens. Of two parties the higher dials\n  k 1 tacit1:...       key \
                  of a party, from its `tacit keygen`: of all, or, on one machine, of none\n  s \
                  my.key             this party's identity file\n  i vote.txt           its input file; \
                  --input wins\n  c vote.gmw           the circuit; FILE wins\n  d 30s                how \
                  long to wait for others; 10m unless told\n\n\
                  JSON: outputs (hexadecimal, in order; null where not learned), viewers, and_gates, depth, \
                  bytes (of all parties, with --config sent by this one; before TLS), rounds, seconds, and \
                  correct_vs_clear, with --config party instead"
)]
pub struct CircuitRun {
    /// The circuit file
    #[arg(required_unless_present = "config")]
    pub file: Option<PathBuf>,
    /// clear: no protection; yao: two parties; gmw: two or more. clear unless told, with --config gmw
    #[arg(long)]
    pub engine: Option<EngineName>,
    /// gmw: what makes the correlated OTs; ferret, softspoken, or softspoken:K. The same at all parties
    #[arg(long, value_name = "NAME")]
    pub ot: Option<String>,
    /// Be one of several hosts, as this file says
    #[arg(long, value_name = "FILE", conflicts_with_all = ["parties", "inputs"])]
    pub config: Option<PathBuf>,
    /// With --config: this party's input file, its items in order between white space
    #[arg(long, value_name = "FILE", requires = "config")]
    pub input: Option<PathBuf>,
    /// Parties; a gmw file states its own. A bristol file's input i goes to party i modulo their number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=limits::PARTIES as i64))]
    pub parties: Option<u8>,
    /// Who enters each input, in order: 1,2,1
    #[arg(long, value_name = "P[,P...]", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=limits::PARTIES as i64))]
    pub party_of_input: Vec<u8>,
    /// All inputs in order, or with P: those of party P (repeat it). Decimal, 0x... or 0b...; @FILE reads
    /// them from an input file, between white space
    #[arg(long, value_name = "[P:]V[,V...]|[P:]@FILE")]
    pub inputs: Vec<String>,
}

/// Counts gates, layers, inputs and outputs of a circuit file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit circuit info add64.txt\n  tacit circuit info vote.gmw --json")]
pub struct Info {
    /// The circuit file
    pub file: PathBuf,
}

/// Writes a circuit in the other format. A bristol file has no parties and no viewers: they are lost.
#[derive(Debug, Args)]
pub struct Convert {
    /// The circuit file
    pub file: PathBuf,
    /// The format to write
    #[arg(long)]
    pub to: FormatName,
    /// Where to write it; standard output unless given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Writes a smaller circuit of the same function, in the format of the file: never more ANDs, never deeper.
#[derive(Debug, Args)]
pub struct Optimise {
    /// The circuit file
    pub file: PathBuf,
    /// Where to write it; standard output unless given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Writes a standard circuit, or that of a marketplace.
#[derive(Debug, Args)]
pub struct Emit {
    /// aes128, sha256, add64, sub64, mul64, div64, lt64, eq64; or market:PROBLEM:RESOURCES:SHAPE, such as
    /// market:p2p:100:paper (docs/studies/market.md has the problems; shapes: paper, small, shallow)
    pub name: String,
    /// The format to write
    #[arg(long, default_value = "bristol")]
    pub to: FormatName,
    /// Where to write it; standard output unless given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// An engine for circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// In the clear.
    Clear,
    /// Garbling, two parties.
    Yao,
    /// Boolean shares, two or more parties.
    Gmw,
}

/// A format of circuit files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Bristol Fashion.
    Bristol,
    /// Choi et al., section 2.4.
    Gmw,
}

impl From<FormatName> for NetlistFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Bristol => Self::Bristol,
            FormatName::Gmw => Self::Gmw,
        }
    }
}

#[cfg(test)]
mod tests {
    /// Help is 100 columns wide where no terminal says otherwise: no example is broken there, and running
    /// text breaks nowhere else.
    #[test]
    fn help_breaks_where_lines_end() {
        let (examples, formats) = super::EXAMPLES.split_once("\n\n").expect("two paragraphs");
        assert!(examples.lines().all(|line| line.len() <= 100), "{examples}");
        assert_eq!(formats.lines().count(), 1, "{formats}");
    }
}

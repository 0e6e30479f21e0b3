//! The command line. Its help teaches by example.

use base::Error;
use clap::{Parser, ValueEnum};
use serde::Serialize;
use std::io::Write;

const AFTER: &str = "\
Examples, two terminals:
  osprey-boolean merge --size quick --party 0 --listen 127.0.0.1:7000
  osprey-boolean merge --size quick --party 1 --peer 127.0.0.1:7000
In a quarter of the memory:
  osprey run --memory 256M -- osprey-boolean merge --party 0 --listen 127.0.0.1:7000
  osprey run --memory 256M -- osprey-boolean merge --party 1 --peer 127.0.0.1:7000

Exit codes: 0 done; 1 a wrong result, or a fault of this machine; 2 bad input; 3 the network; 4 the peer \
deviated;
69 the runtime cannot begin, as with too little memory.";

/// Five computations of two parties under garbled circuits, with 16 bytes of memory per bit.
///
/// Party 0 garbles, party 1 evaluates. Inputs are pseudorandom and public: this measures, it does not protect
/// anything, and the connection is plain TCP. The clock runs from the inputs' end to the revealing of
/// results, which are compared with the computation in the clear. One line of JSON says what was found.
#[derive(Debug, Parser)]
#[command(name = "osprey-boolean", version, after_help = AFTER, arg_required_else_help = true,
          max_term_width = 110)]
pub struct Args {
    /// What to compute
    #[arg(required_unless_present = "list")]
    pub workload: Option<Workload>,
    /// quick, default (about 1 GiB for each party), or a number; `--list` says what it counts
    #[arg(long, default_value = "default")]
    pub size: SizeChoice,
    /// Which party this is: 0 garbles, 1 evaluates
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..2), required_unless_present = "list")]
    pub party: Option<u8>,
    /// Waits for the other party at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "peer",
          required_unless_present_any = ["peer", "list"])]
    pub listen: Option<String>,
    /// Goes to the other party at this address
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Option<String>,
    /// Does not reveal the results, nor compare them
    #[arg(long)]
    pub no_check: bool,
    /// Prints the workloads with their sizes
    #[arg(long)]
    pub list: bool,
    /// With --list: one line of JSON each
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Merge of two sorted lists
    Merge,
    /// Bitonic sort of both parties' records
    Sort,
    /// Loop join: every pair of records
    Ljoin,
    /// Matrix times vector, of 8 bits
    Mvmul,
    /// Layer of a binary neural network
    Binfclayer,
}

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    Quick,
    Default,
    Number(usize),
}

impl std::str::FromStr for SizeChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "quick" => Ok(Self::Quick),
            "default" => Ok(Self::Default),
            _ => match text.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err("expected quick, default or a whole number".to_owned()),
            },
        }
    }
}

/// What sizes a workload takes.
#[derive(Debug, Serialize)]
pub struct SizeRange {
    workload: Workload,
    /// About 1 GiB for each party.
    default: usize,
    /// Well under a second on one core.
    quick: usize,
    /// Beyond it wires would not fit a region.
    most: usize,
    /// What a size counts.
    counts: &'static str,
    /// Sizes are multiples of it; 0: powers of two.
    #[serde(rename = "multiple_of")]
    of: usize,
}

impl Workload {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn sizes(self) -> SizeRange {
        let (default, quick, most, of, counts) = match self {
            Self::Merge => {
                (1 << 18, 1 << 11, 1 << 26, 0, "records of 128 bits at each party, a power of two")
            }
            Self::Sort => (1 << 18, 1 << 10, 1 << 26, 0, "records of 128 bits at each party, a power of two"),
            Self::Ljoin => {
                (512, 40, 1 << 14, 1, "records of 128 bits at each party; every pair is an output")
            }
            Self::Mvmul => (2880, 64, 1 << 16, 64, "rows and columns of 8 bits, a multiple of 64"),
            Self::Binfclayer => (8192, 512, 1 << 18, 64, "rows and columns of 1 bit, a multiple of 64"),
        };
        SizeRange { workload: self, default, quick, most, counts, of }
    }

    /// The number behind a size.
    ///
    /// # Errors
    /// A number that the workload does not take, with those it does.
    pub fn size(self, size: SizeChoice) -> Result<usize, Error> {
        let sizes = self.sizes();
        let number = match size {
            SizeChoice::Quick => sizes.quick,
            SizeChoice::Default => sizes.default,
            SizeChoice::Number(number) => number,
        };
        let fits = if sizes.of == 0 { number.is_power_of_two() } else { number.is_multiple_of(sizes.of) };
        if fits && number <= sizes.most {
            return Ok(number);
        }
        let (name, counts, most) = (self.name(), sizes.counts, sizes.most);
        Err(Error::input(format!("--size {number} does not fit {name}: it counts {counts}, at most {most}")))
    }
}

/// Prints the workloads with their sizes.
///
/// # Errors
/// When standard output fails for another reason than a reader that left.
pub fn list(json: bool) -> Result<(), Error> {
    let mut text = String::new();
    for workload in Workload::value_variants() {
        let sizes = workload.sizes();
        text += &if json {
            serde_json::to_string(&sizes)
                .map_err(|e| Error::misuse(format!("a size does not serialise: {e}")))?
        } else {
            let SizeRange { default, quick, counts, .. } = sizes;
            format!("{:<11} default {default:>7}  quick {quick:>5}  {counts}", workload.name())
        };
        text.push('\n');
    }
    print(&text)
}

/// Writes to standard output. A reader that left early is no error.
///
/// # Errors
/// The system's.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("cannot write to standard output", &e))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_whole() {
        Args::command().debug_assert();
        let parse = |line: &str| Args::try_parse_from(line.split(' ')).map_err(|e| e.to_string());
        let args = parse("osprey-boolean merge --party 1 --peer h:1 --size 64").expect("complete");
        assert_eq!(
            (args.workload, args.size, args.party),
            (Some(Workload::Merge), SizeChoice::Number(64), Some(1))
        );
        assert!(parse("osprey-boolean --list --json").is_ok());
        for (line, expected) in [
            ("osprey-boolean merge --party 0", "--listen"),
            ("osprey-boolean merge --party 2 --listen a:1", "2 is not in 0..2"),
            ("osprey-boolean merge --party 0 --listen a:1 --size big", "expected quick, default"),
            ("osprey-boolean rsum --party 0 --listen a:1", "invalid value 'rsum'"),
        ] {
            let error = parse(line).expect_err("refused");
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_named() {
        for (workload, size, expected) in [
            (Workload::Merge, 100, "a power of two"),
            (Workload::Mvmul, 100, "a multiple of 64"),
            (Workload::Ljoin, 1 << 15, "at most 16384"),
        ] {
            let error = workload.size(SizeChoice::Number(size)).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
        for workload in Workload::value_variants() {
            assert!(
                workload.size(SizeChoice::Quick).expect("quick")
                    < workload.size(SizeChoice::Default).expect("default")
            );
        }
    }
}

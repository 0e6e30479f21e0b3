//! What costs what: `tacit bench`, measurements over loopback by the program that users run, each with a
//! check of the result.
//!
//! Parties are processes, each on one core, in [`rows`], [`matches`], [`ring4`] and [`engines`], and on all
//! cores in [`scale`]; they are threads of this process in [`gmw`], [`ot`] and [`market`].

mod engines;
mod figures;
mod four;
mod gates;
mod gmw;
mod joined;
mod market;
mod matches;
mod names;
mod ot;
mod party;
mod people;
mod ring4;
mod rows;
mod scale;
mod spine;
mod two;

use base::Error;
use clap::{Args, Subcommand};
use serde::Serialize;
use terminal::output;

/// The parties of every measurement of two.
const PARTIES: [&str; 2] = ["publisher", "advertiser"];
/// Everything measured is a function of it.
const SEED: u64 = 1;

/// Measures over loopback and checks the result. Of yao, lift, match, ring4, engines and scale each party is
/// a process, of gmw, ot and market a thread.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit bench yao --rows 100k\n  tacit bench lift --rows 1M --transport tls \
                  --json\n  tacit bench match --rows 50k --overlap 0.5\n  tacit bench match --protocol ps3i \
                  --rows 100k --columns 4\n  tacit bench gmw --parties 3 --ands 10M\n  tacit bench ot --ot \
                  ferret --ots 50M\n  tacit bench market --resources 5000 --parties 3 --circuit \
                  small\n  tacit bench ring4 --security semi-honest --transport shm\n  tacit bench ring4 \
                  --all\n  tacit bench engines --sizes 10k,100k --figures engines.html\n  tacit bench \
                  scale --rows 4M --memory 640M --state /scratch"
)]
pub struct MeasureArgs {
    /// What to measure
    #[command(subcommand)]
    pub what: What,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum What {
    /// 250 independent AND gates of bits shared by both parties, per row
    Yao(rows::YaoArgs),
    /// The row program of a lift study with K = 4, 32-bit times and values; session set-up included, no
    /// matching
    Lift(rows::LiftArgs),
    /// Private matching of generated people, two parties; see docs/protocols for each protocol
    Match(matches::MatchingArgs),
    /// AND gates among any number of parties, all of them threads of one process
    Gmw(gmw::GmwArgs),
    /// Correlated OTs with random choices between two parties, threads of one process
    Ot(ot::OtArgs),
    /// The P2P problem of Choi et al. (2012), a customer and N - 1 providers, threads of one process;
    /// start-up included
    Market(market::MarketArgs),
    /// Products of shared vectors among four computing parties; see docs/bench-ring4.md
    Ring4(ring4::Ring4Args),
    /// A whole study from files to reports under a bound of memory: rows that do not fit, both parties over
    /// TLS
    Scale(scale::ScaleArgs),
    /// The rows of lift on yao, gmw and ring4, against rows (--sizes) and against round-trip time (--rows),
    /// over TLS
    Engines(engines::EnginesArgs),
    /// One party of a measurement
    #[command(hide = true)]
    Party(party::PartyArgs),
}

impl MeasureArgs {
    /// Measures and prints.
    ///
    /// # Errors
    /// When a flag does nothing, a party fails, or the result is wrong.
    pub fn run(&self) -> Result<(), Error> {
        let json = self.json;
        match &self.what {
            What::Yao(args) => args.run(json),
            What::Lift(args) => args.run(json),
            What::Match(args) => args.run(json),
            What::Gmw(args) => args.run(json),
            What::Ot(args) => args.run(json),
            What::Market(args) => args.run(json),
            What::Ring4(args) => args.run(json),
            What::Scale(args) => args.run(json),
            What::Engines(args) => args.run(json),
            What::Party(args) => args.run(),
        }
    }
}

/// Prints a summary: as JSON, or as its text.
fn tell<T: Serialize>(summary: &T, json: bool, text: impl FnOnce(&T) -> String) -> Result<(), Error> {
    if json { output::print_json(summary) } else { output::print(&text(summary)) }
}

/// Refuses a result that is wrong.
fn expect(correct: bool) -> Result<(), Error> {
    if correct {
        return Ok(());
    }
    Err(Error::misuse("the result is wrong; this must not happen, please report it"))
}

/// The last line of a text.
fn verdict(correct: bool) -> String {
    format!("  result {}", if correct { "correct" } else { "WRONG" })
}

/// A bijection of 64 bits that scatters neighbours (the finaliser of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        bench: MeasureArgs,
    }

    fn read(line: &str) -> Result<MeasureArgs, clap::Error> {
        Cli::try_parse_from(["bench"].into_iter().chain(line.split(' '))).map(|cli| cli.bench)
    }

    #[test]
    fn a_flag_that_changes_nothing_is_refused() {
        for (line, reason) in [
            ("gmw --engine yao", "unexpected argument '--engine'"),
            ("market --engine yao", "possible values: gmw, ring4"),
            ("market --engine ring4 --transport tcp", "use --transport tls or memory"),
            ("market --engine ring4 --ot ferret", "ring4 makes no OTs; remove --ot"),
            ("market --engine ring4 --k 3", "ring4 makes no OTs; remove --k"),
            ("market --security malicious", "--security goes with --engine ring4"),
            ("market --ot ferret --k 3", "--k goes with --ot softspoken"),
            ("market --figures f.html --parties 3", "cannot be used with"),
            ("lift --rows 9 --ot ferret", "--ot goes with --engine gmw"),
            ("lift --rows 9 --engine gmw --ot ferret --k 3", "--k goes with --ot softspoken"),
            ("yao --rows 9 --engine gmw", "possible values: yao, clear"),
            ("match --rows 9 --columns 3", "--columns goes with"),
            ("match --rows 9 --protocol circuit-psi --backend paillier", "--backend goes with"),
            (
                "match --rows 9 --protocol multi --memory 64M",
                "--memory goes with --protocol pid, ps3i, collecting or circuit-psi",
            ),
            ("yao --rows 9 --engine clear --transport tls", "remove --transport"),
            ("lift --rows 9 --engine clear --k 3", "remove --k"),
            ("gmw --transport shm", "possible values: memory, tcp, tls"),
            ("ring4 --security semi-honest --hash keyed", "remove --hash"),
            ("ring4 --transport memory", "possible values: tcp, tls, shm, fabric"),
            ("ring4 --scaling --devices 2", "cannot be used with"),
            ("ring4 --all --device rtl", "cannot be used with"),
            ("ring4 --transport shm --provider tcp", "--provider goes with --transport fabric"),
            ("ring4 --rows 9 --bits 64", "cannot be used with"),
            ("ring4 --shards 2", "--rows <N>"),
            ("ring4 --rows 9 --transport tcp", "plain TCP does not hide"),
            ("engines --round-trips never", "write milliseconds"),
        ] {
            let refused = read(line).map_or_else(
                |e| e.to_string(),
                |bench| bench.run().err().map_or_else(String::new, |e| e.to_string()),
            );
            assert!(refused.contains(reason), "{line}: {refused}");
        }
    }

    #[test]
    fn flags_that_count_are_taken() {
        for line in [
            "yao --rows 9 --k 3 --shards 2 --transport tls",
            "yao --rows 9 --engine clear --shards 2 --json",
            "lift --rows 9 --engine gmw --ot softspoken --k 4 --shards 2",
            "lift --rows 9 --engine gmw --ot ferret",
            "match --rows 9 --overlap 1 --protocol pid --dummies --memory 64M",
            "match --rows 9 --protocol ps3i --backend paillier --columns 3",
            "match --rows 9 --protocol ps3i --memory 64M",
            "gmw --parties 3 --tree 4 --delay-ms 1 --k 4 --transport memory",
            "ot --ots 9 --ot ferret --transport memory",
            "ring4 --security malicious --hash blake3 --bits 1 --device cpu --products 9M --vector 1k \
             --repeat 1",
            "engines --sizes 100,2k --rows 100 --round-trips 0,0.1 --limit 9 --figures f.html",
            "market --engine ring4 --security semi-honest --resources 9",
            "market --engine gmw --k 3",
            "ring4 --all --hash keyed --devices 2 --provider shm",
            "ring4 --transport shm --device rtl",
            "ring4 --transport fabric --provider shm --device cuda",
            "ring4 --scaling --device rtl --transport tcp --bits 1",
            "ring4 --rows 1k --shards 4 --transport shm --device cuda --repeat 1",
            "market --resources 9 --parties 3 --circuit small --ot softspoken:3",
        ] {
            assert!(read(line).is_ok(), "{line}");
        }
    }
}

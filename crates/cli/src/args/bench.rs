//! Flags of `tacit bench`.

use super::{count, memory, share};
use base::Error;
use clap::{Args, ValueEnum};
use program::lower::combine::Shape;
use std::path::PathBuf;

/// Measures over loopback and checks the result. Of yao, lift, match, ring4 and engines each party is a process, of gmw, ot and
/// market a thread.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit bench yao --rows 100k\n  tacit bench lift --rows 1M --transport tls --json\n  tacit bench match --rows 50k --overlap 0.5\n  tacit bench match --protocol ps3i --rows 100k --columns 4\n  tacit bench gmw --parties 3 --ands 10M\n  tacit bench ot --ot ferret --ots 50M\n  tacit bench market --resources 5000 --parties 3 --circuit small\n  tacit bench ring4 --security semi-honest --transport shm\n  tacit bench ring4 --all\n  tacit bench engines --sizes 10k,100k --figures engines.html\n\n\
    yao:     250 independent AND gates of bits shared by both parties, per row\n\
    lift:    the row program of a lift study with K = 4, 32-bit times and values; session set-up included, no matching\n\
    match:   private matching of generated people, two parties; see docs/protocols for each\n\
    gmw:     AND gates among any number of parties, all of them threads of one process\n\
    ot:      correlated OTs with random choices between two parties, threads of one process\n\
    market:  the P2P problem of Choi et al. (2012), a customer and N - 1 providers, threads of one process; start-up included\n\
    ring4:   products of shared vectors among four computing parties; see docs/bench-ring4.md\n\
    engines: the rows of lift on yao, gmw and ring4, against rows (--sizes) and against round-trip time (--rows), over TLS"
)]
pub struct Bench {
    /// What to measure
    pub what: What,
    /// yao, lift, match: rows of each side; engines: rows of the settings by round trip, 10k unless told otherwise
    #[arg(long, value_name = "N", value_parser = count, default_value = "1", hide_default_value = true,
          default_value_if("what", "engines", "10k"),
          required_if_eq_any = [("what", "yao"), ("what", "lift"), ("what", "match")])]
    pub rows: u64,
    /// gmw, market: parties
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parties)]
    pub parties: usize,
    /// gmw: AND gates, in wide layers; rounded up to a multiple of 64
    #[arg(long, value_name = "M", value_parser = count, default_value = "10M")]
    pub ands: u64,
    /// gmw: instead of wide layers one full binary tree of this depth, 2^D - 1 AND gates
    #[arg(long, value_name = "D", conflicts_with = "ands", value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::bench::gmw::TREE_MAX)))]
    pub tree: Option<u32>,
    /// ot: correlated OTs to make
    #[arg(long, value_name = "N", value_parser = count, default_value = "20M")]
    pub ots: u64,
    /// market: resources of all providers together
    #[arg(long, value_name = "K", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub resources: u64,
    /// market: the circuit; paper (gate by gate the published one), small (fewest gates), shallow (for long round trips)
    #[arg(long, value_name = "NAME", default_value = "small", value_parser = shape)]
    pub circuit: Shape,
    /// gmw, market: delay of every byte on its way, in milliseconds: half a round trip
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub delay_ms: u64,
    /// market: measure figures 3 to 5 of the paper again, for some minutes, and write them as a page; engines: write the
    /// plots as a page
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resources", "parties", "circuit", "delay_ms"])]
    pub figures: Option<PathBuf>,
    /// gmw, ot, market, lift with --engine gmw: what makes the correlated OTs; ferret, softspoken, or softspoken:K
    #[arg(long, value_name = "NAME", default_value = "softspoken")]
    pub ot: String,
    /// yao, lift, market: the engine; `clear` (yao, lift) runs both roles in one process, without protection; market
    /// takes gmw unless told otherwise, or ring4
    #[arg(long, default_value = "yao", default_value_if("what", "market", "gmw"))]
    pub engine: EngineName,
    /// match: the protocol
    #[arg(long, default_value = "pid")]
    pub protocol: Protocol,
    /// How bytes travel; ring4 takes tls unless told otherwise, also as an engine; shm and fabric are for ring4 alone
    #[arg(long, default_value = "tcp", default_value_ifs([("what", "ring4", "tls"), ("engine", "ring4", "tls")]))]
    pub transport: TransportName,
    /// ring4 over fabric: libfabric's provider, as `fi_info` lists it
    #[arg(long, value_name = "NAME", default_value = "tcp")]
    pub provider: String,
    /// Bits of Delta that SoftSpoken OT takes at once: small for fast links, large for slow ones
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub k: u32,
    /// match: share of rows that both sides have
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub overlap: f64,
    /// match: columns of 64 bits that each side brings to ps3i, collecting and circuit-psi (where one side brings them)
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub columns: u8,
    /// match: add dummy rows that hide exact sizes, as studies do unless they say otherwise
    #[arg(long)]
    pub dummies: bool,
    /// match: what carries the columns of ps3i
    #[arg(long, value_name = "NAME", default_value = "permute-share")]
    pub backend: BackendName,
    /// match: memory of each party for pid, such as 64M; beyond it columns go to disk
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub memory: Option<u64>,
    /// yao, lift: worker pairs, each on a connection of its own; they share the party's one core
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub shards: u32,
    /// ring4, market on ring4: what a corrupted party may do
    #[arg(long, value_name = "MODEL", default_value = "malicious")]
    pub security: SecurityName,
    /// ring4: what tags are made of
    #[arg(long, value_name = "NAME", default_value = "keyed")]
    pub hash: HashName,
    /// ring4: bits of an element: Z_2^128, Z_2^64 or packed Z_2
    #[arg(long, value_name = "BITS", default_value = "128")]
    pub bits: Bits,
    /// ring4: what computes; cuda wants an NVIDIA GPU, rtl a simulator (make rtl), which is slow
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub device: DeviceName,
    /// ring4: devices behind the queue of each party
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub devices: u8,
    /// ring4: products of one run; default: enough for about a second
    #[arg(long, value_name = "N", value_parser = count)]
    pub products: Option<u64>,
    /// ring4: elements of one vector, multiplied in one round; default: 16,384 blocks of 128 bits
    #[arg(long, value_name = "N", value_parser = count)]
    pub vector: Option<u64>,
    /// ring4: runs; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// ring4: both security models and all rings, over all transports and on all devices that are here, in one table
    #[arg(long, conflicts_with_all = ["security", "bits", "transport", "device"])]
    pub all: bool,
    /// ring4: the devices of one party alone, 1 to 6 of them behind its queue, in both security models
    #[arg(long, conflicts_with_all = ["all", "security", "hash", "devices", "products", "vector"])]
    pub scaling: bool,
    /// engines: rows of each side, one setting after the other
    #[arg(long, value_name = "N,N", value_parser = count, value_delimiter = ',', default_value = "10k,100k,1M")]
    pub sizes: Vec<u64>,
    /// engines: round trips in milliseconds, one setting after the other
    #[arg(long, value_name = "MS,MS", value_parser = milliseconds, value_delimiter = ',', default_value = "0.1,1,60")]
    pub round_trips: Vec<f64>,
    /// engines: leave out settings that are expected to take more seconds than this
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// AND gates.
    Yao,
    /// The lift row program.
    Lift,
    /// Private matching.
    Match,
    /// AND gates among n parties.
    Gmw,
    /// Correlated OTs between two parties.
    Ot,
    /// The best of many resources among a customer and providers.
    Market,
    /// Products among four computing parties.
    Ring4,
    /// One lift study on every engine.
    Engines,
}

/// An engine to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// Garbled circuits.
    Yao,
    /// Correlated OT alone; lift and market.
    Gmw,
    /// Four servers; market only.
    Ring4,
    /// The reference: no protection.
    Clear,
}

impl EngineName {
    /// As the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yao => "yao",
            Self::Gmw => "gmw",
            Self::Ring4 => "ring4",
            Self::Clear => "clear",
        }
    }
}

/// A matching protocol to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Private-ID: one identifier, a spine of all rows.
    Pid,
    /// Private-ID with two identifiers per row.
    Multi,
    /// Inner join to shares.
    Ps3i,
    /// Inner join to shares, each person up to twice.
    Collecting,
    /// Join to shares that hides the size of the match.
    CircuitPsi,
}

/// What carries the columns of ps3i.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendName {
    /// Permutation networks over oblivious transfer.
    PermuteShare,
    /// Additively homomorphic encryption.
    Paillier,
}

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportName {
    /// Pipes within one process; gmw, ot and market only.
    Memory,
    /// Plain TCP.
    Tcp,
    /// TLS 1.3 with pinned keys.
    Tls,
    /// Memory that the processes share, after they met over TLS.
    Shm,
    /// libfabric, after they met over TLS.
    Fabric,
}

impl TransportName {
    /// As the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Shm => "shm",
            Self::Fabric => "fabric",
        }
    }

    /// Whether parties meet over TLS.
    pub fn meets_by_tls(self) -> bool {
        matches!(self, Self::Tls | Self::Shm | Self::Fabric)
    }
}

/// A security model of ring4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecurityName {
    /// A corrupted party looks.
    SemiHonest,
    /// A corrupted party does anything; the others abort.
    Malicious,
}

impl SecurityName {
    /// As the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::SemiHonest => "semi-honest",
            Self::Malicious => "malicious",
        }
    }

    /// As the engine names it.
    pub fn model(self) -> ring4::Security {
        match self {
            Self::SemiHonest => ring4::Security::SemiHonest,
            Self::Malicious => ring4::Security::Malicious,
        }
    }
}

/// What tags of ring4 are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashName {
    /// Polynomials over GF(2^128), padded.
    Keyed,
    /// Keyed BLAKE3.
    Blake3,
}

/// Bits of an element of ring4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub enum Bits {
    /// Z_2^128.
    #[value(name = "128")]
    #[serde(rename = "128")]
    Z128,
    /// Z_2^64.
    #[value(name = "64")]
    #[serde(rename = "64")]
    Z64,
    /// Z_2, packed.
    #[value(name = "1")]
    #[serde(rename = "1")]
    Z2,
}

impl Bits {
    /// How many.
    pub fn count(self) -> u32 {
        match self {
            Self::Z128 => 128,
            Self::Z64 => 64,
            Self::Z2 => 1,
        }
    }
}

/// What computes for a party of ring4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceName {
    /// One core.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// The accelerator of rtl/, simulated.
    Rtl,
}

impl DeviceName {
    /// As the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Rtl => "rtl",
        }
    }
}

/// One party of a measurement: what `tacit bench` starts.
#[derive(Debug, Args)]
pub struct BenchParty {
    /// What to do, as JSON
    pub task: String,
}

/// Reads the name of a circuit.
fn shape(text: &str) -> Result<Shape, String> {
    text.parse().map_err(|e: Error| e.to_string())
}

/// Reads a time of at most ten seconds.
fn milliseconds(text: &str) -> Result<f64, String> {
    let time = text.parse::<f64>().ok().filter(|ms| (0.0..=10_000.0).contains(ms));
    time.ok_or_else(|| "write milliseconds from 0 to 10000: 0.1".to_owned())
}

/// Reads a number of parties.
fn parties(text: &str) -> Result<usize, String> {
    let most = base::limits::PARTIES;
    let rule = || format!("write a whole number from 2 to {most}");
    text.parse().ok().filter(|n| (2..=most).contains(n)).ok_or_else(rule)
}

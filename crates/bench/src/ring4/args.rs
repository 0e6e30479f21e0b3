//! Flags of `bench ring4`.

use crate::names::{SecurityName, TransportName, only};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use terminal::values::count;

/// Measures products among four parties.
#[derive(Clone, Debug, Args)]
pub struct Ring4Args {
    /// What a corrupted party may do
    #[arg(long, value_name = "MODEL", default_value = "malicious")]
    pub security: SecurityName,
    /// What tags are made of; keyed unless told otherwise
    #[arg(long, value_name = "NAME")]
    pub hash: Option<HashName>,
    /// Bits of an element: Z_2^128, Z_2^64 or packed Z_2
    #[arg(long, value_name = "BITS", default_value = "128")]
    pub bits: ElementBits,
    /// What computes; cuda wants an NVIDIA GPU, rtl a simulator (make rtl), which is slow
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub device: DeviceName,
    /// Devices behind the queue of each party
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub devices: u8,
    /// How bytes travel
    #[arg(long, value_name = "NAME", default_value = "tls", value_parser = only(&TransportName::FOUR))]
    pub transport: TransportName,
    /// Over fabric: libfabric's provider, as `fi_info` lists it; tcp unless told otherwise
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Products of one run; default: enough for about a second
    #[arg(long, value_name = "N", value_parser = count)]
    pub products: Option<u64>,
    /// Elements of one vector, multiplied in one round; default: 16,384 blocks of 128 bits
    #[arg(long, value_name = "N", value_parser = count)]
    pub vector: Option<u64>,
    /// Runs; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Rows of a lift study instead of products: how many
    #[arg(long, value_name = "N", value_parser = count,
          conflicts_with_all = ["bits", "hash", "products", "vector", "devices", "all", "scaling"])]
    pub rows: Option<u64>,
    /// With --rows: ranges of them that are computed at once, each over connections of its own
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rows",
          value_parser = clap::value_parser!(u8).range(1..=32))]
    pub shards: u8,
    /// Both security models and all rings, over all transports and on all devices that are here, in one table
    #[arg(long, conflicts_with_all = ["security", "bits", "transport", "device"])]
    pub all: bool,
    /// The devices of one party alone, 1 to 6 of them behind its queue, in both security models
    #[arg(long, conflicts_with_all = ["all", "security", "hash", "devices", "products", "vector"])]
    pub scaling: bool,
}

/// What tags of ring4 are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashName {
    /// Polynomials over GF(2^128), padded.
    Keyed,
    /// Keyed BLAKE3.
    Blake3,
}

/// Bits of an element of ring4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum ElementBits {
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

impl ElementBits {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceName {
    /// One core.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// The accelerator of rtl/, simulated.
    Rtl,
}

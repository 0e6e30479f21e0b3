//! Flags that several measurements have.

use base::Error;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ot::OtKind;

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportName {
    /// Pipes within one process.
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
    /// Between two processes.
    pub const TWO: [Self; 2] = [Self::Tcp, Self::Tls];
    /// Between threads of one process.
    pub const THREADS: [Self; 3] = [Self::Memory, Self::Tcp, Self::Tls];
    /// Between the four of ring4.
    pub const FOUR: [Self; 4] = [Self::Tcp, Self::Tls, Self::Shm, Self::Fabric];

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
    /// As the engine names it.
    pub fn model(self) -> ring4::Security {
        match self {
            Self::SemiHonest => ring4::Security::SemiHonest,
            Self::Malicious => ring4::Security::Malicious,
        }
    }
}

/// What makes correlated OTs.
#[derive(Clone, Debug, Default, Args)]
pub struct OtChoice {
    /// What makes the correlated OTs: ferret, softspoken (unless told otherwise), or softspoken:K
    #[arg(long, value_name = "NAME")]
    pub ot: Option<String>,
    /// Bits of Delta that SoftSpoken OT takes at once: small for fast links, large for slow ones; 2 unless
    /// told otherwise
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub k: Option<u32>,
}

/// K, unless the command line says otherwise.
pub const K: u32 = 2;

impl OtChoice {
    /// The kind asked for; `softspoken` alone takes `--k`.
    pub fn kind(&self) -> Result<OtKind, Error> {
        match (self.ot.as_deref(), self.k) {
            (None | Some("softspoken"), k) => Ok(OtKind::SoftSpoken { k: k.unwrap_or(K) }),
            (Some(name), None) => name.parse(),
            (Some(name), Some(_)) => {
                Err(Error::input(format!("--k goes with --ot softspoken, not with --ot {name}; remove --k")))
            }
        }
    }

    /// A flag of these that was given.
    pub fn given(&self) -> Option<&'static str> {
        self.ot.as_ref().map(|_| "--ot").or(self.k.map(|_| "--k"))
    }
}

/// Reads one of some names of an enum.
pub fn only<T: ValueEnum + Send + Sync + 'static>(some: &[T]) -> impl TypedValueParser<Value = T> + use<T> {
    let names = some.iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(names).try_map(|name| T::from_str(&name, false))
}

/// Reads a number of parties.
pub fn parties(text: &str) -> Result<usize, String> {
    let most = base::limits::PARTIES;
    let rule = || format!("write a whole number from 2 to {most}");
    text.parse().ok().filter(|n| (2..=most).contains(n)).ok_or_else(rule)
}

//! Which back end makes the correlated OTs, as a user names it.

use crate::softspoken::check_k;
use base::Error;
use std::fmt;
use std::str::FromStr;

/// A back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtKind {
    /// SoftSpoken extension with blocks of `k` bits, `1..=8`: about 128 / k bits per OT, hardly any set-up.
    SoftSpoken {
        /// Bits per block of Delta.
        k: u32,
    },
}

/// k when a user does not say: the fastest on a link that carries it.
const DEFAULT_K: u32 = 2;

impl Default for OtKind {
    fn default() -> Self {
        Self::SoftSpoken { k: DEFAULT_K }
    }
}

impl fmt::Display for OtKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SoftSpoken { k } => write!(f, "softspoken:{k}"),
        }
    }
}

impl FromStr for OtKind {
    type Err = Error;

    /// `softspoken` or `softspoken:K`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, k) = text.split_once(':').map_or((text, None), |(name, k)| (name, Some(k)));
        match (name, k) {
            ("softspoken", None) => Ok(Self::default()),
            ("softspoken", Some(k)) => {
                let k = k.parse().map_err(|_| unknown(text))?;
                check_k(k)?;
                Ok(Self::SoftSpoken { k })
            }
            _ => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::input(format!("unknown OT back end '{text}'; use softspoken or softspoken:K with K from 1 to 8"))
}

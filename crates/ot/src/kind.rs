//! Which back end makes the correlated OTs, as a user names it.

use crate::base_ot::{BaseChosen, BasePairs};
use crate::ferret::INPUT_K;
use crate::softspoken::check_k;
use crate::{CotReceiver, CotSender, FerretReceiver, FerretSender, OtReceiver, OtSender, drivers};
use base::{Error, PartyId};
use kernels::Block;
use net::Session;
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
    /// Silent OT: a fraction of a bit per OT, for an assumption more (LPN) and 140 to 230 KB of set-up.
    Ferret,
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
            Self::Ferret => f.write_str("ferret"),
        }
    }
}

impl FromStr for OtKind {
    type Err = Error;

    /// `softspoken`, `softspoken:K` or `ferret`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, k) = text.split_once(':').map_or((text, None), |(name, k)| (name, Some(k)));
        match (name, k) {
            ("softspoken", None) => Ok(Self::default()),
            ("ferret", None) => Ok(Self::Ferret),
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
    Error::input(format!(
        "unknown OT back end '{text}'; use ferret, softspoken or softspoken:K with K from 1 to {}",
        crate::softspoken::K_MAX
    ))
}

impl OtKind {
    /// k of the SoftSpoken extension that serves, or that makes Ferret's first inputs.
    pub(crate) fn k(self) -> u32 {
        match self {
            Self::SoftSpoken { k } => k,
            Self::Ferret => INPUT_K,
        }
    }

    /// The sending side with `peer`, base OTs included. `delta` is fresh ([`crate::fresh_delta`]); `expected`
    /// is about how many OTs will be asked for. The peer calls [`OtKind::receiver`] with the same kind and
    /// `expected`.
    ///
    /// # Errors
    /// Those of the channel, malformed messages, k out of range.
    pub fn sender(
        self,
        session: &mut Session,
        peer: PartyId,
        delta: Block,
        expected: u64,
    ) -> Result<Box<dyn OtSender>, Error> {
        check_k(self.k())?;
        let base = drivers::choose(session, peer, delta)?;
        self.sender_over(session, peer, base, expected)
    }

    /// The sending side over base OTs at hand, such as those of [`crate::SenderHub`].
    ///
    /// # Errors
    /// As [`OtKind::sender`].
    pub fn sender_over(
        self,
        session: &mut Session,
        peer: PartyId,
        base: BaseChosen,
        expected: u64,
    ) -> Result<Box<dyn OtSender>, Error> {
        let cot = CotSender::from_base(session, peer, self.k(), base)?;
        Ok(match self {
            Self::SoftSpoken { .. } => Box::new(cot),
            Self::Ferret => Box::new(FerretSender::new(session, cot, expected)?),
        })
    }

    /// The receiving side with `peer`, base OTs included.
    ///
    /// # Errors
    /// As [`OtKind::sender`].
    pub fn receiver(
        self,
        session: &mut Session,
        peer: PartyId,
        expected: u64,
    ) -> Result<Box<dyn OtReceiver>, Error> {
        check_k(self.k())?;
        let base = drivers::offer(session, peer)?;
        self.receiver_over(session, peer, base, expected)
    }

    /// The receiving side over base OTs at hand, such as those of [`crate::ReceiverHub`].
    ///
    /// # Errors
    /// As [`OtKind::sender`].
    pub fn receiver_over(
        self,
        session: &mut Session,
        peer: PartyId,
        base: BasePairs,
        expected: u64,
    ) -> Result<Box<dyn OtReceiver>, Error> {
        let cot = CotReceiver::from_base(session, peer, self.k(), base)?;
        Ok(match self {
            Self::SoftSpoken { .. } => Box::new(cot),
            Self::Ferret => Box::new(FerretReceiver::new(session, cot, expected)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_print() {
        for text in ["softspoken:1", "softspoken:8", "ferret"] {
            assert_eq!(text.parse::<OtKind>().unwrap().to_string(), text);
        }
        assert_eq!("softspoken".parse::<OtKind>().unwrap(), OtKind::SoftSpoken { k: 2 });
        for text in ["", "iknp", "ferret:2", "softspoken:", "softspoken:x"] {
            let error = text.parse::<OtKind>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("unknown OT back end '{text}'; use ferret, ")), "{error}");
        }
        for text in ["softspoken:0", "softspoken:9"] {
            assert!(text.parse::<OtKind>().unwrap_err().to_string().contains("SoftSpoken"), "{text}");
        }
    }
}

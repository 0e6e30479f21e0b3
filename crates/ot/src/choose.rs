//! What a choice between back ends goes by: the work of each, and the link, measured.

use crate::{ExtensionCost, OtKind};
use base::{Error, PartyId};
use net::Session;
use std::time::Instant;

/// Bytes each way of a measurement.
pub const PROBE_BYTES: usize = 1 << 20;
/// Exchanges of one byte by which the round trip is measured: two of them take one.
const PINGS: usize = 8;

impl OtKind {
    /// Back ends that may be chosen for a link. Others are there for measurements.
    pub const CANDIDATES: [Self; 3] = [Self::SoftSpoken { k: 2 }, Self::SoftSpoken { k: 4 }, Self::Ferret];

    /// Seconds of one core per correlated OT and party: processor time of `tacit bench ot`, see
    /// `docs/protocols/ot.md`.
    #[must_use]
    pub fn seconds_per_ot(self) -> f64 {
        match self {
            Self::SoftSpoken { k } if k <= 4 => 5e-9,
            Self::SoftSpoken { .. } => 28e-9,
            Self::Ferret => 23.5e-9,
        }
    }
}

/// A link, as [`probe`] finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProbe {
    /// Bytes per second and direction, at least 1.
    pub bytes_per_s: u64,
    /// From a question to its answer, in microseconds.
    pub round_trip_us: u64,
}

impl LinkProbe {
    /// Bytes of a measurement that is sent.
    pub const BYTES: usize = 16;

    /// The worse of both in either respect.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            bytes_per_s: self.bytes_per_s.min(other.bytes_per_s),
            round_trip_us: self.round_trip_us.max(other.round_trip_us),
        }
    }

    /// For the wire, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let both = u128::from(self.bytes_per_s) | u128::from(self.round_trip_us) << 64;
        both.to_le_bytes()
    }

    /// From the wire. Any bytes are a measurement.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self { bytes_per_s: (both as u64).max(1), round_trip_us: (both >> 64) as u64 }
    }
}

/// Measures the link to `peer`, which calls this too; both sides get the same. The round trip is the shortest
/// of a few; a path whose window opens slowly looks narrower than it is, which favours silent OT, as it
/// should.
///
/// # Errors
/// Those of the channel.
pub fn probe(session: &mut Session, peer: PartyId) -> Result<LinkProbe, Error> {
    session.step("probe", |session| {
        let mut link = session.link(peer);
        // Both sides are there before either starts its clock.
        link.exchange(&[0], &mut [0])?;
        let mut round_trip = f64::MAX;
        for _ in 0..PINGS / 2 {
            let start = Instant::now();
            link.exchange(&[0], &mut [0])?;
            link.exchange(&[0], &mut [0])?;
            round_trip = round_trip.min(start.elapsed().as_secs_f64());
        }
        let start = Instant::now();
        link.exchange(&vec![0; PROBE_BYTES], &mut vec![0; PROBE_BYTES])?;
        // The last byte was under way for half a round trip.
        let all = start.elapsed().as_secs_f64().max(1e-9);
        let seconds = (all - round_trip / 2.0).max(all / 2.0);
        let mine = LinkProbe {
            bytes_per_s: ((PROBE_BYTES as f64 / seconds) as u64).max(1),
            round_trip_us: (round_trip * 1e6) as u64,
        };
        let mut theirs = [0; LinkProbe::BYTES];
        link.exchange(&mine.to_bytes(), &mut theirs)?;
        Ok(mine.worse(LinkProbe::from_bytes(theirs)))
    })
}

impl ExtensionCost {
    /// [`probe`].
    #[must_use]
    pub fn probe() -> Self {
        let each = (1 + PINGS + PROBE_BYTES + LinkProbe::BYTES) as u64;
        Self { ots: 0, sender: each, receiver: each, turns: PINGS as u64 + 3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_two_links_travels() {
        let [a, b] = [(9, 4), (7, 3)].map(|(b, r)| LinkProbe { bytes_per_s: b, round_trip_us: r });
        let worse = LinkProbe { bytes_per_s: 7, round_trip_us: 4 };
        assert_eq!((a.worse(b), b.worse(a)), (worse, worse));
        assert_eq!(LinkProbe::from_bytes(worse.to_bytes()), worse);
        assert_eq!(LinkProbe::from_bytes([0; 16]).bytes_per_s, 1, "nobody divides by nothing");
    }
}

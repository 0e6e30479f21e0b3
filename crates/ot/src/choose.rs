//! Which back end for which link: a rule over a measured bandwidth, and the measurement.

use crate::{OtKind, Price};
use base::{Error, PartyId};
use net::Session;
use std::time::Instant;

/// Bytes each way of a measurement.
pub const PROBE_BYTES: usize = 1 << 20;

/// Back ends that may be chosen: bytes on the wire per OT, and nanoseconds of one core per OT and party
/// (processor time of `tacit bench ot`, see `docs/protocols/ot.md`).
const CANDIDATES: [(OtKind, f64, f64); 3] = [
    (OtKind::SoftSpoken { k: 2 }, 63.0 / 8.0, 5.0),
    (OtKind::SoftSpoken { k: 4 }, 31.0 / 8.0, 5.0),
    (OtKind::Ferret, 0.214 / 8.0, 13.5),
];

/// The back end whose OTs take the least time over a link of so many bytes per second and direction, when `cores` core
/// pairs (at least 1) share it: the slower of computing and sending, since they overlap.
#[must_use]
pub fn choose(bytes_per_s: f64, cores: u32) -> OtKind {
    let seconds = |bytes: f64, ns: f64| (ns * 1e-9 / f64::from(cores.max(1))).max(bytes / bytes_per_s);
    let mut best = CANDIDATES[0];
    for candidate in &CANDIDATES[1..] {
        if seconds(candidate.1, candidate.2) < seconds(best.1, best.2) {
            best = *candidate;
        }
    }
    best.0
}

/// Measures the link to `peer`, which calls this too: bytes per second and direction, the same number at both sides.
/// A long round trip makes a short measurement too low, which favours silent OT, as it should.
///
/// # Errors
/// Those of the channel.
pub fn probe(session: &mut Session, peer: PartyId) -> Result<f64, Error> {
    session.step("probe", |session| {
        let mut link = session.link(peer);
        // Both sides are there before either starts its clock.
        link.exchange(&[0], &mut [0])?;
        let start = Instant::now();
        link.exchange(&vec![0; PROBE_BYTES], &mut vec![0; PROBE_BYTES])?;
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        let mine = (PROBE_BYTES as f64 / seconds) as u64;
        let mut theirs = [0; 8];
        link.exchange(&mine.to_le_bytes(), &mut theirs)?;
        Ok(mine.min(u64::from_le_bytes(theirs)).max(1) as f64)
    })
}

impl Price {
    /// [`probe`].
    #[must_use]
    pub fn probe() -> Self {
        let each = PROBE_BYTES as u64 + 9;
        Self { ots: 0, sender: each, receiver: each, turns: 3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_links_get_silent_ot() {
        let gigabit = 125e6;
        for (rate, cores, kind) in [
            (gigabit / 100.0, 1, "ferret"),
            (gigabit, 1, "ferret"),
            (gigabit, 8, "ferret"),
            (4.0 * gigabit, 1, "softspoken:4"),
            (10.0 * gigabit, 1, "softspoken:4"),
            (20.0 * gigabit, 1, "softspoken:2"),
            (10.0 * gigabit, 8, "ferret"),
            (f64::MAX, 0, "softspoken:2"),
        ] {
            assert_eq!(choose(rate, cores).to_string(), kind, "{rate} B/s, {cores} core pairs");
        }
    }
}

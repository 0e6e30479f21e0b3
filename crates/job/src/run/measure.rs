//! What the link carries, measured once where a choice hangs on it.
//!
//! Functionality: all parties get the same three numbers: bytes per second and round trip of the worst link
//! of party 0, and the cores of party 0. Everybody then settles the same engine by the same rule, since it
//! depends on these, the study and public sizes alone. Security: none is needed; a party that lies about the
//! link makes the run slow. Who learns what: all parties those three numbers.
//!
//! Party 0 measures its links one after the other ([`ot::probe`]) and tells all. Links between others are
//! taken to be no worse: to measure them too would take n times as long.

use crate::plan::{Link, Speeds};
use base::{Cost, Error, PartyId};
use net::Session;
use ot::ExtensionCost;
use ot::LinkProbe;

const TOLD: usize = LinkProbe::BYTES + 4;
/// Who measures.
const PROBER: PartyId = PartyId(0);

/// What all parties go by.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    measured: LinkProbe,
    cores: u32,
}

impl Told {
    pub fn link(&self) -> Link {
        Link {
            bits_per_s: 8.0 * self.measured.bytes_per_s as f64,
            round_trip_s: self.measured.round_trip_us as f64 / 1e6,
        }
    }

    pub fn speeds(&self) -> Speeds {
        Speeds { cores: self.cores.max(1).into(), ..Speeds::default() }
    }

    /// `90 Mb/s, 40.0 ms`.
    pub fn words(&self) -> String {
        let (bits, ms) = (8.0 * self.measured.bytes_per_s as f64, self.measured.round_trip_us as f64 / 1e3);
        let rate =
            if bits < 1e9 { format!("{:.0} Mb/s", bits / 1e6) } else { format!("{:.1} Gb/s", bits / 1e9) };
        format!("{rate}, {ms:.1} ms")
    }
}

pub(super) fn run(session: &mut Session) -> Result<Told, Error> {
    if session.me() != PROBER {
        ot::probe(session, PROBER)?;
        let told: [u8; TOLD] = session.link(PROBER).recv_array()?;
        let (measured, cores) = told.split_at(LinkProbe::BYTES);
        return Ok(Told {
            measured: LinkProbe::from_bytes(measured.try_into().expect("as many bytes")),
            cores: u32::from_le_bytes(cores.try_into().expect("four bytes")),
        });
    }
    let peers: Vec<PartyId> = session.roster().parties().filter(|p| *p != PROBER).collect();
    let mut measured = None;
    for peer in &peers {
        let link = ot::probe(session, *peer)?;
        measured = Some(measured.map_or(link, |worst: LinkProbe| worst.worse(link)));
    }
    let measured = measured.ok_or_else(|| Error::misuse("a party alone has no link"))?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    for peer in peers {
        let mut link = session.link(peer);
        link.send(&[&measured.to_bytes()[..], &cores.to_le_bytes()].concat())?;
        link.flush()?;
    }
    Ok(Told { measured, cores })
}

/// Exact cost among so many parties.
pub(crate) fn price(parties: usize) -> Cost {
    let mut cost = Cost::zero(parties);
    for peer in (1..parties as u8).map(PartyId) {
        cost += &ExtensionCost::probe().cost(PROBER, peer, parties);
        cost.sent[PROBER.index()] += TOLD as u64;
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::Cluster;

    #[test]
    fn all_parties_go_by_the_same_numbers() {
        let done = Cluster::new(3, 1).run(|session| {
            let told = session.step("link", run)?;
            Ok((told.measured, told.cores, session.ledger().sent("link"), told.words()))
        });
        let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
        assert!(done.iter().all(|d| (d.0, d.1, &d.3) == (done[0].0, done[0].1, &done[0].3)));
        assert_eq!(done.iter().map(|d| d.2).collect::<Vec<_>>(), price(3).sent);
    }

    #[test]
    fn a_link_in_words() {
        let words = |bytes_per_s, round_trip_us| {
            Told { measured: LinkProbe { bytes_per_s, round_trip_us }, cores: 0 }.words()
        };
        assert_eq!(words(11_250_000, 40_000), "90 Mb/s, 40.0 ms");
        assert_eq!(words(1_250_000_000, 120), "10.0 Gb/s, 0.1 ms");
    }
}

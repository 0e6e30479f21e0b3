//! What the link carries, measured once where a choice hangs on it.
//!
//! Functionality: all parties get the same three numbers: bytes per second and round trip of the worst link
//! of party 0, and the cores of party 0. Everybody then settles the same engine by the same rule, since it
//! depends on these, the study and public sizes alone. Security: none is needed; a party that lies about the
//! link makes the run slow. Who learns what: all parties those three numbers.
//!
//! Party 0 measures its links one after the other ([`ot::probe`]) and tells all. Links between others are
//! taken to be no worse: to measure them too would take n times as long.

use super::{Stage, Tells};
use crate::engines::Estimate;
use crate::plan::{Link, Speeds};
use base::{Cost, Error, PartyId};
use net::Session;
use ot::ExtensionCost;
use ot::LinkProbe;

const FACTS_BYTES: usize = LinkProbe::BYTES + 4;
/// Who measures.
const PROBER: PartyId = PartyId(0);

/// What all parties go by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkFacts {
    pub link: Link,
    pub speeds: Speeds,
}

impl LinkFacts {
    fn new(measured: LinkProbe, cores: u32) -> Self {
        let link = Link {
            bits_per_s: 8.0 * measured.bytes_per_s as f64,
            round_trip_s: measured.round_trip_us as f64 / 1e6,
        };
        Self { link, speeds: Speeds { cores: cores.max(1).into(), ..Speeds::default() } }
    }

    /// Bits per second, seconds of a round trip and cores, each as the bits of its number.
    pub fn to_bits(self) -> [u64; 3] {
        [self.link.bits_per_s, self.link.round_trip_s, self.speeds.cores].map(f64::to_bits)
    }

    /// Of what [`Self::to_bits`] gives.
    pub fn from_bits(bits: [u64; 3]) -> Self {
        let [bits_per_s, round_trip_s, cores] = bits.map(f64::from_bits);
        Self { link: Link { bits_per_s, round_trip_s }, speeds: Speeds { cores, ..Speeds::default() } }
    }

    /// `90 Mb/s, 40.0 ms`.
    pub fn words(&self) -> String {
        let (bits, ms) = (self.link.bits_per_s, self.link.round_trip_s * 1e3);
        let rate =
            if bits < 1e9 { format!("{:.0} Mb/s", bits / 1e6) } else { format!("{:.1} Gb/s", bits / 1e9) };
        format!("{rate}, {ms:.1} ms")
    }
}

/// Measuring the link, among so many parties.
pub(crate) struct LinkStage {
    pub parties: usize,
}

impl Stage for LinkStage {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "link"
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        let mut cost = Cost::zero(self.parties);
        for peer in (1..self.parties as u8).map(PartyId) {
            cost += &ExtensionCost::probe().cost(PROBER, peer, self.parties);
            cost.sent[PROBER.index()] += FACTS_BYTES as u64;
        }
        Ok(cost)
    }

    fn estimate(&self, link: Link, _speeds: Speeds) -> Result<Estimate, Error> {
        // All its messages cross.
        Ok(Estimate::of_messages(self.price(&())?, link, 0.5))
    }

    fn tells(&self) -> Vec<Tells> {
        vec![Tells::everybody(
            "speed and round trip of the link, and the cores of the first party".to_owned(),
        )]
    }
}

impl LinkStage {
    pub fn run(&self, session: &mut Session) -> Result<LinkFacts, Error> {
        session.step(self.name(), measure)
    }
}

fn measure(session: &mut Session) -> Result<LinkFacts, Error> {
    if session.me() != PROBER {
        ot::probe(session, PROBER)?;
        let told: [u8; FACTS_BYTES] = session.link(PROBER).recv_array()?;
        let (measured, cores) = told.split_at(LinkProbe::BYTES);
        let measured = LinkProbe::from_bytes(measured.try_into().expect("as many bytes"));
        let cores = u32::from_le_bytes(cores.try_into().expect("four bytes"));
        return Ok(LinkFacts::new(measured, cores));
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
    Ok(LinkFacts::new(measured, cores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::Cluster;

    #[test]
    fn all_parties_go_by_the_same_numbers() {
        let done = Cluster::new(3, 1).run(|session| {
            let facts = LinkStage { parties: 3 }.run(session)?;
            Ok((facts, session.traffic().sent("link")))
        });
        let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
        assert!(done.iter().all(|d| d.0 == done[0].0));
        let price = LinkStage { parties: 3 }.price(&()).unwrap();
        assert_eq!(done.iter().map(|d| d.1).collect::<Vec<_>>(), price.sent);
    }

    #[test]
    fn a_link_in_words() {
        let words =
            |bytes_per_s, round_trip_us| LinkFacts::new(LinkProbe { bytes_per_s, round_trip_us }, 0).words();
        assert_eq!(words(11_250_000, 40_000), "90 Mb/s, 40.0 ms");
        assert_eq!(words(1_250_000_000, 120), "10.0 Gb/s, 0.1 ms");
    }
}

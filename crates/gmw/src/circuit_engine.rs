//! Stand-alone circuits among any number of parties: set-up, evaluation in blocks of lanes, outputs to their
//! viewers.

use crate::{Gmw, LANES, Layers, Party, Quote};
use ::engine::CircuitEngine;
use ::engine::circuit_engine::check_inputs;
use base::{Cost, Error};
use circuits::{Viewers, Wired};
use net::Session;
use ot::OtKind;

/// Memory for the live wires of one block of lanes, in bytes; a block has at least 64 lanes.
const BLOCK_BYTES: usize = 64 << 20;

/// A circuit ready to run.
struct Prepared<'a> {
    layers: Layers,
    /// Viewers of every output bit.
    viewers: Vec<&'a Viewers>,
    lanes: usize,
    /// Lanes evaluated at once, a multiple of 64.
    block: usize,
}

impl<'a> Prepared<'a> {
    fn new(wired: &'a Wired, lanes: usize) -> Self {
        let roots: Vec<_> = wired.roots().collect();
        let layers = Layers::new(&wired.circuit, &roots);
        let viewers = wired.outputs.iter().flat_map(|o| std::iter::repeat_n(&o.to, o.bits.len()));
        let words = BLOCK_BYTES / 8 / layers.slots().max(1);
        let block = (64 * words).clamp(64, LANES);
        Self { layers, viewers: viewers.collect(), lanes, block }
    }

    fn ands(&self) -> u64 {
        self.layers.and_gates() * self.lanes as u64
    }

    /// First lane and number of lanes of each block.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (lanes, block) = (self.lanes, self.block);
        (0..lanes).step_by(block).map(move |at| (at, block.min(lanes - at)))
    }

    fn price(&self, parties: usize, kind: OtKind) -> Cost {
        if self.lanes == 0 {
            return Cost::zero(parties);
        }
        let mut quote = match self.ands() {
            0 => Quote::without_triples(parties),
            ands => Quote::new(parties, kind, ands),
        };
        quote.reserve(self.ands());
        for (_, lanes) in self.blocks() {
            quote.eval(&self.layers, lanes);
            quote.reveal(lanes, &self.viewers);
        }
        quote.total()
    }

    /// Every output bit over all lanes, where this party sees it.
    fn run(
        &self,
        kind: OtKind,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<u64>>>, Error> {
        let me = session.me();
        let mut bits: Vec<_> = self.viewers.iter().map(|v| v.has(me).then(Vec::new)).collect();
        if self.lanes == 0 {
            return Ok(bits);
        }
        let mut party = match self.ands() {
            0 => Party::without_triples(session)?,
            ands => Party::new(session, kind, ands)?,
        };
        party.reserve(self.ands());
        for (at, lanes) in self.blocks() {
            let mut known = |input: &circuits::InputBit, into: &mut [u64]| {
                let bit = &inputs[input.word as usize][usize::from(input.bit)];
                into.copy_from_slice(&bit[at / 64..][..into.len()]);
                Ok(())
            };
            let shares = party.eval(&self.layers, lanes, &mut known, session)?;
            let seen = party.reveal(shares, lanes, &self.viewers, session)?;
            for (bits, seen) in bits.iter_mut().zip(seen) {
                bits.iter_mut().zip(seen).for_each(|(bits, seen)| bits.extend(seen));
            }
            session.report((at + lanes) as u64, self.lanes as u64);
        }
        Ok(bits)
    }
}

/// Any number of parties. Blocks of lanes are revealed one after the other.
impl CircuitEngine for Gmw {
    fn name(&self) -> &'static str {
        "gmw"
    }

    fn price(&self, wired: &Wired, lanes: usize) -> Cost {
        Prepared::new(wired, lanes).price(wired.parties, self.kind())
    }

    fn run(
        &mut self,
        wired: &Wired,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
        let (parties, here) = (wired.parties, session.roster().len());
        if parties != here || parties < 2 {
            let text = format!("a circuit of {parties} parties cannot run among {here} with gmw");
            return Err(Error::input(format!("{text}; it takes as many as the circuit has, two or more")));
        }
        check_inputs(wired, lanes, inputs, Some(session.me()))?;
        let prepared = Prepared::new(wired, lanes);
        let bits = session.step("circuit", |session| prepared.run(self.kind(), inputs, session))?;
        let mut bits = bits.into_iter();
        // All bits of an output have its viewers.
        let output = |o: &circuits::OutputWord| {
            let word: Vec<_> = bits.by_ref().take(o.bits.len()).collect();
            if o.to.has(session.me()) { word.into_iter().collect() } else { None }
        };
        Ok(wired.outputs.iter().map(output).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::engine::conformance::circuit_suite;
    use base::PartyId;
    use net::cluster::Cluster;

    #[test]
    fn gmw_passes_the_suite_among_2_3_and_5() {
        for parties in [2, 3, 5] {
            circuit_suite::check(&|_| Ok(Box::new(Gmw::default())), parties).unwrap();
        }
    }

    /// More lanes than one block takes.
    #[test]
    fn blocks_of_lanes_follow_each_other() {
        let wired = circuits::standard::eq64();
        let mut prepared = Prepared::new(&wired, 300);
        prepared.block = 128;
        let value = |party: usize, lane: usize| (lane as u64).wrapping_mul(0x9e37_79b9) >> (lane % 3 * party);
        let inputs = |party: PartyId| {
            let bit = |p: usize, bit: usize| {
                let mut words = vec![0; 5];
                (0..300).for_each(|i| words[i / 64] |= (value(p, i) >> bit & 1) << (i % 64));
                words
            };
            let word =
                |p: usize| if p == party.index() { (0..64).map(|b| bit(p, b)).collect() } else { vec![] };
            [word(0), word(1)]
        };
        let done = Cluster::new(2, 1).run(|s| {
            let me = s.me();
            let bits = prepared.run(OtKind::default(), &inputs(me), s)?;
            Ok((bits, s.ledger().sent("")))
        });
        let cost = prepared.price(2, OtKind::default());
        for (party, done) in done.into_iter().enumerate() {
            let (bits, sent) = done.unwrap();
            let seen = bits[0].as_ref().unwrap();
            assert!((0..300).all(|i| kernels::bit(seen, i) == u64::from(value(0, i) == value(1, i))));
            assert_eq!((seen.len(), sent), (5, cost.sent[party]));
        }
    }

    #[test]
    fn another_number_of_parties_is_refused() {
        let wired = circuits::standard::add64();
        let done = Cluster::new(3, 1).run(|s| Gmw::default().run(&wired, 1, &[vec![], vec![]], s));
        assert!(done.into_iter().all(|d| d.unwrap_err().to_string().contains("a circuit of 2 parties")));
    }
}

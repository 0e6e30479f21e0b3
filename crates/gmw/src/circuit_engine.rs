//! Stand-alone circuits among any number of parties: set-up, evaluation in blocks of lanes, outputs to their
//! viewers.

use crate::{GateParty, GateQuote, Gmw, LANES, Layers};
use ::engine::circuit_engine::check_inputs;
use ::engine::{CircuitEngine, PreparedCircuit};
use base::{Cost, Error};
use circuits::{Viewers, Wired};
use net::Session;
use ot::OtKind;

/// Memory for the live wires of one block of lanes, in bytes; a block has at least 64 lanes.
const BLOCK_BYTES: usize = 64 << 20;

/// A circuit ready to run.
struct GateCircuit<'a> {
    wired: &'a Wired,
    layers: Layers,
    /// Viewers of every output bit.
    viewers: Vec<&'a Viewers>,
    /// Lanes evaluated at once, a multiple of 64.
    block: usize,
    kind: OtKind,
}

impl<'a> GateCircuit<'a> {
    fn new(wired: &'a Wired, kind: OtKind) -> Self {
        let roots: Vec<_> = wired.roots().collect();
        let layers = Layers::new(&wired.circuit, &roots);
        let viewers = wired.outputs.iter().flat_map(|o| std::iter::repeat_n(&o.to, o.bits.len()));
        let words = BLOCK_BYTES / 8 / layers.slots().max(1);
        let block = (64 * words).clamp(64, LANES);
        Self { wired, layers, viewers: viewers.collect(), block, kind }
    }

    fn ands(&self, lanes: usize) -> u64 {
        self.layers.and_gates() * lanes as u64
    }

    /// First lane and number of lanes of each block.
    fn blocks(&self, lanes: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let block = self.block;
        (0..lanes).step_by(block).map(move |at| (at, block.min(lanes - at)))
    }

    /// Every output bit over all lanes, where this party sees it.
    fn evaluate(
        &self,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<u64>>>, Error> {
        let me = session.me();
        let mut bits: Vec<_> = self.viewers.iter().map(|v| v.has(me).then(Vec::new)).collect();
        if lanes == 0 {
            return Ok(bits);
        }
        let (all, ands) = (lanes, self.ands(lanes));
        let mut party = GateParty::for_ands(session, self.kind, ands)?;
        party.reserve(ands);
        for (at, lanes) in self.blocks(all) {
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
            session.report((at + lanes) as u64, all as u64);
        }
        Ok(bits)
    }
}

/// Any number of parties. Blocks of lanes are revealed one after the other.
impl CircuitEngine for Gmw {
    fn name(&self) -> &'static str {
        "gmw"
    }

    fn circuit<'a>(&self, wired: &'a Wired) -> Result<Box<dyn PreparedCircuit + 'a>, Error> {
        wired.check()?;
        Ok(Box::new(GateCircuit::new(wired, self.kind)))
    }
}

impl PreparedCircuit for GateCircuit<'_> {
    fn price(&self, lanes: usize) -> Cost {
        let parties = self.wired.parties;
        if lanes == 0 {
            return Cost::zero(parties);
        }
        let ands = self.ands(lanes);
        let mut quote = GateQuote::for_ands(parties, self.kind, ands);
        quote.reserve(ands);
        for (_, lanes) in self.blocks(lanes) {
            quote.eval(&self.layers, lanes);
            quote.reveal(lanes, &self.viewers);
        }
        quote.total()
    }

    fn run(
        &self,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
        let (wired, here) = (self.wired, session.roster().len());
        if wired.parties != here || here < 2 {
            let text = format!("a circuit of {} parties cannot run among {here} with gmw", wired.parties);
            return Err(Error::input(format!("{text}; it takes as many as the circuit has, two or more")));
        }
        check_inputs(wired, lanes, inputs, Some(session.me()))?;
        let bits = session.step("circuit", |session| self.evaluate(lanes, inputs, session))?;
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
        let mut stage = GateCircuit::new(&wired, OtKind::default());
        stage.block = 128;
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
            let bits = stage.evaluate(300, &inputs(me), s)?;
            Ok((bits, s.traffic().sent("")))
        });
        let cost = stage.price(300);
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
        let done = Cluster::new(3, 1).run(|s| Gmw::default().circuit(&wired)?.run(1, &[vec![], vec![]], s));
        assert!(done.into_iter().all(|d| d.unwrap_err().to_string().contains("a circuit of 2 parties")));
    }
}

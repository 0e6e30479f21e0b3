//! Stand-alone circuits: owners enter their words, the seats evaluate, viewers get the outputs. In blocks of
//! lanes; nothing is revealed before all lanes are entered, so no owner chooses an input after it saw an
//! output.

use crate::bits::{BitSlices, LANES};
use crate::engine::evaluate::{LayerEvaluator, LayeredCircuit};
use crate::engine::release::reveal;
use crate::{Ring4, VectorRing};
use base::{Cost, Error, PartyId};
use circuits::Wired;
use circuits::{InputBit, Lit};
use engine::circuit_engine::check_inputs;
use engine::{CircuitEngine, PreparedCircuit};
use kernels::Block;
use net::Session;
use program::entries::Knows;

/// Most bytes of live wires of one block of lanes at a seat.
const BLOCK_BYTES: usize = 64 << 20;
/// Most lanes of a block.
const BLOCK_LANES: usize = 1 << 20;

type Words = Vec<Vec<Vec<u64>>>;

/// A circuit, made ready.
struct RingCircuit<'a> {
    wired: &'a Wired,
    circuit: LayeredCircuit,
    /// Lanes of a block.
    block: usize,
    ring4: Ring4,
}

impl<'a> RingCircuit<'a> {
    fn new(wired: &'a Wired, ring4: Ring4) -> Self {
        let roots: Vec<Lit> = wired.roots().collect();
        let knows = |input: &InputBit| Knows::Party(wired.inputs[input.word as usize].owner);
        let inputs = ring4.settings.inputs();
        let circuit = LayeredCircuit::new(&wired.circuit, &roots, wired.parties, &knows, inputs);
        let fit = BLOCK_BYTES / circuit.block_bytes().max(1) * LANES;
        let block = ring4.chunk.unwrap_or(fit.clamp(LANES, BLOCK_LANES));
        Self { wired, circuit, block, ring4 }
    }

    /// First lane and number of lanes of each block.
    fn blocks(&self, lanes: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let block = self.block;
        (0..lanes).step_by(block).map(move |at| (at, block.min(lanes - at)))
    }

    fn viewers(&self) -> impl Iterator<Item = PartyId> + use<'_> {
        let sees = |party: &PartyId| self.bits_to(*party) > 0;
        (0..self.wired.parties as u8).map(PartyId).filter(sees)
    }

    fn bits_to(&self, viewer: PartyId) -> usize {
        self.wired.output_bits(viewer) as usize
    }

    /// Every output at its viewers, empty elsewhere.
    fn evaluate(&self, all: usize, inputs: &[Vec<Vec<u64>>], session: &mut Session) -> Result<Words, Error> {
        if all == 0 {
            return Ok(self.none_seen(session.me()));
        }
        let mut member = self.ring4.member(session)?;
        let mut evaluator = LayerEvaluator::new(&mut member, session);
        let mut roots = Vec::new();
        for (at, lanes) in self.blocks(all) {
            let mut known = |input: &InputBit, [place]: [&mut [Block]; 1]| {
                let words = &inputs[input.word as usize][usize::from(input.bit)][at / 64..];
                place.iter_mut().zip(words.chunks(2)).for_each(|(block, pair)| {
                    block.0 =
                        u128::from(pair[0]) | u128::from(pair.get(1).copied().unwrap_or_default()) << 64;
                });
                Ok(())
            };
            let entered = evaluator.enter(&mut member, session, &self.circuit, lanes, &mut known)?;
            let none =
                &mut |_: &InputBit, _: [&mut [Block]; 3]| Err(Error::misuse("a bit that nobody entered"));
            roots.push(evaluator.join(&mut member, session, &self.circuit, lanes, &entered, none)?);
            session.report((at + lanes) as u64, all as u64);
        }
        let mut seen = self.none_seen(session.me());
        for viewer in self.viewers() {
            let shares: Vec<BitSlices<3>> =
                roots.iter().flat_map(|roots| self.outputs_to(viewer, roots)).collect();
            let count = self.bits_to(viewer) * all;
            let bits = session.step("reveal", |s| reveal(&shares, count, viewer, &mut member, s))?;
            bits.iter().for_each(|bits| self.read(bits, all, &mut seen));
        }
        Ok(seen)
    }

    /// The outputs that a participant sees, without lanes yet.
    fn none_seen(&self, me: PartyId) -> Words {
        let sees = |o: &&circuits::OutputWord| me.index() < self.wired.parties && o.to.has(me);
        self.wired.outputs.iter().filter(sees).map(|o| vec![Vec::new(); o.bits.len()]).collect()
    }

    /// Cuts what was revealed, block by block and bit by bit of the outputs, into words.
    fn read(&self, bits: &BitSlices<1>, all: usize, seen: &mut Words) {
        let mut at = 0;
        for (_, lanes) in self.blocks(all) {
            for words in seen.iter_mut().flatten() {
                let bits = bits.cut(at, lanes);
                let halves = bits.part(0).iter().flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]);
                words.extend(halves.take(lanes.div_ceil(64)));
                at += lanes;
            }
        }
    }

    /// The bits of the outputs that a viewer sees; nothing where there are no roots.
    fn outputs_to(&self, viewer: PartyId, roots: &[BitSlices<3>]) -> Vec<BitSlices<3>> {
        let mut roots = roots.iter();
        let mut bits = Vec::new();
        for output in &self.wired.outputs {
            let word = roots.by_ref().take(output.bits.len());
            if output.to.has(viewer) {
                bits.extend(word.cloned());
            } else {
                word.for_each(drop);
            }
        }
        bits
    }
}

/// Any number of parties, and the servers.
impl CircuitEngine for Ring4 {
    fn name(&self) -> &'static str {
        "ring4"
    }

    fn circuit<'a>(&self, wired: &'a Wired) -> Result<Box<dyn PreparedCircuit + 'a>, Error> {
        wired.check()?;
        Ok(Box::new(RingCircuit::new(wired, self.clone())))
    }
}

impl PreparedCircuit for RingCircuit<'_> {
    fn price(&self, lanes: usize) -> Cost {
        let mut quote = self.ring4.quote(self.wired.parties);
        if lanes == 0 {
            return quote.total();
        }
        quote.member_setup();
        for (_, lanes) in self.blocks(lanes) {
            self.circuit.quote_enter(&mut quote, lanes);
            self.circuit.quote_join(&mut quote, lanes);
        }
        for viewer in self.viewers() {
            if self.ring4.settings.checked() {
                quote.confirm();
            }
            quote.reveal(VectorRing::Z2, self.bits_to(viewer) * lanes, viewer);
        }
        quote.total()
    }

    fn run(
        &self,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
        let (wired, me) = (self.wired, session.me());
        self.ring4.check_roster(wired.parties, session)?;
        check_inputs(wired, lanes, inputs, Some(me))?;
        let seen = session.step("circuit", |s| self.evaluate(lanes, inputs, s))?;
        let mut seen = seen.into_iter();
        let sees = |o: &circuits::OutputWord| me.index() < wired.parties && o.to.has(me);
        Ok(wired.outputs.iter().map(|o| if sees(o) { seen.next() } else { None }).collect())
    }
}

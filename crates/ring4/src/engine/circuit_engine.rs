//! Stand-alone circuits: owners enter their words, the seats evaluate, viewers get the outputs. In blocks of
//! lanes; nothing is revealed before all lanes are entered, so no owner chooses an input after it saw an
//! output.

use crate::bits::{Bits, LANES};
use crate::engine::evaluate::{Compiled, Evaluator};
use crate::engine::release::reveal;
use crate::seats::member::Member;
use crate::{Quote, Ring4, VectorRing};
use base::{Cost, Error, PartyId};
use circuits::Wired;
use circuits::{InputBit, Lit};
use engine::CircuitEngine;
use engine::circuit_engine::check_inputs;
use kernels::Block;
use net::Session;
use program::entries::Knows;
use program::lower::EntryRule;

/// Most bytes of live wires of one block of lanes at a seat.
const BLOCK_BYTES: usize = 64 << 20;
/// Most lanes of a block.
const BLOCK_LANES: usize = 1 << 20;

type Words = Vec<Vec<Vec<u64>>>;

/// A circuit made ready.
struct Prepared<'a> {
    wired: &'a Wired,
    circuit: Compiled,
    lanes: usize,
    block: usize,
}

impl<'a> Prepared<'a> {
    fn new(wired: &'a Wired, lanes: usize, inputs: EntryRule) -> Self {
        let roots: Vec<Lit> = wired.roots().collect();
        let knows = |input: &InputBit| Knows::Party(wired.inputs[input.word as usize].owner);
        let circuit = Compiled::new(&wired.circuit, &roots, wired.parties, &knows, inputs);
        let fit = BLOCK_BYTES / circuit.block_bytes().max(1) * LANES;
        Self { wired, circuit, lanes, block: fit.clamp(LANES, BLOCK_LANES) }
    }

    fn with_block(mut self, lanes: Option<usize>) -> Self {
        self.block = lanes.unwrap_or(self.block);
        self
    }

    /// First lane and number of lanes of each block.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (lanes, block) = (self.lanes, self.block);
        (0..lanes).step_by(block).map(move |at| (at, block.min(lanes - at)))
    }

    fn viewers(&self) -> impl Iterator<Item = PartyId> + use<'_> {
        let sees = |party: &PartyId| self.bits_to(*party) > 0;
        (0..self.wired.parties as u8).map(PartyId).filter(sees)
    }

    fn bits_to(&self, viewer: PartyId) -> usize {
        self.wired.output_bits(viewer) as usize
    }

    fn quote(&self, mut quote: Quote) -> Quote {
        if self.lanes == 0 {
            return quote;
        }
        quote.member_setup();
        for (_, lanes) in self.blocks() {
            self.circuit.quote_enter(&mut quote, lanes);
            self.circuit.quote_join(&mut quote, lanes);
        }
        for viewer in self.viewers() {
            if quote.settings().checked() {
                quote.confirm();
            }
            quote.reveal(VectorRing::Z2, self.bits_to(viewer) * self.lanes, viewer);
        }
        quote
    }

    /// Every output at its viewers, empty elsewhere.
    fn run(
        &self,
        member: impl FnOnce(&mut Session) -> Result<Member, Error>,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Words, Error> {
        if self.lanes == 0 {
            return Ok(self.none_seen(session.me()));
        }
        let mut member = member(session)?;
        let mut evaluator = Evaluator::new(&mut member, session);
        let mut roots = Vec::new();
        for (at, lanes) in self.blocks() {
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
            session.report((at + lanes) as u64, self.lanes as u64);
        }
        let mut seen = self.none_seen(session.me());
        for viewer in self.viewers() {
            let shares: Vec<Bits<3>> =
                roots.iter().flat_map(|roots| self.outputs_to(viewer, roots)).collect();
            let count = self.bits_to(viewer) * self.lanes;
            let bits = session.step("reveal", |s| reveal(&shares, count, viewer, &mut member, s))?;
            bits.iter().for_each(|bits| self.read(bits, &mut seen));
        }
        Ok(seen)
    }

    /// The outputs that a participant sees, without lanes yet.
    fn none_seen(&self, me: PartyId) -> Words {
        let sees = |o: &&circuits::OutputWord| me.index() < self.wired.parties && o.to.has(me);
        self.wired.outputs.iter().filter(sees).map(|o| vec![Vec::new(); o.bits.len()]).collect()
    }

    /// Cuts what was revealed, block by block and bit by bit of the outputs, into words.
    fn read(&self, bits: &Bits<1>, seen: &mut Words) {
        let mut at = 0;
        for (_, lanes) in self.blocks() {
            for words in seen.iter_mut().flatten() {
                let bits = bits.cut(at, lanes);
                let halves = bits.part(0).iter().flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]);
                words.extend(halves.take(lanes.div_ceil(64)));
                at += lanes;
            }
        }
    }

    /// The bits of the outputs that a viewer sees; nothing where there are no roots.
    fn outputs_to(&self, viewer: PartyId, roots: &[Bits<3>]) -> Vec<Bits<3>> {
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

    fn price(&self, wired: &Wired, lanes: usize) -> Cost {
        let prepared = Prepared::new(wired, lanes, self.inputs()).with_block(self.chunk());
        prepared.quote(self.quote(wired.parties)).total()
    }

    fn run(
        &mut self,
        wired: &Wired,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
        self.check_roster(wired.parties, session)?;
        check_inputs(wired, lanes, inputs, Some(session.me()))?;
        let prepared = Prepared::new(wired, lanes, self.inputs()).with_block(self.chunk());
        let me = session.me();
        let seen = session.step("circuit", |s| prepared.run(|s| self.member(s), inputs, s))?;
        let mut seen = seen.into_iter();
        let sees = |o: &circuits::OutputWord| me.index() < wired.parties && o.to.has(me);
        Ok(wired.outputs.iter().map(|o| if sees(o) { seen.next() } else { None }).collect())
    }
}

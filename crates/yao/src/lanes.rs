//! Runs a compiled circuit over the lanes of one batch: the garbler's side and the evaluator's side, gate by
//! gate the same order, the same tweaks, the same pieces on the wire.

use crate::compile::{GarbledGates, LabelGate, Ref};
use base::{Error, PartyId};
use kernels::{Block, TweakedHash};
use net::Session;
use std::ops::Range;

/// Blocks of ciphertext gathered before they are sent: 64 KiB, so that they stay in the cache on both sides.
const PIECE_BLOCKS: usize = 4096;

/// Labels of one batch: slots and the evaluator's inputs, `lanes` blocks each.
#[derive(Default)]
pub(crate) struct Labels {
    slots: Vec<Vec<Block>>,
    /// Labels of the evaluator's inputs: `ots[k * lanes + lane]`.
    pub ots: Vec<Block>,
    zero: Vec<Block>,
    lanes: usize,
}

impl Labels {
    /// Room for a circuit on `lanes` lanes; buffers of an earlier batch are reused.
    pub fn prepare(&mut self, compiled: &GarbledGates, lanes: usize) {
        self.lanes = lanes;
        self.slots.resize_with(self.slots.len().max(compiled.slots as usize), Vec::new);
        self.slots.iter_mut().for_each(|slot| slot.resize(lanes, Block::ZERO));
        self.zero.resize(lanes, Block::ZERO);
    }

    /// Lanes of this batch.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The labels at a place.
    pub fn get(&self, place: Ref) -> &[Block] {
        match place {
            Ref::Zero => &self.zero[..self.lanes],
            Ref::Ot(k) => &self.ots[k as usize * self.lanes..][..self.lanes],
            Ref::Slot(slot) => &self.slots[slot as usize][..self.lanes],
        }
    }

    /// Computes a slot from other labels. A slot is never its own operand, so taking it out is safe.
    fn write<T>(&mut self, out: u32, work: impl FnOnce(&Self, &mut [Block]) -> T) -> T {
        let mut slot = std::mem::take(&mut self.slots[out as usize]);
        let done = work(self, &mut slot[..self.lanes]);
        self.slots[out as usize] = slot;
        done
    }
}

/// Packed bits by number: bit i of `bits[n]` is lane i.
pub(crate) type Packed = Vec<Vec<u64>>;

/// A stretch of gates and the ciphertext blocks per lane that they need.
struct Piece {
    gates: Range<usize>,
    units: usize,
}

fn units(gate: &LabelGate) -> usize {
    match gate {
        LabelGate::And { .. } => 2,
        LabelGate::AndGarbler { .. } | LabelGate::AndEvaluator { .. } => 1,
        LabelGate::Xor { .. }
        | LabelGate::Known { .. }
        | LabelGate::Not { .. }
        | LabelGate::Spread { .. } => 0,
    }
}

/// Cuts the gates into pieces whose ciphertexts fill a buffer; the same at both parties.
fn pieces(gates: &[LabelGate], lanes: usize) -> impl Iterator<Item = Piece> + '_ {
    let most = (PIECE_BLOCKS / lanes.max(1)).max(2);
    let mut next = 0;
    std::iter::from_fn(move || {
        let from = next;
        let mut used = 0;
        while next < gates.len() && used + units(&gates[next]) <= most {
            used += units(&gates[next]);
            next += 1;
        }
        (next > from).then_some(Piece { gates: from..next, units: used })
    })
}

/// What the garbler holds for one session: Delta never leaves it.
pub(crate) struct Garbler {
    pub hash: TweakedHash,
    pub delta: Block,
    /// Counts batches, so that no tweak repeats under this Delta.
    pub batch: u64,
    pub labels: Labels,
    scratch: Vec<Block>,
    table: Vec<Block>,
}

impl Garbler {
    pub fn new(hash: TweakedHash, delta: Block) -> Self {
        assert!(delta.lsb(), "the colour bit of Delta is set");
        let labels = Labels::default();
        Self { hash, delta, batch: 0, labels, scratch: Vec::new(), table: Vec::new() }
    }

    /// Garbles a batch: `labels.ots` holds the labels of 0 of the evaluator's inputs, `known` the garbler's
    /// bits.
    pub fn run(
        &mut self,
        c: &GarbledGates,
        known: &Packed,
        session: &mut Session,
        peer: PartyId,
    ) -> Result<(), Error> {
        let lanes = self.labels.lanes();
        for piece in pieces(&c.gates, lanes) {
            let mut table = std::mem::take(&mut self.table);
            table.resize(piece.units * lanes, Block::ZERO);
            let (mut at, mut ands) = (0, 0);
            for index in piece.gates {
                let gate = &c.gates[index];
                let size = units(gate) * lanes;
                self.gate(index as u64, gate, known, &mut table[at..at + size]);
                at += size;
                ands += u64::from(size > 0);
            }
            if at > 0 {
                session.link(peer).send(Block::as_bytes(&table))?;
            }
            session.link(peer).tally(ands * lanes as u64, 0);
            self.table = table;
        }
        Ok(())
    }

    fn gate(&mut self, index: u64, gate: &LabelGate, known: &Packed, table: &mut [Block]) {
        let (hash, delta, batch) = (&self.hash, self.delta, self.batch);
        let [t0, t1] = tweaks(batch, index);
        let flipped = |flip: bool| if flip { delta } else { Block::ZERO };
        match *gate {
            LabelGate::Xor { a, b, out, flip } => self.labels.write(out, |l, out| {
                let flip = flipped(flip);
                for ((out, a), b) in out.iter_mut().zip(l.get(a)).zip(l.get(b)) {
                    *out = *a ^ *b ^ flip;
                }
            }),
            LabelGate::Known { a, bit, out, flip } => self.labels.write(out, |l, out| {
                let flip = flipped(flip);
                out.iter_mut().zip(l.get(a)).for_each(|(out, a)| *out = *a ^ flip);
                kernels::xor_masked(out, &known[bit as usize], delta);
            }),
            LabelGate::Not { a, out } => self.labels.write(out, |l, out| {
                out.iter_mut().zip(l.get(a)).for_each(|(out, a)| *out = *a ^ delta);
            }),
            LabelGate::Spread { a, out, flip } => self.labels.write(out, |l, out| {
                let flip = flipped(flip);
                out.iter_mut()
                    .zip(l.get(a))
                    .enumerate()
                    .for_each(|(i, (out, a))| *out = *a ^ flip ^ spread(i));
            }),
            LabelGate::And { a, b, out } => self.labels.write(out, |l, out| {
                kernels::garble_and(hash, t0, t1, delta, l.get(a), l.get(b), out, table);
            }),
            LabelGate::AndGarbler { bit, flip, b, out } => {
                let bits = complement(&known[bit as usize], flip);
                self.labels.write(out, |l, out| {
                    kernels::garble_and_garbler_known(hash, t0, delta, &bits, l.get(b), out, table);
                });
            }
            LabelGate::AndEvaluator { ot, flip, b, out } => {
                self.scratch.clear();
                let flip = flipped(flip);
                self.scratch.extend(self.labels.get(Ref::Ot(ot)).iter().map(|a| *a ^ flip));
                let a = &self.scratch;
                self.labels.write(out, |l, out| {
                    kernels::garble_and_evaluator_known(hash, t0, delta, a, l.get(b), out, table);
                });
            }
        }
    }

    /// Labels of 0 of a root literal.
    pub fn root(&self, (place, complement): (Ref, bool)) -> impl Iterator<Item = Block> + '_ {
        let flip = if complement { self.delta } else { Block::ZERO };
        self.labels.get(place).iter().map(move |label| *label ^ flip)
    }
}

/// What the evaluator holds for one session.
pub(crate) struct LabelEvaluator {
    pub hash: TweakedHash,
    pub batch: u64,
    pub labels: Labels,
    table: Vec<Block>,
}

impl LabelEvaluator {
    pub fn new(hash: TweakedHash) -> Self {
        Self { hash, batch: 0, labels: Labels::default(), table: Vec::new() }
    }

    /// Evaluates a batch: `labels.ots` holds the active labels of the evaluator's inputs, `choices` their
    /// bits.
    pub fn run(
        &mut self,
        c: &GarbledGates,
        choices: &Packed,
        session: &mut Session,
        peer: PartyId,
    ) -> Result<(), Error> {
        let lanes = self.labels.lanes();
        for piece in pieces(&c.gates, lanes) {
            let mut table = std::mem::take(&mut self.table);
            table.resize(piece.units * lanes, Block::ZERO);
            if piece.units > 0 {
                session.link(peer).recv(Block::as_bytes_mut(&mut table))?;
            }
            let (mut at, mut ands) = (0, 0);
            for index in piece.gates {
                let gate = &c.gates[index];
                let size = units(gate) * lanes;
                self.gate(index as u64, gate, choices, &table[at..at + size]);
                at += size;
                ands += u64::from(size > 0);
            }
            session.link(peer).tally(ands * lanes as u64, 0);
            self.table = table;
        }
        Ok(())
    }

    fn gate(&mut self, index: u64, gate: &LabelGate, choices: &Packed, table: &[Block]) {
        let hash = &self.hash;
        let [t0, t1] = tweaks(self.batch, index);
        match *gate {
            LabelGate::Xor { a, b, out, .. } => self.labels.write(out, |l, out| {
                for ((out, a), b) in out.iter_mut().zip(l.get(a)).zip(l.get(b)) {
                    *out = *a ^ *b;
                }
            }),
            LabelGate::Known { a, out, .. } | LabelGate::Not { a, out } => {
                self.labels.write(out, |l, out| out.copy_from_slice(l.get(a)));
            }
            LabelGate::Spread { a, out, .. } => self.labels.write(out, |l, out| {
                out.iter_mut().zip(l.get(a)).enumerate().for_each(|(i, (out, a))| *out = *a ^ spread(i));
            }),
            LabelGate::And { a, b, out } => self.labels.write(out, |l, out| {
                kernels::eval_and(hash, t0, t1, l.get(a), l.get(b), out, table);
            }),
            LabelGate::AndGarbler { b, out, .. } => self.labels.write(out, |l, out| {
                kernels::eval_and_garbler_known(hash, t0, l.get(b), out, table);
            }),
            LabelGate::AndEvaluator { ot, flip, b, out } => {
                let bits = complement(&choices[ot as usize], flip);
                self.labels.write(out, |l, out| {
                    let a = l.get(Ref::Ot(ot));
                    kernels::eval_and_evaluator_known(hash, t0, a, &bits, l.get(b), out, table);
                });
            }
        }
    }
}

/// The tweaks of a gate's two halves.
fn tweaks(batch: u64, gate: u64) -> [Block; 2] {
    [Block::tweak(0, batch, gate, 0), Block::tweak(0, batch, gate, 1)]
}

/// The public part of lane `i`'s label under [`LabelGate::Spread`]: different in every lane, colour 0.
fn spread(lane: usize) -> Block {
    Block((lane as u128 + 1) << 1)
}

fn complement(bits: &[u64], flip: bool) -> Vec<u64> {
    let mask = u64::from(flip).wrapping_neg();
    bits.iter().map(|word| word ^ mask).collect()
}

/// Packs bits of words over lanes: `wanted` are (word, bit) pairs, `values(word)` the word's values by lane.
pub(crate) fn pack<'a>(
    wanted: &[circuits::InputBit],
    lanes: usize,
    values: &dyn Fn(u32) -> &'a [u128],
) -> Packed {
    let mut out: Packed = Vec::with_capacity(wanted.len());
    let mut planes: Vec<Block> = Vec::new();
    let mut word = None;
    for input in wanted {
        if word != Some(input.word) {
            word = Some(input.word);
            planes = transpose(values(input.word), lanes);
        }
        let plane = planes.iter().skip(usize::from(input.bit)).step_by(128);
        let words = plane.flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]);
        out.push(words.take(lanes.div_ceil(64)).collect());
    }
    out
}

/// Bit planes of 128-lane tiles: entry `128 t + b` holds bit b of lanes `128 t ..`.
fn transpose(values: &[u128], lanes: usize) -> Vec<Block> {
    let mut planes = vec![Block::ZERO; lanes.div_ceil(128) * 128];
    let mut tile = [Block::ZERO; 128];
    for (values, planes) in values.chunks(128).zip(planes.chunks_exact_mut(128)) {
        tile.fill(Block::ZERO);
        tile.iter_mut().zip(values).for_each(|(t, v)| *t = Block(*v));
        kernels::transpose128(&tile, planes);
    }
    planes
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod timing_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use circuits::InputBit;

    #[test]
    fn packing_takes_the_right_bits() {
        let values: Vec<u128> =
            (0..300u128).map(|i| i.wrapping_mul(0x1234_5678_9abc_def1_2345_6789)).collect();
        let wanted: Vec<InputBit> =
            [0u16, 3, 64, 127].map(|bit| InputBit { owner: None, word: 7, bit }).to_vec();
        let packed = pack(&wanted, 300, &|_| &values);
        for (input, bits) in wanted.iter().zip(&packed) {
            assert_eq!(bits.len(), 5);
            for (lane, value) in values.iter().enumerate() {
                assert_eq!(u128::from(kernels::bit(bits, lane)), value >> input.bit & 1);
            }
        }
    }
}

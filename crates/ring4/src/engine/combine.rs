//! Best rows: lanes of a tree are taken apart into neighbours, merged, and joined by an odd last one that
//! passes.

use crate::RoundQuote;
use crate::bits::BitSlices;
use crate::engine::evaluate::{LayerEvaluator, LayeredCircuit};
use crate::seats::member::Member;
use base::Error;
use circuits::{InputBit, Lit};
use kernels::Block;
use net::Session;
use program::lower::combine::Combine;
use program::lower::{BooleanPlan, Piece};

/// The merges of all best rows, made ready.
pub(crate) struct Merges {
    /// By best row, its number among all trees of the plan.
    trees: Vec<(usize, Combine)>,
    levels: Vec<LayeredCircuit>,
    finish: Option<LayeredCircuit>,
}

impl Merges {
    pub fn new(plan: &BooleanPlan) -> Self {
        let trees: Vec<(usize, Combine)> =
            plan.trees().copied().enumerate().filter(|(_, tree)| tree.terms().is_none()).collect();
        if trees.is_empty() {
            return Self { trees, levels: Vec::new(), finish: None };
        }
        // Sums are no merges here: their roots are left out.
        let only_best = |piece: Piece, width: &dyn Fn(&Combine) -> usize| {
            let mut roots = piece.roots.iter().copied();
            let mut wanted = Vec::new();
            for tree in plan.trees() {
                let bits: Vec<Lit> = roots.by_ref().take(width(tree)).collect();
                if tree.terms().is_none() {
                    wanted.extend(bits);
                }
            }
            LayeredCircuit::of_shares(&piece.circuit, &wanted)
        };
        let level = |level: u32| only_best(plan.merge(level), &|tree| tree.lane_bits(level + 1));
        let levels = (0..plan.levels()).map(level).collect();
        let finish = Some(only_best(plan.finish(), &Combine::word_bits));
        Self { trees, levels, finish }
    }

    /// Best rows without any lanes.
    pub fn none(&self) -> Vec<MergeLanes> {
        self.trees.iter().map(|(_, tree)| MergeLanes::empty(tree.lane_bits(0))).collect()
    }

    /// Best rows of so many lanes: the bits of all of them, one after the other.
    pub fn lanes(
        &self,
        level: u32,
        lanes: usize,
        bits: &mut impl Iterator<Item = BitSlices<3>>,
    ) -> Vec<MergeLanes> {
        let of = |(_, tree): &(usize, Combine)| {
            let bits = bits.by_ref().take(tree.lane_bits(level)).collect();
            MergeLanes { bits, lanes }
        };
        self.trees.iter().map(of).collect()
    }

    /// Merges from one level to another.
    pub fn merge(
        &self,
        evaluator: &mut LayerEvaluator,
        member: &mut Member,
        session: &mut Session,
        mut lanes: Vec<MergeLanes>,
        levels: std::ops::Range<u32>,
    ) -> Result<Vec<MergeLanes>, Error> {
        for level in levels {
            let Some(all) = lanes.first().map(|tree| tree.lanes) else { return Ok(lanes) };
            let mut merged = Vec::new().into_iter();
            if all > 1 {
                let mut held = |input: &InputBit, into: [&mut [Block]; 3]| {
                    let best = self.number(input.word as usize / 2)?;
                    lanes[best].side(input.word % 2, input.bit.into(), into);
                    Ok(())
                };
                let circuit = &self.levels[level as usize];
                merged = evaluator.join(member, session, circuit, all / 2, &[], &mut held)?.into_iter();
            }
            let mut next = self.lanes(level + 1, all / 2, &mut merged);
            for ((next, lanes), (_, tree)) in next.iter_mut().zip(&lanes).zip(&self.trees) {
                if next.bits.is_empty() {
                    *next = MergeLanes::empty(tree.lane_bits(level + 1));
                }
                lanes.pass(tree, level, next);
            }
            lanes = next;
        }
        Ok(lanes)
    }

    /// The words of all best rows from their last lanes, by bit.
    pub fn finish(
        &self,
        evaluator: &mut LayerEvaluator,
        member: &mut Member,
        session: &mut Session,
        lanes: &[MergeLanes],
    ) -> Result<Vec<Vec<BitSlices<3>>>, Error> {
        let Some(circuit) = &self.finish else { return Ok(Vec::new()) };
        let mut held = |input: &InputBit, into: [&mut [Block]; 3]| {
            lanes[self.number(input.word as usize)?].bits[usize::from(input.bit)].read(0, 1, into);
            Ok(())
        };
        let mut bits = evaluator.join(member, session, circuit, 1, &[], &mut held)?.into_iter();
        Ok(self.trees.iter().map(|(_, tree)| bits.by_ref().take(tree.word_bits()).collect()).collect())
    }

    fn number(&self, tree: usize) -> Result<usize, Error> {
        self.trees.iter().position(|(t, _)| *t == tree).ok_or_else(|| Error::misuse("a sum is not merged"))
    }

    /// [`Merges::merge`].
    pub fn quote(&self, quote: &mut RoundQuote, mut lanes: usize, levels: std::ops::Range<u32>) {
        if self.trees.is_empty() {
            return;
        }
        for level in levels {
            self.levels[level as usize].quote_join(quote, lanes / 2);
            lanes = lanes.div_ceil(2);
        }
    }

    /// [`Merges::finish`].
    pub fn quote_finish(&self, quote: &mut RoundQuote) {
        if let Some(circuit) = &self.finish {
            circuit.quote_join(quote, 1);
        }
    }

    /// ANDs over all rows.
    pub fn and_gates(&self, rows: u64) -> u64 {
        let merges = self
            .levels
            .iter()
            .zip(0..)
            .map(|(level, l)| level.and_gates() * (program::lower::combine::lanes(rows, l) / 2));
        merges.sum::<u64>() + self.finish.as_ref().map_or(0, LayeredCircuit::and_gates)
    }
}

/// The lanes of one tree at one level, bit by bit.
pub(crate) struct MergeLanes {
    bits: Vec<BitSlices<3>>,
    lanes: usize,
}

impl MergeLanes {
    fn empty(width: usize) -> Self {
        Self { bits: (0..width).map(|_| BitSlices::default()).collect(), lanes: 0 }
    }

    /// Appends lanes of the same level.
    pub fn append(&mut self, other: Self) {
        if self.lanes == 0 {
            *self = other;
            return;
        }
        self.bits.iter_mut().zip(&other.bits).for_each(|(mine, theirs)| mine.append(theirs));
        self.lanes += other.lanes;
    }

    /// The lanes of one side, 0 the left and 1 the right, of all pairs: a bit of them, into whole blocks.
    fn side(&self, side: u32, bit: usize, into: [&mut [Block]; 3]) {
        let pairs = self.lanes / 2;
        for (part, into) in self.bits[bit].slices().into_iter().zip(into) {
            for (i, block) in into.iter_mut().enumerate() {
                let half = |at: usize| part.get(at).map_or(0, |block| even_bits(block.0 >> side));
                block.0 = u128::from(half(2 * i)) | u128::from(half(2 * i + 1)) << 64;
            }
            if !pairs.is_multiple_of(128) {
                into[pairs / 128].0 &= u128::MAX >> (128 - pairs % 128);
            }
        }
    }

    /// An odd last lane goes to the end of the next level.
    fn pass(&self, tree: &Combine, level: u32, next: &mut Self) {
        if self.lanes.is_multiple_of(2) {
            return;
        }
        // Which bit goes where does not depend on its value: constants stand for this seat's shares.
        let part = |k: usize| {
            let lane: Vec<Lit> =
                self.bits.iter().map(|bits| Lit::constant(bits.bit(k, self.lanes - 1))).collect();
            tree.pass(level, &lane)
        };
        let parts = [part(0), part(1), part(2)];
        for (i, bits) in next.bits.iter_mut().enumerate() {
            bits.push_bit(parts.each_ref().map(|part| part[i] == Lit::TRUE));
        }
        next.lanes += 1;
    }
}

/// The bits at even positions, moved together.
fn even_bits(block: u128) -> u64 {
    let mut x = block & (u128::MAX / 3);
    for (shift, mask) in [(1, 5), (2, 17), (4, 257), (8, 65_537), (16, (1 << 32) + 1)] {
        x = (x | x >> shift) & (u128::MAX / mask);
    }
    (x | x >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_taken_apart() {
        for lanes in [1, 2, 3, 127, 128, 129, 255, 256, 257, 300] {
            let bit = |lane: usize, part: usize| (lane * lane / 3 + part) % 2 == 1;
            let mut packed = BitSlices::<3>::default();
            (0..lanes).for_each(|lane| packed.push_bit([bit(lane, 0), bit(lane, 1), false]));
            let all = MergeLanes { bits: vec![packed], lanes };
            let pairs = lanes / 2;
            for side in [0, 1] {
                let mut half = [0; 3].map(|_| vec![Block(1); pairs.div_ceil(128)]);
                let [a, b, c] = &mut half;
                all.side(side, 0, [a, b, c]);
                for (part, half) in half.iter().enumerate().take(2) {
                    for pair in 0..128 * half.len() {
                        let wanted = pair < pairs && bit(2 * pair + side as usize, part);
                        let got = half[pair / 128].0 >> (pair % 128) & 1 == 1;
                        assert_eq!(got, wanted, "{lanes} lanes, pair {pair}");
                    }
                }
            }
        }
    }
}

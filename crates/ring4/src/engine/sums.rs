//! Sums over rows: columns of bits of equal weight, brought down by full adders over all lanes, without
//! carrying.
//!
//! A full adder makes of three bits of one weight one of that weight and one of the next, by one AND: (a ^
//! c)(b ^ c) ^ c is the carry. All columns of all sums are brought down together, one round per stage, to the
//! heights of Dadda (1965): 2, 3, 4, 6, 9, ...; two numbers are left per sum, and one adder of logarithmic
//! depth. A row of w bits so costs about w ANDs, whatever the number of rows.
//!
//! A total leaves as a sum of four summands modulo 2^width: r_j at random, which every seat but j draws, and
//! the opened total - r. The bits of -r_j are known to the holders of r_j, so they are four more numbers in
//! the columns.

use crate::bits::BitSlices;
use crate::engine::evaluate::{LayerEvaluator, LayeredCircuit, products};
use crate::seats::member::Member;
use crate::{RoundQuote, Seat, SeatParty, VectorRing, elements};
use base::Error;
use circuits::gadgets::{LitWord, add_shallow};
use circuits::{CircuitBuilder, InputBit, Lit};
use kernels::Block;
use net::Session;
use program::lower::SUMMANDS;
use program::lower::combine::SumTerms;

/// Columns stay this high from one chunk of rows to the next: bringing them down further takes rounds, not
/// work.
const REST: usize = 2048;
/// While columns are to stay higher than this, whole blocks are taken from them, which need not be shifted.
const ALIGNED: usize = 1024;
const BLOCK: usize = 128;

/// What happens to one column in a stage.
struct Step {
    sum: usize,
    weight: usize,
    /// Full adders and half adders.
    full: usize,
    half: usize,
    /// Whether there is a next column to carry to.
    carries: bool,
}

/// How high the columns are, by sum and weight: what both a computation and its price go by.
#[derive(Clone)]
pub(crate) struct Heights(Vec<Vec<usize>>);

impl Heights {
    pub fn new(sums: &[SumTerms]) -> Self {
        Self(sums.iter().map(|sum| vec![0; sum.total]).collect())
    }

    /// The terms of so many rows.
    fn add_rows(&mut self, sums: &[SumTerms], rows: usize) {
        for (heights, sum) in self.0.iter_mut().zip(sums) {
            heights.iter_mut().take(sum.width).for_each(|height| *height += rows);
        }
    }

    /// One number of full width for every sum, so many times.
    fn add_numbers(&mut self, count: usize) {
        self.0.iter_mut().flatten().for_each(|height| *height += count);
    }

    fn tallest(&self) -> usize {
        self.0.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Plans a stage: all columns to the next of Dadda's heights below the tallest one, as far as they go.
    fn stage(&mut self) -> Vec<Step> {
        let tallest = self.tallest();
        let target = std::iter::successors(Some(2), |d| Some(d + d / 2)).take_while(|d| *d < tallest).last();
        let target = target.unwrap_or(2);
        let grain = if target >= ALIGNED { BLOCK } else { 1 };
        let mut steps = Vec::new();
        for (sum, heights) in self.0.iter_mut().enumerate() {
            let mut carried = 0;
            let top = heights.len() - 1;
            for (weight, height) in heights.iter_mut().enumerate() {
                let over = (*height + carried).saturating_sub(target);
                let most = *height / 3 / grain * grain;
                // By blocks a single bit too many takes a whole block; else a half adder takes it.
                let wanted = if grain == 1 { over / 2 } else { over.div_ceil(2).next_multiple_of(grain) };
                let full = wanted.min(most);
                let half = usize::from(grain == 1 && over > 2 * full && *height >= 3 * full + 2);
                let carries = weight < top;
                *height = *height + carried - 2 * full - half;
                carried = full + half;
                if carried > 0 {
                    steps.push(Step { sum, weight, full, half, carries });
                }
            }
        }
        steps
    }
}

/// ANDs of a stage.
fn ands(steps: &[Step]) -> usize {
    steps.iter().filter(|s| s.carries).map(|s| s.full + s.half).sum()
}

/// The columns of all sums at one seat.
pub(crate) struct Columns {
    sums: Vec<SumTerms>,
    heights: Heights,
    /// By sum and weight.
    bits: Vec<Vec<BitSlices<3>>>,
}

impl Columns {
    pub fn new(sums: &[SumTerms]) -> Self {
        let column = |sum: &SumTerms| (0..sum.total).map(|_| BitSlices::default()).collect();
        Self { sums: sums.to_vec(), heights: Heights::new(sums), bits: sums.iter().map(column).collect() }
    }

    /// Takes in the terms of so many rows: the bits of all sums' terms, one after the other.
    pub fn absorb(
        &mut self,
        server: &mut SeatParty,
        session: &mut Session,
        rows: usize,
        terms: &mut impl Iterator<Item = BitSlices<3>>,
    ) -> Result<(), Error> {
        let ones: [Block; 3] = complements(server.seat());
        for (columns, sum) in self.bits.iter_mut().zip(&self.sums) {
            for (weight, (column, term)) in columns.iter_mut().zip(terms.by_ref().take(sum.width)).enumerate()
            {
                // A term x in two's complement enters as x + 2^(width - 1), which is not negative.
                let flips = if sum.signed && weight + 1 == sum.width { ones } else { [Block::ZERO; 3] };
                column.push(term.slices(), 0, rows, flips);
            }
        }
        self.heights.add_rows(&self.sums, rows);
        self.lower_to(REST, server, session)
    }

    fn lower_to(&mut self, rest: usize, server: &mut SeatParty, session: &mut Session) -> Result<(), Error> {
        while self.heights.tallest() > rest {
            let steps = self.heights.stage();
            self.run(&steps, server, session)?;
        }
        Ok(())
    }

    /// Runs a stage.
    fn run(&mut self, steps: &[Step], server: &mut SeatParty, session: &mut Session) -> Result<(), Error> {
        let all = ands(steps);
        let [mut x, mut y] = [BitSlices::with_capacity(all), BitSlices::with_capacity(all)];
        let mut kept = Vec::new();
        for step in steps {
            let column = &mut self.bits[step.sum][step.weight];
            let [mut a, mut b, c] = [0; 3].map(|_| column.take_last(step.full));
            let [mut d, e] = [0; 2].map(|_| column.take_last(step.half));
            if step.carries {
                x.append(&xored(&a, &c));
                x.append(&d);
                y.append(&xored(&b, &c));
                y.append(&e);
            }
            b.xor(&c);
            a.xor(&b);
            d.xor(&e);
            column.append(&a);
            column.append(&d);
            kept.push(c);
        }
        if all == 0 {
            return Ok(());
        }
        let z = products(server, session, x, y)?;
        let mut at = 0;
        for (step, c) in steps.iter().zip(kept).filter(|(step, _)| step.carries) {
            let mut carries = z.cut(at, step.full);
            carries.xor(&c);
            let next = &mut self.bits[step.sum][step.weight + 1];
            next.append(&carries);
            next.push(z.slices(), at + step.full, step.half, [Block::ZERO; 3]);
            at += step.full + step.half;
        }
        Ok(())
    }

    /// The summands of all totals over so many rows, by sum and part of this seat.
    pub fn finish(
        mut self,
        evaluator: &mut LayerEvaluator,
        member: &mut Member,
        session: &mut Session,
        rows: u64,
    ) -> Result<Vec<[u128; 3]>, Error> {
        let Some(server) = member.server() else { return Ok(Vec::new()) };
        if self.sums.is_empty() {
            return Ok(Vec::new());
        }
        let seat = server.seat();
        let random = server.random(VectorRing::Z128, self.sums.len());
        let mask: Vec<[u128; 3]> =
            (0..self.sums.len()).map(|s| random.parts().map(|part| part[s].0)).collect();
        self.subtract(seat, &mask);
        self.lower_to(2, server, session)?;
        let adder = adder(&self.heights);
        let columns = &self.bits;
        let mut held = |input: &InputBit, into: [&mut [Block]; 3]| {
            let (sum, number) = (input.word as usize / 2, input.word as usize % 2);
            columns[sum][usize::from(input.bit)].read(number, 1, into);
            Ok(())
        };
        let bits = evaluator.join(member, session, &adder, 1, &[], &mut held)?;
        let mut all = BitSlices::with_capacity(bits.len());
        bits.iter().for_each(|bit| all.append(bit));
        let count = all.len();
        let server = member.server().ok_or_else(|| Error::misuse("a seat has a server"))?;
        let opened = server.open(session, &all.into_shares())?;
        let mut opened = elements(VectorRing::Z2, count, &opened).into_iter();
        let total = |(sum, mut parts): (&SumTerms, [u128; 3])| {
            let masked = opened.by_ref().take(sum.total).enumerate().fold(0, |v, (i, bit)| v | bit << i);
            if let Some(part) = seat.part_of(Seat::ALL[0]) {
                parts[part] = parts[part].wrapping_add(masked).wrapping_sub(offset(sum, rows));
            }
            parts.map(|part| part & (u128::MAX >> (128 - sum.total)))
        };
        Ok(self.sums.iter().zip(mask).map(total).collect())
    }

    /// Four more numbers in the columns of every sum: minus the summands of its mask.
    fn subtract(&mut self, seat: Seat, mask: &[[u128; 3]]) {
        for (columns, parts) in self.bits.iter_mut().zip(mask) {
            let minus = parts.map(u128::wrapping_neg);
            for (weight, column) in columns.iter_mut().enumerate() {
                for j in 0..usize::from(SUMMANDS) {
                    // Everybody but seat j knows the number: as summand j of its bits.
                    let bit = |k: usize| seat.summand(k).index() == j && minus[k] >> weight & 1 == 1;
                    column.push_bit([bit(0), bit(1), bit(2)]);
                }
            }
        }
        self.heights.add_numbers(SUMMANDS.into());
    }
}

/// What complements a shared bit at a seat: summand 0 does.
fn complements(seat: Seat) -> [Block; 3] {
    [0, 1, 2].map(|k| Block(if seat.summand(k) == Seat::ALL[0] { u128::MAX } else { 0 }))
}

fn xored(a: &BitSlices<3>, b: &BitSlices<3>) -> BitSlices<3> {
    let mut sum = a.clone();
    sum.xor(b);
    sum
}

/// What terms entered as too much, over so many rows.
fn offset(sum: &SumTerms, rows: u64) -> u128 {
    if sum.signed { u128::from(rows) << (sum.width - 1) } else { 0 }
}

/// Adds the two numbers that are left of every sum. Inputs: word 2s and 2s + 1 are those of sum s.
fn adder(heights: &Heights) -> LayeredCircuit {
    let mut g = CircuitBuilder::default();
    let mut roots = LitWord::new();
    for (sum, heights) in heights.0.iter().enumerate() {
        let mut number = |which: usize| -> LitWord {
            let bit = |(bit, height): (usize, &usize)| {
                let input = InputBit { owner: None, word: (2 * sum + which) as u32, bit: bit as u16 };
                if *height > which { g.input(input) } else { Lit::FALSE }
            };
            heights.iter().enumerate().map(bit).collect()
        };
        let [a, b] = [0, 1].map(&mut number);
        roots.extend(add_shallow(&mut g, &a, &b, Lit::FALSE));
    }
    LayeredCircuit::of_shares(&g.finish(), &roots)
}

/// Goes through the motions of [`Columns`].
pub(crate) struct Motions {
    sums: Vec<SumTerms>,
    heights: Heights,
}

impl Motions {
    pub fn new(sums: &[SumTerms]) -> Self {
        Self { sums: sums.to_vec(), heights: Heights::new(sums) }
    }

    /// [`Columns::absorb`].
    pub fn absorb(&mut self, quote: &mut RoundQuote, rows: usize) {
        self.heights.add_rows(&self.sums, rows);
        self.lower_to(REST, quote);
    }

    fn lower_to(&mut self, rest: usize, quote: &mut RoundQuote) {
        while self.heights.tallest() > rest {
            let all = ands(&self.heights.stage());
            if all > 0 {
                quote.multiply(VectorRing::Z2, all);
            }
        }
    }

    /// [`Columns::finish`].
    pub fn finish(mut self, quote: &mut RoundQuote) {
        if self.sums.is_empty() {
            return;
        }
        self.heights.add_numbers(SUMMANDS.into());
        self.lower_to(2, quote);
        adder(&self.heights).quote_join(quote, 1);
        quote.open(VectorRing::Z2, self.sums.iter().map(|sum| sum.total).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the number of rows, every stage lowers something: columns that are one bit too tall as well.
    #[test]
    fn every_stage_makes_progress() {
        let near = std::iter::successors(Some(2usize), |d| Some(d + d / 2)).take_while(|d| *d < 2_000_000);
        let near = near.flat_map(|d| d.saturating_sub(2)..d + 3);
        for rows in near.chain([100_000, 131_072, 1_000_000]) {
            for (width, total) in [(1, 24), (7, 30), (20, 20)] {
                let mut heights = Heights(vec![vec![0; total]; 2]);
                heights.0.iter_mut().for_each(|sum| sum[..width].fill(rows));
                let mut stages = 0;
                while heights.tallest() > 2 {
                    let before = heights.0.clone();
                    assert!(
                        !heights.stage().is_empty() && heights.0 != before,
                        "{rows} rows: nothing is lowered"
                    );
                    stages += 1;
                    assert!(stages < 500, "{rows} rows: no end of stages");
                }
            }
        }
    }

    /// Every stage keeps the weight of all bits and ends; a sum of n rows of w bits costs little more than n
    /// w ANDs.
    #[test]
    fn stages_end_and_cost_an_and_per_bit() {
        for (width, total, rows, signed) in
            [(1, 40, 1 << 16, false), (8, 40, 70_001, true), (16, 20, 3, false), (6, 6, 5000, false)]
        {
            let sums = [SumTerms { width, total, signed }];
            let mut heights = Heights::new(&sums);
            heights.add_rows(&sums, rows);
            heights.add_numbers(4);
            let (mut all, mut stages) = (0, 0);
            while heights.tallest() > 2 {
                all += ands(&heights.stage());
                stages += 1;
            }
            assert!(all <= rows * width + 8 * total, "{all} ANDs for {rows} rows of {width} bits");
            assert!(stages <= 45, "{stages} stages");
        }
    }
}

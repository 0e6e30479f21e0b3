//! `binfclayer`: a fully connected layer of a binary neural network: per row of n weights (the garbler's)
//! XNOR with n activations (the evaluator's), count, and 1 where the count is at least n / 2. The matrix is
//! read once.
//!
//! A row is cut into [`PARTS`] stretches of neighbouring bits; a lane counts one stretch of one row.

use crate::task::{Task, Wires, bits, enter, mix};
use base::Error;
use osprey::Memory;
use yao::wires::{Items, Role, WireArray, WireLanes, WireParty};

/// Stretches of a row.
const PARTS: usize = 64;
/// Rows at once: with the stretches, the lanes of a call.
const ROWS: usize = 8;
/// Bits of a stretch that are counted at once.
const COUNTED: usize = 32;

pub struct Binfclayer<M: Memory> {
    weights: Wires<M>,
    activations: Wires<M>,
    result: Wires<M>,
    size: usize,
}

/// 64 bits of weights or activations.
fn word(owner: Role, index: usize) -> u64 {
    mix(2 * index as u64 + u64::from(owner == Role::Evaluator))
}

impl<M: Memory> Binfclayer<M> {
    pub fn new(memory: &M, size: usize) -> Self {
        let weights = WireArray::new(memory, size * PARTS, size / PARTS);
        let activations = WireArray::new(memory, PARTS, size / PARTS);
        Self { weights, activations, result: WireArray::new(memory, size, 1), size }
    }

    /// Equal bits of every stretch of some rows.
    fn count(&self, p: &mut WireParty<'_>, row: usize) -> Result<WireLanes, Error> {
        let weights = Items::range(row * PARTS..(row + ROWS) * PARTS);
        let activations = Items::grid(0, PARTS, 0, ROWS * PARTS);
        let mut total = p.number(0, 1, ROWS * PARTS);
        let stretch = self.size / PARTS;
        for from in (0..stretch).step_by(COUNTED) {
            let bits = from..stretch.min(from + COUNTED);
            let weights = p.load(&self.weights, bits.clone(), weights);
            let activations = p.load(&self.activations, bits, activations);
            let differ = p.xor_lanes(&weights, &activations);
            let equal = p.not_lanes(&differ);
            let counted = p.popcount(&equal)?;
            total = match from {
                0 => counted,
                _ => p.add_wide(&total, &counted, None)?,
            };
        }
        Ok(total)
    }
}

impl<M: Memory> Task<M> for Binfclayer<M> {
    fn bytes(&self) -> usize {
        self.weights.bytes() + self.activations.bytes() + self.result.bytes()
    }

    fn input(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        let (size, words) = (self.size, self.size / 64);
        let some = |owner, from: usize| move || (from..from + words).map(|at| word(owner, at)).collect();
        for (row, wires) in self.weights.wires_mut().chunks_mut(size).enumerate() {
            enter(p, Role::Garbler, some(Role::Garbler, row * words), wires)?;
        }
        enter(p, Role::Evaluator, some(Role::Evaluator, 0), self.activations.wires_mut())
    }

    fn compute(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        for row in (0..self.size).step_by(ROWS) {
            let counts = self.count(p, row)?;
            let total = p.sum_groups(counts, PARTS, true)?;
            let half = p.number(self.size.div_ceil(2) as u64, total.width(), ROWS);
            let less = p.less_than(&total, &half)?;
            let active = p.not_lanes(&less);
            p.store(&active, &mut self.result, 0, Items::range(row..row + ROWS));
        }
        Ok(())
    }

    fn results(&self) -> &Wires<M> {
        &self.result
    }

    fn check(&self, results: &[u64]) -> bool {
        let words = self.size / 64;
        let same =
            |row: usize, at: usize| !(word(Role::Garbler, row * words + at) ^ word(Role::Evaluator, at));
        let count = |row: usize| (0..words).map(|at| same(row, at).count_ones() as usize).sum::<usize>();
        (0..self.size).all(|row| (bits(results, row, 1) == 1) == (2 * count(row) >= self.size))
    }
}

//! `mvmul`: a matrix of 8-bit numbers times a vector of them, products of 16 bits, sums modulo 2^16. The
//! matrix is the garbler's and is read once; the vector is the evaluator's and is hot.

use crate::task::{Task, Wires, bits, enter, mix};
use base::Error;
use osprey::Memory;
use yao::wires::{Items, Role, WireArray, WireLanes, WireParty};

const BITS: usize = 8;
/// Rows at once.
const ROWS: usize = 8;
/// Columns at once: with the rows, the lanes of a call.
const COLUMNS: usize = 64;

pub struct Mvmul<M: Memory> {
    matrix: Wires<M>,
    vector: Wires<M>,
    result: Wires<M>,
    size: usize,
}

fn entry(owner: Role, index: usize) -> u8 {
    mix(2 * index as u64 + u64::from(owner == Role::Evaluator)) as u8
}

/// Eight entries a word.
fn pack(owner: Role, from: usize, count: usize) -> Vec<u64> {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| entry(owner, at + i)));
    (from..from + count).step_by(8).map(word).collect()
}

impl<M: Memory> Mvmul<M> {
    pub fn new(memory: &M, size: usize) -> Self {
        let matrix = WireArray::new(memory, size * size, BITS);
        let (vector, result) = (WireArray::new(memory, size, BITS), WireArray::new(memory, size, 2 * BITS));
        Self { matrix, vector, result, size }
    }
}

impl<M: Memory> Task<M> for Mvmul<M> {
    fn bytes(&self) -> usize {
        self.matrix.bytes() + self.vector.bytes() + self.result.bytes()
    }

    fn input(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        let size = self.size;
        for (row, wires) in self.matrix.wires_mut().chunks_mut(size * BITS).enumerate() {
            enter(p, Role::Garbler, || pack(Role::Garbler, row * size, size), wires)?;
        }
        enter(p, Role::Evaluator, || pack(Role::Evaluator, 0, size), self.vector.wires_mut())
    }

    fn compute(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        for row in (0..self.size).step_by(ROWS) {
            let mut sum: Option<WireLanes> = None;
            for column in (0..self.size).step_by(COLUMNS) {
                let entries = Items::grid(row * self.size + column, COLUMNS, self.size, ROWS * COLUMNS);
                let x = p.load(&self.matrix, 0..BITS, entries);
                // Every row takes the same part of the vector.
                let y = p.load(&self.vector, 0..BITS, Items::grid(column, COLUMNS, 0, ROWS * COLUMNS));
                let product = p.multiply(&x, &y)?;
                sum = Some(match sum {
                    Some(sum) => p.add(&sum, &product)?,
                    None => product,
                });
            }
            let Some(sum) = sum else { continue };
            let total = p.sum_groups(sum, COLUMNS, false)?;
            p.store(&total, &mut self.result, 0, Items::range(row..row + ROWS));
        }
        Ok(())
    }

    fn results(&self) -> &Wires<M> {
        &self.result
    }

    fn check(&self, results: &[u64]) -> bool {
        let size = self.size;
        let product = |row: usize, column: usize| {
            u16::from(entry(Role::Garbler, row * size + column)) * u16::from(entry(Role::Evaluator, column))
        };
        let sum = |row: usize| (0..size).fold(0u16, |sum, column| sum.wrapping_add(product(row, column)));
        (0..size).all(|row| bits(results, row * 2 * BITS, 2 * BITS) == u64::from(sum(row)))
    }
}

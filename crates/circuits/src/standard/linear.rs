//! Linear maps over GF(2) with few XORs.

use crate::{CircuitBuilder, Lit};

/// A linear map of at most eight bits, as a list of sums that shares what it can.
pub(super) struct LinearMap {
    /// Pairs of earlier variables (inputs first, then sums) whose sum is the next variable.
    sums: Vec<(usize, usize)>,
    /// The variables that each output is the sum of, as bits.
    rows: Vec<u64>,
}

impl LinearMap {
    /// The map with these columns (the images of the unit vectors). While a pair of variables stands together
    /// in two or more outputs, the most frequent one becomes a variable of its own (Paar 1997).
    pub fn new(columns: &[u8; 8]) -> Self {
        let row = |out: usize| (0..8).fold(0, |r, i| r | u64::from(columns[i] >> out & 1) << i);
        let mut rows: Vec<u64> = (0..8).map(row).collect();
        let (mut sums, mut variables) = (Vec::new(), 8);
        loop {
            let pairs = (0..variables).flat_map(|a| (a + 1..variables).map(move |b| (a, b)));
            let together =
                |&(a, b): &(usize, usize)| rows.iter().filter(|r| *r >> a & *r >> b & 1 == 1).count();
            let Some(best) = pairs.max_by_key(together).filter(|pair| together(pair) > 1) else { break };
            let both = 1 << best.0 | 1 << best.1;
            for row in rows.iter_mut().filter(|row| **row & both == both) {
                *row = *row & !both | 1 << variables;
            }
            sums.push(best);
            variables += 1;
        }
        Self { sums, rows }
    }

    /// The image of eight bits.
    pub fn apply(&self, g: &mut CircuitBuilder, x: &[Lit]) -> Vec<Lit> {
        let mut variables = x.to_vec();
        for (a, b) in &self.sums {
            variables.push(g.xor(variables[*a], variables[*b]));
        }
        let mut sum = |row: &u64| {
            let terms = variables.iter().enumerate().filter(|(i, _)| row >> i & 1 == 1);
            terms.fold(Lit::FALSE, |sum, (_, v)| g.xor(sum, *v))
        };
        self.rows.iter().map(&mut sum).collect()
    }
}

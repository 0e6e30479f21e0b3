//! How many rows of a 10-local code lie within few entries of its secret, and what that does for an attacker
//! on LPN.
//!
//! Whoever finds a set of s entries that contains s rows needs s rows without noise to solve for them, not k.
//! The sets are found by dropping some entries at random (for a fresh set at each try) and then, again and
//! again, the entry with the fewest rows. Noise plays no part in that, so a try succeeds with probability
//! (1 - rows / n)^t. Solving takes about 20 s^2 bit operations, since rows are sparse (Wiedemann), or s^2.8
//! with elimination as estimators count it.
//!
//! `cargo run --release -p ot --example subsystems`; `[k n t]` for another set.

use kernels::LOCALITY;
use ot::ferret::{LARGE, SMALL};

/// Entries dropped at random before the others are looked at.
const DROPPED: f64 = 0.1;

/// A code over `k` entries, and what is left of it.
struct Code {
    rows: Vec<[u32; LOCALITY]>,
    /// Rows of each entry.
    uses: Vec<Vec<u32>>,
    row_left: Vec<bool>,
    entry_left: Vec<bool>,
    degrees: Vec<usize>,
}

impl Code {
    fn random(k: usize, n: usize) -> Self {
        let mut rng = base::Seed::from_bytes([1; 32]).into_rng();
        let mut entry = || rng.below(k as u64) as u32;
        let rows: Vec<[u32; LOCALITY]> = (0..n).map(|_| std::array::from_fn(|_| entry())).collect();
        let mut uses = vec![Vec::new(); k];
        for (row, entries) in (0..).zip(&rows) {
            entries.iter().for_each(|e| uses[*e as usize].push(row));
        }
        let degrees = uses.iter().map(Vec::len).collect();
        Self { rows, uses, row_left: vec![true; n], entry_left: vec![true; k], degrees }
    }

    /// Drops an entry with its rows, and says which other entries lose a row.
    fn drop(&mut self, entry: usize, mut loses: impl FnMut(usize, usize)) -> usize {
        self.entry_left[entry] = false;
        let mut gone = 0;
        for row in std::mem::take(&mut self.uses[entry]) {
            if !std::mem::take(&mut self.row_left[row as usize]) {
                continue;
            }
            gone += 1;
            for other in self.rows[row as usize].map(|e| e as usize) {
                self.degrees[other] -= 1;
                if self.entry_left[other] {
                    loses(other, self.degrees[other]);
                }
            }
        }
        gone
    }

    /// Entries and rows of a set with a hundredth more rows than entries.
    fn peel(&mut self) -> (usize, usize) {
        let (mut entries, mut rows) = (self.entry_left.len(), self.rows.len());
        for entry in 0..(DROPPED * entries as f64) as usize {
            rows -= self.drop(entry, |_, _| ());
            entries -= 1;
        }
        let most = self.degrees.iter().max().copied().unwrap_or(0);
        let mut by_degree = vec![Vec::new(); most + 1];
        for entry in (0..self.degrees.len()).filter(|e| self.entry_left[*e]) {
            by_degree[self.degrees[entry]].push(entry);
        }
        let mut degree = 0;
        while 100 * rows > 101 * entries {
            let Some(entry) = by_degree[degree].pop() else {
                degree += 1;
                continue;
            };
            if self.entry_left[entry] && self.degrees[entry] == degree {
                let mut lowest = degree;
                rows -= self.drop(entry, |other, now| {
                    by_degree[now].push(other);
                    lowest = lowest.min(now);
                });
                degree = lowest;
                entries -= 1;
            }
        }
        (entries, rows)
    }
}

fn report(k: usize, n: usize, t: usize) {
    let (s, rows) = Code::random(k, n).peel();
    let tries = -(t as f64) * (1.0 - rows as f64 / n as f64).log2();
    let (size, sparse) = ((s as f64).log2(), (20.0f64).log2());
    println!(
        "k {k}, n {n}, t {t}: {rows} rows within {s} entries; log2 of tries {tries:.1}, of all bit \
         operations {:.1}, of s^2.8 per try {:.1}",
        tries + sparse + 2.0 * size,
        tries + 2.8 * size
    );
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    if let [k, n, t] = given[..] {
        return report(k, n, t);
    }
    for set in [SMALL, LARGE] {
        report(set.k(), set.trees << set.depth, set.trees);
    }
}

//! Bins: where rows of the receiver lie (cuckoo hashing, one row per bin); those of the sender lie in all of
//! their bins (simple hashing).
//!
//! Three hash functions, each into a third of the bins of its own, so the three bins of a row differ. With
//! `1.32 n + 1024` bins `n` rows fit, except with probability 2^-40: they do not only if some k bins are all
//! that some k + 1 rows have. The expected number of such sets in which every bin has two rows or more bounds
//! it; a test computes it. There is no stash. Should rows not fit, the hash functions are drawn again: the
//! sender learns that, which is 2^-40 of a bit.

use super::key_cipher;
use kernels::{Aes128, Block};
use std::ops::Range;

/// Hash functions.
pub const FUNCTIONS: usize = 3;
/// Bins of a piece, about.
const PIECE_BINS: u64 = 1 << 14;
/// Entries of the sender in a piece, about.
const PIECE_ENTRIES: u64 = 1 << 16;
/// -log2 of the probability that a piece gets more entries than [`CuckooBins::most`], all pieces together.
const SECURITY: f64 = 41.0;

/// The bins of a run and the pieces in which they are worked off. It follows from the sizes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooBins {
    third: u64,
    pieces: u64,
    rows: [u64; 2],
}

impl CuckooBins {
    /// For so many rows of the receiver and of the sender.
    #[must_use]
    pub fn new(rows: [u64; 2]) -> Self {
        let third = (rows[0] * 33 / 25 + 1024).div_ceil(3);
        let pieces = (3 * third).div_ceil(PIECE_BINS).max((3 * rows[1]).div_ceil(PIECE_ENTRIES));
        Self { third, pieces: pieces.min(third), rows }
    }

    /// All bins.
    #[must_use]
    pub fn all(&self) -> u64 {
        3 * self.third
    }

    /// How many pieces there are.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// The bins of a piece within each third.
    #[must_use]
    pub fn range(&self, piece: u64) -> Range<u64> {
        let start = |piece: u64| {
            (u128::from(piece) * u128::from(self.third)).div_ceil(u128::from(self.pieces)) as u64
        };
        start(piece)..start(piece + 1)
    }

    /// Bins of the largest piece.
    #[must_use]
    pub fn piece_bins(&self) -> u64 {
        3 * self.third.div_ceil(self.pieces)
    }

    /// Entries of the sender that the largest piece has on average.
    #[must_use]
    pub fn usual(&self) -> u64 {
        let per_third = u128::from(self.rows[1]) * u128::from(self.third.div_ceil(self.pieces));
        3 * per_third.div_ceil(u128::from(self.third)) as u64
    }

    /// Entries of the sender that no piece exceeds, but with probability 2^-41: Bernstein's inequality for
    /// three independent choices of a bin per row.
    #[must_use]
    pub fn most(&self) -> u64 {
        let (mean, tail) =
            (self.usual() as f64, (SECURITY + (self.pieces as f64).log2()) * std::f64::consts::LN_2);
        let beyond = tail / 3.0 + (tail * tail / 9.0 + 2.0 * tail * mean).sqrt();
        ((mean + beyond).ceil() as u64).min(FUNCTIONS as u64 * self.rows[1])
    }

    /// The number of bin `place` of a function's third.
    #[must_use]
    pub fn bin(&self, function: usize, place: u32) -> usize {
        function * self.third as usize + place as usize
    }

    /// The piece of bin `place` of a third.
    #[must_use]
    pub fn piece(&self, place: u32) -> usize {
        (u128::from(place) * u128::from(self.pieces) / u128::from(self.third)) as usize
    }

    /// What places keys in this attempt.
    #[must_use]
    pub fn hash(seed: &[u8; 32], attempt: u8) -> Aes128 {
        key_cipher(seed, "bins", u64::from(attempt))
    }

    /// Appends the bins of keys, one within each third.
    pub fn places(&self, hash: &Aes128, keys: &[Block], out: &mut Vec<[u32; FUNCTIONS]>) {
        let mut hashed = keys.to_vec();
        hash.encrypt(&mut hashed);
        out.extend(hashed.iter().map(|h| {
            // 42 bits each: uniform but for third / 2^42.
            std::array::from_fn(|i| {
                let digit = (h.0 >> (42 * i)) as u64 & ((1 << 42) - 1);
                ((u128::from(digit) * u128::from(self.third)) >> 42) as u32
            })
        }));
    }

    /// One bin per key: which key lies in each bin, [`EMPTY`] where none does; `None` when they do not fit.
    ///
    /// Local search allocation (Khosla, ESA 2013): every bin has a label, at most the number of moves that it
    /// takes from there to a free bin. A key goes to its bin of the least label, and whoever lay there moves
    /// on.
    pub fn place(&self, places: &[[u32; FUNCTIONS]]) -> Option<Vec<u32>> {
        let bins = self.all() as usize;
        let (mut held, mut labels) = (vec![EMPTY; bins], vec![0u32; bins]);
        for first in 0..places.len() as u32 {
            let mut key = first;
            while key != EMPTY {
                let of_key = places[key as usize];
                let bins: [usize; FUNCTIONS] = std::array::from_fn(|i| self.bin(i, of_key[i]));
                let mut by_label = bins.map(|bin| (labels[bin], bin));
                by_label.sort_unstable();
                let [(least, bin), (second, _), _] = by_label;
                // A free bin is at most as many moves away as there are keys.
                if u64::from(least) > self.rows[0] {
                    return None;
                }
                labels[bin] = second + 1;
                key = std::mem::replace(&mut held[bin], key);
            }
        }
        Some(held)
    }
}

/// No key, in [`CuckooBins::place`].
pub const EMPTY: u32 = u32::MAX;

#[cfg(test)]
#[path = "cuckoo_tests.rs"]
mod tests;

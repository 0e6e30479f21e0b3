//! Lanes of a tree: neighbours are taken apart, merged, and joined by an odd last one that passes.
//!
//! Works on exclusive-or shares, lanes packed in words; nothing is sent here.

use crate::bits::{BitRun, words};
use circuits::Lit;
use program::lower::combine::Combine;
use zeroize::Zeroize;

/// The lanes of one tree at one level, bit by bit.
pub(crate) struct TreeLanes {
    /// `[bit of the lane][lane / 64]`; bits beyond the last lane are clear.
    bits: Vec<Vec<u64>>,
    lanes: usize,
}

impl TreeLanes {
    pub fn new(bits: Vec<Vec<u64>>, lanes: usize) -> Self {
        debug_assert!(bits.iter().all(|b| b.len() == words(lanes)));
        Self { bits, lanes }
    }

    /// The lanes of one side, 0 the left and 1 the right, of all pairs: a bit of them, into whole words.
    pub fn side(&self, side: u32, bit: usize, into: &mut [u64]) {
        let pairs = self.lanes / 2;
        for (i, half) in into.iter_mut().enumerate() {
            let word = |at: usize| self.bits[bit].get(at).map_or(0, |w| even_bits(w >> side));
            *half = word(2 * i) | word(2 * i + 1) << 32;
        }
        if !pairs.is_multiple_of(64) && pairs > 0 {
            into[pairs / 64] &= u64::MAX >> (64 - pairs % 64);
        }
    }

    /// A bit of the only lane.
    pub fn only(&self, bit: usize) -> u64 {
        debug_assert_eq!(self.lanes, 1, "merged down to one lane");
        self.bits[bit][0]
    }

    /// The next level: the merged pairs, and after them an odd last lane of this one.
    pub fn next(&self, combine: &Combine, level: u32, merged: Vec<Vec<u64>>) -> Self {
        let pairs = self.lanes / 2;
        if self.lanes.is_multiple_of(2) {
            return Self::new(merged, pairs);
        }
        let last = self.lanes - 1;
        // Which bit goes where does not depend on its value: constants stand for this party's shares.
        let lane: Vec<Lit> =
            self.bits.iter().map(|b| Lit::constant(b[last / 64] >> (last % 64) & 1 == 1)).collect();
        let passed = combine.pass(level, &lane);
        let join = |(merged, bit): (Vec<u64>, &Lit)| {
            let mut joined = BitRun::default();
            joined.push(&merged, pairs, 0);
            joined.push_bit(u64::from(*bit == Lit::TRUE));
            joined.words().to_vec()
        };
        Self::new(merged.into_iter().zip(&passed).map(join).collect(), pairs + 1)
    }
}

impl Drop for TreeLanes {
    fn drop(&mut self) {
        self.bits.zeroize();
    }
}

/// The bits at even positions, moved together.
fn even_bits(word: u64) -> u64 {
    let mut x = word & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        x = (x | x >> shift) & mask;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_taken_apart() {
        for lanes in [1, 2, 3, 63, 64, 65, 127, 128, 129, 200] {
            let bit = |lane: usize| (lane * lane / 3) % 2 == 1;
            let mut packed = BitRun::default();
            (0..lanes).for_each(|lane| packed.push_bit(u64::from(bit(lane))));
            let all = TreeLanes::new(vec![packed.words().to_vec()], lanes);
            for side in [0, 1] {
                let pairs = lanes / 2;
                let mut half = vec![0; words(pairs)];
                all.side(side, 0, &mut half);
                for pair in 0..64 * half.len() {
                    let wanted = pair < pairs && bit(2 * pair + side as usize);
                    assert_eq!(half[pair / 64] >> (pair % 64) & 1 == 1, wanted, "{lanes} lanes, pair {pair}");
                }
            }
        }
    }
}

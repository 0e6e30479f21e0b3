//! Packed bits in blocks, in several parts side by side: append, cut and read at any position.
//!
//! One part is a value in the clear, three are a seat's shares.

use crate::vectors::spare::{give_back, room};
use crate::{SharedVector, VectorRing};
use kernels::Block;

/// Bits of a block.
pub(crate) const LANES: usize = 128;

/// Blocks for so many bits.
pub(crate) fn blocks(bits: usize) -> usize {
    bits.div_ceil(LANES)
}

/// The bits of the last block of `bits` bits that are in use; all ones when it is full.
fn tail_mask(bits: usize) -> u128 {
    u128::MAX >> (blocks(bits) * LANES - bits)
}

/// Wipes blocks, at the speed of memory: the barrier keeps the compiler from leaving it out.
pub(crate) fn wipe(blocks: &mut [Block]) {
    blocks.fill(Block::ZERO);
    zeroize::optimization_barrier(blocks);
}

/// A run of bits. Bits of the last block beyond the length are clear. Wiped on drop.
#[derive(Clone)]
pub(crate) struct BitSlices<const N: usize> {
    parts: [Vec<Block>; N],
    len: usize,
}

impl<const N: usize> Default for BitSlices<N> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Vec::new()), len: 0 }
    }
}

impl<const N: usize> Drop for BitSlices<N> {
    fn drop(&mut self) {
        self.parts.iter_mut().for_each(|part| give_back(std::mem::take(part)));
    }
}

impl<const N: usize> BitSlices<N> {
    /// Room for `bits` bits.
    pub fn with_capacity(bits: usize) -> Self {
        Self { parts: std::array::from_fn(|_| room(blocks(bits))), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn part(&self, k: usize) -> &[Block] {
        &self.parts[k]
    }

    /// Bit `at` of a part.
    pub fn bit(&self, k: usize, at: usize) -> bool {
        self.parts[k][at / LANES].0 >> (at % LANES) & 1 == 1
    }

    /// Appends bits `at .. at + n` of `from`, each part XORed with its block of `flips` (zeros or ones).
    pub fn push(&mut self, from: [&[Block]; N], at: usize, n: usize, flips: [Block; N]) {
        for ((part, from), flip) in self.parts.iter_mut().zip(from).zip(flips) {
            append(part, self.len, from, (at, n), flip);
        }
        self.len += n;
    }

    /// Appends all bits of `other`.
    pub fn append(&mut self, other: &Self) {
        self.push(other.slices(), 0, other.len, [Block::ZERO; N]);
    }

    /// Appends one bit per part.
    pub fn push_bit(&mut self, bits: [bool; N]) {
        let bits = bits.map(|bit| [Block(u128::from(bit))]);
        self.push(bits.each_ref().map(|bit| bit.as_slice()), 0, 1, [Block::ZERO; N]);
    }

    /// All parts.
    pub fn slices(&self) -> [&[Block]; N] {
        self.parts.each_ref().map(Vec::as_slice)
    }

    /// Copies bits `at .. at + n`.
    pub fn cut(&self, at: usize, n: usize) -> Self {
        let mut cut = Self::with_capacity(n);
        cut.push(self.slices(), at, n, [Block::ZERO; N]);
        cut
    }

    /// Takes the last `n` bits away.
    pub fn take_last(&mut self, n: usize) -> Self {
        let left = self.len - n;
        let taken = self.cut(left, n);
        for part in &mut self.parts {
            wipe(&mut part[blocks(left)..]);
            part.truncate(blocks(left));
            if let Some(last) = part.last_mut() {
                last.0 &= tail_mask(left);
            }
        }
        self.len = left;
        taken
    }

    /// XORs bits of the same length.
    pub fn xor(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len, "as many bits");
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a ^= *b);
        }
    }

    /// Copies bits `at .. at + n` to the front of whole blocks; the rest of the last one is clear.
    pub fn read(&self, at: usize, n: usize, into: [&mut [Block]; N]) {
        for (part, into) in self.parts.iter().zip(into) {
            let word = words(part, at, n, Block::ZERO);
            into.iter_mut().enumerate().for_each(|(i, block)| *block = word(i));
        }
    }
}

impl BitSlices<3> {
    /// What shares of bits hold.
    pub fn of(shares: SharedVector) -> Self {
        debug_assert_eq!(shares.ring(), VectorRing::Z2, "shares of bits");
        let (len, mut parts) = (shares.len(), shares.into_parts());
        // What fills the last block up is shares of anything.
        parts.iter_mut().filter_map(|part| part.last_mut()).for_each(|last| last.0 &= tail_mask(len));
        Self { parts, len }
    }

    /// The bits as shares.
    pub fn into_shares(mut self) -> SharedVector {
        SharedVector::from_parts(VectorRing::Z2, self.len, std::mem::take(&mut self.parts))
    }
}

/// Block i of the bits `at .. at + n`, at least one, each XORed with `flip`; beyond the last bit clear.
fn words(from: &[Block], at: usize, n: usize, flip: Block) -> impl Fn(usize) -> Block + '_ {
    let (first, shift, last) = (at / LANES, at % LANES, blocks(n) - usize::from(n > 0));
    move |i| {
        let low = from[first + i].0 >> shift;
        let high = if shift == 0 { 0 } else { from.get(first + i + 1).map_or(0, |b| b.0 << (LANES - shift)) };
        Block(((low | high) ^ flip.0) & if i == last { tail_mask(n) } else { u128::MAX })
    }
}

/// Appends bits `at .. at + n` of `from` to `to`, which holds `len` bits.
fn append(to: &mut Vec<Block>, len: usize, from: &[Block], (at, n): (usize, usize), flip: Block) {
    if n == 0 {
        return;
    }
    let (count, shift) = (blocks(n), len % LANES);
    if shift == 0 && at % LANES == 0 {
        to.extend(from[at / LANES..][..count].iter().map(|block| *block ^ flip));
        if let Some(last) = to.last_mut() {
            last.0 &= tail_mask(n);
        }
        return;
    }
    let word = words(from, at, n, flip);
    if shift == 0 {
        return to.extend((0..count).map(word));
    }
    let mut open = to.pop().unwrap_or(Block::ZERO).0;
    for i in 0..count {
        let word = word(i).0;
        to.push(Block(open | word << shift));
        open = word >> (LANES - shift);
    }
    to.push(Block(open));
    to.truncate(blocks(len + n));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_keep_every_bit() {
        let noise = |i: usize| Block((i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let mut bits = BitSlices::<2>::default();
        let mut expected: Vec<[bool; 2]> = Vec::new();
        for (round, (at, n)) in
            [(0, 1), (5, 0), (7, 127), (0, 128), (128, 129), (1, 3), (0, 256), (64, 64), (3, 400), (250, 61)]
                .into_iter()
                .enumerate()
        {
            let from: [Vec<Block>; 2] = [0, 100].map(|k| (0..6).map(|i| noise(17 * round + i + k)).collect());
            let flips = if round % 2 == 1 { [Block(u128::MAX), Block::ZERO] } else { [Block::ZERO; 2] };
            bits.push([&from[0], &from[1]], at, n, flips);
            let bit = |k: usize, i: usize| (from[k][i / 128] ^ flips[k]).0 >> (i % 128) & 1 == 1;
            expected.extend((at..at + n).map(|i| [bit(0, i), bit(1, i)]));
            bits.push_bit([round % 3 == 0, round % 5 == 0]);
            expected.push([round % 3 == 0, round % 5 == 0]);
        }
        let holds = |bits: &BitSlices<2>, expected: &[[bool; 2]]| {
            assert_eq!(bits.len(), expected.len());
            for k in [0, 1] {
                assert_eq!(bits.part(k).len(), blocks(bits.len()));
                assert!((0..bits.len()).all(|i| bits.bit(k, i) == expected[i][k]));
                assert_eq!(bits.part(k).last().map_or(0, |b| b.0 & !tail_mask(bits.len())), 0);
            }
        };
        holds(&bits, &expected);
        for at in [0, 1, 127, 128, 130] {
            for n in [bits.len() - at, 129, 1, 0] {
                let cut = bits.cut(at, n);
                holds(&cut, &expected[at..at + n]);
                let mut twice = cut.clone();
                twice.xor(&cut);
                assert!(twice.part(0).iter().all(|b| *b == Block::ZERO));
                let mut into = [vec![Block(7); blocks(n)], vec![Block(7); blocks(n)]];
                let [a, b] = &mut into;
                bits.read(at, n, [a, b]);
                assert!(cut.part(0) == into[0] && cut.part(1) == into[1]);
            }
        }
        let mut rest = bits.clone();
        for n in [0, 1, 128, 300] {
            let taken = rest.take_last(n);
            holds(&rest, &expected[..rest.len()]);
            holds(&taken, &expected[rest.len()..rest.len() + n]);
            expected.truncate(rest.len());
        }
    }
}

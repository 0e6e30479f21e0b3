//! Packed bits and blocks: the small loops around the big kernels. Branch-free; plain code but for one.

use crate::backend::by_backend;
use crate::{Block, InstructionSet};

/// Bit `i` of packed bits, 0 or 1.
///
/// # Panics
/// When `i` is out of range.
#[inline]
#[must_use]
pub fn bit(bits: &[u64], i: usize) -> u64 {
    bits[i / 64] >> (i % 64) & 1
}

/// `dst[i] ^= src[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn xor_into(dst: &mut [Block], src: &[Block]) {
    assert_eq!(dst.len(), src.len(), "equal lengths");
    dst.iter_mut().zip(src).for_each(|(d, s)| *d ^= *s);
}

/// `dst[i] ^= src[i]` when `bit` (0 or 1), without a branch on it.
///
/// # Panics
/// When the lengths differ.
pub fn xor_when(dst: &mut [Block], src: &[Block], bit: u64) {
    when(InstructionSet::detect(), dst, src, bit);
}

/// As [`xor_when`], on a given backend.
///
/// # Panics
/// As [`xor_when`], and when this machine does not have the backend.
pub fn xor_when_on(backend: InstructionSet, dst: &mut [Block], src: &[Block], bit: u64) {
    when(InstructionSet::checked(backend), dst, src, bit);
}

fn when(backend: InstructionSet, dst: &mut [Block], src: &[Block], bit: u64) {
    assert_eq!(dst.len(), src.len(), "equal lengths");
    let mask = Block::mask(bit);
    by_backend!(
        backend,
        xor_masked_by(dst, src, mask),
        dst.iter_mut().zip(src).for_each(|(d, s)| *d ^= *s & mask)
    )
}

/// `dst[i] ^= src[i]` on bytes.
///
/// # Panics
/// When the lengths differ.
pub fn xor_bytes(dst: &mut [u8], src: &[u8]) {
    assert_eq!(dst.len(), src.len(), "equal lengths");
    dst.iter_mut().zip(src).for_each(|(d, s)| *d ^= *s);
}

/// `dst[i] ^= delta` where bit i of `bits` is set.
///
/// # Panics
/// When there are fewer bits than blocks.
pub fn xor_masked(dst: &mut [Block], bits: &[u64], delta: Block) {
    assert!(bits.len() * 64 >= dst.len(), "one bit per block");
    for (dst, &word) in dst.chunks_mut(64).zip(bits) {
        dst.iter_mut().enumerate().for_each(|(i, d)| *d ^= delta.when(word >> i));
    }
}

/// Packs the colour bits: bit i of `out` is bit 0 of `x[i]`. Bits beyond `x.len()` are clear.
///
/// # Panics
/// When `out` is not exactly as many words as needed.
pub fn lsbs(x: &[Block], out: &mut [u64]) {
    assert_eq!(out.len(), x.len().div_ceil(64), "64 bits per word");
    for (x, word) in x.chunks(64).zip(out) {
        *word = x.iter().enumerate().fold(0, |w, (i, x)| w | (x.0 as u64 & 1) << i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_when_a_bit_is_set() {
        for backend in InstructionSet::available() {
            for n in [0usize, 1, 3, 4, 15, 16, 17, 64, 67] {
                let x: Vec<Block> = (0..n as u128).map(|i| Block((i << 90) ^ (i + 1))).collect();
                let y: Vec<Block> = x.iter().map(|x| Block(!x.0 >> 3)).collect();
                for bit in [0, 1] {
                    let mut sums = x.clone();
                    xor_when_on(backend, &mut sums, &y, bit);
                    assert!(
                        sums.iter().zip(&x).zip(&y).all(|((s, x), y)| *s == *x ^ y.when(bit)),
                        "{backend:?} {n}"
                    );
                }
            }
        }
    }

    #[test]
    fn bits_pack_and_mask() {
        for n in [0usize, 1, 63, 64, 65, 200] {
            let x: Vec<Block> = (0..n as u128).map(|i| Block((i * i * 0x9e37_79b9) >> 3)).collect();
            let mut bits = vec![!0; n.div_ceil(64)];
            lsbs(&x, &mut bits);
            let (delta, mut y) = (Block(0xabc << 77 | 1), x.clone());
            xor_masked(&mut y, &bits, delta);
            for i in 0..n {
                assert_eq!(bit(&bits, i) == 1, x[i].lsb());
                assert_eq!(y[i], if x[i].lsb() { x[i] ^ delta } else { x[i] });
            }
            assert!((n..bits.len() * 64).all(|i| bit(&bits, i) == 0));
            xor_into(&mut y, &x);
            assert!(y.iter().zip(&x).all(|(y, x)| *y == if x.lsb() { delta } else { Block::ZERO }));
        }
        let mut bytes = [1, 2, 3];
        xor_bytes(&mut bytes, &[3, 2, 1]);
        assert_eq!(bytes, [2, 0, 2]);
    }
}

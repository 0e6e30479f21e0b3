//! The field of 2^128 elements: polynomials over F2 modulo x^128 + x^7 + x^2 + x + 1. Bit i of a block is the
//! coefficient of x^i; addition is exclusive or.
//!
//! All functions take the same time whatever the elements are.

#[cfg(target_arch = "x86_64")]
use crate::x86;
use crate::{Block, InstructionSet};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Correlated OTs that make one element with [`gf_pack`]: bits of the field.
pub const FIELD_BITS: usize = 128;
/// x^128 as a polynomial of lower degree.
const POLYNOMIAL: u128 = 0x87;

/// `sums[i] += factor * x[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn gf_add_multiples(factor: Block, x: &[Block], sums: &mut [Block]) {
    add_multiples(InstructionSet::detect(), factor, x, sums);
}

/// As [`gf_add_multiples`], on a given backend.
///
/// # Panics
/// As [`gf_add_multiples`], and when this machine does not have the backend.
pub fn gf_add_multiples_on(backend: InstructionSet, factor: Block, x: &[Block], sums: &mut [Block]) {
    add_multiples(InstructionSet::checked(backend), factor, x, sums);
}

fn add_multiples(backend: InstructionSet, factor: Block, x: &[Block], sums: &mut [Block]) {
    assert_eq!(x.len(), sums.len(), "one sum per element");
    #[cfg(target_arch = "x86_64")]
    if backend != InstructionSet::Portable && x86::has_field() {
        return x86::add_multiples(factor, x, sums);
    }
    let _ = backend;
    x.iter().zip(sums).for_each(|(&x, sum)| *sum ^= multiply(factor, x));
}

/// The product, a bit of `b` at a time.
fn multiply(mut a: Block, b: Block) -> Block {
    let mut product = Block::ZERO;
    for bit in 0..FIELD_BITS {
        product ^= a.when((b.0 >> bit) as u64);
        a = double(a);
    }
    product
}

/// The product, on a backend.
fn times(backend: InstructionSet, a: Block, b: Block) -> Block {
    let mut product = [Block::ZERO];
    add_multiples(backend, a, &[b], &mut product);
    product[0]
}

/// x times `a`.
#[inline]
fn double(a: Block) -> Block {
    Block(a.0 << 1 ^ (a.0 >> 127).wrapping_neg() & POLYNOMIAL)
}

/// Appends one element per [`FIELD_BITS`] blocks: the sum of x^i times block i.
///
/// Correlated OTs `t_i = q_i + b_i Delta` become `pack(t) = pack(q) + b Delta`, where the bits of b are the
/// b_i.
///
/// # Panics
/// When the number of blocks is no multiple of [`FIELD_BITS`].
pub fn gf_pack(blocks: &[Block], out: &mut Vec<Block>) {
    let (groups, rest) = blocks.as_chunks::<FIELD_BITS>();
    assert!(rest.is_empty(), "whole elements");
    out.extend(groups.iter().map(|group| group.iter().rev().fold(Block::ZERO, |sum, &b| double(sum) ^ b)));
}

/// Blocks that [`gf_digest`] takes between two reductions: enough products to wait for one.
pub(crate) const DIGEST_GROUP: usize = 64;

/// A key of [`gf_digest`]: an element and its powers. Wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct GfKey {
    /// `powers[j]` is the element to the power of `DIGEST_GROUP - j`.
    pub(crate) powers: [Block; DIGEST_GROUP],
}

impl GfKey {
    /// The key of a random element.
    #[must_use]
    pub fn new(element: Block) -> Self {
        let mut powers = [element; DIGEST_GROUP];
        for j in (0..DIGEST_GROUP - 1).rev() {
            powers[j] = times(InstructionSet::detect(), powers[j + 1], element);
        }
        Self { powers }
    }

    /// The element that it is of, for a device that digests by itself.
    #[must_use]
    pub fn element(&self) -> Block {
        self.powers[DIGEST_GROUP - 1]
    }

    /// The digest of a content that goes on with `blocks` zero blocks after one of digest `digest`: its
    /// product with a power of the element. Digests of parts add up: the digest of `x` and then `y` is that
    /// of `y` plus that of `x` advanced by the length of `y`. The time depends on `blocks` alone.
    #[must_use]
    pub fn advance(&self, digest: Block, blocks: u64) -> Block {
        self.advance_with(InstructionSet::detect(), digest, blocks)
    }

    /// As [`GfKey::advance`], on a given backend.
    ///
    /// # Panics
    /// When this machine does not have the backend.
    #[must_use]
    pub fn advance_on(&self, backend: InstructionSet, digest: Block, blocks: u64) -> Block {
        self.advance_with(InstructionSet::checked(backend), digest, blocks)
    }

    fn advance_with(&self, backend: InstructionSet, mut digest: Block, mut blocks: u64) -> Block {
        let mut power = self.powers[DIGEST_GROUP - 1];
        while blocks > 0 {
            if blocks & 1 == 1 {
                digest = times(backend, digest, power);
            }
            power = times(backend, power, power);
            blocks >>= 1;
        }
        digest
    }
}

impl std::fmt::Debug for GfKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GfKey(..)")
    }
}

/// The polynomial hash `x[0] h^n + x[1] h^(n-1) + .. + x[n-1] h` at the key's element h, of a content whose
/// beginning has the digest `before` ([`Block::ZERO`]: nothing comes before) and goes on with `x`. Two
/// different contents of n blocks have the same digest for at most n of the 2^128 elements, so a content
/// chosen without knowledge of the key or of digests passes for another with a chance of n / 2^128.
#[must_use]
pub fn gf_digest(key: &GfKey, before: Block, x: &[Block]) -> Block {
    gf_digest_with(InstructionSet::detect(), key, before, x)
}

/// As [`gf_digest`], on a given backend.
///
/// # Panics
/// When this machine does not have the backend.
#[must_use]
pub fn gf_digest_on(backend: InstructionSet, key: &GfKey, before: Block, x: &[Block]) -> Block {
    gf_digest_with(InstructionSet::checked(backend), key, before, x)
}

fn gf_digest_with(backend: InstructionSet, key: &GfKey, before: Block, x: &[Block]) -> Block {
    #[cfg(target_arch = "x86_64")]
    if backend != InstructionSet::Portable && x86::has_field() {
        return x86::digest(backend, key, before, x);
    }
    let _ = backend;
    x.iter().fold(before, |sum, &x| multiply(key.powers[DIGEST_GROUP - 1], sum ^ x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u128, n: usize) -> Vec<Block> {
        let mut blocks = vec![Block::ZERO; n];
        crate::prg_fill(Block(seed), 0, &mut blocks);
        blocks
    }

    fn times(a: Block, b: Block) -> Block {
        super::times(InstructionSet::detect(), a, b)
    }

    #[test]
    fn it_is_a_field() {
        let x = random(1, 90);
        for [a, b, c] in x.as_chunks::<3>().0.iter().copied() {
            assert!(times(a, b) == times(b, a) && times(times(a, b), c) == times(a, times(b, c)));
            assert!(times(a, b ^ c) == times(a, b) ^ times(a, c) && times(a, Block::ONE) == a);
        }
        assert!(times(Block(1 << 127), Block(2)) == Block(POLYNOMIAL));
        // a^(2^128) = a, and a^(2^64) = a for no random a: the polynomial is irreducible, as far as powers of
        // two tell.
        let square = |a: Block, n: usize| (0..n).fold(a, |a, _| times(a, a));
        assert!(square(x[0], 128) == x[0] && square(x[0], 64) != x[0]);
    }

    /// Every backend gives the bits of the portable twin, at many lengths.
    #[test]
    fn backends_agree() {
        for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 100] {
            let (x, sums, factor) = (random(2, n), random(3, n), random(4 + n as u128, 1)[0]);
            for backend in InstructionSet::available() {
                for factor in [factor, Block::ZERO, Block::ONE, Block::ONES] {
                    let (mut mine, mut expected) = (sums.clone(), sums.clone());
                    gf_add_multiples_on(backend, factor, &x, &mut mine);
                    x.iter().zip(&mut expected).for_each(|(&x, sum)| *sum ^= multiply(x, factor));
                    assert!(mine == expected, "{n} elements on {backend:?}");
                }
            }
        }
    }

    /// Every backend gives Horner's value, at lengths around its groups.
    #[test]
    fn digests_agree_and_tell_contents_apart() {
        let key = GfKey::new(random(8, 1)[0]);
        for n in [0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 63, 64, 65, 67, 100, 127, 128, 129, 200, 4096] {
            let x = random(9 + n as u128, n);
            let expected = x.iter().fold(Block::ZERO, |sum, &x| times(key.powers[DIGEST_GROUP - 1], sum ^ x));
            for backend in InstructionSet::available() {
                let digest = |before, x: &[Block]| gf_digest_on(backend, &key, before, x);
                assert!(digest(Block::ZERO, &x) == expected, "{n} blocks on {backend:?}");
                for cut in [0, 1, n / 3, n / 2, n].map(|cut| cut.min(n)) {
                    let before = digest(Block::ZERO, &x[..cut]);
                    assert!(digest(before, &x[cut..]) == expected, "{n} blocks in parts on {backend:?}");
                    let after = key.advance_on(backend, before, (n - cut) as u64);
                    assert!(
                        after ^ digest(Block::ZERO, &x[cut..]) == expected,
                        "{n} blocks added on {backend:?}"
                    );
                }
            }
            if n > 0 {
                let mut other = x.clone();
                other[n / 2] ^= Block::ONE;
                assert!(gf_digest(&key, Block::ZERO, &other) != expected);
                other.copy_from_slice(&x);
                other.rotate_left(1);
                assert!(n == 1 || gf_digest(&key, Block::ZERO, &other) != expected, "order counts");
            }
        }
    }

    #[test]
    fn packed_correlations_are_correlations() {
        let (q, delta, choice) = (random(5, 2 * FIELD_BITS), random(6, 1)[0], random(7, 2));
        let bit = |i: usize| (choice[i / FIELD_BITS].0 >> (i % FIELD_BITS)) as u64;
        let t: Vec<Block> = q.iter().enumerate().map(|(i, &q)| q ^ delta.when(bit(i))).collect();
        let [mut packed_q, mut packed_t] = [Vec::new(), Vec::new()];
        gf_pack(&q, &mut packed_q);
        gf_pack(&t, &mut packed_t);
        gf_add_multiples(delta, &choice, &mut packed_q);
        assert!(packed_q == packed_t && packed_q.len() == 2);
    }
}

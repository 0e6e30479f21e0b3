//! Vectors over Z_2^128, Z_2^64 and packed Z_2, in blocks of 128 bits, and the local products of four-party replicated
//! sharing. A block is one element, two (low half first) or 128 (bit i of the block is element i).
//!
//! Additions wrap within an element; over Z_2 addition is exclusive or and multiplication is and.

use crate::{Aes128, Block};

/// What the elements of a vector are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ring {
    /// Integers modulo 2^128, one per block.
    Z128,
    /// Integers modulo 2^64, two per block.
    Z64,
    /// Bits, 128 per block.
    Z2,
}

impl Ring {
    /// All rings.
    pub const ALL: [Self; 3] = [Self::Z128, Self::Z64, Self::Z2];

    /// Bits of an element: 128, 64 or 1.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::Z128 => 128,
            Self::Z64 => 64,
            Self::Z2 => 1,
        }
    }

    /// Elements of a block.
    #[must_use]
    pub fn lanes(self) -> usize {
        (128 / self.bits()) as usize
    }

    /// Blocks of so many elements, the last one filled up.
    #[must_use]
    pub fn blocks(self, elements: usize) -> usize {
        elements.div_ceil(self.lanes())
    }

    /// The sum of two blocks, element by element.
    #[inline]
    #[must_use]
    pub fn add(self, a: Block, b: Block) -> Block {
        match self {
            Self::Z128 => Block(a.0.wrapping_add(b.0)),
            Self::Z64 => halves(a, b, u64::wrapping_add),
            Self::Z2 => a ^ b,
        }
    }

    /// The difference of two blocks, element by element.
    #[inline]
    #[must_use]
    pub fn sub(self, a: Block, b: Block) -> Block {
        match self {
            Self::Z128 => Block(a.0.wrapping_sub(b.0)),
            Self::Z64 => halves(a, b, u64::wrapping_sub),
            Self::Z2 => a ^ b,
        }
    }

    /// The product of two blocks, element by element.
    #[inline]
    #[must_use]
    pub fn mul(self, a: Block, b: Block) -> Block {
        match self {
            Self::Z128 => Block(a.0.wrapping_mul(b.0)),
            Self::Z64 => halves(a, b, u64::wrapping_mul),
            Self::Z2 => a & b,
        }
    }
}

#[inline]
fn halves(a: Block, b: Block, f: impl Fn(u64, u64) -> u64) -> Block {
    let low = f(a.0 as u64, b.0 as u64);
    let high = f((a.0 >> 64) as u64, (b.0 >> 64) as u64);
    Block(u128::from(high) << 64 | u128::from(low))
}

/// `sums[i] += x[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn ring_add(ring: Ring, sums: &mut [Block], x: &[Block]) {
    assert_eq!(sums.len(), x.len(), "equal lengths");
    sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum = ring.add(*sum, x));
}

/// `differences[i] -= x[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn ring_sub(ring: Ring, differences: &mut [Block], x: &[Block]) {
    assert_eq!(differences.len(), x.len(), "equal lengths");
    differences.iter_mut().zip(x).for_each(|(difference, &x)| *difference = ring.sub(*difference, x));
}

/// The local products of a party that holds three of four summands of two factors, added to `sums`:
/// `sums[0] += x1 y2 + x2 y1 + x1 y1`, `sums[1] += x0 y1 + x1 y0 + x0 y0`, `sums[2] += x0 y2 + x2 y0`.
///
/// # Panics
/// When the lengths differ.
pub fn ring_cross(ring: Ring, x: [&[Block]; 3], y: [&[Block]; 3], sums: [&mut [Block]; 3]) {
    let [a, b, c] = sums;
    let n = a.len();
    assert!(x.iter().chain(&y).all(|part| part.len() == n) && b.len() == n && c.len() == n, "equal lengths");
    for i in 0..n {
        let ([x0, x1, x2], [y0, y1, y2]) = (x.map(|part| part[i]), y.map(|part| part[i]));
        let pair = |p: Block, q: Block, r: Block, s: Block| ring.add(ring.mul(p, q), ring.mul(r, s));
        a[i] = ring.add(a[i], pair(x1, ring.add(y1, y2), x2, y1));
        b[i] = ring.add(b[i], pair(x0, ring.add(y0, y1), x1, y0));
        c[i] = ring.add(c[i], pair(x0, y2, x2, y0));
    }
}

/// Counter mode under a prefix: `out[i]` is the encryption of the block whose upper half is `prefix` and whose lower
/// half is `first + i`.
///
/// # Panics
/// When the counter passes 2^64.
pub fn stream(key: &Aes128, prefix: u64, first: u64, out: &mut [Block]) {
    assert!(first.checked_add(out.len() as u64).is_some(), "a stream has 2^64 blocks");
    for (i, block) in out.iter_mut().enumerate() {
        *block = Block(u128::from(prefix) << 64 | u128::from(first + i as u64));
    }
    key.encrypt(out);
}

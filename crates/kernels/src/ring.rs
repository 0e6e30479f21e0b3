//! Vectors over Z_2^128, Z_2^64 and packed Z_2, in blocks of 128 bits, and the local products of four-party
//! replicated sharing. A block is one element, two (low half first) or 128 (bit i of the block is element i).
//!
//! Additions wrap within an element; over Z_2 addition is exclusive or and multiplication is and.

mod keystream;
pub use keystream::{JointMask, Keystream, stream};

use crate::backend::by_backend;
use crate::{Block, InstructionSet};

/// What becomes of what was in the destination of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is replaced.
    Set,
    /// The result is added to it.
    Add,
}

/// What the elements of a vector are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorRing {
    /// Integers modulo 2^128, one per block.
    Z128,
    /// Integers modulo 2^64, two per block.
    Z64,
    /// Bits, 128 per block.
    Z2,
}

impl VectorRing {
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
pub fn ring_add(ring: VectorRing, sums: &mut [Block], x: &[Block]) {
    add(InstructionSet::detect(), ring, sums, x);
}

/// As [`ring_add`], on a given backend.
///
/// # Panics
/// As [`ring_add`], and when this machine does not have the backend.
pub fn ring_add_on(backend: InstructionSet, ring: VectorRing, sums: &mut [Block], x: &[Block]) {
    add(InstructionSet::checked(backend), ring, sums, x);
}

fn add(backend: InstructionSet, ring: VectorRing, sums: &mut [Block], x: &[Block]) {
    assert_eq!(sums.len(), x.len(), "equal lengths");
    by_backend!(
        backend,
        ring::add(ring, sums, x),
        sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum = ring.add(*sum, x))
    )
}

/// `differences[i] -= x[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn ring_sub(ring: VectorRing, differences: &mut [Block], x: &[Block]) {
    sub(InstructionSet::detect(), ring, differences, x);
}

/// As [`ring_sub`], on a given backend.
///
/// # Panics
/// As [`ring_sub`], and when this machine does not have the backend.
pub fn ring_sub_on(backend: InstructionSet, ring: VectorRing, differences: &mut [Block], x: &[Block]) {
    sub(InstructionSet::checked(backend), ring, differences, x);
}

fn sub(backend: InstructionSet, ring: VectorRing, differences: &mut [Block], x: &[Block]) {
    assert_eq!(differences.len(), x.len(), "equal lengths");
    by_backend!(
        backend,
        ring::sub(ring, differences, x),
        differences.iter_mut().zip(x).for_each(|(difference, &x)| *difference = ring.sub(*difference, x))
    )
}

/// The local products of a party that holds three of four summands of two factors: `x1 y2 + x2 y1 + x1 y1`,
/// `x0 y1 + x1 y0 + x0 y0` and `x0 y2 + x2 y0`, written to the three `sums`.
///
/// # Panics
/// When the lengths differ.
pub fn ring_cross(
    ring: VectorRing,
    write: Write,
    x: [&[Block]; 3],
    y: [&[Block]; 3],
    sums: [&mut [Block]; 3],
) {
    cross(InstructionSet::detect(), ring, write, x, y, sums);
}

/// As [`ring_cross`], on a given backend.
///
/// # Panics
/// As [`ring_cross`], and when this machine does not have the backend.
pub fn ring_cross_on(
    backend: InstructionSet,
    ring: VectorRing,
    write: Write,
    x: [&[Block]; 3],
    y: [&[Block]; 3],
    sums: [&mut [Block]; 3],
) {
    cross(InstructionSet::checked(backend), ring, write, x, y, sums);
}

fn cross(
    backend: InstructionSet,
    ring: VectorRing,
    write: Write,
    x: [&[Block]; 3],
    y: [&[Block]; 3],
    mut sums: [&mut [Block]; 3],
) {
    let n = sums[0].len();
    assert!(x.iter().chain(&y).all(|part| part.len() == n), "equal lengths");
    assert!(sums.iter().all(|part| part.len() == n), "equal lengths");
    by_backend!(
        backend,
        ring::cross(ring, write, x, y, &mut sums),
        portable_cross(ring, write, x, y, &mut sums)
    )
}

/// Also compiled for wider vectors: the ring and what is written are chosen outside the loop.
#[inline(always)]
pub(crate) fn portable_cross(
    ring: VectorRing,
    write: Write,
    x: [&[Block]; 3],
    y: [&[Block]; 3],
    sums: &mut [&mut [Block]; 3],
) {
    match ring {
        VectorRing::Z128 => cross_of(VectorRing::Z128, write, x, y, sums),
        VectorRing::Z64 => cross_of(VectorRing::Z64, write, x, y, sums),
        VectorRing::Z2 => cross_of(VectorRing::Z2, write, x, y, sums),
    }
}

#[inline(always)]
fn cross_of(
    ring: VectorRing,
    write: Write,
    x: [&[Block]; 3],
    y: [&[Block]; 3],
    sums: &mut [&mut [Block]; 3],
) {
    let [a, b, c] = sums;
    let n = a.len();
    if write == Write::Set {
        [&mut *a, &mut *b, &mut *c].into_iter().for_each(|sums| sums.fill(Block::ZERO));
    }
    let (x, y, b, c) = (x.map(|part| &part[..n]), y.map(|part| &part[..n]), &mut b[..n], &mut c[..n]);
    for i in 0..n {
        let ([x0, x1, x2], [y0, y1, y2]) = (x.map(|part| part[i]), y.map(|part| part[i]));
        let pair = |p: Block, q: Block, r: Block, s: Block| ring.add(ring.mul(p, q), ring.mul(r, s));
        a[i] = ring.add(a[i], pair(x1, ring.add(y1, y2), x2, y1));
        b[i] = ring.add(b[i], pair(x0, ring.add(y0, y1), x1, y0));
        c[i] = ring.add(c[i], pair(x0, y2, x2, y0));
    }
}

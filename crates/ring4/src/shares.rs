//! A vector of shared values, as one seat holds it.

use crate::vectors::spare::{ClearVector, give_back, zeros};
use crate::{Seat, VectorRing};
use base::Error;
use kernels::{Block, ring_add, ring_sub};
use std::borrow::Cow;

/// What everything that holds shared elements says of its shape.
macro_rules! shape {
    () => {
        /// Of which elements.
        #[must_use]
        pub fn ring(&self) -> VectorRing {
            self.ring
        }

        /// Number of elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.len
        }

        /// Whether there are none.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len == 0
        }
    };
}
pub(crate) use shape;

/// One seat's part of a shared vector: part k is summand seat + 1 + k of every element. Wiped on drop. Where
/// the length is no multiple of the lanes of a block, what fills the last block up is shares of anything.
pub struct SharedVector {
    ring: VectorRing,
    len: usize,
    parts: [Vec<Block>; 3],
}

impl Clone for SharedVector {
    fn clone(&self) -> Self {
        Self { parts: self.parts.each_ref().map(|part| ClearVector::copied(part).into_blocks()), ..*self }
    }
}

impl SharedVector {
    /// Shares of zeros: nothing is random about them.
    #[must_use]
    pub fn zero(ring: VectorRing, len: usize) -> Self {
        let blocks = ring.blocks(len);
        Self { ring, len, parts: std::array::from_fn(|_| zeros(blocks)) }
    }

    /// From parts of as many blocks as `len` elements take.
    ///
    /// # Panics
    /// When they are of another length.
    #[must_use]
    pub fn from_parts(ring: VectorRing, len: usize, parts: [Vec<Block>; 3]) -> Self {
        assert!(parts.iter().all(|part| part.len() == ring.blocks(len)), "as many blocks as elements take");
        Self { ring, len, parts }
    }

    /// A value that every seat but `unknown_to` knows, as summand `unknown_to`: no message. `value` is not
    /// looked at there.
    #[must_use]
    pub fn known_but_to(ring: VectorRing, len: usize, seat: Seat, unknown_to: Seat, value: &[Block]) -> Self {
        let mut shares = Self::zero(ring, len);
        if let Some(part) = seat.part_of(unknown_to) {
            shares.parts[part].copy_from_slice(value);
        }
        shares
    }

    /// Public values: summand 0.
    #[must_use]
    pub fn public(ring: VectorRing, len: usize, seat: Seat, value: &[Block]) -> Self {
        Self::known_but_to(ring, len, seat, Seat::ALL[0], value)
    }

    shape!();

    /// Blocks of each part.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.parts[0].len()
    }

    /// The parts.
    #[must_use]
    pub fn parts(&self) -> [&[Block]; 3] {
        self.parts.each_ref().map(Vec::as_slice)
    }

    /// The parts, taken out.
    #[must_use]
    pub fn into_parts(mut self) -> [Vec<Block>; 3] {
        std::mem::take(&mut self.parts)
    }

    /// The parts, to change them: all seats do the same to the same summands.
    #[must_use]
    pub fn parts_mut(&mut self) -> [&mut [Block]; 3] {
        self.parts.each_mut().map(Vec::as_mut_slice)
    }

    /// The same elements, with shares of zero in what fills the last block up.
    #[must_use]
    pub fn without_padding(&self) -> Cow<'_, Self> {
        let rest = (self.len % self.ring.lanes()) as u32;
        if rest == 0 {
            return Cow::Borrowed(self);
        }
        let mut own = self.clone();
        for part in &mut own.parts {
            let last = part.last_mut().expect("elements that do not fill a block are in one");
            *last = Block(last.0 & u128::MAX >> (128 - rest * self.ring.bits()));
        }
        Cow::Owned(own)
    }

    /// Adds shares of the same shape.
    ///
    /// # Errors
    /// When the shapes differ.
    pub fn add(&mut self, other: &Self) -> Result<(), Error> {
        self.apply(other, ring_add)
    }

    /// Subtracts shares of the same shape.
    ///
    /// # Errors
    /// When the shapes differ.
    pub fn sub(&mut self, other: &Self) -> Result<(), Error> {
        self.apply(other, ring_sub)
    }

    fn apply(&mut self, other: &Self, f: fn(VectorRing, &mut [Block], &[Block])) -> Result<(), Error> {
        self.same_shape(other)?;
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            f(self.ring, mine, theirs);
        }
        Ok(())
    }

    /// Adds public values, at summand 0.
    ///
    /// # Panics
    /// When `value` has another number of blocks.
    pub fn add_public(&mut self, seat: Seat, value: &[Block]) {
        if let Some(part) = seat.part_of(Seat::ALL[0]) {
            ring_add(self.ring, &mut self.parts[part], value);
        }
    }

    /// Multiplies by public values.
    ///
    /// # Panics
    /// When `value` has another number of blocks.
    pub fn scale(&mut self, value: &[Block]) {
        assert_eq!(value.len(), self.blocks(), "one factor per element");
        for part in &mut self.parts {
            part.iter_mut().zip(value).for_each(|(x, &by)| *x = self.ring.mul(*x, by));
        }
    }

    /// Checks that two vectors can be computed with element by element.
    ///
    /// # Errors
    /// When ring or length differ.
    pub fn same_shape(&self, other: &Self) -> Result<(), Error> {
        ShareView::from(self).same_shape(other.into())
    }
}

/// Shared elements where they lie: in [`SharedVector`], or in an array in the program's memory
/// ([`crate::ShareArray::view`]).
#[derive(Clone, Copy)]
pub struct ShareView<'a> {
    ring: VectorRing,
    len: usize,
    parts: [&'a [Block]; 3],
}

impl<'a> ShareView<'a> {
    pub(crate) fn new(ring: VectorRing, len: usize, parts: [&'a [Block]; 3]) -> Self {
        Self { ring, len, parts }
    }

    shape!();

    /// The parts.
    #[must_use]
    pub fn parts(self) -> [&'a [Block]; 3] {
        self.parts
    }

    /// As [`SharedVector::same_shape`].
    ///
    /// # Errors
    /// When ring or length differ.
    pub fn same_shape(self, other: ShareView<'_>) -> Result<(), Error> {
        if self.ring == other.ring && self.len == other.len {
            return Ok(());
        }
        let shape = |s: ShareView<'_>| format!("{} elements of {} bits", s.len, s.ring.bits());
        Err(Error::misuse(format!("{} and {} do not fit", shape(self), shape(other))))
    }
}

impl<'a> From<&'a SharedVector> for ShareView<'a> {
    fn from(shares: &'a SharedVector) -> Self {
        Self::new(shares.ring, shares.len, shares.parts())
    }
}

impl Drop for SharedVector {
    fn drop(&mut self) {
        self.parts.iter_mut().for_each(|part| give_back(std::mem::take(part)));
    }
}

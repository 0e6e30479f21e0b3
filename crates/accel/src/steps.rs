//! Local steps on vectors that stay with a device: what conversions, comparisons and truncations are made of
//! besides products, none of them a message.
//!
//! A step works on runs of blocks of one part of a vector, or of all three. What two seats know in common
//! lies in one part of a vector of its own. So a joint input is a stream drawn and a difference, its message
//! a stream drawn onto that, and the bits of a sum of two parts are a sum and planes of it.

use crate::{DeviceVector, StreamName};
use base::Error;
use kernels::{Block, VectorRing};
use std::ops::Range;

/// Terms of a step, at most: longer sums take several.
pub const STEP_TERMS: usize = 8;

/// The same run of blocks in one part of a vector or in all three.
#[derive(Clone, Copy)]
pub struct VectorRun<'a> {
    /// Of which vector; what its elements are is the step's to say.
    pub vector: &'a DeviceVector,
    /// The only part, where it is one.
    pub part: Option<usize>,
    /// The first block.
    pub from: usize,
    /// How many.
    pub blocks: usize,
}

impl VectorRun<'_> {
    /// Which parts.
    #[must_use]
    pub fn parts(&self) -> Range<usize> {
        self.part.map_or(0..3, |part| part..part + 1)
    }

    fn within(&self) -> bool {
        let end = self.from.checked_add(self.blocks);
        end.is_some_and(|end| end <= self.vector.blocks()) && self.part.is_none_or(|part| part < 3)
    }

    /// Whether a block of one lies in the other as well.
    fn meets(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|run| (run.parts(), run.from..run.from + run.blocks));
        let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        self.vector.same_vector(other.vector) && meet(&a.0, &b.0) && meet(&a.1, &b.1)
    }

    fn same(&self, other: &Self) -> bool {
        let place = |run: &Self| (run.part, run.from, run.blocks);
        self.vector.same_vector(other.vector) && place(self) == place(other)
    }
}

/// A number in every element of a block.
#[must_use]
pub fn splat(ring: VectorRing, number: u128) -> Block {
    match ring {
        VectorRing::Z128 => Block(number),
        VectorRing::Z64 => Block(u128::from(number as u64) * ((1 << 64) | 1)),
        VectorRing::Z2 => Block(if number & 1 == 1 { u128::MAX } else { 0 }),
    }
}

/// One step. What it reads may lie where its result does, in all of it, for steps that work block by block;
/// otherwise both lie apart.
pub enum VectorStep<'a> {
    /// `z` is the sum of terms times a block each, and of a constant in one part.
    Combine {
        /// Of which elements.
        ring: VectorRing,
        /// The result.
        z: VectorRun<'a>,
        /// At most [`STEP_TERMS`].
        terms: &'a [(VectorRun<'a>, Block)],
        /// In which part what is added to every block.
        constant: Option<(usize, Block)>,
    },
    /// `z = x + stream`, or `x - stream`; without an x the stream or its negative.
    Draw {
        /// Of which elements.
        ring: VectorRing,
        /// The result, in one part.
        z: VectorRun<'a>,
        /// What the stream is added to.
        x: Option<VectorRun<'a>>,
        /// Whether it is subtracted.
        negative: bool,
        /// Under the key of which part.
        key: usize,
        /// Which stream.
        name: StreamName,
        /// Which block of it comes first.
        first: u64,
    },
    /// `z` is the sum of products, of parts of shares that this seat holds.
    Cross {
        /// Of which elements.
        ring: VectorRing,
        /// The result, in one part.
        z: VectorRun<'a>,
        /// At most [`STEP_TERMS`].
        terms: &'a [[VectorRun<'a>; 2]],
    },
    /// The lowest `keep` bits of every element divided by `2^by` and rounded down.
    Shift {
        /// Of which elements: not of bits.
        ring: VectorRing,
        /// The result.
        z: VectorRun<'a>,
        /// What is shifted.
        x: VectorRun<'a>,
        /// By less bits than an element has.
        by: u32,
        /// Whether elements are two's complement.
        signed: bool,
        /// Bits that are kept.
        keep: u32,
    },
    /// Bits `from .. from + width` of every element of x, a plane each, of which each begins `stride` blocks
    /// after the one before.
    Planes {
        /// What the elements of x are: not bits.
        ring: VectorRing,
        /// The planes.
        z: VectorRun<'a>,
        /// The elements.
        x: VectorRun<'a>,
        /// The lowest bit.
        from: u32,
        /// How many.
        width: u32,
        /// Blocks from plane to plane.
        stride: usize,
    },
    /// The inverse: elements whose lowest bits are in planes, the others zero.
    Elements {
        /// What the elements of z are: not bits.
        ring: VectorRing,
        /// The elements.
        z: VectorRun<'a>,
        /// The planes.
        x: VectorRun<'a>,
        /// How many.
        width: u32,
        /// Blocks from plane to plane.
        stride: usize,
    },
}

impl VectorStep<'_> {
    /// Where the result lies.
    #[must_use]
    pub fn z(&self) -> &VectorRun<'_> {
        match self {
            Self::Combine { z, .. }
            | Self::Draw { z, .. }
            | Self::Cross { z, .. }
            | Self::Shift { z, .. }
            | Self::Planes { z, .. }
            | Self::Elements { z, .. } => z,
        }
    }

    /// What it reads.
    pub(crate) fn reads(&self) -> Vec<&VectorRun<'_>> {
        match self {
            Self::Combine { terms, .. } => terms.iter().map(|(x, _)| x).collect(),
            Self::Draw { x, .. } => x.iter().collect(),
            Self::Cross { terms, .. } => terms.iter().flatten().collect(),
            Self::Shift { x, .. } | Self::Planes { x, .. } | Self::Elements { x, .. } => vec![x],
        }
    }

    /// Checks that all runs are within their vectors and fit each other, so that a device need not.
    ///
    /// # Errors
    /// A misuse where they do not.
    pub fn check(&self) -> Result<(), Error> {
        let (z, reads) = (self.z(), self.reads());
        let alike = |x: &&VectorRun<'_>| {
            x.blocks == z.blocks && x.parts().len() == z.parts().len() && (x.same(z) || !x.meets(z))
        };
        let apart = |x: &&VectorRun<'_>| x.parts().len() == z.parts().len() && !x.meets(z);
        // Blocks of so many planes of so many blocks of elements.
        let planes = |ring: VectorRing, blocks: usize, width: u32, stride: usize| {
            let plane = (blocks * ring.lanes()).div_ceil(128);
            let all = (width as usize).checked_sub(1).and_then(|before| before.checked_mul(stride));
            all.filter(|_| plane <= stride).and_then(|before| before.checked_add(plane))
        };
        let fits = match self {
            Self::Combine { terms, constant, .. } => {
                let there = constant.is_none_or(|(part, _)| z.parts().contains(&part));
                terms.len() <= STEP_TERMS && there && reads.iter().all(alike)
            }
            Self::Draw { key, name, first, .. } => {
                let stream = name.round >> 48 == 0 && first.checked_add(z.blocks as u64).is_some();
                z.part.is_some() && *key < 3 && stream && reads.iter().all(alike)
            }
            Self::Cross { terms, .. } => {
                z.part.is_some() && terms.len() <= STEP_TERMS && reads.iter().all(alike)
            }
            Self::Shift { ring, by, keep, .. } => {
                *ring != VectorRing::Z2
                    && *by < ring.bits()
                    && *keep <= ring.bits()
                    && reads.iter().all(alike)
            }
            Self::Planes { ring, x, from, width, stride, .. } => {
                let bits = from.checked_add(*width).is_some_and(|end| end <= ring.bits());
                let wanted = planes(*ring, x.blocks, *width, *stride);
                *ring != VectorRing::Z2 && bits && wanted == Some(z.blocks) && reads.iter().all(apart)
            }
            Self::Elements { ring, x, width, stride, .. } => {
                let wanted = planes(*ring, z.blocks, *width, *stride);
                let bits = *width <= ring.bits();
                *ring != VectorRing::Z2 && bits && wanted == Some(x.blocks) && reads.iter().all(apart)
            }
        };
        if fits && z.within() && reads.iter().all(|x| x.within()) {
            return Ok(());
        }
        Err(Error::misuse("the runs of a step do not fit each other or their vectors"))
    }
}

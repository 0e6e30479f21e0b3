//! A long vector of shared elements in the program's memory, worked on in pieces.
//!
//! A piece is loaded into [`SharedVector`], which are scratch of the engine's in ordinary memory, computed
//! with there, and stored back: as COPA (Patel et al.) streams chunks through an accelerator. What is long
//! lies in [`osprey::Oblivious`] and is paged; scratch is short, always in use, and needs no paging.
//!
//! **Who learns what.** Which elements are loaded and stored, in which order: a function of sizes alone,
//! since a program has no value to choose by. Shares on disk are encrypted by the engines `move` and `copy`;
//! `file`, `hint` and swap leave them there as they are.

use crate::shares::shape;
use crate::vectors::spare::{room, wipe};
use crate::{ShareView, SharedVector, VectorRing};
use base::Error;
use kernels::Block;
use osprey::Memory;
use std::fmt;
use std::ops::Range;

/// One seat's part of a shared vector, in memory of a kind that the program chooses.
///
/// ```
/// use osprey::Oblivious;
/// use ring4::{ShareArray, VectorRing, SharedVector};
/// # fn main() -> Result<(), base::Error> {
/// let mut sums = ShareArray::zero(&Oblivious, VectorRing::Z64, 1 << 20);
/// let mut piece = sums.load(4096..8192)?;
/// piece.add(&SharedVector::zero(VectorRing::Z64, 4096))?;
/// sums.store(&piece, 4096)?;
/// assert!(sums.load(1..3).is_err(), "pieces are of whole blocks");
/// # Ok(())
/// # }
/// ```
///
/// **Pieces** begin where a block begins, and end where one ends or where the vector does: multiples of
/// [`VectorRing::lanes`], which are 1 over Z_2^128, 2 over Z_2^64 and 128 over Z_2.
///
/// **Wiped on drop** in ordinary memory, as [`SharedVector`] are. Not in the region: to wipe what was paged
/// out would bring all of it back. What `move` and `copy` wrote is unreadable when the process has ended.
pub struct ShareArray<M: Memory> {
    ring: VectorRing,
    len: usize,
    parts: [M::Buffer<Block>; 3],
}

impl<M: Memory> ShareArray<M> {
    /// Shares of zeros.
    ///
    /// # Panics
    /// When the memory has no room, here and below.
    #[must_use]
    pub fn zero(memory: &M, ring: VectorRing, len: usize) -> Self {
        Self::new(ring, len, || memory.zeroed(ring.blocks(len)))
    }

    /// Shares of anything, for what is stored before it is loaded: memory that is paged is not touched.
    #[must_use]
    pub fn untouched(memory: &M, ring: VectorRing, len: usize) -> Self {
        Self::new(ring, len, || memory.untouched(ring.blocks(len)))
    }

    fn new(ring: VectorRing, len: usize, part: impl Fn() -> M::Buffer<Block>) -> Self {
        Self { ring, len, parts: std::array::from_fn(|_| part()) }
    }

    shape!();

    /// Bytes of all three parts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| size_of_val(&part[..])).sum()
    }

    /// A copy of some elements, to compute with. In a speculative pass shares of zeros, and the same memory
    /// touched.
    ///
    /// # Errors
    /// Elements that are not there, or do not fill blocks.
    pub fn load(&self, elements: Range<usize>) -> Result<SharedVector, Error> {
        let blocks = self.blocks(&elements)?;
        osprey::tick();
        if osprey::speculating() {
            self.parts.iter().for_each(|part| osprey::touch_read(&part[blocks.clone()]));
            return Ok(SharedVector::zero(self.ring, elements.len()));
        }
        let copy = |part: &M::Buffer<Block>| {
            let mut piece = room(blocks.len());
            piece.extend_from_slice(&part[blocks.clone()]);
            piece
        };
        Ok(SharedVector::from_parts(self.ring, elements.len(), self.parts.each_ref().map(copy)))
    }

    /// Some elements where they lie, for products of what is long: it saves [`ShareArray::load`]'s copy. What
    /// reads them touches the memory, in a speculative pass too. For devices that compute in this process:
    /// one that gets its operands through the system may not find what is paged out, and takes what was
    /// loaded.
    ///
    /// # Errors
    /// As [`ShareArray::load`].
    pub fn view(&self, elements: Range<usize>) -> Result<ShareView<'_>, Error> {
        let blocks = self.blocks(&elements)?;
        osprey::tick();
        Ok(ShareView::new(self.ring, elements.len(), self.parts.each_ref().map(|part| &part[blocks.clone()])))
    }

    /// Writes `x` to the elements from `at` on. In a speculative pass the memory is touched.
    ///
    /// # Errors
    /// As [`ShareArray::load`]; shares over another ring.
    pub fn store(&mut self, x: &SharedVector, at: usize) -> Result<(), Error> {
        if x.ring() != self.ring {
            let (have, want) = (x.ring().bits(), self.ring.bits());
            return Err(Error::misuse(format!("elements of {have} bits do not go into an array of {want}")));
        }
        let blocks = self.blocks(&(at..at.saturating_add(x.len())))?;
        osprey::tick();
        for (part, piece) in self.parts.iter_mut().zip(x.parts()) {
            let place = &mut part[blocks.clone()];
            match osprey::speculating() {
                true => osprey::touch_write(place),
                false => place.copy_from_slice(piece),
            }
        }
        Ok(())
    }

    /// The blocks of a piece.
    fn blocks(&self, elements: &Range<usize>) -> Result<Range<usize>, Error> {
        let (Range { start, end }, lanes) = (elements, self.ring.lanes());
        if start > end || *end > self.len {
            let text = format!("elements {start}..{end} of an array of {}", self.len);
            return Err(Error::misuse(text));
        }
        if !start.is_multiple_of(lanes) || (!end.is_multiple_of(lanes) && *end != self.len) {
            return Err(Error::misuse(format!(
                "elements {start}..{end} do not fill blocks: over {} bits a piece begins and ends at \
                 multiples of {lanes}, or at the end of the array",
                self.ring.bits()
            )));
        }
        Ok(start / lanes..self.ring.blocks(*end))
    }
}

impl<M: Memory> Drop for ShareArray<M> {
    fn drop(&mut self) {
        for part in self.parts.iter_mut().filter(|part| !osprey::owns(part.as_ptr().cast())) {
            wipe(part);
        }
    }
}

/// Its shape alone.
impl<M: Memory> fmt::Debug for ShareArray<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareArray").field("ring", &self.ring).field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use osprey::{Heap, Oblivious};

    /// Shares whose parts count from different numbers on.
    fn numbered(ring: VectorRing, len: usize, from: u128) -> SharedVector {
        let part = |k: u128| (0..ring.blocks(len) as u128).map(|i| Block(from + (k << 100) + i)).collect();
        SharedVector::from_parts(ring, len, [part(1), part(2), part(3)])
    }

    fn pieces_come_back<M: Memory>(memory: &M) {
        for ring in VectorRing::ALL {
            let lanes = ring.lanes();
            for len in [0, 1, 2, 127, 128, 129, 1000, 70_000] {
                let whole = numbered(ring, len, 7);
                let mut array = ShareArray::untouched(memory, ring, len);
                assert_eq!((array.ring(), array.len(), array.is_empty()), (ring, len, len == 0));
                assert_eq!(array.bytes(), 3 * 16 * ring.blocks(len));
                array.store(&whole, 0).expect("all of it");
                let back = array.load(0..len).expect("all of it");
                assert!(back.parts() == whole.parts() && back.len() == len);
                // Every piece of a length that is no power of two, and what is left over at the end.
                let step = 5 * lanes;
                for start in (0..len).step_by(step) {
                    let end = len.min(start + step);
                    let piece = array.load(start..end).expect("a piece");
                    assert_eq!(piece.len(), end - start);
                    let blocks = start / lanes..ring.blocks(end);
                    for (piece, whole) in piece.parts().into_iter().zip(whole.parts()) {
                        assert!(*piece == whole[blocks.clone()]);
                    }
                }
                // What is stored lies where it was stored, and nowhere else.
                let start = len / 2 / lanes * lanes;
                let end = len.min(start + 3 * lanes);
                array.store(&numbered(ring, end - start, 1 << 90), start).expect("a piece");
                let back = array.load(0..len).expect("all of it");
                let changed = start / lanes..ring.blocks(end);
                for (k, (back, whole)) in back.parts().into_iter().zip(whole.parts()).enumerate() {
                    for i in 0..back.len() {
                        let new = Block(
                            (1 << 90) + ((k as u128 + 1) << 100) + (i.wrapping_sub(changed.start)) as u128,
                        );
                        assert!(
                            back[i] == if changed.contains(&i) { new } else { whole[i] },
                            "{ring:?} {len} {i}"
                        );
                    }
                }
                let zero = ShareArray::zero(memory, ring, len).load(0..len).expect("all of it");
                assert!(zero.parts().iter().all(|part| part.iter().all(|&block| block == Block::ZERO)));
            }
        }
    }

    #[test]
    fn pieces_come_back_from_the_heap_and_from_the_region() {
        pieces_come_back(&Heap);
        pieces_come_back(&Oblivious);
    }

    fn refused(done: Result<SharedVector, Error>) -> String {
        done.err().expect("it is refused").to_string()
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for ring in VectorRing::ALL {
            let (lanes, len) = (ring.lanes(), 10 * ring.lanes() + 1);
            let mut array = ShareArray::zero(&Heap, ring, len);
            let outside = [0..len + 1, len + 1..len + 1, Range { start: 2 * lanes, end: lanes }];
            for range in outside {
                let error = refused(array.load(range.clone()));
                assert!(error.contains("of an array of"), "{range:?}: {error}");
                assert!(array.view(range).is_err());
            }
            if lanes > 1 {
                for range in [1..len, 0..1, lanes..2 * lanes - 1] {
                    let error = refused(array.load(range.clone()));
                    assert!(error.contains(&format!("multiples of {lanes}")), "{error}");
                }
                assert!(array.store(&SharedVector::zero(ring, lanes), 1).is_err());
                assert!(
                    array.store(&SharedVector::zero(ring, lanes - 1), 0).is_err(),
                    "it would change its neighbour"
                );
            }
            assert!(array.store(&SharedVector::zero(ring, 1), 10 * lanes).is_ok(), "the end of the array");
            assert!(array.store(&SharedVector::zero(ring, 1), usize::MAX).is_err());
            let other = VectorRing::ALL.into_iter().find(|other| *other != ring).expect("three rings");
            let error = array.store(&SharedVector::zero(other, 128), 0).unwrap_err().to_string();
            assert!(error.contains("do not go into an array of"), "{error}");
        }
    }
}

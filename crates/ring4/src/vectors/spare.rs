//! Vectors of blocks that are used again. A round makes and drops vectors as long as those of the round
//! before: without this the system would take their pages back and clear them again every time, which costs
//! more than the product.

use kernels::Block;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use zeroize::optimization_barrier;

/// Vectors shorter than this are the allocator's.
const LEAST_BLOCKS: usize = 256;
/// Blocks that a thread keeps at most: 64 MiB.
const KEPT_BLOCKS: usize = 4 << 20;
/// How many times the longest vector: conversions hold some dozen at once, and more comes back than goes out,
/// since not every vector is from here.
const KEPT_TIMES: usize = 16;
/// Blocks below which nothing is let go: 1 MiB.
const KEPT_ALWAYS: usize = 1 << 16;

thread_local! {
    /// Vectors of zeros up to their capacity, those given back last at the end.
    static SPARE: RefCell<Vec<Vec<Block>>> = const { RefCell::new(Vec::new()) };
}

/// A spare vector of zeros, at least so many and not many more.
fn spare(blocks: usize) -> Option<Vec<Block>> {
    let fits = |v: &Vec<Block>| v.len() >= blocks && v.len() / 2 <= blocks;
    if blocks < LEAST_BLOCKS {
        return None;
    }
    SPARE.with_borrow_mut(|spare| spare.iter().rposition(fits).map(|at| spare.remove(at)))
}

/// An empty vector with room for so many blocks.
pub(crate) fn room(blocks: usize) -> Vec<Block> {
    let mut vector = spare(blocks).unwrap_or_else(|| Vec::with_capacity(blocks));
    vector.clear();
    vector
}

/// So many zeros.
pub(crate) fn zeros(blocks: usize) -> Vec<Block> {
    let Some(mut vector) = spare(blocks) else { return vec![Block::ZERO; blocks] };
    vector.truncate(blocks);
    vector
}

/// Wipes a vector, and keeps it where there is room.
pub(crate) fn give_back(mut vector: Vec<Block>) {
    wipe(&mut vector);
    if vector.capacity() < LEAST_BLOCKS || vector.capacity() > KEPT_BLOCKS {
        return;
    }
    vector.resize(vector.capacity(), Block::ZERO);
    // A thread that ends has no spare any more: the vector is wiped and that is all.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let all = || spare.iter().chain([&vector]).map(Vec::capacity);
        let limit = (KEPT_TIMES * all().max().unwrap_or(0)).clamp(KEPT_ALWAYS, KEPT_BLOCKS);
        let mut kept: usize = all().sum();
        while kept > limit && !spare.is_empty() {
            kept -= spare.remove(0).capacity();
        }
        spare.push(vector);
    });
}

/// Blocks in the clear, or on their way: taken from the spare ones, wiped and given back.
#[derive(Default)]
pub struct ClearVector(Vec<Block>);

impl ClearVector {
    pub fn new(blocks: Vec<Block>) -> Self {
        Self(blocks)
    }

    pub fn zeros(blocks: usize) -> Self {
        Self(zeros(blocks))
    }

    /// All of these, one behind the other.
    pub fn joined<'a>(pieces: impl Iterator<Item = &'a [Block]> + Clone) -> Self {
        let mut all = room(pieces.clone().map(<[Block]>::len).sum());
        pieces.for_each(|piece| all.extend_from_slice(piece));
        Self(all)
    }

    pub fn copied(blocks: &[Block]) -> Self {
        Self::joined(std::iter::once(blocks))
    }

    /// What it held, for somebody else to wipe.
    pub fn into_blocks(mut self) -> Vec<Block> {
        std::mem::take(&mut self.0)
    }
}

impl Clone for ClearVector {
    fn clone(&self) -> Self {
        Self::copied(&self.0)
    }
}

impl Deref for ClearVector {
    type Target = Vec<Block>;

    fn deref(&self) -> &Vec<Block> {
        &self.0
    }
}

impl DerefMut for ClearVector {
    fn deref_mut(&mut self) -> &mut Vec<Block> {
        &mut self.0
    }
}

impl Drop for ClearVector {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

/// Zeros in all that a vector of bytes has room for.
pub(crate) fn wipe_bytes(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.resize(bytes.capacity(), 0);
    optimization_barrier(bytes.as_mut_slice());
}

/// Zeros that stay, though nobody reads them.
pub(crate) fn wipe(vector: &mut [Block]) {
    vector.fill(Block::ZERO);
    optimization_barrier(vector);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_zero() {
        for blocks in [1, LEAST_BLOCKS, 3000, 2999, 1600] {
            let mut vector = zeros(blocks);
            assert!(vector.len() == blocks && vector.iter().all(|&b| b == Block::ZERO));
            vector.fill(Block(7));
            give_back(vector);
        }
    }

    #[test]
    fn a_vector_is_used_again_and_not_for_a_short_one() {
        let vector = zeros(5000);
        let at = vector.as_ptr();
        give_back(vector);
        let short = zeros(600);
        assert!(short.as_ptr() != at);
        let again = zeros(4990);
        assert!(again.as_ptr() == at);
    }

    /// Vectors from elsewhere come back as well: they do not pile up.
    #[test]
    fn short_vectors_do_not_pile_up() {
        (0..1000).for_each(|i| give_back(vec![Block::ZERO; 3000 + i]));
        let kept = SPARE.with_borrow(|spare| spare.iter().map(Vec::capacity).sum::<usize>());
        assert!((KEPT_ALWAYS / 2..=KEPT_ALWAYS).contains(&kept), "{kept}");
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        for _ in 0..5 {
            let vectors: Vec<_> = (0..3).map(|_| zeros(KEPT_BLOCKS / 2)).collect();
            vectors.into_iter().for_each(give_back);
            give_back(zeros(LEAST_BLOCKS));
            let kept = SPARE.with_borrow(|spare| spare.iter().map(Vec::capacity).sum::<usize>());
            assert!(kept <= KEPT_BLOCKS, "{kept}");
        }
    }
}

//! What a device takes of a GPU's memory, from sizes. The driver has some for itself: it is not counted.

use crate::copies::{self, COPY_BLOCKS};
use crate::device::{CHUNK_MAX, FEW_THREADS, KEY_BLOCKS, LANE_MAX, LANES, LEAST_HANDED, RAW_BLOCKS};
use crate::digest;
use crate::vectors::SLOTS;
use kernels::Block;

/// Blocks of a chunk of vectors that stay, at least: pieces of messages lie in one.
const CHUNK_MIN: usize = 1 << 12;

/// Bytes without which no computation on a GPU begins: those of the smallest pieces, and of one lane.
#[must_use]
pub fn least_bytes() -> usize {
    with(CHUNK_MIN, 1)
}

/// Bytes of the buffers of a computation on a GPU with the usual pieces, vectors that stay apart.
#[must_use]
pub fn buffer_bytes() -> usize {
    with(CHUNK_MAX, LANES)
}

/// Blocks from which on an operation on vectors of the host is handed over.
#[must_use]
pub const fn least_handed() -> usize {
    LEAST_HANDED
}

/// Bytes of a vector of shares of so many blocks.
#[must_use]
pub fn vector_bytes(blocks: usize) -> usize {
    3 * Block::BYTES * blocks
}

/// Blocks of a lane with pieces of so many blocks.
pub(crate) fn lane_blocks(lane: usize, host_digest: usize) -> usize {
    15 * lane + 2 * digest::scratch(lane, host_digest)
}

/// Blocks of a slot with chunks of so many blocks.
pub(crate) fn slot_blocks(chunk: usize, host_digest: usize) -> usize {
    let messages = copies::scratch_blocks(chunk);
    5 * chunk + 4 * digest::scratch(chunk, host_digest) + 3 * FEW_THREADS.min(chunk) + messages
}

/// Bytes of all buffers with chunks of so many blocks, and so many lanes.
fn with(chunk: usize, lanes: usize) -> usize {
    buffers((chunk, LANE_MAX.min(chunk)), lanes, digest::HOST_BLOCKS)
}

/// The same with pieces of another length in lanes, and so many blocks of a digest left to the host.
pub(crate) fn buffers((chunk, lane): (usize, usize), lanes: usize, host_digest: usize) -> usize {
    let all = lanes * lane_blocks(lane, host_digest) + SLOTS * slot_blocks(chunk, host_digest);
    Block::BYTES * (RAW_BLOCKS + 3 * KEY_BLOCKS + COPY_BLOCKS + all)
}

/// The longest chunks whose buffers leave so many bytes for vectors, or half of all; the shortest ones where
/// none do. Nothing where these do not fit.
pub(crate) fn chunk_within(most: usize, vectors: usize) -> Option<usize> {
    let left = vectors.min(most / 2);
    let mut sizes = (CHUNK_MIN.ilog2()..=CHUNK_MAX.ilog2()).rev().map(|log| 1 << log);
    let fits = sizes.find(|&chunk| with(chunk, LANES) <= most - left);
    fits.or_else(|| (least_bytes() <= most).then_some(CHUNK_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_what_there_is() {
        assert_eq!(chunk_within(usize::MAX, 1 << 40), Some(CHUNK_MAX));
        assert_eq!(chunk_within(buffer_bytes() + 7, 7), Some(CHUNK_MAX));
        assert_eq!(chunk_within(least_bytes(), 0), Some(CHUNK_MIN));
        assert_eq!(chunk_within(least_bytes() - 1, 0), None);
        for most in [1 << 24, 1 << 26, 1 << 28, 1 << 30] {
            let chunk = chunk_within(most, usize::MAX).unwrap();
            assert!(with(chunk, LANES) <= most / 2 || chunk == CHUNK_MIN, "{most}");
        }
        assert!(least_bytes() < 16 << 20 && buffer_bytes() < 1 << 29);
    }
}

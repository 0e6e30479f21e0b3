//! Digests as trees on the GPU, and how the digest of a chunk goes on from what was digested before.

use crate::driver::Lane;
use crate::jobs;
use base::Error;
use kernels::{Block, gf_add_multiples};

/// Logarithm of how many blocks a thread takes.
const TAKE_LOG: u32 = 3;
/// Logarithm of the most threads of a level: the highest power of the key that the GPU has, and enough to
/// fill one.
const LEVEL_LOG_MAX: u32 = 16;

/// Blocks of scratch that the tree of so many blocks needs, the result included.
pub(crate) fn scratch(blocks: usize) -> usize {
    levels(blocks).map(|log| 1 << log).sum()
}

/// Logarithms of the sizes of the levels, down to zero.
fn levels(blocks: usize) -> impl Iterator<Item = u32> {
    let first = blocks.max(1).ilog2().saturating_sub(TAKE_LOG).min(LEVEL_LOG_MAX);
    std::iter::successors(Some(first), |&log| (log > 0).then(|| log.saturating_sub(TAKE_LOG)))
}

/// Queues the digest, under the tag of a part, of `blocks` blocks that lie at `from` in the lane's buffer, after
/// nothing. It comes to lie at the place in the buffer that is returned; `at` is where its scratch begins.
pub(crate) fn launch(
    lane: &mut Lane,
    keys: u64,
    part: u64,
    from: usize,
    blocks: usize,
    at: usize,
) -> Result<usize, Error> {
    let (mut from, mut blocks, mut at) = (from, blocks, at);
    for log in levels(blocks) {
        let threads = 1 << log;
        let [x, y] = [lane.address(from, blocks), lane.address(at, threads)];
        let job = jobs::Digest { blocks: blocks as u64, log: log.into(), part, keys, x, y };
        lane.launch(job, threads as u64)?;
        (from, blocks, at) = (at, threads, at + threads);
    }
    Ok(from)
}

fn product(a: Block, b: Block) -> Block {
    let mut sum = [Block::ZERO];
    gf_add_multiples(a, &[b], &mut sum);
    sum[0]
}

/// The digest of what has the digest `before`, followed by `blocks` blocks that alone have the digest
/// `chunk`: `before h^blocks + chunk`.
pub(crate) fn append(element: Block, before: Block, blocks: usize, chunk: Block) -> Block {
    let (mut sum, mut power, mut left) = (before, element, blocks);
    while left > 0 {
        if left & 1 == 1 {
            sum = product(sum, power);
        }
        power = product(power, power);
        left >>= 1;
    }
    sum ^ chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::{GfKey, gf_digest};

    #[test]
    fn digests_go_on() {
        let (element, before) = (Block(0x1234_5678_9abc_def0_0fed_cba9_8765_4321), Block(99));
        let key = GfKey::new(element);
        for n in [0, 1, 2, 3, 64, 100] {
            let x: Vec<Block> =
                (0..n as u128).map(|i| Block(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
            let alone = gf_digest(&key, Block::ZERO, &x);
            assert!(append(element, before, n, alone) == gf_digest(&key, before, &x), "{n} blocks");
        }
    }

    #[test]
    fn levels_end_in_one_thread() {
        for blocks in [0, 1, 7, 8, 9, 1000, 1 << 18, 1 << 24] {
            let logs: Vec<u32> = levels(blocks).collect();
            assert_eq!(logs.last(), Some(&0));
            assert!(logs.is_sorted_by(|a, b| a > b) && logs[0] <= LEVEL_LOG_MAX);
        }
    }
}

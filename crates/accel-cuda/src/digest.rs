//! Digests: levels of a tree on the GPU, of which the last few thousand blocks are digested by the host.

use crate::driver::Lane;
use crate::jobs;
use base::Error;

/// Logarithm of how many blocks a thread takes.
const TAKE_LOG: u32 = 3;
/// Logarithm of the most threads of a level: the highest power of the key that the GPU has, and enough to
/// fill one.
const LEVEL_LOG_MAX: u32 = 16;
/// Blocks that are left to the host, at most: another level would take the GPU longer than the copy of them
/// and the host's part together.
pub(crate) const HOST_BLOCKS: usize = 1 << 13;

/// What is left of a digest for the host: so many blocks at a place of the lane's buffer.
#[derive(Clone, Copy)]
pub(crate) struct DigestRest {
    pub(crate) from: usize,
    pub(crate) blocks: usize,
}

/// Blocks of scratch that the tree of so many blocks needs, of which the host takes `host` at most.
pub(crate) fn scratch(blocks: usize, host: usize) -> usize {
    levels(blocks, host).map(|log| 1 << log).sum()
}

/// Blocks that the host gets of a digest of so many.
pub(crate) fn left(blocks: usize, host: usize) -> usize {
    levels(blocks, host).last().map_or(blocks, |log| 1 << log)
}

/// Logarithms of the sizes of the levels, down to what the host takes; none where it takes it all.
fn levels(blocks: usize, host: usize) -> impl Iterator<Item = u32> {
    let first = blocks.max(1).ilog2().saturating_sub(TAKE_LOG).min(LEVEL_LOG_MAX);
    let first = (blocks > host).then_some(first);
    std::iter::successors(first, move |&log| (1 << log > host).then(|| log.saturating_sub(TAKE_LOG)))
}

/// Queues the levels of the digest, under the tag of a part, of `blocks` blocks that lie at `from` in the
/// lane's buffer, after nothing. What is left for the host comes to lie at the place in the buffer that is
/// returned; `at` is where its scratch begins.
pub(crate) fn launch(
    lane: &mut Lane,
    (keys, part, host): (u64, u64, usize),
    from: usize,
    blocks: usize,
    at: usize,
) -> Result<DigestRest, Error> {
    if levels(blocks, host).next().is_none() {
        return Ok(DigestRest { from, blocks });
    }
    let x = lane.address(from, blocks);
    launch_at(lane, (keys, part, host), x, blocks, at)
}

/// As [`launch`], of blocks at an address, more than the host takes.
pub(crate) fn launch_at(
    lane: &mut Lane,
    (keys, part, host): (u64, u64, usize),
    mut x: u64,
    mut blocks: usize,
    at: usize,
) -> Result<DigestRest, Error> {
    let mut next = at;
    for log in levels(blocks, host) {
        let threads = 1 << log;
        let y = lane.address(next, threads);
        let (all, log) = (blocks as u64, log.into());
        let job = jobs::Digest { blocks: all, piece: all, log, part, keys, x, y };
        lane.launch(job, threads as u64)?;
        (x, blocks, next) = (y, threads, next + threads);
    }
    Ok(DigestRest { from: next - blocks, blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_where_the_host_goes_on() {
        for host in [1, 4, HOST_BLOCKS] {
            for blocks in [0, 1, host] {
                assert!(levels(blocks, host).next().is_none() && left(blocks, host) == blocks);
            }
            for blocks in [host + 1, 1000 * host, 1 << 24] {
                let logs: Vec<u32> = levels(blocks, host).collect();
                assert!(logs.is_sorted_by(|a, b| a > b) && logs[0] <= LEVEL_LOG_MAX);
                assert!(left(blocks, host) <= host && left(blocks, host) == 1 << logs[logs.len() - 1]);
            }
        }
    }
}

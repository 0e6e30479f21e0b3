//! Copies between vectors of the host and pinned memory, by several threads where they are long: one thread
//! moves less than PCIe does.

use kernels::Block;

/// Threads that copy, at most.
const THREADS: usize = 4;
/// Blocks from which on another thread is worth its start.
const THREAD_BLOCKS: usize = 1 << 15;

/// Ranges to copy, target and source of equal length.
#[derive(Default)]
pub(crate) struct Copies<'a> {
    list: Vec<(&'a mut [Block], &'a [Block])>,
    blocks: usize,
}

impl<'a> Copies<'a> {
    pub(crate) fn push(&mut self, target: &'a mut [Block], source: &'a [Block]) {
        assert_eq!(target.len(), source.len(), "equal lengths");
        self.blocks += target.len();
        self.list.push((target, source));
    }

    /// Copies it all.
    pub(crate) fn run(self) {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = (self.blocks / THREAD_BLOCKS).clamp(1, THREADS.min(cores));
        if threads == 1 {
            return self.list.into_iter().for_each(|(target, source)| target.copy_from_slice(source));
        }
        let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (target, source) in self.list {
            let each = target.len().div_ceil(threads).max(1);
            let pieces = target.chunks_mut(each).zip(source.chunks(each));
            shares.iter_mut().zip(pieces).for_each(|(share, piece)| share.push(piece));
        }
        std::thread::scope(|scope| {
            for share in shares {
                scope.spawn(|| share.into_iter().for_each(|(target, source)| target.copy_from_slice(source)));
            }
        });
    }
}

/// Takes the next `blocks` of a buffer.
pub(crate) fn split<'a>(buffer: &mut &'a mut [Block], blocks: usize) -> &'a mut [Block] {
    let (head, tail) = std::mem::take(buffer).split_at_mut(blocks);
    *buffer = tail;
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_complete_with_any_number_of_threads() {
        for blocks in [0, 1, 5, THREAD_BLOCKS + 1, 3 * THREAD_BLOCKS + 7] {
            let source: Vec<Block> = (0..blocks as u128).map(|i| Block(i + 1)).collect();
            let mut target = vec![Block::ZERO; 2 * blocks];
            let mut rest = &mut target[..];
            let mut copies = Copies::default();
            copies.push(split(&mut rest, blocks), &source);
            copies.push(rest, &source);
            copies.run();
            assert!(target[..blocks] == source && target[blocks..] == source, "{blocks} blocks");
        }
    }
}

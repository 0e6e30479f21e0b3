//! Pages that full blocks lie in. Thousands of blocks on the heap would stay there when they are freed, for a
//! heap shrinks from its end alone; what lies here goes back to the system with the room.

use zeroize::Zeroize;

/// Bytes of a page.
const PAGE: usize = 4 << 10;
/// Pages that are taken from the system at a time: more bytes than any allocator keeps for later.
const SLAB: u64 = 16 << 10;

/// Memory in pages, as much as was allowed.
#[derive(Debug)]
pub(super) struct PagePool {
    slabs: Vec<Vec<u8>>,
    /// Numbers of pages that nothing lies in.
    free: Vec<u32>,
    /// Pages that may still be taken from the system.
    more: u64,
}

/// Where a block's bytes lie.
#[derive(Debug)]
pub(super) struct PagedBytes {
    pages: Box<[u32]>,
    len: usize,
}

impl PagedBytes {
    pub fn len(&self) -> usize {
        self.len
    }
}

impl PagePool {
    /// A pool of so many bytes at most, which it takes when it needs them.
    pub fn new(bytes: u64) -> Self {
        Self { slabs: Vec::new(), free: Vec::new(), more: (bytes / PAGE as u64).min(u64::from(u32::MAX)) }
    }

    /// Bytes that it has room for.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        PAGE as u64 * (self.free.len() as u64 + self.more)
    }

    /// Keeps a copy of `bytes`, if there is room.
    pub fn put(&mut self, bytes: &[u8]) -> Option<PagedBytes> {
        let wanted = bytes.len().div_ceil(PAGE);
        while self.free.len() < wanted {
            self.grow()?;
        }
        let pages: Box<[u32]> = self.free.drain(self.free.len() - wanted..).rev().collect();
        for (page, piece) in pages.iter().zip(bytes.chunks(PAGE)) {
            self.page_mut(*page)[..piece.len()].copy_from_slice(piece);
        }
        Some(PagedBytes { pages, len: bytes.len() })
    }

    /// Appends what lies there to `into`.
    pub fn read(&self, block: &PagedBytes, into: &mut Vec<u8>) {
        let end = into.len() + block.len;
        into.reserve_exact(block.len);
        for &page in &block.pages {
            let (slab, start) = place(page);
            into.extend_from_slice(&self.slabs[slab][start..][..PAGE.min(end - into.len())]);
        }
    }

    /// Takes the room of a block back, and makes zeros of what lay there.
    pub fn give(&mut self, block: &PagedBytes) {
        block.pages.iter().for_each(|page| self.page_mut(*page).zeroize());
        self.free.extend(&block.pages);
    }

    /// Takes a slab from the system, or what is left.
    fn grow(&mut self) -> Option<()> {
        let pages = self.more.min(SLAB);
        let first = self.slabs.len() as u64 * SLAB;
        // Zeros that nobody wrote take no memory yet.
        self.slabs.push((pages > 0).then(|| vec![0; pages as usize * PAGE])?);
        self.more -= pages;
        self.free.splice(0..0, (first..first + pages).rev().map(|page| page as u32));
        Some(())
    }

    fn page_mut(&mut self, page: u32) -> &mut [u8] {
        let (slab, start) = place(page);
        &mut self.slabs[slab][start..][..PAGE]
    }
}

/// The slab of a page, and where in it the page begins.
fn place(page: u32) -> (usize, usize) {
    let (slab, at) = (u64::from(page) / SLAB, u64::from(page) % SLAB);
    (slab as usize, at as usize * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_their_room_is_used_again() {
        let mut pool = PagePool::new(10 * PAGE as u64 + 17);
        let block = |i: usize| (0..i * 3000).map(|at| (at * i) as u8).collect::<Vec<u8>>();
        for _ in 0..3 {
            let kept: Vec<PagedBytes> = (0..4).map(|i| pool.put(&block(i)).unwrap()).collect();
            // 0, 1, 2 and 3 pages.
            assert_eq!(pool.left(), 4 * PAGE as u64);
            assert!(pool.put(&[0; 4 * PAGE + 1]).is_none());
            for (i, kept) in kept.iter().enumerate() {
                let mut read = vec![9];
                pool.read(kept, &mut read);
                assert!(read[0] == 9 && read[1..] == block(i) && kept.len() == i * 3000);
            }
            kept.iter().for_each(|kept| pool.give(kept));
            let mut wiped = Vec::new();
            pool.read(&kept[3], &mut wiped);
            assert!(wiped == [0; 9000]);
        }
        assert_eq!((pool.left(), pool.slabs.len()), (10 * PAGE as u64, 1));
    }

    #[test]
    fn pages_of_every_slab_are_their_own() {
        let mut pool = PagePool::new(u64::MAX);
        let kept: Vec<PagedBytes> =
            (0..SLAB as usize + 5).map(|i| pool.put(&i.to_le_bytes()).unwrap()).collect();
        let mut read = Vec::new();
        kept.iter().for_each(|kept| pool.read(kept, &mut read));
        assert!(read.as_chunks().0.iter().copied().map(usize::from_le_bytes).eq(0..SLAB as usize + 5));
    }
}

//! Bytes dealt to parts, which are taken one after the other.

use super::{BLOCK_BYTES, Block, Blocks, PARTS, SpillRoom, give_back};
use base::Error;
use zeroize::Zeroize;

/// Parts of bytes: each comes back in the order in which it was filled.
pub(crate) struct SpillDeal {
    blocks: Blocks,
    parts: Vec<DealtPart>,
    block: usize,
}

#[derive(Default)]
struct DealtPart {
    full: Vec<Block>,
    open: Vec<u8>,
}

impl SpillDeal {
    /// So many parts, empty.
    pub fn new(room: &SpillRoom, parts: usize) -> Self {
        let [most, least] = BLOCK_BYTES;
        let open = room.0.memory.map_or(u64::MAX, |memory| memory / PARTS) / parts.max(1) as u64;
        let block = open.clamp(least, most) as usize;
        Self { blocks: Blocks::new(room), parts: (0..parts).map(|_| DealtPart::default()).collect(), block }
    }

    /// The least bytes of a room in which so many parts are filled at a time.
    pub fn least_room(parts: u64) -> u64 {
        PARTS * BLOCK_BYTES[1] * parts
    }

    /// Adds to a part.
    ///
    /// # Errors
    /// When it has to go to disk and cannot.
    pub fn push(&mut self, part: usize, bytes: &[u8]) -> Result<(), Error> {
        let DealtPart { full, open } = &mut self.parts[part];
        let need = open.len() + bytes.len();
        if open.capacity() < need {
            // By doubling, but no further than a block and what exceeds it.
            let room = (2 * open.capacity()).min(self.block + bytes.len()).max(need);
            open.reserve_exact(room - open.len());
        }
        open.extend_from_slice(bytes);
        if open.len() >= self.block {
            full.push(self.blocks.put(open)?);
        }
        Ok(())
    }

    /// Replaces `into` by a part, which is empty then.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn take(&mut self, part: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        let DealtPart { full, mut open } = std::mem::take(&mut self.parts[part]);
        into.reserve_exact(full.iter().map(Block::len).sum::<usize>() + open.len());
        full.iter().try_for_each(|block| self.blocks.get(block, into))?;
        into.extend_from_slice(&open);
        open.zeroize();
        Ok(())
    }
}

/// What nobody took is wiped.
impl Drop for SpillDeal {
    fn drop(&mut self) {
        give_back(&self.blocks.room, self.parts.iter().flat_map(|part| &part.full));
        self.parts.iter_mut().for_each(|part| part.open.zeroize());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_from_memory_and_from_disk() {
        for memory in [None, Some(1)] {
            let room = SpillRoom::new(memory, None);
            let mut deal = SpillDeal::new(&room, 7);
            let record = |i: u32| vec![i as u8; 1 + i as usize % 40];
            let dealt = |part: u32| (0..200_000).filter(move |i| i % 7 == part).flat_map(record);
            (0..200_000).for_each(|i| deal.push(i as usize % 7, &record(i)).unwrap());
            let mut back = Vec::new();
            for part in [3, 0, 6, 1, 2, 5, 4] {
                deal.take(part, &mut back).unwrap();
                assert!(back.iter().copied().eq(dealt(part as u32)));
                deal.take(part, &mut back).unwrap();
                assert!(back.is_empty());
            }
            assert_eq!(room.spilled().read > 0, memory.is_some());
        }
    }
}

//! Copies between slots and the memory of the transport, and digests of the messages, made where the GPU
//! has them: of what is sent behind stage 1, of what arrived behind stage 2. So nobody on the host reads a
//! message, and what is checked is what is used.
//!
//! Nothing is computed on the streams of copies of long chunks: on a GPU that several processes share a
//! kernel waits for its turn, and a copy does not.

use crate::driver::{DeviceBuffer, Lane, Module, Move, PlacedCopies, Registry, Stream};
use crate::jobs;
use accel::{Copying, DIGESTED_PIECES, MessagePiece, PIECE_BLOCKS};
use base::Error;
use kernels::{Block, GfKey, Place, gf_digest};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Logarithms of how many blocks each level leaves of a piece ([`crate::digest`] has the rule); those of the
/// last one the host digests, a 64th of the piece.
const FIRST_LOG: usize = 9;
const LAST_LOG: usize = 6;
/// Copies under way each way for which there are lanes from the beginning.
const LANES_AHEAD: usize = 2;

/// Blocks on the GPU of all lanes for copies, which need none.
pub(crate) const COPY_BLOCKS: usize = 2 * LANES_AHEAD;

/// Pieces of so many blocks.
fn pieces_of(blocks: usize) -> usize {
    blocks.div_ceil(PIECE_BLOCKS)
}

/// Blocks on the host of what is left of digests of A and C of a chunk.
pub(crate) fn rest_blocks(chunk: usize) -> usize {
    (2 * pieces_of(chunk)) << LAST_LOG
}

/// Blocks on the GPU of digests of messages of a chunk: the first level, and the last one of each stage.
pub(crate) fn scratch_blocks(chunk: usize) -> usize {
    let [_, _, last] = scratch_places(0, chunk);
    last + rest_blocks(chunk)
}

/// Where in a slot's buffer the first level, the last one of what is sent and that of what arrived lie, of
/// which the first is at `from`.
pub(crate) fn scratch_places(from: usize, chunk: usize) -> [usize; 3] {
    let rests = from + ((2 * pieces_of(chunk)) << FIRST_LOG);
    [from, rests, rests + rest_blocks(chunk)]
}

/// Lanes for copies one way: a lane serves one copy until that is waited for.
#[derive(Clone)]
pub(crate) struct CopyLanes {
    module: Arc<Module>,
    free: Arc<Mutex<Vec<Lane>>>,
}

impl CopyLanes {
    pub(crate) fn new(module: &Arc<Module>) -> Result<Self, Error> {
        let lanes = Self { module: module.clone(), free: Arc::default() };
        for _ in 0..LANES_AHEAD {
            lanes.give_back(lanes.make()?);
        }
        Ok(lanes)
    }

    fn make(&self) -> Result<Lane, Error> {
        Lane::new(&self.module, DIGESTED_PIECES << LAST_LOG, 1)
    }

    fn take(&self) -> Result<Lane, Error> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| self.make(), Ok)
    }

    fn give_back(&self, lane: Lane) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
    }
}

/// A key of messages, and its powers on the GPU.
#[derive(Clone)]
pub(crate) struct MessageKey {
    pub(crate) key: Arc<GfKey>,
    pub(crate) expanded: Arc<DeviceBuffer>,
}

/// A and C of a chunk in the buffer of its slot.
#[derive(Clone)]
pub(crate) struct ChunkMessages {
    pub(crate) buffer: Arc<DeviceBuffer>,
    pub(crate) at: [usize; 2],
    /// Blocks of each.
    pub(crate) blocks: usize,
    /// Of which there is a C.
    pub(crate) with_c: Range<usize>,
}

impl ChunkMessages {
    /// Where pieces lie here and in the transport's memory, one part after the other: then rows of one copy
    /// follow each other.
    fn moves(&self, pieces: &[MessagePiece], places: &[Vec<Place>]) -> Vec<Move> {
        let mut moves = Vec::new();
        for of_c in [false, true] {
            for (piece, places) in pieces.iter().zip(places).filter(|(piece, _)| piece.of_c == of_c) {
                let mut at = (self.at[usize::from(of_c)] + piece.blocks.start) * Block::BYTES;
                for place in places {
                    moves.push((at, place.clone()));
                    at += place.bytes();
                }
            }
        }
        moves
    }

    /// Queues digests of all pieces, those of A and then those of C. `scratch` and `rests` are where the
    /// first level and what is left of them come to lie in the lane's buffer.
    pub(crate) fn digest(
        &self,
        lane: &mut Lane,
        key: &MessageKey,
        [scratch, rests]: [usize; 2],
    ) -> Result<MessageDigests, Error> {
        let (keys, blocks, count) =
            (key.expanded.address(0, key.expanded.blocks()), self.blocks, pieces_of(self.blocks));
        let parts = 1 + usize::from(!self.with_c.is_empty());
        for (part, at) in self.at.iter().enumerate().take(parts) {
            let x = self.buffer.address(*at, blocks);
            let y = lane.address(scratch + ((part * count) << FIRST_LOG), count << FIRST_LOG);
            let (blocks, piece, log) = (blocks as u64, PIECE_BLOCKS as u64, FIRST_LOG as u64);
            lane.launch(
                jobs::Digest { blocks, piece, log, part: 0, keys, x, y },
                (count << FIRST_LOG) as u64,
            )?;
        }
        let count = parts * count;
        let [x, y] = [lane.address(scratch, count << FIRST_LOG), lane.address(rests, count << LAST_LOG)];
        let (blocks, piece, log) = ((count << FIRST_LOG) as u64, 1 << FIRST_LOG, LAST_LOG as u64);
        lane.launch(jobs::Digest { blocks, piece, log, part: 0, keys, x, y }, (count << LAST_LOG) as u64)?;
        Ok(MessageDigests { key: key.key.clone(), from: rests, count })
    }
}

/// Digests of the messages of a chunk, of which the last level lies in a buffer on the GPU.
#[derive(Clone)]
pub(crate) struct MessageDigests {
    key: Arc<GfKey>,
    pub(crate) from: usize,
    count: usize,
}

impl MessageDigests {
    /// Blocks that are left of all of them.
    pub(crate) fn blocks(&self) -> usize {
        self.count << LAST_LOG
    }

    /// The digests, from what is left of them, which is wiped.
    pub(crate) fn read(&self, left: &mut [Block]) -> Zeroizing<Vec<Block>> {
        let digest = |rest: &[Block]| gf_digest(&self.key, Block::ZERO, rest);
        let digests = left.chunks(1 << LAST_LOG).map(digest).collect();
        left.iter_mut().for_each(Zeroize::zeroize);
        Zeroizing::new(digests)
    }

    /// Which digest is that of a piece of a message of so many blocks, if the piece is one of those digested.
    fn place(&self, piece: &MessagePiece, blocks: usize) -> Option<usize> {
        let (start, end) = (piece.blocks.start, piece.blocks.end);
        let whole =
            start.is_multiple_of(PIECE_BLOCKS) && end == blocks.min(start + PIECE_BLOCKS) && start < end;
        let place = usize::from(piece.of_c) * pieces_of(blocks) + start / PIECE_BLOCKS;
        (whole && place < self.count).then_some(place)
    }
}

/// Copies under way, and what is left of digests of what they copy.
pub(crate) struct CudaCopies {
    copies: Option<PlacedCopies>,
    /// Until it is given back.
    lane: Option<(Lane, CopyLanes)>,
    /// With which piece comes first, second and so on.
    digests: Option<(MessageDigests, Vec<usize>)>,
}

impl CudaCopies {
    /// Queues copies of pieces to the memory of a transport, or from there, and with them what is left of
    /// digests, where all pieces have some.
    pub(crate) fn queue(
        home: &CopyLanes,
        (messages, registry): (&ChunkMessages, &Registry),
        digests: Option<&MessageDigests>,
        (pieces, places): (&[MessagePiece], &[Vec<Place>]),
        sends: bool,
    ) -> Result<Box<dyn Copying>, Error> {
        let lane = home.take()?;
        let mut copies = PlacedCopies::new(lane.parts().0.clone(), messages.buffer.clone());
        copies.queue(sends, registry, &messages.moves(pieces, places))?;
        let mut this = Self { copies: Some(copies), lane: Some((lane, home.clone())), digests: None };
        if let Some(digests) = digests {
            this.fetch(messages, digests, pieces)?;
        }
        Ok(Box::new(this))
    }

    /// The same on a stream of somebody else, whom it waits for as well.
    pub(crate) fn queue_on(
        stream: Arc<Stream>,
        (messages, registry): (&ChunkMessages, &Registry),
        (pieces, places): (&[MessagePiece], &[Vec<Place>]),
        sends: bool,
    ) -> Result<Box<dyn Copying>, Error> {
        let mut copies = PlacedCopies::new(stream, messages.buffer.clone());
        copies.queue(sends, registry, &messages.moves(pieces, places))?;
        Ok(Box::new(Self { copies: Some(copies), lane: None, digests: None }))
    }

    fn fetch(
        &mut self,
        messages: &ChunkMessages,
        digests: &MessageDigests,
        pieces: &[MessagePiece],
    ) -> Result<(), Error> {
        let places = pieces.iter().map(|piece| digests.place(piece, messages.blocks)).collect();
        let (Some(places), Some((lane, _))): (Option<Vec<usize>>, _) = (places, &mut self.lane) else {
            return Ok(());
        };
        if places.is_empty() || places.len() > DIGESTED_PIECES {
            return Ok(());
        }
        lane.enter()?;
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&piece| places[piece]);
        // A and C come by turns: in order of their places one copy takes all of A, and one all of C.
        let mut done = 0;
        for run in order.chunk_by(|&one, &next| places[one] + 1 == places[next]) {
            let from = digests.from + (places[run[0]] << LAST_LOG);
            lane.download_from(&messages.buffer, from, done << LAST_LOG, run.len() << LAST_LOG)?;
            done += run.len();
        }
        self.digests = Some((MessageDigests { count: done, ..digests.clone() }, order));
        Ok(())
    }
}

impl Copying for CudaCopies {
    fn wait(mut self: Box<Self>) -> Result<Zeroizing<Vec<Block>>, Error> {
        if let Some(copies) = self.copies.take() {
            copies.wait()?;
        }
        match (&mut self.lane, self.digests.take()) {
            (Some((lane, _)), Some((digests, order))) => {
                let sorted = digests.read(&mut lane.host()?[..digests.blocks()]);
                let mut all = Zeroizing::new(vec![Block::ZERO; order.len()]);
                order.iter().zip(sorted.iter()).for_each(|(&piece, digest)| all[piece] = *digest);
                Ok(all)
            }
            _ => Ok(Zeroizing::default()),
        }
    }
}

impl Drop for CudaCopies {
    fn drop(&mut self) {
        // Waits for copies, if nobody did.
        self.copies = None;
        if let Some((mut lane, home)) = self.lane.take()
            && lane.wait().is_ok()
        {
            home.give_back(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_were_digested_are_found() {
        let digests = MessageDigests { key: Arc::new(GfKey::new(Block::ONE)), from: 0, count: 6 };
        let n = 2 * PIECE_BLOCKS + 700;
        let place = |of_c, from: usize, to: usize| digests.place(&MessagePiece { of_c, blocks: from..to }, n);
        assert_eq!(place(false, 0, PIECE_BLOCKS), Some(0));
        assert_eq!(place(false, 2 * PIECE_BLOCKS, n), Some(2));
        assert_eq!(place(true, PIECE_BLOCKS, 2 * PIECE_BLOCKS), Some(4));
        let none = [(0, 5), (1, PIECE_BLOCKS), (0, n), (PIECE_BLOCKS, PIECE_BLOCKS), (n, n)];
        assert!(none.into_iter().all(|(from, to)| place(false, from, to).is_none()));
        let without_c = MessageDigests { count: 3, ..digests.clone() };
        assert_eq!(without_c.place(&MessagePiece { of_c: true, blocks: 0..PIECE_BLOCKS }, n), None);
        assert_eq!([rest_blocks(n), scratch_blocks(n)], [6 * 64, 6 * 512 + 2 * 6 * 64]);
    }
}

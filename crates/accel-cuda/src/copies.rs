//! Copies between slots and the memory of the transport, and digests of what is copied, made where the GPU has
//! it: of what is sent before it leaves, of what arrived after it came. So nobody on the host reads a message,
//! and what is checked is what is used.
//!
//! A piece of up to 2^12 blocks becomes 2^9 by one kernel and 2^6 by another ([`crate::digest`] has the rule);
//! these the host digests, which is a 64th of the piece.

use crate::driver::{DeviceBuffer, Lane, Module, Move, PlacedCopies, Registry};
use crate::jobs;
use accel::{Copying, DIGESTED_PIECES, MessagePiece, PIECE_BLOCKS};
use base::Error;
use kernels::{Block, GfKey, Place, gf_digest};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Logarithms of how many blocks each level leaves of a piece.
const FIRST_LOG: usize = 9;
const LAST_LOG: usize = 6;
/// Copies under way each way for which there are lanes from the beginning.
const LANES_AHEAD: usize = 2;

/// Blocks on the GPU of all lanes for copies.
pub(crate) const COPY_BLOCKS: usize = 2 * LANES_AHEAD * SCRATCH_BLOCKS;
/// Blocks of a lane: both levels.
const SCRATCH_BLOCKS: usize = (DIGESTED_PIECES << FIRST_LOG) + (DIGESTED_PIECES << LAST_LOG);

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
        Lane::new(&self.module, DIGESTED_PIECES << LAST_LOG, SCRATCH_BLOCKS)
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

/// Where A and C of a chunk lie in the buffer of its slot.
#[derive(Clone)]
pub(crate) struct ChunkMessages {
    pub(crate) buffer: Arc<DeviceBuffer>,
    pub(crate) at: [usize; 2],
}

impl ChunkMessages {
    /// The first block of a piece.
    fn of(&self, piece: &MessagePiece) -> usize {
        self.at[usize::from(piece.of_c)] + piece.blocks.start
    }

    /// Where pieces lie here and in the transport's memory, one part after the other: then rows of one copy
    /// follow each other.
    fn moves(&self, pieces: &[MessagePiece], places: &[Vec<Place>]) -> Vec<Move> {
        let mut moves = Vec::new();
        for of_c in [false, true] {
            for (piece, places) in pieces.iter().zip(places).filter(|(piece, _)| piece.of_c == of_c) {
                let mut at = self.of(piece) * Block::BYTES;
                for place in places {
                    moves.push((at, place.clone()));
                    at += place.bytes();
                }
            }
        }
        moves
    }
}

/// Copies under way, and the digests of what they copy.
pub(crate) struct CudaCopies {
    copies: Option<PlacedCopies>,
    /// Until it is given back.
    lane: Option<Lane>,
    home: CopyLanes,
    digests: Option<PieceDigests>,
}

impl CudaCopies {
    /// Queues copies of pieces to the memory of a transport, or from there, and their digests where there is
    /// a key and they are short and few enough.
    pub(crate) fn queue(
        home: &CopyLanes,
        (messages, registry): (&ChunkMessages, &Registry),
        key: Option<&MessageKey>,
        (pieces, places): (&[MessagePiece], &[Vec<Place>]),
        sends: bool,
    ) -> Result<Box<dyn Copying>, Error> {
        let lane = home.take()?;
        let copies = PlacedCopies::new(lane.parts().0.clone(), messages.buffer.clone());
        let mut this = Self { copies: Some(copies), lane: Some(lane), home: home.clone(), digests: None };
        let key = key.filter(|_| PieceDigests::may(pieces));
        if let Some(key) = key.filter(|_| sends) {
            this.digest(messages, key, pieces)?;
        }
        if let Some(copies) = &mut this.copies {
            copies.queue(sends, registry, &messages.moves(pieces, places))?;
        }
        if let Some(key) = key.filter(|_| !sends) {
            this.digest(messages, key, pieces)?;
        }
        Ok(Box::new(this))
    }

    fn digest(
        &mut self,
        messages: &ChunkMessages,
        key: &MessageKey,
        pieces: &[MessagePiece],
    ) -> Result<(), Error> {
        if let Some(lane) = &mut self.lane {
            lane.enter()?;
            self.digests = Some(PieceDigests::queue(lane, messages, key, pieces)?);
        }
        Ok(())
    }
}

impl Copying for CudaCopies {
    fn wait(mut self: Box<Self>) -> Result<Zeroizing<Vec<Block>>, Error> {
        if let Some(copies) = self.copies.take() {
            copies.wait()?;
        }
        match (&mut self.lane, self.digests.take()) {
            (Some(lane), Some(digests)) => digests.read(lane),
            _ => Ok(Zeroizing::default()),
        }
    }
}

impl Drop for CudaCopies {
    fn drop(&mut self) {
        // Waits for copies, if nobody did.
        self.copies = None;
        if let Some(mut lane) = self.lane.take()
            && lane.wait().is_ok()
        {
            self.home.give_back(lane);
        }
    }
}

/// Digests of pieces under way.
struct PieceDigests {
    key: Arc<GfKey>,
    /// Which piece comes first, second and so on in the lane.
    order: Vec<usize>,
}

impl PieceDigests {
    /// Whether a lane has room for these.
    fn may(pieces: &[MessagePiece]) -> bool {
        let fits = |piece: &MessagePiece| (1..=PIECE_BLOCKS).contains(&piece.blocks.len());
        (1..=DIGESTED_PIECES).contains(&pieces.len()) && pieces.iter().all(fits)
    }

    fn queue(
        lane: &mut Lane,
        messages: &ChunkMessages,
        key: &MessageKey,
        pieces: &[MessagePiece],
    ) -> Result<Self, Error> {
        let keys = key.expanded.address(0, key.expanded.blocks());
        let mut order = Vec::with_capacity(pieces.len());
        for of_c in [false, true] {
            let of: Vec<usize> = (0..pieces.len()).filter(|&i| pieces[i].of_c == of_c).collect();
            let mut left = &of[..];
            while let Some(&first) = left.first() {
                let (run, rest) = left.split_at(run_of(pieces, left));
                let blocks: usize = run.iter().map(|&i| pieces[i].blocks.len()).sum();
                let x = messages.buffer.address(messages.of(&pieces[first]), blocks);
                let y = lane.address(order.len() << FIRST_LOG, run.len() << FIRST_LOG);
                let piece = pieces[first].blocks.len() as u64;
                let job =
                    jobs::Digest { blocks: blocks as u64, piece, log: FIRST_LOG as u64, part: 0, keys, x, y };
                lane.launch(job, (run.len() << FIRST_LOG) as u64)?;
                order.extend(run);
                left = rest;
            }
        }
        let (count, last) = (order.len(), DIGESTED_PIECES << FIRST_LOG);
        let [x, y] = [lane.address(0, count << FIRST_LOG), lane.address(last, count << LAST_LOG)];
        let (blocks, piece) = ((count << FIRST_LOG) as u64, 1 << FIRST_LOG);
        let job = jobs::Digest { blocks, piece, log: LAST_LOG as u64, part: 0, keys, x, y };
        lane.launch(job, (count << LAST_LOG) as u64)?;
        lane.download(last, 0, count << LAST_LOG)?;
        Ok(Self { key: key.key.clone(), order })
    }

    /// The digests, in the order of the pieces.
    fn read(&self, lane: &mut Lane) -> Result<Zeroizing<Vec<Block>>, Error> {
        let left = &mut lane.host()?[..self.order.len() << LAST_LOG];
        let mut digests = Zeroizing::new(vec![Block::ZERO; self.order.len()]);
        for (rest, &piece) in left.chunks(1 << LAST_LOG).zip(&self.order) {
            digests[piece] = gf_digest(&self.key, Block::ZERO, rest);
        }
        left.iter_mut().for_each(Zeroize::zeroize);
        Ok(digests)
    }
}

/// How many of the pieces, from the first on, follow each other, all as long as it but for the last one, which
/// may be shorter.
fn run_of(pieces: &[MessagePiece], these: &[usize]) -> usize {
    let of = |i: usize| &pieces[i].blocks;
    let each = of(these[0]).len();
    let follows = |pair: &&[usize]| {
        let [one, next] = [of(pair[0]), of(pair[1])];
        one.end == next.start && one.len() == each && next.len() <= each
    };
    1 + these.windows(2).take_while(follows).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_follow_each_other_are_one_run() {
        let piece = |blocks| MessagePiece { of_c: false, blocks };
        let pieces = [piece(0..5), piece(5..10), piece(10..12), piece(12..14), piece(20..25)];
        let runs = |these: &[usize]| run_of(&pieces, these);
        assert_eq!([runs(&[0, 1, 2, 3, 4]), runs(&[1, 2]), runs(&[2, 3, 4]), runs(&[4])], [3, 2, 2, 1]);
        assert!(PieceDigests::may(&pieces) && !PieceDigests::may(&[]));
        assert!(!PieceDigests::may(&[piece(3..3)]) && !PieceDigests::may(&[piece(0..PIECE_BLOCKS + 1)]));
        assert!(!PieceDigests::may(&vec![piece(0..1); DIGESTED_PIECES + 1]));
    }
}

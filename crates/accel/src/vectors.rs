//! Vectors that stay with a device between commands, and products of them in two stages.
//!
//! A product is cut into chunks, each under way in a *slot* of the device: [`VectorMemory::start`] begins
//! stage 1 and does not wait, [`VectorMemory::outbox`] gives what must be sent to another thread and
//! [`VectorMemory::inbox`] the room for what comes in, [`VectorMemory::fold`] begins stage 2 and does not
//! wait either, and [`VectorMemory::settle`] waits for the end. Only messages leave the device and come to
//! it, to and from the memory of the transport, which the device copies by itself.

use crate::steps::{VectorRun, VectorStep};
use crate::{ChunkHalves, VectorRing};
use base::Error;
use kernels::{Block, GfKey, Place};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// Pieces that are copied at once, at most, where a device has digested them.
pub const DIGESTED_PIECES: usize = 16;
/// Blocks of such a piece: those of a long message; the last one of a chunk may have fewer.
pub const PIECE_BLOCKS: usize = 1 << 12;

/// A vector of shares in the memory of a device, three parts of it. Dropping it gives the memory back, at the
/// device's next command.
pub struct DeviceVector {
    ring: VectorRing,
    blocks: usize,
    id: u64,
    dropped: DroppedVectors,
}

/// Which vectors of a device were dropped since it looked.
type DroppedVectors = Arc<Mutex<Vec<u64>>>;

impl DeviceVector {
    /// Of which elements.
    #[must_use]
    pub fn ring(&self) -> VectorRing {
        self.ring
    }

    /// Blocks of each part.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    pub(crate) fn same_vector(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.dropped, &other.dropped)
    }
}

impl Drop for DeviceVector {
    fn drop(&mut self) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
    }
}

/// What a device keeps of its vectors: a `T` each.
pub struct VectorTable<T> {
    vectors: BTreeMap<u64, T>,
    next: u64,
    dropped: DroppedVectors,
}

impl<T> Default for VectorTable<T> {
    fn default() -> Self {
        Self { vectors: BTreeMap::new(), next: 0, dropped: DroppedVectors::default() }
    }
}

impl<T> VectorTable<T> {
    /// Keeps the memory of a new vector.
    pub fn insert(&mut self, ring: VectorRing, blocks: usize, memory: T) -> DeviceVector {
        let id = self.next;
        self.next += 1;
        self.vectors.insert(id, memory);
        DeviceVector { ring, blocks, id, dropped: self.dropped.clone() }
    }

    /// The memory of vectors that were dropped.
    pub fn dropped(&mut self) -> Vec<T> {
        let ids = std::mem::take(&mut *self.dropped.lock().unwrap_or_else(PoisonError::into_inner));
        ids.into_iter().filter_map(|id| self.vectors.remove(&id)).collect()
    }

    /// Under which number a vector's memory is found later; a misuse where it is another device's.
    ///
    /// # Errors
    /// As said.
    pub fn id(&self, vector: &DeviceVector) -> Result<u64, Error> {
        if Arc::ptr_eq(&self.dropped, &vector.dropped) {
            return Ok(vector.id);
        }
        Err(Error::misuse("a vector of one device was given to another"))
    }

    /// The memory of a vector.
    ///
    /// # Errors
    /// A misuse where it was dropped.
    pub fn at(&mut self, id: u64) -> Result<&mut T, Error> {
        let gone = || Error::misuse("a vector was dropped while a product of it was under way");
        self.vectors.get_mut(&id).ok_or_else(gone)
    }
}

/// What is done about the messages that a seat vouches for, of vectors on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VouchBy {
    /// Nothing: semi-honest.
    Nothing,
    /// The device digests them, and what is received.
    Digest,
    /// They are handed out, for a hash that the device does not know.
    Expose,
}

/// A chunk of `z = sum over terms of x y`.
pub struct VectorProduct<'a> {
    /// Round of the session.
    pub round: u64,
    /// Which blocks of the result: all of them in one half, but where [`VectorMemory::joins`].
    pub at: Range<usize>,
    /// Pairs of factors: runs of as many blocks as the result has, one per term.
    pub factors: &'a [[&'a DeviceVector; 2]],
    /// The result: a vector of its own.
    pub z: &'a DeviceVector,
    /// Whether messages are hidden from the fourth party.
    pub masked: bool,
    /// What is done about those that this seat vouches for.
    pub vouch: VouchBy,
    /// Keys under which the device may digest the messages that are sent and those that are received, in
    /// pieces of [`PIECE_BLOCKS`], for tags of the transport.
    pub keys: [Option<&'a Arc<GfKey>>; 2],
}

impl VectorProduct<'_> {
    /// Terms of every dot product, of all pairs; 1 for products.
    ///
    /// # Errors
    /// Shapes that do not fit, blocks that the result does not have, and a round of 2^48 or more.
    pub fn terms(&self) -> Result<usize, Error> {
        let (ring, blocks) = (self.z.ring, self.z.blocks);
        let fits = self.factors.iter().all(|[x, y]| {
            let whole = blocks != 0 && x.blocks % blocks == 0 && x.blocks == y.blocks;
            whole && x.ring == ring && y.ring == ring
        });
        let within = self.at.start <= self.at.end && self.at.end <= blocks;
        if !fits || !within || self.factors.is_empty() || self.round >> 48 != 0 {
            return Err(Error::misuse("the vectors of a product do not fit each other"));
        }
        Ok(self.factors.iter().map(|[x, _]| x.blocks / blocks).sum())
    }

    /// How the chunk lies in the halves of the result.
    #[must_use]
    pub fn halves(&self) -> ChunkHalves {
        ChunkHalves::of(&self.at, self.z.blocks)
    }
}

/// What a seat vouches for of a chunk, A and C, C of those blocks alone whose C is not sent.
#[derive(Clone, Copy)]
pub enum StageVouch<'a> {
    /// Nothing.
    Nothing,
    /// Their digests, of this chunk alone.
    Digests([Block; 2]),
    /// Their blocks.
    Blocks([&'a [Block]; 2]),
}

/// A piece of a message: some blocks of A or of C of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePiece {
    /// Of C.
    pub of_c: bool,
    /// Which blocks of the chunk.
    pub blocks: Range<usize>,
}

impl MessagePiece {
    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.len() * Block::BYTES
    }
}

/// Copies under way. Dropped, it waits for them too: nobody writes to a place that is somebody else's.
pub trait Copying: Send {
    /// Waits for them, and gives the digests of all pieces, after nothing, as the device has them; none where
    /// it digests nothing.
    ///
    /// # Errors
    /// When the device failed.
    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<Block>>, Error>;
}

/// What a chunk sends, for the thread that sends it. The slot is not settled before all of it is copied.
pub trait Outbox: Send {
    /// Begins to copy pieces to as many places.
    ///
    /// # Errors
    /// A misuse, or the device failed.
    fn copy(&mut self, pieces: &[MessagePiece], to: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error>;
}

/// Room for what a chunk receives, for the thread that receives it. Stage 2 begins when all of it is copied.
pub trait Inbox: Send {
    /// Whether the device will have digests of what arrives: [`VectorMemory::arrived_digests`].
    fn digests(&self) -> bool {
        false
    }

    /// Begins to copy pieces from as many places.
    ///
    /// # Errors
    /// A misuse, or the device failed.
    fn copy(&mut self, pieces: &[MessagePiece], from: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error>;
}

/// A misuse, unless there is a place of its length for every piece, and every piece is of a chunk of so many
/// blocks.
///
/// # Errors
/// As said.
pub fn check_pieces(pieces: &[MessagePiece], places: &[Vec<Place>], blocks: usize) -> Result<(), Error> {
    let fits = |(piece, places): (&MessagePiece, &Vec<Place>)| {
        let within = piece.blocks.start <= piece.blocks.end && piece.blocks.end <= blocks;
        within && places.iter().map(Place::bytes).sum::<usize>() == piece.bytes()
    };
    if pieces.len() == places.len() && pieces.iter().zip(places).all(fits) {
        return Ok(());
    }
    Err(Error::misuse("pieces of messages and places that do not fit each other"))
}

/// A device that keeps vectors, and has several chunks under way.
pub trait VectorMemory {
    /// Blocks of a chunk, at most; a multiple of what long messages are cut into.
    fn chunk_blocks(&mut self) -> usize;

    /// Chunks that may be under way.
    fn slots(&mut self) -> usize;

    /// Whether both halves of a product of so many blocks may be one chunk: messages are the same, calls and
    /// waits are half as many. Its messages are not digested here.
    fn joins(&mut self, _blocks: usize) -> bool {
        false
    }

    /// Blocks from which on a vector is worth this memory: see [`crate::DeviceQueue::with_cpu`].
    fn least_blocks(&self) -> usize {
        0
    }

    /// Blocks of an operation's rounds from which on it is worth it to copy its vectors from the host, and
    /// its result back: see [`crate::DeviceQueue::takes`].
    fn least_handed(&self) -> usize {
        0
    }

    /// A vector of undefined content.
    ///
    /// # Errors
    /// When memory ends, or the device failed.
    fn make(&mut self, ring: VectorRing, blocks: usize) -> Result<DeviceVector, Error>;

    /// Writes all of a vector.
    ///
    /// # Errors
    /// Lengths that differ, a vector of another device, or the device failed.
    fn write(&mut self, to: &DeviceVector, parts: [&[Block]; 3]) -> Result<(), Error>;

    /// Reads as many blocks as `parts` have, from block `at` on.
    ///
    /// # Errors
    /// As [`VectorMemory::write`].
    fn read(&mut self, from: &DeviceVector, at: usize, parts: [&mut [Block]; 3]) -> Result<(), Error>;

    /// Does a local step. What follows sees its result; it may be under way when this returns.
    ///
    /// # Errors
    /// Runs that do not fit, a vector of another device, or the device failed.
    fn step(&mut self, step: &VectorStep<'_>) -> Result<(), Error>;

    /// Writes a run of one part.
    ///
    /// # Errors
    /// As [`VectorMemory::write`].
    fn write_run(&mut self, to: &VectorRun<'_>, blocks: &[Block]) -> Result<(), Error>;

    /// Reads a run of one part.
    ///
    /// # Errors
    /// As [`VectorMemory::write`].
    fn read_run(&mut self, from: &VectorRun<'_>, blocks: &mut [Block]) -> Result<(), Error>;

    /// The digest, under the tag of a part, of a run of one part, after nothing.
    ///
    /// # Errors
    /// As [`VectorMemory::write`].
    fn digest(&mut self, tag: usize, x: &VectorRun<'_>) -> Result<Block, Error>;

    /// Begins stage 1 of a chunk in a slot in which none is under way.
    ///
    /// # Errors
    /// A misuse, or the device failed.
    fn start(&mut self, slot: usize, product: &VectorProduct<'_>) -> Result<(), Error>;

    /// Waits for stage 1, and gives what this seat vouches for.
    ///
    /// # Errors
    /// When the device failed.
    fn vouched(&mut self, slot: usize) -> Result<StageVouch<'_>, Error>;

    /// What the chunk sends.
    ///
    /// # Errors
    /// When the device failed.
    fn outbox(&mut self, slot: usize) -> Result<Box<dyn Outbox>, Error>;

    /// Room for what the chunk receives.
    ///
    /// # Errors
    /// When the device failed.
    fn inbox(&mut self, slot: usize) -> Result<Box<dyn Inbox>, Error>;

    /// Begins stage 2, once everything has been copied.
    ///
    /// # Errors
    /// When the device failed.
    fn fold(&mut self, slot: usize) -> Result<(), Error>;

    /// Waits for stage 2, and gives what arrived, as the device has it: A and C, C of those blocks alone
    /// whose C came.
    ///
    /// # Errors
    /// When the device failed.
    fn arrived(&mut self, slot: usize) -> Result<StageVouch<'_>, Error>;

    /// Waits for stage 2, and gives the digests of what arrived, as the device has it, where there is a key:
    /// of all pieces of A, each of [`PIECE_BLOCKS`] but the last, and then of C; none where it digests
    /// nothing ([`Inbox::digests`]).
    ///
    /// # Errors
    /// When the device failed.
    fn arrived_digests(&mut self, slot: usize) -> Result<Zeroizing<Vec<Block>>, Error>;

    /// Waits for stage 2. The slot is free hereafter.
    ///
    /// # Errors
    /// When the device failed.
    fn settle(&mut self, slot: usize) -> Result<(), Error>;
}

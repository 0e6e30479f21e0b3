//! Vectors that stay with a device between commands, and products of them in two stages.
//!
//! A product is cut into chunks, each under way in a *slot* of the device: [`VectorMemory::start`] begins
//! stage 1 and does not wait, [`VectorMemory::messages`] waits for what must be sent and says where what
//! arrives is written to, [`VectorMemory::fold`] begins stage 2 and does not wait either, and
//! [`VectorMemory::settle`] waits for the end. Only messages leave the device and come to it.

use crate::{BlockHalf, VectorRing};
use base::Error;
use kernels::Block;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Which blocks of the result, all of them in one half.
    pub at: Range<usize>,
    /// Which half that is.
    pub half: BlockHalf,
    /// Factors: runs of as many blocks as the result has, one per term.
    pub x: &'a DeviceVector,
    /// The other factors, as many.
    pub y: &'a DeviceVector,
    /// The result: a vector of its own.
    pub z: &'a DeviceVector,
    /// Whether messages are hidden from the fourth party.
    pub masked: bool,
    /// What is done about those that this seat vouches for.
    pub vouch: VouchBy,
}

impl VectorProduct<'_> {
    /// Terms of every dot product; 1 for products.
    ///
    /// # Errors
    /// Shapes that do not fit, blocks that the result does not have, and a round of 2^48 or more.
    pub fn terms(&self) -> Result<usize, Error> {
        let (ring, blocks, all) = (self.z.ring, self.z.blocks, self.x.blocks);
        let fits = self.x.ring == ring && self.y.ring == ring && self.y.blocks == all;
        let half = self.half.range(blocks);
        let within = self.at.start <= self.at.end && half.start <= self.at.start && self.at.end <= half.end;
        if !fits || !within || blocks == 0 || all % blocks != 0 || self.round >> 48 != 0 {
            return Err(Error::misuse("the vectors of a product do not fit each other"));
        }
        Ok(all / blocks)
    }
}

/// What stage 1 of a chunk gave.
pub struct StageMessages<'a> {
    /// A, to send.
    pub a: &'a [Block],
    /// C, to send; empty where this seat vouches for it.
    pub c: &'a [Block],
    /// What this seat vouches for, A and C, where it is handed out.
    pub exposed: Option<[&'a [Block]; 2]>,
    /// Digests of A and C of this chunk alone that this seat vouches for, where the device digests.
    pub digests: Option<[Block; 2]>,
    /// Where A and C that arrive are written to; C is empty where none comes.
    pub inbox: [&'a mut [Block]; 2],
}

/// A device that keeps vectors, and has several chunks under way.
pub trait VectorMemory {
    /// Blocks of a chunk, at most; a multiple of what long messages are cut into.
    fn chunk_blocks(&mut self) -> usize;

    /// Chunks that may be under way.
    fn slots(&mut self) -> usize;

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

    /// `z = x + y`, or `x - y`.
    ///
    /// # Errors
    /// Shapes that differ, a vector of another device, or the device failed.
    fn linear(
        &mut self,
        negative: bool,
        x: &DeviceVector,
        y: &DeviceVector,
        z: &DeviceVector,
    ) -> Result<(), Error>;

    /// Begins stage 1 of a chunk in a slot in which none is under way.
    ///
    /// # Errors
    /// A misuse, or the device failed.
    fn start(&mut self, slot: usize, product: &VectorProduct<'_>) -> Result<(), Error>;

    /// Waits for stage 1.
    ///
    /// # Errors
    /// When the device failed.
    fn messages(&mut self, slot: usize) -> Result<StageMessages<'_>, Error>;

    /// Begins stage 2 with what lies in the inbox.
    ///
    /// # Errors
    /// When the device failed.
    fn fold(&mut self, slot: usize) -> Result<(), Error>;

    /// Waits for stage 2. The slot is free hereafter. Gives digests of A and C that arrived, of this chunk
    /// alone, where the device digests.
    ///
    /// # Errors
    /// When the device failed.
    fn settle(&mut self, slot: usize) -> Result<Option<[Block; 2]>, Error>;
}

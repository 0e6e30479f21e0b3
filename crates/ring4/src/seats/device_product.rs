//! Products of vectors that stay with the devices: only messages come from there and go there.
//!
//! The messages are those of [`SeatParty::multiply`], in the same order, so a seat with its vectors on a GPU
//! works with seats that have them in the host's memory. Chunks have the size that the device likes; several
//! are under way.

use crate::seats::check::Running;
use crate::seats::product::{Checks, chunks_of};
use crate::vectors::spare::zeros;
use crate::{CHUNK_BLOCKS, SeatParty, ShareView, SharedVector, VectorRing};
use accel::{BlockHalf, DeviceVector, VectorMemory, VectorProduct, VouchBy};
use base::Error;
use kernels::Block;
use net::Session;
use std::ops::Range;
use zeroize::Zeroizing;

/// A vector of shared values that stays with the device of a [`SeatParty`].
pub struct DeviceShares {
    len: usize,
    vector: DeviceVector,
}

impl DeviceShares {
    /// Of which elements.
    #[must_use]
    pub fn ring(&self) -> VectorRing {
        self.vector.ring()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn same_shape(&self, other: &Self) -> Result<(), Error> {
        if self.ring() == other.ring() && self.len == other.len {
            return Ok(());
        }
        Err(Error::misuse("vectors on a device that do not fit each other"))
    }
}

/// The chunks of a product on their way through the slots of a device.
struct Chunks {
    all: Vec<(BlockHalf, Range<usize>)>,
    slots: usize,
    started: usize,
    folded: usize,
    settled: usize,
}

/// A and C of a chunk in the pieces in which they are sent.
fn pieces<'a>(a: &'a [Block], c: &'a [Block]) -> Vec<&'a [u8]> {
    let mut c = c.chunks(CHUNK_BLOCKS);
    let both = a.chunks(CHUNK_BLOCKS).flat_map(|a| std::iter::once(a).chain(c.next()));
    both.map(Block::bytes_of).collect()
}

/// As [`pieces`], to write to.
fn pieces_mut<'a>(a: &'a mut [Block], c: &'a mut [Block]) -> Vec<&'a mut [u8]> {
    let mut c = c.chunks_mut(CHUNK_BLOCKS);
    let both = a.chunks_mut(CHUNK_BLOCKS).flat_map(|a| std::iter::once(a).chain(c.next()));
    both.map(Block::bytes_of_mut).collect()
}

/// A product under way.
struct DeviceProduct<'a> {
    round: u64,
    x: &'a DeviceShares,
    y: &'a DeviceShares,
    z: DeviceShares,
    vouch: VouchBy,
    chunks: Chunks,
    checks: Option<Checks>,
}

/// Goes on with the digest of a chunk of so many blocks.
fn append(party: &SeatParty, part: usize, running: &mut Running, blocks: usize, digest: Block) {
    if let Running::Keyed(before) = running {
        *before = party.keys.tag(part).advance(*before, blocks as u64) ^ digest;
    }
}

impl SeatParty {
    /// Whether the devices have memory of their own in which vectors stay; without it they lie in the host's.
    pub fn keeps_vectors(&mut self) -> bool {
        self.queue.keeps_vectors()
    }

    /// Copies shares to the device.
    ///
    /// # Errors
    /// When its memory ends, or it failed.
    pub fn keep<'a>(&mut self, shares: impl Into<ShareView<'a>>) -> Result<DeviceShares, Error> {
        let shares = shares.into();
        let vector = self.queue.make(shares.ring(), shares.ring().blocks(shares.len()))?;
        self.queue.write(&vector, shares.parts())?;
        Ok(DeviceShares { len: shares.len(), vector })
    }

    /// Copies shares back from the device.
    ///
    /// # Errors
    /// When it failed.
    pub fn fetch(&mut self, shares: &DeviceShares) -> Result<SharedVector, Error> {
        let blocks = shares.vector.blocks();
        let mut parts: [Vec<Block>; 3] = std::array::from_fn(|_| zeros(blocks));
        self.queue.read(&shares.vector, 0, parts.each_mut().map(Vec::as_mut_slice))?;
        Ok(SharedVector::from_parts(shares.ring(), shares.len, parts))
    }

    /// Sums of vectors on the device, or differences: no message.
    ///
    /// # Errors
    /// Shapes that differ, and those of the device.
    pub fn add_on_device(
        &mut self,
        negative: bool,
        x: &DeviceShares,
        y: &DeviceShares,
    ) -> Result<DeviceShares, Error> {
        x.same_shape(y)?;
        let vector = self.queue.make(x.ring(), x.vector.blocks())?;
        self.queue.linear(negative, &x.vector, &y.vector, &vector)?;
        Ok(DeviceShares { len: x.len, vector })
    }

    /// As [`SeatParty::multiply`], of vectors that stay on the device. One round, the same messages.
    ///
    /// # Errors
    /// As there.
    pub fn multiply_on_device(
        &mut self,
        session: &mut Session,
        x: &DeviceShares,
        y: &DeviceShares,
    ) -> Result<DeviceShares, Error> {
        x.same_shape(y)?;
        let (ring, blocks) = (x.ring(), x.vector.blocks());
        let z = DeviceShares { len: x.len, vector: self.queue.make(ring, blocks)? };
        if let Some(stub) = &mut self.stub {
            stub.quote.multiply(ring, x.len);
            return Ok(z);
        }
        self.hidden(session)?;
        let round = self.next_round();
        let vouch = match (self.settings.checked(), self.settings.hash) {
            (false, _) => VouchBy::Nothing,
            (true, crate::TagHash::Keyed) => VouchBy::Digest,
            (true, crate::TagHash::Blake3) => VouchBy::Expose,
        };
        // Pieces of messages lie in one chunk each.
        let size = self.queue.chunk_blocks() / CHUNK_BLOCKS * CHUNK_BLOCKS;
        let (all, slots) = (chunks_of(blocks, size.max(CHUNK_BLOCKS)), self.queue.slots());
        let under_way = Chunks { all, slots, started: 0, folded: 0, settled: 0 };
        let checks = self.settings.checked().then(|| Checks::new(self, round, blocks));
        let mut product = DeviceProduct { round, x, y, z, vouch, chunks: under_way, checks };
        self.talk(session, &mut product)?;
        while product.chunks.settled < product.chunks.all.len() {
            self.settle_chunk(&mut product)?;
        }
        product.checks.map_or(Ok(()), |checks| checks.settle(self, round, session))?;
        Ok(product.z)
    }

    /// Sends and receives all pieces of a product's messages, chunk by chunk.
    fn talk(&mut self, session: &mut Session, product: &mut DeviceProduct<'_>) -> Result<(), Error> {
        let (before, after) = (self.at(self.seat.after(3)), self.at(self.seat.after(1)));
        for chunk in 0..product.chunks.all.len() {
            self.start_chunks(product, chunk)?;
            self.vouch_for(product, chunk)?;
            let messages = self.queue.messages(chunk % product.chunks.slots)?;
            let out = pieces(messages.a, messages.c);
            let [a, c] = messages.inbox;
            session.stream((before, &out), (after, &mut pieces_mut(a, c)))?;
            self.fold_chunk(product, chunk)?;
        }
        Ok(())
    }

    /// Starts as many chunks as there are free slots, this one among them.
    fn start_chunks(&mut self, product: &mut DeviceProduct<'_>, needed: usize) -> Result<(), Error> {
        while product.chunks.started < product.chunks.all.len() {
            let chunks = &product.chunks;
            if chunks.started - chunks.settled >= chunks.slots {
                if chunks.folded == chunks.settled {
                    break;
                }
                self.settle_chunk(product)?;
            }
            let chunks = &mut product.chunks;
            let (half, at) = chunks.all[chunks.started].clone();
            let slot = chunks.started % chunks.slots;
            chunks.started += 1;
            let stage = VectorProduct {
                round: product.round,
                at,
                half,
                x: &product.x.vector,
                y: &product.y.vector,
                z: &product.z.vector,
                masked: self.settings.masked,
                vouch: product.vouch,
            };
            self.queue.start(slot, &stage)?;
        }
        if product.chunks.started > needed {
            return Ok(());
        }
        Err(Error::misuse("a device has too few slots for its chunks: what it heard lies in all of them"))
    }

    /// Goes on with the hashes of what this seat vouches for.
    fn vouch_for(&mut self, product: &mut DeviceProduct<'_>, chunk: usize) -> Result<(), Error> {
        let Some(mut checks) = product.checks.take() else { return Ok(()) };
        let blocks = product.chunks.all[chunk].1.len();
        let (half, seat) = (product.chunks.all[chunk].0, self.seat);
        let messages = self.queue.messages(chunk % product.chunks.slots)?;
        let copy = |blocks: &[Block]| Zeroizing::new(blocks.to_vec());
        let (exposed, digests) = (messages.exposed.map(|both| both.map(copy)), messages.digests);
        let [of_a, of_c] = &mut checks.hashes[0];
        if let Some([a, c]) = digests {
            append(self, 2, of_a, blocks, a);
            if !half.sends(seat) {
                append(self, 1, of_c, blocks, c);
            }
        }
        if let Some([a, c]) = exposed {
            self.hash(checks.vouched[0], of_a, &a);
            self.hash(checks.vouched[1], of_c, &c);
        }
        product.checks = Some(checks);
        Ok(())
    }

    /// Begins stage 2 of a chunk of which everything has arrived.
    fn fold_chunk(&mut self, product: &mut DeviceProduct<'_>, chunk: usize) -> Result<(), Error> {
        let slot = chunk % product.chunks.slots;
        if let (Some(checks), VouchBy::Expose) = (&mut product.checks, product.vouch) {
            let inbox = self.queue.messages(slot)?.inbox;
            let [a, c] = inbox.map(|blocks| Zeroizing::new(blocks.to_vec()));
            let [of_a, of_c] = &mut checks.hashes[1];
            self.hash(checks.received[0], of_a, &a);
            self.hash(checks.received[1], of_c, &c);
        }
        self.queue.fold(slot)?;
        product.chunks.folded = chunk + 1;
        Ok(())
    }

    /// Waits for stage 2 of the next chunk, which frees its slot.
    fn settle_chunk(&mut self, product: &mut DeviceProduct<'_>) -> Result<(), Error> {
        let chunks = &mut product.chunks;
        let (half, at) = chunks.all[chunks.settled].clone();
        let digests = self.queue.settle(chunks.settled % chunks.slots)?;
        chunks.settled += 1;
        if let (Some(checks), Some([a, c])) = (&mut product.checks, digests) {
            let [of_a, of_c] = &mut checks.hashes[1];
            append(self, 0, of_a, at.len(), a);
            if half.receives(self.seat) {
                append(self, 0, of_c, at.len(), c);
            }
        }
        Ok(())
    }
}

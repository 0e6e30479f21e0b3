//! Vectors that stay on the GPU, and chunks of products of them under way: every slot is a stream, and so is
//! each of two copies to and from the memory of the transport, so kernels of one chunk, copies of another and
//! the network of a third go on at once. Only messages and digests cross the bus.
//!
//! Buffers of a slot on the GPU: A, C and the A that is vouched for; from the third run of a longest chunk on
//! A and C that arrive, wherever the chunk ends, as they may come while the end of the chunk before it is
//! wiped; from the fifth on scratch of digests of either stage, and sums of dot products of few blocks. On
//! the host, in pinned memory: what is vouched for and what arrived, where the host hashes them, and what is
//! left of four digests.

use crate::copies::{self, ChunkMessages, CopyLanes, CudaCopies, MessageDigests, MessageKey};
use crate::device::{
    FEW_THREADS, KEY_BLOCKS, RAW_BLOCKS, SLICES_MAX, Stage1, Stage2, StageRound, digest_rests,
    download_digests, launch_fold, ring_number,
};
use crate::digest;
use crate::driver::{DeviceBuffer, Lane, Registry, Stream};
use crate::jobs::{self, Factors};
use crate::{Cuda, memory};
use accel::{
    Copying, DeviceVector, Inbox, MessagePiece, Outbox, StageVouch, VectorMemory, VectorProduct, VectorRing,
    VectorRun, VectorStep, VectorTable, VouchBy, check_pieces,
};
use base::Error;
use kernels::{Block, GfKey, Place, gf_digest};
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Chunks under way: one is computed, one is sent, one arrives, one is ready, and one is folded while nobody
/// waits for it.
pub(crate) const SLOTS: usize = 5;
/// Blocks from which on a round of products is faster here than on one core: some ten launches and waits.
const LEAST_BLOCKS: usize = 1 << 12;
/// Memory of dropped vectors that is kept for the next ones, at most: a part of the GPU's, in so many
/// buffers.
/// Allocation waits for all work of the GPU.
const SPARE_SHARE: usize = 16;
const SPARE_MAX: usize = 512;

/// All vectors of a device, and its slots.
#[derive(Default)]
pub(crate) struct CudaVectors {
    /// Dropped first: each waits for its stream, so nothing is written to vectors that were wiped.
    slots: Vec<VectorSlot>,
    table: VectorTable<Arc<DeviceBuffer>>,
    spare: Vec<Arc<DeviceBuffer>>,
    /// For copies out and in.
    lanes: Option<[CopyLanes; 2]>,
    /// For digests of what goes out and comes in: room for a key each, and the keys that are there.
    key_rooms: [Option<Arc<DeviceBuffer>>; 2],
    keys: [Option<MessageKey>; 2],
    registry: Arc<Registry>,
}

/// What a chunk sends.
struct CudaOutbox {
    /// Where stage 1 is queued, until it was waited for.
    stage: Option<Arc<Stream>>,
    lanes: CopyLanes,
    messages: ChunkMessages,
    registry: Arc<Registry>,
    digests: Option<MessageDigests>,
}

impl Outbox for CudaOutbox {
    fn copy(&mut self, pieces: &[MessagePiece], to: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error> {
        check_pieces(pieces, to, self.messages.blocks)?;
        if !self.messages.with_c && pieces.iter().any(|piece| piece.of_c) {
            return Err(Error::misuse("a piece of what the chunk does not send"));
        }
        if let Some(stage) = &self.stage {
            stage.wait()?;
            self.stage = None;
        }
        let from = (&self.messages, &*self.registry);
        CudaCopies::queue(&self.lanes, from, self.digests.as_ref(), (pieces, to), true)
    }
}

/// Room for what a chunk receives.
struct CudaInbox {
    lanes: CopyLanes,
    messages: ChunkMessages,
    registry: Arc<Registry>,
    digests: bool,
}

impl Inbox for CudaInbox {
    fn digests(&self) -> bool {
        self.digests
    }

    fn copy(&mut self, pieces: &[MessagePiece], from: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error> {
        check_pieces(pieces, from, self.messages.blocks)?;
        if !self.messages.with_c && pieces.iter().any(|piece| piece.of_c) {
            return Err(Error::misuse("a piece of what the chunk does not receive"));
        }
        let to = (&self.messages, &*self.registry);
        CudaCopies::queue(&self.lanes, to, None, (pieces, from), false)
    }
}

/// A stream, and the chunk on it.
struct VectorSlot {
    lane: Lane,
    chunk: Option<VectorChunk>,
}

/// A chunk under way.
#[derive(Clone)]
struct VectorChunk {
    at: Range<usize>,
    z: u64,
    /// Blocks of the result.
    of: usize,
    stage1: Stage1,
    stage2: Stage2,
    vouch: VouchBy,
    /// Where A, C and the A that is vouched for lie, and how long each run is.
    out: ([usize; 3], usize),
    /// Where what arrives lies, and scratch.
    arrives: usize,
    scratch: usize,
    /// Of what is sent, and of what arrived once stage 2 has begun, where there are keys.
    digests: [Option<MessageDigests>; 2],
    /// Of what arrives.
    key: Option<MessageKey>,
}

impl VectorChunk {
    /// Where what is left of digests of stage 1 and of stage 2 lies on the host.
    fn rests(&self) -> [usize; 2] {
        let n = self.at.len();
        [4 * n, 4 * n + 2 * digest::left(n, self.stage1.host)]
    }
}

fn idle() -> Error {
    Error::misuse("no chunk is under way in this slot")
}

impl VectorSlot {
    fn chunk(&self) -> Result<VectorChunk, Error> {
        self.chunk.clone().ok_or_else(idle)
    }

    /// What a chunk sends.
    fn sends(&self, chunk: &VectorChunk) -> ChunkMessages {
        let ([a, c, _], buffer) = (chunk.out.0, self.lane.parts().1.clone());
        ChunkMessages { buffer, at: [a, c], blocks: chunk.at.len(), with_c: chunk.stage1.sends }
    }

    /// What a chunk receives.
    fn receives(&self, chunk: &VectorChunk) -> ChunkMessages {
        let (a, blocks, buffer) = (chunk.arrives, chunk.at.len(), self.lane.parts().1.clone());
        ChunkMessages { buffer, at: [a, a + blocks], blocks, with_c: chunk.stage2.receives }
    }
}

impl Cuda {
    /// The buffer of a vector.
    pub(crate) fn buffer(&mut self, vector: &DeviceVector) -> Result<&mut Arc<DeviceBuffer>, Error> {
        let id = self.vectors.table.id(vector)?;
        self.vectors.table.at(id)
    }

    fn slot(&mut self, slot: usize) -> Result<&mut VectorSlot, Error> {
        self.vectors.slots.get_mut(slot).ok_or_else(idle)
    }

    /// The slots, made when the first vector is.
    fn open_slots(&mut self) -> Result<(), Error> {
        let chunk = self.chunk_max;
        // What goes in and out needs one, whatever vectors leave.
        if !self.has_lane() {
            self.open_lane()?;
        }
        while self.vectors.slots.len() < SLOTS {
            let device = memory::slot_blocks(chunk, self.host_digest);
            let host = self.message_rests() + copies::rest_blocks(chunk);
            let lane = Lane::new(self.session.module(), host, device)?;
            self.vectors.slots.push(VectorSlot { lane, chunk: None });
        }
        if self.vectors.lanes.is_none() {
            let module = self.session.module().clone();
            for room in &mut self.vectors.key_rooms {
                *room = Some(Arc::new(DeviceBuffer::new(&module, KEY_BLOCKS)?));
            }
            self.vectors.lanes = Some([CopyLanes::new(&module)?, CopyLanes::new(&module)?]);
        }
        Ok(())
    }

    /// Memory of so many blocks, of vectors that were dropped if some fits about, and given back to the GPU
    /// where there is more of it than is worth keeping.
    fn take_buffer(&mut self, blocks: usize) -> Result<Arc<DeviceBuffer>, Error> {
        let vectors = &mut self.vectors;
        vectors.spare.extend(vectors.table.dropped());
        let fits = |buffer: &DeviceBuffer| (blocks..=blocks + blocks / 4).contains(&buffer.blocks());
        let fitting = (0..vectors.spare.len()).filter(|&i| fits(&vectors.spare[i]));
        if let Some(found) = fitting.min_by_key(|&i| vectors.spare[i].blocks()) {
            return Ok(vectors.spare.remove(found));
        }
        // Who has a part of the memory keeps what it has until that is full.
        let most = match self.session.module().most() {
            usize::MAX => self.gpu().memory_bytes as usize / SPARE_SHARE,
            most => most,
        } / Block::BYTES;
        self.give_back(most)?;
        if let Ok(buffer) = DeviceBuffer::new(self.session.module(), blocks) {
            return Ok(Arc::new(buffer));
        }
        self.give_back(0)?;
        let buffer = DeviceBuffer::new(self.session.module(), blocks)?;
        // There was room after all.
        self.session.module().was_full();
        Ok(Arc::new(buffer))
    }

    /// Keeps so many blocks of dropped vectors at most, those that were dropped last.
    fn give_back(&mut self, most: usize) -> Result<(), Error> {
        let mut kept: usize = self.vectors.spare.iter().map(|buffer| buffer.blocks()).sum();
        let mut count = 0;
        for (i, buffer) in self.vectors.spare.iter().enumerate() {
            if kept <= most && self.vectors.spare.len() - i <= SPARE_MAX {
                break;
            }
            kept -= buffer.blocks();
            count = i + 1;
        }
        if count > 0 {
            // Steps that read what is given back may be under way, and after an error chunks as well.
            self.session.wait()?;
            let mut under_way = self.vectors.slots.iter_mut().filter(|slot| slot.chunk.is_some());
            under_way.try_for_each(|slot| slot.lane.wait())?;
            self.vectors.spare.drain(..count);
        }
        Ok(())
    }

    /// Where digests of messages lie in a slot's buffer: [`copies::scratch_places`].
    fn message_places(&self) -> [usize; 3] {
        let end = memory::slot_blocks(self.chunk_max, self.host_digest);
        copies::scratch_places(end - copies::scratch_blocks(self.chunk_max), self.chunk_max)
    }

    /// Where what is left of digests of what arrived comes to lie on the host.
    fn message_rests(&self) -> usize {
        4 * self.chunk_max + 4 * self.host_digest
    }

    /// A key of messages that go out or come in, expanded once.
    fn message_key(&mut self, way: usize, key: Option<&Arc<GfKey>>) -> Result<Option<MessageKey>, Error> {
        let Some(key) = key else { return Ok(None) };
        let there = self.vectors.keys[way].as_ref().filter(|there| Arc::ptr_eq(&there.key, key));
        if let Some(there) = there {
            return Ok(Some(there.clone()));
        }
        let expanded = self.vectors.key_rooms[way].clone().ok_or_else(idle)?;
        let mut raw = [Block::ZERO; RAW_BLOCKS];
        raw[3] = key.element();
        self.expand(&mut raw, expanded.address(0, KEY_BLOCKS))?;
        self.vectors.keys[way] = Some(MessageKey { key: key.clone(), expanded });
        Ok(self.vectors.keys[way].clone())
    }

    /// Addresses of blocks of the three parts of a vector.
    fn places(&mut self, vector: &DeviceVector, from: usize, to: usize) -> Result<[u64; 3], Error> {
        let blocks = vector.blocks();
        let buffer = self.buffer(vector)?;
        Ok([0, 1, 2].map(|part| buffer.address(part * blocks + from, to - from)))
    }

    /// Where the factors of a chunk lie, and terms of each.
    fn factors(&mut self, product: &VectorProduct<'_>) -> Result<Vec<(u64, Factors)>, Error> {
        let (of, at) = (product.z.blocks(), product.at.clone());
        let place = |[x, y]: &[&DeviceVector; 2]| {
            let terms = x.blocks() / of;
            let (from, to) = (at.start, (terms.max(1) - 1) * of + at.end);
            let [x, y] = [self.places(x, from, to)?, self.places(y, from, to)?];
            Ok((terms as u64, Factors { x, y, stride: of as u64 }))
        };
        product.factors.iter().map(place).collect()
    }

    /// Copies between parts of a vector, from block `at` on, and as many blocks of the host, of which each
    /// part comes in chunks: through pinned memory of lanes.
    fn copy<T: Send>(
        &mut self,
        vector: &DeviceVector,
        (at, blocks): (usize, usize),
        parts: [impl Iterator<Item = T>; 3],
        work: impl Fn(&mut Lane, &DeviceBuffer, usize, T) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (of, chunk) = (vector.blocks(), self.lane_max);
        if at.checked_add(blocks).is_none_or(|end| end > of) {
            return Err(Error::misuse("blocks that a vector does not have"));
        }
        // Steps may be under way.
        self.session.enter()?;
        self.session.wait()?;
        let buffer = self.buffer(vector)?.clone();
        let of_part =
            |(k, part): (usize, _)| (0..).step_by(chunk).map(move |from| k * of + at + from).zip(part);
        let jobs = parts.into_iter().enumerate().flat_map(of_part).collect();
        self.in_lanes(jobs, |lane, (place, some)| work(lane, &buffer, place, some))
    }
}

impl VectorMemory for Cuda {
    fn chunk_blocks(&mut self) -> usize {
        self.chunk_max
    }

    fn slots(&mut self) -> usize {
        SLOTS
    }

    fn least_blocks(&self) -> usize {
        LEAST_BLOCKS
    }

    fn least_handed(&self) -> usize {
        self.least_handed
    }

    fn make(&mut self, ring: VectorRing, blocks: usize) -> Result<DeviceVector, Error> {
        self.session.enter()?;
        self.open_slots()?;
        let all = blocks.checked_mul(3).ok_or_else(|| Error::misuse("a vector of that many blocks"))?;
        let buffer = self.take_buffer(all.max(1))?;
        Ok(self.vectors.table.insert(ring, blocks, buffer))
    }

    fn write(&mut self, to: &DeviceVector, parts: [&[Block]; 3]) -> Result<(), Error> {
        if parts.iter().any(|part| part.len() != to.blocks()) {
            return Err(Error::misuse("what is written is not as long as the vector"));
        }
        let (all, chunk) = ((0, to.blocks()), self.lane_max);
        self.copy(to, all, parts.map(|part| part.chunks(chunk)), |lane, buffer, place, some| {
            lane.host()?[..some.len()].copy_from_slice(some);
            lane.upload_to(0, buffer, place, some.len())?;
            lane.wait()
        })
    }

    fn read(&mut self, from: &DeviceVector, at: usize, parts: [&mut [Block]; 3]) -> Result<(), Error> {
        let (blocks, chunk) = (parts[0].len(), self.lane_max);
        if parts.iter().any(|part| part.len() != blocks) {
            return Err(Error::misuse("parts of different lengths"));
        }
        let parts = parts.map(|part| part.chunks_mut(chunk));
        self.copy(from, (at, blocks), parts, |lane, buffer, place, some| {
            lane.download_from(buffer, place, 0, some.len())?;
            some.copy_from_slice(&lane.host()?[..some.len()]);
            Ok(())
        })
    }

    fn step(&mut self, step: &VectorStep<'_>) -> Result<(), Error> {
        self.queue_step(step)
    }

    fn write_run(&mut self, to: &VectorRun<'_>, blocks: &[Block]) -> Result<(), Error> {
        let from = self.only_part(to, blocks.len())?;
        let (some, chunk) = (blocks.chunks(self.lane_max), self.lane_max);
        self.copy_run(to.vector, (from, chunk), some, |lane, buffer, place, some| {
            lane.host()?[..some.len()].copy_from_slice(some);
            lane.upload_to(0, buffer, place, some.len())?;
            lane.wait()
        })
    }

    fn read_run(&mut self, from: &VectorRun<'_>, blocks: &mut [Block]) -> Result<(), Error> {
        let at = self.only_part(from, blocks.len())?;
        let (chunk, some) = (self.lane_max, blocks.chunks_mut(self.lane_max));
        self.copy_run(from.vector, (at, chunk), some, |lane, buffer, place, some| {
            lane.download_from(buffer, place, 0, some.len())?;
            some.copy_from_slice(&lane.host()?[..some.len()]);
            Ok(())
        })
    }

    fn digest(&mut self, tag: usize, x: &VectorRun<'_>) -> Result<Block, Error> {
        let (keys, at) = (self.keys()?, self.only_part(x, x.blocks)?);
        if tag > 2 {
            return Err(Error::misuse("a digest is under the tag of one of three parts"));
        }
        let (tag_key, tag, host) = (keys.tag(tag), tag as u64, self.host_digest);
        let expanded = self.expanded();
        let starts = (0..x.blocks).step_by(self.lane_max);
        let lens: Vec<usize> = starts.map(|from| self.lane_max.min(x.blocks - from)).collect();
        let mut digests = vec![Block::ZERO; lens.len()];
        let jobs = lens.iter().copied().zip(&mut digests);
        self.copy_run(x.vector, (at, self.lane_max), jobs, |lane, buffer, place, (blocks, digest)| {
            let rest = if blocks <= host {
                lane.download_from(buffer, place, 0, blocks)?;
                blocks
            } else {
                let x = buffer.address(place, blocks);
                let rest = digest::launch_at(lane, (expanded, tag, host), x, blocks, 0)?;
                lane.download(rest.from, 0, rest.blocks)?;
                lane.wipe(0, digest::scratch(blocks, host))?;
                rest.blocks
            };
            *digest = gf_digest(tag_key, Block::ZERO, &lane.host()?[..rest]);
            Ok(())
        })?;
        let go_on = |sum, (blocks, digest): (usize, Block)| tag_key.advance(sum, blocks as u64) ^ digest;
        Ok(lens.into_iter().zip(digests).fold(Block::ZERO, go_on))
    }

    fn start(&mut self, slot: usize, product: &VectorProduct<'_>) -> Result<(), Error> {
        let (terms, of, at) = (product.terms()?, product.z.blocks(), product.at.clone());
        let blocks = at.len();
        if blocks > self.chunk_max || self.slot(slot)?.chunk.is_some() {
            return Err(Error::misuse("a chunk is too long for its slot, or another one is in it"));
        }
        self.session.enter()?;
        self.session.wait()?;
        let (ring, half) = (product.z.ring(), product.half);
        let round = StageRound { ring, round: product.round, half, masked: product.masked };
        let stage1 = self.stage1(round, product.vouch)?;
        let stage2 = self.stage2(round, product.vouch == VouchBy::Digest)?;
        let factors = self.factors(product)?;
        let z = self.places(product.z, at.start, at.end)?;
        let id = self.vectors.table.id(product.z)?;
        let few = FEW_THREADS.min(self.chunk_max);
        let slices = (few / blocks.max(1)).clamp(1, terms.clamp(1, SLICES_MAX));
        let [arrives, scratch] = [3, 5].map(|runs| runs * self.chunk_max);
        let mut keys = [self.message_key(0, product.keys[0])?, self.message_key(1, product.keys[1])?];
        let [first, rests, _] = self.message_places();
        let slot = self.slot(slot)?;
        let lane = &mut slot.lane;
        let from = if slices == 1 { 0 } else { scratch + 4 * digest::scratch(blocks, stage1.host) };
        let runs = slices * blocks;
        let [a, c, b] = [0, 1, 2].map(|k| from + k * runs);
        let places = [a, c, b].map(|from| lane.address(from, runs));
        for (i, (terms, factors)) in factors.into_iter().enumerate() {
            let cross = jobs::Cross {
                ring: ring_number(ring),
                blocks: blocks as u64,
                terms,
                slices: slices as u64,
                goes_on: u64::from(i > 0),
                factors,
                a: places[0],
                b: places[2],
                c: places[1],
            };
            lane.launch(cross, runs as u64)?;
        }
        stage1.seal(lane, at.start as u64, blocks, slices, z, places)?;
        let digests = stage1.digest(lane, blocks, [b, c], scratch)?;
        if product.vouch == VouchBy::Expose {
            lane.download(b, 0, blocks)?;
            if !stage1.sends {
                lane.download(c, blocks, blocks)?;
            }
        }
        download_digests(lane, digests, 4 * blocks)?;
        let (vouch, out) = (product.vouch, ([a, c, b], runs));
        let mut chunk = VectorChunk {
            at,
            z: id,
            of,
            stage1,
            stage2,
            vouch,
            out,
            arrives,
            scratch,
            digests: [None, None],
            key: keys[1].take(),
        };
        if let Some(key) = &keys[0] {
            let messages = slot.sends(&chunk);
            chunk.digests[0] = Some(messages.digest(&mut slot.lane, key, [first, rests])?);
        }
        slot.chunk = Some(chunk);
        Ok(())
    }

    fn vouched(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        self.session.enter()?;
        let keys = self.keys()?;
        let slot = self.slot(slot)?;
        let chunk = slot.chunk()?;
        let (n, sends, host) = (chunk.at.len(), chunk.stage1.sends, slot.lane.host()?);
        Ok(match chunk.vouch {
            VouchBy::Nothing => StageVouch::Nothing,
            VouchBy::Expose => StageVouch::Blocks([&host[..n], if sends { &[] } else { &host[n..2 * n] }]),
            VouchBy::Digest => {
                let [of_a, of_c] = digest_rests(host, chunk.rests()[0], n, chunk.stage1.host);
                let of_c = if sends { &[] } else { of_c };
                let digest = |(part, rest)| gf_digest(keys.tag(part), Block::ZERO, rest);
                StageVouch::Digests([(2, of_a), (1, of_c)].map(digest))
            }
        })
    }

    fn outbox(&mut self, slot: usize) -> Result<Box<dyn Outbox>, Error> {
        let chunk = self.slot(slot)?.chunk()?;
        let CudaVectors { slots, lanes, registry, .. } = &self.vectors;
        let [lanes, _] = lanes.clone().ok_or_else(idle)?;
        let (stage, _) = slots[slot].lane.parts();
        let (stage, registry, [digests, _]) = (Some(stage.clone()), registry.clone(), chunk.digests.clone());
        Ok(Box::new(CudaOutbox { stage, lanes, messages: slots[slot].sends(&chunk), registry, digests }))
    }

    fn inbox(&mut self, slot: usize) -> Result<Box<dyn Inbox>, Error> {
        let chunk = self.slot(slot)?.chunk()?;
        let CudaVectors { slots, lanes, registry, .. } = &self.vectors;
        let [_, lanes] = lanes.clone().ok_or_else(idle)?;
        let (messages, registry) = (slots[slot].receives(&chunk), registry.clone());
        Ok(Box::new(CudaInbox { lanes, messages, registry, digests: chunk.key.is_some() }))
    }

    fn fold(&mut self, slot: usize) -> Result<(), Error> {
        self.session.enter()?;
        let chunk = self.slot(slot)?.chunk()?;
        let (n, of, receives) = (chunk.at.len(), chunk.of, chunk.stage2.receives);
        let buffer = self.vectors.table.at(chunk.z)?;
        let z = [1, 2].map(|part| buffer.address(part * of + chunk.at.start, n));
        let ([first, _, rests], to) = (self.message_places(), self.message_rests());
        let slot = self.slot(slot)?;
        let arrived = slot.receives(&chunk);
        let lane = &mut slot.lane;
        let each = digest::scratch(n, chunk.stage2.host);
        let scratch = chunk.scratch + 2 * each;
        let digests =
            launch_fold(lane, &chunk.stage2, chunk.at.start as u64, n, z, [chunk.arrives, scratch])?;
        download_digests(lane, digests, chunk.rests()[1])?;
        if let (Some(key), Some(chunk)) = (&chunk.key, &mut slot.chunk) {
            let digests = arrived.digest(lane, key, [first, rests])?;
            lane.download(rests, to, digests.blocks())?;
            chunk.digests[1] = Some(digests);
        }
        if chunk.vouch == VouchBy::Expose {
            lane.download(chunk.arrives, 2 * n, if receives { 2 * n } else { n })?;
        }
        // What the chunk sends may still be under way.
        lane.wipe(chunk.arrives, 2 * n)?;
        if each > 0 { lane.wipe(chunk.scratch, 4 * each) } else { Ok(()) }
    }

    fn arrived(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        self.session.enter()?;
        let keys = self.keys()?;
        let slot = self.slot(slot)?;
        let chunk = slot.chunk()?;
        let (n, receives, host) = (chunk.at.len(), chunk.stage2.receives, slot.lane.host()?);
        Ok(match chunk.vouch {
            VouchBy::Nothing => StageVouch::Nothing,
            VouchBy::Expose => {
                StageVouch::Blocks([&host[2 * n..3 * n], if receives { &host[3 * n..4 * n] } else { &[] }])
            }
            VouchBy::Digest => {
                let [of_a, of_c] = digest_rests(host, chunk.rests()[1], n, chunk.stage2.host);
                let digest = |rest: &[Block]| gf_digest(keys.tag(0), Block::ZERO, rest);
                StageVouch::Digests([digest(of_a), digest(if receives { of_c } else { &[] })])
            }
        })
    }

    fn arrived_digests(&mut self, slot: usize) -> Result<Zeroizing<Vec<Block>>, Error> {
        self.session.enter()?;
        let from = self.message_rests();
        let slot = self.slot(slot)?;
        let [_, digests] = slot.chunk()?.digests;
        let Some(digests) = digests else { return Ok(Zeroizing::default()) };
        Ok(digests.read(&mut slot.lane.host()?[from..from + digests.blocks()]))
    }

    fn settle(&mut self, slot: usize) -> Result<(), Error> {
        self.session.enter()?;
        let slot = self.slot(slot)?;
        let ([from, ..], runs) = slot.chunk()?.out;
        slot.lane.wait()?;
        // Queued before anything of the next chunk.
        slot.lane.wipe(from, 3 * runs)?;
        slot.chunk = None;
        Ok(())
    }
}

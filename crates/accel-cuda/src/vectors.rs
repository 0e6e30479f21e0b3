//! Vectors that stay on the GPU, and chunks of products of them under way: every slot is a stream, and so is
//! each of two copies to and from the memory of the transport, so kernels of one chunk, copies of another and
//! the network of a third go on at once. Only messages and digests cross the bus.
//!
//! Buffers of a slot on the GPU: A, the A that is vouched for, and C; from the third run of a longest chunk
//! on A and C that arrive, wherever the chunk ends, as they may come while the end of the chunk before it is
//! wiped; from the fifth on scratch of digests of either stage, and sums of dot products of few blocks. On
//! the host, in pinned memory: what is vouched for and what arrived, where the host hashes them, and what is
//! left of four digests.
//!
//! A *short* chunk takes as long as its calls and waits do: both halves of a product may be one, all of it is
//! on the slot's stream in the order in which it is needed, each stream of stage 1 is drawn by threads of its
//! own, the host digests, and one call wipes it. A and C that arrive follow what is sent, and streams lie
//! from the first run of a longest chunk on.

use crate::copies::{self, ChunkMessages, CopyLanes, CudaCopies, MessageDigests, MessageKey};
use crate::device::{
    FEW_THREADS, KEY_BLOCKS, RAW_BLOCKS, SEAL_STREAMS, SLICES_MAX, Stage1, Stage2, StageHalves, StageRound,
    digest_rests, download_digests, fold_chunk, launch_fold, ring_number,
};
use crate::digest;
use crate::driver::{DeviceBuffer, Lane, Registry, Stream};
use crate::jobs::{self, Factors};
use crate::{Cuda, memory};
use accel::{
    BlockHalf, Copying, DeviceVector, Inbox, MessagePiece, Outbox, StageVouch, VectorMemory, VectorProduct,
    VectorRing, VectorRun, VectorStep, VectorTable, VouchBy, check_pieces,
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
/// Blocks of a short chunk, at most: the host digests so many faster than a GPU begins to.
const SHORT_BLOCKS: usize = digest::HOST_BLOCKS;
/// Blocks that the threads of a warp take side by side, of one half.
const WARP_BLOCKS: usize = 256;
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

/// Where a chunk's messages are copied.
enum CopyPlace {
    /// On lanes for copies, behind stage 1 where there is one that was not waited for.
    Lanes(CopyLanes, Option<Arc<Stream>>),
    /// On the stream of its stages.
    Behind(Arc<Stream>),
}

impl CopyPlace {
    fn begin(
        &mut self,
        (messages, registry): (&ChunkMessages, &Registry),
        digests: Option<&MessageDigests>,
        (pieces, places): (&[MessagePiece], &[Vec<Place>]),
        sends: bool,
    ) -> Result<Box<dyn Copying>, Error> {
        check_pieces(pieces, places, messages.blocks)?;
        let there = |piece: &MessagePiece| {
            let c = &messages.with_c;
            !piece.of_c || c.start <= piece.blocks.start && piece.blocks.end <= c.end
        };
        if !pieces.iter().all(there) {
            return Err(Error::misuse("a piece of what the chunk does not send or receive"));
        }
        match self {
            Self::Behind(stream) => {
                CudaCopies::queue_on(stream.clone(), (messages, registry), (pieces, places), sends)
            }
            Self::Lanes(lanes, stage) => {
                if let Some(stage) = stage.take() {
                    stage.wait()?;
                }
                CudaCopies::queue(lanes, (messages, registry), digests, (pieces, places), sends)
            }
        }
    }
}

/// What a chunk sends.
struct CudaOutbox {
    place: CopyPlace,
    messages: ChunkMessages,
    registry: Arc<Registry>,
    digests: Option<MessageDigests>,
}

impl Outbox for CudaOutbox {
    fn copy(&mut self, pieces: &[MessagePiece], to: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error> {
        self.place.begin((&self.messages, &*self.registry), self.digests.as_ref(), (pieces, to), true)
    }
}

/// Room for what a chunk receives.
struct CudaInbox {
    place: CopyPlace,
    messages: ChunkMessages,
    registry: Arc<Registry>,
    digests: bool,
}

impl Inbox for CudaInbox {
    fn digests(&self) -> bool {
        self.digests
    }

    fn copy(&mut self, pieces: &[MessagePiece], from: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error> {
        self.place.begin((&self.messages, &*self.registry), None, (pieces, from), false)
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
    short: bool,
    /// Of which blocks C is sent, vouched for and received.
    c: [Range<usize>; 3],
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
        let ([a, c, _], buffer, [with_c, ..]) = (chunk.out.0, self.lane.parts().1.clone(), chunk.c.clone());
        ChunkMessages { buffer, at: [a, c], blocks: chunk.at.len(), with_c }
    }

    /// What a chunk receives.
    fn receives(&self, chunk: &VectorChunk) -> ChunkMessages {
        let (a, blocks, buffer) = (chunk.arrives, chunk.at.len(), self.lane.parts().1.clone());
        let [.., with_c] = chunk.c.clone();
        ChunkMessages { buffer, at: [a, a + blocks], blocks, with_c }
    }

    /// What was vouched for of a short chunk, or arrived: A and C lie behind each other on the host.
    fn vouch_of_short(
        &mut self,
        chunk: &VectorChunk,
        from: usize,
        c: Range<usize>,
        keys: [&GfKey; 2],
    ) -> Result<StageVouch<'_>, Error> {
        let n = chunk.at.len();
        let (a, all_c) = self.lane.host()?[from..from + 2 * n].split_at(n);
        let both = [a, &all_c[c]];
        Ok(match chunk.vouch {
            VouchBy::Nothing => StageVouch::Nothing,
            VouchBy::Expose => StageVouch::Blocks(both),
            VouchBy::Digest => {
                let [a, c] = [0, 1].map(|k| gf_digest(keys[k], Block::ZERO, both[k]));
                StageVouch::Digests([a, c])
            }
        })
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

    /// Whether a chunk of so many blocks is short.
    fn is_short(&self, blocks: usize) -> bool {
        blocks <= SHORT_BLOCKS.min(self.chunk_max / SEAL_STREAMS)
    }

    /// A chunk of a product, of which nothing is queued, and in how many slices its terms are summed.
    fn new_chunk(&mut self, product: &VectorProduct<'_>) -> Result<(VectorChunk, usize), Error> {
        let (terms, of, halves) = (product.terms()?, product.z.blocks(), product.halves());
        let (blocks, seat) = (halves.blocks(), self.keys()?.seat());
        if halves.only().is_none() && !(blocks == of && self.joins(of)) {
            return Err(Error::misuse("a chunk in both halves"));
        }
        // Messages of a chunk in both halves, which is short, are digested by the host.
        let keyless = halves.only().is_none() || product.keys.iter().all(Option::is_none);
        let short = self.is_short(blocks) && keyless;
        let (ring, halves_of, masked) = (product.z.ring(), StageHalves::of(halves), product.masked);
        let round = StageRound { ring, round: product.round, halves: halves_of, masked };
        let stage1 = self.stage1(round, product.vouch)?;
        let few = FEW_THREADS.min(self.chunk_max);
        let slices = (few / blocks.max(1)).clamp(1, terms.clamp(1, SLICES_MAX));
        let [arrives, scratch] = [3, 5].map(|runs| runs * self.chunk_max);
        let from = if slices == 1 { 0 } else { scratch + 4 * digest::scratch(blocks, stage1.host) };
        let runs = slices * blocks;
        let chunk = VectorChunk {
            at: product.at.clone(),
            short,
            c: [halves.sent(seat), halves.vouched(seat), halves.received(seat)],
            z: self.vectors.table.id(product.z)?,
            of,
            stage1,
            stage2: self.stage2(round, product.vouch == VouchBy::Digest)?,
            vouch: product.vouch,
            out: ([0, 2, 1].map(|k| from + k * runs), runs),
            arrives: if short { 3 * blocks } else { arrives },
            scratch,
            digests: [None, None],
            key: None,
        };
        Ok((chunk, slices))
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

    fn joins(&mut self, blocks: usize) -> bool {
        let first = BlockHalf::First.range(blocks).len();
        self.is_short(blocks) && blocks > WARP_BLOCKS && first.is_multiple_of(WARP_BLOCKS)
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
        let (mut chunk, slices) = self.new_chunk(product)?;
        let blocks = chunk.at.len();
        if blocks > self.chunk_max || self.slot(slot)?.chunk.is_some() {
            return Err(Error::misuse("a chunk is too long for its slot, or another one is in it"));
        }
        self.session.enter()?;
        self.session.wait()?;
        let factors = self.factors(product)?;
        let z = self.places(product.z, chunk.at.start, chunk.at.end)?;
        let keys = if chunk.short { [None; 2] } else { product.keys };
        let [key, of_arrivals] = [self.message_key(0, keys[0])?, self.message_key(1, keys[1])?];
        chunk.key = of_arrivals;
        let ([level, rests, _], drawn) = (self.message_places(), self.chunk_max);
        let slot = self.slot(slot)?;
        let (lane, stage1, (out, runs)) = (&mut slot.lane, &chunk.stage1, chunk.out);
        let places = out.map(|from| lane.address(from, runs));
        for (i, (terms, factors)) in factors.into_iter().enumerate() {
            let cross = jobs::Cross {
                ring: ring_number(product.z.ring()),
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
        let drawn = chunk.short.then(|| lane.address(drawn, SEAL_STREAMS * blocks));
        stage1.seal(lane, chunk.at.start as u64, [blocks, slices], z, places, drawn)?;
        if !chunk.short {
            let [_, of_c, of_a] = out;
            let digests = stage1.digest(lane, blocks, [of_a, of_c], chunk.scratch)?;
            if product.vouch == VouchBy::Expose {
                lane.download(of_a, 0, blocks)?;
                if !chunk.c[1].is_empty() {
                    lane.download(of_c, blocks, blocks)?;
                }
            }
            download_digests(lane, digests, 4 * blocks)?;
        }
        if let Some(key) = &key {
            let messages = slot.sends(&chunk);
            chunk.digests[0] = Some(messages.digest(&mut slot.lane, key, [level, rests])?);
        }
        slot.chunk = Some(chunk);
        Ok(())
    }

    fn vouched(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        self.session.enter()?;
        let keys = self.keys()?;
        let slot = self.slot(slot)?;
        let chunk = slot.chunk()?;
        let (n, [_, c, _]) = (chunk.at.len(), chunk.c.clone());
        if chunk.short && chunk.vouch != VouchBy::Nothing {
            // Behind what is sent: who sends does not wait for it.
            let ([_, of_c, of_a], runs) = chunk.out;
            if runs == n {
                slot.lane.download(of_a, 0, 2 * n)?;
            } else {
                slot.lane.download(of_a, 0, n)?;
                slot.lane.download(of_c, n, n)?;
            }
            return slot.vouch_of_short(&chunk, 0, c, [keys.tag(2), keys.tag(1)]);
        }
        let (sends, host) = (c.is_empty(), slot.lane.host()?);
        Ok(match chunk.vouch {
            VouchBy::Nothing => StageVouch::Nothing,
            VouchBy::Expose => StageVouch::Blocks([&host[..n], &host[n..n + c.len()]]),
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
        let stage = slots[slot].lane.parts().0.clone();
        let place = if chunk.short { CopyPlace::Behind(stage) } else { CopyPlace::Lanes(lanes, Some(stage)) };
        let (messages, registry, [digests, _]) =
            (slots[slot].sends(&chunk), registry.clone(), chunk.digests.clone());
        Ok(Box::new(CudaOutbox { place, messages, registry, digests }))
    }

    fn inbox(&mut self, slot: usize) -> Result<Box<dyn Inbox>, Error> {
        let chunk = self.slot(slot)?.chunk()?;
        let CudaVectors { slots, lanes, registry, .. } = &self.vectors;
        let [_, lanes] = lanes.clone().ok_or_else(idle)?;
        let stage = slots[slot].lane.parts().0.clone();
        let place = if chunk.short { CopyPlace::Behind(stage) } else { CopyPlace::Lanes(lanes, None) };
        let (messages, registry) = (slots[slot].receives(&chunk), registry.clone());
        Ok(Box::new(CudaInbox { place, messages, registry, digests: chunk.key.is_some() }))
    }

    fn fold(&mut self, slot: usize) -> Result<(), Error> {
        self.session.enter()?;
        let chunk = self.slot(slot)?.chunk()?;
        let (n, of, first) = (chunk.at.len(), chunk.of, chunk.at.start as u64);
        let buffer = self.vectors.table.at(chunk.z)?;
        let z = [1, 2].map(|part| buffer.address(part * of + chunk.at.start, n));
        let ([level, _, rests], to) = (self.message_places(), self.message_rests());
        let slot = self.slot(slot)?;
        let arrived = slot.receives(&chunk);
        let lane = &mut slot.lane;
        if chunk.short {
            fold_chunk(lane, &chunk.stage2, first, n, z, chunk.arrives)?;
            return if chunk.vouch == VouchBy::Nothing {
                Ok(())
            } else {
                lane.download(chunk.arrives, 2 * n, 2 * n)
            };
        }
        let each = digest::scratch(n, chunk.stage2.host);
        let scratch = chunk.scratch + 2 * each;
        let digests = launch_fold(lane, &chunk.stage2, first, n, z, [chunk.arrives, scratch])?;
        download_digests(lane, digests, chunk.rests()[1])?;
        if let (Some(key), Some(chunk)) = (&chunk.key, &mut slot.chunk) {
            let digests = arrived.digest(lane, key, [level, rests])?;
            lane.download(rests, to, digests.blocks())?;
            chunk.digests[1] = Some(digests);
        }
        if chunk.vouch == VouchBy::Expose {
            lane.download(chunk.arrives, 2 * n, n + chunk.c[2].len())?;
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
        let (n, [.., c]) = (chunk.at.len(), chunk.c.clone());
        if chunk.short {
            return slot.vouch_of_short(&chunk, 2 * n, c, [keys.tag(0); 2]);
        }
        let (receives, host) = (!c.is_empty(), slot.lane.host()?);
        Ok(match chunk.vouch {
            VouchBy::Nothing => StageVouch::Nothing,
            VouchBy::Expose => StageVouch::Blocks([&host[2 * n..3 * n], &host[3 * n..3 * n + c.len()]]),
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
        let VectorChunk { at, short, arrives, out: ([from, ..], runs), .. } = slot.chunk()?;
        slot.lane.wait()?;
        // Queued before anything of the next chunk.
        if short && from + 3 * runs == arrives {
            slot.lane.wipe(from, 3 * runs + 2 * at.len())?;
        } else {
            slot.lane.wipe(from, 3 * runs)?;
            if short {
                slot.lane.wipe(arrives, 2 * at.len())?;
            }
        }
        slot.chunk = None;
        Ok(())
    }
}

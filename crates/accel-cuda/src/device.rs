//! The device: cuts commands into chunks and keeps one of them under way in each of several lanes. A lane has
//! a thread of its own, which copies between vectors of the host and pinned memory: one thread moves a
//! fraction of what PCIe does.
//!
//! Buffers of a lane on the GPU, in blocks: factors or operands, then sums, then results, then scratch of
//! digests.

use crate::digest::DigestRest;
use crate::driver::{Lane, Module, Runtime};
use crate::jobs::{self, Factors, KeyStream};
use crate::vectors::CudaVectors;
use crate::{Gpu, digest, memory};
use accel::{
    BlockHalf, ChunkHalves, Device, DeviceCommand, FoldStage, LinearStage, MultiplyStage, Seat, SeatKeys,
    Use, VectorMemory, VectorRing, Vouch, VouchBy, check,
};
use base::Error;
use kernels::{Block, gf_digest};
use std::sync::{Arc, Mutex, PoisonError};

/// Blocks of a chunk of vectors that stay on the GPU, at most.
pub(crate) const CHUNK_MAX: usize = 1 << 18;
/// Pairs of factors of a chunk of a command, at least and at most.
const LANE_MIN: usize = 1 << 15;
pub(crate) const LANE_MAX: usize = 1 << 16;
/// Pairs of factors from which on a command with vectors of the host is faster here than on one core.
const LEAST_PAIRS: usize = 1 << 17;
/// Lanes, at most: their threads copy about as fast as PCIe does.
pub(crate) const LANES: usize = 12;
/// Chunks that each lane gets of a command, if they are not too small or too large: it evens out their ends.
const CHUNKS: usize = 4;
/// Blocks of one vector from which on an operation on vectors of the host is handed over. On an H200, four
/// seats on 16 cores, bits, comparisons and elements of words take up to twice the host's time at 2^14
/// elements of Z_2^128, and a quarter to a half of it at 2^16.
pub(crate) const LEAST_HANDED: usize = 1 << 15;
/// Threads below which a dot product is cut into slices of its terms, and slices at most.
pub(crate) const FEW_THREADS: usize = 1 << 14;
pub(crate) const SLICES_MAX: usize = 256;
/// Streams of stage 1.
pub(crate) const SEAL_STREAMS: usize = 8;
/// Keys as given: three of streams and three of tags.
pub(crate) const RAW_BLOCKS: usize = 6;
/// Keys as the kernels want them: three times 352 words of round keys and 17 powers.
pub(crate) const KEY_BLOCKS: usize = 3 * (352 / 4 + 17);

/// A GPU as a device.
pub struct Cuda {
    gpu: Gpu,
    /// Made as they are needed.
    lanes: Vec<Lane>,
    pub(crate) session: Lane,
    keys: Option<Arc<SeatKeys>>,
    pub(crate) chunk_max: usize,
    lane_min: usize,
    pub(crate) lane_max: usize,
    /// Blocks of a digest that are left to the host.
    pub(crate) host_digest: usize,
    /// Blocks of one vector from which on an operation on vectors of the host is handed over.
    pub(crate) least_handed: usize,
    pub(crate) vectors: CudaVectors,
}

/// Of which elements, which round and halves, and whether messages are hidden.
#[derive(Clone, Copy)]
pub(crate) struct StageRound {
    pub(crate) ring: VectorRing,
    pub(crate) round: u64,
    pub(crate) halves: StageHalves,
    pub(crate) masked: bool,
}

/// Halves that a stage works on: from block `middle` on the second one.
#[derive(Clone, Copy)]
pub(crate) struct StageHalves {
    of: [BlockHalf; 2],
    middle: u64,
}

impl StageHalves {
    /// All of it in one half.
    pub(crate) fn only(half: BlockHalf) -> Self {
        Self { of: [half; 2], middle: u64::MAX }
    }

    pub(crate) fn of(chunk: ChunkHalves) -> Self {
        let both = Self { of: BlockHalf::BOTH, middle: chunk.range(BlockHalf::First).len() as u64 };
        chunk.only().map_or(both, Self::only)
    }

    fn which(self, is: impl Fn(BlockHalf) -> bool) -> [bool; 2] {
        self.of.map(is)
    }
}

/// The parts of a stage 1 that its chunks share.
#[derive(Clone, Copy)]
pub(crate) struct Stage1 {
    pub(crate) ring: VectorRing,
    middle: u64,
    pub(crate) sends: [bool; 2],
    receives: [bool; 2],
    pub(crate) masked: bool,
    pub(crate) vouches: bool,
    pub(crate) digests: bool,
    streams: [[KeyStream; 8]; 2],
    pub(crate) keys: u64,
    /// Blocks of a digest that are left to the host.
    pub(crate) host: usize,
}

/// The parts of a stage 2 that its chunks share.
#[derive(Clone, Copy)]
pub(crate) struct Stage2 {
    pub(crate) ring: VectorRing,
    middle: u64,
    pub(crate) receives: [bool; 2],
    pub(crate) masked: bool,
    pub(crate) digests: bool,
    pub(crate) wire_a: KeyStream,
    pub(crate) wire_c: KeyStream,
    pub(crate) keys: u64,
    /// Blocks of a digest that are left to the host.
    pub(crate) host: usize,
}

pub(crate) fn ring_number(ring: VectorRing) -> u64 {
    match ring {
        VectorRing::Z128 => 0,
        VectorRing::Z64 => 1,
        VectorRing::Z2 => 2,
    }
}

impl Cuda {
    /// The GPU of this index, as [`crate::devices`] numbers them.
    ///
    /// # Errors
    /// Which library is missing and what to install; that there is no such GPU; or that it failed.
    pub fn new(index: usize) -> Result<Self, Error> {
        Self::within(index, usize::MAX, 0)
    }

    /// The same with so many bytes of the GPU's memory at most, of which so many are wanted for vectors that
    /// stay: pieces are smaller where these are few. What finds no room there is the host's to keep and do.
    ///
    /// # Errors
    /// As [`Cuda::new`], and where no pieces are small enough.
    pub fn within(index: usize, bytes: usize, vectors: usize) -> Result<Self, Error> {
        let Some(chunk) = memory::chunk_within(bytes, vectors) else {
            let least = memory::least_bytes().div_ceil(1 << 20);
            return Err(Error::input(format!(
                "{} MiB of the memory of cuda:{index} are too few: a computation there takes {least} MiB at \
                 least; compute fewer ranges of rows at once, choose another card, or the device cpu",
                bytes >> 20
            )));
        };
        let lane = LANE_MAX.min(chunk);
        Self::on(Runtime::system()?, index, [LANE_MIN.min(lane), lane, chunk], digest::HOST_BLOCKS, bytes)
    }

    /// Bytes of the GPU's memory that nobody has taken, and all of them.
    ///
    /// # Errors
    /// When the GPU failed.
    pub fn memory(&self) -> Result<[usize; 2], Error> {
        self.session.module().memory()
    }

    /// A device with these libraries, chunks of commands between these sizes, chunks of vectors that stay of
    /// this one, so many blocks of a digest left to the host, and bytes of the GPU's memory at most.
    pub(crate) fn on(
        runtime: Arc<Runtime>,
        index: usize,
        chunk: [usize; 3],
        host_digest: usize,
        most: usize,
    ) -> Result<Self, Error> {
        let gpus = runtime.gpus()?;
        let gpu = gpus.get(index).cloned().ok_or_else(|| {
            Error::input(format!("there is no GPU {index}; this machine has {}, numbered from 0", gpus.len()))
        })?;
        let [lane_min, lane_max, chunk_max] = chunk;
        let module = Module::load(runtime, &gpu, most)?;
        let session = Lane::new(&module, RAW_BLOCKS, RAW_BLOCKS + KEY_BLOCKS)?;
        let (lanes, vectors, least_handed) = (Vec::new(), CudaVectors::default(), LEAST_HANDED);
        Ok(Self {
            gpu,
            lanes,
            session,
            keys: None,
            chunk_max,
            lane_min,
            lane_max,
            host_digest,
            least_handed,
            vectors,
        })
    }

    /// Which GPU it is.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Expands keys to where the kernels read them, and wipes them here.
    pub(crate) fn expand(&mut self, keys: &mut [Block; RAW_BLOCKS], to: u64) -> Result<(), Error> {
        let lane = &mut self.session;
        lane.host()?.copy_from_slice(keys);
        keys.iter_mut().for_each(zeroize::Zeroize::zeroize);
        lane.upload(0, 0, RAW_BLOCKS)?;
        lane.launch(jobs::Expand { raw: lane.address(0, RAW_BLOCKS), keys: to }, RAW_BLOCKS as u64)?;
        lane.wipe(0, RAW_BLOCKS)?;
        lane.host()?.iter_mut().for_each(zeroize::Zeroize::zeroize);
        Ok(())
    }

    /// Where the keys lie as the kernels want them.
    pub(crate) fn expanded(&self) -> u64 {
        self.session.address(RAW_BLOCKS, KEY_BLOCKS)
    }

    pub(crate) fn keys(&self) -> Result<Arc<SeatKeys>, Error> {
        self.keys.clone().ok_or_else(|| Error::misuse("the device has no keys yet"))
    }

    /// Blocks per chunk of a vector of `blocks`, of which each brings `terms` pairs of factors.
    fn chunk(&self, blocks: usize, terms: usize) -> usize {
        let pairs = (blocks.saturating_mul(terms) / (CHUNKS * LANES)).clamp(self.lane_min, self.lane_max);
        (pairs / terms.max(1)).max(1)
    }

    pub(crate) fn stage1(&self, round: StageRound, vouch: VouchBy) -> Result<Stage1, Error> {
        let keys = self.keys()?;
        let me = keys.seat();
        let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
        let of = |r#use: Use, part: u64, channel: [Seat; 2]| KeyStream {
            prefix: accel::StreamName { round: round.round, r#use, channel }.prefix(),
            part,
        };
        let sends = round.halves.which(|half| half.sends(me));
        let streams = sends.map(|sends| {
            // C is own, or that of the seat two further on.
            let (c, wire_c) = if sends {
                (of(Use::Mask, 2, [me, s2]), of(Use::Wire, 0, [me, s2]))
            } else {
                (of(Use::Mask, 0, [s2, me]), of(Use::Wire, 2, [s2, me]))
            };
            [
                of(Use::Mask, 2, [me, s1]),
                of(Use::Mask, 1, [s3, me]),
                of(Use::Mask, 0, [s2, s3]),
                c,
                of(Use::Mask, 1, [s3, s1]),
                of(Use::Wire, 1, [me, s1]),
                of(Use::Wire, 0, [s3, me]),
                wire_c,
            ]
        });
        Ok(Stage1 {
            ring: round.ring,
            middle: round.halves.middle,
            sends,
            receives: round.halves.which(|half| half.receives(me)),
            masked: round.masked,
            vouches: vouch != VouchBy::Nothing,
            digests: vouch == VouchBy::Digest,
            streams,
            keys: self.expanded(),
            host: self.host_digest,
        })
    }

    pub(crate) fn stage2(&self, round: StageRound, digests: bool) -> Result<Stage2, Error> {
        let me = self.keys()?.seat();
        let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
        let wire = |part: u64, channel: [Seat; 2]| KeyStream {
            prefix: accel::StreamName { round: round.round, r#use: Use::Wire, channel }.prefix(),
            part,
        };
        Ok(Stage2 {
            ring: round.ring,
            middle: round.halves.middle,
            receives: round.halves.which(|half| half.receives(me)),
            masked: round.masked,
            digests,
            wire_a: wire(2, [s1, s2]),
            wire_c: wire(1, [s1, s3]),
            keys: self.expanded(),
            host: self.host_digest,
        })
    }

    /// One more lane.
    pub(crate) fn open_lane(&mut self) -> Result<(), Error> {
        let (lane, rest) = (self.lane_max, self.host_digest);
        let host = 6 * lane + 2 * rest;
        self.lanes.push(Lane::new(self.session.module(), host, memory::lane_blocks(lane, rest))?);
        Ok(())
    }

    /// Whether there is a lane.
    pub(crate) fn has_lane(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Does every job in some lane, of which each has a thread.
    pub(crate) fn in_lanes<J: Send>(
        &mut self,
        jobs: Vec<J>,
        work: impl Fn(&mut Lane, J) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let wanted = jobs.len().min(LANES.min(cores));
        while self.lanes.len() < wanted {
            match self.open_lane() {
                // Those that are there do all of it.
                Err(_) if !self.lanes.is_empty() && self.session.module().was_full() => break,
                opened => opened?,
            }
        }
        let wanted = wanted.min(self.lanes.len());
        let jobs = Mutex::new(jobs.into_iter());
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let run = |lane: &mut Lane| -> Result<(), Error> {
            lane.enter()?;
            while let Some(job) = next() {
                work(lane, job)?;
            }
            Ok(())
        };
        let Some((first, others)) = self.lanes[..wanted].split_first_mut() else { return Ok(()) };
        std::thread::scope(|scope| {
            let others: Vec<_> = others.iter_mut().map(|lane| scope.spawn(|| run(lane))).collect();
            let first = run(first);
            let others = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            others.fold(first, Result::and)
        })
    }

    fn linear(&mut self, l: &mut LinearStage<'_>, negative: bool) -> Result<(), Error> {
        let (ring, x, y, total) = (l.ring, l.x, l.y, l.z[0].len());
        let chunk = self.chunk(total, 1);
        let ats = (0..total).step_by(chunk);
        let jobs = ats.zip(cut_all(l.z.each_mut().map(|part| &mut **part), chunk, total)).collect();
        self.in_lanes(jobs, |lane, (at, z): (usize, [&mut [Block]; 3])| {
            let blocks = z[0].len();
            let parts = x.into_iter().chain(y).map(|part| &part[at..at + blocks]);
            fill(lane.host()?, parts);
            lane.upload(0, 0, 6 * blocks)?;
            let n = 3 * blocks;
            let places = [0, n, 2 * n].map(|from| lane.address(from, n));
            lane.launch(jobs::Combine::sum(ring, negative, n as u64, places), n as u64)?;
            lane.download(2 * n, 0, n)?;
            lane.wipe(0, 3 * n)?;
            take(lane.host()?, z);
            Ok(())
        })
    }

    fn multiply(&mut self, m: &mut MultiplyStage<'_>) -> Result<(), Error> {
        let vouch = match m.vouch {
            Vouch::Nothing => VouchBy::Nothing,
            Vouch::Digest(_) => VouchBy::Digest,
            Vouch::Expose { .. } => VouchBy::Expose,
        };
        let halves = StageHalves::only(m.half);
        let round = StageRound { ring: m.ring, round: m.round, halves, masked: m.masked };
        let (stage, keys) = (self.stage1(round, vouch)?, self.keys()?);
        let [sends, _] = stage.sends;
        let (terms, total, first) = (m.terms, m.z[0].len(), m.first);
        let chunk = self.chunk(total, terms);
        let pass =
            Pass { x: m.x, y: m.y, total, terms, per_group: (self.lane_max / chunk).clamp(1, terms.max(1)) };
        let few = FEW_THREADS.min(self.lane_max);
        let mut digests = vec![[Block::ZERO; 2]; total.div_ceil(chunk)];
        let exposed = match &mut m.vouch {
            Vouch::Expose { a, c } => [&mut **a, &mut **c],
            _ => [&mut [][..], &mut []],
        };
        let z = m.z.each_mut().map(|part| &mut **part);
        let [z0, z1, z2] = z;
        let [of_a, of_c] = exposed;
        let out = cut_all([z0, z1, z2, &mut *m.a, &mut *m.c, of_a, of_c], chunk, total);
        let jobs = (0..total).step_by(chunk).zip(out).zip(&mut digests).collect();
        self.in_lanes(jobs, |lane, ((at, out), digests): ((usize, [&mut [Block]; 7]), &mut [Block; 2])| {
            let blocks = out[0].len();
            let slices = (few / blocks).clamp(1, pass.per_group.min(SLICES_MAX));
            let layout = ChunkLayout::new(blocks, pass.per_group, slices);
            pass.cross(lane, &layout, stage.ring, at)?;
            let results = layout.seal(lane, &stage, first + at as u64)?;
            let [_, c, b] = layout.messages();
            // A follows the parts of the result.
            lane.download(layout.out, 0, 4 * blocks)?;
            if vouch == VouchBy::Expose || sends {
                lane.download(c, 4 * blocks, blocks)?;
            }
            if vouch == VouchBy::Expose {
                lane.download(b, 5 * blocks, blocks)?;
            }
            download_digests(lane, results, 6 * blocks)?;
            lane.wipe(0, layout.end(&stage))?;
            let host = &*lane.host()?;
            if stage.digests {
                let [of_a, of_c] = digest_rests(host, 6 * blocks, blocks, stage.host);
                let of_c = if sends { &[] } else { of_c };
                *digests =
                    [(2, of_a), (1, of_c)].map(|(part, rest)| gf_digest(keys.tag(part), Block::ZERO, rest));
            }
            // C is sent, or vouched for.
            let [z0, z1, z2, a, c, of_a, of_c] = out;
            let from = [0, 1, 2, 3, 4, 5, 4];
            for (part, from) in [z0, z1, z2, a, c, of_a, of_c].into_iter().zip(from) {
                part.copy_from_slice(&host[from * blocks..][..part.len()]);
            }
            Ok(())
        })?;
        if let Vouch::Digest([a, c]) = &mut m.vouch {
            for (at, [of_a, of_c]) in (0..total).step_by(chunk).zip(digests) {
                let blocks = chunk.min(total - at) as u64;
                *a = keys.tag(2).advance(*a, blocks) ^ of_a;
                if !sends {
                    *c = keys.tag(1).advance(*c, blocks) ^ of_c;
                }
            }
        }
        Ok(())
    }

    fn fold(&mut self, f: &mut FoldStage<'_>) -> Result<(), Error> {
        let halves = StageHalves::only(f.half);
        let round = StageRound { ring: f.ring, round: f.round, halves, masked: f.masked };
        let (stage, keys) = (self.stage2(round, f.digests.is_some())?, self.keys()?);
        let [receives, _] = stage.receives;
        let (total, first, a, c) = (f.a.len(), f.first, f.a, f.c);
        let chunk = self.chunk(total, 1);
        let mut digests = vec![[Block::ZERO; 2]; total.div_ceil(chunk)];
        let out = cut_all(f.z.each_mut().map(|part| &mut **part), chunk, total);
        let jobs = (0..total).step_by(chunk).zip(out).zip(&mut digests).collect();
        self.in_lanes(jobs, |lane, ((at, z), digests): ((usize, [&mut [Block]; 2]), &mut [Block; 2])| {
            let blocks = z[0].len();
            let here = at..at + blocks;
            let c = receives.then(|| &c[here.clone()]);
            fill(lane.host()?, [&*z[0], &*z[1], &a[here]].into_iter().chain(c));
            lane.upload(0, 0, if receives { 4 } else { 3 } * blocks)?;
            let on_gpu = [0, 1].map(|k| lane.address(k * blocks, blocks));
            let places = [2 * blocks, 4 * blocks];
            let results = launch_fold(lane, &stage, first + at as u64, blocks, on_gpu, places)?;
            lane.download(0, 0, 2 * blocks)?;
            download_digests(lane, results, 2 * blocks)?;
            let scratch = if stage.digests { 2 * digest::scratch(blocks, stage.host) } else { 0 };
            lane.wipe(0, 4 * blocks + scratch)?;
            let host = &*lane.host()?;
            if stage.digests {
                let [of_a, of_c] = digest_rests(host, 2 * blocks, blocks, stage.host);
                let of_c = if receives { of_c } else { &[] };
                *digests = [of_a, of_c].map(|rest| gf_digest(keys.tag(0), Block::ZERO, rest));
            }
            take(host, z);
            Ok(())
        })?;
        if let Some([a, c]) = &mut f.digests {
            for (at, [of_a, of_c]) in (0..total).step_by(chunk).zip(digests) {
                let blocks = chunk.min(total - at) as u64;
                *a = keys.tag(0).advance(*a, blocks) ^ of_a;
                if receives {
                    *c = keys.tag(0).advance(*c, blocks) ^ of_c;
                }
            }
        }
        Ok(())
    }
}

/// Puts parts behind each other.
fn fill<'a>(host: &mut [Block], parts: impl Iterator<Item = &'a [Block]>) {
    let mut at = 0;
    for part in parts {
        host[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

/// Takes parts that lie behind each other.
fn take<const N: usize>(host: &[Block], parts: [&mut [Block]; N]) {
    let mut at = 0;
    for part in parts {
        part.copy_from_slice(&host[at..at + part.len()]);
        at += part.len();
    }
}

/// The same chunks of several vectors of `total` blocks, or of none.
fn cut_all<const N: usize>(vectors: [&mut [Block]; N], chunk: usize, total: usize) -> Vec<[&mut [Block]; N]> {
    let mut left = vectors;
    let mut cut = Vec::new();
    for at in (0..total).step_by(chunk) {
        let blocks = chunk.min(total - at);
        cut.push(left.each_mut().map(|vector| {
            let now = blocks.min(vector.len());
            let (now, rest) = std::mem::take(vector).split_at_mut(now);
            *vector = rest;
            now
        }));
    }
    cut
}

/// The factors of a command, and how many terms of a chunk go to the GPU at once.
#[derive(Clone, Copy)]
struct Pass<'a> {
    x: [&'a [Block]; 3],
    y: [&'a [Block]; 3],
    total: usize,
    terms: usize,
    per_group: usize,
}

impl Pass<'_> {
    /// Queues the local products of a chunk, group by group.
    fn cross(&self, lane: &mut Lane, layout: &ChunkLayout, ring: VectorRing, at: usize) -> Result<(), Error> {
        // Once even if there are no terms: the sums are then zero.
        for from in (0..self.terms.max(1)).step_by(self.per_group) {
            let group = self.per_group.min(self.terms - from);
            self.stage(lane, at, layout.blocks, from..from + group)?;
            layout.cross(lane, ring, group, from > 0)?;
        }
        Ok(())
    }

    /// Copies terms of the factors of a chunk to the GPU: parts of x, then of y, each a run of blocks per
    /// term.
    fn stage(
        &self,
        lane: &mut Lane,
        at: usize,
        blocks: usize,
        terms: std::ops::Range<usize>,
    ) -> Result<(), Error> {
        let staged = 6 * terms.len() * blocks;
        let runs = self
            .x
            .into_iter()
            .chain(self.y)
            .flat_map(|part| terms.clone().map(move |term| &part[term * self.total + at..][..blocks]));
        fill(lane.host()?, runs);
        if staged > 0 { lane.upload(0, 0, staged) } else { Ok(()) }
    }
}

impl Device for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn full(&mut self) -> bool {
        self.session.module().was_full()
    }

    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error> {
        self.session.enter()?;
        let mut raw = [Block::ZERO; RAW_BLOCKS];
        raw[..3].copy_from_slice(keys.raw());
        raw[3..].copy_from_slice(keys.tag_elements());
        self.expand(&mut raw, self.expanded())?;
        self.keys = Some(keys);
        Ok(())
    }

    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        check(command, self.keys()?.seat())?;
        self.session.enter()?;
        match command {
            DeviceCommand::Add(l) => self.linear(l, false),
            DeviceCommand::Sub(l) => self.linear(l, true),
            DeviceCommand::Multiply(m) => self.multiply(m),
            DeviceCommand::Fold(f) => self.fold(f),
        }
    }

    fn least(&self) -> usize {
        LEAST_PAIRS
    }

    fn memory(&mut self) -> Option<&mut dyn VectorMemory> {
        Some(self)
    }
}

/// Where a chunk of stage 1 lies on the GPU: factors from 0 on, parts of the result, local products of all
/// slices, of which the first become messages, scratch of two digests.
#[derive(Clone, Copy)]
pub(crate) struct ChunkLayout {
    pub(crate) blocks: usize,
    slices: usize,
    pub(crate) out: usize,
    pub(crate) scratch: usize,
}

impl ChunkLayout {
    /// For this many terms at once, in so many slices.
    pub(crate) fn new(blocks: usize, terms: usize, slices: usize) -> Self {
        let out = 6 * terms.max(1) * blocks;
        Self { blocks, slices, out, scratch: out + 3 * (1 + slices) * blocks }
    }

    /// Blocks in all.
    fn end(&self, stage: &Stage1) -> usize {
        self.scratch + if stage.digests { 2 * digest::scratch(self.blocks, stage.host) } else { 0 }
    }

    /// Where A, C and the A that is vouched for lie.
    pub(crate) fn messages(&self) -> [usize; 3] {
        [0, 1, 2].map(|k| self.out + (3 + k * self.slices) * self.blocks)
    }

    /// Where the factors of so many terms lie.
    fn factors(&self, lane: &Lane, terms: usize) -> Factors {
        let part = terms * self.blocks;
        let of = |k: usize| lane.address(k * part, part);
        Factors { x: [0, 1, 2].map(of), y: [3, 4, 5].map(of), stride: self.blocks as u64 }
    }

    /// Queues the local products of so many terms, after others or not.
    pub(crate) fn cross(
        &self,
        lane: &mut Lane,
        ring: VectorRing,
        terms: usize,
        goes_on: bool,
    ) -> Result<(), Error> {
        let all = self.slices * self.blocks;
        let [a, c, b] = self.messages().map(|from| lane.address(from, all));
        let job = jobs::Cross {
            ring: ring_number(ring),
            blocks: self.blocks as u64,
            terms: terms as u64,
            slices: self.slices as u64,
            goes_on: goes_on.into(),
            factors: self.factors(lane, terms),
            a,
            b,
            c,
        };
        lane.launch(job, all as u64)
    }

    /// Queues the rest of stage 1; says where the digests of what is vouched for, A and C, will lie.
    pub(crate) fn seal(
        &self,
        lane: &mut Lane,
        stage: &Stage1,
        first: u64,
    ) -> Result<[Option<DigestRest>; 2], Error> {
        let z = [0, 1, 2].map(|k| lane.address(self.out + k * self.blocks, self.blocks));
        let [a, c, b] = self.messages();
        let places = [a, c, b].map(|from| lane.address(from, self.slices * self.blocks));
        stage.seal(lane, first, [self.blocks, self.slices], z, places, None)?;
        stage.digest(lane, self.blocks, [b, c], self.scratch)
    }
}

impl Stage1 {
    /// Queues the rest of stage 1 of a chunk that begins at block `first` of the round, whose local products
    /// lie at these addresses: those of A, of C, and of the A that is vouched for. With room for eight
    /// streams each is drawn by threads of its own.
    pub(crate) fn seal(
        &self,
        lane: &mut Lane,
        first: u64,
        [blocks, slices]: [usize; 2],
        z: [u64; 3],
        [a, c, b]: [u64; 3],
        drawn: Option<u64>,
    ) -> Result<(), Error> {
        let [streams, second] = self.streams;
        let job = jobs::Seal {
            ring: ring_number(self.ring),
            blocks: blocks as u64,
            slices: slices as u64,
            first,
            middle: self.middle,
            sends: self.sends.map(u64::from),
            receives: self.receives.map(u64::from),
            masked: self.masked.into(),
            vouches: self.vouches.into(),
            streams,
            // Of C, and of what hides it.
            second: [second[3], second[7]],
            keys: self.keys,
            drawn: drawn.unwrap_or_default(),
            a,
            b,
            c,
            z,
        };
        if drawn.is_none() {
            return lane.launch(job, eights(blocks));
        }
        lane.launch(jobs::SealStreams(job), SEAL_STREAMS as u64 * eights(blocks))?;
        lane.launch(jobs::SealDrawn(job), blocks as u64)
    }

    /// Queues the digests of what is vouched for, A and C, of a chunk in one half, which lie at these places
    /// of the lane's buffer; says where they will lie.
    pub(crate) fn digest(
        &self,
        lane: &mut Lane,
        blocks: usize,
        [a, c]: [usize; 2],
        scratch: usize,
    ) -> Result<[Option<DigestRest>; 2], Error> {
        let mut of = |wanted: bool, part, from, at| {
            let key = (self.keys, part, self.host);
            wanted.then(|| digest::launch(lane, key, from, blocks, at)).transpose()
        };
        let next = scratch + digest::scratch(blocks, self.host);
        Ok([of(self.digests, 2, a, scratch)?, of(self.digests && !self.sends[0], 1, c, next)?])
    }
}

/// Queues copies of what is left of two digests, one behind the other from `to` on.
pub(crate) fn download_digests(
    lane: &mut Lane,
    digests: [Option<DigestRest>; 2],
    to: usize,
) -> Result<(), Error> {
    for (k, rest) in digests.into_iter().enumerate() {
        if let Some(DigestRest { from, blocks }) = rest {
            lane.download(from, to + k * blocks, blocks)?;
        }
    }
    Ok(())
}

/// What [`download_digests`] left of digests of so many blocks.
pub(crate) fn digest_rests(host: &[Block], at: usize, blocks: usize, most: usize) -> [&[Block]; 2] {
    let left = digest::left(blocks, most);
    [0, 1].map(|k| &host[at + k * left..][..left])
}

/// Threads of a kernel that takes eight blocks in each, those of a warp side by side.
pub(crate) fn eights(blocks: usize) -> u64 {
    (blocks as u64).div_ceil(256) * 32
}

/// Queues stage 2 of a chunk in one half as [`fold_chunk`] does, with scratch of two digests after `scratch`;
/// says where these will lie.
pub(crate) fn launch_fold(
    lane: &mut Lane,
    stage: &Stage2,
    first: u64,
    blocks: usize,
    z: [u64; 2],
    [at, scratch]: [usize; 2],
) -> Result<[Option<DigestRest>; 2], Error> {
    fold_chunk(lane, stage, first, blocks, z, at)?;
    let mut of = |wanted: bool, k: usize, scratch| {
        let key = (stage.keys, 0, stage.host);
        wanted.then(|| digest::launch(lane, key, at + k * blocks, blocks, scratch)).transpose()
    };
    let next = scratch + digest::scratch(blocks, stage.host);
    Ok([of(stage.digests, 0, scratch)?, of(stage.digests && stage.receives[0], 1, next)?])
}

/// Queues stage 2 of a chunk of which A and C lie from `at` on in the lane's buffer, and parts 1 and 2 of the
/// result at these addresses.
pub(crate) fn fold_chunk(
    lane: &mut Lane,
    stage: &Stage2,
    first: u64,
    blocks: usize,
    [z1, z2]: [u64; 2],
    at: usize,
) -> Result<(), Error> {
    let [a, c] = [0, 1].map(|k| lane.address(at + k * blocks, blocks));
    let job = jobs::Fold {
        ring: ring_number(stage.ring),
        blocks: blocks as u64,
        first,
        middle: stage.middle,
        receives: stage.receives.map(u64::from),
        masked: stage.masked.into(),
        wire_a: stage.wire_a,
        wire_c: stage.wire_c,
        keys: stage.keys,
        a,
        c,
        z1,
        z2,
    };
    let parts = if stage.receives.contains(&true) { 2 } else { 1 };
    lane.launch(job, parts * eights(blocks))
}

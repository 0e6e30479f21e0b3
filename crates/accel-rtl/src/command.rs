//! Commands as requests to the simulator. `rtl/sim/simulator.cpp` has the layout.

use crate::process::Process;
use accel::{
    BlockHalf, DeviceCommand, FoldStage, LinearStage, MultiplyStage, Seat, SeatKeys, VectorRing, Vouch,
};
use base::Error;
use kernels::Block;
use zeroize::Zeroizing;

/// Blocks of a source plane, in all terms, that the simulator takes.
pub(crate) const MAX_BLOCKS: usize = 1 << 20;
/// Blocks of a source plane that one request carries where its terms permit: longer commands go in parts.
const REQUEST: usize = 1 << 14;

const CONFIGURE: u8 = 1;
const RUN: u8 = 2;
/// Operations as descriptors number them.
const ADD: u8 = 0;
const SUBTRACT: u8 = 1;
const MULTIPLY: u8 = 2;
const FOLD: u8 = 3;
/// Flags of a descriptor.
const MASKED: u8 = 1;
const DIGEST: u8 = 2;
const EXPOSE: u8 = 4;
const SECOND: u8 = 8;

/// What the streams out are, by the bit that says that a command has them.
const Z: usize = 0;
const SENT_A: usize = 3;
const SENT_C: usize = 4;
const VOUCHED_A: usize = 5;
const VOUCHED_C: usize = 6;
const STREAMS: usize = 7;

pub(crate) fn configure(keys: &SeatKeys) -> Zeroizing<Vec<u8>> {
    let mut request = Zeroizing::new(vec![CONFIGURE, keys.seat().index() as u8]);
    for block in keys.raw().iter().chain(keys.tag_elements()) {
        request.extend_from_slice(&block.to_bytes());
    }
    request
}

/// Runs a command whose slices fit each other and returns the cycles that it took.
pub(crate) fn run(process: &mut Process, seat: Seat, command: &mut DeviceCommand<'_>) -> Result<u64, Error> {
    match command {
        DeviceCommand::Add(l) => linear(process, ADD, l),
        DeviceCommand::Sub(l) => linear(process, SUBTRACT, l),
        DeviceCommand::Multiply(m) => multiply(process, seat, m),
        DeviceCommand::Fold(f) => fold(process, seat, f),
    }
}

/// What a request says before its planes.
struct Head {
    operation: u8,
    ring: VectorRing,
    flags: u8,
    terms: usize,
    round: u64,
    first: u64,
    digests: [Block; 2],
}

/// What came of a request.
pub(crate) struct Done {
    cycles: u64,
    digests: [Block; 2],
    /// A stream is empty where the command has none.
    streams: [Vec<Block>; STREAMS],
}

impl Head {
    /// Asks for `blocks` results; `planes` yields the slices of the source planes, one after the other.
    fn ask<'a>(
        &'a self,
        process: &mut Process,
        blocks: usize,
        planes: impl Iterator<Item = &'a [Block]>,
    ) -> Result<Done, Error> {
        if self.round >> 48 != 0 || self.first.checked_add(blocks as u64).is_none() {
            return Err(Error::misuse("a session has 2^48 rounds and a round 2^64 blocks"));
        }
        let ring = match self.ring {
            VectorRing::Z128 => 0,
            VectorRing::Z64 => 1,
            VectorRing::Z2 => 2,
        };
        let mut request = Zeroizing::new(Vec::with_capacity(64 + 16 * 6 * blocks * self.terms));
        request.extend_from_slice(&[RUN, self.operation, ring, self.flags]);
        request.extend_from_slice(&(blocks as u32).to_le_bytes());
        request.extend_from_slice(&(self.terms as u32).to_le_bytes());
        request.extend_from_slice(&self.round.to_le_bytes());
        request.extend_from_slice(&self.first.to_le_bytes());
        for block in self.digests.iter().chain(planes.flatten()) {
            request.extend_from_slice(&block.to_bytes());
        }
        let answer = process.call(request)?;
        Done::read(&answer, blocks)
            .ok_or_else(|| Error::misuse("the simulator's answer has another form; run 'make rtl'"))
    }
}

impl Done {
    pub(crate) fn read(answer: &[u8], blocks: usize) -> Option<Self> {
        let (cycles, rest) = answer.split_first_chunk::<8>()?;
        let (digests, rest) = rest.split_at_checked(32)?;
        let (present, rest) = rest.split_first()?;
        let mut all = rest.as_chunks::<16>().0.iter().map(|bytes| Block::from_bytes(*bytes));
        let streams = std::array::from_fn(|s| match present >> s & 1 {
            1 => all.by_ref().take(blocks).collect(),
            _ => Vec::new(),
        });
        let wanted = present.count_ones() as usize * blocks * Block::BYTES;
        let digests = digests.as_chunks::<16>().0;
        let done = Self {
            cycles: u64::from_le_bytes(*cycles),
            digests: [Block::from_bytes(digests[0]), Block::from_bytes(digests[1])],
            streams,
        };
        (rest.len() == wanted).then_some(done)
    }

    /// Writes a stream to its place.
    fn put(&self, stream: usize, to: &mut [Block]) -> Result<(), Error> {
        if self.streams[stream].len() != to.len() {
            return Err(Error::misuse(
                "the simulator gave other streams than the command has; run 'make rtl'",
            ));
        }
        to.copy_from_slice(&self.streams[stream]);
        Ok(())
    }
}

/// The pieces of a vector that requests carry.
fn pieces(blocks: usize, terms: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let step = (REQUEST / terms.max(1)).max(1);
    (0..blocks).step_by(step).map(move |at| at..blocks.min(at + step))
}

fn linear(process: &mut Process, operation: u8, l: &mut LinearStage<'_>) -> Result<u64, Error> {
    let head =
        Head { operation, ring: l.ring, flags: 0, terms: 1, round: 0, first: 0, digests: [Block::ZERO; 2] };
    let mut cycles = 0;
    for piece in pieces(l.z[0].len(), 1) {
        let planes = l.x.iter().chain(&l.y).map(|part| &part[piece.clone()]);
        let done = head.ask(process, piece.len(), planes)?;
        for (k, part) in l.z.iter_mut().enumerate() {
            done.put(Z + k, &mut part[piece.clone()])?;
        }
        cycles += done.cycles;
    }
    Ok(cycles)
}

fn multiply(process: &mut Process, seat: Seat, m: &mut MultiplyStage<'_>) -> Result<u64, Error> {
    if m.terms > MAX_BLOCKS {
        return Err(Error::limit(
            "terms of a dot product on the device rtl",
            m.terms as u64,
            MAX_BLOCKS as u64,
        ));
    }
    let (blocks, sends) = (m.z[0].len(), m.half.sends(seat));
    let vouch = match m.vouch {
        Vouch::Nothing => 0,
        Vouch::Digest(_) => DIGEST,
        Vouch::Expose { .. } => EXPOSE,
    };
    let mut cycles = 0;
    // A sum of no terms is a sum of one that is zero.
    let zeros = if m.terms == 0 { vec![Block::ZERO; REQUEST] } else { Vec::new() };
    for piece in pieces(blocks, m.terms) {
        let head = Head {
            operation: MULTIPLY,
            ring: m.ring,
            flags: flags(m.masked, m.half) | vouch,
            terms: m.terms.max(1),
            round: m.round,
            first: m.first.wrapping_add(piece.start as u64),
            digests: if let Vouch::Digest(digests) = &m.vouch { **digests } else { [Block::ZERO; 2] },
        };
        let (zero, n, terms) = (&zeros[..piece.len().min(zeros.len())], piece.len(), m.terms);
        let planes = m.x.iter().chain(&m.y).flat_map(|part| {
            (0..terms.max(1)).map(move |term| match terms {
                0 => zero,
                _ => &part[term * blocks + piece.start..][..n],
            })
        });
        let done = head.ask(process, n, planes)?;
        for (k, part) in m.z.iter_mut().enumerate() {
            done.put(Z + k, &mut part[piece.clone()])?;
        }
        done.put(SENT_A, &mut m.a[piece.clone()])?;
        if sends {
            done.put(SENT_C, &mut m.c[piece.clone()])?;
        }
        match &mut m.vouch {
            Vouch::Nothing => {}
            Vouch::Digest(digests) => go_on(digests, &done, !sends),
            Vouch::Expose { a, c } => {
                done.put(VOUCHED_A, &mut a[piece.clone()])?;
                if !sends {
                    done.put(VOUCHED_C, &mut c[piece.clone()])?;
                }
            }
        }
        cycles += done.cycles;
    }
    Ok(cycles)
}

fn fold(process: &mut Process, seat: Seat, f: &mut FoldStage<'_>) -> Result<u64, Error> {
    let receives = f.half.receives(seat);
    let mut cycles = 0;
    for piece in pieces(f.a.len(), 1) {
        let head = Head {
            operation: FOLD,
            ring: f.ring,
            flags: flags(f.masked, f.half) | if f.digests.is_some() { DIGEST } else { 0 },
            terms: 1,
            round: f.round,
            first: f.first.wrapping_add(piece.start as u64),
            digests: f.digests.as_deref().copied().unwrap_or([Block::ZERO; 2]),
        };
        let [z1, z2] = f.z.each_mut().map(|part| &mut part[piece.clone()]);
        let c = receives.then(|| &f.c[piece.clone()]);
        let planes = [&*z1, &*z2, &f.a[piece.clone()]].into_iter().chain(c);
        let done = head.ask(process, piece.len(), planes)?;
        done.put(Z + 1, z1)?;
        done.put(Z + 2, z2)?;
        if let Some(digests) = &mut f.digests {
            go_on(digests, &done, receives);
        }
        cycles += done.cycles;
    }
    Ok(cycles)
}

fn flags(masked: bool, half: BlockHalf) -> u8 {
    (if masked { MASKED } else { 0 }) | if half == BlockHalf::Second { SECOND } else { 0 }
}

/// Takes over the digest of A, and that of C where the command has a C to digest.
fn go_on(digests: &mut [Block; 2], done: &Done, of_c: bool) {
    digests[0] = done.digests[0];
    if of_c {
        digests[1] = done.digests[1];
    }
}

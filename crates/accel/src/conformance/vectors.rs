//! Vectors that stay with a device: the bits of the CPU, chunk by chunk, several under way.

use super::{Summands, configured, parts, summands};
use crate::{
    BlockHalf, Cpu, DeviceQueue, DeviceVector, MessagePiece, Seat, StageVouch, VectorMemory, VectorProduct,
    VectorRing, VouchBy,
};
use base::Error;
use kernels::{Block, Place, SharedMemory};
use std::ops::Range;
use std::sync::Arc;

/// Blocks of a chunk: every device takes as many, and most vectors have several, the last one shorter.
const CHUNK: usize = 13;

/// A product of vectors.
#[derive(Clone, Copy, Debug)]
struct VectorShape {
    ring: VectorRing,
    blocks: usize,
    terms: usize,
    /// How often the same pair of factors comes.
    pairs: usize,
    masked: bool,
    vouch: VouchBy,
}

/// What one seat's device gave: of every chunk what left it, and the result.
#[derive(Clone, PartialEq, Eq, Default)]
struct VectorSeen {
    sent: Vec<Vec<u8>>,
    vouched: Vec<Said>,
    received: Vec<Said>,
    z: [Vec<Block>; 3],
}

/// What a device said of messages: digests or blocks.
type Said = [Vec<Block>; 2];

fn said(vouch: StageVouch<'_>) -> Said {
    match vouch {
        StageVouch::Nothing => Said::default(),
        StageVouch::Digests(both) => both.map(|digest| vec![digest]),
        StageVouch::Blocks(both) => both.map(<[Block]>::to_vec),
    }
}

/// The memory of a transport: pieces come one behind the other, with a gap before each that no block fits,
/// and one of them ends at the end of the memory and goes on at its beginning.
struct Wire {
    memory: Arc<SharedMemory>,
    pieces: Vec<MessagePiece>,
    places: Vec<Vec<Place>>,
}

/// Bytes of the memory, and before every piece.
const WIRE_BYTES: usize = 1 << 12;
const GAP: usize = 24;
/// Blocks of a piece, at most.
const PIECE: usize = 5;

impl Wire {
    /// Places for A, and C if there is one, of a chunk of so many blocks.
    fn new(blocks: usize, with_c: bool) -> Result<Self, Error> {
        let memory = SharedMemory::own(WIRE_BYTES).map_err(|e| Error::misuse(e.to_string()))?;
        let mut wire = Self { memory: Arc::new(memory), pieces: Vec::new(), places: Vec::new() };
        let mut at = WIRE_BYTES - 3 * PIECE * Block::BYTES;
        for from in (0..blocks).step_by(PIECE) {
            for of_c in [false, true].into_iter().take(1 + usize::from(with_c)) {
                let piece = MessagePiece { of_c, blocks: from..blocks.min(from + PIECE) };
                at = (at + GAP) % WIRE_BYTES;
                let first = piece.bytes().min(WIRE_BYTES - at);
                let mut places = vec![wire.memory.place(at, first)];
                if first < piece.bytes() {
                    places.push(wire.memory.place(0, piece.bytes() - first));
                }
                at = (at + piece.bytes()) % WIRE_BYTES;
                wire.pieces.push(piece);
                wire.places.push(places);
            }
        }
        Ok(wire)
    }

    /// All bytes, gaps included: nothing else may be written.
    fn content(&self) -> Vec<u8> {
        let mut all = vec![0; WIRE_BYTES];
        self.memory.read(0, &mut all);
        all
    }
}

fn shapes() -> Vec<VectorShape> {
    let mut shapes = Vec::new();
    let vouched = [(VouchBy::Nothing, false), (VouchBy::Digest, true), (VouchBy::Expose, true)];
    for ring in VectorRing::ALL {
        for (blocks, terms, pairs) in [(1, 1, 1), (2, 1, 1), (300, 1, 1), (77, 3, 1), (5, 40, 1), (40, 2, 3)]
        {
            for (vouch, masked) in vouched {
                shapes.push(VectorShape { ring, blocks, terms, pairs, masked, vouch });
            }
        }
    }
    shapes
}

/// The chunks of a vector, of so many blocks at most.
fn chunks(blocks: usize, most: usize) -> Vec<(BlockHalf, Range<usize>)> {
    let mut chunks = Vec::new();
    for half in BlockHalf::BOTH {
        let range = half.range(blocks);
        chunks.extend(range.clone().step_by(most).map(|at| (half, at..range.end.min(at + most))));
    }
    chunks
}

/// A vector of a queue, with a seat's parts of a value in it.
fn load(queue: &mut DeviceQueue, seat: Seat, ring: VectorRing, x: &Summands) -> Result<DeviceVector, Error> {
    let vector = queue.make(ring, x[0].len())?;
    queue.write(&vector, parts(seat, x))?;
    Ok(vector)
}

/// A product at all four seats: as many chunks are under way as there are slots.
fn play(
    queues: &mut [DeviceQueue],
    shape: VectorShape,
    x: &Summands,
    y: &Summands,
) -> Result<Vec<VectorSeen>, Error> {
    let VectorShape { ring, blocks, masked, vouch, .. } = shape;
    let load_all = |queues: &mut [DeviceQueue], value: &Summands| -> Result<Vec<DeviceVector>, Error> {
        Seat::ALL.into_iter().zip(queues).map(|(seat, queue)| load(queue, seat, ring, value)).collect()
    };
    let (x, y) = (load_all(queues, x)?, load_all(queues, y)?);
    let z: Vec<_> = queues.iter_mut().map(|queue| queue.make(ring, blocks)).collect::<Result<_, _>>()?;
    let mut seen = vec![VectorSeen::default(); 4];
    let slots = queues.iter_mut().map(VectorMemory::slots).min().unwrap_or(1).min(3);
    for group in chunks(blocks, CHUNK).chunks(slots) {
        for (i, queue) in queues.iter_mut().enumerate() {
            for (slot, (_, at)) in group.iter().enumerate() {
                // Turned round, so that an exchange of factors is met.
                let pairs = [[&x[i], &y[i]], [&y[i], &x[i]], [&x[i], &y[i]]];
                let factors = &pairs[..shape.pairs];
                let (at, keys) = (at.clone(), [None; 2]);
                let product = VectorProduct { round: 9, at, factors, z: &z[i], masked, vouch, keys };
                queue.start(slot, &product)?;
            }
            for (slot, (half, at)) in group.iter().enumerate() {
                let wire = Wire::new(at.len(), half.sends(Seat::new(i)))?;
                let mut outbox = queue.outbox(slot)?;
                // Two copies under way, of which the first is waited for last.
                let middle = wire.pieces.len() / 2;
                let first = outbox.copy(&wire.pieces[..middle], &wire.places[..middle])?;
                outbox.copy(&wire.pieces[middle..], &wire.places[middle..])?.wait()?;
                first.wait()?;
                seen[i].sent.push(wire.content());
                seen[i].vouched.push(said(queue.vouched(slot)?));
            }
        }
        for (i, queue) in queues.iter_mut().enumerate() {
            for (slot, (half, at)) in group.iter().enumerate() {
                let sent = &seen[(i + 1) % 4].sent;
                let wire = Wire::new(at.len(), half.receives(Seat::new(i)))?;
                wire.memory.write(0, &sent[sent.len() - group.len() + slot]);
                drop(queue.inbox(slot)?.copy(&wire.pieces, &wire.places)?);
                queue.fold(slot)?;
            }
            for slot in 0..group.len() {
                let received = said(queue.arrived(slot)?);
                queue.settle(slot)?;
                seen[i].received.push(received);
            }
        }
    }
    for ((queue, z), seen) in queues.iter_mut().zip(&z).zip(&mut seen) {
        seen.z = std::array::from_fn(|_| vec![Block::ZERO; blocks]);
        // In two pieces, so that a place within the vector is met.
        let first = blocks / 3;
        let [z0, z1, z2] = seen.z.each_mut().map(|part| part.split_at_mut(first));
        queue.read(z, 0, [&mut *z0.0, &mut *z1.0, &mut *z2.0])?;
        queue.read(z, first, [&mut *z0.1, &mut *z1.1, &mut *z2.1])?;
    }
    Ok(seen)
}

/// Misuse is told, not done.
fn misuse(queue: &mut DeviceQueue, other: &mut DeviceQueue) -> Result<(), Error> {
    let (x, z) = (queue.make(VectorRing::Z64, 10)?, queue.make(VectorRing::Z64, 4)?);
    let foreign = other.make(VectorRing::Z64, 10)?;
    let (at, vouch) = (0..2, VouchBy::Nothing);
    let (ones, twos) = ([[&x, &x]], [[&z, &z]]);
    let product =
        |factors, at| VectorProduct { round: 1, at, factors, z: &z, masked: false, vouch, keys: [None; 2] };
    let wrong = [
        queue.start(0, &product(&ones, at.clone())).is_err(),
        queue.start(0, &product(&[], at.clone())).is_err(),
        queue.start(0, &product(&twos, 1..3)).is_err(),
        queue.start(0, &product(&twos, 3..5)).is_err(),
        queue.write(&foreign, [&[Block::ZERO; 10]; 3]).is_err(),
        queue.write(&x, [&[Block::ZERO; 9]; 3]).is_err(),
        queue.read(&x, 5, [&mut [Block::ZERO; 6], &mut [Block::ZERO; 6], &mut [Block::ZERO; 6]]).is_err(),
        queue.vouched(0).is_err(),
        queue.outbox(0).is_err(),
        queue.inbox(0).is_err(),
        queue.fold(0).is_err(),
        queue.settle(0).is_err(),
    ];
    if wrong == [true; 12] { Ok(()) } else { Err(Error::misuse(format!("misuse passed: {wrong:?}"))) }
}

/// As [`super::check_queue`], for vectors that stay with the devices.
pub fn check(queues: &mut [DeviceQueue]) -> Result<(), String> {
    let mut reference = configured(&|| Ok(DeviceQueue::new(vec![Box::new(Cpu::default())])))?;
    for (i, shape) in shapes().into_iter().enumerate() {
        let label = 5000 + 16 * i as u64;
        let n = shape.blocks * shape.terms;
        let (x, y) = (summands(label, n), summands(label + 4, n));
        let word = |e: Error| format!("{shape:?}: {e}");
        if play(queues, shape, &x, &y).map_err(word)? != play(&mut reference, shape, &x, &y).map_err(word)? {
            return Err(format!("{shape:?}: vectors on the device do not have the bits of the CPU"));
        }
    }
    super::steps::check(queues, &mut reference[0])?;
    misuse(&mut queues[0], &mut reference[0]).map_err(|e| e.to_string())
}

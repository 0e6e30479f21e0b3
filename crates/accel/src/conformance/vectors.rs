//! Vectors that stay with a device: the bits of the CPU, chunk by chunk, several under way.

use super::{Summands, configured, parts, summands};
use crate::{
    BlockHalf, Cpu, DeviceQueue, DeviceVector, Seat, VectorMemory, VectorProduct, VectorRing, VouchBy,
};
use base::Error;
use kernels::Block;
use std::ops::Range;

/// Blocks of a chunk: every device takes as many, and most vectors have several, the last one shorter.
const CHUNK: usize = 13;

/// A product of vectors.
#[derive(Clone, Copy, Debug)]
struct VectorShape {
    ring: VectorRing,
    blocks: usize,
    terms: usize,
    masked: bool,
    vouch: VouchBy,
}

/// What one seat's device gave: of every chunk what left it, and the result.
#[derive(Clone, PartialEq, Eq, Default)]
struct VectorSeen {
    sent: Vec<[Vec<Block>; 2]>,
    exposed: Vec<Option<[Vec<Block>; 2]>>,
    digests: Vec<Option<[Block; 2]>>,
    received: Vec<Option<[Block; 2]>>,
    z: [Vec<Block>; 3],
}

fn shapes() -> Vec<VectorShape> {
    let mut shapes = Vec::new();
    let vouched = [(VouchBy::Nothing, false), (VouchBy::Digest, true), (VouchBy::Expose, true)];
    for ring in VectorRing::ALL {
        for (blocks, terms) in [(1, 1), (2, 1), (300, 1), (77, 3), (5, 40)] {
            for (vouch, masked) in vouched {
                shapes.push(VectorShape { ring, blocks, terms, masked, vouch });
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
            for (slot, (half, at)) in group.iter().enumerate() {
                let (half, at) = (*half, at.clone());
                let product =
                    VectorProduct { round: 9, at, half, x: &x[i], y: &y[i], z: &z[i], masked, vouch };
                queue.start(slot, &product)?;
            }
            for slot in 0..group.len() {
                let messages = queue.messages(slot)?;
                seen[i].sent.push([messages.a.to_vec(), messages.c.to_vec()]);
                seen[i].exposed.push(messages.exposed.map(|both| both.map(<[Block]>::to_vec)));
                seen[i].digests.push(messages.digests);
            }
        }
        for (i, queue) in queues.iter_mut().enumerate() {
            for slot in 0..group.len() {
                let sent = &seen[(i + 1) % 4].sent;
                let from = &sent[sent.len() - group.len() + slot];
                let inbox = queue.messages(slot)?.inbox;
                inbox.into_iter().zip(from).filter(|(into, _)| !into.is_empty()).for_each(|(into, from)| {
                    into.copy_from_slice(from);
                });
                queue.fold(slot)?;
            }
            for slot in 0..group.len() {
                let received = queue.settle(slot)?;
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

/// Sums and differences.
fn linear(queues: &mut [DeviceQueue]) -> Result<(), String> {
    let word = |e: Error| format!("sums of vectors: {e}");
    for (ring, negative) in VectorRing::ALL.into_iter().flat_map(|ring| [(ring, false), (ring, true)]) {
        let (x, y) = (summands(31, 300), summands(37, 300));
        for (seat, queue) in Seat::ALL.into_iter().zip(queues.iter_mut()) {
            let [x_held, y_held] = [&x, &y].map(|value| load(queue, seat, ring, value));
            let z = queue.make(ring, 300).map_err(word)?;
            queue.linear(negative, &x_held.map_err(word)?, &y_held.map_err(word)?, &z).map_err(word)?;
            let mut got: [Vec<Block>; 3] = std::array::from_fn(|_| vec![Block::ZERO; 300]);
            queue.read(&z, 0, got.each_mut().map(Vec::as_mut_slice)).map_err(word)?;
            let apply = |a, b| if negative { ring.sub(a, b) } else { ring.add(a, b) };
            for ((x, y), got) in parts(seat, &x).into_iter().zip(parts(seat, &y)).zip(&got) {
                if (0..300).any(|i| got[i] != apply(x[i], y[i])) {
                    return Err(format!("{ring:?}: a sum or difference of vectors is wrong"));
                }
            }
        }
    }
    Ok(())
}

/// Misuse is told, not done.
fn misuse(queue: &mut DeviceQueue, other: &mut DeviceQueue) -> Result<(), Error> {
    let (x, z) = (queue.make(VectorRing::Z64, 10)?, queue.make(VectorRing::Z64, 4)?);
    let foreign = other.make(VectorRing::Z64, 10)?;
    let (half, at, vouch) = (BlockHalf::First, 0..2, VouchBy::Nothing);
    let product = |x, at| VectorProduct { round: 1, at, half, x, y: x, z: &z, masked: false, vouch };
    let wrong = [
        queue.start(0, &product(&x, at.clone())).is_err(),
        queue.start(0, &product(&z, 1..3)).is_err(),
        queue.write(&foreign, [&[Block::ZERO; 10]; 3]).is_err(),
        queue.write(&x, [&[Block::ZERO; 9]; 3]).is_err(),
        queue.read(&x, 5, [&mut [Block::ZERO; 6], &mut [Block::ZERO; 6], &mut [Block::ZERO; 6]]).is_err(),
        queue.messages(0).is_err(),
        queue.fold(0).is_err(),
        queue.settle(0).is_err(),
    ];
    if wrong == [true; 8] { Ok(()) } else { Err(Error::misuse(format!("misuse passed: {wrong:?}"))) }
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
    linear(queues)?;
    misuse(&mut queues[0], &mut reference[0]).map_err(|e| e.to_string())
}

//! What every device, and every queue of devices, must give: products that add up, and the bits of the CPU.

mod steps;
mod vectors;

use crate::{
    BlockHalf, Cpu, Device, DeviceCommand, DeviceQueue, FoldStage, LinearStage, MultiplyStage, Seat,
    SeatKeys, VectorRing, Vouch,
};
use kernels::{Aes128, Block};
use std::sync::Arc;

/// Makes a device; called once per seat.
pub type DeviceMaker<'a> = dyn Fn() -> Result<Box<dyn Device>, base::Error> + 'a;
/// Makes a queue of devices; called once per seat.
pub type MakeQueue<'a> = dyn Fn() -> Result<DeviceQueue, base::Error> + 'a;

fn random(label: u64, n: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    kernels::stream(&Aes128::new(Block(0x5eed)), label, 0, &mut out);
    out
}

/// The keys of all seats, as a dealer would give them.
#[must_use]
pub fn keys() -> [Arc<SeatKeys>; 4] {
    let (streams, tags) = (random(1, 4), random(2, 4));
    Seat::ALL.map(|seat| {
        let of = |all: &[Block]| [0, 1, 2].map(|k| all[seat.summand(k).index()]);
        Arc::new(SeatKeys::new(seat, of(&streams), of(&tags)))
    })
}

/// What one seat's device gave.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    z: [Vec<Block>; 3],
    a: Vec<Block>,
    c: Vec<Block>,
    vouched: [Block; 2],
    exposed: [Vec<Block>; 2],
    received: [Block; 2],
}

/// A command's settings.
#[derive(Clone, Copy, Debug)]
struct Shape {
    ring: VectorRing,
    blocks: usize,
    terms: usize,
    half: BlockHalf,
    masked: bool,
    digest: bool,
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for ring in VectorRing::ALL {
        for (blocks, terms) in
            [(1, 1), (2, 3), (7, 1), (255, 1), (256, 2), (257, 1), (1000, 1), (3, 40), (0, 1)]
        {
            for half in BlockHalf::BOTH {
                for (masked, digest) in [(false, false), (true, true), (false, true), (true, false)] {
                    shapes.push(Shape { ring, blocks, terms, half, masked, digest });
                }
            }
        }
    }
    shapes
}

/// Summands of a value: one vector per index.
type Summands = [Vec<Block>; 4];

fn parts(seat: Seat, x: &Summands) -> [&[Block]; 3] {
    [0, 1, 2].map(|k| &*x[seat.summand(k).index()])
}

fn summands(label: u64, n: usize) -> Summands {
    std::array::from_fn(|j| random(label + j as u64, n))
}

/// Runs both stages at all four seats.
fn play(queues: &mut [DeviceQueue], shape: Shape, x: &Summands, y: &Summands) -> Result<Vec<Seen>, String> {
    let n = shape.blocks;
    let word = |e: base::Error| format!("{shape:?}: {e}");
    let mut seen = Vec::new();
    for (seat, queue) in Seat::ALL.into_iter().zip(queues.iter_mut()) {
        let sends = shape.half.sends(seat);
        let empty = || vec![Block::ZERO; n];
        let some = |there: bool| vec![Block::ZERO; if there { n } else { 0 }];
        let mut own = Seen {
            z: [empty(), empty(), empty()],
            a: empty(),
            c: some(sends),
            vouched: [Block(1), Block(2)],
            exposed: [empty(), some(!sends)],
            received: [Block(3), Block(4)],
        };
        let [z0, z1, z2] = &mut own.z;
        let [exposed_a, exposed_c] = &mut own.exposed;
        let vouch = match (shape.digest, shape.masked) {
            (true, _) => Vouch::Digest(&mut own.vouched),
            (false, true) => Vouch::Expose { a: exposed_a, c: exposed_c },
            (false, false) => Vouch::Nothing,
        };
        let command = MultiplyStage {
            ring: shape.ring,
            round: 77,
            first: 5,
            half: shape.half,
            terms: shape.terms,
            x: parts(seat, x),
            y: parts(seat, y),
            z: [z0, z1, z2],
            a: &mut own.a,
            c: &mut own.c,
            masked: shape.masked,
            vouch,
        };
        queue.run(&mut DeviceCommand::Multiply(command)).map_err(word)?;
        seen.push(own);
    }
    for (seat, queue) in Seat::ALL.into_iter().zip(queues.iter_mut()) {
        let from = &seen[seat.after(1).index()];
        let (a, c) = (from.a.clone(), from.c.clone());
        let own = &mut seen[seat.index()];
        let [_, z1, z2] = &mut own.z;
        let digests = shape.digest.then_some(&mut own.received);
        let Shape { ring, half, masked, .. } = shape;
        let command =
            FoldStage { ring, round: 77, first: 5, half, z: [z1, z2], a: &a, c: &c, masked, digests };
        queue.run(&mut DeviceCommand::Fold(command)).map_err(word)?;
    }
    Ok(seen)
}

/// Whether all seats agree on every summand, and the sum is the product.
fn consistent(shape: Shape, x: &Summands, y: &Summands, seen: &[Seen]) -> Result<(), String> {
    let ring = shape.ring;
    let whole = |x: &Summands, i: usize| x.iter().fold(Block::ZERO, |sum, part| ring.add(sum, part[i]));
    for i in 0..shape.blocks {
        let mut sum = Block::ZERO;
        for j in Seat::ALL {
            let part = |seat: Seat| seat.part_of(j).map(|k| seen[seat.index()].z[k][i]);
            let held: Vec<Block> = Seat::ALL.into_iter().filter_map(part).collect();
            if held.iter().any(|v| *v != held[0]) {
                return Err(format!("{shape:?}: seats differ on summand {} of block {i}", j.index()));
            }
            sum = ring.add(sum, held[0]);
        }
        let wanted = (0..shape.terms).fold(Block::ZERO, |sum, term| {
            let at = term * shape.blocks + i;
            ring.add(sum, ring.mul(whole(x, at), whole(y, at)))
        });
        if sum != wanted {
            return Err(format!("{shape:?}: block {i} is not the product"));
        }
    }
    Ok(())
}

/// Whether what is vouched for is what is sent.
fn vouched(shape: Shape, seen: &[Seen]) -> Result<(), String> {
    for seat in Seat::ALL {
        let [own, a_from, c_from] = [seat, seat.after(3), seat.after(2)].map(|s| &seen[s.index()]);
        let vouches = !shape.half.sends(seat);
        if !shape.digest && shape.masked {
            let [a, c] = &own.exposed;
            if *a != a_from.a || vouches && *c != c_from.c {
                return Err(format!("{shape:?}: seat {} vouches for something else", seat.index()));
            }
        }
    }
    Ok(())
}

/// Runs all cases on a device at each of the four seats and compares with the CPU, bit by bit.
///
/// # Errors
/// The first case that differs.
pub fn check(make: &DeviceMaker<'_>) -> Result<(), String> {
    check_queue(&|| Ok(DeviceQueue::new(vec![make()?])))
}

/// As [`check`], on a queue of devices. One that is to share out these short commands says so
/// ([`DeviceQueue::with_least`]).
///
/// # Errors
/// The first case that differs.
pub fn check_queue(make: &MakeQueue<'_>) -> Result<(), String> {
    let mut queues = configured(make)?;
    let mut reference = configured(&|| Ok(DeviceQueue::new(vec![Box::new(Cpu::default())])))?;
    for (i, shape) in shapes().into_iter().enumerate() {
        let n = shape.blocks * shape.terms;
        let label = 100 + 16 * i as u64;
        let (x, y) = (summands(label, n), summands(label + 4, n));
        let seen = play(&mut queues, shape, &x, &y)?;
        consistent(shape, &x, &y, &seen)?;
        vouched(shape, &seen)?;
        if seen != play(&mut reference, shape, &x, &y)? {
            return Err(format!("{shape:?}: not the bits of the CPU"));
        }
    }
    linear(&mut queues)?;
    vectors::check(&mut queues)
}

/// A queue per seat, with its keys.
fn configured(make: &MakeQueue<'_>) -> Result<Vec<DeviceQueue>, String> {
    let one = |keys: &Arc<SeatKeys>| {
        let mut queue = make()?;
        queue.configure(keys)?;
        Ok(queue)
    };
    keys().iter().map(one).collect::<Result<_, base::Error>>().map_err(|e| e.to_string())
}

fn linear(queues: &mut [DeviceQueue]) -> Result<(), String> {
    for ring in VectorRing::ALL {
        for n in [0, 1, 300] {
            let (x, y) = (summands(7, n), summands(11, n));
            for (seat, queue) in Seat::ALL.into_iter().zip(queues.iter_mut()) {
                for add in [true, false] {
                    let mut z: [Vec<Block>; 3] = std::array::from_fn(|_| vec![Block::ZERO; n]);
                    let [z0, z1, z2] = &mut z;
                    let operands =
                        LinearStage { ring, x: parts(seat, &x), y: parts(seat, &y), z: [z0, z1, z2] };
                    let mut command =
                        if add { DeviceCommand::Add(operands) } else { DeviceCommand::Sub(operands) };
                    queue.run(&mut command).map_err(|e| e.to_string())?;
                    let apply = |a, b| if add { ring.add(a, b) } else { ring.sub(a, b) };
                    for ((x, y), z) in parts(seat, &x).into_iter().zip(parts(seat, &y)).zip(&z) {
                        if (0..n).any(|i| z[i] != apply(x[i], y[i])) {
                            return Err(format!("{ring:?}, {n} blocks: a sum or difference is wrong"));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_conforms() {
        check(&|| Ok(Box::new(Cpu::default()))).unwrap();
    }

    #[test]
    fn queues_of_several_devices_conform() {
        for (devices, least) in [(1, 1), (2, 128), (3, 1)] {
            let device = |_| Box::new(Cpu::default()) as Box<dyn Device>;
            check_queue(&|| Ok(DeviceQueue::new((0..devices).map(device).collect()).with_least(least)))
                .unwrap();
        }
    }
}

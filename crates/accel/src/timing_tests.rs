//! No branch, no address and no time of the CPU as a device depends on keys, shares or digests.

use crate::{
    BlockHalf, Cpu, Device, DeviceCommand, FoldStage, MultiplyStage, Seat, SeatKeys, VectorRing, Vouch,
};
use kernels::{Block, InstructionSet};
use std::sync::Arc;
use timing::{TimedKernel, done};

/// More than one pass.
const BLOCKS: usize = 131;
/// K and the element of tags, by part.
const KEYS: usize = 6;

fn device(x: &[Block]) -> Cpu {
    let mut cpu = Cpu::default();
    let keys = SeatKeys::new(Seat::new(1), [x[0], x[1], x[2]], [x[3], x[4], x[5]]);
    cpu.configure(Arc::new(keys)).expect("the CPU takes any keys");
    cpu
}

/// Both stages of a product with digests, messages hidden.
fn product(ring: VectorRing, half: BlockHalf, secret: &[u8]) {
    let mut x = vec![Block::ZERO; secret.len() / Block::BYTES];
    Block::read_slice(secret, &mut x);
    let mut cpu = device(&x);
    let part = |i: usize| &x[KEYS + i * BLOCKS..][..BLOCKS];
    let [mut z0, mut z1, mut z2, mut a, mut c] = [(); 5].map(|()| vec![Block::ZERO; BLOCKS]);
    let mut digests = [Block::ZERO; 2];
    c.truncate(if half.sends(Seat::new(1)) { BLOCKS } else { 0 });
    let multiply = MultiplyStage {
        ring,
        round: 3,
        first: 0,
        half,
        terms: 1,
        x: [part(0), part(1), part(2)],
        y: [part(3), part(4), part(5)],
        z: [&mut z0, &mut z1, &mut z2],
        a: &mut a,
        c: &mut c,
        masked: true,
        vouch: Vouch::Digest(&mut digests),
    };
    cpu.run(&mut DeviceCommand::Multiply(multiply)).expect("slices fit");
    done(&digests);
    [&a, &c, &z0].iter().for_each(|part| done(&part[..]));
    let arrived = vec![Block(9); if half.receives(Seat::new(1)) { BLOCKS } else { 0 }];
    let (z, digests) = ([&mut z1[..], &mut z2[..]], Some(&mut digests));
    let fold =
        FoldStage { ring, round: 3, first: 0, half, z, a: part(0), c: &arrived, masked: true, digests };
    cpu.run(&mut DeviceCommand::Fold(fold)).expect("slices fit");
    [&z1, &z2].iter().for_each(|part| done(&part[..]));
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    let case = |ring: VectorRing, half: BlockHalf, name: &str| {
        let bytes = (KEYS + 6 * BLOCKS) * Block::BYTES;
        TimedKernel::new(format!("device, {ring:?}, {name} half: keys, shares"), bytes, move |secret| {
            product(ring, half, secret);
        })
    };
    let halves = BlockHalf::BOTH.into_iter().zip(["first", "other"]);
    VectorRing::ALL
        .into_iter()
        .flat_map(|ring| halves.clone().map(move |(half, name)| case(ring, half, name)))
        .collect()
}

timing::tests!(cases);

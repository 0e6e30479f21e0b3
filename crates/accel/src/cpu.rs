//! The CPU as a device: the reference that the others are compared with.
//!
//! One pass over blocks that stay in the first-level cache: products, masks, what is sent, digests. A mask
//! never leaves its register; what is sent is computed where it is sent from.

use crate::{
    Device, DeviceCommand, FoldStage, LinearStage, MultiplyStage, Seat, SeatKeys, StreamName, Use, Vouch,
    check,
};
use base::Error;
use kernels::{Block, JointMask, Keystream, VectorRing, Write, gf_digest, ring_add, ring_cross, ring_sub};
use std::sync::Arc;

/// Blocks of one pass: what it touches, fourteen times as much, fits the first-level cache.
const PASS: usize = 128;

/// The CPU.
#[derive(Default)]
pub struct Cpu {
    keys: Option<Arc<SeatKeys>>,
}

impl Device for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error> {
        self.keys = Some(keys);
        Ok(())
    }

    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        let keys = self.keys.as_deref().ok_or_else(|| Error::misuse("the device has no keys yet"))?;
        check(command, keys.seat())?;
        match command {
            DeviceCommand::Add(l) => linear(l, ring_add),
            DeviceCommand::Sub(l) => linear(l, ring_sub),
            DeviceCommand::Multiply(m) => multiply(keys, m),
            DeviceCommand::Fold(f) => fold(keys, f),
        }
        Ok(())
    }
}

fn linear(l: &mut LinearStage<'_>, apply: fn(VectorRing, &mut [Block], &[Block])) {
    for ((z, x), y) in l.z.iter_mut().zip(l.x).zip(l.y) {
        for ((z, x), y) in z.chunks_mut(PASS).zip(x.chunks(PASS)).zip(y.chunks(PASS)) {
            z.copy_from_slice(x);
            apply(l.ring, z, y);
        }
    }
}

/// The streams of one pass.
struct Pass<'a> {
    keys: &'a SeatKeys,
    ring: VectorRing,
    round: u64,
    first: u64,
    masked: bool,
}

impl<'a> Pass<'a> {
    /// rho of the channel (sender, voucher), under the key of a part.
    fn mask(&self, part: usize, channel: [Seat; 2]) -> Keystream<'a> {
        self.keys.keystream(part, StreamName { round: self.round, r#use: Use::Mask, channel }, self.first)
    }

    /// What hides the messages of a channel, if they are hidden.
    fn wire(&self, part: usize, channel: [Seat; 2]) -> Option<Keystream<'a>> {
        let stream = StreamName { round: self.round, r#use: Use::Wire, channel };
        self.masked.then(|| self.keys.keystream(part, stream, self.first))
    }

    /// `sums += x`, and what hides x is taken off.
    fn arrive(&self, wire: Option<Keystream<'_>>, sums: &mut [Block], x: &[Block]) {
        match wire {
            Some(wire) => wire.add_unmasked(self.ring, sums, x),
            None => ring_add(self.ring, sums, x),
        }
    }
}

/// Blocks of a pass that go nowhere else.
#[repr(align(64))]
struct Scratch([Block; PASS]);

fn multiply(keys: &SeatKeys, m: &mut MultiplyStage<'_>) {
    let blocks = m.z[0].len();
    let mut scratch = [const { Scratch([Block::ZERO; PASS]) }; 2];
    for at in (0..blocks).step_by(PASS) {
        multiply_some(keys, m, at, PASS.min(blocks - at), &mut scratch);
    }
}

/// Stage 1 of `n` blocks from block `at` on.
fn multiply_some(
    keys: &SeatKeys,
    m: &mut MultiplyStage<'_>,
    at: usize,
    n: usize,
    scratch: &mut [Scratch; 2],
) {
    let (ring, me, here) = (m.ring, keys.seat(), at..at + n);
    let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
    let (sends, vouches) = (m.half.sends(me), !matches!(m.vouch, Vouch::Nothing));
    let [scratch_b, scratch_c] = scratch.each_mut().map(|s| &mut s.0[..n]);
    let (exposed_b, exposed_c, digests) = match &mut m.vouch {
        Vouch::Nothing => (None, None, None),
        Vouch::Digest(digests) => (None, None, Some(digests)),
        Vouch::Expose { a, c } => (Some(&mut a[here.clone()]), c.get_mut(here.clone()), None),
    };
    let a = &mut m.a[here.clone()];
    let b = exposed_b.unwrap_or(scratch_b);
    let c = if sends { &mut m.c[here.clone()] } else { exposed_c.unwrap_or(scratch_c) };
    if m.terms == 0 {
        [&mut *a, &mut *b, &mut *c].into_iter().for_each(|sums| sums.fill(Block::ZERO));
    }
    for term in 0..m.terms {
        let from = term * m.z[0].len() + at;
        let [x, y] = [m.x, m.y].map(|parts| parts.map(|part| &part[from..from + n]));
        let write = if term == 0 { Write::Set } else { Write::Add };
        ring_cross(ring, write, x, y, [&mut *a, &mut *b, &mut *c]);
    }
    let [z0, z1, z2] = m.z.each_mut().map(|part| &mut part[here.clone()]);
    let pass = Pass { keys, ring, round: m.round, first: m.first + at as u64, masked: m.masked };
    // Own A, sent to s3.
    let (mask, wire) = (pass.mask(2, [me, s1]), pass.wire(1, [me, s1]));
    JointMask { mask, wire, to_mask: (Write::Set, z2), to_rest: (Write::Set, z1) }.split(ring, a);
    // A of s3, vouched for to s2.
    let (mask, wire) = (pass.mask(1, [s3, me]), pass.wire(0, [s3, me]).filter(|_| vouches));
    JointMask { mask, wire, to_mask: (Write::Add, z1), to_rest: (Write::Set, z0) }.split(ring, b);
    // A of s2, which goes to s1: this seat is the fourth.
    pass.mask(0, [s2, s3]).add(ring, z0);
    // C: own, or that of s2.
    if sends {
        let (mask, wire) = (pass.mask(2, [me, s2]), pass.wire(0, [me, s2]));
        JointMask { mask, wire, to_mask: (Write::Add, z2), to_rest: (Write::Add, z0) }.split(ring, c);
    } else {
        let (mask, wire) = (pass.mask(0, [s2, me]), pass.wire(2, [s2, me]).filter(|_| vouches));
        JointMask { mask, wire, to_mask: (Write::Add, z0), to_rest: (Write::Add, z2) }.split(ring, c);
    }
    if !m.half.receives(me) {
        pass.mask(1, [s3, s1]).add(ring, z1);
    }
    if let Some([of_a, of_c]) = digests {
        *of_a = gf_digest(keys.tag(2), *of_a, b);
        if !sends {
            *of_c = gf_digest(keys.tag(1), *of_c, c);
        }
    }
}

fn fold(keys: &SeatKeys, f: &mut FoldStage<'_>) {
    let (ring, me, blocks) = (f.ring, keys.seat(), f.a.len());
    let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
    for at in (0..blocks).step_by(PASS) {
        let here = at..blocks.min(at + PASS);
        let pass = Pass { keys, ring, round: f.round, first: f.first + at as u64, masked: f.masked };
        let [z1, z2] = f.z.each_mut().map(|part| &mut part[here.clone()]);
        let (a, c) = (&f.a[here.clone()], f.c.get(here).unwrap_or_default());
        pass.arrive(pass.wire(2, [s1, s2]), z2, a);
        if !c.is_empty() {
            pass.arrive(pass.wire(1, [s1, s3]), z1, c);
        }
        if let Some([of_a, of_c]) = &mut f.digests {
            *of_a = gf_digest(keys.tag(0), *of_a, a);
            *of_c = gf_digest(keys.tag(0), *of_c, c);
        }
    }
}

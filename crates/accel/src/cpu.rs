//! The CPU as a device: the reference that the others are compared with.
//!
//! One pass over blocks that stay in the first-level cache: products, streams, what is sent, digests.

use crate::{Command, Device, Fold, Keys, Linear, Multiply, Seat, Stream, Use, Vouch, check};
use base::Error;
use kernels::{Block, gf_digest, ring_add, ring_cross, ring_sub};
use std::sync::Arc;

/// Blocks of one pass.
const PASS: usize = 256;

/// The CPU.
#[derive(Default)]
pub struct Cpu {
    keys: Option<Arc<Keys>>,
}

impl Device for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn configure(&mut self, keys: Arc<Keys>) -> Result<(), Error> {
        self.keys = Some(keys);
        Ok(())
    }

    fn run(&mut self, command: &mut Command<'_>) -> Result<(), Error> {
        let keys = self.keys.as_deref().ok_or_else(|| Error::misuse("the device has no keys yet"))?;
        check(command, keys.seat())?;
        match command {
            Command::Add(l) => linear(l, ring_add),
            Command::Sub(l) => linear(l, ring_sub),
            Command::Multiply(m) => multiply(keys, m),
            Command::Fold(f) => fold(keys, f),
        }
        Ok(())
    }
}

fn linear(l: &mut Linear<'_>, apply: fn(kernels::Ring, &mut [Block], &[Block])) {
    for ((z, x), y) in l.z.iter_mut().zip(l.x).zip(l.y) {
        z.copy_from_slice(x);
        apply(l.ring, z, y);
    }
}

/// The streams that a pass takes from.
struct Source<'a> {
    keys: &'a Keys,
    round: u64,
    first: u64,
    scratch: [Block; PASS],
}

impl Source<'_> {
    /// The next elements of the stream of a channel (sender, voucher), under the key of a part.
    fn take(&mut self, r#use: Use, part: usize, channel: [Seat; 2], n: usize) -> &[Block] {
        let stream = Stream { round: self.round, r#use, channel };
        self.keys.fill(part, stream, self.first, &mut self.scratch[..n]);
        &self.scratch[..n]
    }
}

fn multiply(keys: &Keys, m: &mut Multiply<'_>) {
    let (ring, me, blocks) = (m.ring, keys.seat(), m.z[0].len());
    let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
    let (sends, receives) = (m.half.sends(me), m.half.receives(me));
    let mut source = Source { keys, round: m.round, first: m.first, scratch: [Block::ZERO; PASS] };
    let mut buffers = [[Block::ZERO; PASS]; 3];
    for at in (0..blocks).step_by(PASS) {
        let n = PASS.min(blocks - at);
        let [a, b, c] = buffers.each_mut().map(|buffer| &mut buffer[..n]);
        [&mut *a, &mut *b, &mut *c].into_iter().for_each(|sums| sums.fill(Block::ZERO));
        for term in 0..m.terms {
            let from = term * blocks + at;
            let [x, y] = [m.x, m.y].map(|parts| parts.map(|part| &part[from..from + n]));
            ring_cross(ring, x, y, [&mut *a, &mut *b, &mut *c]);
        }
        let [z0, z1, z2] = m.z.each_mut().map(|part| &mut part[at..at + n]);
        source.first = m.first + at as u64;
        // Own A, sent to s3: rho goes to part 2 and the message to part 1.
        let rho = source.take(Use::Mask, 2, [me, s1], n);
        ring_sub(ring, a, rho);
        z2.copy_from_slice(rho);
        z1.copy_from_slice(a);
        // A of s3, vouched for to s2.
        let rho = source.take(Use::Mask, 1, [s3, me], n);
        ring_sub(ring, b, rho);
        ring_add(ring, z1, rho);
        z0.copy_from_slice(b);
        // A of s2, which goes to s1: this seat is the fourth.
        ring_add(ring, z0, source.take(Use::Mask, 0, [s2, s3], n));
        // C: own, or that of s2.
        if sends {
            let rho = source.take(Use::Mask, 2, [me, s2], n);
            ring_sub(ring, c, rho);
            ring_add(ring, z2, rho);
            ring_add(ring, z0, c);
        } else {
            let rho = source.take(Use::Mask, 0, [s2, me], n);
            ring_sub(ring, c, rho);
            ring_add(ring, z0, rho);
            ring_add(ring, z2, c);
        }
        if !receives {
            ring_add(ring, z1, source.take(Use::Mask, 1, [s3, s1], n));
        }
        let vouches = !matches!(m.vouch, Vouch::Nothing);
        if m.masked {
            ring_add(ring, a, source.take(Use::Wire, 1, [me, s1], n));
            if vouches {
                ring_add(ring, b, source.take(Use::Wire, 0, [s3, me], n));
            }
            if sends {
                ring_add(ring, c, source.take(Use::Wire, 0, [me, s2], n));
            } else if vouches {
                ring_add(ring, c, source.take(Use::Wire, 2, [s2, me], n));
            }
        }
        m.a[at..at + n].copy_from_slice(a);
        if sends {
            m.c[at..at + n].copy_from_slice(c);
        }
        match &mut m.vouch {
            Vouch::Nothing => {}
            Vouch::Digest([of_a, of_c]) => {
                *of_a = gf_digest(keys.tag(2), *of_a, b);
                if !sends {
                    *of_c = gf_digest(keys.tag(1), *of_c, c);
                }
            }
            Vouch::Expose { a: of_a, c: of_c } => {
                of_a[at..at + n].copy_from_slice(b);
                if !sends {
                    of_c[at..at + n].copy_from_slice(c);
                }
            }
        }
    }
}

fn fold(keys: &Keys, f: &mut Fold<'_>) {
    let (ring, me, blocks) = (f.ring, keys.seat(), f.a.len());
    let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
    let mut source = Source { keys, round: f.round, first: f.first, scratch: [Block::ZERO; PASS] };
    for at in (0..blocks).step_by(PASS) {
        let n = PASS.min(blocks - at);
        let [z1, z2] = f.z.each_mut().map(|part| &mut part[at..at + n]);
        source.first = f.first + at as u64;
        let a = &f.a[at..at + n];
        ring_add(ring, z2, a);
        if f.masked {
            ring_sub(ring, z2, source.take(Use::Wire, 2, [s1, s2], n));
        }
        let c = f.c.get(at..at + n).unwrap_or_default();
        if !c.is_empty() {
            ring_add(ring, z1, c);
            if f.masked {
                ring_sub(ring, z1, source.take(Use::Wire, 1, [s1, s3], n));
            }
        }
        if let Some([of_a, of_c]) = &mut f.digests {
            *of_a = gf_digest(keys.tag(0), *of_a, a);
            *of_c = gf_digest(keys.tag(0), *of_c, c);
        }
    }
}

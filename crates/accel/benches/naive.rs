//! The model element by element, as its table states it: the six joint inputs one after the other, whole
//! vectors of masks, scalar arithmetic. To compare with: the bits in `tests/naive.rs`, the time in the bench.

use accel::{
    BlockHalf, Device, DeviceCommand, FoldStage, LinearStage, MultiplyStage, Seat, SeatKeys, StreamName, Use,
    VectorRing, Vouch, check,
};
use base::Error;
use kernels::{Block, gf_digest};
use std::sync::Arc;

/// The device.
#[derive(Default)]
pub struct Naive {
    keys: Option<Arc<SeatKeys>>,
}

/// A value that two seats know, on its way to being two summands.
#[derive(Clone, Copy)]
struct Input {
    cross: bool,
    sender: Seat,
    voucher: Seat,
    receiver: Seat,
    fourth: Seat,
}

impl Input {
    fn all(half: BlockHalf) -> impl Iterator<Item = Self> {
        let a = |s: Seat| (false, s, s.after(1), s.after(2));
        let c = |s: Seat| (true, s, s.after(2), s.after(1));
        let sent = Seat::ALL.into_iter().filter(move |&s| half.sends(s)).map(c);
        Seat::ALL.into_iter().map(a).chain(sent).map(|(cross, sender, voucher, fourth)| Self {
            cross,
            sender,
            voucher,
            receiver: sender.after(3),
            fourth,
        })
    }

    /// The value at a block, from the summands that a seat holds.
    fn value(self, ring: VectorRing, x: impl Fn(Seat) -> Block, y: impl Fn(Seat) -> Block) -> Block {
        let [i, j] = if self.cross { [1, 3] } else { [2, 3] }.map(|k| self.sender.after(k));
        let sum = ring.add(ring.mul(x(i), y(j)), ring.mul(x(j), y(i)));
        if self.cross { sum } else { ring.add(sum, ring.mul(x(i), y(i))) }
    }
}

fn masks(
    keys: &SeatKeys,
    r#use: Use,
    of: Seat,
    input: Input,
    (round, first): (u64, u64),
    n: usize,
) -> Vec<Block> {
    let part = keys.seat().part_of(of).expect("a key that this seat holds");
    let mut out = vec![Block::ZERO; n];
    keys.fill(part, StreamName { round, r#use, channel: [input.sender, input.voucher] }, first, &mut out);
    out
}

fn add(ring: VectorRing, sums: &mut [Block], x: &[Block]) {
    sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum = ring.add(*sum, x));
}

fn sub(ring: VectorRing, sums: &mut [Block], x: &[Block]) {
    sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum = ring.sub(*sum, x));
}

impl Device for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error> {
        self.keys = Some(keys);
        Ok(())
    }

    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        let keys = self.keys.as_deref().ok_or_else(|| Error::misuse("the device has no keys yet"))?;
        check(command, keys.seat())?;
        match command {
            DeviceCommand::Add(l) => linear(l, add),
            DeviceCommand::Sub(l) => linear(l, sub),
            DeviceCommand::Multiply(m) => {
                m.z.iter_mut().for_each(|z| z.fill(Block::ZERO));
                Input::all(m.half).for_each(|input| stage1(keys, m, input));
            }
            DeviceCommand::Fold(f) => Input::all(f.half).for_each(|input| stage2(keys, f, input)),
        }
        Ok(())
    }
}

fn linear(l: &mut LinearStage<'_>, apply: fn(VectorRing, &mut [Block], &[Block])) {
    for k in 0..3 {
        l.z[k].copy_from_slice(l.x[k]);
        apply(l.ring, l.z[k], l.y[k]);
    }
}

fn stage1(keys: &SeatKeys, m: &mut MultiplyStage<'_>, input: Input) {
    let (ring, me, n, at) = (m.ring, keys.seat(), m.z[0].len(), (m.round, m.first));
    if me == input.receiver {
        return;
    }
    let part = |seat| me.part_of(seat).expect("a part that this seat holds");
    let rho = masks(keys, Use::Mask, input.receiver, input, at, n);
    add(ring, m.z[part(input.receiver)], &rho);
    if me == input.fourth {
        return;
    }
    let dot = |i: usize| {
        (0..m.terms).fold(Block::ZERO, |sum, term| {
            let of = |v: [&[Block]; 3], seat| v[part(seat)][term * n + i];
            ring.add(sum, input.value(ring, |seat| of(m.x, seat), |seat| of(m.y, seat)))
        })
    };
    let mut message: Vec<Block> = (0..n).map(dot).collect();
    sub(ring, &mut message, &rho);
    add(ring, m.z[part(input.fourth)], &message);
    if m.masked {
        add(ring, &mut message, &masks(keys, Use::Wire, input.fourth, input, at, n));
    }
    if me == input.sender {
        let to = if input.cross { &mut *m.c } else { &mut *m.a };
        return to.copy_from_slice(&message);
    }
    match &mut m.vouch {
        Vouch::Nothing => {}
        Vouch::Digest(digests) => {
            let digest = &mut digests[usize::from(input.cross)];
            *digest = gf_digest(keys.tag(part(input.sender)), *digest, &message);
        }
        Vouch::Expose { a, c } => (if input.cross { c } else { a }).copy_from_slice(&message),
    }
}

fn stage2(keys: &SeatKeys, f: &mut FoldStage<'_>, input: Input) {
    let (ring, me, n) = (f.ring, keys.seat(), f.a.len());
    if me != input.receiver {
        return;
    }
    let message = if input.cross { f.c } else { f.a };
    // Parts 1 and 2 of the result.
    let z = &mut *f.z[me.part_of(input.fourth).expect("not its own number") - 1];
    add(ring, z, message);
    if f.masked {
        sub(ring, z, &masks(keys, Use::Wire, input.fourth, input, (f.round, f.first), n));
    }
    if let Some(digests) = &mut f.digests {
        let digest = &mut digests[usize::from(input.cross)];
        *digest = gf_digest(keys.tag(0), *digest, message);
    }
}

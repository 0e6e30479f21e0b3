//! Sides: what two seats know of a value in common, entered and multiplied.
//!
//! **Functionality.** x = u + v with u = x_0 + x_1, which seats 2 and 3 know, and v = x_2 + x_3, which seats
//! 0 and 1 know: the *low* and the *high side* of x. A function of one side becomes shared by a joint input
//! of the pair that knows it, and has two summands only, those of its side. So of the six messages of a
//! product of a low and a high value two vanish, cross(0,1) and cross(2,3), and so do all squares.
//!
//! **Security.** That of joint inputs: what a seat sends another seat computes too, from summands that both
//! hold. Every operation of this library is made of joint inputs, products and openings, each checked before
//! the next one begins.
//!
//! **Who learns what.** Nobody anything but the operations and lengths: what is opened, in conversion and
//! truncation, is masked and goes to two seats that lack the mask.
//!
//! **Source.** Local splitting: Araki et al. (CCS 2018), Mohassel and Rindal (CCS 2018) for three parties;
//! Dalskov, Escudero and Keller (USENIX Security 2021), section 4, for four.
//!
//! **Cost.** To enter: one element, one round. A sum of products of low and high values: 4 elements, one
//! round, one element by every seat. Every vector is entered in two halves, one sent by either seat of its
//! pair.

pub use crate::vectors::spare::ClearVector;
use crate::vectors::spare::room;
use crate::{Joint, RoundQuote, Seat, SeatParty, SharedVector, VectorRing};
use accel::{BlockHalf, Use, splat};
use base::Error;
use kernels::{Block, ring_add};
use net::Session;
use std::ops::Range;

/// Which two of the four summands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Summands 0 and 1: seats 2 and 3 know both.
    Low,
    /// Summands 2 and 3: seats 0 and 1 know both.
    High,
}

/// Ring and number of elements.
pub type Shape = (VectorRing, usize);

/// A vector that a side knows, to be entered.
pub struct SideEntry<C> {
    pub side: Side,
    pub shape: Shape,
    pub value: C,
}

/// A product of a low and a high value, one term of a sum.
pub type Term<'a, V> = (&'a V, &'a V);

/// Summands of the low and the high factor, and who sends, vouches and receives: every seat sends and
/// receives once.
pub(crate) const CROSSES: [([usize; 2], [usize; 3]); 4] =
    [([0, 2], [3, 1, 2]), ([0, 3], [1, 2, 0]), ([1, 2], [0, 3, 1]), ([1, 3], [2, 0, 3])];

impl Side {
    pub const BOTH: [Self; 2] = [Self::Low, Self::High];

    pub fn summands(self) -> [Seat; 2] {
        match self {
            Self::Low => [0, 1].map(Seat::new),
            Self::High => [2, 3].map(Seat::new),
        }
    }

    /// The two seats that know it.
    pub fn holders(self) -> [Seat; 2] {
        self.summands().map(|seat| seat.after(2))
    }

    pub fn known_to(self, seat: Seat) -> bool {
        self.holders().contains(&seat)
    }

    /// Sender, voucher and receiver of the two halves of what this side enters.
    fn channels(self) -> [[Seat; 3]; 2] {
        let [a, b] = self.holders();
        let [r, o] = self.summands();
        [[a, b, o], [b, a, r]]
    }

    /// This side's sum, where it is known.
    pub fn of(self, x: &SharedVector, seat: Seat) -> ClearVector {
        if !self.known_to(seat) {
            return ClearVector::default();
        }
        let [a, b] = self.summands().map(|s| seat.part_of(s).expect("a holder holds both"));
        let mut sum = ClearVector::copied(x.parts()[a]);
        ring_add(x.ring(), &mut sum, x.parts()[b]);
        sum
    }
}

/// The halves of a vector that are not empty, with the channel of each.
pub(crate) fn halves(side: Side, blocks: usize) -> impl Iterator<Item = ([Seat; 3], Range<usize>)> {
    let ranges = BlockHalf::BOTH.map(|half| half.range(blocks));
    side.channels().into_iter().zip(ranges).filter(|(_, range)| !range.is_empty())
}

impl SeatParty {
    /// Enters what sides know. One round, one element each.
    pub(crate) fn enter_sides(
        &mut self,
        session: &mut Session,
        entries: &[SideEntry<ClearVector>],
    ) -> Result<Vec<SharedVector>, Error> {
        let mut joints = Vec::new();
        for entry in entries {
            let (ring, len) = entry.shape;
            for ([sender, voucher, receiver], range) in halves(entry.side, ring.blocks(len)) {
                let known = entry.side.known_to(self.seat());
                let len = range.len() * ring.lanes();
                let value = if known { &entry.value[range] } else { &[] };
                joints.push(Joint { sender, voucher, receiver, ring, len, value });
            }
        }
        let mut results = self.joint(session, &joints)?.into_iter();
        let mut entered = Vec::with_capacity(entries.len());
        for entry in entries {
            let (ring, len) = entry.shape;
            let mut parts: [Vec<Block>; 3] = std::array::from_fn(|_| room(ring.blocks(len)));
            for (_, piece) in halves(entry.side, ring.blocks(len)).zip(results.by_ref()) {
                parts.iter_mut().zip(piece.parts()).for_each(|(part, piece)| part.extend_from_slice(piece));
            }
            entered.push(SharedVector::from_parts(ring, len, parts));
        }
        Ok(entered)
    }

    /// Sums of products of low and high values, all of one shape. One round, 4 elements per sum.
    pub(crate) fn cross(
        &mut self,
        session: &mut Session,
        (ring, len): Shape,
        sums: &[Vec<Term<'_, SharedVector>>],
    ) -> Result<Vec<SharedVector>, Error> {
        let (blocks, me) = (ring.blocks(len), self.seat());
        let all = sums.len() * blocks * ring.lanes();
        let mut values: [ClearVector; 4] = Default::default();
        for (([low, high], _), value) in CROSSES.into_iter().zip(&mut values) {
            let (Some(low), Some(high)) = (me.part_of(Seat::new(low)), me.part_of(Seat::new(high))) else {
                continue;
            };
            *value = ClearVector::zeros(sums.len() * blocks);
            for (terms, value) in sums.iter().zip(value.chunks_mut(blocks.max(1))) {
                for (x, y) in terms {
                    let factors = x.parts()[low].iter().zip(y.parts()[high]);
                    value.iter_mut().zip(factors).for_each(|(v, (&x, &y))| *v = ring.add(*v, ring.mul(x, y)));
                }
            }
        }
        let joint = |((_, seats), value)| {
            let [sender, voucher, receiver] = <[usize; 3]>::map(seats, Seat::new);
            let value: &ClearVector = value;
            Joint { sender, voucher, receiver, ring, len: all, value }
        };
        let joints: Vec<_> = CROSSES.into_iter().zip(&values).map(joint).collect();
        let entered = self.joint(session, &joints)?;
        let total = self.sum_of(&entered)?;
        Ok(cut(&total, &vec![len; sums.len()]))
    }

    /// A random vector that a side knows, shared in its two summands: each is below `2^bits`. No message.
    pub(crate) fn random_side(&mut self, side: Side, (ring, len): Shape, bits: u32) -> SharedVector {
        let (me, round) = (self.seat(), self.next_round());
        let mut shares = SharedVector::zero(ring, len);
        for summand in side.summands() {
            if let Some(part) = me.part_of(summand) {
                let part_of = &mut shares.parts_mut()[part];
                self.fill(part, (round, Use::Share, [summand; 2]), 0, part_of);
                part_of.iter_mut().for_each(|block| *block = low_bits(ring, *block, bits));
            }
        }
        shares
    }
}

impl RoundQuote {
    /// Vectors that sides enter.
    pub(crate) fn enter_sides(&mut self, entries: &[(Side, Shape)]) {
        let mut joints = Vec::new();
        for &(side, (ring, len)) in entries {
            let of = |(seats, range): ([Seat; 3], Range<usize>)| (seats, ring, range.len() * ring.lanes());
            joints.extend(halves(side, ring.blocks(len)).map(of));
        }
        self.joint(&joints);
    }

    /// So many sums of products of low and high values.
    pub(crate) fn cross(&mut self, (ring, len): Shape, sums: usize) {
        let all = sums * ring.blocks(len) * ring.lanes();
        self.joint(&CROSSES.map(|(_, seats)| (seats.map(Seat::new), ring, all)));
    }
}

/// Vectors behind each other, each in whole blocks.
pub(crate) fn concat(ring: VectorRing, vectors: &[&SharedVector]) -> SharedVector {
    let parts: [Vec<Block>; 3] =
        std::array::from_fn(|k| ClearVector::joined(vectors.iter().map(|x| x.parts()[k])).into_blocks());
    let len = parts[0].len() * ring.lanes();
    SharedVector::from_parts(ring, len, parts)
}

/// The inverse of [`concat`]: vectors of the lengths said.
pub(crate) fn cut(all: &SharedVector, lens: &[usize]) -> Vec<SharedVector> {
    let (ring, mut from) = (all.ring(), 0);
    let mut piece = |&len: &usize| {
        let range = from..from + ring.blocks(len);
        from = range.end;
        SharedVector::from_parts(
            ring,
            len,
            all.parts().map(|part| ClearVector::copied(&part[range.clone()]).into_blocks()),
        )
    };
    lens.iter().map(&mut piece).collect()
}

/// A power of two, or 0 where it is beyond the ring.
pub(crate) fn power(ring: VectorRing, exponent: u32) -> u128 {
    if exponent < ring.bits() { 1 << exponent } else { 0 }
}

/// Elements modulo `2^bits`.
pub(crate) fn low_bits(ring: VectorRing, block: Block, bits: u32) -> Block {
    let mask = if bits >= ring.bits() { u128::MAX } else { power(ring, bits).wrapping_sub(1) };
    Block(block.0 & splat(ring, mask).0)
}

impl SharedVector {
    /// Multiplies all elements by one public number.
    pub(crate) fn scale_all(&mut self, number: u128) {
        let factor = vec![splat(self.ring(), number); self.blocks()];
        self.scale(&factor);
    }

    /// Adds one public number to all elements.
    pub(crate) fn shift_all(&mut self, seat: Seat, number: u128) {
        let term = vec![splat(self.ring(), number); self.blocks()];
        self.add_public(seat, &term);
    }

    /// The sum.
    pub(crate) fn plus(&self, other: &Self) -> Result<Self, Error> {
        let mut sum = self.clone();
        sum.add(other)?;
        Ok(sum)
    }

    /// The difference.
    pub(crate) fn minus(&self, other: &Self) -> Result<Self, Error> {
        let mut difference = self.clone();
        difference.sub(other)?;
        Ok(difference)
    }

    /// A multiple by a public number.
    pub(crate) fn times(&self, number: u128) -> Self {
        let mut multiple = self.clone();
        multiple.scale_all(number);
        multiple
    }

    /// The sum with a public number.
    pub(crate) fn offset(&self, seat: Seat, number: u128) -> Self {
        let mut sum = self.clone();
        sum.shift_all(seat, number);
        sum
    }
}

//! Between arithmetic and boolean sharing.
//!
//! **To bits (A2B).** x = u + v, a low and a high side: both enter their bits in groups, one sum follows. The
//! lowest bit is local. A single bit i needs the carry out of the bits below it alone.
//!
//! **To a ring (B2A).** A bit is a xor b of its two sides: both entered as elements, then a + b - 2 a b. A
//! word of up to [`DIRECT_BITS`] bits, or one of a few: its bits likewise, but one sum of products for all of
//! them. Wider words: seats 0 and 1 hold a random v of w bits, which they enter as bits; ~u = ~x + v is
//! computed as bits and opened to seats 2 and 3, to whom it is uniform; then x = u + v, less 2^w where v > x,
//! which is the carry of that sum.
//!
//! **Source.** Local splitting as in [`crate::sides`]; Dalskov, Escudero and Keller (USENIX Security 2021),
//! sections 4 and 5.
//!
//! **Cost** in bits of planes and elements e, in all, for w bits:
//!
//! | what | cost | rounds |
//! |---|---|---|
//! | all bits, w > 1 | about 19 w bits | 2 log2(w) - 1, about |
//! | bit i | about 11 i bits | 2 + log2(i / 3), rounded up |
//! | the lowest bit | nothing | 0 |
//! | bit to ring | 6 e | 2 |
//! | word to ring, w <= 4 | (2 w + 4) e | 2 |
//! | word to ring, w below the ring's | about 25 w bits + 8 e | 5 + 2 log2(w), about |
//! | word to ring, w the ring's | about 24 w bits + e | 2 + 2 log2(w) |

use crate::vectors::adder::{CARRY_GROUP, DigitGroup, SUM_GROUP, group_sizes};
use crate::vectors::arithmetic::{ArithmeticShares, alike};
use crate::vectors::sides::{Shape, Side, SideEntry, power};
use crate::vectors::spare::zeros;
use crate::{Planes, RoundQuote, SeatParty, SharedVector, VectorRing};
use accel::planes_of;
use base::Error;
use kernels::Block;
use net::Session;

/// Bits of a word from which on conversion to a ring goes through a mask.
pub const DIRECT_BITS: u32 = 4;
/// Up to so many words do not fill the blocks of a mask's bits, which then take as many bytes and more
/// rounds.
const FEW: usize = 8;

/// Whether words become numbers by one sum of products.
fn direct(len: usize, width: u32) -> bool {
    width <= DIRECT_BITS || len <= FEW
}

/// The lowest bit of every element: local, since summands modulo 2 are summands modulo 2.
#[must_use]
pub fn lowest(x: &SharedVector) -> SharedVector {
    let plane = |part: &[Block]| {
        let mut plane = zeros(VectorRing::Z2.blocks(x.len()));
        planes_of(x.ring(), part, 0, &mut [&mut plane]);
        plane
    };
    SharedVector::from_parts(VectorRing::Z2, x.len(), x.parts().map(plane))
}

fn arithmetic(ring: VectorRing) -> Result<(), Error> {
    if ring == VectorRing::Z2 { Err(Error::misuse("this takes elements of 64 or 128 bits")) } else { Ok(()) }
}

fn within(ring: VectorRing, width: u32, least: u32) -> Result<(), Error> {
    arithmetic(ring)?;
    if (least..=ring.bits()).contains(&width) {
        return Ok(());
    }
    Err(Error::misuse(format!("a width from {least} to {} bits is needed, not {width}", ring.bits())))
}

/// Groups of a sum, and how many of their bits say something about a carry that is wanted.
fn carrying(sizes: &[u32]) -> impl Iterator<Item = (usize, u32)> {
    let last = sizes.len() - 1;
    sizes
        .iter()
        .enumerate()
        .flat_map(move |(i, &size)| (1..=size - u32::from(i == last)).map(move |bits| (i, bits)))
}

impl SeatParty {
    /// The lowest `width` bits of every element.
    ///
    /// # Errors
    /// A width that the ring does not have, and those of the messages.
    pub fn bits<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        width: u32,
    ) -> Result<Planes<V>, Error> {
        within(x.ring(), width, 1)?;
        if width == 1 {
            return Planes::new(vec![x.lowest(self)?]);
        }
        let (ring, len) = (x.ring(), x.len());
        if self.left_out(("bits", ring, width), len, |q| q.bits(ring, len, width)) {
            return Planes::new(vec![x.zeros(self, VectorRing::Z2, len)?; width as usize]);
        }
        if let Some(x) = V::onto_device(self, &[x], x.blocks())? {
            let bits = self.bits(session, &x[0], width)?;
            return Planes::from_device(self, bits);
        }
        let (groups, _) = self.enter_groups(session, &[x], (width, SUM_GROUP), false)?;
        let sizes = group_sizes(width, SUM_GROUP);
        // Of the lowest bits of every group: what they do with carries. Those of the lowest group come first.
        let runs = carrying(&sizes).map(|(i, bits)| groups[i].lowest(self, bits));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let of_lowest = carrying(&sizes).filter(|&(i, _)| i == 0).count();
        let nodes = self.nodes(session, &runs, of_lowest)?;
        let (mut whole, mut inner) = (Vec::new(), Vec::new());
        for ((i, bits), node) in carrying(&sizes).zip(nodes) {
            if bits == sizes[i] { whole.push(node) } else { inner.push((i, bits, node)) }
        }
        let carries = self.carries(session, &whole)?;
        let into_group = |i: usize| i.checked_sub(1).map(|below| &carries[below]);
        let passing =
            inner.iter().filter_map(|(i, _, node)| Some((node.propagate.as_ref()?, into_group(*i)?)));
        let mut passed = self.ands(session, &passing.collect::<Vec<_>>())?.into_iter();
        let mut planes = self.half_sums(&groups, &sizes)?;
        for (i, bits, node) in inner {
            let passed = node.propagate.map(|_| passed.next().expect("one carry passed on per run"));
            let plane = &mut planes[i * SUM_GROUP as usize + bits as usize];
            plane.gain(self, &node.generate)?;
            passed.iter().try_for_each(|passed| plane.gain(self, passed))?;
        }
        for (i, carry) in carries.iter().enumerate() {
            planes[(i + 1) * SUM_GROUP as usize].gain(self, carry)?;
        }
        // Planes of whole blocks become planes of the vector's length.
        Planes::new(planes.iter().map(|plane| shorten(plane, len)).collect())
    }

    fn half_sums<V: ArithmeticShares>(
        &mut self,
        groups: &[DigitGroup<V>],
        sizes: &[u32],
    ) -> Result<Vec<V>, Error> {
        let bits = groups.iter().zip(sizes).flat_map(|(group, &size)| (0..size).map(move |i| (group, i)));
        bits.map(|(group, i)| group.half_sum(self, i)).collect()
    }

    /// Bit `index` of every element of several vectors of one shape.
    ///
    /// # Errors
    /// As [`SeatParty::bits`].
    pub fn bit<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        values: &[&V],
        index: u32,
    ) -> Result<Vec<V>, Error> {
        let Some(first) = values.first() else { return Ok(Vec::new()) };
        within(first.ring(), index + 1, 1)?;
        values.iter().try_for_each(|value| alike(*value, *first))?;
        if index == 0 {
            return values.iter().map(|value| value.lowest(self)).collect();
        }
        let (all, len) = (values.len(), first.len());
        if self.left_out(("bit", first.ring(), index), all * len, |q| q.bit(len, all, index)) {
            return Ok(vec![first.zeros(self, VectorRing::Z2, len)?; all]);
        }
        if let Some(values) = V::onto_device(self, values, first.blocks())? {
            let bits = self.bit(session, &values.iter().collect::<Vec<_>>(), index)?;
            return V::from_device(self, bits);
        }
        let (groups, tops) = self.enter_groups(session, values, (index, CARRY_GROUP), true)?;
        let nodes = self.nodes(session, &groups, 1)?;
        let carry = self.carry_out(session, nodes)?;
        let all = self.sum_of(tops.iter().chain([&carry]))?;
        Ok(all.cut(&vec![len; values.len()]))
    }

    /// Whether the lowest `bits` bits of both sides of every element have a carry.
    pub(crate) fn carry_of_sides<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        bits: u32,
    ) -> Result<V, Error> {
        let (groups, _) = self.enter_groups(session, &[x], (bits, CARRY_GROUP), false)?;
        let nodes = self.nodes(session, &groups, 1)?;
        let carry = self.carry_out(session, nodes)?;
        Ok(shorten(&carry, x.len()))
    }

    /// Bits over a ring: 0 or 1. Two rounds, 6 elements per bit.
    ///
    /// # Errors
    /// A ring of bits, planes that differ in length, and those of joint inputs.
    pub fn bits_to_ring<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        ring: VectorRing,
        bits: &[&V],
    ) -> Result<Vec<V>, Error> {
        arithmetic(ring)?;
        let Some(first) = bits.first() else { return Ok(Vec::new()) };
        let (len, alike) = (first.len(), bits.iter().all(|bit| bit.len() == first.len()));
        let price = |q: &mut RoundQuote| q.bits_to_ring(ring, len, bits.len());
        if alike && self.left_out(("bits to ring", ring, 1), bits.len() * len, price) {
            return Ok(vec![first.zeros(self, ring, len)?; bits.len()]);
        }
        if let Some(bits) = V::onto_device(self, bits, ring.blocks(len))? {
            let elements = self.bits_to_ring(session, ring, &bits.iter().collect::<Vec<_>>())?;
            return V::from_device(self, elements);
        }
        let all = V::concat(self, bits)?;
        let shape = (ring, all.len());
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let known = all.side(self, side)?;
            entries.push(SideEntry { side, shape, value: V::elements(self, shape, &known, 1)? });
        }
        let entered = all.enter(self, session, entries)?;
        let result = self.exclusive_or(session, &entered[0], &entered[1])?;
        let padded: Vec<usize> = bits.iter().map(|bit| VectorRing::Z2.blocks(bit.len()) * 128).collect();
        let cut = result.cut(&padded);
        Ok(cut.iter().zip(bits).map(|(x, bit)| shorten(x, bit.len())).collect())
    }

    /// Words over a ring, as unsigned numbers. A word of as many bits as the ring has is the same signed.
    ///
    /// # Errors
    /// A width that the ring does not have, and those of the messages.
    pub fn word_to_ring<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        ring: VectorRing,
        word: &Planes<V>,
    ) -> Result<V, Error> {
        within(ring, word.width(), 1)?;
        let (len, width) = (word.len(), word.width());
        if self.left_out(("word to ring", ring, width), len, |q| q.word_to_ring(ring, len, width)) {
            return word.planes()[0].zeros(self, ring, len);
        }
        if let Some([word]) = Planes::onto_device(self, [word], ring.blocks(len))? {
            let x = self.word_to_ring(session, ring, &word)?;
            return Ok(V::from_device(self, vec![x])?.remove(0));
        }
        if direct(len, width) {
            return self.bits_to_ring_at_once(session, (ring, len), word);
        }
        self.word_to_ring_masked(session, (ring, len), word)
    }

    /// Words over a ring, as two's complement.
    ///
    /// # Errors
    /// As [`SeatParty::word_to_ring`].
    pub fn signed_word_to_ring<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        ring: VectorRing,
        word: &Planes<V>,
    ) -> Result<V, Error> {
        let mut planes = word.planes().to_vec();
        if let Some(top) = planes.last_mut() {
            *top = self.not(top)?;
        }
        let shifted = self.word_to_ring(session, ring, &Planes::new(planes)?)?;
        self.affine(&shifted, 1, power(ring, word.width() - 1).wrapping_neg())
    }

    fn bits_to_ring_at_once<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        shape: Shape,
        word: &Planes<V>,
    ) -> Result<V, Error> {
        let mut entries = Vec::new();
        for side in Side::BOTH {
            for plane in word.planes() {
                let known = plane.side(self, side)?;
                entries.push(SideEntry { side, shape, value: V::elements(self, shape, &known, 1)? });
            }
        }
        let entered = word.planes()[0].enter(self, session, entries)?;
        let (low, high) = entered.split_at(word.planes().len());
        let mut doubled = Vec::new();
        for (i, x) in low.iter().enumerate() {
            doubled.push(self.affine(x, 2_u128.wrapping_shl(i as u32), 0)?);
        }
        let products = V::cross(self, session, &[doubled.iter().zip(high).collect()])?;
        let weighted = low.iter().enumerate().chain(high.iter().enumerate()).map(|(i, x)| (x, 1 << i));
        let terms: Vec<(&V, u128)> = weighted.chain([(&products[0], u128::MAX)]).collect();
        V::combine(self, &terms, None)
    }

    fn word_to_ring_masked<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        shape: Shape,
        word: &Planes<V>,
    ) -> Result<V, Error> {
        let ((ring, len), width, near) = (shape, word.width(), &word.planes()[0]);
        let narrow = width < ring.bits();
        let mask = near.random(self, Side::High, shape, ring.bits())?;
        let clear = mask.side(self, Side::High)?;
        let clear = V::shifted(self, ring, &clear, 0, false, width)?;
        let bits = V::planes(self, shape, std::slice::from_ref(&clear), (0, width))?;
        let lens = vec![len; width as usize];
        let of_planes = (VectorRing::Z2, width as usize * VectorRing::Z2.blocks(len) * 128);
        let mut entries = vec![SideEntry { side: Side::High, shape: of_planes, value: bits }];
        if narrow {
            entries.push(SideEntry { side: Side::High, shape, value: clear });
        }
        let mut entered = near.enter(self, session, entries)?.into_iter();
        let v = entered.next().expect("the planes of the mask").cut(&lens);
        let mask = entered.next().unwrap_or(mask);
        let complement = word.planes().iter().map(|plane| self.not(plane)).collect::<Result<Vec<_>, _>>()?;
        let (sums, carry) = self.add_for_mask(session, &complement, &v, narrow)?;
        let u = self.open_to_low(session, shape, &sums)?;
        let u = mask.enter(self, session, vec![SideEntry { side: Side::Low, shape, value: u }])?.remove(0);
        let Some(carry) = carry else { return self.plus(&u, &mask) };
        let carry = self.bits_to_ring(session, ring, &[&carry])?.remove(0);
        let less = power(ring, width).wrapping_neg();
        V::combine(self, &[(&u, 1), (&mask, 1), (&carry, less)], None)
    }

    /// Planes of a + b, and the carry out of the top where it is wanted.
    fn add_for_mask<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        a: &[V],
        b: &[V],
        carry: bool,
    ) -> Result<(Vec<V>, Option<V>), Error> {
        let below = if carry { a.len() } else { a.len() - 1 };
        let nodes = self.word_nodes(session, &a[..below], &b[..below])?;
        let mut carries = self.carries(session, &nodes)?;
        let out = if carry { carries.pop() } else { None };
        Ok((self.sums(a, b, &carries)?, out))
    }

    /// Opens ~u to the seats of the low side, as elements u.
    fn open_to_low<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        (ring, len): Shape,
        planes: &[V],
    ) -> Result<V::Clear, Error> {
        // What fills up the last block of a plane would count as elements of the whole.
        let trimmed = planes.iter().map(|plane| plane.trimmed(self)).collect::<Result<Vec<_>, _>>()?;
        let all = V::concat(self, &trimmed.iter().collect::<Vec<_>>())?;
        let opened = all.open_low(self, session)?;
        let bits = V::flipped(self, &opened)?;
        V::elements(self, (ring, len), &bits, planes.len() as u32)
    }
}

/// The first elements of a vector.
pub(crate) fn shorten<V: ArithmeticShares>(x: &V, len: usize) -> V {
    x.cut(&[len]).remove(0)
}

impl RoundQuote {
    /// The lowest `width` bits.
    pub fn bits(&mut self, ring: VectorRing, len: usize, width: u32) {
        debug_assert!(width <= ring.bits());
        if width == 1 {
            return;
        }
        self.enter_groups(len, 1, (width, SUM_GROUP), false);
        let sizes = group_sizes(width, SUM_GROUP);
        // Every run says whether it generates; those above the lowest group whether they pass on, for nothing
        // if of one bit.
        let sums = carrying(&sizes).map(|(i, bits)| 1 + usize::from(i > 0 && bits > 1)).sum();
        self.cross((VectorRing::Z2, VectorRing::Z2.blocks(len) * 128), sums);
        let whole = carrying(&sizes).filter(|&(i, bits)| bits == sizes[i]).count();
        self.carries(len, whole);
        self.ands(len, carrying(&sizes).filter(|&(i, bits)| i > 0 && bits < sizes[i]).count());
    }

    /// Bit `index` of so many vectors.
    pub fn bit(&mut self, len: usize, values: usize, index: u32) {
        if values > 0 && index > 0 {
            self.carry_of_groups(len, values, index, true);
        }
    }

    /// Whether both sides have a carry out of so many bits.
    pub(crate) fn carry_of_sides(&mut self, len: usize, bits: u32) {
        self.carry_of_groups(len, 1, bits, false);
    }

    fn carry_of_groups(&mut self, len: usize, values: usize, bits: u32, top: bool) {
        self.enter_groups(len, values, (bits, CARRY_GROUP), top);
        let sizes = group_sizes(bits, CARRY_GROUP);
        let sums = sizes.iter().enumerate().map(|(i, &size)| 1 + usize::from(i > 0 && size > 1)).sum();
        let all = values * VectorRing::Z2.blocks(len) * 128;
        self.cross((VectorRing::Z2, all), sums);
        self.carry_out(all, sizes.len());
    }

    /// So many planes over a ring.
    pub fn bits_to_ring(&mut self, ring: VectorRing, len: usize, bits: usize) {
        if bits > 0 {
            let shape = (ring, bits * VectorRing::Z2.blocks(len) * 128);
            self.enter_sides(&Side::BOTH.map(|side| (side, shape)));
            self.cross(shape, 1);
        }
    }

    /// Words over a ring, signed or not.
    pub fn word_to_ring(&mut self, ring: VectorRing, len: usize, width: u32) {
        let shape = (ring, len);
        if direct(len, width) {
            let side = |side| (0..width).map(move |_| (side, shape));
            self.enter_sides(&Side::BOTH.into_iter().flat_map(side).collect::<Vec<_>>());
            return self.cross(shape, 1);
        }
        let planes = (VectorRing::Z2, width as usize * VectorRing::Z2.blocks(len) * 128);
        let narrow = width < ring.bits();
        let entries = [(Side::High, planes), (Side::High, shape)];
        self.enter_sides(&entries[..1 + usize::from(narrow)]);
        let below = width as usize - usize::from(!narrow);
        self.ands(len, below);
        self.carries(len, below);
        self.open_to(VectorRing::Z2, planes.1, &Side::Low.holders());
        self.enter_sides(&[(Side::Low, shape)]);
        if narrow {
            self.bits_to_ring(ring, len, 1);
        }
    }
}

//! Division by a power of two, and products of fixed-point numbers.
//!
//! **Functionality.** x in [-2^(w-1), 2^(w-1)); the result is x / 2^f rounded down or, with a probability of
//! about the fraction that is lost (exactly so where u is uniform), up. Exact truncation always rounds down.
//!
//! **With headroom** (w + [`STATISTICAL_BITS`] + 2 bits fit the ring): seats 0 and 1 hold a random r = F_2 +
//! F_3 of two summands below 2^(k-2); x + r, which cannot wrap, is opened to seats 2 and 3; (x + r) / 2^f and
//! r / 2^f are entered. For every number x + r is within 2^-40 of a distribution that does not depend on x,
//! whichever of both seats looks: a vector of n numbers is within n times that.
//!
//! **x must be in its range, or the mask does not hide it**: of a number that an owner entered outside of it,
//! or of a product with one, seats 2 and 3 see the upper bits. Where nothing enforces the range, take the
//! exact way, which opens nothing. Whether a result was rounded up tells the two seats that know r how the
//! lost bits compare with r's, once it is opened.
//!
//! **Without** (w below the ring's bits): of the sides of x + 2^(k-2) both quotients are entered. They wrap
//! where the top bit of either is set, since that of the sum is not: a or b = a + b - a b, whose product is
//! of a low and a high value. Nothing is opened, and it never fails. It is done to -x - 1, so that multiples
//! of 2^f stay exact.
//!
//! **Exact**: the latter, plus the carry of the sides' low f bits.
//!
//! **Source.** Dalskov, Escudero and Keller (USENIX Security 2021), section 5, and "Secure evaluation of
//! quantized neural networks" (PETS 2020); the way without headroom is ours.
//!
//! **Cost.** With headroom 4 elements, 2 rounds. Without 8 elements, 5 where the ring is of 128 bits and f at
//! most 64 (six of the 8 are then of 64 bits), 2 rounds. Exact 6 elements more and about 11 f bits, 6 +
//! log2(f / 3) rounds. A fixed-point product is 6 elements and one round more.

use crate::vectors::sides::{ClearVector, Side, SideEntry, power, shift_right, splat, sum};
use crate::{RoundQuote, SeatParty, SharedVector, VectorRing};
use base::Error;
use kernels::Block;
use net::Session;

/// How far what is opened may be from a distribution that says nothing: 2^-40.
pub const STATISTICAL_BITS: u32 = 40;

/// Whether there is room for a mask that hides a number of `width` bits.
fn headroom(ring: VectorRing, width: u32) -> bool {
    width + STATISTICAL_BITS + 2 <= ring.bits()
}

/// Bits of x once it is shifted to be positive by a multiple of 2^f.
fn shifted_width(width: u32, f: u32) -> u32 {
    width.max(f + 1)
}

fn check(ring: VectorRing, width: u32, f: u32) -> Result<(), Error> {
    if ring != VectorRing::Z2 && shifted_width(width, f) < ring.bits() {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "numbers of {width} bits are not truncated by {f} bits over {} bits",
        ring.bits()
    )))
}

fn shift_clear(ring: VectorRing, mut value: ClearVector, f: u32) -> ClearVector {
    value.iter_mut().for_each(|block| *block = shift_right(ring, *block, f));
    value
}

/// The product of both top bits counts 2^(k-f) times: only its lowest f bits do, so it may be over a smaller
/// ring.
fn ring_of_tops(ring: VectorRing, f: u32) -> VectorRing {
    if f <= VectorRing::Z64.bits() { VectorRing::Z64 } else { ring }
}

/// The low halves of elements of 128 bits, as elements of 64, where they are known.
fn narrow(wide: &ClearVector) -> ClearVector {
    let low = |x: &Block| x.0 & u128::from(u64::MAX);
    let pair = |pair: &[Block]| Block(low(&pair[0]) | pair.get(1).map_or(0, low) << 64);
    ClearVector::new(wide.chunks(2).map(pair).collect())
}

/// Elements of 64 bits as elements of 128 bits that are the same modulo 2^64.
fn widen(x: &SharedVector) -> SharedVector {
    let halves = |block: &Block| [Block(block.0 & u128::from(u64::MAX)), Block(block.0 >> 64)];
    let part = |part: &[Block]| part.iter().flat_map(halves).take(x.len()).collect();
    SharedVector::from_parts(VectorRing::Z128, x.len(), x.parts().map(part))
}

impl SeatParty {
    /// x / 2^f, of signed numbers of `width` bits, rounded down or up. Two rounds; 4 elements with headroom,
    /// else 8.
    ///
    /// # Errors
    /// A width as large as the ring's, f beyond the width of the ring, and those of the messages.
    pub fn truncate(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        width: u32,
        f: u32,
    ) -> Result<SharedVector, Error> {
        check(x.ring(), width, f)?;
        if f == 0 {
            return Ok(x.clone());
        }
        let (ring, len) = (x.ring(), x.len());
        if self
            .left_out(("truncate", ring, shifted_width(width, f)), len, |q| q.truncate(ring, len, width, f))
        {
            return Ok(SharedVector::zero(ring, len));
        }
        if headroom(x.ring(), shifted_width(width, f)) {
            return self.truncate_masked(session, x, shifted_width(width, f), f);
        }
        // Of -x - 1, whose carry is as likely as the fraction of x that is lost: multiples of 2^f stay exact.
        let me = self.seat();
        let complement = |x: &SharedVector| x.times(u128::MAX).offset(me, u128::MAX);
        let down = self.truncate_sides(session, &complement(x), f)?;
        Ok(complement(&down))
    }

    /// x / 2^f rounded down, of signed numbers with fewer bits than the ring.
    ///
    /// # Errors
    /// As [`SeatParty::truncate`].
    pub fn truncate_exact(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        f: u32,
    ) -> Result<SharedVector, Error> {
        check(x.ring(), 1, f)?;
        if f == 0 {
            return Ok(x.clone());
        }
        let (ring, len) = (x.ring(), x.len());
        if self.left_out(("truncate exactly", ring, f), len, |q| q.truncate_exact(ring, len, f)) {
            return Ok(SharedVector::zero(ring, len));
        }
        let down = self.truncate_sides(session, x, f)?;
        let carry = self.carry_of_sides(session, x, f)?;
        let carry = self.bits_to_ring(session, x.ring(), &[&carry])?;
        down.plus(&carry[0])
    }

    fn truncate_masked(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        width: u32,
        f: u32,
    ) -> Result<SharedVector, Error> {
        let (ring, shape, me) = (x.ring(), (x.ring(), x.len()), self.seat());
        let mask = self.random_side(Side::High, shape, ring.bits() - 2);
        let masked = x.offset(me, power(ring, width - 1)).plus(&mask)?;
        let opened = self.open_to(session, &masked, &Side::Low.holders())?;
        let opened = ClearVector::new(opened.unwrap_or_default());
        let entry = |side, value| SideEntry { side, shape, value: shift_clear(ring, value, f) };
        let entries = [entry(Side::Low, opened), entry(Side::High, Side::High.of(&mask, me))];
        let entered = self.enter_sides(session, &entries)?;
        Ok(entered[0].minus(&entered[1])?.offset(me, power(ring, width - 1 - f).wrapping_neg()))
    }

    /// x / 2^f rounded down, less the carry of the low bits of both sides.
    fn truncate_sides(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        f: u32,
    ) -> Result<SharedVector, Error> {
        let (ring, len, me) = (x.ring(), x.len(), self.seat());
        let (k, tops) = (ring.bits(), ring_of_tops(ring, f));
        let shifted = x.offset(me, power(ring, k - 2));
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let value = side.of(&shifted, me);
            let top = shift_clear(ring, value.clone(), k - 1);
            let mut quotient = shift_clear(ring, value, f);
            let wraps = splat(ring, power(ring, k - f));
            quotient.iter_mut().zip(top.iter()).for_each(|(q, &t)| *q = ring.sub(*q, ring.mul(t, wraps)));
            let top = if tops == ring { top } else { narrow(&top) };
            entries.push(SideEntry { side, shape: (ring, len), value: quotient });
            entries.push(SideEntry { side, shape: (tops, len), value: top });
        }
        let entered = self.enter_sides(session, &entries)?;
        let mut both = self.cross(session, (tops, len), &[vec![(&entered[1], &entered[3])]])?.remove(0);
        if tops != ring {
            both = widen(&both);
        }
        let total = sum((ring, len), [&entered[0], &entered[2], &both.times(power(ring, k - f))])?;
        Ok(total.offset(me, power(ring, k - 2 - f).wrapping_neg()))
    }

    /// The product of fixed-point numbers with f fractional bits, truncated; `width` is the product's before
    /// that.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`] and [`SeatParty::truncate`].
    pub fn multiply_fixed(
        &mut self,
        session: &mut Session,
        (x, y): (&SharedVector, &SharedVector),
        width: u32,
        f: u32,
    ) -> Result<SharedVector, Error> {
        let product = self.multiply(session, x, y)?;
        self.truncate(session, &product, width, f)
    }
}

impl RoundQuote {
    /// A truncation.
    pub fn truncate(&mut self, ring: VectorRing, len: usize, width: u32, f: u32) {
        if f == 0 {
            return;
        }
        if !headroom(ring, shifted_width(width, f)) {
            return self.truncate_sides(ring, len, f);
        }
        self.open_to(ring, len, &Side::Low.holders());
        self.enter_sides(&Side::BOTH.map(|side| (side, (ring, len))));
    }

    /// A truncation that rounds down.
    pub fn truncate_exact(&mut self, ring: VectorRing, len: usize, f: u32) {
        if f > 0 {
            self.truncate_sides(ring, len, f);
            self.carry_of_sides(len, f);
            self.bits_to_ring(ring, len, 1);
        }
    }

    fn truncate_sides(&mut self, ring: VectorRing, len: usize, f: u32) {
        let (shape, tops) = ((ring, len), (ring_of_tops(ring, f), len));
        self.enter_sides(&[(Side::Low, shape), (Side::Low, tops), (Side::High, shape), (Side::High, tops)]);
        self.cross(tops, 1);
    }

    /// A fixed-point product.
    pub fn multiply_fixed(&mut self, ring: VectorRing, len: usize, width: u32, f: u32) {
        self.multiply(ring, len);
        self.truncate(ring, len, width, f);
    }
}

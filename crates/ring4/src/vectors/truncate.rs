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

use crate::vectors::arithmetic::ArithmeticShares;
use crate::vectors::sides::{Side, SideEntry, power};
use crate::{RoundQuote, SeatParty, VectorRing};
use base::Error;
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

/// The product of both top bits counts 2^(k-f) times: only its lowest f bits do, so it may be over a smaller
/// ring.
fn ring_of_tops(ring: VectorRing, f: u32) -> VectorRing {
    if f <= VectorRing::Z64.bits() { VectorRing::Z64 } else { ring }
}

impl SeatParty {
    /// x / 2^f, of signed numbers of `width` bits, rounded down or up. Two rounds; 4 elements with headroom,
    /// else 8.
    ///
    /// # Errors
    /// A width as large as the ring's, f beyond the width of the ring, and those of the messages.
    pub fn truncate<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        width: u32,
        f: u32,
    ) -> Result<V, Error> {
        check(x.ring(), width, f)?;
        if f == 0 {
            return Ok(x.clone());
        }
        let (ring, len, shifted) = (x.ring(), x.len(), shifted_width(width, f));
        if self.left_out(("truncate", ring, shifted), len, |q| q.truncate(ring, len, width, f)) {
            return x.zeros(self, ring, len);
        }
        if let Some(x) = V::onto_device(self, &[x], x.blocks())? {
            let less = self.truncate(session, &x[0], width, f)?;
            return Ok(V::from_device(self, vec![less])?.remove(0));
        }
        if headroom(ring, shifted) {
            return self.truncate_masked(session, x, shifted, f);
        }
        // Of -x - 1, whose carry is as likely as the fraction of x that is lost: multiples of 2^f stay exact.
        let complement = self.affine(x, u128::MAX, u128::MAX)?;
        let down = self.truncate_sides(session, &complement, f)?;
        self.affine(&down, u128::MAX, u128::MAX)
    }

    /// x / 2^f rounded down, of signed numbers with fewer bits than the ring.
    ///
    /// # Errors
    /// As [`SeatParty::truncate`].
    pub fn truncate_exact<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        f: u32,
    ) -> Result<V, Error> {
        check(x.ring(), 1, f)?;
        if f == 0 {
            return Ok(x.clone());
        }
        let (ring, len) = (x.ring(), x.len());
        if self.left_out(("truncate exactly", ring, f), len, |q| q.truncate_exact(ring, len, f)) {
            return x.zeros(self, ring, len);
        }
        if let Some(x) = V::onto_device(self, &[x], x.blocks())? {
            let less = self.truncate_exact(session, &x[0], f)?;
            return Ok(V::from_device(self, vec![less])?.remove(0));
        }
        let down = self.truncate_sides(session, x, f)?;
        let carry = self.carry_of_sides(session, x, f)?;
        let carry = self.bits_to_ring(session, ring, &[&carry])?;
        self.plus(&down, &carry[0])
    }

    fn truncate_masked<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        width: u32,
        f: u32,
    ) -> Result<V, Error> {
        let (ring, shape) = (x.ring(), (x.ring(), x.len()));
        let mask = x.random(self, Side::High, shape, ring.bits() - 2)?;
        let first = Some((crate::Seat::ALL[0], power(ring, width - 1)));
        let masked = V::combine(self, &[(x, 1), (&mask, 1)], first)?;
        let opened = masked.open_low(self, session)?;
        let mut entries = Vec::new();
        for (side, known) in [(Side::Low, opened), (Side::High, mask.side(self, Side::High)?)] {
            let value = V::shifted(self, ring, &known, f, false, ring.bits())?;
            entries.push(SideEntry { side, shape, value });
        }
        let entered = x.enter(self, session, entries)?;
        let first = Some((crate::Seat::ALL[0], power(ring, width - 1 - f).wrapping_neg()));
        V::combine(self, &[(&entered[0], 1), (&entered[1], u128::MAX)], first)
    }

    /// x / 2^f rounded down, less the carry of the low bits of both sides.
    fn truncate_sides<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        f: u32,
    ) -> Result<V, Error> {
        let (ring, len) = (x.ring(), x.len());
        let (k, tops) = (ring.bits(), ring_of_tops(ring, f));
        let shifted = self.affine(x, 1, power(ring, k - 2))?;
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let known = shifted.side(self, side)?;
            let top = V::tops(self, (ring, len), &known, tops)?;
            // Less 2^(k-f) where the top bit is set: a quotient of two's complement.
            let quotient = V::shifted(self, ring, &known, f, true, k)?;
            entries.push(SideEntry { side, shape: (ring, len), value: quotient });
            entries.push(SideEntry { side, shape: (tops, len), value: top });
        }
        let entered = x.enter(self, session, entries)?;
        let mut both = V::cross(self, session, &[vec![(&entered[1], &entered[3])]])?.remove(0);
        if tops != ring {
            both = both.widened(self)?;
        }
        let terms = [(&entered[0], 1), (&entered[2], 1), (&both, power(ring, k - f))];
        V::combine(self, &terms, Some((crate::Seat::ALL[0], power(ring, k - 2 - f).wrapping_neg())))
    }

    /// The product of fixed-point numbers with f fractional bits, truncated; `width` is the product's before
    /// that.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`] and [`SeatParty::truncate`].
    pub fn multiply_fixed<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        (x, y): (&V, &V),
        width: u32,
        f: u32,
    ) -> Result<V, Error> {
        if let Some(both) = V::onto_device(self, &[x, y], x.blocks())? {
            let product = self.multiply_fixed(session, (&both[0], &both[1]), width, f)?;
            return Ok(V::from_device(self, vec![product])?.remove(0));
        }
        let product = x.product(self, session, y)?;
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

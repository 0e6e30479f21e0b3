//! Quotients: fixed-point with a stated error, and of integers, rounded down.
//!
//! **Functionality.** With a divisor b of w bits: its highest set bit gives the factor v that makes n = b v
//! lie in [2^(w-1), 2^w); d = n / 2^w is in [1/2, 1). Newton's y <- y (2 - d y) finds 1 / d with P fractional
//! bits from 2.9142 - 2 d, whose error is below 0.0858 and is squared by every step; then a / b = a y v /
//! 2^w.
//!
//! **Error** of the fixed-point quotient: below 1 + 2^(f - g - 1) units of its last bit plus a part 2^(5-P)
//! of it, with P and g of [`Division`]. The integer quotient is exact: where P suffices, the estimate is less
//! than one and a half from the quotient; else it is within 2^9, and the rest, which is exact, is divided
//! once more. Two comparisons then correct it by at most one. A divisor of 0 gives all ones; d is 1/2 for it,
//! as Newton's steps would double y, which would leave the widths that masks are made for.
//!
//! **Source.** Catrina and Saxena, "Secure computation with fixed-point numbers" (FC 2010): normalisation and
//! first approximation. Deviations: Newton instead of Goldschmidt, whose errors do not add up, and the exact
//! correction.
//!
//! **Cost.** Normalisation about 56 w bits and 20 elements; every Newton step 12 elements and two
//! truncations, 6 rounds. In all an integer quotient of 64 bits over Z_2^128 takes 3,980 bytes and 98 rounds,
//! one of 32 bits over Z_2^64 2,106 bytes and 85 rounds.

use crate::vectors::sides::power;
use crate::{Planes, RoundQuote, SeatParty, SharedVector, VectorRing};
use accel::splat;
use base::Error;
use net::Session;

/// The estimate of an integer quotient is within 2^9 of it.
const ESTIMATE_BITS: u32 = 9;

/// How a division is done: public, of ring, width and fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    ring: VectorRing,
    width: u32,
    /// Fractional bits of the reciprocal: P.
    pub precision: u32,
    /// Fractional bits of the dividend times the reciprocal; may be negative: g.
    pub guard: i32,
}

impl Division {
    /// Of numbers of `width` bits, to a quotient with `f` fractional bits.
    ///
    /// # Errors
    /// When twice the width does not fit the ring.
    pub fn new(ring: VectorRing, width: u32, f: u32) -> Result<Self, Error> {
        let k = ring.bits();
        if ring == VectorRing::Z2 || width == 0 || 2 * width > k {
            return Err(Error::misuse(format!("division of {width} bits needs a ring of twice as many")));
        }
        let precision = ((k - 4) / 2).min(k - 4 - width).min(width + f + 8);
        let guard = (precision as i32).min(k as i32 - 3 - 2 * width as i32);
        let division = Self { ring, width, precision, guard };
        if division.final_shift() < f as i32 {
            return Err(Error::misuse(format!(
                "{f} fractional bits are too many for a quotient of {width} bits"
            )));
        }
        Ok(division)
    }

    /// Newton steps: the error has 3.5 bits at first and twice as many after each.
    fn steps(self) -> u32 {
        (0..).find(|n| (7 << n) > 2 * self.precision).expect("a shift grows")
    }

    /// Bits by which the product with the factor is shifted.
    fn final_shift(self) -> i32 {
        self.width as i32 + self.guard
    }

    /// Whether the estimate is close enough for one correction.
    fn suffices(self) -> bool {
        self.precision >= self.width + 8 && self.guard >= 2
    }

    /// Width of a product of two numbers with P fractional bits below 2.
    fn product_width(self) -> u32 {
        2 * self.precision + 3
    }

    /// Fractional bits of the reciprocal of the second pass.
    fn second_precision(self) -> u32 {
        self.precision.min(self.ring.bits() - self.width - ESTIMATE_BITS - 4)
    }
}

/// What a divisor is divided by: its factor v and the reciprocal y of what it becomes.
struct Reciprocal {
    factor: SharedVector,
    reciprocal: SharedVector,
    /// Whether the divisor is not zero, over the ring.
    nonzero: SharedVector,
}

impl SeatParty {
    /// The OR of every plane with all before it. A network of one AND per node.
    pub(crate) fn prefix_or(
        &mut self,
        session: &mut Session,
        planes: &[SharedVector],
    ) -> Result<Vec<SharedVector>, Error> {
        if planes.len() < 2 {
            return Ok(planes.to_vec());
        }
        let pairs: Vec<_> = planes.chunks_exact(2).map(|pair| (&pair[1], &pair[0])).collect();
        let halves = self.ors(session, &pairs)?;
        let odd = self.prefix_or(session, &halves)?;
        let even = self.ors(session, &planes.iter().skip(2).step_by(2).zip(&odd).collect::<Vec<_>>())?;
        let mut even = even.into_iter();
        let mut all = vec![planes[0].clone()];
        for or in odd {
            all.push(or);
            all.extend(even.next());
        }
        Ok(all)
    }

    fn ors(
        &mut self,
        session: &mut Session,
        pairs: &[(&SharedVector, &SharedVector)],
    ) -> Result<Vec<SharedVector>, Error> {
        let both = self.ands(session, pairs)?;
        pairs.iter().zip(both).map(|((x, y), both)| x.plus(y)?.plus(&both)).collect()
    }

    fn reciprocal(
        &mut self,
        session: &mut Session,
        b: &SharedVector,
        division: Division,
    ) -> Result<Reciprocal, Error> {
        let Division { ring, width, precision, .. } = division;
        let mut planes = self.bits(session, b, width)?.into_planes();
        planes.reverse();
        let any = self.prefix_or(session, &planes)?;
        let nonzero = self.bits_to_ring(session, ring, &[&any[any.len() - 1]])?.remove(0);
        let mut first = vec![any[0].clone()];
        for pair in any.windows(2) {
            first.push(pair[1].plus(&pair[0])?);
        }
        let factor = self.word_to_ring(session, ring, &Planes::new(first)?)?;
        let normal = self.multiply(session, b, &factor)?;
        let me = self.seat();
        let half = power(ring, precision - 1);
        let d = self.scaled(session, &normal, width, precision)?;
        let d = d.minus(&nonzero.times(half))?.offset(me, half);
        // 2.9142 - 2 d.
        let start = (power(ring, precision) * 29142) / 10000;
        let mut y = d.times(2u128.wrapping_neg()).offset(me, start);
        for _ in 0..division.steps() {
            let product = self.multiply_fixed(session, (&d, &y), division.product_width(), precision)?;
            let rest = product.times(u128::MAX).offset(me, power(ring, precision + 1));
            y = self.multiply_fixed(session, (&y, &rest), division.product_width(), precision)?;
        }
        Ok(Reciprocal { factor, reciprocal: y, nonzero })
    }

    /// A number below 2^width as a fraction of it with `precision` bits.
    pub(crate) fn scaled(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        width: u32,
        precision: u32,
    ) -> Result<SharedVector, Error> {
        match width.checked_sub(precision) {
            Some(more) => self.truncate(session, x, width + 1, more),
            None => Ok(x.times(power(x.ring(), precision - width))),
        }
    }

    /// a y v / 2^(w - f), less a bias, rounded down or up.
    fn estimate(
        &mut self,
        session: &mut Session,
        a: &SharedVector,
        by: &Reciprocal,
        (division, f): (Division, u32),
        bias: u128,
    ) -> Result<SharedVector, Error> {
        let Division { width, precision, guard, .. } = division;
        let drop = (precision as i32 - guard) as u32;
        let t = self.multiply_fixed(session, (a, &by.reciprocal), width + precision + 3, drop)?;
        let product = self.multiply(session, &t, &by.factor)?.offset(self.seat(), bias.wrapping_neg());
        let shift = division.final_shift() as u32 - f;
        self.truncate(session, &product, (2 * width as i32 + guard + 2) as u32, shift)
    }

    /// a / b with f fractional bits: `a 2^f / b`, for b from 1 to 2^width - 1 and a above -2^width and below
    /// 2^width, both with the same number of fractional bits. The quotient must fit the ring.
    ///
    /// # Errors
    /// What [`Division::new`] refuses, shapes that differ, and those of the messages.
    pub fn divide_fixed(
        &mut self,
        session: &mut Session,
        (a, b): (&SharedVector, &SharedVector),
        width: u32,
        f: u32,
    ) -> Result<SharedVector, Error> {
        a.same_shape(b)?;
        let division = Division::new(a.ring(), width, f)?;
        let (ring, len) = (a.ring(), a.len());
        let price = |q: &mut RoundQuote| q.divide_fixed(ring, len, width, f).expect("the width was checked");
        if self.left_out(("divide", ring, width), len, price) {
            return Ok(SharedVector::zero(ring, len));
        }
        let by = self.reciprocal(session, b, division)?;
        self.estimate(session, a, &by, (division, f), 0)
    }

    /// a / b rounded down, of unsigned numbers of `width` bits; all ones where b is 0.
    ///
    /// # Errors
    /// What [`Division::new`] refuses, shapes that differ, and those of the messages.
    pub fn divide(
        &mut self,
        session: &mut Session,
        (a, b): (&SharedVector, &SharedVector),
        width: u32,
    ) -> Result<SharedVector, Error> {
        a.same_shape(b)?;
        let (ring, me) = (a.ring(), self.seat());
        let division = Division::new(ring, width, 0)?;
        let len = a.len();
        let price = |q: &mut RoundQuote| q.divide(ring, len, width).expect("the width was checked");
        if self.left_out(("divide exactly", ring, width), len, price) {
            return Ok(SharedVector::zero(ring, len));
        }
        let by = self.reciprocal(session, b, division)?;
        let quarter = if division.suffices() { power(ring, division.final_shift() as u32 - 2) } else { 0 };
        let mut quotient = self.estimate(session, a, &by, (division, 0), quarter)?;
        let mut rest = a.minus(&self.multiply(session, &quotient, b)?)?;
        if !division.suffices() {
            let more = self.second_pass(session, &rest, &by, division)?;
            rest = rest.minus(&self.multiply(session, &more, b)?)?;
            quotient = quotient.plus(&more)?;
        }
        // The rest is from -b to 2 b - 1: one less, as it is, or one more.
        let below = self.bit(session, &[&rest, &rest.minus(b)?], width + 2)?;
        let flags = self.bits_to_ring(session, ring, &[&below[0], &below[1]])?;
        let quotient = quotient.offset(me, 1).minus(&flags[0])?.minus(&flags[1])?;
        let ones = kernels::Block(splat(ring, power(ring, width).wrapping_sub(1)).0);
        let ones = SharedVector::public(ring, a.len(), me, &vec![ones; a.blocks()]);
        self.select(session, &by.nonzero, &quotient, &ones)
    }

    /// rest / b for a rest within 2^9 b, less 1/32, rounded down or up.
    fn second_pass(
        &mut self,
        session: &mut Session,
        rest: &SharedVector,
        by: &Reciprocal,
        division: Division,
    ) -> Result<SharedVector, Error> {
        let Division { ring, width, precision, .. } = division;
        let second = division.second_precision();
        let normal = self.multiply(session, rest, &by.factor)?;
        let y = self.truncate(session, &by.reciprocal, precision + 3, precision - second)?;
        let bias = power(ring, width + second - 5);
        let product = self.multiply(session, &normal, &y)?.offset(self.seat(), bias.wrapping_neg());
        self.truncate(session, &product, width + ESTIMATE_BITS + second + 3, width + second)
    }
}

impl RoundQuote {
    /// The ORs of planes with those before them.
    pub(crate) fn prefix_or(&mut self, len: usize, planes: usize) {
        if planes > 1 {
            self.ands(len, planes / 2);
            self.prefix_or(len, planes / 2);
            self.ands(len, planes.div_ceil(2) - 1);
        }
    }

    pub(crate) fn scaled(&mut self, ring: VectorRing, len: usize, width: u32, precision: u32) {
        if let Some(more) = width.checked_sub(precision) {
            self.truncate(ring, len, width + 1, more);
        }
    }

    fn reciprocal(&mut self, len: usize, division: Division) {
        let Division { ring, width, precision, .. } = division;
        self.bits(ring, len, width);
        self.prefix_or(len, width as usize);
        self.bits_to_ring(ring, len, 1);
        self.word_to_ring(ring, len, width);
        self.multiply(ring, len);
        self.scaled(ring, len, width, precision);
        for _ in 0..2 * division.steps() {
            self.multiply_fixed(ring, len, division.product_width(), precision);
        }
    }

    fn estimate(&mut self, len: usize, division: Division, f: u32) {
        let Division { ring, width, precision, guard } = division;
        self.multiply_fixed(ring, len, width + precision + 3, (precision as i32 - guard) as u32);
        let shift = division.final_shift() as u32 - f;
        self.multiply_fixed(ring, len, (2 * width as i32 + guard + 2) as u32, shift);
    }

    /// A fixed-point division.
    ///
    /// # Errors
    /// What [`Division::new`] refuses.
    pub fn divide_fixed(&mut self, ring: VectorRing, len: usize, width: u32, f: u32) -> Result<(), Error> {
        let division = Division::new(ring, width, f)?;
        self.reciprocal(len, division);
        self.estimate(len, division, f);
        Ok(())
    }

    /// An integer division.
    ///
    /// # Errors
    /// What [`Division::new`] refuses.
    pub fn divide(&mut self, ring: VectorRing, len: usize, width: u32) -> Result<(), Error> {
        let division = Division::new(ring, width, 0)?;
        self.reciprocal(len, division);
        self.estimate(len, division, 0);
        self.multiply(ring, len);
        if !division.suffices() {
            let (precision, second) = (division.precision, division.second_precision());
            self.multiply(ring, len);
            self.truncate(ring, len, precision + 3, precision - second);
            self.multiply_fixed(ring, len, width + ESTIMATE_BITS + second + 3, width + second);
            self.multiply(ring, len);
        }
        self.bit(len, 2, width + 2);
        self.bits_to_ring(ring, len, 2);
        self.select(ring, len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether every product of the iteration and of the estimate is within the width that is declared for
    /// it, from d on.
    fn fits(division: Division, d: i128) -> bool {
        let Division { width, precision: p, .. } = division;
        let within = |x: i128, width: u32| (-(1 << (width - 1))..1 << (width - 1)).contains(&x);
        let mut y = (1i128 << p) * 29142 / 10000 - 2 * d;
        for _ in 0..division.steps() {
            let rest = (1 << (p + 1)) - ((d * y) >> p);
            if !within(d * y, division.product_width()) || !within(y * rest, division.product_width()) {
                return false;
            }
            // Rounded up: the larger of both.
            y = ((y * rest) >> p) + 1;
        }
        let most = ((1i128 << width) - 1) * y;
        within(most, width + p + 3) && within(-most, width + p + 3)
    }

    #[test]
    fn nothing_leaves_its_width_at_the_edges() {
        let sizes = [
            (VectorRing::Z64, 20, 10),
            (VectorRing::Z64, 8, 0),
            (VectorRing::Z128, 20, 0),
            (VectorRing::Z128, 40, 0),
            (VectorRing::Z128, 30, 15),
        ];
        for (ring, width, f) in sizes {
            let division = Division::new(ring, width, f).unwrap();
            let half = 1i128 << (division.precision - 1);
            // A divisor of 0 counts as one half.
            for d in [half, half + 1, 3 * half / 2, 2 * half - 2, 2 * half - 1] {
                assert!(fits(division, d), "{division:?} at {d}");
            }
            assert!(!fits(division, 0), "what the half is for");
        }
    }
}

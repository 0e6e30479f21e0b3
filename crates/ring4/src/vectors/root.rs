//! Square roots, rounded down, of integers and of fixed-point numbers.
//!
//! **Functionality.** x of w bits, w even: the highest pair of bits that is not 0, pair j, gives the factor
//! 4^(w/2 - 1 - j) that makes x lie in [2^(w-2), 2^w), d = that / 2^w in [1/4, 1), and the factor 2^(j + 1)
//! that leads back. Newton's z <- z (3 - d z^2) / 2 finds 1 / sqrt(d) from 2 - d, whose error is at most 1/8
//! and becomes 1.5 times its square with every step. sqrt(x) = d z 2^(j + 1), made smaller by what it may be
//! in error; two comparisons of exact squares then correct it by at most one. For x = 0 both factors are 0
//! and d is 1, since from d = 0 the steps would leave the widths that masks are made for.
//!
//! **Error.** None: the root is rounded down. That of a fixed-point number with f fractional bits is of x
//! 2^f, so below one unit of its last bit.
//!
//! **Source.** Normalisation as for division: Catrina and Saxena (FC 2010); the exact correction is ours.
//!
//! **Cost.** About 56 w bits and 34 elements for normalisation; every Newton step 18 elements and three
//! truncations, 9 rounds. In all a root of 64 bits over Z_2^128 takes 4,144 bytes and 103 rounds, one of 32
//! bits over Z_2^64 2,300 bytes and 87 rounds.

use crate::vectors::sides::{concat, cut, power};
use crate::{Planes, RoundQuote, SeatParty, SharedVector, VectorRing};
use base::Error;
use net::Session;

/// How much smaller the root of d is made, in its last bits: above the error of the iteration.
const BIAS: u128 = 32;

/// Public parameters.
#[derive(Clone, Copy)]
struct Root {
    ring: VectorRing,
    /// Bits of x.
    entered: u32,
    /// The same, even.
    width: u32,
    precision: u32,
}

impl Root {
    fn new(ring: VectorRing, entered: u32) -> Result<Self, Error> {
        let width = entered.next_multiple_of(2);
        let precision = width / 2 + 8;
        if ring == VectorRing::Z2 || entered == 0 || 2 * precision + 8 > ring.bits() {
            let most = ring.bits().saturating_sub(24);
            return Err(Error::misuse(format!("over {} bits a root is of 1 to {most} bits", ring.bits())));
        }
        Ok(Self { ring, entered, width, precision })
    }

    /// The error has 3 bits at first; twice as many less 0.6 after each step.
    fn steps(self) -> u32 {
        let (mut bits, mut steps) = (30, 0);
        while bits < 10 * self.precision {
            bits = 2 * bits - 6;
            steps += 1;
        }
        steps
    }

    fn pairs(self) -> usize {
        self.width as usize / 2
    }

    fn product_width(self) -> u32 {
        2 * self.precision + 4
    }

    /// Where the sign of x less a square is.
    fn sign(self) -> u32 {
        self.width / 2 + 4
    }
}

impl SeatParty {
    /// The square root of unsigned numbers of `width` bits, rounded down.
    ///
    /// # Errors
    /// A width above that of the ring less 24, and those of the messages.
    pub fn root(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        width: u32,
    ) -> Result<SharedVector, Error> {
        let root = Root::new(x.ring(), width)?;
        let (ring, p, me) = (x.ring(), root.precision, self.seat());
        let len = x.len();
        let price = |q: &mut RoundQuote| q.root(ring, len, width).expect("the width was checked");
        if self.left_out(("root", ring, width), len, price) {
            return Ok(SharedVector::zero(ring, len));
        }
        let ([to, back], nonzero) = self.root_factors(session, x, root)?;
        let scaled = self.multiply(session, x, &to)?;
        let normal = self.multiply(session, &scaled, &to)?;
        let d = self.scaled(session, &normal, root.width, p)?;
        let d = d.minus(&nonzero.times(power(ring, p)))?.offset(me, power(ring, p));
        let mut z = d.times(u128::MAX).offset(me, power(ring, p + 1));
        for _ in 0..root.steps() {
            let square = self.multiply_fixed(session, (&z, &z), root.product_width(), p)?;
            let near_1 = self.multiply_fixed(session, (&d, &square), root.product_width(), p)?;
            let rest = near_1.times(u128::MAX).offset(me, 3 * power(ring, p));
            z = self.multiply_fixed(session, (&z, &rest), root.product_width(), p + 1)?;
        }
        let of_d = self.multiply_fixed(session, (&d, &z), root.product_width(), p)?;
        let of_d = of_d.offset(me, BIAS.wrapping_neg());
        let estimate = self.multiply_fixed(session, (&of_d, &back), p + root.width / 2 + 2, p - 1)?;
        // Its square and the next one say whether it is one too large or one too small.
        let rest = x.minus(&self.multiply(session, &estimate, &estimate)?)?;
        let next = rest.minus(&estimate.times(2))?.offset(me, u128::MAX);
        let above = self.bit(session, &[&rest, &next], root.sign())?;
        let above = self.bits_to_ring(session, ring, &[&above[0], &above[1]])?;
        estimate.offset(me, 1).minus(&above[0])?.minus(&above[1])
    }

    /// The square root of numbers of `width` bits with f fractional bits, with as many, rounded down.
    ///
    /// # Errors
    /// As [`SeatParty::root`], for `width + f` bits.
    pub fn root_fixed(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        width: u32,
        f: u32,
    ) -> Result<SharedVector, Error> {
        Root::new(x.ring(), width.saturating_add(f))?;
        self.root(session, &x.times(power(x.ring(), f)), width + f)
    }

    /// 2^(w/2 - 1 - j) and 2^j where pair j of bits is the highest that is not 0; 0 where all are. Whether
    /// any is not.
    fn root_factors(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        root: Root,
    ) -> Result<([SharedVector; 2], SharedVector), Error> {
        let mut planes = self.bits(session, x, root.entered)?.into_planes();
        if root.entered < root.width {
            planes.push(SharedVector::zero(VectorRing::Z2, x.len()));
        }
        planes.reverse();
        let any = self.prefix_or(session, &planes)?;
        let nonzero = self.bits_to_ring(session, root.ring, &[&any[any.len() - 1]])?.remove(0);
        let mut first = vec![any[1].clone()];
        for i in 1..root.pairs() {
            first.push(any[2 * i + 1].plus(&any[2 * i - 1])?);
        }
        let both = first.iter().zip(first.iter().rev()).map(|(to, back)| concat(VectorRing::Z2, &[to, back]));
        let words = self.word_to_ring(session, root.ring, &Planes::new(both.collect())?)?;
        let half = words.len() / 2;
        let factors = cut(&words, &[half, half]);
        Ok(([0, 1].map(|i| crate::vectors::convert::shorten(&factors[i], x.len())), nonzero))
    }
}

impl RoundQuote {
    /// A square root.
    ///
    /// # Errors
    /// A width that [`SeatParty::root`] refuses.
    pub fn root(&mut self, ring: VectorRing, len: usize, width: u32) -> Result<(), Error> {
        let root = Root::new(ring, width)?;
        let p = root.precision;
        self.bits(ring, len, width);
        self.prefix_or(len, root.width as usize);
        self.bits_to_ring(ring, len, 1);
        self.word_to_ring(ring, 2 * VectorRing::Z2.blocks(len) * 128, root.width / 2);
        self.multiply(ring, len);
        self.multiply(ring, len);
        self.scaled(ring, len, root.width, p);
        for _ in 0..root.steps() {
            self.multiply_fixed(ring, len, root.product_width(), p);
            self.multiply_fixed(ring, len, root.product_width(), p);
            self.multiply_fixed(ring, len, root.product_width(), p + 1);
        }
        self.multiply_fixed(ring, len, root.product_width(), p);
        self.multiply_fixed(ring, len, p + root.width / 2 + 2, p - 1);
        self.multiply(ring, len);
        self.bit(len, 2, root.sign());
        self.bits_to_ring(ring, len, 2);
        Ok(())
    }

    /// A square root of fixed-point numbers.
    ///
    /// # Errors
    /// As [`RoundQuote::root`].
    pub fn root_fixed(&mut self, ring: VectorRing, len: usize, width: u32, f: u32) -> Result<(), Error> {
        self.root(ring, len, width + f)
    }
}

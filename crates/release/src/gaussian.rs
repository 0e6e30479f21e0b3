//! The exact discrete Gaussian and the discrete Laplace.
//!
//! Functionality: an integer X with P(X = x) proportional to exp(-x^2 / (2 sigma^2)) (or exp(-|x| / s)), for
//! rational sigma^2 (or s). No floating point: the law is the stated one, not one near it, so neither the
//! zCDP statement nor the equality test of cut-and-choose has an error term. Paper: Canonne, Kamath, Steinke,
//! "The Discrete Gaussian for Differential Privacy" (2020), Algorithms 1, 2 and 3. Deviation: a draw outside
//! a declared width is redrawn ([`DiscreteGaussian::sample_within`]), which both parties of cut-and-choose do
//! alike; the width is at least 16 sigma, so the law changes by less than 2^-180. Both parties must turn one
//! seed into one draw, so the use of the generator is part of the format: see `below`. Timing: rejection
//! sampling takes longer for some values than for others. The drawer samples its whole batch, for all
//! candidates, before it answers; what a peer can time is a sum over all of them. Not constant time. Cost: an
//! expected handful of trials per draw, about 2 microseconds.

use crate::rational::{Rational, unsigned};
use base::Error;
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};
use rand_core::CryptoRng;

/// Bits of the numerator and of the denominator of a variance: keeps one trial short.
pub const PARAMETER_BITS: u64 = 1024;
/// The declared width of a draw holds at least this many standard deviations each way.
pub const WIDTH_SIGMAS: u32 = 16;

/// A uniform integer in `0..bound`.
///
/// Format: with b the bits of `bound - 1`, read ceil(b / 64) words (`next_u64`), least significant first;
/// keep the low b bits; start again when the number is not below the bound. `bound` 1 reads nothing.
fn below<R: CryptoRng>(rng: &mut R, bound: &BigUint) -> BigUint {
    if let Some(small) = bound.to_u64() {
        return below_u64(rng, small).into();
    }
    let bits = (bound - 1u8).bits();
    let words = bits.div_ceil(64);
    loop {
        let bytes: Vec<u8> = (0..words).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let drawn = BigUint::from_bytes_le(&bytes) & ((BigUint::one() << bits) - 1u8);
        if &drawn < bound {
            return drawn;
        }
    }
}

/// The same rule for a bound of one word, without allocation.
fn below_u64<R: CryptoRng>(rng: &mut R, bound: u64) -> u64 {
    debug_assert!(bound > 0);
    let bits = u64::BITS - (bound - 1).leading_zeros();
    if bits == 0 {
        return 0;
    }
    loop {
        let drawn = rng.next_u64() & (u64::MAX >> (u64::BITS - bits));
        if drawn < bound {
            return drawn;
        }
    }
}

/// True with probability `numerator / denominator`, at most 1.
fn bernoulli<R: CryptoRng>(rng: &mut R, numerator: &BigUint, denominator: &BigUint) -> bool {
    &below(rng, denominator) < numerator
}

/// True with probability exp(-numerator / denominator): Algorithm 1 of the paper.
fn bernoulli_exp<R: CryptoRng>(rng: &mut R, numerator: &BigUint, denominator: &BigUint) -> bool {
    let (mut whole, rest) = numerator.div_rem(denominator);
    let one = BigUint::one();
    while !whole.is_zero() {
        if !bernoulli_exp_fraction(rng, &one, &one) {
            return false;
        }
        whole -= 1u8;
    }
    bernoulli_exp_fraction(rng, &rest, denominator)
}

/// The same for an exponent of at most 1: the number of successes of Bernoulli(g / 1), Bernoulli(g / 2), ...
/// before the first failure is even with probability exp(-g), by the alternating series.
fn bernoulli_exp_fraction<R: CryptoRng>(rng: &mut R, numerator: &BigUint, denominator: &BigUint) -> bool {
    let mut trials = BigUint::one();
    while bernoulli(rng, numerator, &(denominator * &trials)) {
        trials += 1u8;
    }
    trials.bit(0)
}

/// The discrete Laplace: P(X = x) proportional to exp(-|x| / scale).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscreteLaplace {
    /// scale = t / s in lowest terms.
    t: BigUint,
    s: BigUint,
}

impl DiscreteLaplace {
    /// The law of this scale.
    ///
    /// # Errors
    /// When the scale is not positive or has more than [`PARAMETER_BITS`] bits above or below.
    pub fn new(scale: &Rational) -> Result<Self, Error> {
        check_parameter(scale)?;
        Ok(Self { t: unsigned(scale.numer()), s: unsigned(scale.denom()) })
    }

    /// A draw: Algorithm 2 of the paper.
    pub fn sample<R: CryptoRng>(&self, rng: &mut R) -> BigInt {
        let one = BigUint::one();
        loop {
            let remainder = below(rng, &self.t);
            if !bernoulli_exp_fraction(rng, &remainder, &self.t) {
                continue;
            }
            let mut quotient = 0u64;
            while bernoulli_exp_fraction(rng, &one, &one) {
                quotient += 1;
            }
            let magnitude = (remainder + &self.t * quotient) / &self.s;
            let negative = below_u64(rng, 2) == 1;
            // One zero, not two.
            if !(negative && magnitude.is_zero()) {
                return BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, magnitude);
            }
        }
    }
}

/// The discrete Gaussian N_Z(0, sigma^2): P(X = x) proportional to exp(-x^2 / (2 sigma^2)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    sigma2: Rational,
    /// sigma^2 = p / q.
    p: BigUint,
    q: BigUint,
    /// t = floor(sigma) + 1, the scale of the Laplace proposals.
    t: BigUint,
    proposal: DiscreteLaplace,
}

impl DiscreteGaussian {
    /// The law of this variance parameter.
    ///
    /// # Errors
    /// When sigma^2 is not positive or has more than [`PARAMETER_BITS`] bits above or below.
    pub fn new(sigma2: &Rational) -> Result<Self, Error> {
        check_parameter(sigma2)?;
        let (p, q) = (unsigned(sigma2.numer()), unsigned(sigma2.denom()));
        let t = (&p / &q).sqrt() + 1u8;
        let proposal = DiscreteLaplace { t: t.clone(), s: BigUint::one() };
        Ok(Self { sigma2: sigma2.clone(), p, q, t, proposal })
    }

    /// The variance parameter.
    #[must_use]
    pub fn sigma2(&self) -> &Rational {
        &self.sigma2
    }

    /// A draw: Algorithm 3 of the paper.
    pub fn sample<R: CryptoRng>(&self, rng: &mut R) -> BigInt {
        // Accept a proposal y with probability exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)); with sigma^2 = p /
        // q the exponent is (|y| t q - p)^2 / (2 p q t^2).
        let scaled = &self.t * &self.q;
        let denominator = &self.p * &self.q * &self.t * &self.t * 2u8;
        loop {
            let y = self.proposal.sample(rng);
            let distance = BigInt::from(y.magnitude() * &scaled) - BigInt::from(self.p.clone());
            if bernoulli_exp(rng, &(distance.magnitude() * distance.magnitude()), &denominator) {
                return y;
            }
        }
    }

    /// The least width in bits, sign included, that [`Self::sample_within`] accepts for this variance.
    #[must_use]
    pub fn width(&self) -> u32 {
        // 2^(w - 1) - 1 >= 16 sigma.
        let reach = crate::rational::ceil_sqrt(&(&self.sigma2 * BigInt::from(WIDTH_SIGMAS * WIDTH_SIGMAS)));
        u32::try_from(reach.bits()).expect("sigma^2 has at most PARAMETER_BITS bits") + 1
    }

    /// Checks that draws of this law may be declared `width` bits wide, sign included.
    ///
    /// # Errors
    /// When the width is over 128 bits or below [`Self::width`].
    pub fn check_width(&self, width: u32) -> Result<(), Error> {
        if width > base::limits::WIDTH {
            return Err(Error::limit("WIDTH", width.into(), base::limits::WIDTH.into()));
        }
        if width < self.width() {
            return Err(Error::misuse(format!(
                "noise of this scale needs {} bits ({WIDTH_SIGMAS} sigma each way), {width} are declared",
                self.width()
            )));
        }
        Ok(())
    }

    /// A draw x with |x| < 2^(width - 1); a draw outside is redrawn from the same stream.
    ///
    /// # Errors
    /// Those of [`Self::check_width`].
    pub fn sample_within<R: CryptoRng>(&self, rng: &mut R, width: u32) -> Result<i128, Error> {
        self.check_width(width)?;
        loop {
            let drawn = self.sample(rng);
            if drawn.bits() < u64::from(width) {
                return Ok(drawn.to_i128().expect("fewer than 128 bits fit"));
            }
        }
    }
}

fn check_parameter(value: &Rational) -> Result<(), Error> {
    if !value.is_positive() {
        return Err(Error::misuse("the scale of noise is a positive number"));
    }
    let bits = value.numer().bits().max(value.denom().bits());
    if bits > PARAMETER_BITS {
        return Err(Error::limit("PARAMETER_BITS", bits, PARAMETER_BITS));
    }
    Ok(())
}

//! The discrete Gaussian from coins alone, so that it can be drawn inside a computation whose coins nobody
//! knows.
//!
//! Functionality: from uniform bits an integer Z, so that f + Z - (2^e - 1) / 2 is rho-zCDP for an integer f
//! of a stated sensitivity D, up to a stated distance. Z = 2^e Y + U: U is e coins, Y is near the discrete
//! Gaussian N_Z(0, m^2 c / (2 rho)) with m = ceil(D / 2^e), c the number of outputs that one change moves.
//! Why it is rho-zCDP: (f + U) mod 2^e is uniform whatever f is; given it, f lies on a lattice of step 2^e
//! and moves by m of its steps at most. So U costs no accuracy in rho; it costs variance, at most 1 %
//! (`SLACK`). Y is a sum of parts 2^b Y_i. A part is one cell of an alias table (Walker 1977) and a sign: k
//! coins name the cell, 63 more are compared with its threshold, and where they are not below it the cell's
//! alias is the magnitude. That a sum of discrete Gaussians on lattices is one, up to 2^-60.9:
//! `PARTS_SMOOTH`. A table is made with integers alone, so every party has the same one; it is public and
//! part of a program's hash. Timing: tables and parts are public; what a circuit does with coins depends on
//! neither. [`Sampler::draw`] is for the clear. Vectors: `tests/noise-vectors.json`.

use crate::rational::{Rational, exp2};
use base::{Error, Rng};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Coins that are compared with a threshold.
pub const FRACTION_BITS: u32 = 63;
/// Parts of one draw at most: enough for standard deviations of 10^6.
pub const MAX_PARTS: usize = 6;
/// No draw is charged a smaller distance than 2^-58.
pub const LEAST_DISTANCE_EXPONENT: i32 = -58;

/// Bits after the point in the exponential function.
const POINT: u32 = 320;
/// Cells, as powers of two, that a table may have, with the largest variance of each: beyond 2^k - 1/2, more
/// than 8.8 standard deviations away, lies less than 2^-60.
const SIZES: [(u32, u32); 4] = [(5, 12), (6, 50), (7, 200), (8, 800)];
/// How far apart parts may lie: shifts of the next one above the last.
const SHIFTS: u32 = 5;

/// An alias table for the magnitude of N_Z(0, variance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasTable {
    bits: u32,
    variance: Rational,
    threshold: Vec<u64>,
    alias: Vec<u16>,
    /// Of 2^(bits + 63): how many coin words give each magnitude.
    weights: Vec<u128>,
    distance: Rational,
}

impl AliasTable {
    /// The table of 2^`bits` cells.
    ///
    /// # Errors
    /// When `bits` is not in 1..=8, or the variance is not positive or has more than
    /// [`crate::gaussian::PARAMETER_BITS`] bits.
    pub fn new(bits: u32, variance: &Rational) -> Result<Self, Error> {
        check(variance)?;
        if !(1..=8).contains(&bits) {
            return Err(Error::misuse("a table has 2 to 256 cells"));
        }
        let masses = masses(variance);
        let (weights, distance) = weights(bits, &masses);
        let (threshold, alias) = walker(&weights);
        Ok(Self { bits, variance: variance.clone(), threshold, alias, weights, distance })
    }

    /// k: the table has 2^k cells.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The stated variance.
    #[must_use]
    pub fn variance(&self) -> &Rational {
        &self.variance
    }

    /// By cell: a fraction below it keeps the cell. Below 2^63.
    #[must_use]
    pub fn thresholds(&self) -> &[u64] {
        &self.threshold
    }

    /// By cell: the magnitude where the fraction is not below the threshold.
    #[must_use]
    pub fn aliases(&self) -> &[u16] {
        &self.alias
    }

    /// By magnitude: how many of the 2^(k + 63) coin words give it.
    #[must_use]
    pub fn weights(&self) -> &[u128] {
        &self.weights
    }

    /// The statistical distance between this law and the discrete Gaussian, or a little more.
    #[must_use]
    pub fn distance(&self) -> &Rational {
        &self.distance
    }

    /// What a cell and a fraction say.
    fn magnitude(&self, cell: usize, fraction: u64) -> u16 {
        if fraction < self.threshold[cell] { cell as u16 } else { self.alias[cell] }
    }
}

/// One summand 2^shift Y_i of a draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawPart {
    /// b.
    pub shift: u32,
    /// The law of Y_i's magnitude.
    pub table: AliasTable,
}

impl DrawPart {
    /// Coins: a cell, a fraction and a sign.
    #[must_use]
    pub fn coins(&self) -> usize {
        (self.table.bits + FRACTION_BITS + 1) as usize
    }

    /// 2^b Y_i of 64 + k coins.
    fn sample(&self, rng: &mut Rng) -> i128 {
        let (cell, rest) = (rand_core::Rng::next_u64(rng), rand_core::Rng::next_u64(rng));
        let cell = cell & ((1 << self.table.bits) - 1);
        let value = i128::from(self.table.magnitude(cell as usize, rest >> 1)) << self.shift;
        if rest & 1 == 1 { -value } else { value }
    }
}

/// How the noise of one output is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// e: coins that are added as they are.
    pub low_bits: u32,
    /// m: by how many steps of 2^e one change moves the output.
    pub steps: BigInt,
    /// The stated variance of Y.
    pub variance_y: Rational,
    /// The summands of Y, lowest first.
    pub parts: Vec<DrawPart>,
}

impl Sampler {
    /// The noise of an integer output that one change moves by `sensitivity` (at least 1) at most, as one of
    /// `cells` outputs of a family that it moves, at a charge of `rho` for the family.
    ///
    /// # Errors
    /// When an argument is not positive, or the standard deviation of Y would pass what [`MAX_PARTS`] parts
    /// reach.
    pub fn new(sensitivity: &BigInt, cells: u32, rho: &Rational) -> Result<Self, Error> {
        Self::with_low_bits(sensitivity, cells, rho, low_bits(sensitivity, cells, rho)?)
    }

    /// The same with a given number of low bits, where the charge of several outputs was counted in their
    /// steps ([`crate::joint`]).
    ///
    /// # Errors
    /// Those of [`Sampler::new`].
    pub fn with_low_bits(
        sensitivity: &BigInt,
        cells: u32,
        rho: &Rational,
        low_bits: u32,
    ) -> Result<Self, Error> {
        check_cost(sensitivity, cells, rho)?;
        let rho = rho / BigInt::from(cells);
        let steps = (sensitivity + (BigInt::one() << low_bits) - 1) >> low_bits;
        let variance_y = Rational::from_integer(&steps * &steps) / (&rho * BigInt::from(2));
        let parts = parts(&variance_y)?;
        Ok(Self { low_bits, steps, variance_y, parts })
    }

    /// Noise of a given variance on a lattice of step 2^`low_bits`, whatever one change moves; uniform below.
    ///
    /// # Errors
    /// When the variance is not positive or too long, or the standard deviation of Y would pass what
    /// [`MAX_PARTS`] parts reach.
    pub fn on_lattice(variance: &Rational, low_bits: u32) -> Result<Self, Error> {
        let variance_y = variance / exp2(2 * low_bits.cast_signed());
        let parts = parts(&variance_y)?;
        Ok(Self { low_bits, steps: BigInt::one(), variance_y, parts })
    }

    /// Coins of one draw: the low bits first, then each part's cell, fraction and sign, least significant
    /// first.
    #[must_use]
    pub fn coins(&self) -> usize {
        self.low_bits as usize + self.parts.iter().map(DrawPart::coins).sum::<usize>()
    }

    /// The variance of Z.
    #[must_use]
    pub fn variance(&self) -> Rational {
        let square = exp2(2 * self.low_bits.cast_signed());
        &square * &self.variance_y + (square - BigInt::one()) / BigInt::from(12)
    }

    /// The mean of Z, which is taken off outside the computation: (2^e - 1) / 2.
    #[must_use]
    pub fn mean(&self) -> Rational {
        (exp2(self.low_bits.cast_signed()) - BigInt::one()) / BigInt::from(2)
    }

    /// What a circuit takes off Z, 2^(e - 1), so that its noise has a mean of -1/2; 0 where e = 0, and then
    /// the mean is 0.
    ///
    /// # Panics
    /// Never: e is below the bits of a sensitivity that a program can have.
    #[must_use]
    pub fn centre(&self) -> i128 {
        if self.low_bits == 0 { 0 } else { 1i128 << (self.low_bits - 1) }
    }

    /// The largest magnitude of Y.
    #[must_use]
    pub fn most(&self) -> BigInt {
        let one = |part: &DrawPart| BigInt::from((1u64 << part.table.bits) - 1) << part.shift;
        self.parts.iter().map(one).sum()
    }

    /// Most that the law of Y is away from the discrete Gaussian in statistical distance; at least 2^-58.
    #[must_use]
    pub fn distance(&self) -> Rational {
        let smoothing = exp2(-60) * BigInt::from(self.parts.len() - 1);
        let own: Rational = self.parts.iter().map(|part| part.table.distance.clone()).sum();
        (own + smoothing).max(exp2(LEAST_DISTANCE_EXPONENT))
    }

    /// A draw as a circuit leaves it, [`Sampler::centre`] taken off, for simulations: of the same law as that
    /// of coins.
    #[must_use]
    pub fn sample(&self, rng: &mut Rng) -> i128 {
        let y: i128 = self.parts.iter().map(|part| part.sample(rng)).sum();
        let low = u128::from_le_bytes(rng.bytes()) & ((1 << self.low_bits) - 1);
        (y << self.low_bits) + low.cast_signed() - self.centre()
    }

    /// Y and Z of given coins.
    ///
    /// # Panics
    /// When there are not [`Sampler::coins`] coins.
    #[must_use]
    pub fn draw(&self, coins: &[bool]) -> (BigInt, BigInt) {
        let (y, low) = self.parts_of(coins);
        (y.into(), (BigInt::from(y) << self.low_bits) + low)
    }

    /// Z of given coins as a circuit leaves it, [`Sampler::centre`] taken off.
    ///
    /// # Panics
    /// When there are not [`Sampler::coins`] coins.
    #[must_use]
    pub fn left(&self, coins: &[bool]) -> i128 {
        let (y, low) = self.parts_of(coins);
        (y << self.low_bits) + i128::from(low) - self.centre()
    }

    /// Y, which is below 2^40 ([`MAX_PARTS`]), and U.
    fn parts_of(&self, coins: &[bool]) -> (i128, u64) {
        assert_eq!(coins.len(), self.coins(), "coins of one draw");
        let (low, mut rest) = coins.split_at(self.low_bits as usize);
        let mut y = 0;
        for part in &self.parts {
            let (mine, after) = rest.split_at(part.coins());
            let (cell, fraction) = mine.split_at(part.table.bits as usize);
            let (fraction, sign) = fraction.split_at(FRACTION_BITS as usize);
            let magnitude = part.table.magnitude(number(cell) as usize, number(fraction));
            let value = i128::from(magnitude) << part.shift;
            y += if sign[0] { -value } else { value };
            rest = after;
        }
        (y, number(low))
    }
}

/// Bits, least significant first; at most 64.
fn number(bits: &[bool]) -> u64 {
    bits.iter().rev().fold(0, |sum, bit| sum << 1 | u64::from(*bit))
}

/// Variance that low bits may add, as a fraction: 1 %, half a per cent of an interval's width.
const SLACK: [u32; 2] = [101, 100];

/// The largest e for which the low bits add no more variance than [`SLACK`].
pub(crate) fn low_bits(sensitivity: &BigInt, cells: u32, rho: &Rational) -> Result<u32, Error> {
    check_cost(sensitivity, cells, rho)?;
    let rho = rho / BigInt::from(cells);
    let highest = u32::try_from(sensitivity.bits()).expect("a sensitivity of fewer than 2^32 bits");
    let steps = |e: u32| (sensitivity + (BigInt::one() << e) - 1) >> e;
    // (m g / S)^2 (1 + rho (1 - g^-2) / (6 m^2)), in whole numbers: fractions that are reduced at each step
    // take far longer.
    let square = |number: &BigInt| number * number;
    let most = SLACK[0] * 6 * rho.denom() * square(sensitivity);
    let fits = |e: &u32| {
        let (g, m) = (square(&(BigInt::one() << *e)), square(&steps(*e)));
        let wider: BigInt = 6 * rho.denom() * m * &g + rho.numer() * (g - 1);
        SLACK[1] * wider <= most
    };
    Ok((0..=highest).rev().find(fits).unwrap_or(0))
}

/// A part before its table is made: k, shift, variance.
type Planned = (u32, u32, Rational);

/// ANDs of one part with a comparison that ripples.
fn ands(bits: u32) -> u32 {
    (1 << bits) + FRACTION_BITS - 1
}

/// The parts of least ANDs whose sum has a variance.
fn parts(variance: &Rational) -> Result<Vec<DrawPart>, Error> {
    check(variance)?;
    let mut search = Search { variance, above: variance.ceil().to_integer().to_u128(), best: None };
    if let Some((bits, _)) = SIZES.into_iter().find(|(_, most)| *variance <= whole(*most)) {
        search.best = Some((ands(bits), vec![(bits, 0, variance.clone())]));
    }
    for (bits, most) in SIZES {
        search.grow(&[(bits, 0)], most.into(), ands(bits));
    }
    let Some((_, planned)) = search.best else {
        return Err(Error::input(format!(
            "noise with a variance of 2^{} is wider than what {MAX_PARTS} parts reach: spend more rho, or \
             bound values lower",
            variance.to_integer().bits()
        )));
    };
    let one =
        |(bits, shift, variance): Planned| Ok(DrawPart { shift, table: AliasTable::new(bits, &variance)? });
    planned.into_iter().map(one).collect()
}

/// Parts below the last one have the largest variance of their size, so that all but the last step is in
/// whole numbers.
struct Search<'a> {
    variance: &'a Rational,
    /// The least whole number that is not below it; none: it is out of reach.
    above: Option<u128>,
    best: Option<(u32, Vec<Planned>)>,
}

impl Search<'_> {
    fn better(&self, ands: u32) -> bool {
        self.best.as_ref().is_none_or(|(best, _)| ands < *best)
    }

    /// Puts one more part above those, of a variance `sum` together, in the order of size and shift.
    fn grow(&mut self, below: &[(u32, u32)], sum: u128, so_far: u32) {
        let Some(above) = self.above else { return };
        if below.len() >= MAX_PARTS || !self.better(so_far) || above <= sum {
            return;
        }
        let last = below[below.len() - 1].1;
        for (bits, most) in SIZES {
            for shift in last + 1..=last + SHIFTS {
                // Its own gates, and the adder that joins it.
                let ands = so_far + ands(bits) + bits + shift + 1 - last;
                let (square, most) = (1u128 << (2 * shift), u128::from(most));
                if !self.better(ands) {
                    continue;
                }
                if above > sum + most * square {
                    if 1000 * most * sum >= 2177 * (sum + most * square) {
                        self.grow(&[below, &[(bits, shift)]].concat(), sum + most * square, ands);
                    }
                    continue;
                }
                if smooth(self.variance, square, sum) {
                    let full = |(bits, shift): &(u32, u32)| (*bits, *shift, largest(*bits));
                    let rest = (self.variance - BigInt::from(sum)) / BigInt::from(square);
                    let all = below.iter().map(full).chain([(bits, shift, rest)]).collect();
                    self.best = Some((ands, all));
                }
            }
        }
    }
}

/// The largest variance of a size.
fn largest(bits: u32) -> Rational {
    let (_, most) = SIZES.into_iter().find(|(size, _)| *size == bits).expect("a size of a table");
    whole(most)
}

/// Whether a part on a lattice of step 2^shift, above parts of a variance `sum`, has a variance v > 0 and
/// leaves no trace of its lattice: 1 / (1 / v + 4^shift / sum) is at least 2.177, which puts the sum within 2
/// exp(-2 pi^2 2.177) < 2^-60.9 of a discrete Gaussian. `square` is 4^shift, `variance` that of all,
/// sum + 4^shift v: so the one over the other is (variance - sum) sum / (4^shift variance).
fn smooth(variance: &Rational, square: u128, sum: u128) -> bool {
    let (all, parts) = (variance.numer(), variance.denom());
    let rest: BigInt = all - parts * sum;
    1000 * rest * sum >= BigInt::from(2177) * square * all
}

fn whole(number: u32) -> Rational {
    Rational::from_integer(number.into())
}

fn check_cost(sensitivity: &BigInt, cells: u32, rho: &Rational) -> Result<(), Error> {
    if sensitivity.is_positive() && cells > 0 && rho.is_positive() {
        return Ok(());
    }
    Err(Error::misuse("sensitivity, cells and rho are positive"))
}

fn check(variance: &Rational) -> Result<(), Error> {
    let bits = variance.numer().bits().max(variance.denom().bits());
    if !variance.is_positive() || bits > crate::gaussian::PARAMETER_BITS {
        return Err(Error::misuse("a variance is positive and not too long"));
    }
    Ok(())
}

/// 2^POINT times the probability of each magnitude of N_Z(0, variance), as far as it is not 0.
fn masses(variance: &Rational) -> Vec<BigUint> {
    let one = BigUint::one() << POINT;
    let product = |a: &BigUint, b: &BigUint| (a * b) >> POINT;
    // g(v) = q^(v^2) by g(v + 1) = g(v) q^(2 v + 1).
    let q = exp_minus(&(variance * BigInt::from(2)).recip());
    let square = product(&q, &q);
    let (mut g, mut odd) = (one, q);
    let mut all = Vec::new();
    while !g.is_zero() {
        all.push(g.clone());
        g = product(&g, &odd);
        odd = product(&odd, &square);
    }
    let twice = |(i, g): (usize, BigUint)| if i == 0 { g } else { g << 1 };
    let all: Vec<BigUint> = all.into_iter().enumerate().map(twice).collect();
    let sum: BigUint = all.iter().sum();
    all.into_iter().map(|g| (g << POINT) / &sum).collect()
}

/// 2^POINT exp(-x), to within some units: the series at x / 2^s below 1, squared s times.
fn exp_minus(x: &Rational) -> BigUint {
    let halvings = u32::try_from(x.ceil().to_integer().bits()).expect("an argument of few bits");
    let guard = POINT + 2 * halvings;
    let scaled = x * exp2(guard.cast_signed() - halvings.cast_signed());
    let x = scaled.round().to_integer();
    let (mut sum, mut term) = (BigInt::zero(), BigInt::one() << guard);
    for i in 1u32.. {
        sum += &term;
        term = -((&term * &x) >> guard) / i;
        if term.is_zero() {
            break;
        }
    }
    let value = (0..halvings).fold(sum, |value, _| (&value * &value) >> guard);
    debug_assert!(value.sign() != Sign::Minus);
    (value >> (guard - POINT)).magnitude().clone()
}

/// Integer weights of 2^(bits + 63) in all, rounded, what is missing added to 0; and the distance between the
/// laws.
fn weights(bits: u32, masses: &[BigUint]) -> (Vec<u128>, Rational) {
    let all = bits + FRACTION_BITS;
    let half = BigUint::one() << (POINT - all - 1);
    let cells = 1usize << bits;
    let mut weights: Vec<u128> = masses
        .iter()
        .take(cells)
        .map(|p| ((p + &half) >> (POINT - all)).to_u128().expect("at most 71 bits"))
        .collect();
    weights.resize(cells, 0);
    let sum: u128 = weights.iter().sum();
    weights[0] = (weights[0] + (1 << all)).checked_sub(sum).expect("zero has the largest mass");
    let (mut apart, none) = (BigUint::zero(), BigUint::zero());
    for (i, weight) in weights.iter().enumerate() {
        let (drawn, stated) = (BigUint::from(*weight) << (POINT - all), masses.get(i).unwrap_or(&none));
        apart += if drawn > *stated { drawn - stated } else { stated - drawn };
    }
    apart += masses.iter().skip(cells).sum::<BigUint>();
    let distance = Rational::new(BigInt::from(apart), BigInt::one() << (POINT + 1));
    (weights, distance)
}

/// Walker's tables in one order: cells with too little take from the last one that has too much.
fn walker(weights: &[u128]) -> (Vec<u64>, Vec<u16>) {
    let full = 1u128 << FRACTION_BITS;
    let mut rest = weights.to_vec();
    let mut threshold = vec![(full - 1) as u64; rest.len()];
    let mut alias: Vec<u16> = (0..rest.len()).map(|j| j as u16).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..rest.len()).partition(|j| rest[*j] < full);
    while let (Some(&to), Some(&from)) = (small.last(), large.last()) {
        small.pop();
        threshold[to] = rest[to] as u64;
        alias[to] = from as u16;
        rest[from] -= full - rest[to];
        if rest[from] < full {
            large.pop();
            small.push(from);
        }
    }
    (threshold, alias)
}

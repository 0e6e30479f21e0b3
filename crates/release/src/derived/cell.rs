//! The mean of one cell.

use super::moments::NoisyMoments;
use super::tail::tail;
use super::{DerivedEstimate, critical, outermost};
use crate::normal::normal_upper;
use base::Error;

/// A mean of one cell, before a level is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct CellMean {
    moments: NoisyMoments,
    low: f64,
    width: f64,
    bit: bool,
}

/// The mean of a value in `range`, from [n, S, Q]: rows, and sums of x - low and (x - low)^2. See
/// [`CellMean::of_value`].
///
/// # Errors
/// When these are no three sums of a range, or the level is not in 0..1.
pub fn mean(moments: &NoisyMoments, range: [f64; 2], level: f64) -> Result<DerivedEstimate, Error> {
    CellMean::of_value(moments, range)?.estimate(level)
}

/// The share of rows with a bit, from [n, S]. See [`CellMean::of_bit`].
///
/// # Errors
/// When these are no two sums, or the level is not in 0..1.
pub fn proportion(moments: &NoisyMoments, level: f64) -> Result<DerivedEstimate, Error> {
    CellMean::of_bit(moments)?.estimate(level)
}

impl CellMean {
    /// The mean of a value in `range`, from [n, S, Q]: rows, and sums of x - low and (x - low)^2.
    ///
    /// A hypothetical mean t (of x - low, in 0..R) is accepted where |S - t n| <= z sqrt(T(t) + V(t))
    /// (Fieller 1954). V is the variance that noise gives S - t n. T is an upper limit of n sigma^2, which
    /// D(t) = Q - 2 t S + t^2 n estimates without bias at the true mean. Skew makes S and D low together, so
    /// a plain D covers too rarely. T is therefore the root of T = D + z sqrt(m^2 T + V_D / 4): V_D is the
    /// variance that noise gives D, and m = M - sigma^2 / M, with M the distance from t to that end of the
    /// range which rare rows would have to be at; sigma^2 m is the most that a third central moment can be.
    /// Where S errs towards the nearer end of the range, T is n t (R - t) at most (Bhatia and Davis 2000):
    /// for a bit this is Wilson's limit (1927).
    ///
    /// Assumed: rows are independent draws from one law within the range. Own construction from these parts.
    ///
    /// # Errors
    /// When these are not three sums, or the range is none.
    pub fn of_value(moments: &NoisyMoments, range: [f64; 2]) -> Result<Self, Error> {
        moments.demand(moments.len() == 3, "a mean takes n, S and Q")?;
        let [low, high] = range;
        moments.demand(low < high && (high - low).is_finite(), "a range from a lower to a higher value")?;
        Ok(Self { moments: moments.clone(), low, width: high - low, bit: false })
    }

    /// The share of rows with a bit, from [n, S].
    ///
    /// A hypothetical share p is accepted where neither tail of Binomial(n, p) - n p + noise beyond S - p n
    /// has less than half of 1 - level; S and its noise are whole numbers. Without noise this is the exact
    /// interval (Clopper and Pearson 1934).
    ///
    /// # Errors
    /// When these are not two sums.
    pub fn of_bit(moments: &NoisyMoments) -> Result<Self, Error> {
        moments.demand(moments.len() == 2, "a share takes n and S")?;
        Ok(Self { moments: moments.clone(), low: 0.0, width: 1.0, bit: true })
    }

    /// The range of the value.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        [self.low, self.low + self.width]
    }

    pub(super) fn is_bit(&self) -> bool {
        self.bit
    }

    /// S / n within the range; none where n <= 0.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.shifted().map(|t| self.low + t)
    }

    /// The interval at a level.
    ///
    /// # Errors
    /// When the level is not in 0..1.
    pub fn estimate(&self, level: f64) -> Result<DerivedEstimate, Error> {
        let z = critical(level)?;
        let [low, high] = self.limits(z);
        Ok(DerivedEstimate { value: self.value(), low, high, noise: self.noise(z) })
    }

    /// The ends at a critical value z; the whole range where n <= 0.
    #[must_use]
    pub fn limits(&self, z: f64) -> [f64; 2] {
        let Some(inside) = self.shifted() else { return self.range() };
        let refused = |t: f64| {
            if self.bit { self.bit_refused(t, z, t < inside) } else { self.value_refused(t, z) }
        };
        [0.0, self.width].map(|end| self.low + outermost(end, inside, refused))
    }

    /// Half of the width by noise alone (Fieller 1954).
    pub(super) fn noise(&self, z: f64) -> f64 {
        let (n, unit) = (self.moments.values()[0], |i: usize| {
            (0..self.moments.len()).map(|j| f64::from(u8::from(i == j))).collect::<Vec<_>>()
        });
        let [rows, sum] = [unit(0), unit(1)];
        let Some(t) = self.shifted() else { return f64::INFINITY };
        // (S - t n)^2 <= z^2 V(t), around the estimate.
        let a = n * n - z * z * self.moments.variance(&rows);
        let b = z * z * (self.moments.covariance(&rows, &sum) - t * self.moments.variance(&rows));
        let c = z * z * self.moments.variance(&self.residual(t));
        if a <= 0.0 { f64::INFINITY } else { (b * b + a * c).max(0.0).sqrt() / a }
    }

    /// S - t n, as weights.
    fn residual(&self, t: f64) -> Vec<f64> {
        if self.bit { vec![-t, 1.0] } else { vec![-t, 1.0, 0.0] }
    }

    fn shifted(&self) -> Option<f64> {
        let [n, s] = [self.moments.values()[0], self.moments.values()[1]];
        (n > 0.0).then(|| (s / n).clamp(0.0, self.width))
    }

    fn bit_refused(&self, p: f64, z: f64, sum_is_high: bool) -> f64 {
        let weights = self.residual(p);
        let (excess, variance) = (self.moments.value(&weights), self.moments.variance(&weights));
        // A count and its noise are whole numbers; noise of the rows smooths the difference.
        let smooth = p * self.moments.variance(&[1.0, 0.0]).sqrt() >= 0.5;
        let step = if smooth { 0.0 } else { 1.0 };
        let tail = tail(self.moments.values()[0], p, variance, excess, step, sum_is_high);
        // About straight in p.
        let far = |tail: f64| (-2.0 * tail.max(1e-300).ln()).max(0.0).sqrt();
        far(tail) - far(normal_upper(z))
    }

    fn value_refused(&self, t: f64, z: f64) -> f64 {
        let weights = self.residual(t);
        let (excess, variance) = (self.moments.value(&weights), self.moments.variance(&weights));
        excess.abs() - z * (self.spread_at(t, z, excess > 0.0) + variance).sqrt()
    }

    /// An upper limit of n sigma^2 at the mean t, against an error in one direction of the sum.
    fn spread_at(&self, t: f64, z: f64, sum_is_high: bool) -> f64 {
        let n = self.moments.values()[0];
        let weights = [t * t, -2.0 * t, 1.0];
        let reach = if sum_is_high { t } else { self.width - t };
        let spread = upper_spread(self.moments.value(&weights), self.moments.variance(&weights), n, reach, z);
        // Where the sum errs towards the near end of the range, no skew makes its tail long.
        let short = sum_is_high == (t > 0.5 * self.width);
        if short { spread.min(self.most(t)) } else { spread }
    }

    /// The most that n sigma^2 can be at the mean t.
    fn most(&self, t: f64) -> f64 {
        let n = self.moments.values()[0] + self.moments.variance(&[1.0, 0.0, 0.0]).sqrt();
        n * t * (self.width - t)
    }
}

/// The root of T = D + z sqrt(m^2 T + V / 4) with m = reach - sigma^2 / reach.
pub(super) fn upper_spread(d: f64, noise: f64, n: f64, reach: f64, z: f64) -> f64 {
    if reach <= 0.0 {
        return (d + 0.5 * z * noise.sqrt()).max(0.0);
    }
    let m = (reach - d.max(0.0) / (n.max(1.0) * reach)).clamp(0.0, reach);
    let half = 0.5 * z * z * m * m;
    let inside = 2.0 * d * half + half * half + 0.25 * z * z * noise;
    (d + half + inside.max(0.0).sqrt()).max(0.0)
}

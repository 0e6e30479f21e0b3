//! The spread of one cell: variance and standard deviation.

use super::cell::CellMean;
use super::moments::NoisyMoments;
use super::{DerivedEstimate, critical, outermost};
use base::Error;

/// In how many steps the interval of the mean is gone through.
const MEANS: u32 = 8;

/// The variance of a value in `range`, from [n, S, Q] as of [`CellMean::of_value`].
///
/// A hypothetical variance s is accepted where, for a mean t within its own interval, D(t) = Q - 2 t S + t^2
/// n is as close to n s as sampling and noise explain. D is a sum of (x - t)^2 <= M^2, so sampling gives it a
/// variance of n s (M^2 - s) at most, with M the greater distance from t to an end of the range: no normal
/// theory, and no fourth moment. For s below the estimate D M^2 stands for it, since a few rows far out raise
/// D and its spread together. Own construction.
///
/// Assumed: rows are independent draws from one law within the range.
///
/// # Errors
/// When these are not three sums, the range is none, or the level is not in 0..1.
pub fn variance(moments: &NoisyMoments, range: [f64; 2], level: f64) -> Result<DerivedEstimate, Error> {
    let z = critical(level)?;
    let mean = CellMean::of_value(moments, range)?;
    let width = range[1] - range[0];
    let [n, s, q] = [moments.values()[0], moments.values()[1], moments.values()[2]];
    let Some(at) = mean.value().filter(|_| n > 1.0) else {
        return Ok(DerivedEstimate::unknown([0.0, 0.25 * width * width]));
    };
    let at = at - range[0];
    let test = SpreadTest { moments, z, width };
    let [least, most] = mean.limits(z).map(|t| t - range[0]);
    let between = |step: u32| least + (most - least) * f64::from(step) / f64::from(MEANS);
    // The greatest variance of a range is at its middle.
    let means = (0..=MEANS).map(between).chain([at, (0.5 * width).clamp(least, most)]);
    let ends: Vec<[f64; 2]> = means.map(|t| test.interval(t)).collect();
    // S^2 / n is too great by what noise adds to it.
    let off = moments.variance(&[-s / n, 1.0, 0.0]);
    let value = ((q - s * s / n + off / n) / (n - 1.0)).clamp(0.0, 0.25 * width * width);
    Ok(DerivedEstimate {
        value: Some(value),
        low: ends.iter().map(|e| e[0]).fold(value, f64::min),
        high: ends.iter().map(|e| e[1]).fold(value, f64::max),
        noise: test.noise(at, value),
    })
}

/// The standard deviation: the root of [`variance`] and of its ends.
///
/// # Errors
/// As [`variance`].
pub fn standard_deviation(
    moments: &NoisyMoments,
    range: [f64; 2],
    level: f64,
) -> Result<DerivedEstimate, Error> {
    let of = variance(moments, range, level)?;
    let value = of.value.map(f64::sqrt);
    // The root has the derivative 1 / (2 sd).
    let noise = value.filter(|sd| *sd > 0.0).map_or(f64::INFINITY, |sd| of.noise / (2.0 * sd));
    Ok(DerivedEstimate { value, low: of.low.sqrt(), high: of.high.sqrt(), noise })
}

struct SpreadTest<'a> {
    moments: &'a NoisyMoments,
    z: f64,
    width: f64,
}

impl SpreadTest<'_> {
    /// What is accepted at the mean t.
    fn interval(&self, t: f64) -> [f64; 2] {
        let reach = t.max(self.width - t);
        let d = self.moments.value(&[t * t, -2.0 * t, 1.0]);
        let n = self.moments.values()[0];
        let greatest = t * (self.width - t);
        let inside = (d / n).clamp(0.0, greatest);
        let refused = |s: f64| {
            let weights = [t * t - s, -2.0 * t, 1.0];
            let excess = self.moments.value(&weights);
            let by_chance =
                if excess > 0.0 { d.max(0.0) * reach * reach } else { n * s * (reach * reach - s) };
            excess.abs() - self.z * (by_chance.max(0.0) + self.moments.variance(&weights)).sqrt()
        };
        [0.0, greatest].map(|end| outermost(end, inside, refused))
    }

    /// Half of the width by noise alone.
    fn noise(&self, t: f64, s: f64) -> f64 {
        let n = self.moments.values()[0];
        if n <= self.z * self.moments.variance(&[1.0, 0.0, 0.0]).sqrt() {
            return f64::INFINITY;
        }
        self.z * self.moments.variance(&[t * t - s, -2.0 * t, 1.0]).sqrt() / n
    }
}

//! Two values of one cell: covariance and correlation.

use super::cell::{CellMean, upper_spread};
use super::moments::NoisyMoments;
use super::{DerivedEstimate, critical, outermost};
use base::Error;

/// The covariance of two values in their ranges, from [n, Sx, Sy, Sxx, Sxy, Syy]: rows, and sums of x, y and
/// their products, both counted from the lower end of their range.
///
/// A hypothetical covariance c is accepted where, for means t and u within their own intervals, C = Sxy - t
/// Sy - u Sx + t u n is as close to n c as sampling and noise explain. Sampling gives C at most the variance
/// min(Mx^2 Ty, My^2 Tx), with M the greater distance from a mean to an end of its range and T an upper limit
/// of n sigma^2 (as of [`CellMean::of_value`]). Nor is it more than (P^2 (T + n c) + D^2 (T - n c)) / 8 with
/// T the root of Tx Ty, as of [`correlation`]: less where values are skewed alike. Own construction.
///
/// Assumed: rows are independent draws from one law within the ranges.
///
/// # Errors
/// When these are not six sums, a range is none, or the level is not in 0..1.
pub fn covariance(
    moments: &NoisyMoments,
    ranges: [[f64; 2]; 2],
    level: f64,
) -> Result<DerivedEstimate, Error> {
    let z = critical(level)?;
    let Some(two) = TwoValues::new(moments, ranges, z)? else {
        return Ok(DerivedEstimate::unknown(widest(ranges)));
    };
    let most = widest(ranges);
    let [(x, reach_x), (y, reach_y)] = [0, 1].map(|i| (two.upper(i), two.reach[i]));
    let of_either = (reach_x * reach_x * y).min(reach_y * reach_y * x);
    let [alike, apart] = two.far_together((y / x).sqrt().sqrt()).map(|far| far * far);
    let by_chance = |c: f64| {
        let [sum, difference] = [1.0, -1.0].map(|sign| ((x * y).sqrt() + sign * two.n * c).max(0.0));
        let of_both = 0.125 * (alike * sum + apart * difference);
        // Not a number where a value does not vary.
        if of_both < of_either { of_both } else { of_either }
    };
    let interval = |means: [f64; 2]| {
        let weights = |c: f64| two.product(means, c);
        let inside = (moments.value(&weights(0.0)) / two.n).clamp(most[0], most[1]);
        let refused = |c: f64| {
            let weights = weights(c);
            moments.value(&weights).abs() - z * (by_chance(c) + moments.variance(&weights)).sqrt()
        };
        most.map(|end| outermost(end, inside, refused))
    };
    let corner = |i: usize| [two.limits[0][i & 1], two.limits[1][i >> 1]];
    let all: Vec<[f64; 2]> = (0..4).map(corner).chain([two.at]).map(interval).collect();
    let value = (two.moment(0, 1) / (two.n - 1.0)).clamp(most[0], most[1]);
    let known = two.n > z * moments.variance(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]).sqrt();
    let noise = z * moments.variance(&two.product(two.at, value)).sqrt() / two.n;
    Ok(DerivedEstimate {
        value: Some(value),
        low: all.iter().map(|e| e[0]).fold(value, f64::min),
        high: all.iter().map(|e| e[1]).fold(value, f64::max),
        noise: if known { noise } else { f64::INFINITY },
    })
}

/// The correlation of two values in their ranges, from the sums of [`covariance`].
///
/// A hypothetical correlation r is accepted where W = C - r / 2 (l Tx + Ty / l) is as close to 0 as sampling
/// and noise explain; T estimates n sigma^2, and l^2 = Ty / Tx. W is linear in the sums but for l, and an
/// error of l enters by its square. With u and w the standardised values, a row adds u w - r / 2 (u^2 + w^2)
/// = (1 - r) / 4 (u + w)^2 - (1 + r) / 4 (u - w)^2. Where |u + w| is P at most and |u - w| is D, sampling has
/// a variance of n (1 - r^2) / 8 ((1 - r) P^2 + (1 + r) D^2) at most, for the mean of (u + w)^2 is 2 (1 + r),
/// that of (u - w)^2 is 2 (1 - r), and products of the two squares count against it. No normal theory (Fisher
/// 1921 is too narrow for skewed values). Own construction.
///
/// Nothing is known, and the interval is -1..1, where noise alone may explain the spread of a value.
///
/// Assumed: rows are independent draws from one law within the ranges.
///
/// # Errors
/// As [`covariance`].
pub fn correlation(
    moments: &NoisyMoments,
    ranges: [[f64; 2]; 2],
    level: f64,
) -> Result<DerivedEstimate, Error> {
    let z = critical(level)?;
    let unknown = DerivedEstimate::unknown([-1.0, 1.0]);
    let Some(two) = TwoValues::new(moments, ranges, z)? else { return Ok(unknown) };
    let spreads = [two.moment(0, 0), two.moment(1, 1)];
    let clear = |i: usize| {
        let square = two.square(i);
        moments.value(&square).min(spreads[i]) > z * moments.variance(&square).sqrt()
    };
    if !(clear(0) && clear(1)) {
        return Ok(unknown);
    }
    let scale = (spreads[1] / spreads[0]).sqrt();
    let product = two.product(two.at, 0.0);
    let [x, y] = [two.square(0), two.square(1)];
    let both: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 0.5 * (scale * x + y / scale)).collect();
    let [far_alike, far_apart] = two.far_together(scale.sqrt());
    let reach = 0.5 * far_alike.max(far_apart);
    let spread = upper_spread(moments.value(&both), moments.variance(&both), two.n, reach, z);
    let weights = |r: f64| product.iter().zip(&both).map(|(p, b)| p - r * b).collect::<Vec<_>>();
    let value = (two.moment(0, 1) / (spreads[0] * spreads[1]).sqrt()).clamp(-1.0, 1.0);
    let refused = |r: f64| {
        let weights = weights(r);
        let squares = (1.0 - r) * far_alike.powi(2) + (1.0 + r) * far_apart.powi(2);
        let by_chance = 0.125 * (1.0 - r * r) * squares * spread;
        moments.value(&weights).abs() - z * (by_chance + moments.variance(&weights)).sqrt()
    };
    let noise = z * moments.variance(&weights(value)).sqrt() / moments.value(&both).max(0.0);
    Ok(DerivedEstimate {
        value: Some(value),
        low: outermost(-1.0, value, refused),
        high: outermost(1.0, value, refused),
        noise,
    })
}

/// What a covariance can be at most.
fn widest(ranges: [[f64; 2]; 2]) -> [f64; 2] {
    let most = 0.25 * ranges.map(|[low, high]| high - low).iter().product::<f64>();
    [-most, most]
}

struct TwoValues<'a> {
    moments: &'a NoisyMoments,
    n: f64,
    z: f64,
    /// Means, from the lower ends.
    at: [f64; 2],
    limits: [[f64; 2]; 2],
    /// Of the ranges.
    width: [f64; 2],
    /// From the means to the farther ends.
    reach: [f64; 2],
}

impl<'a> TwoValues<'a> {
    /// None where there are no rows to speak of.
    fn new(moments: &'a NoisyMoments, ranges: [[f64; 2]; 2], z: f64) -> Result<Option<Self>, Error> {
        moments.demand(moments.len() == 6, "two values take n, Sx, Sy, Sxx, Sxy and Syy")?;
        let n = moments.values()[0];
        let of = |i: usize| {
            let pick = |at: usize| (0..6).map(|j| f64::from(u8::from(j == at))).collect::<Vec<_>>();
            let own = moments.combined(&[pick(0), pick(1 + i), pick(3 + 2 * i)])?;
            let mean = CellMean::of_value(&own, [0.0, ranges[i][1] - ranges[i][0]])?;
            Ok::<_, Error>((mean.value(), mean.limits(z), mean.range()[1]))
        };
        let [x, y] = [of(0)?, of(1)?];
        let (Some(at_x), Some(at_y)) = (x.0, y.0) else { return Ok(None) };
        if n <= 1.0 {
            return Ok(None);
        }
        let at = [at_x, at_y];
        let reach = [at_x.max(x.2 - at_x), at_y.max(y.2 - at_y)];
        Ok(Some(Self { moments, n, z, at, limits: [x.1, y.1], width: [x.2, y.2], reach }))
    }

    /// Sum of (x - t) (y - u) - c, as weights.
    fn product(&self, [t, u]: [f64; 2], c: f64) -> Vec<f64> {
        vec![t * u - c, -u, -t, 0.0, 1.0, 0.0]
    }

    /// Sum of (x - t)^2 or (y - u)^2, as weights.
    fn square(&self, i: usize) -> Vec<f64> {
        let mut weights = vec![self.at[i] * self.at[i], 0.0, 0.0, 0.0, 0.0, 0.0];
        weights[1 + i] = -2.0 * self.at[i];
        weights[3 + 2 * i] = 1.0;
        weights
    }

    /// How far x - t and y - u, as l (x - t) + (y - u) / l and with a minus between, can be from 0.
    fn far_together(&self, l: f64) -> [f64; 2] {
        let ends = |i: usize, by: f64| [self.at[i] * by, (self.width[i] - self.at[i]) * by];
        let [[low_x, high_x], [low_y, high_y]] = [ends(0, l), ends(1, 1.0 / l)];
        [(low_x + low_y).max(high_x + high_y), (low_x + high_y).max(high_x + low_y)]
    }

    /// A central product sum, without what noise adds to the product of the means.
    fn moment(&self, i: usize, j: usize) -> f64 {
        let residual = |i: usize| {
            let mut weights = vec![0.0; 6];
            weights[0] = -self.at[i];
            weights[1 + i] = 1.0;
            weights
        };
        let weights = if i == j { self.square(i) } else { self.product(self.at, 0.0) };
        let [x, y] = [residual(i), residual(j)];
        let means = self.moments.value(&x) * self.moments.value(&y) - self.moments.covariance(&x, &y);
        self.moments.value(&weights) - means / self.n
    }

    /// An upper limit of n sigma^2.
    fn upper(&self, i: usize) -> f64 {
        let weights = self.square(i);
        let noise = self.moments.variance(&weights);
        upper_spread(self.moments.value(&weights), noise, self.n, self.reach[i], self.z)
    }
}

//! Two cells: differences and ratios of their means.

use super::cell::CellMean;
use super::{DerivedEstimate, critical};
use base::Error;

/// How many ways z^2 is split between two cells.
const SPLITS: usize = 8;

/// The mean of `a` minus that of `b`.
///
/// Interval: the least and the greatest difference over all ways to split z^2 between the two cells, each
/// read at its part. Where limits are straight in z this is the method of variance estimates recovery (MOVER;
/// Zou and Donner 2008, "Construction of Confidence Limits about Effect Measures"); where they are bent, by
/// skew or at an end of the range, it keeps their shape.
///
/// Assumed: the cells have no row in common.
///
/// # Errors
/// When the level is not in 0..1.
pub fn difference(a: &CellMean, b: &CellMean, level: f64) -> Result<DerivedEstimate, Error> {
    let pair = Pair::new(a, b, level)?;
    let low = pair.least(|[a_low, _], [_, b_high]| a_low - b_high);
    let high = pair.most(|[_, a_high], [b_low, _]| a_high - b_low);
    let noise = pair.noise[0].hypot(pair.noise[1]);
    let [[a_low, a_high], [b_low, b_high]] = [a.range(), b.range()];
    Ok(DerivedEstimate {
        value: pair.values.map(|[a, b]| a - b),
        low: low.max(a_low - b_high),
        high: high.min(a_high - b_low),
        noise,
    })
}

/// The mean of `a` over that of `b`: the interval as of [`difference`], over ratios (MOVER; Donner and Zou
/// 2012, "Closed-form Confidence Intervals for Functions of the Normal Mean and Standard Deviation").
///
/// The upper end is infinite where `b` may be 0; where `b` may be on both sides of 0, nothing is known.
///
/// # Errors
/// When the level is not in 0..1.
pub fn ratio(a: &CellMean, b: &CellMean, level: f64) -> Result<DerivedEstimate, Error> {
    let pair = Pair::new(a, b, level)?;
    let whole = [if a.range()[0] >= 0.0 { 0.0 } else { f64::NEG_INFINITY }, f64::INFINITY];
    if pair.limits[1][SPLITS][0] <= 0.0 && b.range()[0] < 0.0 {
        return Ok(DerivedEstimate::unknown([f64::NEG_INFINITY, f64::INFINITY]));
    }
    let low = pair.least(|[a, _], [b_low, b_high]| divide(a, if a >= 0.0 { b_high } else { b_low }));
    let high = pair.most(|[_, a], [b_low, b_high]| divide(a, if a >= 0.0 { b_low } else { b_high }));
    let known = pair.values.filter(|[_, b]| *b > 0.0);
    let noise = known.map_or(f64::INFINITY, |[a, b]| (pair.noise[0] / b).hypot(pair.noise[1] * a / (b * b)));
    Ok(DerivedEstimate { value: known.map(|[a, b]| a / b), low: low.max(whole[0]), high, noise })
}

/// The ratio of two risks: [`ratio`] of two shares.
///
/// # Errors
/// When these are no shares, or the level is not in 0..1.
pub fn risk_ratio(a: &CellMean, b: &CellMean, level: f64) -> Result<DerivedEstimate, Error> {
    shares(a, b)?;
    ratio(a, b, level)
}

/// The ratio of the odds p / (1 - p) of two shares: the interval as of [`difference`], over odds ratios.
///
/// # Errors
/// When these are no shares, or the level is not in 0..1.
pub fn odds_ratio(a: &CellMean, b: &CellMean, level: f64) -> Result<DerivedEstimate, Error> {
    shares(a, b)?;
    let pair = Pair::new(a, b, level)?;
    let odds = |p: f64| divide(p, 1.0 - p);
    let low = pair.least(|[a, _], [_, b]| divide(a * (1.0 - b), (1.0 - a) * b));
    let high = pair.most(|[_, a], [b, _]| divide(a * (1.0 - b), (1.0 - a) * b));
    let inner = |p: &f64| *p > 0.0 && *p < 1.0;
    let known = pair.values.filter(|values| values.iter().all(inner));
    let value = known.map(|[a, b]| odds(a) / odds(b));
    // The logarithm of odds has the derivative 1 / (p (1 - p)).
    let noise = known.zip(value).map_or(f64::INFINITY, |([a, b], value)| {
        value * (pair.noise[0] / (a * (1.0 - a))).hypot(pair.noise[1] / (b * (1.0 - b)))
    });
    Ok(DerivedEstimate { value, low: low.max(0.0), high, noise })
}

/// How many have to be treated for one more of them to benefit, or to be harmed.
///
/// A difference of risks that may be 0 says that it takes infinitely many: the interval then runs from one
/// who benefits through infinity to one who is harmed (Altman 1998, "Confidence Intervals for the Number
/// Needed to Treat"), and is two intervals here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeededToTreat {
    /// The difference of risks, treated minus control.
    pub difference: DerivedEstimate,
    /// 1 / difference: above 0 so many for one more with the outcome, below 0 so many for one fewer; none
    /// where the difference is 0 or unknown.
    pub value: Option<f64>,
    /// How many for one more with the outcome, from the least to the most; none where that is excluded.
    pub more: Option<[f64; 2]>,
    /// How many for one fewer with the outcome; none where that is excluded.
    pub fewer: Option<[f64; 2]>,
}

/// The number needed to treat: the reciprocal of the difference of two risks, its interval from that of
/// [`difference`].
///
/// # Errors
/// When these are no shares, or the level is not in 0..1.
pub fn needed_to_treat(treated: &CellMean, control: &CellMean, level: f64) -> Result<NeededToTreat, Error> {
    shares(treated, control)?;
    let difference = difference(treated, control, level)?;
    let [low, high] = [difference.low, difference.high];
    // From the greatest effect to the least; an effect of 0 takes infinitely many.
    let side = |least: f64, most: f64| (most > 0.0).then(|| [1.0 / most, 1.0 / least.max(0.0)]);
    Ok(NeededToTreat {
        difference,
        value: difference.value.filter(|d| *d != 0.0).map(|d| 1.0 / d),
        more: side(low, high),
        fewer: side(-high, -low),
    })
}

fn shares(a: &CellMean, b: &CellMean) -> Result<(), Error> {
    if a.is_bit() && b.is_bit() { Ok(()) } else { Err(Error::input("risks and odds are of two shares")) }
}

/// Of positive numbers, with x / 0 = infinity; 0 / 0 bounds nothing either.
fn divide(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { f64::INFINITY }
}

struct Pair {
    values: Option<[f64; 2]>,
    noise: [f64; 2],
    /// The limits of each cell at z sin(i / SPLITS * pi / 2).
    limits: [Vec<[f64; 2]>; 2],
}

impl Pair {
    fn new(a: &CellMean, b: &CellMean, level: f64) -> Result<Self, Error> {
        let z = critical(level)?;
        let at = |i: usize| z * (i as f64 / SPLITS as f64 * std::f64::consts::FRAC_PI_2).sin();
        let limits = |cell: &CellMean| (0..=SPLITS).map(|i| cell.limits(at(i))).collect::<Vec<_>>();
        Ok(Self {
            values: a.value().zip(b.value()).map(|(a, b)| [a, b]),
            noise: [a.noise(z), b.noise(z)],
            limits: [limits(a), limits(b)],
        })
    }

    fn splits(&self) -> impl Iterator<Item = ([f64; 2], [f64; 2])> {
        let [a, b] = &self.limits;
        a.iter().copied().zip(b.iter().rev().copied())
    }

    fn least(&self, of: impl Fn([f64; 2], [f64; 2]) -> f64) -> f64 {
        let all: Vec<f64> = self.splits().map(|(a, b)| of(a, b)).collect();
        let (at, least) =
            all.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        if at == 0 || at + 1 >= all.len() {
            return least;
        }
        // The vertex of the parabola through it and its neighbours.
        let (slope, bend) = (all[at + 1] - all[at - 1], all[at + 1] - 2.0 * least + all[at - 1]);
        let deeper = slope * slope / (8.0 * bend);
        if deeper.is_finite() { least - deeper } else { least }
    }

    fn most(&self, of: impl Fn([f64; 2], [f64; 2]) -> f64) -> f64 {
        -self.least(|a, b| -of(a, b))
    }
}

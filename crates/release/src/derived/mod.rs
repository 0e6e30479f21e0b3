//! Statistics from noised sums: means, ratios, spreads, correlations, regressions and quantiles.
//!
//! Functionality: from what a release says of disjoint cells, to values with intervals. All of it happens
//! after the release and costs no rho. An interval is for the population that the rows are a sample of: it
//! covers sampling and noise together; [`DerivedEstimate::noise`] says what noise alone contributes.
//!
//! Method: each interval inverts a test of a hypothetical value whose statistic is *linear in the noised
//! sums*: their noise then has a known variance at every hypothesis, whatever is divided later (Fieller 1954;
//! Anderson and Rubin 1949). What sampling contributes is estimated from the same sums, with the most that a
//! variable of a known range can hide from them. Where the sums do not determine a value, an interval is as
//! wide as its range.
//!
//! * [`NoisyMoments`]: the sums of a cell and the covariance of their noise.
//! * [`CellMean`]: the mean of a bounded value or of a bit, with its limits; [`mean`], [`proportion`].
//! * [`difference`], [`ratio`], [`risk_ratio`], [`odds_ratio`], [`needed_to_treat`]: of two cells.
//! * [`variance`], [`standard_deviation`], [`covariance`], [`correlation`]: of one cell.
//! * [`least_squares`]: a value on up to six covariates.
//! * [`quantile`]: from a histogram.
//!
//! How often they cover: `crates/release/tests/derived.rs`; `docs/derived.md`.

mod association;
mod cell;
mod moments;
mod pairs;
mod quantile;
mod regression;
mod spread;
mod tail;

pub use association::{correlation, covariance};
pub use cell::{CellMean, mean, proportion};
pub use moments::NoisyMoments;
pub use pairs::{NeededToTreat, difference, needed_to_treat, odds_ratio, ratio, risk_ratio};
pub use quantile::quantile;
pub use regression::{COVARIATES_MAX, least_squares};
pub use spread::{standard_deviation, variance};

use base::Error;

/// A value of the population with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DerivedEstimate {
    /// The estimate; none where the sums say nothing of it.
    pub value: Option<f64>,
    /// The lower end: minus infinity, or the least possible value, where the sums do not bound it.
    pub low: f64,
    /// The upper end: infinity, or the greatest possible value, where the sums do not bound it.
    pub high: f64,
    /// Half of the width that noise alone would leave at this level; infinite where it leaves all open.
    pub noise: f64,
}

impl DerivedEstimate {
    fn unknown([low, high]: [f64; 2]) -> Self {
        Self { value: None, low, high, noise: f64::INFINITY }
    }
}

/// The two-sided critical value of a level between 0 and 1.
fn critical(level: f64) -> Result<f64, Error> {
    if level > 0.0 && level < 1.0 {
        return Ok(crate::normal::critical(level));
    }
    Err(Error::input("the level of an interval is between 0 and 1, for example 0.95"))
}

/// The hull of what is accepted between `from` and the accepted `inside`: its end towards `from`. What is
/// `refused` is above 0 there, and rises with the distance from `inside` where the sums say anything.
fn outermost(from: f64, inside: f64, refused: impl Fn(f64) -> f64) -> f64 {
    const STEPS: i32 = 4;
    let at = |step: i32| from + (inside - from) * (f64::from(step) / f64::from(STEPS)).powi(2);
    let mut out = (from, refused(from));
    if out.1 <= 0.0 {
        return from;
    }
    for step in 1..STEPS {
        let next = (at(step), refused(at(step)));
        if next.1 <= 0.0 {
            return boundary(out, next, refused);
        }
        out = next;
    }
    boundary(out, (inside, refused(inside)), refused)
}

/// Between what is refused and what is accepted: false position, halving the end that stays (Dowell and
/// Jarratt 1971, the Illinois algorithm).
fn boundary(mut out: (f64, f64), mut inner: (f64, f64), refused: impl Fn(f64) -> f64) -> f64 {
    // An end with nothing to spare says nothing of the slope.
    inner.1 = inner.1.min(-1e-3 * out.1);
    let enough = 1e-9 * (out.0 - inner.0).abs();
    let mut last = inner.0;
    for round in 0..100 {
        // Every eighth round halves, whatever the shape.
        let even = round % 8 == 7 || !(out.1 - inner.1).is_finite();
        let share = if even { 0.5 } else { (-inner.1 / (out.1 - inner.1)).clamp(0.0, 1.0) };
        let at = inner.0 + share * (out.0 - inner.0);
        let found = refused(at);
        if (at - last).abs() <= enough && !even {
            return at;
        }
        last = at;
        if found > 0.0 {
            out = (at, found);
            inner.1 *= 0.5;
        } else {
            inner = (at, found.min(-1e-12 * out.1));
            out.1 *= 0.5;
        }
    }
    last
}

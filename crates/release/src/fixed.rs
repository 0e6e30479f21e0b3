//! The fixed point of `variance`, `algorithm1` and `algorithm1-as-published`: what the circuit computes, in
//! integers.
//!
//! Functionality: from n, S, Q of both arms to lift, v and se as integers on grids of 2^-F. The binary points
//! follow from the public arm sizes, so that one unit of the smallest sensitivity is at least 2^20 grid
//! steps. Rounding is part of the definition: floor in every division and in the root.
//!
//! | value | width | |
//! |---|---|---|
//! | n | 30 | at most 2^29 per arm |
//! | S, Q | 50, 70 | R at most 2^20 |
//! | nQ, S^2 | 99 | |
//! | n^2 (n - 1) | 88 | |
//! | (nQ - S^2) 2^F | 135 for v, 156 for se | longer than a word of 128 bits: the dividend's low bits are zeros and |
//! | | | a long division shifts them in; the quotients are short |

use crate::rational::{Rational, exp2};
use crate::scale::{ReaderRole, Sensitivity};
use base::Error;
use num_bigint::{BigInt, BigUint};
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

/// Rows of one arm.
pub const ROWS: u64 = 1 << 29;
/// The clamp R.
pub const CLAMP: u64 = 1 << 20;
/// log2 of the grid steps in one sensitivity of the publisher's view.
pub const GRID_BITS: i32 = 20;
/// Grid steps that rounding may add to the difference between neighbours: the errors are below 1, 2 and 2.42
/// steps and one-sided up to a sign, so a difference grows by less than that; rounded up.
pub const LIFT_SLACK: u32 = 2;
/// See [`LIFT_SLACK`].
pub const V_SLACK: u32 = 2;
/// See [`LIFT_SLACK`].
pub const SE_SLACK: u32 = 3;

/// Totals of one arm: rows, sum and sum of squares of the clamped outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmTotals {
    /// Rows.
    pub n: u64,
    /// Sum.
    pub s: u64,
    /// Sum of squares.
    pub q: u128,
}

/// Binary points: a value x is held as a multiple of 2^-F. An F may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Of the lift.
    pub lift: i32,
    /// Of the standard error.
    pub se: i32,
    /// Of the variance.
    pub v: i32,
}

/// The noiseless fixed-point values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedValues {
    /// The binary points.
    pub grid: Grid,
    /// Difference of means, test minus control.
    pub lift: i64,
    /// Variance of the difference.
    pub v: u64,
    /// Standard error of the difference.
    pub se: u64,
}

impl Grid {
    /// The binary points for these public arm sizes and this clamp: the least F whose grid gives the
    /// publisher's sensitivity (the smaller one) at least 2^20 steps. One grid serves all views.
    ///
    /// # Errors
    /// When an arm has fewer than 2 or more than [`ROWS`] rows, or the clamp is 0 or over [`CLAMP`].
    pub fn new(n_test: u64, n_control: u64, clamp: u64) -> Result<Self, Error> {
        for n in [n_test, n_control] {
            if n > ROWS {
                return Err(Error::limit("release::fixed::ROWS", n, ROWS));
            }
            if n < 2 {
                return Err(Error::input("an arm has fewer than 2 rows: it has no variance"));
            }
        }
        if clamp == 0 || clamp > CLAMP {
            return Err(Error::limit("release::fixed::CLAMP", clamp, CLAMP));
        }
        let delta = Sensitivity::of(ReaderRole::Publisher, n_test, n_control, clamp);
        let lift = point(&delta.lift);
        Ok(Self { lift, se: lift, v: point(&delta.v) })
    }
}

/// The least F with delta 2^F >= 2^20.
fn point(delta: &Rational) -> i32 {
    let enough = |f: i32| delta * exp2(f) >= exp2(GRID_BITS);
    // Within one of the difference of lengths; the loop settles it.
    let mut f = GRID_BITS + delta.denom().bits() as i32 - delta.numer().bits() as i32 - 2;
    while !enough(f) {
        f += 1;
    }
    f
}

impl ArmTotals {
    /// Checks that these are totals of `n` outcomes in `0..=clamp`.
    ///
    /// # Errors
    /// When they cannot be: the caller summed something else.
    pub fn check(&self, clamp: u64) -> Result<(), Error> {
        let (n, s) = (u128::from(self.n), u128::from(self.s));
        let possible = self.n <= ROWS
            && clamp <= CLAMP
            && s <= n * u128::from(clamp)
            && self.q <= s * u128::from(clamp)
            && self.q >= s
            && s * s <= n * self.q;
        if possible { Ok(()) } else { Err(Error::misuse("totals that no outcomes in 0..=R have")) }
    }

    /// n Q - S^2, at most 98 bits.
    fn numerator(&self) -> BigUint {
        BigUint::from(u128::from(self.n) * self.q - u128::from(self.s) * u128::from(self.s))
    }

    /// n^2 (n - 1), at most 87 bits.
    fn denominator(&self) -> BigUint {
        let n = u128::from(self.n);
        BigUint::from(n * n * (n - 1))
    }

    /// The variance of the mean, exactly.
    #[must_use]
    pub fn variance(&self) -> Rational {
        Rational::new(self.numerator().into(), self.denominator().into())
    }

    /// The mean, exactly.
    #[must_use]
    pub fn mean(&self) -> Rational {
        Rational::new(self.s.into(), self.n.into())
    }
}

/// `value 2^f`, floored.
fn scaled(value: &BigUint, f: i32) -> BigUint {
    if f >= 0 { value << f.unsigned_abs() } else { value >> f.unsigned_abs() }
}

/// floor(S 2^f / n).
fn mean(arm: &ArmTotals, f: i32) -> BigInt {
    (scaled(&arm.s.into(), f) / arm.n).into()
}

/// The sum over arms of floor((nQ - S^2) 2^f / (n^2 (n - 1))).
fn variance(arms: [&ArmTotals; 2], f: i32) -> BigUint {
    arms.into_iter().map(|arm| scaled(&arm.numerator(), f) / arm.denominator()).sum()
}

/// The fixed-point lift, variance and standard error of two arms.
///
/// # Errors
/// When sizes or clamp are out of range ([`Grid::new`]) or the totals impossible ([`ArmTotals::check`]).
pub fn values(test: &ArmTotals, control: &ArmTotals, clamp: u64) -> Result<FixedValues, Error> {
    let grid = Grid::new(test.n, control.n, clamp)?;
    test.check(clamp)?;
    control.check(clamp)?;
    let lift = mean(test, grid.lift) - mean(control, grid.lift);
    let v = variance([test, control], grid.v);
    let se = variance([test, control], 2 * grid.se).sqrt();
    Ok(FixedValues {
        grid,
        lift: lift.to_i64().expect("at most R 2^F <= 2^21 N* in magnitude"),
        v: v.to_u64().expect("at most about R^2 2^F / N* <= 2^21 N*"),
        se: se.to_u64().expect("at most about R 2^F / sqrt(N*) <= 2^21 N*"),
    })
}

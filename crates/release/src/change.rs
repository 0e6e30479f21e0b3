//! What one row of data changes in a sum over disjoint cells.

use crate::alias::{Sampler, low_bits};
use crate::rational::Rational;
use base::Error;
use num_bigint::BigInt;
use num_traits::One;

/// The most that one joined row changes a noised sum, where its data change or it comes or goes.
///
/// With values in `low..=high` (0 among them, since a row may not be there) a row that stays in its cell
/// changes the cell's sum by `high - low` at most. One that moves takes at most `max(-low, high)` from one
/// sum and adds as much to another. Both have to cost no more than rho, so the variance is
/// `max(stays^2, 2 moves^2) / (2 rho)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumChange {
    /// By a row that stays in the cell.
    pub stays: u128,
    /// By one that comes from another cell or goes to one; 0 where no row does.
    pub moves: u128,
}

impl SumChange {
    /// The change that noise is calibrated to, and how many cells a row changes by it.
    #[must_use]
    pub fn calibrated(&self) -> (u128, u32) {
        if self.moves == 0 || self.is_wide(&BigInt::one()) { (self.stays, 1) } else { (self.moves, 2) }
    }

    /// Whether a row that stays costs more than one that moves, in whole steps of a lattice.
    fn is_wide(&self, step: &BigInt) -> bool {
        let [stays, moves] = self.steps(step);
        &moves * &moves * 2 <= &stays * &stays
    }

    fn steps(&self, step: &BigInt) -> [BigInt; 2] {
        [self.stays, self.moves].map(|change| (BigInt::from(change) + step - 1) / step)
    }

    /// `max(stays^2, 2 moves^2) / (2 rho)`.
    #[must_use]
    pub fn variance(&self, rho: &Rational) -> Rational {
        let (change, cells) = self.calibrated();
        let square = BigInt::from(change) * change * cells;
        Rational::from_integer(square) / (rho * BigInt::from(2))
    }

    /// Whether steps of a lattice cost no more than what the noise is calibrated to.
    fn allows(&self, step: &BigInt) -> bool {
        let [stays, moves] = self.steps(step);
        match self.calibrated() {
            (_, 1) => self.moves == 0 || self.is_wide(step),
            _ => &stays * &stays <= &moves * &moves * 2,
        }
    }
}

impl Sampler {
    /// The noise of an integer sum that one row changes so, at a charge of `rho` for all cells.
    ///
    /// # Errors
    /// Those of [`Sampler::new`].
    pub fn of_change(change: &SumChange, rho: &Rational) -> Result<Self, Error> {
        let (sensitivity, cells) = change.calibrated();
        let sensitivity = BigInt::from(sensitivity);
        let most = low_bits(&sensitivity, cells, rho)?;
        // A single step always serves: there both changes are what they are.
        let bits = (0..=most).rev().find(|bits| change.allows(&(BigInt::one() << *bits))).unwrap_or(0);
        Self::with_low_bits(&sensitivity, cells, rho, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational::ratio;

    /// What a row costs that stays, and one that moves, by what the sampler draws: whole steps of its
    /// lattice.
    #[test]
    fn no_change_costs_more_than_rho() {
        let mut lattices = 0;
        for (low, high) in [(0, 1), (0, 200), (-1, 1), (-100, 100), (-1, 9), (-7, 10), (-1000, 3), (-5, 0)] {
            let (stays, moved) = ((high - low) as u128, i128::max(-low, high) as u128);
            for moves in [0, moved] {
                let change = SumChange { stays, moves };
                for rho in [ratio(1, 1000), ratio(1, 10), ratio(2, 1)] {
                    let sampler = Sampler::of_change(&change, &rho).unwrap();
                    lattices += sampler.low_bits;
                    let steps = change.steps(&(BigInt::one() << sampler.low_bits));
                    let cost = |square: BigInt| {
                        Rational::from_integer(square) / (&sampler.variance_y * BigInt::from(2))
                    };
                    assert!(cost(&steps[0] * &steps[0]) <= rho, "{change:?}");
                    assert!(cost(&steps[1] * &steps[1] * 2) <= rho, "{change:?}");
                    let wider = sampler.variance() / change.variance(&rho);
                    assert!(wider >= ratio(1, 1) && wider <= ratio(102, 100), "{change:?} {rho} {wider}");
                }
            }
        }
        assert!(lattices > 0, "some noise has low bits");
    }

    #[test]
    fn a_sum_around_zero_pays_nothing_for_rows_that_move() {
        let of = |stays, moves| SumChange { stays, moves }.variance(&ratio(1, 2));
        assert_eq!(
            [of(10, 0), of(10, 10), of(20, 10), of(11, 10)].map(|v| v.to_integer()),
            [100.into(), 200.into(), 400.into(), 200.into()]
        );
    }
}

//! What a release says of one cell: noised sums, and how their noise varies together.

use base::Error;

/// Noised sums of one cell, and the covariance of their noise alone: zero for a sum that is known exactly.
///
/// Cells are of disjoint rows with noise of their own, so two of them are independent.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisyMoments {
    values: Vec<f64>,
    /// Row after row.
    covariance: Vec<f64>,
}

impl NoisyMoments {
    /// Sums with this covariance matrix of their noise.
    ///
    /// # Errors
    /// When the matrix is not of this size, not symmetric, or no covariance can be it.
    pub fn new(values: Vec<f64>, covariance: &[Vec<f64>]) -> Result<Self, Error> {
        let count = values.len();
        let square = covariance.len() == count && covariance.iter().all(|row| row.len() == count);
        if !square {
            return Err(Error::input(format!("{count} sums have a covariance matrix of {count} by {count}")));
        }
        let flat: Vec<f64> = covariance.concat();
        if !values.iter().chain(&flat).all(|v| v.is_finite()) {
            return Err(Error::input("sums and the covariance of their noise are finite numbers"));
        }
        let at = |i: usize, j: usize| flat[i * count + j];
        for i in 0..count {
            for j in 0..=i {
                // What is within rounding is taken as it stands.
                let most = (at(i, i) * at(j, j)).max(0.0).sqrt() * (1.0 + 1e-9);
                let fits = at(i, i) >= 0.0 && (at(i, j) - at(j, i)).abs() <= 1e-9 * most;
                if !fits || at(i, j).abs() > most {
                    return Err(Error::input(format!("sums {j} and {i}: no noise has this covariance")));
                }
            }
        }
        Ok(Self { values, covariance: flat })
    }

    /// Sums whose noises are independent, with these variances.
    ///
    /// # Errors
    /// When there are not as many variances as sums, or one is negative or not finite.
    pub fn independent(values: Vec<f64>, variances: &[f64]) -> Result<Self, Error> {
        let row = |i: usize| {
            (0..variances.len()).map(|j| if i == j { variances[i] } else { 0.0 }).collect::<Vec<_>>()
        };
        let covariance: Vec<Vec<f64>> = (0..variances.len()).map(row).collect();
        Self::new(values, &covariance)
    }

    /// Linear combinations of these sums, one a row of `weights`: their noise is exact too. This moves an
    /// origin, adds cells of buckets up, or repeats the count of a bit as the sum of its squares.
    ///
    /// # Errors
    /// When a row has not as many weights as there are sums.
    pub fn combined(&self, weights: &[Vec<f64>]) -> Result<Self, Error> {
        self.demand(weights.iter().all(|row| row.len() == self.len()), "a weight for each sum")?;
        let values = weights.iter().map(|row| self.value(row)).collect();
        let row = |a: &Vec<f64>| weights.iter().map(|b| self.covariance(a, b)).collect::<Vec<_>>();
        Self::new(values, &weights.iter().map(row).collect::<Vec<_>>())
    }

    /// The sums.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn demand(&self, holds: bool, wanted: &str) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(Error::input(format!("of {} sums: {wanted}", self.len()))) }
    }

    /// A linear combination of the sums.
    pub(super) fn value(&self, weights: &[f64]) -> f64 {
        weights.iter().zip(&self.values).map(|(w, v)| w * v).sum()
    }

    /// How the noises of two linear combinations vary together.
    pub(super) fn covariance(&self, a: &[f64], b: &[f64]) -> f64 {
        let rows = self.covariance.chunks_exact(self.len());
        a.iter().zip(rows).filter(|(a, _)| **a != 0.0).map(|(a, row)| a * dot(b, row)).sum()
    }

    /// The variance of a linear combination by the noise alone.
    pub(super) fn variance(&self, weights: &[f64]) -> f64 {
        self.covariance(weights, weights).max(0.0)
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

//! Least squares from noised cross products.

use super::moments::{NoisyMoments, dot};
use super::{DerivedEstimate, critical};
use crate::binomial::beta;
use crate::normal::normal_upper;
use base::Error;

/// The most covariates.
pub const COVARIATES_MAX: usize = 6;

/// The coefficients of a value y on `covariates` x and an intercept, the intercept first.
///
/// Sums: of the products of (1, x1, .., xk, y) with one another, row by row of the upper triangle, which
/// begins n, Sx1, .., Sy, Sx1x1 and ends Syy. A product that is the same as another (the square of a bit)
/// stands there twice, with the covariance that says so ([`NoisyMoments::combined`]).
///
/// With A = X'X and c = X'y, a hypothetical coefficient b is tested by the residual moment c - A b in the
/// direction a in which the other covariates are held constant, with the other coefficients fitted to it. It
/// is linear in the sums, so its noise is exact at b and the interval a quadratic's (Anderson and Rubin 1949,
/// "Estimation of the Parameters of a Single Equation"; Fieller 1954). Sampling adds sigma^2 a'Aa; the
/// critical value is Student's.
///
/// Unbounded where some direction of A is not above what noise alone may make of it: all coefficients then
/// depend on it.
///
/// Assumed: the mean of y is linear in the covariates, and the residuals are independent with one variance;
/// and rows enough for sums of residuals to be normal (exact sums of 50 rows with a skewed residual cover too
/// rarely: `crates/release/tests/derived.rs`).
///
/// # Errors
/// When there are more covariates than [`COVARIATES_MAX`], not as many sums, or the level is not in 0..1.
pub fn least_squares(
    moments: &NoisyMoments,
    covariates: usize,
    level: f64,
) -> Result<Vec<DerivedEstimate>, Error> {
    let z = critical(level)?;
    let sides = covariates + 2;
    moments.demand(covariates <= COVARIATES_MAX, "six covariates at most")?;
    moments.demand(moments.len() == sides * (sides + 1) / 2, "all products of 1, the covariates and y")?;
    let system = NormalEquations { moments, sides };
    let count = covariates + 1;
    let unknown = DerivedEstimate::unknown([f64::NEG_INFINITY, f64::INFINITY]);
    let Some(inverse) = system.inverse(z) else { return Ok(vec![unknown; count]) };
    let fitted: Vec<f64> = inverse.iter().map(|row| dot(row, &system.right())).collect();
    let free = system.product(0, 0) - count as f64;
    if free <= 0.0 {
        return Ok(vec![unknown; count]);
    }
    let spread = system.residual_squares(&fitted, &inverse, z) / free;
    let z = student(z, free);
    let one = |j: usize| {
        let information = 1.0 / inverse[j][j];
        let direction: Vec<f64> = inverse[j].iter().map(|v| v * information).collect();
        // With d = b - estimate: (d i)^2 <= z^2 (sigma^2 i + v0 + 2 d v1 + d^2 v2).
        let at_fit = system.residual(&direction, &fitted, 1.0);
        let by_step = system.residual(&direction, &direction, 0.0);
        let v = [(&at_fit, &at_fit), (&at_fit, &by_step), (&by_step, &by_step)]
            .map(|(a, b)| z * z * moments.covariance(a, b));
        let a = information * information - v[2];
        if a <= 0.0 {
            return DerivedEstimate { value: Some(fitted[j]), ..unknown };
        }
        let half = |c: f64| (v[1] * v[1] + a * c.max(0.0)).max(0.0).sqrt() / a;
        let width = half(v[0] + z * z * spread * information);
        let middle = fitted[j] + v[1] / a;
        DerivedEstimate {
            value: Some(fitted[j]),
            low: middle - width,
            high: middle + width,
            noise: half(v[0]),
        }
    };
    Ok((0..count).map(one).collect())
}

struct NormalEquations<'a> {
    moments: &'a NoisyMoments,
    /// 1, covariates and y.
    sides: usize,
}

impl NormalEquations<'_> {
    fn index(&self, i: usize, j: usize) -> usize {
        let (i, j) = (i.min(j), i.max(j));
        i * self.sides - i * (i + 1) / 2 + j
    }

    fn product(&self, i: usize, j: usize) -> f64 {
        self.moments.values()[self.index(i, j)]
    }

    fn right(&self) -> Vec<f64> {
        (0..self.sides - 1).map(|i| self.product(i, self.sides - 1)).collect()
    }

    /// a'(y - A b), with as many times a'c as `y` says: its weights.
    fn residual(&self, a: &[f64], b: &[f64], y: f64) -> Vec<f64> {
        let mut weights = vec![0.0; self.moments.len()];
        for (i, a) in a.iter().enumerate() {
            weights[self.index(i, self.sides - 1)] += y * a;
            for (j, b) in b.iter().enumerate() {
                weights[self.index(i, j)] -= a * b;
            }
        }
        weights
    }

    /// The inverse of A; none where a direction of it may be noise.
    fn inverse(&self, z: f64) -> Option<Vec<Vec<f64>>> {
        let count = self.sides - 1;
        let scale: Vec<f64> = (0..count).map(|i| self.product(i, i).max(0.0).sqrt()).collect();
        if scale.iter().any(|s| *s <= 0.0) {
            return None;
        }
        let scaled: Vec<Vec<f64>> = (0..count)
            .map(|i| (0..count).map(|j| self.product(i, j) / (scale[i] * scale[j])).collect())
            .collect();
        let (values, vectors) = eigen(scaled);
        for (value, vector) in values.iter().zip(&vectors) {
            let direction: Vec<f64> = vector.iter().zip(&scale).map(|(v, s)| v / s).collect();
            let noise = self.moments.variance(&self.residual(&direction, &direction, 0.0)).sqrt();
            if *value <= (z * noise).max(1e-10) {
                return None;
            }
        }
        let entry = |i: usize, j: usize| {
            let terms = values.iter().zip(&vectors).map(|(value, vector)| vector[i] * vector[j] / value);
            terms.sum::<f64>() / (scale[i] * scale[j])
        };
        Some((0..count).map(|i| (0..count).map(|j| entry(i, j)).collect()).collect())
    }

    /// An upper value of the sum of squared residuals.
    fn residual_squares(&self, fitted: &[f64], inverse: &[Vec<f64>], z: f64) -> f64 {
        let count = self.sides - 1;
        let minus: Vec<f64> = fitted.iter().map(|b| -b).chain([1.0]).collect();
        let mut weights = vec![0.0; self.moments.len()];
        for (i, a) in minus.iter().enumerate() {
            for (j, b) in minus.iter().enumerate() {
                weights[self.index(i, j)] += a * b;
            }
        }
        // Fitting takes from the squares what noise and chance gave the residual moments.
        let unit = |i: usize| (0..count).map(|j| f64::from(u8::from(i == j))).collect::<Vec<_>>();
        let each: Vec<Vec<f64>> = (0..count).map(|i| self.residual(&unit(i), fitted, 1.0)).collect();
        let taken: f64 = (0..count)
            .flat_map(|i| (0..count).map(move |j| (i, j)))
            .map(|(i, j)| inverse[i][j] * self.moments.covariance(&each[i], &each[j]))
            .sum();
        let squares = self.moments.value(&weights) + taken;
        (squares + 0.5 * z * self.moments.variance(&weights).sqrt()).max(0.0)
    }
}

/// The critical value of Student's t with `free` degrees of freedom at the level of z (Student 1908).
fn student(z: f64, free: f64) -> f64 {
    if free > 200.0 {
        // The first terms of its expansion (Fisher 1925): what follows is less than 1e-4 of it.
        let first = z * (z * z + 1.0) / (4.0 * free);
        return z + first + z * (5.0 * z.powi(4) + 16.0 * z * z + 3.0) / (96.0 * free * free);
    }
    // P(T > t) = I_x(free / 2, 1 / 2) / 2 with x = free / (free + t^2).
    let tail = 2.0 * normal_upper(z);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let x = 0.5 * (low + high);
        if beta(x, 0.5 * free, 0.5) < tail { low = x } else { high = x }
    }
    (free * (1.0 - low) / low).sqrt()
}

/// Eigenvalues and eigenvectors of a symmetric matrix (Jacobi 1846).
fn eigen(mut a: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = a.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..count).map(|i| (0..count).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..40 {
        let off: f64 = (0..count).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j].abs()).sum();
        if off < 1e-15 {
            break;
        }
        for p in 0..count {
            for q in p + 1..count {
                rotate(&mut a, &mut vectors, p, q);
            }
        }
    }
    ((0..count).map(|i| a[i][i]).collect(), vectors)
}

/// Makes a[p][q] zero.
fn rotate(a: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q].abs() < 1e-300 {
        return;
    }
    let tau = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = 1f64.copysign(tau) / (tau.abs() + (1.0 + tau * tau).sqrt());
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = t * c;
    for row in a.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    turn(a, p, q, [c, s]);
    turn(vectors, p, q, [c, s]);
}

fn turn(rows: &mut [Vec<f64>], p: usize, q: usize, [c, s]: [f64; 2]) {
    let (before, after) = rows.split_at_mut(q);
    for (first, second) in before[p].iter_mut().zip(&mut after[0]) {
        (*first, *second) = (c * *first - s * *second, s * *first + c * *second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By tables of Student's t.
    #[test]
    fn student_is_that_of_tables() {
        let z = crate::normal::critical(0.95);
        for (free, t) in [(1.0, 12.706), (5.0, 2.571), (30.0, 2.042), (201.0, 1.972), (1000.0, 1.962)] {
            assert!((student(z, free) - t).abs() < 6e-4, "{free}: {}", student(z, free));
        }
    }
}

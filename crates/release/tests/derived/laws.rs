//! Laws of rows, as atoms: what one row adds to the sums, and with which probability.

use base::Rng;
use release::binomial;
use release::normal::normal_quantile_upper;

/// Below so many rows they are drawn one by one.
const ONE_BY_ONE: u64 = 24;

/// A law of rows.
#[derive(Clone)]
pub struct RowLaw {
    pub name: String,
    /// What a row adds to each sum.
    pub rows: Vec<Vec<f64>>,
    pub shares: Vec<f64>,
}

impl RowLaw {
    pub fn new(name: impl Into<String>, atoms: Vec<(Vec<f64>, f64)>) -> Self {
        let all: f64 = atoms.iter().map(|(_, p)| p).sum();
        let (rows, shares) = atoms.into_iter().map(|(row, p)| (row, p / all)).unzip();
        Self { name: name.into(), rows, shares }
    }

    /// The mean of what a row adds to each sum.
    pub fn means(&self) -> Vec<f64> {
        let sums = self.rows[0].len();
        let mean = |i: usize| self.rows.iter().zip(&self.shares).map(|(row, p)| row[i] * p).sum();
        (0..sums).map(mean).collect()
    }

    /// The sums of `n` rows.
    pub fn totals(&self, n: u64, rng: &mut Rng) -> Vec<f64> {
        let mut totals = vec![0.0; self.rows[0].len()];
        let (mut left, mut rest) = (n, 1.0);
        for (i, (row, p)) in self.rows.iter().zip(&self.shares).enumerate() {
            if left == 0 {
                break;
            }
            if left < ONE_BY_ONE {
                for _ in 0..left {
                    add(&mut totals, &self.rows[i + self.one(i, rest, rng)], 1.0);
                }
                break;
            }
            let last = i + 1 == self.rows.len();
            let here = if last { left } else { binomial::draw(left, (p / rest).min(1.0), rng) };
            left -= here;
            rest -= p;
            add(&mut totals, row, here as f64);
        }
        totals
    }

    /// One row of those from `first` on, counted from there.
    fn one(&self, first: usize, rest: f64, rng: &mut Rng) -> usize {
        let mut left = uniform(rng) * rest;
        let found = self.shares[first..].iter().position(|p| {
            left -= p;
            left < 0.0
        });
        found.unwrap_or(self.rows.len() - 1 - first)
    }
}

fn add(totals: &mut [f64], row: &[f64], times: f64) {
    totals.iter_mut().zip(row).for_each(|(total, value)| *total += times * value);
}

pub fn uniform(rng: &mut Rng) -> f64 {
    (rand_core::Rng::next_u64(rng) >> 11) as f64 / (1u64 << 53) as f64
}

/// Two independent standard normal numbers (Box and Muller 1958).
pub fn normals(rng: &mut Rng) -> [f64; 2] {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    let angle = std::f64::consts::TAU * uniform(rng);
    [radius * angle.cos(), radius * angle.sin()]
}

/// Values of one column with their probabilities, and its range 0..=R.
#[derive(Clone)]
pub struct Column {
    pub name: &'static str,
    pub range: f64,
    pub values: Vec<(f64, f64)>,
}

pub fn bit(name: &'static str, p: f64) -> Column {
    Column { name, range: 1.0, values: vec![(0.0, 1.0 - p), (1.0, p)] }
}

/// A normal value about the middle, clamped at 2.5 standard deviations.
pub fn normal() -> Column {
    let values = (0..24).map(|i| (quantile(i, 24), 1.0 / 24.0));
    Column {
        name: "normal",
        range: 100.0,
        values: values.map(|(z, p)| ((50.0 + 20.0 * z).round().clamp(0.0, 100.0), p)).collect(),
    }
}

pub fn uniform_column() -> Column {
    Column {
        name: "uniform",
        range: 120.0,
        values: (0..21).map(|i| (f64::from(6 * i), 1.0 / 21.0)).collect(),
    }
}

/// A share buys for a log-normal amount, clamped: `scale` multiplies it.
pub fn spending(share: f64, scale: f64) -> Column {
    let amount = |i| (40.0 * scale * quantile(i, 24).exp()).round().min(500.0);
    let buyers = (0..24).map(|i| (amount(i), share / 24.0));
    Column {
        name: "spending",
        range: 500.0,
        values: std::iter::once((0.0, 1.0 - share)).chain(buyers).collect(),
    }
}

/// The i-th of `count` equally likely values of a standard normal variable.
pub fn quantile(i: u32, count: u32) -> f64 {
    -normal_quantile_upper((f64::from(i) + 0.5) / f64::from(count))
}

//! How often the intervals cover the truth, by simulation: the trials of `tacit audit coverage`.
//!
//! A trial draws both arms' totals from an outcome law, noises them with the shipped sampler, reads them with
//! the shipped rules, and asks whether the interval holds the law's difference of clamped means. What is not
//! shown counts for nothing.

use crate::alias::Sampler;
use crate::binomial::{self, uniform};
use crate::fixed::{self, ArmTotals, FixedValues};
use crate::joint::FamilyMechanism;
use crate::modes::{self, LiftEstimate, Reading};
use crate::normal::normal_quantile_upper;
use crate::scale::{FixedScale, ReleaseMode};
use base::{Error, Rng, Seed};
use std::cell::OnceCell;

/// Below so many rows they are drawn one by one.
const ONE_BY_ONE: u64 = 64;

/// Where fewer than one trial in so many is shown, a cell counts as one that is not read.
pub const ATTEMPTS: u64 = 16;

/// An outcome law: values in 0..=clamp with their probabilities, per arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Its name.
    pub name: String,
    /// R.
    pub clamp: u64,
    /// The test arm.
    pub test: Vec<(u64, f64)>,
    /// The control arm.
    pub control: Vec<(u64, f64)>,
}

impl Law {
    /// A share `rate` of the control arm has an outcome, and 1.1 times as many of the test arm. With a clamp
    /// above 1 the outcome is log-normal with this median and log-deviation 1, in whole units, clamped.
    ///
    /// # Errors
    /// When the rate is not between 0 and 1, or the median not positive.
    pub fn of_rate(rate: f64, clamp: u64, median: f64) -> Result<Self, Error> {
        let known = rate > 0.0 && rate < 1.0 && median > 0.0;
        if !known {
            return Err(Error::input(
                "the rate is between 0 and 1, for example 0.01, and the median above 0",
            ));
        }
        let higher = (1.1 * rate).min(0.5 * (1.0 + rate));
        let arm = |p| if clamp == 1 { coin(p) } else { purchases(p, median, clamp) };
        let name = match clamp {
            1 => format!("{} %", 100.0 * rate),
            _ => format!("{} % about {median}, R = {clamp}", 100.0 * rate),
        };
        Ok(Self { name, clamp, test: arm(higher), control: arm(rate) })
    }

    /// Test minus control.
    #[must_use]
    pub fn truth(&self) -> f64 {
        let mean = |atoms: &[(u64, f64)]| atoms.iter().map(|&(x, p)| x as f64 * p).sum::<f64>();
        mean(&self.test) - mean(&self.control)
    }
}

/// The laws of the documentation: five common ones, and one with nearly every outcome at the clamp.
#[must_use]
pub fn laws() -> Vec<Law> {
    let uniform = |scale: f64| {
        (1..=128).map(|u| (((f64::from(u) * scale) as u64).min(128), 1.0 / 128.0)).collect::<Vec<_>>()
    };
    let law = |name: &str, clamp, test, control| Law { name: name.into(), clamp, test, control };
    let bought = |name, clamp| law(name, clamp, purchases(0.033, 42.0, clamp), purchases(0.03, 40.0, clamp));
    vec![
        law("1 % convert", 1, coin(0.011), coin(0.01)),
        law("5 % convert", 1, coin(0.055), coin(0.05)),
        bought("purchases, R = 200", 200),
        bought("purchases, R = 500", 500),
        law("uniform", 128, uniform(1.02), uniform(1.0)),
        law("98 % convert", 1, coin(0.981), coin(0.98)),
    ]
}

fn coin(p: f64) -> Vec<(u64, f64)> {
    vec![(0, 1.0 - p), (1, p)]
}

/// A share `p` buys for a log-normal amount of this median and log-deviation 1, in whole units, clamped.
fn purchases(p: f64, median: f64, clamp: u64) -> Vec<(u64, f64)> {
    let quantiles = 128;
    let amount = |i: i32| {
        let z = -normal_quantile_upper((f64::from(i) + 0.5) / f64::from(quantiles));
        ((median * z.exp()).round() as u64).min(clamp)
    };
    let buyers = (0..quantiles).map(|i| (amount(i), p / f64::from(quantiles)));
    std::iter::once((0, 1.0 - p)).chain(buyers).collect()
}

/// One cell's noise, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum CellMechanism {
    /// n, S and Q of each arm.
    Sums {
        /// How they are read.
        joint: Box<FamilyMechanism>,
        /// The noise of each output of an arm.
        noises: Vec<Sampler>,
    },
    /// The difference and its spread.
    Fixed {
        /// Which spread.
        mode: ReleaseMode,
        /// How they are read.
        scale: Box<FixedScale>,
        /// Their noise.
        noises: Box<[Sampler; 2]>,
    },
}

/// What came out of one mechanism.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialCoverage {
    /// Trials.
    pub trials: u64,
    /// Among them those that were shown.
    pub shown: u64,
    /// Among these those whose interval held the truth, by level.
    pub covered: Vec<u64>,
    /// Sum over what was shown of the width over that of the interval without any noise.
    pub width: f64,
}

impl TrialCoverage {
    /// Whether more trials are needed to show so many results, and would.
    fn goes_on(&self, shown: u64) -> bool {
        self.shown < shown && !(self.trials >= shown && self.shown * ATTEMPTS < self.trials)
    }

    /// The same of more trials.
    pub fn add(&mut self, more: &Self) {
        self.trials += more.trials;
        self.shown += more.shown;
        self.covered.resize(more.covered.len().max(self.covered.len()), 0);
        self.covered.iter_mut().zip(&more.covered).for_each(|(all, more)| *all += more);
        self.width += more.width;
    }
}

/// Simulates mechanisms on the same totals of a law, until each has shown so many results, or is found to
/// show fewer than one in [`ATTEMPTS`]. A mechanism's noise does not depend on which others there are.
///
/// # Errors
/// When a value is out of range for the fixed point, or a level is not in 0..1.
pub fn simulate(
    law: &Law,
    rows: [u64; 2],
    mechanisms: &[(String, CellMechanism)],
    levels: &[f64],
    shown: u64,
    seed: &Seed,
) -> Result<Vec<TrialCoverage>, Error> {
    let truth = law.truth();
    let mut rng = seed.fork("totals").into_rng();
    let mut noise: Vec<Rng> = mechanisms.iter().map(|(label, _)| seed.fork(label).into_rng()).collect();
    let none = TrialCoverage { covered: vec![0; levels.len()], ..TrialCoverage::default() };
    let mut all = vec![none; mechanisms.len()];
    while all.iter().any(|one| one.goes_on(shown)) {
        let [test, control] =
            [(&law.test, rows[0]), (&law.control, rows[1])].map(|(atoms, n)| totals(atoms, n, &mut rng));
        let trial = Trial::new([test, control], law.clamp);
        let one = all.iter_mut().zip(mechanisms).zip(&mut noise);
        for ((one, (_, mechanism)), noise) in one.filter(|((one, _), _)| one.goes_on(shown)) {
            one.trials += 1;
            let Some(estimates) = mechanism.run(&trial, levels, noise)? else { continue };
            one.shown += 1;
            for (covered, estimate) in one.covered.iter_mut().zip(&estimates) {
                *covered += u64::from((estimate.interval[0]..=estimate.interval[1]).contains(&truth));
            }
            one.width += estimates.first().map_or(0.0, |e| e.standard_error / trial.chance);
        }
    }
    Ok(all)
}

/// The totals of one trial.
struct Trial {
    totals: [ArmTotals; 2],
    clamp: u64,
    /// The standard error without any noise.
    chance: f64,
    /// What the fixed-point modes divide inside, once one needs it.
    values: OnceCell<FixedValues>,
}

impl Trial {
    fn new(totals: [ArmTotals; 2], clamp: u64) -> Self {
        let variance = |arm: &ArmTotals| {
            let (n, s) = (arm.n as f64, arm.s as f64);
            (arm.q as f64 - s * s / n) / ((n - 1.0) * n)
        };
        let chance = totals.iter().map(variance).sum::<f64>().max(1e-300).sqrt();
        Self { totals, clamp, chance, values: OnceCell::new() }
    }

    fn values(&self) -> Result<&FixedValues, Error> {
        if self.values.get().is_none() {
            let values = fixed::values(&self.totals[0], &self.totals[1], self.clamp)?;
            return Ok(self.values.get_or_init(|| values));
        }
        self.values.get().ok_or_else(|| Error::misuse("what was computed is there"))
    }
}

impl CellMechanism {
    /// An estimate by level; none where it is not shown.
    fn run(&self, trial: &Trial, levels: &[f64], rng: &mut Rng) -> Result<Option<Vec<LiftEstimate>>, Error> {
        match self {
            Self::Sums { joint, noises } => {
                let [test, control] = [0, 1].map(|arm: usize| {
                    let arm = &trial.totals[arm];
                    let rows = i128::from(arm.n);
                    let exact = joint.encode([rows, i128::from(arm.s), arm.q.cast_signed()]).into_iter();
                    let noised: Vec<i128> =
                        exact.zip(noises).map(|(value, noise)| value + noise.sample(rng)).collect();
                    joint.decode(&noised, rows)
                });
                if test[0].min(control[0]) < modes::minimum_group(joint, 0) {
                    return Ok(None);
                }
                let read = |confidence: &f64| {
                    let (clamp, confidence) = (trial.clamp, *confidence);
                    modes::read_sums(test, control, joint, &Reading { clamp, confidence, minimum_group: 0 })
                };
                levels.iter().map(read).collect::<Result<_, _>>().map(Some)
            }
            Self::Fixed { mode, scale, noises } => {
                if trial.totals.iter().any(|arm| arm.n < modes::MINIMUM_GROUP) {
                    return Ok(None);
                }
                let values = trial.values()?;
                let spread = if *mode == ReleaseMode::Variance { values.v } else { values.se };
                // Low bits leave a mean of -1/2, which is taken off outside.
                let mut noised = |exact: i128, noise: &Sampler| {
                    let mean = if noise.low_bits > 0 { -0.5 } else { 0.0 };
                    (exact + noise.sample(rng)) as f64 - mean
                };
                let lift = noised(values.lift.into(), &noises[0]);
                let spread = noised(spread.into(), &noises[1]);
                let read = |level: &f64| modes::read_fixed(*mode, lift, spread, scale, *level);
                levels.iter().map(read).collect::<Result<_, _>>().map(Some)
            }
        }
    }
}

/// Totals of `n` independent outcomes: a multinomial draw, atom after atom, and the last rows one by one.
fn totals(atoms: &[(u64, f64)], n: u64, rng: &mut Rng) -> ArmTotals {
    let (mut left, mut rest) = (n, 1.0);
    let mut totals = ArmTotals { n, s: 0, q: 0 };
    let mut count = |value: u64, count: u64| {
        totals.s += count * value;
        totals.q += u128::from(count) * u128::from(value) * u128::from(value);
    };
    for (i, &(value, p)) in atoms.iter().enumerate() {
        let after = &atoms[i..];
        if left < ONE_BY_ONE.min(after.len() as u64) {
            for _ in 0..left {
                count(one(after, rest, rng), 1);
            }
            break;
        }
        let here = if after.len() == 1 { left } else { binomial::draw(left, (p / rest).min(1.0), rng) };
        left -= here;
        rest -= p;
        count(value, here);
    }
    totals
}

/// One outcome of atoms whose probabilities add up to `all`.
fn one(atoms: &[(u64, f64)], all: f64, rng: &mut Rng) -> u64 {
    let mut left = uniform(rng) * all;
    let found = atoms.iter().find(|(_, p)| {
        left -= p;
        left < 0.0
    });
    found.or(atoms.last()).map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_have_their_moments() {
        for law in laws() {
            for n in [50, 1000, 100_000] {
                let mut rng = Seed::from_bytes([2; 32]).into_rng();
                let moment =
                    |power: i32| law.test.iter().map(|&(x, p)| (x as f64).powi(power) * p).sum::<f64>();
                let (trials, count) = (2000, n as f64);
                let drawn: Vec<ArmTotals> = (0..trials).map(|_| totals(&law.test, n, &mut rng)).collect();
                for (name, power, got) in [
                    ("S", 1, drawn.iter().map(|t| t.s as f64).sum::<f64>() / f64::from(trials)),
                    ("Q", 2, drawn.iter().map(|t| t.q as f64).sum::<f64>() / f64::from(trials)),
                ] {
                    let variance = moment(2 * power) - moment(power).powi(2);
                    let off = (got - count * moment(power)) / (count * variance / f64::from(trials)).sqrt();
                    assert!(off.abs() < 4.5, "{} {name} of {n}: {off}", law.name);
                }
            }
        }
    }
}

//! A lower bound on what two inputs cost, from a statistic of outputs of both.
//!
//! An event is chosen on one half of the outputs, and its probabilities are bounded on the other half
//! (Clopper and Pearson 1934), so that choosing among many costs nothing. Of any (epsilon, delta)-DP
//! mechanism P(E) <= e^epsilon P'(E) + delta. Of a Gaussian mechanism of rho, z(P(E)) - z(P'(E)) <= sqrt(2
//! rho) with z the normal quantile (Dong, Roth and Su 2022); that sees what lies in the middle of the law,
//! where 20,000 outputs say much (Nasr et al. 2023). Our noise is Gaussian on lattices, so both must hold,
//! the second but for what a coarse lattice adds ([`super::statistics::lattice`]).

use release::binomial;
use release::normal::{critical, normal_upper};

/// Thresholds that are tried on a statistic.
const THRESHOLDS: usize = 200;

/// A number computed from each output of either side.
pub(super) struct Statistic {
    pub name: String,
    pub values: [Vec<f64>; 2],
}

/// A lower bound, and what it is by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    /// At least; below 0 where nothing was found.
    pub value: f64,
    /// The statistic.
    pub by: String,
}

/// What is to be as large as possible, from a lower bound of P(E) on one side and an upper one on the other.
pub(super) type Score<'a> = &'a dyn Fn(f64, f64) -> f64;

/// The epsilon at a delta.
pub(super) fn epsilon(delta: f64) -> impl Fn(f64, f64) -> f64 {
    move |low, high| if low > delta { ((low - delta) / high).ln() } else { f64::NEG_INFINITY }
}

/// sqrt(2 rho) of a Gaussian mechanism.
pub(super) fn shift(low: f64, high: f64) -> f64 {
    // Both ends of an interval may be at an end of 0..1; nothing is known then.
    let shift = quantile(low) - quantile(high);
    if shift.is_nan() { f64::NEG_INFINITY } else { shift }
}

/// The z with P(Z <= z) = p for a standard normal Z: a rational approximation (Hastings 1955), and two steps
/// of Newton's method, after which nothing of its error is left.
fn quantile(p: f64) -> f64 {
    match p {
        p if p <= 0.0 => f64::NEG_INFINITY,
        p if p >= 1.0 => f64::INFINITY,
        p if p > 0.5 => -quantile(1.0 - p),
        p => {
            let t = (-2.0 * p.ln()).sqrt();
            let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
            let mut z = t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / under;
            for _ in 0..2 {
                z += (normal_upper(z) - p) * (0.5 * z * z).exp() * std::f64::consts::TAU.sqrt();
            }
            -z
        }
    }
}

/// An event: a statistic is at least, or is below, a threshold.
#[derive(Clone, Copy)]
struct Event {
    at_least: bool,
    threshold: f64,
    /// The side on which it is to be the more likely.
    likely: usize,
}

/// The best bound of some statistics that holds with a probability of `confidence`.
pub(super) fn best(statistics: &[Statistic], confidence: f64, score: Score<'_>) -> Option<Bound> {
    let mut found: Option<(f64, &Statistic, Event)> = None;
    for statistic in statistics {
        let Some((value, event)) = choose(statistic, confidence, score) else { continue };
        if found.as_ref().is_none_or(|(best, ..)| value > *best) {
            found = Some((value, statistic, event));
        }
    }
    let (_, statistic, event) = found?;
    let other = [0, 1].map(|side: usize| halves(&statistic.values[side]).1);
    let bounds = event.counts(&other.map(sorted)).map(|(hits, of)| binomial::interval(hits, of, confidence));
    let value = score(bounds[event.likely][0], bounds[1 - event.likely][1]);
    Some(Bound { value, by: statistic.name.clone() })
}

fn halves(values: &[f64]) -> (&[f64], &[f64]) {
    values.split_at(values.len() / 2)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

impl Event {
    /// How often it is there, of how many, on each side.
    fn counts(self, sorted: &[Vec<f64>; 2]) -> [(u64, u64); 2] {
        [0, 1].map(|side: usize| {
            let below = sorted[side].partition_point(|value| *value < self.threshold) as u64;
            let all = sorted[side].len() as u64;
            (if self.at_least { all - below } else { below }, all)
        })
    }
}

/// The best event on the first halves, by Wilson's interval, which is near the exact one and quick.
fn choose(statistic: &Statistic, confidence: f64, score: Score<'_>) -> Option<(f64, Event)> {
    let first = [0, 1].map(|side: usize| sorted(halves(&statistic.values[side]).0));
    if first.iter().any(Vec::is_empty) {
        return None;
    }
    let pooled = sorted(&first.concat());
    let step = (pooled.len() / THRESHOLDS).max(1);
    let mut thresholds: Vec<f64> =
        pooled.iter().copied().step_by(step).chain(pooled.last().copied()).collect();
    thresholds.dedup();
    let z = critical(confidence);
    let mut found: Option<(f64, Event)> = None;
    for threshold in thresholds {
        for at_least in [false, true] {
            for likely in [0, 1] {
                let event = Event { at_least, threshold, likely };
                let bounds = event.counts(&first).map(|(hits, of)| wilson(hits, of, z));
                let value = score(bounds[likely][0], bounds[1 - likely][1]);
                if value.is_finite() && found.is_none_or(|(best, _)| value > best) {
                    found = Some((value, event));
                }
            }
        }
    }
    found
}

fn wilson(hits: u64, of: u64, z: f64) -> [f64; 2] {
    let (n, p) = (of as f64, hits as f64 / of as f64);
    let middle = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    [-1.0, 1.0].map(|sign| ((middle + sign * half) / (1.0 + z * z / n)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use release::normal::normal_quantile_upper;

    #[test]
    fn quantiles_are_those_of_a_normal() {
        for p in [1e-12, 1e-6, 0.0004, 0.02, 0.3, 0.5, 0.7, 0.99, 1.0 - 1e-9] {
            assert!((quantile(p) + normal_quantile_upper(p)).abs() < 1e-7, "{p}");
        }
    }

    fn normals(mean: f64, count: usize, seed: u8) -> Vec<f64> {
        let mut rng = Seed::from_bytes([seed; 32]).into_rng();
        let uniform = move || (u64::from_le_bytes(rng.bytes()) >> 11) as f64 / (1u64 << 53) as f64;
        std::iter::repeat_with(uniform)
            .take(count)
            .map(|u| mean - normal_quantile_upper(u.max(1e-300)))
            .collect()
    }

    /// Of normals that lie 1 apart the bound is near 1 and below it; of the same law it is below 0.
    #[test]
    fn bounds_hold_and_are_near() {
        for (mean, least, most) in [(1.0, 0.9, 1.0), (0.0, -0.2, 0.0)] {
            let values = [normals(0.0, 20_000, 1), normals(mean, 20_000, 2)];
            let statistic = [Statistic { name: "normal".into(), values }];
            let found = best(&statistic, 0.999, &shift).unwrap().value;
            assert!((least..=most).contains(&found), "{mean}: {found}");
            // The exact epsilon of a shift of 1 at 1e-6 is 4.9.
            let found = best(&statistic, 0.999, &epsilon(1e-6)).unwrap().value;
            assert!(if mean > 0.0 { (1.5..5.0).contains(&found) } else { found <= 0.0 }, "{mean}: {found}");
        }
    }

    #[test]
    fn what_tells_both_sides_apart_has_no_bound_but_that_of_the_count() {
        let statistic = [Statistic { name: "apart".into(), values: [vec![3.0; 20_000], vec![4.0; 20_000]] }];
        let found = best(&statistic, 0.999, &epsilon(1e-6)).unwrap().value;
        assert!((7.0..8.0).contains(&found), "{found}");
        let found = best(&statistic, 0.999, &shift).unwrap().value;
        assert!((6.0..7.0).contains(&found), "{found}");
    }
}

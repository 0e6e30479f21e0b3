//! From noised values to an estimate: centre, intervals, p-value, rates. Post-processing only: it spends nothing.
//!
//! Doubles suffice here: every input carries noise far above their rounding. Formulas and their derivations:
//! `docs/protocols/release.md`. All results are per person, in the units of the outcome.

use crate::fixed::Grid;
use crate::normal;
use crate::rational::{exp2, to_f64};
use crate::scale::{FixedScale, Mechanism, Mode, SumsScale};
use base::Error;
use serde::{Deserialize, Serialize};

/// Fewest rows of an arm, noised, for which the intervals of mode `sums` were checked.
pub const MINIMUM_GROUP: u64 = 1000;
/// And the fewest in standard deviations of the noise on n.
pub const MINIMUM_GROUP_SIGMAS: f64 = 20.0;

/// The noised totals of one arm. `n` is exact where the viewer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoisyTotals {
    /// Rows.
    pub n: i128,
    /// Sum.
    pub s: i128,
    /// Sum of squares.
    pub q: i128,
}

/// What an estimate is read against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// R.
    pub clamp: u64,
    /// Level of the intervals, in 0..1.
    pub confidence: f64,
    /// The study's own minimum group; [`MINIMUM_GROUP`] and 20 sigma hold in any case.
    pub minimum_group: u64,
}

/// Mean outcome of one arm, with half-widths of its own intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// S / n, kept in 0..=R.
    pub mean: f64,
    /// Half-width of the full interval: chance and noise.
    pub half_width: f64,
    /// Half-width from noise alone.
    pub noise_half_width: f64,
}

/// An estimate of the difference of means, test minus control, of the *clamped* outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The difference.
    pub lift: f64,
    /// Its interval from chance and noise.
    pub interval: [f64; 2],
    /// Its interval from noise alone.
    pub noise_interval: [f64; 2],
    /// Standard deviation the interval is made of.
    pub standard_error: f64,
    /// Two-sided p-value of no difference, by the same standard deviation.
    pub p_value: f64,
    /// lift / mean of control, where known and positive.
    pub relative: Option<f64>,
    /// Test and control, where the mode releases them.
    pub rates: Option<[Rate; 2]>,
}

/// Standard deviations of the noise in the units of the totals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SumsSigma {
    /// Of n; 0 where n is exact.
    pub n: f64,
    /// Of S.
    pub s: f64,
    /// Of Q.
    pub q: f64,
}

impl From<&SumsScale> for SumsSigma {
    fn from(scale: &SumsScale) -> Self {
        let sigma = |m: &Mechanism| to_f64(&m.sigma2).sqrt();
        Self { n: scale.n.as_ref().map_or(0.0, sigma), s: sigma(&scale.s), q: sigma(&scale.q) }
    }
}

/// The variances of one arm's mean.
struct ArmVariance {
    mean: f64,
    /// Sampling variance, unbiased under the noise; may be negative.
    sampling: f64,
    /// Variance that the noise on S and n adds to the mean.
    noise: f64,
    /// Variance of `sampling` from the noise on Q and S.
    tau2: f64,
}

impl SumsSigma {
    fn noise(&self, mean: f64, n: f64) -> f64 {
        (self.s * self.s + mean * mean * self.n * self.n) / (n * n)
    }

    fn tau2(&self, mean: f64, n: f64) -> f64 {
        (self.q * self.q + 4.0 * mean * mean * self.s * self.s) / n.powi(4)
    }

    fn arm(&self, totals: &NoisyTotals, clamp: f64) -> ArmVariance {
        let (n, s, q) = (totals.n as f64, totals.s as f64, totals.q as f64);
        let mean = (s / n).clamp(0.0, clamp);
        // E of a noised S squared is S^2 + sigma_S^2.
        let sampling = (q - (s * s - self.s * self.s) / n) / ((n - 1.0) * n);
        ArmVariance { mean, sampling, noise: self.noise(mean, n), tau2: self.tau2(mean, n) }
    }

    /// The smallest noisy arm that may be read.
    #[must_use]
    pub fn minimum_group(&self, study: u64) -> f64 {
        (MINIMUM_GROUP.max(study) as f64).max(MINIMUM_GROUP_SIGMAS * self.n)
    }
}

/// Reads the noised totals of mode `sums`.
///
/// # Errors
/// When an arm is below the minimum group, which is tested on the noised count.
pub fn read_sums(
    test: &NoisyTotals,
    control: &NoisyTotals,
    sigma: &SumsSigma,
    reading: &Reading,
) -> Result<Estimate, Error> {
    check_confidence(reading.confidence)?;
    let least = sigma.minimum_group(reading.minimum_group);
    for (name, arm) in [("test", test), ("control", control)] {
        if (arm.n as f64) < least {
            return Err(Error::input(format!(
                "the {name} group has about {} rows, fewer than the minimum of {least:.0}: not shown",
                arm.n.max(0)
            )));
        }
    }
    let clamp = reading.clamp as f64;
    let (t, c) = (sigma.arm(test, clamp), sigma.arm(control, clamp));
    let lift = test.s as f64 / test.n as f64 - control.s as f64 / control.n as f64;
    let noise = t.noise + c.noise;
    let total = (t.sampling + c.sampling + (t.tau2 + c.tau2).sqrt()).max(0.0) + noise;
    let z = normal::critical(reading.confidence);
    let rate = |arm: &ArmVariance| Rate {
        mean: arm.mean,
        half_width: z * ((arm.sampling + arm.tau2.sqrt()).max(0.0) + arm.noise).sqrt(),
        noise_half_width: z * arm.noise.sqrt(),
    };
    let mut estimate = around(lift, total.sqrt(), noise.sqrt(), z);
    estimate.relative = (c.mean > 0.0).then(|| lift / c.mean);
    estimate.rates = Some([rate(&t), rate(&c)]);
    Ok(estimate)
}

/// Reads the noised fixed-point values of the other modes: `lift` in units of 2^-grid.lift, `spread` as
/// [`FixedScale::spread`] says.
///
/// # Errors
/// When `mode` is `sums` or the confidence is not in 0..1.
pub fn read_fixed(
    mode: Mode,
    lift: i128,
    spread: i128,
    scale: &FixedScale,
    confidence: f64,
) -> Result<Estimate, Error> {
    check_confidence(confidence)?;
    let Grid { lift: lift_point, se: se_point, v: v_point } = scale.grid;
    let real = |value: f64, point: i32| value * to_f64(&exp2(-point));
    let sigma = |m: &Mechanism, point| real(to_f64(&m.sigma2).sqrt(), point);
    let lift_sigma = sigma(&scale.lift, lift_point);
    let variance = match mode {
        Mode::Sums => return Err(Error::misuse("mode sums is read by read_sums")),
        Mode::Variance => (real(spread as f64, v_point) + sigma(&scale.spread, v_point)).max(0.0),
        Mode::Algorithm1 => (real(spread as f64, se_point) + sigma(&scale.spread, se_point)).max(0.0).powi(2),
        // Step 10 squares a noised standard error, negative or not.
        Mode::Algorithm1AsPublished => real(spread as f64, se_point).powi(2),
    };
    let total = (variance + lift_sigma * lift_sigma).sqrt();
    Ok(around(real(lift as f64, lift_point), total, lift_sigma, normal::critical(confidence)))
}

fn around(lift: f64, total: f64, noise: f64, z: f64) -> Estimate {
    let interval = |sd: f64| [lift - z * sd, lift + z * sd];
    let p_value = if total > 0.0 { (2.0 * normal::normal_upper(lift.abs() / total)).min(1.0) } else { 1.0 };
    Estimate {
        lift,
        interval: interval(total),
        noise_interval: interval(noise),
        standard_error: total,
        p_value,
        relative: None,
        rates: None,
    }
}

/// What is guessed about the outcome before anything is spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guess {
    /// Rows of the test arm.
    pub n_test: u64,
    /// Rows of the control arm.
    pub n_control: u64,
    /// Mean clamped outcome.
    pub mean: f64,
    /// Variance of the clamped outcome of one person; without it the largest possible, mean (R - mean).
    pub variance: Option<f64>,
}

impl Guess {
    /// Variance of the clamped outcome of one person.
    fn person(&self, reading: &Reading) -> Result<f64, Error> {
        let clamp = reading.clamp as f64;
        if !(0.0..=clamp).contains(&self.mean) {
            return Err(Error::input(format!(
                "the guessed mean outcome is between 0 and the clamp, {clamp}"
            )));
        }
        Ok(self.variance.unwrap_or(self.mean * (clamp - self.mean)).max(0.0))
    }

    fn arms(&self) -> [f64; 2] {
        [self.n_test as f64, self.n_control as f64]
    }
}

/// The smallest true difference (absolute) that mode `sums` finds with probability `power` at `reading`'s level:
/// (z of the level + z of the power) times the expected standard error.
///
/// # Errors
/// When an arm is below the minimum group, or confidence, power or the guessed mean are out of range.
pub fn minimum_detectable_effect(
    sigma: &SumsSigma,
    guess: &Guess,
    reading: &Reading,
    power: f64,
) -> Result<f64, Error> {
    let person = guess.person(reading)?;
    let least = sigma.minimum_group(reading.minimum_group);
    if (guess.n_test.min(guess.n_control) as f64) < least {
        return Err(Error::input(format!(
            "a group has fewer than {least:.0} rows: nothing will be released"
        )));
    }
    let arms = guess.arms();
    let sampling: f64 = arms.iter().map(|n| person / n).sum();
    let noise: f64 = arms.iter().map(|&n| sigma.noise(guess.mean, n)).sum();
    let tau: f64 = arms.iter().map(|&n| sigma.tau2(guess.mean, n)).sum::<f64>().sqrt();
    Ok(both_z(reading.confidence, power)? * (sampling + tau + noise).sqrt())
}

/// The same for the fixed-point modes, at the scale made for the guessed arm sizes.
///
/// # Errors
/// When `mode` is `sums`, or confidence, power or the guessed mean are out of range.
pub fn minimum_detectable_effect_fixed(
    mode: Mode,
    scale: &FixedScale,
    guess: &Guess,
    reading: &Reading,
    power: f64,
) -> Result<f64, Error> {
    let variance: f64 = guess.person(reading).map(|person| guess.arms().iter().map(|n| person / n).sum())?;
    let (expected, point) = match mode {
        Mode::Variance => (variance, scale.grid.v),
        _ => (variance.sqrt(), scale.grid.se),
    };
    let spread = (expected * to_f64(&exp2(point))) as i128;
    let typical = read_fixed(mode, 0, spread, scale, reading.confidence)?;
    Ok(both_z(reading.confidence, power)? * typical.standard_error)
}

/// z of the level plus z of the power.
fn both_z(confidence: f64, power: f64) -> Result<f64, Error> {
    check_confidence(confidence)?;
    check_confidence(power)?;
    Ok(normal::critical(confidence) + normal::normal_quantile_upper(1.0 - power))
}

/// For the modes with public arm sizes: refuses arms below the study's minimum or [`MINIMUM_GROUP`].
///
/// # Errors
/// When an arm is too small to release anything about it.
pub fn check_public_groups(n_test: u64, n_control: u64, minimum_group: u64) -> Result<(), Error> {
    let least = MINIMUM_GROUP.max(minimum_group);
    if n_test.min(n_control) >= least {
        return Ok(());
    }
    Err(Error::input(format!("a group has fewer than the minimum of {least} rows: not shown")))
}

/// The interval, from noise alone, of a further count of `release.also`.
///
/// # Errors
/// When the confidence is not in 0..1.
pub fn count_interval(count: i128, mechanism: &Mechanism, confidence: f64) -> Result<[f64; 2], Error> {
    check_confidence(confidence)?;
    let half = normal::critical(confidence) * to_f64(&mechanism.sigma2).sqrt();
    Ok([count as f64 - half, count as f64 + half])
}

fn check_confidence(value: f64) -> Result<(), Error> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(Error::input("confidence and power are between 0 and 1, for example 0.95"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Reading = Reading { clamp: 1, confidence: 0.95, minimum_group: 0 };

    /// Without noise the estimate is the textbook two-sample one.
    #[test]
    fn without_noise_it_is_the_textbook() {
        let sigma = SumsSigma { n: 0.0, s: 0.0, q: 0.0 };
        let (t, c) = (NoisyTotals { n: 200_745, s: 33, q: 33 }, NoisyTotals { n: 201_229, s: 115, q: 115 });
        let estimate = read_sums(&t, &c, &sigma, &READING).unwrap();
        let arm = |n: f64, k: f64| (k / n) * (1.0 - k / n) / (n - 1.0);
        let se = (arm(200_745.0, 33.0) + arm(201_229.0, 115.0)).sqrt();
        let lift = 33.0 / 200_745.0 - 115.0 / 201_229.0;
        assert!((estimate.lift - lift).abs() < 1e-18 && (estimate.standard_error / se - 1.0).abs() < 1e-12);
        assert_eq!(estimate.noise_interval, [lift, lift]);
        assert!((estimate.interval[1] - lift - 1.959_963_984_540_054_5 * se).abs() < 1e-15);
        assert!(estimate.p_value < 1e-10);
        assert!((estimate.relative.unwrap() + 0.7124).abs() < 1e-4);
    }

    /// The standard deviation of what noise does to lift and vhat, drawn, against nu and tau.
    #[test]
    fn nu_and_tau_are_the_spread_of_the_noise() {
        let mut rng = base::Seed::from_bytes([5; 32]).into_rng();
        let sigma = SumsSigma { n: 0.0, s: 400.0, q: 30_000.0 };
        let law = |s: f64| {
            crate::gaussian::DiscreteGaussian::new(&crate::rational::ratio((s * s) as i64, 1)).unwrap()
        };
        let (noise_s, noise_q) = (law(sigma.s), law(sigma.q));
        let (n, s, q) = (50_000i128, 100_000i128, 900_000i128);
        let reading = Reading { clamp: 100, ..READING };
        let control = NoisyTotals { n: 1 << 60, s: 0, q: 0 };
        let trials = 4000;
        let (mut lifts, mut spreads) = (Vec::new(), Vec::new());
        let mut arm = sigma.arm(&NoisyTotals { n, s, q }, 100.0);
        for _ in 0..trials {
            let draw = |law: &crate::gaussian::DiscreteGaussian, rng: &mut base::Rng| {
                law.sample_within(rng, 64).unwrap()
            };
            let noised = NoisyTotals { n, s: s + draw(&noise_s, &mut rng), q: q + draw(&noise_q, &mut rng) };
            lifts.push(read_sums(&noised, &control, &sigma, &reading).unwrap().lift);
            spreads.push(sigma.arm(&noised, 100.0).sampling);
        }
        let sd = |xs: &[f64]| {
            let mean = xs.iter().sum::<f64>() / xs.len() as f64;
            (mean, (xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / xs.len() as f64).sqrt())
        };
        // The relative error of a standard deviation from 4000 draws is 1.1 %.
        assert!((sd(&lifts).1 / arm.noise.sqrt() - 1.0).abs() < 0.05);
        assert!((sd(&spreads).1 / arm.tau2.sqrt() - 1.0).abs() < 0.05);
        arm.sampling = (q as f64 - (s as f64).powi(2) / n as f64) / (n as f64 * (n as f64 - 1.0));
        assert!((sd(&spreads).0 - arm.sampling).abs() < 5.0 * arm.tau2.sqrt() / (trials as f64).sqrt());
    }

    #[test]
    fn small_groups_are_refused_on_the_noised_count() {
        let big = NoisyTotals { n: 5000, s: 10, q: 10 };
        let check = |n, sigma_n, study| {
            let sigma = SumsSigma { n: sigma_n, s: 1.0, q: 1.0 };
            let reading = Reading { minimum_group: study, ..READING };
            let small = NoisyTotals { n, ..big };
            (
                read_sums(&small, &big, &sigma, &reading).is_ok(),
                read_sums(&big, &small, &sigma, &reading).is_ok(),
            )
        };
        assert_eq!(check(999, 1.0, 0), (false, false));
        assert_eq!(check(1000, 1.0, 0), (true, true));
        assert_eq!(check(1000, 50.0, 0), (true, true));
        assert_eq!(check(1000, 50.1, 0), (false, false));
        assert_eq!(check(1499, 1.0, 1500), (false, false));
        assert_eq!(check(-3, 1.0, 0), (false, false));
    }

    #[test]
    fn an_effect_of_the_detectable_size_is_found_as_often_as_said() {
        let sigma = SumsSigma { n: 0.0, s: 2.4, q: 5.8 };
        let guess = Guess { n_test: 200_000, n_control: 200_000, mean: 0.00037, variance: None };
        let effect = minimum_detectable_effect(&sigma, &guess, &READING, 0.8).unwrap();
        assert!((1.5e-4..2.2e-4).contains(&effect), "{effect:e}");
        assert!(minimum_detectable_effect(&sigma, &Guess { mean: 2.0, ..guess }, &READING, 0.8).is_err());
        assert!(minimum_detectable_effect(&sigma, &Guess { n_test: 9, ..guess }, &READING, 0.8).is_err());
        assert!(minimum_detectable_effect(&sigma, &guess, &READING, 1.0).is_err());
    }

    #[test]
    fn the_modes_see_effects_of_like_size() {
        let (rho, guess) = (
            crate::rational::ratio(1, 1),
            Guess { n_test: 100_000, n_control: 100_000, mean: 0.05, variance: None },
        );
        let bounds = crate::scale::Bounds { clamp: 1, max_events: 1 };
        let viewer = crate::Viewer::Advertiser;
        let sums = crate::scale::sums(viewer, crate::scale::Family::Overall, bounds, &rho, &[]).unwrap();
        let of_sums = minimum_detectable_effect(&SumsSigma::from(&sums), &guess, &READING, 0.8).unwrap();
        for mode in [Mode::Variance, Mode::Algorithm1, Mode::Algorithm1AsPublished] {
            let scale =
                crate::scale::fixed_point(mode, viewer, (100_000, 100_000), bounds, &rho, &[]).unwrap();
            let effect = minimum_detectable_effect_fixed(mode, &scale, &guess, &READING, 0.8).unwrap();
            // Chance alone: 2.8 sqrt(2 * .0475 / 1e5) = .00273.
            assert!(
                (0.00273..0.0030).contains(&effect) && (effect / of_sums - 1.0).abs() < 0.1,
                "{mode:?} {effect}"
            );
        }
        assert!(
            minimum_detectable_effect_fixed(
                Mode::Sums,
                &crate::scale::fixed_point(Mode::Variance, viewer, (1000, 1000), bounds, &rho, &[]).unwrap(),
                &guess,
                &READING,
                0.8
            )
            .is_err()
        );
    }

    #[test]
    fn public_groups_and_counts() {
        assert!(check_public_groups(1000, 1000, 0).is_ok() && check_public_groups(1000, 999, 0).is_err());
        assert!(check_public_groups(1499, 5000, 1500).is_err());
        let mechanism =
            Mechanism { rho: crate::rational::ratio(1, 10), sigma2: crate::rational::ratio(100, 1) };
        let [low, high] = count_interval(50, &mechanism, 0.95).unwrap();
        assert!((low - 30.4).abs() < 0.01 && (high - 69.6).abs() < 0.01);
    }
}

//! From noised values to an estimate: centre, intervals, p-value, rates. Post-processing only: it spends
//! nothing.
//!
//! Doubles suffice here: every input carries noise far above their rounding. Formulas and their derivations:
//! `docs/protocols/release.md`. All results are per person, in the units of the outcome.

use crate::fixed::Grid;
use crate::joint::{ArmReading, FamilyMechanism, standard_error};
use crate::normal;
use crate::rational::{exp2, to_f64};
use crate::scale::{FixedScale, GaussianMechanism, ReleaseMode};
use base::{Error, grouped};
use serde::{Deserialize, Serialize};

/// Fewest rows of an arm, noised, for which the intervals of mode `sums` were checked.
pub const MINIMUM_GROUP: u64 = 1000;
/// And the fewest in standard deviations of the noise on n.
pub const MINIMUM_GROUP_SIGMAS: f64 = 20.0;

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
pub struct ArmRate {
    /// S / n as it came out, so that means subtract to the difference: noise can put it below 0 or above R.
    pub mean: f64,
    /// Half-width of the full interval: chance and noise.
    pub half_width: f64,
    /// Half-width from noise alone.
    pub noise_half_width: f64,
}

/// An estimate of the difference of means, test minus control, of the *clamped* outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiftEstimate {
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
    pub rates: Option<[ArmRate; 2]>,
}

/// The smallest n, as read, of an arm that may be shown.
#[must_use]
pub fn minimum_group(joint: &FamilyMechanism, study: u64) -> f64 {
    let sigma_n = joint.covariance()[0][0].sqrt();
    (MINIMUM_GROUP.max(study) as f64).max(MINIMUM_GROUP_SIGMAS * sigma_n)
}

/// Reads n, S and Q of both arms, as [`FamilyMechanism::decode`] gives them, in mode `sums`.
///
/// # Errors
/// When an arm is below the minimum group, which is tested on the noised count. Where there is no noise
/// nothing was released, and no group is too small.
pub fn read_sums(
    test: [f64; 3],
    control: [f64; 3],
    joint: &FamilyMechanism,
    reading: &Reading,
) -> Result<LiftEstimate, Error> {
    check_confidence(reading.confidence)?;
    let least = minimum_group(joint, reading.minimum_group);
    for (name, [n, ..]) in [("test", test), ("control", control)] {
        if n < least && !joint.is_without_noise() {
            return Err(Error::input(format!(
                "the {name} group has about {} rows, fewer than the minimum of {}: not shown",
                whole(n.max(0.0)),
                whole(least)
            )));
        }
    }
    let (t, c) = (joint.arm(test), joint.arm(control));
    let lift = test[1] / test[0] - control[1] / control[0];
    let noise = t.noise + c.noise;
    let z = normal::critical(reading.confidence);
    let rate = |arm: &ArmReading, [n, s, _]: [f64; 3]| ArmRate {
        mean: s / n,
        half_width: z * ((arm.sampling + arm.tau2.sqrt()).max(0.0) + arm.noise).sqrt(),
        noise_half_width: z * arm.noise.sqrt(),
    };
    let mut estimate = around(lift, standard_error(&t, &c), noise.sqrt(), z);
    let rates = [rate(&t, test), rate(&c, control)];
    // A part of what may be nothing is no number to act on.
    estimate.relative = (rates[1].mean > rates[1].half_width).then(|| lift / rates[1].mean);
    estimate.rates = Some(rates);
    Ok(estimate)
}

/// Reads the noised fixed-point values of the other modes: `lift` in units of 2^-grid.lift, `spread` as
/// [`FixedScale::spread`] says.
///
/// # Errors
/// When `mode` is `sums` or the confidence is not in 0..1.
pub fn read_fixed(
    mode: ReleaseMode,
    lift: f64,
    spread: f64,
    scale: &FixedScale,
    confidence: f64,
) -> Result<LiftEstimate, Error> {
    check_confidence(confidence)?;
    let Grid { lift: lift_point, se: se_point, v: v_point } = scale.grid;
    let real = |value: f64, point: i32| value * to_f64(&exp2(-point));
    let sigma = |m: &GaussianMechanism, point| real(to_f64(&m.sigma2).sqrt(), point);
    let lift_sigma = sigma(&scale.lift, lift_point);
    let variance = match mode {
        ReleaseMode::Sums => return Err(Error::misuse("mode sums is read by read_sums")),
        ReleaseMode::Variance => (real(spread, v_point) + sigma(&scale.spread, v_point)).max(0.0),
        ReleaseMode::Algorithm1 => (real(spread, se_point) + sigma(&scale.spread, se_point)).max(0.0).powi(2),
        // Step 10 squares a noised standard error, negative or not.
        ReleaseMode::Algorithm1AsPublished => real(spread, se_point).powi(2),
    };
    let total = (variance + lift_sigma * lift_sigma).sqrt();
    Ok(around(real(lift, lift_point), total, lift_sigma, normal::critical(confidence)))
}

fn around(lift: f64, total: f64, noise: f64, z: f64) -> LiftEstimate {
    let interval = |sd: f64| [lift - z * sd, lift + z * sd];
    let p_value = if total > 0.0 { (2.0 * normal::normal_upper(lift.abs() / total)).min(1.0) } else { 1.0 };
    LiftEstimate {
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

/// The smallest true difference (absolute) that mode `sums` finds with probability `power` at `reading`'s
/// level: (z of the level + z of the power) times the expected standard error.
///
/// # Errors
/// When an arm is below the minimum group, or confidence, power or the guessed mean are out of range.
pub fn minimum_detectable_effect(
    joint: &FamilyMechanism,
    guess: &Guess,
    reading: &Reading,
    power: f64,
) -> Result<f64, Error> {
    let person = guess.person(reading)?;
    let least = minimum_group(joint, reading.minimum_group);
    if (guess.n_test.min(guess.n_control) as f64) < least {
        return Err(Error::input(format!(
            "a group has fewer than {} of the assumed rows (--rows): nothing would be released",
            whole(least)
        )));
    }
    let [t, c] = guess.arms().map(|n| joint.expected(n, guess.mean, person));
    Ok(both_z(reading.confidence, power)? * standard_error(&t, &c))
}

/// The same for the fixed-point modes, at the scale made for the guessed arm sizes.
///
/// # Errors
/// When `mode` is `sums`, or confidence, power or the guessed mean are out of range.
pub fn minimum_detectable_effect_fixed(
    mode: ReleaseMode,
    scale: &FixedScale,
    guess: &Guess,
    reading: &Reading,
    power: f64,
) -> Result<f64, Error> {
    let variance: f64 = guess.person(reading).map(|person| guess.arms().iter().map(|n| person / n).sum())?;
    let (expected, point) = match mode {
        ReleaseMode::Variance => (variance, scale.grid.v),
        _ => (variance.sqrt(), scale.grid.se),
    };
    let spread = expected * to_f64(&exp2(point));
    let typical = read_fixed(mode, 0.0, spread, scale, reading.confidence)?;
    Ok(both_z(reading.confidence, power)? * typical.standard_error)
}

/// Half of the interval at a confidence, where so small an effect is detected with such a power.
///
/// # Errors
/// When confidence or power are out of range.
pub fn half_width(effect: f64, confidence: f64, power: f64) -> Result<f64, Error> {
    Ok(effect * normal::critical(confidence) / both_z(confidence, power)?)
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
    Err(Error::input(format!(
        "a group has fewer than the minimum of {} rows: not shown",
        whole(least as f64)
    )))
}

/// A number of rows, for people.
fn whole(rows: f64) -> String {
    grouped(&format!("{rows:.0}"))
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
    use crate::joint::Change;
    use crate::rational::ratio;

    const READING: Reading = Reading { clamp: 1, confidence: 0.95, minimum_group: 0 };

    /// So much rho that noise is nothing beside the sums.
    fn exact(change: Change, clamp: u128) -> FamilyMechanism {
        FamilyMechanism::new(change, clamp, &ratio(1_000_000_000_000i64, 1)).unwrap()
    }

    #[test]
    fn without_noise_it_is_the_textbook() {
        let (t, c) = ([200_745.0, 33.0, 33.0], [201_229.0, 115.0, 115.0]);
        let estimate = read_sums(t, c, &exact(Change::Outcome, 1), &READING).unwrap();
        let arm = |n: f64, k: f64| (k / n) * (1.0 - k / n) / (n - 1.0);
        let se = (arm(200_745.0, 33.0) + arm(201_229.0, 115.0)).sqrt();
        let lift = 33.0 / 200_745.0 - 115.0 / 201_229.0;
        assert!((estimate.lift - lift).abs() < 1e-18 && (estimate.standard_error / se - 1.0).abs() < 1e-6);
        assert!(estimate.noise_interval.iter().all(|end| (end - lift).abs() < 1e-10));
        assert!((estimate.interval[1] - lift - 1.959_963_984_540_054_5 * se).abs() < 1e-10);
        assert!(estimate.p_value < 1e-10);
        assert!((estimate.relative.unwrap() + 0.7124).abs() < 1e-4);
    }

    /// A sum that noise made negative is not rounded up: the arms subtract to the difference.
    #[test]
    fn means_subtract_to_the_difference() {
        let joint = FamilyMechanism::new(Change::Person, 100, &ratio(1, 10)).unwrap();
        for control in [-700.0, -3.0, 0.0, 41.0] {
            let [t, c] = [[20_000.0, 9_000.0, 90_000.0], [20_000.0, control, 400.0]];
            let estimate = read_sums(t, c, &joint, &Reading { clamp: 100, ..READING }).unwrap();
            let [test, other] = estimate.rates.unwrap();
            assert!((test.mean - other.mean - estimate.lift).abs() < 1e-12, "{estimate:?}");
            assert!((other.mean - control / 20_000.0).abs() < 1e-15 && other.half_width > 0.0);
            assert_eq!(estimate.relative, None, "a mean that may be 0");
        }
    }

    #[test]
    fn small_groups_are_refused_on_the_noised_count() {
        let big = [5000.0, 10.0, 10.0];
        let check = |n, joint: &FamilyMechanism, study| {
            let reading = Reading { minimum_group: study, ..READING };
            let small = [n, 10.0, 10.0];
            (read_sums(small, big, joint, &reading).is_ok(), read_sums(big, small, joint, &reading).is_ok())
        };
        let known = exact(Change::Outcome, 1);
        assert_eq!(check(999.0, &known, 0), (false, false));
        assert_eq!(check(1000.0, &known, 0), (true, true));
        assert_eq!(check(1499.0, &known, 1500), (false, false));
        assert_eq!(check(-3.0, &known, 0), (false, false));
        // n has a standard deviation of sqrt(2 / rho): 50 at 2 / 2500.
        let hidden = |rho: (i64, i64)| FamilyMechanism::new(Change::Person, 1, &ratio(rho.0, rho.1)).unwrap();
        assert_eq!(check(1000.0, &hidden((2, 2500)), 0), (true, true));
        assert_eq!(check(1000.0, &hidden((2, 2511)), 0), (false, false));
    }

    #[test]
    fn an_effect_of_the_detectable_size_is_found_as_often_as_said() {
        let joint = FamilyMechanism::new(Change::Outcome, 1, &ratio(1, 10)).unwrap();
        let guess = Guess { n_test: 200_000, n_control: 200_000, mean: 0.00037, variance: None };
        let effect = minimum_detectable_effect(&joint, &guess, &READING, 0.8).unwrap();
        assert!((1.5e-4..2.2e-4).contains(&effect), "{effect:e}");
        assert!(minimum_detectable_effect(&joint, &Guess { mean: 2.0, ..guess }, &READING, 0.8).is_err());
        assert!(minimum_detectable_effect(&joint, &Guess { n_test: 9, ..guess }, &READING, 0.8).is_err());
        assert!(minimum_detectable_effect(&joint, &guess, &READING, 1.0).is_err());
    }

    #[test]
    fn the_modes_see_effects_of_like_size() {
        let (rho, guess) =
            (ratio(1, 1), Guess { n_test: 100_000, n_control: 100_000, mean: 0.05, variance: None });
        let bounds = crate::scale::ClampBounds { clamp: 1 };
        let viewer = crate::ReaderRole::Advertiser;
        let joint = FamilyMechanism::on_lattices(Change::Person, 1, &rho).unwrap();
        let of_sums = minimum_detectable_effect(&joint, &guess, &READING, 0.8).unwrap();
        for mode in [ReleaseMode::Variance, ReleaseMode::Algorithm1, ReleaseMode::Algorithm1AsPublished] {
            let scale = crate::scale::fixed_point(mode, viewer, (100_000, 100_000), bounds, &rho).unwrap();
            let effect = minimum_detectable_effect_fixed(mode, &scale, &guess, &READING, 0.8).unwrap();
            // Chance alone: 2.8 sqrt(2 * .0475 / 1e5) = .00273.
            assert!(
                (0.00273..0.0030).contains(&effect) && (effect / of_sums - 1.0).abs() < 0.1,
                "{mode:?} {effect}"
            );
        }
        let scale =
            crate::scale::fixed_point(ReleaseMode::Variance, viewer, (1000, 1000), bounds, &rho).unwrap();
        assert!(minimum_detectable_effect_fixed(ReleaseMode::Sums, &scale, &guess, &READING, 0.8).is_err());
    }

    #[test]
    fn public_groups() {
        assert!(check_public_groups(1000, 1000, 0).is_ok() && check_public_groups(1000, 999, 0).is_err());
        assert!(check_public_groups(1499, 5000, 1500).is_err());
    }
}

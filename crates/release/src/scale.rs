//! Sensitivities, splits of rho, and the variances of the noise: derived here, never read from a study.
//!
//! Neighbouring data, by viewer. The publisher's view protects one user's *outcome* (one arm, one cell). The
//! advertiser's and the public view protect arm, opportunity, time stamp and presence in the trial: a user
//! may be added, removed, or moved to the other arm with another outcome (two cells). All numbers are exact
//! rationals; the shares of a split add up to rho exactly.

use crate::fixed::{self, Grid};
use crate::rational::{Rational, ceil_sqrt, exp2, ratio};
use base::Error;
use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use serde::{Deserialize, Serialize};

/// What is noised and released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseMode {
    /// n, S, Q per arm as integers; n may be secret. The default.
    Sums,
    /// The lift and its variance in fixed point; n is public.
    Variance,
    /// The lift and its standard error with the corrected sensitivity; n is public.
    Algorithm1,
    /// Steps 5 to 10 of the paper verbatim, for reproduction: it costs more than it says and under-covers.
    Algorithm1AsPublished,
}

/// Whose view is noised: what the number may tell depends on what its reader already knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReaderRole {
    /// Knows the arms; the outcomes are protected from it.
    Publisher,
    /// Knows the outcomes; arm, opportunity, time and presence are protected from it.
    Advertiser,
    /// Knows neither.
    Public,
}

/// The public bounds that sensitivities come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClampBounds {
    /// R: the most that one user adds to S. At least 1, at most [`fixed::CLAMP`].
    pub clamp: u64,
}

/// One Gaussian mechanism: its variance and its charge. The same variance is used in every cell and arm it
/// covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaussianMechanism {
    /// The zCDP charge, all cells and both arms together.
    pub rho: Rational,
    /// The variance of the noise, in the units of the noised integer, squared.
    pub sigma2: Rational,
}

impl GaussianMechanism {
    /// The mechanism of squared L2 sensitivity `delta2` that costs `rho`.
    fn new(delta2: &Rational, rho: Rational) -> Self {
        Self { sigma2: delta2 / (&rho * BigInt::from(2)), rho }
    }
}

/// The mechanisms of the fixed-point modes; variances in grid units, squared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedScale {
    /// Where the binary points are.
    pub grid: Grid,
    /// The lift, in units of 2^-grid.lift.
    pub lift: GaussianMechanism,
    /// `variance`: v in units of 2^-grid.v. Otherwise se in units of 2^-grid.se.
    pub spread: GaussianMechanism,
    /// The zCDP charge the ledger books. Equals rho but for `algorithm1-as-published`, where it is the true
    /// cost.
    pub charge: Rational,
}

impl FixedScale {
    /// The same without any noise: what it reads is exact.
    #[must_use]
    pub fn without_noise(&self) -> Self {
        let exact = |of: &GaussianMechanism| GaussianMechanism { sigma2: Rational::zero(), ..of.clone() };
        Self { lift: exact(&self.lift), spread: exact(&self.spread), ..self.clone() }
    }
}

/// Largest differences between neighbouring data for given, public n: exact, se as its square.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sensitivity {
    /// Of the lift.
    pub lift: Rational,
    /// Of the standard error, squared.
    pub se2: Rational,
    /// Of the variance v = se^2.
    pub v: Rational,
}

impl Sensitivity {
    /// For a viewer. `n_test` and `n_control` are at least 2.
    #[must_use]
    pub fn of(viewer: ReaderRole, n_test: u64, n_control: u64, clamp: u64) -> Self {
        let (test, control) = (ratio(clamp, n_test), ratio(clamp, n_control));
        if viewer == ReaderRole::Publisher {
            let one = test.max(control);
            return Self { se2: &one * &one, v: &one * &one, lift: one };
        }
        let squares = &test * &test + &control * &control;
        Self { lift: test + control, se2: squares.clone(), v: squares }
    }

    /// As printed in steps 5 and 6 of Algorithm 1, for every viewer. It has no variance; `v` is 0.
    #[must_use]
    pub fn as_published(n_test: u64, n_control: u64, clamp: u64) -> Self {
        let least = BigInt::from(n_test.min(n_control));
        let se2 = Rational::new((&least - 1) * clamp * clamp, least.pow(3));
        Self { lift: ratio(clamp, n_test) + ratio(clamp, n_control), se2, v: Rational::zero() }
    }
}

/// The epsilon of (epsilon, delta)-DP that rho-zCDP implies: the least over alpha > 1 of alpha rho + ln(1 - 1
/// / alpha) + (ln(1 / delta) - ln alpha) / (alpha - 1) (Canonne, Kamath and Steinke 2020, Proposition 12 and
/// Corollary 13). Every alpha gives a bound that holds, so the search need not be exact; 0.1 and 1e-6 give
/// 2.142. Never above the closed form rho + 2 sqrt(rho ln(1 / delta)). `delta` is in 0..1.
#[must_use]
pub fn rho_to_epsilon(rho: f64, delta: f64) -> f64 {
    // Written in beta = alpha - 1, which may be near 0.
    let bound = |log_beta: f64| {
        let beta = log_beta.exp();
        let alpha = 1.0 + beta;
        alpha * rho + log_beta - alpha.ln() + (-delta.ln() - alpha.ln()) / beta
    };
    // One minimum: the tangent falls before it and rises after it. The closed form's own alpha lies between
    // the ends.
    let (mut low, mut high) = (-30.0f64, 60.0f64);
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if bound(a) <= bound(b) { high = b } else { low = a }
    }
    let closed = rho + 2.0 * (rho * -delta.ln()).sqrt();
    bound(low).min(closed).max(0.0)
}

/// The mechanisms of the fixed-point modes for public arm sizes.
///
/// # Errors
/// When a size or bound is out of range for the fixed point, or `mode` is `sums`.
pub fn fixed_point(
    mode: ReleaseMode,
    viewer: ReaderRole,
    (n_test, n_control): (u64, u64),
    bounds: ClampBounds,
    rho: &Rational,
) -> Result<FixedScale, Error> {
    check(bounds, rho)?;
    let grid = Grid::new(n_test, n_control, bounds.clamp)?;
    let lift_parts = match mode {
        ReleaseMode::Sums => {
            return Err(Error::misuse("mode sums has no fixed point; the sums are release::joint"));
        }
        ReleaseMode::Variance => 17,
        ReleaseMode::Algorithm1 | ReleaseMode::Algorithm1AsPublished => 10,
    };
    let rho_lift = rho * BigInt::from(lift_parts) / BigInt::from(20);
    let rho_spread = rho - &rho_lift;
    let exact = Sensitivity::of(viewer, n_test, n_control, bounds.clamp);
    let lift2 = on_grid(&(&exact.lift * &exact.lift), grid.lift, fixed::LIFT_SLACK);
    let spread2 = match mode {
        ReleaseMode::Variance => on_grid(&(&exact.v * &exact.v), grid.v, fixed::V_SLACK),
        _ => on_grid(&exact.se2, grid.se, fixed::SE_SLACK),
    };
    let (lift, spread) = if mode == ReleaseMode::Algorithm1AsPublished {
        let printed = Sensitivity::as_published(n_test, n_control, bounds.clamp);
        (
            GaussianMechanism::new(&(&printed.lift * &printed.lift * exp2(2 * grid.lift)), rho_lift),
            GaussianMechanism::new(&(printed.se2 * exp2(2 * grid.se)), rho_spread),
        )
    } else {
        (GaussianMechanism::new(&lift2, rho_lift), GaussianMechanism::new(&spread2, rho_spread))
    };
    let cost = |delta2: &Rational, m: &GaussianMechanism| delta2 / (&m.sigma2 * BigInt::from(2));
    let charge = cost(&lift2, &lift) + cost(&spread2, &spread);
    Ok(FixedScale { grid, lift, spread, charge })
}

/// The square of ceil(delta 2^f) + slack: what two neighbours' fixed-point values may differ by.
fn on_grid(delta2: &Rational, f: i32, slack: u32) -> Rational {
    let steps = ceil_sqrt(&(delta2 * exp2(2 * f))) + slack;
    Rational::from_integer(&steps * &steps)
}

impl ReleaseMode {
    /// All modes by the name a study file uses.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("sums", Self::Sums),
        ("variance", Self::Variance),
        ("algorithm1", Self::Algorithm1),
        ("algorithm1-as-published", Self::Algorithm1AsPublished),
    ];

    /// The name a study file uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// The exact guarantee, for the report.
    #[must_use]
    pub fn guarantee(self, viewer: ReaderRole) -> &'static str {
        match (self, viewer) {
            (Self::Sums, ReaderRole::Publisher) => {
                "rho-zCDP when one user's outcome is added or removed, or its values change; the arm sizes \
                 are exact, because the publisher knows them: do not pass on"
            }
            (Self::Sums, _) => {
                "rho-zCDP when one user is added or removed, or its values or arm change; the arm sizes are \
                 themselves noised"
            }
            (Self::Variance | Self::Algorithm1, ReaderRole::Publisher) => {
                "rho-zCDP when one user's outcome is replaced, for public arm sizes"
            }
            (Self::Variance | Self::Algorithm1, _) => {
                "rho-zCDP when one user's outcome is replaced or two users exchange arms, for public arm \
                 sizes; no statement when an arm size changes"
            }
            (Self::Algorithm1AsPublished, _) => {
                "for reproduction only: the printed noise scales cost more than the stated rho (the charge \
                 booked \
                 is the true one, for public arm sizes) and the interval covers less often than it says"
            }
        }
    }
}

fn check(bounds: ClampBounds, rho: &Rational) -> Result<(), Error> {
    check_rho(rho)?;
    if bounds.clamp == 0 {
        return Err(Error::input("the clamp is at least 1"));
    }
    if bounds.clamp > fixed::CLAMP {
        return Err(Error::limit("release::fixed::CLAMP", bounds.clamp, fixed::CLAMP));
    }
    Ok(())
}

fn check_rho(rho: &Rational) -> Result<(), Error> {
    if rho.is_positive() { Ok(()) } else { Err(Error::input("rho is a positive number, for example 0.1")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: ClampBounds = ClampBounds { clamp: 7 };
    const VIEWERS: [ReaderRole; 3] = [ReaderRole::Publisher, ReaderRole::Advertiser, ReaderRole::Public];

    #[test]
    fn as_published_is_charged_what_it_costs() {
        let rho = ratio(1, 1);
        let n = 1_000_000;
        for (viewer, expected) in [(ReaderRole::Advertiser, 1.5), (ReaderRole::Publisher, 0.625)] {
            let mode = ReleaseMode::Algorithm1AsPublished;
            let scale = fixed_point(mode, viewer, (n, n), BOUNDS, &rho).unwrap();
            // rho1 + 2 rho2 for a swap; rho1 / 4 + rho2 for one outcome; the grid adds a few millionths.
            let charge = crate::rational::to_f64(&scale.charge);
            assert!((charge - expected).abs() < 2e-5 && charge > expected, "{charge}");
        }
        for mode in [ReleaseMode::Variance, ReleaseMode::Algorithm1] {
            for viewer in VIEWERS {
                let scale = fixed_point(mode, viewer, (n, 1000), BOUNDS, &rho).unwrap();
                assert_eq!(scale.charge, rho);
            }
        }
    }

    #[test]
    fn epsilon_of_the_sample_study() {
        // Numbers of an independent search over a grid of alpha.
        for (rho, epsilon) in
            [(0.1, 2.14194), (0.11, 2.25608), (0.05, 1.47159), (0.01, 0.62169), (1.0, 7.76622)]
        {
            let found = rho_to_epsilon(rho, 1e-6);
            assert!((found - epsilon).abs() < 2e-5, "{rho}: {found}");
        }
        assert_eq!(rho_to_epsilon(0.0, 1e-6), 0.0);
    }

    /// The Gaussian mechanism's own law: the privacy profile of sensitivity 1 and variance 1 / (2 rho) at the
    /// epsilon is below the delta, and not by much.
    #[test]
    fn epsilon_holds_for_the_gaussian_itself() {
        use crate::normal::normal_upper as upper;
        for (rho, delta) in [(0.1f64, 1e-6f64), (0.11, 1e-6), (0.01, 1e-6), (0.5, 1e-5), (2.0, 1e-9)] {
            let (epsilon, sigma) = (rho_to_epsilon(rho, delta), (0.5 / rho).sqrt());
            let at = |shift: f64| upper(epsilon * sigma + shift / sigma);
            let true_delta = at(-0.5) - epsilon.exp() * at(0.5);
            assert!(true_delta <= delta && true_delta > delta / 20.0, "{rho}, {delta}: {true_delta}");
            assert!(epsilon < rho + 2.0 * (rho * -delta.ln()).sqrt());
        }
    }

    #[test]
    fn bad_settings_are_refused() {
        let rho = ratio(1, 10);
        let with = |clamp| {
            fixed_point(ReleaseMode::Variance, ReaderRole::Public, (1000, 1000), ClampBounds { clamp }, &rho)
        };
        assert!(with(fixed::CLAMP).is_ok() && with(fixed::CLAMP + 1).is_err() && with(0).is_err());
        assert!(fixed_point(ReleaseMode::Sums, ReaderRole::Public, (10, 10), BOUNDS, &rho).is_err());
    }

    proptest! {
        #[test]
        fn shares_add_up_exactly(millis in 1u64..100_000, clamp in 1u64..=fixed::CLAMP, v in 0usize..3) {
            let rho = ratio(millis, 1000);
            let groups = (1000, 2000);
            let bounds = ClampBounds { clamp };
            let fixed = fixed_point(ReleaseMode::Variance, VIEWERS[v], groups, bounds, &rho).unwrap();
            prop_assert_eq!(fixed.charge, rho);
        }
    }
}

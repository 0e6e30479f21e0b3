//! How often the intervals cover the truth, by simulation: what the documentation quotes and a test guards.
//!
//! A trial draws both arms' totals from an outcome law, noises them with the shipped scales and sampler, reads them
//! with the shipped rules, and asks whether the interval holds the law's difference of clamped means.

use crate::alias::Sampler;
use crate::fixed::{self, Totals};
use crate::gaussian::DiscreteGaussian;
use crate::joint::{self, Change, Joint};
use crate::modes::{self, Reading};
use crate::normal::{ln_gamma, normal_quantile_upper};
use crate::rational::Rational;
use crate::scale::{self, Bounds, Mechanism, Mode, Viewer};
use base::{Error, Rng, Seed};

/// An outcome law: values in 0..=clamp with their probabilities, per arm.
#[derive(Clone, Debug)]
pub struct Law {
    /// Its name.
    pub name: &'static str,
    /// R.
    pub clamp: u64,
    /// The test arm.
    pub test: Vec<(u64, f64)>,
    /// The control arm.
    pub control: Vec<(u64, f64)>,
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Mode.
    pub mode: Mode,
    /// View.
    pub viewer: Viewer,
    /// Rows per arm.
    pub n: u64,
    /// Budget of the view.
    pub rho: Rational,
    /// Level.
    pub confidence: f64,
    /// Trials.
    pub trials: u32,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Share of the trials whose interval held the truth.
    pub covered: f64,
    /// Mean width over that of the interval without any noise.
    pub width: f64,
}

/// The laws of the documentation: five common ones, and one with nearly every outcome at the clamp.
#[must_use]
pub fn laws() -> Vec<Law> {
    let coin = |p: f64| vec![(0, 1.0 - p), (1, p)];
    let uniform = |scale: f64| {
        (1..=128).map(|u| (((f64::from(u) * scale) as u64).min(128), 1.0 / 128.0)).collect::<Vec<_>>()
    };
    vec![
        Law { name: "1 % convert", clamp: 1, test: coin(0.011), control: coin(0.01) },
        Law { name: "5 % convert", clamp: 1, test: coin(0.055), control: coin(0.05) },
        Law {
            name: "purchases, R = 200",
            clamp: 200,
            test: purchases(0.033, 42.0, 200),
            control: purchases(0.03, 40.0, 200),
        },
        Law {
            name: "purchases, R = 500",
            clamp: 500,
            test: purchases(0.033, 42.0, 500),
            control: purchases(0.03, 40.0, 500),
        },
        Law { name: "uniform", clamp: 128, test: uniform(1.02), control: uniform(1.0) },
        Law { name: "98 % convert", clamp: 1, test: coin(0.981), control: coin(0.98) },
    ]
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

/// Simulates one plan on one law.
///
/// # Errors
/// When the plan is out of range for its mode, or its arms are below the minimum group.
pub fn simulate(law: &Law, plan: &Plan, seed: Seed) -> Result<Coverage, Error> {
    let mut rng = seed.into_rng();
    let mean = |atoms: &[(u64, f64)]| atoms.iter().map(|&(x, p)| x as f64 * p).sum::<f64>();
    let truth = mean(&law.test) - mean(&law.control);
    let release = Release::new(law, plan)?;
    let reference = crate::normal::critical(plan.confidence);
    let (mut covered, mut width) = (0u32, 0.0);
    for _ in 0..plan.trials {
        let totals = [&law.test, &law.control].map(|atoms| totals(atoms, plan.n, &mut rng));
        let estimate = release.estimate(&totals, law, plan, &mut rng)?;
        covered += u32::from((estimate.interval[0]..=estimate.interval[1]).contains(&truth));
        let exact = crate::rational::to_f64(&(totals[0].variance() + totals[1].variance())).sqrt();
        width += 0.5 * (estimate.interval[1] - estimate.interval[0]) / (reference * exact.max(1e-300));
    }
    let trials = f64::from(plan.trials);
    Ok(Coverage { covered: f64::from(covered) / trials, width: width / trials })
}

/// The mechanisms of a plan, prepared once.
enum Release {
    Sums { joint: Joint, noises: Vec<Sampler> },
    Fixed(Box<Fixed>),
}

/// Both values of a fixed-point mode.
struct Fixed {
    scale: scale::FixedScale,
    lift: DiscreteGaussian,
    spread: DiscreteGaussian,
}

impl Release {
    fn new(law: &Law, plan: &Plan) -> Result<Self, Error> {
        let gaussian = |m: &Mechanism| DiscreteGaussian::new(&m.sigma2);
        if plan.mode == Mode::Sums {
            let change = match plan.viewer {
                Viewer::Publisher => Change::Outcome,
                Viewer::Advertiser | Viewer::Public => Change::Person,
            };
            let joint = Joint::on_lattices(change, law.clamp.into(), &plan.rho)?;
            let noises = joint.outputs().iter().map(joint::Output::sampler).collect::<Result<_, _>>()?;
            return Ok(Self::Sums { joint, noises });
        }
        let bounds = Bounds { clamp: law.clamp };
        let scale = scale::fixed_point(plan.mode, plan.viewer, (plan.n, plan.n), bounds, &plan.rho)?;
        let (lift, spread) = (gaussian(&scale.lift)?, gaussian(&scale.spread)?);
        Ok(Self::Fixed(Box::new(Fixed { scale, lift, spread })))
    }

    fn estimate(
        &self,
        totals: &[Totals; 2],
        law: &Law,
        plan: &Plan,
        rng: &mut Rng,
    ) -> Result<modes::Estimate, Error> {
        match self {
            Self::Sums { joint, noises } => {
                let mut read = |arm: &Totals| {
                    let totals = [i128::from(arm.n), i128::from(arm.s), arm.q as i128];
                    let exact = joint.encode(totals).into_iter();
                    let noised: Vec<i128> =
                        exact.zip(noises).map(|(value, noise)| value + noise.sample(rng)).collect();
                    joint.decode(&noised, totals[0])
                };
                let (test, control) = (read(&totals[0]), read(&totals[1]));
                let reading = Reading { clamp: law.clamp, confidence: plan.confidence, minimum_group: 0 };
                modes::read_sums(test, control, joint, &reading)
            }
            Self::Fixed(fixed) => {
                let Fixed { scale, lift, spread } = &**fixed;
                let values = fixed::values(&totals[0], &totals[1], law.clamp)?;
                let exact = if plan.mode == Mode::Variance { values.v } else { values.se };
                let lift = i128::from(values.lift) + lift.sample_within(rng, lift.width())?;
                let spread = i128::from(exact) + spread.sample_within(rng, spread.width())?;
                modes::read_fixed(plan.mode, lift as f64, spread as f64, scale, plan.confidence)
            }
        }
    }
}

/// Totals of `n` independent outcomes: a multinomial draw, atom after atom.
fn totals(atoms: &[(u64, f64)], n: u64, rng: &mut Rng) -> Totals {
    let (mut left, mut rest) = (n, 1.0);
    let mut totals = Totals { n, s: 0, q: 0 };
    for (i, &(value, p)) in atoms.iter().enumerate() {
        let count = if i + 1 == atoms.len() { left } else { binomial(left, (p / rest).min(1.0), rng) };
        left -= count;
        rest -= p;
        totals.s += count * value;
        totals.q += u128::from(count) * u128::from(value) * u128::from(value);
    }
    totals
}

/// A binomial draw by inversion outwards from the mode: about as many steps as its standard deviation.
fn binomial(n: u64, p: f64, rng: &mut Rng) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    let (count, odds) = (n as f64, p / (1.0 - p));
    let mode = ((count + 1.0) * p).floor().min(count);
    let choose = ln_gamma(count + 1.0) - ln_gamma(mode + 1.0) - ln_gamma(count - mode + 1.0);
    let top = (choose + mode * p.ln() + (count - mode) * (-p).ln_1p()).exp();
    let mut left = (rand_core::Rng::next_u64(rng) >> 11) as f64 / (1u64 << 53) as f64 - top;
    let (mut low, mut high, mut at_low, mut at_high) = (mode, mode, top, top);
    while left > 0.0 && (at_low > 0.0 || at_high > 0.0) {
        at_high *= odds * (count - high) / (high + 1.0);
        high += 1.0;
        left -= at_high;
        if left <= 0.0 {
            return high as u64;
        }
        at_low *= low / (odds * (count - low + 1.0));
        low -= 1.0;
        left -= at_low;
        if left <= 0.0 {
            return low.max(0.0) as u64;
        }
    }
    mode as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational::ratio;

    #[test]
    fn binomials_have_their_moments() {
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        for (n, p) in [(10u64, 0.3), (1000, 0.001), (100_000, 0.05), (50, 0.98)] {
            let draws: Vec<f64> = (0..20_000).map(|_| binomial(n, p, &mut rng) as f64).collect();
            let (mean, variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
            let got = draws.iter().sum::<f64>() / 20_000.0;
            let spread = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!((got - mean).abs() < 4.5 * (variance / 20_000.0).sqrt(), "{n} {p}: {got}");
            assert!((spread / variance - 1.0).abs() < 0.06, "{n} {p}: {spread}");
        }
    }

    fn covered(mode: Mode, viewer: Viewer, law: &Law, n: u64, rho: (i64, i64)) -> f64 {
        let plan = Plan { mode, viewer, n, rho: ratio(rho.0, rho.1), confidence: 0.95, trials: 2000 };
        simulate(law, &plan, Seed::from_bytes([7; 32])).unwrap().covered
    }

    /// 2000 trials have a standard error of .5 %: a right rule at 95 % falls below 93.5 % for one seed in 1000.
    #[test]
    fn the_shipped_intervals_cover() {
        for law in laws() {
            for viewer in [Viewer::Publisher, Viewer::Advertiser] {
                for (n, rho) in [(10_000, (1, 10)), (100_000, (1, 1))] {
                    let share = covered(Mode::Sums, viewer, &law, n, rho);
                    assert!(share > 0.935, "{} {viewer:?} {n}: {share}", law.name);
                }
            }
            for mode in [Mode::Variance, Mode::Algorithm1] {
                let share = covered(mode, Viewer::Advertiser, &law, 10_000, (1, 10));
                assert!(share > 0.935, "{} {mode:?}: {share}", law.name);
            }
        }
    }

    /// The simulation sees under-coverage where there is some: step 10 as printed.
    #[test]
    fn as_published_it_does_not() {
        let worst = (1..=4)
            .map(|n| 1000 * 10u64.pow(n - 1))
            .map(|n| covered(Mode::Algorithm1AsPublished, Viewer::Public, &laws()[1], n, (1, 100)))
            .fold(1.0, f64::min);
        assert!(worst < 0.935, "{worst}");
    }
}

//! The joint mechanism for n, S and Q: what it costs, what it reads, and how close its intervals are to the
//! narrowest that a trusted curator reaches who knows the data when it shapes the noise.

use base::Seed;
use proptest::prelude::*;
use release::Rational;
use release::coverage::laws;
use release::derived::NoisyMoments;
use release::gaussian::DiscreteGaussian;
use release::joint::{CLAMP, Change, FamilyMechanism, standard_error};
use release::rational::{ratio, to_f64};

const CHANGES: [Change; 2] = [Change::Outcome, Change::Person];
const SIZES: [f64; 4] = [1e3, 1e4, 1e5, 1e6];
const RHOS: [(i64, i64); 3] = [(1, 100), (1, 10), (1, 1)];

// --- What a release is judged by
// -------------------------------------------------------------------------------------

/// An outcome law in units of R: all that an expected width depends on.
#[derive(Clone, Copy, Debug)]
struct Law {
    name: &'static str,
    /// Outcomes are 0 or R = 1.
    coin: bool,
    mean: f64,
    variance: f64,
}

/// The expected squared standard error of the interval, both arms alike with `n` rows, from how noise moves
/// the mean (variance of e_S - m e_n) and the spread (of e_Q - 2 m e_S + (m^2 - 2 v) e_n).
fn squared_error(law: &Law, n: f64, of_mean: f64, of_variance: f64) -> f64 {
    2.0 * law.variance / n + (2.0 * of_variance).sqrt() / (n * n) + 2.0 * of_mean / (n * n)
}

/// Derivatives of both by (n, S, Q).
fn gradients(law: &Law) -> [[f64; 3]; 2] {
    let m = law.mean;
    [[-m, 1.0, 0.0], [m * m - 2.0 * law.variance, -2.0 * m, 1.0]]
}

fn listed() -> Vec<Law> {
    let coin = |name, p: f64| Law { name, coin: true, mean: p, variance: p * (1.0 - p) };
    let law = |name, mean, variance| Law { name, coin: false, mean, variance };
    // Log-normal amounts with log-deviation 1, median R / 5, clamped at R; by quantiles.
    let amounts: Vec<f64> = (0..1000)
        .map(|i| {
            let z = -release::normal::normal_quantile_upper((f64::from(i) + 0.5) / 1000.0);
            (0.2 * z.exp()).min(1.0)
        })
        .collect();
    let mixed = |name, share: f64| {
        let moment = |k: i32| share * amounts.iter().map(|x| x.powi(k)).sum::<f64>() / 1000.0;
        law(name, moment(1), moment(2) - moment(1).powi(2))
    };
    let mut all = vec![
        coin("0.1 % convert", 0.001),
        coin("1 % convert", 0.01),
        coin("half convert", 0.5),
        coin("98 % convert", 0.98),
        law("uniform", 0.5, 1.0 / 12.0),
        mixed("log-normal", 1.0),
        mixed("3 % log-normal", 0.03),
        mixed("30 % log-normal", 0.3),
        law("10 % uniform", 0.05, 0.1 / 3.0 - 0.0025),
        law("all 0", 0.0, 0.0),
        law("all R / 10", 0.1, 0.0),
        law("all R / 2", 0.5, 0.0),
        law("all R", 1.0, 0.0),
    ];
    all.extend(laws().into_iter().filter(|l| l.clamp > 1).map(|l| {
        let r = l.clamp as f64;
        let moment = |k| l.control.iter().map(|&(x, p)| p * (x as f64 / r).powi(k)).sum::<f64>();
        law(l.name.clone().leak(), moment(1), moment(2) - moment(1).powi(2))
    }));
    all
}

/// Everybody has the same outcome: noise is all that there is.
fn point(mean: f64) -> Law {
    Law { name: "all the same", coin: false, mean, variance: 0.0 }
}

/// n, S and Q noised apart, with shares .05, .80, .15 or .85, .15 of rho, as this project did before; in
/// units of R.
fn apart(change: Change, law: &Law, n: f64, rho: f64) -> f64 {
    let (cells, [of_n, of_s, of_q]) = match change {
        Change::Person => (2.0, [0.05, 0.8, 0.15]),
        _ => (1.0, [0.0, 0.85, 0.15]),
    };
    let variance = |share: f64| if share > 0.0 { cells / (2.0 * share * rho) } else { 0.0 };
    let [n2, s2, q2] = [of_n, of_s, of_q].map(variance);
    let m = law.mean;
    squared_error(law, n, s2 + m * m * n2, q2 + 4.0 * m * m * s2)
}

/// The mechanism of this crate; in units of R.
fn ours(joint: &FamilyMechanism, clamp: u128, law: &Law, n: f64) -> f64 {
    let r = clamp as f64;
    let [of_mean, of_variance] = gradients(law);
    let mean = joint.noise([r * of_mean[0], of_mean[1], 0.0]) / (r * r);
    let [a, b, c] = of_variance;
    squared_error(law, n, mean, joint.noise([r * r * a, r * b, c]) / r.powi(4))
}

// --- The curator's optimum
// -------------------------------------------------------------------------------------------

/// What changes of the data do, in a basis in which searching is easy: (n, S - n / 2, S - Q), of it the
/// coordinates that this release has. R = 1. Fewer points than there are outcomes: to the curator's
/// advantage.
struct Curator {
    /// Rows that come or go.
    cells: Vec<Vec<f64>>,
    /// Differences of two rows.
    stays: Vec<Vec<f64>>,
    /// Which coordinates there are.
    kept: Vec<usize>,
}

impl Curator {
    fn new(change: Change, coin: bool) -> Self {
        let first = usize::from(change.knows_rows());
        // Outcomes 0 and 1 are their own squares.
        let kept: Vec<usize> = (first..if coin { 2 } else { 3 }).collect();
        let points: Vec<f64> =
            if coin { vec![0.0, 1.0] } else { (0..=16).map(|i| f64::from(i) / 16.0).collect() };
        let row = |s: f64| kept.iter().map(|&k| [1.0, s - 0.5, s * (1.0 - s)][k]).collect::<Vec<_>>();
        let minus = |a: f64, b: f64| row(a).iter().zip(row(b)).map(|(a, b)| a - b).collect();
        let pairs = points.iter().flat_map(|&a| points.iter().map(move |&b| (a, b)));
        let stays = pairs.filter(|(a, b)| a > b).map(|(a, b)| minus(a, b)).collect();
        let cells = if change.knows_rows() { Vec::new() } else { points.iter().map(|&s| row(s)).collect() };
        Self { cells, stays, kept }
    }

    /// The largest squared length of a change, over all cells, where a row's squared length is given.
    fn most(&self, length: impl Fn(&[f64]) -> f64) -> f64 {
        let most = |all: &[Vec<f64>]| all.iter().map(|d| length(d)).fold(0.0, f64::max);
        let stays = most(&self.stays);
        // Where n is known there are none.
        stays.max(2.0 * most(&self.cells))
    }

    /// A gradient by (n, S, Q) in this basis: S = S' + n / 2, Q = S - T.
    fn gradient(&self, [n, s, q]: [f64; 3]) -> Vec<f64> {
        let all = [n + 0.5 * (s + q), s + q, -q];
        self.kept.iter().map(|&k| all[k]).collect()
    }

    /// No Gaussian noise of these statistics, of any covariance within a cell, beats this: noise of a
    /// combination is at least its own sensitivity's.
    fn bound(&self, law: &Law, n: f64, rho: f64) -> f64 {
        let [mean, variance] = gradients(law).map(|g| {
            let gradient = self.gradient(g);
            self.most(|d| dot(d, &gradient).powi(2)) / (2.0 * rho)
        });
        squared_error(law, n, mean, variance)
    }

    /// The same for noise that the curator may also correlate between the two arms: then each arm's own mean
    /// is known less well than their difference.
    fn bound_across(&self, law: &Law, n: f64, rho: f64) -> f64 {
        let along = |all: &[Vec<f64>], g: &[f64]| all.iter().map(|d| dot(d, g)).collect::<Vec<_>>();
        let most = |g: &[f64], sign: f64| {
            let (stays, cells) = (along(&self.stays, g), along(&self.cells, g));
            let alone = stays.iter().chain(&cells).map(|x| x * x).fold(0.0, f64::max);
            // Who moves goes from one arm and comes to the other.
            let two = cells.iter().flat_map(|a| cells.iter().map(move |b| (a + sign * b).powi(2)));
            two.fold(alone, f64::max) / (2.0 * rho)
        };
        let [mean, variance] = gradients(law).map(|g| self.gradient(g));
        // The difference of the means, the sum of the variances; half of it is what the formula calls one
        // arm's.
        squared_error(law, n, 0.5 * most(&mean, 1.0), 0.5 * most(&variance, -1.0))
    }

    /// The squared error of noise whose precision is L L^T, as strong as rho allows.
    fn error(&self, shape: &[f64], law: &Law, n: f64, rho: f64) -> f64 {
        let lower = lower(shape, self.kept.len());
        // d^T L L^T d is the squared length of L^T d.
        let length = |d: &[f64]| {
            (0..d.len()).map(|j| (j..d.len()).map(|i| lower[i][j] * d[i]).sum::<f64>().powi(2)).sum()
        };
        let scale = self.most(length) / (2.0 * rho);
        let noise = |g: [f64; 3]| scale * solved(&lower, &self.gradient(g));
        let [mean, variance] = gradients(law).map(noise);
        let error = squared_error(law, n, mean, variance);
        // Arms are not read when n is known to less than a twentieth: to the curator as to everybody.
        let rows = if self.kept[0] == 0 { noise([1.0, 0.0, 0.0]) * 400.0 / (n * n) } else { 0.0 };
        error * rows.max(1.0)
    }

    /// The optimum: over all covariances, for this law, these sizes and this rho.
    fn best(&self, law: &Law, n: f64, rho: f64) -> f64 {
        let d = self.kept.len();
        let parameters = d * (d + 1) / 2;
        let objective = |shape: &[f64]| self.error(shape, law, n, rho);
        let mut best = f64::INFINITY;
        for start in [0.0, 0.7, -0.7] {
            let mut at = vec![0.3 * start; parameters];
            (0..d).for_each(|i| at[i] = start * i as f64);
            // Restarts from where it ended: a simplex may collapse at an edge of the largest length.
            for size in [1.0, 0.3, 0.1, 0.03] {
                at = simplex(&objective, &at, size, 250);
            }
            best = best.min(objective(&at));
        }
        best
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A lower triangular matrix: logarithms of the diagonal first, then what is below.
fn lower(shape: &[f64], d: usize) -> Vec<Vec<f64>> {
    let mut rest = shape[d..].iter();
    let entry = |i: usize, j: usize, rest: &mut std::slice::Iter<f64>| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => shape[i].exp(),
        std::cmp::Ordering::Greater => *rest.next().expect("one per entry"),
    };
    (0..d).map(|i| (0..d).map(|j| entry(i, j, &mut rest)).collect()).collect()
}

/// g^T (L L^T)^-1 g.
fn solved(lower: &[Vec<f64>], g: &[f64]) -> f64 {
    let mut y: Vec<f64> = Vec::new();
    for (i, row) in lower.iter().enumerate() {
        y.push((g[i] - dot(row, &y)) / row[i]);
    }
    dot(&y, &y)
}

/// Nelder and Mead (1965): the best point after some steps.
fn simplex(f: &dyn Fn(&[f64]) -> f64, start: &[f64], size: f64, steps: usize) -> Vec<f64> {
    let d = start.len();
    let mut points: Vec<(f64, Vec<f64>)> = (0..=d)
        .map(|i| {
            let mut p = start.to_vec();
            if i > 0 {
                p[i - 1] += size;
            }
            (f(&p), p)
        })
        .collect();
    for _ in 0..steps {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let worst = points[d].clone();
        let centre: Vec<f64> =
            (0..d).map(|k| points[..d].iter().map(|p| p.1[k]).sum::<f64>() / d as f64).collect();
        let at = |t: f64| {
            let p: Vec<f64> = centre.iter().zip(&worst.1).map(|(c, w)| c + t * (w - c)).collect();
            (f(&p), p)
        };
        let reflected = at(-1.0);
        let next = if reflected.0 < points[0].0 {
            let further = at(-2.0);
            if further.0 < reflected.0 { further } else { reflected }
        } else if reflected.0 < points[d - 1].0 {
            reflected
        } else {
            at(if reflected.0 < worst.0 { -0.5 } else { 0.5 })
        };
        if next.0 < worst.0 {
            points[d] = next;
        } else {
            let best = points[0].1.clone();
            for p in &mut points[1..] {
                p.1.iter_mut().zip(&best).for_each(|(x, b)| *x = 0.5 * (*x + b));
                p.0 = f(&p.1);
            }
        }
    }
    points.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("a simplex has points").1
}

// --- Accuracy
// --------------------------------------------------------------------------------------------------------

/// Half-widths over the curator's.
#[derive(Clone, Copy, Default)]
struct Ratios {
    apart: f64,
    ours: f64,
    /// Ours over a bound that needs no search.
    bound: f64,
    /// Ours over the bound for arms whose noise is correlated.
    across: f64,
}

impl Ratios {
    fn max(self, other: Self) -> Self {
        Self {
            apart: self.apart.max(other.apart),
            ours: self.ours.max(other.ours),
            bound: self.bound.max(other.bound),
            across: self.across.max(other.across),
        }
    }
}

fn ratios(change: Change, law: &Law, n: f64, (p, q): (i64, i64)) -> Ratios {
    let (clamp, rho) = (if law.coin { 1 } else { 1000 }, p as f64 / q as f64);
    let curator = Curator::new(change, law.coin);
    let ours = ours(&FamilyMechanism::on_lattices(change, clamp, &ratio(p, q)).unwrap(), clamp, law, n);
    let (best, bound) = (curator.best(law, n, rho), curator.bound(law, n, rho));
    // The search is no worse than what it is compared with, and no better than what is possible.
    let settles = bound < best * (1.0 + 1e-9) && best < ours * (1.0 + 1e-3);
    assert!(settles, "{change:?} {law:?} {n} {rho}: {bound:e} {best:e} {ours:e}");
    let root = |a: f64, b: f64| (a / b).sqrt();
    Ratios {
        apart: root(apart(change, law, n, rho), best),
        ours: root(ours, best),
        bound: root(ours, bound),
        across: root(ours, curator.bound_across(law, n, rho)),
    }
}

fn worst(change: Change, law: &Law, sizes: &[f64]) -> Ratios {
    let settings = sizes.iter().flat_map(|&n| RHOS.map(|rho| (n, rho)));
    settings.map(|(n, rho)| ratios(change, law, n, rho)).fold(Ratios::default(), Ratios::max)
}

fn report(change: Change, law: &Law, r: &Ratios) {
    println!(
        "{change:?} {:20} mean {:.4}: apart {:.3}, joint {:.3}; to the bound {:.3}, across arms {:.3}",
        law.name, law.mean, r.apart, r.ours, r.bound, r.across
    );
}

/// The promise: at most 1.05 of the optimum. `cargo test --release -p release --test joint -- --nocapture`
/// prints the table.
#[test]
fn near_the_curators_optimum() {
    for change in [Change::Outcome, Change::Person] {
        for law in &listed() {
            let ratios = worst(change, law, &SIZES);
            report(change, law, &ratios);
            assert!(ratios.ours <= if change == Change::Outcome { 1.01 } else { 1.05 }, "{law:?}");
        }
    }
}

/// What falls short: nearly all have one outcome, around .3 R or .7 R, and n is hidden. Nothing else than
/// noise is left to be wide, and who knows the mean aims all noise at it.
#[test]
fn one_outcome_off_the_middle_falls_short() {
    let mut most = 0f64;
    for mean in [0.15, 0.2, 0.25, 0.29, 0.35, 0.4, 0.71] {
        // Without chance n matters only to what the curator must know of it.
        let ratios = worst(Change::Person, &point(mean), &[1e3, 1e6]);
        report(Change::Person, &point(mean), &ratios);
        most = most.max(ratios.ours);
    }
    assert!((1.05..1.10).contains(&most), "{most}");
}

/// And no shape that does not know the data does better there: over all precisions of (n, S - n / 2), the
/// least of the largest standard deviation of S - m n over its optimum is 1.082.
#[test]
fn no_fixed_shape_does_better() {
    let curator = Curator::new(Change::Person, true);
    let means: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    let largest = |shape: &[f64]| {
        let lower = lower(shape, 2);
        let length =
            |d: &[f64]| (lower[0][0] * d[0] + lower[1][0] * d[1]).powi(2) + (lower[1][1] * d[1]).powi(2);
        let scale = curator.most(length) / 2.0;
        let excess = |m: &f64| {
            let g = curator.gradient([-m, 1.0, 0.0]);
            scale * solved(&lower, &g) / (0.5 * curator.most(|d| dot(d, &g).powi(2)))
        };
        means.iter().map(excess).fold(0.0, f64::max).sqrt()
    };
    let mut at = vec![0.0, 0.5, 0.1];
    for size in [1.0, 0.3, 0.1, 0.03, 0.01] {
        at = simplex(&largest, &at, size, 300);
    }
    let least = largest(&at);
    assert!((1.08..1.085).contains(&least), "{least}");
}

// --- Privacy
// ---------------------------------------------------------------------------------------------------------

/// The charge by definition: what one change of whole steps costs. `moved` is one cell's exact outputs.
fn cost(joint: &FamilyMechanism, moved: &[i128]) -> Rational {
    let one = |(output, x): (&release::joint::NoisedOutput, &i128)| {
        assert!(output.sensitivity >= x.abs().into(), "D bounds {x}");
        let steps = (x.abs() + (1i128 << output.low_bits) - 1) >> output.low_bits;
        Rational::from_integer(steps.into()).pow(2) / (&output.variance_y * whole(2))
    };
    joint.outputs().iter().zip(moved).map(one).sum()
}

fn whole(x: i64) -> Rational {
    ratio(x, 1)
}

fn row(joint: &FamilyMechanism, s: i128) -> Vec<i128> {
    joint.encode([1, s, s * s])
}

/// The largest charge among changes between these outcomes.
fn largest_cost(joint: &FamilyMechanism, outcomes: &[i128]) -> Rational {
    let rows: Vec<Vec<i128>> = outcomes.iter().map(|&s| row(joint, s)).collect();
    let pairs = rows.iter().flat_map(|a| rows.iter().map(move |b| (a, b)));
    let stays = pairs.map(|(a, b)| {
        let moved: Vec<i128> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        cost(joint, &moved)
    });
    let stays = stays.max().unwrap();
    let cell = rows.iter().map(|moved| cost(joint, moved)).max().unwrap();
    match joint.change() {
        Change::Outcome => stays,
        Change::Person => stays.max(cell * whole(2)),
    }
}

/// Outcomes that a charge may be large at: the ends, the middle, and many between.
fn outcomes(clamp: u128) -> Vec<i128> {
    let r = clamp as i128;
    if r <= 60 {
        return (0..=r).collect();
    }
    let spread = (0..=40).map(|i| i * r / 40);
    spread.chain([1, 2, r / 2 - 1, r / 2 + 1, r - 2, r - 1, r * 618 / 1000]).collect()
}

#[test]
fn every_change_costs_rho_at_most_and_nothing_is_wasted() {
    let rho = ratio(1, 10);
    for change in CHANGES {
        for clamp in (1..=60).chain([200, 256, 257, 1000, 40_000, 65_536, 1_000_000, CLAMP - 1, CLAMP]) {
            let plain = FamilyMechanism::new(change, clamp, &rho).unwrap();
            let lattices = FamilyMechanism::on_lattices(change, clamp, &rho).unwrap();
            for (joint, least) in [(plain, 0.989), (lattices, 0.975)] {
                let found = largest_cost(&joint, &outcomes(clamp));
                assert!(found <= joint.charge() && joint.charge() <= rho, "{change:?} {clamp}");
                assert!(to_f64(&(&found / &rho)) > least, "{change:?} {clamp}: {}", to_f64(&(&found / &rho)));
            }
        }
    }
}

#[test]
fn sensitivities_are_reached() {
    for change in CHANGES {
        for clamp in 2..=30u128 {
            let joint = FamilyMechanism::new(change, clamp, &ratio(1, 10)).unwrap();
            let rows: Vec<Vec<i128>> = (0..=clamp as i128).map(|s| row(&joint, s)).collect();
            for (i, output) in joint.outputs().iter().enumerate() {
                let between = rows.iter().flat_map(|a| rows.iter().map(move |b| (a[i] - b[i]).abs()));
                let most = between.chain(rows.iter().map(|a| a[i].abs())).max().unwrap();
                let known = change.knows_rows() || i > 0;
                assert_eq!(output.sensitivity, if known { most } else { 1 }.into(), "{change:?} {clamp} {i}");
            }
        }
    }
}

#[test]
fn shapes() {
    let count = |change, clamp| FamilyMechanism::new(change, clamp, &ratio(1, 10)).unwrap().outputs().len();
    assert_eq!(CHANGES.map(|change| count(change, 1)), [1, 2]);
    assert_eq!(CHANGES.map(|change| count(change, 2)), [2, 3]);
    let joint = FamilyMechanism::new(Change::Person, 10, &ratio(1, 10)).unwrap();
    let wider = ratio(517, 512);
    let expected = [ratio(20, 1), ratio(2000, 1), ratio(512 * 10_000 * 10, 5)];
    for (output, expected) in joint.outputs().iter().zip(expected) {
        assert_eq!(output.variance(), expected * &wider);
    }
    let joint = FamilyMechanism::new(Change::Outcome, 10, &ratio(1, 10)).unwrap();
    let variances: Vec<Rational> = joint.outputs().iter().map(|o| o.variance()).collect();
    assert_eq!(variances, [ratio(500, 1), ratio(100_000, 22)]);
}

#[test]
fn bad_settings_are_refused() {
    let rho = ratio(1, 10);
    assert!(
        FamilyMechanism::new(Change::Outcome, 0, &rho).is_err()
            && FamilyMechanism::new(Change::Person, CLAMP + 1, &rho).is_err()
    );
    assert!(
        FamilyMechanism::new(Change::Person, 1, &ratio(0, 1)).is_err()
            && FamilyMechanism::new(Change::Person, 1, &ratio(-1, 1)).is_err()
    );
}

/// The circuit's sampler draws exactly this noise.
#[test]
fn the_sampler_takes_every_output() {
    for change in CHANGES {
        for (clamp, rho) in
            [(1u128, ratio(1, 10)), (200, ratio(1, 100)), (1_000_000, ratio(1, 1)), (CLAMP, ratio(1, 10))]
        {
            for output in FamilyMechanism::on_lattices(change, clamp, &rho).unwrap().outputs() {
                let sampler = output.sampler().unwrap();
                assert_eq!((&sampler.steps, &sampler.variance_y), (&output.steps, &output.variance_y));
                let mean = sampler.mean() - whole(sampler.centre() as i64);
                assert_eq!((sampler.variance(), mean), (output.variance(), output.mean()));
            }
        }
    }
}

// --- Reading
// ---------------------------------------------------------------------------------------------------------

proptest! {
    #[test]
    fn without_noise_it_reads_what_was_there(
        outcomes in prop::collection::vec(0i128..=1000, 1..50), bits in 1u32..=32,
    ) {
        let clamp = (1u128 << bits) - 1;
        let values = outcomes.iter().map(|x| x % (clamp as i128 + 1));
        let totals = values.fold([0i128; 3], |[n, s, q], x| [n + 1, s + x, q + x * x]);
        for change in CHANGES {
            let joint = FamilyMechanism::new(change, clamp, &ratio(1, 10)).unwrap();
            let read = joint.decode(&joint.encode(totals), totals[0]);
            prop_assert_eq!(read, totals.map(|x| x as f64));
        }
    }
}

#[test]
fn the_covariance_is_that_of_draws() {
    let mut rng = Seed::from_bytes([3; 32]).into_rng();
    for change in CHANGES {
        let joint = FamilyMechanism::new(change, 10, &ratio(1, 2)).unwrap();
        let laws: Vec<_> =
            joint.outputs().iter().map(|o| DiscreteGaussian::new(&o.variance_y).unwrap()).collect();
        let (trials, mut sums) = (20_000, [[0f64; 3]; 3]);
        for _ in 0..trials {
            let noised: Vec<i128> =
                laws.iter().map(|law| law.sample_within(&mut rng, law.width()).unwrap()).collect();
            let e = joint.decode(&noised, 0);
            (0..3).for_each(|i| (0..3).for_each(|j| sums[i][j] += e[i] * e[j] / f64::from(trials)));
        }
        let stated = joint.covariance();
        for i in 0..3 {
            for j in 0..3 {
                // Five standard errors of a product of two normals.
                let tolerance = 5.0 * (2.0 * stated[i][i] * stated[j][j] / f64::from(trials)).sqrt();
                assert!((sums[i][j] - stated[i][j]).abs() <= tolerance, "{change:?} {i} {j}");
            }
        }
    }
}

/// What n and Q have in common is some millionths of what Q has: it must not drown in rounding.
#[test]
fn the_covariance_is_one_however_large_outcomes_are() {
    for change in CHANGES {
        for clamp in [1, 10, 999, 20_000, 50_000, 1_048_575, CLAMP] {
            let joint = FamilyMechanism::new(change, clamp, &ratio(3, 7)).unwrap();
            let covariance = joint.covariance();
            for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                assert_eq!(covariance[i][j], covariance[j][i], "{change:?} {clamp}");
            }
            NoisyMoments::new(vec![0.0; 3], &covariance.map(Vec::from)).unwrap();
        }
    }
}

/// Simulated coverage at 95 %, 4000 trials: the standard error is .35 %.
#[test]
fn intervals_cover() {
    let mut rng = Seed::from_bytes([9; 32]).into_rng();
    let mut uniform = move || (rand_core::Rng::next_u64(&mut rng) >> 11) as f64 / (1u64 << 53) as f64;
    let mut rng = Seed::from_bytes([10; 32]).into_rng();
    // Outcomes by law: a coin, 5 % with a uniform amount, uniform, all R / 2, nearly all R.
    type Outcome = fn(f64) -> i128;
    let laws: [(u128, Outcome); 5] = [
        (1, |u| i128::from(u < 0.02)),
        (20, |u| if u < 0.05 { (u * 400.0) as i128 + 1 } else { 0 }),
        (20, |u| (u * 21.0) as i128),
        (20, |_| 10),
        (20, |u| if u < 0.98 { 20 } else { 0 }),
    ];
    for change in [Change::Outcome, Change::Person] {
        for (clamp, outcome) in laws {
            let joint = FamilyMechanism::on_lattices(change, clamp, &ratio(1, 10)).unwrap();
            let noises: Vec<_> =
                joint.outputs().iter().map(|o| DiscreteGaussian::new(&o.variance_y).unwrap()).collect();
            let (trials, n) = (4000, 1500);
            let mut covered = 0;
            for _ in 0..trials {
                let mut arm = || {
                    let mut totals = [0i128; 3];
                    for _ in 0..n {
                        let x = outcome(uniform());
                        totals = [totals[0] + 1, totals[1] + x, totals[2] + x * x];
                    }
                    let exact = joint.encode(totals);
                    let noised: Vec<i128> = exact
                        .iter()
                        .zip(joint.outputs().iter().zip(&noises))
                        .map(|(x, (output, noise))| {
                            let y = noise.sample_within(&mut rng, noise.width()).unwrap();
                            let low = (uniform() * f64::from(1u32 << output.low_bits)) as i128;
                            x + (y << output.low_bits) + low
                        })
                        .collect();
                    joint.decode(&noised, n)
                };
                let (t, c) = (arm(), arm());
                let lift = t[1] / t[0] - c[1] / c[0];
                covered += u32::from(lift.abs() <= 1.959_964 * standard_error(&joint.arm(t), &joint.arm(c)));
            }
            let share = f64::from(covered) / f64::from(trials);
            println!("{change:?} R = {clamp}: covered {share:.4}");
            assert!(share > 0.938, "{change:?} {clamp}: {share}");
        }
    }
}

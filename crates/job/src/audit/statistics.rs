//! What could tell two inputs apart: numbers computed from each output, and from what its viewers know
//! besides.
//!
//! A threshold on a value sees too little noise, but not that low bits are not uniform, nor coins that one
//! party knows. So: the likelihood ratio by the stated law, alone and where the low bits leave the most steps
//! between the inputs (they are independent of the data, so the guarantee holds given them); each value; each
//! residue class of the low bits, by how often it came; and each value without the noise that a viewer's own
//! coins would have made.

use super::bound::Statistic;
use num_traits::ToPrimitive;
use release::alias::Sampler;
use release::normal::normal_quantile_upper;
use release::rational::to_f64;

/// Bits of a residue class that are looked at, from below and from above.
const RESIDUE_BITS: u32 = 6;
/// Least share of the outputs that a condition leaves.
const LEAST_SHARE: f64 = 0.05;

/// One run's outputs, and what viewers know of their noise.
pub(super) struct Run {
    /// Outputs, in the order of the plan.
    pub outputs: Vec<i128>,
    /// By party that sees them: the noise that its own coins alone would make, by output; 0 where there is
    /// none.
    pub own: Vec<Vec<i128>>,
}

/// The stated law of one output, on both sides.
pub(super) struct Stated {
    /// What it would be without noise.
    pub exact: [i128; 2],
    /// Its noise; none where it is exact.
    pub noise: Option<Lattice>,
}

/// Noise on a lattice: 2^e Y + U.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lattice {
    low_bits: u32,
    centre: i128,
    variance_y: f64,
}

impl Lattice {
    pub(super) fn of(sampler: &Sampler) -> Self {
        let variance_y = to_f64(&sampler.variance_y);
        Self { low_bits: sampler.low_bits, centre: sampler.centre(), variance_y }
    }

    /// The steps of Y that make an output of an exact value.
    fn steps(&self, output: i128, exact: i128) -> f64 {
        ((output + self.centre - exact) >> self.low_bits).to_f64().unwrap_or(f64::MAX)
    }

    /// The most steps of Y that a difference is.
    fn most(&self, difference: u128) -> u128 {
        (difference + (1u128 << self.low_bits) - 1) >> self.low_bits
    }

    /// zCDP of a difference.
    fn rho(&self, difference: u128) -> f64 {
        (self.most(difference) as f64).powi(2) / (2.0 * self.variance_y)
    }

    /// The same by the steps that it is on average over the low bits.
    fn usual(&self, difference: u128) -> f64 {
        let (whole, rest) = (difference >> self.low_bits, difference & ((1 << self.low_bits) - 1));
        let more = rest as f64 / (1u128 << self.low_bits) as f64;
        let square = |steps: u128| (steps as f64).powi(2);
        (square(whole) * (1.0 - more) + square(whole + 1) * more) / (2.0 * self.variance_y)
    }

    /// The most that two of these laws, so many steps apart, are apart as normals: the largest difference of
    /// normal quantiles of the tails at any threshold. Where the lattice is fine, that is the steps over the
    /// standard deviation.
    fn shift(&self, steps: u128) -> f64 {
        let (sigma, steps) = (self.variance_y.sqrt(), steps as f64);
        if self.variance_y > FINE || steps == 0.0 {
            return steps / sigma;
        }
        let last = (8.0 * sigma + steps).ceil();
        let cells = (0..=2 * last as usize).map(|at| at as f64 - last);
        let masses: Vec<f64> = cells.clone().map(|y| (-y * y / (2.0 * self.variance_y)).exp()).collect();
        let all: f64 = masses.iter().sum();
        // P(Y >= t), from above.
        let mut tails: Vec<f64> = masses
            .iter()
            .rev()
            .scan(0.0, |tail, mass| {
                *tail += mass / all;
                Some(*tail)
            })
            .collect();
        tails.reverse();
        let tail = |y: f64| tails[(y + last).clamp(0.0, 2.0 * last) as usize];
        let apart = cells.filter_map(|y| {
            let [far, near] = [tail(y), tail(y - steps)];
            let seen = far > RARE && near < 1.0 - RARE;
            seen.then(|| normal_quantile_upper(far) - normal_quantile_upper(near))
        });
        apart.fold(steps / sigma, f64::max)
    }
}

/// Of a larger variance a lattice looks like a normal within 1 / (24 FINE).
const FINE: f64 = 400.0;
/// Tails that no audit sees.
const RARE: f64 = 1e-9;

/// How many times the rho of normals it is that the stated lattices are apart, at least 1. Noise of several
/// outputs that is no more apart than normals each is none more together (Dong, Roth and Su 2022, of the
/// trade-off of a composition).
pub(super) fn lattice(stated: &[Stated]) -> f64 {
    let both = stated.iter().filter_map(|of| {
        let steps = of.noise?.most(of.exact[0].abs_diff(of.exact[1]));
        Some((of.noise?.shift(steps).powi(2), of.rho()? * 2.0))
    });
    let (seen, normal) = both.fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    if normal > 0.0 { (seen / normal).max(1.0) } else { 1.0 }
}

impl Stated {
    /// zCDP that telling both sides apart costs by the stated law, at most; none without noise and with a
    /// difference.
    pub(super) fn rho(&self) -> Option<f64> {
        self.by(Lattice::rho)
    }

    /// The same on average over the low bits.
    pub(super) fn usual_rho(&self) -> Option<f64> {
        self.by(Lattice::usual)
    }

    fn by(&self, rho: impl Fn(&Lattice, u128) -> f64) -> Option<f64> {
        let difference = self.exact[0].abs_diff(self.exact[1]);
        match &self.noise {
            Some(noise) => Some(rho(noise, difference)),
            None => (difference == 0).then_some(0.0),
        }
    }

    /// How much likelier an output is on side 1, as a logarithm; and the square of the steps between the
    /// sides over the variance.
    fn ratio(&self, output: i128) -> (f64, f64) {
        let Some(noise) = self.noise else { return (0.0, 0.0) };
        let [a, b] = self.exact.map(|exact| noise.steps(output, exact));
        ((a * a - b * b) / (2.0 * noise.variance_y), (a - b).powi(2) / noise.variance_y)
    }
}

/// All statistics of two sides' runs.
pub(super) fn all(stated: &[Stated], runs: &[Vec<Run>; 2], names: &[String]) -> Vec<Statistic> {
    let mut all = ratios(stated, runs);
    for (at, (of, name)) in stated.iter().zip(names).enumerate() {
        let value = |run: &Run| run.outputs[at] as f64;
        all.push(statistic(format!("the value of {name}"), runs, value));
        if let Some(noise) = of.noise.filter(|noise| noise.low_bits > 0) {
            let bits = noise.low_bits.min(RESIDUE_BITS);
            for (which, shift) in [("low", 0), ("high", noise.low_bits - bits)] {
                let class =
                    |run: &Run| ((run.outputs[at] + noise.centre) >> shift & ((1 << bits) - 1)) as usize;
                let name = format!("the residue of {name}, {which} bits");
                all.push(Statistic { name, values: frequencies(runs, 1 << bits, &class) });
            }
        }
        for party in 0..runs[0].first().map_or(0, |run| run.own.len()) {
            let value = |run: &Run| (run.outputs[at] - run.own[party][at]) as f64;
            let name = format!("{name} without the noise of the coins of party {party}");
            all.push(statistic(name, runs, value));
        }
    }
    all
}

fn statistic(name: String, runs: &[Vec<Run>; 2], value: impl Fn(&Run) -> f64) -> Statistic {
    Statistic { name, values: [0, 1].map(|side: usize| runs[side].iter().map(&value).collect()) }
}

fn ratios(stated: &[Stated], runs: &[Vec<Run>; 2]) -> Vec<Statistic> {
    let of = |run: &Run| {
        let each = stated.iter().zip(&run.outputs).map(|(of, output)| of.ratio(*output));
        each.fold((0.0, 0.0), |(ratio, steps), (a, b)| (ratio + a, steps + b))
    };
    let both = [0, 1].map(|side: usize| runs[side].iter().map(of).collect::<Vec<(f64, f64)>>());
    let name = "the likelihood ratio".to_owned();
    let values = [0, 1].map(|side: usize| both[side].iter().map(|(ratio, _)| *ratio).collect());
    let mut all = vec![Statistic { name, values }];
    // The most steps that enough of the outputs have.
    let mut steps: Vec<f64> = both[0].iter().map(|(_, steps)| *steps).collect();
    steps.sort_by(f64::total_cmp);
    let at = ((1.0 - LEAST_SHARE) * steps.len() as f64) as usize;
    if let (Some(least), Some(first)) = (steps.get(at).copied(), steps.first().copied())
        && least > first
    {
        let name = "the likelihood ratio where the low bits leave the most steps".to_owned();
        let kept = |side: usize| {
            let kept = both[side].iter().filter(|(_, steps)| *steps >= least * (1.0 - 1e-9));
            kept.map(|(ratio, _)| *ratio).collect()
        };
        all.push(Statistic { name, values: [0, 1].map(kept) });
    }
    all
}

/// How much likelier each run's class is on side 1, by the first halves of both, one added to each count.
fn frequencies(runs: &[Vec<Run>; 2], classes: usize, class: &dyn Fn(&Run) -> usize) -> [Vec<f64>; 2] {
    let counts = [0, 1].map(|side: usize| {
        let mut counts = vec![1.0f64; classes];
        runs[side].iter().take(runs[side].len() / 2).for_each(|run| counts[class(run)] += 1.0);
        counts
    });
    let ratio = |run: &Run| (counts[1][class(run)] / counts[0][class(run)]).ln();
    [0, 1].map(|side: usize| runs[side].iter().map(ratio).collect())
}

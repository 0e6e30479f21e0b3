//! The t-test.

use crate::clock::ticks;
use crate::{Random, TimedKernel, controls};
use std::time::{Duration, Instant};

/// Above this in most runs a case leaks, above [`SURE`] in one.
const SUSPECT: f64 = 4.5;
const SURE: f64 = 10.0;
/// Runs of a case for each fixed secret.
const RUNS: usize = 3;
/// Secrets of the fixed class: all bytes the same.
const FIXED: [u8; 2] = [0x00, 0xff];
/// Measurements of one run, as many as fit into [`TIME`].
const MOST: usize = 40_000;
const LEAST: usize = 256;
const TIME: Duration = Duration::from_millis(300);
/// Secrets that lie ready.
const POOL: usize = 64;
/// Measurements of at least so large a share of all are cut off: interrupts and other processes.
const KEPT: [f64; 8] = [1.0, 0.999, 0.99, 0.95, 0.9, 0.75, 0.5, 0.25];

/// Times every case and prints a line for each: measurements of a run, median time in ticks, and the
/// smallest, median and largest of the runs' largest |t| over all cuts.
///
/// # Panics
/// When a case leaks, or a control does not.
pub fn check_time(cases: Vec<TimedKernel<'_>>) {
    println!("{:44} {:>7} {:>9}   {:>6} {:>6} {:>6}", "", "times", "ticks", "least", "median", "most");
    for mut control in controls() {
        control.name = format!("control: {}", control.name);
        assert!(leaks(&mut control), "the t-test did not catch it: {}", control.name);
    }
    let bad: Vec<String> =
        cases.into_iter().filter_map(|mut case| leaks(&mut case).then_some(case.name)).collect();
    assert!(bad.is_empty(), "times depend on secrets: {}", bad.join(", "));
}

fn leaks(case: &mut TimedKernel<'_>) -> bool {
    let mut random = Random(7);
    let (mut worst, mut times, mut ticks) = (Vec::new(), 0, 0);
    for fixed in FIXED {
        for _ in 0..RUNS {
            let samples = measure(case, fixed, &mut random);
            let cut = Cut::new(&samples);
            (times, ticks) = (samples.len(), cut.median());
            worst.push(KEPT.iter().map(|&kept| cut.t(&samples, kept).abs()).fold(0.0, f64::max));
        }
    }
    // A secret may show against one fixed class only.
    let leak = worst.chunks(RUNS).any(|runs| {
        runs.iter().any(|&t| t > SURE) || 2 * runs.iter().filter(|&&t| t > SUSPECT).count() > RUNS
    });
    worst.sort_by(f64::total_cmp);
    let (least, median, most) = (worst[0], worst[worst.len() / 2], worst[worst.len() - 1]);
    let verdict = if leak { "LEAKS" } else { "" };
    println!("{:44} {times:>7} {ticks:>9}   {least:>6.1} {median:>6.1} {most:>6.1} {verdict}", case.name);
    leak
}

/// A measured time, and whether the secret was a random one.
struct Sample {
    ticks: u64,
    random: bool,
}

fn measure(case: &mut TimedKernel<'_>, fixed: u8, random: &mut Random) -> Vec<Sample> {
    let n = case.secret_bytes;
    let (mut samples, start) = (Vec::with_capacity(MOST + POOL), Instant::now());
    let (mut pool, mut buffer) = (vec![0; POOL * n], vec![0; n]);
    while samples.len() < MOST && (samples.len() < LEAST || start.elapsed() < TIME) {
        // Secrets lie ready in one order, so that what happens between two measurements does not depend on
        // the class. They are drawn again and again: a place in memory has times of its own.
        let classes: [bool; POOL] = std::array::from_fn(|_| random.next() >> 63 == 1);
        for (secret, &class) in pool.chunks_exact_mut(n).zip(&classes) {
            secret.fill(fixed);
            if class {
                random.fill(secret);
            }
        }
        for (secret, &random) in pool.chunks_exact(n).zip(&classes) {
            buffer.copy_from_slice(secret);
            let before = ticks();
            (case.run)(std::hint::black_box(&mut buffer));
            samples.push(Sample { ticks: ticks() - before, random });
        }
    }
    // The first ones warm up caches.
    samples.drain(..samples.len() / 10);
    samples
}

/// Times in order.
struct Cut(Vec<u64>);

impl Cut {
    fn new(samples: &[Sample]) -> Self {
        let mut sorted: Vec<u64> = samples.iter().map(|s| s.ticks).collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    fn median(&self) -> u64 {
        self.0[self.0.len() / 2]
    }

    /// Welch's t of both classes among the fastest `kept` of all.
    fn t(&self, samples: &[Sample], kept: f64) -> f64 {
        let most = self.0[((self.0.len() as f64 * kept) as usize).clamp(1, self.0.len()) - 1];
        let mut classes = [Moments::default(); 2];
        for sample in samples.iter().filter(|s| s.ticks <= most) {
            classes[usize::from(sample.random)].add(sample.ticks as f64);
        }
        let [a, b] = classes;
        let (difference, error) = (a.mean - b.mean, (a.variance_of_mean() + b.variance_of_mean()).sqrt());
        // A cut that leaves nothing of a class says nothing; the others do. Equal times have no variance.
        if a.n < 2.0 || b.n < 2.0 || difference == 0.0 { 0.0 } else { difference / error }
    }
}

/// Mean and sum of squares around it (Welford).
#[derive(Clone, Copy, Default)]
struct Moments {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        let off = x - self.mean;
        self.mean += off / self.n;
        self.squares += off * (x - self.mean);
    }

    fn variance_of_mean(&self) -> f64 {
        if self.n > 1.0 { self.squares / (self.n - 1.0) / self.n } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ticks: u64, random: bool) -> Sample {
        Sample { ticks, random }
    }

    /// Worked by hand: means 2 and 5, variances 1 and 4, three times each: t = -3 / sqrt(1/3 + 4/3).
    #[test]
    fn t_is_welchs() {
        let samples =
            [(1, false), (2, false), (3, false), (3, true), (5, true), (7, true)].map(|(t, r)| sample(t, r));
        let t = Cut::new(&samples).t(&samples, 1.0);
        assert!((t + 3.0 / (5.0f64 / 3.0).sqrt()).abs() < 1e-12, "{t}");
        // The slowest third is cut off: means 2 and 3, variances 2, twice each.
        let samples = [(1, false), (3, false), (99, false), (2, true), (4, true), (90, true)]
            .map(|(t, r)| sample(t, r));
        let t = Cut::new(&samples).t(&samples, 0.7);
        assert!((t + 0.5f64.sqrt()).abs() < 1e-12, "{t}");
        // Times without any variance are the clearest of all.
        let samples = [(5, false), (5, false), (6, true), (6, true)].map(|(t, r)| sample(t, r));
        assert_eq!(Cut::new(&samples).t(&samples, 1.0), f64::NEG_INFINITY);
    }
}

//! One cell of the study: a statistic of noised sums, read again and again.

use crate::laws::{RowLaw, normals};
use base::{Rng, Seed};
use release::binomial;
use release::derived::{DerivedEstimate, NoisyMoments};

pub const LEVELS: [f64; 2] = [0.95, 0.999];
/// Confidence of what is said of a cell.
const CONFIDENCE: f64 = 0.999;
/// How far coverage may be below its level.
const ALLOWED: f64 = 0.005;

/// What is read of the cells' sums at a level.
pub type Read = Box<dyn Fn(&[NoisyMoments], f64) -> DerivedEstimate>;

pub struct StudyCell {
    pub statistic: &'static str,
    pub laws: Vec<RowLaw>,
    pub rows: u64,
    /// zCDP of each cell; none: exact sums.
    pub rho: Option<f64>,
    /// What one row adds to each sum at most.
    pub most: Vec<f64>,
    pub truth: f64,
    /// The standard error without noise, by the law.
    pub oracle: f64,
    pub read: Read,
    /// Whether it must cover.
    pub required: bool,
}

/// What came out at a level.
pub struct Outcome {
    pub line: String,
    pub fails: bool,
}

impl StudyCell {
    fn noised(&self, law: &RowLaw, rng: &mut Rng) -> NoisyMoments {
        let mut totals = law.totals(self.rows, rng);
        let sums = totals.len() as f64;
        // rho in equal parts over the sums.
        let deviation = |most: f64| self.rho.map_or(0.0, |rho| most * (sums / (2.0 * rho)).sqrt());
        let variances: Vec<f64> = self.most.iter().map(|most| deviation(*most).powi(2)).collect();
        for (pair, variances) in totals.chunks_mut(2).zip(variances.chunks(2)) {
            let normal = normals(rng);
            for ((total, variance), z) in pair.iter_mut().zip(variances).zip(normal) {
                // Sums are whole numbers, and so is their noise.
                *total += (z * variance.sqrt()).round();
            }
        }
        NoisyMoments::independent(totals, &variances).unwrap()
    }

    pub fn name(&self) -> String {
        let laws: Vec<&str> = self.laws.iter().map(|law| law.name.as_str()).collect();
        let rho = self.rho.map_or("exact".into(), |rho| rho.to_string());
        format!("{:<15} {:<24} {:>6} {:>5}", self.statistic, laws.join(" / "), self.rows, rho)
    }

    pub fn run(&self, trials: u64) -> Vec<Outcome> {
        let name = self.name();
        let mut rng = Seed::from_bytes([0; 32]).fork(&name).into_rng();
        let mut hits = [0; LEVELS.len()];
        let mut misses = [[0; 2]; LEVELS.len()];
        let mut widths = vec![Vec::new(); LEVELS.len()];
        for _ in 0..trials {
            let cells: Vec<NoisyMoments> = self.laws.iter().map(|law| self.noised(law, &mut rng)).collect();
            for (i, level) in LEVELS.iter().enumerate() {
                let found = (self.read)(&cells, *level);
                assert!(found.low <= found.high, "{name}: {found:?}");
                if let Some(value) = found.value {
                    assert!(found.low <= value && value <= found.high, "{name}: {found:?}");
                }
                // A truth at the end of an interval is covered, within rounding.
                let rounding = 1e-9 * self.truth.abs().max(1e-3);
                misses[i][0] += u64::from(self.truth < found.low - rounding);
                misses[i][1] += u64::from(self.truth > found.high + rounding);
                widths[i].push(0.5 * (found.high - found.low));
            }
        }
        let outcome = |i: usize| {
            hits[i] = trials - misses[i][0] - misses[i][1];
            let level = LEVELS[i];
            let covered = hits[i] as f64 / trials as f64;
            let [_, upper] = binomial::interval(hits[i], trials, CONFIDENCE);
            widths[i].sort_by(f64::total_cmp);
            let low = upper < level - ALLOWED;
            let z = release::normal::critical(level);
            let (width, oracle) = (widths[i][widths[i].len() / 2], z * self.oracle);
            let [above, below] = misses[i].map(|m| 100.0 * m as f64 / trials as f64);
            let line = format!(
                "{name} {level:>5} {:>7.2} ({above:.2} {below:.2}) {width:>10.4} {oracle:>10.4}{}",
                100.0 * covered,
                if low { "  TOO LOW" } else { "" }
            );
            Outcome { line, fails: low && self.required }
        };
        (0..LEVELS.len()).map(outcome).collect()
    }
}

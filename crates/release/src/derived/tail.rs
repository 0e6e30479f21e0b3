//! How likely a binomial count with noise is as far out as this.

use crate::binomial::beta;
use crate::normal::normal_upper;
use std::f64::consts::PI;

/// P(Z >= excess), or P(Z <= excess) unless `above`, for Z = Binomial(n, p) - n p + Normal(0, variance).
///
/// Without noise by the incomplete beta function, exactly; with noise by the saddlepoint (Lugannani and Rice
/// 1980), which stays right far out where the law is skewed, half a `step` further in. `n` is an estimate and
/// need not be whole.
pub(super) fn tail(n: f64, p: f64, variance: f64, excess: f64, step: f64, above: bool) -> f64 {
    let n = n.max(0.0);
    if variance <= 0.0 {
        let count = excess + n * p;
        let count = if (count - count.round()).abs() < 1e-6 { count.round() } else { count };
        return if above { at_least(n, p, count) } else { 1.0 - at_least(n, p, count + 1.0) };
    }
    let law = NoisyCount { n, p, variance };
    if above { law.upper(excess - 0.5 * step) } else { 1.0 - law.upper(excess + 0.5 * step) }
}

fn at_least(n: f64, p: f64, count: f64) -> f64 {
    match count {
        k if k <= 0.0 => 1.0,
        k if k >= n + 1.0 => 0.0,
        k => beta(p, k, n - k + 1.0),
    }
}

struct NoisyCount {
    n: f64,
    p: f64,
    variance: f64,
}

impl NoisyCount {
    /// The cumulant function and its first three derivatives.
    fn cumulants(&self, t: f64) -> [f64; 4] {
        let Self { n, p, variance } = *self;
        // The count of ones or of zeros, whichever exponent does not overflow.
        let (log, share) = if t <= 0.0 {
            let all = 1.0 - p + p * t.exp();
            (all.ln(), p * t.exp() / all)
        } else {
            let all = (1.0 - p) * (-t).exp() + p;
            (all.ln() + t, p / all)
        };
        let spread = share * (1.0 - share);
        [
            n * (log - p * t) + 0.5 * variance * t * t,
            n * (share - p) + variance * t,
            n * spread + variance,
            n * spread * (1.0 - 2.0 * share),
        ]
    }

    /// P(Z >= excess).
    fn upper(&self, excess: f64) -> f64 {
        let t = self.saddle(excess);
        let [k, _, second, _] = self.cumulants(t);
        let w = (2.0 * (t * excess - k)).max(0.0).sqrt().copysign(t);
        if w.abs() < 1e-3 {
            let [_, _, second, third] = self.cumulants(0.0);
            let skew = third / second.powf(1.5);
            let x = excess / second.sqrt();
            return (normal_upper(x) + skew / 6.0 * (x * x - 1.0) * density(x)).clamp(0.0, 1.0);
        }
        let u = t * second.sqrt();
        (normal_upper(w) + density(w) * (1.0 / u - 1.0 / w)).clamp(0.0, 1.0)
    }

    /// The t at which the mean of the tilted law is the excess.
    fn saddle(&self, excess: f64) -> f64 {
        // The noise alone reaches the excess, less what all rows could add, at these t.
        let (mut low, mut high) = (
            (excess - self.n * (1.0 - self.p)).min(0.0) / self.variance,
            (excess + self.n * self.p).max(0.0) / self.variance,
        );
        let mut t = (excess / self.cumulants(0.0)[2]).clamp(low, high);
        for _ in 0..60 {
            let [_, mean, slope, _] = self.cumulants(t);
            if mean > excess {
                high = t
            } else {
                low = t
            }
            let step = (excess - mean) / slope;
            if step.abs() <= 1e-7 * t.abs() {
                break;
            }
            let next = t + step;
            t = if next > low && next < high { next } else { 0.5 * (low + high) };
        }
        t
    }
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over the binomial of the normal tail.
    #[test]
    fn tails_are_those_of_the_convolution() {
        for (n, p, sd) in
            [(50.0, 0.01, 1.0), (50.0, 0.3, 2.0), (1000.0, 0.002, 0.8), (30.0, 0.98, 5.0), (5.0, 0.95, 17.0)]
        {
            for z in (-35..=35).map(|z| 0.1 * f64::from(z)) {
                let n: f64 = n;
                let excess = z * (n * p * (1.0 - p) + sd * sd).sqrt();
                let mut expected = 0.0;
                for k in 0..=n as u32 {
                    let k = f64::from(k);
                    let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
                    let mass = (choose + k * f64::ln(p) + (n - k) * f64::ln_1p(-p)).exp();
                    expected += mass * normal_upper((excess - k + n * p) / sd);
                }
                let [below, above] = [false, true].map(|above| tail(n, p, sd * sd, excess, 0.0, above));
                assert!((above / expected - 1.0).abs() < 0.04, "{n} {p} {sd} {z}: {above} {expected}");
                assert!((below + above - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn without_noise_they_are_exact() {
        let [below, above] = [false, true].map(|above| tail(20.0, 0.1, 0.0, -2.0, 1.0, above));
        assert!((below - 0.9f64.powi(20)).abs() < 1e-12 && above == 1.0);
        let [below, above] = [false, true].map(|above| tail(20.0, 0.1, 0.0, 18.0, 1.0, above));
        assert!((above - 0.1f64.powi(20)).abs() < 1e-30 && below == 1.0);
    }
}

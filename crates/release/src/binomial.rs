//! The binomial law: draws for simulations, and what a count says about a probability.

use base::Rng;

/// A draw by inversion outwards from the mode: about as many steps as its standard deviation.
#[must_use]
pub fn draw(n: u64, p: f64, rng: &mut Rng) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    let (count, odds) = (n as f64, p / (1.0 - p));
    let mode = ((count + 1.0) * p).floor().min(count);
    let choose = libm::lgamma(count + 1.0) - libm::lgamma(mode + 1.0) - libm::lgamma(count - mode + 1.0);
    let top = (choose + mode * p.ln() + (count - mode) * (-p).ln_1p()).exp();
    let mut left = uniform(rng) - top;
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

/// A number in 0..1, a multiple of 2^-53.
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rand_core::Rng::next_u64(rng) >> 11) as f64 / (1u64 << 53) as f64
}

/// The exact two-sided interval of a probability by `hits` of `trials` (Clopper and Pearson 1934): each end
/// is wrong with a probability of half of 1 - `confidence` at most. 0..1 where there are no trials.
#[must_use]
pub fn interval(hits: u64, trials: u64, confidence: f64) -> [f64; 2] {
    let (tail, k, n) = (0.5 * (1.0 - confidence), hits as f64, trials as f64);
    // P(X >= k) = I_p(k, n - k + 1) rises with p.
    let low = if hits == 0 { 0.0 } else { solve(|p| beta(p, k, n - k + 1.0) < tail) };
    let high = if hits >= trials { 1.0 } else { solve(|p| beta(p, k + 1.0, n - k) < 1.0 - tail) };
    [low, high]
}

/// The p in 0..1 up to which `below` holds.
fn solve(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's method).
pub(crate) fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the mean; the rest is the mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let front =
        (a * x.ln() + b * (-x).ln_1p() + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)).exp() / a;
    const TINY: f64 = 1e-300;
    let apart = |v: f64| if v.abs() < TINY { TINY } else { v };
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    for i in 1..100_000 {
        let m = f64::from(i);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / apart(1.0 + term * d);
            c = apart(1.0 + term / c);
            value *= c * d;
        }
        if (value / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * value
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    #[test]
    fn draws_have_their_moments() {
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        for (n, p) in [(10u64, 0.3), (1000, 0.001), (100_000, 0.05), (50, 0.98)] {
            let draws: Vec<f64> = (0..20_000).map(|_| draw(n, p, &mut rng) as f64).collect();
            let (mean, variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
            let got = draws.iter().sum::<f64>() / 20_000.0;
            let spread = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!((got - mean).abs() < 4.5 * (variance / 20_000.0).sqrt(), "{n} {p}: {got}");
            assert!((spread / variance - 1.0).abs() < 0.06, "{n} {p}: {spread}");
        }
    }

    /// By the sums that define the ends, term by term.
    #[test]
    fn the_interval_is_that_of_binomial_sums() {
        let mass = |k: u64, n: u64, p: f64| {
            let choose = (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
            choose * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
        };
        for (hits, trials) in [(1, 10), (5, 10), (9, 10), (3, 60), (40, 60)] {
            let [low, high] = interval(hits, trials, 0.99);
            let above: f64 = (hits..=trials).map(|k| mass(k, trials, low)).sum();
            let below: f64 = (0..=hits).map(|k| mass(k, trials, high)).sum();
            assert!((above - 0.005).abs() < 1e-10 && (below - 0.005).abs() < 1e-10, "{hits} of {trials}");
        }
        let [low, high] = interval(0, 20_000, 0.999);
        assert!(low == 0.0 && ((1.0 - high).powi(20_000) - 0.0005).abs() < 1e-9);
        assert_eq!(interval(7, 7, 0.9)[1], 1.0);
        // Of many, close to the normal one: 3.29 standard errors of .154 % each.
        let [low, high] = interval(19_000, 20_000, 0.999);
        assert!((low - 0.94475).abs() < 2e-4 && (high - 0.95489).abs() < 2e-4, "{low} {high}");
    }
}

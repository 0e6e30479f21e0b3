//! The sampler against its exact law, and its format against pinned draws.

use base::Seed;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use release::gaussian::{DiscreteGaussian, DiscreteLaplace};
use release::normal::normal_upper;
use release::rational::{ratio, to_f64};

/// Pearson's chi-square of draws against an unnormalised law, cells of expectation 10 or less pooled at both
/// ends. The seed is fixed, so the test is deterministic; a right sampler fails it for one seed in 10^4.
fn check(draws: &[i64], weight: impl Fn(i64) -> f64, reach: i64) {
    let total: f64 = (-reach..=reach).map(&weight).sum();
    let expect = |x: i64| draws.len() as f64 * weight(x) / total;
    let edge = (0..=reach).rev().find(|&x| expect(x) > 10.0).unwrap_or(0);
    let mut observed = vec![0.0; 2 * edge as usize + 3];
    let mut expected = vec![0.0; observed.len()];
    let cell = |x: i64| (x.clamp(-edge - 1, edge + 1) + edge + 1) as usize;
    for x in -reach..=reach {
        expected[cell(x)] += expect(x);
    }
    for &x in draws {
        observed[cell(x)] += 1.0;
    }
    let used = expected.iter().filter(|&&e| e > 1.0).count();
    let chi: f64 = expected
        .iter()
        .zip(&observed)
        .filter(|(e, _)| **e > 1.0)
        .map(|(e, o): (&f64, &f64)| (o - e).powi(2) / e)
        .sum();
    let stray: f64 = expected.iter().zip(&observed).filter(|(e, _)| **e <= 1.0).map(|(_, o)| o).sum();
    let p = chi_square_upper(chi, used as f64 - 1.0);
    assert!(
        p > 1e-4 && p < 1.0 - 1e-6 && stray < 12.0,
        "chi-square {chi} in {used} cells, p {p:e}, stray {stray}"
    );
}

/// P(X > x) of a chi-square X, by the cube root that is nearly normal (Wilson and Hilferty 1931).
fn chi_square_upper(x: f64, degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    normal_upper(((x / degrees).cbrt() - 1.0 + spread) / spread.sqrt())
}

fn gaussian_draws(sigma2: (i64, i64), count: usize, seed: u8) -> Vec<i64> {
    let law = DiscreteGaussian::new(&ratio(sigma2.0, sigma2.1)).unwrap();
    let mut rng = Seed::from_bytes([seed; 32]).into_rng();
    (0..count).map(|_| law.sample(&mut rng).to_i64().unwrap()).collect()
}

#[test]
fn the_gaussian_has_its_law() {
    for (i, sigma2) in
        [(1i64, 16i64), (1, 4), (1, 1), (17, 3), (10_000, 1), (123_456_789, 1000)].into_iter().enumerate()
    {
        let draws = gaussian_draws(sigma2, 40_000, i as u8);
        let variance = sigma2.0 as f64 / sigma2.1 as f64;
        let reach = 4 + (12.0 * variance.sqrt()) as i64;
        check(&draws, |x| (-(x * x) as f64 / (2.0 * variance)).exp(), reach);
    }
}

#[test]
fn another_law_is_noticed() {
    let draws = gaussian_draws((25, 1), 40_000, 9);
    let result = std::panic::catch_unwind(|| check(&draws, |x| (-(x * x) as f64 / (2.0 * 27.0)).exp(), 70));
    assert!(result.is_err(), "a variance 8 % off must fail the test");
}

#[test]
fn the_laplace_has_its_law() {
    for (i, (t, s)) in [(1i64, 3i64), (1, 1), (7, 2), (40, 1)].into_iter().enumerate() {
        let law = DiscreteLaplace::new(&ratio(t, s)).unwrap();
        let mut rng = Seed::from_bytes([100 + i as u8; 32]).into_rng();
        let draws: Vec<i64> = (0..40_000).map(|_| law.sample(&mut rng).to_i64().unwrap()).collect();
        let scale = t as f64 / s as f64;
        check(&draws, |x| (-(x.abs() as f64) / scale).exp(), 2 + (30.0 * scale) as i64);
    }
}

#[test]
fn huge_variances_keep_their_moments() {
    let sigma2 = ratio(BigInt::from(3) << 180, 7);
    let law = DiscreteGaussian::new(&sigma2).unwrap();
    let mut rng = Seed::from_bytes([77; 32]).into_rng();
    let sigma = to_f64(&sigma2).sqrt();
    let count = 4000;
    let z: Vec<f64> = (0..count).map(|_| law.sample(&mut rng).to_f64().unwrap() / sigma).collect();
    let mean = z.iter().sum::<f64>() / count as f64;
    let square = z.iter().map(|x| x * x).sum::<f64>() / count as f64;
    assert!(mean.abs() * (count as f64).sqrt() < 4.5, "{mean}");
    assert!((square - 1.0).abs() / (2.0 / count as f64).sqrt() < 4.5, "{square}");
}

/// Both sides of a cut-and-choose derive noise from a key: these draws are part of the wire format. An
/// independent implementation (another language, its own ChaCha12) written from the comments of `gaussian`
/// gave the same.
#[test]
fn the_draws_of_a_seed_are_pinned() {
    assert_eq!(gaussian_draws((1, 4), 12, 42), PINNED_QUARTER);
    assert_eq!(gaussian_draws((17, 3), 12, 42), PINNED_SMALL);
    assert_eq!(gaussian_draws((1_000_000_007, 3), 6, 42), PINNED_LARGE);
    let law = DiscreteGaussian::new(&ratio(BigInt::from(1) << 150, 3)).unwrap();
    let mut rng = Seed::from_bytes([42; 32]).into_rng();
    assert_eq!(law.sample(&mut rng).to_string(), PINNED_HUGE);
}
const PINNED_QUARTER: [i64; 12] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0];
const PINNED_SMALL: [i64; 12] = [0, 2, 3, 8, 1, 2, 1, -1, 0, 0, 5, 0];
const PINNED_LARGE: [i64; 6] = [-3099, 5839, 23033, 16377, 28906, -8033];
const PINNED_HUGE: &str = "28359478946550027284744";

#[test]
fn widths_bound_the_draws() {
    let law = DiscreteGaussian::new(&ratio(100, 1)).unwrap();
    // 16 sigma = 160 needs 8 bits and a sign.
    assert_eq!(law.width(), 9);
    assert!(law.check_width(8).is_err() && law.check_width(9).is_ok());
    assert!(law.check_width(128).is_ok() && law.check_width(129).is_err());
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    for _ in 0..2000 {
        assert!(law.sample_within(&mut rng, 9).unwrap().abs() < 256);
    }
    assert!(law.sample_within(&mut rng, 8).is_err());
    for bad in
        [ratio(0, 1), ratio(-1, 2), ratio(BigInt::from(1) << 1024, 1), ratio(1, BigInt::from(1) << 1024)]
    {
        assert!(DiscreteGaussian::new(&bad).is_err() && DiscreteLaplace::new(&bad).is_err());
    }
}

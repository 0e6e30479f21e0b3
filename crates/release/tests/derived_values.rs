//! Derived statistics against published values, closed forms, and what noise must do to them.

use release::derived::{
    CellMean, DerivedEstimate, NoisyMoments, correlation, covariance, difference, least_squares, mean,
    needed_to_treat, odds_ratio, proportion, quantile, ratio, risk_ratio, standard_deviation, variance,
};

fn exact(values: &[f64]) -> NoisyMoments {
    NoisyMoments::independent(values.to_vec(), &vec![0.0; values.len()]).unwrap()
}

fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
}

fn share(hits: f64, rows: f64) -> CellMean {
    CellMean::of_bit(&exact(&[rows, hits])).unwrap()
}

/// Anscombe 1973, "Graphs in Statistical Analysis", the first set.
const ANSCOMBE: [(f64, f64); 11] = [
    (10.0, 8.04),
    (8.0, 6.95),
    (13.0, 7.58),
    (9.0, 8.81),
    (11.0, 8.33),
    (14.0, 9.96),
    (6.0, 7.24),
    (4.0, 4.26),
    (12.0, 10.84),
    (7.0, 4.82),
    (5.0, 5.68),
];

fn anscombe() -> NoisyMoments {
    let sum = |of: fn(f64, f64) -> f64| ANSCOMBE.iter().map(|&(x, y)| of(x, y)).sum();
    exact(&[11.0, sum(|x, _| x), sum(|_, y| y), sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y)])
}

#[test]
fn a_share_without_noise_is_that_of_clopper_and_pearson() {
    let found = share(8.0, 20.0).estimate(0.95).unwrap();
    close(found.low, 0.1912, 5e-5);
    close(found.high, 0.6395, 5e-5);
    assert_eq!((found.value, found.noise), (Some(0.4), 0.0));
    let none = share(0.0, 20.0).estimate(0.95).unwrap();
    assert_eq!(none.low, 0.0);
    close(none.high, 0.1684, 5e-5);
}

#[test]
fn coefficients_without_noise_are_the_classical_ones() {
    let found = least_squares(&anscombe(), 1, 0.95).unwrap();
    // Standard errors 1.1247 and .1179, 9 degrees of freedom.
    for (one, [value, low, high]) in found.iter().zip([[3.0001, 0.4557, 5.5444], [0.5001, 0.2334, 0.7668]]) {
        close(one.value.unwrap(), value, 6e-5);
        close(one.low, low, 3e-4);
        close(one.high, high, 3e-4);
        assert_eq!(one.noise, 0.0);
    }
}

/// y = 1 - 2 x1 + 3 x2 - .. of six covariates, exactly; and one that repeats another is not determined.
#[test]
fn six_covariates_are_told_apart_unless_they_repeat() {
    let coefficients = [1.0, -2.0, 3.0, 0.5, -1.0, 4.0, 0.25];
    let sums = |repeat: bool| {
        let mut sums = vec![0.0; 36];
        for i in 0..40u32 {
            let mut row = vec![1.0];
            row.extend([7, 11, 13, 5, 3, 17].map(|m| f64::from(i * i % m)));
            if repeat {
                row[6] = row[1];
            }
            row.push(coefficients.iter().zip(&row).map(|(b, x)| b * x).sum());
            let products = (0..8).flat_map(|a| (a..8).map(move |b| (a, b)));
            sums.iter_mut().zip(products).for_each(|(sum, (a, b))| *sum += row[a] * row[b]);
        }
        exact(&sums)
    };
    let found = least_squares(&sums(false), 6, 0.95).unwrap();
    for (one, expected) in found.iter().zip(coefficients) {
        close(one.value.unwrap(), expected, 1e-6);
        assert!(one.high - one.low < 1e-3, "{one:?}");
    }
    for one in least_squares(&sums(true), 6, 0.95).unwrap() {
        assert_eq!((one.value, one.low, one.high), (None, f64::NEG_INFINITY, f64::INFINITY));
    }
}

#[test]
fn spreads_without_noise_are_those_of_the_sample() {
    let sums = anscombe();
    let ranges = [[0.0, 20.0], [0.0, 20.0]];
    close(correlation(&sums, ranges, 0.95).unwrap().value.unwrap(), 0.816_420_5, 1e-6);
    close(covariance(&sums, ranges, 0.95).unwrap().value.unwrap(), 5.501, 1e-9);
    let x = exact(&[11.0, 99.0, 1001.0]);
    close(variance(&x, [0.0, 20.0], 0.95).unwrap().value.unwrap(), 11.0, 1e-9);
    close(standard_deviation(&x, [0.0, 20.0], 0.95).unwrap().value.unwrap(), 11f64.sqrt(), 1e-9);
}

/// Values that are skewed alike are far from their means together, never one above and one below: by 18 and
/// by 10 here, where a range of -8 to 10 leaves 18 for both.
#[test]
fn two_skewed_values_have_narrower_intervals() {
    // 10,000 rows; of either value a tenth is 10, a hundredth both.
    let [n, s, q, both] = [1e4, 1e4, 1e5, 1e4];
    let skewed = exact(&[n, s, s, q, both, q]);
    let moved = |low: f64| {
        let (sum, square) = (s - low * n, q - 2.0 * low * s + low * low * n);
        exact(&[n, sum, sum, square, both - 2.0 * low * s + low * low * n, square])
    };
    for of in [covariance, correlation] {
        let half = |sums: &NoisyMoments, low: f64| {
            let found = of(sums, [[low, 10.0]; 2], 0.95).unwrap();
            close(found.value.unwrap(), 0.0, 1e-9);
            0.5 * (found.high - found.low)
        };
        let part = half(&skewed, 0.0) / half(&moved(-8.0), -8.0);
        let expected = (0.5 * (1.0 + (10.0f64 / 18.0).powi(2))).sqrt();
        close(part, expected, 0.03);
    }
}

/// The 8th and the 18th of 25 values bound the median (Thompson 1936): P(Binomial(25, 1/2) <= 7) = .0216.
#[test]
fn a_quantile_without_noise_is_bounded_by_order_statistics() {
    let edges: Vec<f64> = (0..=25).map(f64::from).collect();
    let found = quantile(&exact(&[1.0; 25]), &edges, 0.5, 0.95).unwrap();
    assert_eq!((found.value, found.low, found.high, found.noise), (Some(12.5), 7.0, 18.0, 0.0));
}

/// Newcombe's 56 of 70 and 48 of 80 by the closed forms of Zou and Donner 2008 and Donner and Zou 2012.
/// Limits of counts are not straight in z, so ours are a little wider.
#[test]
fn two_shares_are_near_the_closed_forms() {
    let [first, second] = [share(56.0, 70.0), share(48.0, 80.0)];
    let [a, b] = [&first, &second].map(|cell| cell.estimate(0.95).unwrap());
    let (p, q) = (0.8, 0.6);
    let found = difference(&first, &second, 0.95).unwrap();
    close(found.value.unwrap(), 0.2, 1e-12);
    close(found.low, 0.2 - (p - a.low).hypot(b.high - q), 0.008);
    close(found.high, 0.2 + (a.high - p).hypot(q - b.low), 0.008);
    let found = risk_ratio(&first, &second, 0.95).unwrap();
    let root = |x: f64, y: f64| (p * p * q * q - x * y * (2.0 * p - x) * (2.0 * q - y)).sqrt();
    let low = (p * q - root(a.low, b.high)) / (b.high * (2.0 * q - b.high));
    let high = (p * q + root(a.high, b.low)) / (b.low * (2.0 * q - b.low));
    close(found.low, low, 0.02);
    close(found.high, high, 0.04);
    let odds = odds_ratio(&first, &second, 0.95).unwrap();
    close(odds.value.unwrap(), 4.0 / 1.5, 1e-9);
    assert!(odds.low > 1.0 && odds.low < 4.0 / 1.5 && odds.high < 8.0);
}

#[test]
fn who_is_treated_may_benefit_or_be_harmed() {
    let clear = needed_to_treat(&share(560.0, 700.0), &share(480.0, 800.0), 0.95).unwrap();
    assert_eq!(clear.fewer, None);
    close(clear.value.unwrap(), 5.0, 1e-9);
    let [least, most] = clear.more.unwrap();
    assert_eq!([least, most], [1.0 / clear.difference.high, 1.0 / clear.difference.low]);
    let open = needed_to_treat(&share(12.0, 40.0), &share(11.0, 40.0), 0.95).unwrap();
    assert_eq!(open.more, Some([1.0 / open.difference.high, f64::INFINITY]));
    assert_eq!(open.fewer, Some([-1.0 / open.difference.low, f64::INFINITY]));
    let mean = CellMean::of_value(&exact(&[40.0, 12.0, 12.0]), [0.0, 1.0]).unwrap();
    assert!(needed_to_treat(&mean, &share(11.0, 40.0), 0.95).is_err());
}

/// What the sums do not determine is as wide as the range, and says so.
#[test]
fn noise_above_the_rows_leaves_all_open() {
    let whole = |found: DerivedEstimate, range: [f64; 2]| {
        assert_eq!(([found.low, found.high], found.noise), (range, f64::INFINITY), "{found:?}");
    };
    let noised = |values: &[f64], sd: f64| {
        NoisyMoments::independent(values.to_vec(), &vec![sd * sd; values.len()]).unwrap()
    };
    let sums = noised(&[60.0, 20.0, 10.0], 1000.0);
    whole(mean(&sums, [-1.0, 1.0], 0.95).unwrap(), [-1.0, 1.0]);
    whole(variance(&sums, [-1.0, 1.0], 0.95).unwrap(), [0.0, 1.0]);
    whole(proportion(&noised(&[60.0, 20.0], 1000.0), 0.95).unwrap(), [0.0, 1.0]);
    let six = noised(&[60.0, 20.0, 20.0, 10.0, 10.0, 10.0], 1000.0);
    whole(covariance(&six, [[0.0, 1.0]; 2], 0.95).unwrap(), [-0.25, 0.25]);
    whole(correlation(&six, [[0.0, 1.0]; 2], 0.95).unwrap(), [-1.0, 1.0]);
    for found in least_squares(&six, 1, 0.95).unwrap() {
        whole(found, [f64::NEG_INFINITY, f64::INFINITY]);
    }
    whole(quantile(&noised(&[30.0, 30.0], 1000.0), &[0.0, 1.0, 3.0], 0.5, 0.95).unwrap(), [0.0, 3.0]);
    // Fewer rows than none have no mean.
    let none = mean(&noised(&[-3.0, 2.0, 1.0], 10.0), [0.0, 1.0], 0.95).unwrap();
    whole(none, [0.0, 1.0]);
    assert_eq!(none.value, None);
    // A ratio whose denominator may be 0 has no upper end; whose denominator has either sign, no end.
    let [above, zero] = [[100.0, 50.0, 30.0], [100.0, 0.0, 0.0]].map(|sums| exact(&sums));
    let of = |sums, range| CellMean::of_value(sums, range).unwrap();
    let found = ratio(&of(&above, [0.0, 1.0]), &of(&zero, [0.0, 1.0]), 0.95).unwrap();
    assert!(found.low > 1.0 && found.high == f64::INFINITY && found.value.is_none(), "{found:?}");
    let centred = ratio(&of(&above, [0.0, 1.0]), &of(&above, [-0.5, 0.5]), 0.95).unwrap();
    assert_eq!([centred.low, centred.high], [f64::NEG_INFINITY, f64::INFINITY]);
}

#[test]
fn what_noise_contributes_is_told_apart() {
    let z = 1.959_963_984_540_054_5;
    let only_sum = NoisyMoments::independent(vec![1000.0, 300.0, 200.0], &[0.0, 25.0, 0.0]).unwrap();
    close(mean(&only_sum, [0.0, 1.0], 0.95).unwrap().noise, z * 5.0 / 1000.0, 1e-12);
    // Noise of n and S that moves both along the mean leaves the mean.
    let matrix = [vec![100.0, 30.0], vec![30.0, 9.0]];
    let along = NoisyMoments::new(vec![1000.0, 300.0], &matrix).unwrap();
    close(proportion(&along, 0.95).unwrap().noise, 0.0, 1e-9);
    // Against it, it adds up.
    let matrix = [vec![100.0, -30.0], vec![-30.0, 9.0]];
    let against = NoisyMoments::new(vec![1000.0, 300.0], &matrix).unwrap();
    close(proportion(&against, 0.95).unwrap().noise, z * 6.0 / 1000.0, 3e-4);
    let narrow = proportion(&along, 0.95).unwrap();
    let wide = proportion(&against, 0.95).unwrap();
    assert!(wide.high - wide.low > narrow.high - narrow.low);
}

/// x and R - x are the same question.
#[test]
fn a_mean_from_the_other_end_has_the_mirrored_interval() {
    let matrix = [vec![9.0, 100.0, 0.0], vec![100.0, 4000.0, 0.0], vec![0.0, 0.0, 1e6]];
    let sums = NoisyMoments::new(vec![400.0, 3000.0, 190_000.0], &matrix).unwrap();
    let r = 100.0;
    let turned = [vec![1.0, 0.0, 0.0], vec![r, -1.0, 0.0], vec![r * r, -2.0 * r, 1.0]];
    let other = sums.combined(&turned).unwrap();
    let [found, mirrored] = [&sums, &other].map(|sums| mean(sums, [0.0, r], 0.95).unwrap());
    close(mirrored.low, r - found.high, 1e-6);
    close(mirrored.high, r - found.low, 1e-6);
    close(mirrored.noise, found.noise, 1e-9);
    // A moved range moves the interval.
    let moved = mean(&sums, [-30.0, 70.0], 0.95).unwrap();
    close(moved.low, found.low - 30.0, 1e-9);
}

#[test]
fn what_is_no_release_is_refused() {
    assert!(NoisyMoments::new(vec![1.0, 2.0], &[vec![1.0, 0.0]]).is_err());
    assert!(NoisyMoments::new(vec![1.0, 2.0], &[vec![1.0, 2.0], vec![2.0, 1.0]]).is_err());
    assert!(NoisyMoments::new(vec![1.0, 2.0], &[vec![1.0, 0.5], vec![0.0, 1.0]]).is_err());
    assert!(NoisyMoments::independent(vec![1.0], &[-1.0]).is_err());
    assert!(NoisyMoments::independent(vec![f64::NAN], &[1.0]).is_err());
    let sums = exact(&[10.0, 5.0, 5.0]);
    assert!(mean(&sums, [1.0, 1.0], 0.95).is_err());
    assert!(mean(&sums, [0.0, 1.0], 1.0).is_err());
    assert!(proportion(&sums, 0.95).is_err());
    assert!(least_squares(&sums, 1, 0.95).is_err());
    assert!(quantile(&sums, &[0.0, 1.0, 2.0], 0.5, 0.95).is_err());
    assert!(quantile(&sums, &[0.0, 1.0, 1.0, 2.0], 0.5, 0.95).is_err());
    assert!(quantile(&sums, &[0.0, 1.0, 2.0, 3.0], 1.0, 0.95).is_err());
}

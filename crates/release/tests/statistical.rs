//! Statistical cut-and-choose: honest noise passes at every scale, bent noise does not.

use base::{PartyId, Rng, Seed};
use release::choose::{Context, Debited, Draw, Setup};
use release::gaussian::DiscreteGaussian;
use release::rational::{Rational, ratio};
use release::statistical::*;

fn setup(sigma2: &[Rational]) -> Setup {
    let context = Context {
        study: [1; 32],
        release: [2; 32],
        session: [3; 32],
        data: vec![],
        viewer: PartyId(1),
        drawer: PartyId(0),
    };
    let width = |s: &Rational| DiscreteGaussian::new(s).unwrap().width();
    let draws = sigma2.iter().map(|s| Draw { sigma2: s.clone(), width: width(s) }).collect();
    Setup::new(context, draws, CANDIDATES).unwrap()
}

fn revealed(setup: &Setup, rng: &mut Rng) -> Vec<Vec<i128>> {
    draw(setup, rng).unwrap()[1..].iter().map(|c| c.expose().clone()).collect()
}

fn scales() -> Vec<Rational> {
    vec![ratio(1, 4), ratio(1, 1), ratio(100, 17), ratio(10_000, 1), ratio(1i64 << 50, 3)]
}

#[test]
fn honest_noise_fails_each_test_as_often_as_its_level_says() {
    let setup = setup(&scales());
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    let (mut counts, rounds) = ([[0; 5]; 2], 200);
    for _ in 0..rounds {
        let noises = revealed(&setup, &mut rng);
        assert_eq!(check(&setup, &noises, FALSE_ABORT, &mut rng).unwrap(), None);
        for (i, draw) in setup.draws().iter().enumerate() {
            let column: Vec<i128> = noises.iter().map(|c| c[i]).collect();
            for (t, p) in p_values(&draw.sigma2, &column, &mut rng).into_iter().enumerate() {
                counts[0][t] += u32::from(p < 0.05);
                counts[1][t] += u32::from(p < 0.01);
            }
        }
    }
    println!("of {} at .05 and .01: {counts:?}", rounds * 5);
    // 1000 columns: 50 and 10 expected where the p-value is exact (mean, squares), about as many for
    // Anderson-Darling, fewer for the two that are bounds.
    for t in [0, 1, 3] {
        assert!((25..=80).contains(&counts[0][t]) && (2..=22).contains(&counts[1][t]), "{counts:?}");
    }
    for t in [2, 4] {
        assert!(counts[0][t] <= 80 && counts[1][t] <= 22, "{counts:?}");
    }
}

/// Of 40 runs, how many are refused, and by which tests.
fn refusals(sigma2: &Rational, bend: impl Fn(usize, i128, &mut Rng) -> i128) -> Vec<Test> {
    let setup = setup(std::slice::from_ref(sigma2));
    let mut rng = Seed::from_bytes([2; 32]).into_rng();
    (0..40)
        .filter_map(|_| {
            let mut noises = revealed(&setup, &mut rng);
            for (j, candidate) in noises.iter_mut().enumerate() {
                candidate[0] = bend(j, candidate[0], &mut rng);
            }
            check(&setup, &noises, FALSE_ABORT, &mut rng).unwrap().map(|r| r.test)
        })
        .collect()
}

#[test]
fn bent_noise_is_refused() {
    let sigma2 = ratio(1_000_000, 1);
    let sigma = 1000;
    assert_eq!(refusals(&sigma2, |_, x, _| x).len(), 0);
    assert_eq!(refusals(&sigma2, |_, x, _| 2 * x).len(), 40);
    assert_eq!(refusals(&sigma2, |_, x, _| x / 2).len(), 40);
    assert_eq!(refusals(&sigma2, |_, _, _| 0).len(), 40);
    assert_eq!(refusals(&sigma2, |_, x, _| x + 3 * sigma / 4).len(), 40);
    // One huge noise: only the largest magnitude sees it, and always.
    let outlier = refusals(&sigma2, |j, x, _| if j == 17 { 50 * sigma } else { x });
    assert_eq!(outlier.len(), 40);
    assert!(outlier.iter().all(|t| [Test::Largest, Test::SumOfSquares].contains(t)));
    // Right mean and square, wrong shape: +- sigma.
    let coin = refusals(&sigma2, |_, _, rng| if rng.below(2) == 0 { sigma } else { -sigma });
    assert_eq!(coin.len(), 40);
    // Small scales, with ties.
    assert_eq!(refusals(&ratio(100, 17), |_, x, _| 2 * x).len(), 40);
    assert_eq!(refusals(&ratio(100, 17), |_, _, _| 0).len(), 40);
    // A shift below what the tests can see passes: the slack that the documentation states.
    assert_eq!(refusals(&sigma2, |_, x, _| x + sigma / 10).len(), 0);
}

#[test]
fn bounds_and_shapes() {
    assert_eq!(bound(&ratio(100, 1)), 65);
    assert_eq!(bound(&ratio(1, 4)), 3);
    let setup = setup(&[ratio(1, 4)]);
    let mut rng = Seed::from_bytes([3; 32]).into_rng();
    assert!(draw(&setup, &mut rng).unwrap().iter().all(|c| c.expose()[0].abs() <= 3));
    assert!(check(&setup, &vec![vec![0]; CANDIDATES], 1e-6, &mut rng).is_err());
    assert!(check(&setup, &vec![vec![0, 0]; CANDIDATES - 1], 1e-6, &mut rng).is_err());
    assert!(check(&setup, &vec![vec![0]; CANDIDATES - 1], 0.0, &mut rng).is_err());
    assert!(choose(&setup, Debited::committed(&setup, 1), &mut rng).unwrap() < CANDIDATES);
}

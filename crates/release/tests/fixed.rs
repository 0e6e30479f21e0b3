//! The fixed point against exact rationals: error bounds, grid, neighbours, and the caps.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use proptest::prelude::*;
use release::fixed::{self, ArmTotals};
use release::rational::{Rational, exp2, ratio, to_f64};
use release::scale::{ClampBounds, Sensitivity, fixed_point};
use release::{ReaderRole, ReleaseMode};

/// Totals of `k` people at R, `m` people at y and the rest at 0.
fn totals(n: u64, clamp: u64) -> impl Strategy<Value = ArmTotals> {
    (0..=n, 0..=n, 0..=clamp).prop_map(move |(k, m, y)| {
        let m = m.min(n - k);
        let square = |x: u64| u128::from(x) * u128::from(x);
        ArmTotals { n, s: k * clamp + m * y, q: u128::from(k) * square(clamp) + u128::from(m) * square(y) }
    })
}

fn arms() -> impl Strategy<Value = (ArmTotals, ArmTotals, u64)> {
    (1u32..=29, 1u32..=29, 0u32..=20).prop_flat_map(|(a, b, r)| {
        (2u64..=1 << a, 2u64..=1 << b, 1u64..=1 << r)
            .prop_flat_map(|(n, m, clamp)| (totals(n.max(2), clamp), totals(m.max(2), clamp), Just(clamp)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn errors_are_below_1_and_2_and_2_42_steps((t, c, clamp) in arms()) {
        let values = fixed::values(&t, &c, clamp).unwrap();
        let lift = (t.mean() - c.mean()) * exp2(values.grid.lift);
        prop_assert!((lift - BigInt::from(values.lift)).abs() < ratio(1, 1));
        let v = t.variance() + c.variance();
        let error = &v * exp2(values.grid.v) - BigInt::from(values.v);
        prop_assert!(error >= ratio(0, 1) && error < ratio(2, 1));
        // se_fx <= se < se_fx + 2.42, squared.
        let se2 = v * exp2(2 * values.grid.se);
        let low = Rational::from_integer(values.se.into());
        prop_assert!(&low * &low <= se2);
        let high = low + ratio(242, 100);
        prop_assert!(se2 < &high * &high);
    }

    #[test]
    fn the_grid_is_the_coarsest_that_is_fine_enough((t, c, clamp) in arms()) {
        let grid = fixed::Grid::new(t.n, c.n, clamp).unwrap();
        let delta = Sensitivity::of(ReaderRole::Publisher, t.n, c.n, clamp);
        for (delta, f) in [(&delta.lift, grid.lift), (&delta.v, grid.v)] {
            prop_assert!(delta * exp2(f) >= exp2(20) && delta * exp2(f - 1) < exp2(20));
        }
        prop_assert_eq!(grid.lift, grid.se);
    }
}

/// Two swaps and one changed outcome on random small data: the integer values never differ by more than the
/// integer sensitivity the noise is scaled to, and the worst data reach the real one.
#[test]
fn neighbours_stay_within_the_integer_sensitivity() {
    let mut rng = base::Seed::from_bytes([3; 32]).into_rng();
    let clamp = 16u64;
    let sum = |xs: &[u64]| ArmTotals {
        n: xs.len() as u64,
        s: xs.iter().sum(),
        q: xs.iter().map(|&x| u128::from(x * x)).sum(),
    };
    let mut tightest = 0f64;
    for round in 0..4000u64 {
        let (n, m) = (2 + rng.below(6), 2 + rng.below(6));
        // Mostly extreme outcomes: the worst cases are at the ends.
        let mut draw =
            |count: u64| -> Vec<u64> {
                (0..count)
                    .map(|_| {
                        if round % 3 == 0 {
                            rng.below(clamp + 1)
                        } else {
                            clamp * u64::from(rng.below(5) == 0)
                        }
                    })
                    .collect()
            };
        let (mut test, mut control) = (draw(n), draw(m));
        let before = fixed::values(&sum(&test), &sum(&control), clamp).unwrap();
        let viewer = if round % 2 == 0 { ReaderRole::Publisher } else { ReaderRole::Advertiser };
        if viewer == ReaderRole::Publisher {
            test[0] = clamp - test[0];
        } else {
            std::mem::swap(&mut test[0], &mut control[0]);
        }
        let after = fixed::values(&sum(&test), &sum(&control), clamp).unwrap();
        let bounds = ClampBounds { clamp };
        for (mode, difference) in [
            (ReleaseMode::Variance, before.v.abs_diff(after.v)),
            (ReleaseMode::Algorithm1, before.se.abs_diff(after.se)),
        ] {
            let scale = fixed_point(mode, viewer, (n, m), bounds, &ratio(1, 1)).unwrap();
            let allowed = |m: &release::scale::GaussianMechanism| {
                let square = &m.sigma2 * &m.rho * BigInt::from(2);
                assert!(square.is_integer());
                to_f64(&square).sqrt()
            };
            assert!(difference as f64 <= allowed(&scale.spread));
            assert!(before.lift.abs_diff(after.lift) as f64 <= allowed(&scale.lift));
            tightest = tightest.max(difference as f64 / allowed(&scale.spread));
        }
    }
    assert!(tightest > 0.99, "the sensitivities are reached, {tightest}");
}

#[test]
fn caps_hold_at_the_cap_and_beyond() {
    let at = ArmTotals { n: fixed::ROWS, s: fixed::ROWS * fixed::CLAMP, q: 1 << 69 };
    let values = fixed::values(&at, &ArmTotals { s: 0, q: 0, ..at }, fixed::CLAMP).unwrap();
    assert_eq!(values.lift.to_u64(), Some(1 << 49));
    for (n, m, clamp) in [
        (fixed::ROWS + 1, 5, 1),
        (5, fixed::ROWS + 1, 1),
        (1, 5, 1),
        (5, 0, 1),
        (5, 5, 0),
        (5, 5, fixed::CLAMP + 1),
    ] {
        assert!(fixed::Grid::new(n, m, clamp).is_err(), "{n} {m} {clamp}");
    }
    let bounds = ClampBounds { clamp: 1 };
    let rho = ratio(1, 1);
    assert!(fixed_point(ReleaseMode::Variance, ReaderRole::Public, (1, 5), bounds, &rho).is_err());
    for impossible in [
        ArmTotals { n: 2, s: 21, q: 221 },
        ArmTotals { n: 2, s: 10, q: 101 },
        ArmTotals { n: 2, s: 10, q: 49 },
        ArmTotals { n: 2, s: 1, q: u128::MAX },
    ] {
        assert!(fixed::values(&impossible, &ArmTotals { n: 2, s: 0, q: 0 }, 10).is_err(), "{impossible:?}");
    }
}

//! P-values of several tests, adjusted so that all of them together are wrong seldom.

/// Holm's step-down adjustment (Holm 1979): the p-values in order, the least times their number, the next
/// times one fewer, and so on, each no less than the one before it and none above 1.
///
/// Rejecting what is at most `a` after it rejects any true hypothesis with probability at most `a`, however
/// the tests depend on each other: cells of one view share people and noise.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (place, &at) in order.iter().enumerate() {
        least = least.max(p_values[at] * (p_values.len() - place) as f64).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::normal_quantile_upper;
    use proptest::prelude::*;

    fn close(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
        }
    }

    /// The same as R's `p.adjust(p, "holm")`.
    #[test]
    fn known_answers() {
        close(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        close(&holm(&[0.01, 0.02, 0.03, 0.04, 0.05]), &[0.05, 0.08, 0.09, 0.09, 0.09]);
        close(&holm(&[0.6, 0.001, 0.6]), &[1.0, 0.003, 1.0]);
        close(&holm(&[0.02, 0.02]), &[0.04, 0.04]);
        close(&holm(&[0.2]), &[0.2]);
        close(&holm(&[]), &[]);
    }

    proptest! {
        /// Never below the p-value nor above Bonferroni's, and in the same order.
        #[test]
        fn between_none_and_bonferroni(p_values in prop::collection::vec(0.0f64..=1.0, 1..12)) {
            let adjusted = holm(&p_values);
            let most = p_values.len() as f64;
            for (p, adjusted) in p_values.iter().zip(&adjusted) {
                prop_assert!(*adjusted >= *p && *adjusted <= (p * most).min(1.0));
            }
            for (a, b) in p_values.iter().zip(&adjusted) {
                let later = p_values.iter().zip(&adjusted).filter(|(p, _)| *p > a);
                prop_assert!(later.into_iter().all(|(_, adjusted)| adjusted >= b));
            }
        }
    }

    /// Of eight true hypotheses one is rejected at 5 % in 5 % of families, where the tests are alike or share
    /// a part; without the adjustment in a third of them.
    #[test]
    fn one_false_finding_in_twenty_families() {
        let (families, tests) = (4_000u32, 8);
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let (mut raw, mut wrong) = (0, 0);
        for family in 0..families {
            let shared = if family % 2 == 0 { 0.0 } else { 0.7 };
            let common = normal_quantile_upper(uniform());
            let one = |own: f64| {
                let z = f64::sqrt(1.0 - shared * shared) * normal_quantile_upper(own) + shared * common;
                2.0 * crate::normal::normal_upper(z.abs())
            };
            let p_values: Vec<f64> = (0..tests).map(|_| one(uniform())).collect();
            raw += u32::from(p_values.iter().any(|p| *p <= 0.05));
            wrong += u32::from(holm(&p_values).iter().any(|p| *p <= 0.05));
        }
        // Three standard deviations above 5 %.
        assert!(wrong <= 241 && wrong > 100, "{wrong}");
        assert!(raw > 1_000, "{raw}");
    }
}

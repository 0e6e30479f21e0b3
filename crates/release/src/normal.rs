//! The normal distribution in doubles, as the estimates need it.

use std::f64::consts::SQRT_2;

/// P(Z > x) for a standard normal Z.
#[must_use]
pub fn normal_upper(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// The x with P(Z > x) = `tail`, for 0 < tail < 1. Doubles carry tails down to 1e-300.
#[must_use]
pub fn normal_quantile_upper(tail: f64) -> f64 {
    if tail > 0.5 {
        return -normal_quantile_upper(1.0 - tail);
    }
    let (mut low, mut high) = (0.0f64, 40.0f64);
    // Bisection on a monotone function: slow, short and never wrong.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if normal_upper(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The two-sided critical value z of a confidence level: P(|Z| <= z) = `confidence`, in 0..1.
///
/// 90, 95 and 99 % are the agreed constants, to the last bit.
#[must_use]
pub fn critical(confidence: f64) -> f64 {
    if confidence == 0.90 {
        1.644_853_626_951_472_2
    } else if confidence == 0.95 {
        1.959_963_984_540_054_5
    } else if confidence == 0.99 {
        2.575_829_303_548_900_4
    } else {
        normal_quantile_upper(0.5 * (1.0 - confidence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 2e-13, "{got:e} is not {expected:e}");
    }

    #[test]
    fn known_values() {
        close(normal_upper(1.0), 0.158_655_253_931_457_05);
        close(normal_upper(-1.0), 0.841_344_746_068_542_9);
        // erfc(5) / 2 and the least tail that doubles carry with all digits.
        close(normal_upper(5.0 * SQRT_2), 0.5 * 1.537_459_794_428_034_8e-12);
    }

    #[test]
    fn quantiles_invert() {
        for (confidence, z) in [(0.9, 1.644_853_626_951_472_2), (0.99, 2.575_829_303_548_900_4)] {
            let found: f64 = normal_quantile_upper(0.5 * (1.0 - confidence));
            assert!((found - z).abs() < 1e-12);
        }
        assert!((critical(0.95) - normal_quantile_upper(0.025)).abs() < 1e-12);
        assert!((normal_quantile_upper(0.8) + 0.841_621_233_572_914).abs() < 1e-12);
    }
}

//! Exact rational numbers: privacy budgets, sensitivities and variances are never rounded on the way to the
//! sampler.

use num_bigint::{BigInt, BigUint, Sign};
use num_rational::Ratio;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// An exact rational number.
pub type Rational = Ratio<BigInt>;

/// `numerator / denominator`, reduced. The denominator is not 0.
#[must_use]
pub fn ratio(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

/// The nearest double, give or take one unit in the last place; saturates to infinity or 0 beyond its range.
#[must_use]
pub fn to_f64(value: &Rational) -> f64 {
    if value.is_zero() {
        return 0.0;
    }
    // A quotient of 64 or 65 bits carries more than a double holds.
    let shift = 64 - (value.numer().bits() as i64 - value.denom().bits() as i64);
    let quotient = shifted(&value.numer().abs(), shift.max(0)) / shifted(value.denom(), (-shift).max(0));
    let magnitude = quotient.to_f64().expect("an integer of 65 bits is a double") * power_of_two(-shift);
    if value.is_negative() { -magnitude } else { magnitude }
}

fn shifted(value: &BigInt, by: i64) -> BigInt {
    value << usize::try_from(by).expect("the caller passes no negative shift")
}

fn power_of_two(exponent: i64) -> f64 {
    2f64.powi(exponent.clamp(-2000, 2000) as i32)
}

/// A decimal when that is exact with nine places, else `p/q`.
#[must_use]
pub fn shown(value: &Rational) -> String {
    let nano = value * ratio(1_000_000_000, 1);
    if !nano.is_integer() || value.is_negative() {
        return value.to_string();
    }
    let digits = format!("{:0>10}", nano.to_integer().to_string());
    let (whole, part) = digits.split_at(digits.len() - 9);
    format!("{whole}.{part}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A probability near 0: `1.2e-9`, rounded up in the second digit; `0`.
#[must_use]
pub fn small(value: &Rational) -> String {
    match to_f64(value) {
        0.0 => "0".to_owned(),
        value => {
            let power = value.log10().floor();
            let digits = (value / 10f64.powf(power) * 10.0 - 1e-6).ceil() / 10.0;
            format!("{digits}e{power}")
        }
    }
}

/// `2^exponent`, exactly; the exponent may be negative.
#[must_use]
pub fn exp2(exponent: i32) -> Rational {
    let power = BigInt::one() << exponent.unsigned_abs();
    if exponent >= 0 { Rational::from_integer(power) } else { Rational::new(BigInt::one(), power) }
}

/// The least integer whose square is at least `square` (which is not negative): the ceiling of its square
/// root.
#[must_use]
pub fn ceil_sqrt(square: &Rational) -> BigInt {
    let target = unsigned(&square.ceil().to_integer());
    let root = target.sqrt();
    let up = &root * &root < target;
    BigInt::from(root) + i32::from(up)
}

/// The magnitude of a number that is not negative.
pub(crate) fn unsigned(value: &BigInt) -> BigUint {
    debug_assert!(value.sign() != Sign::Minus);
    value.magnitude().clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn roots_round_up() {
        assert_eq!(ceil_sqrt(&ratio(16, 1)), 4.into());
        assert_eq!(ceil_sqrt(&ratio(161, 10)), 5.into());
        assert_eq!(ceil_sqrt(&ratio(0, 1)), 0.into());
        assert_eq!(ceil_sqrt(&ratio(1, 1000)), 1.into());
    }

    proptest! {
        #[test]
        fn doubles_are_near(numerator in any::<i64>(), denominator in 1i64..) {
            let expected = numerator as f64 / denominator as f64;
            let got = to_f64(&ratio(numerator, denominator));
            prop_assert!((got - expected).abs() <= 4.0 * f64::EPSILON * expected.abs());
        }
    }
}

//! Exact rational numbers: privacy budgets, sensitivities and variances are never rounded on the way to the
//! sampler.

use num_bigint::{BigInt, BigUint, Sign};
use num_rational::Ratio;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Digits of a [`decimal`] after its point.
const PLACES: usize = 9;

/// An exact rational number.
pub type Rational = Ratio<BigInt>;

/// `numerator / denominator`, reduced. The denominator is not 0.
#[must_use]
pub fn ratio(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

/// Reads `3/4`, `3` or `0.75`, not negative, of integers below 2^128.
#[must_use]
pub fn parse(text: &str) -> Option<Rational> {
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u128>().ok()).flatten();
    if let Some((numerator, denominator)) = text.split_once('/') {
        return Some(ratio(digits(numerator)?, digits(denominator).filter(|d| *d != 0)?));
    }
    let Some((whole, part)) = text.split_once('.') else {
        return Some(ratio(digits(text)?, 1));
    };
    let denominator = 10u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    Some(ratio(digits(whole)?.checked_mul(denominator)?.checked_add(digits(part)?)?, denominator))
}

/// Reads a decimal as people write a rho: `12`, `0.1`, `+3.25`. It has no exponent, no sign but `+`, and one
/// to nine digits before and after the point.
#[must_use]
pub fn decimal(text: &str) -> Option<Rational> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let short = |s: &str| (1..=PLACES).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    (short(whole) && short(part)).then(|| parse(text)).flatten()
}

/// The value of a [`decimal`] in units of 10^-9. Others are rounded down, those out of range saturate.
#[must_use]
pub fn nano(value: &Rational) -> u64 {
    (value * ratio(10u64.pow(PLACES as u32), 1)).to_integer().to_u64().unwrap_or(u64::MAX)
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
    let nano = value * ratio(10u64.pow(PLACES as u32), 1);
    if !nano.is_integer() || value.is_negative() {
        return value.to_string();
    }
    let digits = format!("{:0>1$}", nano.to_integer().to_string(), PLACES + 1);
    let (whole, part) = digits.split_at(digits.len() - PLACES);
    format!("{whole}.{part}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A probability near 0 as files have it: `1.2e-9`, rounded up in the second digit; `0`.
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
    fn texts_are_exact() {
        let tenth = decimal("0.10").unwrap();
        assert_eq!((&tenth, nano(&tenth), shown(&tenth)), (&ratio(1, 10), 100_000_000, "0.1".to_owned()));
        assert_eq!(decimal("+12"), Some(ratio(12, 1)));
        assert_eq!(decimal("0.000000001"), Some(ratio(1, 1_000_000_000)));
        assert_eq!(decimal("999999999.999999999").map(|d| shown(&d)).as_deref(), Some("999999999.999999999"));
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1e3",
            "0.0000000001",
            "1234567890",
            "inf",
            "nan",
            "0x1",
            "1_0",
            "1/2",
        ] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_program_writes_fractions() {
        let third = parse("1/3").unwrap();
        assert_eq!((&third + &third + &third).to_string(), "1");
        assert_eq!(parse("0.1").unwrap().to_string(), "1/10");
        for bad in ["1/0", ".5", "", "1/", "-1", "340282366920938463463374607431768211456"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

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

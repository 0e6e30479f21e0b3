//! Exact decimals: a rho of `0.1` is one tenth, not the nearest binary fraction.

use program::Ratio;
use release::Rational;
use std::fmt;

/// Digits after the point.
const PLACES: usize = 9;
/// Ten to the power of [`PLACES`].
const SCALE: u64 = 1_000_000_000;

/// A non-negative decimal with at most nine digits after the point, kept exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    /// The value in units of 10^-9.
    nano: u64,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self { nano: 0 };

    /// Reads `12`, `0.1`, `+3.25`; no exponent, no sign but `+`, at most nine digits before and after the
    /// point.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| (1..=PLACES).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) {
            return None;
        }
        let whole: u64 = whole.parse().ok()?;
        let part: u64 = format!("{part:0<PLACES$}").parse().ok()?;
        Some(Self { nano: whole * SCALE + part })
    }

    /// The value in units of 10^-9.
    #[must_use]
    pub fn nano(self) -> u64 {
        self.nano
    }

    /// The value from units of 10^-9.
    #[must_use]
    pub fn from_nano(nano: u64) -> Self {
        Self { nano }
    }

    /// The same value as a program states it.
    #[must_use]
    pub fn to_ratio(self) -> Ratio {
        Ratio::new(u128::from(self.nano), u128::from(SCALE)).expect("the denominator is a power of ten")
    }

    /// The same value as budgets add it up.
    #[must_use]
    pub fn rational(self) -> Rational {
        self.to_ratio().rational()
    }

    /// Numerator and denominator in lowest terms.
    #[must_use]
    pub fn ratio(self) -> (u64, u64) {
        let divisor = gcd(self.nano, SCALE);
        (self.nano / divisor, SCALE / divisor)
    }

    /// The nearest double, for display and plots only.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.nano as f64 / SCALE as f64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:0PLACES$}", self.nano % SCALE);
        match part.trim_end_matches('0') {
            "" => write!(f, "{}", self.nano / SCALE),
            part => write!(f, "{}.{part}", self.nano / SCALE),
        }
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let tenth = Decimal::parse("0.10").expect("a decimal");
        assert_eq!((tenth.ratio(), tenth.to_string()), ((1, 10), "0.1".to_owned()));
        assert_eq!(Decimal::parse("12").map(Decimal::ratio), Some((12, 1)));
        assert_eq!(Decimal::parse("0.000000001").map(Decimal::ratio), Some((1, 1_000_000_000)));
        assert_eq!(
            Decimal::parse("999999999.999999999").map(|d| d.to_string()).as_deref(),
            Some("999999999.999999999")
        );
        assert_eq!(Decimal::parse("0.0"), Some(Decimal::ZERO));
        for bad in
            ["", ".", "1.", ".5", "-1", "1e3", "0.0000000001", "1234567890", "inf", "nan", "0x1", "1_0"]
        {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }
}

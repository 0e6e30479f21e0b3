//! Types of values, sets of owners, and exact ratios.

use base::{PartyId, limits};
use std::fmt;

/// Type of a value: `bit`, `u1..u128`, `i2..i128`. Signed values are two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// Bits, 1..=128.
    pub width: u8,
    /// Whether the top bit counts negatively.
    pub signed: bool,
}

impl ValueType {
    /// One bit.
    pub const BIT: Self = Self { width: 1, signed: false };

    /// Unsigned of `width` bits. Panics outside 1..=128: a bug of the caller; text is checked by the parser.
    #[must_use]
    pub const fn u(width: u8) -> Self {
        assert!(width >= 1 && width as u32 <= limits::WIDTH);
        Self { width, signed: false }
    }

    /// Signed of `width` bits, 2..=128.
    #[must_use]
    pub const fn i(width: u8) -> Self {
        assert!(width >= 2 && width as u32 <= limits::WIDTH);
        Self { width, signed: true }
    }

    /// All ones in this width.
    #[must_use]
    pub const fn mask(self) -> u128 {
        u128::MAX >> (128 - self.width as u32)
    }

    /// The largest value.
    #[must_use]
    pub const fn max(self) -> u128 {
        if self.signed { self.mask() >> 1 } else { self.mask() }
    }

    /// The bit pattern as a signed number; only for signed types or widths below 128.
    #[must_use]
    pub const fn to_signed(self, value: u128) -> i128 {
        let shift = 128 - self.width as u32;
        if self.signed { ((value << shift) as i128) >> shift } else { value as i128 }
    }

    /// The number that a bit pattern is, where `i128` holds it.
    #[must_use]
    pub fn number(self, pattern: u128) -> Option<i128> {
        if self.signed { Some(self.to_signed(pattern)) } else { i128::try_from(pattern).ok() }
    }

    /// Parses `bit`, `u32`, `i64`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "bit" {
            return Some(Self::BIT);
        }
        let (kind, digits) = text.split_at_checked(1)?;
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let width: u8 = digits.parse().ok()?;
        match kind {
            "u" if (1..=128).contains(&width) => Some(Self::u(width)),
            "i" if (2..=128).contains(&width) => Some(Self::i(width)),
            _ => None,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.signed, self.width) {
            (false, 1) => f.write_str("bit"),
            (false, w) => write!(f, "u{w}"),
            (true, w) => write!(f, "i{w}"),
        }
    }
}

/// A set of parties on whose data a value depends. Empty: public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owners(u16);

impl Owners {
    /// Depends on nobody's data.
    pub const PUBLIC: Self = Self(0);

    /// Depends on one party's data.
    #[must_use]
    pub fn one(party: PartyId) -> Self {
        Self(1 << party.0)
    }

    /// Depends on the data of every one of so many parties.
    #[must_use]
    pub fn all(parties: usize) -> Self {
        (0..parties as u8).fold(Self::PUBLIC, |all, p| all.union(Self::one(PartyId(p))))
    }

    /// Depends on what either depends on.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether nobody's data matters.
    #[must_use]
    pub fn is_public(self) -> bool {
        self.0 == 0
    }

    /// The only owner, if there is exactly one.
    #[must_use]
    pub fn only(self) -> Option<PartyId> {
        self.0.is_power_of_two().then(|| PartyId(self.0.trailing_zeros() as u8))
    }

    /// Whether it depends on a party's data.
    #[must_use]
    pub fn has(self, party: PartyId) -> bool {
        self.0 & 1 << party.0 != 0
    }

    /// Whether `party` can compute the value alone.
    #[must_use]
    pub fn within(self, party: PartyId) -> bool {
        self.0 & !(1 << party.0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_round_trip() {
        for width in 1..=128 {
            assert_eq!(ValueType::parse(&ValueType::u(width).to_string()), Some(ValueType::u(width)));
        }
        for text in ["", "b", "u0", "u129", "i1", "u01", "u+1", "x8", "é"] {
            assert_eq!(ValueType::parse(text), None, "{text}");
        }
    }
}

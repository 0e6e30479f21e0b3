//! The numbers of a simulation as people read them.

use super::SimulatedNumber;
use page::numbers::{MISSING, grouped};

impl SimulatedNumber {
    /// A value of it; whole, where its values are.
    #[must_use]
    pub fn shown(&self, value: Option<f64>) -> String {
        let is_whole = self.exact_digits.as_ref().is_some_and(|digits| !digits.contains('.'));
        let decimals = if is_whole { 0 } else { self.decimals() };
        value.map_or_else(|| MISSING.to_owned(), |value| fixed(value, decimals))
    }

    /// How far values of it are from each other.
    #[must_use]
    pub fn apart(&self, error: Option<f64>) -> String {
        error.map_or_else(|| MISSING.to_owned(), |error| fixed(error, self.decimals()))
    }

    /// Without noise, with the row that it is of.
    #[must_use]
    pub fn exact_words(&self) -> String {
        let key = self.key.as_ref().map_or_else(String::new, |key| format!(" ({key})"));
        self.whole(self.exact_digits.as_deref(), self.exact) + &key
    }

    /// As one release has it.
    #[must_use]
    pub fn released_words(&self) -> String {
        self.whole(self.released_digits.as_deref(), self.released)
    }

    /// The intervals of that release.
    #[must_use]
    pub fn interval_words(&self) -> String {
        let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), |end| self.shown(Some(end)));
        let interval = |[low, high]: &[Option<f64>; 2]| format!("{} to {}", end(*low), end(*high));
        self.intervals.iter().map(interval).collect::<Vec<_>>().join(" or ")
    }

    /// Where the middle 95 of 100 releases lie; empty without noise.
    #[must_use]
    pub fn spread_words(&self) -> String {
        let spread = self.spread.as_ref();
        spread.map_or_else(String::new, |one| format!("{} to {}", self.shown(one.low), self.shown(one.high)))
    }

    fn whole(&self, digits: Option<&str>, value: Option<f64>) -> String {
        digits.map_or_else(|| self.shown(value), grouped)
    }

    /// Digits after the point that the noise leaves, and one or two more; without noise six significant ones.
    fn decimals(&self) -> usize {
        let deviation = self.spread.as_ref().and_then(|spread| spread.deviation).filter(|d| *d > 0.0);
        let (scale, digits) = match (deviation, self.exact) {
            (Some(deviation), _) => (deviation, 2),
            (None, Some(exact)) if exact != exact.round() => (exact, 5),
            _ => return 0,
        };
        (digits - scale.abs().log10().floor() as i32).clamp(0, 12) as usize
    }
}

/// Written out, whatever the size.
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    grouped(if is_zero { text.trim_start_matches('-') } else { &text })
}

//! Bounds that an operator sets beside the budget: within a period, and on how often runs begin.

use release::Rational;
use release::rational::shown;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// A bound within the budget: most that one viewer may be charged within any span of this length. Nothing
/// refills: the budget bounds all spans together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its length.
    pub seconds: u64,
    /// Most zCDP in it.
    pub budget: Rational,
}

impl Period {
    /// `0.5 in 90 days`.
    #[must_use]
    pub fn words(&self) -> String {
        let days = self.seconds / DAY;
        format!("{} in {days} {}", shown(&self.budget), if days == 1 { "day" } else { "days" })
    }
}

/// Most runs with one peer within any span of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRate {
    /// How many.
    pub runs: u32,
    /// The span's length.
    pub seconds: u32,
}

/// Spans by their names.
const SPANS: [(&str, u32); 3] = [("hour", 3_600), ("day", 86_400), ("week", 7 * 86_400)];

impl RunRate {
    /// Reads `20/day`.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let rule = "write a whole number from 1, a stroke, and hour, day or week: 20/day";
        let (runs, span) = text.split_once('/').ok_or(rule)?;
        let runs = runs.parse().ok().filter(|runs| (1..=1_000_000).contains(runs)).ok_or(rule)?;
        let (_, seconds) = SPANS.iter().find(|(name, _)| *name == span).ok_or(rule)?;
        Ok(Self { runs, seconds: *seconds })
    }

    /// `20/day`.
    #[must_use]
    pub fn words(&self) -> String {
        let span =
            SPANS.iter().find(|(_, seconds)| *seconds == self.seconds).map_or("second", |(name, _)| name);
        format!("{}/{span}", self.runs)
    }
}

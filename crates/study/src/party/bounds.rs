//! Bounds that an operator sets beside the budget: within a period, and on how often runs begin.

use crate::reader::TomlItem;
use base::{Error, unhex};
use release::Rational;
use release::rational::{parse, shown};

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

/// What an organisation has consented to for one study, as its service writes it: beyond it the study charges
/// nothing, whatever budgets are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreedBounds {
    /// The most that each viewer may be charged. Who is not named may be charged nothing.
    pub charges: Vec<AgreedCharge>,
    /// What was charged up to this row of the ledger was charged before the consent.
    pub after: u64,
    /// When it was given, in seconds since 1970: what was charged since then counts in any ledger.
    pub at: u64,
    /// Matches that may begin anew.
    pub matches: u64,
    /// The name of the data in the ledger; none: any version of them.
    pub data: Option<[u8; 32]>,
    /// The lineage that is charged; none: in consents of before it was not said.
    pub lineage: Option<String>,
    /// Fewest rows that take part.
    pub rows: u64,
}

/// The most that one viewer may be charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreedCharge {
    /// Its key, or [`Self::PUBLIC`].
    pub viewer: String,
    /// Rho.
    pub rho: Rational,
    /// Delta.
    pub delta: Rational,
}

impl AgreedCharge {
    /// The viewer who is everybody.
    pub const PUBLIC: &'static str = "public";

    fn read(text: &str) -> Result<Self, &'static str> {
        let rule = "write a viewer's key or public, rho and delta: \"public 1/10 0\"";
        let [viewer, rho, delta] = text.split(' ').collect::<Vec<_>>()[..] else { return Err(rule) };
        let number = |text: &str| parse(text).ok_or(rule);
        Ok(Self { viewer: viewer.to_owned(), rho: number(rho)?, delta: number(delta)? })
    }
}

impl AgreedBounds {
    /// Of the section `[policy.agreed]`.
    pub(super) fn read(item: &TomlItem<'_, '_>) -> Result<Self, Error> {
        let section = item.section(&["charges", "after", "at", "matches", "data", "lineage", "rows"])?;
        let number = |key: &str, least: u64| {
            section.need(key, &format!("{key} = 1"))?.integer(least..=i64::MAX.unsigned_abs())
        };
        let charges = section.need("charges", "charges = [\"public 1/10 0\"]")?;
        let data =
            section.get("data").map(|item| item.parsed(|text| unhex(text).ok_or("write 64 hex digits")));
        Ok(Self {
            charges: charges
                .list()?
                .iter()
                .map(|one| one.parsed(AgreedCharge::read))
                .collect::<Result<_, _>>()?,
            after: number("after", 0)?,
            at: number("at", 0)?,
            matches: number("matches", 1)?,
            data: data.transpose()?,
            lineage: section.get("lineage").map(|item| item.text().map(str::to_owned)).transpose()?,
            rows: number("rows", 0)?,
        })
    }

    /// Whether what is charged may be charged to a lineage.
    ///
    /// # Errors
    /// A refusal, where it is another one than was consented to.
    pub fn charges_to(&self, lineage: &str) -> Result<(), Error> {
        match &self.lineage {
            Some(agreed) if agreed != lineage => Err(Error::refused(format!(
                "consent: this would be charged to the lineage {lineage}, and what was consented to is \
                 charged to {agreed}: say lineage = \"{agreed}\" again, or have the study proposed again"
            ))),
            _ => Ok(()),
        }
    }

    /// What one viewer may be charged.
    #[must_use]
    pub fn of(&self, viewer: &str) -> Option<&AgreedCharge> {
        self.charges.iter().find(|charge| charge.viewer == viewer)
    }
}

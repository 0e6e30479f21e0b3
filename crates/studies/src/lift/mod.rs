//! Conversion Lift: did the treatment change the outcome, and by how much?
//!
//! * Functionality: per arm (and per value of a breakdown and of a cohort) the number of people with an
//!   opportunity, the sum and the sum of squares of each person's clamped outcome after the opportunity, and
//!   further counts; or, in the fixed-point modes, the difference of means with its variance or standard
//!   error.
//! * Several advertisers: one table of all parties, in which a person's outcome is the sum of what each of
//!   them knows, clamped and squared inside the computation.
//! * Who learns what: each viewer sees its own exact values and everything else with noise against the other
//!   party; [`program::verify()`] derives this from the program, it is not taken on trust.
//! * Paper: the lift game and Algorithm 1 of Private RCT. Deviations: a person's total is clamped and squared
//!   as a whole, per window of counted events and by its owner in the clear; noise scales are per viewer.
//! * Cost per row: `K * time_bits` AND gates (twice that and one per pair of events with a window), masks for
//!   all else.
//!
//! Definitions, cells, split of rho and measured cost: `docs/studies/lift.md`.

mod bench;
mod build;
mod layout;
mod truth;

pub use bench::{BenchRows, bench_row, bench_truth};
pub use build::build;
pub use layout::{
    CellFamily, CellTotal, Content, LiftCell, LiftLayout, NO_VALUE, OutputMeaning, Quantity, TrialArm,
};
pub use truth::{Anchor, JoinedRow, PersonEvent, PersonOutcome, TrueTotals, User, truth};

use base::{Error, PartyId, limits};
use program::Viewer;
pub use release::ReleaseMode;
use release::rational::{Rational, ratio};

/// The publisher in every lift program: it knows arm and opportunity.
pub const PUBLISHER: PartyId = PartyId(0);
/// The first advertiser in every lift program: it knows the outcome, or its part of it.
pub const ADVERTISER: PartyId = PartyId(1);
/// Largest K.
pub const MAX_EVENTS: u8 = 16;
/// Most values of the breakdown, and of the cohort.
pub const MAX_VALUES: usize = 64;
/// Most bytes of the names of arms and groups in one label of a result, beside its other words.
const NAMES_BYTES: usize = program::LABEL_BYTES - 60;
/// Largest R of the fixed-point modes, whose widths rest on it.
pub const MAX_FIXED_CLAMP: u128 = 1 << 20;
/// Most slots of a row.
pub const MAX_SLOTS: u8 = 16;
/// Widest times and values.
pub const MAX_BITS: u8 = 32;

/// The public parameters of a lift study. All of them are in the program, hence in its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftParameters {
    /// Name of the publisher, party 0.
    pub publisher: String,
    /// Names of the advertisers, from party 1. Of several, a person's outcome is what the events of all of
    /// them add up to.
    pub advertisers: Vec<String>,
    /// Bits of a time, 1..=32. All ones means "no opportunity", so times end at `2^time_bits - 2`.
    pub time_bits: u8,
    /// K: events of one person that count, 1..=16.
    pub max_events: u8,
    /// Bits of an event's value, 1..=32.
    pub value_bits: u8,
    /// R: most that one person adds to a sum, 1..2^32.
    pub clamp: u128,
    /// Events count up to so many units after the opportunity; `None`: for ever.
    pub within: Option<u32>,
    /// Whether the publisher knows who was reached; the reached counts need it.
    pub impressions: bool,
    /// Names of the test and the control arm.
    pub arms: [String; 2],
    /// Names of the breakdown's values; empty: no breakdown.
    pub breakdown: Vec<String>,
    /// Names of the cohort's values; empty: no cohort.
    pub cohorts: Vec<String>,
    /// What is noised.
    pub mode: ReleaseMode,
    /// zCDP spent on what each party alone sees, the publisher first; 0: nothing.
    pub rho: Vec<Rational>,
    /// zCDP spent on what everybody sees; 0: nothing. One of them all is above 0.
    pub public: Rational,
    /// Further counts, each with its own share of rho.
    pub also: Vec<Also>,
    /// What the program must know of how rows were joined.
    pub matching: JoinShape,
}

/// How rows were joined, as far as it changes what is computed or what one row can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinShape {
    /// Whether a joined row, or a slot of it, may hold no match: a shared column `valid` then says which one
    /// does, and what lies in the others counts nowhere, whatever it is.
    pub masked: bool,
    /// M: rows of the advertiser that one row of the publisher may be joined to, 1..=16. With more than one,
    /// a person's total is that of all slots that hold a match, clamped inside the computation.
    pub slots: u8,
    /// Of the publisher and of the advertiser: how many joined rows one of its rows can change, from 1.
    pub degree: [u32; 2],
    /// Likewise: how many of its own rows one line of its data can change, from 1.
    pub alone: [u32; 2],
}

impl Default for JoinShape {
    /// One row to one row, or to none.
    fn default() -> Self {
        Self { masked: false, slots: 1, degree: [1; 2], alone: [1; 2] }
    }
}

/// A count beyond the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Also {
    /// People with at least one counted event.
    Converters,
    /// Counted events.
    Conversions,
    /// People with an opportunity whom the advertiser knows.
    Matches,
    /// People whose total is above R.
    ClampedUsers,
    /// Counted events of people who were reached.
    ReachedConversions,
    /// Clamped totals of people who were reached.
    ReachedValue,
}

impl Also {
    /// All counts by the name a study file uses.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("converters", Self::Converters),
        ("conversions", Self::Conversions),
        ("matches", Self::Matches),
        ("clamped_users", Self::ClampedUsers),
        ("reached_conversions", Self::ReachedConversions),
        ("reached_value", Self::ReachedValue),
    ];

    /// The name a study file uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, count)| *count == self).map_or("", |(name, _)| name)
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Converters,
        Self::Conversions,
        Self::Matches,
        Self::ClampedUsers,
        Self::ReachedConversions,
        Self::ReachedValue,
    ];
}

impl LiftParameters {
    /// The configuration of `tacit bench lift`: 32-bit times and values, K = `k`, no effective clamp, no
    /// cells, `sums`.
    ///
    /// # Panics
    /// Never: the constants are valid. [`build`] refuses a `k` out of range.
    #[must_use]
    pub fn bench(k: u8) -> Self {
        Self {
            publisher: "publisher".into(),
            advertisers: vec!["advertiser".into()],
            time_bits: 32,
            max_events: k,
            value_bits: 32,
            clamp: u128::from(u32::MAX),
            within: None,
            impressions: false,
            arms: ["test".into(), "control".into()],
            breakdown: Vec::new(),
            cohorts: Vec::new(),
            mode: ReleaseMode::Sums,
            rho: vec![ratio(1, 10); 2],
            public: ratio(0, 1),
            also: Vec::new(),
            matching: JoinShape::default(),
        }
    }

    /// The time that means "no opportunity": all ones.
    #[must_use]
    pub fn no_time(&self) -> u64 {
        (1 << self.time_bits) - 1
    }

    /// Most that one person can add to a sum: R, or less where the values cannot reach it. Sensitivities are
    /// of this.
    #[must_use]
    pub fn bound(&self) -> u128 {
        self.clamp.min(u128::from(self.slots()) * self.most())
    }

    /// Parts that a person's outcome is added up from: rows of the advertiser that may be joined, or
    /// advertisers.
    #[must_use]
    pub fn slots(&self) -> u8 {
        if self.several() { self.advertisers.len() as u8 } else { self.matching.slots }
    }

    /// Whether there are several advertisers: then slot `j` is advertiser `j`'s.
    #[must_use]
    pub fn several(&self) -> bool {
        self.advertisers.len() > 1
    }

    /// The parties' names, in order.
    #[must_use]
    pub fn parties(&self) -> Vec<&str> {
        [&self.publisher].into_iter().chain(&self.advertisers).map(String::as_str).collect()
    }

    /// Most that K values add up to.
    pub(crate) fn most(&self) -> u128 {
        u128::from(self.max_events) * ((1u128 << self.value_bits) - 1)
    }

    /// Who sees something with noise, in the order of the releases, and the zCDP spent on it.
    pub fn releases(&self) -> impl Iterator<Item = (Viewer, &Rational)> {
        let own = (0..).map(|party| PartyId(party).into()).zip(&self.rho);
        own.chain([(Viewer::Public, &self.public)]).filter(|(_, rho)| **rho > ratio(0, 1))
    }

    /// The families of cells, in order: overall, then breakdown and cohort where the study has them.
    #[must_use]
    pub fn families(&self) -> Vec<CellFamily> {
        let mut families = vec![CellFamily::Overall];
        families.extend((!self.breakdown.is_empty()).then_some(CellFamily::Breakdown));
        families.extend((!self.cohorts.is_empty()).then_some(CellFamily::Cohort));
        families
    }

    /// The cells of a family, in order.
    #[must_use]
    pub fn cells(&self, family: CellFamily) -> Vec<LiftCell> {
        let all =
            |values: &[String], cell: fn(u8) -> LiftCell| (0..values.len()).map(|i| cell(i as u8)).collect();
        match family {
            CellFamily::Overall => vec![LiftCell::Overall],
            CellFamily::Breakdown => all(&self.breakdown, LiftCell::Breakdown),
            CellFamily::Cohort => all(&self.cohorts, LiftCell::Cohort),
        }
    }

    /// Checks the ranges that the fields state.
    ///
    /// # Errors
    /// [`base::Fault::Input`] for the first one broken, with what to write instead.
    pub fn check(&self) -> Result<(), Error> {
        let range = |what: &str, value: u128, low: u128, high: u128| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(Error::input(format!("lift: {what} is {value}; write {low} to {high}"))),
        };
        range("the width of times", self.time_bits.into(), 1, MAX_BITS.into())?;
        range("the width of values", self.value_bits.into(), 1, MAX_BITS.into())?;
        range("max_events", self.max_events.into(), 1, MAX_EVENTS.into())?;
        let fixed = self.mode != ReleaseMode::Sums;
        range("clamp", self.clamp, 1, if fixed { MAX_FIXED_CLAMP } else { u32::MAX.into() })?;
        if fixed && self.families().len() > 1 {
            return Err(Error::input(
                "lift: this mode releases the overall difference only; remove breakdown and cohort, or use \
                 mode \"sums\"",
            ));
        }
        self.check_matching()?;
        self.check_several()?;
        self.check_names()?;
        for (i, count) in self.also.iter().enumerate() {
            if self.also[..i].contains(count) {
                return Err(Error::input(format!(
                    "lift: {:?} is listed twice in release.also",
                    name(*count)
                )));
            }
            if matches!(count, Also::ReachedConversions | Also::ReachedValue) && !self.impressions {
                let text =
                    format!("lift: {:?} needs the publisher's impressions; name their column", name(*count));
                return Err(Error::input(text));
            }
        }
        if self.releases().next().is_none() {
            return Err(Error::input(
                "lift: every rho is 0, so the noise would be infinite; write a positive rho",
            ));
        }
        Ok(())
    }

    fn check_matching(&self) -> Result<(), Error> {
        let JoinShape { masked, slots, degree, alone } = self.matching;
        if !(1..=MAX_SLOTS).contains(&slots)
            || degree.iter().chain(&alone).any(|d| !(1..=program::DEGREE).contains(d))
        {
            return Err(Error::input(format!(
                "lift: {slots} slots and degrees {degree:?}; write 1 to {MAX_SLOTS} slots and degrees of 1 \
                 to {}",
                program::DEGREE
            )));
        }
        if slots > 1 && !masked {
            return Err(Error::input(
                "lift: rows of several slots are masked, since some slots hold no match",
            ));
        }
        if slots > 1 && !self.cohorts.is_empty() {
            return Err(Error::input(
                "lift: a person joined to several rows of the advertiser may be in several cohorts; remove \
                 cohort, or match one row to one",
            ));
        }
        if self.mode != ReleaseMode::Sums && (degree != [1; 2] || alone != [1; 2]) {
            return Err(Error::input(
                "lift: the scale of this mode holds where one row changes one person; use mode \"sums\", or \
                 match by one identifier",
            ));
        }
        Ok(())
    }

    fn check_several(&self) -> Result<(), Error> {
        let parties = self.advertisers.len() + 1;
        if !(2..=limits::PARTIES).contains(&parties) || self.rho.len() != parties {
            return Err(Error::input(format!(
                "lift: {parties} parties and {} shares of rho; write 1 to {} advertisers and a share for \
                 each party",
                self.rho.len(),
                limits::PARTIES - 1
            )));
        }
        if !self.several() {
            return Ok(());
        }
        if self.matching != JoinShape::default() {
            return Err(Error::input(
                "lift: several advertisers are joined by one identifier, one row to one row of each",
            ));
        }
        if self.mode != ReleaseMode::Sums {
            return Err(Error::input(
                "lift: this mode is for one advertiser; use mode \"sums\", or measure each advertiser apart",
            ));
        }
        if !self.cohorts.is_empty() {
            return Err(Error::input(
                "lift: a person may be in several advertisers' cohorts; remove cohort, or measure each \
                 advertiser apart",
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), Error> {
        let parties: Vec<String> = self.parties().into_iter().map(str::to_owned).collect();
        let broken = |n: &String| n.is_empty() || n == "public" || n.contains(char::is_whitespace);
        if let Some(party) = parties.iter().find(|n| broken(n)) {
            return Err(Error::input(format!(
                "lift: {party:?} cannot be a party's name; use one plain word"
            )));
        }
        let lists = [("parties", &parties[..]), ("arms", &self.arms), ("breakdown", &self.breakdown)];
        for (what, names) in lists.into_iter().chain([("cohort", &self.cohorts[..])]) {
            if names.len() > MAX_VALUES {
                let met = names.len();
                return Err(Error::input(format!(
                    "lift: {what} has {met} values; at most {MAX_VALUES} are possible"
                )));
            }
            if names.iter().any(String::is_empty) {
                return Err(Error::input(format!("lift: {what} has an empty name")));
            }
            if let Some(twice) = (1..names.len()).find(|i| names[..*i].contains(&names[*i])) {
                return Err(Error::input(format!("lift: {what} names {:?} twice", names[twice])));
            }
            if let Some(name) = names.iter().find(|name| name.chars().any(base::is_deceptive)) {
                let name = base::clean(name);
                return Err(Error::input(format!(
                    "lift: {what} has the name {name:?}, with a control or invisible character: write it \
                     without"
                )));
            }
        }
        let longest = |names: &[String]| names.iter().map(String::len).max().unwrap_or(0);
        let arm = longest(&self.arms);
        let bytes = arm + arm.max(longest(&self.breakdown)).max(longest(&self.cohorts));
        if bytes > NAMES_BYTES {
            return Err(Error::input(format!(
                "lift: names of arms and groups have up to {bytes} bytes together where a result is shown; \
                 at most {NAMES_BYTES} are possible: write shorter ones"
            )));
        }
        Ok(())
    }
}

fn name(count: Also) -> &'static str {
    Quantity::from(count).name()
}

//! What every column, total and output of a lift program means.

use super::{ADVERTISER, JoinedRow, PUBLISHER};
use super::{Also, LiftParameters, User};
use base::PartyId;
use program::Viewer;
use release::joint::Combination;

/// An arm of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrialArm {
    /// Treated.
    Test,
    /// Not treated.
    Control,
}

impl TrialArm {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::Test, Self::Control];

    /// Its code in the column `arm`; 0 is no row.
    #[must_use]
    pub fn code(self) -> u128 {
        match self {
            Self::Test => 1,
            Self::Control => 2,
        }
    }

    /// Its name in a study.
    #[must_use]
    pub fn name(self, lift: &LiftParameters) -> &str {
        &lift.arms[self as usize]
    }
}

/// A set of disjoint cells that is one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellFamily {
    /// Everybody.
    Overall,
    /// By the publisher's breakdown.
    Breakdown,
    /// By the advertiser's cohort.
    Cohort,
}

/// A cell of a family; times the arm, it is where a person is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LiftCell {
    /// Everybody.
    Overall,
    /// People with this value of the breakdown, by index.
    Breakdown(u8),
    /// People with this value of the cohort, by index.
    Cohort(u8),
}

impl LiftCell {
    /// Its family.
    #[must_use]
    pub fn family(self) -> CellFamily {
        match self {
            Self::Overall => CellFamily::Overall,
            Self::Breakdown(_) => CellFamily::Breakdown,
            Self::Cohort(_) => CellFamily::Cohort,
        }
    }
}

/// What is counted or computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quantity {
    /// n: people with an opportunity.
    Rows,
    /// S: clamped totals.
    Value,
    /// Q: squares of clamped totals.
    Squares,
    /// See [`Also::Converters`].
    Converters,
    /// See [`Also::Conversions`].
    Conversions,
    /// See [`Also::Matches`].
    Matches,
    /// See [`Also::ClampedUsers`].
    ClampedUsers,
    /// See [`Also::ReachedConversions`].
    ReachedConversions,
    /// See [`Also::ReachedValue`].
    ReachedValue,
    /// R S - Q, of [`release::joint`].
    Tail,
    /// 2 S - R n, of [`release::joint`].
    Centred,
    /// 32 (R S - Q) - R^2 n, of [`release::joint`].
    CentredTail,
    /// Difference of the arms' means, test minus control, in fixed point.
    Difference,
    /// Its variance or standard error, by mode, in fixed point.
    Spread,
}

impl Quantity {
    /// The core of every study.
    pub const CORE: [Self; 3] = [Self::Rows, Self::Value, Self::Squares];

    /// Its name in labels and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Value => "value",
            Self::Squares => "squares",
            Self::Converters => "converters",
            Self::Conversions => "conversions",
            Self::Matches => "matches",
            Self::ClampedUsers => "clamped users",
            Self::ReachedConversions => "reached conversions",
            Self::ReachedValue => "reached value",
            Self::Tail => "tail",
            Self::Centred => "centred value",
            Self::CentredTail => "centred tail",
            Self::Difference => "difference",
            Self::Spread => "spread",
        }
    }
}

impl From<Combination> for Quantity {
    fn from(combination: Combination) -> Self {
        match combination {
            Combination::Rows => Self::Rows,
            Combination::Value => Self::Value,
            Combination::Tail => Self::Tail,
            Combination::Centred => Self::Centred,
            Combination::CentredTail => Self::CentredTail,
        }
    }
}

impl From<Also> for Quantity {
    fn from(count: Also) -> Self {
        match count {
            Also::Converters => Self::Converters,
            Also::Conversions => Self::Conversions,
            Also::Matches => Self::Matches,
            Also::ClampedUsers => Self::ClampedUsers,
            Also::ReachedConversions => Self::ReachedConversions,
            Also::ReachedValue => Self::ReachedValue,
        }
    }
}

/// What a column holds for one row of the joined table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    /// Publisher: the opportunity's time; all ones without one.
    Time,
    /// Publisher: [`TrialArm::code`]; 0 without a row or without an opportunity.
    Arm,
    /// Publisher: 1 if reached.
    Reached,
    /// Publisher: index of the breakdown's value; 255 without one.
    Breakdown,
    /// Advertiser: time of event 0..K, non-decreasing; missing events come first and are 0.
    EventTime(u8),
    /// Advertiser: value of event 0..K; 0 for missing ones.
    EventValue(u8),
    /// Advertiser: 1 if it has the person.
    Present,
    /// Advertiser: index of the cohort's value; 255 without one.
    Cohort,
    /// Shared: 1 where the joined row, or the slot of it, holds a match. The match gives it.
    Valid,
}

/// The code of "no value" in the columns breakdown and cohort.
pub const NO_VALUE: u128 = 255;

impl Content {
    /// Who holds the column, if one advertiser there is; `None`: it is shared.
    #[must_use]
    pub fn owner(self) -> Option<PartyId> {
        match self {
            Self::Time | Self::Arm | Self::Reached | Self::Breakdown => Some(PUBLISHER),
            Self::Valid => None,
            _ => Some(ADVERTISER),
        }
    }

    /// Who holds the column of a slot.
    #[must_use]
    pub fn owner_in(self, lift: &LiftParameters, slot: u8) -> Option<PartyId> {
        let owner = self.owner()?;
        Some(if owner == ADVERTISER && lift.several() { PartyId(owner.0 + slot) } else { owner })
    }

    /// The column's value in a row that its owner does not have.
    #[must_use]
    pub fn absent(self, lift: &LiftParameters) -> u128 {
        self.encode(lift, &JoinedRow { user: None, outcome: None })
    }

    /// The column's value for a row of the joined table. Events must be at most K.
    #[must_use]
    pub fn encode(self, lift: &LiftParameters, row: &JoinedRow) -> u128 {
        let user = row.user.as_ref();
        let outcome = row.outcome.as_ref();
        let event = |j: u8| {
            // Left-padded: the last event is in the last column.
            let missing = usize::from(lift.max_events) - outcome.map_or(0, |o| o.events.len());
            usize::from(j).checked_sub(missing).and_then(|at| outcome?.events.get(at).copied())
        };
        match self {
            Self::Time => user.map_or(lift.no_time(), |u| u.time).into(),
            Self::Arm => user.map_or(0, |u| u.arm.code()),
            Self::Reached => user.is_some_and(|u| u.reached).into(),
            Self::Breakdown => user.and_then(|u: &User| u.breakdown).map_or(NO_VALUE, u128::from),
            Self::EventTime(j) => event(j).map_or(0, |e| e.time.into()),
            Self::EventValue(j) => event(j).map_or(0, |e| e.value.into()),
            Self::Present | Self::Valid => outcome.is_some().into(),
            Self::Cohort => outcome.and_then(|o| o.cohort).map_or(NO_VALUE, u128::from),
        }
    }
}

/// A total of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTotal {
    /// Where.
    pub cell: LiftCell,
    /// In which arm.
    pub arm: TrialArm,
    /// Of what.
    pub quantity: Quantity,
    /// Index of the program's fold; two totals that are always equal share one.
    pub fold: u32,
}

/// An output of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputMeaning {
    /// Who sees it.
    pub viewer: Viewer,
    /// Where.
    pub cell: LiftCell,
    /// In which arm; `None` for what compares both.
    pub arm: Option<TrialArm>,
    /// Of what.
    pub quantity: Quantity,
    /// Index of the mechanism and of its output; `None`: exact, from the viewer's own columns.
    pub noised: Option<(u32, u32)>,
}

/// What a lift program's columns, totals and outputs mean, in the program's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftLayout {
    /// One entry per column of the program; a column that nothing reads is absent.
    pub columns: Vec<Content>,
    /// By column: the slot that it is of, from 0; 0 for the publisher's.
    pub slots: Vec<u8>,
    /// All totals.
    pub totals: Vec<CellTotal>,
    /// One entry per output of the program.
    pub outputs: Vec<OutputMeaning>,
    /// Folds of the arm sizes, test and control, that the publisher publishes before a fixed-point release.
    pub published: Option<[u32; 2]>,
}

impl LiftLayout {
    /// Index of the column that holds `content` (of the first slot), if the program reads it.
    #[must_use]
    pub fn column(&self, content: Content) -> Option<u32> {
        self.column_of(content, 0)
    }

    /// Index of the column that holds `content` of a slot, if the program reads it.
    #[must_use]
    pub fn column_of(&self, content: Content, slot: u8) -> Option<u32> {
        let mut all = self.columns.iter().zip(&self.slots);
        all.position(|(c, s)| (*c, *s) == (content, slot)).map(|i| i as u32)
    }

    /// Puts the columns of a content after all others, in their order.
    pub(super) fn move_last(&mut self, content: Content) {
        let columns = self.columns.iter().copied().zip(self.slots.iter().copied());
        let (last, first): (Vec<_>, Vec<_>) = columns.partition(|(c, _)| *c == content);
        (self.columns, self.slots) = first.into_iter().chain(last).unzip();
    }

    /// The slot of a column, and a number that is the same for this column of every slot: the order of a
    /// payload.
    #[must_use]
    pub fn place(&self, column: u32) -> (u32, u32) {
        let content = self.columns[column as usize];
        let first = self.column(content).expect("every slot has the columns of the first");
        (self.slots[column as usize].into(), first)
    }

    /// The fold of a total.
    #[must_use]
    pub fn fold(&self, cell: LiftCell, arm: TrialArm, quantity: Quantity) -> Option<u32> {
        let found = self.totals.iter().find(|t| (t.cell, t.arm, t.quantity) == (cell, arm, quantity));
        found.map(|t| t.fold)
    }
}

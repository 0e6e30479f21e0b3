//! The reference: totals of a lift study in ordinary Rust, from the definitions and not from the program.

use super::{LiftCell, LiftParameters, Quantity, TrialArm};
use std::collections::BTreeMap;

/// What the publisher knows of one person with an opportunity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The arm.
    pub arm: TrialArm,
    /// Time of the opportunity, at most `2^time_bits - 2`.
    pub time: u64,
    /// Whether there was an impression.
    pub reached: bool,
    /// Index of the breakdown's value.
    pub breakdown: Option<u8>,
}

/// One event of one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonEvent {
    /// When, at most `2^time_bits - 2`.
    pub time: u64,
    /// How much, below `2^value_bits`.
    pub value: u64,
}

/// What the advertiser knows of one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonOutcome {
    /// At most K events, in order of time. Out of order, an event counts as having happened when the latest
    /// one so far did.
    pub events: Vec<PersonEvent>,
    /// Index of the cohort's value.
    pub cohort: Option<u8>,
}

/// One row of the joined table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedRow {
    /// The publisher's half; `None`: it does not have the person, or there was no opportunity.
    pub user: Option<User>,
    /// The advertiser's half; `None`: it does not have the person.
    pub outcome: Option<PersonOutcome>,
}

/// One row of the publisher and all rows of the advertiser that it is joined to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The publisher's row; `None`: there was no opportunity.
    pub user: Option<User>,
    /// The advertiser's rows, at most one per slot.
    pub outcomes: Vec<PersonOutcome>,
}

/// Exact totals by cell, arm and quantity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrueTotals(BTreeMap<(LiftCell, TrialArm, Quantity), u128>);

impl TrueTotals {
    /// A total; 0 where nobody was counted.
    #[must_use]
    pub fn get(&self, cell: LiftCell, arm: TrialArm, quantity: Quantity) -> u128 {
        self.0.get(&(cell, arm, quantity)).copied().unwrap_or(0)
    }

    /// Adds one person.
    pub fn add(&mut self, lift: &LiftParameters, row: &JoinedRow) {
        self.add_all(lift, row.user.as_ref(), row.outcome.as_slice());
    }

    /// Adds one person who is joined to any number of rows of the advertiser.
    pub fn add_anchor(&mut self, lift: &LiftParameters, anchor: &Anchor) {
        self.add_all(lift, anchor.user.as_ref(), &anchor.outcomes);
    }

    fn add_all(&mut self, lift: &LiftParameters, user: Option<&User>, outcomes: &[PersonOutcome]) {
        let Some(user) = user else { return };
        let mut cells = vec![LiftCell::Overall];
        cells.extend(user.breakdown.map(LiftCell::Breakdown));
        cells.extend(outcomes.iter().filter_map(|o| o.cohort).map(LiftCell::Cohort));
        for (quantity, amount) in quantities(lift, user, outcomes) {
            for cell in &cells {
                *self.0.entry((*cell, user.arm, quantity)).or_default() += amount;
            }
        }
    }
}

/// What one person with an opportunity adds, quantity by quantity.
fn quantities(lift: &LiftParameters, user: &User, outcomes: &[PersonOutcome]) -> [(Quantity, u128); 9] {
    let last = lift.within.map(|w| user.time + u64::from(w));
    let (mut count, mut sum) = (0u128, 0u128);
    for outcome in outcomes {
        let mut latest = 0;
        for event in &outcome.events {
            latest = event.time.max(latest);
            if latest > user.time && last.is_none_or(|last| latest <= last) {
                count += 1;
                sum += u128::from(event.value);
            }
        }
    }
    let value = sum.min(lift.clamp);
    let if_reached = |x: u128| if user.reached { x } else { 0 };
    [
        (Quantity::Rows, 1),
        (Quantity::Value, value),
        (Quantity::Squares, value * value),
        (Quantity::Converters, u128::from(count > 0)),
        (Quantity::Conversions, count),
        (Quantity::Matches, u128::from(!outcomes.is_empty())),
        (Quantity::ClampedUsers, u128::from(sum > lift.clamp)),
        (Quantity::ReachedConversions, if_reached(count)),
        (Quantity::ReachedValue, if_reached(value)),
    ]
}

/// The exact totals of a joined table.
pub fn truth<'a>(rows: impl IntoIterator<Item = &'a JoinedRow>, lift: &LiftParameters) -> TrueTotals {
    let mut totals = TrueTotals::default();
    for row in rows {
        totals.add(lift, row);
    }
    totals
}

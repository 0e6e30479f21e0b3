//! The answer of a lift study, from people rather than from files.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// One arm of the truth. Sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArmTruth {
    /// People with an opportunity.
    pub rows: u64,
    /// Sum of clamped totals.
    #[serde(rename = "value")]
    pub sum: u64,
    /// Sum of squares of clamped totals.
    #[serde(rename = "squares", serialize_with = "in_digits")]
    pub sum_of_squares: u128,
    /// Events that count.
    pub conversions: u64,
    /// People with an event that counts.
    pub converters: u64,
    /// People whom the other side knows.
    pub matches: u64,
    /// People whose total was cut to the clamp.
    pub clamped_users: u64,
    /// Events that count, of people with an impression.
    pub reached_conversions: u64,
    /// Clamped totals of people with an impression.
    pub reached_value: u64,
}

/// The answer of a lift study: `[control, test]` overall, per breakdown value and per cohort value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Everybody with an opportunity.
    pub overall: [ArmTruth; 2],
    /// The same for each breakdown value.
    pub breakdown: Vec<[ArmTruth; 2]>,
    /// The same for each cohort value, over people whom the advertiser knows.
    pub cohort: Vec<[ArmTruth; 2]>,
    /// Identifiers of either side.
    pub union: u64,
}

/// More digits than numbers of JSON have.
fn in_digits<S: Serializer>(value: &u128, into: S) -> Result<S::Ok, S::Error> {
    into.collect_str(value)
}

#[derive(Serialize)]
struct ArmsTruth<'a> {
    control: &'a ArmTruth,
    test: &'a ArmTruth,
}

/// As JSON: arms by name, overall and by cell.
impl Serialize for Truth {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        fn both([control, test]: &[ArmTruth; 2]) -> ArmsTruth<'_> {
            ArmsTruth { control, test }
        }
        let mut truth = into.serialize_struct("Truth", 5)?;
        truth.serialize_field("lift", &self.lift())?;
        truth.serialize_field("union", &self.union)?;
        truth.serialize_field("overall", &both(&self.overall))?;
        truth.serialize_field("breakdown", &self.breakdown.iter().map(both).collect::<Vec<_>>())?;
        truth.serialize_field("cohort", &self.cohort.iter().map(both).collect::<Vec<_>>())?;
        truth.end()
    }
}

impl Truth {
    /// Difference of mean clamped totals, test minus control, per person.
    #[must_use]
    pub fn lift(&self) -> f64 {
        let mean = |arm: &ArmTruth| arm.sum as f64 / arm.rows as f64;
        mean(&self.overall[1]) - mean(&self.overall[0])
    }

    /// Adds what other people have, of as many cells; an empty truth adds nothing. The union stays.
    pub(super) fn add(&mut self, other: &Self) {
        let cells = self.overall.iter_mut().chain(self.breakdown.iter_mut().flatten());
        let cells = cells.chain(self.cohort.iter_mut().flatten());
        let others = other.overall.iter().chain(other.breakdown.iter().flatten());
        cells.zip(others.chain(other.cohort.iter().flatten())).for_each(|(own, other)| own.join(other));
    }

    /// Counts one person with an opportunity.
    pub(super) fn count(&mut self, person: &Person<'_>, rule: &Rule) {
        let arm = usize::from(person.test);
        let outcome = rule.outcome(person);
        self.overall[arm].add(person, &outcome);
        if let Some(cells) = self.breakdown.get_mut(person.breakdown) {
            cells[arm].add(person, &outcome);
        }
        if person.matched
            && let Some(cells) = self.cohort.get_mut(person.cohort)
        {
            cells[arm].add(person, &outcome);
        }
    }
}

impl ArmTruth {
    fn join(&mut self, other: &Self) {
        self.rows += other.rows;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.conversions += other.conversions;
        self.converters += other.converters;
        self.matches += other.matches;
        self.clamped_users += other.clamped_users;
        self.reached_conversions += other.reached_conversions;
        self.reached_value += other.reached_value;
    }

    fn add(&mut self, person: &Person<'_>, outcome: &Outcome) {
        self.rows += 1;
        self.sum += outcome.clamped;
        self.sum_of_squares += u128::from(outcome.clamped) * u128::from(outcome.clamped);
        self.conversions += outcome.conversions;
        self.converters += u64::from(outcome.conversions > 0);
        self.matches += u64::from(person.matched);
        self.clamped_users += u64::from(outcome.was_clamped);
        if person.reached {
            self.reached_conversions += outcome.conversions;
            self.reached_value += outcome.clamped;
        }
    }
}

/// A person with an opportunity.
pub(super) struct Person<'a> {
    pub test: bool,
    pub opportunity: u32,
    pub reached: bool,
    pub breakdown: usize,
    pub matched: bool,
    pub cohort: usize,
    /// (time, value), in any order: all events, before any cut.
    pub events: &'a [(u32, u32)],
}

/// How events count.
pub(super) struct Rule {
    pub max_events: usize,
    pub clamp: u64,
    pub within: Option<u32>,
}

struct Outcome {
    conversions: u64,
    clamped: u64,
    was_clamped: bool,
}

impl Rule {
    fn outcome(&self, person: &Person<'_>) -> Outcome {
        let mut earliest = person.events.to_vec();
        earliest.sort_unstable();
        earliest.truncate(self.max_events);
        let after = |time: u32| {
            time > person.opportunity && self.within.is_none_or(|w| time - person.opportunity <= w)
        };
        let counted: Vec<u64> =
            earliest.iter().filter(|(time, _)| after(*time)).map(|&(_, value)| u64::from(value)).collect();
        let total: u64 = counted.iter().sum();
        Outcome {
            conversions: counted.len() as u64,
            clamped: total.min(self.clamp),
            was_clamped: total > self.clamp,
        }
    }
}

//! What reading did, for the owner of the data only.

use super::keys::IdentifierReport;
use super::time_cells::TimeReport;
use std::fmt;
use study::reader::printable;

/// Counts of one reading. Nothing is dropped without being counted here. Shown to the owner of the data only.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct InputReport {
    /// Rows of the files.
    pub rows_read: u64,
    /// Identifiers that take part.
    pub rows_kept: u64,
    /// Publisher: rows without an opportunity, left out.
    pub without_opportunity: u64,
    /// Publisher: rows of each arm that the study leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms_left_out: Vec<ArmLeftOut>,
    /// Second and further rows of an identifier that were dropped (`first`).
    pub duplicates_dropped: u64,
    /// Second and further rows of an identifier whose events were put together (`merge`, wide layout).
    pub duplicates_merged: u64,
    /// Advertiser: rows that `where` does not pass; they keep their identifier, without events.
    pub filtered: u64,
    /// Advertiser: events of the rows that `where` passes.
    pub events_seen: u64,
    /// Advertiser: events beyond K per identifier that were cut (`keep-earliest`).
    pub events_cut: u64,
    /// Advertiser: identifiers of which events were cut.
    pub identifiers_cut: u64,
    /// Advertiser: identifiers without any event.
    pub without_events: u64,
    /// Advertiser: identifiers whose events add up to more than R, so that their total may be cut to R.
    pub over_clamp: u64,
    /// Advertiser: what its outcomes add up to. That stays with the process that has read them.
    #[serde(skip)]
    pub outcomes: OutcomeReport,
    /// What form the files turned out to have, where it is not the usual one: `separator ";"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<String>,
    /// Advertiser: negative values that are no events (`negative = "leave-out"`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refunds_left_out: u64,
    /// Advertiser: negative values that were taken off earlier events (`negative = "net"`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refunds_taken_off: u64,
    /// Advertiser: those among them of which something is left over, for no event before them had as much.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refunds_beyond: u64,
    /// Advertiser: events of which nothing is left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_refunded: u64,
    /// Advertiser: the part of the value of all events that is beyond R, person by person, 0 to 1.
    #[serde(default, skip_serializing_if = "is_none")]
    pub clamped_part: f64,
    /// Program: cells that are missing or that the program cuts, by column; columns without any are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnReport>,
    /// Columns of times of which all cells look as if they meant something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<TimeReport>,
    /// Bytes of memory that the typed columns hold.
    pub memory: u64,
    /// What normalising did to each identifier column, and what of it repeats.
    #[serde(default)]
    pub identifiers: Vec<IdentifierReport>,
}

/// An arm that the study leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ArmLeftOut {
    /// Its label.
    pub label: String,
    /// Rows that have it; the columns of time, impressions and breakdown of these are not read.
    pub rows: u64,
}

/// What a program leaves out of one of its owner's columns, or counts as another number. Of all lines that
/// were read.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ColumnReport {
    /// The column of the program.
    pub name: String,
    /// Empty cells of a column that may have them: these rows count for no line that asks of it.
    pub missing: u64,
    /// The ends between which the program takes it, in the unit of its cells.
    pub range: Option<[f64; 2]>,
    /// Cells below the lower end, which count as that.
    pub below: u64,
    /// Cells above the upper end, likewise.
    pub above: u64,
}

impl ColumnReport {
    fn absorb(&mut self, later: Self) {
        self.missing += later.missing;
        self.below += later.below;
        self.above += later.above;
    }

    /// Counts with words; what is nothing is left out.
    fn lines(&self, mut line: impl FnMut(u64, String) -> fmt::Result) -> fmt::Result {
        let name = printable(&self.name);
        if self.missing > 0 {
            let cells = if self.missing == 1 { "cell of" } else { "cells of" };
            let are = if self.missing == 1 { "is" } else { "are" };
            line(
                self.missing,
                format!("{cells} {name} {are} missing: no line that asks of it counts the row"),
            )?;
        }
        let Some([low, high]) = self.range else { return Ok(()) };
        for (count, side, end) in [(self.below, "below", low), (self.above, "above", high)] {
            if count > 0 {
                line(
                    count,
                    match count {
                        1 => format!("cell of {name} is {side} {end} and counts as that"),
                        _ => format!("cells of {name} are {side} {end} and count as that"),
                    },
                )?;
            }
        }
        Ok(())
    }
}

/// What the events of all identifiers add up to, whenever they were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutcomeReport {
    /// At each of [`clamps_around`] the study's; empty where there are no identifiers.
    pub by_clamp: Vec<(u32, OutcomeSums)>,
    /// Without a clamp, by size: see [`step`].
    steps: Vec<OutcomeStep>,
    /// Without a clamp.
    unclamped: f64,
}

/// Outcomes of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OutcomeStep {
    people: u64,
    sums: OutcomeSums,
}

/// The step of an outcome: below 100 each has its own; of larger ones all with the same two first digits and
/// as many others.
fn step(outcome: u64) -> usize {
    let power = outcome.max(1).ilog10().saturating_sub(1);
    let digits = (outcome / 10u64.pow(power)) as usize;
    digits + 90 * power as usize
}

impl OutcomeReport {
    /// At a clamp: exactly of one around the study's, and of one with two digits and zeros; of another one
    /// nearly, for outcomes of its step are taken to be alike.
    #[must_use]
    pub fn at(&self, clamp: u32) -> Option<OutcomeSums> {
        if let Some((_, sums)) = self.by_clamp.iter().find(|(known, _)| *known == clamp) {
            return Some(*sums);
        }
        let (at, most) = (step(clamp.into()), f64::from(clamp));
        let mut all = OutcomeSums::default();
        for (place, OutcomeStep { people, sums }) in self.steps.iter().enumerate() {
            let cut = *people as f64 * most;
            all.total += if place < at { sums.total } else { sums.total.min(cut) };
            all.squares += if place < at { sums.squares } else { sums.squares.min(cut * most) };
        }
        (!self.steps.is_empty()).then_some(all)
    }

    /// The part of it that a clamp leaves.
    #[must_use]
    pub fn kept(&self, clamp: u32) -> Option<f64> {
        self.at(clamp).filter(|_| self.unclamped > 0.0).map(|sums| sums.total / self.unclamped)
    }

    /// The part of it that is beyond one of these clamps.
    pub(crate) fn beyond(&self, clamp: u32) -> f64 {
        self.kept(clamp).map_or(0.0, |kept| 1.0 - kept)
    }

    fn absorb(&mut self, later: Self) {
        absorb_each(&mut self.by_clamp, later.by_clamp, |(_, sums), (_, later)| sums.absorb(later));
        self.reach(later.steps.len());
        for (one, later) in self.steps.iter_mut().zip(later.steps) {
            one.people += later.people;
            one.sums.absorb(later.sums);
        }
        self.unclamped += later.unclamped;
    }

    /// Makes room for so many steps.
    fn reach(&mut self, steps: usize) {
        self.steps.resize(self.steps.len().max(steps), OutcomeStep::default());
    }

    fn add(&mut self, total: u64, clamp: u32) {
        if self.by_clamp.is_empty() {
            let clamps = clamps_around(clamp).into_iter();
            self.by_clamp = clamps.map(|clamp| (clamp, OutcomeSums::default())).collect();
        }
        self.unclamped += total as f64;
        self.by_clamp.iter_mut().for_each(|(clamp, sums)| sums.add(total.min((*clamp).into())));
        let at = step(total);
        self.reach(at + 1);
        self.steps[at].people += 1;
        self.steps[at].sums.add(total);
    }
}

/// Over all identifiers, of what the events of one add up to, no more than a clamp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutcomeSums {
    /// The sum.
    pub total: f64,
    /// The sum of squares.
    pub squares: f64,
}

impl OutcomeSums {
    fn absorb(&mut self, later: Self) {
        self.total += later.total;
        self.squares += later.squares;
    }

    fn add(&mut self, outcome: u64) {
        self.total += outcome as f64;
        self.squares += (outcome as f64).powi(2);
    }
}

/// Clamps from an eighth of one to its eightfold, each once, from the smallest.
#[must_use]
pub fn clamps_around(clamp: u32) -> Vec<u32> {
    let smaller = (0..=3).rev().map(|halvings| (clamp >> halvings).max(1));
    let mut all: Vec<u32> =
        smaller.chain((1..=3).map(|doublings| clamp.saturating_mul(1 << doublings))).collect();
    all.dedup();
    all
}

/// Adds what stands at the same places; whoever has nothing yet takes all.
fn absorb_each<T>(all: &mut Vec<T>, later: Vec<T>, absorb: impl Fn(&mut T, T)) {
    match all.is_empty() {
        true => *all = later,
        false => all.iter_mut().zip(later).for_each(|(one, later)| absorb(one, later)),
    }
}

/// What a noun has behind it where it is not one.
fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// What a report says only where there is some.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The same of a part.
fn is_none(part: &f64) -> bool {
    *part == 0.0
}

impl InputReport {
    /// Without what stays with the process that has read the rows.
    #[must_use]
    pub fn written(&self) -> Self {
        Self { outcomes: OutcomeReport::default(), ..self.clone() }
    }

    /// Counts what the events of one identifier add up to.
    pub(crate) fn add_outcome(&mut self, total: u64, clamp: u32) {
        self.over_clamp += u64::from(total > u64::from(clamp));
        self.outcomes.add(total, clamp);
    }

    /// Adds what was counted of lines that come later, or of another part of all rows.
    pub(crate) fn absorb(&mut self, later: Self) {
        self.rows_read += later.rows_read;
        self.rows_kept += later.rows_kept;
        self.without_opportunity += later.without_opportunity;
        absorb_each(&mut self.arms_left_out, later.arms_left_out, |arm, later| arm.rows += later.rows);
        self.duplicates_dropped += later.duplicates_dropped;
        self.duplicates_merged += later.duplicates_merged;
        self.filtered += later.filtered;
        self.events_seen += later.events_seen;
        self.events_cut += later.events_cut;
        self.identifiers_cut += later.identifiers_cut;
        self.without_events += later.without_events;
        self.over_clamp += later.over_clamp;
        self.outcomes.absorb(later.outcomes);
        self.refunds_left_out += later.refunds_left_out;
        self.refunds_taken_off += later.refunds_taken_off;
        self.refunds_beyond += later.refunds_beyond;
        self.events_refunded += later.events_refunded;
        absorb_each(&mut self.columns, later.columns, ColumnReport::absorb);
        absorb_each(&mut self.times, later.times, TimeReport::absorb);
        absorb_each(&mut self.identifiers, later.identifiers, IdentifierReport::absorb);
    }

    /// Bytes of memory per kept row, rounded up.
    #[must_use]
    pub fn memory_per_row(&self) -> u64 {
        self.memory.div_ceil(self.rows_kept.max(1))
    }
}

impl fmt::Display for InputReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            (self.rows_read, "row", "read"),
            (self.rows_kept, "identifier", if self.rows_kept == 1 { "takes part" } else { "take part" }),
            (self.without_opportunity, "row", "left out: no opportunity"),
            (self.duplicates_dropped, "row", "left out: identifier met before"),
            (self.duplicates_merged, "row", "put together with an earlier row of the same identifier"),
            (self.filtered, "row", "that `where` does not pass (identifier kept, no event)"),
            (self.events_seen, "event", "read"),
            (self.refunds_left_out, "negative value", "left out: no events"),
            (self.refunds_taken_off, "negative value", "taken off earlier events of the same identifier"),
            (self.refunds_beyond, "negative value", "of which a part is dropped: earlier events had less"),
            (self.events_refunded, "event", "left out: all of the value was taken off"),
            (self.events_cut, "event", "cut: more than max_events for one identifier"),
            (self.identifiers_cut, "identifier", "of which events were cut"),
            (self.without_events, "identifier", "without an event"),
        ];
        if !self.forms.is_empty() {
            writeln!(f, "{:>12} {}", "form", self.forms.join(", "))?;
        }
        for (i, (count, noun, text)) in lines.into_iter().enumerate() {
            if i < 2 || count > 0 {
                writeln!(f, "{count:>12} {noun}{} {text}", plural(count))?;
            }
            if i == 1 {
                for ArmLeftOut { label, rows } in &self.arms_left_out {
                    let label = printable(label);
                    writeln!(
                        f,
                        "{rows:>12} row{} left out: arm \"{label}\", which the study does not compare",
                        plural(*rows)
                    )?;
                }
            }
        }
        if self.over_clamp > 0 {
            let with_events = self.rows_kept.saturating_sub(self.without_events).max(1);
            let people = 100.0 * self.over_clamp as f64 / with_events as f64;
            // A report of an earlier version does not say how much it is.
            let value = match self.clamped_part {
                part if part > 0.0 => format!("; {:.1} % of all value is beyond it", 100.0 * part),
                _ => String::new(),
            };
            let cut = match self.over_clamp {
                1 => "identifier whose events add up to more than the clamp",
                _ => "identifiers whose events add up to more than the clamp",
            };
            writeln!(f, "{:>12} {cut} ({people:.1} % of those with events{value})", self.over_clamp)?;
            if people > 90.0 {
                writeln!(
                    f,
                    "{:>12} the clamp cuts nearly everybody with events: what is left is how many they are, \
                     times the clamp. Are the values amounts? Else agree on events alone, or on a larger one",
                    "note:"
                )?;
            }
        }
        for column in &self.columns {
            column.lines(|count, text| writeln!(f, "{count:>12} {text}"))?;
        }
        for identifier in &self.identifiers {
            identifier.lines(self.identifiers.len() > 1, |count, text| writeln!(f, "{count:>12} {text}"))?;
        }
        write!(f, "{:>12} bytes of memory per identifier", self.memory_per_row())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clamp_of_two_digits_cuts_as_it_would_have() {
        let outcomes: Vec<u64> =
            (0..40_000u64).map(|i| i * i * 7 % 300_007).chain([0, 99, 100, 5_000_000]).collect();
        let mut halves = [OutcomeReport::default(), OutcomeReport::default()];
        outcomes.iter().enumerate().for_each(|(at, outcome)| halves[at % 2].add(*outcome, 7));
        let [mut all, other] = halves;
        all.absorb(other);
        let exact = |clamp: u32| {
            let mut sums = OutcomeSums::default();
            outcomes.iter().for_each(|outcome| sums.add((*outcome).min(clamp.into())));
            sums
        };
        for clamp in [1, 10, 50, 99, 100, 110, 1_000, 52_000, 200_000, 4_000_000] {
            assert_eq!(all.at(clamp), Some(exact(clamp)), "{clamp}");
        }
        let [near, true_one] = [all.at(123_456).unwrap(), exact(123_456)];
        assert!((near.total / true_one.total - 1.0).abs() < 0.01, "{near:?} {true_one:?}");
        assert_eq!(all.kept(u32::MAX), Some(1.0));
        assert_eq!(OutcomeReport::default().at(1), None);
        let steps: Vec<usize> = [0, 1, 99, 100, 109, 110, 999, 1_000].map(step).to_vec();
        assert_eq!(steps, [0, 1, 99, 100, 100, 101, 189, 190]);
    }
}

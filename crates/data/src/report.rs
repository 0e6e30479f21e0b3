//! What reading did, for the owner of the data only.

use super::keys::IdentifierReport;
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
    /// Advertiser: what all events that are kept add up to, in the study's whole units.
    #[serde(default)]
    pub value: u64,
    /// Advertiser: how much of it is beyond R, by identifier.
    #[serde(default)]
    pub value_over_clamp: u64,
    /// Program: cells that are missing or that the program cuts, by column; columns without any are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnReport>,
    /// Bytes of memory that the typed columns hold.
    pub memory: u64,
    /// What normalising did to each identifier column, and what of it repeats.
    #[serde(default)]
    pub identifiers: Vec<IdentifierReport>,
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
    /// Counts with words; what is nothing is left out.
    fn lines(&self, mut line: impl FnMut(u64, String) -> fmt::Result) -> fmt::Result {
        let name = printable(&self.name);
        if self.missing > 0 {
            line(
                self.missing,
                format!("cells of {name} are missing: no line that asks of it counts the row"),
            )?;
        }
        let Some([low, high]) = self.range else { return Ok(()) };
        for (count, side, end) in [(self.below, "below", low), (self.above, "above", high)] {
            if count > 0 {
                line(count, format!("cells of {name} are {side} {end} and count as that"))?;
            }
        }
        Ok(())
    }
}

/// ` (12.5 %)`: a part of a whole, for who judges whether it is too much.
fn share(part: u64, whole: u64) -> String {
    format!(" ({:.1} %)", 100.0 * part as f64 / whole.max(1) as f64)
}

impl InputReport {
    /// Bytes of memory per kept row, rounded up.
    #[must_use]
    pub fn memory_per_row(&self) -> u64 {
        self.memory.div_ceil(self.rows_kept.max(1))
    }
}

impl fmt::Display for InputReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            (self.rows_read, "rows read"),
            (self.rows_kept, "identifiers take part"),
            (self.without_opportunity, "rows left out: no opportunity"),
            (self.duplicates_dropped, "rows left out: identifier met before"),
            (self.duplicates_merged, "rows put together with an earlier row of the same identifier"),
            (self.filtered, "rows that `where` does not pass (identifier kept, no event)"),
            (self.events_seen, "events read"),
            (self.events_cut, "events cut: more than max_events for one identifier"),
            (self.identifiers_cut, "identifiers of which events were cut"),
            (self.without_events, "identifiers without an event"),
        ];
        for (i, (count, text)) in lines.into_iter().enumerate() {
            if i < 2 || count > 0 {
                writeln!(f, "{count:>12} {text}")?;
            }
        }
        if self.over_clamp > 0 {
            let with_events = self.rows_kept.saturating_sub(self.without_events);
            let people = share(self.over_clamp, with_events);
            let cut = "identifiers whose events add up to more than the clamp";
            writeln!(f, "{:>12} {cut}{people}", self.over_clamp)?;
            // A report of an earlier version does not say how much it is.
            if self.value > 0 {
                let part = share(self.value_over_clamp, self.value);
                writeln!(f, "{:>12} of their value is beyond the clamp{part}", self.value_over_clamp)?;
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

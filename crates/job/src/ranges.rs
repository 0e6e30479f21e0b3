//! How the rows of a computation are cut: into ranges of the spine, its units.
//!
//! Places on a spine are in the order of pseudorandom identifiers, so that any range of it is as good a
//! sample as any other; and how many rows a range has follows from how many there are in all and from how
//! many workers both sides have, which both sides know before they compute. So the price of a computation is
//! known then, too, whichever worker computes what.
//!
//! Runs that are kept are cut by these numbers: their format ([`crate::kept`]) rises with any of them.

use std::ops::Range;

/// Most rows of a range of sums: seconds of work, beside which what an attempt costs to set up is little; and
/// no more than 4,096 ranges of as many rows as can be matched.
const RANGE_ROWS: u64 = 1 << 20;
/// Fewest rows of a range, where there are more workers than ranges of most rows.
const LEAST_ROWS: u64 = 1 << 17;
/// Fewest rows of a lane of four servers, which sets itself up.
const LANE_ROWS: u64 = 1 << 10;
/// Ranges of each worker, where rows are enough for it: the last ones are shared out.
const EACH: u64 = 2;

/// Rows cut into units, whose sizes differ by one row at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRanges {
    rows: u64,
    units: u64,
}

impl RowRanges {
    /// Of sums, which are added up, for so many workers.
    pub fn of_sums(rows: u64, workers: u32) -> Self {
        let some = (EACH * u64::from(workers)).min(rows / LEAST_ROWS);
        Self::new(rows, rows.div_ceil(RANGE_ROWS).max(some))
    }

    /// Of sums that so many lanes compute at once, a range each.
    pub fn of_lanes(rows: u64, lanes: u32) -> Self {
        Self::new(rows, u64::from(lanes).min(rows / LANE_ROWS))
    }

    /// Of what does not add up: all rows are one unit.
    pub fn whole(rows: u64) -> Self {
        Self::new(rows, 1)
    }

    /// So many units, one at least.
    pub fn new(rows: u64, units: u64) -> Self {
        Self { rows, units: units.max(1) }
    }

    /// Rows of all units.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many units there are.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The rows of a unit.
    pub fn range(&self, unit: u64) -> Range<u64> {
        let start = |unit: u64| unit * (self.rows / self.units) + unit.min(self.rows % self.units);
        start(unit)..start(unit + 1)
    }

    /// Units of two sizes: how many rows those of each have, and how many there are.
    pub fn sizes(&self) -> [(u64, u64); 2] {
        let (rows, more) = (self.rows / self.units, self.rows % self.units);
        [(rows + 1, more), (rows, self.units - more)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows_evenly() {
        for (rows, units) in [(0, 1), (1, 1), (7, 3), (100, 15), (1000, 63), (9, 9), (5, 0)] {
            let ranges = RowRanges::new(rows, units);
            let all: Vec<Range<u64>> = (0..ranges.units()).map(|unit| ranges.range(unit)).collect();
            assert!(all.iter().flat_map(Clone::clone).eq(0..rows), "{ranges:?}");
            let mut sizes: Vec<u64> = all.iter().map(|range| range.end - range.start).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[sizes.len() - 1] <= 1);
            for (rows, count) in ranges.sizes() {
                assert!(sizes.drain(..count as usize).all(|size| size == rows), "{ranges:?}");
            }
            assert!(sizes.is_empty());
        }
    }

    /// Few rows are one unit, whoever computes them; many are as many as memory and retries ask for.
    #[test]
    fn workers_share_what_is_worth_sharing() {
        for workers in [1, 2, 256] {
            assert_eq!(RowRanges::of_sums(LEAST_ROWS, workers).units, 1);
            assert_eq!(RowRanges::of_sums(600 * RANGE_ROWS, workers).units, 600);
        }
        assert_eq!(RowRanges::of_sums(RANGE_ROWS, 1).units, 2);
        assert_eq!(RowRanges::of_sums(RANGE_ROWS, 16).units, 8);
        assert_eq!(RowRanges::of_sums(9 * RANGE_ROWS + 1, 4).units, 10);
        assert_eq!(RowRanges::whole(u64::MAX).range(0), 0..u64::MAX);
        assert_eq!(
            [1, 4 * LANE_ROWS, 9 * LANE_ROWS].map(|rows| RowRanges::of_lanes(rows, 8).units),
            [1, 4, 8]
        );
        // No more than can be counted.
        assert_eq!(RowRanges::of_sums(base::limits::ROWS, 256).units, 4096);
    }
}

//! How the rows of a computation are cut: into ranges of the spine, which worker lanes take in turn.
//!
//! Places on a spine are in the order of pseudorandom identifiers, so that any range of it is as good a
//! sample as any other; and how many rows a range has follows from how many there are in all, which both
//! sides know before they compute. So the price of a computation is known then, too.

use std::ops::Range;

/// Most rows of a range of sums: seconds of work, beside which the one round trip that the end of a range
/// costs is little; and no more than 4,096 ranges of as many rows as can be matched.
const RANGE_ROWS: u64 = 1 << 20;

/// Rows cut into units, dealt to lanes: lane l has the units l, l + lanes, and so on. Sizes of units differ
/// by one row at most, and all lanes have the same number of them, one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRanges {
    rows: u64,
    lanes: u32,
    units: u64,
}

impl RowRanges {
    /// Of sums, which are added up.
    pub fn of_sums(rows: u64, lanes: u32) -> Self {
        Self::new(rows, lanes, RANGE_ROWS)
    }

    /// Of what does not add up: all rows are one unit.
    pub fn whole(rows: u64) -> Self {
        Self { rows, lanes: 1, units: 1 }
    }

    /// With so many rows in a range at most.
    pub fn new(rows: u64, lanes: u32, most: u64) -> Self {
        let each = rows.div_ceil(most.max(1)).div_ceil(lanes.into()).max(1);
        Self { rows, lanes, units: each * u64::from(lanes) }
    }

    /// Rows of all units.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many compute at once.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// The rows of a unit.
    pub fn range(&self, unit: u64) -> Range<u64> {
        let start = |unit: u64| unit * (self.rows / self.units) + unit.min(self.rows % self.units);
        start(unit)..start(unit + 1)
    }

    /// The units of a lane, in the order in which it runs them.
    pub fn of_lane(&self, lane: u32) -> impl Iterator<Item = u64> + use<> {
        (lane.into()..self.units).step_by(self.lanes as usize)
    }

    /// Rows of each of them.
    pub fn lane_rows(&self, lane: u32) -> Vec<u64> {
        let rows = |unit| self.range(unit).end - self.range(unit).start;
        self.of_lane(lane).map(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows_evenly_and_the_first_lane_has_the_most() {
        for (rows, lanes, most) in [(0, 3, 5), (1, 1, 1), (7, 3, 100), (100, 4, 7), (1000, 1, 16), (9, 4, 1)]
        {
            let ranges = RowRanges::new(rows, lanes, most);
            assert!(ranges.units.is_multiple_of(lanes.into()) && ranges.units > 0);
            let all: Vec<Range<u64>> = (0..ranges.units).map(|unit| ranges.range(unit)).collect();
            assert!(all.iter().flat_map(Clone::clone).eq(0..rows), "{ranges:?}");
            let sizes: Vec<u64> = all.iter().map(|range| range.end - range.start).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[sizes.len() - 1] <= 1);
            assert!(sizes[0] <= most, "{ranges:?}");
            let sums: Vec<u64> = (0..lanes).map(|lane| ranges.lane_rows(lane).iter().sum()).collect();
            assert!(sums.iter().all(|sum| *sum <= sums[0]) && sums.iter().sum::<u64>() == rows);
            let mut dealt: Vec<u64> = (0..lanes).flat_map(|lane| ranges.of_lane(lane)).collect();
            dealt.sort_unstable();
            assert!(dealt.into_iter().eq(0..ranges.units));
        }
    }

    /// Few rows are as many units as lanes; more are more, whatever the lanes.
    #[test]
    fn few_rows_are_a_unit_per_lane() {
        for lanes in [1, 2, 256] {
            assert_eq!(RowRanges::of_sums(RANGE_ROWS, lanes).units, u64::from(lanes));
        }
        assert_eq!(RowRanges::of_sums(RANGE_ROWS + 1, 1).units, 2);
        assert_eq!(RowRanges::of_sums(9 * RANGE_ROWS, 4).units, 12);
        assert_eq!(RowRanges::whole(u64::MAX).lane_rows(0), [u64::MAX]);
    }
}

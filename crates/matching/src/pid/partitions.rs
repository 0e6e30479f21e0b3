//! Partitions: the elements that begin with the same bits. A unit of work is a stage of one of them.
//!
//! Elements are blinded and uniform, so leading bits deal them evenly, and a partition is a function of a set
//! that its receiver gets anyway. A hash of the identifier would deal rows instead: both sides would learn
//! the exact union of every bucket, and crafted inputs would have that many oracles.

use crate::chunks::CHUNK;
use crate::group::GroupElement;
use crate::spill::{leading, most_of};
use base::Error;
use net::StepLink;
use std::ops::Range;

/// Elements of both sides in a partition, on average, at most.
const PARTITION_ROWS: u64 = 1 << 20;
/// Units of a stage that each lane has, and elements of both sides in one that is worth a unit.
const UNITS_PER_LANE: u64 = 4;
const LANE_ROWS: u64 = 1 << 15;
/// Bits of the most partitions that there are.
const BITS_MAX: u32 = 12;

/// What a peer's partition that is too large fails.
const SPREAD: &str = "none of its partitions holds more elements than chance puts there";

/// How many partitions there are: a power of two, at most 4,096.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partitioning {
    bits: u32,
}

impl Partitioning {
    /// One partition: nothing is dealt.
    pub const WHOLE: Self = Self { bits: 0 };

    /// As both compute it from the sizes that they told: as many that one holds 2^20 elements of both sides
    /// on average, and at least so many.
    pub fn of(rows: [u64; 2], least: u32) -> Self {
        let wanted = rows[0].saturating_add(rows[1]).div_ceil(PARTITION_ROWS).max(u64::from(least));
        Self { bits: wanted.clamp(1, 1 << BITS_MAX).next_power_of_two().ilog2() }
    }

    /// The same where so many lanes are to have units of every stage: four each, unless these are small.
    pub fn over_lanes(rows: [u64; 2], least: u32, lanes: u64) -> Self {
        let whole = rows[0].saturating_add(rows[1]) / LANE_ROWS;
        let most = lanes.saturating_mul(UNITS_PER_LANE).min(1 << BITS_MAX);
        Self::of(rows, least.max(whole.min(most) as u32))
    }

    /// How many chunks a party promises of each of its partitions of `u`, where it has so many rows: enough
    /// for the largest one, so that the number tells nothing.
    pub fn promised(self, rows: u64) -> usize {
        self.cap(rows).div_ceil(CHUNK) as usize
    }

    /// The partitioning that a number names, if it is one.
    pub fn named(bits: u64) -> Option<Self> {
        (bits <= u64::from(BITS_MAX)).then_some(Self { bits: bits as u32 })
    }

    /// How many leading bits name a partition.
    pub fn bits(self) -> u32 {
        self.bits
    }

    pub fn count(self) -> u32 {
        1 << self.bits
    }

    /// The slices of a partition, where all of them are named by `bits`.
    pub fn slices(self, part: u32, bits: u32) -> Range<u32> {
        let finer = bits - self.bits;
        part << finer..(part + 1) << finer
    }

    /// The most of `rows` uniform elements that one partition holds: more have a probability below `2^-70`.
    pub fn cap(self, rows: u64) -> u64 {
        if self.bits == 0 {
            return rows;
        }
        rows.min(most_of(rows.div_ceil(1 << self.bits)))
    }

    /// Whether a partition of `rows` elements that the peer chose may hold so many.
    ///
    /// # Errors
    /// `Deviated` when it may not.
    pub fn check_size(self, link: &StepLink<'_>, held: u64, rows: u64) -> Result<(), Error> {
        match held <= self.cap(rows) {
            true => Ok(()),
            false => Err(link.blame(SPREAD)),
        }
    }

    /// Refuses elements that begin with other bits than those of their partition.
    ///
    /// # Errors
    /// `Deviated` when there is one.
    pub fn check_range(self, link: &StepLink<'_>, part: u32, piece: &[GroupElement]) -> Result<(), Error> {
        match piece.iter().all(|e| leading(e, self.bits) == part) {
            true => Ok(()),
            false => Err(link.blame("the elements of a partition are in its range")),
        }
    }

    /// Tells how many elements each partition has; the last number follows from the others and the sum.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn tell_sizes(self, link: &mut StepLink<'_>, sizes: &[u64]) -> Result<(), Error> {
        let told: Vec<u8> = sizes[..sizes.len() - 1].iter().flat_map(|size| size.to_le_bytes()).collect();
        if told.is_empty() { Ok(()) } else { link.send(&told) }
    }

    /// Hears how many elements each partition of the peer's `rows` has.
    ///
    /// # Errors
    /// `Deviated` when one is larger than chance allows, or all are more than there are.
    pub fn hear_sizes(self, link: &mut StepLink<'_>, rows: u64) -> Result<Vec<u64>, Error> {
        let mut told = vec![[0; 8]; self.count() as usize - 1];
        if !told.is_empty() {
            link.recv(told.as_flattened_mut())?;
        }
        let (mut sizes, mut left) = (Vec::with_capacity(told.len() + 1), rows);
        for size in told.into_iter().map(u64::from_le_bytes) {
            self.check_size(link, size, rows)?;
            left = left
                .checked_sub(size)
                .ok_or_else(|| link.blame("its partitions hold as many elements as it told"))?;
            sizes.push(size);
        }
        self.check_size(link, left, rows)?;
        sizes.push(left);
        Ok(sizes)
    }

    /// The even share of one partition in `rows`, for a price.
    pub fn share(self, rows: u64, part: u32) -> u64 {
        let up_to = |part: u32| ((u128::from(rows) * u128::from(part)) >> self.bits) as u64;
        up_to(part + 1) - up_to(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sizes_say_how_many_there_are() {
        let count = |a: u64, b: u64, least| Partitioning::of([a, b], least).count();
        assert_eq!([count(0, 0, 0), count(1 << 19, 1 << 19, 1), count(1 << 19, 1 + (1 << 19), 1)], [1, 1, 2]);
        assert_eq!(count(500_000_000, 500_000_000, 1), 1024);
        assert_eq!([count(10, 10, 3), count(10, 10, 64), count(u64::MAX, u64::MAX, 1)], [4, 64, 4096]);
        assert_eq!(count(0, 0, u32::MAX), 4096);
    }

    #[test]
    fn shares_sum_up_and_bounds_leave_room_for_chance() {
        for (rows, least) in [(0, 8), (7, 4), (1_000_003, 64), (u64::from(u32::MAX), 4096)] {
            let parts = Partitioning::of([0; 2], least);
            assert_eq!((0..parts.count()).map(|part| parts.share(rows, part)).sum::<u64>(), rows);
            assert!(parts.cap(rows) <= rows && parts.cap(rows) >= parts.share(rows, 0));
        }
        assert_eq!(Partitioning::WHOLE.cap(77), 77);
        assert_eq!(Partitioning::of([0; 2], 4).cap(40_000), 10_000 + 10 * 100 + 64);
        assert_eq!(Partitioning::named(13), None);
    }
}

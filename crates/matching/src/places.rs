//! Where own rows lie on a spine: few enough to be held, or queued on disk with the columns of the match.

use crate::spill::{SpillQueue, SpillRoom};
use base::Error;

/// Bytes of a row and its position.
pub(crate) const PLACE_BYTES: u64 = 2 * size_of::<u32>() as u64;
/// Bytes of a block of the queue.
const BLOCK: usize = 8192 * PLACE_BYTES as usize;
/// Of how many parts of the match's memory places have one: they are there while columns are laid out, beside
/// memory that the match has not given back.
const SHARE: u64 = 8;

/// The position of each own row on the spine. It does not print.
pub struct OwnPlaces {
    rows: u64,
    held: Held,
}

enum Held {
    /// By row, in the order of the input.
    ByRow(Vec<u32>),
    /// Rows and positions, in the order of the spine.
    BySpine(SpillQueue),
}

impl OwnPlaces {
    /// By row, in the order of the input.
    #[must_use]
    pub fn of(positions: Vec<u32>) -> Self {
        Self { rows: positions.len() as u64, held: Held::ByRow(positions) }
    }

    /// None yet; they are added in the order of the spine.
    pub(crate) fn queued(room: &SpillRoom) -> Self {
        Self { rows: 0, held: Held::BySpine(SpillQueue::new(&room.share(SHARE), BLOCK)) }
    }

    /// Adds the next row along the spine.
    ///
    /// # Errors
    /// When it has to go to disk and cannot.
    pub(crate) fn push(&mut self, row: u32, position: u32) -> Result<(), Error> {
        self.rows += 1;
        match &mut self.held {
            Held::ByRow(positions) => {
                positions.push(position);
                Ok(())
            }
            Held::BySpine(queue) => queue.push([row.to_le_bytes(), position.to_le_bytes()].as_flattened()),
        }
    }

    /// How many rows have one.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The position of each row, in the order of the input: four bytes of memory per row.
    ///
    /// # Errors
    /// When they cannot be read back.
    pub fn positions(&self) -> Result<Vec<u32>, Error> {
        let mut positions = vec![0; self.rows as usize];
        self.each(|row, position| {
            positions[row as usize] = position;
            Ok(())
        })?;
        Ok(positions)
    }

    /// Hands out every row and its position, in no promised order.
    ///
    /// # Errors
    /// When they cannot be read back; or what `take` says.
    pub fn each(&self, mut take: impl FnMut(u32, u32) -> Result<(), Error>) -> Result<(), Error> {
        match &self.held {
            Held::ByRow(positions) => {
                (0..).zip(positions).try_for_each(|(row, position)| take(row, *position))
            }
            Held::BySpine(queue) => queue.each_block(|block| {
                let places = block.as_chunks::<4>().0.as_chunks::<2>().0.iter();
                places.map(|place| place.map(u32::from_le_bytes)).try_for_each(|[row, at]| take(row, at))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_by_row_from_memory_and_from_disk() {
        for memory in [None, Some(1)] {
            let room = SpillRoom::new(memory, None);
            for rows in [0u32, 1, 8191, 8192, 8193, 300_000] {
                let mut places = OwnPlaces::queued(&room);
                // Row r lies at 2 r' where r' goes through the rows by a stride.
                let row = |i: u32| (u64::from(i) * 7919 % u64::from(rows)) as u32;
                (0..rows).for_each(|i| places.push(row(i), 2 * i).unwrap());
                assert_eq!(places.len(), u64::from(rows));
                let positions = places.positions().unwrap();
                assert!((0..rows).all(|i| positions[row(i) as usize] == 2 * i), "{memory:?} {rows}");
            }
        }
        let mut seen = Vec::new();
        let keep = |row, at| {
            seen.push((row, at));
            Ok(())
        };
        OwnPlaces::of(vec![5, 3]).each(keep).unwrap();
        assert_eq!(seen, [(0, 5), (1, 3)]);
    }
}

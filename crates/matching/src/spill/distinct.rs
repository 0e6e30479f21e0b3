//! A column in its order once it is known that nothing in it repeats.

use super::{SpillColumn, SpillQueue, SpillRoom};
use base::Error;

/// The records in ascending order, `records` of them in a block; none when two begin with the same `key`
/// bytes, or so many begin alike that memory would not hold them. All were looked at before the first is
/// handed out.
pub(crate) fn distinct<const B: usize>(
    column: SpillColumn<B>,
    (room, key, records): (&SpillRoom, usize, u64),
) -> Result<Option<SpillQueue>, Error> {
    if !column.is_spread() {
        return Ok(None);
    }
    let (mut column, mut last) = (column.sorted(), None::<[u8; B]>);
    let mut queue = SpillQueue::new(room, records as usize * B);
    while let Some(record) = column.pop()? {
        if last.is_some_and(|last| last[..key] == record[..key]) {
            return Ok(None);
        }
        last = Some(record);
        queue.push(&record)?;
    }
    Ok(Some(queue))
}

/// Records of a queue, one after the other.
pub(crate) struct QueueRecords<const B: usize> {
    queue: SpillQueue,
    block: Vec<u8>,
    at: usize,
    left: u64,
}

impl<const B: usize> QueueRecords<B> {
    /// All that is in a queue whose blocks are of whole records.
    pub fn new(queue: SpillQueue) -> Self {
        let left = queue.bytes() / B as u64;
        Self { queue, block: Vec::new(), at: 0, left }
    }

    /// How many are left.
    pub fn len(&self) -> u64 {
        self.left
    }

    /// The next record, which stays.
    pub fn head(&mut self) -> Result<Option<&[u8; B]>, Error> {
        if self.at * B == self.block.len() && self.left > 0 {
            self.queue.pop(&mut self.block)?;
            self.at = 0;
        }
        Ok(self.block.as_chunks().0.get(self.at))
    }

    /// The next record.
    pub fn pop(&mut self) -> Result<Option<[u8; B]>, Error> {
        let record = self.head()?.copied();
        if record.is_some() {
            (self.at, self.left) = (self.at + 1, self.left - 1);
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of 12 bytes, the first eight of which are these numbers, in blocks of two.
    fn sorted(room: &SpillRoom, keys: &[u64], of: usize) -> Option<Vec<Vec<u64>>> {
        let mut column = SpillColumn::<12>::new(room, keys.len() as u64);
        for (at, key) in (0u32..).zip(keys) {
            let mut record = [0; 12];
            record[..8].copy_from_slice(&key.to_be_bytes());
            record[8..].copy_from_slice(&at.to_be_bytes());
            column.push(&record).unwrap();
        }
        let mut queue = distinct(column, (room, of, 2)).unwrap()?;
        let (mut blocks, mut block) = (Vec::new(), Vec::new());
        loop {
            queue.pop(&mut block).unwrap();
            if block.is_empty() {
                return Some(blocks);
            }
            let keys = block.as_chunks::<12>().0.iter().map(|record| *record.first_chunk().unwrap());
            blocks.push(keys.map(u64::from_be_bytes).collect());
        }
    }

    #[test]
    fn records_come_in_order_unless_keys_repeat() {
        for room in [SpillRoom::new(None, None), SpillRoom::on_disk()] {
            assert_eq!(sorted(&room, &[], 8), Some(vec![]));
            assert_eq!(sorted(&room, &[5, u64::MAX, 3], 8), Some(vec![vec![3, 5], vec![u64::MAX]]));
            assert_eq!(sorted(&room, &[5, 3, 5], 8), None);
            assert_eq!(sorted(&room, &[5, 3, 5], 12), Some(vec![vec![3, 5], vec![5]]));
        }
    }
}

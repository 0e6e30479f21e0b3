//! `sort`: records of both parties in ascending order: a bitonic sort, which is nested merges, depth first.
//!
//! Two sorted halves, both ascending, are merged by comparing i with its mirror image first; what is left are two bitonic
//! halves. So all comparisons point one way and lanes of one call need no direction.

use crate::merge::{BASE, levels, merge, order_all};
use crate::records::{RECORD, are_sorted, beside, enter_both};
use crate::task::{Task, Wires};
use base::Error;
use osprey::Memory;
use yao::wires::{Array, Items, Party};

pub struct Sort<M: Memory> {
    records: Wires<M>,
    per_party: usize,
}

impl<M: Memory> Task<M> for Sort<M> {
    fn new(memory: &M, per_party: usize) -> Self {
        Self { records: Array::new(memory, 2 * per_party, RECORD), per_party }
    }

    fn bytes(&self) -> usize {
        self.records.bytes()
    }

    fn input(&mut self, p: &mut Party<'_>) -> Result<(), Error> {
        enter_both::<M>(p, self.per_party, |_, _| (), &mut self.records)
    }

    fn compute(&mut self, p: &mut Party<'_>) -> Result<(), Error> {
        sort::<M>(p, &mut self.records, 0, 2 * self.per_party)
    }

    fn results(&self) -> &Wires<M> {
        &self.records
    }

    fn check(&self, results: &[u64]) -> bool {
        are_sorted(results, self.per_party)
    }

    fn beside(&self) -> usize {
        beside(self.per_party)
    }
}

/// Sorts `len` records, a power of two.
fn sort<M: Memory>(p: &mut Party<'_>, records: &mut Wires<M>, start: usize, len: usize) -> Result<(), Error> {
    if len <= BASE {
        let mut block = 2;
        while block <= len {
            mirror::<M>(p, records, start, len, block)?;
            levels::<M>(p, records, start, len, block / 4)?;
            block *= 2;
        }
        return Ok(());
    }
    let half = len / 2;
    sort::<M>(p, records, start, half)?;
    sort::<M>(p, records, start + half, half)?;
    mirror::<M>(p, records, start, len, len)?;
    merge::<M>(p, records, start, half)?;
    merge::<M>(p, records, start + half, half)
}

/// Compares every record of the first half of a block with its mirror image in the second.
fn mirror<M: Memory>(
    p: &mut Party<'_>,
    records: &mut Wires<M>,
    start: usize,
    len: usize,
    block: usize,
) -> Result<(), Error> {
    let first = Items::grid(start, block / 2, block, len / 2);
    let second = Items::mirrored(start + block - 1, block / 2, block, len / 2);
    order_all::<M>(p, records, [first, second])
}

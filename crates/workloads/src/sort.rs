//! The bitonic sort, which is nested merges, depth first.
//!
//! Two sorted halves, both ascending, are merged by comparing i with its mirror image first; what is left are
//! two bitonic halves. So all comparisons point one way and lanes of one call need no direction.

use crate::merge::{BASE, levels, merge, order_all};
use crate::task::Wires;
use base::Error;
use osprey::Memory;
use yao::wires::{Items, WireParty};

/// Sorts `len` records, a power of two.
pub fn sort<M: Memory>(
    p: &mut WireParty<'_>,
    records: &mut Wires<M>,
    start: usize,
    len: usize,
) -> Result<(), Error> {
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
    p: &mut WireParty<'_>,
    records: &mut Wires<M>,
    start: usize,
    len: usize,
    block: usize,
) -> Result<(), Error> {
    let first = Items::grid(start, block / 2, block, len / 2);
    let second = Items::mirrored(start + block - 1, block / 2, block, len / 2);
    order_all::<M>(p, records, [first, second])
}

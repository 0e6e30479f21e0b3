//! The bitonic merge, depth first: a list that ascends and one that descends become one that ascends.

use crate::records::KEY;
use crate::task::Wires;
use base::Error;
use osprey::Memory;
use yao::LANES;
use yao::wires::{Items, WireParty};

/// Records whose levels are done one after the other, each over all of them: they fit a second-level cache,
/// and a level of them fills the lanes of a call.
pub const BASE: usize = 1024;

/// Puts a bitonic sequence of `len` records, a power of two, in ascending order.
pub fn merge<M: Memory>(
    p: &mut WireParty<'_>,
    records: &mut Wires<M>,
    start: usize,
    len: usize,
) -> Result<(), Error> {
    if len <= BASE {
        return levels::<M>(p, records, start, len, len / 2);
    }
    level::<M>(p, records, start, len, len / 2)?;
    merge::<M>(p, records, start, len / 2)?;
    merge::<M>(p, records, start + len / 2, len / 2)
}

/// The levels of distance `distance`, half of it, ... 1.
pub fn levels<M: Memory>(
    p: &mut WireParty<'_>,
    records: &mut Wires<M>,
    start: usize,
    len: usize,
    mut distance: usize,
) -> Result<(), Error> {
    while distance > 0 {
        level::<M>(p, records, start, len, distance)?;
        distance /= 2;
    }
    Ok(())
}

/// Compares i with i + distance, in blocks of twice the distance.
fn level<M: Memory>(
    p: &mut WireParty<'_>,
    records: &mut Wires<M>,
    start: usize,
    len: usize,
    distance: usize,
) -> Result<(), Error> {
    let items = |start| Items::grid(start, distance, 2 * distance, len / 2);
    order_all::<M>(p, records, [items(start), items(start + distance)])
}

/// Puts pairs in order, as many at once as a call takes.
pub fn order_all<M: Memory>(
    p: &mut WireParty<'_>,
    records: &mut Wires<M>,
    pairs: [Items; 2],
) -> Result<(), Error> {
    let count = pairs[0].count();
    for from in (0..count).step_by(LANES) {
        p.order(records, KEY, pairs.map(|items| items.part(from, LANES.min(count - from))))?;
    }
    Ok(())
}

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

/// Records that are put in order by comparing them.
pub struct Network<'a, 'p, M: Memory> {
    pub party: &'a mut WireParty<'p>,
    pub records: &'a mut Wires<M>,
}

impl<M: Memory> Network<'_, '_, M> {
    /// Puts a bitonic sequence of `len` records, a power of two, in ascending order.
    pub fn merge(&mut self, start: usize, len: usize) -> Result<(), Error> {
        if len <= BASE {
            return self.levels(start, len, len / 2);
        }
        self.level(start, len, len / 2)?;
        self.merge(start, len / 2)?;
        self.merge(start + len / 2, len / 2)
    }

    /// The levels of distance `distance`, half of it, ... 1.
    pub fn levels(&mut self, start: usize, len: usize, mut distance: usize) -> Result<(), Error> {
        while distance > 0 {
            self.level(start, len, distance)?;
            distance /= 2;
        }
        Ok(())
    }

    /// Compares i with i + distance, in blocks of twice the distance.
    fn level(&mut self, start: usize, len: usize, distance: usize) -> Result<(), Error> {
        let items = |start| Items::grid(start, distance, 2 * distance, len / 2);
        self.order_all([items(start), items(start + distance)])
    }

    /// Puts pairs in order, as many at once as a call takes.
    pub fn order_all(&mut self, pairs: [Items; 2]) -> Result<(), Error> {
        let count = pairs[0].count();
        for from in (0..count).step_by(LANES) {
            let some = pairs.map(|items| items.part(from, LANES.min(count - from)));
            self.party.order(self.records, KEY, some)?;
        }
        Ok(())
    }
}

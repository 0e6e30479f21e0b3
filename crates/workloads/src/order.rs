//! `merge` and `sort`: the records of both parties in ascending order. Merge takes one list that ascends and
//! one that descends; sort takes records in no order.

use crate::merge::Network;
use crate::records::{RECORD, key, pack, records};
use crate::task::{Task, Wires, enter};
use base::Error;
use osprey::Memory;
use yao::wires::{Role, WireArray, WireParty};

/// How records come in, and the network that puts them in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderNetwork {
    Merge,
    Sort,
}

pub struct OrderedRecords<M: Memory> {
    network: OrderNetwork,
    records: Wires<M>,
    per_party: usize,
}

impl<M: Memory> OrderedRecords<M> {
    pub fn new(network: OrderNetwork, memory: &M, per_party: usize) -> Self {
        Self { network, records: WireArray::new(memory, 2 * per_party, RECORD), per_party }
    }
}

impl<M: Memory> Task<M> for OrderedRecords<M> {
    fn bytes(&self) -> usize {
        self.records.bytes()
    }

    /// The garbler's records into the first half, the evaluator's into the second.
    fn input(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        let (first, second) = self.records.wires_mut().split_at_mut(self.per_party * RECORD);
        for (owner, wires) in [(Role::Garbler, first), (Role::Evaluator, second)] {
            enter(p, owner, || pack(&inputs(self.network, owner, self.per_party)), wires)?;
        }
        Ok(())
    }

    fn compute(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        let mut network = Network::<M> { party: p, records: &mut self.records };
        match self.network {
            OrderNetwork::Merge => network.merge(0, 2 * self.per_party),
            OrderNetwork::Sort => network.sort(0, 2 * self.per_party),
        }
    }

    fn results(&self) -> &Wires<M> {
        &self.records
    }

    fn check(&self, results: &[u64]) -> bool {
        are_sorted(results, self.per_party)
    }

    fn beside(&self) -> usize {
        2 * self.per_party * size_of::<u128>()
    }
}

/// The records of a party as it enters them.
fn inputs(network: OrderNetwork, owner: Role, count: usize) -> Vec<u128> {
    let mut records = records(owner, count);
    if network == OrderNetwork::Merge {
        records.sort_unstable_by_key(|record| key(*record));
        if owner == Role::Evaluator {
            records.reverse();
        }
    }
    records
}

/// Whether packed bits are all records of both parties in ascending order of keys.
fn are_sorted(results: &[u64], per_party: usize) -> bool {
    let mut all = records(Role::Garbler, per_party);
    all.extend(records(Role::Evaluator, per_party));
    all.sort_unstable_by_key(|record| key(*record));
    results.chunks(2).eq(all.iter().map(|r| [*r as u64, (*r >> 64) as u64]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct_and_results_in_order_only_pass() {
        let mut all = records(Role::Garbler, 500);
        all.extend(records(Role::Evaluator, 500));
        all.sort_unstable_by_key(|record| key(*record));
        assert!(all.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(are_sorted(&pack(&all), 500));
        all.swap(3, 700);
        assert!(!are_sorted(&pack(&all), 500));
    }
}

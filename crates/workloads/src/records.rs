//! Records of 128 bits, the lowest 32 of them the key; no two keys of both parties are equal.

use crate::task::{Wires, enter, mix};
use base::Error;
use osprey::Memory;
use std::ops::Range;
use yao::wires::{Party, Role};

/// Bits of a record.
pub const RECORD: usize = 128;
/// The key's bits.
pub const KEY: Range<usize> = 0..32;

/// Record `index` of a party.
pub fn record(owner: Role, index: usize) -> u128 {
    let id = 2 * index as u64 + u64::from(owner == Role::Evaluator);
    u128::from(mix(id)) << 64 | u128::from(mix(!id) >> 32 << 32) | u128::from(scatter(id as u32))
}

/// A bijection of 32 bits.
fn scatter(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

/// The key of a record.
pub fn key(record: u128) -> u32 {
    record as u32
}

/// All records of a party, in no order.
pub fn records(owner: Role, count: usize) -> Vec<u128> {
    (0..count).map(|index| record(owner, index)).collect()
}

/// Records as packed bits.
pub fn pack(records: &[u128]) -> Vec<u64> {
    records.iter().flat_map(|r| [*r as u64, (*r >> 64) as u64]).collect()
}

/// Whether packed bits are all records of both parties in ascending order of keys.
pub fn are_sorted(results: &[u64], per_party: usize) -> bool {
    let mut all = records(Role::Garbler, per_party);
    all.extend(records(Role::Evaluator, per_party));
    all.sort_unstable_by_key(|record| key(*record));
    results.chunks(2).eq(all.iter().map(|r| [*r as u64, (*r >> 64) as u64]))
}

/// Bytes that [`are_sorted`] takes.
pub fn beside(per_party: usize) -> usize {
    2 * per_party * size_of::<u128>()
}

/// Enters `per_party` records of both: the garbler's into the first half, the evaluator's into the second, each as
/// `arrange` leaves them.
///
/// # Errors
/// Those of the channel.
pub fn enter_both<M: Memory>(
    p: &mut Party<'_>,
    per_party: usize,
    arrange: impl Fn(Role, &mut Vec<u128>),
    array: &mut Wires<M>,
) -> Result<(), Error> {
    let (first, second) = array.wires_mut().split_at_mut(per_party * RECORD);
    for (owner, wires) in [(Role::Garbler, first), (Role::Evaluator, second)] {
        let words = || {
            let mut records = records(owner, per_party);
            arrange(owner, &mut records);
            pack(&records)
        };
        enter(p, owner, words, wires)?;
    }
    Ok(())
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

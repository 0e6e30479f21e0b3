//! Records of 128 bits, the lowest 32 of them the key; no two keys of both parties are equal.

use crate::task::mix;
use std::ops::Range;
use yao::wires::Role;

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

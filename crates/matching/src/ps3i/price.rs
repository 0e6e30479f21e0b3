//! What PS3I costs, from the schedule that the drivers follow.

use super::talk::PLACED_BYTES;
use crate::chunks::{CHUNK, chunk};
use crate::disk::DiskSchedule;
use crate::dummies::TERMS_BYTES;
use crate::group::ELEMENT_BYTES;
use crate::identifiers;
use crate::matcher::{MatchDisk, MatchOptions, PairSizes, ShareBackend};
use crate::moves;
use crate::paillier;
use crate::payload::PayloadLayout;
use crate::permute::{TransferBill, network::switches};
use crate::placed;
use crate::spill::MEMORY_MIN;
use crate::terms;
use base::{Cost, PartyId};
use std::ops::Range;

/// A size, the terms of dummies and the digest of all other terms.
const COUNT_BYTES: u64 = 8 + TERMS_BYTES + terms::BYTES as u64;

/// The chunks of both columns that travel at once, in order; a column that is over has empty ones.
pub(super) fn chunks(rows: [u64; 2]) -> impl Iterator<Item = [Range<u64>; 2]> {
    (0..rows[0].max(rows[1]).div_ceil(CHUNK)).map(move |i| rows.map(|rows| chunk(rows, i)))
}

/// The exact cost for sizes that are known.
#[must_use]
pub fn price(sizes: PairSizes, options: &MatchOptions) -> Cost {
    let layouts = &options.layouts;
    let parties @ [a, b] = [PartyId(0), PartyId(1)];
    let mut bill = TransferBill::new(options.ot.unwrap_or_default());
    swap(&mut bill, [COUNT_BYTES; 2]);
    for both in chunks(sizes.rows) {
        swap(&mut bill, both.map(|rows| (rows.end - rows.start) * ELEMENT_BYTES));
    }
    one_way(&mut bill, b, sizes.rows[0] * ELEMENT_BYTES);
    one_way(&mut bill, a, sizes.rows[0].div_ceil(8));
    if sizes.shared() > 0 {
        let each = parties.into_iter().zip(sizes.rows).zip(layouts);
        match options.backend {
            ShareBackend::PermuteShare => {
                bill.set_up(switches(sizes.rows[0]).max(switches(sizes.rows[1])));
                each.for_each(|((owner, rows), layout)| bill.permutation(owner, rows, layout.row_bytes()));
            }
            ShareBackend::Paillier => each.for_each(|((owner, rows), layout)| {
                paillier::bill(&mut bill, owner, rows, sizes.shared(), layout);
            }),
        }
    }
    bill.cost()
}

/// Messages of both parties that cross; an empty one is none.
fn swap(bill: &mut TransferBill, bytes: [u64; 2]) {
    let said = [0, 1].map(|i| (PartyId(i as u8), bytes[i])).into_iter().filter(|(_, bytes)| *bytes > 0);
    said.clone().for_each(|(party, bytes)| bill.say(party, bytes));
    said.for_each(|(party, _)| bill.hear(party.other()));
}

/// What only `party` says; nothing is no message.
fn one_way(bill: &mut TransferBill, party: PartyId, bytes: u64) {
    if bytes > 0 {
        bill.say(party, bytes);
        bill.hear(party.other());
    }
}

/// Bytes of a row that are in memory whatever lies on disk: its places in both orders, and while a network
/// is routed its maps and settings. They may take half of the memory.
const HELD_BYTES: u64 = 4 + 4 + 16 + 3;
/// [`HELD_BYTES`] as a part of the memory that a run needs.
pub(super) const NEEDED_BYTES: u64 = 2 * HELD_BYTES;

/// Bytes of memory without which a run cannot be: all that is not named here goes to disk.
#[must_use]
pub fn memory(rows: [u64; 2], options: &MatchOptions) -> u64 {
    let most = rows[0].max(rows[1]);
    let moving = match options.backend {
        ShareBackend::PermuteShare => 0,
        // Own rows in a table, and shares of them twice; and the ciphertexts of the peer's.
        ShareBackend::Paillier => {
            let of = |layout: &PayloadLayout| paillier::memory(most, layout);
            let widest = options.layouts.iter().map(PayloadLayout::row_bytes).max().unwrap_or(0) as u64;
            options.layouts.iter().map(of).max().unwrap_or(0) + 3 * most * widest
        }
    };
    MEMORY_MIN.max(NEEDED_BYTES * most + moving)
}

/// What a party takes on disk, where everybody is in both: more matches are more shares.
pub(super) fn disk(rows: [u64; 2], me: PartyId, options: &MatchOptions) -> MatchDisk {
    let [own, peer] = [me, me.other()].map(|party| rows[party.index()]);
    let mut disk = DiskSchedule::default();
    disk.pass_through(identifiers::TAG_BYTES * own);
    // Names in the order in which they are sent, while products of the peer's come in.
    let names = placed::NAME_BYTES * own;
    disk.write(names);
    disk.read(names);
    let products = PLACED_BYTES as u64 * peer;
    disk.write(products);
    disk.drop(names);
    // In their order, where none repeats.
    disk.read(products);
    disk.write(products);
    disk.drop(products);
    disk.read(products);
    disk.drop(products);
    let matched = rows[0].min(rows[1]);
    moves::disk(me, (rows, [matched; 2]), false, options, &mut disk);
    disk.disk(rows[0].max(rows[1]))
}

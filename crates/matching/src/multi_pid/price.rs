//! What the protocol costs, from the schedule that the driver itself follows.

use crate::chunks::{CHUNK, chunk, chunks};
use crate::dummies::TERMS_BYTES;
use crate::group::ELEMENT_BYTES;
use crate::matcher::PairSizes;
use crate::meter::LinkMeter;
use crate::spill;
use crate::tags::TAG_BYTES;
use base::{Cost, PartyId};
use std::ops::Range;

/// Most identifiers of a row.
pub const KEYS: usize = 16;

/// Bytes of the first message: rows, identifiers of a row, rows of the first list, settings, dummies.
pub(super) const COUNT_BYTES: u64 = 3 * 8 + SETTINGS_BYTES + TERMS_BYTES;

/// Bytes of the digest of what both sides must have set alike.
pub(super) const SETTINGS_BYTES: u64 = 16;

/// Bytes of the number of C's unmatched rows and of the seed of labels.
pub(super) const LABEL_BYTES: u64 = 8 + 32;

/// Bytes of a digest of the spine.
pub(super) const RECEIPT_BYTES: u64 = 32;

/// While P computes chunk `i` of the labels of the spine, this many rows of C travel back: both end together.
/// Where there is none to send, a byte says that P is at work.
pub(super) fn returned(rows_c: u64, union: u64) -> impl Iterator<Item = (Range<u64>, Range<u64>)> {
    let piece = rows_c.div_ceil(union.div_ceil(CHUNK).max(1));
    chunks(union)
        .zip(0..)
        .map(move |(labels, i)| (labels, rows_c.min(i * piece)..rows_c.min((i + 1) * piece)))
}

/// Bytes that carry `rows` of C back, or the byte in their place.
pub(super) fn returned_bytes(rows: &Range<u64>) -> u64 {
    ((rows.end - rows.start) * ELEMENT_BYTES).max(1)
}

/// The messages of one party in order.
fn meter(sizes: PairSizes, party: PartyId) -> LinkMeter {
    let mut m = LinkMeter::default();
    let (c, [n_c, _]) = (party == PartyId(0), sizes.rows);
    let (own, peer) = (sizes.cells(party), sizes.cells(party.other()));
    let mut say = |by_c: bool, bytes: u64| if by_c == c { m.send(bytes) } else { m.recv(bytes) };
    let bytes = |elements: Range<u64>| (elements.end - elements.start) * ELEMENT_BYTES;
    [c, !c].into_iter().for_each(|by_c| say(by_c, COUNT_BYTES));
    for i in 0..own.max(peer).div_ceil(CHUNK) {
        say(c, bytes(chunk(own, i)));
        say(!c, bytes(chunk(peer, i)));
    }
    say(false, sizes.cells(PartyId(0)) * ELEMENT_BYTES);
    say(true, LABEL_BYTES + n_c * ELEMENT_BYTES);
    returned(n_c, sizes.union).for_each(|(_, rows)| say(false, returned_bytes(&rows)));
    say(false, sizes.union * TAG_BYTES);
    say(true, RECEIPT_BYTES);
    m
}

/// The exact cost for sizes that are known.
#[must_use]
pub fn price(sizes: PairSizes) -> Cost {
    let [c, p] = [0, 1].map(|party| meter(sizes, PartyId(party)));
    Cost { rounds: c.turns.max(p.turns), sent: vec![c.sent, p.sent], ..Cost::zero(2) }
}

/// Multiplications of the group by one party, those of hashed names included.
#[must_use]
pub fn multiplications(sizes: PairSizes, party: PartyId) -> u64 {
    let cells = sizes.cells(PartyId(0)) + sizes.cells(PartyId(1));
    let labels = if party == PartyId(0) { 2 * sizes.rows[0] } else { sizes.rows[0] + sizes.union };
    cells + labels
}

/// Bytes of an own row that are in memory whatever lies on disk: its places in the order of u and back, and a
/// bit for each of its names, while names are dealt. They may take half of the memory.
const HELD_BYTES: u64 = 4 + 4 + KEYS as u64 / 8;
/// [`HELD_BYTES`] as a part of the memory that a run needs.
pub(super) const NEEDED_BYTES: u64 = 2 * HELD_BYTES;

/// Bytes of memory without which a party's run cannot be: all that is not named here goes to disk.
#[must_use]
pub fn memory(rows: [u64; 2], keys: [u64; 2], party: PartyId) -> u64 {
    let most = (0..2).map(|i| rows[i] * keys[i]).fold(rows[0] + rows[1], u64::max);
    (NEEDED_BYTES * rows[party.index()]).max(spill::least_room(most))
}

//! What Collecting PS3I costs, from the schedule that the drivers follow.

use super::edges::EDGE_BYTES;
use super::names::{ENTRY_BYTES, NUMBER_BYTES};
use crate::chunks::CHUNK;
use crate::disk::DiskSchedule;
use crate::dummies;
use crate::group::ELEMENT_BYTES;
use crate::matcher::{MatchDisk, MatchOptions, ShareBackend};
use crate::moves;
use crate::paillier;
use crate::payload::PayloadLayout;
use crate::permute::{MAP_BYTES, TransferBill, extended, network};
use crate::placed::NAME_BYTES;
use crate::spill::{self, MEMORY_MIN};
use crate::tags::{PLACED_BYTES, TAG_BYTES};
use crate::terms;
use base::{Cost, PartyId};
use std::ops::Range;

/// Five numbers, the terms of the dummies and all other terms.
const COUNT_BYTES: u64 = 5 * 8 + dummies::TERMS_BYTES + terms::BYTES as u64;

/// The public sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSizes {
    /// Rows of party 0 and of party 1, dummies included.
    pub rows: [u64; 2],
    /// Identifiers of a row of either.
    pub keys: [u64; 2],
    /// M.
    pub slots: u32,
    /// Anchors that a row of party 1 stands in, at most.
    pub degree: u32,
}

impl SlotSizes {
    /// Sizes under the caps of a match.
    #[must_use]
    pub fn new(rows: [u64; 2], keys: [u64; 2], options: &MatchOptions) -> Self {
        Self { rows, keys, slots: options.slots, degree: options.degree }
    }

    /// Names of a row of a party.
    #[must_use]
    pub fn width(&self, party: usize) -> u64 {
        self.keys[party] * u64::from([self.slots, self.degree][party])
    }

    /// Names of all rows of a party.
    #[must_use]
    pub fn names(&self, party: usize) -> u64 {
        self.rows[party].saturating_mul(self.width(party))
    }

    /// Slots of all anchors.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.rows[0].saturating_mul(self.slots.into())
    }

    /// How many anchors' entries one changed row of party 0, and of party 1, can touch: a bound.
    ///
    /// A row of party 1 chooses at most `degree` anchors. A row that comes to an identifier may take the
    /// place of another row at it; where rows have one identifier those are the same anchors, otherwise the
    /// other row also chooses anew, once per identifier. An anchor changes what up to M rows per identifier
    /// choose from: each leaves one anchor and comes to another, or, with two lists, leaves all.
    #[must_use]
    pub fn reach(&self) -> [u64; 2] {
        let (slots, degree) = (u64::from(self.slots), u64::from(self.degree));
        let of_anchor = 1 + self.keys[0] * slots * degree.max(2);
        let of_row = if self.keys[1] == 1 { degree } else { degree * (1 + 2 * self.keys[1]) };
        [of_anchor, of_row]
    }
}

/// How many rows of so many names each travel together.
pub(super) fn message_rows(width: u64) -> u64 {
    (CHUNK / width).max(1)
}

/// Rows of a party whose names travel together.
pub(super) fn chunks(sizes: SlotSizes, party: usize) -> impl Iterator<Item = Range<u64>> {
    let (rows, step) = (sizes.rows[party], message_rows(sizes.width(party)));
    (0..rows.div_ceil(step)).map(move |i| i * step..rows.min((i + 1) * step))
}

/// The exact cost for sizes that are known.
#[must_use]
pub fn price(sizes: SlotSizes, options: &MatchOptions) -> Cost {
    let layouts = &options.layouts;
    let [a, b] = [PartyId(0), PartyId(1)];
    let mut bill = TransferBill::new(options.ot.unwrap_or_default());
    bill.say(a, COUNT_BYTES);
    bill.say(b, COUNT_BYTES);
    bill.hear(a);
    bill.hear(b);
    let messages = |party: usize| {
        let row = sizes.width(party) * ELEMENT_BYTES;
        chunks(sizes, party).map(move |rows| (rows.end - rows.start) * row)
    };
    let (mut of_a, mut of_b) = (messages(0), messages(1));
    loop {
        let sent = [(a, of_a.next()), (b, of_b.next())];
        if sent.iter().all(|(_, bytes)| bytes.is_none()) {
            break;
        }
        let sent = sent.into_iter().filter_map(|(party, bytes)| Some((party, bytes?)));
        sent.clone().for_each(|(party, bytes)| bill.say(party, bytes));
        sent.for_each(|(party, _)| bill.hear(party.other()));
    }
    for rows in chunks(sizes, 0) {
        bill.say(b, (rows.end - rows.start) * sizes.width(0) * TAG_BYTES);
        bill.hear(a);
    }
    let ([anchors, rows], entries) = (sizes.rows, sizes.entries());
    if anchors > 0 && rows > 0 {
        match options.backend {
            ShareBackend::PermuteShare => {
                bill.set_up(network::switches(anchors).max(extended::gates(rows, entries)));
                bill.permutation(a, anchors, layouts[0].row_bytes());
                bill.extension(b, rows, entries, layouts[1].row_bytes());
            }
            ShareBackend::Paillier => {
                paillier::bill(&mut bill, a, anchors, anchors, &layouts[0]);
                paillier::bill(&mut bill, b, rows, entries, &layouts[1]);
            }
        }
    }
    bill.cost()
}

/// Bytes that a party holds in memory whatever lies on disk, at its peak: orders, and a network that is
/// routed, with its settings. They may take half of the memory.
fn held(party: PartyId, sizes: SlotSizes) -> u64 {
    let ([anchors, rows], entries) = (sizes.rows, sizes.entries());
    let settings = |wires| network::switches(wires).div_ceil(8);
    let routed = |wires: u64| wires.saturating_mul(ROUTED_BYTES).saturating_add(settings(wires));
    // The own order and its inverse, while rows are numbered; then its inverse.
    let order = ORDER_BYTES * sizes.rows[party.index()];
    let (stays, moves) = match party {
        // Which slots are taken; then both networks of an extended permutation, one after the other, and the
        // copies between them.
        PartyId(0) => {
            let wires = rows.max(entries);
            let copies = entries.div_ceil(8);
            let last = settings(wires).saturating_add(routed(entries));
            (order + copies, routed(wires).max(last).saturating_add(copies))
        }
        // The order of anchors, and while it is applied its inverse.
        _ => (order + ORDER_BYTES * anchors, routed(anchors).max(ORDER_BYTES * anchors)),
    };
    stays.saturating_add(moves).max(2 * order)
}

/// Bytes of a place in an order.
const ORDER_BYTES: u64 = 4;
/// Bytes of a wire in the maps of a routing.
const ROUTED_BYTES: u64 = 16;

/// Bytes of memory without which a run cannot be: all that is not named here goes to disk.
#[must_use]
pub fn memory(party: PartyId, sizes: SlotSizes, options: &MatchOptions) -> u64 {
    let layouts = &options.layouts;
    let peer = party.other().index();
    let moving = match options.backend {
        ShareBackend::PermuteShare => 0,
        // Tables of rows and of shares, the map, and the peer's ciphertexts.
        ShareBackend::Paillier => {
            let rows = sizes.rows[1].max(sizes.entries()).max(sizes.rows[0]);
            let widest = layouts.iter().map(PayloadLayout::row_bytes).max().unwrap_or(0) as u64;
            rows * (3 * widest + ORDER_BYTES) + paillier::memory(sizes.rows[peer], &layouts[peer])
        }
    };
    MEMORY_MIN.max(held(party, sizes).saturating_mul(2).saturating_add(moving))
}

/// What a party takes on disk, where every name is one of both: then there are most edges.
pub(super) fn disk(me: PartyId, sizes: SlotSizes, options: &MatchOptions) -> MatchDisk {
    let mine = me.index();
    let [names, theirs] = [sizes.names(mine), sizes.names(1 - mine)];
    let (rows, cells) = (sizes.rows[mine], sizes.rows[mine] * sizes.keys[mine]);
    let mut disk = DiskSchedule::default();
    let pass_on = |disk: &mut DiskSchedule, from: u64, into: u64| {
        disk.read(from);
        disk.write(into);
        disk.drop(from);
    };
    // Rows number themselves; numbers and names lie in the order in which they are sent.
    let entries = ENTRY_BYTES as u64 * cells;
    let sent = [NUMBER_BYTES as u64 * cells, rows * (2 * ORDER_BYTES) + cells * (NAME_BYTES - ORDER_BYTES)];
    disk.write(entries);
    pass_on(&mut disk, entries, sent[0]);
    disk.write(sent[1]);
    pass_on(&mut disk, sent[0] + sent[1], PLACED_BYTES as u64 * theirs);
    let columns = [names, theirs].map(|names| PLACED_BYTES as u64 * names);
    let edges = EDGE_BYTES as u64 * sizes.names(0).min(sizes.names(1));
    let map = if mine == 0 { MAP_BYTES * sizes.entries() } else { 0 };
    if mine == 0 {
        // Own names under both keys; pairs, by row of the other party, and by anchor.
        disk.write(columns[0]);
        disk.read(columns[0] + columns[1]);
        disk.write(edges);
        pass_on(&mut disk, edges, edges);
        disk.drop(columns[0] + columns[1]);
        disk.read(edges);
        disk.write(edges);
        pass_on(&mut disk, edges, map);
        disk.drop(edges);
    } else {
        pass_on(&mut disk, columns[1], columns[1]);
        disk.read(columns[1]);
        disk.drop(columns[1]);
    }
    moves::disk(me, (sizes.rows, [sizes.rows[0], sizes.entries()]), true, options, &mut disk);
    disk.drop(map);
    let longest = entries.max(columns[0]).max(columns[1]).max(edges);
    disk.disk(spill::rows_of(longest))
}

//! What the protocol costs, from the schedule that the driver itself follows.

use crate::chunks::{CHUNK, chunk};
use crate::dummies::TERMS_BYTES;
use crate::group::ELEMENT_BYTES;
use crate::identifiers;
use crate::matcher::{MatchDisk, MatchSizes};
use crate::meter::LinkMeter;
use crate::placed::NAME_BYTES;
use crate::places::PLACE_BYTES;
use crate::spill;
use crate::tags::{PLACED_BYTES, TAG_BYTES};
use base::Cost;
use std::ops::Range;

/// Rows of the union after which a party shows the others that it is still at work.
pub(super) const PULSE: u64 = 16 * CHUNK;

/// Bytes of the first message: rows, and how sizes are hidden.
pub(super) const COUNT_BYTES: u64 = 8 + TERMS_BYTES;

/// Bytes of the size of the union, and of a digest of the spine.
pub(super) const UNION_BYTES: u64 = 8;
pub(super) const RECEIPT_BYTES: u64 = 32;

/// Pulses of a party that multiplies the union.
pub(super) fn pulses(union: u64) -> u64 {
    union.div_ceil(PULSE)
}

/// Which list a party holds before round `round` of the ring, from 1: its own, then those of the parties
/// before it.
pub(super) fn held(party: usize, round: usize, parties: usize) -> usize {
    (party + parties + 1 - round) % parties
}

/// Elements of each row that travel in a round: `u`; then `e` and `v`; at last `v` alone, to its owner.
pub(super) fn width(round: usize, parties: usize) -> u64 {
    if round == 1 || round == parties { 1 } else { 2 }
}

/// The messages of party `me` in order, with a meter per peer.
fn meters(sizes: &MatchSizes, me: usize) -> Vec<LinkMeter> {
    let n = sizes.rows.len();
    let mut m: Vec<LinkMeter> = (0..n).map(|_| LinkMeter::default()).collect();
    let peers = || (0..n).filter(move |&peer| peer != me);
    let [next, prev] = [(me + 1) % n, (me + n - 1) % n];
    peers().for_each(|peer| m[peer].send(COUNT_BYTES));
    peers().for_each(|peer| m[peer].recv(COUNT_BYTES));
    for round in 1..=n {
        let [out, into] = [me, prev].map(|party| sizes.rows[held(party, round, n)]);
        for i in 0..out.max(into).div_ceil(CHUNK) {
            let bytes = |rows: Range<u64>| (rows.end - rows.start) * ELEMENT_BYTES * width(round, n);
            m[next].send(bytes(chunk(out, i)));
            m[prev].recv(bytes(chunk(into, i)));
        }
    }
    let column = |of: usize| sizes.rows[held(of, n, n)] * ELEMENT_BYTES;
    if me == 0 {
        peers().for_each(|peer| m[peer].recv(column(peer)));
        peers().for_each(|peer| m[peer].send(UNION_BYTES));
    } else {
        m[0].send(column(me));
        m[0].recv(UNION_BYTES);
    }
    for at_work in 0..n {
        if at_work == me {
            for _ in 0..pulses(sizes.union) {
                if me > 0 {
                    m[me - 1].recv(1);
                }
                peers().for_each(|peer| m[peer].send(1));
            }
            if me + 1 < n {
                m[me + 1].send(sizes.union * ELEMENT_BYTES);
            }
        } else {
            m[at_work].recv(pulses(sizes.union));
        }
    }
    let spine = sizes.union * TAG_BYTES;
    if me == n - 1 {
        peers().for_each(|peer| m[peer].send(spine));
        peers().for_each(|peer| m[peer].recv(RECEIPT_BYTES));
    } else {
        m[n - 1].recv(spine);
        m[n - 1].send(RECEIPT_BYTES);
    }
    m
}

/// The exact cost for sizes that are known.
///
/// # Panics
/// With fewer than two parties.
#[must_use]
pub fn price(sizes: &MatchSizes) -> Cost {
    let n = sizes.rows.len();
    assert!(n >= 2, "a match has parties");
    let of: Vec<Vec<LinkMeter>> = (0..n).map(|me| meters(sizes, me)).collect();
    let turns = |m: &Vec<LinkMeter>| m.iter().map(|meter| meter.turns).sum();
    let sent = |m: &Vec<LinkMeter>| m.iter().map(|meter| meter.sent).sum();
    Cost {
        rounds: of.iter().map(turns).max().unwrap_or(0),
        sent: of.iter().map(sent).collect(),
        ..Cost::zero(n)
    }
}

/// Multiplications of the group by one party, those of hashed names included.
#[must_use]
pub fn multiplications(sizes: &MatchSizes, party: usize) -> u64 {
    let n = sizes.rows.len();
    let before = sizes.rows[(party + n - 1) % n];
    let others: u64 = sizes.rows.iter().sum::<u64>() - sizes.rows[party];
    // Of every other list e and v; v takes two, the first of which is also e's where the list is still u.
    2 * sizes.rows[party] + 3 * others - before + sizes.union
}

/// Bytes of an own row that are in memory whatever lies on disk: its places in the order of u and back, while
/// names are dealt. They may take half of the memory.
const HELD_BYTES: u64 = 4 + 4;
/// [`HELD_BYTES`] as a part of the memory that a run needs.
pub(super) const NEEDED_BYTES: u64 = 2 * HELD_BYTES;

/// Bytes of memory without which a party's run cannot be: all that is not named here goes to disk.
#[must_use]
pub fn memory(rows: &[u64], party: usize) -> u64 {
    // Party 0 sorts the sets of all, the others lists and the union.
    (NEEDED_BYTES * rows[party]).max(spill::least_room(rows.iter().sum()))
}

/// Bytes of an element with who has it, and of a tag with its row.
const MEMBER: u64 = ELEMENT_BYTES + 2;
const PLACED: u64 = PLACED_BYTES as u64;

/// What a party's columns take outside memory, where all rows are apart. What is sorted is there twice: as it
/// came, and in its order.
pub(super) fn disk(rows: &[u64], party: usize) -> MatchDisk {
    let (own, all) = (rows[party], rows.iter().sum::<u64>());
    let longest = rows.iter().copied().max().unwrap_or(0);
    // Names and the order of u; then of each other list e and v.
    let (names, list) = ((NAME_BYTES + 4) * own, 3 * ELEMENT_BYTES);
    let sets = if party == 0 { 2 * MEMBER * all } else { 0 };
    let turn = if party + 1 < rows.len() { 2 * ELEMENT_BYTES } else { 2 * TAG_BYTES } * all;
    // While one list leaves another one comes.
    let ring = names + (2 * ELEMENT_BYTES + list) * longest;
    let last = PLACED * own + (sets / 2 + turn).max(sets);
    let places = PLACE_BYTES * own;
    let read = (identifiers::TAG_BYTES + PLACED) * own + names + list * (all - own) + sets + turn;
    let at_most = ring.max(last) + places;
    MatchDisk { written: read + places, read, at_most, stays: places, longest: all }
}

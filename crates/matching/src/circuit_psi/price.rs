//! What circuit-PSI costs, from the schedule that the driver itself follows.

use super::cuckoo::{CuckooBins, FUNCTIONS};
use super::okvs::{StoreShape, THIRD_MAX};
use super::{AHEAD, SALT_BYTES, equal, key_cipher};
use crate::disk::DiskSchedule;
use crate::dummies::TERMS_BYTES;
use crate::identifiers;
use crate::matcher::MatchDisk;
use crate::payload::PayloadLayout;
use crate::spill::{self, SpillDeal};
use base::{Cost, Error, PartyId, limits};
use kernels::{Aes128, Block};
use ot::{OtKind, vole};

/// Bytes of the first message but for the salt and the terms of dummies, and of the number of the attempt.
const COUNT_BYTES: u64 = 8;
const SHAPE_BYTES: u64 = 32;
const ATTEMPT_BYTES: u64 = 1;

/// The tables of a piece.
#[derive(Clone, Copy)]
pub(super) struct PieceShapes {
    /// The receiver's, of keys.
    pub keys: StoreShape,
    /// The sender's, of tags and payload.
    pub values: StoreShape,
    /// Bytes of a tag.
    pub tag: usize,
    /// Bytes of a value: tag and payload.
    pub width: usize,
}

impl PieceShapes {
    pub fn new(bins: &CuckooBins, layout: &PayloadLayout) -> Self {
        let tag = equal::tag_bits(bins.all()).div_ceil(8);
        let keys = StoreShape::new(bins.piece_bins(), bins.piece_bins());
        let values = StoreShape::new(bins.usual(), bins.most());
        Self { keys, values, tag, width: tag + layout.row_bytes() }
    }

    /// Refuses tables that the hash of a key does not serve: of very many rows of the sender for few of the
    /// receiver.
    pub fn check(&self) -> Result<(), Error> {
        match self.keys.third().max(self.values.third()) {
            ..=THIRD_MAX => Ok(()),
            third => Err(Error::limit(
                "okvs::THIRD_MAX, a third of a table; party 1 has too many rows for the few of party 0",
                third,
                THIRD_MAX,
            )),
        }
    }

    /// Entries of all stores of the receiver.
    pub fn elements(&self, bins: &CuckooBins) -> u64 {
        bins.pieces() * self.keys.entries() as u64
    }

    /// Bytes of the receiver's message for a piece.
    pub fn key_bytes(&self) -> usize {
        self.keys.entries() * Block::BYTES
    }

    /// Bytes of the sender's.
    pub fn value_bytes(&self) -> usize {
        self.values.entries() * self.width
    }

    /// What places the keys of table 0 (keys) and 1 (values).
    pub fn cipher(&self, seed: &[u8; 32], table: u64) -> Aes128 {
        key_cipher(seed, "table", table)
    }
}

/// The exact cost for so many rows of the receiver (party 0) and the sender, dummies included, over full
/// windows.
#[must_use]
pub fn price(rows: [u64; 2], layout: &PayloadLayout, ot: OtKind) -> Cost {
    let bins = CuckooBins::new(rows);
    let shapes = PieceShapes::new(&bins, layout);
    let pieces = bins.pieces();
    let terms = COUNT_BYTES + TERMS_BYTES + SHAPE_BYTES + SALT_BYTES as u64;
    let vole = vole::price(ot, shapes.elements(&bins));
    let mut cost = Cost { sent: vec![terms + ATTEMPT_BYTES, terms], ..Cost::zero(2) };
    cost += &vole.price().cost(PartyId(1), PartyId(0), 2);
    cost.sent[0] += pieces * shapes.key_bytes() as u64;
    cost.sent[1] += pieces * shapes.value_bytes() as u64;
    let equal = equal::price(ot, bins.all()).total();
    cost += &equal;
    // Both wait for the count. The receiver spoke before the first OTs, the sender before tags are compared.
    let ([sender, receiver], spoke) = vole.turns();
    let ahead = (limits::WINDOW_BYTES / 2 / shapes.key_bytes()).min(AHEAD) as u64;
    let receiver = 1 + 1 + receiver + 1 + (pieces - 1).saturating_sub(ahead);
    let sender = 1 + sender + u64::from(spoke) + (pieces - 1) + 1;
    Cost { rounds: receiver.max(sender) + equal.rounds, ..cost }
}

/// Bytes of the back ends: of OTs and of the VOLE, or of the comparison after them.
const BACK_ENDS: u64 = 96 << 20;
/// Bytes of a row of the receiver while rows are laid into bins: its places, and row and label of 1.32 bins.
pub(super) const HELD_PER_ROW: u64 = 23;

/// Bytes of memory that are taken whatever lies on disk.
pub(super) fn held(rows: [u64; 2], layout: &PayloadLayout, party: PartyId) -> u64 {
    let bins = CuckooBins::new(rows);
    let shapes = PieceShapes::new(&bins, layout);
    // Tables of a piece with their copies.
    let pieces = 4 * (shapes.value_bytes() + shapes.key_bytes()) as u64;
    // Shares of the bits that are the outcome; at the receiver, while rows are laid, places and labels.
    let bits = bins.all().div_ceil(8);
    let laying = if party == PartyId(0) { rows[0] * 12 + bins.all() * 8 } else { 0 };
    BACK_ENDS + pieces + bits + laying
}

/// Bytes of memory without which a party cannot be: all that is not named here goes to disk.
#[must_use]
pub fn memory(rows: [u64; 2], layout: &PayloadLayout, party: PartyId) -> u64 {
    let own = rows[party.index()];
    let room = SpillDeal::least_room(CuckooBins::new(rows).pieces()).max(spill::least_room(own));
    held(rows, layout, party) + room
}

/// What a party takes on disk, whatever matches, with the receiver's values along the bins. Hash functions
/// are taken to serve at the first attempt.
pub(super) fn disk(rows: [u64; 2], layouts: &[PayloadLayout; 2], party: PartyId) -> MatchDisk {
    let [clear, shared] = layouts.each_ref().map(|layout| layout.row_bytes() as u64);
    let (bins, block, own) = (CuckooBins::new(rows), Block::BYTES as u64, rows[party.index()]);
    let shapes = PieceShapes::new(&bins, &layouts[1]);
    let receives = party == PartyId(0);
    let mut disk = DiskSchedule::default();
    disk.pass_through(identifiers::TAG_BYTES * own);
    // What is dealt to pieces.
    let dealt = if receives { block * own } else { FUNCTIONS as u64 * own * (block + shared) };
    if receives {
        // In the order of rows, to be laid and to be dealt.
        disk.write(dealt);
        disk.read(2 * dealt);
    }
    disk.write(dealt);
    if receives {
        disk.drop(dealt);
    }
    let vole = shapes.elements(&bins) * block * if receives { 2 } else { 1 };
    disk.write(vole);
    disk.read(dealt + vole);
    let [tags, shares] = [shapes.tag as u64, shared].map(|bytes| bytes * bins.all());
    disk.write(tags + shares);
    // Tags are compared while what is dealt is still there.
    disk.drop(vole);
    disk.read(tags);
    disk.drop(tags + dealt);
    if receives {
        let own_values = own * (size_of::<u32>() as u64 + clear);
        disk.write(own_values);
        disk.read(own_values);
        disk.write(bins.all() * clear);
        disk.drop(own_values);
    }
    disk.disk(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_no_hash_serves_are_refused() {
        let check = |rows| PieceShapes::new(&CuckooBins::new(rows), &PayloadLayout::new([]).unwrap()).check();
        for rows in [[1, 1], [10, 400_000_000], [1_000_000_000, 1_000_000_000]] {
            check(rows).unwrap();
        }
        assert!(
            check([10, 1_000_000_000])
                .unwrap_err()
                .to_string()
                .contains("too many rows for the few of party 0")
        );
    }
}

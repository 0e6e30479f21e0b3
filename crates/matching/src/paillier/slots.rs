//! Rows of numbers in the plaintexts of ciphertexts, and the masks that turn them into shares.
//!
//! A number modulo `2^w` has a slot of `w + SIGMA + 1` bits: its mask is uniform below `2^(w + SIGMA)`, and
//! the sum does not reach the next slot. Modulo `2^w` the masked number is one share and the mask, negated,
//! the other. A word of `k` bits that is shared by exclusive or is `k` numbers modulo 2.

use super::key::{LIMBS, PLAINTEXT_BITS, Plaintext};
use crate::payload::{PayloadLayout, ShareRing};
use base::Rng;
use zeroize::Zeroize;

/// A masked number is within `2^-SIGMA` of one that says nothing, in statistical distance: `2^24` numbers
/// together are within `2^-40`.
pub const SIGMA: u32 = 64;

/// Where a number lies in a row and in a plaintext, in bits.
#[derive(Clone, Copy)]
struct Slot {
    row: u32,
    bits: u32,
    at: u32,
}

/// How the rows of a layout are cut into plaintexts.
pub struct SlotPlan {
    /// The slots of each plaintext of a row.
    pieces: Vec<Vec<Slot>>,
    /// Bits that the only plaintext of a row takes, where there is only one.
    width: u32,
}

impl SlotPlan {
    /// The plan for rows of this layout.
    #[must_use]
    pub fn new(layout: &PayloadLayout) -> Self {
        let (mut pieces, mut piece, mut end) = (Vec::new(), Vec::new(), 0);
        for (row, bits) in numbers(layout) {
            let room = bits + SIGMA + 1;
            if end + room > PLAINTEXT_BITS {
                pieces.push(std::mem::take(&mut piece));
                end = 0;
            }
            piece.push(Slot { row, bits, at: end });
            end += room;
        }
        if !piece.is_empty() {
            pieces.push(piece);
        }
        Self { pieces, width: end }
    }

    /// Ciphertexts of a row.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Rows whose masked values share a ciphertext on the way back: as many as fit when a row needs only one.
    #[must_use]
    pub fn lanes(&self) -> usize {
        match self.pieces.len() {
            1 => (PLAINTEXT_BITS / self.width) as usize,
            _ => 1,
        }
    }

    /// Bits from one row of an answer to the next.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Ciphertexts that answer for so many rows.
    #[must_use]
    pub fn answers(&self, rows: u64) -> u64 {
        rows.div_ceil(self.lanes() as u64) * self.pieces() as u64
    }

    /// One plaintext of a row.
    #[must_use]
    pub fn pack(&self, piece: usize, row: &[u8]) -> Plaintext {
        let mut limbs = [0; LIMBS];
        for slot in &self.pieces[piece] {
            let [low, high] = halves(read_bits(row, slot));
            put(&mut limbs, slot.at, [low, high, 0]);
        }
        Plaintext::from_limbs(limbs)
    }

    /// Fresh masks for one plaintext of `rows.len()` rows, at most [`SlotPlan::lanes`]. Leaves the masks'
    /// shares in the rows.
    pub fn mask(&self, piece: usize, rng: &mut Rng, rows: &mut [&mut [u8]]) -> Plaintext {
        let mut limbs = [0; LIMBS];
        for (row, offset) in rows.iter_mut().zip((0..).step_by(self.width as usize)) {
            for slot in &self.pieces[piece] {
                let mut mask = uniform(rng, slot.bits + SIGMA);
                put(&mut limbs, offset + slot.at, mask);
                write_bits(row, slot, number(&mask).wrapping_neg());
                mask.zeroize();
            }
        }
        Plaintext::from_limbs(limbs)
    }

    /// The shares in one plaintext of an answer for `rows.len()` rows.
    pub fn unpack(&self, piece: usize, plaintext: &Plaintext, rows: &mut [&mut [u8]]) {
        for (row, offset) in rows.iter_mut().zip((0..).step_by(self.width as usize)) {
            for slot in &self.pieces[piece] {
                write_bits(row, slot, take(plaintext.limbs(), offset + slot.at));
            }
        }
    }
}

/// The numbers of a row: at which bit each begins, and how many it has.
fn numbers(layout: &PayloadLayout) -> impl Iterator<Item = (u32, u32)> {
    layout.fields().iter().enumerate().flat_map(|(i, field)| {
        let (start, bits) = (8 * layout.range(i).start as u32, 8 * u32::from(field.bytes));
        let bits_each = if field.ring == ShareRing::Xor { 1 } else { bits };
        (start..start + bits).step_by(bits_each as usize).map(move |row| (row, bits_each))
    })
}

/// A uniform number of so many bits, at most 192.
fn uniform(rng: &mut Rng, bits: u32) -> [u64; 3] {
    let random: [u8; 24] = rng.bytes();
    std::array::from_fn(|i| {
        let limb = u64::from_le_bytes(*random[8 * i..].first_chunk().expect("24 bytes are three limbs"));
        let kept = bits.saturating_sub(64 * i as u32).min(64);
        if kept == 0 { 0 } else { limb >> (64 - kept) }
    })
}

fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// The low bits of a number in limbs.
fn number(limbs: &[u64]) -> u128 {
    u128::from(limbs[0]) | u128::from(limbs[1]) << 64
}

/// Adds a number to the empty bits from `at`.
fn put(limbs: &mut [u64; LIMBS], at: u32, value: [u64; 3]) {
    let (limb, shift) = (at as usize / 64, at % 64);
    for (i, word) in value.into_iter().enumerate() {
        let shifted = u128::from(word) << shift;
        for (place, part) in limbs[(limb + i).min(LIMBS)..].iter_mut().zip(halves(shifted)) {
            *place |= part;
        }
    }
}

/// 128 bits from `at`; those beyond the end are zero.
fn take(limbs: &[u64; LIMBS], at: u32) -> u128 {
    let (limb, shift) = (at as usize / 64, at % 64);
    let word = |i: usize| limbs.get(limb + i).copied().unwrap_or(0);
    let low = number(&[word(0), word(1)]) >> shift;
    if shift == 0 { low } else { low | u128::from(word(2)) << (128 - shift) }
}

fn read_bits(row: &[u8], slot: &Slot) -> u128 {
    let start = slot.row as usize / 8;
    if slot.bits == 1 {
        return u128::from(row[start] >> (slot.row % 8) & 1);
    }
    let mut word = [0; 16];
    let bytes = slot.bits as usize / 8;
    word[..bytes].copy_from_slice(&row[start..start + bytes]);
    u128::from_le_bytes(word)
}

/// Writes the low bits of `value`; a single bit into a place that is still zero.
fn write_bits(row: &mut [u8], slot: &Slot, value: u128) {
    let start = slot.row as usize / 8;
    if slot.bits == 1 {
        row[start] |= ((value & 1) as u8) << (slot.row % 8);
        return;
    }
    let bytes = slot.bits as usize / 8;
    row[start..start + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;

//! Steps of the oblivious PRF and of the programmable one, without a network.
//!
//! A key is 126 bits of the hash of a name, and in its two lowest bits which hash function put it into a bin.
//! The PRF (Rindal and Schoppmann, Eurocrypt 2021; Raghuraman and Rindal, ePrint 2022/320) is
//! `F(y) = H(decode(K, y) + Delta y, y)`, where the sender has `K = B + Delta (A + P)` and the receiver
//! `C = A Delta + B`, and P is the receiver's key-value store with `decode(P, x) = x`: the receiver has
//! `F(x) = H(decode(C, x), x)` for its own keys. For any other key `decode(P, y)` and y differ, except with
//! probability 2^-126, and what is hashed has Delta in it.

use crate::identifiers::IdentifierSource;
use crate::payload::{PayloadLayout, ShareRing};
use base::Error;
use kernels::{Block, gf_add_multiples, xor_bytes};
use std::ops::Range;

/// The keys of rows, hash function 0: names hashed under the run's seed.
pub struct NameKeys<'a> {
    names: &'a dyn IdentifierSource,
    /// Names and pads are hashed under keys of their own: an identifier may be any bytes, those of a pad's
    /// message too.
    key: [u8; 32],
}

impl<'a> NameKeys<'a> {
    /// Of these rows.
    pub fn new(names: &'a dyn IdentifierSource, seed: &[u8; 32]) -> Self {
        Self { names, key: blake3::derive_key("tacit circuit-psi names of rows 1", seed) }
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.names.rows()
    }

    /// Appends the keys of these rows.
    pub fn read(&self, rows: Range<u64>, keys: &mut Vec<Block>) -> Result<(), Error> {
        let mut name = Vec::new();
        for row in rows.start as u32..rows.end as u32 {
            self.names.read(row, 0, &mut name)?;
            self.names.domain(row).mark(&mut name);
            let digest = blake3::keyed_hash(&self.key, &name);
            let first = digest.as_bytes().first_chunk().expect("a digest has 32 bytes");
            keys.push(whole(Block::from_bytes(*first)));
        }
        Ok(())
    }
}

/// A key for hash function 0 from any block.
pub fn whole(block: Block) -> Block {
    Block(block.0 & !3)
}

/// The key of a row in its bin of hash function `function`.
pub fn with_function(key: Block, function: usize) -> Block {
    Block(key.0 | function as u128)
}

/// The function of a key that was made by [`with_function`].
pub fn function(key: Block) -> usize {
    (key.0 & 3) as usize
}

/// Makes of `decoded` what the sender hashes: adds `Delta y` for each key y.
pub fn lift(delta: Block, keys: &[Block], decoded: &mut [Block]) {
    gf_add_multiples(delta, keys, decoded);
}

/// Adds `H(x, y)` to `into`, `width` bytes per key, under the run's secret-free key `seed`.
pub fn add_pads(seed: &[u8; 32], inputs: &[Block], keys: &[Block], width: usize, into: &mut [u8]) {
    let mut pad = vec![0; width];
    let own = blake3::derive_key("tacit circuit-psi pads 1", seed);
    for ((input, key), into) in inputs.iter().zip(keys).zip(into.chunks_exact_mut(width)) {
        let mut message = [0; 2 * Block::BYTES];
        message[..Block::BYTES].copy_from_slice(&input.to_bytes());
        message[Block::BYTES..].copy_from_slice(&key.to_bytes());
        blake3::Hasher::new_keyed(&own).update(&message).finalize_xof().fill(&mut pad);
        xor_bytes(into, &pad);
    }
}

/// What a bin's mask leaves of a row: the receiver's share of it. The mask is the sender's share.
pub fn mask_row(layout: &PayloadLayout, row: &[u8], mask: &[u8], out: &mut [u8]) {
    for (index, field) in layout.fields().iter().enumerate() {
        let range = layout.range(index);
        let (row, mask, out) = (&row[range.clone()], &mask[range.clone()], &mut out[range]);
        match (field.ring, <&[u8; 8]>::try_from(row), <&[u8; 8]>::try_from(mask)) {
            (ShareRing::Xor, ..) => {
                out.iter_mut().zip(row.iter().zip(mask)).for_each(|(out, (row, mask))| *out = row ^ mask);
            }
            (ShareRing::Add, Ok(row), Ok(mask)) => {
                let share = u64::from_le_bytes(*row).wrapping_sub(u64::from_le_bytes(*mask));
                out.copy_from_slice(&share.to_le_bytes());
            }
            (ShareRing::Add, ..) => subtract(row, mask, out),
        }
    }
}

/// `row - mask` modulo 256 to the number of bytes.
fn subtract(row: &[u8], mask: &[u8], out: &mut [u8]) {
    let mut borrow = 0;
    for (out, (row, mask)) in out.iter_mut().zip(row.iter().zip(mask)) {
        let digit = i16::from(*row) - i16::from(*mask) - borrow;
        *out = digit as u8;
        borrow = digit >> 8 & 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{PayloadTable, TableField};
    use base::Seed;

    #[test]
    fn shares_of_a_row_join_to_it() {
        let fields = [
            TableField::bits(9),
            TableField::number(5),
            TableField::number(16),
            TableField::bits(1),
            TableField::number(1),
        ];
        let layout = PayloadLayout::new(fields).unwrap();
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        let [mut row, mut mine, mut theirs] =
            [(); 3].map(|()| PayloadTable::zeros(layout.clone(), 1).unwrap());
        for _ in 0..50 {
            for table in [&mut row, &mut mine] {
                let random = super::super::random_bytes(&mut rng, layout.row_bytes());
                table.bytes_mut().copy_from_slice(&random);
            }
            mask_row(&layout, row.row(0), mine.row(0), theirs.row_mut(0));
            for (i, field) in layout.fields().iter().enumerate() {
                assert_eq!(field.join(mine.get(0, i), theirs.get(0, i)), row.get(0, i));
            }
        }
    }

    #[test]
    fn pads_differ_by_every_part_and_by_seed() {
        let pad = |seed: u8, input: u128, key: u128, width: usize| {
            let mut pad = vec![0; width];
            add_pads(&[seed; 32], &[Block(input)], &[Block(key)], width, &mut pad);
            pad
        };
        let pads = [pad(1, 2, 3, 100), pad(2, 2, 3, 100), pad(1, 3, 3, 100), pad(1, 2, 2, 100)];
        assert!(
            (0..4).all(|i| (0..i).all(|j| pads[i][..64] != pads[j][..64] && pads[i][64..] != pads[j][64..]))
        );
        assert_eq!(pad(1, 2, 3, 10), pads[0][..10]);
    }
}

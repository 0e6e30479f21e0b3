//! The public code of LPN: every row is the sum of [`LOCALITY`] entries of the secret.
//!
//! Row i takes the entries at the indices that counter-mode AES under a public key gives, 32 bits each, cut to
//! log2(k) bits: uniform, since k is a power of two. Both sides compute the same rows. The indices are public, so
//! memory is addressed by them freely; only the entries are secret.

use kernels::{Aes128, Block};

/// Entries of the secret in every row.
pub const LOCALITY: usize = 10;
/// Rows whose indices are made at once.
const BATCH: usize = 64;
/// Blocks of indices of a batch of rows.
const INDEX_BLOCKS: usize = BATCH * LOCALITY * 4 / Block::BYTES;

/// The code of one extension.
pub struct Code(Aes128);

impl Code {
    /// The code of extension `number` in a session with this public start value.
    #[must_use]
    pub fn new(start: Block, number: u64) -> Self {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026 silent OT code");
        hash.update(&start.to_bytes()).update(&number.to_le_bytes());
        let mut key = [0; 16];
        hash.finalize_xof().fill(&mut key);
        Self(Aes128::new(Block::from_bytes(key)))
    }

    /// Rows `first ..`: clears bit 0 of each and adds its entries of `secret`.
    ///
    /// # Panics
    /// When `first` or the number of rows is no multiple of 64, or the secret has another size than those of
    /// [`super::SMALL`] and [`super::LARGE`].
    pub fn add(&self, first: usize, secret: &[Block], rows: &mut [Block]) {
        assert!(first.is_multiple_of(BATCH) && rows.len().is_multiple_of(BATCH), "whole batches of rows");
        const S: usize = super::SMALL.k();
        const L: usize = super::LARGE.k();
        match secret.len() {
            S => self.add_rows::<S>(first, secret.try_into().expect("of this length"), rows),
            L => self.add_rows::<L>(first, secret.try_into().expect("of this length"), rows),
            other => panic!("no parameter set has a secret of {other} entries"),
        }
    }

    /// A size known to the compiler needs no check of the indices.
    fn add_rows<const K: usize>(&self, first: usize, secret: &[Block; K], rows: &mut [Block]) {
        let mut indices = [Block::ZERO; INDEX_BLOCKS];
        for (batch, rows) in (first / BATCH..).zip(rows.chunks_exact_mut(BATCH)) {
            self.0.ctr((batch * INDEX_BLOCKS) as u64, &mut indices);
            let indices = Block::bytes_of(&indices).chunks_exact(4 * LOCALITY);
            for (row, indices) in rows.iter_mut().zip(indices) {
                let mut sum = row.0 & !1;
                for index in indices.chunks_exact(4) {
                    let index = u32::from_le_bytes([index[0], index[1], index[2], index[3]]) as usize;
                    sum ^= secret[index % K].0;
                }
                *row = Block(sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ferret::SMALL;

    #[test]
    fn rows_are_linear_and_follow_their_definition() {
        let code = Code::new(Block(7), 3);
        let secret: Vec<Block> = (0..SMALL.k() as u128).map(|i| Block(i << 64 | 1)).collect();
        let (first, n) = (128, 192);
        let mut rows = vec![Block(0xff); n];
        code.add(first, &secret, &mut rows);
        let mut indices = vec![Block::ZERO; INDEX_BLOCKS * (first + n) / BATCH];
        code.0.ctr(0, &mut indices);
        for i in 0..n {
            let entry = |j: usize| {
                let word = (first + i) * LOCALITY + j;
                secret[(indices[word / 4].0 >> (32 * (word % 4))) as usize % SMALL.k()].0
            };
            let sum = (0..LOCALITY).fold(0xfe, |sum, j| sum ^ entry(j));
            assert!(rows[i] == Block(sum), "row {i}");
        }
        // In two parts the same.
        let mut again = vec![Block(0xff); n];
        code.add(first, &secret, &mut again[..64]);
        code.add(first + 64, &secret, &mut again[64..]);
        assert!(again == rows);
        // Another extension has another code.
        let mut other = vec![Block(0xff); n];
        Code::new(Block(7), 4).add(first, &secret, &mut other);
        assert!(other != rows);
    }
}

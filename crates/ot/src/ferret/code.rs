//! The public code of LPN: every row is the sum of [`kernels::LOCALITY`] entries of the secret.
//!
//! Row i takes the entries at the indices that counter-mode AES under a public key gives: uniform, since k is
//! a power of two. Both sides compute the same rows. The indices are public, so memory is addressed by them
//! freely; only the entries are secret.

use kernels::{Aes128, Block, add_local};

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
    /// As [`add_local`]: `first` and the number of rows are even, the secret a power of two.
    pub fn add(&self, first: usize, secret: &[Block], rows: &mut [Block]) {
        add_local(&self.0, first as u64, secret, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_parts_and_every_extension_has_its_own() {
        let secret: Vec<Block> = (1..=1024).map(|i| Block(i << 64 | 1)).collect();
        let rows = |code: &Code, parts: &[usize]| {
            let (mut rows, mut at) = (vec![Block(0xff); 512], 0);
            for &part in parts {
                code.add(at, &secret, &mut rows[at..at + part]);
                at += part;
            }
            rows
        };
        let code = Code::new(Block(7), 3);
        assert!(rows(&code, &[512]) == rows(&code, &[2, 256, 254]));
        assert!(rows(&code, &[512]) != rows(&Code::new(Block(7), 4), &[512]));
        assert!(rows(&code, &[512]) != rows(&Code::new(Block(8), 3), &[512]));
    }
}

//! A public local code: every row of the matrix has [`LOCALITY`] ones, at places that AES gives.

use crate::backend::by_backend;
use crate::{Aes128, Block};

/// Ones in every row.
pub const LOCALITY: usize = 10;
/// Rows whose indices are made at once: they stay in the first-level cache.
const ROWS: usize = 256;
/// Blocks of indices of two rows.
const PAIR: usize = 2 * LOCALITY * 4 / Block::BYTES;

/// Clears bit 0 of each row and adds to row i the [`LOCALITY`] entries of `secret` that row `first + i` of
/// the code of `cipher` takes.
///
/// The indices of a row are 32-bit words of the counter-mode stream, [`LOCALITY`] in order; a word w takes
/// entry `(w >> 4) mod k`, uniform because k is a power of two. Indices are public; time does not depend on
/// the entries.
///
/// # Panics
/// When `first` or the number of rows is odd, or the number k of entries is no power of two of at most 2^28.
pub fn add_local(cipher: &Aes128, first: u64, secret: &[Block], rows: &mut [Block]) {
    assert!(first.is_multiple_of(2) && rows.len().is_multiple_of(2), "whole pairs of rows");
    assert!(secret.len().is_power_of_two() && secret.len() <= 1 << 28, "a power of two of entries");
    let mut buffer = [Block::ZERO; ROWS / 2 * PAIR];
    let mut counter = first / 2 * PAIR as u64;
    for rows in rows.chunks_mut(ROWS) {
        let indices = &mut buffer[..rows.len() / 2 * PAIR];
        cipher.ctr(counter, indices);
        counter += indices.len() as u64;
        by_backend!(cipher.backend(), add_rows(indices, secret, rows))
    }
}

//! Bit-matrix transpose for OT extension: 128 long rows become 128-bit columns.

use crate::backend::by_backend;
use crate::{Block, InstructionSet, portable};

/// Transposes a matrix of 128 rows. `rows` is row-major, `out.len() / 128` blocks per row; bit r of
/// `out[j]` is bit j of row r.
///
/// # Panics
/// When the lengths differ or are not a multiple of 128.
pub fn transpose128(rows: &[Block], out: &mut [Block]) {
    dispatch(InstructionSet::detect(), rows, out);
}

/// [`transpose128`] on a given backend.
///
/// # Panics
/// As [`transpose128`], and when this machine does not have the backend.
pub fn transpose128_on(backend: InstructionSet, rows: &[Block], out: &mut [Block]) {
    dispatch(InstructionSet::checked(backend), rows, out);
}

fn dispatch(backend: InstructionSet, rows: &[Block], out: &mut [Block]) {
    assert_eq!(rows.len(), out.len(), "as many bits out as in");
    assert_eq!(rows.len() % 128, 0, "128 rows of whole blocks");
    by_backend!(backend, transpose128(rows, out), portable_transpose(rows, out))
}

/// Tile by tile in integer registers; inlined into wider code as well.
#[inline(always)]
pub(crate) fn portable_transpose(rows: &[Block], out: &mut [Block]) {
    let per_row = rows.len() / 128;
    for (column, out) in out.chunks_exact_mut(128).enumerate() {
        let halves = |b: Block| [b.0 as u64, (b.0 >> 64) as u64];
        let mut tile: [[u64; 2]; 128] = std::array::from_fn(|r| halves(rows[r * per_row + column]));
        portable::transpose_tile(&mut tile);
        out.iter_mut().zip(&tile).for_each(|(o, t)| *o = Block(u128::from(t[1]) << 64 | u128::from(t[0])));
    }
}

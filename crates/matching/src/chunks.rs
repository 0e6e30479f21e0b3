//! How columns are cut into messages.

use crate::group::ElementRefusal;
use base::Error;
use net::StepLink;
use std::ops::Range;

/// Rows, elements or places of a spine that travel in one message.
pub const CHUNK: u64 = 4096;

/// Chunk `i` of a column; empty beyond its end.
pub(crate) fn chunk(rows: u64, i: u64) -> Range<u64> {
    rows.min(i * CHUNK)..rows.min((i + 1) * CHUNK)
}

/// The chunks of a column, in order.
pub(crate) fn chunks(rows: u64) -> impl Iterator<Item = Range<u64>> {
    (0..rows.div_ceil(CHUNK)).map(move |i| chunk(rows, i))
}

/// Rows of a chunk.
pub(crate) fn len(rows: &Range<u64>) -> usize {
    (rows.end - rows.start) as usize
}

/// A peer sent what is no element.
pub(crate) fn refused(link: &StepLink<'_>, refusal: ElementRefusal) -> Error {
    link.malformed(refusal.text())
}

//! The bytes that must move: what MIN moves when every chunk that has memory serves the plan, for the part of
//! the trace between the program's marks. No paging of the same chunks at the same memory moves less.

use super::figures::PartyFigures;
use crate::trace::figures::{blocks, moves};
use base::Error;
use osprey::trace::TraceSource;
use std::ops::Range;
use std::path::Path;

/// Bytes that must be read and written for one party: by its trace, by the events of the program between its
/// marks, and by the memory that it ran with.
///
/// # Errors
/// When the trace cannot be read.
pub fn must_move(trace: &Path, events: Range<u64>, party: &PartyFigures) -> Result<u64, Error> {
    least(trace, events, party).map_err(Error::input)
}

fn least(trace: &Path, events: Range<u64>, party: &PartyFigures) -> Result<u64, String> {
    let (header, mut source) = TraceSource::inspect(trace)?;
    let (blocks, footer) = blocks(&mut source)?;
    let run = &party.report.run;
    // What has no frames of its own, by advice or by the system alone, has what the limit leaves for chunks.
    let left = party.report.memory.saturating_sub(footer.other_bytes);
    let held = if run.frames > 0 { run.frames * run.chunk } else { left };
    let capacity = ((held / header.chunk) as usize).max(2 * header.microset as usize);
    let moves = moves(&header, &blocks, capacity, events)?;
    Ok(moves.read + moves.written)
}

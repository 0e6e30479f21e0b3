//! The bytes that must move: what MIN moves when every chunk that has memory serves the plan, for the part of the trace
//! between the program's marks. No paging of the same chunks at the same memory moves less.

use super::figures::Party;
use crate::trace::figures::{blocks, moves};
use base::Error;
use osprey::trace::Source;
use std::path::Path;

/// Bytes that must be read and written for one party, by its trace and by the frames that it ran with.
///
/// # Errors
/// When the trace cannot be read.
pub fn must_move(trace: &Path, party: &Party) -> Result<u64, Error> {
    least(trace, party).map_err(Error::input)
}

fn least(trace: &Path, party: &Party) -> Result<u64, String> {
    let (header, mut source) = Source::inspect(trace)?;
    let (blocks, footer) = blocks(&mut source)?;
    let run = &party.report.run;
    // Engines that give advice have no frames of their own: what the limit leaves for chunks.
    let left = party.report.memory.saturating_sub(footer.other_bytes) / header.chunk;
    let frames = if run.frames > 0 { run.frames } else { left };
    let capacity = (frames as usize).max(2 * header.microset as usize);
    let event = |name: &str| run.marks.iter().find(|mark| mark.name == name).map(|mark| mark.events);
    let (start, stop) = (event("start").unwrap_or(0), event("stop").unwrap_or(u64::MAX));
    let moves = moves(&header, &blocks, capacity, start..stop)?;
    Ok(moves.read + moves.written)
}

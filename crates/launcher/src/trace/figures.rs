//! Figures of a trace.

use osprey::plan::{Planner, PlannerAnswer};
use osprey::trace::{Footer, Header, TraceBlock, TraceFeed, TraceSource};
use serde::Serialize;
use std::ops::Range;

/// Shares of the memory that plans are made for, in percent.
const SHARES: [u64; 4] = [10, 25, 50, 75];

/// What `osprey trace show` says.
#[derive(Debug, Serialize)]
pub struct TraceFigures {
    /// Bytes per chunk.
    pub chunk: u64,
    /// Bytes of address space of the region.
    pub region: u64,
    /// Entries per block.
    pub microset: u32,
    /// Hash of binary and arguments, hexadecimal.
    pub key: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Blocks.
    pub blocks: u64,
    /// Touches of chunks.
    pub entries: u64,
    /// Events that the program counts until its last block.
    pub events: u64,
    /// Bytes of the file per entry.
    pub bytes_per_entry: f64,
    /// Chunks that are touched at all, in bytes.
    pub touched_bytes: u64,
    /// Chunks that hold data at once, at most, in bytes.
    pub peak_bytes: u64,
    /// Bytes of memory outside the region, at most.
    pub other_bytes: u64,
    /// Share of the touches that write.
    pub written: f64,
    /// Share of the touches of chunks that held nothing.
    pub fresh: f64,
    /// Touches between two of the same chunk: the median and nine in ten; none when nothing is touched twice.
    pub reuse: Option<(u64, u64)>,
    /// The least that any plan moves.
    pub plans: Vec<PlanFigures>,
}

/// What MIN moves with a share of the memory.
#[derive(Debug, Serialize)]
pub struct PlanFigures {
    /// Percent of `peak_bytes`.
    pub percent: u64,
    /// Bytes of the region in memory.
    pub memory: u64,
    /// What is moved; none when two blocks of the trace do not fit.
    pub moves: Option<Moves>,
}

/// Bytes moved.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// Read back.
    pub read: u64,
    /// Written, because they were changed and are wanted again or may be.
    pub written: u64,
    /// Left without being written, because they are as on disk.
    pub clean: u64,
    /// Left without being written, because they are wanted no more.
    pub dead: u64,
}

/// All blocks of a trace.
///
/// # Errors
/// When the file changes while it is read.
pub fn blocks(source: &mut TraceSource) -> Result<(Vec<TraceBlock>, Footer), String> {
    let mut blocks = Vec::new();
    loop {
        match source.next()? {
            TraceFeed::Block(block) => blocks.push(block),
            TraceFeed::End(footer) => return Ok((blocks, footer)),
            TraceFeed::Wait => return Err("a trace file that makes one wait".into()),
        }
    }
}

impl TraceFigures {
    /// Computes all of them.
    ///
    /// # Errors
    /// None that a trace from [`blocks`] can cause.
    pub fn of(
        header: &Header,
        file_bytes: u64,
        blocks: &[TraceBlock],
        footer: &Footer,
    ) -> Result<Self, String> {
        let entries = || blocks.iter().flat_map(|block| &block.entries);
        let count = footer.entries.max(1) as f64;
        let (touched, gaps) = reuse(entries().map(|entry| entry.chunk));
        let at = |tenths: usize| gaps.get(gaps.len() * tenths / 10).copied();
        Ok(Self {
            chunk: header.chunk,
            region: header.region,
            microset: header.microset,
            key: format!("{:032x}", header.key),
            file_bytes,
            blocks: blocks.len() as u64,
            entries: footer.entries,
            events: blocks.last().map_or(0, |block| block.events),
            bytes_per_entry: file_bytes as f64 / count,
            touched_bytes: touched * header.chunk,
            peak_bytes: footer.peak_chunks * header.chunk,
            other_bytes: footer.other_bytes,
            written: entries().filter(|entry| entry.written).count() as f64 / count,
            fresh: entries().filter(|entry| entry.fresh).count() as f64 / count,
            reuse: at(5).zip(at(9)),
            plans: SHARES
                .iter()
                .map(|&percent| plan(header, blocks, footer.peak_chunks, percent))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// How many chunks there are, and the distances between touches of the same one, sorted.
fn reuse(chunks: impl Iterator<Item = u32>) -> (u64, Vec<u64>) {
    let mut last = std::collections::HashMap::new();
    let mut gaps: Vec<u64> =
        (0..).zip(chunks).filter_map(|(i, c)| last.insert(c, i).map(|l| i - l)).collect();
    gaps.sort_unstable();
    (last.len() as u64, gaps)
}

fn plan(header: &Header, blocks: &[TraceBlock], peak: u64, percent: u64) -> Result<PlanFigures, String> {
    let capacity = (peak * percent / 100) as usize;
    let fits = capacity >= 2 * header.microset as usize;
    let moves = fits.then(|| moves(header, blocks, capacity, 0..u64::MAX)).transpose()?;
    Ok(PlanFigures { percent, memory: capacity as u64 * header.chunk, moves })
}

/// What MIN moves with `capacity` resident chunks for the blocks that begin within a range of the program's
/// events.
///
/// # Errors
/// When two blocks do not fit.
pub fn moves(
    header: &Header,
    blocks: &[TraceBlock],
    capacity: usize,
    events: Range<u64>,
) -> Result<Moves, String> {
    let mut planner = Planner::new(capacity, header.microset as usize, 0)?;
    let (mut feed, mut moves) = (blocks.iter(), Moves::default());
    let chunk = header.chunk;
    loop {
        match planner.next() {
            PlannerAnswer::Wait => match feed.next() {
                Some(block) => planner.push(block.clone()),
                None => planner.finish(&Footer::default()),
            },
            PlannerAnswer::Done => return Ok(moves),
            PlannerAnswer::Step(step) if !events.contains(&blocks[step.fetch.block as usize].events) => {}
            PlannerAnswer::Step(step) => {
                moves.read += if step.fetch.fresh { 0 } else { chunk };
                for gone in step.evict {
                    *if gone.dead {
                        &mut moves.dead
                    } else if gone.clean {
                        &mut moves.clean
                    } else {
                        &mut moves.written
                    } += chunk;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use osprey::trace::TraceEntry;

    #[test]
    fn a_cycle_moves_what_min_must() {
        // 40 chunks round and round, 3 times, written in the first round only.
        let entry = |i: u32| TraceEntry { chunk: i % 40, written: i < 40, fresh: i < 40 };
        let blocks: Vec<TraceBlock> = (0..60)
            .map(|b| TraceBlock { entries: (2 * b..2 * b + 2).map(entry).collect(), ..TraceBlock::default() })
            .collect();
        let header = Header { chunk: 4096, region: 1 << 20, microset: 2, key: 0 };
        let footer = Footer { entries: 120, peak_chunks: 40, other_bytes: 5 };
        let figures = TraceFigures::of(&header, 240, &blocks, &footer).expect("figures");
        assert_eq!((figures.touched_bytes, figures.peak_bytes), (40 * 4096, 40 * 4096));
        assert_eq!(figures.reuse, Some((40, 40)));
        assert!((figures.bytes_per_entry - 2.0).abs() < 1e-9 && (figures.fresh - 1.0 / 3.0).abs() < 1e-9);
        let moves: Vec<_> = figures.plans.iter().map(|plan| plan.moves).collect();
        assert_eq!(figures.plans.iter().map(|plan| plan.percent).collect::<Vec<_>>(), SHARES);
        // A plan that holds more reads less; whatever leaves leaves changed at most once.
        let read: Vec<u64> = moves.iter().map(|moves| moves.expect("fits").read / 4096).collect();
        assert!(read.is_sorted_by(|more, less| more > less) && read[3] >= 2 * 10, "{read:?}");
        assert!(
            moves.iter().flatten().all(|moves| moves.written <= 40 * 4096 && moves.dead == 0),
            "{moves:?}"
        );
        let small =
            TraceFigures::of(&header, 240, &blocks, &Footer { peak_chunks: 20, ..footer }).expect("figures");
        assert_eq!(small.plans[0].moves, None);
    }
}

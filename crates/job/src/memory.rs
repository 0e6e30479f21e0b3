//! What a party's `memory` is divided among: the one place that says who may take how much of it.
//!
//! Stages come one after the other, so that each may have nearly all of it; what stays over them, the process
//! itself and lists that grow with the rows, is taken off first. Shares are such that a stage and what the
//! one before it has not given back to the system are within the bound together.

use crate::engines::{StudyEngine, usual_workers};
use crate::prepare::Built;
use crate::spool::spools;
use crate::stages::matching::MatchStage;
use base::{Error, Fault, PartyId};
use data::{ReadingMemory, RowShape, RowStore};
use matching::{MatchDisk, spill};
use store::RUN_MEMORY;
use study::Study;
use study::party::{MEMORY_LEAST, PartySetup};

/// Bytes that an identifier is taken to have before it is read.
pub(crate) const IDENTIFIER: u64 = 24;
/// Lines that a row of an advertiser is taken to have before they are read.
pub(crate) const LINES: u64 = 2;
/// Bytes of a process by itself: program, libraries, connections, ledger, threads.
const BASE: u64 = 64 << 20;
/// Bytes of a decoder of input: pages of Parquet or a window of zstd, and pieces of a bucket's objects.
const DECODER: u64 = 32 << 20;
/// Bytes for each own row that stay while it is matched: lists of blocks, offsets of runs.
const LISTS: u64 = 1;
/// Bytes of a worker: its process, its connection, oblivious transfers, windows.
const LANE: u64 = 56 << 20;
/// Bytes of a worker's part of the columns at least.
const PART: u64 = 1 << 20;
const MIB: u64 = 1 << 20;

/// Who may take how many bytes, of a party whose rows need not fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryShares {
    /// Reading and settling rows.
    pub reading: ReadingMemory,
    /// The match's columns.
    pub room: u64,
    /// Laying columns out along the spine, and reading them.
    pub laying: LayingMemory,
}

/// What laying out may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayingMemory {
    /// A writer of runs.
    pub runs: u64,
    /// Half for blocks of rows whose cells are dealt at a time, half for the writers of what is dealt.
    pub blocks: u64,
    /// The parts of all lanes together, aimed at.
    pub parts: u64,
    /// The same, at most.
    pub parts_most: u64,
}

impl MemoryShares {
    /// Shares of `memory` bytes, for so many own rows; 0 before they are known.
    ///
    /// Less than a party file can say is all for columns: a caller of this library that says it knows why.
    pub fn of(memory: u64, rows: u64) -> Self {
        let left = memory.saturating_sub(stays(memory, rows));
        Self {
            reading: ReadingMemory {
                // Held twice while they grow.
                lines: memory / 8,
                rows: u64::MAX,
                runs: (left / 4).max(RUN_MEMORY),
                readers: (left / 2 / (DECODER + RUN_MEMORY)).max(1) as usize,
                partition: (left / 32).clamp(1, 32 << 20),
                // As it was sealed, as lines, and as rows.
                partition_most: left / 4,
            },
            // Columns of four million rows fill it, and what more rows have goes to disk.
            room: (left / 2).max(spill::MEMORY_MIN),
            laying: LayingMemory {
                runs: (left / 8).max(RUN_MEMORY),
                blocks: left / 2,
                parts: left / 16,
                parts_most: left.max(RUN_MEMORY),
            },
        }
    }
}

/// The least `memory` in which a party can have its rows in its state, to the mebibyte: for so many own rows,
/// and so many in the longest column of the match; one worker computes then.
#[must_use]
pub fn least([own, longest]: [u64; 2]) -> u64 {
    // Lines take an eighth of it, twice.
    let reading = (BASE + DECODER + RUN_MEMORY).div_ceil(3) * 4;
    let stays = BASE + LISTS * own;
    let matching = stays + 2 * spill::least_room(longest);
    let laying = stays + 3 * RUN_MEMORY;
    let computing = stays + LANE + PART;
    reading.max(matching).max(laying).max(computing).div_ceil(MIB) * MIB
}

/// How many workers a party has of so many rows: what it says, or one for each core, and no more than its
/// memory holds, but one.
#[must_use]
pub fn workers(party: &PartySetup, rows: u64) -> u32 {
    let most = party.workers.count.map_or_else(usual_workers, u32::from);
    let fit = party.memory.saturating_sub(BASE + LISTS * rows) / (LANE + PART);
    most.min(u32::try_from(fit).unwrap_or(u32::MAX)).max(1)
}

/// What stays in `memory` over all stages, for so many own rows.
fn stays(memory: u64, rows: u64) -> u64 {
    if memory < MEMORY_LEAST { 0 } else { BASE + LISTS * rows }
}

/// What a party of `memory` needs in all for a match to have so much room, for so many own rows in state.
pub(crate) fn with_room(room: u64, rows: u64, memory: u64) -> u64 {
    stays(memory, rows).saturating_add(room.saturating_mul(2))
}

/// The most rows of a peer that a party of `memory` has columns for, with so many own rows in state.
pub(crate) fn peer_rows_max(memory: u64, own: u64) -> u64 {
    spill::most_rows(MemoryShares::of(memory, own).room).max(own)
}

/// What a party does about a peer of more rows than that; any other error as it is.
pub(crate) fn of_more_rows(error: Error, party: &PartySetup, rows: &RowStore) -> Error {
    let Fault::Limit { value, cap, .. } = *error.kind() else { return error };
    if rows.spool().is_none() || cap != peer_rows_max(party.memory, rows.len()) {
        return error;
    }
    let needs = with_room(spill::least_room(value), rows.len(), party.memory).div_ceil(MIB);
    error.leaving_too(&format!("This party's `memory` has no columns for so many rows: raise it to {needs}M"))
}

/// Refuses rows in state where even that is more than may be taken.
///
/// # Errors
/// With the numbers, and what to do.
pub(crate) fn check(party: &PartySetup, rows: [u64; 2]) -> Result<(), Error> {
    let (least, allowed) = (least(rows), party.memory);
    if allowed < MEMORY_LEAST || allowed >= least {
        return Ok(());
    }
    let of = if rows[0] == 0 { String::new() } else { format!("{} ", rows[0]) };
    Err(Error::input(format!(
        "the {of}rows of {} do not fit into their share of `memory`, and beside `state` they need {} MiB of \
         it at least; this party's `memory` allows {} MiB: raise it to {}M",
        party.data.display(),
        least / MIB,
        allowed / MIB,
        least / MIB,
    )))
}

/// What a match takes of a party, in bytes.
#[derive(Debug, Default)]
pub(crate) struct MatchNeeds {
    /// Own rows.
    rows: u64,
    /// Of memory, where rows are there too.
    memory: u64,
    /// Of memory, whatever is moved to disk.
    held: u64,
    /// On disk, where the protocol says it.
    pub disk: Option<MatchDisk>,
}

impl MatchNeeds {
    /// Those of one run of a party that has so much memory, or as little as rows in state need, where party 0
    /// has the first number of rows and every other one the second.
    ///
    /// # Errors
    /// When the rows are out of range.
    pub fn of(
        (study, built): (&Study, &Built),
        engine: &StudyEngine,
        (me, memory): (PartyId, u64),
        rows: [u64; 2],
    ) -> Result<Self, Error> {
        let own = rows[usize::from(me != PartyId(0))];
        let mut needs = Self { rows: own, ..Self::default() };
        let features = study.matching.matcher.features();
        if features.streams {
            let stage = MatchStage::new(study, built, engine, rows)?;
            let held = stage.memory(me)?;
            needs.held = if held > spill::MEMORY_MIN { held } else { 0 };
            needs.disk = stage.disk(me, None)?;
            let room = MemoryShares::of(memory.max(needs.beside_state()), own).room;
            needs.disk = stage.disk(me, Some(room))?;
        }
        needs.memory = needs.held.max(features.bytes_per_row * own);
        Ok(needs)
    }

    /// Own rows, and those of the longest column.
    pub fn longest(&self) -> [u64; 2] {
        [self.rows, self.disk.map_or(self.rows, |disk| disk.longest)]
    }

    /// The least `memory` of a party that has its rows in its state and matches them so, to the mebibyte.
    pub fn beside_state(&self) -> u64 {
        let least = least(self.longest());
        least.max(with_room(self.held, self.rows, least)).next_multiple_of(MIB)
    }

    /// Of memory in all, in so many runs of a party: its rows, of which `held` bytes are in memory, or all in
    /// its state, and the match.
    pub fn in_all(&self, party: &PartySetup, (rows, held): (u64, Option<u64>), runs: u64) -> u64 {
        match held {
            Some(held) => held.saturating_add(runs.saturating_mul(self.memory)),
            None if self.held == 0 => 0,
            None => with_room(self.held, rows, party.memory),
        }
    }
}

/// Bytes of memory that so many rows take which nobody has read yet, with identifiers and lines as a plan
/// takes them to be.
///
/// # Errors
/// When the study's program does not parse.
pub(crate) fn of_unread(study: &Study, me: PartyId, rows: u64) -> Result<u64, Error> {
    /// Where an identifier ends, and where the events of a row begin.
    const END: u64 = 8;
    /// Time and value.
    const EVENT: u64 = 8;
    let cells = match RowShape::of(study, me)? {
        RowShape::Advertiser { cohort, .. } => END + LINES * EVENT + u64::from(cohort),
        shape => shape.width() as u64,
    };
    Ok(rows.saturating_mul(IDENTIFIER + END + cells))
}

/// The columns and the match are held in memory: says beforehand when they will not fit.
///
/// # Errors
/// With the numbers, and what to do.
pub(crate) fn check_held(
    party: &PartySetup,
    (rows, held): (u64, Option<u64>),
    (study, runs): (&Study, usize),
    needs: &MatchNeeds,
) -> Result<(), Error> {
    let need = needs.in_all(party, (rows, held), runs as u64);
    if need <= party.memory {
        return Ok(());
    }
    let how = match held {
        None => "raise it: so much of this match cannot be moved to `state`".to_owned(),
        Some(_) if party.state.is_some() || !spools(party, study, runs) => {
            "raise it: this match, one by several identifiers, a spine kept or used, or several runs at a \
             time need all rows there"
                .to_owned()
        }
        Some(_) => {
            let beside = needs.beside_state() / MIB;
            match beside < need.div_ceil(MIB) {
                true => format!("raise it, or name a place for what does not fit: `state`, with {beside}M"),
                false => format!("raise it: rows in `state` would need {beside} MiB"),
            }
        }
    };
    Err(Error::input(format!(
        "{rows} rows of {} need about {} MiB to match and compute; this party's `memory` allows {} MiB; \
         {how}",
        party.data.display(),
        need.div_ceil(MIB),
        party.memory / MIB
    )))
}

/// A limit of the system for the whole process, far enough above the bound that only what was not foreseen
/// meets it: a quarter more, the process itself, and for each core and worker what they have of address
/// space.
#[must_use]
pub fn backstop(memory: u64, cores: u64, workers: u32) -> u64 {
    let threads = cores.saturating_mul(8 * MIB) + u64::from(workers) * 2 * LANE;
    memory.saturating_add(memory / 4).saturating_add(4 * BASE).saturating_add(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stage holds at most, of shares that keep their promises, and what is left over from the one
    /// before.
    fn held(shares: MemoryShares, rows: u64) -> [u64; 4] {
        let MemoryShares { reading, room, laying } = shares;
        let stays = BASE + LISTS * rows;
        let reads = BASE + DECODER + 2 * reading.lines + reading.runs;
        let settles = BASE + 4 * reading.partition_most;
        // Own places lie in half of the room, and the match's heap is not given back yet.
        let lays = stays + room + laying.runs;
        [reads, settles, stays + room, lays]
    }

    #[test]
    fn every_stage_is_within_the_bound() {
        for memory in [160 * MIB, 200 * MIB, 640 * MIB, 2 << 30, 64 << 30] {
            for rows in [0, 1 << 20, 20_000_000, 1 << 31] {
                if memory < least([rows; 2]) {
                    continue;
                }
                let shares = MemoryShares::of(memory, rows);
                for (stage, held) in held(shares, rows).into_iter().enumerate() {
                    assert!(held <= memory, "{memory} {rows}: stage {stage} holds {held}");
                }
                assert!(shares.room >= spill::least_room(rows));
                assert!(shares.reading.runs >= RUN_MEMORY && shares.laying.runs >= RUN_MEMORY);
            }
        }
    }

    /// Columns of the match at four million rows are more than the room takes, so that more rows take no
    /// more.
    #[test]
    fn four_million_rows_fill_what_they_are_given() {
        let rows = 4_000_000;
        let MemoryShares { reading, room, laying } = MemoryShares::of(640 * MIB, rows);
        // Full blocks have half of the room; own identifiers become others' while the peer's come in.
        assert!(room / 2 < 36 * rows + 32 * rows);
        // A record and its entry in the index.
        assert!(laying.runs < (8 + 8) * rows + (17 * MIB));
        assert!(reading.lines < 40 * rows && reading.runs < 60 * rows);
    }

    #[test]
    fn the_least_grows_with_rows() {
        let even = |rows| least([rows; 2]);
        assert_eq!(even(0), 160 * MIB);
        assert_eq!(even(20_000_000), 160 * MIB);
        assert!(even(500_000_000) > 500 * MIB && even(500_000_000) < 1 << 30);
        // Columns of five parties' rows.
        let several = least([100_000_000, 500_000_000]);
        assert!(several > even(100_000_000) && several < even(500_000_000));
        assert!(backstop(1 << 30, 16, 1) > (1 << 30) + (1 << 28));
        assert_eq!(backstop(u64::MAX, 1, 1), u64::MAX);
    }

    /// Whoever gives less than a file can say gets what was said.
    #[test]
    fn less_than_a_file_can_say_is_all_for_columns() {
        let shares = MemoryShares::of(64 << 10, 4_000);
        assert_eq!((shares.reading.lines, shares.reading.partition), (8 << 10, 2 << 10));
        assert_eq!((shares.room, shares.laying.parts), (spill::MEMORY_MIN, 4 << 10));
    }
}

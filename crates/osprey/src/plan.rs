//! The plan: which chunk comes in before which entry of a trace, and which one makes room for it.
//!
//! **Functionality.** Blocks of a trace go in, steps come out: fetch this chunk, after these have left. A
//! plan is legal: never more than `capacity` chunks are resident by it, every entry finds its chunk, and no
//! chunk leaves while the trace allows that it is still being touched (a use in block b holds its chunk until
//! block b + 2 has begun).
//!
//! **Rule.** MIN (Belady): the chunk whose next use is furthest goes. Two kinds of chunks have no next use
//! that costs anything: those whose next touch is fresh (nothing in them is wanted: *dead*, they go first,
//! whenever that touch is) and those that the known part of the trace does not touch again (clean ones first,
//! they need no write). With the whole trace known no legal plan has fewer reads.
//!
//! **Incremental.** The same code plans a file and a stream: `lookahead` entries are waited for before a
//! chunk is chosen to leave, and a chunk without a known next use is keyed anew when a use arrives.
//!
//! **Cost.** O(log capacity) per entry, 12 bytes per entry that is known and not yet planned, 32 bytes per
//! chunk of the region up to the highest touched, 24 bytes per block that is not yet forgotten.

use crate::trace::{Footer, TraceBlock};
use std::collections::{BinaryHeap, VecDeque};

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlannerAnswer {
    /// Do this.
    Step(PlanStep),
    /// More of the trace is needed: [`Planner::push`] or [`Planner::finish`].
    Wait,
    /// The trace is planned to its end.
    Done,
}

/// A chunk comes in, after others have left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanStep {
    /// Who makes room, at most one unless the capacity was lowered.
    pub evict: Vec<Eviction>,
    /// Who comes.
    pub fetch: Fetch,
}

/// A chunk leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eviction {
    /// The chunk.
    pub chunk: u32,
    /// The block that must have begun: until then the program may still touch the chunk.
    pub after: u64,
    /// Block of its next use; `None`: never again in what is known.
    pub next: Option<u64>,
    /// Its next touch is fresh, so its content is not wanted. A hint: the region has the word on it.
    pub dead: bool,
    /// By the trace it was only read since it came in. A hint.
    pub clean: bool,
}

/// A chunk comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetch {
    /// The chunk.
    pub chunk: u32,
    /// The block whose entry wants it.
    pub block: u64,
    /// Number of that entry in the trace.
    pub place: u64,
    /// It held nothing before: no read.
    pub fresh: bool,
    /// Predicted: only read until it leaves again, so that a copy on disk stays good.
    pub clean: bool,
}

/// Entries that a plan looks ahead when nobody says otherwise: eight times what it may hold.
#[must_use]
pub fn window(capacity: usize) -> u64 {
    (8 * capacity as u64).max(4096)
}

/// Place of no entry: there is no next use in what is known.
const NEVER: u64 = u64::MAX;
/// Ranks of chunks that no known use wants; every place of an entry is lower.
const RANK_DEAD: u64 = u64::MAX;
const RANK_CLEAN: u64 = u64::MAX - 1;
const RANK_DIRTY: u64 = u64::MAX - 2;
/// Distance of a known entry to the next one of its chunk, when there is none yet.
const UNLINKED: u32 = u32::MAX;
/// Uses of a chunk looked at to predict that it stays clean.
const PREDICTED_USES: usize = 8;

/// A known entry that is not planned yet.
#[derive(Clone, Copy, Debug)]
struct Use {
    chunk: u32,
    /// Entries until the next one of the same chunk.
    gap: u32,
    written: bool,
    fresh: bool,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Place of its last known entry, planned or not; `NEVER` before the first.
    last: u64,
    /// Place of the first known entry that is not planned yet; only kept up while resident.
    next: u64,
    /// Block of its last planned use.
    used: u64,
    resident: bool,
    /// Written since it came in, or never stored.
    dirty: bool,
    /// The entry at `next` is fresh.
    dead: bool,
}

const ABSENT: Chunk = Chunk { last: NEVER, next: NEVER, used: 0, resident: false, dirty: false, dead: false };

impl Chunk {
    fn rank(&self) -> u64 {
        match (self.next, self.dead, self.dirty) {
            (NEVER, _, true) => RANK_DIRTY,
            (NEVER, _, false) => RANK_CLEAN,
            (_, true, _) => RANK_DEAD,
            (place, false, _) => place,
        }
    }

    fn free_to_go(&self, block: u64) -> bool {
        self.resident && self.used + 2 <= block
    }
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    events: u64,
    hash: u64,
    /// Place of its first entry.
    place: u64,
}

/// Makes a plan as the trace comes in.
#[derive(Debug)]
pub struct Planner {
    capacity: usize,
    microset: usize,
    lookahead: u64,
    finished: bool,
    /// Entries known and not planned; the first is at place `cursor`.
    ahead: VecDeque<Use>,
    cursor: u64,
    /// Marks of blocks from `forgotten` on.
    marks: VecDeque<Mark>,
    forgotten: u64,
    /// Block of the entry planned last.
    block: u64,
    /// Chunks used in the block before `block`, and in it: they must stay.
    held: [Vec<u32>; 2],
    chunks: Vec<Chunk>,
    resident: usize,
    /// Candidates to leave by rank. An item is good if its chunk may go and has that rank now; others are
    /// dropped when they come up.
    candidates: BinaryHeap<(u64, u32)>,
    /// How far ahead the next use of the last victim was: chunks whose gap is shorter tend to stay.
    reach: u64,
}

impl Planner {
    /// A plan for `capacity` resident chunks, from a trace with blocks of at most `microset` entries, that
    /// looks `lookahead` entries ahead (0: waits for the whole trace before the first chunk is chosen to
    /// leave).
    ///
    /// # Errors
    /// When two blocks do not fit, in words with the least capacity.
    pub fn new(capacity: usize, microset: usize, lookahead: u64) -> Result<Self, String> {
        let least = 2 * microset;
        if capacity < least {
            return Err(format!(
                "a plan for {capacity} resident chunks is too small: two blocks of {microset} chunks must \
                 fit, so at least {least}"
            ));
        }
        Ok(Self {
            capacity,
            microset,
            lookahead,
            finished: false,
            ahead: VecDeque::new(),
            cursor: 0,
            marks: VecDeque::new(),
            forgotten: 0,
            block: 0,
            held: [Vec::new(), Vec::new()],
            chunks: Vec::new(),
            resident: 0,
            candidates: BinaryHeap::new(),
            reach: capacity as u64,
        })
    }

    /// Whether the plan could use more of the trace now.
    #[must_use]
    pub fn wants(&self) -> bool {
        !self.finished && (self.lookahead == 0 || (self.ahead.len() as u64) < self.lookahead)
    }

    /// The next block of the trace.
    ///
    /// # Panics
    /// When it is longer than the microset (a [`crate::trace::TraceSource`] gives none such), or after the
    /// end.
    pub fn push(&mut self, block: TraceBlock) {
        assert!(block.entries.len() <= self.microset && !self.finished, "a block of this trace");
        let first = self.known();
        self.marks.push_back(Mark { events: block.events, hash: block.hash, place: first });
        for (place, entry) in (first..).zip(&block.entries) {
            let fresh = entry.fresh;
            self.ahead.push_back(Use { chunk: entry.chunk, gap: UNLINKED, written: entry.written, fresh });
            self.link(entry.chunk, place, fresh);
        }
    }

    /// Tells the entry before this one, or the resident chunk, that a use has become known.
    fn link(&mut self, chunk: u32, place: u64, fresh: bool) {
        let at = chunk as usize;
        if at >= self.chunks.len() {
            self.chunks.resize(at + 1, ABSENT);
        }
        let state = &mut self.chunks[at];
        let last = std::mem::replace(&mut state.last, place);
        if last != NEVER && last >= self.cursor {
            let gap = u32::try_from(place - last).unwrap_or(UNLINKED);
            self.ahead[(last - self.cursor) as usize].gap = gap;
        } else if state.resident && state.next == NEVER {
            (state.next, state.dead) = (place, fresh);
            if state.free_to_go(self.block) {
                self.candidates.push((state.rank(), chunk));
            }
        }
    }

    /// The trace has no more blocks.
    pub fn finish(&mut self, _footer: &Footer) {
        self.finished = true;
    }

    /// The next step.
    #[expect(clippy::should_implement_trait, reason = "an iterator that waits and goes on is none")]
    pub fn next(&mut self) -> PlannerAnswer {
        self.advance(false)
    }

    /// The next step, chosen by what is known: for a program that would wait otherwise.
    pub fn hurry(&mut self) -> PlannerAnswer {
        self.advance(true)
    }

    fn advance(&mut self, hurry: bool) -> PlannerAnswer {
        while let Some(&entry) = self.ahead.front() {
            self.begin_block();
            let state = self.chunks[entry.chunk as usize];
            if !state.resident {
                let full = self.resident >= self.capacity;
                if full && !hurry && self.wants() {
                    return PlannerAnswer::Wait;
                }
                return PlannerAnswer::Step(self.step(entry));
            }
            self.use_entry(entry);
        }
        if self.finished { PlannerAnswer::Done } else { PlannerAnswer::Wait }
    }

    fn step(&mut self, entry: Use) -> PlanStep {
        let mut evict = Vec::new();
        while self.resident >= self.capacity {
            evict.push(self.evict());
        }
        let clean = !entry.fresh && self.stays_clean(entry);
        let fetch =
            Fetch { chunk: entry.chunk, block: self.block, place: self.cursor, fresh: entry.fresh, clean };
        let state = &mut self.chunks[entry.chunk as usize];
        (state.resident, state.dirty) = (true, entry.fresh);
        self.resident += 1;
        self.use_entry(entry);
        PlanStep { evict, fetch }
    }

    /// Enters the block of the entry at the cursor; what the block before last used may go from now on.
    fn begin_block(&mut self) {
        while self.mark(self.block + 1).is_some_and(|mark| mark.place <= self.cursor) {
            self.block += 1;
            let loose = std::mem::take(&mut self.held[0]);
            self.held.swap(0, 1);
            for &chunk in &loose {
                let state = &self.chunks[chunk as usize];
                if state.free_to_go(self.block) {
                    self.candidates.push((state.rank(), chunk));
                }
            }
            self.held[1] = loose;
            self.held[1].clear();
            self.prune();
        }
    }

    /// Drops candidates that are none any more, so that their number is bounded by the capacity.
    fn prune(&mut self) {
        if self.candidates.len() > 4 * self.capacity + 1024 {
            let (chunks, block) = (&self.chunks, self.block);
            self.candidates.retain(|&(rank, chunk)| {
                let state = &chunks[chunk as usize];
                state.free_to_go(block) && state.rank() == rank
            });
        }
    }

    /// Takes the entry at the cursor, whose chunk is resident.
    fn use_entry(&mut self, entry: Use) {
        let next = if entry.gap == UNLINKED { NEVER } else { self.cursor + u64::from(entry.gap) };
        let fresh = next != NEVER && self.ahead[entry.gap as usize].fresh;
        let state = &mut self.chunks[entry.chunk as usize];
        (state.next, state.dead) = (next, fresh);
        state.used = self.block;
        state.dirty |= entry.written;
        self.held[1].push(entry.chunk);
        self.ahead.pop_front();
        self.cursor += 1;
    }

    /// Chooses who leaves. Of `capacity` >= 2 `microset` resident chunks fewer than that are held, and every
    /// other one is among the candidates with its rank.
    fn evict(&mut self) -> Eviction {
        loop {
            let (rank, chunk) =
                self.candidates.pop().expect("a resident chunk that is not held is a candidate");
            let state = &mut self.chunks[chunk as usize];
            if !state.free_to_go(self.block) || state.rank() != rank {
                continue;
            }
            state.resident = false;
            self.resident -= 1;
            let gone = *state;
            let next = (gone.next != NEVER).then(|| self.block_of(gone.next));
            if rank < RANK_DIRTY {
                self.reach = rank - self.cursor;
            }
            return Eviction { chunk, after: gone.used + 2, next, dead: gone.dead, clean: !gone.dirty };
        }
    }

    /// Whether the uses from `entry` on are reads for as long as the chunk will probably stay.
    fn stays_clean(&self, mut entry: Use) -> bool {
        let mut at = 0;
        for _ in 0..PREDICTED_USES {
            if entry.written {
                return false;
            }
            if entry.gap == UNLINKED || u64::from(entry.gap) > self.reach {
                break;
            }
            at += entry.gap as usize;
            entry = self.ahead[at];
            if entry.fresh {
                break;
            }
        }
        true
    }

    /// Entries that were pushed.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.cursor + self.ahead.len() as u64
    }

    /// Entries that are planned.
    #[must_use]
    pub fn planned(&self) -> u64 {
        self.cursor
    }

    /// Blocks that were pushed.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.forgotten + self.marks.len() as u64
    }

    /// Events and hash at the begin of a block: for a watch. `None` when it is not known yet, or forgotten.
    #[must_use]
    pub fn block_mark(&self, block: u64) -> Option<(u64, u64)> {
        self.mark(block).map(|mark| (mark.events, mark.hash))
    }

    fn mark(&self, block: u64) -> Option<&Mark> {
        self.marks.get(usize::try_from(block.checked_sub(self.forgotten)?).ok()?)
    }

    /// Forgets the marks of blocks before `block`, as far as they are planned: the program is past them.
    pub fn forget(&mut self, block: u64) {
        while self.forgotten < block.min(self.block) && self.marks.pop_front().is_some() {
            self.forgotten += 1;
        }
    }

    /// Block of the first use of a chunk among the next `within` known entries that are not planned yet.
    #[must_use]
    pub fn first_use(&self, chunk: u32, within: usize) -> Option<u64> {
        let at = self.ahead.iter().take(within).position(|entry| entry.chunk == chunk)?;
        Some(self.block_of(self.cursor + at as u64))
    }

    /// Chunks that are resident by the plan and wanted again in what is known, with the block of that use.
    pub fn kept(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let wanted = |chunk: &Chunk| chunk.resident && chunk.next != NEVER && !chunk.dead;
        let chunks = (0u32..).zip(&self.chunks).filter(move |(_, chunk)| wanted(chunk));
        chunks.map(|(number, chunk)| (number, self.block_of(chunk.next)))
    }

    /// Lowers the number of resident chunks, not below two blocks: the next step makes as many leave as are
    /// too many.
    pub fn lower(&mut self, capacity: usize) {
        self.capacity = self.capacity.min(capacity.max(2 * self.microset));
    }

    /// The block that a known place lies in.
    fn block_of(&self, place: u64) -> u64 {
        self.forgotten + self.marks.partition_point(|mark| mark.place <= place) as u64 - 1
    }
}

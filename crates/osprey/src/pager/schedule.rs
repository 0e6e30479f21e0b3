//! The plan as it is carried out: steps that are due, where the program is, who may leave.
//!
//! **Position.** Block b has begun for certain once the program has counted more events than the trace has at
//! its begin, or once it touched a chunk that the plan brings in for block b and that was not in the region.
//! Where the trace has no events to count, one chunk in a few is held back in its frame as a *key*: its touch
//! tells.
//!
//! **Order.** An eviction is let loose when the fetch it makes room for is next, or when the block it names
//! has begun, if that is before, and carried out when that block has begun. So of the chunks that are
//! resident by the plan never more than its capacity have memory, what the frames have beyond that is the
//! buffer that fetches run ahead in, and a chunk whose turn to leave is certain is on its way to the disk
//! long before its frame is wanted.
//!
//! **Overtaken.** A trace that is still being made may be behind the program. What the program touches then
//! says nothing against the trace. When the trace has caught up, the steps that the program is past are only
//! booked, and what they would have brought and is wanted again comes in before that use.

use crate::plan::{Eviction, Fetch, PlanStep, Planner, PlannerAnswer, window};
use crate::progress::TouchProgress;
use crate::sys::advise::wait;
use crate::trace::{TraceFeed, TraceSource};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Blocks per comparison of the hash over allocations.
const HASH_EVERY: u64 = 4;
/// Steps that are planned ahead even if the trace pauses.
const HURRIED: usize = 32;
/// Touches in a row that fit, before a program that was lost is found.
const FOUND: u32 = 8;
/// Place of a fetch that makes up for one that the program was past.
pub(super) const MADE_UP: u64 = u64::MAX;

/// What the frames are used for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameShares {
    /// Chunks resident by the plan.
    pub capacity: usize,
    /// Frames for chunks fetched ahead, and for those on their way out.
    pub buffer: usize,
    /// Frames kept for touches that nobody expected.
    pub reserve: usize,
}

/// An eviction that was let loose, in the order of the blocks that must have begun and of the plan.
#[derive(Debug)]
struct Leaving {
    item: u64,
    eviction: Eviction,
}

impl Leaving {
    fn order(&self) -> (u64, u64) {
        (self.eviction.after, self.item)
    }
}

impl PartialEq for Leaving {
    fn eq(&self, other: &Self) -> bool {
        self.item == other.item
    }
}

impl Eq for Leaving {}

impl PartialOrd for Leaving {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Leaving {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

#[derive(Debug)]
pub(super) struct FrameSchedule {
    planner: Planner,
    source: Option<TraceSource>,
    shares: FrameShares,
    steps: VecDeque<PlanStep>,
    /// What was not brought because the program was past it, by the block that wants it again.
    missing: VecDeque<Fetch>,
    /// Chunks that were brought for blocks that the program is not past, in the order of the plan.
    ahead: VecDeque<Fetch>,
    /// The position, and the steps planned, when it was looked at last who may leave before their turn.
    loosened: (u64, u64),
    /// Who may leave, the first on top; some are of the past.
    leaving: BinaryHeap<Reverse<Leaving>>,
    /// By chunk: the number of its valid item in `leaving`, 0 for none.
    current: Vec<u64>,
    items: u64,
    position: u64,
    held: VecDeque<(u64, u32)>,
    since_key: usize,
    /// What the program was asked to tell last: the block, and whether it was still to begin.
    armed: (u64, bool),
    fetched: u64,
    misses: u64,
    /// Whether the trace had nothing more when it was asked last.
    pub starved: bool,
    /// Touches that must fit before it is known again where the program is: it touched what was not known
    /// yet, and there are no events to count.
    lost: u32,
    /// Whether the program had overtaken the trace and the plan has not caught up since.
    behind: bool,
    /// Steps for entries before this one were planned for more frames than there are now.
    excused: u64,
    pub spent: Duration,
}

impl FrameSchedule {
    /// # Errors
    /// The planner's: a capacity that cannot hold two blocks.
    pub fn new(
        source: TraceSource,
        shares: FrameShares,
        microset: usize,
        lookahead: u64,
    ) -> Result<Self, String> {
        let lookahead = if lookahead == 0 { window(shares.capacity) } else { lookahead };
        Ok(Self {
            planner: Planner::new(shares.capacity, microset, lookahead)?,
            source: Some(source),
            shares,
            steps: VecDeque::new(),
            missing: VecDeque::new(),
            ahead: VecDeque::new(),
            loosened: (0, 0),
            leaving: BinaryHeap::new(),
            current: Vec::new(),
            items: 0,
            position: 0,
            held: VecDeque::new(),
            since_key: 0,
            armed: (0, false),
            fetched: 0,
            misses: 0,
            starved: false,
            lost: 0,
            behind: false,
            excused: 0,
            spent: Duration::ZERO,
        })
    }

    pub fn shares(&self) -> FrameShares {
        self.shares
    }

    /// There are fewer frames from now on.
    pub fn lower(&mut self, shares: FrameShares) {
        self.planner.lower(shares.capacity);
        self.shares = shares;
        self.excused = self.planner.planned();
    }

    /// What becomes readable when a trace that had nothing has more.
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref()?.bell()
    }

    /// Entries of the trace known so far.
    pub fn entries(&self) -> u64 {
        self.planner.known()
    }

    /// Takes what there is of the trace, as far as the plan wants it, and plans some steps ahead.
    ///
    /// # Errors
    /// The trace's, in words.
    pub fn fill(&mut self) -> Result<(), String> {
        let ahead = 4 * self.shares.buffer + 64;
        if self.steps.len() >= (ahead / 2).max(HURRIED) && !self.starved {
            return Ok(());
        }
        let begun = Instant::now();
        let result = self.take(ahead);
        self.spent += begun.elapsed();
        result
    }

    fn take(&mut self, ahead: usize) -> Result<(), String> {
        self.starved = false;
        loop {
            while let (true, Some(source)) = (self.planner.wants() && !self.starved, &mut self.source) {
                match source.next()? {
                    TraceFeed::Block(block) => self.planner.push(block),
                    TraceFeed::Wait => self.starved = true,
                    TraceFeed::End(footer) => {
                        self.planner.finish(&footer);
                        self.source = None;
                    }
                }
            }
            if self.steps.len() >= ahead {
                return Ok(());
            }
            let next = match self.planner.next() {
                // Little is planned and the trace pauses: better a choice with less foresight than none.
                PlannerAnswer::Wait if self.starved && self.steps.len() < HURRIED => self.planner.hurry(),
                next => next,
            };
            match next {
                PlannerAnswer::Step(step) => self.steps.push_back(step),
                PlannerAnswer::Wait if !self.starved && self.source.is_some() && self.planner.wants() => {}
                PlannerAnswer::Wait | PlannerAnswer::Done => return Ok(()),
            }
        }
    }

    /// Waits, for that long at most, until as much of a trace that is being made is known as a plan looks
    /// ahead.
    pub fn head_start(&mut self, longest: Duration) {
        let begun = Instant::now();
        // What is wrong with the trace is found again, and said, when the plan goes on.
        while self.fill().is_ok()
            && self.starved
            && let Some(left) = longest.checked_sub(begun.elapsed())
            && let Some(bell) = self.bell()
            && wait(&[bell], left.as_millis() as i32 + 1).is_ok()
        {}
    }

    /// The fetch that is next; those who make room for it may leave from now on.
    pub fn head(&mut self) -> Option<Fetch> {
        self.loosen();
        let step = self.steps.front_mut();
        if let Some(&fetch) = self.missing.front()
            && step.as_ref().is_none_or(|step| fetch.block <= step.fetch.block)
        {
            return Some(fetch);
        }
        let step = step?;
        let (fetch, evict) = (step.fetch, std::mem::take(&mut step.evict));
        evict.into_iter().for_each(|eviction| self.let_loose(eviction));
        Some(fetch)
    }

    /// Lets those loose whose block has begun, before their turn: their frames are free by then. None of them
    /// is among the fetches that are still to be made, as long as the program is not past the first of those:
    /// a chunk stays for two blocks after it came.
    fn loosen(&mut self) {
        let now = (self.position, self.planner.planned());
        if self.loosened == now || self.steps.front().is_none_or(|step| self.is_past(step.fetch.block)) {
            return;
        }
        self.loosened = now;
        let mut steps = std::mem::take(&mut self.steps);
        for step in &mut steps {
            for eviction in step.evict.extract_if(.., |eviction| eviction.after <= now.0) {
                self.let_loose(eviction);
            }
        }
        self.steps = steps;
    }

    fn let_loose(&mut self, eviction: Eviction) {
        self.items += 1;
        let chunk = eviction.chunk as usize;
        if chunk >= self.current.len() {
            self.current.resize(chunk + 1, 0);
        }
        self.current[chunk] = self.items;
        self.leaving.push(Reverse(Leaving { item: self.items, eviction }));
    }

    /// The fetch that was next is carried out. Its chunk stays if it was to leave before.
    pub fn fetched(&mut self, fetch: Fetch) {
        if fetch.place == MADE_UP {
            self.missing.pop_front();
        } else if let Some(step) = self.steps.pop_front() {
            self.stays(step.fetch.chunk);
            self.fetched += 1;
            self.ahead.push_back(fetch);
        }
    }

    /// The chunk that was brought ahead and is wanted last, of those that the program has not come to and
    /// that are `here` for that block. It will be brought again.
    pub fn take_back(&mut self, here: impl Fn(u32, u64) -> bool) -> Option<u32> {
        while let Some(fetch) = self.ahead.pop_back() {
            if fetch.block <= self.position + 1 {
                return None;
            }
            if here(fetch.chunk, fetch.block) {
                let at = self.missing.partition_point(|other| other.block <= fetch.block);
                self.missing.insert(at, Fetch { place: MADE_UP, fresh: false, ..fetch });
                return Some(fetch.chunk);
            }
        }
        None
    }

    /// Those who may leave when their block has begun, with that block.
    pub fn waiting(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let valid =
            |leaving: &&Reverse<Leaving>| self.current[leaving.0.eviction.chunk as usize] == leaving.0.item;
        self.leaving
            .iter()
            .filter(valid)
            .map(|Reverse(Leaving { eviction, .. })| (eviction.chunk, eviction.after))
    }

    /// The next step, if the program is past it because it has overtaken the trace: to be booked, not to be
    /// carried out.
    ///
    /// # Errors
    /// The trace's, in words.
    pub fn passed(&mut self, progress: &TouchProgress) -> Result<Option<PlanStep>, String> {
        if !self.behind {
            return Ok(None);
        }
        self.fill()?;
        self.locate(progress);
        if !self.steps.front().is_some_and(|step| self.is_past(step.fetch.block)) {
            return Ok(None);
        }
        let step = self.steps.pop_front();
        if let Some(step) = &step {
            self.stays(step.fetch.chunk);
        }
        Ok(step)
    }

    fn stays(&mut self, chunk: u32) {
        if let Some(item) = self.current.get_mut(chunk as usize) {
            *item = 0;
        }
    }

    /// After steps were booked: as soon as the plan is ahead again, it makes up for those of its chunks that
    /// are `away`.
    pub fn make_up(&mut self, progress: &TouchProgress, away: impl Fn(u32) -> bool) {
        if !self.behind || self.steps.is_empty() || self.overtaken(progress) {
            return;
        }
        self.behind = false;
        let fetch = |(chunk, block)| Fetch { chunk, block, place: MADE_UP, fresh: false, clean: false };
        let mut missing: Vec<Fetch> =
            self.planner.kept().filter(|&(chunk, _)| away(chunk)).map(fetch).collect();
        missing.sort_unstable_by_key(|fetch| fetch.block);
        self.missing = missing.into();
    }

    /// How far the program is, in events, against the begin of the last block that is known: beyond it for
    /// certain (`Greater`), before it for certain, or events do not tell.
    fn against_known(&self, progress: &TouchProgress) -> Ordering {
        let last = self.planner.blocks().checked_sub(1).and_then(|block| self.planner.block_mark(block));
        last.map_or(Ordering::Greater, |(begin, _)| progress.so_far().0.cmp(&begin))
    }

    /// Whether the trace is still being made and the program is beyond what is known of it.
    pub fn overtaken(&self, progress: &TouchProgress) -> bool {
        self.bell().is_some()
            && match self.against_known(progress) {
                Ordering::Greater => true,
                Ordering::Equal => self.lost > 0,
                Ordering::Less => false,
            }
    }

    /// A chunk that may leave now.
    pub fn leaver(&mut self) -> Option<Eviction> {
        while let Some(Reverse(Leaving { item, eviction })) = self.leaving.peek() {
            let (item, eviction) = (*item, *eviction);
            let valid = self.current[eviction.chunk as usize] == item;
            if valid && eviction.after > self.position {
                return None;
            }
            self.leaving.pop();
            if valid {
                self.stays(eviction.chunk);
                return Some(eviction);
            }
        }
        None
    }

    /// Reads the program's count of events.
    pub fn locate(&mut self, progress: &TouchProgress) {
        self.behind |= self.overtaken(progress);
        let (events, _) = progress.so_far();
        while self.planner.block_mark(self.position + 1).is_some_and(|(begin, _)| begin < events) {
            self.position += 1;
        }
        self.planner.forget(self.position);
        while self.ahead.front().is_some_and(|fetch| fetch.block <= self.position) {
            self.ahead.pop_front();
        }
    }

    /// The program is in that block.
    pub fn began(&mut self, block: u64) {
        self.lost = self.lost.saturating_sub(1);
        self.position = self.position.max(block);
    }

    /// Whether the program has used what came in for that block.
    pub fn is_past(&self, block: u64) -> bool {
        block + 2 <= self.position
    }

    /// The program waits for a chunk that the plan has not brought. If the plan was about to, that tells
    /// where the program is; otherwise the touch was not in the trace, or not in what is known of it.
    pub fn surprised(&mut self, chunk: u32, progress: &TouchProgress) {
        let near = 2 * self.shares.buffer + 64;
        let near = if self.lost > 0 { self.steps.len() } else { near };
        if let Some(step) = self.steps.iter().take(near).find(|step| step.fetch.chunk == chunk) {
            let block = step.fetch.block;
            return self.began(block);
        }
        if let Some(block) = self.planner.first_use(chunk, near) {
            return self.began(block);
        }
        if self.steps.front().is_some_and(|step| step.fetch.place < self.excused) {
            return;
        }
        match self.against_known(progress) {
            // A trace that is still being made is behind the program: that is no fault of the trace.
            Ordering::Greater if self.bell().is_some() => {
                if self.planner.blocks() == 0 {
                    self.lost = FOUND;
                }
            }
            // It has caught up, but the plan has not yet.
            Ordering::Less if self.behind => {}
            Ordering::Less => self.misses += 1,
            _ if self.starved => self.lost = FOUND,
            // Nothing but touches tells how far the program is: the first place that has this one is the
            // least.
            _ if self.lost > 0 => match self.planner.first_use(chunk, usize::MAX) {
                Some(block) => (self.position, self.lost) = (self.position.max(block), FOUND),
                None => self.misses += 1,
            },
            _ => self.misses += 1,
        }
    }

    /// Whether the trace is of no use for this run.
    pub fn misleads(&self) -> bool {
        super::misleads(self.misses, self.fetched)
    }

    /// Decides whether a chunk that comes in for `block` is held back to learn where the program is.
    pub fn choose_key(&mut self, block: u64) -> bool {
        self.since_key += 1;
        let every = (self.shares.buffer / 4).clamp(1, super::KEY_EVERY);
        if self.since_key < every || block <= self.position + 1 {
            return false;
        }
        let counts = |b| self.planner.block_mark(b).map(|(events, _)| events);
        let told = matches!((counts(block), counts(block + 1)), (Some(now), Some(next)) if next > now);
        if !told {
            self.since_key = 0;
        }
        !told
    }

    pub fn hold(&mut self, block: u64, chunk: u32) {
        self.held.push_back((block, chunk));
    }

    /// A key whose touch is past or due, so that it tells nothing any more. (Also those that were touched.)
    pub fn release(&mut self) -> Option<u32> {
        let at = self.held.iter().position(|&(block, _)| block <= self.position)?;
        self.held.remove(at).map(|(_, chunk)| chunk)
    }

    /// The key that was held back last, touched or not.
    pub fn last_key(&mut self) -> Option<u32> {
        self.held.pop_back().map(|(_, chunk)| chunk)
    }

    /// Asks to be told when the first of those who wait to leave may: one event after the begin of their
    /// block. One watch in a few is at the begin itself, where the trace has a hash to compare.
    pub fn watch(&mut self, progress: &TouchProgress) {
        let Some(Reverse(Leaving { eviction, .. })) = self.leaving.peek() else { return };
        let after = eviction.after;
        let Some((begin, hash)) = self.planner.block_mark(after) else { return };
        let (events, _) = progress.so_far();
        if after <= self.position || self.armed == (after, begin > events) {
            return;
        }
        self.armed = (after, begin > events);
        if begin > events && after % HASH_EVERY == 0 {
            progress.watch(begin, hash);
        } else {
            progress.watch(begin.max(events) + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::ProgressEvent;
    use crate::trace::{Footer, Header, TraceBlock, TraceEntry, Writer};

    const MICROSET: usize = 4;

    /// A schedule for a cycle over 16 chunks, with an event per block, that holds 8 of them.
    fn cycle() -> (FrameSchedule, TouchProgress) {
        let header = Header { chunk: 4096, region: 1 << 20, microset: MICROSET as u32, key: 1 };
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("trace");
        let mut writer = Writer::create(&path, &header).expect("a trace");
        let entry = |place: u32| TraceEntry { chunk: place % 16, written: true, fresh: place < 16 };
        for block in 0..16u32 {
            let entries = (block * 4..block * 4 + 4).map(entry).collect();
            writer.block(&TraceBlock { events: block.into(), hash: 0, entries }).expect("written");
        }
        writer.finish(&Footer { entries: 64, peak_chunks: 16, other_bytes: 0 }).expect("written");
        let source = TraceSource::open(&path, &header).expect("a trace");
        let shares = FrameShares { capacity: 8, buffer: 4, reserve: 1 };
        (
            FrameSchedule::new(source, shares, MICROSET, 0).expect("a plan"),
            TouchProgress::new().expect("a bell"),
        )
    }

    /// Carries out fetches up to the first one whose room is not made yet.
    fn carry_out(schedule: &mut FrameSchedule, count: usize) {
        for _ in 0..count {
            let fetch = schedule.head().expect("a fetch");
            schedule.fetched(fetch);
        }
    }

    #[test]
    fn who_is_done_with_leaves_before_its_frame_is_wanted() {
        let (mut schedule, progress) = cycle();
        schedule.fill().expect("a trace");
        carry_out(&mut schedule, 8);
        assert!(schedule.head().is_some() && schedule.leaver().is_none(), "the first block is in use");
        (0..3).for_each(|_| progress.event(ProgressEvent::Tick));
        schedule.locate(&progress);
        assert!(schedule.head().is_some_and(|fetch| fetch.place == 8), "the same fetch is next");
        let gone: Vec<u32> = std::iter::from_fn(|| schedule.leaver()).map(|leaver| leaver.chunk).collect();
        assert_eq!(gone.len(), MICROSET, "all of the first block, for one fetch: {gone:?}");
        assert!(gone.iter().all(|&chunk| chunk < MICROSET as u32), "{gone:?}");
    }

    #[test]
    fn what_was_brought_too_early_is_brought_again() {
        let (mut schedule, progress) = cycle();
        schedule.fill().expect("a trace");
        carry_out(&mut schedule, 12);
        schedule.locate(&progress);
        assert_eq!(
            schedule.take_back(|chunk, block| chunk == 9 && block == 2),
            Some(9),
            "the last that is here"
        );
        let again = schedule.head().expect("a fetch");
        assert!((again.chunk, again.block, again.place, again.fresh) == (9, 2, MADE_UP, false), "{again:?}");
        schedule.fetched(again);
        assert!(schedule.head().is_some_and(|fetch| fetch.place == 12));
        (0..5).for_each(|_| progress.event(ProgressEvent::Tick));
        schedule.locate(&progress);
        assert_eq!(schedule.take_back(|_, _| true), None, "the program has come to all of them");
    }
}

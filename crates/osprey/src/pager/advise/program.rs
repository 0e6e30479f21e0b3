//! A trace that is followed: where the program is, and what the plan allows next.

use super::Sizes;
use crate::plan::{self, Eviction, Fetch, Next, Planner, Step};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::sys::process;
use crate::trace::{Feed, Source};
use std::collections::{HashSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// One fetched chunk in as many is a key where events stand still, and at least four among those that came early.
pub(super) const KEY_EVERY: u64 = 32;
/// Major faults of a program whose plan stands still, after which the trace is taken for another's.
const STUCK_FAULTS: u64 = 1024;
/// Blocks ahead of the program at which its hash is compared when nothing else is waited for.
const WATCH_AHEAD: u64 = 16;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// Send this chunk away.
    Evict(Eviction),
    /// Start to read this chunk, wanted as a key or not; say by [`Program::fetched`] what it became.
    Fetch(Fetch, bool),
    /// Map this chunk, but for its first page when it is a key.
    Map(Fetch, bool),
    /// Nothing, until the program moved or the trace has more.
    Wait,
}

/// The plan as far as it is carried out.
#[derive(Debug)]
pub(super) struct Program {
    source: Source,
    /// The ring has nothing now.
    dry: bool,
    planner: Planner,
    plan_s: f64,
    sizes: Sizes,
    /// The fetch that waits for room; its evictions are in `going`.
    next: Option<Fetch>,
    /// Evictions in the order of the plan that wait for their block.
    going: VecDeque<Eviction>,
    /// Chunks that are being read, and whether they are keys.
    arriving: VecDeque<(Fetch, bool)>,
    /// Chunks that the plan has in memory.
    held: HashSet<u32>,
    /// Keys out: chunk and block.
    keys: VecDeque<(u32, u64)>,
    /// Fetches since the last key.
    since_key: u64,
    /// Block of the last fetch.
    last: u64,
    /// Blocks before this one have begun.
    begun: u64,
    /// Major faults of the process when the plan last moved, and `begun` then.
    faults: u64,
    seen: u64,
}

impl Program {
    /// Follows `source` within `sizes`.
    pub fn new(source: Source, settings: &Settings, sizes: Sizes) -> Result<Self, String> {
        let capacity = sizes.capacity;
        let lookahead = if settings.lookahead == 0 { plan::window(capacity) } else { settings.lookahead };
        Ok(Self {
            source,
            dry: false,
            planner: Planner::new(capacity, settings.microset, lookahead)?,
            plan_s: 0.0,
            sizes,
            next: None,
            going: VecDeque::new(),
            arriving: VecDeque::new(),
            held: HashSet::new(),
            keys: VecDeque::new(),
            since_key: 0,
            last: 0,
            begun: 0,
            faults: 0,
            seen: 0,
        })
    }

    /// Gives the planner what it wants, as far as it is there.
    pub fn feed(&mut self) -> Result<(), String> {
        self.dry = false;
        let start = Instant::now();
        while self.planner.wants() && !self.dry {
            match self.source.next()? {
                Feed::Block(block) => self.planner.push(block),
                Feed::Wait => self.dry = true,
                Feed::End(footer) => self.planner.finish(&footer),
            }
        }
        self.plan_s += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Learns from events and keys which blocks have begun, and watches for the next one that matters.
    pub fn observe(&mut self, progress: &Progress, touched: impl Fn(u32) -> bool) -> Result<(), String> {
        if progress.diverged() {
            return Err(
                "the program allocates otherwise than its trace says: another build, other arguments or \
                        inputs, or accesses that depend on data"
                    .into(),
            );
        }
        let (events, _) = progress.so_far();
        while self.planner.block_mark(self.begun).is_some_and(|(mark, _)| mark < events) {
            self.begun += 1;
        }
        // The last key that was touched says it of those before: a program need not touch the first page of each.
        if let Some(at) = self.keys.iter().rposition(|&(chunk, block)| block < self.begun || touched(chunk)) {
            let passed = self.keys.drain(..=at).map(|(_, block)| block + 1).max();
            self.begun = passed.map_or(self.begun, |block| block.max(self.begun));
        }
        self.planner.forget(self.begun.saturating_sub(1));
        let target = self.going.front().map_or(self.begun + WATCH_AHEAD, |going| going.after);
        if let Some((mark, hash)) = self.planner.block_mark(target)
            && mark >= events
        {
            progress.watch(mark, hash);
        }
        Ok(())
    }

    /// A program that faults and faults while its plan stands still does something else.
    pub fn check_stuck(&mut self) -> Result<(), String> {
        let ours = process::usage_of_thread().major_faults;
        let faults = process::usage_of_process().major_faults.saturating_sub(ours);
        if self.going.is_empty() || self.seen != self.begun {
            (self.faults, self.seen) = (faults, self.begun);
        }
        if faults > self.faults + STUCK_FAULTS {
            return Err(format!(
                "the program faulted {STUCK_FAULTS} times where its trace foresees no touch"
            ));
        }
        Ok(())
    }

    /// What is to be done now: evictions before fetches, mapping when there is nothing else or enough is being read.
    pub fn turn(&mut self) -> Turn {
        if self.going.front().is_some_and(|going| going.after < self.begun) {
            let eviction = self.going.pop_front().expect("it was there");
            self.held.remove(&eviction.chunk);
            self.arriving.retain(|(fetch, _)| fetch.chunk != eviction.chunk);
            self.keys.retain(|&(chunk, _)| chunk != eviction.chunk);
            return Turn::Evict(eviction);
        }
        if self.arriving.len() < self.sizes.depth
            && let Some(fetch) = self.take_fetch()
        {
            let full = self.held.len() + 1 >= self.sizes.held;
            let due = full
                || self.since_key + 1 >= KEY_EVERY.min((self.sizes.held - self.sizes.capacity) as u64 / 4);
            return Turn::Fetch(fetch, due && !self.told_by_events(fetch.block));
        }
        match self.arriving.pop_front() {
            Some((fetch, key)) => Turn::Map(fetch, key),
            None => Turn::Wait,
        }
    }

    /// The next chunk to read, if there is room. One that is still here stays.
    fn take_fetch(&mut self) -> Option<Fetch> {
        loop {
            let fetch = match self.next.take() {
                Some(fetch) => fetch,
                None => self.plan()?,
            };
            if let Some(at) = self.going.iter().position(|going| going.chunk == fetch.chunk) {
                // Its departure was for later: it need not go at all.
                self.going.remove(at);
                self.last = fetch.block;
                continue;
            }
            if self.held.len() >= self.sizes.held {
                self.next = Some(fetch);
                return None;
            }
            if fetch.block + 1 < self.begun {
                // The program is past it, and the kernel brought what it touched.
                self.held.insert(fetch.chunk);
                self.last = fetch.block;
                continue;
            }
            return Some(fetch);
        }
    }

    fn plan(&mut self) -> Option<Fetch> {
        let start = Instant::now();
        // A stream that is behind: better to choose by little than to let the program wait.
        let starved = self.dry && self.begun >= self.last;
        let next = if starved { self.planner.hurry() } else { self.planner.next() };
        self.plan_s += start.elapsed().as_secs_f64();
        let Next::Step(Step { evict, fetch }) = next else { return None };
        self.going.extend(evict);
        Some(fetch)
    }

    /// Whether an event happens in `block`, so that its begin becomes known before the next one's.
    fn told_by_events(&self, block: u64) -> bool {
        let events = |block| self.planner.block_mark(block).map(|(events, _)| events);
        events(block + 1).is_some_and(|later| events(block).is_none_or(|now| now < later))
    }

    /// A chunk is being read, as a key or not.
    pub fn fetched(&mut self, fetch: Fetch, key: bool) {
        self.held.insert(fetch.chunk);
        self.last = fetch.block;
        self.since_key += 1;
        if key {
            self.since_key = 0;
            self.keys.push_back((fetch.chunk, fetch.block));
        }
        self.arriving.push_back((fetch, key));
    }

    /// Whether the plan has a chunk in memory.
    pub fn holds(&self, chunk: u32) -> bool {
        self.held.contains(&chunk)
    }

    /// Whether a key is out.
    pub fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// What to wait for when the plan wants more of a stream.
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        if self.dry { self.source.bell() } else { None }
    }

    /// Entries planned.
    pub fn planned(&self) -> u64 {
        self.planner.planned()
    }

    /// Seconds spent planning, reading the trace included.
    pub fn plan_s(&self) -> f64 {
        self.plan_s
    }
}

//! A trace that is followed: where the program is, and what the plan allows next.

use super::super::{KEY_EVERY, misleads};
use super::Sizes;
use crate::plan::{self, Eviction, Fetch, PlanStep, Planner, PlannerAnswer};
use crate::progress::TouchProgress;
use crate::settings::ProcessSettings;
use crate::sys::process;
use crate::trace::{TraceFeed, TraceSource};
use std::collections::{HashSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Major faults of a program after which its chunks are looked for.
const SEARCH_FAULTS: u64 = 256;
/// Blocks ahead of the program at which its hash is compared when nothing else is waited for.
const WATCH_AHEAD: u64 = 16;
/// Steps planned ahead at least.
const STEPS: usize = 8;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// Send this chunk away.
    Evict(Eviction),
    /// Start to read this chunk, wanted as a key or not; say by [`PlannedProgram::fetched`] what it became.
    Fetch(Fetch, bool),
    /// Map this chunk, but for its first page when it is a key.
    Map(Fetch, bool),
    /// Nothing, until the program moved or the trace has more.
    Wait,
}

/// Which chunks are to be looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Search {
    No,
    /// Those that the plan holds: the kernel took some away. [`PlannedProgram::bring_back`] is to be told.
    Held,
    /// All, because the plan stood still: the program may have overtaken it by far.
    /// [`PlannedProgram::strayed`] is to be told, too.
    All,
}

/// The plan as far as it is carried out.
#[derive(Debug)]
pub(super) struct PlannedProgram {
    source: TraceSource,
    /// The ring has nothing now.
    dry: bool,
    planner: Planner,
    plan_s: f64,
    sizes: Sizes,
    /// The fetch that waits for room; its evictions are in `going`.
    next: Option<Fetch>,
    /// What is planned after it.
    steps: VecDeque<PlanStep>,
    /// Fetches that the program was past: what it brought by its own touches may have left since.
    passed: VecDeque<Fetch>,
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
    /// Major faults of the program when its chunks were looked for last, and `begun` then.
    faults: u64,
    seen: u64,
    /// Chunks fetched, and chunks touched that no plan foresaw.
    fetched: u64,
    misses: u64,
    /// All faults of the program when its touches were looked at last.
    looked: u64,
}

/// Faults of the program's own threads, of the kind that `of` takes.
pub(super) fn faults(of: impl Fn(&process::Usage) -> u64) -> u64 {
    let ours = process::usage_of_thread();
    of(&process::usage_of_process()).saturating_sub(of(&ours))
}

impl PlannedProgram {
    /// Follows `source` within `sizes`.
    pub fn new(source: TraceSource, settings: &ProcessSettings, sizes: Sizes) -> Result<Self, String> {
        let capacity = sizes.capacity;
        let lookahead = if settings.lookahead == 0 { plan::window(capacity) } else { settings.lookahead };
        Ok(Self {
            source,
            dry: false,
            planner: Planner::new(capacity, settings.microset, lookahead)?,
            plan_s: 0.0,
            sizes,
            next: None,
            steps: VecDeque::new(),
            passed: VecDeque::new(),
            going: VecDeque::new(),
            arriving: VecDeque::new(),
            held: HashSet::new(),
            keys: VecDeque::new(),
            since_key: 0,
            last: 0,
            begun: 0,
            faults: 0,
            seen: 0,
            fetched: 0,
            misses: 0,
            looked: 0,
        })
    }

    /// Gives the planner what it wants, as far as it is there.
    pub fn feed(&mut self) -> Result<(), String> {
        self.dry = false;
        let start = Instant::now();
        while self.planner.wants() && !self.dry {
            match self.source.next()? {
                TraceFeed::Block(block) => self.planner.push(block),
                TraceFeed::Wait => self.dry = true,
                TraceFeed::End(footer) => self.planner.finish(&footer),
            }
        }
        self.plan_s += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Learns from events and keys which blocks have begun, and watches for the next one that matters.
    pub fn observe(&mut self, progress: &TouchProgress, touched: impl Fn(u32) -> bool) -> Result<(), String> {
        if progress.diverged() {
            return Err(
                "the program allocates otherwise than its trace says: another build, other arguments or \
                        inputs, or accesses that depend on data"
                    .into(),
            );
        }
        if misleads(self.misses, self.fetched) {
            return Err(format!(
                "the program touched {} chunks that its trace does not foresee",
                self.misses
            ));
        }
        let (events, _) = progress.so_far();
        while self.planner.block_mark(self.begun).is_some_and(|(mark, _)| mark < events) {
            self.begun += 1;
        }
        // The last key that was touched says it of those before: a program need not touch the first page of
        // each.
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

    /// Looks whether the program has overtaken the plan: it touched chunks that are next to be fetched, and
    /// the kernel brought them. Says whether that told more of where it is. `strayed`: whether a chunk is
    /// there that the plan does not hold. Nothing is looked at while the program did not fault.
    pub fn overtaken(&mut self, strayed: impl Fn(u32) -> bool) -> bool {
        let faults = faults(|usage| usage.major_faults + usage.minor_faults);
        if std::mem::replace(&mut self.looked, faults) == faults {
            return false;
        }
        let ahead = |fetch: &&Fetch| fetch.block >= self.begun && !self.held.contains(&fetch.chunk);
        let steps = self.next.iter().chain(self.steps.iter().map(|step| &step.fetch)).filter(ahead);
        let last = steps.filter(|fetch| strayed(fetch.chunk)).last().map(|fetch| fetch.block);
        self.begin(last)
    }

    /// A chunk is there that the plan does not hold: it was touched for its first use ahead, or a later one.
    /// Says whether the trace foresees one.
    pub fn strayed(&mut self, chunk: u32) -> bool {
        let mut steps = self.next.iter().chain(self.steps.iter().map(|step| &step.fetch));
        let planned = steps.find(|fetch| fetch.chunk == chunk).map(|fetch| fetch.block);
        let first = planned.or_else(|| self.planner.first_use(chunk, usize::MAX));
        self.begin(first);
        // A stream that is behind the program does not foresee what it does now.
        first.is_some() || self.dry
    }

    /// A chunk was touched that the trace does not foresee.
    pub fn missed(&mut self) {
        self.misses += 1;
    }

    /// A block has begun. Says whether that is news.
    fn begin(&mut self, block: Option<u64>) -> bool {
        let news = block.is_some_and(|block| block >= self.begun);
        if let (true, Some(block)) = (news, block) {
            self.begun = block + 1;
        }
        news
    }

    /// Whether the program, which had `faults` major faults so far, faults and faults while the plan has
    /// nothing to do, and which chunks are to be looked for then.
    pub fn search(&mut self, faults: u64) -> Search {
        if faults < self.faults + SEARCH_FAULTS {
            return Search::No;
        }
        self.faults = faults;
        let moved = std::mem::replace(&mut self.seen, self.begun) != self.begun;
        if moved { Search::Held } else { Search::All }
    }

    /// Chunks are away: those of them that should be here come in again.
    pub fn bring_back(&mut self, away: impl IntoIterator<Item = u32>) {
        let busy = |chunk| {
            self.keys.iter().map(|key| key.0).any(|key| key == chunk)
                || self.arriving.iter().any(|(fetch, _)| fetch.chunk == chunk)
        };
        let again = |chunk| Fetch { chunk, block: self.last, place: 0, fresh: false, clean: false };
        let wanted = away.into_iter().filter(|chunk| self.held.contains(chunk) && !busy(*chunk));
        self.passed = wanted.map(again).collect();
    }

    /// What is to be done now: evictions before fetches, mapping when there is nothing else or enough is
    /// being read.
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
            // At least four keys among those that came early.
            let every = KEY_EVERY.min((self.sizes.held - self.sizes.capacity) / 4);
            let due = full || self.since_key + 1 >= every as u64;
            // Of a block that has begun the touch may be past, and would never tell.
            let ahead = fetch.block >= self.begun && !self.held.contains(&fetch.chunk);
            return Turn::Fetch(fetch, due && ahead && !self.told_by_events(fetch.block));
        }
        match self.arriving.pop_front() {
            Some((fetch, key)) => Turn::Map(fetch, key),
            None => Turn::Wait,
        }
    }

    /// The next chunk to read, if there is room. One that is still here stays.
    fn take_fetch(&mut self) -> Option<Fetch> {
        while let Some(fetch) = self.next.take().or_else(|| self.plan()) {
            if let Some(at) = self.going.iter().position(|going| going.chunk == fetch.chunk) {
                // Its departure was for later: it need not go at all.
                self.going.remove(at);
                self.last = fetch.block;
                continue;
            }
            if self.held.len() >= self.sizes.held {
                self.next = Some(fetch);
                return self.make_up();
            }
            if fetch.block + 1 < self.begun {
                // The program is past it, and the kernel brought what it touched.
                self.held.insert(fetch.chunk);
                self.last = fetch.block;
                self.passed.push_back(fetch);
                continue;
            }
            let again = self.make_up();
            if again.is_some() {
                self.next = Some(fetch);
            }
            return again.or(Some(fetch));
        }
        self.make_up()
    }

    /// A chunk that the program was past when its turn came, now that the plan is ahead again, and that the
    /// plan still holds: it may have been sent away in between.
    fn make_up(&mut self) -> Option<Fetch> {
        while let Some(fetch) = self.passed.pop_front() {
            let stays = self.going.iter().all(|going| going.chunk != fetch.chunk);
            if stays && self.held.contains(&fetch.chunk) {
                return Some(fetch);
            }
        }
        None
    }

    /// The next fetch, whose evictions may go from now on.
    fn plan(&mut self) -> Option<Fetch> {
        let start = Instant::now();
        // As far as a program may overtake them in a moment.
        let ahead = 2 * (self.sizes.held - self.sizes.capacity) + STEPS;
        while self.steps.len() <= ahead {
            // A stream that is behind: better to choose by little than to let the program wait.
            let starved = self.dry && self.steps.is_empty() && self.begun >= self.last;
            let next = if starved { self.planner.hurry() } else { self.planner.next() };
            let PlannerAnswer::Step(step) = next else { break };
            self.steps.push_back(step);
        }
        self.plan_s += start.elapsed().as_secs_f64();
        let PlanStep { evict, fetch } = self.steps.pop_front()?;
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
        self.last = self.last.max(fetch.block);
        self.since_key += 1;
        self.fetched += 1;
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

    /// Whether only looks at what was touched tell when to go on: a key is out, or a fetch waits for room
    /// that no event will make.
    pub fn must_look(&self) -> bool {
        let waits = self.going.front().is_some_and(|going| !self.told_by_events(going.after));
        !self.keys.is_empty() || self.next.is_some() && waits
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Footer, Header, TraceBlock, TraceEntry, Writer};
    use std::collections::HashMap;

    const CHUNKS: u32 = 400;

    /// A plan for passes over chunks in order, without events, and the kernel's part: which chunks are
    /// mapped.
    struct Play {
        program: PlannedProgram,
        progress: TouchProgress,
        /// Chunks fetched, keys or not, and whether they are mapped.
        fetched: Vec<(u32, bool)>,
        mapped: HashMap<u32, bool>,
    }

    impl Play {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("folder");
            let path = folder.path().join("trace");
            let header = Header { chunk: 65536, region: 1 << 30, microset: 8, key: 0 };
            let mut writer = Writer::create(&path, &header).expect("writable");
            for number in 0..2 * CHUNKS / 8 {
                let entry = |at| TraceEntry {
                    chunk: (8 * number + at) % CHUNKS,
                    written: true,
                    fresh: 8 * number < CHUNKS,
                };
                let block = TraceBlock { events: 0, hash: 0, entries: (0..8).map(entry).collect() };
                writer.block(&block).expect("written");
            }
            let footer =
                Footer { entries: 2 * u64::from(CHUNKS), peak_chunks: CHUNKS.into(), other_bytes: 0 };
            writer.finish(&footer).expect("finished");
            let source = TraceSource::open(&path, &header).expect("good");
            let settings = ProcessSettings { microset: 8, ..ProcessSettings::default() };
            let program = PlannedProgram::new(source, &settings, Sizes::of(200)).expect("room");
            let progress = TouchProgress::new().expect("event descriptor");
            Self { program, progress, fetched: Vec::new(), mapped: HashMap::new() }
        }

        /// Goes on until the plan waits for the program, which has touched the first pages of `touched`.
        fn go(&mut self, touched: &[u32]) {
            self.program.feed().expect("a whole trace");
            loop {
                self.program.observe(&self.progress, |chunk| touched.contains(&chunk)).expect("fits");
                match self.program.turn() {
                    Turn::Evict(eviction) => drop(self.mapped.remove(&eviction.chunk)),
                    Turn::Fetch(fetch, key) => {
                        self.fetched.push((fetch.chunk, key));
                        self.program.fetched(fetch, key);
                    }
                    Turn::Map(fetch, key) => drop(self.mapped.insert(fetch.chunk, key)),
                    Turn::Wait => return,
                }
            }
        }

        fn keys(&self) -> Vec<u32> {
            self.fetched.iter().filter(|(_, key)| *key).map(|&(chunk, _)| chunk).collect()
        }
    }

    /// A program need not touch the first page of every key: the last one that it touched tells of all before
    /// it.
    #[test]
    fn a_key_tells_of_those_before_it() {
        let mut play = Play::new();
        play.go(&[]);
        let keys = play.keys();
        assert!(keys.len() > 3 && play.program.begun == 0, "{keys:?}");
        play.go(&keys[2..3]);
        assert_eq!(play.program.begun, u64::from(keys[2]) / 8 + 1, "the block of that key has begun");
        assert!(play.program.keys.iter().all(|(chunk, _)| !keys[..3].contains(chunk)), "told, all three");
    }

    /// The program went on while the plan slept: what it touched that is still to be fetched tells where it
    /// is.
    #[test]
    fn touches_of_what_is_to_be_fetched_tell() {
        let mut play = Play::new();
        play.go(&[]);
        let next = play.fetched.len() as u32;
        play.program.looked = u64::MAX;
        assert!(!play.program.overtaken(|_| false), "nothing was touched");
        play.program.looked = u64::MAX;
        assert!(play.program.overtaken(|chunk| (next..next + 9).contains(&chunk)));
        assert_eq!(play.program.begun, u64::from(next + 8) / 8 + 1);
        play.go(&[]);
        assert!(play.fetched.len() as u32 > next, "the plan goes on");
        // Beyond all that is planned, found by a search.
        let far = play.fetched.len() as u32 + 100;
        play.program.strayed(far);
        assert_eq!(play.program.begun, u64::from(far) / 8 + 1);
    }

    /// What the program was past is not fetched at its turn; of that the plan holds some for the next pass,
    /// and those come in once the plan is ahead again.
    #[test]
    fn what_was_passed_comes_in_if_it_is_still_held() {
        let mut play = Play::new();
        play.program.feed().expect("a whole trace");
        play.program.strayed(100);
        play.go(&[]);
        let fetched: Vec<u32> = play.fetched.iter().map(|&(chunk, _)| chunk).collect();
        let (ahead, late): (Vec<u32>, Vec<u32>) = fetched.iter().partition(|&&chunk| chunk >= 96);
        assert_eq!(
            fetched[..97],
            (0..97).collect::<Vec<_>>(),
            "what is held, before what is next: {fetched:?}"
        );
        assert!(
            late.iter().all(|chunk| play.program.held.contains(chunk)) && ahead.len() > 50,
            "{fetched:?}"
        );
        let keys = play.keys();
        assert!(late.iter().all(|chunk| !keys.contains(chunk)), "their touches are past: {keys:?}");
    }

    /// A program that faults is looked for, whether it goes on or not; but no more often than that pays.
    #[test]
    fn faults_start_a_search() {
        let mut play = Play::new();
        play.go(&[]);
        assert_eq!(play.program.search(SEARCH_FAULTS - 1), Search::No);
        assert_eq!(play.program.search(SEARCH_FAULTS), Search::All, "the plan stood still");
        assert_eq!(play.program.search(SEARCH_FAULTS + 9), Search::No);
        play.program.strayed(20);
        assert_eq!(play.program.search(2 * SEARCH_FAULTS), Search::Held, "the program went on, slowly");
        assert_eq!(play.program.search(3 * SEARCH_FAULTS), Search::All);
    }

    /// The kernel took chunks away that the plan holds: they come in again, but for keys and those that the
    /// plan lets go.
    #[test]
    fn what_the_kernel_took_comes_back() {
        let mut play = Play::new();
        play.go(&[]);
        let (before, key) = (play.fetched.len(), play.keys()[0]);
        play.program.bring_back([0, 1, key, CHUNKS - 1]);
        play.go(&[]);
        assert_eq!(play.fetched[before..], [(0, false), (1, false)], "neither a key nor what is not held");
        assert!(play.program.held.len() <= play.program.sizes.held, "no more than may be");
    }
}

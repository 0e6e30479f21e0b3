//! Paging by advice to the kernel: engines `file` and `hint`.
//!
//! **Functionality.** The region is ordinary memory that the kernel pages: a shared mapping of an unlinked
//! file (`file`), or anonymous memory with the system's swap (`hint`, the paper's way). A thread follows the
//! plan and tells the kernel what to read ahead and map, and what to write back and drop. Needs no privilege.
//!
//! **What must hold.** Advice never changes content, so any trace gives correct results. Dead chunks are
//! therefore written like others: to drop one, its content would have to be gone before the allocator is
//! asked, and the kernel would hand a faulting program an empty page without asking us.
//!
//! **Who learns what.** Chunks go to the disk in the clear: nobody picks these engines but on request.
//!
//! **Where the program is.** By its events where they differ from block to block. Where they stand still, one
//! fetched chunk in [`KEY_EVERY`](super::KEY_EVERY), and the last one there is room for, is brought into the
//! cache without mapping its first page: a *key*. The page is mapped once the program touched it, and
//! `/proc/self/pagemap` says so. The kernel tells nobody about that touch, so the thread looks every
//! [`KEY_MS`] while a key is out. A program may be faster than that and overtake the plan: then it has
//! touched chunks that are still to be fetched, which are mapped although nobody mapped them. That tells,
//! too. What it is past is not fetched; what of that the plan still holds and has left since comes back once
//! the plan is ahead. The kernel may also take away what the plan holds, when a memory group is full for a
//! moment, or because it looks for pages that rest (DAMON): one fault each for the program. If it faults and
//! faults while the plan has nothing to do, the thread looks at the chunks that it holds and brings those
//! back, and at all chunks if the plan stood still, too; for one that waits for a page without touching it
//! nothing does. Chunks smaller than 64 KiB under `file` may seem touched when a neighbour is read: the
//! kernel maps what is in its cache around a fault. These engines are for comparison; `move` gets a message.
//!
//! **The limit.** The plan keeps within it. Touches that no plan foresaw are the kernel's to serve: when more
//! is resident than the limit allows, chunks that the plan does not hold are sent away in the order of the
//! region, which is also all there is without a trace. The check happens every [`CHECK_MS`]; a cgroup, where
//! the launcher may have one, is exact.
//!
//! **Paper and deviations.** MIN instead of hints by lookahead; chunks are mapped ahead (MADV_POPULATE_*),
//! which saves the minor fault per page of the swap cache; whole chunks.
//!
//! **Counts.** `stalls`: major faults of the program's own threads since the start, each of them a page that
//! it waited for. `bytes_read`: pages that were not mapped when the plan had their chunk read, and one page
//! for each stall; what the kernel reads around a stall without a plan is not in it. `bytes_written`: mapped
//! pages of chunks sent away, without those that the plan takes for clean; the kernel writes none that is
//! clean. `first_touches`, `key_faults`: chunks mapped by the plan that held nothing yet, and keys.
//! `dropped_dead` stays 0.
//!
//! **Cost.** Two to four system calls per chunk moved; at least 50 wake-ups per second.

mod program;
mod room;
mod way;

use crate::plan::{Eviction, Fetch};
use crate::progress::TouchProgress;
use crate::region::PagedRegion;
use crate::settings::{PagingEngine, PassMode, ProcessSettings};
use crate::stats::Stats;
use crate::sys::own::tell;
use crate::sys::{self, PAGE, advise, process};
use crate::trace::TraceSource;
use program::{PlannedProgram, Search, Turn};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use way::Way;

/// How often a key is looked at.
const KEY_MS: i32 = 1;
/// How often the limit is looked at.
const CHECK_MS: i32 = 20;
/// One chunk held in as many is for those that came before others could leave.
const BUFFER_SHARE: usize = 8;
/// Chunks that are being read or written at once, at most, and one frame in as many.
const DEPTH: (usize, usize) = (16, 32);
/// One byte of the limit in as many is for what a cgroup counts beside: page tables, and pages on their way
/// out.
const SLACK_SHARE: u64 = 32;

/// How the chunks that fit are shared out.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// All.
    frames: usize,
    /// Being written, beside those held; and as many of those held being read.
    depth: usize,
    /// Held by the plan, with what came early.
    held: usize,
    /// Held by the plan.
    capacity: usize,
}

impl Sizes {
    fn of(frames: usize) -> Self {
        let depth = (frames / DEPTH.1).clamp(1, DEPTH.0);
        let held = frames.saturating_sub(depth);
        Self { frames, depth, held, capacity: held - held.div_ceil(BUFFER_SHARE) }
    }
}

/// A running engine. Stop it before the region goes.
#[derive(Debug)]
pub(crate) struct Advisor {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    stats: Mutex<Stats>,
    stop: OwnedFd,
    stopping: AtomicBool,
}

impl Shared {
    fn stats(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, text: String) {
        if !self.stats().warnings.contains(&text) {
            tell(&format!("osprey: warning: {text}\n"));
            self.stats().warnings.push(text);
        }
    }
}

impl Advisor {
    /// Counters so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats().clone()
    }

    /// Ends the thread; the region stays as it is, paged by the kernel.
    pub fn stop(self) -> Stats {
        self.shared.stopping.store(true, Ordering::Release);
        sys::ring_bell(self.shared.stop.as_fd());
        if self.thread.join().is_err() {
            self.shared.warn("the pager's thread failed: the kernel paged alone from then on".into());
        }
        self.shared.stats().clone()
    }
}

/// Starts an engine, `file` or `hint`, on a region that was not touched yet.
///
/// # Errors
/// In words: no limit, one too small for two blocks of the trace (with the least), no swap, a folder that
/// cannot be written, a disk too full.
pub(crate) fn start(
    engine: PagingEngine,
    settings: &ProcessSettings,
    region: Arc<PagedRegion>,
    progress: Arc<TouchProgress>,
    source: Option<TraceSource>,
) -> Result<Advisor, String> {
    let sizes = Sizes::of(frames(settings, source.as_ref())?);
    let peak = source.as_ref().and_then(TraceSource::footer).map_or(0, |footer| footer.peak_chunks);
    let way = Way::prepare(engine, settings, region.clone(), peak, sizes.depth)?;
    let system = |e: io::Error| format!("cannot start the pager: {e}");
    let mode = if source.is_some() { settings.mode } else { PassMode::Reactive };
    if source.is_none() {
        way.alone().map_err(system)?;
    }
    let program = source.map(|source| PlannedProgram::new(source, settings, sizes)).transpose()?;
    let stats = Stats {
        mode: mode.to_string(),
        engine: engine.to_string(),
        chunk: settings.chunk as u64,
        frames: sizes.frames as u64,
        ..Stats::default()
    };
    let (stop, stopping) = (sys::eventfd().map_err(system)?, AtomicBool::new(false));
    let shared = Arc::new(Shared { stats: Mutex::new(stats), stop, stopping });
    let pagemap = advise::Pagemap::open().map_err(system)?;
    let low = settings.memory - (sizes.depth * settings.chunk) as u64;
    let mover = Mover {
        way,
        region,
        pagemap,
        shared: shared.clone(),
        memory: settings.memory,
        low,
        hand: 0,
        lingering: HashSet::new(),
        faults: process::usage_of_process().major_faults,
    };
    let worker = move || run(mover, program, &progress);
    let thread = std::thread::Builder::new().name("osprey-pager".into()).spawn(worker).map_err(system)?;
    Ok(Advisor { shared, thread })
}

/// Chunks that fit beside the rest of the process.
fn frames(settings: &ProcessSettings, source: Option<&TraceSource>) -> Result<usize, String> {
    if settings.memory == 0 {
        return Err("there is nothing to page without a limit: set OSPREY_MEMORY".into());
    }
    let known = source.and_then(TraceSource::footer).map_or(0, |footer| footer.other_bytes);
    let other = known.max(way::resident_bytes());
    let usable = settings.memory - settings.memory / SLACK_SHARE;
    let frames = (usable.saturating_sub(other) / settings.chunk as u64) as usize;
    let two_blocks = 2 * settings.microset;
    let least = (two_blocks..).find(|&frames| Sizes::of(frames).capacity >= two_blocks).unwrap_or(usize::MAX);
    if frames < least {
        return Err(format!(
            "a limit of {} bytes is too small: the process needs {other} beside the region and {least} \
             chunks of {} bytes in it, so at least {}",
            settings.memory,
            settings.chunk,
            (other + (least * settings.chunk) as u64) * SLACK_SHARE / (SLACK_SHARE - 1) + 1
        ));
    }
    Ok(frames)
}

/// The thread: follows the plan while there is one, and keeps the limit.
fn run(mut mover: Mover, mut program: Option<PlannedProgram>, progress: &TouchProgress) {
    while !mover.shared.stopping.load(Ordering::Acquire) {
        progress.hush();
        if let Some(followed) = &mut program
            && let Err(reason) = follow(followed, &mut mover, progress)
        {
            mover.shared.warn(format!("{reason}; from here on the kernel pages by what is touched"));
            mover.shared.stats().mode = PassMode::Reactive.to_string();
            program = None;
            if let Err(error) = mover.way.alone() {
                mover.shared.warn(format!("the kernel refused advice: {error}"));
            }
        }
        if let Err(error) = mover.keep_limit(program.as_mut()) {
            mover.shared.warn(format!("the kernel refused advice: {error}"));
        }
        mover.count(program.as_ref());
        let mut bells = vec![progress.bell(), mover.shared.stop.as_fd()];
        bells.extend(program.as_ref().and_then(PlannedProgram::bell));
        let ms = if program.as_ref().is_some_and(PlannedProgram::must_look) { KEY_MS } else { CHECK_MS };
        if let Err(error) = advise::wait(&bells, ms) {
            return mover.shared.warn(format!("the pager cannot wait: {error}"));
        }
    }
    mover.count(program.as_ref());
}

/// Does all that the plan allows now.
fn follow(program: &mut PlannedProgram, mover: &mut Mover, progress: &TouchProgress) -> Result<(), String> {
    program.feed()?;
    let refused = |error: io::Error| format!("the kernel refused advice: {error}");
    let mut looks = 0;
    while !mover.shared.stopping.load(Ordering::Acquire) {
        program.observe(progress, |chunk| mover.touched(chunk))?;
        match program.turn() {
            Turn::Evict(eviction) => mover.evict(eviction).map_err(refused)?,
            Turn::Fetch(fetch, key) => {
                let away = mover.fetch(fetch).map_err(refused)?;
                program.fetched(fetch, key && away);
            }
            Turn::Map(fetch, key) => mover.map(fetch, key).map_err(refused)?,
            Turn::Wait if program.overtaken(|chunk| mover.strayed(chunk)) => {}
            Turn::Wait => break,
        }
        looks += 1;
        if looks % 64 == 0 {
            mover.keep_limit(Some(program)).map_err(refused)?;
            mover.count(Some(program));
            program.feed()?;
        }
    }
    match program.search(program::faults(|usage| usage.major_faults)) {
        Search::No => {}
        found => mover.search(program, found == Search::All),
    }
    mover.count(Some(program));
    Ok(())
}

/// Carries out, counts, and keeps the limit.
#[derive(Debug)]
struct Mover {
    way: Way,
    region: Arc<PagedRegion>,
    pagemap: advise::Pagemap,
    shared: Arc<Shared>,
    /// The limit, and what is aimed at when it is exceeded.
    memory: u64,
    low: u64,
    /// Where the search for chunks that nobody planned goes on.
    hand: u32,
    /// Chunks that were sent away and are still mapped in part.
    lingering: HashSet<u32>,
    /// Major faults of the program's threads at the start.
    faults: u64,
}

impl Mover {
    /// Whether the first page of a chunk is mapped.
    fn touched(&self, chunk: u32) -> bool {
        self.pagemap.mapped(self.region.address(chunk), PAGE).is_ok_and(|pages| pages > 0)
    }

    /// Whether the program touched a chunk that the plan does not hold.
    fn strayed(&self, chunk: u32) -> bool {
        !self.lingering.contains(&chunk)
            && !self.way.is_leaving(chunk)
            && self.mapped(chunk).is_ok_and(|n| n > 0)
    }

    /// Tells the plan of chunks that it holds and that are away, and, with `strays`, of those that are there
    /// and that it does not hold.
    fn search(&self, program: &mut PlannedProgram, strays: bool) {
        let all = self.region.chunk() / PAGE;
        let mut away = Vec::new();
        for chunk in 0..self.region.reach() {
            if program.holds(chunk) {
                away.extend(self.mapped(chunk).is_ok_and(|pages| pages < all).then_some(chunk));
            } else if strays && self.strayed(chunk) {
                program.strayed(chunk);
            }
        }
        program.bring_back(away);
    }

    /// Pages of a chunk that are mapped.
    fn mapped(&self, chunk: u32) -> io::Result<usize> {
        self.pagemap.mapped(self.region.address(chunk), self.region.chunk())
    }

    fn evict(&mut self, eviction: Eviction) -> io::Result<()> {
        let pages = self.push_out(eviction.chunk)?;
        let mut stats = self.shared.stats();
        if eviction.clean {
            stats.dropped_clean += 1;
        } else {
            stats.bytes_written += (pages * PAGE) as u64;
        }
        Ok(())
    }

    /// Sends a chunk away. Pages of it that were mapped.
    fn push_out(&mut self, chunk: u32) -> io::Result<usize> {
        let pages = self.mapped(chunk)?;
        self.way.push_out(chunk)?;
        // What the kernel did not let go of now says nothing about the program.
        if !self.way.is_leaving(chunk) && self.mapped(chunk)? > 0 {
            self.lingering.insert(chunk);
        } else {
            self.lingering.remove(&chunk);
        }
        Ok(pages)
    }

    /// Starts to read. Whether the chunk was away: if its first page is mapped then, the program has touched
    /// it.
    fn fetch(&mut self, fetch: Fetch) -> io::Result<bool> {
        self.lingering.remove(&fetch.chunk);
        if self.way.keep(fetch.chunk) {
            return Ok(false);
        }
        let (here, all) = (self.mapped(fetch.chunk)?, self.region.chunk() / PAGE);
        let mut stats = self.shared.stats();
        if fetch.fresh {
            stats.first_touches += 1;
            return Ok(here == 0);
        }
        stats.bytes_read += ((all - here) * PAGE) as u64;
        drop(stats);
        if here < all {
            self.way.read_ahead(fetch.chunk)?;
        }
        Ok(here == 0)
    }

    fn map(&mut self, fetch: Fetch, key: bool) -> io::Result<()> {
        if key {
            self.shared.stats().key_faults += 1;
        }
        self.way.map(fetch.chunk, if key { PAGE } else { 0 }, !fetch.clean)
    }

    /// Counts what the program waited for, our own time, and how far the plan is.
    fn count(&mut self, program: Option<&PlannedProgram>) {
        let ours = process::usage_of_thread();
        let faults = process::usage_of_process().major_faults.saturating_sub(ours.major_faults);
        let stalls = faults.saturating_sub(self.faults);
        let mut stats = self.shared.stats();
        stats.bytes_read += stalls.saturating_sub(stats.stalls) * PAGE as u64;
        stats.stalls = stalls.max(stats.stalls);
        stats.pager_cpu_s = (ours.user + ours.system).as_secs_f64();
        if let Some(program) = program {
            (stats.trace_entries, stats.plan_s) = (program.planned(), program.plan_s());
        }
    }

    /// Sends chunks away that the plan does not hold, while more is resident than is allowed.
    fn keep_limit(&mut self, mut program: Option<&mut PlannedProgram>) -> io::Result<()> {
        let mut resident = way::resident_bytes();
        if resident <= self.memory {
            return Ok(());
        }
        let reach = self.region.reach();
        for _ in 0..reach {
            if resident <= self.low {
                break;
            }
            self.hand = if self.hand + 1 < reach { self.hand + 1 } else { 0 };
            if program.as_ref().is_some_and(|program| program.holds(self.hand))
                || self.mapped(self.hand)? == 0
            {
                continue;
            }
            // That it was touched is known only until it has left.
            if let Some(program) = &mut program
                && self.strayed(self.hand)
                && !program.strayed(self.hand)
            {
                program.missed();
            }
            let bytes = (self.push_out(self.hand)? * PAGE) as u64;
            self.shared.stats().bytes_written += bytes;
            resident = resident.saturating_sub(bytes);
        }
        self.way.settle()
    }
}

#[cfg(test)]
mod tests;

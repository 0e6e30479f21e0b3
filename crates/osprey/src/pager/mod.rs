//! Paging of the region by one thread: by plan while there is one that fits, by what is touched otherwise.
//!
//! **Functionality.** The region's chunks have memory for `frames` of them; the others are in a file without
//! a name. With a trace the thread brings chunks in before the program touches them and takes out those that
//! are wanted last (MIN, see [`crate::plan`]). Without one, or when it turns out not to fit the run, who came
//! first leaves first, with a second chance.
//!
//! **What must hold.** Every touch finds the chunk as the program left it (zeros where nothing was yet), with
//! any trace; a touch of a missing chunk is always served. The memory of chunks never exceeds the frames.
//! Nothing is left on disk however the process ends.
//!
//! **Who learns what.** What is on disk is encrypted ([`cipher`]); whoever watches the disk sees when and how
//! many chunks move, which is public by assumption. Frames and region are in no core dump and in no child.
//!
//! **Paper and deviations.** Paper 004 advises the kernel (`madvise`, swap), page by page; here whole chunks
//! move by userfaultfd and io_uring ([`mover`], [`transfers`]): no copy, no page fault, no swap, encrypted.
//! The kernel's advice is kept for comparison ([`advise`]).
//!
//! **Cost.** Per chunk of 64 KiB that goes out and comes in: two moves, two transfers of at least 256 KiB
//! between several, AES over it twice. `docs/osprey/paging.md` has the figures and the commands.

mod advise;
mod budget;
mod chunks;
mod cipher;
mod frames;
mod mover;
mod pressure;
mod programmed;
mod reactive;
mod schedule;
mod spill;
#[cfg(test)]
mod tests;
mod transfers;
mod worker;

use crate::progress::TouchProgress;
use crate::region::PagedRegion;
use crate::settings::{PagingEngine, PassMode, ProcessSettings};
use crate::stats::Stats;
use crate::sys::own::{Footprint, exit_now, tell};
use crate::trace::TraceSource;
use schedule::FrameShares;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The program ends with this when paging cannot go on: no room on disk, or the disk fails.
pub(crate) const EXIT_PAGING: i32 = 74;
/// Frames without which paging makes no sense.
const FRAMES_MIN: usize = 16;
/// Percent of the frames that fetches run ahead in.
const BUFFER_PERCENT: usize = 15;
/// Frames of that buffer at least, and of large chunks, of which the limit has few: as many as make up
/// `BUFFER_BYTES`.
const BUFFER_MIN: (usize, usize) = (3, 8);
const BUFFER_BYTES: usize = 2 << 20;
/// Frames for touches that nobody expected, likewise.
const RESERVE: (usize, usize) = (2, 4);
const RESERVE_BYTES: usize = 1 << 20;
/// Chunks from this size on take less of the frames to run ahead in: one transfer of them is long enough.
const LARGE: usize = 1 << 20;
const BUFFER_PERCENT_LARGE: usize = 10;
/// Percent of the limit that is left for what nobody counts.
const SLACK_PERCENT: u64 = 2;
/// Bytes, and percent of the limit, that the process may grow by beside the region before frames are given up
/// for it: the larger of them.
const GROWTH: u64 = 4 << 20;
const GROWTH_PERCENT: u64 = 1;

/// Fetched chunks per key at most: those whose first touch tells where the program is.
const KEY_EVERY: usize = 32;
/// Touches that no plan foresaw, before a trace is given up; an eighth of all fetches is allowed on top.
const MISSES: u64 = 64;

/// Whether a trace is of no use for this run, by what it brought and by the touches that it does not have.
fn misleads(misses: u64, fetched: u64) -> bool {
    misses > MISSES + fetched / 8
}

/// A running pager. Stop it before the region goes.
#[derive(Debug)]
pub(crate) struct Pager(Kind);

#[derive(Debug)]
enum Kind {
    /// Everything fits: there is nothing to do.
    Idle(Stats),
    Thread {
        link: Arc<Link>,
        progress: Arc<TouchProgress>,
        thread: JoinHandle<()>,
    },
    Advisor(advise::Advisor),
}

/// What the thread shares with the program's.
#[derive(Debug)]
struct Link {
    stop: AtomicBool,
    stats: Mutex<Stats>,
}

/// What a thread starts from.
struct Job {
    settings: ProcessSettings,
    region: Arc<PagedRegion>,
    progress: Arc<TouchProgress>,
    source: Option<TraceSource>,
    frames: usize,
    shares: FrameShares,
}

/// Starts paging of a region that was not touched yet. Without a limit of memory, or with
/// [`PagingEngine::None`], nothing is done.
///
/// # Errors
/// In words, with what to do: the system does not permit what the engine needs, the spill directory cannot be
/// used, the limit is too small (with the least).
pub(crate) fn start(
    settings: &ProcessSettings,
    region: Arc<PagedRegion>,
    progress: Arc<TouchProgress>,
    source: Option<TraceSource>,
) -> Result<Pager, String> {
    let mode = if source.is_some() { settings.mode } else { PassMode::Reactive };
    let stats = Stats {
        mode: mode.to_string(),
        engine: settings.engine.to_string(),
        chunk: settings.chunk as u64,
        ..Stats::default()
    };
    match settings.engine {
        PagingEngine::None => return Ok(Pager(Kind::Idle(stats))),
        _ if settings.memory == 0 => return Ok(Pager(Kind::Idle(stats))),
        PagingEngine::File | PagingEngine::Hint => {
            let advisor = advise::start(settings.engine, settings, region, progress, source)?;
            return Ok(Pager(Kind::Advisor(advisor)));
        }
        PagingEngine::Move | PagingEngine::Copy => {}
    }
    let frames = frames(settings, &region, source.as_ref())?;
    let shares = shares(frames, settings.chunk);
    let link = Arc::new(Link { stop: AtomicBool::new(false), stats: Mutex::new(stats) });
    let job = Job { settings: settings.clone(), region, progress: progress.clone(), source, frames, shares };
    let (ready, started) = channel();
    let shared = link.clone();
    let thread = std::thread::Builder::new()
        .name("osprey-pager".into())
        .spawn(move || work(job, shared, ready))
        .map_err(|e| format!("cannot start the pager's thread: {e}"))?;
    started.recv().unwrap_or_else(|_| Err("the pager's thread failed at its start".into()))?;
    Ok(Pager(Kind::Thread { link, progress, thread }))
}

/// The thread. The program cannot go on without it: if it fails, the process ends with a message instead of
/// waiting.
fn work(job: Job, link: Arc<Link>, ready: Sender<Result<(), String>>) {
    let worker = match worker::Worker::new(job, link) {
        Ok(worker) => worker,
        // Nobody listens only if the starter is gone, and with it the process.
        Err(text) => return ready.send(Err(text)).unwrap_or(()),
    };
    ready.send(Ok(())).unwrap_or(());
    // A worker that fails must not be dropped: with its userfaultfd gone, whoever waits for a chunk would
    // find zeros.
    let mut worker = ManuallyDrop::new(worker);
    let text = match catch_unwind(AssertUnwindSafe(|| worker.serve())) {
        Ok(Ok(())) => return drop(ManuallyDrop::into_inner(worker)),
        Ok(Err(text)) => text,
        Err(_) => "the pager's thread failed; its message is above".into(),
    };
    // There may be no memory to say so with.
    worker.frames.staging.abandon();
    tell(&format!("osprey: {text}\n"));
    exit_now(EXIT_PAGING)
}

impl Pager {
    /// Counters so far.
    pub fn stats(&self) -> Stats {
        match &self.0 {
            Kind::Idle(stats) => stats.clone(),
            Kind::Thread { link, .. } => link.stats().clone(),
            Kind::Advisor(advisor) => advisor.stats(),
        }
    }

    /// Ends paging. Chunks that are only on disk are lost: a touch of one afterwards ends the program. Keys
    /// are wiped.
    pub fn stop(self) -> Stats {
        match self.0 {
            Kind::Idle(stats) => stats,
            Kind::Advisor(advisor) => advisor.stop(),
            Kind::Thread { link, progress, thread } => {
                link.stop.store(true, Ordering::Release);
                progress.ring();
                // A thread that failed has ended the process.
                thread.join().unwrap_or(());
                link.stats().clone()
            }
        }
    }
}

impl Link {
    fn stats(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something to the user, at once, and in the report.
    fn warn(&self, text: &str) {
        tell(&format!("osprey: warning: {text}\n"));
        self.note(text);
    }

    /// Says something in the report alone.
    fn note(&self, text: &str) {
        self.stats().warnings.push(text.into());
    }

    /// The run goes on without a plan.
    fn reactive(&self) {
        self.stats().mode = PassMode::Reactive.to_string();
    }

    /// Copies what the thread counts.
    fn publish(&self, counts: &Stats) {
        let mut stats = self.stats();
        stats.frames = counts.frames;
        stats.peak_chunks = counts.peak_chunks;
        stats.bytes_read = counts.bytes_read;
        stats.bytes_written = counts.bytes_written;
        stats.dropped_dead = counts.dropped_dead;
        stats.dropped_clean = counts.dropped_clean;
        stats.first_touches = counts.first_touches;
        stats.key_faults = counts.key_faults;
        stats.stalls = counts.stalls;
        stats.reliefs = counts.reliefs;
        stats.plan_s = counts.plan_s;
        stats.pager_cpu_s = counts.pager_cpu_s;
        stats.trace_entries = counts.trace_entries;
    }
}

/// What a number of frames of `chunk` bytes is used for by a plan.
fn shares(frames: usize, chunk: usize) -> FrameShares {
    let at_least = |(least, most): (usize, usize), bytes: usize| (bytes / chunk).clamp(least, most);
    let percent = if chunk >= LARGE { BUFFER_PERCENT_LARGE } else { BUFFER_PERCENT };
    let buffer = (frames * percent / 100).max(at_least(BUFFER_MIN, BUFFER_BYTES));
    let reserve = at_least(RESERVE, RESERVE_BYTES);
    FrameShares { capacity: frames.saturating_sub(buffer + reserve), buffer, reserve }
}

/// Frames without which a plan is not possible: those that hold two blocks.
fn least_frames(settings: &ProcessSettings) -> usize {
    let planned = 2 * settings.microset;
    (planned..).find(|&n| shares(n, settings.chunk).capacity >= planned).unwrap_or(usize::MAX)
}

/// Chunks that may have memory: the limit, less what the process needs beside the region, the pager's tables
/// and slack. [`budget`] corrects it as the run shows.
fn frames(
    settings: &ProcessSettings,
    region: &PagedRegion,
    source: Option<&TraceSource>,
) -> Result<usize, String> {
    let footer = source.and_then(TraceSource::footer);
    let now = Footprint::open().map_or(0, |footprint| footprint.bytes());
    let growth = budget::margin(settings.memory);
    let beside = footer.map_or(now, |footer| footer.other_bytes.max(now)) + growth;
    let chunk = settings.chunk as u64;
    // Per chunk in use its columns and page table, per frame its lists, page table and the window of a plan.
    let per_chunk = chunk / 512 + 80;
    let per_frame = chunk + chunk / 512 + 256;
    let tables = footer.map_or(0, |f| f.peak_chunks * per_chunk + 13 * settings.lookahead.min(f.entries));
    let spent = beside + tables + settings.memory * SLACK_PERCENT / 100;
    let frames = (settings.memory.saturating_sub(spent) / per_frame) as usize;
    let least = if source.is_some() { least_frames(settings) } else { FRAMES_MIN };
    if frames < least {
        let bytes = (beside + tables + least as u64 * per_frame) * 100 / (100 - SLACK_PERCENT);
        return Err(format!(
            "a limit of {} MiB is too small: the process needs {} MiB beside the region and {least} chunks \
             of {} KiB in it; allow at least {} MiB",
            settings.memory >> 20,
            beside.div_ceil(1 << 20),
            chunk >> 10,
            bytes.div_ceil(1 << 20) + 1
        ));
    }
    Ok(frames.min(region.chunks() + RESERVE.1))
}

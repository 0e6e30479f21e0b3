//! The pager's thread: one loop over touches, transfers, the plan and one wait.
//!
//! The invariant that keeps it alive: a touch of a chunk that is not there is always served, whatever the
//! plan says. It waits for a transfer in flight, or takes a frame; if there is none, somebody leaves, planned
//! or not; if nobody can leave because the disk is full, the process ends with a message. Nothing else ever
//! waits for the program.

use super::budget::{Budget, BudgetVerdict, least};
use super::chunks::{Chunks, EARLY, KEPT, PLANNED, State, UNWANTED, WANTED};
use super::cipher::Cipher;
use super::frames::Frames;
use super::mover::Mover;
use super::pressure::{HeapSupply, Pressure};
use super::reactive::TouchRun;
use super::schedule::{FrameSchedule, FrameShares};
use super::spill::Spill;
use super::transfers::FLIGHT;
use super::{Job, Link, shares};
use crate::progress::TouchProgress;
use crate::region::PagedRegion;
use crate::settings::PagingEngine;
use crate::stats::Stats;
use crate::sys::own::{block_signals, forbid, thread_seconds};
use crate::sys::staging::Staging;
use crate::sys::uffd::PageFault;
use crate::sys::uring::{Uring, UringEvent};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes that a batch of writes has at least, where nobody waits for its frames.
const BATCH: usize = 256 << 10;
/// Bytes that one transfer has at most.
const BATCH_MAX: usize = 512 << 10;
/// Turns after which the counters are published though there is more to do.
const PUBLISH_EVERY: u32 = 64;
/// Strangers that stay: what was touched last is probably still in use.
const RECENT: usize = 4;

/// How long a program's first touch waits for as much trace as a plan looks ahead, counted from the program's
/// start.
const HEAD_START: Duration = Duration::from_millis(500);

const FAULTS: usize = 0;
const BELL: usize = 1;
const PRESSURE: usize = 2;
const TRACE: usize = 3;

/// What one thread knows. Fields are dropped from the top: the ring before the frames that it transfers.
pub(super) struct Worker {
    pub ring: Uring,
    pub mover: Mover,
    pub frames: Frames,
    pub spill: Spill,
    pub cipher: Cipher,
    pub chunks: Chunks,
    pub region: Arc<PagedRegion>,
    pub progress: Arc<TouchProgress>,
    link: Arc<Link>,
    pub schedule: Option<FrameSchedule>,
    /// Chunks of every transfer in flight, by its number.
    pub transfers: Vec<MoveBatch>,
    /// Chunks being written, and read.
    pub writing: usize,
    pub reading: usize,
    /// Reads that are not handed over yet: of slots in a row.
    pub gathered: Vec<u32>,
    /// Those who left the region, in order, with their stamps and their next use.
    pub leavers: VecDeque<Leaver>,
    /// Resident chunks in the order of their arrival, with their stamps; some items are of the past.
    pub fifo: VecDeque<(u32, u32)>,
    /// Those of them that the plan does not know of.
    pub strangers: VecDeque<(u32, u32)>,
    /// Chunks that are touched and have no frame yet.
    pub demand: VecDeque<u32>,
    /// The file is full; nobody leaves until a slot is free.
    pub stuck: bool,
    /// Chunks that found no memory in the region wait outside to be written.
    turned_away: bool,
    pub run: TouchRun,
    pub batch: usize,
    pub batch_max: usize,
    pub counts: Stats,
    pub budget: Budget,
    pub pressure: Pressure,
    _supply: HeapSupply,
    /// Turns since the counters were published.
    unpublished: u32,
    /// Somebody waits, and no event will tell when to try again.
    again: bool,
    /// Chunks that hold something.
    pub chunks_now: u64,
    top: u32,
    touched: bool,
    trace_heard: bool,
    /// What happened since the last turn; kept for its memory.
    events: Vec<UringEvent>,
}

#[derive(Debug, Default)]
pub(super) struct MoveBatch {
    pub write: bool,
    pub chunks: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leaver {
    pub chunk: u32,
    pub stamp: u32,
    /// Block of its next use.
    pub next: u64,
}

/// Says what this system cannot do as well as another one.
fn say_limits(link: &Link, mover: &Mover, spill: &Spill) {
    if !mover.uffd().serves_kernel() {
        link.note(
            "userfaultfd serves touches by user code alone here: a system call on the region may fail with \
             EFAULT (allow it with vm.unprivileged_userfaultfd=1 or CAP_SYS_PTRACE)",
        );
    }
    if !spill.direct() {
        link.warn(
            "the spill directory cannot do direct transfers: the page cache uses memory beyond the limit",
        );
    }
}

/// A ring that hears the bells in the order of [`FAULTS`], [`BELL`] and [`PRESSURE`], and then that of the
/// trace.
fn open_ring(bells: [BorrowedFd<'_>; 3], trace: Option<BorrowedFd<'_>>) -> std::io::Result<Uring> {
    let mut ring = Uring::new()?;
    for bell in bells {
        ring.add(bell, true)?;
    }
    if let Some(bell) = trace {
        ring.add(bell, false)?;
    }
    Ok(ring)
}

impl Worker {
    /// # Errors
    /// In words, with what to do: no userfaultfd, io_uring, file, memory; a memory limit that is too small.
    pub fn new(job: Job, link: Arc<Link>) -> Result<Self, String> {
        block_signals();
        let Job { settings, region, progress, source, frames, shares } = job;
        let chunk = settings.chunk;
        let staging = Staging::new(frames, chunk).map_err(|e| format!("no address space for frames: {e}"))?;
        let planned = source.is_some();
        let copies = settings.engine == PagingEngine::Copy;
        let frames = Frames::new(staging, least(&settings, planned), copies);
        let mover = Mover::new(settings.engine, &region, &frames)?;
        let spill = Spill::open(&settings.spill, chunk)?;
        say_limits(&link, &mover, &spill);
        let schedule = source
            .map(|s| FrameSchedule::new(s, shares, settings.microset, settings.lookahead))
            .transpose()?;
        let pressure = Pressure::open(settings.pressure)
            .map_err(|e| format!("{} is no descriptor of ours: {e}", crate::settings::PRESSURE))?;
        let bells = [mover.uffd().fd(), progress.bell(), pressure.bell()];
        let ring = open_ring(bells, schedule.as_ref().and_then(FrameSchedule::bell)).map_err(|e| {
            format!(
                "io_uring does not work here ({e}): allow it (sysctl kernel.io_uring_disabled=0, container \
                 profile)"
            )
        })?;
        let count = frames.count();
        let counts = Stats { frames: count as u64, ..Stats::default() };
        Ok(Self {
            ring,
            mover,
            frames,
            spill,
            cipher: Cipher::new()?,
            chunks: Chunks::new(region.chunks()),
            region,
            progress,
            link,
            schedule,
            transfers: Vec::new(),
            writing: 0,
            reading: 0,
            gathered: Vec::new(),
            leavers: with_memory(2 * count),
            fifo: with_memory(queue_length(count)),
            strangers: with_memory(queue_length(count)),
            demand: VecDeque::new(),
            stuck: false,
            turned_away: false,
            run: TouchRun::default(),
            // A batch may fall apart into a transfer per chunk, and all of them must find room.
            batch: (BATCH / chunk).clamp(1, FLIGHT / 2),
            batch_max: (BATCH_MAX / chunk).clamp(1, FLIGHT / 2),
            counts,
            budget: Budget::new(&settings, planned)?,
            pressure,
            _supply: HeapSupply::new(),
            unpublished: 0,
            again: false,
            chunks_now: 0,
            top: 0,
            touched: false,
            trace_heard: false,
            events: Vec::new(),
        })
    }

    /// Serves until it is told to stop, then ends what is in flight.
    ///
    /// # Errors
    /// In words: the program cannot go on. The worker must then live until the process has ended.
    pub fn serve(&mut self) -> Result<(), String> {
        // The program sets itself up meanwhile; its first touch waits.
        if let Some(schedule) = &mut self.schedule {
            schedule.head_start(HEAD_START);
        }
        while !self.link.stop.load(Ordering::Acquire) {
            let more = self.turn()?;
            self.unpublished += 1;
            let idle = !more && self.reading + self.writing == 0;
            if idle || self.unpublished >= PUBLISH_EVERY {
                self.publish();
            }
            self.hear(!more)?;
        }
        while self.reading + self.writing > 0 {
            self.hear(true)?;
        }
        self.leave_safe()
    }

    fn hear(&mut self, wait: bool) -> Result<(), String> {
        let mut events = std::mem::take(&mut self.events);
        self.ring
            .wait(wait, self.budget.patience(), &mut events)
            .map_err(|e| format!("io_uring failed: {e}"))?;
        events.drain(..).try_for_each(|event| self.happened(event))?;
        self.events = events;
        Ok(())
    }

    fn happened(&mut self, event: UringEvent) -> Result<(), String> {
        match event {
            UringEvent::Ready(FAULTS) => self.touched = true,
            UringEvent::Ready(BELL) => self.progress.hush(),
            UringEvent::Ready(PRESSURE) => self.pressure.heard(),
            UringEvent::Ready(_) => self.trace_heard = false,
            UringEvent::Done(number, result) => self.transferred(number, result)?,
        }
        Ok(())
    }

    /// Does what can be done now. Says whether there is more, that only waited for touches to be looked at in
    /// between.
    fn turn(&mut self) -> Result<bool, String> {
        if std::mem::take(&mut self.touched) {
            let text = |e: std::io::Error| format!("userfaultfd failed: {e}");
            while let Some(fault) = self.mover.uffd().next().map_err(text)? {
                self.fault(fault)?;
            }
        }
        self.stuck &= !self.spill.has_room();
        self.keep_budget()?;
        self.serve_demand()?;
        let more = if self.schedule.is_some() { self.programmed()? } else { self.reactive()? };
        self.serve_demand()?;
        self.start_gathered()?;
        self.listen_to_trace()?;
        Ok(more || std::mem::take(&mut self.again))
    }

    /// Gives frames up when the process needs their memory for something else.
    pub fn keep_budget(&mut self) -> Result<(), String> {
        self.answer_pressure();
        let (size, counts) = (self.region.chunk() as u64, &self.counts);
        let moved = counts.bytes_read + counts.bytes_written + counts.first_touches * size;
        let frames = match self.budget.look(moved, self.frames.live(), self.frames.count()) {
            BudgetVerdict::Fits => self.frames.count(),
            BudgetVerdict::Lower(frames) => frames,
            BudgetVerdict::TooMuch(frames, beside) => {
                self.link.warn(&format!(
                    "the process uses {} MiB beside the region: more than its limit leaves, whatever is \
                     paged; allow more",
                    beside >> 20
                ));
                frames
            }
        };
        if frames < self.frames.count() {
            self.frames.lower(frames);
        }
        let frames = self.frames.count();
        if (frames as u64) < self.counts.frames {
            self.counts.frames = frames as u64;
            if let Some(schedule) = &mut self.schedule {
                schedule.lower(shares(frames, self.region.chunk()));
            }
        }
        for _ in (self.writing + self.leavers.len())..self.frames.excess() {
            if let Some(chunk) = self.victim()?
                && !self.leave(chunk, u64::MAX)?
            {
                break;
            }
        }
        if self.frames.excess() > self.writing || self.frames.is_spare_lent() {
            self.flush(true)?;
        }
        self.write_turned_away()
    }

    /// Chunks that found no memory in the region are written, so that their frames serve others to leave, and
    /// come in when their turn is. Where the disk is full they take their frames' memory along, whatever that
    /// means for others.
    fn write_turned_away(&mut self) -> Result<(), String> {
        if !self.turned_away {
            return Ok(());
        }
        self.flush(true)?;
        if self.stuck {
            self.drop_stale_leavers();
            let waited_for = self.leavers.iter().map(|leaver| leaver.chunk);
            let waited_for: Vec<u32> = waited_for.filter(|&chunk| self.chunks.has(chunk, WANTED)).collect();
            waited_for.into_iter().try_for_each(|chunk| self.enter(chunk))?;
        }
        self.turned_away = !self.stuck && !self.leavers.is_empty();
        Ok(())
    }

    fn listen_to_trace(&mut self) -> Result<(), String> {
        let starved = self.schedule.as_ref().is_some_and(|s| s.starved && s.bell().is_some());
        if starved && !std::mem::replace(&mut self.trace_heard, true) {
            self.ring.listen(TRACE).map_err(|e| format!("io_uring failed: {e}"))?;
        }
        Ok(())
    }

    fn fault(&mut self, fault: PageFault) -> Result<(), String> {
        let Some(chunk) = self.region.chunk_of(fault.address) else { return Ok(()) };
        self.top = self.top.max(chunk);
        match self.chunks.state(chunk) {
            State::Resident => self.mover.wake(&self.region, chunk, fault.protected)?,
            State::Held => {
                self.counts.key_faults += 1;
                self.began(chunk);
                self.chunks.set(chunk, WANTED, true);
                self.enter(chunk)?;
            }
            State::Out if self.chunks.has(chunk, WANTED) => {}
            State::Out => {
                self.counts.stalls += 1;
                self.surprised(chunk);
                self.chunks.set(chunk, WANTED, true);
                self.enter(chunk)?;
            }
            State::Reading => {
                self.counts.stalls += 1;
                self.began(chunk);
                self.chunks.set(chunk, WANTED, true);
            }
            State::Writing => {
                self.counts.stalls += 1;
                self.surprised(chunk);
                self.chunks.set(chunk, WANTED, true);
            }
            State::Disk | State::New if self.chunks.has(chunk, WANTED) => {}
            State::Disk | State::New => {
                self.counts.stalls += 1;
                self.surprised(chunk);
                self.chunks.set(chunk, WANTED, true);
                self.demand.push_back(chunk);
            }
        }
        Ok(())
    }

    /// The touch of a chunk that the plan brings in for some block tells that the block has begun; not if the
    /// chunk had to leave while it was still in use for an earlier one.
    fn began(&mut self, chunk: u32) {
        let tells = self.chunks.has(chunk, PLANNED) && !self.chunks.has(chunk, EARLY);
        if let (Some(schedule), true) = (&mut self.schedule, tells) {
            schedule.began(self.chunks.due(chunk));
        }
    }

    fn surprised(&mut self, chunk: u32) {
        let early = self.chunks.has(chunk, EARLY | PLANNED);
        if let (Some(schedule), false) = (&mut self.schedule, early) {
            schedule.surprised(chunk, &self.progress);
        }
    }

    /// Gives frames to chunks that are touched, in the order of the touches.
    fn serve_demand(&mut self) -> Result<(), String> {
        while let Some(&chunk) = self.demand.front() {
            let state = self.chunks.state(chunk);
            if matches!(state, State::Disk | State::New) {
                if self.frames.available() == 0 {
                    self.make_room()?;
                }
                if self.frames.available() == 0 || !self.ring.has_room() {
                    return Ok(());
                }
                let begun =
                    if state == State::Disk { self.start_read(chunk)? } else { self.begin_new(chunk)? };
                if !begun {
                    continue;
                }
                self.read_ahead(chunk)?;
            }
            self.demand.pop_front();
        }
        Ok(())
    }

    /// Lets somebody leave for a touch that has no frame.
    ///
    /// # Errors
    /// When nobody can, and nothing in flight will change that.
    fn make_room(&mut self) -> Result<(), String> {
        if self.writing > 0 {
            return Ok(());
        }
        self.drop_stale_leavers();
        for _ in self.leavers.len()..self.batch {
            if self.frames.available() > 0 {
                return Ok(());
            }
            let Some(chunk) = self.victim()? else { break };
            self.leave(chunk, u64::MAX)?;
        }
        self.flush(true)?;
        let hopeless = self.frames.available() == 0 && self.writing == 0 && self.reading == 0;
        if hopeless && self.stuck {
            return Err(self.spill.full());
        }
        // All that is here is pinned for a moment by calls of the program's: there is nothing to wait for but
        // them.
        self.again = hopeless;
        Ok(())
    }

    /// A resident chunk that can best be missed: one the plan does not know of, else one that it lets go now,
    /// else the one it brought for the block that is furthest, else the one it lets go last, else who came
    /// first. Keys that nobody touched go back at once. Whoever the plan still counts on comes back as
    /// planned, by a fetch or a touch.
    fn victim(&mut self) -> Result<Option<u32>, String> {
        if self.is_overtaken()
            && let Some(first) = self.first_in()
        {
            return Ok(Some(first));
        }
        if let Some(stranger) = self.stranger(RECENT) {
            return Ok(Some(stranger));
        }
        while let Some(eviction) = self.schedule.as_mut().and_then(FrameSchedule::leaver) {
            if self.chunks.state(eviction.chunk) == State::Resident {
                self.chunks.set(eviction.chunk, PLANNED, false);
                return Ok(Some(eviction.chunk));
            }
            self.depart(eviction)?;
        }
        if let Some(chunk) = self.counted_on() {
            self.chunks.set(chunk, EARLY, true);
            return Ok(Some(chunk));
        }
        if let Some(key) = self.schedule.as_mut().and_then(FrameSchedule::last_key)
            && self.chunks.state(key) == State::Held
        {
            self.drop_held(key);
            return Ok(None);
        }
        Ok(self.first_in())
    }

    /// Of the resident chunks that the plan counts on: one that was brought ahead, or one that leaves as late
    /// as any.
    fn counted_on(&mut self) -> Option<u32> {
        let (schedule, chunks) = (self.schedule.as_mut()?, &self.chunks);
        let resident = |chunk| chunks.state(chunk) == State::Resident;
        let ahead = schedule.take_back(|chunk, block| {
            resident(chunk) && chunks.has(chunk, PLANNED) && chunks.due(chunk) == block
        });
        ahead.or_else(|| {
            let waiting = schedule.waiting().filter(|&(chunk, _)| resident(chunk));
            waiting.max_by_key(|&(_, after)| after).map(|(chunk, _)| chunk)
        })
    }

    /// A resident chunk that the plan does not know of, if there are more than `keep`.
    pub fn stranger(&mut self, keep: usize) -> Option<u32> {
        while self.strangers.len() > keep {
            let (chunk, stamp) = self.strangers.pop_front()?;
            let here = self.chunks.state(chunk) == State::Resident && self.chunks.stamp(chunk) == stamp;
            if here && !self.chunks.has(chunk, PLANNED) {
                return Some(chunk);
            }
        }
        None
    }

    /// The resident chunk that came first.
    pub fn first_in(&mut self) -> Option<u32> {
        while let Some((chunk, stamp)) = self.fifo.pop_front() {
            if self.chunks.state(chunk) == State::Resident && self.chunks.stamp(chunk) == stamp {
                return Some(chunk);
            }
        }
        None
    }

    /// A chunk that holds nothing gets a frame of zeros; `false` when the one that was available got no
    /// memory, and is not available any more.
    pub fn begin_new(&mut self, chunk: u32) -> Result<bool, String> {
        let Some(frame) = self.frames.take_zeroed() else { return Ok(false) };
        self.chunks.set_frame(chunk, frame);
        self.counts.first_touches += 1;
        self.chunks_now += 1;
        self.counts.peak_chunks = self.counts.peak_chunks.max(self.chunks_now);
        self.top = self.top.max(chunk);
        self.settle(chunk).map(|()| true)
    }

    /// What is ready in a frame goes into the region, or waits there as a key.
    fn settle(&mut self, chunk: u32) -> Result<(), String> {
        if self.hold_back(chunk) { Ok(()) } else { self.enter(chunk) }
    }

    /// Has what is ready in a frame wait there as a key, if one is due; says whether it does.
    pub fn hold_back(&mut self, chunk: u32) -> bool {
        let planned = self.chunks.has(chunk, PLANNED) && !self.chunks.has(chunk, WANTED);
        if let (true, Some(schedule)) = (planned, &mut self.schedule) {
            let due = self.chunks.due(chunk);
            if schedule.choose_key(due) {
                schedule.hold(due, chunk);
                self.chunks.set_state(chunk, State::Held);
                return true;
            }
        }
        false
    }

    /// Puts a chunk into the region. When there is no memory for it, it is out, and others leave first.
    pub fn enter(&mut self, chunk: u32) -> Result<(), String> {
        self.enter_now(chunk, !self.stuck)
    }

    fn enter_now(&mut self, chunk: u32, may_wait: bool) -> Result<(), String> {
        let frame = self.chunks.frame(chunk);
        let moved = self.mover.enter(&mut self.frames, frame, &self.region, chunk, may_wait);
        if moved.map_err(|e| refusal("a chunk cannot be put into the region", &e))? {
            self.entered(chunk);
        } else {
            self.turn_away(chunk, frame);
        }
        Ok(())
    }

    /// What found no memory in the region is as if it had been there and had left.
    fn turn_away(&mut self, chunk: u32, frame: u32) {
        if !self.chunks.has(chunk, KEPT) {
            self.free_slot(chunk);
        }
        self.left(chunk, frame, u64::MAX);
        self.turned_away = true;
        if self.chunks.has(chunk, WANTED) && self.chunks.state(chunk) != State::Out {
            self.demand.push_back(chunk);
        }
    }

    /// Puts chunks into the region, in one call those in a row that are in frames in a row.
    pub fn enter_rows(&mut self, chunks: &mut [u32]) -> Result<(), String> {
        chunks.sort_unstable();
        let frames: Vec<(u32, u32)> = chunks.iter().map(|&chunk| (chunk, self.chunks.frame(chunk))).collect();
        for row in frames.chunk_by(|a, b| (a.0 + 1, a.1 + 1) == *b) {
            let ((chunk, frame), count) = (row[0], row.len() as u32);
            if count == 1 || !self.mover.has_rows() {
                row.iter().try_for_each(|&(chunk, _)| self.enter(chunk))?;
                continue;
            }
            let moved = self.mover.enter_row(&mut self.frames, frame, &self.region, chunk, count);
            moved.map_err(|e| refusal("chunks cannot be put into the region", &e))?;
            row.iter().for_each(|&(chunk, _)| self.entered(chunk));
        }
        Ok(())
    }

    fn entered(&mut self, chunk: u32) {
        self.chunks.set_state(chunk, State::Resident);
        self.chunks.set(chunk, WANTED | UNWANTED | EARLY, false);
        if !self.chunks.has(chunk, KEPT) {
            self.free_slot(chunk);
        }
        let stamp = self.chunks.restamp(chunk);
        self.fifo.push_back((chunk, stamp));
        if self.schedule.is_some() && !self.chunks.has(chunk, PLANNED) {
            self.strangers.push_back((chunk, stamp));
        }
        self.drop_stale_arrivals();
    }

    /// Keeps the queues of resident chunks within what they were made for, so that they need no more memory.
    fn drop_stale_arrivals(&mut self) {
        let (most, chunks) = (queue_length(self.frames.staging.count()), &self.chunks);
        for queue in [&mut self.fifo, &mut self.strangers] {
            if queue.len() >= most {
                queue.retain(|&(c, stamp)| chunks.state(c) == State::Resident && chunks.stamp(c) == stamp);
            }
        }
    }

    /// Takes a resident chunk out of the region; `false` when something has its pages pinned. What is dead or
    /// as on disk is done with then; the rest is among the leavers.
    pub fn leave(&mut self, chunk: u32, next: u64) -> Result<bool, String> {
        let left = self.mover.leave(&mut self.frames, &self.region, chunk);
        let Some(frame) = left.map_err(|e| refusal("a chunk cannot be taken out of the region", &e))? else {
            let stamp = self.chunks.restamp(chunk);
            self.fifo.push_back((chunk, stamp));
            if self.schedule.is_some() {
                self.strangers.push_back((chunk, stamp));
            }
            self.drop_stale_arrivals();
            return Ok(false);
        };
        self.left(chunk, frame, next);
        Ok(true)
    }

    /// Takes resident chunks, in order, with their next use, out of the region: in one call those in a row
    /// that get frames in a row. One that is pinned stays.
    pub fn leave_rows(&mut self, chunks: &[(u32, u64)]) -> Result<(), String> {
        let mut frames: Vec<u32> = chunks.iter().map(|_| self.frames.take_hollow()).collect();
        frames.sort_unstable();
        let all: Vec<(u32, u64, u32)> =
            chunks.iter().zip(frames).map(|(&(chunk, next), frame)| (chunk, next, frame)).collect();
        for row in all.chunk_by(|a, b| (a.0 + 1, a.2 + 1) == (b.0, b.2)) {
            let ((chunk, _, frame), count) = (row[0], row.len() as u32);
            let left = self.mover.leave_row(&mut self.frames, frame, &self.region, chunk, count);
            let left = left.map_err(|e| refusal("chunks cannot be taken out of the region", &e))?;
            let (gone, here) = row.split_at(left as usize);
            gone.iter().for_each(|&(chunk, next, frame)| self.left(chunk, frame, next));
            here.iter().for_each(|&(.., frame)| self.frames.emptied(frame));
            for &(chunk, next, _) in here {
                self.leave(chunk, next)?;
            }
        }
        Ok(())
    }

    /// A chunk is out of the region, in a frame.
    fn left(&mut self, chunk: u32, frame: u32, next: u64) {
        let stamp = self.chunks.restamp(chunk);
        self.chunks.set_state(chunk, State::Out);
        self.chunks.set_frame(chunk, frame);
        // Only now, out of the program's reach: see `Region`.
        if !self.region.is_live(chunk) {
            return self.forget(chunk);
        }
        if self.chunks.has(chunk, KEPT) {
            self.chunks.set(chunk, KEPT, false);
            let slot = self.chunks.slot(chunk).expect("a place that is kept");
            if self.cipher.is_same(self.spill.sealed(slot), self.frames.staging.blocks(frame)) {
                self.counts.dropped_clean += 1;
                return self.back_to_disk(chunk);
            }
            self.free_slot(chunk);
        }
        self.leavers.push_back(Leaver { chunk, stamp, next });
    }

    /// A chunk outside the region, in which nothing is allocated, is as if it never had been.
    pub fn forget(&mut self, chunk: u32) {
        self.counts.dropped_dead += 1;
        self.chunks_now -= 1;
        self.chunks.set(chunk, KEPT, false);
        self.free_slot(chunk);
        self.chunks.set_state(chunk, State::New);
        self.frames.give(self.chunks.frame(chunk));
    }

    /// A chunk whose content is in its slot gives its frame back.
    pub fn back_to_disk(&mut self, chunk: u32) {
        self.chunks.set(chunk, UNWANTED, false);
        self.chunks.set_state(chunk, State::Disk);
        self.frames.give(self.chunks.frame(chunk));
    }

    /// A key that was not touched goes back to where it came from.
    pub fn drop_held(&mut self, chunk: u32) {
        self.chunks.set(chunk, KEPT, false);
        if self.chunks.slot(chunk).is_some() {
            self.back_to_disk(chunk);
        } else {
            self.chunks_now -= 1;
            self.chunks.set_state(chunk, State::New);
            self.frames.give(self.chunks.frame(chunk));
        }
    }

    pub fn free_slot(&mut self, chunk: u32) {
        if let Some(slot) = self.chunks.take_slot(chunk) {
            self.spill.free(slot);
        }
    }

    /// Gives up the plan: paging goes on by what is touched.
    pub fn give_up_plan(&mut self, why: &str) -> Result<(), String> {
        let Some(mut schedule) = self.schedule.take() else { return Ok(()) };
        self.counts.plan_s = schedule.spent.as_secs_f64();
        while let Some(key) = schedule.last_key() {
            if self.chunks.state(key) == State::Held {
                self.enter(key)?;
            }
        }
        self.strangers.clear();
        self.link.reactive();
        self.link.warn(&format!(
            "the trace does not fit this run ({why}): paging by what is touched; results are not affected"
        ));
        Ok(())
    }

    pub fn shares(&self) -> Option<FrameShares> {
        self.schedule.as_ref().map(FrameSchedule::shares)
    }

    fn publish(&mut self) {
        self.unpublished = 0;
        if let Some(schedule) = &self.schedule {
            self.counts.plan_s = schedule.spent.as_secs_f64();
            self.counts.trace_entries = schedule.entries();
        }
        self.counts.pager_cpu_s = thread_seconds();
        self.link.publish(&self.counts);
    }

    /// After the last touch served: what is in frames goes back into the region; chunks that are in the file
    /// alone are out of reach for good, so a touch of one must end the program and not give it zeros.
    fn leave_safe(&mut self) -> Result<(), String> {
        let mut gone = Vec::new();
        for chunk in 0..=self.top {
            match self.chunks.state(chunk) {
                State::New | State::Resident => {}
                State::Held | State::Out => self.enter_now(chunk, false)?,
                State::Disk | State::Reading | State::Writing => gone.push(chunk),
            }
        }
        let size = self.region.chunk();
        for run in gone.chunk_by(|a, b| a + 1 == *b) {
            let done = forbid(self.region.mapping(), run[0] as usize * size, run.len() * size);
            if done.is_err() {
                // Too many ranges for the system: then the whole region.
                let all = self.region.mapping().len();
                return forbid(self.region.mapping(), 0, all)
                    .map_err(|e| format!("cannot close the region: {e}"));
            }
        }
        self.publish();
        Ok(())
    }
}

/// Items of a queue of resident chunks at most, some of them of the past, with that many frames.
fn queue_length(frames: usize) -> usize {
    4 * frames + 64
}

/// A queue that has its memory already: the pager must not wait for some while it is asked to give some up.
fn with_memory<T: Clone + Default>(items: usize) -> VecDeque<T> {
    let mut queue = VecDeque::from(vec![T::default(); items + 1]);
    queue.iter_mut().for_each(|item| *item = std::hint::black_box(T::default()));
    queue.clear();
    queue
}

/// Why a chunk did not move, with what to do where memory is what lacks.
fn refusal(what: &str, error: &std::io::Error) -> String {
    let advice = match error.kind() {
        std::io::ErrorKind::OutOfMemory => {
            ": the process needs more beside the region than was foreseen; allow more memory"
        }
        _ => "",
    };
    format!("{what}: {error}{advice}")
}

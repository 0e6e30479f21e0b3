//! Carrying out the plan.

use super::chunks::{CLEAN, EARLY, PLANNED, State, UNWANTED, WANTED};
use super::schedule::{FrameSchedule, MADE_UP};
use super::worker::Worker;
use crate::plan::{Eviction, Fetch, PlanStep};

/// Fetches between two looks at what was touched.
const AT_ONCE: usize = 16;
/// Chunks that leave in one go at most.
const LEAVE_AT_ONCE: usize = 64;
/// Steps that are only booked, between two such looks.
const BOOKED_AT_ONCE: usize = 4096;

impl Worker {
    /// Lets go who may leave, fetches ahead as far as frames allow. Says whether there is more to do at once.
    pub fn programmed(&mut self) -> Result<bool, String> {
        if let Some(why) = self.doubt() {
            self.give_up_plan(&why)?;
            return Ok(true);
        }
        while let Some(key) = self.plan().release() {
            if self.chunks.state(key) == State::Held {
                self.enter(key)?;
            }
        }
        match self.catch_up() {
            Ok(false) => {}
            Ok(true) => return Ok(true),
            Err(why) => {
                self.give_up_plan(&why)?;
                return Ok(true);
            }
        }
        if self.is_overtaken() {
            self.reactive()?;
        }
        let mut blocked = false;
        let mut more = true;
        for _ in 0..AT_ONCE {
            self.keep_budget()?;
            self.depart_all()?;
            let Some(fetch) = self.plan().head() else {
                more = false;
                break;
            };
            if !self.fetch(fetch)? {
                (blocked, more) = (true, false);
                break;
            }
            self.plan().fetched(fetch);
        }
        self.start_gathered()?;
        self.flush(false)?;
        if blocked {
            self.unblock()?;
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.watch(&self.progress);
        }
        Ok(more)
    }

    /// Books what the program has done without the plan; says whether there is more of that. The error is the
    /// trace's.
    fn catch_up(&mut self) -> Result<bool, String> {
        for _ in 0..BOOKED_AT_ONCE {
            let Some(schedule) = &mut self.schedule else { return Ok(false) };
            let Some(step) = schedule.passed(&self.progress)? else {
                let chunks = &self.chunks;
                schedule.make_up(&self.progress, |chunk| {
                    chunks.has(chunk, PLANNED)
                        && !matches!(chunks.state(chunk), State::Resident | State::Reading)
                });
                return Ok(false);
            };
            self.book(&step);
        }
        Ok(true)
    }

    /// What a step means for the plan, without moving anything: who leaves by it may go when a frame is
    /// wanted.
    fn book(&mut self, step: &PlanStep) {
        for eviction in &step.evict {
            let chunk = eviction.chunk;
            self.chunks.set(chunk, PLANNED, false);
            match self.chunks.state(chunk) {
                State::Resident => self.strangers.push_back((chunk, self.chunks.stamp(chunk))),
                State::Held => self.drop_held(chunk),
                _ => {}
            }
        }
        let chunk = step.fetch.chunk;
        self.chunks.set(chunk, CLEAN | UNWANTED, false);
        self.chunks.set_due(chunk, step.fetch.block);
        let here = matches!(self.chunks.state(chunk), State::Resident | State::Reading);
        self.chunks.set(chunk, PLANNED | if here { 0 } else { EARLY }, true);
    }

    /// Whether the program is beyond what is known of the trace: until that changes it is paged by what it
    /// touches.
    pub fn is_overtaken(&self) -> bool {
        self.schedule.as_ref().is_some_and(|schedule| schedule.overtaken(&self.progress))
    }

    fn plan(&mut self) -> &mut FrameSchedule {
        self.schedule.as_mut().expect("only called with a plan")
    }

    /// Why the trace is of no use, if it is not; otherwise takes what there is of it.
    fn doubt(&mut self) -> Option<String> {
        let diverged = self.progress.diverged();
        let schedule = self.schedule.as_mut()?;
        if diverged {
            return Some("allocations differ from those in the trace".into());
        }
        if schedule.misleads() {
            return Some("chunks are touched that it does not have there".into());
        }
        schedule.locate(&self.progress);
        schedule.fill().err()
    }

    /// The next fetch has no frame: some of those leave whom the plan does not know of, so that touches
    /// nobody expected do not eat the buffer up (the last one stays: it is in use); and if nothing is being
    /// written, what is out is written now, batch or not.
    fn unblock(&mut self) -> Result<(), String> {
        self.drop_stale_leavers();
        let wanted = self.plan().shares().reserve + self.batch;
        while self.frames.available() + self.writing + self.leavers.len() < wanted
            && let Some(stranger) = self.stranger(1)
        {
            if !self.leave(stranger, u64::MAX)? {
                break;
            }
        }
        self.flush(self.writing == 0)
    }

    /// Carries out a fetch; `false` when there is no frame for it now.
    fn fetch(&mut self, fetch: Fetch) -> Result<bool, String> {
        let chunk = fetch.chunk;
        if fetch.place == MADE_UP && !self.chunks.has(chunk, PLANNED) {
            return Ok(true);
        }
        let mut state = self.chunks.state(chunk);
        if matches!(state, State::Disk | State::New) && !self.may_fetch() {
            if !self.plan().is_past(fetch.block) {
                return Ok(false);
            }
            // The plan has fallen behind the program, which has touched this chunk already, and it has left
            // again: the way to catch up is not to bring it back. If it is touched once more, that tells
            // nothing.
            self.chunks.set(chunk, PLANNED | EARLY, true);
            return Ok(true);
        }
        if state == State::Disk && fetch.fresh && !self.region.is_live(chunk) {
            self.free_slot(chunk);
            self.chunks.set_state(chunk, State::New);
            self.chunks_now -= 1;
            state = State::New;
        }
        self.chunks.set(chunk, PLANNED, true);
        self.chunks.set(chunk, CLEAN, fetch.clean);
        self.chunks.set(chunk, UNWANTED, false);
        self.chunks.set_due(chunk, fetch.block);
        match state {
            State::Resident | State::Reading | State::Held => {}
            // A copy that left by the spare frame keeps that until it is written: the next needs it to leave.
            State::Out if self.frames.excess() > 0 && !self.mover.has_rows() => return Ok(false),
            State::Out => self.enter(chunk)?,
            // Nobody waits for it yet, and its frame is what is to come free.
            State::Writing if self.frames.are_owed() => return Ok(false),
            State::Writing => self.chunks.set(chunk, WANTED, true),
            State::New => return self.begin_new(chunk),
            State::Disk => return self.start_read(chunk),
        }
        Ok(true)
    }

    fn may_fetch(&self) -> bool {
        let reserve = self.shares().map_or(0, |shares| shares.reserve);
        self.frames.available() > reserve && self.ring.has_room() && self.demand.is_empty()
    }

    /// Carries out the evictions that are due. Chunks in a row leave in one call if there are frames in a
    /// row: so hollow frames are dealt out in order.
    fn depart_all(&mut self) -> Result<(), String> {
        loop {
            let schedule = self.plan();
            let due = std::iter::from_fn(|| schedule.leaver());
            let mut due: Vec<Eviction> = due.take(LEAVE_AT_ONCE).collect();
            let more = due.len() == LEAVE_AT_ONCE;
            if self.mover.has_rows() {
                due.sort_unstable_by_key(|eviction| eviction.chunk);
                let chunks = &self.chunks;
                let row = due.extract_if(.., |eviction| chunks.state(eviction.chunk) == State::Resident);
                let row: Vec<(u32, u64)> = row.map(|e| (e.chunk, e.next.unwrap_or(u64::MAX))).collect();
                row.iter().for_each(|&(chunk, _)| self.chunks.set(chunk, PLANNED, false));
                self.leave_rows(&row)?;
            }
            due.into_iter().try_for_each(|eviction| self.depart(eviction))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Carries out an eviction.
    pub fn depart(&mut self, eviction: Eviction) -> Result<(), String> {
        let chunk = eviction.chunk;
        self.chunks.set(chunk, PLANNED, false);
        match self.chunks.state(chunk) {
            // One that is pinned stays, as one that the plan does not know of.
            State::Resident => drop(self.leave(chunk, eviction.next.unwrap_or(u64::MAX))?),
            State::Held => self.drop_held(chunk),
            State::Reading => self.chunks.set(chunk, UNWANTED, true),
            State::New | State::Disk | State::Out | State::Writing => {}
        }
        Ok(())
    }
}

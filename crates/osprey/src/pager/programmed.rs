//! Carrying out the plan.

use super::chunks::{CLEAN, EARLY, PLANNED, State, UNWANTED, WANTED};
use super::schedule::Schedule;
use super::worker::Worker;
use crate::plan::{Eviction, Fetch};

/// Fetches between two looks at what was touched.
const AT_ONCE: usize = 16;

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
        let mut blocked = false;
        let mut more = true;
        for _ in 0..AT_ONCE {
            while let Some(eviction) = self.plan().leaver(false) {
                self.depart(eviction)?;
            }
            let Some(fetch) = self.plan().head() else {
                more = false;
                break;
            };
            if !self.fetch(fetch)? {
                (blocked, more) = (true, false);
                break;
            }
            self.plan().fetched();
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

    fn plan(&mut self) -> &mut Schedule {
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

    /// The next fetch has no frame: some of those leave whom the plan does not know of, so that touches nobody expected
    /// do not eat the buffer up; and if nothing is being written, what is out is written now, batch or not.
    fn unblock(&mut self) -> Result<(), String> {
        self.drop_stale_leavers();
        let wanted = self.plan().shares().reserve + self.batch;
        while self.frames.available() + self.writing + self.out.len() < wanted
            && let Some(stranger) = self.stranger(0)
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
        let mut state = self.chunks.state(chunk);
        if matches!(state, State::Disk | State::New) && !self.may_fetch() {
            if !self.plan().is_past(fetch.block) {
                return Ok(false);
            }
            // The plan has fallen behind the program, which has touched this chunk already, and it has left again: the
            // way to catch up is not to bring it back. If it is touched once more, that tells nothing.
            self.chunks.set(chunk, PLANNED | EARLY, true);
            return Ok(true);
        }
        if state == State::Disk && fetch.fresh && !self.region.is_live(chunk) {
            self.free_slot(chunk);
            state = State::New;
        }
        self.chunks.set(chunk, PLANNED, true);
        self.chunks.set(chunk, CLEAN, fetch.clean);
        self.chunks.set(chunk, UNWANTED, false);
        self.chunks.set_due(chunk, fetch.block);
        match state {
            State::Resident | State::Reading | State::Held => {}
            State::Out => self.enter(chunk)?,
            State::Writing => self.chunks.set(chunk, WANTED, true),
            State::New => self.begin_new(chunk)?,
            State::Disk => self.start_read(chunk)?,
        }
        Ok(true)
    }

    fn may_fetch(&self) -> bool {
        let reserve = self.shares().map_or(0, |shares| shares.reserve);
        self.frames.available() > reserve && self.ring.has_room() && self.demand.is_empty()
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

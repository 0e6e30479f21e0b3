//! Frames: which are free, and which are hollow because their pages are in the region.
//!
//! There are as many frames as chunks may have memory. Every one is free, in use by a chunk outside the
//! region, or hollow; there are exactly as many hollow ones as resident chunks, so the memory of all is
//! bounded by the number of frames. When fewer may have memory than there are, what comes free gives its
//! memory back until that is so.
//!
//! The system may have no memory for a frame that may have some, when the program has taken it for something
//! else: then there are no more frames than have memory at that moment. Nothing here waits for memory that
//! only the pager itself could free, but for a few pages where nothing else helps ([`Frames::scrape`]).

use crate::sys::staging::Staging;
use crate::sys::{PAUSE, TRIES};
use kernels::Block;

#[derive(Debug)]
pub(super) struct Frames {
    pub staging: Staging,
    free: Vec<u32>,
    hollow: Vec<u32>,
    /// Frames from this one on never had memory.
    untouched: u32,
    /// Frames that gave their memory back.
    idle: Vec<u32>,
    /// Chunks that may have memory, in frames and in the region.
    allowed: usize,
    /// Of those at least this many stay.
    least: usize,
    /// A free frame with memory that copies leave the region through when the system has none for another:
    /// see [`Frames::refill`]. Where it is lent, a frame that comes free takes its place; until then no frame
    /// gets memory that the lent one stands for, and whoever left through it does not take it along into the
    /// region.
    spare: Option<u32>,
    copies: bool,
    /// The system had no memory for something since this was asked last.
    short: bool,
}

impl Frames {
    /// None has memory yet. `least` of them stay whatever the system lacks; `copies`: chunks leave the region
    /// by being copied.
    pub fn new(staging: Staging, least: usize, copies: bool) -> Self {
        let count = staging.count();
        // All lists have their final size now, and memory: later there may be none.
        let list = || {
            let mut list = vec![u32::MAX; count];
            list.clear();
            list
        };
        let (free, hollow, idle) = (list(), list(), list());
        let mut frames = Self {
            staging,
            free,
            hollow,
            untouched: 0,
            idle,
            allowed: count,
            least,
            spare: None,
            copies,
            short: false,
        };
        frames.spare = copies.then(|| frames.first_use()).flatten();
        frames
    }

    /// Chunks that may have memory.
    pub fn count(&self) -> usize {
        self.allowed
    }

    /// Chunks that have memory, in frames and in the region.
    pub fn live(&self) -> usize {
        self.untouched as usize - self.idle.len()
    }

    /// Chunks that have memory and must not.
    pub fn excess(&self) -> usize {
        self.live().saturating_sub(self.allowed)
    }

    /// Frames are to be given up, or lent: whoever is written then does not take his back, though he is
    /// wanted. Otherwise chunks that find no memory in the region could be written and come back for ever,
    /// and nobody's frame come free.
    pub fn are_owed(&self) -> bool {
        self.is_spare_lent() || self.excess() > 0
    }

    /// The spare frame is in use: nobody else may be able to leave before one comes free.
    pub fn is_spare_lent(&self) -> bool {
        self.copies && self.spare.is_none()
    }

    /// A chunk finds no memory in the region. Whether it is to wait outside until others have left: then
    /// somebody can still be made to, or the frame it is in is what they leave through.
    pub fn must_wait(&mut self) -> bool {
        self.short = true;
        self.is_spare_lent() || self.live() > self.least
    }

    /// Whether the system had no memory for something since this was asked last.
    pub fn was_short(&mut self) -> bool {
        std::mem::take(&mut self.short)
    }

    /// Lowers the number of chunks that may have memory.
    pub fn lower(&mut self, allowed: usize) {
        self.allowed = self.allowed.min(allowed);
        for _ in 0..self.free.len().min(self.excess() + 1) {
            let frame = self.free.swap_remove(0);
            self.give(frame);
        }
    }

    /// Gives the memory of a free frame back for good, because the system has none for something else; says
    /// whether there was one.
    fn retire(&mut self) -> bool {
        let before = self.live();
        if !self.free.is_empty() && before > self.least {
            self.lower(before - 1);
        }
        self.live() < before
    }

    /// After a call that found no memory: a free frame gives its own up, or, where there is none, this thread
    /// waits for somebody to free a page. Whether the call is worth another try, of which `tries` were made
    /// so.
    pub fn scrape(&mut self, tries: &mut u32) -> bool {
        self.short = true;
        if self.retire() {
            return true;
        }
        *tries += 1;
        if *tries > 1 {
            std::thread::sleep(PAUSE);
        }
        self.staging.wait_for_memory();
        *tries <= TRIES
    }

    /// Frames that can be taken.
    pub fn available(&self) -> usize {
        let cold = self.staging.count() - self.live();
        self.free.len() + self.allowed.saturating_sub(self.bound()).min(cold)
    }

    /// Frames that have memory, or are promised some.
    fn bound(&self) -> usize {
        self.live() + usize::from(self.is_spare_lent())
    }

    /// A frame with any content. There may be none although some seemed available: the system had no memory
    /// for it, and they are not any more.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| self.first_use())
    }

    /// A frame of zeros, as [`Frames::take`].
    pub fn take_zeroed(&mut self) -> Option<u32> {
        if let Some(frame) = self.first_use() {
            return Some(frame);
        }
        let frame = self.free.pop()?;
        self.staging.blocks(frame).fill(Block::ZERO);
        Some(frame)
    }

    /// A frame that had no memory and now has, of zeros, if one may have some.
    fn first_use(&mut self) -> Option<u32> {
        if self.bound() >= self.allowed {
            return None;
        }
        let frame = self.cold()?;
        let mut tries = 0;
        while self.staging.populate(frame).is_err() {
            self.short = true;
            let others = self.live() - 1;
            if others >= self.least && self.staging.release(frame).is_ok() {
                self.idle.push(frame);
                self.allowed = self.allowed.min(others);
                return None;
            }
            if !self.scrape(&mut tries) {
                // A touch waits where a call fails.
                self.staging.blocks(frame).fill(Block::ZERO);
                break;
            }
        }
        Some(frame)
    }

    /// A frame without memory, and counted as one that has some.
    fn cold(&mut self) -> Option<u32> {
        self.idle.pop().or_else(|| {
            let frame = self.untouched;
            ((frame as usize) < self.staging.count()).then(|| {
                self.untouched += 1;
                frame
            })
        })
    }

    /// Gives memory to a hollow frame that a chunk is about to be copied to. When the system has none, a free
    /// one or the spare one takes its place, and so the chunk leaves without any; `None` when there is
    /// neither.
    pub fn refill(&mut self, frame: u32) -> Option<u32> {
        if self.staging.populate(frame).is_ok() {
            return Some(frame);
        }
        // No more frames need be given up for this: who leaves frees memory. What it has got of its own is
        // not in the count.
        self.staging.release(frame).ok()?;
        let way = self.free.pop().or_else(|| self.spare.take())?;
        self.idle.push(frame);
        Some(way)
    }

    /// Keeps a frame whose content was copied into the region as the spare one, if that is lent: another
    /// without memory is the hollow one then.
    pub fn keep_spare(&mut self, frame: u32) -> bool {
        if !self.is_spare_lent() {
            return false;
        }
        let Some(cold) = self.cold() else { return false };
        self.spare = Some(frame);
        self.hollow.push(cold);
        true
    }

    /// A frame is free. If too many have memory it gives its own back; where the system refuses that, it
    /// stays in use.
    pub fn give(&mut self, frame: u32) {
        if self.copies && self.spare.is_none() {
            self.spare = Some(frame);
        } else if self.excess() > 0 && self.staging.release(frame).is_ok() {
            self.idle.push(frame);
        } else {
            self.free.push(frame);
        }
    }

    /// The pages of a frame are in the region now.
    pub fn emptied(&mut self, frame: u32) {
        self.hollow.push(frame);
    }

    /// A frame that pages from the region are going to be moved to.
    ///
    /// # Panics
    /// When no chunk is resident.
    pub fn take_hollow(&mut self) -> u32 {
        self.hollow.pop().expect("a hollow frame per resident chunk")
    }
}

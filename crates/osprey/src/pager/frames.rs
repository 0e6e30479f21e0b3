//! Frames: which are free, and which are hollow because their pages are in the region.
//!
//! There are as many frames as chunks may have memory. Every one is free, in use by a chunk outside the region, or hollow;
//! there are exactly as many hollow ones as resident chunks, so the memory of all is bounded by the number of frames. When
//! fewer may have memory than there are, what comes free gives its memory back until that is so.

use crate::sys::staging::Staging;
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
}

impl Frames {
    pub fn new(staging: Staging) -> Self {
        let allowed = staging.count();
        Self { staging, free: Vec::new(), hollow: Vec::new(), untouched: 0, idle: Vec::new(), allowed }
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

    /// Lowers the number of chunks that may have memory.
    pub fn lower(&mut self, allowed: usize) {
        self.allowed = self.allowed.min(allowed);
        for frame in std::mem::take(&mut self.free) {
            self.give(frame);
        }
    }

    /// Gives the memory of a free frame back for good, because the system has none for something else; says whether there
    /// was one.
    pub fn retire(&mut self) -> bool {
        let before = self.live();
        if !self.free.is_empty() {
            self.lower(before - 1);
        }
        self.live() < before
    }

    /// Frames that can be taken.
    pub fn available(&self) -> usize {
        let cold = self.staging.count() - self.live();
        self.free.len() + self.allowed.saturating_sub(self.live()).min(cold)
    }

    /// A frame with any content.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| self.first_use())
    }

    /// A frame of zeros.
    pub fn take_zeroed(&mut self) -> Option<u32> {
        if let Some(frame) = self.first_use() {
            self.staging.populate(frame);
            return Some(frame);
        }
        let frame = self.free.pop()?;
        self.staging.blocks(frame).fill(Block::ZERO);
        Some(frame)
    }

    /// A frame without memory, if one may have some.
    fn first_use(&mut self) -> Option<u32> {
        if self.live() >= self.allowed {
            return None;
        }
        self.idle.pop().or_else(|| {
            let frame = self.untouched;
            ((frame as usize) < self.staging.count()).then(|| {
                self.untouched += 1;
                frame
            })
        })
    }

    /// A frame is free. If too many have memory it gives its own back; where the system refuses that, it stays in use.
    pub fn give(&mut self, frame: u32) {
        if self.excess() > 0 && self.staging.release(frame).is_ok() {
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

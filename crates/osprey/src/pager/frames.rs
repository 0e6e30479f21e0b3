//! Frames: which are free, and which are hollow because their pages are in the region.
//!
//! There are as many frames as chunks may have memory. Every one is free, in use by a chunk outside the region, or hollow;
//! there are exactly as many hollow ones as resident chunks, so the memory of all is bounded by the number of frames.

use crate::sys::staging::Staging;
use kernels::Block;

#[derive(Debug)]
pub(super) struct Frames {
    pub staging: Staging,
    free: Vec<u32>,
    hollow: Vec<u32>,
    /// Frames from this one on never had memory.
    untouched: u32,
}

impl Frames {
    pub fn new(staging: Staging) -> Self {
        Self { staging, free: Vec::new(), hollow: Vec::new(), untouched: 0 }
    }

    pub fn count(&self) -> usize {
        self.staging.count()
    }

    /// Frames that can be taken.
    pub fn available(&self) -> usize {
        self.free.len() + self.count() - self.untouched as usize
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

    fn first_use(&mut self) -> Option<u32> {
        let frame = self.untouched;
        ((frame as usize) < self.count()).then(|| {
            self.untouched += 1;
            frame
        })
    }

    pub fn give(&mut self, frame: u32) {
        self.free.push(frame);
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

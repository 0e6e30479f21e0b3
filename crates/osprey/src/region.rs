//! The content-oblivious region: address space at a fixed place, cut into chunks, and which of them hold
//! data.

use crate::settings::ProcessSettings;
use crate::sys::map::{Mapping, REGION_BASE};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Address space of the region and the state of its chunks. What backs the addresses is the mode's business.
///
/// A chunk is *live* while something in it is allocated. The allocator says so before it hands out the first
/// object of a chunk and after it took back the last one. A pager that wants to drop a dead chunk without
/// writing it first takes the chunk out of the region and only then asks [`PagedRegion::is_live`]: if the
/// program allocates there in between, the answer is yes and nothing is dropped; if it does so after the
/// answer, its touch finds a missing chunk and gets zeros.
#[derive(Debug)]
pub(crate) struct PagedRegion {
    mapping: Mapping,
    chunk: usize,
    live: Vec<AtomicU64>,
    backing: OnceLock<Arc<dyn Backing>>,
}

/// What must be prepared before a chunk can be touched.
pub(crate) trait Backing: std::fmt::Debug + Send + Sync {
    /// Something is about to be allocated in a chunk, by the calling thread. Backs all chunks up to it, or
    /// ends the process.
    fn reach(&self, chunk: u32);
}

impl PagedRegion {
    /// Reserves the address space. `touchable`: as ordinary memory; otherwise nothing may be touched until it
    /// is mapped over.
    ///
    /// # Errors
    /// In words, when something else lies there or address space is limited.
    pub fn reserve(settings: &ProcessSettings, touchable: bool) -> Result<Self, String> {
        let bytes = settings.region as usize;
        let mapping = Mapping::anonymous(Some(REGION_BASE), bytes, !touchable).map_err(|e| {
            format!(
                "cannot reserve {} bytes of address space for the region at {REGION_BASE:#x}: {e}; a smaller \
                 OSPREY_REGION may fit (ulimit -v shows the limit)",
                settings.region
            )
        })?;
        let words = settings.chunks().div_ceil(64);
        let live = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { mapping, chunk: settings.chunk, live, backing: OnceLock::new() })
    }

    /// From now on `backing` hears of a chunk before something is allocated in it; at once of what is.
    ///
    /// # Errors
    /// `backing`, when there is one already.
    pub fn stand_on(&self, backing: Arc<dyn Backing>) -> Result<(), Arc<dyn Backing>> {
        self.backing.set(backing.clone())?;
        if let Some(last) = self.reach().checked_sub(1) {
            backing.reach(last);
        }
        Ok(())
    }

    /// The address space.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Leaves the region out of forked children, for all of it that is mapped now.
    ///
    /// # Errors
    /// The system's.
    pub fn keep_from_children(&self) -> std::io::Result<()> {
        self.mapping.advise(0, self.mapping.len(), libc::MADV_DONTFORK)
    }

    /// Bytes per chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Chunks in all.
    pub fn chunks(&self) -> usize {
        self.mapping.len() / self.chunk
    }

    /// Address of a chunk.
    pub fn address(&self, chunk: u32) -> usize {
        self.mapping.base() as usize + chunk as usize * self.chunk
    }

    /// The chunk that an address lies in, `None` outside the region.
    pub fn chunk_of(&self, address: usize) -> Option<u32> {
        let offset = address.checked_sub(self.mapping.base() as usize)?;
        (offset < self.mapping.len()).then(|| (offset / self.chunk) as u32)
    }

    /// Whether something in a chunk is allocated.
    pub fn is_live(&self, chunk: u32) -> bool {
        self.live[chunk as usize / 64].load(Ordering::Acquire) >> (chunk % 64) & 1 == 1
    }

    /// Chunks up to the last one that anything is allocated in.
    pub fn reach(&self) -> u32 {
        let chunks = self.chunks() as u32;
        (0..chunks).rev().find(|&chunk| self.is_live(chunk)).map_or(0, |last| last + 1)
    }

    /// The allocator's word on a chunk.
    pub fn set_live(&self, chunk: u32, live: bool) {
        let bit = 1 << (chunk % 64);
        let word = &self.live[chunk as usize / 64];
        if live {
            if let Some(backing) = self.backing.get() {
                backing.reach(chunk);
            }
            word.fetch_or(bit, Ordering::AcqRel)
        } else {
            word.fetch_and(!bit, Ordering::AcqRel)
        };
    }
}

//! Frames: memory that chunks are read into and written from, beside the region.

use super::map::Mapping;
use crate::region::PagedRegion;
use kernels::Block;
use std::io;

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;
/// Fill pages as if written to, without a fault for each (Linux 5.14).
const POPULATE_WRITE: i32 = 23;

/// `count` frames of one chunk each, aligned to a huge page. A frame whose pages were moved away is *hollow*:
/// it has address space and no memory, until pages are moved there or it is touched.
#[derive(Debug)]
pub(crate) struct Staging {
    mapping: Mapping,
    first: usize,
    chunk: usize,
    count: usize,
}

impl Staging {
    /// Address space for the frames; nothing is filled yet. In core dumps and in children it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn new(count: usize, chunk: usize) -> io::Result<Self> {
        let mapping = Mapping::anonymous(None, count * chunk + HUGE, false)?;
        let first = (mapping.base() as usize).next_multiple_of(HUGE) - mapping.base() as usize;
        private(&mapping, chunk)?;
        // The page that is touched behind the frames must not bring a huge one. A refusal costs memory for a
        // moment.
        let end = first + count * chunk;
        let _ = mapping.advise(end, mapping.len() - end, libc::MADV_NOHUGEPAGE);
        Ok(Self { mapping, first, chunk, count })
    }

    /// Frames.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of all frames.
    pub fn len(&self) -> usize {
        self.count * self.chunk
    }

    /// Bytes of one frame.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Address of a frame; `count` gives the end.
    ///
    /// # Panics
    /// When there is no such frame.
    pub fn address(&self, frame: u32) -> usize {
        self.mapping.base() as usize + self.offset(frame)
    }

    fn offset(&self, frame: u32) -> usize {
        assert!((frame as usize) < self.count, "a frame of these");
        self.first + frame as usize * self.chunk
    }

    /// Content of a frame. The caller has no transfer in flight for it.
    pub fn blocks(&mut self, frame: u32) -> &mut [Block] {
        let at = self.address(frame) as *mut Block;
        // SAFETY: the range is a frame of a mapping that this value owns, aligned to a page and readable and
        // writable; any bytes are blocks; `&mut self` keeps other views of frames away for as long as this
        // one lives.
        unsafe { std::slice::from_raw_parts_mut(at, self.chunk / Block::BYTES) }
    }

    /// Fills a frame whose memory was never there with zeros, in one call.
    ///
    /// # Errors
    /// `OutOfMemory` when the system has none; a part of the frame may have some then.
    pub fn populate(&mut self, frame: u32) -> io::Result<()> {
        match self.mapping.advise(self.offset(frame), self.chunk, POPULATE_WRITE) {
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(error),
            Err(_) => {
                self.blocks(frame).fill(Block::ZERO);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Waits until the system has memory for a page, where it lets threads wait for that: a touch waits, a
    /// system call fails. The page is given back at once.
    pub fn wait_for_memory(&mut self) {
        // Behind the last frame there is at least a page, because the first is aligned.
        let spare = self.mapping.len() - super::PAGE;
        // SAFETY: a page of a mapping that this value owns, that no frame is in.
        unsafe { self.mapping.base().add(spare).write_volatile(1) };
        // What cannot be given back is one page.
        let _ = self.mapping.advise(spare, super::PAGE, libc::MADV_DONTNEED);
    }

    /// Gives the memory of a frame back: it is hollow then.
    ///
    /// # Errors
    /// The system's.
    pub fn release(&mut self, frame: u32) -> io::Result<()> {
        self.mapping.advise(self.offset(frame), self.chunk, libc::MADV_DONTNEED)
    }

    /// Gives the memory of all frames back, whatever they hold: nobody will look at them any more.
    pub fn abandon(&mut self) {
        // The process is about to end; it was only to say why.
        let _ = self.mapping.advise(0, self.mapping.len(), libc::MADV_DONTNEED);
    }

    /// Gives the memory of a part of a frame back, whole pages from `from` to `to`.
    ///
    /// # Errors
    /// The system's.
    pub fn release_part(&mut self, frame: u32, from: usize, to: usize) -> io::Result<()> {
        assert!(from <= to && to <= self.chunk, "within the frame");
        self.mapping.advise(self.offset(frame) + from, to - from, libc::MADV_DONTNEED)
    }

    /// Copies the first `len` bytes of a chunk of the region, all pages of which are there and protected
    /// against writing, into a frame.
    pub fn copy_from(&mut self, frame: u32, region: &PagedRegion, chunk: u32, len: usize) {
        assert!(len <= self.chunk, "within the frame");
        let from = region.address(chunk) as *const u8;
        let to = self.address(frame) as *mut u8;
        // SAFETY: both ranges are within one chunk, in different mappings that live; the program cannot write
        // to its side while that is protected, and reading does not wait because all pages are there.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }
}

/// Keeps a mapping out of core dumps and of children (which would see missing chunks as zeros), and says
/// whether huge pages are wanted: for chunks of a huge page and more; smaller ones would be torn out of huge
/// pages one by one.
///
/// # Errors
/// The system's.
pub(crate) fn private(mapping: &Mapping, chunk: usize) -> io::Result<()> {
    let all = mapping.len();
    mapping.advise(0, all, libc::MADV_DONTDUMP)?;
    mapping.advise(0, all, libc::MADV_DONTFORK)?;
    let advice = if chunk >= HUGE { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    match mapping.advise(0, all, advice) {
        // A kernel built without huge pages knows neither word.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other,
    }
}

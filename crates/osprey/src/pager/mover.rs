//! How a chunk gets from a frame into the region and back: by moving its pages, or by copying them.

use super::frames::Frames;
use crate::region::PagedRegion;
use crate::settings::PagingEngine;
use crate::sys::staging::private;
use crate::sys::uffd::{MISSING, Uffd, WRITE_PROTECT, feature};
use std::io;

/// A page stays pinned for a moment after its transfer ended; and another thread may hold its lock.
const PATIENCE: u32 = 100_000;

#[derive(Debug)]
pub(super) struct Mover {
    uffd: Uffd,
    moves: bool,
}

impl Mover {
    /// Watches the region, so that touches of missing chunks are heard of.
    ///
    /// # Errors
    /// In words, with what to do about it.
    pub fn new(engine: PagingEngine, region: &PagedRegion, frames: &Frames) -> Result<Self, String> {
        let moves = engine == PagingEngine::Move;
        let must = if moves { feature::MOVE } else { feature::PAGEFAULT_FLAG_WP };
        let uffd = Uffd::open(must, 0, true).map_err(|error| refused(&error, engine))?;
        let map = |error: io::Error| format!("userfaultfd cannot watch the region: {error}");
        let mode = if moves { MISSING } else { MISSING | WRITE_PROTECT };
        let mapping = region.mapping();
        private(mapping, region.chunk()).map_err(map)?;
        uffd.register(mapping.base() as usize, mapping.len(), mode).map_err(map)?;
        if moves {
            // Pages only move to where the same userfaultfd watches. It watches for protected pages there, of
            // which there are none: a touch of a hollow frame must not wait for the one thread that serves
            // such waits.
            uffd.register(frames.staging.address(0), frames.staging.len(), WRITE_PROTECT).map_err(map)?;
        }
        Ok(Self { uffd, moves })
    }

    pub fn uffd(&self) -> &Uffd {
        &self.uffd
    }

    /// Puts the content of a frame into the region and wakes who waits for it. The frame is hollow then.
    /// Where the system has no memory for that (page tables, or copies), free frames give up theirs; a copy
    /// also what of its frame is in the region already. But where others can leave first (and `may_wait`), a
    /// copy does not go in, which `false` says: it is in its frame, as the program may have changed it
    /// meanwhile, and nobody was lent the frame's memory.
    ///
    /// # Errors
    /// The system's; `OutOfMemory` when there was none for seconds.
    pub fn enter(
        &self,
        frames: &mut Frames,
        frame: u32,
        region: &PagedRegion,
        chunk: u32,
        may_wait: bool,
    ) -> io::Result<bool> {
        if self.moves {
            return self.enter_row(frames, frame, region, chunk, 1).map(|()| true);
        }
        let (home, len) = (region.address(chunk), region.chunk());
        let (mut done, mut released, mut tries) = (0, 0, 0);
        while done < len {
            let bytes: &[u8] = bytemuck::cast_slice(frames.staging.blocks(frame));
            let (more, result) = self.uffd.copy_some(home + done, &bytes[done..], false);
            done += more;
            match result {
                Err(error) if is_short(&error) && may_wait && released == 0 && frames.must_wait() => {
                    self.copy_out(frames, frame, region, chunk, done)?;
                    return Ok(false);
                }
                Err(error) if is_short(&error) && done > released => {
                    frames.staging.release_part(frame, released, done)?;
                    released = done;
                }
                Err(error) if is_short(&error) && frames.scrape(&mut tries) => {}
                other => other?,
            }
        }
        if released == 0 && frames.keep_spare(frame) {
            return Ok(true);
        }
        frames.staging.release(frame)?;
        frames.emptied(frame);
        Ok(true)
    }

    /// Takes the first `len` bytes of a chunk out of the region, where all of them are, into a frame that has
    /// memory.
    fn copy_out(
        &self,
        frames: &mut Frames,
        frame: u32,
        region: &PagedRegion,
        chunk: u32,
        len: usize,
    ) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let (home, mut tries) = (region.address(chunk), 0);
        while let Err(error) = self.uffd.protect(home, len, true) {
            if !is_short(&error) || !frames.scrape(&mut tries) {
                return Err(error);
            }
        }
        frames.staging.copy_from(frame, region, chunk, len);
        region.mapping().advise(home - region.mapping().base() as usize, len, libc::MADV_DONTNEED)
    }

    /// Takes a chunk out of the region into a hollow frame. `None` when it cannot leave now: something else
    /// in this process (a direct transfer of the program's, say) has its pages pinned, or there is no memory
    /// for a copy. It is in the region as before then.
    ///
    /// # Errors
    /// The system's.
    pub fn leave(&self, frames: &mut Frames, region: &PagedRegion, chunk: u32) -> io::Result<Option<u32>> {
        let frame = frames.take_hollow();
        if !self.moves {
            let Some(full) = frames.refill(frame) else {
                frames.emptied(frame);
                return Ok(None);
            };
            self.copy_out(frames, full, region, chunk, region.chunk())?;
            return Ok(Some(full));
        }
        if self.leave_row(frames, frame, region, chunk, 1)? == 0 {
            frames.emptied(frame);
            return Ok(None);
        }
        Ok(Some(frame))
    }

    /// Whether chunks in a row move in one call: each call has every processor that runs the program forget
    /// its mappings.
    pub fn has_rows(&self) -> bool {
        self.moves
    }

    /// Moves `count` chunks in a row into the region, from frames in a row.
    ///
    /// # Errors
    /// As [`Mover::enter`].
    pub fn enter_row(
        &self,
        frames: &mut Frames,
        frame: u32,
        region: &PagedRegion,
        chunk: u32,
        count: u32,
    ) -> io::Result<()> {
        let (home, place) = (region.address(chunk), frames.staging.address(frame));
        self.shift(frames, home, place, count as usize * region.chunk(), PATIENCE).1?;
        (frame..frame + count).for_each(|frame| frames.emptied(frame));
        Ok(())
    }

    /// Moves `count` chunks in a row out of the region into hollow frames in a row. Says how many have left:
    /// the one after them cannot leave now and is in the region as before.
    ///
    /// # Errors
    /// The system's.
    pub fn leave_row(
        &self,
        frames: &mut Frames,
        frame: u32,
        region: &PagedRegion,
        chunk: u32,
        count: u32,
    ) -> io::Result<u32> {
        let (home, place, len) = (region.address(chunk), frames.staging.address(frame), region.chunk());
        match self.shift(frames, place, home, count as usize * len, 16) {
            (_, Ok(())) => Ok(count),
            (moved, Err(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
                let whole = moved / len;
                let at = whole * len;
                self.shift(frames, home + at, place + at, moved - at, PATIENCE).1?;
                Ok(whole as u32)
            }
            (_, Err(error)) => Err(error),
        }
    }

    /// Wakes who waits for a chunk that is in the region; lifts its protection if it waits to write.
    ///
    /// # Errors
    /// In words.
    pub fn wake(&self, region: &PagedRegion, chunk: u32, protected: bool) -> Result<(), String> {
        let (home, len) = (region.address(chunk), region.chunk());
        let done = if protected { self.uffd.protect(home, len, false) } else { self.uffd.wake(home, len) };
        done.map_err(|e| format!("userfaultfd cannot wake the program: {e}"))
    }

    /// Moves pages, trying again for a while when one is busy or there is no memory for page tables; says how
    /// many bytes have moved.
    fn shift(
        &self,
        frames: &mut Frames,
        to: usize,
        from: usize,
        len: usize,
        patience: u32,
    ) -> (usize, io::Result<()>) {
        let (mut done, mut tries, mut shortages) = (0, 0, 0);
        while done < len {
            let (moved, result) = self.uffd.relocate_some(to + done, from + done, len - done);
            done += moved;
            match result {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < patience => {
                    tries += 1;
                    std::thread::yield_now();
                }
                Err(error) if is_short(&error) && frames.scrape(&mut shortages) => {}
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }
}

fn is_short(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

fn refused(error: &io::Error, engine: PagingEngine) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "userfaultfd is not permitted here ({error}), and engine {engine} needs it: allow it (sysctl \
             vm.unprivileged_userfaultfd=1, CAP_SYS_PTRACE, or a container profile with the userfaultfd \
             system call), or \
             choose engine file, which writes plaintext; osprey probe tells what this machine allows"
        ),
        io::ErrorKind::Unsupported if engine == PagingEngine::Move => {
            format!("{error}: engine move needs Linux 6.8; choose engine copy")
        }
        _ => format!(
            "userfaultfd does not work here ({error}), and engine {engine} needs it: osprey probe tells more"
        ),
    }
}

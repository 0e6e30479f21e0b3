//! Transfers between frames and the file, in batches.

use super::chunks::{CLEAN, KEPT, State, UNWANTED, WANTED};
use super::spill::NoRoom;
use super::worker::{Leaver, MoveBatch, Worker};
use std::io;

impl Worker {
    /// Reads a chunk from the file into a free frame; `false` when the one that was available got no memory,
    /// and is not available any more. Reads of slots in a row become one transfer.
    pub fn start_read(&mut self, chunk: u32) -> Result<bool, String> {
        let slot = self.chunks.slot(chunk).expect("a chunk on disk has a slot");
        let follows = self.gathered.last().is_none_or(|&last| self.chunks.slot(last) == slot.checked_sub(1));
        if !follows || self.gathered.len() >= self.batch_max {
            self.start_gathered()?;
        }
        let Some(frame) = self.frames.take() else { return Ok(false) };
        self.chunks.set_frame(chunk, frame);
        self.chunks.set_state(chunk, State::Reading);
        self.gathered.push(chunk);
        self.reading += 1;
        Ok(true)
    }

    /// Hands over the reads gathered so far.
    pub fn start_gathered(&mut self) -> Result<(), String> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let chunks = std::mem::take(&mut self.gathered);
        self.deal(&chunks);
        let first = self.chunks.slot(chunks[0]).expect("a chunk on disk has a slot");
        self.counts.bytes_read += (chunks.len() * self.region.chunk()) as u64;
        self.transfer(false, chunks, first)
    }

    /// Deals the frames of chunks out anew, in order: chunks in a row then move into the region in one call.
    fn deal(&mut self, chunks: &[u32]) {
        let mut frames: Vec<u32> = chunks.iter().map(|&chunk| self.chunks.frame(chunk)).collect();
        let mut chunks = chunks.to_vec();
        frames.sort_unstable();
        chunks.sort_unstable();
        chunks.into_iter().zip(frames).for_each(|(chunk, frame)| self.chunks.set_frame(chunk, frame));
    }

    fn transfer(&mut self, write: bool, chunks: Vec<u32>, slot: u32) -> Result<(), String> {
        let frames = chunks.iter().map(|&chunk| self.chunks.frame(chunk));
        let offset = self.spill.offset(slot);
        let number = self.ring.transfer(write, self.spill.fd(), &self.frames.staging, frames, offset);
        let number = number.map_err(|e| format!("io_uring failed: {e}"))?;
        if number >= self.transfers.len() {
            self.transfers.resize_with(number + 1, MoveBatch::default);
        }
        self.transfers[number] = MoveBatch { write, chunks };
        Ok(())
    }

    /// Drops items of `out` whose chunk is not out any more.
    pub fn drop_stale_leavers(&mut self) {
        let chunks = &self.chunks;
        self.leavers.retain(|l| chunks.state(l.chunk) == State::Out && chunks.stamp(l.chunk) == l.stamp);
    }

    /// Writes those who are out, in whole batches; the rest too if somebody waits for frames (`all`).
    pub fn flush(&mut self, all: bool) -> Result<(), String> {
        let least = if all { 1 } else { self.batch };
        while self.leavers.len() >= least && !self.stuck && self.ring.in_flight() + self.batch_max <= FLIGHT {
            let mut leavers = Vec::with_capacity(self.batch_max);
            while leavers.len() < self.batch_max
                && let Some(leaver) = self.leavers.pop_front()
            {
                let chunk = leaver.chunk;
                if self.chunks.state(chunk) == State::Out && self.chunks.stamp(chunk) == leaver.stamp {
                    let kept = self.region.is_live(chunk) || self.chunks.has(chunk, WANTED);
                    if kept { leavers.push(leaver) } else { self.forget(chunk) }
                }
            }
            leavers.sort_by_key(|leaver| leaver.next);
            self.write(&leavers)?;
        }
        Ok(())
    }

    /// Encrypts chunks and starts to write them, to as few runs of slots as there are.
    fn write(&mut self, mut leavers: &[Leaver]) -> Result<(), String> {
        while !leavers.is_empty() {
            let (first, run) = match self.spill.place(leavers.len() as u32) {
                Ok(place) => place,
                Err(NoRoom) if self.reclaim() => continue,
                Err(NoRoom) => {
                    self.stuck = true;
                    leavers.iter().rev().for_each(|&leaver| self.leavers.push_front(leaver));
                    return Ok(());
                }
            };
            let (now, later) = leavers.split_at(run as usize);
            for (slot, leaver) in (first..).zip(now) {
                let chunk = leaver.chunk;
                let sealed = self.cipher.seal(self.frames.staging.blocks(self.chunks.frame(chunk)))?;
                self.spill.fill(slot, chunk, sealed);
                self.chunks.set_slot(chunk, slot);
                self.chunks.set_state(chunk, State::Writing);
            }
            self.writing += now.len();
            self.counts.bytes_written += (now.len() * self.region.chunk()) as u64;
            self.transfer(true, now.iter().map(|leaver| leaver.chunk).collect(), first)?;
            leavers = later;
        }
        Ok(())
    }

    /// Frees slots of chunks in which nothing is allocated any more; says whether there were any.
    fn reclaim(&mut self) -> bool {
        let mut any = false;
        for (_, chunk) in self.spill.owners() {
            let dead = self.chunks.state(chunk) == State::Disk && !self.region.is_live(chunk);
            if dead && !self.chunks.has(chunk, WANTED) {
                self.chunks.set_state(chunk, State::New);
                self.chunks_now -= 1;
                self.free_slot(chunk);
                any = true;
            }
        }
        any
    }

    /// A transfer ended.
    pub fn transferred(&mut self, number: usize, result: io::Result<()>) -> Result<(), String> {
        let batch = std::mem::take(&mut self.transfers[number]);
        if batch.write {
            self.writing -= batch.chunks.len();
            return batch.chunks.iter().try_for_each(|&chunk| self.written(chunk, &result));
        }
        self.reading -= batch.chunks.len();
        if let Err(error) = result {
            let directory = self.spill.directory().display();
            return Err(format!("cannot read back what was paged out to the file in {directory}: {error}"));
        }
        let mut ready = Vec::with_capacity(batch.chunks.len());
        for chunk in batch.chunks {
            if self.read(chunk)? {
                ready.push(chunk);
            }
        }
        self.enter_rows(&mut ready)
    }

    fn written(&mut self, chunk: u32, result: &io::Result<()>) -> Result<(), String> {
        if let Err(error) = result {
            // The slot stays in use by nobody: the next write would only fail there again.
            self.spill.refused(error);
            self.stuck = true;
            self.decrypt(chunk)?;
            self.chunks.take_slot(chunk);
            self.chunks.set_state(chunk, State::Out);
            let stamp = self.chunks.restamp(chunk);
            self.leavers.push_back(Leaver { chunk, stamp, next: u64::MAX });
            return if self.chunks.has(chunk, WANTED) { self.enter(chunk) } else { Ok(()) };
        }
        if self.chunks.has(chunk, WANTED) {
            if self.frames.are_owed() {
                // Its frame is what others leave through, or what something else waits for.
                self.back_to_disk(chunk);
                self.demand.push_back(chunk);
                return Ok(());
            }
            self.decrypt(chunk)?;
            return self.enter(chunk);
        }
        if self.region.is_live(chunk) {
            self.back_to_disk(chunk)
        } else {
            self.forget(chunk)
        }
        Ok(())
    }

    /// What was read is decrypted; says whether it goes into the region.
    fn read(&mut self, chunk: u32) -> Result<bool, String> {
        if self.chunks.has(chunk, UNWANTED) && !self.chunks.has(chunk, WANTED) {
            self.back_to_disk(chunk);
            return Ok(false);
        }
        self.decrypt(chunk)?;
        if self.schedule.is_some() && self.chunks.has(chunk, CLEAN) {
            self.chunks.set(chunk, KEPT, true);
        }
        Ok(!self.hold_back(chunk))
    }

    fn decrypt(&mut self, chunk: u32) -> Result<(), String> {
        let slot = self.chunks.slot(chunk).expect("what was transferred has a slot");
        let content = self.frames.staging.blocks(self.chunks.frame(chunk));
        self.cipher.open(self.spill.sealed(slot), content).map_err(|_| self.spill.altered(chunk))
    }
}

/// Transfers in flight after which no batch is started: reads that a touch waits for must find room.
pub(super) const FLIGHT: usize = crate::sys::uring::TRANSFERS_MAX / 2;

//! A channel through memory that two processes of one host share: a ring per direction.
//!
//! **Functionality.** What [`Channel`] says. A ring has one writer and one reader. The writer copies in and
//! moves `head`; the reader copies out and moves `tail`. A side that waits looks for a few microseconds and
//! then sleeps on a futex. Nothing but the two copies touches the bytes. Long messages may be written and
//! read where they lie, by a device that has the memory registered: then there is no copy.
//!
//! **Security.** None by itself: whoever may open the memory of either process reads and alters. It is used
//! under [`crate::SealedChannel`]. Counters of the peer are checked before use: a wrong one ends the channel
//! and never leads an access outside the ring.
//!
//! **Ends.** The channel keeps the TLS channel that it came from, silent, as its life line: an orderly end is
//! TLS's goodbye, and a process that dies cuts it, whatever state the rings are in. A side that sleeps looks
//! at the life line every [`SLICE`]. The memory has no name (memfd), so nothing is left behind wherever a
//! process dies.

pub(crate) mod meet;
mod region;

use crate::passed;
use base::ChannelError;
use kernels::{Place, SharedMemory};
use net::{Channel, RangeHalt};
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// How long a side sleeps before it looks whether its peer lives.
const SLICE: Duration = Duration::from_millis(20);
/// Looks at the counter before a side lets others have the processor between two looks, and before it sleeps:
/// a few microseconds, where nobody else wants the processor.
const LOOKS: u32 = 128;
const YIELDS: u32 = 192;
/// Bytes written before the reader is told of them.
const TELL_BYTES: u64 = 32 << 10;
/// A page of counters before each ring.
const COUNTERS: usize = 4096;

/// Offsets among a ring's counters, a cache line each.
const HEAD: usize = 0;
const TAIL: usize = 64;
const READER_SLEEPS: usize = 128;
const WRITER_SLEEPS: usize = 192;

/// Bytes of the memory with both rings.
fn region_bytes(ring: usize) -> usize {
    2 * (COUNTERS + ring)
}

/// Memory mapped by both ends, before it serves.
pub(crate) struct Mapped {
    region: Arc<SharedMemory>,
    ring: usize,
    /// Whether this end writes to the first ring.
    first: bool,
}

/// One end of a pair of rings.
pub(crate) struct ShmChannel {
    region: Arc<SharedMemory>,
    ring: u64,
    out: usize,
    into: usize,
    /// Bytes written, and of these told to the reader; bytes that the reader was seen to have read.
    head: u64,
    told: u64,
    tail_seen: u64,
    /// Bytes read; bytes that the writer was seen to have told of.
    tail: u64,
    head_seen: u64,
    life: Option<Box<dyn Channel>>,
    deadline: Duration,
    finished: bool,
    halt: RangeHalt,
}

#[derive(Clone, Copy)]
enum Wait {
    Bytes,
    Space,
}

impl Mapped {
    /// The channel. `life` is the private channel to the same peer.
    pub(crate) fn channel(self, life: Box<dyn Channel>) -> ShmChannel {
        let rings = [0, COUNTERS + self.ring];
        let [out, into] = if self.first { rings } else { [rings[1], rings[0]] };
        ShmChannel {
            region: self.region,
            ring: self.ring as u64,
            out,
            into,
            head: 0,
            told: 0,
            tail_seen: 0,
            tail: 0,
            head_seen: 0,
            deadline: life.deadline(),
            life: Some(life),
            finished: false,
            halt: RangeHalt::default(),
        }
    }
}

impl ShmChannel {
    fn place(&self, base: usize, counter: u64) -> usize {
        base + COUNTERS + (counter % self.ring) as usize
    }

    /// Tells the reader of everything written.
    pub(crate) fn tell(&mut self) {
        if self.told != self.head {
            self.region.word64(self.out + HEAD).store(self.head, SeqCst);
            self.told = self.head;
            self.wake(self.out + READER_SLEEPS);
        }
    }

    fn wake(&self, flag: usize) {
        let flag = self.region.word32(flag);
        if flag.load(SeqCst) != 0 {
            flag.store(0, SeqCst);
            let _ = futex::wake(flag, futex::Flags::empty(), 1);
        }
    }

    /// The counter that changes when there is something to go on with, and the value that we know.
    fn changed(&self, what: Wait) -> bool {
        match what {
            Wait::Bytes => self.region.word64(self.into + HEAD).load(SeqCst) != self.head_seen,
            Wait::Space => self.region.word64(self.out + TAIL).load(SeqCst) != self.tail_seen,
        }
    }

    fn wait(&mut self, what: Wait) -> Result<(), ChannelError> {
        for look in 0..YIELDS {
            if self.changed(what) {
                return Ok(());
            }
            if look < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        let flag = match what {
            Wait::Bytes => self.into + READER_SLEEPS,
            Wait::Space => self.out + WRITER_SLEEPS,
        };
        let start = Instant::now();
        loop {
            // The flag is up before the last look: a peer that moves the counter after it sees the flag.
            self.region.word32(flag).store(1, SeqCst);
            if self.changed(what) {
                break;
            }
            let left = self.deadline.saturating_sub(start.elapsed()).min(SLICE);
            let time = futex::Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
            let _ = futex::wait(self.region.word32(flag), futex::Flags::empty(), 1, Some(&time));
            if self.changed(what) {
                break;
            }
            self.halt.check()?;
            let alive = self.life.as_mut().map_or(Err(ChannelError::Cut), |life| life.watch());
            if self.changed(what) {
                break;
            }
            alive?;
            if start.elapsed() >= self.deadline {
                return Err(passed(self.deadline));
            }
        }
        self.region.word32(flag).store(0, SeqCst);
        Ok(())
    }

    /// Looks how far the peer has written; it cannot be further than a ring.
    fn look_for_bytes(&mut self) -> Result<u64, ChannelError> {
        self.halt.check()?;
        self.head_seen = self.region.word64(self.into + HEAD).load(SeqCst);
        possible(self.head_seen.wrapping_sub(self.tail), self.ring)
    }

    /// Looks how far the peer has read; it cannot have read what it was not told of.
    fn look_for_space(&mut self) -> Result<u64, ChannelError> {
        self.halt.check()?;
        let tail = self.region.word64(self.out + TAIL).load(SeqCst);
        possible(self.told.wrapping_sub(tail), self.ring)?;
        self.tail_seen = tail;
        Ok(self.ring - possible(self.head.wrapping_sub(tail), self.ring)?)
    }
}

/// Messages that are written and read in the rings themselves, by whoever is given their places.
impl ShmChannel {
    /// Bytes of a ring.
    pub(crate) fn ring(&self) -> u64 {
        self.ring
    }

    /// Whether there is room for `bytes` more, `ahead` bytes beyond what was written. Waits for it if asked.
    pub(crate) fn room(&mut self, ahead: u64, bytes: u64, wait: bool) -> Result<bool, ChannelError> {
        loop {
            let enough = |free: u64| free >= ahead + bytes;
            if enough(self.ring - (self.head - self.tail_seen)) || enough(self.look_for_space()?) {
                return Ok(true);
            }
            if !wait {
                return Ok(false);
            }
            self.tell();
            self.wait(Wait::Space)?;
        }
    }

    /// Whether `bytes` more are there, `ahead` bytes beyond what was read. Waits for them if asked.
    pub(crate) fn there(&mut self, ahead: u64, bytes: u64, wait: bool) -> Result<bool, ChannelError> {
        loop {
            let enough = |there: u64| there >= ahead + bytes;
            if enough(self.head_seen - self.tail) || enough(self.look_for_bytes()?) {
                return Ok(true);
            }
            if !wait {
                return Ok(false);
            }
            self.wait(Wait::Bytes)?;
        }
    }

    /// The places of bytes that are written, from `ahead` beyond what was written on.
    pub(crate) fn places_out(&self, ahead: u64, bytes: usize) -> Vec<Place> {
        self.places(self.out, self.head + ahead, bytes)
    }

    /// The places of bytes that are read, from `ahead` beyond what was read on.
    pub(crate) fn places_in(&self, ahead: u64, bytes: usize) -> Vec<Place> {
        self.places(self.into, self.tail + ahead, bytes)
    }

    /// One place, or two where the ring begins again.
    fn places(&self, base: usize, counter: u64, bytes: usize) -> Vec<Place> {
        let first = bytes.min((self.ring - counter % self.ring) as usize);
        let mut places = vec![self.region.place(self.place(base, counter), first)];
        if first < bytes {
            places.push(self.region.place(base + COUNTERS, bytes - first));
        }
        places
    }

    /// `bytes` more are written; the reader is not told yet.
    pub(crate) fn written(&mut self, bytes: u64) {
        self.finished = false;
        self.head += bytes;
    }

    /// `bytes` more are read: their space is free.
    pub(crate) fn free(&mut self, bytes: u64) {
        self.tail += bytes;
        self.region.word64(self.into + TAIL).store(self.tail, SeqCst);
        // A writer that waits for space gets a good part of the ring at once: else both would wake each
        // other for every few bytes. When nothing more is there it is woken in any case.
        let left = self.head_seen - self.tail;
        if left <= self.ring / 2 {
            self.wake(self.into + WRITER_SLEEPS);
        }
    }
}

fn possible(distance: u64, ring: u64) -> Result<u64, ChannelError> {
    if distance <= ring {
        return Ok(distance);
    }
    let text = "the counters in shared memory are impossible: something else writes to it; \
                run without trusted_network, over TLS";
    Err(ChannelError::Io(text.into()))
}

impl Channel for ShmChannel {
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        self.finished = false;
        while !bytes.is_empty() {
            let mut free = self.ring - (self.head - self.tail_seen);
            if free == 0 {
                free = self.look_for_space()?;
            }
            if free == 0 {
                self.tell();
                self.wait(Wait::Space)?;
                continue;
            }
            let to_end = self.ring - self.head % self.ring;
            let (now, rest) = bytes.split_at(bytes.len().min(free.min(to_end) as usize));
            self.region.write(self.place(self.out, self.head), now);
            self.head += now.len() as u64;
            bytes = rest;
            if self.head - self.told >= TELL_BYTES {
                self.tell();
            }
        }
        Ok(())
    }

    fn recv(&mut self, mut into: &mut [u8]) -> Result<(), ChannelError> {
        self.tell();
        while !into.is_empty() {
            let mut there = self.head_seen - self.tail;
            if there == 0 {
                there = self.look_for_bytes()?;
            }
            if there == 0 {
                self.wait(Wait::Bytes)?;
                continue;
            }
            let to_end = self.ring - self.tail % self.ring;
            let take = into.len().min(there.min(to_end) as usize);
            let (now, rest) = into.split_at_mut(take);
            self.region.read(self.place(self.into, self.tail), now);
            into = rest;
            self.free(take as u64);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.tell();
        self.finished = true;
        Ok(())
    }

    fn window(&self) -> usize {
        self.ring as usize
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        let alive = self.life.as_mut().map_or(Err(ChannelError::Cut), |life| life.watch());
        if self.head_seen != self.tail || self.changed(Wait::Bytes) { Ok(()) } else { alive }
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        self.halt = halt.clone();
        self.life.iter_mut().for_each(|life| life.halts_with(halt));
    }

    fn under(&mut self) -> Option<&mut dyn Channel> {
        match &mut self.life {
            Some(life) => Some(&mut **life),
            None => None,
        }
    }
}

impl Drop for ShmChannel {
    fn drop(&mut self) {
        self.tell();
        if let Some(mut life) = self.life.take()
            && self.finished
        {
            let _ = life.finish();
        }
        // The peer finds the life line ended when it wakes.
        self.wake(self.out + READER_SLEEPS);
        self.wake(self.into + WRITER_SLEEPS);
    }
}

#[cfg(test)]
mod tests;

//! How far the program is: events that it counts, and how the pager hears of those it waits for.
//!
//! The program counts allocations, releases, ticks and transfers, and keeps a hash over the first two. That is one
//! comparison per event. The pager arms one *watch*: a count, with the hash that its trace has there. When the count is
//! reached the program compares, and wakes the pager. A hash that differs means another program, other arguments or an
//! access pattern that depends on data: the pager drops the trace and pages by what is touched.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by the program's thread and the pager's.
#[derive(Debug)]
pub(crate) struct Progress {
    events: AtomicU64,
    hash: AtomicU64,
    watch: AtomicU64,
    expected: AtomicU64,
    diverged: AtomicBool,
    bell: OwnedFd,
}

/// What an event is, for the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An allocation of that many bytes.
    Alloc(usize),
    /// A release of an object at that offset of the region.
    Free(usize),
    /// A tick or a transfer: counted, not hashed.
    Tick,
}

impl Progress {
    /// Nothing happened yet.
    ///
    /// # Errors
    /// The system's, for the event descriptor.
    pub fn new() -> std::io::Result<Self> {
        let zero = || AtomicU64::new(0);
        let (watch, diverged) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        Ok(Self {
            events: zero(),
            hash: zero(),
            watch,
            expected: zero(),
            diverged,
            bell: crate::sys::eventfd()?,
        })
    }

    /// The program did something. Only its compute thread calls this (or others under the allocator's lock).
    #[inline]
    pub fn event(&self, event: Event) {
        let count = self.events.load(Ordering::Relaxed) + 1;
        let word = match event {
            Event::Alloc(bytes) => Some(bytes as u64),
            Event::Free(offset) => Some(!(offset as u64)),
            Event::Tick => None,
        };
        if let Some(word) = word {
            let hash = self.hash.load(Ordering::Relaxed);
            self.hash
                .store((hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15), Ordering::Relaxed);
        }
        self.events.store(count, Ordering::Release);
        if count >= self.watch.load(Ordering::Acquire) {
            self.watched(count);
        }
    }

    #[cold]
    fn watched(&self, count: u64) {
        let at = self.watch.swap(u64::MAX, Ordering::AcqRel);
        if at == u64::MAX {
            return;
        }
        let expected = self.expected.load(Ordering::Acquire);
        if at == count && expected != 0 && self.hash.load(Ordering::Relaxed) != expected {
            self.diverged.store(true, Ordering::Release);
        }
        crate::sys::ring_bell(self.bell.as_fd());
    }

    /// Events so far, and the hash over them: exact in the program's thread, a moment old elsewhere.
    pub fn so_far(&self) -> (u64, u64) {
        (self.events.load(Ordering::Acquire), self.hash.load(Ordering::Acquire))
    }

    /// Rings [`Progress::bell`] as soon as `count` events have happened, after a comparison with the hash expected then.
    /// 0: without a comparison. One watch at a time: a new one replaces the old. A count already passed rings at the next event.
    pub fn watch(&self, count: u64, expected: u64) {
        self.watch.store(u64::MAX, Ordering::Release);
        self.expected.store(expected, Ordering::Release);
        self.watch.store(count, Ordering::Release);
    }

    /// Whether a hash was not the expected one.
    pub fn diverged(&self) -> bool {
        self.diverged.load(Ordering::Acquire)
    }

    /// Readable when a watch was reached (eight bytes, as of an eventfd).
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Rings by hand: the program ends, or wants the pager's attention.
    pub fn ring(&self) {
        crate::sys::ring_bell(self.bell.as_fd());
    }

    /// Takes what the bell has rung.
    pub fn hush(&self) {
        crate::sys::hush_bell(self.bell.as_raw_fd());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_compares_at_its_count() {
        let [one, two] = [(); 2].map(|()| Progress::new().expect("eventfd"));
        one.event(Event::Alloc(16));
        one.event(Event::Tick);
        let (count, hash) = one.so_far();
        two.watch(count, hash);
        two.event(Event::Alloc(16));
        two.event(Event::Tick);
        assert!(!two.diverged() && two.so_far() == (2, hash));
        two.watch(3, hash);
        two.event(Event::Alloc(17));
        assert!(two.diverged());
    }
}

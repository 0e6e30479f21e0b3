//! How far the program is: events that it counts, and how the pager hears of those it waits for.
//!
//! The program counts allocations, releases, ticks and transfers, and keeps a hash over the first two. The
//! pager arms one *watch*: a count, with the hash that its trace has there. When the count is reached the
//! program notes its hash and wakes the pager, which compares. A hash that differs means another program,
//! other arguments or an access pattern that depends on data: the pager drops the trace and pages by what is
//! touched. An event costs the program one comparison.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No count.
const NOWHERE: u64 = u64::MAX;

/// Shared by the program's thread and the pager's.
#[derive(Debug)]
pub(crate) struct TouchProgress {
    events: AtomicU64,
    hash: AtomicU64,
    watch: AtomicU64,
    /// Count and hash where the program met the last watch; the count is `NOWHERE` while they change.
    met: [AtomicU64; 2],
    /// Count and expected hash of the last watch; the pager's own.
    armed: [AtomicU64; 2],
    diverged: AtomicBool,
    bell: OwnedFd,
}

/// What an event is, for the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgressEvent {
    /// An allocation of that many bytes.
    Alloc(usize),
    /// A release of an object at that offset of the region.
    Free(usize),
    /// A tick or a transfer: counted, not hashed.
    Tick,
}

impl TouchProgress {
    /// Nothing happened yet.
    ///
    /// # Errors
    /// The system's, for the event descriptor.
    pub fn new() -> std::io::Result<Self> {
        let zero = || AtomicU64::new(0);
        Ok(Self {
            events: zero(),
            hash: zero(),
            watch: AtomicU64::new(NOWHERE),
            met: [zero(), zero()],
            armed: [zero(), zero()],
            diverged: AtomicBool::new(false),
            bell: crate::sys::eventfd()?,
        })
    }

    /// The program did something. Only its compute thread calls this (or others under the allocator's lock).
    #[inline]
    pub fn event(&self, event: ProgressEvent) {
        let count = self.events.load(Ordering::Relaxed) + 1;
        let word = match event {
            ProgressEvent::Alloc(bytes) => Some(bytes as u64),
            ProgressEvent::Free(offset) => Some(!(offset as u64)),
            ProgressEvent::Tick => None,
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

    /// The order of all of these is that of one thread after the other: the path is rare.
    #[cold]
    fn watched(&self, count: u64) {
        let at = self.watch.swap(NOWHERE, Ordering::SeqCst);
        if at == NOWHERE {
            return;
        }
        if at > count {
            // The pager armed another one since: it stays, unless a third took its place.
            let _newer = self.watch.compare_exchange(NOWHERE, at, Ordering::SeqCst, Ordering::SeqCst);
            return;
        }
        let [met, hash] = &self.met;
        met.store(NOWHERE, Ordering::SeqCst);
        hash.store(self.hash.load(Ordering::Relaxed), Ordering::SeqCst);
        met.store(count, Ordering::SeqCst);
        crate::sys::ring_bell(self.bell.as_fd());
    }

    /// Events so far, and the hash over them: exact in the program's thread, a moment old elsewhere.
    pub fn so_far(&self) -> (u64, u64) {
        (self.events.load(Ordering::Acquire), self.hash.load(Ordering::Acquire))
    }

    /// Rings [`TouchProgress::bell`] as soon as `count` events have happened, so that
    /// [`TouchProgress::diverged`] can compare with the hash expected then; 0: without a comparison. One
    /// watch at a time: a new one replaces the old. A count already passed rings at the next event. Only the
    /// pager calls this and `diverged`.
    pub fn watch(&self, count: u64, expected: u64) {
        self.compare();
        self.armed[0].store(count, Ordering::SeqCst);
        self.armed[1].store(expected, Ordering::SeqCst);
        self.watch.store(count, Ordering::SeqCst);
    }

    /// Whether a hash was not the expected one.
    pub fn diverged(&self) -> bool {
        self.compare();
        self.diverged.load(Ordering::Relaxed)
    }

    /// Compares where the program met the watch, if it is this one, at its very count, and not just being
    /// written down.
    fn compare(&self) {
        let [count, expected] = [0, 1].map(|i| self.armed[i].load(Ordering::SeqCst));
        let met = self.met[0].load(Ordering::SeqCst);
        let hash = self.met[1].load(Ordering::SeqCst);
        let steady = self.met[0].load(Ordering::SeqCst) == met;
        if expected != 0 && steady && met == count && hash != expected {
            self.diverged.store(true, Ordering::Relaxed);
        }
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
        let [one, two] = [(); 2].map(|()| TouchProgress::new().expect("eventfd"));
        one.event(ProgressEvent::Alloc(16));
        one.event(ProgressEvent::Tick);
        let (count, hash) = one.so_far();
        two.watch(count, hash);
        two.event(ProgressEvent::Alloc(16));
        two.event(ProgressEvent::Tick);
        assert!(!two.diverged() && two.so_far() == (2, hash));
        two.watch(3, hash);
        two.event(ProgressEvent::Alloc(17));
        assert!(two.diverged());
    }
}

//! Numbered pieces of work on all cores, whose results come in order.

use crate::Error;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Which piece begins next, and what those take that have begun and whose results were not taken.
struct PieceQueue {
    next: usize,
    held: u64,
}

/// Pieces in their order, as many at a time as fit into a bound.
struct Pieces<'a> {
    count: usize,
    most: u64,
    bytes: &'a (dyn Fn(usize) -> u64 + Sync),
    queue: Mutex<PieceQueue>,
    freed: Condvar,
}

impl Pieces<'_> {
    fn queue(&self) -> MutexGuard<'_, PieceQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece, once it fits beside those that are held, or is alone; none where there is no more.
    fn begin(&self) -> Option<usize> {
        let mut queue = self.queue();
        loop {
            let at = queue.next;
            if at >= self.count {
                return None;
            }
            let bytes = (self.bytes)(at);
            if queue.held == 0 || queue.held.saturating_add(bytes) <= self.most {
                queue.next += 1;
                // One that takes nothing is held, too.
                queue.held = queue.held.saturating_add(bytes.max(1));
                return Some(at);
            }
            queue = self.freed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, at: usize) {
        let bytes = (self.bytes)(at).max(1);
        self.queue().held -= bytes;
        self.freed.notify_all();
    }

    /// Lets no further piece begin.
    fn stop(&self) {
        self.queue().next = self.count;
        self.freed.notify_all();
    }
}

/// Does `count` pieces of work on all cores, and hands their results to `take` in order. A piece takes
/// `bytes` of memory until its result is taken; so many begin as take `most` together, and one at least.
///
/// # Errors
/// The first, in the order of pieces. After one no further piece begins.
///
/// # Panics
/// When `work` or `take` does.
pub fn in_order<T: Send>(
    count: usize,
    (most, bytes): (u64, &(dyn Fn(usize) -> u64 + Sync)),
    work: impl Fn(usize) -> Result<T, Error> + Sync,
    mut take: impl FnMut(T) -> Result<(), Error>,
) -> Result<(), Error> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores.min(count) <= 1 {
        return (0..count).try_for_each(|at| take(work(at)?));
    }
    let queue = Mutex::new(PieceQueue { next: 0, held: 0 });
    let pieces = Pieces { count, most, bytes, queue, freed: Condvar::new() };
    std::thread::scope(|scope| {
        let (sender, results) = channel();
        for _ in 0..cores.min(count) {
            let (sender, pieces, work) = (sender.clone(), &pieces, &work);
            scope.spawn(move || {
                while let Some(at) = pieces.begin() {
                    // Nobody listens after an error.
                    let _ = sender.send((at, work(at)));
                }
            });
        }
        drop(sender);
        let (mut early, mut next) = (BTreeMap::new(), 0);
        let taken = results.into_iter().try_for_each(|(at, result)| {
            early.insert(at, result);
            while let Some(result) = early.remove(&next) {
                take(result?)?;
                pieces.end(next);
                next += 1;
            }
            Ok(())
        });
        pieces.stop();
        taken
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_come_in_order_and_within_the_bound() {
        let held = AtomicU64::new(0);
        let bytes = |at: usize| at as u64 % 7 + u64::from(at == 50) * 100;
        let mut taken = Vec::new();
        let work = |at: usize| {
            let now = held.fetch_add(bytes(at), Ordering::SeqCst) + bytes(at);
            assert!(now <= 20 || now == bytes(at), "{now} bytes at piece {at}");
            Ok(at)
        };
        let take = |at: usize| {
            taken.push(at);
            held.fetch_sub(bytes(at), Ordering::SeqCst);
            Ok(())
        };
        in_order(200, (20, &bytes), work, take).unwrap();
        assert!(taken.into_iter().eq(0..200));
    }

    #[test]
    fn the_first_error_in_order_is_told_and_nothing_begins_after_it() {
        let begun = AtomicU64::new(0);
        let work = |at: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            if at >= 3 { Err(Error::input(format!("piece {at}"))) } else { Ok(at) }
        };
        let mut taken = 0;
        let error = in_order(1 << 20, (2, &|_| 1), work, |_| {
            taken += 1;
            Ok(())
        });
        assert_eq!((error.unwrap_err().to_string().as_str(), taken), ("piece 3", 3));
        assert!(begun.into_inner() < 100, "the others were left");
        let refused = in_order(10, (9, &|_| 1), Ok, |at| match at {
            4 => Err(Error::input("not this one")),
            _ => Ok(()),
        });
        assert_eq!(refused.unwrap_err().to_string(), "not this one");
        in_order(0, (1, &|_| 1), Ok, |_: usize| Err(Error::input("none"))).unwrap();
    }
}

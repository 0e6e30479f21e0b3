//! Pictures of reports take memory and a core while they are drawn: a few at a time, a few that wait, and who
//! comes when all wait is asked to try again, so that no page waits for a picture.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pictures that are drawn at a time: 32 MB each at most.
pub const AT_ONCE: usize = 2;
/// Pictures that wait for that.
pub const WAITING: usize = 6;
/// How long one waits at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where pictures are drawn.
pub struct DrawingDesk {
    held: Mutex<DrawingQueue>,
    /// Somebody has done.
    freed: Condvar,
    patience: Duration,
}

#[derive(Default)]
struct DrawingQueue {
    drawn: usize,
    waiting: usize,
}

/// All places are taken, or nothing was freed in time; ask again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawingFull;

/// A place, until it is dropped.
pub struct DrawingPlace<'a>(&'a DrawingDesk);

impl Default for DrawingDesk {
    fn default() -> Self {
        Self { held: Mutex::default(), freed: Condvar::new(), patience: PATIENCE }
    }
}

impl DrawingDesk {
    fn held(&self) -> MutexGuard<'_, DrawingQueue> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, or waits for one.
    ///
    /// # Errors
    /// When as many wait as may, or none was freed in time.
    pub fn take(&self) -> Result<DrawingPlace<'_>, DrawingFull> {
        let (mut held, until) = (self.held(), Instant::now() + self.patience);
        if held.drawn >= AT_ONCE {
            if held.waiting >= WAITING {
                return Err(DrawingFull);
            }
            held.waiting += 1;
            while held.drawn >= AT_ONCE {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    held.waiting -= 1;
                    return Err(DrawingFull);
                }
                held = self.freed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            held.waiting -= 1;
        }
        held.drawn += 1;
        Ok(DrawingPlace(self))
    }

    /// How many wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.held().waiting
    }
}

impl Drop for DrawingPlace<'_> {
    fn drop(&mut self) {
        self.0.held().drawn -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_drawn_some_wait_and_others_are_asked_to_come_again() {
        let desk = DrawingDesk::default();
        let mut drawn: Vec<_> = (0..AT_ONCE).map(|_| desk.take().expect("a place")).collect();
        std::thread::scope(|scope| {
            let waits: Vec<_> = (0..WAITING).map(|_| scope.spawn(|| desk.take().map(drop))).collect();
            let begun = Instant::now();
            while desk.waiting() < WAITING && begun.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
            assert_eq!(desk.take().map(drop), Err(DrawingFull), "all places to wait are taken");
            drawn.clear();
            assert!(waits.into_iter().all(|one| one.join().expect("ends").is_ok()), "who waited is served");
        });
        let held = desk.held();
        assert_eq!((held.drawn, held.waiting), (0, 0));
    }

    #[test]
    fn who_waits_too_long_is_asked_to_come_again() {
        let desk = DrawingDesk { patience: Duration::from_millis(50), ..DrawingDesk::default() };
        let drawn: Vec<_> = (0..AT_ONCE).map(|_| desk.take().expect("a place")).collect();
        assert_eq!(desk.take().map(drop), Err(DrawingFull));
        assert_eq!(desk.waiting(), 0);
        drop(drawn);
        assert!(desk.take().is_ok());
    }
}

//! Pictures of reports take memory and a core while they are drawn: a few at a time, a few that wait, one of
//! each account, in their order; and who comes when all wait is asked to try again, so that no page waits for
//! a picture.

use std::collections::VecDeque;
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
    /// Who waits, who came first before others.
    waiting: VecDeque<String>,
}

/// All places are taken, or that of the account, or nothing was freed in time; ask again later.
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

    /// Takes a place for an account, or waits for one behind those that wait already.
    ///
    /// # Errors
    /// When as many wait as may, the account waits already, or no place was freed in time.
    pub fn take(&self, account: &str) -> Result<DrawingPlace<'_>, DrawingFull> {
        let (mut held, until) = (self.held(), Instant::now() + self.patience);
        if held.drawn >= AT_ONCE || !held.waiting.is_empty() {
            if held.waiting.len() >= WAITING || held.waiting.iter().any(|one| one == account) {
                return Err(DrawingFull);
            }
            held.waiting.push_back(account.to_owned());
            while held.drawn >= AT_ONCE || held.waiting.front().is_some_and(|one| one != account) {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    held.waiting.retain(|one| one != account);
                    self.freed.notify_all();
                    return Err(DrawingFull);
                }
                held = self.freed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            held.waiting.pop_front();
        }
        held.drawn += 1;
        // Another place may be free for who is first now.
        self.freed.notify_all();
        Ok(DrawingPlace(self))
    }

    /// How many wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.held().waiting.len()
    }
}

impl Drop for DrawingPlace<'_> {
    fn drop(&mut self) {
        self.0.held().drawn -= 1;
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until_waiting(desk: &DrawingDesk, waiting: usize) {
        let begun = Instant::now();
        while desk.waiting() < waiting && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    }

    #[test]
    fn some_are_drawn_some_wait_and_others_are_asked_to_come_again() {
        let desk = DrawingDesk::default();
        let mut drawn: Vec<_> = (0..AT_ONCE).map(|_| desk.take("olga").expect("a place")).collect();
        std::thread::scope(|scope| {
            let desk = &desk;
            let wait = |one: usize| scope.spawn(move || desk.take(&format!("person {one}")).map(drop));
            let waits: Vec<_> = (0..WAITING).map(wait).collect();
            until_waiting(desk, WAITING);
            assert_eq!(desk.take("vic").map(drop), Err(DrawingFull), "all places to wait are taken");
            drawn.clear();
            assert!(waits.into_iter().all(|one| one.join().expect("ends").is_ok()), "who waited is served");
        });
        let held = desk.held();
        assert_eq!((held.drawn, held.waiting.len()), (0, 0));
    }

    #[test]
    fn an_account_waits_once_and_nobody_goes_before_who_waits() {
        let desk = DrawingDesk::default();
        let mut drawn: Vec<_> = (0..AT_ONCE).map(|_| desk.take("olga").expect("a place")).collect();
        let order = Mutex::new(Vec::new());
        let drawing = &|name: &'static str| {
            let _place = desk.take(name).expect("a place");
            order.lock().expect("held by nobody").push(name);
            // Who comes now comes behind those that wait, though a place is free.
            std::thread::sleep(Duration::from_millis(20));
        };
        std::thread::scope(|scope| {
            scope.spawn(move || drawing("olga"));
            until_waiting(&desk, 1);
            assert_eq!(desk.take("olga").map(drop), Err(DrawingFull), "one of an account waits");
            for (at, name) in ["stella", "vic"].into_iter().enumerate() {
                scope.spawn(move || drawing(name));
                until_waiting(&desk, 2 + at);
            }
            // One place is freed: they go through it in their order.
            drawn.pop();
        });
        assert_eq!(*order.lock().expect("held by nobody"), ["olga", "stella", "vic"]);
    }

    #[test]
    fn who_waits_too_long_is_asked_to_come_again() {
        let desk = DrawingDesk { patience: Duration::from_millis(50), ..DrawingDesk::default() };
        let drawn: Vec<_> = (0..AT_ONCE).map(|_| desk.take("olga").expect("a place")).collect();
        assert_eq!(desk.take("olga").map(drop), Err(DrawingFull));
        assert_eq!(desk.waiting(), 0);
        drop(drawn);
        assert!(desk.take("olga").is_ok());
    }
}

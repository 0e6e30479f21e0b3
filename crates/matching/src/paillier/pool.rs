//! Randomisers computed ahead, on threads of their own, while the conversation does something else.

use super::key::Randomiser;
use base::{Rng, Seed};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Randomisers that one thread computes ahead: half a megabyte of them.
const AHEAD: usize = 1024;

/// A source of so many randomisers of one key. Under one seed they repeat, whatever the threads do: thread
/// `i` of `k` makes every k-th one.
pub struct RandomiserPool {
    threads: Vec<Receiver<Randomiser>>,
    next: usize,
}

impl RandomiserPool {
    /// Starts computing `count` randomisers by `make`. What is not taken is dropped with the pool.
    pub fn start(
        seed: &Seed,
        count: u64,
        threads: usize,
        make: impl Fn(&mut Rng) -> Randomiser + Send + Sync + 'static,
    ) -> Self {
        let (make, threads) = (Arc::new(make), threads.max(1) as u64);
        let start = |i: u64| {
            let (out, pool) = sync_channel(AHEAD);
            let (make, mut rng) = (make.clone(), seed.fork(&format!("randomisers {i}")).into_rng());
            let share = (count + threads - 1 - i) / threads;
            // It ends when it has made its share, or when the pool is dropped.
            thread::spawn(move || (0..share).all(|_| out.send(make(&mut rng)).is_ok()));
            pool
        };
        Self { threads: (0..threads).map(start).collect(), next: 0 }
    }

    /// The next one.
    ///
    /// # Panics
    /// After `count` of them: a bug of the caller.
    pub fn take(&mut self) -> Randomiser {
        let thread = self.next;
        self.next = (thread + 1) % self.threads.len();
        self.threads[thread].recv().expect("no more randomisers are taken than were asked for")
    }
}

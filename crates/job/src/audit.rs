//! Evidence that anybody can rerun: do the intervals cover what they say, and does the noise protect what the
//! ledger charges?
//!
//! * [`coverage`]: simulated coverage of the intervals, with the scales, the sampler and the reading rules of
//!   a run.
//! * [`epsilon`]: a lower bound on what two neighbouring inputs cost, from outputs of the whole pipeline in
//!   one process.
//!
//! Both take the user's own study, and studies of their own where none is given. What they can show and what
//! not: `docs/cli.md`, "tacit audit".

pub mod coverage;
pub mod epsilon;

mod bound;
mod neighbours;
mod sample;
mod statistics;

use base::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Told how many of how many tasks are done, from any thread.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Runs tasks on threads, and returns what they gave in their order. After an error no further task begins.
pub(crate) fn parallel<T: Send>(
    count: usize,
    threads: usize,
    progress: Progress<'_>,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let all: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let broken = || Error::misuse("another thread of the audit panicked");
    let thread = || -> Result<(), Error> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            let one = work(at).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            all.lock().map_err(|_| broken())?[at] = Some(one);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, count);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(thread)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().try_for_each(join)
    })?;
    let all = all.into_inner().map_err(|_| broken())?;
    all.into_iter().map(|one| one.ok_or_else(broken)).collect()
}

#[cfg(test)]
mod tests;

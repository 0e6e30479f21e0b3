//! Where a process runs, and how long it lives.

use base::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores that this process may run on, by number.
#[must_use]
pub fn cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Keeps this process, and the threads that it will start, on one core.
///
/// # Errors
/// When the system refuses.
pub fn stay_on(core: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|e| Error::io(format!("cannot stay on core {core}"), &e.into()))
}

/// Ends this process with the process that started it.
pub fn end_with_parent() {
    // Where the system cannot do that, a child ends when its peer does.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
}

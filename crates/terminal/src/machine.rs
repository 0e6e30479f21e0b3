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

/// Lets this process have so many bytes of memory of its own at most, address space that it has not touched
/// included: what asks for more is refused by the system. A smaller limit that is there already stays.
pub fn limit_memory(bytes: u64) {
    limit(rustix::process::Resource::Data, bytes);
}

/// Lets no file that this process writes become longer; as [`limit_memory`].
pub fn limit_files(bytes: u64) {
    limit(rustix::process::Resource::Fsize, bytes);
}

fn limit(what: rustix::process::Resource, bytes: u64) {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(what);
    if current.is_none_or(|current| bytes < current) {
        // Where the system does not let it, the bound is what the program keeps to by itself.
        let _ = setrlimit(what, Rlimit { current: Some(bytes), maximum });
    }
}

/// Ends this process with the process that started it.
pub fn end_with_parent() {
    // Where the system cannot do that, a child ends when its peer does.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
}

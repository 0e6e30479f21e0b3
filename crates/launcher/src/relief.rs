//! A program that may swap waits when the system finds no memory for it, instead of being killed.
//!
//! The kernel kills in a group at its limit when the faulting thread's own reclaim freed nothing a few times in a row.
//! Under heavy swapping that happens with swap to spare, when every page of the group was touched just now. Such a
//! program can go on: its pages go out within milliseconds when, a little later, another process lowers the group's
//! limit for a moment. What has changed by then, it seems, are the group's counters, by which reclaim chooses and which
//! the kernel brings up to date every two seconds, or when they are read: so we read them.
//!
//! Hence the kill is switched off (groups of version 1 alone have such a switch), the kernel tells us of a thread that
//! waits, and we are that other process. The limit is never exceeded.
//!
//! **What must hold.** No program waits for ever: when nothing can be freed for [`PATIENCE`], the kill is switched on
//! again, which ends the program. A guard that dies takes its program with it, waiting or not.

use rustix::event::{EventfdFlags, eventfd};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long nothing may be freed before the system may kill: some of the kernel's periods of two seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is freed at a time, as a part of the limit: enough for many faults, too little to be felt.
const PART: u64 = 64;
const PAGE: u64 = 4096;

/// Looks after a group.
#[derive(Debug)]
pub struct Relief {
    bell: OwnedFd,
    folder: PathBuf,
    limit: u64,
    stuck: Option<Instant>,
}

impl Relief {
    /// Switches the kill off in the group at `folder`, whose limit is `limit` bytes.
    ///
    /// # Errors
    /// The system's; the kill stays on.
    pub fn start(folder: &Path, limit: u64) -> io::Result<Self> {
        let control = File::open(folder.join("memory.oom_control"))?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let both = format!("{} {}", bell.as_raw_fd(), control.as_raw_fd());
        fs::write(folder.join("cgroup.event_control"), both)?;
        fs::write(folder.join("memory.oom_control"), "1")?;
        Ok(Self { bell, folder: folder.to_path_buf(), limit, stuck: None })
    }

    /// Readable when a thread may wait.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Frees memory when a thread waits for it. Whether to come again soon, rung for or not.
    pub fn relieve(&mut self) -> bool {
        // It rang or it did not: what counts is whether a thread waits.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        if !self.is_waited_for() {
            self.stuck = None;
            return false;
        }
        // For its effect: the kernel brings the counters up to date.
        let _ = fs::read(self.folder.join("memory.stat"));
        let less = self.limit.saturating_sub((self.limit / PART).max(PAGE));
        let freed = self.set("memory.limit_in_bytes", less);
        // A limit that grows wakes who waits. One that could not be lowered is as it was.
        let _ = self.set("memory.limit_in_bytes", self.limit);
        if freed {
            self.stuck = None;
        } else if self.stuck.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            let _ = self.set("memory.oom_control", 0);
            return false;
        }
        true
    }

    fn is_waited_for(&self) -> bool {
        fs::read_to_string(self.folder.join("memory.oom_control"))
            .is_ok_and(|text| text.lines().any(|line| line == "under_oom 1"))
    }

    fn set(&self, file: &str, value: u64) -> bool {
        fs::write(self.folder.join(file), value.to_string()).is_ok()
    }
}

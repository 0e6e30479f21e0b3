//! A program that may swap, or that the runtime pages, waits when the system finds no memory for it, instead of being
//! killed.
//!
//! **Paged by the runtime.** What the program allocates beside the region grows whenever it likes, and the pager, which gives
//! frames up for that, only looks at it now and then. So the group's limit is lowered by a reserve from the start
//! ([`PART`]). A thread that comes up against the lowered limit waits, the kernel tells us and the pager at once, we give the
//! reserve, and the pager gives up frames. The reserve is what lets everybody go on meanwhile, the pager above all, which
//! may need a page of its own. It is taken back when that much is free again.
//!
//! **Swapping.** The kernel kills in a group at its limit when the faulting thread's own reclaim freed nothing a few times
//! in a row. Under heavy swapping that happens with swap to spare, when every page of the group was touched just now. Such
//! a program can go on: its pages go out within milliseconds when, a little later, another process lowers the group's
//! limit for a moment. What has changed by then, it seems, are the group's counters, by which reclaim chooses and which
//! the kernel brings up to date every two seconds, or when they are read: so we read them.
//!
//! Hence the kill is switched off (groups of version 1 alone have such a switch), the kernel tells us of a thread that
//! waits, and we are that other process. The limit is never exceeded.
//!
//! **What must hold.** No program waits for ever: when nothing can be freed for [`PATIENCE`], the kill is switched on
//! again, which ends the program. A guard that dies takes its program with it, waiting or not.

use crate::link::Limit;
use rustix::event::{EventfdFlags, eventfd};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long nothing may be freed before the system may kill: some of the kernel's periods of two seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is freed or given at a time, as a part of the limit: enough for many faults, too little to be felt.
const PART: u64 = 64;
const PAGE: u64 = 4096;

/// Looks after a group.
#[derive(Debug)]
pub struct Relief {
    bell: OwnedFd,
    /// The pager's bell, for a program that has one.
    pager: Option<OwnedFd>,
    folder: PathBuf,
    limit: u64,
    /// The reserve is given.
    given: bool,
    stuck: Option<Instant>,
}

impl Relief {
    /// Switches the kill off in the group at `folder`, which has that limit; keeps a reserve back for a paged program.
    ///
    /// # Errors
    /// The system's; the kill stays on.
    pub fn start(folder: &Path, limit: Limit) -> io::Result<Self> {
        let bell = bell(folder)?;
        let pager = limit.paged.then(|| self::bell(folder)).transpose()?;
        fs::write(folder.join("memory.oom_control"), "1")?;
        let folder = folder.to_path_buf();
        let mut relief = Self { bell, pager, folder, limit: limit.bytes, given: true, stuck: None };
        relief.take_back();
        Ok(relief)
    }

    /// Readable when a thread may wait.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// What tells the pager that a thread waits.
    pub fn pager(&self) -> Option<BorrowedFd<'_>> {
        self.pager.as_ref().map(AsFd::as_fd)
    }

    /// Frees memory when a thread waits for it. Whether to come again soon, rung for or not.
    pub fn relieve(&mut self) -> bool {
        // It rang or it did not: what counts is whether a thread waits.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        if !self.is_waited_for() {
            self.stuck = None;
            self.take_back();
            return self.is_reserve_given();
        }
        if let Some(pager) = &self.pager {
            // The kernel rings for the first thread that waits, and this for those behind it. A bell that rings already
            // needs no more.
            let _ = rustix::io::write(pager, &1u64.to_ne_bytes());
        } else {
            // For its effect: the kernel brings the counters up to date.
            let _ = fs::read(self.folder.join("memory.stat"));
        }
        let freed = self.is_ready_to_lower() && self.set("memory.limit_in_bytes", lowered(self.limit));
        // A limit that grows wakes who waits. One that could not be lowered is as it was.
        self.given = self.set("memory.limit_in_bytes", self.limit);
        if freed {
            self.stuck = None;
        } else if self.stuck.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            let _ = self.set("memory.oom_control", 0);
            return false;
        }
        true
    }

    /// Lowers the limit of a paged program again, where that much is free.
    fn take_back(&mut self) {
        if self.is_reserve_given() && self.set("memory.limit_in_bytes", lowered(self.limit)) {
            self.given = false;
        }
    }

    fn is_reserve_given(&self) -> bool {
        self.pager.is_some() && self.given
    }

    /// Whether the group has its whole limit, so that lowering it tells whether anything was freed.
    fn is_ready_to_lower(&self) -> bool {
        self.pager.is_none() || self.given
    }

    fn is_waited_for(&self) -> bool {
        fs::read_to_string(self.folder.join("memory.oom_control"))
            .is_ok_and(|text| text.lines().any(|line| line == "under_oom 1"))
    }

    fn set(&self, file: &str, value: u64) -> bool {
        fs::write(self.folder.join(file), value.to_string()).is_ok()
    }
}

/// A limit less the reserve.
pub fn lowered(limit: u64) -> u64 {
    limit.saturating_sub((limit / PART).max(PAGE))
}

/// A bell that the kernel rings when a thread of the group waits for memory.
fn bell(folder: &Path) -> io::Result<OwnedFd> {
    let control = File::open(folder.join("memory.oom_control"))?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let both = format!("{} {}", bell.as_raw_fd(), control.as_raw_fd());
    fs::write(folder.join("cgroup.event_control"), both)?;
    Ok(bell)
}

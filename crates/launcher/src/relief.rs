//! A program that may swap, or that the runtime pages, waits when the system finds no memory for it, instead
//! of being killed.
//!
//! **Paged by the runtime.** What the program allocates beside the region grows whenever it likes, and the
//! pager, which gives frames up for that, only looks at it now and then. So the group's limit is lowered by a
//! reserve from the start ([`reserve`]). A thread that comes up against the lowered limit waits, the kernel
//! tells us and the pager at once, and the pager gives up frames. It may need a page of its own before it has
//! freed one, and waits like everybody: then its bell is not answered, which we see ([`TOKEN`]), and we give
//! the reserve page by page until it is. Given at once, or to whoever waits while the pager works, the thread
//! that fills memory would have taken it all when the pager needs some; of single pages some are the pager's,
//! and it needs few. What is left is for everybody when nothing was freed for a while: up to the limit that
//! was asked for. The reserve is taken back when that much is free again.
//!
//! **Swapping.** The kernel kills in a group at its limit when the faulting thread's own reclaim freed
//! nothing a few times in a row. Under heavy swapping that happens with swap to spare, when every page of the
//! group was touched just now. Such a program can go on: its pages go out within milliseconds when, a little
//! later, another process lowers the group's limit for a moment. What has changed by then, it seems, are the
//! group's counters, by which reclaim chooses and which the kernel brings up to date every two seconds, or
//! when they are read: so we read them.
//!
//! Hence the kill is switched off (groups of version 1 alone have such a switch), the kernel tells us of a
//! thread that waits, and we are that other process. The limit is never set above what was asked for.
//!
//! **What must hold.** No program waits for ever: when nothing can be freed for [`PATIENCE`], the kill is
//! switched on again, which ends the program. A guard that dies takes its program with it, waiting or not.

use crate::link::MemoryLimit;
use rustix::event::{EventfdFlags, eventfd};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long nothing may be freed before the system may kill: some of the kernel's periods of two seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is freed at a time, and the reserve, as a part of the limit: enough for many faults, too little to be
/// felt.
const PART: u64 = 64;
/// How long nothing may be freed before others than the pager get of the reserve: less than it tries a call
/// again that finds no memory.
const RESERVED: Duration = Duration::from_secs(1);
/// Bytes of a reserve: enough pages for a pager, and not more than are given well within [`PATIENCE`].
const RESERVE: [u64; 2] = [256 << 10, 4 << 20];
const PAGE: u64 = 4096;
/// What we ring the pager's bell with: an eventfd takes this once, and again only when the first was read.
/// The kernel's own rings, of one each, have room beside it.
const TOKEN: u64 = u64::MAX - (1 << 32);
/// Time between two pages of the reserve, and between two looks otherwise, which is also the time to answer a
/// bell.
const DRIP: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(20);

/// Looks after a group.
#[derive(Debug)]
pub struct Relief {
    bell: OwnedFd,
    /// The pager's bell, for a program that has one.
    pager: Option<OwnedFd>,
    folder: PathBuf,
    limit: u64,
    /// The limit as it is now: lower by what is left of the reserve.
    now: u64,
    stuck: Option<Instant>,
    /// At the last look something of the reserve was given.
    gave: bool,
    /// When the pager was told last.
    told: Instant,
}

impl Relief {
    /// Switches the kill off in the group at `folder`, which has that limit; keeps a reserve back for a paged
    /// program.
    ///
    /// # Errors
    /// The system's; the kill stays on.
    pub fn start(folder: &Path, limit: MemoryLimit) -> io::Result<Self> {
        let bell = bell(folder)?;
        let pager = limit.paged.then(|| self::bell(folder)).transpose()?;
        fs::write(folder.join("memory.oom_control"), "1")?;
        let folder = folder.to_path_buf();
        let (limit, told) = (limit.bytes, Instant::now());
        let mut relief = Self { bell, pager, folder, limit, now: limit, stuck: None, gave: false, told };
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

    /// Helps when a thread waits for memory. When to come again, rung for or not.
    pub fn relieve(&mut self) -> Option<Duration> {
        // It rang or it did not: what counts is whether a thread waits.
        let rang = rustix::io::read(&self.bell, &mut [0; 8]).is_ok();
        if !self.is_waited_for() {
            self.stuck = None;
            self.take_back();
            return (self.pager.is_some() && self.now > self.lowest()).then_some(LOOK);
        }
        let gave = std::mem::take(&mut self.gave);
        if rang && self.pager.is_some() && !gave {
            // Who waits now has begun to since the last look, and we gave nothing meanwhile: frames were
            // freed.
            self.stuck = None;
        }
        let since = *self.stuck.get_or_insert_with(Instant::now);
        let pause = if self.pager.is_some() { self.drip(since) } else { self.squeeze() };
        if since.elapsed() > PATIENCE && self.stuck.is_some() {
            let _ = self.set("memory.oom_control", 0);
            return None;
        }
        Some(pause)
    }

    /// Tells the pager, and gives a page of the reserve where it does not answer, or nothing was freed since
    /// then.
    fn drip(&mut self, since: Instant) -> Duration {
        let Some(pager) = &self.pager else { return LOOK };
        let mut answers = true;
        if self.told.elapsed() >= LOOK {
            // The kernel rings for the first thread that waits, and this for those behind it.
            answers = rustix::io::write(pager, &TOKEN.to_ne_bytes()).is_ok();
            if answers {
                self.told = Instant::now();
            }
        }
        let more = (self.now + PAGE).min(self.limit);
        if more == self.now || answers && since.elapsed() < RESERVED {
            return LOOK;
        }
        if self.set("memory.limit_in_bytes", more) {
            (self.now, self.gave) = (more, true);
        }
        DRIP
    }

    /// Has the system swap: by a limit that is lower for a moment.
    fn squeeze(&mut self) -> Duration {
        // For its effect: the kernel brings the counters up to date.
        let _ = fs::read(self.folder.join("memory.stat"));
        let less = self.limit.saturating_sub((self.limit / PART).max(PAGE));
        if self.set("memory.limit_in_bytes", less) {
            self.stuck = None;
        }
        // A limit that grows wakes who waits. One that could not be lowered is as it was.
        let _ = self.set("memory.limit_in_bytes", self.limit);
        LOOK
    }

    /// Lowers the limit of a paged program by the reserve, where that much is free: otherwise the kernel
    /// would have pages of files leave for it.
    fn take_back(&mut self) {
        let lowest = self.lowest();
        if self.pager.is_some()
            && self.now > lowest
            && self.used().is_some_and(|used| used < lowest)
            && self.set("memory.limit_in_bytes", lowest)
        {
            self.now = lowest;
        }
    }

    fn used(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join("memory.usage_in_bytes")).ok()?.trim().parse().ok()
    }

    fn lowest(&self) -> u64 {
        self.limit.saturating_sub(reserve(self.limit)) / PAGE * PAGE
    }

    fn is_waited_for(&self) -> bool {
        fs::read_to_string(self.folder.join("memory.oom_control"))
            .is_ok_and(|text| text.lines().any(|line| line == "under_oom 1"))
    }

    fn set(&self, file: &str, value: u64) -> bool {
        fs::write(self.folder.join(file), value.to_string()).is_ok()
    }
}

/// Bytes kept back for a pager, of a limit.
pub fn reserve(limit: u64) -> u64 {
    (limit / PART).clamp(RESERVE[0], RESERVE[1])
}

/// A bell that the kernel rings when a thread of the group waits for memory.
fn bell(folder: &Path) -> io::Result<OwnedFd> {
    let control = File::open(folder.join("memory.oom_control"))?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let both = format!("{} {}", bell.as_raw_fd(), control.as_raw_fd());
    fs::write(folder.join("cgroup.event_control"), both)?;
    Ok(bell)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 64 << 20;

    /// In a folder that is no group. Instants are set, so that no wait is for the test's own time.
    #[test]
    fn the_reserve_is_for_a_pager_that_does_not_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("memory.oom_control"), "under_oom 1\n").expect("a file");
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("a bell");
        let (bell, pager) = (event(), event());
        let answer = pager.try_clone().expect("a descriptor");
        let answer = || rustix::io::read(&answer, &mut [0; 8]).is_ok();
        let later = || Some(Instant::now() + Duration::from_secs(3600));
        let long_ago = || Instant::now().checked_sub(2 * RESERVED).expect("the machine is up for longer");
        let mut relief = Relief {
            bell,
            pager: Some(pager),
            folder: folder.path().into(),
            limit: LIMIT,
            now: LIMIT - reserve(LIMIT),
            stuck: later(),
            gave: false,
            told: long_ago(),
        };
        let mut given = |told: Option<Instant>, stuck: Option<Instant>| {
            let before = relief.now;
            (relief.told, relief.stuck) = (told.unwrap_or(relief.told), stuck);
            relief.relieve();
            (relief.now - before) / PAGE
        };
        assert_eq!(given(Some(long_ago()), later()), 0, "it is rung for");
        assert_eq!(given(later(), later()), 0, "and has time to answer");
        assert_eq!(given(Some(long_ago()), later()), 1, "it waits itself");
        assert_eq!(given(Some(long_ago()), later()), 1, "still");
        assert!(answer(), "it was rung for");
        assert_eq!(given(Some(long_ago()), later()), 0, "it goes on");
        assert!(answer());
        assert_eq!(
            given(Some(long_ago()), Some(long_ago())),
            1,
            "nothing was freed for long: it is for everybody"
        );
        let limit = fs::read_to_string(folder.path().join("memory.limit_in_bytes")).expect("a limit");
        assert_eq!(limit, (LIMIT - reserve(LIMIT) + 3 * PAGE).to_string());
    }
}

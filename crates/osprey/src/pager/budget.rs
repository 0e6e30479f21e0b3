//! The limit of memory against what the process really uses.
//!
//! What a program needs beside its chunks is known from a pass without its cryptography and its connections,
//! so it is only a beginning. The pager looks now and then at what the system counts for the process, page
//! tables included, and gives up frames when that comes near the limit: when it is awake anyway, and, while
//! the process is near the limit, also by the clock, since a program that touches nothing new may still
//! allocate. It never takes frames back: a plan can shrink, not grow.
//!
//! A look comes too late for a program that allocates much at once. Where the system then lets threads wait
//! for memory ([`super::pressure`]), a part of the limit is given up at once, whatever the look says: others
//! of the group may use it.

use super::{FRAMES_MIN, GROWTH, GROWTH_PERCENT, SLACK_PERCENT, least_frames};
use crate::settings::ProcessSettings;
use crate::sys::own::Footprint;
use std::time::{Duration, Instant};

/// Bytes of chunks moved between two looks.
const LOOK_BYTES: u64 = 2 << 20;
/// Time between two looks of a pager that is awake, and of one that sleeps while little is left.
const LOOK_TIME: Duration = Duration::from_millis(20);
const SLEEP_TIME: Duration = Duration::from_millis(25);
/// Given up at a time when something waits for memory, as a part of the limit.
const PART: u64 = 64;

#[derive(Debug)]
pub(super) struct Budget {
    footprint: Footprint,
    /// Bytes that may be in use: the limit less slack.
    memory: u64,
    limit: u64,
    chunk: u64,
    least: usize,
    moved: u64,
    looked: Instant,
    beside: u64,
    /// What the process uses is so near the limit that even a pager that has nothing to do looks.
    near: bool,
    /// The process grew beyond what can be made room for.
    exceeded: bool,
}

/// What a look says.
#[derive(Debug, PartialEq)]
pub(super) enum BudgetVerdict {
    Fits,
    /// So many frames may have memory from now on.
    Lower(usize),
    /// As `Lower`, and that is not enough: with the bytes beside the chunks.
    TooMuch(usize, u64),
}

impl Budget {
    /// # Errors
    /// In words, where /proc cannot be read.
    pub fn new(settings: &ProcessSettings, planned: bool) -> Result<Self, String> {
        let footprint = Footprint::open().map_err(|e| format!("cannot read /proc/self/status: {e}"))?;
        Ok(Self {
            footprint,
            memory: settings.memory - settings.memory * SLACK_PERCENT / 100,
            limit: settings.memory,
            chunk: settings.chunk as u64,
            least: least(settings, planned),
            moved: 0,
            looked: Instant::now(),
            beside: 0,
            near: false,
            exceeded: false,
        })
    }

    /// Compares, if it is time: `moved` bytes so far, `live` chunks that have memory, at most `frames`.
    pub fn look(&mut self, moved: u64, live: usize, frames: usize) -> BudgetVerdict {
        if moved < self.moved + LOOK_BYTES && self.looked.elapsed() < LOOK_TIME {
            return BudgetVerdict::Fits;
        }
        (self.moved, self.looked) = (moved, Instant::now());
        self.judge(self.footprint.bytes(), live, frames)
    }

    /// Frames to keep when something waited for memory, of `live` chunks that have some: fewer by a part of
    /// the limit. The next look is due at once.
    pub fn pressed(&mut self, live: usize, frames: usize) -> usize {
        self.looked = Instant::now().checked_sub(LOOK_TIME).unwrap_or(self.looked);
        let part = (self.limit / PART).div_ceil(self.chunk) as usize;
        live.min(frames).saturating_sub(part).max(self.least).min(frames)
    }

    /// How long a pager may sleep before it looks again.
    pub fn patience(&self) -> Option<Duration> {
        self.near.then_some(SLEEP_TIME)
    }

    fn judge(&mut self, used: u64, live: usize, frames: usize) -> BudgetVerdict {
        self.near = used + 2 * margin(self.memory) > self.memory;
        let beside = used.saturating_sub(live as u64 * self.chunk);
        let before = std::mem::replace(&mut self.beside, beside);
        let allowed = (self.memory.saturating_sub(beside) / self.chunk) as usize;
        if allowed >= frames {
            return BudgetVerdict::Fits;
        }
        // It may grow as much again until the next look.
        let growth = if before == 0 { 0 } else { beside.saturating_sub(before) };
        let lower = allowed.saturating_sub(growth.min(LOOK_BYTES).div_ceil(self.chunk) as usize);
        if allowed < self.least && !std::mem::replace(&mut self.exceeded, true) {
            return BudgetVerdict::TooMuch(self.least.min(frames), beside);
        }
        match lower.max(self.least) {
            lower if lower < frames => BudgetVerdict::Lower(lower),
            _ => BudgetVerdict::Fits,
        }
    }
}

/// Frames that stay whatever the process uses.
pub(super) fn least(settings: &ProcessSettings, planned: bool) -> usize {
    if planned { least_frames(settings) } else { FRAMES_MIN }
}

/// What the process may grow by before frames are given up for it, at the start.
pub(super) fn margin(memory: u64) -> u64 {
    GROWTH.max(memory * GROWTH_PERCENT / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_given_up_for_what_the_process_grows_by() {
        let settings =
            ProcessSettings { memory: 100 << 20, chunk: 1 << 20, microset: 8, ..ProcessSettings::default() };
        let mut budget = Budget::new(&settings, false).expect("/proc");
        assert_eq!(budget.judge(80 << 20, 70, 88), BudgetVerdict::Fits);
        assert_eq!(budget.patience(), None, "far from the limit");
        assert_eq!(budget.judge(90 << 20, 80, 88), BudgetVerdict::Fits);
        assert_eq!(budget.patience(), None);
        assert_eq!(budget.judge(95 << 20, 80, 88), BudgetVerdict::Lower(81), "15 MiB beside, and 2 to come");
        assert!(budget.patience().is_some(), "near the limit");
        assert_eq!(budget.judge(95 << 20, 80, 81), BudgetVerdict::Fits);
        let BudgetVerdict::TooMuch(FRAMES_MIN, beside) = budget.judge(115 << 20, 20, 81) else {
            panic!("too much")
        };
        assert_eq!(beside, 95 << 20);
        assert_eq!(budget.judge(115 << 20, 20, FRAMES_MIN), BudgetVerdict::Fits, "said once");
    }

    #[test]
    fn what_waits_for_memory_gets_a_part_of_the_limit() {
        let settings =
            ProcessSettings { memory: 100 << 20, chunk: 1 << 20, microset: 8, ..ProcessSettings::default() };
        let mut budget = Budget::new(&settings, false).expect("/proc");
        assert_eq!(budget.pressed(80, 88), 78, "of what has memory, not of what may have some");
        assert_eq!(budget.pressed(88, 80), 78);
        assert_eq!(budget.pressed(17, 88), FRAMES_MIN);
        assert_eq!(budget.pressed(12, 12), 12, "never more than there are");
        assert!(budget.looked.elapsed() >= LOOK_TIME, "and the next look is due");
    }
}

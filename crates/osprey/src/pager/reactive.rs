//! Paging without a plan: who came first leaves first, with a second chance while it is out; what follows a
//! touch in order is read ahead.

use super::chunks::State;
use super::worker::Worker;

/// Chunks read ahead at most.
const AHEAD_MAX: usize = 8;

/// Touches in order.
#[derive(Debug, Default)]
pub(super) struct TouchRun {
    /// The chunk that would continue it.
    next: u32,
    length: u32,
}

impl Worker {
    /// Keeps some frames free, and a pool of chunks out that a touch takes back.
    pub fn reactive(&mut self) -> Result<bool, String> {
        let count = self.frames.count();
        let low = (count / 16).max(2).min(2 * self.batch_max);
        let pool = count / 8;
        self.drop_stale_leavers();
        while self.frames.available() + self.writing < low && !self.stuck {
            while self.leavers.len() < pool + self.batch
                && let Some(chunk) = self.first_in()
            {
                if !self.leave(chunk, u64::MAX)? {
                    break;
                }
            }
            let before = self.writing;
            let later = self.leavers.split_off(self.leavers.len().min(self.batch_max));
            self.flush(true)?;
            self.leavers.extend(later);
            if self.writing == before {
                break;
            }
        }
        Ok(false)
    }

    /// After the touch of a chunk that continues a run: fetches what follows, twice as far each time.
    pub fn read_ahead(&mut self, chunk: u32) -> Result<(), String> {
        if self.schedule.is_some() && !self.is_overtaken() {
            return Ok(());
        }
        self.run.length =
            if self.run.next == chunk { (self.run.length + 1).min(AHEAD_MAX as u32) } else { 0 };
        self.run.next = chunk.saturating_add(1);
        let far = ((1usize << self.run.length) - 1).min(AHEAD_MAX).min(self.frames.available() / 4);
        for _ in 0..far {
            let next = self.run.next;
            let known = (next as usize) < self.chunks.len() && self.region.is_live(next);
            if !known || !self.ring.has_room() {
                break;
            }
            let begun = match self.chunks.state(next) {
                State::Disk => self.start_read(next)?,
                State::New => self.begin_new(next)?,
                _ => true,
            };
            if !begun {
                break;
            }
            self.run.next += 1;
        }
        Ok(())
    }
}

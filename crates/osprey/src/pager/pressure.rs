//! Threads that wait for memory of the process's group, and the pager that frees it.
//!
//! **Functionality.** In a memory group whose kill is switched off, a thread that touches memory when there is none waits. The
//! kernel rings a bell that the launcher's guard set up, and the pager gives frames up: free ones at once, others as
//! chunks leave. The same follows when a system call of the pager's own finds no memory.
//!
//! **What must hold.** The pager never waits for memory that only it could free. What it does from the bell to the first
//! frame freed touches no memory that it did not have, but for a few pages of heap, page tables and the kernel's own: for
//! these the guard gives a reserve, page by page, while somebody waits. Without a guard nothing waits, and the bell never
//! rings.

use super::worker::Worker;
use crate::sys::inherit::adopt;
use crate::sys::{eventfd, hush_bell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The bell that rings when a thread waits for memory.
#[derive(Debug)]
pub(super) struct Pressure {
    bell: OwnedFd,
    rang: bool,
}

impl Pressure {
    /// Takes over the descriptor that the launcher's guard left open; without one, a bell that nobody rings.
    ///
    /// # Errors
    /// The system's, where there is no such descriptor.
    pub fn open(bell: Option<i32>) -> io::Result<Self> {
        Ok(Self { bell: bell.map_or_else(eventfd, adopt)?, rang: false })
    }

    /// Readable when it rings.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// It rang.
    pub fn heard(&mut self) {
        hush_bell(self.bell.as_raw_fd());
        self.rang = true;
    }
}

impl Worker {
    /// Has frames given up when something waits for memory. Where those of the last time are not free yet, that is
    /// still under way.
    pub fn answer_pressure(&mut self) {
        let asked = std::mem::take(&mut self.pressure.rang) | self.frames.was_short() | self.ring.was_short();
        if !asked {
            return;
        }
        self.counts.reliefs += 1;
        if self.frames.excess() == 0 {
            let left = self.budget.pressed(self.frames.live(), self.frames.count());
            self.frames.lower(left);
        }
    }
}

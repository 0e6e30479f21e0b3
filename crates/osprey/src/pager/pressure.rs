//! Threads that wait for memory of the process's group, and the pager that frees it.
//!
//! **Functionality.** In a memory group whose kill is switched off (version 1), a thread that touches memory
//! when there is none waits; in one of version 2 it is delayed near the limit. The kernel or the launcher's
//! guard rings a bell that the guard set up, and the pager gives frames up: free ones at once, others as
//! chunks leave. The same follows when a system call of the pager's own finds no memory.
//!
//! **What must hold.** The pager never waits for memory that only it could free. What it does from the bell
//! to the first frame freed touches little memory that it did not have: its stack and some heap are there
//! from the start ([`HeapSupply`]). For what is beyond that (page tables, the kernel's own, the table of a
//! file that grows) the guard gives a reserve, page by page, while the pager does not answer its bell.
//! Without a guard nothing waits, and the bell never rings.

use super::worker::Worker;
use crate::sys::inherit::adopt;
use crate::sys::{eventfd, hush_bell};
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of stack and of heap that the pager's thread has from the start: more than it was seen to use.
const STACK: usize = 64 << 10;
const HEAP: usize = 512 << 10;
/// Bytes of a piece of that heap: no allocator maps so few by themselves, and gives them back when they are
/// freed.
const PIECE: usize = 8 << 10;

/// Heap that the pager's thread had and freed again: its allocator has the memory for what the thread needs
/// next. What lies behind it is still in use, because an allocator gives back what is free at the end of its
/// memory.
#[derive(Debug)]
pub(super) struct HeapSupply {
    _end: Box<[u8; 64]>,
}

impl HeapSupply {
    /// Touches the memory, for the calling thread. Not again later: that would itself wait where memory is
    /// short.
    pub fn new() -> Self {
        touch_stack();
        let pieces: Vec<Vec<u8>> = (0..HEAP / PIECE).map(|_| black_box(vec![1; PIECE])).collect();
        let end = black_box(Box::new([1; 64]));
        drop(pieces);
        Self { _end: end }
    }
}

#[inline(never)]
fn touch_stack() {
    black_box(&mut [1u8; STACK]);
}

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
    /// Has frames given up when something waits for memory. Where those of the last time are not free yet,
    /// that is still under way.
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

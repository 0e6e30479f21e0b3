//! A bounded queue of byte buffers between two threads: what "bounded window" means in every channel.
//!
//! One thread pushes full buffers, another pops them. Spent buffers travel back, so a stream allocates only
//! its window.

use base::ChannelError;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Window {
    state: Mutex<State>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// A popped buffer is not yet dealt with.
    busy: bool,
    /// No buffer will be pushed any more, and why: an orderly end or not.
    ended: Option<ChannelError>,
    /// No buffer will be popped any more, and why.
    refused: Option<ChannelError>,
}

/// What a popping thread finds.
pub(crate) enum Popped {
    Buffer(Vec<u8>),
    /// The queue is empty and the pushing side has ended with this.
    Ended(ChannelError),
    /// Nothing came for this long.
    Deadline,
}

impl Window {
    /// A window of `capacity` buffers.
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), capacity })
    }

    /// How many buffers may wait.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Every update of the state is a single assignment, so a panic elsewhere cannot leave it half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `blocked` says so; `false` when `deadline` passed first.
    fn wait_while<'g>(
        &self,
        mut state: MutexGuard<'g, State>,
        deadline: Duration,
        blocked: impl Fn(&State) -> bool,
    ) -> (MutexGuard<'g, State>, bool) {
        let start = Instant::now();
        while blocked(&state) {
            let Some(left) = deadline.checked_sub(start.elapsed()).filter(|d| !d.is_zero()) else {
                return (state, false);
            };
            let wait = self.changed.wait_timeout(state, left);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        (state, true)
    }

    /// Queues a buffer, waiting for space. Gives an empty buffer to go on with.
    pub(crate) fn push(&self, full: Vec<u8>, deadline: Duration) -> Result<Vec<u8>, ChannelError> {
        let blocked = |s: &State| s.refused.is_none() && s.queue.len() >= self.capacity;
        let (mut state, in_time) = self.wait_while(self.lock(), deadline, blocked);
        if let Some(why) = &state.refused {
            return Err(why.clone());
        }
        if !in_time {
            return Err(passed(deadline));
        }
        state.queue.push_back(full);
        let next = state.spare.pop();
        drop(state);
        self.changed.notify_all();
        Ok(next.unwrap_or_default())
    }

    /// Takes the next buffer, waiting for one. It counts as outstanding until [`Window::spent`].
    pub(crate) fn pop(&self, deadline: Duration) -> Popped {
        let blocked = |s: &State| (s.queue.is_empty() && s.ended.is_none()) || s.busy;
        let (mut state, _) = self.wait_while(self.lock(), deadline, blocked);
        if state.busy {
            return Popped::Deadline;
        }
        match (state.queue.pop_front(), &state.ended) {
            (Some(buffer), _) => {
                state.busy = true;
                drop(state);
                self.changed.notify_all();
                Popped::Buffer(buffer)
            }
            (None, Some(why)) => Popped::Ended(why.clone()),
            (None, None) => Popped::Deadline,
        }
    }

    /// Returns a popped buffer: it has been dealt with.
    pub(crate) fn spent(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut state = self.lock();
        state.busy = false;
        if state.spare.len() <= self.capacity && buffer.capacity() > 0 {
            state.spare.push(buffer);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Whether everything pushed has been dealt with, so that the pushing side may deal with the next itself.
    pub(crate) fn idle(&self) -> bool {
        let state = self.lock();
        state.queue.is_empty() && !state.busy && state.refused.is_none()
    }

    /// How the pushing side has ended, once nothing is left to pop.
    pub(crate) fn over(&self) -> Option<ChannelError> {
        let state = self.lock();
        if state.queue.is_empty() { state.ended.clone() } else { None }
    }

    /// Waits until everything pushed has been dealt with.
    pub(crate) fn drained(&self, deadline: Duration) -> Result<(), ChannelError> {
        let blocked = |s: &State| s.refused.is_none() && (s.busy || !s.queue.is_empty());
        let (state, in_time) = self.wait_while(self.lock(), deadline, blocked);
        match &state.refused {
            Some(why) => Err(why.clone()),
            None if in_time => Ok(()),
            None => Err(passed(deadline)),
        }
    }

    /// Nothing more will be pushed: what the popping side learns after the last buffer.
    pub(crate) fn end(&self, why: ChannelError) {
        self.lock().ended.get_or_insert(why);
        self.changed.notify_all();
    }

    /// Nothing more will be popped: what the pushing side learns at once.
    pub(crate) fn refuse(&self, why: ChannelError) {
        self.lock().refused.get_or_insert(why);
        self.changed.notify_all();
    }
}

/// The error of a deadline that passed.
pub(crate) fn passed(deadline: Duration) -> ChannelError {
    ChannelError::Deadline { limit_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX) }
}

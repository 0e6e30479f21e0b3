//! Several threads that meet different peers: what they know of each other.

use super::{Meet, RETRY};
use base::{Error, PartyId};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Who is there, and whether the meeting is over: the first error ends the others.
pub(super) struct Effort {
    /// How many peers make it whole.
    wanted: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Everybody who has come, and whether they are still there.
    came: BTreeMap<PartyId, bool>,
    whole: bool,
    over: bool,
    error: Option<Error>,
}

impl Effort {
    /// Over when so many peers are there at one time, or somebody fails.
    pub(super) fn until(wanted: usize) -> Self {
        Self { wanted, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether everybody is there. It stays so: who leaves after that leaves the session, not the meeting.
    pub(super) fn whole(&self) -> bool {
        self.state().whole
    }

    /// Whether nobody needs to try any more.
    pub(super) fn over(&self) -> bool {
        let state = self.state();
        state.over || state.whole
    }

    /// A peer is there.
    pub(super) fn come(&self, peer: PartyId) {
        let mut state = self.state();
        state.came.insert(peer, true);
        state.whole |= self.wanted == state.came.values().filter(|there| **there).count();
        self.changed.notify_all();
    }

    /// A peer that was there has gone; false when that does not matter any more.
    pub(super) fn gone(&self, peer: PartyId) -> bool {
        let mut state = self.state();
        if !state.whole {
            state.came.insert(peer, false);
            self.changed.notify_all();
        }
        !state.whole
    }

    /// Whether a peer is there now.
    pub(super) fn there(&self, peer: PartyId) -> bool {
        self.state().came.get(&peer).copied().unwrap_or_default()
    }

    /// Whether a peer was there at some time.
    pub(super) fn came(&self, peer: PartyId) -> bool {
        self.state().came.contains_key(&peer)
    }

    /// Waits until something changes, at most so long.
    pub(super) fn pause(&self, most: Duration) {
        let state = self.state();
        if !(state.over || state.whole) {
            let _ = self.changed.wait_timeout(state, most);
        }
    }

    /// Keeps the first error; what it broke off elsewhere says nothing new, nor does what the end of the
    /// meeting broke off.
    pub(super) fn note<T>(&self, done: Result<Option<T>, Error>) -> Option<T> {
        done.unwrap_or_else(|error| {
            let mut state = self.state();
            if !state.whole {
                state.error.get_or_insert(error);
                state.over = true;
                self.changed.notify_all();
            }
            None
        })
    }

    pub(super) fn end(self) -> Result<(), Error> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).error.map_or(Ok(()), Err)
    }
}

impl Meet {
    /// Until when to try for `peer`. Who has been here before is waited for a little longer, so that the
    /// blame falls on those who never came: others left because of them.
    pub(super) fn limit(&self, peer: PartyId, until: Instant, effort: &Effort) -> Instant {
        if effort.came(peer) { until + 2 * RETRY.1 } else { until }
    }
}

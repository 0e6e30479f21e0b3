//! The end of all that a party does at once, when a part of it fails: a thread that waits for a peer would
//! wait until its deadline, though nothing that comes can save the run.

use base::ChannelError;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends the waits of channels that were given it ([`crate::Session::halts_with`]), and whatever they would
/// send or receive next, with an error that says so. Clones are one halt, which stays as it is put.
#[derive(Clone, Default)]
pub struct RangeHalt(Arc<HaltState>);

#[derive(Default)]
struct HaltState {
    halted: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

/// The error of what it ends.
pub(crate) fn halted() -> ChannelError {
    ChannelError::Io("stopped here, since another range of rows failed at this party".into())
}

type Waker = Box<dyn Fn() + Send>;

impl RangeHalt {
    /// Ends it.
    pub fn halt(&self) {
        self.0.halted.store(true, Ordering::SeqCst);
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.iter().for_each(|wake| wake());
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// That it has.
    pub fn check(&self) -> Result<(), ChannelError> {
        if self.0.halted.load(Ordering::SeqCst) { Err(halted()) } else { Ok(()) }
    }

    /// `wake` is called when it ends, at once where it has ended. It must wait for nothing.
    pub(crate) fn on_halt(&self, wake: impl Fn() + Send + 'static) {
        self.wakers().push(Box::new(wake));
        if self.check().is_err() {
            self.halt();
        }
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        // Nothing panics while it holds the list.
        self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RangeHalt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RangeHalt({:?})", self.check())
    }
}

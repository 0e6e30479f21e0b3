//! The end of a run by its own operator, from another thread than those that run it.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Ends what a party waits for: nobody is waited for any more, and whatever channel next waits for its peer
/// fails with [`base::ChannelError::Stopped`]. What is under way to the peers still goes out, so that they
/// hear that this party stops. Clones are one switch, which stays as it is put.
#[derive(Clone, Default)]
pub struct StopSwitch(Arc<SwitchState>);

#[derive(Default)]
struct SwitchState {
    stopped: AtomicBool,
    /// Weak: a connection goes with its channel.
    streams: Mutex<Vec<Weak<TcpStream>>>,
}

impl StopSwitch {
    /// Ends it.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        // One that is gone waits for nothing.
        self.streams().drain(..).filter_map(|stream| stream.upgrade()).for_each(|stream| end(&stream));
    }

    /// Whether it is to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Has a connection end with it.
    pub(crate) fn hold(&self, stream: &Arc<TcpStream>) {
        let mut streams = self.streams();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
        drop(streams);
        if self.is_stopped() {
            end(stream);
        }
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Weak<TcpStream>>> {
        // Nothing panics while it holds the list.
        self.0.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes who reads from a connection; what is written still leaves.
fn end(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Read);
}

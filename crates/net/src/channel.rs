//! One ordered, reliable byte pipe to one peer, and its in-process form.

use crate::halt::halted;
use crate::window::{Popped, Window, passed};
use crate::{InPlace, RangeHalt};
use base::{ChannelError, limits};
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// One ordered, reliable byte pipe to one peer. Transports know no step, no round, no message.
///
/// After an error the state of a channel is unknown: drop it. A channel dropped right after
/// [`Channel::finish`] ends in good order and the peer sees [`ChannelError::Closed`]; dropped in any other
/// state, the peer sees [`ChannelError::Cut`] once it has read what was queued.
pub trait Channel: Send {
    /// Queues `bytes`. Waits only for window space: a streamed circuit needs back-pressure.
    ///
    /// # Errors
    /// When the peer is gone or takes nothing for longer than the deadline.
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError>;

    /// Hands over what is queued, then waits until `into` is full.
    ///
    /// # Errors
    /// When the peer is gone or silent for longer than the deadline.
    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError>;

    /// Hands over what is queued and waits until it has left this process: the end of a conversation.
    ///
    /// # Errors
    /// When the peer is gone or takes nothing for longer than the deadline.
    fn finish(&mut self) -> Result<(), ChannelError>;

    /// Bytes that one side may send while the peer reads nothing.
    fn window(&self) -> usize {
        limits::WINDOW_BYTES
    }

    /// Whether nobody but the two ends can read the bytes: TLS and pipes inside a process. A transport that
    /// does not know says no, and protocols mask what a third party must not see.
    fn private(&self) -> bool {
        false
    }

    /// Whether nobody but the two ends can change the bytes without being noticed. What is private is.
    fn authenticated(&self) -> bool {
        self.private()
    }

    /// How long this end waits without progress.
    fn deadline(&self) -> Duration {
        Duration::from_millis(limits::DEADLINE_MS)
    }

    /// From now on this end waits that long. Transports that take no deadline ignore it.
    fn set_deadline(&mut self, _deadline: Duration) {}

    /// The address of this machine that the peer sees, where there is one: other transports to the same peer
    /// can be bound to it.
    fn local_ip(&self) -> Option<IpAddr> {
        None
    }

    /// Looks, without waiting and without using up a byte, whether the peer has left and nothing is left to
    /// read. A transport that cannot tell says that the peer is there.
    ///
    /// # Errors
    /// How the peer left: [`ChannelError::Closed`] or [`ChannelError::Cut`].
    fn watch(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }

    /// The private channel to the same peer that this one was put over, where there is one: see
    /// [`crate::Session::keep_private`].
    fn under(&mut self) -> Option<&mut dyn Channel> {
        None
    }

    /// Told whenever the session enters another step; transports ignore it, fault injection listens.
    fn at_step(&mut self, _step: &str) {}

    /// From now on what waits for the peer ends with `halt`, and nothing is sent or received after it. A
    /// transport that wraps another hands it on.
    fn halts_with(&mut self, _halt: &RangeHalt) {}

    /// Its own memory, where long messages may be written and read in place.
    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        None
    }
}

impl<C: Channel + ?Sized> Channel for Box<C> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        (**self).send(bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        (**self).recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        (**self).finish()
    }

    fn window(&self) -> usize {
        (**self).window()
    }

    fn private(&self) -> bool {
        (**self).private()
    }

    fn authenticated(&self) -> bool {
        (**self).authenticated()
    }

    fn deadline(&self) -> Duration {
        (**self).deadline()
    }

    fn set_deadline(&mut self, deadline: Duration) {
        (**self).set_deadline(deadline);
    }

    fn local_ip(&self) -> Option<IpAddr> {
        (**self).local_ip()
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        (**self).watch()
    }

    fn under(&mut self) -> Option<&mut dyn Channel> {
        (**self).under()
    }

    fn at_step(&mut self, step: &str) {
        (**self).at_step(step);
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        (**self).halts_with(halt);
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        (**self).in_place()
    }
}

/// What stands where a channel was taken away: every use says that the conversation is cut.
pub(crate) struct Gone;

impl Channel for Gone {
    fn send(&mut self, _bytes: &[u8]) -> Result<(), ChannelError> {
        Err(ChannelError::Cut)
    }

    fn recv(&mut self, _into: &mut [u8]) -> Result<(), ChannelError> {
        Err(ChannelError::Cut)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        Err(ChannelError::Cut)
    }
}

/// Bytes gathered before they are handed to the peer or to a writer thread.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Buffers in the window of a channel.
pub(crate) const WINDOW_CHUNKS: usize = limits::WINDOW_BYTES / CHUNK_BYTES;

struct MemChannel {
    to: Arc<Window>,
    from: Arc<Window>,
    chunk: usize,
    queued: Vec<u8>,
    arrived: Vec<u8>,
    read: usize,
    deadline: Duration,
    finished: bool,
    halt: RangeHalt,
}

/// Two ends of an in-process pipe with a bounded window.
#[must_use]
pub fn pair(deadline: Duration) -> (Box<dyn Channel>, Box<dyn Channel>) {
    pair_with(deadline, WINDOW_CHUNKS, CHUNK_BYTES)
}

/// Two ends of a pipe whose window is `chunks` buffers of `chunk` bytes.
pub(crate) fn pair_with(
    deadline: Duration,
    chunks: usize,
    chunk: usize,
) -> (Box<dyn Channel>, Box<dyn Channel>) {
    let (there, back) = (Window::new(chunks), Window::new(chunks));
    let end = |to, from| -> Box<dyn Channel> {
        let (queued, arrived, halt) = (Vec::new(), Vec::new(), RangeHalt::default());
        Box::new(MemChannel { to, from, chunk, queued, arrived, read: 0, deadline, finished: false, halt })
    };
    (end(there.clone(), back.clone()), end(back, there))
}

impl MemChannel {
    fn hand_over(&mut self) -> Result<(), ChannelError> {
        if !self.queued.is_empty() {
            let full = std::mem::take(&mut self.queued);
            self.queued = self.to.push(full, self.deadline)?;
        }
        Ok(())
    }
}

impl Channel for MemChannel {
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        self.halt.check()?;
        self.finished = false;
        while !bytes.is_empty() {
            let take = bytes.len().min(self.chunk - self.queued.len());
            self.queued.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.queued.len() == self.chunk {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn recv(&mut self, mut into: &mut [u8]) -> Result<(), ChannelError> {
        self.halt.check()?;
        self.hand_over()?;
        while !into.is_empty() {
            if self.read == self.arrived.len() {
                // An empty place in the window opens only when its bytes are used up.
                self.from.spent(std::mem::take(&mut self.arrived));
                self.read = 0;
                self.arrived = match self.from.pop(self.deadline) {
                    Popped::Buffer(next) => next,
                    Popped::Ended(why) => return Err(why),
                    Popped::Deadline => return Err(passed(self.deadline)),
                };
            }
            let take = into.len().min(self.arrived.len() - self.read);
            let (head, tail) = into.split_at_mut(take);
            head.copy_from_slice(&self.arrived[self.read..self.read + take]);
            self.read += take;
            into = tail;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.hand_over()?;
        self.finished = true;
        Ok(())
    }

    fn window(&self) -> usize {
        self.to.capacity() * self.chunk
    }

    fn private(&self) -> bool {
        true
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        match self.from.over() {
            Some(why) if self.read == self.arrived.len() => Err(why),
            _ => Ok(()),
        }
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        self.halt = halt.clone();
        let windows = [&self.to, &self.from].map(Arc::downgrade);
        halt.on_halt(move || {
            let [to, from] = windows.each_ref().map(Weak::upgrade);
            to.inspect(|to| to.refuse(halted()));
            from.inspect(|from| from.end(halted()));
        });
    }
}

impl Drop for MemChannel {
    fn drop(&mut self) {
        let why = if self.finished { ChannelError::Closed } else { ChannelError::Cut };
        // First of all a peer that waits to send to us must stop waiting: only then may we wait for it.
        self.from.refuse(why.clone());
        // What is queued still reaches the peer; if the peer takes nothing, it will not miss it either.
        let _ = self.hand_over();
        self.to.end(why);
    }
}

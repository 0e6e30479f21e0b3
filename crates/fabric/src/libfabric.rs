//! A channel over libfabric: the sender writes into the receiver's memory.
//!
//! **Functionality.** What [`Channel`] says, over a reliable datagram endpoint (FI_EP_RDM) of any provider
//! with remote writes (fi_writedata). Each end has a landing block that only its peer writes to, and a
//! staging block of the same size. The sender copies to staging, writes to the same place of the peer's
//! landing, and reuses the place when the peer's credit says that it was read. Providers `tcp` and `shm` are
//! tested; `verbs` and others are not.
//!
//! **Security.** None by itself: who has the memory key writes what and when it likes. It is used under
//! [`crate::SealedChannel`]. **No check can be outrun:** bytes are copied out of landing once, before
//! anything hashes them, and the copy is what is hashed and used. Notices of the peer are checked before an
//! offset is made of them.
//!
//! **Moving on.** libfabric moves bytes only while it is called. Every call of the channel does so, and a
//! thread of its own looks every [`BUSY`] while writes are under way and every [`IDLE`] otherwise, so that a
//! party that waits for one peer, or computes, still serves the others.
//!
//! **Ends.** The TLS channel that it came from stays, silent, as the life line: TLS's goodbye is the orderly
//! end, a process that dies cuts it. `finish` waits until all bytes lie in the peer's memory, or the peer has
//! said goodbye after they were written: it reads no more.
//!
//! libfabric's shm provider keeps a file per endpoint in /dev/shm, named by process and user, and removes it
//! when the endpoint is closed; a killed process leaves it there. Our own shared memory
//! ([`crate::PlainTransport::Shm`]) does not. Use the provider between processes only: two endpoints in one
//! process share state that the first to close takes away.

mod flow;
mod leftovers;
pub(crate) mod meet;
mod shim;

use crate::passed;
use base::ChannelError;
use flow::Flow;
use net::{Channel, RangeHalt};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread looks while writes are under way, and while none are.
const BUSY: Duration = Duration::from_micros(200);
const IDLE: Duration = Duration::from_millis(5);
/// Looks without anything under way before the thread calls it idle.
const QUIET_LOOKS: u32 = 20;
/// How long a side waits before it looks whether its peer lives.
const SLICE: Duration = Duration::from_millis(20);
/// Looks of a waiting side before it lets others have the processor between two looks, and before it sleeps.
const LOOKS: u32 = 64;
const YIELDS: u32 = 256;
/// How long a side that waits sleeps between looks where the provider cannot wait.
const NAP: Duration = Duration::from_micros(50);
/// How long the last bytes of a channel that is dropped may take.
const LINGER: Duration = Duration::from_secs(2);
/// A failed endpoint may be the first sign of a peer that died: so long its life line has time to say so.
const EXPLAIN: Duration = Duration::from_secs(1);

/// An endpoint and the thread that moves it on.
pub(crate) struct EndpointThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    ring: usize,
}

struct Shared {
    flow: Mutex<Flow>,
    stop: AtomicBool,
    /// The thread sleeps long.
    idle: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does: nothing while the channel is in a call of its own.
    fn serve(&self) {
        let mut quiet = 0;
        while !self.stop.load(Relaxed) {
            let settled = match self.flow.try_lock() {
                Ok(mut flow) => {
                    flow.poll(0);
                    flow.settled() || flow.failed.is_some()
                }
                Err(TryLockError::Poisoned(_)) => return,
                Err(TryLockError::WouldBlock) => false,
            };
            quiet = if settled { quiet + 1 } else { 0 };
            let idle = quiet > QUIET_LOOKS;
            self.idle.store(idle, Relaxed);
            std::thread::park_timeout(if idle { IDLE } else { BUSY });
        }
    }
}

impl EndpointThread {
    fn new(flow: Flow, ring: usize) -> Result<Self, String> {
        let shared =
            Arc::new(Shared { flow: Mutex::new(flow), stop: false.into(), idle: AtomicBool::new(false) });
        let serving = shared.clone();
        let thread = std::thread::Builder::new().name("fabric".into()).spawn(move || serving.serve());
        Ok(Self { shared, thread: Some(thread.map_err(|e| format!("no thread: {e}"))?), ring })
    }

    /// Waits until `ready`. `alive` is asked from time to time whether the peer is there.
    fn wait(
        &self,
        deadline: Duration,
        ready: impl Fn(&Flow) -> bool,
        mut alive: impl FnMut() -> Result<(), ChannelError>,
    ) -> Result<(), ChannelError> {
        let (start, mut looked, mut looks) = (Instant::now(), Instant::now(), 0);
        loop {
            let (failed, waits) = {
                let mut flow = self.shared.lock();
                let patient = looks > YIELDS && flow.waits;
                flow.poll(if patient { SLICE.as_millis() as u32 } else { 0 });
                if ready(&flow) {
                    return Ok(());
                }
                (flow.failed.clone(), flow.waits)
            };
            if let Some(why) = failed {
                return Err(explain(&why, alive));
            }
            looks += 1;
            if looks > YIELDS && !waits {
                std::thread::sleep(NAP);
            } else if looks > LOOKS {
                std::thread::yield_now();
            }
            if looked.elapsed() >= SLICE {
                looked = Instant::now();
                let there = alive();
                let mut flow = self.shared.lock();
                flow.poll(0);
                if ready(&flow) {
                    return Ok(());
                }
                there?;
            }
            if start.elapsed() >= deadline {
                return Err(passed(deadline));
            }
        }
    }

    /// Wakes the thread where writes stay under way.
    fn leave(&self, flow: &Flow) {
        if !flow.settled()
            && self.shared.idle.swap(false, Relaxed)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }

    /// The channel. `life` is the private channel to the same peer.
    pub(crate) fn channel(self, life: Box<dyn Channel>) -> LibfabricChannel {
        let (deadline, halt) = (life.deadline(), RangeHalt::default());
        LibfabricChannel { deadline, side: self, life: Some(life), finished: false, halt }
    }
}

impl Drop for EndpointThread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A failure of the endpoint: that the peer is gone, where its life line says so.
fn explain(why: &str, mut alive: impl FnMut() -> Result<(), ChannelError>) -> ChannelError {
    let start = Instant::now();
    while start.elapsed() < EXPLAIN {
        if let Err(gone) = alive() {
            return gone;
        }
        std::thread::sleep(SLICE);
    }
    ChannelError::Io(format!("libfabric: {why}"))
}

/// One end of a channel over libfabric.
pub(crate) struct LibfabricChannel {
    side: EndpointThread,
    life: Option<Box<dyn Channel>>,
    deadline: Duration,
    finished: bool,
    halt: RangeHalt,
}

impl LibfabricChannel {
    fn wait(&mut self, ready: impl Fn(&Flow) -> bool) -> Result<(), ChannelError> {
        let Self { life, halt, .. } = self;
        halt.check()?;
        let mut alive = || life.as_mut().map_or(Err(ChannelError::Cut), |life| life.watch());
        self.side.wait(self.deadline, ready, || halt.check().and_then(|()| alive()))
    }

    fn flush(&mut self) {
        let mut flow = self.side.shared.lock();
        flow.flush();
        self.side.leave(&flow);
    }
}

impl Channel for LibfabricChannel {
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        self.finished = false;
        while !bytes.is_empty() {
            let staged = self.side.shared.lock().stage(bytes);
            bytes = &bytes[staged..];
            if staged == 0 {
                self.flush();
                self.wait(|flow| flow.space() > 0)?;
            }
        }
        Ok(())
    }

    fn recv(&mut self, mut into: &mut [u8]) -> Result<(), ChannelError> {
        self.flush();
        while !into.is_empty() {
            let taken = self.side.shared.lock().take(into);
            into = &mut into[taken..];
            if taken == 0 {
                self.wait(|flow| flow.ready() > 0)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.flush();
        match self.wait(Flow::settled) {
            // It has read what it wanted and will not answer; a credit that it is owed has no use.
            Err(ChannelError::Closed) if self.side.shared.lock().all_posted() => {}
            done => done?,
        }
        self.finished = true;
        Ok(())
    }

    /// Credits are given for eighths of the ring.
    fn window(&self) -> usize {
        self.side.ring / 8 * 7
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        let alive = self.life.as_mut().map_or(Err(ChannelError::Cut), |life| life.watch());
        let mut flow = self.side.shared.lock();
        flow.poll(0);
        if flow.ready() > 0 { Ok(()) } else { alive }
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        self.halt = halt.clone();
        self.life.iter_mut().for_each(|life| life.halts_with(halt));
    }

    fn under(&mut self) -> Option<&mut dyn Channel> {
        match &mut self.life {
            Some(life) => Some(&mut **life),
            None => None,
        }
    }
}

impl Drop for LibfabricChannel {
    fn drop(&mut self) {
        if !self.finished {
            // What is queued still reaches a peer that is there.
            self.deadline = self.deadline.min(LINGER);
            self.flush();
            let _ = self.wait(Flow::settled);
        }
        if let Some(mut life) = self.life.take()
            && self.finished
        {
            let _ = life.finish();
        }
    }
}

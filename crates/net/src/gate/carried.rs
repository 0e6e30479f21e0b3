//! Connections that a gate hands on, and which of them were let in.
//!
//! The gate cannot see whether a handshake succeeds. Who was told more than a refusal was let in, and so was
//! who is still there when whom it went to would have ended it. Until then a connection is one of a [`Crowd`]
//! of those alone that asked for a name that is registered: who knows none keeps none of them out.

use super::{GateEvent, GateShared, lock};
use crate::accept::HANDSHAKE;
use crate::crowd::Crowd;
use crate::tls::TlsRefusal;
use base::limits;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long whom a connection went to may take to let it in: a handshake, and some way.
const UNPROVEN: Duration = HANDSHAKE.saturating_add(Duration::from_secs(1));
/// Bytes from inside that only who was let in gets: whom TLS refuses is told a flight and an alert, of less
/// than 3 KiB.
const LET_IN: u64 = 8 << 10;
/// How long the second end of a connection may take once the first one has ended it. Who ends one lingers for
/// a shorter time.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes that are copied at once.
const COPY_BYTES: usize = 64 << 10;

/// All connections that go on.
pub(super) struct CarriedConnections {
    /// Those of which it is not known yet whether they are let in.
    unproven: Mutex<Crowd<Weak<CarriedConnection>>>,
    /// How many were, and the most there may be.
    settled: AtomicUsize,
    most: usize,
}

/// One of them; it ends with both of its threads.
pub(super) struct CarriedConnection {
    shared: Arc<GateShared>,
    name: String,
    from: SocketAddr,
    since: Instant,
    /// Outside, inside.
    ends: [Arc<TcpStream>; 2],
    /// What each end sent.
    bytes: [AtomicU64; 2],
    settled: AtomicBool,
    /// How many directions have ended.
    over: Mutex<usize>,
    one_over: Condvar,
}

impl CarriedConnections {
    /// Two descriptors each, of so many.
    pub(super) fn new(descriptors: usize) -> Self {
        let most = limits::GATE_CONNECTIONS.min(descriptors / 8);
        // All lanes of a peer come from one address, and at once.
        let unproven = Mutex::new(Crowd::with_share(most, usize::from(limits::WORKERS)));
        Self { unproven, settled: AtomicUsize::new(0), most }
    }

    /// One more; what goes for it is cut.
    fn admit(&self, from: IpAddr, new: &Arc<CarriedConnection>) {
        let goes = lock(&self.unproven).admit(from, Arc::downgrade(new));
        if let Some(goes) = goes.and_then(|goes| goes.upgrade()) {
            goes.cut();
        }
    }

    /// Counts those that were let in meanwhile, and forgets those that are over.
    pub(super) fn settle(&self) {
        let is_due = |one: &Weak<CarriedConnection>| one.upgrade().is_none_or(|one| one.is_let_in());
        let due = lock(&self.unproven).take(is_due);
        due.iter().filter_map(Weak::upgrade).for_each(|one| one.settle(self));
    }
}

impl CarriedConnection {
    /// Copies between outside and inside from now on.
    pub(super) fn start(
        shared: &Arc<GateShared>,
        name: String,
        from: SocketAddr,
        ends: [Arc<TcpStream>; 2],
    ) -> Result<(), TlsRefusal> {
        let carried = Arc::new(Self {
            shared: shared.clone(),
            name: name.clone(),
            from,
            since: Instant::now(),
            ends,
            bytes: Default::default(),
            settled: AtomicBool::new(false),
            over: Mutex::new(0),
            one_over: Condvar::new(),
        });
        shared.carried.settle();
        shared.carried.admit(from.ip(), &carried);
        shared.tell(GateEvent::Carried { name, from });
        for direction in [0, 1] {
            let copied = carried.clone();
            let copy = move || copied.copy(direction);
            if let Err(e) = std::thread::Builder::new().name("gate copy".into()).spawn(copy) {
                carried.cut();
                return Err(TlsRefusal::Io(format!("no thread can be started for it: {e}")));
            }
        }
        Ok(())
    }

    /// Copies what one end sends, until both have ended, or one has and the other one does not follow.
    fn copy(&self, from: usize) {
        if self.pump(from).is_err() {
            self.cut();
        }
        let mut over = lock(&self.over);
        *over += 1;
        self.one_over.notify_all();
        let waited = self.one_over.wait_timeout_while(over, GRACE, |over| *over < self.ends.len());
        if waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
            self.cut();
        }
    }

    fn pump(&self, from: usize) -> std::io::Result<()> {
        let (mut source, mut sink) = (&*self.ends[from], &*self.ends[1 - from]);
        let mut bytes = vec![0; COPY_BYTES];
        loop {
            match source.read(&mut bytes) {
                Ok(0) => return sink.shutdown(Shutdown::Write),
                Ok(count) => {
                    self.bytes[from].fetch_add(count as u64, Ordering::Relaxed);
                    sink.write_all(&bytes[..count])?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn cut(&self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// One that an end has ended is over soon, and was let in or not.
    fn is_let_in(&self) -> bool {
        let told = self.bytes[1].load(Ordering::Relaxed);
        *lock(&self.over) == 0 && (told > LET_IN || self.since.elapsed() > UNPROVEN)
    }

    /// It was let in; it ends where there is no room for it.
    fn settle(&self, all: &CarriedConnections) {
        self.settled.store(true, Ordering::SeqCst);
        if all.settled.fetch_add(1, Ordering::SeqCst) >= all.most {
            let why = format!(
                "{} connections are open, as many as there may be (limits::GATE_CONNECTIONS, and an eighth \
                 of `ulimit -Hn`)",
                all.most
            );
            self.shared.tell(GateEvent::Refused { from: self.from, why });
            self.cut();
        }
    }
}

impl Drop for CarriedConnection {
    fn drop(&mut self) {
        if self.settled.load(Ordering::SeqCst) {
            self.shared.carried.settled.fetch_sub(1, Ordering::SeqCst);
        }
        let bytes = [0, 1].map(|end| self.bytes[end].load(Ordering::Relaxed));
        self.shared.tell(GateEvent::Ended { name: std::mem::take(&mut self.name), bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shared;
    use super::*;
    use std::net::TcpListener;

    /// A connection that goes on from this address, and its far ends, outside and inside.
    fn carried(shared: &Arc<GateShared>, from: &str) -> [TcpStream; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = Vec::new();
        let ends = [0, 1].map(|_| {
            far.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            Arc::new(listener.accept().unwrap().0)
        });
        let from = format!("{from}:1").parse().unwrap();
        CarriedConnection::start(shared, "l0-0.00.tacit.invalid".to_owned(), from, ends).unwrap();
        far.try_into().unwrap()
    }

    /// Sends from inside, and waits until outside has all of it.
    fn tell([outside, inside]: &mut [TcpStream; 2], bytes: usize) -> std::io::Result<()> {
        inside.write_all(&vec![1; bytes])?;
        outside.read_exact(&mut vec![0; bytes])
    }

    #[test]
    fn who_was_told_more_than_a_refusal_was_let_in() {
        let (shared, _told) = shared();
        let shared = Arc::new(shared);
        // There is one place for who is not let in yet, and one for who is.
        let mut first = carried(&shared, "192.0.2.1");
        tell(&mut first, LET_IN as usize + 1).unwrap();
        let mut refused = carried(&shared, "192.0.2.2");
        tell(&mut refused, 3 << 10).unwrap();
        let mut second = carried(&shared, "192.0.2.3");
        assert!(tell(&mut refused, 1).is_err(), "it had to go for the next one");
        tell(&mut first, 1).unwrap();
        tell(&mut second, LET_IN as usize + 1).unwrap();
        shared.carried.settle();
        assert!(tell(&mut second, 1).is_err(), "there is one place");
        tell(&mut first, 1).unwrap();
    }
}

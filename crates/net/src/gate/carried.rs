//! Connections that a gate hands on, and which of them were let in.
//!
//! The gate cannot see whether a handshake succeeds. Who was told more than a refusal was let in, and so was
//! who is still there when whom it went to would have ended it. Until then a connection is one of a [`Crowd`]
//! of those alone that asked for a name that is registered: who knows none keeps none of them out.

use super::{GateEvent, GateShared, lock};
use crate::accept::HANDSHAKE;
use crate::crowd::Crowd;
use crate::identity::KeyFingerprint;
use crate::tls::TlsRefusal;
use base::limits;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Those that were, the latest last, by the key whose names they asked for.
    settled: Mutex<Vec<(KeyFingerprint, Weak<CarriedConnection>)>>,
    /// How many there may be, and of each key whatever the others have.
    most: usize,
    share: usize,
}

/// One of them; it ends with both of its threads.
pub(super) struct CarriedConnection {
    shared: Arc<GateShared>,
    name: String,
    /// The coordinator's whose name that is.
    key: KeyFingerprint,
    from: SocketAddr,
    since: Instant,
    /// Outside, inside.
    ends: [Arc<TcpStream>; 2],
    /// What each end sent.
    bytes: [AtomicU64; 2],
    /// How many directions have ended.
    over: Mutex<usize>,
    one_over: Condvar,
}

impl CarriedConnections {
    /// Two descriptors each, of so many, for coordinators of so many keys.
    pub(super) fn new(descriptors: usize, keys: usize) -> Self {
        let most = limits::GATE_CONNECTIONS.min(descriptors / 8);
        // All lanes of a peer come from one address, and at once.
        let unproven = Mutex::new(Crowd::with_share(most, usize::from(limits::WORKERS)));
        Self { unproven, settled: Mutex::default(), most, share: most / keys.max(1) }
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
        due.iter().filter_map(Weak::upgrade).for_each(|one| self.keep(&one));
    }

    /// One was let in. It ends where there is no room, unless its key has less than its share: then it is the
    /// latest of the key that has most.
    fn keep(&self, new: &Arc<CarriedConnection>) {
        let mut settled = lock(&self.settled);
        settled.retain(|(_, one)| one.strong_count() > 0);
        if settled.len() >= self.most {
            let Some(at) = self.who_goes(&settled, new.key) else {
                drop(settled);
                return new.end_for_room(&format!(
                    "{} connections are open, as many as there may be (limits::GATE_CONNECTIONS, and an \
                     eighth of `ulimit -Hn`)",
                    self.most
                ));
            };
            if let Some(goes) = settled.remove(at).1.upgrade() {
                goes.end_for_room(&format!(
                    "another coordinator's peer comes, who has less than its share of {} connections",
                    self.most
                ));
            }
        }
        settled.push((new.key, Arc::downgrade(new)));
    }

    /// The place of the one that ends for one more of a key.
    fn who_goes(
        &self,
        settled: &[(KeyFingerprint, Weak<CarriedConnection>)],
        key: KeyFingerprint,
    ) -> Option<usize> {
        let mut counts: HashMap<KeyFingerprint, usize> = HashMap::new();
        settled.iter().for_each(|(of, _)| *counts.entry(*of).or_default() += 1);
        let own = counts.get(&key).copied().unwrap_or_default();
        let (most, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let gives = own < self.share && count > own;
        settled.iter().rposition(|(of, _)| gives && *of == most)
    }
}

impl CarriedConnection {
    /// Copies between outside and inside from now on.
    pub(super) fn start(
        shared: &Arc<GateShared>,
        (name, key): (String, KeyFingerprint),
        from: SocketAddr,
        ends: [Arc<TcpStream>; 2],
    ) -> Result<(), TlsRefusal> {
        let carried = Arc::new(Self {
            shared: shared.clone(),
            name: name.clone(),
            key,
            from,
            since: Instant::now(),
            ends,
            bytes: Default::default(),
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

    fn end_for_room(&self, why: &str) {
        self.shared.tell(GateEvent::Refused { from: self.from, why: why.to_owned() });
        self.cut();
    }
}

impl Drop for CarriedConnection {
    fn drop(&mut self) {
        let bytes = [0, 1].map(|end| self.bytes[end].load(Ordering::Relaxed));
        self.shared.tell(GateEvent::Ended { name: std::mem::take(&mut self.name), bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shared;
    use super::*;
    use std::net::TcpListener;

    /// A connection that goes on from this address to a name of this key, and its far ends, outside and
    /// inside.
    fn carried(shared: &Arc<GateShared>, key: u8, from: &str) -> [TcpStream; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = Vec::new();
        let ends = [0, 1].map(|_| {
            far.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            Arc::new(listener.accept().unwrap().0)
        });
        let from = format!("{from}:1").parse().unwrap();
        let name = ("l0-0.00.tacit.invalid".to_owned(), KeyFingerprint::from_bytes([key; 16]));
        CarriedConnection::start(shared, name, from, ends).unwrap();
        far.try_into().unwrap()
    }

    /// Sends from inside, and waits until outside has all of it.
    fn tell([outside, inside]: &mut [TcpStream; 2], bytes: usize) -> std::io::Result<()> {
        inside.write_all(&vec![1; bytes])?;
        outside.read_exact(&mut vec![0; bytes])
    }

    #[test]
    fn who_was_told_more_than_a_refusal_was_let_in() {
        let (shared, _told) = shared(8, 1);
        let shared = Arc::new(shared);
        // There is one place for who is not let in yet, and one for who is.
        let mut first = carried(&shared, 1, "192.0.2.1");
        tell(&mut first, LET_IN as usize + 1).unwrap();
        let mut refused = carried(&shared, 1, "192.0.2.2");
        tell(&mut refused, 3 << 10).unwrap();
        let mut second = carried(&shared, 1, "192.0.2.3");
        assert!(tell(&mut refused, 1).is_err(), "it had to go for the next one");
        tell(&mut first, 1).unwrap();
        tell(&mut second, LET_IN as usize + 1).unwrap();
        shared.carried.settle();
        assert!(tell(&mut second, 1).is_err(), "there is one place");
        tell(&mut first, 1).unwrap();
    }
    #[test]
    fn a_coordinator_has_its_share_whatever_another_one_takes() {
        let (shared, _told) = shared(32, 2);
        let shared = Arc::new(shared);
        let let_in = |key: u8| {
            let mut one = carried(&shared, key, &format!("192.0.2.{key}"));
            tell(&mut one, LET_IN as usize + 1).unwrap();
            shared.carried.settle();
            one
        };
        // Four places, which one key may have as long as nobody else comes.
        let mut greedy: Vec<[TcpStream; 2]> = (0..4).map(|_| let_in(1)).collect();
        greedy.iter_mut().for_each(|one| tell(one, 1).unwrap());
        let mut others = [let_in(2), let_in(2)];
        // The latest ones have gone.
        let stay: Vec<bool> = greedy.iter_mut().map(|one| tell(one, 1).is_ok()).collect();
        assert_eq!(stay, [true, true, false, false]);
        assert!(tell(&mut let_in(2), 1).is_err(), "two are its share");
        others.iter_mut().for_each(|one| tell(one, 1).unwrap());
        assert!(tell(&mut let_in(1), 1).is_err(), "and two the other one's");
    }
}

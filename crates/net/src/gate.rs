//! A gate: one public port before the coordinator and the workers of a party, which need none of their own.
//!
//! Functionality: a connection goes on to the address that was registered for the name that it asks for in
//! TLS's ClientHello. TLS goes through: it ends at the coordinator or worker that the name is of. Routes are
//! registered at another address, inside, by coordinators that prove a key which the gate was given, and live
//! as long as the connection that registered them ([`link`]).
//!
//! Security model: the gate has no key of a party and is trusted with nothing but to hand on. Who stands
//! behind a name proves its own key, so a gate that hands on wrongly ends a run and no more.
//!
//! Who learns what: the gate, as whoever watches the network, learns names, addresses, lengths and times. A
//! name says the lane, its generation and the first half of a run's name; or it is a hash of study and
//! listening party ([`meeting_label`]).
//!
//! Strangers: who connects is one of a [`crate::crowd`] until it has asked for a route, and then one of
//! another crowd until it is let in (`carried`). So strangers, many or few, keep no peer out. What was let in
//! counts against a limit that strangers do not reach. Cost: two copies of every byte on this machine.

mod carried;
pub(crate) mod link;
mod routes;
pub(crate) mod words;

pub use link::GateAccess;

use crate::Channel;
use crate::accept::{Acceptor, Admission, Arrival, HANDSHAKE, QUEUE, TurnedAway, Welcome};
use crate::connect::DoorPolicy;
use crate::hello::{FORMAT_VERSION, Hello, HelloVerdict, Topic};
use crate::identity::{Identity, KeyFingerprint};
use crate::lanes::asked_for;
use crate::network::IpNetwork;
use crate::socket::{SocketChannel, TimeLimit, tune};
use crate::tls::{Tls, TlsRefusal};
use base::{Error, PartyId, hex, limits};
use carried::{CarriedConnection, CarriedConnections};
use routes::GateRoutes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use words::{GateAnswer, GateWord, HEAD_BYTES};

/// How long the way inside may take.
const REACH: Duration = Duration::from_secs(5);
/// How often somebody who waits looks whether it should stop.
const LOOK: Duration = Duration::from_millis(50);
/// Events that wait to be told.
const EVENTS: usize = 256;
/// Refusals of one second that are told one by one.
const REFUSALS_TOLD: u64 = 4;
/// Connections that go on, or end, within one second and are told one by one.
const CARRIED_TOLD: u64 = 64;

/// The name by which parties come to meet one that listens: a hash of what they agreed on and of its key. Who
/// does not know the study cannot say of which one it is.
#[must_use]
pub fn meeting_label(agreement: &[u8; 32], listener: &KeyFingerprint) -> String {
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026-11 name of a meeting v1");
    let hash = hash.update(agreement).update(&listener.bytes()).finalize();
    format!("m.{}.tacit.invalid", hex(&hash.as_bytes()[..8]))
}

/// What a gate needs.
pub struct GateSetup {
    /// Where everybody may come.
    pub listen: String,
    /// Where coordinators register.
    pub inside: String,
    /// What the gate proves to them.
    pub identity: Arc<Identity>,
    /// What they prove.
    pub coordinators: Vec<KeyFingerprint>,
    /// The networks that peers come from; any where there are none.
    pub allow: Vec<IpNetwork>,
    /// The networks that coordinators and workers are in; any where there are none.
    pub to: Vec<IpNetwork>,
}

/// What a gate tells its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateEvent {
    /// A coordinator has come.
    Coordinator {
        /// What it proved.
        key: KeyFingerprint,
        /// Where it came from.
        from: SocketAddr,
    },
    /// One has gone.
    CoordinatorLeft {
        /// What it had proved.
        key: KeyFingerprint,
        /// How many routes went with it.
        routes: usize,
    },
    /// From now on connections that ask for this name go there.
    Routed {
        /// The name.
        name: String,
        /// The address inside.
        to: String,
    },
    /// A connection goes on.
    Carried {
        /// What it asked for.
        name: String,
        /// Where it came from.
        from: SocketAddr,
    },
    /// It has ended.
    Ended {
        /// What it had asked for.
        name: String,
        /// Bytes from outside, and from inside.
        bytes: [u64; 2],
    },
    /// Somebody was turned away.
    Refused {
        /// Where it came from.
        from: SocketAddr,
        /// Why.
        why: String,
    },
    /// Within a second there were more than are told one by one.
    More {
        /// How many more were turned away.
        refused: u64,
        /// How many more connections went on.
        carried: u64,
        /// How many more ended.
        ended: u64,
    },
}

/// A gate whose addresses are bound.
pub struct PublicGate {
    public: Acceptor,
    inside: Acceptor,
    shared: Arc<GateShared>,
    events: Receiver<GateEvent>,
}

/// What the threads of a gate share.
struct GateShared {
    routes: Mutex<GateRoutes>,
    carried: CarriedConnections,
    to: Vec<IpNetwork>,
    /// Ended with the gate.
    streams: Mutex<Vec<Weak<TcpStream>>>,
    events: SyncSender<GateEvent>,
    told: Mutex<SecondsEvents>,
    over: AtomicBool,
}

/// How much of this second was told: refusals, connections that went on, and that ended.
struct SecondsEvents {
    begun: Instant,
    counts: [u64; 3],
}

/// What of each kind is told in a second.
const MOST_TOLD: [u64; 3] = [REFUSALS_TOLD, CARRIED_TOLD, CARRIED_TOLD];

impl SecondsEvents {
    fn new() -> Self {
        Self { begun: Instant::now(), counts: [0; 3] }
    }

    /// Counts an event; whether it is told by itself.
    fn tells(&mut self, event: &GateEvent) -> bool {
        let kind = match event {
            GateEvent::Refused { .. } => 0,
            GateEvent::Carried { .. } => 1,
            GateEvent::Ended { .. } => 2,
            _ => return true,
        };
        self.counts[kind] += 1;
        self.counts[kind] <= MOST_TOLD[kind]
    }

    /// How much was not told of a second that is over.
    fn rest(&mut self) -> Option<GateEvent> {
        if self.begun.elapsed() < Duration::from_secs(1) {
            return None;
        }
        let Self { counts, .. } = std::mem::replace(self, Self::new());
        let [refused, carried, ended] = [0, 1, 2].map(|kind| counts[kind].saturating_sub(MOST_TOLD[kind]));
        (refused + carried + ended > 0).then_some(GateEvent::More { refused, carried, ended })
    }
}

impl PublicGate {
    /// Binds both addresses. The process has as many descriptors from then on as the system lets it have.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn open(setup: &GateSetup) -> Result<Self, Error> {
        let (events, told) = sync_channel(EVENTS);
        let mut keys = setup.coordinators.clone();
        keys.sort_unstable();
        keys.dedup();
        let carried = CarriedConnections::new(descriptors(), keys.len());
        let shared = Arc::new(GateShared::new(carried, setup.to.clone(), events));
        let keys = DoorPolicy::Pinned(Tls::new(&setup.identity, setup.coordinators.clone())?);
        let inside = Acceptor::bind(&setup.inside, keys, Admission::new(Vec::new(), HANDSHAKE))?;
        let welcome = Arc::new(GateWelcome(shared.clone()));
        let public = Acceptor::of(&setup.listen, welcome, Admission::new(setup.allow.clone(), HANDSHAKE))?;
        Ok(Self { public, inside, shared, events: told })
    }

    /// Where everybody may come, and where coordinators register.
    #[must_use]
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [self.public.address, self.inside.address]
    }

    /// Hands connections on until `stop`; then ends those that there are.
    pub fn serve(&self, stop: &AtomicBool, log: &dyn Fn(GateEvent)) {
        let mut links = 0;
        while !stop.load(Ordering::Relaxed) {
            match self.inside.arrivals.recv_timeout(LOOK) {
                Ok(arrival) => {
                    links += 1;
                    self.shared.clone().take_coordinator(arrival, links);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.shared.carried.settle();
            for side in [&self.public, &self.inside] {
                for TurnedAway { from, why } in side.turned_away.try_iter().take(QUEUE) {
                    self.shared.tell(GateEvent::Refused { from, why: refusal_text(&why) });
                }
            }
            self.events.try_iter().take(EVENTS).for_each(log);
            lock(&self.shared.told).rest().into_iter().for_each(log);
        }
    }
}

impl Drop for PublicGate {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        for stream in lock(&self.shared.streams).drain(..).filter_map(|stream| stream.upgrade()) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal_text(why: &TlsRefusal) -> String {
    match why {
        TlsRefusal::OtherKey(key) => {
            format!("it registers with {key}: where that is a coordinator's, add --coordinator {key}")
        }
        TlsRefusal::OurKey => "it expects another key of this gate: check its `gate_key`".to_owned(),
        TlsRefusal::NotTls { .. } => "it does not speak TLS".to_owned(),
        TlsRefusal::Silent(limit) => format!("it said nothing for {:.1} s", limit.as_secs_f64()),
        TlsRefusal::Left => "it left, or gave its place to another one".to_owned(),
        TlsRefusal::Outside => "it comes from a network that is not allowed".to_owned(),
        TlsRefusal::Tls(text) | TlsRefusal::Io(text) | TlsRefusal::Hello(text) => text.clone(),
    }
}

impl GateShared {
    fn new(carried: CarriedConnections, to: Vec<IpNetwork>, events: SyncSender<GateEvent>) -> Self {
        let (routes, streams, over) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self { routes, carried, to, streams, events, told: Mutex::new(SecondsEvents::new()), over }
    }

    /// An operator who does not read misses what is said meanwhile.
    fn tell(&self, event: GateEvent) {
        if lock(&self.told).tells(&event) {
            let _ = self.events.try_send(event);
        }
    }

    fn hold(&self, stream: &Arc<TcpStream>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
        drop(streams);
        if self.over.load(Ordering::SeqCst) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Connects to an address inside, where connections may go.
    fn reach(&self, to: &str) -> std::io::Result<TcpStream> {
        let mut last = ErrorKind::AddrNotAvailable.into();
        for at in to.to_socket_addrs()? {
            if !self.to.is_empty() && !self.to.iter().any(|network| network.holds(at.ip())) {
                last = std::io::Error::other("it is in no network of --to");
                continue;
            }
            match TcpStream::connect_timeout(&at, REACH) {
                Ok(stream) => {
                    tune(&stream, Duration::from_millis(limits::DEADLINE_MS))?;
                    stream.set_read_timeout(None)?;
                    stream.set_write_timeout(None)?;
                    return Ok(stream);
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// Takes the routes of somebody who proved a coordinator's key, on a thread of its own.
    fn take_coordinator(self: Arc<Self>, arrival: Arrival, link: u64) {
        let Arrival { mut channel, hello, key, from } = arrival;
        let Some(key) = key else { return };
        let asks = matches!(hello, Ok(Hello { topic: Topic::Routes, verdict: HelloVerdict::Question, .. }));
        let verdict = match asks {
            false => HelloVerdict::Version,
            true if lock(&self.routes).begin(key) => HelloVerdict::Taken,
            true => HelloVerdict::Busy,
        };
        let said = channel.send(&routes_hello(verdict).encode()).and_then(|()| channel.finish());
        if verdict != HelloVerdict::Taken {
            let why = format!("it proves {key} and comes for no routes, or too many with that key are here");
            return self.tell(GateEvent::Refused { from, why });
        }
        let leave = move |shared: &Self| lock(&shared.routes).end(link, key, Instant::now());
        if said.and_then(|()| channel.begin(HANDSHAKE)).is_err() {
            leave(&self);
            let why = format!("it proves {key}, and is gone");
            return self.tell(GateEvent::Refused { from, why });
        }
        self.hold(channel.stream());
        self.tell(GateEvent::Coordinator { key, from });
        let counted = self.clone();
        let listen = move || {
            let mut talks = true;
            while talks && !self.over.load(Ordering::Relaxed) {
                talks = self.next_word(&mut channel, link, key).is_some();
            }
            let routes = leave(&self);
            self.tell(GateEvent::CoordinatorLeft { key, routes });
        };
        if std::thread::Builder::new().name("gate routes".into()).spawn(listen).is_err() {
            // The connection closes, and the coordinator comes again.
            leave(&counted);
        }
    }

    /// Waits for a word and does what it says; nothing when the connection is over.
    fn next_word(&self, channel: &mut SocketChannel, link: u64, key: KeyFingerprint) -> Option<()> {
        if !channel.answers(LOOK) {
            return Some(());
        }
        let bound = TimeLimit::of(HANDSHAKE);
        let mut head = [0; HEAD_BYTES];
        channel.recv_within(&mut head, bound).ok()?;
        let mut body = vec![0; GateWord::body_bytes(&head)];
        channel.recv_within(&mut body, bound).ok()?;
        let answer = match GateWord::decode(&head, &body) {
            Some(word) => self.do_word(word, link, key),
            None => GateAnswer::Malformed,
        };
        channel.send(&[answer as u8]).and_then(|()| channel.hand_over()).ok()
    }

    fn do_word(&self, word: GateWord, link: u64, key: KeyFingerprint) -> GateAnswer {
        match word {
            GateWord::Route { name, to } => {
                let answer = lock(&self.routes).register(&name, &to, (link, key), Instant::now());
                if answer == GateAnswer::Done {
                    self.tell(GateEvent::Routed { name, to });
                }
                answer
            }
            GateWord::Close { name } => {
                lock(&self.routes).close(&name, link);
                GateAnswer::Done
            }
        }
    }
}

/// The words of either side at the beginning.
fn routes_hello(verdict: HelloVerdict) -> Hello {
    let (from, to) = (PartyId(0), PartyId(0));
    Hello { version: FORMAT_VERSION, from, to, verdict, topic: Topic::Routes }
}

/// Finds the route of a connection and carries it on.
struct GateWelcome(Arc<GateShared>);

impl Welcome for GateWelcome {
    fn welcome(
        &self,
        near: &Arc<TcpStream>,
        from: SocketAddr,
        bound: TimeLimit,
    ) -> Result<Option<Arrival>, TlsRefusal> {
        let shared = &self.0;
        let refuse = |text: &str| TlsRefusal::Hello(text.to_owned());
        let name = asked_for(near, bound).ok_or_else(|| match bound.left() {
            Some(_) => refuse("it asks for no name, or does not speak TLS"),
            None => TlsRefusal::Silent(bound.limit),
        })?;
        let found = lock(&shared.routes).find(&name);
        let (to, key) = found.ok_or_else(|| refuse("it asks for a name that nobody registered"))?;
        let far =
            shared.reach(&to).map_err(|e| TlsRefusal::Io(format!("{to}, where {name} goes, fails: {e}")))?;
        let failed = |e: std::io::Error| TlsRefusal::of_io(&e, bound.limit);
        tune(near, Duration::from_millis(limits::DEADLINE_MS)).map_err(failed)?;
        near.set_read_timeout(None).and_then(|()| near.set_write_timeout(None)).map_err(failed)?;
        shared.hold(near);
        CarriedConnection::start(shared, (name, key), from, [near.clone(), Arc::new(far)])?;
        Ok(None)
    }
}

/// How many descriptors the process has, where it takes all that it may have.
fn descriptors() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // As many as before will do, for fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| most as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With so many descriptors, of so many keys.
    pub(super) fn shared(descriptors: usize, keys: usize) -> (GateShared, Receiver<GateEvent>) {
        let (events, told) = sync_channel(EVENTS);
        (GateShared::new(CarriedConnections::new(descriptors, keys), Vec::new(), events), told)
    }

    /// However many come within a second, the log and the queue before it stay short, and what is seldom is
    /// told.
    #[test]
    fn what_comes_often_is_counted() {
        let (shared, told) = shared(8, 1);
        // In the same second, however slow the machine.
        lock(&shared.told).begun = Instant::now() + Duration::from_secs(3600);
        let (from, name) = (SocketAddr::from(([192, 0, 2, 1], 1)), || "m.00.tacit.invalid".to_owned());
        for _ in 0..1000 {
            shared.tell(GateEvent::Carried { name: name(), from });
            shared.tell(GateEvent::Ended { name: name(), bytes: [0; 2] });
            shared.tell(GateEvent::Refused { from, why: String::new() });
        }
        shared.tell(GateEvent::Routed { name: name(), to: "a:1".to_owned() });
        let said: Vec<GateEvent> = told.try_iter().collect();
        assert_eq!(said.len() as u64, 2 * CARRIED_TOLD + REFUSALS_TOLD + 1);
        assert!(matches!(said.last(), Some(GateEvent::Routed { .. })));
        lock(&shared.told).begun = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        let more = lock(&shared.told).rest();
        let (refused, carried) = (1000 - REFUSALS_TOLD, 1000 - CARRIED_TOLD);
        assert_eq!(more, Some(GateEvent::More { refused, carried, ended: carried }));
        assert_eq!(lock(&shared.told).rest(), None, "a second begins");
    }
}

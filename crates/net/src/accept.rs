//! The listening side: takes connections, lets each prove who it is, and hands on those that did.
//!
//! Who connects and says nothing costs a descriptor and no more: one thread watches all of them and looks for
//! their first bytes. Who has said something shakes hands on a thread of its own. Both are bounded, in number
//! and in time, and where there are too many one goes by chance ([`crate::crowd`]), so that strangers who
//! stay, many or few, from one address or thousands, keep no peer out. What is refused is reported and
//! forgotten.

use crate::connect::DoorPolicy;
use crate::crowd::Crowd;
use crate::hello::{HELLO_BYTES, Hello, NoHello};
use crate::identity::KeyFingerprint;
use crate::lanes::LaneRoutes;
use crate::network::IpNetwork;
use crate::socket::{ReceiveBuffer, SocketChannel, TimeLimit, tune};
use crate::tls::{TlsRefusal, proven, shake};
use base::{Error, limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections that may have said nothing yet, at one time. A descriptor each, and never more than a quarter
/// of those that the process may have.
const SILENT: usize = 512;

/// Connections that may be shaking hands at one time. A thread each, and never more than an eighth of the
/// descriptors.
const SHAKING: usize = 128;

/// Connections taken before those that have said something are looked for again.
const AT_ONCE: usize = 64;

/// Arrivals, and reports of refusals, that wait for whoever meets.
pub(crate) const QUEUE: usize = 32;

/// How often the accepting thread looks whether it should stop.
const WAKE: Duration = Duration::from_millis(20);

/// Time for a handshake and a hello.
pub(crate) const HANDSHAKE: Duration = Duration::from_millis(limits::HANDSHAKE_MS);

/// Somebody proved to be a peer and said this.
pub(crate) struct Arrival {
    pub(crate) channel: Box<SocketChannel>,
    pub(crate) hello: Result<Hello, NoHello>,
    /// The key it proved; none without TLS.
    pub(crate) key: Option<KeyFingerprint>,
    pub(crate) from: SocketAddr,
}

/// Somebody was turned away.
pub(crate) struct TurnedAway {
    pub(crate) from: SocketAddr,
    pub(crate) why: TlsRefusal,
}

/// A bound address and the thread that accepts there, until dropped.
pub(crate) struct Acceptor {
    pub(crate) address: SocketAddr,
    pub(crate) arrivals: Receiver<Arrival>,
    /// In a queue of their own: strangers take no place of a peer.
    pub(crate) turned_away: Receiver<TurnedAway>,
    routes: Routes,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Where connections go that ask for a lane, once there are lanes.
type Routes = Arc<OnceLock<LaneRoutes>>;

/// What becomes of a connection that has said its first byte; on a thread of its own. Until it returns the
/// connection is one of those that have not proved who they are, and may be ended for another one.
pub(crate) trait Welcome: Send + Sync {
    /// Who has come to whoever meets here, if it is one of those.
    ///
    /// # Errors
    /// Why it is turned away.
    fn welcome(
        &self,
        stream: &Arc<TcpStream>,
        from: SocketAddr,
        bound: TimeLimit,
    ) -> Result<Option<Arrival>, TlsRefusal>;
}

/// Lets connections prove who they are; those that ask for a lane are handed on.
struct ProvenWelcome {
    gate: DoorPolicy,
    routes: Routes,
}

impl Welcome for ProvenWelcome {
    fn welcome(
        &self,
        stream: &Arc<TcpStream>,
        from: SocketAddr,
        bound: TimeLimit,
    ) -> Result<Option<Arrival>, TlsRefusal> {
        if let Some(handed_on) = self.routes.get().and_then(|routes| routes.take(stream, bound)) {
            return handed_on.map(|()| None);
        }
        let (channel, hello, key) = prove(stream, &self.gate, bound)?;
        Ok(Some(Arrival { channel: Box::new(channel), hello, key, from }))
    }
}

/// Who may knock, and how long it may take until it has proved who it is.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    /// From these networks only; from anywhere where there are none.
    pub(crate) allow: Vec<IpNetwork>,
    /// From the first byte of TCP to the last of the hello.
    pub(crate) limit: Duration,
}

impl Admission {
    /// For whoever waits for `deadline` without progress: a handshake takes no longer.
    pub(crate) fn new(allow: Vec<IpNetwork>, deadline: Duration) -> Self {
        Self { allow, limit: HANDSHAKE.min(deadline) }
    }

    fn holds(&self, from: SocketAddr) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|network| network.holds(from.ip()))
    }
}

impl Acceptor {
    /// Binds `address` and accepts whoever passes `gate`.
    pub(crate) fn bind(address: &str, gate: DoorPolicy, admission: Admission) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).map_err(|e| bind_error(address, &e))?;
        Self::over(listener, gate, admission)
    }

    /// Accepts whoever passes `gate` at an address that is bound.
    pub(crate) fn over(listener: TcpListener, gate: DoorPolicy, admission: Admission) -> Result<Self, Error> {
        let routes = Routes::default();
        let welcome = Arc::new(ProvenWelcome { gate, routes: routes.clone() });
        let mut acceptor = Self::welcoming(listener, welcome, admission)?;
        acceptor.routes = routes;
        Ok(acceptor)
    }

    /// Binds `address`, where connections are welcomed otherwise.
    pub(crate) fn of(address: &str, welcome: Arc<dyn Welcome>, admission: Admission) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).map_err(|e| bind_error(address, &e))?;
        Self::welcoming(listener, welcome, admission)
    }

    fn welcoming(
        listener: TcpListener,
        welcome: Arc<dyn Welcome>,
        admission: Admission,
    ) -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::io("cannot listen", &e);
        let bound = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (arrived, arrivals) = sync_channel(QUEUE);
        let (refused, turned_away) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let [silent, shaking] = places();
        let shaking = Arc::new(Mutex::new(Crowd::new(shaking)));
        let reports = Reports { arrived, refused };
        let silent = Crowd::new(silent);
        let mut porch = Porch { listener, welcome, admission, reports, silent, shaking };
        let work = move || {
            while !stopped.load(Ordering::Relaxed) {
                porch.round();
            }
        };
        let thread = std::thread::Builder::new().name("net accept".into()).spawn(work).map_err(failed)?;
        let routes = Routes::default();
        Ok(Self { address: bound, arrivals, turned_away, routes, stop, thread: Some(thread) })
    }

    /// From now on connections that ask for a lane go there.
    pub(crate) fn route(&self, routes: LaneRoutes) {
        // The first one stays: lanes of one run come to a port.
        let _ = self.routes.set(routes);
    }
}

/// How many may be silent and how many may shake hands, in a process with so many descriptors.
fn places() -> [usize; 2] {
    let most = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| most as usize);
    [SILENT.min(most / 4), SHAKING.min(most / 8)]
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The address is free again when this returns.
            let _ = thread.join();
        }
    }
}

fn bind_error(address: &str, error: &std::io::Error) -> Error {
    if let Some(Errno::MFILE | Errno::NFILE) = Errno::from_io_error(error) {
        let what = format!("cannot listen at {address} for want of file descriptors (`ulimit -n`)");
        return Error::io(what, error);
    }
    Error::input(match error.kind() {
        ErrorKind::AddrInUse => format!(
            "{address} is in use by another process (`ss -ltnp` shows which), or by another run of this one \
             that has not ended yet; wait for it, stop it or change `listen` to another port"
        ),
        ErrorKind::AddrNotAvailable => {
            format!(
                "{address} is no address of this machine; change `listen`, for instance to 0.0.0.0 with the \
                 port"
            )
        }
        ErrorKind::PermissionDenied => {
            format!("not allowed to listen at {address}; change `listen` to a port of 1024 or above")
        }
        _ => format!("cannot listen at {address}: {error}; change `listen` to an address like 0.0.0.0:7000"),
    })
}

/// Where arrivals go. Nobody collects them between a meeting and the next: what does not fit is dropped.
#[derive(Clone)]
struct Reports {
    arrived: SyncSender<Arrival>,
    refused: SyncSender<TurnedAway>,
}

/// A connection that has said nothing yet.
struct Silent {
    stream: TcpStream,
    from: SocketAddr,
    bound: TimeLimit,
}

/// Those who shake hands: a thread has each, and this is how to end it.
type Shaking = Arc<Mutex<Crowd<Arc<TcpStream>>>>;

/// What the accepting thread looks after.
struct Porch {
    listener: TcpListener,
    welcome: Arc<dyn Welcome>,
    admission: Admission,
    reports: Reports,
    silent: Crowd<Silent>,
    shaking: Shaking,
}

impl Porch {
    /// Waits until something happens, or it is time to look up.
    fn round(&mut self) {
        for Silent { stream, from, bound } in self.heard() {
            match stream.peek(&mut [0]) {
                Ok(1) => self.shake_hands(stream, from, bound),
                _ => self.reports.refuse(from, TlsRefusal::Left),
            }
        }
        for Silent { from, bound, .. } in self.silent.take(|silent| silent.bound.left().is_none()) {
            self.reports.refuse(from, TlsRefusal::Silent(bound.limit));
        }
        self.accept();
    }

    /// Those that have said their first word, or left.
    fn heard(&mut self) -> Vec<Silent> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.silent.members().map(|silent| PollFd::new(&silent.stream, PollFlags::IN)));
        let wake = Timespec::try_from(WAKE).ok();
        if !poll(&mut fds, wake.as_ref()).is_ok_and(|ready| ready > 0) {
            return Vec::new();
        }
        let mut ready: Vec<bool> = fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        // `take` moves the last one to the place of each that it takes.
        let mut at = 0;
        self.silent.take(|_| match ready.get(at).copied() {
            Some(true) => {
                ready.swap_remove(at);
                true
            }
            _ => {
                at += 1;
                false
            }
        })
    }

    fn accept(&mut self) {
        for _ in 0..AT_ONCE {
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(stream, from),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of descriptors, as a rule: one of those who say nothing has one to give.
                    if self.silent.evict().is_none() {
                        std::thread::sleep(WAKE);
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, from: SocketAddr) {
        if !self.admission.holds(from) {
            return self.reports.refuse(from, TlsRefusal::Outside);
        }
        // Some systems hand the listener's mode on.
        if stream.set_nonblocking(false).is_ok() {
            let bound = TimeLimit::of(self.admission.limit);
            drop(self.silent.admit(from.ip(), Silent { stream, from, bound }));
        }
    }

    /// On a thread of its own.
    fn shake_hands(&self, stream: TcpStream, from: SocketAddr, bound: TimeLimit) {
        let stream = Arc::new(stream);
        if let Some(goes) = lock(&self.shaking).admit(from.ip(), stream.clone()) {
            // Its thread finds the end and goes.
            let _ = goes.shutdown(Shutdown::Both);
        }
        let (welcome, reports, shaking) = (self.welcome.clone(), self.reports.clone(), self.shaking.clone());
        let mine = stream.clone();
        let welcome = move || {
            let welcomed = welcome.welcome(&stream, from, bound);
            lock(&shaking).take(|other| Arc::ptr_eq(other, &stream));
            match welcomed {
                Ok(Some(arrival)) => _ = reports.arrived.try_send(arrival),
                Ok(None) => {}
                Err(why) => reports.refuse(from, why),
            }
        };
        if std::thread::Builder::new().name("net handshake".into()).spawn(welcome).is_err() {
            lock(&self.shaking).take(|other| Arc::ptr_eq(other, &mine));
        }
    }
}

impl Reports {
    fn refuse(&self, from: SocketAddr, why: TlsRefusal) {
        let _ = self.refused.try_send(TurnedAway { from, why });
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

type Proven = (SocketChannel, Result<Hello, NoHello>, Option<KeyFingerprint>);

/// Lets a connection prove who it is and say what it wants.
fn prove(stream: &Arc<TcpStream>, gate: &DoorPolicy, bound: TimeLimit) -> Result<Proven, TlsRefusal> {
    let failed = |e: std::io::Error| TlsRefusal::of_io(&e, bound.limit);
    tune(stream, bound.limit).map_err(failed)?;
    let (tls, incoming) = match gate {
        DoorPolicy::Open => (None, ReceiveBuffer::new()),
        DoorPolicy::Pinned(tls) => {
            let (tls, incoming) = shake(stream, tls.listener()?, bound)?;
            (Some(tls), incoming)
        }
    };
    let key = tls.as_ref().and_then(proven);
    let mut channel = SocketChannel::new(stream.clone(), tls, incoming, bound.limit).map_err(failed)?;
    let hello = hear(&mut channel, bound)?;
    Ok((channel, hello, key))
}

/// Receives a hello. `bound` is on all of it: who drips bytes gains nothing.
pub(crate) fn hear(
    channel: &mut SocketChannel,
    bound: TimeLimit,
) -> Result<Result<Hello, NoHello>, TlsRefusal> {
    let mut bytes = [0; HELLO_BYTES];
    match channel.recv_within(&mut bytes, bound) {
        Ok(()) => Ok(Hello::decode(&bytes)),
        Err(error) => Err(match channel.tls_failure() {
            Some(failure) => TlsRefusal::of_tls(failure),
            None => TlsRefusal::of_channel(&error),
        }),
    }
}

//! Lanes: connections between workers of two parties, after the parties have met.
//!
//! Functionality: a lane is one TLS 1.3 connection. Both sides prove keys that workers have made for this one
//! connection, and whose fingerprints coordinators have told each other over connections that prove the
//! parties' own keys. A party's own key never comes to a worker.
//!
//! Security model: as [`crate::connect`]. A stranger who connects proves no key that was told; an old worker
//! proves one of an earlier generation. Who learns what: who watches the network sees the name that a lane
//! asks for (its number, its generation and the first half of the run's name), lengths and times.
//!
//! After the handshake either side says a hello of 96 bytes ([`crate::hello`]), and the session of the lane
//! is named by run, lane, generation and a fresh number of each side. Cost: 96 bytes each way.

use crate::Channel;
use crate::accept::{Acceptor, Admission, Arrival, HANDSHAKE, hear};
use crate::connect::DoorPolicy;
use crate::gate::link::GateLink;
use crate::hello::{FORMAT_VERSION, Hello, HelloVerdict, NoHello, Topic};
use crate::identity::{Identity, KeyFingerprint};
use crate::network::IpNetwork;
use crate::socket::{SocketChannel, TimeLimit, hung_up, tune};
use crate::tls::{Tls, TlsRefusal, shake};
use base::{At, ChannelError, Error, Fault, PartyId, Roster, Seed, hex, limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use socket2::{Domain, Socket, Type};
use std::collections::HashMap;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Lanes that have come and wait to be taken.
const COME: usize = 512;
/// Waits between two attempts to reach a peer's worker.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How often somebody who waits looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);

/// A worker's key, for one connection: it is made in memory and goes with it.
pub struct LaneKey(Identity);

impl LaneKey {
    /// A fresh one.
    ///
    /// # Errors
    /// When the cryptographic library cannot make a key.
    pub fn fresh() -> Result<Self, Error> {
        Identity::generate().map(Self)
    }

    /// What the peer's worker is told to expect.
    #[must_use]
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.0.fingerprint()
    }
}

/// Which connection of which lane it is, and between whom.
#[derive(Clone)]
pub struct LaneTerms {
    /// Names the run, the same at both.
    pub run: [u8; 32],
    /// The lane.
    pub lane: u16,
    /// Which connection of the lane: one key each.
    pub generation: u32,
    /// This party.
    pub me: PartyId,
    /// Both, by name.
    pub roster: Roster,
    /// What the peer's worker proves.
    pub peer: KeyFingerprint,
    /// How long it may take, and how long the lane may be silent then.
    pub deadline: Duration,
}

/// How long a lane may take to come about, where its deadline is not shorter: another door is opened then.
const OPENING: Duration = Duration::from_secs(30);

/// The name by which the dialling side asks for a lane.
#[must_use]
pub fn lane_label(run: &[u8; 32], lane: u16, generation: u32) -> String {
    format!("l{lane}-{generation}.{}.tacit.invalid", hex(&run[..8]))
}

/// A lane that is there.
pub struct LaneChannel {
    /// The connection.
    pub channel: Box<dyn Channel>,
    /// Names it, the same at both sides.
    pub session: [u8; 32],
}

/// Ends what a worker waits for on its lane, from another thread.
#[derive(Clone, Default)]
pub struct LaneCutter(Arc<CutterState>);

#[derive(Default)]
struct CutterState {
    cut: AtomicBool,
    /// Weak: the descriptor of a lane goes with the lane.
    stream: Mutex<Weak<TcpStream>>,
}

impl LaneCutter {
    /// Cuts the lane that is there, or that is coming about, until [`Self::mend`].
    pub fn cut(&self) {
        self.0.cut.store(true, Ordering::SeqCst);
        if let Some(stream) = lock(&self.0.stream).upgrade() {
            // One that is gone already is cut.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets the next lane come about.
    pub fn mend(&self) {
        self.0.cut.store(false, Ordering::SeqCst);
    }

    fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::SeqCst)
    }

    fn hold(&self, stream: &Arc<TcpStream>) {
        *lock(&self.0.stream) = Arc::downgrade(stream);
        if self.is_cut() {
            self.cut();
        }
    }

    /// Waits so long, or until it is cut.
    fn pause(&self, wait: Duration) {
        let bound = TimeLimit::of(wait);
        while let (false, Some(left)) = (self.is_cut(), bound.left()) {
            std::thread::sleep(left.min(LOOK));
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaneTerms {
    fn opening(&self) -> TimeLimit {
        TimeLimit::of(OPENING.min(self.deadline))
    }

    fn label(&self) -> String {
        lane_label(&self.run, self.lane, self.generation)
    }

    fn error(&self, kind: Fault) -> Error {
        let peer = Some(self.roster.name(self.me.other()));
        Error::new(At { party: self.roster.name(self.me), peer, step: format!("lane {}", self.lane) }, kind)
    }

    fn refused(&self, refusal: &TlsRefusal) -> Error {
        let text = match refusal {
            TlsRefusal::OtherKey(key) => format!("its worker proves {key}, and not the key that was told"),
            TlsRefusal::OurKey => "it does not take the key of this worker".to_owned(),
            TlsRefusal::NotTls { .. } => "no TLS is spoken there".to_owned(),
            TlsRefusal::Silent(limit) => format!("nothing came for {:.1} s", limit.as_secs_f64()),
            TlsRefusal::Left => "it left before the lane was there".to_owned(),
            TlsRefusal::Outside => "it comes from a network that is not allowed".to_owned(),
            TlsRefusal::Tls(text) | TlsRefusal::Io(text) | TlsRefusal::Hello(text) => text.clone(),
        };
        self.error(Fault::Channel(ChannelError::Io(text)))
    }

    fn hello(&self, verdict: HelloVerdict, nonce: [u8; 32]) -> Hello {
        let (run, lane, generation) = (self.run, self.lane.into(), self.generation);
        let topic = Topic::Lane { nonce, run, lane, generation };
        Hello { version: FORMAT_VERSION, from: self.me, to: self.me.other(), verdict, topic }
    }

    /// The peer's number, if its hello is for this lane.
    fn nonce(&self, heard: Result<Hello, NoHello>, verdict: HelloVerdict) -> Result<[u8; 32], Error> {
        let hello = heard.map_err(|_| self.error(Fault::Malformed("the hello of a lane")))?;
        let ours = self.hello(verdict, [0; 32]);
        let Topic::Lane { nonce, .. } = hello.topic else {
            return Err(self.error(Fault::Malformed("the hello of a lane")));
        };
        let same = Hello { from: ours.to, to: ours.from, ..self.hello(verdict, nonce) };
        if hello == same {
            return Ok(nonce);
        }
        Err(self.error(Fault::Deviated("that a worker comes for the lane that it was told")))
    }

    /// Names the session of the lane.
    fn session(&self, mine: &[u8; 32], theirs: &[u8; 32]) -> [u8; 32] {
        let [first, second] = if self.me.0 == 0 { [mine, theirs] } else { [theirs, mine] };
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026-12 lane v1");
        hash.update(&self.run).update(&self.lane.to_le_bytes()).update(&self.generation.to_le_bytes());
        *hash.update(first).update(second).finalize().as_bytes()
    }

    fn tls(&self, key: &LaneKey) -> Result<Tls, Error> {
        Tls::new(&key.0, vec![self.peer])
    }

    /// Goes on where a channel is there: both say hello, the dialling side first.
    fn greet(
        &self,
        mut channel: SocketChannel,
        heard: Option<Result<Hello, NoHello>>,
        cutter: &LaneCutter,
    ) -> Result<LaneChannel, Error> {
        let gone = |e| self.error(Fault::Channel(e));
        let nonce = *Seed::from_system().expose();
        let (verdict, answer) = match heard {
            Some(_) => (HelloVerdict::Question, HelloVerdict::Taken),
            None => (HelloVerdict::Taken, HelloVerdict::Question),
        };
        let say = |channel: &mut SocketChannel| {
            channel.send(&self.hello(answer, nonce).encode()).and_then(|()| channel.finish()).map_err(gone)
        };
        let theirs = match heard {
            Some(heard) => {
                let theirs = self.nonce(heard, verdict)?;
                say(&mut channel)?;
                theirs
            }
            None => {
                say(&mut channel)?;
                let bound = self.opening();
                while !channel.answers(LOOK) {
                    if cutter.is_cut() || bound.left().is_none() {
                        return Err(self.refused(&TlsRefusal::Silent(bound.limit)));
                    }
                }
                let heard = hear(&mut channel, bound).map_err(|refusal| self.refused(&refusal))?;
                self.nonce(heard, verdict)?
            }
        };
        channel.begin(self.deadline).map_err(gone)?;
        Ok(LaneChannel { channel: Box::new(channel), session: self.session(&nonce, &theirs) })
    }
}

/// Goes to the peer's worker.
///
/// # Errors
/// When nobody is there within the deadline, it is not the worker that was told, or it was cut.
pub fn dial_lane(
    address: &str,
    key: &LaneKey,
    terms: &LaneTerms,
    cutter: &LaneCutter,
) -> Result<LaneChannel, Error> {
    let tls = terms.tls(key)?;
    let (until, mut wait) = (Instant::now() + terms.opening().limit, RETRY.0);
    loop {
        let refusal = match attempt(address, &tls, terms, cutter) {
            Ok(channel) => return terms.greet(channel, None, cutter),
            Err(refusal) => refusal,
        };
        let final_one = matches!(refusal, TlsRefusal::OtherKey(_) | TlsRefusal::OurKey);
        if final_one || cutter.is_cut() || Instant::now() + wait >= until {
            return Err(terms.refused(&refusal));
        }
        cutter.pause(wait);
        wait = (2 * wait).min(RETRY.1);
    }
}

fn attempt(
    address: &str,
    tls: &Tls,
    terms: &LaneTerms,
    cutter: &LaneCutter,
) -> Result<SocketChannel, TlsRefusal> {
    let limit = HANDSHAKE.min(terms.deadline);
    let failed = |e: std::io::Error| TlsRefusal::of_io(&e, limit);
    let mut last = TlsRefusal::Io(format!("{address} is no address"));
    for at in address.to_socket_addrs().map_err(failed)? {
        match connect(at, TimeLimit::of(limit), cutter) {
            Err(e) => last = failed(e),
            Ok(stream) => {
                let stream = Arc::new(stream);
                tune(&stream, limit).map_err(failed)?;
                cutter.hold(&stream);
                let (tls, incoming) = shake(&stream, tls.dialer(&terms.label())?, TimeLimit::of(limit))?;
                return SocketChannel::new(stream, Some(tls), incoming, terms.deadline).map_err(failed);
            }
        }
    }
    Err(last)
}

/// Connects, and looks meanwhile whether it should stop.
fn connect(at: SocketAddr, bound: TimeLimit, cutter: &LaneCutter) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&at.into()) {
        Err(e) if Errno::from_io_error(&e) == Some(Errno::INPROGRESS) => {}
        done => done?,
    }
    let look = Timespec::try_from(LOOK).ok();
    loop {
        if cutter.is_cut() || bound.left().is_none() {
            return Err(ErrorKind::TimedOut.into());
        }
        let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
        if poll(&mut fds, look.as_ref()).is_ok_and(|ready| ready > 0) {
            break;
        }
    }
    if let Some(refused) = socket.take_error()? {
        return Err(refused);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// Takes a connection that the peer's worker has made, of which nothing has been read.
///
/// # Errors
/// When it is not the worker that was told, it is silent, or it was cut.
pub fn take_lane(
    stream: TcpStream,
    key: &LaneKey,
    terms: &LaneTerms,
    cutter: &LaneCutter,
) -> Result<LaneChannel, Error> {
    let bound = TimeLimit::of(HANDSHAKE.min(terms.deadline));
    let failed = |e: std::io::Error| TlsRefusal::of_io(&e, bound.limit);
    let open = || {
        stream.set_nonblocking(false).and_then(|()| tune(&stream, bound.limit)).map_err(failed)?;
        let stream = Arc::new(stream);
        cutter.hold(&stream);
        let tls = terms.tls(key).map_err(|e| TlsRefusal::Tls(e.to_string()))?;
        let (tls, incoming) = shake(&stream, tls.listener()?, bound)?;
        let mut channel = SocketChannel::new(stream, Some(tls), incoming, bound.limit).map_err(failed)?;
        let heard = hear(&mut channel, bound)?;
        Ok((channel, heard))
    };
    let (channel, heard) = open().map_err(|refusal: TlsRefusal| terms.refused(&refusal))?;
    terms.greet(channel, Some(heard), cutter)
}

/// An address of a worker's own, where it awaits its peer.
pub struct LaneListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl LaneListener {
    /// Binds an address of this machine; port 0 lets the system choose.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn bind(address: &str) -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::io(format_args!("a worker cannot listen at {address}"), &e);
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Waits for the peer's worker; strangers do not keep it out.
    ///
    /// # Errors
    /// As [`take_lane`].
    pub fn take(
        self,
        key: &LaneKey,
        terms: &LaneTerms,
        allow: &[IpNetwork],
        cutter: &LaneCutter,
    ) -> Result<LaneChannel, Error> {
        let admission = Admission::new(allow.to_vec(), terms.deadline);
        let acceptor = Acceptor::over(self.listener, DoorPolicy::Pinned(terms.tls(key)?), admission)?;
        let bound = terms.opening();
        loop {
            match acceptor.arrivals.recv_timeout(LOOK) {
                Ok(Arrival { channel, hello, .. }) => {
                    cutter.hold(channel.stream());
                    return terms.greet(*channel, Some(hello), cutter);
                }
                Err(_) if cutter.is_cut() || bound.left().is_none() => {
                    return Err(terms.refused(&TlsRefusal::Silent(bound.limit)));
                }
                Err(_) => {}
            }
        }
    }
}

/// A worker of the peer that has come to the port at which the parties met.
pub struct LaneArrival {
    /// For which lane.
    pub lane: u16,
    /// For which connection of it.
    pub generation: u32,
    /// The connection, of which nothing has been read.
    pub stream: TcpStream,
}

/// Which lanes are awaited at a port, and where they go.
#[derive(Clone)]
pub(crate) struct LaneRoutes(Arc<Mutex<RouteTable>>);

struct RouteTable {
    awaited: HashMap<String, (u16, u32)>,
    come: SyncSender<LaneArrival>,
}

impl LaneRoutes {
    fn new() -> (Self, Receiver<LaneArrival>) {
        let (come, arrivals) = sync_channel(COME);
        (Self(Arc::new(Mutex::new(RouteTable { awaited: HashMap::new(), come }))), arrivals)
    }

    /// Hands a connection on that asks for a lane; what becomes of it, or nothing where it asks for none.
    pub(crate) fn take(&self, stream: &TcpStream, bound: TimeLimit) -> Option<Result<(), TlsRefusal>> {
        // Whoever comes to meet asks for a name, too.
        let name = asked_for(stream, bound).filter(|name| name.starts_with('l'))?;
        let mut table = lock(&self.0);
        let Some(&(lane, generation)) = table.awaited.get(&name) else {
            let text = "it asks for a lane that nobody awaits".to_owned();
            return Some(Err(TlsRefusal::Hello(text)));
        };
        let handed = stream.try_clone().map_err(|e| TlsRefusal::of_io(&e, bound.limit));
        Some(handed.map(|stream| {
            // One for which there is no room is dropped, and awaited still: its worker dials again.
            if table.come.try_send(LaneArrival { lane, generation, stream }).is_ok() {
                table.awaited.remove(&name);
            }
        }))
    }
}

/// The name that a connection asks for, of which nothing is read: what TLS begins with may come in pieces.
pub(crate) fn asked_for(stream: &TcpStream, bound: TimeLimit) -> Option<String> {
    let (mut bytes, mut known) = (vec![0; limits::CLIENT_HELLO_BYTES], 0);
    let (mut begun, mut wait) = (rustls::server::Acceptor::default(), LOOK / 16);
    loop {
        stream.set_read_timeout(Some(bound.left()?)).ok()?;
        let over = hung_up(stream);
        let count = stream.peek(&mut bytes).ok()?;
        if count > known {
            let mut unread = &bytes[known..count];
            known = count;
            while !unread.is_empty() {
                begun.read_tls(&mut unread).ok()?;
            }
            if let Some(accepted) = begun.accept().ok()? {
                return accepted.client_hello().server_name().map(str::to_owned);
            }
        } else if over || count == 0 || count == bytes.len() {
            return None;
        }
        // Nothing tells of bytes behind those that stay unread.
        std::thread::sleep(wait);
        wait = LOOK.min(wait * 2);
    }
}

/// How lanes find their way after a meeting.
pub enum LanePort {
    /// They come to the port at which this party awaited the other one.
    Listens(ListeningPort),
    /// They go to the address at which it was met.
    Dials(String),
}

impl LanePort {
    /// A lane is up: nobody is handed on to where its worker awaited the peer's.
    pub fn close_route(&self, lane: u16) {
        if let Self::Listens(ListeningPort { link: Some(link), .. }) = self {
            lock(link).close(lane);
        }
    }
}

/// The port at which lanes come in.
pub struct ListeningPort {
    /// Keeps the port open.
    _acceptor: Mutex<Acceptor>,
    address: SocketAddr,
    routes: LaneRoutes,
    arrivals: Mutex<Receiver<LaneArrival>>,
    /// What stands before it.
    link: Option<Box<Mutex<GateLink>>>,
}

impl ListeningPort {
    pub(crate) fn new(acceptor: Acceptor) -> Self {
        let (routes, arrivals) = LaneRoutes::new();
        acceptor.route(routes.clone());
        let (address, arrivals) = (acceptor.address, Mutex::new(arrivals));
        Self { _acceptor: Mutex::new(acceptor), address, routes, arrivals, link: None }
    }

    /// Behind the gate of the meeting, where there is one.
    pub(crate) fn behind(self, link: Option<GateLink>) -> Self {
        Self { link: link.map(|link| Box::new(Mutex::new(link))), ..self }
    }

    /// Where a gate stands before it: this machine as the gate reaches it.
    #[must_use]
    pub fn gated_host(&self) -> Option<String> {
        self.link.as_ref().map(|link| lock(link).host().to_owned())
    }

    /// Where a gate stands before it: has the peer's worker handed on to the one that awaits it at `to`.
    /// Otherwise the peer is told that address; false then.
    ///
    /// # Errors
    /// When the gate does not take the route.
    pub fn route(&self, run: &[u8; 32], lane: u16, generation: u32, to: &str) -> Result<bool, Error> {
        let Some(link) = &self.link else { return Ok(false) };
        lock(link).lane((run, lane, generation), to).map(|()| true)
    }

    /// Binds `address` for lanes alone: who asks for none that is awaited is turned away.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn bind(address: &str, deadline: Duration) -> Result<Self, Error> {
        let nobody = Tls::new(&Identity::generate()?, Vec::new())?;
        let admission = Admission::new(Vec::new(), deadline);
        Ok(Self::new(Acceptor::bind(address, DoorPolicy::Pinned(nobody), admission)?))
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Awaits a connection of a lane, and no earlier one of it.
    pub fn expect(&self, run: &[u8; 32], lane: u16, generation: u32) {
        let mut table = lock(&self.routes.0);
        table.awaited.retain(|_, (other, _)| *other != lane);
        table.awaited.insert(lane_label(run, lane, generation), (lane, generation));
    }

    /// The next that has come, within so long.
    #[must_use]
    pub fn next(&self, wait: Duration) -> Option<LaneArrival> {
        lock(&self.arrivals).recv_timeout(wait).ok()
    }
}

/// Hands a connection to another process of this machine.
///
/// # Errors
/// When it is gone.
pub fn send_stream(over: &UnixStream, stream: &TcpStream) -> Result<(), Error> {
    let fds = [stream.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Error::misuse("one descriptor fits into a message"));
    }
    let failed = |e: rustix::io::Errno| Error::io("cannot hand a connection to a worker", &e.into());
    let sent = sendmsg(over, &[IoSlice::new(b"L")], &mut control, SendFlags::NOSIGNAL).map_err(failed)?;
    if sent == 1 { Ok(()) } else { Err(Error::misuse("a message of one byte is sent or not")) }
}

/// Takes a connection that another process of this machine hands over.
///
/// # Errors
/// When it is gone, or hands over something else than one connection.
pub fn recv_stream(over: &UnixStream) -> Result<TcpStream, Error> {
    let failed = |e: rustix::io::Errno| Error::io("cannot take a connection over", &e.into());
    let (mut byte, mut taken) = ([0], Vec::<OwnedFd>::new());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut recv = || recvmsg(over, &mut [IoSliceMut::new(&mut byte)], &mut control, flags);
    let got = retry_on_intr(&mut recv).map_err(failed)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            // There may be room for two: a message's length is rounded up.
            taken.extend(fds);
        }
    }
    let other = || Error::misuse("a coordinator hands over one connection at a time");
    match (got.bytes, byte, taken.pop()) {
        (1, [b'L'], Some(fd)) if taken.is_empty() && !got.flags.contains(ReturnFlags::CTRUNC) => {
            let stream = TcpStream::from(fd);
            // Of anything else than TCP the system knows no such address.
            stream.peer_addr().map_err(|_| other())?;
            Ok(stream)
        }
        _ => Err(other()),
    }
}

//! The channel between two hosts: a TCP stream, plain or under TLS, with a writer thread behind a bounded
//! window.
//!
//! The protocol thread seals and opens; the writer thread only writes. So TLS has one owner and no lock, a
//! party computes while its bytes leave, and two parties that both send more than the kernel takes do not
//! wait for each other. A short message that finds the writer idle is written by the protocol thread itself,
//! as far as the kernel takes it: lock-step protocols would pay two thread switches per message otherwise.

use crate::channel::{CHUNK_BYTES, WINDOW_CHUNKS};
use crate::halt::halted;
use crate::stop::StopSwitch;
use crate::window::{Popped, Window, passed};
use crate::{Channel, RangeHalt};
use base::{ChannelError, limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::Connection;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of a conversation may take: a dropped channel waits this long for its last bytes to
/// leave, and the connection stays open this long for the peer's goodbye.
const LINGER: Duration = Duration::from_secs(2);

/// Longest message that is sent past the writer thread.
const DIRECT_BYTES: usize = 64 << 10;

/// Shortest message that plain TCP sends and receives without a copy of ours.
const STRAIGHT_BYTES: usize = 16 << 10;

/// `send` that takes what fits and never waits.
#[cfg(target_os = "linux")]
const MSG_DONTWAIT: Option<i32> = Some(0x40);
#[cfg(not(target_os = "linux"))]
const MSG_DONTWAIT: Option<i32> = None;

/// What a closed connection shows. Errors are always shown.
#[cfg(target_os = "linux")]
const HANG_UP: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const HANG_UP: PollFlags = PollFlags::HUP;

/// `recv` that leaves the bytes where they are.
const MSG_PEEK: i32 = 2;

/// One connection to one peer.
pub(crate) struct SocketChannel {
    stream: Arc<TcpStream>,
    tls: Option<Connection>,
    window: Arc<Window>,
    /// Application bytes that wait for company.
    queued: Vec<u8>,
    /// An empty buffer for what goes to the writer.
    spare: Vec<u8>,
    incoming: ReceiveBuffer,
    deadline: Duration,
    /// Of the receive under way, where it has one in all.
    bound: Option<TimeLimit>,
    finished: bool,
    /// What TLS said when it failed: a refusal of our key arrives after the handshake.
    failure: Option<rustls::Error>,
    /// Where it ends with its party's run.
    stop: StopSwitch,
    /// And with others of that.
    halt: RangeHalt,
}

/// How long something may take in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    pub(crate) limit: Duration,
    until: Instant,
}

impl TimeLimit {
    /// From now on.
    pub(crate) fn of(limit: Duration) -> Self {
        Self { limit, until: Instant::now() + limit }
    }

    /// What is left of it; nothing when it has passed.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

/// Bytes read from the socket that are not used up: ciphertext under TLS, application bytes otherwise.
pub(crate) struct ReceiveBuffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// Bytes read at once while nobody knows who speaks: more than a handshake has.
const FIRST_BYTES: usize = 8 << 10;

impl ReceiveBuffer {
    /// For a handshake.
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; FIRST_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// For a conversation.
    fn grow(&mut self) {
        if self.bytes.len() < CHUNK_BYTES {
            let mut bytes = vec![0; CHUNK_BYTES].into_boxed_slice();
            let unused = self.unused();
            bytes[..unused.len()].copy_from_slice(unused);
            *self = Self { start: 0, end: unused.len(), bytes };
        }
    }

    pub(crate) fn unused(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn advance(&mut self, by: usize) {
        self.start += by;
    }

    /// Reads once into the empty buffer; 0 is the end of the stream.
    pub(crate) fn refill(&mut self, stream: &TcpStream) -> io::Result<usize> {
        debug_assert!(self.unused().is_empty());
        (self.start, self.end) = (0, 0);
        self.end = read_once(stream, &mut self.bytes)?;
        Ok(self.end)
    }
}

fn read_once(mut stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(into) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Sets what every connection wants: no delay for short messages, and an end when the network is gone.
///
/// The kernel's buffers keep their defaults: it grows them with the path, which a fixed size would forbid.
pub(crate) fn tune(stream: &TcpStream, deadline: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probe = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10))
        .with_retries(3);
    socket.set_tcp_keepalive(&probe)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(deadline))?;
    stream.set_read_timeout(Some(deadline))?;
    stream.set_write_timeout(Some(deadline))
}

/// Whether the other side has closed its end, whatever it sent before.
pub(crate) fn hung_up(stream: &TcpStream) -> bool {
    shows(stream, HANG_UP, Duration::ZERO)
}

fn shows(stream: &TcpStream, what: PollFlags, wait: Duration) -> bool {
    let mut fds = [PollFd::new(stream, what)];
    let wait = Timespec::try_from(wait).ok();
    poll(&mut fds, wait.as_ref()).is_ok_and(|ready| ready > 0)
}

/// What a failed read or write means to a conversation.
pub(crate) fn fault(error: &io::Error, deadline: Duration) -> ChannelError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => passed(deadline),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => ChannelError::Cut,
        _ => ChannelError::Io(format!("the connection failed: {error}")),
    }
}

/// What a TLS error after the handshake means.
fn tls_fault(error: &rustls::Error) -> ChannelError {
    ChannelError::Io(match error {
        rustls::Error::AlertReceived(alert) => {
            format!(
                "the peer's TLS refused our bytes ({alert:?}); something between the two hosts alters them"
            )
        }
        other => format!(
            "the bytes that arrived are not the peer's TLS ({other}); something between the hosts alters them"
        ),
    })
}

/// Appends to `out` what must be written for the peer to get `bytes`: records, and alerts or key updates that
/// wait.
fn seal(tls: &mut Connection, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    tls.writer().write_all(bytes)?;
    while tls.wants_write() {
        tls.write_tls(out)?;
    }
    Ok(())
}

impl SocketChannel {
    /// A channel over a connected stream, after the handshake where there is one.
    pub(crate) fn new(
        stream: impl Into<Arc<TcpStream>>,
        mut tls: Option<Connection>,
        incoming: ReceiveBuffer,
        deadline: Duration,
    ) -> io::Result<Self> {
        let stream = stream.into();
        tune(&stream, deadline)?;
        if let Some(tls) = &mut tls {
            // Every piece is sealed and taken out at once, so a limit inside would only cut it short.
            tls.set_buffer_limit(None);
        }
        let window = Window::new(WINDOW_CHUNKS);
        let writer = Writer { stream: stream.clone(), window: window.clone() };
        std::thread::Builder::new().name("net writer".into()).spawn(move || writer.run())?;
        let (queued, spare) = (Vec::new(), Vec::new());
        let (bound, finished, failure) = (None, false, None);
        let (stop, halt) = (StopSwitch::default(), RangeHalt::default());
        Ok(Self {
            stream,
            tls,
            window,
            queued,
            spare,
            incoming,
            deadline,
            bound,
            finished,
            failure,
            stop,
            halt,
        })
    }

    /// The connection itself.
    pub(crate) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    /// What TLS said when it failed.
    pub(crate) fn tls_failure(&self) -> Option<&rustls::Error> {
        self.failure.as_ref()
    }

    /// The hello is over: the conversation begins, under its own deadline.
    pub(crate) fn begin(&mut self, deadline: Duration) -> Result<(), ChannelError> {
        self.finished = false;
        self.deadline = deadline;
        self.incoming.grow();
        tune(&self.stream, deadline).map_err(|e| fault(&e, deadline))
    }

    /// From now on a wait for the peer ends with the switch.
    pub(crate) fn ends_with(&mut self, stop: &StopSwitch) {
        stop.hold(&self.stream);
        self.stop = stop.clone();
    }

    pub(crate) fn hand_over(&mut self) -> Result<(), ChannelError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        let mut queued = std::mem::take(&mut self.queued);
        if self.tls.is_some() {
            let done = self.hand_over_sealed(&queued);
            queued.clear();
            self.queued = queued;
            return done;
        }
        self.queued = std::mem::take(&mut self.spare);
        self.transmit(queued)
    }

    /// Seals `bytes`, at most a chunk, and hands them over.
    fn hand_over_sealed(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut out = std::mem::take(&mut self.spare);
        seal(tls, bytes, &mut out).map_err(|e| fault(&e, self.deadline))?;
        self.transmit(out)
    }

    /// Whether the peer has closed its end, whatever it sent before. Uses up nothing.
    pub(crate) fn hung_up(&self) -> bool {
        hung_up(&self.stream)
    }

    /// Whether a receive would find something, bytes or an end, within `wait`. Uses up nothing.
    pub(crate) fn answers(&self, wait: Duration) -> bool {
        !self.incoming.unused().is_empty() || shows(&self.stream, PollFlags::IN, wait)
    }

    /// Gives the kernel as much of a long plain message as it takes at once, from where it lies; the rest is
    /// queued.
    fn send_straight(&mut self, mut bytes: &[u8]) -> Result<usize, ChannelError> {
        let all = bytes.len();
        let Some(flags) = MSG_DONTWAIT.filter(|_| self.queued.is_empty() && self.window.idle()) else {
            return Ok(0);
        };
        while !bytes.is_empty() {
            match SockRef::from(&*self.stream).send_with_flags(bytes, flags) {
                Ok(0) => break,
                Ok(sent) => bytes = &bytes[sent..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(fault(&e, self.deadline)),
            }
        }
        Ok(all - bytes.len())
    }

    /// Hands bytes of the wire to the kernel or to the writer thread.
    fn transmit(&mut self, mut wire: Vec<u8>) -> Result<(), ChannelError> {
        if let Some(flags) = MSG_DONTWAIT.filter(|_| wire.len() <= DIRECT_BYTES)
            && self.window.idle()
        {
            let sent = match SockRef::from(&*self.stream).send_with_flags(&wire, flags) {
                Ok(sent) => sent,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
                Err(e) => return Err(fault(&e, self.deadline)),
            };
            wire.drain(..sent);
            if wire.is_empty() {
                self.spare = wire;
                return Ok(());
            }
        }
        self.spare = self.window.push(wire, self.deadline)?;
        Ok(())
    }

    /// [`Channel::recv`] that may take so long in all, however little is missing.
    pub(crate) fn recv_within(&mut self, into: &mut [u8], bound: TimeLimit) -> Result<(), ChannelError> {
        self.bound = Some(bound);
        let done = self.recv(into);
        self.bound = None;
        let restored = self.stream.set_read_timeout(Some(self.deadline));
        done.and(restored.map_err(|e| fault(&e, self.deadline)))
    }

    /// Waits for bytes of the wire.
    fn refill(&mut self) -> Result<usize, ChannelError> {
        let stopped = |channel: &Self| match channel.stop.is_stopped() {
            true => Err(ChannelError::Stopped),
            false => channel.halt.check(),
        };
        stopped(self)?;
        let mut limit = self.deadline;
        if let Some(bound) = self.bound {
            limit = bound.limit;
            let left = bound.left().ok_or(passed(limit))?;
            self.stream.set_read_timeout(Some(left)).map_err(|e| fault(&e, limit))?;
        }
        let read = self.incoming.refill(&self.stream).map_err(|e| fault(&e, limit));
        // The switch ends a read as its peer's end would.
        stopped(self)?;
        read
    }

    /// Reads at least one byte.
    fn read_some(&mut self, into: &mut [u8]) -> Result<usize, ChannelError> {
        loop {
            let got = if self.tls.is_some() { self.open(into)? } else { self.read_plain(into)? };
            if got > 0 {
                return Ok(got);
            }
            if self.refill()? == 0 {
                // Under TLS an end without a goodbye is a cut. Plain TCP has no goodbye: its ends look
                // orderly.
                return Err(if self.tls.is_some() { ChannelError::Cut } else { ChannelError::Closed });
            }
        }
    }

    /// Takes application bytes out of the records that were read: as many as there are and as fit, or 0 when
    /// more must be read.
    fn open(&mut self, into: &mut [u8]) -> Result<usize, ChannelError> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let mut filled = 0;
        loop {
            match tls.reader().read(&mut into[filled..]) {
                // The peer said goodbye. What arrived before it counts first.
                Ok(0) => return if filled > 0 { Ok(filled) } else { Err(ChannelError::Closed) },
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(fault(&e, self.deadline)),
            }
            if filled == into.len() || self.incoming.unused().is_empty() {
                return Ok(filled);
            }
            let fed = tls.read_tls(&mut self.incoming.unused()).map_err(|e| fault(&e, self.deadline))?;
            self.incoming.advance(fed);
            if let Err(failure) = tls.process_new_packets() {
                let error = tls_fault(&failure);
                self.failure = Some(failure);
                // Best effort: the alert tells the peer why.
                self.deadline = self.deadline.min(LINGER);
                let _ = self.hand_over_sealed(&[]);
                return Err(error);
            }
        }
    }

    /// Looks through the records that were read for the peer's goodbye. Application bytes stay inside for the
    /// next receive; `false` says that there are some.
    fn watch_records(&mut self) -> Result<bool, ChannelError> {
        let Some(tls) = &mut self.tls else { return Ok(self.incoming.unused().is_empty()) };
        loop {
            // What was processed with the last bytes received counts, too.
            let state = tls.process_new_packets().map_err(|e| tls_fault(&e))?;
            if state.plaintext_bytes_to_read() > 0 {
                return Ok(false);
            }
            if state.peer_has_closed() {
                return Err(ChannelError::Closed);
            }
            if self.incoming.unused().is_empty() {
                return Ok(true);
            }
            let fed = tls.read_tls(&mut self.incoming.unused()).map_err(|e| fault(&e, self.deadline))?;
            self.incoming.advance(fed);
        }
    }

    fn read_plain(&mut self, into: &mut [u8]) -> Result<usize, ChannelError> {
        let unused = self.incoming.unused();
        if unused.is_empty() && into.len() >= STRAIGHT_BYTES {
            let got = read_once(&self.stream, into).map_err(|e| fault(&e, self.deadline))?;
            return if got == 0 { Err(ChannelError::Closed) } else { Ok(got) };
        }
        let take = unused.len().min(into.len());
        into[..take].copy_from_slice(&unused[..take]);
        self.incoming.advance(take);
        Ok(take)
    }
}

impl Channel for SocketChannel {
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        self.halt.check()?;
        self.finished = false;
        if self.tls.is_none() && bytes.len() >= STRAIGHT_BYTES {
            // What is queued goes first; it is short beside this message.
            self.hand_over()?;
            bytes = &bytes[self.send_straight(bytes)?..];
        }
        while !bytes.is_empty() {
            if self.tls.is_some() && self.queued.is_empty() && bytes.len() >= CHUNK_BYTES {
                // A long message is sealed from where it lies.
                let (chunk, rest) = bytes.split_at(CHUNK_BYTES);
                self.hand_over_sealed(chunk)?;
                bytes = rest;
                continue;
            }
            if self.queued.capacity() < CHUNK_BYTES {
                self.queued.reserve_exact(CHUNK_BYTES - self.queued.len());
            }
            let take = bytes.len().min(CHUNK_BYTES - self.queued.len());
            self.queued.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.queued.len() == CHUNK_BYTES {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.halt.check()?;
        self.hand_over()?;
        let mut filled = 0;
        while filled < into.len() {
            filled += self.read_some(&mut into[filled..])?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.hand_over()?;
        self.window.drained(self.deadline)?;
        self.finished = true;
        Ok(())
    }

    fn private(&self) -> bool {
        self.tls.is_some()
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Duration) {
        // Without a limit of its own the socket keeps the one it has: longer, but a limit.
        if tune(&self.stream, deadline).is_ok() {
            self.deadline = deadline;
        }
    }

    fn local_ip(&self) -> Option<IpAddr> {
        self.stream.local_addr().ok().map(|at| at.ip())
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        self.halt = halt.clone();
        let (stream, window) = (Arc::downgrade(&self.stream), Arc::downgrade(&self.window));
        halt.on_halt(move || {
            // What is written still leaves; who waits to read or to write wakes.
            window.upgrade().inspect(|window| window.refuse(halted()));
            stream.upgrade().inspect(|stream| drop(stream.shutdown(Shutdown::Read)));
        });
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        self.halt.check()?;
        let Some(flags) = MSG_DONTWAIT else { return Ok(()) };
        if !self.watch_records()? {
            return Ok(());
        }
        let mut byte = [std::mem::MaybeUninit::uninit()];
        match SockRef::from(&*self.stream).recv_with_flags(&mut byte, flags | MSG_PEEK) {
            Ok(0) => Err(if self.tls.is_some() { ChannelError::Cut } else { ChannelError::Closed }),
            Ok(_) if self.tls.is_none() => Ok(()),
            Ok(_) => {
                // The bytes are there: this does not wait.
                self.incoming.refill(&self.stream).map_err(|e| fault(&e, self.deadline))?;
                self.watch_records().map(drop)
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(e) => Err(fault(&e, self.deadline)),
        }
    }
}

impl Drop for SocketChannel {
    fn drop(&mut self) {
        self.deadline = self.deadline.min(LINGER);
        let _ = self.hand_over();
        if let (true, Some(tls)) = (self.finished, &mut self.tls) {
            tls.send_close_notify();
            let _ = self.hand_over_sealed(&[]);
        }
        self.window.end(ChannelError::Closed);
        if self.window.drained(self.deadline).is_err() {
            // The peer takes nothing: free the writer thread.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}

/// The writing half: a thread per connection.
struct Writer {
    stream: Arc<TcpStream>,
    window: Arc<Window>,
}

impl Writer {
    fn run(self) {
        loop {
            match self.window.pop(Duration::MAX) {
                Popped::Deadline => {}
                Popped::Ended(_) => return linger(&self.stream),
                Popped::Buffer(wire) => {
                    if let Err(e) = (&*self.stream).write_all(&wire) {
                        let limit = self.stream.write_timeout().ok().flatten().unwrap_or_default();
                        return self.window.refuse(fault(&e, limit));
                    }
                    self.window.spent(wire);
                }
            }
        }
    }
}

/// Ends our half of a connection and waits for the peer's end: closing a socket with unread bytes would make
/// the kernel discard our last ones, an alert among them.
pub(crate) fn linger(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let (start, mut rest) = (Instant::now(), vec![0; 64 << 10]);
    // More than a window and the kernel's buffers is a peer that did not notice our end: it should.
    let mut unread = 2 * limits::WINDOW_BYTES;
    while let Some(left) = LINGER.checked_sub(start.elapsed()).filter(|d| !d.is_zero()) {
        let _ = stream.set_read_timeout(Some(left));
        match read_once(stream, &mut rest) {
            Ok(n) if n > 0 && n < unread => unread -= n,
            _ => return,
        }
    }
}

//! The listening side: takes connections, lets each prove who it is, and hands on those that did.
//!
//! Every connection shakes hands on a thread of its own, so a port scan that connects and says nothing keeps nobody
//! from the door. What is refused is reported and forgotten.

use crate::Channel;
use crate::connect::Gate;
use crate::hello::{HELLO_BYTES, Hello, NoHello};
use crate::identity::Fingerprint;
use crate::socket::{Incoming, SocketChannel, tune};
use crate::tls::{Refusal, proven, shake};
use base::{Error, limits};
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections that may be proving who they are at one time. One more takes the place of the oldest of the address that has
/// most, so that those who say nothing keep nobody out.
pub(crate) const HANDSHAKES: usize = 32;

/// How often the accepting thread looks whether it should stop.
const WAKE: Duration = Duration::from_millis(20);

/// Time for a handshake and a hello.
pub(crate) const HANDSHAKE: Duration = Duration::from_millis(limits::HANDSHAKE_MS);

/// Somebody proved to be a peer and said this.
pub(crate) struct Arrival {
    pub(crate) channel: Box<SocketChannel>,
    pub(crate) hello: Result<Hello, NoHello>,
    /// The key it proved; none without TLS.
    pub(crate) key: Option<Fingerprint>,
    pub(crate) from: SocketAddr,
}

/// Somebody was turned away.
pub(crate) struct TurnedAway {
    pub(crate) from: SocketAddr,
    pub(crate) why: Refusal,
}

/// A bound address and the thread that accepts there, until dropped.
pub(crate) struct Acceptor {
    pub(crate) address: SocketAddr,
    pub(crate) arrivals: Receiver<Arrival>,
    /// In a queue of their own: strangers take no place of a peer.
    pub(crate) turned_away: Receiver<TurnedAway>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Binds `address` and accepts whoever passes `gate`.
    pub(crate) fn bind(address: &str, gate: Gate) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).map_err(|e| bind_error(address, &e))?;
        let failed = |e: std::io::Error| Error::io(format!("cannot listen at {address}"), &e);
        let bound = listener.local_addr().map_err(failed)?;
        // Accepting obeys the read timeout, so the thread can look up now and then.
        SockRef::from(&listener).set_read_timeout(Some(WAKE)).map_err(failed)?;
        let (arrived, arrivals) = sync_channel(HANDSHAKES);
        let (refused, turned_away) = sync_channel(HANDSHAKES);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let work = move || accept(&listener, &gate, &Reports { arrived, refused }, &stopped);
        let thread = std::thread::Builder::new().name("net accept".into()).spawn(work).map_err(failed)?;
        Ok(Self { address: bound, arrivals, turned_away, stop, thread: Some(thread) })
    }
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
    Error::input(match error.kind() {
        ErrorKind::AddrInUse => format!(
            "{address} is in use by another process (`ss -ltnp` shows which); stop it or change `listen` to another \
             port"
        ),
        ErrorKind::AddrNotAvailable => {
            format!(
                "{address} is no address of this machine; change `listen`, for instance to 0.0.0.0 with the port"
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

/// Connections that have not proved who they are and where they come from, oldest first.
type Unproven = Arc<Mutex<BTreeMap<u64, (IpAddr, TcpStream)>>>;

fn accept(listener: &TcpListener, gate: &Gate, reports: &Reports, stop: &AtomicBool) {
    let unproven = Unproven::default();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let (stream, from) = match listener.accept() {
            Ok(came) => came,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(_) => {
                // Out of file descriptors, or gone before we looked: neither ends the session.
                std::thread::sleep(WAKE);
                continue;
            }
        };
        number += 1;
        if !admit(&unproven, number, from.ip(), &stream) {
            continue;
        }
        let (gate, reports, done) = (gate.clone(), reports.clone(), unproven.clone());
        let welcome = move || {
            let proven = prove(stream, &gate);
            lock(&done).remove(&number);
            match proven {
                Ok((channel, hello, key)) => {
                    let _ =
                        reports.arrived.try_send(Arrival { channel: Box::new(channel), hello, key, from });
                }
                Err(why) => _ = reports.refused.try_send(TurnedAway { from, why }),
            }
        };
        let spawned = std::thread::Builder::new().name("net handshake".into()).spawn(welcome);
        if spawned.is_err() {
            lock(&unproven).remove(&number);
        }
    }
}

/// Takes a connection among those that prove who they are; ends one where there are too many.
fn admit(unproven: &Unproven, number: u64, from: IpAddr, stream: &TcpStream) -> bool {
    let Ok(handle) = stream.try_clone() else { return false };
    let mut unproven = lock(unproven);
    if unproven.len() >= HANDSHAKES {
        let of = |address: &IpAddr| unproven.values().filter(|(from, _)| from == address).count();
        let most = unproven.values().map(|(from, _)| *from).max_by_key(of);
        let oldest = unproven.iter().find(|(_, (from, _))| Some(*from) == most).map(|(number, _)| *number);
        if let Some((_, stream)) = oldest.and_then(|number| unproven.remove(&number)) {
            // Its thread finds the end and goes.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
    unproven.insert(number, (from, handle));
    true
}

fn lock(unproven: &Unproven) -> MutexGuard<'_, BTreeMap<u64, (IpAddr, TcpStream)>> {
    unproven.lock().unwrap_or_else(PoisonError::into_inner)
}

type Proven = (SocketChannel, Result<Hello, NoHello>, Option<Fingerprint>);

/// Lets a connection prove who it is and say what it wants.
fn prove(stream: TcpStream, gate: &Gate) -> Result<Proven, Refusal> {
    let failed = |e: std::io::Error| Refusal::of_io(&e, HANDSHAKE);
    tune(&stream, HANDSHAKE).map_err(failed)?;
    let (tls, incoming) = match gate {
        Gate::Open => (None, Incoming::new()),
        Gate::Pinned(tls) => {
            let (tls, incoming) = shake(&stream, tls.listener()?, HANDSHAKE)?;
            (Some(tls), incoming)
        }
    };
    let key = tls.as_ref().and_then(proven);
    let mut channel = SocketChannel::new(stream, tls, incoming, HANDSHAKE).map_err(failed)?;
    let hello = hear(&mut channel)?;
    Ok((channel, hello, key))
}

/// Receives a hello.
pub(crate) fn hear(channel: &mut SocketChannel) -> Result<Result<Hello, NoHello>, Refusal> {
    let mut bytes = [0; HELLO_BYTES];
    match channel.recv(&mut bytes) {
        Ok(()) => Ok(Hello::decode(&bytes)),
        Err(error) => Err(match channel.tls_failure() {
            Some(failure) => Refusal::of_tls(failure),
            None => Refusal::of_channel(&error),
        }),
    }
}

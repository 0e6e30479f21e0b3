//! The link between the services of two organisations: one TLS 1.3 connection per pair, with pinned keys, on
//! a port of its own. It carries statements and nothing that the state of a study depends on besides: what
//! is said is stored before it is sent and sent until the peer acknowledges it, and what comes is stored
//! before it is acknowledged. So a kill at any place loses nothing, and repeats are harmless.
//!
//! What a peer says never names an address: whom this side dials stands in `service.toml` alone.

mod board;
mod keys;
pub mod otherwise;
mod talk;
#[cfg(test)]
mod tests;
mod trial;
mod wire;

pub use board::{LinkBoard, LinkStanding};
pub use keys::LinkKeys;
pub use trial::test_peer;

use crate::settings::{HouseSettings, ServicePeer};
use crate::web::House;
use base::Error;
use futures_util::future::{Either, select};
use net::services::{HELLO_BYTES, ServiceHello, ServiceTls, proven_key};
use net::{Crowd, KeyFingerprint};
use rustls::pki_types::ServerName;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// Clocks further apart than this begin no run.
pub const SKEW_MS: u64 = 5 * 60_000;
/// How long connecting, a handshake or a hello may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait before a peer is dialled again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Connections that have not proven a key yet.
const STRANGERS: usize = 64;
/// How often it is looked whether a link is there.
const LOOK: Duration = Duration::from_millis(250);

/// Listens for other services and dials those with an address, as long as the process lives.
///
/// # Errors
/// When the port is taken.
pub async fn run(house: Arc<House>) -> Result<(), Error> {
    let settings = house.rules().settings;
    // The store may be an older copy than what they have of it.
    house.store().hear_anew(&settings.peers.values().map(|peer| peer.key).collect::<Vec<_>>())?;
    if let Some(link) = &settings.link {
        let bound = TcpListener::bind(&link.listen).await;
        let listener = bound
            .map_err(|e| Error::io(format!("cannot listen on {} for other services", link.listen), &e))?;
        tokio::spawn(listen(house.clone(), listener));
    }
    tokio::spawn(dial_all(house));
    Ok(())
}

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Our name for the peer with a key, and what stands about it.
pub fn peer_of<'a>(settings: &'a HouseSettings, key: &KeyFingerprint) -> Option<(&'a str, &'a ServicePeer)> {
    let found = settings.peers.iter().find(|(_, peer)| peer.key == *key);
    found.map(|(name, peer)| (name.as_str(), peer))
}

async fn listen(house: Arc<House>, listener: TcpListener) {
    // Who has to go for one more sees that its place is dropped.
    let mut strangers = Crowd::new(STRANGERS);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            sleep(LOOK).await;
            continue;
        };
        let (keeps, place) = oneshot::channel::<()>();
        strangers.take(oneshot::Sender::is_closed);
        drop(strangers.admit(from.ip(), keeps));
        let house = house.clone();
        tokio::spawn(async move {
            if let Some((peer, stream)) = prove(&house, stream, place).await {
                speak(house, peer, stream, false).await;
            }
        });
    }
}

/// Who has come, once it has proven a key: within a time, and as long as it has a place among the strangers.
async fn prove(
    house: &Arc<House>,
    stream: TcpStream,
    place: oneshot::Receiver<()>,
) -> Option<(KeyFingerprint, TlsStream<TcpStream>)> {
    let welcomed = pin!(timeout(PATIENCE, welcome(house, stream)));
    match select(welcomed, place).await {
        Either::Left((came, _)) => came.ok().flatten(),
        Either::Right(_) => None,
    }
}

/// Looks at rules and store, on a thread that may wait.
async fn tls(house: &Arc<House>) -> Option<ServiceTls> {
    let house = house.clone();
    tokio::task::spawn_blocking(move || house.link_keys().tls(&house)).await.ok()?
}

/// A connection that came: who proves no key of a peer has said nothing that was looked at.
async fn welcome(house: &Arc<House>, stream: TcpStream) -> Option<(KeyFingerprint, TlsStream<TcpStream>)> {
    let _ = stream.set_nodelay(true);
    let accepted = TlsAcceptor::from(tls(house).await?.listener).accept(stream).await.ok()?;
    let peer = proven_key(accepted.get_ref().1.peer_certificates())?;
    let mut stream = TlsStream::from(accepted);
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).await.ok()?;
    if ServiceHello::read(&hello) != Ok(ServiceHello::Question) {
        return None;
    }
    // A pause holds at once, also where TLS still knows the key.
    if !may_speak(house, peer).await {
        return None;
    }
    let may = house.links().may_come(peer, Instant::now());
    let answer = if may { ServiceHello::Taken } else { ServiceHello::Busy };
    stream.write_all(&answer.bytes()).await.ok()?;
    stream.flush().await.ok()?;
    may.then_some((peer, stream))
}

/// Keeps one task for each peer that has an address, also for those that come into the rules later.
async fn dial_all(house: Arc<House>) {
    let mut dialled = std::collections::HashSet::new();
    loop {
        for (name, peer) in &house.rules().settings.peers {
            log(&house, peer.key).await;
            if peer.address.is_some() && dialled.insert(name.clone()) {
                tokio::spawn(dial(house.clone(), name.clone()));
            }
        }
        sleep(PATIENCE).await;
    }
}

async fn dial(house: Arc<House>, name: String) {
    let mut wait = Duration::from_secs(1);
    loop {
        let settings = house.rules().settings;
        let Some((key, address)) =
            settings.peers.get(&name).and_then(|peer| Some((peer.key, peer.address.clone()?)))
        else {
            sleep(LONGEST_WAIT).await;
            continue;
        };
        let paused = house.store().paused().map_or(true, |paused| paused.contains(&name));
        if paused || house.links().of(&key).since_ms.is_some() {
            sleep(LOOK).await;
            continue;
        }
        match timeout(PATIENCE, knock(&house, key, &address)).await {
            Ok(Ok(stream)) => {
                wait = Duration::from_secs(1);
                speak(house.clone(), key, stream, true).await;
            }
            Ok(Err(why)) => house.links().failed(&key, None, now_ms(), why),
            Err(_) => {
                let why = format!("{address} did not answer within {} s", PATIENCE.as_secs());
                house.links().failed(&key, None, now_ms(), why);
            }
        }
        let mut byte = [0; 1];
        // Sides that dial each other would else meet for ever at the same moment.
        let _ = getrandom::fill(&mut byte);
        sleep(wait.mul_f64(0.75 + f64::from(byte[0]) / 512.0)).await;
        wait = (2 * wait).min(LONGEST_WAIT);
    }
}

async fn knock(
    house: &Arc<House>,
    key: KeyFingerprint,
    address: &str,
) -> Result<TlsStream<TcpStream>, String> {
    let stream = TcpStream::connect(address).await.map_err(|e| format!("{address}: {e}"))?;
    greet(house, key, stream, address).await
}

/// Proves the own key to who answers at an address, and asks to speak.
async fn greet(
    house: &Arc<House>,
    key: KeyFingerprint,
    stream: TcpStream,
    address: &str,
) -> Result<TlsStream<TcpStream>, String> {
    let failed = |e: std::io::Error| format!("{address}: {e}");
    let tls = tls(house).await.ok_or("TLS cannot be set up: is the organisation's key there?")?;
    let _ = stream.set_nodelay(true);
    let name = ServerName::try_from("tacit").map_err(|e| e.to_string())?;
    let connected = TlsConnector::from(tls.dialer).connect(name, stream).await.map_err(failed)?;
    if proven_key(connected.get_ref().1.peer_certificates()) != Some(key) {
        return Err(format!("who answers at {address} has the key of another peer"));
    }
    let mut stream = TlsStream::from(connected);
    stream.write_all(&ServiceHello::Question.bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).await.map_err(failed)?;
    match ServiceHello::read(&hello)? {
        ServiceHello::Taken => Ok(stream),
        ServiceHello::Busy | ServiceHello::Question => Err(format!("{address} is busy")),
    }
}

/// Makes a connection the link, and speaks until it ends.
async fn speak(house: Arc<House>, peer: KeyFingerprint, stream: TlsStream<TcpStream>, dialled: bool) {
    let Some(own) = house.identity().map(net::Identity::fingerprint) else { return };
    let Some(link) = house.links().take(&own, peer, dialled, now_ms()) else { return };
    let connection = link.connection;
    // It may have been paused since its key was looked at.
    if may_speak(&house, peer).await {
        log(&house, peer).await;
        let why = talk::talk(house.clone(), peer, link, stream).await;
        house.links().failed(&peer, Some(connection), now_ms(), why);
        log(&house, peer).await;
    } else {
        house.links().end(&peer, now_ms());
    }
}

async fn may_speak(house: &Arc<House>, peer: KeyFingerprint) -> bool {
    let house = house.clone();
    let looked = tokio::task::spawn_blocking(move || keys::speaking(&house).contains(&peer));
    looked.await.unwrap_or(false)
}

/// Writes into the log that a link came or went, where there is something to write.
async fn log(house: &Arc<House>, peer: KeyFingerprint) {
    if let Some(what) = house.links().to_log(&peer, Instant::now()) {
        let house = house.clone();
        // What could not be written has been said.
        let _ = tokio::task::spawn_blocking(move || house.log_link(&peer, what)).await;
    }
}

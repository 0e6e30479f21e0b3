//! Strangers at the door: from many addresses at once, silent or half way into a handshake, and dripping. The
//! peer gets in.

mod common;

use common::{HOSPITALS, Keys, REGISTRY, listen, meet};
use net::relay::Relay;
use net::{ChannelSecurity, IpNetwork, Rendezvous};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The beginning of a TLS record that never ends.
const FIRST_BYTES: [u8; 5] = [0x16, 3, 1, 2, 0];

/// Connects from an address of its own on loopback.
fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// A peer 60 ms away gets in, and opens a lane, while 40 addresses hold as many connections as they get and
/// add 50 a second, half of which say a first word.
#[test]
fn a_trickle_from_many_addresses_keeps_no_peer_out() {
    let keys = Keys::new();
    let patience = Duration::from_secs(12);
    let listening = listen(keys.tls(HOSPITALS), 1, move |m| m.patience(patience).deadline(patience));
    let relay = Relay::spawn("127.0.0.1:0", listening.at, Duration::from_millis(60), 0).unwrap();
    let (over, at) = (AtomicBool::new(false), listening.at);
    let came = std::thread::scope(|scope| {
        let come = move |number: usize| {
            let mut stream = from(2 + (number % 40) as u8, at);
            if number % 2 == 1 {
                // It may have lost its place already.
                let _ = stream.write_all(&FIRST_BYTES);
            }
            stream
        };
        let mut held: Vec<TcpStream> = (0..240).map(come).collect();
        let over = &over;
        let flood = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                held.push(come(held.len()));
                std::thread::sleep(Duration::from_millis(20));
            }
            held.len()
        });
        let start = Instant::now();
        let peer = meet(REGISTRY, Rendezvous::Dial(relay.address.to_string()), keys.tls(REGISTRY));
        let met = peer.patience(patience).deadline(patience).meet(1);
        over.store(true, Ordering::Relaxed);
        let came = flood.join().unwrap();
        assert_eq!(met.unwrap().session_id, listening.join().unwrap().session_id);
        // Well before the deadline, and a trickle did come meanwhile.
        assert!(start.elapsed() < patience / 2, "{:?}", start.elapsed());
        came
    });
    assert!(came > 250, "{came}");
}

/// A hello may take so long in all; a byte now and then buys no more time.
#[test]
fn a_hello_that_drips_ends() {
    let listening = listen(ChannelSecurity::Tcp, 0, |m| m.deadline(Duration::from_secs(1)));
    let mut stream = TcpStream::connect(listening.at).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let start = Instant::now();
    let ended = (0..60).any(|_| {
        let lost = stream.write_all(b"T").is_err();
        let waits = |e: &std::io::Error| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        lost || !stream.read(&mut [0]).is_err_and(|e| waits(&e))
    });
    assert!(ended && start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    listening.wait_refused(1);
    let why = listening.refused.lock().unwrap()[0].clone();
    assert!(why.ends_with("said nothing for 1.0 s"), "{why}");
    let peer = meet(REGISTRY, listening.dial(), ChannelSecurity::Tcp).meet(0).unwrap();
    assert_eq!(peer.session_id, listening.join().unwrap().session_id);
}

/// A peer whose machine takes the connection and says nothing: a handshake takes no longer than the deadline.
#[test]
fn a_peer_frozen_in_the_handshake_ends_at_the_deadline() {
    let keys = Keys::new();
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = frozen.local_addr().unwrap().to_string();
    let (start, limit) = (Instant::now(), Duration::from_secs(2));
    let dial =
        meet(REGISTRY, Rendezvous::Dial(at.clone()), keys.tls(REGISTRY)).patience(limit).deadline(limit);
    let error = dial.meet(1).err().unwrap().to_string();
    assert!(error.contains(&format!("no answer from hospitals at {at} within")), "{error}");
    assert!(start.elapsed() < 2 * limit, "{:?}", start.elapsed());
}

#[test]
fn who_comes_from_outside_the_networks_is_closed_at_once() {
    let keys = Keys::new();
    let allow: Vec<IpNetwork> = ["10.0.0.0/8", "127.0.0.1"].map(|text| text.parse().unwrap()).into();
    let listening = listen(keys.tls(HOSPITALS), 0, |m| m.allow(allow));
    let start = Instant::now();
    let mut outside = from(7, listening.at);
    outside.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(matches!(outside.read(&mut [0]), Ok(0) | Err(_)));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    listening.wait_refused(1);
    let why = listening.refused.lock().unwrap()[0].clone();
    let words = "is in none of the networks that hospitals takes connections from; if it is registry, add \
                 its network to `allow`";
    assert!(why.starts_with("127.0.0.7:") && why.ends_with(words), "{why}");
    let peer = meet(REGISTRY, listening.dial(), keys.tls(REGISTRY)).meet(0).unwrap();
    assert_eq!(peer.session_id, listening.join().unwrap().session_id);
}

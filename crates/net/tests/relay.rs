//! The relay: what arrives, when, and how fast.

mod common;

use common::{HOSPITALS, Keys, REGISTRY, listen, meet};
use net::relay::Relay;
use net::{Meeting, Rendezvous};
use std::time::{Duration, Instant};

fn through(delay: Duration, bytes_per_s: u64) -> (Meeting, Meeting) {
    let keys = Keys::new();
    let listening = listen(keys.tls(HOSPITALS), 0, |m| m);
    let relay = Relay::spawn("127.0.0.1:0", listening.at, delay, bytes_per_s).unwrap();
    let dialled = meet(REGISTRY, Rendezvous::Dial(relay.address.to_string()), keys.tls(REGISTRY));
    let dialled = dialled.meet(0).unwrap();
    // The relay stops listening here; the connection lives on.
    (dialled, listening.join().unwrap())
}

#[test]
fn a_round_trip_takes_two_delays() {
    let (mut a, mut b) = through(Duration::from_millis(30), 0);
    let start = Instant::now();
    let other = std::thread::spawn(move || {
        b.control[0].1.recv(&mut [0; 4]).unwrap();
        b.control[0].1.send(&[2; 4]).unwrap();
        b.control[0].1.finish().unwrap();
    });
    a.control[0].1.send(&[1; 4]).unwrap();
    a.control[0].1.recv(&mut [0; 4]).unwrap();
    let took = start.elapsed();
    other.join().unwrap();
    assert!(took >= Duration::from_millis(60), "{took:?}");
}

#[test]
fn bandwidth_is_bounded_and_nothing_is_lost() {
    let (mut a, mut b) = through(Duration::from_millis(5), 20_000_000);
    let start = Instant::now();
    let data: Vec<u8> = (0..4_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let sent = data.clone();
    let other = std::thread::spawn(move || {
        a.control[0].1.send(&sent).unwrap();
        a.control[0].1.finish().unwrap();
    });
    let mut got = vec![0; data.len()];
    b.control[0].1.recv(&mut got).unwrap();
    let took = start.elapsed();
    other.join().unwrap();
    assert!(got == data);
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert_eq!(b.control[0].1.recv(&mut [0; 1]), Err(base::ChannelError::Closed), "the goodbye passes too");
}

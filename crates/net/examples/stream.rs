//! Throughput and latency of one channel over loopback, both ends in this process.
//!
//! `cargo run --release -p net --example stream -- [GIB [TRANSPORT]]` prints one line per transport: GB/s in
//! one direction, GB/s of both directions together, and microseconds per round trip of 32 bytes.

use base::{Error, PartyId, Roster};
use net::{Channel, ChannelSecurity, Identity, Meet, Rendezvous, Status};
use std::sync::{Arc, mpsc};
use std::time::Instant;

const MESSAGE: usize = 1 << 20;
const TURNS: u32 = 20_000;

fn main() -> Result<(), Error> {
    let gib: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    println!("{:6} {:>12} {:>12} {:>14}", "", "one way GB/s", "both GB/s", "us per turn");
    let only = std::env::args().nth(2);
    for name in ["memory", "tcp", "tls"].into_iter().filter(|name| only.as_deref().is_none_or(|o| o == *name))
    {
        let rate = |both| -> Result<f64, Error> {
            let (mut a, mut b) = connected(name)?;
            let count = gib << 10;
            let start = Instant::now();
            let other = std::thread::spawn(move || stream(&mut *b, count, both, true));
            stream(&mut *a, count, true, both);
            other.join().expect("the other end ended well");
            Ok((count * MESSAGE * (1 + usize::from(both))) as f64 / start.elapsed().as_secs_f64() / 1e9)
        };
        let (one, both) = (rate(false)?, rate(true)?);
        println!("{name:6} {one:12.2} {both:12.2} {:14.1}", turns(name)?);
    }
    Ok(())
}

fn stream(channel: &mut dyn Channel, count: usize, send: bool, recv: bool) {
    let (out, mut into) = (vec![0x5a; MESSAGE], vec![0; MESSAGE]);
    for _ in 0..count {
        if send {
            channel.send(&out).expect("the peer is there");
        }
        if recv {
            channel.recv(&mut into).expect("the peer is there");
        }
    }
    channel.finish().expect("the peer is there");
}

fn turns(name: &str) -> Result<f64, Error> {
    let (mut a, mut b) = connected(name)?;
    let other = std::thread::spawn(move || {
        let mut message = [0; 32];
        for _ in 0..TURNS {
            b.recv(&mut message).expect("the peer is there");
            b.send(&message).expect("the peer is there");
        }
        b.finish().expect("the peer is there");
    });
    let start = Instant::now();
    let mut message = [0; 32];
    for _ in 0..TURNS {
        a.send(&message).expect("the peer is there");
        a.recv(&mut message).expect("the peer is there");
    }
    let took = start.elapsed().as_secs_f64();
    other.join().expect("the other end ended well");
    Ok(took * 1e6 / f64::from(TURNS))
}

type Ends = (Box<dyn Channel>, Box<dyn Channel>);

/// The two ends of a channel.
fn connected(name: &str) -> Result<Ends, Error> {
    if name == "memory" {
        return Ok(net::pair(std::time::Duration::from_secs(60)));
    }
    let identities = [Arc::new(Identity::generate()?), Arc::new(Identity::generate()?)];
    let keys: Vec<_> = identities.iter().map(|i| i.fingerprint()).collect();
    let roster = Roster::new(["a", "b"]);
    let side = |me: usize, endpoint| {
        let transport = match name {
            "tls" => ChannelSecurity::Tls { identity: identities[me].clone(), keys: keys.clone() },
            _ => ChannelSecurity::Tcp,
        };
        Meet::new(PartyId(me as u8), roster.clone(), endpoint, transport, [0; 32])
    };
    let (tell, told) = mpsc::channel();
    let listening = side(1, Rendezvous::Listen("127.0.0.1:0".into())).watch(move |status| {
        if let Status::Listening { at, .. } = status {
            tell.send(at.to_string()).expect("main waits");
        }
    });
    let listening = std::thread::spawn(move || listening.meet(0));
    let mut dialled = side(0, Rendezvous::Dial(told.recv().expect("it listens"))).meet(0)?;
    let mut listened = listening.join().expect("the listener ended well")?;
    let (a, b) = (dialled.control.remove(0), listened.control.remove(0));
    Ok((a.1, b.1))
}

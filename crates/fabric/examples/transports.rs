//! Throughput and latency of every transport over loopback, both ends in this process.
//!
//! `make fabric && cargo run --release -p fabric --example transports -- [GIB [TRANSPORT]]` prints a line per transport: GB/s in one
//! direction, GB/s of both directions together, CPU seconds per GB in one direction, and microseconds per round trip of 32
//! bytes. The plain transports are those of `upgrade`: with a tag on every flush.

use base::{Error, PartyId, Roster, Seed};
use fabric::{Kind, Outcome, upgrade};
use net::{Endpoint, Identity, Meet, Session, Status, Transport};
use std::sync::{Arc, mpsc};
use std::time::Instant;

const MESSAGE: usize = 1 << 20;
const TURNS: u32 = 20_000;

fn main() -> Result<(), Error> {
    let gib: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let only = std::env::args().nth(2);
    let fabric = |provider: &str| Some(Kind::Fabric { provider: provider.into() });
    println!(
        "{:12} {:>12} {:>12} {:>12} {:>12}",
        "", "one way GB/s", "both GB/s", "CPU s per GB", "us per turn"
    );
    for (name, kind) in [
        ("tcp", None),
        ("tls", None),
        ("shm", Some(Kind::Shm)),
        ("fabric-tcp", fabric("tcp")),
        ("fabric-shm", fabric("shm")),
    ] {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        if let Err(why) = measure(name, kind.as_ref(), gib << 10) {
            println!("{name:12} not measured: {why}");
        }
    }
    Ok(())
}

fn measure(name: &str, kind: Option<&Kind>, count: usize) -> Result<(), Error> {
    let rate = |both| -> Result<(f64, f64), Error> {
        let [mut a, mut b] = connected(name, kind)?;
        let (start, cpu) = (Instant::now(), cpu_seconds());
        let other = std::thread::spawn(move || stream(&mut b, count, both, true));
        stream(&mut a, count, true, both)?;
        other.join().expect("no panic")?;
        let gb = (count * MESSAGE * (1 + usize::from(both))) as f64 / 1e9;
        Ok((gb / start.elapsed().as_secs_f64(), (cpu_seconds() - cpu) / gb))
    };
    let ((one, cpu), (both, _)) = (rate(false)?, rate(true)?);
    println!("{name:12} {one:12.2} {both:12.2} {cpu:12.2} {:12.1}", turns(name, kind)?);
    Ok(())
}

/// Processor time of this process so far, user and system.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    // Linux counts these in hundredths of a second for every program.
    (ticks(11) + ticks(12)) / 100.0
}

fn stream(session: &mut Session, count: usize, send: bool, recv: bool) -> Result<(), Error> {
    let (out, mut into) = (vec![0x5a; MESSAGE], vec![0; MESSAGE]);
    let peer = session.me().other();
    for _ in 0..count {
        if send {
            session.link(peer).send(&out)?;
        }
        if recv {
            session.link(peer).recv(&mut into)?;
        }
    }
    session.finish()
}

fn turns(name: &str, kind: Option<&Kind>) -> Result<f64, Error> {
    let [mut a, mut b] = connected(name, kind)?;
    let other = std::thread::spawn(move || {
        let mut message = [0; 32];
        for _ in 0..TURNS {
            b.link(PartyId(0)).recv(&mut message)?;
            b.link(PartyId(0)).send(&message)?;
        }
        b.finish()
    });
    let (start, mut message) = (Instant::now(), [0; 32]);
    for _ in 0..TURNS {
        a.link(PartyId(1)).send(&message)?;
        a.link(PartyId(1)).recv(&mut message)?;
    }
    let took = start.elapsed().as_secs_f64();
    other.join().expect("no panic")?;
    Ok(took * 1e6 / f64::from(TURNS))
}

/// Two sessions that met over loopback, upgraded where a kind is given.
fn connected(name: &str, kind: Option<&Kind>) -> Result<[Session; 2], Error> {
    let identities = [Arc::new(Identity::generate()?), Arc::new(Identity::generate()?)];
    let keys: Vec<_> = identities.iter().map(|i| i.fingerprint()).collect();
    let roster = Roster::new(["a", "b"]);
    let side = |me: usize, endpoint| {
        let transport = match name {
            "tcp" => Transport::Tcp,
            _ => Transport::Tls { identity: identities[me].clone(), keys: keys.clone() },
        };
        Meet::new(PartyId(me as u8), roster.clone(), endpoint, transport, [0; 32])
    };
    let (tell, told) = mpsc::channel();
    let listening = side(1, Endpoint::Listen("127.0.0.1:0".into())).watch(move |status| {
        if let Status::Listening { at, .. } = status {
            tell.send(at.to_string()).expect("main waits");
        }
    });
    let session = |me: u8, meet: Meet| -> Result<Session, Error> {
        let channels = meet.meet(0)?.control;
        let mut session = Session::new(PartyId(me), roster.clone(), channels, Seed::from_system());
        if let Some(kind) = kind {
            let outcome = upgrade(&mut session, &[PartyId(1 - me)], kind, true)?;
            assert_eq!(outcome, Outcome::Upgraded(kind.clone()));
        }
        Ok(session)
    };
    std::thread::scope(|scope| {
        let b = scope.spawn(|| session(1, listening));
        let a = session(0, side(0, Endpoint::Dial(told.recv().expect("it listens"))))?;
        Ok([a, b.join().expect("no panic")?])
    })
}

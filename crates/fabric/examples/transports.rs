//! Throughput and latency of every transport over loopback, two processes that met over TLS (or plain TCP).
//!
//! `make fabric && cargo run --release -p fabric --example transports -- [GIB [TRANSPORT]]` prints a line per
//! transport: GB/s in one direction, GB/s of both directions together, CPU seconds of both processes per GB
//! in one direction, and microseconds per round trip of 32 bytes. The plain transports are those of
//! `upgrade`: with a tag on every flush.

#[path = "../tests/common/mod.rs"]
mod common;

use base::Error;
use common::{P0, start};
use net::Session;
use std::time::{Duration, Instant};

const MESSAGE: usize = 1 << 20;
const TURNS: u32 = 20_000;
const TRANSPORTS: [&str; 5] = ["tcp", "tls", "shm", "fabric-tcp", "fabric-shm"];
const WINDOW: usize = base::limits::WINDOW_BYTES;

fn main() {
    if let Some(party) = common::party() {
        let count = party.task.parse().expect("a number of messages");
        match party.upgraded(Duration::from_secs(60)).and_then(|mut session| measure(&mut session, count)) {
            Ok(line) => print!("{line}"),
            Err(why) => print!("{why}"),
        }
        return;
    }
    let gib: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let only = std::env::args().nth(2);
    println!(
        "{:12} {:>12} {:>12} {:>12} {:>12}",
        "", "one way GB/s", "both GB/s", "CPU s per GB", "us per turn"
    );
    for transport in TRANSPORTS.into_iter().filter(|name| only.as_deref().is_none_or(|only| only == *name)) {
        let [(_, a), (_, b)] = start(&[], &(gib << 10).to_string(), transport, WINDOW, |_, _| ()).outputs();
        let numbers = |text: &str| -> Option<Vec<f64>> {
            text.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        match (numbers(&a).as_deref(), numbers(&b).as_deref()) {
            (Some([one, both, cpu, turn]), Some([_, _, cpu_too, _])) => {
                println!("{transport:12} {one:12.2} {both:12.2} {:12.2} {turn:12.1}", cpu + cpu_too);
            }
            _ => println!("{transport:12} not measured: {a} / {b}"),
        }
    }
}

/// One way from the first party to the other, both ways, and turns.
fn measure(session: &mut Session, count: usize) -> Result<String, Error> {
    let first = session.me() == P0;
    let gb = (count * MESSAGE) as f64 / 1e9;
    ready(session)?;
    let (start, cpu) = (Instant::now(), cpu_seconds());
    stream(session, count, first, !first)?;
    ready(session)?;
    let (one, cpu) = (gb / start.elapsed().as_secs_f64(), (cpu_seconds() - cpu) / gb);
    let start = Instant::now();
    stream(session, count, true, true)?;
    ready(session)?;
    let both = 2.0 * gb / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for _ in 0..TURNS {
        ready(session)?;
    }
    let turn = start.elapsed().as_secs_f64() * 1e6 / f64::from(TURNS);
    session.finish()?;
    Ok(format!("{one} {both} {cpu} {turn}"))
}

/// One turn of 32 bytes.
fn ready(session: &mut Session) -> Result<(), Error> {
    let (peer, mut message) = (session.me().other(), [0; 32]);
    if peer == P0 {
        session.link(peer).recv(&mut message)?;
        session.link(peer).send(&message)?;
        return session.link(peer).flush();
    }
    session.link(peer).send(&message)?;
    session.link(peer).recv(&mut message)
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
    session.link(peer).flush()
}

/// Processor time of this process so far, user and system.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

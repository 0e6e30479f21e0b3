//! Elements per second of what programs make of vectors besides products: bits of elements and back,
//! comparison, truncation. Four parties, threads of this process with channels in its memory: `host` without
//! a GPU, `host with a GPU` with vectors of the host that operations copy to a GPU where they are long enough
//! (`handed_over` says so; products of such vectors never are), and `stays` with vectors that stay there, in
//! turns. What is too short for the GPU is the CPU's, as with servers. Messages are not masked. One JSON
//! object per line.
//!
//! `cargo run --release -p accel-cuda --example cuda_operations --
//! [--gpus 1] [--log 20] [--repeat 3] [--bits 128] [--host]`
//!
//! With several GPUs each seat takes the next one. `--host` leaves the GPU out.

use accel::DeviceQueue;
use accel_cuda::Cuda;
use base::{Error, PartyId};
use net::Session;
use net::cluster::Cluster;
use ring4::{Number, Planes, SeatParty, Security, Settings, SharedVector, TagHash, VectorRing};
use serde_json::json;
use std::time::{Duration, Instant};

struct Options {
    gpus: usize,
    log: u32,
    repeat: usize,
    ring: VectorRing,
    host: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { gpus: 1, log: 20, repeat: 3, ring: VectorRing::Z128, host: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--host" {
            options.host = true;
            continue;
        }
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        let bad = |e: &dyn std::fmt::Display| format!("{name} {value}: {e}");
        match (name.as_str(), value.as_str()) {
            ("--gpus", _) => options.gpus = value.parse().map_err(|e| bad(&e))?,
            ("--log", _) => options.log = value.parse().map_err(|e| bad(&e))?,
            ("--repeat", _) => options.repeat = value.parse().map_err(|e| bad(&e))?,
            ("--bits", "64") => options.ring = VectorRing::Z64,
            ("--bits", "128") => options.ring = VectorRing::Z128,
            _ => return Err(format!("{name}: the options are --gpus, --log, --repeat, --bits, --host")),
        }
    }
    Ok(options)
}

const OPERATIONS: [&str; 6] = ["multiply", "bits", "less", "truncate", "truncate exactly", "word to ring"];

/// Where vectors lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Host,
    HostWithGpu,
    Stays,
}

impl On {
    fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::HostWithGpu => "host with a GPU",
            Self::Stays => "stays",
        }
    }
}

/// Seconds of every operation, and whether it was handed over.
type Taken = [(f64, bool); OPERATIONS.len()];

/// The time that an operation takes, of which everybody is at the beginning.
fn timed<T>(
    session: &mut Session,
    party: &mut SeatParty,
    work: impl FnOnce(&mut SeatParty, &mut Session) -> Result<T, Error>,
) -> Result<((f64, bool), T), Error> {
    let ready = party.random(VectorRing::Z64, 1);
    party.open(session, &ready)?;
    let (begin, before) = (Instant::now(), party.queue().work().handed_over);
    let done = work(party, session)?;
    Ok(((begin.elapsed().as_secs_f64(), party.queue().work().handed_over > before), done))
}

macro_rules! operations {
    ($party:expr, $session:expr, $ring:expr, $x:expr, $y:expr, $multiply:expr) => {{
        let (k, (party, session)) = ($ring.bits(), ($party, $session));
        let (multiply, _) = timed(session, party, |p, s| $multiply(p, s))?;
        let (bits, planes) = timed(session, party, |p, s| p.bits(s, $x, k / 2))?;
        let (less, _) = timed(session, party, |p, s| p.less(s, $x, $y, Number::signed(k / 2)))?;
        let (truncate, _) = timed(session, party, |p, s| p.truncate(s, $x, k / 4, 10))?;
        let (exactly, _) = timed(session, party, |p, s| p.truncate_exact(s, $x, 20))?;
        let word: Planes<_> = planes;
        let (back, _) = timed(session, party, |p, s| p.word_to_ring(s, $ring, &word))?;
        [multiply, bits, less, truncate, exactly, back]
    }};
}

/// One run of all operations at a seat.
fn seat(
    session: &mut Session,
    party: &mut SeatParty,
    (ring, len): (VectorRing, usize),
    on: On,
) -> Result<Taken, Error> {
    let (x, y): (SharedVector, SharedVector) = (party.random(ring, len), party.random(ring, len));
    if on != On::Stays {
        let multiply = |p: &mut SeatParty, s: &mut Session| p.multiply(s, &x, &y).map(drop);
        return Ok(operations!(party, session, ring, &x, &y, multiply));
    }
    let [x, y] = [party.keep(&x)?, party.keep(&y)?];
    let multiply = |p: &mut SeatParty, s: &mut Session| p.dot_on_device(s, &[&x], &[&y]).map(drop);
    Ok(operations!(party, session, ring, &x, &y, multiply))
}

fn run(options: &Options, settings: Settings, on: On) -> Result<Vec<Taken>, Error> {
    let shape = (options.ring, 1 << options.log);
    let all = Cluster::new(4, 1).deadline(Duration::from_secs(600)).run(|session| {
        let me = session.me().0 as usize;
        let queue = if on != On::Host {
            DeviceQueue::new(vec![Box::new(Cuda::new(me % options.gpus.max(1))?)]).with_cpu()
        } else {
            DeviceQueue::default()
        };
        let mut party = SeatParty::new(session, [0, 1, 2, 3].map(PartyId), settings, queue)?;
        // The first run makes memory.
        (0..=options.repeat).map(|_| seat(session, &mut party, shape, on)).collect::<Result<Vec<_>, _>>()
    });
    // The slowest seat of every run.
    let all: Vec<Vec<Taken>> = all.into_iter().collect::<Result<_, _>>()?;
    let slowest = |i: usize| {
        std::array::from_fn(|operation| {
            let seats = || all.iter().map(|seat| seat[i][operation]);
            (seats().map(|(seconds, _)| seconds).fold(0.0, f64::max), seats().any(|(_, handed)| handed))
        })
    };
    Ok((1..=options.repeat).map(slowest).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    for security in [Security::SemiHonest, Security::Malicious] {
        let settings = Settings { security, hash: TagHash::Keyed, masked: false };
        for on in
            [On::Host, On::HostWithGpu, On::Stays].into_iter().filter(|on| *on == On::Host || !options.host)
        {
            let runs = run(&options, settings, on)?;
            for (i, operation) in OPERATIONS.into_iter().enumerate() {
                let mut seconds: Vec<f64> = runs.iter().map(|run| run[i].0).collect();
                seconds.sort_by(f64::total_cmp);
                let median = seconds[seconds.len() / 2];
                println!(
                    "{}",
                    json!({
                        "operation": operation, "on": on.word(), "handed_over": runs[0][i].1,
                        "gpus": if on == On::Host { 0 } else { options.gpus },
                        "malicious": security == Security::Malicious, "bits": options.ring.bits(),
                        "elements": 1_u64 << options.log, "seconds": median,
                        "elements_per_s": ((1_u64 << options.log) as f64 / median).round(),
                    })
                );
            }
        }
    }
    Ok(())
}

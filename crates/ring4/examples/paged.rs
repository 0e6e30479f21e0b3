//! A matrix times a vector over Z_2^64, both shared among four processes, in memory that `osprey run` pages:
//! `paged SEAT [SIZE [ADDRESSES]]`.
//!
//! The matrix, SIZE x SIZE, is entered by seat 0 and lies in Osprey's region, 24 bytes an element. It is read
//! once, 64 rows at a time, by dot products. The vector is entered by seat 1. Both are pseudorandom from
//! public seeds; the result is opened and compared with the computation in the clear. ADDRESSES are those of
//! seats 0 to 2, with commas between: each waits at its own for the seats after it. Channels are plain TCP,
//! which is for made-up data; security is malicious.
//!
//! Prints one line of JSON. `docs/osprey/ring4.md` has figures.

use accel::{DeviceQueue, Seat, VectorRing};
use base::{Error, PartyId, Roster, Seed};
use net::{ChannelSecurity, Meet, OperatorTerms, Session};
use osprey::Oblivious;
use ring4::{SeatParty, Settings, ShareArray, SharedVector, elements, pack};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const RING: VectorRing = VectorRing::Z64;
/// Rows of a dot product: one round each.
const ROWS: usize = 64;
/// Columns of these rows that are entered at once.
const COLUMNS: usize = 512;
const ADDRESSES: &str = "127.0.0.1:7100,127.0.0.1:7101,127.0.0.1:7102";
const PARTIES: [PartyId; 4] = [PartyId(0), PartyId(1), PartyId(2), PartyId(3)];
const TERMS: OperatorTerms = OperatorTerms {
    document: "product",
    differ: "give all four the same SIZE",
    key: "nowhere: parties have no keys here",
    keys: "nowhere: parties have no keys here",
    identity: "nowhere: parties have no keys here",
    address: "ADDRESSES",
    allow: "nowhere: it takes connections from everywhere",
};

#[derive(Serialize)]
struct Outcome {
    seat: usize,
    size: usize,
    /// From the end of the inputs to the last dot product.
    seconds: f64,
    products_per_s: f64,
    region_bytes: usize,
    bytes_sent: u64,
    correct: bool,
}

/// The words of the command line.
struct Args {
    seat: Seat,
    size: usize,
    addresses: Vec<String>,
}

fn main() -> ExitCode {
    if let Err(reason) = osprey::init() {
        let _ = writeln!(std::io::stderr(), "error: {reason}");
        return ExitCode::from(osprey::EXIT_UNAVAILABLE as u8);
    }
    match args().and_then(|args| run(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn args() -> Result<Args, Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let seat = number(0).filter(|&seat| seat < 4);
    let size = if words.len() > 1 { number(1) } else { Some(1024) };
    let addresses: Vec<String> =
        words.get(2).map_or(ADDRESSES, String::as_str).split(',').map(str::to_owned).collect();
    match (seat, size.filter(|&size| size > 0 && size.is_multiple_of(ROWS))) {
        (Some(seat), Some(size)) if addresses.len() == 3 && words.len() < 4 => {
            Ok(Args { seat: Seat::new(seat), size, addresses })
        }
        _ => Err(Error::input(format!(
            "usage: paged SEAT [SIZE [ADDRESSES]]: a seat from 0 to 3, a multiple of {ROWS}, and three \
             addresses with commas between"
        ))),
    }
}

fn run(args: &Args) -> Result<bool, Error> {
    if osprey::speculating() {
        let mut session = Session::alone(Roster::new(["alone"]), Seed::from_system());
        multiply(&mut SeatParty::speculator(args.seat, Settings::default()), &mut session, args.size)?;
        return Ok(true);
    }
    let mut session = meet(args)?;
    let mut party =
        SeatParty::in_the_open(&mut session, PARTIES, Settings::default(), DeviceQueue::default())?;
    let (seconds, region_bytes, result) = multiply(&mut party, &mut session, args.size)?;
    session.finish()?;
    let outcome = Outcome {
        seat: args.seat.index(),
        size: args.size,
        seconds,
        products_per_s: (args.size * args.size) as f64 / seconds,
        region_bytes,
        bytes_sent: session.traffic().sent(""),
        correct: result == in_the_clear(args.size),
    };
    let line = serde_json::to_string(&outcome).expect("an outcome is plain");
    writeln!(std::io::stdout(), "{line}").map_err(|e| Error::input(format!("cannot print: {e}")))?;
    Ok(outcome.correct)
}

fn meet(args: &Args) -> Result<Session, Error> {
    let (me, seat) = (PARTIES[args.seat.index()], args.seat.index());
    let roster = Roster::new((0..4).map(|seat| format!("seat-{seat}")));
    let dial: BTreeMap<_, _> = PARTIES.into_iter().zip(args.addresses.clone()).take(seat).collect();
    let agreement = *Seed::from_bytes([0; 32]).fork(&format!("paged {}", args.size)).expose();
    let watch = |status: &net::Status| {
        let _ = writeln!(std::io::stderr(), "{status}");
    };
    let meet = Meet::all(
        me,
        roster.clone(),
        args.addresses.get(seat).cloned(),
        dial,
        ChannelSecurity::Tcp,
        agreement,
    );
    // The speculative passes of others may come first.
    let meeting = meet.terms(TERMS).patience(Duration::from_secs(600)).watch(watch).meet(0)?;
    Ok(Session::new(me, roster, meeting.control, Seed::from_system()))
}

/// The whole program, in every pass: seconds of the computation, bytes in the region, the result.
fn multiply(
    party: &mut SeatParty,
    session: &mut Session,
    size: usize,
) -> Result<(f64, usize, Vec<u128>), Error> {
    let mut matrix = ShareArray::untouched(&Oblivious, RING, size * size);
    let mut result = ShareArray::untouched(&Oblivious, RING, size);
    for first in (0..size).step_by(ROWS) {
        for column in (0..size).step_by(COLUMNS) {
            // Column by column: the entries of 64 rows are a term of the dot product.
            let len = ROWS * COLUMNS.min(size - column);
            let entries = || (0..len).map(|i| entry(first + i % ROWS, column + i / ROWS, size)).collect();
            matrix.store(&enter(party, session, 0, len, entries)?, first * size + column * ROWS)?;
        }
        // The owner is ahead by no more than these rows: what waits in its channels is memory too.
        party.confirm(session)?;
    }
    let vector = enter(party, session, 1, size, || (0..size).map(factor).collect())?;
    let factors = repeat(&vector);
    let start = Instant::now();
    osprey::mark("start");
    for first in (0..size).step_by(ROWS) {
        let rows = matrix.view(first * size..(first + ROWS) * size)?;
        let sums = party.dot_runs(session, ROWS, rows, &factors)?;
        result.store(&sums, first)?;
    }
    osprey::mark("stop");
    let seconds = start.elapsed().as_secs_f64();
    let opened = party.open(session, &result.load(0..size)?)?;
    Ok((seconds, matrix.bytes() + result.bytes(), elements(RING, size, &opened)))
}

fn enter(
    party: &mut SeatParty,
    session: &mut Session,
    owner: usize,
    len: usize,
    values: impl Fn() -> Vec<u128>,
) -> Result<SharedVector, Error> {
    let owner = Seat::new(owner);
    let value = if party.enters(owner) { pack(RING, &values()) } else { Vec::new() };
    party.input(session, owner, (RING, len), &value)
}

/// Every element as often as a term has elements: each seat does it with its summands.
fn repeat(vector: &SharedVector) -> SharedVector {
    let part = |part: &[kernels::Block]| {
        let often = elements(RING, vector.len(), part).into_iter().flat_map(|x| [x; ROWS]);
        pack(RING, &often.collect::<Vec<_>>())
    };
    SharedVector::from_parts(RING, ROWS * vector.len(), vector.parts().map(part))
}

fn entry(row: usize, column: usize, size: usize) -> u128 {
    mix((row * size + column) as u64).into()
}

fn factor(column: usize) -> u128 {
    mix(u64::MAX - column as u64).into()
}

fn in_the_clear(size: usize) -> Vec<u128> {
    let sum = |row| {
        let products =
            (0..size).map(|column| (entry(row, column, size) as u64).wrapping_mul(factor(column) as u64));
        products.fold(0, u64::wrapping_add)
    };
    (0..size).map(|row| sum(row).into()).collect()
}

/// A bijection of 64 bits that scatters neighbours (the finaliser of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

//! Time and quality of plans: `cargo run --release -p osprey --example plan [ENTRIES]`.
//!
//! For access patterns of a 1 GiB region in chunks of 64 KiB and a quarter of it resident: bytes of trace per
//! entry, seconds to write, check and read it, to send it through a ring and to plan it, and what windows of
//! several lengths move compared with the whole trace.

use osprey::plan::{Planner, PlannerAnswer};
use osprey::trace::{Header, RingWriter, TraceBlock, TraceEntry, TraceFeed, TraceSource, Writer, ring};
use std::error::Error;
use std::os::fd::IntoRawFd;
use std::time::Instant;

const CHUNKS: u64 = 16384;
const CAPACITY: usize = 4096;
const HEADER: Header = Header { chunk: 65536, region: 1 << 30, microset: 32, key: 0 };

fn main() -> Result<(), Box<dyn Error>> {
    let entries = std::env::args().nth(1).map_or(Ok(524_288), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace");
    println!(
        "{entries} entries, {CHUNKS} chunks, {CAPACITY} resident; reads of a window relative to the whole \
         trace"
    );
    println!(
        "pattern     B/entry  write s  check s  read s  ring s  plan s   reads  x4096  x8192 x16384 x32768"
    );
    for (name, pattern) in
        [("sequential", sequential as fn(u64) -> u64), ("merge", merge), ("random", random), ("hot", hot)]
    {
        let start = Instant::now();
        let mut writer = Writer::create(&path, &HEADER)?;
        for number in 0..entries / 32 {
            writer.block(&block(number, pattern))?;
        }
        writer.finish(&osprey::trace::Footer { entries: entries / 32 * 32, ..Default::default() })?;
        let write_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut source = TraceSource::open(&path, &HEADER)?;
        let check_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut blocks = Vec::new();
        while let TraceFeed::Block(block) = source.next()? {
            blocks.push(block);
        }
        let read_s = start.elapsed().as_secs_f64();
        let ring_s = through_ring(&blocks)?;
        let start = Instant::now();
        let best = reads(&blocks, 0)?;
        let plan_s = start.elapsed().as_secs_f64();
        let per_entry = writer.bytes() as f64 / entries as f64;
        print!(
            "{name:<11} {per_entry:>7.2} {write_s:>8.3} {check_s:>8.3} {read_s:>7.3} {ring_s:>7.3} \
             {plan_s:>7.3} {best:>7}"
        );
        for window in [4096, 8192, 16384, 32768] {
            print!(" {:>6.3}", reads(&blocks, window)? as f64 / best as f64);
        }
        println!();
    }
    Ok(())
}

/// Seconds from one thread to another.
fn through_ring(blocks: &[TraceBlock]) -> Result<f64, Box<dyn Error>> {
    let (writer, reader) = ring::pair()?;
    // Both ends are taken over by their numbers, as in processes of their own.
    let (number, mut source) = (writer.into_raw_fd(), TraceSource::ring(reader.into_raw_fd(), &HEADER)?);
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let sender = scope.spawn(move || -> Result<(), String> {
            let mut ring = RingWriter::open(number, &HEADER)?;
            blocks.iter().try_for_each(|block| ring.block(block)).map_err(|e| e.to_string())?;
            let entries = 32 * blocks.len() as u64;
            ring.finish(&osprey::trace::Footer { entries, ..Default::default() }).map_err(|e| e.to_string())
        });
        loop {
            match source.next()? {
                TraceFeed::End(_) => break,
                TraceFeed::Block(_) => {}
                TraceFeed::Wait => std::thread::yield_now(),
            }
        }
        Ok(sender.join().expect("the sender does not panic")?)
    })?;
    Ok(start.elapsed().as_secs_f64())
}

fn reads(blocks: &[TraceBlock], lookahead: u64) -> Result<u64, String> {
    let mut planner = Planner::new(CAPACITY, 32, lookahead)?;
    let (mut feed, mut reads) = (blocks.iter(), 0);
    loop {
        match planner.next() {
            PlannerAnswer::Step(step) => reads += u64::from(!step.fetch.fresh),
            PlannerAnswer::Done => return Ok(reads),
            PlannerAnswer::Wait => match feed.next() {
                Some(block) => planner.push(block.clone()),
                None => planner.finish(&Default::default()),
            },
        }
    }
}

fn block(number: u64, pattern: fn(u64) -> u64) -> TraceBlock {
    let entry = |i: u64| TraceEntry { chunk: pattern(number * 32 + i) as u32, written: true, fresh: false };
    TraceBlock { events: number * 40, hash: number, entries: (0..32).map(entry).collect() }
}

fn sequential(i: u64) -> u64 {
    i % CHUNKS
}

/// Compare i with i + length / 2, then the halves: two streams, depth by depth.
fn merge(i: u64) -> u64 {
    let (depth, at) = (i / CHUNKS % 12, i % CHUNKS);
    let half = CHUNKS >> (depth + 1);
    at / (2 * half) * 2 * half + (at / 2 % half) + at % 2 * half
}

fn mix(i: u64) -> u64 {
    let word = (i ^ i >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (word ^ word >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

fn random(i: u64) -> u64 {
    mix(i) % CHUNKS
}

/// Half of the touches go to a tenth of the chunks, the others stream.
fn hot(i: u64) -> u64 {
    if i.is_multiple_of(2) { mix(i) % (CHUNKS / 10) } else { i / 2 % CHUNKS }
}

//! What a speculative pass costs: time per page touched, memory, and bytes of trace.
//!
//! `cargo run --release -p osprey --example speculation -- [MiB [chunk KiB ...]]`: passes over that much
//! data, which touch each page and do no work on it: instructions that write, instructions that read and then
//! write, and stubs that say so.

use osprey::{EXIT_UNAVAILABLE, OspVec, PassMode, ProcessSettings, Stats, touch_write};
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

const CHILD: &str = "OSPREY_EXAMPLE_MIB";
const PAGE: usize = 4096;

fn main() -> ExitCode {
    if let Ok(mib) = std::env::var(CHILD) {
        return child(mib.parse().expect("the parent wrote a number"));
    }
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let (Ok(mib), Ok(chunks)) =
        (arguments.next().unwrap_or(Ok(1024)), arguments.collect::<Result<Vec<_>, _>>())
    else {
        eprintln!("usage: speculation [MiB [chunk KiB ...]]");
        return ExitCode::FAILURE;
    };
    println!("{mib} MiB: micro-seconds per page of 4 KiB");
    println!(
        "chunk KiB | write | read, write | stub | off: write | memory MiB | trace bytes per GiB touched"
    );
    for chunk in if chunks.is_empty() { vec![64, 256, 2048] } else { chunks } {
        if let Err(error) = measure(mib, chunk << 10) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// One row: a child that speculates, and one that does not.
fn measure(mib: usize, chunk: usize) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let settings = ProcessSettings {
        mode: PassMode::Speculate,
        chunk,
        microset: osprey::settings::microset(chunk),
        trace: Some(folder.path().join("trace")),
        report: Some(folder.path().join("report")),
        ..ProcessSettings::default()
    };
    let traced = run(mib, &settings)?;
    let off = run(mib, &ProcessSettings { mode: PassMode::Off, ..settings.clone() })?;
    let per_page = |stats: &Stats, pass: usize| {
        (stats.marks[pass + 1].at_s - stats.marks[pass].at_s) * 1e6 * PAGE as f64 / (mib << 20) as f64
    };
    println!(
        "{:9} | {:5.2} | {:11.2} | {:4.2} | {:10.2} | {:10} | {:.0}",
        chunk >> 10,
        per_page(&traced, 0),
        per_page(&traced, 1),
        per_page(&traced, 2),
        per_page(&off, 0),
        memory(&settings)? >> 20,
        traced.trace_bytes as f64 / (4.0 * mib as f64 / 1024.0),
    );
    Ok(())
}

/// The peak memory outside the region, as the footer of the trace states it, and what the region leads to: 16
/// MiB, or two blocks of chunks where these are more.
fn memory(settings: &ProcessSettings) -> Result<u64, String> {
    let path = settings.trace.as_ref().ok_or("a trace was asked for")?;
    let (header, source) = osprey::trace::TraceSource::inspect(path)?;
    let other = source.footer().ok_or("a trace has a footer")?.other_bytes;
    Ok(other + (2 * u64::from(header.microset) * header.chunk).max(16 << 20))
}

fn run(mib: usize, settings: &ProcessSettings) -> Result<Stats, String> {
    let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
    settings.apply_to(&mut command);
    let status = command.env(CHILD, mib.to_string()).status().map_err(|e| e.to_string())?;
    match status.code() {
        Some(0) => {}
        Some(EXIT_UNAVAILABLE) => return Err("this machine cannot speculate".into()),
        _ => return Err(format!("the child ended with {status}")),
    }
    let report = settings.report.as_ref().ok_or("a report was asked for")?;
    let text = std::fs::read(report).map_err(|e| e.to_string())?;
    serde_json::from_slice(&text).map_err(|e| e.to_string())
}

fn child(mib: usize) -> ExitCode {
    if let Err(error) = osprey::init() {
        eprintln!("{error}");
        return ExitCode::from(EXIT_UNAVAILABLE as u8);
    }
    let mut data = OspVec::<u8>::zeroed(mib << 20);
    osprey::mark("zeroed");
    let pages = || (0..mib << 20).step_by(PAGE);
    pages().for_each(|at| black_box(&mut data)[at] = 1);
    osprey::mark("written");
    pages().for_each(|at| black_box(&mut data)[at] += 1);
    osprey::mark("read and written");
    data.chunks_mut(PAGE).for_each(touch_write);
    osprey::mark("stubbed");
    objects();
    ExitCode::SUCCESS
}

/// What small objects cost: a million bits of one label each, allocated and released in order.
fn objects() {
    const COUNT: usize = 1 << 20;
    let begin = Instant::now();
    let all: Vec<_> = (0..COUNT).map(|_| osprey::alloc(16, 16)).collect();
    let middle = Instant::now();
    for at in all {
        #[expect(unsafe_code, reason = "allocated above, and used nowhere")]
        // SAFETY: as the reason says.
        unsafe {
            osprey::free(at, 16);
        }
    }
    let nanos = |seconds: f64| seconds * 1e9 / COUNT as f64;
    let (alloc, free) = (middle.duration_since(begin), middle.elapsed());
    if !osprey::speculating() {
        println!(
            "          ({:.0} ns per allocation of 16 bytes, {:.0} per release)",
            nanos(alloc.as_secs_f64()),
            nanos(free.as_secs_f64())
        );
    }
}

//! Traces that come while the program runs: a speculation that is late, stops for a while, or never comes.

use super::children::{HARM, progress as halfway, run_with};
use super::patterns::{Access, Kind, Program};
use super::{PagingEngine, PassMode, ProcessSettings, Stats, header, settings, step};
use crate::pager::{Pager, start};
use crate::progress::{ProgressEvent, TouchProgress};
use crate::region::PagedRegion;
use crate::trace::{Footer, RingWriter, TraceBlock, TraceSource, ring};
use std::os::fd::IntoRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub const HARM_LATE: &str = "late ring";
pub const HARM_PAUSE: &str = "pausing ring";

/// Accesses before the trace goes on, and those that the program makes before it waits for the trace.
const LATE: usize = 1200;
const CAUGHT_UP: usize = 1400;
/// Entries before a pause.
const PAUSE: usize = 320;

/// A program that overtakes its speculation is paged by what it touches until the trace has caught up, and by
/// the plan from then on.
#[test]
fn a_program_that_overtakes_its_trace_is_led_again() {
    let cases = [
        (PagingEngine::Move, HARM_LATE, Kind::Merge, true),
        (PagingEngine::Move, HARM_PAUSE, Kind::Random, true),
        (PagingEngine::Move, HARM_LATE, Kind::Random, false),
        (PagingEngine::Copy, HARM_PAUSE, Kind::Merge, true),
    ];
    for (engine, harm, kind, ticks) in cases {
        let program = Program { kind, ticks, ..Program::default() };
        let settings = ProcessSettings { mode: PassMode::Concurrent, ..settings(engine) };
        let outcome = run_with(&settings, &program, Some(&program), |command| {
            command.env(HARM, harm);
        });
        let Some(stats) = outcome.stats() else { return };
        let text = format!("{engine} {harm} {kind:?} ticks {ticks}: {stats:?}");
        assert!(stats.mode == "concurrent" && stats.warnings.is_empty(), "{text}");
    }
}

/// In the child: the program with a thread that sends its trace as late as `harm` says.
pub fn act(settings: &ProcessSettings, program: &Program, harm: &str) -> Result<Stats, String> {
    let region = Arc::new(PagedRegion::reserve(settings, true).expect("the region"));
    let progress = Arc::new(TouchProgress::new().expect("a bell"));
    let (theirs, ours) = ring::pair().expect("a pair");
    let [theirs, ours] = [theirs, ours].map(IntoRawFd::into_raw_fd);
    let (blocks, place) = (program.blocks(), Arc::new(AtomicUsize::new(0)));
    let entries: usize = blocks.iter().map(|block| block.entries.len()).sum();
    let speculation = {
        let (place, header) = (place.clone(), header(settings));
        let before = if harm == HARM_PAUSE { PAUSE } else { 0 };
        std::thread::spawn(move || {
            let mut writer = RingWriter::open(theirs, &header).expect("the ring");
            send(&mut writer, &blocks, before, &place);
            let footer = Footer { entries: entries as u64, peak_chunks: 0, other_bytes: 0 };
            writer.finish(&footer).expect("sent");
        })
    };
    let source = TraceSource::ring(ours, &header(settings))?;
    let pager = start(settings, region.clone(), progress.clone(), Some(source))?;
    play(program, &region, &progress, &place, (&pager, entries as u64));
    speculation.join().expect("the speculation");
    Ok(pager.stop())
}

fn send(writer: &mut RingWriter, blocks: &[TraceBlock], before: usize, place: &AtomicUsize) {
    let mut sent = 0;
    for block in blocks {
        while sent >= before && place.load(Ordering::Acquire) < LATE {
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.block(block).expect("sent");
        sent += block.entries.len();
    }
}

/// Gives the pager time to bring what is touched next, as a program does that computes. A key is not brought
/// before its touch, nor is what no plan leads to: then the touch waits.
fn wait_for(address: usize) {
    for _ in 0..5 {
        let mut there = 0u8;
        // SAFETY: the page lies in the region; the call writes one byte for it.
        let done = unsafe { libc::mincore(address as *mut _, 4096, &raw mut there) };
        if done != 0 || there & 1 == 1 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs the program; when the trace has had its time, counts how often the rest waits although it is slow.
fn play(
    program: &Program,
    region: &PagedRegion,
    progress: &TouchProgress,
    place: &AtomicUsize,
    (pager, entries): (&Pager, u64),
) {
    let mut versions = vec![0u64; program.chunks];
    progress.event(ProgressEvent::Alloc(program.alloc));
    let accesses = program.accesses();
    let mut before = 0;
    for (number, &access) in accesses.iter().enumerate() {
        place.store(number, Ordering::Release);
        if number >= CAUGHT_UP {
            while pager.stats().trace_entries < entries && pager.stats().mode == "concurrent" {
                std::thread::sleep(Duration::from_millis(1));
            }
            if let Access::Touch { chunk, .. } = access {
                wait_for(region.address(chunk));
            }
        }
        if number == CAUGHT_UP + 100 {
            before = pager.stats().stalls;
        }
        step(program, region, progress, &mut versions, access);
        halfway(number);
    }
    let (stalls, rest) = (pager.stats().stalls - before, (accesses.len() - CAUGHT_UP - 100) as u64);
    println!("stalls: {before} in the first {}, {stalls} in the other {rest}", CAUGHT_UP + 100);
    assert!(stalls < rest / 3, "the plan leads again: {stalls} of {rest} waited");
}

//! Programs that touch 64 MiB of region within 16 MiB of memory and compare every content they find with what
//! they left: with right traces, wrong ones and none. Each is a child process, because a process has one
//! region.
#![expect(unsafe_code, reason = "the program under test touches the region itself")]

mod children;
mod deadlocks;
mod failures;
mod patterns;
mod shortage;
mod streams;

use super::{EXIT_PAGING, start};
use crate::progress::{ProgressEvent, TouchProgress};
use crate::region::PagedRegion;
use crate::settings::{PagingEngine, PassMode, ProcessSettings};
use crate::stats::Stats;
use crate::trace::{Header, TraceSource};
use children::run;
use patterns::{Access, Kind, Program};
use std::sync::Arc;

const CHUNK: usize = 64 << 10;
const MICROSET: usize = 8;
const MEMORY: u64 = 16 << 20;

fn settings(engine: PagingEngine) -> ProcessSettings {
    ProcessSettings {
        mode: PassMode::Programmed,
        engine,
        memory: MEMORY,
        microset: MICROSET,
        region: 1 << 30,
        trace: Some("set by the parent".into()),
        key: 7,
        ..ProcessSettings::default()
    }
}

fn header(settings: &ProcessSettings) -> Header {
    Header {
        chunk: settings.chunk as u64,
        region: settings.region,
        microset: settings.microset as u32,
        key: settings.key,
    }
}

const ENGINES: [PagingEngine; 2] = [PagingEngine::Move, PagingEngine::Copy];

#[test]
fn programs_find_what_they_left_with_their_own_traces() {
    for engine in ENGINES {
        for kind in Kind::ALL {
            let keys = matches!(kind, Kind::Merge | Kind::Random);
            for ticks in [true, !keys].into_iter().take(1 + usize::from(keys)) {
                let program = Program { kind, ticks, ..Program::default() };
                let Some(stats) = run(&settings(engine), &program, Some(&program)).stats() else { return };
                let text = format!("{engine} {kind:?} ticks {ticks}: {stats:?}");
                assert!(stats.warnings.is_empty() && stats.mode == "programmed", "{text}");
                // What comes first leaves first would read every chunk of the cycles that are not the first.
                let cycles = (program.length - program.chunks) * CHUNK;
                assert!(kind != Kind::Sequential || stats.bytes_read < cycles as u64, "MIN: {text}");
                assert!(kind == Kind::Temporary || stats.bytes_read.min(stats.bytes_written) > 0, "{text}");
                assert!(ticks || stats.key_faults > 0, "without events, keys tell: {text}");
            }
        }
    }
}

#[test]
fn programs_find_what_they_left_without_a_trace() {
    for engine in ENGINES {
        for kind in Kind::ALL {
            let program = Program { kind, ..Program::default() };
            let Some(stats) = run(&settings(engine), &program, None).stats() else { return };
            let text = format!("{engine} {kind:?}: {stats:?}");
            assert!(stats.mode == "reactive" && stats.warnings.is_empty(), "{text}");
            assert!(kind == Kind::Temporary || stats.bytes_read.min(stats.bytes_written) > 0, "{text}");
        }
    }
}

#[test]
fn a_wrong_trace_is_slow_and_never_wrong() {
    for engine in ENGINES {
        for (kind, other) in [(Kind::Random, Kind::Sequential), (Kind::Merge, Kind::Random)] {
            for ticks in [true, false] {
                let program = Program { kind, ticks, ..Program::default() };
                let wrong = Program { kind: other, ticks, seed: 99, ..program };
                let Some(stats) = run(&settings(engine), &program, Some(&wrong)).stats() else { return };
                assert!(stats.mode == "reactive", "{engine} {kind:?} by {other:?}: {stats:?}");
                assert!(stats.warnings.iter().any(|w| w.contains("does not fit this run")), "{stats:?}");
            }
        }
    }
}

#[test]
fn another_allocation_hash_ends_the_plan() {
    let program = Program { kind: Kind::Merge, ticks: true, ..Program::default() };
    let wrong = Program { alloc: 99, ..program };
    let Some(stats) = run(&settings(PagingEngine::Move), &program, Some(&wrong)).stats() else { return };
    assert!(stats.warnings.iter().any(|w| w.contains("allocations differ")), "{stats:?}");
}

/// The trace ends in the middle of the run: the rest is paged by what is touched.
#[test]
fn a_trace_that_is_too_short_is_enough_for_its_part() {
    for engine in ENGINES {
        let program = Program { kind: Kind::Random, ..Program::default() };
        let short = Program { length: program.length / 2, ..program };
        let Some(stats) = run(&settings(engine), &program, Some(&short)).stats() else { return };
        assert!(stats.mode == "reactive" && stats.warnings.len() == 1, "{stats:?}");
    }
}

/// Random programs by random traces: right, too short, of other lengths and seeds, with lookahead or without.
#[test]
fn any_trace_gives_the_right_contents() {
    let mut seed = 20;
    for engine in ENGINES {
        for _ in 0..8 {
            let mut draw = |n: u64| {
                seed = patterns::mix(seed + 1);
                seed % n
            };
            let kind = Kind::ALL[draw(Kind::ALL.len() as u64) as usize];
            let length = 500 + draw(2500) as usize;
            let program = Program { kind, length, seed: draw(3), ticks: draw(2) == 0, ..Program::default() };
            let other = Kind::ALL[draw(Kind::ALL.len() as u64) as usize];
            let trace = Program { kind: other, seed: draw(3), length: 500 + draw(2500) as usize, ..program };
            let lookahead = [0, 1, 700][draw(3) as usize];
            let settings = ProcessSettings { lookahead, ..settings(engine) };
            if run(&settings, &program, Some(&trace)).stats().is_none() {
                return;
            }
        }
    }
}

/// Chunks that are only read after they were written once need no second write.
#[test]
fn clean_chunks_are_not_written_again() {
    let program = Program { kind: Kind::Reread, ..Program::default() };
    for engine in ENGINES {
        let Some(stats) = run(&settings(engine), &program, Some(&program)).stats() else { return };
        assert!(stats.dropped_clean > 300, "{stats:?}");
        assert!(stats.bytes_written < 96 << 20, "written once and a little: {stats:?}");
    }
}

/// Chunks in which nothing is allocated any more are neither written nor read.
#[test]
fn dead_chunks_are_dropped() {
    let program = Program { kind: Kind::Temporary, ..Program::default() };
    for engine in ENGINES {
        for trace in [Some(&program), None] {
            let Some(stats) = run(&settings(engine), &program, trace).stats() else { return };
            assert!(stats.dropped_dead > 150, "{stats:?}");
            assert!(stats.bytes_written < 32 << 20, "{stats:?}");
        }
    }
}

/// Large chunks: huge pages move whole, so that the region has some after all of it went out and came back.
#[test]
fn large_chunks_move_as_huge_pages() {
    let settings = ProcessSettings {
        chunk: 2 << 20,
        microset: 2,
        memory: 60 << 20,
        region: 1 << 30,
        ..settings(PagingEngine::Move)
    };
    let program =
        Program { kind: Kind::Sequential, chunks: 64, length: 200, chunk: 2 << 20, ..Program::default() };
    let Some(stats) = run(&settings, &program, Some(&program)).stats() else { return };
    assert!(stats.bytes_read > 0 && stats.warnings.is_empty(), "{stats:?}");
}

/// Chunks of a page: a batch has many of them, and all must find room among the transfers.
#[test]
fn small_chunks_are_written_too() {
    for trace in [true, false] {
        let settings = ProcessSettings { chunk: 4 << 10, microset: 32, ..settings(PagingEngine::Move) };
        let program = Program { chunks: 6000, length: 15_000, chunk: 4 << 10, ..Program::default() };
        let Some(stats) = run(&settings, &program, trace.then_some(&program)).stats() else { return };
        assert!(stats.bytes_read > 0 && stats.bytes_written > 0 && stats.warnings.is_empty(), "{stats:?}");
    }
}

/// What the children do: a program as told, then the counters on standard output.
#[test]
#[ignore = "the child process of the other tests"]
fn child() {
    children::act(|settings, program| {
        if let Ok(harm @ (streams::HARM_LATE | streams::HARM_PAUSE)) =
            std::env::var(children::HARM).as_deref()
        {
            return streams::act(&settings, program, harm);
        }
        let region = Arc::new(PagedRegion::reserve(&settings, true).expect("the region"));
        let progress = Arc::new(TouchProgress::new().expect("a bell"));
        let source =
            settings.trace.as_ref().map(|path| TraceSource::open(path, &header(&settings)).expect("a trace"));
        let pager = match start(&settings, region.clone(), progress.clone(), source) {
            Ok(pager) => pager,
            Err(text) => return Err(text),
        };
        play(program, &region, &progress);
        if program.chunk >= 2 << 20 && has_huge_pages() {
            let huge = huge_bytes(region.address(0), region.mapping().len());
            assert!(huge > 0, "the region has no huge page");
        }
        Ok(pager.stop())
    });
}

/// Whether the system gives huge pages to who asks for them.
fn has_huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|text| !text.contains("[never]"))
}

/// Bytes in huge pages among `len` from `start` on.
fn huge_bytes(start: usize, len: usize) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("/proc");
    let (mut within, mut kib) = (false, 0);
    for line in text.lines() {
        if let Some((from, _)) = line.split_once('-')
            && let Ok(from) = usize::from_str_radix(from, 16)
        {
            within = (start..start + len).contains(&from);
        }
        if let (true, Some(rest)) = (within, line.strip_prefix("AnonHugePages:")) {
            kib += rest.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        }
    }
    kib << 10
}

fn play(program: &Program, region: &PagedRegion, progress: &TouchProgress) {
    let mut versions = vec![0u64; program.chunks];
    progress.event(ProgressEvent::Alloc(program.alloc));
    let mut heap = Vec::new();
    let harm = std::env::var(children::HARM).unwrap_or_default();
    for (number, access) in program.accesses().into_iter().enumerate() {
        match harm.as_str() {
            failures::GROWING => failures::grow(&mut heap, number, progress),
            failures::ALTERED if number == failures::ALTERED_AT => failures::alter_file(),
            _ => {}
        }
        step(program, region, progress, &mut versions, access);
        children::progress(number);
    }
}

fn step(
    program: &Program,
    region: &PagedRegion,
    progress: &TouchProgress,
    versions: &mut [u64],
    access: Access,
) {
    match access {
        Access::Touch { chunk, write } => {
            region.set_live(chunk, true);
            touch(region.address(chunk), program.chunk, chunk, &mut versions[chunk as usize], write);
        }
        Access::Free { chunk } => {
            region.set_live(chunk, false);
            versions[chunk as usize] = 0;
        }
    }
    if program.ticks {
        progress.event(ProgressEvent::Tick);
    }
}

/// Compares words of every page with the version last written, and writes the next one.
fn touch(address: usize, bytes: usize, chunk: u32, version: &mut u64, write: bool) {
    // SAFETY: the chunk lies in the region, which this thread alone uses; 8 divides its address and length.
    let words = unsafe { std::slice::from_raw_parts_mut(address as *mut u64, bytes / 8) };
    for at in (0..words.len()).step_by(511) {
        let expected = |version| patterns::mix(u64::from(chunk) << 40 ^ version << 20 ^ at as u64);
        if *version > 0 {
            assert_eq!(words[at], expected(*version), "chunk {chunk}, word {at}, version {version}");
        }
        if write {
            words[at] = expected(*version + 1);
        }
    }
    *version += u64::from(write);
}

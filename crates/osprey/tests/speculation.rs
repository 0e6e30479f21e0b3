//! Traces of programs whose touches are known, made in child processes: a process has one region.
#![expect(unsafe_code, reason = "a child that forks, and one that touches a file that is too short")]

mod common;

use osprey::trace::{Footer, Header, TraceBlock, TraceEntry, TraceFeed, TraceSource, ring};
use osprey::{OspVec, PassMode, ProcessSettings, Stats};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::process::{Child, Output, Stdio};

const CHUNK: usize = 64 << 10;
const MICROSET: usize = 4;

/// A child's run.
struct Run {
    output: Output,
    blocks: Vec<TraceBlock>,
    footer: Footer,
    stats: Stats,
}

/// Runs a case of [`child`] as a speculative pass, and reads its trace. `None`: this machine cannot
/// speculate.
fn speculate(case: &str) -> Option<Run> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("trace");
    let settings = ProcessSettings {
        mode: PassMode::Speculate,
        microset: MICROSET,
        region: 1 << 30,
        trace: Some(path.clone()),
        report: Some(dir.path().join("report")),
        key: 42,
        ..ProcessSettings::default()
    };
    let output = common::child(case, &settings).output().expect("a child");
    if common::is_unavailable(&output) {
        return None;
    }
    assert!(path.exists(), "{case}: no trace: {}\n{}", output.status, common::said(&output));
    let header = Header { chunk: CHUNK as u64, region: 1 << 30, microset: MICROSET as u32, key: 42 };
    let (blocks, footer) = common::trace(&path, &header);
    Some(Run { output, blocks, footer, stats: common::report(&settings) })
}

/// What children do; the others start it.
#[test]
#[ignore = "the child process of the other tests"]
fn child() {
    match common::case().as_str() {
        "stream" => stream(),
        "write after read" => write_after_read(),
        "reuse" => reuse(),
        "random" => random(),
        "small objects" => small_objects(),
        "transfers" => transfers(),
        "threads" => threads(),
        "fork" => fork(),
        "another fault" => another_fault(),
        "laps" => laps(),
        other => panic!("no case {other}"),
    }
}

fn entry(chunk: u32, written: bool, fresh: bool) -> TraceEntry {
    TraceEntry { chunk, written, fresh }
}

fn entries(run: &Run) -> Vec<TraceEntry> {
    run.blocks.iter().flat_map(|block| block.entries.iter().copied()).collect()
}

/// Writes 20 chunks, then reads them.
fn stream() {
    let mut all = OspVec::<u64>::zeroed(20 * CHUNK / 8);
    all.iter_mut().for_each(|x| *x = 1);
    std::hint::black_box(all.iter().sum::<u64>());
}

#[test]
fn a_stream_is_an_entry_per_chunk_and_pass() {
    let Some(run) = speculate("stream") else { return };
    let pass = |written, fresh| (0..20).map(move |c| entry(c, written, fresh));
    let expected: Vec<_> = pass(true, true).chain(pass(true, false)).chain(pass(false, false)).collect();
    assert_eq!(entries(&run), expected);
    assert!(run.blocks.iter().all(|block| block.entries.len() == MICROSET));
    assert_eq!((run.footer.entries, run.footer.peak_chunks), (60, 20));
    assert!(run.footer.other_bytes > 0 && run.footer.other_bytes < 64 << 20, "{:?}", run.footer);
    assert_eq!((run.stats.trace_entries, run.stats.peak_chunks, run.stats.events), (60, 20, 2));
    assert!(run.stats.trace_bytes > 60 && run.stats.mode == "speculate" && run.stats.warnings.is_empty());
    // All touches happen after the allocation and before the release.
    assert!(run.blocks.iter().all(|block| block.events == 1));
}

fn write_after_read() {
    let mut all = OspVec::<u8>::zeroed(12 * CHUNK);
    for at in [0, 3 * CHUNK, 3 * CHUNK + 9000] {
        std::hint::black_box(all[at]);
    }
    all[3 * CHUNK + 60_000] = 1;
    std::hint::black_box(all[3 * CHUNK + 30_000]);
}

#[test]
fn a_write_after_a_read_is_found_in_the_same_entry() {
    let Some(run) = speculate("write after read") else { return };
    assert_eq!(entries(&run)[12..], [entry(0, false, false), entry(3, true, false)]);
}

/// Memory that is released and handed out again holds nothing, so that its next touch is fresh.
fn reuse() {
    let touch = |all: &mut OspVec<u8>| all[..].chunks_mut(CHUNK).for_each(|chunk| chunk[0] = 1);
    for _ in 0..2 {
        let mut all = OspVec::<u8>::with_capacity(12 * CHUNK);
        all.resize(12 * CHUNK, 0);
        touch(&mut all);
    }
}

#[test]
fn memory_handed_out_anew_is_fresh() {
    let Some(run) = speculate("reuse") else { return };
    let pass = |fresh: fn(u32) -> bool| (0..12).map(move |c| entry(c, true, fresh(c)));
    // Eight chunks are mapped when the first object is released and handed out again: what happens to them in
    // between cannot be seen, so they count as touched.
    let first_life = pass(|_| true).chain(pass(|_| false));
    let expected = first_life.chain(pass(|c| c < 4)).chain(pass(|_| false));
    assert_eq!(entries(&run), expected.collect::<Vec<_>>());
    assert_eq!(run.footer.peak_chunks, 12);
}

const RANDOM_CHUNKS: usize = 40;

/// A step of a program: what is touched, and how.
#[derive(Clone, Copy)]
struct PlanStep {
    at: usize,
    len: usize,
    write: bool,
    /// By a stub rather than by instructions.
    stub: bool,
}

/// Steps that look random, and are the same each time.
fn sequence() -> impl Iterator<Item = PlanStep> {
    let mut state = 1u64;
    (0..8000).map(move |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (state >> 33) as usize % (RANDOM_CHUNKS * CHUNK);
        // Three in four stay near the start, so that chunks are touched again while they are mapped.
        let at = if state >> 62 == 0 { at } else { at / 8 };
        let (write, stub) = (state >> 60 & 1 == 1, state >> 59 & 1 == 1);
        let len = if stub { (state >> 40) as usize % CHUNK } else { 1 };
        PlanStep { at, len: len.min(RANDOM_CHUNKS * CHUNK - at), write, stub }
    })
}

fn random() {
    let mut all = OspVec::<u8>::with_capacity(RANDOM_CHUNKS * CHUNK);
    all.resize(RANDOM_CHUNKS * CHUNK, 0);
    for PlanStep { at, len, write, stub } in sequence() {
        match (stub, write) {
            (true, true) => osprey::touch_write(&mut all[at..at + len]),
            (true, false) => osprey::touch_read(&all[at..at + len]),
            (false, true) => std::hint::black_box(&mut all)[at] = 1,
            (false, false) => _ = std::hint::black_box(all[at]),
        }
    }
}

/// The definition of a trace, over a list of touches.
fn model(touches: impl Iterator<Item = (u32, bool)>) -> Vec<TraceEntry> {
    let mut trace: Vec<TraceEntry> = Vec::new();
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (chunk, write) in touches {
        let block = (trace.len().max(1) - 1) / MICROSET;
        match last.get(&chunk) {
            Some(&at) if at / MICROSET + 1 >= block => trace[at].written |= write,
            seen => {
                let fresh = seen.is_none();
                last.insert(chunk, trace.len());
                trace.push(entry(chunk, write, fresh));
            }
        }
    }
    trace
}

#[test]
fn a_random_program_gives_the_trace_of_the_definition() {
    let Some(run) = speculate("random") else { return };
    let fill = (0..RANDOM_CHUNKS).map(|c| (c as u32, true));
    let chunks = |PlanStep { at, len, write, .. }: PlanStep| {
        let chunks = if len == 0 { 0..0 } else { at / CHUNK..(at + len - 1) / CHUNK + 1 };
        chunks.map(move |chunk| (chunk as u32, write))
    };
    assert_eq!(entries(&run), model(fill.chain(sequence().flat_map(chunks))));
}

/// One object of 16 bytes at a time, as libraries allocate bits.
fn small_objects() {
    let objects = 3 * CHUNK / 16;
    let all: Vec<OspVec<u128>> = (0..objects).map(|_| OspVec::zeroed(1)).collect();
    std::hint::black_box(all.iter().fold(0, |sum, x| sum ^ x[0]));
}

#[test]
fn small_objects_fill_chunks_in_order() {
    let Some(run) = speculate("small objects") else { return };
    assert_eq!(entries(&run), (0..3).map(|c| entry(c, true, true)).collect::<Vec<_>>());
    assert_eq!(run.stats.events, 2 * 3 * CHUNK as u64 / 16);
}

/// No peer, no file: transfers touch.
fn transfers() {
    struct Nobody;
    impl std::io::Write for Nobody {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("nobody listens")
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut all = OspVec::<u8>::with_capacity(8 * CHUNK);
    all.resize(8 * CHUNK, 0);
    let mut other = OspVec::<u8>::zeroed(12 * CHUNK);
    other[0] = 1;
    osprey::transfer::send(&mut Nobody, &all[..3 * CHUNK]).expect("a touch");
    osprey::transfer::recv(&mut std::io::empty(), &mut all[CHUNK..5 * CHUNK]).expect("a touch");
}

#[test]
fn transfers_touch_what_they_would() {
    let Some(run) = speculate("transfers") else { return };
    let expected = (0..5).map(|c| entry(c, c > 0, false));
    assert_eq!(entries(&run)[21..], expected.collect::<Vec<_>>());
    // Two allocations, two transfers, two releases.
    assert_eq!(run.stats.events, 6);
}

fn threads() {
    let first = OspVec::<u8>::zeroed(CHUNK);
    std::thread::spawn(|| drop(OspVec::<u8>::zeroed(CHUNK))).join().expect("a thread");
    drop(first);
}

#[test]
fn a_second_thread_is_warned_of() {
    let Some(run) = speculate("threads") else { return };
    assert!(run.stats.warnings.len() == 1 && run.stats.warnings[0].contains("more than one thread"));
    assert_eq!(run.footer.entries, 2);
}

/// A child of the child looks at the region.
fn fork() {
    let all = OspVec::<u8>::zeroed(CHUNK);
    // SAFETY: the child reads memory and leaves; it neither allocates nor locks.
    let status = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            std::hint::black_box((&raw const all[5]).read_volatile());
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        status
    };
    println!("child: {}", libc::WEXITSTATUS(status));
}

#[test]
fn a_forked_child_is_told_why_it_ends() {
    let Some(run) = speculate("fork") else { return };
    let text = String::from_utf8_lossy(&run.output.stdout).into_owned();
    assert!(text.contains(&format!("child: {}", osprey::EXIT_UNAVAILABLE)), "{text}");
    let text = common::said(&run.output);
    assert!(text.contains("a forked child used the content-oblivious region"), "{text}");
    assert_eq!(run.footer.entries, 1);
}

/// A mapped file that is shorter than its mapping.
fn another_fault() {
    let all = OspVec::<u8>::zeroed(CHUNK);
    std::hint::black_box(all[0]);
    osprey::finish();
    let file = tempfile::tempfile().expect("a file");
    // SAFETY: a fresh mapping of nothing; the read is meant to fail.
    unsafe {
        let at =
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        std::hint::black_box(at.cast::<u8>().read_volatile());
    }
}

#[test]
fn faults_elsewhere_stay_faults() {
    use std::os::unix::process::ExitStatusExt;
    let Some(run) = speculate("another fault") else { return };
    assert_eq!(run.output.status.signal(), Some(libc::SIGBUS));
    assert_eq!(run.footer.entries, 1);
}

const LAPS: usize = 2000;
const LAP: u32 = 64;
const SMALL: usize = 4096;

/// Round and round over more chunks than stay mapped: a long trace.
fn laps() {
    let mut all = OspVec::<u8>::with_capacity(LAP as usize * SMALL);
    all.resize(LAP as usize * SMALL, 0);
    for _ in 1..LAPS {
        std::hint::black_box(&mut all).chunks_mut(SMALL).for_each(|chunk| chunk[7] = 1);
    }
}

/// A child that speculates for a reader of its ring.
fn stream_laps() -> (Child, TraceSource) {
    let (writer, reader) = ring::pair().expect("sockets");
    let settings = ProcessSettings {
        mode: PassMode::Speculate,
        chunk: SMALL,
        microset: MICROSET,
        region: 1 << 30,
        ring: Some(writer.as_raw_fd()),
        ..ProcessSettings::default()
    };
    let mut command = common::child("laps", &settings);
    common::inherit(&mut command, &writer);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    let header = Header { chunk: SMALL as u64, region: 1 << 30, microset: MICROSET as u32, key: 0 };
    (child, TraceSource::ring(reader.into_raw_fd(), &header).expect("the reader's end"))
}

/// A program that is far ahead of its reader waits in its signal handler, and goes on.
#[test]
fn a_full_ring_holds_the_program_back() {
    let (child, mut source) = stream_laps();
    // Long enough to fill the ring on most machines; the trace is the same in any case.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut chunks = (0..LAPS).flat_map(|_| 0..LAP);
    let mut entries = 0;
    let footer = loop {
        match source.next() {
            Ok(TraceFeed::Block(block)) => {
                for got in block.entries {
                    let chunk = chunks.next().expect("no more than the program touches");
                    assert_eq!(got, entry(chunk, true, entries < u64::from(LAP)));
                    entries += 1;
                }
            }
            Ok(TraceFeed::Wait) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Ok(TraceFeed::End(footer)) => break footer,
            Err(error) => {
                let output = child.wait_with_output().expect("a child");
                assert!(
                    common::is_unavailable(&output),
                    "{error}: {}: {}",
                    output.status,
                    common::said(&output)
                );
                return;
            }
        }
    };
    assert_eq!((footer.entries, footer.peak_chunks), (entries, LAP.into()));
    assert_eq!(entries, LAPS as u64 * u64::from(LAP));
    assert!(child.wait_with_output().expect("a child").status.success());
}

#[test]
fn speculation_for_a_run_that_has_ended_ends() {
    let (child, mut source) = stream_laps();
    while matches!(source.next(), Ok(TraceFeed::Wait)) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(source);
    let output = child.wait_with_output().expect("a child");
    if !common::is_unavailable(&output) {
        let said = common::said(&output);
        assert!(
            output.status.success() && said.contains("the real run has ended"),
            "{}: {said}",
            output.status
        );
    }
}

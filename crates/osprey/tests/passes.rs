//! One program in every mode: the same result in a fraction of its memory, whatever its trace says.

mod common;

use osprey::trace::ring;
use osprey::{OspVec, PagingEngine, PassMode, ProcessSettings, Stats, transfer};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Stdio};

const CHUNK: usize = 64 << 10;
/// Elements of the program's vector: 24 MiB.
const LEN: usize = 3 << 20;
/// Enough for the process itself and about half of the vector.
const MEMORY: u64 = 24 << 20;

/// What children do; the others start it.
#[test]
#[ignore = "the child process of the other tests"]
fn child() {
    let case = common::case();
    osprey::mark("start");
    let mut data = OspVec::<u64>::untouched(LEN);
    if osprey::speculating() {
        osprey::touch_write(&mut data);
    } else {
        data.iter_mut().zip(0..).for_each(|(x, at)| *x = at);
    }
    // Another program than the one that was traced.
    let strides: [usize; 3] = if case == "other" { [5, 11, 1] } else { [1, 7, 3] };
    for stride in strides {
        pass(&mut data, stride);
    }
    exchange(&mut data);
    osprey::mark("stop");
    if osprey::speculating() {
        osprey::touch_read(&data);
    } else {
        println!("sum: {}", data.iter().fold(0u64, |sum, x| sum.rotate_left(1) ^ x));
    }
    if case == "finish" {
        osprey::finish();
    }
}

/// Mixes pieces of the vector by way of a copy that is released afterwards.
fn pass(data: &mut [u64], stride: usize) {
    const PIECE: usize = CHUNK / 8;
    let pieces = data.len() / PIECE;
    let copy = OspVec::copy_of(&data[..data.len() / 4]);
    for piece in 0..pieces {
        let at = piece * stride % pieces * PIECE;
        let (piece, other) = (&mut data[at..at + PIECE], &copy[at % copy.len()..][..PIECE]);
        if osprey::speculating() {
            osprey::touch_write(piece);
            osprey::touch_read(other);
            continue;
        }
        for (x, y) in piece.iter_mut().zip(other) {
            *x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ y;
        }
    }
}

/// Sends a part through a file and takes it back elsewhere.
fn exchange(data: &mut [u64]) {
    use std::io::Seek;
    let mut file = tempfile::tempfile().expect("a file");
    let quarter = data.len() / 4;
    transfer::write(&mut file, &data[..quarter]).expect("written");
    file.rewind().expect("a file");
    transfer::read(&mut file, &mut data[2 * quarter..3 * quarter]).expect("read");
}

fn settings(dir: &Path, mode: PassMode) -> ProcessSettings {
    let (engine, memory) = match mode {
        PassMode::Off | PassMode::Speculate => (PagingEngine::None, 0),
        _ => (PagingEngine::Move, MEMORY),
    };
    ProcessSettings {
        mode,
        engine,
        memory,
        microset: 4,
        region: 1 << 30,
        trace: Some(dir.join("trace")),
        spill: dir.to_owned(),
        key: 7,
        report: Some(dir.join(format!("report of {mode}"))),
        ..ProcessSettings::default()
    }
}

/// What a child printed and reported. `None`: this machine cannot do it.
struct Done {
    sum: Option<u64>,
    stats: Stats,
    said: String,
}

fn run(case: &str, settings: &ProcessSettings) -> Option<Done> {
    let child = common::child(case, settings).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    end(child.expect("a child"), settings)
}

fn end(child: Child, settings: &ProcessSettings) -> Option<Done> {
    let output = child.wait_with_output().expect("a child");
    if common::is_unavailable(&output) {
        return None;
    }
    let said = common::said(&output);
    assert!(output.status.success(), "{}: {said}", output.status);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let sum = text.lines().find_map(|line| line.split_once("sum: ")).map(|(_, sum)| sum.parse());
    Some(Done { sum: sum.map(|sum| sum.expect("a number")), stats: common::report(settings), said })
}

#[test]
fn a_trace_pages_the_program_that_it_is_of() {
    let dir = tempfile::tempdir().expect("a directory");
    let [off, traced, programmed] =
        [PassMode::Off, PassMode::Speculate, PassMode::Programmed].map(|m| settings(dir.path(), m));
    let off = run("same", &off).expect("needs nothing");
    assert!(off.sum.is_some() && off.stats.bytes_read == 0 && off.stats.mode == "off");
    let Some(traced) = run("same", &traced) else { return };
    assert_eq!(traced.sum, None);
    let Some(paged) = run("same", &programmed) else { return };
    assert_eq!(paged.sum, off.sum, "{}", paged.said);
    assert_eq!(paged.stats.mode, "programmed", "{}", paged.said);
    for stats in [&traced.stats, &paged.stats] {
        assert_eq!(stats.allocation_hash, off.stats.allocation_hash);
        assert_eq!((stats.events, stats.peak_chunks), (off.stats.events, off.stats.peak_chunks));
    }
    assert!(paged.stats.trace_entries == traced.stats.trace_entries && paged.stats.bytes_read > 0);
    assert!(paged.stats.frames < off.stats.peak_chunks);
    let marks: Vec<_> = paged.stats.marks.iter().map(|mark| mark.name.as_str()).collect();
    assert_eq!(marks, ["start", "stop"]);
    assert!(paged.stats.marks[1].bytes_written <= paged.stats.bytes_written);
    assert!(paged.stats.marks[1].at_s > paged.stats.marks[0].at_s);
}

/// The end of paging before the end of the process: what is released later is in no report.
#[test]
fn a_program_may_finish_by_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let off = run("finish", &settings(dir.path(), PassMode::Off)).expect("needs nothing");
    let Some(paged) = run("finish", &settings(dir.path(), PassMode::Reactive)) else { return };
    assert!(paged.sum == off.sum && paged.stats.events == off.stats.events, "{}", paged.said);
}

#[test]
fn without_a_trace_it_pages_by_touches() {
    let dir = tempfile::tempdir().expect("a directory");
    let off = run("same", &settings(dir.path(), PassMode::Off)).expect("needs nothing");
    let Some(paged) = run("same", &settings(dir.path(), PassMode::Reactive)) else { return };
    assert!(
        paged.sum == off.sum && paged.stats.mode == "reactive" && paged.stats.stalls > 0,
        "{}",
        paged.said
    );
}

#[test]
fn a_refused_trace_is_said_and_paged_without() {
    let dir = tempfile::tempdir().expect("a directory");
    let off = run("same", &settings(dir.path(), PassMode::Off)).expect("needs nothing");
    let Some(_) = run("same", &settings(dir.path(), PassMode::Speculate)) else { return };
    let another = ProcessSettings { key: 8, ..settings(dir.path(), PassMode::Programmed) };
    let Some(paged) = run("same", &another) else { return };
    assert!(paged.sum == off.sum && paged.stats.mode == "reactive", "{}", paged.said);
    let warned = paged.stats.warnings.iter().any(|text| text.contains("chunks are paged by what is touched"));
    assert!(warned && paged.said.contains("warning"), "{}", paged.said);
}

#[test]
fn a_trace_of_another_program_costs_time_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let off = run("other", &settings(dir.path(), PassMode::Off)).expect("needs nothing");
    let Some(_) = run("same", &settings(dir.path(), PassMode::Speculate)) else { return };
    let Some(paged) = run("other", &settings(dir.path(), PassMode::Programmed)) else { return };
    assert_eq!(paged.sum, off.sum, "{}", paged.said);
}

#[test]
fn speculation_runs_beside_the_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let off = run("same", &settings(dir.path(), PassMode::Off)).expect("needs nothing");
    let (writer, reader) = ring::pair().expect("sockets");
    let ends = [(PassMode::Speculate, &writer), (PassMode::Concurrent, &reader)];
    let [ahead, real] = ends.map(|(mode, end)| {
        let settings =
            ProcessSettings { trace: None, ring: Some(end.as_raw_fd()), ..settings(dir.path(), mode) };
        let mut command = common::child("same", &settings);
        common::inherit(&mut command, end);
        (command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child"), settings)
    });
    drop((writer, reader));
    let (paged, traced) = (end(real.0, &real.1), end(ahead.0, &ahead.1));
    let (Some(paged), Some(_)) = (paged, traced) else { return };
    // A program that overtakes its trace is paged by touches from then on, and says so.
    let overtaken = paged.stats.mode == "reactive" && paged.said.contains("does not fit this run");
    assert!(paged.stats.mode == "concurrent" || overtaken, "{} {}", paged.stats.mode, paged.said);
    assert!(paged.sum == off.sum && (overtaken || paged.stats.trace_entries > 0), "{}", paged.said);
}

#[test]
fn a_machine_without_the_means_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let small = ProcessSettings { memory: 1 << 20, ..settings(dir.path(), PassMode::Reactive) };
    let output = common::child("same", &small).output().expect("a child");
    let said = common::said(&output);
    assert_eq!(output.status.code(), Some(osprey::EXIT_UNAVAILABLE), "{said}");
    assert!(said.contains("osprey: ") && !small.report.expect("set above").exists(), "{said}");
}

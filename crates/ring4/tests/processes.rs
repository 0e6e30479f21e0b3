//! `examples/paged.rs` as it is run: four processes over TCP; a speculative pass of each, and a run by its
//! trace in a part of the memory.

use osprey::trace::TraceSource;
use osprey::{PagingEngine, PassMode, ProcessSettings, Stats};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The line of results.
#[derive(Debug, Deserialize)]
struct Outcome {
    seat: usize,
    size: usize,
    seconds: f64,
    correct: bool,
    region_bytes: u64,
}

/// The example, which `cargo test` builds beside the tests.
fn paged() -> PathBuf {
    let test = std::env::current_exe().expect("this program has a file");
    let target = test.ancestors().nth(2).expect("it is in target/PROFILE/deps");
    let paged = target.join("examples/paged");
    assert!(paged.exists(), "{} is not there: cargo build -p ring4 --example paged", paged.display());
    paged
}

/// A party as a child of this test, in an environment of its own.
fn start(words: [&str; 3], settings: &ProcessSettings) -> Child {
    let mut command = Command::new(paged());
    command.args(words);
    settings.apply_to(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All four to their end. Where one fails, the others, which may wait for it, are ended too.
fn four(size: &str, settings: &[ProcessSettings]) -> Vec<Output> {
    let addresses: Vec<String> = (0..3).map(|_| base::free_address().expect("a port")).collect();
    let addresses = addresses.join(",");
    let seats = ["0", "1", "2", "3"];
    let mut children: Vec<Child> = seats
        .iter()
        .zip(settings)
        .map(|(seat, settings)| start([seat, size, &addresses], settings))
        .collect();
    loop {
        let ended: Vec<_> = children.iter_mut().map(|child| child.try_wait().expect("a child")).collect();
        if ended.iter().all(Option::is_some) {
            break;
        }
        if ended.iter().flatten().any(|status| !status.success()) {
            // The failure of a meeting is told to the others: they get the time to say so.
            std::thread::sleep(Duration::from_secs(2));
            children.iter_mut().for_each(|child| child.kill().unwrap_or(()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    children.into_iter().map(|child| child.wait_with_output().expect("it has ended")).collect()
}

fn outcome(output: &Output) -> Outcome {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("one line of results")
}

#[test]
fn four_processes_are_right() {
    for size in [64, 320] {
        for (seat, output) in four(&size.to_string(), &vec![ProcessSettings::default(); 4]).iter().enumerate()
        {
            let outcome = outcome(output);
            assert_eq!((outcome.seat, outcome.size, outcome.correct), (seat, size, true));
            assert!(outcome.seconds > 0.0 && outcome.region_bytes as usize == 24 * size * (size + 1));
        }
    }
}

#[test]
fn mistakes_are_said_in_words() {
    for words in [["4", "64", "a,b,c"], ["0", "65", "a,b,c"], ["0", "64", "a,b"]] {
        let output = start(words, &ProcessSettings::default()).wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("usage: paged"), "{}", said(&output));
    }
}

/// Rows and columns: 54 MiB of region.
const SIZE: &str = "1536";
/// Memory for the region, the pager's own buffers (a half or so) among it.
const MEMORY: u64 = 14 << 20;

/// A trace of a seat's own, and the settings of a run by it in a quarter of the region's memory. `None` where
/// this machine cannot speculate.
fn speculate(seat: &str, folder: &Path) -> Option<ProcessSettings> {
    let file = |what: &str| folder.join(format!("{what}.{seat}"));
    let speculation = ProcessSettings {
        mode: PassMode::Speculate,
        trace: Some(file("trace")),
        ..ProcessSettings::default()
    };
    // Nobody listens there: a speculative pass has no peers.
    let nobody = "127.0.0.1:9,127.0.0.1:9,127.0.0.1:9";
    let output = start([seat, SIZE, nobody], &speculation).wait_with_output().expect("it ends");
    if output.status.code() == Some(osprey::EXIT_UNAVAILABLE) {
        eprintln!("skipped: {}", said(&output));
        return None;
    }
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    let (header, source) = TraceSource::inspect(&file("trace")).expect("a whole trace");
    let footer = source.footer().expect("a file has one");
    assert!(footer.entries >= 2 * footer.peak_chunks - 2, "the matrix is written, then read");
    assert!(footer.peak_chunks * header.chunk > 7 * MEMORY / 2, "the region is much larger than the memory");
    Some(ProcessSettings {
        mode: PassMode::Programmed,
        engine: PagingEngine::Move,
        memory: footer.other_bytes + MEMORY,
        spill: folder.to_path_buf(),
        report: Some(file("report")),
        ..speculation
    })
}

#[test]
fn a_trace_of_any_seat_is_that_of_its_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let traced: Option<Vec<ProcessSettings>> =
        ["0", "1", "2", "3"].iter().map(|seat| speculate(seat, folder.path())).collect();
    let Some(settings) = traced else { return };
    let outputs = four(SIZE, &settings);
    if let Some(output) = outputs.iter().find(|o| o.status.code() == Some(osprey::EXIT_UNAVAILABLE)) {
        eprintln!("skipped: {}", said(output));
        return;
    }
    for (output, settings) in outputs.iter().zip(&settings) {
        assert!(outcome(output).correct);
        let report = std::fs::read(settings.report.as_ref().expect("set above")).expect("a report");
        let stats: Stats = serde_json::from_slice(&report).expect("statistics");
        assert_eq!(stats.mode, "programmed", "{:?}", stats.warnings);
        let of_trace = |warning: &String| warning.contains("trace");
        assert!(!stats.warnings.iter().any(of_trace), "{:?}", stats.warnings);
        assert!(stats.bytes_written > 0 && stats.frames < stats.peak_chunks / 3, "{stats:?}");
    }
}

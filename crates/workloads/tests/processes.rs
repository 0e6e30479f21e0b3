//! The program as it is run: two processes over TCP; a speculative pass of each, and a run by its trace in a
//! part of the memory.

use osprey::trace::TraceSource;
use osprey::{PagingEngine, PassMode, ProcessSettings, Stats};
use serde::Deserialize;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The line of results.
#[derive(Debug, Deserialize)]
struct Outcome {
    workload: String,
    size: u64,
    seconds: f64,
    correct: Option<bool>,
    region_bytes: u64,
    and_gates: u64,
}

/// A party as a child of this test, in an environment of its own.
fn start(words: &str, party: usize, address: &str, settings: &ProcessSettings) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osprey-boolean"));
    command.args(words.split(' ')).args(["--party", ["0", "1"][party]]);
    command.args([["--listen", "--peer"][party], address]);
    settings.apply_to(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Both parties to their end.
fn both(words: &str, settings: &[ProcessSettings; 2]) -> [Output; 2] {
    let address = base::free_address().expect("a port");
    let children = [0, 1].map(|party| start(words, party, &address, &settings[party]));
    children.map(|child| child.wait_with_output().expect("it ends"))
}

fn outcome(output: &Output) -> Outcome {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("one line of results")
}

#[test]
fn two_processes_are_right_at_every_quick_size() {
    for workload in ["merge", "sort", "ljoin", "mvmul", "binfclayer"] {
        let words = format!("{workload} --size quick");
        for output in both(&words, &[ProcessSettings::default(), ProcessSettings::default()]) {
            let outcome = outcome(&output);
            assert_eq!((outcome.workload.as_str(), outcome.correct), (workload, Some(true)), "{outcome:?}");
            assert!(outcome.seconds > 0.0 && outcome.region_bytes > 0 && outcome.and_gates > 0);
        }
    }
    let unchecked = format!("ljoin --size {} --no-check", 30);
    for output in both(&unchecked, &[ProcessSettings::default(), ProcessSettings::default()]) {
        let outcome = outcome(&output);
        assert_eq!((outcome.size, outcome.correct), (30, None));
    }
}

#[test]
fn mistakes_are_said_in_words() {
    let address = base::free_address().expect("a port");
    for (words, expected) in [("merge --size 100", "a power of two"), ("mvmul --size 7", "a multiple of 64")]
    {
        let output =
            start(words, 0, &address, &ProcessSettings::default()).wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
    // Parties of different sizes.
    let one = start("ljoin --size 30", 0, &address, &ProcessSettings::default());
    let two = start("ljoin --size 31", 1, &address, &ProcessSettings::default());
    for child in [one, two] {
        let output = child.wait_with_output().expect("it ends");
        assert!(!output.status.success());
        assert!(said(&output).contains("same workload, --size"), "{}", said(&output));
    }
}

/// Memory for the region, the pager's own buffers (a half or so) among it.
const MEMORY: u64 = 16 << 20;

/// A trace of a party's own, and the settings of a run by it in a quarter or so of the region's memory.
/// `None` where this machine cannot speculate.
fn speculate(words: &str, party: usize, folder: &Path) -> Option<ProcessSettings> {
    let file = |what: &str| folder.join(format!("{what}.{party}"));
    let speculation = ProcessSettings {
        mode: PassMode::Speculate,
        trace: Some(file("trace")),
        ..ProcessSettings::default()
    };
    // Nobody listens there: a speculative pass has no peer.
    let output = start(words, party, "127.0.0.1:9", &speculation).wait_with_output().expect("it ends");
    if output.status.code() == Some(osprey::EXIT_UNAVAILABLE) {
        eprintln!("skipped: {}", said(&output));
        return None;
    }
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    let (header, source) = TraceSource::inspect(&file("trace")).expect("a whole trace");
    let footer = source.footer().expect("a file has one");
    assert!(footer.entries > footer.peak_chunks, "every chunk is touched, most of them again");
    assert!(
        footer.peak_chunks * header.chunk >= MEMORY * 3 / 2,
        "the region is much larger than the memory for it"
    );
    let memory = footer.other_bytes + MEMORY;
    Some(ProcessSettings {
        mode: PassMode::Programmed,
        engine: PagingEngine::Move,
        memory,
        spill: folder.to_path_buf(),
        report: Some(file("report")),
        ..speculation
    })
}

/// Runs that a machine may need until none of a pair was held up so long that its pager gave the plan up. A
/// trace that is not that of its run fits none of them.
const RUNS: usize = 3;

#[test]
fn a_trace_of_either_party_is_that_of_its_run() {
    for words in ["merge --size 8192", "ljoin --size 90", "mvmul --size 512", "binfclayer --size 1536"] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(settings) = [0, 1].map(|party| speculate(words, party, folder.path())).into_iter().collect()
        else {
            return;
        };
        let settings: Vec<ProcessSettings> = settings;
        let settings = <[ProcessSettings; 2]>::try_from(settings).expect("two parties");
        for run in 1.. {
            let Some(stats) = paged(words, &settings) else { return };
            if stats.iter().all(|stats| stats.mode == "programmed") {
                assert!(stats.iter().all(|s| s.bytes_written > 0 && s.frames < s.peak_chunks), "{stats:?}");
                break;
            }
            assert!(run < RUNS, "{words}: {:?}", stats.map(|stats| stats.warnings));
        }
    }
}

/// What both processes say of their paging; their results are right. `None` where this machine cannot page.
fn paged(words: &str, settings: &[ProcessSettings; 2]) -> Option<[Stats; 2]> {
    let outputs = both(words, settings);
    if let Some(output) = outputs.iter().find(|o| o.status.code() == Some(osprey::EXIT_UNAVAILABLE)) {
        eprintln!("skipped: {}", said(output));
        return None;
    }
    let correct = outputs.iter().all(|output| outcome(output).correct == Some(true));
    assert!(correct, "{words}");
    Some(settings.each_ref().map(|settings| {
        let report = std::fs::read(settings.report.as_ref().expect("it was set")).expect("a report");
        serde_json::from_slice(&report).expect("statistics")
    }))
}

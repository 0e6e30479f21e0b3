//! `osprey bench` as a user sees it: real runs of the real workloads, small ones, and what is left when it is
//! killed.

mod engines;
mod kills;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The keys that other programs rely on. Deliberately a list of its own: what the code renames must fail
/// here.
const CONTRACT: [&str; 13] = [
    "seconds",
    "ratio_to_unbounded",
    "bound_ratio",
    "major_faults",
    "minor_faults",
    "voluntary_switches",
    "user_s",
    "system_s",
    "blocked_s",
    "plan_s",
    "bytes_read",
    "bytes_written",
    "correct",
];

fn osprey() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_osprey"))
}

/// The workloads' program; a package of its own, which `make test` builds, too.
fn boolean() -> Option<PathBuf> {
    let path = osprey().with_file_name("osprey-boolean");
    if !path.exists() {
        eprintln!("skipped: there is no {}; cargo build --release -p workloads makes it", path.display());
    }
    path.exists().then_some(path)
}

/// One measurement at a time, as users are told: they would share cores, disk and swap.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has nothing that the next one could find half done.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bench(words: &str) -> Output {
    let _alone = alone();
    let words = words.split_whitespace();
    Command::new(osprey()).arg("bench").args(words).output().expect("osprey bench")
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// That a line has all that other programs rely on.
fn keeps_the_contract(row: &Value) {
    for key in CONTRACT {
        assert!(row[key].is_number() || key == "correct", "{key} in {row}");
    }
    assert_eq!(row["correct"], true, "{row}");
    assert!(row["seconds"].as_f64().expect("seconds") > 0.0, "{row}");
}

/// Without a word about engines: the paper's comparison, as far as the machine permits it.
#[test]
fn a_quick_run_is_correct_and_keeps_the_contract() {
    if boolean().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let output = bench(&format!("--workload merge --size quick --json --out {}", dir.path().display()));
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let rows = lines(&output);
    let engines: Vec<&str> = rows.iter().filter_map(|row| row["engine"].as_str()).collect();
    assert_eq!(engines, ["unbounded", "move", "hint", "swap"], "{said}");
    for row in &rows {
        assert_eq!(row["workload"], "merge");
        match row["skipped"].as_str() {
            Some(reason) => assert!(!reason.is_empty(), "{row}"),
            None => keeps_the_contract(row),
        }
    }
    if rows[1]["skipped"].is_null() {
        assert!(rows[1]["speculation_s"].as_f64() > Some(0.0) && rows[1]["trace_bytes"] != 0, "{}", rows[1]);
    }
    let pictures = ["faults.svg", "switches.svg", "time.svg", "breakdown.svg", "bytes.svg", "planning.svg"];
    for file in ["report.html"].iter().chain(&pictures) {
        assert!(dir.path().join(file).exists(), "{file}");
    }
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    for (words, reason) in [
        ("--workload merge --boolean /nowhere/osprey-boolean", "make boolean"),
        ("--workload rsum --ckks /nowhere/osprey-ckks", "make ckks"),
        ("--workload none", "there are: merge"),
    ] {
        let output = bench(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(said(&output).contains(reason), "{words}: {}", said(&output));
    }
    // A program that is no workload is found out before it is run as one.
    let output = bench("--workload merge --size 8 --boolean /bin/false");
    assert_eq!(output.status.code(), Some(2));
    let reason = "/bin/false --list --json does not list merge";
    assert!(said(&output).contains(reason), "{}", said(&output));
}

/// A workload that fails: which one it was, where, and its own words.
#[test]
fn what_a_program_said_is_in_the_error() {
    let dir = tempfile::tempdir().expect("folder");
    let program = dir.path().join("program");
    let line = r#"{"workload":"merge","default":8,"quick":4,"most":64,"counts":"records"}"#;
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --list ] && echo '{line}' && exit\necho 'no cards left' >&2\nexit 7\n"
    );
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).expect("allowed");
    let output = bench(&format!("--workload merge --size 8 --boolean {}", program.display()));
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("merge, unbounded, party") && said.contains("no cards left"), "{said}");
}

/// It is told by workload, engine and party, with what would do, and the other engines are tried all the
/// same.
#[test]
fn a_limit_that_is_too_small_costs_one_engine() {
    if boolean().is_none() {
        return;
    }
    let output = bench("--workload merge --size quick --engine move,copy --memory 4M --json");
    let said = said(&output);
    if said.contains("userfaultfd") {
        return eprintln!("skipped: {said}");
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    let rows = lines(&output);
    assert_eq!(rows.len(), 3, "{said}");
    for (row, engine) in rows[1..].iter().zip(["move", "copy"]) {
        let why = row["skipped"].as_str().expect("a reason");
        let what = format!("merge, {engine}, party");
        for part in [what.as_str(), "--memory 1", "a smaller --chunk"] {
            assert!(why.contains(part), "{part} in {why}");
        }
    }
    assert!(said.contains("asked for and not measured: merge, move; merge, copy"), "{said}");
}

/// A quarter of so little is less than paging needs: the runtime says what is, and the lines say that it was
/// given.
#[test]
fn a_part_that_is_too_small_becomes_the_least() {
    if boolean().is_none() {
        return;
    }
    let output = bench("--workload merge --size quick --engine move --memory 0.25 --json");
    let said = said(&output);
    if said.contains("move skipped") {
        return eprintln!("skipped: {said}");
    }
    assert!(output.status.success(), "{said}");
    let row = &lines(&output)[1];
    let warnings = row["warnings"].to_string();
    assert!(warnings.contains("because the runtime needs that much"), "{row}");
    assert!(row["memory_bytes"].as_u64() >= row["peak_bytes"].as_u64(), "{row}");
}

/// A file system in memory holds no swap, whoever asks.
#[test]
fn an_engine_that_was_named_and_not_measured_is_a_failure() {
    if boolean().is_none() || !Path::new("/dev/shm").is_dir() {
        return;
    }
    let output = bench("--workload merge --size quick --engine swap --spill /dev/shm --json");
    let said = said(&output);
    if !said.contains("swap skipped") {
        return eprintln!("skipped: /dev/shm holds swap: {said}");
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    let rows = lines(&output);
    assert_eq!(rows[0]["engine"], "unbounded", "what could be measured is there: {said}");
    assert!(rows[1]["skipped"].as_str().is_some_and(|why| why.contains("/dev/shm")), "{said}");
    assert!(said.contains("asked for and not measured: merge, swap"), "{said}");
}

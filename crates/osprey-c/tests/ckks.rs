//! Microsoft SEAL under Osprey (`ckks/`, `seal_osprey.hpp`): built by the same CMake files as by `make ckks`,
//! all five workloads at their quick sizes, unbounded, speculative and paged by the trace; and every
//! operation of SEAL by a program that finds an installed Osprey and SEAL with CMake. Skipped with a reason
//! where SEAL cannot be built or the system lacks what a mode needs.

use osprey::trace::{TraceEntry, TraceFeed, TraceSource};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Exit code of a process whose mode this machine cannot give.
const UNAVAILABLE: i32 = 69;
/// Small chunks and blocks, so that the quick sizes have many of them.
const CHUNK: u64 = 512 << 10;
const MICROSET: &str = "8";

/// What the tests run.
struct Built {
    /// `osprey-ckks`.
    workloads: PathBuf,
    /// `operations` of `cpp/`.
    operations: PathBuf,
}

/// What is built, or why it cannot be built here. A build that starts and fails is a failed test.
fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Result<Built, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(built) => Some(built),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn build() -> Result<Built, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ckks = here.join("../../ckks");
    // A test executable lies in TARGET/PROFILE/deps.
    let exe = std::env::current_exe().expect("this executable");
    let libraries = exe.parent().expect("its folder");
    let target = exe.ancestors().nth(3).expect("a target folder");
    for tool in ["cmake", "c++"] {
        Command::new(tool).arg("--version").output().map_err(|_| format!("there is no {tool} here"))?;
    }
    let fetched = Command::new(env!("CARGO"))
        .args(["fetch", "--locked", "--manifest-path"])
        .arg(ckks.join("carrier/Cargo.toml"))
        .output();
    if !fetched.expect("cargo runs").status.success() {
        return Err("the package that carries SEAL's sources cannot be fetched".to_owned());
    }
    // With the library that cargo built for this test: no cargo inside of cargo.
    let folder = target.join("ckks-test");
    let [binaries, prefix, examples] = ["bin", "prefix", "examples"].map(|name| folder.join(name));
    cmake(&ckks, &folder, &[("OSPREY_LIBRARY", &libraries.join("libosprey_c.a")), ("OSPREY_BIN", &binaries)]);
    succeed(Command::new(here.join("install.sh")).arg(libraries).arg(&prefix));
    let seal = folder.join("seal/cmake");
    cmake(&here.join("cpp"), &examples, &[("CMAKE_PREFIX_PATH", &prefix), ("SEAL_DIR", &seal)]);
    Ok(Built { workloads: binaries.join("osprey-ckks"), operations: examples.join("operations") })
}

/// Configures and builds what is in `source`.
fn cmake(source: &Path, folder: &Path, options: &[(&str, &Path)]) {
    let options = options.iter().map(|(name, value)| format!("-D{name}={}", value.display()));
    succeed(Command::new("cmake").arg("-S").arg(source).arg("-B").arg(folder).args(options));
    succeed(Command::new("cmake").arg("--build").arg(folder).arg("--parallel"));
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", said(&output));
    output
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Lines of JSON that a run printed.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// Names and quick sizes.
fn workloads(program: &Path) -> Vec<(String, u64)> {
    let listed = Command::new(program).args(["--list", "--json"]).output().expect("osprey-ckks runs");
    let row = |v: &Value| {
        (v["workload"].as_str().expect("a name").to_owned(), v["quick"].as_u64().expect("a size"))
    };
    lines(&listed).iter().map(row).collect()
}

/// Runs a workload with variables of the environment; its output and the runtime's report.
fn run(program: &Path, workload: &(String, u64), folder: &Path, env: &[(&str, &str)]) -> (Output, Value) {
    let small = [("OSPREY_CHUNK", &*CHUNK.to_string()), ("OSPREY_MICROSET", MICROSET)];
    let arguments = [&*workload.0, "--size", &workload.1.to_string()];
    reported(program, &arguments, folder, &[&small[..], env].concat())
}

/// Runs a program with variables of the environment; its output and the runtime's report.
fn reported(program: &Path, arguments: &[&str], folder: &Path, env: &[(&str, &str)]) -> (Output, Value) {
    let report = folder.join("report.json");
    let output = Command::new(program)
        .args(arguments)
        .env("OSPREY_SPILL", folder)
        .env("OSPREY_REPORT", &report)
        .envs(env.iter().copied())
        .output()
        .expect("the program runs");
    let report = std::fs::read(&report).ok().and_then(|text| serde_json::from_slice(&text).ok());
    (output, report.unwrap_or_default())
}

/// That a run printed one line with a correct result.
fn assert_correct(output: &Output, workload: &(String, u64)) {
    assert!(output.status.success(), "{}: {}", workload.0, said(output));
    let [line] = &lines(output)[..] else { panic!("{}: one line, not {}", workload.0, said(output)) };
    assert_eq!((line["workload"].as_str(), line["size"].as_u64()), (Some(&*workload.0), Some(workload.1)));
    assert_eq!(line["correct"], Value::Bool(true), "{line}");
}

/// Every pass allocates and counts alike, the speculative one prints nothing and traces every chunk, and the
/// real run by that trace in half of the memory is correct.
#[test]
fn workloads_are_correct_unbounded_and_paged() {
    let Some(Built { workloads: program, .. }) = built() else { return };
    let workloads = workloads(program);
    assert_eq!(workloads.len(), 5);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let trace = trace.to_str().expect("text");
    let mut read = 0;
    for workload in &workloads {
        let (output, unbounded) = run(program, workload, folder.path(), &[]);
        assert_correct(&output, workload);

        let speculate = [("OSPREY_MODE", "speculate"), ("OSPREY_TRACE", trace)];
        let (output, speculative) = run(program, workload, folder.path(), &speculate);
        if output.status.code() == Some(UNAVAILABLE) {
            eprintln!("skipped: {}", said(&output));
            return;
        }
        assert!(output.status.success() && output.stdout.is_empty(), "{}: {}", workload.0, said(&output));
        for same in ["events", "allocation_hash", "peak_chunks"] {
            assert_eq!(speculative[same], unbounded[same], "{}: {same}", workload.0);
        }
        assert!(speculative["trace_entries"].as_u64() >= speculative["peak_chunks"].as_u64());

        let (header, source) = TraceSource::inspect(Path::new(trace)).expect("a whole trace");
        let footer = source.footer().expect("a file has one");
        // Half of the chunks, and what a process may grow by.
        let memory = (footer.other_bytes + footer.peak_chunks * header.chunk / 2 + (6 << 20)).to_string();
        let paged = [("OSPREY_MODE", "programmed"), ("OSPREY_ENGINE", "move"), ("OSPREY_MEMORY", &*memory)];
        let (output, paged) =
            run(program, workload, folder.path(), &[&paged[..], &[("OSPREY_TRACE", trace)]].concat());
        if output.status.code() == Some(UNAVAILABLE) {
            eprintln!("skipped: {}", said(&output));
            return;
        }
        assert_correct(&output, workload);
        assert_eq!(
            (paged["mode"].as_str(), paged["warnings"].as_array()),
            (Some("programmed"), Some(&vec![]))
        );
        assert_eq!(paged["allocation_hash"], unbounded["allocation_hash"], "{}", workload.0);
        assert!(paged["frames"].as_u64() < unbounded["peak_chunks"].as_u64(), "{paged}");
        assert!(paged["bytes_written"].as_u64() > Some(0), "{paged}");
        read += paged["bytes_read"].as_u64().expect("a number");
    }
    // What one of them writes may be dead before it is needed again; not so of all.
    assert!(read > 0, "nothing came back from disk");
}

/// What the command refuses, with a text that says what to do.
#[test]
fn wrong_use_is_explained() {
    let Some(Built { workloads: program, .. }) = built() else { return };
    for (arguments, expected) in [
        (&[][..], "name a workload"),
        (&["sort"], "there is no workload sort; osprey-ckks --list shows them"),
        (&["rsum", "--size", "0"], "--size 0: rsum takes 1 to 1048576 ciphertexts"),
        (&["rsum", "--size", "9x"], "--size 9x: rsum takes 1 to"),
        (&["rsum", "--size"], "unknown or incomplete option --size"),
        (&["rsum", "rstats"], "one workload at a time, not also rstats"),
        (&["rsum", "--json"], "--json goes with --list"),
    ] {
        let output = Command::new(program).args(arguments).output().expect("osprey-ckks runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
    }
    let unchecked = Command::new(program).args(["rsum", "--size", "1", "--no-check"]).output().expect("runs");
    assert_eq!(lines(&unchecked)[0]["correct"], Value::Null);
}

/// Chunks and blocks for `operations`: a row of a polynomial, and more chunks than an operation touches.
const ROWS: [(&str, &str); 2] = [("OSPREY_CHUNK", "32768"), ("OSPREY_MICROSET", "32")];
const SCHEMES: [&str; 3] = ["ckks", "bfv", "bgv"];

/// Every operation on ciphertexts under every scheme: right alone, alike in the speculative pass, and right
/// by its trace in a part of its memory.
#[test]
fn every_operation_is_paged_by_its_trace() {
    let Some(Built { operations, .. }) = built() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let trace = trace.to_str().expect("text");
    for scheme in SCHEMES {
        let run =
            |env: &[(&str, &str)]| reported(operations, &[scheme], folder.path(), &[&ROWS[..], env].concat());
        let (output, unbounded) = run(&[]);
        assert!(output.status.success(), "{scheme}: {}", said(&output));
        let results = output.stdout;

        let (output, speculative) = run(&[("OSPREY_MODE", "speculate"), ("OSPREY_TRACE", trace)]);
        if output.status.code() == Some(UNAVAILABLE) {
            eprintln!("skipped: {}", said(&output));
            return;
        }
        assert!(output.status.success() && output.stdout.is_empty(), "{scheme}: {}", said(&output));
        for same in ["events", "allocation_hash", "peak_chunks"] {
            assert_eq!(speculative[same], unbounded[same], "{scheme}: {same}");
        }

        let (header, source) = TraceSource::inspect(Path::new(trace)).expect("a whole trace");
        let footer = source.footer().expect("a file has one");
        let memory = (footer.other_bytes + footer.peak_chunks * header.chunk / 2 + (6 << 20)).to_string();
        let paged = [("OSPREY_MODE", "programmed"), ("OSPREY_ENGINE", "move"), ("OSPREY_MEMORY", &*memory)];
        let (output, paged) = run(&[&paged[..], &[("OSPREY_TRACE", trace)]].concat());
        if output.status.code() == Some(UNAVAILABLE) {
            eprintln!("skipped: {}", said(&output));
            return;
        }
        assert!(output.status.success(), "{scheme}: {}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&results), "{scheme}");
        assert_eq!(paged["warnings"].as_array(), Some(&vec![]), "{scheme}");
        assert_eq!(paged["allocation_hash"], unbounded["allocation_hash"], "{scheme}");
        assert!(paged["frames"].as_u64() < unbounded["peak_chunks"].as_u64(), "{paged}");
        assert!(paged["bytes_read"].as_u64() > Some(0), "{paged}");
    }
}

/// The stubs touch what SEAL touches, operation by operation: chunks, whether they are written, and
/// allocations.
#[test]
fn stubs_touch_what_seal_touches() {
    let Some(Built { operations, .. }) = built() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for scheme in SCHEMES {
        let traced = |how: &str| {
            let trace = folder.path().join(how);
            let mode = [("OSPREY_MODE", "speculate"), ("OSPREY_TRACE", trace.to_str().expect("text"))];
            let (output, report) =
                reported(operations, &[scheme, how], folder.path(), &[&ROWS[..], &mode].concat());
            (output.status.code() != Some(UNAVAILABLE)).then(|| {
                assert!(output.status.success(), "{scheme} {how}: {}", said(&output));
                (said(&output), report["allocation_hash"].clone(), steps(&trace))
            })
        };
        let (Some((_, allocated, stubbed)), Some((checks, really, real))) = (traced("apart"), traced("real"))
        else {
            eprintln!("skipped: this machine allows no speculative pass");
            return;
        };
        // SEAL computed on the memory of the speculative pass, and computed right: its touches are real ones.
        assert!(checks.lines().count() > 70, "{checks}");
        assert_eq!(allocated, really, "{scheme}: allocations");
        // At least one group of touches for each of its results.
        assert!(real.len() > checks.lines().count(), "{scheme}: {} groups", real.len());
        assert_eq!(stubbed.len(), real.len(), "{scheme}");
        for (step, (stubbed, real)) in stubbed.iter().zip(&real).enumerate() {
            let all = real.iter().all(|touch| stubbed.get(touch.0) == Some(touch.1));
            // A sum under BGV may rewrite its longer operand; the stub says that it does.
            let exact = scheme == "bgv" || stubbed.len() == real.len();
            assert!(all && exact, "{scheme}, step {step}: stubbed {stubbed:?}, real {real:?}");
        }
    }
}

/// What was touched between the stretches that `operations` puts between operations: chunk, and whether it
/// was written and was fresh.
fn steps(trace: &Path) -> Vec<BTreeMap<u32, (bool, bool)>> {
    let (_, mut source) = TraceSource::inspect(trace).expect("a whole trace");
    let mut entries: Vec<TraceEntry> = Vec::new();
    while let TraceFeed::Block(block) = source.next().expect("a sound trace") {
        entries.extend(block.entries);
    }
    // Both of 6 MiB, at the start of the trace, but for chunks at their ends that they may share.
    let apart: BTreeSet<u32> = entries[..380].iter().map(|entry| entry.chunk).collect();
    assert_eq!(apart.len(), 380);
    let mut steps = vec![BTreeMap::new()];
    for entry in &entries[380..] {
        let last = steps.last_mut().expect("one at least");
        if !apart.contains(&entry.chunk) {
            last.insert(entry.chunk, (entry.written, entry.fresh));
        } else if !last.is_empty() {
            steps.push(BTreeMap::new());
        }
    }
    steps
}

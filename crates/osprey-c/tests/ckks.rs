//! Microsoft SEAL under Osprey (`ckks/`): built by the same CMake files as by `make ckks`, all five workloads at their
//! quick sizes, unbounded, speculative and paged by the trace. Skipped with a reason where SEAL cannot be built or the
//! system lacks what a mode needs.

use osprey::trace::Source;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Exit code of a process whose mode this machine cannot give.
const UNAVAILABLE: i32 = 69;
/// Small chunks and blocks, so that the quick sizes have many of them.
const CHUNK: u64 = 512 << 10;
const MICROSET: &str = "8";

/// Where `osprey-ckks` is, or why it cannot be built here. A build that starts and fails is a failed test.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(path) => Some(path),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn build() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // A test executable lies in TARGET/PROFILE/deps.
    let exe = std::env::current_exe().expect("this executable");
    let libraries = exe.parent().expect("its folder");
    let target = exe.ancestors().nth(3).expect("a target folder");
    for tool in ["cmake", "c++"] {
        Command::new(tool).arg("--version").output().map_err(|_| format!("there is no {tool} here"))?;
    }
    let carrier = root.join("ckks/carrier/Cargo.toml");
    let fetched =
        Command::new(env!("CARGO")).args(["fetch", "--locked", "--manifest-path"]).arg(carrier).output();
    if !fetched.expect("cargo runs").status.success() {
        return Err("the package that carries SEAL's sources cannot be fetched".to_owned());
    }
    // With the library that cargo built for this test: no cargo inside of cargo.
    let (folder, binaries) = (target.join("ckks-test"), target.join("ckks-test/bin"));
    let option = |name: &str, value: &Path| format!("-D{name}={}", value.display());
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root.join("ckks")).arg("-B").arg(&folder);
    configure.arg(option("OSPREY_LIBRARY", &libraries.join("libosprey_c.a")));
    configure.arg(option("OSPREY_BIN", &binaries));
    let mut build = Command::new("cmake");
    build.arg("--build").arg(&folder).arg("--parallel");
    for mut step in [configure, build] {
        let done = step.output().expect("cmake runs");
        assert!(done.status.success(), "{step:?} failed:\n{}", said(&done));
    }
    Ok(binaries.join("osprey-ckks"))
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
    let report = folder.join("report.json");
    let output = Command::new(program)
        .args([&workload.0, "--size", &workload.1.to_string()])
        .env("OSPREY_CHUNK", CHUNK.to_string())
        .env("OSPREY_MICROSET", MICROSET)
        .env("OSPREY_SPILL", folder)
        .env("OSPREY_REPORT", &report)
        .envs(env.iter().copied())
        .output()
        .expect("osprey-ckks runs");
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

/// Every pass allocates and counts alike, the speculative one prints nothing and traces every chunk, and the real run
/// by that trace in half of the memory is correct.
#[test]
fn workloads_are_correct_unbounded_and_paged() {
    let Some(program) = program() else { return };
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

        let (header, source) = Source::inspect(Path::new(trace)).expect("a whole trace");
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
    let Some(program) = program() else { return };
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

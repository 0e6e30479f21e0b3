//! Programs that allocate much at once beside the region, at their limit.

use crate::support::{Run, can_isolate, can_trace, groups_of, run};

const LIMIT: u64 = 48 << 20;

/// `subject` with more region than the limit, that fills `heap` MiB of ordinary memory in its middle.
fn grown(heap: &str, flags: &[&str]) -> Run {
    run(&[&["--memory", "48M", "--json"], flags].concat(), &["64", "grow", heap])
}

/// The version of the memory groups here; says why a test is skipped where there are none.
fn groups() -> Option<u8> {
    let probe = run(&["--memory", "48M", "--mode", "reactive", "-v"], &["1"]);
    let version = [1, 2].into_iter().find(|version| probe.err.contains(&format!("memory cgroup v{version}")));
    if version.is_none() {
        eprintln!("skipped: no memory group here");
    }
    version
}

/// Four times what slack and growth leave, usually faster than the pager looks: `move` and `copy` make room
/// for it. (Where the pager happens to look in time, no relief is counted, so none is asked for.) Groups of
/// version 2 only delay the program: there it may be ended, and that is said.
#[test]
fn a_program_may_grow_at_once() {
    let Some(version) = groups() else { return };
    if !can_isolate() || !can_trace() {
        return;
    }
    for engine in ["move", "copy"] {
        for mode in ["reactive", "speculate"] {
            let done = grown("20", &["--engine", engine, "--mode", mode]);
            if done.err.contains("needs Linux") {
                eprintln!("skipped: {}", done.err);
                continue;
            }
            let report = done.report();
            let peak = report["peak_bytes"].as_u64().expect("a peak");
            assert!(peak <= LIMIT, "{engine} {mode}: {peak} bytes");
            let ended = version == 2 && done.code == Some(137);
            assert_eq!(report["out_of_memory"], ended);
            if ended {
                eprintln!("{engine} {mode}: ended at its limit");
                done.says("the system ended the program because it used more than 48 MiB");
            } else {
                done.succeeded();
            }
        }
    }
}

/// What no paging makes room for is not waited for without end.
#[test]
fn a_program_that_grows_beyond_its_limit_is_ended() {
    if groups().is_none() || !can_trace() {
        return;
    }
    for engine in ["move", "copy"] {
        let done = grown("64", &["--engine", engine, "--mode", "reactive"]);
        if done.err.contains("needs Linux") {
            eprintln!("skipped: {}", done.err);
            continue;
        }
        assert_eq!(done.code, Some(137), "{}", done.err);
        done.says("the system ended the program because it used more than 48 MiB beside what can be paged");
        assert_eq!(done.report()["out_of_memory"], true);
    }
    assert!(groups_of(std::process::id()).is_empty());
}

/// A program that has no pager to help it is ended, too.
#[test]
fn a_program_without_the_runtime_is_ended_at_its_limit() {
    if groups().is_none() {
        return;
    }
    let script = "x=$(head -c 100000000 /dev/zero | tr '\\0' a); echo ${#x}";
    let mut command = std::process::Command::new(crate::support::osprey());
    command.args(["run", "--memory", "32M", "--mode", "reactive", "--", "sh", "-c", script]);
    let done = Run::from(command.output().expect("osprey starts"));
    assert!(done.code != Some(0) && done.out.trim() != "100000000", "{} {}", done.out, done.err);
}

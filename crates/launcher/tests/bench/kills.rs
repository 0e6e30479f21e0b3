//! What is left of a measurement that was killed.

use crate::{alone, boolean, osprey};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Whether something holds before long.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(30);
    while !holds() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    holds()
}

fn left_in(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).expect("a folder").filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The keeper and the runs.
fn children(of: &Child) -> Vec<u32> {
    let pid = of.id();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Memory groups that these launchers made, wherever groups are.
fn groups_of(launchers: &[u32]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().display().to_string();
            let of = |launcher: &u32| name.starts_with("osprey-") && name.contains(&format!("-{launcher}-"));
            if launchers.iter().any(of) {
                found.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    found
}

/// Killed while it measures against swap: the runs, their groups, the swap file and the folder of traces are
/// gone soon after.
#[test]
fn nothing_is_left_of_a_measurement_that_was_killed() {
    if boolean().is_none() {
        return;
    }
    let _alone = alone();
    let (spill, temporary) =
        (tempfile::tempdir_in("/var/tmp").expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut child = Command::new(osprey())
        .args(["bench", "--workload", "merge", "--size", "16384", "--memory", "24M", "--engine", "swap"])
        .arg("--spill")
        .arg(spill.path())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("osprey bench");
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    while !said.contains("swap runs")
        && !said.contains("skipped")
        && stderr.read_line(&mut said).is_ok_and(|n| n > 0)
    {}
    let ready = said.contains("swap runs") && soon(|| !groups_of(&children(&child)).is_empty());
    let runs = children(&child);
    if ready {
        assert_eq!(left_in(spill.path()).len(), 1, "a swap file: {said}");
        assert_eq!(left_in(temporary.path()).len(), 1, "a folder of traces: {said}");
    }
    child.kill().expect("a child");
    child.wait().expect("a child");
    assert!(soon(|| groups_of(&runs).is_empty()), "groups stayed: {:?}", groups_of(&runs));
    assert!(soon(|| left_in(spill.path()).is_empty()), "the swap file stayed");
    assert!(soon(|| left_in(temporary.path()).is_empty()), "the folder of traces stayed");
    let swaps = std::fs::read_to_string("/proc/swaps").expect("/proc/swaps");
    assert!(!swaps.contains(&spill.path().display().to_string()), "{swaps}");
    let is_there = |run: &u32| {
        let line = std::fs::read(format!("/proc/{run}/cmdline")).unwrap_or_default();
        line.windows(5).any(|part| part == b"merge")
    };
    assert!(soon(|| !runs.iter().any(is_there)), "a run stayed: {runs:?}");
    if !ready {
        eprintln!("skipped: no swap file here, or no groups, or the kernel does not list children: {said}");
    }
}

//! Signals, and a launcher that is killed at any moment.

use crate::support::{command, groups_of, names, processes_with};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Waits until something holds, or too long.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(pid: u32, name: &str) {
    let done = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(done.expect("kill").success());
}

/// Killed at ten moments, in the speculative pass and in the real one, with a program that has children,
/// under each way of paging that there is.
#[test]
fn a_killed_launcher_leaves_nothing() {
    let (spill, temporary) = [(); 2].map(|()| tempfile::tempdir().expect("folder")).into();
    for moment in 0..10u64 {
        let word = format!("86398.{}{moment}", std::process::id());
        let mode = ["speculate", "concurrent", "reactive"][moment as usize % 3];
        let engine = ["auto", "file", "copy", "auto", "swap"][moment as usize % 5];
        let mut flags = vec!["--memory", "24M", "--mode", mode, "--engine", engine];
        flags.extend(["--spill", spill.path().to_str().expect("text")]);
        let mut child = command(&flags, &["64", "spawn", &word])
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("osprey starts");
        std::thread::sleep(Duration::from_millis(7 * moment * moment));
        let launcher = child.id();
        child.kill().expect("killed");
        child.wait().expect("waited");
        eventually("a process is left", || processes_with(&word).is_empty());
        eventually("a group is left", || groups_of(launcher).is_empty());
        for folder in [&spill, &temporary] {
            assert_eq!(names(folder.path()), [""; 0], "files are left by {engine}, {mode}");
        }
    }
}

/// The guard and the launcher at once: the program dies with its guard, and the next start removes the group.
#[test]
fn a_killed_guard_leaves_no_program() {
    let word = format!("86397.{}", std::process::id());
    let mut child = command(&["--memory", "64M", "--mode", "reactive"], &["8", "slow", &word])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("osprey starts");
    eventually("the program runs", || processes_with(&word).len() >= 2);
    let guards =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
    let Some(guard) = guards.split_whitespace().next().and_then(|pid| pid.parse().ok()) else {
        child.kill().expect("killed");
        child.wait().expect("waited");
        return eprintln!("skipped: the kernel does not list children");
    };
    signal(guard, "KILL");
    let err = child.stderr.take().expect("a pipe");
    let said =
        BufReader::new(err).lines().map_while(Result::ok).any(|line| line.contains("guard of the program"));
    assert_eq!(child.wait().expect("ended").code(), Some(125));
    assert!(said);
    eventually("a process is left", || processes_with(&word).is_empty());
    eventually("a group is left", || groups_of(child.id()).is_empty());
}

/// A group that nobody could remove goes at the next start.
#[test]
fn the_next_start_removes_what_two_kills_left() {
    let word = format!("86394.{}", std::process::id());
    let mut child = command(&["--memory", "64M", "--mode", "reactive"], &["64", "slow", &word])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("osprey starts");
    let launcher = child.id();
    eventually("the program runs", || processes_with(&word).len() >= 2);
    let all =
        std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap_or_default();
    // The launcher is stopped first, so that it cannot clean up after its guard.
    signal(launcher, "STOP");
    for guard in all.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        signal(guard, "KILL");
    }
    child.kill().expect("killed");
    child.wait().expect("waited");
    eventually("a process is left", || processes_with(&word).is_empty());
    let next = command(&["--memory", "64M", "--mode", "reactive"], &["1"]).output().expect("osprey starts");
    assert!(next.stderr.starts_with(b"osprey"));
    assert!(groups_of(launcher).is_empty(), "a group is left");
}

#[test]
fn a_signal_reaches_the_program() {
    let word = format!("86396.{}", std::process::id());
    let mut child = Command::new(crate::support::osprey())
        .args(["run", "--memory", "64M", "--mode", "reactive", "-q", "--", "sh", "-c"])
        .arg("trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done")
        .arg(&word)
        .stdout(Stdio::piped())
        .spawn()
        .expect("osprey starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    signal(child.id(), "TERM");
    assert_eq!(lines.next().expect("a line").expect("text"), "caught");
    assert_eq!(child.wait().expect("ended").code(), Some(9));
    assert!(processes_with(&word).is_empty());
}

#[test]
fn a_signal_during_speculation_ends_the_run() {
    let word = format!("86395.{}", std::process::id());
    let mut child = command(&["--memory", "64M"], &["8", "hang", &word])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("osprey starts");
    eventually("speculation runs", || processes_with(&word).len() >= 2);
    signal(child.id(), "INT");
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    eventually("a process is left", || processes_with(&word).is_empty());
}

//! What a speculative pass must not reach: files, peers, processes that outlive it.

use crate::support::{can_isolate, command, names, processes_with, run};

#[test]
fn speculation_writes_no_file() {
    if !can_isolate() {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("written");
    let path = file.to_str().expect("text");
    run(&["--speculative-only"], &["1", "file", path]).does_not_say("warning");
    assert!(names(folder.path()).is_empty());
    run(&["--memory", "64M"], &["1", "file", path]).succeeded().does_not_say("warning");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "real");
    // Without isolation it is the program that must know.
    let other = folder.path().join("unprotected");
    run(&["--speculative-only", "--no-isolation"], &["1", "file", other.to_str().expect("text")]);
    assert_eq!(std::fs::read_to_string(&other).expect("written"), "speculated");
}

#[test]
fn speculation_reaches_no_peer() {
    if !can_isolate() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address").to_string();
    run(&["--memory", "64M"], &["1", "connect", &address]).succeeded().does_not_say("warning");
    listener.set_nonblocking(true).expect("non-blocking");
    assert!(listener.accept().is_ok(), "the real pass");
    assert!(listener.accept().is_err(), "nobody else");
}

#[test]
fn a_program_that_spawns_leaves_nobody() {
    let seconds = format!("86399.{}", std::process::id());
    let seconds = seconds.as_str();
    let done = run(&["--memory", "64M"], &["1", "spawn", seconds]);
    done.succeeded().says("left 1 process behind: ended with it");
    assert!(processes_with(seconds).is_empty());
    let streaming = command(&["--memory", "64M", "--mode", "concurrent"], &["1", "spawn", seconds]).output();
    assert!(streaming.expect("osprey starts").status.success());
    assert!(processes_with(seconds).is_empty());
}

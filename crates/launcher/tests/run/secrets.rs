//! What must not get out: through descriptors, the terminal, swap, the files that are left, and children.

use crate::support::{Run, WITHOUT_USERFAULTFD, can_isolate, can_trace, osprey, run, subject};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;

#[test]
fn speculation_does_not_write_to_what_the_caller_left_open() {
    if !can_isolate() {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("left open");
    let (mut peer, theirs) = UnixStream::pair().expect("a pair of sockets");
    peer.set_nonblocking(true).expect("non-blocking");
    // The socket comes as standard input and is moved to where only the caller knows of it.
    let caller = "exec 3>>\"$1\" 4<&0 </dev/null; exec \"$0\" run --memory 64M -- sh -c \
                  '{ echo once >&3; echo once >&4; } 2>/dev/null; true'";
    let mut command = Command::new("sh");
    command.args(["-c", caller, osprey()]).arg(&file).stdin(OwnedFd::from(theirs));
    let done = Run::from(command.output().expect("a shell"));
    drop(command);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "once\n", "the real pass alone");
    let mut received = String::new();
    peer.read_to_string(&mut received).expect("the other end is closed");
    assert_eq!(received, "once\n", "the real pass alone");
}

#[test]
fn speculation_does_not_reach_the_terminal() {
    if !can_isolate() {
        return;
    }
    let program = "(echo reached > /dev/tty) 2>/dev/null; true";
    let line = format!("{} run --memory 64M -- sh -c '{program}'", osprey());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::null());
    let Ok(output) = script.output() else { return eprintln!("skipped: no script") };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("reached").count(), 1, "the real pass alone: {said}");
}

/// A device other than `/dev/null` need not give the same twice.
#[test]
fn speculation_takes_nothing_from_a_device() {
    if !can_isolate() {
        return;
    }
    let from = |device: &str| {
        let mut command = Command::new(osprey());
        command.args(["run", "--memory", "64M", "--", "sh", "-c", "head -c 1 | wc -c"]);
        let input = std::fs::File::open(device).expect("a device");
        Run::from(command.stdin(input).output().expect("osprey starts"))
    };
    let done = from("/dev/zero");
    done.succeeded().says("read from the terminal (or device) and found an empty line");
    assert_eq!(done.out.trim(), "1", "the real pass reads it");
    let done = from("/dev/null");
    done.succeeded().does_not_say("found an empty line");
    assert_eq!(done.out.trim(), "0");
}

/// What a program that is paged by nobody reads of its group, in either version.
const MAY_SWAP: &str = "one=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup); \
                        two=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); \
                        cat $one/memory.swappiness 2>/dev/null || cat $two/memory.swap.max";

#[test]
fn a_program_without_an_engine_may_not_swap_unless_that_is_allowed() {
    let run = |flags: &[&str]| {
        // Nor a file as long as a chunk: then no engine is left.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 32 && exec \"$0\" \"$@\"", "python3", "-c", WITHOUT_USERFAULTFD]);
        command.args([osprey(), "run", "-v", "--memory", "64M"]).args(flags);
        command.args(["--", "sh", "-c", MAY_SWAP]).output().map(Run::from)
    };
    let strict = run(&[]).expect("sh starts");
    if !strict.err.contains("limit by memory cgroup") || strict.out.is_empty() {
        return eprintln!("skipped: {}", strict.err);
    }
    strict.says("no paging engine works");
    assert_eq!(strict.out, "0\n", "{}", strict.err);
    let open = run(&["--allow-plaintext"]).expect("sh starts");
    assert_ne!(open.out, "0\n", "{}", open.err);
}

#[test]
fn a_trace_is_its_owners_alone() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let trace = folder.path().join("trace");
    run(&["--speculative-only", "--trace-file", trace.to_str().expect("text")], &["1"])
        .does_not_say("warning");
    let mode = trace.metadata().expect("a trace").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_child_that_has_the_runtime_leaves_its_parents_trace_and_report() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let done = run(&["--memory", "24M", "--json"], &["32", "child"]);
    let alone = run(&["--memory", "24M", "--json"], &["32"]);
    done.succeeded().says("another one of this run uses Osprey already");
    let [report, alone] = [done.report(), alone.report()];
    assert_eq!(report["mode"], "programmed", "{report}");
    for field in ["trace_entries", "events", "allocation_hash", "peak_chunks"] {
        assert_eq!(report[field], alone[field], "{field}: {report}");
    }
    assert!(report["warnings"].as_array().is_none_or(Vec::is_empty), "{report}");
}

#[test]
fn a_script_may_wrap_its_program() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let wrapped = |script: &str| {
        let mut command = Command::new(osprey());
        command.args(["run", "--memory", "24M", "--json", "--", "sh", "-c", script]).arg(subject());
        Run::from(command.output().expect("osprey starts"))
    };
    assert_eq!(wrapped("exec \"$0\" 32").succeeded().report()["mode"], "programmed");
    assert_eq!(wrapped("\"$0\" 32; exit $?").succeeded().report()["mode"], "programmed");
    wrapped("exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; \"$0\" 2").says("were closed on the way");
}

//! What goes wrong: the program's own pass gives its result all the same, or an error says what to do.

use crate::support::{Run, WITHOUT_USERFAULTFD, can_isolate, can_trace, osprey, run, subject};
use osprey::disk::SwapFile;
use std::process::Command;

#[test]
fn a_program_that_is_not_oblivious_is_found_out() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let done = run(&["--memory", "24M", "--json"], &["64", "secret"]);
    let report = done.succeeded().report();
    let warnings = report["warnings"].as_array().expect("warnings");
    assert!(!warnings.is_empty() && report["mode"] == "reactive", "{report}");
}

#[test]
fn an_order_that_changes_is_slow_and_right() {
    if !can_isolate() || !can_trace() {
        return;
    }
    for mode in ["speculate", "concurrent"] {
        let done = run(&["--memory", "24M", "--mode", mode, "--json"], &["64", "random"]);
        let report = done.succeeded().report();
        let warnings = report["warnings"].as_array().expect("warnings");
        assert!(report["mode"] == "reactive" && warnings.len() == 1, "{mode}: {report}");
        let said = done.err.matches("warning: the trace does not fit this run").count();
        assert_eq!(said, 1, "{mode}: {}", done.err);
    }
}

/// A trace belongs to the bytes of its program, not to its name.
#[test]
fn a_trace_of_another_build_is_refused() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace"));
    std::fs::copy(subject(), &program).expect("copied");
    let run = |flags: &[&str]| {
        let mut command = Command::new(osprey());
        command.args(["run", "--memory", "24M", "--json", "--trace-file"]).arg(&trace).args(flags);
        Run::from(command.arg("--").arg(&program).arg("32").output().expect("osprey starts"))
    };
    assert_eq!(run(&[]).succeeded().report()["mode"], "programmed");
    assert_eq!(run(&["--mode", "programmed"]).succeeded().report()["mode"], "programmed");
    // What is behind the end of an executable does not change what it does.
    let mut file = std::fs::OpenOptions::new().append(true).open(&program).expect("the program");
    std::io::Write::write_all(&mut file, b"another build").expect("written");
    drop(file);
    let refused = run(&["--mode", "programmed"]);
    assert_eq!(refused.succeeded().report()["mode"], "reactive");
    refused.says("is paged by its faults");
    let anew = run(&[]);
    assert_eq!(anew.succeeded().report()["mode"], "programmed");
    anew.says("a new trace is made");
}

#[test]
fn speculation_that_crashes_is_told_and_survived() {
    if !can_isolate() {
        return;
    }
    for mode in ["speculate", "concurrent"] {
        let done = run(&["--memory", "24M", "--mode", mode], &["32", "crash"]);
        done.succeeded()
            .says("| the subject crashes on purpose")
            .says("the speculative pass was ended by SIGABRT");
    }
}

#[test]
fn speculation_that_hangs_is_ended() {
    if !can_isolate() {
        return;
    }
    let done = run(&["--memory", "24M", "--speculation-timeout", "1"], &["32", "hang"]);
    done.succeeded().says("wrote no trace for 1 s and was ended (--speculation-timeout gives it more)");
    let both = ["--memory", "24M", "--mode", "concurrent", "--speculation-timeout"];
    run(&[&both[..], &["600"]].concat(), &["32", "hang"]).succeeded().does_not_say("was ended (");
    let done = run(&[&both[..], &["1"]].concat(), &["48", "hang", "slow"]);
    done.succeeded().says("neither ran nor sent trace for 1 s and was ended");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let done = run(&["--memory", "24M", "--mode", "reactive", "--spill", "/no/such/folder"], &["64"]);
    assert_eq!((done.code, done.out.as_str()), (Some(125), ""), "{}", done.err);
    done.says("/no/such/folder");
    for (flag, path) in [("--report", "/no/such/folder/r"), ("--trace-file", "/no/such/folder/t")] {
        let done = run(&["--memory", "24M", flag, path], &["1"]);
        assert_eq!((done.code, done.out.as_str()), (Some(125), ""), "{}", done.err);
        done.says(&format!("{flag} {path}: its folder"));
    }
}

#[test]
fn too_little_memory_names_the_least() {
    let done = run(&["--memory", "4M", "--mode", "reactive"], &["64"]);
    assert!(done.code != Some(0), "{}", done.err);
    done.says("a limit of 4 MiB is too small").says("allow at least");
}

/// Four times the limit: with room in swap the program ends well, whatever it waits for; without swap, or
/// when what there is is full, it does not wait for ever but is ended.
#[test]
fn the_systems_paging_ends_a_program_only_without_room() {
    let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let swaps = || std::fs::read_to_string("/proc/swaps").expect("/proc/swaps").lines().count() - 1;
    for (swap_bytes, code) in [(256 << 20, 0), (2 << 20, 137), (0, 137)] {
        let swap = match (swap_bytes > 0).then(|| SwapFile::create(folder.path(), swap_bytes)).transpose() {
            Ok(swap) => swap,
            Err(error) => return eprintln!("skipped: no swap file here: {error}"),
        };
        let own = usize::from(swap.is_some());
        let others_before = swaps() != own;
        let done = run(&["--engine", "swap", "--memory", "24M", "--json"], &["96"]);
        let others = others_before || swaps() != own;
        drop(swap);
        if done.err.contains("needs a memory cgroup") {
            return eprintln!("skipped: {}", done.err);
        }
        if others && code != 0 {
            eprintln!("skipped: {swap_bytes} bytes of swap, because there is other swap");
            continue;
        }
        assert_eq!(done.code, Some(code), "{swap_bytes} bytes of swap: {}", done.err);
        let report = done.report();
        assert_eq!(report["out_of_memory"], code != 0, "{report}");
        assert!(report["peak_bytes"].as_u64().is_some_and(|peak| peak <= 24 << 20), "{report}");
        if code != 0 {
            done.says("the system ended the program because it used more than 24 MiB");
        }
    }
}

#[test]
fn without_userfaultfd_the_program_still_runs() {
    let denied = |flags: &[&str], size: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", WITHOUT_USERFAULTFD, osprey(), "run"]).args(flags).arg("--");
        command.arg(subject()).arg(size).output().map(Run::from)
    };
    let done = match denied(&["--memory", "64M"], "8") {
        Ok(done) if done.err.contains("Traceback") => return eprintln!("skipped: {}", done.err),
        Ok(done) => done,
        Err(error) => return eprintln!("skipped: no python3: {error}"),
    };
    done.succeeded().says("warning").says("userfaultfd");
    // More than the limit: not without an engine.
    for mode in ["speculate", "concurrent", "reactive"] {
        let flags = ["--memory", "24M", "--allow-plaintext", "--mode", mode, "--json"];
        let done = denied(&flags, "64").expect("python3 starts");
        let report = done.succeeded().says("to disk as it is, not encrypted").report();
        assert!(report["engine"] == "file" && report["frames"].as_u64() < Some(24 * 16), "{mode}: {report}");
        assert!(report["bytes_read"].as_u64() > Some(0), "what had left came back: {mode}: {report}");
    }
}

#[test]
fn without_namespaces_speculation_is_refused() {
    // A namespace in which no more may be made.
    let script = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$0\" run --memory 64M -- \"$1\" 8";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(osprey()).arg(subject());
    match command.output().map(Run::from) {
        Err(error) => eprintln!("skipped: no unshare: {error}"),
        Ok(done) if !done.err.contains("cannot be cut off") => eprintln!("skipped: {}", done.err),
        Ok(done) => {
            done.says("--no-isolation").says("user.max_user_namespaces");
            assert!(done.code == Some(0) || done.code == Some(69), "{}", done.err);
        }
    }
}

#[test]
fn a_full_disk_ends_the_program_with_its_name() {
    // A small file system that goes with its namespace.
    let folder = tempfile::tempdir().expect("folder");
    let script = "mount -t tmpfs -o size=2m none \"$2\" && exec \"$0\" run --memory 24M --spill \"$2\" \
                  --spill-in-memory --engine \"$3\" --mode \"$4\" -- \"$1\" 64";
    let named = folder.path().to_str().expect("text");
    let cases =
        ["auto", "file"].map(|engine| ["speculate", "concurrent", "reactive"].map(|mode| (engine, mode)));
    for (engine, mode) in cases.into_iter().flatten() {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script]).arg(osprey()).arg(subject());
        match command.args([named, engine, mode]).output().map(Run::from) {
            Err(error) => return eprintln!("skipped: no unshare: {error}"),
            Ok(done) if matches!(done.code, Some(1 | 32)) => return eprintln!("skipped: {}", done.err),
            Ok(done) => {
                // A whole trace says before the program runs what `file` needs.
                let early = (engine, mode) == ("file", "speculate") && done.err.contains("the trace needs");
                let code = if early { 69 } else { 74 };
                assert_eq!(done.code, Some(code), "{engine}, {mode}: {}", done.err);
                done.says(named);
            }
        }
    }
}

#[test]
fn a_terminal_is_not_for_speculation() {
    if !can_isolate() {
        return;
    }
    let line = format!("{} run --memory 64M -- {} 1 stdin", osprey(), subject().display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::piped());
    let child = script.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn();
    let Ok(mut child) = child else { return eprintln!("skipped: no script") };
    let mut keys = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut keys, b"abc\n\x04").expect("typed");
    let output = child.wait_with_output().expect("ended");
    drop(keys);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("read from the terminal (or device) and found an empty line"), "{said}");
    assert!(said.contains("read 4 bytes") && output.status.success(), "{said}");
}

#[test]
fn a_region_that_is_full_names_the_flag() {
    let done = run(&["--memory", "64M", "--mode", "reactive", "--region", "4M"], &["8"]);
    if done.code == Some(69) {
        return eprintln!("skipped: {}", done.err);
    }
    assert_ne!(done.code, Some(0), "{}", done.err);
    done.says("the region of 4194304 bytes has no room").says("osprey run --region BYTES");
}

//! Modes, traces that are used again, exit codes, standard input.

use crate::support::{can_isolate, can_trace, command, names, osprey, run, run_with_input};
use std::process::Command;

#[test]
fn a_program_is_speculated_then_run() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let done = run(&["--memory", "24M", "--json"], &["48"]);
    let report = done.succeeded().report();
    assert_eq!(report["mode"], "programmed", "{}", done.err);
    assert_eq!(report["asked_mode"], "speculate");
    assert!(report["speculation"]["stats"]["trace_entries"].as_u64().expect("a number") > 0);
    assert!(report["speculation"]["peak_bytes"].as_u64().expect("a number") <= 64 << 20, "{report}");
    assert!(report["needed"].as_u64().expect("known") >= 48 << 20, "{report}");
}

/// Twelve sweeps read everything ten times and more, three do not.
#[test]
fn many_sweeps_are_named_in_the_summary() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let advice = "that its region holds: it goes over all of that again and again";
    run(&["--memory", "24M"], &["48", "sweeps", "20"]).succeeded().says(advice);
    run(&["--memory", "24M"], &["48"]).succeeded().does_not_say(advice);
}

#[test]
fn a_percentage_is_of_what_the_trace_says() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let done = run(&["--memory", "50%", "--json"], &["64"]);
    let report = done.succeeded().report();
    let (memory, needed) =
        (report["memory"].as_u64().expect("bytes"), report["needed"].as_u64().expect("bytes"));
    assert!(memory.abs_diff(needed / 2) <= 4096, "{report}");
    let refused = run(&["--memory", "50%", "--mode", "reactive"], &["1"]);
    assert_eq!(refused.code, Some(125));
    refused.says("--mode reactive has none; give bytes, such as --memory 256M");
    let same = run(&["--memory", "64M", "--report", "/tmp/one", "--trace-file", "/tmp/one"], &["1"]);
    assert_eq!(same.code, Some(125));
    same.says("name the same file");
    run(&["--speculative-only"], &["8"]).says("needs ").says("touches of chunks of ");
}

#[test]
fn both_passes_at_once_give_the_result() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let done = run(&["--memory", "24M", "--mode", "concurrent", "--json"], &["48"]);
    let report = done.succeeded().report();
    assert!(report["speculation"].is_object() && report["asked_mode"] == "concurrent", "{report}");
}

#[test]
fn faults_alone_give_the_result() {
    let done = run(&["--memory", "24M", "--mode", "reactive", "--json"], &["48"]);
    if done.code == Some(69) {
        return eprintln!("skipped: {}", done.err);
    }
    let report = done.succeeded().report();
    assert_eq!((&report["mode"], &report["speculation"]), (&"reactive".into(), &serde_json::Value::Null));
}

#[test]
fn nothing_is_paged_where_that_is_asked_for() {
    let done = run(&["--memory", "64M", "--engine", "none", "--json"], &["16"]);
    let report = done.succeeded().report();
    assert!(report["engine"] == "none" && report["bytes_written"] == 0, "{report}");
    assert_eq!(report["memory"], 64 << 20, "{report}");
}

#[test]
fn completions_are_of_what_the_help_shows() {
    for shell in ["bash", "zsh", "fish"] {
        let done = Command::new(osprey()).args(["completions", shell]).output().expect("osprey starts");
        let script = String::from_utf8(done.stdout).expect("text");
        assert!(script.contains("speculation-timeout") && script.contains("workload"), "{shell}");
        assert!(!script.contains("with-parent") && !script.contains("keeper"), "{shell}");
    }
}

#[test]
fn a_trace_is_used_again_only_where_it_fits() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("a.trace");
    let flags = ["--memory", "24M", "--trace-file", file.to_str().expect("text")];
    let programmed = [&flags[..], &["--mode", "programmed"]].concat();
    run(&programmed, &["32"]).succeeded().says("cannot read the trace").says("is paged by its faults");
    run(&flags, &["32"]).succeeded().does_not_say("used again");
    assert_eq!(names(folder.path()), ["a.trace"]);
    run(&flags, &["32"]).succeeded().says("fits and is used again");
    run(&programmed, &["32"]).succeeded().does_not_say("warning");
    // Other arguments: made anew, or refused where it must not be.
    run(&programmed, &["33"]).succeeded().says("warning").says("is paged by its faults");
    run(&flags, &["33"]).succeeded().says("a new trace is made");
    run(&flags, &["33"]).succeeded().says("fits and is used again");
    let other = [&programmed[..], &["--chunk", "128K"]].concat();
    run(&other, &["33"]).succeeded().says("is paged by its faults");
    // Torn.
    let whole = std::fs::read(&file).expect("a trace");
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("torn");
    run(&programmed, &["33"]).succeeded().says("torn");
    run(&flags, &["33"]).succeeded().says("a new trace is made");
    // The last bytes are a footer, with memory beside the region: that varies by pages.
    let again = std::fs::read(&file).expect("a trace");
    assert!(again[..again.len() - 16] == whole[..whole.len() - 16], "speculation is deterministic");
    run(&[&flags[2..], &["--speculative-only"]].concat(), &["34"]).does_not_say("warning");
    run(&programmed, &["34"]).succeeded().does_not_say("warning");
}

/// A program that counts nothing while it computes, faster than the disk: the engine's plan goes along to the
/// end.
#[test]
fn a_plan_by_advice_follows_a_program_that_counts_nothing() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let flags = ["--memory", "32M", "--chunk", "64K", "--engine", "file", "--allow-plaintext", "--json"];
    let done = run(&flags, &["96", "still"]);
    let report = done.succeeded().report();
    let entries = |value: &serde_json::Value| value["trace_entries"].as_u64().expect("a number");
    let (planned, all) = (entries(&report), entries(&report["speculation"]["stats"]));
    assert!(report["mode"] == "programmed" && report["warnings"] == serde_json::json!([]), "{report}");
    assert!(planned > all / 2, "{planned} of {all} entries are planned: {report}");
}

/// Large chunks where the limit holds enough of them, what the program needs beside them taken off.
#[test]
fn chunks_are_as_large_as_the_limit_allows() {
    if !can_isolate() || !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("a.trace");
    let file = file.to_str().expect("text");
    let chunk = |flags: &[&str], mib: &str| {
        let done = run(&[flags, &["--json"]].concat(), &[mib]);
        let report = done.succeeded().report();
        (report["engine"] == "move").then(|| (report["chunk"].as_u64(), done.err))
    };
    let Some((small, _)) = chunk(&["--memory", "24M"], "32") else {
        return eprintln!("skipped: no engine that moves pages");
    };
    let large = chunk(&["--memory", "160M", "--trace-file", file], "24").expect("as before").0;
    assert_eq!((small, large), (Some(64 << 10), Some(2 << 20)));
    // The trace that is there has the word; but not where its chunks are too large.
    let (chunks, said) = chunk(&["--memory", "128M", "--trace-file", file], "24").expect("as before");
    assert!(chunks == large && said.contains("fits and is used again"), "{said}");
    let (chunks, said) = chunk(&["--memory", "64M", "--trace-file", file], "24").expect("as before");
    assert!(chunks == small && said.contains("too little for chunks of 2 MiB"), "{said}");
    // A share of what the trace says is known only by one.
    let (chunks, said) = chunk(&["--memory", "50%"], "64").expect("as before");
    assert!(chunks == small && said.contains("a second speculative pass, with chunks of 64 KiB"), "{said}");
    let (chunks, said) = chunk(&["--memory", "50%", "--chunk", "128K"], "64").expect("as before");
    assert!(chunks == Some(128 << 10) && !said.contains("second speculative pass"), "{said}");
    let (chunks, _) = chunk(&["--memory", "160M", "--mode", "reactive"], "24").expect("as before");
    assert_eq!(chunks, small, "nobody foresees touches");
}

#[test]
fn exit_codes_are_those_of_the_program() {
    assert_eq!(run(&["--memory", "64M"], &["1", "exit", "7"]).code, Some(7));
    let shell = |script: &str| {
        let words = ["run", "--memory", "64M", "--", "sh", "-c", script];
        Command::new(osprey()).args(words).output().expect("osprey starts").status.code()
    };
    assert_eq!(shell("kill -TERM $$"), Some(143));
    assert_eq!(shell("exit 0"), Some(0));
    let bad =
        |words: &[&str]| Command::new(osprey()).args(words).output().expect("osprey starts").status.code();
    assert_eq!(bad(&["run", "--memory", "64M", "--", "/no/such/program"]), Some(127));
    assert_eq!(bad(&["run", "--memory", "64M", "--", "/etc/passwd"]), Some(126));
    assert_eq!(bad(&["run", "--memory", "much", "--", "true"]), Some(125));
    assert_eq!(bad(&["probe", "--no-such-flag"]), Some(2));
}

#[test]
fn standard_input_is_the_same_for_both_passes() {
    let input: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let sum: u64 = input.iter().map(|byte| u64::from(*byte)).sum();
    let base: u64 = run(&["--memory", "64M"], &["1"]).out.trim().parse().expect("a sum");
    for mode in ["speculate", "concurrent", "reactive"] {
        let done = run_with_input(&["--memory", "64M", "--mode", mode], &["1", "stdin"], &input);
        done.succeeded().says("read 3000000 bytes").does_not_say("warning");
        assert_eq!(done.out.trim().parse(), Ok(base.wrapping_add(sum)), "{mode}");
    }
    let mut file = tempfile::tempfile().expect("file");
    std::io::Write::write_all(&mut file, &input).expect("written");
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(1000)).expect("seek");
    let done = command(&["--memory", "64M"], &["1", "stdin"]).stdin(file).output().expect("osprey starts");
    crate::support::Run::from(done).succeeded().says("read 2999000 bytes");
}

#[test]
fn a_pipe_that_never_ends_is_no_obstacle() {
    let (reader, writer) = std::io::pipe().expect("pipe");
    let done = command(&["--memory", "64M"], &["1"]).stdin(reader).output().expect("osprey starts");
    drop(writer);
    crate::support::Run::from(done).succeeded();
}

#[test]
fn a_program_without_the_runtime_runs() {
    if !can_isolate() {
        return;
    }
    let shell = |script: &str| {
        let words = ["run", "--memory", "64M", "--", "sh", "-c", script];
        crate::support::Run::from(Command::new(osprey()).args(words).output().expect("osprey starts"))
    };
    let done = shell("echo done");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "done\n"));
    done.says("the program does not use the runtime");
    // Without a memory group it has no limit, and only then is anything wrong.
    let wrong = |line: &&str| line.contains("warning") && !line.contains("there is no memory group");
    assert_eq!(done.err.lines().find(wrong), None, "{}", done.err);
    // One that fails may do so because it is cut off: nobody says that it does not use the runtime.
    let done = shell("echo done; echo no peer >&2; exit 4");
    assert_eq!((done.code, done.out.as_str()), (Some(4), "done\n"));
    done.says("| no peer")
        .says("the speculative pass ended with exit code 4 before it used the runtime")
        .says("--no-isolation")
        .does_not_say("the program does not use the runtime");
}

#[test]
fn probe_chooses_an_engine_that_works() {
    let done = Command::new(osprey()).args(["probe", "--json"]).output().expect("osprey starts");
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let rows = answer["capabilities"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["works"] == true || row["why_not"].is_string()), "{answer}");
    let works = |name: &str| rows.iter().any(|row| row["name"] == name && row["works"] == true);
    match answer["engine"].as_str() {
        Some(engine) => assert!(works(&format!("engine {engine}")), "{answer}"),
        None => assert!(!works("engine move") && !works("engine copy"), "{answer}"),
    }
    let refused = Command::new(osprey())
        .args(["probe", "--spill", "/no/such/folder"])
        .output()
        .map(crate::support::Run::from);
    let refused = refused.expect("osprey starts");
    assert!(
        refused.out.contains("/no/such/folder") && refused.out.contains("--engine auto is none"),
        "{}",
        refused.out
    );
}

#[test]
fn a_report_is_one_object() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("report.json");
    let done = run(&["--memory", "64M", "--quiet", "--report", file.to_str().expect("text")], &["1"]);
    assert_eq!(done.succeeded().err, "", "quiet");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    assert_eq!(report["exit_code"], 0);
    let marks: Vec<_> =
        report["marks"].as_array().expect("marks").iter().map(|mark| mark["name"].clone()).collect();
    assert_eq!(marks, ["start", "stop"]);
    assert_eq!(names(folder.path()), ["report.json"]);
}

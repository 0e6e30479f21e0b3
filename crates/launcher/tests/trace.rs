//! `osprey trace` as a user sees it, with the traces that `osprey run` makes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn osprey(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_osprey")).args(args).output().expect("osprey starts")
}

/// The program of the launcher's tests, an example that `cargo test` builds.
fn subject() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_osprey")).with_file_name("examples").join("subject")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A trace of the program, or nothing where speculation is not permitted.
fn traced(folder: &Path, words: &[&str]) -> Option<String> {
    let file = folder.join("trace").display().to_string();
    let program = subject().display().to_string();
    let flags = [
        "run",
        "--speculative-only",
        "--no-isolation",
        "--chunk",
        "64K",
        "--trace-file",
        &file,
        "--",
        &program,
    ];
    let out = osprey(&[&flags[..], words].concat());
    if out.status.success() {
        return Some(file);
    }
    eprintln!("skipped: no speculative pass here: {}", text(&out.stderr));
    None
}

/// `osprey trace verify FILE -- subject WORDS`.
fn verify(file: &str, words: &[&str]) -> Output {
    let program = subject().display().to_string();
    osprey(&[&["trace", "verify", "--no-isolation", file, "--", &program][..], words].concat())
}

#[test]
fn a_trace_is_shown_and_drawn() {
    let folder = tempfile::tempdir().expect("folder");
    let Some(file) = traced(folder.path(), &["24"]) else { return };
    let picture = folder.path().join("picture.svg").display().to_string();
    let out = osprey(&["trace", "show", &file, "--json", "--svg", &picture]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let figures: Value = serde_json::from_slice(&out.stdout).expect("an object");
    let number = |name: &str| figures[name].as_u64().expect("a number");
    // 24 pieces of a mebibyte and what the allocator rounds them to, swept several times.
    assert!((24 << 20..28 << 20).contains(&number("peak_bytes")), "{figures}");
    assert!(number("entries") >= 2 * 24 * 16 && number("chunk") == 65536, "{figures}");
    let read = |at: usize| figures["plans"][at]["moves"]["read"].as_u64();
    assert!(read(0).is_none(), "10 % of it does not hold two blocks: {figures}");
    assert!(
        read(1) > read(2) && read(2) > read(3) && read(3) > Some(0),
        "more memory, fewer reads: {figures}"
    );
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.contains("<path"));
    let words = text(&osprey(&["trace", "show", &file]).stdout);
    assert!(
        words.contains("too little: two blocks") && words.contains("reuse        half within"),
        "{words}"
    );
}

#[test]
fn a_trace_is_compared_with_its_program() {
    let folder = tempfile::tempdir().expect("folder");
    let Some(file) = traced(folder.path(), &["24"]) else { return };
    let out = verify(&file, &["24"]);
    let said = text(&out.stdout);
    assert!(out.status.success() && said.contains("a new speculative pass gives the same"), "{out:?}");
    let out = verify(&file, &["23"]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("its key is"), "{out:?}");
    let said = text(&out.stderr);
    assert!(said.contains(&format!("the file {} as it is now", subject().display())), "{said}");
    assert!(said.contains("with the arguments `23`: it was made by another build"), "{said}");
    assert!(said.contains("make it anew (osprey run --speculative-only"), "{said}");
    // Programs that give no trace: what they say is shown, and what was wrong.
    let out = verify(&file, &["24", "crash"]);
    let said = text(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains("the subject crashes on purpose"), "{said}");
    assert!(
        said.contains("24 crash gave no trace to compare with: the speculative pass was ended by SIGABRT"),
        "{said}"
    );
    let out = osprey(&["trace", "verify", "--no-isolation", &file, "--", "true"]);
    let said = text(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains("true gave no trace"), "{said}");
    assert!(said.contains("the program does not use the runtime"), "{said}");
    // Programs that do otherwise each time, in the order of their touches and in what they allocate.
    for (behaviour, how) in [("random", " there"), ("secret", "the program allocates otherwise")] {
        let file = traced(folder.path(), &["24", behaviour]).expect("speculated before");
        let out = verify(&file, &["24", behaviour]);
        let said = text(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(how), "{behaviour}: {out:?}");
        assert!(said.contains("its accesses depend on something else"), "{said}");
    }
}

#[test]
fn a_file_that_is_no_whole_trace_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("none");
    std::fs::write(&path, "nothing of the kind, but long enough for a header of one").expect("written");
    let name = path.display().to_string();
    for command in ["show", "verify"] {
        let out = osprey(&["trace", command, &name, "--json"]);
        assert_eq!(out.status.code(), Some(2));
        let object: Value = serde_json::from_slice(&out.stdout).expect("an object");
        let message = object["error"]["message"].as_str().expect("text");
        assert!(message.contains(&name) && message.contains("is no trace"), "{message}");
    }
}

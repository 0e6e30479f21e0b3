//! Rows that do not fit into memory: what plans say of them, what is refused, and both parties from files to
//! reports.

use crate::support::{Done, NAMES, Pair, Running, tacit};
use serde_json::Value;
use std::path::Path;

fn scale(state: &Path, words: &[&str]) -> Done {
    let first = ["bench", "scale", "--json", "--state", state.to_str().unwrap()];
    tacit(first.iter().chain(words))
}

fn peaks(measured: &Value) -> [u64; 2] {
    NAMES.map(|party| measured["peak_memory_bytes"][party].as_u64().unwrap())
}

#[test]
fn both_parties_run_from_files_to_reports_and_leave_nothing() {
    let state = tempfile::tempdir().unwrap();
    let words = ["--rows", "4k", "--files", "3", "--memory", "192M", "--spool"];
    let measured = scale(state.path(), &words).fine().json();
    for yes in ["correct", "spooled", "contains_truth", "price_held", "within_memory"] {
        assert_eq!(measured[yes], true, "{yes}: {measured}");
    }
    let stages: Vec<&str> =
        measured["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(stages[0], "read");
    assert!(["match", "compute", "release"].iter().all(|name| stages.contains(name)), "{stages:?}");
    // 208 of both over a row of one, and what does not grow with the rows.
    let per_row = measured["match_bytes_per_row"].as_f64().unwrap();
    assert!((208.0..300.0).contains(&per_row), "{per_row}");
    assert!(measured["disk_bytes"].as_u64().unwrap() > 0, "{measured}");
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    // Rows that fit, of data that were made before.
    let data = state.path().join("data").display().to_string();
    let made = ["generate", "lift", "--rows", "3k", "--format", "parquet", "--files", "2", "--out", &data];
    tacit(made).fine();
    let words = ["--rows", "3k", "--files", "2", "--data", &data];
    let measured = scale(state.path(), &words).fine().json();
    assert_eq!((&measured["correct"], &measured["spooled"]), (&true.into(), &false.into()), "{measured}");
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 1, "the data stay");
}

/// Shares of rows that lie in state, by the protocols that give some.
#[test]
fn joins_run_from_files_to_reports_in_the_memory_that_they_name() {
    for (protocol, memory) in [("ps3i", "192M"), ("circuit-psi", "320M")] {
        let state = tempfile::tempdir().unwrap();
        let words = ["--rows", "4k", "--files", "3", "--memory", memory, "--protocol", protocol, "--spool"];
        let measured = scale(state.path(), &words).fine().json();
        assert_eq!(measured["protocol"], protocol);
        for yes in ["correct", "spooled", "price_held", "within_memory"] {
            assert_eq!(measured[yes], true, "{yes}: {measured}");
        }
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    }
}

#[test]
fn too_little_memory_is_refused_with_the_numbers_before_anybody_is_met() {
    let state = tempfile::tempdir().unwrap();
    let done = scale(state.path(), &["--rows", "2k", "--files", "1", "--memory", "64M", "--spool"]);
    done.failed(2, &["need 160 MiB of it at least", "this party's `memory` allows 64 MiB: raise it to 160M"]);
}

/// Whoever says a bound has one at the system as well, above it.
#[test]
fn a_bound_is_one_for_the_process() {
    let pair = Pair::csv(60);
    let limit = |words: &[&str]| {
        let mut waits = Running::start(pair.run(NAMES[0], words));
        waits.hear("waiting");
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", waits.id())).unwrap();
        waits.kill();
        let line = limits.lines().find(|line| line.starts_with("Max data size")).unwrap().to_owned();
        line.split_whitespace().nth(3).unwrap().parse::<u64>().ok()
    };
    let said = limit(&["--memory", "1G"]).expect("there is a limit");
    assert!(said > 5 << 28, "{said}");
    assert!(limit(&[]).is_none_or(|limit| limit != said));
}

#[test]
fn plans_say_what_rows_outside_memory_read_and_write() {
    let pair = Pair::csv(60);
    let study = pair.path("study.toml").display().to_string();
    let plan = |words: &[&str]| tacit(["plan", &study].iter().chain(words));
    let said = plan(&["--rows", "500M", "--json"]).fine().json();
    let parties = said["spool"].as_array().unwrap();
    assert_eq!(parties.len(), 2);
    let advertiser = &parties[1];
    assert_eq!(advertiser["party"], "advertiser");
    let passes = advertiser["passes"].as_array().unwrap();
    let of = |pass: &Value, what: &str| pass[what].as_u64().unwrap();
    let most = passes.iter().map(|pass| of(pass, "on_disk")).max().unwrap();
    assert_eq!(of(advertiser, "on_disk"), most);
    assert!(of(advertiser, "memory_least") > 500 << 20);
    let text = plan(&["--rows", "500M"]).fine().stdout;
    for part in ["rows of advertiser outside memory (`state`)", "on disk at most", "lay out"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A join to shares lays nothing out, and needs more memory for what it routes.
    let pid = std::fs::read_to_string(pair.path("study.toml")).unwrap();
    let ps3i = pid.replace("\"pid\"", "\"ps3i\"");
    assert_ne!(pid, ps3i);
    let joined = pair.path("joined.toml").display().to_string();
    std::fs::write(&joined, ps3i).unwrap();
    let of_join = |words: &[&str]| tacit(["plan", &joined, "--rows", "20M"].iter().chain(words)).fine();
    let said = of_join(&["--json"]).json();
    let passes = said["spool"][0]["passes"].as_array().unwrap();
    let stages: Vec<&str> = passes.iter().map(|pass| pass["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["read", "settle", "tag", "match", "keep", "compute"]);
    assert!(said["spool"][0]["memory_least"].as_u64().unwrap() > 2 * 54 * 20_000_000);
    let text = of_join(&[]).stdout;
    assert!(text.contains("rows of advertiser outside memory") && !text.contains("lay out"), "{text}");
    assert!(plan(&["--rows", "10k", "--json"]).fine().json()["spool"].is_null(), "they fit");
    // One party whose rows stay in memory, which has to hold them.
    let bare = pair.path("publisher.toml").display().to_string();
    let held = plan(&["--rows", "10M", "--party", &bare]).fine().stdout;
    assert!(
        held.contains("assumed    memory: about") && held.contains("of 1024 MiB for publisher"),
        "{held}"
    );
    plan(&["--rows", "100M", "--party", &bare]).failed(2, &["need about", "allows 1024 MiB", "`state`"]);
    // One party, with its memory, its data and its disk.
    let state = format!("state = \"{}\"\nmemory", pair.path("state").display());
    let file = pair.path("advertiser.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{state} = \"192M\"\n{text}")).unwrap();
    let file = file.display().to_string();
    let said = plan(&["--rows", "2M", "--party", &file, "--json"]).fine().json();
    let own = said["spool"].as_array().unwrap();
    assert_eq!((own.len(), &own[0]["party"]), (1, &"advertiser".into()));
    let source = std::fs::metadata(pair.path("advertiser.csv")).unwrap().len();
    assert_eq!(own[0]["passes"][0]["reads"], source);
    let free = store::free_bytes(pair.folder.path()).unwrap();
    plan(&["--rows", "500M", "--party", &file]).failed(2, &["raise it to", "allows 192 MiB"]);
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replacen("192M", "64G", 1)).unwrap();
    if free < 600_000_000_000 {
        let done = plan(&["--rows", "2000M", "--party", &file]);
        done.failed(2, &["take up to", "on the disk of", "left: free", "a bucket has no end"]);
        assert!(done.stdout.contains("on disk at most"), "the table comes first: {}", done.stdout);
    }
}

/// Four and sixteen million rows under the same bound: the peak does not grow with the rows.
#[test]
#[ignore = "takes most of an hour on two cores, and 10 GB of disk; `make soak` runs it"]
fn peaks_are_flat_from_four_to_sixteen_million_rows() {
    let state = tempfile::tempdir().unwrap();
    let measure = |rows| scale(state.path(), &["--rows", rows, "--memory", "640M"]).fine().json();
    let [few, many] = ["4M", "16M"].map(measure);
    println!("{few}\n{many}");
    for measured in [&few, &many] {
        assert_eq!((&measured["spooled"], &measured["within_memory"]), (&true.into(), &true.into()));
    }
    for (few, many) in peaks(&few).into_iter().zip(peaks(&many)) {
        let grows = many as f64 / few as f64 - 1.0;
        assert!(grows.abs() <= 0.1, "{few} bytes, then {many}");
    }
}

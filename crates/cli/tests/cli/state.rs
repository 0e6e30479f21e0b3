//! `tacit state`: a place is asked what a run will ask of it.

use crate::support::tacit;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_folder_is_probed_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("state").display().to_string();
    let ledger = dir.path().join("a.ledger").display().to_string();
    let done = tacit(["state", "probe", &place, "--size", "3M", "--ledger", &ledger, "--json"]).fine();
    let said = done.json();
    for yes in ["conditional", "fences", "locks"] {
        assert_eq!(said[yes], true, "{yes}: {said}");
    }
    assert_eq!(said["object_bytes"], 3_000_000);
    for measured in ["create_ms", "append_ms", "range_ms", "write_mb_s", "read_mb_s", "run_read_mb_s"] {
        assert!(said[measured].as_f64().unwrap() > 0.0, "{measured}: {said}");
    }
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    let key = dir.path().join("a.ledger.state-key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let done =
        tacit(["state", "probe", &format!("file://{place}"), "--size", "1", "--ledger", &ledger]).fine();
    assert!(done.stdout.contains("can hold the state of a run"), "{}", done.stdout);
    assert!(done.stdout.contains("kept apart locked against other processes"), "{}", done.stdout);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    tacit(["state", "probe", &place, "--ledger", &ledger, "--json"])
        .failed(2, &["others may read the state key", "mode 0644", "chmod 600"]);
}

#[test]
fn places_that_do_not_do_are_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (place, part) in [
        (open.display().to_string(), "(mode 0755), which is to hold state; run `chmod 700 "),
        ("ftp://a/b".into(), "state lies in a folder (PATH, file:///PATH) or in s3://BUCKET/PREFIX"),
        ("s3://KEY:SECRET@bucket/a".into(), "credentials come from the environment or the machine's role"),
        ("s3://bucket/a b".into(), "names are words of letters, digits"),
    ] {
        let done = tacit(["state", "probe", &place, "--json"]);
        done.failed(2, &[part]);
        assert!(!done.stderr.contains("SECRET") && !done.stdout.contains("SECRET"));
    }
    tacit(["state", "probe", "s3://bucket/a", "--endpoint", "http://127.0.0.1:1"])
        .failed(2, &["http://127.0.0.1:1 is without TLS"]);
    let state = dir.path().join("state").display().to_string();
    tacit(["state", "probe", &state, "--size", "4.1G"]).failed(2, &["--size 4100000000 is out of range"]);
    tacit(["state", "probe", "/proc/nowhere/state"])
        .failed(1, &["cannot make the folder /proc/nowhere/state"]);
}

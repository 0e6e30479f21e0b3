//! Two processes: what goes right, and what each says when it goes wrong.

use crate::support::parties::make_key;
use crate::support::{NAMES, Pair, Running, command};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn two_parties_finish_and_write_their_reports() {
    let pair = Pair::csv(600);
    let [publisher, advertiser] = pair.both([&[], &[]]).map(|done| done.fine().json());
    assert_eq!((publisher["party"].as_str(), advertiser["party"].as_str()), (Some(NAMES[0]), Some(NAMES[1])));
    // Made-up rows hide that there are 900.
    let union = publisher["disclosed"]["union"].as_u64().unwrap();
    assert!((901..4000).contains(&union) && !publisher["disclosed"]["dummies"].is_null(), "{union}");
    assert_eq!(publisher["study"]["hash"], advertiser["study"]["hash"]);
    for name in NAMES {
        let html = std::fs::read_to_string(pair.path(&format!("out-{name}/report.html"))).unwrap();
        assert!(html.contains("<svg") && !html.contains("src=\"http"));
    }
}

#[test]
fn other_studies_are_told_apart_on_both_sides() {
    let pair = Pair::csv(20);
    let other =
        std::fs::read_to_string(pair.path("study.toml")).unwrap().replace("clamp = 100", "clamp = 99");
    std::fs::write(pair.path("other.toml"), other).unwrap();
    let file = pair.path("other.toml");
    let done = pair.both([&[], &["--study", file.to_str().unwrap()]]);
    for side in done {
        side.failed(3, &["holds another study", "tacit check --peer-study"]);
    }
}

#[test]
fn a_key_that_the_study_does_not_name_is_refused() {
    let pair = Pair::csv(20);
    let stranger = make_key(pair.folder.path(), "stranger");
    let study = std::fs::read_to_string(pair.path("study.toml")).unwrap();
    let own = study.lines().filter(|line| line.starts_with("key")).nth(1).unwrap();
    let changed = study.replace(own, &format!("key = \"{stranger}\""));
    std::fs::write(pair.path("changed.toml"), changed).unwrap();
    let mut publisher = Running::start(pair.run("publisher", &[]));
    publisher.hear("waiting for advertiser");
    let study = pair.path("changed.toml");
    let identity = pair.path("stranger.key");
    let flags = ["--study", study.to_str().unwrap(), "--identity", identity.to_str().unwrap()];
    Running::start(pair.run("advertiser", &flags)).end().failed(3, &["refused our key"]);
    let line = publisher.hear("refused a connection");
    assert!(line.contains("no party of this study"), "{line}");
}

#[test]
fn who_does_not_speak_tls_is_refused_and_the_peer_is_still_awaited() {
    let pair = Pair::csv(300);
    let mut publisher = Running::start(pair.run("publisher", &[]));
    publisher.hear("waiting for advertiser");
    let mut stranger = TcpStream::connect(&pair.address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let line = publisher.hear("refused a connection");
    assert!(line.contains("did not speak TLS but HTTP"), "{line}");
    let advertiser = Running::start(pair.run("advertiser", &[]));
    publisher.end().fine();
    advertiser.end().fine();
}

#[test]
fn a_peer_that_sends_garbage_is_named() {
    let pair = Pair::csv(20);
    let listener = TcpListener::bind(&pair.address).unwrap();
    let garbage = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(&[0xa5; 4096]);
        // Read on, or the close could overtake the garbage.
        let _ = stream.read(&mut [0; 4096]);
    });
    let done = Running::start(pair.run("advertiser", &[])).end();
    done.failed(3, &["did not speak TLS", "check that this is the address of publisher"]);
    garbage.join().unwrap();
}

#[test]
fn a_port_in_use_is_named() {
    let pair = Pair::csv(20);
    let _taken = TcpListener::bind(&pair.address).unwrap();
    let done = Running::start(pair.run("publisher", &[])).end();
    done.failed(3, &[&pair.address, "in use by another process", "another port"]);
}

#[test]
fn a_peer_that_dies_is_noticed_at_once() {
    let pair = Pair::csv(20_000);
    let mut publisher = Running::start(pair.run("publisher", &["--events"]));
    let mut advertiser = Running::start(pair.run("advertiser", &[]));
    publisher.hear("match/pid");
    advertiser.kill();
    let done = publisher.end();
    done.failed(3, &["publisher at match/pid", "with advertiser", "see the peer's own output"]);
    assert_eq!(done.json()["error"]["peer"], "advertiser");
}

/// A party that refuses by itself says so, and nothing of why, whichever side dials: nobody waits for it.
#[test]
fn who_refuses_tells_the_one_that_waits() {
    let pair = Pair::csv(400);
    for (waits, leaves) in [("advertiser", "publisher"), ("publisher", "advertiser")] {
        let mut waiting = Running::start(pair.run(waits, &[]));
        waiting.hear(&format!("waiting for {leaves}"));
        let start = Instant::now();
        let left = Running::start(pair.run(leaves, &["--max-rho", "0.05"])).end();
        assert_eq!(left.code, 5, "{}", left.stderr);
        let told = waiting.end();
        told.failed(5, &[&format!("{leaves} takes no part"), "nothing was sent", "own output"]);
        assert!(!told.json()["error"]["message"].to_string().contains("max_rho"), "{}", told.stderr);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

/// Whether an arm has enough rows is an exact bit of the data: who refuses for that says nothing, as if it
/// had not begun.
#[test]
fn what_data_decide_is_told_to_nobody() {
    let pair = Pair::csv(400);
    let mut waiting = Running::start(pair.run("advertiser", &["--deadline", "4s"]));
    waiting.hear("waiting for publisher");
    let file = pair.path("publisher.toml").display().to_string();
    let left = Running::start(command(["run".to_owned(), file])).end();
    assert_eq!(left.code, 5, "{}", left.stderr);
    assert!(
        left.stderr.contains("--spend-anyway") && !left.stderr.contains("takes no part"),
        "{}",
        left.stderr
    );
    let told = waiting.end();
    told.failed(3, &["publisher"]);
    assert!(!told.stderr.contains("takes no part"), "{}", told.stderr);
}

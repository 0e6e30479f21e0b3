//! Numbers for programs that watch machines.

use crate::house::House;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

fn ask(house: &House, path: &str) -> String {
    let mut stream = UnixStream::connect(house.path("metrics.sock")).expect("it listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

/// The value of a metric, with its label where it has one.
#[track_caller]
fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    line.parse().unwrap_or_else(|_| panic!("{name} is no number: {line}"))
}

#[test]
fn numbers_are_on_a_socket_alone_and_name_nobody() {
    let mut house = House::with_web("metrics = \"metrics.sock\"", "");
    let olga = house.person("olga", &["operator"]);
    let before = value(&ask(&house, "/metrics"), "tacit_requests_total{class=\"4xx\"}");
    house.get(&olga, "/").is(200);
    for _ in 0..3 {
        // The page of the service has no such path.
        house.get(&olga, "/metrics").is(404).never_says("tacit_sessions");
    }
    let answer = ask(&house, "/metrics");
    let (head, text) = answer.split_once("\r\n\r\n").expect("an answer");
    assert!(head.contains("200 OK") && head.contains("text/plain; version=0.0.4"), "{head}");
    assert_eq!(value(text, "tacit_requests_total{class=\"4xx\"}"), before + 3.0);
    assert_eq!((value(text, "tacit_sessions"), value(text, "tacit_peers")), (1.0, 1.0));
    assert_eq!((value(text, "tacit_links_up"), value(text, "tacit_rules_accepted")), (0.0, 1.0));
    assert!(value(text, "tacit_log_entries") >= 3.0, "{text}");
    assert!(value(text, "process_resident_memory_bytes") > 1e6, "{text}");
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let named = text.contains(&format!("# TYPE {} ", name.split('{').next().expect("a name")));
        assert!(named, "{line} has no type");
    }
    // Of the people, the organisations, the data and the rules.
    for word in ["olga", "registry", "hospitals", "trial", "child_id", "operator", "127.0.0.1"] {
        assert!(!text.contains(word), "{word} is in {text}");
    }
    assert!(ask(&house, "/health").starts_with("HTTP/1.1 200"));
    assert!(ask(&house, "/studies").starts_with("HTTP/1.1 404"), "pages are not here");
    let socket = std::fs::metadata(house.path("metrics.sock")).expect("a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o660);
    // One that an earlier process left is in nobody's way.
    house.kill();
    house.start();
    assert_eq!(value(&ask(&house, "/metrics"), "tacit_sessions"), 1.0);
}

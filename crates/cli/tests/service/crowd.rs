//! Two hundred people at once, each with a session and a connection of their own. How fast they are answered
//! is for `make bench-service`.

use crate::house::{House, TlsStream};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::time::Duration;

/// Accounts, and sessions of each.
const PEOPLE: usize = 40;
const SESSIONS: usize = 5;
const PAGES: [&str; 4] = ["/", "/studies", "/budget", "/account"];

/// A session that the proxy began for somebody.
fn session(house: &House, name: &str) -> String {
    let mut stream = UnixStream::connect(house.path("web.sock")).expect("it listens");
    let head = format!(
        "GET / HTTP/1.1\r\nHost: tacit.registry.example\r\nConnection: close\r\nX-Forwarded-User: {name}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    cookie.split(';').next().expect("a pair").to_owned()
}

fn ask(stream: &mut TlsStream, path: &str, cookie: &str) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: tacit.registry.example\r\nCookie: {cookie}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    stream.flush().expect("sent");
}

/// What comes up to some words and with them, and so many bytes after them.
fn read(stream: &mut TlsStream, held: &mut Vec<u8>, end: &str, more: impl Fn(&str) -> usize) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let mut bytes = [0; 4_096];
    loop {
        let at = held.windows(end.len()).position(|word| word == end.as_bytes());
        if let Some(at) = at.map(|at| at + end.len()) {
            let whole = at + more(&text(&held[..at]));
            if held.len() >= whole {
                return text(&held.drain(..whole).collect::<Vec<u8>>());
            }
        }
        let many = stream.read(&mut bytes).expect("more comes");
        assert!(many > 0, "the service ended the connection");
        held.extend_from_slice(&bytes[..many]);
    }
}

fn length(head: &str) -> usize {
    let line = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    line.and_then(|length| length.parse().ok()).unwrap_or_else(|| panic!("no length: {head}"))
}

#[test]
fn two_hundred_people_are_answered_at_once_and_each_sees_their_own() {
    let uid = rustix::process::getuid().as_raw();
    let web = format!("proxy = {{ socket = \"web.sock\", uid = {uid}, user_header = \"X-Forwarded-User\" }}");
    let house = House::with_web(&web, "");
    let names: Vec<String> = (0..PEOPLE).map(|number| format!("person-{number:02}")).collect();
    for name in &names {
        house.tacit(&["account", "add"], &[name, "--role", "steward"]);
    }
    let of = |name| (0..SESSIONS).map(|_| session(&house, name)).collect::<Vec<_>>();
    let all: Vec<(&String, String)> =
        names.iter().flat_map(|name| of(name).into_iter().map(move |cookie| (name, cookie))).collect();
    let (asked, listening) = (Barrier::new(all.len()), Barrier::new(all.len() + 1));
    std::thread::scope(|scope| {
        let people = all.iter().enumerate().map(|(at, (name, cookie))| {
            let (house, asked, listening) = (&house, &asked, &listening);
            scope.spawn(move || {
                let mut stream = house.connect_from(1 + u8::try_from(at / 50).expect("four addresses"));
                stream.sock.set_read_timeout(Some(Duration::from_secs(120))).expect("set");
                let mut held = Vec::new();
                asked.wait();
                for path in PAGES {
                    ask(&mut stream, path, cookie);
                    let page = read(&mut stream, &mut held, "\r\n\r\n", length);
                    assert!(page.starts_with("HTTP/1.1 200"), "{path} of {name}: {page}");
                    assert!(page.contains(&format!("<b>{name}</b>")), "{path} of {name}: {page}");
                }
                ask(&mut stream, "/events", cookie);
                let head = read(&mut stream, &mut held, "\r\n\r\n", |_| 0);
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                listening.wait();
                read(&mut stream, &mut held, "event: changed\n", |_| 0);
            })
        });
        let people: Vec<_> = people.collect();
        listening.wait();
        // Somebody else changes something, as another process.
        house.tacit(&["account", "add"], &["olga", "--role", "operator"]);
        people.into_iter().for_each(|one| one.join().expect("answered and told"));
    });
}

//! Signing in by a proxy on the machine, which only its own user can be.

use super::Rooms;
use crate::settings::WebProxy;
use crate::web::listen::{hear, proxy_socket, router};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Asks through the socket; what came back, if anything.
fn ask(rooms: &Rooms, path: &str, headers: &str) -> String {
    send(rooms, &format!("GET {path}"), headers, "")
}

fn send(rooms: &Rooms, what: &str, headers: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(rooms.path("web.sock")).expect("it listens");
    let head = format!(
        "{what} HTTP/1.1\r\nHost: tacit.registry.example\r\nConnection: close\r\nContent-Length: \
         {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    // Who is not the proxy may be cut off while speaking.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn a_proxy_is_believed_by_its_user_alone() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    rooms.guest("anna", &["analyst"]);
    let own = rustix::process::getuid().as_raw();
    let proxy =
        |uid| WebProxy { socket: rooms.path("web.sock"), uid, user_header: "x-forwarded-user".into() };
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    let listen = |uid| {
        let _inside = runtime.enter();
        let socket = proxy_socket(&proxy(uid)).expect("listens");
        runtime.spawn(hear(socket, proxy(uid), router(rooms.house.clone())))
    };
    // Of another user nothing is taken.
    let other = listen(own + 1);
    assert_eq!(ask(&rooms, "/", "X-Forwarded-User: olga\r\n"), "");
    other.abort();
    listen(own);
    let shown = ask(&rooms, "/accounts", "X-Forwarded-User: olga\r\n");
    assert!(shown.starts_with("HTTP/1.1 200") && shown.contains("<b>olga</b>"), "{shown}");
    let cookie = shown.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    let cookie = cookie.split(';').next().expect("a pair");
    // The password does not count as given.
    assert!(shown.contains("/account/prove"), "{shown}");
    // The session goes on; a cookie of somebody else, a name that is none and two names are nothing.
    let again = ask(&rooms, "/accounts", &format!("X-Forwarded-User: olga\r\nCookie: {cookie}\r\n"));
    assert!(again.starts_with("HTTP/1.1 200") && !again.contains("set-cookie"), "{again}");
    let anna = ask(&rooms, "/", &format!("X-Forwarded-User: anna\r\nCookie: {cookie}\r\n"));
    assert!(anna.contains("<b>anna</b>") && anna.contains("set-cookie"), "{anna}");
    for header in ["", "X-Forwarded-User: nobody\r\n", "X-Forwarded-User: anna\r\nX-Forwarded-User: olga\r\n"]
    {
        let shown = ask(&rooms, "/accounts", &format!("{header}Cookie: {cookie}\r\n"));
        assert!(shown.starts_with("HTTP/1.1 303"), "{header}: {shown}");
    }
    // Nobody else is believed: without the socket the header is not looked at.
    let request = axum::http::Request::builder().uri("/accounts").header("host", "tacit.registry.example");
    let request = request.header("x-forwarded-user", "olga").body(axum::body::Body::empty());
    rooms.ask(request.expect("a request")).is(303);
    rooms.get(&olga, "/audit?action=signed+in+by").says("signed in by the proxy");
    runtime.shutdown_background();
}

/// A service behind a proxy of the own user.
fn behind(rooms: &Rooms) -> tokio::runtime::Runtime {
    let uid = rustix::process::getuid().as_raw();
    let proxy = WebProxy { socket: rooms.path("web.sock"), uid, user_header: "x-forwarded-user".into() };
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    let inside = runtime.enter();
    let socket = proxy_socket(&proxy).expect("listens");
    runtime.spawn(hear(socket, proxy, router(rooms.house.clone())));
    drop(inside);
    runtime
}

#[test]
fn another_site_makes_a_browser_begin_no_sessions() {
    let rooms = Rooms::begin("");
    rooms.guest("olga", &["operator"]);
    let runtime = behind(&rooms);
    let sessions = || rooms.house.store.sessions_of("olga", super::now()).expect("reads").len();
    for site in ["cross-site", "same-site"] {
        for path in ["/", "/assets/1/none.png", "/accounts"] {
            let shown = ask(&rooms, path, &format!("X-Forwarded-User: olga\r\nSec-Fetch-Site: {site}\r\n"));
            assert!(!shown.contains("set-cookie"), "{shown}");
        }
        let shown = ask(&rooms, "/", &format!("X-Forwarded-User: olga\r\nSec-Fetch-Site: {site}\r\n"));
        assert!(shown.contains("One more click"), "{shown}");
        assert_eq!(sessions(), 1, "the one that she has");
    }
    // A click on our own page begins one, and many that nobody keeps are slowed down.
    let own = || ask(&rooms, "/", "X-Forwarded-User: olga\r\nSec-Fetch-Site: same-origin\r\n");
    assert!(own().contains("set-cookie"));
    let slowed = (0..20).map(|_| own()).filter(|shown| shown.starts_with("HTTP/1.1 429")).count();
    assert!(slowed > 0, "twenty at once are more than a person begins");
    runtime.shutdown_background();
}

#[test]
fn wrong_passwords_behind_a_proxy_count_by_name() {
    let rooms = Rooms::begin("");
    rooms.guest("olga", &["operator"]);
    let runtime = behind(&rooms);
    // As if fourteen had been tried an hour ago: one more makes the name wait a quarter of an hour.
    let (store, now) = (&rooms.house.store, super::now());
    let name = crate::store::tried_by_proxy("olga");
    for _ in 0..14 {
        store.count_wrong(&name, "127.0.0.1", now - 3_600).expect("counted");
    }
    let tried = || {
        let shown = ask(&rooms, "/accounts", "X-Forwarded-User: olga\r\n");
        let cookie = shown.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        let cookie = cookie.split(';').next().expect("a pair");
        let form = shown.split_once("action=\"/account/prove\"").expect("a form").1;
        let word = form.split_once("name=\"csrf\" value=\"").expect("a word").1;
        let word = word.split_once('"').expect("ends").0;
        let headers = format!(
            "X-Forwarded-User: olga\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: \
             application/x-www-form-urlencoded\r\n"
        );
        send(&rooms, "POST /account/prove", &headers, &format!("csrf={word}&password=wrong"))
    };
    let first = tried();
    assert!(first.starts_with("HTTP/1.1 403") && first.contains("The password was wrong"), "{first}");
    // A new session is a new cookie and no new five guesses.
    let second = tried();
    assert!(second.starts_with("HTTP/1.1 429") && second.contains("Too many wrong passwords"), "{second}");
    // Nobody who tries the name elsewhere is kept out by that, nor keeps anybody out here.
    assert_eq!(store.may_try("olga", Some("10.0.0.1"), now).expect("reads"), crate::store::Allowed::Now);
    runtime.shutdown_background();
}

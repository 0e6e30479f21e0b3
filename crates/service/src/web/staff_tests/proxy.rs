//! Signing in by a proxy on the machine, which only its own user can be.

use super::Rooms;
use crate::settings::WebProxy;
use crate::web::listen::{hear, proxy_socket, router};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Asks through the socket; what came back, if anything.
fn ask(rooms: &Rooms, path: &str, headers: &str) -> String {
    let mut stream = UnixStream::connect(rooms.path("web.sock")).expect("it listens");
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: tacit.registry.example\r\nConnection: close\r\n{headers}\r\n");
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

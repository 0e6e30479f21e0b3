//! Who knows a name can have it wait; who has signed in to it before is not kept out by that.

use super::{PageShown, Rooms, now};
use crate::store::Store;
use axum::body::Body;
use axum::http::Request;

const PASSWORD: &str = "wandering copper teapot";

/// A sign-in of olga's from a browser that has this cookie.
fn sign_in(rooms: &Rooms, device: &str, password: &str) -> PageShown {
    let request = Request::builder().method("POST").uri("/sign-in").header("host", "tacit.registry.example");
    let request = request.header("sec-fetch-site", "same-origin").header("cookie", device);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let form = format!("name=olga&password={}", password.replace(' ', "+"));
    rooms.ask(request.body(Body::from(form)).expect("a request"))
}

/// Strangers who try the name until it waits a quarter of an hour, also from this very address.
fn attack(store: &Store) {
    (0..14).for_each(|_| store.count_wrong("olga", "10.0.0.9", now()).expect("counted"));
    (0..30).for_each(|_| store.count_wrong("nobody", "127.0.0.1", now()).expect("counted"));
}

fn has_password(rooms: &Rooms, password: &str) {
    let hash = rooms.house.desk.hash(password).expect("free").expect("hashes");
    let store = rusqlite::Connection::open(rooms.path("service.db")).expect("opens");
    store.execute("UPDATE accounts SET password = ?1 WHERE name = 'olga'", [&hash]).expect("set");
}

#[test]
fn a_browser_of_an_earlier_sign_in_is_not_kept_out_by_strangers() {
    let rooms = Rooms::begin("");
    rooms.guest("olga", &["operator"]);
    has_password(&rooms, PASSWORD);
    let first = sign_in(&rooms, "", PASSWORD).is(303);
    assert!(first.cookie.expect("a session").starts_with("__Host-tacit="));
    let set = first.device.expect("a mark");
    assert!(set.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=15552000"), "{set}");
    let device = set.split(';').next().expect("a pair");
    attack(&rooms.house.store);
    // Whoever comes for the first time waits, with the right password too, and with a mark that is none.
    sign_in(&rooms, "", PASSWORD).is(429);
    let bent = device.replacen("device=", "device=0", 1);
    sign_in(&rooms, &bent[..device.len()], PASSWORD).is(429);
    let again = sign_in(&rooms, device, PASSWORD).is(303);
    assert_eq!(again.device.expect("it is the same one").split(';').next(), Some(device));
    // That it came in forgives strangers nothing.
    sign_in(&rooms, "", PASSWORD).is(429);
    // Its own wrong ones are bounded like anybody's, and it has no say over other names.
    attack(&rooms.house.store);
    (0..5).for_each(|_| _ = sign_in(&rooms, device, "wandering copper kettle").is(401));
    // The first wait, a second, may be over before a slow machine asks again.
    let store = rusqlite::Connection::open(rooms.path("service.db")).expect("opens");
    let longer = "UPDATE tries SET until = until + 600 WHERE wrong = 5 AND until > last";
    assert_eq!(store.execute(longer, []).expect("set"), 1, "five wrong ones in a row wait");
    sign_in(&rooms, device, PASSWORD).is(429);
    let acts = rooms.house.store.acts_of("olga", 50).expect("reads");
    assert!(acts.iter().any(|act| act.what.starts_with("wrong password") && act.by == "address 127.0.0.1"));
    // With another password no mark of before holds.
    store.execute("DELETE FROM tries", []).expect("forgotten");
    attack(&rooms.house.store);
    has_password(&rooms, "another copper teapot");
    sign_in(&rooms, device, "another copper teapot").is(429);
}

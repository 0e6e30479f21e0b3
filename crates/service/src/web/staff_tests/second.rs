//! A second step at sign-in.

use super::{Rooms, now};
use crate::totp;

const PASSWORD: &str = "wandering copper teapot";

#[test]
fn codes_are_asked_for_counted_once_and_required_of_roles() {
    let rooms = Rooms::begin("[policy]\nsecond_step = [\"operator\"]\n");
    let anna = rooms.guest("anna", &["analyst"]);
    let olga = rooms.guest("olga", &["operator"]);
    rooms.get(&anna, "/data").is(200);
    // An operator sets it up before anything else.
    rooms.get(&olga, "/accounts").is(403).says("A second step first");
    let word = olga.word("add account", "");
    rooms.send(Some(&olga), "/accounts", &[("csrf", &word), ("name", "x"), ("role", "viewer")]).is(403);
    let page =
        rooms.deed(&olga, "/account", "/account/second", &[]).is(200).says("otpauth://totp/registry:olga");
    let store = rusqlite::Connection::open(rooms.path("service.db")).expect("opens");
    let sql = "SELECT totp_new FROM accounts WHERE name = 'olga'";
    let secret: Vec<u8> = store.query_row(sql, [], |row| row.get(0)).expect("a secret");
    assert_eq!(page.told().replace(' ', ""), totp::base32(&secret));
    let begin = [("csrf", olga.word("begin second step", ""))];
    let begin = |code: &str| {
        rooms.send(Some(&olga), "/account/second/begin", &[("csrf", &begin[0].1), ("code", code)])
    };
    begin("000000000").is(422).says("Is the clock of the telephone right?");
    rooms.get(&olga, "/accounts").is(403);
    let code = totp::code(&secret, now() / totp::STEP_SECONDS);
    let shown = begin(&code).is(200);
    let codes = shown.body.split_once("<ol><li>").expect("codes").1;
    let (recovery, another) = (codes[..14].to_owned(), codes[14 + "</li><li>".len()..][..14].to_owned());
    assert_eq!(shown.body.matches("<li>").count(), 10 + shown.body.matches("<li><a").count());
    rooms.get(&olga, "/accounts").is(200);
    // A password that people have, and the code: one alone is nothing.
    let hash = rooms.house.desk.hash(PASSWORD).expect("free").expect("hashes");
    store.execute("UPDATE accounts SET password = ?1 WHERE name = 'olga'", [&hash]).expect("set");
    let sign_in = |code: &str| {
        rooms.send(None, "/sign-in", &[("name", "olga"), ("password", PASSWORD), ("code", code)])
    };
    sign_in("").is(401).says("or the code is another one");
    sign_in(&code).is(401);
    sign_in(&recovery).is(303);
    sign_in(&recovery).is(401);
    // What was used is used; a recovery code is not in the store, and the log has no secret.
    let left: i64 = store.query_row("SELECT count(*) FROM recovery", [], |row| row.get(0)).expect("reads");
    assert_eq!(left, 9);
    // Who has the password and a browser of hers does not end it without a code.
    let elsewhere = rooms.again("olga");
    let end = |code: &str| rooms.deed(&olga, "/account", "/account/second/end", &[("code", code)]);
    end("").is(422).says("neither telephone nor paper");
    end(&recovery).is(422);
    end(&code).is(422);
    assert!(rooms.house.store.has_second("olga").expect("reads"));
    rooms.get(&elsewhere, "/account").is(200);
    let wrong = || rooms.house.store.count_wrong("olga second step", "127.0.0.1", now()).expect("counted");
    (0..12).for_each(|_| wrong());
    end(&another).is(429).says("too many wrong codes");
    store.execute("DELETE FROM tries", []).expect("forgotten");
    end(&another).is(303);
    assert!(!rooms.house.store.has_second("olga").expect("reads"));
    rooms.get(&elsewhere, "/account").is(303);
    sign_in("").is(303);
    let acts = rooms.house.store.acts_of("olga", 50).expect("reads");
    for what in ["second step set up", "second step ended"] {
        assert!(acts.iter().any(|act| act.what == what), "{what}");
    }
}

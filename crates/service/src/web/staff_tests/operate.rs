//! What an operator sees of the machine, and copies of what must not be lost.

use super::{Rooms, now};
use crate::web::House;

#[test]
fn an_operator_sees_the_machine_and_ends_sessions() {
    let rooms = Rooms::begin("");
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    rooms.get(&sam, "/operate").is(403);
    let page = rooms.get(&olga, "/operate").is(200).says("Nothing waits for its turn.").says("free of");
    let page = page.says("Memory of this process").says("sam (").says("this one");
    let to = page.body.split_once("/operate/sessions/").expect("a form").1;
    let to = format!("/operate/sessions/{}/end", to.split_once('/').expect("ends").0);
    rooms.send(Some(&sam), &to, &[("csrf", &sam.word("end session of another", "2"))]).is(403);
    rooms.deed(&olga, "/operate", &to, &[]).is(303);
    rooms.get(&sam, "/").is(303);
    rooms.get(&olga, "/audit?action=ended").says("ended a session");
    rooms
        .send(
            Some(&olga),
            "/operate/sessions/99/end",
            &[("csrf", &olga.word("end session of another", "99"))],
        )
        .is(404);
}

#[test]
fn a_copy_is_used_when_somebody_says_so() {
    let rooms = Rooms::begin("");
    let olga = rooms.guest("olga", &["operator"]);
    let folder = rooms.path("backup");
    let made = crate::back_up(&rooms.path("service.toml"), &folder, now()).expect("made");
    let names: Vec<&str> = made.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["service.db", "service.toml"], "there is no ledger yet");
    let again = crate::back_up(&rooms.path("service.toml"), &folder, now());
    assert!(again.is_err(), "a folder that is there is left alone");
    rooms.get(&olga, "/").is(200);
    let list = std::fs::read_to_string(folder.join("backup.json")).expect("reads");
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let bytes = std::fs::read(folder.join("service.db")).expect("reads");
    assert_eq!(list["files"][0]["hash"].as_str(), Some(blake3::hash(&bytes).to_hex().as_str()));
    // Restored: it does not start, until somebody says that the copy may be used; nobody is signed in.
    let file = folder.join("service.toml");
    let refused = House::open(&file).err().expect("refused").to_string();
    assert!(refused.contains("tacit service restored"), "{refused}");
    let store = crate::Store::open(&folder.join("service.db")).expect("opens");
    store.use_copy("2026-11-27", now()).expect("said");
    assert!(store.copy_used_ms().expect("reads") > 0);
    assert!(store.all_sessions(now()).expect("reads").is_empty());
    assert!(store.account("olga", now()).expect("reads").is_some());
    House::open(&file).expect("opens");
    let log = trail::verify(&rusqlite::Connection::open(folder.join("service.db")).expect("opens"));
    assert_eq!(log.expect("a chain").last, made.log.0 + 1);
}

#[test]
fn help_begins_with_the_own_role_and_is_searched() {
    let rooms = Rooms::begin("");
    let sam = rooms.guest("sam", &["steward"]);
    rooms
        .get(&sam, "/help")
        .is(200)
        .says("You answer for data.")
        .never_says("You run the machine")
        .says("/help/rho");
    rooms.get(&sam, "/help?q=made-up+rows").says("/help/dummies").never_says("/help/key");
    rooms.get(&sam, "/help?q=%3Ci%3E").says("Nothing is said of that here.").never_says("<i>");
    rooms.get(&sam, "/help/lineage").is(200).says("never used for other data");
    rooms.get(&sam, "/help/nothing").is(404);
}

//! Other organisations by page.

use super::{PageShown, Rooms, now};
use crate::store::{ProposalFilter, Speaker};
use crate::web::watch;
use net::identity::Identity;
use statements::ProposedStudy;

/// The rows of a test, as `step: yes or no`.
fn steps(shown: &PageShown) -> Vec<String> {
    let rows = shown.body.split("<th scope=\"row\">").skip(1);
    let row = |row: &str| {
        let name = row.split('<').next().unwrap_or_default();
        let came = row.split_once("data-label=\"Done\">").map_or("", |(_, rest)| rest);
        format!("{name}: {}", came.split('<').next().unwrap_or_default())
    };
    rows.map(row).collect()
}

/// Two services that know each other; the second one listens for others.
fn two() -> (Rooms, Rooms) {
    let keys = [(); 2].map(|()| Identity::generate().expect("a key"));
    let address = base::free_address().expect("a port");
    let names = keys.each_ref().map(|key| key.fingerprint().to_string());
    let own = Rooms::with_key(
        &keys[0],
        &format!("[peers.clinic]\nkey = \"{}\"\naddress = \"{address}\"\n", names[1]),
    );
    let link = format!("[link]\nlisten = \"{address}\"\nrun_ports = \"7001-7008\"\n");
    let other = Rooms::with_key(&keys[1], &format!("{link}[peers.registry]\nkey = \"{}\"\n", names[0]));
    (own, other)
}

#[test]
fn a_peer_is_reached_step_by_step() {
    let (own, other) = two();
    let olga = own.guest("olga", &["operator"]);
    let page = own.get(&olga, "/peers").is(200).says("clinic").says("0 of 20 waiting, 0 of 100 in a day");
    page.says("none yet: it comes to us").says("Our own key");
    let test = || own.deed(&olga, "/peers/clinic", "/peers/clinic/test", &[]).is(200);
    let shown = test();
    assert_eq!(steps(&shown), ["Resolve: yes", "Connect: no"], "{}", shown.body);
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    let house = other.house.clone();
    runtime.block_on(crate::link::run(house)).expect("listens");
    let shown = test();
    let all = ["Resolve: yes", "Connect: yes", "TLS: yes", "Key: yes", "Hello: yes"];
    assert_eq!(steps(&shown), all, "{}", shown.body);
    // A pause there: our key is nobody's.
    let oscar = other.guest("oscar", &["operator"]);
    other.deed(&oscar, "/peers/registry", "/peers/registry/pause", &[]).is(303);
    other.get(&oscar, "/peers").says("paused");
    let shown = test();
    assert!(steps(&shown).last().is_some_and(|last| last.ends_with("no")), "{}", shown.body);
    other.deed(&oscar, "/peers/registry", "/peers/registry/go-on", &[]).is(303);
    until(|| {
        // Keys are looked at four times a second; pages are asked ten times at most.
        std::thread::sleep(std::time::Duration::from_millis(250));
        steps(&test()) == all
    });
    own.deed(&olga, "/peers/hospitals", "/peers/hospitals/test", &[]).says("it comes to us");
    runtime.shutdown_background();
}

#[test]
fn a_new_peer_takes_two() {
    let rooms = Rooms::begin("[policy]\nmax_rho = 0.3\n");
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    let anna = rooms.guest("anna", &["analyst"]);
    rooms.get(&anna, "/peers").is(403);
    let key = Identity::generate().expect("a key").fingerprint().to_string();
    let add = |name: &str, key: &str, address: &str| {
        let fields = [("name", name), ("key", key), ("address", address), ("kinds", "lift")];
        rooms.deed(&olga, "/peers", "/peers", &fields)
    };
    let same = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
    for (name, key, address, why) in [
        ("Clinic!", key.as_str(), "", "This name does not do"),
        ("hospitals", &key, "", "already"),
        ("clinic", "tacit1:00", "", "The key is none"),
        ("clinic", &key, "clinic.example\"\n[policy]", "The address is none"),
        ("clinic", same, "", "have one key"),
    ] {
        add(name, key, address).is(422).says(why);
    }
    add("clinic", &key, "clinic.example:7000").is(200).says("A second person confirms this: sam.");
    rooms.get(&olga, "/peers").never_says("/peers/clinic");
    rooms.get(&sam, "/confirmations").says("peers.clinic: allows more").says(&key);
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(303);
    rooms.get(&olga, "/peers/clinic").is(200).says("We reach it at clinic.example:7000.");
    rooms.get(&olga, "/rules").says("It may propose lift");
}

/// Waits for what another thread does.
fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_peer_signs_that_it_saw_the_log() {
    let (own, other) = two();
    let olga = own.guest("olga", &["operator"]);
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    for rooms in [&other, &own] {
        runtime.block_on(crate::link::run(rooms.house.clone())).expect("begins");
    }
    let key = |rooms: &Rooms| rooms.house.identity().expect("a key").fingerprint();
    until(|| other.house.links().of(&key(&own)).log.is_some());
    let mut text =
        study::canonical("lift", include_str!("../../../../../examples/lift.toml")).expect("reads");
    let places: Vec<usize> = text.match_indices("\"tacit1:").map(|(at, _)| at + 1).collect();
    for (at, rooms) in places.into_iter().zip([&own, &other]) {
        text.replace_range(at..at + 39, &key(rooms).to_string());
    }
    let at_ms = crate::link::now_ms();
    let (program, note, nonce) = ([2; 32], String::new(), [8; 16]);
    let expires_ms = at_ms + 1_000_000;
    let proposed = ProposedStudy { text, program, note, expires_ms, windows: Vec::new(), nonce };
    let identity = own.house.identity().expect("a key");
    own.house.store.propose(Speaker { by: "anna", identity, at_ms }, proposed).expect("proposed");
    until(|| other.house.store.count(&ProposalFilter::default()).expect("reads") == 1);
    watch::look(&other.house, now());
    until(|| {
        watch::look(&own.house, now());
        !own.house.watch.seen().of_own.is_empty()
    });
    own.get(&olga, "/audit").says("</bdi> has signed that it saw this log up to entry");
    // The log is cut at the end by somebody who means it: every page says so, and no run begins.
    let store = rusqlite::Connection::open(own.path("service.db")).expect("opens");
    let seen = own.house.watch.seen().of_own[0].1.entry;
    let cut = "DROP TRIGGER audit_no_delete; DELETE FROM audit WHERE number >= ";
    store.execute_batch(&format!("{cut}{seen}")).expect("cut");
    watch::look(&own.house, now());
    own.get(&olga, "/").says("has signed that it saw entry");
    assert!(own.house.log_is_behind_for(&key(&other)));
    assert!(!own.house.log_is_behind_for(&key(&own)), "runs with nobody else are stopped");
    // Somebody says on the machine that this is a copy: what was seen before it is no matter any more.
    own.house.store.use_copy("2026-11-27", now() + 2).expect("said");
    watch::look(&own.house, now());
    assert!(!own.house.log_is_behind_for(&key(&other)));
    runtime.shutdown_background();
}

#[test]
fn a_stewards_pause_is_ended_by_a_steward() {
    let rooms = Rooms::begin("");
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    rooms.deed(&sam, "/peers/hospitals", "/peers/hospitals/pause", &[]).is(303);
    let page = rooms.get(&olga, "/peers/hospitals").says("sam has paused it, as a steward");
    page.never_says("/peers/hospitals/go-on");
    let own = olga.word("go on with peer", "hospitals");
    rooms.send(Some(&olga), "/peers/hospitals/go-on", &[("csrf", &own)]).is(403);
    // The word of one deed is none for the other.
    let other = sam.word("pause peer", "hospitals");
    rooms.send(Some(&sam), "/peers/hospitals/go-on", &[("csrf", &other)]).is(403);
    rooms.deed(&sam, "/peers/hospitals", "/peers/hospitals/go-on", &[]).is(303);
    // What an operator pauses, an operator ends, or who is both.
    rooms.deed(&olga, "/peers/hospitals", "/peers/hospitals/pause", &[]).is(303);
    rooms.get(&sam, "/peers/hospitals").says("olga ends the pause, or an operator");
    rooms.deed(&olga, "/peers/hospitals", "/peers/hospitals/go-on", &[]).is(303);
}

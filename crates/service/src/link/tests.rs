//! Two services in one process, over real TLS.

use super::*;
use crate::store::{Absorbed, ConsentRight, OwnConsent, PAGE, PeerSender, ProposalFilter, Speaker};
use net::Identity;
use statements::{
    ClosingCode, ClosingReason, ConsentTerms, ProposalId, ProposalState, ProposedStudy, RunOffer, Said,
    StatementHead,
};
use std::path::Path;
use std::time::Instant;

const LIFT: &str = include_str!("../../../../examples/lift.toml");
const SEVERAL: &str = include_str!("../../../../examples/lift-several.toml");
const PATIENCE: Duration = Duration::from_secs(60);

fn rules(name: &str, listen: &str, peer: &str, key: &str, address: Option<&str>, more: &str) -> String {
    let address = address.map_or_else(String::new, |address| format!("address = \"{address}\""));
    format!(
        r#"
        format = "tacit-service/1"
        name = "{name}"
        identity = "own.key"
        store = "service.db"
        ledger = "own.ledger"
        [link]
        listen = "{listen}"
        run_ports = "7001-7001"
        [peers.{peer}]
        key = "{key}"
        {address}
        run_ports = "7001-7001"
        kinds = ["lift"]
        {more}
        [policy]
        kinds = ["lift"]
        max_rho = 1
        max_delta = "1e-6"
        "#
    )
}

/// Two houses; both know each other's address.
fn two(at: &Path, more: &str) -> [Arc<House>; 2] {
    let names = ["registry", "hospitals"];
    let ports = names.map(|_| base::free_address().expect("a port"));
    let keys = names.map(|name| {
        std::fs::create_dir(at.join(name)).expect("made");
        let identity = Identity::generate().expect("a key");
        identity.save(&at.join(name).join("own.key")).expect("saved");
        identity.fingerprint().to_string()
    });
    [0, 1].map(|side| {
        let other = 1 - side;
        let path = at.join(names[side]).join("service.toml");
        let address = Some(ports[other].as_str());
        let text = rules(names[side], &ports[side], names[other], &keys[other], address, more);
        std::fs::write(&path, text).expect("written");
        Arc::new(House::open(&path).expect("opens"))
    })
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads")
}

/// A service that listens for others, and where.
fn listening(house: &Arc<House>) -> (tokio::runtime::Runtime, String) {
    let runtime = runtime();
    runtime.block_on(run(house.clone())).expect("listens");
    let address = house.rules().settings.link.as_ref().expect("a link").listen.clone();
    (runtime, address)
}

fn own(house: &House) -> &Identity {
    house.identity().expect("a key")
}

fn speaker(house: &House) -> Speaker<'_> {
    Speaker { by: "ann", identity: own(house), at_ms: now_ms() }
}

fn propose(houses: &[Arc<House>; 2], nonce: u8) {
    propose_by(0, houses, nonce);
}

/// Another nonce is another study.
fn propose_by(by: usize, houses: &[Arc<House>; 2], nonce: u8) {
    let mut text = study::canonical("lift", LIFT).expect("a study");
    let old: Vec<String> =
        text.match_indices("\"tacit1:").map(|(at, _)| text[at + 1..at + 40].to_owned()).collect();
    for (old, house) in old.iter().zip(houses) {
        text = text.replace(old, &own(house).fingerprint().to_string());
    }
    text = text.replace("1954 polio", &format!("{nonce}, 1954 polio"));
    let proposed = ProposedStudy {
        text,
        program: [2; 32],
        note: String::new(),
        expires_ms: now_ms() + 3_600_000,
        windows: Vec::new(),
        nonce: [nonce; 16],
    };
    houses[by].store().propose(speaker(&houses[by]), proposed).expect("proposes");
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn states(house: &House) -> Vec<ProposalState> {
    house.store().list(&ProposalFilter::default(), None).expect("reads").iter().map(|row| row.state).collect()
}

/// Both, once more.
fn opened(at: &Path) -> [Arc<House>; 2] {
    let open = |name| House::open(&at.join(name).join("service.toml")).expect("opens");
    ["registry", "hospitals"].map(|name| Arc::new(open(name)))
}

/// Both listen, and a proposal of the first has arrived.
fn proposed(houses: &[Arc<House>; 2]) -> tokio::runtime::Runtime {
    propose(houses, 1);
    let runtime = runtime();
    for house in houses {
        runtime.block_on(run(house.clone())).expect("listens");
    }
    until("the proposal", || states(&houses[1]) == [ProposalState::Proposed]);
    runtime
}

#[test]
fn what_is_said_arrives_and_links_come_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    let first = proposed(&houses);
    let peer = own(&houses[1]).fingerprint();
    until("its acknowledgement", || houses[0].store().unsent(peer, &[], 9).expect("reads").is_empty());
    until("clocks", || houses[0].links().of(&peer).ahead_ms.is_some_and(|ahead| ahead.abs() < 60_000));
    let standing = houses[0].links().of(&peer);
    assert!(!standing.is_skewed() && standing.version.is_some() && standing.heard_ms.is_some());
    // One side goes; what it says meanwhile waits.
    first.shutdown_background();
    let row = houses[1].store().list(&ProposalFilter::default(), None).expect("reads").remove(0);
    let reason = ClosingReason { code: ClosingCode::Purpose, text: "Not for us.".to_owned() };
    houses[1].store().say(speaker(&houses[1]), &row.id, Said::Refuse(reason)).expect("refuses");
    drop(houses);
    let again = opened(folder.path());
    let second = runtime();
    for house in &again {
        second.block_on(run(house.clone())).expect("listens again");
    }
    until("the refusal", || states(&again[0]) == [ProposalState::Closed]);
    second.shutdown_background();
}

/// The file of one of three organisations, which dials those before it.
fn one_of_three(at: &Path, side: usize, ports: &[String], keys: &[String]) -> std::path::PathBuf {
    let peer = |other: usize| {
        let address = match other < side {
            true => format!("address = \"{}\"", ports[other]),
            false => String::new(),
        };
        format!("[peers.p{other}]\nkey = \"{}\"\n{address}\nkinds = [\"lift\"]\n", keys[other])
    };
    let peers: String = (0..3).filter(|other| *other != side).map(peer).collect();
    let path = at.join(format!("p{side}")).join("service.toml");
    let text = format!(
        "format = \"tacit-service/1\"\nname = \"p{side}\"\nidentity = \"own.key\"\nstore = \
         \"service.db\"\nledger = \"own.ledger\"\n[link]\nlisten = \"{}\"\nrun_ports = \
         \"7001-7001\"\n{peers}",
        ports[side]
    );
    std::fs::write(&path, text).expect("written");
    path
}

/// The files of three organisations, their keys, and a study of theirs.
fn three(at: &Path) -> ([std::path::PathBuf; 3], Vec<String>, String) {
    let ports: Vec<String> = (0..3).map(|_| base::free_address().expect("a port")).collect();
    let key = |side: usize| {
        std::fs::create_dir(at.join(format!("p{side}"))).expect("made");
        let identity = Identity::generate().expect("a key");
        identity.save(&at.join(format!("p{side}/own.key"))).expect("saved");
        identity.fingerprint().to_string()
    };
    let keys: Vec<String> = (0..3).map(key).collect();
    let paths = [0, 1, 2].map(|side| one_of_three(at, side, &ports, &keys));
    let mut text = study::canonical("several", SEVERAL).expect("a study");
    for (key, digit) in keys.iter().zip(["1", "2", "3"]) {
        text = text.replace(&format!("tacit1:{}", digit.repeat(32)), key);
    }
    (paths, keys, text)
}

/// What is said of a proposal may be there before the proposal: nobody relays, and links come as they come.
#[test]
fn what_overtakes_a_proposal_comes_again_when_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, _, text) = three(folder.path());
    let open = |side: usize| Arc::new(House::open(&paths[side]).expect("opens"));
    let [first, second, third] = [0, 1, 2].map(open);
    let expires_ms = now_ms() + 3_600_000;
    let (note, windows) = (String::new(), Vec::new());
    let proposed = ProposedStudy { text, program: [2; 32], note, expires_ms, windows, nonce: [1; 16] };
    let id = first.store().propose(speaker(&first), proposed).expect("proposes").id();
    let runtimes = [&first, &second].map(listening);
    until("the proposal", || states(&second) == [ProposalState::Proposed]);
    let [(gone, _), (second_runtime, _)] = runtimes;
    gone.shutdown_background();
    drop(first);
    second.store().say(speaker(&second), &id, Said::Note("Shall we?".to_owned())).expect("says");
    let (third_runtime, _) = listening(&third);
    let refused = || {
        let sent = second.store().sent(&id).expect("reads");
        sent.iter().any(|row| row.refused.as_deref() == Some("no-proposal"))
    };
    until("that it is of no proposal", refused);
    let first = open(0);
    let (first_runtime, _) = listening(&first);
    let said = || {
        let heads = third.store().heads_of(&id).expect("reads");
        heads.iter().filter(|head| head.count == 1).count()
    };
    until("the note after the proposal", || said() == 2);
    [first_runtime, second_runtime, third_runtime]
        .into_iter()
        .for_each(tokio::runtime::Runtime::shutdown_background);
}

/// The first of three signs two notes with one number. The second and the third have one each: neither holds
/// proof, and each tells the other how far it has what was said.
#[test]
fn who_tells_two_others_different_things_is_noticed_and_no_run_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, keys, text) = three(folder.path());
    let [first, second, third] = paths.map(|path| Arc::new(House::open(&path).expect("opens")));
    let (note, windows, expires_ms) = (String::new(), Vec::new(), now_ms() + 3_600_000);
    let proposed = ProposedStudy { text, program: [2; 32], note, expires_ms, windows, nonce: [1; 16] };
    let record = first.store().propose(speaker(&first), proposed).expect("proposes");
    let id = record.id();
    let says = |text: &str| record.say(own(&first), now_ms(), Said::Note(text.to_owned())).expect("signed");
    let from = PeerSender { name: "p0", key: own(&first).fingerprint(), most_open: 9, most_per_day: 9 };
    for (house, said) in [(&second, "A week is enough."), (&third, "A year, at least.")] {
        let place = record.place(&from.key).expect("a party");
        for one in [record.chain(place)[0].bytes(), says(said).bytes()] {
            let taken = house.store().absorb(own(house).fingerprint(), from, now_ms(), &one).expect("kept");
            assert!(matches!(taken, Absorbed::Have { new: true, .. }), "{taken:?}");
        }
    }
    let runtimes = [&second, &third].map(listening);
    let row = |house: &Arc<House>| house.store().proposal(&id).expect("reads").expect("there");
    for (house, peer) in [(&second, 2), (&third, 1)] {
        until("that it is noticed", || row(house).held.as_deref() == Some(otherwise::TOLD));
        let record = house.store().standing(&id).expect("reads").expect("there");
        until("who it was", || !otherwise::found(house, &record).is_empty());
        let both = (from.key, keys[peer].parse().expect("a key"));
        assert_eq!(otherwise::found(house, &record), [both]);
        assert!(!record.is_frozen() && !otherwise::is_agreed(house, &record, 1).expect("looks"));
        let acts = house.store().acts_of(crate::store::SERVICE, 50).expect("reads");
        let said = format!("run held: p0 said something else here than to p{peer}");
        let held: Vec<_> = acts.iter().filter(|act| act.what == said).collect();
        assert_eq!(held.len(), 1, "{acts:?}");
    }
    runtimes.into_iter().for_each(|(runtime, _)| runtime.shutdown_background());
}

/// What waits at one for another arrives there.
fn hears(to: &House, from: &House) {
    let (key, author) = (own(to).fingerprint(), own(from).fingerprint());
    let sender = PeerSender { name: "another", key: author, most_open: 9, most_per_day: 9 };
    for row in from.store().unsent(key, &[], 100).expect("reads") {
        let bytes = from.store().statement(&row.digest).expect("reads").expect("there");
        let taken = to.store().absorb(key, sender, now_ms(), &bytes).expect("kept");
        assert!(matches!(taken, Absorbed::Have { .. }), "{taken:?}");
        from.store().had(key, &row.digest, now_ms()).expect("written");
    }
}

fn all_hear(houses: &[Arc<House>]) {
    for to in houses {
        let others = houses.iter().filter(|from| !Arc::ptr_eq(from, to));
        others.for_each(|from| hears(to, from));
    }
}

/// All consent to what is proposed, and are ready.
fn all_ready(houses: &[Arc<House>], id: &ProposalId) {
    let (charges, words) = (Vec::new(), statements::digest_of_words("read"));
    let data = statements::commit_to_data(&[1; 32], &[2; 32], None);
    let (expires_ms, windows) = (now_ms() + 3_600_000, Vec::new());
    let (program, runs, persons, seal) = ([2; 32], 2, 1, None);
    let terms = ConsentTerms { program, charges, words, data, expires_ms, windows, runs, persons, seal };
    let (by, data, words) = (crate::store::COMMAND_LINE.to_owned(), "trial".to_owned(), "read".to_owned());
    let (salt, tag, version) = ([1; 32], [2; 32], [3; 32]);
    let kept = OwnConsent { by, data, salt, tag, version, words, after: 0, taken: None, lineage: None };
    let right = ConsentRight { rules: None, stewards: &[], separate: true, approval: None, keys: &[] };
    for house in houses {
        house.store().consent(speaker(house), id, terms.clone(), &kept, &right).expect("consents");
    }
    all_hear(houses);
    let latest_ms = now_ms() + 600_000;
    let offer = RunOffer { run: 1, goes_on: false, nonce: [3; 16], earliest_ms: 1, latest_ms, port: 0 };
    for house in houses {
        house.store().offer_run(speaker(house), id, offer).expect("ready");
    }
    all_hear(houses);
}

/// A run of three waits for what each says of what all have said, and says for whom. What a peer says of
/// somebody who takes no part, or of this side's own words, holds nothing.
#[test]
fn a_run_of_three_says_whom_it_waits_for_and_no_peer_says_what_we_signed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, _, text) = three(folder.path());
    let houses = paths.map(|path| Arc::new(House::open(&path).expect("opens")));
    let (note, windows, expires_ms) = (String::new(), Vec::new(), now_ms() + 3_600_000);
    let proposed = ProposedStudy { text, program: [2; 32], note, expires_ms, windows, nonce: [1; 16] };
    let id = houses[0].store().propose(speaker(&houses[0]), proposed).expect("proposes").id();
    all_hear(&houses);
    all_ready(&houses, &id);
    let [first, second, third] = &houses;
    let row = || second.store().proposal(&id).expect("reads").expect("there");
    let why = || crate::schedule::why_waiting(second, &row(), true).expect("looks");
    let heads = |house: &House| house.store().heads_of(&id).expect("reads");
    let tell = |house: &House, heads| {
        otherwise::notice(second, own(house).fingerprint(), vec![(id, heads)]).expect("kept");
    };
    assert!(why().is_some_and(|why| why.contains("of p0, p2 it is not known yet")), "{:?}", why());
    tell(first, heads(first));
    assert!(why().is_some_and(|why| why.contains("of p2 it is not known yet")), "{:?}", why());
    let mut bent = heads(third);
    let of_us = bent.iter_mut().find(|head| head.author == own(second).fingerprint()).expect("there");
    of_us.digest = [9; 32];
    bent.push(StatementHead { author: KeyFingerprint::from_bytes([5; 16]), count: 1, digest: [1; 32] });
    tell(third, bent);
    let record = second.store().standing(&id).expect("reads").expect("there");
    assert_eq!((row().held, otherwise::found(second, &record)), (None, Vec::new()));
    assert!(!otherwise::is_agreed(second, &record, 1).expect("looks"), "nor does the run begin");
    assert_eq!(row().held, None);
    tell(third, heads(third));
    assert_eq!(why(), None);
    assert!(otherwise::is_agreed(second, &record, 1).expect("looks"));
}

/// Of a study of two there is no third party of whom a peer could have heard something else.
#[test]
fn in_a_study_of_two_nobody_has_told_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    propose(&houses, 1);
    let id = houses[0].store().list(&ProposalFilter::default(), None).expect("reads")[0].id;
    let mut heads = houses[0].store().heads_of(&id).expect("reads");
    heads[0].digest = [9; 32];
    heads.push(StatementHead { author: KeyFingerprint::from_bytes([5; 16]), count: 1, digest: [1; 32] });
    otherwise::notice(&houses[0], own(&houses[1]).fingerprint(), vec![(id, heads)]).expect("kept");
    assert_eq!(houses[0].store().proposal(&id).expect("reads").expect("there").held, None);
}

/// Puts a copy of the first one's store back; that one.
fn put_back(at: &Path, copy: &Path) -> House {
    let home = at.join("registry");
    for file in ["service.db", "service.db-wal", "service.db-shm"] {
        let _ = std::fs::remove_file(home.join(file));
    }
    std::fs::copy(copy, home.join("service.db")).expect("put back");
    let store = crate::store::Store::open(&home.join("service.db")).expect("opens");
    store.use_copy("today", now_ms() / 1_000).expect("restored");
    drop(store);
    House::open(&home.join("service.toml")).expect("opens")
}

/// That a peer has more of what was said here is proven by what it gives back, for that study and once.
#[test]
fn what_cannot_be_kept_or_was_given_back_before_proves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    propose(&houses, 1);
    let id = houses[0].store().list(&ProposalFilter::default(), None).expect("reads")[0].id;
    let copy = folder.path().join("copy.db");
    houses[0].store().copy_to(&copy, now_ms() / 1_000).expect("copied");
    for text in ["one", "two"] {
        houses[0].store().say(speaker(&houses[0]), &id, Said::Note(text.to_owned())).expect("says");
    }
    let [us, peer] = [0, 1].map(|side: usize| own(&houses[side]).fingerprint());
    let lost = houses[0].store().said_by(&id, us, 1).expect("reads");
    drop(houses);
    let house = put_back(folder.path(), &copy);
    house.store().heard(peer, &[], &[]).expect("written");
    let gives = |bytes: &[u8]| {
        talk::absorb(&house, peer, bytes).expect("looks");
        house.links().has_given_back(peer)
    };
    assert_eq!(gives(&lost[1]), [], "one before it is missing: nobody keeps it");
    assert_eq!(gives(&lost[0]), [id]);
    assert_eq!(gives(&lost[0]), [], "it is there");
    assert!(!house.store().heard(peer, &[id], &[]).expect("written"), "an old proof is none");
    assert_eq!(gives(&lost[1]), [id]);
    assert!(house.store().heard(peer, &[id], &[id]).expect("written"));
    assert!(house.store().is_unheard(&id).expect("reads"));
}

#[test]
fn a_flood_is_counted_not_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "proposals_open = 3");
    for nonce in 0..60 {
        propose(&houses, nonce);
    }
    let runtime = runtime();
    for house in &houses {
        runtime.block_on(run(house.clone())).expect("listens");
    }
    until("three proposals", || states(&houses[1]).len() == 3);
    let peer = own(&houses[1]).fingerprint();
    let heard = houses[0].links().of(&peer).heard_ms;
    until("an answer to the others", || houses[0].links().of(&peer).heard_ms > heard);
    assert_eq!(states(&houses[1]).len(), 3);
    // What is said about one that is there does not wait behind the others.
    let id = houses[1].store().list(&ProposalFilter::default(), None).expect("reads")[0].id;
    until("the other side's chains", || !houses[0].store().is_unheard(&id).expect("reads"));
    houses[0].store().say(speaker(&houses[0]), &id, Said::Note("Still?".to_owned())).expect("says");
    until("the note", || houses[1].store().heads_of(&id).expect("reads").iter().any(|head| head.count == 2));
    assert_eq!(houses[0].store().list(&ProposalFilter::default(), None).expect("reads").len(), PAGE);
    runtime.shutdown_background();
}

#[test]
fn what_a_peer_names_twice_is_answered_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    propose_by(1, &houses, 1);
    let (us, peer) = [&houses[0], &houses[1]].map(|house| own(house).fingerprint()).into();
    let row = houses[1].store().unsent(us, &[], 1).expect("reads")[0].clone();
    let bytes = houses[1].store().statement(&row.digest).expect("reads").expect("there");
    let sender = crate::store::PeerSender { name: "hospitals", key: peer, most_open: 9, most_per_day: 9 };
    houses[0].store().absorb(us, sender, now_ms(), &bytes).expect("kept");
    // As if the peer had lost it, a thousand times.
    let found = talk::compare(&houses[0], peer, &vec![(row.proposal, Vec::new()); 1_000]).expect("compares");
    assert_eq!((found.ahead, found.lost), (vec![row.proposal], vec![bytes]));
}

#[test]
fn of_one_study_one_proposal_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    // Each before it has heard of the other's: neither takes the place of the own one.
    [0, 1].into_iter().for_each(|by| propose_by(by, &houses, 1));
    let first =
        |house: &House| house.store().list(&ProposalFilter::default(), None).expect("reads")[0].clone();
    let own_ones: Vec<_> = houses.iter().map(|house| first(house)).collect();
    let runtime = runtime();
    for house in &houses {
        runtime.block_on(run(house.clone())).expect("listens");
    }
    // Who begins runs refuses the second one; it may be heard of before the other side has looked.
    until("one open proposal at most", || {
        houses.iter().for_each(|house| crate::schedule::look(house, false).expect("looks"));
        houses.iter().all(|house| {
            let all = states(house);
            all.len() == 2 && all.contains(&ProposalState::Closed)
        })
    });
    for (house, own) in houses.iter().zip(&own_ones) {
        let both = house.store().list(&ProposalFilter::default(), None).expect("reads");
        assert!(both.iter().any(|row| row.id == own.id));
        for row in both.iter().filter(|row| row.state == ProposalState::Closed) {
            let record = house.store().standing(&row.id).expect("reads").expect("is there");
            let words = record.state_words(statements::Naming(&["a".into(), "b".into()]));
            assert!(words.contains(crate::store::ALREADY_OPEN), "{words}");
        }
    }
    runtime.shutdown_background();
}

#[test]
fn who_is_no_peer_says_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    let (runtime, address) = listening(&houses[1]);
    let stranger = Identity::generate().expect("a key");
    let tls = ServiceTls::new(&stranger, vec![own(&houses[1]).fingerprint()]).expect("set up");
    let answer = runtime.block_on(async {
        let stream = TcpStream::connect(&address).await.expect("it listens");
        let name = ServerName::try_from("tacit").expect("a name");
        let mut stream = TlsConnector::from(tls.dialer).connect(name, stream).await?;
        stream.write_all(&ServiceHello::Question.bytes()).await?;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello).await.map(drop)
    });
    assert!(answer.is_err(), "a stranger was answered");
    let garbage = runtime.block_on(async {
        let mut stream = TcpStream::connect(&address).await.expect("it listens");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
        let mut byte = [0; 64];
        stream.read(&mut byte).await
    });
    assert!(garbage.is_err() || garbage.is_ok_and(|read| read < 64), "it is no web server");
    runtime.shutdown_background();
}

/// Strangers of one address hold all places and take each again: a peer of another address comes through.
#[test]
fn strangers_of_one_address_keep_no_peer_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    let (runtime, address) = listening(&houses[1]);
    let peer = own(&houses[1]).fingerprint();
    runtime.block_on(async {
        let mut silent = Vec::new();
        for _ in 0..STRANGERS {
            silent.push(TcpStream::connect(&address).await.expect("it listens"));
        }
        let from = tokio::net::TcpSocket::new_v4().expect("a socket");
        from.bind("127.0.0.2:0".parse().expect("an address")).expect("bound");
        let stream = from.connect(address.parse().expect("an address")).await.expect("it listens");
        let greeted = timeout(PATIENCE, greet(&houses[0], peer, stream, &address)).await;
        greeted.expect("an answer").expect("the peer is taken");
    });
    runtime.shutdown_background();
}

#[test]
fn a_peer_that_comes_again_and_again_has_one_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    // The second house dials the first in vain: nobody listens there.
    let (runtime, address) = listening(&houses[1]);
    let [own, peer] = [&houses[0], &houses[1]].map(|house| own(house).fingerprint());
    runtime.block_on(async {
        let mut first = knock(&houses[0], peer, &address).await.expect("taken");
        let again = knock(&houses[0], peer, &address).await;
        assert!(again.is_err_and(|why| why.ends_with("is busy")), "within a second");
        sleep(Duration::from_secs(1)).await;
        let _second = knock(&houses[0], peer, &address).await.expect("taken");
        // The first one is closed, long before its silence would end it.
        let mut rest = Vec::new();
        let closed = timeout(PATIENCE, first.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "the older connection stays");
        assert!(houses[1].links().of(&own).since_ms.is_some(), "the newer one is the link");
    });
    runtime.shutdown_background();
}

/// A copy that is put back lacks what was said since: it is heard of the peer first, and the peer gives it
/// back. Before, the next word here would have been a second one under a number that was used.
#[test]
fn a_store_that_was_put_back_says_nothing_before_it_has_what_it_had_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    let first = proposed(&houses);
    let id = houses[0].store().list(&ProposalFilter::default(), None).expect("reads")[0].id;
    let copy = folder.path().join("copy.db");
    houses[0].store().copy_to(&copy, now_ms() / 1_000).expect("copied");
    let note = |house: &House, text: &str| {
        house.store().say(speaker(house), &id, Said::Note(text.to_owned())).map(drop)
    };
    until("chains are compared", || !houses[0].store().is_unheard(&id).expect("reads"));
    note(&houses[0], "one").expect("says");
    let own = own(&houses[0]).fingerprint();
    let count = |house: &House| {
        let heads = house.store().heads_of(&id).expect("reads");
        heads.iter().find(|head| head.author == own).map_or(0, |head| head.count)
    };
    until("the note", || count(&houses[1]) == 2);
    first.shutdown_background();
    drop(houses);
    drop(put_back(folder.path(), &copy));
    let again = opened(folder.path());
    assert_eq!(count(&again[0]), 1);
    let why = note(&again[0], "another").expect_err("it would be a second word").to_string();
    assert_eq!(why, crate::store::UNHEARD);
    let second = runtime();
    for house in &again {
        second.block_on(run(house.clone())).expect("listens again");
    }
    until("its own word again", || count(&again[0]) == 2);
    // Both compare again before anything is said.
    second.shutdown_background();
    let third = runtime();
    drop(again);
    let again = opened(folder.path());
    for house in &again {
        third.block_on(run(house.clone())).expect("listens again");
    }
    until("chains are compared again", || !again[0].store().is_unheard(&id).expect("reads"));
    note(&again[0], "two").expect("says");
    until("the next word", || count(&again[1]) == 3);
    assert_eq!(states(&again[1]), [ProposalState::Proposed], "nobody has said two things");
    third.shutdown_background();
}

#[test]
fn a_peer_that_is_taken_out_of_the_rules_hears_nothing_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let houses = two(folder.path(), "");
    let runtime = runtime();
    for house in &houses {
        runtime.block_on(run(house.clone())).expect("listens");
    }
    let [first, second] = [&houses[0], &houses[1]].map(|house| own(house).fingerprint());
    until("a link", || houses[1].links().of(&first).ahead_ms.is_some());
    // Its key was stolen, say: another one stands in the rules.
    let path = folder.path().join("hospitals/service.toml");
    let text = std::fs::read_to_string(&path).expect("rules");
    let other = Identity::generate().expect("a key").fingerprint().to_string();
    std::fs::write(&path, text.replace(&first.to_string(), &other)).expect("written");
    houses[1].look_at_rules();
    houses[1].store().ring();
    until("its end", || houses[1].links().of(&first).since_ms.is_none());
    let error = houses[1].links().of(&first).last_error.expect("why").1;
    assert_eq!(error, board::NO_PEER);
    until("its end there", || houses[0].links().of(&second).since_ms.is_none());
    runtime.shutdown_background();
}

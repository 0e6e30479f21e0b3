//! Who is let in and who is not, and what the operator reads.

mod common;

use base::free_address;
use base::{ChannelError, Error, Fault};
use common::{HOSPITALS, Keys, Listening, REGISTRY, listen, meet, met_tls, roster};
use net::{ChannelSecurity, Identity, Meet, Meeting, Rendezvous, Status, StopSwitch};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AT_REGISTRY: &str = "registry at meet with hospitals: ";
const AT_HOSPITALS: &str = "hospitals at meet with registry: ";

fn text(result: Result<Meeting, Error>) -> String {
    result.expect_err("this meeting must fail").to_string()
}

fn dial(to: &Listening, transport: ChannelSecurity) -> Meet {
    meet(REGISTRY, to.dial(), transport)
}

/// The listener survives what happened before: the true peer still gets in.
fn let_the_peer_in(listening: Listening, transport: ChannelSecurity) {
    let dialled = dial(&listening, transport).meet(1).unwrap();
    assert_eq!(dialled.session_id, listening.join().unwrap().session_id);
}

#[test]
fn a_dialler_with_another_key_is_refused_and_both_learn_why() {
    let (keys, stranger) = (Keys::new(), Arc::new(Identity::generate().unwrap()));
    let mut study = keys.study.clone();
    study[0] = stranger.fingerprint();
    let listening = listen(keys.tls(HOSPITALS), 1, |m| m);
    let transport = ChannelSecurity::Tls { identity: stranger.clone(), keys: study };
    let at = listening.at;
    assert_eq!(
        text(dial(&listening, transport).meet(1)),
        format!(
            "{AT_REGISTRY}{at} refused our key {}; check the line `key` under [party.registry] of the study \
             that hospitals holds",
            stranger.fingerprint()
        )
    );
    listening.wait_refused(1);
    let why = listening.refused.lock().unwrap()[0].clone();
    let (from, why) = why.split_once(" presented ").unwrap();
    assert!(from.starts_with("127.0.0.1:"), "{from}");
    assert_eq!(
        why,
        format!(
            "{} (no party of this study), but registry has {}; check the line `key` under [party.registry] \
             of the study, and which identity registry uses",
            stranger.fingerprint(),
            keys.study[0]
        )
    );
    let_the_peer_in(listening, keys.tls(REGISTRY));
}

#[test]
fn a_listener_with_another_key_is_refused_and_both_learn_why() {
    let keys = Keys::new();
    let other = Keys::new();
    // The hospitals run with a new identity, and their own study says so.
    let theirs = ChannelSecurity::Tls {
        identity: other.identities[1].clone(),
        keys: vec![keys.study[0], other.study[1]],
    };
    let listening = listen(theirs.clone(), 1, |m| m);
    let at = listening.at;
    assert_eq!(
        text(dial(&listening, keys.tls(REGISTRY)).meet(1)),
        format!(
            "{AT_REGISTRY}{at} presented {} (no party of this study), but hospitals has {}; check the line \
             `key` under [party.hospitals] of the study, and which identity hospitals uses",
            other.study[1], keys.study[1]
        )
    );
    listening.wait_refused(1);
    let why = listening.refused.lock().unwrap()[0].clone();
    assert!(why.contains(&format!("refused our key {}", other.study[1])), "{why}");
    let fixed = ChannelSecurity::Tls {
        identity: keys.identities[0].clone(),
        keys: vec![keys.study[0], other.study[1]],
    };
    let_the_peer_in(listening, fixed);
}

#[test]
fn a_known_party_in_the_wrong_place_is_named() {
    let keys = Keys::new();
    // Somebody listens with the registry's own key: two processes of one party.
    let theirs = ChannelSecurity::Tls {
        identity: keys.identities[0].clone(),
        keys: vec![keys.study[1], keys.study[0]],
    };
    let listening = listen(theirs, 1, |m| m.patience(Duration::from_secs(4)));
    let error = text(dial(&listening, keys.tls(REGISTRY)).meet(1));
    assert!(error.contains(&format!("presented {} (the key of registry)", keys.study[0])), "{error}");
    assert!(listening.join().is_err());
}

#[test]
fn the_wrong_identity_is_found_before_anything_is_sent() {
    let (keys, wrong) = (Keys::new(), Arc::new(Identity::generate().unwrap()));
    let transport = ChannelSecurity::Tls { identity: wrong.clone(), keys: keys.study.clone() };
    assert_eq!(
        text(meet(REGISTRY, Rendezvous::Dial("127.0.0.1:1".into()), transport).meet(1)),
        format!(
            "{AT_REGISTRY}the identity in use is {}, but registry has {}; check `identity` in this party's \
             own file, or the line `key` under [party.registry] of the study",
            wrong.fingerprint(),
            keys.study[0]
        )
    );
}

/// Speaks to the listener as a stranger would; ends after the answer, if any.
fn stranger(listening: &Listening, words: &[u8]) {
    let mut stream = TcpStream::connect(listening.at).unwrap();
    stream.write_all(words).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn strangers_do_not_keep_the_peer_out() {
    let keys = Keys::new();
    let listening = listen(keys.tls(HOSPITALS), 1, |m| m);
    stranger(&listening, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    stranger(&listening, b"SSH-2.0-nosy\r\n");
    stranger(&listening, &[0x16, 3, 1, 0, 4, 9, 9, 9, 9]);
    drop(TcpStream::connect(listening.at).unwrap());
    listening.wait_refused(4);
    let refused = listening.refused.lock().unwrap().clone();
    let advice =
        "check that this is the address of registry and that registry does not use the plain transport";
    for what in [
        format!("did not speak TLS but HTTP; {advice}"),
        format!("did not speak TLS; {advice}"),
        "the TLS handshake with 127.0.0.1".to_owned(),
        "closed the connection before it said who it is".to_owned(),
    ] {
        let count = refused.iter().filter(|why| why.contains(&what)).count();
        assert_eq!(count, 1, "{what}: {refused:#?}");
    }
    // These say nothing and stay, more of them than may prove who they are at one time: no one waits for
    // them.
    let _silent: Vec<_> = (0..40).map(|_| TcpStream::connect(listening.at).unwrap()).collect();
    let_the_peer_in(listening, keys.tls(REGISTRY));
}

/// A server on loopback that answers every connection with these words.
fn server(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(words);
        }
    });
    at
}

#[test]
fn dialling_something_else_says_so() {
    let keys = Keys::new();
    let advice =
        "check that this is the address of hospitals and that hospitals does not use the plain transport";
    let http = server(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(
        text(meet(REGISTRY, Rendezvous::Dial(http.clone()), keys.tls(REGISTRY)).meet(1)),
        format!("{AT_REGISTRY}{http} did not speak TLS but HTTP; {advice}")
    );
    let raw = server(b"\0\0\0\0\0\0\0\0garbage");
    assert_eq!(
        text(meet(REGISTRY, Rendezvous::Dial(raw.clone()), keys.tls(REGISTRY)).meet(1)),
        format!("{AT_REGISTRY}{raw} did not speak TLS; {advice}")
    );
    let plain = server(&[b'x'; 200]);
    assert_eq!(
        text(meet(REGISTRY, Rendezvous::Dial(plain.clone()), ChannelSecurity::Tcp).meet(1)),
        format!("{AT_REGISTRY}{plain}: it does not speak Tacit's protocol")
    );
}

#[test]
fn a_plain_peer_and_a_tls_peer_do_not_meet() {
    let keys = Keys::new();
    let listening = listen(keys.tls(HOSPITALS), 1, |m| m.patience(Duration::from_secs(4)));
    let error = text(dial(&listening, ChannelSecurity::Tcp).meet(1));
    assert!(error.starts_with(AT_REGISTRY), "{error}");
    let error = text(listening.join());
    assert!(error.contains("The last connection was refused: 127.0.0.1:"), "{error}");
    assert!(error.contains("did not speak TLS; check"), "{error}");
}

#[test]
fn a_port_in_use_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let error =
        meet(HOSPITALS, Rendezvous::Listen(at.to_string()), ChannelSecurity::Tcp).meet(1).err().unwrap();
    assert!(matches!(error.kind(), Fault::Input(_)));
    assert_eq!(
        error.to_string(),
        format!(
            "{AT_HOSPITALS}{at} is in use by another process (`ss -ltnp` shows which), or by another run of \
             this one that has not ended yet; wait for it, stop it or change `listen` to another port"
        )
    );
}

#[test]
fn an_address_that_is_none_says_what_to_do() {
    for (endpoint, words) in [
        (Rendezvous::Listen("192.0.2.1:7000".into()), "192.0.2.1:7000 is no address of this machine"),
        (Rendezvous::Listen("nonsense".into()), "change `listen` to an address like 0.0.0.0:7000"),
        (Rendezvous::Dial("nonsense".into()), "`nonsense` is no address"),
    ] {
        let error = text(meet(REGISTRY, endpoint, ChannelSecurity::Tcp).meet(1));
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_address_is_free_after_the_meeting() {
    let keys = Keys::new();
    let at = free_address().unwrap();
    let listening = meet(HOSPITALS, Rendezvous::Listen(at.clone()), keys.tls(HOSPITALS));
    let listening = std::thread::spawn(move || listening.meet(0));
    let dialled = meet(REGISTRY, Rendezvous::Dial(at.clone()), keys.tls(REGISTRY)).meet(0).unwrap();
    drop((dialled, listening.join().unwrap().unwrap()));
    TcpListener::bind(at).unwrap();
}

#[test]
fn nobody_there_ends_when_patience_does() {
    let free = free_address().unwrap();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = lines.clone();
    let waiting = meet(REGISTRY, Rendezvous::Dial(free.clone()), ChannelSecurity::Tcp)
        .patience(Duration::from_millis(400))
        .watch(move |status: &Status| log.lock().unwrap().push(status.to_string()));
    let error = waiting.meet(1).err().unwrap();
    assert!(matches!(error.kind(), Fault::Channel(ChannelError::Io(_))), "{error:?}");
    let error = error.to_string();
    assert!(
        error.starts_with(&format!("{AT_REGISTRY}no answer from hospitals at {free} within ")),
        "{error}"
    );
    assert!(
        error.ends_with(
            " s (connection refused); check that hospitals is running, that it listens there and that no \
             firewall is between"
        ),
        "{error}"
    );
    let first = lines.lock().unwrap()[0].clone();
    assert_eq!(first, format!("waiting for hospitals at {free} (connection refused)"));

    let listening = listen(ChannelSecurity::Tcp, 1, |m| m.patience(Duration::from_millis(300)));
    let at = listening.at;
    assert_eq!(
        text(listening.join()),
        format!(
            "{AT_HOSPITALS}registry did not come to {at} within 0.3 s; check that registry is running and \
             dials this address"
        )
    );
}

#[test]
fn a_dialler_waits_for_a_late_listener() {
    let keys = Keys::new();
    let free = free_address().unwrap();
    let early = meet(REGISTRY, Rendezvous::Dial(free.clone()), keys.tls(REGISTRY));
    let early = std::thread::spawn(move || early.meet(1));
    std::thread::sleep(Duration::from_millis(300));
    let late = meet(HOSPITALS, Rendezvous::Listen(free), keys.tls(HOSPITALS)).meet(1).unwrap();
    assert_eq!(early.join().unwrap().unwrap().session_id, late.session_id);
}

#[test]
fn two_studies_do_not_meet() {
    let keys = Keys::new();
    let listening = listen(keys.tls(HOSPITALS), 1, |m| m);
    let other = Meet::new(REGISTRY, roster(), listening.dial(), keys.tls(REGISTRY), [8; 32]);
    let words = "; `tacit check --peer-study` names the first line in which the two files differ";
    assert_eq!(
        text(other.meet(1)),
        format!(
            "{AT_REGISTRY}hospitals holds another study: hash 0707 0707 0707 there, 0808 0808 0808 \
             here{words}"
        )
    );
    assert_eq!(
        text(listening.join()),
        format!(
            "{AT_HOSPITALS}registry holds another study: hash 0808 0808 0808 there, 0707 0707 0707 \
             here{words}"
        )
    );
}

#[test]
fn both_sides_want_the_same_lanes() {
    let keys = Keys::new();
    let listening = listen(keys.tls(HOSPITALS), 2, |m| m);
    let at = listening.at;
    assert_eq!(
        text(dial(&listening, keys.tls(REGISTRY)).meet(3)),
        format!(
            "{AT_REGISTRY}{at}: the two sides ask for different numbers of worker lanes (3 here); both need \
             the same `shards`"
        )
    );
    let error = text(listening.join());
    assert!(error.contains("different numbers of worker lanes (2 here)"), "{error}");
}

#[test]
fn a_peer_that_counts_the_parties_otherwise_is_refused() {
    let listening = listen(ChannelSecurity::Tcp, 1, |m| m);
    let also_hospitals = Meet::new(HOSPITALS, roster(), listening.dial(), ChannelSecurity::Tcp, [7; 32]);
    let error = text(also_hospitals.meet(1));
    assert!(error.contains("both sides need the same study"), "{error}");
    let error = text(listening.join());
    assert!(error.contains("registry counts the parties in another order"), "{error}");
}

/// The 96 bytes of a control hello, written out by hand.
fn hello(version: u16, kind: u8) -> Vec<u8> {
    let mut bytes = b"TACIT/ch".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend([kind, 0, 1, 0, 0, 0]);
    bytes.extend([5; 32]);
    bytes.extend([7; 32]);
    bytes.resize(96, 0);
    bytes
}

#[test]
fn another_format_version_is_told_apart() {
    let listening = listen(ChannelSecurity::Tcp, 1, |m| m);
    let mut stream = TcpStream::connect(listening.at).unwrap();
    stream.write_all(&hello(10, 1)).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer[..10], *b"TACIT/ch\x09\x00", "the answer says which version is spoken here");
    let words = "install the same release of tacit on both sides";
    assert_eq!(
        text(listening.join()),
        format!("{AT_HOSPITALS}registry speaks version 10 of the wire format, this side version 9; {words}")
    );
    let answer = hello(10, 1).leak();
    let newer = server(answer);
    assert_eq!(
        text(meet(REGISTRY, Rendezvous::Dial(newer), ChannelSecurity::Tcp).meet(1)),
        format!("{AT_REGISTRY}hospitals speaks version 10 of the wire format, this side version 9; {words}")
    );
}

#[test]
fn worker_connections_of_no_session_or_no_lane_are_refused() {
    let listening = listen(ChannelSecurity::Tcp, 2, |m| m);
    // Before there is a session.
    stranger(&listening, &{
        let mut worker = hello(9, 2);
        worker[48..80].fill(0);
        worker
    });
    listening.wait_refused(1);
    // A control connection by hand; then worker connections by hand.
    let mut control = TcpStream::connect(listening.at).unwrap();
    control.write_all(&hello(9, 1)).unwrap();
    let mut answer = [0; 96];
    control.read_exact(&mut answer).unwrap();
    assert_eq!(answer[13], 1);
    let mut nonce = [0; 32];
    nonce.copy_from_slice(&answer[16..48]);
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026-01 session id v2");
    hash.update(&[0, 1]).update(&[5; 32]).update(&nonce).update(&[7; 32]);
    let session = *hash.finalize().as_bytes();
    let worker = |session: &[u8; 32], lane: u32, first: u32, count: u32| {
        let mut bytes = hello(9, 2);
        bytes[16..48].copy_from_slice(session);
        bytes[48..80].fill(0);
        for (place, number) in bytes[80..92].chunks_exact_mut(4).zip([lane, first, count]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let mut stream = TcpStream::connect(listening.at).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut answer = [0; 96];
        stream.read_exact(&mut answer).unwrap();
        (answer[13], stream)
    };
    assert_eq!(worker(&[9; 32], 0, 0, 2).0, 6, "another session");
    let (verdict, _zero) = worker(&session, 0, 0, 2);
    assert_eq!(verdict, 1);
    assert_eq!(worker(&session, 0, 0, 2).0, 7, "a lane that is taken");
    assert_eq!(worker(&session, 2, 0, 2).0, 7, "a lane beyond the last");
    let mut second = TcpStream::connect(listening.at).unwrap();
    second.write_all(&hello(9, 1)).unwrap();
    second.read_exact(&mut answer).unwrap();
    assert_eq!(answer[13], 5, "a second control connection");
    let (verdict, _one) = worker(&session, 1, 0, 2);
    assert_eq!(verdict, 1);
    let refused = listening.refused.clone();
    assert_eq!(listening.join().unwrap().session_id, session);
    let refused = refused.lock().unwrap();
    for words in [
        "a worker connection named another session than the one with registry",
        "a worker connection with registry asked for lane 0, which is not free",
        "a worker connection with registry asked for lane 2, which is not free",
        "registry is in a session already; wait for its end or use another port",
    ] {
        assert!(refused.iter().any(|why| why.ends_with(words)), "{words}: {refused:#?}");
    }
}

/// Relays one connection and changes one byte that the dialler sends after `after` bytes.
fn meddler(target: std::net::SocketAddr, after: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut from, _) = listener.accept().unwrap();
        let mut to = TcpStream::connect(target).unwrap();
        let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let (mut seen, mut bytes) = (0, vec![0; 4096]);
        while let Ok(n) = from.read(&mut bytes) {
            if n == 0 {
                break;
            }
            if (seen..seen + n).contains(&after) {
                bytes[after - seen] ^= 1;
            }
            seen += n;
            if to.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    at
}

#[test]
fn altered_bytes_end_the_conversation_on_both_sides() {
    let keys = Keys::new();
    let listening = listen(keys.tls(HOSPITALS), 0, |m| m);
    let through = Rendezvous::Dial(meddler(listening.at, 100_000));
    let mut dialled = meet(REGISTRY, through, keys.tls(REGISTRY)).meet(0).unwrap();
    let mut listened = listening.join().unwrap();
    let sender = std::thread::spawn(move || {
        let _ = dialled.control[0].1.send(&vec![1; 200_000]);
        dialled.control[0].1.recv(&mut [0; 1])
    });
    let mut got = vec![0; 200_000];
    let error = listened.control[0].1.recv(&mut got).unwrap_err();
    drop(listened);
    assert!(error.to_string().contains("something between the hosts alters them"), "{error}");
    let error = sender.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("the peer's TLS refused our bytes (BadRecordMac)"), "{error}");
}

#[test]
fn a_peer_gone_mid_run_names_party_step_and_peer() {
    let (a, b) = met_tls(0);
    let channels = a.control;
    let mut session = net::Session::new(REGISTRY, roster(), channels, base::Seed::from_bytes([1; 32]));
    drop(b);
    let error = session.step("match", |s| s.step("pid", |s| s.link(HOSPITALS).recv(&mut [0; 9])));
    assert_eq!(
        error.unwrap_err().to_string(),
        "registry at match/pid with hospitals: the connection broke off before the peer was done; see the \
         peer's own output"
    );
}

/// Whoever waits, at a door or for one to open, and in a conversation.
#[test]
fn who_is_stopped_waits_no_longer() {
    let keys = Keys::new();
    let free = Rendezvous::Dial(free_address().unwrap());
    for endpoint in [Rendezvous::Listen("127.0.0.1:0".into()), free] {
        let stop = StopSwitch::default();
        let told = stop.clone();
        let waits = meet(REGISTRY, endpoint, keys.tls(REGISTRY)).stop(stop).watch(move |_| told.stop());
        assert!(text(waits.meet(1)).ends_with("stopped here, by this party's operator"));
    }
    let listening = listen(keys.tls(HOSPITALS), 0, |m| m);
    let stop = StopSwitch::default();
    let mut met = dial(&listening, keys.tls(REGISTRY)).stop(stop.clone()).meet(0).unwrap();
    let mut other = listening.join().unwrap();
    std::thread::scope(|scope| {
        let mine = scope.spawn(|| met.control[0].1.recv(&mut [0; 1]));
        stop.stop();
        assert_eq!(mine.join().unwrap(), Err(ChannelError::Stopped));
    });
    // What this side had said still arrives, and then its end.
    met.control[0].1.send(b"x").unwrap();
    drop(met);
    let mut byte = [0; 1];
    other.control[0].1.recv(&mut byte).unwrap();
    assert_eq!(&byte, b"x");
    assert_eq!(other.control[0].1.recv(&mut byte), Err(ChannelError::Cut));
}

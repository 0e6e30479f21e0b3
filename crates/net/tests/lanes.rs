//! Lanes over real sockets: through the port of a meeting, through one of a worker's own, and past strangers.

use base::{Error, Fault, PartyId, Roster};
use net::connect::{ChannelSecurity, Meet, Meeting, Rendezvous};
use net::lanes::{
    LaneChannel, LaneCutter, LaneKey, LaneListener, LanePort, LaneTerms, ListeningPort, dial_lane,
    recv_stream, send_stream, take_lane,
};
use net::{Channel, Identity, KeyFingerprint};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const RUN: [u8; 32] = [7; 32];

fn roster() -> Roster {
    Roster::new(["registry", "hospitals"])
}

/// Two parties that have met; the second one has gone to the first.
fn met() -> [Meeting; 2] {
    let identities = [0; 2].map(|_| Arc::new(Identity::generate().unwrap()));
    let keys: Vec<KeyFingerprint> = identities.iter().map(|identity| identity.fingerprint()).collect();
    let at = base::free_address().unwrap();
    let meet = |me: u8, endpoint| {
        let identity = identities[usize::from(me)].clone();
        let transport = ChannelSecurity::Tls { identity, keys: keys.clone() };
        Meet::new(PartyId(me), roster(), endpoint, transport, [1; 32]).patience(Duration::from_secs(20))
    };
    let (first, second) = (meet(0, Rendezvous::Listen(at.clone())), meet(1, Rendezvous::Dial(at)));
    let other = std::thread::spawn(move || second.meet(2).unwrap());
    [first.meet(2).unwrap(), other.join().unwrap()]
}

fn port() -> (ListeningPort, String) {
    let [mut first, mut second] = met();
    let (LanePort::Listens(port), LanePort::Dials(address)) =
        (first.lane_port().unwrap(), second.lane_port().unwrap())
    else {
        panic!("one listens, the other dials")
    };
    (port, address)
}

/// A worker's half of generation 2 of lane 3, towards a peer of this key.
fn terms(me: u8, peer: &LaneKey) -> LaneTerms {
    LaneTerms {
        run: RUN,
        lane: 3,
        generation: 2,
        me: PartyId(me),
        roster: roster(),
        peer: peer.fingerprint(),
        deadline: Duration::from_secs(20),
    }
}

fn keys() -> [Arc<LaneKey>; 2] {
    [0; 2].map(|_| Arc::new(LaneKey::fresh().unwrap()))
}

type Opened = Result<LaneChannel, Error>;

fn dial(
    address: &str,
    [own, peer]: [&Arc<LaneKey>; 2],
    change: impl FnOnce(&mut LaneTerms),
) -> JoinHandle<Opened> {
    let (address, own, mut terms) = (address.to_owned(), own.clone(), terms(1, peer));
    change(&mut terms);
    std::thread::spawn(move || dial_lane(&address, &own, &terms, &LaneCutter::default()))
}

/// Both ends say something and hear it; the session's name.
fn talk(mut a: LaneChannel, mut b: LaneChannel) -> [u8; 32] {
    assert_eq!(a.session, b.session);
    let session = a.session;
    let hear = |channel: &mut dyn Channel, said: &[u8; 6]| {
        let mut heard = [0; 6];
        channel.recv(&mut heard).unwrap();
        assert_eq!(&heard, said);
    };
    let other = std::thread::spawn(move || {
        hear(&mut *b.channel, b"from a");
        b.channel.send(b"from b").unwrap();
        b.channel.finish().unwrap();
    });
    a.channel.send(b"from a").unwrap();
    hear(&mut *a.channel, b"from b");
    other.join().unwrap();
    session
}

#[test]
fn a_lane_comes_in_at_the_port_past_strangers() {
    let (port, address) = port();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let [own, theirs] = keys();
        port.expect(&RUN, 3, 2);
        let silent = TcpStream::connect(&address).unwrap();
        let mut page = TcpStream::connect(&address).unwrap();
        page.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let short = |terms: &mut LaneTerms| terms.deadline = Duration::from_millis(600);
        // Of an earlier generation, of another lane, of another run.
        let strangers = [
            dial(&address, [&theirs, &own], |terms| {
                short(terms);
                terms.generation = 1;
            }),
            dial(&address, [&theirs, &own], |terms| {
                short(terms);
                terms.lane = 2;
            }),
            dial(&address, [&theirs, &own], |terms| {
                short(terms);
                terms.run = [8; 32];
            }),
        ];
        for stranger in strangers {
            assert!(stranger.join().unwrap().is_err());
        }
        assert!(port.next(Duration::ZERO).is_none());
        let peer = dial(&address, [&theirs, &own], |_| ());
        let come = port.next(Duration::from_secs(20)).expect("it comes");
        assert_eq!((come.lane, come.generation), (3, 2));
        // As a worker process gets it.
        let (here, there) = UnixStream::pair().unwrap();
        send_stream(&here, &come.stream).unwrap();
        drop(come);
        let stream = recv_stream(&there).unwrap();
        let taken = take_lane(stream, &own, &terms(0, &theirs), &LaneCutter::default()).unwrap();
        sessions.push(talk(taken, peer.join().unwrap().unwrap()));
        drop(silent);
    }
    assert_ne!(sessions[0], sessions[1]);
    // Once is enough: who asks again is a stranger.
    let [own, theirs] = keys();
    let again = dial(&address, [&theirs, &own], |terms| terms.deadline = Duration::from_millis(600));
    assert!(again.join().unwrap().is_err() && port.next(Duration::ZERO).is_none());
}

#[test]
fn a_worker_with_a_port_of_its_own_takes_the_key_that_was_told() {
    let [own, theirs] = keys();
    let [other, _] = keys();
    let listener = LaneListener::bind("127.0.0.1:0").unwrap();
    let address = format!("127.0.0.1:{}", listener.port());
    let (key, awaits) = (own.clone(), terms(0, &theirs));
    let taken = std::thread::spawn(move || listener.take(&key, &awaits, &[], &LaneCutter::default()));
    let silent = TcpStream::connect(&address).unwrap();
    let refused = dial(&address, [&other, &own], |_| ()).join().unwrap().err().expect("another key");
    assert!(refused.to_string().contains("does not take the key of this worker"), "{refused}");
    let refused = dial(&address, [&theirs, &other], |_| ()).join().unwrap().err().expect("another key");
    assert!(refused.to_string().contains("not the key that was told"), "{refused}");
    let peer = dial(&address, [&theirs, &own], |_| ()).join().unwrap().unwrap();
    talk(taken.join().unwrap().unwrap(), peer);
    drop(silent);
}

#[test]
fn another_lane_under_the_right_key_deviates() {
    let [own, theirs] = keys();
    let listener = LaneListener::bind("127.0.0.1:0").unwrap();
    let address = format!("127.0.0.1:{}", listener.port());
    let (key, awaits) = (own.clone(), terms(0, &theirs));
    let taken = std::thread::spawn(move || listener.take(&key, &awaits, &[], &LaneCutter::default()));
    let peer = dial(&address, [&theirs, &own], |terms| terms.generation = 3);
    let error = taken.join().unwrap().err().expect("another generation");
    assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
    assert!(peer.join().unwrap().is_err());
}

#[test]
fn who_is_cut_waits_no_longer() {
    let [own, theirs] = keys();
    let (cutter, listener) = (LaneCutter::default(), LaneListener::bind("127.0.0.1:0").unwrap());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let (cut, awaits, key) = (cutter.clone(), terms(0, &theirs), own.clone());
    let awaiting = std::thread::spawn(move || listener.take(&key, &awaits, &[], &cut).map(drop));
    let (cut, dials) = (cutter.clone(), terms(1, &own));
    let dialling = std::thread::spawn(move || dial_lane(&address, &theirs, &dials, &cut).map(drop));
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    cutter.cut();
    assert!(awaiting.join().unwrap().is_err() && dialling.join().unwrap().is_err());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn one_connection_is_handed_over_at_a_time() {
    let (mut here, there) = UnixStream::pair().unwrap();
    here.write_all(b"L").unwrap();
    assert!(recv_stream(&there).is_err(), "no descriptor");
    drop(here);
    assert!(recv_stream(&there).is_err(), "nobody is there");
}

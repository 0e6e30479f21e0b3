//! Lanes over real sockets: through the port of a meeting, through one of a worker's own, and past strangers.

use base::{Error, Fault, PartyId, Roster};
use net::connect::{ChannelSecurity, Meet, Meeting, Rendezvous};
use net::lanes::{
    LaneChannel, LaneCutter, LaneKey, LaneListener, LanePort, LaneTerms, ListeningPort, dial_lane,
    recv_stream, send_stream, take_lane,
};
use net::{Channel, Identity, KeyFingerprint};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
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
fn a_lane_that_is_dropped_is_closed() {
    let [own, theirs] = keys();
    let listener = LaneListener::bind("127.0.0.1:0").unwrap();
    let address = format!("127.0.0.1:{}", listener.port());
    // The cutter outlives the lane, as a worker's does.
    let (cutter, awaits) = (LaneCutter::default(), terms(0, &theirs));
    let peer = dial(&address, [&theirs, &own], |_| ());
    let taken = listener.take(&own, &awaits, &[], &cutter).unwrap();
    let mut peer = peer.join().unwrap().unwrap();
    let begun = Instant::now();
    drop(taken);
    // Who goes on sending is told as well: nobody holds the other end.
    while peer.channel.send(&[0; 1 << 16]).is_ok() {}
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_name_in_two_segments_is_read_and_nothing_is_taken() {
    let (port, address) = port();
    let [own, theirs] = keys();
    port.expect(&RUN, 3, 2);
    // Between the dialling worker and the port: the first 100 bytes go ahead of all others.
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = dial(&between.local_addr().unwrap().to_string(), [&theirs, &own], |_| ());
    let (mut from, _) = between.accept().unwrap();
    let mut to = TcpStream::connect(&address).unwrap();
    to.set_nodelay(true).unwrap();
    let mut begun = [0; 100];
    from.read_exact(&mut begun).unwrap();
    to.write_all(&begun).unwrap();
    assert!(port.next(Duration::from_millis(200)).is_none(), "a piece names nothing");
    for (mut from, mut to) in
        [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to.try_clone().unwrap(), from)]
    {
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    }
    let come = port.next(Duration::from_secs(20)).expect("it comes");
    let taken = take_lane(come.stream, &own, &terms(0, &theirs), &LaneCutter::default()).unwrap();
    talk(taken, peer.join().unwrap().unwrap());
}

/// Where a process of its own finds the descriptor at which it is handed a connection.
const HANDED: &str = "TACIT_TEST_LANE";

/// The worker process of the next test; nothing by itself.
#[test]
fn a_worker_process() {
    let Ok(told) = std::env::var(HANDED) else { return };
    let peer: KeyFingerprint = told.parse().unwrap();
    let own = LaneKey::fresh().unwrap();
    // Standard input is the socket: a process has no other descriptor by name.
    let over = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    writeln!(&over, "{}", own.fingerprint()).unwrap();
    let stream = recv_stream(&over).unwrap();
    let terms = LaneTerms { peer, ..terms(0, &own) };
    let mut lane = take_lane(stream, &own, &terms, &LaneCutter::default()).unwrap();
    let mut bytes = vec![0; 1 << 20];
    lane.channel.recv(&mut bytes).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 0xff);
    lane.channel.send(&bytes).unwrap();
    lane.channel.send(&lane.session).unwrap();
    lane.channel.finish().unwrap();
}

#[test]
fn a_lane_is_handed_to_a_worker_process() {
    let (port, address) = port();
    let theirs = Arc::new(LaneKey::fresh().unwrap());
    let (here, there) = UnixStream::pair().unwrap();
    here.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["a_worker_process", "--exact", "--nocapture"])
        .env(HANDED, theirs.fingerprint().to_string())
        .stdin(OwnedFd::from(there))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(&here).read_line(&mut told).unwrap();
    let peer: KeyFingerprint = told.trim().parse().unwrap();
    port.expect(&RUN, 3, 2);
    let terms = LaneTerms { peer, ..terms(1, &theirs) };
    let dialled = std::thread::spawn(move || dial_lane(&address, &theirs, &terms, &LaneCutter::default()));
    send_stream(&here, &port.next(Duration::from_secs(20)).expect("it comes").stream).unwrap();
    let mut lane = dialled.join().unwrap().unwrap();
    lane.channel.send(&vec![0xa5; 1 << 20]).unwrap();
    let (mut bytes, mut session) = (vec![0; 1 << 20], [0; 32]);
    lane.channel.recv(&mut bytes).unwrap();
    lane.channel.recv(&mut session).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0x5a));
    assert_eq!(session, lane.session);
    assert!(child.wait().unwrap().success());
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
    // Nobody is at this one: the worker waits to dial again, for a second by then.
    let (nobody, dials, key) = (base::free_address().unwrap(), terms(1, &own), own.clone());
    let cut = cutter.clone();
    let again = std::thread::spawn(move || dial_lane(&nobody, &key, &dials, &cut).map(drop));
    std::thread::sleep(Duration::from_millis(1500));
    let begun = Instant::now();
    cutter.cut();
    for waiting in [awaiting, dialling, again] {
        assert!(waiting.join().unwrap().is_err());
    }
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[test]
fn one_connection_is_handed_over_at_a_time() {
    let (mut here, there) = UnixStream::pair().unwrap();
    here.write_all(b"L").unwrap();
    assert!(recv_stream(&there).is_err(), "no descriptor");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (file, ..) = UnixStream::pair().unwrap();
    let (one, two, other) = ([stream.as_fd()], [stream.as_fd(); 2], [file.as_fd()]);
    for (fds, good) in [(&one[..], true), (&two[..], false), (&other[..], false), (&one[..], true)] {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        sendmsg(&here, &[IoSlice::new(b"L")], &mut control, SendFlags::empty()).unwrap();
        assert_eq!(recv_stream(&there).is_ok(), good);
    }
    drop(here);
    assert!(recv_stream(&there).is_err(), "nobody is there");
}

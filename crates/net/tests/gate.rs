//! A gate before a party that listens: who is meant gets through, TLS end to end; everybody else gets
//! nowhere, and keeps nobody out.

mod common;

use base::Error;
use common::{HOSPITALS, Keys, REGISTRY, listen, meet};
use net::gate::{GateAccess, GateEvent, GateSetup, PublicGate, meeting_label};
use net::lanes::{LanePort, ListeningPort};
use net::{Identity, KeyFingerprint, Meeting, Rendezvous};
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The beginning of a TLS record that never ends.
const FIRST_BYTES: [u8; 5] = [0x16, 3, 1, 2, 0];

/// A gate on a thread of its own, and what it said.
struct TestGate {
    public: SocketAddr,
    inside: SocketAddr,
    key: KeyFingerprint,
    stop: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<GateEvent>>>,
    thread: Option<JoinHandle<()>>,
}

impl TestGate {
    fn before(coordinators: &[KeyFingerprint]) -> Self {
        Self::at("127.0.0.1:0", coordinators, &[])
    }

    fn at(inside: &str, coordinators: &[KeyFingerprint], to: &[&str]) -> Self {
        let identity = Arc::new(Identity::generate().unwrap());
        let (key, coordinators) = (identity.fingerprint(), coordinators.to_vec());
        let (listen, inside) = ("127.0.0.1:0".to_owned(), inside.to_owned());
        let to = to.iter().map(|network| network.parse().unwrap()).collect();
        let setup = GateSetup { listen, inside, identity, coordinators, allow: Vec::new(), to };
        let gate = PublicGate::open(&setup).unwrap();
        let [public, inside] = gate.addresses();
        let (stop, said) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (over, log) = (stop.clone(), said.clone());
        let serve = move || gate.serve(&over, &|event| log.lock().unwrap().push(event));
        Self { public, inside, key, stop, said, thread: Some(std::thread::spawn(serve)) }
    }

    fn access(&self) -> Option<GateAccess> {
        Some(GateAccess { address: self.inside.to_string(), key: self.key, host: None })
    }

    /// Waits until it has said something.
    #[track_caller]
    fn hear(&self, what: &str, is: impl Fn(&GateEvent) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !self.said.lock().unwrap().iter().any(&is) {
            assert!(Instant::now() < until, "{what} never came: {:#?}", self.said.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    fn hear_refusal(&self, words: &str) {
        self.hear(words, |event| matches!(event, GateEvent::Refused { why, .. } if why.contains(words)));
    }
}

impl Drop for TestGate {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Connects from an address of its own on loopback.
fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// What TLS begins with where it asks for a name.
fn client_hello(name: &str) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut bytes = Vec::new();
    ClientConnection::new(Arc::new(config), name).unwrap().write_tls(&mut bytes).unwrap();
    bytes
}

/// Reads until the other side ends the connection; what it said.
fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            panic!("the connection stays open")
        }
        _ => said,
    }
}

/// Both sides of a meeting through a gate, with so many lanes: registry, hospitals.
fn met_through(gate: &TestGate, keys: &Keys, lanes: u32) -> (Meeting, Meeting) {
    let access = gate.access();
    let listening = listen(keys.tls(HOSPITALS), lanes, |m| m.behind(access));
    let at = Rendezvous::Dial(gate.public.to_string());
    let dialled = meet(REGISTRY, at, keys.tls(REGISTRY)).meet(lanes);
    (dialled.unwrap(), listening.join().unwrap())
}

#[test]
fn a_meeting_comes_through_a_gate() {
    let keys = Keys::new();
    let gate = TestGate::before(&[keys.study[1]]);
    let (mut a, mut b) = met_through(&gate, &keys, 2);
    assert_eq!(a.session_id, b.session_id);
    let sent: Vec<u8> = (0..1 << 20).map(|i: u32| (i.wrapping_mul(i) >> 7) as u8).collect();
    let (channel, expected) = (&mut a.workers[1][0].1, sent.clone());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            channel.send(&sent).unwrap();
            channel.finish().unwrap();
        });
        let mut got = vec![0; expected.len()];
        b.workers[1][0].1.recv(&mut got).unwrap();
        assert!(got == expected);
    });
    drop((a, b));
    gate.hear("the end of the routes", |e| matches!(e, GateEvent::CoordinatorLeft { routes: 1, .. }));
    gate.hear("a long one", |e| matches!(e, GateEvent::Ended { bytes: [out, _], .. } if *out > 1 << 20));
    let label = meeting_label(&[7; 32], &keys.study[1]);
    let carried = |event: &&GateEvent| matches!(event, GateEvent::Carried { name, .. } if *name == label);
    let carried = gate.said.lock().unwrap().iter().filter(carried).count();
    assert!(carried >= 3, "control and two lanes: {carried}");
    // The route has gone with the coordinator.
    let mut late = TcpStream::connect(gate.public).unwrap();
    late.write_all(&client_hello(&label)).unwrap();
    assert!(until_closed(late).is_empty());
    gate.hear_refusal("nobody registered");
}

#[test]
fn a_gate_that_ends_takes_what_it_carries_along_and_a_meeting_finds_the_next_one() {
    let keys = Keys::new();
    let gate = TestGate::before(&[keys.study[1]]);
    let (mut a, _b) = met_through(&gate, &keys, 0);
    let access = gate.access();
    drop(gate);
    assert!(a.control[0].1.recv(&mut [0]).is_err());
    // Nobody is there yet: a coordinator waits for the gate as for a peer.
    let access = access.map(|access| GateAccess { address: base::free_address().unwrap(), ..access });
    let (inside, transport) = (access.clone().unwrap().address, keys.tls(HOSPITALS));
    let endpoint = Rendezvous::Listen("127.0.0.1:0".into());
    let (tell, told) = std::sync::mpsc::channel();
    let waiting = meet(HOSPITALS, endpoint, transport).behind(access).watch(move |status| {
        let _ = tell.send(status.to_string());
    });
    let waiting = std::thread::spawn(move || waiting.meet(0));
    while !told.recv_timeout(Duration::from_secs(60)).unwrap().contains(&format!("the gate at {inside}")) {}
    let other = TestGate::at(&inside, &[keys.study[1]], &[]);
    // It is not the gate whose key was told.
    let error = waiting.join().unwrap().err().unwrap().to_string();
    assert!(error.contains(&format!("it proves {}, and gate_key is", other.key)), "{error}");
}

#[test]
fn a_stranger_registers_nothing() {
    let keys = Keys::new();
    let gate = TestGate::before(&[Keys::new().study[0]]);
    let endpoint = || Rendezvous::Listen("127.0.0.1:0".into());
    let error = |access| -> Error {
        meet(HOSPITALS, endpoint(), keys.tls(HOSPITALS)).behind(access).meet(0).err().unwrap()
    };
    let text = error(gate.access()).to_string();
    let words = format!("does not take this party's key: start it with --coordinator {}", keys.study[1]);
    assert!(text.contains(&words), "{text}");
    gate.hear_refusal(&format!("add --coordinator {}", keys.study[1]));
    // The public side takes no routes, whoever comes.
    let public = gate.access().map(|access| GateAccess { address: gate.public.to_string(), ..access });
    let impatient = meet(HOSPITALS, endpoint(), keys.tls(HOSPITALS)).patience(Duration::from_secs(2));
    let text = impatient.behind(public).meet(0).err().unwrap().to_string();
    assert!(text.contains("coordinators come to its --inside address"), "{text}");
    assert!(!gate.said.lock().unwrap().iter().any(|event| matches!(event, GateEvent::Routed { .. })));
}

#[test]
fn strangers_get_nowhere() {
    let keys = Keys::new();
    let gate = TestGate::before(&[keys.study[1]]);
    let knock = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(gate.public).unwrap();
        // The gate may have ended it before all is written.
        let _ = stream.write_all(bytes);
        until_closed(stream)
    };
    assert!(knock(b"GET / HTTP/1.1\r\n\r\n").is_empty());
    gate.hear_refusal("asks for no name, or does not speak TLS");
    assert!(knock(&client_hello("m.0011223344556677.tacit.invalid")).is_empty());
    gate.hear_refusal("nobody registered");
    // A hello of 20,000 bytes in records of 16,000, of which more is due.
    let record = |len: u16, body: &[u8]| [&[0x16, 3, 1], &len.to_be_bytes()[..], body].concat();
    let mut body = vec![1, 0, 0x4e, 0x20];
    body.resize(16_000, 0);
    assert!(knock(&[record(16_000, &body), record(16_000, &body)].concat()).is_empty());
    let hello = client_hello("l0-0.0011223344556677.tacit.invalid");
    // One that is cut, at every place where it may be; and one that drips is whole in the end.
    for cut in [1, 5, 40, hello.len() - 1] {
        let mut stream = TcpStream::connect(gate.public).unwrap();
        stream.write_all(&hello[..cut]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(until_closed(stream).is_empty(), "{cut}");
    }
    let mut dripping = TcpStream::connect(gate.public).unwrap();
    for piece in hello.chunks(100) {
        dripping.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(until_closed(dripping).is_empty());
    // And the peer comes through.
    met_through(&gate, &keys, 1);
}

#[test]
fn a_gate_leads_nowhere_else() {
    let keys = Keys::new();
    let gate = TestGate::at("127.0.0.1:0", &[keys.study[1]], &["10.0.0.0/8", "127.0.0.2"]);
    let access = gate.access();
    let listening =
        listen(keys.tls(HOSPITALS), 0, |meet| meet.behind(access).patience(Duration::from_secs(2)));
    let label = meeting_label(&[7; 32], &keys.study[1]);
    gate.hear("a route", |event| matches!(event, GateEvent::Routed { name, .. } if *name == label));
    let mut comes = TcpStream::connect(gate.public).unwrap();
    comes.write_all(&client_hello(&label)).unwrap();
    assert!(until_closed(comes).is_empty());
    gate.hear_refusal("it is in no network of --to");
    assert!(listening.join().is_err());
    let gate = TestGate::at("127.0.0.1:0", &[keys.study[1]], &["127.0.0.0/8"]);
    met_through(&gate, &keys, 0);
}

#[test]
fn who_is_refused_and_stays_keeps_no_place() {
    let keys = Keys::new();
    let gate = TestGate::before(&[keys.study[1]]);
    let access = gate.access();
    let listening = listen(keys.tls(HOSPITALS), 0, |meet| {
        meet.behind(access).deadline(Duration::from_secs(1)).patience(Duration::from_secs(5))
    });
    let label = meeting_label(&[7; 32], &keys.study[1]);
    gate.hear("a route", |event| matches!(event, GateEvent::Routed { name, .. } if *name == label));
    // It says hello, hears that it is refused, and does not go.
    let mut stays = TcpStream::connect(gate.public).unwrap();
    stays.write_all(&client_hello(&label)).unwrap();
    gate.hear(
        "the end of who stays",
        |event| matches!(event, GateEvent::Ended { name, .. } if *name == label),
    );
    drop(stays);
    assert!(listening.join().is_err(), "nobody else has come");
}

/// Hands on to a gate's inside address, until it is cut.
struct Relay {
    at: SocketAddr,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn before(gate: &TestGate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, inside, ends) =
            (listener.local_addr().unwrap(), gate.inside, Arc::<Mutex<Vec<_>>>::default());
        let kept = ends.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let pair = [near.unwrap(), TcpStream::connect(inside).unwrap()];
                for (from, to) in [(0, 1), (1, 0)] {
                    let [mut from, mut to] = [from, to].map(|end: usize| pair[end].try_clone().unwrap());
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                kept.lock().unwrap().extend(pair);
            }
        });
        Self { at, ends }
    }

    fn cut(&self) {
        self.ends.lock().unwrap().drain(..).for_each(|end| _ = end.shutdown(Shutdown::Both));
    }
}

/// The lanes' port of a listening party that met through a gate.
fn lanes_of(meeting: &mut Meeting) -> ListeningPort {
    match meeting.lane_port().unwrap() {
        LanePort::Listens(port) => port,
        LanePort::Dials(_) => panic!("it listens"),
    }
}

/// What lies between a coordinator and its gate breaks; what the gate carries does not.
#[test]
fn a_coordinator_whose_connection_broke_registers_again_and_keeps_its_names() {
    let (keys, others) = (Keys::new(), Keys::new());
    let gate = TestGate::before(&[keys.study[1], others.study[1]]);
    let relay = Relay::before(&gate);
    let access = gate.access().map(|access| GateAccess { address: relay.at.to_string(), ..access });
    let listening = listen(keys.tls(HOSPITALS), 0, |meet| meet.behind(access));
    let at = Rendezvous::Dial(gate.public.to_string());
    let mut outside = meet(REGISTRY, at, keys.tls(REGISTRY)).meet(0).unwrap();
    let mut inside = listening.join().unwrap();
    let port = lanes_of(&mut inside);
    let worker = TcpListener::bind("127.0.0.1:0").unwrap();
    let (run, to) = ([3; 32], worker.local_addr().unwrap().to_string());
    assert!(port.route(&run, 0, 0, &to).unwrap());
    relay.cut();
    gate.hear("the end of the routes", |event| matches!(event, GateEvent::CoordinatorLeft { routes: 2, .. }));
    // Another coordinator of this gate knows the names, as whoever watches the network does.
    let (_other, mut another) = met_through(&gate, &others, 0);
    let error = lanes_of(&mut another).route(&run, 0, 1, "127.0.0.1:9").unwrap_err().to_string();
    assert!(error.contains("another coordinator, with another key"), "{error}");
    // The first one goes on: its next lane brings all of its routes back.
    assert!(port.route(&run, 1, 0, &to).unwrap());
    let lanes: Vec<String> = (gate.said.lock().unwrap().iter())
        .filter_map(|event| match event {
            GateEvent::Routed { name, to: led } if *led == to => Some(name.clone()),
            _ => None,
        })
        .collect();
    for name in [&lanes[0], lanes.last().unwrap()] {
        let mut comes = TcpStream::connect(gate.public).unwrap();
        comes.write_all(&client_hello(name)).unwrap();
        let mut first = [0; 3];
        worker.accept().unwrap().0.read_exact(&mut first).unwrap();
        assert_eq!(first[0], FIRST_BYTES[0], "{name}");
    }
    inside.control[0].1.send(&[7]).unwrap();
    inside.control[0].1.finish().unwrap();
    outside.control[0].1.recv(&mut [0]).unwrap();
}

/// Sends from inside to outside, which is more than who is refused is told.
fn tell_outside(inside: &mut Meeting, outside: &mut Meeting, bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            inside.workers[0][0].1.send(&vec![5; bytes]).unwrap();
            inside.workers[0][0].1.finish().unwrap();
        });
        outside.workers[0][0].1.recv(&mut vec![0; bytes]).unwrap();
    });
}

/// Strangers of many addresses, half of them with the name and none with a key, come while parties compute.
#[test]
fn a_flood_ends_nothing_that_was_let_in() {
    let keys = Keys::new();
    let gate = TestGate::before(&[keys.study[1]]);
    let (mut outside, mut inside) = met_through(&gate, &keys, 1);
    tell_outside(&mut inside, &mut outside, 64 << 10);
    let hello = client_hello(&meeting_label(&[7; 32], &keys.study[1]));
    let mut held = std::collections::VecDeque::new();
    for number in 0..1000 {
        let mut stream = from(2 + (number % 60) as u8, gate.public);
        let _ = stream.write_all([&FIRST_BYTES, &hello[..]][number % 2]);
        held.push_back(stream);
        if held.len() > 240 {
            held.pop_front();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    tell_outside(&mut inside, &mut outside, 64 << 10);
    inside.control[0].1.send(&[7]).unwrap();
    inside.control[0].1.finish().unwrap();
    outside.control[0].1.recv(&mut [0]).unwrap();
}

/// Many addresses hold as many connections as they get: silent, half way into a hello, and at a name that
/// exists and lets nobody in. A hello that takes too long ends by itself.
#[test]
fn a_flood_keeps_no_peer_out() {
    let keys = Keys::new();
    let gate = TestGate::before(&[keys.study[1]]);
    let mut slow = from(99, gate.public);
    slow.write_all(&FIRST_BYTES).unwrap();
    let hello = client_hello(&meeting_label(&[7; 32], &keys.study[1]));
    let (over, public) = (AtomicBool::new(false), gate.public);
    let came = std::thread::scope(|scope| {
        let (over, hello) = (&over, &hello);
        let come = move |number: usize| {
            let mut stream = from(2 + (number % 40) as u8, public);
            let bytes = [&[][..], &FIRST_BYTES, hello][number % 3];
            // It may have lost its place already.
            let _ = stream.write_all(bytes);
            stream
        };
        let mut held: Vec<TcpStream> = (0..240).map(come).collect();
        let flood = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                held.push(come(held.len()));
                std::thread::sleep(Duration::from_millis(20));
            }
            held.len()
        });
        let (a, b) = met_through(&gate, &keys, 1);
        over.store(true, Ordering::Relaxed);
        assert_eq!(a.session_id, b.session_id);
        flood.join().unwrap()
    });
    assert!(came >= 240, "{came}");
    assert!(until_closed(slow).is_empty());
}

//! Two parties on threads of one process that meet over loopback.
#![allow(dead_code, reason = "every test file uses its own part")]

use base::{Error, PartyId, Roster};
use net::{ChannelSecurity, Identity, KeyFingerprint, Meet, Meeting, Rendezvous, Status};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const REGISTRY: PartyId = PartyId(0);
pub const HOSPITALS: PartyId = PartyId(1);

pub fn roster() -> Roster {
    Roster::new(["registry", "hospitals"])
}

/// Identities of the two parties and the keys of their study.
pub struct Keys {
    pub identities: [Arc<Identity>; 2],
    pub study: Vec<KeyFingerprint>,
}

impl Keys {
    pub fn new() -> Self {
        let identities = [0, 1].map(|_| Arc::new(Identity::generate().unwrap()));
        let study = identities.iter().map(|i| i.fingerprint()).collect();
        Self { identities, study }
    }

    pub fn tls(&self, party: PartyId) -> ChannelSecurity {
        ChannelSecurity::Tls { identity: self.identities[party.index()].clone(), keys: self.study.clone() }
    }
}

/// One side's appointment; a minute for everything, the same agreement everywhere.
pub fn meet(me: PartyId, endpoint: Rendezvous, transport: ChannelSecurity) -> Meet {
    let meet = Meet::new(me, roster(), endpoint, transport, [7; 32]);
    meet.patience(Duration::from_secs(60)).deadline(Duration::from_secs(60))
}

/// What a listening side on a thread of its own reports.
pub struct Listening {
    pub at: SocketAddr,
    pub refused: Arc<Mutex<Vec<String>>>,
    thread: std::thread::JoinHandle<Result<Meeting, Error>>,
}

impl Listening {
    pub fn join(self) -> Result<Meeting, Error> {
        self.thread.join().unwrap()
    }

    /// Waits until so many connections have been refused.
    pub fn wait_refused(&self, count: usize) {
        for _ in 0..6000 {
            if self.refused.lock().unwrap().len() >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no {count} refusals: {:?}", self.refused.lock().unwrap());
    }

    pub fn dial(&self) -> Rendezvous {
        Rendezvous::Dial(self.at.to_string())
    }
}

/// The hospitals listen at a free port of loopback.
pub fn listen(
    transport: ChannelSecurity,
    lanes: u32,
    change: impl FnOnce(Meet) -> Meet + Send + 'static,
) -> Listening {
    let (tell, told): (_, Receiver<SocketAddr>) = channel();
    let refused = Arc::new(Mutex::new(Vec::new()));
    let log = refused.clone();
    let endpoint = Rendezvous::Listen("127.0.0.1:0".into());
    let meet = change(meet(HOSPITALS, endpoint, transport)).watch(move |status| match status {
        Status::Listening { at, peer } => {
            assert_eq!(status.to_string(), format!("waiting for {peer} at {at}"));
            tell.send(*at).unwrap();
        }
        Status::Refused { why } => log.lock().unwrap().push(why.clone()),
        Status::Waiting { .. } => panic!("a listening side does not dial"),
    });
    let thread = std::thread::spawn(move || meet.meet(lanes));
    Listening { at: told.recv().unwrap(), refused, thread }
}

/// Both sides of a meeting: registry, hospitals.
pub fn met(transports: [ChannelSecurity; 2], lanes: u32) -> (Meeting, Meeting) {
    let [registry, hospitals] = transports;
    let listening = listen(hospitals, lanes, |m| m);
    let dialled = meet(REGISTRY, listening.dial(), registry).meet(lanes).unwrap();
    (dialled, listening.join().unwrap())
}

pub fn met_tls(lanes: u32) -> (Meeting, Meeting) {
    let keys = Keys::new();
    met([keys.tls(REGISTRY), keys.tls(HOSPITALS)], lanes)
}

pub fn met_tcp(lanes: u32) -> (Meeting, Meeting) {
    met([ChannelSecurity::Tcp, ChannelSecurity::Tcp], lanes)
}

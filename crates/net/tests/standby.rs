//! Nodes that wait for word to begin: who may give it, what it may say, and that nobody who comes early is lost.

use base::{Error, PartyId, Roster};
use net::connect::{Standby, free_address};
use net::{Fingerprint, Identity, Meet, Meeting, Status, Transport};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const AGREED: [u8; 32] = [7; 32];
const LONG: Duration = Duration::from_secs(60);

struct World {
    identities: Vec<Arc<Identity>>,
    keys: Vec<Fingerprint>,
    addresses: Vec<String>,
}

impl World {
    fn new(parties: usize) -> Self {
        let identities: Vec<_> = (0..parties).map(|_| Arc::new(Identity::generate().unwrap())).collect();
        let keys = identities.iter().map(|identity| identity.fingerprint()).collect();
        Self { identities, keys, addresses: (0..parties).map(|_| free_address().unwrap()).collect() }
    }

    fn meet(&self, me: usize, agreement: [u8; 32]) -> Meet {
        let dial: BTreeMap<PartyId, String> =
            (0..me).map(|peer| (PartyId(peer as u8), self.addresses[peer].clone())).collect();
        let transport = Transport::Tls { identity: self.identities[me].clone(), keys: self.keys.clone() };
        let roster = Roster::new((0..self.keys.len()).map(|i| format!("p{i}")));
        let listen = Some(self.addresses[me].clone());
        Meet::all(PartyId(me as u8), roster, listen, dial, transport, agreement).patience(LONG).deadline(LONG)
    }

    fn standby(&self, me: usize) -> Standby {
        Standby::open(&self.addresses[me], &self.identities[me], self.keys.clone()).unwrap()
    }

    /// Waits for word and meets.
    fn node(&self, me: usize) -> Result<Meeting, Error> {
        let mut standby = self.standby(me);
        let call = standby.next(LONG)?.expect("somebody calls");
        assert_eq!((call.agreement, call.parties()[1]), (AGREED, PartyId(me as u8)));
        assert_eq!(call.key, self.keys[call.parties()[0].index()]);
        call.accept();
        self.meet(me, AGREED).meet_at(standby, 1)
    }
}

/// The last party says to begin; the one before it came long before that and was asked to come again.
#[test]
fn nodes_meet_when_one_party_says_so() {
    let world = World::new(4);
    let asked = Arc::new(AtomicUsize::new(0));
    let ids = std::thread::scope(|scope| {
        let nodes: Vec<_> = [0, 1]
            .map(|me| {
                scope.spawn({
                    let world = &world;
                    move || world.node(me)
                })
            })
            .into();
        let seen = asked.clone();
        let early = world.meet(2, AGREED).watch(move |status| {
            let again = matches!(status, Status::Waiting { why, .. } if why.contains("told to begin"));
            seen.fetch_add(usize::from(again), Ordering::Relaxed);
        });
        let early = scope.spawn(move || early.meet(1));
        while asked.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        let host = world.meet(3, AGREED);
        for node in [0, 1] {
            host.call(PartyId(node), &world.addresses[usize::from(node)]).unwrap();
        }
        let last = host.meet(1).unwrap().session_id;
        let mut ids: Vec<[u8; 32]> =
            nodes.into_iter().map(|thread| thread.join().unwrap().unwrap().session_id).collect();
        ids.extend([early.join().unwrap().unwrap().session_id, last]);
        ids
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
}

#[test]
fn a_node_that_refuses_is_not_asked_again() {
    let world = World::new(2);
    std::thread::scope(|scope| {
        let node = scope.spawn(|| {
            let mut standby = world.standby(0);
            let call = standby.next(LONG).unwrap().expect("somebody calls");
            assert_eq!(call.agreement, [8; 32]);
            call.refuse();
            // Nobody comes any more.
            assert!(standby.next(Duration::from_millis(50)).unwrap().is_none());
        });
        let error = world.meet(1, [8; 32]).call(PartyId(0), &world.addresses[0]).unwrap_err();
        assert!(error.to_string().contains("p0 does not begin this study"), "{error}");
        node.join().unwrap();
    });
}

/// Who proves no key of the study is never heard, and the party whom it stands for is not the node's caller either.
#[test]
fn a_stranger_cannot_say_to_begin() {
    let world = World::new(2);
    let mut stranger = World::new(2);
    stranger.keys[0] = world.keys[0];
    stranger.addresses[0] = world.addresses[0].clone();
    std::thread::scope(|scope| {
        let node = scope.spawn(|| world.standby(0).next(Duration::from_secs(2)).unwrap().is_none());
        let error =
            stranger.meet(1, AGREED).patience(Duration::from_secs(1)).call(PartyId(0), &world.addresses[0]);
        assert!(error.is_err());
        assert!(node.join().unwrap(), "the node heard nobody");
    });
}

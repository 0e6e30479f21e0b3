//! Nodes that wait for word to begin: who may give it, what it may say, and that nobody who comes early is
//! lost.

use base::free_address;
use base::{Error, PartyId, Roster};
use net::connect::Standby;
use net::{ChannelSecurity, Identity, KeyFingerprint, Meet, Meeting, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const AGREED: [u8; 32] = [7; 32];
const LONG: Duration = Duration::from_secs(60);

struct World {
    identities: Vec<Arc<Identity>>,
    keys: Vec<KeyFingerprint>,
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
        let transport =
            ChannelSecurity::Tls { identity: self.identities[me].clone(), keys: self.keys.clone() };
        let roster = Roster::new((0..self.keys.len()).map(|i| format!("p{i}")));
        let listen = Some(self.addresses[me].clone());
        Meet::all(PartyId(me as u8), roster, listen, dial, transport, agreement).patience(LONG).deadline(LONG)
    }

    fn standby(&self, me: usize) -> Standby {
        Standby::open(&self.addresses[me], &self.identities[me], self.keys.clone(), Vec::new(), LONG).unwrap()
    }

    /// Waits for word and meets.
    fn node(&self, me: usize) -> Result<Meeting, Error> {
        let mut standby = self.standby(me);
        let call = standby.next(LONG)?.expect("somebody calls");
        assert_eq!((call.agreement, call.parties()[1]), (AGREED, PartyId(me as u8)));
        assert_eq!(call.key, self.keys[call.parties()[0].index()]);
        let host = call.parties()[0];
        call.accept();
        self.meet(me, AGREED).meet_at(standby, host, 1)
    }

    /// A party that tells these nodes to begin.
    fn host(&self, me: usize, agreement: [u8; 32], nodes: &[usize]) -> Meet {
        let at = |node: &usize| (PartyId(*node as u8), self.addresses[*node].clone());
        self.meet(me, agreement).tell(nodes.iter().map(at).collect())
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
            let again = matches!(status, Status::Waiting { why, .. } if why.contains("nothing has begun"));
            seen.fetch_add(usize::from(again), Ordering::Relaxed);
        });
        let early = scope.spawn(move || early.meet(1));
        while asked.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        let last = world.host(3, AGREED, &[0, 1]).meet(1).unwrap().session_id;
        let mut ids: Vec<[u8; 32]> =
            nodes.into_iter().map(|thread| thread.join().unwrap().unwrap().session_id).collect();
        ids.extend([early.join().unwrap().unwrap().session_id, last]);
        ids
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
}

/// A host whose meeting fails for want of somebody blames that party, not the node that came; the node is
/// still there for its next attempt.
#[test]
fn a_host_that_comes_back_finds_its_node_waiting() {
    let world = World::new(3);
    std::thread::scope(|scope| {
        let node = scope.spawn(|| world.node(0));
        let first = world.host(2, AGREED, &[0]).patience(Duration::from_secs(1)).meet(1).unwrap_err();
        assert_eq!(first.at().peer.as_deref(), Some("p1"), "{first}");
        let late = scope.spawn(|| world.meet(1, AGREED).meet(1));
        let host = world.host(2, AGREED, &[0]).meet(1).unwrap();
        let ids = [node.join().unwrap(), late.join().unwrap()].map(|met| met.unwrap().session_id);
        assert_eq!(ids, [host.session_id; 2]);
    });
}

/// On the word of a party that is gone, a node waits for nobody else.
#[test]
fn a_node_gives_up_on_a_host_that_stays_away() {
    let world = World::new(3);
    for comes in [false, true] {
        let error = std::thread::scope(|scope| {
            let node = scope.spawn(|| {
                let mut standby = world.standby(0);
                let call = standby.next(LONG)?.expect("somebody calls");
                call.accept();
                let meet = world.meet(0, AGREED).deadline(Duration::from_millis(500));
                meet.meet_at(standby, PartyId(2), 1)
            });
            // Told by the host or, in its name, by a party that comes as itself.
            let host = world.host(if comes { 2 } else { 1 }, AGREED, &[0]);
            assert!(host.patience(Duration::from_millis(800)).meet(1).is_err());
            node.join().unwrap().unwrap_err()
        });
        let what =
            if comes { "p2 said to begin and has left again" } else { "p2 said to begin and does not come" };
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(error.at().peer.as_deref(), Some("p2"));
    }
}

/// A node holds several studies: parties of another one are asked to come again, and disturb nothing.
#[test]
fn a_party_of_another_study_does_not_end_a_meeting() {
    let (world, other) = (World::new(3), World::new(2));
    let keys: Vec<KeyFingerprint> = world.keys.iter().chain(&other.keys[1..]).copied().collect();
    std::thread::scope(|scope| {
        let node = scope.spawn(|| {
            let mut standby =
                Standby::open(&world.addresses[0], &world.identities[0], keys, Vec::new(), LONG)?;
            let call = standby.next(LONG)?.expect("somebody calls");
            let host = call.parties()[0];
            call.accept();
            world.meet(0, AGREED).meet_at(standby, host, 1)
        });
        let host = scope.spawn(|| world.host(2, AGREED, &[0]).meet(1));
        // In its own study the node is party 0 as well.
        let keys = vec![world.keys[0], other.keys[1]];
        let transport = ChannelSecurity::Tls { identity: other.identities[1].clone(), keys };
        let dial = BTreeMap::from([(PartyId(0), world.addresses[0].clone())]);
        let stranger = Meet::all(PartyId(1), Roster::new(["p0", "p1"]), None, dial, transport, [8; 32]);
        let error = stranger.patience(Duration::from_secs(2)).meet(1).unwrap_err();
        assert!(error.to_string().contains("nothing has begun there yet"), "{error}");
        let late = world.meet(1, AGREED).meet(1).unwrap();
        let ids = [node.join().unwrap(), host.join().unwrap()].map(|met| met.unwrap().session_id);
        assert_eq!(ids, [late.session_id; 2]);
    });
}

/// Who comes once more after it has left takes its own place, and nobody else's.
#[test]
fn a_party_that_starts_again_is_met_again() {
    let world = World::new(3);
    let alone = Arc::new(AtomicUsize::new(0));
    let seen = alone.clone();
    let first = world.meet(0, AGREED).watch(move |status| {
        let both = matches!(status, Status::Listening { peer, .. } if peer == "p1, p2");
        seen.fetch_add(usize::from(both), Ordering::Relaxed);
    });
    std::thread::scope(|scope| {
        let first = scope.spawn(move || first.meet(1));
        let error = world.meet(1, AGREED).patience(Duration::from_millis(700)).meet(1).unwrap_err();
        assert_eq!(error.at().peer.as_deref(), Some("p2"), "{error}");
        // It was there, and is missing again.
        while alone.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        let world = &world;
        let others = [1, 2].map(|me| scope.spawn(move || world.meet(me, AGREED).meet(1)));
        let id = first.join().unwrap().unwrap().session_id;
        for other in others {
            assert_eq!(other.join().unwrap().unwrap().session_id, id);
        }
    });
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
        let error = world.host(1, [8; 32], &[0]).meet(1).unwrap_err();
        assert!(error.to_string().contains("p0 does not begin this study"), "{error}");
        node.join().unwrap();
    });
}

/// Who proves no key of the study is never heard, and the party whom it stands for is not the node's caller
/// either.
#[test]
fn a_stranger_cannot_say_to_begin() {
    let world = World::new(2);
    let mut stranger = World::new(2);
    stranger.keys[0] = world.keys[0];
    stranger.addresses[0] = world.addresses[0].clone();
    std::thread::scope(|scope| {
        let node = scope.spawn(|| world.standby(0).next(Duration::from_secs(2)).unwrap().is_none());
        let host = stranger.host(1, AGREED, &[0]).patience(Duration::from_secs(1));
        assert!(host.meet(1).is_err());
        assert!(node.join().unwrap(), "the node heard nobody");
    });
}

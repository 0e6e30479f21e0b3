//! Three and more parties: everybody meets everybody, and everybody learns who is missing, wrong or lost.

use base::free_address;
use base::{Error, Fault, PartyId, Roster, Seed};
use net::{ChannelSecurity, Channels, Identity, KeyFingerprint, Meet, Meeting, Session, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Parties `p0`, `p1`, ... with keys and an address each.
struct World {
    roster: Roster,
    identities: Vec<Arc<Identity>>,
    keys: Vec<KeyFingerprint>,
    addresses: Vec<String>,
    tls: bool,
}

impl World {
    fn new(parties: usize, tls: bool) -> Self {
        let identities: Vec<_> = (0..parties).map(|_| Arc::new(Identity::generate().unwrap())).collect();
        Self {
            roster: Roster::new((0..parties).map(|i| format!("p{i}"))),
            keys: identities.iter().map(|i| i.fingerprint()).collect(),
            identities,
            addresses: (0..parties).map(|_| free_address().unwrap()).collect(),
            tls,
        }
    }

    /// A party waits for those after it and goes to those before it.
    fn meet(&self, me: usize) -> Meet {
        let dial: BTreeMap<PartyId, String> =
            (0..me).map(|i| (PartyId(i as u8), self.addresses[i].clone())).collect();
        let transport = match self.tls {
            false => ChannelSecurity::Tcp,
            true => ChannelSecurity::Tls { identity: self.identities[me].clone(), keys: self.keys.clone() },
        };
        let (id, listen) = (PartyId(me as u8), Some(self.addresses[me].clone()));
        Meet::all(id, self.roster.clone(), listen, dial, transport, [7; 32])
            .patience(Duration::from_secs(60))
            .deadline(Duration::from_secs(60))
    }

    /// Runs `work` at these parties, each on a thread; results in their order.
    fn run<T: Send>(
        &self,
        parties: impl IntoIterator<Item = usize>,
        work: impl Fn(usize, Meet) -> Result<T, Error> + Sync,
    ) -> Vec<Result<T, Error>> {
        let work = &work;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                parties.into_iter().map(|i| scope.spawn(move || work(i, self.meet(i)))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    fn session(&self, me: usize, channels: Channels) -> Session {
        Session::new(PartyId(me as u8), self.roster.clone(), channels, Seed::from_bytes([me as u8; 32]))
    }
}

/// Everybody says its number to everybody, `rounds` times.
fn talk(session: &mut Session, rounds: usize) -> Result<(), Error> {
    let peers: Vec<PartyId> = session.roster().parties().filter(|p| *p != session.me()).collect();
    for _ in 0..rounds {
        for peer in &peers {
            let me = session.me().0;
            session.link(*peer).send(&[me; 100])?;
        }
        for peer in &peers {
            let got: [u8; 100] = session.link(*peer).recv_array()?;
            assert_eq!(got, [peer.0; 100]);
        }
    }
    Ok(())
}

#[test]
fn everybody_meets_everybody_on_every_lane() {
    for (parties, tls) in [(2, true), (3, true), (5, true), (5, false)] {
        let world = World::new(parties, tls);
        let ids = world.run(0..parties, |me, meet| {
            let mut meeting = meet.meet(2)?;
            let more = meeting.more(1)?;
            let Meeting { session_id, control, workers, .. } = meeting;
            assert_eq!(workers.len(), 2);
            for channels in [control].into_iter().chain(workers).chain(more) {
                assert_eq!(channels.len(), parties - 1);
                let mut session = world.session(me, channels);
                talk(&mut session, 3)?;
                session.finish()?;
            }
            Ok(session_id)
        });
        let ids: Vec<[u8; 32]> = ids.into_iter().map(Result::unwrap).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{parties} parties");
    }
}

#[test]
fn who_is_missing_is_named() {
    let world = World::new(5, true);
    let lines = Mutex::new(Vec::new());
    let errors = world.run([0, 1, 3], |me, meet| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        let watch = move |status: &Status| log.lock().unwrap().push(status.to_string());
        let met = meet.patience(Duration::from_secs(4)).watch(watch).meet(1);
        if me == 0 {
            lines.lock().unwrap().append(&mut heard.lock().unwrap());
        }
        met.map(|_| ())
    });
    let errors: Vec<String> = errors.into_iter().map(|e| e.unwrap_err().to_string()).collect();
    let at = &world.addresses[0];
    assert_eq!(
        errors[0],
        format!(
            "p0 at meet with p2, p4: p2, p4 did not come to {at} within 4.0 s; check that each of them is \
             running and dials this address"
        )
    );
    // Whichever ends first: its own patience, or that of a peer that it had met.
    for (me, error) in [(1, &errors[1]), (3, &errors[2])] {
        assert!(error.starts_with(&format!("p{me} at meet with p")), "{error}");
    }
    assert!(errors[2].contains("p2") || errors[2].contains("p4"), "{}", errors[2]);
    let lines = lines.into_inner().unwrap();
    assert_eq!(lines[0], format!("waiting for p1, p2, p3, p4 at {at}"));
    // Those who came may give up and leave a moment before p0 does.
    assert!(lines.contains(&format!("waiting for p2, p4 at {at}")), "{lines:?}");
}

#[test]
fn a_stranger_does_not_take_the_place_of_a_party() {
    let mut world = World::new(3, true);
    // The third party runs with a key that the others' study does not name.
    let stranger = Arc::new(Identity::generate().unwrap());
    let (theirs, study) = (stranger.fingerprint(), world.keys.clone());
    let right = std::mem::replace(&mut world.identities[2], stranger);
    let refused = Mutex::new(Vec::new());
    let done = world.run(0..3, |me, meet| {
        if me == 2 {
            let keys = vec![study[0], study[1], theirs];
            let transport = ChannelSecurity::Tls { identity: world.identities[2].clone(), keys };
            let dial = (0..2).map(|i| (PartyId(i as u8), world.addresses[i].clone())).collect();
            let wrong = Meet::all(PartyId(2), world.roster.clone(), None, dial, transport, [7; 32]);
            let error = wrong.meet(0).expect_err("nobody takes this key").to_string();
            assert!(error.contains(&format!("refused our key {theirs}")), "{error}");
            // The true one still gets in.
            let transport = ChannelSecurity::Tls { identity: right.clone(), keys: study.clone() };
            let dial = (0..2).map(|i| (PartyId(i as u8), world.addresses[i].clone())).collect();
            let meet = Meet::all(PartyId(2), world.roster.clone(), None, dial, transport, [7; 32]);
            return meet.meet(1).map(|meeting| meeting.session_id);
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        let watch = move |status: &Status| {
            if let Status::Refused { why } = status {
                log.lock().unwrap().push(why.clone());
            }
        };
        let met = meet.watch(watch).meet(1)?;
        refused.lock().unwrap().append(&mut heard.lock().unwrap());
        Ok(met.session_id)
    });
    let ids: Vec<[u8; 32]> = done.into_iter().map(Result::unwrap).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    let refused = refused.into_inner().unwrap();
    assert!(refused.iter().any(|why| why.contains("(no party of this study)")), "{refused:?}");
}

#[test]
fn a_party_cannot_come_as_another() {
    // Party 2 has a true key of the study, and says that it is party 1.
    let world = World::new(3, true);
    let first = world.meet(0);
    let first = std::thread::spawn(move || first.meet(0));
    let mut keys = world.keys.clone();
    keys.swap(1, 2);
    let transport = ChannelSecurity::Tls { identity: world.identities[2].clone(), keys };
    let dial = BTreeMap::from([(PartyId(0), world.addresses[0].clone())]);
    let listen = Some(free_address().unwrap());
    let liar = Meet::all(PartyId(1), world.roster.clone(), listen, dial, transport, [7; 32]);
    let error = liar.meet(0).expect_err("it is found out").to_string();
    assert!(error.contains("counts the parties in another order"), "{error}");
    let error = first.join().unwrap().expect_err("the study is not the same").to_string();
    assert!(error.starts_with("p0 at meet with p1, p2: 127."), "{error}");
    assert!(error.contains("p1 or p2 counts the parties in another order"), "{error}");
}

#[test]
fn another_study_is_found_among_many() {
    let world = World::new(3, true);
    let errors = world.run(0..3, |me, meet| {
        if me != 2 {
            // Who is left alone waits for the others to come back.
            return meet.patience(Duration::from_secs(10)).meet(0).map(|_| ());
        }
        let keys = ChannelSecurity::Tls { identity: world.identities[2].clone(), keys: world.keys.clone() };
        let dial = (0..2).map(|i| (PartyId(i as u8), world.addresses[i].clone())).collect();
        Meet::all(PartyId(2), world.roster.clone(), None, dial, keys, [8; 32]).meet(0).map(|_| ())
    });
    let errors: Vec<String> = errors.into_iter().map(|e| e.unwrap_err().to_string()).collect();
    // One of the two may hear of it as the end of the other.
    assert!(errors[..2].iter().any(|e| e.contains("p2 holds another study: hash 0808")), "{errors:?}");
    assert!(errors[2].contains("holds another study: hash 0707"), "{errors:?}");
}

/// What a party says when a peer dies in the middle: all name the one that died, whomever they were waiting
/// for.
#[test]
fn everybody_names_the_party_that_was_lost() {
    let world = World::new(5, true);
    let errors = world.run(0..5, |me, meet| {
        let mut meeting = meet.meet(1)?;
        let farewell = meeting.farewell()?;
        let mut session = world.session(me, meeting.workers.remove(0));
        let done = session.step("one", |s| talk(s, 1)).and_then(|()| {
            if me == 4 {
                // Dies without a word.
                return Err(Error::input("killed"));
            }
            // A chain: p0 waits for p1, p1 for p2, ..., p3 for the one that died.
            session.step("two", |s| s.link(PartyId(me as u8 + 1)).recv(&mut [0; 1]))
        });
        if me == 4 {
            drop(farewell);
            return done;
        }
        done.map_err(|error| farewell.stop(error))
    });
    for (me, error) in errors.into_iter().enumerate().take(4) {
        let error = error.unwrap_err();
        assert_eq!((error.at().peer.as_deref(), &*error.at().step), (Some("p4"), "two"), "{error}");
        let text = error.to_string();
        let told = format!("p{me} at two with p4: p{} stopped because p4 was lost at two", me + 1);
        let broke = "p3 at two with p4: the connection broke off before the peer was done";
        assert!(text.starts_with(if me == 3 { broke } else { &told }), "{text}");
    }
}

/// A check fails at one party: all others stop, and name it and those that it accuses, whomever they had it
/// from.
#[test]
fn everybody_hears_who_accuses_whom() {
    let world = World::new(5, true);
    let errors = world.run(0..5, |me, meet| {
        let mut meeting = meet.meet(1)?;
        let farewell = meeting.farewell()?;
        let mut session = world.session(me, meeting.workers.remove(0));
        let done = session.step("open", |s| match me {
            3 => Err(s.accuse(&[PartyId(2), PartyId(4)], "p2, vouched for by p4".into(), "a check")),
            4 => s.link(PartyId(3)).recv(&mut [0; 1]),
            _ => s.link(PartyId(me as u8 + 1)).recv(&mut [0; 1]),
        });
        done.map_err(|error| farewell.stop(error))
    });
    let suspects: [&[&str]; 5] =
        [&["p2", "p3", "p4"], &["p2", "p3", "p4"], &["p3", "p4"], &["p2", "p4"], &["p2", "p3"]];
    for (me, error) in errors.into_iter().enumerate() {
        let error = error.unwrap_err();
        let told = error.accusation().unwrap_or_else(|| panic!("{error}"));
        assert_eq!((&*told.by, &told.through, &*told.step), ("p3", &None, "open"), "{error}");
        assert_eq!(told.suspects(&format!("p{me}")), suspects[me], "{error}");
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
    }
}

#[test]
fn a_meeting_needs_an_address_for_every_pair() {
    let roster = Roster::new(["a", "b", "c"]);
    let dial = BTreeMap::from([(PartyId(0), "127.0.0.1:1".to_owned())]);
    let lacks = Meet::all(PartyId(1), roster.clone(), None, dial, ChannelSecurity::Tcp, [0; 32]);
    assert!(lacks.meet(0).is_err());
    let own = BTreeMap::from([(PartyId(1), "127.0.0.1:1".to_owned())]);
    let odd =
        Meet::all(PartyId(1), roster, Some(free_address().unwrap()), own, ChannelSecurity::Tcp, [0; 32]);
    assert!(odd.meet(0).is_err());
}

//! The same over sockets: TCP and TLS between three parties, and one that dies.

mod common;

use base::free_address;
use base::{Error, PartyId, Roster, Seed};
use circuits::Viewers;
use common::{circuit, eval, truth};
use gmw::{GateParty, Layers};
use net::{ChannelSecurity, Identity, Meet, Session};
use ot::OtKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const PARTIES: usize = 3;

/// Runs `work` at three parties that meet over sockets; results in party order.
fn meet<T: Send>(tls: bool, work: impl Fn(&mut Session) -> Result<T, Error> + Sync) -> Vec<Result<T, Error>> {
    let roster = Roster::new((0..PARTIES).map(|i| format!("p{i}")));
    let identities: Vec<_> = roster.parties().map(|_| Arc::new(Identity::generate().unwrap())).collect();
    let keys: Vec<_> = identities.iter().map(|identity| identity.fingerprint()).collect();
    let addresses: Vec<String> = roster.parties().map(|_| free_address().unwrap()).collect();
    let party = |me: PartyId| {
        let dial: BTreeMap<_, _> = roster.parties().zip(addresses.iter().cloned()).take(me.index()).collect();
        let transport = match tls {
            true => ChannelSecurity::Tls { identity: identities[me.index()].clone(), keys: keys.clone() },
            false => ChannelSecurity::Tcp,
        };
        let listen = Some(addresses[me.index()].clone());
        let meet = Meet::all(me, roster.clone(), listen, dial, transport, [1; 32]);
        let mut meeting = meet.patience(Duration::from_secs(60)).deadline(Duration::from_secs(60)).meet(0)?;
        let channels = std::mem::take(&mut meeting.control);
        let mut session = Session::new(me, roster.clone(), channels, Seed::from_bytes([me.0; 32]));
        let done = work(&mut session)?;
        session.finish()?;
        Ok(done)
    };
    let party = &party;
    std::thread::scope(|scope| {
        let threads: Vec<_> = roster.parties().map(|me| scope.spawn(move || party(me))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn sockets_carry_it() {
    let (c, roots) = circuit(PARTIES, 60, 11);
    let layers = Layers::new(&c, &roots);
    for tls in [false, true] {
        let done = meet(tls, |s| {
            let mut party = GateParty::new(s, OtKind::default(), 0)?;
            let shares = eval(&mut party, &layers, 500, s)?;
            party.reveal(shares, 500, &vec![&Viewers::Everyone; roots.len()], s)
        });
        for seen in done {
            let seen: Vec<Vec<u64>> = seen.unwrap().into_iter().flatten().collect();
            assert!(seen == truth(&c, &roots, 500), "tls: {tls}");
        }
    }
}

#[test]
fn a_party_that_dies_after_set_up_ends_the_others() {
    let (c, roots) = circuit(PARTIES, 60, 11);
    let layers = Layers::new(&c, &roots);
    let done = meet(true, |s| {
        let mut party = GateParty::new(s, OtKind::default(), 0)?;
        if s.me() == PartyId(2) {
            return Err(Error::misuse("dies here"));
        }
        eval(&mut party, &layers, 500, s)
    });
    for (party, done) in done.into_iter().enumerate().take(2) {
        let error = done.unwrap_err();
        assert_eq!(error.at().party, format!("p{party}"), "{error}");
        assert!(
            error.at().peer.is_some() && ["triples", "online"].contains(&error.at().step.as_str()),
            "{error}"
        );
    }
}

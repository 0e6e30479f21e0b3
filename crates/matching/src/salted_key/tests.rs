//! Two and three owners, one of whom may serve, and what a server or an owner that deviates meets.

use super::*;
use crate::identifiers::FlatIdentifiers;
use net::InjectedFault;
use net::cluster::Cluster;

const SALT: [u8; 32] = [5; 32];

fn roles(owners: u8, others: u8) -> MatchRoles {
    let ids = |range: std::ops::Range<u8>| range.map(PartyId).collect::<Vec<_>>();
    MatchRoles {
        owners: ids(0..owners),
        joiners: ids(owners..owners + 2),
        others: ids(owners + 2..owners + 2 + others),
    }
}

/// Rows of an owner, in its own order.
fn names(owner: u8) -> Vec<String> {
    let from = 40 * usize::from(owner);
    (0..100).map(|i| format!("person {}", from + (i * 37) % 100)).collect()
}

/// The same as protocols take them: bytes, and where each row ends.
fn column(owner: u8) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for name in names(owner) {
        bytes.extend_from_slice(name.as_bytes());
        ends.push(bytes.len() as u64);
    }
    (bytes, ends)
}

/// Sizes at everybody, with places at owners.
fn play(session: &mut Session, roles: &MatchRoles) -> Result<(MatchSizes, Vec<u32>), Error> {
    let me = session.me();
    session.step("match", |session| {
        if roles.owners.contains(&me) {
            let key = key(&Seed::from_bytes(SALT), &[1; 32], &[2; 32]);
            let (bytes, ends) = column(me.0);
            let (places, sizes) = enter(session, roles, &key, &FlatIdentifiers::new(&bytes, &ends)?)?;
            return Ok((sizes, places));
        }
        if roles.joiners.contains(&me) {
            return join(session, roles, 1 << 20).map(|sizes| (sizes, Vec::new()));
        }
        hear(session, roles).map(|sizes| (sizes, Vec::new()))
    })
}

#[test]
fn equal_rows_share_a_place_and_others_do_not() {
    for (owners, others) in [(2, 2), (3, 1), (2, 0)] {
        let roles = roles(owners, others);
        let parties = usize::from(owners + 2 + others);
        let done = Cluster::new(parties, 11).run(|session| {
            let told = play(session, &roles)?;
            Ok((told, session.traffic().sent("match")))
        });
        let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
        let sizes = &done[0].0.0;
        let union = 100 + 40 * (u64::from(owners) - 1);
        assert_eq!((&sizes.rows, sizes.union), (&vec![100; usize::from(owners)], union));
        assert!(done.iter().all(|((told, _), _)| told == sizes));
        let sent: Vec<u64> = done.iter().map(|(_, sent)| *sent).collect();
        assert_eq!(sent, price(&roles, &sizes.rows).sent);
        let mut at = std::collections::BTreeMap::new();
        for (owner, ((_, places), _)) in done.iter().take(usize::from(owners)).enumerate() {
            for (name, place) in names(owner as u8).into_iter().zip(places) {
                assert_eq!(*at.entry(name).or_insert(*place), *place, "one place for equal rows");
            }
        }
        let mut places: Vec<u32> = at.values().copied().collect();
        places.sort_unstable();
        assert_eq!(places, (0..union as u32).collect::<Vec<_>>(), "and another one for every other");
    }
}

/// Places follow neither the order of hashes nor that of the file: gaps between own rows would tell who is
/// between.
#[test]
fn the_order_of_the_spine_is_no_order_of_keys() {
    let lists: Vec<Vec<Key>> = vec![(0..200u8).map(|i| [i; 16]).collect()];
    let placed = |seed: u8| place(&lists, Seed::from_bytes([seed; 32])).unwrap().0.remove(0);
    let (one, other) = (placed(1), placed(2));
    assert_ne!(one, other);
    let rises = one.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((60..140).contains(&rises), "{rises}");
}

#[test]
fn another_run_has_other_hashes() {
    let of = |run: u8| *key(&Seed::from_bytes(SALT), &[1; 32], &[run; 32]).expose();
    assert_ne!(of(1), of(2));
}

/// One bit of any message between any two is noticed before anybody goes on with it.
#[test]
fn what_is_bent_on_the_way_is_noticed() {
    let roles = roles(2, 2);
    let channels = [(0, 2), (0, 3), (1, 3), (2, 3), (3, 2), (2, 0), (3, 0), (2, 1), (2, 4), (3, 5)];
    for (from, to) in channels {
        // Beyond the numbers of rows, whose errors are about limits.
        let at = if from < 2 {
            20
        } else if from == 2 && to < 2 {
            30
        } else {
            3
        };
        let fault = InjectedFault::Corrupt { byte: at, mask: 1 };
        let cluster = Cluster::new(6, 12).fault_towards(PartyId(from), PartyId(to), "match", fault);
        let done = cluster.run(|session| play(session, &roles));
        let failed = done.iter().filter(|done| done.is_err()).count();
        assert!(failed > 0, "{from} to {to}");
        assert!(done[usize::from(to)].is_err() || from == 0 || from == 1, "{from} to {to}");
    }
}

#[test]
fn a_list_that_is_none_is_refused() {
    let roles = roles(2, 2);
    let done = Cluster::new(6, 13).run(|session| {
        if session.me() != PartyId(0) {
            return play(session, &roles);
        }
        session.step("match", |session| {
            for &joiner in &roles.joiners {
                session.link(joiner).send(&2u64.to_le_bytes())?;
                session.link(joiner).send(&[[9; KEY_BYTES], [9; KEY_BYTES]].concat())?;
                session.link(joiner).flush()?;
            }
            Err(Error::misuse("has said all that it says"))
        })
    });
    for &joiner in &roles.joiners {
        let error = done[joiner.index()].as_ref().unwrap_err().to_string();
        assert!(error.contains("a list of keyed hashes"), "{error}");
    }
}

#[test]
fn more_rows_than_fit_are_refused_before_they_come() {
    let roles = roles(2, 2);
    let done = Cluster::new(6, 14).run(|session| match roles.joiners.contains(&session.me()) {
        true => session.step("match", |session| join(session, &roles, 99 * ROW_BYTES)).map(|_| ()),
        false => play(session, &roles).map(|_| ()),
    });
    let error = done[roles.joiners[0].index()].as_ref().unwrap_err().to_string();
    assert!(error.contains("rows that fit this server's `memory`"), "{error}");
}

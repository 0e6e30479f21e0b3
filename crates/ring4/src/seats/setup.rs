//! Agreement on keys: who is to hold K_j tosses coins for it.
//!
//! Between every two parties p and q the keys are those of the two others, in order of j. Three messages each
//! way: settings and commitments, openings, hashes of the result.

use crate::{Seat, Settings};
use accel::SeatKeys;
use base::{At, Error, Fault, PartyId};
use kernels::Block;
use net::Session;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

type Bytes = [u8; 32];

/// Bytes that a party sends to each other one.
pub(crate) const BYTES: [u64; 3] = [32 + 64, 64, 64];

/// The seats whose keys both hold, in order.
fn common(p: Seat, q: Seat) -> impl Iterator<Item = (usize, Seat)> {
    Seat::ALL.into_iter().filter(move |&j| j != p && j != q).enumerate()
}

fn hash(label: &str, seat: Seat, key: Seat, content: &[u8]) -> Bytes {
    let mut hasher = blake3::Hasher::new_derive_key(label);
    hasher.update(&[seat.index() as u8, key.index() as u8]).update(content);
    *hasher.finalize().as_bytes()
}

const COMMIT: &str = "tacit ring4 2026 commitment to a part of a key";
const RESULT: &str = "tacit ring4 2026 comparison of keys";
const STREAM: &str = "tacit ring4 2026 stream key";
const TAG: &str = "tacit ring4 2026 tag element";
const SETTINGS: &str = "tacit ring4 2026 settings";

/// What one seat contributes to the keys, by key; empty for its own number.
type Contribution = [Bytes; 4];

pub(crate) fn agree(
    session: &mut Session,
    seats: &[PartyId; 4],
    me: Seat,
    settings: Settings,
) -> Result<SeatKeys, Error> {
    let mut rng = session.fork_seed("ring4 keys").into_rng();
    let mut parts: Zeroizing<[Contribution; 4]> = Zeroizing::new([[[0; 32]; 4]; 4]);
    parts[me.index()] = std::array::from_fn(|_| rng.bytes());
    let others = [1, 2, 3].map(|k| me.after(k));

    let mut names = session.id().to_vec();
    names.extend(seats.map(|party| party.0));
    names.extend(format!("{settings:?}").bytes());
    let terms = hash(SETTINGS, Seat::ALL[0], Seat::ALL[0], &names);
    for peer in others {
        let mut message = terms.to_vec();
        for (_, key) in common(me, peer) {
            message.extend(hash(COMMIT, me, key, &parts[me.index()][key.index()]));
        }
        say(session, seats[peer.index()], &message)?;
    }
    let mut commitments = [[[0; 32]; 2]; 4];
    for peer in others {
        let mut link = session.link(seats[peer.index()]);
        if link.recv_array::<32>()? != terms {
            return Err(fault(session, seats[peer.index()], Fault::Input(
                "the peer has other settings of ring4 (security, hash, masks) or other seats: all four must \
                 agree".into(),
            )));
        }
        for slot in &mut commitments[peer.index()] {
            *slot = session.link(seats[peer.index()]).recv_array()?;
        }
    }
    for peer in others {
        let mut message = Zeroizing::new(Vec::with_capacity(64));
        common(me, peer).for_each(|(_, key)| message.extend(parts[me.index()][key.index()]));
        say(session, seats[peer.index()], &message)?;
    }
    for peer in others {
        for (i, key) in common(me, peer) {
            let part: Bytes = session.link(seats[peer.index()]).recv_array()?;
            if hash(COMMIT, peer, key, &part) != commitments[peer.index()][i] {
                let check = "an opening does not fit its commitment";
                return Err(session.link(seats[peer.index()]).blame(check));
            }
            parts[peer.index()][key.index()] = part;
        }
    }
    compare(session, seats, me, &parts)?;
    let derive = |label: &str, k: usize| {
        let key = me.summand(k);
        // The id holds the nonces of all and the hash of the study: the same coins give other keys in another
        // session.
        let mut content = material(&parts, key);
        content.extend(session.id());
        let bytes = Zeroizing::new(hash(label, key, key, &content));
        Block::from_bytes(std::array::from_fn(|i| bytes[i]))
    };
    Ok(SeatKeys::new(me, [0, 1, 2].map(|k| derive(STREAM, k)), [0, 1, 2].map(|k| derive(TAG, k))))
}

/// What all three holders contributed to a key, in order of their seats.
fn material(parts: &[Contribution; 4], key: Seat) -> Zeroizing<Vec<u8>> {
    let holders = Seat::ALL.into_iter().filter(|&seat| seat != key);
    Zeroizing::new(holders.flat_map(|seat| parts[seat.index()][key.index()]).collect())
}

/// The three holders of every key compare it: otherwise one of them could have opened two things to the two
/// others.
fn compare(
    session: &mut Session,
    seats: &[PartyId; 4],
    me: Seat,
    parts: &[Contribution; 4],
) -> Result<(), Error> {
    // Bound to who says it: the hash of another is no proof of holding the key.
    let result = |from: Seat, key: Seat| hash(RESULT, from, key, &material(parts, key));
    let others = [1, 2, 3].map(|k| me.after(k));
    for peer in others {
        let message: Vec<u8> = common(me, peer).flat_map(|(_, key)| result(me, key)).collect();
        say(session, seats[peer.index()], &message)?;
    }
    for peer in others {
        for (_, key) in common(me, peer) {
            let theirs: Bytes = session.link(seats[peer.index()]).recv_array()?;
            if !bool::from(theirs.ct_eq(&result(peer, key))) {
                // The third holder may have opened two things, or the peer says something else than it holds.
                let third = Seat::new(6 - me.index() - peer.index() - key.index());
                let both = [peer, third].map(|seat| seats[seat.index()]);
                let check = "the holders of a key hold different ones: one of both deviates";
                return Err(session.accuse_one_of(&both, check));
            }
        }
    }
    Ok(())
}

fn say(session: &mut Session, peer: PartyId, message: &[u8]) -> Result<(), Error> {
    session.link(peer).send(message)?;
    session.link(peer).flush()
}

fn fault(session: &Session, peer: PartyId, kind: Fault) -> Error {
    let at: At = session.at(Some(peer));
    Error::new(at, kind)
}

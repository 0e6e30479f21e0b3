//! Rows joined by keyed hashes, for studies that servers compute.
//!
//! Functionality: owners have sets of identifiers and a salt. Every owner gets the place of each of its rows
//! on one spine, in which equal identifiers have one place and whose order is random; everybody gets all set
//! sizes and that of the spine.
//!
//! Security: against any number of owners, or any one server. Two servers, the joiners, do the same work and
//! an owner compares what both say, so that one of them that deviates is noticed. Not against a joiner and an
//! owner together: an owner knows the salt, so both could test guesses. The hash key is fresh in every run,
//! made of the salt and of random numbers of all owners, so that hashes of two runs cannot be compared.
//!
//! Who learns what: owners all set sizes and that of the spine; where its own rows lie tells an owner
//! nothing, since the order comes of a seed of the joiners. Joiners: the pattern of equal rows, that is which
//! row of one owner, in an order that says nothing, equals which one of another. The other servers: the
//! sizes.
//!
//! Paper: the matching by a shared salted key of COPA's outsourced studies (Patel et al.); there every server
//! joins.
//!
//! Cost: [`price`], exact. Messages, in order, with n owners and r_i rows:
//!
//! | from | to | bytes |
//! |---|---|---|
//! | owner i | each joiner | 8: r_i; 16 r_i: keyed hashes in ascending order |
//! | first joiner | second | 32: seed of the order |
//! | joiners | each other | 32: hash of all that they were sent, and of the seed |
//! | first joiner | owner i | 8 (n + 1): sizes; 4 r_i: places |
//! | second joiner | owner i | 32: hash of the same |
//! | each joiner | each other server | 8 (n + 1): sizes |

use base::{Cost, Error, PartyId, Seed, limits};
use data::RowKeys;
use net::Session;
use study::JOINERS;

/// A keyed hash. Among 2^33 rows two that collide have probability 2^-63.
type Key = [u8; KEY_BYTES];
const KEY_BYTES: usize = 16;
/// Hashes that are received at once: nobody makes us allocate for what is not sent.
const PIECE: usize = 1 << 16;
/// Bytes that joining takes per row.
const ROW_BYTES: u64 = 64;

/// Who takes part, the same at everybody.
pub(super) struct Cast {
    pub owners: Vec<PartyId>,
    pub joiners: [PartyId; JOINERS],
    /// Servers that neither own data nor join.
    pub others: Vec<PartyId>,
}

/// What everybody knows after a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Rows of each owner.
    pub rows: Vec<u64>,
    /// Places of the spine.
    pub union: u64,
}

impl Sizes {
    fn encode(&self) -> Vec<u8> {
        self.rows.iter().chain([&self.union]).flat_map(|n| n.to_le_bytes()).collect()
    }

    fn receive(session: &mut Session, from: PartyId, owners: usize) -> Result<Self, Error> {
        let mut read = || session.link(from).recv_count("rows of an owner", limits::ROWS);
        let rows = (0..owners).map(|_| read()).collect::<Result<Vec<u64>, Error>>()?;
        let union = session.link(from).recv_count("rows of all owners", limits::ROWS)?;
        let (most, all) = (rows.iter().max().copied().unwrap_or(0), rows.iter().sum());
        if union < most || union > all {
            return Err(session.link(from).malformed("sizes of a join"));
        }
        Ok(Self { rows, union })
    }
}

/// The key of this run's hashes: of the salt, the study, and what the random numbers of all owners made of
/// this run.
pub(super) fn key(salt: &Seed, study: &[u8; 32], run: &[u8; 32]) -> Seed {
    let mut hasher = blake3::Hasher::new_derive_key("tacit salted key 1");
    hasher.update(salt.expose()).update(study).update(run);
    Seed::from_bytes(*hasher.finalize().as_bytes())
}

/// An owner's part: the place of each of its rows.
///
/// # Errors
/// Those of the channels, and joiners that do not say the same.
pub(super) fn enter(
    session: &mut Session,
    cast: &Cast,
    key: &Seed,
    identifiers: &RowKeys,
) -> Result<(Vec<u32>, Sizes), Error> {
    let count = identifiers.len();
    let hash = |row: usize| -> Key {
        let hash = blake3::keyed_hash(key.expose(), identifiers.get(row, 0));
        hash.as_bytes()[..KEY_BYTES].try_into().expect("16 of 32 bytes")
    };
    let mut rows: Vec<(Key, u32)> = (0..count).map(|row| (hash(row), row as u32)).collect();
    rows.sort_unstable();
    let piece = |rows: &[(Key, u32)]| rows.iter().flat_map(|(key, _)| *key).collect::<Vec<u8>>();
    for joiner in cast.joiners {
        let mut link = session.link(joiner);
        link.send(&(count as u64).to_le_bytes())?;
        rows.chunks(PIECE).try_for_each(|rows| link.send(&piece(rows)))?;
        link.flush()?;
    }
    let [first, second] = cast.joiners;
    let sizes = Sizes::receive(session, first, cast.owners.len())?;
    let mut places = vec![0; 4 * count];
    session.link(first).recv(&mut places)?;
    let vouched: [u8; 32] = session.link(second).recv_array()?;
    if vouched != *said(&sizes, &places).as_bytes() {
        return Err(doubt(
            session,
            cast,
            "where rows lie is not what the other server says: one of both deviates",
        ));
    }
    let own = cast.owners.iter().position(|owner| *owner == session.me());
    let fits = own.is_some_and(|own| sizes.rows[own] == count as u64);
    let places: Vec<u32> =
        places.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes"))).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    let apart = sorted.windows(2).all(|pair| pair[0] < pair[1]);
    if !fits || !apart || sorted.last().is_some_and(|last| u64::from(*last) >= sizes.union) {
        return Err(session.link(first).malformed("where rows lie"));
    }
    let mut positions = vec![0; count];
    rows.iter().zip(places).for_each(|((_, row), place)| positions[*row as usize] = place);
    Ok((positions, sizes))
}

/// What a joiner says to an owner, as the other one vouches for it.
fn said(sizes: &Sizes, places: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_derive_key("tacit joined rows 1");
    hasher.update(&sizes.encode()).update(places);
    hasher.finalize()
}

/// One of the two joiners deviates; which one, nobody can tell from here.
fn doubt(session: &Session, cast: &Cast, check: &'static str) -> Error {
    let [first, second] = cast.joiners.map(|joiner| session.roster().name(joiner));
    session.accuse(&cast.joiners, format!("{first}, vouched for by {second}"), check)
}

/// A joiner's part. `memory` is what it may take.
///
/// # Errors
/// Those of the channels, lists that are none, and a joiner that was sent something else.
pub(super) fn join(session: &mut Session, cast: &Cast, memory: u64) -> Result<Sizes, Error> {
    let (me, [first, second]) = (session.me(), cast.joiners);
    let mut lists: Vec<Vec<Key>> = Vec::with_capacity(cast.owners.len());
    let mut left = memory / ROW_BYTES;
    for owner in &cast.owners {
        let list = receive(session, *owner, left.min(limits::ROWS))?;
        left -= list.len() as u64;
        lists.push(list);
    }
    let seed = if me == first {
        let seed = session.fork_seed("order of joined rows");
        session.link(second).send(seed.expose())?;
        seed
    } else {
        Seed::from_bytes(session.link(first).recv_array()?)
    };
    agree(session, cast, &lists, &seed)?;
    let (places, union) = place(&lists, seed)?;
    let sizes = Sizes { rows: lists.iter().map(|list| list.len() as u64).collect(), union };
    for (owner, places) in cast.owners.iter().zip(&places) {
        let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
        let mut link = session.link(*owner);
        match me == first {
            true => {
                link.send(&sizes.encode())?;
                bytes.chunks(PIECE).try_for_each(|piece| link.send(piece))?;
            }
            false => link.send(said(&sizes, &bytes).as_bytes())?,
        }
        link.flush()?;
    }
    for other in &cast.others {
        session.link(*other).send(&sizes.encode())?;
        session.link(*other).flush()?;
    }
    Ok(sizes)
}

/// The keyed hashes of one owner, in ascending order and so all different.
fn receive(session: &mut Session, owner: PartyId, most: u64) -> Result<Vec<Key>, Error> {
    let count = session.link(owner).recv_count("rows that fit this server's `memory`", most)? as usize;
    let mut list: Vec<Key> = Vec::new();
    let mut piece = vec![0; KEY_BYTES * PIECE.min(count)];
    while list.len() < count {
        let bytes = &mut piece[..KEY_BYTES * PIECE.min(count - list.len())];
        session.link(owner).recv(bytes)?;
        list.extend(bytes.chunks(KEY_BYTES).map(|key| Key::try_from(key).expect("16 bytes")));
    }
    if list.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(session.link(owner).malformed("a list of keyed hashes"));
    }
    Ok(list)
}

/// The joiners compare what they were sent.
fn agree(session: &mut Session, cast: &Cast, lists: &[Vec<Key>], seed: &Seed) -> Result<(), Error> {
    let mut hasher = blake3::Hasher::new_derive_key("tacit rows to join 1");
    hasher.update(seed.expose());
    for list in lists {
        hasher.update(&(list.len() as u64).to_le_bytes()).update(list.as_flattened());
    }
    let mine = *hasher.finalize().as_bytes();
    let [first, second] = cast.joiners;
    let peer = if session.me() == first { second } else { first };
    session.link(peer).send(&mine)?;
    let theirs: [u8; 32] = session.link(peer).recv_array()?;
    if theirs == mine {
        return Ok(());
    }
    // An owner may have sent both different rows.
    let check = "two servers say that they were sent different rows";
    Err(session.accuse_one_of(&[&cast.owners[..], &[peer]].concat(), check))
}

/// The place of every row on a spine in random order, and how many places there are.
fn place(lists: &[Vec<Key>], seed: Seed) -> Result<(Vec<Vec<u32>>, u64), Error> {
    let mut all: Vec<Key> = lists.concat();
    all.sort_unstable();
    all.dedup();
    let union = all.len() as u64;
    // The last one stands for "no row".
    let cap = u64::from(u32::MAX) - 1;
    if union > cap {
        return Err(Error::limit("rows of all owners", union, cap));
    }
    let mut order: Vec<u32> = (0..union as u32).collect();
    seed.into_rng().shuffle(&mut order);
    let of = |list: &Vec<Key>| {
        let mut at = 0;
        let place = |key: &Key| {
            // Both are in ascending order.
            while all[at] != *key {
                at += 1;
            }
            order[at]
        };
        list.iter().map(place).collect()
    };
    Ok((lists.iter().map(of).collect(), union))
}

/// What a server that joins nothing hears.
///
/// # Errors
/// Those of the channels, and joiners that do not say the same.
pub(super) fn hear(session: &mut Session, cast: &Cast) -> Result<Sizes, Error> {
    let [first, second] = cast.joiners;
    let sizes = Sizes::receive(session, first, cast.owners.len())?;
    if Sizes::receive(session, second, cast.owners.len())? != sizes {
        return Err(doubt(session, cast, "sizes are not what the other server says: one of both deviates"));
    }
    Ok(sizes)
}

/// Exact cost among so many parties of a session.
pub(super) fn price(cast: &Cast, parties: usize, rows: &[u64]) -> Cost {
    let mut cost = Cost { rounds: 1, ..Cost::zero(parties) };
    let sizes = 8 * (cast.owners.len() as u64 + 1);
    let [first, second] = cast.joiners.map(PartyId::index);
    for (owner, rows) in cast.owners.iter().zip(rows) {
        cost.sent[owner.index()] += JOINERS as u64 * (8 + KEY_BYTES as u64 * rows);
        cost.sent[first] += sizes + 4 * rows;
        cost.sent[second] += 32;
    }
    cost.sent[first] += 64;
    cost.sent[second] += 32;
    let told = sizes * cast.others.len() as u64;
    cost.sent[first] += told;
    cost.sent[second] += told;
    cost
}

#[cfg(test)]
mod tests;

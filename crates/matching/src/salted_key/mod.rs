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
//! Cost: [`Matcher::price`], exact. Messages, in order, with n owners and r_i rows:
//!
//! | from | to | bytes |
//! |---|---|---|
//! | owner i | each joiner | 8: r_i; 16 r_i: keyed hashes in ascending order |
//! | first joiner | second | 32: seed of the order |
//! | joiners | each other | 32: hash of all that they were sent, and of the seed |
//! | first joiner | owner i | 8 (n + 1): sizes; 4 r_i: places |
//! | second joiner | owner i | 32: hash of the same |
//! | each joiner | each other server | 8 (n + 1): sizes |

use crate::identifiers::IdentifierSource;
use crate::matcher::{
    MatchDisclosure, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome, MatchRoles,
    MatchSizes, Matcher, PlannedRows,
};
use crate::places::OwnPlaces;
use base::{Cost, Error, PartyId, Seed, limits};
use net::Session;

/// How many servers join.
pub const JOINERS: usize = 2;
/// A keyed hash. Among 2^33 rows two that collide have probability 2^-63.
type Key = [u8; KEY_BYTES];
const KEY_BYTES: usize = 16;
/// Hashes that are received at once: nobody makes us allocate for what is not sent.
const PIECE: usize = 1 << 16;
/// Bytes that joining takes per row.
const ROW_BYTES: u64 = 64;

/// A match by keyed hashes that two servers join.
pub struct SaltedKey;

impl Matcher for SaltedKey {
    fn name(&self) -> &'static str {
        "salted-key"
    }

    fn features(&self) -> MatchFeatures {
        MatchFeatures {
            parties: 1..=limits::PARTIES,
            dummies: false,
            keeps_spine: false,
            salted: true,
            ..MatchFeatures::SPINE
        }
    }

    fn tells(&self, _sizes: &str, _first: &str, _options: &MatchOptions) -> String {
        format!(
            "the parties learn the sizes of all sets and of their union (of two parties also how many rows \
             match), exactly; {JOINERS} servers that own no data see keyed hashes of the identifiers, and so \
             which rows of different parties are equal, not whose they are; the others see the sizes"
        )
    }

    fn price(&self, sizes: &MatchSizes, options: &MatchOptions) -> Cost {
        price(&options.roles, &sizes.rows)
    }

    fn estimate(&self, planned: &PlannedRows<'_>, _options: &MatchOptions) -> MatchEstimate {
        MatchEstimate { waits: 3.0, ..MatchEstimate::of(planned) }
    }

    fn step(&self) -> Option<&'static str> {
        None
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let MatchInput { rows, options, .. } = input;
        let key = options.salt.as_ref().ok_or_else(|| Error::misuse("a match by salted keys has a salt"))?;
        let (positions, sizes) = enter(session, &options.roles, key, rows)?;
        Ok(MatchOutcome::spine_of(sizes.union, OwnPlaces::of(positions), MatchDisclosure::of(sizes)))
    }

    fn serve(&self, session: &mut Session, options: &MatchOptions) -> Result<MatchSizes, Error> {
        match options.roles.joiners.contains(&session.me()) {
            true => join(session, &options.roles, options.memory.unwrap_or(u64::MAX)),
            false => hear(session, &options.roles),
        }
    }
}

/// Sizes as joiners tell them.
fn encode(sizes: &MatchSizes) -> Vec<u8> {
    sizes.rows.iter().chain([&sizes.union]).flat_map(|n| n.to_le_bytes()).collect()
}

fn receive_sizes(session: &mut Session, from: PartyId, owners: usize) -> Result<MatchSizes, Error> {
    let mut read = || session.link(from).recv_count("rows of an owner", limits::ROWS);
    let rows = (0..owners).map(|_| read()).collect::<Result<Vec<u64>, Error>>()?;
    let union = session.link(from).recv_count("rows of all owners", limits::ROWS)?;
    let (most, all) = (rows.iter().max().copied().unwrap_or(0), rows.iter().sum());
    if union < most || union > all {
        return Err(session.link(from).malformed("sizes of a join"));
    }
    Ok(MatchSizes { keys: vec![1; owners], rows, union })
}

/// The two servers that join.
fn joiners(roles: &MatchRoles) -> Result<[PartyId; JOINERS], Error> {
    roles.joiners[..].try_into().map_err(|_| Error::misuse("two servers join rows by keyed hashes"))
}

/// The key of this run's hashes: of the salt, the study, and what the random numbers of all owners made of
/// this run.
pub fn key(salt: &Seed, study: &[u8; 32], run: &[u8; 32]) -> Seed {
    let mut hasher = blake3::Hasher::new_derive_key("tacit salted key 1");
    hasher.update(salt.expose()).update(study).update(run);
    Seed::from_bytes(*hasher.finalize().as_bytes())
}

/// An owner's part: the place of each of its rows.
///
/// # Errors
/// Those of the channels, and joiners that do not say the same.
fn enter(
    session: &mut Session,
    roles: &MatchRoles,
    key: &Seed,
    identifiers: &dyn IdentifierSource,
) -> Result<(Vec<u32>, MatchSizes), Error> {
    let (count, joiners) = (identifiers.rows() as usize, joiners(roles)?);
    let (mut rows, mut name): (Vec<(Key, u32)>, _) = (Vec::with_capacity(count), Vec::new());
    for row in 0..count as u32 {
        identifiers.read(row, 0, &mut name)?;
        let hash = blake3::keyed_hash(key.expose(), &name);
        rows.push((*hash.as_bytes().first_chunk().expect("16 of 32 bytes"), row));
    }
    rows.sort_unstable();
    let piece = |rows: &[(Key, u32)]| rows.iter().flat_map(|(key, _)| *key).collect::<Vec<u8>>();
    for joiner in joiners {
        let mut link = session.link(joiner);
        link.send(&(count as u64).to_le_bytes())?;
        rows.chunks(PIECE).try_for_each(|rows| link.send(&piece(rows)))?;
        link.flush()?;
    }
    let [first, second] = joiners;
    let sizes = receive_sizes(session, first, roles.owners.len())?;
    let mut places = vec![0; 4 * count];
    session.link(first).recv(&mut places)?;
    let vouched: [u8; 32] = session.link(second).recv_array()?;
    if vouched != *said(&sizes, &places).as_bytes() {
        return Err(doubt(
            session,
            roles,
            "where rows lie is not what the other server says: one of both deviates",
        ));
    }
    let own = roles.owners.iter().position(|owner| *owner == session.me());
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
fn said(sizes: &MatchSizes, places: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_derive_key("tacit joined rows 1");
    hasher.update(&encode(sizes)).update(places);
    hasher.finalize()
}

/// One of the two joiners deviates; which one, nobody can tell from here.
fn doubt(session: &Session, roles: &MatchRoles, check: &'static str) -> Error {
    let names: Vec<String> = roles.joiners.iter().map(|joiner| session.roster().name(*joiner)).collect();
    session.accuse(&roles.joiners, names.join(", vouched for by "), check)
}

/// A joiner's part. `memory` is what it may take.
///
/// # Errors
/// Those of the channels, lists that are none, and a joiner that was sent something else.
fn join(session: &mut Session, roles: &MatchRoles, memory: u64) -> Result<MatchSizes, Error> {
    let (me, [first, second]) = (session.me(), joiners(roles)?);
    let mut lists: Vec<Vec<Key>> = Vec::with_capacity(roles.owners.len());
    let mut left = memory / ROW_BYTES;
    for owner in &roles.owners {
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
    agree(session, roles, &lists, &seed)?;
    let (places, union) = place(&lists, seed)?;
    let rows = lists.iter().map(|list| list.len() as u64).collect();
    let sizes = MatchSizes { rows, keys: vec![1; lists.len()], union };
    for (owner, places) in roles.owners.iter().zip(&places) {
        let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
        let mut link = session.link(*owner);
        match me == first {
            true => {
                link.send(&encode(&sizes))?;
                bytes.chunks(PIECE).try_for_each(|piece| link.send(piece))?;
            }
            false => link.send(said(&sizes, &bytes).as_bytes())?,
        }
        link.flush()?;
    }
    for other in &roles.others {
        session.link(*other).send(&encode(&sizes))?;
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
fn agree(session: &mut Session, roles: &MatchRoles, lists: &[Vec<Key>], seed: &Seed) -> Result<(), Error> {
    let mut hasher = blake3::Hasher::new_derive_key("tacit rows to join 1");
    hasher.update(seed.expose());
    for list in lists {
        hasher.update(&(list.len() as u64).to_le_bytes()).update(list.as_flattened());
    }
    let mine = *hasher.finalize().as_bytes();
    let [first, second] = joiners(roles)?;
    let peer = if session.me() == first { second } else { first };
    session.link(peer).send(&mine)?;
    let theirs: [u8; 32] = session.link(peer).recv_array()?;
    if theirs == mine {
        return Ok(());
    }
    // An owner may have sent both different rows.
    let check = "two servers say that they were sent different rows";
    Err(session.accuse_one_of(&[&roles.owners[..], &[peer]].concat(), check))
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
fn hear(session: &mut Session, roles: &MatchRoles) -> Result<MatchSizes, Error> {
    let [first, second] = joiners(roles)?;
    let sizes = receive_sizes(session, first, roles.owners.len())?;
    if receive_sizes(session, second, roles.owners.len())? != sizes {
        return Err(doubt(session, roles, "sizes are not what the other server says: one of both deviates"));
    }
    Ok(sizes)
}

/// The exact cost.
fn price(roles: &MatchRoles, rows: &[u64]) -> Cost {
    let mut cost = Cost { rounds: 1, ..Cost::zero(roles.everybody()) };
    let sizes = 8 * (roles.owners.len() as u64 + 1);
    let joined: u64 = rows.iter().map(|rows| sizes + 4 * rows).sum();
    let (others, hashes) = (sizes * roles.others.len() as u64, 32 * roles.owners.len() as u64);
    for (owner, rows) in roles.owners.iter().zip(rows) {
        cost.sent[owner.index()] += JOINERS as u64 * (8 + KEY_BYTES as u64 * rows);
    }
    // The first sends the seed and places, the second a hash of these; each a hash of what it was sent.
    for (joiner, sent) in roles.joiners.iter().zip([32 + joined, hashes]) {
        cost.sent[joiner.index()] += sent + 32 + others;
    }
    cost
}

#[cfg(test)]
mod tests;

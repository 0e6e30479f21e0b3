//! The conversation up to the match graph.

use super::KEYS_MAX;
use super::edges::{self, ContaminationCounts};
use super::names::{IdentifierOccurrences, OccurrenceNames};
use super::price::{SlotSizes, chunks, memory};
use crate::begin::peer_rows_max;
use crate::chunks::CHUNK;
use crate::dummies::{self, ShownSizes};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::matcher::MatchOptions;
use crate::memory::{check, reserve};
use crate::tags::{self, PlacedTag, WireTag, are_distinct, from_wire, to_wire};
use crate::terms;
use base::{Error, Fault, PartyId, Rng, limits};
use net::Session;
use std::ops::Range;
use zeroize::Zeroize;

const SAME_TERMS: &str = "it collects payloads of the layouts that we do, by the same back end";

/// "There is one list" in the message of sizes.
const ONE_LIST: u64 = u64::MAX;

/// What a party holds when the graph is known.
pub(super) struct CollectedPairs {
    pub sizes: SlotSizes,
    /// Anchors in list T.
    pub test: Option<u64>,
    /// Own rows in the order in which their names were sent.
    pub order: Vec<u32>,
    pub lost: u64,
    pub role: CollectorRole,
}

/// What only one of the two has.
pub(super) enum CollectorRole {
    /// Party 0: the row of party 1 in each slot, which slots are taken, and what it counted: pairs, those
    /// that the caps dropped, anchors with a taken slot.
    Joiner { map: Vec<u32>, valid: Vec<u64>, counted: [u64; 3], contamination: Option<ContaminationCounts> },
    /// Party 1: joined row `p` is row `rho[p]` of party 0's order.
    Other { rho: Vec<u32> },
}

/// Orders say whose rows match.
impl Drop for CollectedPairs {
    fn drop(&mut self) {
        self.order.zeroize();
        match &mut self.role {
            CollectorRole::Joiner { map, .. } => map.zeroize(),
            CollectorRole::Other { rho } => rho.zeroize(),
        }
    }
}

/// A uniform order of `0..rows` that keeps the first `test` in front.
fn secret_order(rows: u64, test: Option<u64>, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let (front, back) = order.split_at_mut(test.unwrap_or(0) as usize);
    rng.shuffle(front);
    rng.shuffle(back);
    order
}

/// Steps `count`, `names`, `shuffle` and `join`.
pub(super) fn pairs(
    session: &mut Session,
    rows: &dyn IdentifierSource,
    options: &MatchOptions,
) -> Result<CollectedPairs, Error> {
    let joiner = session.me() == PartyId(0);
    let mut rng = session.fork_seed("orders and keys").into_rng();
    let [mine, theirs] =
        if joiner { [options.degree, options.slots] } else { [options.slots, options.degree] };
    let occurrences = IdentifierOccurrences::find(rows, mine, options.lists, &mut rng)?;
    let names = OccurrenceNames::new(rows, occurrences, theirs, joiner, &mut rng);
    let (sizes, test) = session.step("count", |s| count(s, rows, options))?;
    let key = Exponent::random(&mut rng);
    let order = secret_order(rows.rows(), if joiner { test } else { None }, &mut rng);
    let list = List { names: &names, order: &order, key: &key, threads: options.threads };
    let products = session.step("names", |s| list.exchange(s, sizes, &mut rng))?;
    let role = if joiner {
        session
            .step("shuffle", |s| take_shuffled(s, sizes))
            .and_then(|shuffled| session.step("join", |s| join(s, [shuffled, products], sizes, test)))?
    } else {
        let rho = secret_order(sizes.rows[0], test, &mut rng);
        session.step("shuffle", |s| send_shuffled(s, products, sizes, &rho, &mut rng))?;
        CollectorRole::Other { rho }
    };
    let lost = names.dropped();
    Ok(CollectedPairs { sizes, test, order, lost, role })
}

/// Both tell sizes, caps, dummies and terms.
fn count(
    session: &mut Session,
    rows: &dyn IdentifierSource,
    options: &MatchOptions,
) -> Result<(SlotSizes, Option<u64>), Error> {
    let (me, peer) = (session.me().index(), session.me().other());
    let mut link = session.link(peer);
    let hides = dummies::terms(options.dummies.as_ref(), ShownSizes::Intersection);
    let terms = terms::digest(options, link.window());
    let (own_rows, own_keys) = (rows.rows(), rows.keys() as u64);
    let numbers =
        [own_rows, own_keys, options.slots.into(), options.degree.into(), options.lists.unwrap_or(ONE_LIST)];
    let mut message: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    message.extend(hides);
    message.extend(terms);
    link.send(&message)?;
    let peer_rows = link.recv_count("rows of the peer", peer_rows_max(options).min(limits::ROWS - 1))?;
    let peer_keys = link.recv_count("identifiers of a row of the peer", KEYS_MAX as u64)?;
    if peer_keys == 0 {
        return Err(link.blame("its rows have identifiers"));
    }
    for cap in [options.slots, options.degree] {
        if u64::from_le_bytes(link.recv_array()?) != u64::from(cap) {
            return Err(link.blame("its slots and degree are ours"));
        }
    }
    let list = u64::from_le_bytes(link.recv_array()?);
    dummies::check_terms(&mut link, &hides)?;
    if link.recv_array()? != terms {
        return Err(link.blame(SAME_TERMS));
    }
    let test = match (me, list) {
        (0, ONE_LIST) => options.lists,
        (1, ONE_LIST) => None,
        (1, test) if test <= peer_rows && options.dummies.is_none() => Some(test),
        _ => return Err(link.blame("party 0 alone has two lists, and list T is a part of its rows")),
    };
    let by_party = |own: u64, peer: u64| if me == 0 { [own, peer] } else { [peer, own] };
    let sizes = SlotSizes {
        rows: by_party(own_rows, peer_rows),
        keys: by_party(own_keys, peer_keys),
        slots: options.slots,
        degree: options.degree,
    };
    check_sizes(session, sizes)?;
    check(memory(PartyId(me as u8), sizes, options), options.memory)?;
    Ok((sizes, test))
}

/// Names and slots are numbered in 32 bits.
fn check_sizes(session: &Session, sizes: SlotSizes) -> Result<(), Error> {
    let counts = [
        ("names of all rows of a party", sizes.names(0).max(sizes.names(1))),
        ("slots of all anchors", sizes.entries()),
    ];
    let cap = limits::ROWS - 1;
    match counts.into_iter().find(|(_, value)| *value > cap) {
        Some((name, value)) => {
            Err(Error::new(session.at(Some(session.me().other())), Fault::Limit { name, value, cap }))
        }
        None => Ok(()),
    }
}

/// A party's rows as lists of names, and what is needed to send them.
struct List<'a> {
    names: &'a OccurrenceNames<'a>,
    order: &'a [u32],
    key: &'a Exponent,
    threads: usize,
}

impl List<'_> {
    /// Own names under the own key, chunk by chunk against the peer's. Returns tags of the peer's under both
    /// keys, in the order in which they came.
    fn exchange(
        &self,
        session: &mut Session,
        sizes: SlotSizes,
        rng: &mut Rng,
    ) -> Result<Vec<PlacedTag>, Error> {
        let (me, peer) = (session.me().index(), session.me().other());
        let mut products: Vec<PlacedTag> = reserve("names of the peer", sizes.names(1 - me))?;
        let (mut out, mut into) = (chunks(sizes, me), chunks(sizes, 1 - me));
        loop {
            let (own, theirs) = match (out.next(), into.next()) {
                (None, None) => return Ok(products),
                (own, theirs) => (own.unwrap_or(0..0), theirs.unwrap_or(0..0)),
            };
            self.swap(session, own, theirs, sizes, rng, &mut products)?;
            session.link(peer).flush()?;
            session.report(products.len() as u64, sizes.names(1 - me));
        }
    }

    /// One chunk each way.
    fn swap(
        &self,
        session: &mut Session,
        own: Range<u64>,
        theirs: Range<u64>,
        sizes: SlotSizes,
        rng: &mut Rng,
        products: &mut Vec<PlacedTag>,
    ) -> Result<(), Error> {
        let (me, peer) = (session.me().index(), session.me().other());
        let sent = self.hash(own, rng)?;
        let mut heard = vec![[0; 32]; (theirs.end - theirs.start) as usize * sizes.width(1 - me) as usize];
        let mut link = session.link(peer);
        link.exchange(sent.as_flattened(), heard.as_flattened_mut())?;
        group::mul_batch(&mut heard, self.key, self.threads)
            .map_err(|refusal| link.malformed(refusal.text()))?;
        tags::add(products, &heard);
        Ok(())
    }

    /// The names of some rows in the group, those of a row in a fresh order.
    fn hash(&self, rows: Range<u64>, rng: &mut Rng) -> Result<Vec<GroupElement>, Error> {
        let (width, order) = (self.names.width(), &self.order[rows.start as usize..rows.end as usize]);
        let mut elements = vec![[0; 32]; order.len() * width];
        let names = |i: usize, name: &mut Vec<u8>| self.names.read(order[i / width], i % width, name);
        group::hash_mul_batch(&names, self.key, &mut elements, self.threads)?;
        elements.chunks_mut(width).for_each(|row| rng.shuffle(row));
        Ok(elements)
    }
}

const DISTINCT: &str = "its names are distinct";

/// Party 1: party 0's rows under both keys in the order `rho`, the names of a row in a fresh order. Tags are
/// enough to compare.
fn send_shuffled(
    session: &mut Session,
    mut products: Vec<PlacedTag>,
    sizes: SlotSizes,
    rho: &[u32],
    rng: &mut Rng,
) -> Result<(), Error> {
    let (peer, width) = (session.me().other(), sizes.width(0) as usize);
    // A party 0 that repeats a name could tell its row by that, so nothing leaves before this check.
    let mut sorted = reserve("names of the peer", sizes.names(0))?;
    sorted.extend_from_slice(&products);
    sorted.sort_unstable();
    if !are_distinct(&sorted) {
        return Err(session.link(peer).blame(DISTINCT));
    }
    drop(sorted);
    let mut message: Vec<WireTag> = Vec::with_capacity(CHUNK as usize + width);
    for rows in chunks(sizes, 0) {
        message.clear();
        for &row in &rho[rows.start as usize..rows.end as usize] {
            let row = &mut products[row as usize * width..][..width];
            rng.shuffle(row);
            message.extend(row.iter().map(|name| to_wire(*name)));
        }
        session.link(peer).send(message.as_flattened())?;
    }
    session.link(peer).flush()
}

/// Party 0's half of [`send_shuffled`].
fn take_shuffled(session: &mut Session, sizes: SlotSizes) -> Result<Vec<PlacedTag>, Error> {
    let (peer, width) = (session.me().other(), sizes.width(0) as usize);
    let mut shuffled: Vec<PlacedTag> = reserve("shuffled names", sizes.names(0))?;
    let mut message: Vec<WireTag> = Vec::new();
    for rows in chunks(sizes, 0) {
        message.resize((rows.end - rows.start) as usize * width, WireTag::default());
        session.link(peer).recv(message.as_flattened_mut())?;
        let start = shuffled.len() as u128;
        shuffled.extend((start..).zip(&message).map(|(place, name)| from_wire(name) << 32 | place));
    }
    Ok(shuffled)
}

/// Party 0: the graph, the caps and the slots. `names` are those of anchors and of party 1's rows.
fn join(
    session: &mut Session,
    mut names: [Vec<PlacedTag>; 2],
    sizes: SlotSizes,
    test: Option<u64>,
) -> Result<CollectorRole, Error> {
    let peer = session.me().other();
    for names in &mut names {
        names.sort_unstable();
        if !are_distinct(names) {
            return Err(session.link(peer).blame(DISTINCT));
        }
    }
    let widths = [0, 1].map(|party| sizes.width(party) as u32);
    let mut found = edges::edges([&names[0], &names[1]], widths);
    drop(names);
    let pairs = found.len() as u64;
    let contamination: Option<ContaminationCounts> =
        test.map(|test| edges::drop_contaminated(&mut found, test as u32));
    let capped = edges::cap(&mut found, sizes.slots, sizes.degree);
    let anchors = found.chunk_by(|a, b| a.p == b.p).count() as u64;
    let (map, valid) = edges::slots(&found, sizes.rows[0], sizes.slots);
    Ok(CollectorRole::Joiner { map, valid, counted: [pairs, capped, anchors], contamination })
}

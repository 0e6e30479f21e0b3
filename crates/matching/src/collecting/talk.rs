//! The conversation up to the match graph.

use super::KEYS_MAX;
use super::edges::{AnchorGraph, FilledSlots, PlacedNames};
use super::names::{NameRule, RowIdentifiers, SentNames};
use super::parts::PartRows;
use super::price::{self, SlotSizes, chunks, memory};
use crate::begin::peer_rows_max;
use crate::dummies::{self, ShownSizes};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::matcher::{MatchInput, MatchOptions};
use crate::memory::check;
use crate::spill::SpillRoom;
use crate::tags::{PlacedTag, WireTag, from_wire, place, tag, tagged, to_wire};
use crate::terms;
use base::{Error, Fault, PartyId, Rng, limits};
use net::Session;
use std::ops::Range;
use zeroize::Zeroizing;

const SAME_TERMS: &str = "it collects payloads of the layouts that we do, by the same back end";

/// "There is one list" in the message of sizes.
const ONE_LIST: u64 = u64::MAX;

/// What a party holds when the graph is known.
pub(super) struct CollectedPairs {
    pub sizes: SlotSizes,
    /// Anchors in list T.
    pub test: Option<u64>,
    /// By own row: where it stands among those whose names were sent.
    pub places: Zeroizing<Vec<u32>>,
    pub lost: u64,
    pub role: CollectorRole,
}

/// What only one of the two has.
pub(super) enum CollectorRole {
    /// Party 0: the row of party 1 in each slot, which slots are taken, and what it counted.
    Joiner(Box<FilledSlots>),
    /// Party 1: joined row `p` is row `rho[p]` of party 0's order.
    Other { rho: Zeroizing<Vec<u32>> },
}

/// A uniform order of `0..rows` that keeps the first `test` in front.
fn secret_order(rows: u64, test: Option<u64>, rng: &mut Rng) -> Zeroizing<Vec<u32>> {
    let mut order: Zeroizing<Vec<u32>> = Zeroizing::new((0..rows as u32).collect());
    let (front, back) = order.split_at_mut(test.unwrap_or(0) as usize);
    rng.shuffle(front);
    rng.shuffle(back);
    order
}

/// Steps `count`, `names`, `shuffle` and `join`.
pub(super) fn pairs(session: &mut Session, input: &MatchInput<'_>) -> Result<CollectedPairs, Error> {
    let MatchInput { rows, options, room, .. } = input;
    let joiner = session.me() == PartyId(0);
    let mut rng = session.fork_seed("orders and keys").into_rng();
    let [cap, others] =
        if joiner { [options.degree, options.slots] } else { [options.slots, options.degree] };
    let identifiers = RowIdentifiers::read(rows, room, &mut rng)?;
    let rule = NameRule { cap, others, first: joiner, filler: rng.bytes() };
    let key = Exponent::random(&mut rng);
    let order = secret_order(rows.rows(), options.lists, &mut rng);
    let places = Zeroizing::new(terms::places(&order));
    drop(order);
    let names = SentNames::number(identifiers, (rows, &places), (rule, options.lists), room)?;
    let lost = names.dropped();
    let (sizes, test) = session.step("count", |s| {
        let (sizes, test) = count(s, rows, options)?;
        input.expect_disk(&sizes.rows, price::disk(s.me(), sizes, options), 0)?;
        Ok((sizes, test))
    })?;
    let list = List { key: &key, threads: options.threads, room };
    let products = session.step("names", |s| {
        let mut names = names;
        names.deal(rows, &places)?;
        list.exchange(s, (names, sizes), &mut rng)
    })?;
    let role = if joiner {
        let shuffled = session.step("shuffle", |s| take_shuffled(s, sizes, room))?;
        let slots = session.step("join", |s| join(s, [shuffled, products], (sizes, test), room))?;
        CollectorRole::Joiner(Box::new(slots))
    } else {
        let rho = secret_order(sizes.rows[0], test, &mut rng);
        session.step("shuffle", |s| send_shuffled(s, products, (sizes, &rho), room, &mut rng))?;
        CollectorRole::Other { rho }
    };
    Ok(CollectedPairs { sizes, test, places, lost, role })
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

/// What it takes to send own names, and to multiply the peer's.
struct List<'a> {
    key: &'a Exponent,
    threads: usize,
    room: &'a SpillRoom,
}

impl List<'_> {
    /// Own names under the own key, chunk by chunk against the peer's. Returns tags of the peer's under both
    /// keys, placed in the order in which they came.
    fn exchange(
        &self,
        session: &mut Session,
        (mut names, sizes): (SentNames, SlotSizes),
        rng: &mut Rng,
    ) -> Result<PlacedNames, Error> {
        let (me, peer) = (session.me().index(), session.me().other());
        let (all, mut met) = (sizes.names(1 - me), 0);
        let mut products = PlacedNames::new(self.room, all);
        let (mut out, mut into) = (chunks(sizes, me), chunks(sizes, 1 - me));
        loop {
            let (own, theirs) = match (out.next(), into.next()) {
                (None, None) => return Ok(products),
                (own, theirs) => (own.unwrap_or(0..0), theirs.unwrap_or(0..0)),
            };
            let sent = self.hash(&mut names, own, rng)?;
            let elements = (theirs.end - theirs.start) * sizes.width(1 - me);
            let mut heard: Vec<GroupElement> = vec![[0; 32]; elements as usize];
            let mut link = session.link(peer);
            link.exchange(sent.as_flattened(), heard.as_flattened_mut())?;
            group::mul_batch(&mut heard, self.key, self.threads)
                .map_err(|refusal| link.malformed(refusal.text()))?;
            for (place, element) in (met as u32..=u32::MAX).zip(&heard) {
                products.push(tagged(element, place))?;
            }
            met += elements;
            link.flush()?;
            session.report(met, all);
        }
    }

    /// The names of the rows at some places in the group, those of a row in a fresh order.
    fn hash(
        &self,
        names: &mut SentNames,
        places: Range<u64>,
        rng: &mut Rng,
    ) -> Result<Vec<GroupElement>, Error> {
        names.meet(&places)?;
        let (names, width) = (&*names, names.width());
        let mut elements = vec![[0; 32]; (places.end - places.start) as usize * width];
        let read = |i: usize, name: &mut Vec<u8>| {
            names.read(places.start + (i / width) as u64, i % width, name);
            Ok(())
        };
        group::hash_mul_batch(&read, self.key, &mut elements, self.threads)?;
        elements.chunks_mut(width).for_each(|row| rng.shuffle(row));
        Ok(elements)
    }
}

const DISTINCT: &str = "its names are distinct";

/// Bytes of a tag that is dealt, and of it in a row.
const DEALT_BYTES: u64 = 16 + 12;

/// Party 1: party 0's rows under both keys in the order `rho`, the names of a row in a fresh order. Tags are
/// enough to compare.
fn send_shuffled(
    session: &mut Session,
    products: PlacedNames,
    (sizes, rho): (SlotSizes, &[u32]),
    room: &SpillRoom,
    rng: &mut Rng,
) -> Result<(), Error> {
    let (peer, width) = (session.me().other(), sizes.width(0) as usize);
    let parts = PartRows::new(room, sizes.rows[0], width, DEALT_BYTES * width as u64);
    let mut deal = parts.deal(room);
    // A party 0 that repeats a name could tell its row by that, so nothing leaves before this check.
    let places = Zeroizing::new(terms::places(rho));
    let mut names = products.sorted();
    while let Some(name) = names.next()? {
        let (row, at) = (place(name) as usize / width, place(name) as usize % width);
        let p = places[row];
        let entry = (p as usize * width + at) as u128;
        deal.push(parts.of(p.into()), &(tag(name) << 32 | entry).to_le_bytes())?;
    }
    if !names.distinct {
        return Err(session.link(peer).blame(DISTINCT));
    }
    drop((names, places));
    let (mut part, mut bytes, mut tags) = (None, Vec::new(), Vec::<WireTag>::new());
    for rows in chunks(sizes, 0) {
        let number = parts.of(rows.start) as u64;
        let first = parts.range(number).start;
        if part.replace(number) != Some(number) {
            deal.take(number as usize, &mut bytes)?;
            let (entries, _) = bytes.as_chunks();
            tags.clear();
            tags.resize(entries.len(), WireTag::default());
            for entry in entries.iter().map(|entry| PlacedTag::from_le_bytes(*entry)) {
                tags[place(entry) as usize - first as usize * width] = to_wire(entry);
            }
        }
        let [from, to] = [rows.start, rows.end].map(|row| (row - first) as usize * width);
        tags[from..to].chunks_mut(width).for_each(|row| rng.shuffle(row));
        session.link(peer).send(tags[from..to].as_flattened())?;
    }
    session.link(peer).flush()
}

/// Party 0's half of [`send_shuffled`].
fn take_shuffled(session: &mut Session, sizes: SlotSizes, room: &SpillRoom) -> Result<PlacedNames, Error> {
    let (peer, width) = (session.me().other(), sizes.width(0));
    let mut shuffled = PlacedNames::new(room, sizes.names(0));
    let mut message: Vec<WireTag> = Vec::new();
    for rows in chunks(sizes, 0) {
        message.resize(((rows.end - rows.start) * width) as usize, WireTag::default());
        session.link(peer).recv(message.as_flattened_mut())?;
        for (place, name) in (u128::from(rows.start * width)..).zip(&message) {
            shuffled.push(from_wire(name) << 32 | place)?;
        }
    }
    Ok(shuffled)
}

/// Party 0: the graph, the caps and the slots. `names` are those of anchors and of party 1's rows.
fn join(
    session: &mut Session,
    names: [PlacedNames; 2],
    (sizes, test): (SlotSizes, Option<u64>),
    room: &SpillRoom,
) -> Result<FilledSlots, Error> {
    let peer = session.me().other();
    let graph = AnchorGraph::of(names, sizes, room)?;
    let graph = graph.ok_or_else(|| session.link(peer).blame(DISTINCT))?;
    graph.fill(sizes, test, room)
}

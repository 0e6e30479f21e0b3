//! The conversation up to the pairs.

use super::price::chunks;
use crate::begin::{by_party, peer_rows_max, within};
use crate::chunks;
use crate::dummies::{self, ShownSizes};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::matcher::MatchOptions;
use crate::placed::PlacedItems;
use crate::spill::{SpillColumn, SpillQueue, SpillRoom, distinct};
use crate::terms;
use base::{Error, PartyId, Rng, limits};
use net::{Session, StepLink};
use std::cmp::Ordering;
use zeroize::{Zeroize, Zeroizing};

const DISTINCT: &str = "its identifiers are unique";
const SORTED: &str = "its set is sorted and without repeats";
const SAME_TERMS: &str = "it joins payloads of the layouts that we do, by the same back end";

/// What a party holds when the matches are known.
pub(super) struct JoinedPairs {
    /// By own row: where it stands among those sent as u.
    pub places: Vec<u32>,
    /// For every joined row, which entry of the peer's order lies there. At A the `q` of each pair; at B
    /// `rho` along I.
    pub picks: Vec<u32>,
}

/// Orders say whose rows match.
impl Drop for JoinedPairs {
    fn drop(&mut self) {
        self.places.zeroize();
        self.picks.zeroize();
    }
}

/// Both tell their sizes and terms. Returns the rows of party 0 and of party 1.
pub(super) fn count(session: &mut Session, own: u64, options: &MatchOptions) -> Result<[u64; 2], Error> {
    let (me, peer) = (session.me(), session.me().other());
    within(session, None, "limits::ROWS, own rows and dummies", [own, limits::ROWS - 1])?;
    let hides = dummies::terms(options.dummies.as_ref(), ShownSizes::Intersection);
    let mut link = session.link(peer);
    let terms = terms::digest(options, link.window());
    link.send(&[&own.to_le_bytes()[..], &hides, &terms].concat())?;
    let theirs = link.recv_count("rows of the peer", peer_rows_max(options).min(limits::ROWS - 1))?;
    dummies::check_terms(&mut link, &hides)?;
    if link.recv_array()? != terms {
        return Err(link.blame(SAME_TERMS));
    }
    Ok(by_party(me, own, theirs))
}

/// Steps `u`, `e` and `match`.
pub(super) fn pairs(
    session: &mut Session,
    own: &dyn IdentifierSource,
    (rows, room): ([u64; 2], &SpillRoom),
    threads: usize,
    rng: &mut Rng,
) -> Result<JoinedPairs, Error> {
    let mut order: Vec<u32> = (0..own.rows() as u32).collect();
    rng.shuffle(&mut order);
    let mut pairs = JoinedPairs { places: terms::places(&order), picks: Vec::new() };
    order.zeroize();
    drop(order);
    let column = Column { key: Exponent::random(rng), threads, room };
    let products = session.step("u", |s| {
        let names = PlacedItems::names(own, &pairs.places, room)?;
        column.exchange(s, names, rows)
    })?;
    let peer = session.me().other();
    // The products of a row that its owner sent twice would mark it: nothing that depends on them leaves
    // before this.
    let products = session.step("e", |s| {
        let products = SortedProducts::of(products, room)?;
        products.ok_or_else(|| s.link(peer).blame(DISTINCT))
    })?;
    pairs.picks = if session.me() == PartyId(0) {
        let (bitmap, picks) = session.step("e", |s| join(s, rows[0], products))?;
        if !bitmap.is_empty() {
            session.step("match", |s| s.link(peer).send(&bitmap))?;
        }
        picks
    } else {
        let rho = session.step("e", |s| send_sorted(s, products))?;
        session.step("match", |s| {
            let mut link = s.link(peer);
            let mut bitmap = vec![0; rows[0].div_ceil(8) as usize];
            if !bitmap.is_empty() {
                link.recv(&mut bitmap)?;
            }
            picked(&mut link, &bitmap, rho, rows)
        })?
    };
    Ok(pairs)
}

/// Bytes of an element and its place.
pub(super) const PLACED_BYTES: usize = size_of::<GroupElement>() + size_of::<u32>();

/// What it takes to send own rows, and to multiply the peer's.
struct Column<'a> {
    key: Exponent,
    threads: usize,
    room: &'a SpillRoom,
}

impl Column<'_> {
    /// Own rows under the own key, chunk by chunk against the peer's, so that both compute at once. Returns
    /// the peer's under both keys, each with the place at which it came.
    fn exchange(
        &self,
        session: &mut Session,
        mut names: PlacedItems,
        rows: [u64; 2],
    ) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let (me, peer) = (session.me().index(), session.me().other());
        let mut products = SpillColumn::new(self.room, rows[1 - me]);
        let (mut sent, mut heard): (Vec<GroupElement>, Vec<GroupElement>) = Default::default();
        for [own, theirs] in chunks([rows[me], rows[1 - me]]) {
            sent.clear();
            sent.resize(chunks::len(&own), [0; 32]);
            names.hash(&own, (&self.key, self.threads), &mut sent)?;
            heard.clear();
            heard.resize(chunks::len(&theirs), [0; 32]);
            let mut link = session.link(peer);
            link.exchange(sent.as_flattened(), heard.as_flattened_mut())?;
            link.flush()?;
            group::mul_batch(&mut heard, &self.key, self.threads)
                .map_err(|refusal| link.malformed(refusal.text()))?;
            for (place, element) in (theirs.start as u32..).zip(&heard) {
                let mut record = [0; PLACED_BYTES];
                record[..32].copy_from_slice(element);
                record[32..].copy_from_slice(&place.to_be_bytes());
                products.push(&record)?;
            }
            session.report(theirs.end, rows[1 - me]);
        }
        Ok(products)
    }
}

/// Elements of a message.
const MESSAGE: usize = 4096;

/// Elements with their places, in the order of the elements.
///
/// Sorting is the shuffle: the elements are products with a key that their owner does not know, so their
/// order is uniform to it. It is one of the whole column, and says nothing of the order in which they came.
struct SortedProducts {
    sorted: SpillQueue,
    block: Vec<u8>,
    at: usize,
}

impl SortedProducts {
    /// None when an element repeats.
    fn of(products: SpillColumn<PLACED_BYTES>, room: &SpillRoom) -> Result<Option<Self>, Error> {
        let sorted = distinct(products, (room, 32, MESSAGE as u64))?;
        Ok(sorted.map(|sorted| Self { sorted, block: Vec::new(), at: 0 }))
    }

    /// The next of them: as many as a message has, but for the last ones.
    fn next_block(&mut self) -> Result<&[[u8; PLACED_BYTES]], Error> {
        self.sorted.pop(&mut self.block)?;
        self.at = 0;
        Ok(self.block.as_chunks().0)
    }

    /// Drops what is before `element`. The place of it, if it is there.
    fn find(&mut self, element: &GroupElement) -> Result<Option<u32>, Error> {
        loop {
            let block = self.block.as_chunks::<PLACED_BYTES>().0;
            let Some(record) = block.get(self.at) else {
                if self.next_block()?.is_empty() {
                    return Ok(None);
                }
                continue;
            };
            match record[..32].cmp(&element[..]) {
                Ordering::Less => self.at += 1,
                Ordering::Equal => return Ok(Some(place(record))),
                Ordering::Greater => return Ok(None),
            }
        }
    }
}

fn place(record: &[u8; PLACED_BYTES]) -> u32 {
    u32::from_be_bytes(*record.last_chunk().expect("a place comes last"))
}

/// Sends the elements; the place of each.
fn send_sorted(session: &mut Session, mut products: SortedProducts) -> Result<Zeroizing<Vec<u32>>, Error> {
    let (mut link, mut rho) = (session.link(PartyId(0)), Zeroizing::new(Vec::new()));
    loop {
        let block = products.next_block()?;
        if block.is_empty() {
            break;
        }
        let elements: Vec<GroupElement> =
            block.iter().map(|record| *record.first_chunk().expect("an element comes first")).collect();
        rho.extend(block.iter().map(place));
        link.send(elements.as_flattened())?;
    }
    link.flush()?;
    Ok(rho)
}

/// Receives `E_A`: the bitmap of I, and the `q` of every pair in its order.
fn join(
    session: &mut Session,
    rows: u64,
    mut products: SortedProducts,
) -> Result<(Vec<u8>, Vec<u32>), Error> {
    let mut link = session.link(PartyId(1));
    let (mut bitmap, mut picks) = (vec![0; rows.div_ceil(8) as usize], Vec::new());
    let (mut elements, mut last, mut p) = (Vec::<GroupElement>::new(), None, 0);
    while p < rows as usize {
        elements.resize(MESSAGE.min(rows as usize - p), [0; 32]);
        link.recv(elements.as_flattened_mut())?;
        if !elements.iter().all(group::is_canonical) {
            return Err(link.malformed(group::ElementRefusal::NonCanonical.text()));
        }
        for element in &elements {
            if last.is_some_and(|last| last >= *element) {
                return Err(link.blame(SORTED));
            }
            last = Some(*element);
            if let Some(q) = products.find(element)? {
                bitmap[p / 8] |= 1 << (p % 8);
                picks.push(q);
            }
            p += 1;
        }
    }
    Ok((bitmap, picks))
}

/// `rho` along I.
fn picked(
    link: &mut StepLink<'_>,
    bitmap: &[u8],
    mut rho: Zeroizing<Vec<u32>>,
    rows: [u64; 2],
) -> Result<Vec<u32>, Error> {
    let set = |p: usize| bitmap[p / 8] >> (p % 8) & 1 == 1;
    let matched: u64 = bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum();
    if (rows[0] as usize..8 * bitmap.len()).any(set) {
        return Err(link.malformed("a bitmap of matches has bits beyond the rows"));
    }
    if matched > rows[1] {
        return Err(link.blame("no more rows match than we have"));
    }
    let mut p = 0;
    rho.retain(|_| {
        p += 1;
        set(p - 1)
    });
    Ok(std::mem::take(&mut rho))
}

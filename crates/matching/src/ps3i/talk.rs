//! The conversation up to the pairs.

use super::price::chunks;
use crate::begin::{by_party, peer_rows_max, within};
use crate::chunks::{self, CHUNK};
use crate::dummies::{self, ShownSizes};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::matcher::MatchOptions;
use crate::spill::{SpillColumn, SpillDeal, SpillQueue, SpillRoom};
use crate::terms;
use base::{Error, PartyId, Rng, limits};
use net::{Session, StepLink};
use std::cmp::Ordering;
use std::ops::Range;
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
        let names = SentNames::deal(own, &pairs.places, room)?;
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

/// Bytes of a name with its place and length that are reckoned with.
const NAME_BYTES: u64 = 64;
/// Rows of a part of [`SentNames`], at most.
const PART_ROWS: u64 = 1 << 16;

/// Own names in the order in which they are sent: read in the order of rows, and dealt to parts of that
/// order.
struct SentNames {
    deal: SpillDeal,
    /// Rows of a part: whole chunks.
    part_rows: u64,
    rows: u64,
    /// The part in memory, and where the name of each of its rows is.
    part: Option<u64>,
    bytes: Vec<u8>,
    spans: Vec<Range<usize>>,
}

impl SentNames {
    fn deal(own: &dyn IdentifierSource, places: &[u32], room: &SpillRoom) -> Result<Self, Error> {
        let fit = (room.working() / NAME_BYTES).clamp(CHUNK, PART_ROWS);
        let (rows, part_rows) = (own.rows(), fit / CHUNK * CHUNK);
        let mut deal = SpillDeal::new(room, rows.div_ceil(part_rows) as usize);
        let (mut name, mut record) = (Vec::new(), Vec::new());
        for (row, place) in (0..).zip(places) {
            own.read(row, 0, &mut name)?;
            own.domain(row).mark(&mut name);
            record.clear();
            record.extend([place.to_le_bytes(), (name.len() as u32).to_le_bytes()].as_flattened());
            record.extend_from_slice(&name);
            deal.push((u64::from(*place) / part_rows) as usize, &record)?;
        }
        Ok(Self { deal, part_rows, rows, part: None, bytes: Vec::new(), spans: Vec::new() })
    }

    /// Brings the names at these places into memory, which are of one chunk. Where the first one's span is.
    fn meet(&mut self, places: &Range<u64>) -> Result<usize, Error> {
        let part = places.start / self.part_rows;
        if self.part != Some(part) && !places.is_empty() {
            self.load(part)?;
        }
        Ok((places.start - part * self.part_rows) as usize)
    }

    fn load(&mut self, part: u64) -> Result<(), Error> {
        let first = part * self.part_rows;
        self.deal.take(part as usize, &mut self.bytes)?;
        self.spans.clear();
        self.spans.resize((self.rows - first).min(self.part_rows) as usize, 0..0);
        let mut at = 0;
        while let Some((head, _)) = self.bytes[at..].split_first_chunk::<8>() {
            let [place, len] =
                [0, 4].map(|i| u32::from_le_bytes(*head[i..].first_chunk().expect("four bytes")));
            let start = at + head.len();
            at = start + len as usize;
            self.spans[place as usize - first as usize] = start..at;
        }
        self.part = Some(part);
        Ok(())
    }
}

/// Bytes of an element and its place.
const PLACED_BYTES: usize = size_of::<GroupElement>() + size_of::<u32>();

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
        mut names: SentNames,
        rows: [u64; 2],
    ) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let (me, peer) = (session.me().index(), session.me().other());
        let mut products = SpillColumn::new(self.room, rows[1 - me]);
        let (mut sent, mut heard): (Vec<GroupElement>, Vec<GroupElement>) = Default::default();
        for [own, theirs] in chunks([rows[me], rows[1 - me]]) {
            self.hash(&mut names, own, &mut sent)?;
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

    fn hash(
        &self,
        names: &mut SentNames,
        rows: Range<u64>,
        out: &mut Vec<GroupElement>,
    ) -> Result<(), Error> {
        out.clear();
        out.resize(chunks::len(&rows), [0; 32]);
        let first = names.meet(&rows)?;
        let SentNames { bytes, spans, .. } = names;
        let names = |i: usize, name: &mut Vec<u8>| {
            name.clear();
            name.extend_from_slice(&bytes[spans[first + i].clone()]);
            Ok(())
        };
        group::hash_mul_batch(&names, &self.key, out, self.threads)
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
        let (mut records, mut last) = (products.sorted(), None);
        let mut sorted = SpillQueue::new(room, MESSAGE * PLACED_BYTES);
        while let Some(record) = records.pop()? {
            let element: Option<GroupElement> = record.first_chunk().copied();
            if last.is_some() && last == element {
                return Ok(None);
            }
            last = element;
            sorted.push(&record)?;
        }
        Ok(Some(Self { sorted, block: Vec::new(), at: 0 }))
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

//! The conversation up to the pairs.

use super::price::chunks;
use crate::begin::{by_party, peer_rows_max, within};
use crate::dummies::{self, ShownSizes};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::matcher::MatchOptions;
use crate::memory::reserve;
use crate::terms;
use base::{Error, PartyId, Rng, limits};
use net::{Session, StepLink};
use std::ops::Range;
use zeroize::Zeroize;

const DISTINCT: &str = "its identifiers are unique";
const SORTED: &str = "its set is sorted and without repeats";
const SAME_TERMS: &str = "it joins payloads of the layouts that we do, by the same back end";

/// What a party holds when the matches are known.
pub(super) struct JoinedPairs {
    /// Own rows in the order in which they were sent as u.
    pub order: Vec<u32>,
    /// For every joined row, which entry of the peer's order lies there. At A the `q` of each pair; at B
    /// `rho` along I.
    pub picks: Vec<u32>,
}

/// Orders say whose rows match.
impl Drop for JoinedPairs {
    fn drop(&mut self) {
        self.order.zeroize();
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
    rows: [u64; 2],
    threads: usize,
    rng: &mut Rng,
) -> Result<JoinedPairs, Error> {
    let mut order: Vec<u32> = (0..own.rows() as u32).collect();
    rng.shuffle(&mut order);
    let mut pairs = JoinedPairs { order, picks: Vec::new() };
    let column = Column { own, order: &pairs.order, key: Exponent::random(rng), threads };
    let products = session.step("u", |s| column.exchange(s, rows))?;
    let peer = session.me().other();
    // The products of a row that its owner sent twice would mark it: nothing that depends on them leaves
    // before this.
    let products = session.step("e", |s| sorted(products).ok_or_else(|| s.link(peer).blame(DISTINCT)))?;
    pairs.picks = if session.me() == PartyId(0) {
        let shuffled = session.step("e", |s| recv_sorted(s, rows[0]))?;
        let (bitmap, picks) = join(&shuffled, &products);
        if !bitmap.is_empty() {
            session.step("match", |s| s.link(peer).send(&bitmap))?;
        }
        picks
    } else {
        session.step("e", |s| send_sorted(s, &products))?;
        session.step("match", |s| {
            let mut link = s.link(peer);
            let mut bitmap = vec![0; rows[0].div_ceil(8) as usize];
            if !bitmap.is_empty() {
                link.recv(&mut bitmap)?;
            }
            picked(&mut link, &bitmap, &products, rows)
        })?
    };
    Ok(pairs)
}

/// Own rows and what it takes to send them.
struct Column<'a> {
    own: &'a dyn IdentifierSource,
    order: &'a [u32],
    key: Exponent,
    threads: usize,
}

impl Column<'_> {
    /// Own rows under the own key, chunk by chunk against the peer's, so that both compute at once. Returns
    /// the peer's under both keys, as they came.
    fn exchange(&self, session: &mut Session, rows: [u64; 2]) -> Result<Vec<GroupElement>, Error> {
        let (me, peer) = (session.me().index(), session.me().other());
        let mut products: Vec<GroupElement> = reserve("rows of the peer", rows[1 - me])?;
        let mut sent = Vec::new();
        for [own, theirs] in chunks([rows[me], rows[1 - me]]) {
            self.hash(own, &mut sent)?;
            let start = products.len();
            products.resize(theirs.end as usize, [0; 32]);
            let mut link = session.link(peer);
            link.exchange(sent.as_flattened(), products[start..].as_flattened_mut())?;
            link.flush()?;
            group::mul_batch(&mut products[start..], &self.key, self.threads)
                .map_err(|refusal| link.malformed(refusal.text()))?;
            session.report(theirs.end, rows[1 - me]);
        }
        Ok(products)
    }

    fn hash(&self, rows: Range<u64>, out: &mut Vec<GroupElement>) -> Result<(), Error> {
        let order = &self.order[rows.start as usize..rows.end as usize];
        let names = |i: usize, name: &mut Vec<u8>| {
            self.own.read(order[i], 0, name)?;
            self.own.domain(order[i]).mark(name);
            Ok(())
        };
        out.clear();
        out.resize(order.len(), [0; 32]);
        group::hash_mul_batch(&names, &self.key, out, self.threads)
    }
}

/// Elements with their places, sorted by encoding; none when one repeats.
///
/// Sorting is the shuffle: the elements are products with a key that their owner does not know, so their
/// order is uniform to it. It is one of the whole column, and says nothing of the order in which they came.
fn sorted(products: Vec<GroupElement>) -> Option<Vec<(GroupElement, u32)>> {
    let mut sorted: Vec<(GroupElement, u32)> = products.into_iter().zip(0..).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|w| w[0].0 != w[1].0).then_some(sorted)
}

/// Elements of a message.
const MESSAGE: usize = 4096;

fn send_sorted(session: &mut Session, sorted: &[(GroupElement, u32)]) -> Result<(), Error> {
    let mut link = session.link(PartyId(0));
    for piece in sorted.chunks(MESSAGE) {
        let elements: Vec<GroupElement> = piece.iter().map(|(element, _)| *element).collect();
        link.send(elements.as_flattened())?;
    }
    link.flush()
}

fn recv_sorted(session: &mut Session, rows: u64) -> Result<Vec<GroupElement>, Error> {
    let mut link = session.link(PartyId(1));
    let mut elements: Vec<GroupElement> = reserve("E_A", rows)?;
    while (elements.len() as u64) < rows {
        let start = elements.len();
        elements.resize((start + MESSAGE).min(rows as usize), [0; 32]);
        link.recv(elements[start..].as_flattened_mut())?;
        if !elements[start..].iter().all(group::is_canonical) {
            return Err(link.malformed(group::ElementRefusal::NonCanonical.text()));
        }
    }
    match elements.is_sorted_by(|a, b| a < b) {
        true => Ok(elements),
        false => Err(link.blame(SORTED)),
    }
}

/// The bitmap of I, and the `q` of every pair in its order. Both columns are sorted.
fn join(shuffled: &[GroupElement], products: &[(GroupElement, u32)]) -> (Vec<u8>, Vec<u32>) {
    let (mut bitmap, mut picks) = (vec![0; shuffled.len().div_ceil(8)], Vec::new());
    let mut rest = products.iter().peekable();
    for (p, element) in shuffled.iter().enumerate() {
        while rest.next_if(|(other, _)| other < element).is_some() {}
        if let Some((_, q)) = rest.next_if(|(other, _)| other == element) {
            bitmap[p / 8] |= 1 << (p % 8);
            picks.push(*q);
        }
    }
    (bitmap, picks)
}

/// `rho` along I.
fn picked(
    link: &mut StepLink<'_>,
    bitmap: &[u8],
    products: &[(GroupElement, u32)],
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
    Ok(products.iter().enumerate().filter(|(p, _)| set(*p)).map(|(_, (_, place))| *place).collect())
}

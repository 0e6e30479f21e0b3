//! Private-ID among n parties, for one unique identifier per row.
//!
//! * **Functionality.** Party i of n holds identifiers `X_i` without repeats. All get one spine: the sorted
//!   list of pseudorandom universal identifiers of the union, and each the positions of its own rows. Rows of
//!   any parties with equal identifiers share a position.
//! * **Security.** Semi-honest, any n - 1 corrupted: DDH on Curve25519 (about 126 bits), `H` a random oracle.
//!   Malformed or repeated elements are caught by name; other deviations are not.
//! * **Who learns what.** All: the size of every list and of the union. Party 0: for every set of parties,
//!   how many identifiers exactly these have. Nobody: which ones. Of parties that put their views together:
//!   those of two learn the size of the intersection of the lists that follow theirs in the ring, and party 0
//!   among them nothing more than alone and about their own lists. `docs/protocols/many-pid.md`.
//! * **Paper.** Section 2.3 of the private randomised trials paper describes two parties; the extension is
//!   ours and is [`crate::pid`]'s protocol for two, except that party 0 alone compares.
//! * **Cost.** Per party `2 n_i + 3 (N - n_i) - n_(i-1) + |union|` multiplications, those of hashed names
//!   included, `N` the sum of all `n_i`. [`price`] is exact, a test holds it to the ledger.
//!
//! ```text
//!         party i: a_i, b_i; round r of the ring: a list goes on to party i + 1
//! ring    1        own u = shuffle{H(x)^a_i}
//!                  the list that comes:  e = sort(u^a_i), v = (u^a_i)^b_i in its order
//!         2..n-1   the list that comes:  e = sort(e^a_i), v = (v^a_i)^b_i in its order
//!         n        v alone, to its owner: own v^b_i = H(x)^(all a and b), in the order of own u
//! e       every list's last e, H(x)^(all a) sorted, to party 0: E = union of all
//! union   E goes from party 0 to n - 1: each time E = sort(E^b_i)
//! spine   party n - 1 sends tags of all to everybody, who finds its own
//! ```

mod price;
mod union;

pub use crate::chunks::CHUNK;
pub use price::{memory, multiplications, price};

use crate::begin::{peer_rows_max, within};
use crate::chunks::{chunk, len, refused};
use crate::dummies::{self, PaddedIdentifiers, ShownSizes};
use crate::group::{self, ElementRefusal, Exponent, GroupElement, is_canonical};
use crate::identifiers::{self, IdentifierSource};
use crate::matcher::{
    MatchDisclosure, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome, MatchSizes,
    MatchedCount, Matcher,
};
use crate::memory as room;
use crate::places::OwnPlaces;
use crate::tags::{self, PlacedTag, PositionFinder, TAG_BYTES, are_distinct, tagged, to_wire};
use base::{Cost, Error, PartyId, Roster, limits};
use net::{Session, StepLink};
use price::{PULSE, held, width};
use std::ops::Range;
use union::UnionMember;

/// Most parties: an identifier's holders are told by 16 bits.
const _: () = assert!(limits::PARTIES <= 16);

const UNIQUE: &str = "its identifiers are unique";

/// Private-ID of any number of parties.
pub struct ManyId;

impl Matcher for ManyId {
    fn name(&self) -> &'static str {
        "pid"
    }

    fn features(&self) -> MatchFeatures {
        MatchFeatures { parties: 2..=limits::PARTIES, shows_overlaps: true, ..MatchFeatures::SPINE }
    }

    fn tells(&self, sizes: &str, first: &str, _options: &MatchOptions) -> String {
        format!(
            "all learn the sizes of all sets and of their union, {sizes}; {first} alone also counts, \
             for every set of parties, the identifiers that these and no others have, {sizes}"
        )
    }

    fn price(&self, sizes: &MatchSizes, _options: &MatchOptions) -> Cost {
        price(sizes)
    }

    fn estimate(&self, rows: &[u64], _keys: u64, _options: &MatchOptions) -> MatchEstimate {
        let sizes = MatchSizes::apart(rows, 1);
        let (multiplications, waits) = (multiplications(&sizes, 0), 2.0 * rows.len() as f64 + 4.0);
        MatchEstimate { multiplications, waits, ..MatchEstimate::apart(sizes) }
    }

    fn step(&self) -> Option<&'static str> {
        Some("many")
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let mut rng = session.fork_seed("order and keys").into_rng();
        let MatchInput { rows: padded, options, .. } = input;
        identifiers::check_unique(padded, &mut rng)?;
        let mut order: Vec<u32> = (0..padded.rows() as u32).collect();
        rng.shuffle(&mut order);
        let rows = session.step("count", |s| count(s, padded, options))?;
        let party = Party {
            me: session.me().index(),
            threads: options.threads,
            keys: [Exponent::random(&mut rng), Exponent::random(&mut rng)],
            identifiers: padded,
            order,
            rows,
        };
        room::check(memory(&party.rows, party.me), options.memory)?;
        party.run(session, padded.real_rows())
    }
}

/// What is counted of the rows that exactly some parties have.
fn overlap(roster: &Roster, set: usize) -> String {
    let of = roster.parties().filter(|party| set >> party.0 & 1 == 1);
    let names: Vec<String> = of.map(|party| roster.name(party)).collect();
    format!("identifiers that exactly {} have", names.join(", "))
}

/// All tell rows and how they hide sizes.
fn count(
    session: &mut Session,
    own: &PaddedIdentifiers<'_>,
    options: &MatchOptions,
) -> Result<Vec<u64>, Error> {
    let (me, terms) = (session.me(), dummies::terms(options.dummies.as_ref(), ShownSizes::Intersection));
    let parties: Vec<PartyId> = session.roster().parties().collect();
    for &peer in parties.iter().filter(|&&peer| peer != me) {
        let mut link = session.link(peer);
        link.send(&[&own.rows().to_le_bytes()[..], &terms].concat())?;
        link.flush()?;
    }
    let (mut rows, mut sum) = (Vec::new(), own.rows());
    for &peer in &parties {
        if peer == me {
            rows.push(own.rows());
            continue;
        }
        let mut link = session.link(peer);
        let theirs = link.recv_count("rows of the peer", peer_rows_max(options))?;
        dummies::check_terms(&mut link, &terms)?;
        rows.push(theirs);
        sum += theirs;
        // Positions in the spine are 32-bit numbers, whatever the overlap turns out to be.
        within(session, Some(peer), "limits::ROWS, rows of all sides", [sum, limits::ROWS])?;
    }
    Ok(rows)
}

/// What a party holds during a run. The keys are of this run only.
struct Party<'a> {
    me: usize,
    threads: usize,
    /// `a_i, b_i`.
    keys: [Exponent; 2],
    identifiers: &'a PaddedIdentifiers<'a>,
    /// Own rows in the secret order of u.
    order: Vec<u32>,
    /// Rows of each party.
    rows: Vec<u64>,
}

/// A list on its way round the ring.
#[derive(Default)]
struct List {
    /// Sorted; empty for the own list.
    e: Vec<GroupElement>,
    /// In the owner's order; empty for the own list, which is hashed as it leaves.
    v: Vec<GroupElement>,
}

impl Party<'_> {
    fn parties(&self) -> usize {
        self.rows.len()
    }

    fn run(&self, session: &mut Session, real_rows: u64) -> Result<MatchOutcome, Error> {
        let (own, e) = session.step("ring", |s| self.ring(s))?;
        let (members, overlaps) = session.step("e", |s| self.gather(s, e))?;
        let (set, union) = session.step("union", |s| self.pass_union(s, &members))?;
        drop(members);
        let mut mine = session.step("spine", |s| self.spine(s, &own, set, union))?;
        mine.truncate(real_rows as usize);
        let sizes = MatchSizes { rows: self.rows.clone(), keys: vec![1; self.parties()], union };
        let mut disclosed = MatchDisclosure::of(sizes);
        // A set of one party tells nothing that the sizes do not.
        let sets = overlaps.iter().flatten().enumerate().filter(|(set, _)| set.count_ones() > 1);
        let roster = session.roster();
        disclosed.counts.extend(sets.map(|(set, n)| MatchedCount::new(overlap(roster, set), *n)));
        Ok(MatchOutcome::spine_of(union, OwnPlaces::of(mine), disclosed))
    }

    /// All rounds. Returns tags of own rows, sorted, and the last e of the list after ours.
    fn ring(&self, session: &mut Session) -> Result<(Vec<PlacedTag>, Vec<GroupElement>), Error> {
        let n = self.parties();
        let mut list = List::default();
        let mut last_e = Vec::new();
        for round in 1..=n {
            if round == n {
                last_e = std::mem::take(&mut list.e);
            }
            list = self.round(session, round, list)?;
        }
        let mut own: Vec<PlacedTag> = room::reserve("own rows", self.rows[self.me])?;
        tags::add(&mut own, &list.v);
        own.sort_unstable();
        Ok((own, last_e))
    }

    /// One round: the held list goes on, the one of the party before comes and is multiplied.
    fn round(&self, session: &mut Session, round: usize, out: List) -> Result<List, Error> {
        let n = self.parties();
        let [next, prev] = [(self.me + 1) % n, (self.me + n - 1) % n];
        let [leaving, coming] = [self.me, prev].map(|party| self.rows[held(party, round, n)]);
        let [next, prev] = [next, prev].map(|party| PartyId(party as u8));
        let mut list =
            List { e: room::reserve("rows of a peer", if round < n { coming } else { 0 })?, v: Vec::new() };
        list.v = room::reserve("rows of a peer", coming)?;
        let [mut send, mut recv] = [(); 2].map(|()| vec![[0; 32]; 2 * CHUNK as usize]);
        let wide = width(round, n) as usize;
        for i in 0..leaving.max(coming).div_ceil(CHUNK) {
            let [go, come] = [chunk(leaving, i), chunk(coming, i)];
            let (go_len, come_len) = (len(&go), len(&come));
            let sent = &mut send[..wide * go_len];
            self.fill(round, &out, go, sent)?;
            let came = &mut recv[..wide * come_len];
            pass(session, [next, prev], sent.as_flattened(), came.as_flattened_mut())?;
            let multiply = |points: &mut [GroupElement], key: usize| {
                group::mul_batch(points, &self.keys[key], self.threads)
            };
            let refuse = |r| refused(&session.link(prev), r);
            if round == n {
                multiply(came, 1).map_err(refuse)?;
                list.v.extend_from_slice(came);
            } else {
                multiply(came, 0).map_err(refuse)?;
                list.e.extend_from_slice(&came[..come_len]);
                let v = &mut came[(wide - 1) * come_len..];
                multiply(v, 1).map_err(|r| refused(&session.link(prev), r))?;
                list.v.extend_from_slice(v);
            }
            session.report(
                (round as u64 - 1) * leaving.max(coming) + (i + 1) * CHUNK,
                n as u64 * leaving.max(coming),
            );
        }
        list.e.sort_unstable();
        // A party that repeats an element could tell it apart later: nothing goes on before this check.
        if !list.e.windows(2).all(|w| w[0] != w[1]) {
            return Err(session.link(prev).blame(UNIQUE));
        }
        Ok(list)
    }

    /// What leaves of the held list in one message: own rows hashed, or e then v, or v.
    fn fill(
        &self,
        round: usize,
        list: &List,
        rows: Range<u64>,
        into: &mut [GroupElement],
    ) -> Result<(), Error> {
        let at = rows.start as usize..rows.end as usize;
        if round == 1 {
            let names = |i: usize, name: &mut Vec<u8>| {
                let row = self.order[at.start + i];
                self.identifiers.read(row, 0, name)?;
                self.identifiers.domain(row).mark(name);
                Ok(())
            };
            return group::hash_mul_batch(&names, &self.keys[0], into, self.threads);
        }
        let (e, v) = into.split_at_mut(into.len() - at.len());
        e.copy_from_slice(if e.is_empty() { &[] } else { &list.e[at.clone()] });
        v.copy_from_slice(&list.v[at]);
        Ok(())
    }

    /// Party 0 gathers the last e of every list and unites them.
    fn gather(
        &self,
        session: &mut Session,
        e: Vec<GroupElement>,
    ) -> Result<(Vec<UnionMember>, Option<Vec<u64>>), Error> {
        let n = self.parties();
        if self.me > 0 {
            let mut link = session.link(PartyId(0));
            e.chunks(CHUNK as usize).try_for_each(|piece| link.send(piece.as_flattened()))?;
            link.flush()?;
            return Ok((Vec::new(), None));
        }
        // Held before the last round: the list of the party after.
        let mut union: Vec<UnionMember> = union::merge(&[], &e, held(0, n, n));
        drop(e);
        for peer in 1..n {
            let list = held(peer, n, n);
            let mut link = session.link(PartyId(peer as u8));
            let set = recv_column(&mut link, "rows of a peer", self.rows[list])?;
            if !set.iter().all(is_canonical) {
                return Err(refused(&link, ElementRefusal::NonCanonical));
            }
            if !set.windows(2).all(|w| w[0] < w[1]) {
                return Err(link.blame("its set is sorted and without repeats"));
            }
            union = union::merge(&union, &set, list);
        }
        let overlaps = union::overlaps(&union, n);
        Ok((union, Some(overlaps)))
    }

    /// The union goes from party to party, each multiplies and sorts it. Returns what the last one made of
    /// it, to that one alone, and its size.
    fn pass_union(
        &self,
        session: &mut Session,
        members: &[UnionMember],
    ) -> Result<(Vec<GroupElement>, u64), Error> {
        let n = self.parties();
        let union = self.tell_union(session, members.len() as u64)?;
        let mut set = Vec::new();
        for at_work in 0..n {
            if at_work == self.me {
                set = self.multiply_union(session, members, union)?;
            } else {
                let mut link = session.link(PartyId(at_work as u8));
                (0..price::pulses(union)).try_for_each(|_| link.recv(&mut [0]))?;
            }
        }
        Ok((if self.me + 1 < n { Vec::new() } else { set }, union))
    }

    /// Party 0 tells all the size of the union.
    fn tell_union(&self, session: &mut Session, union: u64) -> Result<u64, Error> {
        if self.me == 0 {
            for peer in 1..self.parties() {
                let mut link = session.link(PartyId(peer as u8));
                link.send(&union.to_le_bytes())?;
                link.flush()?;
            }
            return Ok(union);
        }
        let mut link = session.link(PartyId(0));
        let union = link.recv_count("rows of the union", self.rows.iter().sum())?;
        if self.rows.iter().any(|&rows| rows > union) {
            return Err(link.blame("the union is not smaller than a set in it"));
        }
        Ok(union)
    }

    /// This party's turn: takes the union from the party before, or at party 0 from what it gathered;
    /// multiplies, sorts and hands it on.
    fn multiply_union(
        &self,
        session: &mut Session,
        members: &[UnionMember],
        union: u64,
    ) -> Result<Vec<GroupElement>, Error> {
        let mut set: Vec<GroupElement> = room::reserve("rows of the union", union)?;
        for pulse in 0..price::pulses(union) {
            let rows = pulse * PULSE..union.min((pulse + 1) * PULSE);
            for start in rows.clone().step_by(CHUNK as usize) {
                let piece = start as usize..rows.end.min(start + CHUNK) as usize;
                if self.me > 0 {
                    set.resize(piece.end, [0; 32]);
                    let from = PartyId(self.me as u8 - 1);
                    session.link(from).recv(set[piece.clone()].as_flattened_mut())?;
                } else {
                    set.extend(members[piece.clone()].iter().map(|(element, _)| element));
                }
                group::mul_batch(&mut set[piece.clone()], &self.keys[1], self.threads).map_err(|r| {
                    let members = if self.me == 0 { &members[piece] } else { &[] };
                    self.sender(members)
                        .map_or_else(|| Error::misuse(r.text()), |p| refused(&session.link(p), r))
                })?;
            }
            for peer in (0..self.parties()).filter(|&peer| peer != self.me) {
                let mut link = session.link(PartyId(peer as u8));
                link.send(&[0])?;
                link.flush()?;
            }
            session.report(rows.end, union);
        }
        set.sort_unstable();
        if !set.windows(2).all(|w| w[0] != w[1]) {
            let from = self.sender(members);
            return Err(from.map_or_else(|| Error::misuse(UNIQUE), |from| session.link(from).blame(UNIQUE)));
        }
        if self.me + 1 < self.parties() {
            let mut link = session.link(PartyId(self.me as u8 + 1));
            set.chunks(CHUNK as usize).try_for_each(|piece| link.send(piece.as_flattened()))?;
            link.flush()?;
        }
        Ok(set)
    }

    /// Who sent what made products of the union zero or equal: the party before, or at party 0 who sent the
    /// first of `members` outside the subgroup. What party 0 multiplied itself is in it, and distinct
    /// products come of distinct elements of it, so there is one.
    fn sender(&self, members: &[UnionMember]) -> Option<PartyId> {
        let n = self.parties();
        if self.me > 0 {
            return Some(PartyId(self.me as u8 - 1));
        }
        let (_, who) = members.iter().find(|(element, _)| !group::is_in_subgroup(element))?;
        let peer = (1..n).find(|&peer| who >> held(peer, n, n) & 1 == 1)?;
        Some(PartyId(peer as u8))
    }

    /// The last party sends the spine to all; each finds its own rows and says what it saw.
    fn spine(
        &self,
        session: &mut Session,
        own: &[PlacedTag],
        set: Vec<GroupElement>,
        union: u64,
    ) -> Result<Vec<u32>, Error> {
        let last = self.parties() - 1;
        let mut finder =
            PositionFinder::new(own, &self.order, room::reserve("own rows", self.rows[self.me])?);
        let source = PartyId(last as u8);
        let blame = |session: &mut Session, check| {
            // Who is last has the spine from the party before.
            let whom = if self.me == last { PartyId(last as u8 - 1) } else { source };
            session.link(whom).blame(check)
        };
        let mut uids: Vec<PlacedTag> = set.iter().map(|e| tagged(e, 0)).collect();
        drop(set);
        uids.sort_unstable();
        if !are_distinct(&uids) {
            return Err(blame(session, "the universal identifiers are distinct"));
        }
        let mut piece = vec![[0; TAG_BYTES as usize]; CHUNK as usize];
        for i in 0..union.div_ceil(CHUNK) {
            let positions = chunk(union, i);
            let piece = &mut piece[..len(&positions)];
            if self.me == last {
                let tags = &uids[positions.start as usize..positions.end as usize];
                piece.iter_mut().zip(tags).for_each(|(bytes, uid)| *bytes = to_wire(*uid));
                for peer in 0..last {
                    session.link(PartyId(peer as u8)).send(piece.as_flattened())?;
                }
            } else {
                session.link(source).recv(piece.as_flattened_mut())?;
            }
            finder.take(piece).map_err(|check| blame(session, check))?;
        }
        let (mine, digest) = finder.finish().map_err(|check| blame(session, check))?;
        if self.me < last {
            let mut link = session.link(source);
            link.send(&digest)?;
            link.flush()?;
            return Ok(mine);
        }
        for peer in 0..last {
            session.link(PartyId(peer as u8)).flush()?;
        }
        for peer in 0..last {
            let mut link = session.link(PartyId(peer as u8));
            if link.recv_array()? != digest {
                return Err(link.blame("all spines are the same"));
            }
        }
        Ok(mine)
    }
}

/// Sends to the next party while the one before sends to us. Pieces of a quarter of the window alternate,
/// with one piece in advance, so that no circle of parties waits for each other's windows.
fn pass(
    session: &mut Session,
    [next, prev]: [PartyId; 2],
    mine: &[u8],
    theirs: &mut [u8],
) -> Result<(), Error> {
    if next == prev {
        session.link(next).exchange(mine, theirs)?;
        return session.link(next).flush();
    }
    let piece =
        [next, prev].map(|peer| session.link(peer).window() / 4).into_iter().min().unwrap_or(1).max(1);
    let (mut out, mut into) = (mine.chunks(piece), theirs.chunks_mut(piece));
    let mut send = |session: &mut Session| match out.next() {
        None => Ok(false),
        Some(bytes) => {
            let mut link = session.link(next);
            link.send(bytes)?;
            link.flush().map(|()| true)
        }
    };
    send(session)?;
    loop {
        let sent = send(session)?;
        match into.next() {
            Some(bytes) => session.link(prev).recv(bytes)?,
            None if !sent => return Ok(()),
            None => {}
        }
    }
}

/// Receives `rows` elements. Memory grows only as they arrive.
fn recv_column(link: &mut StepLink<'_>, name: &'static str, rows: u64) -> Result<Vec<GroupElement>, Error> {
    let mut column: Vec<GroupElement> = room::reserve(name, rows)?;
    for i in 0..rows.div_ceil(CHUNK) {
        let piece = chunk(rows, i);
        column.resize(piece.end as usize, [0; 32]);
        link.recv(column[piece.start as usize..].as_flattened_mut())?;
    }
    Ok(column)
}

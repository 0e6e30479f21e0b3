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
//!   included, `N` the sum of all `n_i`. [`price`] is exact, a test holds it to the ledger. Columns that do
//!   not fit the memory lie in sealed files without a name; [`memory`] says what has to fit.
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
mod ring;
mod union;

pub use crate::chunks::CHUNK;
pub use price::{memory, multiplications, price};

use crate::begin::{peer_rows_max, within};
use crate::chunks::{chunks, len, refused};
use crate::dummies::{self, PaddedIdentifiers, ShownSizes};
use crate::group::{self, ElementRefusal, Exponent, GroupElement, is_canonical};
use crate::identifiers::{self, IdentifierSource};
use crate::matcher::{
    MatchDisclosure, MatchDisk, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome,
    MatchSizes, MatchedCount, Matcher, PlannedRows,
};
use crate::memory::check;
use crate::places::OwnPlaces;
use crate::spill::{SpillColumn, SpillQueue, SpillRoom, distinct};
use crate::tags::{PLACED_BYTES, PositionFinder, TAG_BYTES, tagged, to_wire};
use base::{Cost, Error, PartyId, Roster, limits};
use net::Session;
use price::{PULSE, held};
use ring::ClosedRing;
use std::ops::Range;
use union::{AllSets, Union};

/// Most parties: an identifier's holders are told by 16 bits.
const _: () = assert!(limits::PARTIES <= 16);

/// Bytes of elements that are kept in order and handed out: those of a chunk.
const KEPT: usize = CHUNK as usize * size_of::<GroupElement>();

const UNIQUE: &str = "its identifiers are unique";

/// Private-ID of any number of parties.
pub struct ManyId;

impl Matcher for ManyId {
    fn name(&self) -> &'static str {
        "pid"
    }

    fn features(&self) -> MatchFeatures {
        MatchFeatures {
            parties: 2..=limits::PARTIES,
            streams: true,
            shows_overlaps: true,
            // A position, and the row at each position of a union that may have the rows of all.
            bytes_per_row: 4 + 4 * limits::PARTIES as u64,
            ..MatchFeatures::SPINE
        }
    }

    fn memory(&self, rows: &[u64], me: PartyId, _keys: u64, _options: &MatchOptions) -> u64 {
        price::NEEDED_BYTES * rows[me.index()]
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

    fn estimate(&self, planned: &PlannedRows<'_>, _options: &MatchOptions) -> MatchEstimate {
        let waits = 2.0 * planned.rows.len() as f64 + 4.0;
        let multiplications = multiplications(&planned.sizes(), 0);
        MatchEstimate { multiplications, waits, ..MatchEstimate::of(planned) }
    }

    fn disk(&self, rows: &[u64], me: PartyId, _options: &MatchOptions) -> Option<MatchDisk> {
        Some(price::disk(rows, me.index()))
    }

    fn step(&self) -> Option<&'static str> {
        Some("many")
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let MatchInput { rows: padded, options, room, .. } = input;
        let mut rng = session.fork_seed("order and keys").into_rng();
        identifiers::fingerprint(padded, rng.bytes(), room)?;
        let rows = session.step("count", |s| count(s, padded, options))?;
        check(memory(&rows, session.me().index()), options.memory)?;
        input.expect_disk(&rows, price::disk(&rows, session.me().index()), 0)?;
        let order = ring::shuffled(padded.rows(), &mut rng);
        let party = Party {
            me: session.me().index(),
            threads: options.threads,
            keys: [Exponent::random(&mut rng), Exponent::random(&mut rng)],
            rows,
            real_rows: padded.real_rows(),
            room,
        };
        party.run(session, padded, order)
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
    /// Rows of each party.
    rows: Vec<u64>,
    /// Own rows that are no dummies.
    real_rows: u64,
    room: &'a SpillRoom,
}

impl Party<'_> {
    fn parties(&self) -> usize {
        self.rows.len()
    }

    fn run(
        &self,
        session: &mut Session,
        identifiers: &PaddedIdentifiers<'_>,
        order: Vec<u32>,
    ) -> Result<MatchOutcome, Error> {
        let ClosedRing { own, e } = session.step("ring", |s| {
            let own = self.order_own(identifiers, order)?;
            self.ring(s, own)
        })?;
        let gathered = session.step("e", |s| self.gather(s, e))?;
        let (uids, union) = session.step("union", |s| self.pass_union(s, gathered.as_ref()))?;
        let overlaps = gathered.map(|gathered| gathered.overlaps);
        let mine = session.step("spine", |s| self.spine(s, own, uids, union))?;
        let sizes = MatchSizes { rows: self.rows.clone(), keys: vec![1; self.parties()], union };
        let mut disclosed = MatchDisclosure::of(sizes);
        // A set of one party tells nothing that the sizes do not.
        let sets = overlaps.iter().flatten().enumerate().filter(|(set, _)| set.count_ones() > 1);
        let roster = session.roster();
        disclosed.counts.extend(sets.map(|(set, n)| MatchedCount::new(overlap(roster, set), *n)));
        Ok(MatchOutcome::spine_of(union, mine, disclosed))
    }

    /// Party 0 gathers the last e of every list and unites them.
    fn gather(&self, session: &mut Session, mut e: SpillQueue) -> Result<Option<Union>, Error> {
        let (n, mut bytes) = (self.parties(), Vec::new());
        e.pop(&mut bytes)?;
        if self.me > 0 {
            let mut link = session.link(PartyId(0));
            while !bytes.is_empty() {
                link.send(&bytes)?;
                e.pop(&mut bytes)?;
            }
            link.flush()?;
            return Ok(None);
        }
        let mut all = AllSets::new(self.room, self.rows.iter().sum());
        // Held before the last round: the list of the party after.
        while !bytes.is_empty() {
            all.add(bytes.as_chunks().0, held(0, n, n))?;
            e.pop(&mut bytes)?;
        }
        drop(e);
        for peer in 1..n {
            let (list, mut last) = (held(peer, n, n), None);
            let mut link = session.link(PartyId(peer as u8));
            let mut piece = vec![[0; 32]; CHUNK as usize];
            for rows in chunks(self.rows[list]) {
                let piece = &mut piece[..len(&rows)];
                link.recv(piece.as_flattened_mut())?;
                if !piece.iter().all(is_canonical) {
                    return Err(refused(&link, ElementRefusal::NonCanonical));
                }
                if last >= piece.first().copied() || !piece.windows(2).all(|w| w[0] < w[1]) {
                    return Err(link.blame("its set is sorted and without repeats"));
                }
                last = piece.last().copied();
                all.add(piece, list)?;
            }
            if !all.is_spread() {
                return Err(link.blame("its set is spread as products of secret keys are"));
            }
        }
        all.unite(self.room, n).map(Some)
    }

    /// The union goes from party to party, each multiplies and sorts it. Returns tags of what the last one
    /// made of it, sorted, to that one alone, and its size.
    fn pass_union(
        &self,
        session: &mut Session,
        gathered: Option<&Union>,
    ) -> Result<(Option<SpillQueue>, u64), Error> {
        let n = self.parties();
        let union = self.tell_union(session, gathered.map(|gathered| gathered.len))?;
        let mut uids = None;
        for at_work in 0..n {
            if at_work != self.me {
                let mut link = session.link(PartyId(at_work as u8));
                (0..price::pulses(union)).try_for_each(|_| link.recv(&mut [0]))?;
            } else if self.me + 1 < n {
                self.hand_on(session, gathered, union)?;
            } else {
                uids = Some(self.universal(session, gathered, union)?);
            }
        }
        Ok((uids, union))
    }

    /// Party 0 tells all the size of the union.
    fn tell_union(&self, session: &mut Session, union: Option<u64>) -> Result<u64, Error> {
        if let Some(union) = union {
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

    /// The turn of a party that another one follows: multiplies the union, sorts it and hands it on.
    fn hand_on(&self, session: &mut Session, gathered: Option<&Union>, union: u64) -> Result<(), Error> {
        let mut set = SpillColumn::<32>::new(self.room, union);
        self.multiply_union(session, gathered, union, |element| set.push(element))?;
        let Some(mut set) = distinct(set, (self.room, 32, CHUNK))? else {
            return Err(self.repeated(session, gathered, union));
        };
        let (mut link, mut bytes) = (session.link(PartyId(self.me as u8 + 1)), Vec::new());
        for _ in chunks(union) {
            set.pop(&mut bytes)?;
            link.send(&bytes)?;
        }
        link.flush()
    }

    /// The turn of the last one: sorted tags of the universal identifiers, each last byte first.
    fn universal(
        &self,
        session: &mut Session,
        gathered: Option<&Union>,
        union: u64,
    ) -> Result<SpillQueue, Error> {
        let mut tags = SpillColumn::new(self.room, union);
        self.multiply_union(session, gathered, union, |element| {
            let mut tag = to_wire(tagged(element, 0));
            tag.reverse();
            tags.push(&tag)
        })?;
        let tags = distinct(tags, (self.room, TAG_BYTES as usize, CHUNK))?;
        tags.ok_or_else(|| self.repeated(session, gathered, union))
    }

    /// Products of the union are equal.
    fn repeated(&self, session: &mut Session, gathered: Option<&Union>, union: u64) -> Error {
        match self.sender(gathered, 0..union.div_ceil(CHUNK)) {
            Ok(Some(from)) => session.link(from).blame(UNIQUE),
            Ok(None) => Error::misuse(UNIQUE),
            Err(error) => error,
        }
    }

    /// Takes the union from the party before, or at party 0 from what it gathered, and hands out what it
    /// becomes by the own second key.
    fn multiply_union(
        &self,
        session: &mut Session,
        gathered: Option<&Union>,
        union: u64,
        mut keep: impl FnMut(&GroupElement) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut piece = vec![[0; 32]; CHUNK as usize];
        for (i, rows) in (0..).zip(chunks(union)) {
            let piece = &mut piece[..len(&rows)];
            match gathered {
                Some(gathered) => {
                    let members = gathered.chunk(i)?;
                    piece.iter_mut().zip(members).for_each(|(into, (element, _))| *into = element);
                }
                None => session.link(PartyId(self.me as u8 - 1)).recv(piece.as_flattened_mut())?,
            }
            if let Err(refusal) = group::mul_batch(piece, &self.keys[1], self.threads) {
                return Err(match self.sender(gathered, i..i + 1)? {
                    Some(from) => refused(&session.link(from), refusal),
                    None => Error::misuse(refusal.text()),
                });
            }
            piece.iter().try_for_each(&mut keep)?;
            if rows.end == union || rows.end.is_multiple_of(PULSE) {
                for peer in (0..self.parties()).filter(|&peer| peer != self.me) {
                    let mut link = session.link(PartyId(peer as u8));
                    link.send(&[0])?;
                    link.flush()?;
                }
                session.report(rows.end, union);
            }
        }
        Ok(())
    }

    /// Who sent what made products of the union zero or equal: the party before, or at party 0 who sent the
    /// first member outside the subgroup, in these chunks. What party 0 multiplied itself is in it, and
    /// distinct products come of distinct elements of it, so there is one.
    fn sender(&self, gathered: Option<&Union>, chunks: Range<u64>) -> Result<Option<PartyId>, Error> {
        let Some(gathered) = gathered else { return Ok(Some(PartyId(self.me as u8 - 1))) };
        let n = self.parties();
        for i in chunks {
            let members = gathered.chunk(i)?;
            if let Some((_, who)) = members.iter().find(|(element, _)| !group::is_in_subgroup(element)) {
                let peer = (1..n).find(|&peer| who >> held(peer, n, n) & 1 == 1);
                return Ok(peer.map(|peer| PartyId(peer as u8)));
            }
        }
        Ok(None)
    }

    /// The last party sends the spine to all; each finds its own rows and says what it saw.
    fn spine(
        &self,
        session: &mut Session,
        own: SpillColumn<PLACED_BYTES>,
        mut uids: Option<SpillQueue>,
        union: u64,
    ) -> Result<OwnPlaces, Error> {
        let last = self.parties() - 1;
        let mut finder = PositionFinder::new(own, self.real_rows, self.room);
        let source = PartyId(last as u8);
        let blame = |session: &mut Session, check| {
            // Who is last has the spine from the party before.
            let whom = if self.me == last { PartyId(last as u8 - 1) } else { source };
            session.link(whom).blame(check)
        };
        let mut piece = vec![[0; TAG_BYTES as usize]; CHUNK as usize];
        let mut bytes = Vec::new();
        for positions in chunks(union) {
            let piece = &mut piece[..len(&positions)];
            match &mut uids {
                Some(uids) => {
                    uids.pop(&mut bytes)?;
                    piece.as_flattened_mut().copy_from_slice(&bytes);
                    piece.iter_mut().for_each(|tag| tag.reverse());
                    for peer in 0..last {
                        session.link(PartyId(peer as u8)).send(piece.as_flattened())?;
                    }
                }
                None => session.link(source).recv(piece.as_flattened_mut())?,
            }
            finder.take(piece)?.map_err(|check| blame(session, check))?;
        }
        let (mine, digest) = finder.finish()?.map_err(|check| blame(session, check))?;
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

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;

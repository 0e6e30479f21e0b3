//! Private-ID for rows of several identifiers.
//!
//! * **Functionality.** Party 0 (`C`) and party 1 (`P`) hold rows of up to K identifiers, column order is
//!   public priority. Rows that share an identifier are joined by an edge. An edge is a pair if it is the top
//!   edge of both its rows in a public order (weight, then C's column, then P's). Both parties get the spine:
//!   a position for every pair and every row without one, in an order that nobody can predict, and each the
//!   positions of its own rows. Optionally C's rows are two lists, and rows of P with edges into both
//!   ("contaminated") are counted or taken out of pairs.
//! * **Security.** Semi-honest, one party corrupted: DDH on Curve25519 (about 126 bits), `H` a random oracle.
//!   Malformed or repeated elements are caught by name; other deviations are not.
//! * **Who learns what.** Both: rows and K of both, size of the union. P: the length of each of C's lists. C:
//!   the match graph of the rows of both without names, columns included: how many rows match in which
//!   columns, for each list. Which rows are paired stays hidden from both; so do numbers of identifiers of
//!   the other side's single rows that match nothing, and repeats. Crafted inputs read more off sizes and
//!   graph: `docs/protocols/multi-pid.md`.
//! * **Paper.** Section 2.3 of the private randomised trials paper, after the multi-key variant of its
//!   reference 8. Deviations: rows are padded to K; a pair must be best for both; labels are hashes of
//!   numbers under a seed that both know, so they need not travel and C has no second key; P sends the sorted
//!   spine as 96-bit tags.
//! * **Cost.** With K identifiers C does `K (n_C + n_P) + 2 n_C` multiplications, P
//!   `K (n_C + n_P) + n_C + |union|`, those of hashed names included;
//!   `32 K (2 n_C + n_P) + 64 n_C + 12 |union|` bytes. [`price`] is exact, a test holds it to the ledger.
//!   Columns that do not fit the memory lie in sealed files without a name; [`memory`] says what has to fit.
//!
//! ```text
//!          C: c1, c3                                           P: p1, p2
//! u        u_c = shuffled rows of H(x)^c1            <->       u_p = shuffled rows of H(y)^p1
//!          e_p = u_p^c1                                        t = u_c^p1
//! e                                                  <-        e_c = rows of t sorted by their first element
//!          pairs, labels: row q of u_p has label q,
//!          a row of e_c that of its partner, or a new one
//! labels   how many new ones, seed, H(label)^c3      ->        times p2, back into the order of u_c
//! uids     times 1/c3: H(label)^p2 of own rows       <-        H(label)^(c3 p2)
//!                                                              H(label)^p2 of all labels
//! spine                                              <-        sorted tags of all
//!          positions of own rows, receipt            ->        positions of own rows
//! ```

mod clear;
mod graph;
mod price;
mod rows;

pub use crate::chunks::CHUNK;
pub use clear::pairs_in_clear;
pub use graph::MatchGraph;
pub use price::{KEYS, memory, multiplications, price};

use crate::begin::{peer_rows_max, within};
use crate::chunks::{chunk, chunks, len, refused};
use crate::dummies::{self, PaddedIdentifiers, ShownSizes};
use crate::group::{self, ElementRefusal, Exponent, GroupElement, is_canonical};
use crate::identifiers::{IdentifierSource, NameDomain};
use crate::matcher::{
    ContaminatedRule, MatchDisclosure, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome,
    MatchSizes, MatchedCount, Matcher, PairSizes, PlannedRows, RepeatRule, RowInfluence,
};
use crate::memory::check;
use crate::placed::PlacedItems;
use crate::places::OwnPlaces;
use crate::spill::{QueueRecords, SpillColumn, SpillQueue, SpillRoom, distinct};
use crate::tags::{PLACED_BYTES, PositionFinder, TAG_BYTES, place, tag, tagged, to_wire};
use base::{Cost, Error, PartyId, Rng, limits};
use graph::{RowPairs, RowPrefix};
use net::Session;
use price::{SETTINGS_BYTES, returned};
use rows::{NameCell, ShuffledRows, UniqueRows};

const UNIQUE: &str = "its identifiers are unique";

/// How many rows of either party can change partner when one row of one party is added or removed. A release
/// over the spine whose value is at most R per position, and zero where nobody matched, moves by at most this
/// many R.
///
/// Where a repeated identifier is replaced, a new row can take up to K identifiers from K other rows.
#[must_use]
pub fn influence(keys: u64, repeats: RepeatRule) -> u64 {
    match repeats {
        RepeatRule::Error => keys + 1,
        RepeatRule::Replace | RepeatRule::Keep => 2 * keys + 1,
    }
}

/// What party 0 counts in the match graph, in the words of its report.
pub const COUNTED: [&str; 5] = [
    "rows of this party that share an identifier with a row of the other",
    "rows of the other party that share an identifier with one of this",
    "rows of this party that share identifiers with several rows",
    "rows of the other party that share identifiers with several rows",
    "contaminated rows of the other party: they match both arms",
];

/// What both know of lists.
pub const LISTS: [&str; 2] =
    ["rows of the publisher's test arm, known to both", "rows of the publisher's control arm, known to both"];

/// Private-ID of two parties by several identifiers.
pub struct MultiId;

impl Matcher for MultiId {
    fn name(&self) -> &'static str {
        "pid"
    }

    fn features(&self) -> MatchFeatures {
        MatchFeatures {
            keys: 1..=KEYS,
            streams: true,
            shows_graph: true,
            contaminated: &[ContaminatedRule::Ignore, ContaminatedRule::Count, ContaminatedRule::Drop],
            bytes_per_row: price::NEEDED_BYTES,
            ..MatchFeatures::SPINE
        }
    }

    fn memory(&self, rows: &[u64], me: PartyId, _keys: u64, _options: &MatchOptions) -> u64 {
        price::NEEDED_BYTES * rows[me.index()]
    }

    fn tells(&self, sizes: &str, _first: &str, options: &MatchOptions) -> String {
        let arms = match options.contaminated {
            ContaminatedRule::Ignore => "",
            ContaminatedRule::Count | ContaminatedRule::Drop => {
                "; the advertiser learns the sizes of both arms exactly"
            }
        };
        format!(
            "both learn both set sizes and the size of the match, {sizes}; the publisher (of a program the \
             first party) also sees which rows share identifiers with which, without knowing whose rows they \
             are{arms}"
        )
    }

    fn exposure(&self, _owner: PartyId, keys: u64, options: &MatchOptions) -> (ShownSizes, u64) {
        let reach =
            if options.repeats == RepeatRule::Error { keys } else { influence(keys, options.repeats) };
        (ShownSizes::Intersection, reach)
    }

    /// A sum over a spine moves by more than [`influence`] says, which counts rows of one party: where a
    /// program counts rows of either, a pair that comes apart is one row less and two more. (Of a program
    /// over the rows that both have it is one less: the bound holds there, too.) A row that comes has edges
    /// to at most K rows. Each of these may lose its partner, and one of them becomes its own: K times one
    /// less and two more at most, so 2 K. Where a line takes identifiers from others, each of the K rows that
    /// lose one may find another partner besides, one less at most, or change its value; and the line may
    /// stay alone: 3 K + 1.
    ///
    /// Such a line changes K + 1 rows of its party, whatever they match: it takes an identifier from each of
    /// K rows, which may have had no other and go, and it comes itself.
    fn influence(&self, keys: u64, options: &MatchOptions) -> RowInfluence {
        let degree = [influence(keys, options.repeats); 2];
        let (alone, spread) = match options.repeats {
            RepeatRule::Error => (1, 2 * keys),
            RepeatRule::Replace | RepeatRule::Keep => (keys + 1, 3 * keys + 1),
        };
        RowInfluence { degree, alone, spread, ..RowInfluence::default() }
    }

    fn price(&self, sizes: &MatchSizes, _options: &MatchOptions) -> Cost {
        price(sizes.pair())
    }

    fn estimate(&self, planned: &PlannedRows<'_>, _options: &MatchOptions) -> MatchEstimate {
        let multiplications = multiplications(planned.sizes().pair(), PartyId(1));
        MatchEstimate { multiplications, waits: 6.0, ..MatchEstimate::of(planned) }
    }

    fn step(&self) -> Option<&'static str> {
        Some("multi")
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let MatchInput { rows: padded, options, room, .. } = input;
        let me = session.me();
        check_options(me, padded.real_rows(), options)?;
        let first = options.lists.unwrap_or(0);
        let mut rng = session.fork_seed("order and keys").into_rng();
        let rows = UniqueRows::new(padded, options.repeats, &mut rng, room)?;
        let known = session.step("count", |s| count(s, padded, first, options))?;
        check(memory(known.rows, known.keys, me), options.memory)?;
        let own = session.step("u", |_| rows.shuffled(first, &mut rng, room))?;
        drop(rows);
        let party = Party { peer: me.other(), options, sizes: known, real_rows: padded.real_rows(), room };
        let (mine, union, graph) = match me {
            PartyId(0) => party.run_c(session, own, &mut rng)?,
            _ => party.run_p(session, own, &mut rng)?,
        };
        let sizes = PairSizes { rows: known.rows, keys: known.keys, union };
        let mut disclosed = MatchDisclosure::of(sizes);
        disclosed.counts.extend(graph.iter().flat_map(counted));
        if options.contaminated != ContaminatedRule::Ignore {
            let lists = [known.first, known.rows[0] - known.first];
            let lists = LISTS.into_iter().zip(lists);
            disclosed.counts.extend(lists.map(|(what, count)| MatchedCount::new(what, count)));
        }
        Ok(MatchOutcome::spine_of(union, mine, disclosed))
    }
}

/// What party 0 learnt, in words.
fn counted(graph: &MatchGraph) -> impl Iterator<Item = MatchedCount> {
    let numbers = [graph.candidates, graph.conflicts].concat().into_iter().chain(graph.contaminated);
    COUNTED.into_iter().zip(numbers).map(|(what, count)| MatchedCount::new(what, count))
}

/// Whether options fit each other and the rows.
fn check_options(me: PartyId, rows: u64, options: &MatchOptions) -> Result<(), Error> {
    if options.contaminated != ContaminatedRule::Ignore && options.dummies.is_some() {
        // A row whose partner was dropped can change one pair more than the charge is for, and lists show
        // exact sizes.
        return Err(Error::input(
            "contaminated rows are counted or dropped without dummies only: choose one of both",
        ));
    }
    let wanted = options.contaminated != ContaminatedRule::Ignore && me == PartyId(0);
    match options.lists {
        None if wanted => {
            Err(Error::input("contaminated rows are those of two lists; say which rows are one"))
        }
        Some(_) if !wanted => Err(Error::misuse("lists are party 0's, where contaminated rows matter")),
        Some(first) if first > rows => Err(Error::misuse("the first list has more rows than there are")),
        _ => Ok(()),
    }
}

/// What both must have set alike.
fn settings(options: &MatchOptions) -> [u8; SETTINGS_BYTES as usize] {
    let text = format!("{:?} {:?}", options.weights, options.contaminated);
    let digest = blake3::derive_key("tacit multi-pid settings 1", text.as_bytes());
    *digest.first_chunk().expect("16 of 32 bytes")
}

/// Sizes that are known once both have told theirs.
#[derive(Clone, Copy)]
struct Known {
    rows: [u64; 2],
    keys: [u64; 2],
    /// Rows of C's first list.
    first: u64,
}

impl Known {
    fn cells(&self, party: PartyId) -> u64 {
        self.rows[party.index()] * self.keys[party.index()]
    }
}

/// Both tell rows, identifiers of a row, lists, settings and how they hide sizes.
fn count(
    session: &mut Session,
    own: &PaddedIdentifiers<'_>,
    first: u64,
    options: &MatchOptions,
) -> Result<Known, Error> {
    let (me, mine) = (session.me(), [own.rows(), own.keys() as u64, first]);
    let (settings, terms) =
        (settings(options), dummies::terms(options.dummies.as_ref(), ShownSizes::Intersection));
    let mut link = session.link(me.other());
    let numbers = mine.map(u64::to_le_bytes);
    link.send(&[numbers.as_flattened(), &settings, &terms].concat())?;
    let rows = link.recv_count("rows of the peer", peer_rows_max(options))?;
    let keys = link.recv_count("identifiers of a row of the peer", KEYS as u64)?;
    let lists = me == PartyId(1) && options.contaminated != ContaminatedRule::Ignore;
    let first = link.recv_count("rows of the peer's first list", if lists { rows } else { 0 })?;
    if keys == 0 {
        return Err(link.malformed("rows of no identifiers"));
    }
    if link.recv_array()? != settings {
        return Err(link.blame("it has the same weights and rule for contaminated rows as we do"));
    }
    dummies::check_terms(&mut link, &terms)?;
    if !options.weights.is_empty() && (options.weights.len() as u64) < mine[1].max(keys) {
        return Err(Error::input(
            "there are weights for fewer columns than rows have; give each one a weight",
        ));
    }
    // Positions and cells are 32-bit numbers, whatever the overlap turns out to be.
    for (name, value) in [
        ("limits::ROWS, rows of both sides", mine[0] + rows),
        ("limits::ROWS, identifiers of all rows of the peer", rows * keys),
    ] {
        within(session, Some(me.other()), name, [value, limits::ROWS])?;
    }
    let both = [mine, [rows, keys, first]];
    let of = |party: usize| both[usize::from(party != me.index())];
    Ok(Known { rows: [of(0)[0], of(1)[0]], keys: [of(0)[1], of(1)[1]], first: of(0)[2] })
}

/// What a party holds during a run. Keys are of this run only.
struct Party<'a> {
    peer: PartyId,
    options: &'a MatchOptions,
    sizes: Known,
    /// Own rows that are no dummies.
    real_rows: u64,
    room: &'a SpillRoom,
}

/// Positions of own rows, positions in all, and C's graph.
type Found = (OwnPlaces, u64, Option<MatchGraph>);

impl Party<'_> {
    /// Both columns, multiplied once, travel against each other. Own rows in their secret order leave as u;
    /// the peer's u is multiplied and handed to `keep`, each element with its cell.
    fn columns(
        &self,
        session: &mut Session,
        mut names: PlacedItems,
        key: &Exponent,
        mut keep: impl FnMut(&GroupElement, NameCell) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let [own, peer] = [self.peer.other(), self.peer].map(|party| self.sizes.cells(party));
        let mut buffers = [vec![[0; 32]; CHUNK as usize], vec![[0; 32]; CHUNK as usize]];
        session.step("u", |s| {
            for i in 0..own.max(peer).div_ceil(CHUNK) {
                let [mine, theirs] = [chunk(own, i), chunk(peer, i)];
                let [u, e] = &mut buffers;
                let (u, e) = (&mut u[..len(&mine)], &mut e[..len(&theirs)]);
                names.hash(&mine, (key, self.options.threads), u)?;
                let mut link = s.link(self.peer);
                link.exchange(u.as_flattened(), e.as_flattened_mut())?;
                link.flush()?;
                group::mul_batch(e, key, self.options.threads).map_err(|r| refused(&link, r))?;
                (theirs.start as u32..).zip(&*e).try_for_each(|(cell, e)| keep(e, cell))?;
                s.report(mine.end + theirs.end, own + peer);
            }
            Ok(())
        })
    }

    /// All of C's half.
    fn run_c(&self, session: &mut Session, own: ShuffledRows, rng: &mut Rng) -> Result<Found, Error> {
        let [cells_c, cells_p] = [0, 1].map(|party| self.sizes.cells(PartyId(party)));
        let key = Exponent::random(rng);
        let ShuffledRows { names, order: rows } = own;
        let mut e_p = SpillColumn::new(self.room, cells_p);
        self.columns(session, names, &key, |e, cell| e_p.push(&tagged(e, cell).to_be_bytes()))?;
        let [e_c, e_p] = session.step("e", |s| {
            let e_p = self.distinct_tags(s, e_p, UNIQUE)?;
            let e_c = self.take_e(s, cells_c)?;
            Ok([self.distinct_tags(s, e_c, UNIQUE)?, e_p])
        })?;
        let keys = self.sizes.keys.map(|k| k as usize);
        let order = graph::EdgeOrder::new(keys, &self.options.weights);
        let drop_them = self.options.contaminated == ContaminatedRule::Drop;
        let (pairs, graph) =
            graph::pick([e_c, e_p], self.sizes.rows, &order, self.options.lists, (drop_them, self.room))?;
        let union = self.sizes.rows[0] + self.sizes.rows[1] - graph.pairs;
        let back = self.label(session, rng, (pairs, rows), union)?;
        Ok((self.positions(session, back, union)?, union, Some(graph)))
    }

    /// Tags in their order, all of which were looked at: nothing that depends on them has left.
    fn distinct_tags(
        &self,
        session: &mut Session,
        tags: SpillColumn<PLACED_BYTES>,
        blamed: &'static str,
    ) -> Result<QueueRecords<PLACED_BYTES>, Error> {
        let tags = distinct(tags, (self.room, TAG_BYTES as usize, CHUNK))?;
        tags.map(QueueRecords::new).ok_or_else(|| session.link(self.peer).blame(blamed))
    }

    /// Receives e_c as tags of its cells. It must come in the order that says nothing of u_c's.
    fn take_e(&self, session: &mut Session, cells: u64) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let mut tags = SpillColumn::new(self.room, cells);
        let mut buffer = vec![[0; 32]; CHUNK as usize];
        let (keys, second_list) = (self.sizes.keys[0], self.sizes.first * self.sizes.keys[0]);
        let mut last = None;
        let mut link = session.link(self.peer);
        for cells in chunks(cells) {
            let piece = &mut buffer[..len(&cells)];
            link.recv(piece.as_flattened_mut())?;
            if !piece.iter().all(is_canonical) {
                return Err(refused(&link, ElementRefusal::NonCanonical));
            }
            for (cell, element) in cells.zip(&*piece) {
                let entry = tagged(element, cell as u32);
                tags.push(&entry.to_be_bytes())?;
                if !cell.is_multiple_of(keys) {
                    continue;
                }
                let head = Some(tag(entry));
                if cell != second_list && head <= last {
                    return Err(link.blame("its rows are sorted and without repeats"));
                }
                last = head;
            }
        }
        Ok(tags)
    }

    /// Sends blinded labels of own rows in the order of e_c; what comes back, in the order of u_c, becomes
    /// tags of the spine.
    fn label(
        &self,
        session: &mut Session,
        rng: &mut Rng,
        (mut pairs, mut order): (RowPairs, QueueRecords<4>),
        union: u64,
    ) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let [n_c, n_p] = self.sizes.rows;
        let (blind, strip) = invertible(rng);
        let labels = Labels { seed: rng.bytes() };
        let mut fresh = n_p..;
        let mut buffer = vec![[0; 32]; CHUNK as usize];
        session.step("labels", |s| {
            s.link(self.peer).send(&[&(union - n_p).to_le_bytes(), &labels.seed[..]].concat())?;
            for rows in chunks(n_c) {
                let v = &mut buffer[..len(&rows)];
                let mut label = |row: u64| match pairs.partner(row as u32)? {
                    Some(label) => Ok(label),
                    None => Ok(fresh.next().expect("endless") as u32),
                };
                let numbers: Vec<u32> = rows.clone().map(&mut label).collect::<Result<_, Error>>()?;
                labels.times(|at| numbers[at], &blind, v, self.options.threads)?;
                s.link(self.peer).send(v.as_flattened())?;
                s.report(rows.end, n_c);
            }
            s.link(self.peer).flush()
        })?;
        drop(pairs);
        let mut back = SpillColumn::new(self.room, n_c);
        session.step("uids", |s| {
            for (_, rows) in returned(n_c, union) {
                let mut link = s.link(self.peer);
                let v = &mut buffer[..len(&rows)];
                let mut at_work = [0];
                link.recv(if v.is_empty() { &mut at_work } else { v.as_flattened_mut() })?;
                group::mul_batch(v, &strip, self.options.threads).map_err(|r| refused(&link, r))?;
                v.iter().try_for_each(|v| back.push(&tagged(v, next(&mut order)?).to_be_bytes()))?;
                s.report(rows.end, n_c);
            }
            match back.is_spread() {
                true => Ok(()),
                false => Err(s.link(self.peer).blame(UNIQUE)),
            }
        })?;
        Ok(back)
    }

    /// Receives the spine and finds own rows in it.
    fn positions(
        &self,
        session: &mut Session,
        back: SpillColumn<PLACED_BYTES>,
        union: u64,
    ) -> Result<OwnPlaces, Error> {
        session.step("spine", |s| {
            let mut link = s.link(self.peer);
            let mut finder = PositionFinder::new(back, self.real_rows, self.room);
            let mut buffer = vec![[0; TAG_BYTES as usize]; CHUNK as usize];
            for positions in chunks(union) {
                let piece = &mut buffer[..len(&positions)];
                link.recv(piece.as_flattened_mut())?;
                finder.take(piece)?.map_err(|check| link.blame(check))?;
            }
            let (mine, digest) = finder.finish()?.map_err(|check| link.blame(check))?;
            link.send(&digest)?;
            link.flush()?;
            Ok(mine)
        })
    }

    /// All of P's half.
    fn run_p(&self, session: &mut Session, own: ShuffledRows, rng: &mut Rng) -> Result<Found, Error> {
        let cells_c = self.sizes.cells(PartyId(0));
        let (first, second) = (Exponent::random(rng), Exponent::random(rng));
        let ShuffledRows { names, order: rows } = own;
        let mut tags = SpillColumn::new(self.room, cells_c);
        let mut e_c = SpillQueue::new(self.room, CHUNK as usize * size_of::<GroupElement>());
        self.columns(session, names, &first, |e, cell| {
            tags.push(&tagged(e, cell).to_be_bytes())?;
            e_c.push(e)
        })?;
        let order = session.step("e", |s| {
            let tags = self.distinct_tags(s, tags, UNIQUE)?;
            self.send_e(s, tags, QueueRecords::new(e_c))
        })?;
        let (labels, union, back) = self.take_labels(session, order, &second)?;
        let uids = self.return_labels(session, (&labels, &second), union, (back, rows))?;
        Ok((self.send_spine(session, uids)?, union, None))
    }

    /// Sends e_c: rows sorted by their first element, the rows of each list on their own. The order is a
    /// function of sets, so nothing of u_c's survives. Returns, for each row of e_c, its row of u_c, list by
    /// list.
    ///
    /// A peer that repeats an element could tell it apart later: `tags` of all were looked at before.
    fn send_e(
        &self,
        session: &mut Session,
        mut tags: QueueRecords<PLACED_BYTES>,
        mut e_c: QueueRecords<32>,
    ) -> Result<[QueueRecords<4>; 2], Error> {
        let Known { rows: [rows, _], keys: [keys, _], first } = self.sizes;
        let (keys, by_row) = (keys as u32, RowPrefix::new(rows));
        let mut order = [(); 2].map(|()| SpillQueue::new(self.room, CHUNK as usize * size_of::<u32>()));
        let (mut places, mut next_place) = (SpillColumn::<8>::new(self.room, rows), [0, first as u32]);
        while let Some(entry) = tags.pop()? {
            let cell = place(u128::from_be_bytes(entry));
            if !cell.is_multiple_of(keys) {
                continue;
            }
            let row = cell / keys;
            let list = usize::from(u64::from(row) >= first);
            order[list].push(&row.to_be_bytes())?;
            places.push(&graph::pair(by_row.first_bytes(row), next_place[list]))?;
            next_place[list] += 1;
        }
        drop(tags);
        // Rows come in the order of u_c, and are dealt to their places.
        let (mut places, mut dealt) = (places.sorted(), PlacedItems::new(rows * u64::from(keys), self.room));
        while let Some(row) = places.pop()? {
            for key in 0..keys {
                let element = e_c.pop()?.expect("each row has its cells");
                dealt.put(graph::number(&row, 1) * keys + key, &element)?;
            }
        }
        drop((places, e_c));
        let (mut link, mut buffer) = (session.link(self.peer), Vec::new());
        for cells in chunks(rows * u64::from(keys)) {
            buffer.clear();
            dealt.append(&cells, &mut buffer)?;
            link.send(&buffer)?;
        }
        link.flush()?;
        Ok(order.map(QueueRecords::new))
    }

    /// Receives blinded labels in the order of e_c, multiplies them and puts them into the order of u_c.
    fn take_labels(
        &self,
        session: &mut Session,
        [mut first, mut second]: [QueueRecords<4>; 2],
        key: &Exponent,
    ) -> Result<(Labels, u64, SpillColumn<LABELLED_BYTES>), Error> {
        let [n_c, n_p] = self.sizes.rows;
        let by_row = RowPrefix::new(n_c);
        session.step("labels", |s| {
            let mut link = s.link(self.peer);
            let only_c = link.recv_count("rows that only the peer has", n_c)?;
            if n_c - only_c > n_p {
                return Err(link.blame("there are not more pairs than rows of ours"));
            }
            let labels = Labels { seed: link.recv_array()? };
            let mut back = SpillColumn::new(self.room, n_c);
            let mut buffer = vec![[0; 32]; CHUNK as usize];
            for rows in chunks(n_c) {
                let mut link = s.link(self.peer);
                let v = &mut buffer[..len(&rows)];
                link.recv(v.as_flattened_mut())?;
                group::mul_batch(v, key, self.options.threads).map_err(|r| refused(&link, r))?;
                for v in &*v {
                    let row = next(if first.len() > 0 { &mut first } else { &mut second })?;
                    let mut record = [0; LABELLED_BYTES];
                    record[..4].copy_from_slice(&by_row.first_bytes(row));
                    record[4..].copy_from_slice(v);
                    back.push(&record)?;
                }
                s.report(rows.end, n_c);
            }
            Ok((labels, n_p + only_c, back))
        })
    }

    /// Sends what C waits for, piece by piece, and computes the tags of the spine in between: label q belongs
    /// to row q of u_p.
    fn return_labels(
        &self,
        session: &mut Session,
        (labels, key): (&Labels, &Exponent),
        union: u64,
        (back, mut order): (SpillColumn<LABELLED_BYTES>, QueueRecords<4>),
    ) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let (mut uids, mut back) = (SpillColumn::new(self.room, union), back.sorted());
        let mut buffer = vec![[0; 32]; CHUNK as usize];
        session.step("uids", |s| {
            for (numbers, rows) in returned(self.sizes.rows[0], union) {
                let mut piece = Vec::with_capacity(len(&rows) * size_of::<GroupElement>());
                for _ in rows {
                    piece.extend_from_slice(&back.pop()?.expect("each row of the peer has a label")[4..]);
                }
                let mut link = s.link(self.peer);
                link.send(if piece.is_empty() { &[0] } else { &piece })?;
                link.flush()?;
                let piece = &mut buffer[..len(&numbers)];
                let number = |at: usize| numbers.start as u32 + at as u32;
                labels.times(number, key, piece, self.options.threads)?;
                for uid in &*piece {
                    let row = if order.len() > 0 { next(&mut order)? } else { NOBODYS };
                    uids.push(&tagged(uid, row).to_be_bytes())?;
                }
                s.report(numbers.end, union);
            }
            Ok(())
        })?;
        Ok(uids)
    }

    /// Sends the sorted spine and reads off own positions.
    fn send_spine(&self, session: &mut Session, uids: SpillColumn<PLACED_BYTES>) -> Result<OwnPlaces, Error> {
        session.step("spine", |s| {
            let mut uids = self.distinct_tags(s, uids, "its seed gives distinct labels")?;
            let mut link = s.link(self.peer);
            let mut mine = OwnPlaces::queued(self.room);
            let mut digest = blake3::Hasher::new();
            let mut buffer = Vec::with_capacity((CHUNK * TAG_BYTES) as usize);
            for positions in chunks(uids.len()) {
                buffer.clear();
                for position in positions {
                    let uid = uids.pop()?.map(u128::from_be_bytes).expect("they are as many");
                    buffer.extend_from_slice(&to_wire(uid));
                    if u64::from(place(uid)) < self.real_rows {
                        mine.push(place(uid), position as u32)?;
                    }
                }
                digest.update(&buffer);
                link.send(&buffer)?;
            }
            if link.recv_array()? != *digest.finalize().as_bytes() {
                return Err(link.blame("both spines are the same"));
            }
            Ok(mine)
        })
    }
}

/// Bytes of a row of C and what its label has become.
const LABELLED_BYTES: usize = size_of::<u32>() + size_of::<GroupElement>();

/// No row of P has this label.
const NOBODYS: u32 = u32::MAX;

/// The next row of an order.
fn next(order: &mut QueueRecords<4>) -> Result<u32, Error> {
    Ok(u32::from_be_bytes(order.pop()?.expect("an order has all rows")))
}

/// The labels of the spine: random points that both parties can name by number.
struct Labels {
    seed: [u8; 32],
}

impl Labels {
    /// `out[i] = H(label number(i))^key`.
    fn times(
        &self,
        number: impl Fn(usize) -> u32 + Sync,
        key: &Exponent,
        out: &mut [GroupElement],
        threads: usize,
    ) -> Result<(), Error> {
        let names = |at: usize, name: &mut Vec<u8>| {
            name.clear();
            name.extend_from_slice(&self.seed);
            name.extend_from_slice(&number(at).to_le_bytes());
            NameDomain::Label.mark(name);
            Ok(())
        };
        group::hash_mul_batch(&names, key, out, threads)
    }
}

/// A key and its inverse.
fn invertible(rng: &mut Rng) -> (Exponent, Exponent) {
    loop {
        let key = Exponent::random(rng);
        if let Some(inverse) = key.inverse() {
            return (key, inverse);
        }
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;

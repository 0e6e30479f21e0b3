//! Private-ID (PID) for one unique identifier per row.
//!
//! * **Functionality.** Party 0 (`C`) holds identifiers `X`, party 1 (`P`) identifiers `Y`, each without
//!   repeats. Both get the spine: the sorted list of pseudorandom universal identifiers of the union, and
//!   each the positions of its own rows in it. Equal identifiers share a position.
//! * **Security.** Semi-honest, one party corrupted: DDH on Curve25519 (about 126 bits), `H` a random oracle.
//!   Peers that send malformed or repeated elements are caught by name; other deviations are not: with
//!   modified software either party reads which of its own identifiers the other one has
//!   (`docs/protocols/pid.md`).
//! * **Who learns what.** Each: both sizes and the size of the union, hence of the intersection, with the
//!   rows of [`crate::dummies`] in them. Which rows are shared stays hidden. Without dummies the sizes are
//!   exact, and a party that fills its list with fabricated identifiers and one target reads the target's
//!   membership off them.
//! * **Paper.** Section 2.3 of the private randomised trials paper, protocol of its reference 8. Letters are
//!   theirs. Deviations: x-only group elements; `u_c`, `u_p` and `e_c` are sorted as a whole instead of
//!   shuffled as a whole (a sorted column is a function of its set, and a repeat shows); u and v stream in
//!   both directions at once; `e_c` and `s_p` are exchanged in slices of the sorted order; a digest of the
//!   spine is compared at the end; a byte now and then says that a party is at work.
//! * **Units.** Every stage is dealt into partitions by leading bits of its blinded elements, and a stage of
//!   one partition is a unit: `hash`, `v`, `e`, `d1`, `d2`, `d3`, `spine`. One code path serves one partition
//!   and many; both compute their number from their sizes. Two barriers are security and no order, and types
//!   that only they make: `e` needs all of u and v of both sides, pinned and found equal, and `d3` needs all
//!   of `d1`. A slice that left earlier would tell which part of the input its members come from.
//! * **Cost.** Per party `2 (|X| + |Y|) + |X \ Y| + |Y \ X|` multiplications, besides hashing its own rows;
//!   208 bytes per row in total at equal sizes and half overlap. [`price`] is exact and a test holds it to
//!   the ledger. Memory: what [`MatchOptions::memory`] says; columns beyond it lie on disk.
//!
//! ```text
//!    C: c1, c2                                                  P: p1, p2
//! u      u_c = sort{H(x)^c1}                  ->                u_c
//!        u_p                                  <-                u_p = sort{H(y)^p1}
//! v      v_c                                  <-                t = u_c^p1, v_c = t^p2
//!        e_p = u_p^c1, v_p = e_p^c2           ->                v_p
//! e      e_c                                  <-                e_c = sort(t)
//!        s_p = e_p \ e_c                      ->                s_p
//! diff.  s'_p                                 <-                s'_p = s_p^p2
//!        s'_c = sort((e_c \ e_p)^c2)          ->                s'_c
//!        own: v_c^c2, others: s'_p^c2                           own: v_p^p2, others: s'_c^p2
//! ```

mod barriers;
mod difference;
mod journal;
mod lanes;
mod partitions;
mod pins;
mod price;
mod steps;
mod stream;
#[cfg(test)]
mod units_tests;

pub use crate::chunks::CHUNK;
pub use lanes::{LaneBegun, LaneDone, LaneNotes, LaneStage, LaneStore, LaneTask, LaneWork, UnitCrew};
pub use price::{multiplications, price, price_over_lanes};

use crate::begin::{begin, by_party, peer_rows_max, within};
use crate::dummies::{self, DummyPlan, PaddedIdentifiers, ShownSizes, TERMS_BYTES};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::{self, ColumnFingerprint, IdentifierSource};
use crate::matcher::{
    MatchDisclosure, MatchDisk, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome,
    MatchSizes, Matcher, PairSizes, PlannedRows, RestartPermit, pair_of,
};
use crate::places::OwnPlaces;
use crate::spill::{SortedRecords, SpillColumn, SpillRoom};
use barriers::SealedStreams;
use base::{Cost, Error, Fault, PartyId, Rng, Secret, limits};
use journal::{JournalRun, MatchJournal};
use lanes::LaneKeys;
use net::{Session, StepLink};
use partitions::Partitioning;
use pins::MessagePins;
use price::{HELLO_BYTES, PulseBeat};
use steps::StepFault;
use stream::{StreamColumns, StreamUnit};

/// Whether a folder ([`MatchOptions::resume`]) holds this party's half of a match that was cut.
#[must_use]
pub fn is_cut(folder: &std::path::Path) -> bool {
    journal::holds_a_run(folder)
}

/// Wipes the keys of a match in such a folder, and empties it.
///
/// # Errors
/// When it is open to others, in use, or a file cannot be written or removed.
pub fn forget(folder: &std::path::Path) -> Result<(), Error> {
    MatchJournal::forget(folder)
}

/// A universal identifier and the own row it belongs to.
const ROW_BYTES: usize = size_of::<GroupElement>() + size_of::<u32>();

/// Private-ID of two parties by one identifier.
pub struct PrivateId;

impl Matcher for PrivateId {
    fn name(&self) -> &'static str {
        "pid"
    }

    fn features(&self) -> MatchFeatures {
        let own = MatchFeatures { resumes: true, streams: true, lanes: true, ..MatchFeatures::SPINE };
        MatchFeatures { bytes_per_row: 12, ..own }
    }

    fn tells(&self, sizes: &str, _first: &str, _options: &MatchOptions) -> String {
        format!("all learn the sizes of all sets and of the match, {sizes}")
    }

    fn price(&self, sizes: &MatchSizes, options: &MatchOptions) -> Cost {
        price(sizes.pair(), options.partitions)
    }

    fn estimate(&self, planned: &PlannedRows<'_>, _options: &MatchOptions) -> MatchEstimate {
        let multiplications = multiplications(planned.sizes().pair());
        MatchEstimate { multiplications, waits: 6.0, ..MatchEstimate::of(planned) }
    }

    fn disk(&self, rows: &[u64], me: PartyId, _options: &MatchOptions) -> Option<MatchDisk> {
        Some(price::disk(pair_of(rows), me))
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let (me, peer) = (session.me(), session.me().other());
        if (session.link(peer).window() as u64) < price::WINDOW_BYTES {
            return Err(Error::misuse("Private-ID needs a channel with a window of a megabyte"));
        }
        let names = [session.roster().name(me), session.roster().name(peer)];
        let (mut journal, before) = match &input.options.resume {
            None => (None, None),
            Some(dir) => {
                let (journal, before) = MatchJournal::open(dir, [&names[0], &names[1]])?;
                (Some(journal), before)
            }
        };
        let done = with_journal(session, input, journal.as_mut(), before, in_order);
        // The keys of a run serve on after a cut alone. A peer that deviated would try again under them.
        match (journal, &done) {
            (Some(journal), Ok(_)) if !input.options.stays => journal.finish()?,
            // That it deviated matters more than a file that could not be removed.
            (Some(journal), Err(error)) if is_deviation(error) => drop(journal.finish()),
            _ => {}
        }
        done
    }
}

/// Whether an error is one that only a peer's message can cause, or that of [`MatchOptions::afresh`]: it ends
/// the use of a match's keys. A bound that this party meets by itself, as of its store or log, names no peer.
#[must_use]
pub fn is_deviation(error: &Error) -> bool {
    match error.kind() {
        Fault::Malformed(_) | Fault::Deviated(_) | Fault::Refused(_) => true,
        Fault::Limit { .. } => error.at().peer.is_some(),
        _ => false,
    }
}

/// The run itself; `journal` holds the run `before`, if there was one that was cut.
fn with_journal(
    session: &mut Session,
    input: &MatchInput<'_>,
    mut journal: Option<&mut MatchJournal>,
    before: Option<JournalRun>,
    order: UnitOrder,
) -> Result<MatchOutcome, Error> {
    let MatchInput { rows: own, room, .. } = input;
    let mut rng = session.fork_seed("keys").into_rng();
    let salt = before.as_ref().map_or_else(|| rng.bytes(), |run| run.salt);
    let fingerprint = identifiers::fingerprint(own, salt, room)?;
    if let Some(run) = &before {
        check_same(run, own, fingerprint.whole())?;
        if let Some(journal) = &mut journal {
            journal.go_on(run)?;
        }
    }
    let fresh = fresh_run(&mut rng, (salt, fingerprint.whole()), own);
    let mut party = session.step("count", |s| Party::meet(s, input, (journal, before), fresh, None))?;
    party.shared_least = own.plan().map_or(0, DummyPlan::own_listed);
    party.order = order;
    party.units(session, own, &fingerprint)
}

/// A run that begins, of a peer whose rows are not known.
fn fresh_run(
    rng: &mut Rng,
    (salt, fingerprint): ([u8; 32], [u8; 32]),
    own: &PaddedIdentifiers<'_>,
) -> JournalRun {
    JournalRun {
        keys: [Secret::new(rng.bytes()), Secret::new(rng.bytes())],
        salt,
        fingerprint,
        name: rng.bytes(),
        rows: [own.rows(), 0],
        parts: Some(Partitioning::WHOLE),
    }
}

impl PrivateId {
    /// The same as [`Matcher::run`], with units between both parties over lanes. After a cut of the session a
    /// crew that has written down what it was told goes on with the match in another one: what nobody has
    /// done yet is done, under the same keys, and the coordinators say what they said before once more.
    ///
    /// # Errors
    /// As [`Matcher::run`], and those of the crew.
    pub fn run_over_lanes(
        &self,
        session: &mut Session,
        own: &dyn IdentifierSource,
        options: &MatchOptions,
        crew: &mut dyn UnitCrew,
    ) -> Result<MatchOutcome, Error> {
        session.step(self.name(), |session| {
            let plan = begin((self.name(), self.features()), session, own, None, options)?;
            let rows = PaddedIdentifiers::new(own, plan.as_ref());
            let room = SpillRoom::new(options.memory, options.scratch.as_deref());
            let input = MatchInput { rows, payload: None, options, room };
            let (before, name) = (crew.begun()?, crew.name());
            let mut rng = session.fork_seed("keys").into_rng();
            let salt = before.as_ref().map_or_else(|| rng.bytes(), LaneBegun::salt);
            // Whose rows are hashed does not read them again.
            let fingerprint = match before.is_some() && crew.notes().is_hashed() {
                true => None,
                false => Some(identifiers::fingerprint(&input.rows, salt, &input.room)?),
            };
            let whole = fingerprint.as_ref().map(ColumnFingerprint::whole);
            let before = before.map(|begun| begun.run(name));
            if let Some(run) = &before {
                check_same(run, &input.rows, whole.unwrap_or(run.fingerprint))?;
            }
            let goes_on = before.is_some();
            let fresh = fresh_run(&mut rng, (salt, whole.unwrap_or_default()), &input.rows);
            let (keys, lanes) = (LaneKeys::of(&before.as_ref().unwrap_or(&fresh).keys), Some(crew.lanes()));
            let mut party =
                session.step("count", |s| Party::meet(s, &input, (None, before), fresh, lanes))?;
            if goes_on != party.goes_on {
                return Err(session.link(party.peer).blame("it goes on with the match that it has named"));
            }
            if !goes_on {
                crew.begins(&LaneBegun::new(&keys, (salt, whole.unwrap_or_default()), &party))?;
            }
            party.shared_least = input.rows.plan().map_or(0, DummyPlan::own_listed);
            party.over_lanes(session, (&input.rows, fingerprint.as_ref()), (&keys, crew))
        })
    }
}

/// In which order the partitions of a stage are taken; both sides take the same one.
type UnitOrder = fn(Partitioning) -> Vec<u32>;

/// As they follow each other. The pins of a journal rest on it.
fn in_order(parts: Partitioning) -> Vec<u32> {
    (0..parts.count()).collect()
}

/// Refuses to use the keys of a run for other rows than it began with.
fn check_same(run: &JournalRun, own: &PaddedIdentifiers<'_>, fingerprint: [u8; 32]) -> Result<(), Error> {
    if (run.rows[0], run.fingerprint) == (own.rows(), fingerprint) {
        return Ok(());
    }
    Err(other_rows())
}

/// A match that was cut cannot go on with the rows at hand.
#[must_use]
pub fn other_rows() -> Error {
    Error::input(
        "the match that was cut was of other rows: this party's data or the peer's have changed since, or \
         are read in another order because `memory` or `state` has. Bring them back, or both delete the \
         folder of the match under `work` and begin afresh",
    )
}

/// The paper's letters for party 0 and party 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    C,
    P,
}

impl Role {
    fn other(self) -> Self {
        match self {
            Self::C => Self::P,
            Self::P => Self::C,
        }
    }
}

/// What a party says of its spine.
fn told_by(role: Role, digest: [u8; 32]) -> [u8; 32] {
    match role {
        Role::C => blake3::derive_key("tacit pid spine as told by C 1", &digest),
        Role::P => blake3::derive_key("tacit pid spine as told by P 1", &digest),
    }
}

/// What a party holds during a run. The keys are of this run only.
struct Party<'r> {
    role: Role,
    peer: PartyId,
    threads: usize,
    /// `c1, c2` or `p1, p2`.
    keys: [Exponent; 2],
    /// Own rows, the peer's rows.
    rows: [u64; 2],
    parts: Partitioning,
    order: UnitOrder,
    room: &'r SpillRoom,
    journal: Option<&'r mut MatchJournal>,
    /// What the peer said after the streams.
    pins: MessagePins,
    /// The least overlap that an honest peer leaves: own dummies of the list that the peer has all of.
    shared_least: u64,
    /// Whether an earlier session, which was cut, began this run.
    goes_on: bool,
    /// Chunks of own rows that this party has hashed in it, and of the peer's by the peer.
    hashed: [u64; 2],
    progress: UnitProgress,
    /// Rows that came from the journal.
    replayed: u64,
}

/// How many rows of a stage are done, over its units.
#[derive(Clone, Copy, Default)]
struct UnitProgress {
    done: u64,
    total: u64,
}

/// What both tell each other first.
struct Hello {
    rows: u64,
    terms: [u8; TERMS_BYTES as usize],
    /// A half of the name of the run that begins if none goes on.
    nonce: [u8; 16],
    /// The name of the run that this party could go on with; zero for none.
    before: [u8; 16],
    /// Chunks of own rows that it has hashed in that run.
    hashed: u64,
    /// The least number of partitions.
    partitions: u64,
}

impl Hello {
    /// Tells the peer and hears from it; refuses too many rows and other terms.
    fn exchange(&self, session: &mut Session, options: &MatchOptions) -> Result<Self, Error> {
        let peer = session.me().other();
        within(session, Some(peer), "limits::ROWS, own rows and dummies", [self.rows, limits::ROWS - 1])?;
        let mut link = session.link(peer);
        link.send(&self.encode())?;
        let theirs = Self::decode(&link.recv_array()?);
        // A match that goes on has its rows already: what this party has room for now does not end its keys.
        if self.before == [0; 16] || theirs.before != self.before {
            within(session, Some(peer), "rows of the peer", [theirs.rows, peer_rows_max(options)])?;
        }
        // Positions in the spine are 32-bit numbers, whatever the overlap turns out to be.
        let both = self.rows + theirs.rows;
        within(session, Some(peer), "limits::ROWS, rows of both sides", [both, limits::ROWS])?;
        if self.terms != theirs.terms {
            return Err(session.link(peer).blame(dummies::SAME_TERMS));
        }
        if self.partitions != theirs.partitions {
            return Err(session.link(peer).blame("it deals elements into as many partitions as we do"));
        }
        Ok(theirs)
    }

    fn encode(&self) -> [u8; HELLO_BYTES as usize] {
        let mut bytes = Vec::with_capacity(HELLO_BYTES as usize);
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        [&self.terms, &self.nonce, &self.before].into_iter().for_each(|word| bytes.extend_from_slice(word));
        [self.hashed, self.partitions].iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        bytes.try_into().expect("these are its parts")
    }

    fn decode(bytes: &[u8; HELLO_BYTES as usize]) -> Self {
        let words: &[[u8; 8]] = bytes.as_chunks().0;
        let name = |at: usize| *bytes[at..].first_chunk().expect("it lies within");
        Self {
            rows: u64::from_le_bytes(words[0]),
            terms: name(8),
            nonce: name(24),
            before: name(40),
            hashed: u64::from_le_bytes(words[7]),
            partitions: u64::from_le_bytes(words[8]),
        }
    }
}

impl<'r> Party<'r> {
    /// Refuses rows for which the disk has no room. What a match keeps to go on is elements of own rows, and
    /// of all rows raised; they are there already where it goes on.
    fn expect_disk(
        me: PartyId,
        input: &MatchInput<'_>,
        rows: [u64; 2],
        (goes_on, lanes): (bool, bool),
    ) -> Result<(), Error> {
        if goes_on && lanes {
            // Columns lie in the state already.
            return Ok(());
        }
        let all = by_party(me, rows[0], rows[1]);
        let keeps = input.options.resume.is_some() && !goes_on;
        let kept = match (keeps, lanes) {
            (true, _) => group::ELEMENT_BYTES * (2 * rows[0] + rows[1]),
            // Nothing of a column stays in memory.
            (false, true) => input.room.held(),
            (false, false) => 0,
        };
        input.expect_disk(&all, price::disk(all, me), kept)
    }

    /// Both tell their sizes, and whether they can go on with a match that was cut.
    fn meet(
        session: &mut Session,
        input: &'r MatchInput<'_>,
        (mut journal, before): (Option<&'r mut MatchJournal>, Option<JournalRun>),
        mut fresh: JournalRun,
        lanes: Option<u64>,
    ) -> Result<Self, Error> {
        let MatchInput { options, room, .. } = input;
        let (role, peer) = (if session.me() == PartyId(0) { Role::C } else { Role::P }, session.me().other());
        let mine = Hello {
            rows: fresh.rows[0],
            terms: dummies::terms(options.dummies.as_ref(), ShownSizes::Intersection),
            nonce: fresh.name,
            before: before.as_ref().map_or([0; 16], |run| run.name),
            hashed: journal.as_deref().filter(|_| before.is_some()).map_or(0, MatchJournal::hashed),
            partitions: u64::from(options.partitions),
        };
        let theirs = mine.exchange(session, options)?;
        let rows = [mine.rows, theirs.rows];
        Self::expect_disk(session.me(), input, rows, (before.is_some(), lanes.is_some()))?;
        let had_one = before.is_some();
        let goes_on = before.as_ref().is_some_and(|run| run.name == theirs.before);
        let (run, hashed) = match before.filter(|run| run.name == theirs.before) {
            Some(run) if run.rows != rows => {
                return Err(session.link(peer).blame("it goes on with as many rows as before"));
            }
            Some(run) => (run, [mine.hashed, theirs.hashed.min(rows[1].div_ceil(CHUNK))]),
            None => {
                if let (true, Some(RestartPermit(may))) = (had_one, &options.afresh) {
                    may()?;
                }
                if !had_one && theirs.before != [0; 16] {
                    // The other party may forget its half now. Were this one kept, the two would never agree.
                    journal = None;
                }
                fresh.name = name_of_run(role, mine.nonce, theirs.nonce);
                fresh.rows = rows;
                fresh.parts = Some(Partitioning::over_lanes(rows, options.partitions, lanes.unwrap_or(0)));
                journal.as_deref_mut().map_or(Ok(()), |journal| journal.begin(&fresh))?;
                if had_one {
                    // The peer does not have its half of the match that was cut.
                    session.step("begins afresh", |s| {
                        s.report(0, mine.rows);
                        Ok(())
                    })?;
                }
                (fresh, [0; 2])
            }
        };
        let pins = journal.as_deref().map_or(Ok(MessagePins::none()), |journal| journal.pins(&run))?;
        Ok(Self {
            role,
            peer,
            threads: options.threads,
            keys: exponents(&run.keys)?,
            rows,
            parts: run.partitioning(),
            order: in_order,
            room,
            journal,
            pins,
            shared_least: 0,
            goes_on,
            hashed,
            progress: UnitProgress::default(),
            replayed: 0,
        })
    }

    /// The partitions of a stage, in the order in which they are taken.
    fn order(&self) -> Vec<u32> {
        (self.order)(self.parts)
    }

    /// All units, one after the other over one session.
    fn units(
        mut self,
        session: &mut Session,
        own: &PaddedIdentifiers<'_>,
        fingerprint: &ColumnFingerprint,
    ) -> Result<MatchOutcome, Error> {
        let mut u = SpillColumn::dealt(self.room, self.rows[0], self.parts.bits());
        session.step("u", |s| self.hash_own(s, own, fingerprint, &mut |record| u.push(record)))?;
        let units = session.step("count", |s| self.deal(s, u.part_lens(self.parts.bits())))?;
        let todo = |units: &[StreamUnit]| units.iter().flat_map(StreamUnit::todo).sum::<u64>();
        self.progress = UnitProgress { done: 0, total: 2 * todo(&units) };
        let bits = self.parts.bits();
        let mut columns = StreamColumns {
            u: u.sorted(),
            uids: SpillColumn::dealt(self.room, self.rows[0], bits),
            e: SpillColumn::dealt(self.room, self.rows[1], bits),
        };
        let mut done = Vec::with_capacity(units.len());
        for part in self.order() {
            done.push(self.stream(session, units[part as usize], &mut columns)?);
        }
        let StreamColumns { u, uids, e } = columns;
        drop(u);
        let sealed = session.step("seal", |s| self.seal_streams(s, done))?;
        let others = self.others(session, &sealed, e)?;
        let columns = (uids.sorted(), others.sorted());
        session.step("spine", |s| self.spine(s, &sealed, columns, own.real_rows()))
    }

    /// Both tell how many elements of `u` begin with the bits of each partition; in a run that goes on, also
    /// how many chunks of the logs `e` and `v` of it are whole: a chunk is done when its owner has taken the
    /// answer to it.
    fn deal(&mut self, session: &mut Session, own: Vec<u64>) -> Result<Vec<StreamUnit>, Error> {
        let mut link = session.link(self.peer);
        self.parts.tell_sizes(&mut link, &own)?;
        let peer = self.parts.hear_sizes(&mut link, self.rows[1])?;
        let mut through = vec![[0; 2]; own.len()];
        if let Some(journal) = &mut self.journal {
            let mine = journal.deal([&own, &peer])?;
            if self.goes_on {
                let told: Vec<[u8; 8]> = mine.iter().flatten().map(|chunks| chunks.to_le_bytes()).collect();
                link.send(told.as_flattened())?;
                let mut theirs = vec![[[0; 8]; 2]; own.len()];
                link.recv(theirs.as_flattened_mut().as_flattened_mut())?;
                for ((through, mine), theirs) in through.iter_mut().zip(mine).zip(theirs) {
                    let ([my_e, my_v], [their_e, their_v]) = (mine, theirs.map(u64::from_le_bytes));
                    *through = [my_v.min(their_e), my_e.min(their_v)];
                }
            }
        }
        let unit = |(part, (own, peer)): (u32, (u64, u64))| StreamUnit {
            part,
            rows: [own, peer],
            through: through[part as usize],
        };
        Ok((0..).zip(own.into_iter().zip(peer)).map(unit).collect())
    }

    /// All units `spine`: sorts both columns into the spine and compares its digest with the peer's.
    fn spine(
        &self,
        session: &mut Session,
        sealed: &SealedStreams,
        (mut own, mut others): (SortedRecords<ROW_BYTES>, SortedRecords<32>),
        real_rows: u64,
    ) -> Result<MatchOutcome, Error> {
        let (mut link, bits) = (session.link(self.peer), self.parts.bits());
        let mut mine = OwnPlaces::queued(self.room);
        let mut sizes = Vec::new();
        for (own, others) in own.part_lens(bits).into_iter().zip(others.part_lens(bits)) {
            self.parts.check_size(&link, own, self.rows[0])?;
            self.parts.check_size(&link, others, self.rows[1])?;
            sizes.push(own + others);
        }
        let union = sizes.iter().sum();
        let mut digests = vec![[0; 32]; sizes.len()];
        for part in self.order() {
            own.enter(part, bits);
            others.enter(part, bits);
            let first = sizes[..part as usize].iter().sum();
            let place = |row, at| if u64::from(row) < real_rows { mine.push(row, at) } else { Ok(()) };
            let digest = steps::spine(&mut own, &mut others, first, place)?;
            digests[part as usize] = digest.map_err(|f| fault(&link, f))?;
        }
        let mut all = blake3::Hasher::new_derive_key("tacit pid spine 1");
        all.update(sealed.root());
        for (size, digest) in sizes.iter().zip(&digests) {
            all.update(&size.to_le_bytes()).update(digest);
        }
        let digest = *all.finalize().as_bytes();
        // Who tells is in what it tells: a party that does not know the spine cannot answer with what it
        // heard.
        link.send(&told_by(self.role, digest))?;
        if link.recv_array()? != told_by(self.role.other(), digest) {
            return Err(link.blame("both spines are the same"));
        }
        let rows = by_party(self.peer.other(), self.rows[0], self.rows[1]);
        Ok(MatchOutcome::spine_of(union, mine, MatchDisclosure::of(PairSizes::new(rows, union))))
    }

    /// Refuses an overlap of `shared` rows that is smaller than what a peer with all of our list must have in
    /// common with us.
    fn check_shared(&self, link: &StepLink<'_>, shared: u64) -> Result<(), Error> {
        match shared >= self.shared_least {
            true => Ok(()),
            false => Err(link.blame("the intersection holds the dummies that both have")),
        }
    }

    /// A multiplication by the second key.
    fn mul(&self, link: &StepLink<'_>, column: &mut [GroupElement]) -> Result<(), Error> {
        group::mul_batch(column, &self.keys[1], self.threads).map_err(|refusal| fault(link, refusal.into()))
    }

    /// Pulses after `rows` more: a party with less to do must not take work for silence, whoever of the two
    /// it is.
    fn pulse(&self, session: &mut Session, beat: &mut PulseBeat, rows: u64) -> Result<(), Error> {
        let mut link = session.link(self.peer);
        let [send, take] = beat.after(rows);
        for _ in 0..send {
            link.send(&[0])?;
            link.flush()?;
        }
        (0..take).try_for_each(|_| link.recv(&mut [0]))
    }

    /// The pulses that are still to come.
    fn last_pulses(&self, session: &mut Session, beat: &PulseBeat) -> Result<(), Error> {
        (0..beat.left).try_for_each(|_| session.link(self.peer).recv(&mut [0]))
    }
}

/// The keys of a run.
fn exponents(keys: &[Secret<[u8; 32]>; 2]) -> Result<[Exponent; 2], Error> {
    let key = |secret: &Secret<[u8; 32]>| Exponent::from_bytes(*secret.expose());
    let [Some(first), Some(second)] = keys.each_ref().map(key) else {
        return Err(Error::misuse("a key came out as zero, which has a chance of one in 2^252; start again"));
    };
    Ok([first, second])
}

/// What both call a run: a function of both nonces.
fn name_of_run(role: Role, mine: [u8; 16], theirs: [u8; 16]) -> [u8; 16] {
    let (c, p) = if role == Role::C { (mine, theirs) } else { (theirs, mine) };
    let digest = blake3::derive_key("tacit pid name of a run 1", &[c, p].concat());
    *digest.first_chunk().expect("a digest is longer")
}

fn fault(link: &StepLink<'_>, fault: StepFault) -> Error {
    match fault {
        StepFault::Malformed(what) => link.malformed(what),
        StepFault::Deviated(check) => link.blame(check),
    }
}

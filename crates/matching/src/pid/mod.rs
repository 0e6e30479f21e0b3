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
//! * **Cost.** Per party `2 (|X| + |Y|) + |X \ Y| + |Y \ X|` multiplications, besides hashing its own rows;
//!   208 bytes per row in total at equal sizes and half overlap. [`price`] is exact and a test holds it to
//!   the ledger. Memory: what [`Options::memory`] says and 4 bytes per own row; columns beyond it lie on
//!   disk.
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

mod difference;
mod journal;
mod pins;
mod price;
mod steps;
mod stream;

pub use price::{CHUNK, multiplications, price};

use crate::dummies::{self, Dummies, DummyPlan, PaddedIdentifiers, ShownSizes, TERMS_BYTES};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::{self, IdentifierSource};
use crate::spill::{SpillColumn, SpillRoom};
use base::{Error, Fault, PartyId, Secret, limits};
use journal::{JournalRun, MatchJournal};
use net::{Session, StepLink};
use pins::MessagePins;
use price::{HELLO_BYTES, PulseBeat};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use steps::StepFault;

/// How this party runs the protocol. All but `dummies` is its own affair and changes no byte on the wire.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cores to multiply on; at least 1.
    pub threads: usize,
    /// The most rows accepted from the peer.
    pub peer_rows_max: u64,
    /// Bytes that columns may take in memory, at least [`crate::spill::MEMORY_MIN`]; none: no bound. 64 MiB
    /// serve 119 million rows. Besides this: the identifiers, as their owner holds them, and 4 bytes per own
    /// row.
    pub memory: Option<u64>,
    /// Where columns go beyond `memory`, in files without a name; none: the system's folder for temporary
    /// files.
    pub scratch: Option<PathBuf>,
    /// A folder, private to this party, from which a match that was cut goes on; it is made, and emptied at
    /// success and when the peer deviates. Both parties must have kept theirs, else both begin afresh. It
    /// holds the keys of the run, and 96 bytes per row.
    pub resume: Option<PathBuf>,
    /// Rows that hide sizes; the other party must say the same. None: exact sizes are disclosed.
    pub dummies: Option<Dummies>,
    /// Asked where this party has its half of a match that was cut and the other party says that it has not:
    /// a match begins afresh then, with the same dummies.
    pub afresh: Option<RestartPermit>,
}

/// Whether a match may begin afresh: a refusal ([`Fault::Refused`]) ends the run and forgets this party's
/// half.
#[derive(Clone)]
pub struct RestartPermit(pub Arc<dyn Fn() -> Result<(), Error> + Send + Sync>);

impl fmt::Debug for RestartPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Afresh")
    }
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (peer_rows_max, memory) = (limits::ROWS, None);
        Self { threads, peer_rows_max, memory, scratch: None, resume: None, dummies: None, afresh: None }
    }
}

/// Whether a folder ([`Options::resume`]) holds this party's half of a match that was cut.
#[must_use]
pub fn is_cut(folder: &std::path::Path) -> bool {
    journal::holds_a_run(folder)
}

/// The public sizes of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of party 0 and of party 1.
    pub rows: [u64; 2],
    /// Rows of the union: at least the larger of `rows`, at most their sum.
    pub union: u64,
}

impl Sizes {
    /// Rows of the intersection.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.rows[0] + self.rows[1] - self.union
    }

    /// Rows that only party 0 and only party 1 has.
    fn only(&self) -> [u64; 2] {
        self.rows.map(|rows| rows - self.shared())
    }
}

/// What a party learnt about the other beyond the spine: sizes, with the dummy rows of both in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disclosed {
    /// Rows of this party with its dummies, which the peer learnt.
    pub own: u64,
    /// Rows of the peer.
    pub peer: u64,
    /// Rows of the union, hence of the intersection; both learnt it.
    pub union: u64,
}

/// Where this party's rows lie in the spine of both. Its dummy rows have positions too, which nobody needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Spine {
    /// Rows of the spine: the size of the union.
    pub rows: u64,
    /// The position of each own row in the spine, in the order of the input.
    pub mine: Vec<u32>,
    /// What was disclosed.
    pub disclosed: Disclosed,
}

/// Positions are the data of this party: only sizes print.
impl fmt::Debug for Spine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spine").field("disclosed", &self.disclosed).finish_non_exhaustive()
    }
}

/// A universal identifier and the own row it belongs to.
const ROW_BYTES: usize = size_of::<GroupElement>() + size_of::<u32>();

/// One party's half of Private-ID with the other party of a two-party session.
///
/// # Errors
/// `Input` when an own identifier repeats, is empty or too long, when identifiers change while they are read,
/// or when [`Options::resume`] holds a match of other ones; `Limit` when a size is over a bound; `Malformed`
/// or `Deviated` when the peer sends what the protocol does not; `Channel` when it is gone; `Io` when the
/// disk is full. All name party, peer and step.
pub fn run(session: &mut Session, own: &dyn IdentifierSource, options: &Options) -> Result<Spine, Error> {
    if session.roster().len() != 2 {
        return Err(Error::misuse("Private-ID is a protocol of two parties"));
    }
    let (me, peer) = (session.me(), session.me().other());
    if (session.link(peer).window() as u64) < price::WINDOW_BYTES {
        return Err(Error::misuse("Private-ID needs a channel with a window of a megabyte"));
    }
    session.step("pid", |session| {
        let plan = dummies::plan(session, options.dummies.as_ref(), ShownSizes::Intersection)?;
        let names = [session.roster().name(me), session.roster().name(peer)];
        let (mut journal, before) = match &options.resume {
            None => (None, None),
            Some(dir) => {
                let (journal, before) = MatchJournal::open(dir, [&names[0], &names[1]])?;
                (Some(journal), before)
            }
        };
        let done = converse(session, own, plan.as_ref(), options, journal.as_mut(), before);
        // The keys of a run serve on after a cut alone. A peer that deviated would try again under them.
        match (journal, &done) {
            (Some(journal), Ok(_)) => journal.finish()?,
            // That it deviated matters more than a file that could not be removed.
            (Some(journal), Err(error)) if is_deviation(error) => drop(journal.finish()),
            _ => {}
        }
        done
    })
}

/// Whether an error is one that only a peer's message can cause, or that of [`Options::afresh`].
fn is_deviation(error: &Error) -> bool {
    matches!(error.kind(), Fault::Malformed(_) | Fault::Deviated(_) | Fault::Limit { .. } | Fault::Refused(_))
}

/// The run itself; `journal` holds the run `before`, if there was one that was cut.
fn converse(
    session: &mut Session,
    own: &dyn IdentifierSource,
    plan: Option<&DummyPlan>,
    options: &Options,
    mut journal: Option<&mut MatchJournal>,
    before: Option<JournalRun>,
) -> Result<Spine, Error> {
    let own = PaddedIdentifiers::new(own, plan);
    let room = SpillRoom::new(options.memory, options.scratch.as_deref());
    let mut rng = session.fork_seed("keys").into_rng();
    let salt = before.as_ref().map_or_else(|| rng.bytes(), |run| run.salt);
    let fingerprint = identifiers::fingerprint(&own, salt, &room)?;
    if let Some(run) = &before {
        check_same(run, &own, fingerprint.whole())?;
        if let Some(journal) = &mut journal {
            journal.go_on(run)?;
        }
    }
    let fresh = JournalRun {
        keys: [Secret::new(rng.bytes()), Secret::new(rng.bytes())],
        salt,
        fingerprint: fingerprint.whole(),
        name: rng.bytes(),
        rows: [own.rows(), 0],
    };
    let mut party = session.step("count", |s| Party::meet(s, options, &room, journal, before, fresh))?;
    party.shared_least = plan.map_or(0, DummyPlan::own_listed);
    let u = session.step("u", |s| party.hash_own(s, &own, &fingerprint))?;
    let (uids, e) = party.stream(session, u)?;
    let others = party.others(session, e)?;
    session.step("spine", |s| party.spine(s, uids, others, own.real_rows()))
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
        "the match that was cut was of other rows: this party's data or the peer's have changed since. Bring \
         them back, or both delete the folder of the match under `work` and begin afresh",
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
    room: &'r SpillRoom,
    journal: Option<&'r mut MatchJournal>,
    /// What the peer said after the streams.
    pins: MessagePins,
    /// The least overlap that an honest peer leaves: own dummies of the list that the peer has all of.
    shared_least: u64,
    start: Start,
}

/// Chunks that are done before this session, by an earlier one that was cut; all 0 in a fresh run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Start {
    /// Own rows hashed by this party, the peer's by the peer.
    hashed: [u64; 2],
    /// Own rows whose universal identifiers this party has, and which the peer has answered; the same of the
    /// peer's rows.
    through: [u64; 2],
}

/// What both tell each other first.
struct Hello {
    rows: u64,
    terms: [u8; TERMS_BYTES as usize],
    /// A half of the name of the run that begins if none goes on.
    nonce: [u8; 16],
    /// The name of the run that this party could go on with; zero for none.
    before: [u8; 16],
    /// Finished chunks of the logs u, e and v of that run.
    positions: [u64; 3],
}

impl Hello {
    /// Tells the peer and hears from it; refuses too many rows and other terms.
    fn exchange(&self, session: &mut Session, options: &Options) -> Result<Self, Error> {
        let peer = session.me().other();
        let at = session.at(Some(peer));
        let over = |name, value, cap| Error::new(at.clone(), Fault::Limit { name, value, cap });
        if self.rows >= limits::ROWS {
            return Err(over("limits::ROWS, own rows and dummies", self.rows, limits::ROWS - 1));
        }
        let mut link = session.link(peer);
        link.send(&self.encode())?;
        let theirs = Self::decode(&link.recv_array()?);
        let cap = options.peer_rows_max.min(limits::ROWS);
        if theirs.rows > cap {
            return Err(over("rows of the peer", theirs.rows, cap));
        }
        // Positions in the spine are 32-bit numbers, whatever the overlap turns out to be.
        let both = self.rows + theirs.rows;
        if both > limits::ROWS {
            return Err(over("limits::ROWS, rows of both sides", both, limits::ROWS));
        }
        if self.terms != theirs.terms {
            return Err(link.blame(dummies::SAME_TERMS));
        }
        Ok(theirs)
    }

    fn encode(&self) -> [u8; HELLO_BYTES as usize] {
        let mut bytes = Vec::with_capacity(HELLO_BYTES as usize);
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        [&self.terms, &self.nonce, &self.before].into_iter().for_each(|word| bytes.extend_from_slice(word));
        self.positions.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
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
            positions: [7, 8, 9].map(|i: usize| u64::from_le_bytes(words[i])),
        }
    }
}

impl<'r> Party<'r> {
    /// Both tell their sizes, and whether they can go on with a match that was cut.
    fn meet(
        session: &mut Session,
        options: &Options,
        room: &'r SpillRoom,
        mut journal: Option<&'r mut MatchJournal>,
        before: Option<JournalRun>,
        mut fresh: JournalRun,
    ) -> Result<Self, Error> {
        let (role, peer) = (if session.me() == PartyId(0) { Role::C } else { Role::P }, session.me().other());
        let mine = Hello {
            rows: fresh.rows[0],
            terms: dummies::terms(options.dummies.as_ref(), ShownSizes::Intersection),
            nonce: fresh.name,
            before: before.as_ref().map_or([0; 16], |run| run.name),
            positions: journal
                .as_deref()
                .filter(|_| before.is_some())
                .map_or([0; 3], MatchJournal::positions),
        };
        let theirs = mine.exchange(session, options)?;
        let rows = [mine.rows, theirs.rows];
        let had_one = before.is_some();
        let (run, start) = match before.filter(|run| run.name == theirs.before) {
            Some(run) if run.rows != rows => {
                return Err(session.link(peer).blame("it goes on with as many rows as before"));
            }
            Some(run) => (run, Start::between(mine.positions, theirs.positions, rows)),
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
                journal.as_deref_mut().map_or(Ok(()), |journal| journal.begin(&fresh))?;
                if had_one {
                    // The peer does not have its half of the match that was cut.
                    session.step("begins afresh", |s| {
                        s.report(0, mine.rows);
                        Ok(())
                    })?;
                }
                (fresh, Start::default())
            }
        };
        let key = |secret: &Secret<[u8; 32]>| Exponent::from_bytes(*secret.expose());
        let [Some(first), Some(second)] = run.keys.each_ref().map(key) else {
            return Err(Error::misuse(
                "a key came out as zero, which has a chance of one in 2^252; start again",
            ));
        };
        let (keys, threads) = ([first, second], options.threads);
        let pins = journal.as_deref().map_or(Ok(MessagePins::none()), |journal| journal.pins(&run))?;
        Ok(Self { role, peer, threads, keys, rows, room, journal, pins, shared_least: 0, start })
    }

    /// Sorts both columns into the spine and compares its digest with the peer's.
    fn spine(
        &self,
        session: &mut Session,
        own: SpillColumn<'_, ROW_BYTES>,
        others: SpillColumn<'_, 32>,
        real_rows: u64,
    ) -> Result<Spine, Error> {
        let mut link = session.link(self.peer);
        let union = own.len() + others.len();
        let (mut mine, digest) = steps::spine(own, others)?.map_err(|f| fault(&link, f))?;
        // Who tells is in what it tells: a party that does not know the spine cannot answer with what it
        // heard.
        link.send(&told_by(self.role, digest))?;
        if link.recv_array()? != told_by(self.role.other(), digest) {
            return Err(link.blame("both spines are the same"));
        }
        mine.truncate(real_rows as usize);
        mine.shrink_to_fit();
        let disclosed = Disclosed { own: self.rows[0], peer: self.rows[1], union };
        Ok(Spine { rows: union, mine, disclosed })
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

    /// Runs rounds of one chunk with pulses between them: a party with less to do must not take work for
    /// silence, whoever of the two it is.
    fn rounds(
        &mut self,
        session: &mut Session,
        rounds: u64,
        mut beat: PulseBeat,
        mut work: impl FnMut(&mut Self, &mut Session, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for i in 0..rounds {
            work(self, session, i)?;
            session.report(i + 1, rounds);
            let mut link = session.link(self.peer);
            let [send, take] = beat.after(i);
            if send {
                link.send(&[0])?;
                link.flush()?;
            }
            if take {
                link.recv(&mut [0])?;
            }
        }
        (0..beat.left).try_for_each(|_| session.link(self.peer).recv(&mut [0]))
    }
}

impl Start {
    /// Where both logs of a column end: a chunk counts when its owner has taken the answer to it.
    fn between(mine: [u64; 3], theirs: [u64; 3], rows: [u64; 2]) -> Self {
        let [own, peer] = rows.map(|n| n.div_ceil(CHUNK));
        let ([my_u, my_e, my_v], [their_u, their_e, their_v]) = (mine, theirs);
        Self {
            hashed: [my_u, their_u.min(peer)],
            through: [my_v.min(their_e).min(own), my_e.min(their_v).min(peer)],
        }
    }
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

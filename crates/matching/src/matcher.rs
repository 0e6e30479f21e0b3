//! What every matching protocol is to those who choose, price and run one.
//!
//! A protocol is a folder of this crate with an implementation of [`Matcher`], and a line in
//! [`crate::MATCHERS`]. Whoever matches looks it up by name, asks it for its features, and runs it: nobody
//! tells protocols apart by a list of his own.

use crate::begin::begin;
use crate::dummies::{Dummies, PaddedIdentifiers, ShownSizes};
use crate::identifiers::IdentifierSource;
use crate::memory;
use crate::payload::{JoinedShares, PayloadLayout, PayloadSource};
use crate::places::OwnPlaces;
use crate::spill::SpillRoom;
use base::{Cost, Error, PartyId, Seed, limits};
use net::Session;
use ot::OtKind;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

/// One matching protocol. What it computes, protects and tells is at the head of its module.
pub trait Matcher: Sync {
    /// Its name in a study. Protocols of one name differ in the number of parties or identifiers.
    fn name(&self) -> &'static str;

    /// What it takes and gives.
    fn features(&self) -> MatchFeatures;

    /// What the parties learn from the match besides its result, in one clause. `sizes` says how exact
    /// numbers are, `first` is the name of party 0.
    fn tells(&self, sizes: &str, first: &str, options: &MatchOptions) -> String;

    /// What it shows of the sizes of `owner`'s rows, and how many matched pairs one of these rows takes part
    /// in, at most. `keys` is the number of identifiers of a row.
    fn exposure(&self, _owner: PartyId, keys: u64, _options: &MatchOptions) -> (ShownSizes, u64) {
        (self.features().shown, keys)
    }

    /// What one row of data can change in what is computed on the matched rows.
    fn influence(&self, _keys: u64, _options: &MatchOptions) -> RowInfluence {
        RowInfluence::default()
    }

    /// The exact cost for sizes that are known: after a run, or for those that a plan assumes.
    fn price(&self, sizes: &MatchSizes, options: &MatchOptions) -> Cost;

    /// The least [`MatchOptions::memory`] for so many rows of each party, where the protocol moves what does
    /// not fit to disk; no more than [`crate::spill::MEMORY_MIN`] where that is all of it.
    fn memory(&self, _rows: &[u64], _me: PartyId, _keys: u64, _options: &MatchOptions) -> u64 {
        crate::spill::MEMORY_MIN
    }

    /// What a match of so many rows of each party takes on disk at this one, of one identifier a row, where
    /// as many match as make it most; none where it is not foretold.
    fn disk(&self, _rows: &[u64], _me: PartyId, _options: &MatchOptions) -> Option<MatchDisk> {
        None
    }

    /// What a match of so many rows of each party takes before it is run, where as many match as make it
    /// dearest.
    fn estimate(&self, planned: &PlannedRows<'_>, options: &MatchOptions) -> MatchEstimate;

    /// One owner's part, with the others of the session. `payload` has a row per own row, at a party whose
    /// values become shares.
    ///
    /// # Errors
    /// `Input` when own rows or options do not fit; `Limit` when a size is over a bound; `Malformed` or
    /// `Deviated` when a peer sends what the protocol does not; `Channel` when it is gone. All name party,
    /// peer and step.
    fn run(
        &self,
        session: &mut Session,
        own: &dyn IdentifierSource,
        payload: Option<&dyn PayloadSource>,
        options: &MatchOptions,
    ) -> Result<MatchOutcome, Error> {
        let run = |session: &mut Session| {
            let plan = begin((self.name(), self.features()), session, own, payload, options)?;
            let rows = PaddedIdentifiers::new(own, plan.as_ref());
            let room = SpillRoom::new(options.memory, options.scratch.as_deref());
            self.converse(session, &MatchInput { rows, payload, options, room })
        };
        match self.step() {
            Some(step) => session.step(step, run),
            None => run(session),
        }
    }

    /// The step of its messages; none: that of the caller.
    fn step(&self) -> Option<&'static str> {
        Some(self.name())
    }

    /// The steps that are this protocol's own, for [`Matcher::run`].
    ///
    /// # Errors
    /// Those of [`Matcher::run`].
    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error>;

    /// The part of a server that owns no rows: what it learns of sizes.
    ///
    /// # Errors
    /// `Misuse` where a protocol has no part for servers; those of [`Matcher::run`].
    fn serve(&self, _session: &mut Session, _options: &MatchOptions) -> Result<MatchSizes, Error> {
        Err(Error::misuse("this match is among the owners of rows alone"))
    }
}

/// What an owner brings to a match, once it was found to fit the protocol.
pub struct MatchInput<'a> {
    /// Identifiers of own rows, and behind them dummies.
    pub rows: PaddedIdentifiers<'a>,
    /// A row per own row, where this party's values become shares.
    pub payload: Option<&'a dyn PayloadSource>,
    /// How the match is run.
    pub options: &'a MatchOptions,
    /// Where columns lie, by the options.
    pub room: SpillRoom,
}

impl MatchInput<'_> {
    /// Refuses rows of each party, as all have told them, for which the disk has no room: before anything
    /// that grows with them is sent or kept. `kept` are bytes for going on after a cut.
    ///
    /// # Errors
    /// With the numbers, and what to do.
    pub(crate) fn expect_disk(&self, rows: &[u64], disk: MatchDisk, kept: u64) -> Result<(), Error> {
        // Blocks are in memory as long as there is room.
        let need = disk.at_most.saturating_sub(self.room.held()).saturating_add(kept);
        memory::check_disk(rows, need, self.options)
    }
}

/// Protocols are told apart by name, and by how many parties and identifiers they take.
impl PartialEq for dyn Matcher {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.features()) == (other.name(), other.features())
    }
}

impl Eq for dyn Matcher {}

impl fmt::Debug for dyn Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a protocol takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchFeatures {
    /// How many owners of rows take part.
    pub parties: RangeInclusive<usize>,
    /// How many identifiers a row has.
    pub keys: RangeInclusive<usize>,
    /// What comes out.
    pub form: OutputForm,
    /// What dummies have to hide; without use where [`MatchFeatures::dummies`] is off.
    pub shown: ShownSizes,
    /// Whether dummies can hide the sizes that it tells.
    pub dummies: bool,
    /// Whether a match that was cut can go on: [`MatchOptions::resume`].
    pub resumes: bool,
    /// Whether its units can go over lanes of workers: [`crate::PrivateId::run_over_lanes`].
    pub lanes: bool,
    /// Whether it reads identifiers and payload in their order, a few times, and moves what does not fit its
    /// memory to disk, but for [`Matcher::memory`].
    pub streams: bool,
    /// Whether its spine can be kept for later studies.
    pub keeps_spine: bool,
    /// Whether all parties hold the same identifiers, which are public.
    pub public_identifiers: bool,
    /// Whether owners share a salt, of which [`MatchOptions::salt`] is made.
    pub salted: bool,
    /// Whether party 0 sees which rows share identifiers with which, without names.
    pub shows_graph: bool,
    /// Whether party 0 counts the rows that each set of parties has in common.
    pub shows_overlaps: bool,
    /// Whether payloads may move by either [`ShareBackend`].
    pub backends: bool,
    /// Whether a row may match several, in so many [`MatchOptions::slots`].
    pub slots: bool,
    /// Whether several rows of a party may keep one identifier.
    pub keeps_repeats: bool,
    /// What may become of contaminated rows.
    pub contaminated: &'static [ContaminatedRule],
    /// Bytes that matching and aligning take per own row, with a peer of the same size.
    pub bytes_per_row: u64,
}

impl MatchFeatures {
    /// A spine of two parties by one identifier, with dummies.
    pub(crate) const SPINE: Self = Self {
        parties: 2..=2,
        keys: 1..=1,
        form: OutputForm::Spine,
        shown: ShownSizes::Intersection,
        dummies: true,
        resumes: false,
        lanes: false,
        streams: false,
        keeps_spine: true,
        public_identifiers: false,
        salted: false,
        shows_graph: false,
        shows_overlaps: false,
        backends: false,
        slots: false,
        keeps_repeats: false,
        contaminated: &[ContaminatedRule::Ignore],
        bytes_per_row: 120,
    };
    /// Shares of the values of both parties, with dummies.
    pub(crate) const SHARES: Self =
        Self { form: OutputForm::Shares([true; 2]), keeps_spine: false, ..Self::SPINE };
}

impl MatchFeatures {
    /// Whether so many parties can take part.
    #[must_use]
    pub fn fits(&self, parties: usize) -> bool {
        self.parties.contains(&parties)
    }
}

/// What a match takes outside memory, where nothing fits that may be there: bytes, at most, where identifiers
/// have 24 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchDisk {
    /// Written.
    pub written: u64,
    /// Read back.
    pub read: u64,
    /// There at any time.
    pub at_most: u64,
    /// What came out of it, which is there as long as it is used: positions of own rows; or shares, with own
    /// values along joined rows.
    pub stays: u64,
    /// Rows of the longest sorted column: [`crate::spill::least_room`] says what memory it needs.
    pub longest: u64,
}

/// What comes out of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// Places of own rows on a spine that all have in common.
    Spine,
    /// Joined rows; the values of the parties that are marked become shares.
    Shares([bool; 2]),
}

impl OutputForm {
    /// Whose values become shares; none on a spine.
    #[must_use]
    pub fn shared(self) -> Option<[bool; 2]> {
        match self {
            Self::Spine => None,
            Self::Shares(shared) => Some(shared),
        }
    }
}

/// What one row of data can change in what is computed on the matched rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowInfluence {
    /// By party: matched pairs that a row of it changes.
    pub degree: [u64; 2],
    /// Rows of its own party that a line of data changes, whatever they match.
    pub alone: u64,
    /// By how many positions of a spine it moves a sum of values from 0 to 1 over all positions.
    pub spread: u64,
    /// Entries of a joined row.
    pub slots: u32,
    /// Whether joined rows may be no match, so that their values must be masked.
    pub masked: bool,
}

impl Default for RowInfluence {
    fn default() -> Self {
        Self { degree: [1; 2], alone: 1, spread: 1, slots: 1, masked: false }
    }
}

/// What becomes of contaminated rows: those of party 1 that match rows of both lists of party 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContaminatedRule {
    /// Party 0 has one list; nobody looks.
    #[default]
    Ignore,
    /// They are counted.
    Count,
    /// They are counted, and left without a partner.
    Drop,
}

impl ContaminatedRule {
    /// Names in a study.
    pub const NAMES: [(&'static str, Self); 3] =
        [("ignore", Self::Ignore), ("count", Self::Count), ("drop", Self::Drop)];

    /// Its name in a study.
    #[must_use]
    pub fn name(self) -> &'static str {
        name_of(&Self::NAMES, self)
    }
}

/// What to do with an identifier that a second row carries too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatRule {
    /// Refuse the rows, by number.
    #[default]
    Error,
    /// It stays where its column is best (then in the first such row); other rows lose it.
    Replace,
    /// Several rows keep it, as [`crate::collecting`] allows.
    Keep,
}

/// What moves payloads into shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareBackend {
    /// Permutation networks over correlated OT.
    #[default]
    PermuteShare,
    /// Paillier encryption: see [`crate::paillier`].
    Paillier,
}

impl ShareBackend {
    /// Names in a study.
    pub const NAMES: [(&'static str, Self); 2] =
        [("permute-share", Self::PermuteShare), ("paillier", Self::Paillier)];

    /// Its name in a study.
    #[must_use]
    pub fn name(self) -> &'static str {
        name_of(&Self::NAMES, self)
    }
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, other)| *other == value).map_or("", |(name, _)| name)
}

/// Who takes part where servers do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchRoles {
    /// Who owns rows.
    pub owners: Vec<PartyId>,
    /// The two servers that join rows, where the protocol has some.
    pub joiners: Vec<PartyId>,
    /// Servers that neither own rows nor join them.
    pub others: Vec<PartyId>,
}

impl MatchRoles {
    /// How many they are.
    #[must_use]
    pub fn everybody(&self) -> usize {
        self.owners.len() + self.joiners.len() + self.others.len()
    }
}

/// How a match is run. Each protocol reads what is of its kind; the first fields are this party's own affair
/// and change no byte on the wire, the others are agreed on by all.
#[derive(Clone)]
pub struct MatchOptions {
    /// Cores to multiply on; at least 1.
    pub threads: usize,
    /// The most rows accepted from each peer, dummies included.
    pub peer_rows_max: u64,
    /// The most bytes of memory for columns; none: no bound. Protocols that
    /// [stream](MatchFeatures::streams) move columns beyond it to disk, the others refuse.
    pub memory: Option<u64>,
    /// Where columns go beyond `memory`, in files without a name; none: the system's folder for temporary
    /// files.
    pub scratch: Option<PathBuf>,
    /// Bytes that the disk of `scratch` has left; none: it is not asked.
    pub scratch_left: Option<u64>,
    /// A folder, private to this party, from which a match that was cut goes on; it is made, and emptied at
    /// success and when the peer deviates. Both parties must have kept theirs, else both begin afresh. It
    /// holds the keys of the run, and 96 bytes per row.
    pub resume: Option<PathBuf>,
    /// Whether that folder stays after success: whoever matches calls [`crate::forget`] once what came of it
    /// is kept at both parties, and until then the match can be brought to its end again.
    pub stays: bool,
    /// Asked where this party has its half of a match that was cut and the other party says that it has not:
    /// a match begins afresh then, with the same dummies.
    pub afresh: Option<RestartPermit>,
    /// The payload of a dummy row: as many bytes as a row of the payload has; none: zeros.
    pub blank: Option<Vec<u8>>,
    /// At party 0, where contaminated rows matter: its rows below this number are one list, the others
    /// another.
    pub lists: Option<u64>,
    /// The key of salted hashes, at owners.
    pub salt: Option<Arc<Seed>>,
    /// Identifiers of several own rows.
    pub repeats: RepeatRule,
    /// The least number of partitions that Private-ID of two parties deals elements into; sizes ask for one
    /// per 2^20 rows of both sides, and 4,096 is the most.
    pub partitions: u32,
    /// Rows that hide sizes; all parties insert them alike. None: exact sizes are disclosed.
    pub dummies: Option<Dummies>,
    /// A weight per column of identifiers; empty for equal weights. An identifier that both have in different
    /// columns weighs the smaller one.
    pub weights: Vec<u32>,
    /// What becomes of contaminated rows. Not with dummies.
    pub contaminated: ContaminatedRule,
    /// M: rows of party 1 that a row of party 0 collects, at most. Also how many rows of party 1 may use one
    /// identifier.
    pub slots: u32,
    /// Rows of party 0 that a row of party 1 stands in, at most. Also how many rows of party 0 may use one
    /// identifier; 1 where these are unique, which is many-to-one.
    pub degree: u32,
    /// What moves payloads into shares.
    pub backend: ShareBackend,
    /// What makes OTs; none: what is usual for the protocol.
    pub ot: Option<OtKind>,
    /// The layouts of party 0's and of party 1's payload.
    pub layouts: [PayloadLayout; 2],
    /// Who takes part where servers do.
    pub roles: MatchRoles,
}

impl Default for MatchOptions {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            peer_rows_max: limits::ROWS,
            memory: None,
            scratch: None,
            scratch_left: None,
            resume: None,
            stays: false,
            afresh: None,
            blank: None,
            lists: None,
            salt: None,
            repeats: RepeatRule::Error,
            partitions: 1,
            dummies: None,
            weights: Vec::new(),
            contaminated: ContaminatedRule::Ignore,
            slots: 4,
            degree: 1,
            backend: ShareBackend::default(),
            ot: None,
            layouts: Default::default(),
            roles: MatchRoles::default(),
        }
    }
}

/// Whether a match may begin afresh: a refusal ([`base::Fault::Refused`]) ends the run and forgets this
/// party's half.
#[derive(Clone)]
pub struct RestartPermit(pub Arc<dyn Fn() -> Result<(), Error> + Send + Sync>);

/// The public sizes of a match, dummies included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSizes {
    /// Rows of each owner.
    pub rows: Vec<u64>,
    /// Identifiers of a row of each owner.
    pub keys: Vec<u64>,
    /// Rows of the union: at least the most of `rows`, at most their sum. Where nobody learns it, that sum.
    pub union: u64,
}

impl MatchSizes {
    /// Rows of `keys` identifiers each, none of which two owners have.
    #[must_use]
    pub fn apart(rows: &[u64], keys: u64) -> Self {
        let union = rows.iter().fold(0, |all: u64, rows| all.saturating_add(*rows));
        Self { rows: rows.to_vec(), keys: vec![keys; rows.len()], union }
    }

    /// The sizes of two owners.
    ///
    /// # Panics
    /// Of more or fewer than two: a bug of the caller.
    #[must_use]
    pub fn pair(&self) -> PairSizes {
        PairSizes { rows: pair_of(&self.rows), keys: pair_of(&self.keys), union: self.union }
    }
}

/// Numbers of two owners.
///
/// # Panics
/// Of more or fewer: a bug of the caller.
pub(crate) fn pair_of(of: &[u64]) -> [u64; 2] {
    of.try_into().expect("a protocol of two parties has two sizes")
}

/// [`MatchSizes`] of two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairSizes {
    /// Rows of party 0 and of party 1.
    pub rows: [u64; 2],
    /// Identifiers of a row of either.
    pub keys: [u64; 2],
    /// Rows of the union.
    pub union: u64,
}

impl PairSizes {
    /// Rows of one identifier each.
    #[must_use]
    pub fn new(rows: [u64; 2], union: u64) -> Self {
        Self { rows, keys: [1; 2], union }
    }

    /// Rows of the intersection.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.rows[0] + self.rows[1] - self.union
    }

    /// Rows that only party 0 and only party 1 has.
    pub(crate) fn only(&self) -> [u64; 2] {
        self.rows.map(|rows| rows - self.shared())
    }

    /// Places of identifiers of one party.
    #[must_use]
    pub fn cells(&self, party: PartyId) -> u64 {
        self.rows[party.index()] * self.keys[party.index()]
    }
}

impl From<PairSizes> for MatchSizes {
    fn from(sizes: PairSizes) -> Self {
        Self { rows: sizes.rows.into(), keys: sizes.keys.into(), union: sizes.union }
    }
}

/// What is known of rows before a match is run.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRows<'a> {
    /// Of each owner.
    pub rows: &'a [u64],
    /// Identifiers of a row.
    pub keys: u64,
    /// How many rows both of two owners have, at most as many as the one with fewer; none: as many as make
    /// the match dearest.
    pub both: Option<u64>,
}

impl PlannedRows<'_> {
    /// Sizes of a protocol that is dearest where nobody is in two lists.
    pub(crate) fn sizes(&self) -> MatchSizes {
        let apart = MatchSizes::apart(self.rows, self.keys);
        MatchSizes { union: apart.union - self.both.unwrap_or(0), ..apart }
    }
}

/// What a match takes before it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchEstimate {
    /// The sizes that make it dearest.
    pub sizes: MatchSizes,
    /// Group operations of the busiest party.
    pub multiplications: u64,
    /// Seconds of encryption on one core, of the parties one after the other.
    pub encryption_s: f64,
    /// Messages that wait for each other, beyond what streams.
    pub waits: f64,
    /// Rows that the computation gets.
    pub rows: u64,
    /// Why so many, and not more or fewer.
    pub why: String,
}

impl MatchEstimate {
    /// Of a protocol that is dearest where nobody is in two lists, and tells how many are.
    pub(crate) fn of(planned: &PlannedRows<'_>) -> Self {
        let sizes = planned.sizes();
        let nobody = if sizes.rows.len() > 2 { "nobody in two files" } else { "nobody in both" };
        let why = match planned.both {
            Some(both) => format!("{both} in both"),
            None => format!("{nobody}; a larger match is cheaper"),
        };
        let rows = sizes.union;
        Self { sizes, multiplications: 0, encryption_s: 0.0, waits: 0.0, rows, why }
    }
}

/// What came out of a match, and what it told.
pub struct MatchOutcome {
    /// What came out.
    pub output: MatchOutput,
    /// What was disclosed beyond it.
    pub disclosed: MatchDisclosure,
}

/// What comes out of a match, in either form.
pub enum MatchOutput {
    /// Where own rows lie.
    Spine(MatchSpine),
    /// Joined rows.
    Shares(JoinedShares),
}

/// Where this party's rows lie in the spine of all.
pub struct MatchSpine {
    /// Rows of the spine: the size of the union.
    pub rows: u64,
    /// The position of each own row in the spine.
    pub mine: OwnPlaces,
}

/// What a party learnt about the others beyond what came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchDisclosure {
    /// Sizes, with the dummy rows of all in them.
    pub sizes: MatchSizes,
    /// Whether nobody, or only the party that sees the match graph, learnt how many rows match.
    pub size_hidden: bool,
    /// What this party alone counted, or was told.
    pub counts: Vec<MatchedCount>,
}

/// A number that a match told one party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCount {
    /// What was counted, in words for a report.
    pub what: String,
    /// How many.
    pub count: u64,
}

impl MatchedCount {
    /// So many of these.
    #[must_use]
    pub fn new(what: impl Into<String>, count: u64) -> Self {
        Self { what: what.into(), count }
    }
}

impl MatchDisclosure {
    /// Sizes, and nothing else.
    #[must_use]
    pub fn of(sizes: impl Into<MatchSizes>) -> Self {
        Self { sizes: sizes.into(), size_hidden: false, counts: Vec::new() }
    }

    /// What was counted under these words.
    #[must_use]
    pub fn count(&self, what: &str) -> Option<u64> {
        self.counts.iter().find(|counted| counted.what == what).map(|counted| counted.count)
    }
}

impl MatchOutcome {
    pub(crate) fn spine_of(union: u64, mine: OwnPlaces, disclosed: MatchDisclosure) -> Self {
        Self { output: MatchOutput::Spine(MatchSpine { rows: union, mine }), disclosed }
    }

    /// Where own rows lie.
    ///
    /// # Errors
    /// `Misuse` where the protocol gives shares.
    pub fn spine(self) -> Result<MatchSpine, Error> {
        match self.output {
            MatchOutput::Spine(spine) => Ok(spine),
            MatchOutput::Shares(_) => Err(Error::misuse("this match gives shares and no spine")),
        }
    }

    /// The joined rows.
    ///
    /// # Errors
    /// `Misuse` where the protocol gives a spine.
    pub fn shares(self) -> Result<JoinedShares, Error> {
        match self.output {
            MatchOutput::Shares(joined) => Ok(joined),
            MatchOutput::Spine(_) => Err(Error::misuse("this match gives a spine and no shares")),
        }
    }
}

/// Positions are the data of this party: only sizes print.
impl fmt::Debug for MatchSpine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchSpine").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Positions and shares are data: only what was disclosed prints.
impl fmt::Debug for MatchOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchOutcome").field("disclosed", &self.disclosed).finish_non_exhaustive()
    }
}

//! Seeded cut-and-choose: the other party draws my noise, and I check that it drew it honestly.
//!
//! Functionality: one party (the drawer) enters k candidate vectors of noise into the computation; the other
//! (the checker, who will see the outputs) picks one; the others are opened and compared, exactly, with what
//! two seeds, one from each side, determine. One index per viewer; one key gives the noises of all outputs.
//! Security: covert in the choice of the noise inputs, with deterrence 1 - 1/k: a drawer that enters anything
//! else in one candidate is named unless that one is picked. No false alarm: honest noise compares equal. The
//! checker's seeds keep the drawer from grinding, the commitments keep the checker from choosing the noise.
//! The engine that takes the inputs is run semi-honestly. Random oracle: BLAKE3. Who learns what: the checker
//! learns the k - 1 candidates that are never used; the drawer learns the index. Paper: Private RCT,
//! section 2.5.3. Deviation: noises are derived from seeds and compared exactly, where the paper tests their
//! distribution. Cost: 32 k + 32 k + 2 + 64 (k - 1) bytes (8,130 for k = 64), and the entry and opening of k
//! vectors in the engine.
//!
//! The order is in the types; a state is consumed by its step:
//!
//! | | drawer | message | checker |
//! |---|---|---|---|
//! | 1 | [`Drawer::commit`] | commitments -> | [`Checker::new`] |
//! | 2 | [`Drawer::draw`] | <- seeds | |
//! | 3 | [`DrawerCandidates::entered`] | the computation takes the candidates | [`Checker::entered`] |
//! | 4 | the ledger debits: [`Debited`] | | the ledger debits: [`Debited`] |
//! | 5 | [`DrawerEntered::named`] | <- index | [`CheckerEntered::choose`] |
//! | 6 | [`Named::open`] | openings -> | [`CheckerWaiting::check`] |
//! | 7 | | the computation reveals f + e\[i\] | [`Accepted`] |
//!
//! At every state `transcript()` is what a crash resumes from ([`resume`]); it is stored before the state's
//! message is sent. After the index is named, silence is cheating ([`CheckerWaiting::silent`]): free retries
//! would let a cheater win.

pub use crate::transcript::{
    Bytes32, CutAndChooseSide, DEFAULT_CANDIDATES, DRAWS, Deviation, Draw, NoiseContext, Setup, Transcript,
    TranscriptEnd,
};

use crate::transcript::Opening;
use base::{At, Error, Fault, Rng, Secret};

/// Proof that the ledger has debited this release and that the debit is on stable storage.
///
/// Only a ledger makes one, after its commit. It is spent by naming an index (checker) or answering one
/// (drawer).
#[derive(Debug)]
#[must_use]
pub struct Debited {
    setup: Bytes32,
    entry: u64,
}

impl Debited {
    /// For the ledger: row `entry`, which is committed, pays for the release that `setup` describes.
    pub fn committed(setup: &Setup, entry: u64) -> Self {
        Self { setup: setup.id(), entry }
    }

    pub(crate) fn spend(self, setup: &Setup) -> Result<u64, Error> {
        if self.setup == setup.id() {
            Ok(self.entry)
        } else {
            Err(Error::misuse("the debit is for another release"))
        }
    }
}

/// Drawer, after its commitments.
#[derive(Debug)]
#[must_use]
pub struct Drawer(Transcript);

/// Drawer, with its candidates, which now go into the computation.
#[must_use]
pub struct DrawerCandidates {
    record: Transcript,
    candidates: Vec<Secret<Vec<i128>>>,
}

/// Drawer, after the computation took the candidates. It waits for an index.
#[derive(Debug)]
#[must_use]
pub struct DrawerEntered(Transcript);

/// Drawer, with the index that it will answer, this one only.
#[derive(Debug)]
#[must_use]
pub struct Named(Transcript);

/// Checker, after its seeds.
#[derive(Debug)]
#[must_use]
pub struct Checker(Transcript);

/// Checker, after the computation took the candidates.
#[derive(Debug)]
#[must_use]
pub struct CheckerEntered(Transcript);

/// Checker, with the index it named. It waits for openings.
#[derive(Debug)]
#[must_use]
pub struct CheckerWaiting(Transcript);

/// The checker's conclusion.
#[derive(Debug)]
#[must_use]
pub enum CheckerVerdict {
    /// All opened candidates are as the seeds say.
    Accepted(Accepted),
    /// The drawer deviated.
    Detected(Detected),
}

/// Leave to reveal f + e\[index\].
#[derive(Debug)]
pub struct Accepted(Transcript);

/// Evidence of a deviation.
#[derive(Debug)]
pub struct Detected {
    deviation: Deviation,
    record: Transcript,
}

impl Drawer {
    /// Step 1: picks k seeds and commits to them. Send the bytes ([`Setup::commitments_bytes`]).
    pub fn commit(setup: Setup, rng: &mut Rng) -> (Self, Vec<u8>) {
        let id = setup.id();
        let openings: Vec<Opening> =
            (0..setup.candidates).map(|_| Opening { seed: rng.bytes(), blinding: rng.bytes() }).collect();
        let commitments: Vec<Bytes32> =
            openings.iter().enumerate().map(|(j, opening)| setup.commitment(&id, j, opening)).collect();
        let message = commitments.concat();
        let mut record = Transcript::new(CutAndChooseSide::Drawer, setup, commitments);
        record.openings = openings;
        (Self(record), message)
    }

    /// Step 2: takes the checker's seeds and draws all candidates.
    ///
    /// # Errors
    /// Malformed, when the message does not have [`Setup::seeds_bytes`].
    pub fn draw(mut self, message: &[u8]) -> Result<DrawerCandidates, Error> {
        self.0.seeds = decode(message, self.0.setup.candidates, "noise seeds")?;
        DrawerCandidates::from(self.0)
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl DrawerCandidates {
    fn from(record: Transcript) -> Result<Self, Error> {
        let candidates = (0..record.setup.candidates)
            .map(|j| record.setup.noises(j, &record.openings[j].seed, &record.seeds[j]).map(Secret::new))
            .collect::<Result<_, _>>()?;
        Ok(Self { record, candidates })
    }

    /// The candidates to enter: k vectors with one noise per draw, j ascending.
    #[must_use]
    pub fn candidates(&self) -> &[Secret<Vec<i128>>] {
        &self.candidates
    }

    /// Step 3: the computation took the candidates; `digest` is the hash of that conversation, alike on both
    /// sides.
    pub fn entered(mut self, digest: Bytes32) -> DrawerEntered {
        self.record.entered = Some(digest);
        DrawerEntered(self.record)
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.record
    }
}

impl DrawerEntered {
    /// Step 5: takes the index. Store the transcript before [`Named::open`]: a second index would open
    /// everything.
    ///
    /// # Errors
    /// Misuse, when the debit is for another release. Malformed, when the message is not an index below k.
    pub fn named(mut self, debited: Debited, message: &[u8]) -> Result<Named, Error> {
        let index = self.0.decode_index(message)?;
        self.0.ledger_entry = Some(debited.spend(&self.0.setup)?);
        self.0.index = Some(index);
        Ok(Named(self.0))
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl Named {
    /// Which candidate the computation adds.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index().expect("this state has an index")
    }

    /// After a crash: whether the checker names the index it named before.
    ///
    /// # Errors
    /// Deviated, when it names another one; malformed, when it names none.
    pub fn again(&self, message: &[u8]) -> Result<(), Error> {
        if self.0.decode_index(message)? == self.0.index.expect("this state has an index") {
            return Ok(());
        }
        Err(Error::new(At::default(), Fault::Deviated("it named a second index for the same noise")))
    }

    /// Step 6: opens all candidates but the one. Send the bytes ([`Setup::openings_bytes`]) and let the
    /// computation reveal the same candidates. The transcript is the final one.
    #[must_use]
    pub fn open(mut self) -> (Transcript, Vec<u8>) {
        let index = self.index();
        let others = self.0.openings.iter().enumerate().filter(|(j, _)| *j != index);
        let message = others.flat_map(|(_, opening)| [opening.seed, opening.blinding]).flatten().collect();
        self.0.outcome = Some(TranscriptEnd::Done);
        (self.0, message)
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl Checker {
    /// Step 1: takes the drawer's commitments and answers with k seeds. Send the bytes
    /// ([`Setup::seeds_bytes`]).
    ///
    /// # Errors
    /// Malformed, when the message does not have [`Setup::commitments_bytes`].
    pub fn new(setup: Setup, message: &[u8], rng: &mut Rng) -> Result<(Self, Vec<u8>), Error> {
        let commitments = decode(message, setup.candidates, "noise commitments")?;
        let mut record = Transcript::new(CutAndChooseSide::Checker, setup, commitments);
        record.seeds = (0..record.setup.candidates).map(|_| rng.bytes()).collect();
        let answer = record.seeds.concat();
        Ok((Self(record), answer))
    }

    /// Step 3: the computation took the drawer's candidates; `digest` as in [`DrawerCandidates::entered`].
    pub fn entered(mut self, digest: Bytes32) -> CheckerEntered {
        self.0.entered = Some(digest);
        CheckerEntered(self.0)
    }

    /// After a crash: the seeds to send again, the same ones.
    #[must_use]
    pub fn seeds(&self) -> Vec<u8> {
        self.0.seeds.concat()
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl CheckerEntered {
    /// Step 5: names an index, uniformly. Store the transcript, then send [`CheckerWaiting::message`].
    ///
    /// # Errors
    /// Misuse, when the debit is for another release.
    pub fn choose(mut self, debited: Debited, rng: &mut Rng) -> Result<CheckerWaiting, Error> {
        self.0.ledger_entry = Some(debited.spend(&self.0.setup)?);
        let index = rng.below(self.0.setup.candidates as u64);
        self.0.index = Some(u16::try_from(index).expect("at most limits::CANDIDATES candidates"));
        Ok(CheckerWaiting(self.0))
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl CheckerWaiting {
    /// The index that was named.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index().expect("this state has an index")
    }

    /// The message that names it: two bytes, least significant first.
    #[must_use]
    pub fn message(&self) -> [u8; Setup::INDEX_BYTES] {
        self.0.index.expect("this state has an index").to_le_bytes()
    }

    /// Step 6: compares the openings with the commitments, and the noises they give with `revealed`, which
    /// the computation opened: k - 1 vectors, j ascending without the index, one noise per draw.
    ///
    /// # Errors
    /// Misuse, when `revealed` has another shape. Whatever the peer did is in the verdict.
    pub fn check(mut self, message: &[u8], revealed: &[Vec<i128>]) -> Result<CheckerVerdict, Error> {
        let (k, draws) = (self.0.setup.candidates, self.0.setup.draws.len());
        if revealed.len() != k - 1 || revealed.iter().any(|noises| noises.len() != draws) {
            return Err(Error::misuse("the revealed candidates are k - 1 vectors of one noise per draw"));
        }
        Ok(match self.deviation(message, revealed)? {
            Some(deviation) => CheckerVerdict::Detected(self.detected(deviation)),
            None => {
                self.0.outcome = Some(TranscriptEnd::Done);
                CheckerVerdict::Accepted(Accepted(self.0))
            }
        })
    }

    /// The drawer refused, timed out or left after the index was named: that is cheating.
    #[must_use]
    pub fn silent(self) -> Detected {
        self.detected(Deviation::Silence)
    }

    fn detected(mut self, deviation: Deviation) -> Detected {
        self.0.outcome = Some(TranscriptEnd::Detected(deviation));
        Detected { deviation, record: self.0 }
    }

    fn deviation(&self, message: &[u8], revealed: &[Vec<i128>]) -> Result<Option<Deviation>, Error> {
        let (record, index) = (&self.0, self.index());
        let setup = &record.setup;
        let Ok(opened) = decode(message, 2 * (setup.candidates - 1), "noise openings") else {
            return Ok(Some(Deviation::Silence));
        };
        let id = setup.id();
        let others = (0..setup.candidates).filter(|&j| j != index);
        for ((candidate, pair), noises) in others.zip(opened.chunks_exact(2)).zip(revealed) {
            let opening = Opening { seed: pair[0], blinding: pair[1] };
            if setup.commitment(&id, candidate, &opening) != record.commitments[candidate] {
                return Ok(Some(Deviation::Opening { candidate }));
            }
            let expected = setup.noises(candidate, &opening.seed, &record.seeds[candidate])?;
            if let Some(draw) = (0..expected.len()).find(|&d| expected[d] != noises[d]) {
                return Ok(Some(Deviation::Noise { candidate, draw }));
            }
        }
        Ok(None)
    }

    /// The record at this step.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl Accepted {
    /// Which candidate the computation adds to the outputs.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index().expect("this state has an index")
    }

    /// The final record.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.0
    }
}

impl Detected {
    /// What the drawer did.
    #[must_use]
    pub fn deviation(&self) -> Deviation {
        self.deviation
    }

    /// The evidence: store it; it bars the peer until the operator of this side allows more.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.record
    }

    /// As an error that aborts the job.
    #[must_use]
    pub fn error(&self) -> Error {
        let check = match self.deviation {
            Deviation::Opening { .. } => "its noise commitment does not open",
            Deviation::Noise { .. } => "the noise it entered is not the noise of the seeds",
            Deviation::Silence => "it gave no openings after the noise index was named",
        };
        Error::new(At::default(), Fault::Deviated(check))
    }
}

/// Where a stored transcript continues.
#[derive(Debug)]
#[must_use]
pub enum Resumed {
    /// The commitments were made; [`Transcript`] holds them for sending again.
    Drawer(Drawer),
    /// The candidates have to be entered.
    Drawn(DrawerCandidates),
    /// Waiting for an index.
    DrawerEntered(DrawerEntered),
    /// The index is known; only its openings can be given. Also after the openings went out: they may go
    /// again.
    Named(Named),
    /// The seeds were made.
    Checker(Checker),
    /// The index is to be named.
    CheckerEntered(CheckerEntered),
    /// The index was named; only this one can be.
    Chosen(CheckerWaiting),
    /// Checked and accepted.
    Accepted(Accepted),
}

/// Continues a stored transcript: the same seeds, the same index, never new ones.
///
/// # Errors
/// When the transcript is of other data, another agreement, detected cheating, or damaged.
pub fn resume(record: Transcript, setup: &Setup) -> Result<Resumed, Error> {
    record.check(setup)?;
    let (drawn, entered, named) =
        (!record.seeds.is_empty(), record.entered.is_some(), record.index.is_some());
    Ok(match record.side {
        CutAndChooseSide::Drawer if named => Resumed::Named(Named(record)),
        CutAndChooseSide::Drawer if entered => Resumed::DrawerEntered(DrawerEntered(record)),
        CutAndChooseSide::Drawer if drawn => Resumed::Drawn(DrawerCandidates::from(record)?),
        CutAndChooseSide::Drawer => Resumed::Drawer(Drawer(record)),
        CutAndChooseSide::Checker if record.outcome.is_some() => Resumed::Accepted(Accepted(record)),
        CutAndChooseSide::Checker if named => Resumed::Chosen(CheckerWaiting(record)),
        CutAndChooseSide::Checker if entered => Resumed::CheckerEntered(CheckerEntered(record)),
        CutAndChooseSide::Checker if drawn => Resumed::Checker(Checker(record)),
        CutAndChooseSide::Checker => return Err(Error::input("the noise transcript is damaged")),
    })
}

impl Transcript {
    /// The commitments, for sending them again after a crash.
    #[must_use]
    pub fn commitments(&self) -> Vec<u8> {
        self.commitments.concat()
    }

    fn decode_index(&self, message: &[u8]) -> Result<u16, Error> {
        let bytes: [u8; Setup::INDEX_BYTES] = message.try_into().map_err(|_| malformed("noise index"))?;
        let index = u16::from_le_bytes(bytes);
        if usize::from(index) < self.setup.candidates { Ok(index) } else { Err(malformed("noise index")) }
    }
}

impl std::fmt::Debug for DrawerCandidates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Drawn").field(&self.record).finish()
    }
}

fn decode(message: &[u8], count: usize, what: &'static str) -> Result<Vec<Bytes32>, Error> {
    let (items, rest) = message.as_chunks::<32>();
    if items.len() == count && rest.is_empty() { Ok(items.to_vec()) } else { Err(malformed(what)) }
}

fn malformed(what: &'static str) -> Error {
    Error::new(At::default(), Fault::Malformed(what))
}

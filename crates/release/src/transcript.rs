//! What one cut-and-choose is about, its derivations, and the record of it that survives a crash.

use crate::gaussian::DiscreteGaussian;
use crate::rational::Rational;
use base::{Error, PartyId, Seed, limits};
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroize;

/// Candidates k where nobody asks otherwise: a drawer that cheats in one of them is caught with 1 - 1/64 =
/// 98.4 %.
pub const DEFAULT_CANDIDATES: usize = 64;
/// Noises of one candidate: outputs of one viewer.
pub const DRAWS: usize = 1 << 16;

const FORMAT: &str = "tacit-noise/1";

/// 32 bytes: a hash, a seed, a blinding.
pub type Bytes32 = [u8; 32];

/// What the noise is for. Every field enters the noise keys, `session` the commitments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseContext {
    /// Hash of the study.
    pub study: Bytes32,
    /// Which release of that study.
    pub release: Bytes32,
    /// Agreed once when the release starts; kept across reconnections and crashes.
    pub session: Bytes32,
    /// Hashes of the data sets, in party order.
    pub data: Vec<Bytes32>,
    /// Who sees the noised outputs, and checks the noise.
    pub viewer: PartyId,
    /// Who draws the noise, to protect its own data.
    pub drawer: PartyId,
}

/// One noise: its law and the width it is entered in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draw {
    /// The variance, in squared units of the noised integer.
    #[serde(with = "as_text")]
    pub sigma2: Rational,
    /// Bits, sign included.
    pub width: u32,
}

/// A rational as the text `p/q`.
mod as_text {
    use super::Rational;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &Rational, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Rational, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom("a rational is written p/q"))
    }
}

/// A checked agreement on context, noises and number of candidates. Both sides hold an equal one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    pub(crate) context: NoiseContext,
    pub(crate) draws: Vec<Draw>,
    pub(crate) candidates: usize,
}

impl Setup {
    /// Bytes of the message that names the index.
    pub const INDEX_BYTES: usize = 2;

    /// Checks and fixes an agreement.
    ///
    /// # Errors
    /// When `candidates` is not in 2..=[`limits::CANDIDATES`], there is no draw or more than [`DRAWS`], a
    /// width does not suit its variance, or drawer and viewer are one.
    pub fn new(context: NoiseContext, draws: Vec<Draw>, candidates: usize) -> Result<Self, Error> {
        if candidates < 2 {
            return Err(Error::misuse("cut-and-choose needs at least 2 candidates"));
        }
        let setup = Self { context, draws, candidates };
        setup.laws()?;
        Ok(setup)
    }

    /// The laws of the draws, after all checks.
    fn laws(&self) -> Result<Vec<DiscreteGaussian>, Error> {
        if self.candidates == 0 {
            return Err(Error::misuse("noise needs at least one candidate"));
        }
        let over = |name, value: usize, cap: usize| Err(Error::limit(name, value as u64, cap as u64));
        if self.candidates > limits::CANDIDATES {
            return over("CANDIDATES", self.candidates, limits::CANDIDATES);
        }
        if self.draws.len() > DRAWS {
            return over("release::choose::DRAWS", self.draws.len(), DRAWS);
        }
        if self.context.data.len() > limits::PARTIES {
            return over("PARTIES", self.context.data.len(), limits::PARTIES);
        }
        if self.draws.is_empty() || self.context.viewer == self.context.drawer {
            return Err(Error::misuse("cut-and-choose needs a draw, and two parties"));
        }
        let law = |draw: &Draw| {
            let law = DiscreteGaussian::new(&draw.sigma2)?;
            law.check_width(draw.width)?;
            Ok(law)
        };
        self.draws.iter().map(law).collect()
    }

    /// What the noise is for.
    #[must_use]
    pub fn context(&self) -> &NoiseContext {
        &self.context
    }

    /// The noises of one candidate, in order.
    #[must_use]
    pub fn draws(&self) -> &[Draw] {
        &self.draws
    }

    /// k.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// Bytes of the drawer's first message: k commitments of 32 bytes, j ascending.
    #[must_use]
    pub fn commitments_bytes(&self) -> usize {
        32 * self.candidates
    }

    /// Bytes of the checker's answer: k seeds of 32 bytes, j ascending.
    #[must_use]
    pub fn seeds_bytes(&self) -> usize {
        32 * self.candidates
    }

    /// Bytes of the openings: seed and blinding of every j but the index, j ascending.
    #[must_use]
    pub fn openings_bytes(&self) -> usize {
        64 * (self.candidates - 1)
    }

    /// A hash of everything agreed: what a ledger entry and a commitment are bound to.
    #[must_use]
    pub fn id(&self) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key("tacit noise setup 1");
        self.absorb_context(&mut hasher);
        hasher.update(&self.context.session);
        hasher.update(&(self.candidates as u64).to_le_bytes());
        hasher.update(&(self.draws.len() as u64).to_le_bytes());
        for draw in &self.draws {
            let sigma2 = draw.sigma2.to_string();
            hasher.update(&(sigma2.len() as u64).to_le_bytes()).update(sigma2.as_bytes());
            hasher.update(&draw.width.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// Study, release, data sets, viewer, role: fixed lengths but for the data sets, which are counted.
    fn absorb_context(&self, hasher: &mut blake3::Hasher) {
        let context = &self.context;
        hasher.update(&context.study).update(&context.release);
        hasher.update(&(context.data.len() as u64).to_le_bytes());
        for hash in &context.data {
            hasher.update(hash);
        }
        hasher.update(&[context.viewer.0, context.drawer.0]);
    }

    /// The commitment to the drawer's seed j.
    pub(crate) fn commitment(&self, id: &Bytes32, j: usize, opening: &Opening) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key("tacit noise commitment 1");
        hasher.update(id).update(&[self.context.drawer.0]).update(&(j as u64).to_le_bytes());
        hasher.update(&opening.seed).update(&opening.blinding);
        *hasher.finalize().as_bytes()
    }

    /// The noises of candidate j: key_j seeds one stream, and the draws read it in order.
    pub(crate) fn noises(&self, j: usize, drawer: &Bytes32, checker: &Bytes32) -> Result<Vec<i128>, Error> {
        let mut hasher = blake3::Hasher::new_derive_key("tacit noise key 1");
        self.absorb_context(&mut hasher);
        hasher.update(&(j as u64).to_le_bytes()).update(drawer).update(checker);
        let mut rng = Seed::from_bytes(*hasher.finalize().as_bytes()).into_rng();
        let laws = self.laws()?;
        laws.iter().zip(&self.draws).map(|(law, draw)| law.sample_within(&mut rng, draw.width)).collect()
    }
}

/// Seed and blinding of one commitment.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub seed: Bytes32,
    pub blinding: Bytes32,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.seed.zeroize();
        self.blinding.zeroize();
    }
}

/// Which half of the cut-and-choose this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutAndChooseSide {
    /// Draws and enters the noise.
    Drawer,
    /// Checks it and sees the outputs.
    Checker,
}

/// How a drawer deviated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deviation {
    /// The opening of this candidate does not fit its commitment.
    Opening {
        /// j.
        candidate: usize,
    },
    /// The computation revealed another noise than the seeds give.
    Noise {
        /// j.
        candidate: usize,
        /// Position among the draws.
        draw: usize,
    },
    /// No openings, or not as many bytes as openings have, after the index was named.
    Silence,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TranscriptEnd {
    /// Drawer: the openings were handed out. Checker: everything agreed.
    Done,
    /// The drawer deviated. Nothing resumes; a later attempt has new noise.
    Detected(Deviation),
}

/// The record of one cut-and-choose, complete at every state. Write it to stable storage before the message
/// of the state goes out. The drawer's holds its seeds: keep it as a key file.
#[derive(Clone, Serialize, Deserialize)]
pub struct Transcript {
    format: String,
    pub(crate) side: CutAndChooseSide,
    pub(crate) setup: Setup,
    pub(crate) commitments: Vec<Bytes32>,
    /// The drawer's own; empty for the checker.
    pub(crate) openings: Vec<Opening>,
    pub(crate) seeds: Vec<Bytes32>,
    pub(crate) entered: Option<Bytes32>,
    pub(crate) ledger_entry: Option<u64>,
    pub(crate) index: Option<u16>,
    pub(crate) outcome: Option<TranscriptEnd>,
}

impl Transcript {
    pub(crate) fn new(side: CutAndChooseSide, setup: Setup, commitments: Vec<Bytes32>) -> Self {
        Self {
            format: FORMAT.into(),
            side,
            setup,
            commitments,
            openings: Vec::new(),
            seeds: Vec::new(),
            entered: None,
            ledger_entry: None,
            index: None,
            outcome: None,
        }
    }

    /// Which half this is.
    #[must_use]
    pub fn side(&self) -> CutAndChooseSide {
        self.side
    }

    /// What it is about.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Whether both sides' seeds are there, which fix the noise.
    #[must_use]
    pub fn is_seeded(&self) -> bool {
        !self.seeds.is_empty()
    }

    /// The index, once named.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index.map(usize::from)
    }

    /// How it ended, once it did.
    #[must_use]
    pub fn outcome(&self) -> Option<TranscriptEnd> {
        self.outcome
    }

    /// A hash of what both sides hold (agreement, commitments, the checker's seeds, the entered-noise
    /// transcript, the index): equal on both sides at the same step. This is what they sign.
    #[must_use]
    pub fn shared_digest(&self) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key("tacit noise transcript 1");
        hasher.update(&self.setup.id());
        for list in [&self.commitments, &self.seeds] {
            hasher.update(&(list.len() as u64).to_le_bytes());
            for item in list {
                hasher.update(item);
            }
        }
        hasher.update(&[u8::from(self.entered.is_some())]).update(&self.entered.unwrap_or_default());
        hasher
            .update(&[u8::from(self.index.is_some())])
            .update(&self.index.unwrap_or_default().to_le_bytes());
        *hasher.finalize().as_bytes()
    }

    /// Checks a record read back from storage against what the job is about to do.
    ///
    /// # Errors
    /// When it is not a record of this agreement; when it was of *other data* (the same noise on two data
    /// sets gives their exact difference away); when cheating was detected in it; or when it is inconsistent.
    pub(crate) fn check(&self, setup: &Setup) -> Result<(), Error> {
        if self.format != FORMAT {
            return Err(Error::input("the noise transcript is of another format version"));
        }
        if self.setup.context.data != setup.context.data {
            return Err(Error::input(
                "these noise seeds were used with other data: the same noise on two data sets reveals their \
                 exact difference; start a new release, with a new debit",
            ));
        }
        if &self.setup != setup {
            return Err(Error::input(
                "the noise transcript belongs to another study, release, session or setting; resume that one",
            ));
        }
        if let Some(TranscriptEnd::Detected(_)) = self.outcome {
            return Err(Error::input(
                "cheating with noise was detected in this attempt of the release; a later attempt has new \
                 noise",
            ));
        }
        self.setup.laws()?;
        let k = setup.candidates;
        let whole = |len: usize| len == k || len == 0;
        let consistent = self.commitments.len() == k
            && whole(self.seeds.len())
            && self.openings.len() == if self.side == CutAndChooseSide::Drawer { k } else { 0 }
            && (self.entered.is_none() || self.seeds.len() == k)
            && (self.index.is_none() || self.entered.is_some() && self.ledger_entry.is_some())
            && self.index().is_none_or(|i| i < k)
            && (self.outcome.is_none() || self.index.is_some());
        if consistent { Ok(()) } else { Err(Error::input("the noise transcript is damaged")) }
    }
}

/// Shows where it stands and nothing of the seeds.
impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("side", &self.side)
            .field("entered", &self.entered.is_some())
            .field("index", &self.index)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

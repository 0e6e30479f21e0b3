//! What a statement can say, and the bytes of each.

use crate::acts::{Act, RunOutcome};
use crate::steward::StewardSeal;
use crate::{DEBITS, RUNS_ANEW, RUNS_IN_ALL, TEXT_CHARS, WINDOWS};
use base::limits::{PARTIES, STUDY_BYTES};
use net::identity::KeyFingerprint;
use release::rational;

/// Bytes of a rational number as text: two integers below 2^128 and a stroke.
const RATIONAL_BYTES: usize = 80;
/// Bytes of the kind or code of an error.
const CODE_BYTES: usize = 40;

/// What a statement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Here is a study.
    Propose(Box<ProposedStudy>),
    /// The author takes part, on these terms, once.
    Consent(Box<ConsentTerms>),
    /// No; final.
    Refuse(ClosingReason),
    /// The author takes it back; final.
    Withdraw(ClosingReason),
    /// A question or an answer.
    Note(String),
    /// The author's process can begin a run.
    Ready(RunOffer),
    /// The author's process runs.
    Started {
        /// Which run.
        run: u32,
        /// The nonces of all parties' `ready`, in the order of their fingerprints.
        nonces: Vec<[u8; 16]>,
    },
    /// A run is over for the author.
    Ended(RunEnd),
    /// Before this run begins the author's own operator has to allow a further attempt.
    Asks {
        /// Which run.
        run: u32,
    },
    /// The author has seen the log of another party up to an entry.
    Witness {
        /// Whose log.
        of: KeyFingerprint,
        /// The newest entry's number.
        entry: u64,
        /// Its hash.
        hash: [u8; 32],
    },
}

/// What `propose` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedStudy {
    /// The study file, in the words of `study::canonical`.
    pub text: String,
    /// The hash of the program that it becomes.
    pub program: [u8; 32],
    /// For people, at most [`TEXT_CHARS`].
    pub note: String,
    /// Until when it may be consented to: milliseconds since 1970, the author's clock.
    pub expires_ms: u64,
    /// When the author wishes it to run; empty: at any time.
    pub windows: Vec<RunWindow>,
    /// Random: two proposals of the same are two.
    pub nonce: [u8; 16],
}

/// What `consent` holds: everything that the author agrees to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentTerms {
    /// The hash of the program, as the author's own software makes it of the study.
    pub program: [u8; 32],
    /// The most that each viewer is charged on the author's data.
    pub charges: Vec<ChargeBound>,
    /// [`crate::digest_of_words`] of the text that the steward read.
    pub words: [u8; 32],
    /// [`crate::commit_to_data`] of the version of the data that was checked, and of their lineage.
    pub data: [u8; 32],
    /// Until when a run may begin: milliseconds since 1970, the author's clock.
    pub expires_ms: u64,
    /// When runs may begin; empty: at any time.
    pub windows: Vec<RunWindow>,
    /// Runs that may begin anew, 1 to [`RUNS_ANEW`]; one that goes on where another broke off is none.
    pub runs: u8,
    /// People who agreed: 1 or 2; 0: a rule of the organisation did, without a person.
    pub persons: u8,
    /// What a steward signed with a key that need not be on the machine.
    pub seal: Option<StewardSeal>,
}

/// The most that one viewer is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeBound {
    /// Who sees it; none: everybody.
    pub viewer: Option<KeyFingerprint>,
    /// zCDP, `p/q` reduced.
    pub rho: String,
    /// Likewise.
    pub delta: String,
}

/// A span in which runs may begin, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunWindow {
    /// From when on.
    pub from_ms: u64,
    /// Until when.
    pub until_ms: u64,
}

/// Why a proposal is over for the author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosingReason {
    /// Of which sort.
    pub code: ClosingCode,
    /// In the author's words, 1 to [`TEXT_CHARS`] characters.
    pub text: String,
}

/// Sorts of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClosingCode {
    /// A rule of the author's policy.
    Policy = 0,
    /// The privacy budget.
    Budget = 1,
    /// The author's data do not do, or have changed.
    Data = 2,
    /// What it is for.
    Purpose = 3,
    /// Its time ran out.
    Expired = 4,
    /// Another one.
    Other = 5,
}

/// What `ready` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOffer {
    /// Which run, from 1.
    pub run: u32,
    /// Whether the author has what an earlier run left, and goes on from there.
    pub goes_on: bool,
    /// Random.
    pub nonce: [u8; 16],
    /// When it can begin: milliseconds since 1970, the author's clock.
    pub earliest_ms: u64,
    /// Until when.
    pub latest_ms: u64,
    /// Where the author listens, if it does, out of the ports that the peer's own file allows; else 0.
    pub port: u16,
}

/// What `ended` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Which run.
    pub run: u32,
    /// How.
    pub outcome: RunOutcome,
    /// The kind of its error (`docs/cli.md`); empty where there was none. Never a message.
    pub kind: String,
    /// Its code, likewise.
    pub code: String,
    /// What this run charged in the author's ledger.
    pub debits: Vec<DebitLine>,
}

/// A debit of the author's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebitLine {
    /// Of which release.
    pub release: [u8; 32],
    /// zCDP, `p/q` reduced.
    pub rho: String,
    /// Likewise.
    pub delta: String,
}

impl ClosingCode {
    /// All of them, in the order of their bytes.
    pub const ALL: [Self; 6] =
        [Self::Policy, Self::Budget, Self::Data, Self::Purpose, Self::Expired, Self::Other];
}

/// The viewer of a charge that everybody sees, on the wire.
const EVERYBODY: [u8; 16] = [0; 16];

impl Said {
    /// The byte that stands for its kind.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Propose(_) => 0,
            Self::Consent(_) => 1,
            Self::Refuse(_) => 2,
            Self::Withdraw(_) => 3,
            Self::Note(_) => 4,
            Self::Ready(_) => 5,
            Self::Started { .. } => 6,
            Self::Ended(_) => 7,
            Self::Asks { .. } => 8,
            Self::Witness { .. } => 9,
        }
    }

    /// What of it the state depends on.
    #[must_use]
    pub fn act(&self) -> Act {
        match self {
            Self::Propose(_) => Act::Propose,
            Self::Consent(terms) => Act::Consent { runs: terms.runs },
            Self::Refuse(_) => Act::Refuse,
            Self::Withdraw(_) => Act::Withdraw,
            Self::Note(_) => Act::Note,
            Self::Ready(offer) => Act::Ready { run: offer.run, goes_on: offer.goes_on },
            Self::Started { run, .. } => Act::Started { run: *run },
            Self::Ended(end) => Act::Ended { run: end.run, outcome: end.outcome },
            Self::Asks { run } => Act::Asks { run: *run },
            Self::Witness { .. } => Act::Witness,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Propose(study) => study.encode(out),
            Self::Consent(terms) => terms.encode(out, true),
            Self::Refuse(reason) | Self::Withdraw(reason) => {
                out.push(reason.code as u8);
                put_text(out, &reason.text);
            }
            Self::Note(text) => put_text(out, text),
            Self::Ready(offer) => {
                out.extend(offer.run.to_le_bytes());
                out.push(offer.goes_on.into());
                out.extend(offer.nonce);
                out.extend(offer.earliest_ms.to_le_bytes());
                out.extend(offer.latest_ms.to_le_bytes());
                out.extend(offer.port.to_le_bytes());
            }
            Self::Started { run, nonces } => {
                out.extend(run.to_le_bytes());
                out.push(count(nonces.len()));
                nonces.iter().for_each(|nonce| out.extend(nonce));
            }
            Self::Ended(end) => {
                out.extend(end.run.to_le_bytes());
                out.push(end.outcome as u8);
                put_text(out, &end.kind);
                put_text(out, &end.code);
                out.push(count(end.debits.len()));
                for debit in &end.debits {
                    out.extend(debit.release);
                    put_text(out, &debit.rho);
                    put_text(out, &debit.delta);
                }
            }
            Self::Asks { run } => out.extend(run.to_le_bytes()),
            Self::Witness { of, entry, hash } => {
                out.extend(of.bytes());
                out.extend(entry.to_le_bytes());
                out.extend(hash);
            }
        }
    }

    /// Takes what follows a kind; nothing where it is none, or beyond a limit.
    pub(crate) fn decode(kind: u8, from: &mut Source<'_>) -> Option<Self> {
        Some(match kind {
            0 => Self::Propose(Box::new(ProposedStudy {
                text: from.text(STUDY_BYTES)?,
                program: from.bytes()?,
                note: from.people(0)?,
                expires_ms: from.number()?,
                windows: from.windows()?,
                nonce: from.bytes()?,
            })),
            1 => Self::Consent(Box::new(ConsentTerms::decode(from)?)),
            2 => Self::Refuse(from.reason()?),
            3 => Self::Withdraw(from.reason()?),
            4 => Self::Note(from.people(1)?),
            5 => Self::Ready(RunOffer {
                run: from.run()?,
                goes_on: from.flag()?,
                nonce: from.bytes()?,
                earliest_ms: from.number()?,
                latest_ms: from.number()?,
                port: u16::from_le_bytes(from.bytes()?),
            }),
            6 => Self::Started {
                run: from.run()?,
                nonces: {
                    let [parties] = from.bytes()?;
                    let fits = (2..=PARTIES).contains(&usize::from(parties));
                    (0..parties).map(|_| from.bytes()).collect::<Option<Vec<_>>>().filter(|_| fits)?
                },
            },
            7 => Self::Ended(RunEnd {
                run: from.run()?,
                outcome: RunOutcome::ALL.get(usize::from(from.bytes::<1>()?[0])).copied()?,
                kind: from.code()?,
                code: from.code()?,
                debits: from.debits()?,
            }),
            8 => Self::Asks { run: from.run()? },
            9 => Self::Witness {
                of: KeyFingerprint::from_bytes(from.bytes()?),
                entry: from.number()?,
                hash: from.bytes()?,
            },
            _ => return None,
        })
    }
}

impl ProposedStudy {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_text(out, &self.text);
        out.extend(self.program);
        put_text(out, &self.note);
        out.extend(self.expires_ms.to_le_bytes());
        put_windows(out, &self.windows);
        out.extend(self.nonce);
    }
}

impl ConsentTerms {
    /// Its bytes; what a steward signs is without the seal.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, with_seal: bool) {
        out.extend(self.program);
        out.push(count(self.charges.len()));
        for charge in &self.charges {
            out.extend(charge.viewer.map_or(EVERYBODY, |viewer| viewer.bytes()));
            put_text(out, &charge.rho);
            put_text(out, &charge.delta);
        }
        out.extend(self.words);
        out.extend(self.data);
        out.extend(self.expires_ms.to_le_bytes());
        put_windows(out, &self.windows);
        out.extend([self.runs, self.persons]);
        match self.seal.as_ref().filter(|_| with_seal) {
            None => out.push(0),
            Some(seal) => {
                out.push(1);
                out.extend(seal.bytes());
            }
        }
    }

    pub(crate) fn decode(from: &mut Source<'_>) -> Option<Self> {
        let program = from.bytes()?;
        let [charges] = from.bytes()?;
        if usize::from(charges) > PARTIES + 1 {
            return None;
        }
        let charges = (0..charges).map(|_| from.charge()).collect::<Option<Vec<_>>>()?;
        let viewers = charges.iter().map(|charge| charge.viewer.map_or(EVERYBODY, |viewer| viewer.bytes()));
        if !viewers.clone().zip(viewers.skip(1)).all(|(one, next)| one < next) {
            return None;
        }
        let (words, data, expires_ms) = (from.bytes()?, from.bytes()?, from.number()?);
        let windows = from.windows()?;
        let [runs, persons] = from.bytes()?;
        let seal = if from.flag()? { Some(StewardSeal::of(from.bytes()?)) } else { None };
        let fits = (1..=RUNS_ANEW).contains(&runs) && persons <= 2;
        fits.then_some(Self { program, charges, words, data, expires_ms, windows, runs, persons, seal })
    }
}

/// How many there are, where a limit below 256 holds; more encode to what no decoder takes.
fn count(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_windows(out: &mut Vec<u8>, windows: &[RunWindow]) {
    out.push(count(windows.len()));
    for window in windows {
        out.extend(window.from_ms.to_le_bytes());
        out.extend(window.until_ms.to_le_bytes());
    }
}

/// Bytes that are still to be read.
pub(crate) struct Source<'a>(pub &'a [u8]);

impl Source<'_> {
    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn number(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub fn short(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn run(&mut self) -> Option<u32> {
        self.short().filter(|run| (1..=RUNS_IN_ALL).contains(run))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.bytes()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    pub fn text(&mut self, most: usize) -> Option<String> {
        let length = usize::try_from(self.short()?).ok().filter(|length| *length <= most)?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(head.to_vec()).ok()
    }

    /// A text for people.
    fn people(&mut self, least: usize) -> Option<String> {
        let fits = |text: &String| (least..=TEXT_CHARS).contains(&text.chars().count());
        self.text(4 * TEXT_CHARS).filter(fits)
    }

    fn reason(&mut self) -> Option<ClosingReason> {
        let [code] = self.bytes()?;
        let code = *ClosingCode::ALL.get(usize::from(code))?;
        Some(ClosingReason { code, text: self.people(1)? })
    }

    /// A word of a program, not of a person: what an error message is made of cannot come through.
    fn code(&mut self) -> Option<String> {
        let plain =
            |text: &String| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        self.text(CODE_BYTES).filter(plain)
    }

    /// A rational number in its one form.
    fn rational(&mut self) -> Option<String> {
        self.text(RATIONAL_BYTES).filter(|text| rational::parse(text).is_some_and(|r| r.to_string() == *text))
    }

    fn charge(&mut self) -> Option<ChargeBound> {
        let viewer = self.bytes()?;
        let viewer = (viewer != EVERYBODY).then(|| KeyFingerprint::from_bytes(viewer));
        Some(ChargeBound { viewer, rho: self.rational()?, delta: self.rational()? })
    }

    fn debits(&mut self) -> Option<Vec<DebitLine>> {
        let [debits] = self.bytes()?;
        if usize::from(debits) > DEBITS {
            return None;
        }
        let mut debit =
            || Some(DebitLine { release: self.bytes()?, rho: self.rational()?, delta: self.rational()? });
        (0..debits).map(|_| debit()).collect()
    }

    /// Spans in order, apart from each other.
    fn windows(&mut self) -> Option<Vec<RunWindow>> {
        let [windows] = self.bytes()?;
        if usize::from(windows) > WINDOWS {
            return None;
        }
        let mut window = || Some(RunWindow { from_ms: self.number()?, until_ms: self.number()? });
        let all = (0..windows).map(|_| window()).collect::<Option<Vec<_>>>()?;
        let ordered = all.iter().all(|w| w.from_ms < w.until_ms);
        let apart = all.iter().zip(all.iter().skip(1)).all(|(one, next)| one.until_ms < next.from_ms);
        (ordered && apart).then_some(all)
    }
}

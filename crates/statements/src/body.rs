//! A statement without its signature, and its bytes.

use crate::STATEMENT_VERSION;
use crate::said::{ProposedStudy, Said, Source};
use base::hex;
use base::limits::PARTIES;
use net::identity::{KeyFingerprint, PUBLIC_KEY_BYTES};
use std::fmt;
use study::StudyHash;

/// What the digest of a statement is a hash for.
const DIGEST: &str = "tacit 2026-12 statement v1";
/// What the name of a proposal is a hash for.
const PROPOSAL: &str = "tacit 2026-12 proposal v1";

/// Names one proposal: a hash of who proposes and of all that is proposed, a nonce included. So a statement
/// about it is about one text under one author, and two proposals of one study are two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposalId(pub [u8; 16]);

impl ProposalId {
    /// The name of what this author proposes.
    #[must_use]
    pub fn of(author: &[u8; PUBLIC_KEY_BYTES], study: &StudyHash, proposed: &ProposedStudy) -> Self {
        let mut bytes = [&author[..], study.as_bytes()].concat();
        proposed.encode(&mut bytes);
        let mut id = [0; 16];
        id.copy_from_slice(&blake3::derive_key(PROPOSAL, &bytes)[..16]);
        Self(id)
    }
}

impl fmt::Debug for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementBody {
    /// The study that is proposed.
    pub study: StudyHash,
    /// Which proposal of it.
    pub proposal: ProposalId,
    /// The author's Ed25519 key.
    pub author: [u8; PUBLIC_KEY_BYTES],
    /// All other parties, in ascending order.
    pub recipients: Vec<KeyFingerprint>,
    /// How many statements of this author on this proposal were before.
    pub number: u32,
    /// The digest of the one before; zeros for the first.
    pub previous: [u8; 32],
    /// What the author had of the others' statements when it made this one.
    pub seen: [u8; 32],
    /// The author's clock, milliseconds since 1970. For people: nothing is decided by it.
    pub at_ms: u64,
    /// What it says.
    pub said: Said,
}

impl StatementBody {
    /// The bytes that the digest is of.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = STATEMENT_VERSION.to_le_bytes().to_vec();
        out.push(self.said.kind());
        out.extend(self.study.as_bytes());
        out.extend(self.proposal.0);
        out.extend(self.author);
        out.push(u8::try_from(self.recipients.len()).unwrap_or(u8::MAX));
        self.recipients.iter().for_each(|to| out.extend(to.bytes()));
        out.extend(self.number.to_le_bytes());
        out.extend(self.previous);
        out.extend(self.seen);
        out.extend(self.at_ms.to_le_bytes());
        self.said.encode(&mut out);
        out
    }

    /// Reads all of `bytes`; nothing where they are no statement of this version, or another form of one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Source(bytes);
        if u16::from_le_bytes(from.bytes()?) != STATEMENT_VERSION {
            return None;
        }
        let [kind] = from.bytes()?;
        let (study, proposal) = (StudyHash::from_bytes(from.bytes()?), ProposalId(from.bytes()?));
        let author = from.bytes()?;
        let [others] = from.bytes()?;
        if !(1..PARTIES).contains(&usize::from(others)) {
            return None;
        }
        let recipient = |_| from.bytes().map(KeyFingerprint::from_bytes);
        let recipients = (0..others).map(recipient).collect::<Option<Vec<_>>>()?;
        let ordered = recipients.iter().zip(recipients.iter().skip(1)).all(|(one, next)| one < next);
        if !ordered || recipients.contains(&KeyFingerprint::of_ed25519(&author)) {
            return None;
        }
        let (number, previous, seen) = (from.short()?, from.bytes()?, from.bytes()?);
        let at_ms = from.number()?;
        let said = Said::decode(kind, &mut from)?;
        let body = Self { study, proposal, author, recipients, number, previous, seen, at_ms, said };
        (from.0.is_empty() && (number == 0) == (body.previous == [0; 32])).then_some(body)
    }

    /// What stands for it in the next statement, and is signed.
    pub(crate) fn digest(&self) -> [u8; 32] {
        blake3::derive_key(DIGEST, &self.encode())
    }
}

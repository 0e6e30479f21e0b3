//! Messages between two services: a length, a kind, content. One encoding of each; every count has a limit.

use net::KeyFingerprint;
use statements::{ProposalId, SIGNED_BYTES, StatementHead};

/// Bytes of a message at most.
pub const MESSAGE_BYTES: usize = SIGNED_BYTES + 64;
/// Proposals in one `heads`.
pub const HEADS: u32 = 1_000;
/// Bytes of a code or the name of a version.
const WORD_BYTES: usize = 40;
/// Parties of one proposal.
const PARTIES: usize = base::limits::PARTIES;

/// What one service tells another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkMessage {
    /// How far the sender has the chains of the proposals that are open for both.
    Heads(Vec<(ProposalId, Vec<StatementHead>)>),
    /// The sender lacks the receiver's own statements about a proposal, from this number on.
    Want {
        /// Which.
        proposal: ProposalId,
        /// From where on.
        from: u32,
    },
    /// A signed statement.
    Statement(Vec<u8>),
    /// It is kept: the sender of it need not send it again.
    Have([u8; 32]),
    /// It is not kept, and why.
    No {
        /// Which.
        digest: [u8; 32],
        /// From which number on others are missing (`gap`).
        from: u32,
        /// A word.
        code: String,
    },
    /// The sender's clock, and the clock of the ping that it answers; 0 where it asks.
    Ping {
        /// Milliseconds since 1970.
        clock_ms: u64,
        /// As the other side said.
        answers_ms: u64,
        /// The sender's software.
        version: String,
    },
    /// Nothing more for so many seconds.
    Busy(u32),
    /// Where the sender's audit log stands, for the receiver to say that it has seen it.
    Log {
        /// The number of its newest entry.
        entry: u64,
        /// The hash of that.
        hash: [u8; 32],
    },
    /// The answer to `Heads`: the proposals about which the sender has more of what the receiver has said
    /// than the receiver.
    Ahead(Vec<ProposalId>),
}

impl LinkMessage {
    /// Its bytes, without the length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Heads(all) => {
                out.push(0);
                out.extend(number(all.len()).to_le_bytes());
                for (proposal, heads) in all {
                    out.extend(proposal.0);
                    out.push(u8::try_from(heads.len()).unwrap_or(u8::MAX));
                    for head in heads {
                        out.extend(head.author.bytes());
                        out.extend(head.count.to_le_bytes());
                        out.extend(head.digest);
                    }
                }
            }
            Self::Want { proposal, from } => {
                out.push(1);
                out.extend(proposal.0);
                out.extend(from.to_le_bytes());
            }
            Self::Statement(bytes) => {
                out.push(2);
                out.extend(bytes);
            }
            Self::Have(digest) => {
                out.push(3);
                out.extend(digest);
            }
            Self::No { digest, from, code } => {
                out.push(4);
                out.extend(digest);
                out.extend(from.to_le_bytes());
                out.extend(code.as_bytes());
            }
            Self::Ping { clock_ms, answers_ms, version } => {
                out.push(5);
                out.extend(clock_ms.to_le_bytes());
                out.extend(answers_ms.to_le_bytes());
                out.extend(version.as_bytes());
            }
            Self::Busy(seconds) => {
                out.push(6);
                out.extend(seconds.to_le_bytes());
            }
            Self::Log { entry, hash } => {
                out.push(7);
                out.extend(entry.to_le_bytes());
                out.extend(hash);
            }
            Self::Ahead(all) => {
                out.push(8);
                out.extend(number(all.len()).to_le_bytes());
                all.iter().for_each(|proposal| out.extend(proposal.0));
            }
        }
        out
    }

    /// Reads all of `bytes`; nothing where they are no message, or beyond a limit.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut from = rest;
        let message = match kind {
            0 => Self::Heads((0..listed(&mut from)?).map(|_| heads(&mut from)).collect::<Option<_>>()?),
            1 => Self::Want {
                proposal: ProposalId(take(&mut from)?),
                from: u32::from_le_bytes(take(&mut from)?),
            },
            2 => Self::Statement(std::mem::take(&mut from).to_vec()),
            3 => Self::Have(take(&mut from)?),
            4 => Self::No {
                digest: take(&mut from)?,
                from: u32::from_le_bytes(take(&mut from)?),
                code: word(&mut from)?,
            },
            5 => Self::Ping {
                clock_ms: u64::from_le_bytes(take(&mut from)?),
                answers_ms: u64::from_le_bytes(take(&mut from)?),
                version: word(&mut from)?,
            },
            6 => Self::Busy(u32::from_le_bytes(take(&mut from)?)),
            7 => Self::Log { entry: u64::from_le_bytes(take(&mut from)?), hash: take(&mut from)? },
            8 => {
                let ids = (0..listed(&mut from)?).map(|_| take(&mut from).map(ProposalId));
                Self::Ahead(ids.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        from.is_empty().then_some(message)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*bytes)
}

/// How many proposals are listed.
fn listed(from: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(from)?)).filter(|count| *count <= HEADS)
}

/// A word to the end: printable ASCII.
fn word(from: &mut &[u8]) -> Option<String> {
    let text = std::str::from_utf8(std::mem::take(from)).ok()?;
    (text.len() <= WORD_BYTES && text.bytes().all(|b| b.is_ascii_graphic())).then(|| text.to_owned())
}

fn heads(from: &mut &[u8]) -> Option<(ProposalId, Vec<StatementHead>)> {
    let proposal = ProposalId(take(from)?);
    let [parties] = take(from)?;
    if usize::from(parties) > PARTIES {
        return None;
    }
    let head = |_| {
        let author = KeyFingerprint::from_bytes(take(from)?);
        Some(StatementHead { author, count: u32::from_le_bytes(take(from)?), digest: take(from)? })
    };
    Some((proposal, (0..parties).map(head).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<LinkMessage> {
        let head = StatementHead { author: KeyFingerprint::from_bytes([1; 16]), count: 3, digest: [2; 32] };
        vec![
            LinkMessage::Heads(vec![(ProposalId([3; 16]), vec![head, head]), (ProposalId([4; 16]), vec![])]),
            LinkMessage::Want { proposal: ProposalId([5; 16]), from: 6 },
            LinkMessage::Statement(vec![7; 100]),
            LinkMessage::Have([8; 32]),
            LinkMessage::No { digest: [9; 32], from: 10, code: "gap".into() },
            LinkMessage::Ping { clock_ms: 11, answers_ms: 12, version: "0.1.0".into() },
            LinkMessage::Busy(13),
            LinkMessage::Log { entry: 14, hash: [15; 32] },
            LinkMessage::Ahead(vec![ProposalId([16; 16]), ProposalId([17; 16])]),
        ]
    }

    #[test]
    fn a_message_has_one_form() {
        for message in messages() {
            let bytes = message.encode();
            assert_eq!(LinkMessage::decode(&bytes), Some(message.clone()));
            let free = matches!(message, LinkMessage::Statement(_));
            let word = matches!(message, LinkMessage::No { .. } | LinkMessage::Ping { .. });
            assert!(free || word || LinkMessage::decode(&bytes[..bytes.len() - 1]).is_none());
            assert!(free || LinkMessage::decode(&[&bytes[..], &[0]].concat()).is_none());
        }
    }

    /// What is changed anywhere decodes to nothing, or to what is encoded like that.
    #[test]
    fn a_changed_byte_is_another_message_or_none() {
        for bytes in messages().iter().map(LinkMessage::encode) {
            for (at, mask) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, 1 << bit))) {
                let mut other = bytes.clone();
                other[at] ^= mask;
                if let Some(message) = LinkMessage::decode(&other) {
                    assert_eq!(message.encode(), other);
                }
            }
        }
    }

    #[test]
    fn what_is_beyond_a_limit_is_no_message() {
        let mut many = vec![0];
        many.extend((HEADS + 1).to_le_bytes());
        assert_eq!(LinkMessage::decode(&many), None);
        let code = "x".repeat(WORD_BYTES + 1);
        assert_eq!(LinkMessage::decode(&LinkMessage::No { digest: [0; 32], from: 0, code }.encode()), None);
        let version = "a\u{202e}b".to_owned();
        let ping = LinkMessage::Ping { clock_ms: 0, answers_ms: 0, version };
        assert_eq!(LinkMessage::decode(&ping.encode()), None);
        assert!(LinkMessage::decode(&[]).is_none() && LinkMessage::decode(&[8]).is_none());
    }
}

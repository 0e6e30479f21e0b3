//! The first words on every connection: who speaks, in which format, about which agreement and session.
//!
//! A hello has 96 bytes, all numbers little endian:
//!
//! | bytes | control connection | worker connection | word to begin | lane ([`crate::lanes`]) | routes | services ([`crate::services`]) |
//! |---|---|---|---|---|---|---|
//! | 0..8 | `TACIT/ch` | the same | the same | the same | the same | the same |
//! | 8..10 | format version | the same | the same | the same | the same | the same |
//! | 10 | kind: 1 | 2 | 3 | 4 | 5 | 6 |
//! | 11, 12 | sender and receiver: party indices | the same | the same | the same | zero | zero |
//! | 13 | verdict: 0 in a question (10 where it takes no part), otherwise why (1 = taken) | the same | the same | 0 or 1 | 0, 1 or 5 | 0, 1 or 5 |
//! | 14..16 | zero | the same | the same | the same | the same | the same |
//! | 16..48 | the sender's nonce | the session id | zero | the sender's nonce | zero | zero |
//! | 48..80 | the sender's agreement (hash of the study) | zero | the agreement that is to begin | the run | zero | zero |
//! | 80..92 | zero | lane, first lane and number of lanes asked for | zero | lane, generation, zero | zero | zero |
//! | 92..96 | zero | zero | zero | zero | zero | zero |
//!
//! Routes are those of a gate ([`crate::gate`]).

use base::PartyId;

/// Version of everything net puts on the wire. Two sides with different versions part at once.
pub const FORMAT_VERSION: u16 = 9;

/// Bytes of a hello.
pub(crate) const HELLO_BYTES: usize = 96;

const MAGIC: [u8; 8] = *b"TACIT/ch";

/// A question of the dialling side or the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub version: u16,
    pub from: PartyId,
    pub to: PartyId,
    pub verdict: HelloVerdict,
    pub topic: Topic,
}

/// What the connection is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Control { nonce: [u8; 32], agreement: [u8; 32] },
    Worker { session: [u8; 32], lane: u32, first: u32, count: u32 },
    Begin { agreement: [u8; 32] },
    Lane { nonce: [u8; 32], run: [u8; 32], lane: u32, generation: u32 },
    Routes,
    Services,
}

/// The listening side's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum HelloVerdict {
    Question = 0,
    Taken = 1,
    Version = 2,
    Roster = 3,
    Agreement = 4,
    Busy = 5,
    Session = 6,
    Lane = 7,
    Lanes = 8,
    /// Nothing has begun here; come again.
    Wait = 9,
    /// The sender takes no part; of a question as well.
    Declined = 10,
}

/// Why 96 bytes are no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHello {
    /// They do not start with the magic word.
    Magic,
    /// They come from another version of the format.
    Version(u16),
    /// They decode to nothing.
    Malformed,
}

impl Hello {
    /// The bytes of the wire.
    pub(crate) fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        (bytes[11], bytes[12], bytes[13]) = (self.from.0, self.to.0, self.verdict as u8);
        match &self.topic {
            Topic::Control { nonce, agreement } => {
                bytes[10] = 1;
                bytes[16..48].copy_from_slice(nonce);
                bytes[48..80].copy_from_slice(agreement);
            }
            Topic::Worker { session, lane, first, count } => {
                bytes[10] = 2;
                bytes[16..48].copy_from_slice(session);
                for (place, number) in bytes[80..92].chunks_exact_mut(4).zip([lane, first, count]) {
                    place.copy_from_slice(&number.to_le_bytes());
                }
            }
            Topic::Begin { agreement } => {
                bytes[10] = 3;
                bytes[48..80].copy_from_slice(agreement);
            }
            Topic::Lane { nonce, run, lane, generation } => {
                bytes[10] = 4;
                bytes[16..48].copy_from_slice(nonce);
                bytes[48..80].copy_from_slice(run);
                bytes[80..84].copy_from_slice(&lane.to_le_bytes());
                bytes[84..88].copy_from_slice(&generation.to_le_bytes());
            }
            Topic::Routes => bytes[10] = 5,
            Topic::Services => bytes[10] = 6,
        }
        bytes
    }

    /// What `bytes` say. Every byte counts: what is zero in the table must be zero.
    pub(crate) fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Self, NoHello> {
        if bytes[..8] != MAGIC {
            return Err(NoHello::Magic);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != FORMAT_VERSION {
            return Err(NoHello::Version(version));
        }
        let word = |at: usize| -> [u8; 32] { bytes[at..at + 32].try_into().expect("32 bytes") };
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let topic = match bytes[10] {
            1 => Topic::Control { nonce: word(16), agreement: word(48) },
            2 => Topic::Worker { session: word(16), lane: number(80), first: number(84), count: number(88) },
            3 => Topic::Begin { agreement: word(48) },
            4 => Topic::Lane { nonce: word(16), run: word(48), lane: number(80), generation: number(84) },
            5 => Topic::Routes,
            6 => Topic::Services,
            _ => return Err(NoHello::Malformed),
        };
        let verdict = HelloVerdict::of(bytes[13]).ok_or(NoHello::Malformed)?;
        let hello = Self { version, from: PartyId(bytes[11]), to: PartyId(bytes[12]), verdict, topic };
        if hello.encode() == *bytes { Ok(hello) } else { Err(NoHello::Malformed) }
    }
}

impl HelloVerdict {
    fn of(byte: u8) -> Option<Self> {
        use HelloVerdict::*;
        [Question, Taken, Version, Roster, Agreement, Busy, Session, Lane, Lanes, Wait, Declined]
            .get(usize::from(byte))
            .copied()
    }
}

/// The id of a session: the nonces of all parties in party order, so that none can bring an old one back,
/// what they agreed on, and who they are.
pub(crate) fn session_id(nonces: &[(PartyId, [u8; 32])], agreement: &[u8; 32]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026-01 session id v2");
    nonces.iter().for_each(|(party, _)| _ = hash.update(&[party.0]));
    nonces.iter().for_each(|(_, nonce)| _ = hash.update(nonce));
    *hash.update(agreement).finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hellos() -> impl Strategy<Value = Hello> {
        let control = any::<([u8; 32], [u8; 32])>();
        let control = control.prop_map(|(nonce, agreement)| Topic::Control { nonce, agreement });
        let worker = any::<([u8; 32], u32, u32, u32)>();
        let worker =
            worker.prop_map(|(session, lane, first, count)| Topic::Worker { session, lane, first, count });
        let begin = any::<[u8; 32]>().prop_map(|agreement| Topic::Begin { agreement });
        let lane = any::<([u8; 32], [u8; 32], u32, u32)>();
        let lane =
            lane.prop_map(|(nonce, run, lane, generation)| Topic::Lane { nonce, run, lane, generation });
        let head = (any::<u8>(), any::<u8>(), 0u8..11);
        (head, prop_oneof![control, worker, begin, lane, Just(Topic::Routes), Just(Topic::Services)])
            .prop_map(|((from, to, verdict), topic)| Hello {
                version: FORMAT_VERSION,
                from: PartyId(from),
                to: PartyId(to),
                verdict: HelloVerdict::of(verdict).unwrap(),
                topic,
            })
    }

    proptest! {
        #[test]
        fn a_hello_survives_the_wire(hello in hellos()) {
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }

        #[test]
        fn a_hello_has_one_form(hello in hellos(), at in 0..HELLO_BYTES, mask in 1u8..) {
            let mut bytes = hello.encode();
            bytes[at] ^= mask;
            prop_assert_ne!(Hello::decode(&bytes), Ok(hello));
            if let Ok(other) = Hello::decode(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
            }
        }
    }

    #[test]
    fn the_wire_is_pinned() {
        let (nonce, agreement) = ([3; 32], [4; 32]);
        let digest = |topic| {
            let (from, to, verdict) = (PartyId(1), PartyId(2), HelloVerdict::Wait);
            let hello = Hello { version: FORMAT_VERSION, from, to, verdict, topic };
            blake3::hash(&hello.encode()).to_hex()[..16].to_owned()
        };
        let worker = Topic::Worker { session: [5; 32], lane: 6, first: 7, count: 8 };
        let lane = Topic::Lane { nonce, run: [9; 32], lane: 10, generation: 11 };
        let id = session_id(&[(PartyId(0), [1; 32]), (PartyId(1), [2; 32])], &agreement);
        crate::cluster::pinned(&[
            ("wire, hello", digest(Topic::Control { nonce, agreement }), "bed421431aabb58a"),
            ("wire, hello of a worker", digest(worker), "17b895365f7eae4a"),
            ("wire, hello of a lane", digest(lane), "a83f8c1284acb64a"),
            ("wire, hello at a gate", digest(Topic::Routes), "abf71b191d30f5a1"),
            ("wire, word to begin", digest(Topic::Begin { agreement }), "fd35814cfdbfc49e"),
            ("wire, session id", blake3::hash(&id).to_hex()[..16].to_owned(), "9f39eb59d1298738"),
        ]);
    }

    #[test]
    fn another_version_is_told_from_garbage() {
        let topic = Topic::Control { nonce: [1; 32], agreement: [2; 32] };
        let (from, to, verdict) = (PartyId(0), PartyId(1), HelloVerdict::Question);
        let hello = Hello { version: FORMAT_VERSION + 1, from, to, verdict, topic };
        assert_eq!(Hello::decode(&hello.encode()), Err(NoHello::Version(FORMAT_VERSION + 1)));
        assert_eq!(Hello::decode(&[7; HELLO_BYTES]), Err(NoHello::Magic));
    }

    #[test]
    fn every_part_of_a_session_id_counts() {
        let id = |nonces: &[(u8, u8)], a: u8| {
            let nonces: Vec<_> = nonces.iter().map(|(p, n)| (PartyId(*p), [*n; 32])).collect();
            session_id(&nonces, &[a; 32])
        };
        let base = id(&[(0, 1), (1, 2)], 3);
        for other in [
            id(&[(1, 1), (0, 2)], 3),
            id(&[(0, 9), (1, 2)], 3),
            id(&[(0, 1), (1, 9)], 3),
            id(&[(0, 1), (1, 2)], 9),
            id(&[(0, 2), (1, 1)], 3),
            id(&[(0, 1), (1, 2), (2, 3)], 3),
        ] {
            assert_ne!(base, other);
        }
    }
}

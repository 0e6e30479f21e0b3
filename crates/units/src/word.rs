//! Words between the two coordinators of a run, as bytes: a tag, and numbers in little endian.
//!
//! | tag | word | bytes after the tag |
//! |---|---|---|
//! | 1 | STATE: run 32, stage 1, units 4, and of each floor 4, held 4, session 8 | 37 + 16 per unit |
//! | 2 | DOOR: lane 2, generation 4, key's fingerprint 16, address | 22 to 277 |
//! | 3 | OPEN: unit 4, attempt 4, lane 2 | 10 |
//! | 4 | OPENED: the same | 10 |
//! | 5 | HAVE: unit 4, attempt 4, session 32, transcript 32 | 72 |
//! | 6 | FAILED: unit 4, floor 4, cause 1 | 9 |
//! | 7 | SEAL: root 32 | 32 |
//! | 8 | SEALED: root 32 | 32 |
//! | 9 | BEAT: rows done 8 | 8 |
//! | 10 | BYE: reason 1 | 1 |

use crate::codec::Bytes;
use crate::state::UNITS;

/// Bytes of an address in a DOOR.
pub const ADDRESS_BYTES: usize = 255;
/// Bytes of the longest word: a STATE of all units.
pub const WORD_BYTES: usize = 1 + 37 + 16 * UNITS as usize;

/// What one coordinator says to the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// How things stand with the units of a stage: first on every connection.
    State {
        /// The run.
        run: [u8; 32],
        /// The stage.
        stage: u8,
        /// By unit.
        units: Vec<UnitStanding>,
    },
    /// A worker awaits its peer: with this key, once.
    Door {
        /// Of which lane.
        lane: u16,
        /// Which connection of that lane it is for.
        generation: u32,
        /// Of the worker's key.
        fingerprint: [u8; 16],
        /// Where, if it is an address of its own; else empty.
        address: String,
    },
    /// The leader opens an attempt.
    Open {
        /// At which unit.
        unit: u32,
        /// Its number.
        attempt: u32,
        /// Over which lane.
        lane: u16,
    },
    /// The follower has opened it.
    Opened {
        /// At which unit.
        unit: u32,
        /// Its number.
        attempt: u32,
        /// Over which lane.
        lane: u16,
    },
    /// The sender holds the result of an attempt.
    Have {
        /// At which unit.
        unit: u32,
        /// Its number.
        attempt: u32,
        /// The session of its lane.
        session: [u8; 32],
        /// What was said in it, where both have to agree on that; else zeros.
        transcript: [u8; 32],
    },
    /// The sender has given up every attempt at a unit below this floor.
    Failed {
        /// The unit.
        unit: u32,
        /// The floor.
        floor: u32,
        /// Why.
        cause: FailureCause,
    },
    /// The leader holds all units, and knows that the follower does.
    Seal {
        /// [`crate::UnitMachine::root`].
        root: [u8; 32],
    },
    /// So does the follower.
    Sealed {
        /// [`crate::UnitMachine::root`].
        root: [u8; 32],
    },
    /// The sender is there.
    Beat {
        /// Rows of which it has computed its part.
        rows: u64,
    },
    /// The sender says nothing more.
    Bye {
        /// Why.
        reason: ByeReason,
    },
}

/// How things stand with a unit at one party.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnitStanding {
    /// The highest attempt that it has opened or burnt.
    pub floor: u32,
    /// The attempt whose result it holds, 0 for none.
    pub held: u32,
    /// The beginning of that one's session.
    pub session: [u8; 8],
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FailureCause {
    /// A worker is gone.
    WorkerGone = 0,
    /// The lane is.
    LaneCut = 1,
    /// Nothing was done for too long.
    NoProgress = 2,
    /// A store failed.
    Store = 3,
    /// There was too little memory.
    Memory = 4,
    /// Somebody ended it.
    Stopped = 5,
    /// The peer deviated.
    Deviation = 6,
}

impl FailureCause {
    const ALL: [Self; 7] = [
        Self::WorkerGone,
        Self::LaneCut,
        Self::NoProgress,
        Self::Store,
        Self::Memory,
        Self::Stopped,
        Self::Deviation,
    ];

    /// As it is said.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What a number says.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::WorkerGone => "a worker is gone",
            Self::LaneCut => "the connection between two workers was cut",
            Self::NoProgress => "a worker did nothing for too long",
            Self::Store => "a file or store failed",
            Self::Memory => "there was too little memory",
            Self::Stopped => "it was ended",
            Self::Deviation => "a worker found that its peer deviates",
        }
    }
}

/// Why a coordinator says nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ByeReason {
    /// The stage is sealed.
    Done = 0,
    /// It failed at this party.
    Failed = 1,
    /// Somebody ended it.
    Stopped = 2,
    /// It holds that the peer deviated.
    Deviation = 3,
}

impl ByeReason {
    fn of(number: u8) -> Option<Self> {
        [Self::Done, Self::Failed, Self::Stopped, Self::Deviation].get(usize::from(number)).copied()
    }
}

impl Word {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let opening = |tag: u8, unit: &u32, attempt: &u32, lane: &u16| {
            [&[tag][..], &unit.to_le_bytes(), &attempt.to_le_bytes(), &lane.to_le_bytes()].concat()
        };
        match self {
            Self::State { run, stage, units } => {
                let mut bytes = [&[1][..], run, &[*stage], &(units.len() as u32).to_le_bytes()].concat();
                for UnitStanding { floor, held, session } in units {
                    bytes.extend([floor.to_le_bytes(), held.to_le_bytes()].as_flattened());
                    bytes.extend(session);
                }
                bytes
            }
            Self::Door { lane, generation, fingerprint, address } => {
                let numbers = [&lane.to_le_bytes()[..], &generation.to_le_bytes()].concat();
                [&[2][..], &numbers, fingerprint, address.as_bytes()].concat()
            }
            Self::Open { unit, attempt, lane } => opening(3, unit, attempt, lane),
            Self::Opened { unit, attempt, lane } => opening(4, unit, attempt, lane),
            Self::Have { unit, attempt, session, transcript } => {
                [&[5][..], &unit.to_le_bytes(), &attempt.to_le_bytes(), session, transcript].concat()
            }
            Self::Failed { unit, floor, cause } => {
                [&[6][..], &unit.to_le_bytes(), &floor.to_le_bytes(), &[cause.number()]].concat()
            }
            Self::Seal { root } => [&[7][..], root].concat(),
            Self::Sealed { root } => [&[8][..], root].concat(),
            Self::Beat { rows } => [&[9][..], &rows.to_le_bytes()].concat(),
            Self::Bye { reason } => vec![10, *reason as u8],
        }
    }

    /// What bytes say; nothing of what [`Self::encode`] has not written.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let word = match bytes.u8()? {
            1 => {
                let (run, stage, count) = (bytes.array()?, bytes.u8()?, bytes.u32()?);
                if count > UNITS || bytes.0.len() != 16 * count as usize {
                    return None;
                }
                let mut standing = || {
                    let (floor, held) = (bytes.u32()?, bytes.u32()?);
                    Some(UnitStanding { floor, held, session: bytes.array()? })
                };
                let units = (0..count).map(|_| standing()).collect::<Option<_>>()?;
                Self::State { run, stage, units }
            }
            2 => {
                let (lane, generation, fingerprint) = (bytes.u16()?, bytes.u32()?, bytes.array()?);
                let address = bytes.take(bytes.0.len()).filter(|address| address.len() <= ADDRESS_BYTES)?;
                let address = std::str::from_utf8(address).ok()?.to_owned();
                Self::Door { lane, generation, fingerprint, address }
            }
            3 => Self::Open { unit: bytes.u32()?, attempt: bytes.u32()?, lane: bytes.u16()? },
            4 => Self::Opened { unit: bytes.u32()?, attempt: bytes.u32()?, lane: bytes.u16()? },
            5 => {
                let (unit, attempt) = (bytes.u32()?, bytes.u32()?);
                Self::Have { unit, attempt, session: bytes.array()?, transcript: bytes.array()? }
            }
            6 => {
                let (unit, floor) = (bytes.u32()?, bytes.u32()?);
                Self::Failed { unit, floor, cause: FailureCause::of(bytes.u8()?)? }
            }
            7 => Self::Seal { root: bytes.array()? },
            8 => Self::Sealed { root: bytes.array()? },
            9 => Self::Beat { rows: bytes.u64()? },
            10 => Self::Bye { reason: ByeReason::of(bytes.u8()?)? },
            _ => return None,
        };
        bytes.end(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> impl Strategy<Value = Word> {
        let cause = (0u8..7).prop_map(|number| FailureCause::of(number).unwrap());
        let standing = any::<(u32, u32, [u8; 8])>();
        let standing = standing.prop_map(|(floor, held, session)| UnitStanding { floor, held, session });
        let state = (any::<([u8; 32], u8)>(), proptest::collection::vec(standing, 0..9));
        prop_oneof![
            state.prop_map(|((run, stage), units)| Word::State { run, stage, units }),
            (any::<(u16, u32, [u8; 16])>(), "[a-z0-9.:é]{0,40}").prop_map(
                |((lane, generation, fingerprint), address)| Word::Door {
                    lane,
                    generation,
                    fingerprint,
                    address
                }
            ),
            any::<(u32, u32, u16)>().prop_map(|(unit, attempt, lane)| Word::Open { unit, attempt, lane }),
            any::<(u32, u32, u16)>().prop_map(|(unit, attempt, lane)| Word::Opened { unit, attempt, lane }),
            any::<(u32, u32, [u8; 32], [u8; 32])>().prop_map(|(unit, attempt, session, transcript)| {
                Word::Have { unit, attempt, session, transcript }
            }),
            (any::<(u32, u32)>(), cause).prop_map(|((unit, floor), cause)| Word::Failed {
                unit,
                floor,
                cause
            }),
            any::<[u8; 32]>().prop_map(|root| Word::Seal { root }),
            any::<[u8; 32]>().prop_map(|root| Word::Sealed { root }),
            any::<u64>().prop_map(|rows| Word::Beat { rows }),
            (0u8..4).prop_map(|reason| Word::Bye { reason: ByeReason::of(reason).unwrap() }),
        ]
    }

    proptest! {
        #[test]
        fn a_word_survives_the_wire(word in words()) {
            let bytes = word.encode();
            prop_assert!(bytes.len() <= WORD_BYTES);
            prop_assert_eq!(Word::decode(&bytes), Some(word));
        }

        #[test]
        fn a_word_has_one_form(word in words(), at in any::<usize>(), mask in 1u8..) {
            let mut bytes = word.encode();
            let at = at % bytes.len();
            bytes[at] ^= mask;
            if let Some(other) = Word::decode(&bytes) {
                prop_assert_ne!(&other, &word);
                prop_assert_eq!(other.encode(), bytes);
            }
        }
    }

    #[test]
    fn what_is_too_long_is_no_word() {
        let units = vec![UnitStanding::default(); UNITS as usize];
        let state = |units| Word::State { run: [1; 32], stage: 2, units };
        assert_eq!(state(units.clone()).encode().len(), WORD_BYTES);
        assert!(Word::decode(&state(units.clone()).encode()).is_some());
        assert!(Word::decode(&state([units, vec![UnitStanding::default()]].concat()).encode()).is_none());
        let door = |len: usize| {
            let address = "a".repeat(len);
            Word::decode(&Word::Door { lane: 1, generation: 2, fingerprint: [3; 16], address }.encode())
        };
        assert!(door(ADDRESS_BYTES).is_some() && door(ADDRESS_BYTES + 1).is_none());
    }

    #[test]
    fn the_wire_is_pinned() {
        let standing = UnitStanding { floor: 3, held: 2, session: [7; 8] };
        let (unit, attempt, lane) = (1, 2, 3);
        let address = "workers.example.org:7101".to_owned();
        let all = [
            Word::State { run: [5; 32], stage: 1, units: vec![standing] },
            Word::Door { lane, generation: 4, fingerprint: [6; 16], address },
            Word::Open { unit, attempt, lane },
            Word::Opened { unit, attempt, lane },
            Word::Have { unit, attempt, session: [8; 32], transcript: [9; 32] },
            Word::Failed { unit, floor: 5, cause: FailureCause::Store },
            Word::Seal { root: [10; 32] },
            Word::Sealed { root: [11; 32] },
            Word::Beat { rows: 12 },
            Word::Bye { reason: ByeReason::Stopped },
        ];
        let bytes: Vec<u8> = all.iter().flat_map(Word::encode).collect();
        let digest = blake3::hash(&bytes).to_hex()[..16].to_owned();
        let pinned = |cases: &[(&str, String, &str)]| {
            cases.iter().for_each(|(what, found, pinned)| assert_eq!(found, pinned, "{what}"));
        };
        pinned(&[("units, words", digest, "d6fda5b54888cc84")]);
    }
}

//! What a party writes down before it says anything that depends on it.

use crate::codec::Bytes;
use crate::state::HeldResult;
use crate::word::FailureCause;

const FLOOR: u8 = 1;
const HELD: u8 = 2;
const SEAL: u8 = 3;
const FAILED: u8 = 4;

/// A record of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitRecord {
    /// This party has opened or burnt every attempt at a unit up to this one.
    Floor {
        /// The unit.
        unit: u32,
        /// The attempt.
        attempt: u32,
    },
    /// This party has the result of an attempt, in its store.
    Held {
        /// The unit.
        unit: u32,
        /// What it has.
        held: HeldResult,
    },
    /// Both have all units; no unit opens again.
    Seal {
        /// What both hold: [`crate::UnitMachine::root`].
        root: [u8; 32],
    },
    /// An attempt came to nothing. Where it is right below the floor that was written before, that floor is
    /// burnt.
    Failed {
        /// The unit.
        unit: u32,
        /// The attempt.
        attempt: u32,
        /// Why.
        cause: FailureCause,
        /// Whether the peer said so.
        peer: bool,
    },
}

impl UnitRecord {
    /// Its kind, and its bytes.
    #[must_use]
    pub fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Floor { unit, attempt } => (FLOOR, [unit.to_le_bytes(), attempt.to_le_bytes()].concat()),
            Self::Held { unit, held } => {
                let HeldResult { attempt, session, transcript, object, bytes } = held;
                let numbers = [unit.to_le_bytes(), attempt.to_le_bytes()].concat();
                (HELD, [&numbers[..], session, transcript, object, &bytes.to_le_bytes()].concat())
            }
            Self::Seal { root } => (SEAL, root.to_vec()),
            Self::Failed { unit, attempt, cause, peer } => {
                let numbers = [unit.to_le_bytes(), attempt.to_le_bytes()].concat();
                (FAILED, [&numbers[..], &[cause.number(), u8::from(*peer)]].concat())
            }
        }
    }

    /// What a kind and bytes say; nothing of what [`Self::encode`] has not written.
    #[must_use]
    pub fn decode(tag: u8, bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let record = match tag {
            FLOOR => Self::Floor { unit: bytes.u32()?, attempt: bytes.u32()? },
            HELD => {
                let (unit, attempt) = (bytes.u32()?, bytes.u32()?);
                let [session, transcript, object] = [bytes.array()?, bytes.array()?, bytes.array()?];
                let held = HeldResult { attempt, session, transcript, object, bytes: bytes.u64()? };
                Self::Held { unit, held }
            }
            SEAL => Self::Seal { root: bytes.array()? },
            FAILED => {
                let (unit, attempt, [cause, peer]) = (bytes.u32()?, bytes.u32()?, bytes.array()?);
                let cause = FailureCause::of(cause).filter(|_| peer < 2)?;
                Self::Failed { unit, attempt, cause, peer: peer == 1 }
            }
            _ => return None,
        };
        bytes.end(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records() -> impl Strategy<Value = UnitRecord> {
        let held = any::<(u32, u32, [u8; 32], [u8; 32], [u8; 32], u64)>();
        prop_oneof![
            any::<(u32, u32)>().prop_map(|(unit, attempt)| UnitRecord::Floor { unit, attempt }),
            held.prop_map(|(unit, attempt, session, transcript, object, bytes)| {
                let held = HeldResult { attempt, session, transcript, object, bytes };
                UnitRecord::Held { unit, held }
            }),
            any::<[u8; 32]>().prop_map(|root| UnitRecord::Seal { root }),
            any::<(u32, u32, bool)>().prop_map(|(unit, attempt, peer)| {
                UnitRecord::Failed { unit, attempt, cause: FailureCause::Memory, peer }
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_record_has_one_form(record in records(), cut in 0usize..64) {
            let (tag, bytes) = record.encode();
            prop_assert_eq!(UnitRecord::decode(tag, &bytes), Some(record));
            let short = &bytes[..bytes.len() - 1 - cut % bytes.len()];
            prop_assert_eq!(UnitRecord::decode(tag, short), None);
            prop_assert_eq!(UnitRecord::decode(tag, &[&bytes[..], &[0]].concat()), None);
        }
    }
}

//! What a program costs, exactly and from sizes alone.

use super::setup::{HELLO_BYTES, SEEDS_BYTES};
use super::{K, REVEAL_PIECE, Role, STRETCH};
use std::ops::{Add, AddAssign};

/// Bytes that stand for the check at the head of every piece of a reveal.
pub(super) const CHECK_BYTES: u64 = 8;

/// Cost of a program or of a part. Bytes are application bytes: before TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// AND gates, all lanes.
    pub and_gates: u64,
    /// Extended oblivious transfers.
    pub ots: u64,
    /// Bytes that the garbler sends.
    pub garbler: u64,
    /// Bytes that the evaluator sends.
    pub evaluator: u64,
}

impl Price {
    /// Meeting: greetings, base OTs, the garbler's public seeds.
    #[must_use]
    pub fn setup() -> Self {
        let ot = ot::ExtensionCost::base() + ot::ExtensionCost::setup(K);
        let garbler = ot.sender + (HELLO_BYTES + SEEDS_BYTES) as u64;
        Self { garbler, evaluator: ot.receiver + HELLO_BYTES as u64, ..Self::default() }
    }

    /// So many AND gates.
    #[must_use]
    pub fn ands(and_gates: u64) -> Self {
        Self { and_gates, garbler: 32 * and_gates, ..Self::default() }
    }

    /// One call of [`super::WireParty::input`] for so many bits.
    #[must_use]
    pub fn input(owner: Role, bits: usize) -> Self {
        if owner == Role::Garbler {
            return Self::default();
        }
        let mut price = Self { ots: bits as u64, ..Self::default() };
        for at in (0..bits).step_by(STRETCH) {
            price.evaluator += ot::ExtensionCost::correlated(K, STRETCH.min(bits - at) as u64).receiver;
        }
        price
    }

    /// One call of [`super::WireParty::reveal`] for so many wires.
    #[must_use]
    pub fn reveal(to: super::To, wires: usize) -> Self {
        let pieces = wires.div_ceil(REVEAL_PIECE) as u64;
        let colours: u64 =
            (0..wires).step_by(REVEAL_PIECE).map(|at| REVEAL_PIECE.min(wires - at).div_ceil(8) as u64).sum();
        let bytes = |told| CHECK_BYTES * pieces + if told { colours } else { 0 };
        Self {
            garbler: bytes(to.has(Role::Evaluator)),
            evaluator: bytes(to.has(Role::Garbler)),
            ..Self::default()
        }
    }

    /// One call of [`super::WireParty::agree`].
    #[must_use]
    pub fn agree() -> Self {
        Self { garbler: CHECK_BYTES, evaluator: CHECK_BYTES, ..Self::default() }
    }

    /// Bytes of a role.
    #[must_use]
    pub fn sent(&self, role: Role) -> u64 {
        match role {
            Role::Garbler => self.garbler,
            Role::Evaluator => self.evaluator,
        }
    }
}

impl AddAssign for Price {
    fn add_assign(&mut self, other: Self) {
        self.and_gates += other.and_gates;
        self.ots += other.ots;
        self.garbler += other.garbler;
        self.evaluator += other.evaluator;
    }
}

impl Add for Price {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

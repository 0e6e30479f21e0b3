//! What OTs cost, exactly: application bytes by direction and turns. Tests hold the ledger against it.

use crate::hub::HUB_K;
use crate::{BASE_OTS, base_ot, softspoken};
use base::{Cost, PartyId};
use kernels::Block;
use std::ops::Add;

/// Cost of OTs between one sender and one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensionCost {
    /// Extended OTs.
    pub ots: u64,
    /// Application bytes the OT sender sends.
    pub sender: u64,
    /// Application bytes the OT receiver sends.
    pub receiver: u64,
    /// Turns: how often one side waits for an answer to what it sent.
    pub turns: u64,
}

impl ExtensionCost {
    /// Base OTs for an extension: its sender chooses, its receiver replies. Public-key work, once per hub
    /// or session.
    #[must_use]
    pub fn base() -> Self {
        let (sender, receiver) = (base_ot::CHOICE_BYTES as u64, base_ot::REPLY_BYTES as u64);
        Self { ots: 0, sender, receiver, turns: 1 }
    }

    /// Set-up of an extension over base OTs at hand.
    #[must_use]
    pub fn setup(k: u32) -> Self {
        Self { receiver: softspoken::setup_bytes(k) as u64, ..Self::default() }
    }

    /// One call for `n` correlated OTs: `ceil(128 / k) * ceil(n / 128) * 16` bytes.
    #[must_use]
    pub fn correlated(k: u32, n: u64) -> Self {
        let receiver = softspoken::block_count(k) as u64 * n.div_ceil(128) * Block::BYTES as u64;
        Self { ots: n, receiver, ..Self::default() }
    }

    /// One post and take of `n` correlated OTs with random choices: one block of Delta less.
    #[must_use]
    pub fn posted(k: u32, n: u64) -> Self {
        let receiver = (softspoken::block_count(k) as u64 - 1) * n.div_ceil(128) * Block::BYTES as u64;
        Self { ots: n, receiver, ..Self::default() }
    }

    /// One call for `n` random OTs: as correlated.
    #[must_use]
    pub fn random(k: u32, n: u64) -> Self {
        Self::correlated(k, n)
    }

    /// One call for `n` chosen OTs of `words` blocks per message.
    #[must_use]
    pub fn chosen(k: u32, n: u64, words: u64) -> Self {
        let sender = 2 * n * words * Block::BYTES as u64;
        Self { sender, turns: 1, ..Self::correlated(k, n) }
    }

    /// A hub, without its forks. The sender is the sender of the workers' extensions.
    #[must_use]
    pub fn hub() -> Self {
        (Self::base() + Self::setup(HUB_K)).turned()
    }

    /// One call of a hub for `workers` connections.
    #[must_use]
    pub fn fork(workers: u64) -> Self {
        Self::random(HUB_K, workers * BASE_OTS as u64).turned()
    }

    fn turned(self) -> Self {
        Self { sender: self.receiver, receiver: self.sender, ..self }
    }

    /// As a cost among `parties` parties.
    #[must_use]
    pub fn cost(self, sender: PartyId, receiver: PartyId, parties: usize) -> Cost {
        let mut cost = Cost { ots: self.ots, rounds: self.turns, ..Cost::zero(parties) };
        cost.sent[sender.index()] += self.sender;
        cost.sent[receiver.index()] += self.receiver;
        cost
    }
}

impl Add for ExtensionCost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            ots: self.ots + other.ots,
            sender: self.sender + other.sender,
            receiver: self.receiver + other.receiver,
            turns: self.turns + other.turns,
        }
    }
}

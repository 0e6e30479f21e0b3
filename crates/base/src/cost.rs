//! What a computation costs, stated before it runs and counted while it runs.

use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Mul};

/// Cost of a piece of work. Bytes are application bytes: before TLS, without framing of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// AND gates evaluated, all lanes.
    pub and_gates: u64,
    /// Extended oblivious transfers.
    pub ots: u64,
    /// Turns: how often a party waits for an answer to what it sent, the larger of both sides.
    pub rounds: u64,
    /// Application bytes sent, by party.
    pub sent: Vec<u64>,
}

impl Cost {
    /// No cost, for `parties` parties.
    #[must_use]
    pub fn zero(parties: usize) -> Self {
        Self { sent: vec![0; parties], ..Self::default() }
    }

    /// Application bytes of all parties.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sent.iter().sum()
    }
}

impl AddAssign<&Cost> for Cost {
    fn add_assign(&mut self, other: &Cost) {
        self.and_gates += other.and_gates;
        self.ots += other.ots;
        self.rounds += other.rounds;
        if self.sent.len() < other.sent.len() {
            self.sent.resize(other.sent.len(), 0);
        }
        for (mine, theirs) in self.sent.iter_mut().zip(&other.sent) {
            *mine += theirs;
        }
    }
}

impl Add for Cost {
    type Output = Cost;
    fn add(mut self, other: Cost) -> Cost {
        self += &other;
        self
    }
}

impl Mul<u64> for Cost {
    type Output = Cost;
    fn mul(mut self, times: u64) -> Cost {
        self.and_gates *= times;
        self.ots *= times;
        self.rounds *= times;
        for bytes in &mut self.sent {
            *bytes *= times;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_by_party() {
        let a = Cost { and_gates: 1, ots: 2, rounds: 3, sent: vec![4, 5] };
        let b = Cost { and_gates: 10, ots: 20, rounds: 30, sent: vec![40, 50] };
        let sum = a + b;
        assert_eq!(sum, Cost { and_gates: 11, ots: 22, rounds: 33, sent: vec![44, 55] });
        assert_eq!((sum.clone() * 2).bytes(), 2 * sum.bytes());
    }
}

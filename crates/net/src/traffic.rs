//! What was said: bytes, messages and turns per peer and step.

use base::PartyId;
use serde::{Deserialize, Serialize};

/// One line of the ledger: what one party said to and heard from one peer at one step. The unit is bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficEntry {
    /// The peer.
    pub peer: PartyId,
    /// The step, as a path.
    pub step: String,
    /// Application bytes sent (before TLS).
    pub sent: u64,
    /// Application bytes received.
    pub received: u64,
    /// Messages sent: calls of `send`.
    pub messages: u64,
    /// Turns: receives that follow a send, that is, waits for an answer.
    pub turns: u64,
    /// AND gates that the engine worked off with this peer, all lanes.
    pub and_gates: u64,
    /// Extended oblivious transfers made with this peer.
    pub ots: u64,
}

/// All entries of one session, in the order the steps were first entered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    entries: Vec<TrafficEntry>,
}

impl Traffic {
    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[TrafficEntry] {
        &self.entries
    }

    /// Bytes sent at steps whose path starts with `prefix`; the empty prefix counts everything.
    #[must_use]
    pub fn sent(&self, prefix: &str) -> u64 {
        self.under(prefix).map(|e| e.sent).sum()
    }

    /// Bytes received at steps under `prefix`.
    #[must_use]
    pub fn received(&self, prefix: &str) -> u64 {
        self.under(prefix).map(|e| e.received).sum()
    }

    /// Bytes received at steps under `prefix`, by peer in the order of `parties` parties.
    #[must_use]
    pub fn received_by_peer(&self, prefix: &str, parties: usize) -> Vec<u64> {
        let mut bytes = vec![0; parties];
        for entry in self.under(prefix) {
            if let Some(sum) = bytes.get_mut(entry.peer.index()) {
                *sum += entry.received;
            }
        }
        bytes
    }

    /// Turns at steps under `prefix`.
    #[must_use]
    pub fn turns(&self, prefix: &str) -> u64 {
        self.under(prefix).map(|e| e.turns).sum()
    }

    /// AND gates worked off at steps under `prefix`.
    #[must_use]
    pub fn and_gates(&self, prefix: &str) -> u64 {
        self.under(prefix).map(|e| e.and_gates).sum()
    }

    /// Oblivious transfers made at steps under `prefix`.
    #[must_use]
    pub fn ots(&self, prefix: &str) -> u64 {
        self.under(prefix).map(|e| e.ots).sum()
    }

    /// Adds another session's ledger: the workers of one party.
    pub fn merge(&mut self, other: &Traffic) {
        for theirs in &other.entries {
            let index = self.index(theirs.peer, &theirs.step);
            let mine = &mut self.entries[index];
            mine.sent += theirs.sent;
            mine.received += theirs.received;
            mine.messages += theirs.messages;
            mine.turns += theirs.turns;
            mine.and_gates += theirs.and_gates;
            mine.ots += theirs.ots;
        }
    }

    fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a TrafficEntry> {
        self.entries.iter().filter(move |e| covers(prefix, &e.step))
    }

    /// The entry of a peer at a step, made on first use.
    pub(crate) fn index(&mut self, peer: PartyId, step: &str) -> usize {
        if let Some(i) = self.entries.iter().position(|e| e.peer == peer && e.step == step) {
            return i;
        }
        let step = step.to_owned();
        let (sent, received, messages, turns, and_gates, ots) = (0, 0, 0, 0, 0, 0);
        self.entries.push(TrafficEntry { peer, step, sent, received, messages, turns, and_gates, ots });
        self.entries.len() - 1
    }

    pub(crate) fn entry(&mut self, index: usize) -> &mut TrafficEntry {
        &mut self.entries[index]
    }
}

/// Whether `step` is `prefix` or lies under it; everything lies under the empty prefix.
pub(crate) fn covers(prefix: &str, step: &str) -> bool {
    let rest = step.strip_prefix(prefix);
    rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_whole_steps() {
        for (prefix, step, covered) in [
            ("", "", true),
            ("", "match/pid", true),
            ("match", "match", true),
            ("match", "match/pid", true),
            ("match", "matching", false),
            ("match/pid", "match", false),
            ("pid", "match/pid", false),
        ] {
            assert_eq!(covers(prefix, step), covered, "{prefix:?} {step:?}");
        }
    }

    #[test]
    fn ledgers_of_workers_add_up() {
        let ledger = |peer: u8, step: &str, n: u64| {
            let step = step.to_owned();
            let entry = TrafficEntry {
                peer: PartyId(peer),
                step,
                sent: n,
                received: 2 * n,
                messages: 3 * n,
                turns: 4 * n,
                and_gates: 5 * n,
                ots: 6 * n,
            };
            Traffic { entries: vec![entry] }
        };
        let mut sum = ledger(1, "a", 1);
        sum.merge(&ledger(1, "a", 10));
        sum.merge(&ledger(2, "a", 100));
        sum.merge(&ledger(1, "a/b", 1000));
        assert_eq!(sum.entries().len(), 3);
        assert_eq!((sum.sent("a"), sum.received("a"), sum.turns("a")), (1111, 2222, 4444));
        assert_eq!((sum.sent("a/b"), sum.sent("b")), (1000, 0));
        assert_eq!(sum.received_by_peer("a", 3), [0, 2 * 1011, 200]);
        assert_eq!(sum.entries()[0].messages, 33);
    }
}

//! How the links to other services stand: for pages, and for who starts runs.

use net::KeyFingerprint;
use std::collections::HashMap;
use std::sync::Mutex;

/// How a link stands. Times are milliseconds since 1970 by this machine's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStanding {
    /// Since when it is there; none: it is not.
    pub since_ms: Option<u64>,
    /// Whether this side dialled.
    pub dialled: bool,
    /// When something last came.
    pub heard_ms: Option<u64>,
    /// Why the last attempt failed or the last connection ended, and when.
    pub last_error: Option<(u64, String)>,
    /// How far the peer's clock is ahead of this one, in milliseconds.
    pub ahead_ms: Option<i64>,
    /// The peer's software.
    pub version: Option<String>,
    /// The peer takes nothing before this time.
    pub busy_until_ms: u64,
    /// The peer has statements of ours that are not in this store: it is an older copy.
    pub older_store: bool,
    /// Of which connection this is said.
    pub(super) connection: u64,
}

impl LinkStanding {
    /// Whether the clocks are so far apart that no run begins.
    #[must_use]
    pub fn is_skewed(&self) -> bool {
        self.ahead_ms.is_some_and(|ahead| ahead.unsigned_abs() > super::SKEW_MS)
    }
}

/// The links, by the peer's key.
#[derive(Default)]
pub struct LinkBoard(Mutex<HashMap<KeyFingerprint, LinkStanding>>);

impl LinkBoard {
    /// How the link to a peer stands.
    #[must_use]
    pub fn of(&self, peer: &KeyFingerprint) -> LinkStanding {
        self.lock().get(peer).cloned().unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<KeyFingerprint, LinkStanding>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes a connection as the link, unless there is one that goes before: of two that were dialled
    /// from both sides, that of the smaller key; else the newer. The connection's number.
    pub(super) fn take(
        &self,
        own: &KeyFingerprint,
        peer: KeyFingerprint,
        dialled: bool,
        now_ms: u64,
    ) -> Option<u64> {
        let mut all = self.lock();
        let link = all.entry(peer).or_default();
        let first = (*own < peer) == dialled;
        if link.since_ms.is_some() && link.dialled != dialled && !first {
            return None;
        }
        link.connection += 1;
        (link.since_ms, link.dialled, link.heard_ms) = (Some(now_ms), dialled, Some(now_ms));
        (link.ahead_ms, link.busy_until_ms) = (None, 0);
        Some(link.connection)
    }

    /// Whether a connection still is the link.
    pub(super) fn is(&self, peer: &KeyFingerprint, connection: u64) -> bool {
        self.lock().get(peer).is_some_and(|link| link.connection == connection && link.since_ms.is_some())
    }

    /// Changes what is known of the link, if it still is this connection.
    pub(super) fn note(&self, peer: &KeyFingerprint, connection: u64, note: impl FnOnce(&mut LinkStanding)) {
        if let Some(link) = self.lock().get_mut(peer)
            && link.connection == connection
        {
            note(link);
        }
    }

    /// Why there is no link, or no longer.
    pub(super) fn failed(&self, peer: &KeyFingerprint, connection: Option<u64>, now_ms: u64, why: String) {
        let mut all = self.lock();
        let link = all.entry(*peer).or_default();
        if connection.is_none_or(|one| one == link.connection) {
            link.last_error = Some((now_ms, why));
            if connection.is_some() {
                link.since_ms = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_connections_both_sides_keep_the_same() {
        let [small, large] = [[1; 16], [2; 16]].map(KeyFingerprint::from_bytes);
        for small_first in [true, false] {
            let (a, b) = (LinkBoard::default(), LinkBoard::default());
            for by_small in [small_first, !small_first] {
                a.take(&small, large, by_small, 1);
                b.take(&large, small, !by_small, 1);
            }
            assert!(a.of(&large).dialled && !b.of(&small).dialled, "the one that the smaller key dialled");
        }
        let board = LinkBoard::default();
        let one = board.take(&small, large, true, 1).expect("the first");
        let two = board.take(&small, large, true, 2).expect("a newer one takes the place of a dead one");
        assert!(!board.is(&large, one) && board.is(&large, two));
        board.failed(&large, Some(one), 3, "closed".into());
        assert!(board.is(&large, two), "the end of the old one says nothing of the new");
        board.failed(&large, Some(two), 4, "closed".into());
        assert_eq!(
            (board.of(&large).since_ms, board.of(&large).last_error),
            (None, Some((4, "closed".into())))
        );
    }
}

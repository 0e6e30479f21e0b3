//! How the links to other services stand: for pages, and for who starts runs.

use net::KeyFingerprint;
use statements::{ProposalId, StatementHead};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How often a peer may come with another connection.
const COMES: Duration = Duration::from_secs(1);
/// How often it is written into the log that a link came or went.
const LOGGED: Duration = Duration::from_secs(60);
/// How often a peer is told where the log here stands, beside after each run: the numbers say how much goes
/// on here.
const TOLD: Duration = Duration::from_secs(24 * 3_600);

/// How often chains are compared before one run, until all have the same.
const COMPARED: Duration = Duration::from_secs(30);

/// Why the link to a peer is ended that is none any more.
pub(super) const NO_PEER: &str = "service.toml does not name this key any more";

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
    /// Where the peer's audit log stands, as it says: number and hash of the newest entry.
    pub log: Option<(u64, [u8; 32])>,
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

/// When it is forgotten that a peer took nothing more about a proposal, after it was asked again.
const FORGOTTEN_MS: u64 = 3_600_000;

/// A peer's link, and what this side keeps of the peer for as long as the process lives.
#[derive(Default)]
struct HeldLink {
    standing: LinkStanding,
    /// Held for the connection that is the link: dropped, that one ends.
    place: Option<oneshot::Sender<()>>,
    /// When the peer last came with a connection.
    came: Option<Instant>,
    /// What the log says of the link, and since when.
    logged: Option<(bool, Instant)>,
    /// When the peer was last told where the log here stands.
    told: Option<Instant>,
    /// Whether chains are to be compared before it is their time.
    compares: bool,
    /// On which proposals it has sent an own statement that was lost here and is kept again, since it last
    /// said what it compared.
    gave_back: Vec<ProposalId>,
    /// What is left of each [`PeerCost`], and when that was so.
    left: [Option<(f64, Instant)>; 4],
    /// Proposals about which the peer takes nothing more now: how often it said so, and until when nothing
    /// is sent about them.
    waits: HashMap<ProposalId, (usize, u64)>,
    /// How far the peer last said that it has all chains, of proposals of more than two parties.
    heads: HashMap<ProposalId, Vec<StatementHead>>,
    /// For which run of a proposal chains were last compared before it, and when.
    before: HashMap<ProposalId, (u32, Instant)>,
}

/// What a peer can ask of this side without giving anything that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum PeerCost {
    /// Chains are compared.
    Heads,
    /// Own statements are sent again.
    Want,
    /// What it sent is read and not kept.
    Refused,
    /// It says what it has compared.
    Ahead,
}

impl PeerCost {
    /// How many at once, and how many more a minute.
    fn rate(self) -> (f64, f64) {
        match self {
            Self::Heads | Self::Ahead => (12.0, 2.0),
            Self::Want => (64.0, 32.0),
            Self::Refused => (500.0, 10.0),
        }
    }
}

/// The links, by the peer's key.
#[derive(Default)]
pub struct LinkBoard(Mutex<HashMap<KeyFingerprint, HeldLink>>);

/// A connection that is the link, until the other end of its place is dropped.
pub(super) struct TakenLink {
    /// Its number.
    pub connection: u64,
    /// Ends when another connection takes the place, or the link is ended here.
    pub place: oneshot::Receiver<()>,
}

impl LinkBoard {
    /// How the link to a peer stands.
    #[must_use]
    pub fn of(&self, peer: &KeyFingerprint) -> LinkStanding {
        self.lock().get(peer).map(|link| link.standing.clone()).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<KeyFingerprint, HeldLink>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether a peer may come with another connection now: once a second.
    pub(super) fn may_come(&self, peer: KeyFingerprint, now: Instant) -> bool {
        let mut all = self.lock();
        let link = all.entry(peer).or_default();
        let may = link.came.is_none_or(|came| now.saturating_duration_since(came) >= COMES);
        if may {
            link.came = Some(now);
        }
        may
    }

    /// Takes so much of what a peer may ask for; false, and nothing is taken, where none is left.
    pub(super) fn spend(&self, peer: KeyFingerprint, cost: PeerCost, weight: f64, now: Instant) -> bool {
        let (at_once, per_minute) = cost.rate();
        let mut all = self.lock();
        let held = &mut all.entry(peer).or_default().left[cost as usize];
        let left = held.map_or(at_once, |(left, at)| {
            let minutes = now.saturating_duration_since(at).as_secs_f64() / 60.0;
            (left + per_minute * minutes).min(at_once)
        });
        let may = left >= 1.0;
        *held = Some((if may { left - weight } else { left }, now));
        may
    }

    /// Whether the peer is to be told now where the log here stands; it is told then.
    pub(super) fn tells_log(&self, peer: KeyFingerprint, now: Instant) -> bool {
        let mut all = self.lock();
        let told = &mut all.entry(peer).or_default().told;
        let is_due = told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD);
        if is_due {
            *told = Some(now);
        }
        is_due
    }

    /// A run with the peer is over: it is told where the log here stands.
    pub(crate) fn tell_log(&self, peer: KeyFingerprint) {
        self.lock().entry(peer).or_default().told = None;
    }

    /// Chains are compared with the peer at the next look.
    pub(super) fn compare_soon(&self, peer: KeyFingerprint) {
        self.lock().entry(peer).or_default().compares = true;
    }

    /// The peer has sent an own statement that was lost here and is kept again: there may be more of them.
    pub(super) fn gave_back(&self, peer: KeyFingerprint, id: ProposalId) {
        let mut all = self.lock();
        let ids = &mut all.entry(peer).or_default().gave_back;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    /// On which proposals it has since this was asked last.
    pub(super) fn has_given_back(&self, peer: KeyFingerprint) -> Vec<ProposalId> {
        self.lock().get_mut(&peer).map(|link| std::mem::take(&mut link.gave_back)).unwrap_or_default()
    }

    /// Before a run chains are compared once more, and again after a while: whether that is due. They are
    /// compared at the next look then.
    pub(super) fn compares_before(
        &self,
        peer: KeyFingerprint,
        id: ProposalId,
        run: u32,
        now: Instant,
    ) -> bool {
        let mut all = self.lock();
        let link = all.entry(peer).or_default();
        link.before.retain(|_, (_, at)| now.saturating_duration_since(*at) < COMPARED);
        if link.before.get(&id).is_some_and(|(before, _)| *before == run) {
            return false;
        }
        link.before.insert(id, (run, now));
        link.compares = true;
        true
    }

    /// The peer has said how far it has all chains.
    pub(super) fn keep_heads(&self, peer: KeyFingerprint, heads: Vec<(ProposalId, Vec<StatementHead>)>) {
        self.lock().entry(peer).or_default().heads = heads.into_iter().collect();
    }

    /// How far the peer has all chains of a proposal, as it last said; nothing where it said nothing of it.
    #[must_use]
    pub fn heads_of(&self, peer: &KeyFingerprint, id: &ProposalId) -> Vec<StatementHead> {
        self.lock().get(peer).and_then(|link| link.heads.get(id).cloned()).unwrap_or_default()
    }

    /// Whether they are to be compared now; they are then.
    pub(super) fn compares(&self, peer: KeyFingerprint) -> bool {
        self.lock().get_mut(&peer).is_some_and(|link| std::mem::take(&mut link.compares))
    }

    /// The peer takes nothing more about a proposal now: it is asked later, and then later and later.
    pub(super) fn wait(&self, peer: KeyFingerprint, id: ProposalId, now_ms: u64) {
        const MINUTES: [u64; 3] = [1, 5, 30];
        let mut all = self.lock();
        let wait = all.entry(peer).or_default().waits.entry(id).or_default();
        // Several statements about it may have been on their way.
        if wait.1 <= now_ms {
            *wait = (wait.0 + 1, now_ms + 60_000 * MINUTES[wait.0.min(MINUTES.len() - 1)]);
        }
    }

    /// The proposals about which nothing is sent to a peer now.
    pub(super) fn waiting(&self, peer: KeyFingerprint, now_ms: u64) -> Vec<ProposalId> {
        let mut all = self.lock();
        let waits = &mut all.entry(peer).or_default().waits;
        waits.retain(|_, (_, until_ms)| *until_ms + FORGOTTEN_MS > now_ms);
        waits.iter().filter(|(_, (_, until_ms))| *until_ms > now_ms).map(|(id, _)| *id).collect()
    }

    /// Takes a connection as the link, unless there is one that goes before: of two that were dialled
    /// from both sides, that of the smaller key; else the newer. The one before ends.
    pub(super) fn take(
        &self,
        own: &KeyFingerprint,
        peer: KeyFingerprint,
        dialled: bool,
        now_ms: u64,
    ) -> Option<TakenLink> {
        let mut all = self.lock();
        let held = all.entry(peer).or_default();
        let link = &mut held.standing;
        let first = (*own < peer) == dialled;
        if link.since_ms.is_some() && link.dialled != dialled && !first {
            return None;
        }
        link.connection += 1;
        (link.since_ms, link.dialled, link.heard_ms) = (Some(now_ms), dialled, Some(now_ms));
        (link.ahead_ms, link.busy_until_ms) = (None, 0);
        let connection = link.connection;
        let (keeps, place) = oneshot::channel();
        held.place = Some(keeps);
        Some(TakenLink { connection, place })
    }

    /// As if the peer had told where its log stands.
    #[cfg(test)]
    pub(crate) fn pretend_log(&self, peer: KeyFingerprint, entry: u64) {
        self.lock().entry(peer).or_default().standing.log = Some((entry, [entry.to_le_bytes()[0]; 32]));
    }

    /// Whether a connection still is the link.
    pub(super) fn is(&self, peer: &KeyFingerprint, connection: u64) -> bool {
        let link = self.of(peer);
        link.connection == connection && link.since_ms.is_some()
    }

    /// Changes what is known of the link, if it still is this connection.
    pub(super) fn note(&self, peer: &KeyFingerprint, connection: u64, note: impl FnOnce(&mut LinkStanding)) {
        if let Some(link) = self.lock().get_mut(peer)
            && link.standing.connection == connection
        {
            note(&mut link.standing);
        }
    }

    /// A link that stands, with what its peer says of itself.
    #[cfg(test)]
    pub(crate) fn stands(&self, own: &KeyFingerprint, peer: KeyFingerprint, version: &str, error: &str) {
        let taken = self.take(own, peer, true, super::now_ms()).expect("free");
        self.note(&peer, taken.connection, |link| {
            link.version = Some(version.to_owned());
            link.last_error = Some((super::now_ms(), error.to_owned()));
        });
    }

    /// What the log is to say of a link now: nothing where it says so, or said something a minute ago. A peer
    /// that comes and goes all the time fills no disk.
    pub(super) fn to_log(&self, peer: &KeyFingerprint, now: Instant) -> Option<&'static str> {
        let mut all = self.lock();
        let link = all.get_mut(peer)?;
        let is_up = link.standing.since_ms.is_some();
        let (was_up, at) = link.logged.map_or((false, None), |(up, at)| (up, Some(at)));
        if is_up == was_up || at.is_some_and(|at| now.saturating_duration_since(at) < LOGGED) {
            return None;
        }
        link.logged = Some((is_up, now));
        Some(if is_up { "link up" } else { "link down" })
    }

    /// Ends a link that is paused here, whatever it is doing.
    pub fn end(&self, peer: &KeyFingerprint, now_ms: u64) {
        self.end_for(peer, now_ms, "paused here");
    }

    /// Ends a link, and says why.
    pub(super) fn end_for(&self, peer: &KeyFingerprint, now_ms: u64, why: &str) {
        let mut all = self.lock();
        let link = all.entry(*peer).or_default();
        link.place = None;
        link.standing.connection += 1;
        link.standing.since_ms = None;
        link.standing.last_error = Some((now_ms, why.to_owned()));
    }

    /// Why there is no link, or no longer.
    pub(super) fn failed(&self, peer: &KeyFingerprint, connection: Option<u64>, now_ms: u64, why: String) {
        let mut all = self.lock();
        let held = all.entry(*peer).or_default();
        let link = &mut held.standing;
        if connection.is_none_or(|one| one == link.connection) {
            link.last_error = Some((now_ms, why));
            if connection.is_some() {
                link.since_ms = None;
                held.place = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

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
        let mut one = board.take(&small, large, true, 1).expect("the first");
        assert_eq!(one.place.try_recv(), Err(TryRecvError::Empty), "it goes on");
        let mut two = board.take(&small, large, true, 2).expect("a newer one takes the place of a dead one");
        assert_eq!(one.place.try_recv(), Err(TryRecvError::Closed), "the older one ends at once");
        let (one, place, two) = (one.connection, &mut two.place, two.connection);
        assert!(!board.is(&large, one) && board.is(&large, two));
        board.failed(&large, Some(one), 3, "closed".into());
        assert!(board.is(&large, two), "the end of the old one says nothing of the new");
        assert_eq!(place.try_recv(), Err(TryRecvError::Empty));
        board.failed(&large, Some(two), 4, "closed".into());
        assert_eq!(
            (board.of(&large).since_ms, board.of(&large).last_error),
            (None, Some((4, "closed".into())))
        );
        let mut three = board.take(&small, large, true, 5).expect("again");
        board.end(&large, 6);
        assert_eq!(three.place.try_recv(), Err(TryRecvError::Closed), "a pause ends it");
    }

    #[test]
    fn who_comes_and_goes_is_slowed_and_fills_no_log() {
        let [own, peer] = [[1; 16], [2; 16]].map(KeyFingerprint::from_bytes);
        let (board, begun) = (LinkBoard::default(), Instant::now());
        let mut said = Vec::new();
        // A connection each 100 ms for three minutes, each ended by the peer at once.
        for at in (0..180_000).step_by(100).map(|at| begun + Duration::from_millis(at)) {
            if board.may_come(peer, at) {
                let link = board.take(&own, peer, false, 1).expect("it is the only one");
                said.extend(board.to_log(&peer, at));
                board.failed(&peer, Some(link.connection), 2, "closed".into());
            }
            said.extend(board.to_log(&peer, at));
        }
        assert_eq!(said, ["link up", "link down", "link up"], "one entry a minute");
        assert_eq!(board.of(&peer).connection, 180, "one connection a second");
        let later = begun + Duration::from_secs(600);
        assert_eq!(board.to_log(&peer, later), Some("link down"), "the log ends with how it stands");
    }

    #[test]
    fn a_peer_is_told_of_the_log_once_a_day_and_after_a_run() {
        let peer = KeyFingerprint::from_bytes([2; 16]);
        let (board, begun) = (LinkBoard::default(), Instant::now());
        let told = |hours: u64| board.tells_log(peer, begun + Duration::from_secs(3_600 * hours));
        assert_eq!([0, 1, 23, 24, 25].map(told), [true, false, false, true, false]);
        board.tell_log(peer);
        assert_eq!([26, 27].map(told), [true, false]);
    }

    #[test]
    fn what_a_peer_may_ask_for_fills_again_and_what_it_does_not_take_waits() {
        let peer = KeyFingerprint::from_bytes([2; 16]);
        let (board, begun) = (LinkBoard::default(), Instant::now());
        let spend = |weight, at| board.spend(peer, PeerCost::Refused, weight, at);
        assert!((0..500).all(|_| spend(1.0, begun)) && !spend(0.0, begun));
        assert!(board.spend(peer, PeerCost::Heads, 1.0, begun), "each for itself");
        let ahead = || board.spend(peer, PeerCost::Ahead, 1.0, begun);
        assert!((0..12).all(|_| ahead()) && !ahead());
        let later = begun + Duration::from_secs(60);
        assert!(spend(257.0, later), "a large one is owed from then on");
        assert!(
            !spend(0.0, later + Duration::from_secs(1_200)) && spend(0.0, later + Duration::from_secs(1_600))
        );
        let id = ProposalId([3; 16]);
        let waits = |at_ms| board.waiting(peer, at_ms) == [id];
        for (at_ms, until_ms) in [(1_000, 61_000), (70_000, 370_000), (400_000, 2_200_000)] {
            board.wait(peer, id, at_ms);
            board.wait(peer, id, at_ms);
            assert!(waits(until_ms - 1) && !waits(until_ms), "{at_ms}");
        }
    }
}

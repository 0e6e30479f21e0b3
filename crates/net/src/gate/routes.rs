//! Names that coordinators have registered at a gate: where each leads, and whose it is.
//!
//! All names of one meeting or run are of one key: of that which registered the first of them. They stay with
//! it as long as the connection lives that registered the last one, and [`KEPT`] longer: a coordinator whose
//! connection broke finds nobody else at its names. Each key has a number of names, meetings and connections
//! for itself, so that none takes another one's.

use super::words::GateAnswer;
use crate::identity::KeyFingerprint;
use base::limits;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long names stay with their key after the connection that registered them has ended.
const KEPT: Duration = Duration::from_secs(600);

/// What is registered.
#[derive(Default)]
pub(super) struct GateRoutes {
    /// By what stands behind the first part of their names.
    meetings: HashMap<String, NamedMeeting>,
    shares: HashMap<KeyFingerprint, KeyShare>,
}

/// The names of a meeting, or of the lanes of a run.
struct NamedMeeting {
    key: KeyFingerprint,
    /// The connection that registered the last of them, and when it ended.
    link: u64,
    left: Option<Instant>,
    /// Where each leads, by the first part of its name, and which connection said so.
    ways: HashMap<String, (String, u64)>,
}

/// How much a key has.
#[derive(Default)]
struct KeyShare {
    links: usize,
    names: usize,
    meetings: usize,
}

impl NamedMeeting {
    fn is_over(&self, now: Instant) -> bool {
        self.ways.is_empty() && self.left.is_some_and(|left| now.duration_since(left) > KEPT)
    }
}

/// The first part of a name, and what stands behind it.
fn parts(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}

impl GateRoutes {
    /// A coordinator has come with this key, unless as many are there as it may have.
    pub fn begin(&mut self, key: KeyFingerprint) -> bool {
        let share = self.shares.entry(key).or_default();
        let has_room = share.links < limits::GATE_COORDINATORS;
        share.links += usize::from(has_room);
        has_room
    }

    /// It has gone; how many routes went with it.
    pub fn end(&mut self, link: u64, key: KeyFingerprint, now: Instant) -> usize {
        let mut gone = 0;
        for meeting in self.meetings.values_mut() {
            let before = meeting.ways.len();
            meeting.ways.retain(|_, (_, of)| *of != link);
            gone += before - meeting.ways.len();
            if meeting.link == link {
                meeting.left = Some(now);
            }
        }
        let share = self.shares.entry(key).or_default();
        share.links = share.links.saturating_sub(1);
        share.names = share.names.saturating_sub(gone);
        let over: Vec<String> =
            self.meetings.iter().filter(|(_, m)| m.is_over(now)).map(|(name, _)| name.clone()).collect();
        over.iter().for_each(|name| self.forget(name));
        gone
    }

    /// From now on a name leads there.
    pub fn register(
        &mut self,
        name: &str,
        to: &str,
        (link, key): (u64, KeyFingerprint),
        now: Instant,
    ) -> GateAnswer {
        let (first, rest) = parts(name);
        let whose = self.meetings.get(rest).map(|meeting| (meeting.key, meeting.is_over(now)));
        match whose {
            Some((other, false)) if other != key => return GateAnswer::Taken,
            Some((other, true)) if other != key => self.forget(rest),
            _ => {}
        }
        let is_new = self.way(name).is_none();
        let names = self.shares.get(&key).map_or(0, |share| share.names);
        if is_new && names >= limits::GATE_ROUTES || !self.has_room(rest, key) {
            return GateAnswer::Full;
        }
        let share = self.shares.entry(key).or_default();
        share.names += usize::from(is_new);
        let meeting = self.meetings.entry(rest.to_owned()).or_insert_with(|| {
            share.meetings += 1;
            NamedMeeting { key, link, left: None, ways: HashMap::new() }
        });
        meeting.ways.insert(first.to_owned(), (to.to_owned(), link));
        (meeting.link, meeting.left) = (link, None);
        GateAnswer::Done
    }

    /// A name leads nowhere any more, where this connection registered it.
    pub fn close(&mut self, name: &str, link: u64) {
        let (first, rest) = parts(name);
        let Some(meeting) = self.meetings.get_mut(rest) else { return };
        if meeting.ways.get(first).is_some_and(|(_, of)| *of == link) {
            meeting.ways.remove(first);
            let share = self.shares.entry(meeting.key).or_default();
            share.names = share.names.saturating_sub(1);
        }
    }

    /// Where a name leads, and whose it is.
    pub fn find(&self, name: &str) -> Option<(String, KeyFingerprint)> {
        let meeting = self.meetings.get(parts(name).1)?;
        self.way(name).map(|to| (to.to_owned(), meeting.key))
    }

    fn way(&self, name: &str) -> Option<&str> {
        let (first, rest) = parts(name);
        self.meetings.get(rest)?.ways.get(first).map(|(to, _)| to.as_str())
    }

    /// Whether a key may have names behind this, too: of what it has left the oldest goes for it.
    fn has_room(&mut self, rest: &str, key: KeyFingerprint) -> bool {
        let meetings = self.shares.get(&key).map_or(0, |share| share.meetings);
        if meetings < limits::GATE_ROUTES || self.meetings.contains_key(rest) {
            return true;
        }
        let own = self.meetings.iter().filter(|(_, meeting)| meeting.key == key && meeting.ways.is_empty());
        let left = own.filter_map(|(name, meeting)| meeting.left.map(|left| (left, name.clone())));
        let Some((_, oldest)) = left.min() else { return false };
        self.forget(&oldest);
        true
    }

    fn forget(&mut self, rest: &str) {
        if let Some(NamedMeeting { key, ways, .. }) = self.meetings.remove(rest) {
            let share = self.shares.entry(key).or_default();
            share.meetings = share.meetings.saturating_sub(1);
            share.names = share.names.saturating_sub(ways.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: &str = "l0-0.00.tacit.invalid";

    fn keys() -> [KeyFingerprint; 2] {
        [1, 2].map(|byte| KeyFingerprint::from_bytes([byte; 16]))
    }

    fn to(routes: &GateRoutes, name: &str) -> Option<String> {
        routes.find(name).map(|(to, _)| to)
    }

    #[test]
    fn a_name_stays_with_the_key_that_registered_it() {
        let (mut routes, [own, other], now) = (GateRoutes::default(), keys(), Instant::now());
        assert_eq!(routes.register(LANE, "a:1", (1, own), now), GateAnswer::Done);
        assert_eq!(routes.register(LANE, "b:1", (2, other), now), GateAnswer::Taken);
        // Nor a later lane of the same run, whose name who saw the first one can tell.
        assert_eq!(routes.register("l0-1.00.tacit.invalid", "b:1", (2, other), now), GateAnswer::Taken);
        assert_eq!(routes.register("l0-0.01.tacit.invalid", "b:1", (2, other), now), GateAnswer::Done);
        // Started again, before the gate has noticed that the first one is gone.
        assert_eq!(routes.register(LANE, "c:1", (3, own), now), GateAnswer::Done);
        assert_eq!(to(&routes, LANE).unwrap(), "c:1");
        routes.close(LANE, 1);
        assert_eq!(to(&routes, LANE).unwrap(), "c:1", "the first one's word comes late");
        routes.close(LANE, 3);
        assert_eq!(to(&routes, LANE), None);
        assert_eq!(routes.register(LANE, "b:1", (2, other), now), GateAnswer::Taken, "its run goes on");
    }

    #[test]
    fn names_wait_for_the_key_whose_connection_broke() {
        let (mut routes, [own, other], now) = (GateRoutes::default(), keys(), Instant::now());
        assert!(routes.begin(own) && routes.begin(other));
        assert_eq!(routes.register(LANE, "a:1", (1, own), now), GateAnswer::Done);
        assert_eq!(routes.end(1, own, now), 1);
        assert_eq!(to(&routes, LANE), None, "a route lives as long as its connection");
        let later = now + KEPT;
        assert_eq!(routes.register(LANE, "b:1", (2, other), later), GateAnswer::Taken);
        assert_eq!(routes.register(LANE, "a:2", (3, own), later), GateAnswer::Done);
        assert_eq!(routes.end(3, own, later), 1);
        let over = later + KEPT + Duration::from_secs(1);
        assert_eq!(routes.register(LANE, "b:1", (2, other), over), GateAnswer::Done);
        assert_eq!(routes.find(LANE).unwrap(), ("b:1".to_owned(), other));
    }

    #[test]
    fn each_key_has_so_many_names_and_connections_and_no_more() {
        let (mut routes, [greedy, other], now) = (GateRoutes::default(), keys(), Instant::now());
        let name = |number: usize| format!("l{number}-0.00.tacit.invalid");
        for number in 0..limits::GATE_ROUTES {
            assert_eq!(routes.register(&name(number), "a:1", (1, greedy), now), GateAnswer::Done);
        }
        assert_eq!(routes.register(&name(limits::GATE_ROUTES), "a:1", (1, greedy), now), GateAnswer::Full);
        assert_eq!(routes.register(&name(0), "b:1", (1, greedy), now), GateAnswer::Done, "one that there is");
        assert_eq!(routes.register("m.01.tacit.invalid", "b:1", (2, other), now), GateAnswer::Done);
        routes.close(&name(7), 1);
        assert_eq!(routes.register(&name(limits::GATE_ROUTES), "a:1", (1, greedy), now), GateAnswer::Done);
        assert!((0..limits::GATE_COORDINATORS).all(|_| routes.begin(greedy)));
        assert!(!routes.begin(greedy) && routes.begin(other));
        routes.end(1, greedy, now);
        assert!(routes.begin(greedy) && !routes.begin(greedy));
    }

    #[test]
    fn of_what_a_key_has_left_the_oldest_goes() {
        let (mut routes, [own, other], now) = (GateRoutes::default(), keys(), Instant::now());
        let name = |number: usize| format!("m.{number:x}.tacit.invalid");
        for number in 0..limits::GATE_ROUTES {
            let link = number as u64;
            assert_eq!(routes.register(&name(number), "a:1", (link, own), now), GateAnswer::Done);
        }
        let more = name(limits::GATE_ROUTES);
        routes.end(5, own, now);
        routes.end(4, own, now + Duration::from_secs(1));
        assert_eq!(routes.register(&more, "a:1", (9999, own), now), GateAnswer::Done);
        assert_eq!(routes.register(&name(5), "b:1", (0, other), now), GateAnswer::Done, "it was the oldest");
        assert_eq!(routes.register(&name(4), "b:1", (0, other), now), GateAnswer::Taken);
    }
}

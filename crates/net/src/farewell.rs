//! Why a party stops, told to the others: so that everybody names the party where it began.
//!
//! Messages have no header, so a protocol's own channel cannot say why it ends. Among three or more parties
//! one lane is kept for it. A party that stops tells every peer, before it drops the channels of the
//! protocol, which party the trouble began with and at which step: its own error, or the peer that it lost.
//! Whoever then finds a channel broken reads the notice of the peer behind it, names the party where it
//! began, and passes that on.
//!
//! A party that stops because a check failed says so, and whom the check accuses: it cannot know which of
//! them deviated, and whoever hears it cannot know whether the accuser lies. So all of them are suspects, to
//! everybody but themselves.
//!
//! Nothing else is said: no text of an error leaves this machine. A notice has 64 bytes: `1` (stopped) or `2`
//! (deviated), the party where it began, the length of the step, the accused as 16 bits (none in a `1`), the
//! step, zeros. It is not counted as application bytes: a run that goes well sends none.

use crate::connect::Channels;
use base::{Accusation, At, ChannelError, Error, Fault, PartyId, Roster, limits};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a notice may take: to leave, and to come when a channel of its sender is already broken. A notice
/// is sent before the channels are dropped, so it is there at once where there is one.
pub(crate) const HEAR: Duration = Duration::from_secs(5);

pub(crate) const NOTICE_BYTES: usize = 64;
const HEAD_BYTES: usize = 5;
const STEP_BYTES: usize = NOTICE_BYTES - HEAD_BYTES;
const STOPPED: u8 = 1;
const DEVIATED: u8 = 2;

/// The lane on which a party says why it stops, and hears it of others. Shared by the threads of a party.
pub struct Farewell {
    me: PartyId,
    roster: Roster,
    state: Mutex<State>,
}

struct State {
    /// Empty after this party has told.
    lane: Channels,
    /// With what this party stopped.
    first: Option<Error>,
}

/// Where the trouble began, and whom that party accuses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Notice {
    root: PartyId,
    step: String,
    accused: Vec<PartyId>,
}

impl Farewell {
    /// Over the channels of one lane; see [`crate::Meeting::farewell`].
    pub(crate) fn new(me: PartyId, roster: Roster, lane: Channels) -> Self {
        Self { me, roster, state: Mutex::new(State { lane, first: None }) }
    }

    /// This party stops with `error`: hears whether the peer behind it stopped for another reason, tells the
    /// others where the trouble began, and returns the error with that in it. Call it before the channels of
    /// the protocol are dropped. Several threads may call it; all get the error of the first.
    #[must_use]
    pub fn stop(&self, error: Error) -> Error {
        // A panic elsewhere leaves nothing half done: notices are best effort.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = &state.first {
            return first.clone();
        }
        let mut lane = std::mem::take(&mut state.lane);
        let lost = self.lost(&error);
        let heard = lost.and_then(|peer| self.hear(&mut lane, peer).map(|n| (peer, n)));
        let (error, notice) = match heard {
            Some((via, notice)) => {
                let error = self.reword(&error, via, &notice, &mut lane);
                let hearsay = error.accusation().is_some_and(|told| told.through.is_some());
                // What the accuser itself does not confirm is not passed on: others would not see whose word
                // it is.
                (
                    error,
                    if hearsay {
                        Notice { root: via, step: notice.step, accused: Vec::new() }
                    } else {
                        notice
                    },
                )
            }
            None => {
                let (step, root) = (error.at().step.clone(), lost.unwrap_or(self.me));
                let accused = self.accused(&error);
                (error, Notice { root, step, accused })
            }
        };
        let bytes = notice.encode();
        for (_, channel) in &mut lane {
            // Who cannot be told finds the channel broken.
            let _ = channel.send(&bytes).and_then(|()| channel.finish());
        }
        state.first = Some(error.clone());
        error
    }

    /// The peer whose channel broke, if that is what the error says.
    fn lost(&self, error: &Error) -> Option<PartyId> {
        let Fault::Channel(how) = error.kind() else { return None };
        if *how == ChannelError::Stopped {
            return None;
        }
        self.roster.find(error.at().peer.as_deref()?)
    }

    /// Whom an error of this party's own accuses.
    fn accused(&self, error: &Error) -> Vec<PartyId> {
        let (Fault::Deviated(_) | Fault::Malformed(_)) = error.kind() else { return Vec::new() };
        let names: Vec<&str> = match error.accusation() {
            Some(told) => told.accused.iter().map(String::as_str).collect(),
            None => error.at().peer.as_deref().into_iter().collect(),
        };
        names.into_iter().filter_map(|name| self.roster.find(name)).collect()
    }

    fn reword(&self, error: &Error, via: PartyId, notice: &Notice, lane: &mut Channels) -> Error {
        let (via_name, root) = (self.roster.name(via), self.roster.name(notice.root));
        let step = if notice.step.is_empty() { "its start" } else { &notice.step };
        let at = At { peer: Some(root.clone()), ..error.at().clone() };
        if !notice.accused.is_empty() {
            // The accuser told everybody: who only passes it on is not taken at its word.
            let direct = via == notice.root
                || self
                    .hear(lane, notice.root)
                    .is_some_and(|own| (own.root, &own.accused) == (notice.root, &notice.accused));
            let accusation = Accusation {
                by: root,
                accused: notice.accused.iter().map(|party| self.roster.name(*party)).collect(),
                step: step.to_owned(),
                through: (!direct).then_some(via_name),
            };
            return Error::new(at, Fault::Deviated("a party says that others deviated")).accusing(accusation);
        }
        let text = if via == notice.root {
            format!("{root} stopped at {step}; see {root}'s own output")
        } else {
            format!("{via_name} stopped because {root} was lost at {step}; see {root}'s own output")
        };
        Error::new(at, Fault::Channel(ChannelError::Io(text)))
    }

    /// What the peer said before it stopped; nothing when it died without a word.
    fn hear(&self, lane: &mut Channels, peer: PartyId) -> Option<Notice> {
        let at = lane.iter().position(|(party, _)| *party == peer)?;
        let (_, mut channel) = lane.swap_remove(at);
        let mut bytes = [0; NOTICE_BYTES];
        channel.recv(&mut bytes).ok()?;
        let notice = Notice::decode(&bytes)?;
        let known = |party: &PartyId| party.index() < self.roster.len();
        if !notice.accused.iter().all(known) || notice.accused.contains(&notice.root) {
            return None;
        }
        // That it lost us says nothing about it: it is the one that we lost.
        let told = known(&notice.root) && notice.root != self.me;
        Some(if told { notice } else { Notice { root: peer, step: notice.step, accused: Vec::new() } })
    }
}

impl Notice {
    fn encode(&self) -> [u8; NOTICE_BYTES] {
        let mut bytes = [0; NOTICE_BYTES];
        let step = self.step.as_bytes();
        let step = &step[..step.len().min(STEP_BYTES)];
        bytes[0] = if self.accused.is_empty() { STOPPED } else { DEVIATED };
        (bytes[1], bytes[2]) = (self.root.0, step.len() as u8);
        let accused = self.accused.iter().fold(0u16, |all, party| all | 1 << party.0);
        bytes[3..HEAD_BYTES].copy_from_slice(&accused.to_le_bytes());
        bytes[HEAD_BYTES..HEAD_BYTES + step.len()].copy_from_slice(step);
        bytes
    }

    /// Steps are printed: only the characters that steps are made of pass.
    fn decode(bytes: &[u8; NOTICE_BYTES]) -> Option<Self> {
        let step = bytes[HEAD_BYTES..].get(..usize::from(bytes[2]))?;
        let fine = |b: &u8| b.is_ascii_alphanumeric() || b"/-_ ".contains(b);
        let accused = u16::from_le_bytes([bytes[3], bytes[4]]);
        let accused =
            (0..limits::PARTIES as u8).filter(|party| accused >> party & 1 == 1).map(PartyId).collect();
        let step = step.iter().all(fine).then(|| String::from_utf8(step.to_vec()).ok())??;
        let notice = Self { root: PartyId(bytes[1]), step, accused };
        // Every byte counts: what is nothing is zero.
        (notice.encode() == *bytes).then_some(notice)
    }
}

/// Decodes a notice and forgets it, for the crate `fuzzing`: what decodes encodes to the same bytes.
pub(crate) fn try_notice(bytes: &[u8; NOTICE_BYTES]) {
    if let Some(notice) = Notice::decode(bytes) {
        assert_eq!(notice.encode(), *bytes, "a farewell has one form");
    }
}

/// A notice as it is said.
pub(crate) fn example() -> [u8; NOTICE_BYTES] {
    Notice { root: PartyId(1), step: "compute/0".into(), accused: vec![PartyId(0)] }.encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster() -> Roster {
        Roster::new(["a", "b", "c", "d"])
    }

    fn both(deadline: Duration) -> (Farewell, Farewell) {
        let roster = roster();
        let (here, there) = crate::pair(deadline);
        let a = Farewell::new(PartyId(0), roster.clone(), vec![(PartyId(1), here)]);
        (a, Farewell::new(PartyId(1), roster, vec![(PartyId(0), there)]))
    }

    fn cut(party: &str, peer: &str, step: &str) -> Error {
        let at = At { party: party.into(), peer: Some(peer.into()), step: step.into() };
        Error::new(at, Fault::Channel(ChannelError::Cut))
    }

    #[test]
    fn the_party_where_it_began_is_named() {
        let (a, b) = both(Duration::from_secs(60));
        let error = b.stop(cut("b", "c", "compute/0"));
        assert_eq!(error, cut("b", "c", "compute/0"));
        let error = a.stop(cut("a", "b", "compute/1"));
        assert_eq!(
            error.to_string(),
            "a at compute/1 with c: b stopped because c was lost at compute/0; see c's own output"
        );
        assert_eq!(a.stop(Error::input("later")), error, "the first error is this party's");
    }

    #[test]
    fn a_party_that_stops_by_itself_is_named_without_its_reason() {
        let (a, b) = both(Duration::from_secs(60));
        let at = At { party: "b".into(), peer: None, step: "match".into() };
        let _ = b.stop(Error::new(at, Fault::Refused("a secret".into())));
        assert_eq!(
            a.stop(cut("a", "b", "compute")).to_string(),
            "a at compute with b: b stopped at match; see b's own output"
        );
    }

    #[test]
    fn who_is_stopped_by_its_operator_blames_nobody() {
        let (a, b) = both(Duration::from_secs(60));
        let at = At { party: "b".into(), peer: Some("c".into()), step: "compute/0".into() };
        let error = b.stop(Error::new(at, Fault::Channel(ChannelError::Stopped)));
        assert!(error.to_string().ends_with("stopped here, by this party's operator"), "{error}");
        assert_eq!(
            a.stop(cut("a", "b", "compute/1")).to_string(),
            "a at compute/1 with b: b stopped at compute/0; see b's own output"
        );
    }

    #[test]
    fn silence_and_garbage_change_nothing() {
        let (a, b) = both(Duration::from_secs(60));
        drop(b);
        assert_eq!(a.stop(cut("a", "b", "x")), cut("a", "b", "x"));
        let (a, b) = both(Duration::from_secs(60));
        let mut lane = std::mem::take(&mut b.state.lock().unwrap().lane);
        lane[0].1.send(&[9; NOTICE_BYTES]).unwrap();
        lane[0].1.finish().unwrap();
        assert_eq!(a.stop(cut("a", "b", "x")), cut("a", "b", "x"));
    }

    /// What b tells a when it stops with this.
    fn told(error: Error) -> Error {
        let (a, b) = both(Duration::from_secs(60));
        let _ = b.stop(error);
        a.stop(cut("a", "b", "compute"))
    }

    #[test]
    fn a_failed_check_names_the_accuser_and_the_accused() {
        let at = |peer: &str| At { party: "b".into(), peer: Some(peer.into()), step: "open".into() };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let told_of = |accused: &[&str]| {
            let own =
                Accusation { by: "b".into(), accused: names(accused), step: "open".into(), through: None };
            told(Error::new(at("c, vouched for by d"), Fault::Deviated("a check")).accusing(own))
        };
        let error = told_of(&["c", "d"]);
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
        assert_eq!(error.accusation().unwrap().suspects("a"), ["b", "c", "d"]);
        assert_eq!(
            error.to_string(),
            "a at compute with b: b accuses c and d of deviating from the protocol at open. At least one of \
             these deviated, and it may be the accuser: b, c, d; see their own output"
        );
        // This party is accused, and knows better.
        assert_eq!(told_of(&["a", "d"]).accusation().unwrap().suspects("a"), ["b", "d"]);
        // A check of one peer, or bytes that decode to nothing.
        for kind in [Fault::Deviated("a check"), Fault::Malformed("a count")] {
            let error = told(Error::new(at("c"), kind));
            assert_eq!(error.accusation().unwrap().suspects("a"), ["b", "c"]);
        }
    }

    #[test]
    fn who_passes_an_accusation_on_is_a_suspect_unless_the_accuser_says_it_too() {
        let notice = Notice { root: PartyId(2), step: "open".into(), accused: vec![PartyId(3)] };
        for says in [true, false] {
            let long = Duration::from_secs(60);
            let ((b_here, b_there), (c_here, c_there)) = (crate::pair(long), crate::pair(long));
            let lane = vec![(PartyId(1), b_here), (PartyId(2), c_here)];
            let a = Farewell::new(PartyId(0), roster(), lane);
            let mut lanes = vec![b_there];
            lanes.extend(says.then_some(c_there));
            for lane in &mut lanes {
                lane.send(&notice.encode()).unwrap();
                lane.finish().unwrap();
            }
            // The fourth, whom a tells why it stops.
            let (d_here, mut d_there) = crate::pair(long);
            a.state.lock().unwrap().lane.push((PartyId(3), d_here));
            let error = a.stop(cut("a", "b", "x"));
            let suspects: &[&str] = if says { &["c", "d"] } else { &["b", "c", "d"] };
            assert_eq!(error.accusation().unwrap().suspects("a"), suspects, "{error}");
            let mut bytes = [0; NOTICE_BYTES];
            d_there.recv(&mut bytes).unwrap();
            let passed_on = Notice::decode(&bytes).unwrap();
            let lost = Notice { root: PartyId(1), step: "open".into(), accused: vec![] };
            assert_eq!(passed_on, if says { notice.clone() } else { lost }, "hearsay goes no further");
        }
    }

    #[test]
    fn a_notice_has_one_form() {
        let all = (0..limits::PARTIES as u8).map(PartyId).collect();
        for accused in [vec![], vec![PartyId(0)], vec![PartyId(0), PartyId(1), PartyId(3)], all] {
            let notice = Notice { root: PartyId(2), step: "release/1/noise".into(), accused };
            assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        }
        let long = Notice { root: PartyId(2), step: "s".repeat(200), accused: vec![] };
        assert_eq!(Notice::decode(&long.encode()).unwrap().step.len(), STEP_BYTES);
        let good = Notice { root: PartyId(0), step: "a".into(), accused: vec![] }.encode();
        assert!(Notice::decode(&good).is_some());
        // A kind that does not fit, a length too long, somebody accused without that kind, a step that would
        // be printed as something else, and what must be zero.
        for (at, byte) in [(0, DEVIATED), (0, 3), (2, 200), (3, 4), (4, 1), (HEAD_BYTES, 0x1b), (63, 1)] {
            let mut bytes = good;
            bytes[at] = byte;
            assert_eq!(Notice::decode(&bytes), None, "{at}");
        }
    }
}

//! Why a party stops, told to the others: so that everybody names the party where it began.
//!
//! Messages have no header, so a protocol's own channel cannot say why it ends. Among three or more parties one lane
//! is kept for it. A party that stops tells every peer, before it drops the channels of the protocol, which party the
//! trouble began with and at which step: its own error, or the peer that it lost. Whoever then finds a channel broken
//! reads the notice of the peer behind it, names the party where it began, and passes that on.
//!
//! Nothing else is said: no text of an error leaves this machine. A notice has 64 bytes: `1`, the party, the length
//! of the step, the step, zeros. It is not counted as application bytes: a run that goes well sends none.

use crate::connect::Channels;
use base::{At, ChannelError, Error, Kind, PartyId, Roster};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a notice may take: to leave, and to come when a channel of its sender is already broken. A notice is sent
/// before the channels are dropped, so it is there at once where there is one.
pub(crate) const HEAR: Duration = Duration::from_secs(5);

const NOTICE_BYTES: usize = 64;
const STEP_BYTES: usize = NOTICE_BYTES - 3;
const STOPPED: u8 = 1;

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

/// Where the trouble began.
#[derive(Debug, PartialEq, Eq)]
struct Notice {
    root: PartyId,
    step: String,
}

impl Farewell {
    /// Over the channels of one lane; see [`crate::Meeting::farewell`].
    pub(crate) fn new(me: PartyId, roster: Roster, lane: Channels) -> Self {
        Self { me, roster, state: Mutex::new(State { lane, first: None }) }
    }

    /// This party stops with `error`: hears whether the peer behind it stopped for another reason, tells the others
    /// where the trouble began, and returns the error with that in it. Call it before the channels of the protocol
    /// are dropped. Several threads may call it; all get the error of the first.
    #[must_use]
    pub fn stop(&self, error: Error) -> Error {
        // A panic elsewhere leaves nothing half done: notices are best effort.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = &state.first {
            return first.clone();
        }
        let mut lane = std::mem::take(&mut state.lane);
        let lost = self.lost(&error);
        let heard = lost.and_then(|peer| hear(&mut lane, peer, self.me, &self.roster).map(|n| (peer, n)));
        let (error, notice) = match heard {
            Some((via, notice)) => (self.reword(&error, via, &notice), notice),
            None => {
                let step = error.at().step.clone();
                (error, Notice { root: lost.unwrap_or(self.me), step })
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
        let Kind::Channel(_) = error.kind() else { return None };
        self.roster.find(error.at().peer.as_deref()?)
    }

    fn reword(&self, error: &Error, via: PartyId, notice: &Notice) -> Error {
        let (via_name, root) = (self.roster.name(via), self.roster.name(notice.root));
        let step = if notice.step.is_empty() { "its start" } else { &notice.step };
        let text = if via == notice.root {
            format!("{root} stopped at {step}; see {root}'s own output")
        } else {
            format!("{via_name} stopped because {root} was lost at {step}; see {root}'s own output")
        };
        let at = At { peer: Some(root), ..error.at().clone() };
        Error::new(at, Kind::Channel(ChannelError::Io(text)))
    }
}

/// What the peer said before it stopped; nothing when it died without a word.
fn hear(lane: &mut Channels, peer: PartyId, me: PartyId, roster: &Roster) -> Option<Notice> {
    let at = lane.iter().position(|(party, _)| *party == peer)?;
    let (_, mut channel) = lane.swap_remove(at);
    let mut bytes = [0; NOTICE_BYTES];
    channel.recv(&mut bytes).ok()?;
    let notice = Notice::decode(&bytes)?;
    // That it lost us says nothing about it: it is the one that we lost.
    let known = notice.root.index() < roster.len() && notice.root != me;
    Some(if known { notice } else { Notice { root: peer, ..notice } })
}

impl Notice {
    fn encode(&self) -> [u8; NOTICE_BYTES] {
        let mut bytes = [0; NOTICE_BYTES];
        let step = self.step.as_bytes();
        let step = &step[..step.len().min(STEP_BYTES)];
        (bytes[0], bytes[1], bytes[2]) = (STOPPED, self.root.0, step.len() as u8);
        bytes[3..3 + step.len()].copy_from_slice(step);
        bytes
    }

    /// Steps are printed: only the characters that steps are made of pass.
    fn decode(bytes: &[u8; NOTICE_BYTES]) -> Option<Self> {
        let step = bytes.get(3..3 + usize::from(bytes[2]))?;
        let fine = |b: &u8| b.is_ascii_alphanumeric() || b"/-_ ".contains(b);
        let rest = &bytes[3 + step.len()..];
        if bytes[0] != STOPPED || !step.iter().all(fine) || rest.iter().any(|b| *b != 0) {
            return None;
        }
        Some(Self { root: PartyId(bytes[1]), step: String::from_utf8(step.to_vec()).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(deadline: Duration) -> (Farewell, Farewell) {
        let roster = Roster::new(["a", "b", "c"]);
        let (here, there) = crate::pair(deadline);
        let a = Farewell::new(PartyId(0), roster.clone(), vec![(PartyId(1), here)]);
        (a, Farewell::new(PartyId(1), roster, vec![(PartyId(0), there)]))
    }

    fn cut(party: &str, peer: &str, step: &str) -> Error {
        let at = At { party: party.into(), peer: Some(peer.into()), step: step.into() };
        Error::new(at, Kind::Channel(ChannelError::Cut))
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
        let _ = b.stop(Error::new(at, Kind::Refused("a secret".into())));
        assert_eq!(
            a.stop(cut("a", "b", "compute")).to_string(),
            "a at compute with b: b stopped at match; see b's own output"
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

    #[test]
    fn a_notice_has_one_form() {
        let notice = Notice { root: PartyId(2), step: "release/1/noise".into() };
        assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        let long = Notice { root: PartyId(2), step: "s".repeat(200) };
        assert_eq!(Notice::decode(&long.encode()).unwrap().step.len(), STEP_BYTES);
        let mut bytes = long.encode();
        bytes[2] = 200;
        assert_eq!(Notice::decode(&bytes), None);
        let mut bytes = Notice { root: PartyId(0), step: "a".into() }.encode();
        bytes[3] = 0x1b;
        assert_eq!(Notice::decode(&bytes), None);
        bytes[3] = b'a';
        bytes[63] = 1;
        assert_eq!(Notice::decode(&bytes), None);
    }
}

//! The listening side: one address for all peers that come, sorted by the key that they prove and what they
//! say.

use super::standby::reply;
use super::{ChannelSecurity, DoorPolicy, Effort, LANES, Lanes, Meet, Met, RETRY, Status};
use crate::Channel;
use crate::accept::{Acceptor, Admission, Arrival, QUEUE, TurnedAway};
use crate::hello::{Hello, HelloVerdict, NoHello, Topic};
use crate::identity::KeyFingerprint;
use crate::refusal::version_text;
use crate::socket::SocketChannel;
use crate::tls::TlsRefusal;
use base::{ChannelError, Error, Fault, PartyId, limits};
use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often a side that awaits nobody any more looks whether everybody else is there.
const LOOK: Duration = Duration::from_millis(10);

/// Connections for later lanes that may wait here.
const EARLY: usize = limits::SHARDS as usize;

/// A bound address, and the peers that come there.
pub(super) struct Door {
    acceptor: Acceptor,
    awaited: Vec<PartyId>,
    /// Whether parties of other agreements may come here, too: they are asked to come again.
    shared: bool,
    early: Vec<Came>,
}

/// A connection that proved one of the awaited keys.
struct Came {
    channel: SocketChannel,
    hello: Hello,
    key: Option<KeyFingerprint>,
    from: SocketAddr,
}

/// The lanes of a peer that have come.
type Row = (PartyId, Vec<Option<SocketChannel>>);

/// All lanes of all peers; nothing when the meeting failed elsewhere.
type Found = Option<Vec<(PartyId, Vec<SocketChannel>)>>;

/// Until when to wait for whom, and who was refused meanwhile.
struct Wait<'a> {
    until: Instant,
    patience: Duration,
    last: Option<String>,
    effort: &'a Effort,
}

impl Wait<'_> {
    /// Whether it has been long enough, for somebody who never came or for those who came and left.
    fn over(&self, meet: &Meet, missing: &[PartyId]) -> bool {
        let limits = missing.iter().map(|peer| meet.limit(*peer, self.until, self.effort));
        limits.min().is_some_and(|limit| Instant::now() >= limit)
    }
}

impl Door {
    /// Binds the address; whoever passes `gate` may come.
    pub(super) fn open(
        address: &str,
        gate: DoorPolicy,
        admission: Admission,
        awaited: Vec<PartyId>,
    ) -> Result<Self, Error> {
        let acceptor = Acceptor::bind(address, gate, admission)?;
        Ok(Self { acceptor, awaited, shared: false, early: Vec::new() })
    }

    /// Where it is.
    pub(super) fn address(&self) -> SocketAddr {
        self.acceptor.address
    }

    /// The address alone.
    pub(super) fn into_acceptor(self) -> Acceptor {
        self.acceptor
    }

    /// An address that was bound before, for more than this meeting.
    pub(super) fn over(acceptor: Acceptor, awaited: Vec<PartyId>) -> Self {
        Self { acceptor, awaited, shared: true, early: Vec::new() }
    }

    /// The control channels of all awaited peers, once everybody is there: a peer that leaves before is
    /// awaited again. Nothing when the meeting failed elsewhere.
    pub(super) fn controls(
        &mut self,
        meet: &Meet,
        nonce: [u8; 32],
        until: Instant,
        effort: &Effort,
    ) -> Result<Option<Vec<Met>>, Error> {
        let mut wait = Wait { until, patience: meet.patience, last: None, effort };
        let (mut met, mut told): (Vec<Met>, Vec<PartyId>) = (Vec::new(), Vec::new());
        loop {
            let missing: Vec<PartyId> =
                self.awaited.iter().copied().filter(|p| met.iter().all(|met| met.peer != *p)).collect();
            if missing != told && !missing.is_empty() {
                let (peer, at) = (meet.names(&missing), self.acceptor.address);
                (meet.watch)(&Status::Listening { peer, at });
            }
            told.clone_from(&missing);
            let came = self.next(meet, &missing, &mut wait)?;
            if effort.whole() {
                return Ok(Some(met));
            }
            if effort.over() {
                return Ok(None);
            }
            met.retain(|met| !met.channel.hung_up() || !effort.gone(met.peer));
            if let Some(came) = came
                && let Some(new) = self.control(meet, nonce, came, &met, &mut wait)?
            {
                effort.come(new.peer);
                met.push(new);
            }
        }
    }

    /// Answers somebody who came to meet: the control channel if it is one of those who are missing.
    fn control(
        &self,
        meet: &Meet,
        nonce: [u8; 32],
        mut came: Came,
        met: &[Met],
        wait: &mut Wait<'_>,
    ) -> Result<Option<Met>, Error> {
        let (theirs, agreement) = match came.hello.topic {
            Topic::Control { nonce, agreement } => (nonce, agreement),
            Topic::Worker { .. } | Topic::Lane { .. } | Topic::Routes | Topic::Services => {
                self.turn_away(meet, came, HelloVerdict::Session, &mut wait.last);
                return Ok(None);
            }
            Topic::Begin { agreement } => {
                // It has begun: said again it changes nothing.
                let begun = self.ours(meet, &came) && agreement == meet.agreement;
                let verdict = if begun { HelloVerdict::Taken } else { HelloVerdict::Busy };
                reply(&mut came.channel, &came.hello, verdict);
                return Ok(None);
            }
        };
        let peer = came.hello.from;
        let (ours, same) = (self.ours(meet, &came), agreement == meet.agreement);
        if self.shared && !(ours && same) {
            reply(&mut came.channel, &came.hello, HelloVerdict::Wait);
            if ours {
                let why = format!("{} comes for another {}", meet.roster.name(peer), meet.terms.document);
                note(meet, why, &mut wait.last);
            }
            return Ok(None);
        }
        if ours && same && came.hello.verdict == HelloVerdict::Declined {
            reply(&mut came.channel, &came.hello, HelloVerdict::Declined);
            return Err(meet.declined(peer));
        }
        let verdict = match () {
            () if !ours => HelloVerdict::Roster,
            () if !same => HelloVerdict::Agreement,
            () if met.iter().any(|met| met.peer == peer) => HelloVerdict::Busy,
            () => HelloVerdict::Taken,
        };
        if verdict == HelloVerdict::Busy {
            self.turn_away(meet, came, verdict, &mut wait.last);
            return Ok(None);
        }
        let answer = meet.control(peer, verdict, nonce).encode();
        let answered = came.channel.send(&answer).and_then(|()| came.channel.finish());
        match verdict {
            HelloVerdict::Taken => {}
            HelloVerdict::Agreement => return Err(meet.other_study(peer, &agreement)),
            other => {
                let text = meet.wording(&self.awaited).verdict(other, (0, 0));
                let refusal = TlsRefusal::Hello(text);
                let text = meet.wording(&self.awaited).text(&refusal, &came.from);
                return Err(Error::new(meet.at(&self.awaited), Fault::Input(text)));
            }
        }
        if answered.and_then(|()| came.channel.begin(meet.deadline)).is_err() {
            // Gone before it was answered: it may come again.
            return Ok(None);
        }
        Ok(Some(Met { peer, channel: came.channel, nonce: theirs }))
    }

    /// Whether a hello comes from an awaited peer that proved its own key, and is meant for us.
    fn ours(&self, meet: &Meet, came: &Came) -> bool {
        let (from, to) = (came.hello.from, came.hello.to);
        let proven = match (&meet.transport, came.key) {
            (ChannelSecurity::Tcp, _) => true,
            (ChannelSecurity::Tls { keys, .. }, key) => {
                key.is_some() && keys.get(from.index()).copied() == key
            }
        };
        proven && to == meet.me && self.awaited.contains(&from)
    }

    /// Answers everybody who comes to meet that this party takes no part, until all have heard it.
    pub(super) fn decline(&self, meet: &Meet, effort: &Effort, until: Instant) {
        let mut wait = Wait { until, patience: meet.patience, last: None, effort };
        while !effort.over() {
            let missing: Vec<PartyId> =
                self.awaited.iter().copied().filter(|peer| !effort.came(*peer)).collect();
            if missing.is_empty() {
                return;
            }
            // Nobody more came in time.
            let Ok(came) = self.next(meet, &missing, &mut wait) else { return };
            let Some(mut came) = came else { continue };
            let (Topic::Control { agreement, .. }, true) = (&came.hello.topic, self.ours(meet, &came)) else {
                continue;
            };
            let peer = came.hello.from;
            match *agreement == meet.agreement {
                true => reply(&mut came.channel, &came.hello, HelloVerdict::Declined),
                // What this party takes no part in is its own study: of another one it hears that.
                false => {
                    let answer = meet.control(peer, HelloVerdict::Agreement, [0; 32]).encode();
                    let _ = came.channel.send(&answer).and_then(|()| came.channel.finish());
                }
            }
            effort.come(peer);
        }
    }

    /// The next connection that proved an awaited key, if there is one soon.
    fn next(&self, meet: &Meet, missing: &[PartyId], wait: &mut Wait<'_>) -> Result<Option<Came>, Error> {
        // With nobody to wait for here, this thread looks whether the others have found theirs.
        let soon = if missing.is_empty() { LOOK } else { RETRY.0 };
        let until = Instant::now() + soon;
        while !wait.effort.over() {
            if wait.over(meet, missing) {
                return Err(self.nobody(meet, missing, wait));
            }
            let left = until.saturating_duration_since(Instant::now());
            let arrival = self.acceptor.arrivals.recv_timeout(left);
            for TurnedAway { from, why } in self.acceptor.turned_away.try_iter().take(QUEUE) {
                note(meet, meet.wording(missing).text(&why, &from), &mut wait.last);
            }
            let Arrival { mut channel, hello, key, from } = match arrival {
                Ok(arrival) => arrival,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(self.nobody(meet, missing, wait)),
            };
            let why = match hello {
                Ok(hello) => return Ok(Some(Came { channel: *channel, hello, key, from })),
                Err(NoHello::Version(theirs)) => {
                    // Our own version tells the other side what is wrong.
                    let answer = meet.control(self.awaited[0], HelloVerdict::Version, [0; 32]).encode();
                    let _ = channel.send(&answer).and_then(|()| channel.finish());
                    let text = version_text(&meet.names(missing), Some(theirs));
                    if !self.shared && !missing.is_empty() {
                        return Err(Error::new(meet.at(missing), Fault::Input(text)));
                    }
                    text
                }
                Err(_) => "it does not speak Tacit's protocol".to_owned(),
            };
            note(meet, meet.wording(missing).text(&TlsRefusal::Hello(why), &from), &mut wait.last);
        }
        Ok(None)
    }

    fn nobody(&self, meet: &Meet, missing: &[PartyId], wait: &mut Wait<'_>) -> Error {
        // Who came and left did so because of those who never came.
        let never: Vec<PartyId> = missing.iter().copied().filter(|peer| !wait.effort.came(*peer)).collect();
        let missing = if never.is_empty() { missing } else { &never };
        let (names, waited) = (meet.names(missing), wait.patience.as_secs_f64());
        let at = self.acceptor.address;
        let who = if missing.len() == 1 { &*names } else { "each of them" };
        let mut text = format!(
            "{names} did not come to {at} within {waited:.1} s; check that {who} is running and dials this \
             address"
        );
        if let Some(last) = wait.last.take() {
            text += &format!(". The last connection was refused: {last}");
        }
        Error::new(meet.at(missing), Fault::Channel(ChannelError::Io(text)))
    }

    fn turn_away(&self, meet: &Meet, mut came: Came, verdict: HelloVerdict, last: &mut Option<String>) {
        let (topic, lanes) = match &came.hello.topic {
            Topic::Control { .. } => (Topic::Control { nonce: [0; 32], agreement: meet.agreement }, (0, 0)),
            worker @ Topic::Worker { lane, count, .. } => (worker.clone(), (*lane, *count)),
            other @ (Topic::Begin { .. } | Topic::Lane { .. } | Topic::Routes | Topic::Services) => {
                (other.clone(), (0, 0))
            }
        };
        let answer = meet.hello(came.hello.from, verdict, topic).encode();
        let _ = came.channel.send(&answer).and_then(|()| came.channel.finish());
        // The name that it gave, if it is one of those who may come here.
        let from = came.hello.from;
        let who = if self.awaited.contains(&from) { vec![from] } else { self.awaited.clone() };
        let wording = meet.wording(&who);
        let why = TlsRefusal::Hello(wording.verdict(verdict, lanes));
        note(meet, wording.text(&why, &came.from), last);
    }

    /// Collects the worker connections of some lanes from all awaited peers.
    pub(super) fn lanes(&mut self, meet: &Meet, lanes: Lanes, effort: &Effort) -> Result<Found, Error> {
        let (until, patience) = (Instant::now() + meet.deadline, meet.deadline);
        let mut wait = Wait { until, patience, last: None, effort };
        let row = |peer: &PartyId| (*peer, (0..lanes.count).map(|_| None).collect());
        let mut grid: Vec<Row> = self.awaited.iter().map(row).collect();
        let mut waiting = std::mem::take(&mut self.early);
        loop {
            let lacks = |row: &&Row| row.1.iter().any(Option::is_none);
            let missing: Vec<PartyId> = grid.iter().filter(lacks).map(|(peer, _)| *peer).collect();
            if missing.is_empty() {
                let whole =
                    |(peer, row): (PartyId, Vec<Option<_>>)| (peer, row.into_iter().flatten().collect());
                return Ok(Some(grid.into_iter().map(whole).collect()));
            }
            let mut came = match waiting.pop() {
                Some(came) => came,
                None => match self.next(meet, &missing, &mut wait)? {
                    Some(came) => came,
                    None if effort.over() => return Ok(None),
                    None => continue,
                },
            };
            if self.shared && !matches!(came.hello.topic, Topic::Worker { .. }) {
                reply(&mut came.channel, &came.hello, HelloVerdict::Wait);
                continue;
            }
            let peer = came.hello.from;
            match self.place(meet, &came, lanes, &grid) {
                Ok(Place::Later) => self.early.push(came),
                Ok(Place::At(row, index)) => {
                    let taken = meet.hello(peer, HelloVerdict::Taken, came.hello.topic).encode();
                    let ready = came.channel.send(&taken).and_then(|()| came.channel.finish());
                    // Gone before it was answered: it comes again.
                    if ready.and_then(|()| came.channel.begin(meet.deadline)).is_ok() {
                        grid[row].1[index] = Some(came.channel);
                        if grid[row].1.iter().all(Option::is_some) {
                            effort.come(peer);
                        }
                    }
                }
                Err(verdict) => {
                    self.turn_away(meet, came, verdict, &mut wait.last);
                    if verdict == HelloVerdict::Lanes {
                        let text = meet.wording(&[peer]).verdict(verdict, (0, lanes.count));
                        return Err(meet.error(peer, Fault::Input(text)));
                    }
                }
            }
        }
    }

    /// Where a worker connection belongs, or why it does not.
    fn place(&self, meet: &Meet, came: &Came, lanes: Lanes, grid: &[Row]) -> Result<Place, HelloVerdict> {
        let Topic::Worker { session, lane, first, count } = came.hello.topic else {
            return Err(HelloVerdict::Busy);
        };
        if !self.ours(meet, came) {
            return Err(HelloVerdict::Roster);
        }
        if session != lanes.session {
            return Err(HelloVerdict::Session);
        }
        if first >= lanes.first + lanes.count && lane < LANES {
            // The dialler is ahead of us: these lanes are for a later call.
            return if self.early.len() < EARLY { Ok(Place::Later) } else { Err(HelloVerdict::Lane) };
        }
        if (first, count) != (lanes.first, lanes.count) {
            return Err(HelloVerdict::Lanes);
        }
        let row = grid.iter().position(|(peer, _)| *peer == came.hello.from).ok_or(HelloVerdict::Roster)?;
        let index = lane.checked_sub(lanes.first).map(|i| i as usize);
        let free = index.filter(|&i| grid[row].1.get(i).is_some_and(Option::is_none));
        free.map(|index| Place::At(row, index)).ok_or(HelloVerdict::Lane)
    }
}

/// Where a worker connection belongs.
enum Place {
    /// Peer and lane of this call.
    At(usize, usize),
    /// A later call.
    Later,
}

fn note(meet: &Meet, why: String, last: &mut Option<String>) {
    (meet.watch)(&Status::Refused { why: why.clone() });
    *last = Some(why);
}

//! A node that waits for word to begin, and the party that gives it.
//!
//! A node binds its address and meets nobody. A party that proves one of the keys it was given may say one
//! thing: *begin what we agreed on, with this hash*. Whether it does is the node's to decide. Parties that
//! come to meet before the node was told are asked to come again. A meeting that begins goes on at the same
//! bound address, so that nobody who comes meanwhile finds it closed.

use super::dial::Errand;
use super::door::Door;
use super::{DoorPolicy, Effort, Meet, Meeting, RETRY, Status};
use crate::Channel;
use crate::accept::{Acceptor, Admission, Arrival, HANDSHAKE, QUEUE};
use crate::hello::{Hello, HelloVerdict, Topic};
use crate::identity::{Identity, KeyFingerprint};
use crate::network::IpNetwork;
use crate::socket::SocketChannel;
use crate::tls::{Tls, TlsRefusal};
use base::{ChannelError, Error, Fault, PartyId};
use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// A bound address where nothing has begun.
pub struct Standby {
    acceptor: Acceptor,
}

/// Somebody who proved a key says: begin.
pub struct StartCall {
    channel: SocketChannel,
    hello: Hello,
    /// The key that it proved.
    pub key: KeyFingerprint,
    /// Where it called from.
    pub from: SocketAddr,
    /// The agreement that is to begin: the hash of a study.
    pub agreement: [u8; 32],
}

impl Standby {
    /// Binds `address`, for the holders of `keys` who come from the networks `allow` (from anywhere where
    /// there are none). A handshake takes `deadline` at most.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn open(
        address: &str,
        identity: &Identity,
        keys: Vec<KeyFingerprint>,
        allow: Vec<IpNetwork>,
        deadline: Duration,
    ) -> Result<Self, Error> {
        let gate = DoorPolicy::Pinned(Tls::new(identity, keys)?);
        Ok(Self { acceptor: Acceptor::bind(address, gate, Admission::new(allow, deadline))? })
    }

    /// The address, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address
    }

    /// The next one who says that something is to begin, if there is one within `wait`.
    ///
    /// # Errors
    /// When the address accepts nobody any more.
    pub fn next(&mut self, wait: Duration) -> Result<Option<StartCall>, Error> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let arrival = match self.acceptor.arrivals.recv_timeout(left) {
                Ok(arrival) => arrival,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::misuse("the thread that accepts connections has ended"));
                }
            };
            self.acceptor.turned_away.try_iter().take(QUEUE).for_each(drop);
            // Who speaks no TLS, proves no known key or says nothing that we know is forgotten: there is
            // nothing to end.
            let Arrival { mut channel, hello: Ok(hello), key: Some(key), from } = arrival else { continue };
            match hello.topic {
                Topic::Begin { agreement } => {
                    return Ok(Some(StartCall { channel: *channel, hello, key, from, agreement }));
                }
                Topic::Control { .. }
                | Topic::Worker { .. }
                | Topic::Lane { .. }
                | Topic::Routes
                | Topic::Services => reply(&mut channel, &hello, HelloVerdict::Wait),
            }
        }
    }
}

impl StartCall {
    /// The party that says so, and the one that it means, as indices of the agreement's roster.
    #[must_use]
    pub fn parties(&self) -> [PartyId; 2] {
        [self.hello.from, self.hello.to]
    }

    /// It begins.
    pub fn accept(mut self) {
        reply(&mut self.channel, &self.hello, HelloVerdict::Taken);
    }

    /// It does not: this node holds no such agreement, or the caller has no part in it.
    pub fn refuse(mut self) {
        reply(&mut self.channel, &self.hello, HelloVerdict::Agreement);
    }
}

/// Answers a hello in its own words. Who has gone meanwhile does not hear it.
pub(super) fn reply(channel: &mut SocketChannel, hello: &Hello, verdict: HelloVerdict) {
    let answer = Hello { from: hello.to, to: hello.from, verdict, ..hello.clone() };
    let _ = channel.send(&answer.encode()).and_then(|()| channel.finish());
}

impl Meet {
    /// [`Meet::meet`] at the address where this party stood by, as `host` told it to. A host that does not
    /// come, or leaves before everybody is there and does not come back, ends it: a node waits for nobody on
    /// a dead party's word.
    ///
    /// # Errors
    /// As [`Meet::meet`], and when the host is not there.
    pub fn meet_at(mut self, standby: Standby, host: PartyId, lanes: u32) -> Result<Meeting, Error> {
        let awaited = self.awaited()?;
        let door = (!awaited.is_empty()).then(|| Door::over(standby.acceptor, awaited));
        self.told_by = Some(host);
        self.meet_through(door, lanes)
    }

    /// Ends the meeting when the party that said to begin is away for too long.
    pub(super) fn mind(&self, host: PartyId, effort: &Effort) -> Result<Option<()>, Error> {
        let grace = HANDSHAKE.min(self.deadline);
        let mut seen = Instant::now();
        while !effort.over() {
            if effort.there(host) {
                seen = Instant::now();
            } else if seen.elapsed() >= grace {
                let (name, waited) = (self.roster.name(host), grace.as_secs_f64());
                let what = if effort.came(host) { "has left again" } else { "does not come" };
                let text = format!(
                    "{name} said to begin and {what}; waited {waited:.1} s for it. {name}'s own output says \
                     why"
                );
                return Err(self.error(host, Fault::Channel(ChannelError::Io(text))));
            }
            effort.pause(RETRY.1.min(grace));
        }
        Ok(None)
    }

    /// Tells the node of `peer` at `address` to begin what this meeting is about; again while it is not there
    /// or is busy with something else, and after it was there and left: a node that fails stands by once
    /// more.
    ///
    /// # Errors
    /// When it is not there in time, is not the peer, or does not begin this.
    pub(super) fn tell_to_begin(
        &self,
        peer: PartyId,
        address: &str,
        until: Instant,
        effort: &Effort,
    ) -> Result<Option<()>, Error> {
        let gate = self.gate(&[peer])?;
        let mut wait = RETRY.0;
        while !effort.over() {
            if effort.there(peer) {
                effort.pause(RETRY.1);
                continue;
            }
            let limit = self.limit(peer, until, effort);
            let reached = self.reach_at(Errand { peer, gate: &gate, effort }, address, limit)?;
            let Some((mut channel, at)) = reached else { break };
            if let Some(why) = self.say_begin(peer, &mut channel, &at, effort)? {
                if Instant::now() + wait >= limit {
                    let waited = self.patience.as_secs_f64();
                    let name = self.roster.name(peer);
                    let text = format!("{name} at {address} did not begin within {waited:.1} s: {why}");
                    return Err(self.error(peer, Fault::Channel(ChannelError::Io(text))));
                }
                (self.watch)(&Status::Waiting { peer: self.roster.name(peer), at: address.to_owned(), why });
            }
            effort.pause(wait);
            wait = (2 * wait).min(RETRY.1);
        }
        Ok(None)
    }

    /// Says it once. Nothing when it begins; otherwise why to try again.
    fn say_begin(
        &self,
        peer: PartyId,
        channel: &mut SocketChannel,
        at: &SocketAddr,
        effort: &Effort,
    ) -> Result<Option<String>, Error> {
        let question = self.hello(peer, HelloVerdict::Question, Topic::Begin { agreement: self.agreement });
        let answer = match self.ask(channel, &question, at, effort)? {
            Ok(answer) => answer,
            // Between two meetings nobody answers at the door.
            Err(refusal) => return Ok(Some(self.wording(&[peer]).text(&refusal, at))),
        };
        match answer.verdict {
            HelloVerdict::Taken => Ok(None),
            HelloVerdict::Busy | HelloVerdict::Wait => Ok(Some("it is in another session".to_owned())),
            HelloVerdict::Agreement => {
                let name = self.roster.name(peer);
                let text = format!(
                    "{name} does not begin this {}: its node must hold the file and list its full hash; see \
                     {name}'s own log",
                    self.terms.document
                );
                Err(self.error(peer, Fault::Input(text)))
            }
            other => {
                let text = self.wording(&[peer]).verdict(other, (0, 0));
                Err(self.refused(peer, &TlsRefusal::Hello(text), at))
            }
        }
    }
}

//! A node that waits for word to begin, and the party that gives it.
//!
//! A node binds its address and meets nobody. A party that proves one of the keys it was given may say one thing:
//! *begin what we agreed on, with this hash*. Whether it does is the node's to decide. Parties that come to meet before
//! the node was told are asked to come again. A meeting that begins goes on at the same bound address, so that nobody
//! who comes meanwhile finds it closed.

use super::door::Door;
use super::{Effort, Gate, Meet, Meeting, RETRY, Status};
use crate::Channel;
use crate::accept::{Acceptor, Arrival, hear};
use crate::hello::{Hello, NoHello, Topic, Verdict};
use crate::identity::{Fingerprint, Identity};
use crate::refusal::version_text;
use crate::socket::SocketChannel;
use crate::tls::{Refusal, Tls};
use base::{ChannelError, Error, Kind, PartyId};
use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// A bound address where nothing has begun.
pub struct Standby {
    acceptor: Acceptor,
}

/// Somebody who proved a key says: begin.
pub struct Call {
    channel: SocketChannel,
    hello: Hello,
    /// The key that it proved.
    pub key: Fingerprint,
    /// Where it called from.
    pub from: SocketAddr,
    /// The agreement that is to begin: the hash of a study.
    pub agreement: [u8; 32],
}

impl Standby {
    /// Binds `address`, for the holders of `keys`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn open(address: &str, identity: &Identity, keys: Vec<Fingerprint>) -> Result<Self, Error> {
        Ok(Self { acceptor: Acceptor::bind(address, Gate::Pinned(Tls::new(identity, keys)?))? })
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
    pub fn next(&mut self, wait: Duration) -> Result<Option<Call>, Error> {
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
            // Who speaks no TLS, proves no known key or says nothing that we know is forgotten: there is nothing to end.
            let Arrival::Hello { mut channel, hello: Ok(hello), key: Some(key), from } = arrival else {
                continue;
            };
            match hello.topic {
                Topic::Begin { agreement } => {
                    return Ok(Some(Call { channel: *channel, hello, key, from, agreement }));
                }
                Topic::Control { .. } | Topic::Worker { .. } => reply(&mut channel, &hello, Verdict::Wait),
            }
        }
    }
}

impl Call {
    /// The party that says so, and the one that it means, as indices of the agreement's roster.
    #[must_use]
    pub fn parties(&self) -> [PartyId; 2] {
        [self.hello.from, self.hello.to]
    }

    /// It begins.
    pub fn accept(mut self) {
        reply(&mut self.channel, &self.hello, Verdict::Taken);
    }

    /// It does not: this node holds no such agreement, or the caller has no part in it.
    pub fn refuse(mut self) {
        reply(&mut self.channel, &self.hello, Verdict::Agreement);
    }
}

/// Answers a hello in its own words. Who has gone meanwhile does not hear it.
pub(super) fn reply(channel: &mut SocketChannel, hello: &Hello, verdict: Verdict) {
    let answer = Hello { from: hello.to, to: hello.from, verdict, ..hello.clone() };
    let _ = channel.send(&answer.encode()).and_then(|()| channel.finish());
}

impl Meet {
    /// [`Meet::meet`] at the address where this party stood by.
    ///
    /// # Errors
    /// As [`Meet::meet`].
    pub fn meet_at(self, standby: Standby, lanes: u32) -> Result<Meeting, Error> {
        let awaited = self.awaited()?;
        let door = (!awaited.is_empty()).then(|| Door::over(standby.acceptor, awaited));
        self.meet_through(door, lanes)
    }

    /// Tells the node of `peer` at `address` to begin what this meeting is about; tries again while it is not there or is
    /// busy with something else.
    ///
    /// # Errors
    /// When it is not there in time, is not the peer, or does not begin this.
    pub fn call(&self, peer: PartyId, address: &str) -> Result<(), Error> {
        let mut meet = self.clone();
        meet.dial.insert(peer, address.to_owned());
        let (gate, effort) = (meet.gate(&[peer])?, Effort::default());
        let until = Instant::now() + meet.patience;
        let mut wait = RETRY.0;
        loop {
            let reached = meet.reach(peer, &gate, until, &effort)?;
            let (mut channel, at) =
                reached.ok_or_else(|| Error::misuse("nothing ends a call from outside"))?;
            let why = match meet.say_begin(peer, &mut channel, &at)? {
                None => return Ok(()),
                Some(why) => why,
            };
            if Instant::now() + wait >= until {
                let waited = meet.patience.as_secs_f64();
                let text = format!(
                    "{} at {address} did not begin within {waited:.1} s: {why}",
                    meet.roster.name(peer)
                );
                return Err(meet.error(peer, Kind::Channel(ChannelError::Io(text))));
            }
            (meet.watch)(&Status::Waiting { peer: meet.roster.name(peer), at: address.to_owned(), why });
            std::thread::sleep(wait);
            wait = (2 * wait).min(RETRY.1);
        }
    }

    /// Says it once. Nothing when it begins; otherwise why to try again.
    fn say_begin(
        &self,
        peer: PartyId,
        channel: &mut SocketChannel,
        at: &SocketAddr,
    ) -> Result<Option<String>, Error> {
        let question = self.hello(peer, Verdict::Question, Topic::Begin { agreement: self.agreement });
        // A refusal of our key is found when reading, so a failed send is not the last word.
        let _ = channel.send(&question.encode());
        let answer = match hear(channel) {
            Ok(Ok(answer)) => answer,
            Ok(Err(NoHello::Version(theirs))) => {
                let text = version_text(&self.roster.name(peer), Some(theirs));
                return Err(self.error(peer, Kind::Input(text)));
            }
            Ok(Err(_)) => return Err(self.error(peer, Kind::Malformed("a hello"))),
            // Between two meetings nobody answers at the door.
            Err(refusal @ (Refusal::Left | Refusal::Silent(_))) => {
                return Ok(Some(self.wording(&[peer]).text(&refusal, at)));
            }
            Err(refusal) => return Err(self.refused(peer, &refusal, at)),
        };
        match answer.verdict {
            Verdict::Taken => Ok(None),
            Verdict::Busy | Verdict::Wait => Ok(Some("it is in another session".to_owned())),
            Verdict::Agreement => {
                let name = self.roster.name(peer);
                let text = format!(
                    "{name} does not begin this {}: its node must hold the file and list its full hash; see {name}'s own log",
                    self.terms.document
                );
                Err(self.error(peer, Kind::Input(text)))
            }
            other => {
                let text = self.wording(&[peer]).verdict(other, (0, 0));
                Err(self.refused(peer, &Refusal::Hello(text), at))
            }
        }
    }
}

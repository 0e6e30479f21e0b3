//! The side of a pair that dials.

use super::{ChannelSecurity, DoorPolicy, Effort, Lanes, Meet, Met, RETRY, Status};
use crate::Channel;
use crate::accept::{HANDSHAKE, hear};
use crate::hello::{Hello, HelloVerdict, NoHello, Topic};
use crate::refusal::version_text;
use crate::socket::{ReceiveBuffer, SocketChannel, TimeLimit, tune};
use crate::tls::{TlsRefusal, shake};
use base::{ChannelError, Error, Fault, PartyId};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

type Connected = (SocketChannel, SocketAddr);

/// A peer that is dialled: who passes at its door, and what the meeting knows meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Errand<'a> {
    pub peer: PartyId,
    pub gate: &'a DoorPolicy,
    pub effort: &'a Effort,
}

impl Meet {
    /// The control channel to a peer that listens, once everybody is there: a peer that leaves before is gone
    /// to again. Nothing when the meeting failed elsewhere.
    pub(super) fn keep_dialling(
        &self,
        errand: Errand<'_>,
        nonce: [u8; 32],
        until: Instant,
    ) -> Result<Option<Met>, Error> {
        let Errand { peer, effort, .. } = errand;
        loop {
            let limit = self.limit(peer, until, effort);
            let Some(met) = self.dial(errand, nonce, limit)? else { return Ok(None) };
            effort.come(peer);
            while !effort.over() && !met.channel.hung_up() {
                effort.pause(RETRY.1);
            }
            if effort.whole() || !effort.gone(peer) {
                return Ok(Some(met));
            }
            if effort.over() {
                return Ok(None);
            }
        }
    }

    /// The control channel to a peer that listens; nothing when the meeting failed elsewhere.
    fn dial(&self, errand: Errand<'_>, nonce: [u8; 32], until: Instant) -> Result<Option<Met>, Error> {
        let Errand { peer, effort, .. } = errand;
        let question = self.control(peer, HelloVerdict::Question, nonce);
        let mut wait = RETRY.0;
        let (mut channel, at, answer) = loop {
            let Some((mut channel, at)) = self.reach(errand, until)? else { return Ok(None) };
            let why = match self.ask(&mut channel, &question, &at, effort)? {
                Ok(answer) if answer.verdict != HelloVerdict::Wait => break (channel, at, answer),
                Ok(_) => "nothing has begun there yet".to_owned(),
                // It is still in a session that has failed, or has just come to its end.
                Err(refusal) => self.wording(&[peer]).text(&refusal, &at),
            };
            if Instant::now() + wait >= until {
                let text = format!("{} did not begin in time: {why}", self.roster.name(peer));
                return Err(self.error(peer, Fault::Channel(ChannelError::Io(text))));
            }
            (self.watch)(&Status::Waiting { peer: self.roster.name(peer), at: at.to_string(), why });
            effort.pause(wait);
            wait = (2 * wait).min(RETRY.1);
        };
        let Topic::Control { nonce, agreement } = answer.topic else {
            return Err(self.error(peer, Fault::Malformed("an answer to another question")));
        };
        if agreement != self.agreement {
            return Err(self.other_study(peer, &agreement));
        }
        if answer.verdict == HelloVerdict::Declined {
            return Err(self.declined(peer));
        }
        self.taken(&answer, (0, 0), &at)?;
        channel.begin(self.deadline).map_err(|e| self.error(peer, Fault::Channel(e)))?;
        Ok(Some(Met { peer, channel, nonce }))
    }

    /// The worker channels to a peer that listens, in lane order.
    pub(super) fn dial_lanes(
        &self,
        errand: Errand<'_>,
        lanes: Lanes,
    ) -> Result<Option<(PartyId, Vec<SocketChannel>)>, Error> {
        let Errand { peer, effort, .. } = errand;
        let Lanes { session, first, count } = lanes;
        let mut channels = Vec::new();
        for lane in first..first + count {
            let until = Instant::now() + self.deadline;
            let question =
                self.hello(peer, HelloVerdict::Question, Topic::Worker { session, lane, first, count });
            let (channel, at, answer) = loop {
                let Some((mut channel, at)) = self.reach(errand, until)? else { return Ok(None) };
                // Not the deadline of a handshake: the other side may still be busy with the step before the
                // lanes.
                channel.begin(self.deadline).map_err(|e| self.error(peer, Fault::Channel(e)))?;
                match self.ask(&mut channel, &question, &at, effort)? {
                    Ok(answer) => break (channel, at, answer),
                    Err(refusal) if Instant::now() >= until => return Err(self.refused(peer, &refusal, &at)),
                    Err(_) => effort.pause(RETRY.1),
                }
            };
            if answer.verdict == HelloVerdict::Declined {
                return Err(self.error(peer, Fault::Malformed("a lane of a run that has begun")));
            }
            self.taken(&answer, (lane, count), &at)?;
            if answer.topic != question.topic {
                return Err(self.error(peer, Fault::Malformed("an answer to another question")));
            }
            channels.push(channel);
        }
        Ok(Some((peer, channels)))
    }

    /// Sends a hello and receives the answer. The outer error is final; the inner one says that nobody
    /// answered, or that the meeting was over before.
    pub(super) fn ask(
        &self,
        channel: &mut SocketChannel,
        question: &Hello,
        at: &SocketAddr,
        effort: &Effort,
    ) -> Result<Result<Hello, TlsRefusal>, Error> {
        let peer = question.to;
        // A refusal of our key is found when reading, so a failed send is not the last word.
        let sent = channel.send(&question.encode()).and_then(|()| channel.hand_over());
        let bound = TimeLimit::of(channel.deadline());
        let answer = loop {
            match () {
                () if channel.answers(RETRY.0) => break hear(channel, bound),
                () if effort.over() => return Ok(Err(TlsRefusal::Left)),
                () if bound.left().is_none() => break Err(TlsRefusal::Silent(bound.limit)),
                () => {}
            }
        };
        let heard = match answer {
            Ok(heard) => heard,
            // Who has proved its key is the peer, between two meetings.
            Err(refusal @ (TlsRefusal::Left | TlsRefusal::Silent(_)))
                if matches!(self.transport, ChannelSecurity::Tls { .. }) =>
            {
                return Ok(Err(refusal));
            }
            Err(refusal) => return Err(self.refused(peer, &refusal, at)),
        };
        sent.map_err(|e| self.error(peer, Fault::Channel(e)))?;
        let answer = heard.map_err(|no| self.no_hello(peer, no, at))?;
        if answer.from != peer || answer.to != self.me {
            let text = self.wording(&[peer]).verdict(HelloVerdict::Roster, (0, 0));
            return Err(self.refused(peer, &TlsRefusal::Hello(text), at));
        }
        Ok(Ok(answer))
    }

    fn no_hello(&self, peer: PartyId, no: NoHello, at: &SocketAddr) -> Error {
        let name = self.roster.name(peer);
        match no {
            NoHello::Version(theirs) => self.error(peer, Fault::Input(version_text(&name, Some(theirs)))),
            NoHello::Magic => {
                self.refused(peer, &TlsRefusal::Hello("it does not speak Tacit's protocol".into()), at)
            }
            NoHello::Malformed => self.error(peer, Fault::Malformed("a hello")),
        }
    }

    fn taken(&self, answer: &Hello, lanes: (u32, u32), at: &SocketAddr) -> Result<(), Error> {
        if answer.verdict == HelloVerdict::Taken {
            return Ok(());
        }
        let peer = answer.from;
        let text = self.wording(&[peer]).verdict(answer.verdict, lanes);
        Err(self.refused(peer, &TlsRefusal::Hello(text), at))
    }

    /// Connects and proves keys; tries again until the peer is there or the meeting failed elsewhere.
    pub(super) fn reach(&self, errand: Errand<'_>, until: Instant) -> Result<Option<Connected>, Error> {
        let address =
            self.dial.get(&errand.peer).ok_or_else(|| Error::misuse("only a dialled peer is reached"))?;
        self.reach_at(errand, address, until)
    }

    /// [`Meet::reach`] at this address.
    pub(super) fn reach_at(
        &self,
        errand: Errand<'_>,
        address: &str,
        until: Instant,
    ) -> Result<Option<Connected>, Error> {
        let Errand { peer, effort, .. } = errand;
        let start = Instant::now();
        let mut wait = RETRY.0;
        while !effort.over() {
            let why = match self.attempt(errand, address, until)? {
                Ok(connected) => return Ok(Some(connected)),
                Err(why) => why,
            };
            let name = self.roster.name(peer);
            if Instant::now() + wait >= until {
                let waited = start.elapsed().as_secs_f64();
                return Err(self.error(
                    peer,
                    Fault::Channel(ChannelError::Io(format!(
                        "no answer from {name} at {address} within {waited:.1} s ({why}); check that {name} \
                         is running, that it listens there and that no firewall is between"
                    ))),
                ));
            }
            (self.watch)(&Status::Waiting { peer: name, at: address.to_owned(), why });
            effort.pause(wait);
            wait = (2 * wait).min(RETRY.1);
        }
        Ok(None)
    }

    /// One attempt. The outer error is final, the inner one says why to try again.
    fn attempt(
        &self,
        Errand { peer, gate, .. }: Errand<'_>,
        address: &str,
        until: Instant,
    ) -> Result<Result<Connected, String>, Error> {
        let resolved = address.to_socket_addrs().map_err(|e| {
            self.error(
                peer,
                Fault::Input(format!(
                    "`{address}` is no address ({e}); change {} to something like hospitals.example.org:7000",
                    self.terms.address
                )),
            )
        })?;
        let mut why = "the name has no address".to_owned();
        for at in resolved {
            let left = || {
                let most = HANDSHAKE.min(self.deadline).max(RETRY.0);
                until.saturating_duration_since(Instant::now()).clamp(RETRY.0, most)
            };
            let stream = match TcpStream::connect_timeout(&at, left()) {
                Ok(stream) => stream,
                Err(e) => {
                    why = connect_error(&e);
                    continue;
                }
            };
            if stream.local_addr().is_ok_and(|own| own == at) {
                // A connection to an unused local port can meet itself.
                why = connect_error(&ErrorKind::ConnectionRefused.into());
                continue;
            }
            match open_connection(stream, gate, &self.label_of(peer), left()) {
                Ok(channel) => return Ok(Ok((channel, at))),
                // Nobody behind the door yet: a tunnel or relay whose far end is not up.
                Err(refusal @ (TlsRefusal::Left | TlsRefusal::Silent(_))) => {
                    why = self.wording(&[peer]).text(&refusal, &at);
                }
                Err(refusal) => return Err(self.refused(peer, &refusal, &at)),
            }
        }
        Ok(Err(why))
    }
}

/// The dialling side of one connection, which asks for `name`.
pub(crate) fn open_connection(
    stream: TcpStream,
    gate: &DoorPolicy,
    name: &str,
    limit: Duration,
) -> Result<SocketChannel, TlsRefusal> {
    let failed = |e: std::io::Error| TlsRefusal::of_io(&e, limit);
    tune(&stream, limit).map_err(failed)?;
    let (tls, incoming) = match gate {
        DoorPolicy::Open => (None, ReceiveBuffer::new()),
        DoorPolicy::Pinned(tls) => {
            let (tls, incoming) = shake(&stream, tls.dialer(name)?, TimeLimit::of(limit))?;
            (Some(tls), incoming)
        }
    };
    SocketChannel::new(stream, tls, incoming, limit).map_err(failed)
}

fn connect_error(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".into(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "no reply".into(),
        _ => error.to_string(),
    }
}

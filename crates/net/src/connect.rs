//! How two parties meet: one listens, the other dials, both prove their keys, and a session begins.
//!
//! The first connection is the control channel. Both sides put a nonce on it; the session id hashes the nonces with
//! what the parties agreed on. Every worker channel is a connection of its own that proves the keys again and names
//! the session and its lane. See `docs/protocols/wire.md`.

pub use crate::free::free_address;

use crate::Channel;
use crate::accept::{Acceptor, Arrival, HANDSHAKE, hear};
use crate::hello::{FORMAT_VERSION, Hello, NoHello, Topic, Verdict, session_id};
use crate::identity::{Fingerprint, Identity};
use crate::refusal::{Wording, short, version_text};
use crate::socket::{Incoming, SocketChannel, tune};
use crate::tls::{Refusal, Tls, shake};
use base::{At, ChannelError, Error, Kind, PartyId, Roster, Seed, limits};
use std::fmt;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Worker lanes of one session: one per shard.
pub const LANES: u32 = limits::SHARDS;

/// First and last wait between two attempts to reach a peer that is not there yet.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Where a party meets its peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Waits at this address of its own: `0.0.0.0:7000`. Port 0 lets the system choose; see [`Status::Listening`].
    Listen(String),
    /// Goes to this address of the peer: `hospitals.example.org:7000`.
    Dial(String),
}

/// How bytes travel.
#[derive(Clone)]
pub enum Transport {
    /// Plain TCP: no secrecy, no proof who the peer is. For measurements on one machine.
    Tcp,
    /// TLS 1.3; both sides prove the keys that the study names.
    Tls {
        /// This party's key.
        identity: Arc<Identity>,
        /// The keys of all parties, in party order.
        keys: Vec<Fingerprint>,
    },
}

/// What a meeting is doing, for the operator. `Display` gives a line to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits for the peer at this address of its own.
    Listening {
        /// The peer's name.
        peer: String,
        /// The address, with the port that the system chose.
        at: SocketAddr,
    },
    /// The peer does not answer yet; tries again.
    Waiting {
        /// The peer's name.
        peer: String,
        /// The peer's address as configured.
        at: String,
        /// Why the last attempt failed.
        why: String,
    },
    /// Somebody came who is not the peer; waits on.
    Refused {
        /// Who was refused, why, and what to check.
        why: String,
    },
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { peer, at } => write!(f, "waiting for {peer} at {at}"),
            Self::Waiting { peer, at, why } => write!(f, "waiting for {peer} at {at} ({why})"),
            Self::Refused { why } => write!(f, "refused a connection: {why}"),
        }
    }
}

type Watch = Arc<dyn Fn(&Status) + Send + Sync>;

/// Everything one side needs to meet its peer.
#[derive(Clone)]
pub struct Meet {
    me: PartyId,
    peer: PartyId,
    roster: Roster,
    endpoint: Endpoint,
    transport: Transport,
    agreement: [u8; 32],
    patience: Duration,
    deadline: Duration,
    watch: Watch,
}

/// Who may pass at the door.
#[derive(Clone)]
pub(crate) enum Gate {
    /// Anybody: plain TCP.
    Open,
    /// The holder of one key.
    Pinned(Tls),
}

/// A session with one peer.
pub struct Meeting {
    /// The same 32 bytes on both sides, fresh for every meeting.
    pub session_id: [u8; 32],
    /// The channel for everything that is not a worker's.
    pub control: Box<dyn Channel>,
    /// One channel per lane, in lane order.
    pub workers: Vec<Box<dyn Channel>>,
    meet: Meet,
    side: Side,
    lanes: u32,
}

enum Side {
    Dials(Gate),
    Listens { acceptor: Acceptor, early: Vec<(SocketChannel, Hello, SocketAddr)> },
}

impl Meet {
    /// Two parties of `roster` meet at `endpoint`, agreed on `agreement` (the hash of the study). Both sides must
    /// present the same 32 bytes.
    /// With more than two parties, say whom to meet: [`Meet::peer`].
    #[must_use]
    pub fn new(
        me: PartyId,
        roster: Roster,
        endpoint: Endpoint,
        transport: Transport,
        agreement: [u8; 32],
    ) -> Self {
        let peer = PartyId(u8::from(me.0 == 0));
        let patience = Duration::from_secs(600);
        let deadline = Duration::from_millis(limits::DEADLINE_MS);
        let watch: Watch = Arc::new(|_| ());
        Self { me, peer, roster, endpoint, transport, agreement, patience, deadline, watch }
    }

    /// The party to meet, when there are more than two.
    #[must_use]
    pub fn peer(mut self, peer: PartyId) -> Self {
        self.peer = peer;
        self
    }

    /// How long to wait for the peer to come; ten minutes unless told.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long a channel may make no progress; `limits::DEADLINE_MS` unless told.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Told what the meeting waits for, from whichever thread meets.
    #[must_use]
    pub fn watch(mut self, watch: impl Fn(&Status) + Send + Sync + 'static) -> Self {
        self.watch = Arc::new(watch);
        self
    }

    /// Meets the peer: a control channel and `lanes` worker channels. Both sides ask for the same number of lanes.
    ///
    /// # Errors
    /// When the address cannot be used, nobody comes in time, or the peer is not the one of the study, speaks another
    /// version or holds another study. The text says what to check.
    pub fn meet(self, lanes: u32) -> Result<Meeting, Error> {
        let gate = self.gate().map_err(|e| self.place(e))?;
        let until = Instant::now() + self.patience;
        let met = match &self.endpoint {
            Endpoint::Listen(address) => self.listen(address, gate, until),
            Endpoint::Dial(address) => self.dial(address, gate, until),
        };
        let (session_id, control, side) = met.map_err(|e| self.place(e))?;
        let control = Box::new(control);
        let mut meeting = Meeting { session_id, control, workers: Vec::new(), meet: self, side, lanes: 0 };
        meeting.workers = meeting.more(lanes)?;
        Ok(meeting)
    }

    fn gate(&self) -> Result<Gate, Error> {
        let Transport::Tls { identity, keys } = &self.transport else { return Ok(Gate::Open) };
        let (Some(mine), Some(theirs)) = (keys.get(self.me.index()), keys.get(self.peer.index())) else {
            return Err(Error::misuse("Meet wants the key of every party"));
        };
        let own = identity.fingerprint();
        if own != *mine {
            let me = self.roster.name(self.me);
            return Err(Error::input(format!(
                "the identity in use is {own}, but {me} has {mine}; check `identity` in this party's own file, or the \
                 line `key` under [party.{me}] of the study"
            )));
        }
        Ok(Gate::Pinned(Tls::new(identity, *theirs)?))
    }

    fn at(&self) -> At {
        let peer = Some(self.roster.name(self.peer));
        At { party: self.roster.name(self.me), peer, step: "meet".into() }
    }

    fn place(&self, error: Error) -> Error {
        error.place(|| self.at())
    }

    fn error(&self, kind: Kind) -> Error {
        Error::new(self.at(), kind)
    }

    fn wording(&self) -> Wording {
        let keys = match &self.transport {
            Transport::Tcp => Vec::new(),
            Transport::Tls { keys, .. } => {
                self.roster.parties().map(|p| self.roster.name(p)).zip(keys.iter().copied()).collect()
            }
        };
        Wording { me: self.roster.name(self.me), peer: self.roster.name(self.peer), keys }
    }

    fn refused(&self, refusal: &Refusal, address: &dyn fmt::Display) -> Error {
        let text = self.wording().text(refusal, address);
        self.error(Wording::kind(refusal, text))
    }

    fn hello(&self, verdict: Verdict, topic: Topic) -> Hello {
        Hello { version: FORMAT_VERSION, from: self.me, to: self.peer, verdict, topic }
    }

    fn control(&self, verdict: Verdict, nonce: [u8; 32]) -> Hello {
        self.hello(verdict, Topic::Control { nonce, agreement: self.agreement })
    }

    /// Whether a hello comes from our peer and is meant for us.
    fn ours(&self, hello: &Hello) -> bool {
        hello.from == self.peer && hello.to == self.me
    }

    fn other_study(&self, theirs: &[u8; 32]) -> Error {
        let (peer, ours) = (self.roster.name(self.peer), short(&self.agreement));
        self.error(Kind::Input(format!(
            "{peer} holds another study: hash {} there, {ours} here; `tacit check --peer` names the first line in \
             which the two files differ",
            short(theirs)
        )))
    }

    // ---- the side that dials

    fn dial(&self, address: &str, gate: Gate, until: Instant) -> Result<Begun, Error> {
        let (mut channel, at) = self.reach(address, &gate, until)?;
        let nonce = *Seed::from_system().expose();
        let question = self.control(Verdict::Question, nonce);
        let answer = self.ask(&mut channel, &question, &at)?;
        let Topic::Control { nonce: theirs, agreement } = &answer.topic else {
            return Err(self.error(Kind::Malformed("an answer to another question")));
        };
        if *agreement != self.agreement {
            return Err(self.other_study(agreement));
        }
        self.taken(&answer, (0, 0), &at)?;
        let session = session_id((self.me, &nonce), (self.peer, theirs), &self.agreement);
        channel.begin(self.deadline).map_err(|e| self.error(Kind::Channel(e)))?;
        Ok((session, channel, Side::Dials(gate)))
    }

    /// Sends a hello and receives the answer.
    fn ask(&self, channel: &mut SocketChannel, question: &Hello, at: &SocketAddr) -> Result<Hello, Error> {
        // A refusal of our key is found when reading, so a failed send is not the last word.
        let sent = channel.send(&question.encode());
        let heard = hear(channel).map_err(|refusal| self.refused(&refusal, at))?;
        sent.map_err(|e| self.error(Kind::Channel(e)))?;
        let answer = heard.map_err(|no| self.no_hello(no, at))?;
        if !self.ours(&answer) {
            return Err(self.refused(&Refusal::Hello(self.wording().verdict(Verdict::Roster, (0, 0))), at));
        }
        Ok(answer)
    }

    fn no_hello(&self, no: NoHello, at: &SocketAddr) -> Error {
        let peer = self.roster.name(self.peer);
        match no {
            NoHello::Version(theirs) => self.error(Kind::Input(version_text(&peer, Some(theirs)))),
            NoHello::Magic => self.refused(&Refusal::Hello("it does not speak Tacit's protocol".into()), at),
            NoHello::Malformed => self.error(Kind::Malformed("a hello")),
        }
    }

    fn taken(&self, answer: &Hello, lanes: (u32, u32), at: &SocketAddr) -> Result<(), Error> {
        if answer.verdict == Verdict::Taken {
            return Ok(());
        }
        Err(self.refused(&Refusal::Hello(self.wording().verdict(answer.verdict, lanes)), at))
    }

    /// Connects and proves keys; tries again until the peer is there.
    fn reach(
        &self,
        address: &str,
        gate: &Gate,
        until: Instant,
    ) -> Result<(SocketChannel, SocketAddr), Error> {
        let start = Instant::now();
        let mut wait = RETRY.0;
        loop {
            let why = match self.attempt(address, gate, until)? {
                Ok(connected) => return Ok(connected),
                Err(why) => why,
            };
            let peer = self.roster.name(self.peer);
            if Instant::now() + wait >= until {
                let waited = start.elapsed().as_secs_f64();
                return Err(self.error(Kind::Channel(ChannelError::Io(format!(
                    "no answer from {peer} at {address} within {waited:.1} s ({why}); check that {peer} is running, \
                     that it listens there and that no firewall is between"
                )))));
            }
            (self.watch)(&Status::Waiting { peer, at: address.to_owned(), why });
            std::thread::sleep(wait);
            wait = (2 * wait).min(RETRY.1);
        }
    }

    /// One attempt. The outer error is final, the inner one says why to try again.
    fn attempt(
        &self,
        address: &str,
        gate: &Gate,
        until: Instant,
    ) -> Result<Result<(SocketChannel, SocketAddr), String>, Error> {
        let resolved = address.to_socket_addrs().map_err(|e| {
            self.error(Kind::Input(format!(
                "`{address}` is no address ({e}); change `peer` to something like hospitals.example.org:7000"
            )))
        })?;
        let mut why = "the name has no address".to_owned();
        for at in resolved {
            let left = until.saturating_duration_since(Instant::now()).clamp(RETRY.0, HANDSHAKE);
            let stream = match TcpStream::connect_timeout(&at, left) {
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
            match open(stream, gate) {
                Ok(channel) => return Ok(Ok((channel, at))),
                // Nobody behind the door yet: a tunnel or relay whose far end is not up.
                Err(refusal @ (Refusal::Left | Refusal::Silent(_))) => {
                    why = self.wording().text(&refusal, &at);
                }
                Err(refusal) => return Err(self.refused(&refusal, &at)),
            }
        }
        Ok(Err(why))
    }

    fn dial_lane(
        &self,
        gate: &Gate,
        session: [u8; 32],
        (lane, first, count): (u32, u32, u32),
    ) -> Result<SocketChannel, Error> {
        let Endpoint::Dial(address) = &self.endpoint else {
            return Err(Error::misuse("the listening side dials no lanes"));
        };
        let (mut channel, at) = self.reach(address, gate, Instant::now() + self.deadline)?;
        // Not the deadline of a handshake: the other side may still be busy with the step before the lanes.
        channel.begin(self.deadline).map_err(|e| self.error(Kind::Channel(e)))?;
        let question = self.hello(Verdict::Question, Topic::Worker { session, lane, first, count });
        let answer = self.ask(&mut channel, &question, &at)?;
        self.taken(&answer, (lane, count), &at)?;
        if answer.topic != question.topic {
            return Err(self.error(Kind::Malformed("an answer to another question")));
        }
        Ok(channel)
    }

    // ---- the side that listens

    fn listen(&self, address: &str, gate: Gate, until: Instant) -> Result<Begun, Error> {
        let acceptor = Acceptor::bind(address, gate)?;
        let peer = self.roster.name(self.peer);
        (self.watch)(&Status::Listening { peer, at: acceptor.address });
        let mut last = None;
        loop {
            let (mut channel, hello, from) = self.next(&acceptor, until, self.patience, &mut last)?;
            let Topic::Control { nonce: theirs, agreement } = &hello.topic else {
                self.turn_away(channel, &hello, Verdict::Session, from, &mut last);
                continue;
            };
            let nonce = *Seed::from_system().expose();
            let verdict = match () {
                () if !self.ours(&hello) => Verdict::Roster,
                () if *agreement != self.agreement => Verdict::Agreement,
                () => Verdict::Taken,
            };
            let answer = channel.send(&self.control(verdict, nonce).encode()).and_then(|()| channel.finish());
            match verdict {
                Verdict::Taken => {}
                Verdict::Agreement => return Err(self.other_study(agreement)),
                other => {
                    return Err(self.refused(&Refusal::Hello(self.wording().verdict(other, (0, 0))), &from));
                }
            }
            let ready = answer.and_then(|()| channel.begin(self.deadline));
            ready.map_err(|e| self.error(Kind::Channel(e)))?;
            let session = session_id((self.peer, theirs), (self.me, &nonce), &self.agreement);
            return Ok((session, channel, Side::Listens { acceptor, early: Vec::new() }));
        }
    }

    /// The next connection that proved to be the peer. `last` remembers who was refused, for the final error.
    fn next(
        &self,
        acceptor: &Acceptor,
        until: Instant,
        patience: Duration,
        last: &mut Option<String>,
    ) -> Result<(SocketChannel, Hello, SocketAddr), Error> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(arrival) = acceptor.arrivals.recv_timeout(left) else {
                return Err(self.nobody(acceptor.address, patience, last.take()));
            };
            let (refusal, from) = match arrival {
                Arrival::Hello { channel, hello: Ok(hello), from } => return Ok((*channel, hello, from)),
                Arrival::Hello { mut channel, hello: Err(NoHello::Version(theirs)), .. } => {
                    // Our own version tells the other side what is wrong.
                    let answer = self.control(Verdict::Version, [0; 32]).encode();
                    let _ = channel.send(&answer).and_then(|()| channel.finish());
                    let peer = self.roster.name(self.peer);
                    return Err(self.error(Kind::Input(version_text(&peer, Some(theirs)))));
                }
                Arrival::Hello { hello: Err(_), from, .. } => {
                    (Refusal::Hello("it does not speak Tacit's protocol".into()), from)
                }
                Arrival::Refused { from, why } => (why, from),
            };
            self.note(self.wording().text(&refusal, &from), last);
        }
    }

    fn note(&self, why: String, last: &mut Option<String>) {
        (self.watch)(&Status::Refused { why: why.clone() });
        *last = Some(why);
    }

    fn nobody(&self, at: SocketAddr, patience: Duration, last: Option<String>) -> Error {
        let (peer, waited) = (self.roster.name(self.peer), patience.as_secs_f64());
        let mut text = format!(
            "{peer} did not come to {at} within {waited:.1} s; check that {peer} is running and dials this address"
        );
        if let Some(last) = last {
            text += &format!(". The last connection was refused: {last}");
        }
        self.error(Kind::Channel(ChannelError::Io(text)))
    }

    fn turn_away(
        &self,
        mut channel: SocketChannel,
        hello: &Hello,
        verdict: Verdict,
        from: SocketAddr,
        last: &mut Option<String>,
    ) {
        let (topic, lanes) = match &hello.topic {
            Topic::Control { .. } => (Topic::Control { nonce: [0; 32], agreement: self.agreement }, (0, 0)),
            worker @ Topic::Worker { lane, count, .. } => (worker.clone(), (*lane, *count)),
        };
        let _ = channel.send(&self.hello(verdict, topic).encode()).and_then(|()| channel.finish());
        let why = Refusal::Hello(self.wording().verdict(verdict, lanes));
        self.note(self.wording().text(&why, &from), last);
    }

    /// Collects the worker connections of lanes `first..first + count`.
    fn gather(
        &self,
        acceptor: &Acceptor,
        early: &mut Vec<(SocketChannel, Hello, SocketAddr)>,
        session: [u8; 32],
        first: u32,
        count: u32,
    ) -> Result<Vec<Box<dyn Channel>>, Error> {
        let until = Instant::now() + self.deadline;
        let mut lanes: Vec<Option<Box<dyn Channel>>> = (0..count).map(|_| None).collect();
        let mut last = None;
        let mut waiting = std::mem::take(early);
        while lanes.iter().any(Option::is_none) {
            let (mut channel, hello, from) = match waiting.pop() {
                Some(came) => came,
                None => self.next(acceptor, until, self.deadline, &mut last)?,
            };
            let place = match &hello.topic {
                Topic::Control { .. } => Err(Verdict::Busy),
                _ if !self.ours(&hello) => Err(Verdict::Roster),
                Topic::Worker { session: named, .. } if *named != session => Err(Verdict::Session),
                Topic::Worker { lane, first: theirs, .. } if *theirs >= first + count && *lane < LANES => {
                    if early.len() < LANES as usize {
                        // The dialler is ahead of us: these lanes are for a later call.
                        early.push((channel, hello, from));
                        continue;
                    }
                    Err(Verdict::Lane)
                }
                Topic::Worker { first: theirs, count: many, .. } if (*theirs, *many) != (first, count) => {
                    Err(Verdict::Lanes)
                }
                Topic::Worker { lane, .. } => {
                    let index = lane.checked_sub(first).map(|i| i as usize);
                    let free = index.filter(|&i| lanes.get(i).is_some_and(Option::is_none));
                    free.ok_or(Verdict::Lane)
                }
            };
            match place {
                Ok(index) => {
                    let taken = self.hello(Verdict::Taken, hello.topic).encode();
                    let ready = channel.send(&taken).and_then(|()| channel.finish());
                    let ready = ready.and_then(|()| channel.begin(self.deadline));
                    ready.map_err(|e| self.error(Kind::Channel(e)))?;
                    lanes[index] = Some(Box::new(channel));
                }
                Err(verdict) => {
                    self.turn_away(channel, &hello, verdict, from, &mut last);
                    if verdict == Verdict::Lanes {
                        let text = self.wording().verdict(verdict, (0, count));
                        return Err(self.error(Kind::Input(text)));
                    }
                }
            }
        }
        Ok(lanes.into_iter().flatten().collect())
    }
}

type Begun = ([u8; 32], SocketChannel, Side);

/// The dialling side of one connection.
fn open(stream: TcpStream, gate: &Gate) -> Result<SocketChannel, Refusal> {
    let failed = |e: std::io::Error| Refusal::of_io(&e, HANDSHAKE);
    tune(&stream, HANDSHAKE).map_err(failed)?;
    let (tls, incoming) = match gate {
        Gate::Open => (None, Incoming::new()),
        Gate::Pinned(tls) => {
            let (tls, incoming) = shake(&stream, tls.dialer()?, HANDSHAKE)?;
            (Some(tls), incoming)
        }
    };
    SocketChannel::new(stream, tls, incoming, HANDSHAKE).map_err(failed)
}

fn connect_error(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".into(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "no reply".into(),
        _ => error.to_string(),
    }
}

impl Meeting {
    /// `count` more worker channels, numbered on from those there are. Both sides call it with the same number; the
    /// listening side may be called later than the dialling one.
    ///
    /// # Errors
    /// As [`Meet::meet`], and when the two sides ask for different numbers.
    pub fn more(&mut self, count: u32) -> Result<Vec<Box<dyn Channel>>, Error> {
        let (meet, first, session) = (&self.meet, self.lanes, self.session_id);
        let end = first.checked_add(count).filter(|&end| end <= LANES).ok_or_else(|| {
            let (value, cap) = (u64::from(first) + u64::from(count), u64::from(LANES));
            meet.error(Kind::Limit { name: "lanes", value, cap })
        })?;
        let lanes: Vec<Box<dyn Channel>> = match &mut self.side {
            Side::Listens { acceptor, early } => meet.gather(acceptor, early, session, first, count)?,
            Side::Dials(gate) => (first..end)
                .map(|lane| meet.dial_lane(gate, session, (lane, first, count)))
                .map(|lane| lane.map(|channel| Box::new(channel) as Box<dyn Channel>))
                .collect::<Result<_, Error>>()?,
        };
        self.lanes = end;
        Ok(lanes)
    }
}

impl fmt::Debug for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meeting({} with {} lanes)", short(&self.session_id), self.lanes)
    }
}

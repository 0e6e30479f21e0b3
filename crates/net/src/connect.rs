//! How parties meet: of every two one listens and the other dials, both prove their keys, and a session
//! begins.
//!
//! The first connection of a pair is its control channel. Every party puts one nonce on all of its control
//! channels; the session id hashes the nonces of all with what the parties agreed on. Every worker channel is
//! a connection of its own that proves the keys again and names the session and its lane. See
//! `docs/protocols/wire.md`.

mod decline;
mod dial;
mod door;
mod effort;
mod gated;
mod standby;

pub(crate) use dial::open_connection;
pub use standby::{Standby, StartCall};

use crate::Channel;
use crate::accept::Admission;
use crate::farewell::{Farewell, HEAR};
use crate::gate::GateAccess;
use crate::gate::link::GateLink;
use crate::hello::{FORMAT_VERSION, Hello, HelloVerdict, Topic, session_id};
use crate::identity::{Identity, KeyFingerprint};
use crate::lanes::{LanePort, ListeningPort};
use crate::network::IpNetwork;
use crate::refusal::{OperatorTerms, Wording, short};
use crate::socket::SocketChannel;
use crate::stop::StopSwitch;
use crate::tls::{Tls, TlsRefusal};
use base::{Accusation, At, ChannelError, Error, Fault, PartyId, Roster, Seed, limits};
use dial::Errand;
use door::Door;
use effort::Effort;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Worker lanes of one session: one per shard, and one for [`Farewell`].
pub const LANES: u32 = limits::SHARDS + 1;

/// First and last wait between two attempts to reach a peer that is not there yet; also how soon a side that
/// waits notices that the meeting has failed elsewhere.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// One channel to each peer, in party order: what a [`crate::Session`] is made of.
pub type Channels = Vec<(PartyId, Box<dyn Channel>)>;

/// Where one of two parties meets the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendezvous {
    /// Waits at this address of its own: `0.0.0.0:7000`. Port 0 lets the system choose; see
    /// [`Status::Listening`].
    Listen(String),
    /// Goes to this address of the peer: `hospitals.example.org:7000`.
    Dial(String),
}

/// How bytes travel.
#[derive(Clone)]
pub enum ChannelSecurity {
    /// Plain TCP: no secrecy, no proof who the peer is. For measurements on one machine.
    Tcp,
    /// TLS 1.3; both sides prove the keys that the study names.
    Tls {
        /// This party's key.
        identity: Arc<Identity>,
        /// The keys of all parties, in party order.
        keys: Vec<KeyFingerprint>,
    },
}

/// What a meeting is doing, for the operator. `Display` gives a line to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits for peers at this address of its own; told again whenever one of several has come.
    Listening {
        /// The peer's name; the names of all that are missing, with commas between.
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

/// Everything one party needs to meet its peers.
#[derive(Clone)]
pub struct Meet {
    me: PartyId,
    roster: Roster,
    /// Own address, for the peers without an address of theirs.
    listen: Option<String>,
    dial: BTreeMap<PartyId, String>,
    /// The nodes that this party tells to begin, and where they stand by.
    tell: BTreeMap<PartyId, String>,
    /// Who told this party to begin.
    told_by: Option<PartyId>,
    transport: ChannelSecurity,
    agreement: [u8; 32],
    terms: OperatorTerms,
    patience: Duration,
    deadline: Duration,
    allow: Vec<IpNetwork>,
    /// What stands before the address where this party listens.
    access: Option<GateAccess>,
    watch: Watch,
    stop: StopSwitch,
}

/// Who may pass at the door.
#[derive(Clone)]
pub(crate) enum DoorPolicy {
    /// Anybody: plain TCP.
    Open,
    /// The holders of these keys.
    Pinned(Tls),
}

/// A session with every peer.
pub struct Meeting {
    /// The same 32 bytes at all parties, fresh for every meeting.
    pub session_id: [u8; 32],
    /// The channels for everything that is not a worker's.
    pub control: Channels,
    /// One set of channels per lane, in lane order.
    pub workers: Vec<Channels>,
    meet: Meet,
    /// How this party goes to each peer that it dials.
    gates: BTreeMap<PartyId, DoorPolicy>,
    door: Option<Door>,
    /// What hands peers on to the door, and where its routes end with this.
    link: Option<GateLink>,
    lanes: u32,
}

impl Meet {
    /// Two parties of `roster` meet at `endpoint`, agreed on `agreement` (the hash of the study). Both sides
    /// must present the same 32 bytes.
    #[must_use]
    pub fn new(
        me: PartyId,
        roster: Roster,
        endpoint: Rendezvous,
        transport: ChannelSecurity,
        agreement: [u8; 32],
    ) -> Self {
        let peer = PartyId(u8::from(me.0 == 0));
        let (listen, dial) = match endpoint {
            Rendezvous::Listen(at) => (Some(at), BTreeMap::new()),
            Rendezvous::Dial(at) => (None, BTreeMap::from([(peer, at)])),
        };
        Self::all(me, roster, listen, dial, transport, agreement)
    }

    /// All parties of `roster` meet. This one goes to the peers that have an address in `dial`, and waits for
    /// the others at `listen`; of every two parties exactly one must dial.
    #[must_use]
    pub fn all(
        me: PartyId,
        roster: Roster,
        listen: Option<String>,
        dial: BTreeMap<PartyId, String>,
        transport: ChannelSecurity,
        agreement: [u8; 32],
    ) -> Self {
        let patience = Duration::from_secs(600);
        let deadline = Duration::from_millis(limits::DEADLINE_MS);
        let watch: Watch = Arc::new(|_| ());
        let terms = OperatorTerms::default();
        Self {
            me,
            roster,
            listen,
            dial,
            tell: BTreeMap::new(),
            told_by: None,
            transport,
            agreement,
            terms,
            patience,
            deadline,
            allow: Vec::new(),
            access: None,
            watch,
            stop: StopSwitch::default(),
        }
    }

    /// What errors call the agreement and the lines to check; those of a study unless told.
    #[must_use]
    pub fn terms(mut self, terms: OperatorTerms) -> Self {
        self.terms = terms;
        self
    }

    /// How long to wait for the peers to come; ten minutes unless told.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Takes connections from these networks only; from anywhere unless told.
    #[must_use]
    pub fn allow(mut self, networks: Vec<IpNetwork>) -> Self {
        self.allow = networks;
        self
    }

    /// Has peers come in by a gate, which hands them on to the address where this party listens.
    #[must_use]
    pub fn behind(mut self, access: Option<GateAccess>) -> Self {
        self.access = access;
        self
    }

    /// How long a channel may make no progress, and a handshake may take where that is less than
    /// `limits::HANDSHAKE_MS`; `limits::DEADLINE_MS` unless told.
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

    /// Ends the meeting, and whatever waits on its channels.
    #[must_use]
    pub fn stop(mut self, stop: StopSwitch) -> Self {
        self.stop = stop;
        self
    }

    /// Nodes that stand by at these addresses and are told to begin while everybody meets, again when they
    /// have failed.
    #[must_use]
    pub fn tell(mut self, nodes: BTreeMap<PartyId, String>) -> Self {
        self.tell = nodes;
        self
    }

    /// Meets the peers: control channels and `lanes` worker channels to each. All parties ask for the same
    /// number of lanes.
    ///
    /// # Errors
    /// When an address cannot be used, somebody does not come in time, or a peer is not the one of the study,
    /// speaks another version or holds another study. The text says who, and what to check.
    pub fn meet(self, lanes: u32) -> Result<Meeting, Error> {
        let awaited = self.awaited()?;
        let door = match &self.listen {
            Some(address) if !awaited.is_empty() => {
                let admission = Admission::new(self.allow.clone(), self.deadline);
                let open = || Door::open(address, self.gate(&awaited)?, admission, awaited.clone());
                Some(open().map_err(|e| e.place(|| self.at(&awaited)))?)
            }
            _ => None,
        };
        self.meet_through(door, lanes)
    }

    /// Meets those who come through `door`, and those whom this party goes to.
    fn meet_through(self, mut door: Option<Door>, lanes: u32) -> Result<Meeting, Error> {
        let all: Vec<PartyId> = self.roster.parties().filter(|p| *p != self.me).collect();
        let mut gates = BTreeMap::new();
        for peer in self.dial.keys() {
            gates.insert(*peer, self.gate(&[*peer]).map_err(|e| e.place(|| self.at(&[*peer])))?);
        }
        let until = Instant::now() + self.patience;
        let nonce = *Seed::from_system().expose();
        let (mut met, link) = self.controls(&gates, door.as_mut(), nonce, until)?;
        met.iter_mut().for_each(|met| met.channel.ends_with(&self.stop));
        met.sort_by_key(|met| met.peer);
        let mut nonces: Vec<(PartyId, [u8; 32])> = met.iter().map(|met| (met.peer, met.nonce)).collect();
        nonces.push((self.me, nonce));
        nonces.sort_unstable();
        let session_id = session_id(&nonces, &self.agreement);
        if all.len() > 1 {
            self.compare(&mut met, &session_id)?;
        }
        let control = met.into_iter().map(|met| (met.peer, Box::new(met.channel) as Box<dyn Channel>));
        let (control, workers) = (control.collect(), Vec::new());
        let mut meeting = Meeting { session_id, control, workers, meet: self, gates, door, link, lanes: 0 };
        meeting.workers = meeting.more(lanes)?;
        Ok(meeting)
    }

    /// The peers that come to this party.
    fn awaited(&self) -> Result<Vec<PartyId>, Error> {
        let awaited: Vec<PartyId> =
            self.roster.parties().filter(|p| *p != self.me && !self.dial.contains_key(p)).collect();
        let known = self.dial.keys().all(|p| *p != self.me && p.index() < self.roster.len());
        if known && (awaited.is_empty() || self.listen.is_some()) {
            return Ok(awaited);
        }
        Err(Error::misuse("Meet wants an address to listen at, or one of every peer to dial"))
    }

    /// The control channels of all peers, met at the same time, and the gate through which they come.
    fn controls(
        &self,
        gates: &BTreeMap<PartyId, DoorPolicy>,
        door: Option<&mut Door>,
        nonce: [u8; 32],
        until: Instant,
    ) -> Result<(Vec<Met>, Option<GateLink>), Error> {
        let effort = Effort::until(self.roster.len() - 1);
        let met = std::thread::scope(|scope| {
            let effort = &effort;
            scope.spawn(move || effort.note(self.until_stopped(effort)));
            for (peer, address) in &self.tell {
                scope.spawn(move || effort.note(self.tell_to_begin(*peer, address, until, effort)));
            }
            if let Some(host) = self.told_by {
                scope.spawn(move || effort.note(self.mind(host, effort)));
            }
            let dial = |(peer, gate): (&PartyId, &DoorPolicy)| {
                let (peer, gate) = (*peer, gate.clone());
                scope.spawn(move || {
                    let errand = Errand { peer, gate: &gate, effort };
                    effort.note(self.keep_dialling(errand, nonce, until))
                })
            };
            let dialling: Vec<_> = gates.iter().map(dial).collect();
            let gated = self.access.as_ref().zip(door.as_deref().map(Door::address));
            let gated = gated.map(|(access, at)| {
                scope.spawn(move || effort.note(self.keep_routes(access, at, until, effort)))
            });
            let came = door.and_then(|door| effort.note(door.controls(self, nonce, until, effort)));
            let mut met = came.unwrap_or_default();
            for thread in dialling {
                met.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            let link =
                gated.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            (met, link.flatten())
        });
        effort.end()?;
        Ok(met)
    }

    /// Ends an effort when this party's operator does.
    fn until_stopped(&self, effort: &Effort) -> Result<Option<()>, Error> {
        while !effort.over() {
            if self.stop.is_stopped() {
                let at = At { peer: None, ..self.at(&[]) };
                return Err(Error::new(at, Fault::Channel(ChannelError::Stopped)));
            }
            effort.pause(RETRY.0);
        }
        Ok(None)
    }

    /// All parties compare their session ids: a party that told different nonces is found here.
    fn compare(&self, met: &mut [Met], session: &[u8; 32]) -> Result<(), Error> {
        for Met { peer, channel, .. } in &mut *met {
            channel.send(session).map_err(|e| self.error(*peer, Fault::Channel(e)))?;
            channel.finish().map_err(|e| self.error(*peer, Fault::Channel(e)))?;
        }
        for Met { peer, channel, .. } in met {
            let mut theirs = [0; 32];
            channel.begin(self.deadline).map_err(|e| self.error(*peer, Fault::Channel(e)))?;
            channel.recv(&mut theirs).map_err(|e| self.error(*peer, Fault::Channel(e)))?;
            if theirs != *session {
                let what = "its session id is not ours: the parties are in different meetings, or one of \
                            them tells others different things; start all of them again";
                return Err(self.error(*peer, Fault::Deviated(what)).accusing(self.anyone()));
            }
        }
        Ok(())
    }

    /// Any other party may have told different things to different ones.
    fn anyone(&self) -> Accusation {
        let others = self.roster.parties().filter(|party| *party != self.me);
        let accused = others.map(|party| self.roster.name(party)).collect();
        Accusation { by: self.roster.name(self.me), accused, step: String::new(), through: None }
    }

    /// Ends an effort when a peer that was met has left before its lanes were there.
    fn watch_over(&self, control: &mut Channels, effort: &Effort) -> Result<Option<()>, Error> {
        let mut left: BTreeMap<PartyId, (Instant, ChannelError)> = BTreeMap::new();
        while !effort.over() {
            for (peer, channel) in control.iter_mut().filter(|(peer, _)| !effort.there(*peer)) {
                match left.get(peer) {
                    // Its last words may be under way on the lanes.
                    Some((since, error)) if since.elapsed() >= RETRY.1 => {
                        return Err(self.error(*peer, Fault::Channel(error.clone())));
                    }
                    Some(_) => {}
                    None => {
                        if let Err(error) = channel.watch() {
                            left.insert(*peer, (Instant::now(), error));
                        }
                    }
                }
            }
            effort.pause(RETRY.1);
        }
        Ok(None)
    }

    fn gate(&self, peers: &[PartyId]) -> Result<DoorPolicy, Error> {
        let ChannelSecurity::Tls { identity, keys } = &self.transport else { return Ok(DoorPolicy::Open) };
        let theirs: Option<Vec<KeyFingerprint>> =
            peers.iter().map(|p| keys.get(p.index()).copied()).collect();
        let (Some(mine), Some(theirs)) = (keys.get(self.me.index()), theirs) else {
            return Err(Error::misuse("Meet wants the key of every party"));
        };
        let own = identity.fingerprint();
        if own != *mine {
            let me = self.roster.name(self.me);
            let (identity, key) = (self.terms.identity, self.terms.key_of(&me));
            return Err(Error::input(format!(
                "the identity in use is {own}, but {me} has {mine}; check {identity}, or {key}"
            )));
        }
        Ok(DoorPolicy::Pinned(Tls::new(identity, theirs)?))
    }

    /// The names of some peers, with commas between.
    fn names(&self, peers: &[PartyId]) -> String {
        peers.iter().map(|p| self.roster.name(*p)).collect::<Vec<_>>().join(", ")
    }

    fn at(&self, peers: &[PartyId]) -> At {
        At { party: self.roster.name(self.me), peer: Some(self.names(peers)), step: "meet".into() }
    }

    fn error(&self, peer: PartyId, kind: Fault) -> Error {
        Error::new(self.at(&[peer]), kind)
    }

    fn wording(&self, peers: &[PartyId]) -> Wording {
        let keys = match &self.transport {
            ChannelSecurity::Tcp => Vec::new(),
            ChannelSecurity::Tls { keys, .. } => {
                self.roster.parties().map(|p| self.roster.name(p)).zip(keys.iter().copied()).collect()
            }
        };
        let peers = peers.iter().map(|p| self.roster.name(*p)).collect();
        Wording { terms: self.terms, me: self.roster.name(self.me), peers, keys }
    }

    fn refused(&self, peer: PartyId, refusal: &TlsRefusal, address: &dyn fmt::Display) -> Error {
        let text = self.wording(&[peer]).text(refusal, address);
        self.error(peer, Wording::kind(refusal, text))
    }

    fn hello(&self, to: PartyId, verdict: HelloVerdict, topic: Topic) -> Hello {
        Hello { version: FORMAT_VERSION, from: self.me, to, verdict, topic }
    }

    fn control(&self, to: PartyId, verdict: HelloVerdict, nonce: [u8; 32]) -> Hello {
        self.hello(to, verdict, Topic::Control { nonce, agreement: self.agreement })
    }

    /// A peer says that it takes no part.
    fn declined(&self, peer: PartyId) -> Error {
        self.error(peer, Fault::Refused(self.wording(&[peer]).verdict(HelloVerdict::Declined, (0, 0))))
    }

    fn other_study(&self, peer: PartyId, theirs: &[u8; 32]) -> Error {
        let (name, ours) = (self.roster.name(peer), short(&self.agreement));
        let OperatorTerms { document, differ, .. } = self.terms;
        self.error(
            peer,
            Fault::Input(format!(
                "{name} holds another {document}: hash {} there, {ours} here; {differ}",
                short(theirs)
            )),
        )
    }
}

/// A peer that was met.
struct Met {
    peer: PartyId,
    channel: SocketChannel,
    nonce: [u8; 32],
}

/// The lanes `first..first + count` of a session.
#[derive(Clone, Copy)]
struct Lanes {
    session: [u8; 32],
    first: u32,
    count: u32,
}

impl Meeting {
    /// `count` more worker lanes, numbered on from those there are. All parties call it with the same number;
    /// a listening side may be called later than a dialling one.
    ///
    /// # Errors
    /// As [`Meet::meet`], and when the parties ask for different numbers.
    pub fn more(&mut self, count: u32) -> Result<Vec<Channels>, Error> {
        let mut by_lane: Vec<Channels> = (0..count).map(|_| Vec::new()).collect();
        for (peer, channels) in self.open(count)? {
            for (lane, channel) in by_lane.iter_mut().zip(channels) {
                lane.push((peer, Box::new(channel)));
            }
        }
        Ok(by_lane)
    }

    /// Opens one more lane, on which the parties tell each other why they stop. All parties call it.
    ///
    /// # Errors
    /// As [`Meeting::more`].
    pub fn farewell(&mut self) -> Result<Farewell, Error> {
        let mut lane: Channels = Vec::new();
        for (peer, channels) in self.open(1)? {
            for mut channel in channels {
                channel.begin(HEAR).map_err(|e| self.meet.error(peer, Fault::Channel(e)))?;
                lane.push((peer, Box::new(channel)));
            }
        }
        Ok(Farewell::new(self.meet.me, self.meet.roster.clone(), lane))
    }

    /// How lanes of workers come about from now on: at the port, or by the address, of this meeting of two.
    ///
    /// # Errors
    /// When there are more than two parties.
    pub fn lane_port(&mut self) -> Result<LanePort, Error> {
        match (self.door.take(), self.meet.dial.values().next()) {
            (Some(door), None) if self.gates.is_empty() => {
                Ok(LanePort::Listens(ListeningPort::new(door.into_acceptor()).behind(self.link.take())))
            }
            (None, Some(address)) if self.gates.len() == 1 => Ok(LanePort::Dials(address.clone())),
            _ => Err(Error::misuse("lanes are between two parties")),
        }
    }

    /// The next `count` lanes to each peer, in party order.
    fn open(&mut self, count: u32) -> Result<Vec<(PartyId, Vec<SocketChannel>)>, Error> {
        let (meet, gates, first) = (&self.meet, &self.gates, self.lanes);
        let end = first.checked_add(count).filter(|&end| end <= LANES).ok_or_else(|| {
            let (value, cap) = (u64::from(first) + u64::from(count), u64::from(LANES));
            let peers: Vec<PartyId> = self.control.iter().map(|(peer, _)| *peer).collect();
            Error::new(meet.at(&peers), Fault::Limit { name: "lanes", value, cap })
        })?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let lanes = Lanes { session: self.session_id, first, count };
        let effort = Effort::until(meet.roster.len() - 1);
        let (door, control) = (self.door.as_mut(), &mut self.control);
        let mut found = std::thread::scope(|scope| {
            let effort = &effort;
            scope.spawn(move || effort.note(meet.until_stopped(effort)));
            scope.spawn(move || effort.note(meet.watch_over(control, effort)));
            let dial = |(peer, gate): (&PartyId, &DoorPolicy)| {
                let (peer, gate) = (*peer, gate.clone());
                scope.spawn(move || {
                    let found = effort.note(meet.dial_lanes(Errand { peer, gate: &gate, effort }, lanes));
                    found.inspect(|(peer, _)| effort.come(*peer))
                })
            };
            let dialling: Vec<_> = gates.iter().map(dial).collect();
            let came = door.and_then(|door| effort.note(door.lanes(meet, lanes, effort)));
            let mut found = came.unwrap_or_default();
            for thread in dialling {
                found.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            found
        });
        effort.end()?;
        found.iter_mut().flat_map(|(_, lanes)| lanes).for_each(|lane| lane.ends_with(&meet.stop));
        found.sort_by_key(|(peer, _)| *peer);
        self.lanes = end;
        Ok(found)
    }
}

impl fmt::Debug for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meeting({} with {} lanes)", short(&self.session_id), self.lanes)
    }
}

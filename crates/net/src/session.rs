//! A party's half of a conversation: who speaks, with whom, at which step, and what it costs.

use crate::channel::Gone;
use crate::in_place::{Booked, PlacedBuffer};
use crate::{Channel, Inlet, Outlet, RangeHalt, RowProgress, Traffic, TrafficEntry};
use base::{Accusation, At, ChannelError, Error, Fault, PartyId, Roster, Seed};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// One party's half of a conversation with its peers. It owns one channel per peer.
pub struct Session {
    me: PartyId,
    roster: Roster,
    peers: Vec<Option<Peer>>,
    path: String,
    ledger: Traffic,
    seed: Seed,
    forks: u64,
    progress: RowProgress,
    id: [u8; 32],
    /// Whether conversations go over plain channels where there are any.
    open: bool,
    /// Digests of what was sent, when somebody wants them.
    digests: Option<Digests>,
    /// For messages of transports without memory of their own: what goes out and what comes in.
    buffers: [PlacedBuffer; 2],
}

type Digests = BTreeMap<(PartyId, String), blake3::Hasher>;

struct Peer {
    channel: Box<dyn Channel>,
    /// Ledger entry of the current step; looked up again after the step changes.
    entry: Option<usize>,
    /// Whether something was sent since the last receive: the next receive is a turn.
    spoke: bool,
}

impl Peer {
    /// What a conversation goes over: the private channel under a plain one, unless that may be taken.
    fn channel(&mut self, open: bool) -> &mut dyn Channel {
        let channel = &mut *self.channel;
        match !open && channel.under().is_some() {
            true => channel.under().expect("it was there"),
            false => channel,
        }
    }
}

impl Session {
    /// A session of `me` with one channel per peer; `seed` feeds every generator of this session.
    #[must_use]
    pub fn new(me: PartyId, roster: Roster, channels: Vec<(PartyId, Box<dyn Channel>)>, seed: Seed) -> Self {
        let mut peers: Vec<Option<Peer>> = roster.parties().map(|_| None).collect();
        for (party, channel) in channels {
            assert_ne!(party, me, "a party holds no channel to itself");
            peers[party.index()] = Some(Peer { channel, entry: None, spoke: false });
        }
        let (path, ledger) = (String::new(), Traffic::default());
        let progress = RowProgress::none();
        let (id, digests, buffers) = ([0; 32], None, Default::default());
        Self { me, roster, peers, path, ledger, seed, forks: 0, progress, id, open: true, digests, buffers }
    }

    /// A session without peers, for the clear engine and local work.
    #[must_use]
    pub fn alone(roster: Roster, seed: Seed) -> Self {
        Self::new(PartyId(0), roster, Vec::new(), seed)
    }

    /// The same session under the id of its meeting ([`crate::Meeting::session_id`]), which says who met when
    /// and what they agreed on. Keys that are agreed in a session are bound to it.
    #[must_use]
    pub fn with_id(mut self, id: [u8; 32]) -> Self {
        self.id = id;
        self
    }

    /// The id, the same at all parties; zeros where there was no meeting.
    #[must_use]
    pub fn id(&self) -> &[u8; 32] {
        &self.id
    }

    /// The same session, with its progress reported to `progress`.
    #[must_use]
    pub fn with_progress(mut self, progress: RowProgress) -> Self {
        self.progress = progress;
        self
    }

    /// Where this session reports its progress; a clone serves the threads of a protocol.
    #[must_use]
    pub fn progress(&self) -> RowProgress {
        self.progress.clone()
    }

    /// `done` of `total` rows of the current step are done.
    pub fn report(&self, done: u64, total: u64) {
        self.progress.report(&self.path, done, total);
    }

    /// The same session, which hashes everything it sends: see [`Session::digests`].
    #[must_use]
    pub fn with_digests(mut self) -> Self {
        self.digests = Some(Digests::new());
        self
    }

    /// The BLAKE3 hash of everything sent to each peer at each step, in their order; empty unless
    /// [`Session::with_digests`] asked for it. Under one seed they repeat: a test pins a protocol's wire with
    /// them.
    #[must_use]
    pub fn digests(&self) -> Vec<(PartyId, String, [u8; 32])> {
        let digests = self.digests.iter().flatten();
        digests.map(|((peer, step), hash)| (*peer, step.clone(), *hash.finalize().as_bytes())).collect()
    }

    /// This party.
    #[must_use]
    pub fn me(&self) -> PartyId {
        self.me
    }

    /// All parties by name.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The current step, as a path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was said so far.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.ledger
    }

    /// What was said since the last call, or the beginning: between two units of work on one session.
    pub fn take_traffic(&mut self) -> Traffic {
        self.peers.iter_mut().flatten().for_each(|peer| peer.entry = None);
        std::mem::take(&mut self.ledger)
    }

    /// Runs `work` one step deeper: messages are booked and errors worded under `path/name`.
    ///
    /// # Errors
    /// Those of `work`, placed at this step.
    pub fn step<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let outer = self.path.len();
        if outer > 0 {
            self.path.push('/');
        }
        self.path.push_str(name);
        self.step_changed();
        let done = work(self).map_err(|e| e.place(|| self.at(None)));
        self.path.truncate(outer);
        self.step_changed();
        done
    }

    fn step_changed(&mut self) {
        for peer in self.peers.iter_mut().flatten() {
            peer.entry = None;
            peer.channel.at_step(&self.path);
        }
    }

    /// A fresh seed for the current step. Each call gives another one; both parties of a test repeat under
    /// one seed.
    pub fn fork_seed(&mut self, label: &str) -> Seed {
        self.forks += 1;
        self.seed.fork(&format!("{} {} {label} {}", self.me.0, self.path, self.forks))
    }

    /// The conversation with one peer at the current step.
    ///
    /// # Panics
    /// When this session has no channel to `peer`: a bug of the caller.
    pub fn link(&mut self, peer: PartyId) -> StepLink<'_> {
        assert!(
            self.peers.get(peer.index()).is_some_and(Option::is_some),
            "no channel from {} to {peer}",
            self.me
        );
        StepLink { session: self, peer }
    }

    /// Lends the sending end of one peer's channel and the receiving end of another's, for two threads. What
    /// goes over them is booked when `work` has returned.
    ///
    /// # Errors
    /// Those of `work`.
    ///
    /// # Panics
    /// When both are the same peer, or there is no channel to one: a bug of the caller.
    pub fn ends<T>(
        &mut self,
        to: PartyId,
        from: PartyId,
        work: impl FnOnce(&mut Outlet<'_>, &mut Inlet<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let key = (to, self.path.clone());
        let before = self.digests.as_mut().map(|all| all.remove(&key));
        let (goes_on, hasher) = (matches!(before, Some(Some(_))), before.map(Option::unwrap_or_default));
        let [at_sender, at_receiver] = [to, from].map(|peer| self.at(Some(peer)));
        let open = self.open;
        let both = self.peers.get_disjoint_mut([to.index(), from.index()]);
        let [sender, receiver] = both
            .expect("two peers")
            .map(|peer| peer.as_mut().expect("checked by Session::link").channel(open));
        let [out_buffer, in_buffer] = &mut self.buffers;
        let booked = Booked { hasher, ..Booked::default() };
        let (channel, buffer, reserved) = (sender, out_buffer, VecDeque::new());
        let mut outlet = Outlet { channel, buffer, at: at_sender, booked, reserved };
        let (channel, buffer, seen) = (receiver, in_buffer, VecDeque::new());
        let (at, booked) = (at_receiver, Booked::default());
        let mut inlet = Inlet { channel, buffer, at, booked, seen, checked: 0 };
        let done = work(&mut outlet, &mut inlet);
        let (sent, received) = (outlet.booked, inlet.booked);
        if let (Some(all), Some(hasher), true) =
            (&mut self.digests, sent.hasher, goes_on || sent.messages > 0)
        {
            all.insert(key, hasher);
        }
        let mut link = self.link(to);
        let (entry, spoke) = link.book();
        (entry.sent, entry.messages) = (entry.sent + sent.bytes, entry.messages + sent.messages);
        *spoke |= sent.messages > 0;
        if received.messages > 0 {
            self.link(from).book_received(received.bytes as usize);
        }
        done
    }

    /// From now on the conversation with `peer` goes over what `new` makes of its channel. Ledger, steps and
    /// limits go on. Both ends exchange theirs at the same place of the protocol, with nothing under way.
    ///
    /// # Panics
    /// When this session has no channel to `peer`: a bug of the caller.
    pub fn replace_channel(&mut self, peer: PartyId, new: impl FnOnce(Box<dyn Channel>) -> Box<dyn Channel>) {
        let entry = self.peers.get_mut(peer.index()).and_then(Option::as_mut);
        let entry = entry.unwrap_or_else(|| panic!("no channel to {peer}"));
        let old = std::mem::replace(&mut entry.channel, Box::new(Gone));
        entry.channel = new(old);
        entry.channel.at_step(&self.path);
    }

    /// From now on everything said and waited for here ends with `halt`: see [`Channel::halts_with`].
    pub fn halts_with(&mut self, halt: &RangeHalt) {
        self.peers.iter_mut().flatten().for_each(|peer| peer.channel.halts_with(halt));
    }

    /// Drops all channels: peers that wait on them hear at once that nothing more comes. What was said stays
    /// booked.
    pub fn cut(&mut self) {
        self.peers.iter_mut().flatten().for_each(|peer| peer.channel = Box::new(Gone));
    }

    /// From now on conversations take the private channels that plain ones were put over
    /// ([`Channel::under`]), but for what runs under [`Session::openly`]: nothing is said in the open that
    /// nobody has called fit for it.
    pub fn keep_private(&mut self) {
        self.open = false;
    }

    /// Books what was said in another session of the same party: a lane of this one.
    pub fn book(&mut self, lane: &Traffic) {
        self.ledger.merge(lane);
    }

    /// Runs `work`, whose messages hide by themselves what nobody else may read, over plain channels where
    /// there are any. Both ends do so at the same places of the protocol.
    ///
    /// # Errors
    /// Those of `work`; when a peer is gone.
    pub fn openly<T>(&mut self, work: impl FnOnce(&mut Session) -> Result<T, Error>) -> Result<T, Error> {
        if self.open {
            return work(self);
        }
        // Who waits on one channel hands over nothing of the other.
        self.hand_over()?;
        self.open = true;
        let done = work(self).and_then(|done| self.hand_over().map(|()| done));
        self.open = false;
        done
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        self.peers().into_iter().try_for_each(|peer| self.link(peer).flush())
    }

    /// The peers that this session has a channel to, in party order.
    #[must_use]
    pub fn peers(&self) -> Vec<PartyId> {
        self.roster.parties().filter(|party| self.peers[party.index()].is_some()).collect()
    }

    /// Where this session is, for an error.
    #[must_use]
    pub fn at(&self, peer: Option<PartyId>) -> At {
        At {
            party: self.roster.name(self.me),
            peer: peer.map(|p| self.roster.name(p)),
            step: self.path.clone(),
        }
    }

    /// An error that says that one of `accused` failed the named check, and nobody can tell from here which;
    /// `words` is what stands for them in its text. Abort with it.
    #[must_use]
    pub fn accuse(&self, accused: &[PartyId], words: String, check: &'static str) -> Error {
        let accused = accused.iter().map(|party| self.roster.name(*party)).collect();
        let at = At { peer: Some(words), ..self.at(None) };
        let (by, step) = (at.party.clone(), at.step.clone());
        let accusation = Accusation { by, accused, step, through: None };
        Error::new(at, Fault::Deviated(check)).accusing(accusation)
    }

    /// The same where several parties should have said the same thing and did not: each of them, this party
    /// aside, may be the one that lies.
    #[must_use]
    pub fn accuse_one_of(&self, said: &[PartyId], check: &'static str) -> Error {
        let mut others: Vec<PartyId> = said.iter().copied().filter(|party| *party != self.me).collect();
        others.dedup();
        let words: Vec<String> = others.iter().map(|party| self.roster.name(*party)).collect();
        self.accuse(&others, words.join(" or "), check)
    }

    /// Waits until everything queued has left for every peer. Call at the end of a conversation.
    ///
    /// # Errors
    /// When a peer is gone or takes nothing until the deadline.
    pub fn finish(&mut self) -> Result<(), Error> {
        for party in self.roster.parties() {
            if let Some(peer) = &mut self.peers[party.index()] {
                let private = peer.channel.under().map_or(Ok(()), |under| under.finish());
                let done = private.and_then(|()| peer.channel.finish());
                done.map_err(|e| Error::new(self.at(Some(party)), Fault::Channel(e)))?;
            }
        }
        Ok(())
    }
}

/// A conversation with one peer at one step. Every byte is booked.
pub struct StepLink<'s> {
    session: &'s mut Session,
    peer: PartyId,
}

impl StepLink<'_> {
    fn channel(&mut self) -> &mut dyn Channel {
        let open = self.session.open;
        let peer = self.session.peers[self.peer.index()].as_mut();
        peer.expect("checked by Session::link").channel(open)
    }

    /// The entry of the current step, and whether something was sent since the last receive.
    fn book(&mut self) -> (&mut TrafficEntry, &mut bool) {
        let session = &mut *self.session;
        let peer = session.peers[self.peer.index()].as_mut().expect("checked by Session::link");
        let index = *peer.entry.get_or_insert_with(|| session.ledger.index(self.peer, &session.path));
        (session.ledger.entry(index), &mut peer.spoke)
    }

    fn book_sent(&mut self, message: &[u8]) {
        let (entry, spoke) = self.book();
        entry.sent += message.len() as u64;
        entry.messages += 1;
        *spoke = true;
        if let Some(digests) = &mut self.session.digests {
            digests.entry((self.peer, self.session.path.clone())).or_default().update(message);
        }
    }

    fn book_received(&mut self, bytes: usize) {
        let (entry, spoke) = self.book();
        entry.received += bytes as u64;
        entry.turns += u64::from(std::mem::take(spoke));
    }

    /// Sends a message. Waits only while the window is full.
    ///
    /// # Errors
    /// When the peer is gone or takes nothing until the deadline.
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.book_sent(message);
        let done = self.channel().send(message);
        done.map_err(|e| self.fault(e))
    }

    /// Hands over what is queued without waiting for an answer. [`StepLink::recv`] does so towards its own
    /// peer only: a party that has spoken to several peers flushes each before it waits for the first.
    ///
    /// # Errors
    /// As [`StepLink::send`].
    pub fn flush(&mut self) -> Result<(), Error> {
        // A receive of nothing hands over what is queued.
        self.channel().recv(&mut []).map_err(|e| self.fault(e))
    }

    /// Bytes that one side may send while the peer reads nothing.
    pub fn window(&mut self) -> usize {
        self.channel().window()
    }

    /// Whether nobody but this party and its peer can read the bytes: see [`Channel::private`].
    pub fn is_private(&mut self) -> bool {
        self.channel().private()
    }

    /// Whether nobody else can change the bytes unnoticed: see [`Channel::authenticated`].
    pub fn is_authenticated(&mut self) -> bool {
        self.channel().authenticated()
    }

    /// Looks whether the peer has left, without waiting: see [`Channel::watch`].
    ///
    /// # Errors
    /// How it left.
    pub fn watch(&mut self) -> Result<(), Error> {
        self.channel().watch().map_err(|e| self.fault(e))
    }

    /// How long the channel waits without progress.
    pub fn deadline(&mut self) -> Duration {
        self.channel().deadline()
    }

    /// The address of this machine that the peer sees, where there is one.
    pub fn local_ip(&mut self) -> Option<IpAddr> {
        self.channel().local_ip()
    }

    /// Receives a message that fills `into`. The receiver states the length, so no peer can make us allocate.
    ///
    /// # Errors
    /// When the peer is gone or silent until the deadline.
    pub fn recv(&mut self, into: &mut [u8]) -> Result<(), Error> {
        self.book_received(into.len());
        let done = self.channel().recv(into);
        done.map_err(|e| self.fault(e))
    }

    /// Receives exactly `N` bytes.
    ///
    /// # Errors
    /// As [`StepLink::recv`].
    pub fn recv_array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.recv(&mut bytes)?;
        Ok(bytes)
    }

    /// Receives a number (8 bytes, little endian) of at most `cap`; `name` says which limit that is.
    ///
    /// # Errors
    /// As [`StepLink::recv`], and when the number is over the cap.
    pub fn recv_count(&mut self, name: &'static str, cap: u64) -> Result<u64, Error> {
        let value = u64::from_le_bytes(self.recv_array()?);
        if value > cap {
            let at = self.session.at(Some(self.peer));
            return Err(Error::new(at, Fault::Limit { name, value, cap }));
        }
        Ok(value)
    }

    /// Both sides send and receive at once: one message each way and one turn, whatever the lengths. Nothing
    /// is booked for an empty side.
    ///
    /// Pieces of a quarter of the window alternate, with one piece in advance, so that neither side waits for
    /// the other's window and a long path stays filled.
    ///
    /// # Errors
    /// As [`StepLink::send`] and [`StepLink::recv`].
    pub fn exchange(&mut self, mine: &[u8], theirs: &mut [u8]) -> Result<(), Error> {
        if !mine.is_empty() {
            self.book_sent(mine);
        }
        if !theirs.is_empty() {
            self.book_received(theirs.len());
        }
        let channel = self.channel();
        let piece = (channel.window() / 4).max(1);
        let (mut out, mut into) = (mine.chunks(piece), theirs.chunks_mut(piece));
        let mut talk = || {
            out.next().map_or(Ok(()), |ahead| channel.send(ahead))?;
            loop {
                let (next, place) = (out.next(), into.next());
                if next.is_none() && place.is_none() {
                    return Ok(());
                }
                next.map_or(Ok(()), |bytes| channel.send(bytes))?;
                place.map_or(Ok(()), |bytes| channel.recv(bytes))?;
            }
        };
        talk().map_err(|e| self.fault(e))
    }

    /// Books work that the engine did with this peer: AND gates and oblivious transfers, as they are done.
    pub fn tally(&mut self, and_gates: u64, ots: u64) {
        let (entry, _) = self.book();
        entry.and_gates += and_gates;
        entry.ots += ots;
    }

    /// An error that says the peer failed the named check. Abort with it.
    #[must_use]
    pub fn blame(&self, check: &'static str) -> Error {
        self.session.accuse(&[self.peer], self.session.roster.name(self.peer), check)
    }

    /// An error that says the peer's bytes decode to nothing.
    #[must_use]
    pub fn malformed(&self, what: &'static str) -> Error {
        Error::new(self.session.at(Some(self.peer)), Fault::Malformed(what))
    }

    fn fault(&self, error: ChannelError) -> Error {
        Error::new(self.session.at(Some(self.peer)), Fault::Channel(error))
    }
}

//! One party: its seat, its keys, its devices, and the round that the session is in.

use crate::seats::joint::JointTalks;
use crate::vectors::spare::{give_back, zeros};
use crate::{RoundQuote, Seat, VectorRing};
use accel::{DeviceQueue, SeatKeys, StreamName, Use};
use base::{Error, Fault, PartyId};
use kernels::Block;
use net::Session;
use program::lower::EntryRule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a corrupted party may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Follow the protocol and look.
    SemiHonest,
    /// Anything; others abort.
    #[default]
    Malicious,
}

/// What tags are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagHash {
    /// A polynomial over GF(2^128), padded.
    #[default]
    Keyed,
    /// Keyed BLAKE3.
    Blake3,
}

/// What all four parties agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Against whom.
    pub security: Security,
    /// How messages are vouched for under malicious security.
    pub hash: TagHash,
    /// Whether messages are hidden from the fourth party: needed where it could read the channels of others.
    pub masked: bool,
}

impl Settings {
    /// What owners may enter: who need not follow the program cannot be trusted to compute parts of it.
    pub(crate) fn inputs(self) -> EntryRule {
        if self.checked() { EntryRule::Columns } else { EntryRule::Derived }
    }

    /// Whether messages are checked.
    #[must_use]
    pub fn checked(self) -> bool {
        self.security == Security::Malicious
    }
}

/// One of the four, for one session.
pub struct SeatParty {
    pub(crate) seat: Seat,
    /// Who sits where.
    pub(crate) seats: [PartyId; 4],
    pub(crate) settings: Settings,
    pub(crate) keys: Arc<SeatKeys>,
    pub(crate) queue: DeviceQueue,
    round: u64,
    /// What was booked so far, where there are no peers: see [`SeatParty::speculator`].
    pub(crate) stub: Option<Stub>,
    /// Whether readable channels are accepted: see [`SeatParty::in_the_open`].
    open: bool,
    /// Room for what joint inputs say and hear.
    pub(crate) said: Option<JointTalks>,
}

impl SeatParty {
    /// Agrees on keys with the other three. `seats` says who sits where: the same at all four, this party
    /// among them.
    ///
    /// For every j the three others toss coins for K_j: each commits to 32 random bytes, opens, and compares
    /// a hash of what came out, so that nobody alone chooses a key and all three hold the same. The party at
    /// seat j never sees K_j: these messages must be on channels that nobody else reads, whatever `settings`
    /// says.
    ///
    /// # Errors
    /// Channels between seats that others could read, those of the channels, settings that differ, an opening
    /// or a hash that does not fit.
    pub fn new(
        session: &mut Session,
        seats: [PartyId; 4],
        settings: Settings,
        queue: DeviceQueue,
    ) -> Result<Self, Error> {
        let me = session.me();
        for &peer in seats.iter().filter(|&&peer| peer != me) {
            private(session, peer)?;
        }
        Ok(Self { open: false, ..Self::in_the_open(session, seats, settings, queue)? })
    }

    /// As [`SeatParty::new`] over any channels: whoever reads them can compute the keys, and so the values.
    /// For measurements of plain transports, on made-up data.
    ///
    /// # Errors
    /// As [`SeatParty::new`].
    pub fn in_the_open(
        session: &mut Session,
        seats: [PartyId; 4],
        settings: Settings,
        mut queue: DeviceQueue,
    ) -> Result<Self, Error> {
        let me = session.me();
        let index = seats.iter().position(|&party| party == me);
        let seat = index.map(Seat::new).ok_or_else(|| Error::misuse("this party has no seat"))?;
        let keys = session.step("setup", |s| crate::seats::setup::agree(s, &seats, seat, settings))?;
        let keys = Arc::new(keys);
        queue.configure(&keys)?;
        Ok(Self { seat, seats, settings, keys, queue, round: 0, stub: None, open: true, said: None })
    }

    /// A party without peers, for a speculative pass ([`osprey`]) and for prices: every operation books what
    /// it costs and gives shares of zeros, openings give zeros, and nothing is sent or encrypted. The session
    /// is not looked at.
    ///
    /// A program that looks at what it opens, to decide what it does next, does the same as with zeros.
    ///
    /// ```
    /// use base::{Roster, Seed};
    /// use ring4::{SeatParty, VectorRing, Seat, Settings};
    /// # fn main() -> Result<(), base::Error> {
    /// let mut session = net::Session::alone(Roster::new(["alone"]), Seed::from_system());
    /// let mut party = SeatParty::speculator(Seat::new(2), Settings::default());
    /// let x = party.input(&mut session, Seat::new(0), (VectorRing::Z64, 1000), &[])?;
    /// let y = party.multiply(&mut session, &x, &x)?;
    /// assert_eq!(ring4::elements(VectorRing::Z64, 1000, &party.open(&mut session, &y)?), [0; 1000]);
    /// // To the seat before, A of 500 blocks and C of one half of them, and so on: what the ledger
    /// // of a run will say.
    /// assert_eq!(party.booked().map(|quote| quote.total().sent[0] > 12_000), Some(true));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn speculator(seat: Seat, settings: Settings) -> Self {
        let seats = [0, 1, 2, 3].map(PartyId);
        let stub = Some(Stub::new(settings, seats));
        let keys = Arc::new(SeatKeys::new(seat, [Block::ZERO; 3], [Block::ZERO; 3]));
        Self {
            seat,
            seats,
            settings,
            keys,
            queue: DeviceQueue::default(),
            round: 0,
            stub,
            open: true,
            said: None,
        }
    }

    /// Whether nothing is computed.
    #[must_use]
    pub fn speculates(&self) -> bool {
        self.stub.is_some()
    }

    /// Whether the values of an input are looked at here: this party owns them and does not speculate.
    #[must_use]
    pub fn enters(&self, owner: Seat) -> bool {
        self.seat == owner && !self.speculates()
    }

    /// The price of everything that a speculator was asked for, agreement on keys among it, in a session of
    /// the four alone, seat by seat; `None` at a party that has peers.
    #[must_use]
    pub fn booked(&self) -> Option<&RoundQuote> {
        self.stub.as_ref().map(|stub| &stub.quote)
    }

    /// This party's seat.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// What all agreed on.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The party at a seat.
    #[must_use]
    pub fn at(&self, seat: Seat) -> PartyId {
        self.seats[seat.index()]
    }

    /// The devices, for their events.
    pub fn queue(&mut self) -> &mut DeviceQueue {
        &mut self.queue
    }

    /// A number that no round had. All four count the same, for they do the same.
    pub(crate) fn next_round(&mut self) -> u64 {
        self.round += 1;
        self.round
    }

    /// Fills `out` with a stream of this round under the key of part `part`, beginning with element `first`.
    /// A speculator leaves its zeros.
    pub(crate) fn fill(
        &self,
        part: usize,
        (round, r#use, channel): (u64, Use, [Seat; 2]),
        first: u64,
        out: &mut [Block],
    ) {
        if !self.speculates() {
            self.keys.fill(part, StreamName { round, r#use, channel }, first, out);
        }
    }

    /// Whether a speculator leaves out an operation of several rounds, whose result is zeros: it books the
    /// price and does nothing else, once it has gone through as large a one. The first one takes the memory
    /// that a party takes.
    pub(crate) fn left_out(
        &mut self,
        what: OperationName,
        len: usize,
        price: impl FnOnce(&mut RoundQuote),
    ) -> bool {
        let Some(stub) = &mut self.stub else { return false };
        let most = stub.known.entry(what).or_default();
        let known = *most >= len && len > 0;
        *most = len.max(*most);
        if known {
            price(&mut stub.quote);
        }
        known
    }

    /// Random shared values, which nobody knows: no message.
    #[must_use]
    pub fn random(&mut self, ring: crate::VectorRing, len: usize) -> crate::SharedVector {
        let round = self.next_round();
        let mut shares = crate::SharedVector::zero(ring, len);
        for (k, part) in shares.parts_mut().into_iter().enumerate() {
            self.fill(k, (round, Use::Share, [Seat::ALL[0]; 2]), 0, part);
        }
        shares
    }

    /// Refuses to send what the fourth party could read, unless masks hide it; and what it could change, for
    /// it knows the keys of the tags of others.
    pub(crate) fn hidden(&self, session: &mut Session) -> Result<(), Error> {
        if self.open {
            return Ok(());
        }
        [1, 2, 3].into_iter().try_for_each(|k| {
            let peer = self.at(self.seat.after(k));
            let link = &mut session.link(peer);
            if self.settings.masked && link.is_authenticated() { Ok(()) } else { private(session, peer) }
        })
    }
}

/// Refuses a channel that others than its two ends could read.
pub(crate) fn private(session: &mut Session, peer: PartyId) -> Result<(), Error> {
    if session.link(peer).is_private() {
        return Ok(());
    }
    let text = "ring4 needs a channel here that nobody else reads: use TLS (products can be masked for \
                transports whose messages are authenticated; keys, inputs of owners and outputs cannot)";
    Err(Error::new(session.at(Some(peer)), Fault::Input(text.into())))
}

/// What a party without peers does instead.
pub(crate) struct Stub {
    pub quote: RoundQuote,
    /// Blocks of the most scratch that a round took so far.
    scratch: usize,
    /// The operations of several rounds so far, and the most elements of each.
    known: BTreeMap<OperationName, usize>,
}

/// Name, ring, and a width of what depends on one.
pub(crate) type OperationName = (&'static str, VectorRing, u32);

impl Stub {
    fn new(settings: Settings, seats: [PartyId; 4]) -> Self {
        let mut quote = RoundQuote::new(settings, seats, 4);
        quote.setup();
        Self { quote, scratch: 0, known: BTreeMap::new() }
    }

    /// Takes the memory that a round takes beside its operands and its result, so many vectors of so many
    /// blocks: a limit is planned from what the speculative pass took. Once: a party uses the same again.
    pub fn scratch(&mut self, vectors: usize, blocks: usize) {
        if vectors * blocks > self.scratch {
            self.scratch = vectors * blocks;
            let taken: Vec<_> = (0..vectors).map(|_| zeros(blocks)).collect();
            taken.into_iter().for_each(give_back);
        }
    }
}

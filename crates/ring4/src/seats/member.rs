//! Outsourcing: data owners who hold no seat share values with the four and get outputs back.
//!
//! **Functionality.** An owner enters vectors, which the four then hold as [`SharedVector`]; a viewer gets
//! values that they hold.
//!
//! **Security.** Owners may be corrupted, any number of them, together with one seat: they learn their own
//! inputs and outputs, and what they enter is some vector, the same at all four, or everybody aborts.
//! Channels between owners and seats must be private: whoever reads one learns the owner's values.
//!
//! **Protocol.** An owner gives a seed S_j to the three holders of summand j, for j = 0, 1, 2; they compare
//! hashes of it. v enters as x_j = next element of the stream of S_j and x_3 = v - x_0 - x_1 - x_2, which it
//! sends to seats 0, 1 and 2; they compare a hash of it before they use it. The hash is collision resistant
//! and not just keyed: an owner and a seat that collude know every key. A viewer gets x_j from seat j + 1 and
//! a hash of it from seat j + 2, after the four have added shares of zero to it, for summands as they lie
//! could tell how a value was computed.
//!
//! **Cost.** Owner: 3 elements per element entered, and 144 B of seeds at the start. Output: 4 elements, and
//! 3 to refresh. Malicious: 32 B per seat and peer per comparison, and per seat and output.

use crate::seats::check::Comparison;
use crate::seats::party::private;
use crate::{COMPARISON_BYTES, Joint, RoundQuote, Seat, SeatParty, Settings, SharedVector, VectorRing};
use accel::DeviceQueue;
use base::{Error, PartyId};
use kernels::{Aes128, Block, ring_add, ring_sub};
use net::Session;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Summands that come of an owner's seeds. The last one is sent.
const SEEDED: usize = 3;

/// What every participant of a session holds: a seat, data of its own, or both.
pub struct Member {
    me: PartyId,
    seats: [PartyId; 4],
    settings: Settings,
    server: Option<SeatParty>,
    owners: Vec<Owner>,
}

/// A data owner without a seat, as this participant knows it.
struct Owner {
    party: PartyId,
    /// Streams of the summands that this participant holds.
    streams: [Option<Aes128>; SEEDED],
    /// Vectors entered so far.
    entered: u64,
}

/// The summands by seed that a seat holds.
fn seeded(seat: Seat) -> impl Iterator<Item = usize> {
    (0..SEEDED).filter(move |&j| j != seat.index())
}

impl Member {
    /// Sets up a session: keys among the four, seeds of everybody in the roster without a seat. All
    /// participants call it.
    ///
    /// # Errors
    /// Those of the channels, settings that differ, seeds that differ.
    pub fn new(
        session: &mut Session,
        seats: [PartyId; 4],
        settings: Settings,
        queue: DeviceQueue,
    ) -> Result<Self, Error> {
        let me = session.me();
        let server =
            if seats.contains(&me) { Some(SeatParty::new(session, seats, settings, queue)?) } else { None };
        let outside = session.roster().parties().filter(|party| !seats.contains(party));
        let owners = outside.map(|party| Owner { party, streams: [None, None, None], entered: 0 }).collect();
        let mut member = Self { me, seats, settings, server, owners };
        session.step("owners", |session| member.seeds(session))?;
        Ok(member)
    }

    /// This participant's half of the computation, if it holds a seat.
    pub fn server(&mut self) -> Option<&mut SeatParty> {
        self.server.as_mut()
    }

    /// What the four agreed on.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Who sits where.
    #[must_use]
    pub fn seats(&self) -> [PartyId; 4] {
        self.seats
    }

    fn seeds(&mut self, session: &mut Session) -> Result<(), Error> {
        let me = self.me;
        let Some(server) = &self.server else {
            self.seats.into_iter().try_for_each(|seat| private(session, seat))?;
            let owner = self.owners.iter_mut().find(|o| o.party == me);
            let owner = owner.ok_or_else(|| Error::misuse("this party is not of the session"))?;
            return give_seeds(session, self.seats, owner);
        };
        let seat = server.seat();
        let mut hashes = Vec::new();
        for owner in &mut self.owners {
            private(session, owner.party)?;
            let mut seeds = Zeroizing::new([[0; 16]; SEEDED]);
            for j in seeded(seat) {
                seeds[j] = session.link(owner.party).recv_array()?;
                owner.streams[j] = Some(Aes128::new(Block::from_bytes(seeds[j])));
            }
            hashes.push(seeds.map(|seed| *blake3::hash(&seed).as_bytes()));
        }
        if self.settings.checked() {
            compare_seeds(session, server, &self.owners, &hashes)?;
        }
        Ok(())
    }

    /// Shares `len` elements that `owner` enters: `value` is looked at there only. Shares at the seats,
    /// nothing elsewhere.
    ///
    /// # Errors
    /// Those of the channels, a value of another length, and values that differ between their receivers.
    pub fn enter(
        &mut self,
        session: &mut Session,
        owner: PartyId,
        (ring, len): (VectorRing, usize),
        value: &[Block],
    ) -> Result<Option<SharedVector>, Error> {
        if let Some(seat) = self.seats.iter().position(|&party| party == owner) {
            let Some(server) = &mut self.server else { return Ok(None) };
            return server.input(session, Seat::new(seat), (ring, len), value).map(Some);
        }
        let found = self.owners.iter_mut().find(|o| o.party == owner);
        let entry = found.ok_or_else(|| Error::misuse("nobody of the session owns this input"))?;
        entry.entered += 1;
        let blocks = ring.blocks(len);
        let stream = |entry: &Owner, j: usize, out: &mut [Block]| {
            let key = entry.streams[j].as_ref().expect("a holder has the seed");
            kernels::stream(key, entry.entered, 0, out);
        };
        if owner == self.me {
            self.seats.into_iter().try_for_each(|seat| private(session, seat))?;
            if value.len() != blocks {
                return Err(Error::misuse("an input has as many blocks as its elements take"));
            }
            let mut last = Zeroizing::new(value.to_vec());
            let mut scratch = Zeroizing::new(vec![Block::ZERO; blocks]);
            for j in 0..SEEDED {
                stream(entry, j, &mut scratch);
                ring_sub(ring, &mut last, &scratch);
            }
            for seat in 0..SEEDED {
                session.link(self.seats[seat]).send(Block::bytes_of(&last))?;
                session.link(self.seats[seat]).flush()?;
            }
            return Ok(None);
        }
        let Some(server) = &mut self.server else { return Ok(None) };
        let (seat, mut shares) = (server.seat(), SharedVector::zero(ring, len));
        for j in seeded(seat) {
            let part = seat.part_of(Seat::new(j)).expect("another seat's number");
            stream(entry, j, shares.parts_mut()[part]);
        }
        let sent = Seat::new(SEEDED);
        let round = server.next_round();
        private(session, owner)?;
        if let Some(part) = seat.part_of(sent) {
            session.link(owner).recv(Block::bytes_of_mut(shares.parts_mut()[part]))?;
            if server.settings().checked() {
                let comparison =
                    Comparison { round, unknown_to: sent, among: [0, 1, 2].map(Seat::new).to_vec(), owner };
                server.compare(session, comparison, shares.parts()[part])?;
            }
        }
        Ok(Some(shares))
    }

    /// Gives values to one participant. Blocks at the viewer, nothing elsewhere; `x` is there at the seats.
    /// Call [`Member::confirm`] before, where something is at stake that others have not checked yet.
    ///
    /// # Errors
    /// Those of the channels, and what does not fit its hash.
    pub fn reveal(
        &mut self,
        session: &mut Session,
        x: Option<&SharedVector>,
        (ring, len): (VectorRing, usize),
        viewer: PartyId,
    ) -> Result<Option<Vec<Block>>, Error> {
        let at_seat = self.seats.iter().position(|&party| party == viewer);
        if let Some(server) = &mut self.server {
            let x = x.ok_or_else(|| Error::misuse("a seat holds shares of what it reveals"))?;
            if let Some(seat) = at_seat {
                return server.open_to(session, x, &[Seat::new(seat)]);
            }
            private(session, viewer)?;
            let fresh = server.refresh(session, &x.without_padding())?;
            server.give(session, &fresh, viewer)?;
            return Ok(None);
        }
        if viewer != self.me {
            return Ok(None);
        }
        self.seats.into_iter().try_for_each(|seat| private(session, seat))?;
        self.take(session, ring, len).map(Some)
    }

    /// What a viewer without a seat does: gets every summand from one seat, and its hash from another.
    fn take(&self, session: &mut Session, ring: VectorRing, len: usize) -> Result<Vec<Block>, Error> {
        let blocks = ring.blocks(len);
        let mut sum = vec![Block::ZERO; blocks];
        let mut hashes = [[0; COMPARISON_BYTES]; 4];
        for seat in Seat::ALL {
            let mut summand = vec![Block::ZERO; blocks];
            session.link(self.at(seat)).recv(Block::bytes_of_mut(&mut summand))?;
            hashes[seat.after(3).index()] = summand_hash(&summand);
            ring_add(ring, &mut sum, &summand);
        }
        if !self.settings.checked() {
            return Ok(sum);
        }
        for seat in Seat::ALL {
            let theirs: [u8; COMPARISON_BYTES] = session.link(self.at(seat)).recv_array()?;
            let summand = seat.after(2);
            if !bool::from(theirs.ct_eq(&hashes[summand.index()])) {
                let both = [summand.after(1), seat].map(|seat| self.at(seat));
                let [sender, voucher] = both.map(|party| session.roster().name(party));
                let check = "an output does not fit its hash: one of both deviates";
                return Err(session.accuse(&both, format!("{sender}, vouched for by {voucher}"), check));
            }
        }
        Ok(sum)
    }

    fn at(&self, seat: Seat) -> PartyId {
        self.seats[seat.index()]
    }

    /// The four tell each other that everything so far was checked: nothing is given to anybody while one of
    /// them has stopped. One round among the seats.
    ///
    /// # Errors
    /// Those of the channels; a seat that is in another round.
    pub fn confirm(&mut self, session: &mut Session) -> Result<(), Error> {
        self.server.as_mut().map_or(Ok(()), |server| server.confirm(session))
    }
}

fn summand_hash(summand: &[Block]) -> [u8; COMPARISON_BYTES] {
    *blake3::hash(Block::bytes_of(summand)).as_bytes()
}

/// What an owner does at the start.
fn give_seeds(session: &mut Session, seats: [PartyId; 4], owner: &mut Owner) -> Result<(), Error> {
    let mut rng = session.fork_seed("ring4 owner seeds").into_rng();
    let seeds: Zeroizing<[[u8; 16]; SEEDED]> = Zeroizing::new([rng.bytes(), rng.bytes(), rng.bytes()]);
    owner.streams = seeds.map(|seed| Some(Aes128::new(Block::from_bytes(seed))));
    for seat in Seat::ALL {
        let mut link = session.link(seats[seat.index()]);
        seeded(seat).try_for_each(|j| link.send(&seeds[j]))?;
        link.flush()?;
    }
    Ok(())
}

/// The holders of every seed compare hashes: per owner and pair one hash of the seeds that both hold.
fn compare_seeds(
    session: &mut Session,
    server: &SeatParty,
    owners: &[Owner],
    hashes: &[[[u8; COMPARISON_BYTES]; SEEDED]],
) -> Result<(), Error> {
    let me = server.seat();
    // Bound to who says it, so that nobody passes by giving back what it was told.
    let joint = |from: Seat, peer: Seat, hashes: &[[u8; COMPARISON_BYTES]; SEEDED]| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[from.index() as u8]);
        seeded(me).filter(|&j| j != peer.index()).for_each(|j| {
            hasher.update(&hashes[j]);
        });
        *hasher.finalize().as_bytes()
    };
    let peers = [1, 2, 3].map(|k| me.after(k));
    for peer in peers {
        let mut link = session.link(server.at(peer));
        hashes.iter().try_for_each(|of| link.send(&joint(me, peer, of)))?;
        link.flush()?;
    }
    for peer in peers {
        for (owner, of) in owners.iter().zip(hashes) {
            let theirs: [u8; COMPARISON_BYTES] = session.link(server.at(peer)).recv_array()?;
            if !bool::from(theirs.ct_eq(&joint(peer, peer, of))) {
                return Err(server.doubt(session, owner.party, &[peer]));
            }
        }
    }
    Ok(())
}

impl SeatParty {
    /// Adds shares of zero to three pairs of summands, so that all four are random but for their sum.
    pub(crate) fn refresh(&mut self, session: &mut Session, x: &SharedVector) -> Result<SharedVector, Error> {
        let zero = vec![Block::ZERO; x.blocks()];
        let joint = |k: usize| {
            let [sender, voucher, receiver] = zero_input(k);
            Joint { sender, voucher, receiver, ring: x.ring(), len: x.len(), value: &zero }
        };
        let zeros = self.joint(session, &[joint(0), joint(1), joint(2)])?;
        let mut fresh = x.clone();
        zeros.iter().try_for_each(|zero| fresh.add(zero))?;
        Ok(fresh)
    }

    /// Sends a viewer its summand and the hash of another one.
    fn give(&self, session: &mut Session, x: &SharedVector, viewer: PartyId) -> Result<(), Error> {
        let [_, vouched, sent] = x.parts();
        let mut link = session.link(viewer);
        link.send(Block::bytes_of(sent))?;
        if self.settings.checked() {
            link.send(&summand_hash(vouched))?;
        }
        link.flush()
    }

    /// See [`Member::confirm`].
    ///
    /// # Errors
    /// Those of the channels; a seat that is in another round.
    pub fn confirm(&mut self, session: &mut Session) -> Result<(), Error> {
        if let Some(stub) = &mut self.stub {
            stub.quote.confirm();
            return Ok(());
        }
        let round = self.next_round();
        let peers = [1, 2, 3].map(|k| self.at(self.seat.after(k)));
        for peer in peers {
            session.link(peer).send(&round.to_le_bytes())?;
            session.link(peer).flush()?;
        }
        for peer in peers {
            if session.link(peer).recv_array::<8>()? != round.to_le_bytes() {
                return Err(session.link(peer).blame("it is in another round of the computation"));
            }
        }
        Ok(())
    }
}

/// The k-th joint input of zero: summands k and k + 1 get it, the first with a plus and the other with a
/// minus.
fn zero_input(k: usize) -> [Seat; 3] {
    [k + 2, k + 3, k].map(Seat::new)
}

impl RoundQuote {
    /// [`Member::new`]: keys, seeds of everybody without a seat, and their comparison.
    pub fn member_setup(&mut self) {
        self.setup();
        let owners: Vec<PartyId> = self.outside().collect();
        if owners.is_empty() {
            return;
        }
        self.trip(1);
        for &owner in &owners {
            for seat in Seat::ALL {
                let to = self.party(seat);
                self.say(owner, to, 16 * seeded(seat).count() as u64);
                self.listen(to, owner);
            }
        }
        if self.settings().checked() {
            self.trip(1);
            self.among(COMPARISON_BYTES as u64 * owners.len() as u64);
        }
    }

    /// [`Member::enter`].
    pub fn enter(&mut self, owner: PartyId, ring: VectorRing, len: usize) {
        if let Some(seat) = Seat::ALL.into_iter().find(|&seat| self.party(seat) == owner) {
            return self.input(seat, ring, len);
        }
        self.trip(1);
        let receivers = [0, 1, 2].map(|seat| self.party(Seat::new(seat)));
        for to in receivers {
            self.say(owner, to, Block::BYTES as u64 * ring.blocks(len) as u64);
            self.listen(to, owner);
        }
        if self.settings().checked() {
            self.comparison(&[0, 1, 2].map(Seat::new));
        }
    }

    /// [`Member::reveal`].
    pub fn reveal(&mut self, ring: VectorRing, len: usize, viewer: PartyId) {
        if let Some(seat) = Seat::ALL.into_iter().find(|&seat| self.party(seat) == viewer) {
            return self.open_to(ring, len, &[seat]);
        }
        self.refresh(ring, len);
        self.trip(1);
        let hash = if self.settings().checked() { COMPARISON_BYTES as u64 } else { 0 };
        let bytes = Block::BYTES as u64 * ring.blocks(len) as u64 + hash;
        for seat in Seat::ALL {
            let from = self.party(seat);
            self.say(from, viewer, bytes);
            self.listen(viewer, from);
        }
    }

    /// [`SeatParty::refresh`].
    pub(crate) fn refresh(&mut self, ring: VectorRing, len: usize) {
        self.joint(&[0, 1, 2].map(|k| (zero_input(k), ring, len)));
    }

    /// [`Member::confirm`].
    pub fn confirm(&mut self) {
        self.trip(1);
        self.among(8);
    }
}

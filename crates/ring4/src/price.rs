//! What a computation costs, message by message: the same turns as the ledger counts.

use crate::seats::product::chunks;
use crate::{CHUNKS_AHEAD, Seat, Settings, TAG_BYTES, VectorRing};
use base::{Cost, PartyId};
use engine::StagePrice;

/// A price under construction: call what will be called, in the same order.
#[derive(Clone, Debug)]
pub struct RoundQuote {
    settings: Settings,
    /// Who sits where.
    seats: [PartyId; 4],
    sent: Vec<u64>,
    /// By listener and speaker: whether the listener has spoken to the speaker since it last heard from it.
    spoke: Vec<Vec<bool>>,
    turns: Vec<Vec<u64>>,
    trips: u64,
}

const BLOCK: u64 = 16;
const COMPARISON_BYTES: u64 = crate::COMPARISON_BYTES as u64;

impl RoundQuote {
    /// Nothing yet, in a session of so many parties, of whom `seats` are the four.
    #[must_use]
    pub fn new(settings: Settings, seats: [PartyId; 4], parties: usize) -> Self {
        let (spoke, turns) = (vec![vec![false; parties]; parties], vec![vec![0; parties]; parties]);
        Self { settings, seats, sent: vec![0; parties], spoke, turns, trips: 0 }
    }

    fn send(&mut self, from: Seat, to: Seat, bytes: u64) {
        self.say(self.seats[from.index()], self.seats[to.index()], bytes);
    }

    fn hear(&mut self, at: Seat, from: Seat) {
        self.listen(self.seats[at.index()], self.seats[from.index()]);
    }

    /// Any party of the session sends bytes to another one.
    pub fn say(&mut self, from: PartyId, to: PartyId, bytes: u64) {
        self.sent[from.index()] += bytes;
        self.spoke[from.index()][to.index()] = true;
    }

    /// Any party of the session receives from another one.
    pub fn listen(&mut self, at: PartyId, from: PartyId) {
        let spoke = std::mem::take(&mut self.spoke[at.index()][from.index()]);
        self.turns[at.index()][from.index()] += u64::from(spoke);
    }

    /// All settings.
    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    /// Who sits at a seat.
    pub(crate) fn party(&self, seat: Seat) -> PartyId {
        self.seats[seat.index()]
    }

    /// Everybody without a seat.
    pub(crate) fn outside(&self) -> impl Iterator<Item = PartyId> + use<> {
        let seats = self.seats;
        (0..self.sent.len()).map(|i| PartyId(i as u8)).filter(move |party| !seats.contains(party))
    }

    /// Every seat says as much to every other one, then listens.
    pub(crate) fn among(&mut self, bytes: u64) {
        for me in Seat::ALL {
            [1, 2, 3].map(|k| me.after(k)).into_iter().for_each(|peer| self.send(me, peer, bytes));
        }
        for me in Seat::ALL {
            [1, 2, 3].map(|k| me.after(k)).into_iter().for_each(|peer| self.hear(me, peer));
        }
    }

    /// Seats compare what they got.
    pub(crate) fn comparison(&mut self, holders: &[Seat]) {
        self.trips += 1;
        let pairs = |a: Seat| holders.iter().filter(move |&&b| b != a).map(move |&b| (a, b));
        holders.iter().copied().flat_map(pairs).for_each(|(a, b)| self.send(a, b, COMPARISON_BYTES));
        holders.iter().copied().flat_map(pairs).for_each(|(a, b)| self.hear(a, b));
    }

    /// So many messages follow each other.
    pub fn trip(&mut self, messages: u64) {
        self.trips += messages;
    }

    /// Agreement on keys.
    pub fn setup(&mut self) {
        for bytes in crate::seats::setup::BYTES {
            self.trips += 1;
            self.among(bytes);
        }
    }

    /// Products of so many elements, or dot products of any length with so many results.
    pub fn multiply(&mut self, ring: VectorRing, len: usize) {
        self.trips += 1;
        let chunks = chunks(ring.blocks(len));
        for at in 0..chunks.len() + CHUNKS_AHEAD {
            for me in Seat::ALL {
                if let Some((half, range)) = chunks.get(at) {
                    let times = 1 + u64::from(half.sends(me));
                    self.send(me, me.after(3), times * BLOCK * range.len() as u64);
                }
                if at.checked_sub(CHUNKS_AHEAD).is_some_and(|at| at < chunks.len()) {
                    self.hear(me, me.after(1));
                }
            }
        }
        if self.settings.checked() {
            self.tags();
        }
    }

    /// Tags of every seat for A, to the second seat after it, and for C, to the next one.
    fn tags(&mut self) {
        for me in Seat::ALL {
            [2, 1].into_iter().for_each(|k| self.send(me, me.after(k), TAG_BYTES as u64));
        }
        for me in Seat::ALL {
            [2, 3].into_iter().for_each(|k| self.hear(me, me.after(k)));
        }
    }

    /// Messages between seats, at most one each way, in pieces as [`net::talk::exchange`] has them.
    fn talk(&mut self, messages: &[(Seat, Seat, u64)]) {
        let longest = messages.iter().map(|&(.., bytes)| bytes).max().unwrap_or(0);
        for from in (0..longest).step_by(crate::PIECE_BYTES) {
            let left = messages.iter().filter(|(.., bytes)| *bytes > from);
            for &(speaker, listener, bytes) in left.clone() {
                self.send(speaker, listener, (bytes - from).min(crate::PIECE_BYTES as u64));
            }
            left.for_each(|&(speaker, listener, _)| self.hear(listener, speaker));
        }
    }

    /// An opening to all.
    pub fn open(&mut self, ring: VectorRing, len: usize) {
        self.open_to(ring, len, &Seat::ALL);
    }

    /// An opening to some seats.
    pub fn open_to(&mut self, ring: VectorRing, len: usize, viewers: &[Seat]) {
        self.trips += 1;
        let bytes = BLOCK * ring.blocks(len) as u64;
        self.talk(&viewers.iter().map(|&v| (v.after(1), v, bytes)).collect::<Vec<_>>());
        if self.settings.checked() {
            viewers.iter().for_each(|&v| self.send(v.after(2), v, TAG_BYTES as u64));
            viewers.iter().for_each(|&v| self.hear(v, v.after(2)));
        }
    }

    /// An input of the party at a seat.
    pub fn input(&mut self, owner: Seat, ring: VectorRing, len: usize) {
        self.trips += 1;
        let bytes = BLOCK * ring.blocks(len) as u64;
        let receivers = [owner.after(1), owner.after(2)];
        receivers.iter().for_each(|&r| self.send(owner, r, bytes));
        receivers.iter().for_each(|&r| self.hear(r, owner));
        if self.settings.checked() {
            self.comparison(&receivers);
        }
    }

    /// One round of joint inputs: sender, voucher, receiver, ring and length of each.
    pub fn joint(&mut self, joints: &[([Seat; 3], VectorRing, usize)]) {
        self.trips += 1;
        let mut messages: Vec<(Seat, Seat, u64)> = Vec::new();
        for &([sender, _, receiver], ring, len) in joints {
            let bytes = BLOCK * ring.blocks(len) as u64;
            match messages.iter_mut().find(|(from, to, _)| (*from, *to) == (sender, receiver)) {
                Some((.., all)) => *all += bytes,
                None => messages.push((sender, receiver, bytes)),
            }
        }
        self.talk(&messages);
        if !self.settings.checked() {
            return;
        }
        let mut channels: Vec<[Seat; 3]> = Vec::new();
        for &(seats, ..) in joints {
            if !channels.contains(&seats) {
                channels.push(seats);
            }
        }
        channels.iter().for_each(|&[_, voucher, receiver]| self.send(voucher, receiver, TAG_BYTES as u64));
        channels.iter().for_each(|&[_, voucher, receiver]| self.hear(receiver, voucher));
    }

    /// Rounds so far, one after the other, whoever speaks: each half a round trip.
    #[must_use]
    pub fn trips(&self) -> u64 {
        self.trips
    }

    /// All of it, with so many ANDs of shares.
    pub(crate) fn price(&self, and_gates: u64) -> StagePrice {
        StagePrice { cost: self.total(), and_gates, trips: self.trips }
    }

    /// The price so far, by party of the session.
    #[must_use]
    pub fn total(&self) -> Cost {
        let rounds = self.turns.iter().flatten().copied().max().unwrap_or(0);
        Cost { rounds, sent: self.sent.clone(), ..Cost::default() }
    }
}

//! Joint inputs: values that two parties know become shared. The only interactive primitive besides opening.
//!
//! JI(s, b -> r; o) of v: rho of the stream of K_r, m = v - rho; s sends m to r, b vouches for it; x_r += rho
//! at s, b and o, x_o += m at s, b and r. Where o could read the channel m travels as m + w, w of the stream
//! of K_o.

use crate::seats::check::{Running, VouchedChannel};
use crate::vectors::spare::ClearVector;
use crate::{PIECE_BYTES, Seat, SeatParty, SharedVector, VectorRing};
use accel::Use;
use base::Error;
use kernels::{Block, ring_add, ring_sub};
use net::Session;
use net::talk::{PeerExchange, exchange};

/// Room for messages that is kept from round to round, for each peer and direction.
const KEPT_BYTES: usize = 8 << 20;

/// One joint input: at its two owners the value, elsewhere its shape.
#[derive(Clone)]
pub struct Joint<'a> {
    /// Who sends.
    pub sender: Seat,
    /// Who knows the same and vouches for it.
    pub voucher: Seat,
    /// Who receives. The fourth seat is the one left over.
    pub receiver: Seat,
    /// Of which elements.
    pub ring: VectorRing,
    /// How many.
    pub len: usize,
    /// The value, at sender and voucher; not looked at elsewhere.
    pub value: &'a [Block],
}

impl Joint<'_> {
    fn channel(&self) -> VouchedChannel {
        VouchedChannel::new(self.sender, self.voucher, self.receiver)
    }

    fn fourth(&self) -> Seat {
        Seat::new(6 - self.sender.index() - self.voucher.index() - self.receiver.index())
    }

    fn check(&self, seat: Seat) -> Result<(), Error> {
        let seats = [self.sender, self.voucher, self.receiver];
        let distinct = (0..3).all(|i| seats[i] != seats[(i + 1) % 3]);
        let knows = seat == self.sender || seat == self.voucher;
        if distinct && (!knows || self.value.len() == self.ring.blocks(self.len)) {
            return Ok(());
        }
        Err(Error::misuse("a joint input has three different seats, and its value at two of them"))
    }
}

/// Blocks said so far in a round, by sender, voucher and receiver: where the streams of the next joint input
/// begin.
#[derive(Default)]
struct Offsets([[u64; 4]; 4]);

impl Offsets {
    /// The streams of a channel are named by sender and voucher; those of both its receivers go on behind
    /// each other.
    fn take(&mut self, channel: VouchedChannel, blocks: usize) -> u64 {
        let place = &mut self.0[channel.sender.index()][channel.voucher.index()];
        std::mem::replace(place, *place + blocks as u64)
    }
}

impl SeatParty {
    /// Joint inputs, all in one round. All four parties call it with the same shapes in the same order.
    ///
    /// # Errors
    /// Shapes that do not fit, those of the channels, and a tag that does not fit.
    pub fn joint(&mut self, session: &mut Session, joints: &[Joint<'_>]) -> Result<Vec<SharedVector>, Error> {
        joints.iter().try_for_each(|joint| joint.check(self.seat))?;
        if let Some(stub) = &mut self.stub {
            let shape = |j: &Joint<'_>| ([j.sender, j.voucher, j.receiver], j.ring, j.len);
            stub.quote.joint(&joints.iter().map(shape).collect::<Vec<_>>());
            // What is sent, what is heard, and masks.
            stub.scratch(3, joints.iter().map(|j| j.ring.blocks(j.len)).sum());
            return Ok(joints.iter().map(|j| SharedVector::zero(j.ring, j.len)).collect());
        }
        self.hidden(session)?;
        let round = self.next_round();
        let mut offsets = Offsets::default();
        let firsts: Vec<u64> =
            joints.iter().map(|j| offsets.take(j.channel(), j.ring.blocks(j.len))).collect();
        let mut results: Vec<SharedVector> =
            joints.iter().map(|j| SharedVector::zero(j.ring, j.len)).collect();
        let mut hashes = Hashes::new(self, round, joints);
        let mut talks = [1, 2, 3].map(|k| PeerExchange::new(self.at(self.seat.after(k))));
        for (talk, [send, hear]) in talks.iter_mut().zip(std::mem::take(&mut self.said)) {
            (talk.send, talk.hear) = (send, hear);
            talk.send.clear();
        }
        // What is heard is written over what was heard before.
        let mut lengths = [0; 3];
        let to = |seat: Seat| self.seat.part_of(seat).expect("nobody talks to itself");
        for ((joint, &first), result) in joints.iter().zip(&firsts).zip(&mut results) {
            if let Some(message) = self.enter((round, first), joint, result, &mut hashes) {
                talks[to(joint.receiver)].send.extend(Block::bytes_of(&message));
            }
            if joint.receiver == self.seat {
                lengths[to(joint.sender)] += Block::BYTES * joint.ring.blocks(joint.len);
            }
        }
        talks.iter_mut().zip(lengths).for_each(|(talk, len)| talk.hear.resize(len, 0));
        exchange(session, PIECE_BYTES, &mut talks)?;
        let mut heard = talks.each_ref().map(|talk| talk.hear.as_slice());
        for ((joint, &first), result) in joints.iter().zip(&firsts).zip(&mut results) {
            if joint.receiver == self.seat {
                self.receive(&mut heard[to(joint.sender)], (round, first), joint, result, &mut hashes);
            }
        }
        let keep = |said: Vec<u8>| if said.capacity() <= KEPT_BYTES { said } else { Vec::new() };
        self.said = talks.map(|talk| [talk.send, talk.hear].map(keep));
        if self.settings.checked() {
            self.settle(session, round, hashes.vouched, hashes.received)?;
        }
        Ok(results)
    }

    /// What sender, voucher and fourth do. Returns what the sender sends.
    fn enter(
        &self,
        (round, first): (u64, u64),
        joint: &Joint<'_>,
        result: &mut SharedVector,
        hashes: &mut Hashes,
    ) -> Option<ClearVector> {
        let of_receiver = self.seat.part_of(joint.receiver)?;
        let (ring, pair) = (joint.ring, joint.channel().pair());
        self.fill(of_receiver, (round, Use::Mask, pair), first, result.parts_mut()[of_receiver]);
        let of_fourth = self.seat.part_of(joint.fourth())?;
        let mut message = ClearVector::copied(joint.value);
        ring_sub(ring, &mut message, result.parts()[of_receiver]);
        result.parts_mut()[of_fourth].copy_from_slice(&message);
        if self.settings.masked {
            ring_add(ring, &mut message, &self.wire(of_fourth, (round, first), joint));
        }
        if self.seat == joint.sender {
            return Some(message);
        }
        hashes.go_on(self, joint.channel(), &message);
        None
    }

    /// What the receiver does with the next bytes that it heard from the sender.
    fn receive(
        &self,
        heard: &mut &[u8],
        (round, first): (u64, u64),
        joint: &Joint<'_>,
        result: &mut SharedVector,
        hashes: &mut Hashes,
    ) {
        let of_fourth = self.seat.part_of(joint.fourth()).expect("the fourth is another seat");
        let mut message = ClearVector::zeros(joint.ring.blocks(joint.len));
        let (bytes, rest) = heard.split_at(Block::BYTES * message.len());
        *heard = rest;
        Block::read_slice(bytes, &mut message);
        hashes.go_on(self, joint.channel(), &message);
        if self.settings.masked {
            ring_sub(joint.ring, &mut message, &self.wire(of_fourth, (round, first), joint));
        }
        result.parts_mut()[of_fourth].copy_from_slice(&message);
    }

    /// What hides a message from the fourth party.
    fn wire(&self, part: usize, (round, first): (u64, u64), joint: &Joint<'_>) -> ClearVector {
        let mut wire = ClearVector::zeros(joint.ring.blocks(joint.len));
        self.fill(part, (round, Use::Wire, joint.channel().pair()), first, &mut wire);
        wire
    }
}

/// The hashes of the channels of a round that this seat vouches for or receives on.
struct Hashes {
    vouched: Vec<(VouchedChannel, Running)>,
    received: Vec<(VouchedChannel, Running)>,
}

impl Hashes {
    /// Begins one per channel with content, in an order that all share.
    fn new(party: &SeatParty, round: u64, joints: &[Joint<'_>]) -> Self {
        let mut hashes = Self { vouched: Vec::new(), received: Vec::new() };
        if !party.settings.checked() {
            return hashes;
        }
        let mut seen: Vec<VouchedChannel> = Vec::new();
        for channel in joints.iter().map(Joint::channel) {
            if seen.contains(&channel) {
                continue;
            }
            seen.push(channel);
            let of_channel = joints.iter().filter(|j| j.channel() == channel);
            let blocks = of_channel.map(|j| j.ring.blocks(j.len)).sum();
            if channel.voucher == party.seat {
                hashes.vouched.push((channel, party.begin(channel, round, blocks)));
            }
            if channel.receiver == party.seat {
                hashes.received.push((channel, party.begin(channel, round, blocks)));
            }
        }
        hashes
    }

    fn go_on(&mut self, party: &SeatParty, channel: VouchedChannel, blocks: &[Block]) {
        let mut all = self.vouched.iter_mut().chain(&mut self.received);
        if let Some((_, running)) = all.find(|(c, _)| *c == channel) {
            party.hash(channel, running, blocks);
        }
    }
}

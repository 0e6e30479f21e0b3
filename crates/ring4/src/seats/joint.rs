//! Joint inputs: values that two parties know become shared. The only interactive primitive besides opening.
//!
//! JI(s, b -> r; o) of v: rho of the stream of K_r, m = v - rho; s sends m to r, b vouches for it; x_r += rho
//! at s, b and o, x_o += m at s, b and r. Where o could read the channel m travels as m + w, w of the stream
//! of K_o.

use crate::seats::check::{Running, VouchedChannel};
use crate::vectors::spare::{ClearVector, wipe_bytes};
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

/// A joint input but for its value.
#[derive(Clone, Copy)]
pub(crate) struct JointShape {
    /// Sender, voucher and receiver.
    pub seats: [Seat; 3],
    pub ring: VectorRing,
    pub len: usize,
}

impl JointShape {
    pub fn channel(&self) -> VouchedChannel {
        let [sender, voucher, receiver] = self.seats;
        VouchedChannel::new(sender, voucher, receiver)
    }

    pub fn fourth(&self) -> Seat {
        let [sender, voucher, receiver] = self.seats.map(Seat::index);
        Seat::new(6 - sender - voucher - receiver)
    }

    pub fn blocks(&self) -> usize {
        self.ring.blocks(self.len)
    }
}

/// What joint inputs of a round say and hear, by peer: in the clear where channels hide it. Wiped on drop.
pub(crate) struct JointTalks([PeerExchange; 3]);

impl JointTalks {
    /// Makes room for messages of these lengths, said and heard. What is heard is written over what was heard
    /// before.
    fn make_room(&mut self, lengths: [[usize; 2]; 3]) {
        for (talk, [said, heard]) in self.0.iter_mut().zip(lengths) {
            for (bytes, len) in [(&mut talk.send, said), (&mut talk.hear, heard)] {
                if bytes.capacity() < len {
                    wipe_bytes(bytes);
                    *bytes = Vec::with_capacity(len);
                }
            }
            talk.send.clear();
            talk.hear.resize(heard, 0);
        }
    }

    fn messages(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.0.iter_mut().flat_map(|talk| [&mut talk.send, &mut talk.hear])
    }

    /// What is kept of it for the next round.
    fn kept(mut self) -> Self {
        for bytes in self.messages().filter(|bytes| bytes.capacity() > KEPT_BYTES) {
            wipe_bytes(bytes);
            *bytes = Vec::new();
        }
        self
    }
}

impl Drop for JointTalks {
    fn drop(&mut self) {
        self.messages().for_each(wipe_bytes);
    }
}

/// Where values and results of joint inputs lie.
pub(crate) trait JointPlaces {
    /// What sender, voucher and fourth do. Returns the message at the two that know it.
    fn enter(
        &mut self,
        party: &mut SeatParty,
        at: usize,
        joint: &JointShape,
        begin: (u64, u64),
    ) -> Result<Option<JointMessage>, Error>;

    /// What the receiver does with the message.
    fn receive(
        &mut self,
        party: &mut SeatParty,
        at: usize,
        joint: &JointShape,
        begin: (u64, u64),
        message: ClearVector,
    ) -> Result<(), Error>;
}

/// A message as far as a seat needs it.
pub(crate) enum JointMessage {
    /// Its blocks.
    Blocks(ClearVector),
    /// What a device says of so many, at the voucher.
    Digest(Block, usize),
}

impl Joint<'_> {
    fn shape(&self) -> JointShape {
        JointShape { seats: [self.sender, self.voucher, self.receiver], ring: self.ring, len: self.len }
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
        let zero = |j: &Joint<'_>| SharedVector::zero(j.ring, j.len);
        let mut places = HostJoints { joints, results: joints.iter().map(zero).collect() };
        let shapes: Vec<JointShape> = joints.iter().map(Joint::shape).collect();
        self.joint_in(session, &shapes, &mut places)?;
        Ok(places.results)
    }

    /// As [`SeatParty::joint`], of values and to results that lie somewhere. Results are zero before.
    pub(crate) fn joint_in(
        &mut self,
        session: &mut Session,
        joints: &[JointShape],
        places: &mut impl JointPlaces,
    ) -> Result<(), Error> {
        if let Some(stub) = &mut self.stub {
            stub.quote.joint(&joints.iter().map(|j| (j.seats, j.ring, j.len)).collect::<Vec<_>>());
            // What is sent, what is heard, and masks.
            stub.scratch(3, joints.iter().map(JointShape::blocks).sum());
            return Ok(());
        }
        self.hidden(session)?;
        let round = self.next_round();
        let mut offsets = Offsets::default();
        let firsts: Vec<u64> = joints.iter().map(|j| offsets.take(j.channel(), j.blocks())).collect();
        let mut hashes = Hashes::new(self, round, joints);
        let me = self.seat;
        let to = |seat: Seat| me.part_of(seat).expect("nobody talks to itself");
        let mut talks = self
            .said
            .take()
            .unwrap_or_else(|| JointTalks([1, 2, 3].map(|k| PeerExchange::new(self.at(me.after(k))))));
        let mut lengths = [[0; 2]; 3];
        for joint in joints {
            let [sender, _, receiver] = joint.seats;
            if sender == me {
                lengths[to(receiver)][0] += Block::BYTES * joint.blocks();
            } else if receiver == me {
                lengths[to(sender)][1] += Block::BYTES * joint.blocks();
            }
        }
        talks.make_room(lengths);
        for (at, (joint, &first)) in joints.iter().zip(&firsts).enumerate() {
            let [sender, _, receiver] = joint.seats;
            if receiver == me {
                continue;
            }
            match places.enter(self, at, joint, (round, first))? {
                Some(JointMessage::Blocks(message)) if sender == me => {
                    talks.0[to(receiver)].send.extend(Block::bytes_of(&message));
                }
                Some(message) => hashes.go_on(self, joint.channel(), &message),
                None => {}
            }
        }
        exchange(session, PIECE_BYTES, &mut talks.0)?;
        let mut heard = talks.0.each_ref().map(|talk| talk.hear.as_slice());
        for (at, (joint, &first)) in joints.iter().zip(&firsts).enumerate() {
            let [sender, _, receiver] = joint.seats;
            if receiver == me {
                let heard = &mut heard[to(sender)];
                let mut message = ClearVector::zeros(joint.blocks());
                let (bytes, rest) = heard.split_at(Block::BYTES * message.len());
                *heard = rest;
                Block::read_slice(bytes, &mut message);
                let message = JointMessage::Blocks(message);
                hashes.go_on(self, joint.channel(), &message);
                if let JointMessage::Blocks(message) = message {
                    places.receive(self, at, joint, (round, first), message)?;
                }
            }
        }
        self.said = Some(talks.kept());
        if self.settings.checked() {
            self.settle(session, round, hashes.vouched, hashes.received)?;
        }
        Ok(())
    }

    /// What hides a message from the fourth party.
    fn wire(&self, part: usize, (round, first): (u64, u64), joint: &JointShape) -> ClearVector {
        let mut wire = ClearVector::zeros(joint.blocks());
        self.fill(part, (round, Use::Wire, joint.channel().pair()), first, &mut wire);
        wire
    }
}

/// Joint inputs in the host's memory.
struct HostJoints<'a> {
    joints: &'a [Joint<'a>],
    results: Vec<SharedVector>,
}

impl JointPlaces for HostJoints<'_> {
    fn enter(
        &mut self,
        party: &mut SeatParty,
        at: usize,
        joint: &JointShape,
        (round, first): (u64, u64),
    ) -> Result<Option<JointMessage>, Error> {
        let [sender, _, receiver] = joint.seats;
        let (ring, pair, result) = (joint.ring, joint.channel().pair(), &mut self.results[at]);
        let of_receiver = party.seat.part_of(receiver).expect("the receiver is another seat");
        party.fill(of_receiver, (round, Use::Mask, pair), first, result.parts_mut()[of_receiver]);
        let Some(of_fourth) = party.seat.part_of(joint.fourth()) else { return Ok(None) };
        let mut message = ClearVector::copied(self.joints[at].value);
        ring_sub(ring, &mut message, result.parts()[of_receiver]);
        result.parts_mut()[of_fourth].copy_from_slice(&message);
        if !party.settings.checked() && party.seat != sender {
            return Ok(None);
        }
        if party.settings.masked {
            ring_add(ring, &mut message, &party.wire(of_fourth, (round, first), joint));
        }
        Ok(Some(JointMessage::Blocks(message)))
    }

    fn receive(
        &mut self,
        party: &mut SeatParty,
        at: usize,
        joint: &JointShape,
        begin: (u64, u64),
        mut message: ClearVector,
    ) -> Result<(), Error> {
        let of_fourth = party.seat.part_of(joint.fourth()).expect("the fourth is another seat");
        if party.settings.masked {
            ring_sub(joint.ring, &mut message, &party.wire(of_fourth, begin, joint));
        }
        self.results[at].parts_mut()[of_fourth].copy_from_slice(&message);
        Ok(())
    }
}

/// The hashes of the channels of a round that this seat vouches for or receives on.
struct Hashes {
    vouched: Vec<(VouchedChannel, Running)>,
    received: Vec<(VouchedChannel, Running)>,
}

impl Hashes {
    /// Begins one per channel with content, in an order that all share.
    fn new(party: &SeatParty, round: u64, joints: &[JointShape]) -> Self {
        let mut hashes = Self { vouched: Vec::new(), received: Vec::new() };
        if !party.settings.checked() {
            return hashes;
        }
        let mut seen: Vec<VouchedChannel> = Vec::new();
        for channel in joints.iter().map(JointShape::channel) {
            if seen.contains(&channel) {
                continue;
            }
            seen.push(channel);
            let of_channel = joints.iter().filter(|j| j.channel() == channel);
            let blocks = of_channel.map(JointShape::blocks).sum();
            if channel.voucher == party.seat {
                hashes.vouched.push((channel, party.begin(channel, round, blocks)));
            }
            if channel.receiver == party.seat {
                hashes.received.push((channel, party.begin(channel, round, blocks)));
            }
        }
        hashes
    }

    fn go_on(&mut self, party: &SeatParty, channel: VouchedChannel, message: &JointMessage) {
        let mut all = self.vouched.iter_mut().chain(&mut self.received);
        let Some((_, running)) = all.find(|(c, _)| *c == channel) else { return };
        match message {
            JointMessage::Blocks(blocks) => party.hash(channel, running, blocks),
            JointMessage::Digest(digest, blocks) => party.append(channel, running, *blocks, *digest),
        }
    }
}

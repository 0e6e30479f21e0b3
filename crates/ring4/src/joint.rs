//! Joint inputs: values that two parties know become shared. The only interactive primitive besides opening.
//!
//! JI(s, b -> r; o) of v: rho of the stream of K_r, m = v - rho; s sends m to r, b vouches for it; x_r += rho at s, b and
//! o, x_o += m at s, b and r. Where o could read the channel m travels as m + w, w of the stream of K_o.

use crate::check::{Channel, Running};
use crate::{Party, Ring, Seat, Shares};
use accel::Use;
use base::Error;
use kernels::{Block, ring_add, ring_sub};
use net::Session;
use zeroize::Zeroizing;

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
    pub ring: Ring,
    /// How many.
    pub len: usize,
    /// The value, at sender and voucher; not looked at elsewhere.
    pub value: &'a [Block],
}

impl Joint<'_> {
    fn channel(&self) -> Channel {
        Channel::new(self.sender, self.voucher, self.receiver)
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

/// Blocks said so far in a round, by sender, voucher and receiver: where the streams of the next joint input begin.
#[derive(Default)]
struct Offsets([[u64; 4]; 4]);

impl Offsets {
    /// The streams of a channel are named by sender and voucher; those of both its receivers go on behind each other.
    fn take(&mut self, channel: Channel, blocks: usize) -> u64 {
        let place = &mut self.0[channel.sender.index()][channel.voucher.index()];
        std::mem::replace(place, *place + blocks as u64)
    }
}

impl Party {
    /// Joint inputs, all in one round. All four parties call it with the same shapes in the same order.
    ///
    /// # Errors
    /// Shapes that do not fit, those of the channels, and a tag that does not fit.
    pub fn joint(&mut self, session: &mut Session, joints: &[Joint<'_>]) -> Result<Vec<Shares>, Error> {
        self.hidden(session)?;
        joints.iter().try_for_each(|joint| joint.check(self.seat))?;
        let round = self.next_round();
        let mut offsets = Offsets::default();
        let firsts: Vec<u64> =
            joints.iter().map(|j| offsets.take(j.channel(), j.ring.blocks(j.len))).collect();
        let mut results: Vec<Shares> = joints.iter().map(|j| Shares::zero(j.ring, j.len)).collect();
        let mut hashes = Hashes::new(self, round, joints);
        for ((joint, &first), result) in joints.iter().zip(&firsts).zip(&mut results) {
            self.enter(session, (round, first), joint, result, &mut hashes)?;
        }
        for peer in [1, 2, 3].map(|k| self.at(self.seat.after(k))) {
            session.link(peer).flush()?;
        }
        for ((joint, &first), result) in joints.iter().zip(&firsts).zip(&mut results) {
            if joint.receiver == self.seat {
                self.receive(session, (round, first), joint, result, &mut hashes)?;
            }
        }
        if self.settings.checked() {
            self.settle(session, round, hashes.vouched, hashes.received)?;
        }
        Ok(results)
    }

    /// What sender, voucher and fourth do.
    fn enter(
        &self,
        session: &mut Session,
        (round, first): (u64, u64),
        joint: &Joint<'_>,
        result: &mut Shares,
        hashes: &mut Hashes,
    ) -> Result<(), Error> {
        let Some(of_receiver) = self.seat.part_of(joint.receiver) else { return Ok(()) };
        let (ring, pair) = (joint.ring, joint.channel().pair());
        self.fill(of_receiver, (round, Use::Mask, pair), first, result.parts_mut()[of_receiver]);
        let Some(of_fourth) = self.seat.part_of(joint.fourth()) else { return Ok(()) };
        let mut message = Zeroizing::new(joint.value.to_vec());
        ring_sub(ring, &mut message, result.parts()[of_receiver]);
        result.parts_mut()[of_fourth].copy_from_slice(&message);
        if self.settings.masked {
            ring_add(ring, &mut message, &self.wire(of_fourth, (round, first), joint));
        }
        if self.seat == joint.sender {
            return session.link(self.at(joint.receiver)).send(Block::bytes_of(&message));
        }
        hashes.go_on(self, joint.channel(), &message);
        Ok(())
    }

    /// What the receiver does.
    fn receive(
        &self,
        session: &mut Session,
        (round, first): (u64, u64),
        joint: &Joint<'_>,
        result: &mut Shares,
        hashes: &mut Hashes,
    ) -> Result<(), Error> {
        let of_fourth = self.seat.part_of(joint.fourth()).expect("the fourth is another seat");
        let mut message = vec![Block::ZERO; joint.ring.blocks(joint.len)];
        session.link(self.at(joint.sender)).recv(Block::bytes_of_mut(&mut message))?;
        hashes.go_on(self, joint.channel(), &message);
        if self.settings.masked {
            ring_sub(joint.ring, &mut message, &self.wire(of_fourth, (round, first), joint));
        }
        result.parts_mut()[of_fourth].copy_from_slice(&message);
        Ok(())
    }

    /// What hides a message from the fourth party.
    fn wire(&self, part: usize, (round, first): (u64, u64), joint: &Joint<'_>) -> Zeroizing<Vec<Block>> {
        let mut wire = Zeroizing::new(vec![Block::ZERO; joint.ring.blocks(joint.len)]);
        self.fill(part, (round, Use::Wire, joint.channel().pair()), first, &mut wire);
        wire
    }
}

/// The hashes of the channels of a round that this seat vouches for or receives on.
struct Hashes {
    vouched: Vec<(Channel, Running)>,
    received: Vec<(Channel, Running)>,
}

impl Hashes {
    /// Begins one per channel with content, in an order that all share.
    fn new(party: &Party, round: u64, joints: &[Joint<'_>]) -> Self {
        let mut hashes = Self { vouched: Vec::new(), received: Vec::new() };
        if !party.settings.checked() {
            return hashes;
        }
        let mut seen: Vec<Channel> = Vec::new();
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

    fn go_on(&mut self, party: &Party, channel: Channel, blocks: &[Block]) {
        let mut all = self.vouched.iter_mut().chain(&mut self.received);
        if let Some((_, running)) = all.find(|(c, _)| *c == channel) {
            party.hash(channel, running, blocks);
        }
    }
}

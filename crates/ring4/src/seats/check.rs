//! Tags: what vouchers say about what senders sent.
//!
//! The content of a channel (s, b -> r) in a round is its length in blocks and its blocks, as they are on the
//! wire. Under [`TagHash::Keyed`] the tag is the polynomial hash of both at an element that s does not know,
//! plus a pad of the round from the stream of K_s, index r: without the pad one tag seen on the wire would
//! give the element away. Under [`TagHash::Blake3`] it is the keyed hash of round, channel and content, under
//! a key derived from the same element.

use crate::{COMPARISON_BYTES, Seat, SeatParty, TAG_BYTES, TagHash};
use accel::Use;
use base::{Error, PartyId};
use kernels::{Block, gf_digest};
use net::Session;
use subtle::ConstantTimeEq;

/// A running hash of one channel's content in one round.
pub(crate) enum Running {
    /// The digest so far; a device may go on with it.
    Keyed(Block),
    Blake3(Box<blake3::Hasher>),
}

/// A channel: who sends, who vouches, who receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct VouchedChannel {
    pub sender: Seat,
    pub voucher: Seat,
    pub receiver: Seat,
}

impl VouchedChannel {
    pub fn new(sender: Seat, voucher: Seat, receiver: Seat) -> Self {
        Self { sender, voucher, receiver }
    }

    pub fn pair(self) -> [Seat; 2] {
        [self.sender, self.voucher]
    }
}

/// A vector that an owner gave to several seats, who make sure that it is the same.
pub(crate) struct Comparison {
    pub round: u64,
    /// Whose number's key the hash is under: all who compare hold it, and this seat, which may read the
    /// channel, does not.
    pub unknown_to: Seat,
    /// Who compares; this seat among them.
    pub among: Vec<Seat>,
    /// Who gave it.
    pub owner: PartyId,
}

const COMPARISON_KEY: &str = "tacit ring4 2026 comparison of an input";
const BLAKE3_KEY: &str = "tacit ring4 2026 key of a tag";

impl SeatParty {
    /// Which part's keys the tags of a sender are under; this party is voucher or receiver, never the sender.
    fn tag_part(&self, channel: VouchedChannel) -> usize {
        self.seat.part_of(channel.sender).expect("nobody hashes what it sends itself")
    }

    /// Begins a channel's hash with its length in blocks.
    pub(crate) fn begin(&self, channel: VouchedChannel, round: u64, blocks: usize) -> Running {
        let part = self.tag_part(channel);
        let length = Block(blocks as u128);
        match self.settings.hash {
            TagHash::Keyed => Running::Keyed(gf_digest(self.keys.tag(part), Block::ZERO, &[length])),
            TagHash::Blake3 => {
                let element = self.keys.tag_elements()[part].to_bytes();
                let key = blake3::derive_key(BLAKE3_KEY, &element);
                let mut hasher = blake3::Hasher::new_keyed(&key);
                let seats = [channel.sender, channel.voucher, channel.receiver].map(|s| s.index() as u8);
                hasher.update(&round.to_le_bytes()).update(&seats).update(&length.to_bytes());
                Running::Blake3(Box::new(hasher))
            }
        }
    }

    /// Goes on with blocks as they are on the wire.
    pub(crate) fn hash(&self, channel: VouchedChannel, running: &mut Running, blocks: &[Block]) {
        match running {
            Running::Keyed(digest) => {
                *digest = gf_digest(self.keys.tag(self.tag_part(channel)), *digest, blocks)
            }
            Running::Blake3(hasher) => {
                hasher.update(Block::bytes_of(blocks));
            }
        }
    }

    /// Goes on with so many blocks whose digest after nothing a device made.
    pub(crate) fn append(
        &self,
        channel: VouchedChannel,
        running: &mut Running,
        blocks: usize,
        digest: Block,
    ) {
        if let Running::Keyed(before) = running {
            *before = self.keys.tag(self.tag_part(channel)).advance(*before, blocks as u64) ^ digest;
        }
    }

    fn tag(&self, channel: VouchedChannel, round: u64, running: Running) -> [u8; TAG_BYTES] {
        match running {
            Running::Keyed(digest) => {
                let mut pad = [Block::ZERO];
                let part = self.tag_part(channel);
                self.fill(part, (round, Use::Pad, channel.pair()), channel.receiver.index() as u64, &mut pad);
                (digest ^ pad[0]).to_bytes()
            }
            Running::Blake3(hasher) => {
                let hash = hasher.finalize();
                std::array::from_fn(|i| hash.as_bytes()[i])
            }
        }
    }

    /// Sends the tags of what this party vouches for, then compares those of what it received: nothing of the
    /// round may be used for anything that is sent before this has returned.
    pub(crate) fn settle(
        &self,
        session: &mut Session,
        round: u64,
        vouched: Vec<(VouchedChannel, Running)>,
        received: Vec<(VouchedChannel, Running)>,
    ) -> Result<(), Error> {
        for (channel, running) in vouched {
            let to = self.at(channel.receiver);
            let tag = self.tag(channel, round, running);
            session.link(to).send(&tag)?;
            session.link(to).flush()?;
        }
        let mut fault = None;
        for (channel, running) in received {
            let theirs: [u8; TAG_BYTES] = session.link(self.at(channel.voucher)).recv_array()?;
            let fits = bool::from(theirs.ct_eq(&self.tag(channel, round, running)));
            if !fits && fault.is_none() {
                fault = Some(channel);
            }
        }
        fault.map_or(Ok(()), |channel| Err(self.accuse(session, channel)))
    }

    /// One of the two deviates; which one, nobody can tell from here.
    fn accuse(&self, session: &Session, channel: VouchedChannel) -> Error {
        let name = |seat| session.roster().name(self.at(seat));
        let (sender, voucher) = (name(channel.sender), name(channel.voucher));
        session.accuse(
            &channel.pair().map(|seat| self.at(seat)),
            format!("{sender}, vouched for by {voucher}"),
            "what was sent is not what was vouched for: one of both deviates",
        )
    }

    /// Compares a vector with the others that got it. The hash is keyed BLAKE3: keyed, since a low-entropy
    /// vector could be found from its hash; collision resistant, since an owner that colludes with a seat
    /// knows the key.
    pub(crate) fn compare(
        &self,
        session: &mut Session,
        comparison: Comparison,
        got: &[Block],
    ) -> Result<(), Error> {
        let part = self.seat.part_of(comparison.unknown_to).expect("who compares holds the key");
        let key = blake3::derive_key(COMPARISON_KEY, &self.keys.tag_elements()[part].to_bytes());
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(&comparison.round.to_le_bytes()).update(&[comparison.owner.0]);
        hasher.update(Block::bytes_of(got));
        let mine = hasher.finalize();
        // Bound to a direction: nobody passes by giving back what it was told.
        let said = |from: Seat, to: Seat| -> [u8; COMPARISON_BYTES] {
            let mut hasher = blake3::Hasher::new_keyed(&key);
            hasher.update(mine.as_bytes()).update(&[from.index() as u8, to.index() as u8]);
            *hasher.finalize().as_bytes()
        };
        let others = comparison.among.iter().filter(|&&seat| seat != self.seat);
        for &other in others.clone() {
            session.link(self.at(other)).send(&said(self.seat, other))?;
            session.link(self.at(other)).flush()?;
        }
        // All are heard: who differs from both others is under more suspicion than a pair that differs from
        // each other.
        let mut differ = Vec::new();
        for &other in others {
            let theirs: [u8; COMPARISON_BYTES] = session.link(self.at(other)).recv_array()?;
            if !bool::from(theirs.ct_eq(&said(other, self.seat))) {
                differ.push(other);
            }
        }
        if differ.is_empty() { Ok(()) } else { Err(self.doubt(session, comparison.owner, &differ)) }
    }

    /// An owner gave this seat and others different things, or the others say so.
    pub(crate) fn doubt(&self, session: &Session, owner: PartyId, others: &[Seat]) -> Error {
        let others: Vec<PartyId> = others.iter().map(|seat| self.at(*seat)).collect();
        let names: Vec<String> = others.iter().map(|other| session.roster().name(*other)).collect();
        let words = format!("{}, compared with {}", session.roster().name(owner), names.join(" and "));
        let accused: Vec<PartyId> = std::iter::once(owner).chain(others).collect();
        session.accuse(
            &accused,
            words,
            "an input differs between the seats that hold it: one of these deviates",
        )
    }
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod timing_tests;

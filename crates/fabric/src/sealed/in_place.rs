//! Frames whose bodies somebody else writes and reads in the rings: a device, by itself. The bytes on the
//! wire are those of [`Channel::send`].

use super::{FRAME_BYTES, FrameHead, HEAD_BYTES, SealedChannel};
use crate::shm::ShmChannel;
use base::ChannelError;
use kernels::{Block, GfKey, Place, gf_digest};
use net::{Channel, InPlace, OwedDigests, Peeked};
use std::collections::VecDeque;
use std::sync::Arc;

/// Blocks that are taken out of a ring at a time: what is hashed is in the nearest cache.
const TAKEN: usize = 512;

/// Frames under way in the rings.
#[derive(Default)]
pub(super) struct PlacedFrames {
    /// Lengths of bodies that have a place and are not sent.
    reserved: VecDeque<usize>,
    /// Frames that were seen and are not released, and how many of them are checked.
    seen: VecDeque<FrameHead>,
    checked: usize,
    /// The head of the frame after them, which does not fit what is wanted.
    next: Option<FrameHead>,
}

impl PlacedFrames {
    /// The head of the next frame, if it was looked at already.
    pub(super) fn take_seen(&mut self) -> Result<Option<FrameHead>, ChannelError> {
        if self.seen.is_empty() {
            return Ok(self.next.take());
        }
        Err(ChannelError::Io("what was read in place was not released".into()))
    }
}

/// Bytes of a frame in a ring.
fn whole(body: usize) -> u64 {
    (HEAD_BYTES + body) as u64
}

/// Whether rings are long enough that frames of any length go on while others are written.
pub(super) fn fits(rings: &ShmChannel) -> bool {
    rings.ring() >= 4 * whole(FRAME_BYTES)
}

/// The digests of length and body of a frame whose body has this digest after nothing.
fn digest_with(key: &GfKey, body: usize, digest: Block) -> Result<[Block; 2], ChannelError> {
    if !body.is_multiple_of(Block::BYTES) {
        return Err(ChannelError::Io("the digest of a message that is not of whole blocks".into()));
    }
    let length = gf_digest(key, Block::ZERO, &[Block(body as u128)]);
    Ok([length, key.advance(length, (body / Block::BYTES) as u64) ^ digest])
}

/// A misuse, unless there are as many digests as messages, or none at all.
fn as_many(messages: usize, digests: Option<&[Block]>) -> Result<(), ChannelError> {
    if digests.is_none_or(|all| all.len() == messages) {
        return Ok(());
    }
    Err(ChannelError::Io("not as many digests as messages".into()))
}

/// The digests of length and body of a frame whose body lies in these places.
fn digest_of(key: &GfKey, places: &[Place]) -> [Block; 2] {
    let body: usize = places.iter().map(Place::bytes).sum();
    let length = gf_digest(key, Block::ZERO, &[Block(body as u128)]);
    let mut taken = [Block::ZERO; TAKEN];
    let (mut sum, mut filled) = (length, 0);
    for place in places {
        let mut at = 0;
        while at < place.bytes() {
            let bytes = Block::bytes_of_mut(&mut taken);
            let now = (place.bytes() - at).min(bytes.len() - filled);
            place.read_part(at, &mut bytes[filled..filled + now]);
            (at, filled) = (at + now, filled + now);
            if filled == size_of_val(&taken) {
                (sum, filled) = (gf_digest(key, sum, &taken), 0);
            }
        }
    }
    if filled > 0 {
        let last = filled.div_ceil(Block::BYTES);
        Block::bytes_of_mut(&mut taken)[filled..last * Block::BYTES].fill(0);
        sum = gf_digest(key, sum, &taken[..last]);
    }
    [length, sum]
}

impl<C: Channel> SealedChannel<C> {
    fn ring(&mut self) -> Result<&mut ShmChannel, ChannelError> {
        (self.rings)(&mut self.inner).ok_or_else(|| ChannelError::Io("the channel has no rings".into()))
    }

    /// Bytes of the frames that were seen.
    fn seen_bytes(&self) -> u64 {
        self.placed.seen.iter().map(|head| whole(head.length)).sum()
    }

    /// The head of the next frame that was not seen, if all of the frame is there.
    fn look_ahead(&mut self, wait: bool) -> Result<Option<FrameHead>, ChannelError> {
        let ahead = self.seen_bytes();
        if self.placed.next.is_none() {
            if !self.ring()?.there(ahead, HEAD_BYTES as u64, wait)? {
                return Ok(None);
            }
            let mut head = [0; HEAD_BYTES];
            Place::read_all(&self.ring()?.places_in(ahead, HEAD_BYTES), &mut head);
            self.placed.next = Some(self.open_head(&head)?);
        }
        let Some(head) = self.placed.next.take() else { return Ok(None) };
        if self.ring()?.there(ahead, whole(head.length), wait)? {
            return Ok(Some(head));
        }
        self.placed.next = Some(head);
        Ok(None)
    }
}

impl<C: Channel> InPlace for SealedChannel<C> {
    fn reserve(&mut self, lengths: &[usize], wait: bool) -> Result<Vec<Vec<Place>>, ChannelError> {
        self.guarded(|this| {
            this.seal_queued()?;
            let mut ahead: u64 = this.placed.reserved.iter().map(|body| whole(*body)).sum();
            let mut places = Vec::new();
            for &body in lengths {
                if !(1..=FRAME_BYTES).contains(&body) {
                    return Err(ChannelError::Io(format!("a message of {body} bytes has no place")));
                }
                let wait = wait && places.is_empty() && ahead == 0;
                let ring = this.ring()?;
                if !ring.room(ahead, whole(body), wait)? {
                    break;
                }
                places.push(ring.places_out(ahead + HEAD_BYTES as u64, body));
                this.placed.reserved.push_back(body);
                ahead += whole(body);
            }
            Ok(places)
        })
    }

    fn body_keys(&self) -> [Arc<GfKey>; 2] {
        [&self.keys.send, &self.keys.recv].map(|half| half.hash.clone())
    }

    fn publish(&mut self, messages: usize, digests: Option<&[Block]>) -> Result<(), ChannelError> {
        self.guarded(|this| {
            if messages > this.placed.reserved.len() {
                return Err(ChannelError::Io("nothing was reserved".into()));
            }
            as_many(messages, digests)?;
            let lengths: Vec<usize> = this.placed.reserved.drain(..messages).collect();
            for (i, body) in lengths.into_iter().enumerate() {
                let digests = match digests {
                    Some(all) => digest_with(&this.keys.send.hash, body, all[i])?,
                    None => {
                        let places = this.ring()?.places_out(HEAD_BYTES as u64, body);
                        digest_of(&this.keys.send.hash, &places)
                    }
                };
                let head = this.keys.send.head_of(body, digests);
                let ring = this.ring()?;
                Place::write_all(&ring.places_out(0, HEAD_BYTES), &head);
                ring.written(whole(body));
            }
            // At once: a receiver that sees many has them copied at once.
            this.ring()?.tell();
            Ok(())
        })
    }

    fn peek(&mut self, lengths: &[usize], wait: bool) -> Result<Peeked, ChannelError> {
        self.guarded(|this| {
            this.hand_over()?;
            if this.read < this.opened.len() {
                return Ok(Peeked::Otherwise);
            }
            let (mut places, none_before) = (Vec::new(), this.placed.seen.is_empty());
            for &body in lengths {
                let wait = wait && places.is_empty() && none_before;
                let ahead = this.seen_bytes();
                let Some(head) = this.look_ahead(wait)? else { break };
                if head.length != body {
                    this.placed.next = Some(head);
                    let first = places.is_empty() && none_before;
                    return Ok(if first { Peeked::Otherwise } else { Peeked::There(places) });
                }
                places.push(this.ring()?.places_in(ahead + HEAD_BYTES as u64, body));
                this.placed.seen.push_back(head);
            }
            Ok(Peeked::There(places))
        })
    }

    fn check(&mut self, messages: usize) -> Result<(), ChannelError> {
        self.guarded(|this| {
            let (from, to) = (this.placed.checked, this.placed.checked + messages);
            if to > this.placed.seen.len() {
                return Err(ChannelError::Io("nothing is there to check".into()));
            }
            let mut ahead: u64 = this.placed.seen.range(..from).map(|head| whole(head.length)).sum();
            for at in from..to {
                let body = this.placed.seen[at].length;
                let places = this.ring()?.places_in(ahead + HEAD_BYTES as u64, body);
                let [_, digest] = digest_of(&this.keys.recv.hash, &places);
                if !this.placed.seen[at].fits(digest) {
                    return Err(this.forged("the tag"));
                }
                ahead += whole(body);
            }
            this.placed.checked = to;
            Ok(())
        })
    }

    fn release_unchecked(&mut self, messages: usize) -> Result<OwedDigests<ChannelError>, ChannelError> {
        self.guarded(|this| {
            if messages > this.placed.seen.len() || this.placed.checked > 0 {
                return Err(ChannelError::Io("nothing is there, or it was checked".into()));
            }
            let heads: Vec<FrameHead> = this.placed.seen.drain(..messages).collect();
            let bytes = heads.iter().map(|head| whole(head.length)).sum();
            let key = &this.keys.recv.hash;
            // What the tag says of the body alone.
            let owed = heads.iter().map(|head| {
                let [_, of_zeros] = digest_with(key, head.length, Block::ZERO)?;
                Ok(Block::from_bytes(head.tag) ^ head.pad ^ of_zeros)
            });
            let owed = owed.collect::<Result<_, _>>()?;
            this.ring()?.free(bytes);
            Ok(OwedDigests::new(owed, this.forged("the tag")))
        })
    }

    fn release(&mut self, messages: usize) -> Result<(), ChannelError> {
        self.guarded(|this| {
            if messages > this.placed.checked {
                return Err(ChannelError::Io("what was not checked is not released".into()));
            }
            let bytes = this.placed.seen.drain(..messages).map(|head| whole(head.length)).sum();
            this.placed.checked -= messages;
            this.ring()?.free(bytes);
            Ok(())
        })
    }
}

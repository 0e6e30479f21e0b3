//! A tag on every flush: a channel on which nothing that was altered reaches the caller.
//!
//! **Functionality.** [`SealedChannel`] wraps any channel. What one end sends arrives at the other unaltered,
//! in order and without repetition, or the receiver gets an error that names the channel.
//!
//! **Security.** Against whoever reads and alters the bytes between the two ends and does not hold the pair's
//! keys. A frame of n blocks passes with other content with a chance of at most (n + 1) / 2^128, its length
//! field with 2 / 2^96; a run ends at the first frame that fails. Keys: 32 fresh bytes of each end, exchanged
//! over TLS, hashed with the direction (BLAKE3, key derivation mode). Each direction has a hash key and an
//! AES-128 key of its own.
//!
//! **Who learns what.** The bytes are plain text: everybody on the path reads them. Tags say nothing about
//! the hash key, because a pad masks each.
//!
//! **Frame.** What is queued becomes a frame when it is handed over, at the latest after [`FRAME_BYTES`]:
//!
//! | bytes | |
//! |---|---|
//! | 0..4 | length of the body, 1 to 65536, little endian |
//! | 4..16 | first 96 bits of the length's tag: h * length + AES(2i) |
//! | 16..32 | tag of the frame: h_k(length block, body, zeros to a whole block) + AES(2i + 1) |
//! | 32.. | body |
//!
//! i counts the frames of a direction, so that a frame repeated or moved fails. The length has a tag of its
//! own: an altered one is found at once and not at the deadline. The polynomial begins with the length, which
//! is not zero, so bodies that differ in zeros at the end differ in their polynomials.
//!
//! **The receiver copies first.** The body is taken out of whatever memory the peer or a third party can
//! write to, into memory of this process alone, before it is hashed; hash and caller read the same copy. A
//! writer that changes shared memory after the check changes nothing. The exception is what a caller reads
//! in place ([`net::InPlace`]). A device that digests what it has read checks its own copy (decision 135).
//! Else copy and hash each read the memory, so whoever can write to this process's memory in between, which
//! is the peer and who could read all keys anyway, is found by a check of the copy only. Products of `ring4`
//! have one, against the peer (decision 111).
//!
//! **Cost.** 32 bytes per frame; one pass of GF(2^128) hashing at each end.

mod in_place;

use crate::shm::ShmChannel;
use base::{ChannelError, Error, PartyId, Seed};
use in_place::PlacedFrames;
use kernels::{Aes128, Block, GfKey, gf_digest};
use net::{Channel, InPlace, RangeHalt, Session};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Most bytes of one frame: hashed and copied while they are in the cache.
pub const FRAME_BYTES: usize = 64 << 10;
/// Bytes before the body of a frame.
pub const HEAD_BYTES: usize = 32;
/// Bytes each way of [`PairKeys::agree`].
pub const KEY_BYTES: usize = 32;
/// Messages from here on are sealed from where they lie.
const STRAIGHT_BYTES: usize = 4 << 10;
/// How long the last bytes of a channel that is dropped may take.
const LINGER: Duration = Duration::from_secs(2);
const CONTEXT: &str = "tacit 2026-11 tags between two parties v1";

/// The keys of one end of a pair. They serve one channel.
pub struct PairKeys {
    send: Half,
    recv: Half,
}

/// One direction.
struct Half {
    hash: Arc<GfKey>,
    pads: Aes128,
    frames: u64,
}

impl PairKeys {
    /// Agrees on fresh keys with `peer` over the session's channel: [`KEY_BYTES`] each way.
    ///
    /// # Errors
    /// When that channel is not private, and as [`net::StepLink::exchange`].
    pub fn agree(session: &mut Session, peer: PartyId) -> Result<Self, Error> {
        if !session.link(peer).is_private() {
            let text = "keys for plain channels are agreed over TLS: run without --transport tcp";
            return Err(Error::misuse(text).place(|| session.at(Some(peer))));
        }
        // Not the session's seed: two sessions of one seed must not share a pad.
        let mine = Seed::from_system();
        let mut theirs = Zeroizing::new([0; KEY_BYTES]);
        session.link(peer).exchange(mine.expose(), &mut *theirs)?;
        Ok(Self::derive(session.me(), peer, mine.expose(), &theirs))
    }

    /// The keys of `me` from what both sides drew.
    #[must_use]
    pub fn derive(me: PartyId, peer: PartyId, mine: &[u8; KEY_BYTES], theirs: &[u8; KEY_BYTES]) -> Self {
        let half = |from: PartyId, to: PartyId, ours: &[u8; KEY_BYTES], other: &[u8; KEY_BYTES]| {
            let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
            hasher.update(&[from.0, to.0]).update(ours).update(other);
            let mut bytes = Zeroizing::new([0; 32]);
            hasher.finalize_xof().fill(&mut *bytes);
            let block = |at: usize| Block::from_bytes(bytes[at..at + 16].try_into().expect("16 bytes"));
            Half { hash: Arc::new(GfKey::new(block(0))), pads: Aes128::new(block(16)), frames: 0 }
        };
        // The sender's bytes come first, so both ends hash the same.
        Self { send: half(me, peer, mine, theirs), recv: half(peer, me, theirs, mine) }
    }
}

impl std::fmt::Debug for PairKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PairKeys(..)")
    }
}

impl Half {
    /// The tags of length and body of the next frame. Call [`Half::next`] once per frame.
    fn digests(&self, body: &[u8]) -> [Block; 2] {
        let length = gf_digest(&self.hash, Block::ZERO, &[Block(body.len() as u128)]);
        [length, digest(&self.hash, length, body)]
    }

    /// The pads of the next frame. No frame gets those of another.
    fn next(&mut self) -> [Block; 2] {
        let mut pads = [Block::ZERO; 2];
        self.pads.ctr(2 * self.frames, &mut pads);
        self.frames += 1;
        pads
    }

    fn head(&mut self, body: &[u8]) -> [u8; HEAD_BYTES] {
        self.head_of(body.len(), self.digests(body))
    }

    /// The head of the next frame, from its digests.
    fn head_of(&mut self, length: usize, digests: [Block; 2]) -> [u8; HEAD_BYTES] {
        let pads = self.next();
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(length as u32).to_le_bytes());
        head[4..16].copy_from_slice(&(digests[0] ^ pads[0]).to_bytes()[..12]);
        head[16..].copy_from_slice(&(digests[1] ^ pads[1]).to_bytes());
        head
    }
}

/// The hash of a content that goes on with `bytes`, the last block filled up with zeros.
fn digest(key: &GfKey, before: Block, bytes: &[u8]) -> Block {
    let (whole, rest) = bytes.split_at(bytes.len() / Block::BYTES * Block::BYTES);
    let mut sum = before;
    if let Ok(blocks) = bytemuck::try_cast_slice(whole) {
        sum = gf_digest(key, sum, blocks);
    } else {
        let mut aligned = [Block::ZERO; 256];
        for piece in whole.chunks(size_of_val(&aligned)) {
            let aligned = &mut aligned[..piece.len() / Block::BYTES];
            Block::read_slice(piece, aligned);
            sum = gf_digest(key, sum, aligned);
        }
    }
    if rest.is_empty() {
        return sum;
    }
    let mut last = [0; Block::BYTES];
    last[..rest.len()].copy_from_slice(rest);
    gf_digest(key, sum, &[Block::from_bytes(last)])
}

/// What a head says: how long the body is, and its tag.
struct FrameHead {
    length: usize,
    tag: [u8; 16],
    pad: Block,
}

impl FrameHead {
    fn fits(&self, digest: Block) -> bool {
        bool::from((digest ^ self.pad).to_bytes().ct_eq(&self.tag))
    }
}

/// A channel whose bytes are authenticated; see the module's text.
pub struct SealedChannel<C: Channel> {
    inner: C,
    name: String,
    keys: PairKeys,
    queued: Vec<u8>,
    /// Bytes were given to the inner channel and not yet handed over.
    waiting: bool,
    /// The last frame that was longer than what was asked for.
    opened: Vec<u8>,
    read: usize,
    /// With what the channel failed: it stays so.
    failed: Option<ChannelError>,
    /// The inner channel where its bytes lie in rings of shared memory.
    rings: fn(&mut C) -> Option<&mut ShmChannel>,
    placed: PlacedFrames,
}

impl SealedChannel<ShmChannel> {
    /// As [`SealedChannel::new`]; long messages may be written and read in the rings.
    pub(crate) fn in_rings(inner: ShmChannel, keys: PairKeys, name: impl Into<String>) -> Self {
        let mut sealed = Self::new(inner, keys, name);
        sealed.rings = |inner| Some(inner);
        sealed
    }
}

impl<C: Channel> SealedChannel<C> {
    /// `inner` under `keys`; `name` stands in errors: "the shm channel to p1".
    pub fn new(inner: C, keys: PairKeys, name: impl Into<String>) -> Self {
        let (queued, opened) = (Vec::with_capacity(FRAME_BYTES), Vec::new());
        Self {
            inner,
            name: name.into(),
            keys,
            queued,
            waiting: false,
            opened,
            read: 0,
            failed: None,
            rings: |_| None,
            placed: PlacedFrames::default(),
        }
    }

    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ChannelError>,
    ) -> Result<T, ChannelError> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        work(self).inspect_err(|why| self.failed = Some(why.clone()))
    }

    fn frame(&mut self, body: &[u8]) -> Result<(), ChannelError> {
        let head = self.keys.send.head(body);
        self.waiting = true;
        self.inner.send(&head)?;
        self.inner.send(body)
    }

    fn seal_queued(&mut self) -> Result<(), ChannelError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        let mut queued = std::mem::take(&mut self.queued);
        let done = self.frame(&queued);
        queued.clear();
        self.queued = queued;
        done
    }

    fn hand_over(&mut self) -> Result<(), ChannelError> {
        self.seal_queued()?;
        if std::mem::take(&mut self.waiting) { self.inner.recv(&mut []) } else { Ok(()) }
    }

    fn forged(&self, what: &str) -> ChannelError {
        let (name, frame) = (&self.name, self.keys.recv.frames);
        ChannelError::Io(format!(
            "{what} of frame {frame} on {name} is wrong: something between the two parties alters the bytes; \
             run without trusted_network, over TLS"
        ))
    }

    /// The head of the next frame, once its length is known to be the sender's.
    fn open_head(&mut self, head: &[u8; HEAD_BYTES]) -> Result<FrameHead, ChannelError> {
        let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
        let pads = self.keys.recv.next();
        let expected = gf_digest(&self.keys.recv.hash, Block::ZERO, &[Block(u128::from(length))]) ^ pads[0];
        let fits = (1..=FRAME_BYTES).contains(&(length as usize));
        if !fits || !bool::from(expected.to_bytes()[..12].ct_eq(&head[4..16])) {
            return Err(self.forged("the length"));
        }
        let tag = head[16..].try_into().expect("16 bytes");
        Ok(FrameHead { length: length as usize, tag, pad: pads[1] })
    }

    /// The next frame, or what fits: whole frames go into `into`, a longer one is kept. Gives the bytes
    /// filled.
    fn open_next(&mut self, into: &mut [u8]) -> Result<usize, ChannelError> {
        let mut head = [0; HEAD_BYTES];
        self.inner.recv(&mut head)?;
        let head = match self.placed.take_seen()? {
            Some(seen) => seen,
            None => self.open_head(&head)?,
        };
        let length = head.length;
        let mut kept = std::mem::take(&mut self.opened);
        let straight = into.len() >= length;
        let body = if straight {
            &mut into[..length]
        } else {
            kept.resize(length, 0);
            &mut kept[..]
        };
        let arrived = self.inner.recv(body).and_then(|()| {
            let same = head.fits(self.keys.recv.digests(body)[1]);
            if same { Ok(()) } else { Err(self.forged("the tag")) }
        });
        if let Err(why) = arrived {
            body.fill(0);
            return Err(why);
        }
        (self.opened, self.read) = (kept, 0);
        if straight {
            self.opened.clear();
            return Ok(length);
        }
        Ok(self.take_opened(into))
    }

    fn take_opened(&mut self, into: &mut [u8]) -> usize {
        let rest = &self.opened[self.read..];
        let take = rest.len().min(into.len());
        into[..take].copy_from_slice(&rest[..take]);
        self.read += take;
        take
    }
}

impl<C: Channel> Channel for SealedChannel<C> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.guarded(|this| {
            let mut bytes = bytes;
            if bytes.len() >= STRAIGHT_BYTES {
                this.seal_queued()?;
            }
            while bytes.len() >= STRAIGHT_BYTES {
                let (body, rest) = bytes.split_at(bytes.len().min(FRAME_BYTES));
                this.frame(body)?;
                bytes = rest;
            }
            if this.queued.len() + bytes.len() > FRAME_BYTES {
                this.seal_queued()?;
            }
            this.queued.extend_from_slice(bytes);
            Ok(())
        })
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.guarded(|this| {
            this.hand_over()?;
            let mut filled = this.take_opened(into);
            while filled < into.len() {
                filled += this.open_next(&mut into[filled..])?;
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.guarded(|this| {
            this.seal_queued()?;
            this.waiting = false;
            this.inner.finish()
        })
    }

    /// Half of the inner window: frames of 32 bytes and more fit with their heads.
    fn window(&self) -> usize {
        self.inner.window() / 2
    }

    fn private(&self) -> bool {
        self.inner.private()
    }

    fn authenticated(&self) -> bool {
        true
    }

    fn deadline(&self) -> Duration {
        self.inner.deadline()
    }

    fn set_deadline(&mut self, deadline: Duration) {
        self.inner.set_deadline(deadline);
    }

    fn local_ip(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        if self.read < self.opened.len() { Ok(()) } else { self.inner.watch() }
    }

    fn under(&mut self) -> Option<&mut dyn Channel> {
        self.inner.under()
    }

    fn at_step(&mut self, step: &str) {
        self.inner.at_step(step);
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        self.inner.halts_with(halt);
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        let rings = (self.rings)(&mut self.inner)?;
        in_place::fits(rings).then_some(self as &mut dyn InPlace)
    }
}

impl<C: Channel> Drop for SealedChannel<C> {
    fn drop(&mut self) {
        self.inner.set_deadline(self.inner.deadline().min(LINGER));
        if self.failed.is_none() {
            // What is queued still reaches a peer that reads.
            let _ = self.hand_over();
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing_tests;

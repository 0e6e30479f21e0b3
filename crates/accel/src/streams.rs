//! The keys of a session and the streams that come of them.

use crate::Seat;
use kernels::{Aes128, Block, GfKey, Keystream};

/// What a stream's elements are for. Streams of different uses never share an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Random shares and inputs: known to the three holders of the key.
    Share,
    /// rho of a joint input, under the key of the receiver's index.
    Mask,
    /// What hides a message from the fourth party on a channel that it could read, under the key of its
    /// index.
    Wire,
    /// Pads of tags, under the key of the sender's index.
    Pad,
}

/// Names a stream under one key: no two things of a session have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamName {
    /// Round of the session; below 2^48.
    pub round: u64,
    /// What for.
    pub r#use: Use,
    /// Who sends and who vouches, where it belongs to a channel; else any two seats that tell uses apart.
    pub channel: [Seat; 2],
}

impl StreamName {
    /// The upper half of the counter block: round, use, sender and voucher in 48, 8, 4 and 4 bits from the
    /// top.
    ///
    /// # Panics
    /// When the round is 2^48 or more.
    #[must_use]
    pub fn prefix(self) -> u64 {
        assert!(self.round >> 48 == 0, "a session has 2^48 rounds");
        let [sender, voucher] = self.channel.map(|seat| seat.index() as u64);
        self.round << 16 | (self.r#use as u64) << 8 | sender << 4 | voucher
    }
}

/// The keys of one seat for one session: K_j for the three j that it holds, and what is derived from them.
/// Wiped on drop.
pub struct SeatKeys {
    seat: Seat,
    raw: [Block; 3],
    tag_elements: [Block; 3],
    streams: [Aes128; 3],
    tags: [GfKey; 3],
}

impl SeatKeys {
    /// From K_{seat+1}, K_{seat+2}, K_{seat+3} and the elements at which tags of channels of those senders
    /// are evaluated.
    #[must_use]
    pub fn new(seat: Seat, raw: [Block; 3], tag_elements: [Block; 3]) -> Self {
        Self { seat, raw, tag_elements, streams: raw.map(Aes128::new), tags: tag_elements.map(GfKey::new) }
    }

    /// Whose keys these are.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// Fills `out` with elements `first ..` of a stream under the key of part `part`.
    pub fn fill(&self, part: usize, stream: StreamName, first: u64, out: &mut [Block]) {
        self.keystream(part, stream, first).fill(out);
    }

    /// Elements `first ..` of a stream under the key of part `part`, for kernels that use them up where they
    /// are made.
    #[must_use]
    pub fn keystream(&self, part: usize, stream: StreamName, first: u64) -> Keystream<'_> {
        Keystream { key: &self.streams[part], prefix: stream.prefix(), first }
    }

    /// The key of the tags of what the seat of part `part` sends.
    #[must_use]
    pub fn tag(&self, part: usize) -> &GfKey {
        &self.tags[part]
    }

    /// The AES-128 keys by part, for a device that expands them itself.
    #[must_use]
    pub fn raw(&self) -> &[Block; 3] {
        &self.raw
    }

    /// The elements by part at which tags are evaluated, for a device that hashes itself.
    #[must_use]
    pub fn tag_elements(&self) -> &[Block; 3] {
        &self.tag_elements
    }
}

impl Drop for SeatKeys {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.raw.zeroize();
        self.tag_elements.zeroize();
    }
}

impl std::fmt::Debug for SeatKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys(seat {})", self.seat.index())
    }
}

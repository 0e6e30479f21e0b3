//! Four parties compute on shares over Z_2^128, Z_2^64 and packed Z_2: "Fantastic Four" (Dalskov, Escudero,
//! Keller, USENIX Security 2021), on the accelerators of [`accel`] as COPA does (Patel et al.).
//!
//! **Functionality.** x = x_0 + x_1 + x_2 + x_3; the party at seat p holds x_j for all j != p. Linear
//! operations and random shares are local; products, dot products, joint inputs and openings take one round
//! each.
//!
//! **Security.** One of the four is corrupted, statically; computational parameter 128 (AES-128, BLAKE3); a
//! message of n blocks that is not what was vouched for passes with a chance of (n + 1) / 2^128. Semi-honest,
//! or malicious with abort: everything that a party sends is a function of what another party knows too, and
//! that one *vouches* for it with a tag. **A receiver checks every tag of a round before it sends anything
//! that depends on the round**: attacks on Fantastic Four, Trident, SWIFT and Quad with checks put off were
//! published in 2026. Selective abort; no public blame: a wrong tag means that the sender or the voucher
//! deviates, and the error names both.
//!
//! **Who learns what.** A viewer its outputs; everybody the operations and the lengths. A seat that reads the
//! channel between two others learns nothing either: messages are hidden from it ([`Settings::masked`]).
//!
//! **Paper and deviations.** Joint inputs and their tags as in Fantastic Four, section 3; six joint inputs
//! per product, all sent to the seat before the sender's own ([`accel`] has the table), where COPA and
//! MP-SPDZ assign them otherwise. Tags are keyed polynomials over GF(2^128) with the length and a pad per
//! round, or keyed BLAKE3, where the paper hashes without a key. Keys by commit-and-open with a comparison at
//! the end ([`SeatParty::new`]).
//!
//! **Cost.** A product: 6 elements in all (96 B at 128 bits), 1.5 per party, one round; a dot product of any
//! length the same. Malicious: 8 tags of 16 B per round more, whatever its length. An opening: 4 elements; a
//! joint input: one. [`RoundQuote`] has it exactly, message by message.

mod bits;
pub mod conformance;
mod engine;
mod price;
mod seats;
mod shares;
mod vectors;

pub use crate::engine::{Ring4, RingRows, RowPhase, RowTimes};
pub use crate::seats::device_product::DeviceShares;
pub use crate::seats::joint::Joint;
pub use crate::seats::member::Member;
pub use crate::seats::open::{elements, pack};
pub use crate::seats::party::{SeatParty, Security, Settings, TagHash};
pub use crate::vectors::array::ShareArray;
pub use crate::vectors::compare::Number;
pub use crate::vectors::convert::{DIRECT_BITS, lowest};
pub use crate::vectors::divide::Division;
pub use crate::vectors::planes::Planes;
pub use crate::vectors::truncate::STATISTICAL_BITS;
pub use accel::{Seat, VectorRing};
pub use price::RoundQuote;
pub use shares::{ShareView, SharedVector};

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// Bytes of a hash by which seats compare an input.
pub const COMPARISON_BYTES: usize = 32;
/// Blocks that go through a device at once, and leave in one message: they and their factors fit a
/// second-level cache.
pub const CHUNK_BLOCKS: usize = accel::PIECE_BLOCKS;
/// Chunks that a seat is ahead of the one that it hears from: 1 MiB of A and C in the window.
pub const CHUNKS_AHEAD: usize = 8;
/// Bytes of a message in pieces, so that those who send to each other do not wait for windows.
pub const PIECE_BYTES: usize = 1 << 20;
/// Elements of one vector.
pub const ELEMENTS: usize = 1 << 36;

const _: () = assert!(
    (CHUNKS_AHEAD + 1) * CHUNK_BLOCKS * 32 <= base::limits::WINDOW_BYTES / 4,
    "a seat that is ahead finds room in the window"
);

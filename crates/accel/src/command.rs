//! What a device can be told to do. Lengths are in blocks; vectors are planar, one slice per part.

use crate::{BlockHalf, Seat, VectorRing};
use base::Error;
use kernels::Block;

/// One command: an operation, its sources and destinations, of a length that its slices state. Who the peers
/// are follows from the seat.
pub enum DeviceCommand<'a> {
    /// `z = x + y`: stage 1 alone.
    Add(LinearStage<'a>),
    /// `z = x - y`: stage 1 alone.
    Sub(LinearStage<'a>),
    /// Stage 1 of a product or dot product.
    Multiply(MultiplyStage<'a>),
    /// Stage 2 of it.
    Fold(FoldStage<'a>),
}

/// A sum or difference of shares.
pub struct LinearStage<'a> {
    /// Of which elements.
    pub ring: VectorRing,
    /// The first operand, by part.
    pub x: [&'a [Block]; 3],
    /// The second operand, by part.
    pub y: [&'a [Block]; 3],
    /// The result, by part.
    pub z: [&'a mut [Block]; 3],
}

/// Stage 1 of `z = sum over terms of x y`, for blocks that lie in one half of their vector.
pub struct MultiplyStage<'a> {
    /// Of which elements.
    pub ring: VectorRing,
    /// Round of the session.
    pub round: u64,
    /// Index within the round of the first block: where its streams begin.
    pub first: u64,
    /// Which half the blocks are in.
    pub half: BlockHalf,
    /// Terms of every dot product; 1 for products.
    pub terms: usize,
    /// Factors by part: `terms` runs of as many blocks as the result has.
    pub x: [&'a [Block]; 3],
    /// The other factors.
    pub y: [&'a [Block]; 3],
    /// Own part of the result: all of it but what arrives.
    pub z: [&'a mut [Block]; 3],
    /// What to send of A.
    pub a: &'a mut [Block],
    /// What to send of C; empty where this seat vouches for it.
    pub c: &'a mut [Block],
    /// Whether messages are hidden from the fourth party.
    pub masked: bool,
    /// What is done about the messages that this seat vouches for.
    pub vouch: Vouch<'a>,
}

/// What becomes of the messages that this seat computes but does not send: A of the seat before it, and C of
/// the seat two further on where it does not send its own.
pub enum Vouch<'a> {
    /// Nothing: semi-honest.
    Nothing,
    /// They are digested ([`kernels::gf_digest`]) after what was digested before: A, and C.
    Digest(&'a mut [Block; 2]),
    /// They are handed out, for a hash that the device does not know.
    Expose {
        /// A, as long as the result.
        a: &'a mut [Block],
        /// C, as long where this seat vouches for it, else empty.
        c: &'a mut [Block],
    },
}

/// Stage 2: `z` gets what arrived.
pub struct FoldStage<'a> {
    /// Of which elements.
    pub ring: VectorRing,
    /// Round of the session.
    pub round: u64,
    /// Index within the round of the first block.
    pub first: u64,
    /// Which half the blocks are in.
    pub half: BlockHalf,
    /// Part 1 of the result, which C goes to, and part 2, which A goes to.
    pub z: [&'a mut [Block]; 2],
    /// A of the seat after this one.
    pub a: &'a [Block],
    /// C of the seat after this one; empty where this seat receives none.
    pub c: &'a [Block],
    /// Whether messages are hidden from the fourth party.
    pub masked: bool,
    /// Digests of A and C to go on with; none where nothing is checked, or by the host.
    pub digests: Option<&'a mut [Block; 2]>,
}

/// Checks the lengths of a command's slices and its place in the session, so that a device need not.
///
/// # Errors
/// What does not fit; a round of 2^48 or more, and blocks beyond 2^64 of a round.
pub fn check(command: &DeviceCommand<'_>, seat: Seat) -> Result<(), Error> {
    let fits = match command {
        DeviceCommand::Add(l) | DeviceCommand::Sub(l) => {
            let n = l.z[0].len();
            l.x.iter().chain(&l.y).all(|part| part.len() == n) && l.z.iter().all(|part| part.len() == n)
        }
        DeviceCommand::Multiply(m) => {
            let n = m.z[0].len();
            let (sent, vouched) = if m.half.sends(seat) { (n, 0) } else { (0, n) };
            let exposed = match &m.vouch {
                Vouch::Expose { a, c } => a.len() == n && c.len() == vouched,
                Vouch::Nothing | Vouch::Digest(_) => true,
            };
            m.x.iter().chain(&m.y).all(|part| Some(part.len()) == n.checked_mul(m.terms))
                && m.z.iter().all(|part| part.len() == n)
                && (m.a.len(), m.c.len()) == (n, sent)
                && exposed
        }
        DeviceCommand::Fold(f) => {
            let n = f.a.len();
            let received = if f.half.receives(seat) { n } else { 0 };
            f.z.iter().all(|part| part.len() == n) && f.c.len() == received
        }
    };
    if !fits {
        return Err(Error::misuse("the slices of a command do not fit each other"));
    }
    let (round, first, blocks) = match command {
        DeviceCommand::Add(_) | DeviceCommand::Sub(_) => return Ok(()),
        DeviceCommand::Multiply(m) => (m.round, m.first, m.a.len()),
        DeviceCommand::Fold(f) => (f.round, f.first, f.a.len()),
    };
    if round >> 48 != 0 || first.checked_add(blocks as u64).is_none() {
        return Err(Error::misuse("a session has 2^48 rounds and a round 2^64 blocks"));
    }
    Ok(())
}

//! Base OT: 128 random OTs with chosen choice bits, from public-key operations.
//!
//! Functionality: the sender gets pairs (m0, m1) of random blocks, the receiver chooses bits c and gets m_c.
//!
//! Security: semi-honest, like the extension above it: Naor and Pinkas, "Efficient oblivious transfer
//! protocols" (SODA 2001), the base OT of 003 (its figure 1) for two messages, over ristretto255. The
//! receiver's point is uniform whatever it chooses; computing both keys is computational Diffie-Hellman in
//! the random-oracle model. A malicious receiver that makes its point badly, or a malicious sender, is not
//! covered.
//!
//! Who learns what: nobody anything beyond the functionality.
//!
//! With C a hash of the context to the group, whose discrete logarithm nobody knows, for index i and choice
//! c:
//!   receiver: P_c = x G, P_{1-c} = C - x G; sends P_0
//!   sender:   one y for all i; sends Y = y G; m_0 = KDF(y P_0), m_1 = KDF(y C - y P_0)
//!   receiver: m_c = KDF(x Y)
//!
//! Deviations: C is hashed, not sent, so the receiver speaks first; keys are bound to the context (both
//! parties, their roles), the index and the exchange. Points on the wire and in keys are twice those above (x
//! and C are halved first), because doubled points are compressed in batches with one inversion.
//!
//! Cost: 32 B per OT from the receiver, 32 B from the sender, one turn. Per OT one multiplication of a point
//! at the sender and two of fixed points at the receiver: half of what endemic OT costs (decision 018).

use crate::BASE_OTS;
use base::{PartyId, Rng, Roster};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use kernels::Block;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a point on the wire.
const POINT: usize = 32;
/// Bytes of the receiver's message.
pub const CHOICE_BYTES: usize = BASE_OTS * POINT;
/// Bytes of the sender's message.
pub const REPLY_BYTES: usize = POINT;

/// What the two sides are, hashed into every key: the same key never serves two pairs of parties or two
/// directions.
pub struct PairContext([u8; 32]);

impl PairContext {
    /// The context of base OTs from `sender` to `receiver`.
    #[must_use]
    pub fn new(roster: &Roster, sender: PartyId, receiver: PartyId) -> Self {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026 base OT context");
        for party in [sender, receiver] {
            let name = roster.name(party);
            hash.update(&[party.0]).update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        }
        Self(*hash.finalize().as_bytes())
    }

    /// Half of C.
    fn half_point(&self) -> RistrettoPoint {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026 base OT common point");
        let mut wide = [0; 64];
        hash.update(&self.0).finalize_xof().fill(&mut wide);
        RistrettoPoint::from_uniform_bytes(&wide)
    }

    fn key(&self, index: usize, side: Choice, exchange: [&[u8]; 2], shared: &CompressedRistretto) -> Block {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026 base OT key");
        hash.update(&self.0).update(&(index as u64).to_le_bytes()).update(&[side.unwrap_u8()]);
        exchange.iter().for_each(|part| {
            hash.update(part);
        });
        hash.update(shared.as_bytes());
        block_of(&hash)
    }

    /// Public random bits of this exchange: the start value of the session's hash.
    fn start(&self, choice: &[u8], reply: &[u8]) -> Block {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026 base OT transcript");
        block_of(hash.update(&self.0).update(choice).update(reply))
    }
}

fn block_of(hash: &blake3::Hasher) -> Block {
    let mut bytes = [0; 16];
    hash.finalize_xof().fill(&mut bytes);
    Block::from_bytes(bytes)
}

/// The base sender's result: both messages of every OT. It seeds one extension in which this party
/// *receives*.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct BasePairs {
    pub(crate) pairs: Vec<[Block; 2]>,
    #[zeroize(skip)]
    pub(crate) start: Block,
}

/// The base receiver's result: choices and the message of each. It seeds one extension in which this party
/// *sends*; the choices are its Delta.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct BaseChosen {
    pub(crate) choices: Block,
    pub(crate) keys: Vec<Block>,
    #[zeroize(skip)]
    pub(crate) start: Block,
}

/// The base receiver between its message and the reply.
pub struct BaseReceiver {
    context: PairContext,
    choices: Block,
    secrets: Vec<Scalar>,
    message: Vec<u8>,
}

impl Drop for BaseReceiver {
    fn drop(&mut self) {
        self.choices.zeroize();
        self.secrets.zeroize();
    }
}

fn choice_bit(choices: Block, index: usize) -> Choice {
    Choice::from((choices.0 >> index) as u8 & 1)
}

impl BaseReceiver {
    /// First step: commits to the choices (bit i of `choices` for OT i). Send the message to the sender.
    pub fn choose(context: PairContext, choices: Block, rng: &mut Rng) -> (Self, Vec<u8>) {
        let half = context.half_point();
        let mut secrets = Vec::with_capacity(BASE_OTS);
        let mut points = Vec::with_capacity(BASE_OTS);
        for index in 0..BASE_OTS {
            let x = Scalar::random(rng);
            let own = RistrettoPoint::mul_base(&x);
            points.push(RistrettoPoint::conditional_select(&own, &(half - own), choice_bit(choices, index)));
            secrets.push(x + x);
        }
        let doubled = RistrettoPoint::double_and_compress_batch(&points);
        let message: Vec<u8> = doubled.iter().flat_map(|point| *point.as_bytes()).collect();
        let state = Self { context, choices, secrets, message: message.clone() };
        (state, message)
    }

    /// Second step: the chosen messages from the sender's reply.
    ///
    /// # Errors
    /// What is wrong with the reply: its length, or an element that is no point or the neutral one.
    pub fn finish(self, reply: &[u8]) -> Result<BaseChosen, &'static str> {
        if reply.len() != REPLY_BYTES {
            return Err("base OT reply of a wrong length");
        }
        let table = RistrettoBasepointTable::create(&decode(reply)?);
        let shared: Vec<RistrettoPoint> = self.secrets.iter().map(|x| &table * x).collect();
        let shared = RistrettoPoint::double_and_compress_batch(&shared);
        let key = |(index, shared): (usize, &CompressedRistretto)| {
            let sent = &self.message[index * POINT..][..POINT];
            self.context.key(index, choice_bit(self.choices, index), [sent, reply], shared)
        };
        let keys = shared.iter().enumerate().map(key).collect();
        let start = self.context.start(&self.message, reply);
        Ok(BaseChosen { choices: self.choices, keys, start })
    }
}

/// The base sender's only step: both messages of every OT, and the reply for the receiver.
///
/// # Errors
/// What is wrong with the receiver's message: its length, or an element that is no point or the neutral one.
pub fn send(
    context: &PairContext,
    message: &[u8],
    rng: &mut Rng,
) -> Result<(BasePairs, Vec<u8>), &'static str> {
    if message.len() != CHOICE_BYTES {
        return Err("base OT choice message of a wrong length");
    }
    let mut y = Scalar::random(rng);
    let reply = RistrettoPoint::mul_base(&y).compress();
    let half = context.half_point();
    let common = y * (half + half);
    let mut shared = Vec::with_capacity(2 * BASE_OTS);
    for bytes in message.chunks_exact(POINT) {
        let zero = y * decode(bytes)?;
        shared.extend([zero, common - zero]);
    }
    y.zeroize();
    let shared = RistrettoPoint::double_and_compress_batch(&shared);
    let key = |index: usize, side: u8| {
        let sent = &message[index * POINT..][..POINT];
        let shared = &shared[2 * index + usize::from(side)];
        context.key(index, Choice::from(side), [sent, reply.as_bytes()], shared)
    };
    let pairs = (0..BASE_OTS).map(|index| [key(index, 0), key(index, 1)]).collect();
    let start = context.start(message, reply.as_bytes());
    Ok((BasePairs { pairs, start }, reply.as_bytes().to_vec()))
}

fn decode(bytes: &[u8]) -> Result<RistrettoPoint, &'static str> {
    let point = CompressedRistretto::from_slice(bytes).ok().and_then(|p| p.decompress());
    let point = point.ok_or("base OT element that is no point of ristretto255")?;
    if point.ct_eq(&RistrettoPoint::identity()).into() {
        return Err("base OT element that is the neutral point");
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn context() -> PairContext {
        PairContext::new(&Roster::new(["a", "b"]), PartyId(0), PartyId(1))
    }

    fn rng(label: &str) -> Rng {
        Seed::from_bytes([5; 32]).fork(label).into_rng()
    }

    const CHOICES: Block = Block(0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978);

    #[test]
    fn the_receiver_gets_what_it_chose() {
        let (receiver, message) = BaseReceiver::choose(context(), CHOICES, &mut rng("r"));
        let (sent, reply) = send(&context(), &message, &mut rng("s")).unwrap();
        let got = receiver.finish(&reply).unwrap();
        assert!(got.start == sent.start);
        for i in 0..BASE_OTS {
            let c = (CHOICES.0 >> i & 1) as usize;
            assert!(got.keys[i] == sent.pairs[i][c] && got.keys[i] != sent.pairs[i][1 - c], "OT {i}");
        }
    }

    #[test]
    fn another_context_gives_other_keys() {
        let other = PairContext::new(&Roster::new(["a", "b"]), PartyId(1), PartyId(0));
        let (receiver, message) = BaseReceiver::choose(other, CHOICES, &mut rng("r"));
        let (sent, reply) = send(&context(), &message, &mut rng("s")).unwrap();
        let got = receiver.finish(&reply).unwrap();
        assert!((0..BASE_OTS).all(|i| !sent.pairs[i].contains(&got.keys[i])));
    }

    #[test]
    fn bad_elements_are_named() {
        let (_, message) = BaseReceiver::choose(context(), CHOICES, &mut rng("r"));
        let error = |message: &[u8]| send(&context(), message, &mut rng("s")).map(|_| ()).unwrap_err();
        let mut no_point = message.clone();
        no_point[32..64].fill(0xff);
        assert_eq!(error(&no_point), "base OT element that is no point of ristretto255");
        let mut neutral = message.clone();
        neutral[64..96].fill(0);
        assert_eq!(error(&neutral), "base OT element that is the neutral point");
        assert_eq!(error(&message[1..]), "base OT choice message of a wrong length");

        let finish = |reply: &[u8]| {
            let receiver = BaseReceiver::choose(context(), CHOICES, &mut rng("r")).0;
            receiver.finish(reply).map(|_| ()).unwrap_err()
        };
        assert_eq!(finish(&[0; REPLY_BYTES]), "base OT element that is the neutral point");
        assert_eq!(finish(&[0xff; REPLY_BYTES]), "base OT element that is no point of ristretto255");
        assert_eq!(finish(&[]), "base OT reply of a wrong length");
    }

    #[test]
    fn a_flipped_bit_never_panics() {
        let (_, message) = BaseReceiver::choose(context(), CHOICES, &mut rng("r"));
        for position in (0..message.len()).step_by(97) {
            let mut flipped = message.clone();
            flipped[position] ^= 1 << (position % 8);
            let _ = send(&context(), &flipped, &mut rng("s"));
        }
    }
}

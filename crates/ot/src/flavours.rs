//! Random and chosen OT on top of correlated OT, behind one object-safe interface.
//!
//! Correlated OT comes with chosen or with random choice bits. The two differ on the wire, so both sides
//! make the same call. With random bits the call has two halves: `post` sends what this side says first and
//! waits for nothing, `take` receives and gives out. A party with several peers, or with both directions,
//! posts to all before it takes from the first; [`crate::correlated_all`] does that.
//!
//! Functionality: random OT gives the sender two random messages and the receiver the one it chose; chosen
//! OT transfers one of the sender's two messages. Security: semi-honest, from correlated OT by hashing with
//! the multi-instance-secure hash of `kernels`: m0 = H(q), m1 = H(q + Delta). Up to [`LANES`] OTs share a
//! tweak; no tweak is used twice in a session. Cost: random OT none; chosen OT `2 * words * 16` B per OT
//! from the sender and one turn.

use base::{Error, PartyId};
use kernels::{Block, TweakedHash, WORDS_MAX, xor_into};
use net::Session;

/// OTs that share one tweak.
const LANES: usize = 1 << 10;
/// Tweak field of this module, so that no other use of the session's hash meets it.
const WORKER: u16 = 0xfffe;

/// The hash of a session's OTs and the counter of its tweaks. Both sides hash in the same order.
#[derive(Debug)]
pub struct PadHash {
    hash: TweakedHash,
    batch: u64,
}

impl PadHash {
    /// Pads of a session from its hash; tweaks count from 0.
    #[must_use]
    pub fn new(hash: TweakedHash) -> Self {
        Self { hash, batch: 0 }
    }

    /// The hash's public start value.
    #[must_use]
    pub fn start(&self) -> Block {
        self.hash.start()
    }

    /// `words` blocks per OT for each of `sides` (the same OTs, shifted by Delta or not), lane by lane.
    pub(crate) fn expand<const N: usize>(&mut self, sides: [&[Block]; N], words: usize) -> [Vec<Block>; N] {
        let n = sides.first().map_or(0, |s| s.len());
        let mut out = [(); N].map(|()| vec![Block::ZERO; n * words]);
        for at in (0..n).step_by(LANES) {
            let end = n.min(at + LANES);
            let tweak = Block::tweak(WORKER, self.batch, 0, 0);
            self.batch += 1;
            for (side, out) in sides.iter().zip(&mut out) {
                self.hash.hash_words(tweak, &side[at..end], words, &mut out[at * words..end * words]);
            }
        }
        out
    }

    pub(crate) fn both(&mut self, q: &[Block], delta: Block, words: usize) -> [Vec<Block>; 2] {
        let shifted: Vec<Block> = q.iter().map(|&q| q ^ delta).collect();
        self.expand([q, &shifted], words)
    }
}

/// OTs per message of a long extension: small enough for the cache, large enough for the channel.
pub(crate) const BATCH: usize = 1 << 14;

const _: () = assert!(BATCH.is_multiple_of(128), "only the last batch of a call is padded");

/// `n` cut into batches.
pub(crate) fn batches(n: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by(BATCH).map(move |at| BATCH.min(n - at))
}

pub(crate) fn check_call(n: usize) -> Result<(), Error> {
    if n > crate::OTS_PER_CALL {
        return Err(Error::limit("OTs per call", n as u64, crate::OTS_PER_CALL as u64));
    }
    Ok(())
}

/// There is a choice bit for every OT.
pub(crate) fn check_choices(choices: &[u64], n: usize) -> Result<(), Error> {
    if choices.len() * 64 < n {
        return Err(Error::misuse(format!("{n} OTs with {} choice bits", choices.len() * 64)));
    }
    Ok(())
}

/// A `take` gives out what the oldest `post` asked for.
pub(crate) fn match_post(posted: Option<usize>, taken: usize) -> Result<(), Error> {
    if posted == Some(taken) {
        return Ok(());
    }
    Err(Error::misuse(format!("{taken} OTs taken where {} were posted", posted.unwrap_or(0))))
}

/// Both sides use the OTs of a session in one order, so nothing goes between a post and its take.
pub(crate) fn none_posted(posted: usize) -> Result<(), Error> {
    if posted == 0 {
        return Ok(());
    }
    Err(Error::misuse("OTs with chosen bits while others are posted; take those first"))
}

fn check_words(words: usize) -> Result<(), Error> {
    if (1..=WORDS_MAX).contains(&words) {
        return Ok(());
    }
    Err(Error::limit("blocks per OT message", words as u64, WORDS_MAX as u64))
}

/// Makes messages of the receiver's pads: the chosen one of both masked messages of each OT, `words` blocks
/// each, without a branch on the choice.
pub(crate) fn open(pads: &mut [Block], masked: &[Vec<Block>; 2], choices: &[u64], words: usize) {
    for (i, pad) in pads.iter_mut().enumerate() {
        let (zero, one) = (masked[0][i], masked[1][i]);
        *pad ^= zero ^ (zero ^ one).when(kernels::bit(choices, i / words));
    }
}

/// The sending side of extended OTs with one peer. Every call makes fresh OTs; none is ever given out twice.
pub trait OtSender: Send {
    /// The peer, the receiver of these OTs.
    fn peer(&self) -> PartyId;

    /// The correlation of all OTs of this session.
    fn delta(&self) -> Block;

    /// Correlated OT: appends `n` random q_i to `out`; the receiver gets q_i + b_i Delta.
    ///
    /// # Errors
    /// Those of the channel, and `n` over [`crate::OTS_PER_CALL`].
    fn correlated(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error>;

    /// First half of `n` correlated OTs whose choices are random: sends what this side says first and waits
    /// for nothing but window space.
    ///
    /// # Errors
    /// As [`OtSender::correlated`].
    fn post(&mut self, session: &mut Session, n: usize) -> Result<(), Error>;

    /// Second half: appends `n` random q_i to `out`; the receiver gets random bits b_i and q_i + b_i Delta.
    /// Calls match those of [`OtSender::post`] in order and `n`; several may be outstanding.
    ///
    /// # Errors
    /// As [`OtSender::correlated`], and when nothing of this size was posted.
    fn take(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error>;

    /// Correlated OT whose choices are random: [`OtSender::post`] and [`OtSender::take`] in batches.
    ///
    /// # Errors
    /// As [`OtSender::take`].
    fn correlated_random(
        &mut self,
        session: &mut Session,
        n: usize,
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        check_call(n)?;
        for batch in batches(n) {
            self.post(session, batch)?;
            self.take(session, batch, out)?;
        }
        Ok(())
    }

    /// The hash state. For implementations of this trait.
    fn pads(&mut self) -> &mut PadHash;

    /// Random OT: `n` pairs of random messages of `words` blocks, lane by lane (`[0][i * words + w]`).
    ///
    /// # Errors
    /// As [`OtSender::correlated`], and `words` not in `1..=4`.
    fn random(&mut self, session: &mut Session, n: usize, words: usize) -> Result<[Vec<Block>; 2], Error> {
        check_words(words)?;
        let mut q = Vec::with_capacity(n);
        self.correlated(session, n, &mut q)?;
        let delta = self.delta();
        Ok(self.pads().both(&q, delta, words))
    }

    /// Chosen OT: transfers message i of `zero` or of `one`, `words` blocks each, lane by lane.
    ///
    /// # Errors
    /// As [`OtSender::random`], and when the lengths do not fit.
    fn chosen(
        &mut self,
        session: &mut Session,
        words: usize,
        zero: &[Block],
        one: &[Block],
    ) -> Result<(), Error> {
        check_words(words)?;
        if zero.len() != one.len() || !zero.len().is_multiple_of(words) {
            return Err(Error::misuse(format!("chosen OT of {} and {} blocks", zero.len(), one.len())));
        }
        let pads = self.random(session, zero.len() / words, words)?;
        let mut link = session.link(self.peer());
        for (mut pad, messages) in pads.into_iter().zip([zero, one]) {
            xor_into(&mut pad, messages);
            link.send(Block::bytes_of(&pad))?;
        }
        Ok(())
    }
}

/// The receiving side of extended OTs with one peer. Choice bits are packed: bit i is OT i.
pub trait OtReceiver: Send {
    /// The peer, the sender of these OTs.
    fn peer(&self) -> PartyId;

    /// Correlated OT: appends `n` blocks q_i + b_i Delta to `out`.
    ///
    /// # Errors
    /// Those of the channel, fewer bits than `n`, and `n` over [`crate::OTS_PER_CALL`].
    fn correlated(
        &mut self,
        session: &mut Session,
        choices: &[u64],
        n: usize,
        out: &mut Vec<Block>,
    ) -> Result<(), Error>;

    /// First half of `n` correlated OTs whose choices are random, as [`OtSender::post`].
    ///
    /// # Errors
    /// As [`OtSender::correlated`].
    fn post(&mut self, session: &mut Session, n: usize) -> Result<(), Error>;

    /// Second half: appends `n` blocks q_i + b_i Delta to `out` and fills `choices` with the random b_i,
    /// `ceil(n / 64)` words, bits from `n` on clear. Calls match those of [`OtReceiver::post`] in order and
    /// `n`; several may be outstanding.
    ///
    /// # Errors
    /// As [`OtReceiver::post`], and when nothing of this size was posted.
    fn take(
        &mut self,
        session: &mut Session,
        n: usize,
        choices: &mut Vec<u64>,
        out: &mut Vec<Block>,
    ) -> Result<(), Error>;

    /// Correlated OT whose choices are random: [`OtReceiver::post`] and [`OtReceiver::take`] in batches.
    /// `choices` is filled with `ceil(n / 64)` words, bits from `n` on clear; `out` grows by `n`.
    ///
    /// # Errors
    /// As [`OtReceiver::take`].
    fn correlated_random(
        &mut self,
        session: &mut Session,
        n: usize,
        choices: &mut Vec<u64>,
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        check_call(n)?;
        choices.clear();
        let mut drawn = Vec::new();
        for batch in batches(n) {
            self.post(session, batch)?;
            self.take(session, batch, &mut drawn, out)?;
            choices.extend_from_slice(&drawn);
        }
        Ok(())
    }

    /// The hash state. For implementations of this trait.
    fn pads(&mut self) -> &mut PadHash;

    /// Random OT with chosen bits: the chosen message of each of `n` pairs, `words` blocks, lane by lane.
    ///
    /// # Errors
    /// As [`OtReceiver::correlated`], and `words` not in `1..=4`.
    fn random(
        &mut self,
        session: &mut Session,
        choices: &[u64],
        n: usize,
        words: usize,
    ) -> Result<Vec<Block>, Error> {
        check_words(words)?;
        let mut t = Vec::with_capacity(n);
        self.correlated(session, choices, n, &mut t)?;
        let [pads] = self.pads().expand([&t], words);
        Ok(pads)
    }

    /// Chosen OT: the chosen message of each of `n` pairs, `words` blocks, lane by lane.
    ///
    /// # Errors
    /// As [`OtReceiver::random`].
    fn chosen(
        &mut self,
        session: &mut Session,
        choices: &[u64],
        n: usize,
        words: usize,
    ) -> Result<Vec<Block>, Error> {
        let mut pads = self.random(session, choices, n, words)?;
        let mut link = session.link(self.peer());
        let mut masked = [(); 2].map(|()| vec![Block::ZERO; pads.len()]);
        for masked in &mut masked {
            link.recv(Block::bytes_of_mut(masked))?;
        }
        open(&mut pads, &masked, choices, words);
        Ok(pads)
    }
}

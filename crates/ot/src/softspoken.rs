//! SoftSpoken OT extension: from 128 base OTs to any number of correlated OTs, the steps without network.
//!
//! Functionality: the sender holds Delta (its base choices), the receiver chooses bits b; the sender gets
//! random q_i, the receiver t_i = q_i + b_i Delta.
//!
//! Security: semi-honest, Roy, "SoftSpokenOT" (ePrint 2022/192): its small-field VOLE with the repetition
//! code and without the consistency check. Computational parameter 128. k = 1 is IKNP.
//!
//! Who learns what: the sender sees the choice bits under one-time pads; the receiver sees nothing.
//!
//! The 128 bits of Delta are cut into blocks of k bits (the last one shorter when k does not divide 128).
//! Per block the receiver owns 2^k seeds of a tree, the sender knows all but the one at its bits d of
//! Delta. With r_x the stream of seed x:
//!   receiver: u = sum of all r_x, v_j = sum of the r_x whose index has bit j; sends u + b sender: in the
//!   order y = x xor d the missing stream has index 0 and enters no v'_j; v'_j = v_j + d_j u,
//!             so v'_j + d_j (u + b) = v_j + d_j b
//! Row (block, j) of the sender is q, that of the receiver is t; a transpose gives one 128-bit block per OT.
//!
//! With random choices b is the u of the first block, whose correction is then zero and not sent. With
//! chosen ones b goes into the correction of every block, so no derandomisation message follows.
//!
//! Cost: ceil(128 / k) bits per OT, one less with random choices, rounded up to 128 OTs per call, from the
//! receiver only. It never waits.

use crate::base_ot::{BaseChosen, BasePairs};
use crate::flavours::check_choices;
use crate::{BASE_OTS, OTS_PER_CALL, OTS_PER_SESSION, PadHash, ggm};
use base::{At, Error, Fault};
use kernels::{Aes128, Block, TweakedHash, fold_streams, transpose128};

/// Largest k: 2^k streams per block are computed by both sides.
pub const K_MAX: u32 = 8;
/// 128-bit columns worked on at once: rows of 128 times this many blocks stay in the cache.
const CHUNK: usize = 16;

/// Sizes in bits of the blocks that Delta is cut into.
pub(crate) fn blocks(k: u32) -> impl Iterator<Item = usize> {
    let k = k as usize;
    (0..BASE_OTS).step_by(k).map(move |first| k.min(BASE_OTS - first))
}

/// Number of blocks: `ceil(128 / k)`.
#[must_use]
pub fn block_count(k: u32) -> usize {
    BASE_OTS.div_ceil(k as usize)
}

/// Bytes of the receiver's one-time message: the trees.
#[must_use]
pub fn setup_bytes(k: u32) -> usize {
    blocks(k).map(ggm::message_bytes).sum()
}

/// Bytes of the receiver's message for `n` OTs of one call.
#[must_use]
pub fn extension_bytes(k: u32, n: usize) -> usize {
    block_count(k) * n.div_ceil(128) * Block::BYTES
}

/// Bytes of the receiver's message for `n` OTs of one call whose choices are random.
#[must_use]
pub fn random_bytes(k: u32, n: usize) -> usize {
    (block_count(k) - 1) * n.div_ceil(128) * Block::BYTES
}

/// A valid k.
///
/// # Errors
/// When it is not in `1..=K_MAX`.
pub fn check_k(k: u32) -> Result<(), Error> {
    match k {
        0 => Err(Error::misuse("SoftSpoken needs k of at least 1")),
        1..=K_MAX => Ok(()),
        _ => Err(Error::limit("SoftSpoken k", u64::from(k), u64::from(K_MAX))),
    }
}

/// The seeds of all blocks and the counter into their streams.
struct Streams {
    keys: Vec<Vec<Aes128>>,
    position: u64,
}

impl Streams {
    fn new(leaves: Vec<ggm::Seeds>) -> Self {
        let expand = |seeds: ggm::Seeds| seeds.iter().map(|&seed| Aes128::new(seed)).collect();
        Self { keys: leaves.into_iter().map(expand).collect(), position: 0 }
    }

    /// Takes the columns for `n` OTs: their first index. A column is used once.
    fn take(&mut self, n: usize) -> Result<u64, Error> {
        if n > OTS_PER_CALL {
            return Err(Error::limit("OTs per call", n as u64, OTS_PER_CALL as u64));
        }
        let (first, next) = (self.position, self.position + n.div_ceil(128) as u64);
        if next > OTS_PER_SESSION / 128 {
            return Err(Error::limit("OTs per session", next.saturating_mul(128), OTS_PER_SESSION));
        }
        self.position = next;
        Ok(first)
    }

    /// Columns `first ..` of all rows, `width` blocks per row: for each block of Delta, `work` gets its
    /// index, its sum u and its rows of v.
    fn fold(
        &self,
        first: u64,
        width: usize,
        rows: &mut [Block],
        mut work: impl FnMut(usize, &mut [Block], &mut [Block]),
    ) {
        let mut sum = [Block::ZERO; CHUNK];
        let mut rest = rows;
        for (index, keys) in self.keys.iter().enumerate() {
            let depth = keys.len().trailing_zeros() as usize;
            let (own, after) = rest.split_at_mut(depth * width);
            fold_streams(keys, first, &mut sum[..width], own);
            work(index, &mut sum[..width], own);
            rest = after;
        }
    }

    /// Appends the transposed rows of `n` OTs to `out`. `correct` gets each block's index, its sum u, its
    /// rows of v and the first column of them, columns in order.
    fn extend(
        &mut self,
        n: usize,
        out: &mut Vec<Block>,
        mut correct: impl FnMut(usize, &mut [Block], &mut [Block], usize),
    ) -> Result<(), Error> {
        let first = self.take(n)?;
        let from = out.len();
        out.resize(from + n.next_multiple_of(128), Block::ZERO);
        let mut rows = vec![Block::ZERO; BASE_OTS * CHUNK];
        let mut at = 0;
        for out in out[from..].chunks_mut(128 * CHUNK) {
            let width = out.len() / 128;
            let rows = &mut rows[..BASE_OTS * width];
            self.fold(first + at as u64, width, rows, |block, sum, own| correct(block, sum, own, at));
            transpose128(rows, out);
            at += width;
        }
        out.truncate(from + n);
        Ok(())
    }
}

/// The extension's receiving side.
pub struct SoftSpokenReceiver {
    streams: Streams,
    pads: PadHash,
}

impl SoftSpokenReceiver {
    /// Grows the trees from base OTs in which this party *sent*. Send the message before any other.
    ///
    /// # Errors
    /// When k is out of range.
    pub fn new(base: BasePairs, k: u32) -> Result<(Self, Vec<u8>), Error> {
        check_k(k)?;
        let hash = TweakedHash::new(base.start);
        let (mut message, mut at) = (Vec::with_capacity(setup_bytes(k)), 0);
        let mut leaves = Vec::with_capacity(block_count(k));
        for (tree, depth) in blocks(k).enumerate() {
            leaves.push(ggm::grow(&hash, tree, &base.pairs[at..at + depth], &mut message));
            at += depth;
        }
        Ok((Self { streams: Streams::new(leaves), pads: PadHash::new(hash) }, message))
    }

    /// Makes `n` correlated OTs with the choice bits packed in `choices`: appends t_i to `out` and the
    /// bytes for the sender to `message` ([`extension_bytes`]).
    ///
    /// # Errors
    /// When there are fewer bits than OTs, or a limit is met.
    pub fn prepare(
        &mut self,
        choices: &[u64],
        n: usize,
        out: &mut Vec<Block>,
        message: &mut Vec<u8>,
    ) -> Result<(), Error> {
        check_choices(choices, n)?;
        let choices = columns(choices, n);
        self.streams.extend(n, out, |_, sum, _, at| {
            kernels::xor_into(sum, &choices[at..at + sum.len()]);
            message.extend_from_slice(Block::bytes_of(sum));
        })
    }

    /// Makes `n` correlated OTs with random choice bits: appends t_i to `out` and the bytes for the sender to
    /// `message` ([`random_bytes`]), and fills `choices` with `ceil(n / 64)` words of packed bits, those
    /// from `n` on cleared.
    ///
    /// # Errors
    /// When a limit is met.
    pub fn prepare_random(
        &mut self,
        n: usize,
        choices: &mut Vec<u64>,
        out: &mut Vec<Block>,
        message: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut drawn: Vec<Block> = Vec::with_capacity(n.div_ceil(128));
        self.streams.extend(n, out, |block, sum, _, at| {
            if block == 0 {
                drawn.extend_from_slice(sum);
            } else {
                kernels::xor_into(sum, &drawn[at..at + sum.len()]);
                message.extend_from_slice(Block::bytes_of(sum));
            }
        })?;
        choices.clear();
        choices.extend(drawn.iter().flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]));
        clear_from(choices, n);
        Ok(())
    }

    pub(crate) fn pads(&mut self) -> &mut PadHash {
        &mut self.pads
    }

    /// What another extension with the same Delta goes on with, so that no tweak comes twice.
    pub(crate) fn into_pads(mut self) -> PadHash {
        let none = PadHash::new(TweakedHash::new(Block::ZERO));
        std::mem::replace(&mut self.pads, none)
    }
}

/// Packed bits cut to `ceil(n / 64)` words, those from `n` on cleared.
pub(crate) fn clear_from(bits: &mut Vec<u64>, n: usize) {
    bits.truncate(n.div_ceil(64));
    if let (Some(last), 1..) = (bits.last_mut(), n % 64) {
        *last &= (1 << (n % 64)) - 1;
    }
}

/// Choice bits as blocks of 128, those from `n` on cleared.
fn columns(choices: &[u64], n: usize) -> Vec<Block> {
    let word = |i: usize| {
        let used = n.saturating_sub(64 * i).min(64) as u32;
        let mask = u64::MAX.checked_shr(64 - used).unwrap_or(0);
        u128::from(choices.get(i).copied().unwrap_or(0) & mask)
    };
    (0..n.div_ceil(128)).map(|c| Block(word(2 * c + 1) << 64 | word(2 * c))).collect()
}

/// The extension's sending side.
pub struct SoftSpokenSender {
    streams: Streams,
    pads: PadHash,
    k: u32,
    delta: Block,
}

impl Drop for SoftSpokenSender {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.delta);
    }
}

impl SoftSpokenSender {
    /// Grafts the trees from base OTs in which this party *chose*, and the receiver's one-time message.
    ///
    /// # Errors
    /// When k is out of range or the message has a wrong length.
    pub fn new(base: &BaseChosen, k: u32, message: &[u8]) -> Result<Self, Error> {
        check_k(k)?;
        if message.len() != setup_bytes(k) {
            return Err(malformed("OT extension set-up of a wrong length"));
        }
        let hash = TweakedHash::new(base.start);
        let (mut rest, mut at) = (message, 0);
        let mut leaves = Vec::with_capacity(block_count(k));
        for (tree, depth) in blocks(k).enumerate() {
            let (own, after) = rest.split_at(ggm::message_bytes(depth));
            let point = (base.choices.0 >> at) as u64 & ((1 << depth) - 1);
            leaves.push(ggm::graft(&hash, tree, point, &base.keys[at..at + depth], own));
            (rest, at) = (after, at + depth);
        }
        Ok(Self { streams: Streams::new(leaves), pads: PadHash::new(hash), k, delta: base.choices })
    }

    /// This side's Delta.
    #[must_use]
    pub fn delta(&self) -> Block {
        self.delta
    }

    /// The k of this extension.
    #[must_use]
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Takes the receiver's message for `n` OTs: appends q_i to `out`.
    ///
    /// # Errors
    /// When the message has a wrong length or a limit is met.
    pub fn absorb(&mut self, n: usize, message: &[u8], out: &mut Vec<Block>) -> Result<(), Error> {
        self.extend(n, 0, message, out)
    }

    /// Takes the receiver's message for `n` OTs whose choices are random: appends q_i to `out`.
    ///
    /// # Errors
    /// As [`SoftSpokenSender::absorb`].
    pub fn absorb_random(&mut self, n: usize, message: &[u8], out: &mut Vec<Block>) -> Result<(), Error> {
        self.extend(n, 1, message, out)
    }

    /// Appends q_i of `n` OTs to `out`; the message corrects the blocks of Delta from `corrected` on.
    fn extend(
        &mut self,
        n: usize,
        corrected: usize,
        message: &[u8],
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        if message.len() != (block_count(self.k) - corrected) * n.div_ceil(128) * Block::BYTES {
            return Err(malformed("OT extension message of a wrong length"));
        }
        let (mut rest, mut delta) = (message, self.delta.0);
        self.streams.extend(n, out, |block, correction, own, _| {
            let width = correction.len();
            if block == 0 {
                delta = self.delta.0;
            }
            if block < corrected {
                delta >>= own.len() / width;
                return;
            }
            let (mine, after) = rest.split_at(width * Block::BYTES);
            Block::read_slice(mine, correction);
            rest = after;
            for row in own.chunks_exact_mut(width) {
                kernels::xor_when(row, correction, delta as u64 & 1);
                delta >>= 1;
            }
        })
    }

    pub(crate) fn pads(&mut self) -> &mut PadHash {
        &mut self.pads
    }

    /// What another extension with the same Delta goes on with, so that no tweak comes twice.
    pub(crate) fn into_pads(mut self) -> PadHash {
        let none = PadHash::new(TweakedHash::new(Block::ZERO));
        std::mem::replace(&mut self.pads, none)
    }
}

fn malformed(what: &'static str) -> Error {
    Error::new(At::default(), Fault::Malformed(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_delta() {
        for k in 1..=K_MAX {
            let sizes: Vec<usize> = blocks(k).collect();
            assert_eq!((sizes.iter().sum::<usize>(), sizes.len()), (BASE_OTS, block_count(k)));
            assert_eq!(setup_bytes(k), 32 * (BASE_OTS - block_count(k)));
        }
    }

    #[test]
    fn k_has_limits() {
        assert!((1..=K_MAX).all(|k| check_k(k).is_ok()));
        assert_eq!(check_k(0).unwrap_err().to_string(), "SoftSpoken needs k of at least 1");
        assert_eq!(check_k(9).unwrap_err().to_string(), "SoftSpoken k: 9 is over the limit of 8");
    }

    #[test]
    fn streams_run_out_instead_of_wrapping() {
        let mut streams = Streams::new(Vec::new());
        assert_eq!(streams.take(OTS_PER_CALL).unwrap(), 0);
        assert_eq!(streams.take(1).unwrap(), OTS_PER_CALL as u64 / 128);
        let over = streams.take(OTS_PER_CALL + 1).unwrap_err().to_string();
        assert_eq!(over, "OTs per call: 16777217 is over the limit of 16777216");
        streams.position = OTS_PER_SESSION / 128 - 1;
        assert!(streams.take(128).is_ok());
        let over = streams.take(1).unwrap_err().to_string();
        assert!(over.starts_with("OTs per session: "), "{over}");
    }

    #[test]
    fn bits_are_cut() {
        for (n, left) in [(0, vec![]), (1, vec![1]), (64, vec![u64::MAX]), (65, vec![u64::MAX, 1])] {
            let mut bits = vec![u64::MAX; 4];
            clear_from(&mut bits, n);
            assert_eq!(bits, left, "{n}");
        }
    }

    #[test]
    fn choice_bits_beyond_the_last_ot_are_cleared() {
        assert!(columns(&[u64::MAX; 4], 0).is_empty());
        assert!(columns(&[u64::MAX; 4], 3) == [Block(7)]);
        assert!(columns(&[u64::MAX; 4], 129) == [Block::ONES, Block::ONE]);
    }
}

//! The tweaked hash of garbling and oblivious transfer, with multi-instance security.
//!
//! The construction is that of Guo, Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates
//! Garbling (in the Multi-Instance Setting)" (ePrint 2019/1168), with AES as the ideal cipher. Deviation: a
//! whole batch of u inputs shares a tweak, hence a cipher key. A guess of Delta through one cipher query is
//! then tested against u inputs at once, so the advantage of p queries is of the order of p u / 2^128
//! instead of p / 2^128: at u = 2^12 twelve bits, which is why a batch is bounded. `start` keeps queries
//! for one session useless against another.
//!
//! Under one tweak all inputs of one Delta must differ, also up to Delta: two lanes that hash the same label
//! would share a pad. The callers see to it (`yao`'s compiler gives every lane another label where a wire
//! would be the same in all).

use crate::backend::by_backend;
use crate::{Block, InstructionSet, aes, portable};

/// Blocks that [`TweakedHash::hash_words`] gives per input at most.
pub const WORDS_MAX: usize = 4;
/// Lanes hashed between two visits of a buffer: small enough for the first-level cache.
const CHUNK: usize = 256;

/// Inputs that may share a tweak: u of the bound in the module's header.
pub const LANES_MAX: usize = 1 << 12;

/// H(x, t) = AES_{start xor t}(sigma(x)) xor sigma(x) with sigma(a || b) = (a xor b) || a.
///
/// `start` is 128 public random bits of the session, so that precomputation against one session does not
/// help against another. All inputs of one call share the tweak: one key schedule for all lanes. Under one
/// Delta no tweak may be used for two batches, and a batch has at most [`LANES_MAX`] inputs.
#[derive(Clone, Debug)]
pub struct TweakedHash {
    start: Block,
    pub(crate) backend: InstructionSet,
}

impl TweakedHash {
    /// The hash of a session on the best backend of this machine.
    #[must_use]
    pub fn new(start: Block) -> Self {
        Self { start, backend: InstructionSet::detect() }
    }

    /// The hash of a session on a given backend.
    ///
    /// # Panics
    /// When this machine does not have the backend.
    #[must_use]
    pub fn on(backend: InstructionSet, start: Block) -> Self {
        Self { start, backend: InstructionSet::checked(backend) }
    }

    /// The public start value.
    #[must_use]
    pub fn start(&self) -> Block {
        self.start
    }

    pub(crate) fn keys(&self, tweak: Block) -> [Block; 11] {
        aes::key_schedule(self.backend, self.start ^ tweak)
    }

    /// `out[i]` = H(`x[i]`, `tweak`).
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn hash(&self, tweak: Block, x: &[Block], out: &mut [Block]) {
        assert_eq!(x.len(), out.len(), "one output per input");
        let keys = self.keys(tweak);
        by_backend!(self.backend, hash(&keys, x, out))
    }

    /// Bit 0 of H(`x[i]`, `tweak`), packed: bit i of `out`. Bits beyond `x.len()` are clear.
    ///
    /// # Panics
    /// When `out` is not exactly as many words as needed.
    pub fn hash_lsbs(&self, tweak: Block, x: &[Block], out: &mut [u64]) {
        assert_eq!(out.len(), x.len().div_ceil(64), "64 bits per word");
        let keys = self.keys(tweak);
        out.fill(0);
        by_backend!(self.backend, hash_lsbs(&keys, x, out), portable::hash_lsbs(&keys, x, Block::ZERO, out))
    }

    /// As [`TweakedHash::hash_lsbs`], of `x[i]` into `zero` and of `x[i] xor delta` into `one`: both messages
    /// of one-bit random OTs.
    ///
    /// # Panics
    /// As [`TweakedHash::hash_lsbs`].
    pub fn hash_lsbs_both(&self, tweak: Block, delta: Block, x: &[Block], zero: &mut [u64], one: &mut [u64]) {
        let words = x.len().div_ceil(64);
        assert!(zero.len() == words && one.len() == words, "64 bits per word");
        let keys = self.keys(tweak);
        zero.fill(0);
        one.fill(0);
        by_backend!(self.backend, hash_lsbs_both(&keys, delta, x, zero, one), {
            portable::hash_lsbs(&keys, x, Block::ZERO, zero);
            portable::hash_lsbs(&keys, x, delta, one);
        })
    }

    /// Expands every input to `words` blocks: `out[i * words + w]` = H(`x[i]`, `tweak xor w`). The two lowest
    /// bits of the tweak are the word counter and must be clear.
    ///
    /// # Panics
    /// When `words` is not in `1..=WORDS_MAX`, the counter bits are not clear or the lengths do not fit.
    pub fn hash_words(&self, tweak: Block, x: &[Block], words: usize, out: &mut [Block]) {
        assert!((1..=WORDS_MAX).contains(&words), "1 to {WORDS_MAX} words");
        assert_eq!(tweak.0 & 3, 0, "the two lowest tweak bits count words");
        assert_eq!(out.len(), x.len() * words, "`words` outputs per input");
        if words == 1 {
            return self.hash(tweak, x, out);
        }
        let mut word = [Block::ZERO; CHUNK];
        for w in 0..words {
            let tweak = tweak ^ Block(w as u128);
            for (x, out) in x.chunks(CHUNK).zip(out.chunks_mut(CHUNK * words)) {
                self.hash(tweak, x, &mut word[..x.len()]);
                let places = out[w..].iter_mut().step_by(words);
                places.zip(&word).for_each(|(o, h)| *o = *h);
            }
        }
    }
}

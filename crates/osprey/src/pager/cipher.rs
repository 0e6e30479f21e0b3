//! Encryption and authentication of chunks on their way to the file and back.
//!
//! **Functionality.** AES-128 in counter mode, in place, and a tag of the content: a polynomial over
//! GF(2^128) at a secret random element. Counter and tag stay in memory ([`SealedChunk`]).
//!
//! **What holds.** Keys come from the system's randomness and lie in pages of their own that are in no core
//! dump, no child and, where locking is allowed, no swap; a running count of blocks gives every write a range
//! of counters that was never used, so no two contents share a key stream. Whoever reads the disk learns when
//! and how many chunks were written and read, which is public by assumption, and else what tells AES from a
//! random permutation: for the 2^40 blocks (16 TiB) of one key at most 2^(2 x 40 - 129) = 2^-49; then a new
//! key follows. Whoever *writes* the disk (another content, an older one, that of another place) makes the
//! process end: the difference from what was written does not depend on the element, as no tag is ever shown,
//! so it passes with a chance of (blocks per chunk) / 2^128 per chunk read or compared, 2^-110 for the
//! largest. Tags are shown to nobody, so the polynomial needs no cipher above it; they lie in ordinary
//! memory, as frames do, and who reads the memory of the process needs no forgery.
//!
//! The same tag tells whether a chunk that the plan expects to be only read was only read: it equals that of
//! another content with the same chance. Only if it is equal when the chunk leaves, its place in the file
//! stays good.

use crate::sys::locked::Locked;
use crate::sys::own::random;
use kernels::{Aes128, Block, GfKey, gf_digest};
use zeroize::Zeroize;

/// Blocks that one key serves, as a power of two.
const KEY_BLOCKS_LOG: u32 = 40;
/// Blocks that stay in the nearest cache between two walks over them.
const PIECE: usize = 1024;
/// Keys of a process at most: 256 TiB paged out.
const KEYS_MAX: usize = 16;

pub(super) struct Cipher {
    keys: Locked<Keys>,
    used: u64,
}

/// Keys are wiped when dropped, by their own types.
struct Keys {
    stream: [Option<Aes128>; KEYS_MAX],
    tag: GfKey,
}

/// What is kept in memory of a chunk in the file.
#[derive(Clone, Copy)]
pub(super) struct SealedChunk {
    pub counter: u64,
    pub tag: Block,
}

/// What was read is not what was written.
#[derive(Debug)]
pub(super) struct Altered;

impl Cipher {
    /// Fresh keys.
    ///
    /// # Errors
    /// In words, when the system has no randomness.
    pub fn new() -> Result<Self, String> {
        let keys = Keys { stream: [const { None }; KEYS_MAX], tag: with_random(GfKey::new)? };
        let keys = Locked::new(keys).map_err(|e| format!("no memory for keys: {e}"))?;
        Ok(Self { keys, used: 0 })
    }

    /// Encrypts a chunk and gives what [`Cipher::open`] wants.
    ///
    /// # Errors
    /// In words, when a further key is due and the system has no randomness, or there were [`KEYS_MAX`].
    pub fn seal(&mut self, chunk: &mut [Block]) -> Result<SealedChunk, String> {
        // Chunks are powers of two, so none lies astride two keys.
        let counter = self.used;
        let key = self.keys.stream.get_mut((counter >> KEY_BLOCKS_LOG) as usize);
        let key = key.ok_or_else(|| format!("more than {} TiB were paged out", 16 * KEYS_MAX))?;
        if key.is_none() {
            *key = Some(with_random(Aes128::new)?);
        }
        self.used += chunk.len() as u64;
        let tag = self.in_pieces(counter, chunk, |before, stream, counter, piece| {
            let tag = gf_digest(&self.keys.tag, before, piece);
            stream.ctr_xor(counter, piece);
            tag
        });
        Ok(SealedChunk { counter, tag })
    }

    /// Decrypts a chunk.
    ///
    /// # Errors
    /// When it is not what was sealed.
    pub fn open(&self, sealed: SealedChunk, chunk: &mut [Block]) -> Result<(), Altered> {
        let tag = self.in_pieces(sealed.counter, chunk, |before, stream, counter, piece| {
            stream.ctr_xor(counter, piece);
            gf_digest(&self.keys.tag, before, piece)
        });
        if tag == sealed.tag { Ok(()) } else { Err(Altered) }
    }

    /// Whether a content is that which was sealed.
    pub fn is_same(&self, sealed: SealedChunk, chunk: &[Block]) -> bool {
        gf_digest(&self.keys.tag, Block::ZERO, chunk) == sealed.tag
    }

    /// Takes a chunk a piece at a time, so that memory is walked once, and gives its tag.
    fn in_pieces(
        &self,
        counter: u64,
        chunk: &mut [Block],
        mut step: impl FnMut(Block, &Aes128, u64, &mut [Block]) -> Block,
    ) -> Block {
        let stream = self.keys.stream[(counter >> KEY_BLOCKS_LOG) as usize].as_ref();
        let stream = stream.expect("what is encrypted has a key");
        let pieces = (counter..).step_by(PIECE).zip(chunk.chunks_mut(PIECE));
        pieces.fold(Block::ZERO, |before, (counter, piece)| step(before, stream, counter, piece))
    }
}

fn with_random<T>(make: impl FnOnce(Block) -> T) -> Result<T, String> {
    let mut bytes = [0; Block::BYTES];
    random(&mut bytes)
        .map_err(|e| format!("no randomness from the system for the key of the spill file: {e}"))?;
    let made = make(Block::from_bytes(bytes));
    bytes.zeroize();
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_has_a_key_stream_of_its_own() {
        let mut cipher = Cipher::new().expect("randomness");
        let mut seen = std::collections::HashSet::new();
        for start in [0, 1 << KEY_BLOCKS_LOG] {
            cipher.used = start;
            for _ in 0..3 {
                let mut chunk = vec![Block::ZERO; 256];
                let sealed = cipher.seal(&mut chunk).expect("sealed");
                assert!(
                    chunk.iter().all(|block| seen.insert(block.to_bytes())),
                    "a block of zeros twice alike"
                );
                cipher.open(sealed, &mut chunk).expect("unchanged");
                assert!(chunk.iter().all(|&block| block == Block::ZERO));
            }
        }
        assert_eq!(cipher.keys.stream.iter().flatten().count(), 2);
        cipher.used = (KEYS_MAX as u64) << KEY_BLOCKS_LOG;
        assert!(cipher.seal(&mut [Block::ZERO]).err().expect("the last key").contains("256 TiB"));
    }

    /// A changed bit, an older content of the same place, that of another place.
    #[test]
    fn what_was_not_written_is_not_taken_back() {
        let mut cipher = Cipher::new().expect("randomness");
        for blocks in [1, PIECE, 3 * PIECE] {
            let clear: Vec<Block> = (0..blocks as u128).map(Block).collect();
            let (mut old, mut chunk) = (clear.clone(), clear.clone());
            let before = cipher.seal(&mut old).expect("sealed");
            let sealed = cipher.seal(&mut chunk).expect("sealed");
            for at in [0, blocks / 2, blocks - 1] {
                let mut altered = chunk.clone();
                altered[at].0 ^= 1 << 77;
                assert!(cipher.open(sealed, &mut altered).is_err(), "block {at} of {blocks}");
                assert!(!cipher.is_same(sealed, &altered));
            }
            assert!(cipher.open(sealed, &mut old.clone()).is_err() && cipher.open(before, &mut old).is_ok());
            assert!(cipher.open(sealed, &mut chunk).is_ok() && chunk == clear && old == clear);
            assert!(cipher.is_same(sealed, &clear) && cipher.is_same(before, &clear));
        }
    }
}

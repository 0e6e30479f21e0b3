//! Encryption of chunks on their way to the file.
//!
//! **Functionality.** AES-128 in counter mode, in place. **What holds.** Keys come from the system's randomness and lie in
//! pages of their own that are in no core dump, no child and, where locking is allowed, no swap; a running count of blocks gives every write a range of counters that was never used, so no two
//! contents share a key stream. Whoever reads the disk learns when and how many chunks were written and read, which is
//! public by assumption, and else what tells AES from a random permutation: for the 2^40 blocks (16 TiB) of one key at most
//! 2^(2 x 40 - 129) = 2^-49; then a new key follows. Chunks are not authenticated: whoever *writes* the disk under a
//! running process is outside the model (the file has no name).
//!
//! A chunk that the plan expects to be only read has a digest by a polynomial over GF(2^128) at a secret random element
//! while it is in the region: it equals that of another content with a chance of (blocks per chunk) / 2^128 per chunk,
//! 2^-110 for the largest. Only if it is equal when the chunk leaves, its place in the file stays good.

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
    digest: GfKey,
}

impl Cipher {
    /// Fresh keys.
    ///
    /// # Errors
    /// In words, when the system has no randomness.
    pub fn new() -> Result<Self, String> {
        let keys = Keys { stream: [const { None }; KEYS_MAX], digest: with_random(GfKey::new)? };
        let keys = Locked::new(keys).map_err(|e| format!("no memory for keys: {e}"))?;
        Ok(Self { keys, used: 0 })
    }

    /// Encrypts a chunk and gives the counter that [`Cipher::open`] wants.
    ///
    /// # Errors
    /// In words, when a further key is due and the system has no randomness, or there were [`KEYS_MAX`].
    pub fn seal(&mut self, chunk: &mut [Block]) -> Result<u64, String> {
        // Chunks are powers of two, so none lies astride two keys.
        let counter = self.used;
        let key = self.keys.stream.get_mut((counter >> KEY_BLOCKS_LOG) as usize);
        let key = key.ok_or_else(|| format!("more than {} TiB were paged out", 16 * KEYS_MAX))?;
        if key.is_none() {
            *key = Some(with_random(Aes128::new)?);
        }
        self.used += chunk.len() as u64;
        self.open(counter, chunk);
        Ok(counter)
    }

    /// Decrypts a chunk.
    pub fn open(&self, counter: u64, chunk: &mut [Block]) {
        let key = self.keys.stream[(counter >> KEY_BLOCKS_LOG) as usize].as_ref();
        key.expect("what was encrypted had a key").ctr_xor(counter, chunk);
    }

    /// Decrypts a chunk and gives its [`Cipher::digest`]: a piece at a time, so that memory is walked once.
    pub fn open_and_digest(&self, counter: u64, chunk: &mut [Block]) -> Block {
        let pieces = (counter..).step_by(PIECE).zip(chunk.chunks_mut(PIECE));
        pieces.fold(Block::ZERO, |before, (counter, piece)| {
            self.open(counter, piece);
            gf_digest(&self.keys.digest, before, piece)
        })
    }

    pub fn digest(&self, chunk: &[Block]) -> Block {
        gf_digest(&self.keys.digest, Block::ZERO, chunk)
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
                let counter = cipher.seal(&mut chunk).expect("sealed");
                assert!(
                    chunk.iter().all(|block| seen.insert(block.to_bytes())),
                    "a block of zeros twice alike"
                );
                cipher.open(counter, &mut chunk);
                assert!(chunk.iter().all(|&block| block == Block::ZERO));
            }
        }
        assert_eq!(cipher.keys.stream.iter().flatten().count(), 2);
        for blocks in [1, PIECE, 3 * PIECE] {
            let clear: Vec<Block> = (0..blocks as u128).map(Block).collect();
            let mut chunk = clear.clone();
            let counter = cipher.seal(&mut chunk).expect("sealed");
            assert!(cipher.open_and_digest(counter, &mut chunk) == cipher.digest(&clear) && chunk == clear);
        }
        cipher.used = (KEYS_MAX as u64) << KEY_BLOCKS_LOG;
        assert!(cipher.seal(&mut [Block::ZERO]).expect_err("the last key").contains("256 TiB"));
    }
}

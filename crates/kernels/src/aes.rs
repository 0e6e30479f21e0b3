//! AES-128 as a pseudorandom generator in counter mode.

use crate::backend::by_backend;
#[cfg(target_arch = "x86_64")]
use crate::x86;
use crate::{Block, InstructionSet, portable};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// An expanded AES-128 key. Wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Aes128 {
    pub(crate) keys: [Block; 11],
    #[zeroize(skip)]
    backend: InstructionSet,
}

impl Aes128 {
    /// Expands a key for the best backend of this machine.
    #[must_use]
    pub fn new(key: Block) -> Self {
        Self::expand(InstructionSet::detect(), key)
    }

    /// Expands a key for a given backend.
    ///
    /// # Panics
    /// When this machine does not have the backend.
    #[must_use]
    pub fn on(backend: InstructionSet, key: Block) -> Self {
        Self::expand(InstructionSet::checked(backend), key)
    }

    pub(crate) fn backend(&self) -> InstructionSet {
        self.backend
    }

    fn expand(backend: InstructionSet, key: Block) -> Self {
        Self { keys: key_schedule(backend, key), backend }
    }

    /// Encrypts blocks in place.
    pub fn encrypt(&self, blocks: &mut [Block]) {
        by_backend!(self.backend, encrypt(&self.keys, blocks))
    }

    /// Counter mode: `out[i]` is the encryption of `counter + i` (modulo 2^64, upper half zero).
    pub fn ctr(&self, counter: u64, out: &mut [Block]) {
        by_backend!(self.backend, ctr(&self.keys, counter, out))
    }

    /// Counter mode in place: adds to `data[i]` the encryption of `counter + i`. Twice is the identity; a
    /// counter must not serve two contents under one key.
    pub fn ctr_xor(&self, counter: u64, data: &mut [Block]) {
        by_backend!(self.backend, ctr_xor(&self.keys, counter, data))
    }
}

impl std::fmt::Debug for Aes128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aes128(..)")
    }
}

pub(crate) fn key_schedule(backend: InstructionSet, key: Block) -> [Block; 11] {
    match backend {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::AesNi | InstructionSet::Vaes512 => x86::key_schedule(key),
        _ => portable::key_schedule(key),
    }
}

/// A pseudorandom stream: AES-CTR under `seed` from `counter` on. Different `(seed, counter)` ranges must not
/// overlap if the outputs are to be independent.
pub fn prg_fill(seed: Block, counter: u64, out: &mut [Block]) {
    Aes128::new(seed).ctr(counter, out);
}

/// Streams of 2^k keys in counter mode, folded without being stored: `u` is the sum of all streams, row j
/// of `v` (`v[j * u.len() ..]`, k rows) the sum of those whose index has bit j. This is the small-field
/// step of SoftSpoken.
///
/// # Panics
/// When `keys` is not a power of two from 2 to 256, keys are of different backends, or `v` is not k rows of
/// `u.len()`.
pub fn fold_streams(keys: &[Aes128], counter: u64, u: &mut [Block], v: &mut [Block]) {
    assert!((2..=256).contains(&keys.len()) && keys.len().is_power_of_two(), "2, 4, .. 256 keys");
    let depth = keys.len().trailing_zeros() as usize;
    assert_eq!(v.len(), depth * u.len(), "one row of v per bit of the key index");
    let backend = keys[0].backend;
    assert!(keys.iter().all(|k| k.backend == backend), "keys of one backend");
    by_backend!(backend, fold_streams(keys, counter, u, v), {
        let keys: Vec<[Block; 11]> = keys.iter().map(|k| k.keys).collect();
        portable::fold_streams(&keys, counter, u, v);
    })
}

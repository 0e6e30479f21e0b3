//! The sealing itself, as functions of bytes: AES-256-GCM over chunks in the STREAM construction (Hoang,
//! Reyhanitabar, Rogaway, Vizar 2015), under a key of each object's own.
//!
//! A key is that of one object: it is derived from the state key, and from the run, the party, the name and
//! 32 random bytes of the object's header. A nonce is the chunk's number and whether it is the last one. So
//! no nonce repeats under a key; what was moved, renamed or comes from another run opens under no key; a
//! chunk opens at its own place alone; and no shorter or longer object has a last chunk.

use crate::StateKey;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base::{Secret, Seed};
use std::ops::Range;
use zeroize::Zeroize;

/// The first bytes of every sealed object, and the number of its format.
const MAGIC: &[u8; 8] = b"tacitobj";
const FORMAT: u8 = 1;
/// Bytes before the first chunk: magic, format, size of chunks, random bytes.
pub(crate) const HEADER: usize = 8 + 1 + 1 + 32;
/// Bytes that a chunk grows by.
pub(crate) const TAG: usize = 16;
const KEY_LABEL: &[u8] = b"tacit object v1\0";
const BINDING_LABEL: &str = "tacit 2026-11-24 object binding v1";

/// Bytes of a chunk: a read of any byte reads the whole chunk, and each chunk grows by 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkSize {
    /// 4 KiB, for objects of which parts are read: two halves of a chunk are read in vain.
    Small = 12,
    /// 64 KiB, for objects that are read whole.
    Large = 16,
}

impl ChunkSize {
    fn of(bits: u8) -> Option<Self> {
        [Self::Small, Self::Large].into_iter().find(|size| *size as u8 == bits)
    }

    pub(crate) fn bytes(self) -> usize {
        1 << self as u8
    }

    /// Chunks of `len` bytes; an object of no bytes has one, which is empty.
    fn chunks(self, len: u64) -> u64 {
        len.div_ceil(self.bytes() as u64).max(1)
    }
}

/// Bytes of a sealed object that holds `len` bytes: 42, and 16 for each chunk, of which there is at least
/// one.
#[must_use]
pub fn sealed_len(len: u64, size: ChunkSize) -> u64 {
    HEADER as u64 + len + TAG as u64 * size.chunks(len)
}

/// Bytes that a sealed object of `sealed` bytes holds; none where no object has that many.
pub(crate) fn opened_len(sealed: u64, size: ChunkSize) -> Option<u64> {
    let body = sealed.checked_sub(HEADER as u64)?;
    let chunks = body.div_ceil((size.bytes() + TAG) as u64).max(1);
    let len = body.checked_sub(TAG as u64 * chunks)?;
    (sealed_len(len, size) == sealed).then_some(len)
}

/// The random bytes in an object's header: no two objects have the same. Whoever notes it down sees later
/// whether a store gives back this object or an older one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(pub [u8; 32]);

/// Whose objects: a key of one run and party.
pub(crate) struct RunKey {
    key: Secret<[u8; 32]>,
    /// Run and party, as they are hashed.
    context: Vec<u8>,
}

impl RunKey {
    pub(crate) fn new(key: &StateKey, run: &[u8; 32], party: &str) -> Self {
        let mut context = run.to_vec();
        framed(&mut context, party.as_bytes());
        Self { key: Secret::new(*key.expose()), context }
    }

    /// Seals a new object of this name: its header, and what seals its chunks.
    pub(crate) fn begin(&self, name: &str, size: ChunkSize) -> ([u8; HEADER], ChunkSeal) {
        self.begin_as(name, size, &Seed::from_system().into_rng().bytes())
    }

    /// The same with given bytes in place of random ones, for what knows its key anyway.
    pub(crate) fn begin_as(
        &self,
        name: &str,
        size: ChunkSize,
        random: &[u8; 32],
    ) -> ([u8; HEADER], ChunkSeal) {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        (header[8], header[9]) = (FORMAT, size as u8);
        header[10..].copy_from_slice(random);
        (header, self.seal(name, &header, size))
    }

    /// What opens the chunks of an object with this header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn open(&self, name: &str, header: &[u8]) -> Result<ChunkSeal, &'static str> {
        let header: &[u8; HEADER] = header.try_into().map_err(|_| "it is too short for a sealed object")?;
        if &header[..8] != MAGIC {
            return Err("it is no sealed object");
        }
        if header[8] != FORMAT {
            return Err("it was written by another version of this program, in another format");
        }
        let size = ChunkSize::of(header[9]).ok_or("its chunks have a size that none has")?;
        Ok(self.seal(name, header, size))
    }

    fn seal(&self, name: &str, header: &[u8; HEADER], size: ChunkSize) -> ChunkSeal {
        let mut bound = self.context.clone();
        framed(&mut bound, name.as_bytes());
        bound.extend_from_slice(header);
        let mut hasher = blake3::Hasher::new_keyed(self.key.expose());
        let mut key = *hasher.update(KEY_LABEL).update(&bound).finalize().as_bytes();
        let unbound = UnboundKey::new(&AES_256_GCM, &key).expect("a key of AES-256 has 32 bytes");
        key.zeroize();
        let mut id = [0; 32];
        id.copy_from_slice(&header[10..]);
        ChunkSeal {
            key: LessSafeKey::new(unbound),
            bound: blake3::derive_key(BINDING_LABEL, &bound),
            size,
            id: ObjectId(id),
        }
    }
}

/// A length in front, so that two texts cannot be cut elsewhere.
fn framed(into: &mut Vec<u8>, text: &[u8]) {
    into.extend_from_slice(&(text.len() as u64).to_le_bytes());
    into.extend_from_slice(text);
}

/// Seals or opens the chunks of one object.
pub(crate) struct ChunkSeal {
    key: LessSafeKey,
    /// A hash of run, party, name and header: with every chunk.
    bound: [u8; 32],
    pub(crate) size: ChunkSize,
    pub(crate) id: ObjectId,
}

impl ChunkSeal {
    fn nonce(number: u64, last: bool) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[3..11].copy_from_slice(&number.to_be_bytes());
        nonce[11] = u8::from(last);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Seals a chunk in place and appends its tag. Each number is sealed once.
    pub(crate) fn seal(&self, number: u64, last: bool, chunk: &mut Vec<u8>) {
        let sealed =
            self.key.seal_in_place_append_tag(Self::nonce(number, last), Aad::from(&self.bound), chunk);
        sealed.expect("a chunk is shorter than AES-GCM allows");
    }

    /// Where the chunks lie in the sealed object that the bytes of `range` are in, of an object of `len`
    /// bytes, and the number of the first of them.
    pub(crate) fn cover(&self, range: &Range<u64>, len: u64) -> (Range<u64>, u64) {
        let (chunk, grown) = (self.size.bytes() as u64, (self.size.bytes() + TAG) as u64);
        let last = self.size.chunks(len) - 1;
        let numbers = (range.start / chunk).min(last)..=(range.end.saturating_sub(1) / chunk).min(last);
        let start = HEADER as u64 + numbers.start() * grown;
        let end = HEADER as u64 + (numbers.end() + 1) * grown;
        (start..end.min(sealed_len(len, self.size)), *numbers.start())
    }

    /// Opens chunks that lie side by side from number `first` on, of an object of `len` bytes, and appends
    /// what they hold to `into`.
    ///
    /// # Errors
    /// When one was not sealed at this place of this object; `into` has no byte of it then.
    pub(crate) fn open(&self, first: u64, sealed: &[u8], len: u64, into: &mut Vec<u8>) -> Result<(), ()> {
        let last = self.size.chunks(len) - 1;
        let mut left = sealed;
        for number in first.. {
            let here = left.len().min(self.size.bytes() + TAG);
            let (chunk, rest) = left.split_at(here);
            let (text, tag) = chunk.split_at(here.checked_sub(TAG).ok_or(())?);
            let start = into.len();
            into.resize(start + text.len(), 0);
            let nonce = Self::nonce(number, number == last);
            let out = &mut into[start..];
            if self.key.open_separate_gather(nonce, Aad::from(&self.bound), text, tag, out).is_err() {
                into[start..].zeroize();
                into.truncate(start);
                return Err(());
            }
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RunKey {
        /// An object with a header of these random bytes.
        pub(crate) fn pinned(&self, name: &str, random: &[u8; 32], text: &[u8]) -> Vec<u8> {
            let (header, seal) = self.begin_as(name, ChunkSize::Small, random);
            let mut sealed = header.to_vec();
            let chunks = text.chunks(4_096).len();
            for (number, chunk) in text.chunks(4_096).enumerate() {
                let mut chunk = chunk.to_vec();
                seal.seal(number as u64, number + 1 == chunks, &mut chunk);
                sealed.extend_from_slice(&chunk);
            }
            sealed
        }
    }

    #[test]
    fn lengths_go_both_ways() {
        for size in [ChunkSize::Small, ChunkSize::Large] {
            let chunk = size.bytes() as u64;
            assert_eq!(sealed_len(0, size), 58);
            assert_eq!(sealed_len(chunk, size), 58 + chunk);
            assert_eq!(sealed_len(chunk + 1, size), 74 + chunk + 1);
            let mut before = 0;
            for len in (0..2 * chunk + 40).step_by(7).chain(chunk - 2..chunk + 40) {
                let sealed = sealed_len(len, size);
                assert_eq!(opened_len(sealed, size), Some(len), "{len}");
                before = before.max(sealed);
            }
            // A second chunk holds at least one byte: no object has these sizes.
            for none in [0, 41, 57, 58 + chunk + 1, 58 + chunk + 16] {
                assert_eq!(opened_len(none, size), None, "{none}");
            }
            assert_eq!(opened_len(58 + chunk + 17, size), Some(chunk + 1));
            // No size that a store may tell overflows.
            let _ = opened_len(u64::MAX, size);
        }
    }

    #[test]
    fn ranges_are_covered_by_their_chunks() {
        let key = RunKey::new(&StateKey::fresh(), &[1; 32], "a");
        let (_, seal) = key.begin("x", ChunkSize::Small);
        let grown = 4096 + 16;
        let len = 3 * 4096 + 100;
        for (range, sealed, first) in [
            (0..1, 42..42 + grown, 0),
            (4095..4097, 42..42 + 2 * grown, 0),
            (4096..8192, 42 + grown..42 + 2 * grown, 1),
            (3 * 4096..len, 42 + 3 * grown..42 + 3 * grown + 116, 3),
            (0..len, 42..42 + 3 * grown + 116, 0),
            (len..len, 42 + 3 * grown..42 + 3 * grown + 116, 3),
        ] {
            assert_eq!(seal.cover(&range, len), (sealed, first), "{range:?}");
        }
    }
}

//! Streams of AES-128 in counter mode, used up where they are made: a mask is added while it is in a
//! register.

use super::{VectorRing, Write};
use crate::backend::by_backend;
use crate::{Aes128, Block};

/// Counter mode under a prefix: block i is the encryption of the block whose upper half is `prefix` and whose
/// lower half is `first + i`.
#[derive(Clone, Copy, Debug)]
pub struct Keystream<'a> {
    /// The key, of the backend that does the work.
    pub key: &'a Aes128,
    /// The upper half of all counter blocks.
    pub prefix: u64,
    /// The lower half of the first one.
    pub first: u64,
}

/// A value that two parties know becomes two summands: a mask that they have in common with a third, and the
/// rest, which one of them sends to the fourth.
pub struct JointMask<'a> {
    /// The mask rho.
    pub mask: Keystream<'a>,
    /// What hides the message on its way, if anything does.
    pub wire: Option<Keystream<'a>>,
    /// The summand that gets rho, and how.
    pub to_mask: (Write, &'a mut [Block]),
    /// The summand that gets the rest, and how.
    pub to_rest: (Write, &'a mut [Block]),
}

/// Blocks that the portable twins make at a time.
const PASS: usize = 64;

impl Keystream<'_> {
    /// The stream itself.
    ///
    /// # Panics
    /// When the counter passes 2^64.
    pub fn fill(self, out: &mut [Block]) {
        self.check(out.len());
        by_backend!(self.key.backend(), ring::fill(self, out), self.portable_fill(out))
    }

    /// `sums[i] +=` the stream.
    ///
    /// # Panics
    /// When the counter passes 2^64.
    pub fn add(self, ring: VectorRing, sums: &mut [Block]) {
        self.check(sums.len());
        by_backend!(
            self.key.backend(),
            ring::add_stream(ring, self, sums),
            self.portable_each(sums, |_, sum, mask| *sum = ring.add(*sum, mask))
        )
    }

    /// `sums[i] += x[i] -` the stream.
    ///
    /// # Panics
    /// When the lengths differ or the counter passes 2^64.
    pub fn add_unmasked(self, ring: VectorRing, sums: &mut [Block], x: &[Block]) {
        assert_eq!(sums.len(), x.len(), "equal lengths");
        self.check(sums.len());
        by_backend!(
            self.key.backend(),
            ring::add_unmasked(ring, self, sums, x),
            self.portable_each(sums, |i, sum, mask| *sum = ring.add(*sum, ring.sub(x[i], mask)))
        )
    }

    fn check(self, blocks: usize) {
        assert!(self.first.checked_add(blocks as u64).is_some(), "a stream has 2^64 blocks");
    }

    fn portable_fill(self, out: &mut [Block]) {
        for (i, block) in out.iter_mut().enumerate() {
            *block = Block(u128::from(self.prefix) << 64 | u128::from(self.first + i as u64));
        }
        self.key.encrypt(out);
    }

    /// Calls `f` with every index, its element of `data` and its block of the stream.
    fn portable_each(self, data: &mut [Block], f: impl Fn(usize, &mut Block, Block)) {
        let mut scratch = [Block::ZERO; PASS];
        for (pass, data) in data.chunks_mut(PASS).enumerate() {
            let masks = &mut scratch[..data.len()];
            Self { first: self.first + (pass * PASS) as u64, ..self }.portable_fill(masks);
            for (i, (data, mask)) in data.iter_mut().zip(masks).enumerate() {
                f(pass * PASS + i, data, *mask);
            }
        }
    }
}

impl JointMask<'_> {
    /// Splits `values`; they become the messages: `value - rho`, hidden if they are to be.
    ///
    /// # Panics
    /// When lengths differ, a counter passes 2^64, or the keys are of different backends.
    pub fn split(&mut self, ring: VectorRing, values: &mut [Block]) {
        let n = values.len();
        assert!(self.to_mask.1.len() == n && self.to_rest.1.len() == n, "equal lengths");
        self.mask.check(n);
        let backend = self.mask.key.backend();
        if let Some(wire) = self.wire {
            wire.check(n);
            assert_eq!(wire.key.backend(), backend, "keys of one backend");
        }
        by_backend!(backend, ring::split(ring, self, values), self.portable(ring, values))
    }

    fn portable(&mut self, ring: VectorRing, values: &mut [Block]) {
        let mut masks = vec![Block::ZERO; values.len()];
        self.mask.portable_fill(&mut masks);
        values.iter_mut().zip(&masks).for_each(|(value, &mask)| *value = ring.sub(*value, mask));
        for ((write, to), x) in [(&mut self.to_mask, &*masks), (&mut self.to_rest, &*values)] {
            match write {
                Write::Set => to.copy_from_slice(x),
                Write::Add => to.iter_mut().zip(x).for_each(|(sum, &x)| *sum = ring.add(*sum, x)),
            }
        }
        if let Some(wire) = self.wire {
            wire.portable_each(values, |_, value, mask| *value = ring.add(*value, mask));
        }
    }
}

/// Counter mode under a prefix, as [`Keystream`] states it.
///
/// # Panics
/// When the counter passes 2^64.
pub fn stream(key: &Aes128, prefix: u64, first: u64, out: &mut [Block]) {
    Keystream { key, prefix, first }.fill(out);
}

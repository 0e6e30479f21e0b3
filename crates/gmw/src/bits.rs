//! Packed bits in words: append and cut at any position, and the bytes in which they travel.

/// Words for `bits` bits.
pub(crate) fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// Bytes for `bits` bits.
pub(crate) fn bytes(bits: usize) -> usize {
    bits.div_ceil(8)
}

/// The bits of the last word of `bits` bits that are in use; all ones when it is full.
pub(crate) fn tail_mask(bits: usize) -> u64 {
    u64::MAX >> (words(bits) * 64 - bits)
}

/// A run of packed bits. Bits of the last word beyond the length are clear.
#[derive(Default)]
pub(crate) struct BitRun {
    words: Vec<u64>,
    len: usize,
}

impl Drop for BitRun {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl BitRun {
    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Forgets everything and leaves no copy in memory.
    pub fn wipe(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.words);
        self.len = 0;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Appends the first `n` bits of `from`, each XORed with the lowest bit of `flip` (0 or all ones).
    pub fn push(&mut self, from: &[u64], n: usize, flip: u64) {
        if n == 0 {
            return;
        }
        let (used, shift) = (words(n), self.len % 64);
        let last = tail_mask(n);
        let clean = |i: usize| (from[i] ^ flip) & if i + 1 == used { last } else { u64::MAX };
        if shift == 0 {
            self.words.extend((0..used).map(clean));
        } else {
            let mut open = self.words.pop().unwrap_or(0);
            for i in 0..used {
                let word = clean(i);
                self.words.push(open | word << shift);
                open = word >> (64 - shift);
            }
            self.words.push(open);
        }
        self.len += n;
        self.words.truncate(words(self.len));
    }

    /// Appends one bit, the lowest of `bit`.
    pub fn push_bit(&mut self, bit: u64) {
        let shift = self.len % 64;
        if shift == 0 {
            self.words.push(bit & 1);
        } else if let Some(word) = self.words.last_mut() {
            *word |= (bit & 1) << shift;
        }
        self.len += 1;
    }

    /// Copies `n` bits from bit `at` on to the front of `into`; the rest of the last word is clear.
    pub fn read(&self, at: usize, n: usize, into: &mut [u64]) {
        debug_assert!(at + n <= self.len);
        if n == 0 {
            return;
        }
        let (first, shift, used) = (at / 64, at % 64, words(n));
        if shift == 0 {
            into[..used].copy_from_slice(&self.words[first..first + used]);
        } else {
            for (i, into) in into[..used].iter_mut().enumerate() {
                let high = self.words.get(first + i + 1).copied().unwrap_or(0);
                *into = self.words[first + i] >> shift | high << (64 - shift);
            }
        }
        into[used - 1] &= tail_mask(n);
    }

    /// Keeps the bits from `at` on.
    pub fn keep_from(&mut self, at: usize) {
        let rest = self.len - at;
        let mut kept = vec![0; words(rest)];
        self.read(at, rest, &mut kept);
        self.wipe();
        (self.words, self.len) = (kept, rest);
    }
}

/// Appends the first `bits` bits as whole bytes.
pub(crate) fn append_bytes(from: &[u64], bits: usize, to: &mut Vec<u8>) {
    let end = to.len() + bytes(bits);
    for word in &from[..words(bits)] {
        to.extend_from_slice(&word.to_le_bytes());
    }
    to.truncate(end);
}

/// XORs packed bits that travelled as bytes into words. A peer's bits beyond the last are dropped.
pub(crate) fn xor_bytes(from: &[u8], bits: usize, into: &mut [u64]) {
    let used = words(bits);
    let mut chunks = from.chunks_exact(8);
    let mut places = into[..used].iter_mut();
    for (chunk, place) in chunks.by_ref().zip(places.by_ref()) {
        *place ^= u64::from_le_bytes(chunk.try_into().expect("chunks of 8 bytes"));
    }
    if let Some(place) = places.next() {
        let mut last = [0; 8];
        last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        *place ^= u64::from_le_bytes(last);
    }
    if let Some(last) = used.checked_sub(1) {
        into[last] &= tail_mask(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_keep_every_bit() {
        let noise = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut bits = BitRun::default();
        let mut expected = Vec::new();
        for (round, n) in [1usize, 0, 63, 64, 65, 3, 128, 1, 200, 61].into_iter().enumerate() {
            let from: Vec<u64> = (0..words(n)).map(|i| noise(17 * round + i)).collect();
            let flip = if round % 2 == 1 { u64::MAX } else { 0 };
            bits.push(&from, n, flip);
            expected.extend((0..n).map(|i| kernels::bit(&from, i) ^ flip & 1));
            bits.push_bit(round as u64);
            expected.push(round as u64 & 1);
        }
        assert_eq!(bits.len(), expected.len());
        assert_eq!(bits.words().len(), words(bits.len()));
        assert_eq!(bits.words().last().map_or(0, |w| w & !tail_mask(bits.len())), 0);
        for at in [0, 1, 63, 64, 130] {
            let n = bits.len() - at;
            for n in [n, n - 1, 1, 0] {
                let mut out = vec![u64::MAX; words(n)];
                bits.read(at, n, &mut out);
                assert!((0..n).all(|i| kernels::bit(&out, i) == expected[at + i]), "{n} bits from {at}");
                let mut sent = Vec::new();
                append_bytes(&out, n, &mut sent);
                assert_eq!(sent.len(), bytes(n));
                if let Some(last) = sent.last_mut().filter(|_| n % 8 > 0) {
                    *last |= 0xff << (n % 8);
                }
                xor_bytes(&sent, n, &mut out);
                assert!(out.iter().all(|w| *w == 0), "{n} bits from {at} as bytes");
            }
        }
        bits.keep_from(77);
        let mut out = vec![0; words(bits.len())];
        bits.read(0, bits.len(), &mut out);
        assert!((0..bits.len()).all(|i| kernels::bit(&out, i) == expected[77 + i]));
        bits.clear();
        assert_eq!((bits.len(), bits.words().len()), (0, 0));
    }
}

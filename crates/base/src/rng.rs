//! Seeds and generators. One seed per session, forked by label; nothing is drawn from a global generator.

use crate::Secret;
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;

/// The generator of protocol crates: ChaCha with 12 rounds. Not `Clone`.
pub struct Rng(ChaCha12Rng);

/// A 32-byte seed. It forks by label, so that two uses never share a stream.
#[derive(Debug)]
pub struct Seed(Secret<[u8; 32]>);

impl Seed {
    /// A seed from given bytes: a key agreed with a peer, or a test's seed.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Secret::new(bytes))
    }

    /// A fresh seed from the operating system.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe can be done then.
    #[must_use]
    pub fn from_system() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system gives randomness");
        Self::from_bytes(bytes)
    }

    /// The seed of a sub-task. Different labels give independent seeds.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(self.0.expose());
        hasher.update(b"tacit fork\0").update(label.as_bytes());
        Self::from_bytes(*hasher.finalize().as_bytes())
    }

    /// The generator of this seed. Taking it consumes the seed: a stream is used once.
    #[must_use]
    pub fn into_rng(self) -> Rng {
        Rng(ChaCha12Rng::from_seed(*self.0.expose()))
    }

    /// The bytes, for sending to a peer or feeding a key derivation.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

impl Rng {
    /// Fresh bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        rand_core::Rng::fill_bytes(self, &mut bytes);
        bytes
    }

    /// A uniform index in `0..n`, without modulo bias.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no index below 0");
        let zone = u64::MAX - u64::MAX % n;
        loop {
            let x = rand_core::Rng::next_u64(self);
            if x < zone {
                return x % n;
            }
        }
    }

    /// Shuffles in place: Fisher-Yates, uniform over all orders.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

impl rand_core::TryRng for Rng {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.0.try_next_u32()
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0.try_next_u64()
    }
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Self::Error> {
        self.0.try_fill_bytes(into)
    }
}

impl rand_core::TryCryptoRng for Rng {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_differ_and_repeat() {
        let seed = Seed::from_bytes([7; 32]);
        assert_eq!(seed.fork("a").expose(), seed.fork("a").expose());
        assert_ne!(seed.fork("a").expose(), seed.fork("b").expose());
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut items: Vec<u32> = (0..1000).collect();
        Seed::from_bytes([1; 32]).into_rng().shuffle(&mut items);
        assert_ne!(items, (0..1000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn below_is_below() {
        let mut rng = Seed::from_bytes([2; 32]).into_rng();
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}

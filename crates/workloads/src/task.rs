//! What every workload is: inputs, a computation, results that are revealed and checked.

use base::Error;
use osprey::Memory;
use yao::wires::{Role, WireArray, WireParty};

/// One workload at one size, with memory for all its data. The functions run in their order, in every pass.
pub trait Task<M: Memory> {
    /// Bytes of all wires.
    fn bytes(&self) -> usize;

    /// Reads the inputs of both parties.
    fn input(&mut self, p: &mut WireParty<'_>) -> Result<(), Error>;

    /// What is measured.
    fn compute(&mut self, p: &mut WireParty<'_>) -> Result<(), Error>;

    /// The wires of the results.
    fn results(&self) -> &Wires<M>;

    /// Whether results, packed as they were revealed, are those of the computation in the clear.
    fn check(&self, results: &[u64]) -> bool;

    /// Bytes of memory that the check takes, where they are many: a speculative pass takes them too, since a
    /// limit is planned from what it took.
    fn beside(&self) -> usize {
        0
    }
}

/// An array of wires of a memory.
pub type Wires<M> = WireArray<<M as Memory>::Buffer<kernels::Block>>;

/// A bijection of 64 bits that scatters neighbours (the finaliser of SplitMix64): inputs come from it.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Enters `words` of input into wires: whoever does not own them computes none.
///
/// # Errors
/// Those of the channel.
pub fn enter(
    p: &mut WireParty<'_>,
    owner: Role,
    words: impl FnOnce() -> Vec<u64>,
    wires: &mut [kernels::Block],
) -> Result<(), Error> {
    let bits = if p.enters(owner) { words() } else { Vec::new() };
    p.input(owner, &bits, wires)
}

/// `len` of packed bits, 1..=64, from bit `at` on.
pub fn bits(words: &[u64], at: usize, len: usize) -> u64 {
    let (word, shift) = (at / 64, at % 64);
    let low = words[word] >> shift;
    let high = if shift + len > 64 { words[word + 1] << (64 - shift) } else { 0 };
    (low | high) & (u64::MAX >> (64 - len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_taken_across_words() {
        let words = [0xfedc_ba98_7654_3210, 0x0123_4567_89ab_cdef];
        assert_eq!(bits(&words, 0, 64), words[0]);
        assert_eq!(bits(&words, 60, 8), 0xff);
        assert_eq!(bits(&words, 64, 64), words[1]);
        assert_eq!(bits(&words, 3, 1), 0);
    }
}

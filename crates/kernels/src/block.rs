//! The 128-bit block: a wire label, a correlation, a key.
#![expect(unsafe_code, reason = "views of blocks as bytes, with the argument at each")]

use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, BitXorAssign};
use zeroize::Zeroize;

/// 128 bits, bytes in little-endian order. It does not print its content. `==` is for tests and public
/// values: it is not constant time.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Block(pub u128);

// Blocks are sent as they lie in memory; a big-endian port would have to convert in `as_bytes`.
const _: () = assert!(cfg!(target_endian = "little"), "blocks are sent in little-endian order");

impl Block {
    /// All bits clear.
    pub const ZERO: Self = Self(0);
    /// All bits set.
    pub const ONES: Self = Self(u128::MAX);
    /// Only bit 0 set: the colour bit.
    pub const ONE: Self = Self(1);
    /// Bytes of one block.
    pub const BYTES: usize = 16;

    /// The block with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// Its bytes, little endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// A tweak `worker || batch || gate || half`, 16 + 48 + 56 + 8 bits from the top. Under one Delta and one
    /// `start` no tweak may repeat except over the lanes of one batch.
    ///
    /// # Panics
    /// When `batch` or `gate` is over its width: a repeated tweak would leak Delta.
    #[must_use]
    pub fn tweak(worker: u16, batch: u64, gate: u64, half: u8) -> Self {
        assert!(batch >> 48 == 0 && gate >> 56 == 0, "tweak counter exhausted");
        let (worker, batch) = (u128::from(worker) << 112, u128::from(batch) << 64);
        Self(worker | batch | u128::from(gate) << 8 | u128::from(half))
    }

    /// Bit 0: the colour bit of a label.
    #[inline]
    #[must_use]
    pub fn lsb(self) -> bool {
        self.0 & 1 == 1
    }

    /// All ones when bit 0 is set, else zero.
    #[inline]
    #[must_use]
    pub fn lsb_mask(self) -> Self {
        Self((self.0 & 1).wrapping_neg())
    }

    /// This block when `bit` (0 or 1), else zero, without a branch.
    #[inline]
    #[must_use]
    pub fn when(self, bit: u64) -> Self {
        Self(self.0 & u128::from(bit & 1).wrapping_neg())
    }

    /// All ones when `bit` (0 or 1), else zero, and the compiler does not know that it is one of the two: of
    /// a mask that serves a whole loop it makes a branch around the loop otherwise. For a secret bit outside
    /// a loop (see also [`crate::xor_when`]); inside one, [`Block::when`] stays in vectors.
    #[inline]
    #[must_use]
    pub fn mask(bit: u64) -> Self {
        Self(u128::from(std::hint::black_box(bit & 1)).wrapping_neg())
    }

    /// sigma(a || b) = (a xor b) || a, the linear orthomorphism of the hash; `a` is the upper half.
    #[inline]
    #[must_use]
    pub fn sigma(self) -> Self {
        let (a, b) = ((self.0 >> 64) as u64, self.0 as u64);
        Self(u128::from(a ^ b) << 64 | u128::from(a))
    }

    /// The bytes of a slice of blocks, as sent, in place.
    #[must_use]
    pub fn as_bytes(blocks: &[Self]) -> &[u8] {
        bytemuck::cast_slice(blocks)
    }

    /// The bytes of a slice of blocks, to receive into.
    #[must_use]
    pub fn as_bytes_mut(blocks: &mut [Self]) -> &mut [u8] {
        bytemuck::cast_slice_mut(blocks)
    }

    /// The bytes of blocks, as sent: a view, no copy.
    #[must_use]
    pub fn bytes_of(blocks: &[Self]) -> &[u8] {
        // SAFETY: `Block` is a transparent u128: 16 initialised bytes without padding, and u8 has no
        // alignment. Its bytes in memory are little endian (checked below), the order of `to_bytes`.
        unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
    }

    /// The bytes of blocks to receive into: a view, no copy.
    #[must_use]
    pub fn bytes_of_mut(blocks: &mut [Self]) -> &mut [u8] {
        // SAFETY: as in `bytes_of`, and every bit pattern is a u128.
        unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), size_of_val(blocks)) }
    }

    /// A copy of the bytes of blocks, as sent.
    #[must_use]
    pub fn slice_to_bytes(blocks: &[Self]) -> Vec<u8> {
        Self::bytes_of(blocks).to_vec()
    }

    /// Reads blocks from bytes as sent.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn read_slice(bytes: &[u8], into: &mut [Self]) {
        assert_eq!(bytes.len(), into.len() * Self::BYTES, "16 bytes per block");
        Self::bytes_of_mut(into).copy_from_slice(bytes);
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "blocks are sent as they lie in memory: little endian");

impl BitXor for Block {
    type Output = Self;
    #[inline]
    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl BitXorAssign for Block {
    #[inline]
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

impl BitAnd for Block {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Block {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Block(..)")
    }
}

impl Zeroize for Block {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_hides_its_content_and_keeps_its_bytes() {
        let block = Block(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);
        assert_eq!(format!("{block:?}"), "Block(..)");
        assert_eq!(block.to_bytes(), std::array::from_fn(|i| i as u8));
        let mut again = [Block::ZERO; 2];
        Block::read_slice(&Block::slice_to_bytes(&[block, Block::ONE]), &mut again);
        assert_eq!(again, [block, Block::ONE]);
        assert_eq!(Block::bytes_of(&again)[..16], block.to_bytes());
        Block::bytes_of_mut(&mut again)[16] = 9;
        assert_eq!(again[1], Block(9));
    }

    #[test]
    fn sigma_and_tweak_have_their_layout() {
        assert_eq!(Block(5 << 64 | 3).sigma(), Block(6 << 64 | 5));
        assert_eq!(Block::tweak(1, 2, 3, 4), Block(1 << 112 | 2 << 64 | 3 << 8 | 4));
    }

    #[test]
    #[should_panic(expected = "tweak counter exhausted")]
    fn a_tweak_never_wraps() {
        let _ = Block::tweak(0, 1 << 48, 0, 0);
    }
}

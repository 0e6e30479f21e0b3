//! Curve25519 in batches: u-coordinates times one key, and uniform bytes to points. The 32 bytes of an
//! element are those of RFC 7748; the map is `map_to_curve` and all that follows it in RFC 9380's
//! `edwards25519_XMD:SHA-512_ELL2_RO_`.

use crate::portable;
#[cfg(target_arch = "x86_64")]
use crate::{InstructionSet, x86};

/// A u-coordinate, little endian. Bit 255 is ignored.
pub type UCoordinate = [u8; 32];
/// A key `s' < 2^252`, little endian. Points are multiplied by `8 s'`, which kills the torsion of the curve
/// and its twist.
pub type Key = [u8; 32];
/// What RFC 9380 expands a name to: two big-endian numbers of 48 bytes.
pub type Uniform = [u8; 96];

/// A way to compute on Curve25519. All ways give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveBackend(Path);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Ifma,
}

impl CurveBackend {
    /// The 8-lane kernel: none when the CPU lacks AVX-512 IFMA, or under `TACIT_PORTABLE=1`. A caller that
    /// has a good library for one point at a time takes that then.
    #[must_use]
    pub fn fast() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if InstructionSet::detect() == InstructionSet::Vaes512 && is_x86_feature_detected!("avx512ifma") {
            return Some(Self(Path::Ifma));
        }
        None
    }

    /// The twin of the kernel, one point at a time: to compare with, neither fast nor, in its map, of fixed
    /// time.
    #[must_use]
    pub fn portable() -> Self {
        Self(Path::Portable)
    }

    /// Replaces every point by its product with `8 key`. A product that is the neutral element is zero.
    ///
    /// # Panics
    /// When `key` is not below `2^252`.
    pub fn mul(self, key: &Key, points: &mut [UCoordinate]) {
        assert!(key[31] < 16, "keys are below 2^252");
        match self.0 {
            Path::Portable => portable::curve::mul(key, points),
            #[cfg(target_arch = "x86_64")]
            Path::Ifma => x86::curve::mul(key, points),
        }
    }

    /// Maps each name's bytes to a point of the prime-order subgroup, and multiplies it by `8 key` when there
    /// is one.
    ///
    /// # Panics
    /// When lengths differ, or when `key` is not below `2^252`.
    pub fn map(self, key: Option<&Key>, uniform: &[Uniform], out: &mut [UCoordinate]) {
        assert_eq!(uniform.len(), out.len(), "one point per name");
        assert!(key.is_none_or(|key| key[31] < 16), "keys are below 2^252");
        match self.0 {
            Path::Portable => portable::curve::map(key, uniform, out),
            #[cfg(target_arch = "x86_64")]
            Path::Ifma => x86::curve::map(key, uniform, out),
        }
    }
}

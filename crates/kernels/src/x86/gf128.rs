//! Multiplication in the field of 2^128 elements by carry-less products of halves.

use crate::Block;
use std::arch::x86_64::*;

/// Whether this machine multiplies polynomials.
pub fn has_field() -> bool {
    is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1")
}

/// See [`crate::gf_add_multiples`].
pub fn add_multiples(factor: Block, x: &[Block], sums: &mut [Block]) {
    assert!(has_field() && x.len() == sums.len(), "checked by the caller");
    // SAFETY: the features are there; both slices have the same length.
    unsafe { run(factor, x, sums) }
}

#[target_feature(enable = "pclmulqdq,sse4.1")]
unsafe fn run(factor: Block, x: &[Block], sums: &mut [Block]) {
    let factor = _mm_loadu_si128((&raw const factor).cast());
    for (x, sum) in x.iter().zip(sums) {
        let sum: *mut __m128i = std::ptr::from_mut(sum).cast();
        let product = multiply(factor, _mm_loadu_si128(std::ptr::from_ref(x).cast()));
        _mm_storeu_si128(sum, _mm_xor_si128(_mm_loadu_si128(sum), product));
    }
}

/// The product: four products of halves, then the upper 128 bits come down as multiples of x^7 + x^2 + x + 1, first
/// their upper half, then their lower half with what that brought.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
unsafe fn multiply(a: __m128i, b: __m128i) -> __m128i {
    let middle = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
    let low = _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(a, b), _mm_slli_si128::<8>(middle));
    let high = _mm_xor_si128(_mm_clmulepi64_si128::<0x11>(a, b), _mm_srli_si128::<8>(middle));
    let polynomial = _mm_set_epi64x(0, 0x87);
    let upper = _mm_clmulepi64_si128::<0x01>(high, polynomial);
    let high = _mm_xor_si128(high, _mm_srli_si128::<8>(upper));
    let lower = _mm_clmulepi64_si128::<0x00>(high, polynomial);
    _mm_xor_si128(_mm_xor_si128(low, lower), _mm_slli_si128::<8>(upper))
}

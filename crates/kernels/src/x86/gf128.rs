//! Multiplication in the field of 2^128 elements by carry-less products of halves.

use crate::gf128::{DIGEST_GROUP, GfKey};
use crate::{Block, InstructionSet};
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

/// The product of two elements.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
unsafe fn multiply(a: __m128i, b: __m128i) -> __m128i {
    let middle = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
    reduce(_mm_clmulepi64_si128::<0x00>(a, b), middle, _mm_clmulepi64_si128::<0x11>(a, b))
}

/// An element from a sum of products of halves: the upper 128 bits come down as multiples of x^7 + x^2 + x +
/// 1, first their upper half, then their lower half with what that brought.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
unsafe fn reduce(low: __m128i, middle: __m128i, high: __m128i) -> __m128i {
    let low = _mm_xor_si128(low, _mm_slli_si128::<8>(middle));
    let high = _mm_xor_si128(high, _mm_srli_si128::<8>(middle));
    let polynomial = _mm_set_epi64x(0, 0x87);
    let upper = _mm_clmulepi64_si128::<0x01>(high, polynomial);
    let high = _mm_xor_si128(high, _mm_srli_si128::<8>(upper));
    let lower = _mm_clmulepi64_si128::<0x00>(high, polynomial);
    _mm_xor_si128(_mm_xor_si128(low, lower), _mm_slli_si128::<8>(upper))
}

/// See [`crate::gf_digest`]: products of a group of blocks with the powers are added before one reduction.
pub fn digest(backend: InstructionSet, key: &GfKey, before: Block, x: &[Block]) -> Block {
    assert!(has_field(), "checked by the caller");
    let (groups, rest) = x.as_chunks::<DIGEST_GROUP>();
    let wide = backend == InstructionSet::Vaes512 && is_x86_feature_detected!("vpclmulqdq");
    // SAFETY: the features are there; groups are whole.
    let sum =
        unsafe { if wide { groups_wide(key, before, groups) } else { groups_narrow(key, before, groups) } };
    // SAFETY: as above.
    unsafe { last(key, sum, rest) }
}

#[target_feature(enable = "pclmulqdq,sse4.1")]
unsafe fn groups_narrow(key: &GfKey, before: Block, groups: &[[Block; DIGEST_GROUP]]) -> Block {
    groups.iter().fold(before, |sum, group| last(key, sum, group))
}

/// The sum so far and up to a group of blocks.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
unsafe fn last(key: &GfKey, sum: Block, x: &[Block]) -> Block {
    if x.is_empty() {
        return sum;
    }
    let [mut low, mut middle, mut high] = [_mm_setzero_si128(); 3];
    for (j, (x, power)) in x.iter().zip(&key.powers[DIGEST_GROUP - x.len()..]).enumerate() {
        let first = if j == 0 { sum } else { Block::ZERO };
        let a = _mm_xor_si128(load(x), load(&first));
        let b = load(power);
        low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(a, b));
        middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x01>(a, b));
        middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x10>(a, b));
        high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(a, b));
    }
    store(reduce(low, middle, high))
}

#[target_feature(enable = "pclmulqdq,sse4.1,vpclmulqdq,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn groups_wide(key: &GfKey, before: Block, groups: &[[Block; DIGEST_GROUP]]) -> Block {
    let four = |x: &[Block; DIGEST_GROUP], v: usize| _mm512_loadu_si512(x[4 * v..].as_ptr().cast());
    let mut sum = load(&before);
    for group in groups {
        let [mut low, mut middle, mut high] = [_mm512_setzero_si512(); 3];
        // What waits for the group before comes last.
        for v in (0..DIGEST_GROUP / 4).rev() {
            let mut a = four(group, v);
            if v == 0 {
                a = _mm512_xor_si512(a, _mm512_zextsi128_si512(sum));
            }
            let b = four(&key.powers, v);
            low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(a, b));
            high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(a, b));
            let a = _mm512_xor_si512(a, _mm512_shuffle_epi32::<0x4e>(a));
            let b = _mm512_xor_si512(b, _mm512_shuffle_epi32::<0x4e>(b));
            middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128::<0x00>(a, b));
        }
        // Karatsuba: the products of sums of halves hold those of the halves themselves.
        middle = _mm512_ternarylogic_epi64::<0x96>(middle, low, high);
        sum = reduce(fold(low), fold(middle), fold(high));
    }
    store(sum)
}

/// The sum of four blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn fold(x: __m512i) -> __m128i {
    let halves = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
    _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
}

#[inline]
unsafe fn load(x: &Block) -> __m128i {
    _mm_loadu_si128(std::ptr::from_ref(x).cast())
}

#[inline]
unsafe fn store(x: __m128i) -> Block {
    let mut block = Block::ZERO;
    _mm_storeu_si128((&raw mut block).cast(), x);
    block
}

//! Vectors over Z_2^128, Z_2^64 and packed Z_2. The contract of every `unsafe fn` is that of the parent
//! module.
//!
//! Additions are 64-bit additions; over Z_2^128 the carry out of the lower half is brought up. Products over
//! Z_2^128 are of limbs of 52, 52 and 24 bits, eight elements at a time (AVX-512 IFMA).

use super::{FLIGHT, Wide, aes, get, get_all, put};
use crate::ring::{JointMask, Keystream, portable_cross};
use crate::{Block, InstructionSet, VectorRing, Write};
use std::arch::x86_64::*;

/// Whether this machine multiplies limbs of 52 bits, and shifts across two words.
fn has_limbs() -> bool {
    is_x86_feature_detected!("avx512ifma") && is_x86_feature_detected!("avx512vbmi2")
}

/// What sums of 64-bit halves need of a vector.
pub trait HalfSums: Copy {
    unsafe fn add64(self, other: Self) -> Self;
    unsafe fn sub64(self, other: Self) -> Self;
    /// 1 in the upper half of every block whose lower half overflowed in `sum = x + y`.
    unsafe fn carries(x: Self, y: Self, sum: Self) -> Self;
    /// 1 in the upper half of every block whose lower half underflowed in `difference = x - y`.
    unsafe fn borrows(x: Self, y: Self, difference: Self) -> Self;
}

impl HalfSums for __m128i {
    instructions!(add64 = _mm_add_epi64, sub64 = _mm_sub_epi64);
    #[inline(always)]
    unsafe fn carries(x: Self, y: Self, sum: Self) -> Self {
        let out = _mm_or_si128(_mm_and_si128(x, y), _mm_andnot_si128(sum, _mm_or_si128(x, y)));
        _mm_slli_si128::<8>(_mm_srli_epi64::<63>(out))
    }
    #[inline(always)]
    unsafe fn borrows(x: Self, y: Self, difference: Self) -> Self {
        let differ = _mm_andnot_si128(_mm_xor_si128(x, y), difference);
        let out = _mm_or_si128(_mm_andnot_si128(x, y), differ);
        _mm_slli_si128::<8>(_mm_srli_epi64::<63>(out))
    }
}

impl HalfSums for __m512i {
    instructions!(add64 = _mm512_add_epi64, sub64 = _mm512_sub_epi64);
    #[inline(always)]
    unsafe fn carries(x: Self, y: Self, sum: Self) -> Self {
        // x and y, or one of them and not the sum: the truth table of the three in order.
        let out = _mm512_ternarylogic_epi64::<0b1101_0100>(x, y, sum);
        _mm512_bslli_epi128::<8>(_mm512_srli_epi64::<63>(out))
    }
    #[inline(always)]
    unsafe fn borrows(x: Self, y: Self, difference: Self) -> Self {
        // y and not x, or the difference where they are equal.
        let out = _mm512_ternarylogic_epi64::<0b1000_1110>(x, y, difference);
        _mm512_bslli_epi128::<8>(_mm512_srli_epi64::<63>(out))
    }
}

/// What the elements of a vector are, known when a loop is compiled.
trait Elements {
    unsafe fn add<W: Wide>(x: W, y: W) -> W;
    unsafe fn sub<W: Wide>(x: W, y: W) -> W;
}

struct Z128;
struct Z64;
struct Z2;

impl Elements for Z128 {
    #[inline(always)]
    unsafe fn add<W: Wide>(x: W, y: W) -> W {
        let sum = x.add64(y);
        sum.add64(W::carries(x, y, sum))
    }
    #[inline(always)]
    unsafe fn sub<W: Wide>(x: W, y: W) -> W {
        let difference = x.sub64(y);
        difference.sub64(W::borrows(x, y, difference))
    }
}

impl Elements for Z64 {
    #[inline(always)]
    unsafe fn add<W: Wide>(x: W, y: W) -> W {
        x.add64(y)
    }
    #[inline(always)]
    unsafe fn sub<W: Wide>(x: W, y: W) -> W {
        x.sub64(y)
    }
}

impl Elements for Z2 {
    #[inline(always)]
    unsafe fn add<W: Wide>(x: W, y: W) -> W {
        x.xor(y)
    }
    #[inline(always)]
    unsafe fn sub<W: Wide>(x: W, y: W) -> W {
        x.xor(y)
    }
}

/// Defines a kernel whose step also depends on what the elements `E` are.
macro_rules! ring_kernel {
    ($name:ident, $step:ident, $of:ident, lanes $lanes:expr,
     ($($arg:ident : $type:ty),*), ($i:ident, $n:ident) $body:block) => {
        kernel!($name, $step, lanes $lanes, (ring: VectorRing, $($arg: $type),*), ($i, $n) {
            match ring {
                VectorRing::Z128 => $of::<Z128, W, N>($i, $n, $($arg),*),
                VectorRing::Z64 => $of::<Z64, W, N>($i, $n, $($arg),*),
                VectorRing::Z2 => $of::<Z2, W, N>($i, $n, $($arg),*),
            }
        });

        #[inline(always)]
        unsafe fn $of<E: Elements, W: Wide, const N: usize>($i: usize, $n: usize, $($arg: $type),*) $body
    };
}

/// Blocks from the i-th on of a stream.
#[inline(always)]
unsafe fn masks<W: Wide, const N: usize>(stream: Keystream<'_>, i: usize) -> [W; N] {
    let start =
        W::splat(Block(u128::from(stream.prefix) << 64)).xor(W::count(stream.first.wrapping_add(i as u64)));
    let mut x = [[start; N]];
    for (j, x) in x[0].iter_mut().enumerate() {
        *x = x.add64(W::splat(Block((j * W::LANES) as u128)));
    }
    aes(&mut x, &stream.key.keys);
    x[0]
}

ring_kernel!(add, add_step, add_some, lanes sums.len(),
(sums: &mut [Block], x: &[Block]), (i, n) {
    let (sum, x) = (get_all::<W, N>(sums, i, n), get_all::<W, N>(x, i, n));
    for j in 0..N {
        put(E::add(sum[j], x[j]), sums, i + j * W::LANES, n);
    }
});

ring_kernel!(sub, sub_step, sub_some, lanes sums.len(),
(sums: &mut [Block], x: &[Block]), (i, n) {
    let (sum, x) = (get_all::<W, N>(sums, i, n), get_all::<W, N>(x, i, n));
    for j in 0..N {
        put(E::sub(sum[j], x[j]), sums, i + j * W::LANES, n);
    }
});

kernel!(fill, fill_step, lanes out.len(), (stream: Keystream<'_>, out: &mut [Block]), (i, n) {
    let x = masks::<W, N>(stream, i);
    for j in 0..N {
        put(x[j], out, i + j * W::LANES, n);
    }
});

ring_kernel!(add_stream, add_stream_step, add_masks, lanes sums.len(),
(stream: Keystream<'_>, sums: &mut [Block]), (i, n) {
    let masks = masks::<W, N>(stream, i);
    let sum = get_all::<W, N>(sums, i, n);
    for j in 0..N {
        put(E::add(sum[j], masks[j]), sums, i + j * W::LANES, n);
    }
});

ring_kernel!(add_unmasked, add_unmasked_step, add_less_masks, lanes sums.len(),
(stream: Keystream<'_>, sums: &mut [Block], x: &[Block]), (i, n) {
    let masks = masks::<W, N>(stream, i);
    let (sum, x) = (get_all::<W, N>(sums, i, n), get_all::<W, N>(x, i, n));
    for j in 0..N {
        put(E::add(sum[j], E::sub(x[j], masks[j])), sums, i + j * W::LANES, n);
    }
});

ring_kernel!(split, split_step, split_some, lanes values.len(),
(joint: &mut JointMask<'_>, values: &mut [Block]), (i, n) {
    let mask = masks::<W, N>(joint.mask, i);
    let mut message = get_all::<W, N>(values, i, n);
    for j in 0..N {
        message[j] = E::sub(message[j], mask[j]);
    }
    write_all::<E, W, N>(&mask, joint.to_mask.0, joint.to_mask.1, i, n);
    write_all::<E, W, N>(&message, joint.to_rest.0, joint.to_rest.1, i, n);
    if let Some(wire) = joint.wire {
        let wire = masks::<W, N>(wire, i);
        for j in 0..N {
            message[j] = E::add(message[j], wire[j]);
        }
    }
    for j in 0..N {
        put(message[j], values, i + j * W::LANES, n);
    }
});

#[inline(always)]
unsafe fn write_all<E: Elements, W: Wide, const N: usize>(
    x: &[W; N],
    write: Write,
    to: &mut [Block],
    i: usize,
    n: usize,
) {
    let mut x = *x;
    if write == Write::Add {
        let sum = get_all::<W, N>(to, i, n);
        for j in 0..N {
            x[j] = E::add(sum[j], x[j]);
        }
    }
    for j in 0..N {
        put(x[j], to, i + j * W::LANES, n);
    }
}

type Parts<'a> = [&'a [Block]; 3];
type Sums<'a, 'b> = &'a mut [&'b mut [Block]; 3];

/// See [`crate::ring_cross`].
pub fn cross(
    backend: InstructionSet,
    ring: VectorRing,
    write: Write,
    x: Parts<'_>,
    y: Parts<'_>,
    sums: Sums<'_, '_>,
) {
    /// The portable code, compiled for 256-bit vectors.
    #[target_feature(enable = "avx2")]
    unsafe fn narrow(ring: VectorRing, write: Write, x: Parts<'_>, y: Parts<'_>, sums: Sums<'_, '_>) {
        portable_cross(ring, write, x, y, sums);
    }
    match (backend, ring) {
        // SAFETY: the features of the backend and of the limbs are there; all slices have the length of
        // `sums[0]`.
        (InstructionSet::Vaes512, VectorRing::Z128) if has_limbs() => unsafe {
            cross_limbs(write, x, y, sums)
        },
        // SAFETY: as above.
        (InstructionSet::Vaes512, VectorRing::Z64) => unsafe { cross_words::<Z64>(write, x, y, sums) },
        // SAFETY: as above.
        (InstructionSet::Vaes512, VectorRing::Z2) => unsafe { cross_words::<Z2>(write, x, y, sums) },
        // SAFETY: every x86 backend has AVX2.
        _ => unsafe { narrow(ring, write, x, y, sums) },
    }
}

/// Products of 64-bit lanes that one instruction makes.
trait Words: Elements {
    unsafe fn mul(x: __m512i, y: __m512i) -> __m512i;
}

impl Words for Z64 {
    #[inline(always)]
    unsafe fn mul(x: __m512i, y: __m512i) -> __m512i {
        _mm512_mullo_epi64(x, y)
    }
}

impl Words for Z2 {
    #[inline(always)]
    unsafe fn mul(x: __m512i, y: __m512i) -> __m512i {
        _mm512_and_si512(x, y)
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn cross_words<E: Words>(write: Write, x: Parts<'_>, y: Parts<'_>, sums: Sums<'_, '_>) {
    let lanes = sums[0].len();
    let whole = lanes - lanes % __m512i::LANES;
    for i in (0..whole).step_by(__m512i::LANES) {
        cross_four::<E>(write, x, y, sums, i, __m512i::LANES);
    }
    if whole < lanes {
        cross_four::<E>(write, x, y, sums, whole, lanes - whole);
    }
}

/// The sums of `n <= 4` blocks from block `i` on.
#[inline(always)]
unsafe fn cross_four<E: Words>(
    write: Write,
    x: Parts<'_>,
    y: Parts<'_>,
    sums: Sums<'_, '_>,
    i: usize,
    n: usize,
) {
    let (x0, x1, x2) = (get(x[0], i, n), get(x[1], i, n), get(x[2], i, n));
    let (y0, y1, y2) = (get(y[0], i, n), get(y[1], i, n), get(y[2], i, n));
    let a = E::add(E::mul(x1, E::add(y1, y2)), E::mul(x2, y1));
    let b = E::add(E::mul(x0, E::add(y0, y1)), E::mul(x1, y0));
    let c = E::add(E::mul(x0, y2), E::mul(x2, y0));
    write_all::<E, _, 1>(&[a], write, sums[0], i, n);
    write_all::<E, _, 1>(&[b], write, sums[1], i, n);
    write_all::<E, _, 1>(&[c], write, sums[2], i, n);
}

/// Eight elements of Z_2^128, lower and upper halves apart: element i is block i / 2 of the first four blocks
/// when i is even, else of the other four.
#[derive(Clone, Copy)]
struct Eight {
    low: __m512i,
    high: __m512i,
}

impl Eight {
    /// Blocks taken at a time.
    const LANES: usize = 2 * __m512i::LANES;

    #[inline(always)]
    unsafe fn get(from: &[Block], i: usize, n: usize) -> Self {
        let first = n.min(__m512i::LANES);
        let (x, y) = (get(from, i, first), get(from, i + first, n - first));
        Self { low: _mm512_unpacklo_epi64(x, y), high: _mm512_unpackhi_epi64(x, y) }
    }

    #[inline(always)]
    unsafe fn put(self, to: &mut [Block], i: usize, n: usize) {
        let first = n.min(__m512i::LANES);
        put(_mm512_unpacklo_epi64(self.low, self.high), to, i, first);
        put(_mm512_unpackhi_epi64(self.low, self.high), to, i + first, n - first);
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        let low = _mm512_add_epi64(self.low, other.low);
        let high = _mm512_add_epi64(self.high, other.high);
        let carry = _mm512_cmplt_epu64_mask(low, other.low);
        Self { low, high: _mm512_mask_sub_epi64(high, carry, high, _mm512_set1_epi64(-1)) }
    }

    /// Limbs of 52 bits; what is above them is not looked at by products.
    #[inline(always)]
    unsafe fn limbs(self) -> Limbs {
        Limbs([self.low, _mm512_shldi_epi64::<12>(self.high, self.low), _mm512_srli_epi64::<40>(self.high)])
    }
}

/// Factors: words at 2^0, 2^52 and 2^104, of which 52 bits count.
#[derive(Clone, Copy)]
struct Limbs([__m512i; 3]);

/// Sums of products, as words at 2^0, 2^52 and 2^104. The sum of two products has no more than six terms of
/// 52 bits in a word, so none overflows but the last, whose upper bits do not count.
#[derive(Clone, Copy)]
struct Products([__m512i; 3]);

impl Products {
    #[inline(always)]
    unsafe fn add(self, Limbs(a): Limbs, Limbs(b): Limbs) -> Self {
        let Self([s0, s1, s2]) = self;
        let s0 = _mm512_madd52lo_epu64(s0, a[0], b[0]);
        let s1 = _mm512_madd52hi_epu64(s1, a[0], b[0]);
        let s2 = _mm512_madd52hi_epu64(s2, a[0], b[1]);
        let s1 = _mm512_madd52lo_epu64(s1, a[0], b[1]);
        let s2 = _mm512_madd52hi_epu64(s2, a[1], b[0]);
        let s1 = _mm512_madd52lo_epu64(s1, a[1], b[0]);
        let s2 = _mm512_madd52lo_epu64(s2, a[0], b[2]);
        let s2 = _mm512_madd52lo_epu64(s2, a[1], b[1]);
        let s2 = _mm512_madd52lo_epu64(s2, a[2], b[0]);
        Self([s0, s1, s2])
    }

    #[inline(always)]
    unsafe fn sum(self) -> Eight {
        let Self([s0, s1, s2]) = self;
        let high = _mm512_add_epi64(_mm512_srli_epi64::<12>(s1), _mm512_slli_epi64::<40>(s2));
        let lowest = Eight { low: s0, high: _mm512_setzero_si512() };
        Eight { low: _mm512_slli_epi64::<52>(s1), high }.add(lowest)
    }
}

/// `a b + c d` of eight elements.
#[inline(always)]
unsafe fn pair(a: Limbs, b: Limbs, c: Limbs, d: Limbs) -> Eight {
    Products([_mm512_setzero_si512(); 3]).add(a, b).add(c, d).sum()
}

#[inline(always)]
unsafe fn write_eight(x: Eight, write: Write, to: &mut [Block], i: usize, n: usize) {
    let x = if write == Write::Add { x.add(Eight::get(to, i, n)) } else { x };
    x.put(to, i, n);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn cross_limbs(write: Write, x: Parts<'_>, y: Parts<'_>, sums: Sums<'_, '_>) {
    let lanes = sums[0].len();
    let whole = lanes - lanes % Eight::LANES;
    for i in (0..whole).step_by(Eight::LANES) {
        cross_eight(write, x, y, sums, i, Eight::LANES);
    }
    if whole < lanes {
        cross_eight(write, x, y, sums, whole, lanes - whole);
    }
}

/// The sums of `n <= 8` elements from element `i` on.
#[inline(always)]
unsafe fn cross_eight(write: Write, x: Parts<'_>, y: Parts<'_>, sums: Sums<'_, '_>, i: usize, n: usize) {
    let (y0, y1, y2) = (Eight::get(y[0], i, n), Eight::get(y[1], i, n), Eight::get(y[2], i, n));
    let (y01, y12) = (y0.add(y1).limbs(), y1.add(y2).limbs());
    let (y0, y1, y2) = (y0.limbs(), y1.limbs(), y2.limbs());
    let x0 = Eight::get(x[0], i, n).limbs();
    let x1 = Eight::get(x[1], i, n).limbs();
    let x2 = Eight::get(x[2], i, n).limbs();
    write_eight(pair(x1, y12, x2, y1), write, sums[0], i, n);
    write_eight(pair(x0, y01, x1, y0), write, sums[1], i, n);
    write_eight(pair(x0, y2, x2, y0), write, sums[2], i, n);
}
